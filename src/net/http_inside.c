/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of our own making: no connection made them and none gets their answer, so that what
 * comes over a socket can be given to the same handlers as an HTTP request. The maker authorises;
 * the handler's on_head and on_answered have no part in this.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/http_conn.h"

struct http_request *
http_request_inside(struct loop *loop, str body,
                    void (*on_reply)(void *arg, const struct http_answer *answer), void *arg)
{
    static const struct http_head empty = {.method = HTTP_POST,
                                           .minor = 1,
                                           .target = {"", 0},
                                           .path = {"", 0},
                                           .query = {"", 0},
                                           .host = {"", 0}};
    struct request *request = calloc(1, sizeof *request);
    if (!request) abort();
    request->loop = loop;
    buf_init(&request->body, body.len);
    buf_append(&request->body, body);
    struct http_request *public = &request->public;
    public->head = &empty;
    public->peer = "inside";
    public->body = buf_str(&request->body);
    public->on_reply = on_reply;
    public->reply_arg = arg;
    arena_init(&public->arena);
    snprintf(public->id, sizeof public->id, "inside");
    return public;
}

/* The answer may borrow from the request, which goes behind it. */
void request_reply(struct request *request, const struct http_answer *answer)
{
    request->public.on_reply(request->public.reply_arg, answer);
    request_free(request);
}

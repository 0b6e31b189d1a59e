/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange: one request on its way through a handler, answered, its JSON body read.
 */
#include "http/exchange.h"

#include <stdio.h>

#include "base/members.h"
#include "base/say.h"
#include "net/problem.h"
#include "server/refused.h"
#include "server/server.h"
#include "ui/text.h"

struct arena *exchange_arena(struct exchange *x)
{
    return &x->request->arena;
}

struct asker exchange_asker(struct exchange *x)
{
    str via = x->who.via == VIA_SESSION ? STR("page") : STR("api");
    struct asker by = asker_of(x->server, exchange_arena(x), &x->who, via);
    by.gone = &x->request->gone;
    return by;
}

void exchange_json_with(struct exchange *x, int status, str body, const struct http_field *fields,
                        size_t field_count)
{
    http_answer(x->request, &(struct http_answer){.status = status,
                                                  .content_type = "application/json",
                                                  .fields = fields,
                                                  .field_count = field_count,
                                                  .body = body});
}

void exchange_json(struct exchange *x, int status, str body)
{
    exchange_json_with(x, status, body, NULL, 0);
}

void exchange_written(struct exchange *x, const struct buf *body)
{
    if (body->full)
        exchange_error(x, ERR_TOO_LARGE, NULL);
    else
        exchange_json(x, 200, buf_str(body));
}

void exchange_empty(struct exchange *x)
{
    http_answer(x->request, &(struct http_answer){.status = 204});
}

void exchange_problem(struct exchange *x, int status, str body)
{
    http_answer(x->request, &(struct http_answer){
                                .status = status, .content_type = PROBLEM_TYPE, .body = body});
}

void exchange_error(struct exchange *x, enum err e, const struct fault *why)
{
    struct fault said = why ? *why : (struct fault){0};
    enum err shown = refused_shown(x->server, e, &said, str_c(x->request->id),
                                   x->route ? x->route->name : "", http_gone(x->request));
    static const struct http_field challenge = {STR("WWW-Authenticate"), STR("Bearer")};
    static const struct http_field retry = {STR("Retry-After"), STR("1")};
    bool wait = e == ERR_RATE_LIMITED || e == ERR_SHUTTING_DOWN || e == ERR_STORAGE_FULL ||
                e == ERR_STORE_UNAVAILABLE;
    wait = wait && !http_has_field(x->request, STR("Retry-After"));
    const struct http_field *field = e == ERR_UNAUTHENTICATED ? &challenge : wait ? &retry : NULL;
    http_answer_error_with(x->request, shown, &said, field, field ? 1 : 0);
}

enum err exchange_line(const struct json *object, const char *name, size_t len_max, str *ret_text,
                       struct fault *reterr)
{
    str text;
    enum err e = member_string(object, name, len_max, &text, reterr);
    if (e) return e;
    if (!say_plain(text))
        return fault_field(reterr, ERR_INVALID_FIELD, name,
                           "%s must be one line without control characters", name);
    text = ui_trim(text);
    if (!text.len) return fault_field(reterr, ERR_INVALID_FIELD, name, "%s is blank", name);
    *ret_text = text;
    return OK;
}

void exchange_read(struct exchange *x, struct job *job, enum read_lane lane)
{
    job->who = x->who.user;
    job->lane = lane;
    atomic_init(&job->gone, http_gone(x->request));
    x->request->gone = &job->gone;
    store_read(x->server->store, job);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON bodies of requests as trees, large ones parsed beside the loop. While a large one is parsed
 * beside the loop the request belongs to that thread: its body is read there and its arena filled.
 * So a request that has to be answered because the process ends is answered when the thread lets go
 * of it.
 */
#include "http/body.h"

#include <stdlib.h>

#include "base/limits.h"
#include "net/loop.h"
#include "server/server.h"

struct parsing {
    struct loop_work work;
    struct transfer transfer;
    struct exchange *x;
    enum err e;
    struct fault why;
    bool stopped; /* nobody waits for it any more, and the server is gone */
    void (*done)(struct exchange *x, enum err e, const struct fault *why);
};

static enum err body_parse_now(struct exchange *x, struct fault *reterr)
{
    struct json_error where;
    if (!json_parse_sent(exchange_arena(x), x->request->body, &x->body, &where)) return OK;
    return fault(reterr, ERR_INVALID_FIELD, "the body is not JSON: %s at byte %zu", where.reason,
                 where.offset);
}

static void body_parse_it(struct loop_work *work)
{
    struct parsing *parsing = CONTAINER(work, struct parsing, work);
    parsing->e = body_parse_now(parsing->x, &parsing->why);
}

static void parsed(struct loop_work *work)
{
    struct parsing *parsing = CONTAINER(work, struct parsing, work);
    struct exchange *x = parsing->x;
    if (parsing->stopped) {
        http_answer_error(x->request, ERR_SHUTTING_DOWN, NULL);
    } else {
        transfer_remove(&x->server->transfers, &parsing->transfer);
        parsing->done(x, parsing->e, &parsing->why);
    }
    free(parsing);
}

static void body_stop(struct transfer *transfer)
{
    struct parsing *parsing = CONTAINER(transfer, struct parsing, transfer);
    transfer_remove(&parsing->x->server->transfers, transfer);
    parsing->stopped = true;
}

void body_parse(struct exchange *x,
                void (*done)(struct exchange *x, enum err e, const struct fault *why))
{
    if (x->request->body.len <= JSON_BESIDE_BYTES) {
        struct fault why = {0};
        enum err e = body_parse_now(x, &why);
        done(x, e, &why);
        return;
    }
    struct parsing *parsing = calloc(1, sizeof *parsing);
    if (!parsing) abort();
    parsing->work = (struct loop_work){.fn = body_parse_it, .done = parsed};
    parsing->transfer.stop = body_stop;
    parsing->x = x;
    parsing->done = done;
    transfer_add(&x->server->transfers, &parsing->transfer);
    loop_work(x->server->loop, &parsing->work);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 *     make ─▶ putting the file of a long result ─▶ putting the payload ─▶ over: stored
 *               │  ▲           failed                │  ▲
 *               ▼  └── rest ◀────────────────────────┘  │
 *              out of tries, or of time ─▶ over: not stored
 *
 * An object is named after its bytes, so putting it again is harmless: also when the time was up and
 * it turns out to be there after all.
 */
#include "agent/shelf.h"

#include <stdlib.h>

#include "base/limits.h"
#include "net/loop.h"
#include "store/blob.h"
#include "store/calls.h"
#include "tool/spool.h"

struct put {
    struct put *next;
    struct shelf *shelf;
    struct arena arena;
    struct payload payload;
    str file; /* of a long result; empty: none, or it is stored */
    unsigned failures;
    struct blob_job *job;
    struct timer *rest, *limit;
    bool over;
};

static void put_free(struct put *put)
{
    if (put->job) blob_forget(put->job);
    timer_free(put->rest);
    timer_free(put->limit);
    arena_done(&put->arena);
    free(put);
}

static void over(struct put *put, bool stored)
{
    struct shelf *shelf = put->shelf;
    put->over = true;
    put->payload.stored = stored;
    if (put->rest) timer_stop(put->rest);
    timer_stop(put->limit);
    shelf->on_over(shelf->arg);
}

static void try_put(struct put *put);

static void on_rested(void *arg)
{
    try_put(arg);
}

static void on_late(void *arg)
{
    struct put *put = arg;
    if (put->job) blob_forget(TAKE(put->job));
    put->shelf->on_trouble(put->shelf->arg, "a payload is not stored yet", ERR_TIMEOUT);
    over(put, false);
}

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct put *put = arg;
    (void)reason;
    put->job = NULL;
    if (!e && put->file.len) {
        put->file = STR_EMPTY;
        try_put(put);
    } else if (!e) {
        over(put, true);
    } else if (++put->failures < PAYLOAD_TRIES_MAX) {
        if (!put->rest) put->rest = timer_new(put->shelf->loop, on_rested, put);
        timer_start(put->rest, PAYLOAD_RETRY_MS << put->failures);
    } else {
        put->shelf->on_trouble(put->shelf->arg, "a payload is not stored yet", e);
        over(put, false);
    }
}

static void try_put(struct put *put)
{
    const struct shelf *shelf = put->shelf;
    const struct payload *payload = &put->payload;
    if (put->file.len)
        put->job = blob_put_file(shelf->blobs, BUCKET_PAYLOADS, payload->result_path,
                                 spool_path(shelf->spool, &put->arena, put->file), on_put, put);
    else
        put->job =
            blob_put(shelf->blobs, BUCKET_PAYLOADS, payload->path, payload->bytes, on_put, put);
}

void shelf_put(struct shelf *shelf, const struct payload_source *source)
{
    for (const struct put *put = shelf->first; put; put = put->next)
        if (str_eq(put->payload.call_id, source->call->call_id)) return;
    struct put *put = calloc(1, sizeof *put);
    if (!put) abort();
    arena_init(&put->arena);
    put->shelf = shelf;
    put->next = shelf->first;
    shelf->first = put;

    struct arena work; /* of the trees that the payload is made from */
    struct payload made;
    arena_init(&work);
    payload_make(&work, source, &made);
    put->payload = (struct payload){.call_id = arena_str(&put->arena, made.call_id),
                                    .content = arena_str(&put->arena, made.content),
                                    .ui = arena_str(&put->arena, made.ui),
                                    .ui_hints = arena_str(&put->arena, made.ui_hints),
                                    .bytes = arena_str(&put->arena, made.bytes),
                                    .path = arena_str(&put->arena, made.path),
                                    .result_path = arena_str(&put->arena, made.result_path)};
    if (made.refused.len)
        shelf->on_trouble(shelf->arg, arena_cstr(&put->arena, made.refused), ERR_INVALID_HINTS);
    arena_done(&work);
    if (made.result_path.len) put->file = arena_str(&put->arena, source->call->spool);
    put->limit = timer_new(shelf->loop, on_late, put);
    timer_start(put->limit, PAYLOAD_MS_MAX);
    try_put(put);
}

bool shelf_busy(const struct shelf *shelf)
{
    for (const struct put *put = shelf->first; put; put = put->next)
        if (!put->over) return true;
    return false;
}

size_t shelf_over(const struct shelf *shelf, struct arena *arena, struct payload **ret_payloads)
{
    size_t count = 0;
    for (const struct put *put = shelf->first; put; put = put->next) count += put->over;
    struct payload *payloads = arena_array(arena, count, sizeof *payloads);
    size_t at = 0;
    for (const struct put *put = shelf->first; put; put = put->next)
        if (put->over) payloads[at++] = put->payload;
    *ret_payloads = payloads;
    return count;
}

void shelf_clear(struct shelf *shelf)
{
    while (shelf->first) {
        struct put *put = shelf->first;
        shelf->first = put->next;
        put_free(put);
    }
}

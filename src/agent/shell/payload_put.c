/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads on their way into object storage, before they are shown: the file of a long result, then the
 * payload that names it, each with patience. What could not be put is over, too, and waits in its row.
 */
#include "agent/shell/payload_put.h"

#include <stdlib.h>

#include "agent/shell/patient_put.h"
#include "store/blob/blob.h"
#include "store/table/calls.h"
#include "tool/spool.h"

struct put {
    struct put *next;
    struct payload_put *puts;
    struct arena arena;
    struct payload payload;
    str file; /* of a long result; empty: none, or it is stored */
    struct patient_put patient;
    bool over;
};

static void put_free(struct put *put)
{
    patient_put_done(&put->patient);
    arena_done(&put->arena);
    free(put);
}

static void go(struct put *put)
{
    const struct payload *payload = &put->payload;
    if (put->file.len)
        patient_put_go(&put->patient, BUCKET_PAYLOADS, payload->result_path, STR_EMPTY,
                       spool_path(put->puts->spool, &put->arena, put->file));
    else
        patient_put_go(&put->patient, BUCKET_PAYLOADS, payload->path, payload->bytes, NULL);
}

static void on_over(void *arg, enum err e)
{
    struct put *put = arg;
    struct payload_put *puts = put->puts;
    if (!e && put->file.len) {
        put->file = STR_EMPTY;
        go(put);
        return;
    }
    if (e) puts->on_trouble(puts->arg, "a payload is not stored yet", e);
    patient_put_end(&put->patient);
    put->over = true;
    put->payload.stored = !e;
    puts->on_over(puts->arg);
}

void payload_put_put(struct payload_put *puts, const struct payload_source *source)
{
    for (const struct put *put = puts->first; put; put = put->next)
        if (str_eq(put->payload.call_id, source->call->call_id)) return;
    struct put *put = calloc(1, sizeof *put);
    if (!put) abort();
    arena_init(&put->arena);
    put->puts = puts;
    put->next = puts->first;
    puts->first = put;

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
        puts->on_trouble(puts->arg, arena_cstr(&put->arena, made.refused), ERR_INVALID_HINTS);
    arena_done(&work);
    if (made.result_path.len) put->file = arena_str(&put->arena, source->call->spool);
    put->patient = (struct patient_put){
        .loop = puts->loop, .blobs = puts->blobs, .on_over = on_over, .arg = put};
    patient_put_begin(&put->patient);
    go(put);
}

bool payload_put_busy(const struct payload_put *puts)
{
    for (const struct put *put = puts->first; put; put = put->next)
        if (!put->over) return true;
    return false;
}

size_t payload_put_over(const struct payload_put *puts, struct arena *arena,
                        struct payload **ret_payloads)
{
    size_t count = 0;
    for (const struct put *put = puts->first; put; put = put->next) count += put->over;
    struct payload *payloads = arena_array(arena, count, sizeof *payloads);
    size_t at = 0;
    for (const struct put *put = puts->first; put; put = put->next)
        if (put->over) payloads[at++] = put->payload;
    *ret_payloads = payloads;
    return count;
}

void payload_put_clear(struct payload_put *puts)
{
    while (puts->first) {
        struct put *put = puts->first;
        puts->first = put->next;
        put_free(put);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a row of facts; the first says how many there should be. What can be read lies inside
 * the bytes, and is the same when it is written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rows.h"
#include "store/table/fact_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(str bytes, const struct fact *fact)
{
    const char *end = bytes.p + bytes.len;
    if (fact->type < bytes.p || fact->type + strlen(fact->type) >= end) abort();
    if (fact->data.p < bytes.p || fact->data.p + fact->data.len > end) abort();
    if (fact->run_id.len && (fact->run_id.p < bytes.p || fact->run_id.p + fact->run_id.len > end))
        abort();
}

static void check_same(const struct fact *a, const struct fact *b)
{
    if (a->seq != b->seq || a->at != b->at || strcmp(a->type, b->type) != 0) abort();
    if (!str_eq(a->run_id, b->run_id) || !str_eq(a->data, b->data)) abort();
}

static void check_written(const struct fact *facts, size_t count)
{
    for (size_t from = 0, fit, size; from < count; from += fit) {
        AUTO(buf_done) struct buf out;
        struct fact_frames frames;
        struct fact fact;
        fit = fact_frames_fit(facts + from, count - from, &size);
        if (!fit || fit > count - from) abort();
        buf_init(&out, size);
        fact_frames_write(&out, facts + from, fit);
        if (out.full || out.len != size) abort();
        fact_frames_begin(&frames, buf_str(&out), facts[from].seq, facts[from + fit - 1].seq);
        for (size_t i = 0; i < fit; i++) {
            if (!fact_frames_next(&frames, &fact)) abort();
            check_same(&fact, &facts[from + i]);
        }
        if (fact_frames_next(&frames, &fact) || fact_frames_end(&frames)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str bytes = {(const char *)data + 1, size - 1};
    struct fact *facts = NULL, fact;
    size_t count = 0;
    struct fact_frames frames;
    fact_frames_begin(&frames, bytes, 1, data[0]);
    while (fact_frames_next(&frames, &fact)) {
        check_inside(bytes, &fact);
        *ROWS_ADD(&arena, facts, count) = fact;
    }
    enum err e = fact_frames_end(&frames);
    if (e && e != ERR_DAMAGED) abort();
    if (!e && count != data[0]) abort();
    check_written(facts, count);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts as the bytes of a row of `facts`: frames, one behind the other, in the order of their numbers.
 *
 *     frame: at, run, length of data, type, NUL, [run_id], data
 *
 * The first three are varints: seven bits a byte, the lowest first, the highest bit of a byte is set
 * if another follows. `at` is the difference to the frame before (the first one's: to 0), 0, -1, 1,
 * -2... as 0, 1, 2, 3... `run` is 0 if the run is that of the frame before (the first one's: none),
 * else 1 + the length of run_id, which then stands behind the type. Numbers of facts are not in it:
 * the row has the first and the last.
 *
 * The type ends with a NUL, so that a fact can point into the bytes it was read from.
 */
#ifndef STORE_TABLE_FACT_FRAMES_H
#define STORE_TABLE_FACT_FRAMES_H

#include "base/buf.h"
#include "store/table/conversation.h"

/* How many of the facts stand in one row, at least one (of at least one): as many as fit into
 * FACT_ROW_BYTES_MAX. One that is longer has a row of its own. */
size_t fact_frames_fit(const struct fact *facts, size_t count, size_t *ret_bytes);
void fact_frames_write(struct buf *out, const struct fact *facts, size_t count);

/* Reading: facts point into the bytes given.
 *
 *     fact_frames_begin(&frames, bytes, first, last);
 *     while (fact_frames_next(&frames, &fact)) ...
 *     e = fact_frames_end(&frames);
 */
struct fact_frames {
    str rest, run_id;
    msec at;
    int64_t seq, last; /* of the next one, of the last one */
    bool damaged;
};
void fact_frames_begin(struct fact_frames *frames, str bytes, int64_t first, int64_t last);
bool fact_frames_next(struct fact_frames *frames, struct fact *ret_fact);
/* ERR_DAMAGED: what was read is no row of facts. Of one that was read in part, only that is known. */
enum err fact_frames_end(const struct fact_frames *frames) MUST_USE;

#endif

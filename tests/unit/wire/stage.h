/* SPDX-License-Identifier: Apache-2.0
 *
 * A small world for tests of the dialects: a log of facts and previews is played, rows of history
 * grow out of it as they do in the store, and a reader gets the bytes that it would get.
 *
 * A log as text, one thing a line:
 *
 *     # a comment
 *     run.started {"taskId":"task_1","leg":1}       a fact: its type, its data
 *     ~ text.message.start m1                       a preview
 *     ~ text.delta m1 "Hi"
 *     ~ reasoning.delta m1 "hm"
 *     ~ tool.call.start call_1 calendar_read m1
 *     ~ tool.call.args call_1 "{}"
 *     ~ message.discard m1 "the model failed"
 *     request r2 u1 m1                              the next leg is r2's, who has these messages
 *     request r2                                    who has all of them; so has whoever is not named
 *     request r2 -                                  who has none
 *     expires int_1 2026-12-01T00:00:00.000Z        what is not in its fact
 *     join                                          a reader that joins does so here
 *     run r2                                        of the facts behind this; r1 before
 */
#ifndef TESTS_WIRE_STAGE_H
#define TESTS_WIRE_STAGE_H

#include "store/bus/bus.h"
#include "wire/agui.h"

enum line_kind { LINE_FACT, LINE_PREVIEW, LINE_REQUEST, LINE_EXPIRES, LINE_JOIN };

struct line {
    enum line_kind kind;
    struct fact fact;
    struct preview preview;
    str words; /* of the others: what stands behind the first word */
};

struct script {
    struct line *lines;
    size_t count;
};

/* Fails the test at a line that it cannot read. */
struct script wire_script_parse(struct arena *arena, str text);

/* Number facts, set times, run ids and offsets, as if all of it happened one second after another. */
void script_settle(struct script *script, str run_id);

enum stage_dialect {
    STAGE_NATIVE,
    STAGE_NATIVE_COLD, /* a reader that has seen no previews */
    STAGE_AGUI_NEW,
    STAGE_AGUI_OLD,
    STAGE_SOCKET,
    STAGE_SOCKET_COLD,
};

enum { STAGE_FROM_START = -1 };

struct stage_reader {
    enum stage_dialect dialect;
    ptrdiff_t join; /* STAGE_FROM_START, or the line before which it joins (AG-UI) */
    bool company;   /* others have read from the beginning: it shares their fold */
};

/* What such a reader gets. */
void stage_play(const struct script *script, const struct stage_reader *reader, struct buf *out);

/* Rows of history after the first `count` lines. */
struct agui_row *stage_rows(struct arena *arena, const struct script *script, size_t count,
                            size_t *ret_count);

#endif

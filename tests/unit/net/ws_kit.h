/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket conversations as text, for tests and the fuzzer. Frames stand apart by spaces; each
 * begins with its first byte in hex (81 is a whole text, 01 00 80 one in fragments, 88 close,
 * 89 ping, 8a pong):
 *
 *     81:hello         with these bytes
 *     81:#e282ac       with these bytes in hex
 *     81*300           with 300 times 'x'
 *     88=1000,bye      a close frame with its code; the reason may be hex, too
 *     63@00:a          63 of them
 *     !8105            bytes as they are (frames are masked and have the shortest length otherwise)
 */
#ifndef TESTS_WS_KIT_H
#define TESTS_WS_KIT_H

#include "base/buf.h"

/* A client's frames. */
void ws_script(struct buf *out, const char *script);

/* The server's frames in that notation, without the reason of a close frame. Bytes that are no
 * whole frame end it with "?". */
void ws_say(struct buf *out, str frames);

/* What a client sends, and what a server that echoes texts says to it, all of it. */
struct ws_row {
    const char *name; /* the row of our list of cases, and what is special */
    const char *sends, *gets;
};
extern const struct ws_row ws_rows[];
extern const size_t ws_row_count;

/* How bytes are cut before they are fed; any other number is the seed of random cuts. */
enum { WS_CUT_NOT = 0, WS_CUT_BYTES = 1 };

/* What ws_frames.c makes of a client's bytes: what the echoing server writes goes to `out`, and to
 * `events` a letter for each event. Each piece is a block of memory of its own, gone before the
 * next one comes. */
void ws_trace(struct buf *events, struct buf *out, str bytes, uint64_t cuts);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading server-sent events, pushed in pieces cut anywhere: text/event-stream as the HTML standard
 * has it (CR, LF, CRLF, comments, a BOM, several data lines). Pure.
 */
#ifndef NET_SSE_READ_H
#define NET_SSE_READ_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct sse_event {
    str name; /* "message" if the stream does not say */
    str data; /* lines joined with LF; may be empty only if a data line was there */
    str id;   /* the last one that the stream gave; empty: none */
};

/* Embedded; private. */
struct sse_reader {
    struct buf line, data, name, id;
    size_t event_bytes_max;
    uint64_t retry_ms; /* the stream's own wish; 0: none */
    bool has_data, begun, after_cr;
};

void sse_reader_init(struct sse_reader *reader, size_t event_bytes_max);
void sse_reader_done(struct sse_reader *reader);

/* on_event comes from inside, its texts are borrowed until it returns; false: stop reading, the rest
 * of the bytes is not looked at, and OK is returned. ERR_TOO_LARGE: an event is larger than allowed. What
 * is unfinished at the end of the stream is no event, and needs no call. */
enum err sse_read(struct sse_reader *reader, str bytes,
                  bool (*on_event)(void *arg, const struct sse_event *event), void *arg) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams of others, read in pieces cut anywhere; pure.
 *
 *     data: {"a":1}\n      a field: what stands behind the colon, without one space
 *     : ping\n             a comment
 *     \n                   the event is complete, if it has a data line
 *
 * Bytes are cut into lines, lines into fields. A line that lies whole in one piece is looked at where
 * it is; only the beginning of one that does not is copied. CR ends a line at once, and an LF right
 * behind it belongs to it, in whichever piece it comes: `after_cr`.
 *
 * Invariants:
 * 1. Between two calls `line` holds the beginning of an unfinished line, `data` the data lines so far,
 *    each with an LF behind it.
 * 2. Whatever way the same bytes are cut, the same events come.
 * 3. Once too large, always too large: a full buf stays full, and every later call says so.
 *
 * Bytes are not checked for UTF-8; whoever reads the data does that.
 *
 * To take one more field: a row in take_field.
 */
#include "net/sse_read.h"

#include <string.h>

enum { FIELD_BYTES = 16 }; /* of a line besides its value: a BOM, the name, colon and space */

void sse_reader_init(struct sse_reader *reader, size_t event_bytes_max)
{
    assert(event_bytes_max > 0 && event_bytes_max < SIZE_MAX / 2);
    *reader = (struct sse_reader){.event_bytes_max = event_bytes_max};
    buf_init(&reader->line, event_bytes_max + FIELD_BYTES);
    buf_init(&reader->data, event_bytes_max + 1); /* the last LF is none of its own */
    buf_init(&reader->name, event_bytes_max + FIELD_BYTES);
    buf_init(&reader->id, event_bytes_max + FIELD_BYTES);
}

void sse_reader_done(struct sse_reader *reader)
{
    buf_done(&reader->line);
    buf_done(&reader->data);
    buf_done(&reader->name);
    buf_done(&reader->id);
}

static void set(struct buf *field, str value)
{
    buf_clear(field);
    buf_append(field, value);
}

static void take_field(struct sse_reader *reader, str field, str value)
{
    if (str_eq(field, STR("data"))) {
        buf_append(&reader->data, value);
        buf_char(&reader->data, '\n');
        reader->has_data = true;
    } else if (str_eq(field, STR("event"))) {
        set(&reader->name, value);
    } else if (str_eq(field, STR("id"))) {
        if (str_find_char(value, '\0') < 0) set(&reader->id, value);
    } else if (str_eq(field, STR("retry"))) {
        uint64_t ms;
        if (!str_to_u64(value, &ms)) reader->retry_ms = ms;
    }
}

/* An empty line. False: the listener has had enough. */
static bool end_event(struct sse_reader *reader,
                      bool (*on_event)(void *arg, const struct sse_event *event), void *arg)
{
    bool go_on = true;
    if (reader->has_data) {
        const struct sse_event event = {
            .name = reader->name.len ? buf_str(&reader->name) : STR("message"),
            .data = {reader->data.p, reader->data.len - 1},
            .id = buf_str(&reader->id),
        };
        go_on = on_event(arg, &event);
    }
    buf_clear(&reader->data);
    buf_clear(&reader->name);
    reader->has_data = false;
    return go_on;
}

static void take_line(struct sse_reader *reader, str line)
{
    ptrdiff_t colon = str_find_char(line, ':');
    if (colon == 0) return;
    if (colon < 0) {
        take_field(reader, line, STR_EMPTY);
        return;
    }
    str value = str_drop(line, (size_t)colon + 1);
    if (str_starts(value, STR(" "))) value = str_drop(value, 1);
    take_field(reader, (str){line.p, (size_t)colon}, value);
}

static bool too_large(const struct sse_reader *reader)
{
    return reader->line.full || reader->data.full;
}

enum err sse_read(struct sse_reader *reader, str bytes,
                  bool (*on_event)(void *arg, const struct sse_event *event), void *arg)
{
    while (bytes.len && !too_large(reader)) {
        if (reader->after_cr && bytes.p[0] == '\n') bytes = str_drop(bytes, 1);
        reader->after_cr = false;
        size_t len = 0;
        while (len < bytes.len && bytes.p[len] != '\n' && bytes.p[len] != '\r') len++;
        str piece = {bytes.p, len};
        if (len == bytes.len) {
            buf_append(&reader->line, piece);
            break;
        }
        reader->after_cr = bytes.p[len] == '\r';
        bytes = str_drop(bytes, len + 1);
        str line = piece;
        if (reader->line.len || piece.len > reader->line.max) { /* it began in an earlier piece */
            buf_append(&reader->line, piece);
            line = buf_str(&reader->line);
        }
        if (!reader->begun && str_starts(line, STR("\xef\xbb\xbf"))) line = str_drop(line, 3);
        reader->begun = true;
        bool go_on = true;
        if (reader->line.full) break;
        if (line.len)
            take_line(reader, line);
        else
            go_on = end_event(reader, on_event, arg);
        buf_clear(&reader->line);
        if (!go_on) return OK;
    }
    return too_large(reader) ? ERR_TOO_LARGE : OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of MCP servers, cut out of bytes and lines as they come in; pure.
 *
 * Each piece is scanned when it comes (json_scan), so a message of 64 MiB costs the loop no long
 * moment at its end, and a line of noise is known after its first bytes. The scan tells where the
 * members of the object stand; of these, three say what a link has to know:
 *
 *     {"jsonrpc":"2.0","id":7,"result":{...}}     answers request 7
 *                              ^ or "error"
 *     {"jsonrpc":"2.0","id":7,"method":"..."}     a request of the server's own
 *
 * Line ends between the values of a message become spaces (inside a string none can stand), so that
 * everybody above has it on one line.
 *
 * Invariants:
 * 1. Whatever way the same bytes are cut, the same messages come.
 * 2. Once `refused`, `bytes` keeps only the beginning; `count` goes on, so that noise without an end
 *    is too long as well.
 */
#include "mcp/client/mcp_frame.h"

#include <string.h>

#include "base/limits.h"

void mcp_frame_init(struct mcp_frame *frame, size_t bytes_max)
{
    *frame = (struct mcp_frame){.bytes_max = bytes_max};
    buf_init(&frame->bytes, bytes_max);
    mcp_frame_clear(frame);
}

void mcp_frame_done(struct mcp_frame *frame)
{
    buf_done(&frame->bytes);
}

/* A long message is not kept in memory when a short one comes next. */
void mcp_frame_clear(struct mcp_frame *frame)
{
    if (frame->bytes.cap > MCP_REFUSAL_BYTES_MAX) buf_done(&frame->bytes);
    buf_clear(&frame->bytes);
    json_scan_init(&frame->scan, NULL, NULL);
    frame->count = 0;
    frame->id_from = frame->id_to = 0;
    frame->in_id = frame->answer = frame->refused = false;
}

static void mcp_frame_refuse(struct mcp_frame *frame)
{
    frame->refused = true;
    if (frame->bytes.len > MCP_STDERR_LINE_BYTES_MAX) frame->bytes.len = MCP_STDERR_LINE_BYTES_MAX;
}

static void scan_piece(struct mcp_frame *frame, str piece)
{
    struct json_scan *scan = &frame->scan;
    str key;
    while (piece.len && !frame->refused) {
        switch (json_scan_next(scan, &piece)) {
        case JSON_SCAN_MORE:
            break;
        case JSON_SCAN_BEGIN:
            key = scan->key_cut ? STR_EMPTY : json_scan_key(scan);
            frame->in_id = str_eq(key, STR("id"));
            frame->answer |= str_eq(key, STR("result")) || str_eq(key, STR("error"));
            break;
        case JSON_SCAN_END:
            if (frame->in_id && scan->member.type == JSON_NUMBER) {
                frame->id_from = scan->member.from;
                frame->id_to = scan->member.to;
            }
            frame->in_id = false;
            break;
        case JSON_SCAN_REFUSED:
            mcp_frame_refuse(frame);
            break;
        }
        if (scan->begun && scan->document.type != JSON_OBJECT) mcp_frame_refuse(frame);
    }
}

/* Copy it without its line ends; all of it fits. */
static void keep_piece(struct mcp_frame *frame, str piece)
{
    char *room = buf_room(&frame->bytes, piece.len);
    assert(room);
    memcpy(room, piece.p, piece.len);
    buf_added(&frame->bytes, piece.len);
    for (char *at = room, *end = room + piece.len;
         at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        *at = ' ';
    for (char *at = room, *end = room + piece.len;
         at < end && (at = memchr(at, '\r', (size_t)(end - at))); at++)
        *at = ' ';
}

enum err mcp_frame_add(struct mcp_frame *frame, str piece)
{
    if (piece.len > frame->bytes_max - frame->count) return ERR_TOO_LARGE;
    if (!piece.len) return OK;
    frame->count += piece.len;
    scan_piece(frame, piece);
    if (frame->refused) {
        size_t room = frame->bytes.len < MCP_STDERR_LINE_BYTES_MAX
                          ? MCP_STDERR_LINE_BYTES_MAX - frame->bytes.len
                          : 0;
        if (piece.len > room) piece.len = room;
    }
    if (piece.len) keep_piece(frame, piece);
    return OK;
}

enum err mcp_frame_end(struct mcp_frame *frame, struct mcp_message *ret_message)
{
    if (frame->refused || json_scan_finish(&frame->scan)) {
        mcp_frame_refuse(frame);
        return ERR_BAD_REQUEST;
    }
    str json = buf_str(&frame->bytes);
    str id = {json.p + frame->id_from, (size_t)(frame->id_to - frame->id_from)};
    struct mcp_message message = {.json = json, .answer = frame->answer};
    uint64_t number;
    if (frame->answer && id.len && !str_to_u64(id, &number)) message.answers = number;
    *ret_message = message;
    return OK;
}

str mcp_frame_beginning(const struct mcp_frame *frame)
{
    str bytes = buf_str(&frame->bytes);
    if (bytes.len > MCP_STDERR_LINE_BYTES_MAX) bytes.len = MCP_STDERR_LINE_BYTES_MAX;
    return bytes;
}

/* ---- lines ---- */

void mcp_lines_init(struct mcp_lines *lines, size_t line_bytes_max)
{
    mcp_frame_init(&lines->frame, line_bytes_max);
}

void mcp_lines_done(struct mcp_lines *lines)
{
    mcp_frame_done(&lines->frame);
}

/* Only spaces: an empty line, or the CR of one. */
static bool is_blank(str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.p[i] != ' ' && line.p[i] != '\t') return false;
    return true;
}

enum err mcp_lines_read(struct mcp_lines *lines, str bytes, const struct mcp_lines_ops *ops,
                        void *arg)
{
    while (bytes.len) {
        const char *end = memchr(bytes.p, '\n', bytes.len);
        str piece = {bytes.p, end ? (size_t)(end - bytes.p) : bytes.len};
        enum err e = mcp_frame_add(&lines->frame, piece);
        if (e) return e;
        if (!end) return OK;
        bytes = str_drop(bytes, piece.len + 1);
        struct mcp_message message;
        str beginning = STR_EMPTY;
        bool good = !mcp_frame_end(&lines->frame, &message);
        if (!good) beginning = mcp_frame_beginning(&lines->frame);
        bool go_on = good ? ops->on_message(arg, &message)
                          : is_blank(beginning) || ops->on_noise(arg, beginning);
        mcp_frame_clear(&lines->frame);
        if (!go_on) return OK;
    }
    return OK;
}

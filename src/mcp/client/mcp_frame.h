/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of an MCP server out of bytes: one that comes in pieces (mcp_frame), and one after the other
 * as lines (mcp_lines). Knows what a link has to know of a message, whether it answers a request and
 * which, and nothing more. Pure.
 */
#ifndef MCP_CLIENT_MCP_FRAME_H
#define MCP_CLIENT_MCP_FRAME_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json_scan.h"

struct mcp_message {
    str json;         /* one object, valid UTF-8, without a line end in it */
    bool answer;      /* it has a result or an error */
    uint64_t answers; /* the request whose answer it is; 0: none that could be ours */
};

/* Embedded; private. */
struct mcp_frame {
    struct buf bytes;
    struct json_scan scan;
    size_t count, bytes_max; /* of the message so far */
    uint64_t id_from, id_to;
    bool in_id, answer;
    bool refused; /* no JSON object: only its beginning is kept */
};

void mcp_frame_init(struct mcp_frame *frame, size_t bytes_max);
void mcp_frame_done(struct mcp_frame *frame);
void mcp_frame_clear(struct mcp_frame *frame); /* for the next one */

/* A piece of it. ERR_TOO_LARGE: the message is larger than allowed; nothing may be added then. */
enum err mcp_frame_add(struct mcp_frame *frame, str piece) MUST_USE;

/* The message is complete. ERR_BAD_REQUEST: no JSON object. The texts live until the frame is changed. */
enum err mcp_frame_end(struct mcp_frame *frame, struct mcp_message *ret_message) MUST_USE;

/* What there is of it, for the log: at most MCP_STDERR_LINE_BYTES_MAX bytes. */
str mcp_frame_beginning(const struct mcp_frame *frame);

/* Lines end with LF or CRLF; empty ones are none. */
struct mcp_lines {
    struct mcp_frame frame;
};

struct mcp_lines_ops {
    /* Borrowed until it returns; false: stop, the rest of the bytes is not looked at. */
    bool (*on_message)(void *arg, const struct mcp_message *message);
    bool (*on_noise)(void *arg, str beginning); /* a line that is no JSON object */
};

void mcp_lines_init(struct mcp_lines *lines, size_t line_bytes_max);
void mcp_lines_done(struct mcp_lines *lines);

/* Bytes cut anywhere. ERR_TOO_LARGE: a line is longer than allowed. What is unfinished at the end is no
 * message, and needs no call. */
enum err mcp_lines_read(struct mcp_lines *lines, str bytes, const struct mcp_lines_ops *ops,
                        void *arg) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said to a frame of a WebSocket, as JSON. Pure. `id` is the frame's own, as it was written;
 * empty: it had none, or nothing was asked.
 *
 *     {"type":"ack","id","data":{...}}
 *     {"type":"error","id"?,"data":{"code","message","field"?, ...}}
 *     {"type":"pong","id"?}
 */
#ifndef APP_SOCKET_REPLY_H
#define APP_SOCKET_REPLY_H

#include "app/socket/client_frame.h"
#include "base/buf.h"

void reply_ack(struct buf *out, str id, str data); /* data: JSON; empty: {} */
void reply_pong(struct buf *out, str id);

/* `session_id`: the subscription that it is about; may be empty. */
void reply_fault(struct buf *out, str id, enum err e, const struct fault *why, str session_id);

/* The problem document of a route: its detail is the message, and what else it has, such as
 * `interaction`, stays. A field is named as the frame has it. */
void reply_problem(struct buf *out, str id, enum client_frame_type type, str problem);

#endif

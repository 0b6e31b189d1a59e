/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said to a frame of a WebSocket, as JSON. Pure. `id` is the frame's own, as it was written;
 * empty: it had none, or nothing was asked.
 *
 *     {"type":"ack","id","data":{...}}
 *     {"type":"error","id"?,"data":{"code","message","field"?, ...}}
 *     {"type":"pong","id"?}
 */
#ifndef SOCKET_SOCKET_REPLY_H
#define SOCKET_SOCKET_REPLY_H

#include "base/buf.h"
#include "socket/client_frame.h"

void reply_ack(struct buf *out, str id, str data); /* data: JSON; empty: {} */
void reply_pong(struct buf *out, str id);

/* `session_id`: the subscription that it is about; may be empty. */
void reply_fault(struct buf *out, str id, enum err e, const struct fault *why, str session_id);

/* What was asked is refused: the reason is the message, and what else there is to say, such as the
 * `interaction`, stands behind it. A field is named as the frame has it. */
struct refused_frame {
    enum err e;
    const struct fault *why; /* may be empty: the title of e is said */
    str member, json;        /* empty: nothing else */
};
void reply_refusal(struct buf *out, str id, enum client_frame_type type,
                   const struct refused_frame *refused);

#endif

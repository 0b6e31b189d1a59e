/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client says on its WebSocket, decoded: one flat JSON object in each message. Pure.
 */
#ifndef SOCKET_CLIENT_FRAME_H
#define SOCKET_CLIENT_FRAME_H

#include "base/arena.h"
#include "wire/socket.h"

enum client_frame_type {
    FRAME_SUBSCRIBE,
    FRAME_UNSUBSCRIBE,
    FRAME_MESSAGE,
    FRAME_CLARIFY,
    FRAME_CONFIRM,
    FRAME_STOP,
    FRAME_PING,
    FRAME_TYPE_COUNT
};

struct client_frame {
    enum client_frame_type type;
    str session_id; /* valid; empty: about the inbox, or an answer that names an interaction alone */
    str request_id; /* of an answer; empty: the only open question */
    bool inbox;     /* (un)subscribe: the inbox instead of a session */
    bool has_after;
    uint64_t after;
    unsigned events;            /* subscribe: bits of enum socket_kind */
    str message_id, run_id;     /* of a message; may be empty */
    const struct json *content; /* of a message: a string, or a list of parts */
    const struct json *answer;  /* of an answer: an object as interactions are answered with */
    str body; /* the two as they would be sent to POST /runs and POST .../answer: by its hash a
                 repetition is known, whichever way it comes, and the audit trail names what was said */
};

/* Decode a message. ERR_INVALID_FIELD names the field. *ret_id is the frame's `id` as it was
 * written, or empty; it is set even if the frame is refused, for the refusal carries it. Everything
 * borrows from the text or lives in the arena. */
enum err client_frame_parse(struct arena *arena, str text, str *ret_id,
                            struct client_frame *ret_frame, struct fault *reterr) MUST_USE;

#endif

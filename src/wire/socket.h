/* SPDX-License-Identifier: Apache-2.0
 *
 * The WebSocket dialect: each event one JSON text. Pure. As the native dialect, but the thread is
 * called sessionId; and, for clients that know no events of ours, questions in two forms of their
 * own.
 */
#ifndef WIRE_SOCKET_H
#define WIRE_SOCKET_H

#include "store/bus/bus.h"

/* What a text is; a subscription takes some of these. */
enum socket_kind {
    SOCKET_NATIVE = 1 << 0,   /* {"type","sessionId","runId"?,"seq"?,"ts","data"} */
    SOCKET_CLARIFY = 1 << 1,  /* clarify_request */
    SOCKET_ASK_USER = 1 << 2, /* ai-agent-ask-user, ai-chat-complete */
    SOCKET_ALL = SOCKET_NATIVE | SOCKET_CLARIFY | SOCKET_ASK_USER, /* reset: whatever they take */
};

/* Gets each text; borrowed. */
typedef void socket_put(void *arg, enum socket_kind kind, str json);

/* As native_warm and native_cold; both also give the other two kinds of the fact, if there are any,
 * behind it. `leg` is the run whose leg is under way, empty if there is none: a run that is dropped
 * from the queue, or cancelled while it waits, ends no leg. */
void socket_warm(str thread_id, str leg, const struct fact *fact, socket_put *put, void *arg);
void socket_cold(str thread_id, str leg, const struct fact *fact, socket_put *put, void *arg);
void socket_preview(str thread_id, const struct preview *preview, socket_put *put, void *arg);
void socket_reset(str thread_id, const char *reason, int64_t seq, msec now, socket_put *put,
                  void *arg);

#endif

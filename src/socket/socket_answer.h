/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that come as frames: which interaction is meant, and whether it is of the session that the
 * frame names. The rest is thread/give_answer.h.
 */
#ifndef SOCKET_SOCKET_ANSWER_H
#define SOCKET_SOCKET_ANSWER_H

#include "thread/give_answer.h"

/* give_answer, to what is meant: request_id is the id of an interaction or, with a session, of a call;
 * session_id may be empty. Both stay until it is answered. */
void ws_answer(struct give_answer *give, str session_id, str request_id);

#endif

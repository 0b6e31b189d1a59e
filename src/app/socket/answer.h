/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that come as frames: which interaction is meant, and whether it is of the session that the
 * frame names. The rest is POST /interactions/{id}/answer.
 */
#ifndef APP_SOCKET_ANSWER_H
#define APP_SOCKET_ANSWER_H

#include "app/http/exchange.h"

/* x is an exchange of inside_new for that route; it is answered. The texts are copied. session_id
 * may be empty; request_id is the id of an interaction or, with a session, of a call. */
void ws_answer(struct exchange *x, str session_id, str request_id);

#endif

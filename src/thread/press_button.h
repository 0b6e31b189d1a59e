/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody presses a button of a card. A use case (change.h): the card that was stored says what the
 * button does; whoever presses says which one, and nothing else.
 */
#ifndef THREAD_PRESS_BUTTON_H
#define THREAD_PRESS_BUTTON_H

#include "thread/card_action.h"
#include "thread/settle.h"
#include "thread/start_run.h"
#include "thread/thread_change.h"

struct press_button {
    struct thread_change tc;
    str thread_id, message_id, action_id; /* which button */
    str sent;                             /* the bytes of it, for the audit trail */

    /* made here */
    struct settle settle;
    struct start_run start;
    unsigned char hash[HASH_BYTES]; /* of what makes two presses the same */
    int64_t thread;                 /* where the card was found */
    struct message message;         /* that has the card */
    str call_id;                    /* of the call that made it; empty: none did */
    str agent;                      /* of the run that made it */
    struct card_action action;
    enum refusal refusal; /* what is wrong with it; REFUSAL_NONE: nothing */
    struct fault why;
    str said_id; /* of the person's new message */
};

void press_button(struct press_button *press);

/* More was said than which button: `why` is told to everybody, and written down for whoever has the
 * thread. thread_id is set. */
void press_forged(struct press_button *press, const struct fault *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One card on a terminal, without a loop: for a command that asks one thing.
 */
#ifndef TERM_TERM_ASK_H
#define TERM_TERM_ASK_H

#include "term/chat_card.h"

/* Show it and wait. True: the body of the card is the answer. */
bool term_ask(struct card *card, struct fault *reterr);

#endif

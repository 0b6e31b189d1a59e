/* SPDX-License-Identifier: Apache-2.0
 *
 * The cards of interactions: UiSchema 2.0 for what a person is asked, in the interaction's language.
 * They are made from the stored bytes alone. The controls that decide stand outside of them, so they
 * have no buttons. docs/CARDS.md describes them. Pure: the same interaction gives the same bytes.
 */
#ifndef AGENT_CORE_CARDS_H
#define AGENT_CORE_CARDS_H

#include "store/table/interactions.h"

/* One line of JSON, at most CARD_BYTES_MAX of it, in the arena. The arguments are there whole; if
 * they do not fit, the card says how many and how much is missing, and where all of it is. */
str interaction_card(struct arena *arena, const struct interaction *interaction);

/* The same after an edit: what was changed, from the interaction's arguments to `args`. */
str interaction_card_edited(struct arena *arena, const struct interaction *interaction, str args);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions as people are told of them.
 */
#ifndef FEED_INTERACTION_JSON_H
#define FEED_INTERACTION_JSON_H

#include "agent/core/interaction.h"

/* Names of roles, for the store and the codec; unused places are empty. */
void role_names(unsigned roles, str out[static INTERACTION_ROLES_MAX]);

/* The interaction as this user may see it, in the arena. */
str interaction_json(struct arena *arena, const struct interaction *interaction, str user);
/* A list of those of a thread; of very long ones only the first. */
str interactions_json(struct arena *arena, const struct interaction *rows, size_t count, str user);

#endif

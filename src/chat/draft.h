/* SPDX-License-Identifier: Apache-2.0
 *
 * A message while it is written: what fits into it, counted in characters and bytes. Pure.
 */
#ifndef CHAT_DRAFT_H
#define CHAT_DRAFT_H

#include "chat/channel.h"
#include "ui/out.h"

struct draft {
    struct arena *arena;
    struct out out;
    size_t chars;
    size_t chars_max, bytes_max;
    bool cut; /* an addition did not fit; nothing is added behind it */
};

size_t text_chars(str text); /* of valid UTF-8 */

/* Limits of 0 are none. */
bool text_fits(const struct channel_traits *traits, str text);

void draft_init(struct draft *draft, struct arena *arena, const struct channel_traits *traits);

/* Leave room for this text, to be added with draft_end. */
void draft_keep(struct draft *draft, str text);
void draft_end(struct draft *draft, str text);

/* All of them or none; false: they do not fit. */
bool draft_add(struct draft *draft, const str *parts, size_t count);
bool draft_put(struct draft *draft, str text);

/* Texts of others for people who only read them: no controls, no marks that turn the direction; with
 * `lines` line ends stay, else they are spaces. Trimmed. Takes valid UTF-8. */
str text_clean(struct arena *arena, str text, bool lines);

/* The same on one line and at most chars_max characters, the cut marked. */
str text_short(struct arena *arena, str text, size_t chars_max);

#endif

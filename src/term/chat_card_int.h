/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of a card share: chat_card.c and chat_card_text.c.
 */
#ifndef TERM_CHAT_CARD_INT_H
#define TERM_CHAT_CARD_INT_H

#include "term/chat_card.h"

static inline str card_member(const struct json *object, const char *name)
{
    return json_text(json_get(object, str_c(name)));
}

static inline bool is_true(const struct json *value)
{
    return value && value->type == JSON_TRUE;
}

static inline const struct json *choices_of(const struct card *card)
{
    return json_get(card->json, STR("choices"));
}

/* A choice as its row says it. */
str card_label(const struct card *card, struct arena *arena, size_t index);

#endif

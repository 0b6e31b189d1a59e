/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of some numbered choices a reply means. Pure.
 */
#ifndef CHAT_PICK_H
#define CHAT_PICK_H

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"

struct choices {
    str ids[ASK_CHOICES_MAX]; /* empty where choices are texts alone */
    str labels[ASK_CHOICES_MAX], abouts[ASK_CHOICES_MAX];
    size_t count;
};

/* Of a JSON list of {"id","label","description"?} or of strings; what is none gives no choices. */
void choices_of(struct choices *choices, const struct json *list);

enum pick {
    PICK_NONE,  /* other words */
    PICK_RANGE, /* a number, and no choice has it */
    PICK_MANY,  /* several, where one is wanted */
    PICK_DONE,
};

struct picked {
    size_t at[ASK_CHOICES_MAX]; /* from 0, each once, in the order they were named */
    size_t count;
};

/* The whole text must be a number, a label, or a number with its own label; or, with `multi`, several
 * of them. A label goes before a number. Takes valid UTF-8. */
enum pick pick_read(const struct choices *choices, str text, bool multi, struct picked *ret_picked);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a question (agent/core/interaction.h) as lines of text, and lines of a reply as their
 * values. Pure.
 */
#ifndef CHAT_FORM_H
#define CHAT_FORM_H

#include "base/arena.h"
#include "base/json.h"
#include "ui/locale.h"

/* One field, as a person is asked for it: "姓名（文字，必填）". At most chars_max characters each for
 * its label and what is said about it. */
str form_line(struct arena *arena, enum ui_locale locale, const struct json *field,
              size_t chars_max);

/* How to fill it in. */
str form_hint(enum ui_locale locale, size_t fields);

/* Does the reply name one of the fields, as "name: value"? */
bool form_names(const struct json *fields, str text);

/* {"fields":{...}}, each value of its field's type; or empty, and *ret_say tells what is missing or
 * wrong. */
str form_read(struct arena *arena, enum ui_locale locale, const struct json *fields, str text,
              str *ret_say);

#endif

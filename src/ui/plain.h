/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards and Markdown for places that show letters and nothing else. Pure.
 */
#ifndef UI_PLAIN_H
#define UI_PLAIN_H

#include "base/arena.h"
#include "ui/locale.h"

/* A UiSchema 2.0 card (its JSON) as lines of text: title, fields as `label: value`, lists with a dot,
 * tables row by row, progress in percent, links with their address; actions are left out but for
 * links. At most chars_max characters, the cut marked. Empty if it is no card, or says nothing. */
str plain_card(struct arena *arena, str card, enum ui_locale locale, size_t chars_max);

/* Markdown without its marks: headings, emphasis, code, quotes, links as `text (address)`, pictures as
 * their words, tables as lines, lists with their numbers or dots, rules as an empty line. Code keeps
 * its lines. */
str plain_markdown(struct arena *arena, str markdown);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that others wrote, made ready to be shown: trimmed, put on one line, cut at a character.
 * Everything takes valid UTF-8. Pure.
 */
#ifndef UI_TEXT_H
#define UI_TEXT_H

#include "base/arena.h"

/* The next character of *rest, which moves behind it. *rest must not be empty. */
uint32_t ui_next_char(str *rest);

bool ui_is_space(uint32_t code);  /* any space, and what shows as none: U+200B, U+2060, U+FEFF */
bool ui_is_hidden(uint32_t code); /* shows nothing by itself: controls, bidi marks, joiners */

/* Without spaces at both ends. Empty if nothing of it can be seen. */
str ui_trim(str text);

/* The code of a markdown text that is one code fence and nothing else. */
bool ui_fence(str text, str *ret_code);

/* One line: runs of spaces and control characters become one space, marks that turn the direction
 * of what follows go. At most chars_max characters; if it was longer the last one is an ellipsis. */
str ui_line(struct arena *arena, str text, size_t chars_max);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts on a terminal: how many columns they take, and what of other people's texts is shown. Pure.
 */
#ifndef TERM_TERM_TEXT_H
#define TERM_TERM_TEXT_H

#include "base/arena.h"

/* Columns of a character: 0 (it joins the one before), 1, or 2 (Chinese, most emoji). */
unsigned term_char_columns(uint32_t code);
size_t term_columns(str text); /* of valid UTF-8 on one line */

/* A text of somebody else: no escape sequence, nothing that turns the others around. Controls and
 * bidi marks are written out as in ui/visible.h, a tab is four spaces, CR LF one line end. With
 * `lines`, line ends stay; without, each is a space. Takes valid UTF-8; borrows it if nothing is to
 * be done. */
str term_clean(struct arena *arena, str text, bool lines);

/* The next row of *rest, of at most `columns` columns, and *rest moves behind it; a line end between
 * two rows is dropped. A row is cut behind a space if there is one in its second half, else between
 * characters. Loop while (rest.p). */
str term_row(str *rest, size_t columns);

/* A text whose lines all fit: what goes on in another row stands there behind `margin`, so that no words
 * of others reach the beginning of a row, where ours stand. */
str term_wrap(struct arena *arena, str text, size_t columns, str margin);

/* The margin for that. */
#define TERM_MARGIN STR("  │ ")

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The lower end of a terminal, which is drawn again and again: rows that fit its width, and where the
 * cursor stands. Above it is what scrolls away. Pure.
 */
#ifndef TERM_TERM_AREA_H
#define TERM_TERM_AREA_H

#include "base/buf.h"

enum style { STYLE_PLAIN, STYLE_DIM, STYLE_BOLD, STYLE_WARN, STYLE_ERROR, STYLE_COUNT };

enum { AREA_ROWS_MAX = 256 };

/* Embedded. */
struct area {
    struct buf text;
    struct {
        size_t start, len, columns;
        enum style style;
    } rows[AREA_ROWS_MAX];
    size_t count;
    size_t columns;                /* of a row */
    size_t cursor_row, cursor_col; /* where what was written last left it, unless it was set */
};

void area_init(struct area *area);
void area_done(struct area *area);
void area_begin(struct area *area, size_t columns); /* empty again */

/* A text, from a new row on, in as many rows as it takes. Of more than AREA_ROWS_MAX the last ones stay. */
void area_text(struct area *area, enum style style, str text);

/* Only its last rows, for a text that grows. */
void area_tail(struct area *area, enum style style, str text, size_t rows_max);

/* The same with the cursor behind the first `at` bytes of it: of a long text the rows around it. */
void area_edited(struct area *area, str text, size_t at);

/* The cursor to the beginning of this row: the one that was chosen, which has to be seen. */
void area_cursor(struct area *area, size_t row);

/* Only the last rows_max rows, or those from the cursor's row on if that is above them. */
void area_cut(struct area *area, size_t rows_max);

static inline str area_row(const struct area *area, size_t i)
{
    return (str){area->text.p + area->rows[i].start, area->rows[i].len};
}

#endif

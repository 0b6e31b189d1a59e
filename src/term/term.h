/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of this process: keys come one by one, the lower end is drawn again and again, and
 * whatever ends the process leaves the terminal as it was.
 */
#ifndef TERM_TERM_H
#define TERM_TERM_H

#include "term/term_area.h"

/* Embedded. One at a time in a process. */
struct term {
    size_t rows, columns; /* of the terminal, as of term_size */
    bool colors;
    size_t drawn;                  /* rows of the area on the screen */
    size_t widths[AREA_ROWS_MAX];  /* of each of them, in columns */
    size_t cursor_row, cursor_col; /* in them */
    struct buf out;
    bool broken; /* nobody sees what we write */
};

bool term_usable(
    void); /* standard input and output are a terminal, and it knows more than "dumb" */

enum err term_open(struct term *term, struct fault *reterr) MUST_USE;
void term_close(struct term *term); /* without the area; what was printed stays */

void term_size(struct term *term); /* ask again: it may have changed */

/* Stop as Ctrl-Z does, until somebody says `fg`. The area has to be drawn again. */
void term_suspend(struct term *term);

/* Print above the area (bytes that may have styles from term_style) and draw the area. */
void term_update(struct term *term, str printed, const struct area *area);

void term_drop_input(void); /* what was typed and not read yet */

/* The bytes that begin a style; STYLE_PLAIN ends it. */
str term_style(const struct term *term, enum style style);

#endif

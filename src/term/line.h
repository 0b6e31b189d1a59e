/* SPDX-License-Identifier: Apache-2.0
 *
 * The input line: a text that is edited by keys, and the lines that were sent before. It may have
 * several lines (a paste, or Alt and Enter). Pure.
 *
 *     ← → Home End Ctrl-A Ctrl-E    move            ↑ ↓    the line above or below, else history
 *     Backspace Delete Ctrl-D       one character   Ctrl-W Ctrl-U Ctrl-K    a word, to the start, to the end
 */
#ifndef TERM_LINE_H
#define TERM_LINE_H

#include "term/term_area.h"
#include "term/term_key.h"

enum { LINE_HISTORY_MAX = 100 };

struct line {
    struct buf text;
    size_t at; /* byte where the cursor stands */
    bool full; /* something did not fit, and nothing was erased since */
    char *history[LINE_HISTORY_MAX];
    size_t history_count, history_at; /* count: what is being written now */
    char *draft;                      /* that, while history is looked at */
};

void line_init(struct line *line, size_t bytes_max);
void line_done(struct line *line);

/* False: it has no use for this key (Enter, Esc, Tab, arrows with nowhere to go). */
bool line_key(struct line *line, struct key_event event);

str line_text(const struct line *line);
bool line_set(struct line *line, str text); /* the cursor behind it; false, and empty: too long */
void line_remember(struct line *line, str text);

/* From a new row on, behind `prompt`. */
void line_draw(const struct line *line, struct area *area, str prompt);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The lower end of a terminal as rows and a cursor; pure. Texts come in clean (term_clean) and are
 * cut here; a row keeps its style, since the bytes of styles have no columns.
 */
#include "term/term_area.h"

#include <string.h>

#include "base/limits.h"
#include "term/term_text.h"
#include "ui/text.h"

void area_init(struct area *area)
{
    *area = (struct area){0};
    buf_init(&area->text, TERM_AREA_BYTES_MAX);
}

void area_done(struct area *area)
{
    buf_done(&area->text);
}

void area_begin(struct area *area, size_t columns)
{
    buf_clear(&area->text);
    area->count = 0;
    area->columns = columns ? columns : 1;
    area->cursor_row = area->cursor_col = 0;
}

static void add_row(struct area *area, enum style style, str row)
{
    if (area->count == AREA_ROWS_MAX) {
        /* Make room: what stands at the top is the first that does not fit on a screen. */
        size_t bytes = area->rows[0].start + area->rows[0].len;
        area->count--;
        memmove(area->rows, area->rows + 1, area->count * sizeof area->rows[0]);
        if (area->cursor_row) area->cursor_row--;
        if (bytes >= area->text.max / 2) { /* not for every row */
            buf_drop(&area->text, bytes);
            for (size_t i = 0; i < area->count; i++) area->rows[i].start -= bytes;
        }
    }
    if (area->text.len + row.len > area->text.max) return;
    size_t columns = term_columns(row);
    area->rows[area->count].start = area->text.len;
    area->rows[area->count].len = row.len;
    area->rows[area->count].columns = columns;
    area->rows[area->count].style = style;
    if (row.len) buf_append(&area->text, row);
    area->cursor_row = area->count++;
    area->cursor_col = columns;
}

void area_text(struct area *area, enum style style, str text)
{
    if (!text.p) text = STR_EMPTY;
    while (text.p) add_row(area, style, term_row(&text, area->columns));
}

void area_tail(struct area *area, enum style style, str text, size_t rows_max)
{
    enum { CHAR_BYTES_MAX = 4 };
    size_t bytes = rows_max * area->columns * CHAR_BYTES_MAX, count = 0;
    bool cut = text.len > bytes;
    if (cut) {
        text = str_drop(text, text.len - bytes);
        while (text.len && ((unsigned char)text.p[0] & 0xc0) == 0x80) text = str_drop(text, 1);
    }
    for (str at = text; at.p; count++) term_row(&at, area->columns);
    for (str at = text; at.p; count--) {
        str row = term_row(&at, area->columns);
        if (count <= rows_max) add_row(area, style, row);
    }
}

void area_edited(struct area *area, str text, size_t at)
{
    enum { BELOW = AREA_ROWS_MAX / 2 }; /* rows behind the cursor; the others stand before it */
    size_t below = 0, col = 0, offset = 0;
    bool found = false;
    if (!text.p) text = STR_EMPTY;
    const char *start = text.p;
    while (text.p && below < BELOW) {
        str piece = term_row(&text, area->columns);
        offset = (size_t)(piece.p - start);
        add_row(area, STYLE_PLAIN, piece);
        below += found;
        /* Behind a row that was cut, the cursor stands at the beginning of the next one. */
        bool inside = at < offset + piece.len ||
                      (at == offset + piece.len && (!text.p || text.p > piece.p + piece.len));
        if (found || at < offset || !inside) continue;
        found = true;
        col = term_columns((str){piece.p, at - offset});
    }
    if (!found) return;
    area->cursor_row = area->count - 1 - below;
    area->cursor_col = col;
}

void area_cursor(struct area *area, size_t row)
{
    area->cursor_row = row;
    area->cursor_col = 0;
}

void area_cut(struct area *area, size_t rows_max)
{
    if (area->count <= rows_max) return;
    size_t from = area->count - rows_max;
    if (from > area->cursor_row) from = area->cursor_row;
    memmove(area->rows, area->rows + from, rows_max * sizeof area->rows[0]);
    area->count = rows_max;
    area->cursor_row -= from;
}

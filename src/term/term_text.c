/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts on a terminal: columns, rows, and what others wrote made harmless; pure. Both are tables of
 * ranges, sorted by nothing but reading order; texts on a screen are short.
 *
 * The widths are our own table and not wcwidth(): that one knows nothing but ASCII where the locale is
 * "C", and a terminal shows Chinese all the same. A character that is missing here moves the cursor of
 * the input line by one column, and nothing worse.
 */
#include "term/term_text.h"

#include <string.h>

#include "base/buf.h"
#include "ui/text.h"

struct term_text_range {
    uint32_t from, to;
};

static const struct term_text_range joining[] = {
    {0x0300, 0x036f},   {0x0483, 0x0489},   {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x06d6, 0x06dc},   {0x0900, 0x0902},   {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d},
    {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},   {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x20d0, 0x20ff},   {0x302a, 0x302d},   {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
    {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static const struct term_text_range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1aff0, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca},
    {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e},
    {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e},
    {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4},
    {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945},
    {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

/* What a terminal might obey, or what shows the others in another order. */
static const struct term_text_range dangerous[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},   {0x2028, 0x202e},
    {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

static bool within(const struct term_text_range *rows, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= rows[i].from && code <= rows[i].to) return true;
    return false;
}
#define WITHIN(table, code) within(table, COUNT(table), code)

unsigned term_char_columns(uint32_t code)
{
    if (code >= ' ' && code < 0x7f) return 1;
    bool blank = code == 0xa0 || code == 0x3000; /* typed, and seen as a gap */
    if (WITHIN(joining, code) || (ui_is_hidden(code) && !blank)) return 0;
    return WITHIN(wide, code) ? 2 : 1;
}

size_t term_columns(str text)
{
    size_t columns = 0;
    while (text.len) columns += term_char_columns(ui_next_char(&text));
    return columns;
}

/* ---- clean texts ---- */

static bool plain(str text, bool lines)
{
    while (text.len) {
        uint32_t code = ui_next_char(&text);
        if (WITHIN(dangerous, code) && !(lines && code == '\n')) return false;
    }
    return true;
}

str term_clean(struct arena *arena, str text, bool lines)
{
    enum { MARK_BYTES_MAX = 12 }; /* of one byte at worst */
    if (plain(text, lines)) return text;
    AUTO(buf_done) struct buf out;
    buf_init(&out, text.len * MARK_BYTES_MAX);
    while (text.len) {
        str before = text;
        uint32_t code = ui_next_char(&text);
        if (code == '\r' && str_starts(text, STR("\n"))) continue;
        if (code == '\n')
            buf_char(&out, lines ? '\n' : ' ');
        else if (code == '\t')
            buf_append(&out, STR("    "));
        else if (WITHIN(dangerous, code))
            buf_printf(&out, "\xe2\x9f\xa6U+%04X\xe2\x9f\xa7", (unsigned)code);
        else
            buf_append(&out, (str){before.p, before.len - text.len});
    }
    return arena_str(arena, buf_str(&out));
}

/* ---- rows ---- */

static str next_row(str *rest, size_t columns, unsigned (*width)(uint32_t code))
{
    str text = *rest;
    size_t used = 0, fits = 0, space = 0; /* bytes: what fits, and up to behind the last space */
    ptrdiff_t end = str_find_char(text, '\n');
    str line = end < 0 ? text : (str){text.p, (size_t)end};
    for (str at = line; at.len;) {
        uint32_t code = ui_next_char(&at);
        used += width(code);
        if (used > columns && fits) break;
        fits = line.len - at.len;
        if (code == ' ') space = fits;
    }
    if (fits == line.len) { /* the line ends here */
        *rest = end < 0 ? (str){NULL, 0} : str_drop(text, fits + 1);
        if (end >= 0 && !rest->p) rest->p = "";
        return line;
    }
    if (space > fits / 2) fits = space; /* not behind a margin, or a name before a long word */
    *rest = str_drop(text, fits);
    return (str){text.p, fits};
}

str term_row(str *rest, size_t columns)
{
    return next_row(rest, columns, term_char_columns);
}

/* As many columns as any terminal gives it: some join the colour of a skin and others do not. */
static unsigned columns_max(uint32_t code)
{
    bool joins = WITHIN(joining, code) && code < 0x1f000;
    if (code < 0x1100 || joins) return joins ? 0 : 1;
    return code >= 0x1f000 || WITHIN(wide, code) || ui_is_hidden(code) ? 2 : 1;
}

str term_wrap(struct arena *arena, str text, size_t columns, str margin)
{
    AUTO(buf_done) struct buf out;
    size_t indent = term_columns(margin), more = columns > indent ? columns - indent : 1;
    buf_init(&out, text.len * (margin.len + 2) + 1);
    while (text.p) {
        str line = str_split(&text, '\n');
        if (!line.p) line = STR_EMPTY;
        for (bool first = true; line.p; first = false) {
            str row = next_row(&line, first ? columns : more, columns_max);
            if (!first) buf_append(&out, margin);
            if (row.len) buf_append(&out, row);
            if (line.p) buf_char(&out, '\n');
        }
        if (text.p) buf_char(&out, '\n');
    }
    return arena_str(arena, out.len ? buf_str(&out) : STR_EMPTY);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of others: trimmed, on one line, cut at a character. Characters in two classes, both as
 * ranges in a table: spaces, which are trimmed and merged, and hidden ones, which count as nothing
 * when nothing else is there. A zero-width space is in both, a joiner only in the second: emoji
 * need it. To add a character: a row.
 */
#include "ui/text.h"

#include <string.h>

#include "base/utf8.h"

struct text_range {
    uint32_t from, to;
};

static const struct text_range spaces[] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
    {0x1680, 0x1680}, {0x2000, 0x200b}, {0x2028, 0x2029}, {0x202f, 0x202f},
    {0x205f, 0x2060}, {0x3000, 0x3000}, {0xfeff, 0xfeff},
};

static const struct text_range hidden[] = {
    {0x00, 0x20},       {0x7f, 0xa0},                       /* controls */
    {0xad, 0xad},       {0x061c, 0x061c}, {0x115f, 0x1160}, /* soft hyphen, mark, fillers */
    {0x180e, 0x180e},   {0x200b, 0x200f},                   /* zero width, left and right marks */
    {0x202a, 0x202e},   {0x2060, 0x206f},                   /* embeddings, isolates */
    {0x3164, 0x3164},   {0xfe00, 0xfe0f},                   /* filler, variation selectors */
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, /* byte order mark, annotations */
    {0xe0000, 0xe01ef},                                     /* tags, more selectors */
};

/* What has to stay with the character before it when a text is cut. */
static const struct text_range joined[] = {
    {0x0300, 0x036f}, {0x200c, 0x200d},   {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0x1f3fb, 0x1f3ff}, {0xe0020, 0xe007f},
};

/* Marks that change how everything behind them is drawn. */
static const struct text_range turning[] = {{0x202a, 0x202e}, {0x2066, 0x2069}};

static bool in_ranges(const struct text_range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].from && code <= ranges[i].to) return true;
    return false;
}

#define IN(table, code) in_ranges(table, COUNT(table), code)

uint32_t ui_next_char(str *rest)
{
    const unsigned char *p = (const unsigned char *)rest->p;
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = p[0] & bits[len];
    for (size_t i = 1; i < len; i++) code = code << 6 | (p[i] & 0x3f);
    *rest = str_drop(*rest, len);
    return code;
}

bool ui_is_space(uint32_t code)
{
    return IN(spaces, code);
}

bool ui_is_hidden(uint32_t code)
{
    return IN(hidden, code) || IN(spaces, code);
}

/* Most texts begin and end with a letter: look no further then. */
static bool is_plain(char c)
{
    return c > ' ' && c < 0x7f;
}

static str trim_back(str text)
{
    while (text.len && !is_plain(text.p[text.len - 1])) {
        size_t at = text.len - 1;
        while (((unsigned char)text.p[at] & 0xc0) == 0x80) at--;
        str last = {text.p + at, text.len - at};
        if (!ui_is_space(ui_next_char(&last))) break;
        text.len = at;
    }
    return text;
}

static bool is_seen(str text)
{
    while (text.len)
        if (is_plain(text.p[0]) || !ui_is_hidden(ui_next_char(&text))) return true;
    return false;
}

str ui_trim(str text)
{
    while (text.len && !is_plain(text.p[0])) {
        str rest = text;
        if (!ui_is_space(ui_next_char(&rest))) break;
        text = rest;
    }
    text = trim_back(text);
    return is_seen(text) ? text : STR_EMPTY;
}

/* How often the fence's character stands at the start of the line; 0 if fewer than three. */
static size_t fence_len(str line, char mark)
{
    size_t len = 0;
    while (len < line.len && line.p[len] == mark) len++;
    return len >= 3 ? len : 0;
}

/* The fence must be closed by the last line, and by no line before it. */
bool ui_fence(str text, str *ret_code)
{
    str rest = text;
    str first = str_split(&rest, '\n');
    if (!first.len || !rest.p || (first.p[0] != '`' && first.p[0] != '~')) return false;
    char mark = first.p[0];
    size_t open = fence_len(first, mark);
    if (!open || (mark == '`' && str_find_char(str_drop(first, open), mark) >= 0)) return false;

    str code = rest;
    while (rest.p) {
        str line = str_split(&rest, '\n');
        size_t close = fence_len(line, mark);
        if (close < open || trim_back(str_drop(line, close)).len) continue;
        if (rest.p) return false;
        code.len = (size_t)(line.p - code.p);
        *ret_code = is_seen(code) ? trim_back(code) : STR_EMPTY;
        return true;
    }
    return false;
}

/* Not between a character and what belongs to it. */
static size_t step_back(const char *text, size_t len, uint32_t next)
{
    while (len) {
        size_t at = len - 1;
        while (at && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
        str last = {text + at, len - at};
        uint32_t code = ui_next_char(&last);
        if (!IN(joined, next) && code != 0x200d) break;
        len = at;
        next = code;
    }
    return len;
}

static const str ellipsis = STR("\xe2\x80\xa6");

str ui_line(struct arena *arena, str text, size_t chars_max)
{
    size_t bytes_max = text.len < chars_max * 4 ? text.len : chars_max * 4;
    char *line = arena_alloc(arena, bytes_max + ellipsis.len);
    size_t len = 0, chars = 0, before_last = 0;
    uint32_t last = 0;
    bool space = false;
    while (text.len) {
        str rest = text;
        uint32_t code = ui_next_char(&rest);
        size_t bytes = text.len - rest.len;
        const char *from = text.p;
        text = rest;
        if (IN(turning, code)) continue;
        if (ui_is_space(code) || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
            space = len > 0;
            continue;
        }
        size_t need = 1 + (space ? 1 : 0);
        if (chars + need > chars_max) {
            bool full = chars == chars_max; /* then the last one makes room */
            size_t cut = step_back(line, full ? before_last : len, full ? last : code);
            memcpy(line + cut, ellipsis.p, ellipsis.len);
            return (str){line, cut + ellipsis.len};
        }
        before_last = len;
        last = space ? ' ' : code;
        if (space) line[len++] = ' ';
        memcpy(line + len, from, bytes);
        len += bytes;
        chars += need;
        space = false;
    }
    return (str){line, len};
}

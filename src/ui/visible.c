/* SPDX-License-Identifier: Apache-2.0
 *
 * Hidden characters made visible, for whoever decides by a text: as "⟦U+202E⟧", or "⟦U+202E ×3⟧"
 * for three of them in a row.
 *
 * 1. The way back is unique: a bracket in the result always belongs to a mark, for the brackets of
 *    the text are written as marks too.
 * 2. A text grows to at most twelve times its bytes, a control character being the worst.
 * 3. Blanks (space, ideographic space, and the line feed where lines are kept) stay as they are
 *    between words. They are written out at both ends of a text, where nobody sees them, and where
 *    so many stand together, mixed or not, that they would push what follows out of sight.
 *
 * The text is walked twice with the same code: once to count, once to write. To add a character: a
 * row in `unseen`, or in ui/text.c if trimming should know it as well.
 */
#include "ui/visible.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "ui/text.h"

/* What ui_is_hidden does not know, since it shows nothing only here and there. */
static const struct {
    uint32_t from, to;
} unseen[] = {
    {0x034f, 0x034f},   {0x17b4, 0x17b5},    /* a joiner, vowels without a shape */
    {0x180b, 0x180f},   {0x27e6, 0x27e7},    /* selectors; the brackets of our marks */
    {0x2800, 0x2800},   {0xe000, 0xf8ff},    /* a blank pattern; private use */
    {0xfdd0, 0xfdef},   {0xfff0, 0xffff},    /* no characters; specials */
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},  /* joiners of hieroglyphs; shorthand */
    {0x1d159, 0x1d159},                      /* an empty note head */
    {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff}, /* musical controls; tags and private use */
};

static const str open_mark = STR("\xe2\x9f\xa6U+"), close_mark = STR("\xe2\x9f\xa7");
static const str times = STR(" \xc3\x97");

static bool is_blank(uint32_t code, bool lines)
{
    return code == ' ' || code == 0x3000 || (lines && code == '\n');
}

static bool is_unseen(uint32_t code)
{
    if (code > ' ' && code < 0x7f) return false;
    if (ui_is_hidden(code)) return true;
    if ((code & 0xfffe) == 0xfffe) return true; /* no characters, the last two of each plane */
    for (size_t i = 0; i < COUNT(unseen); i++)
        if (code >= unseen[i].from && code <= unseen[i].to) return true;
    return false;
}

/* Where the result goes; without a place it is only counted. */
struct sink {
    char *p;
    size_t len;
    bool marked; /* something was written out */
};

static void put(struct sink *sink, str bytes)
{
    if (sink->p) memcpy(sink->p + sink->len, bytes.p, bytes.len);
    sink->len += bytes.len;
}

static void put_number(struct sink *sink, size_t value, unsigned base, size_t digits_min)
{
    char digits[20];
    size_t at = sizeof digits;
    while (value || sizeof digits - at < digits_min) {
        digits[--at] = "0123456789ABCDEF"[value % base];
        value /= base;
    }
    put(sink, (str){digits + at, sizeof digits - at});
}

static void put_mark(struct sink *sink, uint32_t code, size_t count)
{
    sink->marked = true;
    put(sink, open_mark);
    put_number(sink, code, 16, 4);
    if (count > 1) {
        put(sink, times);
        put_number(sink, count, 10, 1);
    }
    put(sink, close_mark);
}

/* The same character again and again: how often it begins the text. */
static size_t row_of(str text, size_t bytes)
{
    size_t count = 1;
    while ((count + 1) * bytes <= text.len && !memcmp(text.p, text.p + count * bytes, bytes))
        count++;
    return count;
}

static size_t ascii_run(str text)
{
    size_t len = 0;
    while (len < text.len && text.p[len] > ' ' && text.p[len] < 0x7f) len++;
    return len;
}

/* The text between its first and its last character that is no blank. */
static str inner(str text, bool lines)
{
    while (text.len) {
        str rest = text;
        if (!is_blank(ui_next_char(&rest), lines)) break;
        text = rest;
    }
    while (text.len) {
        size_t at = text.len - 1;
        while (((unsigned char)text.p[at] & 0xc0) == 0x80) at--;
        str last = {text.p + at, text.len - at};
        if (!is_blank(ui_next_char(&last), lines)) break;
        text.len = at;
    }
    return text;
}

/* Blanks between two other characters, and which of them are too many to stay. */
struct gap {
    const char *end;
    size_t spaces, line_ends;
};

static struct gap gap_of(str text, bool lines)
{
    struct gap gap = {0};
    while (text.len) {
        str rest = text;
        uint32_t code = ui_next_char(&rest);
        if (!is_blank(code, lines)) break;
        gap.spaces += code != '\n';
        gap.line_ends += code == '\n';
        text = rest;
    }
    gap.end = text.p;
    return gap;
}

static void walk(struct sink *sink, str text, bool lines)
{
    str core = inner(text, lines);
    struct gap gap = {.end = text.p};
    while (text.len) {
        size_t plain = ascii_run(text);
        if (plain) {
            put(sink, (str){text.p, plain});
            text = str_drop(text, plain);
            continue;
        }
        str rest = text;
        uint32_t code = ui_next_char(&rest);
        size_t bytes = text.len - rest.len;
        bool blank = is_blank(code, lines);
        size_t count = blank || is_unseen(code) ? row_of(text, bytes) : 1;
        bool within = text.p >= core.p && text.p < core.p + core.len;
        if (blank && text.p >= gap.end) gap = gap_of(text, lines);
        bool few =
            code == '\n' ? gap.line_ends <= VISIBLE_LINES_MAX : gap.spaces <= VISIBLE_SPACES_MAX;
        bool stays = blank ? within && few : !is_unseen(code);
        if (stays)
            put(sink, (str){text.p, count * bytes});
        else
            put_mark(sink, code, count);
        text = str_drop(text, count * bytes);
    }
}

str ui_visible(struct arena *arena, str text, bool lines)
{
    struct sink sink = {0};
    if (ascii_run(text) == text.len) return text;
    walk(&sink, text, lines);
    if (!sink.marked) return text;
    sink = (struct sink){.p = arena_alloc(arena, sink.len)};
    walk(&sink, text, lines);
    return (str){sink.p, sink.len};
}

/* Outside of strings JSON has only ASCII; its line ends and tabs there mean no more than a space. */
str ui_visible_json(struct arena *arena, str json)
{
    enum { ESCAPE_BYTES = 6 }; /* of one byte, a control, at worst */
    if (!utf8_valid(json)) return STR_EMPTY;
    AUTO(buf_done) struct buf out;
    buf_init(&out, json.len * ESCAPE_BYTES);
    while (json.len) {
        str before = json;
        uint32_t code = ui_next_char(&json);
        if (code == '\n' || code == '\r' || code == '\t')
            buf_char(&out, ' ');
        else if (code == ' ' || code == 0x3000 || !is_unseen(code))
            buf_append(&out, (str){before.p, before.len - json.len});
        else if (code < 0x10000)
            buf_printf(&out, "\\u%04x", (unsigned)code);
        else
            buf_printf(&out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                       (unsigned)(0xdc00 + (code & 0x3ff)));
    }
    return arena_str(arena, buf_str(&out));
}

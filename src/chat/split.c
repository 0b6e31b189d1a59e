/* SPDX-License-Identifier: Apache-2.0
 *
 * A long text in parts, code fences closed in each. Each part takes as much as fits, then goes back
 * to the best place to cut:
 *
 *     behind a paragraph, a line, a sentence, a space    in the last two thirds of the part
 *     between two characters                             else
 *
 * A code fence that is open at the cut is closed at the end of the part and opened again, with its
 * language, at the start of the next one; room for both is kept while measuring.
 *
 * Invariants: 1. every part fits and says something; 2. nothing of the text is lost but blanks at the
 * cuts; 3. every part takes at least one character, so there is an end. Bytes that are no UTF-8 count
 * as a character each.
 */
#include <string.h>

#include "agent/core/texts.h"
#include "base/rows.h"
#include "chat/chat_text.h"
#include "ui/text.h"

enum { FENCE_BYTES_MAX = 40, MARK_BYTES_MAX = 8 };

struct splitter {
    struct arena *arena;
    size_t chars_max, bytes_max;
    bool fences; /* there is room to close and open them */
    str fence;   /* the line that opened the one we are in; empty: none */
};

/* ---- characters ---- */

static size_t char_len(str text)
{
    unsigned char lead = (unsigned char)text.p[0];
    size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return len > 1 && len <= text.len && utf8_valid((str){text.p, len}) ? len : 1;
}

static uint32_t char_at(str text)
{
    size_t len = char_len(text);
    if (len == 1) return (unsigned char)text.p[0] < 0x80 ? (unsigned char)text.p[0] : 0xfffd;
    str one = {text.p, len};
    return ui_next_char(&one);
}

/* Belongs to the character before it. */
static bool is_joined(uint32_t code)
{
    return (code >= 0x300 && code <= 0x36f) || code == 0x200d || code == 0x20e3 ||
           (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0x1f3fb && code <= 0x1f3ff);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Bytes of the longest beginning within both limits; at least one character. */
static size_t fitting(str text, size_t chars_max, size_t bytes_max)
{
    size_t at = 0;
    for (size_t chars = 0; at < text.len && chars < chars_max; chars++) {
        size_t len = char_len(str_drop(text, at));
        if (at + len > bytes_max) break;
        at += len;
    }
    return at || !text.len ? at : char_len(text);
}

/* ---- fences ---- */

static str fence_mark(str line)
{
    size_t from = 0;
    while (from < 3 && from < line.len && line.p[from] == ' ') from++;
    line = str_drop(line, from);
    size_t len = 0;
    while (len < line.len && line.p[len] == line.p[0] && (line.p[0] == '`' || line.p[0] == '~'))
        len++;
    bool inline_code = len && line.p[0] == '`' && str_find_char(str_drop(line, len), '`') >= 0;
    return len >= 3 && len <= MARK_BYTES_MAX && !inline_code ? (str){line.p, len} : STR_EMPTY;
}

/* The fence that is open behind this line, if `fence` was before it. */
static str fence_behind(str fence, str line)
{
    str mark = fence_mark(line);
    if (!mark.len) return fence;
    if (!fence.len) return (str){mark.p, (size_t)(line.p + line.len - mark.p)};
    str open = fence_mark(fence);
    bool bare =
        !str_trim((str){mark.p + mark.len, (size_t)(line.p + line.len - mark.p) - mark.len}).len;
    return bare && mark.p[0] == open.p[0] && mark.len >= open.len ? STR_EMPTY : fence;
}

/* The one that is open at the end of the text. A line that is cut off counts as far as it goes. */
static str fence_at_end(str fence, str text)
{
    for (str rest = text; rest.p;) fence = fence_behind(fence, str_split(&rest, '\n'));
    return fence;
}

/* How it is opened again: its mark and its language. */
static str reopening(struct arena *arena, str fence)
{
    str mark = fence_mark(fence), line = fence;
    if (line.len > FENCE_BYTES_MAX || !utf8_valid(line)) line = mark;
    const str parts[] = {line, STR("\n")};
    return text_join(arena, parts, COUNT(parts));
}

static str closing(struct arena *arena, str fence)
{
    const str parts[] = {STR("\n"), fence_mark(fence)};
    return text_join(arena, parts, COUNT(parts));
}

/* ---- where to cut ---- */

static bool ends_sentence(str text, size_t at)
{
    static const str ends[] = {STR("。"), STR("！"), STR("？"), STR("；"), STR("…")};
    str before = {text.p, at};
    for (size_t i = 0; i < COUNT(ends); i++)
        if (str_ends(before, ends[i])) return true;
    return at < text.len && is_blank(text.p[at]) && strchr(".!?;", text.p[at - 1]) &&
           text.p[at - 1];
}

static bool is_cut(str text, size_t at, int rank)
{
    switch (rank) {
    case 0:
        return text.p[at] == '\n' && at + 1 < text.len && text.p[at + 1] == '\n';
    case 1:
        return text.p[at] == '\n';
    case 2:
        return ends_sentence(text, at);
    default:
        return text.p[at] == ' ' || text.p[at] == '\t';
    }
}

/* Between two characters that do not belong together; `most` where there is none near. */
static size_t between(str text, size_t most)
{
    enum { LOOK_MAX = 40 };
    size_t at = most;
    while (at > 1 && most - at < LOOK_MAX) {
        size_t before = at - 1;
        while (before && ((unsigned char)text.p[before] & 0xc0) == 0x80) before--;
        bool joins =
            is_joined(char_at(str_drop(text, at))) || char_at(str_drop(text, before)) == 0x200d;
        if (!joins) return at;
        at = before;
    }
    return most;
}

/* How much of the text, which does not fit, goes into this part. */
static size_t cut_of(str text, size_t most)
{
    for (int rank = 0; rank < 4; rank++)
        for (size_t at = most; at > most / 3 && at > 0; at--)
            if (is_cut(text, at, rank)) return at;
    return between(text, most);
}

/* Not inside of a line that opens or closes a fence, if something stands before it. */
static size_t before_fence(str text, size_t at)
{
    size_t start = at, end = at;
    while (start && text.p[start - 1] != '\n') start--;
    while (end < text.len && text.p[end] != '\n') end++;
    bool within = start < at && at < end;
    return within && start && fence_mark((str){text.p + start, end - start}).len ? start : at;
}

/* ---- parts ---- */

static str trim_end(str text)
{
    while (text.len && is_blank(text.p[text.len - 1])) text.len--;
    return text;
}

static str trim_start(str text, bool in_fence)
{
    if (in_fence) return text.len && text.p[0] == '\n' ? str_drop(text, 1) : text;
    while (text.len && is_blank(text.p[0])) text = str_drop(text, 1);
    return text;
}

/* How much of the text goes into the next part, where that much room is left. */
static size_t part_len(const struct splitter *s, str text, size_t chars, size_t bytes)
{
    size_t spare = s->fences ? 1 + MARK_BYTES_MAX : 0; /* to close one */
    if (fitting(text, chars, bytes) == text.len) {
        bool open = s->fences && fence_at_end(s->fence, text).len;
        if (!open || fitting(text, chars - spare, bytes - spare) == text.len) return text.len;
    }
    size_t at = cut_of(text, fitting(text, chars - spare, bytes - spare));
    return s->fences ? before_fence(text, at) : at;
}

/* One part off the text; empty if there were only blanks. */
static str next_part(struct splitter *s, str *rest)
{
    str before = s->fence.len ? reopening(s->arena, s->fence) : STR_EMPTY;
    size_t at = part_len(s, *rest, s->chars_max - before.len, s->bytes_max - before.len);
    str body = {rest->p, at}, after = STR_EMPTY;
    if (s->fences) s->fence = fence_at_end(s->fence, body);
    *rest = trim_start(str_drop(*rest, at), s->fence.len > 0);
    if (s->fence.len) {
        after = closing(s->arena, s->fence);
        if (body.p[body.len - 1] == '\n') body.len--;
    } else {
        body = trim_end(body);
    }
    const str parts[] = {before, body, after};
    return text_join(s->arena, parts, COUNT(parts));
}

void text_split(struct arena *arena, const struct channel_traits *traits, str text,
                struct text_parts *ret_parts)
{
    struct splitter s = {.arena = arena,
                         .chars_max = traits->chars_max ? traits->chars_max : SIZE_MAX / 4,
                         .bytes_max = traits->bytes_max ? traits->bytes_max : SIZE_MAX / 4};
    enum { ROOM = 4 * (FENCE_BYTES_MAX + MARK_BYTES_MAX + 2) };
    struct text_parts parts = {0};
    s.fences = s.chars_max > ROOM && s.bytes_max > ROOM;
    text = trim_end(text);
    while (text.len && (text.p[0] == '\n' || text.p[0] == '\r')) text = str_drop(text, 1);
    while (text.len) {
        str part = next_part(&s, &text);
        if (part.len) *ROWS_ADD(arena, parts.parts, parts.count) = part;
    }
    if (!parts.count) *ROWS_ADD(arena, parts.parts, parts.count) = STR_EMPTY;
    *ret_parts = parts;
}

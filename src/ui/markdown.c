/* SPDX-License-Identifier: Apache-2.0
 *
 * Markdown without its marks, line by line. What a line begins with says what it is (a fence, a
 * heading, a quote, an entry of a list, a row of a table, a rule); then the marks inside of it go:
 *
 *     **a** *a* __a__ _a_ ~~a~~ `a`      a
 *     [text](address)                    text (address)
 *     ![words](address)                  words
 *     <https://a>                        https://a
 *     \*                                 *
 *
 * It is a reader for people and no parser: what is not closed on its line stays as it is, and so does
 * anything that it does not know. Marks are ASCII, so characters are never cut. The work of a line
 * grows with its length: brackets are matched once, of open emphasis no more than OPEN_MAX are kept,
 * addresses have at most ADDRESS_BYTES_MAX.
 */
#include "ui/plain.h"

#include <string.h>

#include "ui/out.h"

enum { OPEN_MAX = 64, ADDRESS_BYTES_MAX = 2048, INDENT_MAX = 3 };

/* ---- inside of a line ---- */

/* Of every byte of the line: does it go; what bracket it belongs to. */
struct markdown_line {
    str text;
    bool *drop;      /* a mark */
    bool *code;      /* inside of a code span: as it is */
    size_t *bracket; /* of '[': where its ']' is, else 0 */
};

static bool is_space(const struct markdown_line *line, size_t at)
{
    return at >= line->text.len || line->text.p[at] == ' ' || line->text.p[at] == '\t';
}

static bool is_word(const struct markdown_line *line, size_t at)
{
    if (at >= line->text.len) return false;
    unsigned char c = (unsigned char)line->text.p[at];
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static size_t run_of(str text, size_t at)
{
    size_t len = 1;
    while (at + len < text.len && text.p[at + len] == text.p[at]) len++;
    return len;
}

static bool is_escape(str text, size_t at)
{
    return text.p[at] == '\\' && at + 1 < text.len &&
           strchr("\\`*_{}[]()#+-.!|~>", text.p[at + 1]) && text.p[at + 1];
}

/* `code`, ``co`de``: closed by a run of the same length. Runs that nothing closes are remembered by
 * their length, so that no line is searched twice for the same. */
static void mark_code(struct markdown_line *line)
{
    enum { RUN_MAX = 8 };
    bool hopeless[RUN_MAX + 1] = {false};
    str text = line->text;
    for (size_t at = 0; at < text.len; at++) {
        if (is_escape(text, at)) {
            at++;
            continue;
        }
        if (text.p[at] != '`') continue;
        size_t len = run_of(text, at), close = at + len;
        while (len <= RUN_MAX && !hopeless[len] && close < text.len) {
            size_t run = text.p[close] == '`' ? run_of(text, close) : 1;
            if (text.p[close] == '`' && run == len) break;
            close += run;
        }
        if (len > RUN_MAX || hopeless[len] || close >= text.len) {
            if (len <= RUN_MAX) hopeless[len] = true;
            at += len - 1;
            continue;
        }
        memset(line->drop + at, 1, len);
        memset(line->drop + close, 1, len);
        memset(line->code + at, 1, close + len - at);
        at = close + len - 1;
    }
}

static void match_brackets(struct markdown_line *line)
{
    str text = line->text;
    size_t open[OPEN_MAX], count = 0;
    for (size_t at = 0; at < text.len; at++) {
        if (line->code[at]) continue;
        if (is_escape(text, at)) {
            at++;
        } else if (text.p[at] == '[') {
            if (count == OPEN_MAX) {
                memmove(open, open + 1, (OPEN_MAX - 1) * sizeof *open);
                count--;
            }
            open[count++] = at;
        } else if (text.p[at] == ']' && count) {
            line->bracket[open[--count]] = at;
        }
    }
}

/* Runs of marks that may still be closed. */
struct open_mark {
    char mark;
    size_t at, len; /* what is left of it */
};

/* Is it part of a word, so that the marks beside it are none? 2*3*4 has no emphasis, 很*好*吗 has. */
static bool is_inside(const struct markdown_line *line, char mark, size_t at)
{
    if (mark == '_') return is_word(line, at);
    return mark == '*' && is_word(line, at) && (unsigned char)line->text.p[at] < 0x80;
}

static void close_marks(struct markdown_line *line, struct open_mark *open, size_t *count,
                        size_t *at, size_t *len)
{
    char mark = line->text.p[*at];
    for (size_t i = *count; i-- > 0 && *len;) {
        if (open[i].mark != mark || (mark == '~' && open[i].len != *len)) continue;
        size_t use = open[i].len < *len ? open[i].len : *len;
        memset(line->drop + open[i].at + open[i].len - use, 1, use);
        memset(line->drop + *at, 1, use);
        *at += use;
        *len -= use;
        open[i].len -= use;
        *count = open[i].len ? i + 1 : i; /* what was opened behind it stays as it is */
    }
}

static void mark_emphasis(struct markdown_line *line)
{
    struct open_mark open[OPEN_MAX];
    size_t count = 0;
    str text = line->text;
    for (size_t at = 0; at < text.len;) {
        if (line->code[at] || !memchr("*_~\\", text.p[at], 4)) {
            at++;
            continue;
        }
        if (text.p[at] == '\\') {
            at += is_escape(text, at) ? 2 : 1;
            continue;
        }
        size_t len = run_of(text, at), next = at + len;
        char mark = text.p[at];
        bool opens = !is_space(line, next) && (!at || !is_inside(line, mark, at - 1));
        bool closes = at && !is_space(line, at - 1) && !is_inside(line, mark, next);
        bool strikes = text.p[at] != '~' || len == 2;
        if (closes && strikes) close_marks(line, open, &count, &at, &len);
        if (opens && strikes && len && count < OPEN_MAX)
            open[count++] = (struct open_mark){text.p[next - 1], at, len};
        at = next;
    }
}

/* (address) or (address "title") at this place: what is between, and where it ends. */
static bool address_at(str text, size_t at, str *ret_address, size_t *ret_end)
{
    unsigned depth = 0;
    if (at >= text.len || text.p[at] != '(') return false;
    for (size_t i = at; i < text.len && i - at < ADDRESS_BYTES_MAX; i++) {
        depth += text.p[i] == '(';
        depth -= text.p[i] == ')';
        if (depth) continue;
        str inner = str_trim((str){text.p + at + 1, i - at - 1});
        ptrdiff_t title = str_find_char(inner, ' ');
        if (title >= 0) inner.len = (size_t)title;
        if (inner.len > 1 && inner.p[0] == '<' && inner.p[inner.len - 1] == '>')
            inner = (str){inner.p + 1, inner.len - 2};
        *ret_address = inner;
        *ret_end = i + 1;
        return true;
    }
    return false;
}

/* <https://...>, <a@b>: what is between, and where it ends. */
static bool autolink_at(str text, size_t at, size_t *ret_end)
{
    bool address = false;
    for (size_t i = at + 1; i < text.len && i - at < ADDRESS_BYTES_MAX; i++) {
        if (text.p[i] == '>') {
            *ret_end = i;
            return address;
        }
        if (text.p[i] == ' ' || text.p[i] == '<') return false;
        address = address || text.p[i] == ':' || text.p[i] == '@';
    }
    return false;
}

/* From here to `end`. Brackets hold brackets, no deeper than OPEN_MAX. */
static void put_range(struct out *out, const struct markdown_line *line, size_t at, size_t end)
{
    str text = line->text, address;
    while (at < end) {
        size_t behind = 0;
        bool plain = line->code[at];
        bool picture = !plain && text.p[at] == '!' && at + 1 < end && line->bracket[at + 1];
        size_t open = picture ? at + 1 : at;
        size_t close = plain || text.p[open] != '[' ? 0 : line->bracket[open];
        if (line->drop[at]) {
            at++;
        } else if (!plain && is_escape(text, at)) {
            out_char(out, text.p[at + 1]);
            at += 2;
        } else if (close && close < end && address_at(text, close + 1, &address, &behind)) {
            size_t from = out->len;
            put_range(out, line, open + 1, close);
            str words = {out->p + from, out->len - from};
            if (!picture && address.len && !str_eq(words, address)) {
                if (words.len) out_raw(out, STR(" ("));
                out_raw(out, address);
                if (words.len) out_char(out, ')');
            }
            at = behind;
        } else if (!plain && text.p[at] == '<' && autolink_at(text, at, &behind)) {
            out_raw(out, (str){text.p + at + 1, behind - at - 1});
            at = behind + 1;
        } else {
            out_char(out, text.p[at++]);
        }
    }
}

static void put_inline(struct out *out, str text)
{
    if (!text.len) return;
    struct markdown_line line = {.text = text,
                                 .drop = arena_array(out->arena, text.len, sizeof *line.drop),
                                 .code = arena_array(out->arena, text.len, sizeof *line.code),
                                 .bracket =
                                     arena_array(out->arena, text.len, sizeof *line.bracket)};
    mark_code(&line);
    match_brackets(&line);
    mark_emphasis(&line);
    put_range(out, &line, 0, text.len);
}

/* ---- what a line is ---- */

static str trim_end(str text)
{
    while (text.len && (text.p[text.len - 1] == ' ' || text.p[text.len - 1] == '\t' ||
                        text.p[text.len - 1] == '\r'))
        text.len--;
    return text;
}

static size_t indent_of(str line)
{
    size_t at = 0;
    while (at < line.len && (line.p[at] == ' ' || line.p[at] == '\t')) at++;
    return at;
}

/* Of which mark, and how long; 0: it is no fence. */
static size_t fence_of(str line, char *ret_mark)
{
    size_t from = indent_of(line);
    if (from > INDENT_MAX || from == line.len) return 0;
    *ret_mark = line.p[from];
    if (*ret_mark != '`' && *ret_mark != '~') return 0;
    size_t len = run_of(line, from);
    bool closed = *ret_mark == '`' && str_find_char(str_drop(line, from + len), '`') >= 0;
    return len >= 3 && !closed ? len : 0;
}

/* Three or more of the same and nothing else but spaces: ---, ***, ===. */
static bool is_rule(str line, const char *marks)
{
    size_t count = 0;
    line = str_trim(line);
    if (!line.len || !strchr(marks, line.p[0]) || !line.p[0]) return false;
    for (size_t i = 0; i < line.len; i++) {
        if (line.p[i] == ' ') continue;
        if (line.p[i] != line.p[0]) return false;
        count++;
    }
    return count >= 3;
}

static bool is_row(str line)
{
    line = str_trim(line);
    return line.len > 1 && line.p[0] == '|' && line.p[line.len - 1] == '|';
}

/* |---|:-:| */
static bool is_table_rule(str line)
{
    bool dash = false;
    if (!is_row(line)) return false;
    for (size_t i = 0; i < line.len; i++) {
        if (!memchr("|-: \t", line.p[i], 5)) return false;
        dash = dash || line.p[i] == '-';
    }
    return dash;
}

static void put_row(struct out *out, str line)
{
    line = str_trim(line);
    line = (str){line.p + 1, line.len - 2};
    size_t from = 0;
    bool first = true;
    for (size_t at = 0; at <= line.len; at++) {
        if (at < line.len && is_escape(line, at)) {
            at++;
            continue;
        }
        if (at < line.len && line.p[at] != '|') continue;
        if (!first) out_raw(out, STR(" | "));
        first = false;
        put_inline(out, str_trim((str){line.p + from, at - from}));
        from = at + 1;
    }
}

/* "- [x] " behind the mark of an entry. */
static str put_task(struct out *out, str rest)
{
    if (rest.len < 4 || rest.p[0] != '[' || rest.p[2] != ']' || rest.p[3] != ' ') return rest;
    bool done = rest.p[1] == 'x' || rest.p[1] == 'X';
    if (!done && rest.p[1] != ' ') return rest;
    out_raw(out, done ? STR("☑ ") : STR("☐ "));
    return str_drop(rest, 4);
}

/* What a line begins with, put or left out; returns what is behind it. */
static str put_start(struct out *out, str line)
{
    size_t from = indent_of(line);
    str rest = str_drop(line, from);
    while (rest.len && rest.p[0] == '>' && from <= INDENT_MAX) { /* a quote, perhaps of a quote */
        rest = str_drop(rest, 1);
        if (rest.len && rest.p[0] == ' ') rest = str_drop(rest, 1);
        from = 0;
    }
    size_t hashes = rest.len && rest.p[0] == '#' ? run_of(rest, 0) : 0;
    if (hashes && hashes <= 6 && (hashes == rest.len || rest.p[hashes] == ' ')) {
        rest = str_trim(str_drop(rest, hashes));
        size_t end = rest.len;
        while (end && rest.p[end - 1] == '#') end--;
        if (end < rest.len && (!end || rest.p[end - 1] == ' ')) rest.len = end;
        return trim_end(rest);
    }
    out_raw(out, (str){line.p, from});
    bool dot = rest.len > 1 && strchr("-*+", rest.p[0]) && rest.p[1] == ' ';
    if (!dot) return rest;
    str behind = str_trim(str_drop(rest, 1)), words = put_task(out, behind);
    if (words.len == behind.len) out_raw(out, STR("• "));
    return words;
}

str plain_markdown(struct arena *arena, str markdown)
{
    struct out out;
    size_t fence = 0;
    char mark = 0, fence_mark = 0;
    bool first = true, words = false; /* of the line before: words that a === may underline */
    out_init(&out, arena, markdown.len, SIZE_MAX / 4);
    for (str rest = markdown; rest.p;) {
        str line = trim_end(str_split(&rest, '\n'));
        size_t len = fence_of(line, &mark);
        if (fence) {
            bool ends = len >= fence && mark == fence_mark && is_rule(line, "`~");
            if (ends) fence = 0;
            if (ends) continue;
        } else if (len) {
            fence = len;
            fence_mark = mark;
            words = false;
            continue;
        } else if (is_table_rule(line) || (words && is_rule(line, "="))) {
            continue;
        }
        if (!first) out_char(&out, '\n');
        first = false;
        if (fence) {
            out_raw(&out, line);
            continue;
        }
        bool rule = is_rule(line, "-*_");
        words = line.len > 0 && !rule;
        if (rule) continue;
        if (is_row(line))
            put_row(&out, line);
        else
            put_inline(&out, put_start(&out, line));
    }
    return out_str(&out);
}

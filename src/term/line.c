/* SPDX-License-Identifier: Apache-2.0
 *
 * The input line of a terminal: editing, history; pure.
 *
 * 1. The text is valid UTF-8, and the cursor stands between characters; one that joins the character
 *    before it (an accent, a selector) goes with it.
 * 2. A text that is full takes no more; nothing of it is lost.
 *
 * Why not a library: docs/DEPENDENCIES.md.
 */
#include "term/line.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "term/term_text.h"
#include "ui/text.h"

void line_init(struct line *line, size_t bytes_max)
{
    *line = (struct line){0};
    buf_init(&line->text, bytes_max);
}

void line_done(struct line *line)
{
    for (size_t i = 0; i < line->history_count; i++) free(line->history[i]);
    free(line->draft);
    buf_done(&line->text);
    *line = (struct line){0};
}

str line_text(const struct line *line)
{
    return line->text.len ? buf_str(&line->text) : STR_EMPTY;
}

bool line_set(struct line *line, str text)
{
    bool fits = text.len <= line->text.max;
    line->full = false;
    buf_clear(&line->text);
    if (fits && text.len) buf_append(&line->text, text);
    line->at = line->text.len;
    return fits;
}

static char *copy(str text)
{
    char *p = malloc(text.len + 1);
    if (!p) abort();
    if (text.len) memcpy(p, text.p, text.len);
    p[text.len] = 0;
    return p;
}

void line_remember(struct line *line, str text)
{
    size_t last = line->history_count;
    if (!last || !str_eq(str_c(line->history[last - 1]), text)) {
        if (last == LINE_HISTORY_MAX) {
            free(line->history[0]);
            memmove(line->history, line->history + 1, --last * sizeof *line->history);
        }
        line->history[last] = copy(text);
        line->history_count = last + 1;
    }
    line->history_at = line->history_count;
}

/* ---- characters ---- */

static bool joins(uint32_t code)
{
    return code != '\n' && code != '\t' && !term_char_columns(code);
}

static size_t next_char(const struct line *line, size_t at)
{
    str rest = str_drop(line_text(line), at);
    if (!rest.len) return at;
    ui_next_char(&rest);
    for (str more = rest; more.len; rest = more)
        if (!joins(ui_next_char(&more))) break;
    return line->text.len - rest.len;
}

static size_t char_before(const struct line *line, size_t at)
{
    while (at) {
        do at--;
        while (at && ((unsigned char)line->text.p[at] & 0xc0) == 0x80);
        str rest = str_drop(line_text(line), at);
        if (!joins(ui_next_char(&rest))) break;
    }
    return at;
}

static size_t line_start(const struct line *line, size_t at)
{
    while (at && line->text.p[at - 1] != '\n') at--;
    return at;
}

static size_t line_end(const struct line *line, size_t at)
{
    while (at < line->text.len && line->text.p[at] != '\n') at++;
    return at;
}

static size_t word_before(const struct line *line, size_t at)
{
    while (at && line->text.p[at - 1] == ' ') at--;
    while (at && line->text.p[at - 1] != ' ' && line->text.p[at - 1] != '\n') at--;
    return at;
}

/* ---- changes ---- */

static void insert(struct line *line, uint32_t code)
{
    char bytes[4];
    size_t len = utf8_write(code, bytes);
    line->full |= line->text.len + len > line->text.max;
    if (line->text.len + len > line->text.max || !buf_room(&line->text, len)) return;
    char *p = line->text.p + line->at;
    memmove(p + len, p, line->text.len - line->at);
    memcpy(p, bytes, len);
    buf_added(&line->text, len);
    line->at += len;
}

static void erase(struct line *line, size_t from, size_t to)
{
    if (to > from) memmove(line->text.p + from, line->text.p + to, line->text.len - to);
    line->text.len -= to - from;
    if (to > from) line->full = false;
    line->at = from;
}

/* ---- up and down ---- */

static bool vertical(struct line *line, bool up)
{
    size_t start = line_start(line, line->at), end = line_end(line, line->at);
    if (up ? !start : end == line->text.len) return false;
    size_t want = term_columns((str){line->text.p + start, line->at - start});
    size_t to = up ? line_start(line, start - 1) : end + 1, stop = line_end(line, to);
    for (size_t columns = 0; to < stop;) {
        size_t next = next_char(line, to);
        columns += term_columns((str){line->text.p + to, next - to});
        if (columns > want) break;
        to = next;
    }
    line->at = to;
    return true;
}

static bool recall(struct line *line, bool up)
{
    if (up ? !line->history_at : line->history_at >= line->history_count) return false;
    if (line->history_at == line->history_count) {
        free(line->draft);
        line->draft = copy(line_text(line));
    }
    line->history_at += up ? (size_t)-1 : 1;
    bool now = line->history_at == line->history_count;
    line_set(line, str_c(now ? line->draft : line->history[line->history_at]));
    return true;
}

/* ---- keys ---- */

static bool control(struct line *line, uint32_t letter)
{
    size_t at = line->at;
    switch (letter) {
    case 'a':
        line->at = line_start(line, at);
        return true;
    case 'e':
        line->at = line_end(line, at);
        return true;
    case 'b':
        line->at = char_before(line, at);
        return true;
    case 'f':
        line->at = next_char(line, at);
        return true;
    case 'd':
        if (!line->text.len) return false;
        erase(line, at, next_char(line, at));
        line->at = at;
        return true;
    case 'w':
        erase(line, word_before(line, at), at);
        return true;
    case 'u':
        erase(line, line_start(line, at), at);
        return true;
    case 'k':
        erase(line, at, line_end(line, at));
        return true;
    default:
        return false;
    }
}

bool line_key(struct line *line, struct key_event event)
{
    size_t at = line->at;
    switch (event.key) {
    case KEY_CHAR:
        insert(line, event.code);
        return true;
    case KEY_LEFT:
        line->at = char_before(line, at);
        return true;
    case KEY_RIGHT:
        line->at = next_char(line, at);
        return true;
    case KEY_HOME:
        line->at = line_start(line, at);
        return true;
    case KEY_END:
        line->at = line_end(line, at);
        return true;
    case KEY_BACKSPACE:
        erase(line, char_before(line, at), at);
        return true;
    case KEY_DELETE:
        erase(line, at, next_char(line, at));
        return true;
    case KEY_UP:
    case KEY_DOWN:
        return vertical(line, event.key == KEY_UP) || recall(line, event.key == KEY_UP);
    case KEY_CTRL:
        return control(line, event.code);
    default:
        return false;
    }
}

void line_draw(const struct line *line, struct area *area, str prompt)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf shown;
    arena_init(&arena);
    str before = term_clean(&arena, (str){line_text(line).p, line->at}, true);
    str behind = term_clean(&arena, str_drop(line_text(line), line->at), true);
    buf_init(&shown, prompt.len + before.len + behind.len + 1);
    buf_append(&shown, prompt);
    if (before.len) buf_append(&shown, before);
    size_t at = shown.len;
    if (behind.len) buf_append(&shown, behind);
    area_edited(area, buf_str(&shown), at);
}

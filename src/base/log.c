/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one line for each event, on standard error. A line is built in a fixed buffer on the
 * stack and leaves in one write(2):
 *
 *     2026-11-15T05:52:50.123Z info  server.listening url=http://127.0.0.1:8080 note="a \"b\""
 *     {"ts":"2026-11-15T05:52:50.123Z","level":"info","event":"server.listening","url":"..."}
 *
 * Invariants:
 * 1. Whatever a value holds, the line is one line of printable UTF-8. Control characters, and those
 *    that move or turn the text around them, are written as \uXXXX. A byte that is not UTF-8 is
 *    \xNN in text; JSON cannot name a byte, so there it is U+FFFD.
 * 2. A line that is cut still ends well: the open value is closed, and "cut" says what happened.
 *    TAIL_BYTES are kept back for that, so pieces are put whole or not at all.
 */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { TAIL_BYTES = sizeof "\",\"cut\":true}" - 1 };

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

static enum log_level lowest = LOG_INFO;
static bool as_json;

void log_setup(enum log_level level, bool json)
{
    lowest = level;
    as_json = json;
}

bool log_on(enum log_level level)
{
    return level >= lowest;
}

enum err log_parse(str text, enum log_level *ret_level, bool *ret_json)
{
    str form = text, name = str_split(&form, ',');
    bool json = str_eq(form, STR("json"));
    if (form.p && !json && !str_eq(form, STR("text"))) return ERR_INVALID_FIELD;
    for (size_t i = 0; i < COUNT(level_names); i++) {
        if (!str_eq(name, str_c(level_names[i]))) continue;
        *ret_level = (enum log_level)i;
        *ret_json = json;
        return OK;
    }
    return ERR_INVALID_FIELD;
}

struct log_line {
    char *p;
    size_t len;
    size_t room; /* where the kept-back tail begins */
    bool json;
    bool cut; /* a piece did not fit; nothing more is put */
};

static void put(struct log_line *line, str piece)
{
    if (line->cut || line->len + piece.len > line->room) {
        line->cut = true;
        return;
    }
    if (piece.len) memcpy(line->p + line->len, piece.p, piece.len);
    line->len += piece.len;
}

/* For closing what is open: may use the tail. */
static void put_end(struct log_line *line, str piece)
{
    memcpy(line->p + line->len, piece.p, piece.len);
    line->len += piece.len;
}

/* The first character of a text that is not empty; the empty str if it does not begin with one. */
static str first_character(str text)
{
    unsigned char lead = (unsigned char)text.p[0];
    if (lead < 0x80) return (str){text.p, 1};
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    str character = {text.p, len};
    return len <= text.len && utf8_valid(character) ? character : STR_EMPTY;
}

static unsigned code_point(str character)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char)character.p[0] & lead_bits[character.len];
    for (size_t i = 1; i < character.len; i++)
        code = code << 6 | ((unsigned char)character.p[i] & 0x3f);
    return code;
}

/* Would the terminal, or the eye, be led astray? */
static bool unsafe(unsigned code)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {
        {0x00, 0x1f},     /* C0: newline, ESC */
        {0x7f, 0x9f},     /* DEL and C1: terminals take U+009B for ESC [ */
        {0x200e, 0x200f}, /* marks of direction */
        {0x2028, 0x202e}, /* separators of lines and paragraphs; embeddings and overrides */
        {0x2066, 0x2069}, /* isolates */
    };
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

/* The letter behind the backslash for a character that has a short escape, else 0. */
static char short_escape(unsigned code)
{
    static const char codes[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    const char *at = code && code < 0x80 ? strchr(codes, (int)code) : NULL;
    return at ? letters[at - codes] : '\0';
}

/* Put the first character (or bad byte) of a text; how many bytes it took. */
static size_t put_first(struct log_line *line, str text)
{
    char escape[8];
    str character = first_character(text);
    if (character.len == 0) {
        int len = snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)text.p[0]);
        put(line, line->json ? STR("\\ufffd") : (str){escape, (size_t)len});
        return 1;
    }
    unsigned code = code_point(character);
    char letter = short_escape(code);
    if (letter) {
        put(line, (str){(char[]){'\\', letter}, 2});
    } else if (unsafe(code)) {
        int len = snprintf(escape, sizeof escape, "\\u%04x", code);
        put(line, (str){escape, (size_t)len});
    } else {
        put(line, character);
    }
    return character.len;
}

static void put_escaped(struct log_line *line, str text)
{
    while (text.len && !line->cut) text = str_drop(text, put_first(line, text));
}

/* Can it stand in a text line without quotes? */
static bool plain(str text)
{
    if (text.len == 0) return false;
    while (text.len) {
        str character = first_character(text);
        if (character.len == 0) return false;
        unsigned code = code_point(character);
        if (code == ' ' || code == '=' || short_escape(code) || unsafe(code)) return false;
        text = str_drop(text, character.len);
    }
    return true;
}

/* A field whose value could not even begin leaves no trace but the cut. */
static void put_field(struct log_line *line, const struct log_field *field)
{
    bool number = field->kind != LOG_FIELD_STR;
    bool quoted = !number && (line->json || !plain(field->text));
    size_t before = line->len;

    put(line, line->json ? STR(",\"") : STR(" "));
    put_escaped(line, str_c(field->name));
    put(line, line->json ? STR("\":") : STR("="));
    if (number) {
        char digits[24];
        int len = field->kind == LOG_FIELD_I64
                      ? snprintf(digits, sizeof digits, "%lld", (long long)field->number)
                      : snprintf(digits, sizeof digits, "%llu", (unsigned long long)field->number);
        put(line, (str){digits, (size_t)len});
    }
    if (quoted) put(line, STR("\""));
    if (line->cut) {
        line->len = before;
        return;
    }
    if (!number) put_escaped(line, field->text);
    if (quoted) put_end(line, STR("\""));
}

size_t log_format(char *out, size_t size, msec wall, bool json, enum log_level level,
                  const char *event, const struct log_field *fields, size_t count)
{
    assert(size >= LOG_LINE_BYTES_MIN);
    struct log_line line = {.p = out, .room = size - TAIL_BYTES, .json = json};
    char time[RFC3339_BYTES], head[96];
    clock_rfc3339(wall, time);
    int len = snprintf(head, sizeof head,
                       json ? "{\"ts\":\"%s\",\"level\":\"%s\",\"event\":\"" : "%s %-5s ", time,
                       level_names[level]);
    put(&line, (str){head, (size_t)len});
    put_escaped(&line, str_c(event));
    if (json) put_end(&line, STR("\""));
    for (size_t i = 0; i < count && !line.cut; i++) put_field(&line, &fields[i]);
    if (line.cut) put_end(&line, json ? STR(",\"cut\":true") : STR(" cut=true"));
    if (json) put_end(&line, STR("}"));
    return line.len;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count)
{
    char line[LOG_LINE_BYTES_MAX];
    size_t len = log_format(line, sizeof line - 1, clock_wall(&clock_system), as_json, level, event,
                            fields, count);
    line[len++] = '\n';
    /* The loop must not wait for whoever reads the log: a line that a full pipe has no room for is
     * dropped. (A pipe that polls writable takes a whole line.) */
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1) return;
    if (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
        (void)!write(STDERR_FILENO, line, len);
}

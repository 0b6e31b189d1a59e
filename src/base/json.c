/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON: a strict parser into an arena (a recursive descent, one function per rule of the grammar;
 * numbers as text, every value with its source bytes), and a writer.
 *
 *     document = value, only space around it
 *     value    = object | array | string | number | true | false | null
 *
 * The parser stands at `at` and never looks at or behind `end`. A function for a rule fills in the
 * node it is given, leaves `at` behind what it took and returns true; or it returns false after
 * fail() has noted where and why, once. Invariants:
 *
 * 1. Recursion goes through parse_value only, and enter() bounds it by JSON_DEPTH_MAX; so the
 *    stack is bounded whatever the input.
 * 2. Every byte inside a string is checked once, by parse_string: control bytes, UTF-8, escapes. A
 *    string without escapes is then borrowed from the source; one with escapes is decoded, in a
 *    second pass that cannot fail, into exactly the bytes it needs.
 * 3. Keys are compared decoded. A small object is searched member by member; from KEY_SET_FROM
 *    members on, a hash set in the arena keeps the work linear. Its seed is random, because the
 *    keys are chosen by whoever sends the document.
 */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json_int.h"
#include "base/limits.h"
#include "base/map.h"

enum { KEY_SET_FROM = 16, END = -1 };

struct parser {
    const char *at;
    const char *end;
    struct arena *arena;
    unsigned depth;
    unsigned values, values_max;
    bool seeded;
    uint64_t seed[2];
    const char *error_at;
    const char *reason;
};

struct key_slot {
    uint64_t hash;
    const struct json *member; /* NULL: empty */
};

/* Open addressing, at most half full. */
struct key_set {
    struct key_slot *slots;
    size_t capacity; /* a power of two, or 0 */
};

static bool parse_value(struct parser *p, struct json *value);

static bool fail_at(struct parser *p, const char *at, const char *reason)
{
    p->error_at = at;
    p->reason = reason;
    return false;
}

static bool fail(struct parser *p, const char *reason)
{
    return fail_at(p, p->at, p->at == p->end ? "unexpected end" : reason);
}

static inline int peek(const struct parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : END;
}

/* Skip white space and return the byte after it, which stays to be read, or END. */
static inline int next(struct parser *p)
{
    for (;; p->at++) {
        int c = peek(p);
        if (c > ' ' || !json_is_space(c)) return c;
    }
}

/* Strings. */

struct escape {
    uint32_t code;
    unsigned bytes; /* of the source: 2, 6, or 12 for a surrogate pair */
};

/* "\uXXXX" at `at`: its 16 bits, or -1. */
static int32_t read_unit(const char *at, const char *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return -1;
    int32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = char_hex(at[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* The escape whose backslash is at `at`. Returns NULL, or why it is none. */
static const char *read_escape(const char *at, const char *end, struct escape *ret_escape)
{
    if (end - at < 2) return "unexpected end";
    char letter = json_escapes[(unsigned char)at[1]];
    if (letter) {
        *ret_escape = (struct escape){(uint32_t)letter, 2};
        return NULL;
    }
    int32_t unit = read_unit(at, end);
    if (unit < 0) return "invalid escape";
    if (unit < 0xd800 || unit > 0xdfff) {
        *ret_escape = (struct escape){(uint32_t)unit, 6};
        return NULL;
    }
    int32_t low = unit < 0xdc00 ? read_unit(at + 6, end) : -1;
    if (low < 0xdc00 || low > 0xdfff) return "lone surrogate";
    uint32_t code = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    *ret_escape = (struct escape){code, 12};
    return NULL;
}

/* What keeps the plain run from going on at p->at; the closing quote is not its business. */
static bool scan_special(struct parser *p, size_t *saved)
{
    unsigned char c = (unsigned char)*p->at;
    if (c >= 0x80) {
        const char *after = utf8_skip(p->at, p->end);
        if (after == p->at) return fail(p, "invalid UTF-8");
        p->at = after;
        return true;
    }
    if (c != '\\') return fail(p, "control character in a string");

    struct escape escape;
    char utf8[4];
    const char *reason = read_escape(p->at, p->end, &escape);
    if (reason) return fail(p, reason);
    *saved += escape.bytes - utf8_write(escape.code, utf8);
    p->at += escape.bytes;
    return true;
}

/* Decode what scan_special has accepted; `len` is the decoded length. */
static str decode_string(struct arena *arena, const char *at, const char *end, size_t len)
{
    char *text = arena_space(arena, len), *out = text;
    while (at < end) {
        const char *backslash = memchr(at, '\\', (size_t)(end - at));
        size_t run = (size_t)((backslash ? backslash : end) - at);
        memcpy(out, at, run);
        out += run;
        at += run;
        if (!backslash) break;

        struct escape escape = {0};
        const char *reason = read_escape(at, end, &escape);
        assert(!reason);
        out += utf8_write(escape.code, out);
        at += escape.bytes;
    }
    assert(out == text + len);
    return (str){text, len};
}

/* A string: checked up to its closing quote, decoded only if it has an escape. */
static bool parse_string(struct parser *p, str *ret_text)
{
    const char *start = ++p->at;
    size_t saved = 0; /* by how many bytes decoding shortens it; 0 only if there is no escape */
    for (;;) {
        p->at = json_skip_plain(p->at, p->end);
        if (p->at == p->end) return fail(p, "unexpected end");
        if (*p->at == '"') break;
        if (!scan_special(p, &saved)) return false;
    }
    size_t len = (size_t)(p->at - start);
    *ret_text = saved ? decode_string(p->arena, start, p->at, len - saved) : (str){start, len};
    p->at++;
    return true;
}

/* Numbers and words. */

static inline bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct parser *p)
{
    if (!is_digit(peek(p))) return fail(p, "invalid number");
    do p->at++;
    while (is_digit(peek(p)));
    return true;
}

static bool parse_number(struct parser *p)
{
    if (*p->at == '-') p->at++;
    if (peek(p) == '0') {
        p->at++;
        if (is_digit(peek(p))) return fail(p, "leading zero");
    } else if (!skip_digits(p)) {
        return false;
    }
    if (peek(p) == '.') {
        p->at++;
        if (!skip_digits(p)) return false;
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        if (peek(p) == '+' || peek(p) == '-') p->at++;
        if (!skip_digits(p)) return false;
    }
    return true;
}

static bool parse_word(struct parser *p, str word)
{
    size_t left = (size_t)(p->end - p->at);
    if (left < word.len || memcmp(p->at, word.p, word.len) != 0) return fail(p, "unexpected word");
    p->at += word.len;
    return true;
}

/* Keys. */

static void key_set_put(struct key_set *set, uint64_t hash, const struct json *member)
{
    size_t mask = set->capacity - 1, i = hash & mask;
    while (set->slots[i].member) i = (i + 1) & mask;
    set->slots[i] = (struct key_slot){hash, member};
}

/* Is the key of `member` new to the object, which does not hold the member yet? */
static bool key_is_new(struct parser *p, struct key_set *set, const struct json *object,
                       const struct json *member)
{
    str key = member->key;
    if (object->count < KEY_SET_FROM) {
        for (const struct json *m = object->child; m; m = m->next)
            if (m->key.len == key.len && memcmp(m->key.p, key.p, key.len) == 0) return false;
        return true;
    }
    if (!set->capacity) { /* begun with the members that the object has so far */
        if (!p->seeded) crypto_nonce(p->seed, sizeof p->seed);
        p->seeded = true;
        set->capacity = 4 * KEY_SET_FROM;
        set->slots = arena_array(p->arena, set->capacity, sizeof *set->slots);
        for (const struct json *m = object->child; m; m = m->next)
            key_set_put(set, map_hash(p->seed, m->key), m);
    }
    if (object->count * 2 >= set->capacity) {
        struct key_set old = *set;
        set->capacity = old.capacity * 2;
        set->slots = arena_array(p->arena, set->capacity, sizeof *set->slots);
        for (size_t i = 0; i < old.capacity; i++)
            if (old.slots[i].member) key_set_put(set, old.slots[i].hash, old.slots[i].member);
    }
    uint64_t hash = map_hash(p->seed, key);
    size_t mask = set->capacity - 1;
    for (size_t i = hash & mask; set->slots[i].member; i = (i + 1) & mask)
        if (set->slots[i].hash == hash && str_eq(set->slots[i].member->key, key)) return false;
    key_set_put(set, hash, member);
    return true;
}

/* Values. */

static struct json *value_new(struct parser *p)
{
    if (p->values == p->values_max) {
        fail_at(p, p->at, "too many values");
        return NULL;
    }
    p->values++;
    return ARENA_NEW(p->arena, struct json);
}

/* Take an opening bracket; leave() takes the closing one. */
static bool enter(struct parser *p)
{
    if (p->depth == JSON_DEPTH_MAX) return fail(p, "too deep");
    p->depth++;
    p->at++;
    return true;
}

static bool leave(struct parser *p)
{
    p->depth--;
    p->at++;
    return true;
}

/* "key": and the node for its value. */
static struct json *parse_key(struct parser *p, struct key_set *keys, const struct json *object)
{
    int c = next(p);
    const char *quote = p->at;
    if (c != '"') {
        fail(p, "expected a key");
        return NULL;
    }
    struct json *member = value_new(p);
    if (!member || !parse_string(p, &member->key)) return NULL;
    if (!key_is_new(p, keys, object, member)) {
        fail_at(p, quote, "duplicate key");
        return NULL;
    }
    if (next(p) != ':') {
        fail(p, "expected ':'");
        return NULL;
    }
    p->at++;
    return member;
}

static bool parse_object(struct parser *p, struct json *object)
{
    if (!enter(p)) return false;
    if (next(p) == '}') return leave(p);

    struct key_set keys = {0};
    for (struct json **tail = &object->child;; p->at++) {
        struct json *member = parse_key(p, &keys, object);
        if (!member || !parse_value(p, member)) return false;
        *tail = member;
        tail = &member->next;
        object->count++;
        int c = next(p);
        if (c == '}') return leave(p);
        if (c != ',') return fail(p, "expected ',' or '}'");
    }
}

static bool parse_array(struct parser *p, struct json *array)
{
    if (!enter(p)) return false;
    if (next(p) == ']') return leave(p);

    for (struct json **tail = &array->child;; p->at++) {
        struct json *member = value_new(p);
        if (!member || !parse_value(p, member)) return false;
        *tail = member;
        tail = &member->next;
        array->count++;
        int c = next(p);
        if (c == ']') return leave(p);
        if (c != ',') return fail(p, "expected ',' or ']'");
    }
}

static bool parse_typed(struct parser *p, struct json *value)
{
    switch (value->type) {
    case JSON_OBJECT:
        return parse_object(p, value);
    case JSON_ARRAY:
        return parse_array(p, value);
    case JSON_STRING:
        return parse_string(p, &value->text);
    case JSON_NUMBER:
        return parse_number(p);
    case JSON_TRUE:
        return parse_word(p, STR("true"));
    case JSON_FALSE:
        return parse_word(p, STR("false"));
    case JSON_NULL:
        return parse_word(p, STR("null"));
    }
    return false;
}

static bool parse_value(struct parser *p, struct json *value)
{
    int c = next(p);
    if (c == END || !json_type_plus_1[c]) return fail(p, "expected a value");
    value->type = (enum json_type)(json_type_plus_1[c] - 1);
    const char *start = p->at;
    if (!parse_typed(p, value)) return false;
    value->raw = (str){start, (size_t)(p->at - start)};
    if (value->type == JSON_NUMBER) value->text = value->raw;
    return true;
}

static enum err parse_up_to(struct arena *arena, str text, unsigned values_max,
                            struct json **ret_json, struct json_error *reterr)
{
    if (!text.len) text = STR_EMPTY; /* its pointer may be NULL */
    struct parser p = {
        .at = text.p, .end = text.p + text.len, .arena = arena, .values_max = values_max};
    struct json *root = value_new(&p);
    if (parse_value(&p, root) && (next(&p) == END || fail(&p, "trailing bytes"))) {
        *ret_json = root;
        return OK;
    }
    if (reterr) *reterr = (struct json_error){(size_t)(p.error_at - text.p), p.reason};
    return ERR_BAD_REQUEST;
}

enum err json_parse(struct arena *arena, str text, struct json **ret_json,
                    struct json_error *reterr)
{
    return parse_up_to(arena, text, JSON_VALUES_MAX, ret_json, reterr);
}

enum err json_parse_sent(struct arena *arena, str text, struct json **ret_json,
                         struct json_error *reterr)
{
    size_t values = JSON_VALUES_SURE + text.len / JSON_VALUE_BYTES;
    unsigned values_max = values < JSON_VALUES_MAX ? (unsigned)values : JSON_VALUES_MAX;
    return parse_up_to(arena, text, values_max, ret_json, reterr);
}

/* Lookups. */

const struct json *json_get(const struct json *object, str key)
{
    if (!object || object->type != JSON_OBJECT) return NULL;
    for (const struct json *m = object->child; m; m = m->next)
        if (str_eq(m->key, key)) return m;
    return NULL;
}

const struct json *json_at(const struct json *array, size_t index)
{
    if (!array || array->type != JSON_ARRAY || index >= array->count) return NULL;
    const struct json *m = array->child;
    while (index--) m = m->next;
    return m;
}

str json_text(const struct json *string)
{
    return string && string->type == JSON_STRING ? string->text : STR_EMPTY;
}

/* The digits of an integer literal behind its sign. -0 has no integer that is written back as -0.
 */
static enum err magnitude(const struct json *number, bool *ret_negative, uint64_t *ret_value)
{
    if (!number || number->type != JSON_NUMBER) return ERR_INVALID_FIELD;
    bool negative = number->text.p[0] == '-';
    uint64_t value;
    if (str_to_u64(str_drop(number->text, negative), &value)) return ERR_INVALID_FIELD;
    if (negative && value == 0) return ERR_INVALID_FIELD;
    *ret_negative = negative;
    *ret_value = value;
    return OK;
}

enum err json_u64(const struct json *number, uint64_t *ret_value)
{
    bool negative;
    uint64_t value;
    enum err e = magnitude(number, &negative, &value);
    if (e) return e;
    if (negative) return ERR_INVALID_FIELD;
    *ret_value = value;
    return OK;
}

enum err json_i64(const struct json *number, int64_t *ret_value)
{
    bool negative;
    uint64_t value;
    enum err e = magnitude(number, &negative, &value);
    if (e) return e;
    if (value > (uint64_t)INT64_MAX + negative) return ERR_INVALID_FIELD;
    *ret_value = (int64_t)(negative ? 0 - value : value);
    return OK;
}

/* strtod obeys the locale, and this process never calls setlocale: it stays "C", with a point. */
enum err json_f64(const struct json *number, double *ret_value)
{
    char text[JSON_F64_BYTES_MAX + 1];
    if (!number || number->type != JSON_NUMBER) return ERR_INVALID_FIELD;
    if (number->text.len > JSON_F64_BYTES_MAX) return ERR_INVALID_FIELD;
    memcpy(text, number->text.p, number->text.len);
    text[number->text.len] = '\0';

    double value = strtod(text, NULL);
    if (!isfinite(value)) return ERR_INVALID_FIELD;
    *ret_value = value;
    return OK;
}

/* The writer. */

void json_write_begin(struct json_writer *w, struct buf *out)
{
    *w = (struct json_writer){.out = out};
}

static bool in_object(const struct json_writer *w)
{
    return w->depth && (w->objects >> (w->depth - 1) & 1);
}

/* A value comes: does it need a comma, as it does unless it stands behind its key? */
static bool value_comes(struct json_writer *w)
{
    assert(in_object(w) ? w->keyed : w->depth || !w->comma); /* at the top, one value only */
    bool comma = w->comma && !w->keyed;
    w->comma = true;
    w->keyed = false;
    return comma;
}

static void value_begin(struct json_writer *w)
{
    if (value_comes(w)) buf_char(w->out, ',');
}

static void open_level(struct json_writer *w, bool object, char bracket)
{
    value_begin(w);
    assert(w->depth < JSON_DEPTH_MAX);
    uint64_t bit = (uint64_t)1 << w->depth++;
    w->objects = object ? w->objects | bit : w->objects & ~bit;
    w->comma = false;
    buf_char(w->out, bracket);
}

static void close_level(struct json_writer *w, bool object, char bracket)
{
    assert(w->depth && in_object(w) == object && !w->keyed);
    w->depth--;
    w->comma = true;
    buf_char(w->out, bracket);
}

void json_object(struct json_writer *w)
{
    open_level(w, true, '{');
}

void json_object_end(struct json_writer *w)
{
    close_level(w, true, '}');
}

void json_array(struct json_writer *w)
{
    open_level(w, false, '[');
}

void json_array_end(struct json_writer *w)
{
    close_level(w, false, ']');
}

/* Nothing but plain text? The last word, or half of a short one, overlaps with the one before it. */
static inline bool all_plain(const char *at, size_t len)
{
    char half[8];
    if (len < 4) {
        for (size_t i = 0; i < len; i++)
            if (!json_is_plain((unsigned char)at[i])) return false;
        return true;
    }
    if (len < 8) {
        memcpy(half, at, 4);
        memcpy(half + 4, at + len - 4, 4);
        return !json_specials(half);
    }
    for (size_t i = 0; i + 8 < len; i += 8)
        if (json_specials(at + i)) return false;
    return !json_specials(at + len - 8);
}

/* The first byte that must be escaped, or the end. Beyond ASCII those are U+2028 and U+2029: E2 80
 * A8 and A9. */
static const char *skip_unescaped(const char *at, const char *end)
{
    for (;;) {
        at = json_skip_plain(at, end);
        if (at == end || (unsigned char)*at < 0x80) return at;
        if (end - at >= 3 && memcmp(at, "\xe2\x80", 2) == 0 && (at[2] & 0xfe) == 0xa8) return at;
        at++;
    }
}

/* Write the escape for what stands at `at`; returns how many bytes that was. */
static size_t write_escape(struct buf *out, const char *at)
{
    static const char letters[0x80] = {['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                       ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't'};
    static const char digits[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*at;
    if (c >= 0x80) {
        buf_append(out, (unsigned char)at[2] == 0xa8 ? STR("\\u2028") : STR("\\u2029"));
        return 3;
    }
    if (letters[c])
        buf_append(out, (str){(char[]){'\\', letters[c]}, 2});
    else
        buf_append(out, (str){(char[]){'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]}, 6});
    return 1;
}

/* A text with what stands before and behind it, NUL for nothing. Most have nothing to escape, and
 * are copied in one piece. */
static void write_text(struct buf *out, char before, str text, char behind)
{
    if (!text.len) text = STR_EMPTY;
    const char *at = text.p, *end = text.p + text.len, *stop = end;
    if (!all_plain(at, text.len)) stop = skip_unescaped(at, end);
    if (stop == end) {
        char *to = buf_room(out, text.len + 2 + (before != 0) + (behind != 0)), *start = to;
        if (!to) return;
        if (before) *to++ = before;
        *to++ = '"';
        memcpy(to, text.p, text.len);
        to += text.len;
        *to++ = '"';
        if (behind) *to++ = behind;
        buf_added(out, (size_t)(to - start));
        return;
    }
    if (before) buf_char(out, before);
    buf_char(out, '"');
    for (;;) {
        buf_append(out, (str){at, (size_t)(stop - at)});
        if (stop == end) break;
        at = stop + write_escape(out, stop);
        stop = skip_unescaped(at, end);
    }
    buf_char(out, '"');
    if (behind) buf_char(out, behind);
}

void json_key(struct json_writer *w, str key)
{
    assert(in_object(w) && !w->keyed);
    write_text(w->out, w->comma ? ',' : '\0', key, ':');
    w->keyed = true;
}

void json_string(struct json_writer *w, str text)
{
    write_text(w->out, value_comes(w) ? ',' : '\0', text, '\0');
}

void json_number_u64(struct json_writer *w, uint64_t value)
{
    value_begin(w);
    buf_u64(w->out, value);
}

void json_number_i64(struct json_writer *w, int64_t value)
{
    value_begin(w);
    if (value < 0) buf_char(w->out, '-');
    buf_u64(w->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_bool(struct json_writer *w, bool value)
{
    json_raw(w, value ? STR("true") : STR("false"));
}

void json_null(struct json_writer *w)
{
    json_raw(w, STR("null"));
}

void json_raw(struct json_writer *w, str json)
{
    assert(json.len);
    value_begin(w);
    buf_append(w->out, json);
}

void json_member(struct json_writer *w, str key, str text)
{
    json_key(w, key);
    json_string(w, text);
}

void json_member_u64(struct json_writer *w, str key, uint64_t value)
{
    json_key(w, key);
    json_number_u64(w, value);
}

void json_member_i64(struct json_writer *w, str key, int64_t value)
{
    json_key(w, key);
    json_number_i64(w, value);
}

void json_member_bool(struct json_writer *w, str key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

void json_member_raw(struct json_writer *w, str key, str json)
{
    json_key(w, key);
    json_raw(w, json);
}

/* ---- documents ---- */

void json_doc_open(struct json_doc *doc, size_t bytes_max)
{
    buf_init(&doc->buf, bytes_max);
    json_write_begin(&doc->w, &doc->buf);
}

void json_doc_done(struct json_doc *doc)
{
    buf_done(&doc->buf);
}

str json_doc_copy(const struct json_doc *doc, struct arena *arena)
{
    return arena_str(arena, buf_str(&doc->buf));
}

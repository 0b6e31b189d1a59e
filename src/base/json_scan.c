/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON document that comes in pieces, judged as strictly as json.c does and without a tree; where
 * its members begin and end.
 *
 *                   ┌────────────── ',' in an array ──────────────┐
 *                   ▼                                             │
 *     start ──▶ VALUE ──▶ STRING, WORD, a number ──▶ AFTER ───────┤
 *                 ▲ └─ '[' ──▶ FIRST ── ']' ──────▶    ▲          │
 *                 │ └─ '{' ──▶ FIRST_KEY ── '}' ───────┘          │
 *                 │                 │ '"'                         │
 *                 └─ ':' ── COLON ◀─┴─ STRING ◀── KEY ◀── ',' in an object
 *
 *     STRING ──▶ ESCAPE ──▶ HEX ──▶ PAIR, PAIR_U ──▶ HEX        \n, \u00e9, \ud83d\ude00
 *            ──▶ CHAR                                           UTF-8 that the piece cuts
 *
 * Invariants:
 * 1. A state's function takes at least one byte, or leaves the state, or refuses.
 * 2. Whatever is open is a bit of `objects`, and JSON_DEPTH_MAX of them fit.
 * 3. BEGIN and END come in pairs, in order, and only at depth 1 of a document that is an object.
 *
 * The end of a number is the byte behind it, which is not taken with it; at the end of the document
 * json_scan_finish is that byte. The differential test and fuzz_json_scan hold every verdict against
 * json_parse, at every cut.
 */
#include "base/json_scan.h"

#include "base/json_int.h"

enum json_scan_state {
    VALUE,
    FIRST,     /* behind '[' */
    FIRST_KEY, /* behind '{' */
    KEY,
    COLON,
    AFTER,
    STRING,
    ESCAPE,
    HEX,
    PAIR,   /* the backslash of the second half */
    PAIR_U, /* its u */
    CHAR,
    WORD,
    MINUS, /* from here on: numbers */
    ZERO,
    INTEGER,
    POINT,
    FRACTION,
    EXPONENT,
    EXPONENT_SIGN,
    EXPONENT_DIGITS,
    REFUSED,
};

static_assert(JSON_DEPTH_MAX <= 64, "a bit for each level");

/* Where the scan stands in the piece that it was given. */
struct cursor {
    const char *start, *at, *end;
};

static uint64_t offset(const struct json_scan *scan, const struct cursor *c)
{
    return scan->at + (uint64_t)(c->at - c->start);
}

static enum json_scan_mark refuse(struct json_scan *scan)
{
    scan->state = REFUSED;
    return JSON_SCAN_REFUSED;
}

static bool at_member(const struct json_scan *scan)
{
    return scan->depth == 1 && (scan->objects & 1);
}

/* ---- values ---- */

/* A value ends before the byte at the cursor. */
static enum json_scan_mark end_value(struct json_scan *scan, uint64_t to)
{
    scan->state = AFTER;
    if (scan->depth == 0) {
        scan->ended = true;
        scan->document.to = to;
    }
    if (!at_member(scan)) return JSON_SCAN_MORE;
    scan->member.to = to;
    return JSON_SCAN_END;
}

static enum json_scan_mark close_level(struct json_scan *scan, struct cursor *c)
{
    c->at++;
    scan->depth--;
    return end_value(scan, offset(scan, c));
}

static void open_string(struct json_scan *scan, bool key)
{
    scan->state = STRING;
    scan->in_key = key;
    if (!key || !at_member(scan)) return;
    scan->key.len = 0;
    scan->key_cut = false;
}

static enum json_scan_mark open_value(struct json_scan *scan, struct cursor *c)
{
    unsigned char first = (unsigned char)*c->at;
    if (!json_type_plus_1[first]) return refuse(scan);
    struct json_scan_value value = {.type = (enum json_type)(json_type_plus_1[first] - 1),
                                    .from = offset(scan, c)};
    if (scan->depth == 0) {
        scan->begun = true;
        scan->document = value;
    } else if (at_member(scan) && !scan->announced) {
        scan->member = value;
        scan->announced = true;
        return JSON_SCAN_BEGIN;
    }
    bool opens = value.type == JSON_OBJECT || value.type == JSON_ARRAY;
    if (opens && scan->depth == JSON_DEPTH_MAX) return refuse(scan);
    scan->announced = false;
    c->at++;
    if (opens) {
        bool object = value.type == JSON_OBJECT;
        uint64_t bit = (uint64_t)1 << scan->depth++;
        scan->objects = object ? scan->objects | bit : scan->objects & ~bit;
        scan->state = object ? FIRST_KEY : FIRST;
    } else if (value.type == JSON_STRING) {
        open_string(scan, false);
    } else if (value.type == JSON_NUMBER) {
        scan->state = first == '-' ? MINUS : first == '0' ? ZERO : INTEGER;
    } else {
        scan->word = first == 't' ? "rue" : first == 'f' ? "alse" : "ull";
        scan->state = WORD;
    }
    return JSON_SCAN_MORE;
}

/* Between tokens. */
static enum json_scan_mark take_between(struct json_scan *scan, struct cursor *c)
{
    while (json_is_space((unsigned char)*c->at))
        if (++c->at == c->end) return JSON_SCAN_MORE;
    char byte = *c->at;
    bool object = scan->depth && (scan->objects >> (scan->depth - 1) & 1);
    switch (scan->state) {
    case FIRST:
        return byte == ']' ? close_level(scan, c) : open_value(scan, c);
    case FIRST_KEY:
    case KEY:
        if (byte == '}' && scan->state == FIRST_KEY) return close_level(scan, c);
        if (byte != '"') return refuse(scan);
        open_string(scan, true);
        break;
    case COLON:
        if (byte != ':') return refuse(scan);
        scan->state = VALUE;
        break;
    case AFTER:
        if (scan->depth == 0) return refuse(scan);
        if (byte == (object ? '}' : ']')) return close_level(scan, c);
        if (byte != ',') return refuse(scan);
        scan->state = object ? KEY : VALUE;
        break;
    default:
        return open_value(scan, c);
    }
    c->at++;
    return JSON_SCAN_MORE;
}

/* ---- words and numbers ---- */

static enum json_scan_mark take_word(struct json_scan *scan, struct cursor *c)
{
    if (*c->at != *scan->word) return refuse(scan);
    c->at++;
    return *++scan->word ? JSON_SCAN_MORE : end_value(scan, offset(scan, c));
}

static bool number_may_end(unsigned state)
{
    return state == ZERO || state == INTEGER || state == FRACTION || state == EXPONENT_DIGITS;
}

/* The state behind a byte of a number; REFUSED: it is not part of one. */
static enum json_scan_state number_next(unsigned state, char byte)
{
    bool digit = byte >= '0' && byte <= '9';
    switch (state) {
    case MINUS:
        return byte == '0' ? ZERO : digit ? INTEGER : REFUSED;
    case POINT:
    case FRACTION:
        if (digit) return FRACTION;
        break;
    case EXPONENT:
        if (byte == '+' || byte == '-') return EXPONENT_SIGN;
        return digit ? EXPONENT_DIGITS : REFUSED;
    case EXPONENT_SIGN:
    case EXPONENT_DIGITS:
        return digit ? EXPONENT_DIGITS : REFUSED;
    case INTEGER:
        if (digit) return INTEGER;
        break;
    default:
        break;
    }
    bool whole = state == ZERO || state == INTEGER;
    if (byte == '.' && whole) return POINT;
    return (byte == 'e' || byte == 'E') && (whole || state == FRACTION) ? EXPONENT : REFUSED;
}

/* A digit behind a leading zero ends the number too: no value goes on like that. */
static enum json_scan_mark take_number(struct json_scan *scan, struct cursor *c)
{
    for (; c->at < c->end; c->at++) {
        enum json_scan_state next = number_next(scan->state, *c->at);
        if (next == REFUSED && number_may_end(scan->state)) return end_value(scan, offset(scan, c));
        if (next == REFUSED) return refuse(scan);
        scan->state = (unsigned char)next;
    }
    return JSON_SCAN_MORE;
}

/* ---- strings ---- */

static void emit(struct json_scan *scan, str piece)
{
    if (!at_member(scan) || !piece.len) return;
    if (!scan->in_key) {
        if (scan->on_text) scan->on_text(scan->arg, piece);
        return;
    }
    size_t room = sizeof scan->key.text - scan->key.len;
    if (piece.len > room) scan->key_cut = true;
    size_t len = piece.len > room ? room : piece.len;
    memcpy(scan->key.text + scan->key.len, piece.p, len);
    scan->key.len += len;
}

/* Whether it is new, as far as can be remembered. */
static bool remember_key(struct json_scan *scan)
{
    if (scan->key_cut) return true;
    for (size_t i = 0; i < scan->key_count; i++)
        if (scan->keys[i].len == scan->key.len &&
            memcmp(scan->keys[i].text, scan->key.text, scan->key.len) == 0)
            return false;
    if (scan->key_count < COUNT(scan->keys)) scan->keys[scan->key_count++] = scan->key;
    return true;
}

static enum json_scan_mark close_string(struct json_scan *scan, struct cursor *c)
{
    if (!scan->in_key) {
        c->at++;
        return end_value(scan, offset(scan, c));
    }
    if (at_member(scan) && !remember_key(scan)) return refuse(scan);
    c->at++;
    scan->state = COLON;
    return JSON_SCAN_MORE;
}

/* The first byte of a character that is not whole in this piece, or is none (RFC 3629 section 4). */
static enum json_scan_mark open_char(struct json_scan *scan, struct cursor *c)
{
    unsigned lead = (unsigned char)*c->at;
    scan->broken_char = lead < 0xc2 || lead > 0xf4;
    if (scan->broken_char) return refuse(scan);
    scan->left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    scan->low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    scan->high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    scan->bytes[0] = *c->at++;
    scan->byte_count = 1;
    scan->state = CHAR;
    return JSON_SCAN_MORE;
}

static enum json_scan_mark take_char(struct json_scan *scan, struct cursor *c)
{
    unsigned char byte = (unsigned char)*c->at;
    scan->broken_char = byte < scan->low || byte > scan->high;
    if (scan->broken_char) return refuse(scan);
    scan->low = 0x80;
    scan->high = 0xbf;
    scan->bytes[scan->byte_count++] = *c->at++;
    if (--scan->left) return JSON_SCAN_MORE;
    scan->state = STRING;
    emit(scan, (str){scan->bytes, scan->byte_count});
    return JSON_SCAN_MORE;
}

static enum json_scan_mark take_string(struct json_scan *scan, struct cursor *c)
{
    while (c->at < c->end) {
        const char *start = c->at;
        c->at = json_skip_plain(c->at, c->end);
        if (c->at < c->end && (unsigned char)*c->at >= 0x80) {
            const char *after = utf8_skip(c->at, c->end);
            bool whole = after > c->at;
            c->at = after;
            emit(scan, (str){start, (size_t)(c->at - start)});
            if (whole) continue;
            return open_char(scan, c);
        }
        emit(scan, (str){start, (size_t)(c->at - start)});
        if (c->at == c->end) break;
        if (*c->at == '"') return close_string(scan, c);
        if (*c->at != '\\') return refuse(scan);
        c->at++;
        scan->state = ESCAPE;
        break;
    }
    return JSON_SCAN_MORE;
}

static enum json_scan_mark take_escape(struct json_scan *scan, struct cursor *c)
{
    char letter = json_escapes[(unsigned char)*c->at];
    if (!letter && *c->at != 'u') return refuse(scan);
    c->at++;
    scan->state = letter ? STRING : HEX;
    scan->digits = 0;
    scan->unit = scan->top = 0;
    if (letter) emit(scan, (str){&letter, 1});
    return JSON_SCAN_MORE;
}

/* Four digits of \uXXXX; behind the first half of a pair must follow the second. */
static enum json_scan_mark take_hex(struct json_scan *scan, struct cursor *c)
{
    int digit = char_hex(*c->at);
    if (digit < 0) return refuse(scan);
    uint32_t unit = scan->unit * 16 + (uint32_t)digit;
    bool last = scan->digits == 3;
    bool second = unit >= 0xdc00 && unit <= 0xdfff;
    if (last && second != (scan->top != 0)) return refuse(scan);
    c->at++;
    scan->unit = unit;
    scan->digits++;
    if (!last) return JSON_SCAN_MORE;
    if (unit >= 0xd800 && unit < 0xdc00) {
        scan->top = unit;
        scan->state = PAIR;
        return JSON_SCAN_MORE;
    }
    uint32_t code = second ? 0x10000 + ((scan->top - 0xd800) << 10) + (unit - 0xdc00) : unit;
    char utf8[4];
    scan->state = STRING;
    emit(scan, (str){utf8, utf8_write(code, utf8)});
    return JSON_SCAN_MORE;
}

static enum json_scan_mark take_pair(struct json_scan *scan, struct cursor *c)
{
    bool slash = scan->state == PAIR;
    if (*c->at != (slash ? '\\' : 'u')) return refuse(scan);
    c->at++;
    scan->state = slash ? PAIR_U : HEX;
    scan->digits = 0;
    scan->unit = 0;
    return JSON_SCAN_MORE;
}

/* ---- the scan ---- */

static enum json_scan_mark take(struct json_scan *scan, struct cursor *c)
{
    switch (scan->state) {
    case STRING:
        return take_string(scan, c);
    case ESCAPE:
        return take_escape(scan, c);
    case HEX:
        return take_hex(scan, c);
    case PAIR:
    case PAIR_U:
        return take_pair(scan, c);
    case CHAR:
        return take_char(scan, c);
    case WORD:
        return take_word(scan, c);
    case REFUSED:
        return JSON_SCAN_REFUSED;
    default:
        return scan->state >= MINUS ? take_number(scan, c) : take_between(scan, c);
    }
}

void json_scan_init(struct json_scan *scan, void (*on_text)(void *arg, str piece), void *arg)
{
    *scan = (struct json_scan){.state = VALUE, .on_text = on_text, .arg = arg};
}

enum json_scan_mark json_scan_next(struct json_scan *scan, str *bytes)
{
    if (!bytes->len) return scan->state == REFUSED ? JSON_SCAN_REFUSED : JSON_SCAN_MORE;
    struct cursor c = {bytes->p, bytes->p, bytes->p + bytes->len};
    enum json_scan_mark mark = JSON_SCAN_MORE;
    while (mark == JSON_SCAN_MORE && c.at < c.end) mark = take(scan, &c);
    size_t taken = (size_t)(c.at - c.start);
    scan->at += taken;
    *bytes = str_drop(*bytes, taken);
    return mark;
}

str json_scan_key(const struct json_scan *scan)
{
    return (str){scan->key.text, scan->key.len};
}

enum err json_scan_finish(struct json_scan *scan)
{
    if (scan->depth == 0 && number_may_end(scan->state)) end_value(scan, scan->at);
    if (scan->state == CHAR) scan->broken_char = true;
    return scan->state == AFTER && scan->depth == 0 ? OK : ERR_BAD_REQUEST;
}

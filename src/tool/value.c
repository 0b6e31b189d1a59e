/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON values compared exactly; dates, addresses and URIs recognised.
 *
 * A number stays the text that it is. Two are compared by sign, then by where their first digit
 * that is not 0 stands, then digit by digit; so 9007199254740993, 0.1 and 1e400 are what they say.
 *
 *     -0.00120e2      at ▶ 12 ◀ end, exponent 0, negative          0.12 x 10^0
 *      12.0           at ▶ 12 ◀ end, exponent 2                    0.12 x 10^2
 *
 * Forms are checked as the RFCs have them, without their obsolete parts. To add one, write its
 * function and give it a row in formats[], and one in docs/TOOLS.md.
 */
#include "tool/value.h"

#include <string.h>

#include "base/clock.h"

/* ---- numbers ---- */

enum { EXPONENT_MAX = 1000 * 1000 * 1000 }; /* of what is written behind the e; larger is as good */

static int64_t read_exponent(str digits)
{
    bool negative = digits.len && digits.p[0] == '-';
    int64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (!char_is_digit(digits.p[i])) continue; /* the sign */
        value = value * 10 + (digits.p[i] - '0');
        if (value > EXPONENT_MAX) value = EXPONENT_MAX;
    }
    return negative ? -value : value;
}

struct decimal decimal_read(str number)
{
    struct decimal d = {.negative = number.p[0] == '-'};
    const char *at = number.p + (d.negative ? 1 : 0), *end = number.p + number.len;
    const char *stop = at;
    while (stop < end && *stop != 'e' && *stop != 'E') stop++;
    if (stop < end) d.exponent = read_exponent((str){stop + 1, (size_t)(end - stop - 1)});

    const char *point = memchr(at, '.', (size_t)(stop - at));
    const char *units_end = point ? point : stop;
    while (at < stop && (*at == '0' || *at == '.')) at++;
    while (stop > at && (stop[-1] == '0' || stop[-1] == '.')) stop--;
    if (at == stop) return (struct decimal){0};
    /* digits before the point, or zeros behind it and in front of the first digit */
    d.exponent += at < units_end ? units_end - at : units_end + 1 - at;
    d.at = at;
    d.end = stop;
    return d;
}

/* The next digit, 0 behind the last. */
static char next_digit(const char **at, const char *end)
{
    if (*at < end && **at == '.') (*at)++;
    return *at < end ? *(*at)++ : '0';
}

static int cmp_magnitude(const struct decimal *a, const struct decimal *b)
{
    if (a->exponent != b->exponent) return a->exponent < b->exponent ? -1 : 1;
    const char *p = a->at, *q = b->at;
    while (p < a->end || q < b->end) {
        int difference = next_digit(&p, a->end) - next_digit(&q, b->end);
        if (difference) return difference < 0 ? -1 : 1;
    }
    return 0;
}

static int sign(const struct decimal *number)
{
    return number->at == number->end ? 0 : number->negative ? -1 : 1;
}

int decimal_cmp(const struct decimal *a, const struct decimal *b)
{
    int left = sign(a), right = sign(b);
    if (left != right) return left < right ? -1 : 1;
    return left == 0 ? 0 : left * cmp_magnitude(a, b);
}

bool decimal_whole(const struct decimal *number)
{
    int64_t digits = number->end - number->at;
    if (digits && memchr(number->at, '.', (size_t)digits)) digits--;
    return digits <= number->exponent || digits == 0;
}

/* ---- values ---- */

static bool take_step(size_t *steps)
{
    if (*steps == 0) return false;
    (*steps)--;
    return true;
}

/* Members mostly stand in the same order: look where the last one was found, then from the front. */
static const struct json *find_member(const struct json *object, const struct json *guess, str key,
                                      size_t *steps)
{
    if (guess && str_eq(guess->key, key)) return guess;
    for (const struct json *m = object->child; m; m = m->next) {
        if (!take_step(steps)) return NULL;
        if (str_eq(m->key, key)) return m;
    }
    return NULL;
}

/* Keys are unique, so of two objects with as many members each need only be found. */
static bool same_members(const struct json *a, const struct json *b, size_t *steps)
{
    const struct json *guess = b->child;
    for (const struct json *m = a->child; m; m = m->next) {
        const struct json *other = find_member(b, guess, m->key, steps);
        if (!other || !value_same(m, other, steps)) return false;
        guess = other->next;
    }
    return true;
}

static bool same_items(const struct json *a, const struct json *b, size_t *steps)
{
    const struct json *other = b->child;
    for (const struct json *item = a->child; item; item = item->next, other = other->next)
        if (!value_same(item, other, steps)) return false;
    return true;
}

bool value_same(const struct json *a, const struct json *b, size_t *steps)
{
    if (!take_step(steps)) return false;
    if (a->type != b->type || a->count != b->count) return false;
    switch (a->type) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        return true;
    case JSON_STRING:
        return str_eq(a->text, b->text);
    case JSON_NUMBER: {
        struct decimal left = decimal_read(a->text), right = decimal_read(b->text);
        return decimal_cmp(&left, &right) == 0;
    }
    case JSON_ARRAY:
        return same_items(a, b, steps);
    case JSON_OBJECT:
        return same_members(a, b, steps);
    }
    return false;
}

uint64_t value_chars(str text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return count;
}

void value_one_line(char *json, size_t len)
{
    const uint64_t ones = 0x0101010101010101;
    for (size_t i = 0; i < len; i++) {
        uint64_t word; /* eight bytes without a control character are skipped at once */
        while (len - i >= sizeof word) {
            memcpy(&word, json + i, sizeof word);
            if ((word - ones * 0x20) & ~word & ones * 0x80) break;
            i += sizeof word;
        }
        if (i == len) break;
        if (json[i] == '\n' || json[i] == '\r' || json[i] == '\t') json[i] = ' ';
    }
}

/* ---- forms of text ---- */

static bool all_of(str text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!char_is_alnum(text.p[i]) && (!text.p[i] || !strchr(others, text.p[i]))) return false;
    return true;
}

static bool is_date(str text)
{
    msec at;
    return text.len == sizeof "2026-11-16" - 1 && clock_parse(text, &at) == OK;
}

static bool is_date_time(str text)
{
    msec at;
    return text.len > sizeof "2026-11-16" - 1 && clock_parse(text, &at) == OK;
}

/* "a.b.c": parts that are not empty. */
static bool dotted(str text, bool (*part_fits)(str part))
{
    for (str rest = text; rest.p;) {
        str part = str_split(&rest, '.');
        if (!part.len || !part_fits(part)) return false;
    }
    return text.len > 0;
}

static bool is_atom(str text)
{
    return all_of(text, "!#$%&'*+-/=?^_`{|}~");
}

static bool is_label(str text)
{
    return text.len <= 63 && all_of(text, "-") && text.p[0] != '-' && !str_ends(text, STR("-"));
}

/* RFC 5321, but for quoted names and addresses in brackets, which nobody means. */
static bool is_email(str text)
{
    ptrdiff_t at = str_find_char(text, '@');
    if (at < 0) return false;
    str name = {text.p, (size_t)at}, domain = str_drop(text, (size_t)at + 1);
    return name.len <= 64 && domain.len <= 253 && dotted(name, is_atom) && dotted(domain, is_label);
}

static bool escapes_fit(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] == '%' &&
            (text.len - i < 3 || char_hex(text.p[i + 1]) < 0 || char_hex(text.p[i + 2]) < 0))
            return false;
    return true;
}

#define NAME_CHARS "-._~!$&'()*+,;=%"
#define URI_CHARS  NAME_CHARS ":@/?"

/* "user@host:port"; brackets stand only around an address. */
static bool authority_fits(str text)
{
    ptrdiff_t user = str_find_char(text, '@');
    str host = str_drop(text, user < 0 ? 0 : (size_t)user + 1);
    str before = {text.p, user < 0 ? 0 : (size_t)user}, address = STR_EMPTY;
    if (host.len && host.p[0] == '[') {
        ptrdiff_t close = str_find_char(host, ']');
        address = (str){host.p + 1, close < 1 ? 0 : (size_t)close - 1};
        if (!address.len) return false;
        host = str_drop(host, (size_t)close + 1);
    }
    str name = str_split(&host, ':');
    for (size_t i = 0; host.p && i < host.len; i++)
        if (!char_is_digit(host.p[i])) return false; /* the port */
    if (address.len && name.len) return false;
    return all_of(before, NAME_CHARS ":") && all_of(address, ":.") && all_of(name, NAME_CHARS);
}

bool text_is_uri(str text)
{
    ptrdiff_t colon = str_find_char(text, ':');
    str scheme = {text.p, colon < 0 ? 0 : (size_t)colon};
    if (!scheme.len || char_is_digit(scheme.p[0]) || !char_is_alnum(scheme.p[0]) ||
        !all_of(scheme, "+-."))
        return false;
    str rest = str_drop(text, (size_t)colon + 1);
    if (!escapes_fit(rest)) return false;
    str authority = STR_EMPTY;
    if (str_starts(rest, STR("//"))) {
        size_t len = 2;
        while (len < rest.len && !strchr("/?#", rest.p[len])) len++;
        authority = (str){rest.p + 2, len - 2};
        rest = str_drop(rest, len);
    }
    str before_fragment = str_split(&rest, '#');
    str fragment = rest.p ? rest : STR_EMPTY;
    return authority_fits(authority) && all_of(before_fragment, URI_CHARS) &&
           all_of(fragment, URI_CHARS);
}

static const struct text_format formats[] = {
    {"date-time", "be a date-time such as 2026-11-16T15:00:00+08:00", is_date_time},
    {"date", "be a date such as 2026-11-16", is_date},
    {"email", "be an e-mail address such as name@example.org", is_email},
    {"uri", "be a URI such as https://example.org/page", text_is_uri},
};

const struct text_format *text_format_find(str name)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (str_eq(name, str_c(formats[i].name))) return &formats[i];
    return NULL;
}

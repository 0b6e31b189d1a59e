/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON values as a schema sees them: numbers compared exactly, values compared deeply, texts of a
 * known form. Pure; nothing is allocated.
 */
#ifndef TOOL_VALUE_H
#define TOOL_VALUE_H

#include "base/json.h"

/* A number as it is written, ready to be compared: 0.d1d2d3... x 10^exponent. Borrows the text, and
 * is exact at any length: no number passes through a double. */
struct decimal {
    const char *at, *end; /* the digits, first and last of them not 0, perhaps with a point between;
                             none: zero */
    int64_t exponent;
    bool negative;
};

struct decimal decimal_read(str number); /* as JSON has it */
int decimal_cmp(const struct decimal *a, const struct decimal *b);
bool decimal_whole(const struct decimal *number); /* 1.0 and 1e3 are */

/* The same value: 1 and 1.0 are, and the order of an object's members does not matter. Each value
 * looked at takes one of *steps; when none are left the answer is false and *steps is 0. */
bool value_same(const struct json *a, const struct json *b, size_t *steps);

uint64_t value_chars(str text); /* characters of valid UTF-8 */

/* Put JSON on one line, in place: line ends and tabs stand only between its tokens, never in them. */
void value_one_line(char *json, size_t len);

/* Forms of text. */
struct text_format {
    const char *name; /* "date-time" */
    const char *must; /* "be a date-time such as ..." */
    bool (*fits)(str text);
};
const struct text_format *text_format_find(str name); /* NULL if there is none */

/* An absolute URI of RFC 3986: a scheme, and only characters that may stand in one. */
bool text_is_uri(str text);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/str.h"

bool utf8_valid(str text);

/* The first byte at or after `at` that does not belong to a valid sequence of two bytes or more:
 * an ASCII byte, an error, or `end`. */
const char *utf8_skip(const char *at, const char *end);

/* Write the character (a valid code point, not a surrogate); returns how many bytes that took, 1 to
 * 4, and touches no more. */
size_t utf8_write(uint32_t code, char *out);

/* How many UTF-16 units valid UTF-8 has: what `offset` counts on the wire. */
uint64_t utf8_utf16_units(str text);

#endif

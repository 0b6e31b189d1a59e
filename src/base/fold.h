/* SPDX-License-Identifier: Apache-2.0
 *
 * Letters without their case: what Unicode calls simple case folding, one character for one. So "Ä"
 * and "ä", "Σ", "σ" and "ς", "Я" and "я", "Ａ" and "ａ" are the same; "ß" and "ss" are not.
 */
#ifndef BASE_FOLD_H
#define BASE_FOLD_H

#include "base/str.h"

enum { FOLD_GROWTH = 2 }; /* folded UTF-8 is at most so many times as long (U+023A: 2 bytes to 3) */

uint32_t fold_char(uint32_t code);

/* May a character whose UTF-8 begins with this byte have another form? Not so for all of Chinese,
 * and for ASCII, which fold_char leaves to whoever asks. */
extern const bool fold_leads[256];

/* The character of two bytes or more at the beginning of [at, end), and how many bytes it has; 0
 * bytes if it is not valid UTF-8. */
uint32_t fold_decode(const char *at, const char *end, size_t *ret_bytes);

/* Valid UTF-8 folded, ASCII included. `out` has room for FOLD_GROWTH * text.len bytes; returns how
 * many were written. */
size_t fold_write(str text, char *out);

#endif

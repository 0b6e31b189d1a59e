/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids. Ours are 26 letters and digits made from 16 random bytes that the caller brings, so that a
 * pure step can make ids and a replay makes the same ones. A client's id is taken if id_valid says
 * so.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/str.h"

enum { ID_RANDOM_BYTES = 16, ID_BYTES = 27, ID_CLIENT_BYTES_MAX = 128 };

/* Lower-case base 32 (no i, l, o, u) of all 128 bits, and a NUL. */
void id_make(const unsigned char random[static ID_RANDOM_BYTES], char out[static ID_BYTES]);

/* id_make from the system's random source. */
void id_random(char out[static ID_BYTES]);

/* 1 to 128 of [A-Za-z0-9._:-]. */
bool id_valid(str id);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own ids, made and read, and which ids of a client are valid. 26 digits of five bits hold 130
 * bits: the first digit carries the top three bits only.
 */
#include "base/id.h"

#include "base/crypto.h"

void id_make(const unsigned char random[static ID_RANDOM_BYTES], char out[static ID_BYTES])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    unsigned bits = 0, held = 2; /* two zero bits before the 128 make it a multiple of five */
    char *p = out;
    for (size_t i = 0; i < ID_RANDOM_BYTES; i++) {
        bits = bits << 8 | random[i];
        for (held += 8; held >= 5; held -= 5) *p++ = digits[bits >> (held - 5) & 31];
    }
    *p = '\0';
}

void id_random(char out[static ID_BYTES])
{
    unsigned char random[ID_RANDOM_BYTES];
    crypto_nonce(random, sizeof random);
    id_make(random, out);
}

bool id_valid(str id)
{
    if (id.len < 1 || id.len > ID_CLIENT_BYTES_MAX) return false;
    for (size_t i = 0; i < id.len; i++) {
        char c = id.p[i];
        bool letter = char_lower(c) >= 'a' && char_lower(c) <= 'z';
        bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && c != '.' && c != '_' && c != ':' && c != '-') return false;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8, checked and written. The lead byte says how many bytes follow and which range the second
 * may have (RFC 3629 section 4); every later byte is 80..BF.
 *
 *     lead     bytes   second
 *     C2..DF   2       80..BF
 *     E0       3       A0..BF    (below: overlong)
 *     E1..EF   3       80..BF    (but ED: 80..9F, above: surrogates)
 *     F0       4       90..BF    (below: overlong)
 *     F1..F3   4       80..BF
 *     F4       4       80..8F    (above: past U+10FFFF)
 */
#include "base/utf8.h"

/* Bytes of the valid sequence that starts here with a byte of 80 or more; 0 if there is none. */
static size_t sequence_len(const unsigned char *p, size_t left)
{
    unsigned lead = p[0], low = 0x80, high = 0xbf;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (left < len) return 0;

    switch (lead) {
    case 0xe0:
        low = 0xa0;
        break;
    case 0xed:
        high = 0x9f;
        break;
    case 0xf0:
        low = 0x90;
        break;
    case 0xf4:
        high = 0x8f;
        break;
    default:
        break;
    }
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return len;
}

const char *utf8_skip(const char *at, const char *end)
{
    while (at < end && (unsigned char)*at >= 0x80) {
        size_t len = sequence_len((const unsigned char *)at, (size_t)(end - at));
        if (!len) break;
        at += len;
    }
    return at;
}

bool utf8_valid(str text)
{
    if (!text.len) return true;
    const char *at = text.p, *end = text.p + text.len;
    while (at < end) {
        const char *next = utf8_skip(at, end);
        while (next < end && (unsigned char)*next < 0x80) next++;
        if (next == at) return false;
        at = next;
    }
    return true;
}

size_t utf8_write(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    static const unsigned char lead[] = {[2] = 0xc0, [3] = 0xe0, [4] = 0xf0};
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(lead[len] | code);
    return len;
}

/* Each character is one unit, and one of four bytes two. */
uint64_t utf8_utf16_units(str text)
{
    uint64_t units = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        if ((byte & 0xc0) != 0x80) units += byte >= 0xf0 ? 2 : 1;
    }
    return units;
}

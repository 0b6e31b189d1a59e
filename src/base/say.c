/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for messages: the words of others made safe to print, and "did you mean". Everything here
 * returns by value, so that a refusal stays one expression.
 */
#include "base/say.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { SAY_BYTES_MAX = 64 };

/* Bytes of the character at the start of text: 0 if it is one that must not be printed. */
static size_t plain_char(str text)
{
    /* Characters beyond ASCII that are invisible or end a line; "\xC2" stands for all of C1. */
    static const str hidden[] = {
        STR("\xE2\x80\xA8"), STR("\xE2\x80\xA9"), /* line and paragraph separator */
        STR("\xEF\xBB\xBF"),                      /* byte order mark */
        STR("\xEF\xBF\xBE"), STR("\xEF\xBF\xBF"), /* non-characters */
    };

    unsigned char first = (unsigned char)text.p[0];
    if (first < 0x80) return first >= 0x20 && first != 0x7F;
    size_t len = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (len > text.len || !utf8_valid((str){text.p, len})) return 0;
    if (first == 0xC2 && (unsigned char)text.p[1] < 0xA0) return 0;
    for (size_t i = 0; i < COUNT(hidden); i++)
        if (str_starts(text, hidden[i])) return 0;
    return len;
}

struct said say(str text)
{
    struct said said = {0};
    size_t used = 0;
    while (text.len) {
        size_t len = plain_char(text);
        size_t taken = len ? len : 1;
        if (used + taken > SAY_BYTES_MAX) break;
        if (len)
            memcpy(said.text + used, text.p, len);
        else
            said.text[used] = '?';
        used += taken;
        text = str_drop(text, taken);
    }
    if (text.len) memcpy(said.text + used, "...", 3);
    return said;
}

bool say_plain(str text)
{
    while (text.len) {
        size_t len = plain_char(text);
        if (len == 0) return false;
        text = str_drop(text, len);
    }
    return true;
}

void nearest_init(struct nearest *n, str unknown)
{
    *n = (struct nearest){.unknown = unknown, .distance = UINT32_MAX};
}

void nearest_offer(struct nearest *n, str compared, const char *name)
{
    unsigned distance = str_distance(n->unknown, compared);
    if (distance >= n->distance) return;
    n->distance = distance;
    snprintf(n->name, sizeof n->name, "%s", name);
}

/* Half the letters may be wrong, or two in a short name; further away it would be a guess. */
const char *nearest_name(const struct nearest *n)
{
    size_t allowed = n->unknown.len < 4 ? 2 : n->unknown.len / 2;
    return n->distance <= allowed ? n->name : NULL;
}

struct said_nearest say_nearest(const struct nearest *n, const char *otherwise)
{
    struct said_nearest said;
    const char *name = nearest_name(n);
    if (name)
        snprintf(said.text, sizeof said.text, "; did you mean \"%s\"?", name);
    else
        snprintf(said.text, sizeof said.text, "; %s", otherwise);
    return said;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What adapters of chat platforms share: how an errand ends, and texts in addresses; pure.
 */
#include "chat/platform/platform_errand.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ui/text.h"

bool errand_done(struct errand *errand)
{
    errand->verdict = VERDICT_DONE;
    errand->detail[0] = '\0';
    return false;
}

PRINTF(3, 0)
static void set_end(struct errand *errand, enum errand_verdict verdict, const char *format,
                    va_list args)
{
    vsnprintf(errand->detail, sizeof errand->detail, format, args);
    size_t len = strlen(errand->detail);
    while (len && !utf8_valid((str){errand->detail, len})) errand->detail[--len] = '\0';
    errand->verdict = verdict;
}

bool errand_end(struct errand *errand, enum errand_verdict verdict, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_end(errand, verdict, format, args);
    va_end(args);
    return false;
}

bool errand_end_for(struct errand *errand, enum errand_verdict verdict, msec wait_ms,
                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_end(errand, verdict, format, args);
    va_end(args);
    errand->wait_ms = wait_ms;
    return false;
}

str url_escape(struct arena *arena, str text, const char *also)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_array(arena, text.len + 1, 3), *at = out;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (plain || (c && (strchr("-._~", c) || strchr(also, c)))) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '%';
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    }
    return (str){out, (size_t)(at - out)};
}

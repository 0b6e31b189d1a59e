/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as Markdown: what comes out is valid where what went in was, and not much longer. Any JSON
 * as a card: its lines fit, also when they are cut.
 */
#include <stdlib.h>

#include "base/json.h"
#include "ui/plain.h"
#include "ui/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) abort();
}

static size_t chars(str text)
{
    size_t count = 0;
    for (; text.len; count++) ui_next_char(&text);
    return count;
}

static void check_card(struct arena *arena, str card, enum ui_locale locale)
{
    str lines = plain_card(arena, card, locale, SIZE_MAX);
    must(utf8_valid(lines) && ui_trim(lines).len == lines.len);
    size_t all = chars(lines);
    for (size_t max = 0; max < 20; max++) {
        str cut = plain_card(arena, card, locale, max);
        must(utf8_valid(cut) && chars(cut) <= max);
        must(max < all || str_eq(cut, lines));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str text = {(const char *)data, size};
    str plain = plain_markdown(&arena, text);
    must(plain.len <= 3 * size + 3);
    if (utf8_valid(text)) must(utf8_valid(plain));
    check_card(&arena, text, size & 1 ? UI_ZH : UI_EN);
    return 0;
}

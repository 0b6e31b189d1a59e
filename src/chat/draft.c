/* SPDX-License-Identifier: Apache-2.0
 *
 * A message that grows piece by piece up to the limits of its platform. Invariants: 1. what is
 * there fits, with the room that is kept for the end; 2. from the first piece that does not fit on
 * nothing is added but the end, so nothing is missing in between.
 */
#include "chat/draft.h"

#include <string.h>

#include "agent/core/texts.h"
#include "ui/text.h"

size_t text_chars(str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return count;
}

static size_t limit(uint32_t max)
{
    return max ? max : SIZE_MAX / 4;
}

bool text_fits(const struct channel_traits *traits, str text)
{
    return text.len <= limit(traits->bytes_max) && text_chars(text) <= limit(traits->chars_max);
}

void draft_init(struct draft *draft, struct arena *arena, const struct channel_traits *traits)
{
    *draft = (struct draft){.arena = arena,
                            .chars_max = limit(traits->chars_max),
                            .bytes_max = limit(traits->bytes_max)};
    out_init(&draft->out, arena, 0, SIZE_MAX / 4);
}

void draft_keep(struct draft *draft, str text)
{
    size_t chars = text_chars(text);
    draft->chars_max -= chars < draft->chars_max ? chars : draft->chars_max;
    draft->bytes_max -= text.len < draft->bytes_max ? text.len : draft->bytes_max;
}

void draft_end(struct draft *draft, str text)
{
    out_raw(&draft->out, text);
    draft->chars += text_chars(text);
}

bool draft_add(struct draft *draft, const str *parts, size_t count)
{
    size_t chars = draft->chars, bytes = draft->out.len;
    for (size_t i = 0; i < count; i++) {
        chars += text_chars(parts[i]);
        bytes += parts[i].len;
    }
    if (chars > draft->chars_max || bytes > draft->bytes_max) draft->cut = true;
    if (draft->cut) return false;
    for (size_t i = 0; i < count; i++) out_raw(&draft->out, parts[i]);
    draft->chars = chars;
    return true;
}

bool draft_put(struct draft *draft, str text)
{
    return draft_add(draft, &text, 1);
}

static bool is_turning(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

str text_clean(struct arena *arena, str text, bool lines)
{
    char *copy = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    while (text.len) {
        str rest = text;
        uint32_t code = ui_next_char(&rest);
        size_t bytes = text.len - rest.len;
        bool line = code == '\n' || code == 0x2028 || code == 0x2029;
        bool control = code < ' ' || (code >= 0x7f && code < 0xa0);
        if (line && lines) {
            copy[len++] = '\n';
        } else if (line || code == '\t') {
            copy[len++] = ' ';
        } else if (!control && !is_turning(code)) {
            memcpy(copy + len, text.p, bytes);
            len += bytes;
        }
        text = rest;
    }
    return ui_trim((str){copy, len});
}

str text_short(struct arena *arena, str text, size_t chars_max)
{
    return ui_line(arena, ui_trim(text), chars_max);
}

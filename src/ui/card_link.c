/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a card may lead: addresses, as strict as browsers are lenient. Browsers drop tabs and line
 * ends from an address, take \ for / and read //host and https:host as another server; so none of
 * these passes. Characters that cannot be seen are refused too: an address is there to be looked at
 * before it is followed.
 */
#include "ui/card_link.h"

#include "ui/text.h"

static bool is_clean(str text)
{
    while (text.len) {
        uint32_t code = ui_next_char(&text);
        if (code <= 0x20 || code == '\\' || ui_is_hidden(code)) return false;
    }
    return true;
}

bool link_is_path(str text)
{
    if (!text.len || text.p[0] != '/' || !is_clean(text)) return false;
    return text.len == 1 || text.p[1] != '/';
}

/* Scheme, and what must follow it before at least one more character. */
static const struct {
    str scheme, next;
} schemes[] = {
    {STR("https:"), STR("//")},
    {STR("http:"), STR("//")},
    {STR("mailto:"), STR("")},
    {STR("tel:"), STR("")},
};

bool link_is_safe(str text)
{
    if (link_is_path(text)) return true;
    if (!is_clean(text)) return false;
    for (size_t i = 0; i < COUNT(schemes); i++) {
        str scheme = schemes[i].scheme;
        if (text.len <= scheme.len || !str_eq_nocase((str){text.p, scheme.len}, scheme)) continue;
        str rest = str_drop(text, scheme.len);
        if (!str_starts(rest, schemes[i].next)) return false;
        rest = str_drop(rest, schemes[i].next.len);
        if (!rest.len || rest.p[0] == '/') return false;
        return !schemes[i].next.len || (rest.p[0] != '?' && rest.p[0] != '#');
    }
    return false;
}

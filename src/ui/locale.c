/* SPDX-License-Identifier: Apache-2.0
 *
 * Chinese or English, from a language tag or from Accept-Language. Accept-Language as RFC 9110 has
 * it: tags with weights; what is no weight counts as 0, so a malformed entry is as if it were not
 * there.
 */
#include "ui/locale.h"

static const str names[UI_LOCALES] = {[UI_EN] = STR("en"), [UI_ZH] = STR("zh-CN")};

str ui_locale_name(enum ui_locale locale)
{
    return names[locale];
}

enum ui_locale ui_locale_of(str tag)
{
    if (tag.len < 2 || !str_eq_nocase((str){tag.p, 2}, STR("zh"))) return UI_EN;
    bool whole = tag.len == 2 || tag.p[2] == '-' || tag.p[2] == '_' || tag.p[2] == '.';
    return whole ? UI_ZH : UI_EN;
}

/* "0.8" as 800. */
static unsigned weight(str text)
{
    if (!text.len || text.len > 5 || (text.p[0] != '0' && text.p[0] != '1')) return 0;
    if (text.len > 1 && text.p[1] != '.') return 0;
    unsigned value = (unsigned)(text.p[0] - '0') * 1000, unit = 100;
    for (size_t i = 2; i < text.len; i++, unit /= 10) {
        if (text.p[i] < '0' || text.p[i] > '9') return 0;
        value += (unsigned)(text.p[i] - '0') * unit;
    }
    return value > 1000 ? 0 : value;
}

enum ui_locale ui_locale_accepted(str field)
{
    str best = STR_EMPTY;
    unsigned most = 0;
    while (field.len) {
        str parameters = str_split(&field, ',');
        str tag = str_trim(str_split(&parameters, ';'));
        str q = parameters.p ? str_trim(parameters) : STR("q=1");
        unsigned wanted = str_starts(q, STR("q=")) ? weight(str_drop(q, 2)) : 0;
        if (!tag.len || wanted <= most) continue;
        most = wanted;
        best = tag;
    }
    return ui_locale_of(best);
}

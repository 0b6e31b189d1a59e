/* SPDX-License-Identifier: Apache-2.0
 *
 * The language of a terminal, as its environment asks for it.
 */
#include "config/config.h"

enum lang lang_asked(char *const *environment)
{
    static const str names[] = {STR("LC_ALL="), STR("LC_MESSAGES="), STR("LANG=")};
    for (size_t i = 0; i < COUNT(names); i++)
        for (char *const *at = environment; *at; at++) {
            str value = str_c(*at);
            if (!str_starts(value, names[i]) || value.len == names[i].len) continue;
            return str_starts(str_drop(value, names[i].len), STR("zh")) ? LANG_ZH : LANG_EN;
        }
    return LANG_EN;
}

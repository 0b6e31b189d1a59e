/* SPDX-License-Identifier: Apache-2.0
 *
 * The two languages of cards and summaries. Pure.
 */
#ifndef UI_LOCALE_H
#define UI_LOCALE_H

#include "base/str.h"

enum ui_locale { UI_EN, UI_ZH, UI_LOCALES };

str ui_locale_name(enum ui_locale locale); /* "en", "zh-CN" */

/* Of a language tag, or a name as LANG has it: zh and what begins with it is Chinese, everything
 * else English. */
enum ui_locale ui_locale_of(str tag);

/* Of an Accept-Language field: the tag that is wanted most, the first of equals. */
enum ui_locale ui_locale_accepted(str field);

#endif

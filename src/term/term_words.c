/* SPDX-License-Identifier: Apache-2.0
 *
 * What the terminal says, in both languages: the table of term_words.h as an array.
 */
#include "term/term_words.h"

#define WORD_TEXTS(name, en, zh) [name] = {[LANG_EN] = en, [LANG_ZH] = zh},
static const char *const texts[WORD_COUNT][LANG_COUNT] = {WORDS(WORD_TEXTS)};

const char *word(enum lang lang, enum word word)
{
    return texts[word][lang];
}

str words(enum lang lang, enum word word)
{
    return str_c(texts[word][lang]);
}

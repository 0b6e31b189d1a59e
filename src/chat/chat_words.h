/* SPDX-License-Identifier: Apache-2.0
 *
 * Short replies of people, read as they are typed: numbers in all their forms, words that decide,
 * codes. Nothing is copied: what is compared is folded on the way (full-width forms are ASCII,
 * letters are small). Everything takes valid UTF-8. Pure.
 */
#ifndef CHAT_CHAT_WORDS_H
#define CHAT_CHAT_WORDS_H

#include "base/str.h"

/* ---- texts ---- */

/* Without spaces and hidden characters at both ends. */
str words_trim(str text);

/* Is there a hidden character between two others? */
bool words_hidden(str text);

/* The next character, folded. *rest must not be empty. */
uint32_t fold_next(str *rest);
bool fold_eq(str a, str b);
/* Does *rest begin with the word? Then it moves behind it. */
bool fold_starts(str *rest, str word);

/* Without spaces at the front. */
str skip_spaces(str text);
/* Nothing in it but spaces, ends of sentences and what belongs to an emoji. */
bool is_tail(str text);

/* ---- numbers ---- */

/* A numeral at the start of *rest, which moves behind it: 2 ２ ② ⑵ ⒉ ❷ 2️⃣ 二 二十 🔟, up to 9999. */
bool numeral_take(str *rest, unsigned *ret_number);

/* The same with what people put around it: 2. 2、 2) （2） 第2个 选2 #2 */
bool number_take(str *rest, unsigned *ret_number);

/* ---- words that decide ---- */

enum meaning {
    MEANS_APPROVE, /* counts with the code only */
    MEANS_AGREE,   /* sounds like it, and never counts */
    MEANS_REJECT,
    MEANS_REJECT_BARE, /* of those, the two that our own messages name */
    MEANS_CONTINUE,
    MEANS_RETRY,
    MEANS_GIVE_UP,
    MEANS_HAPPENED,
    MEANS_SKIP,
    MEANS_TRUE,
    MEANS_FALSE,
    MEANING_COUNT,
};

/* Is the whole text a word of this meaning, perhaps with the end of a sentence behind it? */
bool means(str text, enum meaning meaning);

/* Does it begin with such a word? *ret_rest: what follows, without the spaces and marks between. With
 * `apart` there must be some, or nothing behind the word: 不要 is not the word of 不要发给他. */
bool means_first(str text, enum meaning meaning, bool apart, str *ret_rest);

/* ---- codes ---- */

enum { CODE_DIGITS_MAX = 16 };

/* Digits, perhaps with spaces between, and nothing else: in ASCII, with a NUL. More than
 * CODE_DIGITS_MAX are none. */
bool digits_read(str text, char out[static CODE_DIGITS_MAX + 1]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Short replies as they are typed: numerals in all forms, words that decide, codes. A word of the
 * tables is written folded: small letters, ASCII where there is a choice. A word that ends in a
 * letter must not be followed by another one: `no` is not the beginning of `note`.
 *
 * To add a form of a number: a row in `counted`, or an affix in `before`. To add a word: its row in
 * `words`. Words that approve are looked at by chat/reply.c together with a code; here nothing is
 * decided.
 */
#include "chat/chat_words.h"

#include "ui/text.h"

/* ---- texts ---- */

static uint32_t fold(uint32_t code)
{
    if (code >= 0xff01 && code <= 0xff5e) code -= 0xfee0; /* full-width ASCII */
    if (code == 0x3000) return ' ';
    return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
}

uint32_t fold_next(str *rest)
{
    return fold(ui_next_char(rest));
}

static str last_char(str text)
{
    size_t at = text.len - 1;
    while (at && ((unsigned char)text.p[at] & 0xc0) == 0x80) at--;
    return (str){text.p + at, text.len - at};
}

str words_trim(str text)
{
    while (text.len) {
        str rest = text;
        if (!ui_is_hidden(ui_next_char(&rest))) break;
        text = rest;
    }
    while (text.len) {
        str last = last_char(text), rest = last;
        if (!ui_is_hidden(ui_next_char(&rest))) break;
        text.len -= last.len;
    }
    return text;
}

/* A space that takes room: not those of zero width. */
static bool is_gap(uint32_t code)
{
    return ui_is_space(code) && code != 0x200b && code != 0x2060 && code != 0xfeff;
}

bool words_hidden(str text)
{
    text = words_trim(text);
    while (text.len) {
        uint32_t code = ui_next_char(&text);
        if (ui_is_hidden(code) && !is_gap(code)) return true;
    }
    return false;
}

bool fold_starts(str *rest, str word)
{
    str at = *rest;
    while (word.len) {
        if (!at.len || fold_next(&at) != fold_next(&word)) return false;
    }
    *rest = at;
    return true;
}

bool fold_eq(str a, str b)
{
    return fold_starts(&a, b) && !a.len;
}

str skip_spaces(str text)
{
    while (text.len) {
        str rest = text;
        if (!ui_is_space(ui_next_char(&rest))) break;
        text = rest;
    }
    return text;
}

static bool is_letter(uint32_t code)
{
    return (code >= 'a' && code <= 'z') || code == '\'';
}

static bool is_digit(uint32_t code)
{
    return code >= '0' && code <= '9';
}

static bool is_end_mark(uint32_t code)
{
    return code == '.' || code == '!' || code == ',' || code == '~' || code == 0x3002 ||
           code == 0x3001 || code == 0x2026 || code == 0xff5e;
}

/* Selectors and skin tones, and more of the same thumbs. */
static bool is_of_emoji(uint32_t code)
{
    return (code >= 0x1f3fb && code <= 0x1f3ff) || code == 0xfe0f || code == 0x1f44d;
}

bool is_tail(str text)
{
    while (text.len) {
        uint32_t code = fold_next(&text);
        if (!ui_is_space(code) && !is_end_mark(code) && !is_of_emoji(code)) return false;
    }
    return true;
}

/* ---- numbers ---- */

enum { KEYCAP = 0x20e3, SELECTOR = 0xfe0f, TEN = 0x5341, KEYCAP_TEN = 0x1f51f, DIGITS_MAX = 4 };

/* Signs that are numbers: the first code, how many there are, and the number of the first. */
static const struct {
    uint32_t first;
    unsigned count, number;
} counted[] = {
    {0x2460, 20, 1},  /* ① */
    {0x2474, 20, 1},  /* ⑴ */
    {0x2488, 20, 1},  /* ⒈ */
    {0x24f5, 10, 1},  /* ⓵ */
    {0x2776, 10, 1},  /* ❶ */
    {0x2780, 10, 1},  /* ➀ */
    {0x278a, 10, 1},  /* ➊ */
    {0x3220, 10, 1},  /* ㈠ */
    {0x3251, 15, 21}, /* ㉑ */
    {0x3280, 10, 1},  /* ㊀ */
    {0x32b1, 15, 36}, /* ㊱ */
    {KEYCAP_TEN, 1, 10},
};

/* Of an ideograph: 1 to 9, or 0. */
static unsigned han_digit(uint32_t code)
{
    static const uint32_t digits[] = {0x4e00, 0x4e8c, 0x4e09, 0x56db, 0x4e94,
                                      0x516d, 0x4e03, 0x516b, 0x4e5d};
    for (unsigned i = 0; i < COUNT(digits); i++)
        if (code == digits[i]) return i + 1;
    return 0;
}

static uint32_t peek(str text)
{
    return text.len ? fold_next(&text) : 0;
}

static bool take_char(str *rest, uint32_t code)
{
    if (peek(*rest) != code || !rest->len) return false;
    fold_next(rest);
    return true;
}

static bool ascii_take(str *rest, unsigned *ret_number)
{
    str at = *rest;
    unsigned number = 0, count = 0;
    for (; is_digit(peek(at)); count++) {
        if (count == DIGITS_MAX) return false;
        number = number * 10 + (fold_next(&at) - '0');
        str cap = at;
        take_char(&cap, SELECTOR);
        if (take_char(&cap, KEYCAP)) at = cap;
    }
    if (!count) return false;
    *rest = at;
    *ret_number = number;
    return true;
}

/* 一, 十, 十二, 二十, 二十三 */
static bool han_take(str *rest, unsigned *ret_number)
{
    str at = *rest;
    unsigned first = han_digit(peek(at)), last = 0;
    if (first) fold_next(&at);
    bool tens = take_char(&at, TEN);
    if (!first && !tens) return false;
    if (tens) last = han_digit(peek(at));
    if (last) fold_next(&at);
    *rest = at;
    *ret_number = tens ? (first ? first : 1) * 10 + last : first;
    return true;
}

bool numeral_take(str *rest, unsigned *ret_number)
{
    if (ascii_take(rest, ret_number) || han_take(rest, ret_number)) return true;
    uint32_t code = peek(*rest);
    for (size_t i = 0; i < COUNT(counted); i++) {
        if (code < counted[i].first || code - counted[i].first >= counted[i].count) continue;
        fold_next(rest);
        take_char(rest, SELECTOR);
        *ret_number = counted[i].number + (code - counted[i].first);
        return true;
    }
    return false;
}

/* What may stand before a number, the longest first, and what may then stand behind it. */
static const struct affix {
    str before, behind[4];
} affixes[] = {
    {STR("我选择第"), {STR("个"), STR("项"), STR("条")}},
    {STR("我选第"), {STR("个"), STR("项"), STR("条")}},
    {STR("选择第"), {STR("个"), STR("项"), STR("条")}},
    {STR("选第"), {STR("个"), STR("项"), STR("条")}},
    {STR("我选择"), {{0}}},
    {STR("我选"), {{0}}},
    {STR("选择"), {{0}}},
    {STR("选项"), {{0}}},
    {STR("选"), {{0}}},
    {STR("第"), {STR("个"), STR("项"), STR("条")}},
    {STR("option"), {{0}}},
    {STR("number"), {{0}}},
    {STR("no."), {{0}}},
    {STR("#"), {{0}}},
    {STR("("), {STR(")")}},
    {STR("["), {STR("]")}},
    {STR("【"), {STR("】")}},
    {STR(""), {STR("."), STR("、"), STR(")"), STR("。")}},
};

bool number_take(str *rest, unsigned *ret_number)
{
    for (size_t i = 0; i < COUNT(affixes); i++) {
        const struct affix *affix = &affixes[i];
        str at = *rest;
        if (!fold_starts(&at, affix->before)) continue;
        at = skip_spaces(at);
        if (!numeral_take(&at, ret_number)) continue;
        str behind = skip_spaces(at);
        for (size_t k = 0; k < COUNT(affix->behind); k++) {
            if (!affix->behind[k].len || !fold_starts(&behind, affix->behind[k])) continue;
            at = behind;
            break;
        }
        *rest = at;
        return true;
    }
    return false;
}

/* ---- words that decide ---- */

static const struct {
    enum meaning meaning;
    str word;
} words[] = {
    {MEANS_APPROVE, STR("同意")},
    {MEANS_APPROVE, STR("批准")},
    {MEANS_APPROVE, STR("确认")},
    {MEANS_APPROVE, STR("approve")},
    {MEANS_APPROVE, STR("approved")},
    {MEANS_APPROVE, STR("confirm")},
    {MEANS_APPROVE, STR("yes")},
    {MEANS_APPROVE, STR("okay")},
    {MEANS_APPROVE, STR("ok")},

    {MEANS_AGREE, STR("我同意")},
    {MEANS_AGREE, STR("同意了")},
    {MEANS_AGREE, STR("同意的")},
    {MEANS_AGREE, STR("可以")},
    {MEANS_AGREE, STR("可以的")},
    {MEANS_AGREE, STR("好")},
    {MEANS_AGREE, STR("好的")},
    {MEANS_AGREE, STR("好吧")},
    {MEANS_AGREE, STR("行")},
    {MEANS_AGREE, STR("是")},
    {MEANS_AGREE, STR("是的")},
    {MEANS_AGREE, STR("对")},
    {MEANS_AGREE, STR("嗯")},
    {MEANS_AGREE, STR("嗯嗯")},
    {MEANS_AGREE, STR("通过")},
    {MEANS_AGREE, STR("没问题")},
    {MEANS_AGREE, STR("收到")},
    {MEANS_AGREE, STR("执行")},
    {MEANS_AGREE, STR("执行吧")},
    {MEANS_AGREE, STR("继续")},
    {MEANS_AGREE, STR("i approve")},
    {MEANS_AGREE, STR("i agree")},
    {MEANS_AGREE, STR("agree")},
    {MEANS_AGREE, STR("agreed")},
    {MEANS_AGREE, STR("sure")},
    {MEANS_AGREE, STR("yep")},
    {MEANS_AGREE, STR("yeah")},
    {MEANS_AGREE, STR("y")},
    {MEANS_AGREE, STR("k")},
    {MEANS_AGREE, STR("fine")},
    {MEANS_AGREE, STR("go")},
    {MEANS_AGREE, STR("go ahead")},
    {MEANS_AGREE, STR("do it")},
    {MEANS_AGREE, STR("no problem")},
    {MEANS_AGREE, STR("no worries")},
    {MEANS_AGREE, STR("lgtm")},
    {MEANS_AGREE, STR("👍")},
    {MEANS_AGREE, STR("👌")},
    {MEANS_AGREE, STR("🆗")},
    {MEANS_AGREE, STR("✅")},
    {MEANS_AGREE, STR("[强]")}, /* as WeChat writes its own thumbs */
    {MEANS_AGREE, STR("[ok]")},

    {MEANS_REJECT, STR("拒绝")},
    {MEANS_REJECT, STR("驳回")},
    {MEANS_REJECT, STR("不同意")},
    {MEANS_REJECT, STR("不批准")},
    {MEANS_REJECT, STR("不可以")},
    {MEANS_REJECT, STR("不行")},
    {MEANS_REJECT, STR("不要")},
    {MEANS_REJECT, STR("否")},
    {MEANS_REJECT, STR("reject")},
    {MEANS_REJECT, STR("rejected")},
    {MEANS_REJECT, STR("deny")},
    {MEANS_REJECT, STR("decline")},
    {MEANS_REJECT, STR("no")},
    {MEANS_REJECT_BARE, STR("拒绝")},
    {MEANS_REJECT_BARE, STR("reject")},

    {MEANS_CONTINUE, STR("继续")},
    {MEANS_CONTINUE, STR("重试")},
    {MEANS_CONTINUE, STR("再试")},
    {MEANS_CONTINUE, STR("再试一次")},
    {MEANS_CONTINUE, STR("continue")},
    {MEANS_CONTINUE, STR("retry")},
    {MEANS_CONTINUE, STR("try again")},
    {MEANS_CONTINUE, STR("go on")},

    {MEANS_RETRY, STR("重试")},
    {MEANS_RETRY, STR("retry")},

    {MEANS_GIVE_UP, STR("放弃")},
    {MEANS_GIVE_UP, STR("算了")},
    {MEANS_GIVE_UP, STR("give up")},
    {MEANS_GIVE_UP, STR("giveup")},
    {MEANS_GIVE_UP, STR("abandon")},

    {MEANS_HAPPENED, STR("已发生")},
    {MEANS_HAPPENED, STR("已经发生")},
    {MEANS_HAPPENED, STR("发生了")},
    {MEANS_HAPPENED, STR("已执行")},
    {MEANS_HAPPENED, STR("happened")},
    {MEANS_HAPPENED, STR("it happened")},

    {MEANS_SKIP, STR("跳过")},
    {MEANS_SKIP, STR("skip")},

    {MEANS_TRUE, STR("是")},
    {MEANS_TRUE, STR("是的")},
    {MEANS_TRUE, STR("对")},
    {MEANS_TRUE, STR("要")},
    {MEANS_TRUE, STR("需要")},
    {MEANS_TRUE, STR("可以")},
    {MEANS_TRUE, STR("好")},
    {MEANS_TRUE, STR("yes")},
    {MEANS_TRUE, STR("y")},
    {MEANS_TRUE, STR("true")},

    {MEANS_FALSE, STR("否")},
    {MEANS_FALSE, STR("不")},
    {MEANS_FALSE, STR("不是")},
    {MEANS_FALSE, STR("不要")},
    {MEANS_FALSE, STR("不需要")},
    {MEANS_FALSE, STR("不用")},
    {MEANS_FALSE, STR("no")},
    {MEANS_FALSE, STR("n")},
    {MEANS_FALSE, STR("false")},
};

/* Does the text begin with the word, and is that the end of the word? */
static bool begins(str *rest, str word)
{
    str at = *rest;
    if (!fold_starts(&at, word)) return false;
    bool letters = is_letter((unsigned char)word.p[word.len - 1]);
    if (letters && is_letter(peek(at))) return false;
    *rest = at;
    return true;
}

bool means(str text, enum meaning meaning)
{
    text = words_trim(text);
    for (size_t i = 0; i < COUNT(words); i++) {
        str rest = text;
        if (words[i].meaning == meaning && begins(&rest, words[i].word) && is_tail(rest))
            return true;
    }
    return false;
}

static str skip_between(str text)
{
    while (text.len) {
        str rest = text;
        uint32_t code = fold_next(&rest);
        if (!ui_is_space(code) && !is_end_mark(code) && code != ':' && code != '-' && code != ';')
            break;
        text = rest;
    }
    return text;
}

bool means_first(str text, enum meaning meaning, bool apart, str *ret_rest)
{
    str found = {NULL, 0};
    text = words_trim(text);
    for (size_t i = 0; i < COUNT(words); i++) {
        str rest = text;
        if (words[i].meaning != meaning || !begins(&rest, words[i].word)) continue;
        if (!found.p || rest.len < found.len) found = rest; /* the longest word */
    }
    if (!found.p) return false;
    str rest = skip_between(found);
    if (apart && found.len && rest.len == found.len) return false;
    *ret_rest = rest;
    return true;
}

/* ---- codes ---- */

bool digits_read(str text, char out[static CODE_DIGITS_MAX + 1])
{
    size_t count = 0;
    text = words_trim(text);
    while (text.len) {
        uint32_t code = fold_next(&text);
        if (is_gap(code)) continue;
        if (!is_digit(code)) {
            if (!count || !is_end_mark(code) || !is_tail(text)) return false;
            break;
        }
        if (count == CODE_DIGITS_MAX) return false;
        out[count++] = (char)code;
    }
    out[count] = '\0';
    return count > 0;
}

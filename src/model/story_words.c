/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for stories: which language, is a word there, what is a meeting called, how long
 * shall it be. Rules of thumb; a wrong guess costs a person one edit before they approve it.
 */
#include "base/limits.h"
#include "model/player.h"
#include "model/story.h"

/* ---- characters ---- */

/* The first character of text that is not empty, and its bytes. Bytes that are no UTF-8 count as
 * characters of their own. */
static uint32_t first_char(str text, size_t *ret_len)
{
    unsigned char lead = (unsigned char)text.p[0];
    size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (len > text.len) len = 1;
    uint32_t code = len == 1 ? lead : lead & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) code = code << 6 | ((unsigned char)text.p[i] & 0x3f);
    *ret_len = len;
    return code;
}

static bool is_chinese(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x3400, 0x4dbf},
        {0x4e00, 0x9fff},
        {0xf900, 0xfaff},
        {0x20000, 0x3ffff},
    };
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

enum language story_language(str text)
{
    for (size_t len; text.len; text = str_drop(text, len))
        if (is_chinese(first_char(text, &len))) return CHINESE;
    return ENGLISH;
}

static bool is_letter(char c)
{
    c = char_lower(c);
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- words ---- */

/* Where the word ends for the first time, or 0. */
static size_t word_end(str text, str word)
{
    for (size_t at = 0; at + word.len <= text.len; at++) {
        if (!str_eq_nocase((str){text.p + at, word.len}, word)) continue;
        size_t end = at + word.len;
        bool inside = (at && is_letter(word.p[0]) && is_letter(text.p[at - 1])) ||
                      (end < text.len && is_letter(word.p[word.len - 1]) && is_letter(text.p[end]));
        if (!inside) return end;
    }
    return 0;
}

bool story_has_word(str text, str word)
{
    return word_end(text, word) > 0;
}

bool story_has_one(str text, const str *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (story_has_word(text, words[i])) return true;
    return false;
}

str story_trim(str text)
{
    while (text.len && (unsigned char)text.p[0] <= ' ') text = str_drop(text, 1);
    while (text.len && (unsigned char)text.p[text.len - 1] <= ' ') text.len--;
    return text;
}

str story_line(struct arena *arena, str text, size_t chars)
{
    str kept = player_chars(story_trim(text), chars);
    char *copy = arena_cstr(arena, kept);
    for (size_t i = 0; i < kept.len; i++)
        if ((unsigned char)copy[i] < ' ' || copy[i] == '|') copy[i] = ' ';
    return (str){copy, kept.len};
}

/* ---- titles ---- */

/* The words before the end of a noun, back to one that belongs to the request and not to the name:
 * of "please book a review meeting" the last two. */
static str english_noun(str text, size_t end)
{
    static const str stops[] = {STR("a"),    STR("an"),   STR("the"),     STR("my"),
                                STR("our"),  STR("book"), STR("arrange"), STR("up"),
                                STR("me"),   STR("of"),   STR("for"),     STR("make"),
                                STR("plan"), STR("this"), STR("new"),     STR("schedule")};
    enum { WORDS_MAX = 4 };
    size_t start = end;
    for (int words = 0; words < WORDS_MAX; words++) {
        size_t word = start;
        while (word > 0 && text.p[word - 1] == ' ') word--;
        size_t word_ends = word;
        while (word > 0 && (is_letter(text.p[word - 1]) || text.p[word - 1] == '-')) word--;
        str candidate = {text.p + word, word_ends - word};
        bool stop = candidate.len == 0;
        for (size_t i = 0; i < COUNT(stops) && !stop; i++)
            stop = str_eq_nocase(candidate, stops[i]);
        if (stop) break;
        start = word;
    }
    return (str){text.p + start, end - start};
}

static str english_title(struct arena *arena, str text)
{
    static const str nouns[] = {STR("meeting"), STR("appointment"), STR("review"), STR("call"),
                                STR("interview")};
    for (size_t i = 0; i < COUNT(nouns); i++) {
        size_t end = word_end(text, nouns[i]);
        str noun = end ? english_noun(text, end) : STR_EMPTY;
        if (!noun.len) continue;
        char *title = arena_cstr(arena, noun);
        if (title[0] >= 'a' && title[0] <= 'z') title[0] = (char)(title[0] - ('a' - 'A'));
        return (str){title, noun.len};
    }
    return STR("Meeting");
}

/* Characters that end the request and begin the name: of "帮我约明天下午三点的评审会" the last
 * three are left. */
static bool chinese_stop(str c)
{
    static const str stops[] = {STR("的"), STR("个"), STR("次"), STR("场"), STR("约"),
                                STR("排"), STR("一"), STR("下"), STR("点"), STR("开"),
                                STR("订"), STR("定"), STR("和"), STR("我"), STR("午"),
                                STR("天"), STR("，"), STR("、"), STR("。"), STR("：")};
    if (c.len == 1) return true; /* ASCII */
    for (size_t i = 0; i < COUNT(stops); i++)
        if (str_eq(c, stops[i])) return true;
    return false;
}

static str chinese_title(str text)
{
    enum { CHARS_MAX = 10 };
    ptrdiff_t found = -1;
    for (size_t at = 0; at < text.len; at++)
        if (str_starts(str_drop(text, at), STR("会"))) found = (ptrdiff_t)at;
    if (found < 0) return STR("会议");
    size_t start = (size_t)found, end = start + STR("会").len;
    for (int chars = 0; start > 0 && chars < CHARS_MAX; chars++) {
        size_t at = start - 1;
        while (at > 0 && ((unsigned char)text.p[at] & 0xc0) == 0x80) at--;
        if (chinese_stop((str){text.p + at, start - at})) break;
        start = at;
    }
    if (str_starts(str_drop(text, end), STR("议"))) end += STR("议").len;
    str title = {text.p + start, end - start};
    return title.len > STR("会").len ? title : STR("会议");
}

str story_title(struct arena *arena, str message, enum language language)
{
    str title = language == CHINESE ? chinese_title(message) : english_title(arena, message);
    return player_chars(title, STORY_QUOTE_CHARS_MAX);
}

/* ---- lengths of time ---- */

/* A number with at most one decimal at the front of *text, in tenths; moves past it. */
static unsigned take_tenths(str *text)
{
    enum { WHOLE_MAX = 10000 };
    unsigned whole = 0, tenth = 0;
    for (; text->len && is_digit(text->p[0]); *text = str_drop(*text, 1))
        if (whole < WHOLE_MAX) whole = whole * 10 + (unsigned)(text->p[0] - '0');
    if (text->len > 1 && text->p[0] == '.' && is_digit(text->p[1])) {
        tenth = (unsigned)(text->p[1] - '0');
        *text = str_drop(*text, 2);
        while (text->len && is_digit(text->p[0])) *text = str_drop(*text, 1);
    }
    return whole * 10 + tenth;
}

static bool unit_is_hours(str text)
{
    static const str hours[] = {STR("hour"),   STR("hr"),   STR("h "),  STR("小时"),
                                STR("个小时"), STR("个钟"), STR("钟头")};
    text = str_trim(text);
    for (size_t i = 0; i < COUNT(hours); i++)
        if (text.len >= hours[i].len && str_eq_nocase((str){text.p, hours[i].len}, hours[i]))
            return true;
    return str_eq_nocase(text, STR("h"));
}

/* "1 hour 30 minutes": the parts are added. A number without a unit counts minutes. */
static unsigned minutes_in_digits(str text)
{
    unsigned minutes = 0;
    while (text.len) {
        if (!is_digit(text.p[0])) {
            text = str_drop(text, 1);
            continue;
        }
        unsigned tenths = take_tenths(&text);
        minutes += unit_is_hours(text) ? tenths * 6 : tenths / 10;
    }
    return minutes;
}

unsigned story_minutes(str text)
{
    static const struct {
        str words;
        unsigned minutes;
    } phrases[] = {
        {STR("一个半小时"), 90},
        {STR("半小时"), 30},
        {STR("半个小时"), 30},
        {STR("一刻钟"), 15},
        {STR("一小时"), 60},
        {STR("一个小时"), 60},
        {STR("两小时"), 120},
        {STR("两个小时"), 120},
        {STR("hour and a half"), 90},
        {STR("half an hour"), 30},
        {STR("an hour"), 60},
        {STR("one hour"), 60},
        {STR("quarter of an hour"), 15},
        {STR("two hours"), 120},
    };
    enum { MINUTES_MIN = 5, MINUTES_MAX = 480 };
    unsigned minutes = minutes_in_digits(text);
    for (size_t i = 0; !minutes && i < COUNT(phrases); i++)
        if (story_has_word(text, phrases[i].words)) minutes = phrases[i].minutes;
    return minutes >= MINUTES_MIN && minutes <= MINUTES_MAX ? minutes : 0;
}

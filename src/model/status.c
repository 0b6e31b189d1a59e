/* SPDX-License-Identifier: Apache-2.0
 *
 * What a provider's refusal means: again or not, when, and in which words, with keys hidden.
 *
 * Again or not is a table; what is not in it follows its first digit: 5xx is worth another attempt,
 * 3xx and 4xx are not. A redirect is not followed, because the key would go along.
 *
 * Cleaning works on a copy, in this order: cut to what can matter, key, shown keys, control characters,
 * cut to size. The key goes before the second cut, so that no cut makes a stretch of it too short to be
 * found.
 *
 * To treat one more status: a row in `statuses`.
 */
#include "model/status.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"

static const struct status {
    int status;
    enum model_end end;
    const char *advice;
} statuses[] = {
    {400, MODEL_FAILED, "it does not take this request"},
    {401, MODEL_FAILED, "it does not accept the key; check api_key or api_key_file of the model"},
    {402, MODEL_FAILED, "it wants to be paid; check the balance of the account"},
    {403, MODEL_FAILED, "the key may not do this; check what it is allowed to use"},
    {404, MODEL_FAILED, "it does not know this; check name and base_url of the model"},
    {405, MODEL_FAILED, "this is not its address for models; check base_url of the model"},
    {408, MODEL_AGAIN, "the request took too long"},
    {413, MODEL_FAILED, "the request is too large for it; set window of the model"},
    {422, MODEL_FAILED, "it does not take this request"},
    {429, MODEL_AGAIN, "too many requests, or no quota left"},
    {529, MODEL_AGAIN, "it is overloaded"},
};

static const struct status redirect = {3, MODEL_FAILED,
                                       "it points elsewhere; check base_url of the model"},
                           refused = {4, MODEL_FAILED, "it refuses the request"},
                           broken = {5, MODEL_AGAIN, "it has a problem of its own"};

static const struct status *find(int status)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == status) return &statuses[i];
    if (status >= 500) return &broken;
    return status >= 400 ? &refused : &redirect;
}

enum model_end status_end(int status)
{
    return find(status)->end;
}

void status_explain(struct fault *ret_why, const char *host, int status, str words)
{
    const struct status *row = find(status);
    enum err e = row->end == MODEL_AGAIN ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL;
    fault(ret_why, e, "%s answered %d: %s%s%.*s", host, status, row->advice,
          words.len ? ". It says: " : "", STR_ARG(words));
}

/* ---- texts of others ---- */

/* How many bytes at the beginning of `text` stand in the key in this order, if that is worth hiding. */
static size_t key_run(str text, str key)
{
    size_t longest = 0;
    for (size_t at = 0; at < key.len; at++) {
        size_t run = 0;
        while (run < text.len && at + run < key.len && text.p[run] == key.p[at + run]) run++;
        if (run > longest) longest = run;
    }
    return longest >= STATUS_KEY_RUN || (key.len && longest == key.len) ? longest : 0;
}

static void hide_key(str words, str key, char *out)
{
    size_t until = 0;
    for (size_t i = 0; i < words.len; i++) {
        size_t run = key_run(str_drop(words, i), key);
        if (i + run > until) until = i + run;
        if (i < until) out[i] = '*';
    }
}

static bool in_key(char c)
{
    char low = char_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || strchr("*_-.", c);
}

/* "sk-ab***yz" says more than nothing. */
static void hide_shown(char *out, size_t len)
{
    for (size_t at = 0, end; at < len; at = end + 1) {
        for (end = at; end < len && out[end] && in_key(out[end]);) end++;
        if (str_find((str){out + at, end - at}, STR("***")) >= 0) memset(out + at, '*', end - at);
    }
}

static void make_line(char *out, size_t len)
{
    const char *end = out + len;
    for (char *at = out; at < end;) {
        const char *after = utf8_skip(at, end);
        if (after == at) {
            unsigned char c = (unsigned char)*at;
            if (c < ' ' || c == 0x7f) *at = ' ';
            if (c >= 0x80) *at = '?';
            at++;
            continue;
        }
        for (; at < after; at++) /* U+0080 to U+009F are controls too */
            if ((unsigned char)*at == 0xc2 && (unsigned char)at[1] < 0xa0) at[0] = at[1] = ' ';
    }
}

static str cut(str words, size_t max)
{
    if (words.len <= max) return words;
    while (max > 0 && ((unsigned char)words.p[max] & 0xc0) == 0x80) max--;
    return (str){words.p, max};
}

str status_clean(struct arena *arena, str words, str key)
{
    enum { LOOK_BYTES = 4 * MODEL_WORDS_BYTES_MAX };
    words = cut(words, LOOK_BYTES);
    char *out = arena_cstr(arena, words);
    hide_key(words, key, out);
    hide_shown(out, words.len);
    make_line(out, words.len);
    return str_trim(cut(str_trim((str){out, words.len}), MODEL_WORDS_BYTES_MAX));
}

/* ---- when ---- */

/* "12" or "12.5", in units of `unit_ms`. False: it is no such number. */
static bool read_number(str text, msec unit_ms, msec *ret_ms)
{
    str rest = text, whole = str_split(&rest, '.');
    uint64_t value = 0, tenth = 0;
    if (str_to_u64(whole, &value)) {
        for (size_t i = 0; i < whole.len; i++)
            if (whole.p[i] < '0' || whole.p[i] > '9') return false;
        if (!whole.len) return false;
        value = MODEL_RETRY_READ_MS_MAX; /* more than 64 bits */
    }
    if (rest.p && rest.len && str_to_u64((str){rest.p, 1}, &tenth)) return false;
    if (value > MODEL_RETRY_READ_MS_MAX) value = MODEL_RETRY_READ_MS_MAX;
    *ret_ms = (msec)value * unit_ms + (msec)tenth * unit_ms / 10;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_date(str text, msec *ret_wall)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char iso[32];
    if (text.len != 29 || !str_ends(text, STR(" GMT"))) return false;
    size_t month = 0;
    while (month < 12 && memcmp(months + 3 * month, text.p + 8, 3) != 0) month++;
    if (month == 12) return false;
    snprintf(iso, sizeof iso, "%.4s-%02zu-%.2sT%.8sZ", text.p + 12, month + 1, text.p + 5,
             text.p + 17);
    return !clock_parse(str_c(iso), ret_wall);
}

static msec bounded(msec ms)
{
    if (ms < 0) return 0;
    return ms < MODEL_RETRY_READ_MS_MAX ? ms : MODEL_RETRY_READ_MS_MAX;
}

msec status_retry_after(str ms, str after, str date, msec now)
{
    msec wait, at, from = now;
    if (read_number(ms, 1, &wait) || read_number(after, 1000, &wait)) return bounded(wait);
    if (!read_date(after, &at)) return 0;
    if (!read_date(date, &from)) from = now;
    return bounded(at - from);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of providers: again or not, in which words, and when.
 */
#include "model/status.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"

static const struct {
    int status;
    enum model_end end;
    const char *advice; /* somewhere in the text */
} cases[] = {
    {301, MODEL_FAILED, "base_url"},     {400, MODEL_FAILED, "request"},
    {401, MODEL_FAILED, "api_key_file"}, {402, MODEL_FAILED, "balance"},
    {403, MODEL_FAILED, "key"},          {404, MODEL_FAILED, "name and base_url"},
    {405, MODEL_FAILED, "base_url"},     {408, MODEL_AGAIN, "too long"},
    {409, MODEL_FAILED, "refuses"},      {413, MODEL_FAILED, "too large"},
    {418, MODEL_FAILED, "refuses"},      {422, MODEL_FAILED, "request"},
    {425, MODEL_FAILED, "refuses"},      {429, MODEL_AGAIN, "too many"},
    {500, MODEL_AGAIN, "problem"},       {502, MODEL_AGAIN, "problem"},
    {503, MODEL_AGAIN, "problem"},       {529, MODEL_AGAIN, "overloaded"},
    {599, MODEL_AGAIN, "problem"},
};

static void meanings(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fault why = {0};
        char start[64];
        assert_int_equal(status_end(cases[i].status), cases[i].end);
        status_explain(&why, "host:1", cases[i].status, STR("so it is"));
        snprintf(start, sizeof start, "host:1 answered %d: ", cases[i].status);
        assert_true(str_starts(str_c(why.text), str_c(start)));
        assert_true(str_ends(str_c(why.text), STR(". It says: so it is")));
        if (!strstr(why.text, cases[i].advice))
            fail_msg("\"%s\" does not say \"%s\"", why.text, cases[i].advice);
        status_explain(&why, "host:1", cases[i].status, STR_EMPTY);
        assert_null(strstr(why.text, "It says"));
    }
}

#define KEY "sk-proj-AbCdEfGhIjKlMnOp"

static const struct {
    const char *words, *key, *clean;
} texts[] = {
    {"plain words", KEY, "plain words"},
    {"key " KEY "!", KEY, "key ************************!"},
    {"key=" KEY KEY, KEY, "key=************************************************"},
    {"cut: sk-proj-AbC", KEY, "cut: ***********"},
    {"inside: xxGhIjKlMnxx", KEY, "inside: ************"}, /* the stars take the word with them */
    {"short: GhIjKlM", KEY, "short: GhIjKlM"},             /* 7 bytes */
    {"shown: sk-pr***nOp.", KEY, "shown: ************"},
    {"shown: sk-pr***nOp.", "", "shown: ************"},
    {"**bold** and ** and a*b", KEY, "**bold** and ** and a*b"},
    {"the key is abc", "abc", "the key is ***"},
    {"no key", "", "no key"},
    {" two\nlines\t\x1b[31mred\x7f ", KEY, "two lines  [31mred"},
    {"bad \xff\xe4\xbd.", KEY, "bad ???."},
    {"c1 \xc2\x9b"
     "31m",
     KEY, "c1   31m"},
    {"\xe4\xbd\xa0\xe5\xa5\xbd", KEY, "\xe4\xbd\xa0\xe5\xa5\xbd"},
    {"\n\t ", KEY, ""},
    {"", KEY, ""},
};

static void cleans(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_str(status_clean(&arena, str_c(texts[i].words), str_c(texts[i].key)),
                   str_c(texts[i].clean));
}

/* Wherever the cut falls: whole characters, never eight bytes of the key. */
static void cuts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t before = 0; before < 900; before++) {
        AUTO(buf_done) struct buf words;
        buf_init(&words, 4096);
        for (size_t i = 0; i < before; i++) buf_char(&words, i % 9 ? 'x' : ' ');
        buf_append(&words, STR(" " KEY " "));
        for (size_t i = 0; i < 300; i++) buf_append(&words, STR("\xe5\xa5\xbd"));
        str clean = status_clean(&arena, buf_str(&words), STR(KEY));
        assert_true(clean.len <= MODEL_WORDS_BYTES_MAX);
        assert_true(utf8_valid(clean));
        for (size_t i = 0; i + STATUS_KEY_RUN <= sizeof KEY - 1; i++)
            assert_true(str_find(clean, (str){&KEY[i], STATUS_KEY_RUN}) < 0);
    }
}

#define NOW "Sun, 15 Nov 2026 05:52:50 GMT"

static const struct {
    const char *ms, *after, *date;
    msec wait;
} waits[] = {
    {"", "", "", 0},
    {"", "12", "", 12000},
    {"", "0", "", 0},
    {"", "1.5", "", 1500},
    {"250", "12", "", 250},
    {"250.7", "", "", 250},
    {"", "-1", "", 0},
    {"", "soon", "", 0},
    {"soon", "2", "", 2000},
    {"", "999999", "", MODEL_RETRY_READ_MS_MAX},
    {"", "99999999999999999999999999", "", MODEL_RETRY_READ_MS_MAX},
    {"18446744073709551615", "", "", MODEL_RETRY_READ_MS_MAX},
    {"", "Sun, 15 Nov 2026 05:53:20 GMT", NOW, 30000},
    {"", "Sun, 15 Nov 2026 05:52:20 GMT", NOW, 0},
    {"", "Mon, 16 Nov 2099 05:52:20 GMT", NOW, MODEL_RETRY_READ_MS_MAX},
    {"", "Sun, 15 Nov 2026 05:52:55 GMT", "", 5000}, /* against our own clock */
    {"", "Sun, 15 Nov 2026 05:52:55 GMT", "yesterday", 5000},
    {"", "Sun, 15 Nvv 2026 05:53:20 GMT", NOW, 0},
    {"", "Sun, 15 Nov 2026 05:53:20 CET", NOW, 0},
    {"", "Sun, 15 Nov 2026 25:53:20 GMT", NOW, 0},
    {"", ".5", "", 0},
    {"", "1.x", "", 0},
};

static void retry_after(void **state)
{
    (void)state;
    msec now;
    assert_int_equal(clock_parse(STR("2026-11-15T05:52:50Z"), &now), OK);
    for (size_t i = 0; i < COUNT(waits); i++) {
        msec wait = status_retry_after(str_c(waits[i].ms), str_c(waits[i].after),
                                       str_c(waits[i].date), now);
        if (wait != waits[i].wait)
            fail_msg("\"%s\" \"%s\": got %lld, expected %lld", waits[i].ms, waits[i].after,
                     (long long)wait, (long long)waits[i].wait);
    }
}

int test_status(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meanings),
        cmocka_unit_test(cleans),
        cmocka_unit_test(cuts),
        cmocka_unit_test(retry_after),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}

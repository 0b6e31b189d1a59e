/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, types and addresses of attachments.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"
#include "thread/file_mime.h"
#include "thread/file_name.h"
#include "thread/file_url.h"

static int setup(void **state)
{
    static struct arena arena;
    arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    arena_done(*state);
    return 0;
}

/* ---- names ---- */

static void names(void **state)
{
    static const struct {
        str given, kept;
    } rows[] = {
        {STR("a.png"), STR("a.png")},
        {STR(""), STR("")},
        {STR("../../x"), STR("x")},
        {STR("/etc/passwd"), STR("passwd")},
        {STR("C:\\dir\\x.txt"), STR("x.txt")},
        {STR("a/b\\c"), STR("c")},
        {STR("dir/"), STR("")},
        {STR("."), STR("")},
        {STR(".."), STR("")},
        {STR("a/.."), STR("")},
        {STR("..."), STR("...")},
        {STR(".profile"), STR(".profile")},
        {STR("  a b.txt "), STR("a b.txt")},
        {STR("a\0b\r\nc\td\x7f.txt"), STR("abcd.txt")},
        {STR("a\"b;c%d.txt"), STR("a\"b;c%d.txt")},
        {STR("会议 纪要.pdf"), STR("会议 纪要.pdf")},
        {STR("a\xe3\x80\x80"
             "b\xc2\xa0"
             "c"),
         STR("a b c")}, /* wide spaces */
        {STR("x\xe2\x80\xae"
             "gpj.exe"),
         STR("xgpj.exe")}, /* turned around */
        {STR("a\xe2\x80\x8b\xef\xbb\xbf"
             "b\xe2\x81\xa6"
             "c\xe2\x80\xa8"
             "d"),
         STR("abcd")},
        {STR("\x01\x02"), STR("")},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(attachment_name(*state, rows[i].given), rows[i].kept);
}

static void long_names(void **state)
{
    char name[5 * 1024];
    memset(name, 'x', sizeof name);
    assert_int_equal(attachment_name(*state, (str){name, FILENAME_BYTES_MAX}).len, 255);
    assert_int_equal(attachment_name(*state, (str){name, FILENAME_BYTES_MAX + 1}).len, 255);
    assert_int_equal(attachment_name(*state, (str){name, sizeof name}).len, 255);
    memcpy(name + 254, "会", 3); /* does not fit */
    assert_int_equal(attachment_name(*state, (str){name, sizeof name}).len, 254);
    memcpy(name + 252, "会", 3); /* just does */
    assert_int_equal(attachment_name(*state, (str){name, sizeof name}).len, 255);
}

static void dispositions(void **state)
{
    static const struct {
        bool shown;
        str name, value;
    } rows[] = {
        {false, STR("a.txt"), STR("attachment; filename=\"a.txt\"")},
        {true, STR("a b.png"), STR("inline; filename=\"a b.png\"")},
        {false, STR(""), STR("attachment")},
        {false, STR("a\"b\\c%d.txt"),
         STR("attachment; filename=\"a_b_c_d.txt\"; filename*=UTF-8''a%22b%5Cc%25d.txt")},
        {false, STR("会;'*.pdf"),
         STR("attachment; filename=\"_;'*.pdf\"; filename*=UTF-8''%E4%BC%9A%3B%27%2A.pdf")},
        {true, STR("é.png"), STR("inline; filename=\"_.png\"; filename*=UTF-8''%C3%A9.png")},
        {false, STR("a\r\nX: y"),
         STR("attachment; filename=\"a__X: y\"; filename*=UTF-8''a%0D%0AX%3A%20y")},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(attachment_disposition(*state, rows[i].shown, rows[i].name), rows[i].value);
    char longest[FILENAME_BYTES_MAX];
    memset(longest, '\x80', sizeof longest);
    longest[0] = '%';
    assert_true(attachment_disposition(*state, true, (str){longest, sizeof longest}).len > 700);
}

/* ---- types ---- */

static void types(void **state)
{
    (void)state;
    static const struct {
        str bytes;
        const char *type;
    } rows[] = {
        {STR("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0"), "image/png"},
        {STR("GIF89a\1\0\1\0\0\0\0"), "image/gif"},
        {STR("\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"), "image/jpeg"},
        {STR("RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\1\0\x9d\1\x2a\1\0\1\0"), "image/webp"},
        {STR("%PDF-1.7\n"), "application/pdf"},
        {STR("<!DOCTYPE html><html><script>alert(1)</script></html>"), "text/html"},
        {STR("<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>"), "image/svg+xml"},
        {STR("hello, world\n"), "text/plain"},
        {STR("{\"a\":[1,2,3]}"), "application/json"},
        {STR("\1\2\3\4\xff\xfe\xfd\0\0\0\7\7"), "application/octet-stream"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char type[MIME_BYTES];
        struct fault why = {0};
        assert_int_equal(mime_of(rows[i].bytes, type, &why), OK);
        assert_string_equal(type, rows[i].type);
    }
}

static void served(void **state)
{
    (void)state;
    static const char *const same[] = {"image/png",        "application/pdf",  "text/plain",
                                       "application/json", "video/mp4",        "audio/mpeg",
                                       "application/zip",  "application/gzip", "text/csv"};
    static const char *const hidden[] = {
        "text/html",
        "application/xhtml+xml",
        "image/svg+xml",
        "text/xml",
        "application/xml",
        "application/rss+xml",
        "text/javascript",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "text/x-shellscript",
        "text/x-python",
        "text/x-php",
        "text/css",
        "application/x-shockwave-flash",
        "application/x-java-applet",
        "message/rfc822",
        "",
        "image",
        "image/",
        "/png",
        "image/png/x",
        "image/png\r\nX: y",
        "image/png; charset=x",
    };
    for (size_t i = 0; i < COUNT(same); i++)
        assert_str(mime_served(str_c(same[i])), str_c(same[i]));
    for (size_t i = 0; i < COUNT(hidden); i++)
        assert_str(mime_served(str_c(hidden[i])), STR("application/octet-stream"));
    assert_true(mime_inline(STR("image/png")) && mime_inline(STR("image/jpeg")));
    assert_true(mime_inline(STR("image/gif")) && mime_inline(STR("image/webp")));
    static const char *const saved[] = {"image/svg+xml", "image/bmp", "image/x-icon",
                                        "text/plain",    "text/html", "application/pdf",
                                        "image/pngx",    ""};
    for (size_t i = 0; i < COUNT(saved); i++) assert_false(mime_inline(str_c(saved[i])));
}

/* ---- addresses ---- */

struct parts {
    str exp, sig;
};

static struct parts split(str url)
{
    str_split(&url, '?');
    str exp = str_split(&url, '&');
    assert_true(str_starts(exp, STR("exp=")) && str_starts(url, STR("sig=")));
    return (struct parts){str_drop(exp, 4), str_drop(url, 4)};
}

static struct secret *secret_made(void)
{
    char folder[FOLDER_BYTES];
    struct secret *secret = NULL;
    struct fault why = {0};
    folder_make(folder);
    if (secret_open(folder, NULL, &secret, &why)) fail_msg("%s", why.text);
    folder_remove(folder);
    return secret;
}

static void addresses(void **state)
{
    enum { STEP = ATTACHMENT_URL_STEP_MS, LIFE = ATTACHMENT_URL_MS_MAX };
    AUTO(secret_freep) struct secret *secret = secret_made();
    AUTO(secret_freep) struct secret *other = secret_made();
    str id = STR("att_1");
    msec now = (msec)STEP * 1000 * 1000 + 7;
    struct attachment_url url = attachment_url_make(*state, secret, STR("/base"), id, now);
    assert_true(str_starts(url.text, STR("/base/api/v1/agent/attachments/att_1?exp=")));
    assert_int_equal(url.expires, now - 7 + LIFE);
    struct parts p = split(url.text);

    /* good until its last millisecond, and for nothing else */
    assert_int_equal(attachment_url_check(secret, id, p.exp, p.sig, now, NULL), OK);
    assert_int_equal(attachment_url_check(secret, id, p.exp, p.sig, url.expires - 1, NULL), OK);
    assert_int_equal(attachment_url_check(secret, id, p.exp, p.sig, url.expires, NULL),
                     ERR_FORBIDDEN);
    assert_int_equal(attachment_url_check(secret, STR("att_2"), p.exp, p.sig, now, NULL),
                     ERR_FORBIDDEN);
    assert_int_equal(attachment_url_check(other, id, p.exp, p.sig, now, NULL), ERR_FORBIDDEN);
    assert_int_equal(attachment_url_check(secret, id, STR_EMPTY, p.sig, now, NULL), ERR_FORBIDDEN);
    assert_int_equal(attachment_url_check(secret, id, p.exp, STR_EMPTY, now, NULL), ERR_FORBIDDEN);
    static const char *const times[] = {"0",   "-1", "99999999999",         "100000000000",
                                        "1e9", "x",  "18446744073709551616"};
    for (size_t i = 0; i < COUNT(times); i++)
        assert_int_equal(attachment_url_check(secret, id, str_c(times[i]), p.sig, now, NULL),
                         ERR_FORBIDDEN);
    str padded = arena_printf(*state, "0%.*s", STR_ARG(p.exp));
    assert_int_equal(attachment_url_check(secret, id, padded, p.sig, now, NULL), ERR_FORBIDDEN);

    /* every byte counts */
    for (size_t i = 0; i < p.sig.len; i++) {
        char *changed = arena_cstr(*state, p.sig);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_int_equal(attachment_url_check(secret, id, p.exp, (str){changed, p.sig.len}, now,
                                              NULL),
                         ERR_FORBIDDEN);
    }
    for (size_t i = 0; i < p.exp.len; i++) {
        char *changed = arena_cstr(*state, p.exp);
        changed[i] = changed[i] == '9' ? '8' : '9';
        assert_int_equal(attachment_url_check(secret, id, (str){changed, p.exp.len}, p.sig, now,
                                              NULL),
                         ERR_FORBIDDEN);
    }
}

/* The same for some minutes, never longer than it may. */
static void steps(void **state)
{
    enum { STEP = ATTACHMENT_URL_STEP_MS, LIFE = ATTACHMENT_URL_MS_MAX };
    AUTO(secret_freep) struct secret *secret = secret_made();
    msec base = (msec)STEP * 12345;
    str first = attachment_url_make(*state, secret, STR_EMPTY, STR("att_1"), base).text;
    static const struct {
        msec later;
        bool same;
    } rows[] = {{1, true}, {STEP - 1, true}, {STEP, false}, {STEP + 1, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        msec now = base + rows[i].later;
        struct attachment_url url =
            attachment_url_make(*state, secret, STR_EMPTY, STR("att_1"), now);
        assert_int_equal(str_eq(url.text, first), rows[i].same);
        assert_true(url.expires - now <= LIFE && url.expires - now > LIFE - STEP);
    }
}

static void json(void **state)
{
    struct attachment row = {.id = STR("att_1"),
                             .mime = STR("image/png"),
                             .filename = STR("a\"会.png"),
                             .sha256 = STR("ab"),
                             .bytes = 1ULL << 40,
                             .width = 640,
                             .height = 480};
    struct attachment_url url = {.text = STR("/u?exp=1&sig=2"), .expires = 0};
    assert_str(attachment_json(*state, &row, &url),
               STR("{\"id\":\"att_1\",\"url\":\"/u?exp=1&sig=2\",\"mimeType\":\"image/png\","
                   "\"filename\":\"a\\\"会.png\",\"size\":1099511627776,\"sha256\":\"ab\","
                   "\"expiresAt\":\"1970-01-01T00:00:00.000Z\",\"width\":640,\"height\":480}"));
    row.width = 0;
    assert_true(str_find(attachment_json(*state, &row, &url), STR("height")) < 0);
}

int test_attachment(void)
{
#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_ARENA(names),  WITH_ARENA(long_names), WITH_ARENA(dispositions), WITH_ARENA(types),
        WITH_ARENA(served), WITH_ARENA(addresses),  WITH_ARENA(steps),        WITH_ARENA(json),
    };
    return cmocka_run_group_tests_name("attachment", tests, NULL, NULL);
}

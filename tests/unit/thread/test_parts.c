/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a message: what is understood, what is refused, what is stored.
 */
#include "thread/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"

static const struct parts_home home = {
    .origin = STR("https://app.example:8443"), .prefix = STR("/fermata"), .host = STR("here:80")};

static enum err parse(struct arena *arena, const char *text, struct parts *parts, struct fault *why)
{
    struct json *list = NULL;
    assert_int_equal(json_parse(arena, str_c(text), &list, NULL), OK);
    return parts_parse(arena, list, 3, &home, parts, why);
}

/* "own:att_1" and so on: what a part was understood as. */
static str shown(struct arena *arena, const struct part *part)
{
    switch (part->kind) {
    case PART_TEXT:
        return arena_printf(arena, "text:%.*s", STR_ARG(part->text));
    case PART_OWN:
        return arena_printf(arena, "own:%.*s", STR_ARG(part->id));
    case PART_DATA:
        return arena_printf(arena, "data:%.*s:%.*s:%.*s", STR_ARG(part->mime), STR_ARG(part->data),
                            STR_ARG(part->filename));
    case PART_FOREIGN:
        return arena_printf(arena, "url:%.*s:%.*s:%.*s", STR_ARG(part->type), STR_ARG(part->mime),
                            STR_ARG(part->url));
    }
    return STR_EMPTY;
}

static void understood(void **state)
{
    (void)state;
    static const struct {
        const char *part, *shown;
    } rows[] = {
        {"{\"type\":\"text\",\"text\":\"a\\nb\"}", "text:a\nb"},
        {"{\"type\":\"text\",\"text\":\"\"}", "text:"},
        {"{\"type\":\"binary\",\"id\":\"att_1\"}", "own:att_1"},
        {"{\"type\":\"binary\",\"mimeType\":\"image/png\",\"id\":\"att_1\",\"url\":null}",
         "own:att_1"},
        {"{\"type\":\"binary\",\"url\":\"/api/v1/agent/attachments/att_1\"}", "own:att_1"},
        {"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":"
         "\"/fermata/api/v1/agent/attachments/att_1?exp=1&sig=x\"}}",
         "own:att_1"},
        {"{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":\"AAAA\",\"filename\":\"a/"
         "b.png\"}",
         "data:image/png:AAAA:b.png"},
        {"{\"type\":\"binary\",\"mimeType\":\"text/plain; charset=utf-8\",\"data\":\"AAAA\"}",
         "data:text/plain:AAAA:"},
        {"{\"type\":\"document\",\"source\":{\"type\":\"data\",\"value\":\"AA==\","
         "\"mimeType\":\"application/pdf\"},\"metadata\":{\"filename\":\"x.pdf\"}}",
         "data:application/pdf:AA==:x.pdf"},
        {"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":\"data:image/"
         "gif;base64,AA==\"}}",
         "data:image/gif:AA==:"},
        {"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":\"https://x.example/a?b#c\"}}",
         "url:image::https://x.example/a?b#c"},
        {"{\"type\":\"audio\",\"source\":{\"type\":\"url\",\"value\":\"http://x/a\","
         "\"mimeType\":\"audio/ogg\"}}",
         "url:audio:audio/ogg:http://x/a"},
        {"{\"type\":\"binary\",\"mimeType\":\"video/mp4\",\"url\":\"https://x.example/v\"}",
         "url:binary:video/mp4:https://x.example/v"},
        /* bytes beside an address: the bytes are what was meant */
        {"{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":\"AAAA\",\"url\":\"https://x/"
         "y\"}",
         "data:image/png:AAAA:"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct parts parts;
        struct fault why = {0};
        arena_init(&arena);
        str list = arena_printf(&arena, "[%s]", rows[i].part);
        if (parse(&arena, arena_cstr(&arena, list), &parts, &why))
            fail_msg("%s: %s", rows[i].part, why.text);
        assert_str(shown(&arena, &parts.rows[0]), str_c(rows[i].shown));
        assert_int_equal(parts.files, parts.rows[0].kind != PART_TEXT);
    }
}

static void refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "7",
        "null",
        "[]",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"video_call\"}",
        "{\"type\":\"text\"}",
        "{\"type\":\"text\",\"text\":7}",
        "{\"type\":\"binary\"}",
        "{\"type\":\"binary\",\"mimeType\":\"image/png\"}",
        "{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":\"\"}",
        "{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":7}",
        "{\"type\":\"binary\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":7,\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":\"png\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":\"/png\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":\"image/\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":\"a/b/c\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"mimeType\":\"a/b\\nc\",\"data\":\"AAAA\"}",
        "{\"type\":\"binary\",\"id\":7}",
        "{\"type\":\"binary\",\"id\":\"att 1\"}",
        "{\"type\":\"binary\",\"id\":\"att_1\",\"filename\":7}",
        "{\"type\":\"binary\",\"url\":[]}",
        "{\"type\":\"binary\",\"url\":\"ftp://x/y\"}",
        "{\"type\":\"binary\",\"url\":\"file:///etc/passwd\"}",
        "{\"type\":\"binary\",\"url\":\"javascript:alert(1)\"}",
        "{\"type\":\"binary\",\"url\":\"/api/v1/agent/attachments/\"}",
        "{\"type\":\"binary\",\"url\":\"/api/v1/agent/attachments/a%2fb\"}",
        "{\"type\":\"binary\",\"url\":\"/api/v1/agent/threads/t1\"}",
        "{\"type\":\"binary\",\"url\":\"https://x/a b\"}",
        "{\"type\":\"binary\",\"url\":\"https://x/a\\u202eb\"}",
        "{\"type\":\"binary\",\"url\":\"data:text/plain,hello\"}",
        "{\"type\":\"binary\",\"url\":\"data:;base64,AA==\"}",
        "{\"type\":\"image\"}",
        "{\"type\":\"image\",\"source\":\"https://x/y\"}",
        "{\"type\":\"image\",\"source\":{}}",
        "{\"type\":\"image\",\"source\":{\"type\":\"url\"}}",
        "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":\"\"}}",
        "{\"type\":\"image\",\"source\":{\"type\":\"file\",\"value\":\"x\"}}",
        "{\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"AAAA\"}}",
        "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct parts parts;
        struct fault why = {0};
        arena_init(&arena);
        str list = arena_printf(&arena, "[{\"type\":\"text\",\"text\":\"x\"},%s]", rows[i]);
        if (parse(&arena, arena_cstr(&arena, list), &parts, &why) != ERR_INVALID_FIELD)
            fail_msg("%s was taken", rows[i]);
        assert_string_equal(why.field, "messages[3].content[1]");
        assert_true(why.text[0]);
    }
}

static void how_many(void **state)
{
    (void)state;
    for (size_t count = PART_FILES_MAX; count <= PART_FILES_MAX + 1; count++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf list;
        struct parts parts;
        struct fault why = {0};
        arena_init(&arena);
        buf_init(&list, 64 * 1024);
        buf_char(&list, '[');
        for (size_t i = 0; i < count; i++)
            buf_printf(&list, "%s{\"type\":\"binary\",\"id\":\"a%zu\"}", i ? "," : "", i);
        buf_append(&list, STR(",{\"type\":\"text\",\"text\":\"words do not count\"}]"));
        enum err e = parse(&arena, arena_cstr(&arena, buf_str(&list)), &parts, &why);
        assert_int_equal(e, count > PART_FILES_MAX ? ERR_INVALID_FIELD : OK);
        if (e) assert_string_equal(why.field, "messages[3].content[32]");
    }
}

static void own_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *url, *id;
    } rows[] = {
        {"/api/v1/agent/attachments/att_1", "att_1"},
        {"/api/v1/agent/attachments/att_1?exp=9&sig=k.abc", "att_1"},
        {"/api/v1/agent/attachments/att_1#x", "att_1"},
        {"/fermata/api/v1/agent/attachments/att_1", "att_1"},
        {"https://app.example:8443/fermata/api/v1/agent/attachments/att_1", "att_1"},
        {"https://app.example:8443/api/v1/agent/attachments/att_1", "att_1"},
        {"http://here:80/api/v1/agent/attachments/att_1", "att_1"},
        {"http://HERE:80/fermata/api/v1/agent/attachments/att_1?x", "att_1"},
        {"http://there:80/api/v1/agent/attachments/att_1", ""},
        {"http://here:8/api/v1/agent/attachments/att_1", ""},
        {"http://here:80@evil.example/api/v1/agent/attachments/att_1", ""},
        {"https://app.example:8443.evil.example/api/v1/agent/attachments/att_1", ""},
        {"https://app.example:84430/api/v1/agent/attachments/att_1", ""},
        {"//app.example:8443/api/v1/agent/attachments/att_1", ""},
        {"/other/api/v1/agent/attachments/att_1", ""},
        {"/api/v1/agent/attachments/att_1/x", ""},
        {"/api/v1/agent/attachments/", ""},
        {"/api/v1/agent/attachments", ""},
        {"", ""},
        {"https://", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(parts_own_id(&home, str_c(rows[i].url)), str_c(rows[i].id));
    assert_str(parts_own_id(&(struct parts_home){0}, STR("http:///api/v1/agent/attachments/a")),
               STR_EMPTY);
}

static void base64(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } rows[] = {
        {"", ""},           {"Zg==", "f"},        {"Zm8=", "fo"},
        {"Zm9v", "foo"},    {"Zm9vYg==", "foob"}, {"+/+/", "\xfb\xff\xbf"},
        {"Zg", NULL},       {"Zg=", NULL},        {"Zh==", NULL},
        {"Zm9=", NULL},     {"Z===", NULL},       {"====", NULL},
        {"Zg==Zg==", NULL}, {"Zm9v\n", NULL},     {"Zm 9", NULL},
        {"-_-_", NULL},     {"Zm9\xc3", NULL},    {"=m9v", NULL},
        {"Z=9v", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char out[64];
        size_t len = 99;
        bool fine = parts_base64(str_c(rows[i].text), out, &len);
        if (fine != (rows[i].bytes != NULL)) fail_msg("\"%s\"", rows[i].text);
        if (fine) assert_str(((str){(const char *)out, len}), str_c(rows[i].bytes));
        if (!fine) assert_int_equal(len, 99);
    }
    char same[] = "Zm9vYmFy";
    size_t len;
    assert_true(parts_base64(str_c(same), (unsigned char *)same, &len)); /* in its own place */
    assert_str(((str){same, len}), STR("foobar"));
}

/* ---- what is stored ---- */

static struct thread thread_of(struct db_fixture *f, const char *owner)
{
    struct thread thread = {.owner = str_c(owner), .thread_id = STR("here")};
    assert_int_equal(thread_add(f->db, &thread), OK);
    return thread;
}

static void add_row(struct db_fixture *f, const char *id, const char *owner, uint32_t width)
{
    struct attachment row = {.id = str_c(id),
                             .owner = str_c(owner),
                             .thread_id = STR("t0"),
                             .mime = STR("image/png"),
                             .filename = STR("c\"at.png"),
                             .sha256 = STR("00"),
                             .bucket = STR("attachments"),
                             .path = str_c(id),
                             .bytes = 70,
                             .width = width,
                             .height = width,
                             .created = 1};
    assert_int_equal(attachment_add(f->db, &row), OK);
}

static void taken(void **state)
{
    struct db_fixture *f = *state;
    struct thread thread = thread_of(f, "ann");
    static const struct attachment stored = {
        .id = STR("att_new"), .mime = STR("text/plain"), .bytes = 3};
    struct parts parts;
    struct message message = {0};
    struct fault why = {0};
    add_row(f, "att_1", "ann", 2);
    add_row(f, "att_2", "ann", 0);
    assert_int_equal(
        parse(&f->arena,
              "[\n{\"type\":\"text\",\"more\":1,\"text\":\"a\\u0041\"},"
              "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":"
              "\"/api/v1/agent/attachments/att_1\"},\"filename\":\"lie.exe\"},"
              "{\"type\":\"binary\",\"mimeType\":\"a/b\",\"data\":\"AAAA\"},"
              "{\"type\":\"binary\",\"id\":\"att_2\"},{\"type\":\"binary\",\"id\":\"att_1\"},"
              "{\"type\":\"video\",\"source\":{\"type\":\"url\",\"value\":\"https://x/v\"},"
              "\"data\":\"smuggled\"}]",
              &parts, &why),
        OK);
    parts.rows[2].stored = &stored;
    assert_int_equal(parts_take(f->db, &f->arena, &parts, &thread, &message, &why), OK);
    assert_str(
        message.content,
        STR("[{\"type\":\"text\",\"text\":\"a\\u0041\"},"
            "{\"type\":\"binary\",\"id\":\"att_1\",\"mimeType\":\"image/png\","
            "\"filename\":\"c\\\"at.png\"},"
            "{\"type\":\"binary\",\"id\":\"att_new\",\"mimeType\":\"text/plain\"},"
            "{\"type\":\"binary\",\"id\":\"att_2\",\"mimeType\":\"image/png\","
            "\"filename\":\"c\\\"at.png\"},"
            "{\"type\":\"binary\",\"id\":\"att_1\",\"mimeType\":\"image/png\","
            "\"filename\":\"c\\\"at.png\"},"
            "{\"type\":\"video\",\"source\":{\"type\":\"url\",\"value\":\"https://x/v\"}}]"));
    assert_str(message.attachments,
               STR("[{\"id\":\"att_1\",\"mimeType\":\"image/png\",\"filename\":\"c\\\"at.png\","
                   "\"size\":70,\"width\":2,\"height\":2},"
                   "{\"id\":\"att_new\",\"mimeType\":\"text/plain\",\"size\":3},"
                   "{\"id\":\"att_2\",\"mimeType\":\"image/png\",\"filename\":\"c\\\"at.png\","
                   "\"size\":70}]"));
    assert_str(parts_plain(&f->arena, &parts), STR("aA"));
}

/* Another owner's file is refused in the words of one that does not exist. */
static void whose(void **state)
{
    struct db_fixture *f = *state;
    struct thread thread = thread_of(f, "ann");
    add_row(f, "att_1", "bob", 1);
    static const char *const ids[] = {"att_1", "att_9"};
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct parts parts;
        struct message message = {.content = STR("untouched")};
        struct fault why = {0};
        str list = arena_printf(&f->arena,
                                "[{\"type\":\"text\",\"text\":\"x\"},"
                                "{\"type\":\"binary\",\"id\":\"%s\"}]",
                                ids[i]);
        assert_int_equal(parse(&f->arena, arena_cstr(&f->arena, list), &parts, &why), OK);
        assert_int_equal(parts_take(f->db, &f->arena, &parts, &thread, &message, &why),
                         ERR_INVALID_FIELD);
        assert_string_equal(why.field, "messages[3].content[1]");
        char text[64];
        snprintf(text, sizeof text, "there is no attachment \"%s\"", ids[i]);
        assert_string_equal(why.text, text);
        assert_str(message.content, STR("untouched"));
    }
}

static void words_only(void **state)
{
    struct db_fixture *f = *state;
    struct thread thread = thread_of(f, "ann");
    struct parts parts;
    struct message message = {0};
    assert_int_equal(parse(&f->arena, "[{\"type\":\"text\",\"text\":\"a\"}]", &parts, NULL), OK);
    assert_int_equal(parts_take(f->db, &f->arena, &parts, &thread, &message, NULL), OK);
    assert_str(message.content, STR("[{\"type\":\"text\",\"text\":\"a\"}]"));
    assert_str(message.attachments, STR_EMPTY);
}

int test_parts(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(understood),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(how_many),
                                       cmocka_unit_test(own_addresses),
                                       cmocka_unit_test(base64),
                                       WITH_DB(taken),
                                       WITH_DB(whose),
                                       WITH_DB(words_only)};
    return cmocka_run_group_tests_name("app/parts", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "chat/channel.h"
#include "check.h"
#include "net/problem.h"
#include "net/webhook_sign.h"

enum { NOW_S = 1700000000 };
static const msec NOW = (msec)NOW_S * 1000;

static const struct channel_home home = {.name = STR("own"),
                                         .secret = STR("secret"),
                                         .url = STR("http://127.0.0.1:1/in"),
                                         .account = STR("{}")};

static struct hook_answer hook(struct arena *arena, const struct channel_home *at, str body,
                               const char *timestamp, const char *signature, msec now)
{
    struct hook_answer answer = {0};
    struct hook_call call = {
        .body = body, .timestamp = str_c(timestamp), .signature = str_c(signature), .now = now};
    channel_webhook.hook(at, arena, &call, &answer);
    return answer;
}

static struct hook_answer post(struct arena *arena, str body)
{
    char signature[WEBHOOK_SIGNATURE_BYTES];
    webhook_sign(home.secret, NOW_S, body, signature);
    return hook(arena, &home, body, "1700000000", signature, NOW);
}

/* ---- in ---- */

static void signed_only(void **state)
{
    (void)state;
    static const str body = STR("{\"id\":\"1\",\"sender\":\"u\",\"text\":\"hi\"}");
    char good[WEBHOOK_SIGNATURE_BYTES], early[WEBHOOK_SIGNATURE_BYTES];
    webhook_sign(home.secret, NOW_S, body, good);
    webhook_sign(home.secret, 5, body, early);
    char upper[WEBHOOK_SIGNATURE_BYTES], cut[WEBHOOK_SIGNATURE_BYTES];
    memcpy(upper, good, sizeof upper);
    memcpy(cut, good, sizeof cut);
    upper[0] = 'V';
    cut[WEBHOOK_SIGNATURE_BYTES - 2] = '\0';
    const struct {
        const char *timestamp, *signature;
        int late_s, status;
    } rows[] = {
        {"1700000000", good, 0, 202},
        {"1700000000", good, 300, 202},
        {"1700000000", good, 301, 401},
        {"1700000000", good, -300, 202},
        {"1700000000", good, -301, 401},
        {"1700000001", good, 0, 401},
        {"1700000000", early, 0, 401},
        {"5", early, 0, 401},
        {"1700000000", upper, 0, 401},
        {"1700000000", cut, 0, 401},
        {"1700000000", "", 0, 401},
        {"", good, 0, 401},
        {"now", good, 0, 401},
        {"-1", good, 0, 401},
        {"99999999999999999999", good, 0, 401},
        {"18446744073709551615", good, 0, 401},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct hook_answer answer = hook(&arena, &home, body, rows[i].timestamp, rows[i].signature,
                                         NOW + rows[i].late_s * 1000);
        if (answer.status != rows[i].status)
            fail_msg("row %zu: %d %s", i, answer.status, answer.detail);
        assert_int_equal(answer.inbound_count, answer.status == 202 ? 1 : 0);
        if (answer.status == 401) assert_string_equal(answer.type, PROBLEM_TYPE);
    }
}

static void no_secret_no_calls(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct channel_home open = home;
    char signature[WEBHOOK_SIGNATURE_BYTES];
    str body = STR("{\"id\":\"1\",\"sender\":\"u\",\"text\":\"hi\"}");
    open.secret = STR_EMPTY;
    webhook_sign(STR_EMPTY, NOW_S, body, signature);
    assert_int_equal(hook(&arena, &open, body, "1700000000", signature, NOW).status, 401);
}

static void post_only(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct hook_answer answer = {0};
    arena_init(&arena);
    channel_webhook.hook(&home, &arena, &(struct hook_call){.get = true, .now = NOW}, &answer);
    assert_int_equal(answer.status, 405);
}

static void messages(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct hook_answer answer =
        post(&arena, STR("{\"id\":\"m 1\",\"sender\":\"用户\",\"name\":\"N\",\"text\":\" 你好\\n\","
                         "\"group\":true,\"quoted\":\"q\",\"button\":\"c:q:c1\",\"files\":["
                         "{\"name\":\"a.txt\",\"mimeType\":\"text/plain\",\"data\":\"aGVsbG8=\"},"
                         "{\"data\":\"aGVsbG8\"}]}"));
    assert_int_equal(answer.status, 202);
    assert_string_equal(answer.type, "application/json");
    assert_str(answer.body, STR("{\"accepted\":true}"));
    assert_int_equal(answer.inbound_count, 1);
    const struct inbound *in = answer.inbounds;
    assert_str(in->id, STR("6:用户:m 1"));
    assert_str(in->sender, STR("用户"));
    assert_str(in->name, STR("N"));
    assert_str(in->text, STR("你好"));
    assert_true(in->group);
    assert_str(in->quoted, STR("q"));
    assert_str(in->button, STR("c:q:c1"));
    assert_int_equal(in->file_count, 2);
    assert_str(in->files[0].name, STR("a.txt"));
    assert_str(in->files[0].mime, STR("text/plain"));
    assert_str(in->files[0].ref, STR("{\"data\":\"aGVsbG8=\"}"));
    assert_str(in->files[1].name, STR(""));
    for (size_t i = 0; i < 2; i++) {
        struct errand errand = {.arena = &arena, .file = &in->files[i]};
        struct channel_request request = {0};
        assert_int_equal(in->files[i].size, 5);
        assert_false(channel_webhook.fetch(&home, &errand, NULL, &request));
        assert_int_equal(errand.verdict, VERDICT_DONE);
        assert_str(errand.bytes, STR("hello"));
    }
}

/* An id is of its sender alone, and as long as one may be. */
static void ids(void **state)
{
    (void)state;
    static char longest[CHANNEL_ID_BYTES_MAX + 1];
    memset(longest, 'a', CHANNEL_ID_BYTES_MAX);
    const char *fits = longest + sizeof "1:u:" - 1; /* with these before it, just so */
    const struct {
        const char *sender, *id, *made; /* made NULL: of a hash */
    } rows[] = {
        {"u", "1", "1:u:1"},     {"v", "1", "1:v:1"},     {"u", "2", "1:u:2"},
        {"u:1", "2", "3:u:1:2"}, {"u", "1:2", "1:u:1:2"}, {"hash", "1", "4:hash:1"},
        {"u", fits, NULL},       {"u", longest, NULL},    {"v", longest, NULL},
        {longest, "1", NULL},    {longest, "2", NULL},    {longest, longest, NULL},
    };
    AUTO(arena_done) struct arena arena;
    str made[COUNT(rows)];
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        str body = arena_printf(&arena, "{\"id\":\"%s\",\"sender\":\"%s\",\"text\":\"hi\"}",
                                rows[i].id, rows[i].sender);
        for (int again = 0; again < 2; again++) {
            struct hook_answer answer = post(&arena, body);
            assert_int_equal(answer.status, 202);
            if (again) assert_str(answer.inbounds->id, made[i]);
            made[i] = answer.inbounds->id;
        }
        if (rows[i].made) assert_str(made[i], str_c(rows[i].made));
        if (rows[i].id == fits) assert_str(made[i], arena_printf(&arena, "1:u:%s", fits));
        if (!rows[i].made && rows[i].id != fits) assert_true(str_starts(made[i], STR("hash:")));
        assert_true(made[i].len <= CHANNEL_ID_BYTES_MAX);
        for (size_t k = 0; k < i; k++) assert_false(str_eq(made[i], made[k]));
    }
}

#define SAID "\"id\":\"1\",\"sender\":\"u\",\"text\":\"hi\""

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body, *field; /* NULL: none */
    } rows[] = {
        {"", NULL},
        {"hi", NULL},
        {"[]", NULL},
        {"{\"id\":\"1\",\"id\":\"2\"}", NULL},
        {"{\"sender\":\"u\",\"text\":\"hi\"}", "id"},
        {"{\"id\":\"1\",\"text\":\"hi\"}", "sender"},
        {"{\"id\":1,\"sender\":\"u\",\"text\":\"hi\"}", "id"},
        {"{\"id\":\"\",\"sender\":\"u\",\"text\":\"hi\"}", "id"},
        {"{\"id\":\"1\",\"sender\":\"a\\nb\",\"text\":\"hi\"}", "sender"},
        {"{\"id\":\"1\",\"sender\":\"a\\u0000\",\"text\":\"hi\"}", "sender"},
        {"{\"id\":\"1\",\"sender\":\"u\"}", "text"},
        {"{\"id\":\"1\",\"sender\":\"u\",\"text\":\" \",\"files\":[]}", "text"},
        {"{" SAID ",\"Text\":\"hi\"}", "Text"},
        {"{" SAID ",\"\\n\":1}", ""},
        {"{" SAID ",\"group\":1}", "group"},
        {"{" SAID ",\"button\":\"\"}", "button"},
        {"{" SAID ",\"files\":{}}", "files"},
        {"{" SAID ",\"files\":[1]}", "files[0]"},
        {"{" SAID ",\"files\":[{}]}", "files[0].data"},
        {"{" SAID ",\"files\":[{\"data\":\"\"}]}", "files[0].data"},
        {"{" SAID ",\"files\":[{\"data\":7}]}", "files[0].data"},
        {"{" SAID ",\"files\":[{\"data\":\"YQ\"},{\"data\":\"a b\"}]}", "files[1].data"},
        {"{" SAID ",\"files\":[{\"data\":\"YQ\",\"name\":\"\"}]}", "files[0].name"},
        {"{" SAID ",\"files\":[{\"data\":\"YQ\",\"mimeType\":1}]}", "files[0].mimeType"},
        {"{" SAID ",\"files\":[{\"data\":\"YQ\",\"url\":\"x\"}]}", "files[0].url"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct json *problem = NULL;
        arena_init(&arena);
        struct hook_answer answer = post(&arena, str_c(rows[i].body));
        if (answer.status != 400) fail_msg("row %zu: %d", i, answer.status);
        assert_string_equal(answer.type, PROBLEM_TYPE);
        assert_int_equal(answer.inbound_count, 0);
        assert_true(answer.detail[0]);
        assert_int_equal(json_parse(&arena, answer.body, &problem, NULL), OK);
        assert_str(json_text(json_get(problem, STR("field"))), str_c(rows[i].field));
    }
}

/* At the limit, and one beyond it. */
static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        size_t max;
        int status;
    } rows[] = {
        {"{\"sender\":\"u\",\"text\":\"hi\",\"id\":\"", "\"}", CHANNEL_ID_BYTES_MAX, 400},
        {"{\"id\":\"1\",\"text\":\"hi\",\"sender\":\"", "\"}", CHANNEL_ID_BYTES_MAX, 400},
        {"{\"id\":\"1\",\"sender\":\"u\",\"text\":\"", "\"}", CHANNEL_TEXT_BYTES_MAX, 400},
        {"{\"id\":\"1\",\"sender\":\"u\",\"button\":\"", "\"}", CHANNEL_ID_BYTES_MAX, 400},
        {"{\"id\":\"1\",\"sender\":\"u\",\"text\":\"hi\"", "}", 0, 413},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t more = 0; more < 2; more++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf body;
            size_t max = rows[i].max;
            arena_init(&arena);
            buf_init(&body, SIZE_MAX);
            buf_append(&body, str_c(rows[i].before));
            if (!max) max = CHANNEL_HOOK_BYTES_MAX - body.len - 1;
            for (size_t k = 0; k < max + more; k++) buf_char(&body, rows[i].max ? 'a' : ' ');
            buf_append(&body, str_c(rows[i].after));
            struct hook_answer answer = post(&arena, buf_str(&body));
            if (answer.status != (more ? rows[i].status : 202))
                fail_msg("row %zu: %d %s", i, answer.status, answer.detail);
        }
}

/* Files as large as a call can bring them are kept with their message. */
static void large_files(void **state)
{
    (void)state;
    for (size_t count = 1; count <= CHANNEL_INBOUND_FILES_MAX + 1; count += 5) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf body;
        arena_init(&arena);
        buf_init(&body, CHANNEL_HOOK_BYTES_MAX);
        size_t each = (CHANNEL_HOOK_BYTES_MAX - 512) / count / 4 * 4;
        buf_append(&body, STR("{" SAID ",\"files\":["));
        for (size_t i = 0; i < count; i++) {
            buf_append(&body, i ? STR(",{\"data\":\"") : STR("{\"data\":\""));
            size_t bytes = count == 1 ? each : each - 64;
            for (size_t k = 0; k < bytes; k++) buf_char(&body, 'A');
            buf_append(&body, STR("\"}"));
        }
        buf_append(&body, STR("]}"));
        assert_false(body.full);
        struct hook_answer answer = post(&arena, buf_str(&body));
        assert_int_equal(answer.status, count > CHANNEL_INBOUND_FILES_MAX ? 400 : 202);
        if (answer.status != 202) continue;
        str json = inbound_json(&arena, answer.inbounds);
        struct inbound back;
        assert_int_equal(inbound_parse(&arena, json, &back), OK);
        assert_int_equal(back.file_count, count);
        assert_str(back.files[count - 1].ref, answer.inbounds->files[count - 1].ref);
    }
}

/* All refs of a message together have a limit. */
static void refs_together(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        AUTO(arena_done) struct arena arena;
        struct inbound_file files[2];
        arena_init(&arena);
        for (size_t i = 0; i < 2; i++) {
            size_t len = CHANNEL_REFS_BYTES_MAX / 2 + (i ? more : 0);
            char *ref = arena_alloc(&arena, len);
            memset(ref, 'A', len);
            memcpy(ref, "{\"data\":\"", 9);
            memcpy(ref + len - 2, "\"}", 2);
            files[i] = (struct inbound_file){.ref = {ref, len}};
        }
        struct inbound back,
            in = {.id = STR("1"), .sender = STR("u"), .files = files, .file_count = 2};
        str json = inbound_json(&arena, &in);
        assert_int_equal(json.len > 0, !more);
        if (more) continue;
        assert_int_equal(inbound_parse(&arena, json, &back), OK);
        assert_str(back.files[1].ref, files[1].ref);
    }
}

static void lost_files(void **state)
{
    (void)state;
    static const char *const refs[] = {"", "{}", "{\"data\":\"\"}", "{\"data\":\"*\"}"};
    for (size_t i = 0; i < COUNT(refs); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct inbound_file file = {.ref = str_c(refs[i])};
        struct errand errand = {.arena = &arena, .file = &file};
        struct channel_request request = {0};
        assert_false(channel_webhook.fetch(&home, &errand, NULL, &request));
        assert_int_equal(errand.verdict, VERDICT_REFUSED);
        assert_true(errand.detail[0]);
    }
}

/* ---- out ---- */

static void requests(void **state)
{
    (void)state;
    static const struct {
        struct outbound message;
        const char *body;
    } rows[] = {
        {{.client_id = STR("i1"), .to = STR("u"), .text = STR("你好"), .class = OUT_FINAL},
         "{\"id\":\"i1\",\"to\":\"u\",\"class\":\"final\",\"text\":\"你好\"}"},
        {{.client_id = STR("i2"),
          .to = STR("u"),
          .text = STR("a\0b"),
          .class = OUT_QUESTION,
          .buttons = STR("[{\"data\":\"c:q:c1\",\"label\":\"1\"}]"),
          .interaction = STR("q")},
         "{\"id\":\"i2\",\"to\":\"u\",\"class\":\"question\",\"text\":\"a\\u0000b\","
         "\"buttons\":[{\"data\":\"c:q:c1\",\"label\":\"1\"}],\"interactionId\":\"q\"}"},
        {{.client_id = STR("i3"),
          .to = STR("u"),
          .class = OUT_NOTICE,
          .file_name = STR("a.bin"),
          .file_mime = STR("application/octet-stream"),
          .file_bytes = STR("\0\xff")},
         "{\"id\":\"i3\",\"to\":\"u\",\"class\":\"notice\",\"file\":{\"name\":\"a.bin\","
         "\"mimeType\":\"application/octet-stream\",\"data\":\"AP8=\"}}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct errand errand = {.arena = &arena, .message = &rows[i].message, .now = NOW + 999};
        struct channel_request request = {0};
        assert_true(channel_webhook.send(&home, &errand, NULL, &request));
        assert_string_equal(request.method, "POST");
        assert_str(request.url, home.url);
        assert_str(request.body, str_c(rows[i].body));
        assert_int_equal(request.header_count, 3);
        assert_string_equal(request.headers[1].name, "Fermata-Timestamp");
        assert_str(request.headers[1].value, STR("1700000000"));
        char signature[WEBHOOK_SIGNATURE_BYTES];
        webhook_sign(STR("secret"), NOW_S, request.body, signature);
        assert_string_equal(request.headers[2].name, "Fermata-Signature");
        assert_str(request.headers[2].value, str_c(signature));
    }
}

static void replies(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum err e;
        const char *body;
        enum errand_verdict verdict;
        const char *server_id;
    } rows[] = {
        {200, OK, "{\"id\":\"s1\"}", VERDICT_DONE, "s1"},
        {204, OK, "", VERDICT_DONE, NULL},
        {202, OK, "{\"id\":7}", VERDICT_DONE, NULL},
        {200, OK, "{\"id\":\"a\\nb\"}", VERDICT_DONE, NULL},
        {200, OK, "<html>", VERDICT_DONE, NULL},
        {200, ERR_TOO_LARGE, "", VERDICT_DONE, NULL},
        {200, ERR_TIMEOUT, "", VERDICT_AGAIN, NULL}, /* its answer never ended */
        {302, OK, "", VERDICT_AGAIN, NULL},
        {400, OK, "", VERDICT_REFUSED, NULL},
        {401, OK, "", VERDICT_AGAIN, NULL}, /* an operator can mend these */
        {403, OK, "", VERDICT_AGAIN, NULL},
        {404, OK, "", VERDICT_AGAIN, NULL},
        {405, OK, "", VERDICT_AGAIN, NULL},
        {409, OK, "", VERDICT_AGAIN, NULL},
        {410, OK, "", VERDICT_REFUSED, NULL},
        {413, OK, "", VERDICT_REFUSED, NULL},
        {415, OK, "", VERDICT_REFUSED, NULL},
        {418, OK, "", VERDICT_AGAIN, NULL},
        {422, OK, "", VERDICT_REFUSED, NULL},
        {422, ERR_NETWORK, "", VERDICT_AGAIN, NULL},
        {408, OK, "", VERDICT_AGAIN, NULL},
        {429, OK, "", VERDICT_AGAIN, NULL},
        {500, OK, "", VERDICT_AGAIN, NULL},
        {503, OK, "", VERDICT_AGAIN, NULL},
        {0, ERR_NETWORK, "", VERDICT_AGAIN, NULL},
        {0, ERR_TIMEOUT, "", VERDICT_AGAIN, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct outbound message = {.client_id = STR("i"), .to = STR("u"), .text = STR("hi")};
        struct errand errand = {.arena = &arena, .message = &message, .now = NOW};
        struct channel_request request = {0};
        struct channel_reply reply = {.e = rows[i].e,
                                      .sent = true,
                                      .status = rows[i].status,
                                      .body = str_c(rows[i].body),
                                      .reason = rows[i].e ? "no answer" : ""};
        assert_true(channel_webhook.send(&home, &errand, NULL, &request));
        assert_false(channel_webhook.send(&home, &errand, &reply, &request));
        if (errand.verdict != rows[i].verdict)
            fail_msg("row %zu: verdict %d", i, (int)errand.verdict);
        assert_str(errand.server_id, str_c(rows[i].server_id));
        assert_int_equal(errand.detail[0] != 0, errand.verdict != VERDICT_DONE);
    }
}

static void kind(void **state)
{
    (void)state;
    const struct channel_ops *ops = channel_kind(STR("webhook"));
    assert_ptr_equal(ops, &channel_webhook);
    assert_true(ops->traits.dedups && ops->traits.files);
    assert_null(ops->poll);
}

int test_webhook(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_only), cmocka_unit_test(no_secret_no_calls),
        cmocka_unit_test(post_only),   cmocka_unit_test(messages),
        cmocka_unit_test(refusals),    cmocka_unit_test(limits),
        cmocka_unit_test(large_files), cmocka_unit_test(refs_together),
        cmocka_unit_test(lost_files),  cmocka_unit_test(requests),
        cmocka_unit_test(replies),     cmocka_unit_test(kind),
        cmocka_unit_test(ids),
    };
    return cmocka_run_group_tests_name("webhook", tests, NULL, NULL);
}

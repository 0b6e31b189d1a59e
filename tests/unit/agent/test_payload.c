/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call leaves behind, and reading it back.
 */
#include "agent/core/payload.h"
#include "agent/core/texts.h"
#include "check.h"
#include "store/blob/blob.h"
#include "store/table/calls.h"
#include "tool/tools.h"

#define HINTS                                                            \
    "{\"version\":\"2.1\",\"intent\":\"status\",\"status\":\"success\"," \
    "\"title\":\"Booked\"}"

static const struct tools no_tools;

static struct call ran(void)
{
    return (struct call){.call_id = STR("call_1"),
                         .tool = STR("place_order"),
                         .state = CALL_DONE,
                         .args = STR("{\"n\":1}"),
                         .result = STR("{\"id\":7}"),
                         .result_bytes = 8,
                         .started = 1000,
                         .ended = 2000};
}

static struct payload made(struct arena *arena, const struct call *call, const char *locale)
{
    struct payload payload;
    payload_make(arena,
                 &(struct payload_source){.call = call,
                                          .locale = str_c(locale),
                                          .run_id = STR("r1"),
                                          .user_id = STR("alice"),
                                          .tools = &no_tools},
                 &payload);
    return payload;
}

static void whole(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct call call = ran();
    call.ui_hints = STR(HINTS);
    struct payload p = made(&arena, &call, "en"), again = made(&arena, &call, "en");
    assert_str(p.bytes, again.bytes);
    assert_str(p.path, again.path);
    assert_str(p.content, STR("id: 7"));
    assert_str(p.ui_hints, STR(HINTS));
    assert_int_equal(p.refused.len, 0);
    assert_false(p.stored);
    assert_true(str_starts(p.ui, STR("{\"version\":\"2.0\"")));
    assert_true(str_find(p.ui, STR("\"requestId\":\"call_1\"")) > 0);

    unsigned char named[HASH_BYTES], real[HASH_BYTES];
    assert_true(blob_path_hash(p.path, named));
    crypto_sha256(p.bytes, real);
    assert_memory_equal(named, real, HASH_BYTES);
    assert_true(str_ends(p.path, STR(".call_1")));

    struct payload_parts parts = {0};
    assert_int_equal(payload_parse(&arena, p.bytes, &parts), OK);
    assert_str(parts.ui, p.ui);
    assert_str(parts.result, call.result);
    assert_int_equal(parts.result_bytes, 8);
    assert_int_equal(parts.result_path.len, 0);
}

/* A bad hint makes no card, and everything else stays as it is. */
static void bad_hints(void **state)
{
    (void)state;
    static const struct {
        const char *hints, *why;
    } rows[] = {
        {"{", "the hints are not JSON"},
        {"{\"version\":\"2.1\",\"intent\":\"dance\",\"status\":\"info\"}", "/intent: "},
        {"[]", ": "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct call call = ran(), plain = ran();
        call.ui_hints = str_c(rows[i].hints);
        struct payload p = made(&arena, &call, "en");
        assert_true(str_starts(p.refused, str_c(rows[i].why)));
        assert_int_equal(p.ui.len, 0);
        assert_int_equal(p.ui_hints.len, 0);
        assert_str(p.bytes, made(&arena, &plain, "en").bytes);
    }
}

static void summaries(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct call call = ran();
    call.content = STR("Two seats\nare booked");
    assert_str(made(&arena, &call, "en").content, STR("Two seats are booked"));
    call.state = CALL_FAILED;
    call.content = STR_EMPTY;
    call.error = STR("no seats");
    assert_str(made(&arena, &call, "en").content, STR("place_order failed: no seats"));
    assert_str(made(&arena, &call, "zh-CN").content, STR("place_order 执行失败：no seats"));
    call.error = STR("unknown_outcome");
    call.content = STR("who knows");
    assert_str(made(&arena, &call, "en").content, STR("who knows"));
    call = ran();
    call.content = text_say(&arena, TEXT_HAPPENED, STR("en"), STR_EMPTY);
    assert_str(made(&arena, &call, "en").content, call.content);
}

/* A result with a file of its own is named by the file's hash; without the hash it stays there. */
static void files(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct call call = ran();
    call.result = STR_EMPTY;
    call.result_bytes = 5 << 20;
    call.spool = call.call_id;
    assert_int_equal(made(&arena, &call, "en").result_path.len, 0);
    call.result_hash = STR("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
    struct payload p = made(&arena, &call, "en");
    assert_str(p.result_path,
               STR("00/00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.call_1"));
    struct payload_parts parts = {0};
    assert_int_equal(payload_parse(&arena, p.bytes, &parts), OK);
    assert_str(parts.result_path, p.result_path);
    assert_int_equal(parts.result.len, 0);
    assert_int_equal(parts.result_bytes, 5 << 20);
}

static void not_payloads(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[]", "{", "{\"result_bytes\":-1}", "7"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct payload_parts parts = {.result_bytes = 9};
        assert_int_equal(payload_parse(&arena, str_c(texts[i]), &parts), ERR_DAMAGED);
        assert_int_equal(parts.result_bytes, 9);
    }
}

int test_payload(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole), cmocka_unit_test(bad_hints),    cmocka_unit_test(summaries),
        cmocka_unit_test(files), cmocka_unit_test(not_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

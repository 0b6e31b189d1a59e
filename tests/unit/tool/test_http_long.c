/* SPDX-License-Identifier: Apache-2.0
 *
 * Long answers beside short ones: whatever http_result_read makes of a body in memory, http_long
 * makes of the same body in pieces, on disk.
 */
#include "tool/http_long.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"
#include "tool/http_result.h"
#include "tool/spool.h"
#include "tool/tools.h"

enum { PATIENCE_MS = 60 * 1000, MIB = 1024 * 1024, BODY_MAX = 16 * MIB, LONG = MIB + MIB / 4 };

#define NAME "call_7"

struct world {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct timer *guard, *turn;
    struct spool *spool;
    struct arena arena; /* of what was told */
    struct http_long *answer;
    int ends, drained;
    enum tool_end end;
    struct tool_result result;
};

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static void on_turn(void *arg)
{
    loop_stop(arg);
}

static int setup(void **state)
{
    static struct world world;
    world = (struct world){.loop = loop_new()};
    folder_make(world.folder);
    arena_init(&world.arena);
    world.guard = timer_new(world.loop, on_guard, NULL);
    world.turn = timer_new(world.loop, on_turn, world.loop);
    struct fault fault = {0};
    if (spool_open(world.loop, world.folder, &world.spool, &fault))
        fail_msg("spool_open: %s", fault.text);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    spool_close(world->spool);
    timer_free(world->guard);
    timer_free(world->turn);
    loop_free(world->loop);
    arena_done(&world->arena);
    folder_remove(world->folder);
    return 0;
}

static str kept(struct world *world, str text)
{
    return arena_str(&world->arena, text);
}

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct world *world = arg;
    world->ends++;
    world->answer = NULL;
    world->end = end;
    world->result = *result;
    world->result.content = kept(world, result->content);
    world->result.result = kept(world, result->result);
    world->result.error = kept(world, result->error);
    world->result.ui_hints = kept(world, result->ui_hints);
    world->result.result_head = kept(world, result->result_head);
    world->result.result_tail = kept(world, result->result_tail);
    loop_stop(world->loop);
}

static void on_drained(void *arg)
{
    struct world *world = arg;
    world->drained++;
    loop_stop(world->loop);
}

static const struct http_long_ops ops = {on_drained, on_end};

static void run(struct world *world)
{
    timer_start(world->guard, PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
}

/* Give it all, and wait when it says so. */
static void feed(struct world *world, str body, size_t piece, const char *locale)
{
    world->ends = world->drained = 0;
    arena_reset(&world->arena);
    world->answer = http_long_new(world->loop, world->spool, STR(NAME), str_c(locale), &ops, world);
    for (size_t at = 0; at < body.len;) {
        size_t len = at == 0 && piece < 3 ? 3 : piece;
        if (len > body.len - at) len = body.len - at;
        http_long_add(world->answer, (str){body.p + at, len});
        at += len;
        int before = world->drained;
        while (http_long_full(world->answer)) run(world);
        assert_true(world->drained <= before + 1);
    }
}

static void give(struct world *world, str body, size_t piece, const char *locale)
{
    feed(world, body, piece, locale);
    http_long_end(world->answer);
    while (!world->ends) run(world);
    assert_int_equal(world->ends, 1);
}

static size_t files(const struct world *world)
{
    char path[FOLDER_BYTES + 10];
    snprintf(path, sizeof path, "%s/spool", world->folder);
    DIR *list = opendir(path);
    assert_non_null(list);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(list);
    return count;
}

/* Until the pool has done what it was asked for: removals are not told. */
static void expect_files(struct world *world, size_t count, const char *name)
{
    for (int turns = 0; files(world) != count; turns++) {
        if (turns == 5000) fail_msg("%s: %zu files, expected %zu", name, files(world), count);
        timer_start(world->turn, 1);
        run(world);
    }
}

/* The result, wherever it is; a file is checked against what was told of it, and removed. */
static str result_of(struct world *world)
{
    if (!world->result.spooled) return world->result.result;
    str bytes = STR_EMPTY;
    struct fault fault;
    unsigned char hash[HASH_BYTES];
    const struct tool_result *result = &world->result;
    if (spool_read(world->spool, &world->arena, STR(NAME), &bytes, &fault))
        fail_msg("spool_read: %s", fault.text);
    assert_int_equal(result->result.len, 0);
    assert_int_equal(result->result_bytes, bytes.len);
    assert_true(bytes.len > CALL_INLINE_BYTES_MAX);
    crypto_sha256(bytes, hash);
    assert_memory_equal(hash, result->result_hash, HASH_BYTES);
    assert_int_equal(result->result_head.len, CALL_MODEL_BYTES_MAX);
    assert_int_equal(result->result_tail.len, CALL_MODEL_BYTES_MAX);
    assert_true(str_starts(bytes, result->result_head) && str_ends(bytes, result->result_tail));
    spool_remove(world->spool, STR(NAME), NULL, NULL);
    return bytes;
}

static void expect_same(const char *name, const char *what, str got, str expected)
{
    if (str_eq(got, expected)) return;
    str a = tool_text_head(got, 200), b = tool_text_head(expected, 200);
    fail_msg("%s: %s is %zu bytes \"%.*s\", expected %zu \"%.*s\"", name, what, got.len, STR_ARG(a),
             expected.len, STR_ARG(b));
}

/* A string may be escaped in another way. */
static void expect_result(const char *name, str got, str expected)
{
    AUTO(arena_done) struct arena arena;
    struct json *a = NULL, *b = NULL;
    arena_init(&arena);
    if (!str_eq(got, expected) && str_starts(expected, STR("\"")) &&
        json_parse(&arena, got, &a, NULL) == OK && json_parse(&arena, expected, &b, NULL) == OK)
        expect_same(name, "result", json_text(a), json_text(b));
    else
        expect_same(name, "result", got, expected);
    if (str_find_char(got, '\n') >= 0) fail_msg("%s: not on one line", name);
}

static void compare(struct world *world, const char *name, str body, size_t piece)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *copy = malloc(body.len + 1);
    assert_non_null(copy);
    memcpy(copy, body.p, body.len);
    struct tool_result expected;
    struct http_reply reply = {200, copy, body.len, STR("zh")};
    enum tool_end end = http_result_read(&arena, &reply, &expected);

    give(world, body, piece, "zh");
    if (world->end != end) fail_msg("%s: ended in %d, expected %d", name, world->end, end);
    expect_same(name, "content", world->result.content, expected.content);
    expect_same(name, "error", world->result.error, expected.error);
    expect_same(name, "ui_hints", world->result.ui_hints, expected.ui_hints);
    bool in_file = expected.result.len > CALL_INLINE_BYTES_MAX && body.len > CALL_INLINE_BYTES_MAX;
    if (world->result.spooled != in_file)
        fail_msg("%s: spooled is %d", name, world->result.spooled);
    str model = tool_model_text(&world->arena, &world->result, STR("zh"));
    expect_result(name, result_of(world), expected.result);
    if (expected.result.len == world->result.result_bytes)
        expect_same(name, "what the model sees", model,
                    tool_model_text(&arena, &expected, STR("zh")));
    expect_files(world, 0, name);
    free(copy);
}

/* ---- what it means ---- */

static void small(void **state)
{
    struct world *world = *state;
    static const char *const rows[] = {
        "{\"content\":\"\\u4f1a\",\"result\":{\"i\":7},\"error\":null,\"ui_hints\":{\"a\":1}}",
        "{\"result\":[1, 2]}",
        "{\"result\":null}",
        "{\"content\":\"x\"}",
        "{\"content\":\"\"}",
        "{\"content\":null,\"result\":1}",
        "{\"id\":7}",
        "{ }",
        "{\"ui_hints\":{}}",
        "{\"ui_hints\":null,\"result\":2}",
        "{\"ui_hints\":[],\"result\":2}",
        "{\"id\":7,\"content\":\"note\",\"result\":1}",
        "{\"content\":\"note\",\"result\":1,\"id\":7}",
        "{\"content\":[{\"type\":\"text\"}]}",
        "[1, [2], {\"result\":1}]",
        "\"hello\"",
        "12345678901234567890.10",
        "\r\n{\n\t\"a\": [1,\r\n2], \"b\": \"x\\ny\" }\n",
        "{\n\"result\": {\n\"a\":\n1 },\n\"content\":\"x\",\n\"ui_hints\":{\n\"b\":2}\n}\n\n",
        "\xef\xbb\xbf{\"result\":1}",
        "\xef\xbb\xbf ",
        "   ",
        " \r\n\t ",
        "Ordered: 两杯\nThanks\n",
        "  \t two\nlines  ",
        "{\"a\":NaN}",
        "{\"a\":1}\n{\"a\":2}\n",
        "1\n2\n3\n",
        "会议",
        "\xd6\xd0\xce\xc4",
        "\"\xd6\xd0\"",
        "[\"\xe4\xbd",
        "text \xe4\xbd",
        "text \xe4\xbd(",
        "{\"a\":1,\"a\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"error\":\"no stock\"}",
        "{\"error\":\"half\",\"content\":\"c\",\"result\":{\"a\":1},\"ui_hints\":{}}",
        "{\"error\":\"no stock\",\"code\":4}",
        "{\"error\":{\"code\":4,\"message\":\"no stock\"}}",
        "{\"error\":{\n\"code\":4}}",
        "{\"error\":[\"a\",\"b\"]}",
        "{\"error\":{}}",
        "{\"error\":true,\"result\":1}",
        "{\"error\":false,\"result\":1}",
        "{\"error\":\"\",\"result\":1}",
        "{\"error\":0.01,\"value\":1.2}",
        "{\"error\":0}",
        "{\"error\":\" a\\nb\\tc\\u0000d \"}",
        "{\"result\":\"\\ud83d\\ude00\",\"\\u0063ontent\":\"\\ud83d\\ude00 \\\"q\\\"\"}",
    };
    static const size_t pieces[] = {SIZE_MAX, 1, 5};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < COUNT(pieces); k++)
            compare(world, rows[i], str_c(rows[i]), pieces[k]);
    compare(world, "NUL", STR("text with \0 in it"), 1);
    compare(world, "NUL in a string", STR("\"text with \0 in it\""), SIZE_MAX);
}

static void fill(struct buf *body, const char *head, const char *piece, size_t bytes,
                 const char *tail)
{
    buf_clear(body);
    buf_append(body, str_c(head));
    while (body->len < bytes) buf_append(body, str_c(piece));
    buf_append(body, str_c(tail));
    assert_false(body->full);
}

static void large(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *name, *head, *piece, *tail;
        size_t bytes;
    } rows[] = {
        {"result", "{\"result\":[", "1,\"会\",\n{\"a\":2},", "3]}", LONG},
        {"all four", "{\"content\":\"c\",\"ui_hints\":{\"a\":1},\"error\":null,\n \"result\":[",
         "\"0123456789\",", "3] \n}\n ", LONG},
        {"result first", "{\"result\":[", "\"0123456789\",", "3],\"content\":\"last\"}", LONG},
        {"whole", " [\n", "{\"a\":[1,\"\\u4f1a\"]},\n", "3]\n", LONG},
        {"whole, for its last member", "{\"result\":[", "\"0123456789\",", "3],\"id\":7}", LONG},
        {"with an error", "{\"result\":[", "\"0123456789\",", "3],\"error\":\"half\"}", LONG},
        {"whole, for another member", "{\"error\":\"half\",\"list\":[", "\"0123456789\",", "3]}",
         LONG},
        {"a string", "\"", "会议 \\\"x\\\" ", "\"", LONG},
        {"content", "{\"content\":\"", "会议 \\\"x\\\" \\ud83d\\ude00", "\"}", 2 * MIB},
        {"content and result", "{\"result\":1,\"content\":\"", "会议 \\\"x\\\"\\n", "\"}", LONG},
        {"long error", "{\"result\":1,\"error\":\" ", "会议 \\\"x\\\"\\n", "\"}", LONG},
        {"long list of errors", "{\"result\":1,\"error\":[\n", "\"0123456789\",", "1]}", LONG},
        {"long hints", "{\"result\":1,\"ui_hints\":{\"a\":[", "\"0123456789\",", "1]}}", LONG},
        {"space", " ", "\n \t", "", LONG},
        {"text in space", " ", "\n \t", "x y\n", LONG},
        {"JSON in space", "[1,", "\n \t", "2]\n", LONG},
        {"text", "\n\n会议\n", "\"quoted\" \\ \t会\xe2\x80\xa8😀\x01 ", "\n ", LONG},
        {"lines of JSON", "", "{\"a\":\"会\"}\n", "", LONG},
        {"numbers", "", "1.5\n", "", LONG},
        {"broken late", "[", "\"会\",{\"a\":2},", "NaN]", LONG},
        {"broken at the end", "[", "\"会\",{\"a\":2},", "1", LONG},
        {"too deep, late", "[", "\"会\",{\"a\":2},",
         "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]", LONG},
        {"half a character", "[\"", "会议", "\xe4\xbc", LONG},
        {"no character", "[\"", "会议", "\xe4\xbc\"]", LONG},
        {"half a character of text", "x ", "会议", "\xe4\xbc", LONG},
        {"bytes", "x ", "\xff\xfe", "", LONG},
        {"control characters", "x", "\x01\x02", "y", LONG - 1000}, /* full at the last piece */
        {"text too long to be quoted", "x ", "\x01\x02", "会", 12 * MIB},
    };
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        fill(&body, rows[i].head, rows[i].piece, rows[i].bytes, rows[i].tail);
        compare(world, rows[i].name, buf_str(&body), i % 2 ? 16384 : 100003);
    }
}

/* Lengths around what is kept of each part. */
static void limits(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *name, *head, *tail;
        size_t max;
    } rows[] = {
        {"content", "{\"content\":\"", "\"}", TOOL_CONTENT_BYTES_MAX},
        {"content and result", "{\"result\":1,\"content\":\"", "\"}", TOOL_CONTENT_BYTES_MAX},
        {"twice the content", "{\"result\":1,\"content\":\"", "\"}", 2 * TOOL_CONTENT_BYTES_MAX},
        {"error", "{\"error\":\"", "\"}", HTTP_WORDS_BYTES_MAX},
        {"error in an object", "{\"error\":{\"message\":\"", "\"}}", HTTP_WORDS_BYTES_MAX},
        {"hints", "{\"result\":1,\"ui_hints\":{\"a\":\"", "\"}}", TOOL_HINTS_BYTES_MAX - 8},
        {"result", "{\"result\":\"", "\"}", CALL_INLINE_BYTES_MAX - 2},
        {"document", "\"", "\"", CALL_INLINE_BYTES_MAX - 2},
        {"text", "x", "y", CALL_INLINE_BYTES_MAX - 2},
        {"text as content", "x", "y", TOOL_CONTENT_BYTES_MAX - 2},
    };
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t more = 0; more < 3; more++) {
            buf_clear(&body);
            buf_append(&body, str_c(rows[i].head));
            for (size_t k = 0; k < rows[i].max + more - 1; k++)
                buf_char(&body, (char)('a' + k % 26));
            buf_append(&body, str_c(rows[i].tail));
            compare(world, rows[i].name, buf_str(&body), 16384);
        }
    }
}

/* What memory could not hold is read here: more values than a tree may have. */
static void many_values(void **state)
{
    struct world *world = *state;
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    buf_append(&body, STR("{\"result\":["));
    for (size_t i = 0; i < JSON_VALUES_MAX; i++) buf_append(&body, STR("1,"));
    buf_append(&body, STR("2]}"));
    give(world, buf_str(&body), 16384, "en");
    assert_int_equal(world->end, TOOL_DONE);
    str list = result_of(world);
    assert_int_equal(list.len, 2 * JSON_VALUES_MAX + 3);
    assert_true(str_starts(list, STR("[1,1")) && str_ends(list, STR("1,2]")));
    expect_files(world, 0, "many values");
}

/* A key that comes again where the scan has forgotten it: the answer is the result, whole. */
static void forgotten_key(void **state)
{
    struct world *world = *state;
    AUTO(buf_done) struct buf body;
    buf_init(&body, MIB);
    for (size_t i = 0; i < JSON_SCAN_KEYS_MAX; i++)
        buf_printf(&body, "%s\"k%zu\":1", i ? "," : "{", i);
    buf_append(&body, STR(",\"error\":\"first\",\"error\":\"second\"}"));
    give(world, buf_str(&body), 16384, "en");
    assert_int_equal(world->end, TOOL_DONE);
    assert_str(world->result.error, STR_EMPTY);
    assert_str(result_of(world), buf_str(&body));
}

/* ---- going away, and failing ---- */

/* Abort after so many turns of the loop. Nothing stays, nobody is told. */
static void aborting(void **state)
{
    struct world *world = *state;
    static const char *const pieces[] = {"\"0123456789\",", "text\n", "1,"};
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        fill(&body, "[", pieces[i], LONG, "1]");
        if (i == 2) buf_clear(&body), buf_append(&body, STR("{\"result\":1}"));
        for (int turns = 0; turns < 24; turns++) {
            feed(world, buf_str(&body), 65536, "en");
            if (turns > 0) http_long_end(world->answer);
            for (int turn = 1; turn < turns && !world->ends; turn++) {
                timer_start(world->turn, 0);
                run(world);
            }
            if (!world->ends) http_long_abort(TAKE(world->answer));
            int before = world->ends;
            if (world->ends) result_of(world);
            expect_files(world, 0, "aborted");
            assert_int_equal(world->ends, before);
        }
    }
}

/* Aborted while a thread has it, and the spool goes first. */
static void spool_closed(void **state)
{
    struct world *world = *state;
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    fill(&body, "x", "text\n", LONG, "");
    for (int turns = 0; turns < 12; turns++) {
        feed(world, buf_str(&body), 65536, "en");
        http_long_end(world->answer);
        for (int turn = 0; turn < turns && !world->ends; turn++) {
            timer_start(world->turn, 0);
            run(world);
        }
        if (!world->ends) http_long_abort(TAKE(world->answer));
        spool_close(world->spool);
        struct fault fault;
        assert_int_equal(spool_open(world->loop, world->folder, &world->spool, &fault), OK);
        if (world->ends) result_of(world);
        expect_files(world, 0, "closed");
    }
}

/* The disk takes no more: it is said that something came, and the operator hears why. */
static void disk_full(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *name, *head, *piece, *tail;
        size_t room;
        const char *content;
    } rows[] = {
        {"JSON", "{\"content\":\"words\",\"result\":[", "\"0123456789\",", "1]}", MIB,
         "words\nThe tool answered with "},
        {"text", "x", "text\n", "", MIB, "The tool answered with "},
        {"quoted text", "x", "\"\"\"\"\"\"", "", 3 * MIB, "The tool answered with "},
    };
    AUTO(buf_done) struct buf body;
    buf_init(&body, BODY_MAX);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, less;
    getrlimit(RLIMIT_FSIZE, &before);
    for (size_t i = 0; i < COUNT(rows); i++) {
        fill(&body, rows[i].head, rows[i].piece, 2 * MIB, rows[i].tail);
        less = (struct rlimit){rows[i].room, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &less);
        give(world, buf_str(&body), 16384, "en");
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(world->end, TOOL_DONE);
        assert_int_equal(world->result.unkept, ERR_STORAGE_FULL);
        assert_false(world->result.spooled);
        assert_int_equal(world->result.result.len, 0);
        if (!str_starts(world->result.content, str_c(rows[i].content)))
            fail_msg("%s: %.*s", rows[i].name, STR_ARG(world->result.content));
        expect_files(world, 0, rows[i].name);
    }
}

int test_http_long(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small, setup, teardown),
        cmocka_unit_test_setup_teardown(large, setup, teardown),
        cmocka_unit_test_setup_teardown(limits, setup, teardown),
        cmocka_unit_test_setup_teardown(many_values, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_key, setup, teardown),
        cmocka_unit_test_setup_teardown(aborting, setup, teardown),
        cmocka_unit_test_setup_teardown(spool_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(disk_full, setup, teardown),
    };
    return cmocka_run_group_tests_name("tool/http_long", tests, NULL, NULL);
}

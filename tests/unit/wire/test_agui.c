/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests/wire/ cannot show: bounds, odd input, ids, capabilities.
 */
#include "wire/agui.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "wire/client.h"

enum { OUT_BYTES_MAX = 64 * 1024 * 1024, MIB = 1024 * 1024 };

struct fixture {
    struct arena arena;
    struct buf out;
    struct agui fold;
    struct client client;
};

static void up(struct fixture *f, enum agui_profile profile)
{
    arena_init(&f->arena);
    buf_init(&f->out, OUT_BYTES_MAX);
    agui_init(&f->fold, profile);
    client_init(&f->client, &f->arena, profile);
}

static void down(struct fixture *f)
{
    agui_done(&f->fold);
    buf_done(&f->out);
    arena_done(&f->arena);
}

static str filled(struct arena *arena, const char *piece, size_t bytes)
{
    size_t len = strlen(piece), count = bytes / len;
    char *text = arena_alloc(arena, count * len + 1);
    for (size_t i = 0; i < count; i++) memcpy(text + i * len, piece, len);
    return (str){text, count * len};
}

static str quoted(struct arena *arena, str text)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, OUT_BYTES_MAX);
    json_write_begin(&w, &out);
    json_string(&w, text);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

static str joined(struct arena *arena, str a, str b, str c)
{
    char *text = arena_alloc(arena, a.len + b.len + c.len + 1), *at = text;
    at = mempcpy(at, a.p, a.len);
    at = mempcpy(at, b.p, b.len);
    memcpy(at, c.p, c.len);
    return (str){text, a.len + b.len + c.len};
}

static bool fold(struct fixture *f, const char *type, str data)
{
    struct fact fact = {.seq = 1, .type = type, .run_id = STR("r1"), .at = 1, .data = data};
    return agui_fact(&f->fold, &f->out, &fact);
}

/* The client reads what there is, and the buffer is empty again. */
static void read_out(struct fixture *f)
{
    assert_false(f->out.full);
    client_read(&f->client, arena_str(&f->arena, buf_str(&f->out)));
    buf_clear(&f->out);
}

static void begin(struct fixture *f)
{
    agui_started(&f->out, f->fold.profile, STR("t1"), STR("r1"));
    read_out(f);
    fold(f, "run.started", STR("{}"));
}

/* ---- words ---- */

/* No frame is longer than a client takes, and no character is torn. */
static void long_words(void **state)
{
    (void)state;
    static const char *const texts[] = {"你好", "\x01", "a", "😀x"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct fixture f;
        up(&f, AGUI_NEW);
        begin(&f);
        str text = filled(&f.arena, texts[i], 5 * MIB / 2);
        fold(&f, "text.message.end",
             joined(&f.arena, STR("{\"messageId\":\"m1\",\"content\":"), quoted(&f.arena, text),
                    STR("}")));
        read_out(&f);
        assert_str(f.client.messages->content, text);
        assert_true(f.client.frames > 4);
        down(&f);
    }
}

static void preview(struct fixture *f, enum preview_kind kind, const char *delta, uint64_t offset)
{
    struct preview p = {.kind = kind,
                        .run_id = STR("r1"),
                        .message_id = STR("m1"),
                        .call_id = STR("c1"),
                        .tool = STR("f"),
                        .delta = str_c(delta),
                        .offset = offset,
                        .at = 1};
    agui_preview(&f->fold, &f->out, &p);
}

/* What was sent is continued, wherever it was cut; emoji count twice. */
static void rest_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *first, *lost;
    } rows[] = {{"😀a", "b😀"}, {"", "x"}, {"x", ""}, {"你", "好"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        up(&f, AGUI_OLD);
        begin(&f);
        uint64_t units =
            utf8_utf16_units(str_c(rows[i].first)) + utf8_utf16_units(str_c(rows[i].lost));
        preview(&f, PREVIEW_MESSAGE_START, "", 0);
        if (rows[i].first[0]) preview(&f, PREVIEW_TEXT, rows[i].first, 0);
        preview(&f, PREVIEW_TEXT, "!", units); /* or sent, if nothing was lost */
        str whole = joined(&f.arena, str_c(rows[i].first), str_c(rows[i].lost), STR("!"));
        fold(&f, "text.message.end",
             joined(&f.arena, STR("{\"messageId\":\"m1\",\"content\":"), quoted(&f.arena, whole),
                    STR("}")));
        read_out(&f);
        assert_str(f.client.messages->content, whole);
        assert_null(f.client.messages->next);
        down(&f);
    }
}

/* ---- calls ---- */

/* Arguments are as deep as JSON may be before the fact has them. */
static void deep_arguments(void **state)
{
    (void)state;
    char open[2 * JSON_DEPTH_MAX + 1], args[4 * JSON_DEPTH_MAX];
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    memset(open, '[', JSON_DEPTH_MAX - 1);
    memset(open + JSON_DEPTH_MAX - 1, ']', JSON_DEPTH_MAX - 1);
    open[2 * JSON_DEPTH_MAX - 2] = '\0';
    snprintf(args, sizeof args, "{\"a\":%s}", open);
    str data = arena_printf(&f.arena,
                            "{\"toolCallId\":\"c1\",\"toolName\":\"f\",\"args\":%s,"
                            "\"parentMessageId\":\"m1\",\"stage\":\"execution\"}",
                            args);
    fold(&f, "tool.call", data);
    read_out(&f);
    assert_str(f.client.messages->calls->args, str_c(args));
    down(&f);
}

/* More calls than a turn may have: those that are not remembered come whole with their facts. */
static void too_many_calls(void **state)
{
    (void)state;
    enum { CALLS = 2000 };
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    for (int i = 0; i < CALLS; i++) {
        struct preview p = {.kind = PREVIEW_CALL_START,
                            .message_id = STR("m1"),
                            .tool = STR("f"),
                            .call_id = arena_printf(&f.arena, "call_%0100d", i)};
        agui_preview(&f.fold, &f.out, &p);
    }
    for (int i = 0; i < CALLS; i++)
        fold(&f, "tool.call",
             arena_printf(&f.arena,
                          "{\"toolCallId\":\"call_%0100d\",\"toolName\":\"f\",\"args\":{},"
                          "\"parentMessageId\":\"m1\"}",
                          i));
    assert_false(fold(&f, "run.finished", STR("{\"outcome\":\"completed\"}")));
    agui_tail(&f.out, AGUI_NEW, &(struct agui_tail){.thread_id = STR("t1"), .run_id = STR("r1")});
    read_out(&f);
    size_t count = 0;
    for (struct client_call *c = f.client.messages->calls; c; c = c->next) {
        assert_str(c->args, STR("{}"));
        count++;
    }
    assert_int_equal(count, CALLS);
    down(&f);
}

/* ---- discards ---- */

/* Whatever was open, even nothing: who knows what a client has of the attempt. */
static void discards(void **state)
{
    (void)state;
    struct preview discard = {
        .kind = PREVIEW_DISCARD, .message_id = STR("m1"), .delta = STR("cut"), .at = 1};
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    assert_true(agui_preview(&f.fold, &f.out, &discard));
    assert_int_equal(f.out.len, 0);
    assert_str(str_c(f.fold.stray), STR_EMPTY);
    preview(&f, PREVIEW_REASONING, "hm", 0);
    preview(&f, PREVIEW_TEXT, "x", 0);
    assert_true(agui_preview(&f.fold, &f.out, &discard));
    assert_str(str_c(f.fold.stray), STR("m1"));
    preview(&f, PREVIEW_TEXT, "y", 0);
    assert_str(str_c(f.fold.stray), STR_EMPTY);
    down(&f);
}

/* ---- outside of legs ---- */

/* Words that come behind their end are not begun again. */
static void late_words(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    preview(&f, PREVIEW_TEXT, "ab", 0);
    fold(&f, "text.message.end", STR("{\"messageId\":\"m1\",\"content\":\"abc\"}"));
    read_out(&f);
    preview(&f, PREVIEW_TEXT, "c", 2);
    assert_int_equal(f.out.len, 0);
    down(&f);
}

static void silence(void **state)
{
    (void)state;
    static const char *const types[] = {"message.added",    "run.queued",       "run.finished",
                                        "text.message.end", "tool.call.result", "step.start"};
    static const char *const ends[] = {NULL, "run.finished", "run.error"};
    for (size_t e = 0; e < COUNT(ends); e++) {
        struct fixture f;
        up(&f, AGUI_NEW);
        if (ends[e]) fold(&f, "run.started", STR("{}"));
        if (ends[e]) fold(&f, ends[e], STR("{}"));
        for (size_t i = 0; i < COUNT(types); i++) assert_false(fold(&f, types[i], STR("{}")));
        preview(&f, PREVIEW_MESSAGE_START, "", 0);
        preview(&f, PREVIEW_TEXT, "x", 0);
        preview(&f, PREVIEW_DISCARD, "x", 0);
        assert_int_equal(f.out.len, 0);
        down(&f);
    }
}

/* A queued message may be longer than any frame. */
static void long_fact(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    str words = quoted(&f.arena, filled(&f.arena, "a", 12 * MIB));
    fold(&f, "run.queued", joined(&f.arena, STR("{\"message\":"), words, STR("}")));
    fold(&f, "run.queued", STR("{}"));
    read_out(&f);
    assert_int_equal(f.client.frames, 2);
    down(&f);
}

/* ---- heads ---- */

static void states(void **state)
{
    (void)state;
    static const struct {
        const char *state, *expected;
    } rows[] = {
        {"", "{}"},
        {"null", "{}"},
        {"{\"a\":null}", "{\"a\":null}"},
        {"{\r\n\t\"a\": [1,\n2]\n}", "{   \"a\": [1, 2] }"},
        {"7", "7"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        up(&f, AGUI_NEW);
        struct agui_head head = {
            .thread_id = STR("t1"), .run_id = STR("r1"), .state = str_c(rows[i].state)};
        agui_head(&f.out, AGUI_NEW, &head);
        str expected = arena_printf(&f.arena,
                                    "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t1\",\"runId\":"
                                    "\"r1\",\"protocolVersion\":\"1.0\"}\n\ndata: {\"type\":"
                                    "\"STATE_SNAPSHOT\",\"snapshot\":%s}\n\n",
                                    rows[i].expected);
        assert_str(buf_str(&f.out), expected);
        down(&f);
    }
    struct fixture f;
    up(&f, AGUI_NEW);
    struct agui_head head = {.thread_id = STR("t1"),
                             .run_id = STR("r1"),
                             .state = quoted(&f.arena, filled(&f.arena, "a", 9 * MIB))};
    agui_head(&f.out, AGUI_NEW, &head); /* the client keeps what it has */
    read_out(&f);
    assert_int_equal(f.client.frames, 1);
    down(&f);
}

static struct agui_row row(const char *id, const char *role, str plain, struct arena *arena)
{
    return (struct agui_row){.message = {.id = arena_str(arena, str_c(id)),
                                         .role = str_c(role),
                                         .content = quoted(arena, plain),
                                         .plain = plain,
                                         .metadata = STR("{}")}};
}

/* An attempt that has grown too long for a snapshot is sent whole behind it, and goes on. */
static void long_growing(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_NEW);
    str text = filled(&f.arena, "\x02", 2 * MIB), args = filled(&f.arena, "\"", 3 * MIB / 2);
    struct agui_call calls[] = {{STR("c1"), STR("f"), args}, {STR("c2"), STR("g"), STR_EMPTY}};
    struct agui_growing growing = {.message_id = STR("m1"),
                                   .text = text,
                                   .reasoning = STR("hm"),
                                   .calls = calls,
                                   .call_count = COUNT(calls)};
    struct agui_row rows[] = {row("u1", "user", STR("go"), &f.arena)};
    struct agui_head head = {.thread_id = STR("t1"),
                             .run_id = STR("r1"),
                             .messages = true,
                             .rows = rows,
                             .row_count = 1,
                             .growing = &growing};
    agui_head(&f.out, AGUI_NEW, &head);
    agui_join(&f.fold, true, &growing);
    fold(&f, "reasoning.end", STR("{\"messageId\":\"m1\",\"content\":\"hm\"}"));
    fold(&f, "text.message.end",
         joined(&f.arena, STR("{\"messageId\":\"m1\",\"content\":"), quoted(&f.arena, text),
                STR("}")));
    fold(&f, "tool.call",
         joined(&f.arena, STR("{\"toolCallId\":\"c1\",\"args\":"), quoted(&f.arena, args),
                STR("}")));
    fold(&f, "tool.call", STR("{\"toolCallId\":\"c2\",\"args\":{}}"));
    read_out(&f);
    const struct client_message *thought = f.client.messages->next, *said = thought->next;
    assert_str(thought->content, STR("hm"));
    assert_str(said->content, text);
    assert_str(said->calls->args, args);
    assert_str(said->calls->next->args, STR("{}"));
    assert_null(f.client.open);
    down(&f);
}

/* ---- snapshots ---- */

static void snapshot(struct fixture *f, const struct agui_row *rows, size_t count)
{
    agui_started(&f->out, f->fold.profile, STR("t1"), STR("r1"));
    agui_snapshot(&f->out, f->fold.profile, rows, count, NULL);
    assert_true(f->out.len < AGUI_SNAPSHOT_BYTES_MAX);
}

/* Its ids are what the client has then; with one more, less or other it is not the same. */
static void check_same(struct fixture *f, const struct agui_row *rows, size_t count)
{
    str ids[2000] = {0};
    size_t n = 0;
    for (const struct client_message *m = f->client.messages; m; m = m->next) ids[n++] = m->id;
    assert_true(agui_same_ids(&f->arena, rows, count, ids, n));
    ids[n] = STR("x");
    assert_false(agui_same_ids(&f->arena, rows, count, ids, n + 1));
    if (!n) return;
    assert_false(agui_same_ids(&f->arena, rows, count, ids, n - 1));
    ids[0] = STR("x");
    assert_false(agui_same_ids(&f->arena, rows, count, ids, n));
}

static struct agui_row call_row(struct arena *arena, const char *id, const char *calls)
{
    struct agui_row made = row(id, "assistant", STR_EMPTY, arena);
    made.message.tool_calls = arena_printf(arena,
                                           "[{\"id\":\"%s\",\"type\":\"function\",\"function\":{"
                                           "\"name\":\"f\",\"arguments\":\"{}\"}}]",
                                           calls);
    return made;
}

static struct agui_row result_row(struct arena *arena, const char *id, const char *call)
{
    struct agui_row made = row(id, "tool", STR("done"), arena);
    made.message.tool = arena_printf(arena, "{\"toolCallId\":\"%s\",\"toolName\":\"f\"}", call);
    return made;
}

/* Views of interactions and empty words are left out; results stand behind their calls. */
static void order(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_NEW);
    struct agui_row rows[] = {
        result_row(&f.arena, "t0", "c0"), /* its call is not here */
        row("s1", "system", STR("be kind"), &f.arena),
        row("u1", "user", STR_EMPTY, &f.arena),
        call_row(&f.arena, "m1", "c1"),
        row("i1", "clarify", STR("?"), &f.arena),
        call_row(&f.arena, "m2", "c2"),
        row("m3", "assistant", STR_EMPTY, &f.arena),
        result_row(&f.arena, "t2", "c2"),
        row("i2", "interaction", STR("?"), &f.arena),
        row("u2", "user", STR("well?"), &f.arena),
        result_row(&f.arena, "t1", "c1"),
        row("m4-reasoning", "reasoning", STR("hm"), &f.arena),
        row("m4", "assistant", STR("so"), &f.arena),
    };
    static const char *const expected[] = {"s1", "u1", "m1",           "t1", "m2",
                                           "t2", "u2", "m4-reasoning", "m4"};
    snapshot(&f, rows, COUNT(rows));
    read_out(&f);
    const struct client_message *m = f.client.messages;
    for (size_t i = 0; i < COUNT(expected); i++, m = m->next) {
        assert_non_null(m);
        assert_str(m->id, str_c(expected[i]));
    }
    assert_null(m);
    check_same(&f, rows, COUNT(rows));
    snapshot(&f, rows, 0);
    assert_true(agui_same_ids(&f.arena, rows, 0, NULL, 0));
    assert_false(agui_same_ids(&f.arena, rows, COUNT(rows), NULL, 0));
    down(&f);
}

/* The newest win; older ones lose their metadata first; a result never stands without its call. */
static void bounds(void **state)
{
    (void)state;
    enum { TURNS = 400 };
    struct fixture f;
    up(&f, AGUI_NEW);
    struct agui_row *rows = arena_array(&f.arena, 2 * TURNS, sizeof *rows);
    str card = joined(&f.arena, STR("{\"a\":"), quoted(&f.arena, filled(&f.arena, "c", 40 * 1024)),
                      STR("}"));
    for (int i = 0; i < TURNS; i++) {
        char id[32], call[32];
        snprintf(id, sizeof id, "m%d", i);
        snprintf(call, sizeof call, "c%d", i);
        rows[2 * i] = call_row(&f.arena, id, call);
        rows[2 * i].message.content = quoted(&f.arena, filled(&f.arena, "w", 30 * 1024));
        rows[2 * i].message.plain = filled(&f.arena, "w", 30 * 1024);
        snprintf(id, sizeof id, "t%d", i);
        rows[2 * i + 1] = result_row(&f.arena, id, call);
        rows[2 * i + 1].fact =
            joined(&f.arena, STR("{\"content\":\"done\",\"ui\":"), card, STR("}"));
    }
    snapshot(&f, rows, 2 * TURNS);
    str bytes = arena_str(&f.arena, buf_str(&f.out));
    assert_true(bytes.len > AGUI_SNAPSHOT_BYTES_MAX * 3 / 4);
    read_out(&f);
    size_t count = 0;
    for (const struct client_message *m = f.client.messages; m; m = m->next) {
        assert_str(m->role, count % 2 ? STR("tool") : STR("assistant"));
        count++;
        if (!m->next) assert_str(m->id, STR("t399"));
    }
    assert_true(count % 2 == 0 && count > 200);
    size_t cards = 0;
    for (str rest = bytes; str_find(rest, STR("fermata.ui")) >= 0; cards++)
        rest = str_drop(rest, (size_t)str_find(rest, STR("fermata.ui")) + 1);
    assert_true(cards > 40 && cards < count / 2);
    check_same(&f, rows, 2 * TURNS);
    down(&f);
}

/* A message that would not fit by itself is cut at a character; one that is too long in other ways
 * does not take the others with it. */
static void long_rows(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_OLD);
    str text = filled(&f.arena, "你\x01", 12 * MIB);
    struct agui_row rows[] = {
        row("u1", "user", STR("first"), &f.arena),
        row("u2", "user", text, &f.arena),
        call_row(&f.arena, "m1", "c1"),
    };
    rows[2].message.tool_calls =
        joined(&f.arena,
               STR("[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                   "\"arguments\":"),
               quoted(&f.arena, filled(&f.arena, "x", 7 * MIB)), STR("}}]"));
    snapshot(&f, rows, COUNT(rows));
    read_out(&f);
    const struct client_message *m = f.client.messages;
    assert_str(m->id, STR("u1"));
    assert_str(m->next->id, STR("u2"));
    assert_true(str_ends(m->next->content, STR("…")));
    assert_true(m->next->content.len > AGUI_ROW_CUT_BYTES - 4);
    assert_true(utf8_valid(m->next->content));
    assert_null(m->next->next);
    down(&f);
}

/* ---- interrupts ---- */

/* All are named, however many; only the first have everything. */
static void many_interrupts(void **state)
{
    (void)state;
    enum { OPEN = 64 };
    struct fixture f;
    up(&f, AGUI_NEW);
    struct interaction *open = arena_array(&f.arena, OPEN, sizeof *open);
    str args = quoted(&f.arena, filled(&f.arena, "a", 250 * 1024));
    for (int i = 0; i < OPEN; i++)
        open[i] = (struct interaction){.id = arena_printf(&f.arena, "int_%d", i),
                                       .type = INTERACTION_CONFIRM,
                                       .display_text = STR("?"),
                                       .tool = STR("f"),
                                       .args = args,
                                       .metadata = STR("{}")};
    begin(&f);
    agui_tail(&f.out, AGUI_NEW,
              &(struct agui_tail){.thread_id = STR("t1"),
                                  .run_id = STR("r1"),
                                  .type = "run.finished",
                                  .data = STR("{\"outcome\":\"interrupted\"}"),
                                  .open = open,
                                  .open_count = OPEN});
    assert_true(f.out.len < AGUI_SNAPSHOT_BYTES_MAX && f.out.len > AGUI_SNAPSHOT_BYTES_MAX / 2);
    read_out(&f);
    assert_int_equal(f.client.interrupts, OPEN);
    down(&f);
}

static void errors(void **state)
{
    (void)state;
    struct fixture f;
    up(&f, AGUI_NEW);
    begin(&f);
    agui_error(&f.out, "lagging", "ask again");
    assert_str(buf_str(&f.out), STR("data: {\"type\":\"RUN_ERROR\",\"message\":\"ask again\","
                                    "\"code\":\"lagging\"}\n\n"));
    read_out(&f);
    client_check_over(&f.client);
    down(&f);
}

/* ---- capabilities ---- */

static void capabilities(void **state)
{
    (void)state;
    static const struct {
        const char *group, *name, *value;
    } rows[] = {
        {"identity", "name", "\"assistant\""},
        {"identity", "version", "\"0.1.0\""},
        {"transport", "streaming", "true"},
        {"transport", "websocket", "true"},
        {"tools", "supported", "true"},
        {"tools", "clientProvided", "true"},
        {"tools", "items",
         "[{\"name\":\"f\",\"description\":\"does f\",\"parameters\":{\"type\":\"object\"}}]"},
        {"state", "snapshots", "true"},
        {"state", "deltas", "false"},
        {"execution", "maxIterations", "30"},
        {"humanInTheLoop", "supported", "true"},
        {"humanInTheLoop", "approvals", "true"},
        {"humanInTheLoop", "interrupts", "true"},
        {"humanInTheLoop", "approveWithEdits", "true"},
    };
    struct fixture f;
    struct json *json = NULL;
    up(&f, AGUI_NEW);
    struct agui_tool tool = {STR("f"), STR("does f"), STR("{\"type\":\"object\"}")};
    struct agui_agent agent = {.name = STR("assistant"),
                               .version = STR("0.1.0"),
                               .tools = &tool,
                               .tool_count = 1,
                               .max_rounds = 30};
    agui_capabilities(&f.out, &agent);
    assert_int_equal(json_parse(&f.arena, buf_str(&f.out), &json, NULL), OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct json *group = json_get(json, str_c(rows[i].group));
        const struct json *value = json_get(group, str_c(rows[i].name));
        if (!value) fail_msg("no %s.%s", rows[i].group, rows[i].name);
        assert_str(value->raw, str_c(rows[i].value));
    }
    const struct json *execution = json_get(json, STR("execution"));
    assert_null(json_get(execution, STR("maxExecutionTime")));
    assert_true(str_find(buf_str(&f.out), STR("null")) < 0);
    down(&f);
}

int test_agui(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_words),     cmocka_unit_test(rest_of_words),
        cmocka_unit_test(deep_arguments), cmocka_unit_test(too_many_calls),
        cmocka_unit_test(discards),       cmocka_unit_test(silence),
        cmocka_unit_test(late_words),     cmocka_unit_test(long_fact),
        cmocka_unit_test(states),         cmocka_unit_test(long_growing),
        cmocka_unit_test(order),          cmocka_unit_test(bounds),
        cmocka_unit_test(long_rows),      cmocka_unit_test(many_interrupts),
        cmocka_unit_test(errors),         cmocka_unit_test(capabilities),
    };
    return cmocka_run_group_tests_name("wire/agui", tests, NULL, NULL);
}

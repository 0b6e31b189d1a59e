/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person in a chat is told of a conversation, fact by fact.
 */
#include "chat/deliver.h"

#include "base/crypto.h"
#include "check.h"

static const struct channel_traits traits = {.kind = "weixin", .chars_max = 200, .bytes_max = 600};
static const unsigned char key[HASH_BYTES] = {7};

static const struct interaction question = {
    .id = STR("int_q"),
    .type = INTERACTION_ASK_USER,
    .owner = STR("ann"),
    .question = STR("Which day?"),
    .display_text = STR("Which day?"),
    .choices = STR("[{\"id\":\"c1\",\"label\":\"Monday\"},{\"id\":\"c2\",\"label\":\"Tuesday\"}]"),
    .allow_freeform = true,
    .locale = STR("en"),
    .metadata = STR("{}"),
};

static struct delivery deliver(struct arena *arena, const struct fact *facts, size_t count,
                               const struct interaction *interactions, size_t interaction_count)
{
    struct delivery delivery;
    deliver_facts(arena,
                  &(struct delivery_view){.traits = &traits,
                                          .locale = UI_EN,
                                          .code_key = key,
                                          .peer = 1,
                                          .user = STR("ann"),
                                          .roles = 1,
                                          .thread_id = STR("t")},
                  facts, count, interactions, interaction_count, 10, &delivery);
    return delivery;
}

#define FACT(n, name, json)                       \
    {                                             \
        .seq = n, .type = name, .data = STR(json) \
    }
#define STARTED(n)    FACT(n, "run.started", "{}")
#define SAID(n, text) FACT(n, "text.message.end", "{\"content\":\"" text "\"}")
#define ENDED(n, how) FACT(n, "run.finished", "{\"outcome\":\"" how "\"}")
#define ASKED(n)      FACT(n, "interaction.request", "{\"interactionId\":\"int_q\"}")
#define RESOLVED(n)   FACT(n, "interaction.resolved", "{\"interactionId\":\"int_q\"}")

/* One message for all that a leg said. */
static void answer(void **state)
{
    (void)state;
    struct arena arena;
    const struct fact facts[] = {STARTED(11), SAID(12, "Looking."), SAID(14, "**Found** it."),
                                 ENDED(15, "completed")};
    arena_init(&arena);
    struct delivery d = deliver(&arena, facts, COUNT(facts), NULL, 0);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.rows[0].class, OUT_FINAL);
    assert_str(d.rows[0].text, STR("Looking.\n\nFound it."));
    assert_int_equal(d.cursor, 15);
    arena_done(&arena);
}

/* What is nothing but marks is said as it is. */
static void marks(void **state)
{
    (void)state;
    struct arena arena;
    static const struct {
        const char *said, *sent; /* NULL: nothing */
    } rows[] = {{"---", "---"}, {" ![](a.png) ", "![](a.png)"}, {"**", "**"}, {" \\n ", NULL}};
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fact facts[] = {STARTED(11), SAID(12, "x"), ENDED(13, "completed")};
        facts[1].data = arena_printf(&arena, "{\"content\":\"%s\"}", rows[i].said);
        struct delivery d = deliver(&arena, facts, COUNT(facts), NULL, 0);
        assert_int_equal(d.count, rows[i].sent != NULL);
        if (rows[i].sent) assert_str(d.rows[0].text, str_c(rows[i].sent));
    }
    arena_done(&arena);
}

/* Nothing leaves before the leg has ended, and then all of it. */
static void unfinished(void **state)
{
    (void)state;
    struct arena arena;
    const struct fact facts[] = {ENDED(11, "completed"), STARTED(12), SAID(13, "Half."),
                                 ENDED(14, "completed")};
    arena_init(&arena);
    struct delivery d = deliver(&arena, facts, 3, NULL, 0);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.cursor, 11);
    d = deliver(&arena, facts + 1, 3, NULL, 0);
    assert_int_equal(d.count, 1);
    assert_str(d.rows[0].text, STR("Half."));
    d = deliver(&arena, facts, 0, NULL, 0);
    assert_int_equal(d.cursor, 10);
    arena_done(&arena);
}

/* The words first, then what is asked; what is settled by then is not asked. */
static void asked(void **state)
{
    (void)state;
    struct arena arena;
    const struct fact facts[] = {STARTED(11), SAID(12, "One thing."), ASKED(13),
                                 ENDED(14, "interrupted")};
    struct interaction settled = question;
    arena_init(&arena);
    struct delivery d = deliver(&arena, facts, COUNT(facts), &question, 1);
    assert_int_equal(d.count, 2);
    assert_str(d.rows[0].text, STR("One thing."));
    assert_int_equal(d.rows[1].class, OUT_QUESTION);
    assert_str(d.rows[1].interaction, STR("int_q"));
    assert_true(str_find(d.rows[1].text, STR("2. Tuesday")) > 0);
    settled.status = INTERACTION_RESOLVED;
    d = deliver(&arena, facts, COUNT(facts), &settled, 1);
    assert_int_equal(d.count, 1);
    arena_done(&arena);
}

/* Settled in this chat: nothing. Elsewhere: who, and what; at once, also if a leg goes on with it. */
static void resolved(void **state)
{
    (void)state;
    struct arena arena;
    const struct fact facts[] = {RESOLVED(11), STARTED(12), SAID(13, "Fine.")};
    struct interaction settled = question;
    settled.status = INTERACTION_RESOLVED;
    settled.answer = STR("{\"choices\":[\"c2\"]}");
    settled.text = STR("Tuesday");
    settled.answered_by = STR("bob");
    settled.via = STR("weixin");
    arena_init(&arena);
    struct delivery d = deliver(&arena, facts, COUNT(facts), &settled, 1);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.settled_count, 1);
    assert_int_equal(d.cursor, 11);
    settled.via = STR("page");
    d = deliver(&arena, facts, COUNT(facts), &settled, 1);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.rows[0].class, OUT_NOTICE);
    assert_true(str_find(d.rows[0].text, STR("bob")) >= 0);
    assert_true(str_find(d.rows[0].text, STR("Tuesday")) >= 0);
    assert_int_equal(d.settled_count, 1);
    assert_int_equal(d.cursor, 11);
    arena_done(&arena);
}

/* Stopped, and failed. */
static void over(void **state)
{
    (void)state;
    struct arena arena;
    const struct fact stopped[] = {STARTED(11), SAID(12, "Half"), ENDED(13, "cancelled"),
                                   ENDED(14, "cancelled")};
    const struct fact failed[] = {
        STARTED(11), FACT(12, "run.error", "{\"code\":\"model_error\",\"message\":\"No model.\"}")};
    arena_init(&arena);
    struct delivery d = deliver(&arena, stopped, COUNT(stopped), NULL, 0);
    assert_int_equal(d.count, 2);
    assert_str(d.rows[0].text, STR("Half"));
    assert_int_equal(d.rows[1].class, OUT_NOTICE);
    d = deliver(&arena, failed, COUNT(failed), NULL, 0);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.rows[0].class, OUT_ERROR);
    assert_true(str_find(d.rows[0].text, STR("No model.")) >= 0);
    arena_done(&arena);
}

/* What is too long for one message is several; files are messages of their own, or named. */
static void long_and_files(void **state)
{
    (void)state;
    struct arena arena;
    struct buf data;
    arena_init(&arena);
    buf_init(&data, 8192);
    buf_append(&data, STR("{\"content\":\""));
    for (int i = 0; i < 100; i++) buf_append(&data, STR("some words "));
    buf_append(&data, STR("\"}"));
    const struct fact facts[] = {
        STARTED(11),
        FACT(12, "tool.call.result",
             "{\"attachments\":[{\"id\":\"att_1\",\"mimeType\":\"text/csv\",\"filename\":\"a.csv\","
             "\"size\":3}]}"),
        {.seq = 13, .type = "text.message.end", .data = buf_str(&data)},
        ENDED(14, "completed")};
    struct delivery d = deliver(&arena, facts, COUNT(facts), NULL, 0);
    assert_true(d.count >= 6);
    for (size_t i = 0; i < d.count; i++) assert_true(d.rows[i].text.len <= 600);
    assert_true(str_find(d.rows[d.count - 1].text, STR("a.csv")) >= 0);
    buf_done(&data);
    arena_done(&arena);
}

/* Six digits; of one person, one interaction and its arguments. */
static void codes(void **state)
{
    (void)state;
    struct interaction confirm = {
        .id = STR("int_c"), .type = INTERACTION_CONFIRM, .args = STR("{}"), .binding = STR("b1")};
    char first[APPROVAL_CODE_BYTES], other[APPROVAL_CODE_BYTES];
    approval_code(key, 1, &confirm, first);
    approval_code(key, 1, &confirm, other);
    assert_string_equal(first, other);
    assert_int_equal(strlen(first), 6);
    for (int i = 0; i < 6; i++) assert_in_range(first[i], '0', '9');
    approval_code(key, 2, &confirm, other);
    assert_string_not_equal(first, other);
    struct interaction edited = confirm;
    edited.args = STR("{\"a\":1}");
    approval_code(key, 1, &edited, other);
    assert_string_not_equal(first, other);
    edited = confirm;
    edited.binding = STR("b2");
    approval_code(key, 1, &edited, other);
    assert_string_not_equal(first, other);
    assert_false(approval_by_code(&confirm, true)); /* where others listen */
    assert_false(approval_by_code(&question, false));
}

int test_deliver(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer),         cmocka_unit_test(marks),    cmocka_unit_test(unfinished),
        cmocka_unit_test(asked),          cmocka_unit_test(resolved), cmocka_unit_test(over),
        cmocka_unit_test(long_and_files), cmocka_unit_test(codes),
    };
    return cmocka_run_group_tests_name("channel/deliver", tests, NULL, NULL);
}

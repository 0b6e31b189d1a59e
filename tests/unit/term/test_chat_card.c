/* SPDX-License-Identifier: Apache-2.0 */
#include "term/chat_card.h"

#include <string.h>

#include "check.h"

#define QUESTION(more)                                                                       \
    "{\"interactionId\":\"int_1\",\"type\":\"ask_user\",\"displayText\":\"How long?\"," more \
    "\"requester\":\"ann\"}"
#define CHOICES \
    "\"choices\":[{\"id\":\"c1\",\"label\":\"short\"},{\"id\":\"c2\",\"label\":\"long\"}],"
#define CONFIRM(risk, args)                                                              \
    "{\"interactionId\":\"int_2\",\"type\":\"confirm\",\"displayText\":\"Run it?\","     \
    "\"binding\":\"b.1\",\"requester\":\"ann\",\"pendingTool\":{\"toolName\":\"write\"," \
    "\"risk\":\"" risk "\",\"argsJson\":\"" args "\"}}"
#define OTHER(type)                                 \
    "{\"interactionId\":\"int_3\",\"type\":\"" type \
    "\",\"displayText\":\"Gone.\",\"requester\":\"ann\"}"

#define UP          "\x1b[A"
#define DOWN        "\x1b[B"
#define PASTE(text) "\x1b[200~" text "\x1b[201~"

struct pressing {
    struct card *card;
    enum card_result result;
};

static void on_key(void *arg, struct key_event event)
{
    struct pressing *p = arg;
    if (p->result == CARD_STAYS) p->result = card_key(p->card, event);
}

static enum card_result press(struct card *card, const char *bytes)
{
    struct keys keys = {0};
    struct pressing p = {card, CARD_STAYS};
    keys_feed(&keys, str_c(bytes), on_key, &p);
    keys_flush(&keys, on_key, &p);
    return p.result;
}

static const struct {
    const char *card, *keys;
    enum card_result result;
    const char *body;
} presses[] = {
    /* questions */
    {QUESTION(CHOICES), "\r", CARD_ANSWERS, "{\"choices\":[\"c1\"]}"},
    {QUESTION(CHOICES), DOWN "\r", CARD_ANSWERS, "{\"choices\":[\"c2\"]}"},
    {QUESTION(CHOICES), "2", CARD_ANSWERS, "{\"choices\":[\"c2\"]}"},
    {QUESTION(CHOICES), "3", CARD_STAYS, ""},
    {QUESTION(CHOICES), "x\r", CARD_STAYS, NULL}, /* no free text: x is nothing, Enter picks */
    {QUESTION(CHOICES), UP "\r", CARD_ANSWERS, "{\"skip\":true}"},
    {QUESTION(CHOICES), "\x1b", CARD_LATER, ""},
    {QUESTION(CHOICES "\"allowFreeform\":true,"), "an hour\r", CARD_ANSWERS,
     "{\"answer\":\"an hour\"}"},
    {QUESTION(CHOICES "\"allowFreeform\":true,"), DOWN DOWN "\r2 hours\r", CARD_ANSWERS,
     "{\"answer\":\"2 hours\"}"},
    {QUESTION(CHOICES "\"allowFreeform\":true,"),
     "an\x1b"
     "1",
     CARD_ANSWERS, "{\"choices\":[\"c1\"]}"},
    {QUESTION(CHOICES "\"allowFreeform\":true,"), PASTE("1") "\r", CARD_ANSWERS,
     "{\"answer\":\"1\"}"},
    {QUESTION(CHOICES "\"multi\":true,"), "\r", CARD_STAYS, NULL},
    {QUESTION(CHOICES "\"multi\":true,"), "12\r", CARD_ANSWERS, "{\"choices\":[\"c1\",\"c2\"]}"},
    {QUESTION(CHOICES "\"multi\":true,"), " " DOWN " " UP " \r", CARD_ANSWERS,
     "{\"choices\":[\"c2\"]}"},
    {QUESTION("\"allowFreeform\":true,"), "\r", CARD_STAYS, ""},
    {QUESTION("\"allowFreeform\":true,"), "hi \"x\"\r", CARD_ANSWERS,
     "{\"answer\":\"hi \\\"x\\\"\"}"},
    {QUESTION("\"allowFreeform\":true,"), DOWN DOWN "\r", CARD_ANSWERS, "{\"skip\":true}"},
    {QUESTION("\"fields\":[{\"name\":\"n\",\"type\":\"number\",\"required\":true},{\"name\":\"b\","
              "\"type\":\"boolean\"},"
              "{\"name\":\"c\",\"type\":\"choice\",\"choices\":[\"x\",\"y\"]},{\"name\":\"t\","
              "\"type\":\"text\"}],"),
     "\r\rtwo\r\x15"
     "2.50\rno\r2\r\r",
     CARD_ANSWERS, "{\"fields\":{\"n\":2.50,\"b\":false,\"c\":\"y\"}}"},
    /* approvals */
    {CONFIRM("write", "{}"), "\r", CARD_STAYS, ""},
    {CONFIRM("write", "{}"), "a", CARD_ANSWERS, "{\"decision\":\"approve\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), "A", CARD_ANSWERS, "{\"decision\":\"approve\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), DOWN "\r", CARD_ANSWERS,
     "{\"decision\":\"approve\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), "xyz 1", CARD_STAYS, ""},
    {CONFIRM("write", "{}"), PASTE("a\ra"), CARD_STAYS, ""},
    {CONFIRM("write", "{}"), "r\r", CARD_ANSWERS, "{\"decision\":\"reject\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), "rno\r", CARD_ANSWERS,
     "{\"decision\":\"reject\",\"comment\":\"no\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"),
     "rno\x1b"
     "a",
     CARD_ANSWERS, "{\"decision\":\"approve\",\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), "e\x7f\"x\":1}\r", CARD_ANSWERS,
     "{\"decision\":\"edit\",\"args\":{\"x\":1},\"binding\":\"b.1\"}"},
    {CONFIRM("write", "{}"), "e\x7f\r", CARD_STAYS, ""},
    {CONFIRM("destructive", "{}"), "a", CARD_STAYS, ""},
    {CONFIRM("destructive", "{}"), "aa", CARD_ANSWERS,
     "{\"decision\":\"approve\",\"binding\":\"b.1\"}"},
    {CONFIRM("destructive", "{}"), "axa", CARD_STAYS, ""},
    {CONFIRM("destructive", "{}"), "a" DOWN "a", CARD_STAYS, ""},
    {CONFIRM("destructive", "{}"), "e\r", CARD_STAYS, ""},
    {CONFIRM("destructive", "{}"), "e\r\r", CARD_ANSWERS,
     "{\"decision\":\"edit\",\"args\":{},\"binding\":\"b.1\"}"},
    {CONFIRM("destructive", "{}"),
     "e\r "
     "\r",
     CARD_STAYS, ""},
    /* the others */
    {OTHER("connection_lost"), "c", CARD_ANSWERS, "{\"decision\":\"continue\"}"},
    {OTHER("connection_lost"), "g", CARD_ANSWERS, "{\"decision\":\"give_up\"}"},
    {OTHER("uncertain"), "h", CARD_ANSWERS, "{\"decision\":\"happened\"}"},
    {OTHER("uncertain"), "r", CARD_ANSWERS, "{\"decision\":\"retry\"}"},
    {OTHER("uncertain"), "a\r", CARD_STAYS, ""},
};

static void keys_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(presses); i++) {
        struct card *card = card_new(str_c(presses[i].card), LANG_EN);
        assert_non_null(card);
        enum card_result result = press(card, presses[i].keys);
        if (!presses[i].body && presses[i].result == CARD_STAYS) {
            card_free(card);
            continue;
        }
        if (result != presses[i].result) fail_msg("row %zu: %d", i, (int)result);
        if (result == CARD_ANSWERS) assert_str(buf_str(&card->body), str_c(presses[i].body));
        card_free(card);
    }
}

static void heads(void **state)
{
    (void)state;
    static const struct {
        const char *card, *head;
    } rows[] = {
        {QUESTION(CHOICES), "? How long?\n"},
        {CONFIRM("write", "{}"),
         "! Approval needed: write (changes data) · requested by ann\n  (no arguments)\n"},
        {CONFIRM("external", "{\\\"a\\\":\\\"x\\\\ny\\\",\\\"b\\\":true,\\\"c\\\":\\\"true\\\","
                             "\\\"d\\\":[1, 2],\\\"e\\\":\\\"\\\"}"),
         "! Approval needed: write (acts outside) · requested by ann\n"
         "  a: x\n  │ y\n  b: true\n  c: \"true\"\n  d: [1, 2]\n  e: \"\"\n"},
        {CONFIRM("destructive", "{\\\"p\\\":\\\"a\\\\u202eb\\\"}"),
         "! Approval needed: write (destructive) · requested by ann\n  p: a⟦U+202E⟧b\n"},
        {CONFIRM("write", "{\\\"│ x\\\":1,\\\"a: b\\\":2}"),
         "! Approval needed: write (changes data) · requested by ann\n"
         "  \"│ x\": 1\n  \"a: b\": 2\n"},
        {CONFIRM("write", "not json"),
         "! Approval needed: write (changes data) · requested by ann\n  not json\n"},
        {OTHER("connection_lost"), "! Connection lost: Gone.\n"},
        {OTHER("uncertain"), "! Outcome unknown: Gone.\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct card *card = card_new(str_c(rows[i].card), LANG_EN);
        assert_non_null(card);
        assert_str(card_head(card, &arena), str_c(rows[i].head));
        card_free(card);
    }
    static const char *const none[] = {
        "", "{", "{}", "[]", OTHER("unheard_of"), "{\"type\":\"confirm\"}"};
    for (size_t i = 0; i < COUNT(none); i++) assert_null(card_new(str_c(none[i]), LANG_EN));
}

/* A long choice does not reach the beginning of a row either. */
static void drawn(void **state)
{
    (void)state;
    static const char *const rows[] = {"❯ 1. xxxxxxxxxxxxxxx", "  │ 2. other", "  ↷ skip"};
    AUTO(area_done) struct area area;
    area_init(&area);
    area_begin(&area, 20);
    struct card *card = card_new(
        STR(QUESTION("\"choices\":[{\"id\":\"c1\",\"label\":\"xxxxxxxxxxxxxxx2. other\"}],")),
        LANG_EN);
    assert_non_null(card);
    card_draw(card, &area);
    for (size_t i = 0; i < COUNT(rows); i++) assert_str(area_row(&area, i), str_c(rows[i]));
    assert_int_equal(area.cursor_row, 0);
    card_free(card);
}

static void said(void **state)
{
    (void)state;
    static const struct {
        const char *card, *words, *body; /* NULL: refused */
    } rows[] = {
        {QUESTION(CHOICES), "2", "{\"choices\":[\"c2\"]}"},
        {QUESTION(CHOICES), " 1 ", "{\"choices\":[\"c1\"]}"},
        {QUESTION(CHOICES), "3", "{\"answer\":\"3\"}"},
        {QUESTION(CHOICES), "2 please", "{\"answer\":\"2 please\"}"},
        {QUESTION(""), "2", "{\"answer\":\"2\"}"},
        {QUESTION(CHOICES), "  ", NULL},
        {CONFIRM("write", "{}"), "y", NULL},
        {OTHER("uncertain"), "yes", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str why = STR_EMPTY;
        struct card *card = card_new(str_c(rows[i].card), LANG_EN);
        assert_int_equal(card_say(card, str_c(rows[i].words), &why), rows[i].body != NULL);
        if (rows[i].body) assert_str(buf_str(&card->body), str_c(rows[i].body));
        assert_int_equal(why.len > 0, !rows[i].body);
        card_free(card);
    }
}

/* An answer that was not taken is not lost: Enter sends it again. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *card, *keys, *again, *body;
    } rows[] = {
        {QUESTION(
             "\"fields\":[{\"name\":\"a\",\"required\":true},{\"name\":\"b\"},{\"name\":\"c\"}],"),
         "\rone\rtwo\rthree\r", "!\r",
         "{\"fields\":{\"a\":\"one\",\"b\":\"two\",\"c\":\"three!\"}}"},
        {QUESTION(CHOICES "\"multi\":true,"), "12\r", "\r", "{\"choices\":[\"c1\",\"c2\"]}"},
        {QUESTION(CHOICES), "2", "\r", "{\"choices\":[\"c1\"]}"},
        {QUESTION(""), "words\r", "\r", "{\"answer\":\"words\"}"},
        {CONFIRM("write", "{}"), "rno\r", "\r",
         "{\"decision\":\"reject\",\"comment\":\"no\",\"binding\":\"b.1\"}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card *card = card_new(str_c(rows[i].card), LANG_EN);
        assert_int_equal(press(card, rows[i].keys), CARD_ANSWERS);
        card->sending = true;
        card_refused(card, STR("nobody is there"));
        assert_string_equal(card->notice, "nobody is there");
        assert_int_equal(press(card, rows[i].again), CARD_ANSWERS);
        assert_str(buf_str(&card->body), str_c(rows[i].body));
        card_free(card);
    }
}

static void written(void **state)
{
    (void)state;
    static const struct {
        const char *card, *keys, *text;
    } rows[] = {
        {QUESTION(""), "some words", "some words"},
        {QUESTION(""), "", ""},
        {QUESTION(CHOICES "\"multi\":true,"), "1", ""},
        {CONFIRM("write", "{}"), "rbecause", "because"},
        {CONFIRM("write", "{}"), "e", ""},
        {CONFIRM("write", "{}"), "e\x7f\"x\":1}", "{\"x\":1}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card *card = card_new(str_c(rows[i].card), LANG_EN);
        assert_int_equal(press(card, rows[i].keys), CARD_STAYS);
        assert_str(card_written(card), str_c(rows[i].text));
        card_free(card);
    }
}

/* Arguments that do not fit into the line are approved or rejected, and not edited. */
static void large_arguments(void **state)
{
    (void)state;
    static const char start[] = "{\\\"a\\\":\\\"", end[] = "\\\"}";
    AUTO(buf_done) struct buf json;
    buf_init(&json, 2 * CALL_ARGS_BYTES_MAX);
    str frame = STR(CONFIRM("write", "@"));
    ptrdiff_t at = str_find_char(frame, '@');
    buf_append(&json, (str){frame.p, (size_t)at});
    buf_append(&json, str_c(start));
    for (size_t i = 0; i < ANSWER_BYTES_MAX / 2; i++) buf_char(&json, 'x');
    buf_append(&json, str_c(end));
    buf_append(&json, str_drop(frame, (size_t)at + 1));
    struct card *card = card_new(buf_str(&json), LANG_EN);
    assert_non_null(card);
    assert_int_equal(press(card, "ex"), CARD_STAYS);
    assert_int_equal(card->mode, CARD_MENU);
    assert_int_equal(press(card, "e"), CARD_STAYS);
    assert_true(card->notice[0] != 0);
    assert_int_equal(press(card, "a"), CARD_ANSWERS);
    card_free(card);
}

/* What is longer than a terminal keeps is rejected here, and approved elsewhere. */
static void more_than_is_kept(void **state)
{
    (void)state;
    static const struct {
        size_t lines, columns;
        bool fits;
    } rows[] = {
        {TERM_APPROVE_ROWS_MAX - 2, 80, true},   {TERM_APPROVE_ROWS_MAX - 1, 80, false},
        {TERM_APPROVE_ROWS_MAX, 80, false},      {300, 80, true},
        {TERM_APPROVE_ROWS_MAX - 200, 3, false},
    };
    static const char *const kinds[] = {"a", "e"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf json;
        buf_init(&json, CALL_ARGS_BYTES_MAX);
        str frame = STR(CONFIRM("write", "@"));
        ptrdiff_t at = str_find_char(frame, '@');
        buf_append(&json, (str){frame.p, (size_t)at});
        buf_append(&json, STR("{\\\"a\\\":\\\"x"));
        for (size_t n = 1; n < rows[i].lines; n++) buf_append(&json, STR("\\\\nx"));
        buf_append(&json, STR("\\\"}"));
        buf_append(&json, str_drop(frame, (size_t)at + 1));
        struct card *card = card_new(buf_str(&json), LANG_EN);
        assert_non_null(card);
        card_fit(card, rows[i].columns);
        assert_int_equal(card->too_long, !rows[i].fits);
        for (size_t k = 0; k < COUNT(kinds) && !rows[i].fits; k++) {
            assert_int_equal(press(card, kinds[k]), CARD_STAYS);
            assert_int_equal(card->mode, CARD_MENU);
        }
        AUTO(area_done) struct area area;
        area_init(&area);
        area_begin(&area, 120);
        card_draw(card, &area);
        bool says = false;
        for (size_t n = 0; n < area.count; n++)
            says = says || str_find(buf_str(&area.text), STR("only on the page")) >= 0;
        assert_int_equal(says, !rows[i].fits);
        if (rows[i].fits) assert_int_equal(press(card, "a"), CARD_ANSWERS);
        if (!rows[i].fits) assert_int_equal(press(card, "r\r"), CARD_ANSWERS);
        card_free(card);
    }
}

/* A plan stands there as it is stored, whole: its card may have less. */
static void whole_plan(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf json;
    arena_init(&arena);
    buf_init(&json, CALL_ARGS_BYTES_MAX);
    buf_append(&json, STR("{\"interactionId\":\"int_1\",\"type\":\"confirm\",\"displayText\":"
                          "\"Plan?\",\"requester\":\"ann\",\"pendingTool\":{\"toolName\":"
                          "\"submit_plan\",\"risk\":\"write\",\"argsJson\":\"{\\\"steps\\\":["));
    for (size_t i = 0; i < 90; i++) {
        buf_append(&json, STR("{\\\"content\\\":\\\""));
        for (size_t n = 0; n < 100; n++) buf_char(&json, 'x');
        buf_append(&json, STR("\\\",\\\"done_when\\\":\\\"seen\\\"},"));
    }
    buf_append(&json, STR("{\\\"content\\\":\\\"wipe the disk\\\"}]}\"}}"));
    struct card *card = card_new(buf_str(&json), LANG_EN);
    assert_non_null(card);
    str head = card_head(card, &arena);
    assert_true(str_find(head, STR("  1. xxx")) > 0);
    assert_true(str_find(head, STR("  │ Done when: seen\n")) > 0);
    assert_true(str_ends(head, STR("  91. wipe the disk\n")));
    card_free(card);
}

int test_chat_card(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_answer),
        cmocka_unit_test(heads),
        cmocka_unit_test(said),
        cmocka_unit_test(drawn),

        cmocka_unit_test(refused),
        cmocka_unit_test(written),
        cmocka_unit_test(large_arguments),
        cmocka_unit_test(more_than_is_kept),
        cmocka_unit_test(whole_plan),
    };
    return cmocka_run_group_tests_name("chat_card", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "term/chat_fold.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

#define FACT(n, name, data) \
    "{\"type\":\"" name "\",\"runId\":\"r1\",\"seq\":" #n ",\"data\":" data "}"
#define PREVIEW(name, data) "{\"type\":\"" name "\",\"runId\":\"r1\",\"data\":" data "}"
#define DELTA(id, at, text) \
    PREVIEW("text.delta", "{\"messageId\":\"" id "\",\"offset\":" #at ",\"delta\":\"" text "\"}")
#define START(id) PREVIEW("text.message.start", "{\"messageId\":\"" id "\"}")
#define END(n, id, text) \
    FACT(n, "text.message.end", "{\"messageId\":\"" id "\",\"content\":\"" text "\"}")
#define USER(n, text) \
    FACT(n, "message.added", "{\"message\":{\"role\":\"user\",\"content\":\"" text "\"}}")
#define RESET(n, why) FACT(n, "reset", "{\"reason\":\"" why "\",\"seq\":" #n "}")
#define ASKED(n)                                                                        \
    FACT(n, "interaction.request",                                                      \
         "{\"interactionId\":\"int_1\",\"type\":\"ask_user\",\"displayText\":\"How?\"," \
         "\"requester\":\"ann\"}")
#define SETTLED(n, how) FACT(n, "interaction.resolved", "{\"interactionId\":\"int_1\"," how "}")

static void on_said(void *arg, enum saying kind, str text)
{
    static const char *const names[SAID_COUNT] = {
        [SAID_USER] = "user",       [SAID_ANSWER] = "answer", [SAID_CARD] = "card",
        [SAID_TOOL] = "tool",       [SAID_FAILED] = "failed", [SAID_ASKED] = "asked",
        [SAID_SETTLED] = "settled", [SAID_NOTE] = "note",     [SAID_ERROR] = "error",
    };
    struct buf *out = arg;
    buf_printf(out, "%s: ", names[kind]);
    buf_append(out, text);
    buf_char(out, '\n');
}

/* Events, what they say, and what is growing afterwards. */
static const struct {
    const char *events[8];
    const char *said, *preview;
} cases[] = {
    {{USER(1, "hi"), START("m"), DELTA("m", 0, "Hel"), DELTA("m", 3, "lo")}, "user: hi\n", "Hello"},
    {{START("m"), DELTA("m", 0, "Hello"), END(1, "m", "Hello")}, "answer: Hello\n", ""},
    {{START("m"), DELTA("m", 0, "a"), PREVIEW("message.discard", "{\"messageId\":\"m\"}"),
      START("n"), DELTA("n", 0, "b")},
     "",
     "b"},
    {{START("m"), DELTA("m", 0, "\\ud83d\\ude00x"), DELTA("m", 2, "yz"), DELTA("m", 9, "no")},
     "",
     "😀yz"},
    {{DELTA("m", 0, "from the middle")}, "", "from the middle"},
    {{DELTA("m", 5, "its beginning is not here")}, "", ""},
    {{START("m"), DELTA("other", 0, "x")}, "", ""},
    /* once, and without a gap */
    {{USER(1, "a"), USER(1, "a"), USER(2, "b"), USER(1, "a")}, "user: a\nuser: b\n", ""},
    {{USER(1, "a"), USER(3, "c"), USER(2, "b")}, "user: a\n", ""},
    /* a reader that was slow lost previews, and no fact */
    {{USER(1, "a"), START("m"), DELTA("m", 0, "x"), RESET(1, "lagging"), USER(2, "b")},
     "user: a\nuser: b\n",
     ""},
    {{USER(1, "a"), USER(2, "b"), RESET(1, "lagging"), USER(2, "b"), USER(3, "c")},
     "user: a\nuser: b\nuser: c\n",
     ""},
    {{USER(1, "a"), RESET(7, "trimmed"), USER(8, "b")}, "user: a\n", ""},
    {{USER(1, "a"), USER(2, "b"), RESET(1, "future"), USER(3, "c")}, "user: a\nuser: b\n", ""},
    /* parts, cards, control characters */
    {{FACT(1, "message.added",
           "{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"see\"},{"
           "\"type\":\"binary\",\"filename\":\"a.png\"}]}}")},
     "user: see\n[file: a.png]\n",
     ""},
    {{END(1, "m", "a\\u001b[31m\\u202eb\\n")}, "answer: a⟦U+001B⟧[31m⟦U+202E⟧b\n", ""},
    {{END(1, "m", "")}, "", ""},
    {{FACT(1, "text.message.end", "{\"messageId\":\"m\",\"content\":\"x\",\"stopped\":true}")},
     "answer: x\nnote: (stopped here)\n",
     ""},
    /* tools */
    {{FACT(1, "tool.call", "{\"toolCallId\":\"c\",\"toolName\":\"find\"}"),
      FACT(2, "tool.call.result",
           "{\"toolCallId\":\"c\",\"toolName\":\"find\",\"content\":\"3 found\"}")},
     "tool: ✓ find · 3 found\n",
     ""},
    {{FACT(1, "tool.call.result",
           "{\"toolCallId\":\"c\",\"toolName\":\"find\",\"content\":\"no\",\"error\":\"bad\"}")},
     "failed: ✗ find · no\n",
     ""},
    {{FACT(1, "tool.call.result",
           "{\"toolCallId\":\"c\",\"toolName\":\"ask_user\",\"content\":\"1 hour\"}")},
     "",
     ""},
    /* people */
    {{START("m"), DELTA("m", 0, "x"), ASKED(1)}, "asked: ? How?\n", ""},
    {{ASKED(1),
      SETTLED(2,
              "\"status\":\"resolved\",\"text\":\"so\",\"answeredBy\":\"bob\",\"via\":\"page\"")},
     "asked: ? How?\nsettled: ✓ so · bob (page)\n",
     ""},
    {{ASKED(1), SETTLED(2, "\"status\":\"expired\",\"via\":\"clock\"")},
     "asked: ? How?\nsettled: – expired · clock\n",
     ""},
    {{SETTLED(1, "\"status\":\"resolved\",\"answer\":{\"decision\":\"reject\",\"comment\":\"no\"},"
                 "\"text\":\"The user said: no\",\"answeredBy\":\"bob\"")},
     "settled: ✓ rejected: no · bob\n",
     ""},
    /* ends */
    {{DELTA("m", 0, "x"), FACT(1, "run.finished", "{\"outcome\":\"cancelled\"}")},
     "note: Stopped.\n",
     ""},
    {{FACT(1, "run.error", "{\"code\":\"model_error\",\"message\":\"It broke.\"}")},
     "error: ✗ It broke.\n",
     ""},
    {{FACT(1, "run.finished", "{\"outcome\":\"exhausted\"}")},
     "error: The agent used up its rounds and stopped.\n",
     ""},
    {{FACT(1, "plan.updated",
           "{\"steps\":[{\"content\":\"a\",\"status\":\"running\"},{\"content\":\"b\",\"status\":"
           "\"pending\"}],\"current\":0}")},
     "note: Plan 1/2: a\n",
     ""},
    {{FACT(1, "plan.updated",
           "{\"steps\":[{\"content\":\"a\",\"status\":\"rejected\"},{\"content\":\"b\",\"status\":"
           "\"running\"}],\"current\":1}"),
      FACT(2, "plan.updated",
           "{\"steps\":[{\"content\":\"a\",\"status\":\"rejected\"},{\"content\":\"b\",\"status\":"
           "\"done\",\"by\":\"model\"}],\"current\":2}")},
     "note: Plan 1/2: a (rejected)\nnote: Plan 2/2: b\nnote: Plan 2/2: b (by model)\n",
     ""},
    {{FACT(1, "plan.updated",
           "{\"steps\":[{\"content\":\"a\",\"status\":\"done\"},{\"content\":\"b\",\"status\":"
           "\"failed\"},{\"content\":\"c\",\"status\":\"skipped\"}],\"current\":1}")},
     "note: Plan 2/3: b (failed)\nnote: Plan 3/3: c (skipped)\n",
     ""},
    {{FACT(1, "never.heard.of", "{}"), USER(2, "x")}, "user: x\n", ""},
};

static void folding(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fold fold;
        AUTO(buf_done) struct buf out;
        buf_init(&out, 10000);
        fold_init(&fold, LANG_EN, on_said, &out);
        for (size_t k = 0; k < COUNT(cases[i].events) && cases[i].events[k]; k++)
            assert_true(fold_event(&fold, str_c(cases[i].events[k])));
        assert_str(out.len ? buf_str(&out) : STR_EMPTY, str_c(cases[i].said));
        assert_str(fold.preview.len ? buf_str(&fold.preview) : STR_EMPTY, str_c(cases[i].preview));
        fold_done(&fold);
    }
}

static void states(void **state)
{
    (void)state;
    struct fold fold;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 10000);
    fold_init(&fold, LANG_EN, on_said, &out);
    assert_false(fold_event(&fold, STR("{")));
    assert_false(fold_event(&fold, STR("[]")));
    assert_false(fold_event(&fold, STR("{\"type\":\"message.added\",\"seq\":-1}")));
    assert_true(fold_event(&fold, STR(FACT(1, "run.started", "{\"resumed\":false}"))));
    assert_int_equal(fold.state, RUN_WORKING);
    assert_true(fold_event(&fold, STR(ASKED(2))));
    assert_true(fold_event(&fold, STR(FACT(3, "run.finished", "{\"outcome\":\"interrupted\"}"))));
    assert_int_equal(fold.state, RUN_WAITING);
    assert_int_equal(fold.open_count, 1);
    assert_string_equal(fold.open[0].id, "int_1");
    assert_string_equal(fold.ended_id, "");
    assert_true(fold_event(&fold, STR(SETTLED(4, "\"status\":\"resolved\""))));
    assert_int_equal(fold.open_count, 0);
    assert_true(fold_event(&fold, STR(FACT(5, "run.finished", "{\"outcome\":\"completed\"}"))));
    assert_int_equal(fold.state, RUN_IDLE);
    assert_string_equal(fold.ended_id, "r1");
    assert_false(fold.stale);
    assert_true(fold_event(&fold, STR(USER(7, "x"))));
    assert_true(fold.stale);
    fold_done(&fold);
}

static void from_history(void **state)
{
    (void)state;
    struct fold fold;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 10000);
    fold_init(&fold, LANG_EN, on_said, &out);
    assert_true(fold_history(
        &fold,
        STR("{\"seq\":9,\"hasMore\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},"
            "{\"role\":\"assistant\",\"content\":\"Hello\"},{\"role\":\"reasoning\",\"content\":"
            "\"hm\"},"
            "{\"role\":\"clarify\",\"content\":\"How?\",\"metadata\":{\"status\":\"answered\","
            "\"answer\":\"so\",\"answered_by\":\"ann\",\"via\":\"page\"}},"
            "{\"role\":\"clarify\",\"content\":\"And now?\",\"metadata\":{\"status\":\"pending\"}},"
            "{\"role\":\"tool\",\"toolName\":\"find\",\"content\":\"3\"}],"
            "\"openInteractions\":[{\"interactionId\":\"int_1\",\"type\":\"ask_user\","
            "\"displayText\":\"And now?\",\"requester\":\"ann\"}]}")));
    assert_str(
        buf_str(&out),
        STR("note: (earlier messages are not shown)\nuser: hi\nanswer: Hello\n"
            "note: ? How?\nsettled: ✓ so · ann (page)\ntool: ✓ find · 3\nasked: ? And now?\n"));
    assert_int_equal(fold.seq, 9);
    assert_int_equal(fold.open_count, 1);
    fold_run(&fold, STR("{\"status\":\"running\",\"runId\":\"r2\",\"queue\":[{}]}"));
    assert_int_equal(fold.state, RUN_WORKING);
    assert_int_equal(fold.queued, 1);
    assert_false(fold_history(&fold, STR("{}")));
    fold_done(&fold);
}

int test_chat_fold(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding),
        cmocka_unit_test(states),
        cmocka_unit_test(from_history),
    };
    return cmocka_run_group_tests_name("chat_fold", tests, NULL, NULL);
}

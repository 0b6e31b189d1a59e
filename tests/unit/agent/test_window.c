/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting, and choosing what is kept. Conversations here are rows of figures: how many tokens each
 * message has.
 */
#include "agent/core/window.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"

static void counted(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        size_t tokens;
    } rows[] = {
        {"", 0},
        {"a", 1},
        {"abc", 1},
        {"abcd", 2},
        {"\n\t ", 1},
        {"日本語", 3},
        {"日本語abc", 4},
        {"é", 1},
        {"ééé", 3},
        {"\xf0\x9f\x98\x80", 2},
        {"a\xf0\x9f\x98\x80", 3},
        {"жд", 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t tokens = window_tokens(str_c(rows[i].text));
        if (tokens != rows[i].tokens) fail_msg("\"%s\": %zu", rows[i].text, tokens);
        assert_true(tokens <= (str_c(rows[i].text).len + 1) / 2);
        assert_true(3 * tokens >= str_c(rows[i].text).len);
    }
}

static void rooms(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t window, max_output;
        size_t room;
    } rows[] = {
        {0, 0, 0},
        {0, 4096, 0},
        {8192, 0, 8192 - 2048 - 1024},
        {8192, 1024, 8192 - 1024 - 1024},
        {200000, 0, 200000 - 4096 - 1024},
        {200000, 64000, 200000 - 64000 - 1024},
        {1024, 0, 1},
        {4096, 8192, 1},
        {UINT32_MAX, UINT32_MAX, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model model = {.window = rows[i].window, .max_output = rows[i].max_output};
        assert_int_equal(window_room(&model), rows[i].room);
    }
}

/* ---- whole turns ---- */

static void firsts(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        size_t tokens[8], count;
        size_t starts[4], start_count;
        size_t begin, least, first;
    } rows[] = {
        {"fits", {20, 20, 20, 40}, 4, {0, 2}, 2, 0, 0, 0},
        {"one too many", {21, 20, 20, 40}, 4, {0, 2}, 2, 0, 0, 2},
        {"more than needed goes", {10, 10, 10, 10, 10, 51}, 6, {0, 2, 4}, 3, 0, 0, 4},
        {"down to the target", {40, 30, 20, 25}, 4, {0, 1, 2, 3}, 4, 0, 0, 1},
        {"the newest stays", {1, 200}, 2, {0, 1}, 2, 0, 0, 1},
        {"what is before the first turn", {50, 30, 30}, 3, {1, 2}, 2, 0, 0, 1},
        {"that too is kept", {10, 30, 30}, 3, {1, 2}, 2, 0, 0, 0},
        {"unless it has no beginning", {10, 30, 30}, 3, {1, 2}, 2, 1, 0, 1},
        {"too old", {5, 5, 5, 5}, 4, {0, 1, 2, 3}, 4, 0, 2, 2},
        {"too old, all of it", {5, 5, 5, 5}, 4, {0, 1}, 2, 0, 1, 1},
        {"no turn", {80, 80}, 2, {0}, 0, 0, 0, 0},
        {"nothing", {0}, 0, {0}, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t tokens[8];
        memcpy(tokens, rows[i].tokens, sizeof tokens);
        struct window_talk talk = {.tokens = tokens,
                                   .count = rows[i].count,
                                   .starts = rows[i].starts,
                                   .start_count = rows[i].start_count,
                                   .room = 100};
        size_t first = window_first(&talk, rows[i].begin, rows[i].least);
        if (first != rows[i].first) fail_msg("%s: got %zu", rows[i].name, first);
    }
}

/* ---- inside a turn ---- */

enum { PIECES_MAX = 40, ROOM = 4000 };

/* One turn: a person's words, then calls with their results, of so many bytes. */
struct turn {
    struct arena arena;
    struct model_message messages[3 * PIECES_MAX];
    size_t tokens[3 * PIECES_MAX];
    bool gone[3 * PIECES_MAX];
    struct window_talk talk;
};

static void say(struct turn *turn, const char *role, size_t bytes)
{
    char *text = arena_alloc(&turn->arena, bytes + 1);
    memset(text, 'x', bytes);
    size_t at = turn->talk.count++;
    turn->messages[at] = (struct model_message){.role = str_c(role), .text = {text, bytes}};
    turn->tokens[at] = window_message_tokens(&turn->messages[at]);
}

static void turn_of(struct turn *turn, size_t words, size_t pieces, size_t results, size_t bytes)
{
    *turn = (struct turn){0};
    turn->talk = (struct window_talk){.arena = &turn->arena,
                                      .locale = STR("en"),
                                      .messages = turn->messages,
                                      .tokens = turn->tokens,
                                      .room = ROOM};
    say(turn, "user", words);
    for (size_t i = 0; i < pieces; i++) {
        say(turn, "assistant", 10);
        for (size_t j = 0; j < results; j++) say(turn, "tool", bytes);
    }
}

static size_t left(const struct turn *turn)
{
    size_t sum = 0;
    for (size_t i = 0; i < turn->talk.count; i++) {
        assert_int_equal(turn->tokens[i], window_message_tokens(&turn->messages[i]));
        if (!turn->gone[i]) sum += turn->tokens[i];
    }
    return sum;
}

static void squeezed(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        size_t words, pieces, results, bytes;
        size_t cut, gone; /* messages */
    } rows[] = {
        {"nothing to do", 300, 3, 1, 1000, 0, 0},
        {"a long message", 40000, 0, 0, 0, 1, 0},
        {"old results", 300, 5, 1, 3000, 2, 0},
        {"one result too long", 300, 1, 1, 30000, 1, 0},
        {"two in equal shares", 300, 1, 2, 30000, 2, 0},
        {"both", 40000, 2, 1, 30000, 3, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct turn turn;
        turn_of(&turn, rows[i].words, rows[i].pieces, rows[i].results, rows[i].bytes);
        window_squeeze(&turn.talk, 0, turn.gone);
        size_t cut = 0, gone = 0;
        for (size_t j = 0; j < turn.talk.count; j++) {
            cut += str_find(turn.messages[j].text, STR(" bytes left out ...]")) >= 0;
            gone += turn.gone[j];
        }
        if (cut != rows[i].cut || gone != rows[i].gone)
            fail_msg("%s: %zu cut, %zu gone", rows[i].name, cut, gone);
        assert_true(left(&turn) <= ROOM);
        arena_done(&turn.arena);
    }
}

/* Texts whose tokens are half their bytes, which is the most: several messages that each fill the room,
 * and one before results that do. */
static void dense(void **unused)
{
    (void)unused;
    static const struct {
        size_t words, pieces;
    } rows[] = {{1, 0}, {1, 1}, {1, 5}, {2, 0}, {2, 2}, {3, 0}, {5, 1}, {PIECES_MAX / 2, 3}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct turn turn;
        turn_of(&turn, 4 * ROOM, 0, 0, 0);
        for (size_t k = 1; k < rows[i].words; k++) say(&turn, "user", 4 * ROOM);
        for (size_t k = 0; k < rows[i].pieces; k++) {
            say(&turn, "assistant", 10);
            say(&turn, "tool", 4 * ROOM);
        }
        for (size_t k = 0; k < turn.talk.count; k++) {
            char *text = (char *)turn.messages[k].text.p; /* in the arena */
            for (size_t b = 0; b + 1 < turn.messages[k].text.len; b += 2)
                memcpy(text + b, "\xd0\xb6", 2);
            turn.tokens[k] = window_message_tokens(&turn.messages[k]);
        }
        window_squeeze(&turn.talk, 0, turn.gone);
        if (left(&turn) > ROOM) fail_msg("row %zu: %zu are left", i, left(&turn));
        for (size_t k = 0; k < rows[i].words; k++) assert_false(turn.gone[k]);
        arena_done(&turn.arena);
    }
}

/* Of two results that are too long each keeps as much. */
static void shared(void **unused)
{
    (void)unused;
    static struct turn turn;
    turn_of(&turn, 300, 1, 2, 30000);
    window_squeeze(&turn.talk, 0, turn.gone);
    assert_int_equal(turn.messages[2].text.len, turn.messages[3].text.len);
    assert_true(turn.messages[2].text.len > ROOM / 2);
    arena_done(&turn.arena);
}

/* Calls go with their results, the oldest first, and what is left fits. */
static void dropped(void **unused)
{
    (void)unused;
    static struct turn turn;
    turn_of(&turn, 9000, PIECES_MAX - 2, 1, 600);
    window_squeeze(&turn.talk, 0, turn.gone);
    assert_true(left(&turn) <= ROOM);
    assert_false(turn.gone[0]);
    assert_true(turn.gone[1]);
    assert_false(turn.gone[turn.talk.count - 1]);
    for (size_t i = 1; i + 1 < turn.talk.count; i += 2) {
        assert_int_equal(turn.gone[i], turn.gone[i + 1]);
        if (i > 1) assert_true(turn.gone[i - 1] || !turn.gone[i]);
    }
    arena_done(&turn.arena);
}

/* A turn that grows: what was there stays as it was, but for a few cuts. */
static void steady(void **unused)
{
    (void)unused;
    static struct turn now, before;
    size_t changes = 0;
    before = (struct turn){0};
    for (size_t pieces = 1; pieces < PIECES_MAX; pieces++) {
        turn_of(&now, 1000, pieces, 1, 1500);
        window_squeeze(&now.talk, 0, now.gone);
        assert_true(left(&now) <= ROOM);
        bool changed = false;
        for (size_t i = 0; i < before.talk.count; i++)
            changed = changed || now.gone[i] != before.gone[i] ||
                      !str_eq(now.messages[i].text, before.messages[i].text);
        changes += changed;
        arena_done(&before.arena);
        before = now;
        before.talk.arena = &before.arena;
    }
    assert_in_range(changes, 2, PIECES_MAX / 2);
    arena_done(&before.arena);
}

int test_window(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted),  cmocka_unit_test(rooms),  cmocka_unit_test(firsts),
        cmocka_unit_test(squeezed), cmocka_unit_test(shared), cmocka_unit_test(dropped),
        cmocka_unit_test(steady),   cmocka_unit_test(dense),
    };
    return cmocka_run_group_tests_name("agent/window", tests, NULL, NULL);
}

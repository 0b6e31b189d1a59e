/* SPDX-License-Identifier: Apache-2.0 */
#include "term/line.h"

#include <string.h>

#include "check.h"

/* ---- keys ---- */

static void note_key(void *arg, struct key_event event)
{
    static const char *const names[KEY_COUNT] = {
        [KEY_ENTER] = "enter", [KEY_ESC] = "esc",        [KEY_TAB] = "tab",     [KEY_UP] = "up",
        [KEY_DOWN] = "down",   [KEY_LEFT] = "left",      [KEY_RIGHT] = "right", [KEY_HOME] = "home",
        [KEY_END] = "end",     [KEY_BACKSPACE] = "back", [KEY_DELETE] = "del",
    };
    struct buf *out = arg;
    if (out->len) buf_char(out, ' ');
    if (event.pasted) buf_char(out, '"');
    if (event.key == KEY_CHAR && event.code > ' ' && event.code < 0x7f)
        buf_char(out, (char)event.code);
    else if (event.key == KEY_CHAR)
        buf_printf(out, "%X", (unsigned)event.code);
    else if (event.key == KEY_CTRL)
        buf_printf(out, "^%c", (char)event.code);
    else
        buf_append(out, str_c(names[event.key]));
}

static const struct {
    str bytes;
    const char *keys;
} sequences[] = {
    {STR("ab"), "a b"},
    {STR("\r\n\t\x7f\x08"), "enter enter tab back back"},
    {STR("\x01\x03\x1a"), "^a ^c ^z"},
    {STR("\0"), ""},
    {STR("\x1b[A\x1b[B\x1b[C\x1b[D"), "up down right left"},
    {STR("\x1bOA\x1bOF\x1b[H\x1b[1~\x1b[3~"), "up end home home del"},
    {STR("\x1b\r"), "A"},
    {STR("\x1bx"), "esc x"},
    {STR("\x1b\x1b[A"), "esc up"},
    {STR("\x1b[1;5Cz"), "z"},
    {STR("\x1b[12;34;56;78;90;12;34Rz"), "z"},
    {STR("\x1b[\x01z"), "^a z"},
    {STR("你"), "4F60"},
    {STR("\xff\xe4x\xe4\xbdy"), "x y"},
    {STR("\xed\xa0\x80z"), "z"},
    {STR("\xc2\x9bz"), "z"},
    {STR("\x1b[200~a\r\x03\x1b[A\tb\x1b[201~\r"), "\"a \"A \"9 \"b enter"},
};

/* Cut anywhere, the keys are the same. */
static void keys_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sequences); i++)
        for (size_t cut = 0; cut <= sequences[i].bytes.len; cut++) {
            struct keys keys = {0};
            AUTO(buf_done) struct buf out;
            buf_init(&out, 1000);
            keys_feed(&keys, (str){sequences[i].bytes.p, cut}, note_key, &out);
            keys_feed(&keys, str_drop(sequences[i].bytes, cut), note_key, &out);
            assert_false(keys_waiting(&keys));
            assert_str(out.len ? buf_str(&out) : STR_EMPTY, str_c(sequences[i].keys));
        }
}

static void esc_waits(void **state)
{
    (void)state;
    struct keys keys = {0};
    AUTO(buf_done) struct buf out;
    buf_init(&out, 1000);
    keys_feed(&keys, STR("\x1b"), note_key, &out);
    assert_true(keys_waiting(&keys));
    assert_int_equal(out.len, 0);
    keys_flush(&keys, note_key, &out);
    assert_false(keys_waiting(&keys));
    keys_feed(&keys, STR("\x1b["), note_key, &out);
    keys_flush(&keys, note_key, &out);
    assert_str(buf_str(&out), STR("esc esc ["));
}

/* ---- the line ---- */

static void to_line(void *arg, struct key_event event)
{
    line_key(arg, event);
}

static void feed(struct line *line, str bytes)
{
    struct keys keys = {0};
    keys_feed(&keys, bytes, to_line, line);
}

#define LEFT  "\x1b[D"
#define RIGHT "\x1b[C"
#define UP    "\x1b[A"
#define DOWN  "\x1b[B"
#define HOME  "\x1b[H"

static void editing(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
        size_t at;
    } rows[] = {
        {"abc", "abc", 3},
        {"ac" LEFT "b", "abc", 2},
        {"你好" LEFT "们", "你们好", 6},
        {"你好\x7f", "你", 3},
        {"e\xcc\x81x" LEFT LEFT "a", "ae\xcc\x81x", 1},
        {"e\xcc\x81\x7f", "", 0},
        {"ab" HOME "\x1b[3~", "b", 0},
        {"ab\x01\x04", "b", 0},
        {"one two \x17", "one ", 4},
        {"one two" LEFT LEFT LEFT "\x15", "two", 0},
        {"one two" LEFT LEFT LEFT "\x0b", "one ", 4},
        {"a\x1b\rb", "a\nb", 3},
        {"abc\x1b\rde" UP "X", "abXc\nde", 3},
        {"ab\x1b\rcde" UP DOWN "X", "ab\ncdXe", 6},
        {"a\x1b\rb\x01X\x05Y", "a\nXbY", 5},
        {"\x1b[200~a\tb\x1b[201~" LEFT LEFT "x", "ax\tb", 2},
        {"a\x1b[200~\t\x1b[201~\x7f", "a", 1},
        {"你\xe3\x80\x80\x7f", "你", 3}, /* a wide space */
        {LEFT RIGHT "\x7f\x1b[3~\x17\x15\x0b", "", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct line line;
        line_init(&line, 100);
        feed(&line, str_c(rows[i].bytes));
        assert_str(line_text(&line), str_c(rows[i].text));
        assert_int_equal(line.at, rows[i].at);
        line_done(&line);
    }
}

static void full(void **state)
{
    (void)state;
    struct line line;
    line_init(&line, 4);
    assert_false(line.full);
    feed(&line, STR("ab你cd"));
    assert_true(line.full);
    assert_str(line_text(&line), STR("abcd"));
    feed(&line, STR("\x7f"
                    "e"));
    assert_str(line_text(&line), STR("abce"));
    assert_false(line.full);
    assert_false(line_set(&line, STR("too long")));
    assert_str(line_text(&line), STR_EMPTY);
    feed(&line, STR("xy"));
    assert_str(line_text(&line), STR("xy"));
    assert_true(line_set(&line, STR("four")));
    line_done(&line);
}

static void history(void **state)
{
    (void)state;
    struct line line;
    line_init(&line, 100);
    assert_false(line_key(&line, (struct key_event){.key = KEY_UP}));
    line_remember(&line, STR("first"));
    line_remember(&line, STR("second"));
    line_remember(&line, STR("second"));
    assert_int_equal(line.history_count, 2);
    feed(&line, STR("draft" UP));
    assert_str(line_text(&line), STR("second"));
    feed(&line, STR(UP UP));
    assert_str(line_text(&line), STR("first"));
    feed(&line, STR(DOWN DOWN));
    assert_str(line_text(&line), STR("draft"));
    assert_false(line_key(&line, (struct key_event){.key = KEY_DOWN}));
    for (int i = 0; i < LINE_HISTORY_MAX + 3; i++)
        line_remember(&line, i % 2 ? STR("odd") : STR("even"));
    assert_int_equal(line.history_count, LINE_HISTORY_MAX);
    line_done(&line);
}

int test_line(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come), cmocka_unit_test(esc_waits), cmocka_unit_test(editing),
        cmocka_unit_test(full),      cmocka_unit_test(history),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}

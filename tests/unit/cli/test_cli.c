/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing and help; running the program is tested in tests/api/cli.test.mjs.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

enum { WORDS_MAX = 64 };

/* `line` is split at '|', so that words may hold spaces or be empty. */
static enum err parse(struct arena *arena, const char *line, struct command_call *call,
                      struct fault *fault)
{
    char *argv[WORDS_MAX + 1] = {arena_cstr(arena, STR("fermata"))};
    int argc = 1;
    for (str rest = {line, line ? strlen(line) : 0}; rest.p;) {
        assert_true(argc < WORDS_MAX);
        argv[argc++] = arena_cstr(arena, str_split(&rest, '|'));
    }
    *fault = (struct fault){0};
    return cli_parse(arena, argc, argv, call, fault);
}

/* The call in one line. */
static void show(struct buf *out, const struct command_call *call)
{
    const struct args *a = &call->args;
    buf_printf(out, "%s", cli_command_name(call->command));
    if (a->operand.len) buf_printf(out, " operand=%.*s", STR_ARG(a->operand));
    if (a->user.len) buf_printf(out, " user=%.*s", STR_ARG(a->user));
    for (size_t i = 0; i < a->roles.count; i++)
        buf_printf(out, " role=%.*s", STR_ARG(a->roles.items[i]));
    if (a->name.len) buf_printf(out, " name=%.*s", STR_ARG(a->name));
    if (a->audit) buf_append(out, STR(" audit"));
    if (a->markdown) buf_append(out, STR(" markdown"));
    for (size_t i = 0; i < call->option_count; i++)
        buf_printf(out, " %s%s=%.*s",
                   call->options[i].option == config_flag(STR("data"))     ? "data"
                   : call->options[i].option == config_flag(STR("listen")) ? "listen"
                                                                           : "?",
                   "", STR_ARG(call->options[i].value));
}

static void calls(void **state)
{
    (void)state;
    static const struct {
        const char *line, *call;
    } rows[] = {
        {"serve", "serve"},
        {"serve|--data|x|--listen=[::1]:0", "serve data=x listen=[::1]:0"},
        {"serve|--data=a=b", "serve data=a=b"},
        {"serve|--data=", "serve data="},
        {"serve|--data|-x", "serve data=-x"},
        {"serve|--data=--x", "serve data=--x"},
        {"key|add|--user|ann", "key add user=ann"},
        {"key|add|--role|user|--data|d|--role=approver|--name|two words|--user=安",
         "key add user=安 role=user role=approver name=two words data=d"},
        {"key|list|--data|d", "key list data=d"},
        {"key|revoke|k1", "key revoke operand=k1"},
        {"key|revoke|--data|d|--|--k1", "key revoke operand=--k1 data=d"},
        {"key|revoke|-", "key revoke operand=-"},
        {"check", "check"},
        {"check|--audit|--data|d", "check audit data=d"},
        {"version", "version"},
        {"help", "help"},
        {"help|key", "help operand=key"},
        {"help|--markdown", "help markdown"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        AUTO(buf_done) struct buf out;
        buf_init(&out, 4096);
        struct command_call call;
        struct fault fault;
        if (parse(&arena, rows[i].line, &call, &fault)) fail_msg("refused: %s", fault.text);
        show(&out, &call);
        assert_str(buf_str(&out), str_c(rows[i].call));
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } rows[] = {
        {NULL, "no command"},
        {"", "unknown command \"\""},
        {"srve", "unknown command \"srve\"; did you mean \"serve\"?"},
        {"chekc", "did you mean \"check\"?"},
        {"entirely-else", "`fermata help` lists the known ones"},
        {"\x1B[2J", "unknown command \"?[2J\""},
        {"--data|x|serve", "\"--data\" stands before the command"},
        {"key", "\"key\" needs one more word"},
        {"key|--data|x", "\"key\" needs one more word"},
        {"key|ad", "unknown command \"key ad\"; did you mean \"key add\"?"},
        {"key|revok|x", "did you mean \"key revoke\"?"},
        {"key|add", "`fermata key add` needs --user NAME"},
        {"key|add|--user", "--user needs a value"},
        {"key|add|--user|--role", "--user needs a value"},
        {"key|add|--user|", "--user is empty"},
        {"key|add|--user=", "--user is empty"},
        {"key|add|--user|a|--user|b", "--user is given twice"},
        {"key|add|--user|a\nb", "--user has characters"},
        {"key|add|--user|\xFF", "--user has characters"},
        {"key|add|--user|a|--role|aprover", "\"aprover\"; did you mean \"approver\"?"},
        {"key|add|--user|a|--role|zzzzzzzzzz", "write one of user|approver|operator"},
        {"key|add|--user|a|--role|user,operator", "--role does not know"},
        {"key|add|x", "`fermata key add` does not take \"x\""},
        {"key|revoke", "`fermata key revoke` needs ID"},
        {"key|revoke|", "ID is empty"},
        {"key|revoke|a|b", "does not take \"b\""},
        {"serve|x", "`fermata serve` does not take \"x\""},
        {"serve|--|--data", "does not take \"--data\""},
        {"serve|--user|a", "unknown flag \"--user\""},
        {"serve|--lisen|a", "unknown flag \"--lisen\"; did you mean \"--listen\"?"},
        {"serve|--limits-bdy=1", "did you mean \"--limits-body\"?"},
        {"serve|--zzzzzzzzzzzzzz", "`fermata help` lists the known ones"},
        {"key|add|--usr|a", "did you mean \"--user\"?"},
        {"serve|--data", "--data needs a value"},
        {"serve|--data|--listen", "--data needs a value"},
        {"serve|--data|a|--data|b", "--data is given twice"},
        {"serve|-d", "unknown flag \"-d\"; flags begin with --"},
        {"help|--markdown=yes", "--markdown takes no value"},
        {"help|--mrkdown", "unknown flag"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct command_call call = {.option_count = 77};
        struct fault fault;
        enum err e = parse(&arena, rows[i].line, &call, &fault);
        if (e != ERR_BAD_REQUEST) fail_msg("taken: %s", rows[i].line);
        if (!strstr(fault.text, rows[i].text))
            fail_msg("got \"%s\", expected \"...%s...\"", fault.text, rows[i].text);
        assert_int_equal(call.option_count, 77);
    }
}

static void bounds(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct command_call call;
    struct fault fault;
    for (int over = 0; over < 2; over++) {
        AUTO(buf_done) struct buf line;
        buf_init(&line, 4096);
        buf_append(&line, STR("key|add|--user|"));
        for (int i = 0; i < COMMAND_TEXT_BYTES_MAX + over; i++) buf_char(&line, 'x');
        buf_char(&line, '\0');
        assert_int_equal(parse(&arena, line.p, &call, &fault), over ? ERR_BAD_REQUEST : OK);
    }
    for (int over = 0; over < 2; over++) {
        AUTO(buf_done) struct buf line;
        buf_init(&line, 4096);
        buf_append(&line, STR("key|add|--user|a"));
        for (int i = 0; i < COMMAND_FLAG_VALUES_MAX + over; i++)
            buf_append(&line, STR("|--role|user"));
        buf_char(&line, '\0');
        assert_int_equal(parse(&arena, line.p, &call, &fault), over ? ERR_BAD_REQUEST : OK);
    }
    assert_non_null(strstr(fault.text, "more than 16 times"));
}

static void wants_help(void **state)
{
    (void)state;
    static char program[] = "fermata", serve[] = "serve", help[] = "--help", h[] = "-h",
                end[] = "--", unknown[] = "--zzz";
    static char *const asked[][4] = {
        {program, help}, {program, serve, h}, {program, serve, unknown, help}};
    for (size_t i = 0; i < COUNT(asked); i++)
        assert_true(cli_wants_help(i < 1 ? 2 : (int)i + 2, asked[i]));
    static char *const not_asked[] = {program, serve, end, help};
    assert_false(cli_wants_help(4, not_asked));
    assert_false(cli_wants_help(1, not_asked));
}

static void languages(void **state)
{
    (void)state;
    static const struct {
        const char *environment[4];
        enum lang lang;
    } rows[] = {
        {{NULL}, LANG_EN},
        {{"LANG=zh_CN.UTF-8"}, LANG_ZH},
        {{"LANG=zh_TW"}, LANG_ZH},
        {{"LANG=C"}, LANG_EN},
        {{"LANG=zh_CN", "LC_ALL=C"}, LANG_EN},
        {{"LANG=en_US", "LC_MESSAGES=zh_CN"}, LANG_ZH},
        {{"LC_MESSAGES=zh", "LC_ALL=de_DE"}, LANG_EN},
        {{"LANG=zh_CN", "LC_ALL="}, LANG_ZH},
        {{"LANGUAGE=zh"}, LANG_EN},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(lang_asked((char *const *)rows[i].environment), rows[i].lang);
}

static void help_text(void **state)
{
    (void)state;
    static const struct {
        enum lang lang;
        const char *topic, *there, *absent;
    } rows[] = {
        {LANG_EN, "", "Usage: fermata COMMAND", "markdown"},
        {LANG_EN, "", "key revoke ID", "用法"},
        {LANG_EN, "", "--role user|approver|operator", "NULL"},
        {LANG_ZH, "", "用法：fermata", "Usage"},
        {LANG_EN, "key", "key add", "run the server"},
        {LANG_EN, "serve", "run the server", "key add"},
        {LANG_EN, "serve", "--limits-body SIZE", "key add"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 64 * 1024);
        assert_true(cli_help(&out, rows[i].lang, str_c(rows[i].topic)));
        buf_char(&out, '\0');
        assert_false(out.full);
        if (!strstr(out.p, rows[i].there)) fail_msg("\"%s\" is missing", rows[i].there);
        if (strstr(out.p, rows[i].absent)) fail_msg("\"%s\" is there", rows[i].absent);
    }
    AUTO(buf_done) struct buf none;
    buf_init(&none, 64 * 1024);
    assert_false(cli_help(&none, LANG_EN, STR("ke")));
    assert_int_equal(none.len, 0);
}

static void version(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 4096);
    cli_version(&out);
    str rest = buf_str(&out);
    assert_str(str_split(&rest, '\n'), STR("fermata " FERMATA_VERSION));
    str libraries = str_split(&rest, '\n');
    assert_true(str_starts(libraries, STR("built with ")));
    assert_true(str_find(libraries, STR("yaml-0.1 ")) > 0);
    assert_str(rest, STR(""));
}

int test_cli(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),      cmocka_unit_test(refusals),  cmocka_unit_test(bounds),
        cmocka_unit_test(wants_help), cmocka_unit_test(languages), cmocka_unit_test(help_text),
        cmocka_unit_test(version),
    };
    return cmocka_run_group_tests_name("app/cli", tests, NULL, NULL);
}

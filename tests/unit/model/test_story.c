/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories of a script: which turn answers, and how it is filled.
 */
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"
#include "model/script.h"

#define SYSTEM         "Now: 2026-11-15 05:52 UTC\nZone: Asia/Shanghai\n1. [current] Look | around\n"
#define TOOLS          "[{\"name\":\"ask_user\"},{\"name\":\"find\"}]"
#define CALL(id, name) "{\"id\":\"" id "\",\"function\":{\"name\":\"" name "\"}}"

/* The pieces, one behind the other: r<...>, t<...>, c<name args>. */
static str played(struct arena *arena, const struct play *play)
{
    static const char kinds[] = {'r', 't', 'c'};
    str all = STR_EMPTY;
    for (size_t i = 0; i < play->count; i++)
        all = arena_printf(arena, "%.*s%c<%.*s%s%.*s>", STR_ARG(all), kinds[play->pieces[i].kind],
                           STR_ARG(play->pieces[i].name), play->pieces[i].name.len ? " " : "",
                           STR_ARG(play->pieces[i].bytes));
    return all;
}

static struct script *parsed(const char *text)
{
    struct script *script = NULL;
    struct fault fault = {0};
    if (script_parse("s", str_c(text), &script, &fault)) fail_msg("%s: %s", text, fault.text);
    return script;
}

/* What it answers to a message, behind a call of ask_user and one of find, if they have results. */
static void expect(const char *text, const char *said, const char *answer, const char *found,
                   const char *expected)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct script *script = parsed(text);
    struct model_message messages[] = {
        {.role = STR("user"), .text = str_c(said)},
        {.role = STR("assistant"), .tool_calls = STR("[" CALL("a", "ask_user") "]")},
        {.role = STR("tool"), .text = str_c(answer), .tool_call_id = STR("a")},
        {.role = STR("assistant"), .text = STR("a step is done")},
        {.role = STR("assistant"), .tool_calls = STR("[" CALL("f", "find") "]")},
        {.role = STR("tool"), .text = str_c(found), .tool_call_id = STR("f")},
    };
    struct model_request request = {.system = STR(SYSTEM),
                                    .messages = messages,
                                    .count = found    ? 6
                                             : answer ? 3
                                                      : 1,
                                    .tools = STR(TOOLS),
                                    .locale = STR("en"),
                                    .round = 1};
    struct play play = {0};
    bool answers = script_answer(script, &request, &arena, &play);
    str got = answers ? played(&arena, &play) : STR("none");
    if (!str_eq(got, str_c(expected)))
        fail_msg("%s\n to \"%s\": got \"%.*s\", expected \"%s\"", text, said, STR_ARG(got),
                 expected);
    assert_true(utf8_valid(got));
    script_free(script);
}

static void filling(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *said, *found, *expected; /* of the only turn */
    } rows[] = {
        {"\"plain {} {Said} {a b} {said\"", "hi", NULL, "t<plain {} {Said} {a b} {said>"},
        {"\"{said}, {said}\"", " hi {quote} ", NULL, "t<hi {quote}, hi {quote}>"},
        {"[\"a\",[\"b\",\"c\"],\"{quote}\"]", "one\ntwo", NULL, "t<abcone ...>"},
        {"{\"en\":\"yes\",\"zh\":\"是\"}", "x", NULL, "t<yes>"},
        {"{\"en\":\"yes\",\"zh\":[\"是\",\"{language}\"]}", "x 好", NULL, "t<是zh>"},
        {"\"{day.0} {day.1.15} {day.1.15.30} {day.7.date} {day.0.9.time}\"", "", NULL,
         "t<2026-11-15T00:00:00+08:00 2026-11-16T15:00:00+08:00 2026-11-16T15:30:00+08:00 "
         "2026-11-22 09:00>"},
        {"\"{day.1.15.minutes}|{minutes}|{zone}|{step}\"", "", NULL, "t<||+08:00|Look   around>"},
        {"\"{day.1.15.minutes}|{minutes}\"", "", "{}", "t<2026-11-16T16:30:00+08:00|90>"},
        {"\"{tools.count} {tools.find.name} {tools.other.name} {tools.1.name}\"", "", NULL,
         "t<2 find  find>"},
        {"\"{calls.count} {fresh.count} {calls.find.ended} {fresh.ask_user.ended}\"", "", "{}",
         "t<2 1 done >"},
        {"\"{calls.find.reason}\"", "", "Error: a\nb|c", "t<a b c>"},
        {"\"{calls.find.error}|{calls.find.text}\"", "", "no {said}", "t<|no {said}>"},
        {"\"{calls.find.result.a.b} {calls.find.result.c}\"", "",
         "found it\n{\"a\":{\"b\":\" x\\ny \"},\"c\":1.5}", "t<x y 1.5>"},
        {"{\"each\":\"calls.find.result.l\",\"text\":\"[{it}]\"}", "", "{\"l\":[1,\"b\",null]}",
         "t<[1][b][]>"},
        {"{\"each\":\"calls.find.result.l\",\"text\":[\"{it.n}:\",{\"each\":\"it.l\",\"text\":\"{"
         "it}\"}"
         ",\"{it.n};\"]}",
         "", "{\"l\":[{\"n\":1,\"l\":[2,3]},{\"n\":4}]}", "t<1:231;4:4;>"},
        {"{\"each\":\"calls.find.result\",\"text\":\"{it.a}\"}", "", "{\"a\":7}", "t<7>"},
        {"{\"each\":\"calls.find.result.no\",\"text\":\"x\",\"else\":\"y\"}", "", "{}", "t<y>"},
        {"{\"when\":{\"zone\":true},\"text\":\"a\",\"else\":\"b\"}", "", NULL, "t<a>"},
        {"{\"when\":{\"zone\":false},\"text\":\"a\",\"else\":\"b\"}", "", NULL, "t<b>"},
        {"{\"when\":{\"zone\":false},\"text\":\"a\"}", "", NULL, ""},
        {"\"{sent.label} {sent.n}\"", "{\"payload\":{\"label\":\"L\",\"n\":2}}", NULL, "t<L 2>"},
        {"\"{title}\"", "please book a budget review", NULL, "t<Budget review>"},
        {"\"{files.count} {files.0}\"", "hi\n[file: a.txt, 9 bytes]", NULL, "t<1 a.txt, 9 bytes>"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char script[1024];
        snprintf(script, sizeof script, "{\"story\":[{\"text\":%s}]}", rows[i].text);
        expect(script, rows[i].said, rows[i].found ? "1.5 hours" : NULL, rows[i].found,
               rows[i].expected);
    }
}

static void choosing(void **unused)
{
    (void)unused;
    static const struct {
        const char *when, *said, *answer;
        bool holds;
    } rows[] = {
        {"{}", "", NULL, true},
        {"{\"said\":\"a\"}", "a", NULL, true},
        {"{\"said\":\"a\"}", "b", NULL, false},
        {"{\"said\":[\"a\",\"b\"]}", "b", NULL, true},
        {"{\"said\":{\"en\":\"a\",\"zh\":\"好\"}}", "好", NULL, true},
        {"{\"said\":{\"not\":\"a\"}}", "a", NULL, false},
        {"{\"said\":{\"not\":[\"b\",{\"has\":[\"a\"]}]}}", "a", NULL, false},
        {"{\"said\":{\"has\":[\"an\",\"set up\"]}}", "please SET UP", NULL, true},
        {"{\"said\":{\"has\":[\"an\",\"set up\"]}}", "answer, reset upper", NULL, false},
        {"{\"said\":{\"has\":[[\"a\",\"b\"],[\"c\"]]}}", "c b", NULL, true},
        {"{\"said\":{\"has\":[[\"a\",\"b\"],[\"c\"]]}}", "a b", NULL, false},
        {"{\"said\":{\"has\":[]}}", "a", NULL, false},
        {"{\"said\":{\"has\":{\"en\":[\"a\"],\"zh\":[\"好\"]}}}", "不好", NULL, true},
        {"{\"said\":{\"starts\":\"{language}\"}}", "english", NULL, true},
        {"{\"said\":{\"starts\":\"{language}\",\"chars_max\":6}}", "english", NULL, false},
        {"{\"said\":{\"chars_max\":2}}", "好好", NULL, true},
        {"{\"calls.ask_user\":true}", "", NULL, false},
        {"{\"calls.ask_user\":true,\"calls.ask_user.ended\":\"failed\"}", "", "yes", true},
        {"{\"calls.ask_user.ended\":\"refused\"}", "", "The user rejected this call", true},
        {"{\"calls.ask_user.ended\":\"unknown\"}", "", "结果未知，可能已执行", true},
        {"{\"tools.find\":true,\"tools.other\":false}", "", NULL, true},
        {"{\"images.0\":false,\"files\":true}", "", NULL, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char script[1024];
        const char *yes = rows[i].holds ? "t<yes>" : "t<no>";
        /* Of a line, with turns or a story; of a turn; of an element of arguments. */
        snprintf(script, sizeof script,
                 "{\"when\":%s,\"turns\":[{\"text\":\"yes\"}]}\n{\"turns\":[{\"text\":\"no\"}]}",
                 rows[i].when);
        expect(script, rows[i].said, rows[i].answer, NULL, yes);
        snprintf(script, sizeof script,
                 "{\"story\":[{\"when\":%s,\"text\":\"yes\"}]}\n{\"story\":[{\"text\":\"no\"}]}",
                 rows[i].when);
        expect(script, rows[i].said, rows[i].answer, NULL, yes);
        snprintf(
            script, sizeof script,
            "{\"story\":[{\"calls\":[{\"name\":\"f\",\"args\":{\"l\":[1,{\"when\":%s,\"a\":2}]}}]}"
            "]}",
            rows[i].when);
        expect(script, rows[i].said, rows[i].answer, NULL,
               rows[i].holds ? "c<f {\"l\":[1,{\"a\":2}]}>" : "c<f {\"l\":[1]}>");
    }
    expect("{\"match\":\"a\",\"story\":[{\"when\":{\"zone\":false},\"text\":\"x\"}]}", "a", NULL,
           NULL, "none");
}

static void calling(void **unused)
{
    (void)unused;
#define STORY(call) "{\"story\":[{\"reasoning\":\"r{zone}\",\"text\":\"t\",\"calls\":[" call "]}]}"
    expect(STORY("{\"name\":\"find\"},{\"name\":\"g\",\"args\":\"{said\"}"), "", NULL, NULL,
           "r<r+08:00>t<t>c<find {}>c<g {said>");
    expect(STORY("{\"name\":\"find\",\"args\":{ \"a\" : \"{said}\", \"n\":\"{tools.count}\", "
                 "\"s\":\"n {tools.count}\", \"o\":{\"en\":[true,null,-1.50],\"zh\":0}}}"),
           "\"q\"", NULL, NULL,
           "r<r+08:00>t<t>c<find {\"a\":\"\\\"q\\\"\",\"n\":2,\"s\":\"n "
           "2\",\"o\":[true,null,-1.50]}>");
    /* A part that says what is missing. */
    expect("{\"part\":\"missing\",\"text\":\"no {tool}\"}\n" STORY("{\"name\":\"find\"}"), "", NULL,
           NULL, "r<r+08:00>t<t>c<find {}>");
    expect("{\"part\":\"missing\",\"text\":\"no {tool}\"}\n" STORY(
               "{\"name\":\"find\"},{\"name\":\"g\"}"),
           "", NULL, NULL, "r<r+08:00>t<no g>");
#undef STORY
}

/* Lines that go on, comments, and what belongs to no answer. */
static void lines(void **unused)
{
    (void)unused;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct script *script =
        parsed("# a comment with { and \"\n"
               "{\"starters\": {\"en\": [\"a\", \"b\"], \"zh\": [\"甲\"]}}\n"
               "\n"
               "  # another\n"
               "{\"pace\": {\"chunk\": {\"en\": 6, \"zh\": 3}, \"gap_ms\": 9}}\r\n"
               "{\"part\": \"p\",\r\n"
               "\"text\": \"}]\\\"{\\\\\"\n"
               "}\n"
               "{\"match\": \"^a\", \"story\": [\n"
               "  {\"text\": [\n"
               "    \"{p}\"]}]}\n"
               "{\"story\": [{\"pace\": {\"chunk\": 2}, \"text\": \"b\"}]}");
    assert_str(script_starter(script, 1, false), STR("b"));
    assert_str(script_starter(script, 0, true), STR("甲"));
    assert_str(script_starter(script, 1, true), STR_EMPTY);
    static const struct {
        str said, expected;
        uint32_t chunk;
    } rows[] = {
        {STR("a"), STR("t<}]\"{\\>"), 6},
        {STR("a好"), STR("t<}]\"{\\>"), 3},
        {STR("b"), STR("t<b>"), 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_message message = {.role = STR("user"), .text = rows[i].said};
        struct play play;
        assert_true(script_answer(script, &(struct model_request){.messages = &message, .count = 1},
                                  &arena, &play));
        assert_str(played(&arena, &play), rows[i].expected);
        assert_int_equal(play.chunk, rows[i].chunk);
        assert_int_equal(play.gap_ms, 9);
    }
    script_free(script);
}

static void refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *script, *why;
    } rows[] = {
        {"{\"story\":[]}", "s:1: story must be an array of 1 to 100 turns"},
        {"{\"story\":[{\"fail\":{}}]}",
         "s:1: story[0] has an unknown member \"fail\"; known: when, "
         "text, calls, reasoning, pace"},
        {"{\"story\":[{}],\n\"turns\":[{}]}",
         "s:1: the line has more than one of turns, story, part, pace, starters"},
        {"\n\n{\"part\":\"a\"}", "s:3: part and text go together"},
        {"{\"text\":\"a\",\"turns\":[{}]}", "s:1: part and text go together"},
        {"{\"part\":\"said\",\"text\":\"a\"}", "s:1: the name of the part is taken"},
        {"{\"part\":\"a\",\n\"text\":\"a\"}\n{\"part\":\"a\",\"text\":\"a\"}",
         "s:3: the name of the part is taken"},
        {"{\"part\":\"a\",\"text\":\"{a}\"}",
         "s:1: text {a} is no value of a story and no part above"},
        {"{\"story\":[{\"text\":[\"a\",{\"en\":\"\",\"zh\":\"{sagd.x}\"}]}]}",
         "s:1: story[0].text {sagd.x} is no value of a story and no part above"},
        {"{\"story\":[{\"text\":1}]}",
         "s:1: story[0].text a text must be a string, a list or an object"},
        {"{\"story\":[{\"text\":{\"when\":{},\"txt\":\"\"}}]}",
         "s:1: story[0].text has a member that no story has there"},
        {"{\"story\":[{\"text\":{\"each\":\"call\",\"text\":\"\"}}]}",
         "s:1: story[0].text \"each\" names no value of a story"},
        {"{\"story\":[{\"when\":[]}]}", "s:1: story[0].when \"when\" must be an object"},
        {"{\"when\":{\"sad\":true},\"turns\":[{}]}",
         "s:1: when has a member that no story has there"},
        {"{\"when\":{\"said\":1},\"turns\":[{}]}",
         "s:1: when a test must be true, false, a string, a list or an object"},
        {"{\"when\":{\"said\":{\"has\":[1]}},\"turns\":[{}]}",
         "s:1: when words must be strings in a list"},
        {"{\"when\":{\"said\":{\"chars_max\":-1}},\"turns\":[{}]}",
         "s:1: when \"chars_max\" must be a number"},
        {"{\"story\":[{\"calls\":[{\"name\":\"f\",\"args\":{\"a\":[{\"when\":{\"x\":true}}]}}]}]}",
         "s:1: story[0].calls has a member that no story has there"},
        {"{\"pace\":{\"chunk\":{\"en\":1,\"zh\":0}}}",
         "s:1: pace.chunk must be a whole number from 1 to 65536"},
        {"{\"starters\":7}", "s:1: starters words must be strings in a list"},
        {"# only a comment", "s: holds no lines"},
        {"{\"turns\":[{}]}\n{\"turns\":[\n{}\n", "s:2: not JSON at byte 15: unexpected end"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct script *script = NULL;
        struct fault fault = {0};
        if (!script_parse("s", str_c(rows[i].script), &script, &fault))
            fail_msg("taken: %s", rows[i].script);
        if (strcmp(fault.text, rows[i].why) != 0)
            fail_msg("%s: \"%s\", expected \"%s\"", rows[i].script, fault.text, rows[i].why);
    }
}

/* Few lines can ask for any amount: in length, in steps without a length, in depth. */
static void bounded(void **unused)
{
    (void)unused;
    static const char *const starts[] = {"{said}", "", "{said}"};
    for (size_t i = 0; i < COUNT(starts); i++) {
        int parts = i == 2 ? STORY_DEPTH_MAX + 1 : 20, copies = i == 2 ? 1 : 4;
        AUTO(buf_done) struct buf text;
        buf_init(&text, 64 * 1024);
        buf_printf(&text, "{\"part\":\"p0\",\"text\":\"%s\"}\n", starts[i]);
        for (int n = 1; n < parts; n++) {
            buf_printf(&text, "{\"part\":\"p%d\",\"text\":\"", n);
            for (int k = 0; k < copies; k++) buf_printf(&text, "{p%d}", n - 1);
            buf_append(&text, STR("\"}\n"));
        }
        buf_printf(&text,
                   "{\"story\":[{\"text\":\"{p%d}\",\"calls\":[{\"name\":\"f\",\"args\":{\"a\":"
                   "\"{p%d}\"}}]}]}",
                   parts - 1, parts - 1);
        buf_char(&text, '\0');
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct script *script = parsed(text.p);
        struct model_message message = {.role = STR("user"),
                                        .text = STR("a long message, it is said")};
        struct play play;
        assert_true(script_answer(script, &(struct model_request){.messages = &message, .count = 1},
                                  &arena, &play));
        assert_int_equal(play.end, MODEL_FAILED);
        assert_string_equal(play.why->text, "the script's answer grows too long");
        script_free(script);
    }
}

/* The story in the manual, played. */
static void manual_story(void **unused)
{
    (void)unused;
    FILE *file = fopen(SOURCE_ROOT "/docs/SCRIPT.md", "r");
    assert_non_null(file);
    static char page[64 * 1024];
    str rest = {page, fread(page, 1, sizeof page - 1, file)};
    assert_int_equal(fclose(file), 0);
    for (int block = 0; block < 2; block++) {
        ptrdiff_t at = str_find(rest, STR("```jsonl\n"));
        assert_true(at >= 0);
        rest = str_drop(rest, (size_t)at + STR("```jsonl\n").len);
    }
    page[rest.p - page + str_find(rest, STR("```"))] = '\0';
    const char *story = rest.p;
    expect(story, "my calendar", NULL, NULL, "t<I may not call `calendar_read` here.>");
    expect(story, "我的日程", NULL, NULL, "t<这里不能调用 `calendar_read`。>");
    expect(story, "else", NULL, NULL, "none");
}

int test_story(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filling),      cmocka_unit_test(choosing), cmocka_unit_test(calling),
        cmocka_unit_test(lines),        cmocka_unit_test(refused),  cmocka_unit_test(bounded),
        cmocka_unit_test(manual_story),
    };
    return cmocka_run_group_tests_name("model/story", tests, NULL, NULL);
}

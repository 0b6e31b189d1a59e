/* SPDX-License-Identifier: Apache-2.0
 *
 * The cards of interactions: exact bytes of each kind, every argument on the card, edits, and input
 * that wants to hide something or to break out. In the rows ' stands for ". Whether they follow
 * docs/schema is for tests/api/interaction-cards.test.mjs.
 */
#include "agent/core/cards.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "check.h"
#include "tool/tools.h"
#include "ui/text.h"

static str quoted(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return str_c(copy);
}

static struct json *parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, text, &json, &why))
        fail_msg("%.*s: %s at %zu", STR_ARG(text), why.reason, why.offset);
    return json;
}

static struct interaction confirm(str args)
{
    return (struct interaction){.id = STR("int_1"),
                                .type = INTERACTION_CONFIRM,
                                .owner = STR("ann"),
                                .thread_id = STR("t-secret"),
                                .run_id = STR("r-secret"),
                                .call_id = STR("call-secret"),
                                .tool = STR("place_order"),
                                .args = args,
                                .summary = STR("Order 2 of x"),
                                .risk = STR("write"),
                                .locale = STR("en")};
}

/* ---- what holds for every card ---- */

static void check_words(const struct json *value)
{
    for (str rest = json_text(value); rest.len;) {
        uint32_t code = ui_next_char(&rest);
        if (ui_is_hidden(code) && code != ' ' && code != 0x3000 && code != '\n')
            fail_msg("U+%04X stands in %.*s", code, STR_ARG(value->raw));
    }
}

static size_t check_node(const struct json *node, unsigned depth)
{
    size_t nodes = 1;
    str type = json_text(json_get(node, STR("type")));
    assert_true(depth <= UI_SCHEMA_DEPTH_MAX);
    assert_false(str_eq(type, STR("button")));
    if (str_eq(type, STR("text"))) {
        assert_true(json_text(json_get(node, STR("content"))).len > 0);
        assert_str(json_text(json_get(node, STR("format"))), STR("plain"));
        check_words(json_get(node, STR("content")));
    }
    const struct json *items = json_get(node, STR("items")),
                      *children = json_get(node, STR("children"));
    if (items) assert_true(items->count > 0);
    if (children) assert_true(children->count > 0);
    for (const struct json *m = items ? items->child : NULL; m; m = m->next) {
        check_words(json_get(m, STR("key")));
        check_words(json_get(m, STR("value")));
    }
    for (const struct json *m = children ? children->child : NULL; m; m = m->next)
        nodes += check_node(m, depth + 1);
    return nodes;
}

static const struct json *check(struct arena *arena, str card)
{
    const struct json *json = parsed(arena, card);
    assert_true(card.len <= CARD_BYTES_MAX);
    assert_int_equal(str_find_char(card, '\n'), -1);
    assert_true(check_node(json_get(json, STR("root")), 1) <= UI_SCHEMA_NODES_MAX);
    assert_int_equal(str_find(card, STR("secret")), -1); /* an approver is no owner */
    return json;
}

static const struct json *card_of(struct arena *arena, const struct interaction *interaction)
{
    str card = interaction_card(arena, interaction);
    assert_str(interaction_card(arena, interaction), card);
    return check(arena, card);
}

/* The first value of this name, in a kv or in a folded text; NULL: none. */
static const struct json *value_in(const struct json *node, str name)
{
    const struct json *items = json_get(node, STR("items"));
    for (const struct json *m = items ? items->child : NULL; m; m = m->next)
        if (str_eq(json_text(json_get(m, STR("key"))), name)) return json_get(m, STR("value"));
    const struct json *children = json_get(node, STR("children"));
    for (const struct json *m = children ? children->child : NULL; m; m = m->next) {
        str content = json_text(json_get(m, STR("content")));
        if (json_get(m->next, STR("maxLines")) && str_starts(content, name) &&
            str_starts(str_drop(content, name.len), STR(" ⟦")))
            return json_get(m->next, STR("content"));
        const struct json *found = value_in(m, name);
        if (found) return found;
    }
    return NULL;
}

static bool says(const struct json *card, const char *words)
{
    return str_find(card->raw, str_c(words)) >= 0;
}

static const struct json *arguments(const struct json *card)
{
    return json_get(card, STR("root"));
}

/* ---- bytes ---- */

#define HEAD(locale, status)                                                               \
    "{'version':'2.0','locale':'" locale "','status':'" status                             \
    "','theme':'default','meta':{'requestId':'int_1'},'root':{'type':'stack','direction':" \
    "'vertical','appearance':'card','children':[{'type':'stack','direction':'horizontal'," \
    "'appearance':'plain','align':'center','children':[{'type':'icon','name':"
#define SECTION(title)                                                                  \
    "{'type':'stack','direction':'vertical','appearance':'section','children':[{'type'" \
    ":'text','content':'" title "','format':'plain','role':'subtitle'},"
#define ENTRY(number, text)                                                                     \
    "{'type':'stack','direction':'horizontal','appearance':'plain','align':'start','wrap':true" \
    ",'children':[{'type':'badge','label':'" number "'},{'type':'text','content':'" text        \
    "','format':'plain','role':'body'}"
#define CAPTION(text) "{'type':'text','content':'" text "','format':'plain','role':'caption'}"

static void exact(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction ask = {.id = STR("int_1"),
                              .type = INTERACTION_ASK_USER,
                              .owner = STR("ann"),
                              .locale = STR("zh-CN")};
    struct fault why = {0};
    assert_int_equal(ask_parse(&arena,
                               quoted(&arena, "{'question':'会议多长？','choices':['30 分钟',"
                                              "{'label':'1 小时','description':'通常'}],'fields':"
                                              "[{'name':'n','type':'choice','choices':['a'],"
                                              "'required':true}]}"),
                               &ask, &why),
                     OK);
    assert_str(
        interaction_card(&arena, &ask),
        quoted(&arena,
               HEAD("zh-CN",
                    "info") "'circle-help'},{'type':'text','content':'AI "
                            "需要你的决策','format':'plain','role':'title'}]},{'type':'text','"
                            "content':"
                            "'会议多长？','format':'plain','role':'body'}," SECTION("选项")
                                ENTRY("1", "30 分钟") "]}," ENTRY("2", "1 小时") "," CAPTION(
                                    "通常") "]}]}," SECTION("需要填写") "{'type':'kv','items':[{'"
                                                                        "key':'n','value':'"
                                                                        "选择一项：[\\'a\\']，"
                                                                        "必填'}]}]}," CAPTION(
                                                                            "也可以直接输入你的回答"
                                                                            "。") "]}}"));

    struct interaction call = confirm(quoted(&arena, "{'title':'x','count':2}"));
    call.approver = STR("approver");
    call.risk = STR("destructive");
    assert_str(
        interaction_card(&arena, &call),
        quoted(&arena,
               HEAD("en",
                    "error") "'shield-alert','status':'error'},{'type':'text','content':"
                             "'An approval is "
                             "needed','format':'plain','role':'title'},{'type':'badge','label'"
                             ":'Cannot be "
                             "undone','status':'error'}]},{'type':'text','content':'Order 2 of x',"
                             "'format':'plain','role':'subtitle'},{'type':'kv','items':[{'key':'"
                             "tool','label':"
                             "'Tool','value':'place_order'},{'key':'requester','label':'Requested "
                             "by','value':"
                             "'ann'},{'key':'approver','label':'Approved by the "
                             "role','value':'approver'}]}," SECTION(
                                 "Arguments") "{'type':'kv','items':[{'key':'title','value':'x'},{'"
                                              "key':"
                                              "'count','value':2}]}]}]}}"));

    struct interaction lost = {.id = STR("int_1"),
                               .type = INTERACTION_CONNECTION_LOST,
                               .display_text = STR("The model cannot be reached: 503."),
                               .locale = STR("en")};
    assert_str(
        interaction_card(&arena, &lost),
        quoted(
            &arena,
            HEAD(
                "en",
                "warning") "'unplug','status':'warning'},{'type':'text',"
                           "'content':'Connection lost','format':'plain','role':'title'}]},{'type':"
                           "'text','content':'The model cannot be reached: 503.','format':'plain',"
                           "'role':'body'}," CAPTION(
                               "The run stopped at this step and waits. Nothing "
                               "is lost.") "]}}"));
}

/* ---- every argument ---- */

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *args, *name, *raw; /* of the value on the card */
    } rows[] = {
        {"{'a':'x'}", "a", "'x'"},
        {"{'a':''}", "a", "'⟦empty text⟧'"},
        {"{'a':' '}", "a", "'⟦U+0020⟧'"},
        {"{'a':' x '}", "a", "'⟦U+0020⟧x⟦U+0020⟧'"},
        {"{'a':null}", "a", "'⟦null⟧'"},
        {"{'a':[]}", "a", "'⟦empty list⟧'"},
        {"{'a':{}}", "a", "'⟦empty object⟧'"},
        {"{'a':'⟦null⟧'}", "a", "'⟦U+27E6⟧null⟦U+27E7⟧'"},
        {"{'a':true}", "a", "true"},
        {"{'a':false}", "a", "false"},
        {"{'a':0}", "a", "0"},
        {"{'a':-1.5}", "a", "-1.5"},
        {"{'a':-0}", "a", "'-0'"},
        {"{'a':1.50}", "a", "'1.50'"},
        {"{'a':1e400}", "a", "'1e400'"},
        {"{'a':0.0000001}", "a", "'0.0000001'"},
        {"{'a':123456789012345}", "a", "123456789012345"},
        {"{'a':12345678901234567890}", "a", "'12345678901234567890'"},
        {"{'a':'12345678901234567890'}", "a", "'12345678901234567890'"},
        {"{'a':'one\\ntwo'}", "a", "'one\\ntwo'"},
        {"{'a':'\\u0000\\r'}", "a", "'⟦U+0000⟧⟦U+000D⟧'"},
        {"{'a':'ann\\u202Egro.live'}", "a", "'ann⟦U+202E⟧gro.live'"},
        {"{'a':{'b':{'c':1}}}", "a.b.c", "1"},
        {"{'a':['x',{'b':null}]}", "a[0]", "'x'"},
        {"{'a':['x',{'b':null}]}", "a[1].b", "'⟦null⟧'"},
        {"{'a':[[]]}", "a[0]", "'⟦empty list⟧'"},
        {"{'a.b':1}", "[\"a.b\"]", "1"},
        {"{'a':{'b.c':1}}", "a[\"b.c\"]", "1"},
        {"{'a[0]':1}", "[\"a[0]\"]", "1"},
        {"{'':1}", "[\"\"]", "1"},
        {"{' ':1}", "⟦U+0020⟧", "1"},
        {"{'a\\nrisk':1}", "a⟦U+000A⟧risk", "1"},
        {"{'ti\\u200btle':1}", "ti⟦U+200B⟧tle", "1"},
        {"{'a':{'b':{'c':{'d':1}}}}", "a.b.c.d", "1"},
        {"{'a':{'b':{'c':{'d':{'e': ['x\\u202E']}}}}}", "a ⟦JSON⟧",
         "'{\\'b\\':{\\'c\\':{\\'d\\':{\\'e\\':[\\'x⟦U+202E⟧\\']}}}}'"},
        {"[1, 2]", "⟦arguments⟧", "'[1, 2]'"},
        {"{'a':", "⟦arguments⟧", "'{\\'a\\':'"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction call = confirm(quoted(&arena, rows[i].args));
        for (int type = 0; type < 2; type++) {
            call.type = type ? INTERACTION_UNCERTAIN : INTERACTION_CONFIRM;
            const struct json *card = card_of(&arena, &call);
            const struct json *value = value_in(arguments(card), str_c(rows[i].name));
            if (!value)
                fail_msg("%s: no %s in %.*s", rows[i].args, rows[i].name, STR_ARG(card->raw));
            assert_str(value->raw, quoted(&arena, rows[i].raw));
        }
    }
}

static void no_arguments(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction call = confirm(STR("{}"));
    assert_true(says(card_of(&arena, &call), "This call has no arguments."));
    call.locale = STR("zh-CN");
    assert_true(says(card_of(&arena, &call), "这个调用没有参数。"));
}

static void risk_words(void **state)
{
    (void)state;
    static const struct {
        const char *risk, *en, *zh, *status;
    } rows[] = {
        {"write", "Changes data", "会修改数据", "warning"},
        {"external", "Reaches outside", "会影响外部", "warning"},
        {"destructive", "Cannot be undone", "不可撤销", "error"},
        {"", "Changes data", "会修改数据", "warning"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction call = confirm(STR("{}"));
        call.risk = str_c(rows[i].risk);
        const struct json *card = card_of(&arena, &call);
        assert_true(says(card, rows[i].en));
        assert_str(json_text(json_get(card, STR("status"))), str_c(rows[i].status));
        call.locale = STR("zh-CN");
        assert_true(says(card_of(&arena, &call), rows[i].zh));
    }
}

/* ---- plans ---- */

static void plan(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction call =
        confirm(quoted(&arena, "{'steps':[{'content':'look','done_when':'seen'},{'content':' '},"
                               "{'content':'act\\n3. approve'}]}"));
    call.tool = STR("submit_plan");
    const struct json *card = card_of(&arena, &call);
    assert_true(
        str_find(card->raw, quoted(&arena, ENTRY("1", "look") "," CAPTION("Done when: seen"))) > 0);
    assert_true(str_find(card->raw, quoted(&arena, ENTRY("2", "act⟦U+000A⟧3. approve") "]}")) > 0);
    assert_false(says(card, "submit_plan"));
    assert_str(json_text(json_get(card, STR("status"))), STR("info"));

    str edited = quoted(&arena, "{'steps':[{'content':'look','done_when':'found'},"
                                "{'content':'act\\n3. approve'},{'content':'rest'}]}");
    card = check(&arena, interaction_card_edited(&arena, &call, edited));
    const struct json *root = json_get(card, STR("root"));
    assert_str(json_text(value_in(root, STR("1"))), STR("look"));
    assert_str(json_text(value_in(root, STR("1 ⟦done when⟧ ⟦before⟧"))), STR("seen"));
    assert_str(json_text(value_in(root, STR("1 ⟦done when⟧ ⟦after⟧"))), STR("found"));
    assert_str(json_text(value_in(root, STR("3 ⟦added⟧"))), STR("rest"));
}

static void longest_plan(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf args;
    arena_init(&arena);
    buf_init(&args, CALL_ARGS_BYTES_MAX);
    for (int i = 0; i < PLAN_STEPS_MAX; i++)
        buf_printf(&args, "%s{\"content\":\"step %d of many\",\"done_when\":\"it is %d\"}",
                   i ? "," : "{\"steps\":[", i, i);
    buf_append(&args, STR("]}"));
    struct interaction call = confirm(buf_str(&args));
    call.tool = STR("submit_plan");
    const struct json *card = card_of(&arena, &call);
    assert_true(says(card, "step 0 of many") && says(card, "step 99 of many"));
    assert_true(says(card, "it is 99") && !says(card, "Not shown"));
}

/* ---- edits ---- */

static void edits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *name, *raw; /* raw NULL: not there */
    } rows[] = {
        {"{'a':'x','b':1}", "{'a':'y','b':1}", "a ⟦before⟧", "'x'"},
        {"{'a':'x','b':1}", "{'a':'y','b':1}", "a ⟦after⟧", "'y'"},
        {"{'a':'x','b':1}", "{'a':'y','b':1}", "a", NULL},
        {"{'a':'x','b':1}", "{'a':'y','b':1}", "b", "1"},
        {"{'a':'x'}", "{'a':'x','b':null}", "b ⟦added⟧", "'⟦null⟧'"},
        {"{'a':'x','b':[]}", "{'a':'x'}", "b ⟦removed⟧", "'⟦empty list⟧'"},
        {"{'a':1}", "{'a':'1'}", "a ⟦before⟧", "1"},
        {"{'a':1}", "{'a':'1'}", "a ⟦after⟧", "'1'"},
        {"{'a':1e5}", "{'a':'1e5'}", "a ⟦before⟧", "'1e5'"},
        {"{'a':'12345678901234567890'}", "{'a':12345678901234567890}", "a ⟦after⟧",
         "'12345678901234567890'"},
        {"{'a':1e5}", "{'a':1e5}", "a", "'1e5'"},
        {"{'a':'x'}", "{'a':'x\\u200b'}", "a ⟦after⟧", "'x⟦U+200B⟧'"},
        {"{'a':'x'}", "{'a':'x '}", "a ⟦after⟧", "'x⟦U+0020⟧'"},
        {"{'p':{'c':'x','d':2}}", "{'p':{'c':'y','d':2}}", "p.c ⟦before⟧", "'x'"},
        {"{'p':{'c':'x','d':2}}", "{'p':{'c':'y','d':2}}", "p.d", "2"},
        {"{'p':['x','y']}", "{'p':['x']}", "p[1] ⟦removed⟧", "'y'"},
        {"{'p':['x']}", "{'p':{'a':{'b':{'c':{'d':{}}}}}}", "p.a.b.c.d ⟦added⟧",
         "'⟦empty object⟧'"},
        {"{'p':['x']}", "{'p':{'a':{'b':{'c':{'d':{'e':1}}}}}}", "p ⟦JSON⟧ ⟦before⟧",
         "'[\\'x\\']'"},
        {"{'b':2,'a':1}", "{'a':1,'b':2}", "a", "1"},
        {"{'a':1}", "{'a':1}", "a", "1"},
        {"{'a ⟦before⟧':1}", "{'a ⟦before⟧':1}", "a ⟦U+27E6⟧before⟦U+27E7⟧", "1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction call = confirm(quoted(&arena, rows[i].before));
        call.answered_by = STR("eve");
        str bytes = interaction_card_edited(&arena, &call, quoted(&arena, rows[i].after));
        const struct json *card = check(&arena, bytes);
        const struct json *root = json_get(card, STR("root"));
        const struct json *value = value_in(root, str_c(rows[i].name));
        if (!value != !rows[i].raw)
            fail_msg("%s: %s in %.*s", rows[i].after, rows[i].name, STR_ARG(bytes));
        if (value) assert_str(value->raw, quoted(&arena, rows[i].raw));
        assert_str(json_text(value_in(root, STR("editor"))), STR("eve"));
        bool same = strcmp(rows[i].before, rows[i].after) == 0 || rows[i].before[2] == 'b';
        assert_int_equal(says(card, "Nothing was changed."), same);
    }
}

/* ---- as large as it may be ---- */

/* One argument of CALL_ARGS_BYTES_MAX in all, made of this character. */
static str filled(struct arena *arena, str character)
{
    str head = STR("{\"a\":\""), tail = STR("\"}");
    size_t count = (CALL_ARGS_BYTES_MAX - head.len - tail.len) / character.len;
    char *args = arena_alloc(arena, CALL_ARGS_BYTES_MAX);
    size_t len = head.len;
    memcpy(args, head.p, head.len);
    for (size_t i = 0; i < count; i++, len += character.len)
        memcpy(args + len, character.p, character.len);
    memcpy(args + len, tail.p, tail.len);
    return (str){args, len + tail.len};
}

static void large_values(void **state)
{
    (void)state;
    static const str characters[] = {STR("x"),           STR("中"),
                                     STR("a\xc2\x80"),   STR("\\\""),
                                     STR("x\\n"),        STR("\xc2\x80\xc2\x81"),
                                     STR("⟦⟧"),          STR("\\u0000\\u0001"),
                                     STR("\u202e\u202d")};
    for (size_t i = 0; i < COUNT(characters); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction call = confirm(filled(&arena, characters[i]));
        const struct json *card = card_of(&arena, &call);
        assert_false(says(card, "Not shown"));
        assert_true(says(card, "\"maxLines\":6"));
        const struct json *value = value_in(arguments(card), STR("a"));
        assert_non_null(value);
        if (i == 0) assert_int_equal(value->text.len, CALL_ARGS_BYTES_MAX - 8);
    }
}

static str many(struct arena *arena, const char *item, size_t count)
{
    struct buf args;
    buf_init(&args, 8 * 1024 * 1024);
    for (size_t i = 0; i < count; i++) {
        str rest = quoted(arena, item);
        str start = str_split(&rest, '#');
        buf_printf(&args, "%s%.*s%zu%.*s", i ? "," : "{", STR_ARG(start), i, STR_ARG(rest));
    }
    buf_char(&args, '}');
    assert_false(args.full);
    str text = arena_str(arena, buf_str(&args));
    buf_done(&args);
    return text;
}

/* Every one of them is there, whatever they are. */
static void many_values(void **state)
{
    (void)state;
    static const struct {
        const char *item;
        size_t count;
    } rows[] = {
        {"'#':0", 26000},
        {"'argument #':'value'", 1000},
        {"'argument #':''", 10000},
        {"'argument #':[0,0,0,0,0,0,0,0,0,0]", 5000},
        {"'argument #':{'a':{'b':{'c':[1,2,3]}}}", 5000},
        {"'argument #':'a text that is so long that it has to be folded, which takes two nodes, "
         "and there are many of them: more than a card has nodes, so that at some place the card "
         "goes on without folding them any more, and still shows all'",
         900},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        str args = many(&arena, rows[i].item, rows[i].count);
        assert_true(args.len <= CALL_ARGS_BYTES_MAX);
        struct interaction call = confirm(args);
        const struct json *card = card_of(&arena, &call);
        assert_false(says(card, "Not shown"));
        char last[64];
        snprintf(last, sizeof last, rows[i].item[1] == '#' ? "%zu" : "argument %zu",
                 rows[i].count - 1);
        assert_true(says(card, last));
    }
}

/* Names that each row would repeat: shown as JSON instead. */
static void long_names(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char key[61] = "";
    memset(key, 'k', 60);
    char item[512];
    snprintf(item, sizeof item,
             "'%s#':{'%s':{'%s':[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}", key,
             key, key);
    struct interaction call = confirm(many(&arena, item, 1000));
    assert_true(call.args.len <= CALL_ARGS_BYTES_MAX);
    const struct json *card = card_of(&arena, &call);
    assert_false(says(card, "Not shown"));
    assert_true(says(card, "⟦JSON⟧") && says(card, "k999 ⟦JSON⟧"));
}

static void deep(void **state)
{
    (void)state;
    enum { LEVELS = JSON_DEPTH_MAX - 2 };
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf args;
    arena_init(&arena);
    buf_init(&args, 4096);
    buf_append(&args, STR("{\"a\":"));
    for (int i = 0; i < LEVELS; i++) buf_char(&args, '[');
    buf_append(&args, STR("\"\u202e\""));
    for (int i = 0; i < LEVELS; i++) buf_char(&args, ']');
    buf_char(&args, '}');
    struct interaction call = confirm(buf_str(&args));
    const struct json *card = card_of(&arena, &call);
    assert_true(says(card, "[\\\"⟦U+202E⟧\\\"]"));
}

/* More than a call may have: the card says what it leaves out, with the right figures. */
static void too_much(void **state)
{
    (void)state;
    enum { COUNT_OF_ALL = 30000 };
    static const struct {
        const char *locale, *text;
    } rows[] = {{"en", "Not shown, because this card is full: "}, {"zh-CN", "卡片已满，未显示 "}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        static const char item[] =
            "'#':'a value with about sixty bytes, so that not all of them fit'";
        struct interaction call = confirm(many(&arena, item, COUNT_OF_ALL));
        call.locale = str_c(rows[i].locale);
        const struct json *card = card_of(&arena, &call);
        ptrdiff_t at = str_find(card->raw, str_c(rows[i].text));
        assert_true(at > 0);
        size_t missing = strtoul(card->raw.p + at + strlen(rows[i].text), NULL, 10), shown = 0;
        for (str rest = card->raw; (at = str_find(rest, STR("a value with"))) >= 0; shown++)
            rest = str_drop(rest, (size_t)at + 1);
        assert_int_equal(shown + missing, COUNT_OF_ALL);
        assert_true(missing > 0 && shown > 1000);
        char bytes[64];
        snprintf(bytes, sizeof bytes, i ? "%zu 字节" : "%zu bytes", missing * (sizeof item - 5));
        assert_true(says(card, bytes));
        assert_true(says(card, "pendingTool.argsJson"));
        assert_true(card->raw.len > CARD_BYTES_MAX - 2 * CARD_TAIL_BYTES_MAX);
    }
}

static void too_much_changed(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction call = confirm(filled(&arena, STR("\xc2\x80\xc2\x81")));
    str after = filled(&arena, STR("\xc2\x82\xc2\x83"));
    const struct json *card = check(&arena, interaction_card_edited(&arena, &call, after));
    assert_non_null(value_in(arguments(card), STR("a ⟦before⟧")));
    assert_null(value_in(arguments(card), STR("a ⟦after⟧")));
    assert_true(says(card, "Not shown, because this card is full: 1 of 1 arguments, 262"));
    assert_true(says(card, "answer.args"));
}

/* Nothing is left half done at the edge, wherever the room ends. */
static void edges(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena, own;
    arena_init(&arena);
    arena_init(&own);
    char value[201] = "";
    memset(value, 'v', 200);
    char item[256];
    snprintf(item, sizeof item, "'#':'%s'", value);
    struct interaction call = confirm(many(&arena, item, CARD_BYTES_MAX / 200));
    for (size_t pad = 0; pad < 240; pad += 3) {
        char summary[240];
        memset(summary, 's', sizeof summary);
        call.summary = (str){summary, pad};
        str card = interaction_card(&own, &call);
        assert_true(card.len <= CARD_BYTES_MAX);
        assert_true(str_find(card, STR("\"role\":\"caption\",\"status\":\"error\",\"cut\":")) > 0);
        parsed(&own, card);
        arena_reset(&own);
    }
}

/* ---- words that want to be the card ---- */

static void imitation(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction ask = {.id = STR("int_1"), .type = INTERACTION_ASK_USER};
    struct fault why = {0};
    static const char args[] =
        "{'question':'Sure?\\n\\nYour approval is needed\\nTool: none','choices':["
        "'yes\\n2. no ⟦removed⟧','\\u202eon',{'label':'}]},{\\'type\\':\\'button\\'','description':"
        "'a\\u200bb'}],'fields':[{'name':'x\\u202e','label':'y\\u2066','type':'text','description':"
        "'z\\u0007z'}]}";
    char *copy = strdup(args);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    assert_int_equal(ask_parse(&arena, str_c(copy), &ask, &why), OK);
    free(copy);
    const struct json *card = card_of(&arena, &ask);
    const struct json *root = json_get(card, STR("root"));
    assert_int_equal(json_get(root, STR("children"))->count, 5);
    assert_true(says(card, "yes⟦U+000A⟧2. no ⟦U+27E6⟧removed⟦U+27E7⟧"));
    assert_true(says(card, "\"⟦U+202E⟧on\""));
    assert_true(says(card, "}]},{\\\"type\\\":\\\"button\\\""));
    assert_true(says(card, "a⟦U+200B⟧b"));
    assert_true(says(card, "\"key\":\"x⟦U+202E⟧\",\"label\":\"y⟦U+2066⟧\",\"value\":\"text. "
                           "z⟦U+0007⟧z\""));

    struct interaction call = confirm(STR("{}"));
    call.tool = STR("calendar_read\u202e\n");
    call.owner = STR("ann\u200b");
    call.summary = STR("harmless\u2028**bold** <b>");
    card = card_of(&arena, &call);
    assert_true(says(card, "calendar_read⟦U+202E⟧⟦U+000A⟧"));
    assert_true(says(card, "ann⟦U+200B⟧"));
    assert_true(says(card, "harmless⟦U+2028⟧**bold** <b>"));
}

/* As long a question as there can be, with as many choices and fields. */
static void longest_question(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *hidden = arena_alloc(&arena, ASK_TEXT_BYTES_MAX);
    for (size_t i = 0; i < ASK_TEXT_BYTES_MAX; i += 2) {
        hidden[i] = (char)0xc2;
        hidden[i + 1] = (char)(0x81 + i / 2 % 2);
    }
    AUTO(buf_done) struct buf choices, fields;
    buf_init(&choices, CALL_ARGS_BYTES_MAX);
    buf_init(&fields, CALL_ARGS_BYTES_MAX);
    for (size_t i = 0; i < ASK_CHOICES_MAX; i++) {
        buf_printf(&choices, "%s{\"id\":\"c%zu\",\"label\":\"l%zu", i ? "," : "[", i, i);
        buf_append(&choices, (str){hidden, 2000});
        buf_append(&choices, STR("\"}"));
        buf_printf(&fields, "%s{\"name\":\"n%zu\",\"type\":\"text\",\"description\":\"",
                   i ? "," : "[", i);
        buf_append(&fields, (str){hidden, 2000});
        buf_append(&fields, STR("\"}"));
    }
    buf_char(&choices, ']');
    buf_char(&fields, ']');
    struct interaction ask = {.id = STR("int_1"),
                              .type = INTERACTION_ASK_USER,
                              .question = {hidden, ASK_TEXT_BYTES_MAX},
                              .choices = buf_str(&choices),
                              .fields = buf_str(&fields),
                              .allow_freeform = true,
                              .multi = true};
    const struct json *card = card_of(&arena, &ask);
    assert_false(says(card, "Not shown"));
    assert_true(says(card, "\"l49⟦") && says(card, "\"key\":\"n49\""));
    assert_true(says(card, "More than one may be chosen."));
}

/* ---- on the wire ---- */

/* Up to CARD_FACT_BYTES_MAX in the fact; then its address. Nowhere else is it left out. */
static void in_facts(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf ui;
    arena_init(&arena);
    buf_init(&ui, CARD_FACT_BYTES_MAX + 1);
    buf_append(&ui, STR("{\"a\":\""));
    while (ui.len < CARD_FACT_BYTES_MAX - 2) buf_char(&ui, 'x');
    buf_append(&ui, STR("\"}"));
    struct interaction call = confirm(STR("{}"));
    call.metadata = STR("{}");
    call.thread_id = STR("t1");
    call.ui = buf_str(&ui);
    assert_int_equal(call.ui.len, CARD_FACT_BYTES_MAX);
    const struct json *fact = parsed(&arena, fact_interaction_request(&arena, &call));
    assert_str(json_get(fact, STR("ui"))->raw, call.ui);
    assert_null(json_get(fact, STR("uiRef")));

    buf_char(&ui, ' ');
    call.ui = buf_str(&ui);
    fact = parsed(&arena, fact_interaction_request(&arena, &call));
    assert_null(json_get(fact, STR("ui")));
    assert_str(json_text(json_get(fact, STR("uiRef"))),
               STR("/api/v1/agent/threads/t1/messages/int_1/ui"));
    for (int owner = 0; owner < 2; owner++) {
        AUTO(buf_done) struct buf out;
        struct json_writer w;
        buf_init(&out, 2 * CARD_FACT_BYTES_MAX);
        json_write_begin(&w, &out);
        interaction_write(&w, &call, owner);
        const struct json *wire = parsed(&arena, arena_str(&arena, buf_str(&out)));
        assert_non_null(json_get(wire, STR("ui")));
        assert_null(json_get(wire, STR("uiRef")));
    }
}

/* No argument passes for another one, or pushes another one out of the line. */
static void summaries(void **state)
{
    (void)state;
#define SIXTY "123456789 123456789 123456789 123456789 123456789 123456789 "
    static const struct {
        const char *form, *args, *line;
    } rows[] = {
        {"", "{}", "pay"},
        {"", "{'to':'ann','sum':5}", "pay: to=ann, sum=5"},
        {"", "{'to':'ann, sum=1','sum':500}", "pay: to='ann, sum=1', sum=500"},
        {"", "{'to':'ann\\'','sum':500}", "pay: to='ann\\'', sum=500"},
        {"", "{'to':['a, b=1'],'sum':5}", "pay: to=['a, b=1'], sum=5"},
        {"", "{'to':'" SIXTY "and','sum':5}", "pay: to=" SIXTY "…, sum=5"},
        {"", "{'to':',23456789 " SIXTY "','sum':5}",
         "pay: to=',23456789 123456789 123456789 123456789 123456789 123456789…', sum=5"},
        {"{to}: {sum}", "{'to':'ann','sum':5}", "ann: 5"},
        {"{to}: {sum}", "{'to':'" SIXTY SIXTY SIXTY SIXTY "','sum':5}", SIXTY "…: 5"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct tool tool = {.name = STR("pay"), .summary = str_c(rows[i].form)};
        const struct json *args = parsed(&arena, quoted(&arena, rows[i].args));
        assert_str(call_summary(&arena, &tool, tool.name, args), quoted(&arena, rows[i].line));
    }
}

int test_cards(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact),
        cmocka_unit_test(values),
        cmocka_unit_test(no_arguments),
        cmocka_unit_test(risk_words),
        cmocka_unit_test(plan),
        cmocka_unit_test(longest_plan),
        cmocka_unit_test(edits),
        cmocka_unit_test(large_values),
        cmocka_unit_test(many_values),
        cmocka_unit_test(long_names),
        cmocka_unit_test(deep),
        cmocka_unit_test(too_much),
        cmocka_unit_test(too_much_changed),
        cmocka_unit_test(edges),
        cmocka_unit_test(imitation),
        cmocka_unit_test(longest_question),
        cmocka_unit_test(in_facts),
        cmocka_unit_test(summaries),
    };
    return cmocka_run_group_tests_name("cards", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model asks, who may answer, and the JSON of it all. In the rows ' stands for ".
 */
#include "agent/core/interaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "tool/schema.h"

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

/* ---- the tools ---- */

static struct schema *schema_of(struct arena *arena, const struct graph_tool *tool)
{
    struct schema *schema = NULL;
    struct fault why = {0};
    if (schema_parse(arena, parsed(arena, tool->schema), &schema, &why))
        fail_msg("%s: %s", why.field, why.text);
    return schema;
}

static void tools(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct graph_tool *const both[] = {&tool_ask_user, &tool_submit_plan};
    assert_str(tool_ask_user.name, STR("ask_user"));
    assert_str(tool_submit_plan.name, STR("submit_plan"));
    for (size_t i = 0; i < COUNT(both); i++) {
        schema_of(&arena, both[i]);
        assert_true(utf8_valid(both[i]->description[0]));
        assert_true(utf8_valid(both[i]->description[1]));
        for (size_t n = 0; n < both[i]->description[0].len; n++)
            assert_true((unsigned char)both[i]->description[0].p[n] < 0x80); /* en, then zh */
        assert_true((unsigned char)both[i]->description[1].p[0] >= 0x80);
        assert_int_equal(str_find_char(both[i]->schema, '\n'), -1);
    }
}

static uint64_t number_at(const struct json *schema, const char *path)
{
    uint64_t number = 0;
    for (str rest = str_c(path); rest.p;) schema = json_get(schema, str_split(&rest, '.'));
    assert_int_equal(json_u64(schema, &number), OK);
    return number;
}

/* The schemas say the bounds as text. */
static void schema_bounds(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct json *ask = parsed(&arena, tool_ask_user.schema);
    const struct json *plan = parsed(&arena, tool_submit_plan.schema);
    assert_int_equal(number_at(ask, "properties.choices.maxItems"), ASK_CHOICES_MAX);
    assert_int_equal(number_at(ask, "properties.fields.maxItems"), ASK_FIELDS_MAX);
    assert_int_equal(number_at(ask, "properties.fields.items.properties.choices.maxItems"),
                     ASK_CHOICES_MAX);
    assert_int_equal(number_at(plan, "properties.steps.minItems"), 1);
    assert_int_equal(number_at(plan, "properties.steps.maxItems"), PLAN_STEPS_MAX);
}

static void plans(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        const char *field; /* NULL: fits */
    } rows[] = {
        {"{'steps':[{'content':'a'}]}", NULL},
        {"{'steps':[{'content':'a','done_when':'b'},{'content':'c','done_when':''}]}", NULL},
        {"{}", "args.steps"},
        {"{'steps':[]}", "args.steps"},
        {"{'steps':['a']}", "args.steps[0]"},
        {"{'steps':[{}]}", "args.steps[0].content"},
        {"{'steps':[{'content':''}]}", "args.steps[0].content"},
        {"{'steps':[{'content':'a','when':'b'}]}", "args.steps[0].when"},
        {"{'steps':[{'content':'a'}],'x':1}", "args.x"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct schema *schema = schema_of(&arena, &tool_submit_plan);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fault why = {0};
        enum err e =
            schema_check(schema, parsed(&arena, quoted(&arena, rows[i].args)), "args", &why);
        assert_int_equal(e, rows[i].field ? ERR_INVALID_FIELD : OK);
        if (rows[i].field) assert_string_equal(why.field, rows[i].field);
    }
}

/* ---- asking ---- */

static void asked(void **state)
{
    (void)state;
    static const struct {
        const char *args;
        const char *question, *choices, *fields;
        bool allow_freeform, multi;
    } rows[] = {
        {"{'question':'What?'}", "What?", "", "", true, false},
        {"{'question':' \\n What?\\t\\u3000'}", "What?", "", "", true, false},
        {"{'question':'会议多长？','choices':['30 分钟','1 小时']}", "会议多长？",
         "[{'id':'c1','label':'30 分钟'},{'id':'c2','label':'1 小时'}]", "", true, false},
        {"{'question':'q','choices':[{'label':' a ','description':' b '},' c']}", "q",
         "[{'id':'c1','label':'a','description':'b'},{'id':'c2','label':'c'}]", "", true, false},
        {"{'question':'q','choices':[{'label':'a','description':' '}]}", "q",
         "[{'id':'c1','label':'a'}]", "", true, false},
        {"{'question':'q','choices':['a','A','a.']}", "q",
         "[{'id':'c1','label':'a'},{'id':'c2','label':'A'},{'id':'c3','label':'a.'}]", "", true,
         false},
        {"{'question':'q','choices':['\\u0001\\n\\u2028x\\\\']}", "q",
         "[{'id':'c1','label':'x\\\\'}]", "", true, false},
        {"{'question':'q','choices':['a\\u2028\\nb']}", "q", "[{'id':'c1','label':'a\\u2028\\nb'}]",
         "", true, false},
        {"{'question':'q','choices':['a'],'allow_freeform':false}", "q",
         "[{'id':'c1','label':'a'}]", "", false, false},
        {"{'question':'q','choices':['a'],'allow_freeform':true,'multi':true}", "q",
         "[{'id':'c1','label':'a'}]", "", true, true},
        {"{'question':'q','choices':[],'fields':[],'multi':true}", "q", "", "", true, false},
        {"{'question':'q','fields':[{'name':'a','type':'text'}],'allow_freeform':false}", "q", "",
         "[{'name':'a','type':'text'}]", false, false},
        {"{'fields':[{'description':' d ','required':true,'type':'choice','choices':['x',' y '],"
         "'label':' l ','name':' n '}],'question':'q'}",
         "q", "",
         "[{'name':'n','label':'l','type':'choice','required':true,'choices':['x','y'],"
         "'description':'d'}]",
         true, false},
        {"{'question':'q','fields':[{'name':'a','type':'number','required':false,'label':''},"
         "{'name':'A','type':'boolean','choices':[]},{'name':'日期','type':'date'}]}",
         "q", "",
         "[{'name':'a','type':'number'},{'name':'A','type':'boolean'},{'name':'日期','type':"
         "'date'}]",
         true, false},
        {"{'question':'q','choices':['a'],'fields':[{'name':'a','type':'text'}]}", "q",
         "[{'id':'c1','label':'a'}]", "[{'name':'a','type':'text'}]", true, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = {.id = STR("int_1"), .choices = STR("old"), .multi = true};
        struct fault why = {0};
        char *args = strdup(quoted(&arena, rows[i].args).p);
        if (ask_parse(&arena, str_c(args), &interaction, &why))
            fail_msg("%s: %s: %s", rows[i].args, why.field, why.text);
        const struct schema *schema = schema_of(&arena, &tool_ask_user);
        if (schema_check(schema, parsed(&arena, str_c(args)), "args", &why))
            fail_msg("%s: the schema: %s: %s", rows[i].args, why.field, why.text);
        free(args); /* nothing of it is borrowed */
        assert_str(interaction.question, str_c(rows[i].question));
        assert_str(interaction.display_text, str_c(rows[i].question));
        assert_str(interaction.choices, quoted(&arena, rows[i].choices));
        assert_str(interaction.fields, quoted(&arena, rows[i].fields));
        assert_int_equal(interaction.allow_freeform, rows[i].allow_freeform);
        assert_int_equal(interaction.multi, rows[i].multi);
        assert_str(interaction.id, STR("int_1"));
    }
}

static void not_asked(void **state)
{
    (void)state;
    static const struct {
        const char *args, *field;
    } rows[] = {
        {"", ""},
        {"{", ""},
        {"[]", ""},
        {"'What?'", ""},
        {"{'question':'q','question':'q'}", ""},
        {"{}", "question"},
        {"{'question':null}", "question"},
        {"{'question':7}", "question"},
        {"{'question':''}", "question"},
        {"{'question':' \\t\\n\\u3000\\u00a0\\ufeff'}", "question"},
        {"{'question':'q','title':'x'}", "title"},
        {"{'question':'q','allow_freeform':'no'}", "allow_freeform"},
        {"{'question':'q','allow_freeform':null}", "allow_freeform"},
        {"{'question':'q','allow_freeform':false}", "allow_freeform"},
        {"{'question':'q','allow_freeform':false,'choices':[],'fields':[]}", "allow_freeform"},
        {"{'question':'q','multi':1}", "multi"},
        {"{'question':'q','choices':'a'}", "choices"},
        {"{'question':'q','choices':{'a':1}}", "choices"},
        {"{'question':'q','choices':['a','']}", "choices[1]"},
        {"{'question':'q','choices':['a',' \\u3000']}", "choices[1]"},
        {"{'question':'q','choices':['a','b','a']}", "choices[2]"},
        {"{'question':'q','choices':['a',' a ']}", "choices[1]"},
        {"{'question':'q','choices':['a',{'label':'a'}]}", "choices[1]"},
        {"{'question':'q','choices':[7]}", "choices[0]"},
        {"{'question':'q','choices':[null]}", "choices[0]"},
        {"{'question':'q','choices':[['a']]}", "choices[0]"},
        {"{'question':'q','choices':[{}]}", "choices[0].label"},
        {"{'question':'q','choices':[{'label':' '}]}", "choices[0].label"},
        {"{'question':'q','choices':[{'label':7}]}", "choices[0].label"},
        {"{'question':'q','choices':[{'label':'a','description':7}]}", "choices[0].description"},
        {"{'question':'q','choices':[{'label':'a','id':'x'}]}", "choices[0].id"},
        {"{'question':'q','fields':{}}", "fields"},
        {"{'question':'q','fields':['a']}", "fields[0]"},
        {"{'question':'q','fields':[{'type':'text'}]}", "fields[0].name"},
        {"{'question':'q','fields':[{'name':' ','type':'text'}]}", "fields[0].name"},
        {"{'question':'q','fields':[{'name':'a\\nb','type':'text'}]}", "fields[0].name"},
        {"{'question':'q','fields':[{'name':'a\\u0000','type':'text'}]}", NULL},
        {"{'question':'q','fields':[{'name':'a\\u007fb','type':'text'}]}", "fields[0].name"},
        {"{'question':'q','fields':[{'name':'a','type':'text'},{'name':'a ','type':'date'}]}",
         "fields[1].name"},
        {"{'question':'q','fields':[{'name':'a'}]}", "fields[0].type"},
        {"{'question':'q','fields':[{'name':'a','type':'colour'}]}", "fields[0].type"},
        {"{'question':'q','fields':[{'name':'a','type':'Text'}]}", "fields[0].type"},
        {"{'question':'q','fields':[{'name':'a','type':['text']}]}", "fields[0].type"},
        {"{'question':'q','fields':[{'name':'a','type':'text','label':7}]}", "fields[0].label"},
        {"{'question':'q','fields':[{'name':'a','type':'text','required':'yes'}]}",
         "fields[0].required"},
        {"{'question':'q','fields':[{'name':'a','type':'text','default':'x'}]}",
         "fields[0].default"},
        {"{'question':'q','fields':[{'name':'a','type':'text','choices':['x']}]}",
         "fields[0].choices"},
        {"{'question':'q','fields':[{'name':'a','type':'choice'}]}", "fields[0].choices"},
        {"{'question':'q','fields':[{'name':'a','type':'choice','choices':[]}]}",
         "fields[0].choices"},
        {"{'question':'q','fields':[{'name':'a','type':'choice','choices':'x'}]}",
         "fields[0].choices"},
        {"{'question':'q','fields':[{'name':'a','type':'choice','choices':['x',{}]}]}",
         "fields[0].choices[1]"},
        {"{'question':'q','fields':[{'name':'a','type':'choice','choices':['x','x ']}]}",
         "fields[0].choices[1]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = {.question = STR("before"), .multi = true};
        struct fault why = {0};
        enum err e = ask_parse(&arena, quoted(&arena, rows[i].args), &interaction, &why);
        if (!rows[i].field) { /* a NUL at the end is trimmed like other blanks */
            assert_int_equal(e, OK);
            continue;
        }
        if (e != ERR_INVALID_FIELD) fail_msg("%s: err %d", rows[i].args, (int)e);
        if (strcmp(why.field, rows[i].field) != 0)
            fail_msg("%s: field \"%s\" (%s), expected \"%s\"", rows[i].args, why.field, why.text,
                     rows[i].field);
        assert_true(why.text[0]);
        assert_str(interaction.question, STR("before")); /* untouched */
        assert_int_equal(interaction.choices.len + interaction.fields.len, 0);
        assert_true(interaction.multi);
    }
}

/* `count` items of a list, each with its number in it. */
static str listed(struct arena *arena, const char *before, const char *item, size_t count,
                  const char *after)
{
    struct buf out;
    buf_init(&out, CALL_ARGS_BYTES_MAX);
    buf_append(&out, quoted(arena, before));
    for (size_t i = 0; i < count; i++) {
        str rest = quoted(arena, item);
        str start = str_split(&rest, '#');
        buf_printf(&out, "%s%.*s%zu%.*s", i ? "," : "", STR_ARG(start), i, STR_ARG(rest));
    }
    buf_append(&out, quoted(arena, after));
    assert_false(out.full);
    str text = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return text;
}

static void ask_counts(void **state)
{
    (void)state;
    static const struct {
        const char *before, *item, *after, *field;
        size_t max;
    } rows[] = {
        {"{'question':'q','choices':[", "'c#'", "]}", "choices", ASK_CHOICES_MAX},
        {"{'question':'q','fields':[", "{'name':'f#','type':'text'}", "]}", "fields",
         ASK_FIELDS_MAX},
        {"{'question':'q','fields':[{'name':'a','type':'choice','choices':[", "'c#'", "]}]}",
         "fields[0].choices", ASK_CHOICES_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = {0};
        struct fault why = {0};
        str most = listed(&arena, rows[i].before, rows[i].item, rows[i].max, rows[i].after);
        str more = listed(&arena, rows[i].before, rows[i].item, rows[i].max + 1, rows[i].after);
        assert_int_equal(ask_parse(&arena, most, &interaction, &why), OK);
        assert_int_equal(ask_parse(&arena, more, &interaction, &why), ERR_INVALID_FIELD);
        assert_string_equal(why.field, rows[i].field);
    }
}

static void ask_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *field;
        size_t max;
    } rows[] = {
        {"{'question':'", "'}", "question", ASK_TEXT_BYTES_MAX},
        {"{'question':'q','choices':['", "']}", "choices[0]", ASK_TEXT_BYTES_MAX},
        {"{'question':'q','choices':[{'label':'", "'}]}", "choices[0].label", ASK_TEXT_BYTES_MAX},
        {"{'question':'q','choices':[{'label':'a','description':'", "'}]}",
         "choices[0].description", ASK_TEXT_BYTES_MAX},
        {"{'question':'q','fields':[{'type':'text','name':'", "'}]}", "fields[0].name",
         ASK_NAME_BYTES_MAX},
        {"{'question':'q','fields':[{'type':'text','name':'a','label':'", "'}]}", "fields[0].label",
         ASK_TEXT_BYTES_MAX},
        {"{'question':'q','fields':[{'type':'choice','name':'a','choices':['", "']}]}",
         "fields[0].choices[0]", ASK_TEXT_BYTES_MAX},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t more = 0; more < 2; more++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf args;
            arena_init(&arena);
            buf_init(&args, CALL_ARGS_BYTES_MAX);
            buf_append(&args, quoted(&arena, rows[i].before));
            for (size_t n = 0; n < rows[i].max + more; n++) buf_char(&args, 'x');
            buf_append(&args, quoted(&arena, rows[i].after));
            struct interaction interaction = {0};
            struct fault why = {0};
            assert_int_equal(ask_parse(&arena, buf_str(&args), &interaction, &why),
                             more ? ERR_INVALID_FIELD : OK);
            if (more) assert_string_equal(why.field, rows[i].field);
        }
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *large = malloc(CALL_ARGS_BYTES_MAX + 1);
    assert_non_null(large);
    memset(large, ' ', CALL_ARGS_BYTES_MAX + 1);
    memcpy(large, "{\"question\":\"q\"}", 16);
    struct interaction interaction = {0};
    struct fault why = {0};
    assert_int_equal(ask_parse(&arena, (str){large, CALL_ARGS_BYTES_MAX}, &interaction, &why), OK);
    assert_int_equal(ask_parse(&arena, (str){large, CALL_ARGS_BYTES_MAX + 1}, &interaction, &why),
                     ERR_INVALID_FIELD);
    free(large);
}

/* ---- who may answer ---- */

static void allowed(void **state)
{
    (void)state;
    static const struct {
        const char *approver, *user, *roles[3];
        enum admission expected;
        bool alone;
    } rows[] = {
        {"", "ann", {"", "", ""}, ADMITTED, false},
        {"", "ann", {"user", "", ""}, ADMITTED, false},
        {"", "bob", {"user", "approver", "operator"}, ADMITTED_NOT_SEEN, false},
        {"", "Ann", {"", "", ""}, ADMITTED_NOT_SEEN, false},
        {"", "", {"", "", ""}, ADMITTED_NOT_SEEN, false},
        {"approver", "ann", {"user", "", ""}, ADMITTED_WRONG_ROLE, false},
        {"approver", "ann", {"", "", ""}, ADMITTED_WRONG_ROLE, false},
        {"approver", "ann", {"user", "operator", ""}, ADMITTED_WRONG_ROLE, false},
        {"approver", "ann", {"user", "approver", ""}, ADMITTED_OWN_REQUEST, false},
        {"approver", "ann", {"user", "approver", ""}, ADMITTED, true},
        {"approver", "ann", {"user", "", ""}, ADMITTED_WRONG_ROLE, true},
        {"approver", "eve", {"", "", "approver"}, ADMITTED, false},
        {"approver", "eve", {"user", "operator", ""}, ADMITTED_NOT_SEEN, false},
        {"approver", "eve", {"", "", ""}, ADMITTED_NOT_SEEN, false},
        {"approver", "eve", {"approvers", "approve", "Approver"}, ADMITTED_NOT_SEEN, false},
        {"operator", "eve", {"approver", "operator", ""}, ADMITTED, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct interaction interaction = {.owner = STR("ann"), .approver = str_c(rows[i].approver)};
        struct decider decider = {.user = str_c(rows[i].user), .alone = rows[i].alone};
        for (size_t n = 0; n < 3; n++) decider.roles[n] = str_c(rows[i].roles[n]);
        assert_int_equal(interaction_allows(&interaction, &decider), rows[i].expected);
    }
}

/* ---- JSON ---- */

static struct interaction question(struct arena *arena)
{
    struct interaction interaction = {.id = STR("int_1"),
                                      .type = INTERACTION_ASK_USER,
                                      .owner = STR("ann"),
                                      .agent = STR("assistant"),
                                      .thread_id = STR("t1"),
                                      .run_id = STR("r1"),
                                      .call_id = STR("call_1"),
                                      .resume_node = STR("execute"),
                                      .resume_phase = STR("executing"),
                                      .tool = STR("ask_user"),
                                      .locale = STR("zh-CN"),
                                      .metadata = STR("{}"),
                                      .opened = 1794723170123};
    struct fault why = {0};
    assert_int_equal(
        ask_parse(arena, quoted(arena, "{'question':'会议多长？','choices':['30 分钟','1 小时']}"),
                  &interaction, &why),
        OK);
    return interaction;
}

static struct interaction confirm(struct arena *arena)
{
    return (struct interaction){.id = STR("int_2"),
                                .type = INTERACTION_CONFIRM,
                                .owner = STR("ann"),
                                .agent = STR("assistant"),
                                .thread_id = STR("t1"),
                                .run_id = STR("r1"),
                                .call_id = STR("call_2"),
                                .display_text = STR("Run \"pay\"?"),
                                .resume_node = STR("execute"),
                                .resume_phase = STR("executing"),
                                .resume_step = 2,
                                .tool = STR("pay"),
                                .args = quoted(arena, "{'to':'bob'}"),
                                .summary = STR("bob"),
                                .args_schema = quoted(arena, "{'type':'object'}"),
                                .risk = STR("destructive"),
                                .binding = STR("k1.abc"),
                                .locale = STR("en"),
                                .metadata = STR("{}"),
                                .opened = 1794723170123};
}

static str wire(struct arena *arena, const struct interaction *interaction, bool for_owner)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 64 * 1024);
    json_write_begin(&w, &out);
    interaction_write(&w, interaction, for_owner);
    str text = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return text;
}

#define OPENED "'openedAt':'2026-11-15T06:12:50.123Z'"

static void question_written(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction asks = question(&arena);
    assert_str(fact_interaction_request(&arena, &asks),
               quoted(&arena,
                      "{'version':1,'interactionId':'int_1','type':'ask_user','status':'open',"
                      "'threadId':'t1','runId':'r1','toolCallId':'call_1',"
                      "'displayText':'会议多长？','question':'会议多长？',"
                      "'choices':[{'id':'c1','label':'30 分钟'},{'id':'c2','label':'1 小时'}],"
                      "'allowFreeform':true,'resumeNode':'execute','resumePhase':'executing',"
                      "'resumeStep':0,'requester':'ann'," OPENED ",'metadata':{}}"));

    asks.multi = true;
    asks.allow_freeform = false;
    asks.fields = quoted(&arena, "[{'name':'a','type':'text'}]");
    asks.expires = asks.opened + 1000;
    asks.status = INTERACTION_RESOLVED;
    asks.answer = quoted(&arena, "{'choices':['c2']}");
    asks.text = STR("1 小时");
    asks.answered_by = STR("ann");
    asks.via = STR("api");
    asks.metadata = quoted(&arena, "{'a':1}");
    assert_str(wire(&arena, &asks, true),
               quoted(&arena,
                      "{'version':1,'interactionId':'int_1','type':'ask_user',"
                      "'status':'resolved','threadId':'t1','runId':'r1','toolCallId':'call_1',"
                      "'displayText':'会议多长？','question':'会议多长？',"
                      "'choices':[{'id':'c1','label':'30 分钟'},{'id':'c2','label':'1 小时'}],"
                      "'allowFreeform':false,'fields':[{'name':'a','type':'text'}],'multi':true,"
                      "'resumeNode':'execute','resumePhase':'executing','resumeStep':0,"
                      "'requester':'ann'," OPENED ",'expiresAt':'2026-11-15T06:12:51.123Z',"
                      "'answer':{'choices':['c2']},'answeredBy':'ann','via':'api',"
                      "'metadata':{'a':1}}"));
}

static void confirm_written(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction confirms = confirm(&arena);
    static const char rest[] =
        "'displayText':'Run \\'pay\\'?','resumeNode':'execute','resumePhase':'executing',"
        "'resumeStep':2,'pendingTool':{'toolName':'pay','argsJson':'{\\'to\\':\\'bob\\'}',"
        "'summary':'bob','argsSchema':{'type':'object'},'risk':'destructive'},"
        "'binding':'k1.abc','requester':'ann',";
    str owner = arena_printf(&arena,
                             "{'version':1,'interactionId':'int_2','type':'confirm',"
                             "'status':'open','threadId':'t1','runId':'r1','toolCallId':'call_2',"
                             "%s" OPENED ",'metadata':{}}",
                             rest);
    assert_str(fact_interaction_request(&arena, &confirms), quoted(&arena, owner.p));

    confirms.approver = STR("approver");
    str role = arena_printf(&arena,
                            "{'version':1,'interactionId':'int_2','type':'confirm',"
                            "'status':'open',%s'approvers':['approver']," OPENED ",'metadata':{}}",
                            rest);
    assert_str(wire(&arena, &confirms, false), quoted(&arena, role.p));
}

static void others_written(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction lost = {.id = STR("int_3"),
                               .type = INTERACTION_CONNECTION_LOST,
                               .owner = STR("ann"),
                               .thread_id = STR("t1"),
                               .run_id = STR("r1"),
                               .display_text = STR("gone"),
                               .resume_node = STR("chat"),
                               .resume_phase = STR("chatting"),
                               .metadata = STR("{}"),
                               .opened = 1794723170123};
    assert_str(wire(&arena, &lost, true),
               quoted(&arena, "{'version':1,'interactionId':'int_3','type':'connection_lost',"
                              "'status':'open','threadId':'t1','runId':'r1','displayText':'gone',"
                              "'resumeNode':'chat','resumePhase':'chatting','resumeStep':0,"
                              "'requester':'ann'," OPENED ",'metadata':{}}"));
    lost.type = INTERACTION_UNCERTAIN;
    lost.status = INTERACTION_SUPERSEDED;
    lost.call_id = STR("call_3");
    lost.tool = STR("pay");
    lost.args = lost.args_schema = STR("{}");
    assert_str(wire(&arena, &lost, false),
               quoted(&arena,
                      "{'version':1,'interactionId':'int_3','type':'uncertain',"
                      "'status':'superseded','displayText':'gone','resumeNode':'chat',"
                      "'resumePhase':'chatting','resumeStep':0,'pendingTool':{'toolName':'pay',"
                      "'argsJson':'{}','summary':'','argsSchema':{}},'requester':'ann'," OPENED
                      ",'metadata':{}}"));
}

static void resolved_written(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction asks = question(&arena);
    asks.status = INTERACTION_RESOLVED;
    asks.answer = quoted(&arena, "{'choices':['c2']}");
    asks.text = STR("1 小时");
    asks.answered_by = STR("local");
    asks.via = STR("api");
    asks.settled = 1794723170124;
    assert_str(fact_interaction_resolved(&arena, &asks),
               quoted(&arena,
                      "{'interactionId':'int_1','status':'resolved','answer':{'choices':['c2']},"
                      "'text':'1 小时','answeredBy':'local','via':'api',"
                      "'at':'2026-11-15T06:12:50.124Z'}"));
    struct interaction expired = confirm(&arena);
    expired.status = INTERACTION_EXPIRED;
    expired.settled = 0;
    assert_str(fact_interaction_resolved(&arena, &expired),
               quoted(&arena, "{'interactionId':'int_2','status':'expired',"
                              "'at':'1970-01-01T00:00:00.000Z'}"));
}

#define CHOICES "'choices':[{'id':'c1','label':'30 分钟'},{'id':'c2','label':'1 小时'}]"

static void clarify_rows(void **state)
{
    (void)state;
    static const struct {
        enum interaction_status status;
        const char *text, *metadata;
    } rows[] = {
        {INTERACTION_OPEN, "",
         "{'requestId':'int_1'," CHOICES ",'allowFreeform':true,'status':'pending',"
         "'tool_call_id':'call_1','run_id':'r1'}"},
        {INTERACTION_RESOLVED, "1 小时",
         "{'requestId':'int_1'," CHOICES ",'allowFreeform':true,'status':'answered',"
         "'answer':'1 小时','tool_call_id':'call_1','run_id':'r1'}"},
        {INTERACTION_CANCELED, "用户未回答，操作已取消",
         "{'requestId':'int_1'," CHOICES ",'allowFreeform':true,'status':'canceled',"
         "'tool_call_id':'call_1','run_id':'r1'}"},
        {INTERACTION_EXPIRED, "",
         "{'requestId':'int_1'," CHOICES ",'allowFreeform':true,'status':'expired',"
         "'tool_call_id':'call_1','run_id':'r1'}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction asks = question(&arena);
        asks.status = rows[i].status;
        asks.text = str_c(rows[i].text);
        assert_str(interaction_role(&asks), STR("clarify"));
        assert_str(interaction_metadata(&arena, &asks), quoted(&arena, rows[i].metadata));
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction open = question(&arena);
    open.choices = STR_EMPTY;
    assert_str(interaction_metadata(&arena, &open),
               quoted(&arena, "{'requestId':'int_1','choices':[],'allowFreeform':true,"
                              "'status':'pending','tool_call_id':'call_1','run_id':'r1'}"));
}

static void interaction_rows(void **state)
{
    (void)state;
    static const struct {
        enum interaction_type type;
        enum interaction_status status;
        const char *answer, *text, *metadata;
    } rows[] = {
        {INTERACTION_CONFIRM, INTERACTION_OPEN, "", "",
         "{'requestId':'int_2','type':'confirm','status':'open','tool_name':'pay',"
         "'tool_call_id':'call_2','run_id':'r1'}"},
        {INTERACTION_CONFIRM, INTERACTION_RESOLVED, "{'decision':'approve'}", "",
         "{'requestId':'int_2','type':'confirm','status':'resolved','tool_name':'pay',"
         "'tool_call_id':'call_2','decision':'approve','run_id':'r1'}"},
        {INTERACTION_CONFIRM, INTERACTION_RESOLVED, "{'decision':'reject','comment':'no'}", "no",
         "{'requestId':'int_2','type':'confirm','status':'resolved','tool_name':'pay',"
         "'tool_call_id':'call_2','decision':'reject','answer':'no','run_id':'r1'}"},
        {INTERACTION_CONFIRM, INTERACTION_SUPERSEDED, "{'decision':'approve'}", "",
         "{'requestId':'int_2','type':'confirm','status':'superseded','tool_name':'pay',"
         "'tool_call_id':'call_2','decision':'approve','run_id':'r1'}"},
        {INTERACTION_UNCERTAIN, INTERACTION_CANCELED, "", "cancelled",
         "{'requestId':'int_2','type':'uncertain','status':'canceled','tool_name':'pay',"
         "'tool_call_id':'call_2','run_id':'r1'}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction waits = confirm(&arena);
        waits.type = rows[i].type;
        waits.status = rows[i].status;
        waits.answer = quoted(&arena, rows[i].answer);
        waits.text = str_c(rows[i].text);
        assert_str(interaction_role(&waits), STR("interaction"));
        assert_str(interaction_metadata(&arena, &waits), quoted(&arena, rows[i].metadata));
    }
}

/* Texts that grow as much as they can when they are written. */
static void large(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    size_t len = CALL_ARGS_BYTES_MAX;
    char *text = arena_alloc(&arena, len);
    memset(text, 1, len);
    struct interaction waits = confirm(&arena);
    waits.display_text = waits.args = waits.summary = waits.text = (str){text, len};
    waits.answer = quoted(&arena, "{'decision':'reject'}");
    waits.status = INTERACTION_RESOLVED;
    const struct json *shown = parsed(&arena, fact_interaction_request(&arena, &waits));
    assert_int_equal(json_text(json_get(shown, STR("displayText"))).len, len);
    const struct json *settled = parsed(&arena, fact_interaction_resolved(&arena, &waits));
    assert_int_equal(json_text(json_get(settled, STR("text"))).len, len);
    const struct json *row = parsed(&arena, interaction_metadata(&arena, &waits));
    assert_int_equal(json_text(json_get(row, STR("answer"))).len, len);
}

int test_interaction(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools),
        cmocka_unit_test(schema_bounds),
        cmocka_unit_test(plans),
        cmocka_unit_test(asked),
        cmocka_unit_test(not_asked),
        cmocka_unit_test(ask_counts),
        cmocka_unit_test(ask_sizes),
        cmocka_unit_test(allowed),
        cmocka_unit_test(question_written),
        cmocka_unit_test(confirm_written),
        cmocka_unit_test(others_written),
        cmocka_unit_test(resolved_written),
        cmocka_unit_test(clarify_rows),
        cmocka_unit_test(interaction_rows),
        cmocka_unit_test(large),
    };
    return cmocka_run_group_tests_name("agent/interaction", tests, NULL, NULL);
}

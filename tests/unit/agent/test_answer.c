/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to interactions. In the rows ' stands for ".
 */
#include "agent/core/interaction.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

/* ---- what is asked ---- */

enum asked {
    FREE,       /* two choices, free text too */
    ONLY,       /* two choices and nothing else */
    SEVERAL,    /* three choices, any number of them, free text too */
    SEVERAL_ZH, /* three choices, any number of them and nothing else */
    OPEN,       /* free text */
    FORM,       /* fields and nothing else */
    FORM_FREE,  /* a field, or free text */
    NUMBERS,    /* labels that are numbers, choices only */
    CONFIRM,
    PLAN,
    LOST,
    UNCERTAIN,
};

#define ARGS \
    "{'title':'Review','start':{'day':15,'hour':9.50},'guests':['ann','bob'],'note':'a\\u0041'}"
#define SCHEMA                                                                            \
    "{'type':'object','properties':{'title':{'type':'string'},'start':{'type':'object'}," \
    "'guests':{'type':'array','items':{'type':'string'}},'note':{'type':'string'}},"      \
    "'required':['title'],'additionalProperties':false}"

static const struct {
    enum interaction_type type;
    const char *locale;
    const char *ask;  /* arguments of ask_user */
    const char *tool; /* of the call that waits */
    const char *args;
    const char *schema;
    const char *binding;
} asked[] = {
    [FREE] = {.type = INTERACTION_ASK_USER,
              .locale = "zh-CN",
              .ask = "{'question':'会议多长？','choices':['30 分钟',"
                     "{'label':'1 小时','description':'x'}]}"},
    [ONLY] = {.type = INTERACTION_ASK_USER,
              .locale = "en",
              .ask = "{'question':'Which?','choices':['Red','Blue'],'allow_freeform':false}"},
    [SEVERAL] = {.type = INTERACTION_ASK_USER,
                 .locale = "en",
                 .ask = "{'question':'Who?','choices':['Ann','Bob \\'B\\'','Eve'],'multi':true}"},
    [SEVERAL_ZH] = {.type = INTERACTION_ASK_USER,
                    .locale = "zh-CN",
                    .ask = "{'question':'Who?','choices':['Ann','Bob','Eve'],'multi':true,"
                           "'allow_freeform':false}"},
    [OPEN] = {.type = INTERACTION_ASK_USER, .locale = "en", .ask = "{'question':'What?'}"},
    [FORM] = {.type = INTERACTION_ASK_USER,
              .locale = "en",
              .ask =
                  "{'question':'Order?','allow_freeform':false,'fields':["
                  "{'name':'what','type':'text','required':true},{'name':'count','type':'number'},"
                  "{'name':'gift','type':'boolean'},{'name':'day','type':'date'},"
                  "{'name':'尺寸','type':'choice','choices':['S','M']}]}"},
    [FORM_FREE] = {.type = INTERACTION_ASK_USER,
                   .locale = "zh-CN",
                   .ask = "{'question':'Order?','fields':[{'name':'what','type':'text'}]}"},
    [NUMBERS] = {.type = INTERACTION_ASK_USER,
                 .locale = "zh-CN",
                 .ask = "{'question':'How many?','choices':['3','1','2'],'allow_freeform':false}"},
    [CONFIRM] = {.type = INTERACTION_CONFIRM,
                 .locale = "en",
                 .tool = "calendar_write",
                 .args = ARGS,
                 .schema = SCHEMA,
                 .binding = "k1.abc"},
    [PLAN] = {.type = INTERACTION_CONFIRM,
              .locale = "en",
              .tool = "submit_plan",
              .args = "{'steps':[{'content':'a'}]}",
              .schema = "{'type':'object','required':['steps']}",
              .binding = "k1.abc"},
    [LOST] = {.type = INTERACTION_CONNECTION_LOST, .locale = "en"},
    [UNCERTAIN] = {.type = INTERACTION_UNCERTAIN,
                   .locale = "en",
                   .tool = "pay",
                   .args = "{}",
                   .schema = "{}"},
};

static str quoted(struct arena *arena, const char *text)
{
    if (!text) return STR_EMPTY;
    str copy = arena_str(arena, str_c(text));
    for (size_t i = 0; i < copy.len; i++)
        if (copy.p[i] == '\'') ((char *)(uintptr_t)copy.p)[i] = '"';
    return copy;
}

static struct interaction ask(struct arena *arena, enum asked which)
{
    struct interaction interaction = {.id = STR("int_1"),
                                      .type = asked[which].type,
                                      .owner = STR("ann"),
                                      .locale = str_c(asked[which].locale),
                                      .tool = str_c(asked[which].tool),
                                      .args = quoted(arena, asked[which].args),
                                      .args_schema = quoted(arena, asked[which].schema),
                                      .binding = str_c(asked[which].binding),
                                      .metadata = STR("{}")};
    struct fault why = {0};
    if (asked[which].ask &&
        ask_parse(arena, quoted(arena, asked[which].ask), &interaction, &why) != OK)
        fail_msg("%s: %s", asked[which].ask, why.text);
    return interaction;
}

static enum err answer(struct arena *arena, const struct interaction *interaction, str text,
                       struct resolution *resolution, struct fault *why)
{
    struct json *body = NULL;
    struct json_error error;
    if (json_parse(arena, text, &body, &error))
        fail_msg("%.*s: %s at %zu", STR_ARG(text), error.reason, error.offset);
    return answer_parse(arena, interaction, body, resolution, why);
}

/* ---- taken ---- */

static const struct {
    enum asked which;
    const char *body;
    enum decision decision;
    const char *text;
    const char *kept; /* NULL: the body itself */
} taken[] = {
    /* one of the choices */
    {FREE, "{'choices':['c1']}", DECISION_ANSWER, "30 分钟", NULL},
    {FREE, "{'choices':['c2']}", DECISION_ANSWER, "1 小时", NULL},
    {FREE, "{'choices':['\\u00632']}", DECISION_ANSWER, "1 小时", NULL},
    {FREE, "{'choices':['c2'],'text':'最多'}", DECISION_ANSWER, "1 小时: 最多", NULL},
    {FREE, "{'text':'  最多\\n','choices':['c2']}", DECISION_ANSWER, "1 小时: 最多", NULL},
    {ONLY, "{'choices':['c2']}", DECISION_ANSWER, "Blue", NULL},
    {ONLY, " {\n'choices'\n:\n[\n'c2'\r\n]\n} ", DECISION_ANSWER, "Blue", "{'choices':[ 'c2'  ]}"},
    /* several */
    {SEVERAL, "{'choices':['c1']}", DECISION_ANSWER, "Ann", NULL},
    {SEVERAL, "{'choices':['c3','c1']}", DECISION_ANSWER, "['Eve','Ann']", NULL},
    {SEVERAL, "{'choices':['c1','c2','c3']}", DECISION_ANSWER, "['Ann','Bob \\'B\\'','Eve']", NULL},
    {SEVERAL, "{'choices':['c1','c3'],'text':'both'}", DECISION_ANSWER, "['Ann','Eve']: both",
     NULL},
    {SEVERAL_ZH, "{'choices':['c1','c2']}", DECISION_ANSWER, "['Ann','Bob']", NULL},
    /* words */
    {FREE, "{'answer':'1 小时'}", DECISION_ANSWER, "1 小时", NULL},
    {FREE, "{'answer':' 1 小时　'}", DECISION_ANSWER, "1 小时", NULL},
    {FREE, "{'answer':'两小时'}", DECISION_ANSWER, "两小时", NULL},
    {FREE, "{'answer':'2'}", DECISION_ANSWER, "2", NULL}, /* only plain messages pick by number */
    {FREE, "{'answer':'c2'}", DECISION_ANSWER, "c2", NULL},
    {FREE, "{'answer':'line\\nline'}", DECISION_ANSWER, "line\nline", NULL},
    {ONLY, "{'answer':'Red'}", DECISION_ANSWER, "Red", NULL},
    {ONLY, "{'answer':'\\tBlue\\n'}", DECISION_ANSWER, "Blue", NULL},
    {SEVERAL_ZH, "{'answer':'Eve'}", DECISION_ANSWER, "Eve", NULL},
    {NUMBERS, "{'answer':'1'}", DECISION_ANSWER, "1", NULL},
    {OPEN, "{'answer':'a budget'}", DECISION_ANSWER, "a budget", NULL},
    {OPEN, "{'\\u0061nswer':'x'}", DECISION_ANSWER, "x", "{'answer':'x'}"},
    {FORM_FREE, "{'answer':'随便'}", DECISION_ANSWER, "随便", NULL},
    /* fields */
    {FORM, "{'fields':{'what':'tea'}}", DECISION_ANSWER, "{'what':'tea'}", NULL},
    {FORM, "{'fields':{'count':2,'what':'tea'}}", DECISION_ANSWER, "{'count':2,'what':'tea'}",
     NULL},
    {FORM, "{'fields':{'what':'t','count':-1.50e2}}", DECISION_ANSWER,
     "{'what':'t','count':-1.50e2}", NULL},
    {FORM, "{'fields':{'what':'t','gift':false}}", DECISION_ANSWER, "{'what':'t','gift':false}",
     NULL},
    {FORM, "{'fields':{'what':'t','day':'2028-02-29'}}", DECISION_ANSWER,
     "{'what':'t','day':'2028-02-29'}", NULL},
    {FORM, "{'fields':{'what':'t','尺寸':'M'}}", DECISION_ANSWER, "{'what':'t','尺寸':'M'}", NULL},
    {FORM, "{'fields':{'what':\n't'}}", DECISION_ANSWER, "{'what': 't'}",
     "{'fields':{'what': 't'}}"},
    {FORM_FREE, "{'fields':{'what':'tea'}}", DECISION_ANSWER, "{'what':'tea'}", NULL},
    /* skipped */
    {FREE, "{'skip':true}", DECISION_SKIP, "用户跳过了这个问题", NULL},
    {ONLY, "{'skip':true}", DECISION_SKIP, "The user skipped this question", NULL},
    {FORM, "{'skip':true}", DECISION_SKIP, "The user skipped this question", NULL},
    /* confirm */
    {CONFIRM, "{'decision':'approve'}", DECISION_APPROVE, "", NULL},
    {CONFIRM, "{'decision':'approve','binding':'k1.abc'}", DECISION_APPROVE, "",
     "{'decision':'approve'}"},
    {CONFIRM, "{'binding':'k1.ab\\u0063' , 'decision':'approve'}", DECISION_APPROVE, "",
     "{'decision':'approve'}"},
    {CONFIRM, "{'decision':'approve','comment':'fine'}", DECISION_APPROVE, "", NULL},
    {CONFIRM, "{'decision':'approve','always':false}", DECISION_APPROVE, "", NULL},
    {CONFIRM, "{'decision':'approve','always':true}", DECISION_APPROVE, "", NULL},
    {CONFIRM, "{'decision':'edit','args':{'title':'X'}}", DECISION_EDIT, "", NULL},
    {CONFIRM, "{'decision':'edit','args':" ARGS "}", DECISION_EDIT, "",
     NULL}, /* the same bytes too */
    {CONFIRM, "{'binding':'k1.abc','args':{'title':'X'},'decision':'edit','comment':'n'}",
     DECISION_EDIT, "", "{'args':{'title':'X'},'decision':'edit','comment':'n'}"},
    {CONFIRM, "{'decision':'reject'}", DECISION_REJECT, "", NULL},
    {CONFIRM, "{'decision':'reject','comment':''}", DECISION_REJECT, "", NULL},
    {CONFIRM, "{'decision':'reject','comment':' not now '}", DECISION_REJECT, "not now", NULL},
    {CONFIRM, "{'decision':'reject','always':false}", DECISION_REJECT, "", NULL},
    {CONFIRM, "{'decision':'respond','comment':'booked already'}", DECISION_RESPOND,
     "booked already", NULL},
    {PLAN, "{'decision':'approve'}", DECISION_APPROVE, "", NULL},
    {PLAN, "{'decision':'edit','args':{'steps':[]}}", DECISION_EDIT, "", NULL},
    {PLAN, "{'decision':'reject','comment':'shorter'}", DECISION_REJECT, "shorter", NULL},
    /* the rest */
    {LOST, "{'decision':'continue'}", DECISION_CONTINUE, "", NULL},
    {LOST, "{'decision':'give_up'}", DECISION_GIVE_UP, "", NULL},
    {UNCERTAIN, "{'decision':'retry'}", DECISION_RETRY, "", NULL},
    {UNCERTAIN, "{'decision':'happened'}", DECISION_HAPPENED, "", NULL},
    {UNCERTAIN, "{'decision':'give_up'}", DECISION_GIVE_UP, "", NULL},
};

static void check_taken(size_t i)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction interaction = ask(&arena, taken[i].which);
    struct resolution resolution = {0};
    struct fault why = {0};
    enum err e = answer(&arena, &interaction, quoted(&arena, taken[i].body), &resolution, &why);
    if (e) fail_msg("%s: %s: %s", taken[i].body, why.field, why.text);
    assert_int_equal(resolution.decision, taken[i].decision);
    assert_str(resolution.interaction_id, STR("int_1"));
    assert_str(resolution.text, quoted(&arena, taken[i].text));
    assert_str(resolution.answer, quoted(&arena, taken[i].kept ? taken[i].kept : taken[i].body));
    assert_int_equal(resolution.by.len + resolution.via.len, 0);

    /* What is kept would be taken again, and means the same. */
    struct resolution again = {0};
    assert_int_equal(answer(&arena, &interaction, resolution.answer, &again, &why), OK);
    assert_int_equal(again.decision, resolution.decision);
    assert_str(again.text, resolution.text);
    assert_str(again.args, resolution.args);
    assert_str(again.answer, resolution.answer);
}

static void answers_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(taken); i++) check_taken(i);
}

/* A NUL inside a text is a character like others. */
static void nul(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction interaction = ask(&arena, FREE);
    struct resolution resolution = {0};
    struct fault why = {0};
    str body = quoted(&arena, "{'choices':['c2'],'text':'a\\u0000b'}");
    assert_int_equal(answer(&arena, &interaction, body, &resolution, &why), OK);
    assert_str(resolution.text, STR("1 小时: a\0b"));
    answer_plain(&arena, &interaction, STR("a\0b"), &resolution);
    assert_str(resolution.text, STR("a\0b"));
    assert_str(resolution.answer, quoted(&arena, "{'answer':'a\\u0000b'}"));
}

/* ---- refused ---- */

static const struct {
    enum asked which;
    const char *body;
    const char *field;
} refused[] = {
    {FREE, "[]", ""},
    {FREE, "'c1'", ""},
    {FREE, "null", ""},
    {FREE, "{}", ""},
    /* choices */
    {FREE, "{'choices':[]}", "choices"},
    {FREE, "{'choices':'c1'}", "choices"},
    {FREE, "{'choices':null}", "choices"},
    {FREE, "{'choices':{'c1':true}}", "choices"},
    {FREE, "{'choices':['c1','c2']}", "choices"},
    {FREE, "{'choices':['c3']}", "choices[0]"},
    {FREE, "{'choices':['']}", "choices[0]"},
    {FREE, "{'choices':['C1']}", "choices[0]"},
    {FREE, "{'choices':['c1 ']}", "choices[0]"},
    {FREE, "{'choices':['1 小时']}", "choices[0]"},
    {FREE, "{'choices':[1]}", "choices[0]"},
    {FREE, "{'choices':[null]}", "choices[0]"},
    {SEVERAL, "{'choices':['c1','c4']}", "choices[1]"},
    {SEVERAL, "{'choices':['c1','c2','c1']}", "choices[2]"},
    {OPEN, "{'choices':['c1']}", "choices"},
    {FORM, "{'choices':['c1']}", "choices"},
    /* text */
    {FREE, "{'text':'x'}", "text"},
    {FREE, "{'answer':'x','text':'y'}", "text"},
    {FREE, "{'skip':true,'text':'y'}", "text"},
    {FREE, "{'choices':['c1'],'text':' \\n　'}", "text"},
    {FREE, "{'choices':['c1'],'text':7}", "text"},
    {FREE, "{'choices':['c1'],'text':null}", "text"},
    {ONLY, "{'choices':['c1'],'text':'but'}", "text"},
    {SEVERAL_ZH, "{'choices':['c1','c2'],'text':'but'}", "text"},
    /* words */
    {FREE, "{'answer':''}", "answer"},
    {FREE, "{'answer':' \\t\\r\\n\\u3000\\u00a0\\u200b\\ufeff'}", "answer"},
    {FREE, "{'answer':7}", "answer"},
    {FREE, "{'answer':null}", "answer"},
    {FREE, "{'answer':['x']}", "answer"},
    {ONLY, "{'answer':'Green'}", "answer"},
    {ONLY, "{'answer':'red'}", "answer"},
    {ONLY, "{'answer':'1'}", "answer"},
    {ONLY, "{'answer':'c1'}", "answer"},
    {FORM, "{'answer':'tea'}", "answer"},
    /* fields */
    {FREE, "{'fields':{'what':'x'}}", "fields"},
    {FORM, "{'fields':{}}", "fields.what"},
    {FORM_FREE, "{'fields':{}}", "fields"},
    {FORM, "{'fields':[]}", "fields"},
    {FORM, "{'fields':null}", "fields"},
    {FORM, "{'fields':{'count':1}}", "fields.what"},
    {FORM, "{'fields':{'what':''}}", "fields.what"},
    {FORM, "{'fields':{'what':' \\u3000'}}", "fields.what"},
    {FORM, "{'fields':{'what':null}}", "fields.what"},
    {FORM, "{'fields':{'what':7}}", "fields.what"},
    {FORM, "{'fields':{'what':'t','count':'2'}}", "fields.count"},
    {FORM, "{'fields':{'what':'t','count':1e999}}", "fields.count"},
    {FORM, "{'fields':{'what':'t','gift':'yes'}}", "fields.gift"},
    {FORM, "{'fields':{'what':'t','gift':1}}", "fields.gift"},
    {FORM, "{'fields':{'what':'t','day':'2027-02-29'}}", "fields.day"},
    {FORM, "{'fields':{'what':'t','day':'2027-2-9'}}", "fields.day"},
    {FORM, "{'fields':{'what':'t','day':'2027-02-01T00:00:00Z'}}", "fields.day"},
    {FORM, "{'fields':{'what':'t','day':20270201}}", "fields.day"},
    {FORM, "{'fields':{'what':'t','尺寸':'L'}}", "fields.尺寸"},
    {FORM, "{'fields':{'what':'t','尺寸':['M']}}", "fields.尺寸"},
    {FORM, "{'fields':{'what':'t','colour':'red'}}", "fields.colour"},
    {FORM, "{'fields':{'what':'t','What':'t'}}", "fields.What"},
    /* skip */
    {FREE, "{'skip':false}", "skip"},
    {FREE, "{'skip':'true'}", "skip"},
    {FREE, "{'skip':null}", "skip"},
    /* one way at a time */
    {FREE, "{'choices':['c1'],'answer':'x'}", "answer"},
    {FREE, "{'answer':'x','choices':['c1']}", "answer"},
    {FREE, "{'choices':['c1'],'skip':true}", "skip"},
    {FREE, "{'answer':'x','skip':false}", "skip"},
    {FORM, "{'fields':{'what':'t'},'answer':'x'}", "fields"},
    /* unknown members */
    {FREE, "{'answer':'x','extra':1}", "extra"},
    {FREE, "{'answer':'x','Answer':'x'}", "Answer"},
    {FREE, "{'answer':'x','binding':'k1.abc'}", "binding"},
    {FREE, "{'decision':'approve'}", "decision"},
    {CONFIRM, "{'decision':'approve','extra':1}", "extra"},
    {CONFIRM, "{'decision':'approve','text':'x'}", "text"},
    {CONFIRM, "{'answer':'yes'}", "answer"},
    {LOST, "{'decision':'continue','comment':'x'}", "comment"},
    {LOST, "{'decision':'continue','binding':'x'}", "binding"},
    {UNCERTAIN, "{'decision':'retry','comment':'x'}", "comment"},
    {UNCERTAIN, "{'decision':'retry','args':{}}", "args"},
    /* decisions */
    {CONFIRM, "{}", "decision"},
    {CONFIRM, "{'decision':''}", "decision"},
    {CONFIRM, "{'decision':'APPROVE'}", "decision"},
    {CONFIRM, "{'decision':'approve '}", "decision"},
    {CONFIRM, "{'decision':'yes'}", "decision"},
    {CONFIRM, "{'decision':true}", "decision"},
    {CONFIRM, "{'decision':null}", "decision"},
    {CONFIRM, "{'decision':['approve']}", "decision"},
    {CONFIRM, "{'decision':'continue'}", "decision"},
    {CONFIRM, "{'decision':'retry'}", "decision"},
    {CONFIRM, "{'decision':'cancel'}", "decision"},
    {LOST, "{}", "decision"},
    {LOST, "{'decision':'approve'}", "decision"},
    {LOST, "{'decision':'retry'}", "decision"},
    {UNCERTAIN, "{'decision':'approve'}", "decision"},
    {UNCERTAIN, "{'decision':'continue'}", "decision"},
    {UNCERTAIN, "[]", ""},
    /* arguments */
    {CONFIRM, "{'decision':'approve','args':" ARGS "}", "args"},
    {CONFIRM, "{'decision':'reject','args':{'title':'X'}}", "args"},
    {CONFIRM, "{'decision':'respond','comment':'x','args':{}}", "args"},
    {CONFIRM, "{'decision':'edit'}", "args"},
    {CONFIRM, "{'decision':'edit','args':null}", "args"},
    {CONFIRM, "{'decision':'edit','args':[]}", "args"},
    {CONFIRM, "{'decision':'edit','args':'{\\u0022title\\u0022:1}'}", "args"},
    {CONFIRM, "{'decision':'edit','args':{}}", "args.title"},
    {CONFIRM, "{'decision':'edit','args':{'title':7}}", "args.title"},
    {CONFIRM, "{'decision':'edit','args':{'title':'X','guests':['a',1]}}", "args.guests[1]"},
    {CONFIRM, "{'decision':'edit','args':{'title':'X','other':1}}", "args.other"},
    {UNCERTAIN, "{'decision':'edit','args':{}}", "args"},
    /* comments */
    {CONFIRM, "{'decision':'respond'}", "comment"},
    {CONFIRM, "{'decision':'respond','comment':''}", "comment"},
    {CONFIRM, "{'decision':'respond','comment':' \\n\\u3000'}", "comment"},
    {CONFIRM, "{'decision':'respond','comment':7}", "comment"},
    {CONFIRM, "{'decision':'reject','comment':null}", "comment"},
    {CONFIRM, "{'decision':'approve','comment':{}}", "comment"},
    /* always */
    {CONFIRM, "{'decision':'reject','always':true}", "always"},
    {CONFIRM, "{'decision':'respond','comment':'x','always':true}", "always"},
    {CONFIRM, "{'decision':'edit','args':{'title':'X'},'always':{'scope':'user'}}", "always"},
    {CONFIRM, "{'decision':'approve','always':'thread'}", "always"},
    {CONFIRM, "{'decision':'approve','always':null}", "always"},
    {CONFIRM, "{'decision':'approve','always':1}", "always"},
    {CONFIRM, "{'decision':'approve','always':[]}", "always"},
    {CONFIRM, "{'decision':'approve','always':{}}", "always.scope"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'all'}}", "always.scope"},
    {CONFIRM, "{'decision':'approve','always':{'scope':null}}", "always.scope"},
    {CONFIRM, "{'decision':'approve','always':{'match':{'title':'Review'}}}", "always.scope"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','tool':'x'}}", "always.tool"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':[]}}", "always.match"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':null}}", "always.match"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':{'title':'review'}}}",
     "always.match.title"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':{'title':'Review','x':1}}}",
     "always.match.x"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':{'guests':['bob','ann']}}}",
     "always.match.guests"},
    {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':{'start':{'day':15}}}}",
     "always.match.start"},
    {CONFIRM,
     "{'decision':'approve','always':{'scope':'user','match':{'start':{'hour':9.5,'day':15}}}}",
     "always.match.start"},
    {PLAN, "{'decision':'approve','always':true}", "always"},
    {PLAN, "{'decision':'approve','always':{'scope':'thread'}}", "always"},
    /* the form of a binding; its value is another table */
    {CONFIRM, "{'decision':'approve','binding':7}", "binding"},
    {CONFIRM, "{'decision':'approve','binding':null}", "binding"},
};

static void answers_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = ask(&arena, refused[i].which);
        struct resolution resolution = {.by = STR("before")};
        struct fault why = {0};
        enum err e =
            answer(&arena, &interaction, quoted(&arena, refused[i].body), &resolution, &why);
        if (e != ERR_INVALID_FIELD) fail_msg("%s: err %d", refused[i].body, (int)e);
        if (strcmp(why.field, refused[i].field) != 0)
            fail_msg("%s: field \"%s\" (%s), expected \"%s\"", refused[i].body, why.field, why.text,
                     refused[i].field);
        assert_true(why.text[0]);
        assert_str(resolution.by, STR("before")); /* untouched */
        assert_int_equal(resolution.answer.len, 0);
    }
}

/* A name that is too long for a fault is cut between two characters, in the field and in the text. */
static void long_names(void **state)
{
    (void)state;
    static const struct {
        enum asked which;
        const char *before, *after;
    } rows[] = {
        {FREE, "{'answer':'x','", "':1}"},
        {FORM, "{'fields':{'what':'t','", "':1}}"},
        {CONFIRM, "{'decision':'approve','always':{'scope':'user','match':{'", "':1}}}"},
        {CONFIRM, "{'decision':'approve','always':{'scope':'user','", "':1}}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t shift = 0; shift < 4; shift++) {
            AUTO(arena_done) struct arena arena;
            AUTO(buf_done) struct buf body;
            arena_init(&arena);
            buf_init(&body, 4096);
            buf_append(&body, quoted(&arena, rows[i].before));
            for (size_t n = 0; n < shift; n++) buf_char(&body, 'x');
            for (size_t n = 0; n < 400; n++) buf_append(&body, STR("会"));
            buf_append(&body, quoted(&arena, rows[i].after));
            struct interaction interaction = ask(&arena, rows[i].which);
            struct resolution resolution = {0};
            struct fault why = {0};
            assert_int_equal(answer(&arena, &interaction, buf_str(&body), &resolution, &why),
                             ERR_INVALID_FIELD);
            assert_true(strlen(why.field) > 100);
            assert_true(utf8_valid(str_c(why.field)));
            assert_true(utf8_valid(str_c(why.text)));
        }
    }
}

/* ---- bindings ---- */

static void bindings(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{'decision':'approve','binding':'k1.abd'}",
        "{'decision':'approve','binding':'k1.ab'}",
        "{'decision':'approve','binding':'k1.abcd'}",
        "{'decision':'approve','binding':''}",
        "{'decision':'approve','binding':' k1.abc'}",
        "{'decision':'reject','binding':'other'}",
        /* whoever saw another call hears that first */
        "{'decision':'edit','args':7,'binding':'other'}",
        "{'decision':'respond','binding':'other'}",
        "{'decision':'approve','always':7,'binding':'other'}",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = ask(&arena, CONFIRM);
        struct resolution resolution = {0};
        struct fault why = {0};
        assert_int_equal(answer(&arena, &interaction, quoted(&arena, bodies[i]), &resolution, &why),
                         ERR_BINDING_MISMATCH);
        assert_int_equal(why.err, ERR_BINDING_MISMATCH);
        assert_string_equal(why.field, "binding");
        interaction.binding = STR_EMPTY; /* a row without one fits no echo but the empty one */
        assert_true(answer(&arena, &interaction, quoted(&arena, bodies[0]), &resolution, &why) ==
                    ERR_BINDING_MISMATCH);
    }
}

/* ---- edits ---- */

static void edits(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction interaction = ask(&arena, CONFIRM);
    struct resolution resolution = {0};
    struct fault why = {0};
    str body = quoted(&arena, "{'decision':'edit','args':{ 'title' :\n'X',\t'guests':[\r\n] }}");
    assert_int_equal(answer(&arena, &interaction, body, &resolution, &why), OK);
    assert_str(resolution.args, quoted(&arena, "{ 'title' : 'X', 'guests':[  ] }"));

    body = quoted(&arena, "{'decision':'edit','args':" ARGS "}");
    assert_int_equal(answer(&arena, &interaction, body, &resolution, &why), OK);
    assert_int_equal(resolution.decision, DECISION_EDIT);
    assert_str(resolution.args, interaction.args);

    interaction.args_schema = STR_EMPTY; /* nothing was shown, so nothing can be checked */
    assert_int_equal(answer(&arena, &interaction, body, &resolution, &why), ERR_INVALID_FIELD);
    assert_string_equal(why.field, "args");
}

/* A row that cannot be read is our fault, not the person's. */
static void damaged(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct resolution resolution = {0};
    struct fault why = {0};
    struct interaction broken = ask(&arena, FREE);
    broken.choices = STR("[{");
    assert_int_equal(answer(&arena, &broken, quoted(&arena, "{'choices':['c1']}"), &resolution,
                            &why),
                     ERR_DAMAGED);
    broken.choices = STR("{}");
    assert_int_equal(answer(&arena, &broken, quoted(&arena, "{'answer':'x'}"), &resolution, &why),
                     ERR_DAMAGED);
    broken = ask(&arena, FORM);
    broken.fields = quoted(&arena, "[{'name':'a','type':'colour'}]");
    assert_int_equal(answer(&arena, &broken, quoted(&arena, "{'fields':{'a':1}}"), &resolution,
                            &why),
                     ERR_DAMAGED);
    broken = ask(&arena, CONFIRM);
    broken.args_schema = STR("[1]");
    str edit = quoted(&arena, "{'decision':'edit','args':{}}");
    assert_int_equal(answer(&arena, &broken, edit, &resolution, &why), ERR_DAMAGED);
    broken.args = STR("not JSON");
    assert_int_equal(
        answer(&arena, &broken,
               quoted(&arena, "{'decision':'approve','always':{'scope':'user','match':{'a':1}}}"),
               &resolution, &why),
        ERR_DAMAGED);
}

/* ---- always ---- */

static void always(void **state)
{
    (void)state;
    static const struct {
        const char *always; /* the member, or NULL */
        bool set, user;
        const char *match;
    } rows[] = {
        {NULL, false, false, "{}"},
        {"false", false, false, "{}"},
        {"true", true, false, "{}"},
        {"{'scope':'thread'}", true, false, "{}"},
        {"{'scope':'user'}", true, true, "{}"},
        {"{'scope':'user','match':{}}", true, true, "{}"},
        {"{'match':{'title':'Review'},'scope':'user'}", true, true, "{'title':'Review'}"},
        {"{'scope':'thread','match':{'note':'aA','guests':[ 'ann',\n'bob' ]}}", true, false,
         "{'note':'aA','guests':[ 'ann', 'bob' ]}"},
        {"{'scope':'user','match':{'start':{'hour':9.50,'day':15}}}", true, true,
         "{'start':{'hour':9.50,'day':15}}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = ask(&arena, CONFIRM);
        struct resolution resolution = {0};
        struct fault why = {0};
        str body = rows[i].always
                       ? arena_printf(&arena, "{'decision':'approve','always':%s}", rows[i].always)
                       : STR("{'decision':'approve'}");
        enum err e = answer(&arena, &interaction, quoted(&arena, arena_cstr(&arena, body)),
                            &resolution, &why);
        if (e) fail_msg("%s: %s", rows[i].always, why.text);
        assert_int_equal(resolution.always, rows[i].set);
        assert_int_equal(resolution.always_user, rows[i].user);
        assert_str(resolution.match, quoted(&arena, rows[i].match));
    }
}

/* A call with `count` arguments a0 = 1, a1 = 1, ..., the first with `pad` more bytes. */
static str many_args(struct arena *arena, size_t count, size_t pad)
{
    struct buf out;
    buf_init(&out, 64 * 1024);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&out, "%s\"a%zu\":\"", i ? "," : "{", i);
        for (size_t n = 0; i == 0 && n < pad; n++) buf_char(&out, 'x');
        buf_append(&out, STR("1\""));
    }
    buf_char(&out, '}');
    str text = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return text;
}

static void match_bounds(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    size_t frame = many_args(&arena, 1, 0).len;
    static const struct {
        size_t count;
        bool full; /* GRANT_MATCH_BYTES_MAX, and `more` */
        size_t more;
        enum err err;
    } rows[] = {
        {GRANT_MATCH_ARGS_MAX, false, 0, OK},
        {GRANT_MATCH_ARGS_MAX + 1, false, 0, ERR_INVALID_FIELD},
        {1, true, 0, OK},
        {1, true, 1, ERR_INVALID_FIELD},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct interaction interaction = ask(&arena, CONFIRM);
        struct resolution resolution = {0};
        struct fault why = {0};
        size_t pad = rows[i].full ? GRANT_MATCH_BYTES_MAX - frame + rows[i].more : 0;
        interaction.args = many_args(&arena, rows[i].count, pad);
        str body = arena_printf(
            &arena, "{\"decision\":\"approve\",\"always\":{\"scope\":\"user\",\"match\":%.*s}}",
            STR_ARG(interaction.args));
        assert_int_equal(answer(&arena, &interaction, body, &resolution, &why), rows[i].err);
        if (rows[i].err) assert_string_equal(why.field, "always.match");
    }
}

/* ---- sizes ---- */

static void sizes(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf body;
        arena_init(&arena);
        buf_init(&body, ANSWER_BYTES_MAX + 2);
        buf_append(&body, STR("{\"answer\":\""));
        while (body.len < ANSWER_BYTES_MAX - 2 + more) buf_char(&body, 'x');
        buf_append(&body, STR("\"}"));
        struct interaction interaction = ask(&arena, OPEN);
        struct resolution resolution = {0};
        struct fault why = {0};
        assert_int_equal(answer(&arena, &interaction, buf_str(&body), &resolution, &why),
                         more ? ERR_TOO_LARGE : OK);
        if (!more) assert_str(resolution.answer, buf_str(&body));
    }
}

/* Labels that grow as much as they can when they are written. */
static void long_labels(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf args;
    arena_init(&arena);
    buf_init(&args, CALL_ARGS_BYTES_MAX);
    buf_append(&args, STR("{\"question\":\"q\",\"multi\":true,\"choices\":["));
    for (size_t i = 0; i < ASK_CHOICES_MAX; i++) {
        buf_printf(&args, "%s\"%zu", i ? "," : "", i);
        for (size_t n = 0; n < 800; n++) buf_append(&args, STR("\\u0001"));
        buf_append(&args, STR("x\""));
    }
    buf_append(&args, STR("]}"));
    assert_false(args.full);
    struct interaction interaction = {.id = STR("int_1"), .type = INTERACTION_ASK_USER};
    struct resolution resolution = {0};
    struct fault why = {0};
    assert_int_equal(ask_parse(&arena, buf_str(&args), &interaction, &why), OK);

    buf_clear(&args);
    buf_append(&args, STR("{\"choices\":["));
    for (size_t i = 1; i <= ASK_CHOICES_MAX; i++)
        buf_printf(&args, "%s\"c%zu\"", i > 1 ? "," : "", i);
    buf_append(&args, STR("]}"));
    assert_int_equal(answer(&arena, &interaction, buf_str(&args), &resolution, &why), OK);
    struct json *labels = NULL;
    assert_int_equal(json_parse(&arena, resolution.text, &labels, NULL), OK);
    assert_int_equal(labels->count, ASK_CHOICES_MAX);
    assert_int_equal(json_text(json_at(labels, 10)).len, 2 + 800 + 1);
}

/* ---- plain messages ---- */

static void plain(void **state)
{
    (void)state;
    static const struct {
        enum asked which;
        const char *message;
        enum decision decision;
        const char *text, *answer;
    } rows[] = {
        /* free text: a label or a number picks, all else is the answer */
        {FREE, "1 小时", DECISION_ANSWER, "1 小时", "{'answer':'1 小时'}"},
        {FREE, " 1 小时\n", DECISION_ANSWER, "1 小时", "{'answer':'1 小时'}"},
        {FREE, "2", DECISION_ANSWER, "1 小时", "{'answer':'2'}"},
        {FREE, "\t1\n", DECISION_ANSWER, "30 分钟", "{'answer':'1'}"},
        {FREE, "02", DECISION_ANSWER, "1 小时", "{'answer':'02'}"},
        {FREE, "0", DECISION_ANSWER, "0", "{'answer':'0'}"},
        {FREE, "3", DECISION_ANSWER, "3", "{'answer':'3'}"},
        {FREE, "99999999999999999999", DECISION_ANSWER, "99999999999999999999",
         "{'answer':'99999999999999999999'}"},
        {FREE, "-1", DECISION_ANSWER, "-1", "{'answer':'-1'}"},
        {FREE, "+1", DECISION_ANSWER, "+1", "{'answer':'+1'}"},
        {FREE, "1.", DECISION_ANSWER, "1.", "{'answer':'1.'}"},
        {FREE, "2 谢谢", DECISION_ANSWER, "2 谢谢", "{'answer':'2 谢谢'}"},
        {FREE, "２", DECISION_ANSWER, "２", "{'answer':'２'}"}, /* full-width: a text channel's */
        {FREE, "c2", DECISION_ANSWER, "c2", "{'answer':'c2'}"},
        {FREE, "两小时", DECISION_ANSWER, "两小时", "{'answer':'两小时'}"},
        {FREE, "yes", DECISION_ANSWER, "yes", "{'answer':'yes'}"},
        {FREE, "a\nb", DECISION_ANSWER, "a\nb", "{'answer':'a\\nb'}"},
        {FREE, "　", DECISION_SKIP, "用户跳过了这个问题", "{'answer':''}"},
        {OPEN, "1", DECISION_ANSWER, "1", "{'answer':'1'}"},
        {OPEN, "because", DECISION_ANSWER, "because", "{'answer':'because'}"},
        /* several may be picked, one is by a message */
        {SEVERAL, "3", DECISION_ANSWER, "Eve", "{'answer':'3'}"},
        {SEVERAL, "1,3", DECISION_ANSWER, "1,3", "{'answer':'1,3'}"},
        /* choices only: all else declines */
        {ONLY, "Blue", DECISION_ANSWER, "Blue", "{'answer':'Blue'}"},
        {ONLY, "1", DECISION_ANSWER, "Red", "{'answer':'1'}"},
        {ONLY, "3", DECISION_SKIP, "The user did not choose and said: 3", "{'answer':'3'}"},
        {ONLY, "blue", DECISION_SKIP, "The user did not choose and said: blue",
         "{'answer':'blue'}"},
        {ONLY, "why?", DECISION_SKIP, "The user did not choose and said: why?",
         "{'answer':'why?'}"},
        {SEVERAL_ZH, "都不要", DECISION_SKIP, "用户没有选择，而是说：都不要",
         "{'answer':'都不要'}"},
        {SEVERAL_ZH, "2", DECISION_ANSWER, "Bob", "{'answer':'2'}"},
        {NUMBERS, "1", DECISION_ANSWER, "1", "{'answer':'1'}"}, /* the label before the number */
        {NUMBERS, "3", DECISION_ANSWER, "3", "{'answer':'3'}"},
        {NUMBERS, "03", DECISION_ANSWER, "2", "{'answer':'03'}"},
        {FORM, "tea", DECISION_SKIP, "The user did not choose and said: tea", "{'answer':'tea'}"},
        {FORM_FREE, "tea", DECISION_ANSWER, "tea", "{'answer':'tea'}"},
        /* never an approval */
        {CONFIRM, "approve", DECISION_REJECT, "approve",
         "{'decision':'reject','comment':'approve'}"},
        {CONFIRM, "yes", DECISION_REJECT, "yes", "{'decision':'reject','comment':'yes'}"},
        {CONFIRM, "1", DECISION_REJECT, "1", "{'decision':'reject','comment':'1'}"},
        {CONFIRM, " later ", DECISION_REJECT, "later", "{'decision':'reject','comment':'later'}"},
        {CONFIRM, "　", DECISION_REJECT, "", "{'decision':'reject','comment':''}"},
        {PLAN, "同意", DECISION_REJECT, "同意", "{'decision':'reject','comment':'同意'}"},
        {LOST, "go on", DECISION_CONTINUE, "", "{'decision':'continue'}"},
        {LOST, "give_up", DECISION_CONTINUE, "", "{'decision':'continue'}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction interaction = ask(&arena, rows[i].which);
        struct resolution resolution = {0};
        answer_plain(&arena, &interaction, str_c(rows[i].message), &resolution);
        assert_str(resolution.text, str_c(rows[i].text));
        assert_str(resolution.answer, quoted(&arena, rows[i].answer));
        assert_int_equal(resolution.decision, rows[i].decision);
        assert_str(resolution.interaction_id, STR("int_1"));
        assert_str(resolution.match, STR("{}"));
        assert_false(resolution.always);
    }
}

int test_answer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_taken), cmocka_unit_test(answers_refused),
        cmocka_unit_test(long_names),    cmocka_unit_test(bindings),
        cmocka_unit_test(edits),         cmocka_unit_test(damaged),
        cmocka_unit_test(always),        cmocka_unit_test(match_bounds),
        cmocka_unit_test(sizes),         cmocka_unit_test(long_labels),
        cmocka_unit_test(plain),         cmocka_unit_test(nul),
    };
    return cmocka_run_group_tests_name("agent/answer", tests, NULL, NULL);
}

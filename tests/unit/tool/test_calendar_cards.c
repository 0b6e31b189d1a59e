/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards of the calendar pack: what they say, that each of them compiles in both languages, and that
 * nothing a person wrote becomes more than text. In JSON written here ' stands for ".
 */
#include "tool/calendar_cards.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "ui/compile.h"

static const char *const locales[] = {"en", "zh-CN"};

static str quoted(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    return str_c(copy);
}

/* ---- what every card must be ---- */

/* Links lead to the export, calls to the pack, and no text is markdown. */
static void check_tree(const struct json *value)
{
    for (const struct json *n = value->child; n; n = n->next) {
        if (str_eq(n->key, STR("url"))) assert_str(n->text, STR("/api/v1/agent/calendar.ics"));
        if (str_eq(n->key, STR("format"))) assert_str(n->text, STR("plain"));
        if (str_eq(n->key, STR("toolId")))
            assert_true(str_eq(n->text, STR("calendar_delete")) ||
                        str_eq(n->text, STR("calendar_share")));
        check_tree(n);
    }
}

/* The hints, after a look at what the compiler makes of them. */
static str card_of(struct arena *arena, const char *tool, const struct tool_result *result,
                   const char *locale)
{
    str hints = calendar_card(arena, str_c(tool), result, str_c(locale));
    assert_str(calendar_card(arena, str_c(tool), result, str_c(locale)), hints);
    assert_true(hints.len > 0 && str_find_char(hints, '\n') < 0);

    struct json *json = NULL;
    str schema = STR_EMPTY;
    struct fault why = {0};
    struct ui_context context = {.locale = str_c(locale)};
    assert_int_equal(json_parse(arena, hints, &json, NULL), OK);
    if (ui_compile(arena, json, &context, &schema, &why))
        fail_msg("%s %s in %.*s", why.field, why.text, STR_ARG(hints));
    assert_true(str_find(schema, STR("too long to show")) < 0);
    assert_true(str_find(schema, STR("其余部分已省略")) < 0);
    assert_int_equal(json_parse(arena, schema, &json, NULL), OK);
    check_tree(json);
    return hints;
}

/* ---- what they say ---- */

#define TIMES "'start_time':'2026-11-16T15:00:00+08:00','end_time':'2026-11-16T16:00:00+08:00'"
#define FILE_BUTTON(label)                                                 \
    "{'label':'" label "','style':'secondary','icon':'download','action':" \
    "{'type':'url','url':'/api/v1/agent/calendar.ics'}}"
#define FILE_EN FILE_BUTTON("Download my calendar (.ics)")
#define FILE_ZH FILE_BUTTON("下载我的日历 (.ics)")
#define SHARE_BUTTON(label, target)                                                      \
    "{'label':'" label "','style':'secondary','icon':'share-2','action':{'type':'tool'," \
    "'toolId':'calendar_share','params':{'id':'evt_1','target':'" target "'}}}"
#define DELETE_BUTTON(label)                                                          \
    "{'label':'" label "','style':'danger','icon':'trash-2','action':{'type':'tool'," \
    "'toolId':'calendar_delete','params':{'id':'evt_1'}}}"
#define DELETE_EN DELETE_BUTTON("Delete")
#define DELETE_ZH DELETE_BUTTON("删除")
#define PICK(label, id)                                                                      \
    "{'title':'" id "','icon':'user','actions':[{'label':'" label "','style':'secondary',"   \
    "'icon':'check','action':{'type':'payload','payload':{'user':{'id':'" id "','name':'" id \
    "'}}}}]}"

/* Whole cards, byte for byte. */
static void cards(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *result, *locale, *hints;
    } rows[] = {
        {"calendar_write",
         "{'id':'evt_1','title':'Review','start_time':'2026-11-16T15:00:00+08:00',"
         "'end_time':'2026-11-16T16:00:00+08:00','location':'Room 1','attendees':['bob','小明'],"
         "'conflicts':[]}",
         "en",
         "{'version':'2.1','intent':'data','status':'success','title':'Event created',"
         "'icon':'calendar-check','items':["
         "{'key':'title','label':'Title','value':'Review'},"
         "{'key':'time','label':'Time','value':'2026-11-16 15:00–16:00 (Mon)'},"
         "{'key':'timezone','label':'Time zone','value':'UTC+08:00'},"
         "{'key':'location','label':'Location','value':'Room 1'},"
         "{'key':'attendees','label':'Attendees','value':'bob, 小明'},"
         "{'key':'id','label':'Id','value':'evt_1','copyable':true}],'actions':[" FILE_EN
         "," SHARE_BUTTON("Share with bob", "bob") "," SHARE_BUTTON("Share with 小明",
                                                                    "小明") "," DELETE_EN "]}"},
        {"calendar_write",
         "{'id':'evt_1','title':'评审会'," TIMES ",'conflicts':[{'id':'evt_2','title':'午饭',"
         "'start_time':'2026-11-16T15:30:00+08:00','end_time':'2026-11-16T17:00:00+08:00'},"
         "{'id':'evt_3','title':'Call','start_time':'2026-11-16T07:30:00Z',"
         "'end_time':'2026-11-16T08:30:00Z'}]}",
         "zh-CN",
         "{'version':'2.1','intent':'data','status':'success','title':'已创建日程',"
         "'icon':'calendar-check','items':["
         "{'key':'title','label':'标题','value':'评审会'},"
         "{'key':'time','label':'时间','value':'2026-11-16 15:00–16:00（周一）'},"
         "{'key':'timezone','label':'时区','value':'UTC+08:00'},"
         "{'key':'id','label':'编号','value':'evt_1','copyable':true}],'sections':["
         "{'title':'时间冲突','description':'与 2 个日程时间重叠','status':'warning',"
         "'icon':'triangle-alert','listItems':["
         "{'title':'午饭','subtitle':'2026-11-16 15:30–17:00（周一）'},"
         "{'title':'Call','subtitle':'2026-11-16 07:30–08:30（周一） "
         "UTC'}]}],'actions':[" FILE_ZH "," DELETE_ZH "]}"},
        {"calendar_read",
         "{'count':2,'events':[{'id':'evt_1','title':'Review'," TIMES ",'location':'Room 1',"
         "'attendees':['bob','ann']},{'id':'evt_9','title':'Party',"
         "'start_time':'2026-11-16T20:00:00+08:00','end_time':'2026-11-17T02:00:00+08:00',"
         "'shared_by':'bob'}],'from':'2026-11-16T00:00:00+08:00',"
         "'to':'2026-11-17T00:00:00+08:00'}",
         "en",
         "{'version':'2.1','intent':'list','status':'info','title':'2 events',"
         "'icon':'calendar-days','description':'2026-11-16 00:00 to 2026-11-17 00:00 UTC+08:00',"
         "'listItems':[{'title':'Review','subtitle':'2026-11-16 15:00–16:00 (Mon)',"
         "'description':'Room 1 · bob, ann','actions':[" DELETE_EN "]},"
         "{'title':'Party','subtitle':'2026-11-16 20:00 (Mon) – 2026-11-17 02:00 (Tue)',"
         "'badge':{'label':'From bob','status':'info'}}],'actions':[" FILE_EN "]}"},
        {"calendar_read",
         "{'count':0,'events':[],'from':'2026-11-16T00:00:00+08:00','to':'2026-11-17T00:00:00Z'}",
         "zh-CN",
         "{'version':'2.1','intent':'list','status':'info','title':'没有日程',"
         "'icon':'calendar-days','description':'2026-11-16 00:00 UTC+08:00 至 2026-11-17 00:00 "
         "UTC',"
         "'body':'可以换一段时间查询，也可以让我新建一个日程。'}"},
        {"calendar_delete", "{'id':'evt_1','title':'评审会'," TIMES "}", "zh-CN",
         "{'version':'2.1','intent':'status','status':'success','title':'已删除日程',"
         "'icon':'calendar-x','items':[{'key':'title','label':'标题','value':'评审会'},"
         "{'key':'time','label':'时间','value':'2026-11-16 15:00–16:00（周一）'},"
         "{'key':'timezone','label':'时区','value':'UTC+08:00'},"
         "{'key':'id','label':'编号','value':'evt_1','copyable':true}]}"},
        {"calendar_delete", "{'id':'evt_1','title':'Review'}", "en", /* without its time */
         "{'version':'2.1','intent':'status','status':'success','title':'Event deleted',"
         "'icon':'calendar-x','items':[{'key':'title','label':'Title','value':'Review'},"
         "{'key':'id','label':'Id','value':'evt_1','copyable':true}]}"},
        {"calendar_share", "{'id':'evt_1','title':'Review'," TIMES ",'target':'bob'}", "en",
         "{'version':'2.1','intent':'status','status':'success','title':'Event shared',"
         "'icon':'share-2','items':[{'key':'title','label':'Title','value':'Review'},"
         "{'key':'time','label':'Time','value':'2026-11-16 15:00–16:00 (Mon)'},"
         "{'key':'timezone','label':'Time zone','value':'UTC+08:00'},"
         "{'key':'target','label':'Shared with','value':'bob'},"
         "{'key':'id','label':'Id','value':'evt_1','copyable':true}]}"},
        {"user_resolve",
         "{'users':[{'id':'bob','name':'bob'},{'id':'Bobby','name':'Bobby'}],'count':2}", "en",
         "{'version':'2.1','intent':'list','status':'info','title':'2 users found',"
         "'icon':'users','listItems':[" PICK("Choose", "bob") "," PICK("Choose", "Bobby") "]}"},
        {"user_resolve", "{'users':[{'id':'小明','name':'小明'}],'count':1,'more':true}", "zh-CN",
         "{'version':'2.1','intent':'list','status':'info','title':'找到 1 位用户','icon':'users',"
         "'body':'还有其他用户，请提供更完整的名字。','listItems':[" PICK("选择", "小明") "]}"},
        {"user_resolve", "{'users':[],'count':0}", "en",
         "{'version':'2.1','intent':'list','status':'info','title':'No user found','icon':'users',"
         "'body':'Try another part of the name.'}"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tool_result result = {.result = quoted(&arena, rows[i].result)};
        assert_str(card_of(&arena, rows[i].tool, &result, rows[i].locale),
                   quoted(&arena, rows[i].hints));
        for (size_t k = 0; k < COUNT(locales); k++)
            card_of(&arena, rows[i].tool, &result, locales[k]);
    }
}

/* How a time is told. */
static void times(void **state)
{
    (void)state;
    static const struct {
        const char *start, *end, *english, *chinese;
        bool zone; /* one for the event */
    } rows[] = {
        {"2026-11-15T09:00:00Z", "2026-11-15T09:30:00Z", "2026-11-15 09:00–09:30 (Sun)",
         "2026-11-15 09:00–09:30（周日）", true},
        {"2026-11-17T09:00:00.5Z", "2026-11-17T09:30:00Z", "2026-11-17 09:00–09:30 (Tue)",
         "2026-11-17 09:00–09:30（周二）", true},
        {"2026-11-18T09:00:00-05:30", "2026-11-18T09:00:00-05:30", "2026-11-18 09:00 (Wed)",
         "2026-11-18 09:00（周三）", true},
        {"2026-11-19T23:00:00+08:00", "2026-11-20T00:30:00+08:00",
         "2026-11-19 23:00 (Thu) – 2026-11-20 00:30 (Fri)",
         "2026-11-19 23:00（周四） – 2026-11-20 00:30（周五）", true},
        {"2026-11-16T15:00:00+08:00", "2026-11-16T08:30:00Z",
         "2026-11-16 15:00 (Mon) UTC+08:00 – 2026-11-16 08:30 (Mon) UTC",
         "2026-11-16 15:00（周一） UTC+08:00 – 2026-11-16 08:30（周一） UTC", false},
        {"1969-12-31T10:00:00Z", "1970-01-03T10:00:00Z",
         "1969-12-31 10:00 (Wed) – 1970-01-03 10:00 (Sat)",
         "1969-12-31 10:00（周三） – 1970-01-03 10:00（周六）", true},
        {"soon", "later", "soon later", "soon later", true}, /* not ours, and shown all the same */
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = arena_printf(&arena, "{'id':'e','title':'x','start_time':'%s','end_time':'%s'}",
                                rows[i].start, rows[i].end);
        struct tool_result result = {.result = quoted(&arena, text.p)};
        for (size_t k = 0; k < COUNT(locales); k++) {
            str hints = card_of(&arena, "calendar_write", &result, locales[k]);
            str time =
                arena_printf(&arena, "\"value\":\"%s\"}", k ? rows[i].chinese : rows[i].english);
            if (str_find(hints, time) < 0) fail_msg("no %s in %s", time.p, hints.p);
            bool zone = str_find(hints, STR("\"timezone\"")) >= 0;
            assert_int_equal(zone, rows[i].zone && rows[i].start[0] != 's');
        }
    }
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *titles[COUNT(locales)];
    } rows[] = {
        {"calendar_write", {"The event was not created", "日程没有创建"}},
        {"calendar_read", {"The calendar could not be read", "没有查到日程"}},
        {"calendar_delete", {"The event was not deleted", "日程没有删除"}},
        {"calendar_share", {"The event was not shared", "日程没有分享"}},
        {"user_resolve", {"The user could not be looked up", "没有查到用户"}},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tool_result result = {.result = STR("{\"id\":\"not looked at\"}"),
                                     .error = STR("there is no event \"x\"\n**bold**")};
        for (size_t k = 0; k < COUNT(locales); k++)
            assert_str(card_of(&arena, rows[i].tool, &result, locales[k]),
                       arena_printf(&arena,
                                    "{\"version\":\"2.1\",\"intent\":\"status\",\"status\":"
                                    "\"error\",\"title\":\"%s\",\"body\":"
                                    "\"there is no event \\\"x\\\" **bold**\"}",
                                    rows[i].titles[k]));
    }
}

/* Which events of a list are in each other's way: pairs of hours of one day, and who has them. */
static void conflicts(void **state)
{
    (void)state;
    static const struct {
        const char *events[4]; /* "15:00 16:00 own" */
        const char *marks;     /* x: a conflict */
    } rows[] = {
        {{"09:00 10:00 own", "10:00 11:00 own", "12:00 13:00 own"}, "..."},
        {{"09:00 12:00 own", "10:00 11:00 own", "12:00 13:00 own"}, "xx."},
        {{"09:00 12:00 own", "10:00 11:00 bob", "11:30 13:00 own"}, "x.x"},
        {{"09:00 10:00 own", "09:30 09:30 own"}, "xx"},
        {{"09:00 10:00 own", "09:00 10:00 bob", "09:00 10:00 bob"}, "..."},
        {{"09:00 18:00 own", "10:00 11:00 own", "12:00 13:00 own", "17:59 18:30 own"}, "xxxx"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 64 * 1024);
        buf_append(&out, STR("{'events':["));
        for (size_t k = 0; k < 4 && rows[i].events[k]; k++)
            buf_printf(&out,
                       "%s{'id':'e','title':'x','start_time':'2026-11-16T%.5s:00Z',"
                       "'end_time':'2026-11-16T%.5s:00Z'%s}",
                       k ? "," : "", rows[i].events[k], rows[i].events[k] + 6,
                       strstr(rows[i].events[k], "own") ? "" : ",'shared_by':'bob'");
        buf_append(&out, STR("]}"));
        buf_char(&out, '\0');
        struct tool_result result = {.result = quoted(&arena, out.p)};
        struct json *json = NULL;
        str hints = card_of(&arena, "calendar_read", &result, "en");
        assert_int_equal(json_parse(&arena, hints, &json, NULL), OK);
        const struct json *item = json_get(json, STR("listItems"))->child;
        for (const char *mark = rows[i].marks; *mark; mark++, item = item->next) {
            const struct json *label = json_get(json_get(item, STR("badge")), STR("label"));
            assert_int_equal(str_eq(json_text(label), STR("Conflict")), *mark == 'x');
        }
        assert_null(item);
    }
}

/* A card within the compiler's limits, however much there is: all texts as long as they may be. */
static void the_longest(void **state)
{
    (void)state;
    static const struct {
        unsigned count;
        bool more;
        const char *title, *body;
    } rows[] = {
        {1, false, "\"title\":\"1 event\"", NULL},
        {40, false, "\"title\":\"40 events\"", NULL},
        {41, false, "\"title\":\"41 events\"", "These are the first 40; ask"},
        {200, true, "\"title\":\"More than 200 events\"", "These are the first 40; ask"},
        {7, true, "\"title\":\"More than 7 events\"", "These are the first 7; ask"},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    AUTO(buf_done) struct buf name;
    buf_init(&name, 1024);
    for (size_t i = 0; i < 200; i++) buf_append(&name, STR("😀"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 64 * 1024 * 1024);
        struct json_writer w;
        json_write_begin(&w, &out);
        json_object(&w);
        json_key(&w, STR("events"));
        json_array(&w);
        for (unsigned k = 0; k < rows[i].count; k++) {
            json_object(&w);
            json_member(&w, STR("id"), STR("evt_0123456789abcdefghijklmnop"));
            json_member(&w, STR("title"), buf_str(&name));
            json_member(&w, STR("location"), buf_str(&name));
            json_member(&w, STR("start_time"), STR("2026-11-16T15:00:00+08:00"));
            json_member(&w, STR("end_time"), STR("2026-11-17T15:00:00+09:00"));
            json_key(&w, STR("attendees"));
            json_array(&w);
            for (int n = 0; n < 50; n++) json_string(&w, buf_str(&name));
            json_array_end(&w);
            json_object_end(&w);
        }
        json_array_end(&w);
        if (rows[i].more) {
            json_member_bool(&w, STR("more"), true);
        }
        json_object_end(&w);
        struct tool_result result = {.result = buf_str(&out)};
        str hints = card_of(&arena, "calendar_read", &result, "en");
        if (str_find(hints, str_c(rows[i].title)) < 0) fail_msg("no %s", rows[i].title);
        bool said = str_find(hints, STR("These are the first")) >= 0;
        assert_int_equal(said, rows[i].body != NULL);
        if (rows[i].body) assert_true(str_find(hints, str_c(rows[i].body)) > 0);
        card_of(&arena, "calendar_read", &result, "zh-CN");
    }
}

/* Twenty conflicts and fifty attendees, each as long as it may be. */
static void the_largest_event(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    AUTO(buf_done) struct buf out;
    buf_init(&out, 1024 * 1024);
    AUTO(buf_done) struct buf name;
    buf_init(&name, 1024);
    for (size_t i = 0; i < 200; i++) buf_append(&name, STR("会"));
    str text = arena_printf(&arena, "%.*s", STR_ARG(buf_str(&name)));
    buf_printf(&out, "{'id':'e','title':'%s'," TIMES ",'attendees':[", text.p);
    for (int i = 0; i < 50; i++) buf_printf(&out, "%s'%s'", i ? "," : "", text.p);
    buf_append(&out, STR("],'conflicts':["));
    for (int i = 0; i < CALENDAR_CONFLICTS_MAX; i++)
        buf_printf(&out, "%s{'id':'e','title':'%s'," TIMES "}", i ? "," : "", text.p);
    buf_append(&out, STR("],'more':true}"));
    buf_char(&out, '\0');
    struct tool_result result = {.result = quoted(&arena, out.p)};
    str hints = card_of(&arena, "calendar_write", &result, "en");
    assert_true(str_find(hints, STR("It overlaps with at least 20 other events")) > 0);
    hints = card_of(&arena, "calendar_write", &result, "zh-CN");
    assert_true(str_find(hints, STR("与至少 20 个日程时间重叠")) > 0);
    size_t names = 1;
    for (str rest = hints; str_find(rest, STR("会、会")) >= 0; names++)
        rest = str_drop(rest, (size_t)str_find(rest, STR("会、会")) + 1);
    assert_int_equal(names, 50);
}

/* Buttons that share: for whom, of those who take part. */
static void shares(void **state)
{
    (void)state;
#define LONG "0123456789012345678901234567890123456789"
    static const struct {
        const char *attendees, *labels; /* each behind a | */
    } rows[] = {
        {"[]", ""},
        {"['bob']", "|Share with bob"},
        {"['a','b','c','d']", "|Share with a|Share with b|Share with c"},
        {"[' ','\\u200b','a\\n b']", "|Share with a b"},
        {"['" LONG "x']", "|Share with 012345678901234567890123456789012345678…"},
        {"['" LONG LONG LONG "12345678','" LONG LONG LONG "123456789','z']",
         "|Share with 012345678901234567890123456789012345678…|Share with z"},
        {"[7,null,{}]", ""},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        str text = arena_printf(&arena, "{'id':'e','title':'x'," TIMES ",'attendees':%s}",
                                rows[i].attendees);
        struct tool_result result = {.result = quoted(&arena, text.p)};
        struct json *json = NULL;
        str hints = card_of(&arena, "calendar_write", &result, "en"), labels = STR_EMPTY;
        assert_int_equal(json_parse(&arena, hints, &json, NULL), OK);
        const struct json *action = json_get(json, STR("actions"))->child;
        for (; action; action = action->next) {
            str label = json_text(json_get(action, STR("label")));
            if (str_starts(label, STR("Share")))
                labels = arena_printf(&arena, "%.*s|%.*s", STR_ARG(labels), STR_ARG(label));
        }
        assert_str(labels, str_c(rows[i].labels));
    }
}

/* Markup, JSON, links and marks that turn the line around stay text, or go. */
static void hostile_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "**bold** [click](javascript:alert(1))",
        "<script>alert(1)</script>",
        "\\\"},{\\\"action\\\":{\\\"type\\\":\\\"url\\\",\\\"url\\\":\\\"https://a.example\\\"}}",
        "```\\nrm -rf\\n```",
        "a\\r\\nb\\tc",
        "\\u202egpj.exe\\u2066",
        "{1} {title} %s %n",
        "\\u2028\\u2029\\ufeff",
    };
    static const char *const tools[] = {"calendar_write", "calendar_read", "calendar_delete",
                                        "calendar_share", "user_resolve"};
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *t = texts[i];
        str event =
            arena_printf(&arena,
                         "\"id\":\"%s\",\"title\":\"%s\",\"start_time\":\"%s\",\"end_time\":"
                         "\"%s\",\"location\":\"%s\",\"attendees\":[\"%s\"],"
                         "\"shared_by\":\"%s\",\"target\":\"%s\",\"name\":\"%s\"",
                         t, t, t, t, t, t, t, t, t);
        str text =
            arena_printf(&arena,
                         "{%s,\"conflicts\":[{%s}],\"events\":[{%s},{\"id\":\"%s\","
                         "\"title\":\"%s\"}],\"users\":[{%s}],\"from\":\"%s\",\"to\":\"%s\"}",
                         event.p, event.p, event.p, t, t, event.p, t, t);
        for (size_t k = 0; k < COUNT(tools); k++) {
            struct tool_result result = {.result = text};
            for (size_t n = 0; n < COUNT(locales); n++) {
                str hints = card_of(&arena, tools[k], &result, locales[n]);
                assert_true(str_find(hints, STR("bodyFormat")) < 0);
                struct tool_result failed = {.error = str_c(t)};
                card_of(&arena, tools[k], &failed, locales[n]);
            }
        }
    }
}

/* What is no result of the pack has no card; what lacks members has one without them. */
static void no_results(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *result;
        bool card;
    } rows[] = {
        {"calendar_write", "", false},       {"calendar_write", "[]", false},
        {"calendar_write", "{'id':", false}, {"calendar_write", "{}", true},
        {"calendar_read", "{}", true},       {"calendar_read", "{'events':7,'from':[]}", true},
        {"calendar_share", "{}", true},      {"user_resolve", "{'users':{}}", true},
        {"place_order", "{}", false},        {"", "{}", false},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tool_result result = {.result = quoted(&arena, rows[i].result)};
        if (rows[i].card)
            card_of(&arena, rows[i].tool, &result, "en");
        else
            assert_str(calendar_card(&arena, str_c(rows[i].tool), &result, STR("en")), STR_EMPTY);
    }
}

int test_calendar_cards(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards),       cmocka_unit_test(times),
        cmocka_unit_test(errors),      cmocka_unit_test(conflicts),
        cmocka_unit_test(the_longest), cmocka_unit_test(the_largest_event),
        cmocka_unit_test(shares),      cmocka_unit_test(hostile_texts),
        cmocka_unit_test(no_results),
    };
    return cmocka_run_group_tests_name("tool/calendar_cards", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "socket/client_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"

/* Single quotes stand for double ones. */
static str quoted(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *at = copy; *at; at++)
        if (*at == '\'') *at = '"';
    return str_c(copy);
}

/* What a use case is given says what the text does. */
static void check_trees(struct arena *arena, const struct client_frame *frame)
{
    struct json *body = NULL;
    bool answers = frame->type == FRAME_CLARIFY || frame->type == FRAME_CONFIRM;
    assert_int_equal(frame->answer != NULL, answers);
    assert_int_equal(frame->content != NULL, frame->type == FRAME_MESSAGE);
    if (!frame->body.len) return;
    assert_int_equal(json_parse(arena, frame->body, &body, NULL), OK);
    if (answers) {
        const struct json *want = body->child, *got = frame->answer->child;
        assert_str(frame->answer->raw, frame->body);
        assert_int_equal(frame->answer->type, JSON_OBJECT);
        assert_int_equal(frame->answer->count, body->count);
        for (; want && got; want = want->next, got = got->next) {
            assert_str(got->key, want->key);
            assert_str(got->raw, want->raw);
        }
        assert_true(!want && !got);
        return;
    }
    const struct json *message = json_at(json_get(body, STR("messages")), 0);
    assert_str(json_text(json_get(body, STR("runId"))), frame->run_id);
    assert_str(json_text(json_get(message, STR("id"))), frame->message_id);
    assert_str(json_get(message, STR("content"))->raw, frame->content->raw);
}

#define BOTH (SOCKET_NATIVE | SOCKET_CLARIFY)

static void good_ones(void **state)
{
    (void)state;
    static const struct {
        const char *text, *id;
        struct client_frame want;
        const char *session_id, *request_id, *body;
    } rows[] = {
        {"{'type':'subscribe','sessionId':'t1'}",
         "",
         {.type = FRAME_SUBSCRIBE, .events = BOTH},
         "t1",
         "",
         ""},
        {"{'sessionId':'t1','after':12,'events':['native','clarify'],'id':7,'type':'subscribe'}",
         "7",
         {.type = FRAME_SUBSCRIBE, .events = BOTH, .has_after = true, .after = 12},
         "t1",
         "",
         ""},
        {"{'type':'subscribe','sessionId':'t1','after':0,'events':['ask-user']}",
         "",
         {.type = FRAME_SUBSCRIBE, .events = SOCKET_ASK_USER, .has_after = true},
         "t1",
         "",
         ""},
        {"{'type':'subscribe','sessionId':'a.b_c:D-9','events':['ask-user','native']}",
         "",
         {.type = FRAME_SUBSCRIBE, .events = SOCKET_ASK_USER | SOCKET_NATIVE},
         "a.b_c:D-9",
         "",
         ""},
        {"{'type':'subscribe','sessionId':'t1','after':18446744073709551615}",
         "",
         {.type = FRAME_SUBSCRIBE, .events = BOTH, .has_after = true, .after = UINT64_MAX},
         "t1",
         "",
         ""},
        {"{'type':'subscribe','inbox':true,'id':'x'}",
         "'x'",
         {.type = FRAME_SUBSCRIBE, .inbox = true},
         "",
         "",
         ""},
        {"{'type':'unsubscribe','sessionId':'t1'}", "", {.type = FRAME_UNSUBSCRIBE}, "t1", "", ""},
        {"{'type':'unsubscribe','inbox':true}",
         "",
         {.type = FRAME_UNSUBSCRIBE, .inbox = true},
         "",
         "",
         ""},
        {"{'type':'message','sessionId':'t1','content':'hi \\u0041'}",
         "",
         {.type = FRAME_MESSAGE},
         "t1",
         "",
         "{'threadId':'t1','messages':[{'role':'user','content':'hi \\u0041'}]}"},
        {"{'type':'message','id':-1.50e3,'sessionId':'t1','content':[{'type':'text','text':'a'}],"
         "'messageId':'m 1','runId':'r\\n'}",
         "-1.50e3",
         {.type = FRAME_MESSAGE},
         "t1",
         "",
         "{'threadId':'t1','runId':'r\\n','messages':[{'id':'m 1','role':'user',"
         "'content':[{'type':'text','text':'a'}]}]}"},
        {"{'type':'clarify_response','sessionId':'t1','requestId':'int_1','answer':'2'}",
         "",
         {.type = FRAME_CLARIFY},
         "t1",
         "int_1",
         "{'answer':'2'}"},
        {"{'type':'clarify_response','sessionId':'t1','answer':''}",
         "",
         {.type = FRAME_CLARIFY},
         "t1",
         "",
         "{'answer':''}"},
        {"{'type':'clarify_response','requestId':'int_1','answer':{'choices':['c1'],'text':'x'}}",
         "",
         {.type = FRAME_CLARIFY},
         "",
         "int_1",
         "{'choices':['c1'],'text':'x'}"},
        {"{'type':'confirm_response','sessionId':'t1','requestId':'int_2','decision':'approve',"
         "'binding':'k1:x','always':{'scope':'user'},'id':1}",
         "1",
         {.type = FRAME_CONFIRM},
         "t1",
         "int_2",
         "{'decision':'approve','binding':'k1:x','always':{'scope':'user'}}"},
        {"{'type':'confirm_response','requestId':'int_2','\\u0061 \\\" b':1}",
         "",
         {.type = FRAME_CONFIRM},
         "",
         "int_2",
         "{'a \\\" b':1}"},
        {"{'type':'stop','sessionId':'t1','id':''}", "''", {.type = FRAME_STOP}, "t1", "", ""},
        {" { 'type' : 'ping' } ", "", {.type = FRAME_PING}, "", "", ""},
        {"{'type':'ping','id':'\\u00e9\\n'}", "'\\u00e9\\n'", {.type = FRAME_PING}, "", "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct client_frame frame;
        struct fault why = {0};
        str id;
        arena_init(&arena);
        enum err e = client_frame_parse(&arena, quoted(&arena, rows[i].text), &id, &frame, &why);
        if (e) fail_msg("%s: %s", rows[i].text, why.text);
        assert_str(id, quoted(&arena, rows[i].id));
        assert_int_equal(frame.type, rows[i].want.type);
        assert_int_equal(frame.inbox, rows[i].want.inbox);
        assert_int_equal(frame.events, rows[i].want.events);
        assert_int_equal(frame.has_after, rows[i].want.has_after);
        assert_int_equal(frame.after, rows[i].want.after);
        assert_str(frame.session_id, str_c(rows[i].session_id));
        assert_str(frame.request_id, str_c(rows[i].request_id));
        assert_str(frame.body, quoted(&arena, rows[i].body));
        check_trees(&arena, &frame);
        arena_done(&arena);
    }
}

static void bad_ones(void **state)
{
    (void)state;
    static const struct {
        const char *text, *field, *id;
    } rows[] = {
        /* no frame at all */
        {"", "", ""},
        {"hello", "", ""},
        {"{'type':'ping'", "", ""},
        {"{'type':'ping','type':'ping'}", "", ""},
        {"[]", "", ""},
        {"'ping'", "", ""},
        {"null", "", ""},
        {"{}", "type", ""},
        {"{'id':3}", "type", "3"},
        {"{'type':7,'id':'a'}", "type", "'a'"},
        {"{'type':'Ping','id':'a'}", "type", "'a'"},
        {"{'type':'pingu','id':'a'}", "type", "'a'"},
        {"{'type':'ack','id':1,'data':{}}", "type", "1"},
        /* ids that cannot be said again */
        {"{'type':'ping','id':null}", "id", ""},
        {"{'type':'ping','id':true}", "id", ""},
        {"{'type':'ping','id':['a']}", "id", ""},
        {"{'type':'ping','id':{}}", "id", ""},
        /* fields nobody knows */
        {"{'type':'ping','sessionId':'t1'}", "sessionId", ""},
        {"{'type':'stop','sessionId':'t1','runId':'r1','id':1}", "runId", "1"},
        {"{'type':'subscribe','sessionId':'t1','Events':[]}", "Events", ""},
        {"{'type':'subscribe','sessionId':'t1','runId':'r1'}", "runId", ""},
        {"{'type':'message','sessionId':'t1','content':'a','agent':'b'}", "agent", ""},
        {"{'type':'message','sessionId':'t1','content':'a','role':'system'}", "role", ""},
        {"{'type':'clarify_response','sessionId':'t1','answer':'a','decision':'approve'}",
         "decision", ""},
        /* sessions */
        {"{'type':'subscribe'}", "sessionId", ""},
        {"{'type':'subscribe','sessionId':''}", "sessionId", ""},
        {"{'type':'subscribe','sessionId':7}", "sessionId", ""},
        {"{'type':'subscribe','sessionId':null}", "sessionId", ""},
        {"{'type':'subscribe','sessionId':'a b'}", "sessionId", ""},
        {"{'type':'subscribe','sessionId':'a/b'}", "sessionId", ""},
        {"{'type':'stop'}", "sessionId", ""},
        {"{'type':'unsubscribe'}", "sessionId", ""},
        {"{'type':'message','content':'a'}", "sessionId", ""},
        {"{'type':'clarify_response','answer':'a'}", "sessionId", ""},
        {"{'type':'confirm_response','sessionId':'','requestId':'i','decision':'approve'}",
         "sessionId", ""},
        /* where to begin, and what to send */
        {"{'type':'subscribe','sessionId':'t1','after':'3'}", "after", ""},
        {"{'type':'subscribe','sessionId':'t1','after':-1}", "after", ""},
        {"{'type':'subscribe','sessionId':'t1','after':1.5}", "after", ""},
        {"{'type':'subscribe','sessionId':'t1','after':null}", "after", ""},
        {"{'type':'subscribe','sessionId':'t1','after':18446744073709551616}", "after", ""},
        {"{'type':'subscribe','sessionId':'t1','events':'native'}", "events", ""},
        {"{'type':'subscribe','sessionId':'t1','events':[]}", "events", ""},
        {"{'type':'subscribe','sessionId':'t1','events':null}", "events", ""},
        {"{'type':'subscribe','sessionId':'t1','events':['native','x']}", "events[1]", ""},
        {"{'type':'subscribe','sessionId':'t1','events':[1]}", "events[0]", ""},
        {"{'type':'subscribe','sessionId':'t1','events':['native','native','native','native']}",
         "events", ""},
        {"{'type':'subscribe','inbox':false}", "inbox", ""},
        {"{'type':'subscribe','inbox':1}", "inbox", ""},
        {"{'type':'subscribe','inbox':true,'sessionId':'t1'}", "sessionId", ""},
        {"{'type':'subscribe','inbox':true,'after':1}", "after", ""},
        {"{'type':'unsubscribe','inbox':true,'sessionId':'t1'}", "sessionId", ""},
        /* messages and answers */
        {"{'type':'message','sessionId':'t1'}", "content", ""},
        {"{'type':'message','sessionId':'t1','content':{}}", "content", ""},
        {"{'type':'message','sessionId':'t1','content':7}", "content", ""},
        {"{'type':'message','sessionId':'t1','content':'a','messageId':7}", "messageId", ""},
        {"{'type':'message','sessionId':'t1','content':'a','runId':''}", "runId", ""},
        {"{'type':'clarify_response','sessionId':'t1','requestId':'i'}", "answer", ""},
        {"{'type':'clarify_response','sessionId':'t1','requestId':'i','answer':7}", "answer", ""},
        {"{'type':'clarify_response','sessionId':'t1','requestId':'i','answer':['a']}", "answer",
         ""},
        {"{'type':'clarify_response','sessionId':'t1','requestId':7,'answer':'a'}", "requestId",
         ""},
        {"{'type':'clarify_response','sessionId':'t1','requestId':'','answer':'a'}", "requestId",
         ""},
        {"{'type':'clarify_response','sessionId':'t1','answer':{'choices':['c1']}}", "requestId",
         ""},
        {"{'type':'clarify_response','requestId':'i','answer':{'decision':'approve'}}",
         "answer.decision", ""},
        {"{'type':'clarify_response','requestId':'i','answer':{'answer':'a','binding':'b'}}",
         "answer.binding", ""},
        {"{'type':'confirm_response','sessionId':'t1','decision':'approve'}", "requestId", ""},
        {"{'type':'confirm_response','requestId':{},'decision':'approve'}", "requestId", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct client_frame frame = {.type = FRAME_TYPE_COUNT};
        struct fault why = {0};
        str id;
        arena_init(&arena);
        enum err e = client_frame_parse(&arena, quoted(&arena, rows[i].text), &id, &frame, &why);
        if (e != ERR_INVALID_FIELD) fail_msg("taken: %s", rows[i].text);
        assert_string_equal(why.field, rows[i].field);
        assert_true(why.text[0]);
        assert_str(id, quoted(&arena, rows[i].id));
        assert_int_equal(frame.type, FRAME_TYPE_COUNT); /* untouched */
        arena_done(&arena);
    }
}

/* An id of the longest kind is said again, one byte more is refused; so is a session's. */
static void long_ones(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        size_t len;
        bool taken;
    } rows[] = {
        {"id", WS_ID_BYTES_MAX - 2, true},
        {"id", WS_ID_BYTES_MAX - 1, false},
        {"sessionId", 128, true},
        {"sessionId", 129, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct client_frame frame;
        struct fault why = {0};
        str id;
        arena_init(&arena);
        char *text = arena_alloc(&arena, rows[i].len + 1);
        memset(text, 'a', rows[i].len);
        bool session = strcmp(rows[i].field, "sessionId") == 0;
        str json = arena_printf(&arena, "{\"type\":\"stop\"%s,\"%s\":\"%s\"}",
                                session ? "" : ",\"sessionId\":\"t\"", rows[i].field, text);
        enum err e = client_frame_parse(&arena, json, &id, &frame, &why);
        assert_int_equal(e, rows[i].taken ? OK : ERR_INVALID_FIELD);
        if (e) assert_string_equal(why.field, rows[i].field);
        arena_done(&arena);
    }
}

int test_client_frame(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones),
        cmocka_unit_test(bad_ones),
        cmocka_unit_test(long_ones),
    };
    return cmocka_run_group_tests_name("app/client_frame", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes are written as words: `name=T` is required, `name?=T` may be missing, and anything else is
 * refused, since a client of 1.0 strips it and warns. T is s (string), u (a whole number that is not
 * negative), b (boolean), o (object), l (list), c (string, or list of parts), j (any but null).
 */
#include "wire/client.h"

#include <string.h>

#include "base/json.h"
#include "check.h"
#include "wire/stored.h"

struct client_open {
    const char *what; /* "text", "call", ... */
    str id;
    struct client_open *next;
};

#define refuse(client, frame, ...)                                            \
    do {                                                                      \
        print_message("frame %zu: %.*s\n", (client)->frames, STR_ARG(frame)); \
        fail_msg(__VA_ARGS__);                                                \
    } while (0)

void client_init(struct client *client, struct arena *arena, enum agui_profile profile)
{
    *client = (struct client){.arena = arena, .profile = profile};
}

/* ---- shapes ---- */

static bool is_whole(const struct json *value)
{
    uint64_t number;
    return json_u64(value, &number) == OK;
}

static bool fits(const struct json *value, char type)
{
    switch (type) {
    case 's':
        return value->type == JSON_STRING;
    case 'u':
        return is_whole(value);
    case 'b':
        return value->type == JSON_TRUE || value->type == JSON_FALSE;
    case 'o':
        return value->type == JSON_OBJECT;
    case 'l':
        return value->type == JSON_ARRAY;
    case 'c':
        return value->type == JSON_STRING || value->type == JSON_ARRAY;
    default:
        return value->type != JSON_NULL;
    }
}

/* The word of this member; NULL if the shape has none. */
static const char *word_of(const char *shape, str key)
{
    for (const char *at = shape; (at = memmem(at, strlen(at), key.p, key.len)); at++) {
        char before = at == shape ? ' ' : at[-1], behind = at[key.len];
        if (before == ' ' && (behind == '=' || behind == '?')) return at;
    }
    return NULL;
}

static void check_shape(const struct client *client, str frame, const struct json *object,
                        const char *shape)
{
    if (!object || object->type != JSON_OBJECT) refuse(client, frame, "no object: %s", shape);
    for (const struct json *m = object->child; m; m = m->next) {
        const char *word = word_of(shape, m->key);
        if (!word) refuse(client, frame, "unknown member %.*s", STR_ARG(m->key));
        if (!fits(m, strchr(word, '=')[1]))
            refuse(client, frame, "%.*s has a wrong type", STR_ARG(m->key));
    }
    for (str rest = str_c(shape); rest.p;) {
        str word = str_split(&rest, ' ');
        ptrdiff_t equals = str_find_char(word, '=');
        if (equals <= 0 || word.p[equals - 1] == '?') continue;
        if (!json_get(object, (str){word.p, (size_t)equals}))
            refuse(client, frame, "%.*s is missing", (int)equals, word.p);
    }
}

static const char *const role_shapes[][2] = {
    {"user", "id=s role=s content=c"},
    {"system", "id=s role=s content=s"},
    {"reasoning", "id=s role=s content=s"},
    {"assistant", "id=s role=s content?=s toolCalls?=l metadata?=o"},
    {"tool", "id=s role=s toolCallId=s content=s error?=s metadata?=o"},
};

static const char *const part_shapes[][3] = {
    {"text", "type=s text=s", "type=s text=s"},
    {"binary", "type=s mimeType=s id?=s url?=s filename?=s", NULL},
    {"image", NULL, "type=s source=o metadata?=o"},
    {"audio", NULL, "type=s source=o metadata?=o"},
    {"video", NULL, "type=s source=o metadata?=o"},
    {"document", NULL, "type=s source=o metadata?=o"},
};

static void check_part(const struct client *client, str frame, const struct json *part)
{
    str type = json_text(json_get(part, STR("type")));
    const struct json *source = json_get(part, STR("source"));
    for (size_t i = 0; i < COUNT(part_shapes); i++) {
        const char *shape = part_shapes[i][client->profile == AGUI_OLD ? 1 : 2];
        if (!shape || !str_eq(type, str_c(part_shapes[i][0]))) continue;
        check_shape(client, frame, part, shape);
        if (source) check_shape(client, frame, source, "type=s value=s mimeType?=s");
        return;
    }
    refuse(client, frame, "this client takes no part %.*s", STR_ARG(type));
}

static void check_message(const struct client *client, str frame, const struct json *message)
{
    str role = json_text(json_get(message, STR("role")));
    const struct json *content = json_get(message, STR("content"));
    const struct json *calls = json_get(message, STR("toolCalls"));
    size_t i = 0;
    while (i < COUNT(role_shapes) && !str_eq(role, str_c(role_shapes[i][0]))) i++;
    if (i == COUNT(role_shapes)) refuse(client, frame, "no role: %.*s", STR_ARG(role));
    check_shape(client, frame, message, role_shapes[i][1]);
    if (content && content->type == JSON_ARRAY)
        for (const struct json *part = content->child; part; part = part->next)
            check_part(client, frame, part);
    for (const struct json *call = calls ? calls->child : NULL; call; call = call->next) {
        check_shape(client, frame, call, "id=s type=s function=o");
        check_shape(client, frame, json_get(call, STR("function")), "name=s arguments=s");
    }
}

static void check_interrupts(struct client *client, str frame, const struct json *list)
{
    if (!list || !list->count) refuse(client, frame, "an interrupt outcome without interrupts");
    client->interrupts = list->count;
    for (const struct json *i = list->child; i; i = i->next) {
        check_shape(client, frame, i,
                    client->profile == AGUI_OLD
                        ? "id=s reason=s message=s toolCallId?=s responseSchema?=o metadata?=o"
                        : "id=s reason=s message=s toolCallId?=s responseSchema?=o metadata?=o "
                          "expiresAt?=s");
        for (const struct json *j = i->next; j; j = j->next)
            if (str_eq(json_text(json_get(i, STR("id"))), json_text(json_get(j, STR("id")))))
                refuse(client, frame, "two interrupts of one id");
    }
}

static void check_outcome(struct client *client, str frame, const struct json *event)
{
    const struct json *outcome = json_get(event, STR("outcome"));
    const struct json *usage = json_get(event, STR("usage"));
    str type = json_text(json_get(outcome, STR("type")));
    bool old = client->profile == AGUI_OLD;
    client->interrupts = 0;
    if (str_eq(type, STR("interrupt"))) {
        check_shape(client, frame, outcome, "type=s interrupts=l");
        check_interrupts(client, frame, json_get(outcome, STR("interrupts")));
    } else if (str_eq(type, STR("success"))) {
        check_shape(client, frame, outcome, old ? "type=s" : "type=s pendingToolCallIds?=l");
    } else if (str_eq(type, STR("cancelled")) && !old) {
        check_shape(client, frame, outcome, "type=s");
    } else {
        refuse(client, frame, "this client takes no outcome %.*s", STR_ARG(type));
    }
    for (const struct json *u = usage ? usage->child : NULL; u; u = u->next)
        check_shape(client, frame, u, "model?=s inputTokens?=u outputTokens?=u totalTokens?=u");
}

/* ---- what is open ---- */

static struct client_open **find_open(struct client *client, const char *what, str id)
{
    struct client_open **at = &client->open;
    while (*at && (strcmp((*at)->what, what) != 0 || !str_eq((*at)->id, id))) at = &(*at)->next;
    return at;
}

static void open_one(struct client *client, str frame, const char *what, str id)
{
    if (*find_open(client, what, id)) refuse(client, frame, "%s is open already", what);
    struct client_open *one = ARENA_NEW(client->arena, struct client_open);
    *one = (struct client_open){what, id, client->open};
    client->open = one;
}

static void need_open(struct client *client, str frame, const char *what, str id)
{
    if (!*find_open(client, what, id)) refuse(client, frame, "%s is not open", what);
}

static void close_one(struct client *client, str frame, const char *what, str id)
{
    need_open(client, frame, what, id);
    struct client_open **at = find_open(client, what, id);
    *at = (*at)->next;
}

/* ---- messages ---- */

static struct client_message *message_of(struct client *client, str id)
{
    struct client_message *m = client->messages;
    while (m && !str_eq(m->id, id)) m = m->next;
    return m;
}

static struct client_message *append_message(struct client *client, str id, str role)
{
    struct client_message **at = &client->messages;
    while (*at) at = &(*at)->next;
    *at = ARENA_NEW(client->arena, struct client_message);
    **at = (struct client_message){.id = id, .role = role};
    return *at;
}

static struct client_message *make_message(struct client *client, str id, str role)
{
    struct client_message *m = message_of(client, id);
    return m ? m : append_message(client, id, role);
}

static str appended(struct client *client, str a, str b)
{
    char *text = arena_alloc(client->arena, a.len + b.len + 1);
    if (a.len) memcpy(text, a.p, a.len);
    if (b.len) memcpy(text + a.len, b.p, b.len);
    return (str){text, a.len + b.len};
}

static struct client_call *call_of(struct client *client, str id, struct client_message **ret_owner)
{
    for (struct client_message *m = client->messages; m; m = m->next)
        for (struct client_call *call = m->calls; call; call = call->next)
            if (str_eq(call->id, id)) {
                if (ret_owner) *ret_owner = m;
                return call;
            }
    return NULL;
}

static void add_call(struct client *client, struct client_message *m, str id, str name, str args)
{
    struct client_call **at = &m->calls;
    while (*at) at = &(*at)->next;
    *at = ARENA_NEW(client->arena, struct client_call);
    **at = (struct client_call){.id = id, .name = name, .args = args};
}

/* Right behind the message that made the call and the results that it has. */
static void add_result(struct client *client, str id, str call_id, str content)
{
    struct client_message *owner = NULL;
    struct client_message *m = ARENA_NEW(client->arena, struct client_message);
    *m = (struct client_message){
        .id = id, .role = STR("tool"), .content = content, .call_id = call_id};
    if (!call_of(client, call_id, &owner)) {
        struct client_message **at = &client->messages;
        while (*at) at = &(*at)->next;
        *at = m;
        return;
    }
    while (owner->next && str_eq(owner->next->role, STR("tool"))) owner = owner->next;
    m->next = owner->next;
    owner->next = m;
}

static void replace_message(struct client *client, struct client_message *m, const struct json *j)
{
    const struct json *content = json_get(j, STR("content"));
    const struct json *calls = json_get(j, STR("toolCalls"));
    m->role = json_text(json_get(j, STR("role")));
    m->content = !content ? STR_EMPTY : content->type == JSON_STRING ? content->text : content->raw;
    m->call_id = json_text(json_get(j, STR("toolCallId")));
    m->calls = NULL;
    for (const struct json *call = calls ? calls->child : NULL; call; call = call->next) {
        const struct json *function = json_get(call, STR("function"));
        add_call(client, m, json_text(json_get(call, STR("id"))),
                 json_text(json_get(function, STR("name"))),
                 json_text(json_get(function, STR("arguments"))));
    }
}

static const struct json *in_list(const struct json *list, str id)
{
    const struct json *j = list->child;
    while (j && !str_eq(json_text(json_get(j, STR("id"))), id)) j = j->next;
    return j;
}

/* Same id: replaced in place. New ones are appended; those that it has not are dropped, but for
 * reasoning if it has none at all, which clients before 1.0 then keep whatever it has of that id. */
static void take_snapshot(struct client *client, const struct json *list)
{
    bool silent = true, old = client->profile == AGUI_OLD;
    for (const struct json *j = list->child; j; j = j->next)
        silent = silent && !str_eq(json_text(json_get(j, STR("role"))), STR("reasoning"));
    struct client fresh = {.arena = client->arena};
    for (struct client_message *m = client->messages; m; m = m->next) {
        const struct json *j = in_list(list, m->id);
        bool kept = silent && str_eq(m->role, STR("reasoning")) && (old || !j);
        if (!kept && !j) continue;
        struct client_message *copy = append_message(&fresh, m->id, m->role);
        copy->content = m->content;
        if (!kept) replace_message(client, copy, j);
    }
    for (const struct json *j = list->child; j; j = j->next) {
        str id = json_text(json_get(j, STR("id")));
        if (!message_of(&fresh, id))
            replace_message(client, append_message(&fresh, id, STR_EMPTY), j);
    }
    client->messages = fresh.messages;
    client->snapshots++;
}

/* ---- events ---- */

struct event {
    struct client *client;
    str frame;
    const struct json *json;
    str id; /* messageId, toolCallId or stepName */
};

static str member(const struct event *e, const char *key)
{
    return json_text(json_get(e->json, str_c(key)));
}

static void on_run_started(const struct event *e)
{
    struct client *client = e->client;
    if (client->running) refuse(client, e->frame, "a run is active");
    client->running = true;
    client->over = false;
    client->open = NULL;
    client->thread_id = member(e, "threadId");
    client->run_id = member(e, "runId");
    if (!str_eq(member(e, "protocolVersion"), STR("1.0"))) refuse(client, e->frame, "no version");
}

static void on_run_finished(const struct event *e)
{
    struct client *client = e->client;
    if (client->open) refuse(client, e->frame, "%s is open", client->open->what);
    if (!str_eq(client->run_id, member(e, "runId")) ||
        !str_eq(client->thread_id, member(e, "threadId")))
        refuse(client, e->frame, "another run ends");
    check_outcome(client, e->frame, e->json);
    client->running = false;
    client->over = true;
    client->ended = "RUN_FINISHED";
}

static void on_run_error(const struct event *e)
{
    e->client->running = false;
    e->client->over = true;
    e->client->open = NULL;
    e->client->ended = "RUN_ERROR";
}

static void on_step_started(const struct event *e)
{
    open_one(e->client, e->frame, "step", e->id);
}

static void on_step_finished(const struct event *e)
{
    close_one(e->client, e->frame, "step", e->id);
}

static void on_text_start(const struct event *e)
{
    open_one(e->client, e->frame, "text", e->id);
    make_message(e->client, e->id, STR("assistant"));
}

static void on_text_content(const struct event *e)
{
    need_open(e->client, e->frame, "text", e->id);
    struct client_message *m = make_message(e->client, e->id, STR("assistant"));
    m->content = appended(e->client, m->content, member(e, "delta"));
}

static void on_text_end(const struct event *e)
{
    close_one(e->client, e->frame, "text", e->id);
}

static void on_reasoning_start(const struct event *e)
{
    open_one(e->client, e->frame, "span", e->id);
}

static void on_reasoning_end(const struct event *e)
{
    close_one(e->client, e->frame, "span", e->id);
}

static void on_thought_start(const struct event *e)
{
    open_one(e->client, e->frame, "reasoning", e->id);
    if (!str_eq(member(e, "role"), STR("reasoning"))) refuse(e->client, e->frame, "wrong role");
    make_message(e->client, e->id, STR("reasoning"));
}

static void on_thought_content(const struct event *e)
{
    need_open(e->client, e->frame, "reasoning", e->id);
    struct client_message *m = make_message(e->client, e->id, STR("reasoning"));
    m->content = appended(e->client, m->content, member(e, "delta"));
}

static void on_thought_end(const struct event *e)
{
    close_one(e->client, e->frame, "reasoning", e->id);
}

static void on_call_start(const struct event *e)
{
    open_one(e->client, e->frame, "call", e->id);
    if (call_of(e->client, e->id, NULL)) return;
    struct client_message *m =
        make_message(e->client, member(e, "parentMessageId"), STR("assistant"));
    add_call(e->client, m, e->id, member(e, "toolCallName"), STR_EMPTY);
}

static void on_call_args(const struct event *e)
{
    need_open(e->client, e->frame, "call", e->id);
    struct client_call *call = call_of(e->client, e->id, NULL);
    if (!call) refuse(e->client, e->frame, "arguments of a call that no message has");
    call->args = appended(e->client, call->args, member(e, "delta"));
}

static void on_call_end(const struct event *e)
{
    close_one(e->client, e->frame, "call", e->id);
}

static void on_call_result(const struct event *e)
{
    add_result(e->client, member(e, "messageId"), e->id, member(e, "content"));
}

static void on_messages(const struct event *e)
{
    const struct json *list = json_get(e->json, STR("messages"));
    for (const struct json *m = list->child; m; m = m->next) check_message(e->client, e->frame, m);
    take_snapshot(e->client, list);
}

static void on_nothing(const struct event *e)
{
    (void)e;
}

#define COMMON " type=s timestamp?=u"
static const struct {
    const char *type, *id, *shape;
    void (*take)(const struct event *e);
} events[] = {
    {"RUN_STARTED", NULL, "threadId=s runId=s protocolVersion=s" COMMON, on_run_started},
    {"RUN_FINISHED", NULL, "threadId=s runId=s outcome=o result?=j usage?=l" COMMON,
     on_run_finished},
    {"RUN_ERROR", NULL, "message=s code?=s usage?=l" COMMON, on_run_error},
    {"STEP_STARTED", "stepName", "stepName=s" COMMON, on_step_started},
    {"STEP_FINISHED", "stepName", "stepName=s" COMMON, on_step_finished},
    {"TEXT_MESSAGE_START", "messageId", "messageId=s role=s" COMMON, on_text_start},
    {"TEXT_MESSAGE_CONTENT", "messageId", "messageId=s delta=s" COMMON, on_text_content},
    {"TEXT_MESSAGE_END", "messageId", "messageId=s metadata?=o" COMMON, on_text_end},
    {"REASONING_START", "messageId", "messageId=s" COMMON, on_reasoning_start},
    {"REASONING_MESSAGE_START", "messageId", "messageId=s role=s" COMMON, on_thought_start},
    {"REASONING_MESSAGE_CONTENT", "messageId", "messageId=s delta=s" COMMON, on_thought_content},
    {"REASONING_MESSAGE_END", "messageId", "messageId=s" COMMON, on_thought_end},
    {"REASONING_END", "messageId", "messageId=s" COMMON, on_reasoning_end},
    {"TOOL_CALL_START", "toolCallId", "toolCallId=s toolCallName=s parentMessageId=s" COMMON,
     on_call_start},
    {"TOOL_CALL_ARGS", "toolCallId", "toolCallId=s delta=s" COMMON, on_call_args},
    {"TOOL_CALL_END", "toolCallId", "toolCallId=s" COMMON, on_call_end},
    {"TOOL_CALL_RESULT", "toolCallId",
     "messageId=s toolCallId=s content=s role?=s metadata=o" COMMON, on_call_result},
    {"STATE_SNAPSHOT", NULL, "snapshot=j" COMMON, on_nothing},
    {"MESSAGES_SNAPSHOT", NULL, "messages=l" COMMON, on_messages},
    {"CUSTOM", NULL, "name=s value=j" COMMON, on_nothing},
};

/* Extra members for clients before 1.0, which pass them on. */
static const char *const old_result =
    "messageId=s toolCallId=s content=s role?=s metadata=o ui?=o uiRef?=s callId?=s toolName?=s "
    "args?=j result?=j error?=s" COMMON;

static void check_place(const struct client *client, str frame, str type)
{
    bool starts = str_eq(type, STR("RUN_STARTED")), fails = str_eq(type, STR("RUN_ERROR"));
    bool after_error = client->over && strcmp(client->ended, "RUN_ERROR") == 0;
    if (!client->running && !starts && (!fails || after_error))
        refuse(client, frame, "outside of a run");
}

static void take_frame(struct client *client, str frame)
{
    struct json *json = NULL;
    struct json_error why;
    client->frames++;
    if (frame.len > 10 * 1024 * 1024) refuse(client, STR_EMPTY, "a frame of %zu bytes", frame.len);
    if (!str_starts(frame, STR("data: "))) refuse(client, frame, "no data");
    str text = str_drop(frame, 6);
    if (str_find_char(text, '\n') >= 0 || str_find_char(text, '\r') >= 0)
        refuse(client, frame, "more than one line");
    if (json_parse(client->arena, text, &json, &why)) refuse(client, frame, "%s", why.reason);
    str type = json_text(json_get(json, STR("type")));
    check_place(client, frame, type);
    for (size_t i = 0; i < COUNT(events); i++) {
        if (!str_eq(type, str_c(events[i].type))) continue;
        struct event e = {.client = client, .frame = frame, .json = json};
        bool extra = client->profile == AGUI_OLD && events[i].take == on_call_result;
        check_shape(client, frame, json, extra ? old_result : events[i].shape);
        if (events[i].id) e.id = member(&e, events[i].id);
        if (events[i].id && !e.id.len) refuse(client, frame, "an empty id");
        events[i].take(&e);
        return;
    }
    refuse(client, frame, "unknown event");
}

void client_read(struct client *client, str bytes)
{
    while (bytes.len) {
        ptrdiff_t end = str_find(bytes, STR("\n\n"));
        if (end < 0) refuse(client, bytes, "a frame without an end");
        take_frame(client, (str){bytes.p, (size_t)end});
        bytes = str_drop(bytes, (size_t)end + 2);
    }
}

/* ---- what others ask ---- */

void client_check_over(const struct client *client)
{
    assert_true(client->over);
    assert_false(client->running);
}

/* A row that stands in the client's list; NULL: it has no more. Results stand behind their calls. */
static void check_row(const struct client_message *m, const struct agui_row *row)
{
    const struct message *r = &row->message;
    if (!m) fail_msg("the client has no %.*s", STR_ARG(r->id));
    assert_str(m->id, r->id);
    assert_str(m->role, r->role);
    if (r->content.p[0] == '"') assert_str(m->content, r->plain);
}

static void check_calls(struct arena *arena, const struct client_message *m, str stored)
{
    struct json *list = NULL;
    const struct client_call *call = m->calls;
    if (stored.len) assert_int_equal(json_parse(arena, stored, &list, NULL), OK);
    for (const struct json *j = list ? list->child : NULL; j; j = j->next, call = call->next) {
        const struct json *function = json_get(j, STR("function"));
        assert_non_null(call);
        assert_str(call->id, json_text(json_get(j, STR("id"))));
        assert_str(call->name, json_text(json_get(function, STR("name"))));
        assert_str(call->args, json_text(json_get(function, STR("arguments"))));
    }
    assert_null(call);
}

static bool made_call(struct arena *arena, const struct message *m, str call_id)
{
    struct json *list = NULL;
    if (!m->tool_calls.len || json_parse(arena, m->tool_calls, &list, NULL)) return false;
    for (const struct json *j = list->child; j; j = j->next)
        if (str_eq(json_text(json_get(j, STR("id"))), call_id)) return true;
    return false;
}

enum { OF_AGENT = 1 << 0, OF_PEOPLE = 1 << 1 };

static int whose(str role)
{
    return str_eq(role, STR("user")) || str_eq(role, STR("system")) ? OF_PEOPLE : OF_AGENT;
}

/* A thought that was taken back, as far as that can be done with clients before 1.0. */
static bool is_emptied(const struct client_message *m)
{
    return str_eq(m->role, STR("reasoning")) && !m->content.len;
}

/* The next one of theirs. */
static const struct client_message *next_of(const struct client_message *m, int theirs)
{
    while (m && (!(whose(m->role) & theirs) || is_emptied(m))) m = m->next;
    return m;
}

static bool is_shown(const struct message *r)
{
    bool empty = str_eq(r->content, STR("\"\"")) && !r->tool_calls.len && !r->ui.len;
    bool view = str_eq(r->role, STR("clarify")) || str_eq(r->role, STR("interaction"));
    return !view && !str_eq(r->role, STR("tool")) && !(str_eq(r->role, STR("assistant")) && empty);
}

static void check_emptied(const struct client *client)
{
    size_t count = 0;
    for (const struct client_message *m = client->messages; m; m = m->next) count += is_emptied(m);
    assert_true(client->profile == AGUI_OLD || !count);
}

static void check_rows_of(const struct client *client, const struct agui_row *rows, size_t count,
                          int theirs)
{
    const struct client_message *m = next_of(client->messages, theirs);
    for (size_t i = 0; i < count; i++) {
        const struct message *r = &rows[i].message;
        if (!is_shown(r) || !(whose(r->role) & theirs)) continue;
        check_row(m, &rows[i]);
        check_calls(client->arena, m, r->tool_calls);
        m = next_of(m->next, theirs);
        for (size_t j = i + 1; j < count; j++) {
            str call_id = stored_text(client->arena, rows[j].message.tool, STR("toolCallId"));
            if (!str_eq(rows[j].message.role, STR("tool"))) continue;
            if (!made_call(client->arena, r, call_id)) continue;
            check_row(m, &rows[j]);
            assert_str(m->call_id, call_id);
            m = next_of(m->next, theirs);
        }
    }
    if (m) fail_msg("the client has one more: %.*s", STR_ARG(m->id));
}

void client_check_rows(const struct client *client, const struct agui_row *rows, size_t count,
                       bool apart)
{
    check_emptied(client);
    check_rows_of(client, rows, count, apart ? OF_AGENT : OF_AGENT | OF_PEOPLE);
    if (apart) check_rows_of(client, rows, count, OF_PEOPLE);
}

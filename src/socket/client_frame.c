/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients say on a WebSocket, decoded; pure. Every one may have `id`, a string or a number;
 * besides:
 *
 *     subscribe           sessionId, after?, events?         or  inbox: true
 *     unsubscribe         sessionId                          or  inbox: true
 *     message             sessionId, content, messageId?, runId?
 *     clarify_response    sessionId, requestId?, answer      sessionId may be left out with requestId
 *     confirm_response    sessionId?, requestId, and the body of POST answer
 *     stop                sessionId
 *     ping
 *
 * Fields that a frame does not have are refused, those of confirm_response by whoever looks at the
 * answer. A clarify_response answers questions and nothing else: an answer that is an object
 * has the words of a question's answer, so that a card which shows questions can never decide.
 *
 * To add a frame: its type, a row of `rows`, a function that reads it, and what the session does
 * about it (socket_session.c).
 */
#include "socket/client_frame.h"

#include <stdio.h>

#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/members.h"
#include "base/say.h"

enum { FIELDS_MAX = 8 };

/* ---- members ---- */

/* A string that may be absent. */
static enum err text_of(const struct json *frame, const char *name, str *ret_text,
                        struct fault *reterr)
{
    const struct json *member = json_get(frame, str_c(name));
    *ret_text = STR_EMPTY;
    if (!member) return OK;
    if (member->type != JSON_STRING || !member->text.len)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a string", name);
    *ret_text = member->text;
    return OK;
}

static enum err session_of(const struct json *frame, bool required, str *ret_id,
                           struct fault *reterr)
{
    enum err e = text_of(frame, "sessionId", ret_id, reterr);
    if (e) return e;
    if (!ret_id->len && !required) return OK;
    if (!ret_id->len)
        return fault_field(reterr, ERR_INVALID_FIELD, "sessionId", "sessionId is missing");
    if (!id_valid(*ret_id))
        return fault_field(reterr, ERR_INVALID_FIELD, "sessionId",
                           "sessionId must have 1 to %d characters of A-Z a-z 0-9 . _ : -",
                           ID_CLIENT_BYTES_MAX);
    return OK;
}

/* ---- bodies ---- */

/* Nothing in a body is longer than the frame that it came from, but for characters that are escaped
 * anew. */
static void body_begin(struct json_doc *doc, const struct json *frame)
{
    enum { ENVELOPE_BYTES = 256 };
    json_doc_open(doc, 6 * frame->raw.len + ENVELOPE_BYTES);
    json_object(&doc->w);
}

static str body_end(struct json_doc *doc, struct arena *arena)
{
    json_object_end(&doc->w);
    assert(!doc->buf.full);
    return json_doc_copy(doc, arena);
}

/* ---- frames ---- */

static enum err inbox_of(const struct json *frame, struct client_frame *f, struct fault *reterr)
{
    const struct json *inbox = json_get(frame, STR("inbox"));
    if (!inbox) return OK;
    if (inbox->type != JSON_TRUE)
        return fault_field(reterr, ERR_INVALID_FIELD, "inbox", "inbox can only be true");
    static const char *const others[] = {"sessionId", "after", "events"};
    for (size_t i = 0; i < COUNT(others); i++)
        if (json_get(frame, str_c(others[i])))
            return fault_field(reterr, ERR_INVALID_FIELD, others[i], "the inbox has no %s",
                               others[i]);
    f->inbox = true;
    return OK;
}

static enum err events_of(const struct json *list, unsigned *ret_events, struct fault *reterr)
{
    static const struct {
        const char *name;
        enum socket_kind kind;
    } kinds[] = {
        {"native", SOCKET_NATIVE}, {"clarify", SOCKET_CLARIFY}, {"ask-user", SOCKET_ASK_USER}};
    *ret_events = SOCKET_NATIVE | SOCKET_CLARIFY;
    if (!list) return OK;
    if (list->type != JSON_ARRAY || !list->count || list->count > COUNT(kinds))
        return fault_field(reterr, ERR_INVALID_FIELD, "events",
                           "events must be a list of native, clarify, ask-user");
    *ret_events = 0;
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        unsigned kind = 0;
        for (size_t i = 0; i < COUNT(kinds); i++)
            if (str_eq(json_text(item), str_c(kinds[i].name))) kind = kinds[i].kind;
        char path[32];
        snprintf(path, sizeof path, "events[%zu]", index);
        if (!kind)
            return fault_field(reterr, ERR_INVALID_FIELD, path,
                               "%s must be native, clarify or ask-user", path);
        *ret_events |= kind;
    }
    return OK;
}

static enum err parse_subscribe(struct arena *arena, const struct json *frame,
                                struct client_frame *f, struct fault *reterr)
{
    (void)arena;
    enum err e = inbox_of(frame, f, reterr);
    if (e || f->inbox) return e;
    e = session_of(frame, true, &f->session_id, reterr);
    if (!e) e = events_of(json_get(frame, STR("events")), &f->events, reterr);
    const struct json *after = json_get(frame, STR("after"));
    f->has_after = after != NULL;
    if (!e && after && json_u64(after, &f->after))
        e = fault_field(reterr, ERR_INVALID_FIELD, "after",
                        "after must be the seq of the last event you have, or 0");
    return e;
}

static enum err parse_unsubscribe(struct arena *arena, const struct json *frame,
                                  struct client_frame *f, struct fault *reterr)
{
    (void)arena;
    enum err e = inbox_of(frame, f, reterr);
    return e || f->inbox ? e : session_of(frame, true, &f->session_id, reterr);
}

/* What is in the content is looked at by run_input_of_message. */
static enum err parse_message(struct arena *arena, const struct json *frame, struct client_frame *f,
                              struct fault *reterr)
{
    const struct json *content = json_get(frame, STR("content"));
    enum err e = session_of(frame, true, &f->session_id, reterr);
    if (!e) e = text_of(frame, "messageId", &f->message_id, reterr);
    if (!e) e = text_of(frame, "runId", &f->run_id, reterr);
    if (!e && (!content || (content->type != JSON_STRING && content->type != JSON_ARRAY)))
        e = fault_field(reterr, ERR_INVALID_FIELD, "content",
                        "content must be a string, or a list of parts");
    if (e) return e;
    AUTO(json_doc_done) struct json_doc doc;
    body_begin(&doc, frame);
    json_member(&doc.w, STR("threadId"), f->session_id);
    if (f->run_id.len) json_member(&doc.w, STR("runId"), f->run_id);
    json_key(&doc.w, STR("messages"));
    json_array(&doc.w);
    json_object(&doc.w);
    if (f->message_id.len) json_member(&doc.w, STR("id"), f->message_id);
    json_member(&doc.w, STR("role"), STR("user"));
    json_member_raw(&doc.w, STR("content"), content->raw);
    json_object_end(&doc.w);
    json_array_end(&doc.w);
    f->body = body_end(&doc, arena);
    f->content = content;
    return OK;
}

/* The members of a frame that are the answer, as an object of their own. */
static void take_answer(struct arena *arena, const struct json *frame, struct client_frame *f,
                        bool (*ours)(str name))
{
    struct json *answer = ARENA_NEW(arena, struct json), **end = &answer->child;
    AUTO(json_doc_done) struct json_doc doc;
    body_begin(&doc, frame);
    for (const struct json *at = frame->child; at; at = at->next) {
        if (ours(at->key)) continue;
        json_member_raw(&doc.w, at->key, at->raw);
        *end = ARENA_NEW(arena, struct json);
        **end = *at;
        (*end)->next = NULL;
        end = &(*end)->next;
        answer->count++;
    }
    f->body = body_end(&doc, arena);
    answer->type = JSON_OBJECT;
    answer->raw = f->body;
    f->answer = answer;
}

/* An answer that is an object: the words that answer a question. */
static enum err check_answer(const struct json *answer, struct fault *reterr)
{
    static const char *const words[] = {"answer", "choices", "text", "fields", "skip"};
    for (const struct json *at = answer->child; at; at = at->next) {
        size_t i = 0;
        while (i < COUNT(words) && !str_eq(at->key, str_c(words[i]))) i++;
        if (i < COUNT(words)) continue;
        char path[96];
        snprintf(path, sizeof path, "answer.%s", say(at->key).text);
        return fault_field(reterr, ERR_INVALID_FIELD, path,
                           "an answer to a question has no \"%s\"; decisions are confirm_response",
                           say(at->key).text);
    }
    return OK;
}

static bool is_not_answer(str name)
{
    return !str_eq(name, STR("answer"));
}

static enum err parse_clarify(struct arena *arena, const struct json *frame, struct client_frame *f,
                              struct fault *reterr)
{
    const struct json *answer = json_get(frame, STR("answer"));
    bool whole = answer && answer->type == JSON_OBJECT;
    enum err e = text_of(frame, "requestId", &f->request_id, reterr);
    if (!e) e = session_of(frame, !f->request_id.len, &f->session_id, reterr);
    if (!e && !whole && (!answer || answer->type != JSON_STRING))
        e = fault_field(reterr, ERR_INVALID_FIELD, "answer",
                        "answer must be a string, or an object such as {\"choices\":[\"c1\"]}");
    if (!e && whole) e = check_answer(answer, reterr);
    if (!e && whole && !f->request_id.len)
        e = fault_field(reterr, ERR_INVALID_FIELD, "requestId",
                        "requestId is missing: only a plain text answers whatever is open");
    if (e) return e;
    if (!whole) {
        take_answer(arena, frame, f, is_not_answer);
        return OK;
    }
    f->body = answer->raw;
    f->answer = answer;
    return OK;
}

static bool is_envelope(str name)
{
    static const char *const ours[] = {"type", "id", "sessionId", "requestId"};
    for (size_t i = 0; i < COUNT(ours); i++)
        if (str_eq(name, str_c(ours[i]))) return true;
    return false;
}

/* Everything that is not ours is the answer. */
static enum err parse_confirm(struct arena *arena, const struct json *frame, struct client_frame *f,
                              struct fault *reterr)
{
    enum err e = session_of(frame, false, &f->session_id, reterr);
    if (!e) e = text_of(frame, "requestId", &f->request_id, reterr);
    if (!e && !f->request_id.len)
        e = fault_field(reterr, ERR_INVALID_FIELD, "requestId", "requestId is missing");
    if (e) return e;
    take_answer(arena, frame, f, is_envelope);
    return OK;
}

static enum err parse_stop(struct arena *arena, const struct json *frame, struct client_frame *f,
                           struct fault *reterr)
{
    (void)arena;
    return session_of(frame, true, &f->session_id, reterr);
}

static enum err parse_ping(struct arena *arena, const struct json *frame, struct client_frame *f,
                           struct fault *reterr)
{
    (void)arena;
    (void)frame;
    (void)f;
    (void)reterr;
    return OK;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    enum err (*parse)(struct arena *arena, const struct json *frame, struct client_frame *f,
                      struct fault *reterr);
    const char *fields[FIELDS_MAX]; /* ends in NULL; empty: any */
} rows[FRAME_TYPE_COUNT] = {
    [FRAME_SUBSCRIBE] = {"subscribe",
                         parse_subscribe,
                         {"type", "id", "sessionId", "after", "events", "inbox"}},
    [FRAME_UNSUBSCRIBE] = {"unsubscribe", parse_unsubscribe, {"type", "id", "sessionId", "inbox"}},
    [FRAME_MESSAGE] = {"message",
                       parse_message,
                       {"type", "id", "sessionId", "content", "messageId", "runId"}},
    [FRAME_CLARIFY] = {"clarify_response",
                       parse_clarify,
                       {"type", "id", "sessionId", "requestId", "answer"}},
    [FRAME_CONFIRM] = {"confirm_response", parse_confirm, {NULL}},
    [FRAME_STOP] = {"stop", parse_stop, {"type", "id", "sessionId"}},
    [FRAME_PING] = {"ping", parse_ping, {"type", "id"}},
};

enum err client_frame_parse(struct arena *arena, str text, str *ret_id,
                            struct client_frame *ret_frame, struct fault *reterr)
{
    struct json *frame = NULL;
    struct json_error where;
    struct client_frame f = {0};
    *ret_id = STR_EMPTY;
    if (json_parse_sent(arena, text, &frame, &where))
        return fault(reterr, ERR_INVALID_FIELD, "this is not JSON: %s at byte %zu", where.reason,
                     where.offset);
    if (frame->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "a frame is a JSON object");
    const struct json *id = json_get(frame, STR("id"));
    if (id &&
        ((id->type != JSON_STRING && id->type != JSON_NUMBER) || id->raw.len > WS_ID_BYTES_MAX))
        return fault_field(reterr, ERR_INVALID_FIELD, "id",
                           "id must be a string or a number of at most %d bytes", WS_ID_BYTES_MAX);
    if (id) *ret_id = id->raw;
    str type = json_text(json_get(frame, STR("type")));
    if (!type.len)
        return fault_field(reterr, ERR_INVALID_FIELD, "type", "type is missing, or no string");
    struct nearest nearest;
    nearest_init(&nearest, type);
    size_t i = 0;
    for (; i < COUNT(rows) && !str_eq(type, str_c(rows[i].name)); i++)
        nearest_offer(&nearest, str_c(rows[i].name), rows[i].name);
    if (i == COUNT(rows))
        return fault_field(reterr, ERR_INVALID_FIELD, "type", "there is no frame \"%s\"%s",
                           say(type).text,
                           say_nearest(&nearest, "docs/WEBSOCKET.md has them all").text);
    enum err e = OK;
    if (rows[i].fields[0]) e = members_known(frame, rows[i].fields, reterr);
    f.type = (enum client_frame_type)i;
    if (!e) e = rows[i].parse(arena, frame, &f, reterr);
    if (e) return e;
    *ret_frame = f;
    return OK;
}

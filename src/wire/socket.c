/* SPDX-License-Identifier: Apache-2.0
 *
 * The WebSocket dialect: events as texts, and questions in two other forms:
 *
 *     {"type":TYPE,"sessionId","runId"?,"seq"?,"ts","data":{...}}                       native
 *     {"type":"clarify_request","sessionId","seq","data":{"requestId",Q}}               clarify
 *     {"type":"ai-agent-ask-user","data":{"conversationId","toolCallId",Q}}             ask-user
 *     {"type":"ai-chat-complete","data":{"conversationId"}}                             ask-user
 *
 * Q is "question","choices","allowFreeform"; choices are labels alone, for these clients answer with
 * words. A fact's data is stored JSON and copied as it is; so are the previews that a cold reader is
 * shown, which are made by the same rule as the native dialect makes them.
 */
#include "wire/socket.h"

#include <string.h>

#include "agent/core/facts.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "wire/native.h"
#include "wire/stored.h"

/* One text at a time. */
struct texts {
    struct buf buf;
    struct json_writer w;
    str thread_id;
    socket_put *put;
    void *arg;
};

static void texts_init(struct texts *t, str thread_id, socket_put *put, void *arg)
{
    *t = (struct texts){.thread_id = thread_id, .put = put, .arg = arg};
    buf_init(&t->buf, FEED_FRAME_BYTES_MAX);
}

static void texts_done(struct texts *t)
{
    buf_done(&t->buf);
}

/* ---- native ---- */

/* Everything up to the data member; seq -1: none. */
static void text_begin(struct texts *t, const char *type, str run_id, int64_t seq, msec at)
{
    char ts[RFC3339_BYTES];
    clock_rfc3339(at, ts);
    buf_clear(&t->buf);
    json_write_begin(&t->w, &t->buf);
    json_object(&t->w);
    json_member(&t->w, STR("type"), str_c(type));
    json_member(&t->w, STR("sessionId"), t->thread_id);
    if (run_id.len) json_member(&t->w, STR("runId"), run_id);
    if (seq >= 0) {
        json_member_i64(&t->w, STR("seq"), seq);
    }
    json_member(&t->w, STR("ts"), str_c(ts));
    json_key(&t->w, STR("data"));
}

static void text_end(struct texts *t, enum socket_kind kind)
{
    json_object_end(&t->w);
    if (!t->buf.full) t->put(t->arg, kind, buf_str(&t->buf));
}

/* ---- previews ---- */

static void put_words(struct texts *t, const struct preview *preview)
{
    json_member(&t->w, STR("messageId"), preview->message_id);
    json_member(&t->w, STR("delta"), preview->delta);
    json_member_u64(&t->w, STR("offset"), preview->offset);
}

static void put_message(struct texts *t, const struct preview *preview)
{
    json_member(&t->w, STR("messageId"), preview->message_id);
    json_member(&t->w, STR("role"), STR("assistant"));
}

static void put_call(struct texts *t, const struct preview *preview)
{
    json_member(&t->w, STR("toolCallId"), preview->call_id);
    json_member(&t->w, STR("toolName"), preview->tool);
    json_member(&t->w, STR("parentMessageId"), preview->message_id);
    json_member(&t->w, STR("stage"), preview->stage);
}

static void put_args(struct texts *t, const struct preview *preview)
{
    json_member(&t->w, STR("toolCallId"), preview->call_id);
    json_member(&t->w, STR("delta"), preview->delta);
}

static void put_discard(struct texts *t, const struct preview *preview)
{
    json_member(&t->w, STR("messageId"), preview->message_id);
    json_member(&t->w, STR("reason"), preview->delta);
}

static void put_progress(struct texts *t, const struct preview *preview)
{
    progress_write(&t->w, preview);
}

static const struct {
    const char *type;
    void (*put)(struct texts *t, const struct preview *preview);
} previews[] = {
    [PREVIEW_MESSAGE_START] = {"text.message.start", put_message},
    [PREVIEW_TEXT] = {"text.delta", put_words},
    [PREVIEW_REASONING] = {"reasoning.delta", put_words},
    [PREVIEW_CALL_START] = {"tool.call.start", put_call},
    [PREVIEW_CALL_ARGS] = {"tool.call.args", put_args},
    [PREVIEW_DISCARD] = {"message.discard", put_discard},
    [PREVIEW_PROGRESS] = {"tool.progress", put_progress},
};

static void put_preview(struct texts *t, const struct preview *preview)
{
    text_begin(t, previews[preview->kind].type, preview->run_id, -1, preview->at);
    json_object(&t->w);
    previews[preview->kind].put(t, preview);
    json_object_end(&t->w);
    text_end(t, SOCKET_NATIVE);
}

/* ---- previews made up for a cold reader ---- */

static bool is_type(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

static void made_up_words(struct texts *t, struct arena *arena, const struct fact *fact, bool text)
{
    struct preview preview = {.run_id = fact->run_id,
                              .at = fact->at,
                              .message_id = stored_text(arena, fact->data, STR("messageId")),
                              .delta = stored_text(arena, fact->data, STR("content"))};
    if (!preview.delta.len) return;
    preview.kind = PREVIEW_MESSAGE_START;
    if (text) put_preview(t, &preview);
    preview.kind = text ? PREVIEW_TEXT : PREVIEW_REASONING;
    put_preview(t, &preview);
}

static void made_up_call(struct texts *t, struct arena *arena, const struct fact *fact)
{
    str args = stored_get(fact->data, STR("args"));
    struct preview preview = {
        .kind = PREVIEW_CALL_START,
        .run_id = fact->run_id,
        .at = fact->at,
        .call_id = stored_text(arena, fact->data, STR("toolCallId")),
        .tool = stored_text(arena, fact->data, STR("toolName")),
        .message_id = stored_text(arena, fact->data, STR("parentMessageId")),
        .stage = stored_text(arena, fact->data, STR("stage")),
        .delta = args.len && args.p[0] == '"' ? stored_string(arena, args) : args,
    };
    put_preview(t, &preview);
    preview.kind = PREVIEW_CALL_ARGS;
    if (preview.delta.len) put_preview(t, &preview);
}

/* ---- the other kinds ---- */

static void put_question(struct texts *t, struct arena *arena, str data)
{
    bool closed = str_eq(stored_get(data, STR("allowFreeform")), STR("false"));
    json_member(&t->w, STR("question"), stored_text(arena, data, STR("question")));
    json_key(&t->w, STR("choices"));
    str choices = stored_get(data, STR("choices"));
    struct json *list = NULL;
    json_array(&t->w);
    if (choices.len && json_parse(arena, choices, &list, NULL) == OK) /* it is ours */
        for (const struct json *choice = list->child; choice; choice = choice->next)
            json_string(&t->w, json_text(json_get(choice, STR("label"))));
    json_array_end(&t->w);
    json_member_bool(&t->w, STR("allowFreeform"), !closed);
    json_object_end(&t->w);
}

static void put_clarify(struct texts *t, struct arena *arena, const struct fact *fact)
{
    buf_clear(&t->buf);
    json_write_begin(&t->w, &t->buf);
    json_object(&t->w);
    json_member(&t->w, STR("type"), STR("clarify_request"));
    json_member(&t->w, STR("sessionId"), t->thread_id);
    json_member_i64(&t->w, STR("seq"), fact->seq);
    json_key(&t->w, STR("data"));
    json_object(&t->w);
    json_member(&t->w, STR("requestId"), stored_text(arena, fact->data, STR("interactionId")));
    put_question(t, arena, fact->data);
    text_end(t, SOCKET_CLARIFY);
}

/* {"type","data":{"conversationId" so far. */
static void conversation_begin(struct texts *t, const char *type)
{
    buf_clear(&t->buf);
    json_write_begin(&t->w, &t->buf);
    json_object(&t->w);
    json_member(&t->w, STR("type"), str_c(type));
    json_key(&t->w, STR("data"));
    json_object(&t->w);
    json_member(&t->w, STR("conversationId"), t->thread_id);
}

/* ---- what others call ---- */

static void put_all(str thread_id, str leg, const struct fact *fact, bool cold, socket_put *put,
                    void *arg)
{
    AUTO(texts_done) struct texts t;
    AUTO(arena_done) struct arena arena;
    texts_init(&t, thread_id, put, arg);
    arena_init(&arena);
    bool text = is_type(fact, FACT_TEXT_END);
    if (cold && (text || is_type(fact, FACT_REASONING_END)))
        made_up_words(&t, &arena, fact, text);
    else if (cold && is_type(fact, FACT_TOOL_CALL))
        made_up_call(&t, &arena, fact);

    text_begin(&t, fact->type, fact->run_id, fact->seq, fact->at);
    json_raw(&t.w, fact->data);
    text_end(&t, SOCKET_NATIVE);

    if (is_type(fact, FACT_REQUEST) &&
        str_eq(stored_get(fact->data, STR("type")), STR("\"ask_user\""))) {
        put_clarify(&t, &arena, fact);
        conversation_begin(&t, "ai-agent-ask-user");
        json_member(&t.w, STR("toolCallId"), stored_text(&arena, fact->data, STR("toolCallId")));
        put_question(&t, &arena, fact->data);
        text_end(&t, SOCKET_ASK_USER);
    } else if ((is_type(fact, FACT_RUN_FINISHED) || is_type(fact, FACT_RUN_ERROR)) &&
               str_eq(fact->run_id, leg)) {
        conversation_begin(&t, "ai-chat-complete");
        json_object_end(&t.w);
        text_end(&t, SOCKET_ASK_USER);
    }
}

void socket_warm(str thread_id, str leg, const struct fact *fact, socket_put *put, void *arg)
{
    put_all(thread_id, leg, fact, false, put, arg);
}

void socket_cold(str thread_id, str leg, const struct fact *fact, socket_put *put, void *arg)
{
    put_all(thread_id, leg, fact, true, put, arg);
}

void socket_preview(str thread_id, const struct preview *preview, socket_put *put, void *arg)
{
    AUTO(texts_done) struct texts t;
    texts_init(&t, thread_id, put, arg);
    put_preview(&t, preview);
}

void socket_reset(str thread_id, const char *reason, int64_t seq, msec now, socket_put *put,
                  void *arg)
{
    AUTO(texts_done) struct texts t;
    texts_init(&t, thread_id, put, arg);
    text_begin(&t, "reset", STR_EMPTY, seq, now);
    json_object(&t.w);
    json_member(&t.w, STR("reason"), str_c(reason));
    json_member_i64(&t.w, STR("seq"), seq);
    json_object_end(&t.w);
    text_end(&t, SOCKET_ALL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts and history rows as JSON. Members stand in the order of the documentation, always: stored
 * bytes are sent as they are, and a step that is repeated must give the same ones. Optional members
 * are left out, never null. To add a fact: its type in facts.h and a function here.
 *
 * A text is escaped once and then copied, since the same answer stands in its fact twice and in its
 * history row again.
 */
#include "agent/facts.h"

#include "agent/graph.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"

/* Until models have prices. */
#define CURRENCY "USD"

enum { ESCAPE_BYTES_MAX = 6 }; /* \u0001 */

/* One document on its way into the arena. */
struct doc {
    struct buf buf;
    struct json_writer w;
};

static void doc_done(struct doc *doc)
{
    buf_done(&doc->buf);
}

/* `parts` counts the bytes that go in as they are; ids, names and figures have the frame. */
static void doc_open(struct doc *doc, size_t parts)
{
    buf_init(&doc->buf, FACT_FRAME_BYTES_MAX + parts);
    json_write_begin(&doc->w, &doc->buf);
    json_object(&doc->w);
}

static str doc_close(struct arena *arena, struct doc *doc)
{
    json_object_end(&doc->w);
    assert(!doc->buf.full);
    return arena_str(arena, buf_str(&doc->buf));
}

static void member_u64(struct json_writer *w, str key, uint64_t value)
{
    json_key(w, key);
    json_number_u64(w, value);
}

static void member_bool(struct json_writer *w, str key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

static void member_raw(struct json_writer *w, str key, str json)
{
    json_key(w, key);
    json_raw(w, json);
}

static void usage_members(struct json_writer *w, const struct model_usage *usage)
{
    member_u64(w, STR("inputTokens"), usage->input_tokens);
    member_u64(w, STR("outputTokens"), usage->output_tokens);
    member_u64(w, STR("cost"), 0);
    json_member(w, STR("currency"), STR(CURRENCY));
}

str fact_run_started(struct arena *arena, const struct start *start)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("taskId"), start->task_id);
    member_u64(&doc.w, STR("leg"), start->leg);
    member_bool(&doc.w, STR("resumed"), start->resumed);
    json_member(&doc.w, STR("agent"), start->agent);
    json_member(&doc.w, STR("model"), start->model);
    return doc_close(arena, &doc);
}

str fact_step(struct arena *arena, enum stage stage)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("stepName"), str_c(stage_name(stage)));
    member_u64(&doc.w, STR("index"), stage);
    member_u64(&doc.w, STR("total"), STAGE_COUNT);
    return doc_close(arena, &doc);
}

str fact_reasoning_end(struct arena *arena, str message_id, str content)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, content.len);
    json_member(&doc.w, STR("messageId"), message_id);
    member_raw(&doc.w, STR("content"), content);
    return doc_close(arena, &doc);
}

str fact_text_end(struct arena *arena, const struct text_end *end)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 2 * end->content.len);
    json_member(&doc.w, STR("messageId"), end->message_id);
    member_raw(&doc.w, STR("content"), end->content);
    json_key(&doc.w, STR("workerAgentOutput"));
    json_object(&doc.w);
    member_raw(&doc.w, STR("answer"), end->content);
    json_object_end(&doc.w);
    usage_members(&doc.w, &end->usage);
    if (end->stopped) member_bool(&doc.w, STR("stopped"), true);
    return doc_close(arena, &doc);
}

str fact_run_finished(struct arena *arena, const char *outcome, const struct model_usage *usage)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("outcome"), str_c(outcome));
    json_key(&doc.w, STR("usage"));
    json_object(&doc.w);
    usage_members(&doc.w, usage);
    json_object_end(&doc.w);
    return doc_close(arena, &doc);
}

str fact_run_error(struct arena *arena, const char *code, str message, bool retryable)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("code"), str_c(code));
    json_member(&doc.w, STR("message"), message);
    member_bool(&doc.w, STR("retryable"), retryable);
    return doc_close(arena, &doc);
}

str usage_json(struct arena *arena, const struct model_usage *usage)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, 0);
    usage_members(&doc.w, usage);
    return doc_close(arena, &doc);
}

str text_json(struct arena *arena, str text)
{
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, ESCAPE_BYTES_MAX * text.len + 2);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_string(&w, text);
    assert(!buf.full);
    return arena_str(arena, buf_str(&buf));
}

static void write_message(struct json_writer *w, const struct message *message)
{
    char created[RFC3339_BYTES];
    clock_rfc3339(message->created, created);
    json_object(w);
    json_member(w, STR("id"), message->id);
    json_member(w, STR("role"), message->role);
    member_raw(w, STR("content"), message->content);
    if (message->tool_calls.len) member_raw(w, STR("toolCalls"), message->tool_calls);
    member_raw(w, STR("metadata"), message->metadata);
    json_member(w, STR("createdAt"), str_c(created));
    if (message->usage.len) member_raw(w, STR("usage"), message->usage);
    json_object_end(w);
}

static size_t message_parts(const struct message *message)
{
    return message->content.len + message->tool_calls.len + message->metadata.len +
           message->usage.len;
}

void message_write(struct buf *out, const struct message *message)
{
    struct json_writer w;
    json_write_begin(&w, out);
    write_message(&w, message);
}

str fact_message_added(struct arena *arena, const struct message *message)
{
    AUTO(doc_done) struct doc doc;
    doc_open(&doc, message_parts(message));
    json_key(&doc.w, STR("message"));
    write_message(&doc.w, message);
    return doc_close(arena, &doc);
}

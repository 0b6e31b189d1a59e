/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of facts and of history rows. Members stand in the order of the documentation, always:
 * stored bytes are sent as they are, and a step that is repeated must give the same ones. Optional
 * members are left out, never null. To add a fact: its type in facts.h and a function here.
 *
 * A text is escaped once and then copied, since the same answer stands in its fact twice and in its
 * history row again.
 */
#include "agent/core/facts.h"

#include <stdio.h>

#include "agent/core/graph.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/table/attachments.h"
#include "store/table/calls.h"

enum { ESCAPE_BYTES_MAX = 6 }; /* \u0001 */
enum { PLAIN_URL_BYTES = 64 + ID_CLIENT_BYTES_MAX };

/* `parts` counts the bytes that go in as they are; ids, names and figures have the frame. */
static void doc_open(struct json_doc *doc, size_t parts)
{
    json_doc_open(doc, FACT_FRAME_BYTES_MAX + parts);
    json_object(&doc->w);
}

static str doc_close(struct arena *arena, struct json_doc *doc)
{
    json_object_end(&doc->w);
    assert(!doc->buf.full);
    return json_doc_copy(doc, arena);
}

/* Pico units as a decimal number: no digit is lost, none is there for nothing. */
static void member_cost(struct json_writer *w, uint64_t cost)
{
    const uint64_t unit = 1000000000000;
    char text[40];
    int len = snprintf(text, sizeof text, "%llu.%012llu", (unsigned long long)(cost / unit),
                       (unsigned long long)(cost % unit));
    while (text[len - 1] == '0') len--;
    if (text[len - 1] == '.') len--;
    json_member_raw(w, STR("cost"), (str){text, (size_t)len});
}

static void usage_members(struct json_writer *w, const struct usage *usage)
{
    json_member_u64(w, STR("inputTokens"), usage->input_tokens);
    json_member_u64(w, STR("outputTokens"), usage->output_tokens);
    member_cost(w, usage->cost);
    json_member(w, STR("currency"), usage->currency.len ? usage->currency : USAGE_CURRENCY);
}

void usage_write(struct json_writer *w, const struct usage *usage)
{
    json_object(w);
    usage_members(w, usage);
    json_object_end(w);
}

str fact_run_started(struct arena *arena, const struct start *start)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("taskId"), start->task_id);
    json_member_u64(&doc.w, STR("leg"), start->leg);
    json_member_bool(&doc.w, STR("resumed"), start->resumed);
    json_member(&doc.w, STR("agent"), start->agent);
    json_member(&doc.w, STR("model"), start->model);
    return doc_close(arena, &doc);
}

str fact_step(struct arena *arena, enum stage stage)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("stepName"), str_c(stage_name(stage)));
    json_member_u64(&doc.w, STR("index"), stage);
    json_member_u64(&doc.w, STR("total"), STAGE_COUNT);
    return doc_close(arena, &doc);
}

str fact_reasoning_end(struct arena *arena, str message_id, str content)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, content.len);
    json_member(&doc.w, STR("messageId"), message_id);
    json_member_raw(&doc.w, STR("content"), content);
    return doc_close(arena, &doc);
}

str fact_text_end(struct arena *arena, const struct text_end *end)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, 2 * end->content.len + end->ui.len + end->ui_hints.len);
    json_member(&doc.w, STR("messageId"), end->message_id);
    json_member_raw(&doc.w, STR("content"), end->content);
    json_key(&doc.w, STR("workerAgentOutput"));
    json_object(&doc.w);
    json_member_raw(&doc.w, STR("answer"), end->content);
    if (end->ui_hints.len) json_member_raw(&doc.w, STR("ui_hints"), end->ui_hints);
    json_object_end(&doc.w);
    if (end->ui.len) json_member_raw(&doc.w, STR("ui"), end->ui);
    if (end->ui_ref.len) json_member(&doc.w, STR("uiRef"), end->ui_ref);
    usage_members(&doc.w, &end->usage);
    if (end->stopped) json_member_bool(&doc.w, STR("stopped"), true);
    return doc_close(arena, &doc);
}

str fact_tool_call(struct arena *arena, const struct call *call, const char *stage)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, call->args.len);
    json_member(&doc.w, STR("toolCallId"), call->call_id);
    json_member(&doc.w, STR("toolName"), call->tool);
    json_member_raw(&doc.w, STR("args"), call->args);
    json_member(&doc.w, STR("parentMessageId"), call->message_id);
    json_member(&doc.w, STR("stage"), str_c(stage));
    return doc_close(arena, &doc);
}

enum { STEP_FRAME_BYTES = 32 }; /* its names and words, divided by ESCAPE_BYTES_MAX */

str fact_plan(struct arena *arena, const struct plan *plan, uint32_t current)
{
    AUTO(json_doc_done) struct json_doc doc;
    size_t bytes = plan->count * STEP_FRAME_BYTES;
    for (size_t i = 0; i < plan->count; i++)
        bytes += plan->steps[i].content.len + plan->steps[i].done_when.len;
    doc_open(&doc, ESCAPE_BYTES_MAX * bytes);
    json_key(&doc.w, STR("steps"));
    json_array(&doc.w);
    for (size_t i = 0; i < plan->count; i++) {
        json_object(&doc.w);
        json_member(&doc.w, STR("content"), plan->steps[i].content);
        json_member(&doc.w, STR("doneWhen"), plan->steps[i].done_when);
        json_member(&doc.w, STR("status"), str_c(step_status_name(plan->steps[i].status)));
        if (plan->steps[i].by_model) json_member(&doc.w, STR("by"), STR("model"));
        json_object_end(&doc.w);
    }
    json_array_end(&doc.w);
    json_member_u64(&doc.w, STR("current"), current);
    return doc_close(arena, &doc);
}

/* The one that its owner may always use. */
static str plain_url(void *arg, str id)
{
    char *url = arg;
    int len = snprintf(url, PLAIN_URL_BYTES, "/api/v1/agent/attachments/%.*s", STR_ARG(id));
    return (str){url, (size_t)len};
}

static void result_member(struct json_writer *w, const struct tool_result_fact *result)
{
    const struct call *call = result->call;
    if (result->ref.len) {
        json_key(w, STR("result"));
        json_object(w);
        json_member(w, STR("ref"), result->ref);
        json_member_u64(w, STR("size"), call->result_bytes);
        json_object_end(w);
    } else if (call->result.len) {
        json_member_raw(w, STR("result"), call->result);
    }
}

str fact_tool_result(struct arena *arena, const struct tool_result_fact *result)
{
    const struct call *call = result->call;
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, result->args.len + call->result.len + result->ui.len + result->ui_hints.len +
                       2 * call->attachments.len + /* with urls */
                       ESCAPE_BYTES_MAX * (call->error.len + 2 * result->content.len));
    json_member(&doc.w, STR("messageId"), call->result_id);
    json_member(&doc.w, STR("toolCallId"), call->call_id);
    json_member(&doc.w, STR("callId"), call->call_id);
    json_member(&doc.w, STR("toolName"), call->tool);
    json_member_raw(&doc.w, STR("args"), result->args);
    result_member(&doc.w, result);
    if (call->error.len) json_member(&doc.w, STR("error"), call->error);
    json_member(&doc.w, STR("content"), result->content);
    if (result->ui.len) json_member_raw(&doc.w, STR("ui"), result->ui);
    if (result->ui_ref.len) json_member(&doc.w, STR("uiRef"), result->ui_ref);
    if (call->attachments.len) {
        char url[PLAIN_URL_BYTES];
        json_key(&doc.w, STR("attachments"));
        attachments_write(&doc.w, call->attachments, plain_url, url);
    }
    json_key(&doc.w, STR("toolAgentOutput"));
    json_object(&doc.w);
    json_member(&doc.w, STR("result_summary"), result->content);
    if (result->ui_hints.len) json_member_raw(&doc.w, STR("ui_hints"), result->ui_hints);
    json_object_end(&doc.w);
    return doc_close(arena, &doc);
}

static void ids_member(struct json_writer *w, str key, const str *ids, size_t count)
{
    if (!count) return;
    json_key(w, key);
    json_array(w);
    for (size_t i = 0; i < count; i++) json_string(w, ids[i]);
    json_array_end(w);
}

str fact_run_finished(struct arena *arena, const struct run_finished *finished)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("outcome"), str_c(finished->outcome));
    if (finished->code) json_member(&doc.w, STR("code"), str_c(finished->code));
    ids_member(&doc.w, STR("interactions"), finished->interactions, finished->interaction_count);
    ids_member(&doc.w, STR("pendingToolCallIds"), finished->pending, finished->pending_count);
    json_key(&doc.w, STR("usage"));
    usage_write(&doc.w, &finished->usage);
    return doc_close(arena, &doc);
}

str fact_run_error(struct arena *arena, const char *code, str message, bool retryable)
{
    AUTO(json_doc_done) struct json_doc doc;
    doc_open(&doc, 0);
    json_member(&doc.w, STR("code"), str_c(code));
    json_member(&doc.w, STR("message"), message);
    json_member_bool(&doc.w, STR("retryable"), retryable);
    return doc_close(arena, &doc);
}

str usage_json(struct arena *arena, const struct usage *usage)
{
    AUTO(json_doc_done) struct json_doc doc;
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

/* The members of an object that is already JSON, as members of the one that is being written. */
static void json_members(struct json_writer *w, str object)
{
    if (w->comma) buf_append(w->out, STR(","));
    buf_append(w->out, (str){object.p + 1, object.len - 2});
    w->comma = true;
}

static void write_attachment(struct json_writer *w, const struct json *stored, attachment_href *url,
                             void *arg)
{
    static const char *const rest[] = {"mimeType", "filename", "size", "width", "height"};
    str id = json_text(json_get(stored, STR("id")));
    json_object(w);
    json_member(w, STR("id"), id);
    json_member(w, STR("url"), url(arg, id));
    for (size_t i = 0; i < COUNT(rest); i++) {
        const struct json *member = json_get(stored, str_c(rest[i]));
        if (member) json_member_raw(w, str_c(rest[i]), member->raw);
    }
    json_object_end(w);
}

void attachments_write(struct json_writer *w, str stored, attachment_href *url, void *arg)
{
    AUTO(arena_done) struct arena arena;
    struct json *list = NULL;
    arena_init(&arena);
    json_array(w);
    if (json_parse(&arena, stored, &list, NULL) == OK) /* it is ours */
        for (const struct json *item = list->child; item; item = item->next)
            write_attachment(w, item, url, arg);
    json_array_end(w);
}

void attachment_store(struct json_writer *w, const struct attachment *attachment)
{
    json_object(w);
    json_member(w, STR("id"), attachment->id);
    json_member(w, STR("mimeType"), attachment->mime);
    if (attachment->filename.len) json_member(w, STR("filename"), attachment->filename);
    json_member_u64(w, STR("size"), attachment->bytes);
    if (attachment->width && attachment->height) {
        json_member_u64(w, STR("width"), attachment->width);
        json_member_u64(w, STR("height"), attachment->height);
    }
    json_object_end(w);
}

str attachments_store(struct arena *arena, const struct attachment *rows, size_t count)
{
    if (!count) return STR_EMPTY;
    AUTO(buf_done) struct buf buf;
    struct json_writer w;
    buf_init(&buf, FACT_FRAME_BYTES_MAX); /* CALL_FILES_MAX of less than 2 KiB */
    json_write_begin(&w, &buf);
    json_array(&w);
    for (size_t i = 0; i < count; i++) attachment_store(&w, &rows[i]);
    json_array_end(&w);
    assert(!buf.full);
    return arena_str(arena, buf_str(&buf));
}

static void write_message(struct json_writer *w, const struct message *message,
                          attachment_href *url, void *arg)
{
    char created[RFC3339_BYTES];
    clock_rfc3339(message->created, created);
    json_object(w);
    json_member(w, STR("id"), message->id);
    json_member(w, STR("role"), message->role);
    json_member_raw(w, STR("content"), message->content);
    if (message->tool_calls.len) json_member_raw(w, STR("toolCalls"), message->tool_calls);
    if (message->ui.len) json_member_raw(w, STR("uiSchema"), message->ui);
    if (message->attachments.len) {
        json_key(w, STR("attachments"));
        attachments_write(w, message->attachments, url, arg);
    }
    if (message->tool.len > 2) json_members(w, message->tool);
    json_member_raw(w, STR("metadata"), message->metadata);
    json_member(w, STR("createdAt"), str_c(created));
    if (message->usage.len) json_member_raw(w, STR("usage"), message->usage);
    json_object_end(w);
}

static size_t message_parts(const struct message *message)
{
    return message->content.len + message->tool_calls.len + message->metadata.len +
           message->usage.len + message->tool.len + message->ui.len +
           2 * message->attachments.len; /* with urls */
}

void message_write_with(struct buf *out, const struct message *message, attachment_href *url,
                        void *arg)
{
    struct json_writer w;
    json_write_begin(&w, out);
    write_message(&w, message, url, arg);
}

void message_write(struct buf *out, const struct message *message)
{
    char url[PLAIN_URL_BYTES];
    message_write_with(out, message, plain_url, url);
}

str fact_message_added(struct arena *arena, const struct message *message)
{
    AUTO(json_doc_done) struct json_doc doc;
    char url[PLAIN_URL_BYTES];
    doc_open(&doc, message_parts(message));
    json_key(&doc.w, STR("message"));
    write_message(&doc.w, message, plain_url, url);
    return doc_close(arena, &doc);
}

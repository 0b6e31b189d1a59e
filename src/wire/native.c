/* SPDX-License-Identifier: Apache-2.0
 *
 * The native dialect: facts as frames of an event stream, warm and cold, previews, reset.
 *
 * Frame:
 *
 *     id: SEQ                 only facts and reset
 *     event: TYPE
 *     data: {"type","threadId","runId","seq"?,"ts","data":{...}}
 *
 * A fact's data is stored JSON and copied as it is; only the envelope is written here. JSON escapes
 * every line end, so no text can break the framing.
 */
#include "wire/native.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "wire/stored.h"

/* preview kind, event name */
static const char *const preview_names[] = {
    [PREVIEW_MESSAGE_START] = "text.message.start", [PREVIEW_TEXT] = "text.delta",
    [PREVIEW_REASONING] = "reasoning.delta",        [PREVIEW_CALL_START] = "tool.call.start",
    [PREVIEW_CALL_ARGS] = "tool.call.args",         [PREVIEW_DISCARD] = "message.discard",
    [PREVIEW_PROGRESS] = "tool.progress",
};

/* Everything up to the data member; the caller writes it and calls frame_end. */
static void frame_begin(struct buf *out, struct json_writer *w, const char *type, str thread_id,
                        str run_id, int64_t seq, msec at)
{
    char ts[RFC3339_BYTES];
    clock_rfc3339(at, ts);
    if (seq) buf_printf(out, "id: %lld\n", (long long)seq);
    buf_printf(out, "event: %s\ndata: ", type);
    json_write_begin(w, out);
    json_object(w);
    json_member(w, STR("type"), str_c(type));
    json_member(w, STR("threadId"), thread_id);
    if (run_id.len) json_member(w, STR("runId"), run_id);
    if (seq) {
        json_member_i64(w, STR("seq"), seq);
    }
    json_member(w, STR("ts"), str_c(ts));
    json_key(w, STR("data"));
}

static void frame_end(struct buf *out, struct json_writer *w)
{
    json_object_end(w);
    buf_append(out, STR("\n\n"));
}

void native_warm(struct buf *out, str thread_id, const struct fact *fact)
{
    struct json_writer w;
    frame_begin(out, &w, fact->type, thread_id, fact->run_id, fact->seq, fact->at);
    json_raw(&w, fact->data);
    frame_end(out, &w);
}

/* {"messageId", "delta", "offset": 0}, the delta as the JSON string it is stored as. */
static void put_made_up(struct buf *out, str thread_id, const struct fact *fact, const char *type,
                        str message_id, str raw_delta)
{
    struct json_writer w;
    frame_begin(out, &w, type, thread_id, fact->run_id, 0, fact->at);
    json_object(&w);
    json_member(&w, STR("messageId"), message_id);
    if (raw_delta.len) {
        json_member_raw(&w, STR("delta"), raw_delta);
        json_member_u64(&w, STR("offset"), 0);
    } else {
        json_member(&w, STR("role"), STR("assistant"));
    }
    json_object_end(&w);
    frame_end(out, &w);
}

static bool is_type(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

/* A call: its start, and its arguments as one delta. */
static void made_up_call(struct buf *out, str thread_id, const struct fact *fact,
                         const struct json *data)
{
    struct preview preview = {
        .kind = PREVIEW_CALL_START,
        .run_id = fact->run_id,
        .at = fact->at,
        .call_id = json_text(json_get(data, STR("toolCallId"))),
        .tool = json_text(json_get(data, STR("toolName"))),
        .message_id = json_text(json_get(data, STR("parentMessageId"))),
        .stage = json_text(json_get(data, STR("stage"))),
    };
    const struct json *args = json_get(data, STR("args"));
    native_preview(out, thread_id, &preview);
    preview.kind = PREVIEW_CALL_ARGS;
    preview.delta = args && args->type == JSON_STRING ? args->text : args ? args->raw : STR_EMPTY;
    if (preview.delta.len) native_preview(out, thread_id, &preview);
}

static void made_up(struct buf *out, str thread_id, const struct fact *fact)
{
    bool text = is_type(fact, "text.message.end"), reasoning = is_type(fact, "reasoning.end");
    bool call = is_type(fact, "tool.call");
    if (!text && !reasoning && !call) return;
    AUTO(arena_done) struct arena arena;
    struct json *data = NULL;
    arena_init(&arena);
    if (json_parse(&arena, fact->data, &data, NULL)) return; /* stored by us: it is JSON */
    if (call) {
        made_up_call(out, thread_id, fact, data);
        return;
    }
    str id = json_text(json_get(data, STR("messageId")));
    const struct json *content = json_get(data, STR("content"));
    if (!json_text(content).len) return;
    if (text) put_made_up(out, thread_id, fact, "text.message.start", id, STR_EMPTY);
    put_made_up(out, thread_id, fact, text ? "text.delta" : "reasoning.delta", id, content->raw);
}

void native_cold(struct buf *out, str thread_id, const struct fact *fact)
{
    made_up(out, thread_id, fact);
    native_warm(out, thread_id, fact);
}

void progress_write(struct json_writer *w, const struct preview *preview)
{
    json_member(w, STR("toolCallId"), preview->call_id);
    if (preview->progress.len) {
        json_member_raw(w, STR("progress"), preview->progress);
    }
    if (preview->total.len) {
        json_member_raw(w, STR("total"), preview->total);
    }
    if (preview->delta.len) json_member(w, STR("message"), preview->delta);
}

void native_preview(struct buf *out, str thread_id, const struct preview *preview)
{
    struct json_writer w;
    frame_begin(out, &w, preview_names[preview->kind], thread_id, preview->run_id, 0, preview->at);
    json_object(&w);
    switch (preview->kind) {
    case PREVIEW_MESSAGE_START:
        json_member(&w, STR("messageId"), preview->message_id);
        json_member(&w, STR("role"), STR("assistant"));
        break;
    case PREVIEW_TEXT:
    case PREVIEW_REASONING:
        json_member(&w, STR("messageId"), preview->message_id);
        json_member(&w, STR("delta"), preview->delta);
        json_member_u64(&w, STR("offset"), preview->offset);
        break;
    case PREVIEW_CALL_START:
        json_member(&w, STR("toolCallId"), preview->call_id);
        json_member(&w, STR("toolName"), preview->tool);
        json_member(&w, STR("parentMessageId"), preview->message_id);
        json_member(&w, STR("stage"), preview->stage);
        break;
    case PREVIEW_CALL_ARGS:
        json_member(&w, STR("toolCallId"), preview->call_id);
        json_member(&w, STR("delta"), preview->delta);
        break;
    case PREVIEW_DISCARD:
        json_member(&w, STR("messageId"), preview->message_id);
        json_member(&w, STR("reason"), preview->delta);
        break;
    case PREVIEW_PROGRESS:
        progress_write(&w, preview);
        break;
    }
    json_object_end(&w);
    frame_end(out, &w);
}

void native_reset(struct buf *out, str thread_id, const char *reason, int64_t seq, msec now)
{
    char ts[RFC3339_BYTES];
    clock_rfc3339(now, ts);
    struct json_writer w;
    buf_printf(out, "id: %lld\nevent: reset\ndata: ", (long long)seq);
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("type"), STR("reset"));
    json_member(&w, STR("threadId"), thread_id);
    json_member_i64(&w, STR("seq"), seq);
    json_member(&w, STR("ts"), str_c(ts));
    json_key(&w, STR("data"));
    json_object(&w);
    json_member(&w, STR("reason"), str_c(reason));
    json_member_i64(&w, STR("seq"), seq);
    json_object_end(&w);
    frame_end(out, &w);
}

str native_ends(struct arena *arena, const struct fact *fact)
{
    bool message = is_type(fact, "text.message.end") || is_type(fact, "reasoning.end");
    bool call = is_type(fact, "tool.call");
    if (!message && !call) return STR_EMPTY;
    return stored_text(arena, fact->data, call ? STR("toolCallId") : STR("messageId"));
}

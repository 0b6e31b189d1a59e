/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of the AG-UI dialect, and its smallest events.
 *
 *     data: {"type":"TEXT_MESSAGE_CONTENT","timestamp":1794737000123,"messageId":"m1","delta":"Hi"}
 *     (an empty line)
 *
 * Invariants:
 * 1. A frame is one line: whatever JSON goes in as it is, line ends between its values become blanks.
 * 2. An absent member is left out. A known member that is null would end the client's run.
 * 3. No frame passes what clients take: long words go in pieces.
 *
 * Text and reasoning differ in names only; a row of struct agui_words_kind has them.
 */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "tool/value.h"
#include "wire/agui_int.h"
#include "wire/stored.h"

/* Each byte of a piece may be escaped in six. */
_Static_assert(6 * AGUI_DELTA_BYTES_MAX < AGUI_SNAPSHOT_BYTES_MAX, "a piece fits into a frame");

/* ---- frames ---- */

void agui_begin(struct agui_frame *frame, struct buf *out, const char *type, msec at)
{
    frame->out = out;
    buf_append(out, STR("data: "));
    frame->start = out->len;
    json_write_begin(&frame->w, out);
    json_object(&frame->w);
    json_member(&frame->w, STR("type"), str_c(type));
    if (at > 0) agui_u64_member(&frame->w, "timestamp", (uint64_t)at);
}

void agui_end(struct agui_frame *frame)
{
    json_object_end(&frame->w);
    struct buf *out = frame->out;
    if (out->len > frame->start) value_one_line(out->p + frame->start, out->len - frame->start);
    buf_append(out, STR("\n\n"));
}

void agui_text_member(struct json_writer *w, const char *key, str text)
{
    if (text.len) json_member(w, str_c(key), text);
}

void agui_raw_member(struct json_writer *w, const char *key, str json)
{
    if (!json.len) return;
    json_member_raw(w, str_c(key), json);
}

void agui_bool_member(struct json_writer *w, const char *key, bool value)
{
    json_member_bool(w, str_c(key), value);
}

void agui_u64_member(struct json_writer *w, const char *key, uint64_t value)
{
    if (!value) return;
    json_member_u64(w, str_c(key), value);
}

/* An event that has an id and at most one text beside it. */
static void put_event(struct buf *out, const char *type, msec at, const char *id_key, str id,
                      const char *text_key, str text)
{
    struct agui_frame frame;
    agui_begin(&frame, out, type, at);
    json_member(&frame.w, str_c(id_key), id);
    if (text_key) json_member(&frame.w, str_c(text_key), text);
    agui_end(&frame);
}

static void put_deltas(struct buf *out, const char *type, msec at, const char *id_key, str id,
                       str text)
{
    while (text.len) {
        /* As many bytes as fit into one frame, ending with a whole character. */
        size_t len = text.len < AGUI_DELTA_BYTES_MAX ? text.len : AGUI_DELTA_BYTES_MAX;
        while (len > 1 && len < text.len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len--;
        put_event(out, type, at, id_key, id, "delta", (str){text.p, len});
        text = str_drop(text, len);
    }
}

/* ---- words ---- */

struct agui_words_kind {
    const char *open, *start, *content, *end, *close; /* open and close: around it, or NULL */
    const char *role;
};

const struct agui_words_kind agui_text = {.start = "TEXT_MESSAGE_START",
                                          .content = "TEXT_MESSAGE_CONTENT",
                                          .end = "TEXT_MESSAGE_END",
                                          .role = "assistant"};

const struct agui_words_kind agui_reasoning = {.open = "REASONING_START",
                                               .start = "REASONING_MESSAGE_START",
                                               .content = "REASONING_MESSAGE_CONTENT",
                                               .end = "REASONING_MESSAGE_END",
                                               .close = "REASONING_END",
                                               .role = "reasoning"};

str agui_reasoning_id(str message_id, char out[static AGUI_REASONING_ID_BYTES])
{
    int len = snprintf(out, AGUI_REASONING_ID_BYTES, "%.*s-reasoning", STR_ARG(message_id));
    assert(len < (int)AGUI_REASONING_ID_BYTES);
    return (str){out, (size_t)len};
}

/* Text and reasoning of a message must not share an id: both are messages to the client. */
static str words_id(const struct agui_words_kind *kind, str id,
                    char out[static AGUI_REASONING_ID_BYTES])
{
    return kind == &agui_reasoning ? agui_reasoning_id(id, out) : id;
}

void agui_words_start(struct buf *out, const struct agui_words_kind *kind, msec at, str id)
{
    char own[AGUI_REASONING_ID_BYTES];
    id = words_id(kind, id, own);
    if (kind->open) put_event(out, kind->open, at, "messageId", id, NULL, STR_EMPTY);
    put_event(out, kind->start, at, "messageId", id, "role", str_c(kind->role));
}

void agui_words_content(struct buf *out, const struct agui_words_kind *kind, msec at, str id,
                        str text)
{
    char own[AGUI_REASONING_ID_BYTES];
    put_deltas(out, kind->content, at, "messageId", words_id(kind, id, own), text);
}

void agui_words_end(struct buf *out, const struct agui_words_kind *kind, msec at, str id,
                    str metadata)
{
    char own[AGUI_REASONING_ID_BYTES];
    struct agui_frame frame;
    id = words_id(kind, id, own);
    agui_begin(&frame, out, kind->end, at);
    json_member(&frame.w, STR("messageId"), id);
    agui_raw_member(&frame.w, "metadata", metadata);
    agui_end(&frame);
    if (kind->close) put_event(out, kind->close, at, "messageId", id, NULL, STR_EMPTY);
}

/* ---- calls and steps ---- */

void agui_call_start(struct buf *out, msec at, str id, str name, str message_id)
{
    struct agui_frame frame;
    agui_begin(&frame, out, "TOOL_CALL_START", at);
    json_member(&frame.w, STR("toolCallId"), id);
    json_member(&frame.w, STR("toolCallName"), name);
    json_member(&frame.w, STR("parentMessageId"), message_id);
    agui_end(&frame);
}

void agui_call_args(struct buf *out, msec at, str id, str args)
{
    put_deltas(out, "TOOL_CALL_ARGS", at, "toolCallId", id, args);
}

void agui_call_end(struct buf *out, msec at, str id)
{
    put_event(out, "TOOL_CALL_END", at, "toolCallId", id, NULL, STR_EMPTY);
}

void agui_step(struct buf *out, bool started, msec at, str name)
{
    put_event(out, started ? "STEP_STARTED" : "STEP_FINISHED", at, "stepName", name, NULL,
              STR_EMPTY);
}

/* ---- metadata ---- */

static void put_card(struct json_writer *w, str fact)
{
    agui_raw_member(w, "fermata.ui", stored_get(fact, STR("ui")));
    agui_raw_member(w, "fermata.uiRef", stored_get(fact, STR("uiRef")));
}

str agui_card_metadata(struct arena *arena, str fact)
{
    if (!stored_get(fact, STR("ui")).len && !stored_get(fact, STR("uiRef")).len) return STR_EMPTY;
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, fact.len + 64);
    json_object(&doc.w);
    put_card(&doc.w, fact);
    json_object_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

void agui_result_metadata(struct json_writer *w, str fact)
{
    static const char *const members[] = {"callId", "toolName", "args", "result", "error"};
    json_object(w);
    put_card(w, fact);
    json_key(w, STR("fermata.result"));
    json_object(w);
    for (size_t i = 0; i < COUNT(members); i++)
        agui_raw_member(w, members[i], stored_get(fact, str_c(members[i])));
    agui_raw_member(w, "summary", stored_get(fact, STR("content")));
    json_object_end(w);
    json_object_end(w);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the AG-UI dialect: frames, and the events that more than one of them
 * writes. A time of 0 is left out.
 */
#ifndef WIRE_AGUI_INT_H
#define WIRE_AGUI_INT_H

#include "base/json.h"
#include "wire/agui.h"

/* ---- frames ---- */

struct agui_frame {
    struct json_writer w; /* inside the event's object */
    struct buf *out;
    size_t start;
};

void agui_begin(struct agui_frame *frame, struct buf *out, const char *type, msec at);
void agui_end(struct agui_frame *frame);

/* Members; what is empty is left out. */
void agui_text_member(struct json_writer *w, const char *key, str text);
void agui_raw_member(struct json_writer *w, const char *key, str json);
void agui_bool_member(struct json_writer *w, const char *key, bool value);
void agui_u64_member(struct json_writer *w, const char *key,
                     uint64_t value); /* 0 counts as empty */

/* ---- words and calls ---- */

struct agui_words_kind; /* text, or reasoning */
extern const struct agui_words_kind agui_text, agui_reasoning;

enum { AGUI_REASONING_ID_BYTES = ID_CLIENT_BYTES_MAX + sizeof "-reasoning" };
str agui_reasoning_id(str message_id, char out[static AGUI_REASONING_ID_BYTES]);

/* START; CONTENT, in pieces if it is long, none if it is empty; END. `metadata` is JSON or empty. */
void agui_words_start(struct buf *out, const struct agui_words_kind *kind, msec at, str id);
void agui_words_content(struct buf *out, const struct agui_words_kind *kind, msec at, str id,
                        str text);
void agui_words_end(struct buf *out, const struct agui_words_kind *kind, msec at, str id,
                    str metadata);

void agui_call_start(struct buf *out, msec at, str id, str name, str message_id);
void agui_call_args(struct buf *out, msec at, str id, str args);
void agui_call_end(struct buf *out, msec at, str id);

void agui_step(struct buf *out, bool started, msec at, str name);

/* ---- metadata ---- */

/* {"fermata.ui"} or {"fermata.uiRef"}: of words with a card, from the fact; empty if there is none. */
str agui_card_metadata(struct arena *arena, str fact);

/* {"fermata.ui"?, "fermata.uiRef"?, "fermata.result"} of a call's result, from the fact. */
void agui_result_metadata(struct json_writer *w, str fact);

/* ---- what a question takes ---- */

/* The JSON Schema of a resume entry's payload, as a value. */
void agui_response_schema(struct json_writer *w, const struct interaction *interaction);

#endif

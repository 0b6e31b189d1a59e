/* SPDX-License-Identifier: Apache-2.0
 *
 * The middle of an AG-UI answer: a fold over the facts and previews of a leg.
 *
 *     text.message.start, text.delta, text.message.end      TEXT_MESSAGE_START, _CONTENT, _END
 *     reasoning.delta, reasoning.end                        REASONING_START, _MESSAGE_START,
 *                                                           _CONTENT, _MESSAGE_END, _END
 *     tool.call.start, tool.call.args, tool.call            TOOL_CALL_START, _ARGS, _END
 *     tool.call.result                                      TOOL_CALL_RESULT
 *     step.start, step.finish                               STEP_STARTED, STEP_FINISHED
 *     message.discard                                       END of whatever is open
 *     any other                                             CUSTOM "fermata." + type
 *
 * Invariants:
 * 1. What is open here is open to every client that reads along; nothing is opened twice, and
 *    nothing that is not open is continued or ended. So a fact whose previews were seen (warm) gives
 *    what is still missing and the END, and one whose previews were not (cold) gives all of it.
 * 2. Once a leg is over nothing is open.
 * 3. A message that the client cannot learn from these events, or has and should not have, sets
 *    `behind`; a snapshot is asked for as soon as nothing is open.
 *
 * To encode another fact: a row in `facts`.
 */
#include "wire/agui.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/facts.h"
#include "base/limits.h"
#include "wire/agui_int.h"
#include "wire/native.h"
#include "wire/stored.h"

void agui_init(struct agui *agui, enum agui_profile profile)
{
    *agui = (struct agui){.profile = profile};
    buf_init(&agui->calls, CALLS_TURN_MAX * (ID_CLIENT_BYTES_MAX + 2));
}

void agui_done(struct agui *agui)
{
    buf_done(&agui->calls);
}

static void note(char out[static ID_CLIENT_BYTES_MAX + 1], str id)
{
    str_note(out, ID_CLIENT_BYTES_MAX + 1, id);
}

/* ---- open calls ---- */

/* The line of a call, as an offset; -1: it is not open. */
static ptrdiff_t call_line(const struct agui *agui, str id)
{
    str rest = buf_str(&agui->calls);
    while (rest.len) {
        ptrdiff_t at = rest.p - agui->calls.p;
        if (str_eq(str_drop(str_split(&rest, '\n'), 1), id)) return at;
    }
    return -1;
}

/* False: it is open already, or there is no room; then its fact gives it whole. */
static bool call_note(struct agui *agui, str id)
{
    size_t bytes = id.len + 2;
    if (!id.len || call_line(agui, id) >= 0) return false;
    if (bytes > agui->calls.max - agui->calls.len) return false;
    buf_char(&agui->calls, '-');
    buf_append(&agui->calls, id);
    buf_char(&agui->calls, '\n');
    return true;
}

/* ---- opening and closing ---- */

static bool is_open(const struct agui_words *words, str id)
{
    return words->id[0] && str_eq(str_c(words->id), id);
}

static void words_open(struct agui_words *words, str id, uint64_t units)
{
    note(words->id, id);
    words->units = units;
}

/* Words that no fact will end: an attempt that failed. */
static void words_abandon(struct agui *agui, struct buf *out, struct agui_words *words,
                          const struct agui_words_kind *kind, msec at)
{
    if (!words->id[0]) return;
    agui_words_end(out, kind, at, str_c(words->id), STR_EMPTY);
    if (words == &agui->thought) note(agui->stray, str_c(words->id));
    words->id[0] = '\0';
    agui->behind = true;
}

static void abandon_all(struct agui *agui, struct buf *out, msec at)
{
    words_abandon(agui, out, &agui->text, &agui_text, at);
    words_abandon(agui, out, &agui->thought, &agui_reasoning, at);
    str rest = buf_str(&agui->calls);
    agui->behind = agui->behind || rest.len;
    while (rest.len) agui_call_end(out, at, str_drop(str_split(&rest, '\n'), 1));
    buf_clear(&agui->calls);
}

/* Does a snapshot belong here? */
static bool caught_up(struct agui *agui)
{
    bool open = agui->text.id[0] || agui->thought.id[0] || agui->calls.len;
    if (!agui->behind || open) return false;
    agui->behind = false;
    return true;
}

void agui_join(struct agui *agui, bool leg, const struct agui_growing *growing)
{
    agui->leg = leg;
    agui->behind = false;
    agui->text.id[0] = agui->thought.id[0] = '\0';
    buf_clear(&agui->calls);
    if (!leg || !growing) return;
    if (growing->text.len)
        words_open(&agui->text, growing->message_id, utf8_utf16_units(growing->text));
    if (growing->reasoning.len)
        words_open(&agui->thought, growing->message_id, utf8_utf16_units(growing->reasoning));
    for (size_t i = 0; i < growing->call_count; i++) {
        const struct agui_call *call = &growing->calls[i];
        if (call_note(agui, call->id) && call->args.len)
            agui->calls.p[call_line(agui, call->id)] = '+';
    }
}

/* ---- previews ---- */

static void words_start(struct agui *agui, struct buf *out, struct agui_words *words,
                        const struct agui_words_kind *kind, const struct preview *preview)
{
    if (is_open(words, preview->message_id)) return;
    words_abandon(agui, out, words, kind, preview->at);
    agui_words_start(out, kind, preview->at, preview->message_id);
    words_open(words, preview->message_id, 0);
}

/* A delta that does not continue what was sent is left out: its fact brings the rest. */
static void words_delta(struct agui *agui, struct buf *out, struct agui_words *words,
                        const struct agui_words_kind *kind, const struct preview *preview)
{
    if (!is_open(words, preview->message_id)) {
        if (preview->offset) return;
        words_start(agui, out, words, kind, preview);
    }
    if (preview->offset != words->units) return;
    agui_words_content(out, kind, preview->at, preview->message_id, preview->delta);
    words->units += utf8_utf16_units(preview->delta);
}

static void put_progress(struct buf *out, const struct preview *preview)
{
    struct agui_frame frame;
    agui_begin(&frame, out, "CUSTOM", preview->at);
    json_member(&frame.w, STR("name"), STR("fermata.tool.progress"));
    json_key(&frame.w, STR("value"));
    json_object(&frame.w);
    progress_write(&frame.w, preview);
    json_object_end(&frame.w);
    agui_end(&frame);
}

bool agui_preview(struct agui *agui, struct buf *out, const struct preview *preview)
{
    agui->stray[0] = '\0';
    if (!agui->leg) return false;
    ptrdiff_t line;
    switch (preview->kind) {
    case PREVIEW_MESSAGE_START:
        words_start(agui, out, &agui->text, &agui_text, preview);
        break;
    case PREVIEW_TEXT:
        words_delta(agui, out, &agui->text, &agui_text, preview);
        break;
    case PREVIEW_REASONING:
        words_delta(agui, out, &agui->thought, &agui_reasoning, preview);
        break;
    case PREVIEW_CALL_START:
        if (call_note(agui, preview->call_id))
            agui_call_start(out, preview->at, preview->call_id, preview->tool, preview->message_id);
        break;
    case PREVIEW_CALL_ARGS:
        line = call_line(agui, preview->call_id);
        if (line < 0 || !preview->delta.len) break;
        agui->calls.p[line] = '+';
        agui_call_args(out, preview->at, preview->call_id, preview->delta);
        break;
    case PREVIEW_DISCARD:
        abandon_all(agui, out, preview->at);
        agui->behind = true;
        break;
    case PREVIEW_PROGRESS:
        put_progress(out, preview);
        break;
    }
    return caught_up(agui);
}

/* ---- facts ---- */

/* One fact on its way. */
struct folding {
    struct agui *agui;
    struct buf *out;
    struct arena *arena;
    const struct fact *fact;
};

static str text_of(const struct folding *f, const char *key)
{
    return stored_text(f->arena, f->fact->data, str_c(key));
}

/* What stands behind so many UTF-16 units. */
static str behind_units(str text, uint64_t units)
{
    while (units && text.len) {
        size_t len = 1;
        while (len < text.len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len++;
        uint64_t taken = len == 4 ? 2 : 1;
        units = units > taken ? units - taken : 0;
        text = str_drop(text, len);
    }
    return text;
}

static void words_fact(const struct folding *f, struct agui_words *words,
                       const struct agui_words_kind *kind, str metadata)
{
    msec at = f->fact->at;
    str id = text_of(f, "messageId"), content = text_of(f, "content");
    bool open = is_open(words, id);
    if (!open) words_abandon(f->agui, f->out, words, kind, at);
    if (!open && !content.len && !metadata.len) return;
    if (!open) agui_words_start(f->out, kind, at, id);
    agui_words_content(f->out, kind, at, id, open ? behind_units(content, words->units) : content);
    agui_words_end(f->out, kind, at, id, metadata);
    words->id[0] = '\0';
}

static void on_text_end(const struct folding *f)
{
    words_fact(f, &f->agui->text, &agui_text, agui_card_metadata(f->arena, f->fact->data));
}

static void on_reasoning_end(const struct folding *f)
{
    words_fact(f, &f->agui->thought, &agui_reasoning, STR_EMPTY);
}

/* Arguments that are no object were stored as a string: they are sent as the model wrote them. */
static void on_tool_call(const struct folding *f)
{
    msec at = f->fact->at;
    str id = text_of(f, "toolCallId"), args = stored_get(f->fact->data, STR("args"));
    ptrdiff_t line = call_line(f->agui, id);
    bool sent = line >= 0 && f->agui->calls.p[line] == '+';
    if (args.len && args.p[0] == '"') args = stored_string(f->arena, args);
    if (line < 0)
        agui_call_start(f->out, at, id, text_of(f, "toolName"), text_of(f, "parentMessageId"));
    if (!sent) agui_call_args(f->out, at, id, args);
    agui_call_end(f->out, at, id);
    if (line < 0) return;
    struct buf *calls = &f->agui->calls; /* its line is over, too */
    size_t end = (size_t)line + id.len + 2;
    memmove(calls->p + line, calls->p + end, calls->len - end);
    calls->len -= id.len + 2;
}

/* Clients before 1.0 pass members on that they do not know; later ones keep only metadata. */
static void on_tool_result(const struct folding *f)
{
    static const char *const extra[] = {"ui",   "uiRef",  "callId", "toolName",
                                        "args", "result", "error"};
    struct agui_frame frame;
    str data = f->fact->data;
    agui_begin(&frame, f->out, "TOOL_CALL_RESULT", f->fact->at);
    json_member(&frame.w, STR("messageId"), text_of(f, "messageId"));
    json_member(&frame.w, STR("toolCallId"), text_of(f, "toolCallId"));
    json_member(&frame.w, STR("content"), text_of(f, "content"));
    json_member(&frame.w, STR("role"), STR("tool"));
    for (size_t i = 0; f->agui->profile == AGUI_OLD && i < COUNT(extra); i++)
        agui_raw_member(&frame.w, extra[i], stored_get(data, str_c(extra[i])));
    json_key(&frame.w, STR("metadata"));
    agui_result_metadata(&frame.w, data);
    agui_end(&frame);
}

static void on_step_start(const struct folding *f)
{
    agui_step(f->out, true, f->fact->at, text_of(f, "stepName"));
}

static void on_step_finish(const struct folding *f)
{
    agui_step(f->out, false, f->fact->at, text_of(f, "stepName"));
}

/* A message cannot be started as text: that would be the agent's. */
static void on_message_added(const struct folding *f)
{
    f->agui->behind = true;
}

/* The only fact that may be as long as a request is a queued message; who could not take the frame
 * finds it in the snapshot once its turn has come. */
static void on_other(const struct folding *f)
{
    struct agui_frame frame;
    char name[64];
    if (f->fact->data.len > AGUI_SNAPSHOT_BYTES_MAX) return;
    snprintf(name, sizeof name, "fermata.%s", f->fact->type);
    agui_begin(&frame, f->out, "CUSTOM", f->fact->at);
    json_member(&frame.w, STR("name"), str_c(name));
    json_member_raw(&frame.w, STR("value"), f->fact->data);
    agui_end(&frame);
}

static const struct {
    const char *type;
    void (*fold)(const struct folding *f);
} facts[] = {
    {FACT_TEXT_END, on_text_end},           {FACT_REASONING_END, on_reasoning_end},
    {FACT_TOOL_CALL, on_tool_call},         {FACT_TOOL_RESULT, on_tool_result},
    {FACT_STEP_START, on_step_start},       {FACT_STEP_FINISH, on_step_finish},
    {FACT_MESSAGE_ADDED, on_message_added},
};

static bool is_type(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

bool agui_fact(struct agui *agui, struct buf *out, const struct fact *fact)
{
    agui->stray[0] = '\0';
    if (is_type(fact, FACT_RUN_STARTED)) {
        agui_join(agui, true, NULL);
        return false;
    }
    if (!agui->leg) return false;
    if (is_type(fact, FACT_RUN_FINISHED) || is_type(fact, FACT_RUN_ERROR)) {
        abandon_all(agui, out, fact->at);
        agui->leg = false;
        return caught_up(agui);
    }

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct folding f = {agui, out, &arena, fact};
    size_t i = 0;
    while (i < COUNT(facts) && !is_type(fact, facts[i].type)) i++;
    if (i < COUNT(facts))
        facts[i].fold(&f);
    else
        on_other(&f);
    /* The calls of a turn follow its words, and a snapshot would have them already. */
    bool turn = is_type(fact, FACT_REASONING_END) || is_type(fact, FACT_TEXT_END) ||
                is_type(fact, FACT_TOOL_CALL);
    return !turn && caught_up(agui);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * MESSAGES_SNAPSHOT of AG-UI, and the head of an answer, which mostly has one.
 *
 * A client drops every message that a snapshot has not, so it has all of them, up to a bound:
 *
 *     row of history   message
 *     user, system     as it is; files as the client's version knows them
 *     reasoning        as it is
 *     assistant        with its calls and, as metadata, its card
 *     tool             right behind the message that made the call; metadata as its live event had
 *     others           none: they are views of interactions
 *
 * Rows that must stay together (a message with the results of its calls) are one unit; a unit is in
 * the snapshot or it is not. From the newest unit back: up to half of the bound a unit has its
 * metadata, behind that none has, and where the bound is reached the snapshot begins. How long a row
 * gets is never measured but judged from its columns, always too high: so which rows are in it
 * depends on the rows alone, and agui_same_ids can tell without writing it.
 *
 * What is growing is the newest; it stands in the snapshot as far as it has come, and is opened
 * again behind it. If it is very long it is left out of the snapshot and sent whole behind it.
 */
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "wire/agui_int.h"
#include "wire/stored.h"

enum {
    ROW_FRAME_BYTES = 768, /* ids, names, brackets */
    ESCAPE_BYTES_MAX = 6,
    PART_GROWS_MAX = 4, /* a file gets an address: its part is at most so many times as long */
    CALLS_KNOWN_MAX = 1024 * 1024, /* of the rows of one snapshot: more would not fit into it */
};

#define ATTACHMENTS_PATH "/api/v1/agent/attachments/"

/* ---- which rows ---- */

/* Links between rows are their places plus 1; 0 is none. */
struct agui_snapshot_place {
    bool top;         /* begins a unit */
    bool shown, bare; /* bare: without metadata */
    size_t first, last, next;
};

static bool is_role(const struct agui_row *row, const char *role)
{
    return str_eq(row->message.role, str_c(role));
}

static bool is_top(const struct agui_row *row)
{
    const struct message *m = &row->message;
    if (is_role(row, "assistant")) /* unless it is empty */
        return !str_eq(m->content, STR("\"\"")) || m->tool_calls.len || m->ui.len;
    return is_role(row, "user") || is_role(row, "reasoning") || is_role(row, "system");
}

static void know_calls(struct map *calls, struct arena *arena, str tool_calls,
                       struct agui_snapshot_place *place)
{
    struct json *list = NULL;
    if (!tool_calls.len || json_parse(arena, tool_calls, &list, NULL)) return;
    for (const struct json *call = list->child; call; call = call->next)
        if (map_put(calls, json_text(json_get(call, STR("id"))), place)) return; /* too many */
}

/* Find units: a result belongs to the message that made the call, and without it to nobody. */
static struct agui_snapshot_place *find_units(struct arena *arena, const struct agui_row *rows,
                                              size_t count)
{
    struct agui_snapshot_place *places = arena_array(arena, count, sizeof *places);
    AUTO(map_done) struct map calls;
    map_init(&calls, CALLS_KNOWN_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct message *m = &rows[i].message;
        places[i].top = is_top(&rows[i]);
        if (is_role(&rows[i], "assistant")) know_calls(&calls, arena, m->tool_calls, &places[i]);
        if (!is_role(&rows[i], "tool")) continue;
        struct agui_snapshot_place *owner =
            map_get(&calls, stored_text(arena, m->tool, STR("toolCallId")));
        if (!owner) continue;
        *(owner->last ? &places[owner->last - 1].next : &owner->first) = i + 1;
        owner->last = i + 1;
    }
    return places;
}

/* A person's text may be as long as a request. */
static bool is_cut(const struct message *m)
{
    return m->content.len > AGUI_ROW_BYTES_MAX;
}

static size_t row_bytes(const struct agui_row *row, bool bare)
{
    const struct message *m = &row->message;
    bool parts = m->content.len && m->content.p[0] == '[';
    size_t content = is_cut(m) ? ESCAPE_BYTES_MAX * AGUI_ROW_CUT_BYTES
                     : parts   ? PART_GROWS_MAX * m->content.len
                               : m->content.len;
    size_t bytes = ROW_FRAME_BYTES + m->id.len + content + m->tool_calls.len + m->tool.len;
    return bare ? bytes : bytes + m->ui.len + row->fact.len;
}

static size_t unit_bytes(const struct agui_row *rows, const struct agui_snapshot_place *places,
                         size_t at, bool bare)
{
    size_t bytes = row_bytes(&rows[at], bare);
    for (size_t i = places[at].first; i; i = places[i - 1].next)
        bytes += row_bytes(&rows[i - 1], bare);
    return bytes;
}

static struct agui_snapshot_place *choose(struct arena *arena, const struct agui_row *rows,
                                          size_t count, size_t taken)
{
    struct agui_snapshot_place *places = find_units(arena, rows, count);
    size_t bytes = taken + ROW_FRAME_BYTES;
    bool bare = false;
    for (size_t i = count; i-- > 0;) {
        if (!places[i].top) continue;
        size_t unit = unit_bytes(rows, places, i, bare);
        if (!bare && bytes + unit > AGUI_SNAPSHOT_BYTES_MAX / 2) {
            bare = true;
            unit = unit_bytes(rows, places, i, bare);
        }
        if (unit > AGUI_SNAPSHOT_BYTES_MAX / 2 + AGUI_SNAPSHOT_BYTES_MAX / 4)
            continue; /* the older ones are worth more */
        if (bytes + unit > AGUI_SNAPSHOT_BYTES_MAX) break;
        bytes += unit;
        places[i].shown = true;
        places[i].bare = bare;
        for (size_t k = places[i].first; k; k = places[k - 1].next) places[k - 1].bare = bare;
    }
    return places;
}

/* ---- parts of a person's message ---- */

struct file_part {
    str type, id, url, mime, filename;
};

static const char *media_type(const struct file_part *file)
{
    static const char *const types[] = {"image", "audio", "video", "document"};
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eq(file->type, str_c(types[i]))) return types[i];
    for (size_t i = 0; i + 1 < COUNT(types); i++)
        if (str_starts(file->mime, str_c(types[i])) &&
            str_starts(str_drop(file->mime, strlen(types[i])), STR("/")))
            return types[i];
    return "document";
}

static void write_media(struct json_writer *w, const struct file_part *file)
{
    json_object(w);
    json_member(w, STR("type"), str_c(media_type(file)));
    json_key(w, STR("source"));
    json_object(w);
    json_member(w, STR("type"), STR("url"));
    json_member(w, STR("value"), file->url);
    agui_text_member(w, "mimeType", file->mime);
    json_object_end(w);
    if (file->filename.len) {
        json_key(w, STR("metadata"));
        json_object(w);
        json_member(w, STR("filename"), file->filename);
        json_object_end(w);
    }
    json_object_end(w);
}

/* Clients before 1.0 want a type in any case. */
static void write_binary(struct json_writer *w, const struct file_part *file)
{
    json_object(w);
    json_member(w, STR("type"), STR("binary"));
    json_member(w, STR("mimeType"), file->mime.len ? file->mime : STR("application/octet-stream"));
    agui_text_member(w, "id", file->id);
    json_member(w, STR("url"), file->url);
    agui_text_member(w, "filename", file->filename);
    json_object_end(w);
}

static void write_part(struct json_writer *w, struct arena *arena, enum agui_profile profile,
                       const struct json *part)
{
    const struct json *source = json_get(part, STR("source"));
    struct file_part file = {
        .type = json_text(json_get(part, STR("type"))),
        .id = json_text(json_get(part, STR("id"))),
        .url = json_text(json_get(part, STR("url"))),
        .mime = json_text(json_get(source ? source : part, STR("mimeType"))),
        .filename = json_text(json_get(part, STR("filename"))),
    };
    if (str_eq(file.type, STR("text"))) {
        json_object(w);
        json_member(w, STR("type"), file.type);
        json_member(w, STR("text"), json_text(json_get(part, STR("text"))));
        json_object_end(w);
        return;
    }
    if (source) file.url = json_text(json_get(source, STR("value")));
    if (file.id.len) file.url = arena_printf(arena, ATTACHMENTS_PATH "%.*s", STR_ARG(file.id));
    if (profile == AGUI_OLD)
        write_binary(w, &file);
    else
        write_media(w, &file);
}

/* ---- rows ---- */

/* The first bytes of a text that is too long, and a sign that there was more. */
static void write_cut(struct json_writer *w, struct arena *arena, str text)
{
    size_t len = text.len;
    if (len > AGUI_ROW_CUT_BYTES) {
        len = AGUI_ROW_CUT_BYTES;
        while (len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len--;
    }
    char *cut = arena_alloc(arena, len + sizeof "…");
    if (len) memcpy(cut, text.p, len);
    memcpy(cut + len, "…", sizeof "…");
    json_string(w, (str){cut, len + sizeof "…" - 1});
}

static void write_content(struct json_writer *w, struct arena *arena, enum agui_profile profile,
                          const struct agui_row *row)
{
    const struct message *m = &row->message;
    struct json *list = NULL;
    json_key(w, STR("content"));
    if (is_cut(m)) {
        write_cut(w, arena, m->plain);
    } else if (m->content.len && m->content.p[0] == '"') {
        json_raw(w, m->content);
    } else if (!is_role(row, "user") || json_parse(arena, m->content, &list, NULL) ||
               list->type != JSON_ARRAY) {
        json_string(w, m->plain); /* only a person's message may be a list */
    } else {
        json_array(w);
        for (const struct json *part = list->child; part; part = part->next)
            write_part(w, arena, profile, part);
        json_array_end(w);
    }
}

static void write_row(struct json_writer *w, struct arena *arena, enum agui_profile profile,
                      const struct agui_row *row, bool bare)
{
    const struct message *m = &row->message;
    bool silent = m->tool_calls.len && str_eq(m->content, STR("\"\""));
    json_object(w);
    json_member(w, STR("id"), m->id);
    json_member(w, STR("role"), m->role);
    if (!silent) write_content(w, arena, profile, row);
    if (is_role(row, "tool")) {
        agui_raw_member(w, "toolCallId", stored_get(m->tool, STR("toolCallId")));
        agui_raw_member(w, "error", stored_get(m->tool, STR("error")));
        if (row->fact.len && !bare) {
            json_key(w, STR("metadata"));
            agui_result_metadata(w, row->fact);
        }
    } else if (is_role(row, "assistant")) {
        agui_raw_member(w, "toolCalls", m->tool_calls);
        if (m->ui.len && !bare) {
            json_key(w, STR("metadata"));
            json_object(w);
            agui_raw_member(w, "fermata.ui", m->ui);
            json_object_end(w);
        }
    }
    json_object_end(w);
}

/* ---- what is growing ---- */

static void write_growing_calls(struct json_writer *w, const struct agui_growing *growing)
{
    json_key(w, STR("toolCalls"));
    json_array(w);
    for (size_t i = 0; i < growing->call_count; i++) {
        const struct agui_call *call = &growing->calls[i];
        json_object(w);
        json_member(w, STR("id"), call->id);
        json_member(w, STR("type"), STR("function"));
        json_key(w, STR("function"));
        json_object(w);
        json_member(w, STR("name"), call->name);
        json_member(w, STR("arguments"), call->args);
        json_object_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_growing(struct json_writer *w, const struct agui_growing *growing)
{
    char id[AGUI_REASONING_ID_BYTES];
    if (growing->reasoning.len) {
        json_object(w);
        json_member(w, STR("id"), agui_reasoning_id(growing->message_id, id));
        json_member(w, STR("role"), STR("reasoning"));
        json_member(w, STR("content"), growing->reasoning);
        json_object_end(w);
    }
    if (!growing->text.len && !growing->call_count) return;
    json_object(w);
    json_member(w, STR("id"), growing->message_id);
    json_member(w, STR("role"), STR("assistant"));
    agui_text_member(w, "content", growing->text);
    if (growing->call_count) write_growing_calls(w, growing);
    json_object_end(w);
}

/* Bytes of what is growing in a snapshot; 0 if it is too long for one. */
static size_t growing_bytes(const struct agui_growing *growing)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, AGUI_SNAPSHOT_BYTES_MAX / 2);
    json_array(&doc.w);
    write_growing(&doc.w, growing);
    json_array_end(&doc.w);
    return doc.buf.full ? 0 : doc.buf.len;
}

/* `whole`: no snapshot has it. */
static void reopen(struct buf *out, const struct agui_growing *growing, bool whole)
{
    str id = growing->message_id;
    if (growing->reasoning.len) {
        agui_words_start(out, &agui_reasoning, 0, id);
        if (whole) agui_words_content(out, &agui_reasoning, 0, id, growing->reasoning);
    }
    if (growing->text.len) {
        agui_words_start(out, &agui_text, 0, id);
        if (whole) agui_words_content(out, &agui_text, 0, id, growing->text);
#ifdef FERMATA_PLANT_DOUBLE_DELTA /* a bug that tests/fault/cuts-dialects.test.mjs has to find */
        agui_words_content(out, &agui_text, 0, id, growing->text);
#endif
    }
    for (size_t i = 0; i < growing->call_count; i++) {
        const struct agui_call *call = &growing->calls[i];
        agui_call_start(out, 0, call->id, call->name, id);
        if (whole) agui_call_args(out, 0, call->id, call->args);
    }
}

/* ---- what others call ---- */

/* The rows of a snapshot in its order. */
struct chosen {
    const struct agui_snapshot_place *places;
    const struct agui_row **rows;
    bool *bare;
    size_t count;
};

static struct chosen choose_rows(struct arena *arena, const struct agui_row *rows, size_t count,
                                 size_t taken)
{
    struct chosen chosen = {.places = choose(arena, rows, count, taken),
                            .rows = arena_array(arena, count, sizeof *chosen.rows),
                            .bare = arena_array(arena, count, sizeof *chosen.bare)};
    for (size_t i = 0; i < count; i++) {
        const struct agui_snapshot_place *place = &chosen.places[i];
        if (!place->shown) continue;
        chosen.bare[chosen.count] = place->bare;
        chosen.rows[chosen.count++] = &rows[i];
        for (size_t tool = place->first; tool; tool = chosen.places[tool - 1].next) {
            chosen.bare[chosen.count] = place->bare;
            chosen.rows[chosen.count++] = &rows[tool - 1];
        }
    }
    return chosen;
}

static void put_snapshot(struct buf *out, struct arena *arena, enum agui_profile profile,
                         const struct chosen *chosen, size_t count,
                         const struct agui_growing *growing, const struct agui_row *more)
{
    struct agui_frame frame;
    agui_begin(&frame, out, "MESSAGES_SNAPSHOT", 0);
    json_key(&frame.w, STR("messages"));
    json_array(&frame.w);
    for (size_t i = 0; i < count; i++)
        write_row(&frame.w, arena, profile, chosen->rows[i], chosen->bare[i]);
    if (more) write_row(&frame.w, arena, profile, more, true);
    if (growing) write_growing(&frame.w, growing);
    json_array_end(&frame.w);
    agui_end(&frame);
}

void agui_snapshot(struct buf *out, enum agui_profile profile, const struct agui_row *rows,
                   size_t count, const struct agui_growing *growing)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    size_t taken = growing ? growing_bytes(growing) : 0;
    struct chosen chosen = choose_rows(&arena, rows, count, taken);
    put_snapshot(out, &arena, profile, &chosen, chosen.count, taken ? growing : NULL, NULL);
}

void agui_snapshot_without(struct buf *out, enum agui_profile profile, const struct agui_row *rows,
                           size_t count, str stray)
{
    AUTO(arena_done) struct arena arena;
    char id[AGUI_REASONING_ID_BYTES];
    arena_init(&arena);
    struct chosen chosen = choose_rows(&arena, rows, count, 0);
    bool thoughts = !stray.len;
    for (size_t i = 0; i < chosen.count; i++)
        thoughts = thoughts || is_role(chosen.rows[i], "reasoning");
    struct agui_row emptied = {
        .message = {.role = profile == AGUI_OLD ? STR("reasoning") : STR("assistant"),
                    .content = STR("\"\"")}};
    if (!thoughts) {
        emptied.message.id = agui_reasoning_id(stray, id);
        put_snapshot(out, &arena, profile, &chosen, chosen.count, NULL, &emptied);
    }
    if (thoughts || profile != AGUI_OLD)
        put_snapshot(out, &arena, profile, &chosen, chosen.count, NULL, NULL);
}

bool agui_same_ids(struct arena *arena, const struct agui_row *rows, size_t count, const str *ids,
                   size_t id_count)
{
    struct chosen chosen = choose_rows(arena, rows, count, 0);
    if (chosen.count != id_count) return false;
    for (size_t i = 0; i < id_count; i++)
        if (!str_eq(ids[i], chosen.rows[i]->message.id)) return false;
    return true;
}

/* A client leaves what it has where it has it, and puts what is new behind. Where that gives another
 * order than ours, it first has to drop what stands behind the messages that it has in our order:
 * how many these are. False: the order is right by itself. */
static bool must_drop(struct arena *arena, const struct chosen *chosen, const str *ids,
                      size_t id_count, size_t *ret_kept)
{
    AUTO(map_done) struct map known;
    map_init(&known, CALLS_KNOWN_MAX);
    size_t *places = arena_array(arena, chosen->count, sizeof *places), kept = 0;
    bool wrong = false;
    for (size_t i = 0; i < chosen->count; i++) {
        places[i] = i;
        if (map_put(&known, chosen->rows[i]->message.id, &places[i])) return false; /* too many */
    }
    for (size_t i = 0; i < id_count && !wrong; i++) {
        const size_t *place = map_get(&known, ids[i]);
        if (!place) continue;
        wrong = *place != kept;
        if (!wrong) kept++;
    }
    *ret_kept = kept;
    return wrong;
}

static void put_messages(struct buf *out, enum agui_profile profile, const struct agui_head *head)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    const struct agui_growing *growing = head->growing;
    size_t taken = growing ? growing_bytes(growing) : 0, kept = 0;
    struct chosen chosen = choose_rows(&arena, head->rows, head->row_count, taken);
    if (must_drop(&arena, &chosen, head->ids, head->id_count, &kept))
        put_snapshot(out, &arena, profile, &chosen, kept, NULL, NULL);
    put_snapshot(out, &arena, profile, &chosen, chosen.count, taken ? growing : NULL, NULL);
}

void agui_started(struct buf *out, enum agui_profile profile, str thread_id, str run_id)
{
    struct agui_frame frame;
    (void)profile; /* earlier clients pass over the version */
    agui_begin(&frame, out, "RUN_STARTED", 0);
    json_member(&frame.w, STR("threadId"), thread_id);
    json_member(&frame.w, STR("runId"), run_id);
    json_member(&frame.w, STR("protocolVersion"), STR("1.0"));
    agui_end(&frame);
}

void agui_head(struct buf *out, enum agui_profile profile, const struct agui_head *head)
{
    const struct agui_growing *growing = head->growing;
    agui_started(out, profile, head->thread_id, head->run_id);
    str state = head->state;
    if (!state.len || str_eq(state, STR("null"))) state = STR("{}");
    if (state.len <= AGUI_SNAPSHOT_BYTES_MAX) { /* a larger one is left with the client */
        struct agui_frame frame;
        agui_begin(&frame, out, "STATE_SNAPSHOT", 0);
        json_member_raw(&frame.w, STR("snapshot"), state);
        agui_end(&frame);
    }
    if (head->messages) put_messages(out, profile, head);
    if (head->step.len) agui_step(out, true, 0, head->step);
    if (growing) reopen(out, growing, !head->messages || !growing_bytes(growing));
}

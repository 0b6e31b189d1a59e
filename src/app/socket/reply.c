/* SPDX-License-Identifier: Apache-2.0
 *
 * Acks and errors. An error says what the HTTP interface says, without what only HTTP needs: status,
 * type and title.
 */
#include "app/socket/reply.h"

#include "base/json.h"

/* Up to what comes behind the id. */
static void begin(struct buf *out, struct json_writer *w, const char *type, str id)
{
    json_write_begin(w, out);
    json_object(w);
    json_member(w, STR("type"), str_c(type));
    if (!id.len) return;
    json_key(w, STR("id"));
    json_raw(w, id);
}

void reply_ack(struct buf *out, str id, str data)
{
    struct json_writer w;
    begin(out, &w, "ack", id);
    json_key(&w, STR("data"));
    json_raw(&w, data.len ? data : STR("{}"));
    json_object_end(&w);
}

void reply_pong(struct buf *out, str id)
{
    struct json_writer w;
    begin(out, &w, "pong", id);
    json_object_end(&w);
}

static void put_error(struct json_writer *w, str code, str message, str field)
{
    json_key(w, STR("data"));
    json_object(w);
    json_member(w, STR("code"), code);
    json_member(w, STR("message"), message);
    if (field.len) json_member(w, STR("field"), field);
}

void reply_fault(struct buf *out, str id, enum err e, const struct fault *why, str session_id)
{
    struct json_writer w;
    begin(out, &w, "error", id);
    put_error(&w, str_c(err_code(e)), str_c(why->text[0] ? why->text : err_title(e)),
              str_c(why->field));
    if (session_id.len) json_member(&w, STR("sessionId"), session_id);
    json_object_end(&w);
    json_object_end(&w);
}

/* "messages[0].content[1].url" of the request that was made from a message is "content[1].url" of
 * the message. */
static str frame_field(enum client_frame_type type, str field, str code)
{
    static const str before = {"messages[0].", 12};
    if (type == FRAME_MESSAGE &&
        str_eq(field, STR("messages"))) /* the id is known, or it is long */
        return str_eq(code, str_c(err_code(ERR_INVALID_FIELD))) ? STR("messageId") : STR("content");
    if (type != FRAME_MESSAGE || !str_starts(field, before)) return field;
    field = str_drop(field, before.len);
    return str_eq(field, STR("id")) ? STR("messageId") : field;
}

void reply_problem(struct buf *out, str id, enum client_frame_type type, str problem)
{
    static const char *const said[] = {"type", "title", "status", "detail", "code", "field"};
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    struct json_writer w;
    arena_init(&arena);
    begin(out, &w, "error", id);
    if (json_parse(&arena, problem, &json, NULL)) { /* made by us: it is JSON, if it is whole */
        put_error(&w, str_c(err_code(ERR_INTERNAL)), str_c(err_title(ERR_INTERNAL)), STR_EMPTY);
    } else {
        str code = json_text(json_get(json, STR("code")));
        str field = frame_field(type, json_text(json_get(json, STR("field"))), code);
        put_error(&w, code, json_text(json_get(json, STR("detail"))), field);
        for (const struct json *at = json->child; at; at = at->next) {
            size_t i = 0;
            while (i < COUNT(said) && !str_eq(at->key, str_c(said[i]))) i++;
            if (i < COUNT(said)) continue;
            json_key(&w, at->key);
            json_raw(&w, at->raw);
        }
    }
    json_object_end(&w);
    json_object_end(&w);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a frame is answered with: acks and errors; pure. An error says what a problem document says,
 * without what only HTTP needs: status, type and title.
 */
#include "socket/socket_reply.h"

#include "base/json.h"
#include "net/problem.h"

/* Up to what comes behind the id. */
static void begin(struct buf *out, struct json_writer *w, const char *type, str id)
{
    json_write_begin(w, out);
    json_object(w);
    json_member(w, STR("type"), str_c(type));
    if (id.len) json_member_raw(w, STR("id"), id);
}

void reply_ack(struct buf *out, str id, str data)
{
    struct json_writer w;
    begin(out, &w, "ack", id);
    json_member_raw(&w, STR("data"), data.len ? data : STR("{}"));
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

/* "messages[0].content[1].url" of a RunAgentInput is "content[1].url" of a frame with one message. */
static str frame_field(enum client_frame_type type, str field, enum err e)
{
    static const str before = {"messages[0].", 12};
    if (type == FRAME_MESSAGE &&
        str_eq(field, STR("messages"))) /* the id is known, or it is long */
        return e == ERR_INVALID_FIELD ? STR("messageId") : STR("content");
    if (type != FRAME_MESSAGE || !str_starts(field, before)) return field;
    field = str_drop(field, before.len);
    return str_eq(field, STR("id")) ? STR("messageId") : field;
}

void reply_refusal(struct buf *out, str id, enum client_frame_type type,
                   const struct refused_frame *refused)
{
    const struct fault *why = refused->why;
    char text[sizeof why->text], field[sizeof why->field];
    struct json_writer w;
    begin(out, &w, "error", id);
    put_error(&w, str_c(err_code(refused->e)),
              problem_clean(why->text[0] ? why->text : err_title(refused->e), text, sizeof text),
              frame_field(type, problem_clean(why->field, field, sizeof field), refused->e));
    if (refused->member.len) json_member_raw(&w, refused->member, refused->json);
    json_object_end(&w);
    json_object_end(&w);
}

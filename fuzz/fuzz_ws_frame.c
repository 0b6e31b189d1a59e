/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a client's frame: it is refused by a field that has a name, or what it asks for can be given to a
 * use case as it is: an answer that is a JSON object, ids that are valid, an id that is JSON.
 */
#include <stdlib.h>

#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "socket/client_frame.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(struct arena *arena, const struct client_frame *frame)
{
    struct json *body = NULL;
    bool answers = frame->type == FRAME_CLARIFY || frame->type == FRAME_CONFIRM;
    bool speaks = answers || frame->type == FRAME_MESSAGE;
    bool subscribes = frame->type == FRAME_SUBSCRIBE;
    if (frame->session_id.len && !id_valid(frame->session_id)) abort();
    if (frame->inbox && (frame->session_id.len || frame->events || frame->has_after)) abort();
    if (subscribes && !frame->inbox && (!frame->events || !frame->session_id.len)) abort();
    if (speaks != (frame->body.len > 0)) abort();
    if (!speaks) return;
    if ((frame->answer != NULL) != answers || (frame->content != NULL) == answers) abort();
    /* Deeper by what stands around a message's content. */
    if (json_parse(arena, frame->body, &body, NULL)) return;
    if (answers &&
        (frame->answer->count != body->count || !str_eq(frame->answer->raw, frame->body)))
        abort();
    if (body->type != JSON_OBJECT) abort();
    if (frame->type == FRAME_CONFIRM && !frame->request_id.len) abort();
    if (frame->type == FRAME_CLARIFY && json_get(body, STR("decision"))) abort();
    if (answers && (json_get(body, STR("sessionId")) || json_get(body, STR("requestId")))) abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena arena;
    struct client_frame frame;
    struct fault why = {0};
    struct json *json = NULL;
    str id;
    arena_init(&arena);
    enum err e = client_frame_parse(&arena, (str){(const char *)data, size}, &id, &frame, &why);
    if (e && (e != ERR_INVALID_FIELD || !why.text[0])) abort();
    if (id.len > WS_ID_BYTES_MAX || (id.len && json_parse(&arena, id, &json, NULL))) abort();
    if (!e) check(&arena, &frame);
    arena_done(&arena);
    return 0;
}

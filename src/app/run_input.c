/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding RunAgentInput.
 */
#include "app/run_input.h"

#include <stdio.h>

#include "base/id.h"
#include "base/limits.h"

/* A string member: absent is empty, another type is refused. */
static enum err text_member(const struct json *body, const char *name, str *ret_text,
                            struct fault *reterr)
{
    const struct json *member = json_get(body, str_c(name));
    if (member && member->type != JSON_STRING && member->type != JSON_NULL)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a string", name);
    *ret_text = json_text(member);
    return OK;
}

/* A client's id is taken if it is valid, and replaced by ours if not. */
static enum err id_member(const struct json *body, const char *name, str *ret_id,
                          struct fault *reterr)
{
    str id;
    enum err e = text_member(body, name, &id, reterr);
    if (e) return e;
    *ret_id = id_valid(id) ? id : STR_EMPTY;
    return OK;
}

static enum err part_text(const struct json *part, const char *path, str *ret_text,
                          struct fault *reterr)
{
    str type = json_text(json_get(part, STR("type")));
    const struct json *text = json_get(part, STR("text"));
    if (part->type != JSON_OBJECT || !type.len)
        return fault_field(reterr, ERR_INVALID_FIELD, path, "%s must be an object with a type",
                           path);
    if (!str_eq(type, STR("text")))
        return fault_field(reterr, ERR_INVALID_FIELD, path,
                           "parts of this type are not taken yet; send text");
    if (!text || text->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, path, "%s.text must be a string", path);
    *ret_text = text->text;
    return OK;
}

static enum err join_parts(struct arena *arena, const struct json *parts, const char *path,
                           str *ret_plain, struct fault *reterr)
{
    char *joined = arena_alloc(arena, parts->raw.len + 1);
    size_t len = 0, index = 0;
    for (const struct json *part = parts->child; part; part = part->next, index++) {
        char at[96];
        str text = STR_EMPTY;
        snprintf(at, sizeof at, "%s[%zu]", path, index);
        enum err e = part_text(part, at, &text, reterr);
        if (e) return e;
        for (size_t i = 0; i < text.len; i++) joined[len++] = text.p[i];
    }
    *ret_plain = (str){joined, len};
    return OK;
}

static bool blank(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] != ' ' && text.p[i] != '\t' && text.p[i] != '\n' && text.p[i] != '\r')
            return false;
    return true;
}

/* Space between the tokens of JSON may hold line ends, which would break an event's frame. Inside its
 * strings these bytes never stand as they are. */
static str one_line(struct arena *arena, str json)
{
    char *copy = arena_cstr(arena, json);
    for (size_t i = 0; i < json.len; i++)
        if (copy[i] == '\n' || copy[i] == '\r' || copy[i] == '\t') copy[i] = ' ';
    return (str){copy, json.len};
}

static enum err parse_message(struct arena *arena, const struct json *item, size_t index,
                              struct message *ret_message, struct fault *reterr)
{
    char path[64];
    snprintf(path, sizeof path, "messages[%zu].content", index);
    const struct json *content = json_get(item, STR("content"));
    struct message message = {.role = STR("user"), .metadata = STR("{}")};
    str id = json_text(json_get(item, STR("id")));
    message.id = id_valid(id) ? id : STR_EMPTY;
    enum err e = OK;
    if (content && content->type == JSON_STRING)
        message.plain = content->text;
    else if (content && content->type == JSON_ARRAY)
        e = join_parts(arena, content, path, &message.plain, reterr);
    else
        e = fault_field(reterr, ERR_INVALID_FIELD, path,
                        "content must be a string or a list of parts");
    if (e) return e;
    if (blank(message.plain))
        return fault_field(reterr, ERR_INVALID_FIELD, path, "the message is empty");
    message.content = content->type == JSON_ARRAY ? one_line(arena, content->raw) : content->raw;
    str replaces = json_text(json_get(json_get(item, STR("metadata")), STR("replaces")));
    if (id_valid(replaces))
        message.metadata = arena_printf(arena, "{\"replaces\":\"%.*s\"}", STR_ARG(replaces));
    *ret_message = message;
    return OK;
}

/* Only what follows the last word of anybody else is new; the rest is the client's memory of the
 * past, of which nothing is used. Tool messages count only for a front-end call; there are none. */
static enum err find_new(const struct json *list, size_t *ret_first, struct fault *reterr)
{
    size_t index = 0, first = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        str role = json_text(json_get(item, STR("role")));
        if (!role.len) {
            char path[64];
            snprintf(path, sizeof path, "messages[%zu].role", index);
            return fault_field(reterr, ERR_INVALID_FIELD, path, "a message needs a role");
        }
        if (!str_eq(role, STR("user")) && !str_eq(role, STR("tool"))) first = index + 1;
    }
    *ret_first = first;
    return OK;
}

/* What stands behind the last word of anybody but user and tools, and that word itself. */
static void find_claims(struct arena *arena, const struct json *list, size_t first,
                        struct run_input *input)
{
    size_t room = list->count < RUN_MESSAGES_MAX ? list->count : RUN_MESSAGES_MAX;
    input->claims = arena_array(arena, room + 1, sizeof *input->claims);
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        str role = json_text(json_get(item, STR("role")));
        bool says = index + 1 == first && str_eq(role, STR("assistant"));
        if (!says && (index < first || !str_eq(role, STR("tool")))) continue;
        if (input->claim_count == room) return;
        input->claims[input->claim_count++] =
            (struct claim){.id = json_text(json_get(item, STR("id"))),
                           .call_id = json_text(json_get(item, STR("toolCallId")))};
    }
}

static enum err parse_messages(struct arena *arena, const struct json *list,
                               struct run_input *input, struct fault *reterr)
{
    if (!list || list->type != JSON_ARRAY)
        return fault_field(reterr, ERR_INVALID_FIELD, "messages", "messages must be a list");
    size_t first = 0;
    enum err e = find_new(list, &first, reterr);
    if (e) return e;
    find_claims(arena, list, first, input);
    input->messages = arena_array(arena, list->count + 1, sizeof *input->messages);
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        bool user = str_eq(json_text(json_get(item, STR("role"))), STR("user"));
        if (index < first || !user) continue;
        if (input->message_count == RUN_MESSAGES_MAX)
            return fault_field(reterr, ERR_INVALID_FIELD, "messages",
                               "there may be %d new messages at a time", RUN_MESSAGES_MAX);
        e = parse_message(arena, item, index, &input->messages[input->message_count], reterr);
        if (e) return e;
        input->message_count++;
    }
    return OK;
}

static str leg_json(struct arena *arena, const struct json *body)
{
    static const char *const names[] = {"state", "tools", "context", "forwardedProps"};
    struct buf out;
    struct json_writer w;
    buf_init(&out, RUN_INPUT_BYTES_MAX + 1024);
    json_write_begin(&w, &out);
    json_object(&w);
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct json *member = json_get(body, str_c(names[i]));
        if (!member) continue;
        json_key(&w, str_c(names[i]));
        json_raw(&w, member->raw);
    }
    json_object_end(&w);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

static enum err check_resume(const struct json *body, struct fault *reterr)
{
    const struct json *resume = json_get(body, STR("resume"));
    if (!resume || resume->type == JSON_NULL) return OK;
    if (resume->type != JSON_ARRAY)
        return fault_field(reterr, ERR_INVALID_FIELD, "resume", "resume must be a list");
    if (!resume->count) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, "resume[0].interruptId",
                       "nothing is waiting under this id");
}

enum err run_input_parse(struct arena *arena, const struct json *body, struct run_input *ret_input,
                         struct fault *reterr)
{
    struct run_input input = {0};
    if (!body || body->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the body must be a JSON object");
    enum err e = id_member(body, "threadId", &input.thread_id, reterr);
    if (!e) e = id_member(body, "runId", &input.run_id, reterr);
    if (!e) e = text_member(body, "agent", &input.agent, reterr);
    if (!e) e = parse_messages(arena, json_get(body, STR("messages")), &input, reterr);
    if (!e) e = check_resume(body, reterr);
    if (e) return e;
    input.leg = leg_json(arena, body);
    *ret_input = input;
    return OK;
}

str title_from(struct arena *arena, str plain)
{
    while (plain.len && (unsigned char)plain.p[0] <= ' ') plain = str_drop(plain, 1);
    str rest = plain;
    str line = str_split(&rest, '\n');
    size_t chars = 0, end = 0;
    for (; end < line.len; end++) {
        bool starts = ((unsigned char)line.p[end] & 0xc0) != 0x80;
        if (starts && chars++ == TITLE_CHARS_MAX) break;
    }
    bool cut = end < line.len;
    line.len = end;
    while (line.len && (line.p[line.len - 1] == '\r' || line.p[line.len - 1] == ' ')) line.len--;
    return arena_printf(arena, "%.*s%s", STR_ARG(line), cut ? "…" : "");
}

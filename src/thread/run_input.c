/* SPDX-License-Identifier: Apache-2.0
 *
 * RunAgentInput decoded. Its messages are in three stretches:
 *
 *     the past | the last word of anybody but user and tools | new: user and tool messages
 *
 * Of the past only the ids are kept, to tell whether the client has what we have. Content of the user
 * that is a list goes to parts.c; of a tool's only the words are taken.
 *
 * To add a field: a line in run_input_parse, and its row in the tests and in openapi.c.
 */
#include "thread/run_input.h"

#include <stdio.h>

#include "agent/core/facts.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"

/* NULL also for null: other clients write it for what is absent. */
static const struct json *given(const struct json *object, const char *name)
{
    const struct json *member = json_get(object, str_c(name));
    return member && member->type != JSON_NULL ? member : NULL;
}

/* A string member: absent is empty, another type is refused. */
static enum err text_member(const struct json *body, const char *name, str *ret_text,
                            struct fault *reterr)
{
    const struct json *member = given(body, name);
    if (member && member->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a string", name);
    *ret_text = json_text(member);
    return OK;
}

/* A client's id is taken if it is valid, and replaced by ours if not. */
static str valid_id(str id)
{
    return id_valid(id) ? id : STR_EMPTY;
}

static enum err id_member(const struct json *body, const char *name, str *ret_id,
                          struct fault *reterr)
{
    str id;
    enum err e = text_member(body, name, &id, reterr);
    if (e) return e;
    *ret_id = valid_id(id);
    return OK;
}

static bool blank(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] != ' ' && text.p[i] != '\t' && text.p[i] != '\n' && text.p[i] != '\r')
            return false;
    return true;
}

static enum err check_content(const struct message *message, const struct parts *parts,
                              const char *path, struct fault *reterr)
{
    if (!blank(message->plain) || parts->files) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, path, "the message is empty");
}

/* Words, or a list of parts: words and files. */
static enum err parse_content(struct arena *arena, const struct json *content, size_t index,
                              const struct parts_home *home, struct message *message,
                              struct parts *ret_parts, struct fault *reterr)
{
    char path[64];
    enum err e = OK;
    snprintf(path, sizeof path, "messages[%zu].content", index);
    *ret_parts = (struct parts){0};
    if (content && content->type == JSON_ARRAY) {
        e = parts_parse(arena, content, index, home, ret_parts, reterr);
        if (e) return e;
        message->plain = parts_plain(arena, ret_parts);
    } else if (content && content->type == JSON_STRING) {
        message->plain = content->text;
        message->content = content->raw;
    } else {
        return fault_field(reterr, ERR_INVALID_FIELD, path,
                           "content must be a string or a list of parts");
    }
    return check_content(message, ret_parts, path, reterr);
}

static void count_data(struct run_input *input, const struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) input->data_count += parts->rows[i].kind == PART_DATA;
}

static enum err parse_message(struct arena *arena, const struct json *item, size_t index,
                              const struct parts_home *home, struct run_input *input,
                              struct fault *reterr)
{
    struct message message = {.id = valid_id(json_text(json_get(item, STR("id")))),
                              .role = STR("user"),
                              .metadata = STR("{}")};
    struct parts *parts = &input->parts[input->message_count];
    enum err e =
        parse_content(arena, json_get(item, STR("content")), index, home, &message, parts, reterr);
    if (e) return e;
    count_data(input, parts);
    str replaces = json_text(json_get(json_get(item, STR("metadata")), STR("replaces")));
    if (id_valid(replaces))
        message.metadata = arena_printf(arena, "{\"replaces\":\"%.*s\"}", STR_ARG(replaces));
    input->messages[input->message_count++] = message;
    return OK;
}

/* Only what follows the last word of anybody else is new; the rest is the client's memory of the
 * past, of which nothing is used. */
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

/* ---- tool messages ---- */

static enum err bad_message(struct fault *reterr, size_t index, const char *member, const char *why)
{
    char path[64];
    snprintf(path, sizeof path, "messages[%zu].%s", index, member);
    return fault_field(reterr, ERR_INVALID_FIELD, path, "%s", why);
}

/* The words of a list of parts, joined. What is no text is passed over: the model has no use for it,
 * and that is no reason to refuse the rest. */
static enum err join_parts(struct arena *arena, const struct json *list, size_t index,
                           str *ret_text, struct fault *reterr)
{
    AUTO(buf_done) struct buf out;
    size_t at = 0;
    buf_init(&out, list->raw.len);
    for (const struct json *part = list->child; part; part = part->next, at++) {
        const struct json *text = json_get(part, STR("text"));
        bool words = str_eq(json_text(json_get(part, STR("type"))), STR("text"));
        if (part->type != JSON_OBJECT || (words && (!text || text->type != JSON_STRING))) {
            char member[32];
            snprintf(member, sizeof member, "content[%zu]", at);
            return bad_message(reterr, index, member, "this is no part that we know");
        }
        if (words) buf_append(&out, text->text);
    }
    *ret_text = arena_str(arena, buf_str(&out));
    return OK;
}

/* Its words; nothing at all is an answer, too. */
static enum err parse_result(struct arena *arena, const struct json *item, struct claim *claim,
                             struct fault *reterr)
{
    const struct json *content = given(item, "content"), *error = given(item, "error");
    enum err e = OK;
    if (content && content->type == JSON_ARRAY)
        e = join_parts(arena, content, claim->index, &claim->text, reterr);
    else if (content && content->type != JSON_STRING)
        e = bad_message(reterr, claim->index, "content",
                        "content must be a string or a list of parts");
    else
        claim->text = json_text(content);
    if (!e && error && error->type != JSON_STRING)
        e = bad_message(reterr, claim->index, "error", "error must be a string");
    if (e) return e;
    claim->failed = json_text(error).len > 0;
    if (claim->failed && !claim->text.len) claim->text = error->text;
    return OK;
}

/* What stands behind the last word of anybody but user and tools, and that word itself. */
static enum err find_claims(struct arena *arena, const struct json *list, size_t first,
                            struct run_input *input, struct fault *reterr)
{
    size_t room = list->count < RUN_MESSAGES_MAX ? list->count : RUN_MESSAGES_MAX;
    input->claims = arena_array(arena, room + 1, sizeof *input->claims);
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        str role = json_text(json_get(item, STR("role")));
        bool tool = index >= first && str_eq(role, STR("tool"));
        bool says = index + 1 == first && str_eq(role, STR("assistant"));
        if (!tool && !says) continue;
        if (input->claim_count == room)
            return fault_field(reterr, ERR_INVALID_FIELD, "messages",
                               "there may be %d new tool messages at a time", RUN_MESSAGES_MAX);
        struct claim claim = {.index = index,
                              .id = json_text(json_get(item, STR("id"))),
                              .call_id = json_text(json_get(item, STR("toolCallId"))),
                              .tool = tool};
        enum err e = tool ? parse_result(arena, item, &claim, reterr) : OK;
        if (e) return e;
        input->claims[input->claim_count++] = claim;
    }
    return OK;
}

/* ---- messages ---- */

static void find_ids(struct arena *arena, const struct json *list, struct run_input *input)
{
    if (list->count > AGUI_IDS_MAX) return;
    str *ids = arena_array(arena, list->count + 1, sizeof *ids);
    for (const struct json *item = list->child; item; item = item->next) {
        str id = json_text(json_get(item, STR("id")));
        if (str_eq(json_text(json_get(item, STR("role"))), STR("activity"))) continue;
        ids[input->id_count++] = id.len <= ID_CLIENT_BYTES_MAX ? id : STR_EMPTY; /* none of ours */
    }
    input->ids = ids;
}

/* Each file is looked up, or brought to disk, before the answer. */
static enum err check_files(const struct run_input *input, struct fault *reterr)
{
    size_t files = 0;
    for (size_t i = 0; i < input->message_count; i++) files += input->parts[i].files;
    if (files <= PART_FILES_MAX) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, "messages", "a request may have %d new files",
                       PART_FILES_MAX);
}

static enum err parse_messages(struct arena *arena, const struct json *list,
                               const struct parts_home *home, struct run_input *input,
                               struct fault *reterr)
{
    if (!list || list->type != JSON_ARRAY)
        return fault_field(reterr, ERR_INVALID_FIELD, "messages", "messages must be a list");
    size_t first = 0;
    enum err e = find_new(list, &first, reterr);
    if (!e) e = find_claims(arena, list, first, input, reterr);
    if (e) return e;
    find_ids(arena, list, input);
    size_t room = list->count < RUN_MESSAGES_MAX ? list->count : RUN_MESSAGES_MAX;
    input->messages = arena_array(arena, room + 1, sizeof *input->messages);
    input->parts = arena_array(arena, room + 1, sizeof *input->parts);
    size_t index = 0;
    for (const struct json *item = list->child; item; item = item->next, index++) {
        bool user = str_eq(json_text(json_get(item, STR("role"))), STR("user"));
        if (index < first || !user) continue;
        if (input->message_count == RUN_MESSAGES_MAX)
            return fault_field(reterr, ERR_INVALID_FIELD, "messages",
                               "there may be %d new messages at a time", RUN_MESSAGES_MAX);
        e = parse_message(arena, item, index, home, input, reterr);
        if (e) return e;
    }
    return check_files(input, reterr);
}

/* ---- resume ---- */

static enum err bad_entry(struct fault *reterr, size_t index, const char *member, const char *why)
{
    char path[64];
    snprintf(path, sizeof path, "resume[%zu]%s", index, member);
    return fault_field(reterr, ERR_INVALID_FIELD, path, "%s", why);
}

static enum err parse_entry(const struct json *item, size_t index, struct map *seen,
                            struct resume_entry *entry, struct fault *reterr)
{
    if (item->type != JSON_OBJECT)
        return bad_entry(reterr, index, "", "an entry must be an object");
    str id = json_text(json_get(item, STR("interruptId")));
    str status = json_text(json_get(item, STR("status")));
    if (!id.len)
        return bad_entry(reterr, index, ".interruptId", "an entry needs the id of an interrupt");
    if (map_get(seen, id))
        return bad_entry(reterr, index, ".interruptId", "this interrupt has an entry already");
    entry->cancelled = str_eq(status, STR("cancelled"));
    if (!entry->cancelled && !str_eq(status, STR("resolved")))
        return bad_entry(reterr, index, ".status", "status must be resolved or cancelled");
    entry->interrupt_id = id;
    entry->payload = given(item, "payload");
    return map_put(seen, id, entry);
}

static enum err parse_resume(struct arena *arena, const struct json *list, struct run_input *input,
                             struct fault *reterr)
{
    if (!list) return OK;
    if (list->type != JSON_ARRAY)
        return fault_field(reterr, ERR_INVALID_FIELD, "resume", "resume must be a list");
    if (list->count > RESUME_ENTRIES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "resume", "resume may have %d entries",
                           RESUME_ENTRIES_MAX);
    input->resume = arena_array(arena, list->count + 1, sizeof *input->resume);
    AUTO(map_done) struct map seen;
    map_init(&seen, RESUME_ENTRIES_MAX);
    enum err e = OK;
    for (const struct json *item = list->child; !e && item; item = item->next) {
        size_t index = input->resume_count++;
        e = parse_entry(item, index, &seen, &input->resume[index], reterr);
    }
    return e;
}

/* ---- the leg ---- */

static str leg_json(struct arena *arena, const struct json *body)
{
    static const char *const names[] = {"state", "tools", "context", "forwardedProps"};
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, RUN_INPUT_BYTES_MAX + 1024);
    json_object(&doc.w);
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct json *member = given(body, names[i]);
        if (!member) continue;
        json_member_raw(&doc.w, str_c(names[i]), member->raw);
    }
    json_object_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

static enum err check_list(const struct json *body, const char *name, struct fault *reterr)
{
    const struct json *member = given(body, name);
    if (!member || member->type == JSON_ARRAY) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a list", name);
}

enum err run_input_parse(struct arena *arena, const struct json *body,
                         const struct parts_home *home, struct run_input *ret_input,
                         struct fault *reterr)
{
    struct run_input input = {0};
    str version = STR_EMPTY;
    if (!body || body->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the body must be a JSON object");
    enum err e = id_member(body, "threadId", &input.thread_id, reterr);
    if (!e) e = id_member(body, "runId", &input.run_id, reterr);
    if (!e) e = text_member(body, "agent", &input.agent, reterr);
    if (!e) e = text_member(body, "protocolVersion", &version, reterr);
    if (!e) e = check_list(body, "tools", reterr);
    if (!e) e = check_list(body, "context", reterr);
    if (!e) e = parse_messages(arena, json_get(body, STR("messages")), home, &input, reterr);
    if (!e) e = parse_resume(arena, given(body, "resume"), &input, reterr);
    if (e) return e;
    input.versioned = version.len > 0;
    input.leg = leg_json(arena, body);
    *ret_input = input;
    return OK;
}

/* Words alone are content as they are; with files they are a list of parts. */
static enum err take_words(struct arena *arena, const struct lone_message *lone,
                           struct message *message, struct parts *ret_parts, struct fault *reterr)
{
    message->plain = lone->words;
    if (!lone->file_count) {
        message->content = text_json(arena, lone->words);
        return check_content(message, ret_parts, "messages[0].content", reterr);
    }
    return parts_of_files(arena, lone->words, lone->files, lone->file_count, ret_parts, reterr);
}

enum err run_input_of_message(struct arena *arena, const struct lone_message *lone,
                              const struct parts_home *home, struct run_input *ret_input,
                              struct fault *reterr)
{
    struct run_input input = {.thread_id = valid_id(lone->thread_id),
                              .run_id = valid_id(lone->run_id),
                              .agent = lone->agent,
                              .messages = ARENA_NEW(arena, struct message),
                              .parts = ARENA_NEW(arena, struct parts),
                              .message_count = 1,
                              .leg = STR("{}")};
    struct message *message = &input.messages[0];
    *message =
        (struct message){.id = valid_id(lone->id), .role = STR("user"), .metadata = STR("{}")};
    enum err e = lone->content ? parse_content(arena, lone->content, 0, home, message,
                                               &input.parts[0], reterr)
                               : take_words(arena, lone, message, &input.parts[0], reterr);
    if (e) return e;
    count_data(&input, &input.parts[0]);
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to Anthropic's Messages API, and to servers that speak it. anthropic_read.c has the way
 * back.
 *
 * The API wants turns that alternate, and a conversation that begins and ends with the user's. So
 * neighbours of one side become one message with several blocks:
 *
 *     ours  system user user assistant[a,b] tool a tool b user (files) assistant
 *           \______________/ \____________/ \_____________________/ \_______/
 *     API        user           assistant            user             assistant   user (go on)
 *
 * Invariants:
 * 1. Sides alternate; the first and the last message are the user's. Where ours are not, a few
 *    words are made up: a plan's next step follows what the model itself said last, and to the API
 *    an answer at the end is one to be continued word by word.
 * 2. The results of an assistant's calls stand at the beginning of the message behind it.
 * 3. No text is blank: the API refuses the whole request for one. A message without anything else
 *    is left out.
 * 4. What the model thought goes back first, byte for byte: it is signed. Not without words or
 *    calls behind it.
 *
 * To add a kind of block: a function put_xxx, called where its side is written.
 */
#include "model/anthropic.h"

#include "base/crypto.h"
#include "base/json.h"
#include "net/http_client.h"

/* The API has no default for the tokens of an answer. This is what the smallest of its models that
 * are still served can write. */
enum { MAX_TOKENS = 4096 };

/* A message of ours that has something to say. */
struct entry {
    const struct model_message *message;
    const struct json *calls; /* of an assistant's; NULL: none */
    bool assistant;
};

/* ---- blocks ---- */

static bool anthropic_blank(str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\v' && c != '\f') return false;
    }
    return true;
}

static void put_text(struct json_writer *w, str text)
{
    if (anthropic_blank(text)) return;
    json_object(w);
    json_member(w, STR("type"), STR("text"));
    json_member(w, STR("text"), text);
    json_object_end(w);
}

/* Straight into the buffer: a picture may have 5 MiB. */
static void put_image(struct json_writer *w, const struct model_image *image)
{
    json_object(w);
    json_member(w, STR("type"), STR("image"));
    json_key(w, STR("source"));
    json_object(w);
    json_member(w, STR("type"), STR("base64"));
    json_member(w, STR("media_type"), image->mime);
    json_key(w, STR("data")); /* straight into the buffer: a picture may have 5 MiB */
    json_raw(w, STR("\""));
    char *room = buf_room(w->out, BASE64_BYTES(image->bytes.len));
    if (room) {
        crypto_base64(image->bytes, room);
        buf_added(w->out, BASE64_BYTES(image->bytes.len) - 1);
        buf_char(w->out, '"');
    }
    json_object_end(w);
    json_object_end(w);
}

/* Ids of calls are [A-Za-z0-9_-]; ours are too, but for the cards of messages that were named by
 * somebody else. */
static str call_id(struct arena *arena, str id)
{
    char *fine = arena_cstr(arena, id);
    for (size_t i = 0; i < id.len; i++) {
        char c = char_lower(fine[i]);
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!letter) fine[i] = '_';
    }
    return (str){fine, id.len};
}

static void put_result(struct arena *arena, struct json_writer *w,
                       const struct model_message *message)
{
    json_object(w);
    json_member(w, STR("type"), STR("tool_result"));
    json_member(w, STR("tool_use_id"), call_id(arena, message->tool_call_id));
    if (!anthropic_blank(message->text)) json_member(w, STR("content"), message->text);
    json_object_end(w);
}

static void put_call(struct arena *arena, struct json_writer *w, const struct json *call)
{
    const struct json *function = json_get(call, STR("function"));
    str arguments = json_text(json_get(function, STR("arguments")));
    struct json *input = NULL;
    bool fine = json_parse(arena, arguments, &input, NULL) == OK && input->type == JSON_OBJECT;
    json_object(w);
    json_member(w, STR("type"), STR("tool_use"));
    json_member(w, STR("id"), call_id(arena, json_text(json_get(call, STR("id")))));
    json_member(w, STR("name"), json_text(json_get(function, STR("name"))));
    /* Text that is no object was refused to the model when it made the call; the API still wants one. */
    json_member_raw(w, STR("input"), fine ? input->raw : STR("{}"));
    json_object_end(w);
}

/* What the model gave along with its words: the blocks of its thoughts. */
static void put_thoughts(struct arena *arena, struct json_writer *w, str provider_data)
{
    struct json *list = NULL;
    if (!provider_data.len || json_parse(arena, provider_data, &list, NULL)) return;
    if (list->type != JSON_ARRAY) return;
    for (const struct json *block = list->child; block; block = block->next)
        if (block->type == JSON_OBJECT) json_raw(w, block->raw);
}

/* ---- messages ---- */

static const struct json *calls_of(struct arena *arena, const struct model_message *message)
{
    struct json *calls = NULL;
    if (!message->tool_calls.len || json_parse(arena, message->tool_calls, &calls, NULL))
        return NULL;
    return calls->type == JSON_ARRAY && calls->count ? calls : NULL;
}

/* Those that have something to say. */
static size_t anthropic_choose(struct arena *arena, const struct model_request *request,
                               struct entry *entries)
{
    size_t count = 0;
    for (size_t i = 0; i < request->count; i++) {
        const struct model_message *message = &request->messages[i];
        struct entry entry = {.message = message,
                              .assistant = str_eq(message->role, STR("assistant"))};
        if (entry.assistant) entry.calls = calls_of(arena, message);
        bool result = str_eq(message->role, STR("tool"));
        if (result || entry.calls || message->image_count || !anthropic_blank(message->text))
            entries[count++] = entry;
    }
    return count;
}

static void begin_message(struct json_writer *w, bool assistant)
{
    json_object(w);
    json_member(w, STR("role"), assistant ? STR("assistant") : STR("user"));
    json_key(w, STR("content"));
    json_array(w);
}

static void end_message(struct json_writer *w)
{
    json_array_end(w);
    json_object_end(w);
}

static void put_made_up(struct json_writer *w, str locale, str english, str chinese)
{
    begin_message(w, false);
    put_text(w, str_starts(locale, STR("zh")) ? chinese : english);
    end_message(w);
}

/* Neighbours of one side. */
static void put_side(struct arena *arena, struct json_writer *w, const struct entry *entries,
                     size_t count)
{
    begin_message(w, entries->assistant);
    for (size_t i = 0; i < count; i++)
        if (str_eq(entries[i].message->role, STR("tool"))) put_result(arena, w, entries[i].message);
    for (size_t i = 0; i < count; i++) {
        const struct model_message *message = entries[i].message;
        if (str_eq(message->role, STR("tool"))) continue;
        if (entries[i].assistant) put_thoughts(arena, w, message->provider_data);
        for (size_t k = 0; !entries[i].assistant && k < message->image_count; k++)
            put_image(w, &message->images[k]);
        put_text(w, message->text);
        const struct json *call = entries[i].calls ? entries[i].calls->child : NULL;
        for (; call; call = call->next) put_call(arena, w, call);
    }
    end_message(w);
}

static void put_messages(struct arena *arena, struct json_writer *w,
                         const struct model_request *request)
{
    struct entry *entries = arena_array(arena, request->count + 1, sizeof *entries);
    size_t count = anthropic_choose(arena, request, entries);
    json_key(w, STR("messages"));
    json_array(w);
    if (!count || entries[0].assistant)
        put_made_up(w, request->locale, STR("(The conversation goes on from here.)"),
                    STR("（对话从这里继续。）"));
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && entries[end].assistant == entries[i].assistant;) end++;
        put_side(arena, w, &entries[i], end - i);
    }
    if (count && entries[count - 1].assistant)
        put_made_up(w, request->locale, STR("Go on."), STR("请继续。"));
    json_array_end(w);
}

/* ---- tools ---- */

/* The API wants to read that it is an object, which a client's schema may leave unsaid. */
static void put_schema(struct json_writer *w, const struct json *schema)
{
    json_key(w, STR("input_schema"));
    if (str_eq(json_text(json_get(schema, STR("type"))), STR("object"))) {
        json_raw(w, schema->raw);
        return;
    }
    json_object(w);
    json_member(w, STR("type"), STR("object"));
    const struct json *member = schema && schema->type == JSON_OBJECT ? schema->child : NULL;
    for (; member; member = member->next) {
        if (str_eq(member->key, STR("type"))) continue;
        json_member_raw(w, member->key, member->raw);
    }
    json_object_end(w);
}

static void put_tools(struct arena *arena, struct json_writer *w, str tools)
{
    struct json *list = NULL;
    if (!tools.len || json_parse(arena, tools, &list, NULL) || !list->child) return;
    json_key(w, STR("tools"));
    json_array(w);
    for (const struct json *tool = list->child; tool; tool = tool->next) {
        str description = json_text(json_get(tool, STR("description")));
        json_object(w);
        json_member(w, STR("name"), json_text(json_get(tool, STR("name"))));
        if (description.len) json_member(w, STR("description"), description);
        put_schema(w, json_get(tool, STR("parameters")));
        json_object_end(w);
    }
    json_array_end(w);
}

/* ---- the codec ---- */

static void write_request(struct buf *out, struct arena *arena,
                          const struct model_http_options *options,
                          const struct model_request *request)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("model"), options->name);
    json_member_u64(&w, STR("max_tokens"), options->max_output ? options->max_output : MAX_TOKENS);
    json_member_bool(&w, STR("stream"), true);
    if (!anthropic_blank(request->system)) json_member(&w, STR("system"), request->system);
    put_tools(arena, &w, request->tools);
    put_messages(arena, &w, request);
    json_object_end(&w);
}

static size_t anthropic_headers(struct arena *arena, const struct model_http_options *options,
                                struct client_header *ret_headers, size_t max)
{
    size_t count = 0;
    assert(max >= 2);
    ret_headers[count++] = (struct client_header){"anthropic-version", "2023-06-01"};
    if (options->api_key.len)
        ret_headers[count++] =
            (struct client_header){"x-api-key", arena_cstr(arena, options->api_key)};
    return count;
}

/* {"type":"error","error":{"type","message"}} */
static str error_text(struct arena *arena, str body)
{
    struct json *json = NULL;
    if (json_parse(arena, body, &json, NULL)) return STR_EMPTY;
    const struct json *error = json_get(json, STR("error"));
    str text = json_text(json_get(error, STR("message")));
    return arena_str(arena, text.len ? text : json_text(json_get(error, STR("type"))));
}

const struct codec codec_anthropic = {
    .provider = "anthropic",
    .path = "/v1/messages",
    .headers = anthropic_headers,
    .write = write_request,
    .decoder_bytes = sizeof(struct anthropic_decoder),
    .begin = anthropic_begin,
    .event = anthropic_event,
    .eof = anthropic_eof,
    .result = anthropic_result,
    .done = anthropic_done,
    .error_text = error_text,
};

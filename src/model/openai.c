/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to OpenAI's chat completions, and to the many servers that speak it. openai_read.c has the
 * way back.
 *
 *     {"model", "stream": true, "stream_options": {"include_usage": true}, "max_tokens"?,
 *      "messages": [{"role": "system", "content"},
 *                   {"role": "user", "content": "text" or [{"type": "text"}, {"type": "image_url"}]},
 *                   {"role": "assistant", "content" or null, "tool_calls"?, "reasoning_content"?},
 *                   {"role": "tool", "tool_call_id", "content"}],
 *      "tools"?: [{"type": "function", "function": {"name", "description", "parameters"}}]}
 *
 * The API takes messages of one role behind each other, so ours go as they are, one for one.
 *
 * max_tokens is what all of these servers know. OpenAI itself has given it up, and its newer models
 * refuse it: there it is max_completion_tokens.
 *
 * To send one more option: a member in write_body, and a field of model_http_options.
 */
#include "model/openai.h"

#include "base/crypto.h"
#include "base/limits.h"
#include "net/http_client.h"

/* ---- messages ---- */

/* "data:image/png;base64,..." straight into the buffer: a picture may have 5 MiB. */
static void write_data_url(struct json_writer *w, struct arena *arena,
                           const struct model_image *image)
{
    json_raw(w, arena_printf(arena, "\"data:%.*s;base64,", STR_ARG(image->mime)));
    char *room = buf_room(w->out, BASE64_BYTES(image->bytes.len));
    if (!room) return;
    crypto_base64(image->bytes, room);
    buf_added(w->out, BASE64_BYTES(image->bytes.len) - 1);
    buf_char(w->out, '"');
}

static void write_parts(struct json_writer *w, struct arena *arena,
                        const struct model_message *message)
{
    json_array(w);
    if (message->text.len) {
        json_object(w);
        json_member(w, STR("type"), STR("text"));
        json_member(w, STR("text"), message->text);
        json_object_end(w);
    }
    for (size_t i = 0; i < message->image_count; i++) {
        json_object(w);
        json_member(w, STR("type"), STR("image_url"));
        json_key(w, STR("image_url"));
        json_object(w);
        json_key(w, STR("url"));
        write_data_url(w, arena, &message->images[i]);
        json_object_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

/* What the model thought before it called, under the name by which it came. */
static void write_kept(struct json_writer *w, struct arena *arena, str provider_data)
{
    static const str names[] = {STR("reasoning_content"), STR("reasoning")};
    struct json *kept = NULL;
    if (!provider_data.len || json_parse(arena, provider_data, &kept, NULL)) return;
    for (size_t i = 0; i < COUNT(names); i++) {
        str text = json_text(json_get(kept, names[i]));
        if (text.len) json_member(w, names[i], text);
    }
}

static void write_message(struct json_writer *w, struct arena *arena,
                          const struct model_message *message)
{
    json_object(w);
    json_member(w, STR("role"), message->role);
    if (str_eq(message->role, STR("assistant"))) {
        json_key(w, STR("content"));
        if (message->text.len || !message->tool_calls.len)
            json_string(w, message->text);
        else
            json_null(w);
        write_kept(w, arena, message->provider_data);
        if (message->tool_calls.len) /* ours have this very shape */
            json_member_raw(w, STR("tool_calls"), message->tool_calls);
    } else {
        if (message->tool_call_id.len) json_member(w, STR("tool_call_id"), message->tool_call_id);
        json_key(w, STR("content"));
        if (message->image_count)
            write_parts(w, arena, message);
        else
            json_string(w, message->text);
    }
    json_object_end(w);
}

static void write_messages(struct json_writer *w, struct arena *arena,
                           const struct model_request *request)
{
    json_key(w, STR("messages"));
    json_array(w);
    if (request->system.len)
        write_message(w, arena,
                      &(const struct model_message){.role = STR("system"),
                                                    .text = request->system});
    for (size_t i = 0; i < request->count; i++) write_message(w, arena, &request->messages[i]);
    json_array_end(w);
}

/* ---- the rest ---- */

static void write_tools(struct json_writer *w, struct arena *arena, str tools)
{
    struct json *list;
    if (!tools.len || json_parse(arena, tools, &list, NULL) || !list->count) return;
    json_key(w, STR("tools"));
    json_array(w);
    for (const struct json *tool = list->child; tool; tool = tool->next) {
        json_object(w);
        json_member(w, STR("type"), STR("function"));
        json_member_raw(w, STR("function"), tool->raw);
        json_object_end(w);
    }
    json_array_end(w);
}

/* OpenAI itself, in one of its regions or none. */
static bool is_openai(str base_url)
{
    ptrdiff_t scheme = str_find(base_url, STR("://"));
    str rest = scheme < 0 ? base_url : str_drop(base_url, (size_t)scheme + 3);
    str host = str_split(&rest, '/');
    rest = host;
    host = str_split(&rest, ':');
    return str_eq_nocase(host, STR("api.openai.com")) || str_ends(host, STR(".api.openai.com"));
}

static void write_body(struct buf *out, struct arena *arena,
                       const struct model_http_options *options,
                       const struct model_request *request)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("model"), options->name);
    json_member_bool(&w, STR("stream"), true);
    json_member_raw(&w, STR("stream_options"), STR("{\"include_usage\":true}"));
    if (options->max_output) {
        json_member_u64(
            &w, is_openai(options->base_url) ? STR("max_completion_tokens") : STR("max_tokens"),
            options->max_output);
    }
    write_messages(&w, arena, request);
    write_tools(&w, arena, request->tools);
    json_object_end(&w);
}

static size_t openai_headers(struct arena *arena, const struct model_http_options *options,
                             struct client_header *ret_headers, size_t max)
{
    if (!options->api_key.len || !max) return 0;
    str bearer = arena_printf(arena, "Bearer %.*s", STR_ARG(options->api_key));
    ret_headers[0] = (struct client_header){"Authorization", arena_cstr(arena, bearer)};
    return 1;
}

/* A page is for browsers, and says nothing that helps here. */
static str error_text(struct arena *arena, str body)
{
    struct json *document;
    if (!codec_json(arena, body, &document)) return openai_error_words(document);
    body = str_trim(body);
    return body.len && body.p[0] != '<' && body.p[0] != '{' ? arena_str(arena, body) : STR_EMPTY;
}

const struct codec codec_openai = {
    .provider = "openai",
    .path = "/chat/completions",
    .headers = openai_headers,
    .write = write_body,
    .decoder_bytes = sizeof(struct openai_decoder),
    .begin = openai_begin,
    .event = openai_event,
    .eof = openai_eof,
    .result = openai_result,
    .done = openai_done,
    .error_text = error_text,
};

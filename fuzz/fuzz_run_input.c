/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON as RunAgentInput: it is refused, or every message has text or files, content that is JSON or parts of
 * which each is one thing, and what is kept of the leg parses again. Entries of `resume` name something, each once,
 * and their payloads stand for an object or for nothing.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "thread/resume.h"
#include "thread/run_input.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_parts(struct arena *arena, const struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->rows[i];
        size_t len = 0;
        unsigned char *bytes = arena_alloc(arena, part->data.len / 4 * 3 + 1);
        bool text = part->text_json.len, own = part->id.len, data = part->data.len;
        bool foreign = part->url.len;
        if (part->kind != PART_DATA && text + own + data + foreign != 1) abort();
        if (part->kind == PART_DATA && (text || own || foreign || !part->mime.len)) abort();
        if (!utf8_valid(part->filename)) abort();
        if (parts_base64(part->data, bytes, &len) && len > part->data.len / 4 * 3) abort();
    }
}

static void check_resume(struct arena *arena, const struct run_input *input)
{
    if (input->resume_count > RESUME_ENTRIES_MAX) abort();
    for (size_t i = 0; i < input->resume_count; i++) {
        const struct resume_entry *entry = &input->resume[i];
        if (!entry->interrupt_id.len) abort();
        for (size_t j = 0; j < i; j++)
            if (str_eq(entry->interrupt_id, input->resume[j].interrupt_id)) abort();
        for (int type = 0; type < INTERACTION_TYPE_COUNT; type++) {
            struct resume_body body;
            struct fault why = {0};
            enum err e =
                resume_read(arena, (enum interaction_type)type, entry->payload, &body, &why);
            if (e && e != ERR_INVALID_FIELD && e != ERR_TOO_LARGE) abort();
            if (e ? !why.text[0] : body.json->type != JSON_OBJECT) abort();
        }
    }
}

static void check_claims(const struct run_input *input)
{
    if (input->claim_count > RUN_MESSAGES_MAX || input->id_count > AGUI_IDS_MAX) abort();
    for (size_t i = 0; i < input->claim_count; i++)
        if (!utf8_valid(input->claims[i].text) ||
            (input->claims[i].failed && !input->claims[i].text.len))
            abort();
    for (size_t i = 0; i < input->id_count; i++)
        if (input->ids[i].len > ID_CLIENT_BYTES_MAX) abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena arena;
    struct json *body = NULL, *again = NULL;
    struct run_input input;
    const struct parts_home home = {
        .origin = STR("https://a.example"), .prefix = STR("/p"), .host = STR("a.example")};
    arena_init(&arena);
    if (json_parse(&arena, (str){(const char *)data, size}, &body, NULL) == OK &&
        run_input_parse(&arena, body, &home, &input, NULL) == OK) {
        if (json_parse(&arena, input.leg, &again, NULL)) abort();
        check_resume(&arena, &input);
        check_claims(&input);
        for (size_t i = 0; i < input.message_count; i++) {
            if (!input.messages[i].plain.len && !input.parts[i].files) abort();
            if (!input.parts[i].count &&
                json_parse(&arena, input.messages[i].content, &again, NULL))
                abort();
            check_parts(&arena, &input.parts[i]);
            if (json_parse(&arena, input.messages[i].metadata, &again, NULL)) abort();
            if (!utf8_valid(title_from(&arena, input.messages[i].plain))) abort();
        }
    }
    arena_done(&arena);
    return 0;
}

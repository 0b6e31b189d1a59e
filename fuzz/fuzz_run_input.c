/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON as RunAgentInput: it is refused, or every message has text or files, content that is JSON or parts of
 * which each is one thing, and what is kept of the leg parses again.
 */
#include <stdlib.h>

#include "app/run_input.h"

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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON as RunAgentInput: it is refused, or every message has text and content that is JSON, and what is kept
 * of the leg parses again.
 */
#include <stdlib.h>

#include "app/run_input.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena arena;
    struct json *body = NULL, *again = NULL;
    struct run_input input;
    arena_init(&arena);
    if (json_parse(&arena, (str){(const char *)data, size}, &body, NULL) == OK &&
        run_input_parse(&arena, body, &input, NULL) == OK) {
        if (json_parse(&arena, input.leg, &again, NULL)) abort();
        for (size_t i = 0; i < input.message_count; i++) {
            if (!input.messages[i].plain.len) abort();
            if (json_parse(&arena, input.messages[i].content, &again, NULL)) abort();
            if (json_parse(&arena, input.messages[i].metadata, &again, NULL)) abort();
            if (!utf8_valid(title_from(&arena, input.messages[i].plain))) abort();
        }
    }
    arena_done(&arena);
    return 0;
}

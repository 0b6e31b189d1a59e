/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a message of the inbox. They are damaged, or a message within its limits, which is
 * written, reads back and is written alike.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "chat/inbound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_limits(const struct inbound *inbound)
{
    if (!inbound->id.len || inbound->id.len > CHANNEL_ID_BYTES_MAX) abort();
    if (!inbound->sender.len || inbound->sender.len > CHANNEL_ID_BYTES_MAX) abort();
    if (inbound->text.len > CHANNEL_TEXT_BYTES_MAX || !utf8_valid(inbound->text)) abort();
    if (inbound->reply_token.len > CHANNEL_TOKEN_BYTES_MAX) abort();
    if (inbound->button.len > CHANNEL_ID_BYTES_MAX) abort();
    if (inbound->file_count > CHANNEL_INBOUND_FILES_MAX) abort();
    if (inbound->at < 0 || inbound->window_ms < 0) abort();
    for (size_t i = 0; i < inbound->file_count; i++)
        if (!inbound->files[i].ref.len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    struct inbound inbound = {0}, again = {0};
    arena_init(&arena);
    enum err e = inbound_parse(&arena, (str){(const char *)data, size}, &inbound);
    if (e && e != ERR_DAMAGED) abort();
    if (e) return 0;
    check_limits(&inbound);
    str json = inbound_json(&arena, &inbound);
    if (!json.len || inbound_parse(&arena, json, &again)) abort();
    if (!str_eq(inbound_json(&arena, &again), json)) abort();
    return 0;
}

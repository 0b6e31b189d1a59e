/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as a script. A refusal has a reason; what is taken keeps the promises that the player
 * relies on, for the whole answer and for the one that fails.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "model/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) abort();
}

static void check_play(const struct play *play)
{
    check(play->chunk >= 1 && play->chunk <= SCRIPT_CHUNK_MAX);
    check(play->delay_ms >= 0 && play->delay_ms <= SCRIPT_MS_MAX);
    check(play->gap_ms >= 0 && play->gap_ms <= SCRIPT_MS_MAX);
    check((play->why == NULL) == (play->end == MODEL_DONE));
    for (size_t i = 0; i < play->count; i++) {
        const struct piece *piece = &play->pieces[i];
        check(i == 0 || piece->kind >= play->pieces[i - 1].kind);
        check(utf8_valid(piece->bytes) && utf8_valid(piece->name));
        check(piece->kind == PIECE_CALL ? piece->name.len > 0 : piece->bytes.len > 0);
        str first = player_chars(piece->bytes, play->chunk);
        check(utf8_valid(first) && (first.len > 0 || piece->bytes.len == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = {(const char *)data, size};
    struct script *script = NULL;
    struct fault fault = {0};
    if (script_parse("s", text, &script, &fault)) {
        check(script == NULL && fault.err == ERR_CONFIG && fault.text[0] == 's');
        check(utf8_valid(str_c(fault.text)));
        return 0;
    }
    /* Its own text is as good a message, or a result, as any. */
    const struct model_message messages[] = {
        {.role = STR("user"), .text = text},
        {.role = STR("assistant"),
         .tool_calls = STR("[{\"id\":\"c\",\"function\":{\"name\":\"ask_user\"}},{\"id\":\"d\","
                           "\"function\":{\"name\":\"find\"}}]")},
        {.role = STR("tool"), .text = text, .tool_call_id = STR("c")},
        {.role = STR("tool"),
         .text = STR("{\"events\":[{},{\"start_time\":1}]}"),
         .tool_call_id = STR("d")},
    };
    bool valid = utf8_valid(text); /* as every message is */
    for (uint32_t round = 1; valid && round <= 6; round++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct play play;
        struct model_request request = {.system = STR("2026-11-15 05:52 UTC\nEurope/Berlin"),
                                        .messages = messages,
                                        .count = round % 2 ? 1 : COUNT(messages),
                                        .tools = STR("[{\"name\":\"ask_user\"}]"),
                                        .round = (round + 1) / 2};
        if (script_answer(script, &request, &arena, &play)) check_play(&play);
    }
    script_free(script);
    return 0;
}

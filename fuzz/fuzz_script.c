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
    /* Its own text is as good a message as any. */
    for (uint32_t round = 1; round <= 3; round++) {
        const struct script_turn *turn = script_turn(script, text, round);
        if (!turn) break;
        check_play(&turn->play);
        if (turn->failures_max) check_play(&turn->failing);
    }
    script_free(script);
    return 0;
}

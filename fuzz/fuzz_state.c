/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a snapshot. A refusal names its reason. What loads can be written, loads again as
 * the same bytes, has a known effect, and can be brought to an end by every input.
 */
#include <stdlib.h>

#include "agent/core/graph.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* U+2028 takes three bytes in a source and six when written. */
enum { WRITTEN_BYTES_MAX = 2 * STATE_BYTES_MAX };

static void check_written(const struct state *state)
{
    AUTO(buf_done) struct buf once, twice;
    AUTO(arena_done) struct arena arena;
    buf_init(&once, WRITTEN_BYTES_MAX);
    buf_init(&twice, WRITTEN_BYTES_MAX);
    arena_init(&arena);
    struct state again;
    state_write(&once, state);
    if (once.full) abort();
    if (once.len > STATE_BYTES_MAX) return;
    if (state_parse(&arena, buf_str(&once), &again, NULL)) abort();
    state_write(&twice, &again);
    if (!str_eq(buf_str(&once), buf_str(&twice))) abort();
}

/* A run without calls: everything that can happen to it ends it, ends a step of its plan, or lets it
 * wait for a person who can. */
static void check_steps(const struct state *state)
{
    static const struct agent agent = {.ask_user = true};
    static const struct tools tools = {0};
    static const struct binder binder = {.key_id = "k"};
    static const struct {
        enum input_kind kind;
        enum err why;
    } rows[] = {
        {INPUT_TURN, OK},   {INPUT_DOWN, ERR_INTERNAL}, {INPUT_DOWN, ERR_MODEL_UNAVAILABLE},
        {INPUT_CANCEL, OK}, {INPUT_OVERDUE, OK},        {INPUT_SHOW, OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct view view = {.state = *state, .leg_open = true};
        struct input input = {.kind = rows[i].kind,
                              .why = rows[i].why,
                              .turn.text = STR("hello"),
                              .agent = &agent,
                              .tools = &tools,
                              .binder = &binder};
        struct outcome outcome;
        graph_step(&arena, &view, &input, &outcome);
        view.state = outcome.state;
        if (outcome.ended && graph_effect(&view) != EFFECT_NONE) abort();
        if (rows[i].kind == INPUT_CANCEL && !outcome.ended) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct state state;
    struct fault why;
    if (state_parse(&arena, (str){(const char *)data, size}, &state, &why)) {
        if (why.err != ERR_INVALID_FIELD || !why.text[0]) abort();
        return 0;
    }
    check_written(&state);
    check_steps(&state);
    return 0;
}

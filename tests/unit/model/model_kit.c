/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model_kit.h"

#include "base/utf8.h"
#include "check.h"
#include "net/loop.h"

enum { PATIENCE_MS = 60 * 1000, TRACE_BYTES_MAX = 16 * 1024 * 1024 };

static void hear(struct heard *h)
{
    assert_false(h->starting);
    assert_false(h->cancelled);
    assert_false(h->ended);
    msec now = loop_now(h->loop);
    if (h->callbacks++ == 0) h->first_at = now;
    h->end_at = now;
}

static void maybe_cancel(struct heard *h)
{
    if (h->callbacks == h->cancel_at) heard_cancel(h);
}

static void hear_chunk(struct heard *h, str delta)
{
    hear(h);
    assert_true(delta.len > 0);
    assert_true(utf8_valid(delta));
    if (h->on_chunk) h->on_chunk(h->on_chunk_arg);
}

static void on_text(void *arg, str delta)
{
    struct heard *h = arg;
    hear_chunk(h, delta);
    buf_append(&h->text, delta);
    buf_printf(&h->trace, "t<%.*s>", STR_ARG(delta));
    maybe_cancel(h);
}

static void on_reasoning(void *arg, str delta)
{
    struct heard *h = arg;
    hear_chunk(h, delta);
    buf_printf(&h->trace, "r<%.*s>", STR_ARG(delta));
    maybe_cancel(h);
}

static void on_call(void *arg, size_t index, str provider_id, str name)
{
    struct heard *h = arg;
    hear(h);
    buf_printf(&h->trace, "c%zu<%.*s %.*s>", index, STR_ARG(provider_id), STR_ARG(name));
    maybe_cancel(h);
}

static void on_args(void *arg, size_t index, str delta)
{
    struct heard *h = arg;
    hear_chunk(h, delta);
    buf_printf(&h->trace, "a%zu<%.*s>", index, STR_ARG(delta));
    maybe_cancel(h);
}

static void on_end(void *arg, const struct model_ending *ending)
{
    static const char *const names[] = {
        [MODEL_DONE] = "done", [MODEL_AGAIN] = "again", [MODEL_FAILED] = "failed"};
    struct heard *h = arg;
    hear(h);
    assert_true((ending->why == NULL) == (ending->end == MODEL_DONE));
    h->ended = true;
    h->end = ending->end;
    h->usage = ending->usage;
    h->retry_after_ms = ending->retry_after_ms;
    h->provider_data = arena_str(&h->arena, ending->provider_data);
    if (ending->why) h->why = *ending->why;
    buf_printf(&h->trace, "%s", names[ending->end]);
    maybe_cancel(h);
    loop_stop(h->loop);
}

static const struct model_sink sink = {
    .on_text = on_text,
    .on_reasoning = on_reasoning,
    .on_call = on_call,
    .on_args = on_args,
    .on_end = on_end,
};

void heard_ask(struct heard *h, struct loop *loop, const struct model *model,
               const struct model_request *request)
{
    h->loop = loop;
    h->model = model;
    arena_init(&h->arena);
    buf_init(&h->trace, TRACE_BYTES_MAX);
    buf_init(&h->text, TRACE_BYTES_MAX);
    h->starting = true;
    h->call = model_start(model, request, &sink, h);
    h->starting = false;
}

void heard_start(struct heard *h, struct loop *loop, const struct model *model, str message,
                 uint32_t round)
{
    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("an earlier one")},
        {.role = STR("assistant"), .text = STR("hello weather flaky")},
        {.role = STR("user"), .text = message},
        {.role = STR("tool"), .text = STR("hello weather flaky"), .tool_call_id = STR("x")},
    };
    struct model_request request = {.messages = messages, .count = COUNT(messages), .round = round};
    heard_ask(h, loop, model, &request);
}

void heard_cancel(struct heard *h)
{
    h->cancelled = true;
    model_cancel(h->model, h->call);
}

void heard_done(struct heard *h)
{
    buf_done(&h->trace);
    buf_done(&h->text);
    arena_done(&h->arena);
}

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the model took too long");
}

void heard_wait(struct heard *h)
{
    struct timer *guard = timer_new(h->loop, on_guard, NULL);
    timer_start(guard, PATIENCE_MS);
    while (!h->ended) loop_run(h->loop);
    timer_free(guard);
}

void heard_expect(struct loop *loop, const struct model *model, str message, uint32_t round,
                  const char *trace)
{
    AUTO(heard_done) struct heard h = {0};
    heard_start(&h, loop, model, message, round);
    heard_wait(&h);
    assert_str(buf_str(&h.trace), str_c(trace));
}

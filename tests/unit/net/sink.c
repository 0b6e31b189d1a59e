/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"

static const struct http_body_ops sink_ops;

void sink_take(struct sink *sink)
{
    sink->hold = false;
    http_body_take(sink->request, &sink_ops, sink);
}

void sink_answer(struct sink *sink)
{
    struct http_request *request = TAKE(sink->request);
    if (sink->end) {
        http_answer_error(request, sink->end, NULL);
        return;
    }
    http_answer(request, &(struct http_answer){.status = 200, .body = buf_str(&sink->got)});
}

static void on_own(struct kit *kit, struct http_request *request)
{
    struct sink *sink = kit->arg;
    assert_null(sink->request);
    assert_int_equal(request->body.len, 0);
    sink->request = request;
    sink->requests++;
    sink->ends = 0;
    sink->end = OK;
    sink->bytes = 0;
    buf_clear(&sink->got);
    if (!sink->hold) sink_take(sink);
}

static void on_piece(void *arg, str bytes)
{
    struct sink *sink = arg;
    assert_non_null(sink->request);
    assert_true(bytes.len > 0);
    assert_int_equal(sink->ends, 0);
    sink->pieces++;
    for (size_t i = 0; i < bytes.len && !sink->keep; i++) /* the pattern of kit.large */
        if (bytes.p[i] != (char)('a' + (sink->bytes + i) % KIT_LARGE_BYTES % 23))
            fail_msg("wrong byte at %llu", (unsigned long long)(sink->bytes + i));
    sink->bytes += bytes.len;
    if (sink->keep) buf_append(&sink->got, bytes);
    if (sink->pausing != PAUSE_NEVER) http_body_pause(sink->request);
    if (sink->pausing == PAUSE_INSIDE) http_body_resume(sink->request);
    if (sink->answer_at && sink->bytes >= sink->answer_at) sink_answer(sink);
}

static void on_end(void *arg, enum err e)
{
    struct sink *sink = arg;
    assert_non_null(sink->request);
    sink->ends++;
    assert_int_equal(sink->ends, 1);
    sink->end = e;
    if (!sink->hold_answer) sink_answer(sink);
}

static const struct http_body_ops sink_ops = {.on_piece = on_piece, .on_end = on_end};

void sink_init(struct sink *sink, struct kit *kit)
{
    *sink = (struct sink){.keep = true};
    buf_init(&sink->got, 1 << 20);
    kit->own = on_own;
    kit->own_max = SINK_BYTES_MAX;
    kit->arg = sink;
}

void sink_resume(struct sink *sink)
{
    if (sink->request) http_body_resume(sink->request);
}

/* ---- the caller's side ---- */

void sink_expect(struct caller *caller, int status, str body)
{
    struct response response = caller_take(caller, false);
    assert_int_equal(response.status, status);
    assert_str(response.body, body);
    caller_drop(caller, &response);
}

void sink_expect_alive(struct caller *caller)
{
    caller_send(caller, STR(GET("/hello")));
    sink_expect(caller, 200, STR("hello"));
    assert_false(caller->ended);
}

void sink_expect_last(struct caller *caller, int status)
{
    struct response response = caller_take(caller, false);
    assert_int_equal(response.status, status);
    assert_str(response_field(&response, STR("Connection")), STR("close"));
    caller_drop(caller, &response);
    WAIT_FOR(caller->kit, caller->ended);
    assert_false(caller->reset);
    assert_int_equal(caller->got.len, 0);
}

void sink_setup(struct kit *kit, struct sink *sink, struct caller *caller,
                const struct http_server_options *options)
{
    kit_init(kit, options);
    sink_init(sink, kit);
    caller_open(caller, kit, false);
}

void sink_teardown(struct kit *kit, struct sink *sink, struct caller *caller)
{
    caller_close(caller);
    if (kit->server) WAIT_FOR(kit, http_server_connections(kit->server) == 0);
    assert_null(sink->request);
    buf_done(&sink->got);
    kit_done(kit);
}

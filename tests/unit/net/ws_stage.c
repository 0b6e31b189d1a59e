/* SPDX-License-Identifier: Apache-2.0 */
#include "ws_stage.h"

static void echo(struct ws_owner *owner, str text)
{
    assert_true(ws_send(owner->ws, text));
}

static void owner_text(void *arg, str text)
{
    struct ws_owner *owner = arg;
    assert_non_null(owner->ws);
    owner->texts++;
    (owner->stage->on_text ? owner->stage->on_text : echo)(owner, text);
}

static void owner_drain(void *arg)
{
    struct ws_owner *owner = arg;
    assert_non_null(owner->ws);
    assert_true(ws_drained(owner->ws));
    owner->drains++;
}

static void owner_stop(void *arg)
{
    struct ws_owner *owner = arg;
    assert_non_null(owner->ws);
    owner->stops++;
    if (owner->stage->on_stop) owner->stage->on_stop(owner);
}

static void owner_close(void *arg)
{
    struct ws_owner *owner = arg;
    assert_non_null(owner->ws);
    owner->closes++;
    owner->ws = NULL;
}

static const struct ws_ops owner_ops = {
    .on_text = owner_text, .on_drain = owner_drain, .on_stop = owner_stop, .on_close = owner_close};

struct ws_owner *ws_own(struct ws_stage *stage, struct http_request *request)
{
    assert_true(stage->owner_count < WS_OWNERS_MAX);
    struct ws_owner *owner = &stage->owners[stage->owner_count];
    *owner = (struct ws_owner){.stage = stage};
    owner->ws = ws_open(request, &owner_ops, owner);
    if (!owner->ws) return NULL;
    stage->owner_count++;
    return owner;
}

static void handle(struct kit *kit, struct http_request *request)
{
    if (str_eq(request->head->path, STR("/later")))
        kit->held[kit->held_count++] = request;
    else if (str_eq(request->head->path, STR("/page")))
        kit_answer_page(kit, request);
    else
        ws_own(kit->arg, request);
}

void ws_stage_init(struct ws_stage *stage, const struct http_server_options *options)
{
    *stage = (struct ws_stage){0};
    kit_init(&stage->kit, options);
    stage->kit.handle = handle;
    stage->kit.arg = stage;
}

void ws_owner_end(struct ws_owner *owner, enum ws_code code)
{
    ws_close(TAKE(owner->ws), code, "because");
}

/* ---- the client's side ---- */

void ws_take_head(struct caller *caller)
{
    WAIT_FOR(caller->kit, str_find(buf_str(&caller->got), STR("\r\n\r\n")) >= 0);
    assert_true(str_starts(buf_str(&caller->got), STR("HTTP/1.1 101 ")));
    buf_drop(&caller->got, (size_t)str_find(buf_str(&caller->got), STR("\r\n\r\n")) + 4);
}

struct ws_owner *ws_join(struct ws_stage *stage, struct caller *caller, bool small_window)
{
    size_t before = stage->owner_count;
    caller_open(caller, &stage->kit, small_window);
    caller_send(caller, STR(WS_ASK("/ws")));
    ws_take_head(caller);
    assert_int_equal(stage->owner_count, before + 1);
    return &stage->owners[before];
}

void ws_tell(struct caller *caller, const char *script)
{
    struct buf bytes;
    buf_init(&bytes, WS_SCRIPT_BYTES_MAX);
    ws_script(&bytes, script);
    caller_send(caller, buf_str(&bytes));
    buf_done(&bytes);
}

/* Does the caller have these frames, and no byte more? */
static bool has(const struct caller *caller, const char *frames)
{
    struct buf said;
    buf_init(&said, WS_SCRIPT_BYTES_MAX);
    ws_say(&said, buf_str(&caller->got));
    bool same = str_eq(buf_str(&said), str_c(frames));
    buf_done(&said);
    return same;
}

void ws_expect(const char *what, struct caller *caller, const char *frames)
{
    struct kit *kit = caller->kit;
    for (kit_wait_begin(kit); !has(caller, frames) && !caller->ended;) kit_turn(kit, frames);
    struct buf said;
    buf_init(&said, WS_SCRIPT_BYTES_MAX);
    ws_say(&said, buf_str(&caller->got));
    if (!str_eq(buf_str(&said), str_c(frames)))
        fail_msg("%s: got \"%.*s\", expected \"%s\"", what, STR_ARG(buf_str(&said)), frames);
    buf_done(&said);
    buf_clear(&caller->got);
}

void ws_expect_end(struct caller *caller)
{
    WAIT_FOR(caller->kit, caller->ended);
    assert_false(caller->reset);
    assert_int_equal(caller->got.len, 0);
}

void ws_stage_done(struct ws_stage *stage)
{
    WAIT_FOR(&stage->kit, http_server_connections(stage->kit.server) == 0);
    for (size_t i = 0; i < stage->owner_count; i++) {
        assert_null(stage->owners[i].ws);
        assert_true(stage->owners[i].closes <= 1);
    }
    kit_done(&stage->kit);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake link tells on_open in the next turn, keeps what is sent, and is fed by the test. It ends
 * a request as the real ones do: an answer that is fed closes it.
 */
#include "tool/mcp_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

/* ---- the link ---- */

static void fake_send(struct mcp_link *link, const struct mcp_post *post)
{
    struct peer *peer = ((struct peer_link *)link)->peer;
    if (peer->sent_count == PEER_SENT_MAX) fail_msg("too many messages");
    struct peer_post *kept = &peer->sent[peer->sent_count++];
    *kept =
        (struct peer_post){.json = arena_str(&peer->arena, post->json), .request = post->request};
    if (str_find_char(post->json, '\n') >= 0) fail_msg("a message of two lines");
    size_t len = 0;
    for (size_t i = 0; i < post->header_count; i++)
        len += (size_t)snprintf(kept->headers + len, sizeof kept->headers - len, "%.*s: %.*s\n",
                                STR_ARG(post->headers[i].name), STR_ARG(post->headers[i].value));
}

static void fake_listen(struct mcp_link *link, const struct mcp_header *headers, size_t count)
{
    (void)headers, (void)count;
    ((struct peer_link *)link)->peer->listens++;
}

static void fake_forget(struct mcp_link *link, uint64_t request)
{
    struct peer *peer = ((struct peer_link *)link)->peer;
    for (size_t i = 0; i < peer->sent_count; i++)
        if (peer->sent[i].request == request) peer->sent[i].forgotten = true;
}

static void fake_close(struct mcp_link *link, const struct mcp_header *headers, size_t count)
{
    (void)headers, (void)count;
    ((struct peer_link *)link)->peer->closes++;
}

static void fake_stop(struct mcp_link *link)
{
    struct peer *peer = ((struct peer_link *)link)->peer;
    if (peer->link == (struct peer_link *)link) peer->link = NULL;
}

static void fake_release(struct mcp_link *link)
{
    free(link);
}

static const struct mcp_link_ops fake_ops = {fake_send,  fake_listen, fake_forget,
                                             fake_close, fake_stop,   fake_release};

static struct mcp_link *fake_open(const struct mcp_options *options,
                                  const struct mcp_link_events *events, void *arg)
{
    struct peer *peer = options->arg;
    struct peer_link *link = calloc(1, sizeof *link);
    assert_non_null(link);
    assert_null(peer->link);
    mcp_link_init(&link->link, &fake_ops, events, arg);
    link->peer = peer;
    peer->link = link;
    peer->opened++;
    return &link->link;
}

/* ---- the world ---- */

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static void on_tick(void *arg)
{
    loop_stop(((struct peer *)arg)->loop);
}

static void on_tools(void *arg, struct mcp_server *server)
{
    (void)server;
    ((struct peer *)arg)->tools_told++;
}

static void on_state(void *arg, struct mcp_server *server, const char *why)
{
    struct peer *peer = arg;
    (void)server;
    peer->states_told++;
    snprintf(peer->why, sizeof peer->why, "%s", why);
}

static void on_note(void *arg, struct mcp_server *server, const char *what, str text)
{
    struct peer *peer = arg;
    size_t len = strlen(peer->notes);
    (void)server;
    snprintf(peer->notes + len, sizeof peer->notes - len, "%s: %.*s\n", what, STR_ARG(text));
}

void peer_init(struct peer *peer, bool http)
{
    static const str command[] = {STR("server")};
    *peer = (struct peer){.loop = loop_new()};
    arena_init(&peer->arena);
    peer->guard = timer_new(peer->loop, on_guard, peer);
    peer->tick = timer_new(peer->loop, on_tick, peer);
    timer_start(peer->guard, 20 * 1000);
    peer->options = (struct mcp_options){
        .name = STR("files"),
        .command = http ? NULL : command,
        .command_count = http ? 0 : 1,
        .url = http ? STR("http://127.0.0.1:1/mcp") : STR_EMPTY,
        .loop = peer->loop,
        .on_tools = on_tools,
        .on_state = on_state,
        .on_note = on_note,
        .arg = peer,
    };
    peer->ways = (struct mcp_ways){.pace = {.probe_ms = 60 * 1000,
                                            .start_ms = 60 * 1000,
                                            .rest_ms = 20,
                                            .rest_ms_max = 100,
                                            .steady_ms = 60 * 1000,
                                            .relist_ms = 1,
                                            .wait_ms = 60 * 1000,
                                            .call_ms = 60 * 1000},
                                   .open = fake_open};
}

void peer_begin(struct peer *peer)
{
    struct fault why = {0};
    if (mcp_server_make(&peer->options, &peer->ways, &peer->server, &why))
        fail_msg("%s: %s", why.field, why.text);
}

void peer_done(struct peer *peer)
{
    mcp_server_free(peer->server);
    timer_free(peer->guard);
    timer_free(peer->tick);
    loop_free(peer->loop);
    arena_done(&peer->arena);
}

static void turn(struct peer *peer)
{
    timer_start(peer->tick, 1);
    loop_run(peer->loop);
}

void peer_until(struct peer *peer, bool (*done)(struct peer *peer, void *arg), void *arg)
{
    for (int i = 0; i < PEER_STEPS_MAX; i++) {
        if (done(peer, arg)) return;
        turn(peer);
    }
    fail_msg("it never happened; the notes are:\n%s", peer->notes);
}

void peer_settle(struct peer *peer)
{
    for (int i = 0; i < 3; i++) turn(peer);
}

/* ---- messages ---- */

static bool has_next(struct peer *peer, void *arg)
{
    (void)arg;
    return peer->seen < peer->sent_count;
}

const struct json *peer_json(struct peer *peer, const struct peer_post *post)
{
    struct json *json = NULL;
    assert_int_equal(json_parse(&peer->arena, post->json, &json, NULL), OK);
    return json;
}

const struct peer_post *peer_next(struct peer *peer, const char *method)
{
    peer_until(peer, has_next, NULL);
    const struct peer_post *post = &peer->sent[peer->seen++];
    assert_str(json_text(json_get(peer_json(peer, post), STR("method"))), str_c(method));
    return post;
}

str peer_member(struct peer *peer, const struct peer_post *post, const char *path)
{
    const struct json *at = peer_json(peer, post);
    for (str rest = str_c(path); rest.p;) at = json_get(at, str_split(&rest, '.'));
    if (!at) return STR("(none)");
    return at->type == JSON_STRING ? at->text : at->raw;
}

bool peer_nothing(struct peer *peer)
{
    peer_settle(peer);
    return peer->seen == peer->sent_count;
}

static void feed(struct peer *peer, str json)
{
    struct mcp_link *link = &peer->link->link;
    mcp_link_enter(link);
    mcp_link_tell_message(link, json);
    mcp_link_leave(link);
}

void peer_say(struct peer *peer, const char *format, ...)
{
    static char text[300 * 1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(len > 0 && (size_t)len < sizeof text);
    feed(peer, (str){text, (size_t)len});
}

void peer_answer(struct peer *peer, const struct peer_post *post, const char *result)
{
    peer_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%s}",
             (unsigned long long)post->request, result);
}

void peer_error(struct peer *peer, const struct peer_post *post, int code, const char *rest)
{
    peer_say(peer, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":%d,\"message\":%s}}",
             (unsigned long long)post->request, code, rest);
}

void peer_lose(struct peer *peer, const struct peer_post *post, enum mcp_loss loss, int status,
               const char *why)
{
    struct mcp_link *link = &peer->link->link;
    struct fault reason = {.err = ERR_NETWORK};
    snprintf(reason.text, sizeof reason.text, "%s", why);
    mcp_link_enter(link);
    mcp_link_tell_lost(link, post->request, loss, status, &reason);
    mcp_link_leave(link);
}

void peer_down(struct peer *peer, const char *why)
{
    struct mcp_link *link = &peer->link->link;
    struct fault reason = {.err = ERR_NETWORK};
    snprintf(reason.text, sizeof reason.text, "%s", why);
    mcp_link_enter(link);
    mcp_link_tell_down(link, &reason);
    mcp_link_leave(link);
}

static void tell_open(struct peer *peer)
{
    struct mcp_link *link = &peer->link->link;
    mcp_link_enter(link);
    mcp_link_tell_open(link);
    mcp_link_leave(link);
}

/* ---- handshakes ---- */

static bool is_up(struct peer *peer, void *arg)
{
    (void)arg;
    return peer->server->session.state == SESSION_UP;
}

static bool has_link(struct peer *peer, void *arg)
{
    (void)arg;
    return peer->link;
}

static const struct peer_post *first(struct peer *peer, const char *method)
{
    peer_until(peer, has_link, NULL);
    if (!peer->server->session.opened) tell_open(peer);
    return peer_next(peer, method);
}

static void say_tools(struct peer *peer, const char *tools)
{
    char text[64 * 1024];
    snprintf(text, sizeof text, "{\"tools\":%s}", tools);
    peer_answer(peer, peer_next(peer, "tools/list"), text);
    peer_until(peer, is_up, NULL);
}

void peer_up_modern(struct peer *peer, const char *tools)
{
    peer_answer(peer, first(peer, "server/discover"),
                "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                "\"capabilities\":{\"tools\":{\"listChanged\":true}}}");
    say_tools(peer, tools);
    peer_next(peer, "subscriptions/listen");
}

void peer_up_legacy(struct peer *peer, const char *tools)
{
    if (peer->server->session.era != ERA_LEGACY)
        peer_error(peer, first(peer, "server/discover"), -32601, "\"Method not found\"");
    const struct peer_post *greet = peer->server->session.era == ERA_LEGACY
                                        ? first(peer, "initialize")
                                        : peer_next(peer, "initialize");
    peer_answer(peer, greet,
                "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
                "\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}");
    peer_next(peer, "notifications/initialized");
    say_tools(peer, tools);
}

/* ---- calls ---- */

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct peer_call *call = arg;
    struct arena *arena = &call->peer->arena;
    call->ends++;
    call->call = NULL;
    call->end = end;
    call->content = arena_str(arena, result->content);
    call->result = arena_str(arena, result->result);
    call->error = arena_str(arena, result->error);
    call->file_count = result->file_count;
    for (size_t i = 0; i < result->file_count; i++) {
        call->file_mime[i] = arena_str(arena, result->files[i].mime);
        call->file_name[i] = arena_str(arena, result->files[i].filename);
        call->file_bytes[i] = arena_str(arena, result->files[i].bytes);
    }
    if ((end == TOOL_DONE) != (result->error.len == 0))
        fail_msg("end %d with \"%.*s\"", end, STR_ARG(result->error));
}

static void on_ask(void *arg, const struct tool_asked *asked)
{
    struct peer_call *call = arg;
    struct arena *arena = &call->peer->arena;
    call->asks++;
    call->ended_asking = asked->ended;
    if (asked->ended) call->call = NULL;
    call->first = asked->first;
    call->question_count = asked->count;
    call->state = arena_str(arena, asked->state);
    assert_true(asked->count <= COUNT(call->questions));
    for (size_t i = 0; i < asked->count; i++) {
        const struct tool_question *q = &asked->questions[i];
        call->questions[i] =
            (struct tool_question){arena_str(arena, q->id), arena_str(arena, q->message),
                                   arena_str(arena, q->schema), arena_str(arena, q->url)};
    }
}

static void on_progress(void *arg, const struct tool_progress *progress)
{
    struct peer_call *call = arg;
    call->progress++;
    call->progress_text =
        arena_printf(&call->peer->arena, "%.*s/%.*s %.*s", STR_ARG(progress->progress),
                     STR_ARG(progress->total), STR_ARG(progress->message));
}

struct tool_request peer_request(const char *args)
{
    return (struct tool_request){
        .call_id = STR("call-1"),
        .args = str_c(args),
        .owner = STR("ann"),
        .thread_id = STR("t"),
        .run_id = STR("r"),
        .locale = STR("en"),
        .on_ask = on_ask,
        .on_progress = on_progress,
    };
}

void peer_call(struct peer *peer, struct peer_call *call, const char *tool,
               const struct tool_request *request)
{
    struct tools tools = mcp_tools(peer->server);
    *call = (struct peer_call){.peer = peer, .tool = tools_find(&tools, str_c(tool))};
    if (!call->tool) fail_msg("there is no tool %s", tool);
    call->call = tool_start(call->tool, request, on_end, call);
    assert_int_equal(call->ends + call->asks, 0); /* nothing from inside start */
}

static bool has_ended(struct peer *peer, void *arg)
{
    (void)peer;
    return ((struct peer_call *)arg)->ends;
}

void peer_wait_end(struct peer_call *call)
{
    peer_until(call->peer, has_ended, call);
    assert_int_equal(call->ends, 1);
}

struct asks {
    struct peer_call *call;
    int count;
};

static bool has_asked(struct peer *peer, void *arg)
{
    struct asks *asks = arg;
    (void)peer;
    return asks->call->asks >= asks->count;
}

void peer_wait_ask(struct peer_call *call, int count)
{
    peer_until(call->peer, has_asked, &(struct asks){call, count});
    assert_int_equal(call->asks, count);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The session with an MCP server: reaching it, agreeing on a version, messages to whom they
 * concern, and doing it all again when it is gone.
 *
 *     RESTING ─▶ OPENING ─▶ PROBING ──── it is modern ───▶ LISTING ─▶ UP
 *        ▲                     │ any other answer, none        ▲       │
 *        │                     ▼                               │       │
 *        │                  GREETING ── initialize ────────────┘       │
 *        └── whatever fails, after a rest ◀────────────────────────────┘
 *
 * Modern is 2026-07-28: each request says which version it speaks, and there is no session but the
 * link itself. Older ones begin with initialize. Which it is we find out as the specification says:
 * server/discover first, and initialize after any answer that no modern server would give. A child
 * that dies of the question is started again and greeted in the old way at once. What a server was
 * is remembered until that fails.
 *
 * Invariants:
 * 1. Calls leave only in UP. The list of tools in UP is the server's, or the last one it was
 *    allowed.
 * 2. A child's link ends with its session. The link of an HTTP server is made once: calls on their
 *    way keep their streams while a new session begins beside them.
 * 3. While UP the timer is for the stream of changes; else it is for the answer that is waited for,
 *    or the rest.
 *
 * To add a notification: its row in told[]. To add a request of servers: in take_request.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_int.h"
#include "tool/tools.h"
#include "tool/value.h"

enum { SMALL_BYTES = 8 * 1024 };

bool mcp_session_http(const struct mcp_server *server)
{
    return !server->options.command_count;
}

/* ---- sending ---- */

static size_t session_headers(const struct mcp_session *s, struct mcp_header *rows)
{
    size_t count = 0;
    const char *version = s->modern ? MCP_MODERN : s->version;
    if (version[0])
        rows[count++] = (struct mcp_header){STR("MCP-Protocol-Version"), str_c(version)};
    if (!s->modern && s->id[0])
        rows[count++] = (struct mcp_header){STR("Mcp-Session-Id"), str_c(s->id)};
    return count;
}

void mcp_session_send(struct mcp_server *server, struct buf *message, const struct mcp_send *send)
{
    AUTO(arena_done) struct arena arena;
    struct mcp_session *s = &server->session;
    struct mcp_header rows[4 + MCP_PARAMS_MAX];
    size_t count = session_headers(s, rows);
    arena_init(&arena);
    assert(!message->full && s->link);
    if (s->modern && send->method) {
        rows[count++] = (struct mcp_header){STR("Mcp-Method"), str_c(send->method)};
        if (send->name.len)
            rows[count++] =
                (struct mcp_header){STR("Mcp-Name"), mcp_header_text(&arena, send->name)};
        for (size_t i = 0; i < send->more_count; i++) rows[count++] = send->more[i];
    }
    value_one_line(message->p, message->len);
    struct mcp_post post = {.json = buf_str(message),
                            .request = send->number,
                            .headers = rows,
                            .header_count = count,
                            .quiet_ms = send->quiet_ms};
    mcp_link_send(s->link, &post);
}

uint64_t mcp_session_ask(struct mcp_server *server, const char *method, str cursor)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_session *s = &server->session;
    uint64_t number = ++s->number;
    buf_init(&out, 8 * MCP_CURSOR_BYTES_MAX + SMALL_BYTES);
    rpc_begin(&w, &out, number, method);
    if (cursor.p) json_member(&w, STR("cursor"), cursor);
    if (s->modern) rpc_meta(&w, true);
    rpc_end(&w);
    mcp_session_send(server, &out,
                     &(struct mcp_send){.number = number,
                                        .method = method,
                                        .quiet_ms = server->ways.pace.start_ms});
    return number;
}

static void mcp_session_refuse(struct mcp_server *server, str id, int code, const char *text)
{
    AUTO(buf_done) struct buf out = {0};
    buf_init(&out, SMALL_BYTES);
    rpc_refuse(&out, id, code, text);
    mcp_session_send(server, &out, &(struct mcp_send){0});
}

/* ---- losing ---- */

static void forget(struct mcp_session *s, uint64_t *request)
{
    if (*request && s->link) mcp_link_forget(s->link, *request);
    *request = 0;
}

/* No answer of the session itself is waited for any more. */
static void forget_all(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    forget(s, &s->probe);
    forget(s, &s->greet);
    forget(s, &s->listen);
    forget(s, &server->gathering.request);
    timer_stop(s->timer);
    timer_stop(s->list_timer);
    s->stale = false;
}

static void drop_link(struct mcp_session *s)
{
    if (s->link) mcp_link_free(TAKE(s->link));
    s->opened = false;
}

/* Between three and five quarters, so that many do not come back at once. */
static msec spread(msec span)
{
    uint32_t random = 0;
    crypto_random(&random, sizeof random);
    return span * 3 / 4 + (msec)(random % (uint32_t)(span / 2 + 1));
}

static void finish_stop(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->state = SESSION_CLOSED;
    drop_link(s);
    if (!server->call_count) loop_defer(server->options.loop, &server->stopped);
}

/* The session did not come about, or works no more: it rests, longer each time unless it was up for a
 * good while, and whoever asks is told why. */
static void fail(struct mcp_server *server, const struct fault *why)
{
    struct mcp_session *s = &server->session;
    const struct mcp_pace *pace = &server->ways.pace;
    bool known = s->state == SESSION_UP;
    forget_all(server);
    if (!mcp_session_http(server)) drop_link(s);
    s->state = SESSION_RESTING;
    if (!known) s->era = ERA_UNKNOWN; /* what we took it for was perhaps wrong */

    bool steady = s->up_at && loop_now(server->options.loop) - s->up_at >= pace->steady_ms;
    if (steady) s->rest_ms = pace->rest_ms;
    s->up_at = 0;
    timer_start(s->timer, spread(s->rest_ms));
    s->rest_ms = s->rest_ms * 2 < pace->rest_ms_max ? s->rest_ms * 2 : pace->rest_ms_max;

    struct fault shown = {.err = why->err ? why->err : ERR_NETWORK};
    snprintf(shown.text, sizeof shown.text, "%s", why->text[0] ? why->text : "no reason was given");
    mcp_hide(server, shown.text, strlen(shown.text));
    bool news = s->told || strcmp(shown.text, s->why.text) != 0;
    s->why = shown;
    s->told = false;
    if (news) server->options.on_state(server->options.arg, server, s->why.text);
    mcp_calls_away(server, &s->why);
}

static void fail_with(struct mcp_server *server, const char *text)
{
    struct fault why = {0};
    (void)fault(&why, ERR_NETWORK, "%s", text);
    fail(server, &why);
}

/* "-32601: Method not found" behind what we say of it. */
void mcp_session_refused(struct mcp_server *server, const char *what,
                         const struct rpc_message *message)
{
    struct fault why = {0};
    (void)fault(&why, ERR_NETWORK, "%s: %lld: %.*s", what, (long long)message->code,
                STR_ARG(tool_text_head(message->text, 200)));
    fail(server, &why);
}

void mcp_session_lost(struct mcp_server *server, const struct fault *why)
{
    struct mcp_session *s = &server->session;
    if (s->state != SESSION_UP || server->stopping) return;
    forget_all(server);
    s->state = SESSION_RESTING;
    s->why = *why;
    mcp_session_begin(server);
}

/* ---- being up ---- */

static void send_listen(struct mcp_server *server)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_session *s = &server->session;
    s->listen = ++s->number;
    buf_init(&out, SMALL_BYTES);
    rpc_begin(&w, &out, s->listen, "subscriptions/listen");
    json_member_raw(&w, STR("notifications"), STR("{\"toolsListChanged\":true}"));
    rpc_meta(&w, true);
    rpc_end(&w);
    mcp_session_send(server, &out,
                     &(struct mcp_send){.number = s->listen,
                                        .method = "subscriptions/listen",
                                        .quiet_ms = MCP_LISTEN_QUIET_MS});
}

/* The stream of changes has ended; what changed meanwhile is asked for when it is open again. */
static void listen_later(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->listen = 0;
    if (s->state != SESSION_UP) return;
    timer_start(s->timer, spread(s->listen_ms));
    s->listen_ms =
        s->listen_ms * 2 < MCP_LISTEN_REST_MS_MAX ? s->listen_ms * 2 : MCP_LISTEN_REST_MS_MAX;
}

void mcp_session_up(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->state = SESSION_UP;
    s->up_at = loop_now(server->options.loop);
    s->listen_ms = server->ways.pace.rest_ms;
    s->why = (struct fault){0};
    timer_stop(s->timer);
    if (s->modern && s->tells_changes) send_listen(server);
    if (!s->told) {
        s->told = true;
        server->options.on_state(server->options.arg, server, "");
    }
    mcp_calls_ready(server);
}

/* ---- versions ---- */

static void take_capabilities(struct mcp_session *s, const struct json *result)
{
    const struct json *tools = json_get(json_get(result, STR("capabilities")), STR("tools"));
    const struct json *changes = json_get(tools, STR("listChanged"));
    s->offers_tools = tools && tools->type == JSON_OBJECT;
    s->tells_changes = changes && changes->type == JSON_TRUE;
}

static void send_initialize(struct mcp_server *server)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_session *s = &server->session;
    s->state = SESSION_GREETING;
    s->modern = false;
    s->version[0] = s->id[0] = '\0';
    s->greet = ++s->number;
    buf_init(&out, SMALL_BYTES);
    rpc_begin(&w, &out, s->greet, "initialize");
    json_member(&w, STR("protocolVersion"), STR(MCP_LEGACY));
    json_key(&w, STR("capabilities"));
    rpc_capabilities(&w);
    json_key(&w, STR("clientInfo"));
    rpc_client(&w);
    rpc_end(&w);
    timer_start(s->timer, server->ways.pace.start_ms);
    mcp_session_send(server, &out,
                     &(struct mcp_send){.number = s->greet,
                                        .method = "initialize",
                                        .quiet_ms = server->ways.pace.start_ms});
}

/* The version that both know; NULL: none. Prefers the modern one. */
static const char *common_version(const struct json *list)
{
    const char *found = NULL;
    for (const struct json *item = list ? list->child : NULL; item; item = item->next) {
        if (str_eq(json_text(item), STR(MCP_MODERN))) return MCP_MODERN;
        if (mcp_version_legacy(json_text(item))) found = MCP_LEGACY;
    }
    return found;
}

static void fail_version(struct mcp_server *server, str offered)
{
    struct fault why = {0};
    (void)fault(&why, ERR_NETWORK,
                "it speaks the MCP versions %.*s; Fermata speaks " MCP_MODERN ", " MCP_LEGACY
                ", 2025-06-18 and 2025-03-26",
                STR_ARG(tool_text_head(offered, 120)));
    fail(server, &why);
}

/* Also when it comes late, and initialize was sent meanwhile. */
static void take_probe(struct mcp_server *server, const struct rpc_message *message)
{
    struct mcp_session *s = &server->session;
    bool refused = message->kind == RPC_ERROR;
    const struct json *list = refused ? json_get(message->data, STR("supported"))
                                      : json_get(message->result, STR("supportedVersions"));
    s->probe = 0;
    if (!refused && list) {
        const char *version = common_version(list);
        if (version && strcmp(version, MCP_MODERN) == 0) {
            s->modern = true;
            s->era = ERA_MODERN;
            forget(s, &s->greet);
            take_capabilities(s, message->result);
            mcp_list_begin(server);
        } else if (!version) {
            fail_version(server, list->raw);
        } else if (s->state == SESSION_PROBING) {
            send_initialize(server);
        }
        return;
    }
    if (s->state != SESSION_PROBING) return;
    if (!refused || (message->code != RPC_NO_VERSION && message->code != RPC_NO_CAPABILITY &&
                     message->code != RPC_HEADER_MISMATCH)) {
        send_initialize(server);
        return;
    }
    const char *version = message->code == RPC_NO_VERSION ? common_version(list) : NULL;
    if (version && strcmp(version, MCP_MODERN) != 0)
        send_initialize(server);
    else if (message->code == RPC_NO_VERSION && !version)
        fail_version(server, list ? list->raw : STR("it does not say which"));
    else
        mcp_session_refused(server, "it refused server/discover", message);
}

static void take_greeting(struct mcp_server *server, const struct rpc_message *message)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_session *s = &server->session;
    struct mcp_header rows[4];
    s->greet = 0;
    if (message->kind == RPC_ERROR) {
        mcp_session_refused(server, "it refused initialize", message);
        return;
    }
    str version = json_text(json_get(message->result, STR("protocolVersion")));
    if (!mcp_version_legacy(version)) {
        fail_version(server, version.len ? version : STR("it does not say"));
        return;
    }
    snprintf(s->version, sizeof s->version, "%.*s", STR_ARG(version));
    forget(s, &s->probe);
    s->era = ERA_LEGACY;
    take_capabilities(s, message->result);
    buf_init(&out, SMALL_BYTES);
    rpc_begin(&w, &out, 0, "notifications/initialized");
    rpc_end(&w);
    mcp_session_send(server, &out, &(struct mcp_send){0});
    mcp_link_listen(s->link, rows, session_headers(s, rows));
    mcp_list_begin(server);
}

/* ---- messages ---- */

static void tools_changed(struct mcp_server *server, const struct json *params)
{
    (void)params;
    mcp_list_again(server);
}

static void server_logs(struct mcp_server *server, const struct json *params)
{
    const struct json *data = json_get(params, STR("data"));
    if (data) mcp_note(server, "message", data->type == JSON_STRING ? data->text : data->raw);
}

/* 2026-07-28: only for the stream of changes. */
static void cancelled(struct mcp_server *server, const struct json *params)
{
    struct mcp_session *s = &server->session;
    uint64_t number = 0;
    if (!s->modern || json_u64(json_get(params, STR("requestId")), &number)) return;
    if (!number || number != s->listen) return;
    forget(s, &s->listen);
    listen_later(server);
}

static const struct {
    const char *method;
    void (*take)(struct mcp_server *server, const struct json *params);
} told[] = {
    {"notifications/tools/list_changed", tools_changed},
    {"notifications/progress", mcp_calls_progress},
    {"notifications/message", server_logs},
    {"notifications/cancelled", cancelled},
};

static void take_request(struct mcp_server *server, const struct rpc_message *message)
{
    const struct mcp_session *s = &server->session;
    if (s->modern || !s->link) {
        mcp_note(server, "request ignored", message->method);
        return;
    }
    if (str_eq(message->method, STR("ping"))) {
        AUTO(buf_done) struct buf out = {0};
        buf_init(&out, SMALL_BYTES);
        rpc_answer(&out, message->id, STR("{}"));
        mcp_session_send(server, &out, &(struct mcp_send){0});
    } else if (!str_eq(message->method, STR("elicitation/create"))) {
        mcp_session_refuse(server, message->id, RPC_NO_METHOD,
                           "Fermata does not offer this to servers");
    } else if (!mcp_calls_asked(server, message)) {
        mcp_session_refuse(server, message->id, RPC_BAD_PARAMS,
                           "no call is open that this question could belong to");
    }
}

void mcp_session_take(struct mcp_server *server, const struct rpc_message *message)
{
    struct mcp_session *s = &server->session;
    uint64_t number = message->number;
    if (s->state == SESSION_CLOSING || s->state == SESSION_CLOSED) {
        if (number) mcp_calls_answered(server, message);
    } else if (message->kind == RPC_REQUEST) {
        take_request(server, message);
    } else if (message->kind == RPC_NOTIFICATION) {
        for (size_t i = 0; i < COUNT(told); i++)
            if (str_eq(message->method, str_c(told[i].method)))
                told[i].take(server, message->params);
    } else if (!number) {
        mcp_note(server, "answer to nothing", message->text);
    } else if (number == s->probe) {
        take_probe(server, message);
    } else if (number == s->greet) {
        take_greeting(server, message);
    } else if (number == server->gathering.request) {
        mcp_list_take(server, message);
    } else if (number == s->listen) {
        s->listen = 0;
        bool none = message->kind == RPC_ERROR && message->code == RPC_NO_METHOD;
        if (!none) listen_later(server);
    } else {
        mcp_calls_answered(server, message);
    }
}

/* ---- the link ---- */

/* What an older server says by HTTP to what it does not know; not that it does not know us. */
static bool is_older(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
    case 408:
    case 429:
        return false;
    default:
        return status >= 400;
    }
}

static void on_open(void *arg)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    s->opened = true;
    if (s->state != SESSION_OPENING) return;
    if (s->era == ERA_LEGACY) {
        send_initialize(server);
        return;
    }
    s->state = SESSION_PROBING;
    s->modern = true;
    timer_start(s->timer, server->ways.pace.probe_ms);
    s->probe = mcp_session_ask(server, "server/discover", (str){0});
}

static void on_message(void *arg, str json)
{
    mcp_read_message(arg, json);
}

static void on_session(void *arg, str id)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    if (s->state != SESSION_GREETING || id.len >= sizeof s->id) return;
    for (size_t i = 0; i < id.len; i++)
        if (id.p[i] < 0x21 || id.p[i] > 0x7e) return;
    snprintf(s->id, sizeof s->id, "%.*s", STR_ARG(id));
}

static void on_lost(void *arg, uint64_t request, enum mcp_loss loss, int http_status,
                    const struct fault *why)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    bool child = !mcp_session_http(server); /* on_down says the rest */
    if (!request) {
        mcp_note(server, "not sent", str_c(why->text));
    } else if (request == s->probe) {
        s->probe = 0;
        if (s->state != SESSION_PROBING || child) return;
        if (is_older(http_status))
            send_initialize(server);
        else
            fail(server, why);
    } else if (request == s->greet) {
        s->greet = 0;
        if (!child) fail(server, why);
    } else if (request == server->gathering.request) {
        server->gathering.request = 0;
        if (s->state == SESSION_LISTING && !child) fail(server, why);
        if (s->state == SESSION_UP && loss == MCP_NO_SESSION) mcp_session_lost(server, why);
    } else if (request == s->listen) {
        listen_later(server);
    } else {
        mcp_calls_lost(server, request, loss, http_status, why);
    }
}

static void on_down(void *arg, const struct fault *why)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    bool scared = s->state == SESSION_PROBING && s->opened && s->era == ERA_UNKNOWN;
    if (server->stopping) {
        finish_stop(server);
    } else if (scared) {
        forget_all(server);
        drop_link(s);
        s->era = ERA_LEGACY;
        s->state = SESSION_RESTING;
        mcp_session_begin(server);
    } else {
        fail(server, why);
    }
}

static void on_stderr(void *arg, str line)
{
    struct mcp_server *server = arg;
    if (server->options.on_stderr) server->options.on_stderr(server->options.arg, server, line);
}

static const struct mcp_link_events events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_session = on_session,
    .on_lost = on_lost,
    .on_down = on_down,
    .on_stderr = on_stderr,
};

/* ---- life ---- */

static void on_timer(void *arg)
{
    struct mcp_server *server = arg;
    struct mcp_session *s = &server->session;
    switch (s->state) {
    case SESSION_RESTING:
        mcp_session_begin(server);
        break;
    case SESSION_OPENING:
        fail_with(server, "it did not start in time");
        break;
    case SESSION_PROBING:
        send_initialize(server); /* an older one may keep silent */
        break;
    case SESSION_GREETING:
    case SESSION_LISTING:
        fail_with(server, "it did not answer in time");
        break;
    case SESSION_UP:
        send_listen(server);
        mcp_list_again(server);
        break;
    case SESSION_CLOSING:
    case SESSION_CLOSED:
        break;
    }
}

void mcp_session_init(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    s->timer = timer_new(server->options.loop, on_timer, server);
    s->list_timer = timer_new(server->options.loop, mcp_list_due, server);
    s->rest_ms = server->ways.pace.rest_ms;
    (void)fault(&s->why, ERR_NETWORK, "it has not answered yet");
    arena_init(&server->gathering.arena);
}

void mcp_session_done(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    drop_link(s);
    timer_free(s->timer);
    timer_free(s->list_timer);
    arena_done(&server->gathering.arena);
}

void mcp_session_begin(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    if (s->state != SESSION_RESTING || server->stopping) return;
    s->state = SESSION_OPENING;
    s->began_at = loop_now(server->options.loop);
    timer_start(s->timer, server->ways.pace.start_ms);
    if (!s->link)
        s->link = server->ways.open(&server->options, &events, server);
    else if (s->opened)
        on_open(server);
}

void mcp_session_close(struct mcp_server *server)
{
    struct mcp_session *s = &server->session;
    struct mcp_header rows[4];
    if (s->state == SESSION_CLOSING) return;
    forget_all(server);
    if (!s->link) {
        finish_stop(server);
        return;
    }
    s->state = SESSION_CLOSING;
    mcp_link_close(s->link, rows, session_headers(s, rows));
}

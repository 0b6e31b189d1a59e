/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls to the tools of an MCP server: answers, questions, progress, what is surely not done.
 *
 *     start ─▶ WAITING ── the session is up ──▶ SENT ── answer ──▶ ended
 *                 │  ▲                           │ │
 *                 │  └── surely not done, HTTP ──┘ └── input_required ─▶ on_ask, ended
 *                 └── it stays away: TOOL_AWAY
 *
 * Questions come in two ways. Before 2026-07-28 the server asks while the call is open: on_ask, the
 * clock of the call stands still, tool_reply answers. Since then the answer to the call is that it
 * needs input: the call is over, and is started again with the replies and the state that the
 * server gave us. That state is kept with what else the next start has to know:
 *
 *     {"requestState"?: "...", "declined": ["key"]}      2026-07-28
 *     {"pages": true}                                    2025-11-25: pages that had to be opened
 *
 * Invariants:
 * 1. on_end, or on_ask with `ended`, is called once, on the loop, and not after cancel.
 * 2. A call is sent again by itself only if it has surely not been done, once; or if the server
 *    sent it back without a question, at most MCP_AGAIN_MAX times.
 * 3. A question is shown only to the owner of a call that can have asked it. Older servers do not
 *    say which one did; if it could be calls of several people nobody is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_int.h"
#include "mcp/client/mcp_result.h"
#include "tool/elicit.h"
#include "tool/http_result.h"
#include "tool/tools.h"

enum mcp_call_state {
    CALL_WAITING, /* for the session */
    CALL_SENT,
    CALL_DUE,  /* it ends in the next turn: nothing is told from inside start */
    CALL_OVER, /* its last callback runs */
};

struct mcp_call_question {
    str id; /* of the server's request */
    bool open;
};

struct tool_call {
    struct tool_call *next;
    struct mcp_server *server; /* NULL: it is freed */
    const struct mcp_tool *tool;
    struct tool_request request; /* its texts in `arena` */
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
    void *arg;
    struct arena arena;
    enum mcp_call_state state;
    bool left; /* with those that the session leaves behind */
    uint64_t number;
    struct timer *timer;
    msec since, left_ms; /* of its time, while SENT and nobody is asked */
    bool retried;
    unsigned again;
    str replies;       /* JSON object for inputResponses; empty: none */
    str request_state; /* p NULL: none */

    struct mcp_call_question questions[QUESTIONS_CALL_MAX];
    size_t asked, open, seen; /* seen: also those that nobody was asked */

    msec progress_second;
    unsigned progress_count;

    enum tool_end due_end;
    str due_text;
};

/* ---- ends ---- */

static void call_free(struct tool_call *call)
{
    struct mcp_server *server = call->server;
    if (server) {
        struct tool_call **at = &server->calls;
        while (*at != call) at = &(*at)->next;
        *at = call->next;
        server->call_count--;
    }
    timer_free(call->timer);
    arena_done(&call->arena);
    free(call);
    if (server && server->stopping && !server->call_count) mcp_session_close(server);
}

static void end_call(struct tool_call *call, enum tool_end end, const struct tool_result *result)
{
    call->state = CALL_OVER;
    timer_stop(call->timer);
    call->on_end(call->arg, end, result);
    call_free(call);
}

/* A failure in words; secrets of the configuration become stars. */
static void end_with(struct tool_call *call, enum tool_end end, const char *before, str words)
{
    str text = arena_printf(&call->arena, "%s%.*s", before,
                            STR_ARG(tool_text_head(words, 2 * TOOL_ERROR_BYTES_MAX)));
    char *copy = arena_cstr(&call->arena, text);
    if (call->server) mcp_hide(call->server, copy, text.len);
    struct tool_result result = {.error =
                                     http_result_error(&call->arena, 200, (str){copy, text.len})};
    end_call(call, end, &result);
}

static void end_away(struct tool_call *call, const char *why)
{
    char before[MCP_NAME_BYTES_MAX + 64];
    snprintf(before, sizeof before,
             "the MCP server %.*s is not reachable: ", STR_ARG(call->server->options.name));
    end_with(call, TOOL_AWAY, before, str_c(why));
}

static void end_soon(struct tool_call *call, enum tool_end end, str text)
{
    call->state = CALL_DUE;
    call->due_end = end;
    call->due_text = text;
    timer_start(call->timer, 0);
}

static struct tool_call *find(const struct mcp_server *server, uint64_t number)
{
    for (struct tool_call *call = server->calls; call; call = call->next)
        if (call->state == CALL_SENT && call->number == number) return call;
    return NULL;
}

/* ---- the clock ---- */

static void clock_start(struct tool_call *call)
{
    call->since = loop_now(call->server->options.loop);
    timer_start(call->timer, call->left_ms);
}

static void clock_stop(struct tool_call *call)
{
    msec used = loop_now(call->server->options.loop) - call->since;
    call->left_ms = used < call->left_ms ? call->left_ms - used : 1;
    timer_stop(call->timer);
}

/* ---- sending ---- */

static size_t param_headers(struct tool_call *call, struct mcp_header *rows)
{
    struct json *args = NULL;
    size_t count = 0;
    if (!call->tool->param_count || json_parse(&call->arena, call->request.args, &args, NULL))
        return 0;
    for (size_t i = 0; i < call->tool->param_count; i++) {
        const struct mcp_param *param = &call->tool->params[i];
        str value = mcp_param_value(&call->arena, param, args);
        if (!value.len) continue;
        rows[count++] =
            (struct mcp_header){arena_printf(&call->arena, "Mcp-Param-%.*s", STR_ARG(param->name)),
                                value};
    }
    return count;
}

static void send_call(struct tool_call *call)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_server *server = call->server;
    bool modern = server->session.modern;
    struct mcp_header rows[MCP_PARAMS_MAX];
    buf_init(&out, MCP_SEND_BYTES_MAX);
    call->number = ++server->session.number;
    rpc_begin(&w, &out, call->number, "tools/call");
    json_member(&w, STR("name"), call->tool->name);
    json_member_raw(&w, STR("arguments"), call->request.args);
    if (modern && call->replies.len) json_member_raw(&w, STR("inputResponses"), call->replies);
    if (modern && call->request_state.p) json_member(&w, STR("requestState"), call->request_state);
    rpc_meta(&w, modern);
    json_member(&w, STR("fermata/idempotencyKey"), call->request.call_id);
    json_member_u64(&w, STR("progressToken"), call->number);
    rpc_end(&w);
    if (out.full) {
        end_soon(call, TOOL_FAILED, STR("the arguments and answers are too long to be sent"));
        return;
    }
    call->state = CALL_SENT;
    clock_start(call);
    size_t count = modern ? param_headers(call, rows) : 0;
    mcp_session_send(server, &out,
                     &(struct mcp_send){.number = call->number,
                                        .method = "tools/call",
                                        .name = call->tool->name,
                                        .more = rows,
                                        .more_count = count});
}

/* No answer is wanted any more. */
static void call_off(struct tool_call *call, const char *reason)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    struct mcp_server *server = call->server;
    struct mcp_session *s = &server->session;
    if (!s->link) return;
    if (!s->modern || !mcp_session_http(server)) {
        buf_init(&out, 4096);
        rpc_begin(&w, &out, 0, "notifications/cancelled");
        json_member_u64(&w, STR("requestId"), call->number);
        json_member(&w, STR("reason"), str_c(reason));
        rpc_end(&w);
        mcp_session_send(server, &out, &(struct mcp_send){.method = "notifications/cancelled"});
    }
    mcp_link_forget(s->link, call->number);
}

/* ---- starting ---- */

static void copy_request(struct tool_call *call, const struct tool_request *from)
{
    struct arena *arena = &call->arena;
    struct tool_request *to = &call->request;
    struct tool_said *said = arena_array(arena, from->said_count, sizeof *said);
    *to = *from;
    to->call_id = arena_str(arena, from->call_id);
    to->args = from->args.len ? arena_str(arena, from->args) : STR("{}");
    to->owner = arena_str(arena, from->owner);
    to->locale = arena_str(arena, from->locale);
    to->state = arena_str(arena, from->state);
    to->thread_id = to->run_id = to->timezone = STR_EMPTY; /* not needed */
    for (size_t i = 0; i < from->said_count; i++) {
        const struct tool_question *q = &from->said[i].question;
        said[i].question =
            (struct tool_question){arena_str(arena, q->id), arena_str(arena, q->message),
                                   arena_str(arena, q->schema), arena_str(arena, q->url)};
        said[i].reply.action = arena_str(arena, from->said[i].reply.action);
        said[i].reply.content = arena_str(arena, from->said[i].reply.content);
    }
    to->said = said;
}

/* {"key": reply, ...} of those that were asked and of those that were declined by us. */
static str write_replies(struct tool_call *call, const struct json *declined)
{
    static const struct tool_reply no = {.action = STR("decline")};
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    buf_init(&out, MCP_SEND_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    for (size_t i = 0; i < call->request.said_count; i++) {
        const struct tool_said *said = &call->request.said[i];
        json_member_raw(&w, said->question.id, mcp_reply_write(&call->arena, &said->reply, NULL));
    }
    for (const struct json *key = declined ? declined->child : NULL; key; key = key->next)
        json_member_raw(&w, json_text(key),
                        mcp_reply_write(&call->arena, &no, "this cannot be asked"));
    json_object_end(&w);
    return out.full ? STR_EMPTY : arena_str(&call->arena, buf_str(&out));
}

/* What the earlier start left for this one. False: it cannot go on. */
static bool take_state(struct tool_call *call, str *ret_why)
{
    struct json *json = NULL;
    if (!call->request.state.len) return true;
    if (json_parse(&call->arena, call->request.state, &json, NULL)) {
        *ret_why = STR("what was kept of the call's questions cannot be read");
        return false;
    }
    if (json_get(json, STR("pages"))) {
        *ret_why = STR("the person did not open the page that the server needs");
        for (size_t i = 0; i < call->request.said_count; i++)
            if (!str_eq(call->request.said[i].reply.action, STR("accept"))) return false;
        return true;
    }
    const struct json *state = json_get(json, STR("requestState"));
    if (state) call->request_state = json_text(state);
    call->replies = write_replies(call, json_get(json, STR("declined")));
    return true;
}

static void on_timer(void *arg)
{
    struct tool_call *call = arg;
    struct mcp_server *server = call->server;
    if (call->state == CALL_DUE) {
        end_with(call, call->due_end, "", call->due_text);
    } else if (call->state == CALL_WAITING) {
        const char *why = server->session.why.text;
        end_away(call, why[0] ? why : "it has not answered yet");
    } else if (call->state == CALL_SENT) {
        call_off(call, "it took too long");
        end_with(call, TOOL_LOST, "",
                 arena_printf(&call->arena, "the MCP server %.*s did not answer within %lld s",
                              STR_ARG(server->options.name),
                              (long long)(server->ways.pace.call_ms / 1000)));
    }
}

static void wait_for_session(struct tool_call *call)
{
    struct mcp_server *server = call->server;
    const struct mcp_session *s = &server->session;
    bool soon = loop_now(server->options.loop) - s->began_at < server->ways.pace.rest_ms;
    if (s->state == SESSION_RESTING && soon) {
        end_soon(call, TOOL_AWAY,
                 arena_printf(&call->arena, "the MCP server %.*s is not reachable: %s",
                              STR_ARG(server->options.name), s->why.text));
        return;
    }
    call->state = CALL_WAITING;
    timer_start(call->timer, server->ways.pace.wait_ms);
    mcp_session_begin(server);
}

static struct tool_call *
mcp_start(void *self, const struct tool_request *request,
          void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result), void *arg)
{
    const struct mcp_tool *tool = self;
    struct mcp_server *server = tool->server;
    str why = STR_EMPTY;
    struct tool_call *call = calloc(1, sizeof *call);
    if (!call) abort();
    arena_init(&call->arena);
    call->server = server;
    call->tool = tool;
    call->on_end = on_end;
    call->arg = arg;
    call->timer = timer_new(server->options.loop, on_timer, call);
    call->left_ms = server->ways.pace.call_ms;
    copy_request(call, request);
    bool room = server->call_count < MCP_CALLS_MAX;
    call->next = server->calls;
    server->calls = call;
    server->call_count++;
    if (server->stopping || !room)
        end_soon(call, TOOL_AWAY,
                 server->stopping ? STR("this MCP server is not configured any more")
                                  : STR("too many calls of this MCP server are under way"));
    else if (!take_state(call, &why))
        end_soon(call, TOOL_FAILED, why);
    else if (server->session.state == SESSION_UP)
        send_call(call);
    else
        wait_for_session(call);
    return call;
}

static void mcp_cancel(struct tool_call *call)
{
    if (call->state == CALL_OVER) return; /* from inside its last callback */
    if (call->server && call->state == CALL_SENT) call_off(call, "it is not wanted any more");
    call_free(call);
}

/* ---- the session ---- */

/* Oldest first, as they came. */
void mcp_calls_ready(struct mcp_server *server)
{
    for (;;) {
        struct tool_call *oldest = NULL;
        for (struct tool_call *call = server->calls; call; call = call->next)
            if (call->state == CALL_WAITING) oldest = call;
        if (!oldest) return;
        send_call(oldest);
    }
}

void mcp_calls_away(struct mcp_server *server, const struct fault *why)
{
    for (struct tool_call *call = server->calls; call; call = call->next)
        call->left = call->state == CALL_WAITING;
    for (;;) {
        struct tool_call *call = server->calls;
        while (call && !call->left) call = call->next;
        if (!call) return;
        call->left = false;
        if (call->state == CALL_WAITING) end_away(call, why->text);
    }
}

void mcp_calls_orphan(struct mcp_server *server)
{
    for (struct tool_call *call = server->calls; call; call = call->next) {
        timer_stop(call->timer);
        call->server = NULL;
    }
    server->calls = NULL;
    server->call_count = 0;
}

void mcp_calls_lost(struct mcp_server *server, uint64_t number, enum mcp_loss loss, int http_status,
                    const struct fault *why)
{
    struct tool_call *call = find(server, number);
    if (!call) return;
    bool gone = loss == MCP_NO_SESSION || (loss == MCP_AWAY && !http_status);
    if (gone && mcp_session_http(server) && !call->retried && !call->asked && !server->stopping) {
        call->retried = true;
        call->state = CALL_WAITING;
        clock_stop(call);
        timer_start(call->timer, server->ways.pace.wait_ms);
        mcp_session_lost(server, why);
        return;
    }
    if (loss != MCP_LOST) {
        end_away(call, why->text);
        return;
    }
    char before[MCP_NAME_BYTES_MAX + 80];
    snprintf(before, sizeof before, "the MCP server %.*s was lost in the middle of the call: ",
             STR_ARG(server->options.name));
    end_with(call, TOOL_LOST, before, str_c(why->text));
}

void mcp_calls_unreadable(struct mcp_server *server, uint64_t number, const struct fault *why)
{
    struct tool_call *call = find(server, number);
    if (call)
        end_with(call, TOOL_LOST,
                 "the answer of the MCP server cannot be read: ", str_c(why->text));
}

/* ---- answers ---- */

/* Secrets in a failure: the words of a result that failed are the server's. */
void mcp_calls_result(struct mcp_server *server, uint64_t number, enum tool_end end,
                      struct tool_result *result)
{
    struct tool_call *call = find(server, number);
    if (!call) return;
    if (result->error.len) {
        char *copy = arena_cstr(&call->arena, result->error);
        mcp_hide(server, copy, result->error.len);
        result->error = (str){copy, result->error.len};
    }
    end_call(call, end, result);
}

static str result_type(const struct mcp_server *server, const struct json *result)
{
    str type = json_text(json_get(result, STR("resultType")));
    return server->session.modern && type.len ? type : STR("complete");
}

bool mcp_calls_await(const struct mcp_server *server, const struct rpc_message *message,
                     str *ret_locale)
{
    struct tool_call *call = message->number ? find(server, message->number) : NULL;
    if (!call || message->kind != RPC_RESULT ||
        !str_eq(result_type(server, message->result), STR("complete")))
        return false;
    timer_stop(call->timer); /* it has its answer */
    *ret_locale = call->request.locale;
    return true;
}

/* What the next start has to know. */
static str write_state(struct tool_call *call, const struct mcp_needs *needs, bool pages)
{
    AUTO(buf_done) struct buf out = {0};
    struct json_writer w;
    buf_init(&out, MCP_SEND_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    if (pages) json_member_bool(&w, STR("pages"), true);
    if (needs->has_state) json_member(&w, STR("requestState"), needs->state);
    json_key(&w, STR("declined"));
    json_array(&w);
    for (size_t i = 0; i < needs->declined_count; i++) json_string(&w, needs->declined[i]);
    json_array_end(&w);
    json_object_end(&w);
    return arena_str(&call->arena, buf_str(&out));
}

/* The call is over with its questions. */
static void ask_and_end(struct tool_call *call, const struct mcp_needs *needs, bool pages)
{
    struct tool_asked asked = {
        .questions = needs->questions,
        .count = needs->count,
        .state = write_state(call, needs, pages),
        .ended = true,
    };
    call->state = CALL_OVER;
    timer_stop(call->timer);
    call->request.on_ask(call->arg, &asked);
    call_free(call);
}

/* Nobody has to be asked: again at once, with what the server gave us. */
static void send_again(struct tool_call *call, const struct mcp_needs *needs)
{
    struct json *json = NULL;
    clock_stop(call);
    if (++call->again > MCP_AGAIN_MAX) {
        end_with(call, TOOL_FAILED, "", STR("the server keeps sending the call back"));
        return;
    }
    str text = write_state(call, needs, false);
    call->request.said_count = 0;
    call->replies = STR_EMPTY;
    if (needs->declined_count && json_parse(&call->arena, text, &json, NULL) == OK)
        call->replies = write_replies(call, json_get(json, STR("declined")));
    call->request_state = needs->has_state ? needs->state : (str){0};
    send_call(call);
}

static void take_needs(struct tool_call *call, const struct json *result)
{
    struct mcp_needs needs;
    struct fault why = {0};
    if (mcp_needs_read(&call->arena, result, &needs, &why)) {
        end_with(call, TOOL_FAILED, "", str_c(why.text));
        return;
    }
    for (size_t i = 0; i < needs.count && !call->request.on_ask; i++)
        needs.declined[needs.declined_count++] = needs.questions[i].id;
    if (!call->request.on_ask) needs.count = 0;
    if (needs.count)
        ask_and_end(call, &needs, false);
    else
        send_again(call, &needs);
}

static void take_error(struct tool_call *call, const struct rpc_message *message)
{
    struct mcp_server *server = call->server;
    struct mcp_needs needs;
    char code[32];
    if (message->code == RPC_URL_NEEDED && !server->session.modern && call->request.on_ask &&
        mcp_pages_read(&call->arena, message->data, &needs, NULL) == OK) {
        ask_and_end(call, &needs, true);
        return;
    }
    if (message->code == RPC_HEADER_MISMATCH) mcp_list_again(server); /* other headers */
    snprintf(code, sizeof code, "%lld: ", (long long)message->code);
    end_with(call, TOOL_FAILED, code, message->text);
}

void mcp_calls_answered(struct mcp_server *server, const struct rpc_message *message)
{
    struct tool_call *call = find(server, message->number);
    if (!call) return; /* it was called off */
    if (message->kind == RPC_ERROR) {
        take_error(call, message);
        return;
    }
    str type = result_type(server, message->result);
    if (str_eq(type, STR("input_required"))) {
        take_needs(call, message->result);
    } else if (!str_eq(type, STR("complete"))) {
        end_with(call, TOOL_FAILED, "the server's answer is of a type that Fermata does not know: ",
                 tool_text_head(type, 80));
    } else {
        struct tool_result result = {0};
        enum tool_end end =
            mcp_result_read(&call->arena, message->result, call->request.locale, &result);
        mcp_calls_result(server, message->number, end, &result);
    }
}

/* ---- questions in the middle of a call ---- */

static void send_reply(struct tool_call *call, str id, const struct tool_reply *reply,
                       const char *reason)
{
    AUTO(buf_done) struct buf out = {0};
    if (!call->server->session.link) return;
    str result = mcp_reply_write(&call->arena, reply, reason);
    buf_init(&out, result.len + 4096);
    rpc_answer(&out, id, result);
    mcp_session_send(call->server, &out, &(struct mcp_send){0});
}

/* Whose question it is. Most servers wait for one answer before they ask the next thing, so a call
 * with an open question comes last. NULL: nobody's, or it cannot be told. */
static struct tool_call *find_asker(const struct mcp_server *server)
{
    struct tool_call *found = NULL;
    for (int pass = 0; pass < 2 && !found; pass++) {
        for (struct tool_call *call = server->calls; call; call = call->next) {
            if (call->state != CALL_SENT || (pass == 0 && call->open)) continue;
            if (found && !str_eq(found->request.owner, call->request.owner)) return NULL;
            found = call; /* the oldest in the end */
        }
    }
    return found;
}

static bool said_already(struct tool_call *call, const struct tool_question *question)
{
    const struct tool_request *request = &call->request;
    if (call->asked >= request->said_count || request->state.len) return false;
    const struct tool_said *said = &request->said[call->asked];
    return said->reply.action.len &&
           str_eq(elicit_hash(&call->arena, &said->question), elicit_hash(&call->arena, question));
}

bool mcp_calls_asked(struct mcp_server *server, const struct rpc_message *message)
{
    static const struct tool_reply no = {.action = STR("decline")};
    struct tool_call *call = find_asker(server);
    struct tool_question question = {0};
    struct fault why = {0};
    if (!call || call->seen++ >= 2 * QUESTIONS_CALL_MAX) return false;
    if (mcp_question_read(&call->arena, message->params, &question, &why)) {
        mcp_note(server, "question declined", str_c(why.text));
        send_reply(call, message->id, &no, why.text);
        return true;
    }
    if (!call->request.on_ask || call->asked == QUESTIONS_CALL_MAX) {
        send_reply(call, message->id, &no, "nobody can be asked any more");
        return true;
    }
    if (said_already(call, &question)) {
        send_reply(call, message->id, &call->request.said[call->asked++].reply, NULL);
        return true;
    }
    struct tool_asked asked = {.questions = &question, .count = 1, .first = call->asked};
    call->questions[call->asked++] =
        (struct mcp_call_question){arena_str(&call->arena, message->id), true};
    if (call->open++ == 0) clock_stop(call);
    call->request.on_ask(call->arg, &asked); /* the call may be gone */
    return true;
}

static void mcp_reply(struct tool_call *call, size_t n, const struct tool_reply *reply)
{
    assert(n < call->asked);
    if (!call->server || call->state != CALL_SENT || !call->questions[n].open) return;
    call->questions[n].open = false;
    send_reply(call, call->questions[n].id, reply, NULL);
    if (--call->open == 0) clock_start(call);
}

/* ---- progress ---- */

static str number_of(const struct json *params, const char *name)
{
    const struct json *number = json_get(params, str_c(name));
    bool fits = number && number->type == JSON_NUMBER && number->text.len <= 64;
    return fits ? number->text : STR_EMPTY;
}

void mcp_calls_progress(struct mcp_server *server, const struct json *params)
{
    uint64_t token = 0;
    msec second = loop_now(server->options.loop) / 1000;
    if (json_u64(json_get(params, STR("progressToken")), &token)) return;
    struct tool_call *call = find(server, token);
    if (!call || !call->request.on_progress) return;
    if (second != call->progress_second) call->progress_count = 0;
    call->progress_second = second;
    if (call->progress_count++ >= MCP_PROGRESS_S_MAX) return;
    struct tool_progress progress = {
        .progress = number_of(params, "progress"),
        .total = number_of(params, "total"),
        .message =
            tool_text_head(json_text(json_get(params, STR("message"))), MCP_PROGRESS_BYTES_MAX),
    };
    call->request.on_progress(call->arg, &progress);
}

const struct tool_ops mcp_ops = {.start = mcp_start, .cancel = mcp_cancel, .reply = mcp_reply};

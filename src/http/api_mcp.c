/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /mcp: messages served, from a message to its answer, and calls that wait for a person.
 *
 *     desk_read ─► initialize, discover, ping, tools/list      answered at once
 *         │ refused
 *         ▼        tools/call ─► desk_parse ─► ask_user, confirm: one write job, question_ask ─┐
 *     JSON-RPC error                └─► get_answer: one read job, question_find ───────────────┤
 *                                                                                              ▼
 *     the answer ◄── settled, or time is up ── look (a read job) ◄── a fact of its run ◄── a wait
 *
 * A wait is a follower of the thread's facts and a timer. It holds no state of the question: each
 * time something happened the rows are looked at again.
 *
 * Invariants:
 * 1. A wait has at most one look under way, and is answered only between two looks: the arena of its
 *    request belongs to the reading thread meanwhile.
 * 2. Nothing depends on the wait. If the client goes, the time is up or the server is killed, the
 *    question stands, and the next call finds it by its key or its id.
 * 3. What a model can mend (an argument, a key used twice) is a result with isError; what it cannot
 *    is an error of the protocol.
 */
#include "http/api_mcp.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/shell/begin.h"
#include "agents/agents.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "mcp/server/mcp_protocol.h"
#include "mcp/server/question.h"
#include "net/loop.h"
#include "server/server.h"
#include "store/bus/bus.h"
#include "ui/text.h"

/* ---- answers ---- */

static void give_json(struct exchange *x, int status, str json)
{
    exchange_json(x, status, json);
}

static void give_error(struct exchange *x, const struct desk_message *message, int code, str text)
{
    give_json(x, 200, desk_error(exchange_arena(x), message->id, code, text));
}

/* The call itself went wrong, and whoever made it can read why. */
static void give_fault(struct exchange *x, const struct desk_message *message, str text)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    buf_init(&out, DESK_RESULT_BYTES_MAX);
    desk_reply(&w, &out, message);
    desk_write_fault(&w, text);
    desk_reply_end(&w, message, false);
    give_json(x, 200, buf_str(&out));
}

static void give_state(struct exchange *x, const struct desk_message *message,
                       const struct desk_state *state)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    buf_init(&out, 8 * (size_t)DESK_RESULT_BYTES_MAX); /* it stands there twice, once escaped */
    desk_reply(&w, &out, message);
    desk_write_state(&w, exchange_arena(x), state);
    desk_reply_end(&w, message, false);
    give_json(x, 200, buf_str(&out));
}

static void give_list(struct exchange *x, const struct desk_message *message)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    buf_init(&out, DESK_RESULT_BYTES_MAX);
    desk_reply(&w, &out, message);
    desk_write_list(&w);
    desk_reply_end(&w, message, true);
    give_json(x, 200, buf_str(&out));
}

/* The store could not, or does not know it. */
static void give_trouble(struct exchange *x, const struct desk_message *message, enum err e,
                         const struct fault *why)
{
    bool told = why && why->text[0];
    if (e == ERR_SHUTTING_DOWN || e == ERR_CANCELLED) { /* nobody is there to be told */
        exchange_error(x, e, NULL);
    } else if (e == ERR_NOT_FOUND) {
        give_fault(x, message, STR("There is no question of this id"));
    } else if (told && (e == ERR_IDEMPOTENCY_MISMATCH || e == ERR_RATE_LIMITED ||
                        e == ERR_TOO_LARGE || e == ERR_QUOTA)) {
        give_fault(x, message, str_c(why->text));
    } else {
        log_error("mcp.failed", LOG_CSTR("code", err_code(e)), LOG_CSTR("id", x->request->id),
                  LOG_CSTR("reason", told ? why->text : err_title(e)));
        give_error(x, message, DESK_INTERNAL_ERROR,
                   e == ERR_STORAGE_FULL ? STR("The disk of the server is full; nothing was asked")
                                         : STR("The server could not do it; its log says why"));
    }
}

/* ---- waiting ---- */

struct look {
    struct job job;
    struct mcp_wait *wait;
};

struct mcp_wait {
    struct exchange *x;
    const struct desk_message *message;
    struct mcp_wait *prev, *next;
    struct question question;
    struct bus_follower follower;
    struct timer *timer;
    struct look look;
    struct desk_state state;
    msec until;  /* steady: as long as the client waits */
    msec opened; /* steady: and so long in any case, for people to get to see it */
    bool looking, again;
    bool counted; /* it has its place in POOL_WAITS */
};

/* Whoever was signed out meanwhile is told nothing. The request, and the wait with it, is gone after
 * this. */
static void wait_end(struct mcp_wait *wait, enum err e)
{
    struct exchange *x = wait->x;
    struct fault why = {0};
    bus_unfollow(x->server->bus, &wait->follower);
    timer_free(wait->timer);
    *(wait->prev ? &wait->prev->next : &x->server->mcp_waits) = wait->next;
    if (wait->next) wait->next->prev = wait->prev;
    if (wait->counted) pool_give(x->server, POOL_WAITS, x->who.user);
    if (auth_still(x->server->auth, &x->who, x->here) == ERR_UNAUTHENTICATED)
        exchange_error(x, fault(&why, ERR_UNAUTHENTICATED, "the key has been revoked"), &why);
    else if (e && e != ERR_NOT_FOUND)
        give_trouble(x, wait->message, e, NULL);
    else
        give_state(x, wait->message, &wait->state);
}

static void look_start(struct mcp_wait *wait);

/* Time is up, or nobody listens any more. */
static bool is_over(const struct mcp_wait *wait)
{
    const struct server *server = wait->x->server;
    msec now = loop_now(server->loop);
    bool known = wait->state.opened || wait->state.queued || now >= wait->opened;
    return server->stopping || http_gone(wait->x->request) || (now >= wait->until && known);
}

static void timer_next(struct mcp_wait *wait)
{
    msec now = loop_now(wait->x->server->loop);
    msec left = now < wait->until ? wait->until - now : wait->opened - now;
    timer_start(wait->timer, left > DESK_GONE_MS ? DESK_GONE_MS : left > 0 ? left : 0);
}

static enum err look_run(struct job *job, struct db *db)
{
    struct mcp_wait *wait = ((struct look *)(void *)job)->wait;
    return question_look(db, exchange_arena(wait->x), &wait->question, &wait->state);
}

static void look_done(struct job *job, enum err e)
{
    struct mcp_wait *wait = ((struct look *)(void *)job)->wait;
    wait->looking = false;
    if (e == ERR_NOT_FOUND) /* its thread was deleted, which cancels it */
        wait->state = (struct desk_state){.status = DESK_CANCELLED, .id = wait->question.run_id};
    if (e || wait->state.status != DESK_PENDING || is_over(wait))
        wait_end(wait, e);
    else if (wait->again)
        look_start(wait);
    else
        timer_next(wait);
}

static void look_start(struct mcp_wait *wait)
{
    wait->looking = true;
    wait->again = false;
    wait->look = (struct look){{.run = look_run, .done = look_done}, wait};
    exchange_read(wait->x, &wait->look.job, READ_PAGE);
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct mcp_wait *wait = arg;
    bool ours = false;
    for (size_t i = 0; i < count; i++)
        ours = ours || str_eq(facts[i].run_id, wait->question.run_id);
    if (!ours) return;
    wait->again = true;
    if (!wait->looking) look_start(wait);
}

/* Until the time is up the rows are looked at only if something happened. */
static void on_timer(void *arg)
{
    struct mcp_wait *wait = arg;
    if (wait->looking) return;
    if (is_over(wait))
        look_start(wait);
    else
        timer_next(wait);
}

static const struct bus_ops wait_ops = {.on_facts = on_facts};

/* The message is in the arena. */
static void wait_start(struct exchange *x, const struct desk_message *message,
                       const struct question *question, msec wait_ms)
{
    struct server *server = x->server;
    struct mcp_wait *wait = ARENA_NEW(exchange_arena(x), struct mcp_wait);
    msec now = loop_now(server->loop);
    bool room = pool_take(server, POOL_WAITS, x->who.user, NULL) == OK;
    *wait = (struct mcp_wait){.x = x,
                              .message = message,
                              .question = *question,
                              .follower = {.ops = &wait_ops, .arg = wait},
                              .counted = room,
                              .until = now + (room ? wait_ms : 0),
                              .opened = now + DESK_OPEN_MS_MAX};
    wait->timer = timer_new(server->loop, on_timer, wait);
    wait->next = server->mcp_waits;
    if (wait->next) wait->next->prev = wait;
    server->mcp_waits = wait;
    bus_follow(server->bus, question->thread, &wait->follower);
    look_start(wait);
}

void mcp_waits_stop(struct server *server)
{
    for (struct mcp_wait *wait = server->mcp_waits, *next; wait; wait = next) {
        next = wait->next;
        if (!wait->looking) wait_end(wait, OK);
    }
}

/* ---- ask_user, confirm ---- */

struct mcp_server_asking {
    struct thread_change tc; /* first: its job is the exchange's */
    const struct desk_message *message;
    struct desk_call call;
    struct question_new question;
    struct question found;
};

static enum err ask_run(struct job *job, struct db *db)
{
    struct mcp_server_asking *asking = (struct mcp_server_asking *)(void *)job;
    return question_ask(&asking->tc, db, &asking->question, &asking->found);
}

static void ask_done(struct job *job, enum err e)
{
    struct mcp_server_asking *asking = (struct mcp_server_asking *)(void *)job;
    struct change *change = &asking->tc.change;
    if (e) {
        give_trouble(change_exchange(change), asking->message, e, &change->why);
        return;
    }
    if (!change->repeated) thread_change_tell(change);
    wait_start(change_exchange(change), asking->message, &asking->found, asking->call.wait_ms);
}

static void ask_question(struct exchange *x, const struct desk_message *message,
                         const struct desk_call *call)
{
    struct arena *arena = exchange_arena(x);
    struct mcp_server_asking *asking = ARENA_NEW(arena, struct mcp_server_asking);
    struct question_new *question = &asking->question;
    asking->message = message;
    asking->call = *call;
    question->call = &asking->call;
    question->client = ui_line(arena, message->client, DESK_CLIENT_CHARS_MAX);
    question->message_id = new_id(arena, "msg_");
    change_for(&asking->tc.change, x);
    start_run_init(&question->start, &asking->tc.change.by);
    question->start.agent = agent_brief(agents_at(x->server->agents, 0));
    question->start.agent.busy = BUSY_ENQUEUE;
    question->start.asked_key = x->who.key_id;
    question->start.run_id = question_run_id(arena, x->who.key_id, call->key);
    question->start.press_tool = call->press_tool;
    question->start.press_args = call->press_args;
    question->start.input = press_input(arena, call->press_tool, call->press_args);
    asking->tc.change.now = clock_wall(&clock_system);
    asking->tc.change.job = (struct job){.run = ask_run, .done = ask_done, .who = x->who.user};
    store_write(x->server->store, &asking->tc.change.job);
}

/* ---- get_answer ---- */

struct finding {
    struct job job;
    struct exchange *x;
    const struct desk_message *message;
    struct desk_call call;
    struct question found;
};

static enum err find_run(struct job *job, struct db *db)
{
    struct finding *finding = (struct finding *)(void *)job;
    struct exchange *x = finding->x;
    return question_find(db, exchange_arena(x), &x->who, finding->call.id, &finding->found);
}

static void find_done(struct job *job, enum err e)
{
    struct finding *finding = (struct finding *)(void *)job;
    if (e)
        give_trouble(finding->x, finding->message, e, NULL);
    else
        wait_start(finding->x, finding->message, &finding->found, finding->call.wait_ms);
}

/* ---- messages ---- */

static void call_tool(struct exchange *x, const struct desk_message *message)
{
    enum desk_tool tool;
    struct desk_call call;
    struct fault why = {0};
    if (desk_find(message->tool, &tool)) {
        give_error(x, message, DESK_INVALID_PARAMS,
                   STR("There is no tool of this name; tools/list has them"));
    } else if (desk_parse(exchange_arena(x), tool, message->arguments, &call, &why)) {
        give_fault(x, message, str_c(why.text));
    } else if (tool == DESK_GET_ANSWER) {
        struct finding *finding = ARENA_NEW(exchange_arena(x), struct finding);
        *finding = (struct finding){
            .job = {.run = find_run, .done = find_done}, .x = x, .message = message, .call = call};
        exchange_read(x, &finding->job, READ_PAGE);
    } else {
        ask_question(x, message, &call);
    }
}

static void serve(struct exchange *x, const struct desk_message *message)
{
    switch (message->method) {
    case DESK_INITIALIZE:
    case DESK_DISCOVER:
    case DESK_PING:
        give_json(x, 200, desk_hello(exchange_arena(x), message));
        break;
    case DESK_TOOLS_LIST:
        give_list(x, message);
        break;
    case DESK_TOOLS_CALL:
        call_tool(x, message);
        break;
    case DESK_NOTIFICATION:
    case DESK_METHOD_COUNT:
        http_answer(x->request, &(struct http_answer){.status = 202});
        break;
    }
}

/* A header that is not there has no pointer. */
static str header(const struct exchange *x, str name)
{
    return http_head_get(x->head, name);
}

void handle_mcp(struct exchange *x)
{
    struct arena *arena = exchange_arena(x);
    struct desk_message *message = ARENA_NEW(arena, struct desk_message);
    struct desk_refusal refusal;
    struct fault why = {0};
    const struct desk_headers headers = {
        .version = header(x, STR("MCP-Protocol-Version")),
        .method = header(x, STR("Mcp-Method")),
        .name = header(x, STR("Mcp-Name")),
    };
    if (!x->request->body.len) {
        exchange_error(x, fault(&why, ERR_BAD_REQUEST, "send one JSON-RPC message"), &why);
        return;
    }
    if (desk_read(arena, x->request->body, &headers, message, &refusal))
        give_json(x, refusal.status, desk_refuse(arena, &refusal));
    else
        serve(x, message);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * One WebSocket: its frames, subscriptions and acks; what its client says, and what it is told.
 *
 *     text ─► client_frame_parse ─► still allowed? ─┬─► subscribe, unsubscribe, ping: here
 *                    │ no: error         │ no: 1008  └─► message, stop, answers: the use cases of
 *                                                      thread/
 *     ◄─ ack or error, with the frame's id
 *     ◄─ events of each session that it reads (feed.h), news of the inbox (inbox.h)
 *
 * Frames of a socket are worked on one after the other, so that what a client says in order happens
 * in order; those that come meanwhile wait, up to WS_FRAMES_MAX.
 *
 * A client that reads slowly: old events wait for room, and never take more than
 * WS_CATCHUP_BYTES_MAX of the queue, so that the rest is there for what happens now. An event that
 * finds no room is caught up on behind a `reset`; if there is none for WS_SLOW_MS_MAX, the socket
 * closes with 1013, and the client comes back with the last seq it has.
 *
 * Invariants:
 * 1. A session is freed at the end of a turn of the loop, by end(); or with all others, when the
 *    server ends.
 * 2. `ws` is NULL exactly when the connection has gone by itself.
 * 3. At most one frame is worked on (`work`). It outlives the session if it has to: a use case
 *    has it.
 *
 * To add a frame: client_frame.c says how, and a row of `doings` here.
 */
#include "socket/socket_session.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "feed/feed.h"
#include "feed/inbox.h"
#include "net/loop.h"
#include "net/ws.h"
#include "server/endings.h"
#include "server/server.h"
#include "socket/socket_answer.h"
#include "socket/socket_peer.h"
#include "socket/socket_reply.h"
#include "thread/cancel_run.h"
#include "thread/post_message.h"

struct sockets {
    struct server *server;
    struct ending ending;
    struct ws_session *first;
    struct deadlines slow; /* sessions without room for what happens */
};

struct subscription {
    struct ws_session *session;
    struct subscription *next;
    struct reader *reader;
    struct work *work; /* the frame that began it, until it has begun */
    unsigned events;   /* bits of enum socket_kind */
    bool refused;      /* waits for room */
    char id[];         /* of the session that it reads, as clients call a thread */
};

/* A frame that waits. */
struct waiting {
    struct waiting *next;
    size_t len;
    char text[];
};

/* The frame that is worked on. */
struct work {
    struct socket_peer_ask ask;
    struct ws_session *session; /* NULL: it has gone */
    struct server *server;
    struct arena arena;
    str id;
    struct client_frame frame;
    const char *what; /* is asked of a use case, for the log */
    enum err wrong;   /* with the frame */
    struct fault why;
};

struct ws_session {
    struct sockets *sockets;
    struct ws_session *prev, *next;
    struct ws *ws;
    struct socket_peer peer; /* its texts are in `texts` */
    char *texts;

    struct subscription *subscriptions;
    size_t subscription_count;
    struct inbox_reader *inbox;
    size_t unsent; /* bytes since everything had been written; more than there are */
    struct deadline slow;

    struct work *work;
    struct waiting *first, **last;
    size_t waiting_count, waiting_bytes;
    bool pumping;
    msec bad[WS_BAD_FRAMES_MAX]; /* a ring of times */
    size_t bad_count;

    bool stopping; /* the server stops: the socket says so by itself */
    bool closing;
    enum ws_code code; /* 0: without a word */
    const char *reason;
    struct loop_defer end;
};

/* ---- its end ---- */

static void work_end(struct work *work);

static void subscription_free(struct subscription *sub)
{
    struct ws_session *s = sub->session;
    struct subscription **at = &s->subscriptions;
    struct work *work = sub->work;
    while (*at != sub) at = &(*at)->next;
    *at = sub->next;
    s->subscription_count--;
    pool_give(s->sockets->server, POOL_SUBSCRIPTIONS, s->peer.who.user);
    free(sub);
    if (work) work_end(work);
}

static void subscription_end(struct subscription *sub)
{
    feeds_leave(sub->reader);
    subscription_free(sub);
}

static void session_free(struct ws_session *s)
{
    struct sockets *sockets = s->sockets;
    loop_defer_cancel(sockets->server->loop, &s->end);
    deadline_clear(&s->slow);
#ifndef __clang_analyzer__ /* does not see that the list gets shorter */
    while (s->subscriptions) subscription_end(s->subscriptions);
#endif
    inbox_leave(s->inbox);
    if (s->work) s->work->session = NULL;
    for (struct waiting *next; s->first; s->first = next) {
        next = s->first->next;
        free(s->first);
    }
    *(s->prev ? &s->prev->next : &sockets->first) = s->next;
    if (s->next) s->next->prev = s->prev;
    sockets->server->metrics.sockets--;
    pool_give(sockets->server, POOL_SOCKETS, s->peer.who.user);
    free(s->texts);
    free(s);
}

static void end(struct loop_defer *defer)
{
    struct ws_session *s = CONTAINER(defer, struct ws_session, end);
    if (s->ws) ws_close(s->ws, s->code, s->reason);
    session_free(s);
}

/* Close it, at the end of this turn: whoever calls may be in the middle of something of it. */
static void session_end(struct ws_session *s, enum ws_code code, const char *reason)
{
    if (s->closing) return;
    s->closing = true;
    s->code = code;
    s->reason = reason;
    s->end.fn = end;
    loop_defer(s->sockets->server->loop, &s->end);
}

static void on_slow(struct deadline *deadline)
{
    session_end(CONTAINER(deadline, struct ws_session, slow), WS_LATER,
                "too slow; subscribe again with the last seq you have");
}

/* ---- sending ---- */

static bool can_send(const struct ws_session *s)
{
    return s->ws && !s->closing && !s->stopping;
}

static bool give(struct ws_session *s, str text)
{
    if (ws_drained(s->ws)) s->unsent = 0;
    if (!ws_send(s->ws, text)) return false;
    s->unsent += text.len;
    return true;
}

/* What the client waits for: it does not come twice, so a queue that is full ends the socket. */
static void say_text(struct ws_session *s, struct buf *text)
{
    assert(!text->full); /* an answer of ours is smaller */
    if (can_send(s) && !give(s, buf_str(text)))
        session_end(s, WS_LATER, "too slow; subscribe again with the last seq you have");
    buf_done(text);
}

static void say_ack(struct ws_session *s, str id, str data)
{
    struct buf out;
    if (!id.len) return;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    reply_ack(&out, id, data);
    say_text(s, &out);
}

static void say_fault(struct ws_session *s, str id, enum err e, const struct fault *why,
                      str session_id)
{
    struct buf out;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    reply_fault(&out, id, e, why, session_id);
    say_text(s, &out);
}

/* ---- events ---- */

static bool on_event(void *arg, enum socket_kind kind, str json, int64_t seq)
{
    struct subscription *sub = arg;
    struct ws_session *s = sub->session;
    (void)seq;
    if (!(sub->events & kind)) return true;
    if (!can_send(s)) return false;
    bool now = feeds_following(sub->reader);
    if (ws_drained(s->ws)) s->unsent = 0;
    bool room = now || s->unsent < WS_CATCHUP_BYTES_MAX;
    if (room && give(s, json)) return true;
    sub->refused = true;
    if (now && !s->slow.next) deadline_set(&s->sockets->slow, &s->slow);
    return false;
}

static void on_reader_over(void *arg)
{
    struct subscription *sub = arg;
    struct fault why = {0};
    enum err e = fault(&why, ERR_NOT_FOUND,
                       "this session was deleted, or cannot be read now; subscribe again");
    say_fault(sub->session, STR_EMPTY, e, &why, str_c(sub->id));
    subscription_free(sub);
}

/* Now the next frame: whoever subscribes again and again is not faster than the store. */
static void on_reader_begun(void *arg)
{
    struct subscription *sub = arg;
    if (sub->work) work_end(TAKE(sub->work));
}

static const struct feed_sink feed_sink = {
    .on_text = on_event, .on_begun = on_reader_begun, .on_over = on_reader_over};

static bool on_news(void *arg, str json)
{
    struct ws_session *s = arg;
    return can_send(s) && give(s, json);
}

static void on_inbox_over(void *arg)
{
    struct ws_session *s = arg;
    struct fault why = {0};
    enum err e = fault(&why, ERR_INTERNAL, "the inbox cannot be read now; subscribe again");
    s->inbox = NULL;
    say_fault(s, STR_EMPTY, e, &why, STR_EMPTY);
}

static const struct inbox_sink inbox_sink = {.on_text = on_news, .on_over = on_inbox_over};

static void on_drain(void *arg)
{
    struct ws_session *s = arg;
    s->unsent = 0;
    deadline_clear(&s->slow);
    for (struct subscription *sub = s->subscriptions, *next; sub && can_send(s); sub = next) {
        next = sub->next; /* it may be over with this */
        if (sub->refused) {
            sub->refused = false;
            feeds_room(sub->reader);
        }
    }
    if (s->inbox && can_send(s)) inbox_room(s->inbox);
}

/* ---- subscriptions ---- */

static struct subscription *subscription_find(const struct ws_session *s, str id)
{
    for (struct subscription *sub = s->subscriptions; sub; sub = sub->next)
        if (str_eq(str_c(sub->id), id)) return sub;
    return NULL;
}

static str ack_session(struct work *work)
{
    if (work->frame.inbox) return STR("{\"inbox\":true}");
    return arena_printf(&work->arena, "{\"sessionId\":\"%.*s\"}",
                        STR_ARG(work->frame.session_id)); /* nothing in it to escape */
}

static void subscribe(struct ws_session *s, struct work *work)
{
    const struct client_frame *frame = &work->frame;
    struct feed_start start = {.has_cursor = frame->has_after, .after = frame->after};
    struct subscription *sub = calloc(1, sizeof *sub + frame->session_id.len + 1);
    if (!sub) abort();
    memcpy(sub->id, frame->session_id.p, frame->session_id.len);
    sub->session = s;
    sub->work = work;
    sub->events = frame->events;
    sub->next = s->subscriptions;
    s->subscriptions = sub;
    s->subscription_count++;
    sub->reader = feeds_join(s->sockets->server->feeds, s->peer.who.user, str_c(sub->id), &start,
                             &feed_sink, sub);
}

/* ---- frames ---- */

static void pump(struct ws_session *s);

/* Done with, answered or not; then the next one. */
static void work_end(struct work *work)
{
    struct ws_session *s = work->session;
    arena_done(&work->arena);
    free(work);
    if (!s) return;
    s->work = NULL;
    if (!s->pumping) pump(s);
}

static void on_outcome(struct change *change, enum err e)
{
    struct work *work = change->waiter;
    struct ws_session *s = work->session;
    struct refused_frame refused = {.e = change_outcome(change, e, work->what),
                                    .why = &change->why,
                                    .member = change->member,
                                    .json = change->json};
    if (s && !refused.e) {
        say_ack(s, work->id, change->body);
    } else if (s) {
        struct buf out;
        buf_init(&out, FEED_FRAME_BYTES_MAX);
        reply_refusal(&out, work->id, work->frame.type, &refused);
        say_text(s, &out);
    }
    work_end(work);
}

/* The change is this frame's. */
static void work_asks(struct work *work, struct change *change, const char *what)
{
    change->by = asker_of(work->server, &work->arena, &work->session->peer.who, STR("websocket"));
    change->waiter = work;
    change->answer = on_outcome;
    work->what = what;
}

static void do_subscribe(struct work *work)
{
    struct ws_session *s = work->session;
    const struct client_frame *frame = &work->frame;
    struct subscription *before = frame->inbox ? NULL : subscription_find(s, frame->session_id);
    struct fault why = {0};
    if (before) {
        feeds_replace(before->reader);
        subscription_free(before);
    }
    enum err e = OK;
    if (!frame->inbox && s->subscription_count == WS_SUBSCRIPTIONS_MAX)
        e = fault(&why, ERR_RATE_LIMITED, "a socket reads %d sessions; unsubscribe one",
                  WS_SUBSCRIPTIONS_MAX);
    else if (!frame->inbox) /* subscription_free gives it back */
        e = pool_take(work->server, POOL_SUBSCRIPTIONS, s->peer.who.user, &why);
    if (e) {
        say_fault(s, work->id, e, &why, STR_EMPTY);
        work_end(work);
        return;
    }
    say_ack(s, work->id, ack_session(work));
    if (!frame->inbox) {
        subscribe(s, work);
        return; /* on_reader_begun goes on */
    }
    if (s->inbox)
        inbox_again(s->inbox);
    else
        s->inbox =
            inbox_join(work->server->inbox, s->peer.who.user, s->peer.who.roles, &inbox_sink, s);
    work_end(work);
}

static void do_unsubscribe(struct work *work)
{
    struct ws_session *s = work->session;
    if (work->frame.inbox) {
        inbox_leave(TAKE(s->inbox));
    } else {
        struct subscription *sub = subscription_find(s, work->frame.session_id);
        if (sub) subscription_end(sub);
    }
    say_ack(s, work->id, ack_session(work));
    work_end(work);
}

static void do_message(struct work *work)
{
    const struct client_frame *frame = &work->frame;
    struct post_message *post = ARENA_NEW(&work->arena, struct post_message);
    struct change *change = &post->take.tc.change;
    const struct lone_message lone = {.thread_id = frame->session_id,
                                      .run_id = frame->run_id,
                                      .id = frame->message_id,
                                      .content = frame->content};
    str host = arena_str(&work->arena, work->session->peer.host);
    const struct parts_home home = post_message_home(work->server, host);
    work_asks(work, change, "createRun");
    post->sent = frame->body;
    post->wrong = run_input_of_message(&work->arena, &lone, &home, &post->take.input, &change->why);
    post_message(post);
}

static void do_answer(struct work *work)
{
    const struct client_frame *frame = &work->frame;
    struct give_answer *give = ARENA_NEW(&work->arena, struct give_answer);
    bool named = frame->request_id.len > 0;
    work_asks(work, &give->tc.change, named ? "answerInteraction" : "answerRun");
    give->thread_id = frame->session_id;
    give->body = frame->answer;
    give->sent = frame->body;
    if (named)
        ws_answer(give, frame->session_id, frame->request_id);
    else
        give_answer_to_thread(give);
}

static void do_stop(struct work *work)
{
    struct cancel_run *cancel = ARENA_NEW(&work->arena, struct cancel_run);
    work_asks(work, &cancel->tc.change, "cancelRun");
    cancel->thread_id = work->frame.session_id;
    cancel_run(cancel);
}

static void do_ping(struct work *work)
{
    struct buf out;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    reply_pong(&out, work->id);
    say_text(work->session, &out);
    work_end(work);
}

static void (*const doings[FRAME_TYPE_COUNT])(struct work *work) = {
    [FRAME_SUBSCRIBE] = do_subscribe, [FRAME_UNSUBSCRIBE] = do_unsubscribe,
    [FRAME_MESSAGE] = do_message,     [FRAME_CLARIFY] = do_answer,
    [FRAME_CONFIRM] = do_answer,      [FRAME_STOP] = do_stop,
    [FRAME_PING] = do_ping,
};

/* One more frame that makes no sense; too many in a minute are the end. */
static void note_bad(struct ws_session *s)
{
    msec now = loop_now(s->sockets->server->loop);
    s->bad[s->bad_count++ % WS_BAD_FRAMES_MAX] = now;
    if (s->bad_count < WS_BAD_FRAMES_MAX) return;
    if (now - s->bad[s->bad_count % WS_BAD_FRAMES_MAX] < WS_BAD_FRAMES_MS)
        session_end(s, WS_POLICY, "too many frames that make no sense");
}

/* The frame's sender is known. */
static void work_go(struct work *work)
{
    struct ws_session *s = work->session;
    const struct socket_peer *peer = &s->peer;
    str by = peer->who.key_id.len ? peer->who.key_id : peer->client;
    enum err e = work->wrong;
    if (auth_count(work->server->auth, by)) {
        work->server->metrics.rate_limited++;
        e = fault_field(&work->why, ERR_RATE_LIMITED, "", "more than %u requests a second",
                        work->server->config->rate_max);
    }
    if (!e) {
        doings[work->frame.type](work);
        return;
    }
    say_fault(s, work->id, e, &work->why, STR_EMPTY);
    if (work->wrong) note_bad(s);
    work_end(work);
}

/* ---- still allowed? ---- */

static void not_allowed(struct work *work)
{
    session_end(work->session, WS_POLICY, "the key or the session has ended");
    work_end(work);
}

static void on_asked(struct socket_peer_ask *ask, enum err e)
{
    struct work *work = CONTAINER(ask, struct work, ask);
    if (!work->session) {
        work_end(work);
    } else if (e == ERR_UNAUTHENTICATED) {
        not_allowed(work);
    } else if (e) {
        e = fault_field(&work->why, e < ERR_IO ? e : ERR_INTERNAL, "",
                        "nobody knows now whether your session is still good; try again");
        say_fault(work->session, work->id, e, &work->why, STR_EMPTY);
        work_end(work);
    } else {
        work_go(work);
    }
}

static void work_start(struct ws_session *s, str text)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work) abort();
    arena_init(&work->arena);
    work->session = s;
    work->server = s->sockets->server;
    work->wrong = client_frame_parse(&work->arena, arena_str(&work->arena, text), &work->id,
                                     &work->frame, &work->why);
    s->work = work;
    enum err e = socket_peer_still(work->server, &s->peer);
    if (e == ERR_BUSY)
        socket_peer_ask(&work->ask, work->server, &s->peer, on_asked);
    else if (e)
        not_allowed(work);
    else
        work_go(work);
}

static void pump(struct ws_session *s)
{
    s->pumping = true;
    while (s->first && !s->work && !s->closing) {
        struct waiting *next = s->first;
        s->first = next->next;
        if (!s->first) s->last = &s->first;
        s->waiting_count--;
        s->waiting_bytes -= next->len;
        if (!s->first && s->ws) ws_keep_none(s->ws);
        work_start(s, (str){next->text, next->len});
        free(next);
    }
    s->pumping = false;
}

/* A client that does not wait for its acks is told to. */
static void refuse_waiting(struct ws_session *s, str text)
{
    AUTO(arena_done) struct arena arena;
    struct client_frame frame;
    struct fault why = {0};
    str id;
    arena_init(&arena);
    bool bad = client_frame_parse(&arena, text, &id, &frame, &why) != OK;
    enum err e = fault_field(&why, ERR_RATE_LIMITED, "",
                             "as many frames wait as may (%d of them, fewer long ones); wait for "
                             "acks",
                             WS_FRAMES_MAX);
    say_fault(s, id, e, &why, STR_EMPTY);
    if (bad) note_bad(s);
}

static void on_frame(void *arg, str text)
{
    struct ws_session *s = arg;
    if (s->closing || s->stopping) return;
    if (!s->work && !s->first) {
        s->pumping = true;
        work_start(s, text);
        s->pumping = false;
        return;
    }
    if (s->waiting_count == WS_FRAMES_MAX || s->waiting_bytes + text.len > WS_FRAMES_BYTES_MAX ||
        !ws_keep(s->ws, text.len)) {
        refuse_waiting(s, text);
        return;
    }
    struct waiting *waiting = malloc(sizeof *waiting + text.len);
    if (!waiting) abort();
    waiting->next = NULL;
    waiting->len = text.len;
    memcpy(waiting->text, text.p, text.len);
    *s->last = waiting;
    s->last = &waiting->next;
    s->waiting_count++;
    s->waiting_bytes += text.len;
}

/* ---- the socket ---- */

static void on_stop(void *arg)
{
    struct ws_session *s = arg;
    s->stopping = true;
}

static void on_close(void *arg)
{
    struct ws_session *s = arg;
    s->ws = NULL;
    session_end(s, 0, "");
}

static const struct ws_ops ops = {
    .on_text = on_frame, .on_drain = on_drain, .on_stop = on_stop, .on_close = on_close};

static str move_in(char **at, str text)
{
    str copy = {*at, text.len};
    if (text.len) memcpy(*at, text.p, text.len);
    *at += text.len;
    return copy;
}

enum err socket_open(struct sockets *sockets, const struct socket_peer *peer,
                     struct http_request *request, struct fault *reterr)
{
    enum err e = pool_take(sockets->server, POOL_SOCKETS, peer->who.user, reterr);
    if (e) return e;
    struct ws_session *s = calloc(1, sizeof *s);
    const struct identity *who = &peer->who;
    size_t len = who->user.len + who->key_id.len + peer->client.len + peer->host.len;
    if (!s || !(s->texts = malloc(len + 1))) abort();
    char *at = s->texts;
    s->peer = *peer;
    s->peer.who.user = move_in(&at, who->user);
    s->peer.who.key_id = move_in(&at, who->key_id);
    s->peer.client = move_in(&at, peer->client);
    s->peer.host = move_in(&at, peer->host);
    s->peer.endings = auth_endings(sockets->server->auth);
    s->last = &s->first;
    s->sockets = sockets;
    s->next = sockets->first;
    if (s->next) s->next->prev = s;
    sockets->first = s;
    sockets->server->metrics.sockets++;
    s->ws = ws_open(request, &ops, s);
    if (!s->ws) session_free(s);
    return OK;
}

/* ---- all of them ---- */

static void on_key_end(struct ending *ending, str key_id)
{
    struct sockets *sockets = CONTAINER(ending, struct sockets, ending);
    for (struct ws_session *s = sockets->first; s; s = s->next)
        if (str_eq(s->peer.who.key_id, key_id))
            session_end(s, WS_POLICY, "the key has been revoked");
}

static void on_session_end(struct ending *ending, const unsigned char hash[static HASH_BYTES])
{
    struct sockets *sockets = CONTAINER(ending, struct sockets, ending);
    for (struct ws_session *s = sockets->first; s; s = s->next)
        if (memcmp(s->peer.who.session, hash, HASH_BYTES) == 0)
            session_end(s, WS_POLICY, "the session has ended");
}

struct sockets *sockets_new(struct server *server)
{
    struct sockets *sockets = calloc(1, sizeof *sockets);
    if (!sockets) abort();
    sockets->server = server;
    sockets->ending = (struct ending){.on_key = on_key_end, .on_session = on_session_end};
    endings_follow(server, &sockets->ending);
    deadlines_init(&sockets->slow, server->loop, WS_SLOW_MS_MAX, on_slow);
    return sockets;
}

void sockets_free(struct sockets *sockets)
{
    if (!sockets) return;
#ifndef __clang_analyzer__ /* likewise */
    while (sockets->first) session_free(sockets->first);
#endif
    deadlines_done(&sockets->slow);
    free(sockets);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A known answer of a model, given in chunks at a pace. A call waits for its timer, for the end of
 * the turn that it starts in, or is posted to the loop; only from there does it call the sink:
 *
 *                 delay or gap                 nothing to wait for
 *     start -+-> WAITING ---timer---> POSTED <---------------------.
 *            |      ^                   |                          |
 *   no delay |      |                   v                          |
 *            |      `----- gap ---- DELIVERING (a chunk, or up to PLAYER_CHUNKS_MAX without a gap)
 *            `--> end of turn ----------^ |
 *                                         v
 *                                       on_end, freed
 *
 * What it says first so leaves together with what made it speak. Why tasks from then on: the loop takes posted tasks once a turn and serves sockets in between, while timers
 * that come due again at once would keep it busy among themselves. So any number of calls that
 * stream as fast as they can leave room for everything else.
 *
 * Invariants: 1. no callback from inside player_start; 2. none after player_cancel, which may come
 * at any time, also from inside a callback; 3. memory goes when nothing points to it: not inside a
 * callback, and not while posted.
 */
#include "model/player.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "net/loop.h"

struct model_call {
    struct loop_task task;
    struct loop_defer first; /* the end of the turn that it started in */
    struct loop *loop;
    struct timer *timer; /* NULL as long as nothing had to wait */
    struct arena arena;
    struct play play;
    struct model_sink sink;
    void *arg;
    size_t piece; /* the next one to send, */
    size_t at;    /* from this byte on */
    size_t calls; /* begun so far, the current one included */
    bool named;   /* on_call was sent for this piece */
    bool posted;
    bool delivering;
    bool over; /* ended or cancelled */
};

static bool char_starts(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

str player_chars(str text, size_t count)
{
    size_t at = 0;
    for (; at < text.len; at++)
        if (char_starts(text.p[at]) && count-- == 0) break;
    return (str){text.p, at};
}

static uint64_t char_count(str text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += char_starts(text.p[i]);
    return count;
}

struct model_usage player_usage(const struct model_request *request, const struct piece *pieces,
                                size_t count)
{
    enum { CHARS_PER_TOKEN = 4 };
    uint64_t in = char_count(request->system) + char_count(request->tools), out = 0;
    for (size_t i = 0; i < request->count; i++)
        in += char_count(request->messages[i].text) + char_count(request->messages[i].tool_calls);
    for (size_t i = 0; i < count; i++)
        out += char_count(pieces[i].name) + char_count(pieces[i].bytes);
    return (struct model_usage){.input_tokens = (in + CHARS_PER_TOKEN - 1) / CHARS_PER_TOKEN,
                                .output_tokens = (out + CHARS_PER_TOKEN - 1) / CHARS_PER_TOKEN};
}

str player_last_user(const struct model_request *request)
{
    for (size_t i = request->count; i-- > 0;)
        if (str_eq(request->messages[i].role, STR("user")) && !request->messages[i].along)
            return request->messages[i].text;
    return STR_EMPTY;
}

static void call_free(struct model_call *call)
{
    timer_free(call->timer);
    arena_done(&call->arena);
    free(call);
}

/* ---- delivering ---- */

/* One callback, and one step further. */
static void step(struct model_call *call)
{
    const struct piece *piece = &call->play.pieces[call->piece];
    if (piece->kind == PIECE_CALL && !call->named) {
        char id[48];
        snprintf(id, sizeof id, "call_%u_%zu", call->play.round, ++call->calls);
        call->named = true;
        call->sink.on_call(call->arg, call->calls - 1, str_c(id), piece->name);
    } else {
        str chunk = player_chars(str_drop(piece->bytes, call->at), call->play.chunk);
        call->at += chunk.len;
        if (piece->kind == PIECE_REASONING)
            call->sink.on_reasoning(call->arg, chunk);
        else if (piece->kind == PIECE_TEXT)
            call->sink.on_text(call->arg, chunk);
        else
            call->sink.on_args(call->arg, call->calls - 1, chunk);
    }
    if (call->at < piece->bytes.len) return;
    call->piece++;
    call->at = 0;
    call->named = false;
}

static void deliver(struct model_call *call)
{
    unsigned left = call->play.gap_ms ? 1 : PLAYER_CHUNKS_MAX;
    for (; left && !call->over && call->piece < call->play.count; left--) step(call);
    if (call->over || call->piece < call->play.count) return;
    call->over = true;
    const struct model_ending ending = {
        .end = call->play.end, .usage = call->play.usage, .why = call->play.why};
    call->sink.on_end(call->arg, &ending);
}

/* ---- waiting ---- */

static void post(struct model_call *call)
{
    call->posted = true;
    loop_post(call->loop, &call->task);
}

static void on_timer(void *arg)
{
    post(arg);
}

static void wait_ms(struct model_call *call, msec ms)
{
    if (ms == 0) {
        post(call);
        return;
    }
    if (!call->timer) call->timer = timer_new(call->loop, on_timer, call);
    timer_start(call->timer, ms);
}

static void go_on(struct model_call *call)
{
    call->delivering = true;
    deliver(call);
    call->delivering = false;
    if (call->over)
        call_free(call);
    else
        wait_ms(call, call->play.gap_ms);
}

static void on_task(struct loop_task *task)
{
    struct model_call *call = CONTAINER(task, struct model_call, task);
    call->posted = false;
    go_on(call);
}

static void on_first(struct loop_defer *first)
{
    go_on(CONTAINER(first, struct model_call, first));
}

struct model_call *player_start(struct loop *loop, const struct play *play, struct arena *arena,
                                const struct model_sink *sink, void *arg)
{
    assert(play->chunk > 0);
    struct model_call *call = malloc(sizeof *call);
    if (!call) abort();
    *call = (struct model_call){.task = {.fn = on_task},
                                .first = {.fn = on_first},
                                .loop = loop,
                                .play = *play,
                                .sink = *sink,
                                .arg = arg};
    if (arena) {
        call->arena = *arena;
        arena_init(arena);
    }
    if (play->delay_ms)
        wait_ms(call, play->delay_ms);
    else
        loop_defer(loop, &call->first);
    return call;
}

void player_cancel(struct model_call *call)
{
    call->over = true;
    loop_defer_cancel(call->loop, &call->first);
    if (!call->posted && !call->delivering) call_free(call);
}

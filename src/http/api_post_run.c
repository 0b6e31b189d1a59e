/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /runs: a RunAgentInput received, and answered in JSON or as the AG-UI stream. What it does is
 * thread/post_message.c.
 *
 * The stream's reader is made before the facts of the commit are told, so that it misses none, and
 * answers the request behind them, for the request holds them.
 */
#include "http/api_post_run.h"

#include "feed/feed.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "http/query.h"
#include "server/server.h"
#include "thread/post_message.h"

struct post_run {
    struct post_message post;
    struct reader *reader; /* of the stream, once it is there */
};

/* A repetition joins the run that it was answered with, under the names of that answer where it
 * brought none of its own. */
static struct reader *open_reader(const struct post_run *run)
{
    const struct take_input *take = &run->post.take;
    const struct change *change = &take->tc.change;
    struct exchange *x = change_exchange(change);
    struct json *answer = NULL;
    struct agui_open open = {.thread_id = take->thread_id,
                             .run_id = take->run_id,
                             .profile = take->input.versioned ? AGUI_NEW : AGUI_OLD,
                             .ids = take->input.ids,
                             .id_count = take->input.id_count,
                             .wait_run = take->wait_run,
                             .then_run = take->then_run,
                             .of_run = take->of_run,
                             .head = take->head};
    if (change->repeated && json_parse(exchange_arena(x), change->body, &answer, NULL) == OK) {
        open.head = NULL;
        open.wait_run = open.then_run = STR_EMPTY;
        open.of_run = json_text(json_get(answer, STR("runId")));
        open.thread_id = json_text(json_get(answer, STR("threadId")));
        if (take->own_run_id) open.run_id = open.of_run;
    }
    return feeds_agui(x->server->feeds, change->thread, x->who.user, &open);
}

static void on_stream_taken(struct post_message *post)
{
    struct post_run *run = (struct post_run *)(void *)post;
    if (post->take.tc.change.status < 400) run->reader = open_reader(run);
}

static void respond_stream(struct change *change)
{
    struct post_run *run = (struct post_run *)(void *)change;
    if (!run->reader) run->reader = open_reader(run); /* a repetition has told nothing */
    feeds_agui_answer(run->reader, change_exchange(change)->request, &change->by.who);
}

void post_run(struct exchange *x, str agent, bool stream)
{
    struct post_run *run = ARENA_NEW(exchange_arena(x), struct post_run);
    struct post_message *post = &run->post;
    struct change *change = &post->take.tc.change;
    const struct parts_home home = post_message_home(x->server, x->head->host);
    change_for(change, x);
    post->wrong =
        run_input_parse(exchange_arena(x), x->body, &home, &post->take.input, &change->why);
    post->agent = agent;
    post->sent = x->request->body;
    post->body = x->body;
    post->take.stream = stream;
    if (stream) {
        post->taken = on_stream_taken;
        change->respond = respond_stream;
    }
    post_message(post);
}

void handle_run_post(struct exchange *x)
{
    static const char *const types[] = {"text/event-stream", NULL};
    post_run(x, STR_EMPTY, query_accepts(x, types));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * From the request to the job, and from the job to the answer:
 *
 *   decode ─► bytes that came along into storage ─► take_input, one commit ─► 202
 *                                                                        └──► the stream
 *
 * The stream's reader is made before the facts of the commit are told, so that it misses none, and
 * answers the request behind them, for the request holds them.
 */
#include "app/input/post_run.h"

#include "agent/begin.h"
#include "agent/front.h"
#include "app/api/handlers.h"
#include "app/feed/feed.h"
#include "app/http/query.h"
#include "app/input/take_input.h"
#include "app/say.h"
#include "app/server.h"
#include "base/limits.h"
#include "base/log.h"

struct post_run {
    struct take_input take;
    struct reader *reader; /* of the stream, once it is there */
};

/* ---- the answer ---- */

/* A repetition joins the run that it was answered with, under the names of that answer where it
 * brought none of its own. */
static struct reader *open_reader(const struct post_run *post)
{
    const struct take_input *take = &post->take;
    const struct change *change = &take->tc.change;
    struct exchange *x = change->x;
    struct json *answer = NULL;
    struct agui_open open = {.thread_id = take->thread_id,
                             .run_id = take->run_id,
                             .profile = take->input.versioned ? AGUI_NEW : AGUI_OLD,
                             .ids = take->input.ids,
                             .id_count = take->input.id_count,
                             .wait_run = take->wait_run,
                             .then_run = take->then_run,
                             .of_run = take->of_run};
    if (change->repeated && json_parse(exchange_arena(x), change->body, &answer, NULL) == OK) {
        open.wait_run = open.then_run = STR_EMPTY;
        open.of_run = json_text(json_get(answer, STR("runId")));
        open.thread_id = json_text(json_get(answer, STR("threadId")));
        if (take->own_run_id) open.run_id = open.of_run;
    }
    return feeds_agui(x->server->feeds, change->thread, x->who.user, &open);
}

/* A client cannot rewrite history; that it tried, or gave one id twice, is said once for a request. */
static void log_changed(const struct take_input *take)
{
    if (!take->changed_count) return;
    log_info("run.message_ignored", LOG_STR("thread", take->thread_id),
             LOG_STR("message", take->changed_id),
             LOG_CSTR("reason", "its id is known, with another content"),
             LOG_U64("count", take->changed_count));
}

static void on_taken(struct change *change)
{
    struct post_run *post = (struct post_run *)(void *)change;
    log_changed(&post->take);
    if (post->take.stream && change->status < 400) post->reader = open_reader(post);
    thread_change_tell(change);
    /* of messages that were known */
    inline_files_drop(&post->take.files, change->x->server->blobs);
}

/* After ERR_IO nobody knows what the store has; the next start does, and the sweeper looks. */
static void on_undone(struct change *change, enum err e)
{
    struct post_run *post = (struct post_run *)(void *)change;
    struct inline_files *files = &post->take.files;
    log_changed(&post->take);
    for (size_t i = 0; i < files->count; i++) files->files[i].used = e == ERR_IO;
    inline_files_drop(files, change->x->server->blobs);
}

static void respond_stream(struct change *change)
{
    struct post_run *post = (struct post_run *)(void *)change;
    if (!post->reader) post->reader = open_reader(post); /* a repetition has told nothing */
    feeds_agui_answer(post->reader, change->x);
}

/* ---- files ---- */

/* The files are put: now the messages. */
static void on_files(void *arg, enum err e, const struct fault *why)
{
    struct post_run *post = arg;
    struct exchange *x = post->take.tc.change.x;
    if (e)
        exchange_error(x, e, why && why->field[0] ? why : NULL); /* paths of ours stay here */
    else
        change_start(&post->take.tc.change, x);
}

/* A slot for each part whose bytes came along; the part is told where its row will be. */
static void collect_files(struct take_input *take, struct exchange *x)
{
    struct inline_files *files = &take->files;
    files->bytes_max = x->server->config->upload_bytes_max;
    files->files = arena_array(exchange_arena(x), take->input.data_count + 1, sizeof *files->files);
    for (size_t i = 0; i < take->input.message_count; i++) {
        const struct parts *parts = &take->input.parts[i];
        for (size_t j = 0; j < parts->count; j++) {
            struct part *part = &parts->rows[j];
            if (part->kind != PART_DATA) continue;
            struct inline_file *file = &files->files[files->count++];
            part_path(parts, j, file->field);
            file->base64 = part->data;
            file->row = (struct attachment){.owner = x->who.user,
                                            .thread_id = take->thread_id,
                                            .filename = part->filename,
                                            .created = clock_wall(&clock_system)};
            part->stored = &file->row;
        }
    }
}

/* ---- the request ---- */

/* The agents that the run may get: the one that is named, else all of them. */
static enum err find_agents(struct take_input *take, struct exchange *x, str path,
                            struct fault *reterr)
{
    const struct agents *agents = x->server->agents;
    str body = take->input.agent, named = path.len ? path : body;
    if (path.len && body.len && !str_eq(path, body))
        return fault_field(reterr, ERR_INVALID_FIELD, "agent",
                           "the address names the agent \"%s\", and this another", say(path).text);
    if (!named.len) {
        take->agents = agents_briefs(agents, exchange_arena(x));
        return OK;
    }
    const struct agent *agent = agents_find(agents, named);
    if (!agent)
        return fault_field(reterr, ERR_INVALID_FIELD, "agent", "there is no agent \"%s\"",
                           say(named).text);
    struct agent_brief *brief = ARENA_NEW(exchange_arena(x), struct agent_brief);
    *brief = agent_brief(agent);
    take->agents = (struct agent_briefs){brief, 1};
    return OK;
}

static enum err parse(struct take_input *take, struct exchange *x, str agent, struct fault *reterr)
{
    const struct url *public_url = &x->server->config->public_url;
    const struct parts_home home = {
        .origin = public_url->origin, .prefix = public_url->prefix, .host = x->request->head->host};
    enum err e = run_input_parse(exchange_arena(x), x->body, &home, &take->input, reterr);
    return e ? e : find_agents(take, x, agent, reterr);
}

/* Tools of the client that are not offered: said once for a request, with the first of them. */
static void log_refused(const struct front_refusals *refused, str thread_id)
{
    if (!refused->count) return;
    log_info("run.tools_refused", LOG_STR("thread", thread_id),
             LOG_CSTR("name", say(refused->rows[0].name).text),
             LOG_CSTR("reason", refused->rows[0].why),
             LOG_U64("count", refused->count + refused->more));
}

static void prepare_leg(struct take_input *take, struct exchange *x)
{
    struct front_refusals refused = {0};
    struct start_run *start = &take->start;
    take->leg.input = take->input.leg;
    front_read(exchange_arena(x), x->body, x->server->saver.tools, &take->leg, &refused);
    log_refused(&refused, take->thread_id);
    start_run_init(start, x);
    start->run_id = take->run_id;
    start->input = take->leg.input;
    start->tools = take->leg.tools;
    start->context = take->leg.context;
    start->timezone = timezone_of(json_get(x->body, STR("forwardedProps")));
}

static struct settle settle_by(struct take_input *take, const struct exchange *x, str via)
{
    struct settle settle = {
        .saver = &x->server->saver, .user = x->who.user, .roles = x->who.roles, .via = via};
    /* A request that says nothing of tools and state leaves them as they were. */
    if (!str_eq(take->leg.input, STR("{}"))) settle.leg = &take->leg;
    if (take->stream || !take->own_run_id) settle.wire_run_id = take->run_id;
    for (size_t i = 0; i < HASH_BYTES; i++) settle.hash[i] = take->hash[i];
    crypto_random(settle.random, sizeof settle.random);
    return settle;
}

static void prepare(struct take_input *take, struct exchange *x)
{
    struct arena *arena = exchange_arena(x);
    struct change *change = &take->tc.change;
    take->own_run_id = !take->input.run_id.len;
    take->thread_id = take->input.thread_id.len ? take->input.thread_id : new_id(arena, "thr_");
    take->run_id = take->own_run_id ? new_id(arena, "run_") : take->input.run_id;
    crypto_sha256(x->request->body, take->hash);
    prepare_leg(take, x);
    take->settle = settle_by(take, x, STR("ag-ui"));
    take->plain.settle = settle_by(take, x, x->via.len ? x->via : STR("message"));
    take->plain.behind = x->behind;
    take->plain.reply_to = x->reply_to;
    take->plain.reply = x->reply;
    change->x = x;
    change->apply = take_input;
    change->after = on_taken;
    change->undone = on_undone;
    if (take->stream) change->respond = respond_stream;
}

void post_run(struct exchange *x, str agent, bool stream)
{
    struct post_run *post = ARENA_NEW(exchange_arena(x), struct post_run);
    struct take_input *take = &post->take;
    struct fault why = {0};
    take->stream = stream;
    enum err e = parse(take, x, agent, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    prepare(take, x);
    collect_files(take, x);
    if (take->files.count)
        inline_files_put(&take->files,
                         &(struct inline_target){.loop = x->server->loop,
                                                 .blobs = x->server->blobs,
                                                 .transfers = &x->server->transfers,
                                                 .arena = exchange_arena(x)},
                         on_files, post);
    else
        change_start(&take->tc.change, x);
}

void handle_run_post(struct exchange *x)
{
    static const char *const types[] = {"text/event-stream", NULL};
    post_run(x, STR_EMPTY, query_accepts(x, types));
}

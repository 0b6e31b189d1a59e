/* SPDX-License-Identifier: Apache-2.0
 *
 * A message posted to a thread, from whichever way: files first, then one commit.
 */
#include "thread/post_message.h"

#include "agent/core/front.h"
#include "agent/shell/begin.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/say.h"
#include "server/server.h"

static struct post_message *post_of(struct change *change)
{
    return (struct post_message *)(void *)change;
}

struct parts_home post_message_home(const struct server *server, str host)
{
    const struct url *url = &server->config->public_url;
    return (struct parts_home){.origin = url->origin, .prefix = url->prefix, .host = host};
}

/* ---- after the job ---- */

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
    struct post_message *post = post_of(change);
    log_changed(&post->take);
    if (post->taken) post->taken(post);
    thread_change_tell(change);
    /* of messages that were known */
    inline_files_drop(&post->take.files, change->by.server->blobs);
}

/* After ERR_IO nobody knows what the store has; the next start does, and the sweeper looks. */
static void on_undone(struct change *change, enum err e)
{
    struct inline_files *files = &post_of(change)->take.files;
    log_changed(&post_of(change)->take);
    for (size_t i = 0; i < files->count; i++) files->files[i].used = e == ERR_IO;
    inline_files_drop(files, change->by.server->blobs);
}

/* ---- files ---- */

/* The files are put: now the messages. */
static void on_files(void *arg, enum err e, const struct fault *why)
{
    struct change *change = arg;
    if (e && why && why->field[0]) change->why = *why; /* paths of ours stay here */
    if (e)
        change->answer(change, e);
    else
        change_go(change);
}

/* A slot for each part whose bytes came along; the part is told where its row will be. */
static void collect_files(struct take_input *take)
{
    const struct asker *by = &take->tc.change.by;
    struct inline_files *files = &take->files;
    files->bytes_max = by->server->config->upload_bytes_max;
    files->files = arena_array(by->arena, take->input.data_count + 1, sizeof *files->files);
    for (size_t i = 0; i < take->input.message_count; i++) {
        const struct parts *parts = &take->input.parts[i];
        for (size_t j = 0; j < parts->count; j++) {
            struct part *part = &parts->rows[j];
            if (part->kind != PART_DATA) continue;
            struct inline_file *file = &files->files[files->count++];
            part_path(parts, j, file->field);
            file->data = part->data;
            file->decoded = part->decoded;
            file->row = (struct attachment){.owner = by->who.user,
                                            .thread_id = take->thread_id,
                                            .filename = part->filename,
                                            .created = clock_wall(&clock_system)};
            part->stored = &file->row;
        }
    }
}

/* ---- before it ---- */

/* A user who has as many runs at work as one may waits for an end of one. */
static enum err room_for_run(const struct asker *by, struct fault *reterr)
{
    const struct server *server = by->server;
    if (!auth_required(server->auth) || runs_of(server->runs, by->who.user) < RUNS_USER_MAX)
        return OK;
    return fault(reterr, ERR_RATE_LIMITED,
                 "%d of your runs are at work, as many as may be; try later", RUNS_USER_MAX);
}

/* The agents that the run may get: the one that is named, else all of them. */
static enum err find_agents(struct take_input *take, str path, struct fault *reterr)
{
    const struct asker *by = &take->tc.change.by;
    const struct agents *agents = by->server->agents;
    str body = take->input.agent, named = path.len ? path : body;
    if (path.len && body.len && !str_eq(path, body))
        return fault_field(reterr, ERR_INVALID_FIELD, "agent",
                           "the address names the agent \"%s\", and this another", say(path).text);
    if (!named.len) {
        take->agents = agents_briefs(agents, by->arena);
        return OK;
    }
    const struct agent *agent = agents_find(agents, named);
    if (!agent)
        return fault_field(reterr, ERR_INVALID_FIELD, "agent", "there is no agent \"%s\"",
                           say(named).text);
    struct agent_brief *brief = ARENA_NEW(by->arena, struct agent_brief);
    *brief = agent_brief(agent);
    take->agents = (struct agent_briefs){brief, 1};
    return OK;
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

static void prepare_leg(struct take_input *take, const struct json *body)
{
    const struct asker *by = &take->tc.change.by;
    struct front_refusals refused = {0};
    struct start_run *start = &take->start;
    take->leg.input = take->input.leg;
    front_read(by->arena, body, by->server->saver.tools, &take->leg, &refused);
    log_refused(&refused, take->thread_id);
    start_run_init(start, by);
    start->run_id = take->run_id;
    start->input = take->leg.input;
    start->tools = take->leg.tools;
    start->context = take->leg.context;
    start->timezone = timezone_of(json_get(body, STR("forwardedProps")));
}

static struct settle settle_of(struct take_input *take, str via)
{
    struct settle settle = settle_by(&take->tc.change.by, via);
    /* A request that says nothing of tools and state leaves them as they were. */
    if (!str_eq(take->leg.input, STR("{}"))) settle.leg = &take->leg;
    if (take->stream || !take->own_run_id) settle.wire_run_id = take->run_id;
    for (size_t i = 0; i < HASH_BYTES; i++) settle.hash[i] = take->hash[i];
    return settle;
}

static void prepare(struct post_message *post)
{
    struct take_input *take = &post->take;
    struct change *change = &take->tc.change;
    struct arena *arena = change_arena(change);
    take->own_run_id = !take->input.run_id.len;
    take->thread_id = take->input.thread_id.len ? take->input.thread_id : new_id(arena, "thr_");
    take->run_id = take->own_run_id ? new_id(arena, "run_") : take->input.run_id;
    crypto_sha256(post->sent, take->hash);
    prepare_leg(take, post->body);
    take->settle = settle_of(take, STR("ag-ui"));
    take->plain.settle = settle_of(take, post->via.len ? post->via : STR("message"));
    change->apply = take_input;
    change->after = on_taken;
    change->undone = on_undone;
}

void post_message(struct post_message *post)
{
    struct take_input *take = &post->take;
    struct change *change = &take->tc.change;
    struct server *server = change->by.server;
    struct fault *why = &change->why;
    enum err e = take->stream ? pool_room(server, POOL_STREAMS, change->by.who.user, why) : OK;
    if (!e) e = room_for_run(&change->by, why);
    if (!e) e = post->wrong;
    if (!e) e = find_agents(take, post->agent, why);
    if (e) {
        change->answer(change, e);
        return;
    }
    prepare(post);
    collect_files(take);
    if (!take->files.count) {
        change_go(change);
        return;
    }
    struct inline_target target = {.loop = server->loop,
                                   .blobs = server->blobs,
                                   .transfers = &server->transfers,
                                   .arena = change_arena(change)};
    inline_files_put(&take->files, &target, on_files, change);
}

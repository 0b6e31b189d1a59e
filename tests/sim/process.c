/* SPDX-License-Identifier: Apache-2.0
 *
 * The process: the shell of the agent as it is (agent/shell), started on fakes, and thrown away.
 *
 * What it does is seen in three places, and nowhere is it asked what it thinks:
 *
 *   graph_step and outcome_save, which the linker leads through here: every step with its view, its
 *       input and what it returned, by the shell or inside a person's job;
 *   the commit of a write, before and behind it: the rows must say what the step said (check.c);
 *   the bus: facts must be told in their order, each once, and as they are stored.
 *
 * A step of the shell waits for its commit, of which there is one at a time; a step that was taken
 * inside a job is that job's. Whatever else is committed has no step: the start of a run, a cancel.
 *
 * When the process dies, its jobs end without being done, and its objects are freed. Nobody but the
 * tools that it had called can tell that from a process that was killed.
 */
#include <string.h>

#include "base/limits.h"
#include "duty/trail.h"
#include "sim.h"
#include "store/db/sqlite.h"

static struct sim *living; /* for what the linker leads here */

/* ---- seen on the way ---- */

void __real_graph_step(struct arena *arena, const struct view *view, const struct input *input,
                       struct outcome *ret_outcome);
void __wrap_graph_step(struct arena *arena, const struct view *view, const struct input *input,
                       struct outcome *ret_outcome);
enum err __real_outcome_save(struct db *db, struct arena *arena, const struct saver *saver,
                             struct run *run, int64_t version, struct outcome *outcome, msec now);
enum err __wrap_outcome_save(struct db *db, struct arena *arena, const struct saver *saver,
                             struct run *run, int64_t version, struct outcome *outcome, msec now);
void __wrap_crypto_random(void *out, size_t len);
void __wrap_crypto_nonce(void *out, size_t len);

/* A person's job has its view and its resolutions on its stack. */
void __wrap_graph_step(struct arena *arena, const struct view *view, const struct input *input,
                       struct outcome *ret_outcome)
{
    __real_graph_step(arena, view, input, ret_outcome);
    if (living->probing) return;
    struct process *process = &living->process;
    struct step *step = process->in_job ? &process->inside : &process->taken;
    arena_reset(&step->arena);
    step->there = true;
    step->view = *view;
    step->input = *input;
    step->outcome = ret_outcome;
    step->offers = NULL;
    memcpy(step->settings, living->house.settings, sizeof step->settings);
    size_t count = input->resolution_count;
    struct resolution *copies = arena_array(&step->arena, count + 1, sizeof *copies);
    for (size_t i = 0; i < count; i++) copies[i] = input->resolutions[i];
    step->input.resolutions = copies;
    if (!input->asked) return;
    struct tool_asked *asked = ARENA_NEW(&step->arena, struct tool_asked);
    *asked = *input->asked;
    step->input.asked = asked;
}

/* By the shell; what save.c calls itself does not come by here. */
enum err __wrap_outcome_save(struct db *db, struct arena *arena, const struct saver *saver,
                             struct run *run, int64_t version, struct outcome *outcome, msec now)
{
    enum err e = __real_outcome_save(db, arena, saver, run, version, outcome, now);
    struct process *process = &living->process;
    process->saves = !e;
    if (process->saves && (!process->taken.there || process->taken.outcome != outcome))
        broken(living, "something is saved that is no step");
    return e;
}

void __wrap_crypto_random(void *out, size_t len)
{
    unsigned char bytes[ID_RANDOM_BYTES];
    for (size_t at = 0; at < len; at += sizeof bytes) {
        random_bytes(&living->random, bytes);
        memcpy((char *)out + at, bytes, len - at < sizeof bytes ? len - at : sizeof bytes);
    }
}

void __wrap_crypto_nonce(void *out, size_t len)
{
    __wrap_crypto_random(out, len);
}

/* Nobody here is a stranger. */
void trail_stranger(struct trail *trail, const struct stranger *stranger)
{
    (void)trail, (void)stranger;
    broken(living, "somebody may not see what they answer");
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct sim *sim = arg;
    for (size_t i = 0; i < count; i++) {
        int64_t seq = facts[i].seq;
        if (seq != ++sim->process.told)
            broken(sim, "%s is told as fact %lld, and %lld is next", facts[i].type, (long long)seq,
                   (long long)sim->process.told);
        else if (seq > (int64_t)sim->world.fact_count ||
                 !str_eq(facts[i].data, sim->world.facts[seq - 1].data))
            broken(sim, "%s is told, and is not stored so", facts[i].type);
    }
}

static void on_preview(void *arg, const struct preview *preview)
{
    struct sim *sim = arg;
    if (!preview->run_id.len || !str_eq(preview->run_id, sim->world.run.run_id))
        broken(sim, "a preview of another run");
}

/* ---- commits ---- */

static const char *const kinds[] = {
    [INPUT_TURN] = "turn",       [INPUT_DOWN] = "down",       [INPUT_CANCEL] = "cancel",
    [INPUT_RESOLVE] = "resolve", [INPUT_START] = "start",     [INPUT_RESULT] = "result",
    [INPUT_LOST] = "lost",       [INPUT_SHOW] = "show",       [INPUT_OVERDUE] = "overdue",
    [INPUT_ALONE] = "alone",     [INPUT_DAMAGED] = "damaged", [INPUT_ASKED] = "asked",
    [INPUT_AWAY] = "away",
};

static bool planned(const struct sim *sim, enum side side)
{
    return sim->commits == sim->scenario.crash_at && side == sim->scenario.side;
}

/* The step that the job which runs now has saved; NULL: it saved none. */
static struct step *saved_step(struct process *process)
{
    if (process->inside.there) return &process->inside;
    return process->saves ? &process->taken : NULL;
}

/* A run has begun, whoever began it: rows and facts are all there is to see of it. */
static void begun(struct sim *sim, size_t from)
{
    struct world *world = &sim->world;
    sim->log = (struct log){.step = -1};
    sim->run_number++;
    sim->events = 0;
    sim->press_tool = sim->next.press_tool;
    sim->press_args = sim->next.press_args;
    world->offers = sim->next.offers;
    trail_begin(sim);
    size_t messages = 0;
    while (messages < world->message_count &&
           world->messages[world->message_count - 1 - messages].seq > (int64_t)from)
        messages++;
    struct message *rows = arena_array(&sim->scratch, messages, sizeof *rows);
    for (size_t i = 0; i < messages; i++) {
        rows[i] = world->messages[world->message_count - messages + i];
        rows[i].seq -= (int64_t)from;
    }
    struct outcome o = {.state = world->state,
                        .facts = &world->facts[from],
                        .fact_count = world->fact_count - from,
                        .messages = rows,
                        .message_count = messages,
                        .status = world->run.status,
                        .leg_begins = true};
    check_outcome(sim, NULL, NULL, &o, sim->house.settings);
    check_stored(sim, NULL, &o);
}

static bool starts_run(const struct world *world, size_t from)
{
    for (size_t i = from; i < world->fact_count; i++)
        if (!strcmp(world->facts[i].type, FACT_RUN_STARTED)) return true;
    return false;
}

/* What may be told of without a step: a message that waits its turn. */
static void without_step(struct sim *sim, size_t from)
{
    const struct world *world = &sim->world;
    if (starts_run(world, from)) {
        begun(sim, from);
        return;
    }
    for (size_t i = from; i < world->fact_count; i++)
        if (strcmp(world->facts[i].type, "run.queued") != 0)
            broken(sim, "%s without a step", world->facts[i].type);
}

static void committed(struct sim *sim)
{
    struct step *step = saved_step(&sim->process);
    size_t from = sim->world.fact_count;
    arena_reset(&sim->scratch);
    if (step) {
        trace(sim, "commit %u: %s, %s", sim->commits, kinds[step->input.kind],
              run_status_name(step->outcome->status));
        sim->coverage->steps++;
        check_outcome(sim, &step->view, &step->input, step->outcome, step->settings);
    } else {
        trace(sim, "commit %u", sim->commits);
    }
    world_load(sim);
    if (!step) {
        without_step(sim, from);
        return;
    }
    step->there = false;
    if (step->offers) sim->world.offers = step->offers->offers;
    check_saved(sim, step->outcome);
    trail_stored(sim, &step->input, step->outcome);
    check_stored(sim, &step->input, step->outcome);
}

bool process_commit(struct sim *sim, enum side side)
{
    const struct step *step = saved_step(&sim->process);
    if (side == BEFORE) sim->commits++;
    if (side == BEHIND) committed(sim);
    if (!planned(sim, side)) return false;
    if (side == BEFORE && step)
        trail_lost(sim, &step->input, step->outcome);
    else
        trail_died(sim);
    process_die(sim);
    return true;
}

/* ---- life and death ---- */

static const struct agent *agent_of(void *arg, str name)
{
    struct sim *sim = arg;
    if (!str_eq(name, sim->house.agent.name)) broken(sim, "a run of another agent");
    return &sim->house.agent;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void on_trouble(void *arg, str thread_id, str run_id, const char *what, enum err e)
{
    (void)thread_id;
    trace(arg, "trouble in %.*s: %s, %s", STR_ARG(run_id), what, err_title(e));
}

static enum err look(str bytes, str filename, struct file_seen *ret_seen)
{
    (void)bytes, (void)filename;
    *ret_seen = (struct file_seen){.mime = "image/png", .filename = "a.png", .width = 1};
    return OK;
}

static msec now_of(void *ctx)
{
    return *(const msec *)ctx;
}

static void process_start(struct sim *sim)
{
    enum { LEASE_MS = 1000 };
    static const struct bus_ops reader = {.on_facts = on_facts, .on_preview = on_preview};
    struct process *process = &sim->process;
    process->number++;
    process->alive = true;
    bool unknown = false;
    char holder[32];
    int len = snprintf(holder, sizeof holder, "process %u", process->number);
    enum err e = db_begin(sim->db);
    if (!e) /* whoever had it is gone, and its time is over */
        e = lease_take(sim->db, STR("runs"), (str){holder, (size_t)len}, sim->now, sim->now,
                       &sim->saver.epoch);
    if (!e) e = db_commit(sim->db, &unknown);
    if (e) broken(sim, "no lease: %s", err_title(e));
    process->bus = bus_local_new();
    process->reader = (struct bus_follower){.ops = &reader, .arg = sim};
    bus_follow(process->bus, sim->world.thread, &process->reader);
    process->told = (int64_t)sim->world.fact_count;
    process->runs = runs_new(&(struct runs_options){.loop = sim->loop,
                                                    .store = sim->store,
                                                    .bus = process->bus,
                                                    .clock = &sim->clock,
                                                    .agent = agent_of,
                                                    .saver = &sim->saver,
                                                    .blobs = sim->blobs,
                                                    .look = look,
                                                    .retry_ms = 4,
                                                    .history_facts = SIM_HISTORY_FACTS,
                                                    .on_news = nothing,
                                                    .on_waiting = nothing,
                                                    .on_trouble = on_trouble,
                                                    .arg = sim});
}

void process_init(struct sim *sim)
{
    living = sim;
    sim->clock = (struct clock){.wall = now_of, .steady = now_of, .ctx = &sim->now};
    sim->loop = loop_fake(&sim->now);
    sim->store = store_fake(sim);
    sim->blobs = blobs_fake(sim);
    arena_init(&sim->process.taken.arena);
    arena_init(&sim->process.inside.arena);
    process_start(sim);
}

/* Its jobs end undone; then nobody holds its objects any more. */
static void throw_away(struct sim *sim)
{
    struct process *process = &sim->process;
    if (!process->alive) return;
    process->dying = true;
    store_fake_drop(sim->store);
    runs_free(process->runs);
    while (loop_fake_work(sim->loop)) continue;
    bus_unfollow(process->bus, &process->reader);
    bus_free(process->bus);
    blobs_fake_drop(sim->blobs);
    process->taken.there = process->inside.there = false;
    process->in_job = process->saves = process->alone = false;
    process->alive = process->dying = process->stopping = process->drained = false;
    process->speech = (struct speech){0};
}

void process_done(struct sim *sim)
{
    throw_away(sim);
    blobs_fake_free(sim->blobs);
    store_fake_free(sim->store);
    loop_fake_free(sim->loop);
    arena_done(&sim->process.taken.arena);
    arena_done(&sim->process.inside.arena);
}

void process_die(struct sim *sim)
{
    trace(sim, "the process dies");
    sim->coverage->crashes++;
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        struct deed *deed = call->state == CALL_STARTED ? deed_of(sim, call->call_id) : NULL;
        if (!deed) continue;
        deed->doubt = true;
        deed->flown_lost = false;
    }
    air_crash(sim);
    throw_away(sim);
    world_crash(sim);
}

/* ---- an end in order ---- */

static void on_drained(void *arg)
{
    struct sim *sim = arg;
    sim->process.drained = true;
}

void process_stop(struct sim *sim)
{
    trace(sim, "the process is told to end");
    sim->process.stopping = true;
    sim->process.stop_at = sim->now + SHUTDOWN_MS_MAX;
    runs_stop(sim->process.runs, on_drained, sim);
}

/* The store does what waits before it is closed. Then nothing that came back may be lost, unless it took
 * longer than anybody waits. */
void process_stop_event(struct sim *sim)
{
    struct process *process = &sim->process;
    msec next = loop_fake_next(sim->loop);
    if (!process->drained) {
        bool tools = one_in(&sim->chance, 2) && air_event(sim);
        if (tools || process_event(sim) || air_event(sim)) return;
        if (!process->drained && !next && !process->air_count)
            broken(sim, "the process does not end");
        sim->now = next > sim->now ? next : sim->now;
        return;
    }
    if (store_fake_event(sim->store)) return;
    bool late = sim->now >= process->stop_at;
    for (size_t i = 0; !late && i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        const struct deed *deed = call->state == CALL_STARTED ? deed_of(sim, call->call_id) : NULL;
        if (deed && deed->landed && deed->left_in == process->number && !sim->world.damaged)
            broken(sim, "%.*s has come back and is forgotten", STR_ARG(call->call_id));
    }
    trail_died(sim);
    process_die(sim);
}

void process_come_back(struct sim *sim)
{
    trace(sim, "the process comes back");
    if (!sim->calm && one_in(&sim->chance, sim->mood.restyle)) house_restyle(sim);
    process_start(sim);
    runs_recover(sim->process.runs);
}

/* ---- events ---- */

bool process_busy(const struct sim *sim)
{
    return store_fake_busy(sim->store) || sim->process.speech.sink || loop_fake_busy(sim->loop) ||
           blobs_fake_busy(sim->blobs);
}

/* What comes first is up to chance, but for timers that are due. */
bool process_event(struct sim *sim)
{
    if (loop_fake_due(sim->loop)) return true;
    unsigned first = below(&sim->chance, 4);
    for (unsigned i = 0; i < 4; i++) {
        unsigned who = (first + i) % 4;
        bool acted = who == 0   ? store_fake_event(sim->store)
                     : who == 1 ? model_event(sim)
                     : who == 2 ? blobs_fake_event(sim->blobs)
                                : loop_fake_work(sim->loop);
        if (acted) return true;
    }
    return false;
}

/* Nothing is under way but what waits for people, for tools, or for a time. */
void process_idle(struct sim *sim)
{
    const struct process *process = &sim->process;
    msec next = loop_fake_next(sim->loop);
    if (process->told != (int64_t)sim->world.fact_count)
        broken(sim, "%zu facts are stored, %lld are told", sim->world.fact_count,
               (long long)process->told);
    if (next) { /* a commit may have been put off */
        sim->now = next > sim->now ? next : sim->now;
        return;
    }
    for (size_t i = 0; i < process->air_count; i++) asking_stalled(sim, process->air[i]);
    if (process->air_count) return;
    if (runs_active(process->runs)) broken(sim, "somebody works on the run, and on nothing");
    if (world_unfinished(sim))
        broken(sim, "the run is %s and nobody works on it", run_status_name(sim->world.run.status));
}

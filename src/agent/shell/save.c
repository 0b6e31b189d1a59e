/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows to view, outcome to rows; and the steps that are taken for an answer, a cancel, the clock.
 *
 * The snapshot's version guards all of a run's rows: whoever saves an outcome replaces the version
 * it has read, and whoever changes something else that a run depends on lets it grow
 * (snapshot_touch). So of two steps taken from the same rows one is saved, and the other is taken
 * again from the new ones.
 */
#include "agent/shell/save.h"

#include "agent/core/front.h"
#include "agent/core/texts.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/table/interactions.h"
#include "store/table/outbox.h"

/* ---- loading ---- */

/* Every open interaction that the state names has its row, and no other has. A call that waits for
 * the client has none. */
static bool rows_agree(const struct view *view)
{
    const struct id_list *ids = &view->state.interaction_ids;
    if (ids->count != view->open.count) return false;
    for (size_t i = 0; i < ids->count; i++) {
        bool found = false;
        for (size_t j = 0; j < view->open.count; j++)
            found = found || str_eq(ids->ids[i], view->open.rows[j].id);
        if (!found) return false;
    }
    return true;
}

static enum err load_rows(struct db *db, struct arena *arena, const struct run *run, str owner,
                          struct view *view)
{
    const struct state *state = &view->state;
    enum err e = OK;
    if (state->round_used) e = calls_of_round(db, arena, run->id, state->round_used, &view->calls);
    if (!e && state->interaction_ids.count)
        e = interactions_of_run(db, arena, run->thread, run->id, &view->open);
    if (!e) e = grants_of_thread(db, arena, owner, run->thread, &view->grants);
    if (e || !run->input_bytes) return e;
    struct leg_input offer;
    e = run_offer(db, arena, run->id, &offer);
    if (!e) view->context = offer.context;
    return e ? e : front_tools_load(arena, offer.tools, &view->front);
}

enum err view_load(struct db *db, struct arena *arena, const struct run *run, str owner,
                   struct view *ret_view, int64_t *ret_version, struct fault *why)
{
    struct view view = {.thread = run->thread,
                        .run = run->id,
                        .agent = run->agent,
                        .model = run->model,
                        .legs = run->legs,
                        .leg_open = run->status != RUN_WAITING,
                        .cancelling = run->status == RUN_CANCELLING};
    str bytes;
    int64_t version;
    enum err e = snapshot_load(db, arena, run->id, &version, &bytes);
    if (e == ERR_DAMAGED) return fault(why, e, "the stored state is damaged");
    if (e) return e;
    if (state_parse(arena, bytes, &view.state, why)) return ERR_DAMAGED;
    e = load_rows(db, arena, run, owner, &view);
    if (e == ERR_DAMAGED) return fault(why, e, "the stored calls or tools are damaged");
    if (e) return e;
    if (!rows_agree(&view))
        return fault(why, ERR_DAMAGED, "the stored state names interactions that are not there");
    *ret_view = view;
    *ret_version = version;
    return OK;
}

/* ---- saving ---- */

struct save {
    struct db *db;
    struct arena *arena;
    const struct saver *saver;
    struct run *run;
    struct outcome *outcome;
    msec now;
};

static int64_t fact_seq(const struct save *save, int64_t place)
{
    return save->outcome->facts[place - 1].seq;
}

static enum err save_messages(struct save *save)
{
    const struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->message_count; i++) {
        struct message message = o->messages[i];
        message.seq = fact_seq(save, message.seq);
        e = message_add(save->db, save->run->thread, &message);
    }
    return e;
}

static enum err save_calls(struct save *save)
{
    const struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->call_count; i++)
        e = o->calls[i].added ? call_add(save->db, &o->calls[i].call)
                              : call_update(save->db, &o->calls[i].call);
    return e;
}

/* {"id", "event", "at", "interaction"} */
static str news_json(struct save *save, const struct interaction *interaction,
                     const struct outgoing *outgoing)
{
    char at[RFC3339_BYTES];
    clock_rfc3339(save->now, at);
    AUTO(buf_done) struct buf buf;
    buf_init(&buf, HOOK_BODY_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &buf);
    json_object(&w);
    json_member(&w, STR("id"), outgoing->id);
    json_member(&w, STR("event"), outgoing->event);
    json_member(&w, STR("at"), str_c(at));
    json_key(&w, STR("interaction"));
    interaction_write(&w, interaction, true);
    json_object_end(&w);
    assert(!buf.full);
    return arena_str(save->arena, buf_str(&buf));
}

/* For every hook that wants it. The id is the same at every attempt. */
static enum err tell_hooks(struct save *save, const struct interaction *interaction)
{
    const struct saver *saver = save->saver;
    bool opened = interaction->status == INTERACTION_OPEN;
    bool lapsed =
        interaction->status == INTERACTION_SUPERSEDED; /* after it was resolved, perhaps */
    const char *word = opened ? "opened" : "resolved", *mark = lapsed ? "superseded" : word;
    struct outgoing outgoing = {.created = save->now, .next = save->now};
    enum err e = OK;
    for (size_t i = 0; !e && i < saver->hook_count; i++) {
        const struct hook *hook = &saver->hooks[i];
        if (opened ? !hook->opened : !hook->resolved) continue;
        if (!outgoing.body.len) {
            outgoing.id = arena_printf(save->arena, "evt_%.*s_%s", STR_ARG(interaction->id), mark);
            outgoing.event = arena_printf(save->arena, "interaction.%s", word);
            outgoing.body = news_json(save, interaction, &outgoing);
        }
        outgoing.url = hook->url;
        e = outbox_add(save->db, &outgoing);
    }
    return e;
}

/* An approval has lapsed: history and webhooks learn it; the new confirm is a fact of its own. */
static enum err save_superseded(struct save *save, str call_id)
{
    struct interaction old;
    enum err e = interaction_supersede(save->db, save->arena, save->run->thread, call_id, &old);
    if (!e)
        e = message_set_metadata(save->db, save->run->thread, old.id,
                                 interaction_metadata(save->arena, &old));
    return e ? e : tell_hooks(save, &old);
}

static enum err save_interactions(struct save *save)
{
    struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->settled_count; i++) {
        const struct interaction *settled = &o->settled[i];
        e = interaction_settle(save->db, settled);
        if (!e)
            e = message_set_metadata(save->db, save->run->thread, settled->id,
                                     interaction_metadata(save->arena, settled));
        if (!e) e = tell_hooks(save, settled);
    }
    for (size_t i = 0; !e && i < o->opened_count; i++) {
        struct interaction *opened = ARENA_NEW(save->arena, struct interaction);
        struct fact *fact = &o->facts[o->opened[i].seq - 1];
        *opened = o->opened[i];
        assert(!opened->expires); /* else the clockwork would have to be told */
        opened->seq = fact->seq;
        opened->asked_key = save->run->asked_key;
        fact->interaction = opened;
        e = interaction_add(save->db, opened);
        if (!e) e = tell_hooks(save, opened);
    }
    for (size_t i = 0; !e && i < o->superseded_count; i++)
        e = save_superseded(save, o->superseded[i]);
    return e;
}

static enum err save_blobs(struct save *save)
{
    const struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->blob_count; i++) {
        struct blob_row row = o->blobs[i];
        row.thread = save->run->thread;
        row.created = save->now;
        e = blob_row_add(save->db, &row);
    }
    return e;
}

static bool blobs_wait(const struct outcome *o)
{
    for (size_t i = 0; i < o->blob_count; i++)
        if (o->blobs[i].waiting) return true;
    return false;
}

static enum err save_files(struct save *save)
{
    const struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->file_count; i++) {
        struct attachment row = o->files[i];
        row.created = save->now;
        e = attachment_add(save->db, &row);
    }
    return e;
}

static enum err save_decisions(struct save *save)
{
    struct outcome *o = save->outcome;
    enum err e = OK;
    for (size_t i = 0; !e && i < o->grant_count; i++) {
        struct grant grant = o->grants[i];
        e = grant_add(save->db, &grant);
    }
    return e ? e
             : audit_add_all(save->db, save->saver->audit_key, save->run->thread, o->audit,
                             o->audit_count);
}

/* The row of the run, first: it says whether the rows that the step was taken from are still those of
 * the store. A terminal step removes the snapshot, any other replaces it; both only as the holder of
 * the lease. */
static enum err save_run(struct save *save, int64_t version)
{
    const struct outcome *o = save->outcome;
    struct run *run = save->run;
    run->status = o->status;
    run->input_tokens = o->state.input_tokens;
    run->output_tokens = o->state.output_tokens;
    run->cost = o->state.cost;
    run->currency = o->state.currency;
    run->from_message = o->state.from_message;
    run->ended = o->ended ? save->now : 0;
    if (o->leg_begins) {
        run->legs++;
        run->task_id = o->state.task_id;
    }
    AUTO(buf_done) struct buf bytes;
    struct snapshot next = {.epoch = save->saver->epoch};
    buf_init(&bytes, STATE_BYTES_MAX);
    if (!o->ended) {
        state_write(&bytes, &o->state);
        if (bytes.full) return ERR_TOO_LARGE;
        next.version = version + 1;
        next.bytes = buf_str(&bytes);
        crypto_sha256(next.bytes, next.hash);
    }
    enum err e = run_save(save->db, run, version, &next);
    if (e || !o->leg_begins || !o->wire_run_id.len) return e;
    return run_start_leg(save->db, run, o->wire_run_id, save->now);
}

/* What comes with the facts, beside them: history and objects. */
static size_t outcome_bytes(const struct outcome *o)
{
    size_t bytes = 0;
    for (size_t i = 0; i < o->message_count; i++) bytes += message_bytes(&o->messages[i]);
    for (size_t i = 0; i < o->blob_count; i++) bytes += o->blobs[i].size;
    return bytes;
}

enum err outcome_save(struct db *db, struct arena *arena, const struct saver *saver,
                      struct run *run, int64_t version, struct outcome *outcome, msec now)
{
    struct save save = {db, arena, saver, run, outcome, now};
    enum err e = save_run(&save, version);
    if (outcome->fact_count) outcome->facts[0].more = outcome_bytes(outcome);
    if (!e && outcome->fact_count)
        e = facts_append_leg(db, run->thread, outcome->facts, outcome->fact_count, now,
                             outcome->leg_begins ? run->id : 0);
    if (!e) e = save_messages(&save);
    if (!e) e = save_calls(&save);
    if (!e) e = save_interactions(&save);
    if (!e) e = save_blobs(&save);
    if (!e) e = save_files(&save);
    if (!e) e = save_decisions(&save);
    return e;
}

/* ---- a run that cannot go on ---- */

static void set_random(struct input *input, const unsigned char *random)
{
    for (size_t i = 0; i < ID_RANDOM_BYTES; i++) input->random[i] = random[i];
}

/* What the rows say of a run whose state is lost. */
static enum err view_rows(struct db *db, struct arena *arena, const struct run *run,
                          struct view *ret_view)
{
    struct thread thread;
    enum err e = thread_by_id(db, arena, run->thread, &thread);
    if (e) return e;
    struct view view = {.thread = run->thread,
                        .run = run->id,
                        .agent = run->agent,
                        .model = run->model,
                        .legs = run->legs,
                        .leg_open = run->status != RUN_WAITING,
                        .state = {.phase = PHASE_EXECUTING,
                                  .trace_id = run->run_id,
                                  .user_id = thread.owner,
                                  .conversation_id = thread.thread_id,
                                  .task_id = run->task_id,
                                  .locale = locale_of(thread.title),
                                  .input_tokens = run->input_tokens,
                                  .output_tokens = run->output_tokens,
                                  .cost = run->cost,
                                  .currency = run->currency,
                                  .from_message = run->from_message}};
    e = calls_unshown(db, arena, run->id, &view.calls);
    if (e == ERR_DAMAGED) e = OK; /* of them we know nothing */
    if (!e) e = interactions_of_run(db, arena, run->thread, run->id, &view.open);
    if (!e) *ret_view = view;
    return e;
}

/* They say enough to end it: no call is left without a word, and nobody with a question that
 * nothing will come of. Whoever comes second, with a row loaded before, finds nothing to end. */
enum err run_damaged(struct db *db, struct arena *arena, const struct saver *saver, struct run *run,
                     const char *why, msec now, const unsigned char random[static ID_RANDOM_BYTES],
                     struct stepped *ret_stepped)
{
    struct view view;
    struct outcome *outcome = ARENA_NEW(arena, struct outcome);
    struct input input = {.kind = INPUT_DAMAGED,
                          .now = now,
                          .binder = &saver->binder,
                          .tools = saver->tools,
                          .why_text = str_c(why)};
    set_random(&input, random);
    struct run current;
    enum err e = run_current(db, arena, run->thread, &current);
    if (e == ERR_NOT_FOUND || (!e && current.id != run->id)) return ERR_BUSY;
    if (e) return e;
    *run = current;
    e = view_rows(db, arena, run, &view);
    if (e) return e;
    graph_step(arena, &view, &input, outcome);
    e = outcome_save(db, arena, saver, run, -1, outcome, now);
    if (e) return e;
    *ret_stepped = (struct stepped){.thread = run->thread,
                                    .facts = outcome->facts,
                                    .fact_count = outcome->fact_count,
                                    .wake = true,
                                    .waiting = blobs_wait(outcome),
                                    .damaged = true};
    return OK;
}

/* ---- steps from outside the shell ---- */

static enum err step_here(struct db *db, struct arena *arena, const struct saver *saver,
                          struct run *run, str owner, struct input *input, str wire_run_id,
                          struct stepped *ret_stepped)
{
    struct view view;
    struct outcome *outcome = ARENA_NEW(arena, struct outcome);
    int64_t version;
    struct fault why = {0};
    enum err e = view_load(db, arena, run, owner, &view, &version, &why);
    if (e == ERR_DAMAGED || e == ERR_NOT_FOUND)
        return run_damaged(db, arena, saver, run,
                           why.text[0] ? why.text : "the stored state is missing", input->now,
                           input->random, ret_stepped);
    if (e) return e;
    input->binder = &saver->binder;
    input->tools = saver->tools;
    graph_step(arena, &view, input, outcome);
    outcome->wire_run_id = wire_run_id;
    e = outcome_save(db, arena, saver, run, version, outcome, input->now);
    if (e) return e;
    *ret_stepped = (struct stepped){.thread = run->thread,
                                    .facts = outcome->facts,
                                    .fact_count = outcome->fact_count,
                                    .wake = outcome->status != RUN_WAITING || outcome->ended,
                                    .waiting = blobs_wait(outcome)};
    return OK;
}

/* The members that the new input has, and of the others those that there were. */
static str merge_inputs(struct arena *arena, const struct json *before, const struct json *given)
{
    static const char *const names[] = {"state", "tools", "context", "forwardedProps"};
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, before->raw.len + given->raw.len + 64);
    json_object(&doc.w);
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct json *member = json_get(given, str_c(names[i]));
        if (!member) member = json_get(before, str_c(names[i]));
        if (!member) continue;
        json_member_raw(&doc.w, str_c(names[i]), member->raw);
    }
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* A request may say something of the leg and nothing of the rest, which stays as it was. Mostly it
 * says again what the one before it said. */
static enum err keep_rest(struct db *db, struct arena *arena, const struct run *run,
                          const struct leg_input *given, struct leg_input *ret_input,
                          bool *ret_same)
{
    *ret_same = false;
    struct leg_input before = {0};
    str input = STR_EMPTY;
    struct json *old = NULL, *new = NULL;
    *ret_input = *given;
    if (!run->input_bytes) return OK;
    enum err e = run_input(db, arena, run->id, &input);
    if (!e) e = run_offer(db, arena, run->id, &before);
    if (e) return e;
    if (json_parse(arena, input, &old, NULL) || json_parse(arena, given->input, &new, NULL))
        return OK; /* what is there cannot be read: the new one counts */
    ret_input->input = merge_inputs(arena, old, new);
    if (!json_get(new, STR("tools"))) ret_input->tools = before.tools;
    if (!json_get(new, STR("context"))) ret_input->context = before.context;
    *ret_same = str_eq(ret_input->input, input) && str_eq(ret_input->tools, before.tools) &&
                str_eq(ret_input->context, before.context);
    return OK;
}

enum err run_resolve(struct db *db, struct arena *arena, const struct saver *saver,
                     const struct resolve *resolve, struct stepped *ret_stepped)
{
    struct thread row;
    struct run run;
    enum err e = thread_by_id(db, arena, resolve->thread, &row);
    if (!e) e = run_current(db, arena, resolve->thread, &run);
    struct leg_input input_now;
    if (!e && resolve->input) {
        bool same;
        e = keep_rest(db, arena, &run, resolve->input, &input_now, &same);
        if (!e && !same) e = run_set_input(db, &run, &input_now);
    }
    if (e) return e;
    struct input input = {.kind = INPUT_RESOLVE,
                          .now = resolve->now,
                          .resolutions = resolve->resolutions,
                          .resolution_count = resolve->resolution_count,
                          .fronts = resolve->fronts,
                          .front_count = resolve->front_count};
    set_random(&input, resolve->random);
    return step_here(db, arena, saver, &run, row.owner, &input, resolve->wire_run_id, ret_stepped);
}

/* A run that is being cancelled waits for nobody. */
enum err front_pending(struct db *db, struct arena *arena, int64_t thread,
                       struct call_list *ret_calls)
{
    struct call_list calls = {0};
    struct run run;
    enum err e = run_current(db, arena, thread, &run);
    bool none = e == ERR_NOT_FOUND || (!e && run.status == RUN_CANCELLING);
    if (!none && !e) e = calls_unshown(db, arena, run.id, &calls);
    if (e && !none) return e;
    size_t count = 0;
    for (size_t i = 0; i < calls.count; i++)
        if (front_waits(&calls.rows[i])) calls.rows[count++] = calls.rows[i];
    calls.count = count;
    *ret_calls = calls;
    return OK;
}

enum err run_cancel(struct db *db, struct arena *arena, const struct saver *saver, int64_t thread,
                    struct run *run, msec now, const unsigned char random[static ID_RANDOM_BYTES],
                    struct stepped *ret_stepped)
{
    if (run->status != RUN_WAITING) {
        run->status = RUN_CANCELLING;
        enum err e = run_update(db, run);
        if (!e) e = snapshot_touch(db, run->id);
        if (!e) *ret_stepped = (struct stepped){.thread = thread};
        return e;
    }
    struct thread row;
    enum err e = thread_by_id(db, arena, thread, &row);
    if (e) return e;
    struct input input = {.kind = INPUT_CANCEL, .now = now};
    set_random(&input, random);
    return step_here(db, arena, saver, run, row.owner, &input, STR_EMPTY, ret_stepped);
}

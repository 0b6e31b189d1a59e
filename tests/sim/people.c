/* SPDX-License-Identifier: Apache-2.0
 *
 * People: they answer what is open, one at a time or several at once and in any order; they cancel
 * one question or the whole run, let times pass, take back a grant, and change the policy. And
 * somebody who writes into the database past us.
 *
 * An answer takes the way of thread/settle.c: still open, in time, about the same tool, and a body that
 * fits; then one commit. Wrong bodies are tried too, and have to be refused.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/shell/begin.h"
#include "agent/shell/loaded.h"
#include "base/limits.h"
#include "sim.h"
#include "store/db/sqlite.h"
#include "store/table/grants.h"
#include "store/table/keys.h"
#include "thread/settle.h"
#include "tool/tools.h"

/* ---- one commit of a person's ---- */

enum { AT_ONCE_MAX = 8 };

/* What somebody wants, as a job; the time and the randomness are of the moment they say it. */
struct wish {
    struct job job;
    struct sim *sim;
    struct arena arena;
    enum err (*apply)(struct wish *wish, struct db *db);
    msec now;
    unsigned char random[ID_RANDOM_BYTES];
    struct resolution said[AT_ONCE_MAX];
    size_t said_count;
    struct front_result done[AT_ONCE_MAX];
    size_t done_count;
    struct offer offer; /* of the request */
    bool offers;        /* it counts from now on */
    str id, body;       /* of an answer */
    struct beginning beginning;
    struct stepped stepped; /* to be told of */
    bool cancel;
    struct loaded *loaded; /* the rows behind it, if the run goes on */
};

static enum err apply_begin(struct wish *wish, struct db *db);

static enum err wish_run(struct job *job, struct db *db)
{
    struct wish *wish = (struct wish *)(void *)job;
    wish->stepped = (struct stepped){0};
    enum err e = wish->apply(wish, db);
    wish->sim->process.inside.offers = wish->offers ? &wish->offer : NULL;
    loaded_free(TAKE(wish->loaded));
    if (e || !wish->stepped.wake || wish->cancel || one_in(&wish->sim->chance, 3)) return e;
    wish->loaded = loaded_new(); /* thread_change_load */
    if (loaded_read(db, wish->sim->world.thread, SIM_HISTORY_FACTS, wish->loaded))
        loaded_free(TAKE(wish->loaded));
    return OK;
}

/* thread_change_tell of thread/thread_change.c. */
static void wish_done(struct job *job, enum err e)
{
    struct wish *wish = (struct wish *)(void *)job;
    struct process *process = &wish->sim->process;
    int64_t thread = wish->sim->world.thread;
    if (!e && !process->dying) {
        bus_facts(process->bus, thread, wish->stepped.facts, wish->stepped.fact_count);
        if (wish->cancel) runs_cancel(process->runs, thread);
        if (wish->stepped.wake) runs_go_on(process->runs, thread, TAKE(wish->loaded));
    }
    loaded_free(wish->loaded);
    if (wish->apply == apply_begin) wish->sim->begins = false;
    arena_done(&wish->arena);
    free(wish);
}

static struct wish *wish_new(struct sim *sim, enum err (*apply)(struct wish *wish, struct db *db))
{
    struct wish *wish = calloc(1, sizeof *wish);
    if (!wish) abort();
    wish->job = (struct job){.run = wish_run, .done = wish_done};
    wish->sim = sim;
    wish->apply = apply;
    wish->now = sim->now;
    arena_init(&wish->arena);
    random_bytes(&sim->chance, wish->random);
    return wish;
}

/* It may have come before what the shell wants to write, or behind it. */
static void wish_send(struct wish *wish)
{
    struct sim *sim = wish->sim;
    if (one_in(&sim->chance, 4))
        store_write(sim->store, &wish->job);
    else
        store_fake_ahead(sim->store, &wish->job);
}

/* thread/settle.c, for one answer. */
static enum err apply_answer(struct wish *wish, struct db *db)
{
    struct settle settle = {.saver = &wish->sim->saver,
                            .user = STR("local"),
                            .roles = ROLE_USER | ROLE_APPROVER,
                            .alone = true,
                            .via = STR("api"),
                            .now = wish->now};
    struct settlement settlement = {0};
    struct json *body = NULL;
    memcpy(settle.random, wish->random, sizeof settle.random);
    enum err e = wish->body.len ? json_parse(&wish->arena, wish->body, &body, NULL) : OK;
    if (!e && body)
        e = settle_answer(db, &wish->arena, &settle, wish->id, body, &settlement);
    else if (!e)
        e = settle_cancel(db, &wish->arena, &settle, wish->id, &settlement);
    wish->stepped = settlement.stepped;
    return e;
}

/* Several answers, and results of the client: as take_input.c and clockwork.c do it. A request whose
 * results nobody waits for any more changes nothing. */
static enum err apply_resolve(struct wish *wish, struct db *db)
{
    struct call_list waiting;
    enum err e = front_pending(db, &wish->arena, wish->sim->world.thread, &waiting);
    if (e) return e;
    wish->offers = wish->offers && waiting.count;
    struct resolve resolve = {.thread = wish->sim->world.thread,
                              .resolutions = wish->said,
                              .resolution_count = wish->said_count,
                              .fronts = wish->done,
                              .front_count = wish->done_count,
                              .input = wish->offers ? &wish->offer.input : NULL,
                              .now = wish->now};
    memcpy(resolve.random, wish->random, sizeof resolve.random);
    return run_resolve(db, &wish->arena, &wish->sim->saver, &resolve, &wish->stepped);
}

/* cancel_current of http/api_runs.c. */
static enum err apply_stop(struct wish *wish, struct db *db)
{
    struct run run;
    int64_t thread = wish->sim->world.thread;
    enum err e = run_current(db, &wish->arena, thread, &run);
    if (e) return e;
    wish->cancel = run.status == RUN_CANCELLING;
    if (wish->cancel) return OK; /* asked again */
    e = run_cancel(db, &wish->arena, &wish->sim->saver, thread, &run, wish->now, wish->random,
                   &wish->stepped);
    wish->cancel = run.status == RUN_CANCELLING;
    return e;
}

static enum err apply_revoke(struct wish *wish, struct db *db)
{
    struct grant grant;
    enum err e = grant_find(db, &wish->arena, wish->id, &grant);
    if (e) return e;
    return grant_revoke(db, &wish->arena, &grant,
                        &(struct grant_end){.audit_key = wish->sim->saver.audit_key,
                                            .who = STR("local"),
                                            .via = STR("api"),
                                            .why = STR("revoked"),
                                            .now = wish->now});
}

/* ---- a run begins ---- */

/* Some runs are buttons that were pressed: any tool, also one that is denied or gone by now, and
 * arguments that do not fit it any more. */
static void pick_press(struct sim *sim, struct beginning *beginning)
{
    enum { STREAM = 1000 * 1000 }; /* of chance: the rest of the life stays as it is */
    struct chance chance = chance_from(sim->scenario.seed, sim->run_number + 1, STREAM);
    if (sim->drill.on || !one_in(&chance, 6)) return;
    enum fake fake = (enum fake)below(&chance, FAKE_COUNT);
    beginning->press_args = keep(sim, fake_args(sim, &chance, fake, one_in(&chance, 6)));
    beginning->press_tool = one_in(&chance, 12) ? STR("nobody") : str_c(fake_name(fake));
}

/* start_run of thread/start_run.c: now, or behind the run that is there. */
static enum err apply_begin(struct wish *wish, struct db *db)
{
    struct sim *sim = wish->sim;
    struct arena *arena = &wish->arena;
    struct run current, run = {.thread = sim->world.thread,
                               .run_id = arena_printf(arena, "r%u", sim->run_number + 1),
                               .agent = sim->house.agent.name,
                               .model = STR("fake"),
                               .task_id = arena_printf(arena, "task_%u", sim->run_number + 1),
                               .input = wish->offer.input.input,
                               .tools = wish->offer.input.tools,
                               .context = wish->offer.input.context,
                               .created = wish->now};
    struct message message = {.id = arena_printf(arena, "u%u", sim->run_number + 1),
                              .role = STR("user"),
                              .run_id = run.run_id,
                              .content = STR("\"?\""),
                              .metadata = STR("{}"),
                              .plain = STR("?"),
                              .created = wish->now};
    enum err e = run_current(db, arena, sim->world.thread, &current);
    sim->next = wish->beginning;
    if (e && e != ERR_NOT_FOUND) return e;
    if (e) {
        struct begun begun;
        e = run_begin(db, arena,
                      &(struct begin){.max_rounds = sim->house.agent.max_rounds,
                                      .locale = sim->house.agent.locale,
                                      .press_tool = wish->beginning.press_tool,
                                      .press_args = wish->beginning.press_args,
                                      .epoch = sim->saver.epoch,
                                      .owner = STR("local"),
                                      .thread_id = STR("t1"),
                                      .now = wish->now},
                      &run, &message, 1, &begun);
        if (!e)
            wish->stepped = (struct stepped){
                .facts = begun.facts, .fact_count = begun.fact_count, .wake = true};
        return e;
    }
    AUTO(buf_done) struct buf queued;
    buf_init(&queued, 4096);
    queued_write(&queued, &message, 1);
    run.queued = arena_str(arena, buf_str(&queued));
    run.status = RUN_QUEUED;
    if (wish->beginning.press_tool.len)
        run.input = press_input(arena, wish->beginning.press_tool, wish->beginning.press_args);
    e = run_add(db, &run);
    if (!e) e = queued_id_add(db, &run, message.id);
    struct fact *fact = ARENA_NEW(arena, struct fact);
    *fact = (struct fact){
        .type = "run.queued", .run_id = run.run_id, .at = wish->now, .data = STR("{}")};
    if (!e) e = facts_append(db, run.thread, fact, 1, wish->now);
    wish->stepped = (struct stepped){.facts = fact, .fact_count = 1};
    return e;
}

void people_begin(struct sim *sim)
{
    struct wish *wish = wish_new(sim, apply_begin);
    pick_press(sim, &wish->beginning);
    if (!wish->beginning.press_tool.len) wish->offer = client_request(sim, &wish->arena);
    wish->beginning.offers = wish->offer.offers;
    sim->begins = true;
    trace(sim, "somebody %s", wish->beginning.press_tool.len ? "presses a button" : "writes");
    wish_send(wish);
}

/* ---- bodies ---- */

static const char *const right_tool_asks[] = {"{\"choices\":[\"c1\"]}", "{\"choices\":[\"c1\"]}",
                                              "{\"choices\":[\"c2\"]}",
                                              "{\"fields\":{\"who\":\"me\"}}",
                                              "{\"fields\":{\"who\":\"me\",\"n\":3}}"};
static const char *const right_asks[] = {"{\"answer\":\"1 h\"}", "{\"answer\":\"as you like\"}",
                                         "{\"choices\":[\"c1\"]}", "{\"fields\":{\"who\":\"me\"}}",
                                         "{\"choices\":[\"c2\"],\"text\":\"or so\"}"};
static const char *const wrong_asks[] = {"{\"answer\":\" \"}",
                                         "{\"choices\":[\"c9\"]}",
                                         "{\"decision\":\"approve\"}",
                                         "{}",
                                         "{\"answer\":\"x\",\"more\":1}",
                                         "{\"fields\":{\"n\":\"x\"}}"};
static const char *const wrong_confirms[] = {
    "{\"decision\":\"yes\"}",   "{\"approve\":true}",
    "{\"decision\":\"edit\"}",  "{\"decision\":\"edit\",\"args\":{\"x\":1}}",
    "{\"decision\":\"retry\"}", "{\"decision\":\"approve\",\"binding\":\"k1.wrong\"}",
    "{\"answer\":\"yes\"}"};

static str edit_body(struct sim *sim, const struct interaction *row)
{
    if (str_eq(row->tool, tool_submit_plan.name))
        return STR("{\"decision\":\"edit\",\"args\":{\"steps\":[{\"content\":\"another\"}]}}");
    bool text = str_find(row->args_schema, STR("\"n\":{\"type\":\"string\"}")) >= 0;
    const char *quote = text ? "\"" : "";
    return arena_printf(&sim->life, "{\"decision\":\"edit\",\"args\":{\"n\":%s%u%s}}", quote,
                        10 + below(&sim->chance, 3), quote);
}

/* Sometimes with the binding. */
static str approve_body(struct sim *sim, const struct interaction *row, bool for_always)
{
    struct chance *chance = &sim->chance;
    struct json *args = NULL;
    str binding = one_in(chance, 2)
                      ? arena_printf(&sim->life, ",\"binding\":\"%.*s\"", STR_ARG(row->binding))
                      : STR_EMPTY;
    str always = STR_EMPTY;
    if (for_always) {
        const struct json *n = NULL;
        if (!json_parse(&sim->life, row->args, &args, NULL)) n = json_get(args, STR("n"));
        str match = n && one_in(chance, 2)
                        ? arena_printf(&sim->life, ",\"match\":{\"n\":%.*s}", STR_ARG(n->raw))
                        : STR_EMPTY;
        always = arena_printf(&sim->life, ",\"always\":{\"scope\":\"%s\"%.*s}",
                              one_in(chance, 2) ? "thread" : "user", STR_ARG(match));
    }
    return arena_printf(&sim->life, "{\"decision\":\"approve\"%.*s%.*s}", STR_ARG(binding),
                        STR_ARG(always));
}

static str any(struct sim *sim, const char *const *bodies, size_t count)
{
    return str_c(bodies[below(&sim->chance, (unsigned)count)]);
}

/* What somebody sends who has decided so; empty: nothing is sent. */
static str body_of(struct sim *sim, const struct interaction *row, int decided)
{
    switch (decided) {
    case DECISION_ANSWER:
        return asking_of_tool(row) ? any(sim, right_tool_asks, COUNT(right_tool_asks))
                                   : any(sim, right_asks, COUNT(right_asks));
    case DECISION_SKIP:
        return STR("{\"skip\":true}");
    case DECISION_APPROVE:
        return approve_body(sim, row, false);
    case DECIDED_ALWAYS:
        return approve_body(sim, row, true);
    case DECISION_EDIT:
        return edit_body(sim, row);
    case DECISION_REJECT:
        return one_in(&sim->chance, 2) ? STR("{\"decision\":\"reject\"}")
                                       : STR("{\"decision\":\"reject\",\"comment\":\"no\"}");
    case DECISION_RESPOND:
        return STR("{\"decision\":\"respond\",\"comment\":\"do it by hand\"}");
    case DECISION_CONTINUE:
        return STR("{\"decision\":\"continue\"}");
    case DECISION_GIVE_UP:
        return STR("{\"decision\":\"give_up\"}");
    case DECISION_RETRY:
        return STR("{\"decision\":\"retry\"}");
    case DECISION_HAPPENED:
        return STR("{\"decision\":\"happened\"}");
    default:
        return STR_EMPTY;
    }
}

/* By type: what people decide, as often as it stands there. */
static int decide(struct sim *sim, const struct interaction *row)
{
    static const int lists[INTERACTION_TYPE_COUNT][8] = {
        [INTERACTION_ASK_USER] = {DECISION_ANSWER, DECISION_ANSWER, DECISION_ANSWER,
                                  DECISION_ANSWER, DECISION_ANSWER, DECISION_SKIP, DECISION_CANCEL,
                                  DECISION_EXPIRE},
        [INTERACTION_CONFIRM] = {DECISION_APPROVE, DECISION_APPROVE, DECIDED_ALWAYS, DECISION_EDIT,
                                 DECISION_REJECT, DECISION_RESPOND, DECISION_CANCEL,
                                 DECISION_EXPIRE},
        [INTERACTION_CONNECTION_LOST] = {DECISION_CONTINUE, DECISION_CONTINUE, DECISION_CONTINUE,
                                         DECISION_CONTINUE, DECISION_CONTINUE, DECISION_GIVE_UP,
                                         DECISION_CANCEL, DECISION_EXPIRE},
        [INTERACTION_UNCERTAIN] = {DECISION_RETRY, DECISION_RETRY, DECISION_RETRY,
                                   DECISION_HAPPENED, DECISION_HAPPENED, DECISION_GIVE_UP,
                                   DECISION_CANCEL, DECISION_EXPIRE},
    };
    int aimed = drill_decision(sim, row);
    int decided = aimed >= 0 ? aimed : lists[row->type][below(&sim->chance, 8)];
    bool plan = str_eq(row->tool, tool_submit_plan.name);
    return decided == DECIDED_ALWAYS && plan ? DECISION_APPROVE : decided;
}

/* ---- answers ---- */

static bool same_tool(const struct sim *sim, const struct interaction *row)
{
    if (str_eq(row->tool, tool_submit_plan.name)) return true;
    const struct tool *tool = tools_find(&sim->house.tools, row->tool);
    return tool && str_eq(tool->schema, row->args_schema);
}

static bool lets_run(enum decision decision)
{
    return decision == DECISION_APPROVE || decision == DECISION_EDIT;
}

static void try_wrong(struct sim *sim, const struct interaction *row)
{
    struct json *body = NULL;
    struct resolution r = {0};
    str text = row->type == INTERACTION_ASK_USER ? any(sim, wrong_asks, COUNT(wrong_asks))
                                                 : any(sim, wrong_confirms, COUNT(wrong_confirms));
    if (row->type == INTERACTION_UNCERTAIN && str_eq(text, STR("{\"decision\":\"retry\"}"))) return;
    if (json_parse(&sim->life, text, &body, NULL)) return;
    if (answer_parse(&sim->life, row, body, &r, NULL) == OK)
        broken(sim, "%.*s was taken as an answer", STR_ARG(text));
}

/* Through the body of a request; false: it does not fit this question. */
static bool say_in_a_body(struct sim *sim, const struct interaction *row, int decided,
                          struct resolution *r)
{
    struct json *body = NULL;
    struct fault why = {0};
    str text = body_of(sim, row, decided);
    if (json_parse(&sim->life, text, &body, NULL) == OK &&
        answer_parse(&sim->life, row, body, r, &why) == OK)
        return true;
    if (decided != DECISION_ANSWER)
        broken(sim, "%.*s was refused: %s %s", STR_ARG(text), why.field, why.text);
    return false;
}

/* What this person says of it; false: nothing that fits came to their mind. */
static bool say(struct sim *sim, const struct interaction *row, struct resolution *ret)
{
    struct resolution r = {0};
    int decided = decide(sim, row);
    bool late = row->expires && row->expires <= sim->now;
    bool plain = row->type != INTERACTION_UNCERTAIN && one_in(&sim->chance, 12);
    if (late || decided == DECISION_EXPIRE) {
        r.decision = DECISION_EXPIRE; /* the clock was first */
    } else if (decided == DECISION_CANCEL) {
        r.decision = DECISION_CANCEL;
    } else if (plain) {
        answer_plain(&sim->life, row, one_in(&sim->chance, 2) ? STR("2") : STR("yes"), &r);
        if (lets_run(r.decision)) broken(sim, "a plain message approved something");
    } else if (!say_in_a_body(sim, row, decided, &r)) {
        return false;
    } else if (row->type == INTERACTION_CONFIRM && lets_run(r.decision) && !same_tool(sim, row)) {
        r = (struct resolution){.decision = DECISION_SUPERSEDE};
    }
    r.interaction_id = row->id;
    r.by = STR("local");
    r.via = r.decision == DECISION_EXPIRE ? STR("timer") : STR("api");
    *ret = r;
    return true;
}

/* One answer alone goes the way of the API, whatever the shell has made of the question meanwhile. */
static bool answer_alone(struct sim *sim, const struct interaction *row)
{
    int decided = decide(sim, row);
    if (decided == DECISION_EXPIRE) return false;
    struct wish *wish = wish_new(sim, apply_answer);
    wish->id = arena_str(&wish->arena, row->id);
    wish->body = arena_str(&wish->arena, body_of(sim, row, decided));
    trace(sim, "%.*s is answered: %.*s", STR_ARG(row->id), STR_ARG(wish->body));
    wish_send(wish);
    return true;
}

bool people_event(struct sim *sim)
{
    struct chance *chance = &sim->chance;
    const struct interaction *open[AT_ONCE_MAX * 4];
    size_t open_count = 0;
    if (!world_open(sim)) return false;
    for (size_t i = 0; i < sim->world.interaction_count && open_count < COUNT(open); i++)
        if (sim->world.interactions[i].status == INTERACTION_OPEN)
            open[open_count++] = &sim->world.interactions[i];
    struct wish *wish = wish_new(sim, apply_resolve);
    if (sim->world.run.status != RUN_CANCELLING)
        wish->done_count = client_results(sim, wish->done, AT_ONCE_MAX);
    bool stops = (open_count || wish->done_count) && (drill_stops(sim) || asking_stops(sim));
    bool alone = open_count && !wish->done_count && one_in(chance, 2);
    if (stops || alone || (!open_count && !wish->done_count)) {
        bool any = open_count || wish->done_count;
        wish_done(&wish->job, ERR_SHUTTING_DOWN); /* they do not say it */
        if (stops) people_stop(sim);
        if (stops || !any) return any;
        const struct interaction *row = open[below(chance, (unsigned)open_count)];
        if (one_in(chance, 6)) try_wrong(sim, row);
        if (!drill_waits(sim, row)) answer_alone(sim, row);
        return true;
    }
    size_t wanted = one_in(chance, 3) ? 1 + below(chance, AT_ONCE_MAX) : 1;
    while (open_count && wish->said_count < wanted) {
        size_t at = below(chance, (unsigned)open_count);
        const struct interaction *row = open[at];
        if (one_in(chance, 6)) try_wrong(sim, row);
        if (!drill_waits(sim, row) && say(sim, row, &wish->said[wish->said_count]))
            wish->said_count++;
        open[at] = open[--open_count];
    }
    if (one_in(chance, 10) && wish->said_count && wish->said_count < AT_ONCE_MAX)
        wish->said[wish->said_count++] =
            (struct resolution){.interaction_id = STR("int_settled"), .decision = DECISION_APPROVE};
    if (wish->done_count && wish->said_count && one_in(chance, 2))
        wish->said_count = 0; /* apart from each other */
    if (!wish->said_count && !wish->done_count) {
        wish_done(&wish->job, ERR_SHUTTING_DOWN);
        return true;
    }
    for (size_t i = 0; i < wish->said_count; i++) { /* rows go with the next commit */
        struct resolution *r = &wish->said[i];
        str *const texts[] = {&r->interaction_id, &r->text, &r->args, &r->answer, &r->match};
        for (size_t j = 0; j < COUNT(texts); j++) *texts[j] = keep(sim, *texts[j]);
    }
    for (size_t i = 0; i < wish->done_count; i++)
        wish->done[i].call_id = keep(sim, wish->done[i].call_id);
    trace(sim, "%zu answers, %zu results", wish->said_count, wish->done_count);
    wish->offer = client_request(sim, &wish->arena); /* of this request, from now on */
    wish->offers = wish->done_count && one_in(&sim->client.chance, 4);
    wish_send(wish);
    return true;
}

bool clock_event(struct sim *sim)
{
    struct resolution due[AT_ONCE_MAX];
    size_t count = 0;
    if (!world_open(sim)) return false;
    for (size_t i = 0; i < sim->world.interaction_count && count < COUNT(due); i++) {
        const struct interaction *row = &sim->world.interactions[i];
        if (row->status != INTERACTION_OPEN || !row->expires || row->expires > sim->now) continue;
        due[count++] = (struct resolution){
            .interaction_id = keep(sim, row->id), .decision = DECISION_EXPIRE, .via = STR("timer")};
    }
    if (!count) return false;
    trace(sim, "%zu expire", count);
    struct wish *wish = wish_new(sim, apply_resolve);
    memcpy(wish->said, due, count * sizeof *due);
    wish->said_count = count;
    wish_send(wish);
    return true;
}

/* ---- the run is stopped ---- */

void people_stop(struct sim *sim)
{
    if (!world_open(sim)) return;
    trace(sim, "the run is stopped, %s", run_status_name(sim->world.run.status));
    wish_send(wish_new(sim, apply_stop));
}

/* ---- what else happens to rows ---- */

static void revoke_one(struct sim *sim)
{
    if (!sim->world.grant_count) return;
    size_t at = below(&sim->chance, (unsigned)sim->world.grant_count);
    trace(sim, "a grant is revoked");
    struct wish *wish = wish_new(sim, apply_revoke);
    wish->id = arena_str(&wish->arena, sim->world.grants[at].id);
    wish_send(wish);
}

static void set_expiry(struct sim *sim)
{
    enum err e = OK;
    for (size_t i = 0; !e && i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        if (row->status != INTERACTION_OPEN || !one_in(&sim->chance, 2)) continue;
        e = interaction_set_expiry(sim->db, row->id, sim->now + 1 + below(&sim->chance, 300));
        trace(sim, "%.*s will expire", STR_ARG(row->id));
    }
    world_write(sim, e);
}

static void damage(struct sim *sim)
{
    trace(sim, "the snapshot is damaged");
    world_write(sim, stmt_run(db_prepare(sim->db, "UPDATE runs SET hash=x'00' WHERE version>0")));
}

/* The interaction that shows a call. */
static struct interaction *shown(struct sim *sim, str call_id)
{
    for (size_t i = sim->world.interaction_count; i > 0; i--) {
        struct interaction *row = &sim->world.interactions[i - 1];
        if (row->status == INTERACTION_OPEN && str_eq(row->call_id, call_id)) return row;
    }
    return NULL;
}

#define TAMPER(table, column) "UPDATE " table " SET " column "=?2 WHERE "

/* Of a call that waits for its approval, or has it and has not left. */
static void tamper(struct sim *sim)
{
    struct world *world = &sim->world;
    struct db *db = sim->db;
    for (size_t i = 0; i < world->call_count; i++) {
        struct call *call = &world->calls[i];
        bool asked = call->state == CALL_WAITING || call->state == CALL_APPROVED;
        if (!asked || !call->rule.len || !one_in(&sim->chance, 2)) continue;
        struct interaction *row = shown(sim, call->call_id);
        unsigned what = below(&sim->chance, row ? 5 : 4);
        trace(sim, "%.*s is tampered with, %u", STR_ARG(call->call_id), what);
        struct stmt *s = what == 0   ? db_prepare(db, TAMPER("tool_calls", "args") "call_id=?1")
                         : what == 1 ? db_prepare(db, TAMPER("tool_calls", "tool") "call_id=?1")
                         : what == 2 ? db_prepare(db, TAMPER("tool_calls", "binding") "call_id=?1")
                         : what == 3 ? db_prepare(db, TAMPER("tool_calls", "rule") "call_id=?1")
                                     : db_prepare(db, TAMPER("interactions", "args") "id=?1");
        str rule = arena_printf(&sim->life, "x%.*s", STR_ARG(call->rule));
        const str values[] = {STR("{\"n\":666}"), STR("note"),
                              STR("k1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), rule,
                              STR("{\"n\":0}")};
        stmt_bind_str(s, 1, what == 4 ? row->id : call->call_id);
        stmt_bind_str(s, 2, values[what]);
        world_write(sim, stmt_run(s));
        return;
    }
}

void people_meddle(struct sim *sim)
{
    struct chance *chance = &sim->chance;
    const struct mood *mood = &sim->mood;
    if (one_in(chance, mood->tamper)) tamper(sim);
    if (one_in(chance, mood->damage)) damage(sim);
    if (one_in(chance, mood->strict)) house_change_policy(sim);
    if (one_in(chance, mood->strict)) revoke_one(sim);
    if (one_in(chance, mood->expire)) set_expiry(sim);
}

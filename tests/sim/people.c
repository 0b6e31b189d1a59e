/* SPDX-License-Identifier: Apache-2.0
 *
 * People: they answer what is open, one at a time or several at once and in any order; they cancel
 * one question or the whole run, let times pass, take back a grant, and change the policy. And
 * somebody who writes into the database past us.
 *
 * An answer takes the way of app/input/settle.c: still open, in time, about the same tool, and a body that
 * fits; then one commit. Wrong bodies are tried too, and have to be refused.
 */
#include "base/limits.h"
#include "sim.h"
#include "tool/tools.h"

/* ---- one commit of a person's ---- */

/* Load, step and save are one transaction, so it is never stale. */
static bool step_here(struct sim *sim, struct input input)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct view view;
    struct outcome o;
    int64_t version;
    if (sim->world.damaged) {
        world_fail(sim);
        return false;
    }
    if (!world_load(sim, &arena, &view, &version)) return false;
    input.now = sim->now;
    input.binder = &sim->house.binder;
    input.tools = &sim->house.tools;
    random_bytes(&sim->chance, input.random);
    graph_step(&arena, &view, &input, &o);
    if (world_commit(sim, &view, version, &input, &o, sim->house.settings) != FATE_DONE)
        return false;
    if (o.status == RUN_CANCELLING) shell_cancelled(sim);
    if (o.status == RUN_RUNNING || o.ended) shell_wake(sim);
    return true;
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

enum { AT_ONCE_MAX = 8 };

bool people_event(struct sim *sim)
{
    struct chance *chance = &sim->chance;
    const struct interaction *open[AT_ONCE_MAX * 4];
    struct resolution said[AT_ONCE_MAX];
    struct front_result done[AT_ONCE_MAX];
    size_t open_count = 0, said_count = 0, done_count = 0;
    if (!world_open(sim)) return false;
    for (size_t i = 0; i < sim->world.interaction_count && open_count < COUNT(open); i++)
        if (sim->world.interactions[i].status == INTERACTION_OPEN)
            open[open_count++] = &sim->world.interactions[i];
    if (sim->world.run.status != RUN_CANCELLING)
        done_count = client_results(sim, done, COUNT(done));
    if (!open_count && !done_count) return false;
    if (drill_stops(sim) || asking_stops(sim)) {
        people_stop(sim);
        return true;
    }
    size_t wanted = one_in(chance, 3) ? 1 + below(chance, AT_ONCE_MAX) : 1;
    while (open_count && said_count < wanted) {
        size_t at = below(chance, (unsigned)open_count);
        const struct interaction *row = open[at];
        if (one_in(chance, 6)) try_wrong(sim, row);
        if (!drill_waits(sim, row) && say(sim, row, &said[said_count])) said_count++;
        open[at] = open[--open_count];
    }
    if (one_in(chance, 10) && said_count && said_count < AT_ONCE_MAX)
        said[said_count++] =
            (struct resolution){.interaction_id = STR("int_settled"), .decision = DECISION_APPROVE};
    if (done_count && said_count && one_in(chance, 2)) said_count = 0; /* apart from each other */
    if (!said_count && !done_count) return true;
    trace(sim, "%zu answers, %zu results", said_count, done_count);
    struct offer offer = client_request(sim); /* of this request, from now on */
    bool other = done_count && one_in(&sim->client.chance, 4);
    bool stepped = step_here(sim, (struct input){.kind = INPUT_RESOLVE,
                                                 .resolutions = said,
                                                 .resolution_count = said_count,
                                                 .fronts = done,
                                                 .front_count = done_count});
    if (!stepped || !other) return true;
    sim->world.tools = offer.tools;
    sim->world.offers = offer.offers;
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
            .interaction_id = row->id, .decision = DECISION_EXPIRE, .via = STR("timer")};
    }
    if (!count) return false;
    trace(sim, "%zu expire", count);
    step_here(sim,
              (struct input){.kind = INPUT_RESOLVE, .resolutions = due, .resolution_count = count});
    return true;
}

/* ---- the run is stopped ---- */

static void mark(struct sim *sim, void *arg)
{
    (void)arg;
    sim->world.run.status = RUN_CANCELLING;
    sim->world.version++;
}

void people_stop(struct sim *sim)
{
    if (!world_open(sim)) return;
    trace(sim, "the run is stopped, %s", run_status_name(sim->world.run.status));
    if (sim->world.run.status == RUN_WAITING)
        step_here(sim, (struct input){.kind = INPUT_CANCEL});
    else if (world_change(sim, mark, NULL) == FATE_DONE)
        shell_cancelled(sim);
}

/* ---- what else happens to rows ---- */

static void revoke(struct sim *sim, void *arg)
{
    ((struct grant *)arg)->id = STR_EMPTY;
    sim->world.version += !!sim->world.version;
}

static void revoke_one(struct sim *sim)
{
    if (!sim->world.grant_count) return;
    size_t at = below(&sim->chance, (unsigned)sim->world.grant_count);
    trace(sim, "a grant is revoked");
    world_change(sim, revoke, &sim->world.grants[at]);
}

static void set_expiry(struct sim *sim)
{
    struct world *world = &sim->world;
    for (size_t i = 0; i < world->interaction_count; i++) {
        struct interaction *row = &world->interactions[i];
        if (row->status != INTERACTION_OPEN || !one_in(&sim->chance, 2)) continue;
        row->expires = sim->now + 1 + below(&sim->chance, 300);
        trace(sim, "%.*s will expire", STR_ARG(row->id));
    }
}

static void damage(struct sim *sim)
{
    trace(sim, "the snapshot is damaged");
    sim->world.damaged = sim->world.version > 0;
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

/* Of a call that waits for its approval, or has it and has not left. */
static void tamper(struct sim *sim)
{
    struct world *world = &sim->world;
    for (size_t i = 0; i < world->call_count; i++) {
        struct call *call = &world->calls[i];
        bool asked = call->state == CALL_WAITING || call->state == CALL_APPROVED;
        if (!asked || !call->rule.len || !one_in(&sim->chance, 2)) continue;
        struct interaction *row = shown(sim, call->call_id);
        unsigned what = below(&sim->chance, row ? 5 : 4);
        trace(sim, "%.*s is tampered with, %u", STR_ARG(call->call_id), what);
        if (what == 0) call->args = STR("{\"n\":666}");
        if (what == 1) call->tool = STR("note");
        if (what == 2) call->binding = STR("k1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        if (what == 3) call->rule = arena_printf(&sim->life, "x%.*s", STR_ARG(call->rule));
        if (what == 4) row->args = STR("{\"n\":0}");
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

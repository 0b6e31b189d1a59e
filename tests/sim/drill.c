/* SPDX-License-Identifier: Apache-2.0
 *
 * A life that aims at one cell of the coverage table: this interaction, in this node, settled in this
 * way. Model, tools and people lean towards it; where the process dies is left to the plan of
 * crashes. Chance alone would meet the rarest cells once in a million lives.
 *
 *     chat      the model is away at once
 *     plan      the turn asks something before it submits its plan, or the plan is turned down
 *     confirm   the turn submits its plan first
 *     deliver   the turn uses up the last round; a connection that is lost is the reader's
 *     execute   there is no plan
 */
#include "sim.h"
#include "tool/tools.h"

void drill_init(struct sim *sim)
{
    struct chance *chance = &sim->chance;
    struct drill *drill = &sim->drill;
    drill->on = true;
    do {
        drill->cell = (struct cell){(enum where)below(chance, AT_COUNT),
                                    (enum interaction_type)below(chance, INTERACTION_TYPE_COUNT),
                                    (int)below(chance, DECIDED_COUNT)};
    } while (!cell_reachable(&drill->cell));
    const struct cell *cell = &drill->cell;
    static const struct mood moods[INTERACTION_TYPE_COUNT] = {
        [INTERACTION_ASK_USER] = {.calls = {6, 0, 2}, .tools = {2, 0, 0, 4}},
        [INTERACTION_CONFIRM] = {.calls = {0, 0, 8}, .tools = {1, 3, 3, 3, 0, 0, 1}},
        [INTERACTION_CONNECTION_LOST] = {.calls = {2, 0, 4}, .tools = {3, 1}, .away = 1},
        [INTERACTION_UNCERTAIN] = {.calls = {1, 0, 6}, .tools = {0, 1, 2, 7, 1}, .lost = 2},
    };
    struct mood mood = moods[cell->type];
    bool lost = cell->type == INTERACTION_CONNECTION_LOST;
    mood.text = lost ? 4 : 12;
    mood.parallel = 1 + below(chance, 5);
    mood.late = lost ? 1 : 1 + below(chance, 4);
    if (cell->decided == DECISION_SUPERSEDE) {
        mood.restyle = 1;
        mood.crash = 6 + below(chance, 12);
    }
    if (cell->decided == DECIDED_RUN_CANCEL) {
        mood.slow = 6;
        mood.parallel = 3 + below(chance, 3);
    }
    sim->mood = mood;
    struct agent *agent = &sim->house.agent;
    bool plans = cell->at == AT_PLAN || cell->at == AT_CONFIRM;
    agent->plan = plans ? PLAN_AUTO : PLAN_NEVER;
    agent->ask_user = true;
    agent->tokens_max = agent->cost_max = 0;
    agent->active_ms_max = 0;
    agent->max_rounds = cell->at == AT_DELIVER ? 1 + below(chance, 2) : 6;
    if (lost && cell->at == AT_DELIVER) { /* a model that is away is not waited for there */
        sim->mood.away = 0;
        agent->on_disconnect = DISCONNECT_PAUSE;
    }
}

static bool aimed_at(struct sim *sim, const struct interaction *row)
{
    const struct cell *cell = &sim->drill.cell;
    return sim->drill.on && row->type == cell->type && where_of(sim, row) == cell->at;
}

static bool aimed_is_open(struct sim *sim)
{
    bool open = false;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        open = open || (row->status == INTERACTION_OPEN && aimed_at(sim, row));
    }
    return open;
}

/* Nobody answers before the tool has changed, or the run is stopped, or the call is lost that joins
 * the set; mostly. */
bool drill_waits(struct sim *sim, const struct interaction *row)
{
    int decided = sim->drill.cell.decided;
    if (!sim->drill.on || sim->calm || one_in(&sim->chance, 8)) return false;
    if (decided == DECIDED_RUN_CANCEL && aimed_at(sim, row)) return true;
    bool joins = sim->drill.cell.type == INTERACTION_UNCERTAIN && sim->drill.cell.at != AT_EXECUTE;
    if (joins && row->type != INTERACTION_UNCERTAIN) return !aimed_is_open(sim);
    const struct tool *tool = tools_find(&sim->house.tools, row->tool);
    return decided == DECISION_SUPERSEDE && tool && str_eq(tool->schema, row->args_schema);
}

/* A plan is turned down where the run has to stay in planning. */
int drill_decision(struct sim *sim, const struct interaction *row)
{
    const struct cell *cell = &sim->drill.cell;
    if (!sim->drill.on || sim->calm) return -1;
    bool plan = str_eq(row->tool, tool_submit_plan.name);
    bool turned_down = plan && cell->at == AT_PLAN && cell->type != INTERACTION_CONFIRM;
    if (turned_down) return DECISION_REJECT;
    if (!aimed_at(sim, row) || one_in(&sim->chance, 4)) return -1;
    if (cell->decided == DECISION_SUPERSEDE) return DECISION_APPROVE;
    return cell->decided == DECIDED_RUN_CANCEL ? -1 : cell->decided;
}

/* With calls under way, if there can be some: then the run goes on for a while. */
bool drill_stops(struct sim *sim)
{
    const struct cell *cell = &sim->drill.cell;
    if (!sim->drill.on || sim->calm || cell->decided != DECIDED_RUN_CANCEL) return false;
    return aimed_is_open(sim) && (sim->process.air_count || one_in(&sim->chance, 8));
}

static void make_plan(struct speech *speech, size_t at)
{
    speech->kinds[at] = KIND_PLAN;
    speech->bad[at] = false;
    speech->calls[at].name = tool_submit_plan.name;
    speech->calls[at].args = STR("{\"steps\":[{\"content\":\"one\"},{\"content\":\"two\"}]}");
}

static void make_ask(struct speech *speech, size_t at)
{
    speech->kinds[at] = KIND_ASK;
    speech->bad[at] = false;
    speech->calls[at].name = tool_ask_user.name;
    speech->calls[at].args = STR("{\"question\":\"How long?\"}");
}

static void make_tool(struct sim *sim, struct chance *chance, size_t at, enum fake fake)
{
    struct speech *speech = &sim->process.speech;
    speech->kinds[at] = KIND_TOOL;
    speech->bad[at] = false;
    speech->calls[at].name = str_c(fake_name(fake));
    speech->calls[at].args = fake_args(sim, chance, fake, false);
}

/* What the set is about, beside what the mood says. */
static void make_wanted(struct sim *sim, struct chance *chance, size_t at)
{
    enum interaction_type type = sim->drill.cell.type;
    if (type == INTERACTION_ASK_USER) make_ask(&sim->process.speech, at);
    if (type == INTERACTION_CONFIRM)
        make_tool(sim, chance, at, one_in(chance, 2) ? FAKE_SEND : FAKE_PUT);
    if (type == INTERACTION_UNCERTAIN) make_tool(sim, chance, at, FAKE_NOTE);
}

/* The order of the first calls decides which node the set goes back to. */
void drill_calls(struct sim *sim, struct chance *chance, const struct state *state)
{
    struct speech *speech = &sim->process.speech;
    enum where at = sim->drill.cell.at;
    bool plans = (at == AT_PLAN || at == AT_CONFIRM) && !state->plan.count;
    size_t n = speech->call_count;
    bool slow = sim->mood.slow; /* calls are to be under way for long */
    for (size_t i = slow ? 2 : n - 1; i < n; i++)
        if (slow || (n > 3 && one_in(chance, 2))) make_tool(sim, chance, i, FAKE_NOTE);
    if (at == AT_CONFIRM && plans) {
        make_plan(speech, 0);
        if (n > 1) make_wanted(sim, chance, 1);
    } else if (at == AT_PLAN && plans && sim->drill.cell.type != INTERACTION_CONNECTION_LOST) {
        make_ask(speech, 0);
        make_wanted(sim, chance, n > 2);
        make_plan(speech, n > 2 ? 2 : 1);
    } else if (at == AT_PLAN && plans) {
        make_plan(speech, 0);
    } else if (at == AT_DELIVER && sim->drill.cell.type == INTERACTION_UNCERTAIN) {
        make_ask(speech, 0); /* an uncertain call alone goes back to execute */
        make_wanted(sim, chance, 1);
    } else {
        make_wanted(sim, chance, 0);
    }
}

/* A schema changes that somebody was shown. */
bool drill_restyle(struct sim *sim)
{
    if (!sim->drill.on) return false;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        int fake = row->status == INTERACTION_OPEN ? fake_of(row->tool) : -1;
        if (fake < 0) continue;
        enum form *form = &sim->house.forms[fake];
        *form = *form == FORM_FIRST ? FORM_REWORDED : FORM_FIRST;
        house_build(sim);
        return true;
    }
    return true;
}

bool drill_alone(struct sim *sim, const struct state *state)
{
    const struct drill *drill = &sim->drill;
    bool aimed = drill->on && sim->house.agent.on_disconnect == DISCONNECT_PAUSE;
    return aimed && !sim->calm && !drill->met && graph_node(state) == NODE_DELIVER;
}

bool drill_spares(const struct sim *sim, const struct state *state)
{
    const struct drill *drill = &sim->drill;
    return drill->on && drill->cell.at != AT_CHAT && !state->turns;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The process, as the run files of agent/ and agent/flight.c are it, one event at a time:
 *
 *     wake ─▶ LOADING ─▶ (nothing to do: gone)
 *               ▲ │ view
 *               │ ▼
 *               │ go_on ── model ──▶ SPEAKING
 *               │   │ └── calls under way ──▶ WORKING
 *               │   ▼ step taken
 *               └─ COMMITTING
 *
 * Between any two events people may commit something else, so a step may be stale when its turn to
 * be stored comes; or the process may die. Then memory is gone, and what was in the air may still
 * arrive where it was sent.
 */
#include "agent/texts.h"
#include "base/limits.h"
#include "sim.h"
#include "tool/tools.h"

void shell_init(struct sim *sim)
{
    sim->process = (struct process){.alive = true};
    arena_init(&sim->process.loaded);
    arena_init(&sim->process.stepping);
}

void shell_done(struct sim *sim)
{
    arena_done(&sim->process.loaded);
    arena_done(&sim->process.stepping);
}

/* ---- flights ---- */

static struct flight *flight_find(struct process *process, str call_id)
{
    for (size_t i = 0; i < process->flight_count; i++)
        if (str_eq(process->flights[i].call_id, call_id)) return &process->flights[i];
    return NULL;
}

static void flight_forget(struct process *process, str call_id)
{
    struct flight *flight = flight_find(process, call_id);
    if (flight) *flight = process->flights[--process->flight_count];
}

/* Who asks on the line stays there. */
static void flight_saved(struct process *process, enum input_kind kind, str call_id)
{
    struct flight *flight = flight_find(process, call_id);
    if (!flight || kind != INPUT_ASKED || flight->asked[0].ended) {
        flight_forget(process, call_id);
        return;
    }
    flight->asked_count--;
    for (size_t i = 0; i < flight->asked_count; i++) flight->asked[i] = flight->asked[i + 1];
}

static void take_off(struct sim *sim, const struct call *call)
{
    struct process *process = &sim->process;
    struct deed *deed = deed_of(sim, call->call_id);
    bool repeatable = call_repeatable(call);
    int fake = fake_of(call->tool);
    if (!deed || fake < 0 || process->flight_count == FLIGHTS_MAX) {
        broken(sim, "%.*s cannot leave", STR_ARG(call->call_id));
        return;
    }
    bool harmless = !fake_write((enum fake)fake) || fake == FAKE_PUT || fake == FAKE_KEEP;
    if (++deed->flights > deed->starts && !harmless)
        broken(sim, "%.*s left %u times on %u starts", STR_ARG(call->call_id), deed->flights,
               deed->starts);
    trace(sim, "take off %.*s (%.*s)", STR_ARG(call->call_id), STR_ARG(call->tool));
    process->flights[process->flight_count++] = (struct flight){
        .call_id = keep(sim, call->call_id),
        .tool = keep(sim, call->tool),
        .args = keep(sim, call->args),
        .locale = keep(sim, process->view.state.locale),
        .repeatable = repeatable && harmless,
        .write = fake_write((enum fake)fake),
        .attempts = 1,
    };
    asking_take_off(sim, call, &process->flights[process->flight_count - 1]);
}

static void set_failed(struct flight *flight, const char *code, str text)
{
    flight->over = true;
    flight->end = (struct call_end){
        .failed = true, .error = str_c(code), .content = text, .model_text = text};
}

static void landed(struct sim *sim, struct flight *flight, bool failed)
{
    struct tool_result result = {
        .content = one_in(&sim->chance, 2) ? STR("as told") : STR_EMPTY,
        .result = failed ? STR_EMPTY : STR("{\"ok\":true}"),
        .error = failed ? STR("it said no") : STR_EMPTY,
    };
    flight->over = true;
    flight->waiting_count = 0;
    flight->end = (struct call_end){
        .failed = failed,
        .error = result.error,
        .content = result.content,
        .result = result.result,
        .result_bytes = result.result.len,
        .model_text = tool_model_text(&sim->life, &result, flight->locale),
    };
}

/* No attempt is left. A write of which one was lost may have happened. */
static void give_up(struct sim *sim, struct flight *flight, const char *code, str text)
{
    struct deed *deed = deed_of(sim, flight->call_id);
    flight->lost = flight->in_doubt && flight->write;
    flight->over = true;
    if (flight->lost)
        deed->doubt = deed->flown_lost = true;
    else
        set_failed(flight, code, text);
}

/* Nobody at the other end: the person may know when to try again. */
static void stay_away(struct sim *sim, struct flight *flight)
{
    give_up(sim, flight, "tool_unavailable", STR("not reached"));
    flight->away = flight->holds && !flight->lost && !sim->process.letting_go;
}

static void not_landed(struct sim *sim, struct flight *flight, bool lost)
{
    bool again = !lost || flight->repeatable;
    flight->in_doubt = flight->in_doubt || lost;
    if (again && flight->attempts < CALL_ATTEMPTS_MAX && !sim->process.letting_go) {
        flight->attempts++;
        flight->resting = true;
        return;
    }
    stay_away(sim, flight);
}

static void execute(struct sim *sim, struct flight *flight)
{
    if (flight->dead || asking_holds_back(sim, flight)) return;
    if (!flight->executed) outside_execute(sim, flight);
    flight->executed = true;
}

/* How an attempt ends. What came back has happened; what is lost may have. */
static void flight_end(struct sim *sim, struct flight *flight)
{
    struct chance *chance = &sim->chance;
    unsigned luck = sim->calm ? 0 : below(chance, 20);
    bool lost = !sim->calm && one_in(chance, sim->mood.lost);
    trace(sim, "flight %.*s ends%s", STR_ARG(flight->call_id), lost ? ", lost" : "");
    if (flight->dead) {
        not_landed(sim, flight, false);
    } else if (lost) {
        if (one_in(chance, 2)) execute(sim, flight);
        not_landed(sim, flight, true);
    } else if (luck == 19 && !flight->executed) {
        not_landed(sim, flight, false);
    } else {
        execute(sim, flight);
        landed(sim, flight, luck >= 16 || asking_holds_back(sim, flight));
    }
    if (!flight->over) flight->executed = false; /* another attempt */
}

static void go_on(struct sim *sim);

static bool has_news(const struct flight *flight)
{
    return flight->over || flight->asked_count;
}

bool flight_event(struct sim *sim)
{
    struct process *process = &sim->process;
    size_t first = process->flight_count ? below(&sim->chance, (unsigned)process->flight_count) : 0;
    for (size_t i = 0; i < process->flight_count; i++) {
        struct flight *flight = &process->flights[(first + i) % process->flight_count];
        if (flight->over) continue;
        bool waits = flight->waiting_count && !flight->resting;
        bool impatient = !sim->calm && one_in(&sim->asking, 10);
        bool asks_more = !sim->calm && one_in(&sim->asking, 6);
        if (waits && !impatient && !asks_more) continue;
        if (flight->resting)
            asking_attempt(sim, flight);
        else if ((!waits || asks_more) && asking_event(sim, flight))
            trace(sim, "flight %.*s asks", STR_ARG(flight->call_id));
        else if (!flight->executed && one_in(&sim->chance, 2))
            execute(sim, flight);
        else
            flight_end(sim, flight);
        if (has_news(flight) && process->state == SHELL_WORKING) go_on(sim);
        return true;
    }
    return false;
}

/* Replies that people have given since are handed over. */
static void hand_over(struct sim *sim, const struct call *call)
{
    struct flight *flight = flight_find(&sim->process, call->call_id);
    struct asked asked;
    if (!flight || flight->over || !flight->waiting_count) return;
    if (asked_parse(&sim->life, keep(sim, call->asked), &asked)) return;
    flight->next = asked;
    for (size_t i = 0; !flight->resting && i < asked.count && i < PLACES_MAX; i++) {
        const struct tool_reply *reply = &asked.rows[i].said.reply;
        if (!flight->waiting[i].len || !reply->action.len) continue;
        if (!str_eq(flight->waiting[i], asked.rows[i].hash)) continue; /* ours is not saved yet */
        flight->waiting[i] = STR_EMPTY;
        flight->waiting_count--;
        asking_told(sim, flight, i, reply);
    }
}

/* In a run that is being cancelled nothing is tried again, and what only reads is not waited for. */
static void let_go(struct sim *sim)
{
    struct process *process = &sim->process;
    process->letting_go = true;
    for (size_t i = 0; i < process->flight_count; i++) {
        struct flight *flight = &process->flights[i];
        if (flight->over || (flight->write && !flight->resting)) continue;
        give_up(sim, flight, "cancelled",
                text_say(&sim->life, TEXT_CANCELLED, flight->locale, STR_EMPTY));
    }
}

/* ---- death ---- */

static void speech_forget(struct process *process)
{
    process->speech = (struct speech){.attempt = process->speech.attempt};
}

/* What was sent may arrive after us. */
void shell_die(struct sim *sim)
{
    struct process *process = &sim->process;
    trace(sim, "the process dies");
    sim->coverage->crashes++;
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        if (call->state != CALL_STARTED) continue;
        struct deed *deed = deed_of(sim, call->call_id);
        deed->doubt = true;
        deed->flown_lost = false;
    }
    for (size_t i = 0; i < process->flight_count; i++)
        if (!process->flights[i].over && !process->flights[i].resting && one_in(&sim->chance, 2))
            execute(sim, &process->flights[i]);
    process->flight_count = 0;
    process->letting_go = process->alone = false;
    process->speech = (struct speech){0};
    process->alive = false;
    process->again = false;
    process->state = SHELL_GONE;
}

void shell_come_back(struct sim *sim)
{
    trace(sim, "the process comes back");
    if (!sim->calm && one_in(&sim->chance, sim->mood.restyle)) house_restyle(sim);
    sim->process.alive = true;
    if (world_unfinished(sim)) shell_wake(sim);
}

/* ---- waking ---- */

void shell_wake(struct sim *sim)
{
    struct process *process = &sim->process;
    if (!process->alive) return;
    if (process->state == SHELL_GONE || process->state == SHELL_WORKING)
        process->state = SHELL_LOADING;
    else
        process->again = true;
}

void shell_cancelled(struct sim *sim)
{
    struct process *process = &sim->process;
    if (!process->alive) return;
    if (process->state == SHELL_GONE) {
        shell_wake(sim);
        return;
    }
    process->again = true;
    if (process->state == SHELL_SPEAKING || process->state == SHELL_WORKING)
        process->state = SHELL_LOADING;
}

/* ---- steps ---- */

static void step(struct sim *sim, struct input input)
{
    struct process *process = &sim->process;
    arena_reset(&process->stepping);
    input.now = sim->now;
    world_rest(sim, &input);
    random_bytes(&sim->chance, input.random);
    process->input = input;
    for (size_t i = 0; i < FAKE_COUNT; i++) process->settings[i] = sim->house.settings[i];
    graph_step(&process->stepping, &process->view, &process->input, &process->outcome);
    process->state = SHELL_COMMITTING;
}

static void step_turn(struct sim *sim)
{
    step(sim, (struct input){.kind = INPUT_TURN, .turn = speech_so_far(sim, &sim->process.loaded)});
}

static void call_model(struct sim *sim)
{
    struct process *process = &sim->process;
    const struct state *state = &process->view.state;
    if (sim->press_tool.len) broken(sim, "a button asks the model");
    if (graph_overdue(state, &sim->house.agent, sim->now)) {
        step(sim, (struct input){.kind = INPUT_OVERDUE});
        return;
    }
    if (state->turns != sim->log.turns)
        broken(sim, "turn %u is asked for, and %u are facts", state->turns + 1, sim->log.turns);
    if (process->alone || drill_alone(sim, state)) {
        step(sim, (struct input){.kind = INPUT_ALONE});
        return;
    }
    check_history(sim, &process->view);
    process->speech = (struct speech){0};
    process->state = SHELL_SPEAKING;
}

static bool save_flight(struct sim *sim)
{
    struct process *process = &sim->process;
    for (size_t i = 0; i < process->flight_count; i++) {
        const struct flight *flight = &process->flights[i];
        if (!has_news(flight)) continue;
        bool asks = flight->asked_count;
        struct tool_asked *asked = ARENA_NEW(&sim->life, struct tool_asked);
        *asked = flight->asked[0];
        step(sim, (struct input){.kind = asks           ? INPUT_ASKED
                                         : flight->lost ? INPUT_LOST
                                         : flight->away ? INPUT_AWAY
                                                        : INPUT_RESULT,
                                 .call_id = flight->call_id,
                                 .asked = asks ? asked : NULL,
                                 .why_text = flight->away ? STR("not reached") : STR_EMPTY,
                                 .result = flight->end});
        return true;
    }
    return false;
}

static bool look_for_lost(struct sim *sim)
{
    struct process *process = &sim->process;
    for (size_t i = 0; i < process->view.calls.count; i++) {
        const struct call *call = &process->view.calls.rows[i];
        if (call->state != CALL_STARTED || flight_find(process, call->call_id)) continue;
        bool there = tools_find(&sim->house.tools, call->tool);
        if (call_repeatable(call) && there && !process->view.cancelling) {
            take_off(sim, call);
            continue;
        }
        step(sim, (struct input){.kind = INPUT_LOST, .call_id = call->call_id});
        return true;
    }
    return false;
}

/* A run that is not done has something to do, or a call under way, or waits for somebody. */
static void nothing_to_do(struct sim *sim)
{
    struct process *process = &sim->process;
    bool now = process->version == sim->world.version;
    for (size_t i = 0; now && i < process->flight_count; i++)
        asking_stalled(sim, &process->flights[i]);
    if (process->flight_count) return;
    if (process->view.leg_open && process->version == sim->world.version)
        broken(sim, "the run is %s and has nothing to do", run_status_name(sim->world.run.status));
    process->state = SHELL_GONE;
}

/* Object storage takes most of what is put there. */
static void show(struct sim *sim)
{
    struct process *process = &sim->process;
    const struct view *view = &process->view;
    struct input input = {.kind = INPUT_SHOW};
    struct payload *made = arena_array(&process->loaded, view->calls.count, sizeof *input.payloads);
    for (size_t i = 0; i < view->calls.count; i++) {
        const struct call *call = &view->calls.rows[i];
        if (!call_state_settled(call->state) || call->result_id.len || !call->started) continue;
        struct payload *payload = &made[input.payload_count++];
        payload_make(&process->loaded,
                     &(struct payload_source){.call = call,
                                              .locale = view->state.locale,
                                              .run_id = view->state.trace_id,
                                              .user_id = view->state.user_id,
                                              .tools = &sim->house.tools},
                     payload);
        payload->stored = !one_in(&sim->chance, 4);
    }
    input.payloads = made;
    step(sim, input);
}

static void press(struct sim *sim)
{
    struct process *process = &sim->process;
    const struct state *state = &process->view.state;
    struct turn_call *call = ARENA_NEW(&process->loaded, struct turn_call);
    *call = (struct turn_call){.name = state->press_tool, .args = state->press_args};
    if (!str_eq(call->name, sim->press_tool) || !str_eq(call->args, sim->press_args))
        broken(sim, "another call than the button's");
    step(sim, (struct input){.kind = INPUT_TURN, .turn = {.calls = call, .call_count = 1}});
}

static void go_on(struct sim *sim)
{
    struct process *process = &sim->process;
    process->state = SHELL_WORKING;
    for (size_t i = 0; i < process->view.calls.count; i++)
        hand_over(sim, &process->view.calls.rows[i]);
    if (process->view.cancelling) let_go(sim);
    if (save_flight(sim) || look_for_lost(sim)) return;
    if (process->speech.whole && !process->view.cancelling) {
        step_turn(sim);
        return;
    }
    switch (graph_effect(&process->view)) {
    case EFFECT_CANCEL:
        step(sim,
             (struct input){.kind = INPUT_CANCEL, .turn = speech_so_far(sim, &process->loaded)});
        break;
    case EFFECT_SHOW:
        show(sim);
        break;
    case EFFECT_START:
        step(sim, (struct input){.kind = INPUT_START});
        break;
    case EFFECT_PRESS:
        press(sim);
        break;
    case EFFECT_MODEL:
        call_model(sim);
        break;
    case EFFECT_NONE:
        nothing_to_do(sim);
        break;
    }
}

/* ---- events ---- */

/* A call was started: it is in the air, or what became of it has to be found out. */
static bool under_way(const struct process *process)
{
    bool any = process->flight_count;
    for (size_t i = 0; i < process->view.calls.count; i++)
        any = any || process->view.calls.rows[i].state == CALL_STARTED;
    return any;
}

static void load(struct sim *sim)
{
    struct process *process = &sim->process;
    arena_reset(&process->loaded);
    if (!world_open(sim)) {
        process->state = SHELL_GONE;
        process->flight_count = 0;
        return;
    }
    if (process->again) {
        process->again = false;
        return;
    }
    if (sim->world.damaged) {
        world_fail(sim);
        process->state = SHELL_GONE;
        process->flight_count = 0;
        return;
    }
    if (!world_load(sim, &process->loaded, &process->view, &process->version)) return;
    if (sim->world.run.status == RUN_WAITING && !under_way(process)) {
        process->state = SHELL_GONE;
        process->alone = false;
    } else {
        go_on(sim);
    }
}

static void committed(struct sim *sim)
{
    struct process *process = &sim->process;
    const struct outcome *o = &process->outcome;
    enum input_kind kind = process->input.kind;
    if (kind == INPUT_TURN || kind == INPUT_CANCEL) speech_forget(process);
    if (process->input.call_id.len) flight_saved(process, kind, process->input.call_id);
    for (size_t i = 0; i < o->call_count; i++)
        if (o->calls[i].started) take_off(sim, &o->calls[i].call);
    if (o->ended || (o->status == RUN_WAITING && !process->again && !process->flight_count)) {
        process->state = SHELL_GONE;
        process->flight_count = 0;
        process->again = process->alone = false;
    } else {
        process->state = SHELL_LOADING;
        process->again = false;
    }
}

static void commit(struct sim *sim)
{
    struct process *process = &sim->process;
    if (!sim->calm && one_in(&sim->chance, 40)) return; /* no room on the disk just now */
    switch (world_commit(sim, &process->view, process->version, &process->input, &process->outcome,
                         process->settings)) {
    case FATE_DONE:
        committed(sim);
        break;
    case FATE_STALE:
        sim->coverage->stale++;
        process->again = false;
        process->state = SHELL_LOADING;
        break;
    case FATE_DIED:
        break;
    }
}

static void attempt_ended(struct sim *sim)
{
    struct process *process = &sim->process;
    struct chance *chance = &sim->chance;
    bool spared = sim->calm || drill_spares(sim, &process->view.state);
    bool away = !spared && one_in(chance, sim->mood.away);
    if (away && process->speech.attempt < RUN_ATTEMPTS_MAX) {
        speech_forget(process);
    } else if (away) {
        process->speech = (struct speech){0};
        step(sim, (struct input){.kind = INPUT_DOWN,
                                 .why = ERR_MODEL_UNAVAILABLE,
                                 .why_text = one_in(chance, 2) ? STR("gone") : STR_EMPTY});
    } else if (!spared && one_in(chance, 60)) {
        process->speech = (struct speech){0};
        step(sim, (struct input){.kind = INPUT_DOWN, .why = ERR_INTERNAL, .why_text = STR("no")});
    } else {
        process->speech.whole = true;
        step_turn(sim);
    }
}

static void speak(struct sim *sim)
{
    struct process *process = &sim->process;
    struct speech *speech = &process->speech;
    const struct state *state = &process->view.state;
    msec deadline = graph_deadline(state, &sim->house.agent);
    if (deadline && sim->now >= deadline) {
        *speech = (struct speech){0};
        step(sim, (struct input){.kind = INPUT_OVERDUE});
    } else if (!speech->calling) {
        model_speak(sim, state->turns + 1, graph_node(state), state);
    } else if (speech->said < speech->piece_count) {
        speech->said++;
    } else {
        attempt_ended(sim);
    }
}

bool shell_event(struct sim *sim)
{
    switch (sim->process.state) {
    case SHELL_LOADING:
        load(sim);
        return true;
    case SHELL_SPEAKING:
        speak(sim);
        return true;
    case SHELL_COMMITTING:
        commit(sim);
        return true;
    case SHELL_GONE:
    case SHELL_WORKING:
        return false;
    }
    return false;
}

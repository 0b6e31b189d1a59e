/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools that ask people something in the middle of a call, and servers that stay away.
 *
 * A fake tool asks on the line, one question after the other, sometimes a second one before the first has
 * its reply; or it parts: it ends with its questions and a state, and is to be started again; or both. In
 * another attempt it asks the same in the same place, mostly. What it does is up to sim->asking alone.
 *
 * Every call has a list of places: what people were asked for it, and what they said. It is written from
 * inputs and decisions, and the call's row has to tell the same at every commit:
 *
 *  1. The same question in the same place is asked once, unless it lapsed with its call.
 *  2. Whoever waits on the line waits for a question that is open; its reply comes once.
 *  3. A call that parted starts again when all its questions have a reply, with its state unchanged.
 *  4. A write that is lost while it asks is uncertain, and the question is told along.
 *  5. No question is open of a call that has ended.
 *
 * To add a question: a row in questions[], and what accepting it means in accepted().
 */
#include "base/limits.h"
#include "sim.h"
#include "tool/elicit.h"
#include "tool/tools.h"

enum { STREAM = 5 * 1000 * 1000, LINE_ASKED_MAX = 3, ENDLESS = 1000 };

static const struct tool_question questions[] = {
    {.id = STR("form"),
     .message = STR("Who is it for?"),
     .schema = STR("{\"type\":\"object\",\"properties\":{\"who\":{\"type\":\"string\"},"
                   "\"n\":{\"type\":\"integer\"}},\"required\":[\"who\"]}")},
    {.id = STR("page"), .message = STR("Sign in"), .url = STR("https://example.org/sign")},
    {.id = STR("yes"), .message = STR("Really?")},
    {.id = STR("empty"),
     .message = STR("Go on?"),
     .schema = STR("{\"type\":\"object\",\"properties\":{}}")},
    {.id = STR("secret"),
     .message = STR("Who are you?"),
     .schema = STR("{\"type\":\"object\",\"properties\":{\"password\":{\"type\":\"string\"}}}")},
};
enum { QUESTION_SECRET = COUNT(questions) - 1 };

void asking_init(struct sim *sim)
{
    struct chance *chance = &sim->asking;
    *chance = chance_from(sim->scenario.seed, 0, STREAM);
    if (sim->drill.on) return; /* they aim at something else */
    sim->asks = one_in(chance, 3) ? 0 : 1 + below(chance, 5);
    sim->gone = one_in(chance, 3) ? 2 + below(chance, 10) : 0;
    sim->crowd = one_in(chance, 20);
    if (!sim->crowd) return;
    sim->asks = 1;
    sim->mood = (struct mood){.calls = {0, 0, 1},
                              .tools = {3, 0, 0, 2, 2},
                              .text = 9,
                              .parallel = TURN_CALLS_MAX,
                              .late = 60,
                              .crash = sim->mood.crash,
                              .stop = sim->mood.stop};
}

bool asking_of_tool(const struct interaction *row)
{
    bool server = row->type == INTERACTION_CONNECTION_LOST && row->call_id.len;
    return server || str_starts(row->metadata, STR("{\"source\":\"tool\""));
}

static void count(struct sim *sim, enum asked_fate fate)
{
    sim->coverage->asked[fate]++;
}

/* ---- the tool's side ---- */

static bool parts(const struct inquiry *asking)
{
    return asking->how == ASKS_PARTING || asking->how == ASKS_BOTH;
}

/* The state is "s1" behind the first round. */
static unsigned round_of(const struct tool_call *call)
{
    uint64_t round = 0;
    if (call->state.len && str_to_u64(str_drop(call->state, 1), &round)) return 0;
    return (unsigned)round;
}

bool asking_holds_back(const struct tool_call *call)
{
    const struct inquiry *asking = &deed_of(call->sim, call->call_id)->asking;
    return parts(asking) && round_of(call) < asking->rounds;
}

/* What kind of call it is, once and for all. */
static void decide(struct sim *sim, struct inquiry *asking)
{
    static const enum asks hows[] = {ASKS_ON_THE_LINE, ASKS_ON_THE_LINE, ASKS_ON_THE_LINE,
                                     ASKS_PARTING,     ASKS_PARTING,     ASKS_BOTH};
    struct chance *chance = &sim->asking;
    if (!one_in(chance, sim->asks)) return;
    asking->how = hows[below(chance, COUNT(hows))];
    asking->count = 1 + below(chance, LINE_ASKED_MAX);
    if (sim->crowd) asking->how = ASKS_PARTING;
    asking->rounds = one_in(chance, 50) ? ENDLESS : 1 + below(chance, ROUNDS_MAX);
    for (size_t i = 0; i < PLACES_MAX; i++) {
        unsigned any = one_in(chance, 6) ? COUNT(questions) : QUESTION_SECRET;
        asking->questions[i] = below(chance, any);
    }
}

static bool same_reply(const struct place *place, const struct tool_reply *reply)
{
    return str_eq(place->action, reply->action) && str_eq(place->content, reply->content);
}

/* It is started with all that was said, and with the state that it gave. Who asked on the line may be
 * told of the newest replies a moment later. */
static void check_said(struct sim *sim, const struct inquiry *asking, const struct tool_call *call)
{
    bool whole = call->said_count == asking->place_count;
    for (size_t i = 0; whole && i < asking->place_count; i++) {
        bool later = !asking->parted && !call->said[i].reply.action.len;
        whole = later || same_reply(&asking->places[i], &call->said[i].reply);
        if (asking->parted && !asking->places[i].action.len)
            broken(sim, "%.*s starts again before all its questions have a reply",
                   STR_ARG(call->call_id));
    }
    if (!whole) broken(sim, "%.*s is not told what was said", STR_ARG(call->call_id));
    if (!str_eq(asking->state, call->state))
        broken(sim, "%.*s gets another state than it gave", STR_ARG(call->call_id));
}

void asking_take_off(struct sim *sim, struct tool_call *call)
{
    struct deed *deed = deed_of(sim, call->call_id);
    struct inquiry *asking = &deed->asking;
    if (deed->tool_runs == 1) decide(sim, asking);
    check_said(sim, asking, call);
    deed->dead = !sim->calm && one_in(&sim->asking, sim->gone);
    bool repeated = deed->tool_runs > deed->starts && asking->place_count;
    if (repeated) count(sim, asking->parted ? PARTED_REPEATED : LINE_CRASHED);
    if (deed->tool_runs > 1 && one_in(&sim->asking, 6))
        asking->questions[below(&sim->asking, LINE_ASKED_MAX)] = below(&sim->asking, 3);
}

void asking_attempt(struct sim *sim, struct tool_call *call)
{
    struct inquiry *asking = &deed_of(sim, call->call_id)->asking;
    if (one_in(&sim->asking, 6))
        asking->questions[below(&sim->asking, LINE_ASKED_MAX)] = below(&sim->asking, 3);
}

/* The shell saves it, or says no at once. */
static void ask_line(struct sim *sim, struct tool_call *call, unsigned question)
{
    unsigned first = call->place++;
    trace(sim, "%.*s asks: %u, %.*s", STR_ARG(call->call_id), first,
          STR_ARG(questions[question].message));
    call->waiting[first] = true;
    call->waiting_count++;
    call->asking = true;
    call->on_ask(call->arg, &(struct tool_asked){
                                .questions = &questions[question], .count = 1, .first = first});
    call->asking = false;
}

/* The reply may be known from an earlier start. */
static bool knows(const struct tool_call *call, unsigned question)
{
    if (call->place >= call->said_count || call->state.len) return false;
    const struct tool_said *said = &call->said[call->place];
    return said->reply.action.len && str_eq(said->question.message, questions[question].message);
}

static void part(struct sim *sim, struct tool_call *call)
{
    struct chance *chance = &sim->asking;
    unsigned first = sim->crowd ? 0 : below(chance, COUNT(questions) - 1);
    unsigned round = round_of(call) + 1;
    bool endless = deed_of(sim, call->call_id)->asking.rounds == ENDLESS;
    bool nothing = endless ? !one_in(chance, 6) : one_in(chance, 8);
    size_t asked = nothing ? 0 : 1 + below(chance, COUNT(questions) - first);
    trace(sim, "%.*s parts with %zu questions", STR_ARG(call->call_id), asked);
    air_land(call);
    call->on_ask(call->arg, &(struct tool_asked){.questions = &questions[first],
                                                 .count = asked,
                                                 .state = arena_printf(&call->arena, "s%u", round),
                                                 .ended = true});
    air_free(call);
}

bool asking_event(struct sim *sim, struct tool_call *call)
{
    struct chance *chance = &sim->asking;
    const struct deed *deed = deed_of(sim, call->call_id);
    const struct inquiry *asking = &deed->asking;
    bool line = (asking->how == ASKS_ON_THE_LINE || asking->how == ASKS_BOTH) &&
                call->place < asking->count;
    bool steady = sim->calm || sim->crowd || asking->rounds == ENDLESS;
    if (deed->dead || asking->how == ASKS_NEVER || (!steady && one_in(chance, 6))) return false;
    if (line) {
        unsigned question = asking->questions[call->place];
        bool another = !sim->calm && one_in(chance, 6);
        if (knows(call, question))
            call->told[call->place++] = true;
        else
            ask_line(sim, call, question);
        if (another) ask_line(sim, call, QUESTION_SECRET - 1);
        return true;
    }
    bool waits = call->waiting_count && !one_in(chance, 4);
    if (waits || !asking_holds_back(call)) return false;
    part(sim, call);
    return true;
}

void asking_told(struct sim *sim, struct tool_call *call, size_t at, const struct tool_reply *reply)
{
    const struct inquiry *asking = &deed_of(sim, call->call_id)->asking;
    trace(sim, "%.*s hears: %zu %.*s", STR_ARG(call->call_id), at, STR_ARG(reply->action));
    if (at >= PLACES_MAX || call->told[at] || !call->waiting[at]) {
        broken(sim, "%.*s hears a reply twice", STR_ARG(call->call_id));
        return;
    }
    bool said = at < asking->place_count && same_reply(&asking->places[at], reply);
    if (!said && !call->asking) broken(sim, "%.*s hears what nobody said", STR_ARG(call->call_id));
    call->told[at] = true;
    call->waiting[at] = false;
    call->waiting_count--;
}

static bool is_open(struct sim *sim, str interaction_id)
{
    const struct interaction *row =
        interaction_id.len ? world_interaction(sim, interaction_id) : NULL;
    return row && row->status == INTERACTION_OPEN;
}

/* Everything that could be handed over was: what it still waits for has to be open. */
void asking_stalled(struct sim *sim, const struct tool_call *call)
{
    const struct deed *deed = deed_of(sim, call->call_id);
    const struct inquiry *asking = deed ? &deed->asking : NULL;
    for (size_t i = 0; asking && i < PLACES_MAX; i++)
        if (call->waiting[i] &&
            (i >= asking->place_count || !is_open(sim, asking->places[i].interaction_id)))
            broken(sim, "question %zu of %.*s waits for a reply, and nobody is asked", i,
                   STR_ARG(call->call_id));
}

/* ---- people's side ---- */

/* Chance alone would seldom stop a run that waits for this. */
bool asking_stops(struct sim *sim)
{
    bool open = false;
    for (size_t i = 0; i < sim->world.interaction_count; i++) {
        const struct interaction *row = &sim->world.interactions[i];
        open = open || (row->status == INTERACTION_OPEN && asking_of_tool(row));
    }
    return open && !sim->calm && one_in(&sim->asking, 25);
}

static struct place *place_of(struct inquiry *asking, str interaction_id)
{
    for (size_t i = 0; i < asking->place_count; i++)
        if (interaction_id.len && str_eq(asking->places[i].interaction_id, interaction_id))
            return &asking->places[i];
    return NULL;
}

/* What the tool gets of an answer that is one. */
static str accepted(const struct place *place, str answer)
{
    if (str_find(answer, STR("\"n\":3")) >= 0) return STR("{\"who\":\"me\",\"n\":3}");
    if (str_find(answer, STR("\"fields\"")) >= 0) return STR("{\"who\":\"me\"}");
    return place->question >= 0 && questions[place->question].schema.len ? STR("{}") : STR_EMPTY;
}

static void hear_reply(struct place *place, const struct resolution *r)
{
    bool yes =
        str_find(r->answer, STR("[\"c1\"]")) >= 0 || str_find(r->answer, STR("\"fields\"")) >= 0;
    bool gone = r->decision == DECISION_CANCEL || r->decision == DECISION_EXPIRE;
    bool accepts = r->decision == DECISION_ANSWER && yes;
    place->action = gone ? STR("cancel") : accepts ? STR("accept") : STR("decline");
    if (accepts) place->content = accepted(place, r->answer);
}

static void count_reply(struct sim *sim, const struct inquiry *asking, const struct place *place,
                        const struct resolution *r)
{
    bool yes = str_eq(place->action, STR("accept"));
    if (asking->parted && asking->crashes != sim->coverage->crashes) count(sim, PARTED_CRASHED);
    if (asking->parted)
        count(sim, yes ? PARTED_ANSWERED : PARTED_DECLINED);
    else if (r->decision == DECISION_CANCEL)
        count(sim, LINE_CANCELLED);
    else if (r->decision == DECISION_EXPIRE)
        count(sim, LINE_LAPSED);
    else
        count(sim, yes ? LINE_ANSWERED : LINE_DECLINED);
}

static void count_away(struct sim *sim, const struct inquiry *asking, enum decision decision)
{
    if (asking->crashes != sim->coverage->crashes) count(sim, AWAY_CRASHED);
    count(sim, decision == DECISION_CONTINUE  ? AWAY_CONTINUE
               : decision == DECISION_GIVE_UP ? AWAY_GIVE_UP
                                              : AWAY_DROPPED);
}

static void hear(struct sim *sim, const struct input *input)
{
    for (size_t i = 0; i < input->resolution_count; i++) {
        const struct resolution *r = &input->resolutions[i];
        const struct interaction *row = world_interaction(sim, r->interaction_id);
        if (!row || row->status != INTERACTION_OPEN || !asking_of_tool(row)) continue;
        struct inquiry *asking = &deed_of(sim, row->call_id)->asking;
        if (row->type == INTERACTION_CONNECTION_LOST) {
            count_away(sim, asking, r->decision);
            continue;
        }
        struct place *place = place_of(asking, row->id);
        if (!place) {
            broken(sim, "%.*s is a question of no place", STR_ARG(row->id));
            return;
        }
        hear_reply(place, r);
        count_reply(sim, asking, place, r);
    }
}

static bool all_said(const struct inquiry *asking)
{
    bool all = true;
    for (size_t i = 0; i < asking->place_count; i++) all = all && asking->places[i].action.len;
    return all;
}

enum call_state asking_state(struct sim *sim, const struct call *before)
{
    if (before->state != CALL_WAITING) return before->state;
    return all_said(&deed_of(sim, before->call_id)->asking) ? CALL_APPROVED : CALL_WAITING;
}

/* ---- what a step does ---- */

static const struct call *changed(const struct outcome *o, str call_id)
{
    for (size_t i = 0; i < o->call_count; i++)
        if (str_eq(o->calls[i].call.call_id, call_id)) return &o->calls[i].call;
    return NULL;
}

/* It waits for somebody, or has its reply: nobody is asked a second time. */
static bool known(struct sim *sim, const struct inquiry *asking, size_t at, int question)
{
    if (at >= asking->place_count || asking->places[at].question != question) return false;
    return asking->places[at].action.len || is_open(sim, asking->places[at].interaction_id);
}

static int question_of(const struct tool_question *asked)
{
    for (size_t i = 0; i < COUNT(questions); i++)
        if (str_eq(questions[i].message, asked->message)) return (int)i;
    return -1;
}

struct expected {
    size_t asked, added;
    bool cancelling;
    size_t open; /* before this step asks */
};

static void expect_question(struct sim *sim, struct inquiry *asking, size_t at, int question,
                            const struct outcome *o, struct expected *e)
{
    if (asking->place_count > at) count(sim, LINE_OTHER);
    if (asking->place_count > at) asking->place_count = at;
    while (asking->place_count < at) /* those were told no before anything was saved */
        asking->places[asking->place_count++] =
            (struct place){.question = -1, .action = STR("decline")};
    struct place *place = &asking->places[asking->place_count++];
    *place = (struct place){.question = question};
    e->added++;
    bool secret = question == QUESTION_SECRET, full = e->open + e->asked >= QUESTIONS_OPEN_MAX;
    if (secret) count(sim, LINE_REFUSED);
    if (full && !secret && !e->cancelling) count(sim, LINE_TOO_MANY);
    if (e->cancelling) {
        place->action = STR("cancel");
    } else if (secret || full) {
        place->action = STR("decline");
    } else if (e->asked >= o->opened_count) {
        broken(sim, "nobody is asked what a tool wants to know");
    } else {
        const struct interaction *opened = &o->opened[e->asked++];
        place->interaction_id = keep(sim, opened->id);
        if (str_find(opened->question, questions[question].message) < 0 || !asking_of_tool(opened))
            broken(sim, "people are asked something else than the tool asks");
    }
}

/* It waits for all its replies, or starts again at once; but not for ever. */
static void check_parted(struct sim *sim, struct inquiry *asking, const struct tool_asked *asked,
                         const struct call *call, bool cancelling)
{
    bool endless = !cancelling && call && call->attempts >= QUESTIONS_CALL_MAX;
    asking->parted = true;
    asking->state = keep(sim, asked->state);
    if (asked->count > 1) count(sim, PARTED_SEVERAL);
    if (!asked->count) count(sim, PARTED_NONE);
    if (endless) count(sim, PARTED_ENDLESS);
    enum call_state state = endless            ? CALL_FAILED
                            : cancelling       ? CALL_CANCELLED
                            : all_said(asking) ? CALL_APPROVED
                                               : CALL_WAITING;
    if (!call || call->state != state)
        broken(sim, "a call that ended with its questions is not %s", call_state_name(state));
}

static void check_asked(struct sim *sim, const struct view *view, const struct input *input,
                        const struct outcome *o)
{
    struct inquiry *asking = &deed_of(sim, input->call_id)->asking;
    const struct call *call = changed(o, input->call_id);
    const struct tool_asked *asked = input->asked;
    struct expected e = {.cancelling = view->cancelling,
                         .open = view->open.count - o->settled_count};
    asking->crashes = sim->coverage->crashes;
    if (asked->ended) asking->place_count = 0;
    bool over = asked->ended && call && call_state_settled(call->state); /* nobody is asked */
    for (size_t i = 0; !over && i < asked->count && !sim->broken[0]; i++) {
        size_t at = asked->first + i;
        int question = question_of(&asked->questions[i]);
        if (known(sim, asking, at, question))
            count(sim, LINE_AGAIN);
        else
            expect_question(sim, asking, at, question, o, &e);
    }
    if (o->opened_count > e.asked) broken(sim, "somebody is asked twice for the same place");
    if (asked->ended) {
        check_parted(sim, asking, asked, call, view->cancelling);
    } else if (e.added) {
        asking->parted = false;
        asking->state = STR_EMPTY; /* it has had that of an earlier end */
        if (!call || call->state != CALL_STARTED) broken(sim, "who asks on the line has left it");
    } else if (o->fact_count || o->call_count) {
        broken(sim, "a question that is known changed something");
    }
}

static void check_away(struct sim *sim, const struct view *view, const struct input *input,
                       const struct outcome *o)
{
    const struct call *call = changed(o, input->call_id);
    const struct tool *tool = call ? tools_find(&sim->house.tools, call->tool) : NULL;
    deed_of(sim, input->call_id)->asking.crashes = sim->coverage->crashes;
    bool asks = o->opened_count == 1 && o->opened[0].type == INTERACTION_CONNECTION_LOST &&
                str_eq(o->opened[0].call_id, input->call_id) &&
                str_eq(o->opened[0].metadata, STR("{\"cause\":\"tool\"}"));
    if (view->cancelling ? !call || call->state != CALL_CANCELLED || o->opened_count
                         : !call || call->state != CALL_WAITING || !asks)
        broken(sim, "a server that stays away, and nobody is asked");
    if (tool && !tool->holds) broken(sim, "people are asked about a tool of our own");
}

/* The last of its questions that was open. */
static const struct place *open_place(struct sim *sim, const struct inquiry *asking)
{
    for (size_t i = asking->place_count; i > 0; i--)
        if (is_open(sim, asking->places[i - 1].interaction_id)) return &asking->places[i - 1];
    return NULL;
}

static void check_lost(struct sim *sim, const struct input *input, const struct outcome *o)
{
    const struct deed *deed = deed_of(sim, input->call_id);
    const struct place *place = open_place(sim, &deed->asking);
    for (size_t i = 0; i < o->opened_count; i++) {
        str metadata = o->opened[i].metadata;
        if (o->opened[i].type != INTERACTION_UNCERTAIN) continue;
        if (!place ? !str_eq(metadata, STR("{}"))
                   : str_find(metadata, questions[place->question].message) < 0)
            broken(sim, "what the tool was asking is not told: %.*s", STR_ARG(metadata));
        if (place) count(sim, deed->flown_lost ? LINE_LOST : LINE_UNCERTAIN);
    }
}

/* Questions that lapse, and those that end with the run. */
static void check_settled(struct sim *sim, const struct view *view, const struct input *input,
                          const struct outcome *o)
{
    for (size_t i = 0; i < o->settled_count; i++) {
        const struct interaction *row = &o->settled[i];
        if (!asking_of_tool(row)) continue;
        struct place *place = place_of(&deed_of(sim, row->call_id)->asking, row->id);
        bool started = false;
        for (size_t j = 0; j < view->calls.count; j++)
            started = started || (str_eq(view->calls.rows[j].call_id, row->call_id) &&
                                  view->calls.rows[j].state == CALL_STARTED);
        if (row->status == INTERACTION_SUPERSEDED && place) {
            place->closed = true;
            if (input->kind == INPUT_RESULT) count(sim, LINE_IMPATIENT);
        }
        if (input->kind != INPUT_CANCEL) continue;
        if (row->type == INTERACTION_CONNECTION_LOST)
            count(sim, AWAY_STOPPED);
        else
            count(sim, started ? LINE_STOPPED : PARTED_STOPPED);
        if (place) place->action = STR("cancel");
    }
}

/* The row tells the same as the places. */
static void check_row(struct sim *sim, const struct call *call)
{
    struct asked asked;
    const struct inquiry *asking = &deed_of(sim, call->call_id)->asking;
    if (asked_parse(&sim->scratch, call->asked, &asked)) {
        broken(sim, "the questions of %.*s cannot be read", STR_ARG(call->call_id));
        return;
    }
    bool same = asked.count == asking->place_count && str_eq(asked.state, asking->state);
    for (size_t i = 0; same && i < asked.count; i++)
        same = same_reply(&asking->places[i], &asked.rows[i].said.reply) &&
               str_eq(asking->places[i].interaction_id, asked.rows[i].interaction_id);
    if (!same)
        broken(sim, "the row of %.*s has other questions and replies: %.*s", STR_ARG(call->call_id),
               STR_ARG(call->asked));
}

void asking_check(struct sim *sim, const struct view *view, const struct input *input,
                  const struct outcome *o)
{
    if (input->kind == INPUT_RESOLVE) hear(sim, input);
    if (input->kind == INPUT_LOST) check_lost(sim, input, o);
    if (input->kind == INPUT_AWAY) check_away(sim, view, input, o);
    check_settled(sim, view, input, o);
    if (input->kind == INPUT_ASKED) check_asked(sim, view, input, o);
    for (size_t i = 0; i < o->call_count && !sim->broken[0]; i++)
        if (!call_state_settled(o->calls[i].call.state)) check_row(sim, &o->calls[i].call);
}

/* Of a call that has questions open: all of them stand in places, and none is missing. */
void asking_check_rows(struct sim *sim, const struct call *call, size_t open)
{
    const struct inquiry *asking = &deed_of(sim, call->call_id)->asking;
    size_t found = 0;
    for (size_t i = 0; i < asking->place_count; i++) {
        const struct place *place = &asking->places[i];
        bool waits = is_open(sim, place->interaction_id);
        found += waits;
        if (!place->action.len && !place->closed && !waits)
            broken(sim, "question %zu of %.*s has no reply and is not open", i,
                   STR_ARG(call->call_id));
    }
    if (found != open) broken(sim, "%zu questions are open, %zu are of a place", open, found);
    if (call->state != CALL_STARTED && !(call->state == CALL_WAITING && asking->parted))
        broken(sim, "a call that is %s asks something", call_state_name(call->state));
}

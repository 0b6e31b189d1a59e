/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake model. What it says in a turn depends on the seed and the number of the turn alone, so a
 * turn that was lost is said again in the same words; what the installation is like decides how its
 * arguments look. In deliver it mostly gives words, and sometimes calls nobody offered.
 */
#include "sim.h"

static const char *const words[] = {
    "a",  "hello ", "\xe5\xa5\xbd", "\xf0\x9f\x98\x80", "\"",
    "\\", "\n",     "\x01",         "\xe2\x80\xa8",     "}]",
};

static unsigned weighted(struct chance *chance, const unsigned *weights, size_t count)
{
    unsigned total = 0, at;
    for (size_t i = 0; i < count; i++) total += weights[i];
    at = below(chance, total);
    for (size_t i = 0; i < count; i++) {
        if (at < weights[i]) return (unsigned)i;
        at -= weights[i];
    }
    return 0;
}

/* ---- calls ---- */

/* question, is it one that must be corrected */
static const struct {
    const char *args;
    bool bad;
} asks[] = {
    {"{\"question\":\"How long?\"}", false},
    {"{\"question\":\"How long?\",\"choices\":[\"1 h\",\"2 h\"]}", false},
    {"{\"question\":\"\xe5\xa4\x9a\xe9\x95\xbf\",\"choices\":[{\"label\":\"1 h\",\"description\":"
     "\"x\"},{\"label\":\"2 h\"}],\"allow_freeform\":false}",
     false},
    {"{\"question\":\"Which?\",\"choices\":[\"a\",\"b\",\"c\"],\"multi\":true}", false},
    {"{\"question\":\"Who?\",\"fields\":[{\"name\":\"who\",\"type\":\"text\"}]}", false},
    {"{\"question\":\"  \"}", true},
    {"{\"choices\":[\"a\"]}", true},
};

static const struct {
    const char *args;
    bool bad;
} plans[] = {
    {"{\"steps\":[{\"content\":\"one\"}]}", false},
    {"{\"steps\":[{\"content\":\"one\",\"done_when\":\"d\"},{\"content\":\"\xe4\xba\x8c\"}]}",
     false},
    {"{\"steps\":[{\"content\":\"one\"},{\"content\":\" two \"},{\"content\":\"three\"}]}", false},
    {"{\"steps\":[]}", true},
    {"{\"steps\":\"none\"}", true},
};

static const struct {
    const char *args;
    bool bad;
} cards[] = {
    {"{\"version\":\"2.1\",\"intent\":\"message\",\"status\":\"info\",\"title\":\"A card\"}",
     false},
    {"{\"version\":\"2.1\",\"intent\":\"data\",\"status\":\"success\",\"items\":[{\"key\":\"k\","
     "\"value\":1}],\"actions\":[{\"label\":\"Go\",\"action\":{\"type\":\"tool\",\"toolId\":"
     "\"put\"}}]}",
     false},
    {"{\"version\":\"2.1\",\"intent\":\"message\",\"status\":\"info\"}",
     true}, /* nothing to show */
    {"{\"version\":\"2.1\",\"intent\":\"message\",\"status\":\"fine\",\"title\":\"x\"}", true},
    {"{\"version\":\"2.1\"", true},
};

static const char *const no_json[] = {"{\"n\":", "[1]", "\"n\"", "{\"n\":1}}", "\xff\xfe", "nul"};

static str call_args(struct sim *sim, struct chance *chance, struct speech *speech, size_t at,
                     enum fake fake)
{
    unsigned good = one_in(chance, 8) ? 1 : 0;
    size_t pick;
    switch (speech->kinds[at]) {
    case KIND_ASK:
        pick = below(chance, good ? COUNT(asks) : COUNT(asks) - 2);
        speech->bad[at] = asks[pick].bad;
        return str_c(asks[pick].args);
    case KIND_PLAN:
        pick = below(chance, good ? COUNT(plans) : COUNT(plans) - 2);
        speech->bad[at] = plans[pick].bad;
        return str_c(plans[pick].args);
    case KIND_NO_JSON:
        speech->bad[at] = true;
        return str_c(no_json[below(chance, COUNT(no_json))]);
    case KIND_BAD:
        return fake_args(sim, chance, fake, true);
    default:
        return fake_args(sim, chance, fake, false);
    }
}

static void add_call(struct sim *sim, struct chance *chance)
{
    struct speech *speech = &sim->process.speech;
    size_t at = speech->call_count++;
    enum call_kind kind = (enum call_kind)weighted(chance, sim->mood.calls, COUNT(sim->mood.calls));
    enum fake fake = (enum fake)weighted(chance, sim->mood.tools, FAKE_COUNT);
    speech->kinds[at] = kind;
    speech->bad[at] = false;
    str name = str_c(fake_name(fake));
    if (kind == KIND_ASK) name = tool_ask_user.name;
    if (kind == KIND_PLAN) name = tool_submit_plan.name;
    if (kind == KIND_NO_TOOL) name = STR("nobody");
    speech->calls[at] = (struct turn_call){
        .provider_id = arena_printf(&sim->life, "p%zu", at),
        .name = name,
        .args = call_args(sim, chance, speech, at, fake),
    };
}

/* ---- turns ---- */

static bool only_words(struct sim *sim, struct chance *chance, enum node node)
{
    if (sim->calm) return true;
    if (node == NODE_DELIVER) return !one_in(chance, 8);
    return one_in(chance, sim->mood.text);
}

/* A planner begins with its plan. */
static void lead_with_plan(struct sim *sim, struct chance *chance, const struct state *state)
{
    struct speech *speech = &sim->process.speech;
    bool planner = sim->mood.calls[KIND_PLAN] > 2 && !state->plan.count;
    if (!planner || !speech->call_count || one_in(chance, 4)) return;
    size_t at = below(chance, (unsigned)speech->call_count);
    speech->kinds[at] = KIND_PLAN;
    speech->bad[at] = false;
    speech->calls[at].name = tool_submit_plan.name;
    speech->calls[at].args = str_c(plans[below(chance, 3)].args);
}

/* Some turns show a card, alone or in the place of a call; some two, of which one is too many. */
static void show_cards(struct sim *sim, uint32_t turn)
{
    enum { STREAM = 2 * 1000 * 1000 }; /* of chance: the rest of the life stays as it is */
    struct chance chance = chance_from(sim->scenario.seed, sim->run_number, STREAM + turn);
    struct speech *speech = &sim->process.speech;
    if (sim->drill.on || sim->calm || !one_in(&chance, 6)) return;
    if (!speech->call_count) add_call(sim, &chance);
    for (unsigned n = 1 + one_in(&chance, 4); n; n--) {
        size_t at = below(&chance, (unsigned)speech->call_count);
        size_t pick = below(&chance, one_in(&chance, 4) ? COUNT(cards) : 2);
        speech->kinds[at] = KIND_CARD;
        speech->bad[at] = cards[pick].bad;
        speech->calls[at].name = tool_show_card.name;
        speech->calls[at].args = str_c(cards[pick].args);
    }
}

/* If the client has tools, some turns call them, or one that it does not have. */
static void call_fronts(struct sim *sim, uint32_t turn)
{
    enum { STREAM = 4 * 1000 * 1000 }; /* of chance, as above */
    struct chance chance = chance_from(sim->scenario.seed, sim->run_number, STREAM + turn);
    struct speech *speech = &sim->process.speech;
    if (!sim->client.brings || sim->calm || !one_in(&chance, 2)) return;
    if (!speech->call_count) add_call(sim, &chance);
    for (unsigned n = 1 + below(&chance, 3); n; n--) {
        size_t at = below(&chance, (unsigned)speech->call_count);
        bool wrong = one_in(&chance, 10);
        str name = client_tool(&chance);
        const char *args = fake_of(name) < 0 ? "{\"any\":[{}]}" : "{\"n\":1}";
        if (wrong) args = no_json[below(&chance, COUNT(no_json))];
        speech->kinds[at] = wrong ? KIND_NO_JSON : KIND_FRONT;
        speech->bad[at] = wrong;
        speech->calls[at].name = name;
        speech->calls[at].args = str_c(args);
    }
}

/* An attempt begins: this is what it will say, piece by piece. */
static void prepare(struct sim *sim, uint32_t turn)
{
    const struct state *state = &sim->world.state;
    struct chance chance = chance_from(sim->scenario.seed, sim->run_number, turn);
    struct speech *speech = &sim->process.speech;
    speech->usage = (struct model_usage){below(&chance, 60), below(&chance, 20)};
    if (one_in(&chance, 5)) speech->reasoning = str_c(words[below(&chance, COUNT(words))]);
    speech->piece_count = below(&chance, PIECES_MAX + 1);
    for (size_t i = 0; i < speech->piece_count; i++)
        speech->pieces[i] = str_c(words[below(&chance, COUNT(words))]);
    if (only_words(sim, &chance, graph_node(state))) {
        show_cards(sim, turn);
        call_fronts(sim, turn);
        return;
    }
    unsigned count = 1 + sim->drill.on + below(&chance, sim->mood.parallel);
    for (unsigned i = 0; i < count; i++) add_call(sim, &chance);
    if (sim->drill.on)
        drill_calls(sim, &chance, state);
    else
        lead_with_plan(sim, &chance, state);
    show_cards(sim, turn);
    call_fronts(sim, turn);
}

/* ---- the seam ---- */

static struct model_call *start(void *model, const struct model_request *request,
                                const struct model_sink *sink, void *arg)
{
    struct sim *sim = model;
    struct speech *speech = &sim->process.speech;
    if (speech->sink) broken(sim, "the model is asked twice at a time");
    check_request_of_model(sim, request);
    *speech = (struct speech){.sink = sink, .arg = arg};
    prepare(sim, request->round);
    trace(sim, "the model is asked for turn %u", request->round);
    return (struct model_call *)(void *)speech;
}

static void cancel(struct model_call *call)
{
    struct speech *speech = (struct speech *)(void *)call;
    speech->sink = NULL;
}

const struct model_ops model_fake = {.start = start, .cancel = cancel};

/* A call is begun, and its arguments come in two pieces. */
static void say_calls(struct speech *speech)
{
    for (size_t i = 0; i < speech->call_count; i++) {
        const struct turn_call *call = &speech->calls[i];
        size_t half = call->args.len / 2;
        speech->sink->on_call(speech->arg, i, call->provider_id, call->name);
        speech->sink->on_args(speech->arg, i, (str){call->args.p, half});
        speech->sink->on_args(speech->arg, i, str_drop(call->args, half));
    }
    speech->calls_said = true;
}

static void end(struct sim *sim)
{
    struct speech *speech = &sim->process.speech;
    struct chance *chance = &sim->chance;
    struct fault why;
    struct model_ending ending = {.end = MODEL_DONE};
    bool spared = sim->calm || drill_spares(sim, &sim->world.state);
    if (!spared && one_in(chance, sim->mood.away))
        ending.end = MODEL_AGAIN;
    else if (!spared && one_in(chance, 60))
        ending.end = MODEL_FAILED;
    if (ending.end == MODEL_DONE)
        ending.usage = speech->usage;
    else
        fault(&why, ERR_MODEL_UNAVAILABLE, "%s", one_in(chance, 2) ? "gone" : "");
    if (ending.end != MODEL_DONE) ending.why = &why;
    TAKE(speech->sink)->on_end(speech->arg, &ending);
}

bool model_event(struct sim *sim)
{
    struct speech *speech = &sim->process.speech;
    if (!speech->sink) return false;
    if (!speech->said && speech->reasoning.len) {
        speech->sink->on_reasoning(speech->arg, speech->reasoning);
        speech->reasoning = STR_EMPTY;
    }
    if (speech->said < speech->piece_count) {
        speech->sink->on_text(speech->arg, speech->pieces[speech->said]);
        speech->said++;
        return true;
    }
    bool calls = speech->call_count && !speech->calls_said;
    if (calls) say_calls(speech);
    if (!calls || one_in(&sim->chance, 2)) end(sim);
    return true;
}

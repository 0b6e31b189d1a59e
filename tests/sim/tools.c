/* SPDX-License-Identifier: Apache-2.0
 *
 * The installation, and the world outside.
 *
 * Tools are rows of FAKES. All of them take {"n", "to"?}; the form of a tool says whether n is an
 * integer or a string, and whether the tool is there at all. Forms change at restarts, the policy of
 * the database at any moment.
 *
 * Outside, every execution is counted by its key. Whatever the agent believes, this counter knows
 * how often something happened.
 */
#include <stdio.h>
#include <string.h>

#include "base/rows.h"
#include "sim.h"
#include "tool/schema.h"

#define FAKE_ROW(fake, name, write, idempotent, verdict) {name, write, idempotent, verdict},
static const struct {
    const char *name;
    bool write, idempotent;
    int verdict; /* of the file */
} fakes[FAKE_COUNT] = {FAKES(FAKE_ROW)};
#undef FAKE_ROW

#define FORM(n, words)                                                                      \
    STR("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"" n "\"},\"to\":{\"type\":" \
        "\"string\",\"description\":\"" words "\"}},\"required\":[\"n\"],"                  \
        "\"additionalProperties\":false}")
static const str forms[FORM_GONE] = {
    [FORM_FIRST] = FORM("integer", "who"),
    [FORM_REWORDED] = FORM("integer", "who gets it"),
    [FORM_OTHER] = FORM("string", "who"),
};

int fake_of(str name)
{
    for (int i = 0; i < FAKE_COUNT; i++)
        if (str_eq(name, str_c(fakes[i].name))) return i;
    return -1;
}

const char *fake_name(enum fake fake)
{
    return fakes[fake].name;
}

bool fake_write(enum fake fake)
{
    return fakes[fake].write;
}

/* ---- the installation ---- */

static const struct schema *compile(struct sim *sim, str text)
{
    struct json *json = NULL;
    struct schema *schema = NULL;
    struct fault why = {0};
    enum err e = json_parse(&sim->life, text, &json, NULL);
    if (!e) e = schema_parse(&sim->life, json, &schema, &why);
    if (e) broken(sim, "the schema of a fake tool: %s %s", why.field, why.text);
    return schema;
}

static void build_tools(struct sim *sim)
{
    struct house *house = &sim->house;
    const struct schema *compiled[FORM_GONE];
    for (size_t i = 0; i < FORM_GONE; i++) compiled[i] = compile(sim, forms[i]);
    house->tools = (struct tools){.rows = house->rows};
    for (size_t i = 0; i < FAKE_COUNT; i++) {
        enum form form = house->forms[i];
        if (form == FORM_GONE) continue;
        struct tool *tool = &house->rows[house->tools.count];
        house->offered[house->tools.count++] = tool;
        *tool = (struct tool){
            .name = str_c(fakes[i].name),
            .pack = STR("fake"),
            .description = STR("a fake"),
            .schema = forms[form],
            .args = compiled[form],
            .write = fakes[i].write,
            .idempotent = fakes[i].idempotent,
            .holds = i != FAKE_SECRET && i != FAKE_SIGN,
            .risk = i == FAKE_SEND ? RISK_EXTERNAL : RISK_WRITE,
            .summary = i == FAKE_PUT ? STR("put {n}") : STR_EMPTY,
            .ops = &tool_fake,
            .self = &house->selves[i],
        };
        house->selves[i] = (struct fake_self){sim, (enum fake)i};
    }
    house->agent.tools = house->offered;
    house->agent.tool_count = house->tools.count;
    sim->saver.tools = &house->tools;
}

static void build_policy(struct sim *sim)
{
    static const struct policy_row file[] = {
        {STR("note"), VERDICT_ALLOW},
        {STR("kee*"), VERDICT_ALLOW},
        {STR("secret"), VERDICT_DENY},
        {STR("sign"), VERDICT_CONFIRM},
    };
    static const struct approver_row approvers[] = {{STR("sign"), STR("approver")}};
    struct house *house = &sim->house;
    house->agent.policy = (struct policy){file, COUNT(file), approvers, COUNT(approvers)};
    house->agent.policy_settings = (struct policy){.rows = house->settings_rows};
    for (size_t i = 0; i < FAKE_COUNT; i++)
        if (house->settings[i] != NO_VERDICT)
            house->settings_rows[house->agent.policy_settings.count++] =
                (struct policy_row){str_c(fakes[i].name), (enum verdict)house->settings[i]};
}

void house_build(struct sim *sim)
{
    build_tools(sim);
    build_policy(sim);
}

void house_init(struct sim *sim)
{
    static const unsigned rounds[] = {1, 2, 2, 3, 4, 6, 0};
    static const char *const locales[] = {"en", "zh-CN"};
    struct chance *chance = &sim->chance;
    struct house *house = &sim->house;
    sim->saver.binder = (struct binder){.key_id = "k1", .key = {7}};
    for (size_t i = 0; i < FAKE_COUNT; i++) house->settings[i] = NO_VERDICT;
    house->agent = (struct agent){
        .name = STR("assistant"),
        .model = {.ops = &model_fake,
                  .self = sim,
                  .provider = "fake",
                  .name = "fake",
                  .retry_ms = 4,
                  .price = {3, 7, "USD"}},
        .plan = one_in(chance, 6)   ? PLAN_NEVER
                : one_in(chance, 6) ? PLAN_ALWAYS
                                    : PLAN_AUTO,
        .ask_user = !one_in(chance, 10),
        .max_rounds = rounds[below(chance, COUNT(rounds))],
        .locale = str_c(locales[below(chance, 2)]),
        .tokens_max = one_in(chance, 8) ? 50 + below(chance, 400) : 0,
        .cost_max = one_in(chance, 8) ? 200 + below(chance, 1500) : 0,
        .active_ms_max = one_in(chance, 8) ? 200 + below(chance, 2000) : 0,
    };
    house_build(sim);
}

void house_restyle(struct sim *sim)
{
    if (drill_restyle(sim)) return;
    size_t i = below(&sim->chance, FAKE_COUNT);
    sim->house.forms[i] = (enum form)below(&sim->chance, FORM_COUNT);
    trace(sim, "restyle %s to form %d", fakes[i].name, (int)sim->house.forms[i]);
    house_build(sim);
}

void house_change_policy(struct sim *sim)
{
    size_t i = below(&sim->chance, FAKE_COUNT);
    sim->house.settings[i] = (int)below(&sim->chance, 4) - 1;
    trace(sim, "policy of %s: %d", fakes[i].name, sim->house.settings[i]);
    build_policy(sim);
}

/* ---- arguments ---- */

/* What fits the tool as it is, or would fit another form of it. */
str fake_args(struct sim *sim, struct chance *chance, enum fake fake, bool wrong)
{
    bool text = sim->house.forms[fake] == FORM_OTHER;
    const char *quote = text != wrong ? "\"" : "";
    const char *to = one_in(chance, 3) ? ", \"to\": \"\\u5f20 \\\"x\\\"\"" : "";
    return arena_printf(&sim->life, "{\"n\": %s%u%s%s}", quote, below(chance, 3), quote, to);
}

bool form_takes(enum form form, const struct json *args)
{
    const struct json *n = json_get(args, STR("n"));
    return form != FORM_GONE && n && n->type == (form == FORM_OTHER ? JSON_STRING : JSON_NUMBER);
}

/* ---- the policy, a second time ---- */

/* A grant counts under the rule that it was given under: in the settings, the file, or neither. */
static bool granted(const struct sim *sim, const int *settings, enum fake fake,
                    const struct json *args)
{
    char rule[64];
    bool set = settings[fake] != NO_VERDICT, filed = fakes[fake].verdict != NO_VERDICT;
    snprintf(rule, sizeof rule, "%s%s%s",
             set     ? "settings:"
             : filed ? "file:"
                     : "default",
             set || filed ? fakes[fake].name : "",
             strcmp(fakes[fake].name, "sign") == 0 ? "@approver" : "");
    for (size_t i = 0; i < sim->world.grant_count; i++) {
        const struct grant *grant = &sim->world.grants[i];
        if (!grant->id.len || !str_eq(grant->tool, str_c(fakes[fake].name))) continue;
        if (grant->rule.len && !str_eq(grant->rule, str_c(rule))) continue;
        if (str_eq(grant->match, STR("{}"))) return true;
        const struct json *n = json_get(args, STR("n"));
        str wanted = str_drop(grant->match, strlen("{\"n\":"));
        wanted.len--;
        if (n && str_eq(n->raw, wanted)) return true;
    }
    return false;
}

enum verdict verdict_of(const struct sim *sim, const int *settings, enum fake fake,
                        const struct json *args)
{
    int said = settings[fake] != NO_VERDICT ? settings[fake] : fakes[fake].verdict;
    if (said == NO_VERDICT) said = fakes[fake].write ? VERDICT_CONFIRM : VERDICT_ALLOW;
    if (said == VERDICT_CONFIRM && granted(sim, settings, fake, args)) said = VERDICT_ALLOW;
    return (enum verdict)said;
}

/* ---- outside ---- */

struct deed *deed_of(struct sim *sim, str call_id)
{
    for (size_t i = sim->deed_count; i > 0; i--)
        if (str_eq(sim->deeds[i - 1].call_id, call_id)) return &sim->deeds[i - 1];
    return NULL;
}

/* It happens, here and now. */
void outside_execute(struct sim *sim, struct tool_call *call)
{
    struct deed *deed = deed_of(sim, call->call_id);
    if (!deed || !deed->starts) {
        broken(sim, "%.*s was executed without a start", STR_ARG(call->call_id));
        return;
    }
    deed->executions++;
    trace(sim, "executed %.*s (%.*s), now %u times", STR_ARG(call->call_id), STR_ARG(call->tool),
          deed->executions);
    if (!str_eq(call->args, deed->start_args))
        broken(sim, "%.*s was executed with other arguments than it was started with",
               STR_ARG(call->call_id));
    if (deed->refused) broken(sim, "%.*s was executed and refused", STR_ARG(call->call_id));
    if (!call->repeatable && deed->executions > 1 + deed->retries)
        broken(sim, "%.*s was executed %u times, with %u retries", STR_ARG(call->call_id),
               deed->executions, deed->retries);
}

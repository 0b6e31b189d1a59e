/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run is between two steps: phases and their arrows, and the bytes of a snapshot.
 *
 *     {"version": 1,
 *      "common_state": {"trace_id", "user_id", "conversation_id", "task_id"?, "phase", "stage",
 *                       "plan_steps": [{"content", "done_when", "status", "by"?}], "current_step",
 *                       "step_calls"?: [{"tool", "end"}], "calls_counted"?, "max_rounds",
 *                       "round_used", "consecutive_corrections", "input_tokens", "output_tokens",
 *                       "cost"?, "currency"?, "turns", "active_ms", "leg_since", "locale"?,
 *                       "timezone"?,
 *                       "press_tool"?, "press_args"?},
 *      "interaction_ids": [], "call_ids": [], "resume": {"node", "phase", "step"}?,
 *      "context": {"from_message"}}
 *
 * Each member is a row of a table: where it stands in the document, its kind, its place in the
 * struct. Reading and writing both walk the rows, so they cannot disagree. To add a member: a row.
 * A member that no row knows is refused, for dropping it would lose a part of the run; an absent
 * one keeps its default unless the row says required.
 *
 * Snapshots from before steps had a status load: mend_plan says what they meant.
 *
 * The version is read first: bytes of another version are refused by its number, not by what else
 * differs in them.
 */
#include "agent/core/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"

/* ---- phases and stages ---- */

#define PHASE_NAME(phase, name, to) [phase] = name,
static const char *const phase_names[] = {PHASES(PHASE_NAME)};
#define PHASE_ARROWS(phase, name, to) [phase] = to,
static const unsigned phase_arrows[] = {PHASES(PHASE_ARROWS)};
#define STAGE_NAME(stage, name) [stage] = name,
static const char *const stage_names[] = {STAGES(STAGE_NAME)};
#define NODE_NAME(node, name) [node] = name,
static const char *const node_names[] = {NODES(NODE_NAME)};
#define STEP_NAME(status, name) [status] = name,
static const char *const step_names[] = {STEP_STATUSES(STEP_NAME)};

const char *phase_name(enum phase phase)
{
    assert(phase < PHASE_COUNT);
    return phase_names[phase];
}

const char *stage_name(enum stage stage)
{
    assert(stage < STAGE_COUNT);
    return stage_names[stage];
}

const char *node_name(enum node node)
{
    assert(node < NODE_COUNT);
    return node_names[node];
}

const char *step_status_name(enum step_status status)
{
    assert(status < STEP_STATUS_COUNT);
    return step_names[status];
}

bool phase_leads_to(enum phase from, enum phase to)
{
    assert(from < PHASE_COUNT && to < PHASE_COUNT);
    return phase_arrows[from] & PHASE_TO(to);
}

void state_set_phase(struct state *state, enum phase to)
{
    assert(phase_leads_to(state->phase, to));
    state->phase = to;
}

/* ---- what is used ---- */

static uint64_t add_up_to(uint64_t max, uint64_t a, uint64_t b)
{
    return b > max - a ? max : a + b;
}

static uint64_t cost_of(uint64_t tokens, uint64_t price)
{
    uint64_t cost;
    if (__builtin_mul_overflow(tokens, price, &cost) || cost > STATE_COST_MAX)
        return STATE_COST_MAX;
    return cost;
}

struct usage usage_of(struct arena *arena, const struct model_usage *tokens,
                      const struct model_price *price)
{
    uint64_t input = cost_of(tokens->input_tokens, price->input);
    uint64_t output = cost_of(tokens->output_tokens, price->output);
    bool priced = price->currency[0];
    return (struct usage){
        .input_tokens = tokens->input_tokens,
        .output_tokens = tokens->output_tokens,
        .cost = priced ? add_up_to(STATE_COST_MAX, input, output) : 0,
        .currency = priced ? arena_str(arena, str_c(price->currency)) : STR_EMPTY,
    };
}

void usage_add(struct usage *usage, const struct usage *more)
{
    usage->input_tokens = add_up_to(STATE_TOKENS_MAX, usage->input_tokens, more->input_tokens);
    usage->output_tokens = add_up_to(STATE_TOKENS_MAX, usage->output_tokens, more->output_tokens);
    usage->cost = add_up_to(STATE_COST_MAX, usage->cost, more->cost);
}

struct usage state_usage(const struct state *state)
{
    return (struct usage){state->input_tokens, state->output_tokens, state->cost, state->currency};
}

void state_add_usage(struct state *state, const struct usage *usage)
{
    struct usage sum = state_usage(state), more = *usage;
    if (!sum.currency.len) sum.currency = more.currency;
    if (!str_eq(sum.currency, more.currency)) more.cost = 0;
    usage_add(&sum, &more);
    state->input_tokens = sum.input_tokens;
    state->output_tokens = sum.output_tokens;
    state->cost = sum.cost;
    state->currency = sum.currency;
}

/* ---- rows and kinds ---- */

struct state_field {
    const char *path; /* "common_state.phase": the last word is the member's name */
    const struct kind *kind;
    size_t offset; /* in the struct that the object is read into */
    bool required;
    const struct state_field
        *fields; /* of an object, and of each object in a list; a row without path
                                   ends them */
};

struct state_reader {
    struct arena *arena;
    struct fault *reterr;
};

struct kind {
    enum err (*parse)(const struct state_reader *reader, const struct state_field *field,
                      const struct json *value, void *at);
    void (*write)(struct json_writer *w, const struct state_field *field, const void *at);
    bool (*absent)(const void *at); /* left out when written; NULL: never */
};

static str field_name(const struct state_field *field)
{
    const char *dot = strrchr(field->path, '.');
    return str_c(dot ? dot + 1 : field->path);
}

static PRINTF(3, 4) enum err state_refuse(const struct state_reader *reader,
                                          const struct state_field *field, const char *format, ...)
{
    va_list args;
    char text[128];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault_field(reader->reterr, ERR_INVALID_FIELD, field->path, "%s", text);
}

/* ---- objects ---- */

static enum err object_parse(const struct state_reader *reader, const struct state_field *object,
                             const struct json *value, void *at)
{
    if (value->type != JSON_OBJECT) return state_refuse(reader, object, "must be an object");
    uint32_t known = 0;
    for (const struct state_field *field = object->fields; field->path; field++) {
        const struct json *member = json_get(value, field_name(field));
        if (!member && field->required) return state_refuse(reader, field, "is missing");
        if (!member) continue;
        known++;
        enum err e = field->kind->parse(reader, field, member, (char *)at + field->offset);
        if (e) return e;
    }
    if (known < value->count) return state_refuse(reader, object, "has a member that is not known");
    return OK;
}

static void object_write(struct json_writer *w, const struct state_field *object, const void *at)
{
    json_object(w);
    for (const struct state_field *field = object->fields; field->path; field++) {
        const void *value = (const char *)at + field->offset;
        if (field->kind->absent && field->kind->absent(value)) continue;
        json_key(w, field_name(field));
        field->kind->write(w, field, value);
    }
    json_object_end(w);
}

static const struct kind kind_object = {.parse = object_parse, .write = object_write};

/* ---- texts ---- */

static enum err text_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, void *at)
{
    if (value->type != JSON_STRING) return state_refuse(reader, field, "must be a string");
    *(str *)at = arena_str(reader->arena, str_trim(json_text(value)));
    return OK;
}

static void text_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_string(w, *(const str *)at);
}

static bool text_absent(const void *at)
{
    return ((const str *)at)->len == 0;
}

static enum err id_parse(const struct state_reader *reader, const struct state_field *field,
                         const struct json *value, void *at)
{
    str id = STR_EMPTY;
    enum err e = text_parse(reader, field, value, &id);
    if (e) return e;
    if (!id_valid(id)) return state_refuse(reader, field, "must be an id");
    *(str *)at = id;
    return OK;
}

static enum err user_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, void *at)
{
    str user = STR_EMPTY;
    enum err e = text_parse(reader, field, value, &user);
    if (e) return e;
    if (user.len < 1 || user.len > USER_BYTES_MAX)
        return state_refuse(reader, field, "must have 1 to %d bytes", USER_BYTES_MAX);
    *(str *)at = user;
    return OK;
}

static enum err name_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, void *at)
{
    str name = STR_EMPTY;
    enum err e = text_parse(reader, field, value, &name);
    if (e) return e;
    if (!name.len) return state_refuse(reader, field, "must not be empty");
    *(str *)at = name;
    return OK;
}

static const struct kind kind_text = {.parse = text_parse, .write = text_write};
static const struct kind kind_text_optional = {
    .parse = text_parse, .write = text_write, .absent = text_absent};
static const struct kind kind_id = {.parse = id_parse, .write = text_write};
static const struct kind kind_id_optional = {
    .parse = id_parse, .write = text_write, .absent = text_absent};
static const struct kind kind_user = {.parse = user_parse, .write = text_write};
static const struct kind kind_name = {.parse = name_parse, .write = text_write};

/* ---- words from a list ---- */

static enum err word_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, const char *const *words, unsigned count,
                           unsigned *ret_word)
{
    str text = str_trim(json_text(value));
    for (unsigned i = 0; i < count; i++) {
        if (!str_eq(text, str_c(words[i]))) continue;
        *ret_word = i;
        return OK;
    }
    return state_refuse(reader, field, "is none of the words it can be");
}

static enum err phase_parse(const struct state_reader *reader, const struct state_field *field,
                            const struct json *value, void *at)
{
    unsigned word = 0;
    enum err e = word_parse(reader, field, value, phase_names, PHASE_COUNT, &word);
    if (e) return e;
    *(enum phase *)at = (enum phase)word;
    return OK;
}

static void phase_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_string(w, str_c(phase_name(*(const enum phase *)at)));
}

static enum err stage_parse(const struct state_reader *reader, const struct state_field *field,
                            const struct json *value, void *at)
{
    unsigned word = 0;
    enum err e = word_parse(reader, field, value, stage_names, STAGE_COUNT, &word);
    if (e) return e;
    *(enum stage *)at = (enum stage)word;
    return OK;
}

static void stage_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_string(w, str_c(stage_name(*(const enum stage *)at)));
}

static enum err status_parse(const struct state_reader *reader, const struct state_field *field,
                             const struct json *value, void *at)
{
    unsigned word = 0;
    enum err e = word_parse(reader, field, value, step_names, STEP_STATUS_COUNT, &word);
    if (e) return e;
    *(enum step_status *)at = (enum step_status)word;
    return OK;
}

static void status_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_string(w, str_c(step_status_name(*(const enum step_status *)at)));
}

static const char *const by_names[] = {"model"};

static enum err by_parse(const struct state_reader *reader, const struct state_field *field,
                         const struct json *value, void *at)
{
    unsigned word = 0;
    enum err e = word_parse(reader, field, value, by_names, COUNT(by_names), &word);
    if (e) return e;
    *(bool *)at = true;
    return OK;
}

static void by_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    (void)at;
    json_string(w, str_c(by_names[0]));
}

static bool by_absent(const void *at)
{
    return !*(const bool *)at;
}

static const struct kind kind_status = {.parse = status_parse, .write = status_write};
static const struct kind kind_by = {.parse = by_parse, .write = by_write, .absent = by_absent};
static const struct kind kind_phase = {.parse = phase_parse, .write = phase_write};
static const struct kind kind_stage = {.parse = stage_parse, .write = stage_write};

/* ---- numbers ---- */

static enum err number_parse(const struct state_reader *reader, const struct state_field *field,
                             const struct json *value, uint64_t max, uint64_t *ret_number)
{
    uint64_t number;
    if (json_u64(value, &number) || number > max)
        return state_refuse(reader, field, "must be an integer from 0 to %llu",
                            (unsigned long long)max);
    *ret_number = number;
    return OK;
}

static enum err u32_parse(const struct state_reader *reader, const struct state_field *field,
                          const struct json *value, void *at)
{
    uint64_t number = 0;
    enum err e = number_parse(reader, field, value, UINT32_MAX, &number);
    if (e) return e;
    *(uint32_t *)at = (uint32_t)number;
    return OK;
}

static void u32_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_number_u64(w, *(const uint32_t *)at);
}

/* No limit, written as nothing or less, becomes the default. */
static enum err rounds_parse(const struct state_reader *reader, const struct state_field *field,
                             const struct json *value, void *at)
{
    int64_t rounds;
    if (json_i64(value, &rounds) || rounds > UINT32_MAX)
        return state_refuse(reader, field, "must be an integer up to %u", UINT32_MAX);
    *(uint32_t *)at = rounds > 0 ? (uint32_t)rounds : AGENT_ROUNDS_MAX;
    return OK;
}

static enum err tokens_parse(const struct state_reader *reader, const struct state_field *field,
                             const struct json *value, void *at)
{
    return number_parse(reader, field, value, STATE_TOKENS_MAX, at);
}

static void tokens_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_number_u64(w, *(const uint64_t *)at);
}

static enum err cost_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, void *at)
{
    return number_parse(reader, field, value, STATE_COST_MAX, at);
}

static bool cost_absent(const void *at)
{
    return *(const uint64_t *)at == 0;
}

static enum err place_parse(const struct state_reader *reader, const struct state_field *field,
                            const struct json *value, void *at)
{
    uint64_t number = 0;
    enum err e = number_parse(reader, field, value, INT64_MAX, &number);
    if (e) return e;
    *(int64_t *)at = (int64_t)number;
    return OK;
}

static void place_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    json_number_i64(w, *(const int64_t *)at);
}

static bool u32_absent(const void *at)
{
    return *(const uint32_t *)at == 0;
}

static const struct kind kind_u32 = {.parse = u32_parse, .write = u32_write};
static const struct kind kind_u32_optional = {
    .parse = u32_parse, .write = u32_write, .absent = u32_absent};
static const struct kind kind_rounds = {.parse = rounds_parse, .write = u32_write};
static const struct kind kind_tokens = {.parse = tokens_parse, .write = tokens_write};
static const struct kind kind_cost = {
    .parse = cost_parse, .write = tokens_write, .absent = cost_absent};
static const struct kind kind_place = {.parse = place_parse, .write = place_write};

/* ---- lists ---- */

static enum err list_check(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, uint32_t max)
{
    if (value->type != JSON_ARRAY) return state_refuse(reader, field, "must be an array");
    if (value->count > max) return state_refuse(reader, field, "has more than %u items", max);
    return OK;
}

static enum err ids_parse(const struct state_reader *reader, const struct state_field *field,
                          const struct json *value, void *at)
{
    enum err e = list_check(reader, field, value, STATE_IDS_MAX);
    if (e) return e;
    struct id_list list = {.ids = arena_array(reader->arena, value->count, sizeof *list.ids)};
    for (const struct json *item = value->child; item; item = item->next) {
        e = id_parse(reader, field, item, &list.ids[list.count++]);
        if (e) return e;
    }
    *(struct id_list *)at = list;
    return OK;
}

static void ids_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    const struct id_list *list = at;
    json_array(w);
    for (size_t i = 0; i < list->count; i++) json_string(w, list->ids[i]);
    json_array_end(w);
}

static enum err plan_parse(const struct state_reader *reader, const struct state_field *field,
                           const struct json *value, void *at)
{
    enum err e = list_check(reader, field, value, PLAN_STEPS_MAX);
    if (e) return e;
    struct plan plan = {.steps = arena_array(reader->arena, value->count, sizeof *plan.steps)};
    for (const struct json *item = value->child; item; item = item->next) {
        e = object_parse(reader, field, item, &plan.steps[plan.count++]);
        if (e) return e;
    }
    *(struct plan *)at = plan;
    return OK;
}

static void plan_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    const struct plan *plan = at;
    json_array(w);
    for (size_t i = 0; i < plan->count; i++) object_write(w, field, &plan->steps[i]);
    json_array_end(w);
}

static enum err step_calls_parse(const struct state_reader *reader, const struct state_field *field,
                                 const struct json *value, void *at)
{
    enum err e = list_check(reader, field, value, STEP_TOOLS_MAX);
    if (e) return e;
    struct step_calls list = {.rows = arena_array(reader->arena, value->count, sizeof *list.rows)};
    for (const struct json *item = value->child; item; item = item->next) {
        e = object_parse(reader, field, item, &list.rows[list.count++]);
        if (e) return e;
    }
    *(struct step_calls *)at = list;
    return OK;
}

static void step_calls_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    const struct step_calls *list = at;
    json_array(w);
    for (size_t i = 0; i < list->count; i++) object_write(w, field, &list->rows[i]);
    json_array_end(w);
}

static bool step_calls_absent(const void *at)
{
    return ((const struct step_calls *)at)->count == 0;
}

static const struct kind kind_step_calls = {
    .parse = step_calls_parse, .write = step_calls_write, .absent = step_calls_absent};
static const struct kind kind_ids = {.parse = ids_parse, .write = ids_write};
static const struct kind kind_plan = {.parse = plan_parse, .write = plan_write};

static bool resume_absent(const void *at)
{
    return ((const struct resume *)at)->node.len == 0;
}

static const struct kind kind_resume = {
    .parse = object_parse, .write = object_write, .absent = resume_absent};

/* ---- the document ---- */

#define AT(member) offsetof(struct state, member)

static const struct state_field plan_fields[] = {
    {"common_state.plan_steps.content", &kind_name, offsetof(struct plan_step, content), true, 0},
    {"common_state.plan_steps.done_when", &kind_text, offsetof(struct plan_step, done_when), 0, 0},
    {"common_state.plan_steps.status", &kind_status, offsetof(struct plan_step, status), 0, 0},
    {"common_state.plan_steps.by", &kind_by, offsetof(struct plan_step, by_model), 0, 0},
    {0},
};

static const struct state_field step_call_fields[] = {
    {"common_state.step_calls.tool", &kind_text, offsetof(struct step_call, tool), true, 0},
    {"common_state.step_calls.end", &kind_status, offsetof(struct step_call, end), true, 0},
    {0},
};

static const struct state_field common_fields[] = {
    {"common_state.trace_id", &kind_id, AT(trace_id), true, 0},
    {"common_state.user_id", &kind_user, AT(user_id), true, 0},
    {"common_state.bound_owner", &kind_text_optional, AT(bound_owner), false, 0},
    {"common_state.conversation_id", &kind_id, AT(conversation_id), true, 0},
    {"common_state.task_id", &kind_id_optional, AT(task_id), false, 0},
    {"common_state.phase", &kind_phase, AT(phase), false, 0},
    {"common_state.stage", &kind_stage, AT(stage), false, 0},
    {"common_state.plan_steps", &kind_plan, AT(plan), false, plan_fields},
    {"common_state.current_step", &kind_u32, AT(current_step), false, 0},
    {"common_state.step_calls", &kind_step_calls, AT(step_calls), false, step_call_fields},
    {"common_state.calls_counted", &kind_u32_optional, AT(calls_counted), false, 0},
    {"common_state.max_rounds", &kind_rounds, AT(max_rounds), false, 0},
    {"common_state.round_used", &kind_u32, AT(round_used), false, 0},
    {"common_state.consecutive_corrections", &kind_u32, AT(consecutive_corrections), false, 0},
    {"common_state.input_tokens", &kind_tokens, AT(input_tokens), false, 0},
    {"common_state.output_tokens", &kind_tokens, AT(output_tokens), false, 0},
    {"common_state.cost", &kind_cost, AT(cost), false, 0},
    {"common_state.currency", &kind_text_optional, AT(currency), false, 0},
    {"common_state.turns", &kind_u32, AT(turns), false, 0},
    {"common_state.active_ms", &kind_tokens, AT(active_ms), false, 0},
    {"common_state.leg_since", &kind_place, AT(leg_since), false, 0},
    {"common_state.locale", &kind_text_optional, AT(locale), false, 0},
    {"common_state.timezone", &kind_text_optional, AT(timezone), false, 0},
    {"common_state.press_tool", &kind_text_optional, AT(press_tool), false, 0},
    {"common_state.press_args", &kind_text_optional, AT(press_args), false, 0},
    {0},
};

static const struct state_field resume_fields[] = {
    {"resume.node", &kind_name, offsetof(struct resume, node), true, 0},
    {"resume.phase", &kind_phase, offsetof(struct resume, phase), true, 0},
    {"resume.step", &kind_u32, offsetof(struct resume, step), true, 0},
    {0},
};

static const struct state_field context_fields[] = {
    {"context.from_message", &kind_place, AT(from_message), false, 0},
    {0},
};

static enum err version_parse(const struct state_reader *reader, const struct state_field *field,
                              const struct json *value, void *at);
static void version_write(struct json_writer *w, const struct state_field *field, const void *at);
static const struct kind kind_version = {.parse = version_parse, .write = version_write};

static const struct state_field document_fields[] = {
    {"version", &kind_version, 0, true, 0}, /* first: nothing else is read before it */
    {"common_state", &kind_object, 0, true, common_fields},
    {"interaction_ids", &kind_ids, AT(interaction_ids), false, 0},
    {"call_ids", &kind_ids, AT(call_ids), false, 0},
    {"resume", &kind_resume, AT(resume), false, resume_fields},
    {"context", &kind_object, 0, false, context_fields},
    {0},
};

static const struct state_field document = {"", &kind_object, 0, true, document_fields};

static enum err version_parse(const struct state_reader *reader, const struct state_field *field,
                              const struct json *value, void *at)
{
    (void)at;
    uint64_t version;
    if (json_u64(value, &version)) return state_refuse(reader, field, "must be a whole number");
    if (version == STATE_VERSION) return OK;
    return state_refuse(reader, field, "%llu is not known to this program, which knows %d",
                        (unsigned long long)version, STATE_VERSION);
}

static void version_write(struct json_writer *w, const struct state_field *field, const void *at)
{
    (void)field;
    (void)at;
    json_number_u64(w, STATE_VERSION);
}

/* A snapshot from before steps had a status has none: those behind the current one had ended, and
 * were called done. Of the calls in it those of the last turn are known, if they were not all shown;
 * then they belong to the running step. New ones have counted the turn of the plan itself at least. */
static void mend_plan(struct state *state)
{
    struct plan *plan = &state->plan;
    for (size_t i = 0; i < plan->count && i <= state->current_step; i++)
        if (plan->steps[i].status == STEP_PENDING)
            plan->steps[i].status = i < state->current_step ? STEP_DONE : STEP_RUNNING;
    if (!plan->count || state->calls_counted || !state->round_used) return;
    state->calls_counted = state->round_used - (state->call_ids.count > 0);
}

/* Steps before the current one have ended, that one runs, the others are to come. */
static bool step_fits(const struct state *state, size_t step)
{
    enum step_status status = state->plan.steps[step].status;
    if (step == state->current_step) return status == STEP_RUNNING;
    if (step > state->current_step) return status == STEP_PENDING;
    return status == STEP_DONE || status == STEP_FAILED || status == STEP_REJECTED;
}

static enum err check_plan(const struct state *state, struct fault *reterr)
{
    for (size_t i = 0; i < state->plan.count; i++) {
        const struct plan_step *step = &state->plan.steps[i];
        if (!step_fits(state, i))
            return fault_field(reterr, ERR_INVALID_FIELD, "common_state.plan_steps.status",
                               "is not one that this step can have");
        if (step->by_model && step->status != STEP_DONE)
            return fault_field(reterr, ERR_INVALID_FIELD, "common_state.plan_steps.by",
                               "belongs to a step that is done");
    }
    for (size_t i = 0; i < state->step_calls.count; i++) {
        enum step_status end = state->step_calls.rows[i].end;
        if (end != STEP_DONE && end != STEP_FAILED && end != STEP_REJECTED)
            return fault_field(reterr, ERR_INVALID_FIELD, "common_state.step_calls.end",
                               "is not how a call ends");
    }
    return OK;
}

/* What no single member can say. */
static enum err check_whole(const struct state *state, struct fault *reterr)
{
    bool interrupted = state->phase == PHASE_INTERRUPTED;
    if (state->phase == PHASE_DONE)
        return fault_field(reterr, ERR_INVALID_FIELD, "common_state.phase",
                           "is done, and such a run has no snapshot");
    if (state->currency.len >= sizeof((struct model_price *)0)->currency)
        return fault_field(reterr, ERR_INVALID_FIELD, "common_state.currency", "is too long");
    if (state->current_step > state->plan.count)
        return fault_field(reterr, ERR_INVALID_FIELD, "common_state.current_step",
                           "is behind the end of the plan");
    if (interrupted && resume_absent(&state->resume))
        return fault_field(reterr, ERR_INVALID_FIELD, "resume", "is missing");
    bool ends = state->resume.phase == PHASE_DONE;
    if (!resume_absent(&state->resume) &&
        (ends || !phase_leads_to(PHASE_INTERRUPTED, state->resume.phase)))
        return fault_field(reterr, ERR_INVALID_FIELD, "resume.phase", "is not one to go on in");
    if (state->resume.step > state->plan.count)
        return fault_field(reterr, ERR_INVALID_FIELD, "resume.step",
                           "is behind the end of the plan");
    return check_plan(state, reterr);
}

void state_write(struct buf *out, const struct state *state)
{
    struct json_writer w;
    json_write_begin(&w, out);
    object_write(&w, &document, state);
}

enum err state_parse(struct arena *arena, str bytes, struct state *ret_state, struct fault *reterr)
{
    if (bytes.len > STATE_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "the snapshot has more than %d bytes",
                     STATE_BYTES_MAX);
    struct json *root;
    struct json_error why;
    if (json_parse(arena, bytes, &root, &why))
        return fault(reterr, ERR_INVALID_FIELD, "the snapshot is not JSON: %s at byte %zu",
                     why.reason, why.offset);

    struct state state = {.phase = PHASE_PLANNING, .max_rounds = AGENT_ROUNDS_MAX};
    struct state_reader reader = {.arena = arena, .reterr = reterr};
    enum err e = object_parse(&reader, &document, root, &state);
    if (e) return e;
    mend_plan(&state);
    e = check_whole(&state, reterr);
    if (e) return e;
    *ret_state = state;
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_kit.h"

#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "tool/schema.h"
#include "tool/tools.h"

#define WRITE_SCHEMA                                                                       \
    "{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"},\"start_time\":" \
    "{\"type\":\"string\"}},\"required\":[\"title\"],\"additionalProperties\":false}"
#define READ_SCHEMA "{\"type\":\"object\",\"properties\":{\"from\":{\"type\":\"string\"}}}"

static const struct policy_row file_policy[] = {
    {{"place_order", 11}, VERDICT_ALLOW},
    {{"launch", 6}, VERDICT_DENY},
};

/* ---- tools ---- */

void desk_restyle(struct desk *desk, const char *tool, const char *schema)
{
    for (size_t i = 0; i < COUNT(desk->tool_rows); i++) {
        struct tool *row = &desk->tool_rows[i];
        struct json *json = NULL;
        struct schema *compiled = NULL;
        if (!str_eq(row->name, str_c(tool))) continue;
        assert_int_equal(json_parse(&desk->arena, str_c(schema), &json, NULL), OK);
        assert_int_equal(schema_parse(&desk->arena, json, &compiled, NULL), OK);
        row->schema = str_c(schema);
        row->args = compiled;
        return;
    }
    fail_msg("there is no tool %s", tool);
}

static void lay_tools(struct desk *desk)
{
    static const struct {
        const char *name, *schema;
        bool write, idempotent;
    } rows[] = {
        {"calendar_read", READ_SCHEMA, false, false},
        {"calendar_write", WRITE_SCHEMA, true, true},
        {"place_order", WRITE_SCHEMA, true, false},
        {"launch", WRITE_SCHEMA, true, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        desk->tool_rows[i] = (struct tool){.name = str_c(rows[i].name),
                                           .write = rows[i].write,
                                           .idempotent = rows[i].idempotent,
                                           .risk = RISK_WRITE,
                                           .summary = rows[i].write ? STR("{title}") : STR_EMPTY};
        desk_restyle(desk, rows[i].name, rows[i].schema);
        desk->offered[i] = &desk->tool_rows[i];
    }
    desk->tools = (struct tools){desk->tool_rows, COUNT(rows)};
    desk->agent = (struct agent){.name = STR("assistant"),
                                 .ask_user = true,
                                 .max_rounds = 30,
                                 .policy = {.rows = file_policy, .count = COUNT(file_policy)},
                                 .tools = desk->offered,
                                 .tool_count = COUNT(rows)};
}

/* ---- the desk ---- */

static void lay_outcome(struct desk *desk, const struct outcome *o)
{
    struct view *view = &desk->view;
    view->state = o->state;
    view->leg_open = o->status != RUN_WAITING;
    view->cancelling = o->status == RUN_CANCELLING;
    view->legs += o->leg_begins;
    for (size_t i = 0; i < o->call_count; i++) {
        const struct call *call = &o->calls[i].call;
        if (o->calls[i].added && call->n == 0) view->calls.count = 0; /* another turn */
        if (o->calls[i].added) view->calls.count++;
        desk->calls[call->n] = *call;
    }
    for (size_t i = 0; i < o->settled_count; i++)
        for (size_t j = 0; j < view->open.count; j++)
            if (str_eq(desk->open[j].id, o->settled[i].id)) {
                view->open.count--;
                memmove(&desk->open[j], &desk->open[j + 1],
                        (view->open.count - j) * sizeof *desk->open);
            }
    for (size_t i = 0; i < o->opened_count; i++) desk->open[view->open.count++] = o->opened[i];
    for (size_t i = 0; i < o->grant_count; i++) desk->grants[view->grants.count++] = o->grants[i];
}

void desk_init(struct desk *desk)
{
    *desk = (struct desk){.now = 1794722770000, .binder = {.key_id = "k1", .key = {1}}};
    arena_init(&desk->arena);
    lay_tools(desk);
    graph_start(&desk->arena,
                &(struct start){.run_id = STR("r1"),
                                .task_id = STR("task_a"),
                                .owner = STR("local"),
                                .thread_id = STR("t1"),
                                .agent = STR("assistant"),
                                .model = STR("demo"),
                                .leg = 1,
                                .locale = STR("en"),
                                .now = desk->now},
                &desk->last);
    desk->view = (struct view){.thread = 1,
                               .run = 1,
                               .agent = STR("assistant"),
                               .model = STR("demo"),
                               .calls.rows = desk->calls,
                               .open.rows = desk->open,
                               .grants.rows = desk->grants};
    lay_outcome(desk, &desk->last);
}

void desk_done(struct desk *desk)
{
    arena_done(&desk->arena);
}

const struct outcome *desk_step(struct desk *desk, struct input input)
{
    desk->now += 100;
    input.now = desk->now;
    input.agent = &desk->agent;
    input.binder = &desk->binder;
    input.tools = &desk->tools;
    input.random[0] = ++desk->random;
    graph_step(&desk->arena, &desk->view, &input, &desk->last);
    if (!desk->last.ended) lay_outcome(desk, &desk->last);
    return &desk->last;
}

/* ---- inputs ---- */

const struct outcome *desk_turn(struct desk *desk, const char *text, const struct said *calls,
                                size_t count)
{
    struct turn_call *made = arena_array(&desk->arena, count, sizeof *made);
    for (size_t i = 0; i < count; i++)
        made[i] = (struct turn_call){.call_id = arena_printf(&desk->arena, "call_%zu", i + 1),
                                     .provider_id = STR("p"),
                                     .name = str_c(calls[i].tool),
                                     .args = str_c(calls[i].args)};
    return desk_step(desk, (struct input){.kind = INPUT_TURN,
                                          .turn = {.message_id = STR("m1"),
                                                   .text = str_c(text),
                                                   .calls = made,
                                                   .call_count = count,
                                                   .usage = {10, 1}}});
}

const struct outcome *desk_call(struct desk *desk, const char *tool, const char *args)
{
    return desk_turn(desk, "", &(struct said){tool, args}, 1);
}

const struct outcome *desk_settle(struct desk *desk, size_t at, struct resolution resolution)
{
    if (at >= desk->view.open.count) fail_msg("%zu are open", desk->view.open.count);
    resolution.interaction_id = arena_str(&desk->arena, desk->open[at].id);
    resolution.by = STR("local");
    resolution.via = STR("api");
    struct resolution *copy = ARENA_NEW(&desk->arena, struct resolution);
    *copy = resolution;
    return desk_step(
        desk, (struct input){.kind = INPUT_RESOLVE, .resolutions = copy, .resolution_count = 1});
}

const struct outcome *desk_answer(struct desk *desk, const char *body)
{
    struct json *json = NULL;
    struct resolution resolution = {0};
    struct fault why = {0};
    assert_int_equal(desk->view.open.count, 1);
    assert_int_equal(json_parse(&desk->arena, str_c(body), &json, NULL), OK);
    if (answer_parse(&desk->arena, &desk->open[0], json, &resolution, &why))
        fail_msg("%s: %s", body, why.text);
    return desk_settle(desk, 0, resolution);
}

const struct outcome *desk_result(struct desk *desk, const char *call_id, struct call_end end)
{
    return desk_step(
        desk, (struct input){.kind = INPUT_RESULT, .call_id = str_c(call_id), .result = end});
}

/* ---- reading ---- */

str desk_types(struct desk *desk)
{
    AUTO(buf_done) struct buf types;
    buf_init(&types, 4096);
    for (size_t i = 0; i < desk->last.fact_count; i++)
        buf_printf(&types, "%s%s", i ? " " : "", desk->last.facts[i].type);
    return arena_str(&desk->arena, buf_str(&types));
}

str desk_fact(struct desk *desk, const char *type, size_t n)
{
    for (size_t i = 0; i < desk->last.fact_count; i++)
        if (!strcmp(desk->last.facts[i].type, type) && n-- == 0) return desk->last.facts[i].data;
    fail_msg("there is no such %s", type);
    return STR_EMPTY;
}

struct call *desk_row(struct desk *desk, const char *call_id)
{
    for (size_t i = 0; i < desk->view.calls.count; i++)
        if (str_eq(desk->calls[i].call_id, str_c(call_id))) return &desk->calls[i];
    fail_msg("there is no %s", call_id);
    return NULL;
}

void expect(struct desk *desk, const char *what, const char *types, const struct part *parts)
{
    str got = desk_types(desk);
    if (!str_eq(got, str_c(types)))
        fail_msg("%s: got \"%.*s\", expected \"%s\"", what, STR_ARG(got), types);
    for (size_t i = 0; i < PARTS_MAX && parts[i].type; i++) {
        str data = desk_fact(desk, parts[i].type, 0);
        if (str_find(data, str_c(parts[i].text)) < 0)
            fail_msg("%s: no %s in %.*s", what, parts[i].text, STR_ARG(data));
    }
}

void expect_call(struct desk *desk, const char *what, const char *call_id, enum call_state state,
                 const char *error)
{
    const struct call *call = desk_row(desk, call_id);
    if (call->state != state || !str_eq(call->error, str_c(error)))
        fail_msg("%s: %s is %s (%.*s), expected %s (%s)", what, call_id,
                 call_state_name(call->state), STR_ARG(call->error), call_state_name(state), error);
}

void print_outcome(struct buf *out, const struct outcome *o)
{
    buf_printf(out, "%s%s%s\n", run_status_name(o->status), o->ended ? " ended" : "",
               o->leg_begins ? " leg" : "");
    for (size_t i = 0; i < o->fact_count; i++) {
        const struct fact *fact = &o->facts[i];
        buf_printf(out, "%s %lld ", fact->type, (long long)fact->at);
        buf_append(out, fact->run_id);
        buf_char(out, ' ');
        buf_append(out, fact->data);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < o->message_count; i++) {
        buf_printf(out, "%lld ", (long long)o->messages[i].seq);
        message_write(out, &o->messages[i]);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < o->call_count; i++) {
        const struct call *call = &o->calls[i].call;
        buf_printf(out, "%.*s %s %u ", STR_ARG(call->call_id), call_state_name(call->state),
                   call->attempts);
        buf_append(out, call->binding);
        buf_append(out, call->model_text);
        buf_char(out, '\n');
    }
    state_write(out, &o->state);
    assert_false(out->full);
}

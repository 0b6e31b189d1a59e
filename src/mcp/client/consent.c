/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that does nothing but be approved, for the questions of other agents. It runs only after a
 * person has approved it, so that it runs is the approval; run twice it says the same. It ends in
 * the next turn of the loop, since no callback may come from inside tool_start.
 *
 * `person` makes policy and grants count for nothing, and the name of the pack keeps it out of every
 * agent's list: names of packs and patterns that a configuration can write have no colon.
 */
#include "mcp/client/consent.h"

#include <stdlib.h>

#include "base/json.h"
#include "net/loop.h"
#include "tool/schema.h"

const str consent_name = {"consent", 7};

#define SCHEMA                                                                                 \
    "{\"type\":\"object\",\"properties\":{"                                                    \
    "\"action\":{\"type\":\"string\",\"minLength\":1,\"description\":\"What is to be done\"}," \
    "\"details\":{\"description\":\"What belongs to it: text or JSON\"}},"                     \
    "\"required\":[\"action\"],\"additionalProperties\":false}"

struct tool_call {
    struct loop_defer defer;
    struct loop *loop;
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
    void *arg;
};

static void say_yes(struct loop_defer *defer)
{
    struct tool_call *call = CONTAINER(defer, struct tool_call, defer);
    call->on_end(call->arg, TOOL_DONE, &(struct tool_result){.result = STR("{\"approved\":true}")});
    free(call);
}

static struct tool_call *
start(void *self, const struct tool_request *request,
      void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result), void *arg)
{
    (void)request;
    struct tool_call *call = calloc(1, sizeof *call);
    if (!call) abort();
    call->defer.fn = say_yes;
    call->loop = self;
    call->on_end = on_end;
    call->arg = arg;
    loop_defer(call->loop, &call->defer);
    return call;
}

static void cancel(struct tool_call *call)
{
    loop_defer_cancel(call->loop, &call->defer);
    free(call);
}

static void release(void *self)
{
    (void)self; /* the loop is somebody else's */
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .free = release};

struct tools consent_tools(struct arena *arena, struct loop *loop)
{
    struct tool *tool = ARENA_NEW(arena, struct tool);
    struct json *json = NULL;
    struct schema *args = NULL;
    enum err e = json_parse(arena, STR(SCHEMA), &json, NULL);
    if (!e) e = schema_parse(arena, json, &args, NULL);
    assert(!e); /* it is a literal of ours */
    *tool = (struct tool){.name = consent_name,
                          .pack = STR("mcp:internal"),
                          .description = STR("Approved by a person, and nothing more."),
                          .schema = STR(SCHEMA),
                          .args = args,
                          .write = true,
                          .idempotent = true,
                          .risk = RISK_EXTERNAL,
                          .person = true,
                          .summary = STR("{action}"),
                          .done_zh = STR("已批准：{action}"),
                          .done_en = STR("Approved: {action}"),
                          .ops = &ops,
                          .self = loop};
    return (struct tools){.rows = tool, .count = 1};
}

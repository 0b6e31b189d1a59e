/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of AG-UI: a run as one request and one stream, and what the agent can do. The name of
 * the agent is in the path.
 */
#include "agents/agents.h"
#include "base/limits.h"
#include "http/api_post_run.h"
#include "http/handlers.h"
#include "http/query.h"
#include "server/server.h"
#include "wire/agui.h"

/* NULL, and answered, if there is no agent of this name. */
static const struct agent *known_agent(struct exchange *x)
{
    const struct agent *agent = agents_find(x->server->agents, x->params[0]);
    if (!agent) exchange_error(x, ERR_NOT_FOUND, NULL);
    return agent;
}

/* ---- POST /ag-ui/{agent} ---- */

void handle_agui_post(struct exchange *x)
{
    static const char *const types[] = {"text/event-stream", "text/*", "*/*", NULL};
    struct fault why = {0};
    const struct agent *agent = known_agent(x);
    if (!agent) return;
    if (http_head_get(x->head, STR("Accept")).len && !query_accepts(x, types)) {
        fault(&why, ERR_NOT_ACCEPTABLE, "this is text/event-stream; POST /runs answers in JSON");
        exchange_error(x, ERR_NOT_ACCEPTABLE, &why);
        return;
    }
    post_run(x, agent->name, true);
}

/* ---- GET /ag-ui/{agent}/capabilities ---- */

void handle_agui_capabilities(struct exchange *x)
{
    const struct agent *agent = known_agent(x);
    if (!agent) return;
    struct agui_tool *tools = arena_array(exchange_arena(x), agent->tool_count + 1, sizeof *tools);
    for (size_t i = 0; i < agent->tool_count; i++)
        tools[i] = (struct agui_tool){.name = agent->tools[i]->name,
                                      .description = agent->tools[i]->description,
                                      .schema = agent->tools[i]->schema};
    AUTO(buf_done) struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    agui_capabilities(&out, &(struct agui_agent){.name = agent->name,
                                                 .version = STR(FERMATA_VERSION),
                                                 .tools = tools,
                                                 .tool_count = agent->tool_count,
                                                 .max_rounds = agent->max_rounds,
                                                 .active_ms_max = agent->active_ms_max});
    exchange_written(x, &out);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent: its tools, looked up. Who makes one is agents/agents.c.
 */
#include "agent/core/agent.h"

const struct tool *agent_tool(const struct agent *agent, str name)
{
    for (size_t i = 0; i < agent->tool_count; i++)
        if (str_eq(agent->tools[i]->name, name)) return agent->tools[i];
    return NULL;
}

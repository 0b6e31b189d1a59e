/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool that does nothing but be approved. What another agent wants a person's word for
 * (mcp/server/mcp_server_tools.h) becomes a call of it: the person sees the stored bytes of the call, the approval
 * is bound to them, and the call that runs then says that it was approved.
 *
 * No agent has it: its pack has a name that no configuration can choose, and whatever policy and
 * grants allow, a person decides.
 */
#ifndef MCP_CLIENT_CONSENT_H
#define MCP_CLIENT_CONSENT_H

#include "base/arena.h"
#include "tool/tool.h"

struct loop;

extern const str consent_name; /* of the tool */

/* The pack: one tool, in the arena. The loop outlives it. */
struct tools consent_tools(struct arena *arena, struct loop *loop);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent in the place of one that is not configured any more, for the runs that still name it. It
 * has no tools, its policy denies everything, and its model is away: so a run asks its person whether
 * to go on, and nothing runs. When the name is configured again, "continue" goes on with the real one.
 */
#ifndef AGENTS_MISSING_AGENT_H
#define AGENTS_MISSING_AGENT_H

#include "agent/core/agent.h"

struct loop;

/* Empty name: for whomever else. Lives until missing_agent_free; the name is copied. */
const struct agent *missing_agent_new(struct loop *loop, str name);
void missing_agent_free(const struct agent *agent); /* after the last of its calls; NULL is fine */

#endif

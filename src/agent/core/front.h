/* SPDX-License-Identifier: Apache-2.0
 *
 * Front-end tools and the context of a request: what a client brings for the model. Pure.
 *
 * A front-end tool is executed by the client that asked for the run. The model's call of one waits
 * without an interaction; whoever has its result gives it to run_resolve (save.h) as a front_result.
 * Everything here is the client's word: it is data for the model and nothing more.
 */
#ifndef AGENT_CORE_FRONT_H
#define AGENT_CORE_FRONT_H

#include "agent/core/graph.h"
#include "base/json.h"
#include "store/table/conversation.h"

/* A tool of the client that is not offered, and why, for the log. */
struct front_refusal {
    str name;        /* as the client gave it, at most TOOL_NAME_BYTES_MAX of it; may be empty */
    const char *why; /* "a tool of the server has this name" */
};

struct front_refusals {
    struct front_refusal *rows; /* the first FRONT_TOOLS_MAX of them */
    size_t count;
    size_t more; /* that are not listed */
};

/* Fill input->tools and input->context from `tools` and `context` of a RunAgentInput; input->input is
 * the caller's. What may not be offered is left out; `server` is every tool there is (saver->tools).
 * A member that is no list counts as none. */
void front_read(struct arena *arena, const struct json *body, const struct tools *server,
                struct leg_input *input, struct front_refusals *ret_refused);

/* The first part of it alone: the tools that may be offered, as the JSON of struct leg_input; empty
 * if there are none. */
str front_tools_parse(struct arena *arena, const struct json *list, const struct tools *server,
                      struct front_refusals *ret_refused);

/* The second: [{"description","value"}], of at most FRONT_CONTEXT_BYTES_MAX. */
str front_context_parse(struct arena *arena, const struct json *list);

/* The rows of leg_input.tools, as front_read wrote them. ERR_DAMAGED: it did not. */
enum err front_tools_load(struct arena *arena, str json, struct front_tools *ret_tools) MUST_USE;

/* One that may be called by this name: no tool of the server, nor of the graph, has it. NULL: none. */
const struct front_tool *front_find(const struct front_tools *front, const struct tools *server,
                                    str name);

/* Does the call wait for the client? Every other call that waits has an interaction. */
bool front_waits(const struct call *call);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of facts and of history rows. Pure: the same values give the same bytes, in the arena.
 * Texts are valid UTF-8.
 */
#ifndef AGENT_FACTS_H
#define AGENT_FACTS_H

#include "agent/state.h"
#include "store/conversation.h"

struct call;
struct start;

/* Types of facts, as the wire spells them. */
#define FACT_MESSAGE_ADDED "message.added"
#define FACT_RUN_STARTED   "run.started"
#define FACT_STEP_START    "step.start"
#define FACT_STEP_FINISH   "step.finish"
#define FACT_REASONING_END "reasoning.end"
#define FACT_TEXT_END      "text.message.end"
#define FACT_TOOL_CALL     "tool.call"
#define FACT_TOOL_RESULT   "tool.call.result"
#define FACT_REQUEST       "interaction.request"
#define FACT_RESOLVED      "interaction.resolved"
#define FACT_PLAN          "plan.updated"
#define FACT_RUN_QUEUED    "run.queued"
#define FACT_RUN_FINISHED  "run.finished"
#define FACT_RUN_ERROR     "run.error"

/* An assistant's message as its fact shows it. */
struct text_end {
    str message_id;
    str content; /* a JSON string */
    struct model_usage usage;
    bool stopped; /* a person cut it off */
};

str fact_message_added(struct arena *arena, const struct message *message);
str fact_run_started(struct arena *arena, const struct start *start);
str fact_step(struct arena *arena, enum stage stage); /* step.start and step.finish */
str fact_reasoning_end(struct arena *arena, str message_id, str content); /* content: JSON string */
str fact_text_end(struct arena *arena, const struct text_end *end);
str fact_tool_call(struct arena *arena, const struct call *call, const char *stage);
str fact_plan(struct arena *arena, const struct plan *plan, uint32_t current);

/* A call's result as its fact and its history row show it. */
struct tool_result_fact {
    const struct call *call;
    str args;    /* JSON: the call's arguments, or a string if they are no JSON */
    str content; /* the summary */
    str ref;     /* where the whole result is, if it is too large for the fact */
};
str fact_tool_result(struct arena *arena, const struct tool_result_fact *result);

/* How a leg, or a run, ended. */
struct run_finished {
    const char *outcome;
    const char *code;        /* NULL: none */
    const str *interactions; /* ids that are open */
    size_t interaction_count;
    struct model_usage usage;
};
str fact_run_finished(struct arena *arena, const struct run_finished *finished);
str fact_run_error(struct arena *arena, const char *code, str message, bool retryable);

/* {"inputTokens", "outputTokens", "cost", "currency"} */
str usage_json(struct arena *arena, const struct model_usage *usage);
str text_json(struct arena *arena, str text); /* a JSON string */

/* A history row without what is made at read time: {id, role, content, toolCalls?, metadata,
 * createdAt, usage?} */
void message_write(struct buf *out, const struct message *message);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of facts and of history rows. Pure: the same values give the same bytes, in the arena.
 * Texts are valid UTF-8.
 */
#ifndef AGENT_CORE_FACTS_H
#define AGENT_CORE_FACTS_H

#include "agent/core/state.h"
#include "store/table/conversation.h"

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
    struct usage usage;
    bool stopped; /* a person cut it off */
    str ui;       /* its card; empty: none */
    str ui_ref;   /* or where that is, if it is too large for a fact */
    str ui_hints; /* that it was made from */
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
    str ui;      /* its card; empty: none */
    str ui_ref;  /* or where that is, if it is too large for a fact */
    str ui_hints;
};
/* With the call's attachments, if it has any. */
str fact_tool_result(struct arena *arena, const struct tool_result_fact *result);

/* How a leg, or a run, ended. */
struct run_finished {
    const char *outcome;
    const char *code;        /* NULL: none */
    const str *interactions; /* ids that are open */
    size_t interaction_count;
    const str *pending; /* ids of calls that wait for the client, in their order */
    size_t pending_count;
    struct usage usage; /* of the run so far */
};
str fact_run_finished(struct arena *arena, const struct run_finished *finished);
str fact_run_error(struct arena *arena, const char *code, str message, bool retryable);

/* {"inputTokens", "outputTokens", "cost", "currency"}. The cost is a decimal number with all its
 * digits, 0.0004; without a known price it is 0 USD. */
#define USAGE_CURRENCY STR("USD")
struct json_writer;
str usage_json(struct arena *arena, const struct usage *usage);
void usage_write(struct json_writer *w, const struct usage *usage);
str text_json(struct arena *arena, str text); /* a JSON string */

/* Attachments of a message, as a row stores them, as a list for clients: each with a url, made by
 * `url` from its id and borrowed until the next one is made. */
typedef str attachment_href(void *arg, str id);
void attachments_write(struct json_writer *w, str stored, attachment_href *url, void *arg);

/* One of that list as a row stores it: {"id","mimeType","filename"?,"size","width"?,"height"?}. */
struct attachment;
void attachment_store(struct json_writer *w, const struct attachment *attachment);
/* The whole list; empty if there are none. */
str attachments_store(struct arena *arena, const struct attachment *rows, size_t count);

/* A history row without what is made at read time: {id, role, content, toolCalls?, attachments?,
 * metadata, createdAt, usage?}. An attachment's url is the plain one, which its owner may always use. */
void message_write(struct buf *out, const struct message *message);
void message_write_with(struct buf *out, const struct message *message, attachment_href *url,
                        void *arg); /* the same with other urls */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the graph: a step at work, and what its nodes share. The working copy of the calls and
 * of the open interactions is changed in place; step_close in graph.c turns what was touched into
 * the outcome.
 */
#ifndef AGENT_CORE_NODE_H
#define AGENT_CORE_NODE_H

#include "agent/core/graph.h"
#include "agent/core/plan.h"
#include "agent/core/texts.h"

struct work_call {
    struct call call;
    bool touched, added, started;
    str shown_as; /* id that its history row is to have; empty: one of ours */
};

struct step {
    struct arena *arena;
    msec now;
    const struct view *view;   /* NULL at the start of a run */
    const struct input *input; /* likewise */
    struct outcome *out;
    struct state *state;     /* of the outcome */
    struct work_call *calls; /* of the turn that is not settled yet */
    size_t call_count;
    struct interaction *open; /* that are open, as far as this step has come */
    size_t open_count;
    unsigned ids;         /* made so far */
    struct usage usage;   /* of the turn */
    str card, card_hints; /* that the model shows with its words; empty: none */
};

/* ---- graph.c ---- */
str step_id(struct step *step, const char *prefix);
str step_say(struct step *step, enum text text, str argument); /* in the run's language */
void add_fact(struct step *step, const char *type, str data);
void add_message(struct step *step, struct message message); /* row of the fact added last */
void add_audit(struct step *step, enum audit_action action, const struct interaction *interaction,
               const struct call *call, str why, str about);
void move_to_stage(struct step *step, enum stage stage);
void begin_leg(struct step *step); /* unless one is open */
void settle(struct step *step);    /* after calls or interactions have changed: what follows? */
struct work_call *find_call(struct step *step, str call_id);
/* One of the agent's tools; or the one that the run was made for and that no agent has: what another
 * agent asks a person's word for. NULL: neither. */
const struct tool *step_tool(const struct step *step, str name);
str message_metadata(struct step *step, bool stopped);

/* ---- node_turn.c ---- */
void on_turn(struct step *step);
void add_turn(struct step *step, bool stopped, str tool_calls);

/* ---- node_interrupt.c ---- */
void interrupt(struct step *step, str node, enum phase phase); /* the first of a set does it */
str current_node(const struct step *step);
void open_ask(struct step *step, struct work_call *work, const struct interaction *asked);
void open_confirm(struct step *step, struct work_call *work, const struct tool *tool,
                  const struct judgement *judged, const struct json *args);
void open_plan(struct step *step, struct work_call *work);
/* `question`: of the tool, that was open when it was lost; empty: none. */
void open_uncertain(struct step *step, struct work_call *work, str question);
void open_connection_lost(struct step *step, str reason);
void open_away(struct step *step, struct work_call *work, str reason);
void open_question(struct step *step, struct interaction asked); /* joins the set */
void close_question(struct step *step, str interaction_id);      /* superseded, if it is open */
void on_alone(struct step *step);
size_t confirms_open(const struct step *step);
bool call_intact(const struct step *step, const struct call *call); /* as its binding says */
void refuse_binding(struct step *step, struct work_call *work);
/* The rule that an approval is bound to: the judgement's, and which schema was shown. */
str confirm_rule(struct arena *arena, const struct judgement *judged, const struct tool *tool);
void on_resolve(struct step *step);
void cancel_open(struct step *step); /* all of them, as the run is cancelled */

/* ---- node_front.c ---- */
void open_front(struct step *step, struct work_call *work);
size_t fronts_open(const struct step *step); /* calls that wait for the client */
bool front_due(struct step *step);           /* the input has the result of one of them */
void end_fronts(struct step *step);

/* ---- node_execute.c ---- */
void on_start(struct step *step);
void on_result(struct step *step);
void on_lost(struct step *step);
void end_call(struct step *step, struct work_call *work, enum call_state state, const char *error,
              str text);
void end_unstarted(struct step *step, enum text text); /* calls that have not left are cancelled */
void end_started(struct step *step);  /* calls that have left, and whose end nobody will hear of */
void show_results(struct step *step); /* what has ended and was not shown becomes facts */
bool has_state(const struct step *step, enum call_state state);
bool call_ready(const struct call *call); /* may start as soon as there is room */

/* ---- node_asked.c ---- */
void on_asked(struct step *step);
void on_away(struct step *step);
bool asks_open(const struct step *step, str call_id); /* it waits for an answer to its question */
bool settle_asked(struct step *step, struct work_call *work, const struct interaction *interaction,
                  const struct resolution *r); /* false: the question is not a tool's */
void settle_away(struct step *step, struct work_call *work, const struct interaction *interaction,
                 const struct resolution *r);
/* Its questions lapse: the call has ended, or nobody knows. What was open is told in a text. */
str drop_questions(struct step *step, struct work_call *work);

/* ---- node_deliver.c ---- */
void finish_run(struct step *step, enum run_status status, const char *code);
void fail_run(struct step *step, const char *code, str message, bool retryable);
void pause_leg(struct step *step);
void deliver_text(struct step *step);
void deliver_mechanically(struct step *step, enum run_status status);
void count_calls(
    struct step *step); /* of the last turn, for the step of the plan that is running */
void on_down(struct step *step);
void on_cancel(struct step *step);
void on_damaged(struct step *step);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent as a pure function: (view, input) -> outcome, and effects(view).
 *
 * A view is a run's state with the rows that it names. No I/O, no clock, no memory but the arena
 * given: the time and 16 random bytes come with the input, and ids derive from them. Whoever has an
 * input loads the view, steps, and saves the outcome in one commit (save.h); only then are effects
 * performed. After a restart the view is loaded and asked for its effects, the same path. A step
 * that is repeated with the same view and input gives the same bytes.
 */
#ifndef AGENT_CORE_GRAPH_H
#define AGENT_CORE_GRAPH_H

#include "agent/core/agent.h"
#include "agent/core/facts.h"
#include "agent/core/interaction.h"
#include "agent/core/payload.h"
#include "agent/core/state.h"
#include "base/id.h"
#include "store/table/attachments.h"
#include "store/table/audit.h"
#include "store/table/blob_rows.h"
#include "store/table/calls.h"

/* A front-end tool: the client that asked for the run executes it. */
struct front_tool {
    str name, description;
    str schema; /* JSON, as the client gave it; empty: none */
};

struct front_tools {
    struct front_tool *rows;
    size_t count;
};

/* A run as it stands in the store. */
struct view {
    struct state state;
    int64_t thread, run;          /* rows */
    str agent, model;             /* names, as the run's row has them */
    uint32_t legs;                /* so far */
    bool leg_open;                /* the newest one has not ended */
    bool cancelling;              /* a person has stopped the run */
    struct call_list calls;       /* of the model's last turn with calls, in its order */
    struct interaction_list open; /* that it waits for */
    struct grant_list grants;     /* that may serve it */
    struct front_tools front;     /* that its client offers */
    str context; /* what its client tells: JSON as in struct leg_input; may be empty */
};

/* ---- inputs ---- */

/* One tool call of a model turn. */
struct turn_call {
    str call_id; /* ours, as previews have shown it */
    str provider_id, name;
    str args; /* as the model wrote them */
};

/* One model turn, whole. */
struct turn {
    str message_id; /* of the attempt that succeeded; empty: one is made */
    str text, reasoning;
    const struct turn_call *calls;
    size_t call_count;
    struct model_usage usage;
    str provider_data;   /* as in struct model_ending */
    str provider, model; /* that it comes from, and goes back to */
    struct model_price price;
};

enum input_kind {
    INPUT_TURN,    /* the model finished a turn */
    INPUT_DOWN,    /* the model stays away: gone after all attempts, or failed for good */
    INPUT_CANCEL,  /* the person stops the run; `turn` is what was shown so far */
    INPUT_RESOLVE, /* what the run waits for is settled, or a part: `resolutions`, `fronts` */
    INPUT_START,   /* calls that may run, and have room to, are marked as started */
    INPUT_RESULT,  /* a started call has ended: `call_id`, `result` */
    INPUT_LOST,    /* nobody knows what became of a started call: `call_id` */
    INPUT_ASKED,   /* a started call asks people something: `call_id`, `asked` */
    INPUT_AWAY,    /* a started call was not made: its server stays away, `call_id`, `why_text` */
    INPUT_SHOW,    /* results that the journal has become facts */
    INPUT_OVERDUE, /* the time of the run is used up */
    INPUT_ALONE,   /* nobody reads along any more, and the agent does not go on without */
    INPUT_DAMAGED, /* the state cannot be read, `why_text`; the view is what its rows say */
};

/* How a call ended. */
struct call_end {
    bool failed;
    str error;       /* if it failed */
    str content;     /* the tool's own text, may be empty */
    str result;      /* JSON, or empty */
    str spool;       /* file that holds the result instead; empty: none */
    str result_hash; /* of that file, 64 hex digits */
    uint64_t result_bytes;
    str ui_hints;                   /* JSON, or empty */
    str model_text;                 /* what the model sees */
    const struct attachment *files; /* that it brought along, stored; without owner, thread, time */
    size_t file_count;
};

/* What the client says of a front-end call, which is data and nothing more. */
struct front_result {
    str call_id;
    str message_id; /* of the client's tool message, if the thread has no such id; else empty */
    str text;
    bool failed; /* or refused, or never answered */
};

struct input {
    enum input_kind kind;
    msec now;
    unsigned char random[ID_RANDOM_BYTES];
    const struct agent *agent;   /* for INPUT_TURN, INPUT_START, INPUT_DOWN, INPUT_OVERDUE; may be
                                    NULL for the others, which may be stepped off the loop */
    const struct binder *binder; /* always */
    const struct tools *tools;   /* all there are; always */
    struct turn turn;
    int64_t from_message; /* where the context of that turn began; 0: nothing new is known */
    enum err why;         /* of INPUT_DOWN: ERR_MODEL_UNAVAILABLE or ERR_INTERNAL (model_error) */
    str why_text;         /* for people; empty: the title of `why`. Also of INPUT_DAMAGED */
    const struct resolution *resolutions;
    size_t resolution_count;
    const struct front_result *fronts; /* of INPUT_RESOLVE, too */
    size_t front_count;
    str call_id;
    struct call_end result;
    const struct tool_asked *asked;
    const struct payload *payloads; /* of calls to be shown, where they are made already; for the
                                       others the step makes them, and they are not stored */
    size_t payload_count;
};

/* ---- outcomes ---- */

struct call_change {
    struct call call;
    bool added;   /* a new row */
    bool started; /* by this step: whoever commits it executes it */
};

/* What a step wants stored, in one commit. Its texts are in the arena, or where those of the view
 * and of the input are. */
struct outcome {
    struct state state;
    struct fact *facts;
    size_t fact_count;
    struct message
        *messages; /* seq = index of the fact it belongs to, plus 1; saving adds the base */
    size_t message_count;
    struct call_change *calls;
    size_t call_count;
    struct interaction *opened; /* seq as of messages */
    size_t opened_count;
    struct interaction *settled; /* whose rows are open until now */
    size_t settled_count;
    str *superseded; /* calls whose approval has lapsed: their resolved confirms are superseded */
    size_t superseded_count;
    struct grant *grants;
    size_t grant_count;
    struct audit_entry *audit;
    size_t audit_count;
    struct blob_row *blobs; /* objects that history rows name; saving adds the thread */
    size_t blob_count;
    struct attachment *files; /* rows of what a call brought along; saving adds the time */
    size_t file_count;
    enum run_status status;
    bool leg_begins; /* its task id is state.task_id */
    str wire_run_id; /* not the step's: what the request that was stepped calls that leg; empty:
                        <runId>-<leg> */
    bool ended;      /* the snapshot goes */
};

/* A fresh run: its state, and the facts of its start (run.started, step.start intent). */
struct start {
    str run_id, task_id, owner, thread_id, agent, model;
    uint32_t leg;
    bool resumed;
    uint32_t max_rounds; /* 0: AGENT_ROUNDS_MAX */
    str locale, timezone;
    str press_tool, press_args; /* of a button that was pressed; empty: none was */
    int64_t from_message;       /* where the context of the run before it began */
    msec now;
};
void graph_start(struct arena *arena, const struct start *start, struct outcome *ret_outcome);

/* The state is not done. A resolution of an interaction that is not open is skipped, as is the result
 * of a call that does not wait for the client. */
void graph_step(struct arena *arena, const struct view *view, const struct input *input,
                struct outcome *ret_outcome);

/* ---- effects ---- */

/* What there is to do, the first that applies. Beside it, every call that is `started` is under way
 * somewhere; whoever finds one that is not, executes it again if that is harmless (call_repeatable)
 * and says INPUT_LOST if it is not. */
enum effect {
    EFFECT_NONE,   /* wait: for calls that are under way, for a person, or for the client */
    EFFECT_CANCEL, /* step INPUT_CANCEL */
    EFFECT_SHOW,   /* step INPUT_SHOW */
    EFFECT_START,  /* step INPUT_START */
    EFFECT_PRESS,  /* step INPUT_TURN with the call of state.press_tool, in the model's place */
    EFFECT_MODEL,  /* call the model, as graph_node says */
};
enum effect graph_effect(const struct view *view);
bool call_repeatable(const struct call *call);

/* What the model is asked for next. */
enum node graph_node(const struct state *state);

/* When the time of the run is used up, if it goes on without a pause; 0: never. */
msec graph_deadline(const struct state *state, const struct agent *agent);

/* Is a budget used up? Asked before each model call; then INPUT_OVERDUE ends the run. */
bool graph_overdue(const struct state *state, const struct agent *agent, msec now);

#endif

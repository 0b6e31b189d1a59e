/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run is between two steps, and its bytes in a snapshot.
 *
 * The phase has one writer, state_set_phase, which checks the arrow. Open interactions and calls
 * are rows elsewhere; the state holds their ids. How a run ended is not in here: the commit that
 * ends it removes its snapshot.
 */
#ifndef AGENT_CORE_STATE_H
#define AGENT_CORE_STATE_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/model.h"

/* phase, name in snapshots, where it may go */
#define PHASES(X)                                                                                 \
    X(PHASE_CHATTING, "chatting",                                                                 \
      PHASE_TO(PHASE_PLANNING) | PHASE_TO(PHASE_EXECUTING) | PHASE_TO(PHASE_INTERRUPTED) |        \
          PHASE_TO(PHASE_DONE))                                                                   \
    X(PHASE_PLANNING, "planning",                                                                 \
      PHASE_TO(PHASE_WAITING_CONFIRM) | PHASE_TO(PHASE_EXECUTING) | PHASE_TO(PHASE_INTERRUPTED) | \
          PHASE_TO(PHASE_DONE))                                                                   \
    X(PHASE_WAITING_CONFIRM, "waiting_confirm",                                                   \
      PHASE_TO(PHASE_PLANNING) | PHASE_TO(PHASE_EXECUTING) | PHASE_TO(PHASE_INTERRUPTED) |        \
          PHASE_TO(PHASE_DONE))                                                                   \
    X(PHASE_EXECUTING, "executing", PHASE_TO(PHASE_INTERRUPTED) | PHASE_TO(PHASE_DONE))           \
    X(PHASE_INTERRUPTED, "interrupted",                                                           \
      PHASE_TO(PHASE_CHATTING) | PHASE_TO(PHASE_PLANNING) | PHASE_TO(PHASE_WAITING_CONFIRM) |     \
          PHASE_TO(PHASE_EXECUTING) | PHASE_TO(PHASE_DONE))                                       \
    X(PHASE_DONE, "done", 0)

#define PHASE_TO(phase)             (1u << (phase))
#define PHASE_ENUM(phase, name, to) phase,
enum phase { PHASES(PHASE_ENUM) PHASE_COUNT };
#undef PHASE_ENUM

/* What people see of it. stage, name on the wire; their order is their index there */
#define STAGES(X)                   \
    X(STAGE_INTENT, "intent")       \
    X(STAGE_EXECUTION, "execution") \
    X(STAGE_REPORT, "report")

#define STAGE_ENUM(stage, name) stage,
enum stage { STAGES(STAGE_ENUM) STAGE_COUNT };
#undef STAGE_ENUM

/* What the model is asked for. node, name in interactions and of its prompt */
#define NODES(X)               \
    X(NODE_CHAT, "chat")       \
    X(NODE_PLAN, "plan")       \
    X(NODE_EXECUTE, "execute") \
    X(NODE_DELIVER, "deliver")

#define NODE_ENUM(node, name) node,
enum node { NODES(NODE_ENUM) NODE_COUNT };
#undef NODE_ENUM

/* What became of a step of a plan (plan.h). status, name on the wire and in snapshots */
#define STEP_STATUSES(X)         \
    X(STEP_PENDING, "pending")   \
    X(STEP_RUNNING, "running")   \
    X(STEP_DONE, "done")         \
    X(STEP_FAILED, "failed")     \
    X(STEP_REJECTED, "rejected") \
    X(STEP_SKIPPED, "skipped")

#define STEP_ENUM(status, name) status,
enum step_status { STEP_STATUSES(STEP_ENUM) STEP_STATUS_COUNT };
#undef STEP_ENUM

struct plan_step {
    str content, done_when;
    enum step_status status;
    bool by_model; /* it is done because the model says so: no call did it */
};

struct plan {
    struct plan_step *steps;
    size_t count;
};

/* How the last call of a tool ended in the running step: done, failed or rejected. */
struct step_call {
    str tool;
    enum step_status end;
};

struct step_calls {
    struct step_call *rows;
    size_t count; /* at most STEP_TOOLS_MAX */
};

struct id_list {
    str *ids;
    size_t count;
};

/* Where an interrupted run goes on; node is empty if it is not interrupted. */
struct resume {
    str node;
    enum phase phase;
    uint32_t step;
};

/* What model calls used. */
struct usage {
    uint64_t input_tokens, output_tokens;
    uint64_t cost; /* pico units of the currency, as in model.h; at most STATE_COST_MAX */
    str currency;  /* "USD"; empty: no price is known */
};

/* What a snapshot holds (RuntimeState of the source documents). */
struct state {
    str trace_id, user_id, conversation_id; /* run id, owner, thread id */
    str bound_owner;  /* whom bindings name, if the run was another's when it began; else empty */
    str task_id;      /* of the leg; empty if unknown */
    enum phase phase; /* written by state_set_phase alone */
    enum stage stage; /* the step that is open */
    struct plan plan;
    uint32_t current_step;        /* at most plan.count */
    struct step_calls step_calls; /* of the running step: plan.h */
    uint32_t calls_counted;       /* rounds whose calls are in there, or in a step before */
    uint32_t max_rounds, round_used;
    uint32_t consecutive_corrections;
    uint64_t input_tokens, output_tokens; /* of the whole run so far */
    uint64_t cost;                        /* likewise, in pico units of the currency: model.h */
    str currency;                         /* of its first turn that had a price; empty: none had */
    uint32_t turns;                       /* model calls that became facts */
    uint64_t active_ms;                   /* time worked in the legs that have ended */
    msec leg_since;                       /* when the newest leg began */
    str locale;                           /* of texts made for this run: "zh-CN" or "en" */
    str timezone;                         /* of the person: "Asia/Shanghai"; may be empty */
    str press_tool, press_args; /* the run is a button that was pressed: this call and nothing
                                   else, without a model; empty: it is not, or is no more since a
                                   person refused the call with words for the model */
    struct id_list interaction_ids, call_ids;
    struct resume resume;
    int64_t from_message; /* context begins here; only grows */
};

enum { STATE_VERSION = 1 };

/* Token counts stay integers in every JSON reader. */
#define STATE_TOKENS_MAX (((uint64_t)1 << 53) - 1)
/* A cost fits into a row of the database: nine millions of any currency. */
#define STATE_COST_MAX ((uint64_t)INT64_MAX)

const char *phase_name(enum phase phase);
const char *stage_name(enum stage stage);
const char *node_name(enum node node);
const char *step_status_name(enum step_status status);

bool phase_leads_to(enum phase from, enum phase to);
void state_set_phase(struct state *state, enum phase to); /* asserts that the arrow exists */

/* Tokens with what they cost. */
struct usage usage_of(struct arena *arena, const struct model_usage *tokens,
                      const struct model_price *price);
/* Two of one currency together. Each member stays at its maximum once there. */
void usage_add(struct usage *usage, const struct usage *more);

/* Count a model call. A run has one currency, that of its first turn with a price: what a turn in
 * another one costs stands with its message alone, for it cannot be added. */
void state_add_usage(struct state *state, const struct usage *usage);
struct usage state_usage(const struct state *state); /* of the whole run so far */

/* At most STATE_BYTES_MAX, or nothing can read it: give such a buf and ask `full`. */
void state_write(struct buf *out, const struct state *state);

/* Snapshot bytes are untrusted: ERR_INVALID_FIELD names what is wrong, also a version nobody knows.
 * The arena holds the texts. */
enum err state_parse(struct arena *arena, str bytes, struct state *ret_state, struct fault *reterr)
    MUST_USE;

#endif

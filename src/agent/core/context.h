/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model is asked: the prompt of the node, the conversation, the tools. Pure.
 *
 * The conversation is made from history rows: people's and the model's words, its calls and their
 * results. A call of this run shows what its row keeps for the model, one of an earlier run its
 * summary. A call never stands without its result nor a result without its call; an answer that a
 * person typed as a message is there as the result it became, not twice; a turn that was edited and
 * sent again is left out. What does not fit into the model's window goes, the oldest whole turns first
 * (window.h), and the system text says so.
 *
 * A request is a function of what is stored: asked for again, also by another process, it has the same
 * bytes. Its time is that of the leg.
 *
 * Files that people sent are told in a line of their message, but for those whose bytes the model is
 * to have: pictures, if it takes them, and texts. They are listed, and pictures.h puts them in.
 */
#ifndef AGENT_CORE_CONTEXT_H
#define AGENT_CORE_CONTEXT_H

#include "agent/core/agent.h"
#include "agent/core/files.h"
#include "agent/core/state.h"
#include "store/table/calls.h"
#include "store/table/conversation.h"

struct front_tools;
struct tools;

/* A file whose bytes belong into a message. */
struct context_file {
    size_t message; /* index */
    bool picture;   /* else a text */
    struct file file;
    size_t bytes_max; /* that are told of a text */
};

struct context {
    str system;
    struct model_message *messages;
    size_t count;
    str tools;                  /* JSON array; empty: none are offered */
    struct context_file *files; /* in order; still to be loaded */
    size_t file_count;
    str locale;           /* of what is said of them */
    int64_t from_message; /* where it begins, for state.from_message; never before that */
};

struct context_source {
    const struct agent *agent;
    const struct state *state;
    enum node node;
    const struct message_list
        *messages;                   /* as message_tail gives them, from state.from_message on */
    const struct call_list *seen;    /* calls of this run with a result: calls_seen */
    const struct tools *server;      /* all tools there are; NULL: none */
    const struct front_tools *front; /* that the client offers; NULL: none */
    str told;     /* by the client: JSON list as in struct leg_input; may be empty */
    msec now;     /* of the leg, not of the call: the bytes stay the same */
    str timezone; /* of the person; may be empty */
};
void context_make(struct arena *arena, const struct context_source *source,
                  struct context *ret_context);

/* A text with another one behind it, an empty line between. */
str context_add(struct arena *arena, str text, str more);

#endif

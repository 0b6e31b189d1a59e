/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tool asks people in the middle of a call, as the call's row keeps it:
 *
 *     {"state"?, "questions": [{"id","message","schema"?,"url"?,"hash","interaction","action"?,
 *                               "content"?}]}
 *
 * A question is known again by its place and its hash, so that a call that is started again after a
 * crash gets the answers that were given to it, and nobody is asked twice. Pure.
 */
#ifndef AGENT_CORE_ASKED_H
#define AGENT_CORE_ASKED_H

#include "agent/core/interaction.h"
#include "base/arena.h"
#include "tool/tool.h"

struct asked_question {
    struct tool_said said;
    str hash;           /* of what is asked */
    str interaction_id; /* that asks a person; empty: nobody was asked, it was declined */
};

struct asked {
    str state; /* what the tool wants back along with the replies; empty: nothing */
    struct asked_question *rows;
    size_t count;
};

/* ERR_DAMAGED: the row's text is none of ours. Empty: no questions. */
enum err asked_parse(struct arena *arena, str json, struct asked *ret_asked) MUST_USE;
str asked_write(struct arena *arena, const struct asked *asked);

/* The question as people see it: question, display_text, choices or fields, args_schema, metadata of
 * *interaction. ERR_INVALID_FIELD: it is none that we show. */
struct asking {
    str tool, locale;
    const struct tool_question *question;
};
enum err asked_interaction(struct arena *arena, const struct asking *asking,
                           struct interaction *interaction, struct fault *reterr) MUST_USE;

/* The reply that a decision about it means. An answer that is none, for whatever reason, declines. */
struct tool_reply asked_reply(struct arena *arena, const struct tool_question *question,
                              const struct interaction *interaction,
                              const struct resolution *resolution);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Why an answer, or a press of a button, is not taken: one list makes the word in the audit trail
 * and the error that the person sees. Pure. To add one: a row, and the place that finds it.
 */
#ifndef THREAD_REFUSAL_H
#define THREAD_REFUSAL_H

#include "base/json.h"
#include "store/table/interactions.h"

/* reason, word, error, what it says (NULL: the fault of whoever found it) */
#define REFUSALS(X)                                                                               \
    X(REFUSAL_NONE, "", OK, NULL)                                                                 \
    X(REFUSAL_NOT_VISIBLE, "not_visible", ERR_NOT_FOUND, NULL)                                    \
    X(REFUSAL_WRONG_ROLE, "wrong_role", ERR_FORBIDDEN, "somebody with another role answers this") \
    X(REFUSAL_OWN_REQUEST, "own_request", ERR_FORBIDDEN,                                          \
      "whoever asked for it does not approve it; somebody else with the role does")               \
    X(REFUSAL_OWN_KEY, "own_request", ERR_FORBIDDEN,                                              \
      "it was asked with this key; a person answers it with another key, or in a chat")           \
    X(REFUSAL_ALREADY_RESOLVED, "already_resolved", ERR_ALREADY_RESOLVED,                         \
      "this is settled; `interaction` says how")                                                  \
    X(REFUSAL_EXPIRED, "expired", ERR_EXPIRED, "the time to answer this is over")                 \
    X(REFUSAL_SUPERSEDED, "superseded", ERR_SUPERSEDED,                                           \
      "the tool has changed since this was asked; look for the new question")                     \
    X(REFUSAL_BINDING_MISMATCH, "binding_mismatch", ERR_BINDING_MISMATCH, NULL)                   \
    X(REFUSAL_INVALID_ANSWER, "invalid_answer", ERR_INVALID_FIELD, NULL)                          \
    X(REFUSAL_OUTSIDE_CHOICES, "outside_choices", ERR_INVALID_FIELD, NULL)                        \
    X(REFUSAL_WRONG_TYPE, "wrong_type", ERR_INVALID_FIELD, NULL)                                  \
    X(REFUSAL_UNKNOWN_DECISION, "unknown_decision", ERR_INVALID_FIELD, NULL)                      \
    X(REFUSAL_EDIT_INVALID, "edit_invalid", ERR_INVALID_FIELD, NULL)                              \
    X(REFUSAL_ALWAYS_NOT_ALLOWED, "always_not_allowed", ERR_INVALID_FIELD, NULL)                  \
    X(REFUSAL_AMBIGUOUS, "ambiguous", ERR_AMBIGUOUS,                                              \
      "several questions are open; answer one of `interactions`")                                 \
    X(REFUSAL_NO_QUESTION, "no_question", ERR_NOT_FOUND, NULL)                                    \
    X(REFUSAL_CLIENT_HISTORY, "client_history", ERR_INVALID_FIELD, NULL)                          \
    X(REFUSAL_ACTION_FORGED, "action_forged", ERR_INVALID_FIELD, NULL)                            \
    X(REFUSAL_ACTION_UNKNOWN, "action_unknown", ERR_NOT_FOUND,                                    \
      "the stored card has no such button, or cannot be read now")                                \
    X(REFUSAL_ACTION_DISABLED, "action_disabled", ERR_FORBIDDEN, "this button is disabled")       \
    X(REFUSAL_ACTION_TOOL, "action_tool", ERR_FORBIDDEN, "a button may not call this tool")

#define REFUSAL_ENUM(reason, word, err, says) reason,
enum refusal { REFUSALS(REFUSAL_ENUM) REFUSAL_COUNT };
#undef REFUSAL_ENUM

str refusal_word(enum refusal refusal);
enum err refusal_err(enum refusal refusal);
const char *refusal_says(enum refusal refusal); /* NULL: see above */

/* Settled already: how. REFUSAL_NONE while it is open. */
enum refusal refusal_of_status(enum interaction_status status);

/* What was wrong with a body that answer_parse refused with ERR_INVALID_FIELD, naming `field`. */
enum refusal refusal_of_body(struct arena *arena, const struct interaction *interaction,
                             const struct json *body, str field);

#endif

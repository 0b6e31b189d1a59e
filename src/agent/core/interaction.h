/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions as people and models see them: what the model asks (ask.c), what a person may answer
 * (answer.c), and the JSON of both (interaction.c). Pure.
 */
#ifndef AGENT_CORE_INTERACTION_H
#define AGENT_CORE_INTERACTION_H

#include "base/json.h"
#include "store/table/interactions.h"

/* The tools that the graph handles itself: name, description in both languages, schema. */
struct graph_tool {
    str name;
    str description[2]; /* en, zh */
    str schema;         /* JSON on one line, of the subset of tool/schema.h */
};
extern const struct graph_tool tool_ask_user, tool_submit_plan, tool_show_card;
bool graph_tool_is(str name); /* one of them? */

/* ---- ask_user ---- */

/* The model's arguments into question, display_text, choices (with ids c1, c2, ...), fields,
 * allow_freeform, multi of *interaction; texts are trimmed. ERR_INVALID_FIELD says what is wrong,
 * for the model.
 *
 * A field is {"name","label"?,"type","required"?,"choices"?,"description"?}; it is stored so, and
 * `required` only if true. Its type says what a value must be:
 *
 *     text      a string that is not blank          boolean   true or false
 *     number    a JSON number                       date      "2026-11-15"
 *     choice    a string of its own `choices`
 */
enum err ask_parse(struct arena *arena, str args, struct interaction *interaction,
                   struct fault *reterr) MUST_USE;

/* ---- answers ---- */

/* decision, name in bodies (NULL: not said by a body) */
#define DECISIONS(X)                                                      \
    X(DECISION_ANSWER, NULL)                                              \
    X(DECISION_SKIP, NULL)                                                \
    X(DECISION_APPROVE, "approve")                                        \
    X(DECISION_EDIT, "edit")                                              \
    X(DECISION_REJECT, "reject")                                          \
    X(DECISION_RESPOND, "respond")                                        \
    X(DECISION_CONTINUE, "continue")                                      \
    X(DECISION_GIVE_UP, "give_up")                                        \
    X(DECISION_RETRY, "retry")                                            \
    X(DECISION_HAPPENED, "happened")                                      \
    X(DECISION_CANCEL, NULL) /* the interaction alone; the run goes on */ \
    X(DECISION_EXPIRE, NULL)                                              \
    X(DECISION_SUPERSEDE, NULL)
#define DECISION_ENUM(value, name) value,
enum decision { DECISIONS(DECISION_ENUM) DECISION_COUNT };
#undef DECISION_ENUM

/* How an interaction is settled. */
struct resolution {
    str interaction_id;
    enum decision decision;
    str text;   /* for the model: the answer, or why nothing runs; may be empty */
    str args;   /* of an edit: the new arguments, a JSON object on one line */
    str answer; /* the accepted body without its binding, JSON on one line; empty: nobody answered */
    bool always;      /* of an approval */
    bool always_user; /* for all threads of the owner; else for this one */
    str match;        /* JSON object; "{}" if nothing was said */
    str by, via;
};

/* Decode and check the body of POST answer against an interaction. ERR_INVALID_FIELD names the
 * field; ERR_BINDING_MISMATCH if the body echoes another binding; ERR_TOO_LARGE past
 * ANSWER_BYTES_MAX; ERR_DAMAGED if the row itself cannot be read. An edit's arguments are checked
 * against the schema that was shown. `by` and `via` are the caller's to fill. Everything lives in
 * the arena or borrows from the body and the interaction. */
enum err answer_parse(struct arena *arena, const struct interaction *interaction,
                      const struct json *body, struct resolution *ret_resolution,
                      struct fault *reterr) MUST_USE;

/* A plain message to an open question: the label or number of a choice picks it, other text is the
 * answer, or declines the question (DECISION_SKIP, with the text for the model) if it takes no free
 * text. To a confirm: rejects it with the text as the comment. To connection_lost: continues. Never
 * an approval. Not for uncertain. */
void answer_plain(struct arena *arena, const struct interaction *interaction, str text,
                  struct resolution *ret_resolution);

/* Who asks to answer. `roles` are names, empty ones are skipped. */
struct decider {
    str user;
    str roles[INTERACTION_ROLES_MAX];
    bool alone; /* nobody has a key: everybody is one person, and sees with all eyes there are */
};

/* May this person answer? */
enum admission {
    ADMITTED,
    ADMITTED_NOT_SEEN,    /* they may not even see it */
    ADMITTED_WRONG_ROLE,  /* somebody with another role does */
    ADMITTED_OWN_REQUEST, /* they have the role, and it is their own request: four eyes */
};
enum admission interaction_allows(const struct interaction *interaction,
                                  const struct decider *decider);

/* ---- JSON ---- */

/* The interaction on the wire, with its card. Whoever is not the owner does not see thread, run and
 * call. */
void interaction_write(struct json_writer *w, const struct interaction *interaction,
                       bool for_owner);

/* Data of interaction.request (for the owner) and of interaction.resolved. A card longer than
 * CARD_FACT_BYTES_MAX is left out of the former, and `uiRef` says where it is. */
str fact_interaction_request(struct arena *arena, const struct interaction *interaction);
str fact_interaction_resolved(struct arena *arena, const struct interaction *interaction);

/* Its history row: role ("clarify" for a question, else "interaction"), and metadata as of now. Its
 * content is display_text. */
str interaction_role(const struct interaction *interaction);
str interaction_metadata(struct arena *arena, const struct interaction *interaction);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Buttons of stored cards: found by their id, and what pressing one means. Pure. Everything that a
 * press does comes from here, out of the card that the server stored; nothing from the request.
 */
#ifndef THREAD_CARD_ACTION_H
#define THREAD_CARD_ACTION_H

#include "base/arena.h"
#include "base/json.h"

/* kind, action.type, whether the server does something about it */
#define CARD_ACTIONS(X)                       \
    X(ACTION_NAVIGATION, "navigation", false) \
    X(ACTION_URL, "url", false)               \
    X(ACTION_COPY, "copy", false)             \
    X(ACTION_EVENT, "event", true)            \
    X(ACTION_TOOL, "tool", true)              \
    X(ACTION_PAYLOAD, "payload", true)

#define CARD_ACTION_ENUM(kind, type, ours) kind,
enum action_kind { CARD_ACTIONS(CARD_ACTION_ENUM) ACTION_COUNT };
#undef CARD_ACTION_ENUM

struct card_action {
    enum action_kind kind;
    bool ours;     /* the server does it; else the client */
    bool disabled; /* nobody may press it */
    str label;
    str json;                   /* the ActionPayload, as stored */
    str tool, args;             /* ACTION_TOOL: args is a JSON object */
    const struct json *payload; /* ACTION_PAYLOAD; of ACTION_EVENT what comes with it, or NULL */
    str event;                  /* ACTION_EVENT */
};

/* The button of this id in a UiSchema. ERR_NOT_FOUND: there is none, or no card that can be read.
 * The result borrows from the text and lives in the arena. */
enum err card_action_find(struct arena *arena, str ui, str id, struct card_action *ret_action)
    MUST_USE;

/* What a payload says as a message: its text; other JSON as the label, a line end and the JSON.
 * Blank text: the label. An event: the label, a line end and {"event", "payload"?}. */
str card_action_text(struct arena *arena, const struct card_action *action);

/* The same as the body of an answer to a question with these choices (JSON list, or empty):
 * {"choices":[id]} or {"answer"}. */
const struct json *card_action_answer(struct arena *arena, const struct card_action *action,
                                      str choices);

/* "act_" and 26 characters: one button of one message is one run for ever. */
str card_action_run_id(struct arena *arena, str message_id, str action_id);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation folded from its events (docs/EVENTS.md) into what a terminal shows: lines that stay,
 * said once, and what grows or is open at this moment. Pure.
 */
#ifndef TERM_CHAT_FOLD_H
#define TERM_CHAT_FOLD_H

#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "config/config.h"
#include "term/chat_card.h"

enum saying {
    SAID_USER,    /* a message of a person */
    SAID_ANSWER,  /* the model's words */
    SAID_CARD,    /* a card as text */
    SAID_TOOL,    /* a call that has ended */
    SAID_FAILED,  /* likewise, badly */
    SAID_ASKED,   /* something is open */
    SAID_SETTLED, /* and now it is not */
    SAID_NOTE,
    SAID_ERROR,
    SAID_COUNT
};

enum run_state { RUN_IDLE, RUN_WORKING, RUN_WAITING }; /* waiting: for a person */

struct fold_tool {
    char id[ID_CLIENT_BYTES_MAX + 1];
    char text[128]; /* clean */
};

struct fold_open {
    char id[ID_CLIENT_BYTES_MAX + 1];
    char *json; /* the interaction */
    size_t len;
    enum card_kind kind;
    bool later;      /* put away by the person */
    uint64_t number; /* as of `asked` */
};

struct fold {
    enum lang lang;
    void (*say)(void *arg, enum saying kind, str text); /* lines, clean; the last has no line end */
    void *arg;
    uint64_t seq; /* of the newest fact */
    bool stale;   /* facts are missing: load the history anew, or read again from `seq` on */
    enum run_state state;
    char run_id[ID_CLIENT_BYTES_MAX + 1];   /* the newest that began */
    char ended_id[ID_CLIENT_BYTES_MAX + 1]; /* the newest that ended */
    bool failed;                            /* that one did */
    size_t queued;                          /* messages that wait for their turn */
    char preview_id[ID_CLIENT_BYTES_MAX + 1];
    struct buf preview; /* the model's words as they grow, as they came */
    uint64_t preview_units;
    struct fold_tool tools[TERM_TOOLS_MAX]; /* under way */
    size_t tool_count;
    struct fold_open open[TERM_OPEN_MAX]; /* what waits for a person, oldest first */
    size_t open_count;
    uint64_t asked; /* how often something was opened; only grows, over conversations too */
};

void fold_init(struct fold *fold, enum lang lang,
               void (*say)(void *arg, enum saying kind, str text), void *arg);
void fold_done(struct fold *fold);
void fold_clear(struct fold *fold); /* another conversation */

/* The data of one event, as it came. False if it is none. */
bool fold_event(struct fold *fold, str json);

/* The newest page of history, in place of everything; says its last turns. False if it is none. */
bool fold_history(struct fold *fold, str json);

/* The answer of GET /runs/{threadId}: what the run is doing, for a stream that begins behind it. */
void fold_run(struct fold *fold, str json);

void fold_reconnected(struct fold *fold); /* previews of the connection before are void */

/* How it was settled, on one line: "✓ 1 hour · by ann (page)". `resolved` has the members of
 * interaction.resolved or of an interaction. */
str fold_settled(struct arena *arena, enum lang lang, const struct json *resolved);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions: what a run waits for. A row each; while it is open nothing of the run is in memory.
 *
 * Open is left once, by interaction_settle, which changes a row only if it is still open: of many
 * answers one wins. Plain blocking code for use inside a job; texts that come back live in the arena
 * given.
 */
#ifndef STORE_TABLE_INTERACTIONS_H
#define STORE_TABLE_INTERACTIONS_H

#include "base/arena.h"

struct db;

/* type, name on the wire; the numbers are in databases */
#define INTERACTION_TYPES(X)                          \
    X(INTERACTION_ASK_USER, "ask_user")               \
    X(INTERACTION_CONFIRM, "confirm")                 \
    X(INTERACTION_CONNECTION_LOST, "connection_lost") \
    X(INTERACTION_UNCERTAIN, "uncertain")

/* status, name on the wire; the numbers are in databases */
#define INTERACTION_STATUSES(X)         \
    X(INTERACTION_OPEN, "open")         \
    X(INTERACTION_RESOLVED, "resolved") \
    X(INTERACTION_CANCELED, "canceled") \
    X(INTERACTION_EXPIRED, "expired")   \
    X(INTERACTION_SUPERSEDED, "superseded")

#define INTERACTION_ENUM(value, name) value,
enum interaction_type { INTERACTION_TYPES(INTERACTION_ENUM) INTERACTION_TYPE_COUNT };
enum interaction_status { INTERACTION_STATUSES(INTERACTION_ENUM) INTERACTION_STATUS_COUNT };
#undef INTERACTION_ENUM

enum { INTERACTION_ROLES_MAX = 4 };

const char *interaction_type_name(enum interaction_type type);
const char *interaction_status_name(enum interaction_status status);

struct interaction {
    int64_t n;           /* order of opening, over all threads; given by interaction_add */
    int64_t thread, run; /* rows */
    str id;              /* "int_..." */
    enum interaction_type type;
    enum interaction_status status;
    int64_t seq; /* of its interaction.request */
    str owner;   /* whose thread it is; also the requester */
    str agent, thread_id, run_id;
    str call_id;  /* empty: about no call (connection_lost) */
    str approver; /* role that answers instead of the owner; empty: the owner */
    str display_text;
    str question; /* of ask_user */
    str choices;  /* JSON [{"id","label","description"?}], or empty */
    str fields;   /* JSON list, or empty */
    bool allow_freeform, multi;
    str resume_node, resume_phase;
    uint32_t resume_step;
    str tool, args, summary, args_schema, risk; /* of the call that waits; empty if none */
    str binding;                                /* of a confirm */
    str locale;                                 /* of the texts made for it */
    str metadata;                               /* JSON object; never empty */
    str ui;               /* its card, UiSchema; may be replaced when it is settled */
    msec opened, expires; /* expires 0: never */
    str asked_key; /* id of the key that asked through /mcp, and does not answer; empty: none */

    /* once settled */
    str answer; /* JSON: the accepted body without its binding; empty if nobody answered */
    str text;   /* what the model got; may be empty */
    str answered_by, via;
    msec settled;
};

struct interaction_list {
    struct interaction *rows;
    size_t count;
    bool more;
    int64_t next; /* of a page with more behind it: what `before` is for the next one */
};

enum err interaction_add(struct db *db, struct interaction *interaction) MUST_USE; /* sets n */
void interaction_copy(struct arena *arena, const struct interaction *interaction,
                      struct interaction *ret_copy); /* with its texts */
enum err interaction_find(struct db *db, struct arena *arena, str id,
                          struct interaction *ret_interaction) MUST_USE; /* ERR_NOT_FOUND */

/* Only n, thread, id, owner, approver and call_id of it: quick, however long the row is. */
enum err interaction_brief(struct db *db, struct arena *arena, str id,
                           struct interaction *ret_interaction) MUST_USE; /* ERR_NOT_FOUND */

/* The newest one about a call of a thread, whatever its status; ERR_NOT_FOUND. */
enum err interaction_of_call(struct db *db, struct arena *arena, int64_t thread, str call_id,
                             struct interaction *ret_interaction) MUST_USE;

/* Writes status, card and everything below "once settled" of a row that is open. ERR_BUSY: it is not. */
enum err interaction_settle(struct db *db, const struct interaction *interaction) MUST_USE;

/* The resolved confirm of a call that has to be confirmed again; gives it as it is then. ERR_BUSY:
 * there is no such. */
enum err interaction_supersede(struct db *db, struct arena *arena, int64_t thread, str call_id,
                               struct interaction *ret_interaction) MUST_USE;

/* ERR_BUSY if it is not open. */
enum err interaction_set_expiry(struct db *db, str id, msec expires) MUST_USE;

/* The open ones of a run, or of a thread, in order of opening; there are a few, at most the
 * STATE_IDS_MAX that a run's state can name. */
enum err interactions_of_run(struct db *db, struct arena *arena, int64_t thread, int64_t run,
                             struct interaction_list *ret_list) MUST_USE;
enum err interactions_of_thread(struct db *db, struct arena *arena, int64_t thread,
                                struct interaction_list *ret_list) MUST_USE;

/* What somebody sees: their own ones, and those whose approver is one of their roles (names, may be
 * empty strs). Newest first. A page looks at no more than INBOX_LOOK_MAX rows and ends behind
 * INBOX_PAGE_BYTES_MAX, so it may be shorter than `limit`, and even empty, with `more` behind it. */
struct interaction_filter {
    str owner;
    str roles[INTERACTION_ROLES_MAX];
    int status;     /* enum interaction_status, or -1: any */
    str agent;      /* empty: any */
    str thread_id;  /* empty: any; else a thread of the owner's own, and roles do not count: whose
                       threads others have, and how they call them, is not theirs to ask */
    int64_t before; /* next of the page before; 0: from the start */
    size_t limit;
};
enum err interactions_page(struct db *db, struct arena *arena,
                           const struct interaction_filter *filter,
                           struct interaction_list *ret_list) MUST_USE;

/* Open ones that expire at `now` or earlier, the earliest first; and when the next one does (0:
 * none). */
enum err interactions_due(struct db *db, struct arena *arena, msec now, size_t limit,
                          struct interaction_list *ret_list) MUST_USE;
enum err interactions_next_expiry(struct db *db, msec *ret_at) MUST_USE;

#endif

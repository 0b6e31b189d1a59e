/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of chat channels: the account of each, the people who write to it, what came in and what is on
 * its way out.
 *
 * A message that comes in is a row before its platform is told that we have it, and is known by its
 * id for at least CHANNEL_MEMORY_MS: it is handled once, however often it is delivered. A message
 * that goes out is a row before it is sent and says `sending` before the first byte leaves: after a
 * crash nobody guesses. Plain blocking code for use inside a job; texts that come back live in the
 * arena given.
 */
#ifndef STORE_TABLE_CHANNELS_H
#define STORE_TABLE_CHANNELS_H

#include "base/arena.h"

struct db;

/* ---- the channel itself ---- */

/* state, name on the wire; the numbers are in databases */
#define CHANNEL_STATES(X)                                           \
    X(CHANNEL_STARTING, "starting")       /* not heard of it yet */ \
    X(CHANNEL_ONLINE, "online")           /* it answers */          \
    X(CHANNEL_TROUBLE, "trouble")         /* it does not */         \
    X(CHANNEL_NEEDS_LOGIN, "needs_login") /* somebody has to sign in */

#define CHANNEL_ENUM(value, name) value,
enum channel_state { CHANNEL_STATES(CHANNEL_ENUM) CHANNEL_STATE_COUNT };
#undef CHANNEL_ENUM

const char *channel_state_name(enum channel_state state);

struct channel_row {
    str name, kind;
    str account; /* JSON object of the kind's own: tokens and the like; "{}" if there is none */
    str cursor;  /* how far it was read; opaque */
    enum channel_state state;
    str detail; /* for the operator, one line; may be empty */
    msec changed;
};

/* ERR_NOT_FOUND. */
enum err channel_find(struct db *db, struct arena *arena, str name, struct channel_row *ret_row)
    MUST_USE;
enum err channel_put(struct db *db, const struct channel_row *row) MUST_USE; /* new, or replaced */
/* Everything of a channel but its row goes: people, links, what came in and what was to go out. */
enum err channel_clear(struct db *db, str name) MUST_USE;
enum err channel_set_cursor(struct db *db, str name, str cursor) MUST_USE;

/* ---- people ---- */

struct peer {
    int64_t id;
    str channel, sender;   /* unique together */
    str name;              /* how the platform calls them; may be empty */
    str locale;            /* "zh-CN" or "en": of what they wrote last */
    bool group;            /* not one person alone: nothing is approved there */
    str user;              /* whom the sender is linked to; empty: nobody */
    unsigned roles;        /* of the link */
    int64_t conversations; /* how many there were: /new begins the next */
    str thread_id;         /* of the one now; empty: none yet */
    int64_t thread;        /* its row; 0: not there yet, or deleted */
    int64_t cursor;        /* facts of it up to here are in the outbox */
    str reply_token;       /* newest; opaque */
    msec heard;            /* when they last wrote; 0: never */
    msec window;           /* they may be written to until then; 0: no limit */
    uint32_t allowance;    /* sends since then that the platform allows; 0: no limit */
    uint32_t used;         /* of it */
    str held; /* JSON: what they said before they were asked which question they mean; or
                              empty */
    msec created;
};

enum err peer_find(struct db *db, struct arena *arena, str channel, str sender,
                   struct peer *ret_peer) MUST_USE; /* ERR_NOT_FOUND */
enum err peer_by_id(struct db *db, struct arena *arena, int64_t id, struct peer *ret_peer) MUST_USE;
enum err peer_by_thread(struct db *db, struct arena *arena, int64_t thread, struct peer *ret_peer)
    MUST_USE;                                                          /* ERR_NOT_FOUND */
enum err peer_add(struct db *db, struct peer *peer) MUST_USE;          /* sets id */
enum err peer_update(struct db *db, const struct peer *peer) MUST_USE; /* all fields, by id */
enum err peers_forget_tokens(struct db *db, str channel) MUST_USE;     /* reply_token, of all */
enum err peer_set_used(struct db *db, int64_t id, uint32_t used) MUST_USE;

struct peer_list {
    struct peer *rows;
    size_t count;
};
/* People whose conversation has facts behind their cursor, behind `after`: after a start. */
enum err peers_behind(struct db *db, struct arena *arena, int64_t after, size_t limit,
                      struct peer_list *ret_list) MUST_USE;
enum err peers_count(struct db *db, str channel, int64_t *ret_count) MUST_USE;

/* ---- what came in ---- */

enum inbound_state {
    INBOUND_NEW,     /* nobody has looked at it */
    INBOUND_DECIDED, /* `decision` says what is to be done; perhaps it has been */
    INBOUND_DONE,
};

struct inbound_row {
    int64_t n;       /* order; given by inbound_add */
    str channel, id; /* the platform's id; unique together */
    int64_t peer;
    enum inbound_state state;
    str body;          /* JSON, as chat/inbound.h has it */
    str decision;      /* JSON, or empty */
    uint32_t attempts; /* to carry it out */
    msec created;
};

/* ERR_BUSY: it is known already, and nothing has changed. */
enum err inbound_add(struct db *db, struct inbound_row *row) MUST_USE; /* sets n */
/* The oldest of a person that is not done; ERR_NOT_FOUND. */
enum err inbound_next(struct db *db, struct arena *arena, int64_t peer, struct inbound_row *ret_row)
    MUST_USE;
enum err inbound_update(struct db *db, const struct inbound_row *row) MUST_USE; /* state, decision,
                                                                                   attempts */
enum err inbound_waiting(struct db *db, int64_t peer, size_t *ret_count) MUST_USE; /* not done */
enum err inbound_known(struct db *db, str channel, str id, bool *ret_known) MUST_USE;
/* People with messages that are not done, of one channel, behind `after`, by id. */
enum err inbound_peers(struct db *db, struct arena *arena, str channel, int64_t after, size_t limit,
                       int64_t **ret_peers, size_t *ret_count) MUST_USE;

/* ---- what goes out ---- */

/* class, name: what is done about one whose fate is not known */
#define OUT_CLASSES(X)                                                \
    X(OUT_FINAL, "final")       /* an answer: sent again, marked */   \
    X(OUT_QUESTION, "question") /* likewise */                        \
    X(OUT_ERROR, "error")       /* what went wrong: not sent again */ \
    X(OUT_NOTICE, "notice")     /* hints, what others decided: not sent again */

#define OUT_ENUM(value, name) value,
enum out_class { OUT_CLASSES(OUT_ENUM) OUT_CLASS_COUNT };
#undef OUT_ENUM

const char *out_class_name(enum out_class class);

enum out_state {
    OUT_READY,   /* to be sent at `next` or later */
    OUT_SENDING, /* it may be on its way; after a crash nobody knows */
    OUT_PARKED,  /* waits until they write again */
    OUT_SENT,    /* the platform has it */
    OUT_DROPPED, /* given up */
};

struct out_row {
    int64_t n; /* order; given by out_add */
    int64_t peer;
    enum out_class class;
    enum out_state state;
    str text;          /* fits into one message of the channel; or empty, then: */
    str file;          /* JSON {"id","mimeType","filename","size"} of an attachment; or empty */
    str buttons;       /* JSON [{"data","label"}], or empty */
    str interaction;   /* id of what it asks or tells of; or empty */
    str client_id;     /* ours; another one when it is sent again and may have come before */
    str server_id;     /* the platform's, once sent; or empty */
    uint32_t attempts; /* since they last wrote, as unknowns and since */
    uint32_t unknowns; /* of those, whose fate is not known */
    bool again;        /* its fate was not known and it is sent once more: say so in it */
    msec created;
    msec since; /* of the first attempt; 0: none */
    msec next;  /* not before; once taken, when that was */
};

enum err out_add(struct db *db, struct out_row *row) MUST_USE; /* sets n */
/* The one that is sending; else the oldest of a person that is ready or parked; ERR_NOT_FOUND. */
enum err out_first(struct db *db, struct arena *arena, int64_t peer, struct out_row *ret_row)
    MUST_USE;
/* Likewise, the oldest question or error that is ready or parked. */
enum err out_urgent(struct db *db, struct arena *arena, int64_t peer, struct out_row *ret_row)
    MUST_USE;
enum err out_by_n(struct db *db, struct arena *arena, int64_t n, struct out_row *ret_row) MUST_USE;
/* Everything that may change: class, state, client_id, server_id, attempts, unknowns, again, since,
 * next. */
enum err out_update(struct db *db, const struct out_row *row) MUST_USE;
/* Parked ones become ready, and are tried as if for the first time. */
enum err out_unpark(struct db *db, int64_t peer, msec now) MUST_USE;
/* Gives up one that waits and is not on its way: the oldest notice, else the oldest
 * that asks nothing, else the oldest. ERR_NOT_FOUND. */
enum err out_drop_one(struct db *db, int64_t peer) MUST_USE;
/* How many of a person wait, in any of the three states. */
enum err out_waiting(struct db *db, int64_t peer, size_t *ret_count) MUST_USE;
/* People of a channel with something ready or sending, behind `after`, by id. */
enum err out_peers(struct db *db, struct arena *arena, str channel, int64_t after, size_t limit,
                   int64_t **ret_peers, size_t *ret_count) MUST_USE;
/* People of a channel with something sending: after a start those of the process before. */
enum err out_sending(struct db *db, struct arena *arena, str channel, int64_t **ret_peers,
                     size_t *ret_count) MUST_USE;
/* What a message of ours, by the platform's id of it, asked or told of: an interaction's id, perhaps
 * empty. ERR_NOT_FOUND. */
enum err out_of_server_id(struct db *db, struct arena *arena, int64_t peer, str server_id,
                          str *ret_interaction) MUST_USE;
/* The newest one of a class about an interaction that was sent to a person; ERR_NOT_FOUND. */
enum err out_about(struct db *db, struct arena *arena, int64_t peer, enum out_class class,
                   str interaction, struct out_row *ret_row) MUST_USE;
/* Is what there is to tell a person about an interaction behind us: a notice that was sent, or that was
 * given up? */
enum err out_told(struct db *db, int64_t peer, str interaction, bool *ret_told) MUST_USE;
/* The number of the newest question that a person has been asked, for all we know: sent, on its way, or
 * of unknown fate. 0: none. */
enum err out_newest_asked(struct db *db, int64_t peer, int64_t *ret_n) MUST_USE;
/* Had they been asked this when that was the newest? */
enum err out_asked(struct db *db, int64_t peer, str interaction, int64_t newest, bool *ret_asked)
    MUST_USE;
/* Does a message that asks them this have these words in it? */
enum err out_says(struct db *db, int64_t peer, str interaction, str words, bool *ret_says) MUST_USE;
/* Everything that waits for a person is given up. */
enum err out_drop_all(struct db *db, int64_t peer) MUST_USE;
/* What asks about an interaction and has not left: given up. */
enum err out_drop_about(struct db *db, int64_t peer, str interaction, bool *ret_dropped) MUST_USE;
/* The interaction of the newest question that was sent to a person. ERR_NOT_FOUND. */
enum err out_last_question(struct db *db, struct arena *arena, int64_t peer, str *ret_interaction)
    MUST_USE;
/* Of a channel: how many are ready or sending, and how many are parked. */
enum err out_count(struct db *db, str channel, int64_t *ret_waiting, int64_t *ret_parked) MUST_USE;

/* Removes what nobody asks for any more, up to CHANNEL_EXPIRE_MAX rows of each kind: messages that
 * are done, sent or given up and older than `before` (but no question that is open), codes of
 * interactions that are settled, links that expired before then. */
enum err channel_rows_expire(struct db *db, msec before, int64_t *ret_count) MUST_USE;

/* ---- approval codes ---- */

/* Wrong codes typed by a person for an interaction. */
enum err code_tries(struct db *db, int64_t peer, str interaction, uint32_t *ret_tries) MUST_USE;
enum err code_wrong(struct db *db, int64_t peer, str interaction) MUST_USE; /* one more */

/* ---- links ---- */

struct link_code {
    str hash;    /* hex of SHA-256 of the code */
    str channel; /* where it may be typed */
    str user;
    unsigned roles;
    msec expires;
};
/* Is there a code that could be typed? */
enum err link_exists(struct db *db, str channel, msec now, bool *ret_exists) MUST_USE;
enum err link_add(struct db *db, const struct link_code *code) MUST_USE;
/* Could it be taken? */
enum err link_known(struct db *db, str channel, str hash, msec now, bool *ret_known) MUST_USE;
/* Takes it: the second time it is not there. ERR_NOT_FOUND, also if it has expired. */
enum err link_take(struct db *db, struct arena *arena, str channel, str hash, msec now,
                   struct link_code *ret_code) MUST_USE;
/* The key was revoked. Roles that no key of its user has any more end for their chats, too. If it was
 * the last one of its user, nobody is linked to them any more, what
 * was to go out to those who were is given up, and codes for others are worth nothing. */
enum err links_end_by_key(struct db *db, str key) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the channels. A person is in memory while something is to be done for them, and three things
 * may be: their messages are looked at (desk), what the agent said is put into the outbox (mirror),
 * and the outbox is sent (sender). Each of the three works on its own, one step at a time; what they
 * share is in the store.
 */
#ifndef CHAT_CHATS_INT_H
#define CHAT_CHATS_INT_H

#include "base/limits.h"
#include "base/map.h"
#include "chat/chat_outbox.h"
#include "chat/chat_text.h"
#include "chat/chats.h"
#include "chat/deliver.h"
#include "chat/platform_request.h"
#include "duty/row_worker.h"
#include "net/loop.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/bus/bus.h"
#include "store/table/attachments.h"

struct person;

struct channels {
    struct server *server;
    struct channel *items;
    size_t count;
    struct bus_follower follower;
    unsigned char code_key[HASH_BYTES];
    bool stopping;
};

/* ---- polling ---- */

struct poller {
    struct arena arena;
    struct errand errand;
    struct trip *trip;
    struct timer *timer;
    msec began; /* of the poll under way, steady */
    uint32_t failures, wait_hint_ms;
    uint32_t repeats; /* answers in a row with nothing new, and no other cursor */
    bool storing;
    bool held; /* somebody signs in */
};

struct channel {
    struct channels *all;
    const struct config_channel *config;
    const struct channel_ops *ops;
    struct channel_home home;
    struct arena arena; /* of home */
    str cursor;         /* in memory of its own: it is another with every message */
    str lease, holder;
    size_t turn;      /* in the map of people: who waits for room is looked for from here */
    unsigned fetches; /* of files, under way */
    int64_t epoch;
    enum channel_state state;
    char detail[160];
    struct poller poller;
    struct map people; /* peer id, 8 bytes -> struct person */
    struct recovery *recovery;
    struct receipt_trip *receipts;     /* under way */
    unsigned desks, sends;             /* under way */
    bool signed_out;                   /* nothing works until somebody signs in */
    uint64_t calls[CHANNEL_CALLS_MAX]; /* of the platform, that were taken; hashes */
    size_t call_count;                 /* ever; the oldest make room */
};

struct channel_row channel_row_of(const struct channel *c);
void channel_say(struct channel *c, enum channel_state state, const char *detail);
void poller_go(struct channel *c); /* the next poll, now */

/* What came in, on its way into the inbox; one commit. Embedded or in an arena of its own. */
struct receive {
    struct job job;
    struct channel *channel;
    struct arena arena;
    const struct inbound *inbounds;
    size_t count;
    str cursor, account; /* to be stored with it; empty: as they are */
    msec now;
    bool polled;
    str owner;       /* who signed in; or empty */
    bool alone;      /* there is no login: everybody here is `local` */
    size_t refused;  /* of people who may not write */
    size_t left;     /* of people who have no room for more: the platform keeps them */
    int64_t *people; /* who wrote something new */
    size_t person_count;
    void (*done)(struct receive *receive, enum err e);
    void *arg;
};
void receive_start(struct receive *receive, struct channel *c);

/* The account has become another: in memory now; `db` also stores it. */
enum err channel_store_account(struct channel *c, struct db *db, str account) MUST_USE;
void channel_keep_account(struct channel *c, str account);
void channel_keep_cursor(struct channel *c, str cursor);

/* ---- people ---- */

enum {
    WANT_DESK = 1,
    WANT_MIRROR = 2,
    WANT_SEND = 4,
};

/* Looks at a person's messages, one after the other. */
struct desk {
    struct row_worker worker;
    struct arena arena;
    bool damaged; /* the row cannot be read */
    struct inbound_row row;
    struct inbound in;
    struct peer peer;
    enum ui_locale locale;
    const struct json *decision;

    /* of what is being carried out */
    size_t file;
    str *file_bytes;
    struct errand errand;
    struct trip *trip;
    const char *what;   /* is asked of a use case, for the log */
    enum chat_text say; /* CHAT_TEXT_COUNT: nothing */
    str say_arg;
    bool decide_again, accepted, settled_elsewhere;
};

/* what is done, its name in the inbox */
#define DECISIONS_OF_DESK(X)                                                        \
    X(DO_NOTHING, "nothing")                                                        \
    X(DO_PLAIN, "plain")   /* a message to the agent */                             \
    X(DO_ANSWER, "answer") /* settles `interaction` with `body` */                  \
    X(DO_SAY, "say")       /* tell them `say`; `interaction`: it asks that again */ \
    X(DO_WHICH, "which")   /* and remember what they said */                        \
    X(DO_WRONG, "wrong")   /* and count a wrong code */                             \
    X(DO_STALE, "stale")   /* tell them who settled `interaction` */                \
    X(DO_NEW, "new")                                                                \
    X(DO_STOP, "stop")                                                              \
    X(DO_LINK, "link")
#define DO_ENUM(value, name) value,
enum desk_do { DECISIONS_OF_DESK(DO_ENUM) DO_COUNT };
#undef DO_ENUM

/* Of a decision in the inbox. */
enum desk_do desk_do_of(const struct json *decision);
bool desk_flag(const struct json *decision, const char *name);

/* Look at the next message, and decide what it means if nobody has; one job. worker.none: there
 * is none. ERR_DAMAGED: it cannot be read. */
enum err desk_decide(struct desk *desk, struct db *db) MUST_USE;

/* As the store knows the code of a link. */
void link_hash(str code, char out[static HASH_HEX_BYTES]);

/* 32 hex digits that stand for one message of a channel, the same whenever it is looked at. */
enum { MESSAGE_NAME_BYTES = 33 };
void message_name(str channel, str id, char out[static MESSAGE_NAME_BYTES]);
str conversation_name(struct arena *arena, const struct peer *peer, int64_t n);

/* Puts into the outbox what the facts say. */
struct mirror {
    struct row_worker worker;
    struct arena arena;
    struct peer peer;
    struct fact *facts;
    size_t fact_count;
    struct interaction *interactions;
    size_t interaction_count;
    struct delivery delivery;
    bool stale;               /* somebody else has moved the cursor */
    struct receipt *receipts; /* questions with buttons that are settled now */
    size_t receipt_count;
};

/* Sends the outbox. */
struct sender {
    struct row_worker worker;
    struct arena arena;
    struct out_row row;
    struct peer peer;
    struct outbound message;
    struct attachment file;
    struct blob_job *blob;
    struct errand errand;
    struct trip *trip;
    enum errand_verdict verdict;
};

/* Shows that we are at work. */
struct typing {
    struct arena arena;
    struct errand errand;
    struct trip *trip;
    struct timer *timer;
    msec until; /* 0: not */
    bool stop;
};

struct person {
    struct channel *channel;
    int64_t peer;
    unsigned wants, busy;
    struct desk desk;
    struct mirror mirror;
    struct sender sender;
    struct typing typing;
};

void people_init(struct channel *c);
void people_stop(struct channel *c); /* nothing is sent, fetched or waited for any more */
void people_free(struct channel *c);
void people_wake(struct channel *c); /* whoever waited for a login */

/* Something is to be done for them. */
void person_want(struct channel *c, int64_t peer, unsigned what);
/* One of the three rests; the person may be gone after it. */
void person_rest(struct person *person, unsigned what);

/* Each is set to work when there is room for it, and ends with person_rest. */
extern const struct row_worker_ops desk_ops, mirror_ops, sender_ops;

/* They hear that we are at work, until typing_end or for some minutes. */
void typing_begin(struct person *person, const struct peer *peer);
void typing_end(struct person *person);
bool typing_on(const struct person *person);

/* Errands that nobody waits for: what a press left open. */
void receipt_send(struct channel *c, const struct receipt *receipt);
void receipts_stop(struct channel *c);

/* Whose the conversations of this person are. */
str person_user(struct arena *arena, const struct channel *c, const struct peer *peer);
unsigned person_roles(const struct peer *peer);
enum ui_locale peer_locale(const struct peer *peer);

#endif

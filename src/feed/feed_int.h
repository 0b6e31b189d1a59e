/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the feeds: feed.c (threads that are read, and who goes when), reader.c (native and
 * WebSocket readers), feed_agui.c (AG-UI readers), feed_agui_log.c (the log that those share).
 */
#ifndef FEED_FEED_INT_H
#define FEED_FEED_INT_H

#include "base/map.h"
#include "feed/feed.h"
#include "feed/thread_at.h"
#include "net/loop.h"
#include "net/sse.h"
#include "server/endings.h"
#include "store/db/store.h"

enum reader_kind { READER_NATIVE, READER_SOCKET, READER_AGUI, READER_KIND_COUNT };

struct agui_log;
struct grown;
struct load;

struct mark {
    uint64_t place; /* the log's end behind the fact */
    int64_t seq;
};

struct feed {
    struct feeds *feeds;
    int64_t thread;
    struct bus_follower follower;
    char *thread_id; /* on the wire */
    struct reader *readers;
    size_t count[READER_KIND_COUNT];
    unsigned walking; /* the list is being walked: whoever leaves stays in it until that is over */

    /* What everybody who follows has seen growing. */
    char growing[ID_CLIENT_BYTES_MAX + 1];  /* message whose start everybody here has seen */
    char thinking[ID_CLIENT_BYTES_MAX + 1]; /* message whose reasoning everybody has seen */
    char caller[ID_CLIENT_BYTES_MAX + 1];   /* message that makes the calls below */
    struct buf calling; /* ids of calls whose start everybody has seen, a line end behind each */
    /* Run whose leg is under way; "": none. Right while a sink follows. */
    char in_leg[ID_CLIENT_BYTES_MAX + 1];

    struct sse_log *log; /* native frames */
    struct buf frame;    /* reused */
    struct mark *marks;  /* a ring of FEED_MARKS_MAX; NULL until there is a native reader */
    size_t mark_count;
    size_t mark_room; /* of the ring, while it grows */

    struct agui_log *agui[AGUI_PROFILE_COUNT]; /* NULL until there is a reader */
    struct loop_defer reap;
};

/* Places of native and WebSocket readers, described at the top of reader.c. */
enum reader_state { READER_WAITING, READER_CATCHING, READER_FOLLOWING };

/* Places of AG-UI readers, described at the top of feed_agui.c. */
enum agui_state {
    AGUI_JOINING,
    AGUI_NO_THREAD,
    AGUI_PENDING,
    AGUI_OPENING,
    AGUI_FOLLOWING,
    AGUI_CLOSING,
    AGUI_RESTING
};

struct reader {
    struct feeds *feeds;
    enum reader_kind kind;
    struct reader *prev, *next;           /* all */
    struct reader *feed_prev, *feed_next; /* of its feed */
    struct feed *feed;
    bool gone;                 /* only a job, a walk or a call of ours still knows it */
    bool reading;              /* a job is under way */
    unsigned held;             /* calls of ours that are not done with it */
    struct sse_stream *stream; /* native, AG-UI; NULL once it is gone */
    bool counted;              /* it has its place in POOL_STREAMS */
    char *owner, *thread_id, *key_id;
    unsigned char session[HASH_BYTES];

    /* native, WebSocket */
    enum reader_state state;
    struct feed_start start;
    bool placed;   /* the start has been looked up */
    int64_t seq;   /* newest fact it has */
    bool draining; /* wait until the reader has taken what it was sent */
    const struct feed_sink *sink;
    void *sink_arg;
    bool begun_told;                      /* on_begun */
    bool replaced;                        /* its client stays */
    bool refused;                         /* the sink had no room */
    bool lagged;                          /* that was while it followed */
    size_t skip;                          /* texts of the fact behind seq that it has already */
    char in_leg[ID_CLIENT_BYTES_MAX + 1]; /* sink: run whose leg is under way at seq; "": none */

    /* AG-UI */
    enum agui_state at;
    struct agui_log *log;
    enum agui_profile profile;
    char *run_id;   /* on this wire */
    char *wait_run; /* whose next leg it waits for; "": anybody's */
    char *of_run;   /* that it joins; "": the one that there is */
    char *then_run; /* that it goes on with when this one is over; "": none */
    str *ids;       /* of the client's messages; one allocation with their texts */
    size_t id_count;
    bool all_legs;
    bool joined;       /* its head has the messages in any case */
    bool idle;         /* it joined no leg: the last outcome follows the head at once */
    bool told;         /* it was sent something */
    bool begun;        /* RUN_STARTED is out, the end is not */
    bool lost;         /* the log has dropped its place: it has to join anew */
    bool limited;      /* it leaves the log where its leg ends */
    size_t leg;        /* that it reads: its number in the log */
    uint64_t place;    /* where it begins in the log */
    int64_t leg_ended; /* limited: the last fact of its leg, and the run */
    char leg_run[ID_CLIENT_BYTES_MAX + 1];
    uint64_t load;                      /* that it waits for */
    const struct thread_at *head;       /* that it need not wait for; gone with its request */
    struct grown *grown;                /* what was growing when it joined */
    const char *end_code, *end_message; /* it is sent away as soon as it has what the log has */
};

struct feeds {
    struct server *server;
    struct ending ending;
    struct map feeds; /* thread id, 8 bytes -> struct feed */
    struct reader *readers;
    size_t count;
    uint64_t agui_logs; /* made so far */
    uint64_t loads;     /* of scenes, likewise */
};

/* ---- feed.c ---- */
char *feed_copy(str s);
struct feed *feed_find(struct feeds *feeds, int64_t thread); /* NULL */
struct reader *reader_new(struct feeds *feeds, enum reader_kind kind, str owner, str thread_id);
void reader_enter(struct reader *reader, int64_t thread); /* its thread's feed, made if need be */
/* Its stream or sink is gone: it leaves its feed, and is freed unless a job still holds it. `left`:
 * the client went, nobody sent it away. */
void reader_gone(struct reader *reader, bool left);
void reader_hold(struct reader *reader);
void reader_release(struct reader *reader); /* frees it if it has gone meanwhile */
void feed_walk_end(struct feed *feed);

/* ---- reader.c ---- */
void reader_end(struct reader *reader); /* in good order, or on_over */
void reader_read(struct reader *reader, bool exact);
void feed_native_facts(struct feed *feed, const struct fact *facts, size_t count);
void feed_native_preview(struct feed *feed, const struct preview *preview);

/* ---- feed_agui.c ---- */
void agui_reader_join(struct reader *reader);
/* Sent away: RUN_ERROR with these, if it is in a run. */
void agui_reader_end(struct reader *reader, const char *code, const char *message);
void agui_reader_free(struct reader *reader);
/* For the log, while the readers of its feed are walked. */
void agui_reader_begins(struct reader *reader, size_t leg, uint64_t load);
void agui_reader_heads(struct agui_log *log, struct load *load, enum err e); /* the head is read */
void agui_reader_ends(struct reader *reader); /* its leg has an end now */
void agui_reader_dropped(struct reader *reader, const struct fact *finished); /* in the queue */

/* ---- feed_agui_log.c ---- */

/* One leg as the log has it. */
struct agui_leg {
    char run_id[ID_CLIENT_BYTES_MAX + 1];
    int64_t began, ended; /* its first and its last fact; 0: not seen, not yet */
    uint64_t begin_place, end_place;
};

enum { AGUI_LEGS_KEPT = 8 }; /* for readers of all legs that are slow */

struct agui_op;

struct agui_log {
    uint64_t id; /* never used twice */
    struct feed *feed;
    struct agui fold;
    char run_id[ID_CLIENT_BYTES_MAX + 1]; /* of the leg under way */
    struct sse_log *log;
    struct buf frame;
    int64_t seq; /* newest fact folded */
    struct agui_leg legs[AGUI_LEGS_KEPT];
    size_t leg_count;
    struct agui_op *ops, **ops_end; /* they wait for the snapshot that the first of them is */
    size_t op_bytes;
    size_t tail_loading; /* number of the leg whose end is being read; SIZE_MAX: none */
    struct load *tail;   /* the end that was read last, or told; NULL: none */
    struct leg_told {    /* what facts have told of the leg under way, for its tail */
        struct arena arena;
        bool whole;      /* from its first one on */
        bool step_known; /* also that none is open */
        str step, model;
        uint64_t input_tokens, output_tokens;
    } told;
    size_t readers;
    bool dead; /* given up: its readers go, and it takes nothing more */
};

struct agui_log *agui_log_get(struct feed *feed, enum agui_profile profile);
void agui_log_free(struct agui_log *log);
void agui_log_facts(struct agui_log *log, const struct fact *facts, size_t count);
/* The step that was open when the leg began, if no fact has told of one since. */
void agui_log_step(struct agui_log *log, size_t leg, str step);
void agui_log_preview(struct agui_log *log, const struct preview *preview);
void agui_log_join(struct agui_log *log, str run_id, int64_t seq, const struct grown *grown);
struct agui_leg *agui_log_leg(struct agui_log *log, size_t leg); /* NULL: forgotten */
bool agui_log_held(const struct agui_log *log);                  /* frames wait for a snapshot */

/* A thread at a fact, on its way from the store. */
struct load {
    struct job job;
    struct feeds *feeds;
    int64_t thread;
    enum agui_profile profile;
    uint64_t log; /* which of the thread's logs it is for */
    uint64_t id;
    size_t leg;
    struct arena arena;
    struct thread_at_want want;
    struct thread_at thread_at;
    void (*then)(struct agui_log *log, struct load *load, enum err e); /* the load is its to free */
};
struct load *load_new(struct agui_log *log, const struct thread_at_want *want);
void load_start(struct load *load);
void load_free(struct load *load);

/* What is growing, copied. NULL: nothing. */
struct grown *grown_copy(struct feed *feed);
const struct agui_growing *grown_get(const struct grown *grown);
void grown_free(struct grown *grown);

#endif

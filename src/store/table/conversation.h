/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a conversation: threads, their messages and facts, runs with their legs, queue and
 * snapshots.
 *
 * A thread belongs to an owner; every lookup by a client's id takes the owner with it, so a foreign
 * id is simply not there. Facts are numbered per thread 1, 2, 3... in the transaction that makes
 * them true. Plain blocking code for use inside a job; texts that come back live in the arena
 * given.
 */
#ifndef STORE_TABLE_CONVERSATION_H
#define STORE_TABLE_CONVERSATION_H

#include "base/arena.h"
#include "base/crypto.h"

struct db;
struct interaction;

/* ---- threads ---- */

struct thread {
    int64_t id;           /* internal; never on the wire */
    str owner, thread_id; /* unique together */
    str title, agent;
    int64_t last_seq;   /* of the newest fact; 0 if none */
    int64_t newest_run; /* whose leg was the last to start; 0 if none has */
    msec created, updated;
    uint64_t bytes; /* of its rows, about; 0 if that is not known */
    bool uncounted; /* it is not */
};

/* ERR_NOT_FOUND. */
enum err thread_find(struct db *db, struct arena *arena, str owner, str thread_id,
                     struct thread *ret_thread) MUST_USE;
enum err thread_by_id(struct db *db, struct arena *arena, int64_t id, struct thread *ret_thread)
    MUST_USE;
enum err thread_add(struct db *db, struct thread *thread) MUST_USE; /* sets id */
enum err thread_rename(struct db *db, int64_t id, str title, msec now) MUST_USE;
enum err thread_delete(struct db *db, int64_t id) MUST_USE; /* and every row of it */

/* The owner's threads, last updated first; those whose title, or one of whose messages, contains
 * `query`, if it is not empty. Case does not matter, as base/fold.h has it. */
struct thread_place { /* all 0: the start */
    msec updated;
    int64_t id;  /* behind this thread, or else: */
    int64_t seq; /* inside it, behind (before, in time) this message; 0: not inside */
};
struct thread_query {
    str owner, query;
    struct thread_place after;
    size_t limit;
    msec until;         /* on the steady clock: a search that has found nothing until then is
                           continued by the next page; 0: no limit */
    uint64_t bytes_max; /* looked at for this page; 0: SEARCH_BYTES_MAX */
};
struct thread_list {
    struct thread *threads; /* fewer than the limit, even none, also if there is more */
    size_t count;
    bool more;
    struct thread_place next; /* if there is more */
};
enum err thread_page(struct db *db, struct arena *arena, const struct thread_query *query,
                     struct thread_list *ret_list) MUST_USE;

/* ---- facts ---- */

struct fact {
    int64_t seq;      /* given by facts_append */
    const char *type; /* "run.started"; points into a table of ours or into the arena */
    str run_id;
    msec at;
    str data;    /* a JSON object */
    size_t more; /* bytes of other rows that come with it, for the thread's size; not stored */
    const struct interaction *interaction; /* that it opens, while the commit that did is told of;
                                              else NULL: a fact that is read has none */
};

/* Number the facts and store them; threads.last_seq and updated move along. */
enum err facts_append(struct db *db, int64_t thread, struct fact *facts, size_t count, msec now)
    MUST_USE;
/* The same, and a leg of a run begins with them. */
enum err facts_append_leg(struct db *db, int64_t thread, struct fact *facts, size_t count, msec now,
                          int64_t run) MUST_USE;

struct fact_list {
    struct fact *facts;
    size_t count;
    bool more;
};
/* Facts behind `after`, oldest first: at most `limit`, and at most about FACT_PAGE_BYTES_MAX of
 * data. ERR_DAMAGED, as from all that read facts: the bytes of a row are not what was written. */
enum err facts_after(struct db *db, struct arena *arena, int64_t thread, int64_t after,
                     size_t limit, struct fact_list *ret_list) MUST_USE;

/* Number of the oldest fact that is still kept, last_seq + 1 if there is none. */
enum err facts_first(struct db *db, int64_t thread, int64_t *ret_seq) MUST_USE;

/* One fact by its number; ERR_NOT_FOUND. */
enum err fact_at(struct db *db, struct arena *arena, int64_t thread, int64_t seq,
                 struct fact *ret_fact) MUST_USE;
/* The newest of two types (they may be the same) behind one number and up to another, of a run or, if
 * run_id is empty, of any; ERR_NOT_FOUND. Looks back fact by fact: for what is near. */
enum err fact_last(struct db *db, struct arena *arena, int64_t thread, str run_id, const char *type,
                   const char *or_type, int64_t after, int64_t upto, struct fact *ret_fact)
    MUST_USE;
/* Tokens that a run's turns used behind one fact and up to another. */
enum err facts_usage(struct db *db, int64_t thread, str run_id, int64_t after, int64_t upto,
                     uint64_t *ret_input, uint64_t *ret_output) MUST_USE;

/* ---- messages ---- */

struct message {
    int64_t seq; /* of the fact that added it: its place in history */
    str id, role, run_id;
    str content;    /* JSON: a string or an array of parts */
    str metadata;   /* JSON object; never empty */
    str tool_calls; /* JSON array, or empty */
    str tool;       /* of a tool row: JSON object {"toolCallId","toolName","args","error"?}, whose
                          members stand in the row on the wire; or empty */
    str usage;      /* JSON object, or empty */
    str provider_data; /* JSON, or empty */
    str plain;         /* the text alone, for search and titles */
    str ui;            /* UiSchema of an assistant's card, or empty; read back also for the rows of
                          interactions, whose card stands with the interaction */
    str hints;         /* UiHints that it was made from, as the model gave them; or empty */
    str attachments; /* of a user's or a tool's message: JSON list of {"id","mimeType","filename","size",
                          "width"?,"height"?}, or empty */
    msec created;
};

/* ERR_BUSY if the thread has this id already. */
enum err message_add(struct db *db, int64_t thread, const struct message *message) MUST_USE;
/* How much it stores. */
size_t message_bytes(const struct message *message);
enum err message_exists(struct db *db, int64_t thread, str id, bool *ret_exists) MUST_USE;
/* Are these the words of the message, its `plain`? ERR_NOT_FOUND if there is none of this id. */
enum err message_says(struct db *db, int64_t thread, str id, str plain, bool *ret_same) MUST_USE;
/* ERR_NOT_FOUND. */
enum err message_find(struct db *db, struct arena *arena, int64_t thread, str id,
                      struct message *ret_message) MUST_USE;
/* Rows of interactions follow their status. ERR_NOT_FOUND. */
enum err message_set_metadata(struct db *db, int64_t thread, str id, str metadata) MUST_USE;

struct message_list {
    struct message *messages; /* oldest first */
    size_t count;
    bool more; /* further ones in the direction asked for */
};
/* Newest page before `before` (exclusive; 0 = the end), or oldest page after `after` (if not 0). */
enum err message_page(struct db *db, struct arena *arena, int64_t thread, int64_t before,
                      int64_t after, size_t limit, struct message_list *ret_list) MUST_USE;
/* What a model is told of: the newest rows from place `from` on, oldest first, at most `limit` and at
 * most about RUN_CONTEXT_READ_BYTES_MAX of texts. Reasoning and the views of interactions are left
 * out, as are usage, tool, ui, created, and the content of all but people's rows. */
enum err message_tail(struct db *db, struct arena *arena, int64_t thread, int64_t from,
                      size_t limit, struct message_list *ret_list) MUST_USE;
/* Place just behind the last message created before a time: what `before=<date>` means. */
enum err message_place(struct db *db, int64_t thread, msec before, int64_t *ret_seq) MUST_USE;

/* ---- runs ---- */

/* status, name on the wire, still to be worked on */
#define RUN_STATUSES(X)                   \
    X(RUN_QUEUED, "queued", true)         \
    X(RUN_RUNNING, "running", true)       \
    X(RUN_WAITING, "waiting", true)       \
    X(RUN_CANCELLING, "cancelling", true) \
    X(RUN_COMPLETED, "completed", false)  \
    X(RUN_CANCELLED, "cancelled", false)  \
    X(RUN_EXHAUSTED, "exhausted", false)  \
    X(RUN_FAILED, "failed", false)

#define RUN_STATUS_ENUM(status, name, open) status,
enum run_status { RUN_STATUSES(RUN_STATUS_ENUM) RUN_STATUS_COUNT };
#undef RUN_STATUS_ENUM

const char *run_status_name(enum run_status status);
bool run_status_open(enum run_status status);

/* What a request brings for the legs that follow, in JSON; each may be empty. The client's own words
 * are kept whole and read seldom; what every model call needs of them stands apart, short and
 * checked (agent/core/front.h). */
struct leg_input {
    str input; /* {"state"?,"tools"?,"context"?,"forwardedProps"?}, as the client gave it */
    str tools; /* those of its tools that may be offered: [{"name","description","parameters"?}] */
    str context; /* what the model is told of it: [{"description","value"}], all strings */
};

struct run {
    int64_t id, thread;
    str run_id, agent, model;
    enum run_status status;
    uint32_t legs;             /* so far */
    str task_id;               /* of the newest leg */
    str input, tools, context; /* as in struct leg_input; for run_add only, read back by run_input
                                  and run_offer */
    size_t input_bytes;        /* of them together; 0 if there is nothing in them */
    str queued;                /* the message that waits, as JSON; empty unless queued */
    int64_t start_seq;         /* the 202's seq: facts before this run */
    uint64_t input_tokens, output_tokens;
    uint64_t cost;        /* pico units of the currency, as in model.h; at most INT64_MAX */
    str currency;         /* empty: no price is known */
    int64_t from_message; /* where the model's context begins: seq of a message; only grows */
    msec created, ended;  /* ended 0: open */
    str asked_key;        /* id of the key that asked through /mcp; empty: nobody did */
};

/* How far a run has come, as it is stored. */
struct snapshot {
    int64_t version; /* 0: there is none */
    int64_t epoch;   /* of the lease it is written under */
    str bytes;
    unsigned char hash[HASH_BYTES]; /* SHA-256 of them */
};

enum err run_add(struct db *db, struct run *run)
    MUST_USE; /* sets id; ERR_BUSY if the thread has run_id */
enum err run_add_begun(struct db *db, struct run *run, const struct snapshot *first) MUST_USE;
/* All fields but its input, and its snapshot: `next` takes the place of version `version` (-1: of
 * whichever it is) under a lease that is no older than the one it was written under. With version 0
 * there is none from then on. ERR_BUSY: somebody was faster, or has a newer lease. */
enum err run_save(struct db *db, const struct run *run, int64_t version,
                  const struct snapshot *next) MUST_USE;
enum err run_find(struct db *db, struct arena *arena, int64_t thread, str run_id,
                  struct run *ret_run) MUST_USE;
enum err run_input(struct db *db, struct arena *arena, int64_t run, str *ret_input)
    MUST_USE; /* {} if it brought nothing */
/* The same without the client's own words: `input` is empty. */
enum err run_offer(struct db *db, struct arena *arena, int64_t run, struct leg_input *ret_offer)
    MUST_USE;
/* A later request of the run brings another input, which takes the place of the one before;
 * run->input_bytes follows. */
enum err run_set_input(struct db *db, struct run *run, const struct leg_input *input) MUST_USE;
/* Tools and context are for a run that goes on: when it has ended they go. */
enum err run_offer_forget(struct db *db, int64_t run) MUST_USE;
/* The run that is running, waiting or cancelling; ERR_NOT_FOUND if the thread is idle. */
enum err run_current(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run)
    MUST_USE;
/* The newest run that has started (has a leg), running or ended: where a stream without a cursor
 * begins. */
enum err run_newest(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run)
    MUST_USE;
/* The oldest queued one. */
enum err run_next(struct db *db, struct arena *arena, int64_t thread, struct run *ret_run) MUST_USE;
struct run_list {
    struct run *runs;
    size_t count;
};
/* All that wait, oldest first. */
enum err run_queue(struct db *db, struct arena *arena, int64_t thread, struct run_list *ret_list)
    MUST_USE;
/* At most `limit` of them, from start_seq `from_seq` on. */
enum err run_queue_page(struct db *db, struct arena *arena, int64_t thread, int64_t from_seq,
                        size_t limit, struct run_list *ret_list) MUST_USE;
/* How many wait, and how long they and their inputs are together; without reading them. */
enum err run_queue_size(struct db *db, int64_t thread, size_t *ret_count, size_t *ret_bytes)
    MUST_USE;
/* The id of a message that waits in a queued run; it is forgotten when the run waits no longer.
 * ERR_BUSY if one of this id waits on the thread. */
enum err queued_id_add(struct db *db, const struct run *run, str id) MUST_USE;
enum err queued_id_exists(struct db *db, int64_t thread, str id, bool *ret_exists) MUST_USE;
/* Every run that has to be worked on after a start: running or cancelling, and the heads of queues
 * of idle threads. Waiting ones are not among them, they cost nothing; but for those with a call that
 * was under way while they waited, of which somebody has to find out what became. At most `limit`,
 * behind `after_id`. */
enum err run_unfinished(struct db *db, struct arena *arena, int64_t after_id, size_t limit,
                        struct run_list *ret_list) MUST_USE;
enum err run_update(struct db *db, const struct run *run)
    MUST_USE; /* all fields but its input, by id */
/* What the request that began the newest leg called the run; a leg that nobody named has no row. */
enum err run_start_leg(struct db *db, const struct run *run, str wire_run_id, msec now) MUST_USE;
/* Where the context of the thread's newest run began: that of the next begins there too. 0 if it has
 * none. */
enum err run_context_start(struct db *db, const struct thread *thread, int64_t *ret_from) MUST_USE;
/* What the runs of a thread used, one row for each currency in the order of their first runs; those
 * without a price count as `unpriced`. */
struct spent {
    str currency;
    uint64_t input_tokens, output_tokens, cost; /* each stays at INT64_MAX once there */
};
struct spent_list {
    struct spent *rows;
    size_t count;
};
enum err runs_spent(struct db *db, struct arena *arena, int64_t thread, str unpriced,
                    struct spent_list *ret_list) MUST_USE;
/* What the request that started a leg (1, 2, ...) called it, `<runId>-<leg>` if none did.
 * ERR_NOT_FOUND. */
enum err leg_wire_id(struct db *db, struct arena *arena, const struct run *run, uint32_t leg,
                     str *ret_id) MUST_USE;

/* ---- what POST /runs answered, by run id: the same request gets the same answer ---- */

struct accepted {
    unsigned char hash[HASH_BYTES]; /* of the request */
    str answer;                     /* body of the 202 */
};
enum err accepted_find(struct db *db, struct arena *arena, int64_t thread, str run_id,
                       struct accepted *ret_accepted) MUST_USE; /* ERR_NOT_FOUND */
enum err accepted_add(struct db *db, int64_t thread, str run_id, const struct accepted *accepted,
                      msec now) MUST_USE;

/* ---- snapshots ---- */

/* The bytes carry a SHA-256; ERR_NOT_FOUND, or ERR_DAMAGED. */
enum err snapshot_load(struct db *db, struct arena *arena, int64_t run, int64_t *ret_version,
                       str *ret_bytes) MUST_USE;
/* Replace version `version` (0: none yet) by version + 1, under the lease `epoch`, and nothing else of
 * the run. ERR_BUSY: stale. */
enum err snapshot_save(struct db *db, int64_t run, int64_t version, int64_t epoch, str bytes,
                       const unsigned char hash[static HASH_BYTES]) MUST_USE;
/* Somebody outside the shell has changed what a run depends on (its status, its rows, a grant): the
 * version grows, so that a step taken from older rows is refused. OK also without a snapshot. */
enum err snapshot_touch(struct db *db, int64_t run) MUST_USE;
/* Other bytes, whoever holds it: who does loads it anew. */
enum err snapshot_replace(struct db *db, int64_t run, str bytes,
                          const unsigned char hash[static HASH_BYTES]) MUST_USE;
enum err snapshots_touch_owner(struct db *db, str owner) MUST_USE; /* of each running run */

/* ---- leases ---- */

/* Take (or take over, if expired) a lease: a higher epoch than anybody had. ERR_BUSY if another
 * holds it. */
enum err lease_take(struct db *db, str name, str holder, msec now, msec until, int64_t *ret_epoch)
    MUST_USE;
enum err lease_renew(struct db *db, str name, str holder, int64_t epoch, msec until)
    MUST_USE; /* ERR_BUSY: lost */

/* ---- idempotency keys of a user ---- */

struct remembered {
    unsigned char hash[HASH_BYTES]; /* of method, path and body */
    int status;
    str body;
    int64_t thread; /* the row goes with it, and stays while a run of it is open; 0: none */
};
enum err idempotency_find(struct db *db, struct arena *arena, str owner, str key,
                          struct remembered *ret_remembered) MUST_USE; /* ERR_NOT_FOUND */
enum err idempotency_add(struct db *db, str owner, str key, const struct remembered *remembered,
                         msec now) MUST_USE;
/* Remove up to IDEMPOTENCY_EXPIRE_MAX rows older than `before` whose thread has no open run. */
enum err idempotency_expire(struct db *db, msec before, int64_t *ret_count) MUST_USE;

#endif

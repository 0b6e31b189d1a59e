/* SPDX-License-Identifier: Apache-2.0
 *
 * A change that somebody asks for: one store job, with a memory of keys. Same key and same request
 * give the stored outcome without a second effect; same key and another request are refused.
 *
 * Use cases (post_message.h, give_answer.h, cancel_run.h, press_button.h, edit_thread.h) embed one first
 * in their struct. Whoever calls them (a request, a frame, a chat) fills in by, waiter, answer and
 * perhaps key and request, and what the use case wants to know; the struct is in the arena of the asker
 * until `answer` is called, which comes once, perhaps at once, and is the last that is done with it.
 */
#ifndef THREAD_CHANGE_H
#define THREAD_CHANGE_H

#include "store/db/store.h"
#include "store/table/conversation.h"
#include "thread/asker.h"

struct loaded;

struct change {
    struct job job;
    struct asker by;
    void *waiter; /* of whoever started it, for `answer` */
    /* On the loop, last: it failed with e, or status and body are set. */
    void (*answer)(struct change *change, enum err e);
    msec now;
    /* On the store thread, inside the transaction; may run twice. Sets status and body. */
    enum err (*apply)(struct change *change, struct db *db);
    /* On the loop, after the commit and before the answer; not for a repeated request. May be NULL.
     */
    void (*after)(struct change *change);
    /* On the loop, instead of after: it failed with e, or was a repetition and changed nothing. May be
     * NULL. */
    void (*undone)(struct change *change, enum err e);
    /* For `answer`: give what is no refusal in another form than status and body. Also for a repetition.
     * May be NULL. */
    void (*respond)(struct change *change);
    int status;
    str body; /* JSON in the arena; empty with 204; a problem document from 400 on */
    int64_t
        thread; /* that it is about, set by apply: the answer is remembered as long as it runs; of a
                   repetition, as it was remembered */
    struct fault why; /* of an error, and of a refusal that is committed */

    str key;     /* idempotency key; empty if none */
    str request; /* with a key: what makes two of them the same request */
    unsigned char hash[HASH_BYTES];
    bool repeated;
    enum err refused;  /* set by change_refuse, also of a repetition: status and body are of this */
    str member, json;  /* likewise: what its document has besides */
    uint64_t used;     /* bytes of the user, when it failed with ERR_QUOTA */
    bool unremembered; /* set by apply: the key stays free, as if nothing had been found */
    struct loaded *loaded; /* set by apply: the rows of a run that goes on; `after` may take them */
};

/* Start the change: by, answer and apply are set. */
void change_go(struct change *change);

/* It failed before it started: `undone` if there is one, then `answer`, with change->why. */
void change_fail(struct change *change, enum err e);

/* ERR_INVALID_FIELD if this cannot be an idempotency key. */
enum err change_key_check(str key, struct fault *reterr) MUST_USE;

/* For `answer`, where it is no HTTP: OK, or the error that whoever asked is shown, with change->why,
 * change->member and change->json. What is our own affair is counted, and logged as a failure of
 * `what`. */
enum err change_outcome(struct change *change, enum err e, const char *what) MUST_USE;

/* For apply, before it stores what its user wants: ERR_QUOTA, with the reason, if they have as much as
 * limits.storage allows, or would with `more` bytes. */
enum err change_quota(struct change *change, struct db *db, uint64_t more) MUST_USE;

struct arena *change_arena(struct change *change);

/* For apply: a refusal that is committed, because it leaves a trace in the store. Sets status and
 * body to the problem document of e, with one more member (JSON) unless `member` is empty; apply
 * then returns OK. `why` may be NULL. */
void change_refuse(struct change *change, enum err e, const struct fault *why, str member,
                   str json);

#endif

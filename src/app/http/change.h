/* SPDX-License-Identifier: Apache-2.0
 *
 * A request that changes something: one store job that also honours Idempotency-Key. Same key and
 * same request give the stored answer without a second effect; same key and another request are
 * refused.
 */
#ifndef APP_HTTP_CHANGE_H
#define APP_HTTP_CHANGE_H

#include "app/http/exchange.h"
#include "store/conversation.h"
#include "store/store.h"

struct change {
    struct job job;
    struct exchange *x;
    msec now;
    /* On the store thread, inside the transaction; may run twice. Sets status and body. */
    enum err (*apply)(struct change *change, struct db *db);
    /* On the loop, after the commit and before the answer; not for a repeated request. May be NULL.
     */
    void (*after)(struct change *change);
    /* On the loop, instead of after: it failed with e, or was a repetition and changed nothing. May be
     * NULL. */
    void (*undone)(struct change *change, enum err e);
    /* On the loop, last: give the answer, which is no refusal, in another form than status and body.
     * Also for a repetition. May be NULL. */
    void (*respond)(struct change *change);
    int status;
    str body; /* JSON in the arena; empty with 204; a problem document from 400 on */
    int64_t
        thread; /* that it is about, set by apply: the answer is remembered as long as it runs; of a
                   repetition, as it was remembered */
    struct fault why;

    str key; /* Idempotency-Key; empty if none */
    unsigned char hash[HASH_BYTES];
    bool repeated;
    bool unremembered; /* set by apply: the key stays free, as if nothing had been found */
};

/* Start the change; it answers the exchange. `change` is embedded first in the caller's struct, in
 * the exchange's arena, with apply and after set. */
void change_start(struct change *change, struct exchange *x);

/* The same where the head and the body are gone by then: change_key reads the key from the head while
 * it is there (ERR_INVALID_FIELD), and `request` is what makes two of them the same request. */
enum err change_key(struct exchange *x, str *ret_key, struct fault *reterr) MUST_USE;
void change_start_with(struct change *change, struct exchange *x, str key, str request);

struct arena *change_arena(struct change *change);

/* For apply: a refusal that is committed, because it leaves a trace in the store. Sets status and
 * body to the problem document of e, with one more member (JSON) unless `member` is empty; apply
 * then returns OK. `why` may be NULL. */
void change_refuse(struct change *change, enum err e, const struct fault *why, str member,
                   str json);

#endif

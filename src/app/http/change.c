/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes with memory. The remembered answer is written in the transaction of the change itself, so
 * either both happened or neither.
 */
#include "app/http/change.h"

#include "app/server.h"
#include "base/limits.h"
#include "net/problem.h"

struct arena *change_arena(struct change *change)
{
    return exchange_arena(change->x);
}

void change_refuse(struct change *change, enum err e, const struct fault *why, str member, str json)
{
    struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    problem_write_with(&out, e, why && why->text[0] ? why : NULL, member, json);
    change->status = err_status(e);
    change->body = arena_str(change_arena(change), buf_str(&out));
    buf_done(&out);
}

static enum err recall(struct change *change, struct db *db)
{
    struct remembered known;
    enum err e =
        idempotency_find(db, change_arena(change), change->x->who.user, change->key, &known);
    if (e) return e;
    if (!str_eq((str){(char *)known.hash, HASH_BYTES}, (str){(char *)change->hash, HASH_BYTES}))
        return fault(&change->why, ERR_IDEMPOTENCY_MISMATCH,
                     "this Idempotency-Key was used for another request");
    change->repeated = true;
    change->thread = known.thread;
    change->status = known.status;
    change->body = known.body;
    return OK;
}

static enum err change_run(struct job *job, struct db *db)
{
    struct change *change = (struct change *)(void *)job;
    change->repeated = change->unremembered = false;
    if (change->key.len) {
        enum err e = recall(change, db);
        if (e != ERR_NOT_FOUND) return e;
    }
    enum err e = change->apply(change, db);
    if (e || !change->key.len || change->unremembered) return e;
    struct remembered answer = {
        .status = change->status, .body = change->body, .thread = change->thread};
    for (size_t i = 0; i < HASH_BYTES; i++) answer.hash[i] = change->hash[i];
    return idempotency_add(db, change->x->who.user, change->key, &answer, change->now);
}

static void change_done(struct job *job, enum err e)
{
    struct change *change = (struct change *)(void *)job;
    struct exchange *x = change->x;
    if (change->undone && (e || change->repeated)) change->undone(change, e);
    if (e) {
        exchange_error(x, e, change->why.text[0] ? &change->why : NULL);
        return;
    }
    if (change->after && !change->repeated) change->after(change);
    if (change->status < 400 && change->respond)
        change->respond(change);
    else if (change->status == 204)
        exchange_empty(x);
    else if (change->status >= 400)
        exchange_problem(x, change->status, change->body);
    else
        exchange_json(x, change->status, change->body);
}

static bool key_valid(str key)
{
    if (key.len > IDEMPOTENCY_KEY_BYTES_MAX) return false;
    for (size_t i = 0; i < key.len; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~') return false;
    return true;
}

enum err change_key(struct exchange *x, str *ret_key, struct fault *reterr)
{
    str key = x->inside ? x->key : http_head_get(x->request->head, STR("Idempotency-Key"));
    if (!key_valid(key))
        return fault_field(reterr, ERR_INVALID_FIELD, "Idempotency-Key",
                           "Idempotency-Key must be at most %d visible characters",
                           IDEMPOTENCY_KEY_BYTES_MAX);
    *ret_key = arena_str(exchange_arena(x), key);
    return OK;
}

void change_start_with(struct change *change, struct exchange *x, str key, str request)
{
    change->x = x;
    change->now = clock_wall(&clock_system);
    change->job = (struct job){.run = change_run, .done = change_done};
    change->key = key;
    const char *method = http_method_name(x->route->method);
    str text = arena_printf(exchange_arena(x), "%s %.*s\n%.*s", method, STR_ARG(x->path),
                            STR_ARG(request));
    crypto_sha256(text, change->hash);
    store_write(x->server->store, &change->job);
}

void change_start(struct change *change, struct exchange *x)
{
    struct fault why;
    str key = STR_EMPTY;
    change->x = x;
    enum err e = change_key(x, &key, &why);
    if (!e) {
        change_start_with(change, x, key, x->request->body);
        return;
    }
    if (change->undone) change->undone(change, e);
    exchange_error(x, e, &why);
}

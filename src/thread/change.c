/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes with an Idempotency-Key: done once, and answered the same when they are repeated. The
 * remembered outcome is written in the transaction of the change itself, so either both happened or
 * neither.
 */
#include "thread/change.h"

#include "agent/shell/loaded.h"
#include "base/json.h"
#include "base/limits.h"
#include "net/problem.h"
#include "server/refused.h"
#include "server/server.h"
#include "store/table/storage.h"

struct arena *change_arena(struct change *change)
{
    return change->by.arena;
}

void change_refuse(struct change *change, enum err e, const struct fault *why, str member, str json)
{
    struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    problem_write_with(&out, e, why && why->text[0] ? why : NULL, member, json);
    change->status = err_status(e);
    change->body = arena_str(change_arena(change), buf_str(&out));
    change->refused = e;
    change->member = out.full ? STR_EMPTY : member; /* too long to be told */
    change->json = out.full ? STR_EMPTY : json;
    buf_done(&out);
    if (why != &change->why) change->why = why ? *why : (struct fault){0};
}

/* A refusal that was remembered: what change_refuse was told, from the document that it wrote. */
static void recall_refusal(struct change *change)
{
    struct arena *arena = change_arena(change);
    struct json *problem = NULL;
    change->refused = ERR_INTERNAL;
    change->member = change->json = STR_EMPTY;
    if (json_parse(arena, change->body, &problem, NULL)) return;
    str code = json_text(json_get(problem, STR("code")));
    for (int e = OK; e < ERR_COUNT; e++)
        if (str_eq(code, str_c(err_code((enum err)e)))) change->refused = (enum err)e;
    fault_field(&change->why, change->refused,
                arena_cstr(arena, json_text(json_get(problem, STR("field")))), "%.*s",
                STR_ARG(json_text(json_get(problem, STR("detail")))));
    const struct json *last = problem->child; /* behind code and field there is one more, or none */
    while (last && last->next) last = last->next;
    if (!last || str_eq(last->key, STR("code")) || str_eq(last->key, STR("field"))) return;
    change->member = last->key;
    change->json = last->raw;
}

enum err change_quota(struct change *change, struct db *db, uint64_t more)
{
    uint64_t allowed = change->by.server->config->storage_bytes_max;
    enum err e = storage_check(db, change->by.who.user, more, allowed, &change->used);
    if (e != ERR_QUOTA) return e;
    return fault(&change->why, e,
                 "you have stored %llu of %llu bytes; delete conversations to make room",
                 (unsigned long long)change->used, (unsigned long long)allowed);
}

/* The problem document with two members more: used and allowed. */
static void tell_quota(struct change *change)
{
    uint64_t allowed = change->by.server->config->storage_bytes_max;
    str members = arena_printf(change_arena(change), "%llu,\"allowed\":%llu",
                               (unsigned long long)change->used, (unsigned long long)allowed);
    change_refuse(change, ERR_QUOTA, &change->why, STR("used"), members);
}

static enum err recall(struct change *change, struct db *db)
{
    struct remembered known;
    enum err e =
        idempotency_find(db, change_arena(change), change->by.who.user, change->key, &known);
    if (e) return e;
    if (!str_eq((str){(char *)known.hash, HASH_BYTES}, (str){(char *)change->hash, HASH_BYTES}))
        return fault(&change->why, ERR_IDEMPOTENCY_MISMATCH,
                     "this Idempotency-Key was used for another request");
    change->repeated = true;
    change->thread = known.thread;
    change->status = known.status;
    change->body = known.body;
    if (known.status >= 400) recall_refusal(change);
    return OK;
}

static enum err change_run(struct job *job, struct db *db)
{
    struct change *change = (struct change *)(void *)job;
    loaded_free(TAKE(change->loaded));
    change->repeated = change->unremembered = false;
    change->refused = OK;
    if (change->key.len) {
        enum err e = recall(change, db);
        if (e != ERR_NOT_FOUND) return e;
    }
    enum err e = change->apply(change, db);
    if (e || !change->key.len || change->unremembered) return e;
    struct remembered answer = {
        .status = change->status, .body = change->body, .thread = change->thread};
    for (size_t i = 0; i < HASH_BYTES; i++) answer.hash[i] = change->hash[i];
    return idempotency_add(db, change->by.who.user, change->key, &answer, change->now);
}

static void change_done(struct job *job, enum err e)
{
    struct change *change = (struct change *)(void *)job;
    pool_give(change->by.server, POOL_CHANGES, change->by.who.user);
    if (change->undone && (e || change->repeated)) change->undone(change, e);
    if (e == ERR_QUOTA) {
        tell_quota(change);
        e = OK;
    } else if (!e && change->after && !change->repeated) {
        change->after(change);
    }
    loaded_free(TAKE(change->loaded));
    change->answer(change, e);
}

enum err change_key_check(str key, struct fault *reterr)
{
    bool valid = key.len <= IDEMPOTENCY_KEY_BYTES_MAX;
    for (size_t i = 0; valid && i < key.len; i++) valid = key.p[i] > ' ' && key.p[i] <= '~';
    if (valid) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, "Idempotency-Key",
                       "Idempotency-Key must be at most %d visible characters",
                       IDEMPOTENCY_KEY_BYTES_MAX);
}

void change_fail(struct change *change, enum err e)
{
    if (change->undone) change->undone(change, e);
    change->answer(change, e);
}

void change_go(struct change *change)
{
    enum err e = change_key_check(change->key, &change->why);
    if (!e) e = pool_take(change->by.server, POOL_CHANGES, change->by.who.user, &change->why);
    if (e) {
        change_fail(change, e);
        return;
    }
    change->now = clock_wall(&clock_system);
    change->job = (struct job){.run = change_run, .done = change_done, .who = change->by.who.user};
    if (change->key.len) crypto_sha256(change->request, change->hash);
    store_write(change->by.server->store, &change->job);
}

enum err change_outcome(struct change *change, enum err e, const char *what)
{
    if (!e) return change->refused;
    change->member = change->json = STR_EMPTY;
    return refused_shown(change->by.server, e, &change->why, change->by.via, what, false);
}

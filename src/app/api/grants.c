/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants: what a person has allowed for always, listed and revoked. They are made by an approval
 * with `always`, in the step that settles it.
 */
#include <string.h>

#include "app/api/handlers.h"
#include "app/http/change.h"
#include "app/http/query.h"
#include "app/input/settle.h"
#include "app/server.h"
#include "base/limits.h"

/* ---- GET /grants ---- */

struct list_grants {
    struct job job;
    struct exchange *x;
    uint64_t before;
    size_t limit;
    struct grant_list list;
};

static enum err list_run(struct job *job, struct db *db)
{
    struct list_grants *list = (struct list_grants *)(void *)job;
    return grants_page(db, exchange_arena(list->x), list->x->who.user, (int64_t)list->before,
                       list->limit, &list->list);
}

static void put_grant(struct json_writer *w, const struct grant *grant)
{
    char created[RFC3339_BYTES];
    clock_rfc3339(grant->created, created);
    json_object(w);
    json_member(w, STR("grantId"), grant->id);
    json_member(w, STR("toolName"), grant->tool);
    json_member(w, STR("scope"), grant->thread ? STR("thread") : STR("user"));
    if (grant->thread) json_member(w, STR("threadId"), grant->thread_id);
    json_key(w, STR("match"));
    json_raw(w, grant->match);
    json_member(w, STR("madeBy"), grant->made_by);
    json_member(w, STR("interactionId"), grant->interaction_id);
    json_member(w, STR("createdAt"), str_c(created));
    json_object_end(w);
}

static void list_done(struct job *job, enum err e)
{
    struct list_grants *list = (struct list_grants *)(void *)job;
    struct exchange *x = list->x;
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    struct buf out;
    struct json_writer w;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    json_write_begin(&w, &out);
    json_object(&w);
    json_key(&w, STR("grants"));
    json_array(&w);
    for (size_t i = 0; i < list->list.count; i++) put_grant(&w, &list->list.rows[i]);
    json_array_end(&w);
    if (list->list.more) {
        int64_t last = list->list.rows[list->list.count - 1].n;
        json_member(&w, STR("next"), arena_printf(exchange_arena(x), "%lld", (long long)last));
    }
    json_object_end(&w);
    if (out.full)
        exchange_error(x, ERR_TOO_LARGE, NULL);
    else
        exchange_json(x, 200, buf_str(&out));
    buf_done(&out);
}

void handle_grants_list(struct exchange *x)
{
    struct list_grants *list = ARENA_NEW(exchange_arena(x), struct list_grants);
    struct fault why = {0};
    enum err e = query_number(x, "cursor", &list->before, &why);
    if (!e) e = query_limit(x, &list->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    store_read(x->server->store, &list->job);
}

/* ---- DELETE /grants/{id} ---- */

/* The thread that the grant was for, or the one that a grant for all threads was given in; 0: that
 * one has been deleted, and its trail with it. */
static enum err thread_of(struct db *db, struct arena *arena, const struct grant *grant,
                          int64_t *ret_thread)
{
    struct interaction interaction;
    *ret_thread = grant->thread;
    if (grant->thread) return OK;
    enum err e = interaction_find(db, arena, grant->interaction_id, &interaction);
    if (!e) *ret_thread = interaction.thread;
    return e == ERR_NOT_FOUND ? OK : e;
}

static enum err note_revoked(struct change *change, struct db *db, const struct grant *grant)
{
    struct audit_entry entry = {.action = AUDIT_REVOKED,
                                .interaction_id = grant->interaction_id,
                                .who = change->x->who.user,
                                .via = settle_via(change->x),
                                .why = STR("revoked"),
                                .at = change->now};
    int64_t thread;
    crypto_sha256(grant->match, entry.hash);
    enum err e = thread_of(db, change_arena(change), grant, &thread);
    if (e || !thread) return e;
    return audit_add(db, change->x->server->saver.audit_key, thread, &entry);
}

/* Every run under way looks again: a step that was taken with the grant is refused. */
static enum err revoke_apply(struct change *change, struct db *db)
{
    struct exchange *x = change->x;
    struct grant grant;
    enum err e = grant_find(db, change_arena(change), x->who.user, x->params[0], &grant);
    if (!e) e = grant_delete(db, x->who.user, grant.id);
    if (!e) e = snapshots_touch_owner(db, x->who.user);
    if (!e) e = note_revoked(change, db, &grant);
    change->status = 204;
    return e;
}

void handle_grant_delete(struct exchange *x)
{
    struct change *change = ARENA_NEW(exchange_arena(x), struct change);
    change->apply = revoke_apply;
    change_start(change, x);
}

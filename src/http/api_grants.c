/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants: what a person has allowed for always, listed and revoked. They are made by an approval
 * with `always`, in the step that settles it. Whom one concerns: whose runs it serves, who made it, who
 * could have, and operators; for everybody else there is none.
 */
#include "base/limits.h"
#include "feed/interaction_json.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "http/query.h"
#include "server/server.h"
#include "thread/settle.h"

/* ---- GET /grants ---- */

struct list_grants {
    struct job job;
    struct exchange *x;
    struct grant_filter filter;
    struct grant_list list;
};

static enum err list_run(struct job *job, struct db *db)
{
    struct list_grants *list = (struct list_grants *)(void *)job;
    return grants_page(db, exchange_arena(list->x), &list->filter, &list->list);
}

/* Whoever is not the owner does not see the thread, and sees whose it is. */
static void put_grant(struct json_writer *w, const struct grant *grant, bool for_owner)
{
    char created[RFC3339_BYTES];
    clock_rfc3339(grant->created, created);
    json_object(w);
    json_member(w, STR("grantId"), grant->id);
    json_member(w, STR("toolName"), grant->tool);
    json_member(w, STR("scope"), grant->thread ? STR("thread") : STR("user"));
    if (grant->thread && for_owner) json_member(w, STR("threadId"), grant->thread_id);
    if (!for_owner) json_member(w, STR("requester"), grant->owner);
    json_member_raw(w, STR("match"), grant->match);
    json_member(w, STR("madeBy"), grant->made_by);
    json_member(w, STR("interactionId"), grant->interaction_id);
    json_member(w, STR("createdAt"), str_c(created));
    if (grant->rule.len) json_member(w, STR("rule"), grant->rule);
    json_key(w, STR("approvedBy"));
    json_array(w);
    json_string(w, grant->made_by);
    json_array_end(w);
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
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, HTTP_ANSWER_BYTES_MAX / 2);
    json_object(&doc.w);
    json_key(&doc.w, STR("grants"));
    json_array(&doc.w);
    for (size_t i = 0; i < list->list.count; i++)
        put_grant(&doc.w, &list->list.rows[i], str_eq(list->list.rows[i].owner, x->who.user));
    json_array_end(&doc.w);
    if (list->list.more) {
        int64_t last = list->list.rows[list->list.count - 1].n;
        json_member(&doc.w, STR("next"), arena_printf(exchange_arena(x), "%lld", (long long)last));
    }
    json_object_end(&doc.w);
    exchange_written(x, &doc.buf);
}

/* mine, or all of everybody, which is an operator's to ask. */
static enum err parse_scope(struct exchange *x, bool *ret_all, struct fault *reterr)
{
    str scope = {NULL, 0};
    enum err e = query_text(x, "scope", &scope, reterr);
    *ret_all = !e && str_eq(scope, STR("all"));
    if (e || !scope.p || str_eq(scope, STR("mine"))) return e;
    if (!*ret_all)
        return fault_field(reterr, ERR_INVALID_FIELD, "scope", "scope must be mine or all");
    if (x->who.roles & ROLE_OPERATOR) return OK;
    return fault(reterr, ERR_FORBIDDEN, "scope=all needs the role operator");
}

void handle_grants_list(struct exchange *x)
{
    struct list_grants *list = ARENA_NEW(exchange_arena(x), struct list_grants);
    struct grant_filter *filter = &list->filter;
    struct fault why = {0};
    uint64_t before = 0;
    enum err e = parse_scope(x, &filter->all, &why);
    if (!e) e = query_number(x, "cursor", &before, &why);
    if (!e) e = query_limit(x, &filter->limit, &why);
    filter->user = x->who.user;
    filter->before = (int64_t)before;
    static_assert((int)GRANT_ROLES_MAX == (int)INTERACTION_ROLES_MAX, "room for every role");
    role_names(x->who.roles, filter->roles);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    exchange_read(x, &list->job, READ_PAGE);
}

/* ---- DELETE /grants/{id} ---- */

static bool concerns(const struct identity *who, const struct grant *grant)
{
    str roles[INTERACTION_ROLES_MAX];
    bool may = str_eq(grant->owner, who->user) || str_eq(grant->made_by, who->user) ||
               (who->roles & ROLE_OPERATOR);
    role_names(who->roles, roles);
    for (size_t i = 0; i < COUNT(roles); i++)
        may = may || (grant->approver.len && str_eq(roles[i], grant->approver));
    return may;
}

/* Every run under way looks again: a step that was taken with the grant is refused. */
static enum err revoke_apply(struct change *change, struct db *db)
{
    struct exchange *x = change_exchange(change);
    struct grant grant;
    const struct grant_end end = {.audit_key = x->server->saver.audit_key,
                                  .who = x->who.user,
                                  .via = change->by.via,
                                  .why = STR("revoked"),
                                  .now = change->now};
    enum err e = grant_find(db, change_arena(change), x->params[0], &grant);
    if (!e && !concerns(&x->who, &grant)) e = ERR_NOT_FOUND;
    if (!e) e = grant_revoke(db, change_arena(change), &grant, &end);
    change->status = 204;
    return e;
}

void handle_grant_delete(struct exchange *x)
{
    struct change *change = ARENA_NEW(exchange_arena(x), struct change);
    change->apply = revoke_apply;
    change_start(change, x);
}

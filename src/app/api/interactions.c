/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions: the inbox, one of them, and what people do with them: answer, cancel, move the
 * expiry. The decisions are in settle.c; here they become requests and answers.
 *
 * A refused answer is committed like a good one, because it leaves an entry in the audit trail; its
 * problem document has the interaction, as it stands now, as a member. Somebody who may not see the
 * interaction gets the bytes of an unknown id.
 */
#include "agent/interaction.h"
#include "app/api/handlers.h"
#include "app/clockwork.h"
#include "app/http/query.h"
#include "app/input/settle.h"
#include "app/input/thread_change.h"
#include "app/say.h"
#include "app/server.h"
#include "base/limits.h"

/* May this user see it? Answering is another question. */
static bool sees(const struct identity *who, const struct interaction *interaction)
{
    str roles[INTERACTION_ROLES_MAX];
    role_names(who->roles, roles);
    return interaction_allows(interaction, who->user, roles, INTERACTION_ROLES_MAX) !=
           ERR_NOT_FOUND;
}

/* ---- GET /interactions ---- */

struct list_interactions {
    struct job job;
    struct exchange *x;
    struct interaction_filter filter;
    struct buf out;
};

/* On a reading thread, which may take the time to write a long page. */
static enum err list_run(struct job *job, struct db *db)
{
    struct list_interactions *list = (struct list_interactions *)(void *)job;
    struct arena *arena = exchange_arena(list->x);
    struct interaction_list page;
    struct json_writer w;
    enum err e = interactions_page(db, arena, &list->filter, &page);
    if (e) return e;
    json_write_begin(&w, &list->out);
    json_object(&w);
    json_key(&w, STR("interactions"));
    json_array(&w);
    for (size_t i = 0; i < page.count; i++)
        interaction_write(&w, &page.rows[i], str_eq(page.rows[i].owner, list->x->who.user));
    json_array_end(&w);
    if (page.more) json_member(&w, STR("next"), arena_printf(arena, "%lld", (long long)page.next));
    json_object_end(&w);
    return list->out.full ? ERR_TOO_LARGE : OK;
}

static void list_done(struct job *job, enum err e)
{
    struct list_interactions *list = (struct list_interactions *)(void *)job;
    struct buf out = list->out; /* the rest goes with the answer */
    if (e)
        exchange_error(list->x, e, NULL);
    else
        exchange_json(list->x, 200, buf_str(&out));
    buf_done(&out);
}

static enum err parse_status(str text, int *ret_status, struct fault *reterr)
{
    if (!text.p) text = STR("open");
    for (int i = 0; i < INTERACTION_STATUS_COUNT; i++)
        if (str_eq(text, str_c(interaction_status_name((enum interaction_status)i)))) {
            *ret_status = i;
            return OK;
        }
    return fault_field(reterr, ERR_INVALID_FIELD, "status",
                       "status must be open, resolved, canceled, expired or superseded");
}

void handle_interactions_list(struct exchange *x)
{
    struct list_interactions *list = ARENA_NEW(exchange_arena(x), struct list_interactions);
    struct interaction_filter *filter = &list->filter;
    struct fault why = {0};
    str status = {NULL, 0};
    uint64_t cursor = 0;
    enum err e = query_text(x, "status", &status, &why);
    if (!e) e = parse_status(status, &filter->status, &why);
    if (!e) e = query_text(x, "agent", &filter->agent, &why);
    if (!e) e = query_text(x, "threadId", &filter->thread_id, &why);
    if (!e) e = query_number(x, "cursor", &cursor, &why);
    if (!e) e = query_limit(x, &filter->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    filter->owner = x->who.user;
    filter->before = (int64_t)cursor;
    role_names(x->who.roles, filter->roles);
    buf_init(&list->out, HTTP_ANSWER_BYTES_MAX / 2);
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    store_read(x->server->store, &list->job);
}

/* ---- GET /interactions/{id} ---- */

struct get_interaction {
    struct job job;
    struct exchange *x;
    struct interaction interaction;
};

static enum err get_run(struct job *job, struct db *db)
{
    struct get_interaction *get = (struct get_interaction *)(void *)job;
    struct exchange *x = get->x;
    enum err e = interaction_find(db, exchange_arena(x), x->params[0], &get->interaction);
    if (!e && !sees(&x->who, &get->interaction)) e = ERR_NOT_FOUND;
    return e;
}

static void get_done(struct job *job, enum err e)
{
    struct get_interaction *get = (struct get_interaction *)(void *)job;
    struct exchange *x = get->x;
    if (e)
        exchange_error(x, e, NULL);
    else
        exchange_json(x, 200, interaction_json(exchange_arena(x), &get->interaction, x->who.user));
}

void handle_interaction_get(struct exchange *x)
{
    struct get_interaction *get = ARENA_NEW(exchange_arena(x), struct get_interaction);
    get->job = (struct job){.run = get_run, .done = get_done};
    get->x = x;
    store_read(x->server->store, &get->job);
}

/* ---- POST /interactions/{id}/answer, POST /interactions/{id}/cancel ---- */

struct settle_change {
    struct thread_change tc;
    struct settle settle;
    bool cancel;
};

static struct settle_change *settle_change_new(struct exchange *x)
{
    struct settle_change *sc = ARENA_NEW(exchange_arena(x), struct settle_change);
    sc->settle = (struct settle){.saver = &x->server->saver,
                                 .user = x->who.user,
                                 .roles = x->who.roles,
                                 .via = settle_via(x)};
    crypto_random(sc->settle.random, sizeof sc->settle.random);
    crypto_sha256(x->request->body, sc->settle.hash);
    sc->tc.change.after = thread_change_tell;
    return sc;
}

/* What became of it, as the answer of the request. */
static void give(struct settle_change *sc, const struct settlement *s)
{
    struct change *change = &sc->tc.change;
    thread_change_stepped(&sc->tc, &s->stepped);
    if (s->refusal == REFUSAL_NOT_VISIBLE) {
        change->unremembered = true; /* an unknown id is not remembered either */
        change_refuse(change, ERR_NOT_FOUND, NULL, STR_EMPTY, STR_EMPTY);
        return;
    }
    str json = interaction_json(change_arena(change), &s->interaction, sc->settle.user);
    change->thread = s->interaction.thread;
    if (s->refusal) {
        change_refuse(change, refusal_err(s->refusal), &s->why, STR("interaction"), json);
        return;
    }
    change->status = 200;
    change->body = json;
}

static enum err settle_apply(struct change *change, struct db *db)
{
    struct settle_change *sc = (struct settle_change *)(void *)change;
    struct arena *arena = change_arena(change);
    struct exchange *x = change->x;
    struct settlement s;
    thread_change_reset(&sc->tc);
    sc->settle.now = change->now;
    enum err e = sc->cancel ? settle_cancel(db, arena, &sc->settle, x->params[0], &s)
                            : settle_answer(db, arena, &sc->settle, x->params[0], x->body, &s);
    if (!e) give(sc, &s);
    return e;
}

void handle_interaction_answer(struct exchange *x)
{
    struct settle_change *sc = settle_change_new(x);
    sc->tc.change.apply = settle_apply;
    change_start(&sc->tc.change, x);
}

void handle_interaction_cancel(struct exchange *x)
{
    static const char *const none[] = {NULL};
    struct settle_change *sc = settle_change_new(x);
    struct fault why = {0};
    enum err e = x->body ? exchange_known(x->body, none, &why) : OK;
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    sc->cancel = true;
    sc->tc.change.apply = settle_apply;
    change_start(&sc->tc.change, x);
}

/* ---- POST /runs/{threadId}/answer ---- */

/* The open questions of a thread, at the front of the list. */
static size_t questions_of(struct interaction_list *open)
{
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++)
        if (open->rows[i].type == INTERACTION_ASK_USER) open->rows[count++] = open->rows[i];
    return count;
}

static enum err refuse_run_answer(struct settle_change *sc, struct db *db, enum refusal refusal,
                                  str member, str json)
{
    struct fault why = {0};
    if (refusal_says(refusal)) fault(&why, refusal_err(refusal), "%s", refusal_says(refusal));
    change_refuse(&sc->tc.change, refusal_err(refusal), &why, member, json);
    return settle_refused(db, &sc->settle, sc->tc.thread.id, NULL, refusal);
}

static enum err run_answer_apply(struct change *change, struct db *db)
{
    struct settle_change *sc = (struct settle_change *)(void *)change;
    struct arena *arena = change_arena(change);
    struct exchange *x = change->x;
    struct interaction_list open;
    struct settlement s;
    thread_change_reset(&sc->tc);
    sc->settle.now = change->now;
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &sc->tc.thread);
    if (!e) e = interactions_of_thread(db, arena, sc->tc.thread.id, &open);
    if (e) return e;
    change->thread = sc->tc.thread.id;
    size_t count = questions_of(&open);
    if (!count) return refuse_run_answer(sc, db, REFUSAL_NO_QUESTION, STR_EMPTY, STR_EMPTY);
    if (count > 1)
        return refuse_run_answer(sc, db, REFUSAL_AMBIGUOUS, STR("interactions"),
                                 interactions_json(arena, open.rows, count, x->who.user));
    e = settle_answer(db, arena, &sc->settle, open.rows[0].id, x->body, &s);
    if (!e) give(sc, &s);
    return e;
}

void handle_run_answer(struct exchange *x)
{
    static const char *const known[] = {"answer", NULL};
    struct settle_change *sc = settle_change_new(x);
    struct fault why = {0};
    str answer;
    enum err e = exchange_known(x->body, known, &why);
    if (!e) e = exchange_string(x->body, "answer", ANSWER_BYTES_MAX, &answer, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    sc->tc.change.apply = run_answer_apply;
    change_start(&sc->tc.change, x);
}

/* ---- PATCH /interactions/{id} ---- */

struct move_expiry {
    struct change change;
    msec expires; /* 0: never */
};

static enum err note_moved(struct change *change, struct db *db,
                           const struct interaction *interaction)
{
    struct exchange *x = change->x;
    struct audit_entry entry = {.action = AUDIT_MOVED,
                                .interaction_id = interaction->id,
                                .call_id = interaction->call_id,
                                .who = x->who.user,
                                .via = settle_via(x),
                                .why = STR("moved"),
                                .at = change->now};
    crypto_sha256(x->request->body, entry.hash);
    return audit_add(db, x->server->saver.audit_key, interaction->thread, &entry);
}

static enum err move_apply(struct change *change, struct db *db)
{
    struct move_expiry *move = (struct move_expiry *)(void *)change;
    struct exchange *x = change->x;
    struct arena *arena = change_arena(change);
    struct interaction interaction;
    enum err e = interaction_find(db, arena, x->params[0], &interaction);
    if (e) return e;
    bool may = str_eq(interaction.owner, x->who.user) || (x->who.roles & ROLE_OPERATOR);
    if (!may && !sees(&x->who, &interaction)) return ERR_NOT_FOUND;
    if (!may)
        return fault(&change->why, ERR_FORBIDDEN, "the owner or an operator moves the expiry");
    enum refusal over = refusal_of_status(interaction.status);
    if (over) {
        struct fault why = {0};
        fault(&why, refusal_err(over), "%s", refusal_says(over));
        change_refuse(change, refusal_err(over), &why, STR("interaction"),
                      interaction_json(arena, &interaction, x->who.user));
        return OK;
    }
    e = interaction_set_expiry(db, interaction.id, move->expires);
    if (!e) e = note_moved(change, db, &interaction);
    if (e) return e;
    interaction.expires = move->expires;
    change->thread = interaction.thread;
    change->status = 200;
    change->body = interaction_json(arena, &interaction, x->who.user);
    return OK;
}

static void move_after(struct change *change)
{
    clockwork_look(change->x->server->clockwork);
}

/* RFC 3339 with a time of day, later than now; or null. */
static enum err parse_expiry(const struct json *body, msec now, msec *ret_expires,
                             struct fault *reterr)
{
    static const char *const known[] = {"expiresAt", NULL};
    enum { DATE_BYTES = 10 };
    enum err e = exchange_known(body, known, reterr);
    if (e) return e;
    const struct json *member = json_get(body, STR("expiresAt"));
    *ret_expires = 0;
    if (member && member->type == JSON_NULL) return OK;
    str text = json_text(member);
    if (text.len <= DATE_BYTES || clock_parse(text, ret_expires))
        return fault_field(reterr, ERR_INVALID_FIELD, "expiresAt",
                           "expiresAt must be a time such as 2030-01-31T09:30:00Z, or null");
    if (*ret_expires <= now)
        return fault_field(reterr, ERR_INVALID_FIELD, "expiresAt",
                           "expiresAt must lie in the future; to end the wait now, cancel it");
    return OK;
}

void handle_interaction_patch(struct exchange *x)
{
    struct move_expiry *move = ARENA_NEW(exchange_arena(x), struct move_expiry);
    struct fault why = {0};
    enum err e = parse_expiry(x->body, clock_wall(&clock_system), &move->expires, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    move->change.apply = move_apply;
    move->change.after = move_after;
    change_start(&move->change, x);
}

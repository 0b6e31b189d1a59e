/* SPDX-License-Identifier: Apache-2.0
 *
 * Interactions: the inbox, one of them, and what people do with them: answer, cancel, move the
 * expiry. Answers are in thread/give_answer.c; here they are requests.
 */
#include "agent/core/interaction.h"
#include "base/limits.h"
#include "base/members.h"
#include "base/say.h"
#include "duty/clockwork.h"
#include "feed/interaction_json.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "http/query.h"
#include "server/server.h"
#include "thread/give_answer.h"

/* May this user see it? Answering is another question. */
static bool sees(const struct identity *who, const struct interaction *interaction)
{
    struct decider decider = {.user = who->user};
    role_names(who->roles, decider.roles);
    return interaction_allows(interaction, &decider) != ADMITTED_NOT_SEEN;
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
    exchange_read(x, &list->job, READ_PAGE);
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
    enum err e = interaction_brief(db, exchange_arena(x), x->params[0], &get->interaction);
    if (!e && !sees(&x->who, &get->interaction)) e = ERR_NOT_FOUND;
    return e ? e : interaction_find(db, exchange_arena(x), x->params[0], &get->interaction);
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
    exchange_read(x, &get->job, READ_PAGE);
}

/* ---- POST /interactions/{id}/answer, POST /interactions/{id}/cancel ---- */

static struct give_answer *give_answer_new(struct exchange *x)
{
    struct give_answer *give = ARENA_NEW(exchange_arena(x), struct give_answer);
    change_for(&give->tc.change, x);
    give->body = x->body;
    give->sent = x->request->body;
    return give;
}

void handle_interaction_answer(struct exchange *x)
{
    struct give_answer *give = give_answer_new(x);
    give->id = x->params[0];
    give_answer(give);
}

void handle_interaction_cancel(struct exchange *x)
{
    static const char *const none[] = {NULL};
    struct give_answer *give = give_answer_new(x);
    struct fault why = {0};
    enum err e = x->body ? members_known(x->body, none, &why) : OK;
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    give->id = x->params[0];
    give_up_answer(give);
}

/* ---- POST /runs/{threadId}/answer ---- */

void handle_run_answer(struct exchange *x)
{
    static const char *const known[] = {"answer", NULL};
    struct give_answer *give = give_answer_new(x);
    struct fault why = {0};
    enum err e = members_known(x->body, known, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    give->thread_id = x->params[0];
    give_answer_to_thread(give);
}

/* ---- PATCH /interactions/{id} ---- */

struct move_expiry {
    struct change change;
    msec expires; /* 0: never */
};

static enum err move_apply(struct change *change, struct db *db)
{
    struct move_expiry *move = (struct move_expiry *)(void *)change;
    struct exchange *x = change_exchange(change);
    struct arena *arena = change_arena(change);
    struct interaction interaction;
    enum err e = interaction_brief(db, arena, x->params[0], &interaction);
    if (e) return e;
    bool may = str_eq(interaction.owner, x->who.user) || (x->who.roles & ROLE_OPERATOR);
    if (!may && !sees(&x->who, &interaction)) return ERR_NOT_FOUND;
    e = interaction_find(db, arena, x->params[0], &interaction);
    if (e) return e;
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
    struct audit_entry entry = {.action = AUDIT_MOVED,
                                .interaction_id = interaction.id,
                                .call_id = interaction.call_id,
                                .who = x->who.user,
                                .via = change->by.via,
                                .why = STR("moved"),
                                .at = change->now};
    crypto_sha256(x->request->body, entry.hash);
    if (!e) e = audit_add(db, x->server->saver.audit_key, interaction.thread, &entry);
    if (e) return e;
    interaction.expires = move->expires;
    change->thread = interaction.thread;
    change->status = 200;
    change->body = interaction_json(arena, &interaction, x->who.user);
    return OK;
}

static void move_after(struct change *change)
{
    clockwork_look(change->by.server->clockwork);
}

/* RFC 3339 with a time of day, later than now; or null. */
static enum err parse_expiry(const struct json *body, msec now, msec *ret_expires,
                             struct fault *reterr)
{
    static const char *const known[] = {"expiresAt", NULL};
    enum { DATE_BYTES = 10 };
    enum err e = members_known(body, known, reterr);
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

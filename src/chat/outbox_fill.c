/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent said, into the outbox of a chat: read the facts behind the person's cursor, make
 * messages of them (chat/deliver.h), then one commit that has the messages and the cursor.
 *
 * Invariants:
 * 1. Messages and cursor are one commit, and only if the cursor is where it was read: a fact is told
 *    once.
 * 2. Facts are read in pages and most are dropped at once, so a long leg costs time and not memory.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/rows.h"
#include "chat/chats_int.h"
#include "store/table/conversation.h"

static struct person *person_of(struct mirror *mirror)
{
    return CONTAINER(mirror, struct person, mirror);
}

/* ---- reading ---- */

static enum err load_facts(struct mirror *mirror, struct db *db)
{
    int64_t after = mirror->peer.cursor;
    for (bool more = true; more;) {
        struct fact_list page;
        struct arena scratch;
        arena_init(&scratch);
        enum err e = facts_after(db, &scratch, mirror->peer.thread, after, FEED_PAGE_FACTS, &page);
        for (size_t i = 0; !e && i < page.count; i++) {
            const struct fact *fact = &page.facts[i];
            after = fact->seq;
            if (!deliver_needs(fact->type)) continue;
            bool words = !deliver_wakes(fact->type) && strcmp(fact->type, FACT_RUN_STARTED) != 0;
            if (words && mirror->fact_count >= CHANNEL_FACTS_MAX)
                continue; /* the end still counts */
            *ROWS_ADD(&mirror->arena, mirror->facts, mirror->fact_count) =
                (struct fact){.seq = fact->seq,
                              .type = arena_cstr(&mirror->arena, str_c(fact->type)),
                              .run_id = arena_str(&mirror->arena, fact->run_id),
                              .at = fact->at,
                              .data = arena_str(&mirror->arena, fact->data)};
        }
        more = !e && page.more;
        arena_done(&scratch);
        if (e) return e;
    }
    return OK;
}

static enum err mirror_take(struct row_worker *worker, struct db *db)
{
    struct mirror *mirror = CONTAINER(worker, struct mirror, worker);
    arena_reset(&mirror->arena);
    mirror->facts = NULL;
    mirror->interactions = NULL;
    mirror->fact_count = mirror->interaction_count = 0;
    enum err e = peer_by_id(db, &mirror->arena, person_of(mirror)->peer, &mirror->peer);
    worker->none = !e && !mirror->peer.thread;
    if (e || worker->none) return e;
    e = load_facts(mirror, db);
    for (size_t i = 0; !e && i < mirror->fact_count; i++) {
        struct interaction interaction;
        str id = deliver_about(&mirror->arena, &mirror->facts[i]);
        if (!id.len) continue;
        e = interaction_find(db, &mirror->arena, id, &interaction);
        if (!e)
            *ROWS_ADD(&mirror->arena, mirror->interactions, mirror->interaction_count) =
                interaction;
        if (e == ERR_NOT_FOUND) e = OK;
    }
    return e;
}

/* ---- writing ---- */

/* The question as it was asked, and below it what became of it. */
static str settled_question(struct mirror *mirror, const struct out_row *asked)
{
    for (size_t i = 0; i < mirror->interaction_count; i++) {
        const struct interaction *interaction = &mirror->interactions[i];
        if (!str_eq(interaction->id, asked->interaction)) continue;
        str user = person_user(&mirror->arena, person_of(mirror)->channel, &mirror->peer);
        str became = settled_text(&mirror->arena, peer_locale(&mirror->peer), interaction, user);
        return text_join(&mirror->arena, (const str[]){asked->text, STR("\n\n"), became}, 3);
    }
    return asked->text;
}

/* A question that has not left is not asked any more, and nobody need be told who answered it. One
 * with buttons that has left loses them. */
static enum err drop_settled(struct mirror *mirror, struct db *db)
{
    struct delivery *delivery = &mirror->delivery;
    enum err e = OK;
    mirror->receipts = NULL;
    mirror->receipt_count = 0;
    for (size_t i = 0; !e && i < delivery->settled_count; i++) {
        struct out_row asked;
        bool dropped = false;
        e = out_drop_about(db, mirror->peer.id, delivery->settled[i], &dropped);
        for (size_t j = 0; !e && dropped && j < delivery->count; j++)
            if (delivery->rows[j].class == OUT_NOTICE &&
                str_eq(delivery->rows[j].interaction, delivery->settled[i]))
                delivery->rows[j].text = STR_EMPTY;
        if (e || dropped) continue;
        e = out_about(db, &mirror->arena, mirror->peer.id, OUT_QUESTION, delivery->settled[i],
                      &asked);
        if (!e && asked.buttons.len)
            *ROWS_ADD(&mirror->arena, mirror->receipts, mirror->receipt_count) =
                (struct receipt){.to = mirror->peer.sender,
                                 .server_id = asked.server_id,
                                 .text = settled_question(mirror, &asked)};
        if (e == ERR_NOT_FOUND) e = OK;
    }
    return e;
}

static enum err mirror_end(struct row_worker *worker, struct db *db)
{
    struct mirror *mirror = CONTAINER(worker, struct mirror, worker);
    struct peer peer;
    enum err e = peer_by_id(db, &mirror->arena, mirror->peer.id, &peer);
    if (e) return e;
    mirror->stale = peer.thread != mirror->peer.thread || peer.cursor != mirror->peer.cursor;
    if (mirror->stale) return OK;
    e = drop_settled(mirror, db);
    for (size_t i = 0; !e && i < mirror->delivery.count; i++) {
        struct out_row row = mirror->delivery.rows[i];
        if (!row.text.len && !row.file.len) continue;
        row.peer = peer.id;
        e = outbox_put(db, &mirror->arena, &row, worker->now);
    }
    peer.cursor = mirror->delivery.cursor;
    return e ? e : peer_update(db, &peer);
}

static void mirror_rest(struct row_worker *worker, bool ended)
{
    struct mirror *mirror = CONTAINER(worker, struct mirror, worker);
    struct person *person = person_of(mirror);
    if (ended && !mirror->stale) {
        for (size_t i = 0; i < mirror->receipt_count; i++)
            receipt_send(person->channel, &mirror->receipts[i]);
        typing_end(person);
    }
    if (ended) person->wants |= mirror->stale ? WANT_MIRROR : WANT_SEND;
    person_rest(person, WANT_MIRROR);
}

static void mirror_due(struct row_worker *worker)
{
    struct person *person = person_of(CONTAINER(worker, struct mirror, worker));
    person_want(person->channel, person->peer, WANT_MIRROR);
}

static void mirror_work(struct row_worker *worker)
{
    struct mirror *mirror = CONTAINER(worker, struct mirror, worker);
    struct channel *c = person_of(mirror)->channel;
    const struct server *server = c->all->server;
    str user = person_user(&mirror->arena, c, &mirror->peer);
    struct delivery_view view = {.traits = &c->ops->traits,
                                 .locale = peer_locale(&mirror->peer),
                                 .code_key = c->all->code_key,
                                 .peer = mirror->peer.id,
                                 .group = mirror->peer.group,
                                 .user = user,
                                 .roles = person_roles(&mirror->peer),
                                 .alone =
                                     !auth_required(server->auth) && str_eq(user, STR("local")),
                                 .thread_id = mirror->peer.thread_id,
                                 .page = server->page};
    deliver_facts(&mirror->arena, &view, mirror->facts, mirror->fact_count, mirror->interactions,
                  mirror->interaction_count, mirror->peer.cursor, &mirror->delivery);
    if (mirror->delivery.cursor == mirror->peer.cursor)
        row_worker_leave(worker, 0); /* nothing that is told */
    else
        row_worker_end(worker);
}

const struct row_worker_ops mirror_ops = {.take = mirror_take,
                                          .take_reads = true,
                                          .work = mirror_work,
                                          .end = mirror_end,
                                          .rest = mirror_rest,
                                          .due = mirror_due,
                                          .untaken = "channel.untold",
                                          .unended = "channel.untold"};

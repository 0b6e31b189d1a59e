/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent said, on its way into the outbox: read the facts behind the person's cursor, make
 * messages of them (channel/deliver.h), then one commit that has the messages and the cursor.
 *
 * Invariants:
 * 1. Messages and cursor are one commit, and only if the cursor is where it was read: a fact is told
 *    once.
 * 2. Facts are read in pages and most are dropped at once, so a long leg costs time and not memory.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/facts.h"
#include "agent/texts.h"
#include "app/channel/int.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/conversation.h"
#include "store/rows.h"

enum { RETRY_MS = 1000 };

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

static enum err load_interactions(struct mirror *mirror, struct db *db)
{
    for (size_t i = 0; i < mirror->fact_count; i++) {
        str id = deliver_about(&mirror->arena, &mirror->facts[i]);
        if (!id.len) continue;
        struct interaction interaction;
        enum err e = interaction_find(db, &mirror->arena, id, &interaction);
        if (e == ERR_NOT_FOUND) continue;
        if (e) return e;
        *ROWS_ADD(&mirror->arena, mirror->interactions, mirror->interaction_count) = interaction;
    }
    return OK;
}

static enum err read_run(struct job *job, struct db *db)
{
    struct mirror *mirror = (struct mirror *)(void *)job;
    arena_reset(&mirror->arena);
    mirror->facts = NULL;
    mirror->interactions = NULL;
    mirror->fact_count = mirror->interaction_count = 0;
    enum err e = peer_by_id(db, &mirror->arena, person_of(mirror)->peer, &mirror->peer);
    if (e || !mirror->peer.thread) return e;
    e = load_facts(mirror, db);
    return e ? e : load_interactions(mirror, db);
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

static enum err write_run(struct job *job, struct db *db)
{
    struct mirror *mirror = (struct mirror *)(void *)job;
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
        e = outbox_put(db, &mirror->arena, &row, mirror->now);
    }
    peer.cursor = mirror->delivery.cursor;
    return e ? e : peer_update(db, &peer);
}

static void on_later(void *arg)
{
    struct mirror *mirror = arg;
    struct person *person = person_of(mirror);
    timer_free(TAKE(mirror->timer));
    person_want(person->channel, person->peer, WANT_MIRROR);
}

/* The store could not: nothing is told yet, and nothing is lost. */
static void again_later(struct mirror *mirror, enum err e)
{
    struct channel *c = person_of(mirror)->channel;
    if (c->all->stopping) return;
    log_warn("channel.untold", LOG_STR("channel", c->config->name),
             LOG_CSTR("reason", err_title(e)));
    if (!mirror->timer) mirror->timer = timer_new(c->all->server->loop, on_later, mirror);
    timer_start(mirror->timer, RETRY_MS);
}

static void write_done(struct job *job, enum err e)
{
    struct mirror *mirror = (struct mirror *)(void *)job;
    struct person *person = person_of(mirror);
    if (e) {
        again_later(mirror, e);
    } else if (!person->channel->all->stopping) {
        if (!mirror->stale) {
            for (size_t i = 0; i < mirror->receipt_count; i++)
                receipt_send(person->channel, &mirror->receipts[i]);
            typing_end(person);
        }
        person->wants |= mirror->stale ? WANT_MIRROR : WANT_SEND;
    }
    person_rest(person, WANT_MIRROR);
}

static void read_done(struct job *job, enum err e)
{
    struct mirror *mirror = (struct mirror *)(void *)job;
    struct person *person = person_of(mirror);
    struct channel *c = person->channel;
    const struct server *server = c->all->server;
    if (e || c->all->stopping || !mirror->peer.thread) {
        if (e) again_later(mirror, e);
        person_rest(person, WANT_MIRROR);
        return;
    }
    struct delivery_view view = {.traits = &c->ops->traits,
                                 .locale = peer_locale(&mirror->peer),
                                 .code_key = c->all->code_key,
                                 .peer = mirror->peer.id,
                                 .group = mirror->peer.group,
                                 .user = person_user(&mirror->arena, c, &mirror->peer),
                                 .roles = person_roles(&mirror->peer),
                                 .thread_id = mirror->peer.thread_id,
                                 .page = server->page};
    deliver_facts(&mirror->arena, &view, mirror->facts, mirror->fact_count, mirror->interactions,
                  mirror->interaction_count, mirror->peer.cursor, &mirror->delivery);
    if (mirror->delivery.cursor == mirror->peer.cursor) {
        person_rest(person, WANT_MIRROR);
        return;
    }
    mirror->now = clock_wall(&clock_system);
    mirror->job = (struct job){.run = write_run, .done = write_done};
    store_write(server->store, &mirror->job);
}

void mirror_go(struct person *person)
{
    struct mirror *mirror = &person->mirror;
    if (mirror->timer) timer_free(TAKE(mirror->timer));
    mirror->job = (struct job){.run = read_run, .done = read_done};
    store_read(person->channel->all->server->store, &mirror->job);
}

void mirror_open(struct person *person)
{
    arena_init(&person->mirror.arena);
}

void mirror_close(struct person *person)
{
    timer_free(person->mirror.timer);
    arena_done(&person->mirror.arena);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Chats at work: what each channel is, its life, and what was left by the process before.
 *
 *   poll ──► receive: one commit ──► worker ──► a run, an answer, a word
 *   webhook ──┘  (inbox, cursor)                       │ facts
 *                                                      ▼
 *   platform ◄── sender ◄── outbox: one commit ◄── outbox_fill
 *
 * To be read in this order: poll.c, people.c, inbox_worker.c (with decide.c), outbox_fill.c,
 * sender.c. Each says what it promises.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/rows.h"
#include "chat/chats_int.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "store/db/secret.h"
#include "store/db/sqlite.h"
#include "store/table/conversation.h"

enum {
    RECOVERY_PAGE = 100, /* people of one look after a start */
    RECOVERY_MS = 200,   /* between two of them */
    RECOVERY_RETRY_MS = 1000,
};

/* ---- what a channel is ---- */

void channel_say(struct channel *c, enum channel_state state, const char *detail)
{
    bool same = c->state == state && strcmp(c->detail, detail) == 0;
    c->state = state;
    snprintf(c->detail, sizeof c->detail, "%s", detail);
    bool back = c->signed_out && state != CHANNEL_NEEDS_LOGIN;
    c->signed_out = state == CHANNEL_NEEDS_LOGIN;
    if (back) people_wake(c);
    if (same) return;
    if (state == CHANNEL_ONLINE)
        log_info("channel.online", LOG_STR("channel", c->config->name));
    else
        log_warn("channel.trouble", LOG_STR("channel", c->config->name),
                 LOG_CSTR("state", channel_state_name(state)), LOG_CSTR("reason", detail));
}

void channel_keep_account(struct channel *c, str account)
{
    c->home.account = arena_str(&c->arena, account);
}

void channel_keep_cursor(struct channel *c, str cursor)
{
    char *copy = malloc(cursor.len + 1);
    if (!copy) abort();
    if (cursor.len) memcpy(copy, cursor.p, cursor.len);
    free((char *)(uintptr_t)c->cursor.p);
    c->cursor = (str){copy, cursor.len};
}

struct channel_row channel_row_of(const struct channel *c)
{
    return (struct channel_row){.name = c->config->name,
                                .kind = c->config->kind,
                                .account = c->home.account,
                                .cursor = c->cursor,
                                .state = c->state,
                                .detail = str_c(c->detail),
                                .changed = clock_wall(&clock_system)};
}

enum err channel_store_account(struct channel *c, struct db *db, str account)
{
    struct arena arena;
    struct channel_row row;
    arena_init(&arena);
    enum err e = channel_find(db, &arena, c->config->name, &row);
    if (!e) {
        row.account = account;
        e = channel_put(db, &row);
    }
    arena_done(&arena);
    return e;
}

struct channel *channel_named(struct channels *channels, str name)
{
    for (size_t i = 0; channels && i < channels->count; i++)
        if (str_eq(channels->items[i].config->name, name)) return &channels->items[i];
    return NULL;
}

const struct channel_home *channel_home(const struct channel *channel)
{
    return &channel->home;
}

const struct channel_ops *channel_ops(const struct channel *channel)
{
    return channel->ops;
}

size_t channels_count(const struct channels *channels)
{
    return channels ? channels->count : 0;
}

struct channel *channels_at(struct channels *channels, size_t index)
{
    return &channels->items[index];
}

void channel_write(struct json_writer *w, const struct channel *c,
                   const struct channel_stats *stats)
{
    const struct server *server = c->all->server;
    json_object(w);
    json_member(w, STR("name"), c->config->name);
    json_member(w, STR("kind"), c->config->kind);
    json_member(w, STR("agent"), c->config->agent);
    json_member(w, STR("state"), str_c(channel_state_name(c->state)));
    if (c->detail[0]) json_member(w, STR("detail"), str_c(c->detail));
    json_member_i64(w, STR("people"), stats->people);
    json_member_i64(w, STR("waiting"), stats->waiting);
    json_member_i64(w, STR("parked"), stats->parked);
    json_member_bool(w, STR("login"), c->ops->traits.logs_in);
    if (c->ops->hook) {
        char url[1024];
        str base = server->config->public_url.text;
        snprintf(url, sizeof url, "%.*s/api/v1/agent/channels/%.*s/webhook", STR_ARG(base),
                 STR_ARG(c->config->name));
        json_member(w, STR("webhookUrl"), str_c(url));
    }
    json_object_end(w);
}

/* ---- what is left to do, after a start or when the store could not tell ---- */

struct recovery {
    struct job job;
    struct arena arena;
    struct channel *channel;
    struct timer *timer;
    int64_t desk_after, send_after, behind_after;
    int64_t *desks, *sends;
    size_t desk_count, send_count;
    struct peer_list behind;
    bool again; /* from the beginning, once this is done */
};

static enum err recovery_run(struct job *job, struct db *db)
{
    struct recovery *r = (struct recovery *)(void *)job;
    str name = r->channel->config->name;
    arena_reset(&r->arena);
    enum err e =
        inbound_peers(db, &r->arena, name, r->desk_after, RECOVERY_PAGE, &r->desks, &r->desk_count);
    if (!e)
        e = out_peers(db, &r->arena, name, r->send_after, RECOVERY_PAGE, &r->sends, &r->send_count);
    return e ? e : peers_behind(db, &r->arena, r->behind_after, RECOVERY_PAGE, &r->behind);
}

static void recovery_free(struct recovery *r)
{
    r->channel->recovery = NULL;
    timer_free(r->timer);
    arena_done(&r->arena);
    free(r);
}

static void recovery_done(struct job *job, enum err e)
{
    struct recovery *r = (struct recovery *)(void *)job;
    struct channel *c = r->channel;
    if (c->all->stopping) return;
    if (e) {
        log_warn("channel.recovery", LOG_STR("channel", c->config->name),
                 LOG_CSTR("reason", err_title(e)));
        timer_start(r->timer, RECOVERY_RETRY_MS);
        return;
    }
    for (size_t i = 0; i < r->desk_count; i++) person_want(c, r->desks[i], WANT_DESK);
    for (size_t i = 0; i < r->send_count; i++) person_want(c, r->sends[i], WANT_SEND);
    for (size_t i = 0; i < r->behind.count; i++)
        if (str_eq(r->behind.rows[i].channel, c->config->name))
            person_want(c, r->behind.rows[i].id, WANT_MIRROR);
    if (r->desk_count) r->desk_after = r->desks[r->desk_count - 1];
    if (r->send_count) r->send_after = r->sends[r->send_count - 1];
    if (r->behind.count) r->behind_after = r->behind.rows[r->behind.count - 1].id;
    bool more = r->desk_count || r->send_count || r->behind.count;
    if (!more && r->again) {
        r->desk_after = r->send_after = r->behind_after = 0;
        r->again = false;
        more = true;
    }
    if (more)
        timer_start(r->timer, RECOVERY_MS);
    else
        recovery_free(r);
}

static void recovery_go(void *arg)
{
    struct recovery *r = arg;
    if (r->channel->all->stopping) return;
    store_read(r->channel->all->server->store, &r->job);
}

/* Everybody for whom something is left. */
static void recover(struct channel *c)
{
    if (c->all->stopping) return;
    if (c->recovery) { /* once more from the beginning */
        c->recovery->again = true;
        return;
    }
    struct recovery *r = calloc(1, sizeof *r);
    if (!r) abort();
    arena_init(&r->arena);
    r->job = (struct job){.run = recovery_run, .done = recovery_done};
    r->channel = c;
    r->timer = timer_new(c->all->server->loop, recovery_go, r);
    c->recovery = r;
    recovery_go(r);
}

/* ---- what the agent says ---- */

struct seek {
    struct job job;
    struct arena arena;
    struct channels *all;
    int64_t thread;
    struct peer peer;
};

static enum err seek_run(struct job *job, struct db *db)
{
    struct seek *seek = (struct seek *)(void *)job;
    return peer_by_thread(db, &seek->arena, seek->thread, &seek->peer);
}

static void seek_done(struct job *job, enum err e)
{
    struct seek *seek = (struct seek *)(void *)job;
    struct channel *c = e ? NULL : channel_named(seek->all, seek->peer.channel);
    if (c) person_want(c, seek->peer.id, WANT_MIRROR);
    if (e && e != ERR_NOT_FOUND) /* whose it was is not known: everybody who is behind is found */
        for (size_t i = 0; i < seek->all->count; i++) recover(&seek->all->items[i]);
    arena_done(&seek->arena);
    free(seek);
}

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct channels *all = arg;
    bool wakes = false;
    for (size_t i = 0; i < count; i++) wakes |= deliver_wakes(facts[i].type);
    if (!wakes || all->stopping) return;
    struct seek *seek = calloc(1, sizeof *seek);
    if (!seek) abort();
    arena_init(&seek->arena);
    seek->job = (struct job){.run = seek_run, .done = seek_done};
    seek->all = all;
    seek->thread = bus_telling(all->server->bus);
    store_read(all->server->store, &seek->job);
}

static const struct bus_ops follower_ops = {.on_facts = on_facts};

static void on_poll_timer(void *arg)
{
    poller_go(arg);
}

/* ---- life ---- */

struct open_channel {
    struct job job;
    struct channel *channel;
    struct arena *arena;
    msec now;
    struct channel_row row;
};

/* The row, made if the channel is new; the lease. Another kind under the same name is another
 * account. */
static enum err open_run(struct job *job, struct db *db)
{
    struct open_channel *open = (struct open_channel *)(void *)job;
    struct channel *c = open->channel;
    enum err e = channel_find(db, open->arena, c->config->name, &open->row);
    bool other = !e && !str_eq(open->row.kind, c->config->kind);
    if (e && e != ERR_NOT_FOUND) return e;
    if (e || other) {
        open->row = (struct channel_row){.name = c->config->name,
                                         .kind = c->config->kind,
                                         .account = STR("{}"),
                                         .cursor = STR_EMPTY,
                                         .detail = STR_EMPTY,
                                         .changed = open->now};
        e = other ? channel_clear(db, c->config->name) : OK; /* people of another platform */
        if (!e) e = channel_put(db, &open->row);
        if (e) return e;
    }
    /* The folder's lock makes us the only ones, whatever the clock says; the epoch tells our commits
     * from those of a process before us. */
    e = lease_take(db, c->lease, c->holder, INT64_MAX, open->now, &c->epoch);
    /* What was under way when the process before ended is of unknown fate; of ours nothing is yet. */
    int64_t *people;
    size_t count;
    if (!e) e = out_sending(db, open->arena, c->config->name, &people, &count);
    for (size_t i = 0; !e && i < count; i++)
        e = outbox_recover(db, open->arena, &c->ops->traits, people[i], open->now);
    return e;
}

static void channel_init(struct channels *all, struct channel *c,
                         const struct config_channel *config)
{
    char holder[ID_BYTES];
    id_random(holder);
    c->all = all;
    c->config = config;
    c->ops = channel_kind(config->kind);
    assert(c->ops); /* the configuration takes no other */
    arena_init(&c->arena);
    arena_init(&c->poller.arena);
    people_init(c);
    c->home = (struct channel_home){.name = config->name,
                                    .base_url = config->base_url,
                                    .token = config->token,
                                    .app_id = config->app_id,
                                    .secret = config->secret,
                                    .aes_key = config->aes_key,
                                    .url = config->url,
                                    .version = STR(FERMATA_VERSION)};
    c->lease = arena_printf(&c->arena, "channel:%.*s", STR_ARG(config->name));
    c->holder = str_c(arena_cstr(&c->arena, str_c(holder)));
    c->poller.timer = timer_new(all->server->loop, on_poll_timer, c);
    struct open_channel open = {
        .job.run = open_run, .channel = c, .arena = &c->arena, .now = clock_wall(&clock_system)};
    enum err e = store_run(all->server->store, &open.job);
    c->home.account = e ? STR("{}") : open.row.account;
    channel_keep_cursor(c, e ? STR_EMPTY : open.row.cursor);
    if (e) channel_say(c, CHANNEL_TROUBLE, "its row cannot be read");
}

struct channels *channels_new(struct server *server)
{
    const struct config_channels *config = &server->config->channels;
    struct channels *all = calloc(1, sizeof *all);
    if (!all) abort();
    all->server = server;
    all->count = config->count;
    all->items = calloc(all->count + 1, sizeof *all->items);
    if (!all->items) abort();
    all->follower = (struct bus_follower){.ops = &follower_ops, .arg = all};
    secret_subkey(server->secret, SECRET_CODE, all->code_key);
    for (size_t i = 0; i < all->count; i++) channel_init(all, &all->items[i], &config->items[i]);
    return all;
}

void channels_start(struct channels *all)
{
    if (!all->count) return;
    bus_follow(all->server->bus, 0, &all->follower);
    for (size_t i = 0; i < all->count; i++) {
        struct channel *c = &all->items[i];
        if (!c->ops->poll) channel_say(c, CHANNEL_ONLINE, "");
        recover(c);
        poller_go(c);
    }
}

void channels_stop(struct channels *all)
{
    if (!all || all->stopping) return;
    all->stopping = true;
    bus_unfollow(all->server->bus, &all->follower);
    for (size_t i = 0; i < all->count; i++) {
        struct channel *c = &all->items[i];
        timer_stop(c->poller.timer);
        trip_cancel(TAKE(c->poller.trip));
        receipts_stop(c);
        if (c->recovery) timer_stop(c->recovery->timer);
        people_stop(c);
    }
}

void channels_free(struct channels *all)
{
    if (!all) return;
    channels_stop(all);
    for (size_t i = 0; i < all->count; i++) {
        struct channel *c = &all->items[i];
        people_free(c);
        if (c->recovery) recovery_free(c->recovery);
        timer_free(c->poller.timer);
        arena_done(&c->poller.arena);
        arena_done(&c->arena);
        free((char *)(uintptr_t)c->cursor.p);
    }
    free(all->items);
    free(all);
}

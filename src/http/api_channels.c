/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat channels for operators: the list and how they stand, signing in, and (on the admin
 * socket) links. What the platforms themselves call is elsewhere.
 */
#include "base/limits.h"
#include "base/log.h"
#include "base/members.h"
#include "base/say.h"
#include "chat/chats.h"
#include "chat/link_job.h"
#include "chat/login.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "server/key_job.h"
#include "server/server.h"

/* ---- GET /channels ---- */

struct list_channels {
    struct job job;
    struct exchange *x;
    struct channel_stats stats[CHANNELS_MAX];
};

static enum err list_run(struct job *job, struct db *db)
{
    struct list_channels *list = (struct list_channels *)(void *)job;
    struct channels *channels = list->x->server->channels;
    enum err e = OK;
    for (size_t i = 0; !e && i < channels_count(channels); i++) {
        struct channel_stats *stats = &list->stats[i];
        str name = channel_home(channels_at(channels, i))->name; /* of the start: never changes */
        e = peers_count(db, name, &stats->people);
        if (!e) e = out_count(db, name, &stats->waiting, &stats->parked);
    }
    return e;
}

static void list_done(struct job *job, enum err e)
{
    struct list_channels *list = (struct list_channels *)(void *)job;
    struct exchange *x = list->x;
    struct channels *channels = x->server->channels;
    if (e) {
        exchange_error(x, e, NULL);
        return;
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, HTTP_ANSWER_BYTES_MAX / 2);
    json_object(&doc.w);
    json_key(&doc.w, STR("channels"));
    json_array(&doc.w);
    for (size_t i = 0; i < channels_count(channels); i++)
        channel_write(&doc.w, channels_at(channels, i), &list->stats[i]);
    json_array_end(&doc.w);
    json_object_end(&doc.w);
    exchange_written(x, &doc.buf);
}

void handle_channels_list(struct exchange *x)
{
    struct list_channels *list = ARENA_NEW(exchange_arena(x), struct list_channels);
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    exchange_read(x, &list->job, READ_PAGE);
}

/* ---- POST /channels/{name}/login ---- */

/* The channel of the path; NULL, and answered, if there is none. */
static struct channel *known_channel(struct exchange *x)
{
    struct channel *channel = channel_named(x->server->channels, x->params[0]);
    struct fault why = {0};
    if (!channel)
        exchange_error(
            x, fault(&why, ERR_NOT_FOUND, "there is no channel \"%s\"", say(x->params[0]).text),
            &why);
    return channel;
}

static enum err read_wish(const struct json *body, struct login_wish *ret_wish,
                          struct fault *reterr)
{
    static const char *const known[] = {"verifyCode", "restart", NULL};
    *ret_wish = (struct login_wish){0};
    if (!body) return OK;
    enum err e = members_known(body, known, reterr);
    const struct json *restart = json_get(body, STR("restart"));
    if (!e && json_get(body, STR("verifyCode")))
        e = member_string(body, "verifyCode", CHANNEL_VERIFY_BYTES_MAX, &ret_wish->verify_code,
                          reterr);
    if (e) return e;
    if (restart && restart->type != JSON_TRUE && restart->type != JSON_FALSE)
        return fault_field(reterr, ERR_INVALID_FIELD, "restart", "restart is true or false");
    ret_wish->restart = restart && restart->type == JSON_TRUE;
    if (ret_wish->restart && ret_wish->verify_code.len)
        return fault_field(reterr, ERR_INVALID_FIELD, "restart",
                           "a new login has no code yet; leave one of them out");
    return OK;
}

void handle_channel_login(struct exchange *x)
{
    struct channel *channel = known_channel(x);
    if (!channel) return;
    struct channel_logins *logins = x->server->logins;
    struct login_wish wish;
    struct fault why = {0};
    enum err e = read_wish(x->body, &wish, &why);
    if (!e) e = channel_login(logins, channel, &wish, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, CHANNEL_LOGIN_BYTES_MAX);
    channel_login_write(logins, channel, &doc.w);
    exchange_written(x, &doc.buf);
}

/* ---- links, on the admin socket ---- */

struct admin_link {
    struct channel_link link; /* first: the store's job is the exchange's */
    struct exchange *x;
};

static void link_done(struct job *job, enum err e)
{
    struct admin_link *link = (struct admin_link *)(void *)job;
    struct exchange *x = link->x;
    struct fault why = {0};
    e = channel_job_fault(e, link->link.link.user, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    log_info("channel.link", LOG_STR("channel", link->link.link.channel),
             LOG_STR("user", link->link.link.user));
    exchange_json(x, 201, arena_printf(exchange_arena(x), "{\"code\":\"%s\"}", link->link.code));
}

void admin_channel_link(struct exchange *x)
{
    static const char *const known[] = {"user", "roles", NULL};
    struct channel *channel = known_channel(x);
    if (!channel) return;
    struct fault why = {0};
    str user;
    unsigned roles = 0;
    enum err e = members_known(x->body, known, &why);
    if (!e) e = exchange_line(x->body, "user", USER_BYTES_MAX, &user, &why);
    if (!e) e = key_roles(json_get(x->body, STR("roles")), &roles, &why);
    if (!e && !(roles & ROLES_OF_PEOPLE))
        e = fault_field(&why, ERR_INVALID_FIELD, "roles", "the role ask is for programs");
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    struct admin_link *link = ARENA_NEW(exchange_arena(x), struct admin_link);
    channel_link_init(&link->link, channel_home(channel)->name, user, roles);
    link->link.job.done = link_done;
    link->x = x;
    store_write(x->server->store, &link->link.job);
}

struct admin_unlink {
    struct channel_unlink unlink;
    struct exchange *x;
};

static void unlink_done(struct job *job, enum err e)
{
    struct admin_unlink *unlink = (struct admin_unlink *)(void *)job;
    struct exchange *x = unlink->x;
    struct fault why = {0};
    e = channel_job_fault(e, unlink->unlink.sender, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    log_info("channel.unlinked", LOG_STR("channel", unlink->unlink.channel),
             LOG_STR("sender", unlink->unlink.sender));
    exchange_empty(x);
}

void admin_channel_unlink(struct exchange *x)
{
    static const char *const known[] = {"sender", NULL};
    struct channel *channel = known_channel(x);
    if (!channel) return;
    struct fault why = {0};
    str sender;
    enum err e = members_known(x->body, known, &why);
    if (!e) e = member_string(x->body, "sender", CHANNEL_ID_BYTES_MAX, &sender, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    struct admin_unlink *unlink = ARENA_NEW(exchange_arena(x), struct admin_unlink);
    channel_unlink_init(&unlink->unlink, exchange_arena(x), channel_home(channel)->name, sender);
    unlink->unlink.audit_key = x->server->saver.audit_key;
    unlink->unlink.job.done = unlink_done;
    unlink->x = x;
    store_write(x->server->store, &unlink->unlink.job);
}

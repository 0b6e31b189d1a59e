/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends a person's outbox, one message at a time; and shows that we are at work.
 *
 *   take: one commit ──► the bytes of a file ──► the errand ──► end: one commit ──► the next
 *   it says `sending`,                           to the         sent, later, parked
 *   and counts                                   platform       or given up
 *
 * Invariants:
 * 1. Nothing leaves whose row does not say `sending` on disk.
 * 2. A platform that asks for a login is asked nothing more until somebody has signed in; what was to
 *    be sent stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/texts.h"
#include "app/channel/int.h"
#include "base/limits.h"
#include "base/log.h"
#include "channel/text.h"
#include "net/http_client.h"
#include "store/attachments.h"
#include "store/blob.h"

enum { TYPING_MS_MAX = 5 * 60 * 1000, END_RETRY_MS = 1000 };

static struct person *person_of(struct sender *sender)
{
    return CONTAINER(sender, struct person, sender);
}

/* ---- later ---- */

static void on_later(void *arg)
{
    struct sender *sender = arg;
    struct person *person = person_of(sender);
    timer_free(TAKE(sender->timer));
    if (sender->ending)
        store_write(person->channel->all->server->store, &sender->job);
    else
        person_want(person->channel, person->peer, WANT_SEND);
}

static void wait_until(struct sender *sender, msec at)
{
    struct person *person = person_of(sender);
    if (!at) return;
    msec in = at > sender->now ? at - sender->now : 0;
    if (in > CLOCKWORK_LOOK_MS) in = CLOCKWORK_LOOK_MS;
    if (!sender->timer)
        sender->timer = timer_new(person->channel->all->server->loop, on_later, sender);
    timer_start(sender->timer, in);
}

/* ---- the end of a send ---- */

static enum err end_run(struct job *job, struct db *db)
{
    struct sender *sender = (struct sender *)(void *)job;
    struct channel *c = person_of(sender)->channel;
    struct out_row row = sender->row;
    enum err e = outbox_end(db, &sender->arena, &c->ops->traits, &row, sender->verdict,
                            sender->errand.wait_ms, sender->errand.server_id, sender->now);
    if (!e && sender->errand.new_account.len)
        e = channel_store_account(c, db, sender->errand.new_account);
    return e;
}

static void end_done(struct job *job, enum err e)
{
    struct sender *sender = (struct sender *)(void *)job;
    struct person *person = person_of(sender);
    struct channel *c = person->channel;
    if (c->all->stopping) {
        person_rest(person, WANT_SEND);
        return;
    }
    if (e &&
        e !=
            ERR_NOT_FOUND) { /* it still says `sending`: nothing leaves behind it before the store knows better */
        log_warn("channel.unrecorded", LOG_STR("channel", c->config->name),
                 LOG_CSTR("reason", err_title(e)));
        sender->ending = true;
        wait_until(sender, sender->now + END_RETRY_MS);
        return;
    }
    sender->ending = false;
    if (sender->errand.new_account.len) channel_keep_account(c, sender->errand.new_account);
    if (sender->verdict == VERDICT_LOGIN)
        channel_say(c, CHANNEL_NEEDS_LOGIN, sender->errand.detail);
    else if (!c->ops->poll &&
             (sender->verdict == VERDICT_AGAIN || sender->verdict == VERDICT_REFUSED))
        channel_say(c, CHANNEL_TROUBLE, sender->errand.detail);
    else if (!c->ops->poll && sender->verdict == VERDICT_DONE)
        channel_say(c, CHANNEL_ONLINE, "");
    person->wants |= WANT_SEND;
    person_rest(person, WANT_SEND);
}

static void end(struct sender *sender, enum errand_verdict verdict)
{
    struct channel *c = person_of(sender)->channel;
    sender->verdict = verdict;
    if (verdict == VERDICT_DONE)
        log_debug("channel.sent", LOG_STR("channel", c->config->name),
                  LOG_CSTR("class", out_class_name(sender->row.class)));
    else
        log_info("channel.unsent", LOG_STR("channel", c->config->name),
                 LOG_CSTR("class", out_class_name(sender->row.class)),
                 LOG_CSTR("reason", sender->errand.detail));
    sender->now = clock_wall(&clock_system);
    sender->job = (struct job){.run = end_run, .done = end_done};
    store_write(c->all->server->store, &sender->job);
}

static void on_sent(void *arg, struct errand *errand)
{
    struct sender *sender = arg;
    sender->trip = NULL;
    end(sender, errand->verdict);
}

/* ---- sending ---- */

static void post(struct sender *sender)
{
    struct person *person = person_of(sender);
    struct channel *c = person->channel;
    struct outbound *message = &sender->message;
    const struct out_row *row = &sender->row;
    message->to = sender->peer.sender;
    message->reply_token = sender->peer.reply_token;
    message->client_id = row->client_id;
    message->text = row->text;
    message->buttons = row->buttons;
    message->interaction = row->interaction;
    message->class = row->class;
    message->group = sender->peer.group;
    if (row->again && row->text.len)
        message->text =
            text_join(&sender->arena,
                      (const str[]){chat_text(&sender->arena, peer_locale(&sender->peer),
                                              TEXT_AGAIN, STR_EMPTY),
                                    STR("\n"), row->text},
                      3);
    sender->errand = (struct errand){.arena = &sender->arena, .message = message};
    sender->trip = courier_go(c->all->server->client, &clock_system, &c->home, c->ops->send,
                              &sender->errand, on_sent, sender);
}

/* The bytes of a file are there, or it is given up: its name is in the words that came with it. */
static void on_bytes(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct sender *sender = arg;
    sender->blob = NULL;
    if (person_of(sender)->channel->all->stopping) return;
    if (e) {
        sender->errand = (struct errand){.arena = &sender->arena};
        snprintf(sender->errand.detail, sizeof sender->errand.detail, "the file: %s",
                 reason ? reason->text : err_title(e));
        end(sender, e == ERR_IO || e == ERR_RATE_LIMITED ? VERDICT_AGAIN : VERDICT_REFUSED);
        return;
    }
    sender->message.file_bytes = arena_str(&sender->arena, bytes);
    sender->message.file_name = sender->file.filename;
    sender->message.file_mime = sender->file.mime;
    post(sender);
}

static enum err take_run(struct job *job, struct db *db)
{
    struct sender *sender = (struct sender *)(void *)job;
    struct person *person = person_of(sender);
    struct json *file = NULL;
    arena_reset(&sender->arena);
    sender->none = false;
    sender->file = (struct attachment){0};
    enum err e = outbox_take(db, &sender->arena, &person->channel->ops->traits, person->peer,
                             sender->now, &sender->row, &sender->peer, &sender->at);
    sender->none = e == ERR_NOT_FOUND;
    if (e) return sender->none ? OK : e;
    if (!sender->row.file.len || json_parse(&sender->arena, sender->row.file, &file, NULL))
        return OK;
    e = attachment_find(db, &sender->arena, json_text(json_get(file, STR("id"))), &sender->file);
    return e == ERR_NOT_FOUND ? OK : e;
}

static void take_done(struct job *job, enum err e)
{
    struct sender *sender = (struct sender *)(void *)job;
    struct person *person = person_of(sender);
    struct server *server = person->channel->all->server;
    sender->message = (struct outbound){0};
    if (person->channel->all->stopping || sender->none || e) {
        if (e && !person->channel->all->stopping)
            log_warn("channel.untaken", LOG_STR("channel", person->channel->config->name),
                     LOG_CSTR("reason", err_title(e)));
        if (!person->channel->all->stopping)
            wait_until(sender, e ? sender->now + 1000 : sender->at);
        person_rest(person, WANT_SEND);
        return;
    }
    if (sender->file.id.len)
        sender->blob = blob_get(server->blobs, sender->file.bucket, sender->file.path,
                                CHANNEL_FILE_BYTES_MAX, on_bytes, sender);
    else if (sender->row.file.len)
        on_bytes(sender, ERR_NOT_FOUND, STR_EMPTY, NULL);
    else
        post(sender);
}

void sender_go(struct person *person)
{
    struct sender *sender = &person->sender;
    if (sender->timer) timer_free(TAKE(sender->timer));
    sender->now = clock_wall(&clock_system);
    sender->job = (struct job){.run = take_run, .done = take_done};
    store_write(person->channel->all->server->store, &sender->job);
}

void sender_open(struct person *person)
{
    arena_init(&person->sender.arena);
    arena_init(&person->typing.arena);
}

void sender_close(struct person *person)
{
    trip_cancel(person->sender.trip);
    if (person->sender.blob) blob_forget(person->sender.blob);
    timer_free(person->sender.timer);
    arena_done(&person->sender.arena);
    trip_cancel(person->typing.trip);
    timer_free(person->typing.timer);
    arena_done(&person->typing.arena);
}

/* ---- at work ---- */

static void on_typed(void *arg, struct errand *errand);

static void type(struct person *person, bool stop)
{
    struct typing *typing = &person->typing;
    struct channel *c = person->channel;
    typing->stop = stop;
    typing->errand.step = 0;
    typing->errand.own = NULL;
    typing->errand.stop = stop;
    typing->trip = courier_go(c->all->server->client, &clock_system, &c->home, c->ops->typing,
                              &typing->errand, on_typed, person);
}

static void typing_rest(struct person *person)
{
    person->typing.until = 0;
    if (person->typing.timer) timer_free(TAKE(person->typing.timer));
    person_rest(person, 0); /* it may have been the last that was to be done for them */
}

static void on_typed(void *arg, struct errand *errand)
{
    struct person *person = arg;
    struct typing *typing = &person->typing;
    typing->trip = NULL;
    /* In memory alone: a token that is lost with the process is asked for again. */
    if (errand->new_account.len) channel_keep_account(person->channel, errand->new_account);
    bool over = loop_now(person->channel->all->server->loop) >= typing->until;
    if (typing->stop || errand->verdict != VERDICT_DONE)
        typing_rest(person);
    else if (over)
        type(person, true);
    else
        timer_start(typing->timer, CHANNEL_TYPING_MS);
}

static void on_typing_timer(void *arg)
{
    type(arg, false);
}

bool typing_on(const struct person *person)
{
    return person->typing.until || person->typing.trip;
}

void typing_begin(struct person *person, const struct peer *peer)
{
    struct typing *typing = &person->typing;
    struct channel *c = person->channel;
    if (!c->ops->typing || !c->ops->traits.typing || c->signed_out) return;
    msec now = loop_now(c->all->server->loop);
    bool on = typing_on(person);
    typing->until = now + TYPING_MS_MAX;
    if (on) return;
    arena_reset(&typing->arena);
    typing->errand = (struct errand){.arena = &typing->arena,
                                     .peer = arena_str(&typing->arena, peer->sender),
                                     .reply_token = arena_str(&typing->arena, peer->reply_token)};
    typing->timer = timer_new(c->all->server->loop, on_typing_timer, person);
    type(person, false);
}

void typing_end(struct person *person)
{
    struct typing *typing = &person->typing;
    if (!typing->until) return;
    typing->until = 1; /* over: whatever is under way is followed by the end */
    if (typing->trip) return;
    timer_stop(typing->timer);
    type(person, true);
}

/* ---- what a press left open ---- */

struct receipt_trip {
    struct receipt_trip *next;
    struct channel *channel;
    struct trip *trip;
    struct arena arena;
    struct errand errand;
    struct receipt receipt;
};

static void receipt_free(struct receipt_trip *r)
{
    for (struct receipt_trip **at = &r->channel->receipts; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    arena_done(&r->arena);
    free(r);
}

static void on_marked(void *arg, struct errand *errand)
{
    (void)errand; /* a keyboard that stays is only untidy: what it sends is checked */
    receipt_free(arg);
}

void receipts_stop(struct channel *c)
{
    while (c->receipts) {
        trip_cancel(c->receipts->trip);
        receipt_free(c->receipts);
    }
}

void receipt_send(struct channel *c, const struct receipt *receipt)
{
    if (!c->ops->mark) return;
    struct receipt_trip *r = calloc(1, sizeof *r);
    if (!r) abort();
    arena_init(&r->arena);
    r->receipt = (struct receipt){.to = arena_str(&r->arena, receipt->to),
                                  .callback_id = arena_str(&r->arena, receipt->callback_id),
                                  .server_id = arena_str(&r->arena, receipt->server_id),
                                  .text = arena_str(&r->arena, receipt->text),
                                  .say = arena_str(&r->arena, receipt->say)};
    r->errand = (struct errand){.arena = &r->arena, .receipt = &r->receipt};
    r->channel = c;
    r->next = c->receipts;
    c->receipts = r;
    r->trip = courier_go(c->all->server->client, &clock_system, &c->home, c->ops->mark, &r->errand,
                         on_marked, r);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sender of a person's outbox to the platform, one message at a time; and the sign that we are
 * at work (typing).
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

#include "agent/core/texts.h"
#include "base/limits.h"
#include "base/log.h"
#include "chat/chat_text.h"
#include "chat/chats_int.h"
#include "net/http_client.h"
#include "store/blob/blob.h"
#include "store/table/attachments.h"

enum { TYPING_MS_MAX = 5 * 60 * 1000 };

static struct person *person_of(struct sender *sender)
{
    return CONTAINER(sender, struct person, sender);
}

/* ---- the end of a send ---- */

static enum err send_end(struct row_worker *worker, struct db *db)
{
    struct sender *sender = CONTAINER(worker, struct sender, worker);
    struct channel *c = person_of(sender)->channel;
    struct out_row row = sender->row;
    enum err e = outbox_end(db, &sender->arena, &c->ops->traits, &row, sender->verdict,
                            sender->errand.wait_ms, sender->errand.server_id, worker->now);
    if (e) return e == ERR_NOT_FOUND ? OK : e; /* not being sent: the store knows better */
    return sender->errand.new_account.len ? channel_store_account(c, db, sender->errand.new_account)
                                          : OK;
}

static void send_rest(struct row_worker *worker, bool ended)
{
    struct sender *sender = CONTAINER(worker, struct sender, worker);
    struct person *person = person_of(sender);
    struct channel *c = person->channel;
    if (ended) {
        enum errand_verdict verdict = sender->verdict;
        if (sender->errand.new_account.len) channel_keep_account(c, sender->errand.new_account);
        if (verdict == VERDICT_LOGIN)
            channel_say(c, CHANNEL_NEEDS_LOGIN, sender->errand.detail);
        else if (!c->ops->poll && (verdict == VERDICT_AGAIN || verdict == VERDICT_REFUSED))
            channel_say(c, CHANNEL_TROUBLE, sender->errand.detail);
        else if (!c->ops->poll && verdict == VERDICT_DONE)
            channel_say(c, CHANNEL_ONLINE, "");
        person->wants |= WANT_SEND;
    }
    person_rest(person, WANT_SEND);
}

static void send_due(struct row_worker *worker)
{
    struct person *person = person_of(CONTAINER(worker, struct sender, worker));
    person_want(person->channel, person->peer, WANT_SEND);
}

static void sender_end(struct sender *sender, enum errand_verdict verdict)
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
    row_worker_end(&sender->worker);
}

static void on_sent(void *arg, struct errand *errand)
{
    struct sender *sender = arg;
    sender->trip = NULL;
    sender_end(sender, errand->verdict);
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
    sender->trip = platform_request_go(c->all->server->client, &clock_system, &c->home,
                                       c->ops->send, &sender->errand, on_sent, sender);
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
        sender_end(sender, e == ERR_IO || e == ERR_RATE_LIMITED ? VERDICT_AGAIN : VERDICT_REFUSED);
        return;
    }
    sender->message.file_bytes = arena_str(&sender->arena, bytes);
    sender->message.file_name = sender->file.filename;
    sender->message.file_mime = sender->file.mime;
    post(sender);
}

static enum err send_take(struct row_worker *worker, struct db *db)
{
    struct sender *sender = CONTAINER(worker, struct sender, worker);
    struct person *person = person_of(sender);
    struct json *file = NULL;
    arena_reset(&sender->arena);
    sender->file = (struct attachment){0};
    enum err e = outbox_take(db, &sender->arena, &person->channel->ops->traits, person->peer,
                             worker->now, &sender->row, &sender->peer, &worker->at);
    worker->none = e == ERR_NOT_FOUND;
    if (e) return worker->none ? OK : e;
    if (!sender->row.file.len || json_parse(&sender->arena, sender->row.file, &file, NULL))
        return OK;
    e = attachment_find(db, &sender->arena, json_text(json_get(file, STR("id"))), &sender->file);
    return e == ERR_NOT_FOUND ? OK : e;
}

static void send_work(struct row_worker *worker)
{
    struct sender *sender = CONTAINER(worker, struct sender, worker);
    sender->message = (struct outbound){0};
    if (sender->file.id.len)
        sender->blob = blob_get(person_of(sender)->channel->all->server->blobs, sender->file.bucket,
                                sender->file.path, CHANNEL_FILE_BYTES_MAX, on_bytes, sender);
    else if (sender->row.file.len)
        on_bytes(sender, ERR_NOT_FOUND, STR_EMPTY, NULL);
    else
        post(sender);
}

const struct row_worker_ops sender_ops = {.take = send_take,
                                          .work = send_work,
                                          .end = send_end,
                                          .rest = send_rest,
                                          .due = send_due,
                                          .untaken = "channel.untaken",
                                          .unended = "channel.unrecorded"};

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
    typing->trip = platform_request_go(c->all->server->client, &clock_system, &c->home,
                                       c->ops->typing, &typing->errand, on_typed, person);
}

static void on_typed(void *arg, struct errand *errand)
{
    struct person *person = arg;
    struct typing *typing = &person->typing;
    typing->trip = NULL;
    /* In memory alone: a token that is lost with the process is asked for again. */
    if (errand->new_account.len) channel_keep_account(person->channel, errand->new_account);
    bool over = loop_now(person->channel->all->server->loop) >= typing->until;
    if (typing->stop || errand->verdict != VERDICT_DONE) {
        typing->until = 0;
        if (typing->timer) timer_free(TAKE(typing->timer));
        person_rest(person, 0); /* it may have been the last that was to be done for them */
    } else if (over) {
        type(person, true);
    } else {
        timer_start(typing->timer, CHANNEL_TYPING_MS);
    }
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
#ifndef __clang_analyzer__ /* does not see that no list leads to it any more */
    free(r);
#endif
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
    r->trip = platform_request_go(c->all->server->client, &clock_system, &c->home, c->ops->mark,
                                  &r->errand, on_marked, r);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A person's messages from a chat, one after the other: decided, carried out, done, one commit
 * each.
 *
 *   decide: one commit ──► carry out ──────────────────────► finish: one commit ──► the next
 *   what it means, from    a use case of thread/, with an      done; what they are told;
 *   what is open now       id made from the message's own      what is remembered of them
 *
 * Invariants:
 * 1. What a message means is decided once, and is on disk before anything is done about it: after a
 *    crash it is carried out as it was meant, whatever is open by then.
 * 2. Carrying it out twice has one effect: the run's id, and the key of an answer, are made from the
 *    channel's name and the platform's id of the message.
 * 3. A message becomes a run, an answer, or a word to the person; it never approves unless it is the
 *    word and the code of that very approval, in a chat of two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/rows.h"
#include "chat/chat_text.h"
#include "chat/chats_int.h"
#include "store/table/conversation.h"
#include "thread/cancel_run.h"
#include "thread/give_answer.h"
#include "thread/post_message.h"

enum {
    AGAIN_MS_MAX = 30 * 1000
}; /* before a message that could not be carried out is looked at again */

static struct person *person_of(struct desk *desk)
{
    return CONTAINER(desk, struct person, desk);
}

/* ---- done with it ---- */

static enum err tell(struct desk *desk, struct db *db, enum out_class class, str text,
                     str interaction)
{
    struct text_parts parts;
    enum err e = OK;
    if (!text.len) return OK;
    text_split(&desk->arena, &person_of(desk)->channel->ops->traits, text, &parts);
    for (size_t i = 0; !e && i < parts.count; i++) {
        struct out_row row = {.peer = desk->peer.id,
                              .class = class,
                              .text = parts.parts[i],
                              .interaction = interaction};
        e = outbox_put(db, &desk->arena, &row, desk->worker.now);
    }
    return e;
}

static str say_text(struct desk *desk, enum chat_text text, str arg)
{
    return chat_text(&desk->arena, desk->locale, text, arg);
}

/* Who settled it, and how. */
static enum err tell_settled(struct desk *desk, struct db *db)
{
    struct interaction settled;
    str id = json_text(json_get(desk->decision, STR("interaction")));
    enum err e = interaction_find(db, &desk->arena, id, &settled);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    str user = person_user(&desk->arena, person_of(desk)->channel, &desk->peer);
    if (!str_eq(settled.owner, user) &&
        !interaction_mine(&settled, user, person_roles(&desk->peer), false))
        return OK; /* not theirs to know */
    return tell(desk, db, OUT_NOTICE, settled_text(&desk->arena, desk->locale, &settled, user), id);
}

static void next_conversation(struct desk *desk)
{
    struct peer *peer = &desk->peer;
    peer->conversations++;
    peer->thread_id = conversation_name(&desk->arena, peer, peer->conversations);
    peer->thread = peer->cursor = 0;
    peer->held = STR_EMPTY;
}

static enum err link_up(struct desk *desk, struct db *db)
{
    struct link_code code;
    char hex[HASH_HEX_BYTES];
    if (desk->in.group || desk->peer.group)
        return tell(desk, db, OUT_NOTICE, say_text(desk, TEXT_LINK_GROUP, STR_EMPTY), STR_EMPTY);
    uint32_t tries = 0;
    enum err e = code_tries(db, desk->peer.id, STR("link"), &tries);
    if (e) return e;
    link_hash(json_text(json_get(desk->decision, STR("code"))), hex);
    e = tries >= CODE_TRIES_MAX /* whoever guesses is not heard any more, right or wrong */
            ? ERR_NOT_FOUND
            : link_take(db, &desk->arena, desk->peer.channel, str_c(hex), desk->worker.now, &code);
    if (e == ERR_NOT_FOUND) {
        e = code_wrong(db, desk->peer.id, STR("link"));
        return e ? e
                 : tell(desk, db, OUT_NOTICE, say_text(desk, TEXT_LINK_BAD, STR_EMPTY), STR_EMPTY);
    }
    if (e) return e;
    desk->peer.user = code.user;
    desk->peer.roles = code.roles;
    next_conversation(desk);
    return tell(desk, db, OUT_NOTICE, say_text(desk, TEXT_LINKED, code.user), STR_EMPTY);
}

static enum err finish(struct desk *desk, struct db *db)
{
    enum desk_do what = desk_do_of(desk->decision);
    str say = json_text(json_get(desk->decision, STR("say")));
    str interaction = json_text(json_get(desk->decision, STR("interaction")));
    enum err e = OK;
    desk->peer.held = STR_EMPTY;
    if (what == DO_WHICH)
        desk->peer.held = arena_printf(&desk->arena, "{\"text\":%.*s,\"ids\":%.*s}",
                                       STR_ARG(json_get(desk->decision, STR("heldText"))->raw),
                                       STR_ARG(json_get(desk->decision, STR("held"))->raw));
    bool asks = what == DO_SAY && interaction.len;
    if (what == DO_SAY || what == DO_WHICH || what == DO_WRONG)
        e = tell(desk, db, asks ? OUT_QUESTION : OUT_NOTICE, say, interaction);
    if (!e && what == DO_WRONG) e = code_wrong(db, desk->peer.id, interaction);
    if (!e && (what == DO_STALE || desk->settled_elsewhere)) e = tell_settled(desk, db);
    if (what == DO_NEW) {
        next_conversation(desk);
        e = tell(desk, db, OUT_NOTICE, say_text(desk, TEXT_NEW, STR_EMPTY), STR_EMPTY);
    }
    if (what == DO_LINK) e = link_up(desk, db);
    if (!e && desk->say != CHAT_TEXT_COUNT)
        e = tell(desk, db, OUT_ERROR, say_text(desk, desk->say, desk->say_arg), STR_EMPTY);
    if (e || !desk->accepted) return e;
    /* The conversation has a row now: what is said in it from its beginning goes out. */
    struct thread thread;
    str user = person_user(&desk->arena, person_of(desk)->channel, &desk->peer);
    e = thread_find(db, &desk->arena, user, desk->peer.thread_id, &thread);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    if (desk->peer.thread != thread.id) desk->peer.cursor = 0;
    desk->peer.thread = thread.id;
    return OK;
}

static enum err desk_end(struct row_worker *worker, struct db *db)
{
    struct desk *desk = CONTAINER(worker, struct desk, worker);
    struct inbound_row row = desk->row;
    enum err e = peer_by_id(db, &desk->arena, person_of(desk)->peer, &desk->peer);
    if (e) return e;
    if (desk->decide_again) {
        row.state = INBOUND_NEW;
        row.decision = STR_EMPTY;
        row.attempts++;
        return inbound_update(db, &row);
    }
    e = finish(desk, db);
    row.state = INBOUND_DONE;
    if (!e) e = inbound_update(db, &row);
    return e ? e : peer_update(db, &desk->peer);
}

static void desk_rest(struct row_worker *worker, bool ended)
{
    struct desk *desk = CONTAINER(worker, struct desk, worker);
    struct person *person = person_of(desk);
    struct channel *c = person->channel;
    if (ended && c->ops->mark && desk->in.callback_id.len)
        receipt_send(c, &(struct receipt){.to = desk->peer.sender,
                                          .callback_id = desk->in.callback_id,
                                          .server_id = desk->in.pressed});
    if (ended && desk->accepted) {
        typing_begin(person, &desk->peer);
        person->wants |= WANT_MIRROR;
    }
    if (ended) person->wants |= WANT_DESK | WANT_SEND;
    person_rest(person, WANT_DESK);
}

static void desk_due(struct row_worker *worker)
{
    struct person *person = person_of(CONTAINER(worker, struct desk, worker));
    person_want(person->channel, person->peer, WANT_DESK);
}

/* ---- carrying it out ---- */

/* It failed on our side, and is tried again, from the decision that is in the inbox. After some tries
 * the person is told. */
static void failed(struct desk *desk)
{
    if (desk->row.attempts + 1 < CHANNEL_ATTEMPTS_MAX) {
        row_worker_leave(&desk->worker, backoff_short_ms(desk->row.attempts + 1, AGAIN_MS_MAX));
        return;
    }
    desk->say = TEXT_TROUBLE;
    row_worker_end(&desk->worker);
}

/* It was taken: a message may wait behind something that a person has to decide. */
static void judge_taken(struct desk *desk, const struct change *change)
{
    struct json *body = NULL;
    bool open = desk_flag(desk->decision, "uncertain") || desk_flag(desk->decision, "unseen");
    desk->accepted = desk_do_of(desk->decision) != DO_STOP;
    if (!open || change->refused || json_parse(&desk->arena, change->body, &body, NULL)) return;
    if (desk_flag(body, "queued")) desk->say = TEXT_QUEUED;
}

/* What became of it, as the person is told. */
static void judge_outcome(struct desk *desk, const struct change *change, enum err refused)
{
    enum desk_do what = desk_do_of(desk->decision);
    int status = err_status(refused);
    if (what == DO_NEW || what == DO_LINK) return; /* stopped, or there was nothing to stop */
    /* A mismatch: it was taken before, with another file. */
    if (!refused || refused == ERR_IDEMPOTENCY_MISMATCH) {
        judge_taken(desk, change);
    } else if (what == DO_STOP) {
        desk->say = TEXT_NOTHING;
    } else if (str_eq(change->member, STR("interaction"))) {
        desk->settled_elsewhere =
            refused == ERR_ALREADY_RESOLVED || refused == ERR_EXPIRED || refused == ERR_SUPERSEDED;
        if (!desk->settled_elsewhere) desk->say = TEXT_TROUBLE;
        if (status == 403) desk->say = TEXT_NOT_YOURS;
    } else if (refused == ERR_TOO_LARGE) {
        desk->say = TEXT_TOO_LONG;
    } else if (refused == ERR_RATE_LIMITED || refused == ERR_BUSY) {
        desk->say = TEXT_BUSY;
    } else if (status == 403) {
        desk->say = TEXT_NOT_YOURS;
    } else if (status == 409 || status == 404) {
        /* Something has changed between the decision and now. */
        desk->decide_again = desk->row.attempts < CHANNEL_ATTEMPTS_MAX;
        if (!desk->decide_again) desk->say = TEXT_TROUBLE;
    } else {
        desk->say = TEXT_TROUBLE;
    }
}

static void on_outcome(struct change *change, enum err e)
{
    struct desk *desk = change->waiter;
    enum err refused = change_outcome(change, e, desk->what);
    if (desk->worker.stopping) return;
    if (err_status(refused) >= 500) {
        log_warn("channel.unanswered", LOG_STR("channel", person_of(desk)->channel->config->name),
                 LOG_I64("status", err_status(refused)));
        failed(desk);
    } else {
        judge_outcome(desk, change, refused);
        row_worker_end(&desk->worker);
    }
}

/* The change is this message's, and is made once: its key comes from the message's own id. `about` and
 * `text` are what it changes, and how. */
static void desk_asks(struct desk *desk, struct change *change, const char *what, str about,
                      str text)
{
    struct channel *c = person_of(desk)->channel;
    struct arena *arena = &desk->arena;
    const struct identity who = {.user = person_user(arena, c, &desk->peer),
                                 .roles = person_roles(&desk->peer),
                                 .via = VIA_LOCAL};
    char name[MESSAGE_NAME_BYTES];
    uint64_t round = 0;
    message_name(c->config->name, desk->row.id, name);
    if (json_u64(json_get(desk->decision, STR("round")), &round)) round = 0;
    change->by = asker_of(c->all->server, arena, &who, arena_str(arena, c->config->kind));
    change->waiter = desk;
    change->answer = on_outcome;
    change->key = arena_printf(arena, "channel-%s-%llu", name, (unsigned long long)round);
    change->request = arena_printf(arena, "%s\n%.*s\n%.*s", what, STR_ARG(about), STR_ARG(text));
    desk->what = what;
}

/* What the conversation is at ends, and what waits behind it. */
static void desk_stop(struct desk *desk)
{
    struct cancel_run *cancel = ARENA_NEW(&desk->arena, struct cancel_run);
    desk_asks(desk, &cancel->tc.change, "cancelRun", desk->peer.thread_id, STR_EMPTY);
    cancel->thread_id = desk->peer.thread_id;
    cancel->queue = true;
    cancel_run(cancel);
}

static void desk_answer(struct desk *desk)
{
    struct give_answer *give = ARENA_NEW(&desk->arena, struct give_answer);
    struct change *change = &give->tc.change;
    struct json *body = NULL;
    give->id = json_text(json_get(desk->decision, STR("interaction")));
    give->sent = json_text(json_get(desk->decision, STR("body")));
    desk_asks(desk, change, "answerInteraction", give->id, give->sent);
    if (give->sent.len && json_parse_sent(&desk->arena, give->sent, &body, NULL)) {
        change_fail(change, ERR_INVALID_FIELD);
        return;
    }
    give->body = body;
    give_answer(give);
}

/* The files that could be had, as many bytes as a RunAgentInput could bring. */
static bool take_files(struct desk *desk, struct lone_message *lone)
{
    struct sent_file *files = arena_array(&desk->arena, desk->in.file_count + 1, sizeof *files);
    size_t bytes = lone->words.len;
    for (size_t i = 0; i < desk->in.file_count; i++) {
        const struct inbound_file *file = &desk->in.files[i];
        if (!desk->file_bytes[i].len) continue;
        bytes += BASE64_BYTES(desk->file_bytes[i].len);
        files[lone->file_count++] = (struct sent_file){
            .name = file->name, .mime = file->mime, .bytes = desk->file_bytes[i]};
    }
    lone->files = files;
    return bytes <= RUN_INPUT_BYTES_MAX;
}

/* The message as a run, or as the answer to a question. */
static void desk_post(struct desk *desk)
{
    struct channel *c = person_of(desk)->channel;
    struct arena *arena = &desk->arena;
    struct post_message *post = ARENA_NEW(arena, struct post_message);
    struct change *change = &post->take.tc.change;
    struct plain_message *plain = &post->take.plain;
    char name[MESSAGE_NAME_BYTES];
    message_name(c->config->name, desk->row.id, name);
    struct lone_message lone = {.thread_id = desk->peer.thread_id,
                                .run_id = arena_printf(arena, "chat-%s", name),
                                .id = arena_printf(arena, "chat-%s-m", name),
                                .agent = c->config->agent,
                                .words = desk->in.text.len ? desk->in.text : desk->in.label};
    if (!take_files(desk, &lone)) {
        desk->say = TEXT_TOO_LONG;
        row_worker_end(&desk->worker);
        return;
    }
    desk_asks(desk, change, "createRun", lone.thread_id, lone.words);
    post->sent = change->request;
    post->via = change->by.via;
    plain->behind = desk_flag(desk->decision, "behind");
    if (desk_do_of(desk->decision) == DO_ANSWER && desk_flag(desk->decision, "question")) {
        plain->reply_to = json_text(json_get(desk->decision, STR("interaction")));
        plain->reply = json_text(json_get(desk->decision, STR("body")));
    }
    post->wrong = run_input_of_message(arena, &lone, NULL, &post->take.input, &change->why);
    post_message(post);
}

/* ---- files that came along ---- */

static void fetch_next(struct desk *desk);

static void on_fetched(void *arg, struct errand *errand)
{
    struct desk *desk = arg;
    struct channel *c = person_of(desk)->channel;
    desk->trip = NULL;
    c->fetches--;
    c->desks++; /* back at work, also beyond the bound */
    if (errand->new_account.len)
        channel_keep_account(person_of(desk)->channel, errand->new_account);
    if (errand->verdict == VERDICT_DONE && errand->bytes.len <= CHANNEL_FILE_BYTES_MAX) {
        desk->file_bytes[desk->file++] = errand->bytes;
        fetch_next(desk);
        return;
    }
    log_info("channel.file", LOG_STR("channel", person_of(desk)->channel->config->name),
             LOG_CSTR("reason", errand->detail));
    if ((errand->verdict == VERDICT_AGAIN || errand->verdict == VERDICT_UNKNOWN) &&
        desk->row.attempts + 1 < CHANNEL_ATTEMPTS_MAX) {
        failed(desk);
        return;
    }
    desk->say = errand->verdict == VERDICT_DONE ? TEXT_FILE_LARGE : TEXT_FILE_LOST;
    desk->say_arg = desk->in.files[desk->file].name;
    desk->file++;
    fetch_next(desk);
}

/* One after the other; then the message goes with those that could be had. */
static void fetch_next(struct desk *desk)
{
    struct channel *c = person_of(desk)->channel;
    while (desk->file < desk->in.file_count && !c->ops->fetch) desk->file++;
    if (desk->file < desk->in.file_count) {
        /* A slow file keeps nobody else waiting: it gives its place at the desks away. */
        c->fetches++;
        c->desks--;
        desk->errand = (struct errand){.arena = &desk->arena, .file = &desk->in.files[desk->file]};
        desk->trip = platform_request_go(c->all->server->client, &clock_system, &c->home,
                                         c->ops->fetch, &desk->errand, on_fetched, desk);
        return;
    }
    bool any = desk->in.text.len > 0;
    for (size_t i = 0; i < desk->in.file_count; i++) any |= desk->file_bytes[i].len > 0;
    if (any)
        desk_post(desk);
    else
        row_worker_end(&desk->worker);
}

/* ---- the message ---- */

static void carry_out(struct desk *desk)
{
    enum desk_do what = desk_do_of(desk->decision);
    desk->file = 0;
    desk->file_bytes = arena_array(&desk->arena, desk->in.file_count + 1, sizeof *desk->file_bytes);
    desk->say = CHAT_TEXT_COUNT;
    desk->say_arg = STR_EMPTY;
    desk->decide_again = desk->accepted = desk->settled_elsewhere = false;
    bool words = what == DO_ANSWER && desk_flag(desk->decision, "question") && desk->in.text.len;
    /* of a conversation that is left: what it waits for is not asked any more */
    bool leaves = what == DO_NEW || (what == DO_LINK && desk_flag(desk->decision, "good"));
    if (what == DO_PLAIN || words) {
        fetch_next(desk);
    } else if ((what == DO_STOP || leaves) && desk->peer.thread_id.len) {
        desk_stop(desk);
    } else if (what == DO_ANSWER) {
        desk_answer(desk);
    } else {
        if (what == DO_STOP) desk->say = TEXT_NOTHING;
        row_worker_end(&desk->worker);
    }
}

static enum err desk_take(struct row_worker *worker, struct db *db)
{
    struct desk *desk = CONTAINER(worker, struct desk, worker);
    enum err e = desk_decide(desk, db);
    desk->damaged = e == ERR_DAMAGED;
    return desk->damaged ? OK : e;
}

static void desk_work(struct row_worker *worker)
{
    struct desk *desk = CONTAINER(worker, struct desk, worker);
    if (desk->damaged) {
        log_error("channel.damaged", LOG_STR("channel", person_of(desk)->channel->config->name),
                  LOG_STR("message", desk->row.id));
        desk->decision = NULL; /* nothing can be done about it but go on to the next */
    }
    carry_out(desk);
}

const struct row_worker_ops desk_ops = {.take = desk_take,
                                        .work = desk_work,
                                        .end = desk_end,
                                        .rest = desk_rest,
                                        .due = desk_due,
                                        .untaken = "channel.undecided",
                                        .unended = "channel.unfinished"};

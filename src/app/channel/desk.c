/* SPDX-License-Identifier: Apache-2.0
 *
 * A person's messages, one after the other.
 *
 *   decide: one commit ──► carry out ──────────────────────► finish: one commit ──► the next
 *   what it means, from    a request from inside, with an      done; what they are told;
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

#include "app/channel/int.h"
#include "app/http/inside.h"
#include "base/limits.h"
#include "base/log.h"
#include "channel/text.h"
#include "net/http_server.h"
#include "store/conversation.h"
#include "store/rows.h"

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
        e = outbox_put(db, &desk->arena, &row, desk->now);
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
        !interaction_mine(&settled, user, person_roles(&desk->peer)))
        return OK; /* not theirs to know */
    return tell(desk, db, OUT_NOTICE, settled_text(&desk->arena, desk->locale, &settled, user), id);
}

static str held_json(struct desk *desk)
{
    const struct json *ids = json_get(desk->decision, STR("held"));
    const struct json *text = json_get(desk->decision, STR("heldText"));
    return arena_printf(&desk->arena, "{\"text\":%.*s,\"ids\":%.*s}", STR_ARG(text->raw),
                        STR_ARG(ids->raw));
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
            : link_take(db, &desk->arena, desk->peer.channel, str_c(hex), desk->now, &code);
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

/* The conversation has a row now: what is said in it from its beginning goes out. */
static enum err find_conversation(struct desk *desk, struct db *db)
{
    struct thread thread;
    str user = person_user(&desk->arena, person_of(desk)->channel, &desk->peer);
    enum err e = thread_find(db, &desk->arena, user, desk->peer.thread_id, &thread);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    if (desk->peer.thread != thread.id) desk->peer.cursor = 0;
    desk->peer.thread = thread.id;
    return OK;
}

static enum err finish(struct desk *desk, struct db *db)
{
    enum desk_do what = desk_do_of(desk->decision);
    str say = json_text(json_get(desk->decision, STR("say")));
    str interaction = json_text(json_get(desk->decision, STR("interaction")));
    enum err e = OK;
    desk->peer.held = what == DO_WHICH ? held_json(desk) : STR_EMPTY;
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
    if (!e && desk->accepted) e = find_conversation(desk, db);
    return e;
}

static enum err finish_run(struct job *job, struct db *db)
{
    struct desk *desk = (struct desk *)(void *)job;
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

static void again_later(struct desk *desk);

static void receipt_of(struct desk *desk)
{
    struct channel *c = person_of(desk)->channel;
    if (!c->ops->mark || !desk->in.callback_id.len) return;
    receipt_send(c, &(struct receipt){.to = desk->peer.sender,
                                      .callback_id = desk->in.callback_id,
                                      .server_id = desk->in.pressed});
}

static void finish_done(struct job *job, enum err e)
{
    struct desk *desk = (struct desk *)(void *)job;
    struct person *person = person_of(desk);
    if (person->channel->all->stopping) {
        person_rest(person, WANT_DESK);
        return;
    }
    if (e) {
        log_warn("channel.unfinished", LOG_STR("channel", person->channel->config->name),
                 LOG_CSTR("reason", err_title(e)));
        again_later(desk);
        return;
    }
    receipt_of(desk);
    if (desk->accepted) {
        typing_begin(person, &desk->peer);
        person->wants |= WANT_MIRROR;
    }
    person->wants |= WANT_DESK | WANT_SEND;
    person_rest(person, WANT_DESK);
}

static void finish_start(struct desk *desk)
{
    desk->now = clock_wall(&clock_system);
    desk->job = (struct job){.run = finish_run, .done = finish_done};
    store_write(person_of(desk)->channel->all->server->store, &desk->job);
}

/* ---- carrying it out ---- */

/* What could not be done now is tried again, from the decision that is in the inbox. */
static void on_later(void *arg)
{
    struct desk *desk = arg;
    struct person *person = person_of(desk);
    timer_free(TAKE(desk->timer));
    person_want(person->channel, person->peer, WANT_DESK);
}

static void again_later(struct desk *desk)
{
    struct person *person = person_of(desk);
    static const msec seconds[] = {1, 2, 5, 10, 30};
    size_t i = desk->row.attempts < COUNT(seconds) ? desk->row.attempts : COUNT(seconds) - 1;
    if (!desk->timer) desk->timer = timer_new(person->channel->all->server->loop, on_later, desk);
    timer_start(desk->timer, 1000 * seconds[i]);
    person_rest(person, WANT_DESK);
}

/* It failed on our side. After some tries the person is told. */
static void failed(struct desk *desk)
{
    if (desk->row.attempts + 1 < CHANNEL_ATTEMPTS_MAX) {
        again_later(desk);
        return;
    }
    desk->say = TEXT_TROUBLE;
    finish_start(desk);
}

/* What the server answered, as the person is told. */
static void judge_answer(struct desk *desk)
{
    struct json *body = NULL;
    if (json_parse(&desk->arena, desk->answer, &body, NULL)) body = NULL;
    str code = json_text(json_get(body, STR("code")));
    enum desk_do what = desk_do_of(desk->decision);
    bool repeated = str_eq(code, STR("idempotency_mismatch")); /* taken before, with another file */
    if (what == DO_NEW || what == DO_LINK) return; /* stopped, or there was nothing to stop */
    if (desk->status < 300 || repeated) {
        desk->accepted = what != DO_STOP;
        bool open = desk_flag(desk->decision, "uncertain") || desk_flag(desk->decision, "unseen");
        if (desk_flag(body, "queued") && open) desk->say = TEXT_QUEUED;
    } else if (what == DO_STOP) {
        desk->say = TEXT_NOTHING;
    } else if (json_get(body, STR("interaction"))) {
        desk->settled_elsewhere = str_eq(code, STR("already_resolved")) || desk->status == 410 ||
                                  str_eq(code, STR("superseded"));
        if (!desk->settled_elsewhere) desk->say = TEXT_TROUBLE;
        if (desk->status == 403) desk->say = TEXT_NOT_YOURS;
    } else if (desk->status == 413) {
        desk->say = TEXT_TOO_LONG;
    } else if (desk->status == 429 || str_eq(code, STR("busy"))) {
        desk->say = TEXT_BUSY;
    } else if (desk->status == 403) {
        desk->say = TEXT_NOT_YOURS;
    } else if (desk->status == 409 || desk->status == 404) {
        /* Something has changed between the decision and now. */
        desk->decide_again = desk->row.attempts < CHANNEL_ATTEMPTS_MAX;
        if (!desk->decide_again) desk->say = TEXT_TROUBLE;
    } else {
        desk->say = TEXT_TROUBLE;
    }
}

static void on_answer(void *arg, const struct http_answer *answer)
{
    struct desk *desk = arg;
    desk->asking = false;
    desk->status = answer->status;
    desk->answer = arena_str(&desk->arena, answer->body);
    if (person_of(desk)->channel->all->stopping) {
        person_rest(person_of(desk), WANT_DESK);
        return;
    }
    if (answer->status >= 500) {
        log_warn("channel.unanswered", LOG_STR("channel", person_of(desk)->channel->config->name),
                 LOG_I64("status", answer->status));
        failed(desk);
        return;
    }
    judge_answer(desk);
    finish_start(desk);
}

static void ask(struct desk *desk, const char *route, str param, str body)
{
    struct person *person = person_of(desk);
    struct channel *c = person->channel;
    char name[MESSAGE_NAME_BYTES];
    message_name(c->config->name, desk->row.id, name);
    struct insider insider = {.who = {.user = person_user(&desk->arena, c, &desk->peer),
                                      .roles = person_roles(&desk->peer),
                                      .via = VIA_LOCAL},
                              .client = c->config->name};
    struct exchange *x = inside_new(c->all->server, &insider, route, param, body, on_answer, desk);
    x->via = arena_str(exchange_arena(x), c->config->kind);
    uint64_t round = 0;
    if (json_u64(json_get(desk->decision, STR("round")), &round)) round = 0;
    x->key = arena_printf(exchange_arena(x), "channel-%s-%llu", name, (unsigned long long)round);
    x->behind = desk_flag(desk->decision, "behind");
    if (desk_do_of(desk->decision) == DO_ANSWER && desk_flag(desk->decision, "question")) {
        x->reply_to =
            arena_str(exchange_arena(x), json_text(json_get(desk->decision, STR("interaction"))));
        x->reply = arena_str(exchange_arena(x), json_text(json_get(desk->decision, STR("body"))));
    }
    desk->asking = true;
    inside_go(x);
}

static void write_file(struct json_writer *w, const struct inbound_file *file, str bytes)
{
    char *text = malloc(BASE64_BYTES(bytes.len));
    if (!text) abort();
    crypto_base64(bytes, text);
    json_object(w);
    json_member(w, STR("type"), STR("binary"));
    json_member(w, STR("mimeType"), file->mime.len ? file->mime : STR("application/octet-stream"));
    if (file->name.len) json_member(w, STR("filename"), file->name);
    json_member(w, STR("data"), str_c(text));
    json_object_end(w);
    free(text);
}

static void write_content(struct json_writer *w, const struct desk *desk)
{
    str text = desk->in.text.len ? desk->in.text : desk->in.label;
    size_t files = 0;
    for (size_t i = 0; i < desk->in.file_count; i++) files += desk->file_bytes[i].len > 0;
    if (!files) {
        json_string(w, text);
        return;
    }
    json_array(w);
    if (text.len) {
        json_object(w);
        json_member(w, STR("type"), STR("text"));
        json_member(w, STR("text"), text);
        json_object_end(w);
    }
    for (size_t i = 0; i < desk->in.file_count; i++)
        if (desk->file_bytes[i].len) write_file(w, &desk->in.files[i], desk->file_bytes[i]);
    json_array_end(w);
}

/* The message as a run, or as the answer to a question: RunAgentInput. */
static void post_message(struct desk *desk)
{
    struct channel *c = person_of(desk)->channel;
    char name[MESSAGE_NAME_BYTES];
    struct buf out;
    struct json_writer w;
    message_name(c->config->name, desk->row.id, name);
    buf_init(&out, RUN_INPUT_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("threadId"), desk->peer.thread_id);
    json_member(&w, STR("runId"), arena_printf(&desk->arena, "chat-%s", name));
    json_member(&w, STR("agent"), c->config->agent);
    json_key(&w, STR("messages"));
    json_array(&w);
    json_object(&w);
    json_member(&w, STR("id"), arena_printf(&desk->arena, "chat-%s-m", name));
    json_member(&w, STR("role"), STR("user"));
    json_key(&w, STR("content"));
    write_content(&w, desk);
    json_object_end(&w);
    json_array_end(&w);
    json_object_end(&w);
    if (out.full) {
        desk->say = TEXT_TOO_LONG;
        finish_start(desk);
    } else {
        ask(desk, "createRun", STR_EMPTY, buf_str(&out));
    }
    buf_done(&out);
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
        desk->trip = courier_go(c->all->server->client, &clock_system, &c->home, c->ops->fetch,
                                &desk->errand, on_fetched, desk);
        return;
    }
    bool any = desk->in.text.len > 0;
    for (size_t i = 0; i < desk->in.file_count; i++) any |= desk->file_bytes[i].len > 0;
    if (any)
        post_message(desk);
    else
        finish_start(desk);
}

/* ---- the message ---- */

static void carry_out(struct desk *desk)
{
    str interaction = json_text(json_get(desk->decision, STR("interaction")));
    enum desk_do what = desk_do_of(desk->decision);
    desk->file = 0;
    desk->file_bytes = arena_array(&desk->arena, desk->in.file_count + 1, sizeof *desk->file_bytes);
    desk->say = CHAT_TEXT_COUNT;
    desk->say_arg = STR_EMPTY;
    desk->decide_again = desk->accepted = desk->settled_elsewhere = false;
    bool words = what == DO_ANSWER && desk_flag(desk->decision, "question") && desk->in.text.len;
    if (what == DO_PLAIN || words)
        fetch_next(desk);
    else if (what == DO_STOP && desk->peer.thread_id.len)
        ask(desk, "cancelRun", desk->peer.thread_id, STR("{\"queue\":true}"));
    else if ((what == DO_NEW || (what == DO_LINK && desk_flag(desk->decision, "good"))) &&
             desk->peer.thread_id.len) /* what it waits for is not asked any more */
        ask(desk, "cancelRun", desk->peer.thread_id, STR("{\"queue\":true}"));
    else if (what == DO_STOP) {
        desk->say = TEXT_NOTHING;
        finish_start(desk);
    } else if (what == DO_ANSWER)
        ask(desk, "answerInteraction", interaction,
            json_text(json_get(desk->decision, STR("body"))));
    else
        finish_start(desk);
}

static enum err decide_run(struct job *job, struct db *db)
{
    return desk_decide((struct desk *)(void *)job, db);
}

static void decide_done(struct job *job, enum err e)
{
    struct desk *desk = (struct desk *)(void *)job;
    struct person *person = person_of(desk);
    if (person->channel->all->stopping || desk->none) {
        person_rest(person, WANT_DESK);
    } else if (e == ERR_DAMAGED) {
        log_error("channel.damaged", LOG_STR("channel", person->channel->config->name),
                  LOG_STR("message", desk->row.id));
        desk->decision = NULL; /* nothing can be done about it but go on to the next */
        carry_out(desk);
    } else if (e) {
        log_warn("channel.undecided", LOG_STR("channel", person->channel->config->name),
                 LOG_CSTR("reason", err_title(e)));
        again_later(desk);
    } else {
        carry_out(desk);
    }
}

void desk_go(struct person *person)
{
    struct desk *desk = &person->desk;
    if (desk->timer) timer_free(TAKE(desk->timer));
    desk->now = clock_wall(&clock_system);
    desk->job = (struct job){.run = decide_run, .done = decide_done};
    store_write(person->channel->all->server->store, &desk->job);
}

void desk_open(struct person *person)
{
    arena_init(&person->desk.arena);
}

void desk_close(struct person *person)
{
    trip_cancel(person->desk.trip);
    timer_free(person->desk.timer);
    arena_done(&person->desk.arena);
}

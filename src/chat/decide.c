/* SPDX-License-Identifier: Apache-2.0
 *
 * What a message of a person means, from what is open in their conversation now: an answer, an approval
 * by its code, a command, a message for the agent, or something that has to be asked back. The decision
 * is JSON in the inbox.
 */
#include <stdio.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/chat_text.h"
#include "chat/chats_int.h"
#include "store/table/conversation.h"

static struct person *person_of(struct desk *desk)
{
    return CONTAINER(desk, struct person, desk);
}

/* ---- names made from a message ---- */

void message_name(str channel, str id, char out[static MESSAGE_NAME_BYTES])
{
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    struct buf text;
    buf_init(&text, channel.len + id.len + 1);
    buf_append(&text, channel);
    buf_char(&text, '\0');
    buf_append(&text, id);
    crypto_sha256(buf_str(&text), hash);
    buf_done(&text);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    snprintf(out, MESSAGE_NAME_BYTES, "%.32s", hex);
}

void link_hash(str code, char out[static HASH_HEX_BYTES])
{
    unsigned char hash[HASH_BYTES];
    crypto_sha256(code, hash);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, out);
}

str conversation_name(struct arena *arena, const struct peer *peer, int64_t n)
{
    char name[MESSAGE_NAME_BYTES];
    message_name(peer->channel, peer->sender, name);
    return arena_printf(arena, "%.*s-%.16s-%lld", STR_ARG(peer->channel), name, (long long)n);
}

/* ---- what it means ---- */

#define DO_NAME(value, name) [value] = name,
static const char *const do_names[DO_COUNT] = {DECISIONS_OF_DESK(DO_NAME)};
#undef DO_NAME

struct decided {
    enum desk_do what;
    struct reply reply;
    bool question;  /* of DO_ANSWER: an ask_user, whose answer is a message, too */
    bool unseen;    /* something is open that they had not been asked when they wrote it */
    bool behind;    /* it settles nothing: nothing was open that they had been asked */
    bool uncertain; /* something waits that the message does not touch */
    str code;       /* of DO_LINK */
    bool good;      /* it is one: what is open in the conversation before ends */
    uint32_t round; /* how often it was decided before, when things had changed meanwhile */
};

static str decision_json(struct arena *arena, const struct decided *d)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, CHANNEL_INBOUND_JSON_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("do"), str_c(do_names[d->what]));
    if (d->reply.interaction.len) json_member(&doc.w, STR("interaction"), d->reply.interaction);
    if (d->reply.body.len) json_member(&doc.w, STR("body"), d->reply.body);
    if (d->reply.say.len) json_member(&doc.w, STR("say"), d->reply.say);
    if (d->code.len) json_member(&doc.w, STR("code"), d->code);
    if (d->question) json_member_bool(&doc.w, STR("question"), true);
    if (d->uncertain) json_member_bool(&doc.w, STR("uncertain"), true);
    if (d->good) json_member_bool(&doc.w, STR("good"), true);
    if (d->unseen) json_member_bool(&doc.w, STR("unseen"), true);
    if (d->behind) json_member_bool(&doc.w, STR("behind"), true);
    json_member_u64(&doc.w, STR("round"), d->round);
    if (d->what == DO_WHICH) {
        json_member(&doc.w, STR("heldText"), d->reply.held_text);
        json_key(&doc.w, STR("held"));
        json_array(&doc.w);
        for (size_t i = 0; i < d->reply.held_count; i++) json_string(&doc.w, d->reply.held[i]);
        json_array_end(&doc.w);
    }
    json_object_end(&doc.w);
    return doc.buf.full ? STR("{\"do\":\"plain\"}") : json_doc_copy(&doc, arena);
}

enum desk_do desk_do_of(const struct json *decision)
{
    str name = json_text(json_get(decision, STR("do")));
    for (size_t i = 0; i < DO_COUNT; i++)
        if (str_eq(str_c(do_names[i]), name)) return (enum desk_do)i;
    return DO_NOTHING;
}

bool desk_flag(const struct json *decision, const char *name)
{
    const struct json *value = json_get(decision, str_c(name));
    return value && value->type == JSON_TRUE;
}

/* Said where others listen: the message itself tells, for of the person we know only how the newest
 * one was said. */
static bool in_group(const struct desk *desk)
{
    return desk->in.group || desk->peer.group;
}

/* The code that approves it, if they were sent it: where a call did not fit whole, there is none. */
static enum err load_code(struct desk *desk, struct db *db, const struct interaction *interaction,
                          str *ret_code)
{
    char code[APPROVAL_CODE_BYTES];
    bool sent = false;
    approval_code(person_of(desk)->channel->all->code_key, desk->peer.id, interaction, code);
    enum err e = out_says(db, desk->peer.id, interaction->id, str_c(code), &sent);
    if (!e && sent) *ret_code = arena_str(&desk->arena, str_c(code));
    return e;
}

/* What they had been asked when they wrote this, and is open in their conversation, with the code that
 * approves each. *d is told of what else is open. */
static enum err load_open(struct desk *desk, struct db *db, struct open_question **ret_open,
                          size_t *ret_count, struct decided *d)
{
    struct person *person = person_of(desk);
    struct arena *arena = &desk->arena;
    struct thread thread;
    struct interaction_list list = {0};
    str user = person_user(arena, person->channel, &desk->peer);
    bool alone = !auth_required(person->channel->all->server->auth) && str_eq(user, STR("local"));
    *ret_count = 0;
    *ret_open = NULL;
    d->behind = true;
    if (!desk->peer.thread_id.len) return OK;
    enum err e = thread_find(db, arena, user, desk->peer.thread_id, &thread);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    e = interactions_of_thread(db, arena, thread.id, &list);
    if (e) return e;
    struct open_question *open = arena_array(arena, list.count + 1, sizeof *open);
    for (size_t i = 0; !e && i < list.count; i++) {
        const struct interaction *interaction = &list.rows[i];
        struct open_question *q = &open[*ret_count];
        bool asked = false;
        if (interaction->expires && interaction->expires <= desk->worker.now) continue;
        e = out_asked(db, desk->peer.id, interaction->id, desk->in.asked, &asked);
        if (e) break;
        if (!asked || desk->in.menu) { /* nobody answers what they have not seen */
            d->unseen = true;
            continue;
        }
        *q = (struct open_question){.interaction = interaction,
                                    .mine = interaction_mine(interaction, user,
                                                             person_roles(&desk->peer), alone)};
        if (q->mine && approval_by_code(interaction, in_group(desk)))
            e = load_code(desk, db, interaction, &q->code);
        if (!e) e = code_tries(db, desk->peer.id, interaction->id, &q->tries);
        ++*ret_count;
    }
    d->behind = d->unseen || !*ret_count;
    if (!e) *ret_open = open;
    return e;
}

static void load_held(struct desk *desk, struct reply_context *context)
{
    struct json *held = NULL;
    if (!desk->peer.held.len || json_parse(&desk->arena, desk->peer.held, &held, NULL)) return;
    context->held_text = json_text(json_get(held, STR("text")));
    const struct json *ids = json_get(held, STR("ids"));
    for (const struct json *n = ids ? ids->child : NULL; n; n = n->next)
        if (context->held_count < COUNT(context->held))
            context->held[context->held_count++] = json_text(n);
}

/* Words that were written before the writer could know that somebody else had answered: the question
 * that was asked last, in this conversation, is settled elsewhere, and they are still to be told. A
 * notice that was given up is no reason: they would not be heard, though they saw what came of it. */
static enum err overtaken(struct desk *desk, struct db *db, str *ret_interaction)
{
    const struct channel_traits *traits = &person_of(desk)->channel->ops->traits;
    struct interaction interaction;
    bool told = false;
    str id = STR_EMPTY;
    enum err e = out_last_question(db, &desk->arena, desk->peer.id, &id);
    if (e || !id.len) return e == ERR_NOT_FOUND ? OK : e;
    e = interaction_find(db, &desk->arena, id, &interaction);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    bool elsewhere =
        interaction.status == INTERACTION_RESOLVED && !str_eq(interaction.via, str_c(traits->kind));
    bool here = str_eq(interaction.thread_id, desk->peer.thread_id);
    if (!elsewhere || !here || interaction.settled < desk->peer.created) return OK;
    e = out_told(db, desk->peer.id, id, &told);
    if (!e && !told) *ret_interaction = id;
    return e;
}

static enum err read_reply(struct desk *desk, struct db *db, struct decided *d)
{
    struct reply_context context = {.locale = desk->locale,
                                    .traits = &person_of(desk)->channel->ops->traits,
                                    .group = in_group(desk),
                                    .button = desk->in.button};
    struct open_question *open;
    enum err e = load_open(desk, db, &open, &context.open_count, d);
    if (e) return e;
    context.open = open;
    for (size_t i = 0; i < context.open_count; i++)
        d->uncertain |= open[i].interaction->type == INTERACTION_UNCERTAIN;
    str quoted = desk->in.quoted.len ? desk->in.quoted : desk->in.pressed;
    if (quoted.len) e = out_of_server_id(db, &desk->arena, desk->peer.id, quoted, &context.quoted);
    if (e && e != ERR_NOT_FOUND) return e;
    str late = STR_EMPTY;
    e = context.open_count ? OK : overtaken(desk, db, &late);
    if (e) return e;
    if (late.len) {
        d->what = DO_STALE;
        d->reply.interaction = late;
        return OK;
    }
    load_held(desk, &context);
    reply_read(&desk->arena, &context, desk->in.text, &d->reply);
    static const enum desk_do of_kind[] = {
        [REPLY_PLAIN] = DO_PLAIN, [REPLY_ANSWER] = DO_ANSWER, [REPLY_SAY] = DO_SAY,
        [REPLY_WHICH] = DO_WHICH, [REPLY_WRONG] = DO_WRONG,   [REPLY_STALE] = DO_STALE};
    d->what = of_kind[d->reply.kind];
    assert(open || !context.open_count);
    for (size_t i = 0; i < context.open_count; i++)
        if (str_eq(open[i].interaction->id, d->reply.interaction))
            d->question = open[i].interaction->type == INTERACTION_ASK_USER;
    return OK;
}

static enum err decide(struct desk *desk, struct db *db, struct decided *d)
{
    str rest = STR_EMPTY;
    enum chat_command command =
        desk->in.button.len ? CHAT_NONE : command_read(desk->in.text, &rest);
    struct arena *arena = &desk->arena;
    if (desk->in.follow || command == CHAT_START) {
        d->what = DO_SAY;
        d->reply.say = chat_text(arena, desk->locale, TEXT_WELCOME, STR_EMPTY);
    } else if (command == CHAT_HELP) {
        d->what = DO_SAY;
        d->reply.say = chat_text(arena, desk->locale, TEXT_HELP, STR_EMPTY);
    } else if (command == CHAT_NEW) {
        d->what = DO_NEW;
    } else if (command == CHAT_STOP) {
        d->what = DO_STOP;
    } else if (command == CHAT_LINK) {
        d->what = DO_LINK;
        d->code = rest;
        char hex[HASH_HEX_BYTES];
        uint32_t tries = 0;
        link_hash(d->code, hex);
        enum err e = code_tries(db, desk->peer.id, STR("link"), &tries);
        if (e || tries >= CODE_TRIES_MAX || in_group(desk)) return e;
        return link_known(db, desk->peer.channel, str_c(hex), desk->worker.now, &d->good);
    } else if (desk->in.text.len || desk->in.button.len) {
        return read_reply(desk, db, d);
    } else if (desk->in.file_count) {
        struct open_question *open;
        size_t count;
        d->what = DO_PLAIN;
        return load_open(desk, db, &open, &count, d);
    }
    return OK;
}

enum err desk_decide(struct desk *desk, struct db *db)
{
    struct person *person = person_of(desk);
    struct arena *arena = &desk->arena;
    struct json *decision = NULL;
    struct decided d = {0};
    arena_reset(arena);
    desk->in = (struct inbound){0};
    enum err e = inbound_next(db, arena, person->peer, &desk->row);
    desk->worker.none = e == ERR_NOT_FOUND;
    if (e) return desk->worker.none ? OK : e;
    e = peer_by_id(db, arena, person->peer, &desk->peer);
    if (!e) e = inbound_parse(arena, desk->row.body, &desk->in);
    if (e) return e;
    desk->locale = text_locale(desk->in.text, peer_locale(&desk->peer));
    if (desk->row.state == INBOUND_NEW) {
        d.round = desk->row.attempts;
        e = decide(desk, db, &d);
        if (e) return e;
        desk->row.decision = decision_json(arena, &d);
        desk->row.state = INBOUND_DECIDED;
        e = inbound_update(db, &desk->row);
        if (!e && d.what == DO_PLAIN && !desk->peer.thread_id.len) {
            desk->peer.conversations++;
            desk->peer.thread_id = conversation_name(arena, &desk->peer, desk->peer.conversations);
        }
        desk->peer.locale = ui_locale_name(desk->locale);
        if (!e) e = peer_update(db, &desk->peer);
    } else {
        desk->row.attempts++; /* it was to be carried out before */
        e = inbound_update(db, &desk->row);
    }
    if (!e && json_parse(arena, desk->row.decision, &decision, NULL)) e = ERR_DAMAGED;
    desk->decision = decision;
    return e;
}

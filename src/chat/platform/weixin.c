/* SPDX-License-Identifier: Apache-2.0
 *
 * Personal WeChat through Tencent's iLink API: a person scans a QR code (weixin_login.c), we poll for
 * what they write and answer with the context token of their newest message. Direct chats only, no
 * buttons. Files are in weixin_media.c, requests and answers in weixin_call.c.
 *
 *   poll    getupdates, held by the server; a cursor says how far we have read
 *   send    sendmessage; for a file getuploadurl and an upload to the CDN before it
 *   typing  getconfig gives a ticket, sendtyping shows it. The ticket is asked for each time: an
 *           errand has nowhere to keep it, and both calls are free.
 *
 * Invariants:
 * 1. Ids are uint64 and are never numbers here: their digits are text, as they came.
 * 2. No message is lost for being odd: one without an id is known by the hash of its bytes, broken
 *    text is mended, and the cursor moves only when all of an answer was read.
 * 3. A message that the server delivers twice has the same id twice; the inbox knows.
 * 4. Groups are not offered. Should a message of one come, it counts as said where others listen.
 */
#include "base/crypto.h"
#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "ui/text.h"

enum {
    POLL_MS = 35 * 1000,      /* that a poll is held, if the server has not said otherwise */
    POLL_MS_MAX = 120 * 1000, /* whatever it says */
    POLL_MORE_MS = 8 * 1000,  /* so that the server ends a poll, not we */
    SEND_MS = 15 * 1000,
    TYPING_MS = 10 * 1000,
};

enum { TYPE_USER = 1, TYPE_BOT = 2, STATE_FINISHED = 2 };
enum { ITEM_TEXT = 1, ITEM_VOICE = 3 };

/* ---- what came in ---- */

static int64_t int_of(const struct json *object, str key)
{
    int64_t value = 0;
    return json_i64(json_get(object, key), &value) ? 0 : value;
}

/* The platform's id, or the next best thing that a repeated delivery has too. */
static str id_of(struct arena *arena, const struct json *message, str sender)
{
    str id = weixin_id(json_get(message, STR("message_id")));
    str client = weixin_id(json_get(message, STR("client_id")));
    str seq = weixin_id(json_get(message, STR("seq")));
    if (id.len) return id;
    if (client.len)
        id = arena_printf(arena, "client:%.*s", STR_ARG(client));
    else if (seq.len)
        id = arena_printf(arena, "seq:%.*s:%.*s", STR_ARG(seq), STR_ARG(sender));
    if (id.len && id.len <= CHANNEL_ID_BYTES_MAX) return id;
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    crypto_sha256(message->raw, hash);
    crypto_hex((str){(char *)hash, sizeof hash}, hex);
    return arena_printf(arena, "hash:%s", hex);
}

static void read_items(struct arena *arena, const struct json *items, struct inbound *in)
{
    struct buf words;
    size_t count = items && items->type == JSON_ARRAY ? items->count : 0;
    size_t room = count < CHANNEL_INBOUND_FILES_MAX ? count : CHANNEL_INBOUND_FILES_MAX;
    buf_init(&words, CHANNEL_REPLY_BYTES_MAX);
    in->files = arena_array(arena, room + 1, sizeof *in->files);
    for (const struct json *item = count ? items->child : NULL; item; item = item->next) {
        int64_t type = int_of(item, STR("type"));
        const struct json *payload = type == ITEM_TEXT    ? json_get(item, STR("text_item"))
                                     : type == ITEM_VOICE ? json_get(item, STR("voice_item"))
                                                          : NULL;
        str said = ui_trim(json_text(json_get(payload, STR("text")))); /* typed, or heard there */
        str quoted = weixin_id(json_get(json_get(item, STR("ref_msg")), STR("svr_id")));
        if (!in->quoted.len) in->quoted = quoted;
        if (said.len && words.len) buf_char(&words, '\n');
        buf_append(&words, said);
        if (!said.len && in->file_count < room &&
            weixin_file_read(arena, item, &in->files[in->file_count]))
            in->file_count++;
    }
    in->text = arena_str(arena, buf_str(&words));
    buf_done(&words);
}

/* Whatever stands there that is not nothing. */
static bool is_named(const struct json *value)
{
    if (!value || value->type == JSON_NULL || value->type == JSON_FALSE) return false;
    if (value->type == JSON_STRING) return value->text.len > 0;
    return value->type != JSON_NUMBER || !str_eq(value->text, STR("0"));
}

/* False: not a message of a person. */
static bool read_message(struct arena *arena, const struct json *message, struct inbound *ret)
{
    str sender = json_text(json_get(message, STR("from_user_id")));
    str token = json_text(json_get(message, STR("context_token")));
    if (int_of(message, STR("message_type")) == TYPE_BOT) return false;
    if (!sender.len || sender.len > CHANNEL_ID_BYTES_MAX || !weixin_is_visible(sender))
        return false;
    msec at = int_of(message, STR("create_time_ms"));
    *ret =
        (struct inbound){.id = id_of(arena, message, sender),
                         .sender = sender,
                         .group = is_named(json_get(message, STR("group_id"))),
                         .at = at > 0 ? at : 0,
                         .reply_token = token.len <= CHANNEL_TOKEN_BYTES_MAX ? token : STR_EMPTY};
    read_items(arena, json_get(message, STR("item_list")), ret);
    return true;
}

static bool read_updates(const struct channel_home *home, struct errand *errand,
                         const struct json *root)
{
    const struct json *messages = json_get(root, STR("msgs"));
    str cursor = json_text(json_get(root, STR("get_updates_buf")));
    int64_t hint = int_of(root, STR("longpolling_timeout_ms"));
    size_t count = messages && messages->type == JSON_ARRAY ? messages->count : 0;
    if (cursor.len > CHANNEL_CURSOR_BYTES_MAX)
        return weixin_stuck(home, errand, "has too long a cursor");
    errand->inbounds = arena_array(errand->arena, count + 1, sizeof *errand->inbounds);
    errand->inbound_count = 0;
    for (const struct json *m = count ? messages->child : NULL; m; m = m->next)
        if (read_message(errand->arena, m, &errand->inbounds[errand->inbound_count]))
            errand->inbound_count++;
    errand->new_cursor = cursor;
    if (hint > 0) errand->wait_hint_ms = hint < POLL_MS_MAX ? (uint32_t)hint : POLL_MS_MAX;
    return errand_done(errand);
}

static bool poll(const struct channel_home *home, struct errand *errand,
                 const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct json *root = NULL;
    if (!reply) {
        struct json_doc body;
        uint32_t held = errand->wait_hint_ms ? errand->wait_hint_ms : POLL_MS;
        weixin_body_begin(&body);
        json_member(&body.w, STR("get_updates_buf"), errand->cursor);
        str bytes = weixin_body_end(&body, errand->arena, home);
        return weixin_post(home, errand, "getupdates", bytes,
                           (held < POLL_MS_MAX ? held : POLL_MS_MAX) + POLL_MORE_MS, ret_request);
    }
    if (reply->e == ERR_TIMEOUT && reply->sent && !reply->status) return errand_done(errand);
    if (!weixin_answer(home, errand, reply, WEIXIN_POLLS, &root)) return false;
    return read_updates(home, errand, root);
}

/* ---- what goes out ---- */

bool weixin_say(const struct channel_home *home, struct errand *errand, str item,
                struct channel_request *ret_request)
{
    const struct outbound *message = errand->message;
    struct json_doc body;
    struct json_writer *w = &body.w;
    weixin_body_begin(&body);
    json_key(w, STR("msg"));
    json_object(w);
    json_member(w, STR("from_user_id"), STR_EMPTY);
    json_member(w, STR("to_user_id"), message->to);
    json_member(w, STR("client_id"), message->client_id);
    json_member_u64(w, STR("message_type"), TYPE_BOT);
    json_member_u64(w, STR("message_state"), STATE_FINISHED);
    json_key(w, STR("item_list"));
    json_array(w);
    json_raw(w, item);
    json_array_end(w);
    if (message->reply_token.len) json_member(w, STR("context_token"), message->reply_token);
    json_object_end(w);
    errand->step = WEIXIN_SEND_SAID;
    return weixin_post(home, errand, "sendmessage", weixin_body_end(&body, errand->arena, home),
                       SEND_MS, ret_request);
}

static bool send(const struct channel_home *home, struct errand *errand,
                 const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct json *root = NULL;
    if (errand->step != WEIXIN_SEND_SAID) {
        if (!errand->message->text.len) return weixin_send_file(home, errand, reply, ret_request);
        struct json_doc item;
        weixin_body_begin(&item);
        json_member_u64(&item.w, STR("type"), ITEM_TEXT);
        json_key(&item.w, STR("text_item"));
        json_object(&item.w);
        json_member(&item.w, STR("text"), errand->message->text);
        json_object_end(&item.w);
        str bytes = weixin_body_end(&item, errand->arena, NULL);
        if (!bytes.len) return errand_end(errand, VERDICT_REFUSED, "it is too long for WeChat");
        return weixin_say(home, errand, bytes, ret_request);
    }
    if (!weixin_answer(home, errand, reply, WEIXIN_SENDS, &root)) return false;
    errand->server_id = weixin_id(json_get(root, STR("message_id")));
    return errand_done(errand);
}

/* ---- at work ---- */

static bool typing(const struct channel_home *home, struct errand *errand,
                   const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct json *root = NULL;
    struct json_doc body;
    if (!reply) {
        weixin_body_begin(&body);
        json_member(&body.w, STR("ilink_user_id"), errand->peer);
        if (errand->reply_token.len)
            json_member(&body.w, STR("context_token"), errand->reply_token);
        return weixin_post(home, errand, "getconfig", weixin_body_end(&body, errand->arena, home),
                           TYPING_MS, ret_request);
    }
    if (!weixin_answer(home, errand, reply, WEIXIN_ASKS, &root)) return false;
    if (errand->step++) return errand_done(errand);
    str ticket = json_text(json_get(root, STR("typing_ticket")));
    if (!ticket.len) return errand_end(errand, VERDICT_REFUSED, "WeChat gives no typing ticket");
    weixin_body_begin(&body);
    json_member(&body.w, STR("ilink_user_id"), errand->peer);
    json_member(&body.w, STR("typing_ticket"), ticket);
    json_member_u64(&body.w, STR("status"), errand->stop ? 2 : 1);
    return weixin_post(home, errand, "sendtyping", weixin_body_end(&body, errand->arena, home),
                       TYPING_MS, ret_request);
}

const struct channel_ops channel_weixin = {
    .traits = {.kind = "weixin",
               .chars_max = 3800,
               .bytes_max = 12 * 1024,
               .sends_max = 10,
               .sends_kept = 2,
               .window_ms = 24 * 60 * 60 * 1000,
               .polls = true,
               .logs_in = true,
               .typing = true,
               .files = true},
    .poll = poll,
    .send = send,
    .typing = typing,
    .fetch = weixin_fetch,
    .login_begin = weixin_login_begin,
    .login_poll = weixin_login_poll,
};

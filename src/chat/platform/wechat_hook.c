/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of WeChat's Official Account to us: checked, and read as messages and events.
 *
 *     GET  ?signature&timestamp&nonce&echostr               ─► echostr
 *     POST ?signature&timestamp&nonce                       ─► XML of a message or an event
 *     POST ?msg_signature&timestamp&nonce&encrypt_type=aes  ─► XML with that XML in <Encrypt>
 *
 * WeChat waits five seconds, then calls again, three times in all; repeats have the same id and are
 * known by it. A tap on a line of a menu of ours (msgmenu) comes as a text that says the line, with
 * the line's id beside it; some accounts get 0 for an id, then the text has to do.
 *
 * Invariants:
 * 1. Nothing of a call means anything before its signature was found good; of an encrypted one only
 *    <Encrypt> is read before that, because it is signed too.
 * 2. Where there is a key, what is not encrypted is not taken.
 *
 * A plain call is signed by its query alone. So a query is good once (hook_answer.once): whoever keeps
 * one from us can still put another body behind it until it is WECHAT_CALL_AGE_S_MAX old. An encrypted
 * one is signed with its body. What WeChat asks about the address may be of any age: it tells nothing.
 *
 * To add a type of message or an event: a row in types[] or events[].
 */
#include "chat/platform/wechat_hook.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "chat/platform/wechat_crypt.h"
#include "chat/platform/xml.h"
#include "net/http1.h"
#include "ui/text.h"

/* ---- the query ---- */

struct call_query {
    str signature, msg_signature, timestamp, nonce, echostr, encrypt_type;
};

static const struct {
    const char *name;
    size_t offset;
} parameters[] = {
    {"signature", offsetof(struct call_query, signature)},
    {"msg_signature", offsetof(struct call_query, msg_signature)},
    {"timestamp", offsetof(struct call_query, timestamp)},
    {"nonce", offsetof(struct call_query, nonce)},
    {"echostr", offsetof(struct call_query, echostr)},
    {"encrypt_type", offsetof(struct call_query, encrypt_type)},
};

static bool query_read(struct arena *arena, str query, struct call_query *ret_query)
{
    for (size_t i = 0; i < COUNT(parameters); i++) {
        str *value = (str *)(void *)((char *)ret_query + parameters[i].offset);
        char *out = arena_alloc(arena, query.len + 1);
        if (http1_query(query, str_c(parameters[i].name), out, query.len + 1, value)) return false;
    }
    return true;
}

static bool in_time(str timestamp, msec now)
{
    uint64_t seconds;
    if (str_to_u64(timestamp, &seconds) || seconds > INT64_MAX / 1000) return false;
    int64_t age = now / 1000 - (int64_t)seconds;
    return age <= WECHAT_CALL_AGE_S_MAX && age >= -WECHAT_CALL_AHEAD_S_MAX;
}

/* ---- what is answered ---- */

static void wechat_hook_refuse(struct hook_answer *answer, int status, const char *why)
{
    *answer = (struct hook_answer){.status = status, .type = "text/plain", .body = STR_EMPTY};
    snprintf(answer->detail, sizeof answer->detail, "%s", why);
}

static void answer_text(struct hook_answer *answer, str body)
{
    *answer = (struct hook_answer){.status = 200, .type = "text/plain", .body = body};
}

/* ---- a message ---- */

/* Ids are part of other ids and of log lines. */
static bool id_fits(str id)
{
    if (!id.len || id.len > CHANNEL_ID_BYTES_MAX) return false;
    for (size_t i = 0; i < id.len; i++)
        if (id.p[i] <= ' ' || id.p[i] >= 0x7f) return false;
    return true;
}

static str field(const struct xml_document *xml, const char *path)
{
    return ui_trim(xml_text(xml, path));
}

static void add_file(struct arena *arena, struct inbound *in, str media_id, str name, str mime)
{
    if (!id_fits(media_id)) return;
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 8 * CHANNEL_ID_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("mediaId"), media_id);
    json_object_end(&doc.w);
    in->files = ARENA_NEW(arena, struct inbound_file);
    in->files[0] =
        (struct inbound_file){.name = name, .mime = mime, .ref = json_doc_copy(&doc, arena)};
    in->file_count = 1;
}

/* The texts that are there, a line each. */
static str lines(struct arena *arena, const str *texts, size_t count)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, CHANNEL_HOOK_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!texts[i].len) continue;
        if (out.len) buf_char(&out, '\n');
        buf_append(&out, texts[i]);
    }
    return arena_str(arena, buf_str(&out));
}

static void read_text(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    (void)arena;
    str pressed = field(xml, "bizmsgmenuid");
    in->text = field(xml, "Content");
    if (!pressed.len) return;
    in->allowance = WECHAT_EVENT_SENDS; /* a tap counts as an event */
    in->window_ms = WECHAT_EVENT_MS;
    if (!str_starts(pressed, STR("c:")) || !id_fits(pressed)) return; /* none of our ids */
    in->button = pressed;
    in->label = in->text;
    in->text = STR_EMPTY;
}

static void read_image(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    add_file(arena, in, field(xml, "MediaId"), STR("image.jpg"), STR("image/jpeg"));
}

static void read_voice(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    in->text = field(xml, "Recognition");
    if (in->text.len) return;
    bool amr = str_eq_nocase(field(xml, "Format"), STR("amr"));
    add_file(arena, in, field(xml, "MediaId"), amr ? STR("voice.amr") : STR("voice"),
             amr ? STR("audio/amr") : STR_EMPTY);
}

static void read_video(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    add_file(arena, in, field(xml, "MediaId"), STR("video.mp4"), STR("video/mp4"));
}

static void read_link(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    const str texts[] = {field(xml, "Title"), field(xml, "Description"), field(xml, "Url")};
    in->text = lines(arena, texts, COUNT(texts));
}

static void read_location(struct arena *arena, const struct xml_document *xml, struct inbound *in)
{
    str x = field(xml, "Location_X"), y = field(xml, "Location_Y");
    str where = x.len + y.len < 64 ? arena_printf(arena, "📍 %.*s, %.*s", STR_ARG(x), STR_ARG(y))
                                   : STR_EMPTY;
    const str texts[] = {where, field(xml, "Label")};
    in->text = lines(arena, texts, COUNT(texts));
}

static const struct {
    const char *type;
    void (*read)(struct arena *arena, const struct xml_document *xml, struct inbound *in);
} types[] = {
    {"text", read_text},        {"image", read_image}, {"voice", read_voice},
    {"video", read_video},      {"link", read_link},   {"location", read_location},
    {"shortvideo", read_video},
};

/* What a person did on the platform. Others mean nothing here: that they left, opened a page, or are
 * somewhere. */
static const struct {
    const char *event;
    const char *text; /* path of what they said with it; NULL: they began to follow us */
} events[] = {
    {"subscribe", NULL},
    {"SCAN", NULL},
    {"CLICK", "EventKey"}, /* the key is the account's own words */
    {"scancode_waitmsg", "ScanCodeInfo/ScanResult"},
};

static void read_event(const struct xml_document *xml, struct inbound *in)
{
    str event = field(xml, "Event");
    for (size_t i = 0; i < COUNT(events); i++) {
        if (!str_eq_nocase(event, str_c(events[i].event))) continue;
        in->follow = !events[i].text;
        in->menu = !in->follow;
        if (events[i].text) in->text = field(xml, events[i].text);
        in->allowance = WECHAT_EVENT_SENDS;
        in->window_ms = WECHAT_EVENT_MS;
    }
}

static void message_read(struct arena *arena, const struct xml_document *xml,
                         struct hook_answer *answer)
{
    struct inbound *in = ARENA_NEW(arena, struct inbound);
    str type = field(xml, "MsgType");
    uint64_t seconds;
    in->sender = field(xml, "FromUserName");
    if (!id_fits(in->sender)) {
        wechat_hook_refuse(answer, 400, "the message has no FromUserName");
        return;
    }
    str event = field(xml, "Event"), at = field(xml, "CreateTime");
    in->id = field(xml, "MsgId");
    if (!in->id.len && event.len <= 64 && at.len <= 20) /* events have none */
        in->id =
            arena_printf(arena, "%.*s:%.*s:%.*s", STR_ARG(in->sender), STR_ARG(at), STR_ARG(event));
    if (!id_fits(in->id)) {
        wechat_hook_refuse(answer, 400, "the message has no MsgId");
        return;
    }
    if (str_to_u64(at, &seconds) == OK && seconds < INT64_MAX / 1000) in->at = (msec)seconds * 1000;
    if (str_eq(type, STR("event"))) read_event(xml, in);
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eq(type, str_c(types[i].type))) types[i].read(arena, xml, in);
    if (in->text.len > CHANNEL_TEXT_BYTES_MAX) {
        wechat_hook_refuse(answer, 400, "the text of the message is too long");
        return;
    }
    answer_text(answer, STR("success"));
    if (!in->text.len && !in->button.len && !in->file_count && !in->follow) return;
    answer->inbounds = in;
    answer->inbound_count = 1;
}

/* ---- the call ---- */

/* The XML inside an encrypted call. */
static bool open_call(const struct channel_home *home, struct arena *arena,
                      const struct call_query *query, struct xml_document *xml,
                      struct hook_answer *answer)
{
    str encrypted = field(xml, "Encrypt"), message;
    if (!encrypted.len || !wechat_signed(home->token, query->timestamp, query->nonce, encrypted,
                                         query->msg_signature)) {
        wechat_hook_refuse(answer, 403,
                           "msg_signature is wrong: not from WeChat, or another token there");
        return false;
    }
    enum err e = wechat_decrypt(arena, home->aes_key, home->app_id, encrypted, &message);
    if (e) {
        wechat_hook_refuse(answer, 403,
                           e == ERR_CONFIG
                               ? "the aes key has not the 43 characters of an EncodingAESKey"
                               : "cannot be decrypted: another aes key or app id there");
        return false;
    }
    struct fault why = {0};
    if (xml_parse(arena, message, xml, &why)) {
        wechat_hook_refuse(answer, 400, why.text);
        return false;
    }
    return true;
}

static void take_message(const struct channel_home *home, struct arena *arena,
                         const struct hook_call *call, const struct call_query *query,
                         struct hook_answer *answer)
{
    struct xml_document xml;
    struct fault why = {0};
    if (xml_parse(arena, call->body, &xml, &why)) {
        wechat_hook_refuse(answer, home->aes_key.len ? 403 : 400, why.text);
        return;
    }
    if (home->aes_key.len) {
        if (!open_call(home, arena, query, &xml, answer)) return;
    } else if (!field(&xml, "MsgType").len && field(&xml, "Encrypt").len) {
        wechat_hook_refuse(answer, 403,
                           "messages are encrypted there, and no aes key is configured here");
        return;
    }
    message_read(arena, &xml, answer);
    answer->once =
        arena_printf(arena, "%.*s %.*s", STR_ARG(query->timestamp), STR_ARG(query->nonce));
}

/* Plain calls are signed by their query alone. */
static bool plain_call(const struct channel_home *home, const struct hook_call *call)
{
    return call->get || !home->aes_key.len;
}

void wechat_hook(const struct channel_home *home, struct arena *arena, const struct hook_call *call,
                 struct hook_answer *ret_answer)
{
    struct call_query query = {0};
    if (!home->token.len || !query_read(arena, call->query, &query)) {
        wechat_hook_refuse(ret_answer, 403, "the query is not readable");
    } else if (plain_call(home, call) && !wechat_signed(home->token, query.timestamp, query.nonce,
                                                        STR_EMPTY, query.signature)) {
        wechat_hook_refuse(ret_answer, 403,
                           "signature is wrong: not from WeChat, or another token there");
    } else if (!plain_call(home, call) && !str_eq(query.encrypt_type, STR("aes"))) {
        wechat_hook_refuse(ret_answer, 403, "not encrypted, though an aes key is configured here");
    } else if (!call->get && !in_time(query.timestamp, call->now)) {
        wechat_hook_refuse(ret_answer, 403,
                           "timestamp is too far from our clock: a repeat, or a clock is wrong");
    } else if (!call->get) {
        take_message(home, arena, call, &query, ret_answer);
    } else if (!query.echostr.len) {
        wechat_hook_refuse(ret_answer, 400, "echostr is missing");
    } else {
        answer_text(ret_answer, query.echostr);
    }
}

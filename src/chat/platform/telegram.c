/* SPDX-License-Identifier: Apache-2.0
 *
 * Telegram: polls, messages and buttons out, presses settled, files both ways; pure. Telegram's Bot
 * API: POST <base>/bot<token>/<method> with JSON, or with a form that holds a file; the answer is
 * {"ok":true,"result":...} or {"ok":false,"error_code","description","parameters"?}.
 *
 *     poll    getUpdates                                    ─► telegram_update.c
 *     send    sendMessage │ sendPhoto, then sendDocument if it is no photo to Telegram │ sendDocument
 *     mark    answerCallbackQuery, then editMessageText │ editMessageReplyMarkup
 *     typing  sendChatAction
 *     fetch   getFile, then GET <base>/file/bot<token>/<path>
 *
 * Invariants:
 * 1. The token is in URLs and nowhere else: what is told of a failure has it hidden.
 * 2. A text is at most 4096 UTF-16 units for Telegram. chars_max and bytes_max together keep below
 *    that whatever the text is: of c characters in b bytes at most (b - c) / 3 take two units, so c +
 *    (b - c) / 3 <= 4096. Latin text gets 3000 characters, Chinese 2096.
 * 3. Only a send may be of unknown fate; everything else may be done twice.
 * 4. An update that cannot be read holds up nothing: it is asked for alone, and then left out.
 *
 * The other poll of the same bot, or its webhook, gets the messages in our place: Telegram says 409.
 */
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/platform/platform_errand.h"
#include "chat/platform/telegram_update.h"
#include "ui/text.h"

/* ---- requests ---- */

/* <base><before><token>/<rest> */
static str url_of(const struct channel_home *home, struct arena *arena, str before, str rest)
{
    AUTO(buf_done) struct buf url;
    buf_init(&url, CHANNEL_TOKEN_BYTES_MAX * 4);
    buf_append(&url, home->base_url);
    buf_append(&url, before);
    buf_append(&url, url_escape(arena, home->token, ":"));
    buf_char(&url, '/');
    buf_append(&url, url_escape(arena, rest, "/"));
    return arena_str(arena, buf_str(&url));
}

static void post(const struct channel_home *home, struct errand *errand, const char *method,
                 str type, str body, struct channel_request *ret_request)
{
    *ret_request = (struct channel_request){
        .method = "POST",
        .url = url_of(home, errand->arena, STR("/bot"), str_c(method)),
        .headers = {{"Content-Type", type}},
        .header_count = 1,
        .body = body,
        .timeout_ms = TELEGRAM_CALL_MS_MAX,
    };
}

/* The body of a call, being written. */
static void call_begin(struct json_doc *call)
{
    json_doc_open(call, TELEGRAM_CALL_BYTES_MAX);
    json_object(&call->w);
}

/* False: it does not fit. */
static bool call_post(struct json_doc *call, const struct channel_home *home, struct errand *errand,
                      const char *method, struct channel_request *ret_request)
{
    json_object_end(&call->w);
    if (call->buf.full) return false;
    post(home, errand, method, STR("application/json"), json_doc_copy(call, errand->arena),
         ret_request);
    return true;
}

/* ---- answers ---- */

struct answer {
    const struct json *result; /* NULL: it was refused, or cannot be read */
    bool refused;              /* by Telegram: {"ok":false} */
    str words;                 /* Telegram's, of a refusal */
    uint64_t retry_after_s;
};

static struct answer answer_read(struct arena *arena, const struct channel_reply *reply)
{
    struct json *json = NULL;
    struct answer answer = {.words = STR_EMPTY};
    if (json_parse(arena, reply->body, &json, NULL)) return answer;
    const struct json *ok = json_get(json, STR("ok"));
    const struct json *parameters = json_get(json, STR("parameters"));
    if (!reply->e && reply->status / 100 == 2 && ok && ok->type == JSON_TRUE)
        answer.result = json_get(json, STR("result"));
    answer.refused = ok && ok->type == JSON_FALSE;
    answer.words = json_text(json_get(json, STR("description")));
    if (json_u64(json_get(parameters, STR("retry_after")), &answer.retry_after_s))
        answer.retry_after_s = 0;
    return answer;
}

/* The end of an errand, with a line for the operator: our words, and theirs without the token. */
static bool telegram_end(const struct channel_home *home, struct errand *errand,
                         enum errand_verdict verdict, const char *ours, str theirs)
{
    AUTO(buf_done) struct buf line;
    buf_init(&line, CHANNEL_TEXT_BYTES_MAX);
    buf_append(&line, str_c(ours));
    if (theirs.len && theirs.len <= CHANNEL_TEXT_BYTES_MAX / 2 && utf8_valid(theirs))
        buf_append(&line, STR(": "));
    else
        theirs = STR_EMPTY;
    for (ptrdiff_t at; home->token.len && (at = str_find(theirs, home->token)) >= 0;
         theirs = str_drop(theirs, (size_t)at + home->token.len)) {
        buf_append(&line, (str){theirs.p, (size_t)at});
        buf_append(&line, STR("***"));
    }
    buf_append(&line, theirs);
    str told = ui_line(errand->arena, buf_str(&line), sizeof errand->detail);
    return errand_end(errand, verdict, "%.*s", STR_ARG(told));
}

/* status, what it means; 5xx are below. `said`: only if Telegram says it, for something between us
 * may answer so too. */
static const struct {
    int status;
    bool said;
    enum errand_verdict verdict;
    msec wait_ms;
    const char *words;
} refusals[] = {
    {401, true, VERDICT_LOGIN, 0, "the token is wrong"},
    {403, false, VERDICT_REFUSED, 0, "Telegram does not let us write there"},
    {404, true, VERDICT_LOGIN, 0, "the token is wrong"},
    {409, false, VERDICT_AGAIN, TELEGRAM_CONFLICT_MS, "another program polls this bot"},
    {413, false, VERDICT_REFUSED, 0, "too large for Telegram"},
    {429, false, VERDICT_AGAIN, 0, "too many requests"},
};

static bool has_word(str text, str word)
{
    return str_find(text, word) >= 0;
}

/* Ends the errand for anything but an answer with a result. */
static bool telegram_fail(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, const struct answer *answer)
{
    if (reply->e && reply->status < 400) {
        bool seen = reply->sent;
        return telegram_end(home, errand, seen ? VERDICT_UNKNOWN : VERDICT_AGAIN,
                            seen ? "the connection to Telegram broke"
                                 : "Telegram cannot be reached",
                            str_c(reply->reason));
    }
    uint64_t wait_s = answer->retry_after_s;
    if (wait_s > TELEGRAM_WAIT_S_MAX) wait_s = TELEGRAM_WAIT_S_MAX;
    errand->wait_ms = (msec)wait_s * 1000;
    if (reply->status == 409 && has_word(answer->words, STR("ebhook"))) {
        errand->wait_ms = TELEGRAM_CONFLICT_MS;
        return telegram_end(
            home, errand, VERDICT_AGAIN,
            "a webhook is set for this bot, so it cannot be polled; call deleteWebhook", STR_EMPTY);
    }
    for (size_t i = 0; i < COUNT(refusals); i++) {
        if (refusals[i].status != reply->status) continue;
        if (refusals[i].said && !answer->refused) { /* a proxy, or another server than Telegram's */
            str line = arena_printf(errand->arena,
                                    "not Telegram's answer: HTTP %d; is a proxy between, or is "
                                    "base_url wrong?",
                                    reply->status);
            return telegram_end(home, errand, VERDICT_AGAIN, line.p, STR_EMPTY);
        }
        if (!errand->wait_ms) errand->wait_ms = refusals[i].wait_ms;
        return telegram_end(home, errand, refusals[i].verdict, refusals[i].words, answer->words);
    }
    if (reply->status / 100 == 2)
        return telegram_end(home, errand, VERDICT_UNKNOWN, "Telegram's answer cannot be read",
                            STR_EMPTY);
    bool refused = reply->status / 100 == 4;
    const char *what = refused ? "Telegram refused it" : "Telegram is in trouble";
    str ours = arena_printf(errand->arena, "%s (HTTP %d)", what, reply->status);
    return telegram_end(home, errand, refused ? VERDICT_REFUSED : VERDICT_AGAIN,
                        arena_cstr(errand->arena, ours), answer->words);
}

/* The same for what may be done twice. */
static bool fail_harmless(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, const struct answer *answer)
{
    (void)telegram_fail(home, errand, reply, answer);
    if (errand->verdict == VERDICT_UNKNOWN) errand->verdict = VERDICT_AGAIN;
    return false;
}

/* ---- poll ---- */

enum { POLL_ASK, POLL_MANY, POLL_ONE }; /* what was asked for */

static bool ask(const struct channel_home *home, struct errand *errand, int step,
                struct channel_request *ret_request)
{
    AUTO(json_doc_done) struct json_doc call;
    bool one = step == POLL_ONE;
    errand->step = step;
    call_begin(&call);
    if (telegram_id_valid(errand->cursor)) json_member_raw(&call.w, STR("offset"), errand->cursor);
    json_member_u64(&call.w, STR("limit"), one ? 1 : TELEGRAM_UPDATES_MAX);
    json_member_u64(&call.w, STR("timeout"), one ? 0 : TELEGRAM_POLL_S);
    json_member_raw(&call.w, STR("allowed_updates"), STR("[\"message\",\"callback_query\"]"));
    bool fits = call_post(&call, home, errand, "getUpdates", ret_request);
    assert(fits);
    (void)fits;
    ret_request->timeout_ms = TELEGRAM_CALL_MS_MAX + (one ? 0 : TELEGRAM_POLL_S * 1000);
    return true;
}

/* Behind the one update that this begins with, though the rest of it cannot be read. */
static str behind(struct arena *arena, str body)
{
    static const str head = STR("{\"ok\":true,\"result\":[{\"update_id\":");
    str rest = str_drop(body, head.len);
    size_t digits = 0;
    uint64_t id;
    while (digits < rest.len && rest.p[digits] >= '0' && rest.p[digits] <= '9') digits++;
    if (!str_starts(body, head) || digits == rest.len) return STR_EMPTY;
    if (!telegram_id_valid((str){rest.p, digits}) || str_to_u64((str){rest.p, digits}, &id))
        return STR_EMPTY;
    return arena_printf(arena, "%llu", (unsigned long long)id + 1);
}

static bool telegram_poll(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, struct channel_request *ret_request)
{
    if (!reply) return ask(home, errand, POLL_MANY, ret_request);
    struct answer answer = answer_read(errand->arena, reply);
    if (!telegram_updates(errand->arena, answer.result, &errand->inbounds, &errand->inbound_count,
                          &errand->new_cursor))
        return errand_done(errand);

    bool unreadable = reply->status / 100 == 2 && (!reply->e || reply->e == ERR_TOO_LARGE);
    if (unreadable && errand->step == POLL_MANY) return ask(home, errand, POLL_ONE, ret_request);
    if (unreadable) errand->new_cursor = behind(errand->arena, reply->body);
    if (errand->new_cursor.len)
        return telegram_end(home, errand, VERDICT_DONE,
                            "an update could not be read and is left out", errand->new_cursor);
    (void)fail_harmless(home, errand, reply, &answer);
    if (errand->verdict == VERDICT_REFUSED) errand->verdict = VERDICT_AGAIN;
    return false;
}

/* ---- send ---- */

static void put_chat(struct json_doc *call, str chat, str topic)
{
    json_member_raw(&call->w, STR("chat_id"), chat);
    if (telegram_id_valid(topic)) json_member_raw(&call->w, STR("message_thread_id"), topic);
}

/* One button in a row; all of them, or none if one cannot be: the text has the choices too. */
static void put_keyboard(struct json_doc *call, struct arena *arena, str buttons)
{
    struct json *list = NULL;
    if (!buttons.len || json_parse(arena, buttons, &list, NULL)) return;
    if (list->type != JSON_ARRAY || !list->count || list->count > TELEGRAM_BUTTONS_MAX) return;
    for (const struct json *button = list->child; button; button = button->next) {
        str data = json_text(json_get(button, STR("data")));
        if (!data.len || data.len > TELEGRAM_BUTTON_BYTES_MAX) return;
        if (!ui_trim(json_text(json_get(button, STR("label")))).len) return;
    }
    json_key(&call->w, STR("reply_markup"));
    json_object(&call->w);
    json_key(&call->w, STR("inline_keyboard"));
    json_array(&call->w);
    for (const struct json *button = list->child; button; button = button->next) {
        json_array(&call->w);
        json_object(&call->w);
        json_member(&call->w, STR("text"), json_text(json_get(button, STR("label"))));
        json_member(&call->w, STR("callback_data"), json_text(json_get(button, STR("data"))));
        json_object_end(&call->w);
        json_array_end(&call->w);
    }
    json_array_end(&call->w);
    json_object_end(&call->w);
}

/* Plain text. Telegram fetches no page that it names: such a page may be where something is
 * approved. */
static bool send_text(const struct channel_home *home, struct errand *errand,
                      struct channel_request *ret_request)
{
    const struct outbound *message = errand->message;
    AUTO(json_doc_done) struct json_doc call;
    call_begin(&call);
    put_chat(&call, message->to, message->reply_token);
    json_member(&call.w, STR("text"), message->text);
    json_member_raw(&call.w, STR("link_preview_options"), STR("{\"is_disabled\":true}"));
    if (!message->group) put_keyboard(&call, errand->arena, message->buttons);
    if (call_post(&call, home, errand, "sendMessage", ret_request)) return true;
    return telegram_end(home, errand, VERDICT_REFUSED, "the text is too long for Telegram",
                        STR_EMPTY);
}

static str type_of(str mime)
{
    for (size_t i = 0; i < mime.len; i++)
        if (mime.p[i] <= ' ' || mime.p[i] >= 0x7f) mime.len = 0;
    return mime.len ? mime : STR("application/octet-stream");
}

static void put_field(struct buf *out, const char *boundary, const char *name, str value)
{
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", boundary, name);
    buf_append(out, value);
    buf_append(out, STR("\r\n"));
}

/* A form with the file in it, as one piece. */
static bool send_file(const struct channel_home *home, struct errand *errand, bool photo,
                      struct channel_request *ret_request)
{
    const struct outbound *message = errand->message;
    struct arena *arena = errand->arena;
    char boundary[2 * sizeof errand->random + 1];
    AUTO(buf_done) struct buf head;
    crypto_hex((str){(const char *)errand->random, sizeof errand->random}, boundary);
    buf_init(&head, TELEGRAM_CALL_BYTES_MAX);
    put_field(&head, boundary, "chat_id", message->to);
    if (telegram_id_valid(message->reply_token))
        put_field(&head, boundary, "message_thread_id", message->reply_token);
    buf_printf(&head, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"", boundary,
               photo ? "photo" : "document");
    str name = message->file_name.len ? message->file_name : STR("file");
    for (size_t i = 0; i < name.len; i++) { /* ready for a quoted string in a head */
        unsigned char c = (unsigned char)name.p[i];
        bool plain = c >= ' ' && c != 0x7f && c != '"' && c != '\\' && c != '/';
        buf_char(&head, plain ? name.p[i] : '_');
    }
    buf_append(&head, STR("\"\r\nContent-Type: "));
    buf_append(&head, type_of(message->file_mime));
    buf_append(&head, STR("\r\n\r\n"));
    if (head.full || message->file_bytes.len > CHANNEL_FILE_BYTES_MAX)
        return telegram_end(home, errand, VERDICT_REFUSED, "the file is too large", STR_EMPTY);

    str tail = arena_printf(arena, "\r\n--%s--\r\n", boundary), file = message->file_bytes;
    char *body = arena_alloc(arena, head.len + file.len + tail.len);
    memcpy(body, head.p, head.len);
    if (file.len) memcpy(body + head.len, file.p, file.len);
    memcpy(body + head.len + file.len, tail.p, tail.len);
    post(home, errand, photo ? "sendPhoto" : "sendDocument",
         arena_printf(arena, "multipart/form-data; boundary=%s", boundary),
         (str){body, head.len + file.len + tail.len}, ret_request);
    ret_request->timeout_ms = TELEGRAM_FILE_MS_MAX;
    return true;
}

enum { SEND_BEGIN, SEND_TEXT, SEND_PHOTO, SEND_DOCUMENT }; /* what is under way */

static bool telegram_send(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct outbound *message = errand->message;
    if (!reply) {
        if (!telegram_id_valid(message->to))
            return telegram_end(home, errand, VERDICT_REFUSED, "this is no chat of Telegram",
                                STR_EMPTY);
        str mime = message->file_mime;
        bool photo = str_eq(mime, STR("image/png")) || str_eq(mime, STR("image/jpeg")) ||
                     str_eq(mime, STR("image/webp"));
        errand->step = message->text.len ? SEND_TEXT : photo ? SEND_PHOTO : SEND_DOCUMENT;
        return message->text.len ? send_text(home, errand, ret_request)
                                 : send_file(home, errand, photo, ret_request);
    }
    struct answer answer = answer_read(errand->arena, reply);
    if (answer.result) {
        const struct json *id = json_get(answer.result, STR("message_id"));
        if (id && telegram_id_valid(id->text)) errand->server_id = id->text;
        return errand_done(errand);
    }
    if (errand->step == SEND_PHOTO && reply->status == 400) { /* too long, too flat, no picture */
        errand->step = SEND_DOCUMENT;
        return send_file(home, errand, false, ret_request);
    }
    return telegram_fail(home, errand, reply, &answer);
}

/* ---- mark ---- */

static bool answer_press(const struct channel_home *home, struct errand *errand,
                         struct channel_request *ret_request)
{
    const struct receipt *receipt = errand->receipt;
    AUTO(json_doc_done) struct json_doc call;
    str say = ui_line(errand->arena, receipt->say, TELEGRAM_TOAST_CHARS_MAX);
    call_begin(&call);
    json_member(&call.w, STR("callback_query_id"), receipt->callback_id);
    if (say.len) json_member(&call.w, STR("text"), say);
    return call_post(&call, home, errand, "answerCallbackQuery", ret_request);
}

/* Without a keyboard; and with another text if there is one that fits. */
static bool edit(const struct channel_home *home, struct errand *errand,
                 struct channel_request *ret_request)
{
    const struct receipt *receipt = errand->receipt;
    str text = receipt->text;
    bool fits = text.len && utf8_utf16_units(text) <= TELEGRAM_TEXT_UNITS_MAX;
    AUTO(json_doc_done) struct json_doc call;
    call_begin(&call);
    json_member_raw(&call.w, STR("chat_id"), receipt->to);
    json_member_raw(&call.w, STR("message_id"), receipt->server_id);
    if (fits) {
        json_member(&call.w, STR("text"), text);
        json_member_raw(&call.w, STR("link_preview_options"), STR("{\"is_disabled\":true}"));
    }
    json_member_raw(&call.w, STR("reply_markup"), STR("{\"inline_keyboard\":[]}"));
    return call_post(&call, home, errand, fits ? "editMessageText" : "editMessageReplyMarkup",
                     ret_request);
}

enum { MARK_BEGIN, MARK_PRESS, MARK_EDIT }; /* what is under way */

static bool telegram_mark(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct receipt *receipt = errand->receipt;
    struct answer answer = {0};
    if (reply) answer = answer_read(errand->arena, reply);
    if (errand->step == MARK_BEGIN) {
        errand->step = MARK_PRESS;
        if (receipt->callback_id.len && answer_press(home, errand, ret_request)) return true;
    }
    if (errand->step == MARK_PRESS) {
        errand->step = MARK_EDIT;
        /* 400: they pressed too long ago to be told. */
        if (!reply || answer.result || reply->status == 400)
            errand_done(errand);
        else
            (void)fail_harmless(home, errand, reply, &answer);
        if (errand->verdict == VERDICT_LOGIN) return false;
        bool known = telegram_id_valid(receipt->to) && telegram_id_valid(receipt->server_id);
        return known && edit(home, errand, ret_request);
    }
    if (answer.result || has_word(answer.words, STR("message is not modified")))
        return errand_done(errand);
    return fail_harmless(home, errand, reply, &answer);
}

/* ---- typing ---- */

/* The sign ends by itself after five seconds, or when a message comes. */
static bool telegram_typing(const struct channel_home *home, struct errand *errand,
                            const struct channel_reply *reply, struct channel_request *ret_request)
{
    if (reply) {
        struct answer answer = answer_read(errand->arena, reply);
        return answer.result ? errand_done(errand) : fail_harmless(home, errand, reply, &answer);
    }
    AUTO(json_doc_done) struct json_doc call;
    call_begin(&call);
    if (errand->stop || !telegram_id_valid(errand->peer)) return errand_done(errand);
    put_chat(&call, errand->peer, errand->reply_token);
    json_member(&call.w, STR("action"), STR("typing"));
    return call_post(&call, home, errand, "sendChatAction", ret_request);
}

/* ---- fetch ---- */

/* Below the folder of the bot: no empty part, none of dots alone. */
static bool path_valid(str path)
{
    str rest = path;
    if (!path.len || path.len > TELEGRAM_PATH_BYTES_MAX) return false;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.p[i] <= ' ' || path.p[i] == 0x7f || path.p[i] == '\\') return false;
    while (rest.p) {
        str part = str_split(&rest, '/');
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR(".."))) return false;
    }
    return true;
}

static bool ask_file(const struct channel_home *home, struct errand *errand,
                     struct channel_request *ret_request)
{
    struct json *ref = NULL;
    AUTO(json_doc_done) struct json_doc call;
    call_begin(&call);
    if (json_parse(errand->arena, errand->file->ref, &ref, NULL)) ref = NULL;
    str id = json_text(json_get(ref, STR("fileId")));
    if (id.len) {
        json_member(&call.w, STR("file_id"), id);
        if (call_post(&call, home, errand, "getFile", ret_request)) return true;
    }
    return telegram_end(home, errand, VERDICT_REFUSED, "the file has no id of Telegram", STR_EMPTY);
}

static bool get_file(const struct channel_home *home, struct errand *errand,
                     const struct channel_reply *reply, struct channel_request *ret_request)
{
    struct answer answer = answer_read(errand->arena, reply);
    uint64_t size = 0;
    if (!answer.result) return fail_harmless(home, errand, reply, &answer);
    str path = json_text(json_get(answer.result, STR("file_path")));
    if (!path_valid(path))
        return telegram_end(home, errand, VERDICT_REFUSED, "Telegram names no path for the file",
                            STR_EMPTY);
    if (!json_u64(json_get(answer.result, STR("file_size")), &size) &&
        size > CHANNEL_FILE_BYTES_MAX)
        return telegram_end(home, errand, VERDICT_REFUSED, "the file is too large", STR_EMPTY);
    *ret_request =
        (struct channel_request){.method = "GET",
                                 .url = url_of(home, errand->arena, STR("/file/bot"), path),
                                 .timeout_ms = TELEGRAM_FILE_MS_MAX,
                                 .bytes_max = CHANNEL_FILE_BYTES_MAX};
    return true;
}

static bool got_file(const struct channel_home *home, struct errand *errand,
                     const struct channel_reply *reply)
{
    if (!reply->e && reply->status == 200) {
        errand->bytes = reply->body;
        return errand_done(errand);
    }
    if (reply->e == ERR_TOO_LARGE || reply->status == 404)
        return telegram_end(home, errand, VERDICT_REFUSED,
                            reply->e ? "the file is too large" : "Telegram has the file no more",
                            STR_EMPTY);
    struct answer answer = answer_read(errand->arena, reply);
    return fail_harmless(home, errand, reply, &answer);
}

static bool telegram_fetch(const struct channel_home *home, struct errand *errand,
                           const struct channel_reply *reply, struct channel_request *ret_request)
{
    switch (errand->step++) {
    case 0:
        return ask_file(home, errand, ret_request);
    case 1:
        return get_file(home, errand, reply, ret_request);
    default:
        return got_file(home, errand, reply);
    }
}

const struct channel_ops channel_telegram = {
    .traits = {.kind = "telegram",
               .chars_max = 3000,
               .bytes_max = 6288,
               .buttons_max = TELEGRAM_BUTTONS_MAX,
               .button_bytes_max = TELEGRAM_BUTTON_BYTES_MAX,
               .polls = true,
               .typing = true,
               .topics = true,
               .files = true},
    .poll = telegram_poll,
    .send = telegram_send,
    .mark = telegram_mark,
    .typing = telegram_typing,
    .fetch = telegram_fetch,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of Telegram as messages that came in:
 *
 *     {"update_id":7,"message":{"message_id":3,"chat":{"id":42,"type":"private"},"text":"hi",...}}
 *     {"update_id":8,"callback_query":{"id":"99","message":{"message_id":4,...},"data":"c:...",...}}
 *
 * Invariants:
 * 1. The sender is the chat: whoever it is in a chat of two, and all of them together in a group.
 * 2. In a chat of two the writer, or who presses, is the chat's own person; anything else is dropped.
 * 3. Bots, channels, edits and messages without words or files are nothing for us.
 * 4. Ids stay the text that they came as; what has one that is too long is dropped.
 *
 * To take one more kind of file: a row in medias[].
 */
#include "chat/platform/telegram_update.h"

#include "base/limits.h"
#include "ui/text.h"

enum { NAME_CHARS_MAX = 64, FILE_NAME_CHARS_MAX = 120, MIME_BYTES_MAX = 100 };

/* ---- values ---- */

bool telegram_id_valid(str id)
{
    uint64_t value;
    bool minus = str_starts(id, STR("-"));
    if (str_to_u64(str_drop(id, minus), &value)) return false;
    return value && value <= (uint64_t)INT64_MAX && id.p[minus] != '0';
}

static str number(const struct json *object, str key)
{
    const struct json *value = json_get(object, key);
    if (!value || value->type != JSON_NUMBER || !telegram_id_valid(value->text)) return STR_EMPTY;
    return value->text;
}

static str text_of(const struct json *object, str key)
{
    return json_text(json_get(object, key));
}

static uint64_t size_of(const struct json *object, str key)
{
    uint64_t value = 0;
    return json_u64(json_get(object, key), &value) ? 0 : value;
}

static bool is_true(const struct json *object, str key)
{
    const struct json *value = json_get(object, key);
    return value && value->type == JSON_TRUE;
}

/* ---- files ---- */

/* member of a message, type and name if it tells none */
static const struct media {
    str member, mime, name;
} medias[] = {
    {STR("document"), STR(""), STR("file")},
    {STR("voice"), STR("audio/ogg"), STR("voice.ogg")},
    {STR("audio"), STR(""), STR("audio")},
    {STR("video"), STR("video/mp4"), STR("video.mp4")},
    {STR("video_note"), STR("video/mp4"), STR("video.mp4")},
};
static const struct media photo_media = {STR("photo"), STR("image/jpeg"), STR("photo.jpg")};

static str mime_of(str mime)
{
    if (mime.len > MIME_BYTES_MAX) return STR_EMPTY;
    for (size_t i = 0; i < mime.len; i++)
        if (mime.p[i] <= ' ' || mime.p[i] >= 0x7f) return STR_EMPTY;
    return mime;
}

static void add_file(struct arena *arena, struct inbound *inbound, const struct json *file,
                     const struct media *media)
{
    str id = text_of(file, STR("file_id"));
    str name = ui_line(arena, text_of(file, STR("file_name")), FILE_NAME_CHARS_MAX);
    str mime = mime_of(text_of(file, STR("mime_type")));
    if (!id.len || id.len > CHANNEL_ID_BYTES_MAX) return;
    if (inbound->file_count == CHANNEL_INBOUND_FILES_MAX) return;
    AUTO(json_doc_done) struct json_doc ref;
    json_doc_open(&ref, CHANNEL_JSON_BYTES_MAX);
    json_object(&ref.w);
    json_member(&ref.w, STR("fileId"), id);
    json_object_end(&ref.w);
    inbound->files[inbound->file_count++] =
        (struct inbound_file){.name = name.len ? name : media->name,
                              .mime = mime.len ? mime : media->mime,
                              .ref = json_doc_copy(&ref, arena),
                              .size = size_of(file, STR("file_size"))};
}

/* A photo comes in several sizes. */
static const struct json *largest(const struct json *sizes)
{
    const struct json *best = NULL;
    uint64_t most = 0;
    if (!sizes || sizes->type != JSON_ARRAY) return NULL;
    for (const struct json *size = sizes->child; size; size = size->next) {
        uint64_t width = size_of(size, STR("width")) & 0xffffffff;
        uint64_t height = size_of(size, STR("height")) & 0xffffffff;
        if (best && width * height < most) continue;
        best = size;
        most = width * height;
    }
    return best;
}

/* ---- who ---- */

static str name_of(struct arena *arena, const struct json *user)
{
    str first = text_of(user, STR("first_name")), last = text_of(user, STR("last_name"));
    AUTO(buf_done) struct buf name;
    if (!first.len && !last.len) first = text_of(user, STR("username"));
    buf_init(&name, CHANNEL_TEXT_BYTES_MAX);
    buf_append(&name, first);
    buf_char(&name, ' ');
    buf_append(&name, last);
    return ui_line(arena, buf_str(&name), NAME_CHARS_MAX);
}

/* Sender, name and group of a message in `chat` by `from`; false: nothing for us. */
static bool who(struct arena *arena, const struct json *chat, const struct json *from,
                struct inbound *inbound)
{
    str type = text_of(chat, STR("type"));
    str chat_id = number(chat, STR("id")), from_id = number(from, STR("id"));
    bool alone = str_eq(type, STR("private"));
    if (!chat_id.len || !from_id.len || is_true(from, STR("is_bot"))) return false;
    if (!alone && !str_eq(type, STR("group")) && !str_eq(type, STR("supergroup"))) return false;
    if (alone && !str_eq(chat_id, from_id)) return false;
    inbound->sender = chat_id;
    inbound->group = !alone;
    inbound->name =
        alone ? name_of(arena, from) : ui_line(arena, text_of(chat, STR("title")), NAME_CHARS_MAX);
    return true;
}

/* ---- what ---- */

/* "/start", "/start@our_bot", or with something behind it from a link. */
static bool is_start(str text)
{
    str rest = str_drop(text, 6);
    if (!str_starts(text, STR("/start"))) return false;
    return !rest.len || rest.p[0] == '@' || (unsigned char)rest.p[0] <= ' ';
}

/* Empty: the main one, or there are none. */
static str topic_of(const struct json *message)
{
    return is_true(message, STR("is_topic_message")) ? number(message, STR("message_thread_id"))
                                                     : STR_EMPTY;
}

static bool read_message(struct arena *arena, const struct json *message, struct inbound *inbound)
{
    uint64_t date = size_of(message, STR("date"));
    if (!who(arena, json_get(message, STR("chat")), json_get(message, STR("from")), inbound))
        return false;
    str text = text_of(message, STR("text"));
    if (!text.len) text = text_of(message, STR("caption"));
    if (!text.len) text = text_of(json_get(message, STR("sticker")), STR("emoji"));
    inbound->text = ui_trim(text);
    inbound->follow = is_start(inbound->text);
    if (inbound->follow) inbound->text = STR_EMPTY;
    inbound->quoted = number(json_get(message, STR("reply_to_message")), STR("message_id"));
    inbound->reply_token = topic_of(message);
    inbound->at = date < INT64_MAX / 1000 ? (msec)date * 1000 : 0;
    const struct json *photo = largest(json_get(message, photo_media.member));
    inbound->files = arena_array(arena, CHANNEL_INBOUND_FILES_MAX, sizeof *inbound->files);
    if (photo) add_file(arena, inbound, photo, &photo_media);
    for (size_t i = 0; i < COUNT(medias); i++)
        add_file(arena, inbound, json_get(message, medias[i].member), &medias[i]);
    return inbound->text.len || inbound->file_count || inbound->follow;
}

/* What the button says: it stands in the message that was pressed. */
static str label_of(struct arena *arena, const struct json *message, str data)
{
    const struct json *markup = json_get(message, STR("reply_markup"));
    const struct json *keyboard = json_get(markup, STR("inline_keyboard"));
    if (!keyboard || keyboard->type != JSON_ARRAY) return STR_EMPTY;
    for (const struct json *row = keyboard->child; row; row = row->next)
        for (const struct json *key = row->type == JSON_ARRAY ? row->child : NULL; key;
             key = key->next)
            if (str_eq(text_of(key, STR("callback_data")), data))
                return ui_line(arena, text_of(key, STR("text")), FILE_NAME_CHARS_MAX);
    return STR_EMPTY;
}

static bool read_press(struct arena *arena, const struct json *press, struct inbound *inbound)
{
    const struct json *message = json_get(press, STR("message"));
    if (!who(arena, json_get(message, STR("chat")), json_get(press, STR("from")), inbound))
        return false;
    inbound->button = text_of(press, STR("data"));
    inbound->callback_id = text_of(press, STR("id"));
    inbound->pressed = number(message, STR("message_id"));
    inbound->reply_token = topic_of(message);
    inbound->label = label_of(arena, message, inbound->button);
    return inbound->button.len && inbound->button.len <= CHANNEL_ID_BYTES_MAX &&
           inbound->callback_id.len && inbound->callback_id.len <= CHANNEL_ID_BYTES_MAX;
}

enum err telegram_updates(struct arena *arena, const struct json *result, struct inbound **ret_list,
                          size_t *ret_count, str *ret_cursor)
{
    if (!result || result->type != JSON_ARRAY) return ERR_BAD_REQUEST;
    size_t seen = 0, count = 0;
    uint64_t next = 0;
    struct inbound *list =
        arena_array(arena,
                    result->count < CHANNEL_INBOUNDS_MAX ? result->count : CHANNEL_INBOUNDS_MAX,
                    sizeof *list);
    for (const struct json *update = result->child; update && seen < CHANNEL_INBOUNDS_MAX;
         update = update->next, seen++) {
        str id = number(update, STR("update_id"));
        uint64_t value;
        struct inbound inbound = {.id = id};
        if (str_to_u64(id, &value)) return ERR_BAD_REQUEST;
        if (value >= next) next = value + 1;
        const struct json *message = json_get(update, STR("message")),
                          *press = json_get(update, STR("callback_query"));
        bool ours = message ? read_message(arena, message, &inbound)
                            : press && read_press(arena, press, &inbound);
        if (ours) list[count++] = inbound;
    }
    *ret_list = list;
    *ret_count = count;
    *ret_cursor = next ? arena_printf(arena, "%llu", (unsigned long long)next) : STR_EMPTY;
    return OK;
}

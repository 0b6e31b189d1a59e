/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind "webhook": a program of the operator's as a chat platform, which may be the bridge to
 * any other, by signed JSON both ways; pure. Both directions are JSON, signed with one secret
 * (net/webhook_sign.h), the time with them.
 *
 *     in   {"id","sender","name"?,"text"?,"group"?,"quoted"?,"button"?,
 *           "files"?:[{"name","mimeType","data"}]}                        ─► 202 {"accepted":true}
 *     out  {"id","to","class","text"?,"buttons"?,"interactionId"?,
 *           "file"?:{"name","mimeType","data"}}                           ─► 2xx {"id"?}
 *
 * `data` is base64. An id names a message, also when it comes again: both sides take it once. So
 * whatever has no answer is sent again. Ids that come in are their sender's: another sender may use
 * the same one for another message.
 *
 * The bytes of a file that comes in stay with its message ({"data"} is its ref): to fetch it asks
 * nobody.
 *
 * To add a member: a row in members[] and a field of struct inbound; or a line in write_message.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "chat/platform/platform_errand.h"
#include "net/problem.h"
#include "net/webhook_sign.h"
#include "ui/text.h"

/* ---- who calls ---- */

static enum err check_signature(const struct channel_home *home, const struct hook_call *call,
                                struct fault *reterr)
{
    uint64_t seconds;
    char expected[WEBHOOK_SIGNATURE_BYTES];
    if (!home->secret.len) /* everybody could sign with that */
        return fault(reterr, ERR_UNAUTHENTICATED, "this channel has no secret");
    if (!call->timestamp.len || !call->signature.len)
        return fault(reterr, ERR_UNAUTHENTICATED,
                     "Fermata-Timestamp and Fermata-Signature are needed");
    if (str_to_u64(call->timestamp, &seconds) || seconds > INT64_MAX / 1000)
        return fault(reterr, ERR_UNAUTHENTICATED, "Fermata-Timestamp must be seconds since 1970");
    webhook_sign(home->secret, (int64_t)seconds, call->body, expected);
    if (!str_eq_secret(str_c(expected), call->signature))
        return fault(reterr, ERR_UNAUTHENTICATED, "Fermata-Signature is wrong");
    int64_t age = call->now / 1000 - (int64_t)seconds;
    if (age > HOOK_CLOCK_S_MAX || age < -HOOK_CLOCK_S_MAX)
        return fault(reterr, ERR_UNAUTHENTICATED,
                     "Fermata-Timestamp is more than 5 minutes from our clock");
    return OK;
}

/* ---- what it says ---- */

enum member_type { MEMBER_ID, MEMBER_TEXT, MEMBER_FLAG, MEMBER_FILES };

#define FIELD(member) offsetof(struct inbound, member)
static const struct member {
    const char *key;
    enum member_type type;
    size_t offset, bytes_max;
    bool needed;
} members[] = {
    {"id", MEMBER_ID, FIELD(id), CHANNEL_ID_BYTES_MAX, true},
    {"sender", MEMBER_ID, FIELD(sender), CHANNEL_ID_BYTES_MAX, true},
    {"name", MEMBER_TEXT, FIELD(name), CHANNEL_ID_BYTES_MAX, false},
    {"text", MEMBER_TEXT, FIELD(text), CHANNEL_TEXT_BYTES_MAX, false},
    {"group", MEMBER_FLAG, FIELD(group), 0, false},
    {"quoted", MEMBER_ID, FIELD(quoted), CHANNEL_ID_BYTES_MAX, false},
    {"button", MEMBER_ID, FIELD(button), CHANNEL_ID_BYTES_MAX, false},
    {"files", MEMBER_FILES, 0, 0, false},
};
#undef FIELD

static bool is_id(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f) return false;
    return text.len > 0;
}

static enum err read_string(const struct json *value, const char *field, size_t bytes_max, bool id,
                            str *ret_text, struct fault *reterr)
{
    if (value->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, field, "%s must be a string", field);
    if (value->text.len > bytes_max)
        return fault_field(reterr, ERR_INVALID_FIELD, field, "%s is longer than %zu bytes", field,
                           bytes_max);
    if (id && !is_id(value->text))
        return fault_field(reterr, ERR_INVALID_FIELD, field,
                           "%s must not be empty, and without control characters", field);
    *ret_text = value->text;
    return OK;
}

/* Every member of `object` is one of these. */
static enum err known_only(struct arena *arena, const struct json *object, const char *where,
                           const char *const *names, size_t count, struct fault *reterr)
{
    for (const struct json *member = object->child; member; member = member->next) {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++) known = str_eq(member->key, str_c(names[i]));
        if (known) continue;
        const char *name = arena_cstr(arena, ui_line(arena, member->key, 40));
        char field[sizeof reterr->field];
        snprintf(field, sizeof field, "%s%s", where, name);
        return fault_field(reterr, ERR_INVALID_FIELD, field, "there is no member %s", field);
    }
    return OK;
}

/* base64 into a ref that holds it as it came. */
static enum err read_data(struct arena *arena, const struct json *data, const char *field,
                          struct inbound_file *file, struct fault *reterr)
{
    size_t len = 0;
    str text = json_text(data);
    unsigned char *bytes = arena_alloc(arena, text.len + 1);
    if (!data || data->type != JSON_STRING || crypto_base64_parse(text, bytes, &len) || !len)
        return fault_field(reterr, ERR_INVALID_FIELD, field, "%s must be base64, and not empty",
                           field);
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, text.len + 64);
    json_object(&doc.w);
    json_member(&doc.w, STR("data"), text);
    json_object_end(&doc.w);
    file->ref = json_doc_copy(&doc, arena);
    file->size = len;
    return OK;
}

static enum err read_file(struct arena *arena, const struct json *value, size_t at,
                          struct inbound_file *file, struct fault *reterr)
{
    static const char *const names[] = {"name", "mimeType", "data"};
    char where[32], field[64];
    snprintf(where, sizeof where, "files[%zu]", at);
    if (value->type != JSON_OBJECT)
        return fault_field(reterr, ERR_INVALID_FIELD, where, "%s must be an object", where);
    snprintf(where, sizeof where, "files[%zu].", at);
    enum err e = known_only(arena, value, where, names, COUNT(names), reterr);
    str *const texts[] = {&file->name, &file->mime};
    for (size_t i = 0; i < COUNT(texts) && !e; i++) {
        const struct json *text = json_get(value, str_c(names[i]));
        snprintf(field, sizeof field, "%s%s", where, names[i]);
        if (text) e = read_string(text, field, CHANNEL_ID_BYTES_MAX, true, texts[i], reterr);
    }
    snprintf(field, sizeof field, "%sdata", where);
    return e ? e : read_data(arena, json_get(value, STR("data")), field, file, reterr);
}

static enum err read_files(struct arena *arena, const struct json *value, struct inbound *in,
                           struct fault *reterr)
{
    if (value->type != JSON_ARRAY || value->count > CHANNEL_INBOUND_FILES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "files", "files must be a list of at most %d",
                           CHANNEL_INBOUND_FILES_MAX);
    in->files = arena_array(arena, value->count + 1, sizeof *in->files);
    for (const struct json *file = value->child; file; file = file->next) {
        enum err e = read_file(arena, file, in->file_count, &in->files[in->file_count], reterr);
        if (e) return e;
        in->file_count++;
    }
    return OK;
}

static enum err read_member(struct arena *arena, const struct member *member,
                            const struct json *value, struct inbound *in, struct fault *reterr)
{
    void *to = (char *)in + member->offset;
    switch (member->type) {
    case MEMBER_ID:
    case MEMBER_TEXT:
        return read_string(value, member->key, member->bytes_max, member->type == MEMBER_ID, to,
                           reterr);
    case MEMBER_FLAG:
        if (value->type != JSON_TRUE && value->type != JSON_FALSE)
            return fault_field(reterr, ERR_INVALID_FIELD, member->key, "%s must be true or false",
                               member->key);
        *(bool *)to = value->type == JSON_TRUE;
        return OK;
    case MEMBER_FILES:
        break;
    }
    return read_files(arena, value, in, reterr);
}

/* The id of the sender and theirs, told apart by a length; a hash of that where it is too long. */
static str id_of(struct arena *arena, const struct inbound *in)
{
    str id =
        arena_printf(arena, "%zu:%.*s:%.*s", in->sender.len, STR_ARG(in->sender), STR_ARG(in->id));
    if (id.len <= CHANNEL_ID_BYTES_MAX) return id;
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    crypto_sha256(id, hash);
    crypto_hex((str){(char *)hash, sizeof hash}, hex);
    return arena_printf(arena, "hash:%s", hex);
}

static enum err message_read(struct arena *arena, str body, struct inbound *in,
                             struct fault *reterr)
{
    struct json *object = NULL;
    struct json_error where;
    const char *names[COUNT(members)];
    if (body.len > CHANNEL_HOOK_BYTES_MAX)
        return fault(reterr, ERR_TOO_LARGE, "a message has at most %d bytes",
                     CHANNEL_HOOK_BYTES_MAX);
    if (json_parse_sent(arena, body, &object, &where))
        return fault(reterr, ERR_BAD_REQUEST, "not JSON, byte %zu: %s", where.offset, where.reason);
    if (object->type != JSON_OBJECT)
        return fault(reterr, ERR_BAD_REQUEST, "the message must be an object");
    for (size_t i = 0; i < COUNT(members); i++) names[i] = members[i].key;
    enum err e = known_only(arena, object, "", names, COUNT(names), reterr);
    for (size_t i = 0; i < COUNT(members) && !e; i++) {
        const struct json *value = json_get(object, str_c(members[i].key));
        if (value)
            e = read_member(arena, &members[i], value, in, reterr);
        else if (members[i].needed)
            e = fault_field(reterr, ERR_INVALID_FIELD, members[i].key, "%s is missing",
                            members[i].key);
    }
    if (e) return e;
    in->id = id_of(arena, in);
    in->text = ui_trim(in->text);
    if (!in->text.len && !in->button.len && !in->file_count)
        return fault_field(reterr, ERR_INVALID_FIELD, "text",
                           "the message says nothing: text, button and files are missing");
    if (!inbound_json(arena, in).len)
        return fault_field(reterr, ERR_TOO_LARGE, "files", "the message is too large to be kept");
    return OK;
}

static void hook(const struct channel_home *home, struct arena *arena, const struct hook_call *call,
                 struct hook_answer *ret_answer)
{
    struct inbound *in = ARENA_NEW(arena, struct inbound);
    struct fault why = {0};
    enum err e = call->get ? fault(&why, ERR_METHOD_NOT_ALLOWED, "messages are sent with POST")
                           : check_signature(home, call, &why);
    if (!e) e = message_read(arena, call->body, in, &why);
    if (e) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 8 * sizeof why);
        problem_write(&out, e, &why);
        *ret_answer = (struct hook_answer){
            .status = err_status(e), .type = PROBLEM_TYPE, .body = arena_str(arena, buf_str(&out))};
        str said = utf8_valid(str_c(why.text)) ? str_c(why.text) : STR("unreadable");
        str line = ui_line(arena, said, sizeof ret_answer->detail / 4);
        snprintf(ret_answer->detail, sizeof ret_answer->detail, "%.*s", STR_ARG(line));
        return;
    }
    *ret_answer = (struct hook_answer){.status = 202,
                                       .type = "application/json",
                                       .body = STR("{\"accepted\":true}"),
                                       .inbounds = in,
                                       .inbound_count = 1};
}

/* ---- a message ---- */

static str write_message(struct arena *arena, const struct outbound *message)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, CHANNEL_HOOK_BYTES_MAX + 8 * message->text.len + message->buttons.len +
                            BASE64_BYTES(message->file_bytes.len));
    json_object(&doc.w);
    json_member(&doc.w, STR("id"), message->client_id);
    json_member(&doc.w, STR("to"), message->to);
    json_member(&doc.w, STR("class"), str_c(out_class_name(message->class)));
    if (message->text.len) json_member(&doc.w, STR("text"), message->text);
    if (message->buttons.len) json_member_raw(&doc.w, STR("buttons"), message->buttons);
    if (message->interaction.len) json_member(&doc.w, STR("interactionId"), message->interaction);
    if (message->file_bytes.len) {
        char *data = arena_alloc(arena, BASE64_BYTES(message->file_bytes.len));
        crypto_base64(message->file_bytes, data);
        json_key(&doc.w, STR("file"));
        json_object(&doc.w);
        json_member(&doc.w, STR("name"), message->file_name);
        json_member(&doc.w, STR("mimeType"), message->file_mime);
        json_member(&doc.w, STR("data"), str_c(data));
        json_object_end(&doc.w);
    }
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* Statuses that say never to this message: to what it is, not to where it went or who sent it. Everything
 * else can be mended over there. */
static const int never[] = {400, 410, 413, 415, 422};

static bool webhook_send(const struct channel_home *home, struct errand *errand,
                         const struct channel_reply *reply, struct channel_request *ret_request)
{
    if (!reply) {
        char signature[WEBHOOK_SIGNATURE_BYTES];
        int64_t seconds = errand->now / 1000;
        str body = write_message(errand->arena, errand->message);
        webhook_sign(home->secret, seconds, body, signature);
        *ret_request = (struct channel_request){
            .method = "POST",
            .url = home->url,
            .headers = {{"Content-Type", STR("application/json")},
                        {"Fermata-Timestamp", arena_printf(errand->arena, "%" PRId64, seconds)},
                        {"Fermata-Signature", arena_str(errand->arena, str_c(signature))}},
            .header_count = 3,
            .body = body,
            .timeout_ms = HOOK_SEND_MS_MAX,
            .bytes_max = WEBHOOK_ANSWER_BYTES_MAX,
        };
        return true;
    }
    int status = reply->status;
    struct json *answer = NULL;
    bool taken = status >= 200 && status < 300, refused = false;
    if (taken && (!reply->e || reply->e == ERR_TOO_LARGE)) {
        errand->verdict = VERDICT_DONE;
        if (reply->e || json_parse(errand->arena, reply->body, &answer, NULL)) return false;
        str id = json_text(json_get(answer, STR("id")));
        if (is_id(id) && id.len <= CHANNEL_ID_BYTES_MAX) errand->server_id = id;
        return false;
    }
    for (size_t i = 0; i < COUNT(never) && !reply->e; i++) refused = refused || never[i] == status;
    errand->verdict = refused ? VERDICT_REFUSED : VERDICT_AGAIN;
    if (reply->e)
        snprintf(errand->detail, sizeof errand->detail, "%s",
                 reply->reason ? reply->reason : err_title(reply->e));
    else
        snprintf(errand->detail, sizeof errand->detail, "HTTP status %d", status);
    return false;
}

/* ---- a file that came in ---- */

static bool webhook_fetch(const struct channel_home *home, struct errand *errand,
                          const struct channel_reply *reply, struct channel_request *ret_request)
{
    struct json *ref = NULL;
    size_t len = 0;
    (void)home, (void)reply, (void)ret_request;
    if (json_parse(errand->arena, errand->file->ref, &ref, NULL)) ref = NULL;
    str text = json_text(json_get(ref, STR("data")));
    unsigned char *bytes = arena_alloc(errand->arena, text.len + 1);
    if (!text.len || crypto_base64_parse(text, bytes, &len))
        return errand_end(errand, VERDICT_REFUSED, "the file's bytes are not with its message");
    errand->bytes = (str){(const char *)bytes, len};
    return errand_done(errand);
}

/* ---- the kind ---- */

const struct channel_ops channel_webhook = {
    .traits = {.kind = "webhook",
               .chars_max = 4000,
               .bytes_max = 16 * 1024,
               .buttons_max = 20,
               .button_bytes_max = 200,
               .files = true,
               .dedups = true},
    .send = webhook_send,
    .fetch = webhook_fetch,
    .hook = hook,
};

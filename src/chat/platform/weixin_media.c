/* SPDX-License-Identifier: Apache-2.0
 *
 * Files to and from WeChat's iLink through its CDN, encrypted: each with AES-128-ECB under a key of
 * its own. The address is all that a CDN asks for, so it is as good as a password and stays out of
 * logs.
 *
 *   out   getuploadurl ─► POST ciphertext to the CDN ─► its header x-encrypted-param ─► sendmessage
 *   in    an item of a message ─► ref {"url"?,"param"?,"key"?,"plain"?} ─► GET ─► decrypt
 *
 * A key is written in three ways (hex; base64 of the bytes; base64 of the hex); a ref has it in hex.
 * `plain`: an image without a key, which is not encrypted.
 *
 * To take one more kind of item: a row in kinds[].
 */
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "chat/platform/weixin_int.h"
#include "chat/platform_request.h"

#define CDN_URL "https://novac2c.cdn" WEIXIN_HOSTS "/c2c"

enum {
    SLOT_MS = 15 * 1000,
    TRANSFER_MS = 120 * 1000,
    ATTEMPTS_MAX = 3, /* attempts of one errand */
};

/* ---- what came in ---- */

enum { KIND_IMAGE = 2, KIND_VOICE = 3, KIND_FILE = 4, KIND_VIDEO = 5 };

static const struct {
    int type;
    const char *payload, *name, *mime; /* name: if the platform says none */
} kinds[] = {
    {KIND_IMAGE, "image_item", "image", ""},
    {KIND_VOICE, "voice_item", "voice", ""},
    {KIND_FILE, "file_item", "file", ""},
    {KIND_VIDEO, "video_item", "video.mp4", "video/mp4"},
};

/* By encode_type; "" if it is none of these. */
static const struct {
    const char *name, *mime;
} voices[] = {
    [5] = {"voice.amr", "audio/amr"},
    [6] = {"voice.silk", "audio/silk"},
    [7] = {"voice.mp3", "audio/mpeg"},
    [8] = {"voice.spx", "audio/ogg"},
};

/* 32 hex digits of any case. */
static bool hex_key(str text, char out[static WEIXIN_KEY_HEX_BYTES])
{
    unsigned char key[AES128_KEY_BYTES];
    if (text.len != 2 * sizeof key) return false;
    for (size_t i = 0; i < text.len; i++) out[i] = char_lower(text.p[i]);
    out[text.len] = '\0';
    return crypto_unhex((str){out, text.len}, key, sizeof key);
}

static bool read_key(const struct json *payload, char out[static WEIXIN_KEY_HEX_BYTES])
{
    unsigned char bytes[64];
    size_t len = 0;
    str text = json_text(json_get(json_get(payload, STR("media")), STR("aes_key")));
    if (hex_key(json_text(json_get(payload, STR("aeskey"))), out)) return true;
    if (text.len > sizeof bytes || crypto_base64_parse(text, bytes, &len)) return false;
    str decoded = {(char *)bytes, len};
    if (len != AES128_KEY_BYTES) return hex_key(decoded, out);
    crypto_hex(decoded, out);
    return true;
}

static void ref_member(struct json_writer *w, str key, str text)
{
    if (text.len && text.len <= WEIXIN_URL_BYTES_MAX) json_member(w, key, text);
}

static str write_ref(struct arena *arena, const struct json *payload, bool image)
{
    const struct json *media = json_get(payload, STR("media"));
    struct json_doc ref;
    char key[WEIXIN_KEY_HEX_BYTES];
    weixin_body_begin(&ref);
    ref_member(&ref.w, STR("url"), json_text(json_get(media, STR("full_url"))));
    ref_member(&ref.w, STR("param"), json_text(json_get(media, STR("encrypt_query_param"))));
    if (read_key(payload, key))
        json_member(&ref.w, STR("key"), str_c(key));
    else if (image && !json_text(json_get(media, STR("aes_key"))).len)
        json_member_bool(&ref.w, STR("plain"), true);
    return weixin_body_end(&ref, arena, NULL);
}

bool weixin_file_read(struct arena *arena, const struct json *item, struct inbound_file *ret_file)
{
    int64_t type = 0, encoding = 0;
    size_t kind = 0;
    if (json_i64(json_get(item, STR("type")), &type)) return false;
    while (kind < COUNT(kinds) && kinds[kind].type != type) kind++;
    if (kind == COUNT(kinds)) return false;
    const struct json *payload = json_get(item, str_c(kinds[kind].payload));
    if (!json_get(payload, STR("media"))) return false;
    str name = json_text(json_get(payload, STR("file_name")));
    struct inbound_file file = {.name = name.len ? name : str_c(kinds[kind].name),
                                .mime = str_c(kinds[kind].mime),
                                .ref = write_ref(arena, payload, type == KIND_IMAGE)};
    if (str_to_u64(json_text(json_get(payload, STR("len"))), &file.size)) file.size = 0;
    if (type == KIND_VOICE && !json_i64(json_get(payload, STR("encode_type")), &encoding) &&
        encoding >= 0 && (size_t)encoding < COUNT(voices) && voices[encoding].name) {
        file.name = str_c(voices[encoding].name);
        file.mime = str_c(voices[encoding].mime);
    }
    *ret_file = file;
    return true;
}

/* ---- the CDN ---- */

/* The address it gave us if it is one of its own, else one made of the parameter; empty if there is
 * neither. */
static str cdn_url(const struct channel_home *home, struct arena *arena, str full, const char *path,
                   str param)
{
    if (full.len && full.len <= WEIXIN_URL_BYTES_MAX && weixin_is_visible(full) &&
        platform_request_may(home->base_url, full, WEIXIN_HOSTS))
        return full;
    if (!param.len || param.len > WEIXIN_URL_BYTES_MAX) return STR_EMPTY;
    str cdn = STR(CDN_URL), escaped = url_escape(arena, param, "");
    if (weixin_is_here(home)) cdn = arena_printf(arena, "%.*s/c2c", STR_ARG(home->base_url));
    return arena_printf(arena, "%.*s/%s?encrypted_query_param=%.*s", STR_ARG(cdn), path,
                        STR_ARG(escaped));
}

/* ---- fetching ---- */

static bool decrypt(struct errand *errand, const struct json *ref, str body)
{
    unsigned char key[AES128_KEY_BYTES];
    size_t len = 0;
    if (json_get(ref, STR("plain"))) {
        errand->bytes = arena_str(errand->arena, body);
        return errand_done(errand);
    }
    if (!crypto_unhex(json_text(json_get(ref, STR("key"))), key, sizeof key))
        return errand_end(errand, VERDICT_REFUSED, "the file came without its key");
    unsigned char *plain = arena_alloc(errand->arena, body.len + 1);
    if (crypto_aes_ecb_decrypt(key, body, plain, &len))
        return errand_end(errand, VERDICT_REFUSED, "the file does not fit its key");
    errand->bytes = (str){(char *)plain, len};
    return errand_done(errand);
}

bool weixin_fetch(const struct channel_home *home, struct errand *errand,
                  const struct channel_reply *reply, struct channel_request *ret_request)
{
    const struct json *ref = weixin_json(errand->arena, errand->file->ref);
    if (!reply) {
        str url = cdn_url(home, errand->arena, json_text(json_get(ref, STR("url"))), "download",
                          json_text(json_get(ref, STR("param"))));
        if (!url.len)
            return errand_end(errand, VERDICT_REFUSED, "the file came without an address");
        *ret_request = (struct channel_request){.method = "GET",
                                                .url = url,
                                                .timeout_ms = TRANSFER_MS,
                                                .bytes_max = AES_ECB_BYTES(CHANNEL_FILE_BYTES_MAX),
                                                .only_host = WEIXIN_HOSTS};
        return true;
    }
    if (reply->e == ERR_TOO_LARGE)
        return errand_end(errand, VERDICT_REFUSED, "the file is too large");
    if (reply->e)
        return errand_end(errand, VERDICT_AGAIN, "the file did not come: %s",
                          reply->reason && reply->reason[0] ? reply->reason : err_title(reply->e));
    if (reply->status == 200) return decrypt(errand, ref, reply->body);
    bool again = reply->status >= 500 || reply->status == 408 || reply->status == 429;
    return errand_end(errand, again ? VERDICT_AGAIN : VERDICT_REFUSED,
                      "the file did not come: HTTP %d", reply->status);
}

/* ---- sending ---- */

enum { STEP_SLOT = WEIXIN_SEND_OWN, STEP_UPLOAD }; /* which answer we wait for */

struct parcel {
    bool image;
    char key[WEIXIN_KEY_HEX_BYTES], name[WEIXIN_KEY_HEX_BYTES]; /* name: of the upload */
    str sealed, url;
    int uploads;
};

static struct parcel *seal(struct errand *errand)
{
    const struct outbound *message = errand->message;
    str random = {(char *)errand->random, sizeof errand->random}, data = message->file_bytes;
    unsigned char key[HASH_BYTES], name[HASH_BYTES];
    struct parcel *parcel = ARENA_NEW(errand->arena, struct parcel);
    size_t len = AES_ECB_BYTES(data.len);
    unsigned char *sealed = arena_alloc(errand->arena, len);
    crypto_subkey(random, STR("weixin file key"), key);
    crypto_subkey(random, STR("weixin file name"), name);
    crypto_aes_ecb_encrypt(key, data, sealed);
    crypto_hex((str){(char *)key, AES128_KEY_BYTES}, parcel->key);
    crypto_hex((str){(char *)name, AES128_KEY_BYTES}, parcel->name);
    /* What phones show as a picture; the rest are files. */
    static const str shown[] = {STR("image/jpeg"), STR("image/png"), STR("image/gif")};
    for (size_t i = 0; i < COUNT(shown); i++)
        parcel->image = parcel->image || str_eq_nocase(message->file_mime, shown[i]);
    parcel->sealed = (str){(char *)sealed, len};
    return parcel;
}

static bool ask_slot(const struct channel_home *home, struct errand *errand,
                     struct channel_request *ret_request)
{
    const struct outbound *message = errand->message;
    if (message->file_bytes.len > CHANNEL_FILE_BYTES_MAX)
        return errand_end(errand, VERDICT_REFUSED, "the file is too large");
    struct parcel *parcel = errand->own = seal(errand);
    unsigned char md5[MD5_BYTES];
    char md5_hex[2 * MD5_BYTES + 1];
    struct json_doc body;
    struct json_writer *w = &body.w;
    crypto_md5(message->file_bytes, md5);
    crypto_hex((str){(char *)md5, sizeof md5}, md5_hex);
    weixin_body_begin(&body);
    json_member(w, STR("filekey"), str_c(parcel->name));
    json_member_u64(w, STR("media_type"), parcel->image ? 1 : 3);
    json_member(w, STR("to_user_id"), message->to);
    json_member_u64(w, STR("rawsize"), message->file_bytes.len);
    json_member(w, STR("rawfilemd5"), str_c(md5_hex));
    json_member_u64(w, STR("filesize"), parcel->sealed.len);
    json_member(w, STR("aeskey"), str_c(parcel->key));
    json_member_bool(w, STR("no_need_thumb"), true);
    errand->step = STEP_SLOT;
    return weixin_post(home, errand, "getuploadurl", weixin_body_end(&body, errand->arena, home),
                       SLOT_MS, ret_request);
}

static bool upload(struct errand *errand, struct channel_request *ret_request)
{
    struct parcel *parcel = errand->own;
    *ret_request = (struct channel_request){.method = "POST",
                                            .url = parcel->url,
                                            .body = parcel->sealed,
                                            .timeout_ms = TRANSFER_MS,
                                            .want = "x-encrypted-param",
                                            .only_host = WEIXIN_HOSTS};
    ret_request->headers[ret_request->header_count++] =
        (struct channel_header){"Content-Type", STR("application/octet-stream")};
    parcel->uploads++;
    errand->step = STEP_UPLOAD;
    return true;
}

static bool on_slot(const struct channel_home *home, struct errand *errand,
                    const struct channel_reply *reply, struct channel_request *ret_request)
{
    struct parcel *parcel = errand->own;
    const struct json *root = NULL;
    if (!weixin_answer(home, errand, reply, WEIXIN_PREPARES, &root)) return false;
    str full = json_text(json_get(root, STR("upload_full_url")));
    str param = json_text(json_get(root, STR("upload_param")));
    str url = cdn_url(home, errand->arena, full, "upload", param);
    if (!url.len)
        return errand_end(errand, VERDICT_AGAIN, "WeChat gives no address to upload a file to");
    parcel->url = url.p == full.p
                      ? url
                      : arena_printf(errand->arena, "%.*s&filekey=%s", STR_ARG(url), parcel->name);
    return upload(errand, ret_request);
}

/* The item of a file that lies on the CDN as `param`. */
static str file_item(struct errand *errand, str param)
{
    const struct parcel *parcel = errand->own;
    const struct outbound *message = errand->message;
    char key[BASE64_BYTES(WEIXIN_KEY_HEX_BYTES)];
    struct json_doc item;
    struct json_writer *w = &item.w;
    crypto_base64(str_c(parcel->key), key);
    weixin_body_begin(&item);
    json_member_u64(w, STR("type"), parcel->image ? KIND_IMAGE : KIND_FILE);
    json_key(w, parcel->image ? STR("image_item") : STR("file_item"));
    json_object(w);
    json_key(w, STR("media"));
    json_object(w);
    json_member(w, STR("encrypt_query_param"), param);
    json_member(w, STR("aes_key"), str_c(key));
    json_member_u64(w, STR("encrypt_type"), 1);
    json_object_end(w);
    if (parcel->image) {
        json_member_u64(w, STR("mid_size"), parcel->sealed.len);
    } else {
        json_member(w, STR("file_name"), message->file_name.len ? message->file_name : STR("file"));
        json_member(w, STR("len"), arena_printf(errand->arena, "%zu", message->file_bytes.len));
    }
    json_object_end(w);
    return weixin_body_end(&item, errand->arena, NULL);
}

static bool on_upload(const struct channel_home *home, struct errand *errand,
                      const struct channel_reply *reply, struct channel_request *ret_request)
{
    struct parcel *parcel = errand->own;
    str param = reply->wanted;
    bool good = !reply->e && reply->status == 200 && param.len &&
                param.len <= WEIXIN_URL_BYTES_MAX && weixin_is_visible(param);
    if (good) return weixin_say(home, errand, file_item(errand, param), ret_request);
    if (!reply->e && reply->status >= 400 && reply->status < 500)
        return errand_end(errand, VERDICT_REFUSED, "WeChat refuses the file: HTTP %d",
                          reply->status);
    if (parcel->uploads < ATTEMPTS_MAX) return upload(errand, ret_request);
    if (reply->e)
        return errand_end(errand, VERDICT_AGAIN, "the file could not be uploaded: %s",
                          reply->reason && reply->reason[0] ? reply->reason : err_title(reply->e));
    return errand_end(errand, VERDICT_AGAIN, "the file could not be uploaded: HTTP %d",
                      reply->status);
}

bool weixin_send_file(const struct channel_home *home, struct errand *errand,
                      const struct channel_reply *reply, struct channel_request *ret_request)
{
    switch (errand->step) {
    case WEIXIN_SEND_BEGIN:
        return ask_slot(home, errand, ret_request);
    case STEP_SLOT:
        return on_slot(home, errand, reply, ret_request);
    default:
        return on_upload(home, errand, reply, ret_request);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Signed addresses of files, and the JSON of files. The signature covers the id and the text of
 * `exp` as it stands in the address, so that no other way of writing the same time passes. It has
 * the key id of the installation's secret in front, as every signature of ours does; another key
 * than ours is like a wrong signature.
 *
 * An address made within the same ATTACHMENT_URL_STEP_MS ends at the same time, so it is the same
 * address: it lives between (ATTACHMENT_URL_MS_MAX - that) and ATTACHMENT_URL_MS_MAX.
 */
#include "thread/file_url.h"

#include "base/clock.h"
#include "base/limits.h"

#define ATTACHMENT_PATH "/api/v1/agent/attachments/"

enum { EXP_BYTES_MAX = 11 }; /* until the year 5138 */

/* What is signed. A purpose in front, so that other addresses can be signed one day. */
static str signed_text(struct arena *arena, str id, str exp)
{
    return arena_printf(arena, "attachment\n%.*s\n%.*s", STR_ARG(id), STR_ARG(exp));
}

struct attachment_url attachment_url_make(struct arena *arena, const struct secret *secret,
                                          str prefix, str id, msec now)
{
    msec expires = now / ATTACHMENT_URL_STEP_MS * ATTACHMENT_URL_STEP_MS + ATTACHMENT_URL_MS_MAX;
    str exp = arena_printf(arena, "%lld", (long long)(expires / 1000));
    char mac[SECRET_MAC_BYTES];
    secret_mac(secret, SECRET_URL, signed_text(arena, id, exp), mac);
    str text = arena_printf(arena, "%.*s" ATTACHMENT_PATH "%.*s?exp=%.*s&sig=%s", STR_ARG(prefix),
                            STR_ARG(id), STR_ARG(exp), mac);
    return (struct attachment_url){.text = text, .expires = expires};
}

enum err attachment_url_check(const struct secret *secret, str id, str exp, str sig, msec now,
                              struct fault *reterr)
{
    struct arena arena;
    uint64_t seconds = 0;
    bool sane = exp.len <= EXP_BYTES_MAX && !str_to_u64(exp, &seconds);
    arena_init(&arena);
    bool ours = sane && secret_verify(secret, SECRET_URL, signed_text(&arena, id, exp), sig);
    arena_done(&arena);
    if (!ours)
        return fault(reterr, ERR_FORBIDDEN,
                     "the signature of this address is wrong; ask for a new address");
    if ((msec)seconds * 1000 <= now)
        return fault(reterr, ERR_FORBIDDEN, "this address has expired; ask for a new one");
    return OK;
}

static void put_number(struct json_writer *w, str key, uint64_t value)
{
    json_member_u64(w, key, value);
}

void attachment_write(struct json_writer *w, const struct attachment *attachment,
                      const struct attachment_url *url)
{
    char expires[RFC3339_BYTES];
    clock_rfc3339(url->expires, expires);
    json_object(w);
    json_member(w, STR("id"), attachment->id);
    json_member(w, STR("url"), url->text);
    json_member(w, STR("mimeType"), attachment->mime);
    json_member(w, STR("filename"), attachment->filename);
    put_number(w, STR("size"), attachment->bytes);
    json_member(w, STR("sha256"), attachment->sha256);
    json_member(w, STR("expiresAt"), str_c(expires));
    if (attachment->width && attachment->height) {
        put_number(w, STR("width"), attachment->width);
        put_number(w, STR("height"), attachment->height);
    }
    json_object_end(w);
}

str attachment_json(struct arena *arena, const struct attachment *attachment,
                    const struct attachment_url *url)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, ATTACHMENT_JSON_BYTES_MAX);
    attachment_write(&doc.w, attachment, url);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The small decoders of what clients send: escapes, query parameters, cookies, base64url. Nothing
 * is written behind the room given, and what is decoded can be encoded again: to an escaped form
 * that means the same, or to the very same text of base64url.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAME_BYTES_MAX = 16, VALUE_BYTES_MAX = 32, ESCAPED_BYTES_MAX = 16 * 1024 * 1024 };

/* A block of exactly this size, so that a sanitizer sees a write behind it. */
static void *room(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p) abort();
    return p;
}

static void freep(void *p)
{
    free(*(void **)p);
}

static bool inside(str part, str whole)
{
    return part.len == 0 || (part.p >= whole.p && part.p + part.len <= whole.p + whole.len);
}

static void escape(str s, struct buf *out)
{
    for (size_t i = 0; i < s.len; i++) buf_printf(out, "%%%02x", (unsigned char)s.p[i]);
}

static void check_decode(str text, bool plus)
{
    AUTO(freep) char *out = room(text.len);
    size_t len;
    if (http1_decode(text, plus, out, &len)) return;
    str decoded = {out, len};
    if (len > text.len || memchr(out, '\0', len)) abort();

    AUTO(buf_done) struct buf escaped;
    buf_init(&escaped, ESCAPED_BYTES_MAX);
    escape(decoded, &escaped);
    AUTO(freep) char *again = room(escaped.len);
    size_t again_len;
    if (http1_decode(buf_str(&escaped), plus, again, &again_len)) abort();
    if (!str_eq(decoded, (str){again, again_len})) abort();
}

/* A parameter that was found is found again when it stands alone, escaped. */
static void check_query(str query, str name)
{
    AUTO(freep) char *out = room(VALUE_BYTES_MAX);
    str value;
    if (http1_query(query, name, out, VALUE_BYTES_MAX, &value) || !value.p) return;
    if (value.p != out || value.len > VALUE_BYTES_MAX || memchr(name.p, '\0', name.len)) abort();

    AUTO(buf_done) struct buf escaped;
    buf_init(&escaped, ESCAPED_BYTES_MAX);
    escape(name, &escaped);
    buf_char(&escaped, '=');
    escape(value, &escaped);
    char again[VALUE_BYTES_MAX];
    str found;
    if (http1_query(buf_str(&escaped), name, again, sizeof again, &found)) abort();
    if (!found.p || !str_eq(found, value)) abort();
}

static void check_cookie(str cookies, str name)
{
    str value = http1_cookie(cookies, name);
    if (!inside(value, cookies) || str_find_char(value, ';') >= 0) abort();
}

static void check_base64url(str text)
{
    AUTO(freep) unsigned char *out = room(text.len * 3 / 4);
    size_t len;
    if (crypto_base64url_parse(text, out, &len)) return;
    if (len != text.len * 3 / 4) abort();

    AUTO(freep) char *again = room(BASE64URL_BYTES(len));
    crypto_base64url((str){(const char *)out, len}, again);
    if (!str_eq(str_c(again), text)) abort();
}

/* The first byte is the length of a name, which stands behind it; the rest is the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    size_t name_len = data[0] % NAME_BYTES_MAX;
    str text = {(const char *)data + 1, size - 1};
    if (name_len > text.len) return 0;
    str name = {text.p, name_len};
    text = str_drop(text, name_len);

    check_decode(text, false);
    check_decode(text, true);
    check_query(text, name);
    check_cookie(text, name);
    check_base64url(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The type of a file by its content, by libmagic. libmagic looks at bytes in memory only: it never
 * opens the file, never unpacks, and never starts anything. Each job opens a cookie of its own,
 * because a cookie belongs to one thread; the database behind it is mapped, not read, and is let go
 * of again, so that an idle server does not carry it.
 *
 * Invariants:
 * 1. A type that leaves here is two tokens and a slash, whatever libmagic says.
 * 2. What a browser might run is served as bytes: the list below is of what is known to be harmful,
 *    and everything is sent with nosniff and a sandbox besides, so that a type missing in it is still
 *    only downloaded.
 *
 * To show one more kind inside the page: a row in `shown`, after asking whether it can hold a script.
 */
#include "thread/file_mime.h"

#include <magic.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN "application/octet-stream"

/* ELF files have tables that libmagic would walk for details nobody asks for. */
enum { MIME_FLAGS = MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF };

static bool is_token(char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return true;
    return c && strchr("!#$&-^_.+", c);
}

static bool valid(str type)
{
    int slashes = 0;
    if (type.len < 3 || type.len >= MIME_BYTES) return false;
    if (type.p[0] == '/' || type.p[type.len - 1] == '/') return false;
    for (size_t i = 0; i < type.len; i++) {
        if (type.p[i] == '/')
            slashes++;
        else if (!is_token(type.p[i]))
            return false;
    }
    return slashes == 1;
}

static void cookie_closep(struct magic_set **cookie)
{
    if (*cookie) magic_close(*cookie);
}

enum err mime_of(str bytes, char ret_type[static MIME_BYTES], struct fault *reterr)
{
    AUTO(cookie_closep) struct magic_set *cookie = magic_open(MIME_FLAGS);
    if (!cookie) return fault(reterr, ERR_IO, "libmagic cannot be opened");
    if (magic_load(cookie, NULL))
        return fault(reterr, ERR_IO, "libmagic has no database: %s", magic_error(cookie));
    str type = str_c(magic_buffer(cookie, bytes.p, bytes.len));
    if (!valid(type)) type = STR(UNKNOWN);
    for (size_t i = 0; i < type.len; i++) ret_type[i] = char_lower(type.p[i]);
    ret_type[type.len] = '\0';
    return OK;
}

/* Parts of names; any of them makes a type one that could be run. */
static const str harmful[] = {
    STR("html"),  STR("xml"),    STR("script"),  STR("svg"),  STR("xsl"),     STR("mathml"),
    STR("xul"),   STR("css"),    STR("flash"),   STR("java"), STR("x-httpd"), STR("x-php"),
    STR("mhtml"), STR("rfc822"), STR("text/x-"), STR("wasm"), STR("vbs"),     STR("calendar"),
};

str mime_served(str type)
{
    if (!valid(type)) return STR(UNKNOWN);
    /* Letters of a stored type are small: mime_of made them so. */
    for (size_t i = 0; i < COUNT(harmful); i++)
        if (str_find(type, harmful[i]) >= 0) return STR(UNKNOWN);
    return type;
}

bool mime_inline(str type)
{
    static const str shown[] = {STR("image/png"), STR("image/jpeg"), STR("image/gif"),
                                STR("image/webp")};
    for (size_t i = 0; i < COUNT(shown); i++)
        if (str_eq(shown[i], type)) return true;
    return false;
}

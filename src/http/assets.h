/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's own files, inside the binary, each as it is and compressed as far as that made it
 * smaller. The build makes the table from build/page/manifest.txt (web/app/build.mjs writes it,
 * scripts/embed.c reads it).
 */
#ifndef HTTP_ASSETS_H
#define HTTP_ASSETS_H

#include "config/config.h"
#include "net/http_server.h"

/* In order of preference. */
enum encoding { ENCODING_BR, ENCODING_GZIP, ENCODING_IDENTITY, ENCODING_COUNT };

struct asset {
    const char *path; /* "/app-1a2b3c4d.js"; "/" for the page itself */
    const char *type;
    bool immutable; /* its name holds its hash */
    struct asset_form {
        const char *etag; /* quoted; of these bytes. NULL: there is no such form */
        const unsigned char *bytes;
        size_t len;
    } forms[ENCODING_COUNT]; /* ENCODING_IDENTITY is always there */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

const struct asset *asset_find(str path); /* NULL if there is none */
bool etag_listed(str list, str etag);     /* does If-None-Match name this content? */

/* What Accept-Encoding (empty: none was sent) likes best of what the file has. Refusing all of it
 * gets the file as it is. */
enum encoding encoding_pick(const struct asset *asset, str accept);

/* The value of Content-Security-Policy; `frames` are the origins that may show the page in a frame. */
str page_policy(struct arena *arena, struct strs frames);

void asset_answer(struct http_request *request, const struct http_head *head,
                  const struct asset *asset, str policy);

#endif

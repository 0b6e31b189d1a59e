/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's own files, inside the binary. The build makes the table from web/ (scripts/embed.c).
 */
#ifndef APP_ASSETS_H
#define APP_ASSETS_H

#include "net/http_server.h"

struct asset {
    const char *path; /* "/style.css"; "/" for the page itself */
    const char *type;
    const char *etag; /* quoted; of the content */
    const unsigned char *bytes;
    size_t len;
};

extern const struct asset asset_table[];
extern const size_t asset_count;

const struct asset *asset_find(str path); /* NULL if there is none */
bool etag_listed(str list, str etag);     /* does If-None-Match name this content? */
void asset_answer(struct http_request *request, const struct asset *asset);

#endif

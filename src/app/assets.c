/* SPDX-License-Identifier: Apache-2.0
 *
 * Serving the page's own files: found by exact path, so no path can lead outside; answered from the
 * binary's own memory; 304 when the browser has the same content already.
 */
#include "app/assets.h"

/* Only our own scripts, styles and connections; nobody may frame the page or take its forms
 * elsewhere. */
#define PAGE_POLICY                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "   \
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " \
    "object-src 'none'; require-trusted-types-for 'script'"

const struct asset *asset_find(str path)
{
    for (size_t i = 0; i < asset_count; i++)
        if (str_eq(str_c(asset_table[i].path), path)) return &asset_table[i];
    return NULL;
}

/* A proxy that compresses makes the tag a weak one (W/). */
bool etag_listed(str list, str etag)
{
    if (str_eq(list, STR("*"))) return true;
    while (list.p) {
        str tag = str_trim(str_split(&list, ','));
        if (str_starts(tag, STR("W/"))) tag = str_drop(tag, 2);
        if (str_eq(tag, etag)) return true;
    }
    return false;
}

void asset_answer(struct http_request *request, const struct asset *asset)
{
    const struct http_field fields[] = {
        {STR("ETag"), str_c(asset->etag)},
        {STR("Cache-Control"), STR("no-cache")},
        {STR("Content-Security-Policy"), STR(PAGE_POLICY)},
        {STR("Cross-Origin-Opener-Policy"), STR("same-origin")},
    };
    bool same = etag_listed(http_head_get(request->head, STR("If-None-Match")), str_c(asset->etag));
    http_answer(request, &(struct http_answer){
                             .status = same ? 304 : 200,
                             .content_type = same ? NULL : asset->type,
                             .fields = fields,
                             .field_count = COUNT(fields),
                             .body = {(const char *)asset->bytes, same ? 0 : asset->len},
                             .body_static = true,
                         });
}

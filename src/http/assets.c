/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's own files, served: found by exact path, so no path can lead outside; answered from the
 * binary's own memory, in the encoding that the browser likes best; 304 when it has those bytes
 * already. A name with a hash in it never changes its content and is never asked for again.
 */
#include "http/assets.h"

/* Only our own scripts, styles and connections, and no markup made from text; nobody may frame the
 * page, and it has no forms. */
#define POLICY_BEFORE                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
#define POLICY_BEHIND "; require-trusted-types-for 'script'; trusted-types 'none'"

static const char *const encoding_names[] = {
    [ENCODING_BR] = "br", [ENCODING_GZIP] = "gzip", [ENCODING_IDENTITY] = "identity"};

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

/* ---- which form of a file ---- */

enum { QUALITY_MAX = 1000, QUALITY_BAD = -1, QUALITY_UNSAID = -2 };

/* "0.25" in thousandths, up to three digits behind the point. */
static int quality_parse(str text)
{
    if (!text.len || text.len > 5 || text.p[0] < '0' || text.p[0] > '1') return QUALITY_BAD;
    if (text.len > 1 && text.p[1] != '.') return QUALITY_BAD;
    int quality = text.p[0] == '1' ? QUALITY_MAX : 0;
    for (size_t i = 2, weight = 100; i < text.len; i++, weight /= 10) {
        if (text.p[i] < '0' || text.p[i] > '9') return QUALITY_BAD;
        quality += (text.p[i] - '0') * (int)weight;
    }
    return quality > QUALITY_MAX ? QUALITY_BAD : quality;
}

/* Of the parameters behind "gzip;". */
static int quality_of(str params)
{
    while (params.p) {
        str param = str_trim(str_split(&params, ';'));
        str name = str_trim(str_split(&param, '='));
        if (str_eq_nocase(name, STR("q"))) return quality_parse(str_trim(param));
    }
    return QUALITY_MAX;
}

/* An item that is malformed counts as not said. */
static void read_accept(str accept, int said[static ENCODING_COUNT], int *ret_others)
{
    for (size_t i = 0; i < ENCODING_COUNT; i++) said[i] = QUALITY_UNSAID;
    *ret_others = QUALITY_UNSAID;
    while (accept.p) {
        str params = str_split(&accept, ','), name = str_trim(str_split(&params, ';'));
        int quality = quality_of(params);
        if (quality == QUALITY_BAD) continue;
        if (str_eq(name, STR("*"))) *ret_others = quality;
        for (size_t i = 0; i < ENCODING_COUNT; i++)
            if (str_eq_nocase(name, str_c(encoding_names[i]))) said[i] = quality;
    }
}

enum encoding encoding_pick(const struct asset *asset, str accept)
{
    int said[ENCODING_COUNT], others;
    read_accept(accept, said, &others);
    enum encoding best = ENCODING_IDENTITY;
    int best_quality = 0;
    for (enum encoding i = 0; i < ENCODING_COUNT; i++) {
        /* What nobody mentions is refused, but for the file as it is: that is the last resort. */
        int unsaid = others != QUALITY_UNSAID ? others : i == ENCODING_IDENTITY;
        int quality = said[i] == QUALITY_UNSAID ? unsaid : said[i];
        if (!asset->forms[i].etag || quality <= best_quality) continue;
        best = i;
        best_quality = quality;
    }
    return best;
}

/* ---- the answer ---- */

str page_policy(struct arena *arena, struct strs frames)
{
    if (!frames.count) return STR(POLICY_BEFORE "'none'" POLICY_BEHIND);
    str list = frames.items[0];
    for (size_t i = 1; i < frames.count; i++)
        list = arena_printf(arena, "%.*s %.*s", STR_ARG(list), STR_ARG(frames.items[i]));
    return arena_printf(arena, POLICY_BEFORE "%.*s" POLICY_BEHIND, STR_ARG(list));
}

void asset_answer(struct http_request *request, const struct http_head *head,
                  const struct asset *asset, str policy)
{
    enum encoding encoding = encoding_pick(asset, http_head_get(head, STR("Accept-Encoding")));
    const struct asset_form *form = &asset->forms[encoding];
    bool same = etag_listed(http_head_get(head, STR("If-None-Match")), str_c(form->etag));
    bool plain = same || encoding == ENCODING_IDENTITY; /* has no Content-Encoding, the last one */
    const struct http_field fields[] = {
        {STR("ETag"), str_c(form->etag)},
        {STR("Cache-Control"),
         asset->immutable ? STR("public, max-age=31536000, immutable") : STR("no-cache")},
        {STR("Vary"), STR("Accept-Encoding")},
        {STR("Content-Security-Policy"), policy},
        {STR("Cross-Origin-Opener-Policy"), STR("same-origin")},
        {STR("Content-Encoding"), str_c(encoding_names[encoding])},
    };
    http_answer(request, &(struct http_answer){
                             .status = same ? 304 : 200,
                             .content_type = same ? NULL : asset->type,
                             .fields = fields,
                             .field_count = COUNT(fields) - plain,
                             .body = {(const char *)form->bytes, same ? 0 : form->len},
                             .body_static = true,
                         });
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /attachments/{id}: a file that goes out, for its owner or for whoever holds a signed address
 * of it, with ranges and safe headers.
 *
 *   signature? ──▶ row, in a read job ──▶ theirs? ──▶ known already? 304
 *                                                        │
 *                                          blob_open ◀───┘ ──▶ the stretch that is wanted
 *
 * The bytes are a stranger's. So nothing but pictures without scripts is shown by a browser itself;
 * the rest is offered to be saved, as bytes if it could be run, in a sandbox that allows nothing, and
 * with nosniff, which is on every answer.
 */
#include "base/limits.h"
#include "base/log.h"
#include "http/assets.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "net/http_range.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/db/private.h"
#include "store/db/store.h"
#include "thread/file_mime.h"
#include "thread/file_name.h"
#include "thread/file_url.h"

struct download {
    struct job job;
    struct transfer transfer;
    struct exchange *x;
    msec now;
    msec until; /* of the signed address; 0: none, the owner asks */
    bool head;
    str range, if_range, if_none_match;
    struct attachment row;
    struct fault why;
    struct blob_job *open;
};

enum { FIELDS_MAX = 6 };

/* What every answer with, or about, the content says. Returns how many. */
static size_t put_fields(const struct download *d, struct http_field fields[static FIELDS_MAX])
{
    struct arena *arena = exchange_arena(d->x);
    str name = d->row.filename.len ? d->row.filename : d->row.id;
    msec left = d->until ? (d->until - d->now) / 1000 : 0;
    size_t count = 0;
    fields[count++] =
        (struct http_field){STR("ETag"), arena_printf(arena, "\"%.*s\"", STR_ARG(d->row.sha256))};
    /* The owner's own address outlives a session: a browser asks again before it shows it. */
    fields[count++] = (struct http_field){
        STR("Cache-Control"),
        d->until ? arena_printf(arena, "private, max-age=%lld, immutable", (long long)left)
                 : STR("private, no-cache")};
    fields[count++] = (struct http_field){STR("Accept-Ranges"), STR("bytes")};
    fields[count++] =
        (struct http_field){STR("Content-Security-Policy"), STR("sandbox; default-src 'none'")};
    fields[count++] =
        (struct http_field){STR("Content-Disposition"),
                            attachment_disposition(arena, mime_inline(d->row.mime), name)};
    return count;
}

/* Range counts for GET only, and with If-Range only while the file is the one that it names. */
static enum range wanted(const struct download *d, uint64_t size, uint64_t *ret_from,
                         uint64_t *ret_len)
{
    str tag = d->if_range;
    bool other = tag.p && !(tag.len == d->row.sha256.len + 2 && tag.p[0] == '"' &&
                            tag.p[tag.len - 1] == '"' &&
                            str_eq((str){tag.p + 1, tag.len - 2}, d->row.sha256));
    if (d->head || other) return RANGE_NONE;
    return http_range(d->range, size, ret_from, ret_len);
}

static void answer_file(const struct download *d, int fd, uint64_t size)
{
    struct arena *arena = exchange_arena(d->x);
    struct http_field fields[FIELDS_MAX];
    size_t count = put_fields(d, fields);
    uint64_t from = 0, len = size;
    bool part = wanted(d, size, &from, &len) == RANGE_PART;
    if (part) {
        str text = arena_printf(arena, "bytes %llu-%llu/%llu", (unsigned long long)from,
                                (unsigned long long)(from + len - 1), (unsigned long long)size);
        fields[count++] = (struct http_field){STR("Content-Range"), text};
    }
    char *type = arena_cstr(arena, mime_served(d->row.mime));
    http_answer_file(d->x->request,
                     &(struct http_answer){.status = part ? 206 : 200,
                                           .content_type = type,
                                           .fields = fields,
                                           .field_count = count},
                     fd, from, len);
}

/* The row is there and its object is not what it says: nothing a reader could do, so it is told as
 * what it is to them, and to the operator in the log. */
static void answer_lost(const struct download *d, enum err e)
{
    struct fault why;
    d->x->server->metrics.attachments_lost++;
    log_error("attachment.lost", LOG_STR("id", d->row.id), LOG_STR("path", d->row.path),
              LOG_CSTR("reason", err_title(e)));
    bool damaged = e == ERR_DAMAGED;
    e = fault(&why, ERR_NOT_FOUND, "the stored file is %s; restore it from a backup",
              damaged ? "damaged" : "gone");
    exchange_error(d->x, e, &why);
}

static void on_opened(void *arg, enum err e, int fd, uint64_t len, const struct fault *reason)
{
    struct download *d = arg;
    uint64_t from, count;
    transfer_remove(&d->x->server->transfers, &d->transfer);
    if (e == ERR_NOT_FOUND || e == ERR_DAMAGED) {
        answer_lost(d, e);
    } else if (e) {
        exchange_error(d->x, e, reason);
    } else if (wanted(d, len, &from, &count) == RANGE_BAD) {
        /* Nothing of what is asked for is there. */
        struct fault why;
        fd_closep(&fd);
        str text = arena_printf(exchange_arena(d->x), "bytes */%llu", (unsigned long long)len);
        struct http_field field = {STR("Content-Range"), text};
        e = fault(&why, ERR_RANGE, "the file has %llu bytes", (unsigned long long)len);
        http_answer_error_with(d->x->request, e, &why, &field, 1);
    } else {
        answer_file(d, fd, len);
    }
}

static void attachments_stop(struct transfer *transfer)
{
    struct download *d = CONTAINER(transfer, struct download, transfer);
    transfer_remove(&d->x->server->transfers, &d->transfer);
    blob_forget(d->open);
    exchange_error(d->x, ERR_SHUTTING_DOWN, NULL);
}

/* A signed address lasts as long as the person whose file it is. */
static enum err find_run(struct job *job, struct db *db)
{
    struct download *d = CONTAINER(job, struct download, job);
    bool gone = false;
    enum err e = attachment_find(db, exchange_arena(d->x), d->x->params[0], &d->row);
    if (!e && d->x->by_signature) e = person_gone(db, d->row.owner, &gone);
    if (gone) e = fault(&d->why, ERR_FORBIDDEN, "whose file this is has no key any more");
    return e;
}

static void find_done(struct job *job, enum err e)
{
    struct download *d = CONTAINER(job, struct download, job);
    struct server *server = d->x->server;
    if (!e && !d->until && !str_eq(d->row.owner, d->x->who.user)) e = ERR_NOT_FOUND;
    if (e) {
        exchange_error(d->x, e, &d->why);
        return;
    }
    str tag = arena_printf(exchange_arena(d->x), "\"%.*s\"", STR_ARG(d->row.sha256));
    if (etag_listed(d->if_none_match, tag)) {
        struct http_field fields[FIELDS_MAX];
        size_t count = put_fields(d, fields);
        http_answer(d->x->request,
                    &(struct http_answer){.status = 304, .fields = fields, .field_count = count});
        return;
    }
    d->transfer.stop = attachments_stop;
    transfer_add(&server->transfers, &d->transfer);
    d->open = blob_open(server->blobs, d->row.bucket, d->row.path, on_opened, d);
}

/* A signed address counts by its signature alone, whoever uses it. */
static enum err check_signature(struct download *d, struct fault *reterr)
{
    enum { VALUE_BYTES = 128 };
    char exp_room[VALUE_BYTES], sig_room[VALUE_BYTES];
    str exp, sig, query = d->x->head->query;
    uint64_t seconds = 0;
    if (http1_query(query, STR("exp"), exp_room, sizeof exp_room, &exp)) exp = STR_EMPTY;
    if (http1_query(query, STR("sig"), sig_room, sizeof sig_room, &sig)) sig = STR_EMPTY;
    enum err e =
        attachment_url_check(d->x->server->secret, d->x->params[0], exp, sig, d->now, reterr);
    if (!e) e = str_to_u64(exp, &seconds);
    if (!e) d->until = (msec)seconds * 1000;
    return e;
}

void handle_attachment_get(struct exchange *x)
{
    struct download *d = ARENA_NEW(exchange_arena(x), struct download);
    struct fault why = {0};
    d->job = (struct job){.run = find_run, .done = find_done};
    d->x = x;
    d->now = clock_wall(&clock_system);
    d->head = x->head->method == HTTP_HEAD;
    d->range = http_head_get(x->head, STR("Range"));
    d->if_range = http_head_get(x->head, STR("If-Range"));
    d->if_none_match = http_head_get(x->head, STR("If-None-Match"));
    enum err e = x->by_signature ? check_signature(d, &why) : OK;
    if (e)
        exchange_error(x, e, &why);
    else
        exchange_read(x, &d->job, READ_PAGE);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /attachments: a file that comes in (form, spool, type, object, row), taken as it comes out
 * of a form with `threadId` and `file`.
 *
 *   body ──▶ multipart ──▶ spool stream ──▶ look ──▶ object ──▶ row ──▶ 201
 *            on_piece      on_spooled       on_seen  on_put     change
 *
 * Pieces go from the socket through the form's parser to the spool, and nowhere else; when the disk
 * lags the client is made to wait. `look` is a work on a pool thread: type and size of a picture from
 * the first bytes of the file. Then the file becomes an object, and the row is committed, together
 * with the answer that an Idempotency-Key remembers.
 *
 * Invariants:
 * 1. An upload lives in its request's arena. Whatever answers calls `leave` first and touches nothing
 *    of it after the answer.
 * 2. At any time at most one of stream, look and put is under way, and `leave` lets go of it.
 * 3. An object without a row is taken away again; if the process dies before that, the sweeper does
 *    it. A spool file without an upload is swept at the next start.
 *
 * To take one more field of the form: a row in `fields`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/say.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "net/loop.h"
#include "net/multipart.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/db/private.h"
#include "thread/file_image_size.h"
#include "thread/file_mime.h"
#include "thread/file_name.h"
#include "thread/file_url.h"
#include "tool/spool.h"

struct look {
    struct loop_work work;
    struct upload *upload; /* NULL: nobody waits for it any more */
    char *path;
    char type[MIME_BYTES];
    struct image_size size; /* 0: no picture, or not known */
    struct fault why;       /* err OK: it worked */
};

struct upload {
    struct change change; /* first: it is a job */
    struct transfer transfer;
    struct exchange *x;
    struct multipart form;
    const struct api_upload_field *field; /* of the part at hand */
    unsigned seen;                        /* a bit for each row of fields */
    char thread_id[ID_CLIENT_BYTES_MAX];
    struct attachment row; /* what is known so far */
    struct spool_stream *stream;
    bool spooled; /* the file is there, under the attachment's id */
    struct look *look;
    struct blob_job *put;
};

/* ---- ends ---- */

/* Let go of everything that is under way. The answer follows. */
static void upload_leave(struct upload *u)
{
    struct server *server = u->x->server;
    if (u->stream) spool_stream_abort(TAKE(u->stream));
    if (u->look) u->look->upload = NULL;
    if (u->put) blob_forget(TAKE(u->put));
    if (u->spooled) spool_remove(server->spool, u->row.id, NULL, NULL);
    multipart_done(&u->form);
    transfer_remove(&server->transfers, &u->transfer);
    pool_give(server, POOL_UPLOADS, u->x->who.user);
}

static void upload_refuse(struct upload *u, enum err e, const struct fault *why)
{
    struct exchange *x = u->x;
    upload_leave(u);
    exchange_error(x, e, why);
}

static void upload_stop(struct transfer *transfer)
{
    upload_refuse(CONTAINER(transfer, struct upload, transfer), ERR_SHUTTING_DOWN, NULL);
}

/* ---- the row ---- */

static enum err apply(struct change *change, struct db *db)
{
    struct upload *u = CONTAINER(change, struct upload, change);
    enum err e = change_quota(change, db, u->row.bytes);
    return e ? e : attachment_add(db, &u->row);
}

static void committed(struct change *change)
{
    upload_leave(CONTAINER(change, struct upload, change));
}

/* No row was made, so the object is nobody's. */
static void undone(struct change *change, enum err e)
{
    struct upload *u = CONTAINER(change, struct upload, change);
    (void)e;
    blob_remove(u->x->server->blobs, u->row.bucket, u->row.path, NULL, NULL);
    upload_leave(u);
}

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct upload *u = arg;
    u->put = NULL;
    if (e) {
        upload_refuse(u, e, reason);
        return;
    }
    /* Two uploads are the same if thread, name and content are. */
    const struct attachment *row = &u->row;
    str same = arena_printf(exchange_arena(u->x), "%.*s\n%.*s\n%.*s", STR_ARG(row->thread_id),
                            STR_ARG(row->sha256), STR_ARG(row->filename));
    u->change.apply = apply;
    u->change.after = committed;
    u->change.undone = undone;
    u->change.status = 201;
    struct server *server = u->x->server;
    struct arena *arena = exchange_arena(u->x);
    struct attachment_url url =
        attachment_url_make(arena, server->secret, server->config->public_url.prefix, row->id,
                            row->created);
    str json = attachment_json(arena, row, &url);
    u->change.body = arena_printf(arena, "{\"attachment\":%.*s}", STR_ARG(json));
    change_same(&u->change, same);
    change_go(&u->change);
}

/* ---- a look at the file, on a pool thread ---- */

static enum err read_start(const char *path, char *room, size_t size, size_t *ret_len,
                           struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    size_t len = 0;
    while (fd >= 0 && len < size) {
        ssize_t count = read(fd, room + len, size - len);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fault(reterr, ERR_IO, "%s cannot be read", path);
        if (count == 0) break;
        len += (size_t)count;
    }
    if (fd < 0) return fault(reterr, ERR_IO, "%s cannot be opened", path);
    *ret_len = len;
    return OK;
}

static void look_fn(struct loop_work *work)
{
    struct look *look = CONTAINER(work, struct look, work);
    char *room = malloc(UPLOAD_LOOK_BYTES_MAX);
    if (!room) abort();
    size_t len = 0;
    enum err e = read_start(look->path, room, UPLOAD_LOOK_BYTES_MAX, &len, &look->why);
    if (!e) e = mime_of((str){room, len}, look->type, &look->why);
    /* Words may begin like a picture: what it is has been decided already. */
    if (!e && str_starts(str_c(look->type), STR("image/")) &&
        !image_size((str){room, len}, &look->size))
        look->size = (struct image_size){0};
    look->why.err = e;
    free(room);
}

static void look_done(struct loop_work *work)
{
    struct look *look = CONTAINER(work, struct look, work);
    struct upload *u = look->upload;
    struct fault why = look->why;
    if (u) {
        u->look = NULL;
        u->row.mime = arena_str(exchange_arena(u->x), str_c(look->type));
        u->row.width = look->size.width;
        u->row.height = look->size.height;
    }
    free(look->path);
    free(look);
    if (!u) return;
    if (!why.err && (uint64_t)u->row.width * u->row.height > IMAGE_PIXELS_MAX)
        fault_field(&why, ERR_TOO_LARGE, "file", "a picture of %u x %u points is not taken",
                    u->row.width, u->row.height);
    if (why.err) {
        upload_refuse(u, why.err, &why);
        return;
    }
    struct server *server = u->x->server;
    const char *file = spool_path(server->spool, exchange_arena(u->x), u->row.id);
    u->put = blob_put_file(server->blobs, u->row.bucket, u->row.path, file, on_put, u);
}

static void on_spooled(void *arg, enum err e, const struct spool_file *file,
                       const struct fault *reason)
{
    struct upload *u = arg;
    struct arena *arena = exchange_arena(u->x);
    u->stream = NULL;
    if (e) {
        upload_refuse(u, e, reason);
        return;
    }
    u->spooled = true;
    char hex[HASH_HEX_BYTES], path[BLOB_PATH_BYTES];
    crypto_hex((str){(const char *)file->hash, HASH_BYTES}, hex);
    blob_path(file->hash, u->row.id, path);
    u->row.sha256 = arena_str(arena, str_c(hex));
    u->row.bucket = BUCKET_ATTACHMENTS;
    u->row.path = arena_str(arena, str_c(path));
    u->row.owner = u->x->who.user;
    u->row.created = clock_wall(&clock_system);
    struct server *server = u->x->server;
    struct look *look = calloc(1, sizeof *look);
    if (!look) abort();
    look->work = (struct loop_work){.fn = look_fn, .done = look_done};
    look->upload = u;
    look->path = strdup(spool_path(server->spool, arena, u->row.id));
    if (!look->path) abort();
    u->look = look;
    loop_work(server->loop, &look->work);
}

/* ---- the form ---- */

/* Begin, a piece, and the end of one part. Each may refuse. */
struct api_upload_field {
    str name;
    const char *what; /* that is wanted, for whoever left it out */
    enum err (*begin)(struct upload *u, struct fault *reterr);
    enum err (*piece)(struct upload *u, str bytes, struct fault *reterr);
    enum err (*end)(struct upload *u, struct fault *reterr);
};

static enum err thread_wrong(struct fault *reterr)
{
    return fault_field(reterr, ERR_INVALID_FIELD, "threadId",
                       "threadId must be 1 to %d of the characters A-Z a-z 0-9 . _ : -",
                       ID_CLIENT_BYTES_MAX);
}

static enum err thread_begin(struct upload *u, struct fault *reterr)
{
    (void)reterr;
    u->row.thread_id = (str){u->thread_id, 0};
    return OK;
}

static enum err thread_piece(struct upload *u, str bytes, struct fault *reterr)
{
    str *text = &u->row.thread_id;
    if (bytes.len > sizeof u->thread_id - text->len) return thread_wrong(reterr);
    memcpy(u->thread_id + text->len, bytes.p, bytes.len);
    text->len += bytes.len;
    return OK;
}

static enum err thread_end(struct upload *u, struct fault *reterr)
{
    return id_valid(u->row.thread_id) ? OK : thread_wrong(reterr);
}

static void on_drained(void *arg)
{
    struct upload *u = arg;
    http_body_resume(u->x->request);
}

static enum err file_begin(struct upload *u, struct fault *reterr)
{
    (void)reterr;
    u->row.filename = attachment_name(exchange_arena(u->x), u->form.part.filename);
    u->stream = spool_stream_new(u->x->server->spool, u->row.id, on_drained, u);
    return OK;
}

static enum err file_piece(struct upload *u, str bytes, struct fault *reterr)
{
    uint64_t max = u->x->server->config->upload_bytes_max;
    u->row.bytes += bytes.len;
    if (u->row.bytes > max)
        return fault_field(reterr, ERR_TOO_LARGE, "file", "the file has more than %llu bytes",
                           (unsigned long long)max);
    spool_stream_write(u->stream, bytes);
    return OK;
}

static enum err file_end(struct upload *u, struct fault *reterr)
{
    if (u->row.bytes) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, "file", "the file is empty");
}

static const struct api_upload_field fields[] = {
    {STR("threadId"), "the id of the conversation that the file is for", thread_begin, thread_piece,
     thread_end},
    {STR("file"), "the file itself", file_begin, file_piece, file_end},
};

static enum err part_begin(struct upload *u, struct fault *reterr)
{
    str name = u->form.part.name;
    for (unsigned i = 0; i < COUNT(fields); i++) {
        if (!str_eq(fields[i].name, name)) continue;
        if (u->seen & 1U << i)
            return fault_field(reterr, ERR_INVALID_FIELD, say(name).text, "send %s only once",
                               say(name).text);
        u->seen |= 1U << i;
        u->field = &fields[i];
        return fields[i].begin(u, reterr);
    }
    return fault_field(reterr, ERR_INVALID_FIELD, say(name).text, "unknown field \"%s\"",
                       say(name).text);
}

static enum err form_complete(const struct upload *u, struct fault *reterr)
{
    if (!multipart_closed(&u->form))
        return fault(reterr, ERR_BAD_REQUEST, "the form breaks off: its last boundary is missing");
    for (unsigned i = 0; i < COUNT(fields); i++)
        if (!(u->seen & 1U << i))
            return fault_field(reterr, ERR_INVALID_FIELD, fields[i].name.p, "%s is missing: %s",
                               fields[i].name.p, fields[i].what);
    return OK;
}

/* ---- the body ---- */

static void on_piece(void *arg, str bytes)
{
    struct upload *u = arg;
    for (;;) {
        struct fault why = {0};
        enum err e = OK;
        switch (multipart_feed(&u->form, &bytes)) {
        case MULTIPART_MORE:
            if (u->stream && spool_stream_full(u->stream)) http_body_pause(u->x->request);
            return;
        case MULTIPART_PART:
            e = part_begin(u, &why);
            break;
        case MULTIPART_DATA:
            e = u->field->piece(u, u->form.piece, &why);
            break;
        case MULTIPART_PART_END:
            e = u->field->end(u, &why);
            break;
        case MULTIPART_ERROR:
            e = fault(&why, ERR_BAD_REQUEST, "the form is malformed: %s", u->form.reason);
            break;
        }
        if (!e) continue;
        upload_refuse(u, e, &why);
        return;
    }
}

static void on_end(void *arg, enum err e)
{
    struct upload *u = arg;
    struct fault why = {0};
    if (e == ERR_TOO_LARGE)
        e = fault(&why, e, "the file has more than %llu bytes",
                  (unsigned long long)u->x->server->config->upload_bytes_max);
    else if (e == ERR_NETWORK)
        e = ERR_BAD_REQUEST; /* a client that has gone reads no answer, and is no failure of ours */
    else if (!e)
        e = form_complete(u, &why);
    if (e)
        upload_refuse(u, e, why.text[0] ? &why : NULL);
    else
        spool_stream_end(u->stream, 0, UINT64_MAX, on_spooled, u);
}

static const struct http_body_ops body_ops = {.on_piece = on_piece, .on_end = on_end};

void handle_attachment_post(struct exchange *x)
{
    struct transfers *transfers = &x->server->transfers;
    struct arena *arena = exchange_arena(x);
    struct upload *u = ARENA_NEW(arena, struct upload);
    struct fault why = {0};
    str boundary = STR_EMPTY;
    enum err e = multipart_boundary(http_head_get(x->head, STR("Content-Type")), &boundary, &why);
    change_for(&u->change, x);
    if (!e) e = change_key_check(u->change.key, &why);
    if (!e) e = pool_take(x->server, POOL_UPLOADS, x->who.user, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    char id[ID_BYTES];
    id_random(id);
    u->row.id = arena_printf(arena, "att_%s", id);
    u->x = x;
    u->transfer.stop = upload_stop;
    multipart_init(&u->form, boundary);
    transfer_add(transfers, &u->transfer);
    http_body_take(x->request, &body_ops, u);
}

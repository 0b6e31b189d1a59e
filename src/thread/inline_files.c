/* SPDX-License-Identifier: Apache-2.0
 *
 * Files whose bytes came inside a request, on their way into storage:
 *
 *     loop    a copy of what came
 *     pool    decode, hash, type, size in pixels      all of them, in one piece of work
 *     pool    blob_put, one after the other           then on_done
 *
 * Invariants:
 * 1. A path has an id that nobody else has, so what is put here belongs to this request alone.
 * 2. The rows are added by the caller's commit. What the commit did not use is taken out again; what
 *    a crash or a stop leaves between is found by the sweeper, for no row names it.
 * 3. The pool thread touches nothing of the request, which may be answered and gone before it ends.
 */
#include "thread/inline_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/limits.h"
#include "net/loop.h"
#include "server/transfer.h"
#include "store/blob/blob.h"
#include "thread/file_image_size.h"
#include "thread/file_mime.h"

/* What a file turns out to be. */
struct made {
    char *bytes; /* first as base64, unless they are decoded */
    size_t len;
    bool decoded;
    char field[PART_PATH_BYTES];
    char id[4 + ID_BYTES], mime[MIME_BYTES], sha256[HASH_HEX_BYTES], path[BLOB_PATH_BYTES];
    struct image_size size;
};

struct putting {
    struct transfer transfer;
    struct loop_work work;
    struct inline_files *files;
    struct inline_target target;
    struct made *made;
    size_t count, at;
    uint64_t bytes_max;
    bool working, stopped;
    struct blob_job *put;
    enum err e;
    struct fault why;
    void (*on_done)(void *arg, enum err e, const struct fault *why);
    void *arg;
};

static void putting_free(struct putting *p)
{
    for (size_t i = 0; i < p->count; i++) free(p->made[i].bytes);
    free(p->made);
    free(p);
}

/* ---- on a pool thread ---- */

static enum err decode(const struct putting *p, struct made *made, struct fault *reterr)
{
    size_t len = made->len;
    if (!made->decoded &&
        !parts_base64((str){made->bytes, made->len}, (unsigned char *)made->bytes, &len))
        return fault_field(reterr, ERR_INVALID_FIELD, made->field,
                           "data must be base64 with its padding");
    if (!len) return fault_field(reterr, ERR_INVALID_FIELD, made->field, "the file is empty");
    if (len > p->bytes_max)
        return fault_field(reterr, ERR_TOO_LARGE, made->field, "a file may have %llu bytes",
                           (unsigned long long)p->bytes_max);
    made->len = len;
    return OK;
}

static enum err describe(struct made *made, struct fault *reterr)
{
    unsigned char hash[HASH_BYTES];
    str bytes = {made->bytes, made->len};
    enum err e = mime_of(bytes, made->mime, reterr);
    if (e) return e;
    crypto_sha256(bytes, hash);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, made->sha256);
    memcpy(made->id, "att_", 4);
    id_random(made->id + 4);
    blob_path(hash, str_c(made->id), made->path);
    if (!image_size(bytes, &made->size)) made->size = (struct image_size){0};
    if ((uint64_t)made->size.width * made->size.height > IMAGE_PIXELS_MAX)
        return fault_field(reterr, ERR_TOO_LARGE, made->field,
                           "a picture of %u x %u points is not taken", made->size.width,
                           made->size.height);
    return OK;
}

static void look_at_all(struct loop_work *work)
{
    struct putting *p = CONTAINER(work, struct putting, work);
    for (size_t i = 0; !p->e && i < p->count; i++) {
        p->e = decode(p, &p->made[i], &p->why);
        if (!p->e) p->e = describe(&p->made[i], &p->why);
    }
}

/* ---- on the loop ---- */

static void finish(struct putting *p)
{
    void (*on_done)(void *, enum err, const struct fault *) = p->on_done;
    void *arg = p->arg;
    enum err e = p->e;
    struct fault why = p->why;
    transfer_remove(p->target.transfers, &p->transfer);
    if (e) inline_files_drop(p->files, p->target.blobs);
    putting_free(p);
    on_done(arg, e, why.text[0] ? &why : NULL);
}

static void fill_row(struct arena *arena, const struct made *made, struct attachment *row)
{
    row->id = arena_str(arena, str_c(made->id));
    row->mime = arena_str(arena, str_c(made->mime));
    row->sha256 = arena_str(arena, str_c(made->sha256));
    row->path = arena_str(arena, str_c(made->path));
    row->bucket = BUCKET_ATTACHMENTS;
    row->bytes = made->len;
    row->width = made->size.width;
    row->height = made->size.height;
}

static void put_next(struct putting *p);

static void on_put(void *arg, enum err e, const struct fault *why)
{
    struct putting *p = arg;
    struct made *made = &p->made[p->at];
    struct inline_file *file = &p->files->files[p->at];
    p->put = NULL;
    free(made->bytes);
    made->bytes = NULL;
    fill_row(p->target.arena, made, &file->row);
    file->put = e == OK;
    p->e = e;
    if (e && why) p->why = *why;
    p->at++;
    put_next(p);
}

static void put_next(struct putting *p)
{
    if (p->e || p->at == p->count) {
        finish(p);
        return;
    }
    const struct made *made = &p->made[p->at];
    p->put = blob_put(p->target.blobs, BUCKET_ATTACHMENTS, str_c(made->path),
                      (str){made->bytes, made->len}, on_put, p);
}

static void looked_at(struct loop_work *work)
{
    struct putting *p = CONTAINER(work, struct putting, work);
    p->working = false;
    if (p->stopped)
        putting_free(p);
    else
        put_next(p);
}

/* The process ends: answer, and let what is under way end by itself. */
static void stop(struct transfer *transfer)
{
    struct putting *p = CONTAINER(transfer, struct putting, transfer);
    void (*on_done)(void *, enum err, const struct fault *) = p->on_done;
    void *arg = p->arg;
    transfer_remove(p->target.transfers, &p->transfer);
    p->stopped = true;
    if (p->put) blob_forget(p->put);
    if (!p->working) putting_free(p);
    on_done(arg, ERR_SHUTTING_DOWN, NULL);
}

void inline_files_put(struct inline_files *files, const struct inline_target *target,
                      void (*on_done)(void *arg, enum err e, const struct fault *why), void *arg)
{
    struct putting *p = calloc(1, sizeof *p);
    struct made *made = calloc(files->count, sizeof *made);
    if (!p || !made) abort();
    *p = (struct putting){.transfer = {.stop = stop},
                          .work = {.fn = look_at_all, .done = looked_at},
                          .files = files,
                          .target = *target,
                          .made = made,
                          .count = files->count,
                          .bytes_max = files->bytes_max,
                          .working = true,
                          .on_done = on_done,
                          .arg = arg};
    for (size_t i = 0; i < files->count; i++) {
        const struct inline_file *file = &files->files[i];
        made[i].len = file->data.len;
        made[i].decoded = file->decoded;
        made[i].bytes = malloc(file->data.len + 1);
        if (!made[i].bytes) abort();
        memcpy(made[i].bytes, file->data.p, file->data.len);
        memcpy(made[i].field, file->field, sizeof made[i].field);
    }
    transfer_add(target->transfers, &p->transfer);
    loop_work(target->loop, &p->work);
}

void inline_files_drop(struct inline_files *files, struct blobs *blobs)
{
    for (size_t i = 0; i < files->count; i++) {
        struct inline_file *file = &files->files[i];
        if (!file->put || file->used) continue;
        file->put = false;
        blob_remove(blobs, file->row.bucket, file->row.path, NULL, NULL);
    }
}

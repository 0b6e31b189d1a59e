/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of files that the model is to have, loaded before it is asked:
 *
 *     pictures_load ─▶ reading thread: their rows ─▶ blob_get ─▶ on_done
 *                                                     ▲    │ one after the other; if one takes too
 *                                                     └────┘ long, none of the rest is waited for
 *
 * Invariants:
 * 1. The job has copies of what it needs in an arena of its own, so that it may end after the run it
 *    was for is gone.
 * 2. The context is changed at the end, all at once: what was got until then is in the context's
 *    arena, and nobody sees it.
 * 3. Bytes come with the hash that their row says (store/blob/blob.h) and only for their owner.
 */
#include "agent/shell/pictures.h"

#include <stdlib.h>

#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/db/store.h"
#include "store/table/attachments.h"

/* One file of the list. */
struct wanted {
    str id;
    struct attachment row; /* no path: there is none */
    bool found;
    str text;  /* what goes into the message's text; or else */
    str bytes; /* of a picture */
};

struct pictures {
    struct job job;
    struct arena arena; /* of the job */
    struct pictures_source source;
    struct wanted *wanted;
    size_t count, at;
    struct blob_job *get;
    struct timer *limit; /* of one get */
    bool finding, forgotten;
    void (*on_done)(void *arg, enum err e);
    void *arg;
};

bool pictures_needed(const struct context *context)
{
    return context->file_count > 0;
}

static void pictures_free(struct pictures *p)
{
    timer_free(p->limit);
    arena_done(&p->arena);
    free(p);
}

static void end(struct pictures *p, enum err e)
{
    void (*on_done)(void *, enum err) = p->on_done;
    void *arg = p->arg;
    pictures_free(p);
    on_done(arg, e);
}

/* ---- what was got, into the messages ---- */

/* The pictures of a message, in order; files of one message stand together. */
static void give_pictures(struct pictures *p, size_t from, size_t to)
{
    const struct context *context = p->source.context;
    struct model_message *message = &context->messages[context->files[from].message];
    struct model_image *images = arena_array(p->source.arena, to - from, sizeof *images);
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        if (p->wanted[i].bytes.len)
            images[count++] = (struct model_image){.mime = context->files[i].file.mime,
                                                   .filename = context->files[i].file.filename,
                                                   .bytes = p->wanted[i].bytes};
    message->images = count ? images : NULL;
    message->image_count = count;
}

static void give_texts(struct pictures *p, size_t from, size_t to)
{
    const struct context *context = p->source.context;
    struct model_message *message = &context->messages[context->files[from].message];
    str added = STR_EMPTY;
    for (size_t i = from; i < to; i++)
        added = context_add(p->source.arena, added, p->wanted[i].text);
    message->text = context_add(p->source.arena, message->text, added);
}

static void give(struct pictures *p)
{
    struct context *context = p->source.context;
    for (size_t from = 0, to; from < p->count; from = to) {
        to = from;
        while (to < p->count && context->files[to].message == context->files[from].message) to++;
        give_pictures(p, from, to);
        give_texts(p, from, to);
    }
    context->file_count = 0;
}

/* ---- bytes ---- */

static void tell(struct pictures *p, size_t at, enum file_fate fate)
{
    const struct context *context = p->source.context;
    p->wanted[at].text =
        file_line(p->source.arena, context->locale, &context->files[at].file, fate);
}

static enum file_fate fate_of(enum err e)
{
    return e == ERR_NOT_FOUND ? FILE_MISSING : e == ERR_DAMAGED ? FILE_DAMAGED : FILE_UNREADABLE;
}

static void get_next(struct pictures *p);

static void on_got(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct pictures *p = arg;
    const struct context *context = p->source.context;
    const struct context_file *file = &context->files[p->at];
    struct wanted *wanted = &p->wanted[p->at];
    (void)reason; /* for the log of the storage; the model needs no paths */
    p->get = NULL;
    timer_stop(p->limit);
    if (e == ERR_RATE_LIMITED) { /* nothing is wrong with the file: later */
        end(p, e);
        return;
    }
    if (e)
        tell(p, p->at, fate_of(e));
    else if (file->picture)
        wanted->bytes = arena_str(p->source.arena, bytes);
    else
        wanted->text =
            file_block(p->source.arena, context->locale, &file->file, bytes, file->bytes_max);
    p->at++;
    get_next(p);
}

static void get_next(struct pictures *p)
{
    for (; p->at < p->count && !p->wanted[p->at].found; p->at++) tell(p, p->at, FILE_MISSING);
    if (p->at == p->count) {
        give(p);
        end(p, OK);
        return;
    }
    const struct attachment *row = &p->wanted[p->at].row;
    size_t max = p->source.context->files[p->at].picture ? CONTEXT_PICTURE_BYTES_MAX
                                                         : CONTEXT_FILE_BYTES_MAX;
    p->get = blob_get(p->source.blobs, row->bucket, row->path, max, on_got, p);
    timer_start(p->limit, CONTEXT_FILE_MS_MAX);
}

/* The storage hangs. The run does not. */
static void on_late(void *arg)
{
    struct pictures *p = arg;
    blob_forget(TAKE(p->get));
    for (; p->at < p->count; p->at++)
        tell(p, p->at, p->wanted[p->at].found ? FILE_UNREADABLE : FILE_MISSING);
    get_next(p);
}

/* ---- rows ---- */

static enum err find_run(struct job *job, struct db *db)
{
    struct pictures *p = (struct pictures *)(void *)job;
    for (size_t i = 0; i < p->count; i++) {
        struct wanted *wanted = &p->wanted[i];
        enum err e = attachment_find(db, &p->arena, wanted->id, &wanted->row);
        if (e && e != ERR_NOT_FOUND) return e;
        wanted->found = !e && str_eq(wanted->row.owner, p->source.owner);
    }
    return OK;
}

static void find_done(struct job *job, enum err e)
{
    struct pictures *p = (struct pictures *)(void *)job;
    p->finding = false;
    if (p->forgotten)
        pictures_free(p);
    else if (e)
        end(p, e);
    else
        get_next(p);
}

struct pictures *pictures_load(const struct pictures_source *source,
                               void (*on_done)(void *arg, enum err e), void *arg)
{
    struct pictures *p = calloc(1, sizeof *p);
    if (!p) abort();
    const struct context *context = source->context;
    arena_init(&p->arena);
    p->source = *source;
    p->source.owner = arena_str(&p->arena, source->owner);
    p->count = context->file_count;
    p->wanted = arena_array(&p->arena, p->count + 1, sizeof *p->wanted);
    for (size_t i = 0; i < p->count; i++)
        p->wanted[i].id = arena_str(&p->arena, context->files[i].file.id);
    p->limit = timer_new(source->loop, on_late, p);
    p->job = (struct job){.run = find_run, .done = find_done};
    p->on_done = on_done;
    p->arg = arg;
    p->finding = true;
    store_read(source->store, &p->job);
    return p;
}

void pictures_forget(struct pictures *pictures)
{
    if (!pictures) return;
    pictures->forgotten = true;
    if (pictures->finding) return; /* its job is with the store */
    if (pictures->get) blob_forget(pictures->get);
    pictures_free(pictures);
}

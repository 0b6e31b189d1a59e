/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a result brings along, on their way into object storage.
 *
 *     new ─▶ looking at all (pool) ─▶ putting, one after the other ─▶ over
 *                 │                     ▲ │ failed                     │ ▲
 *                 │ late                │ ├─▶ rest                     │ │
 *                 │                     │ ▼ out of tries, or late      │ │
 *                 └─────────────────────┼─▶ the rest is not kept ──────┼─┘
 *                                       └── again, when it is stale ◀──┘
 *
 * Invariants:
 * 1. A path has an id that nobody else has, so an object here belongs to this result alone.
 * 2. While the pool looks only it touches what it finds out; `kept` is the loop's.
 * 3. Each file has PAYLOAD_MS_MAX. Storage that is late, or has failed for one of them, is not waited
 *    for again. A file that is no good (file_look) costs only itself.
 */
#include "agent/shell/result_files.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/files.h"
#include "agent/core/texts.h"
#include "agent/shell/patient_put.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"

struct item {
    struct tool_file file;
    enum err e; /* of the look, and from there on what it has found: */
    struct file_seen seen;
    char id[4 + ID_BYTES], sha256[HASH_HEX_BYTES], path[BLOB_PATH_BYTES];
    bool kept; /* or going to be */
};

struct result_files {
    struct result_files_options options;
    struct loop_work work;
    struct arena arena;
    struct item *items;
    size_t count, at;
    struct patient_put put;
    bool looking, over, forgotten;
    msec since; /* that it is over */
};

static void result_files_free(struct result_files *l)
{
    arena_done(&l->arena);
    free(l);
}

static void trouble(const struct result_files *l, enum err e)
{
    l->options.on_trouble(l->options.arg, "a file of a result is not kept", e);
}

static void result_files_over_it(struct result_files *l)
{
    l->over = true;
    l->since = loop_now(l->options.loop);
    patient_put_end(&l->put);
    l->options.on_over(l->options.arg);
}

static void give_up(struct result_files *l, enum err e)
{
    for (size_t i = l->at; i < l->count; i++) l->items[i].kept = false;
    trouble(l, e);
    result_files_over_it(l);
}

/* ---- on a pool thread ---- */

static void look_at(file_look *look, struct item *item)
{
    str bytes = item->file.bytes;
    unsigned char hash[HASH_BYTES];
    item->e = bytes.len ? look(bytes, item->file.filename, &item->seen) : ERR_INVALID_FIELD;
    if (item->e) return;
    crypto_sha256(bytes, hash);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, item->sha256);
    memcpy(item->id, "att_", 4);
    id_random(item->id + 4);
    blob_path(hash, str_c(item->id), item->path);
}

static void look_at_all(struct loop_work *work)
{
    struct result_files *l = CONTAINER(work, struct result_files, work);
    for (size_t i = 0; i < l->count; i++) look_at(l->options.look, &l->items[i]);
}

/* ---- on the loop ---- */

static void put_next(struct result_files *l)
{
    while (l->at < l->count && !l->items[l->at].kept) l->at++;
    if (l->at == l->count) {
        result_files_over_it(l);
        return;
    }
    const struct item *item = &l->items[l->at];
    patient_put_begin(&l->put);
    patient_put_go(&l->put, BUCKET_ATTACHMENTS, str_c(item->path), item->file.bytes, NULL);
}

/* Also when the look took too long. */
static void on_put_over(void *arg, enum err e)
{
    struct result_files *l = arg;
    if (e) {
        give_up(l, e);
        return;
    }
    l->at++;
    put_next(l);
}

static void looked_at(struct loop_work *work)
{
    struct result_files *l = CONTAINER(work, struct result_files, work);
    l->looking = false;
    if (l->forgotten) {
        result_files_free(l);
        return;
    }
    if (l->over) return; /* it was late */
    for (size_t i = 0; i < l->count; i++) {
        l->items[i].kept = !l->items[i].e;
        if (l->items[i].e) trouble(l, l->items[i].e);
    }
    put_next(l);
}

struct result_files *result_files_new(const struct result_files_options *options,
                                      const struct tool_file *files, size_t count)
{
    struct result_files *l = calloc(1, sizeof *l);
    if (!l) abort();
    assert(count <= CALL_FILES_MAX);
    arena_init(&l->arena);
    l->options = *options;
    l->items = arena_array(&l->arena, count, sizeof *l->items);
    l->count = count;
    for (size_t i = 0; i < count; i++)
        l->items[i] = (struct item){.file = {arena_str(&l->arena, files[i].mime),
                                             arena_str(&l->arena, files[i].filename),
                                             arena_str(&l->arena, files[i].bytes)}};
    l->put = (struct patient_put){
        .loop = options->loop, .blobs = options->blobs, .on_over = on_put_over, .arg = l};
    patient_put_begin(&l->put);
    l->work = (struct loop_work){.fn = look_at_all, .done = looked_at};
    l->looking = true;
    loop_work(options->loop, &l->work);
    return l;
}

void result_files_forget(struct result_files *l)
{
    if (!l) return;
    patient_put_done(&l->put);
    l->forgotten = true;
    if (!l->looking) result_files_free(l);
}

/* ---- what has become of it ---- */

bool result_files_over(const struct result_files *l)
{
    return l->over;
}

bool result_files_stale(const struct result_files *l)
{
    bool any = false;
    for (size_t i = 0; i < l->count; i++) any = any || l->items[i].kept;
    return l->over && any && loop_now(l->options.loop) - l->since > RESULT_FILES_FRESH_MS;
}

void result_files_again(struct result_files *l)
{
    l->over = false;
    l->at = 0;
    put_next(l);
}

size_t result_files_rows(const struct result_files *l, struct arena *arena,
                         struct attachment **ret_rows)
{
    struct attachment *rows = arena_array(arena, l->count, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct item *item = &l->items[i];
        if (!item->kept) continue;
        rows[count++] = (struct attachment){.id = str_c(item->id),
                                            .mime = str_c(item->seen.mime),
                                            .filename = str_c(item->seen.filename),
                                            .sha256 = str_c(item->sha256),
                                            .bucket = BUCKET_ATTACHMENTS,
                                            .path = str_c(item->path),
                                            .bytes = item->file.bytes.len,
                                            .width = item->seen.width,
                                            .height = item->seen.height};
    }
    *ret_rows = rows;
    return count;
}

/* Of one that is not kept nobody may have looked at: it is called as its tool does. */
static str line_of(const struct item *item, struct arena *arena, str locale)
{
    struct file file = {.id = STR("-"), .bytes = item->file.bytes.len};
    file.mime = item->kept ? str_c(item->seen.mime) : text_one_line(arena, item->file.mime);
    file.filename =
        item->kept ? str_c(item->seen.filename) : text_one_line(arena, item->file.filename);
    return file_line(arena, locale, &file, item->kept ? FILE_NAMED : FILE_UNKEPT);
}

str result_files_lines(const struct result_files *l, struct arena *arena, str locale)
{
    str parts[2 * CALL_FILES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (i) parts[count++] = STR("\n");
        parts[count++] = line_of(&l->items[i], arena, locale);
    }
    return text_join(arena, parts, count);
}

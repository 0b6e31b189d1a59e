/* SPDX-License-Identifier: Apache-2.0
 *
 * Hot rows of the writing connection: blocks of memory, found by kind and number, thrown away from
 * the end that was not used for longest.
 *
 *     entry | struct, struct, ... | bytes of their texts          one block of memory
 *
 * A block holds structs and, behind them, what their texts point to. So copying one is copying its
 * bytes and moving the pointers by the distance between the two.
 */
#include "store/db/hot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/plant.h"
#include "store/db/sqlite.h"

struct hot_entry {
    struct hot_entry *chain;         /* the next of its bucket */
    struct hot_entry *newer, *older; /* in the order of use */
    int64_t id;
    enum hot_kind kind;
    size_t count, bytes; /* rows; bytes of the block */
    uint64_t born;
    _Alignas(16) char block[];
};

/* A kind is let go of by a number: what was born before it counts no more, and goes when somebody asks
 * for it or when its turn comes. Looking for all of a kind, or freeing all there is, takes a second when
 * there is much, and everybody who writes would wait for one person's grant or one job's rollback. */
struct hot {
    size_t bytes_max, bytes, count;
    struct hot_entry *newest, *oldest;
    uint64_t now, since[HOT_KIND_COUNT];
    size_t buckets_mask;
    struct hot_entry *buckets[]; /* as many as the bytes ask for, so that no chain gets long */
};

struct hot *hot_new(size_t bytes_max)
{
    size_t buckets = HOT_BUCKETS_MIN;
    while (buckets < bytes_max / HOT_BUCKET_BYTES) buckets *= 2;
    struct hot *hot = mem_new(sizeof *hot + buckets * sizeof hot->buckets[0]);
    hot->bytes_max = bytes_max;
    hot->buckets_mask = buckets - 1;
    return hot;
}

void hot_free(struct hot *hot)
{
    for (struct hot_entry *entry = hot ? hot->oldest : NULL, *newer; entry; entry = newer) {
        newer = entry->newer;
        free(entry);
    }
    free(hot);
}

size_t hot_bytes(const struct hot *hot)
{
    return hot->bytes;
}

/* ---- entries ---- */

static struct hot_entry **bucket_of(struct hot *hot, enum hot_kind kind, int64_t id)
{
    _Static_assert((HOT_BUCKETS_MIN & (HOT_BUCKETS_MIN - 1)) == 0, "a power of two");
    uint64_t hash = ((uint64_t)id * HOT_KIND_COUNT + kind) * 0x9e3779b97f4a7c15U;
    return &hot->buckets[(hash >> 32) & hot->buckets_mask];
}

static void unlink_use(struct hot *hot, struct hot_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &hot->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &hot->oldest) = entry->newer;
}

static void link_newest(struct hot *hot, struct hot_entry *entry)
{
    entry->newer = NULL;
    entry->older = hot->newest;
    *(hot->newest ? &hot->newest->newer : &hot->oldest) = entry;
    hot->newest = entry;
}

static size_t entry_bytes(const struct hot_entry *entry)
{
    return sizeof *entry + entry->bytes;
}

static void entry_free(struct hot *hot, struct hot_entry *entry)
{
    struct hot_entry **at = bucket_of(hot, entry->kind, entry->id);
    while (*at != entry) at = &(*at)->chain;
    *at = entry->chain;
    unlink_use(hot, entry);
    hot->bytes -= entry_bytes(entry);
    hot->count--;
    free(entry);
}

static struct hot_entry *find(struct hot *hot, enum hot_kind kind, int64_t id)
{
    struct hot_entry *entry = *bucket_of(hot, kind, id);
    while (entry && (entry->id != id || entry->kind != kind)) entry = entry->chain;
    if (!entry || entry->born >= hot->since[kind]) return entry;
    entry_free(hot, entry);
    return NULL;
}

void hot_clear(struct hot *hot)
{
    hot->now++;
    for (size_t i = 0; i < COUNT(hot->since); i++) hot->since[i] = hot->now;
}

/* ---- blocks ---- */

static str *text_at(const struct hot_shape *shape, void *rows, size_t row, size_t column)
{
    return (str *)(void *)((char *)rows + row * shape->size + shape->columns[column].offset);
}

static size_t texts_bytes(const struct hot_shape *shape, const void *rows, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < shape->count; j++)
            if (shape->columns[j].kind == COLUMN_STR)
                bytes += text_at(shape, (void *)(uintptr_t)rows, i, j)->len;
    return bytes;
}

/* Copy rows to `place` and their texts to `texts`, which is moved behind them. */
static void pack(const struct hot_shape *shape, const void *rows, size_t count, void *place,
                 char **texts)
{
    if (count) memcpy(place, rows, count * shape->size);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < shape->count; j++) {
            if (shape->columns[j].kind != COLUMN_STR) continue;
            str *text = text_at(shape, place, i, j);
            if (text->len) memcpy(*texts, text->p, text->len);
            text->p = *texts;
            *texts += text->len;
        }
    }
}

/* An entry of the rows of two lists, the one behind the other. NULL: too long to be kept. */
static void keep(struct hot *hot, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                 const void *rows, size_t count, const void *more, size_t more_count)
{
    size_t structs = (count + more_count) * shape->size;
    size_t bytes = structs + texts_bytes(shape, rows, count) + texts_bytes(shape, more, more_count);
    struct hot_entry *before = find(hot, kind, id), *entry = NULL;
    if (bytes <= HOT_ENTRY_BYTES_MAX && bytes + sizeof *entry <= hot->bytes_max) {
        entry = malloc(sizeof *entry + bytes);
        if (!entry) abort();
        *entry = (struct hot_entry){
            .id = id, .kind = kind, .count = count + more_count, .bytes = bytes, .born = hot->now};
        char *texts = entry->block + structs;
        pack(shape, rows, count, entry->block, &texts);
        pack(shape, more, more_count, entry->block + count * shape->size, &texts);
    }
    if (before) entry_free(hot, before); /* `rows` may lie in it */
    if (!entry) return;
    struct hot_entry **bucket = bucket_of(hot, kind, id);
    entry->chain = *bucket;
    *bucket = entry;
    link_newest(hot, entry);
    hot->bytes += entry_bytes(entry);
    hot->count++;
#ifndef __clang_analyzer__ /* does not see that the list gets shorter, and is not empty */
    while (hot->bytes > hot->bytes_max) entry_free(hot, hot->oldest);
#endif
}

void hot_put(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
             const void *rows, size_t count)
{
    struct hot *hot = db_hot(db);
    if (!hot || (PLANT(ROWS_OLD) && find(hot, kind, id))) return;
    keep(hot, kind, id, shape, rows, count, NULL, 0);
}

void hot_append(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                const void *row)
{
    struct hot *hot = db_hot(db);
    const struct hot_entry *entry = hot ? find(hot, kind, id) : NULL;
    if (!entry || PLANT(ROWS_OLD)) return;
    keep(hot, kind, id, shape, entry->block, entry->count, row, 1);
}

void hot_drop(struct db *db, enum hot_kind kind, int64_t id)
{
    struct hot *hot = db_hot(db);
    struct hot_entry *entry = hot ? find(hot, kind, id) : NULL;
    if (entry && !PLANT(ROWS_OLD)) entry_free(hot, entry);
}

void hot_drop_kind(struct db *db, enum hot_kind kind)
{
    struct hot *hot = db_hot(db);
    if (hot) hot->since[kind] = ++hot->now;
}

void hot_drop_all(struct db *db)
{
    if (db_hot(db)) hot_clear(db_hot(db));
}

bool hot_has(struct db *db, enum hot_kind kind, int64_t id, size_t *ret_count)
{
    struct hot *hot = db_hot(db);
    const struct hot_entry *entry = hot ? find(hot, kind, id) : NULL;
    if (entry) *ret_count = entry->count;
    return entry;
}

/* ---- proof ---- */

#ifdef FERMATA_CHECKED
static bool same_member(const struct column *column, const void *a, const void *b)
{
    const char *x = (const char *)a + column->offset, *y = (const char *)b + column->offset;
    switch (column->kind) {
    case COLUMN_STR:
        return str_eq(*(const str *)(const void *)x, *(const str *)(const void *)y);
    case COLUMN_I64:
    case COLUMN_U64:
        return memcmp(x, y, sizeof(int64_t)) == 0;
    case COLUMN_U32:
        return memcmp(x, y, sizeof(uint32_t)) == 0;
    case COLUMN_BOOL:
        return *(const bool *)(const void *)x == *(const bool *)(const void *)y;
    }
    return false;
}

static void compare(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                    hot_reader read, const struct hot_rows *kept)
{
#define HOT_NAME(name) #name,
    static const char *const names[] = {HOT_KINDS(HOT_NAME)};
#undef HOT_NAME
    AUTO(arena_done) struct arena arena;
    struct hot_rows fresh = {0};
    arena_init(&arena);
    if (!read) return;
    uint64_t statements = db_statements_take(db);
    enum err e = read(db, &arena, id, &fresh);
    (void)db_statements_take(db);
    db_statements_add(db, statements);
    if (e && e != ERR_NOT_FOUND) return; /* who asked sees it the next time */
    bool same = fresh.count == kept->count;
    const char *where = "count";
    for (size_t i = 0; same && i < fresh.count; i++)
        for (size_t j = 0; same && j < shape->count; j++) {
            same = same_member(&shape->columns[j], (char *)kept->rows + i * shape->size,
                               (char *)fresh.rows + i * shape->size);
            where = "column";
            if (!same) fprintf(stderr, "hot rows: row %zu, column %zu\n", i, j);
        }
    if (same) return;
    fprintf(stderr, "hot rows: %s %lld differs from the store (%s, %zu kept, %zu stored)\n",
            names[kind], (long long)id, where, kept->count, fresh.count);
    abort();
}
#else
static void compare(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                    hot_reader read, const struct hot_rows *kept)
{
    (void)db, (void)kind, (void)id, (void)shape, (void)read, (void)kept;
}
#endif

/* ---- asking ---- */

const void *hot_see(struct db *db, enum hot_kind kind, int64_t id)
{
    struct hot *hot = db_hot(db);
    struct hot_entry *entry = hot ? find(hot, kind, id) : NULL;
    if (!entry || !entry->count) return NULL;
    unlink_use(hot, entry);
    link_newest(hot, entry);
    return entry->block;
}

static struct hot_entry *use(struct db *db, enum hot_kind kind, int64_t id,
                             const struct hot_shape *shape, hot_reader read)
{
    struct hot *hot = db_hot(db);
    struct hot_entry *entry = hot ? find(hot, kind, id) : NULL;
    if (!entry) return NULL;
    unlink_use(hot, entry);
    link_newest(hot, entry);
    compare(db, kind, id, shape, read,
            &(struct hot_rows){.rows = entry->block, .count = entry->count});
    return entry;
}

bool hot_look(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
              hot_reader read, struct hot_rows *ret_rows)
{
    struct hot_entry *entry = use(db, kind, id, shape, read);
    if (entry) *ret_rows = (struct hot_rows){.rows = entry->block, .count = entry->count};
    return entry;
}

bool hot_get(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
             struct arena *arena, hot_reader read, struct hot_rows *ret_rows)
{
    const struct hot_entry *entry = use(db, kind, id, shape, read);
    if (!entry) return false;
    char *copy = arena_alloc(arena, entry->bytes ? entry->bytes : 1);
    memcpy(copy, entry->block, entry->bytes);
    for (size_t i = 0; i < entry->count; i++)
        for (size_t j = 0; j < shape->count; j++)
            if (shape->columns[j].kind == COLUMN_STR) {
                str *text = text_at(shape, copy, i, j);
                text->p = copy + (text->p - entry->block);
            }
    *ret_rows = (struct hot_rows){.rows = copy, .count = entry->count};
    return true;
}

enum err hot_rows(struct db *db, enum hot_kind kind, int64_t id, const struct hot_shape *shape,
                  struct arena *arena, hot_reader read, struct hot_rows *ret_rows)
{
    if (hot_get(db, kind, id, shape, arena, read, ret_rows)) return OK;
    struct hot_rows rows = {0};
    enum err e = read(db, arena, id, &rows);
    if (e) return e;
    if (!rows.unkept) hot_put(db, kind, id, shape, rows.rows, rows.count);
    *ret_rows = rows;
    return OK;
}

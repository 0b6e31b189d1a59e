/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of a folder, listed by the page in the order of their names.
 *
 * A page costs one reading of the folder that it lies in, and room for its own names: of what a
 * folder holds behind the last page, only the first are kept. Names that are none of ours are passed
 * over.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/blob/blob_file_int.h"

int blob_folder_open(int parent, const char *name, bool make, bool *made)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(parent, name, FLAGS);
    if (fd >= 0 || errno != ENOENT || !make) return fd;
    if (mkdirat(parent, name, 0700) == 0)
        *made = true;
    else if (errno != EEXIST)
        return -1;
    return openat(parent, name, FLAGS);
}

msec blob_wall_of(struct timespec at)
{
    return (msec)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

void blob_list_close(DIR **list)
{
    if (*list) closedir(*list);
}

/* Takes the descriptor. NULL and errno if that is impossible. */
DIR *blob_list_of(int fd)
{
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    int why = errno;
    if (!list && fd >= 0) close(fd);
    errno = why;
    return list;
}

/* The first `room` paths of what is looked at, in order, in memory of their own. */
struct first {
    char (*slots)[BLOB_PATH_BYTES];
    char **sorted;
    size_t count, room;
};

static void first_add(struct first *first, const char *path)
{
    size_t at = first->count;
    char *slot = NULL;
    if (first->count < first->room) {
        slot = first->slots[first->count++];
    } else {
        if (strcmp(path, first->sorted[first->count - 1]) > 0) return;
        at = first->count - 1;
        slot = first->sorted[at]; /* the last one goes */
    }
    snprintf(slot, BLOB_PATH_BYTES, "%s", path);
    size_t low = 0, high = at;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(first->sorted[middle], slot) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(first->sorted + low + 1, first->sorted + low, (at - low) * sizeof *first->sorted);
    first->sorted[low] = slot;
}

static enum err unreadable(struct fault *reterr, const char *what)
{
    return fault(reterr, ERR_IO, "the folder of objects %s cannot be read: %s", what,
                 strerror(errno));
}

static bool is_old(int folder, const char *name, msec before)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (before == INT64_MAX || blob_wall_of(st.st_mtim) < before);
}

/* Objects of one folder of a bucket: those behind `after`. */
static enum err list_folder(int bucket, const char digits[static 3], str after, msec before,
                            struct first *first, struct fault *reterr)
{
    bool made = false;
    AUTO(blob_list_close) DIR *list = blob_list_of(blob_folder_open(bucket, digits, false, &made));
    if (!list) return errno == ENOENT ? OK : unreadable(reterr, digits);
    for (;;) {
        char path[BLOB_PATH_BYTES];
        unsigned char hash[HASH_BYTES];
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry) return errno ? unreadable(reterr, digits) : OK;
        int len = snprintf(path, sizeof path, "%s/%s", digits, entry->d_name);
        if (len >= (int)sizeof path || !blob_path_hash(str_c(path), hash)) continue;
        if (str_cmp(str_c(path), after) <= 0) continue;
        if (first->count == first->room && strcmp(path, first->sorted[first->count - 1]) > 0)
            continue;
        if (is_old(dirfd(list), entry->d_name, before)) first_add(first, path);
    }
}

/* Hand over what was found: one name at most beyond the limit, which says that there are more. */
static void give(struct arena *arena, const char *bucket, const struct first *first, size_t limit,
                 struct blob_names *names)
{
    for (size_t i = 0; i < first->count; i++) {
        if (names->count == limit) {
            names->more = true;
            return;
        }
        names->rows[names->count++] = (struct blob_name){arena_str(arena, str_c(bucket)),
                                                         arena_str(arena, str_c(first->sorted[i]))};
    }
}

static enum err list_bucket(int root, const char *name, str after, msec before, size_t limit,
                            struct arena *arena, struct blob_names *names, struct fault *reterr)
{
    bool made = false;
    AUTO(fd_closep) int bucket = blob_folder_open(root, name, false, &made);
    if (bucket < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? OK
                                                                     : unreadable(reterr, name);
    size_t room = limit + 1;
    struct first first = {.slots = mem_array(room, sizeof *first.slots),
                          .sorted = mem_array(room, sizeof *first.sorted)};
    enum err e = OK;
    for (int i = 0; !e && !names->more && i < BLOB_FOLDERS; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned)i);
        if (after.len >= 2 && strncmp(digits, after.p, 2) < 0) continue;
        first.count = 0;
        first.room = limit + 1 - names->count;
        e = list_folder(bucket, digits, after, before, &first, reterr);
        if (!e) give(arena, name, &first, limit, names);
    }
    free(first.slots);
    free(first.sorted);
    return e;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum err blob_file_list(int root, struct blob_name after, msec before, size_t limit,
                        struct arena *arena, struct blob_names *ret_names, struct fault *reterr)
{
    char buckets[BLOB_BUCKETS_MAX][BLOB_BUCKET_BYTES];
    size_t count = 0;
    bool made = false;
    AUTO(blob_list_close) DIR *list = blob_list_of(blob_folder_open(root, ".", false, &made));
    if (!list) return unreadable(reterr, "itself");
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry && errno) return unreadable(reterr, "itself");
        if (!entry) break;
        if (!blob_bucket_valid(str_c(entry->d_name))) continue;
        if (count == BLOB_BUCKETS_MAX)
            return fault(reterr, ERR_IO, "there are more than %d buckets", (int)BLOB_BUCKETS_MAX);
        snprintf(buckets[count++], BLOB_BUCKET_BYTES, "%s", entry->d_name);
    }
    qsort(buckets, count, sizeof buckets[0], by_name);
    struct blob_names names = {.rows = arena_array(arena, limit, sizeof *names.rows)};
    enum err e = OK;
    for (size_t i = 0; !e && !names.more && i < count; i++) {
        int order = str_cmp(str_c(buckets[i]), after.bucket);
        if (order < 0) continue;
        e = list_bucket(root, buckets[i], order ? STR_EMPTY : after.path, before, limit, arena,
                        &names, reterr);
    }
    if (!e) *ret_names = names;
    return e;
}

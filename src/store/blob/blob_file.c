/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects as files below one folder, each whole and on disk, or not there:
 *
 *     <root>/attachments/3f/3fa9...e1.att_01h...     0600, never changed once it is there
 *     <root>/payloads/...
 *     <root>/.new/.put-7                             in the making; a start removes what is left
 *
 * An object is written under .new, brought to disk, renamed to its place, and the folders on the way
 * are brought to disk, before anybody hears of it. A file of the same file system is linked instead
 * of copied; what is checked then is the link, so that nobody can exchange it in between.
 *
 * Invariants:
 * 1. No path leaves the root: names are checked by blob.c, folders are opened one by one, and no
 *    symbolic link is followed.
 * 2. `names` is held over a look at an object's age and its removal, over a rename, and over a
 *    renewal of the age: an object that was just put, or found there by a put, is not removed as an
 *    old one.
 * 3. A folder that shelf->synced knows is on disk with its parents. Folders are never removed by us.
 * 4. The root is what its path names: whoever works holds `home` for reading, and has looked that the
 *    folder is still the one that is open. One that was moved away, replaced or mounted over while we
 *    run is opened again, or made again if it is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/blob/blob_file_int.h"
#include "store/db/private.h"

#define NEW_FOLDER ".new"

enum { UNFINISHED_BYTES = 32, ROOT_TRIES_MAX = 3 };

struct blob_file_shelf {
    char bucket[BLOB_BUCKET_BYTES];
    bool synced[BLOB_FOLDERS];
};

struct files {
    char *path;            /* of the root */
    pthread_rwlock_t home; /* over the next line: written when the root is another folder */
    int root, unfinished;  /* folders */
    atomic_uint_fast64_t next;
    pthread_mutex_t names;
    pthread_mutex_t shelves_lock;
    struct blob_file_shelf shelves[BLOB_BUCKETS_MAX];
    size_t payload_put_count;
};

/* The folders that an object is in. */
struct blob_file_place {
    int bucket, folder;
    bool made; /* one of them was missing */
};

static void place_close(struct blob_file_place *place)
{
    fd_closep(&place->folder);
    fd_closep(&place->bucket);
}

static enum err failed(struct fault *reterr, const char *what, const struct blob_id *id)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return fault(reterr, full ? ERR_STORAGE_FULL : ERR_IO, "object %s/%s cannot be %s: %s",
                 id->bucket, id->path, what, strerror(errno));
}

static enum err not_there(struct fault *reterr, const struct blob_id *id)
{
    return fault(reterr, ERR_NOT_FOUND, "there is no object %s/%s", id->bucket, id->path);
}

static const char *name_of(const struct blob_id *id)
{
    return id->path + 3;
}

/* ---- folders ---- */

/* False and errno if it cannot be opened; ENOENT: one of them is not there. */
static bool place_open(const struct files *files, const struct blob_id *id, bool make,
                       struct blob_file_place *ret_place)
{
    AUTO(place_close) struct blob_file_place place = {.bucket = -1, .folder = -1};
    char digits[3] = {id->path[0], id->path[1], '\0'};
    place.bucket = blob_folder_open(files->root, id->bucket, make, &place.made);
    if (place.bucket < 0) return false;
    place.folder = blob_folder_open(place.bucket, digits, make, &place.made);
    if (place.folder < 0) return false;
    *ret_place = place;
    place.bucket = place.folder = -1;
    return true;
}

/* An object's mark in the table; NULL when the table is full. With the lock held. */
static bool *synced(struct files *files, const struct blob_id *id)
{
    size_t i = 0;
    while (i < files->payload_put_count && strcmp(files->shelves[i].bucket, id->bucket) != 0) i++;
    if (i == BLOB_BUCKETS_MAX) return NULL;
    struct blob_file_shelf *shelf = &files->shelves[i];
    if (i == files->payload_put_count) {
        *shelf = (struct blob_file_shelf){0};
        snprintf(shelf->bucket, sizeof shelf->bucket, "%s", id->bucket);
        files->payload_put_count++;
    }
    return &shelf->synced[id->hash[0]];
}

/* Bring the names on the way to an object to disk. */
static enum err place_sync(struct files *files, const struct blob_id *id,
                           const struct blob_file_place *place, struct fault *reterr)
{
    pthread_mutex_lock(&files->shelves_lock);
    const bool *mark = synced(files, id);
    bool known = mark && *mark && !place->made;
    pthread_mutex_unlock(&files->shelves_lock);
    if (fsync(place->folder)) return failed(reterr, "kept", id);
    if (known) return OK;
    if (fsync(place->bucket) || fsync(files->root)) return failed(reterr, "kept", id);
    pthread_mutex_lock(&files->shelves_lock);
    bool *now = synced(files, id);
    if (now) *now = true;
    pthread_mutex_unlock(&files->shelves_lock);
    return OK;
}

/* ---- looking ---- */

static struct blob_stamp stamp_of(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    msec age = ((msec)now.tv_sec - st->st_ctim.tv_sec) * 1000 +
               (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000;
    return (struct blob_stamp){.device = st->st_dev,
                               .inode = st->st_ino,
                               .size = (uint64_t)st->st_size,
                               .modified = st->st_mtim,
                               .changed = st->st_ctim,
                               .young = age < BLOB_YOUNG_MS};
}

static enum err open_object(const struct files *files, const struct blob_id *id, int *ret_fd,
                            struct blob_stamp *ret_stamp, struct fault *reterr)
{
    struct stat st;
    AUTO(place_close) struct blob_file_place place = {.bucket = -1, .folder = -1};
    if (!place_open(files, id, false, &place))
        return errno == ENOENT ? not_there(reterr, id) : failed(reterr, "opened", id);
    AUTO(fd_closep)
    int fd = openat(place.folder, name_of(id), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return not_there(reterr, id);
    if (fd < 0 && errno != ELOOP && errno != ENXIO) return failed(reterr, "opened", id);
    if (fd >= 0 && fstat(fd, &st)) return failed(reterr, "examined", id);
    if (fd < 0 || !S_ISREG(st.st_mode))
        return fault(reterr, ERR_DAMAGED, "object %s/%s is no plain file", id->bucket, id->path);
    *ret_stamp = stamp_of(&st);
    *ret_fd = fd;
    fd = -1;
    return OK;
}

static enum err keep_object(struct files *files, const struct blob_id *id, int fd,
                            struct fault *reterr)
{
    struct stat opened, named;
    AUTO(place_close) struct blob_file_place place = {.bucket = -1, .folder = -1};
    if (!place_open(files, id, false, &place))
        return errno == ENOENT ? not_there(reterr, id) : failed(reterr, "opened", id);
    if (fstat(fd, &opened)) return failed(reterr, "examined", id);
    pthread_mutex_lock(&files->names);
    bool there = fstatat(place.folder, name_of(id), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                 named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
    int touched = there ? futimens(fd, NULL) : 0;
    pthread_mutex_unlock(&files->names);
    if (!there) return not_there(reterr, id);
    if (touched || fsync(fd)) return failed(reterr, "kept", id);
    return place_sync(files, id, &place, reterr);
}

/* ---- writing ---- */

/* A new, empty file under .new. */
static enum err unfinished_make(struct files *files, const struct blob_id *id,
                                char ret_name[static UNFINISHED_BYTES], int *ret_fd,
                                struct fault *reterr)
{
    snprintf(ret_name, UNFINISHED_BYTES, ".put-%llu",
             (unsigned long long)atomic_fetch_add(&files->next, 1));
    int fd = openat(files->unfinished, ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    if (fd < 0) return failed(reterr, "made", id);
    *ret_fd = fd;
    return OK;
}

/* The file under .new, whole and on disk, gets its name. fd: open on it. */
static enum err put_in_place(struct files *files, const struct blob_id *id, const char *unfinished,
                             int fd, struct fault *reterr)
{
    struct stat ours, named;
    AUTO(place_close) struct blob_file_place place = {.bucket = -1, .folder = -1};
    if (fstat(fd, &ours)) return failed(reterr, "examined", id);
    if (!place_open(files, id, true, &place)) return failed(reterr, "given its folder", id);
    pthread_mutex_lock(&files->names);
    int renamed = renameat(files->unfinished, unfinished, place.folder, name_of(id));
    int why = errno;
    pthread_mutex_unlock(&files->names);
    errno = why;
    if (renamed) return failed(reterr, "named", id);
    enum err e = place_sync(files, id, &place, reterr);
    if (!e) return OK;
    pthread_mutex_lock(&files->names); /* perhaps on disk, perhaps not: not there */
    if (fstatat(place.folder, name_of(id), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_ino == ours.st_ino)
        unlinkat(place.folder, name_of(id), 0);
    pthread_mutex_unlock(&files->names);
    return e;
}

static enum err put_bytes(struct files *files, const struct blob_id *id, str bytes,
                          struct fault *reterr)
{
    char unfinished[UNFINISHED_BYTES];
    AUTO(fd_closep) int fd = -1;
    enum err e = unfinished_make(files, id, unfinished, &fd, reterr);
    if (e) return e;
    if (!file_write_all(fd, bytes))
        e = failed(reterr, "written", id);
    else if (fsync(fd))
        e = failed(reterr, "brought to disk", id);
    if (!e) e = put_in_place(files, id, unfinished, fd, reterr);
    if (e) unlinkat(files->unfinished, unfinished, 0); /* the next start finds it otherwise */
    return e;
}

static enum err wrong_hash(struct fault *reterr, const struct blob_id *id, const char *file)
{
    return fault(reterr, ERR_DAMAGED, "%s has not the bytes that object %s/%s must have", file,
                 id->bucket, id->path);
}

static enum err copy(int from, int to, const struct blob_id *id, const char *file,
                     struct fault *reterr)
{
    unsigned char hash[HASH_BYTES];
    struct crypto_hash *sum = crypto_hash_new();
    char *piece = malloc(BLOB_PIECE_BYTES);
    if (!piece) abort();
    enum err e = OK;
    for (ssize_t count = 1; !e && count;) {
        count = read(from, piece, BLOB_PIECE_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            e = fault(reterr, ERR_IO, "%s cannot be read: %s", file, strerror(errno));
            break;
        }
        crypto_hash_add(sum, (str){piece, (size_t)count});
        if (!file_write_all(to, (str){piece, (size_t)count})) e = failed(reterr, "written", id);
    }
    crypto_hash_take(sum, hash);
    crypto_hash_free(sum);
    free(piece);
    if (!e && memcmp(hash, id->hash, HASH_BYTES) != 0) e = wrong_hash(reterr, id, file);
    return e;
}

/* A second name for the file, under .new. false: it takes a copy. */
static bool link_here(struct files *files, const struct stat *source, const char *file,
                      char ret_name[static UNFINISHED_BYTES])
{
    if ((source->st_mode & 07777) != 0600 || source->st_uid != geteuid()) return false;
    snprintf(ret_name, UNFINISHED_BYTES, ".put-%llu",
             (unsigned long long)atomic_fetch_add(&files->next, 1));
    return linkat(AT_FDCWD, file, files->unfinished, ret_name, 0) == 0;
}

/* What was linked is looked at through the link: it cannot be exchanged. Its age begins now. */
static enum err check_link(struct files *files, const struct blob_id *id, const char *file,
                           const char *unfinished, int *ret_fd, struct fault *reterr)
{
    struct stat st;
    unsigned char hash[HASH_BYTES];
    AUTO(fd_closep)
    int fd = openat(files->unfinished, unfinished, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) return failed(reterr, "examined", id);
    if (!S_ISREG(st.st_mode)) return wrong_hash(reterr, id, file);
    enum err e = blob_hash(fd, (uint64_t)st.st_size, hash, reterr);
    if (e) return e;
    if (memcmp(hash, id->hash, HASH_BYTES) != 0) return wrong_hash(reterr, id, file);
    if (futimens(fd, NULL)) return failed(reterr, "kept", id);
    *ret_fd = fd;
    fd = -1;
    return OK;
}

static enum err put_copy(struct files *files, const struct blob_id *id, const char *file,
                         struct fault *reterr)
{
    struct stat st;
    char unfinished[UNFINISHED_BYTES];
    AUTO(fd_closep) int fd = -1;
    AUTO(fd_closep) int from = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0 || fstat(from, &st))
        return fault(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s cannot be opened: %s",
                     file, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fault(reterr, ERR_IO, "%s is no plain file", file);
    enum err e = OK;
    if (link_here(files, &st, file, unfinished)) {
        e = check_link(files, id, file, unfinished, &fd, reterr);
    } else {
        e = unfinished_make(files, id, unfinished, &fd, reterr);
        if (e) return e;
        e = copy(from, fd, id, file, reterr);
    }
    if (!e && fsync(fd)) e = failed(reterr, "brought to disk", id);
    if (!e) e = put_in_place(files, id, unfinished, fd, reterr);
    unlinkat(files->unfinished, unfinished, 0); /* a rename between two names of one file does
                                                   nothing, so it may be left also on success */
    return e;
}

/* ---- removing ---- */

static enum err remove_object(struct files *files, const struct blob_id *id, msec before,
                              bool *ret_removed, struct fault *reterr)
{
    struct stat st;
    AUTO(place_close) struct blob_file_place place = {.bucket = -1, .folder = -1};
    *ret_removed = false;
    if (!place_open(files, id, false, &place))
        return errno == ENOENT ? OK : failed(reterr, "removed", id);
    pthread_mutex_lock(&files->names);
    int failure = 0;
    if (fstatat(place.folder, name_of(id), &st, AT_SYMLINK_NOFOLLOW))
        failure = errno;
    else if (before == INT64_MAX || blob_wall_of(st.st_mtim) < before)
        *ret_removed = unlinkat(place.folder, name_of(id), 0) == 0 || (failure = errno, false);
    pthread_mutex_unlock(&files->names);
    errno = failure;
    return !failure || failure == ENOENT ? OK : failed(reterr, "removed", id);
}

/* ---- the root ---- */

static enum err cannot(struct fault *reterr, const char *folder, const char *what)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return fault(reterr, full ? ERR_STORAGE_FULL : ERR_IO,
                 "the folder of objects %s cannot be %s: %s", folder, what, strerror(errno));
}

static bool root_is_there(const struct files *files)
{
    struct stat held, named;
    return files->unfinished >= 0 && fstat(files->root, &held) == 0 &&
           stat(files->path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

/* The folder is another one, or gone. It is ours, so it is closed to others instead of refused. */
static enum err root_again(struct files *files, struct fault *reterr)
{
    bool made = false;
    struct stat st;
    if (mkdir(files->path, 0700) && errno != EEXIST) return cannot(reterr, files->path, "made");
    AUTO(fd_closep) int root = open(files->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st)) return cannot(reterr, files->path, "opened");
    if ((st.st_mode & 07777) != 0700 && fchmod(root, 0700))
        return cannot(reterr, files->path, "closed to others");
    AUTO(fd_closep) int unfinished = blob_folder_open(root, NEW_FOLDER, true, &made);
    if (unfinished < 0) return cannot(reterr, files->path, "given the folder " NEW_FOLDER);
    pthread_mutex_lock(&files->shelves_lock);
    files->payload_put_count = 0;
    pthread_mutex_unlock(&files->shelves_lock);
    fd_closep(&files->root);
    fd_closep(&files->unfinished);
    files->root = root;
    files->unfinished = unfinished;
    root = unfinished = -1;
    return OK;
}

/* `home` is held for reading if it ends with OK. */
static enum err enter(struct files *files, struct fault *reterr)
{
    enum err e = OK;
    for (unsigned tries = 0; !e && tries < ROOT_TRIES_MAX; tries++) {
        pthread_rwlock_rdlock(&files->home);
        if (root_is_there(files)) return OK;
        pthread_rwlock_unlock(&files->home);
        pthread_rwlock_wrlock(&files->home);
        if (!root_is_there(files)) e = root_again(files, reterr);
        pthread_rwlock_unlock(&files->home);
    }
    return e ? e : fault(reterr, ERR_IO, "the folder of objects %s does not stay", files->path);
}

static enum err leave(struct files *files, enum err e)
{
    pthread_rwlock_unlock(&files->home);
    return e;
}

/* ---- what blob.c calls ---- */

static enum err file_open(void *self, const struct blob_id *id, int *ret_fd,
                          struct blob_stamp *ret_stamp, struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    return e ? e : leave(files, open_object(files, id, ret_fd, ret_stamp, reterr));
}

static enum err file_keep(void *self, const struct blob_id *id, int fd, struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    return e ? e : leave(files, keep_object(files, id, fd, reterr));
}

static enum err file_put(void *self, const struct blob_id *id, str bytes, struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    return e ? e : leave(files, put_bytes(files, id, bytes, reterr));
}

static enum err file_put_file(void *self, const struct blob_id *id, const char *file,
                              struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    return e ? e : leave(files, put_copy(files, id, file, reterr));
}

static enum err file_remove(void *self, const struct blob_id *id, msec before, bool *ret_removed,
                            struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    return e ? e : leave(files, remove_object(files, id, before, ret_removed, reterr));
}

static enum err file_list(void *self, struct blob_name after, msec before, size_t limit,
                          struct arena *arena, struct blob_names *ret_names, struct fault *reterr)
{
    struct files *files = self;
    enum err e = enter(files, reterr);
    if (e) return e;
    return leave(files,
                 blob_file_list(files->root, after, before, limit, arena, ret_names, reterr));
}

/* ---- opening and closing ---- */

static void file_free(void *self)
{
    struct files *files = self;
    if (!files) return;
    fd_closep(&files->unfinished);
    fd_closep(&files->root);
    pthread_mutex_destroy(&files->names);
    pthread_mutex_destroy(&files->shelves_lock);
    pthread_rwlock_destroy(&files->home);
    free(files->path);
    free(files);
}

static void files_freep(struct files **files)
{
    file_free(*files);
}

static const struct blob_ops ops = {
    .open = file_open,
    .keep = file_keep,
    .put = file_put,
    .put_file = file_put_file,
    .remove = file_remove,
    .list = file_list,
    .free = file_free,
};

static enum err sweep_unfinished(const struct files *files, const char *folder,
                                 struct fault *reterr)
{
    bool made = false;
    AUTO(blob_list_close)
    DIR *list = blob_list_of(blob_folder_open(files->unfinished, ".", false, &made));
    if (!list) return cannot(reterr, folder, "looked through");
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry) return errno ? cannot(reterr, folder, "looked through") : OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(files->unfinished, entry->d_name, 0))
            return cannot(reterr, folder, "cleared of half-written objects");
    }
}

enum err blob_file_open(const char *folder, struct blob_storage *ret_storage, struct fault *reterr)
{
    bool made = mkdir(folder, 0700) == 0;
    if (!made && errno != EEXIST) return cannot(reterr, folder, "made");
    AUTO(files_freep) struct files *files = mem_new(sizeof *files);
    if (pthread_mutex_init(&files->names, NULL) || pthread_mutex_init(&files->shelves_lock, NULL) ||
        pthread_rwlock_init(&files->home, NULL))
        abort();
    files->path = mem_str(str_c(folder));
    files->root = files->unfinished = -1;
    enum err e = private_folder_open(folder, &files->root, reterr);
    if (e) return e;
    if (made) {
        AUTO(fd_closep)
        int parent = openat(files->root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fsync(parent)) return cannot(reterr, folder, "kept");
    }
    files->unfinished = blob_folder_open(files->root, NEW_FOLDER, true, &made);
    if (files->unfinished < 0) return cannot(reterr, folder, "given the folder " NEW_FOLDER);
    e = sweep_unfinished(files, folder, reterr);
    if (e) return e;
    *ret_storage = (struct blob_storage){&ops, TAKE(files)};
    return OK;
}

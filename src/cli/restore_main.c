/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata restore FILE`: an empty data folder becomes what a backup holds (backup_io.h): read
 * twice, written once, or nothing.
 *
 * The archive is read twice. The first time nothing is written: whatever is wrong with it is found
 * then, every hash and the names of objects included. The second time the parts are written, under
 * other names; they get their own when every hash was right again:
 *
 *     <data>/fermata.db.restoring           secret.key likewise
 *     <data>/.restoring/spool/<name>
 *     <objects>/.restoring/<bucket>/...     <objects>: the folder of the configuration
 *
 * A failure removes all that was written. Memory: a piece of the archive, however many parts it has.
 *
 * To add a part outside of folders: its row in part_table. A folder of parts: its row in trees.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/say.h"
#include "cli/backup_io.h"
#include "cli/home.h"
#include "config/commands.h"
#include "store/blob/blob.h"
#include "store/db/archive.h"
#include "store/db/lock.h"
#include "store/db/migrate.h"
#include "store/db/private.h"
#include "store/db/secret.h"
#include "store/db/store.h"

/* The parts there may be outside of folders, in any order, each once. */
enum part_id { PART_DATABASE, PART_SECRET, PART_MANIFEST, PART_COUNT };

static const struct {
    const char *name;
    bool required;
    bool file; /* a file of the data folder */
} part_table[PART_COUNT] = {
    [PART_DATABASE] = {STORE_DATABASE_NAME, true, true},
    [PART_SECRET] = {SECRET_KEY_NAME, false, true},
    [PART_MANIFEST] = {MANIFEST_NAME, true, false},
};

#define WHILE_RESTORING ".restoring"

static const char *const buckets[] = {"payloads", "attachments"};

/* The folders with parts in them. */
enum tree_id { TREE_BLOBS, TREE_SPOOL, TREE_COUNT };

struct tree {
    const char *folder; /* where its parts go */
    uint64_t files;     /* that the archive has */
    bool made;          /* the folder was not there */
    int root, staging;  /* descriptors; -1: nothing is written */
};

struct restore {
    struct arena *arena;
    const char *archive; /* its path */
    const char *data;
    bool found[PART_COUNT];
    struct tree trees[TREE_COUNT];
    char last[PART_NAME_BYTES]; /* the part in a folder that came last */

    /* the part that is being read */
    enum part_id part;              /* PART_COUNT: one in a folder */
    bool hashed;                    /* its name says its hash */
    unsigned char hash[HASH_BYTES]; /* this */

    struct buf manifest;
    uint64_t left_out;
    int folder_fd; /* of the data folder; -1: only looking */
    int fd;        /* of the part being written, -1: none */
};

/* ---- one part ---- */

static const char *part_name(const struct restore *restore)
{
    return restore->part < PART_COUNT ? part_table[restore->part].name : restore->last;
}

/* Of many small files each is not brought to disk by itself: publish does it for all. */
static enum err part_close(struct restore *restore, struct fault *reterr)
{
    if (restore->fd < 0) return OK;
    int bad = restore->part < PART_COUNT ? fsync(restore->fd) : 0;
    bad |= close(restore->fd);
    restore->fd = -1;
    return bad ? io_fault(reterr, part_name(restore), "written") : OK;
}

static enum err restore_main_create(struct restore *restore, int folder, const char *name,
                                    struct fault *reterr)
{
    restore->fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return restore->fd < 0 ? io_fault(reterr, name, "created") : OK;
}

static enum err no_such_part(str name, struct fault *reterr)
{
    return fault(reterr, ERR_BAD_REQUEST, "a backup of ours has no such part \"%s\"",
                 say(name).text);
}

/* blobs/<bucket>/<path>, and what its path says. */
static bool take_object(struct restore *restore, str name)
{
    str path = str_drop(name, sizeof BLOBS_PREFIX - 1), bucket = str_split(&path, '/');
    bool known = false;
    for (size_t i = 0; i < COUNT(buckets); i++) known = known || str_eq(bucket, str_c(buckets[i]));
    restore->hashed = true;
    return known && path.p && blob_path_hash(path, restore->hash);
}

static enum err foldered_part(struct restore *restore, str name, struct fault *reterr)
{
    bool object = str_starts(name, STR(BLOBS_PREFIX));
    bool spool = str_starts(name, STR(SPOOL_PREFIX));
    restore->part = PART_COUNT;
    if (name.len >= PART_NAME_BYTES || (!object && !spool) ||
        (object && !take_object(restore, name)) ||
        (spool && str_find_char(str_drop(name, sizeof SPOOL_PREFIX - 1), '/') >= 0))
        return no_such_part(name, reterr);
    char last[PART_NAME_BYTES];
    snprintf(last, sizeof last, "%.*s", STR_ARG(name));
    if (strcmp(restore->last, last) >= 0)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: %s does not come in order",
                     last);
    memcpy(restore->last, last, sizeof last);
    struct tree *tree = &restore->trees[object ? TREE_BLOBS : TREE_SPOOL];
    tree->files++;
    if (restore->folder_fd < 0) return OK;
    if (tree->staging < 0)
        return fault(reterr, ERR_BAD_REQUEST, "the backup changed while it was being read");
    /* Below the staging folder, which only we write to; with the folders on the way. */
    const char *below = object ? last + sizeof BLOBS_PREFIX - 1 : last;
    for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
        char folder[PART_NAME_BYTES];
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - below), below);
        if (mkdirat(tree->staging, folder, 0700) && errno != EEXIST)
            return io_fault(reterr, folder, "created");
    }
    return restore_main_create(restore, tree->staging, below, reterr);
}

static enum err on_part(void *arg, str name, uint64_t size, struct fault *reterr)
{
    struct restore *restore = arg;
    enum err e = part_close(restore, reterr);
    if (e) return e;
    restore->hashed = false;
    if (str_find_char(name, '/') >= 0) return foldered_part(restore, name, reterr);

    unsigned part = 0;
    while (part < PART_COUNT && !str_eq(name, str_c(part_table[part].name))) part++;
    if (part == PART_COUNT || restore->found[part]) return no_such_part(name, reterr);
    restore->found[part] = true;
    restore->part = (enum part_id)part;
    if (part == PART_MANIFEST && size > BACKUP_MANIFEST_BYTES_MAX)
        return fault(reterr, ERR_BAD_REQUEST, MANIFEST_NAME " is too long");
    if (restore->folder_fd < 0 || !part_table[part].file) return OK;
    char unfinished[64];
    snprintf(unfinished, sizeof unfinished, "%s" WHILE_RESTORING, part_table[part].name);
    return restore_main_create(restore, restore->folder_fd, unfinished, reterr);
}

static enum err on_bytes(void *arg, str bytes, struct fault *reterr)
{
    struct restore *restore = arg;
    if (restore->part == PART_MANIFEST) buf_append(&restore->manifest, bytes);
    if (restore->fd < 0 || write_all(restore->fd, bytes) == OK) return OK;
    return io_fault(reterr, part_name(restore), "written");
}

static enum err on_end(void *arg, const unsigned char hash[static HASH_BYTES], struct fault *reterr)
{
    struct restore *restore = arg;
    if (!restore->hashed || memcmp(hash, restore->hash, HASH_BYTES) == 0) return OK;
    return fault(reterr, ERR_BAD_REQUEST,
                 "the backup is damaged: the bytes of %s are not those that its name says",
                 part_name(restore));
}

static const struct archive_ops restore_ops = {
    .on_part = on_part, .on_bytes = on_bytes, .on_end = on_end};

/* ---- the archive ---- */

static enum err feed_file(struct archive_reader *reader, int fd, const char *path,
                          struct fault *reterr)
{
    AUTO(buf_done) struct buf piece;
    buf_init(&piece, BACKUP_PIECE_BYTES);
    char *room = buf_room(&piece, BACKUP_PIECE_BYTES);
    enum err e = OK;
    for (size_t len = BACKUP_PIECE_BYTES; !e && len == BACKUP_PIECE_BYTES;) {
        if (read_some(fd, room, BACKUP_PIECE_BYTES, &len)) return io_fault(reterr, path, "read");
        e = archive_feed(reader, (str){room, len}, reterr);
    }
    crypto_wipe(room, BACKUP_PIECE_BYTES);
    return e ? e : archive_finish(reader, reterr);
}

/* The whole archive once; into the folders, if they are open. */
static enum err read_archive(struct restore *restore, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(restore->archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_fault(reterr, restore->archive, "read");
    memset(restore->found, 0, sizeof restore->found);
    for (size_t i = 0; i < TREE_COUNT; i++) restore->trees[i].files = 0;
    restore->last[0] = '\0';
    buf_clear(&restore->manifest);
    AUTO(archive_reader_freep)
    struct archive_reader *reader = archive_reader_new(&restore_ops, restore);
    enum err e = feed_file(reader, fd, restore->archive, reterr);
    enum err closed = part_close(restore, e ? NULL : reterr);
    if (e || closed) return e ? e : closed;
    for (size_t i = 0; i < PART_COUNT; i++)
        if (part_table[i].required && !restore->found[i])
            return fault(reterr, ERR_BAD_REQUEST, "the backup has no %s", part_table[i].name);
    return OK;
}

static enum err check_manifest(struct restore *restore, struct fault *reterr)
{
    struct json *manifest = NULL;
    uint64_t format = 0;
    int64_t schema = 0;
    if (json_parse(restore->arena, buf_str(&restore->manifest), &manifest, NULL) ||
        json_u64(json_get(manifest, STR("format")), &format) ||
        json_i64(json_get(manifest, STR("schema")), &schema))
        return fault(reterr, ERR_BAD_REQUEST, MANIFEST_NAME " of the backup says nothing we know");
    const struct json *left_out = json_get(manifest, STR("leftOut")); /* not in format 1 */
    if (left_out && json_u64(left_out, &restore->left_out))
        return fault(reterr, ERR_BAD_REQUEST, MANIFEST_NAME " of the backup says nothing we know");
    if (format <= MANIFEST_FORMAT && schema <= migrate_latest()) return OK;
    return fault(reterr, ERR_CONFIG,
                 "the backup was made by version %s, which is newer than this one (" FERMATA_VERSION
                 "): restore it with that version",
                 say(json_text(json_get(manifest, STR("version")))).text);
}

/* ---- folders ---- */

static void dir_closep(DIR **dir)
{
    if (*dir) closedir(*dir);
}

/* The lock file is ours and there already; the others come with a file system or a former start. */
static enum err check_empty(const char *folder, const char *setting, struct fault *reterr)
{
    static const char *const expected[] = {".", "..", "fermata.lock", "lost+found", ".new"};
    AUTO(dir_closep) DIR *dir = opendir(folder);
    if (!dir) return io_fault(reterr, folder, "read");
    for (struct dirent *entry; (entry = readdir(dir));) {
        bool known = false;
        for (size_t i = 0; i < COUNT(expected); i++)
            known = known || strcmp(entry->d_name, expected[i]) == 0;
        if (!known)
            return fault(reterr, ERR_BUSY,
                         "%s is not empty (it has %s): move it away, or restore into another "
                         "folder (%s)",
                         folder, say(str_c(entry->d_name)).text, setting);
    }
    return OK;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static DIR *list_folder(int at, const char *name)
{
    int fd = open_folder(at, name);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir) close(fd);
    return dir;
}

/* The next name in it, but for "." and ".."; NULL: that was the last. */
static const char *next_name(DIR *dir)
{
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    return NULL;
}

/* A folder with everything in it. `deep` bounds the recursion: we make no folders that are deeper. */
static void remove_tree(int at, const char *name, int deep)
{
    AUTO(dir_closep) DIR *dir = deep > 0 ? list_folder(at, name) : NULL;
    for (const char *entry; dir && (entry = next_name(dir));)
        if (unlinkat(dirfd(dir), entry, 0)) remove_tree(dirfd(dir), entry, deep - 1);
    unlinkat(at, name, AT_REMOVEDIR);
}

enum { TREE_DEPTH = 5 }; /* .restoring, bucket, two digits, object; and one to spare */

/* The folder of a tree, empty, with a staging folder in it. */
static enum err tree_open(struct tree *tree, const char *setting, struct fault *reterr)
{
    if (mkdir(tree->folder, 0700) == 0)
        tree->made = true;
    else if (errno != EEXIST)
        return io_fault(reterr, tree->folder, "created");
    enum err e = check_empty(tree->folder, setting, reterr);
    if (!e) e = private_folder_open(tree->folder, &tree->root, reterr);
    if (e) return e;
    if (mkdirat(tree->root, WHILE_RESTORING, 0700)) return io_fault(reterr, tree->folder, "used");
    tree->staging = open_folder(tree->root, WHILE_RESTORING);
    return tree->staging < 0 ? io_fault(reterr, tree->folder, "used") : OK;
}

/* ---- all of it ---- */

static void undo(const struct restore *restore)
{
    static const char *const endings[] = {WHILE_RESTORING, "", "-wal", "-shm"};
    char name[64];
    for (size_t i = 0; i < PART_COUNT * COUNT(endings); i++) {
        snprintf(name, sizeof name, "%s%s", part_table[i / COUNT(endings)].name,
                 endings[i % COUNT(endings)]);
        unlinkat(restore->folder_fd, name, 0);
    }
    /* What there is of the trees, in its place or not; the folders had nothing of these names. */
    for (const struct tree *tree = restore->trees; tree < restore->trees + TREE_COUNT; tree++) {
        if (tree->root >= 0) {
            remove_tree(tree->root, WHILE_RESTORING, TREE_DEPTH);
            remove_tree(tree->root, "spool", TREE_DEPTH);
            for (size_t i = 0; i < COUNT(buckets); i++)
                remove_tree(tree->root, buckets[i], TREE_DEPTH);
        }
        if (tree->made) rmdir(tree->folder);
    }
}

/* Everything in its place and on disk: the trees with files, folders and names at once, then every part
 * under its own name. The database last: with it the folder is an installation. */
static enum err restore_main_publish(const struct restore *restore, struct fault *reterr)
{
    for (const struct tree *tree = restore->trees; tree < restore->trees + TREE_COUNT; tree++) {
        if (tree->staging < 0) continue;
        bool well = !syncfs(tree->staging);
        AUTO(dir_closep) DIR *dir = well ? list_folder(tree->root, WHILE_RESTORING) : NULL;
        for (const char *name; dir && well && (name = next_name(dir));)
            well = renameat(tree->staging, name, tree->root, name) == 0;
        if (!dir || !well || unlinkat(tree->root, WHILE_RESTORING, AT_REMOVEDIR) ||
            syncfs(tree->root))
            return io_fault(reterr, tree->folder, "written");
    }
    for (size_t i = PART_COUNT; i-- > 0;) {
        char name[64];
        if (!part_table[i].file || !restore->found[i]) continue;
        snprintf(name, sizeof name, "%s" WHILE_RESTORING, part_table[i].name);
        if (renameat(restore->folder_fd, name, restore->folder_fd, part_table[i].name))
            return io_fault(reterr, name, "renamed");
    }
    return fsync(restore->folder_fd) ? io_fault(reterr, restore->data, "synced") : OK;
}

static enum err restore_into(struct restore *restore, struct fault *reterr)
{
    struct tree *blobs = &restore->trees[TREE_BLOBS], *spool = &restore->trees[TREE_SPOOL];
    struct store *store = NULL;
    /* The data folder is looked at before the folder of objects is made in it. */
    enum err e = check_empty(restore->data, "FERMATA_DATA", reterr);
    if (!e) e = private_folder_open(restore->data, &restore->folder_fd, reterr);
    if (!e && spool->files) e = tree_open(spool, "FERMATA_DATA", reterr);
    if (!e && blobs->files) e = tree_open(blobs, "FERMATA_BLOB_URL", reterr);
    if (!e) e = read_archive(restore, reterr);
    if (!e) e = check_manifest(restore, reterr);
    if (!e) e = restore_main_publish(restore, reterr);
    /* The database opens, and is brought up to date if it is older than we are. */
    if (!e) e = store_open(restore->data, NULL, &store, reterr);
    store_close(store);
    if (e && restore->folder_fd >= 0) undo(restore);
    return e;
}

static void restore_done(struct restore *restore)
{
    buf_done(&restore->manifest);
    for (size_t i = 0; i < TREE_COUNT; i++) {
        fd_closep(&restore->trees[i].staging);
        fd_closep(&restore->trees[i].root);
    }
    fd_closep(&restore->folder_fd);
    fd_closep(&restore->fd);
}

int restore_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(lock_freep) struct lock *lock = NULL;
    AUTO(restore_done)
    struct restore restore = {
        .arena = arena,
        .archive = args->operand.p,
        .data = config->data.p,
        .trees = {[TREE_BLOBS] = {.folder = blob_folder(config_blobs(config, arena)),
                                  .root = -1,
                                  .staging = -1},
                  [TREE_SPOOL] = {.folder = config->data.p, .root = -1, .staging = -1}},
        .folder_fd = -1,
        .fd = -1};
    buf_init(&restore.manifest, BACKUP_MANIFEST_BYTES_MAX);
    struct fault why = {0};
    enum err e = read_archive(&restore, &why);
    if (!e) e = check_manifest(&restore, &why);
    const struct tree *blobs = &restore.trees[TREE_BLOBS];
    if (!e && blobs->files && !blobs->folder)
        e = fault(&why, ERR_CONFIG, "objects can only be restored into a folder");
    if (!e) e = lock_take(config->data.p, "restore", &lock, &why);
    if (!e) e = restore_into(&restore, &why);
    if (e) return home_failed(&why);
    fprintf(stderr, "Restored into %s.\n", restore.data);
    if (blobs->files)
        fprintf(stderr, "%llu objects are in %s.\n", (unsigned long long)blobs->files,
                blobs->folder);
    if (restore.left_out)
        fprintf(stderr, "%llu files were missing when the backup was made, and still are.\n",
                (unsigned long long)restore.left_out);
    if (!restore.found[PART_SECRET])
        fprintf(stderr, "The backup holds no secret: give the server the file it had "
                        "(FERMATA_SECRET_FILE) before it starts.\n");
    return EXIT_OK;
}

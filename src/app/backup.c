/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata backup FILE` and `fermata restore FILE`.
 *
 * A backup is an archive (store/archive.h) of these parts:
 *
 *     fermata.db      the database at one moment
 *     secret.key      the installation's secret; missing if it is kept elsewhere
 *     manifest.json   {"format","version","schema","createdAt"}
 *     SHA256SUMS      made by the archive
 *
 * The running server is asked for nothing but the copy of the database, beside FILE and under
 * another name; everything else is done by this process, so a backup costs the server no more than
 * that read. FILE appears whole, on disk, or not at all.
 *
 * Restoring reads the archive twice. The first time nothing is written: whatever is wrong with it
 * is found then. The second time the parts are written, under other names; they get their own when
 * every hash was right again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands.h"
#include "app/home.h"
#include "app/say.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/limits.h"
#include "store/archive.h"
#include "store/copy.h"
#include "store/lock.h"
#include "store/migrate.h"
#include "store/private.h"
#include "store/secret.h"

#define MANIFEST_NAME "manifest.json"

enum { MANIFEST_FORMAT = 1 };

static int failed(const struct fault *why)
{
    fprintf(stderr, "fermata: %s\n", why->text);
    return EXIT_FAILED;
}

static enum err io_fault(struct fault *reterr, const char *path, const char *what)
{
    int error = errno;
    return fault(reterr, error == ENOSPC || error == EDQUOT ? ERR_STORAGE_FULL : ERR_IO,
                 "%s cannot be %s: %s", path, what, strerror(error));
}

static enum err write_all(int fd, str bytes)
{
    while (bytes.len) {
        ssize_t n = write(fd, bytes.p, bytes.len);
        if (n < 0 && errno != EINTR) return ERR_IO;
        if (n > 0) bytes = str_drop(bytes, (size_t)n);
    }
    return OK;
}

/* Up to `size` bytes; fewer only at the end of the file. */
static enum err read_some(int fd, char *out, size_t size, size_t *ret_len)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, out + len, size - len);
        if (n == 0) break;
        if (n < 0 && errno != EINTR) return ERR_IO;
        if (n > 0) len += (size_t)n;
    }
    *ret_len = len;
    return OK;
}

/* ---- backup ---- */

struct backup {
    struct home home;
    const struct config *config;
    const char *folder, *file; /* of the archive; absolute */
    const char *part, *copy;   /* the archive and the database while they are being made */
    int fd;                    /* of the archive */
    msec now;
    int64_t schema;
    uint64_t bytes; /* of the archive */
};

/* What was not finished goes. */
static void backup_done(struct backup *backup)
{
    if (backup->fd >= 0) close(backup->fd);
    if (backup->part) unlink(backup->part);
    if (backup->copy) unlink(backup->copy);
    home_done(&backup->home);
}

/* Absolute, because the server may stand in another folder. */
static enum err name_files(struct backup *backup, str operand, struct fault *reterr)
{
    struct arena *arena = backup->home.arena;
    const char *slash = memrchr(operand.p, '/', operand.len);
    size_t folder_len = slash ? (size_t)(slash - operand.p) + 1 : 0;
    str base = str_drop(operand, folder_len);
    const char *folder = folder_len ? arena_cstr(arena, (str){operand.p, folder_len}) : ".";
    if (!base.len || str_eq(base, STR(".")) || str_eq(base, STR("..")))
        return fault(reterr, ERR_BAD_REQUEST, "\"%s\" is no name of a file", say(operand).text);
    char absolute[PATH_MAX], id[ID_BYTES];
    if (!realpath(folder, absolute)) return io_fault(reterr, folder, "used");
    id_random(id);
    backup->folder = arena_cstr(arena, str_c(absolute));
    backup->file = arena_printf(arena, "%s/%.*s", absolute, STR_ARG(base)).p;
    backup->part = arena_printf(arena, "%s.%s.part", backup->file, id).p;
    backup->copy = arena_printf(arena, "%s.%s.db", backup->file, id).p;
    if (faccessat(AT_FDCWD, backup->file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return fault(reterr, ERR_BUSY, "%s is there already: choose another name", backup->file);
    return OK;
}

/* Before the lock is taken, because taking it would make the folder. */
static enum err check_there(const char *folder, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, STORE_DATABASE_NAME, F_OK, 0) == 0) return OK;
    return fault(reterr, ERR_NOT_FOUND, "there is nothing to save: %s has no database", folder);
}

static enum err ask_for_copy(struct backup *backup, struct fault *reterr)
{
    AUTO(buf_done) struct buf body;
    struct json_writer w;
    buf_init(&body, 4 * PATH_MAX);
    json_write_begin(&w, &body);
    json_object(&w);
    json_member(&w, STR("path"), str_c(backup->copy));
    json_object_end(&w);
    struct json *answer = NULL;
    enum err e = home_ask(&backup->home,
                          &(struct home_request){.method = "POST",
                                                 .path = "/backup",
                                                 .body = buf_str(&body),
                                                 .answer_ms = BACKUP_COPY_MS_MAX},
                          &answer, reterr);
    if (e) return e;
    if (json_i64(json_get(answer, STR("schema")), &backup->schema))
        return fault(reterr, ERR_NETWORK, "the running server gave an answer nobody knows");
    return OK;
}

static enum err copy_database(struct backup *backup, struct fault *reterr)
{
    if (!backup->home.lock) return ask_for_copy(backup, reterr);
    return copy_folder(backup->home.folder, backup->copy, &backup->schema, reterr);
}

static enum err put(void *arg, str bytes)
{
    struct backup *backup = arg;
    backup->bytes += bytes.len;
    return write_all(backup->fd, bytes);
}

static enum err put_file(struct archive_writer *writer, const char *name, int fd, uint64_t size)
{
    enum err e = archive_part(writer, str_c(name), size);
    char *piece = malloc(BACKUP_PIECE_BYTES);
    if (!piece) abort();
    while (size && !e) {
        size_t want = size < BACKUP_PIECE_BYTES ? (size_t)size : BACKUP_PIECE_BYTES, len = 0;
        e = read_some(fd, piece, want, &len);
        if (!e && len < want) e = ERR_IO; /* it became shorter */
        if (!e) e = archive_bytes(writer, (str){piece, len});
        size -= len;
    }
    crypto_wipe(piece, BACKUP_PIECE_BYTES); /* the secret was in it */
    free(piece);
    return e;
}

static enum err put_path(struct archive_writer *writer, const char *name, const char *path,
                         struct fault *reterr)
{
    struct stat st;
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st)) return io_fault(reterr, path, "read");
    enum err e = put_file(writer, name, fd, (uint64_t)st.st_size);
    return e ? io_fault(reterr, name, "saved") : OK;
}

static enum err put_manifest(struct archive_writer *writer, const struct backup *backup)
{
    AUTO(buf_done) struct buf text;
    struct json_writer w;
    char time[RFC3339_BYTES];
    clock_rfc3339(backup->now, time);
    buf_init(&text, BACKUP_MANIFEST_BYTES_MAX);
    json_write_begin(&w, &text);
    json_object(&w);
    json_key(&w, STR("format"));
    json_number_u64(&w, MANIFEST_FORMAT);
    json_member(&w, STR("version"), STR(FERMATA_VERSION));
    json_key(&w, STR("schema"));
    json_number_i64(&w, backup->schema);
    json_member(&w, STR("createdAt"), str_c(time));
    json_object_end(&w);
    buf_char(&text, '\n');
    enum err e = archive_part(writer, STR(MANIFEST_NAME), text.len);
    return e ? e : archive_bytes(writer, buf_str(&text));
}

static enum err write_archive(struct backup *backup, struct fault *reterr)
{
    backup->fd = open(backup->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (backup->fd < 0) return io_fault(reterr, backup->part, "created");
    AUTO(archive_writer_freep)
    struct archive_writer *writer = archive_writer_new(put, backup, backup->now);
    enum err e = put_path(writer, STORE_DATABASE_NAME, backup->copy, reterr);
    bool own_key = backup->config->secret_file.len == 0;
    str key = arena_printf(backup->home.arena, "%s/" SECRET_KEY_NAME, backup->home.folder);
    if (!e && own_key) e = put_path(writer, SECRET_KEY_NAME, key.p, reterr);
    if (e) return e;
    e = put_manifest(writer, backup);
    if (!e) e = archive_end(writer);
    return e || fsync(backup->fd) ? io_fault(reterr, backup->part, "written") : OK;
}

/* Under its own name, unless somebody took that meanwhile; and the name on disk. Not every file
 * system can rename so: there the look at the beginning has to do. */
static enum err publish(struct backup *backup, struct fault *reterr)
{
    int bad = renameat2(AT_FDCWD, backup->part, AT_FDCWD, backup->file, RENAME_NOREPLACE);
    if (bad && errno == EINVAL) bad = rename(backup->part, backup->file);
    if (bad) return io_fault(reterr, backup->file, "created");
    AUTO(fd_closep) int fd = open(backup->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd)) return io_fault(reterr, backup->folder, "synced");
    return OK;
}

int backup_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(backup_done)
    struct backup backup = {.home = {.folder = config->data.p, .arena = arena},
                            .config = config,
                            .fd = -1,
                            .now = clock_wall(&clock_system)};
    struct fault why = {0};
    enum err e = name_files(&backup, args->operand, &why);
    if (!e) e = check_there(config->data.p, &why);
    if (!e) e = home_lock(&backup.home, &why);
    if (!e) e = copy_database(&backup, &why);
    if (!e) e = write_archive(&backup, &why);
    if (!e) e = publish(&backup, &why);
    if (e) return failed(&why);
    fprintf(stderr, "Saved to %s, %llu bytes.\n%s\n", backup.file, (unsigned long long)backup.bytes,
            config->secret_file.len
                ? "The secret is in a file of its own and not in the backup: save it, too."
                : "It holds the secret of this installation: keep it where nobody else can read.");
    return EXIT_OK;
}

/* ---- restore ---- */

/* The parts there may be, in any order, each once. */
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

struct restore {
    struct arena *arena;
    const char *archive; /* its path */
    bool found[PART_COUNT];
    enum part_id part; /* the one that is being read */
    struct buf manifest;
    int folder_fd; /* -1: only looking */
    int fd;        /* of the part being written, -1: none */
};

static enum err part_close(struct restore *restore, struct fault *reterr)
{
    if (restore->fd < 0) return OK;
    int bad = fsync(restore->fd);
    bad |= close(restore->fd);
    restore->fd = -1;
    return bad ? io_fault(reterr, part_table[restore->part].name, "written") : OK;
}

static enum err part_open(struct restore *restore, struct fault *reterr)
{
    char name[64];
    snprintf(name, sizeof name, "%s" WHILE_RESTORING, part_table[restore->part].name);
    restore->fd = openat(restore->folder_fd, name,
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return restore->fd < 0 ? io_fault(reterr, name, "created") : OK;
}

static enum err on_part(void *arg, str name, uint64_t size, struct fault *reterr)
{
    struct restore *restore = arg;
    unsigned part = 0;
    while (part < PART_COUNT && !str_eq(name, str_c(part_table[part].name))) part++;
    if (part == PART_COUNT || restore->found[part])
        return fault(reterr, ERR_BAD_REQUEST, "a backup of ours has no such part \"%s\"",
                     say(name).text);
    enum err e = part_close(restore, reterr);
    if (e) return e;
    restore->found[part] = true;
    restore->part = (enum part_id)part;
    if (part == PART_MANIFEST && size > BACKUP_MANIFEST_BYTES_MAX)
        return fault(reterr, ERR_BAD_REQUEST, MANIFEST_NAME " is too long");
    bool write = restore->folder_fd >= 0 && part_table[part].file;
    return write ? part_open(restore, reterr) : OK;
}

static enum err on_bytes(void *arg, str bytes, struct fault *reterr)
{
    struct restore *restore = arg;
    if (restore->part == PART_MANIFEST) buf_append(&restore->manifest, bytes);
    if (restore->fd < 0 || write_all(restore->fd, bytes) == OK) return OK;
    return io_fault(reterr, part_table[restore->part].name, "written");
}

static const struct archive_ops restore_ops = {.on_part = on_part, .on_bytes = on_bytes};

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

/* The whole archive once; into the folder, if that is open. */
static enum err read_archive(struct restore *restore, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(restore->archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_fault(reterr, restore->archive, "read");
    memset(restore->found, 0, sizeof restore->found);
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

static enum err check_manifest(const struct restore *restore, struct fault *reterr)
{
    struct json *manifest = NULL;
    uint64_t format = 0;
    int64_t schema = 0;
    if (json_parse(restore->arena, buf_str(&restore->manifest), &manifest, NULL) ||
        json_u64(json_get(manifest, STR("format")), &format) ||
        json_i64(json_get(manifest, STR("schema")), &schema))
        return fault(reterr, ERR_BAD_REQUEST, MANIFEST_NAME " of the backup says nothing we know");
    if (format == MANIFEST_FORMAT && schema <= migrate_latest()) return OK;
    return fault(reterr, ERR_CONFIG,
                 "the backup was made by version %s, which is newer than this one (" FERMATA_VERSION
                 "): restore it with that version",
                 say(json_text(json_get(manifest, STR("version")))).text);
}

static void dir_closep(DIR **dir)
{
    if (*dir) closedir(*dir);
}

/* The lock file is ours, and there already. */
static enum err check_empty(const char *folder, struct fault *reterr)
{
    static const char *const expected[] = {".", "..", "fermata.lock"};
    AUTO(dir_closep) DIR *dir = opendir(folder);
    if (!dir) return io_fault(reterr, folder, "read");
    for (struct dirent *entry; (entry = readdir(dir));) {
        bool known = false;
        for (size_t i = 0; i < COUNT(expected); i++)
            known = known || strcmp(entry->d_name, expected[i]) == 0;
        if (!known)
            return fault(reterr, ERR_BUSY,
                         "%s is not empty (it has %s): move it away, or restore into another "
                         "folder (FERMATA_DATA)",
                         folder, say(str_c(entry->d_name)).text);
    }
    return OK;
}

static void remove_parts(const struct restore *restore)
{
    static const char *const endings[] = {WHILE_RESTORING, "", "-wal", "-shm"};
    char name[64];
    for (size_t i = 0; i < PART_COUNT * COUNT(endings); i++) {
        snprintf(name, sizeof name, "%s%s", part_table[i / COUNT(endings)].name,
                 endings[i % COUNT(endings)]);
        unlinkat(restore->folder_fd, name, 0);
    }
}

/* Every part under its own name, and the names on disk. */
static enum err rename_parts(const struct restore *restore, struct fault *reterr)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        char name[64];
        if (!part_table[i].file || !restore->found[i]) continue;
        snprintf(name, sizeof name, "%s" WHILE_RESTORING, part_table[i].name);
        if (renameat(restore->folder_fd, name, restore->folder_fd, part_table[i].name))
            return io_fault(reterr, name, "renamed");
    }
    return fsync(restore->folder_fd) ? io_fault(reterr, "the data folder", "synced") : OK;
}

/* It opens, and is brought up to date if it is older than we are. */
static enum err check_opens(const char *folder, struct fault *reterr)
{
    struct store *store = NULL;
    enum err e = store_open(folder, NULL, &store, reterr);
    store_close(store);
    return e;
}

static enum err restore_into(struct restore *restore, const char *folder, struct fault *reterr)
{
    enum err e = check_empty(folder, reterr);
    if (!e) e = private_folder_open(folder, &restore->folder_fd, reterr);
    if (e) return e;
    e = read_archive(restore, reterr);
    if (!e) e = check_manifest(restore, reterr);
    if (!e) e = rename_parts(restore, reterr);
    if (!e) e = check_opens(folder, reterr);
    if (e) remove_parts(restore);
    return e;
}

static void restore_done(struct restore *restore)
{
    buf_done(&restore->manifest);
    fd_closep(&restore->folder_fd);
    fd_closep(&restore->fd);
}

int restore_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(lock_freep) struct lock *lock = NULL;
    AUTO(restore_done)
    struct restore restore = {
        .arena = arena, .archive = args->operand.p, .folder_fd = -1, .fd = -1};
    buf_init(&restore.manifest, BACKUP_MANIFEST_BYTES_MAX);
    struct fault why = {0};
    enum err e = read_archive(&restore, &why);
    if (!e) e = check_manifest(&restore, &why);
    if (!e) e = lock_take(config->data.p, &lock, &why);
    if (!e) e = restore_into(&restore, config->data.p, &why);
    if (e) return failed(&why);
    fprintf(stderr, "Restored into %s.\n", config->data.p);
    if (!restore.found[PART_SECRET])
        fprintf(stderr, "The backup holds no secret: give the server the file it had "
                        "(FERMATA_SECRET_FILE) before it starts.\n");
    return EXIT_OK;
}

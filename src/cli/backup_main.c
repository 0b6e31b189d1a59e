/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata backup FILE`: everything of an installation (the database, the files it names, the
 * secret) as one archive, whose parts are listed in backup_io.h.
 *
 * The running server is asked for a copy of the database, beside FILE and under another name, and to
 * hold its objects from then on until it is told that the backup has ended. Everything else is done
 * by this process, so a backup costs the server no more than that read. FILE appears whole, on disk,
 * or not at all.
 *
 * What is saved are the files that the copy names, and no others. So an object that came later, or
 * that nothing needs any more, is not in the archive, and one that is missing is noticed: without
 * --partial that is a failure, because storage that is not mounted looks the same. A spool file may
 * have become an object since the copy was made; then it is saved from there.
 *
 * Memory: a piece of a file. The list of hashes waits in a file of its own until the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/say.h"
#include "cli/backup_io.h"
#include "cli/home.h"
#include "config/commands.h"
#include "store/blob/blob.h"
#include "store/db/archive.h"
#include "store/db/copy.h"
#include "store/db/private.h"
#include "store/db/secret.h"
#include "store/table/named.h"

struct backup {
    struct home home;
    const struct config *config;
    bool partial;              /* go on without what is missing or damaged */
    const char *folder, *file; /* of the archive; absolute */
    const char *part, *copy;   /* the archive and the database while they are being made */
    const char *lines;         /* of the list of hashes */
    const char *blobs;         /* folder of the objects; NULL: not known yet */
    int fd, lines_fd;          /* of the archive, of the list */
    bool held;                 /* the server holds its objects for us */
    msec now;
    int64_t schema;
    uint64_t bytes; /* of the archive */
    uint64_t files, left_out;
    struct archive_writer *writer;
    char *piece; /* of a file, BACKUP_PIECE_BYTES */
};

/* What was not finished goes. */
static void backup_done(struct backup *backup)
{
    archive_writer_free(backup->writer);
    if (backup->piece) crypto_wipe(backup->piece, BACKUP_PIECE_BYTES); /* the secret was in it */
    free(backup->piece);
    fd_closep(&backup->fd);
    fd_closep(&backup->lines_fd);
    if (backup->part) unlink(backup->part);
    if (backup->copy) unlink(backup->copy);
    if (backup->lines) unlink(backup->lines);
    /* Should this fail, the hold ends by itself. */
    struct json *answer;
    if (backup->held)
        (void)!home_ask(&backup->home,
                        &(struct home_request){.method = "DELETE", .path = "/backup"}, &answer,
                        NULL);
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
    backup->lines = arena_printf(arena, "%s.%s.sums", backup->file, id).p;
    if (faccessat(AT_FDCWD, backup->file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return fault(reterr, ERR_BUSY, "%s is there already: choose another name", backup->file);
    return OK;
}

/* Where a server runs, it makes the copy, and says where its objects are. */
static enum err copy_database(struct backup *backup, struct fault *reterr)
{
    if (backup->home.lock) {
        backup->blobs = blob_folder(config_blobs(backup->config, backup->home.arena));
        if (!backup->blobs)
            return fault(reterr, ERR_CONFIG, "objects that are not in a folder cannot be saved");
        return copy_folder(backup->home.folder, backup->copy, &backup->schema, reterr);
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 4 * PATH_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("path"), str_c(backup->copy));
    json_object_end(&doc.w);
    struct json *answer = NULL;
    enum err e = home_ask(&backup->home,
                          &(struct home_request){.method = "POST",
                                                 .path = "/backup",
                                                 .body = buf_str(&doc.buf),
                                                 .answer_ms = BACKUP_COPY_MS_MAX},
                          &answer, reterr);
    if (e) return e;
    backup->held = true;
    str blobs = json_text(json_get(answer, STR("blobs")));
    if (json_i64(json_get(answer, STR("schema")), &backup->schema) || !blobs.len)
        return fault(reterr, ERR_NETWORK, "the running server gave an answer nobody knows");
    backup->blobs = arena_cstr(backup->home.arena, blobs);
    return OK;
}

/* ---- the archive ---- */

static enum err on_write(void *arg, str bytes)
{
    struct backup *backup = arg;
    backup->bytes += bytes.len;
    return write_all(backup->fd, bytes);
}

static enum err on_line(void *arg, str line)
{
    return write_all(((struct backup *)arg)->lines_fd, line);
}

static const struct archive_sink sink = {.write = on_write, .line = on_line};

/* All of the file, from its beginning, as bytes of the part at work. */
static enum err put_bytes(struct backup *backup, int fd, uint64_t size)
{
    enum err e = lseek(fd, 0, SEEK_SET) < 0 ? ERR_IO : OK;
    while (size && !e) {
        size_t want = size < BACKUP_PIECE_BYTES ? (size_t)size : BACKUP_PIECE_BYTES, len = 0;
        errno = 0;
        e = read_some(fd, backup->piece, want, &len);
        if (!e && len < want) e = ERR_IO; /* it became shorter */
        if (!e) e = archive_bytes(backup->writer, (str){backup->piece, len});
        size -= len;
    }
    return e;
}

static enum err put_file(struct backup *backup, const char *name, int fd, uint64_t size,
                         struct fault *reterr)
{
    enum err e = archive_part(backup->writer, str_c(name), size);
    if (!e) e = put_bytes(backup, fd, size);
    if (e == ERR_TOO_LARGE)
        return fault(reterr, e, "there are more than %d files", ARCHIVE_PARTS_MAX);
    return e ? io_fault(reterr, name, "saved") : OK;
}

static enum err put_path(struct backup *backup, const char *name, const char *path,
                         struct fault *reterr)
{
    struct stat st;
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st)) return io_fault(reterr, path, "read");
    return put_file(backup, name, fd, (uint64_t)st.st_size, reterr);
}

static enum err put_manifest(struct backup *backup)
{
    AUTO(json_doc_done) struct json_doc doc;
    char time[RFC3339_BYTES];
    clock_rfc3339(backup->now, time);
    json_doc_open(&doc, BACKUP_MANIFEST_BYTES_MAX);
    json_object(&doc.w);
    json_member_u64(&doc.w, STR("format"), MANIFEST_FORMAT);
    json_member(&doc.w, STR("version"), STR(FERMATA_VERSION));
    json_member_i64(&doc.w, STR("schema"), backup->schema);
    json_member(&doc.w, STR("createdAt"), str_c(time));
    json_member_u64(&doc.w, STR("files"), backup->files);
    json_member_u64(&doc.w, STR("leftOut"), backup->left_out);
    json_object_end(&doc.w);
    buf_char(&doc.buf, '\n');
    enum err e = archive_part(backup->writer, STR(MANIFEST_NAME), doc.buf.len);
    return e ? e : archive_bytes(backup->writer, buf_str(&doc.buf));
}

/* ---- objects and spool files ---- */

/* Missing or damaged. */
static enum err leave_out(struct backup *backup, const char *name, const char *why,
                          struct fault *reterr)
{
    if (!backup->partial)
        return fault(reterr, ERR_DAMAGED,
                     "%s %s, so nothing was saved. Bring the storage back, or use --partial "
                     "to save everything else",
                     name, why);
    if (backup->left_out++ < BACKUP_NAMED_MAX)
        fprintf(stderr, "fermata: %s %s, and is left out\n", name, why);
    return OK;
}

/* A plain file; ERR_NOT_FOUND if there is none. */
static enum err open_plain(const char *path, int *ret_fd, uint64_t *ret_size, struct fault *reterr)
{
    struct stat st;
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool there = fd >= 0 || (errno != ENOENT && errno != ELOOP && errno != ENOTDIR);
    if (!there) return ERR_NOT_FOUND;
    if (fd < 0 || fstat(fd, &st)) return io_fault(reterr, path, "read");
    if (!S_ISREG(st.st_mode)) return ERR_NOT_FOUND;
    *ret_size = (uint64_t)st.st_size;
    *ret_fd = fd;
    fd = -1;
    return OK;
}

/* ERR_DAMAGED if the bytes have another hash. */
static enum err check_hash(struct backup *backup, int fd, const unsigned char *hash)
{
    unsigned char found[HASH_BYTES];
    struct crypto_hash *sum = crypto_hash_new();
    enum err e = OK;
    for (size_t len = BACKUP_PIECE_BYTES; !e && len == BACKUP_PIECE_BYTES;) {
        e = read_some(fd, backup->piece, BACKUP_PIECE_BYTES, &len);
        if (!e) crypto_hash_add(sum, (str){backup->piece, len});
    }
    crypto_hash_take(sum, found);
    crypto_hash_free(sum);
    if (e) return e;
    return memcmp(found, hash, HASH_BYTES) == 0 ? OK : ERR_DAMAGED;
}

/* Where the file is: its own place, or that of the object which it has become. */
static enum err open_named(struct backup *backup, const struct named_file *file, int *ret_fd,
                           uint64_t *ret_size, struct fault *reterr)
{
    char path[PATH_MAX];
    enum err e = ERR_NOT_FOUND;
    if (file->spool.len) {
        snprintf(path, sizeof path, "%s/" SPOOL_PREFIX "%.*s", backup->home.folder,
                 STR_ARG(file->spool));
        e = open_plain(path, ret_fd, ret_size, reterr);
    }
    if (e != ERR_NOT_FOUND || !file->path.len) return e;
    snprintf(path, sizeof path, "%s/%.*s/%.*s", backup->blobs, STR_ARG(file->bucket),
             STR_ARG(file->path));
    return open_plain(path, ret_fd, ret_size, reterr);
}

static enum err put_named(void *arg, const struct named_file *file, struct fault *reterr)
{
    struct backup *backup = arg;
    char name[PART_NAME_BYTES];
    unsigned char hash[HASH_BYTES], written[HASH_BYTES];
    int len = file->spool.len
                  ? snprintf(name, sizeof name, SPOOL_PREFIX "%.*s", STR_ARG(file->spool))
                  : snprintf(name, sizeof name, BLOBS_PREFIX "%.*s/%.*s", STR_ARG(file->bucket),
                             STR_ARG(file->path));
    bool known = file->path.len && blob_path_hash(file->path, hash);
    if (len >= (int)sizeof name || !archive_name_valid(str_c(name)) || (file->path.len && !known))
        return fault(reterr, ERR_DAMAGED, "the database names a file \"%s\" that cannot be one",
                     say(str_c(name)).text);

    AUTO(fd_closep) int fd = -1;
    uint64_t size = 0;
    enum err e = open_named(backup, file, &fd, &size, reterr);
    if (e == ERR_NOT_FOUND) return leave_out(backup, name, "is missing", reterr);
    if (!e && known) e = check_hash(backup, fd, hash);
    if (e == ERR_DAMAGED) return leave_out(backup, name, "is damaged", reterr);
    if (e) return e == ERR_IO ? io_fault(reterr, name, "read") : e;
    e = put_file(backup, name, fd, size, reterr);
    if (e) return e;
    archive_hash(backup->writer, written);
    if (known && memcmp(written, hash, HASH_BYTES) != 0)
        return fault(reterr, ERR_DAMAGED, "%s changed while it was being saved", name);
    backup->files++;
    return OK;
}

static enum err backup_main_create(const char *path, int flags, int *ret_fd, struct fault *reterr)
{
    *ret_fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *ret_fd < 0 ? io_fault(reterr, path, "created") : OK;
}

static enum err write_archive(struct backup *backup, struct fault *reterr)
{
    enum err e = backup_main_create(backup->part, O_WRONLY, &backup->fd, reterr);
    if (!e) e = backup_main_create(backup->lines, O_RDWR, &backup->lines_fd, reterr);
    if (e) return e;
    backup->piece = malloc(BACKUP_PIECE_BYTES);
    if (!backup->piece) abort();
    backup->writer = archive_writer_new(&sink, backup, backup->now);
    e = put_path(backup, STORE_DATABASE_NAME, backup->copy, reterr);
    if (!e) e = named_each(backup->copy, backup->schema, put_named, backup, reterr);
    bool own_key = backup->config->secret_file.len == 0;
    str key = arena_printf(backup->home.arena, "%s/" SECRET_KEY_NAME, backup->home.folder);
    if (!e && own_key) e = put_path(backup, SECRET_KEY_NAME, key.p, reterr);
    if (e) return e;
    struct stat st;
    e = put_manifest(backup);
    if (!e && fstat(backup->lines_fd, &st)) e = ERR_IO;
    if (!e) e = archive_list(backup->writer);
    if (!e) e = put_bytes(backup, backup->lines_fd, (uint64_t)st.st_size);
    if (!e) e = archive_end(backup->writer);
    return e || fsync(backup->fd) ? io_fault(reterr, backup->part, "written") : OK;
}

/* Under its own name, unless somebody took that meanwhile; and the name on disk. Not every file
 * system can rename so: there the look at the beginning has to do. */
static enum err backup_main_publish(struct backup *backup, struct fault *reterr)
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
    struct backup backup = {.home = {.folder = config->data.p, .command = "backup", .arena = arena},
                            .config = config,
                            .partial = args->partial,
                            .fd = -1,
                            .lines_fd = -1,
                            .now = clock_wall(&clock_system)};
    struct fault why = {0};
    enum err e = name_files(&backup, args->operand, &why);
    if (!e) e = home_there(&backup.home, "save", &why);
    if (!e) e = home_lock(&backup.home, &why);
    if (!e) e = copy_database(&backup, &why);
    if (!e) e = write_archive(&backup, &why);
    if (!e) e = backup_main_publish(&backup, &why);
    if (e) return home_failed(&why);
    if (backup.left_out)
        fprintf(stderr, "%llu files are missing or damaged and are not in the backup.\n",
                (unsigned long long)backup.left_out);
    fprintf(stderr, "Saved to %s, %llu bytes.\n%s\n", backup.file, (unsigned long long)backup.bytes,
            config->secret_file.len
                ? "The secret is in a file of its own and not in the backup: save it, too."
                : "It holds the secret of this installation: keep it where nobody else can read.");
    return EXIT_OK;
}

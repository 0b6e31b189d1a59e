/* SPDX-License-Identifier: Apache-2.0
 *
 * Object storage on real folders, and what can go wrong with them.
 */
#include "store/blob/blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"

enum { PATIENCE_MS = 60 * 1000, PATH_ROOM = 512 };

struct world {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct timer *guard;
    struct blobs *blobs;
    int left; /* jobs that will tell their end */
    size_t failures, limited;
    enum err err;
    char reason[sizeof((struct fault *)0)->text];
    char *bytes; /* that a get brought */
    size_t len;
    int fd;
    uint64_t fd_len;
    char names[4096]; /* that a list brought: "bucket/path " each */
    size_t name_count;
    char last_bucket[BLOB_BUCKET_BYTES], last_path[BLOB_PATH_BYTES];
    bool more;
};

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static void reopen(struct world *world)
{
    struct fault fault = {0};
    blobs_close(world->blobs);
    if (blobs_open(world->loop, path_in(world->folder, "blobs"), &world->blobs, &fault))
        fail_msg("blobs_open: %s", fault.text);
}

static int setup(void **state)
{
    static struct world world;
    world = (struct world){.loop = loop_new(), .fd = -1};
    folder_make(world.folder);
    world.guard = timer_new(world.loop, on_guard, NULL);
    reopen(&world);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    blobs_close(world->blobs);
    timer_free(world->guard);
    loop_free(world->loop);
    free(world->bytes);
    folder_remove(world->folder);
    return 0;
}

/* ---- one job, and its end ---- */

static void ended(struct world *world, enum err e, const struct fault *reason)
{
    world->err = e;
    world->failures += e != OK;
    world->limited += e == ERR_RATE_LIMITED;
    assert_int_equal(reason->err, e);
    snprintf(world->reason, sizeof world->reason, "%s", reason->text);
    if (--world->left == 0) loop_stop(world->loop);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    ended(arg, e, reason);
}

static void on_got(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct world *world = arg;
    free(world->bytes);
    world->bytes = malloc(bytes.len + 1);
    assert_non_null(world->bytes);
    if (bytes.len) memcpy(world->bytes, bytes.p, bytes.len);
    world->len = bytes.len;
    if (e) assert_int_equal(bytes.len, 0);
    ended(world, e, reason);
}

static void on_opened(void *arg, enum err e, int fd, uint64_t len, const struct fault *reason)
{
    struct world *world = arg;
    world->fd = fd;
    world->fd_len = len;
    assert_int_equal(e == OK, fd >= 0);
    ended(world, e, reason);
}

static void on_listed(void *arg, enum err e, const struct blob_name *names, size_t count, bool more,
                      const struct fault *reason)
{
    struct world *world = arg;
    size_t at = 0;
    world->names[0] = '\0';
    world->name_count = count;
    world->more = more;
    for (size_t i = 0; i < count; i++) {
        if (at < sizeof world->names)
            at += (size_t)snprintf(world->names + at, sizeof world->names - at, "%.*s/%.*s ",
                                   STR_ARG(names[i].bucket), STR_ARG(names[i].path));
        snprintf(world->last_bucket, sizeof world->last_bucket, "%.*s", STR_ARG(names[i].bucket));
        snprintf(world->last_path, sizeof world->last_path, "%.*s", STR_ARG(names[i].path));
    }
    ended(world, e, reason);
}

static enum err wait_for(struct world *world, int jobs)
{
    world->left = jobs;
    timer_start(world->guard, PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
    assert_int_equal(world->left, 0);
    return world->err;
}

static const char *path_of(str bytes, const char *whose)
{
    static char path[BLOB_PATH_BYTES];
    unsigned char hash[HASH_BYTES];
    crypto_sha256(bytes, hash);
    blob_path(hash, str_c(whose), path);
    return path;
}

static enum err put(struct world *world, const char *path, str bytes)
{
    blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), bytes, on_done, world);
    return wait_for(world, 1);
}

static enum err put_file(struct world *world, const char *path, const char *file)
{
    blob_put_file(world->blobs, BUCKET_PAYLOADS, str_c(path), file, on_done, world);
    return wait_for(world, 1);
}

static enum err get_max(struct world *world, const char *path, size_t max)
{
    blob_get(world->blobs, BUCKET_PAYLOADS, str_c(path), max, on_got, world);
    return wait_for(world, 1);
}

static enum err get(struct world *world, const char *path)
{
    return get_max(world, path, 64 << 20);
}

static enum err open_it(struct world *world, const char *path)
{
    blob_open(world->blobs, BUCKET_PAYLOADS, str_c(path), on_opened, world);
    return wait_for(world, 1);
}

static enum err remove_it(struct world *world, const char *path)
{
    blob_remove(world->blobs, BUCKET_PAYLOADS, str_c(path), on_done, world);
    return wait_for(world, 1);
}

static void expect(struct world *world, const char *path, str bytes)
{
    if (get(world, path)) fail_msg("get: %s", world->reason);
    assert_int_equal(world->len, bytes.len);
    assert_int_equal(memcmp(world->bytes, bytes.p, bytes.len), 0);
    if (open_it(world, path)) fail_msg("open: %s", world->reason);
    assert_int_equal(world->fd_len, bytes.len);
    char *read_back = malloc(bytes.len + 1);
    assert_non_null(read_back);
    assert_int_equal(read(world->fd, read_back, bytes.len + 1), bytes.len); /* from its beginning */
    assert_int_equal(memcmp(read_back, bytes.p, bytes.len), 0);
    free(read_back);
    close(world->fd);
}

static void expect_failure(struct world *world, const char *path, enum err e, const char *words)
{
    assert_int_equal(get(world, path), e);
    assert_non_null(strstr(world->reason, words));
    assert_int_equal(open_it(world, path), e);
}

/* Where the object is. */
static const char *file_of(const struct world *world, const char *path)
{
    static char file[PATH_ROOM];
    snprintf(file, sizeof file, "%s/blobs/payloads/%s", world->folder, path);
    return file;
}

static void write_file(const char *file, str bytes)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    assert_int_equal(write(fd, bytes.p, bytes.len), bytes.len);
    assert_int_equal(close(fd), 0);
}

/* How many files are in the folder of unfinished ones. */
static int unfinished(const struct world *world)
{
    struct dirent **entries = NULL;
    int count = scandir(path_in(world->folder, "blobs/.new"), &entries, NULL, NULL);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    return count - 2;
}

/* ---- names ---- */

static void paths(void **state)
{
    (void)state;
    const char *path = path_of(STR("abc"), "call_1");
    assert_string_equal(
        path, "ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.call_1");
    unsigned char hash[HASH_BYTES], expected[HASH_BYTES];
    crypto_sha256(STR("abc"), expected);
    assert_true(blob_path_hash(str_c(path), hash));
    assert_memory_equal(hash, expected, HASH_BYTES);

    char longest[BLOB_WHOSE_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[BLOB_WHOSE_BYTES_MAX] = '\0';
    path = path_of(STR("abc"), longest);
    assert_int_equal(strlen(path), BLOB_PATH_BYTES - 1);
    assert_true(blob_path_hash(str_c(path), hash));

#define HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    static const char *const bad[] = {
        "",
        "ba/",
        "ba/" HEX,
        "ba/" HEX ".",
        "ba/" HEX "..",
        "ba/" HEX ".a.b",
        "ba/" HEX ".a/b",
        "ba/" HEX "./../x",
        "ba/" HEX ".a b",
        "ba/" HEX "/a",
        "bb/" HEX ".a",
        "../" HEX ".a",
        "ba." HEX ".a",
        HEX ".a",
        "BA/BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.a",
        "ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a.aa",
        "ba/bag816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.a",
        "ba/" HEX ".会",
    };
    memset(hash, 7, sizeof hash);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (blob_path_hash(str_c(bad[i]), hash)) fail_msg("taken: %s", bad[i]);
    assert_false(blob_path_hash((str){"ba/" HEX ".a\0b", 3 + 64 + 4}, hash));
    assert_int_equal(hash[0], 7);
}

static void bad_names(void **state)
{
    struct world *world = *state;
    static const char *const buckets[] = {"", "a.b", "..", "A", "a/b", "a b", "abcdefghijklmnopq"};
    const char *path = path_of(STR("x"), "call_1");
    for (size_t i = 0; i < COUNT(buckets); i++) {
        blob_put(world->blobs, str_c(buckets[i]), str_c(path), STR("x"), on_done, world);
        assert_int_equal(wait_for(world, 1), ERR_INVALID_FIELD);
        blob_get(world->blobs, str_c(buckets[i]), str_c(path), 1, on_got, world);
        assert_int_equal(wait_for(world, 1), ERR_INVALID_FIELD);
    }
    assert_int_equal(put(world, "../../escape", STR("x")), ERR_INVALID_FIELD);
    assert_int_equal(put_file(world, "../../escape", "/etc/passwd"), ERR_INVALID_FIELD);
    assert_int_equal(get(world, "../../fermata.db"), ERR_INVALID_FIELD);
    assert_int_equal(open_it(world, "../../fermata.db"), ERR_INVALID_FIELD);
    assert_int_equal(remove_it(world, "../../fermata.db"), ERR_INVALID_FIELD);
}

static void addresses(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *url, *refused; /* NULL: fine */
    } rows[] = {
        {"data/blobs", NULL},
        {"/var/blobs", NULL},
        {"./a:b", NULL},
        {"file:/var/blobs", NULL},
        {"file:blobs", NULL},
        {"FILE:///var/blobs", NULL},
        {"", "names no folder"},
        {"file:", "names no folder"},
        {"file://host/blobs", "names a host"},
        {"s3://bucket/x", "is no storage that this version knows"},
        {"s3:x", "is no storage that this version knows"},
        {"https://example.org", "is no storage that this version knows"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *refused = blob_url_check(str_c(rows[i].url));
        if (!refused != !rows[i].refused || (refused && !strstr(refused, rows[i].refused)))
            fail_msg("%s: %s", rows[i].url, refused ? refused : "taken");
    }
    struct blobs *none = NULL;
    struct fault fault = {0};
    assert_int_equal(blobs_open(world->loop, "s3://bucket/x", &none, &fault), ERR_CONFIG);
    assert_string_equal(fault.text, "object storage: \"s3://bucket/x\" is no storage that this "
                                    "version knows: it keeps objects in a folder");
    assert_null(none);
}

/* ---- there and back ---- */

static void there_and_back(void **state)
{
    struct world *world = *state;
    size_t len = 3 * BLOB_PIECE_BYTES + 17;
    char *large = malloc(len);
    assert_non_null(large);
    for (size_t i = 0; i < len; i++) large[i] = (char)(i * 31 + i / 977);
    const str contents[] = {{large, len}, STR("a\0b"), STR_EMPTY, STR("会议")};
    for (size_t i = 0; i < COUNT(contents); i++) {
        const char *path = path_of(contents[i], "call_1");
        assert_int_equal(get(world, path), ERR_NOT_FOUND);
        assert_int_equal(put(world, path, contents[i]), OK);
        expect(world, path, contents[i]);
        struct stat st;
        assert_int_equal(stat(file_of(world, path), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    struct stat st;
    assert_int_equal(stat(path_in(world->folder, "blobs"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path_in(world->folder, "blobs/payloads"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    reopen(world);
    const char *path = path_of(contents[0], "call_1");
    expect(world, path, contents[0]);
    assert_int_equal(get_max(world, path, len - 1), ERR_TOO_LARGE);
    assert_int_equal(get_max(world, path, len), OK);
    assert_int_equal(remove_it(world, path), OK);
    assert_int_equal(remove_it(world, path), OK);
    expect_failure(world, path, ERR_NOT_FOUND, "there is no object payloads/");
    assert_int_equal(unfinished(world), 0);
    struct blob_stats stats = blobs_stats(world->blobs);
    assert_int_equal(stats.gets, 6);
    assert_int_equal(stats.gets_failed, 3);
    assert_int_equal(stats.damaged, 0);
    free(large);
}

/* The same name again: nothing is written, but its age begins anew. */
static void twice(void **state)
{
    struct world *world = *state;
    struct stat first, second;
    const char *path = path_of(STR("abc"), "call_1");
    assert_int_equal(put(world, path, STR("abc")), OK);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, file_of(world, path), old, 0), 0);
    assert_int_equal(stat(file_of(world, path), &first), 0);
    assert_int_equal(put(world, path, STR("abc")), OK);
    assert_int_equal(stat(file_of(world, path), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(first.st_mtim.tv_sec, 1000);
    assert_true(second.st_mtim.tv_sec > 1000);
    assert_int_equal(put(world, path, STR("abd")), ERR_DAMAGED); /* other bytes, same name */
    expect(world, path, STR("abc"));
}

static void many_at_once(void **state)
{
    struct world *world = *state;
    enum { PUTS = 2000 };
    static char bytes[30 * 1000];
    memset(bytes, 'b', sizeof bytes);
    str whole = {bytes, sizeof bytes};
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(whole, "call_1"));
    for (int i = 0; i < PUTS; i++)
        blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), whole, on_done, world);
    assert_int_equal(wait_for(world, PUTS), OK);
    assert_int_equal(world->failures, 0);
    blob_list(world->blobs, (struct blob_name){0}, INT64_MAX, 10, on_listed, world);
    assert_int_equal(wait_for(world, 1), OK);
    assert_int_equal(world->name_count, 1);
    assert_int_equal(unfinished(world), 0);
    expect(world, path, whole);
    assert_int_equal(blobs_stats(world->blobs).puts, PUTS);
    assert_int_equal(blobs_stats(world->blobs).puts_failed, 0);
}

static void too_many_jobs(void **state)
{
    struct world *world = *state;
    const char *path = path_of(STR("x"), "call_1");
    for (int i = 0; i < BLOB_JOBS_MAX + 1; i++)
        blob_get(world->blobs, BUCKET_PAYLOADS, str_c(path), 1, on_got, world);
    wait_for(world, BLOB_JOBS_MAX + 1);
    assert_int_equal(world->failures, BLOB_JOBS_MAX + 1);
    assert_int_equal(world->limited, 1);
    assert_int_equal(put(world, path, STR("x")), OK);
}

/* What waits for storage that hangs is bounded in bytes, too. */
static void too_many_bytes(void **state)
{
    enum { PIECE = 16 * 1024 * 1024, FIT = BLOB_PUT_BYTES_MAX / PIECE };
    struct world *world = *state;
    char *bytes = calloc(1, PIECE);
    assert_non_null(bytes);
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of((str){bytes, PIECE}, "call_1"));
    for (int i = 0; i < FIT; i++)
        blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), (str){bytes, PIECE}, on_done, world);
    blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), STR("one more"), on_done, world);
    wait_for(world, FIT + 1);
    free(bytes);
    assert_int_equal(world->failures, 1);
    assert_int_equal(world->limited, 1);
    assert_int_equal(put(world, path_of(STR("x"), "call_1"), STR("x")), OK); /* room again */
}

/* ---- files ---- */

static void from_files(void **state)
{
    struct world *world = *state;
    char file[PATH_ROOM], path[BLOB_PATH_BYTES];
    struct stat source, object;
    snprintf(file, sizeof file, "%s", path_in(world->folder, "source"));
    snprintf(path, sizeof path, "%s", path_of(STR("from a file"), "att_1"));
    write_file(file, STR("from a file"));
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, file, old, 0), 0);

    if (put_file(world, path, file)) fail_msg("%s", world->reason);
    expect(world, path, STR("from a file"));
    assert_int_equal(stat(file, &source), 0); /* it stays */
    assert_int_equal(stat(file_of(world, path), &object), 0);
    assert_int_equal(source.st_ino, object.st_ino); /* linked, not copied */
    assert_true(object.st_mtim.tv_sec > 1000);
    assert_int_equal(put_file(world, path, file), OK);
    assert_int_equal(unfinished(world), 0);
    assert_int_equal(remove_it(world, path), OK);
    assert_int_equal(stat(file, &source), 0);

    assert_int_equal(chmod(file, 0644), 0); /* others may read it: a copy, so that they may not */
    assert_int_equal(put_file(world, path, file), OK);
    expect(world, path, STR("from a file"));
    assert_int_equal(stat(file_of(world, path), &object), 0);
    assert_int_not_equal(source.st_ino, object.st_ino);
    assert_int_equal(object.st_mode & 07777, 0600);
}

/* /dev/shm is another file system than the temporary folder, where it is there. */
static void from_another_file_system(void **state)
{
    struct world *world = *state;
    char file[] = "/dev/shm/fermata-XXXXXX";
    struct stat here, there;
    int fd = mkstemp(file);
    if (fd < 0) skip();
    bool other =
        stat(world->folder, &here) == 0 && fstat(fd, &there) == 0 && here.st_dev != there.st_dev;
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(STR("from afar"), "att_1"));
    bool written = write(fd, "from afar", 9) == 9;
    enum err e = put_file(world, path, file), wrong;
    wrong = put_file(world, path_of(STR("something else"), "att_1"), file);
    unlink(file);
    close(fd);
    if (!other) skip();
    assert_true(written);
    assert_int_equal(e, OK);
    assert_int_equal(wrong, ERR_DAMAGED);
    assert_int_equal(unfinished(world), 0);
    expect(world, path, STR("from afar"));
}

static void from_bad_files(void **state)
{
    struct world *world = *state;
    char file[PATH_ROOM], link[PATH_ROOM], path[BLOB_PATH_BYTES];
    snprintf(file, sizeof file, "%s", path_in(world->folder, "source"));
    snprintf(link, sizeof link, "%s", path_in(world->folder, "link"));
    snprintf(path, sizeof path, "%s", path_of(STR("right"), "att_1"));
    assert_int_equal(put_file(world, path, file), ERR_NOT_FOUND);
    write_file(file, STR("wrong"));
    assert_int_equal(put_file(world, path, file), ERR_DAMAGED);
    assert_non_null(strstr(world->reason, "has not the bytes that object payloads/"));
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(put_file(world, path, file), ERR_DAMAGED); /* the same when it is copied */
    write_file(file, STR("right"));
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(put_file(world, path, link), ERR_IO);
    assert_int_equal(put_file(world, path, world->folder), ERR_IO);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_int_equal(put_file(world, path, link), ERR_IO); /* and does not wait for a writer */
    assert_int_equal(get(world, path), ERR_NOT_FOUND);
    assert_int_equal(unfinished(world), 0);
    assert_int_equal(put_file(world, path, file), OK);
}

/* ---- faults ---- */

static void damaged(void **state)
{
    struct world *world = *state;
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(STR("precious"), "call_1"));
    static const struct {
        const char *bytes; /* NULL: a link to a file with the right bytes */
    } rows[] = {{"Precious"}, {"precioux"}, {"preciou"}, {"precious "}, {""}, {NULL}};
    char right[PATH_ROOM];
    snprintf(right, sizeof right, "%s", path_in(world->folder, "right"));
    write_file(right, STR("precious"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(put(world, path, STR("precious")), OK);
        expect(world, path, STR("precious"));
        if (rows[i].bytes) {
            write_file(file_of(world, path), str_c(rows[i].bytes));
            expect_failure(world, path, ERR_DAMAGED, "is damaged: its bytes changed");
        } else {
            assert_int_equal(unlink(file_of(world, path)), 0);
            assert_int_equal(symlink(right, file_of(world, path)), 0);
            expect_failure(world, path, ERR_DAMAGED, "is no plain file");
        }
        assert_int_equal(put(world, path, STR("precious")), OK); /* mends it */
        expect(world, path, STR("precious"));
    }
    struct blob_stats stats = blobs_stats(world->blobs);
    assert_int_equal(stats.damaged, 3 * COUNT(rows)); /* seen by get, open and put */
    assert_int_equal(unfinished(world), 0);

    assert_int_equal(remove_it(world, path), OK);
    assert_int_equal(mkdir(file_of(world, path), 0700), 0);
    expect_failure(world, path, ERR_DAMAGED, "is no plain file");
    assert_int_equal(put(world, path, STR("precious")), ERR_IO);
    assert_int_equal(remove_it(world, path), ERR_IO);
    assert_int_equal(unfinished(world), 0);
}

/* A limit on the size of files stands for a disk that is full. */
static void full_disk(void **state)
{
    struct world *world = *state;
    struct rlimit before, small;
    static char bytes[100 * 1000];
    str whole = {bytes, sizeof bytes};
    char file[PATH_ROOM], path[BLOB_PATH_BYTES];
    snprintf(file, sizeof file, "%s", path_in(world->folder, "source"));
    snprintf(path, sizeof path, "%s", path_of(whole, "call_1"));
    write_file(file, whole);
    assert_int_equal(chmod(file, 0644), 0); /* to be copied */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50 * 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum err put_said = put(world, path, whole), file_said = put_file(world, path, file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(put_said, ERR_STORAGE_FULL);
    assert_int_equal(file_said, ERR_STORAGE_FULL);
    assert_non_null(strstr(world->reason, "cannot be written: "));
    assert_int_equal(unfinished(world), 0);
    assert_int_equal(get(world, path), ERR_NOT_FOUND);
    assert_int_equal(blobs_stats(world->blobs).puts_failed, 2);
    assert_int_equal(put(world, path, whole), OK);
}

/* Folders that are files, links, or gone. */
static void bad_folders(void **state)
{
    struct world *world = *state;
    char path[BLOB_PATH_BYTES], bucket[PATH_ROOM], folder[PATH_ROOM];
    snprintf(path, sizeof path, "%s", path_of(STR("x"), "call_1"));
    snprintf(bucket, sizeof bucket, "%s", path_in(world->folder, "blobs/payloads"));
    snprintf(folder, sizeof folder, "%s/%.2s", bucket, path);

    write_file(bucket, STR("a file in its place"));
    assert_int_equal(put(world, path, STR("x")), ERR_IO);
    assert_non_null(strstr(world->reason, "cannot be given its folder: "));
    assert_int_equal(get(world, path), ERR_IO);
    assert_int_equal(remove_it(world, path), ERR_IO);
    assert_int_equal(unlink(bucket), 0);

    assert_int_equal(symlink("/tmp", bucket), 0); /* leads out of the root */
    assert_int_equal(put(world, path, STR("x")), ERR_IO);
    assert_int_equal(unlink(bucket), 0);

    assert_int_equal(put(world, path, STR("x")), OK);
    assert_int_equal(unlink(file_of(world, path)), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(get(world, path), ERR_NOT_FOUND);
    assert_int_equal(put(world, path, STR("x")), OK); /* made again */
    expect(world, path, STR("x"));

    assert_int_equal(rmdir(path_in(world->folder, "blobs/.new")), 0);
    assert_int_equal(put(world, path_of(STR("y"), "call_1"), STR("y")), ERR_IO);
    assert_non_null(strstr(world->reason, "cannot be made: "));
    expect(world, path, STR("x")); /* what is there can be read */
    assert_int_equal(put(world, path, STR("x")), OK);
}

static void opening(void **state)
{
    struct world *world = *state;
    struct blobs *none = NULL;
    struct fault fault;
    write_file(path_in(world->folder, "blobs/.new/.put-7"), STR("half"));
    reopen(world);
    assert_int_equal(unfinished(world), 0);

    assert_int_equal(chmod(path_in(world->folder, "blobs"), 0755), 0);
    assert_int_equal(blobs_open(world->loop, path_in(world->folder, "blobs"), &none, &fault),
                     ERR_CONFIG);
    assert_non_null(strstr(fault.text, "chmod 700"));
    assert_int_equal(chmod(path_in(world->folder, "blobs"), 0700), 0);
    write_file(path_in(world->folder, "file"), STR(""));
    assert_int_equal(blobs_open(world->loop, path_in(world->folder, "file"), &none, &fault),
                     ERR_CONFIG);
    assert_int_equal(blobs_open(world->loop, path_in(world->folder, "no/such"), &none, &fault),
                     ERR_IO);
    assert_non_null(strstr(fault.text, "cannot be made: "));
    assert_null(none);
    blobs_close(NULL);
}

/* ---- changes behind our back, when the caches are warm ---- */

static long bytes_read(void)
{
    long count = -1;
    FILE *io = fopen("/proc/self/io", "re");
    if (!io) return -1;
    if (fscanf(io, "rchar: %ld", &count) != 1) count = -1;
    fclose(io);
    return count;
}

static void on_old(void *arg)
{
    loop_stop(((struct world *)arg)->loop);
}

static void warm_caches(void **state)
{
    struct world *world = *state;
    static char bytes[BLOB_CACHED_BYTES_MAX];
    memset(bytes, 'c', sizeof bytes);
    str whole = {bytes, sizeof bytes};
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(whole, "call_1"));
    assert_int_equal(put(world, path, whole), OK);
    struct timer *timer = timer_new(world->loop, on_old, world);
    timer_start(timer, BLOB_YOUNG_MS + 100); /* before that, nothing is remembered */
    loop_run(world->loop);
    timer_free(timer);

    assert_int_equal(get(world, path), OK);
    assert_int_equal(open_it(world, path), OK);
    close(world->fd);
    long before = bytes_read();
    assert_int_equal(get(world, path), OK);
    assert_int_equal(memcmp(world->bytes, bytes, sizeof bytes), 0);
    assert_int_equal(open_it(world, path), OK);
    close(world->fd);
    if (before >= 0) assert_in_range(bytes_read() - before, 0, sizeof bytes / 2);

    struct stat st;
    assert_int_equal(stat(file_of(world, path), &st), 0);
    int fd = open(file_of(world, path), O_WRONLY | O_CLOEXEC);
    assert_return_code(fd, errno);
    assert_int_equal(pwrite(fd, "C", 1, 1000), 1);
    struct timespec times[2] = {st.st_atim, st.st_mtim}; /* as if nothing had happened */
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
    expect_failure(world, path, ERR_DAMAGED, "is damaged");
    assert_int_equal(unlink(file_of(world, path)), 0);
    expect_failure(world, path, ERR_NOT_FOUND, "there is no object");
    assert_int_equal(put(world, path, whole), OK);
    expect(world, path, whole);
    assert_int_equal(remove_it(world, path), OK);
    expect_failure(world, path, ERR_NOT_FOUND, "there is no object");
}

/* ---- listing and sweeping ---- */

static void listing(void **state)
{
    struct world *world = *state;
    enum { OBJECTS = 300 };
    for (int i = 0; i < OBJECTS; i++) {
        char bytes[20];
        snprintf(bytes, sizeof bytes, "object %d", i % 150); /* several in one folder */
        blob_put(world->blobs, i < 150 ? BUCKET_PAYLOADS : BUCKET_ATTACHMENTS,
                 str_c(path_of(str_c(bytes), i % 3 ? "call_1" : "call_2")), str_c(bytes), on_done,
                 world);
    }
    assert_int_equal(wait_for(world, OBJECTS), OK);
    write_file(path_in(world->folder, "blobs/payloads/stray"), STR("x"));
    assert_int_equal(mkdir(path_in(world->folder, "blobs/lost+found"), 0700), 0);

    static const size_t limits[] = {1, 7, 149, 150, 151, 299, 300, 301, 5000};
    for (size_t i = 0; i < COUNT(limits); i++) {
        char bucket[BLOB_BUCKET_BYTES] = "", path[BLOB_PATH_BYTES] = "";
        size_t seen = 0, pages = 0;
        do {
            blob_list(world->blobs, (struct blob_name){str_c(bucket), str_c(path)}, INT64_MAX,
                      limits[i], on_listed, world);
            assert_int_equal(wait_for(world, 1), OK);
            assert_true(world->name_count <= limits[i] && world->name_count > 0);
            int order = strcmp(world->last_bucket, bucket);
            assert_true(order > 0 || (order == 0 && strcmp(world->last_path, path) > 0));
            snprintf(bucket, sizeof bucket, "%s", world->last_bucket);
            snprintf(path, sizeof path, "%s", world->last_path);
            seen += world->name_count;
            assert_true(++pages <= OBJECTS);
        } while (world->more);
        assert_int_equal(seen, OBJECTS);
        assert_int_equal(pages, (OBJECTS + limits[i] - 1) / limits[i]);
    }
}

static void ages(void **state)
{
    struct world *world = *state;
    char old[BLOB_PATH_BYTES], young[BLOB_PATH_BYTES];
    snprintf(old, sizeof old, "%s", path_of(STR("old"), "call_1"));
    snprintf(young, sizeof young, "%s", path_of(STR("young"), "call_1"));
    assert_int_equal(put(world, old, STR("old")), OK);
    assert_int_equal(put(world, young, STR("young")), OK);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, file_of(world, old), times, 0), 0);

    msec now = clock_wall(&clock_system);
    blob_list(world->blobs, (struct blob_name){0}, now - 60 * 1000, 10, on_listed, world);
    assert_int_equal(wait_for(world, 1), OK);
    char expected[300];
    snprintf(expected, sizeof expected, "payloads/%s ", old);
    assert_string_equal(world->names, expected);

    blob_sweep(world->blobs, BUCKET_PAYLOADS, str_c(young), now - 60 * 1000, on_done, world);
    assert_int_equal(wait_for(world, 1), OK);
    expect(world, young, STR("young"));
    assert_int_equal(put(world, old, STR("old")), OK); /* found there: it is young again */
    blob_sweep(world->blobs, BUCKET_PAYLOADS, str_c(old), now - 60 * 1000, on_done, world);
    assert_int_equal(wait_for(world, 1), OK);
    expect(world, old, STR("old"));
    assert_int_equal(blobs_stats(world->blobs).swept, 0);
    assert_int_equal(utimensat(AT_FDCWD, file_of(world, old), times, 0), 0);
    blob_sweep(world->blobs, BUCKET_PAYLOADS, str_c(old), now - 60 * 1000, on_done, world);
    assert_int_equal(wait_for(world, 1), OK);
    expect_failure(world, old, ERR_NOT_FOUND, "there is no object");
    assert_int_equal(blobs_stats(world->blobs).swept, 1);
}

/* While it is held nothing goes; holds count, and end by themselves. */
static void holding(void **state)
{
    struct world *world = *state;
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(STR("x"), "call_1"));
    assert_int_equal(put(world, path, STR("x")), OK);
    msec now = loop_now(world->loop);
    blobs_hold(world->blobs, now + PATIENCE_MS);
    blobs_hold(world->blobs, now + PATIENCE_MS);
    blobs_release(world->blobs);
    assert_int_equal(remove_it(world, path), OK);
    expect(world, path, STR("x"));
    blobs_release(world->blobs);
    assert_int_equal(remove_it(world, path), OK);
    expect_failure(world, path, ERR_NOT_FOUND, "there is no object");

    reopen(world); /* one that is over is as if released */
    assert_int_equal(put(world, path, STR("x")), OK);
    blobs_hold(world->blobs, loop_now(world->loop));
    assert_int_equal(remove_it(world, path), OK);
    expect_failure(world, path, ERR_NOT_FOUND, "there is no object");
    assert_null(blob_folder("s3:x"));
    assert_string_equal(blob_folder("file:/var/x"), "/var/x");
    assert_string_equal(blob_folder("x/y"), "x/y");
}

/* ---- nobody waits ---- */

static void forgetting(void **state)
{
    struct world *world = *state;
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(STR("x"), "call_1"));
    blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), STR("x"), NULL, NULL);
    blob_forget(blob_open(world->blobs, BUCKET_PAYLOADS, str_c(path), on_opened, NULL));
    blob_forget(blob_get(world->blobs, BUCKET_PAYLOADS, str_c(path), 1, on_got, NULL));
    blob_forget(blob_list(world->blobs, (struct blob_name){0}, INT64_MAX, 9, on_listed, NULL));
    assert_int_equal(put(world, path, STR("x")), OK);
    expect(world, path, STR("x"));
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* What is under way is finished, nobody is told, and no descriptor stays open. */
static void closing(void **state)
{
    struct world *world = *state;
    char path[BLOB_PATH_BYTES];
    snprintf(path, sizeof path, "%s", path_of(STR("x"), "call_1"));
    int before = descriptors();
    blob_put(world->blobs, BUCKET_PAYLOADS, str_c(path), STR("x"), on_done, NULL);
    for (int i = 0; i < 20; i++)
        blob_open(world->blobs, BUCKET_PAYLOADS, str_c(path), on_opened, NULL);
    blobs_close(TAKE(world->blobs));
    timer_free(TAKE(world->guard));
    loop_free(world->loop);
    assert_int_equal(access(file_of(world, path), F_OK), 0);
    world->loop = loop_new();
    world->guard = timer_new(world->loop, on_guard, NULL);
    reopen(world);
    assert_int_equal(descriptors(), before);
    expect(world, path, STR("x"));
}

#define WITH_BLOBS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int test_blob(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BLOBS(paths),
        WITH_BLOBS(bad_names),
        WITH_BLOBS(addresses),
        WITH_BLOBS(there_and_back),
        WITH_BLOBS(twice),
        WITH_BLOBS(many_at_once),
        WITH_BLOBS(too_many_jobs),
        WITH_BLOBS(too_many_bytes),
        WITH_BLOBS(from_files),
        WITH_BLOBS(from_bad_files),
        WITH_BLOBS(from_another_file_system),
        WITH_BLOBS(damaged),
        WITH_BLOBS(full_disk),
        WITH_BLOBS(bad_folders),
        WITH_BLOBS(opening),
        WITH_BLOBS(warm_caches),
        WITH_BLOBS(listing),
        WITH_BLOBS(ages),
        WITH_BLOBS(forgetting),
        WITH_BLOBS(closing),
        WITH_BLOBS(holding),
    };
    return cmocka_run_group_tests_name("store/blob", tests, NULL, NULL);
}

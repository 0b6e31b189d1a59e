/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/spool.h"

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

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/fixture.h"

enum { PATIENCE_MS = 60 * 1000 };

struct world {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct timer *guard;
    struct spool *spool;
    int left; /* jobs that will tell their end */
    enum err err;
    char reason[sizeof((struct fault *)0)->text];
};

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

static int setup(void **state)
{
    static struct world world;
    world = (struct world){.loop = loop_new()};
    folder_make(world.folder);
    world.guard = timer_new(world.loop, on_guard, NULL);
    struct fault fault = {0};
    if (spool_open(world.loop, world.folder, &world.spool, &fault))
        fail_msg("spool_open: %s", fault.text);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    spool_close(world->spool);
    timer_free(world->guard);
    loop_free(world->loop);
    folder_remove(world->folder);
    return 0;
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct world *world = arg;
    world->err = e;
    assert_int_equal(reason->err, e);
    snprintf(world->reason, sizeof world->reason, "%s", reason->text);
    if (--world->left == 0) loop_stop(world->loop);
}

static enum err wait_for(struct world *world)
{
    timer_start(world->guard, PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
    assert_int_equal(world->left, 0);
    return world->err;
}

static enum err write_now(struct world *world, const char *name, str bytes)
{
    world->left = 1;
    spool_write(world->spool, str_c(name), bytes, on_done, world);
    assert_int_equal(world->left, 1); /* never from inside */
    return wait_for(world);
}

static enum err remove_now(struct world *world, const char *name)
{
    world->left = 1;
    spool_remove(world->spool, str_c(name), on_done, world);
    return wait_for(world);
}

static void expect_file(struct world *world, const char *name, str bytes)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read = STR_EMPTY;
    assert_int_equal(spool_read(world->spool, &arena, str_c(name), &read, NULL), OK);
    assert_int_equal(read.len, bytes.len);
    assert_true(str_eq(read, bytes));
}

static void expect_none(struct world *world, const char *name)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read = STR("untouched");
    assert_int_equal(spool_read(world->spool, &arena, str_c(name), &read, NULL), ERR_NOT_FOUND);
    assert_str(read, STR("untouched"));
}

/* Names in the spool folder, sorted: "a b ". */
static const char *listed(const struct world *world)
{
    static char names[400];
    struct dirent **entries = NULL;
    names[0] = '\0';
    int count = scandir(path_in(world->folder, "spool"), &entries, NULL, alphasort);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        size_t len = strlen(names);
        if (strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, ".."))
            snprintf(names + len, sizeof names - len, "%s ", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

static void there_and_back(void **state)
{
    struct world *world = *state;
    AUTO(buf_done) struct buf large;
    buf_init(&large, 16 << 20);
    while (large.len < 3 * CALL_INLINE_BYTES_MAX) buf_printf(&large, "%zu,会议 ", large.len);
    assert_int_equal(write_now(world, "call_1", buf_str(&large)), OK);
    assert_int_equal(write_now(world, "call_2", STR("a\0b")), OK);
    assert_int_equal(write_now(world, "call_3", STR_EMPTY), OK);
    expect_file(world, "call_1", buf_str(&large));
    expect_file(world, "call_2", STR("a\0b"));
    expect_file(world, "call_3", STR_EMPTY);
    assert_string_equal(listed(world), "call_1 call_2 call_3 ");

    struct stat st;
    assert_int_equal(stat(path_in(world->folder, "spool/call_1"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(path_in(world->folder, "spool"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    assert_int_equal(write_now(world, "call_2", STR("new")), OK);
    expect_file(world, "call_2", STR("new"));
    assert_int_equal(remove_now(world, "call_2"), OK);
    assert_int_equal(remove_now(world, "call_2"), OK);
    expect_none(world, "call_2");
    assert_string_equal(listed(world), "call_1 call_3 ");
}

/* Many at a time, one of them without anybody waiting. */
static void at_the_same_time(void **state)
{
    struct world *world = *state;
    enum { FILES = 40 };
    char bytes[100];
    world->left = FILES;
    spool_write(world->spool, STR("alone"), STR("nobody waits"), NULL, NULL);
    for (int i = 0; i < FILES; i++) {
        char name[20];
        snprintf(name, sizeof name, "call_%d", i);
        snprintf(bytes, sizeof bytes, "what call %d brought", i);
        spool_write(world->spool, str_c(name), str_c(bytes), on_done, world);
        memset(bytes, 'x', sizeof bytes); /* copied */
    }
    assert_int_equal(wait_for(world), OK);
    for (int i = 0; i < FILES; i++) {
        char name[20];
        snprintf(name, sizeof name, "call_%d", i);
        snprintf(bytes, sizeof bytes, "what call %d brought", i);
        expect_file(world, name, str_c(bytes));
    }
    assert_int_equal(remove_now(world, "call_0"), OK);
    expect_file(world, "alone", STR("nobody waits"));
}

static void bad_names(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"", ".", "..", ".write-0", "a/b", "../a", "a b", "会"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(write_now(world, names[i], STR("x")), ERR_INVALID_FIELD);
        assert_int_equal(remove_now(world, names[i]), ERR_INVALID_FIELD);
        expect_none(world, names[i]);
    }
    assert_string_equal(listed(world), "");
}

/* A limit on the size of files stands for a disk that is full: nothing is left behind, and what was
 * there stays. */
static void full_disk(void **state)
{
    struct world *world = *state;
    struct rlimit before, small;
    char *bytes = calloc(1, 100 * 1000);
    assert_non_null(bytes);
    assert_int_equal(write_now(world, "call_1", STR("old")), OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50 * 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum err e = write_now(world, "call_1", (str){bytes, 100 * 1000});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(e, ERR_STORAGE_FULL);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be written: "));
    assert_string_equal(listed(world), "call_1 ");
    expect_file(world, "call_1", STR("old"));
    assert_int_equal(write_now(world, "call_1", (str){bytes, 100 * 1000}), OK);
    free(bytes);
}

static void no_descriptors(void **state)
{
    struct world *world = *state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    world->left = 1;
    spool_write(world->spool, STR("call_1"), STR("x"), on_done, world);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(wait_for(world), ERR_IO);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be reached: "));
    expect_none(world, "call_1");
    assert_int_equal(write_now(world, "call_1", STR("x")), OK);
}

/* The folder is removed under our feet. */
static void no_folder(void **state)
{
    struct world *world = *state;
    assert_int_equal(rmdir(path_in(world->folder, "spool")), 0);
    assert_int_equal(write_now(world, "call_1", STR("x")), ERR_IO);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be made: "));
    expect_none(world, "call_1");
}

static void not_a_file(void **state)
{
    struct world *world = *state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str read;
    assert_int_equal(symlink("/etc/passwd", path_in(world->folder, "spool/link")), 0);
    assert_int_equal(spool_read(world->spool, &arena, STR("link"), &read, NULL), ERR_IO);
    assert_int_equal(write_now(world, "link", STR("ours")), OK); /* replaces the link itself */
    expect_file(world, "link", STR("ours"));

    assert_int_equal(write_now(world, "sparse", STR("x")), OK);
    assert_int_equal(truncate(path_in(world->folder, "spool/sparse"), TOOL_RESULT_BYTES_MAX), 0);
    assert_int_equal(spool_read(world->spool, &arena, STR("sparse"), &read, NULL), OK);
    assert_int_equal(truncate(path_in(world->folder, "spool/sparse"), TOOL_RESULT_BYTES_MAX + 1),
                     0);
    assert_int_equal(spool_read(world->spool, &arena, STR("sparse"), &read, NULL), ERR_TOO_LARGE);
    assert_int_equal(mkdir(path_in(world->folder, "spool/folder"), 0700), 0);
    assert_int_equal(write_now(world, "folder", STR("x")), ERR_IO);
    assert_int_equal(remove_now(world, "folder"), ERR_IO);
    assert_string_equal(listed(world), "folder link sparse ");
}

/* ---- streams ---- */

struct sink {
    struct world *world;
    struct spool_stream *stream;
    uint64_t given, total; /* bytes of the pattern */
    size_t piece;          /* bytes at a time */
    size_t drained;        /* times */
    size_t full;           /* times found full */
    struct spool_file file;
};

static void pattern(char *out, size_t len, uint64_t from)
{
    for (size_t i = 0; i < len; i++) out[i] = (char)((from + i) * 131 + (from + i) / 4093);
}

static void on_end(void *arg, enum err e, const struct spool_file *file, const struct fault *reason)
{
    struct sink *sink = arg;
    if (!e) sink->file = *file;
    on_done(sink->world, e, reason);
}

/* Write on until it is full or all is given, then wait to be drained. */
static void feed(void *arg)
{
    struct sink *sink = arg;
    char piece[70 * 1000];
    while (sink->given < sink->total && !spool_stream_full(sink->stream)) {
        uint64_t left = sink->total - sink->given;
        size_t len = left < sink->piece ? (size_t)left : sink->piece;
        pattern(piece, len, sink->given);
        spool_stream_write(sink->stream, (str){piece, len});
        memset(piece, 'x', len); /* copied */
        sink->given += len;
        if (spool_stream_full(sink->stream)) sink->full++;
    }
    if (sink->given == sink->total) spool_stream_end(sink->stream, 0, UINT64_MAX, on_end, sink);
}

static void on_drained(void *arg)
{
    struct sink *sink = arg;
    sink->drained++;
    assert_false(spool_stream_full(sink->stream));
    if (sink->given < sink->total) feed(sink);
}

/* The file is the stretch of the pattern, and so says its hash. */
static void expect_pattern(struct world *world, const char *name, const struct spool_file *file,
                           uint64_t from, uint64_t len)
{
    char *bytes = malloc(len + 1);
    unsigned char hash[HASH_BYTES];
    assert_non_null(bytes);
    pattern(bytes, len, from);
    crypto_sha256((str){bytes, len}, hash);
    assert_int_equal(file->bytes, len);
    assert_memory_equal(file->hash, hash, HASH_BYTES);
    expect_file(world, name, (str){bytes, len});
    free(bytes);
}

static void stream_there(void **state)
{
    struct world *world = *state;
    static const struct {
        uint64_t total;
        size_t piece;
    } rows[] = {
        {0, 1}, {1, 1}, {1000, 7}, {SPOOL_STREAM_BYTES_MAX, 65536}, {5 * 1000 * 1000, 70 * 1000},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sink sink = {.world = world, .total = rows[i].total, .piece = rows[i].piece};
        sink.stream = spool_stream_new(world->spool, STR("call_1"), on_drained, &sink);
        world->left = 1;
        feed(&sink);
        assert_int_equal(world->left, 1);
        assert_int_equal(wait_for(world), OK);
        expect_pattern(world, "call_1", &sink.file, 0, rows[i].total);
        assert_in_range(sink.full - sink.drained, 0, 1); /* the last time its end came first */
        assert_true(rows[i].total < 1000 * 1000 || sink.full > 2);
        assert_string_equal(listed(world), "call_1 ");
        struct stat st;
        assert_int_equal(stat(path_in(world->folder, "spool/call_1"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

/* Every kind of stretch becomes the file. */
static void stream_stretches(void **state)
{
    struct world *world = *state;
    enum { TOTAL = 3 * SPOOL_PIECE_BYTES + 100 };
    static const struct {
        uint64_t from, len;
    } rows[] = {
        {0, UINT64_MAX},
        {0, TOTAL},
        {0, 0},
        {0, 10},
        {0, TOTAL - 1},
        {1, UINT64_MAX},
        {1, TOTAL - 2},
        {10, 2 * SPOOL_PIECE_BYTES},
        {SPOOL_PIECE_BYTES, SPOOL_PIECE_BYTES + 1},
        {TOTAL - 1, 1},
        {TOTAL, 0},
        {TOTAL, UINT64_MAX},
    };
    static char bytes[TOTAL];
    pattern(bytes, TOTAL, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sink sink = {.world = world};
        struct spool_stream *stream = spool_stream_new(world->spool, STR("call_1"), NULL, NULL);
        spool_stream_write(stream, (str){bytes, 1000});
        spool_stream_write(stream, STR_EMPTY);
        spool_stream_write(stream, (str){bytes + 1000, TOTAL - 1000});
        spool_stream_end(stream, rows[i].from, rows[i].len, on_end, &sink);
        world->left = 1;
        assert_int_equal(wait_for(world), OK);
        uint64_t len = rows[i].len == UINT64_MAX ? TOTAL - rows[i].from : rows[i].len;
        expect_pattern(world, "call_1", &sink.file, rows[i].from, len);
        assert_string_equal(listed(world), "call_1 ");
    }
}

static void on_stop(void *arg)
{
    loop_stop(((struct world *)arg)->loop);
}

/* Cut at any moment: nothing is left, and nobody is told. */
static void stream_aborts(void **state)
{
    struct world *world = *state;
    static char bytes[100 * 1000];
    pattern(bytes, sizeof bytes, 0);
    assert_int_equal(write_now(world, "keep", STR("old")), OK);
    for (int delay = -1; delay < 6; delay++)
        for (int pieces = 0; pieces < 4; pieces++)
            for (int ended = 0; ended < 2; ended++) {
                struct sink sink = {.world = world};
                struct spool_stream *stream =
                    spool_stream_new(world->spool, STR("call_1"), NULL, NULL);
                for (int i = 0; i < pieces; i++)
                    spool_stream_write(stream, (str){bytes, sizeof bytes});
                if (ended) spool_stream_end(stream, pieces ? 10 : 0, UINT64_MAX, on_end, &sink);
                world->left = 1;
                if (delay >= 0) {
                    struct timer *timer = timer_new(world->loop, on_stop, world);
                    timer_start(timer, delay);
                    timer_start(world->guard, PATIENCE_MS);
                    loop_run(world->loop); /* until then, or until it is done */
                    timer_stop(world->guard);
                    timer_free(timer);
                }
                bool done = world->left == 0; /* then it is too late */
                if (!done) spool_stream_abort(stream);
                assert_int_equal(remove_now(world, done ? "call_1" : "other"), OK);
                loop_settle(world->loop);
                spool_close(world->spool);
                timer_free(world->guard);
                loop_free(world->loop); /* lets all work end */
                assert_string_equal(listed(world), "keep ");
                world->loop = loop_new();
                world->guard = timer_new(world->loop, on_guard, NULL);
                assert_int_equal(spool_open(world->loop, world->folder, &world->spool, NULL), OK);
            }
    expect_file(world, "keep", STR("old"));
}

static void on_end_abort(void *arg, enum err e, const struct spool_file *file,
                         const struct fault *reason)
{
    struct sink *sink = arg;
    (void)file;
    spool_stream_abort(TAKE(sink->stream));
    on_done(sink->world, e, reason);
}

/* Aborted from inside its callbacks, and closed before it ended. */
static void abort_drained(void *arg)
{
    struct sink *sink = arg;
    spool_stream_abort(TAKE(sink->stream));
    loop_stop(sink->world->loop);
}

static void stream_callbacks(void **state)
{
    struct world *world = *state;
    static char bytes[SPOOL_STREAM_BYTES_MAX + 1];
    struct sink sink = {.world = world};
    sink.stream = spool_stream_new(world->spool, STR("call_1"), abort_drained, &sink);
    spool_stream_write(sink.stream, (str){bytes, sizeof bytes});
    assert_true(spool_stream_full(sink.stream));
    timer_start(world->guard, PATIENCE_MS);
    loop_run(world->loop);
    timer_stop(world->guard);
    assert_null(sink.stream);

    sink.stream = spool_stream_new(world->spool, STR("call_1"), NULL, NULL);
    spool_stream_end(sink.stream, 0, 0, on_end_abort, &sink);
    world->left = 1;
    assert_int_equal(wait_for(world), OK);

    struct spool_stream *whole = spool_stream_new(world->spool, STR("call_2"), NULL, NULL);
    spool_stream_write(whole, STR("whole"));
    spool_stream_end(whole, 0, UINT64_MAX, on_end, NULL); /* nobody is told after a close */
    struct spool_stream *cut = spool_stream_new(world->spool, STR("call_3"), NULL, NULL);
    spool_stream_write(cut, STR("cut"));
    spool_close(world->spool);
    spool_stream_abort(cut);
    timer_free(world->guard);
    loop_free(world->loop);
    assert_string_equal(listed(world), "call_2 ");
    world->loop = loop_new();
    world->guard = timer_new(world->loop, on_guard, NULL);
    assert_int_equal(spool_open(world->loop, world->folder, &world->spool, NULL), OK);
    expect_file(world, "call_2", STR("whole"));
}

static enum err stream_now(struct world *world, const char *name, str bytes)
{
    struct sink sink = {.world = world};
    struct spool_stream *stream = spool_stream_new(world->spool, str_c(name), NULL, NULL);
    for (size_t at = 0; at < bytes.len; at += 10 * 1000)
        spool_stream_write(stream, (str){bytes.p + at,
                                         bytes.len - at < 10 * 1000 ? bytes.len - at : 10 * 1000});
    spool_stream_end(stream, 0, UINT64_MAX, on_end, &sink);
    world->left = 1;
    return wait_for(world);
}

static void stream_faults(void **state)
{
    struct world *world = *state;
    static char bytes[100 * 1000];
    str whole = {bytes, sizeof bytes};
    static const char *const names[] = {"", ".", "..", ".stream-0", "a/b", "../a", "a b", "会"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(stream_now(world, names[i], whole), ERR_INVALID_FIELD);

    assert_int_equal(write_now(world, "call_1", STR("old")), OK);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 50 * 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum err e = stream_now(world, "call_1", whole);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(e, ERR_STORAGE_FULL);
    assert_non_null(strstr(world->reason, "spool file call_1 cannot be written: "));
    assert_string_equal(listed(world), "call_1 ");
    expect_file(world, "call_1", STR("old"));

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    small = before;
    small.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    struct sink sink = {.world = world};
    struct spool_stream *stream = spool_stream_new(world->spool, STR("call_2"), NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    spool_stream_end(stream, 0, UINT64_MAX, on_end, &sink);
    world->left = 1;
    assert_int_equal(wait_for(world), ERR_IO);
    assert_non_null(strstr(world->reason, "spool file call_2 cannot be reached: "));

    assert_int_equal(mkdir(path_in(world->folder, "spool/folder"), 0700), 0);
    assert_int_equal(stream_now(world, "folder", whole), ERR_IO);
    assert_string_equal(listed(world), "call_1 folder ");
    assert_int_equal(stream_now(world, "call_1", whole), OK); /* replaces it */
    expect_file(world, "call_1", whole);
    assert_int_equal(rmdir(path_in(world->folder, "spool/folder")), 0);
    assert_int_equal(remove_now(world, "call_1"), OK);
    assert_int_equal(rmdir(path_in(world->folder, "spool")), 0);
    assert_int_equal(stream_now(world, "call_1", whole), ERR_IO);
}

static void streams_at_the_same_time(void **state)
{
    struct world *world = *state;
    enum { STREAMS = 30 };
    struct sink sinks[STREAMS];
    char names[STREAMS][20];
    world->left = STREAMS;
    for (int i = 0; i < STREAMS; i++) {
        sinks[i] = (struct sink){.world = world, .total = 400 * 1000 + (uint64_t)i, .piece = 65536};
        snprintf(names[i], sizeof names[i], "call_%d", i);
        sinks[i].stream = spool_stream_new(world->spool, str_c(names[i]), on_drained, &sinks[i]);
        feed(&sinks[i]);
    }
    assert_int_equal(wait_for(world), OK);
    for (int i = 0; i < STREAMS; i++)
        expect_pattern(world, names[i], &sinks[i].file, 0, sinks[i].total);
}

/* ---- reading parts ---- */

static void ends(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *bytes;
        size_t max;
        const char *head, *tail;
    } rows[] = {
        {"", 4, "", ""},
        {"abc", 4, "abc", ""},
        {"abcdefgh", 4, "abcdefgh", ""},
        {"abcdefghi", 4, "abcd", "fghi"},
        {"abcdefghijklmnop", 3, "abc", "nop"},
        {"abc", 0, "", ""},
    };
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str head = STR("untouched"), tail = head;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(write_now(world, "call_1", str_c(rows[i].bytes)), OK);
        assert_int_equal(
            spool_ends(world->spool, &arena, STR("call_1"), rows[i].max, &head, &tail, NULL), OK);
        assert_str(head, str_c(rows[i].head));
        assert_str(tail, str_c(rows[i].tail));
    }
    head = tail = STR("untouched");
    assert_int_equal(spool_ends(world->spool, &arena, STR("none"), 4, &head, &tail, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(spool_ends(world->spool, &arena, STR("../x"), 4, &head, &tail, NULL),
                     ERR_NOT_FOUND);
    assert_str(head, STR("untouched"));

    const char *path = spool_path(world->spool, &arena, STR("call_1"));
    assert_string_equal(path, path_in(world->folder, "spool/call_1"));
}

/* ---- forgetting ---- */

static void forgetting(void **state)
{
    struct world *world = *state;
    struct spool_job *jobs[3];
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(jobs); i++)
        jobs[i] = spool_write(world->spool, str_c(names[i]), STR("x"), on_done, NULL);
    spool_forget(jobs[1]);
    spool_forget(jobs[0]);
    spool_forget(jobs[2]);
    assert_int_equal(write_now(world, "call_4", STR("x")), OK);
}

/* What is under way is finished, and nobody is told. */
static void closing(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(names); i++)
        spool_write(world->spool, str_c(names[i]), STR("x"), on_done, NULL);
    spool_close(world->spool);
    timer_free(world->guard);
    loop_free(world->loop);
    assert_string_equal(listed(world), "call_1 call_2 call_3 ");
    world->loop = loop_new();
    world->guard = timer_new(world->loop, on_guard, NULL);
    assert_int_equal(spool_open(world->loop, world->folder, &world->spool, NULL), OK);
}

/* ---- the start ---- */

static bool is_needed(void *arg, str name)
{
    ++*(int *)arg;
    return str_eq(name, STR("call_1")) || str_eq(name, STR("call_3"));
}

static void sweeping(void **state)
{
    struct world *world = *state;
    int asked = 0;
    size_t removed = 77;
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, NULL), OK);
    assert_int_equal(removed, 0);
    static const char *const names[] = {"call_1", "call_2", "call_3"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(write_now(world, names[i], STR("x")), OK);
    static const char *const strays[] = {"spool/.write-7", "spool/with space"};
    for (size_t i = 0; i < COUNT(strays); i++) {
        int fd = open(path_in(world->folder, strays[i]), O_WRONLY | O_CREAT, 0600);
        assert_return_code(fd, errno);
        close(fd);
    }
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, NULL), OK);
    assert_int_equal(removed, 3);
    assert_int_equal(asked, 3); /* only for names that a call could have */
    assert_string_equal(listed(world), "call_1 call_3 ");

    assert_int_equal(mkdir(path_in(world->folder, "spool/folder"), 0700), 0);
    struct fault fault;
    removed = 77;
    assert_int_equal(spool_sweep(world->spool, is_needed, &asked, &removed, &fault), ERR_IO);
    assert_non_null(strstr(fault.text, "folder cannot be removed"));
    assert_int_equal(removed, 77);
}

static void opening(void **state)
{
    struct world *world = *state;
    struct spool *again = NULL;
    struct fault fault;
    char too_long[5000];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    assert_int_equal(spool_open(world->loop, world->folder, &again, NULL), OK);
    spool_close(again);
    again = NULL;
    assert_int_equal(chmod(path_in(world->folder, "spool"), 0755), 0);
    assert_int_equal(spool_open(world->loop, world->folder, &again, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "chmod 700"));
    assert_int_equal(chmod(path_in(world->folder, "spool"), 0700), 0);
    assert_int_equal(spool_open(world->loop, "/nonexistent", &again, &fault), ERR_IO);
    assert_int_equal(spool_open(world->loop, too_long, &again, &fault), ERR_CONFIG);
    assert_null(again);
    spool_close(NULL);
}

#define WITH_SPOOL(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int test_spool(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SPOOL(there_and_back),
        WITH_SPOOL(at_the_same_time),
        WITH_SPOOL(bad_names),
        WITH_SPOOL(full_disk),
        WITH_SPOOL(no_descriptors),
        WITH_SPOOL(no_folder),
        WITH_SPOOL(not_a_file),
        WITH_SPOOL(forgetting),
        WITH_SPOOL(closing),
        WITH_SPOOL(sweeping),
        WITH_SPOOL(opening),
        WITH_SPOOL(stream_there),
        WITH_SPOOL(stream_stretches),
        WITH_SPOOL(stream_aborts),
        WITH_SPOOL(stream_callbacks),
        WITH_SPOOL(stream_faults),
        WITH_SPOOL(streams_at_the_same_time),
        WITH_SPOOL(ends),
    };
    return cmocka_run_group_tests_name("tool/spool", tests, NULL, NULL);
}

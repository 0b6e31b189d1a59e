/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that came inside a request, into a real folder.
 */
#include "thread/inline_files.h"

#include <string.h>

#include "check.h"
#include "net/loop.h"
#include "server/transfer.h"
#include "store/blob/blob.h"
#include "store/fixture.h"

enum { FILES_MAX = 3 };

struct world {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct blobs *blobs;
    struct transfers transfers;
    struct arena arena;
    struct inline_file files[FILES_MAX];
    struct inline_files list;
    int ended;
    enum err err;
    struct fault why;
    size_t objects;
};

static int setup(void **state)
{
    static struct world w;
    struct fault why = {0};
    w = (struct world){.loop = loop_new()};
    folder_make(w.folder);
    arena_init(&w.arena);
    if (blobs_open(w.loop, path_in(w.folder, "blobs"), &w.blobs, &why)) fail_msg("%s", why.text);
    w.list = (struct inline_files){.files = w.files, .bytes_max = 100};
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    blobs_close(w->blobs);
    loop_free(w->loop);
    arena_done(&w->arena);
    folder_remove(w->folder);
    return 0;
}

static void file_add(struct world *w, const char *base64)
{
    struct inline_file *file = &w->files[w->list.count];
    file->data = str_c(base64);
    file->field[0] = 'f';
    file->field[1] = (char)('0' + w->list.count++);
}

static void on_done(void *arg, enum err e, const struct fault *why)
{
    struct world *w = arg;
    w->ended++;
    w->err = e;
    if (why) w->why = *why;
    loop_stop(w->loop);
}

static void start(struct world *w)
{
    inline_files_put(&w->list,
                     &(struct inline_target){.loop = w->loop,
                                             .blobs = w->blobs,
                                             .transfers = &w->transfers,
                                             .arena = &w->arena},
                     on_done, w);
    assert_int_equal(w->ended, 0);
}

static void start_again(struct world *w)
{
    w->ended = 0;
    start(w);
    loop_run(w->loop);
}

static void on_listed(void *arg, enum err e, const struct blob_name *names, size_t count, bool more,
                      const struct fault *why)
{
    (void)names, (void)more, (void)why;
    assert_int_equal(e, OK);
    struct world *w = arg;
    w->objects = count;
    loop_stop(w->loop);
}

/* How many there are now. */
static size_t objects(struct world *w)
{
    w->objects = 99;
    blob_list(w->blobs, (struct blob_name){STR_EMPTY, STR_EMPTY}, INT64_MAX, 10, on_listed, w);
    loop_run(w->loop);
    return w->objects;
}

/* Removing has no end that one hears of. */
static void wait_for_objects(struct world *w, size_t count)
{
    enum { LOOKS_MAX = 100 * 1000 };
    for (int i = 0; i < LOOKS_MAX; i++)
        if (objects(w) == count) return;
    fail_msg("%zu objects, expected %zu", w->objects, count);
}

/* 1 x 1 */
#define PNG                                                                                       \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJ" \
    "ggg=="

static void stored(void **state)
{
    struct world *w = *state;
    file_add(w, PNG);
    file_add(w, "aGVsbG8K");
    start(w);
    loop_run(w->loop);
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->err, OK);
    assert_null(w->transfers.first);
    const struct attachment *png = &w->files[0].row, *text = &w->files[1].row;
    assert_str(png->mime, STR("image/png"));
    assert_int_equal(png->width, 1);
    assert_int_equal(png->height, 1);
    assert_int_equal(png->bytes, 70);
    assert_str(text->mime, STR("text/plain"));
    assert_int_equal(text->bytes, 6);
    assert_int_equal(text->width, 0);
    assert_str(text->sha256,
               STR("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"));
    assert_true(str_starts(png->id, STR("att_")) && !str_eq(png->id, text->id));
    assert_true(str_ends(text->path, text->id));
    assert_str(text->bucket, BUCKET_ATTACHMENTS);
    assert_int_equal(objects(w), 2);

    w->files[1].used = true; /* the other one goes */
    inline_files_drop(&w->list, w->blobs);
    wait_for_objects(w, 1);
    w->files[1].used = false;
    inline_files_drop(&w->list, w->blobs);
    inline_files_drop(&w->list, w->blobs);
    wait_for_objects(w, 0);
}

/* Bytes that nobody wrote as base64 are what they are. */
static void decoded(void **state)
{
    struct world *w = *state;
    file_add(w, "aGVsbG8K");
    file_add(w, "hello\n");
    w->files[1].decoded = true;
    start(w);
    loop_run(w->loop);
    assert_int_equal(w->err, OK);
    assert_str(w->files[1].row.sha256, w->files[0].row.sha256);
    assert_str(w->files[1].row.mime, STR("text/plain"));
    assert_int_equal(w->files[1].row.bytes, 6);
    assert_int_equal(objects(w), 2);

    w->list.count = 0;
    file_add(w, "");
    w->files[0].decoded = true;
    start_again(w);
    assert_int_equal(w->err, ERR_INVALID_FIELD);
    w->list.bytes_max = 5;
    w->files[0].data = STR("hello\n");
    start_again(w);
    assert_int_equal(w->err, ERR_TOO_LARGE);
}

static void refusals(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *base64;
        enum err err;
    } rows[] = {
        {"aGVsbG8", ERR_INVALID_FIELD},
        {"aGVs bG8K", ERR_INVALID_FIELD},
        {"", ERR_INVALID_FIELD},
        {"====", ERR_INVALID_FIELD},
        {"R0lGODlh//////AAAA==", ERR_TOO_LARGE}, /* a GIF that says 65535 x 65535 */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        w->list.count = 0;
        w->ended = 0;
        file_add(w, "aGVsbG8K");
        file_add(w, rows[i].base64);
        start(w);
        loop_run(w->loop);
        assert_int_equal(w->ended, 1);
        assert_int_equal(w->err, rows[i].err);
        assert_string_equal(w->why.field, "f1");
        assert_int_equal(objects(w), 0);
    }
}

static void how_large(void **state)
{
    struct world *w = *state;
    for (uint64_t max = 5; max <= 6; max++) {
        w->list.count = 0;
        w->ended = 0;
        w->list.bytes_max = max;
        file_add(w, "aGVsbG8K"); /* 6 bytes */
        start(w);
        loop_run(w->loop);
        assert_int_equal(w->err, max < 6 ? ERR_TOO_LARGE : OK);
        if (w->err) assert_string_equal(w->why.field, "f0");
    }
}

/* The process ends while files are under way: one answer, and nothing of the request is touched. */
static void stopped(void **state)
{
    struct world *w = *state;
    file_add(w, PNG);
    file_add(w, "aGVsbG8K");
    start(w);
    transfers_stop(&w->transfers);
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->err, ERR_SHUTTING_DOWN);
    memset(w->files, 0, sizeof w->files);
    objects(w); /* the loop goes on meanwhile */
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->files[0].row.bytes, 0);
}

static void stopped_while_putting(void **state)
{
    struct world *w = *state;
    for (int turns = 1; turns < 6; turns++) {
        w->list.count = 0;
        w->ended = 0;
        file_add(w, PNG);
        file_add(w, "aGVsbG8K");
        start(w);
        for (int i = 0; i < turns && !w->ended; i++) loop_settle(w->loop);
        transfers_stop(&w->transfers);
        assert_int_equal(w->ended, 1);
        objects(w);
        assert_int_equal(w->ended, 1);
    }
}

int test_inline_files(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stored, setup, teardown),
        cmocka_unit_test_setup_teardown(decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(how_large, setup, teardown),
        cmocka_unit_test_setup_teardown(stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(stopped_while_putting, setup, teardown),
    };
    return cmocka_run_group_tests_name("app/inline_files", tests, NULL, NULL);
}

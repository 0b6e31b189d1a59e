/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading files for the model, from a real store and a real folder.
 */
#include "agent/shell/pictures.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/fixture.h"
#include "store/table/attachments.h"

struct world {
    struct fixture f;
    struct blobs *blobs;
    struct arena arena;
    struct model_message messages[2];
    struct context_file files[8];
    struct context context;
    int left; /* callbacks that are waited for */
    int ended;
    enum err err;
};

static void passed(struct world *w)
{
    if (--w->left == 0) loop_stop(w->f.loop);
}

static int setup(void **state)
{
    static struct world w;
    struct fault why = {0};
    w = (struct world){0};
    fixture_init(&w.f);
    arena_init(&w.arena);
    if (blobs_open(w.f.loop, path_in(w.f.folder, "blobs"), &w.blobs, &why))
        fail_msg("%s", why.text);
    w.messages[0] = (struct model_message){.role = STR("user"), .text = STR("look")};
    w.messages[1] = (struct model_message){.role = STR("user")};
    w.context =
        (struct context){.messages = w.messages, .count = 2, .files = w.files, .locale = STR("en")};
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    blobs_close(w->blobs);
    fixture_done(&w->f);
    arena_done(&w->arena);
    return 0;
}

struct add {
    struct job job;
    struct world *w;
    struct attachment row;
};

static enum err add_run(struct job *job, struct db *db)
{
    return attachment_add(db, &((struct add *)(void *)job)->row);
}

static void add_done(struct job *job, enum err e)
{
    assert_int_equal(e, OK);
    passed(((struct add *)(void *)job)->w);
}

static void on_put(void *arg, enum err e, const struct fault *why)
{
    (void)why;
    assert_int_equal(e, OK);
    passed(arg);
}

/* A file of `ann`'s in storage and in the list; its object may be left out. */
static struct attachment file_add(struct world *w, size_t message, const char *id,
                                  const char *owner, const char *mime, str bytes, bool put)
{
    unsigned char hash[HASH_BYTES];
    char path[BLOB_PATH_BYTES];
    crypto_sha256(bytes, hash);
    blob_path(hash, str_c(id), path);
    struct add add = {.job = {.run = add_run, .done = add_done}, .w = w};
    add.row = (struct attachment){.id = str_c(id),
                                  .owner = str_c(owner),
                                  .thread_id = STR("t1"),
                                  .mime = str_c(mime),
                                  .filename = arena_printf(&w->arena, "%s.x", id),
                                  .sha256 = STR("-"),
                                  .bucket = BUCKET_ATTACHMENTS,
                                  .path = arena_str(&w->arena, str_c(path)),
                                  .bytes = bytes.len};
    w->left = put ? 2 : 1;
    store_write(w->f.store, &add.job);
    if (put) blob_put(w->blobs, BUCKET_ATTACHMENTS, add.row.path, bytes, on_put, w);
    loop_run(w->f.loop);
    w->files[w->context.file_count++] =
        (struct context_file){.bytes_max = CONTEXT_FILE_TEXT_BYTES_MAX,
                              .message = message,
                              .picture = str_starts(str_c(mime), STR("image/")),
                              .file = {.type = STR("binary"),
                                       .id = add.row.id,
                                       .mime = add.row.mime,
                                       .filename = add.row.filename,
                                       .bytes = bytes.len}};
    return add.row;
}

static void on_loaded(void *arg, enum err e)
{
    struct world *w = arg;
    w->err = e;
    w->ended++;
    passed(w);
}

static struct pictures *load(struct world *w)
{
    return pictures_load(&(struct pictures_source){.loop = w->f.loop,
                                                   .store = w->f.store,
                                                   .blobs = w->blobs,
                                                   .owner = STR("ann"),
                                                   .arena = &w->arena,
                                                   .context = &w->context},
                         on_loaded, w);
}

static void load_all(struct world *w)
{
    assert_true(pictures_needed(&w->context));
    w->left = 1;
    load(w);
    assert_int_equal(w->ended, 0); /* not from inside */
    loop_run(w->f.loop);
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->err, OK);
    assert_false(pictures_needed(&w->context));
}

static void whole(void **state)
{
    struct world *w = *state;
    file_add(w, 0, "p1", "ann", "image/png", STR("\x89PNG one"), true);
    file_add(w, 0, "t1", "ann", "text/plain", STR("hello"), true);
    file_add(w, 0, "p2", "ann", "image/gif", STR("GIF two"), true);
    file_add(w, 1, "t2", "ann", "application/json", STR("{}"), true);
    load_all(w);
    const struct model_message *m = w->messages;
    assert_str(m[0].text, STR("look\n\n[file: t1.x, text/plain, 5 bytes]\n```\nhello\n```"));
    assert_int_equal(m[0].image_count, 2);
    assert_str(m[0].images[0].bytes, STR("\x89PNG one"));
    assert_str(m[0].images[0].mime, STR("image/png"));
    assert_str(m[0].images[0].filename, STR("p1.x"));
    assert_str(m[0].images[1].bytes, STR("GIF two"));
    assert_str(m[1].text, STR("[file: t2.x, application/json, 2 bytes]\n```\n{}\n```"));
    assert_int_equal(m[1].image_count, 0);
}

/* Nothing of it stops the run: the model is told. */
static void not_whole(void **state)
{
    struct world *w = *state;
    file_add(w, 0, "gone", "ann", "image/png", STR("a"), false);
    file_add(w, 0, "other", "bob", "image/png", STR("b"), true);
    struct attachment bad = file_add(w, 0, "bad", "ann", "text/plain", STR("c"), true);
    file_add(w, 0, "good", "ann", "image/png", STR("d"), true);
    w->files[w->context.file_count++] =
        (struct context_file){.bytes_max = CONTEXT_FILE_TEXT_BYTES_MAX,
                              .message = 1,
                              .picture = true,
                              .file = {.id = STR("never"), .mime = STR("image/png"), .bytes = 1}};
    char path[BLOB_PATH_BYTES + 32];
    snprintf(path, sizeof path, "blobs/attachments/%.*s", STR_ARG(bad.path));
    FILE *file = fopen(path_in(w->f.folder, path), "w");
    assert_non_null(file);
    assert_int_equal(fputs("C", file), 1);
    assert_int_equal(fclose(file), 0);
    load_all(w);
    const struct model_message *m = w->messages;
    assert_str(m[0].text,
               STR("look\n\n[file: gone.x, image/png, 1 byte; its content is missing]"
                   "\n\n[file: other.x, image/png, 1 byte; its content is missing]"
                   "\n\n[file: bad.x, text/plain, 1 byte; its content is damaged and not shown]"));
    assert_int_equal(m[0].image_count, 1);
    assert_str(m[0].images[0].bytes, STR("d"));
    assert_str(m[1].text, STR("[file: image/png, 1 byte; its content is missing]"));
}

/* Whenever it is forgotten: no callback, nothing touched, nothing left behind. */
static void forgotten(void **state)
{
    struct world *w = *state;
    file_add(w, 0, "p1", "ann", "image/png", STR("one"), true);
    file_add(w, 0, "p2", "ann", "image/png", STR("two"), true);
    pictures_forget(NULL);
    for (int turns = 0; turns < 6; turns++) {
        w->ended = 0;
        w->left = -1;
        struct pictures *p = load(w);
        for (int i = 0; i < turns && !w->ended; i++) loop_settle(w->f.loop);
        if (w->ended) { /* it was faster */
            w->context.file_count = 2;
            w->messages[0].images = NULL;
            w->messages[0].image_count = 0;
            continue;
        }
        pictures_forget(p);
        for (int i = 0; i < 20; i++) loop_settle(w->f.loop);
        assert_int_equal(w->ended, 0);
        assert_int_equal(w->context.file_count, 2);
        assert_int_equal(w->messages[0].image_count, 0);
    }
}

/* The store says no: the context is as it was. */
static void store_closed(void **state)
{
    struct world *w = *state;
    file_add(w, 0, "p1", "ann", "image/png", STR("one"), true);
    w->left = 2;
    load(w);
    store_close(w->f.store);
    w->f.store = NULL;
    if (!w->ended) {
        w->left = 1;
        loop_run(w->f.loop);
    }
    assert_int_equal(w->ended, 1);
    if (w->err) assert_int_equal(w->context.file_count, 1);
}

int test_pictures(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whole, setup, teardown),
        cmocka_unit_test_setup_teardown(not_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(store_closed, setup, teardown),
    };
    return cmocka_run_group_tests_name("agent/pictures", tests, NULL, NULL);
}

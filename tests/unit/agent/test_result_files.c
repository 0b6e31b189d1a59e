/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of results on their way into a real folder.
 */
#include "agent/shell/result_files.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/blob/blob.h"
#include "store/fixture.h"

struct world {
    struct fixture f;
    struct blobs *blobs;
    struct arena arena;
    int overs, troubles;
    enum err trouble;
};

static int setup(void **state)
{
    static struct world w;
    struct fault why = {0};
    w = (struct world){0};
    fixture_init(&w.f);
    arena_init(&w.arena);
    if (blobs_open(w.f.loop, path_in(w.f.folder, "blobs"), &w.blobs, &why))
        fail_msg("%s", why.text);
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

/* Everything is a picture of 2 x 3 but what says that it is bad. */
static enum err look(str bytes, str filename, struct file_seen *ret_seen)
{
    if (str_starts(bytes, STR("bad"))) return ERR_TOO_LARGE;
    *ret_seen = (struct file_seen){.mime = "image/png", .width = 2, .height = 3};
    snprintf(ret_seen->filename, sizeof ret_seen->filename, "safe-%.*s", STR_ARG(filename));
    return OK;
}

static void on_over(void *arg)
{
    struct world *w = arg;
    w->overs++;
    loop_stop(w->f.loop);
}

static void on_trouble(void *arg, const char *what, enum err e)
{
    struct world *w = arg;
    assert_non_null(what);
    w->troubles++;
    w->trouble = e;
}

static struct result_files *check_in(struct world *w, const struct tool_file *files, size_t count)
{
    return result_files_new(&(struct result_files_options){.loop = w->f.loop,
                                                           .blobs = w->blobs,
                                                           .look = look,
                                                           .on_over = on_over,
                                                           .on_trouble = on_trouble,
                                                           .arg = w},
                            files, count);
}

static const struct tool_file files[] = {
    {STR("text/html"), STR("a.png"), STR("one")},
    {STR("image/gif"), STR("b\n.gif"), STR("bad one")},
    {STR("image/gif"), STR("empty"), STR("")},
    {STR("image/png"), STR("c.png"), STR("three")},
};

static bool is_there(struct world *w, const struct attachment *row)
{
    str path = arena_printf(&w->arena, "%s/blobs/%.*s/%.*s", w->f.folder, STR_ARG(row->bucket),
                            STR_ARG(row->path));
    return access(arena_cstr(&w->arena, path), F_OK) == 0;
}

static void kept(void **state)
{
    struct world *w = *state;
    struct attachment *rows;
    struct result_files *l = check_in(w, files, COUNT(files));
    assert_false(result_files_over(l));
    loop_run(w->f.loop);
    assert_true(result_files_over(l));
    assert_false(result_files_stale(l));
    assert_int_equal(w->overs, 1);
    assert_int_equal(w->troubles, 2);
    assert_int_equal(result_files_rows(l, &w->arena, &rows), 2);
    assert_str(rows[0].filename, STR("safe-a.png"));
    assert_str(rows[0].mime, STR("image/png")); /* what it is, not what it says */
    assert_int_equal(rows[0].bytes, 3);
    assert_int_equal(rows[1].width, 2);
    assert_int_equal(rows[1].height, 3);
    assert_true(str_starts(rows[1].id, STR("att_")));
    assert_true(is_there(w, &rows[0]) && is_there(w, &rows[1]));
    assert_str(result_files_lines(l, &w->arena, STR("en")),
               STR("[file: safe-a.png, image/png, 3 bytes]\n"
                   "[file: b .gif, image/gif, 7 bytes; it could not be kept]\n"
                   "[file: empty, image/gif, 0 bytes; it could not be kept]\n"
                   "[file: safe-c.png, image/png, 5 bytes]"));
    result_files_forget(l);
}

static void on_removed(void *arg, enum err e, const struct fault *reason)
{
    struct world *w = arg;
    (void)reason;
    assert_int_equal(e, OK);
    loop_stop(w->f.loop);
}

/* What the sweeper has taken meanwhile is there again, under the same name. */
static void again(void **state)
{
    struct world *w = *state;
    struct attachment *rows;
    struct result_files *l = check_in(w, files, 1);
    loop_run(w->f.loop);
    assert_int_equal(result_files_rows(l, &w->arena, &rows), 1);
    blob_remove(w->blobs, rows[0].bucket, rows[0].path, on_removed, w);
    loop_run(w->f.loop);
    assert_false(is_there(w, &rows[0]));
    result_files_again(l);
    assert_false(result_files_over(l));
    loop_run(w->f.loop);
    assert_int_equal(w->overs, 2);
    struct attachment *after;
    assert_int_equal(result_files_rows(l, &w->arena, &after), 1);
    assert_str(after[0].path, rows[0].path);
    assert_true(is_there(w, &rows[0]));
    result_files_forget(l);
}

static void storage_fails(void **state)
{
    struct world *w = *state;
    struct attachment *rows;
    const char *bucket = path_in(w->f.folder, "blobs/attachments");
    rmdir(bucket);
    FILE *in_the_way = fopen(bucket, "w");
    assert_non_null(in_the_way);
    fclose(in_the_way);
    const struct tool_file two[] = {files[0], files[3]};
    struct result_files *l = check_in(w, two, COUNT(two));
    loop_run(w->f.loop);
    assert_true(result_files_over(l));
    assert_int_equal(w->troubles, 1); /* the second is not even tried */
    assert_int_equal(w->trouble, ERR_IO);
    assert_int_equal(result_files_rows(l, &w->arena, &rows), 0);
    assert_str(result_files_lines(l, &w->arena, STR("zh-CN")),
               STR("[文件：a.png，text/html，3 字节；未能保存]\n"
                   "[文件：c.png，image/png，5 字节；未能保存]"));
    result_files_forget(l);
}

/* Nobody is told, and nothing leaks: while it is looked at, and while it is put. */
static void forgotten(void **state)
{
    struct world *w = *state;
    result_files_forget(NULL);
    result_files_forget(check_in(w, files, COUNT(files)));
    struct result_files *last = check_in(w, files, 1);
    loop_run(w->f.loop);
    assert_int_equal(w->overs, 1);
    result_files_again(last);
    result_files_forget(last);
    assert_int_equal(w->overs, 1);
}

int test_result_files(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kept, setup, teardown),
        cmocka_unit_test_setup_teardown(again, setup, teardown),
        cmocka_unit_test_setup_teardown(storage_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten, setup, teardown),
    };
    return cmocka_run_group_tests_name("agent/result_files", tests, NULL, NULL);
}

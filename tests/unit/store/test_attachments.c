/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/attachments.h"

#include "base/buf.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"
#include "store/table/blob_rows.h"

static struct attachment made(struct db_fixture *t, const char *id, const char *owner,
                              const char *thread_id, msec created)
{
    struct attachment row = {.id = str_c(id),
                             .owner = str_c(owner),
                             .thread_id = str_c(thread_id),
                             .mime = STR("image/png"),
                             .filename = STR("会议.png"),
                             .sha256 = STR("abcd"),
                             .bucket = STR("attachments"),
                             .path = arena_printf(&t->arena, "3f/%s", id),
                             .bytes = 5ULL << 32,
                             .width = 640,
                             .height = UINT32_MAX,
                             .created = created};
    assert_int_equal(attachment_add(t->db, &row), OK);
    return row;
}

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    struct attachment row = made(t, "att_1", "ann", "t1", 5), got = {0};
    assert_int_equal(attachment_find(t->db, &t->arena, STR("att_1"), &got), OK);
    assert_str(got.id, row.id);
    assert_str(got.owner, row.owner);
    assert_str(got.thread_id, row.thread_id);
    assert_str(got.mime, row.mime);
    assert_str(got.filename, row.filename);
    assert_str(got.sha256, row.sha256);
    assert_str(got.bucket, row.bucket);
    assert_str(got.path, row.path);
    assert_true(got.bytes == row.bytes);
    assert_int_equal(got.width, row.width);
    assert_int_equal(got.height, row.height);
    assert_int_equal(got.created, row.created);

    struct attachment untouched = {.width = 3};
    assert_int_equal(attachment_find(t->db, &t->arena, STR("att_2"), &untouched), ERR_NOT_FOUND);
    assert_int_equal(untouched.width, 3);
    assert_int_equal(attachment_add(t->db, &row), ERR_BUSY);
    row.id = STR("att_2"); /* an object belongs to one row */
    assert_int_equal(attachment_add(t->db, &row), ERR_BUSY);
}

static bool there(struct db_fixture *t, const char *id, str *ret_thread_id)
{
    struct attachment row;
    enum err e = attachment_find(t->db, &t->arena, str_c(id), &row);
    if (!e) *ret_thread_id = row.thread_id;
    return !e;
}

static struct thread thread_of(struct db_fixture *t, const char *owner, const char *thread_id)
{
    struct thread thread = {.owner = str_c(owner), .thread_id = str_c(thread_id)};
    assert_int_equal(thread_add(t->db, &thread), OK);
    return thread;
}

/* Delete the thread: the ids that went with it, joined. */
static void leaves(struct db_fixture *t, const struct thread *thread, const char *gone)
{
    struct buf ids;
    assert_int_equal(attachments_leave(t->db, &t->arena, thread), OK);
    buf_init(&ids, 256);
    struct stmt *s = db_prepare(t->db, "DELETE FROM attachments WHERE owner='' RETURNING id");
    while (stmt_step(s)) buf_printf(&ids, "%.*s ", STR_ARG(stmt_str(s, 0)));
    assert_int_equal(stmt_end(s), OK);
    assert_str(buf_str(&ids), str_c(gone));
    buf_done(&ids);
    assert_int_equal(thread_delete(t->db, thread->id), OK);
}

static void of_a_thread(void **state)
{
    struct db_fixture *t = *state;
    struct thread thread = thread_of(t, "ann", "t1");
    str at = STR_EMPTY;
    made(t, "att_3", "ann", "t1", 7);
    made(t, "att_1", "ann", "t1", 9);
    made(t, "att_2", "ann", "t1", 7);
    made(t, "att_4", "ann", "t2", 1);
    made(t, "att_5", "bob", "t1", 1);
    assert_int_equal(attachment_delete(t->db, STR("att_2")), OK);
    assert_int_equal(attachment_delete(t->db, STR("att_2")), OK);
    leaves(t, &thread, "att_1 att_3 ");
    assert_false(there(t, "att_1", &at));
    assert_true(there(t, "att_4", &at));
    assert_true(there(t, "att_5", &at));
}

/* A file that several threads have goes with the last of them, whichever that is. */
static void shared(void **state)
{
    struct db_fixture *t = *state;
    struct thread one = thread_of(t, "ann", "t1"), two = thread_of(t, "ann", "t2"),
                  three = thread_of(t, "ann", "t3");
    struct attachment row = made(t, "att_1", "ann", "t1", 1),
                      loose = made(t, "att_2", "ann", "never", 1);
    str at = STR_EMPTY;
    struct attachment_list list = {0};
    for (int again = 0; again < 2; again++) {
        assert_int_equal(attachment_use(t->db, &row, &one), OK);
        assert_int_equal(attachment_use(t->db, &row, &two), OK);
        assert_int_equal(attachment_use(t->db, &row, &three), OK);
        assert_int_equal(attachment_use(t->db, &loose, &two), OK);
    }
    assert_int_equal(attachments_unused(t->db, &t->arena, 10, 5, &list), OK);
    assert_int_equal(list.count, 0);
    leaves(t, &three, "");
    assert_true(there(t, "att_1", &at));
    assert_str(at, STR("t1"));
    leaves(t, &one, "");
    assert_true(there(t, "att_1", &at));
    assert_str(at, STR("t2"));
    leaves(t, &two, "att_1 att_2 ");
    assert_false(there(t, "att_1", &at));
    assert_false(there(t, "att_2", &at));
}

static void unused(void **state)
{
    struct db_fixture *t = *state;
    thread_made(t->db, "ann", "t1", "x", 1);
    made(t, "used", "ann", "t1", 1);
    made(t, "other", "bob", "t1", 3); /* bob has no such thread */
    made(t, "never", "ann", "t2", 2);
    made(t, "young", "ann", "t3", 10);
    struct attachment_list list = {0};
    assert_int_equal(attachments_unused(t->db, &t->arena, 10, 5, &list), OK);
    assert_int_equal(list.count, 2);
    assert_str(list.rows[0].id, STR("never"));
    assert_str(list.rows[1].id, STR("other"));
    assert_int_equal(attachments_unused(t->db, &t->arena, 11, 5, &list), OK);
    assert_int_equal(list.count, 3);
    assert_int_equal(attachments_unused(t->db, &t->arena, 11, 1, &list), OK);
    assert_int_equal(list.count, 1);
    assert_str(list.rows[0].id, STR("never"));
}

/* An object that a row names is needed. */
static void needed(void **state)
{
    struct db_fixture *t = *state;
    struct attachment row = made(t, "att_1", "ann", "t1", 1);
    bool is_needed = false;
    assert_int_equal(blob_needed(t->db, row.bucket, row.path, &is_needed), OK);
    assert_true(is_needed);
    assert_int_equal(attachment_delete(t->db, row.id), OK);
    assert_int_equal(blob_needed(t->db, row.bucket, row.path, &is_needed), OK);
    assert_false(is_needed);
}

int test_attachments(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(every_field), WITH_DB(of_a_thread), WITH_DB(shared),
        WITH_DB(unused),      WITH_DB(needed),
    };
    return db_fixture_group("attachments", tests, COUNT(tests));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void append_and_read(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1), first = 0;
    assert_int_equal(facts_first(t->db, thread, &first), OK);
    assert_int_equal(first, 1);

    struct fact facts[] = {
        {.type = "run.started", .run_id = STR("r"), .at = 7, .data = STR("{\"a\":1}")},
        {.type = "message.added", .at = 8, .data = STR("{}")},
    };
    assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 50), OK);
    assert_int_equal(facts[0].seq, 1);
    assert_int_equal(facts[1].seq, 2);
    assert_int_equal(facts_append(t->db, thread, facts, 1, 60), OK);
    assert_int_equal(facts[0].seq, 3);
    assert_int_equal(facts_append(t->db, other, facts, 1, 60), OK);
    assert_int_equal(facts[0].seq, 1);
    assert_int_equal(facts_append(t->db, 99, facts, 1, 60), ERR_NOT_FOUND);

    struct thread found = {0};
    assert_int_equal(thread_by_id(t->db, &t->arena, thread, &found), OK);
    assert_int_equal(found.last_seq, 3);
    assert_int_equal(found.updated, 60);

    struct fact_list list = {0};
    assert_int_equal(facts_after(t->db, &t->arena, thread, 0, 10, &list), OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.facts[0].type, "run.started");
    assert_str(list.facts[0].run_id, STR("r"));
    assert_str(list.facts[0].data, STR("{\"a\":1}"));
    assert_int_equal(list.facts[0].at, 7);
    assert_string_equal(list.facts[1].type, "message.added");
    assert_str(list.facts[1].run_id, STR_EMPTY);
    assert_int_equal(facts_first(t->db, thread, &first), OK);
    assert_int_equal(first, 1);
    assert_int_equal(facts_first(t->db, 99, &first), ERR_NOT_FOUND);
}

/* When the old ones are gone, the rest keeps its numbers. */
static void first_that_is_kept(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1), first = 0;
    struct fact facts[5];
    for (size_t i = 0; i < COUNT(facts); i++)
        facts[i] = (struct fact){.type = "x", .data = STR("{}")};
    assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 1), OK);
    static const struct {
        const char *sql;
        int64_t expected;
    } rows[] = {{"DELETE FROM events WHERE seq<3", 3}, {"DELETE FROM events", 6}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(db_script(t->db, rows[i].sql), OK);
        assert_int_equal(facts_first(t->db, thread, &first), OK);
        assert_int_equal(first, rows[i].expected);
    }
}

static void pages(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    struct fact facts[5];
    for (size_t i = 0; i < COUNT(facts); i++)
        facts[i] = (struct fact){.type = "x", .data = STR("{}")};
    assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 1), OK);
    static const struct {
        int64_t after;
        size_t limit, count;
        int64_t first;
        bool more;
    } rows[] = {
        {0, 1, 1, 1, true},   {0, 4, 4, 1, true},   {0, 5, 5, 1, false}, {0, 6, 5, 1, false},
        {3, 2, 2, 4, false},  {3, 1, 1, 4, true},   {4, 1, 1, 5, false}, {5, 1, 0, 0, false},
        {99, 1, 0, 0, false}, {-1, 9, 5, 1, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fact_list list = {0};
        assert_int_equal(facts_after(t->db, &t->arena, thread, rows[i].after, rows[i].limit, &list),
                         OK);
        assert_int_equal(list.count, rows[i].count);
        assert_int_equal(list.more, rows[i].more);
        for (size_t k = 0; k < list.count; k++)
            assert_int_equal(list.facts[k].seq, rows[i].first + (int64_t)k);
    }
}

static void pages_are_bounded_in_bytes(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    static char text[FACT_PAGE_BYTES_MAX + 1];
    memset(text, ' ', sizeof text);
    static const struct {
        size_t len, count; /* facts of this length; as many in the first page of five */
    } rows[] = {
        {sizeof text, 1},
        {FACT_PAGE_BYTES_MAX, 1},
        {FACT_PAGE_BYTES_MAX - 1, 2},
        {FACT_PAGE_BYTES_MAX / 2, 2},
        {FACT_PAGE_BYTES_MAX / 4, 4},
        {FACT_PAGE_BYTES_MAX / 8, 5},
    };
    int64_t after = 0;
    for (size_t i = 0; i < COUNT(rows); i++, after += 5) {
        struct fact facts[5];
        for (size_t k = 0; k < COUNT(facts); k++)
            facts[k] = (struct fact){.type = "x", .data = {text, rows[i].len}};
        assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 1), OK);
        struct fact_list list = {0};
        assert_int_equal(facts_after(t->db, &t->arena, thread, after, 9, &list), OK);
        assert_int_equal(list.count, rows[i].count);
        assert_int_equal(list.more, rows[i].count < 5);
    }
}

/* ---- numbers without gaps, though jobs of the same batch fail ---- */

enum { JOBS = 60 };

struct append {
    struct job job;
    struct fixture *f;
    int number;
    int64_t thread, seq; /* of its first fact */
    enum err result;
};

/* Every third job fails after it has numbered and stored its facts. */
static bool fails(const struct append *append)
{
    return append->number % 3 == 1;
}

static enum err append_run(struct job *job, struct db *db)
{
    struct append *append = (struct append *)job;
    struct fact facts[] = {{.type = "a", .data = STR("{}")}, {.type = "b", .data = STR("{}")}};
    enum err e = facts_append(db, append->thread, facts, COUNT(facts), append->number);
    append->seq = facts[0].seq;
    return !e && fails(append) ? ERR_BUSY : e;
}

static void append_done(struct job *job, enum err e)
{
    struct append *append = (struct append *)job;
    append->result = e;
    if (--append->f->waiting == 0) loop_stop(append->f->loop);
}

static enum err make_run(struct job *job, struct db *db)
{
    struct append *append = (struct append *)job;
    append->thread = thread_made(db, "alice", "t", "x", 1);
    return OK;
}

static enum err list_run(struct job *job, struct db *db)
{
    struct append *append = (struct append *)job;
    struct arena arena;
    struct fact_list list = {0};
    arena_init(&arena);
    enum err e = facts_after(db, &arena, append->thread, 0, 3 * JOBS, &list);
    append->seq = (int64_t)list.count;
    for (size_t i = 0; i < list.count && !e; i++)
        if (list.facts[i].seq != (int64_t)i + 1) e = ERR_INTERNAL;
    arena_done(&arena);
    return e;
}

static void numbers_have_no_gaps(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct append made = {.job = {.run = make_run}};
    assert_int_equal(store_run(f.store, &made.job), OK);
    struct append jobs[JOBS];
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct append){.job = {.run = append_run, .done = append_done},
                                  .f = &f,
                                  .number = i,
                                  .thread = made.thread};
        f.waiting++;
        store_write(f.store, &jobs[i].job);
    }
    fixture_wait(&f);
    int64_t next = 1;
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].result, fails(&jobs[i]) ? ERR_BUSY : OK);
        assert_int_equal(jobs[i].seq, next);
        if (!fails(&jobs[i])) next += 2;
    }
    struct append listed = {.job = {.run = list_run}, .thread = made.thread};
    assert_int_equal(store_run(f.store, &listed.job), OK);
    assert_int_equal(listed.seq, next - 1);
    assert_true(store_stats(f.store).commits < JOBS / 2); /* they did share transactions */
    fixture_done(&f);
}

int test_facts(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(append_and_read),
        WITH_DB(first_that_is_kept),
        WITH_DB(pages),
        WITH_DB(pages_are_bounded_in_bytes),
        cmocka_unit_test(numbers_have_no_gaps),
    };
    return db_fixture_group("store/facts", tests, COUNT(tests));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static int64_t fact_rows(struct db *db)
{
    int64_t count = 0;
    assert_int_equal(db_number(db_prepare(db, "SELECT count(*) FROM facts"), &count), OK);
    return count;
}

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
    old_facts_made(t->db, thread, 5);
    struct fact fact = {.type = "x", .data = STR("{}")};
    assert_int_equal(facts_append(t->db, thread, &fact, 1, 1), OK);
    assert_int_equal(facts_append(t->db, thread, &fact, 1, 1), OK);
    static const struct {
        const char *sql;
        int64_t expected;
    } rows[] = {{"DELETE FROM events WHERE seq<3", 3},
                {"DELETE FROM events", 6},
                {"DELETE FROM facts WHERE last_seq<7", 7},
                {"DELETE FROM facts", 8}};
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

/* A commit of many facts takes several rows, cut between facts, and is read as if it were one. */
static void long_commits(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    enum { FACTS = 999, LEN = 300 };
    static char text[LEN];
    memset(text, ' ', sizeof text);
    static struct fact facts[FACTS];
    for (size_t i = 0; i < FACTS; i++)
        facts[i] = (struct fact){.type = "x", .run_id = STR("r"), .at = 5, .data = {text, LEN}};
    assert_int_equal(facts_append(t->db, thread, facts, FACTS, 1), OK);
    assert_int_equal(facts[FACTS - 1].seq, FACTS);
    int64_t rows = fact_rows(t->db), most = 0;
    assert_in_range(rows, FACTS * LEN / FACT_ROW_BYTES_MAX + 1, 6);
    assert_int_equal(db_number(db_prepare(t->db, "SELECT max(length(bytes)) FROM facts"), &most),
                     OK);
    assert_in_range(most, 1, FACT_ROW_BYTES_MAX);
    int64_t seq = 0;
    for (bool more = true; more;) {
        struct fact_list list = {0};
        assert_int_equal(facts_after(t->db, &t->arena, thread, seq, 100, &list), OK);
        assert_int_equal(list.count, seq < 900 ? 100 : 99);
        for (size_t i = 0; i < list.count; i++) {
            assert_int_equal(list.facts[i].seq, ++seq);
            assert_str(list.facts[i].run_id, STR("r"));
            assert_int_equal(list.facts[i].at, 5);
            assert_int_equal(list.facts[i].data.len, LEN);
        }
        more = list.more;
    }
    assert_int_equal(seq, FACTS);
    struct fact fact;
    for (seq = 1; seq <= FACTS; seq += 7)
        assert_int_equal(fact_at(t->db, &t->arena, thread, seq, &fact), OK);
    assert_int_equal(facts_append(t->db, thread, facts, 0, 2), OK); /* no row */
    assert_int_equal(fact_rows(t->db), rows);
}

/* ---- behind facts of an older schema ---- */

enum { OLD = 7, COMMITS = 3, ALL = OLD + 2 * COMMITS };

/* Seven old ones, three commits of two: "new" of "r", "text.message.end" of "q". */
static int64_t bordered(struct db_fixture *t)
{
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    old_facts_made(t->db, thread, OLD);
    old_facts_made(t->db, thread_made(t->db, "bob", "t", "x", 1), OLD);
    for (int i = 0; i < COMMITS; i++) {
        struct fact facts[] = {
            {.type = "new", .run_id = STR("r"), .at = 70 + i, .data = STR("{}")},
            {.type = "text.message.end",
             .run_id = STR("q"),
             .at = 70 + i,
             .data = STR("{\"content\":\"x\",\"inputTokens\":1,\"outputTokens\":100}")},
        };
        assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 1), OK);
        assert_int_equal(facts[1].seq, OLD + 2 * i + 2);
    }
    return thread;
}

/* What stands there, by its number. */
static bool is_end(int64_t seq)
{
    return seq <= OLD ? seq % 3 == 0 : (seq - OLD) % 2 == 0;
}

static const char *type_at(int64_t seq)
{
    return is_end(seq) ? "text.message.end" : seq <= OLD ? "old" : "new";
}

static void pages_over_the_border(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = bordered(t), first = 0;
    assert_int_equal(facts_first(t->db, thread, &first), OK);
    assert_int_equal(first, 1);
    for (int64_t after = 0; after <= ALL + 1; after++) {
        for (size_t limit = 1; limit <= ALL + 1; limit++) {
            struct fact_list list = {0};
            assert_int_equal(facts_after(t->db, &t->arena, thread, after, limit, &list), OK);
            size_t rest = after < ALL ? (size_t)(ALL - after) : 0;
            assert_int_equal(list.count, rest < limit ? rest : limit);
            assert_int_equal(list.more, rest > limit);
            for (size_t i = 0; i < list.count; i++) {
                int64_t seq = after + 1 + (int64_t)i;
                assert_int_equal(list.facts[i].seq, seq);
                assert_string_equal(list.facts[i].type, type_at(seq));
                assert_int_equal(list.facts[i].at, seq <= OLD ? seq : 70 + (seq - OLD - 1) / 2);
            }
        }
    }
}

static void one_on_either_side(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = bordered(t);
    struct fact fact;
    for (int64_t seq = 1; seq <= ALL; seq++) {
        assert_int_equal(fact_at(t->db, &t->arena, thread, seq, &fact), OK);
        assert_int_equal(fact.seq, seq);
        assert_string_equal(fact.type, type_at(seq));
        assert_str(fact.run_id, is_end(seq) ? STR("q") : STR("r"));
    }
    static const int64_t none[] = {-1, 0, ALL + 1, INT64_MAX};
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(fact_at(t->db, &t->arena, thread, none[i], &fact), ERR_NOT_FOUND);
}

static void newest_on_either_side(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = bordered(t);
    static const struct {
        const char *run_id, *type, *or_type;
        int64_t after, upto, expected; /* 0: none */
    } rows[] = {
        {"", "new", "new", 0, ALL, ALL - 1},
        {"", "old", "old", 0, ALL, OLD},
        {"", "old", "new", 0, ALL, ALL - 1},
        {"", "old", "new", 0, OLD, OLD},
        {"q", "text.message.end", "none", 0, ALL, ALL},
        {"q", "none", "text.message.end", 0, OLD + 1, 6},
        {"q", "text.message.end", "none", 6, OLD + 1, 0},
        {"q", "text.message.end", "none", 5, OLD + 1, 6},
        {"q", "new", "old", 0, ALL, 0},
        {"r", "new", "old", 0, INT64_MAX, ALL - 1},
        {"", "old", "old", OLD, ALL, 0},
        {"", "old", "old", OLD - 1, ALL, OLD},
        {"", "new", "new", OLD, OLD + 2, OLD + 1},
        {"", "new", "new", OLD + 1, OLD + 2, 0},
        {"", "none", "none", 0, ALL, 0},
        {"", "old", "new", 3, 3, 0},
        {"", "old", "new", 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fact fact = {0};
        enum err e = fact_last(t->db, &t->arena, thread, str_c(rows[i].run_id), rows[i].type,
                               rows[i].or_type, rows[i].after, rows[i].upto, &fact);
        if (e != (rows[i].expected ? OK : ERR_NOT_FOUND) || fact.seq != rows[i].expected)
            fail_msg("row %zu: %d, %lld", i, e, (long long)fact.seq);
    }
}

static void tokens_on_either_side(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = bordered(t);
    for (int64_t after = 0; after <= ALL; after++) {
        for (int64_t upto = after; upto <= ALL + 1; upto++) {
            uint64_t input = 77, output = 77, expected = 0;
            for (int64_t seq = after + 1; seq <= upto && seq <= ALL; seq++) expected += is_end(seq);
            assert_int_equal(facts_usage(t->db, thread, STR("q"), after, upto, &input, &output),
                             OK);
            assert_int_equal(input, expected);
            assert_int_equal(output, 100 * expected);
            assert_int_equal(facts_usage(t->db, thread, STR("r"), after, upto, &input, &output),
                             OK);
            assert_int_equal(input + output, 0);
        }
    }
}

/* All that reads facts, on a thread of three. */
static void read_all(struct db_fixture *t, int64_t thread, enum err expected)
{
    struct fact_list list;
    struct fact fact;
    uint64_t input, output;
    int64_t first;
    assert_int_equal(facts_first(t->db, thread, &first), OK);
    assert_int_equal(first, 1);
    for (int64_t after = 0; after < 3; after++) {
        assert_int_equal(facts_after(t->db, &t->arena, thread, after, 9, &list), expected);
        assert_int_equal(fact_at(t->db, &t->arena, thread, after + 1, &fact), expected);
        assert_int_equal(facts_usage(t->db, thread, STR_EMPTY, after, 3, &input, &output),
                         expected);
    }
    assert_int_equal(fact_last(t->db, &t->arena, thread, STR_EMPTY, "none", "none", 0, 3, &fact),
                     expected ? expected : ERR_NOT_FOUND);
    assert_int_equal(fact_last(t->db, &t->arena, thread, STR_EMPTY, "x", "x", 0, 3, &fact),
                     expected);
}

/* A thread that has no old facts does not look for them: it can do without their table. */
static void new_threads_ask_no_old_table(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    assert_int_equal(db_script(t->db, "DROP TABLE events"), OK);
    struct fact facts[] = {{.type = "x", .data = STR("{}")},
                           {.type = "x", .data = STR("{}")},
                           {.type = "x", .data = STR("{}")}};
    struct fact_list list;
    assert_int_equal(facts_append(t->db, thread, facts, 2, 1), OK);
    assert_int_equal(facts_append(t->db, thread, facts, 1, 1), OK);
    read_all(t, thread, OK);
    assert_int_equal(facts_after(t->db, &t->arena, thread, 3, 9, &list), OK);
    assert_int_equal(list.count, 0);
    assert_int_equal(fact_at(t->db, &t->arena, thread, 4, facts), ERR_NOT_FOUND);
}

static void damaged_rows_are_noticed(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    static const char *const harms[] = {
        "UPDATE facts SET bytes=x''",
        "UPDATE facts SET bytes=x'0000ff7800'",
        "UPDATE facts SET bytes=x'000000780000000078000000ff7800'",
        "UPDATE facts SET last_seq=4",
        "UPDATE facts SET bytes=CAST(bytes||x'00' AS BLOB)",
    };
    struct fact facts[] = {{.type = "x", .data = STR("{}")},
                           {.type = "x", .data = STR("{}")},
                           {.type = "x", .data = STR("{}")}};
    assert_int_equal(facts_append(t->db, thread, facts, COUNT(facts), 1), OK);
    read_all(t, thread, OK);
    for (size_t i = 0; i < COUNT(harms); i++) {
        struct fact_list list;
        assert_int_equal(db_script(t->db, "CREATE TABLE kept AS SELECT * FROM facts"), OK);
        assert_int_equal(db_script(t->db, harms[i]), OK);
        assert_int_equal(facts_after(t->db, &t->arena, thread, 0, 9, &list), ERR_DAMAGED);
        struct fact fact;
        assert_int_equal(fact_last(t->db, &t->arena, thread, STR_EMPTY, "x", "x", 0, 3, &fact),
                         ERR_DAMAGED);
        uint64_t input, output;
        assert_int_equal(facts_usage(t->db, thread, STR_EMPTY, 0, 3, &input, &output), ERR_DAMAGED);
        assert_int_equal(db_script(t->db, "DELETE FROM facts; INSERT INTO facts SELECT * FROM kept;"
                                          "DROP TABLE kept"),
                         OK);
        read_all(t, thread, OK);
    }
    assert_int_equal(db_script(t->db, harms[0]), OK);
    read_all(t, thread, ERR_DAMAGED);
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
        WITH_DB(long_commits),
        WITH_DB(pages_over_the_border),
        WITH_DB(one_on_either_side),
        WITH_DB(newest_on_either_side),
        WITH_DB(tokens_on_either_side),
        WITH_DB(new_threads_ask_no_old_table),
        WITH_DB(damaged_rows_are_noticed),
        cmocka_unit_test(numbers_have_no_gaps),
    };
    return db_fixture_group("store/facts", tests, COUNT(tests));
}

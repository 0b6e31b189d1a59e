/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void statuses(void **state)
{
    (void)state;
    static const struct {
        enum run_status status;
        const char *name;
        bool open;
    } rows[] = {
        {RUN_QUEUED, "queued", true},        {RUN_RUNNING, "running", true},
        {RUN_WAITING, "waiting", true},      {RUN_CANCELLING, "cancelling", true},
        {RUN_COMPLETED, "completed", false}, {RUN_CANCELLED, "cancelled", false},
        {RUN_EXHAUSTED, "exhausted", false}, {RUN_FAILED, "failed", false},
    };
    assert_int_equal(COUNT(rows), RUN_STATUS_COUNT);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_string_equal(run_status_name(rows[i].status), rows[i].name);
        assert_int_equal(run_status_open(rows[i].status), rows[i].open);
    }
}

static void same_run(const struct run *got, const struct run *expected)
{
    assert_int_equal(got->id, expected->id);
    assert_int_equal(got->thread, expected->thread);
    assert_str(got->run_id, expected->run_id);
    assert_str(got->agent, expected->agent);
    assert_str(got->model, expected->model);
    assert_int_equal(got->status, expected->status);
    assert_int_equal(got->legs, expected->legs);
    assert_str(got->task_id, expected->task_id);
    assert_str(got->input, STR_EMPTY); /* apart */
    assert_int_equal(got->input_bytes, expected->input_bytes);
    assert_str(got->queued, expected->queued);
    assert_int_equal(got->start_seq, expected->start_seq);
    assert_int_equal(got->input_tokens, expected->input_tokens);
    assert_int_equal(got->output_tokens, expected->output_tokens);
    assert_int_equal(got->cost, expected->cost);
    assert_str(got->currency, expected->currency);
    assert_int_equal(got->from_message, expected->from_message);
    assert_int_equal(got->created, expected->created);
    assert_int_equal(got->ended, expected->ended);
}

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    struct run run = {.thread = thread,
                      .run_id = STR("r1"),
                      .agent = STR("assistant"),
                      .model = STR("demo"),
                      .status = RUN_QUEUED,
                      .task_id = STR("k1"),
                      .input = STR("{\"state\":{}}"),
                      .queued = STR("{\"content\":\"later\"}"),
                      .start_seq = 3,
                      .created = 10};
    struct run found = {0};
    assert_int_equal(run_add(t->db, &run), OK);
    assert_int_equal(run_find(t->db, &t->arena, thread, STR("r1"), &found), OK);
    same_run(&found, &run);
    assert_int_equal(found.input_bytes, 12);

    run.agent = STR("other");
    run.model = STR("main");
    run.status = RUN_COMPLETED;
    run.cost = INT64_MAX;
    run.currency = STR("CNY");
    run.from_message = 17;
    run.legs = 2;
    run.task_id = STR("k2");
    run.input = STR("{\"not\":\"written\"}");
    run.queued = STR_EMPTY;
    run.start_seq = 9;
    run.input_tokens = 5000000000;
    run.output_tokens = 7;
    run.ended = 20;
    assert_int_equal(run_update(t->db, &run), OK);
    assert_int_equal(run_find(t->db, &t->arena, thread, STR("r1"), &found), OK);
    same_run(&found, &run);

    str input = STR_EMPTY;
    assert_int_equal(run_input(t->db, &t->arena, run.id, &input), OK);
    assert_str(input, STR("{\"state\":{}}"));

    struct run again = run;
    again.id = 0;
    assert_int_equal(run_add(t->db, &again), ERR_BUSY);
    assert_int_equal(again.id, 0);
    again.id = 99;
    assert_int_equal(run_update(t->db, &again), ERR_NOT_FOUND);
    assert_int_equal(run_find(t->db, &t->arena, thread, STR("r2"), &found), ERR_NOT_FOUND);
    assert_int_equal(run_find(t->db, &t->arena, 99, STR("r1"), &found), ERR_NOT_FOUND);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    again = run;
    again.thread = other;
    assert_int_equal(run_add(t->db, &again), OK);
}

static void inputs(void **state)
{
    struct db_fixture *t = *state;
    static char fits[RUN_INPUT_SHORT_MAX], longer[RUN_INPUT_SHORT_MAX + 1];
    memset(fits, 'x', sizeof fits);
    memset(longer, 'x', sizeof longer);
    const struct {
        str given, read;
        size_t bytes;
        int64_t rows; /* beside the run's own */
    } rows[] = {
        {STR(""), STR("{}"), 0, 0},
        {STR("{}"), STR("{}"), 0, 0},
        {STR("{\"tools\":[\"图\"]}"), STR("{\"tools\":[\"图\"]}"), 17, 0},
        {{fits, sizeof fits}, {fits, sizeof fits}, sizeof fits, 0},
        {{longer, sizeof longer}, {longer, sizeof longer}, sizeof longer, 1},
    };
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1), count = -1;
    str input = STR_EMPTY;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[] = {(char)('a' + i), 0};
        struct run run = {.thread = thread, .run_id = str_c(name), .input = rows[i].given};
        assert_int_equal(run_add(t->db, &run), OK);
        assert_int_equal(run.input_bytes, rows[i].bytes);
        assert_int_equal(run_find(t->db, &t->arena, thread, str_c(name), &run), OK);
        assert_int_equal(run.input_bytes, rows[i].bytes);
        assert_int_equal(run_input(t->db, &t->arena, run.id, &input), OK);
        assert_str(input, rows[i].read);
        assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM run_inputs"), &count),
                         OK);
        assert_int_equal(count, rows[i].rows);
    }
    assert_int_equal(thread_delete(t->db, thread), OK);
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM run_inputs"), &count), OK);
    assert_int_equal(count, 0);
}

#define TOOLS   "[{\"name\":\"paint\",\"description\":\"\"}]"
#define CONTEXT "[{\"description\":\"页\",\"value\":\"1\"}]"

/* What the model needs of an input stands apart from it; what is short leaves no row of its own. */
static void offers(void **state)
{
    struct db_fixture *t = *state;
    static char longer[RUN_INPUT_SHORT_MAX];
    memset(longer, 'x', sizeof longer);
    const struct {
        struct leg_input given, kept;
        size_t bytes;
        int64_t rows;
    } rows[] = {
        {{STR(""), STR(""), STR("")}, {STR(""), STR(""), STR("")}, 0, 0},
        {{STR("{}"), STR("[]"), STR("[]")}, {STR(""), STR(""), STR("")}, 0, 0},
        {{STR("{\"a\":1}"), STR(TOOLS), STR("[]")},
         {STR(""), STR(TOOLS), STR("")},
         7 + sizeof TOOLS - 1,
         0},
        {{STR(""), STR(""), STR(CONTEXT)}, {STR(""), STR(""), STR(CONTEXT)}, sizeof CONTEXT - 1, 0},
        {{STR("{\"a\":4}"), STR(TOOLS), {longer, sizeof longer}},
         {STR(""), STR(TOOLS), {longer, sizeof longer}},
         7 + sizeof TOOLS - 1 + sizeof longer,
         1},
        {{STR("{\"a\":2}"), STR(TOOLS), STR(CONTEXT)},
         {STR(""), STR(TOOLS), STR(CONTEXT)},
         7 + sizeof TOOLS + sizeof CONTEXT - 2,
         0},
        {{STR("{\"a\":3}"), STR(""), STR("")}, {STR(""), STR(""), STR("")}, 7, 0},
    };
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1), count = -1;
    struct run changed = {.thread = thread, .run_id = STR("again"), .status = RUN_RUNNING};
    assert_int_equal(run_add(t->db, &changed), OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char name[] = {(char)('a' + i), 0};
        const struct leg_input *given = &rows[i].given;
        struct run run = {.thread = thread,
                          .run_id = str_c(name),
                          .status = RUN_RUNNING,
                          .input = given->input,
                          .tools = given->tools,
                          .context = given->context};
        assert_int_equal(run_add(t->db, &run), OK);
        assert_int_equal(run_set_input(t->db, &changed, given), OK);
        struct run *both[] = {&run, &changed}; /* brought first, or later */
        for (size_t j = 0; j < COUNT(both); j++) {
            struct leg_input offer = {.input = STR("untouched")};
            struct run read;
            str input;
            assert_int_equal(both[j]->input_bytes, rows[i].bytes);
            assert_int_equal(run_find(t->db, &t->arena, thread, both[j]->run_id, &read), OK);
            assert_int_equal(read.input_bytes, rows[i].bytes);
            assert_int_equal(run_offer(t->db, &t->arena, both[j]->id, &offer), OK);
            assert_str(offer.input, STR_EMPTY);
            assert_str(offer.tools, rows[i].kept.tools);
            assert_str(offer.context, rows[i].kept.context);
            assert_int_equal(run_input(t->db, &t->arena, both[j]->id, &input), OK);
            assert_str(input, given->input.len ? given->input : STR("{}"));
        }
        struct stmt *s = db_prepare(t->db, "SELECT count(*) FROM run_offers WHERE run=?1");
        stmt_bind_i64(s, 1, changed.id);
        assert_int_equal(db_number(s, &count), OK);
        assert_int_equal(count, rows[i].rows);
    }
    changed.id = 4711;
    assert_int_equal(run_set_input(t->db, &changed, &(struct leg_input){0}), ERR_NOT_FOUND);
}

static void legs(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1), count = 0;
    struct run run = {.thread = thread, .run_id = STR("r"), .status = RUN_RUNNING, .legs = 1};
    assert_int_equal(run_add(t->db, &run), OK);
    run.legs = 2;
    assert_int_equal(run_start_leg(t->db, &run, STR("w2"), 5), OK);
    assert_int_equal(run_start_leg(t->db, &run, STR("w2"), 5), ERR_BUSY);
    run.legs = 3;
    str name = STR("untouched");
    assert_int_equal(leg_wire_id(t->db, &t->arena, &run, 0, &name), ERR_NOT_FOUND);
    assert_int_equal(leg_wire_id(t->db, &t->arena, &run, 4, &name), ERR_NOT_FOUND);
    assert_str(name, STR("untouched"));
    static const char *const names[] = {"r", "w2", "r-3"};
    for (uint32_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(leg_wire_id(t->db, &t->arena, &run, i + 1, &name), OK);
        assert_str(name, str_c(names[i]));
    }
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM legs"), &count), OK);
    assert_int_equal(count, 1);
}

/* What a thread with these runs, in this order, says about itself. Names are "a", "b", ... */
static const struct {
    const char *runs; /* a letter for the status of each */
    const char *current, *newest, *queue, *unfinished;
} threads[] = {
    {"", "", "", "", ""},          {"r", "a", "a", "", "a"},     {"w", "a", "a", "", ""},
    {"c", "a", "a", "", "a"},      {"C", "", "a", "", ""},       {"CXEF", "", "d", "", ""},
    {"q", "", "", "a", "a"},       {"qq", "", "", "ab", "a"},    {"Cr", "b", "b", "", "b"},
    {"Crqq", "b", "b", "cd", "b"}, {"Cwqq", "b", "b", "cd", ""}, {"Ccq", "b", "b", "c", "b"},
    {"CCqq", "", "b", "cd", "c"},  {"FXq", "", "b", "c", "c"},   {"rdd", "a", "a", "", "a"},
    {"Cdq", "", "a", "c", "c"},
};

static const struct {
    char letter;
    enum run_status status;
} letters[] = {
    {'q', RUN_QUEUED},    {'r', RUN_RUNNING},   {'w', RUN_WAITING},   {'c', RUN_CANCELLING},
    {'C', RUN_COMPLETED}, {'X', RUN_CANCELLED}, {'E', RUN_EXHAUSTED}, {'F', RUN_FAILED},
};

/* 'd' was dropped from the queue: cancelled, and never started. */
static void run_by_letter(struct db *db, int64_t thread, const char *run_id, char letter)
{
    struct run run = {
        .thread = thread, .run_id = str_c(run_id), .status = RUN_CANCELLED, .ended = 1};
    if (letter == 'd') {
        assert_int_equal(run_add(db, &run), OK);
        return;
    }
    for (size_t i = 0; i < COUNT(letters); i++)
        if (letters[i].letter == letter) run_made(db, thread, run_id, letters[i].status);
}

static void assert_one(enum err e, const struct run *run, const char *expected)
{
    assert_int_equal(e, expected[0] ? OK : ERR_NOT_FOUND);
    if (!e) assert_str(run->run_id, str_c(expected));
}

static void assert_list(const struct run_list *list, int64_t thread, const char *expected)
{
    char got[16] = "";
    size_t len = 0;
    for (size_t i = 0; i < list->count && len < sizeof got - 1; i++)
        if (list->runs[i].thread == thread) got[len++] = list->runs[i].run_id.p[0];
    assert_string_equal(got, expected);
}

static void what_a_thread_does(void **state)
{
    struct db_fixture *t = *state;
    int64_t ids[COUNT(threads)];
    for (size_t i = 0; i < COUNT(threads); i++) {
        char name[] = {(char)('A' + i), 0};
        ids[i] = thread_made(t->db, "alice", name, "x", 1);
        for (size_t k = 0; threads[i].runs[k]; k++) {
            char run_id[] = {(char)('a' + k), 0};
            run_by_letter(t->db, ids[i], run_id, threads[i].runs[k]);
        }
    }
    struct run_list unfinished = {0}, queue = {0};
    assert_int_equal(run_unfinished(t->db, &t->arena, 0, 100, &unfinished), OK);
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct run run = {0};
        enum err e = run_current(t->db, &t->arena, ids[i], &run);
        assert_one(e, &run, threads[i].current);
        e = run_newest(t->db, &t->arena, ids[i], &run);
        assert_one(e, &run, threads[i].newest);
        char head[] = {threads[i].queue[0], 0};
        e = run_next(t->db, &t->arena, ids[i], &run);
        assert_one(e, &run, head);
        assert_int_equal(run_queue(t->db, &t->arena, ids[i], &queue), OK);
        assert_list(&queue, ids[i], threads[i].queue);
        assert_list(&unfinished, ids[i], threads[i].unfinished);
    }
}

static void unfinished_in_pages(void **state)
{
    struct db_fixture *t = *state;
    static const char *const runs[] = {"q", "r", "Cw", "Cq", "c", "qq", "r"};
    int64_t expected[6] = {0};
    size_t count = 0;
    for (size_t i = 0; i < COUNT(runs); i++) {
        char name[] = {(char)('A' + i), 0};
        int64_t thread = thread_made(t->db, "alice", name, "x", 1);
        for (size_t k = 0; runs[i][k]; k++) {
            char run_id[] = {(char)('a' + k), 0};
            run_by_letter(t->db, thread, run_id, runs[i][k]);
        }
    }
    struct run_list list = {0};
    assert_int_equal(run_unfinished(t->db, &t->arena, 0, 100, &list), OK);
    assert_int_equal(list.count, COUNT(expected));
    for (size_t i = 0; i < list.count; i++) expected[i] = list.runs[i].id;
    for (size_t limit = 1; limit <= 7; limit++) {
        count = 0;
        int64_t after = 0;
        do {
            assert_int_equal(run_unfinished(t->db, &t->arena, after, limit, &list), OK);
            assert_true(list.count <= limit);
            for (size_t i = 0; i < list.count; i++)
                assert_int_equal(list.runs[i].id, expected[count++]);
            if (list.count) after = list.runs[list.count - 1].id;
        } while (list.count);
        assert_int_equal(count, COUNT(expected));
    }
}

static void queue_starts_in_order(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    static const char *const names[] = {"c", "a", "b"};
    for (size_t i = 0; i < COUNT(names); i++) run_made(t->db, thread, names[i], RUN_QUEUED);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct run run = {0};
        assert_int_equal(run_next(t->db, &t->arena, thread, &run), OK);
        assert_str(run.run_id, str_c(names[i]));
        run.status = RUN_RUNNING;
        run.legs = 1;
        assert_int_equal(run_update(t->db, &run), OK);
        assert_int_equal(facts_append_leg(t->db, run.thread, NULL, 0, 1, run.id), OK);
        assert_int_equal(run_current(t->db, &t->arena, thread, &run), OK);
        assert_str(run.run_id, str_c(names[i]));
        run.status = RUN_COMPLETED;
        run.ended = 5;
        assert_int_equal(run_update(t->db, &run), OK);
        assert_int_equal(run_current(t->db, &t->arena, thread, &run), ERR_NOT_FOUND);
        assert_int_equal(run_newest(t->db, &t->arena, thread, &run), OK);
        assert_str(run.run_id, str_c(names[i]));
    }
}

static void assert_queue_size(struct db_fixture *t, int64_t thread, size_t count, size_t bytes)
{
    size_t got_count = 42, got_bytes = 42;
    assert_int_equal(run_queue_size(t->db, thread, &got_count, &got_bytes), OK);
    assert_int_equal(got_count, count);
    assert_int_equal(got_bytes, bytes);
}

static bool id_waits(struct db_fixture *t, int64_t thread, const char *id)
{
    bool exists = false;
    assert_int_equal(queued_id_exists(t->db, thread, str_c(id), &exists), OK);
    return exists;
}

/* Bytes, not letters; and what waits no longer counts for nothing. */
static void queue_size_and_ids(void **state)
{
    struct db_fixture *t = *state;
    static const enum run_status ends[] = {RUN_RUNNING, RUN_CANCELLED, RUN_FAILED};
    for (size_t i = 0; i < COUNT(ends); i++) {
        char name[] = {(char)('A' + i), 0};
        int64_t thread = thread_made(t->db, "alice", name, "x", 1);
        int64_t other = thread_made(t->db, "bob", name, "x", 1);
        struct run first = {.thread = thread, .run_id = STR("a"), .queued = STR("[\"问\"]")};
        struct run second = {.thread = thread, .run_id = STR("b"), .queued = STR("[]")};
        second.input = STR("{\"a\":1}");
        assert_queue_size(t, thread, 0, 0);
        assert_int_equal(run_add(t->db, &first), OK);
        assert_int_equal(run_add(t->db, &second), OK);
        assert_queue_size(t, thread, 2, 7 + 2 + 7);
        assert_queue_size(t, other, 0, 0);

        assert_int_equal(queued_id_add(t->db, &first, STR("m1")), OK);
        assert_int_equal(queued_id_add(t->db, &first, STR("m2")), OK);
        assert_int_equal(queued_id_add(t->db, &second, STR("m3")), OK);
        assert_int_equal(queued_id_add(t->db, &second, STR("m1")), ERR_BUSY);
        assert_true(id_waits(t, thread, "m1") && id_waits(t, thread, "m3"));
        assert_false(id_waits(t, other, "m1") || id_waits(t, thread, "M1"));

        assert_int_equal(run_update(t->db, &first), OK); /* still queued */
        assert_true(id_waits(t, thread, "m2"));
        first.status = ends[i];
        first.queued = STR_EMPTY;
        assert_int_equal(run_update(t->db, &first), OK);
        assert_queue_size(t, thread, 1, 2 + 7);
        assert_false(id_waits(t, thread, "m1") || id_waits(t, thread, "m2"));
        assert_true(id_waits(t, thread, "m3"));
        assert_int_equal(thread_delete(t->db, thread), OK);
        assert_false(id_waits(t, thread, "m3"));
    }
}

static struct run spender(int64_t thread, const char *run_id, uint64_t cost, const char *currency)
{
    return (struct run){.thread = thread,
                        .run_id = str_c(run_id),
                        .status = RUN_COMPLETED,
                        .legs = 1,
                        .input_tokens = 10,
                        .output_tokens = 1,
                        .cost = cost,
                        .currency = str_c(currency)};
}

/* Each currency by itself; what has not begun does not count, nor do other threads. */
static void what_was_spent(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    struct run runs[] = {
        spender(thread, "r1", 5, "CNY"), spender(thread, "r2", 7, "USD"),
        spender(thread, "r3", 0, ""),    spender(thread, "r4", INT64_MAX, "CNY"),
        spender(other, "r1", 9, "USD"),  spender(thread, "r5", 9, "USD"),
    };
    runs[5].status = RUN_QUEUED;
    runs[5].legs = 0;
    struct spent_list spent = {0};
    assert_int_equal(runs_spent(t->db, &t->arena, thread, STR("USD"), &spent), OK);
    assert_int_equal(spent.count, 0);
    for (size_t i = 0; i < COUNT(runs); i++) assert_int_equal(run_add(t->db, &runs[i]), OK);
    assert_int_equal(runs_spent(t->db, &t->arena, thread, STR("USD"), &spent), OK);
    assert_int_equal(spent.count, 2);
    assert_str(spent.rows[0].currency, STR("CNY"));
    assert_int_equal(spent.rows[0].cost, INT64_MAX);
    assert_int_equal(spent.rows[0].input_tokens, 20);
    assert_str(spent.rows[1].currency, STR("USD"));
    assert_int_equal(spent.rows[1].cost, 7);
    assert_int_equal(spent.rows[1].input_tokens, 20);
    assert_int_equal(spent.rows[1].output_tokens, 2);
}

static int64_t context_start(struct db_fixture *t, int64_t thread)
{
    struct thread row;
    int64_t from = -1;
    assert_int_equal(thread_by_id(t->db, &t->arena, thread, &row), OK);
    assert_int_equal(run_context_start(t->db, &row, &from), OK);
    return from;
}

static void where_the_context_begins(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    assert_int_equal(context_start(t, thread), 0);
    for (int64_t i = 1; i <= 2; i++) {
        struct run run = spender(thread, i == 1 ? "r1" : "r2", 0, "");
        run.from_message = 10 * i;
        assert_int_equal(run_add(t->db, &run), OK);
        assert_int_equal(context_start(t, thread), 10 * (i - 1)); /* it has not begun */
        assert_int_equal(facts_append_leg(t->db, run.thread, NULL, 0, 1, run.id), OK);
        assert_int_equal(context_start(t, thread), 10 * i);
    }
}

static void unknown_status_is_damage(void **state)
{
    struct db_fixture *t = *state;
    static const char *const damages[] = {"UPDATE runs SET status=8", "UPDATE runs SET status=-1"};
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    run_made(t->db, thread, "r", RUN_RUNNING);
    for (size_t i = 0; i < COUNT(damages); i++) {
        struct run run = {.id = 42};
        assert_int_equal(by_hand(t->db, damages[i]), OK);
        assert_int_equal(run_find(t->db, &t->arena, thread, STR("r"), &run), ERR_IO);
        assert_int_equal(run.id, 42);
    }
}

static void accepted(void **state)
{
    struct db_fixture *t = *state;
    int64_t thread = thread_made(t->db, "alice", "t", "x", 1);
    int64_t other = thread_made(t->db, "bob", "t", "x", 1);
    struct accepted accepted = {.hash = {1, 2, 3}, .answer = STR("{\"taskId\":\"k\"}")};
    struct accepted found = {0};
    assert_int_equal(accepted_find(t->db, &t->arena, thread, STR("r"), &found), ERR_NOT_FOUND);
    assert_int_equal(accepted_add(t->db, thread, STR("r"), &accepted, 1), OK);
    assert_int_equal(accepted_find(t->db, &t->arena, thread, STR("r"), &found), OK);
    assert_memory_equal(found.hash, accepted.hash, HASH_BYTES);
    assert_str(found.answer, accepted.answer);
    assert_int_equal(accepted_add(t->db, thread, STR("r"), &accepted, 1), ERR_BUSY);
    assert_int_equal(accepted_find(t->db, &t->arena, other, STR("r"), &found), ERR_NOT_FOUND);
    assert_int_equal(accepted_find(t->db, &t->arena, thread, STR("R"), &found), ERR_NOT_FOUND);
    accepted.answer = STR("{}");
    assert_int_equal(accepted_add(t->db, other, STR("r"), &accepted, 1), OK);
}

int test_runs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        WITH_DB(every_field),
        WITH_DB(inputs),
        WITH_DB(offers),
        WITH_DB(legs),
        WITH_DB(what_a_thread_does),
        WITH_DB(unfinished_in_pages),
        WITH_DB(queue_starts_in_order),
        WITH_DB(queue_size_and_ids),
        WITH_DB(unknown_status_is_damage),
        WITH_DB(accepted),
        WITH_DB(what_was_spent),
        WITH_DB(where_the_context_begins),
    };
    return db_fixture_group("store/runs", tests, COUNT(tests));
}

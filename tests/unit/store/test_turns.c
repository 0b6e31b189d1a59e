/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/turns.h"

#include <string.h>

#include "check.h"
#include "store/db/store.h"

/* A line is given as letters: a job of "a", one of "b", '.' one of ours; in what order do they come
 * out? */
static void order(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},       {"a", "a"},       {"aaab", "abaa"},     {"aaabbc", "abcaba"},
        {"abc", "abc"}, {"...a", ".a.."}, {"aa..bb", "a.ba.b"}, {"aaaaaaaab.", "ab.aaaaaaa"},
        {"cba", "cba"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job jobs[16];
        struct turns turns;
        char got[16] = "";
        size_t count = strlen(rows[i].in), n = 0;
        turns_init(&turns, 100);
        for (size_t k = 0; k < count; k++) {
            bool ours = rows[i].in[k] == '.';
            jobs[k] = (struct job){.who = {rows[i].in + k, ours ? 0 : 1}};
            assert_true(turns_push(&turns, &jobs[k]));
        }
        assert_int_equal(turns.count, count);
        struct job *before[256] = {0};
        for (struct job *job; (job = turns_pop(&turns)); n++) {
            unsigned char name = (unsigned char)(job->who.len ? job->who.p[0] : '.');
            got[n] = (char)name;
            assert_true(job > before[name]); /* one's own stay in order */
            before[name] = job;
        }
        assert_string_equal(got, rows[i].out);
        assert_int_equal(turns.count, 0);
        turns_done(&turns);
    }
}

/* Whoever comes between has not long to wait, however many one person has brought. */
static void a_late_one(void **state)
{
    (void)state;
    struct job jobs[10] = {0}, late = {.who = STR("b")};
    struct turns turns;
    turns_init(&turns, 100);
    for (size_t i = 0; i < COUNT(jobs); i++) {
        jobs[i].who = STR("a");
        assert_true(turns_push(&turns, &jobs[i]));
    }
    assert_ptr_equal(turns_pop(&turns), &jobs[0]);
    assert_true(turns_push(&turns, &late));
    assert_ptr_equal(turns_pop(&turns), &jobs[1]);
    assert_ptr_equal(turns_pop(&turns), &late);
    while (turns_pop(&turns)) continue;
    turns_done(&turns);
}

static void a_share(void **state)
{
    (void)state;
    struct job jobs[8] = {0};
    struct turns turns;
    turns_init(&turns, 3);
    for (size_t i = 0; i < 8; i++) jobs[i].who = i < 4 ? STR("a") : i < 6 ? STR("b") : STR_EMPTY;
    for (size_t i = 0; i < 3; i++) assert_true(turns_push(&turns, &jobs[i]));
    assert_false(turns_push(&turns, &jobs[3]));
    assert_true(turns_push(&turns, &jobs[4]));
    assert_ptr_equal(turns_pop(&turns), &jobs[0]);
    assert_true(turns_push(&turns, &jobs[3]));
    while (turns_pop(&turns)) continue;
    for (size_t i = 0; i < 8; i++) jobs[i].who = STR_EMPTY; /* ours have no share */
    for (size_t i = 0; i < 8; i++) assert_true(turns_push(&turns, &jobs[i]));
    for (size_t i = 0; i < 8; i++) assert_ptr_equal(turns_pop(&turns), &jobs[i]);
    assert_null(turns_pop(&turns));
    turns_done(&turns);
}

/* People come and go, sometimes more than a few at once, and as many as the line has of each: always
 * the one whose turn is longest ago, and of theirs the first. */
static void come_and_go(void **state)
{
    (void)state;
    enum { PEOPLE = 5 * TURNS_FEW, STEPS = 20000, EACH = 4 };
    static struct job jobs[STEPS];
    static char names[PEOPLE][4];
    size_t first[PEOPLE] = {0}, count[PEOPLE] = {0}, theirs[PEOPLE][EACH]; /* the model */
    size_t ring[PEOPLE], people = 0, all = 0;
    struct turns turns;
    turns_init(&turns, EACH);
    for (size_t p = 0; p < PEOPLE; p++) snprintf(names[p], sizeof names[p], "%zu", p * p % 97);
    memset(jobs, 0, sizeof jobs);
    srand(1);
    for (size_t i = 0; i < STEPS; i++) {
        size_t crowd = i / 1000 % 2 ? PEOPLE : TURNS_FEW / 2;
        size_t p = (size_t)rand() % crowd;
        if (rand() % 100 < (i / 200 % 2 ? 60 : 40)) {
            jobs[i].who = str_c(names[p]);
            assert_int_equal(turns_push(&turns, &jobs[i]), count[p] < EACH);
            if (count[p] == EACH) continue;
            if (!count[p]) ring[people++] = p;
            theirs[p][(first[p] + count[p]++) % EACH] = i;
            all++;
        } else if (!people) {
            assert_null(turns_pop(&turns));
        } else {
            p = ring[0];
            memmove(ring, ring + 1, --people * sizeof *ring);
            assert_ptr_equal(turns_pop(&turns), &jobs[theirs[p][first[p]++ % EACH]]);
            if (--count[p]) ring[people++] = p;
            all--;
        }
        assert_int_equal(turns.people, people);
        assert_int_equal(turns.count, all);
    }
    while (turns_pop(&turns)) continue;
    assert_int_equal(turns.people, 0);
    turns_done(&turns);
}

int test_turns(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(a_late_one),
                                       cmocka_unit_test(a_share), cmocka_unit_test(come_and_go)};
    return cmocka_run_group_tests_name("store/turns", tests, NULL, NULL);
}

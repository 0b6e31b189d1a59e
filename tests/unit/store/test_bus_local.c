/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "store/bus/bus.h"

struct listener {
    struct bus_follower follower;
    struct bus *bus;
    bool leaves; /* at the first thing it hears */
    int facts, previews;
};

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct listener *l = arg;
    assert_int_equal(facts[count - 1].seq, count);
    l->facts += (int)count;
    if (l->leaves) bus_unfollow(l->bus, &l->follower);
}

static void on_preview(void *arg, const struct preview *preview)
{
    struct listener *l = arg;
    assert_str(preview->delta, STR("hi"));
    l->previews++;
    if (l->leaves) bus_unfollow(l->bus, &l->follower);
}

static const struct bus_ops ops = {.on_facts = on_facts, .on_preview = on_preview};
static const struct fact two[] = {{.seq = 1}, {.seq = 2}};
static const struct preview hi = {.kind = PREVIEW_TEXT, .delta = {"hi", 2}};

enum { LISTENERS = 4 };

static void listen_all(struct bus *bus, struct listener *all, int64_t thread)
{
    for (size_t i = 0; i < LISTENERS; i++) {
        all[i] = (struct listener){.bus = bus, .follower = {.ops = &ops, .arg = &all[i]}};
        bus_follow(bus, thread, &all[i].follower);
    }
}

static void only_followers_hear(void **state)
{
    (void)state;
    struct bus *bus = bus_local_new();
    struct listener one[LISTENERS], other[LISTENERS];
    bus_facts(bus, 1, two, COUNT(two));
    bus_preview(bus, 1, &hi);
    assert_false(bus_followed(bus, 1));
    listen_all(bus, one, 1);
    listen_all(bus, other, INT64_MAX);
    assert_true(bus_followed(bus, 1));
    assert_true(bus_followed(bus, INT64_MAX));
    assert_false(bus_followed(bus, 2));
    bus_facts(bus, 1, two, COUNT(two));
    bus_facts(bus, 2, two, COUNT(two));
    bus_preview(bus, INT64_MAX, &hi);
    for (size_t i = 0; i < LISTENERS; i++) {
        assert_int_equal(one[i].facts, 2);
        assert_int_equal(one[i].previews, 0);
        assert_int_equal(other[i].facts, 0);
        assert_int_equal(other[i].previews, 1);
        bus_unfollow(bus, &one[i].follower);
        bus_unfollow(bus, &other[i].follower);
    }
    assert_false(bus_followed(bus, 1));
    assert_false(bus_followed(bus, INT64_MAX));
    bus_free(bus);
}

/* Whoever of the four leaves inside the call: all of them hear it once, the rest hear the next. */
static void leaving_inside_a_call(void **state)
{
    (void)state;
    for (unsigned leavers = 0; leavers < 1u << LISTENERS; leavers++) {
        struct bus *bus = bus_local_new();
        struct listener all[LISTENERS];
        listen_all(bus, all, 7);
        for (size_t i = 0; i < LISTENERS; i++) all[i].leaves = leavers >> i & 1;
        bus_facts(bus, 7, two, COUNT(two));
        assert_int_equal(bus_followed(bus, 7), leavers != (1u << LISTENERS) - 1);
        bus_preview(bus, 7, &hi);
        for (size_t i = 0; i < LISTENERS; i++) {
            assert_int_equal(all[i].facts, 2);
            assert_int_equal(all[i].previews, all[i].leaves ? 0 : 1);
            bus_unfollow(bus, &all[i].follower);
        }
        bus_free(bus);
    }
}

/* Any order of leaving, by each one of the four first, and so on. */
static void leaving_in_any_order(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 256; order++) {
        struct bus *bus = bus_local_new();
        struct listener all[LISTENERS];
        listen_all(bus, all, 7);
        unsigned gone = 0;
        for (unsigned rest = order, n = 0; n < LISTENERS; n++, rest >>= 2) {
            bus_unfollow(bus, &all[rest & 3].follower); /* perhaps again */
            gone |= 1u << (rest & 3);
            bus_facts(bus, 7, two, COUNT(two));
            for (unsigned i = 0; i < LISTENERS; i++) {
                assert_int_equal(all[i].facts, gone >> i & 1 ? 0 : 2);
                all[i].facts = 0;
            }
        }
        for (size_t i = 0; i < LISTENERS; i++) bus_unfollow(bus, &all[i].follower);
        assert_false(bus_followed(bus, 7));
        bus_free(bus);
    }
}

static void following_again(void **state)
{
    (void)state;
    struct bus *bus = bus_local_new();
    struct listener all[LISTENERS];
    listen_all(bus, all, 7);
    bus_unfollow(bus, &all[0].follower);
    bus_follow(bus, 8, &all[0].follower);
    bus_facts(bus, 7, two, COUNT(two));
    assert_int_equal(all[0].facts, 0);
    bus_facts(bus, 8, two, COUNT(two));
    assert_int_equal(all[0].facts, 2);
    assert_int_equal(all[1].facts, 2);
    for (size_t i = 0; i < LISTENERS; i++) bus_unfollow(bus, &all[i].follower);
    bus_free(bus);
    bus_free(NULL);
}

/* Thread 0: facts of every thread, behind the thread's own followers; no previews. */
static void following_every_thread(void **state)
{
    (void)state;
    struct bus *bus = bus_local_new();
    struct listener every[LISTENERS], one[LISTENERS];
    static const struct bus_ops facts_alone = {.on_facts = on_facts};
    assert_false(bus_followed(bus, 0));
    listen_all(bus, every, 0);
    listen_all(bus, one, 7);
    for (size_t i = 0; i < LISTENERS; i++) every[i].follower.ops = &facts_alone;
    assert_true(bus_followed(bus, 0));
    assert_false(bus_followed(bus, 8)); /* nobody looks at its previews */
    bus_facts(bus, 7, two, COUNT(two));
    bus_facts(bus, 8, two, COUNT(two));
    bus_preview(bus, 7, &hi);
    bus_preview(bus, 8, &hi);
    for (size_t i = 0; i < LISTENERS; i++) {
        assert_int_equal(every[i].facts, 4);
        assert_int_equal(one[i].facts, 2);
        assert_int_equal(one[i].previews, 1);
    }
    every[1].leaves = every[3].leaves = true;
    bus_facts(bus, 9, two, COUNT(two));
    bus_facts(bus, 9, two, COUNT(two));
    for (size_t i = 0; i < LISTENERS; i++) {
        assert_int_equal(every[i].facts, every[i].leaves ? 6 : 8);
        bus_unfollow(bus, &every[i].follower);
        bus_unfollow(bus, &one[i].follower);
    }
    assert_false(bus_followed(bus, 0));
    bus_follow(bus, 0, &every[0].follower); /* again */
    bus_facts(bus, 1, two, COUNT(two));
    assert_int_equal(every[0].facts, 10);
    bus_unfollow(bus, &every[0].follower);
    bus_free(bus);
}

int test_bus_local(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_followers_hear),    cmocka_unit_test(leaving_inside_a_call),
        cmocka_unit_test(leaving_in_any_order),   cmocka_unit_test(following_again),
        cmocka_unit_test(following_every_thread),
    };
    return cmocka_run_group_tests_name("store/bus_local", tests, NULL, NULL);
}

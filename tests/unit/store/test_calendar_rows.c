/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"
#include "store/table/calendar_rows.h"
#include "store/table/keys.h"

enum { HOUR = 60 * 60 * 1000 };

/* Names in `ids` in their order, with a space behind each. */
static str ids_of(struct arena *arena, const struct calendar_list *list)
{
    str ids = STR_EMPTY;
    for (size_t i = 0; i < list->count; i++)
        ids = arena_printf(arena, "%.*s%.*s ", STR_ARG(ids), STR_ARG(list->rows[i].id));
    return ids;
}

static struct calendar_event event_make(const char *id, const char *owner, msec start, msec end)
{
    return (struct calendar_event){.id = str_c(id),
                                   .owner = str_c(owner),
                                   .title = STR("Title"),
                                   .start = STR("start"),
                                   .end = STR("end"),
                                   .start_utc = start,
                                   .end_utc = end,
                                   .attendees = STR("[]"),
                                   .created = 7};
}

static void event_made(struct db *db, const char *id, const char *owner, msec start, msec end)
{
    struct calendar_event event = event_make(id, owner, start, end);
    assert_int_equal(calendar_add(db, &event, event.id), OK);
}

static void user_made(struct db *db, const char *name)
{
    struct stmt *s = db_prepare(db, "INSERT INTO users (name, created) VALUES (?1, 1)");
    stmt_bind_str(s, 1, str_c(name));
    assert_int_equal(stmt_run(s), OK);
}

static str page(struct db_fixture *t, const char *who, msec from, msec to, const char *query)
{
    struct calendar_list list;
    struct calendar_range range = {
        .who = str_c(who), .from = from, .to = to, .query = str_c(query), .limit = 100};
    assert_int_equal(calendar_page(t->db, &t->arena, &range, &list), OK);
    assert_false(list.more);
    return ids_of(&t->arena, &list);
}

/* ---- tests ---- */

static void life(void **state)
{
    struct db_fixture *t = *state;
    struct calendar_event event = {.id = STR("e1"),
                                   .owner = STR("ann"),
                                   .title = STR("评审会"),
                                   .start = STR("2026-11-16T15:00:00+08:00"),
                                   .end = STR("2026-11-16T08:00:00Z"),
                                   .start_utc = 15,
                                   .end_utc = 16,
                                   .location = STR("here"),
                                   .attendees = STR("[\"bob\"]"),
                                   .created = 7};
    struct calendar_event found = {0}, untouched = {.created = 99};
    assert_int_equal(calendar_add(t->db, &event, STR("c1")), OK);
    assert_int_equal(calendar_find(t->db, &t->arena, STR("ann"), STR("e1"), &found), OK);
    assert_str(found.id, event.id);
    assert_str(found.owner, event.owner);
    assert_str(found.title, event.title);
    assert_str(found.start, event.start);
    assert_str(found.end, event.end);
    assert_str(found.location, event.location);
    assert_str(found.attendees, event.attendees);
    assert_int_equal(found.start_utc, 15);
    assert_int_equal(found.end_utc, 16);
    assert_int_equal(found.created, 7);

    assert_int_equal(calendar_find(t->db, &t->arena, STR("bob"), STR("e1"), &untouched),
                     ERR_NOT_FOUND);
    assert_int_equal(calendar_find(t->db, &t->arena, STR("ann"), STR("e2"), &untouched),
                     ERR_NOT_FOUND);
    assert_int_equal(untouched.created, 99);
    assert_int_equal(calendar_remove(t->db, STR("bob"), STR("e1")), ERR_NOT_FOUND);
    assert_int_equal(calendar_remove(t->db, STR("ann"), STR("e1")), OK);
    assert_int_equal(calendar_remove(t->db, STR("ann"), STR("e1")), ERR_NOT_FOUND);
    assert_int_equal(calendar_find(t->db, &t->arena, STR("ann"), STR("e1"), &found), ERR_NOT_FOUND);
}

static void one_event_for_a_call(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *id, *owner, *call_id;
        enum err expected;
    } rows[] = {
        {"e1", "ann", "c1", OK},       {"e2", "ann", "c1", ERR_BUSY}, {"e1", "ann", "c2", ERR_BUSY},
        {"e1", "bob", "c3", ERR_BUSY}, {"e3", "bob", "c1", OK},       {"e4", "ann", "c2", OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct calendar_event event = event_make(rows[i].id, rows[i].owner, 0, 1);
        assert_int_equal(calendar_add(t->db, &event, str_c(rows[i].call_id)), rows[i].expected);
    }
}

/* What lies how to an event from 10 to 12. Touching is no conflict, in both directions. */
static void overlaps(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        msec start, end;
        bool expected;
    } rows[] = {
        {8 * HOUR, 9 * HOUR, false},      {8 * HOUR, 10 * HOUR, false},
        {8 * HOUR, 10 * HOUR + 1, true},  {9 * HOUR, 11 * HOUR, true},
        {9 * HOUR, 12 * HOUR, true},      {9 * HOUR, 13 * HOUR, true},
        {10 * HOUR, 11 * HOUR, true},     {10 * HOUR, 12 * HOUR, true},
        {10 * HOUR, 13 * HOUR, true},     {11 * HOUR, 11 * HOUR + 1, true},
        {11 * HOUR, 12 * HOUR, true},     {11 * HOUR, 13 * HOUR, true},
        {12 * HOUR - 1, 13 * HOUR, true}, {12 * HOUR, 13 * HOUR, false},
        {13 * HOUR, 14 * HOUR, false},    {10 * HOUR, 10 * HOUR, false},
        {11 * HOUR, 11 * HOUR, true},     {12 * HOUR, 12 * HOUR, false},
        {-10 * HOUR, 10 * HOUR, false},   {-10 * HOUR, 20 * HOUR, true},
    };
    event_made(t->db, "theirs", "bob", 10 * HOUR, 12 * HOUR);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct calendar_event fixed = event_make("fixed", "ann", 10 * HOUR, 12 * HOUR);
        struct calendar_event other = event_make("other", "ann", rows[i].start, rows[i].end);
        for (int turned = 0; turned < 2; turned++) {
            struct calendar_event *known = turned ? &other : &fixed;
            struct calendar_event *asked = turned ? &fixed : &other;
            struct calendar_list list;
            assert_int_equal(calendar_add(t->db, known, known->id), OK);
            assert_int_equal(calendar_conflicts(t->db, &t->arena, asked, 5, &list), OK);
            if (list.count != rows[i].expected)
                fail_msg("row %zu, turned %d: %zu conflicts", i, turned, list.count);
            if (list.count) assert_str(list.rows[0].id, known->id);
            /* An event is not in its own way. */
            assert_int_equal(calendar_conflicts(t->db, &t->arena, known, 5, &list), OK);
            assert_int_equal(list.count, 0);
            assert_int_equal(calendar_remove(t->db, STR("ann"), known->id), OK);
        }
    }
}

static void conflicts_in_order_and_bounded(void **state)
{
    struct db_fixture *t = *state;
    struct calendar_event asked = event_make("asked", "ann", 0, 100);
    struct calendar_list list;
    event_made(t->db, "late", "ann", 50, 60);
    event_made(t->db, "long", "ann", 10, 90);
    event_made(t->db, "early", "ann", 10, 20);
    static const struct {
        size_t limit;
        str expected;
        bool more;
    } rows[] = {{2, STR("early long "), true},
                {3, STR("early long late "), false},
                {4, STR("early long late "), false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(calendar_conflicts(t->db, &t->arena, &asked, rows[i].limit, &list), OK);
        assert_str(ids_of(&t->arena, &list), rows[i].expected);
        assert_int_equal(list.more, rows[i].more);
    }
}

static void pages(void **state)
{
    struct db_fixture *t = *state;
    struct calendar_event rich = event_make("rich", "ann", 40, 50);
    rich.title = STR("Review of \"Q4\"");
    rich.location = STR("Große Halle, 上海");
    rich.attendees = STR("[\"Bob Stone\",\"zoe@example.org\"]");
    assert_int_equal(calendar_add(t->db, &rich, rich.id), OK);
    event_made(t->db, "b", "ann", 10, 20);
    event_made(t->db, "a", "ann", 10, 20);
    event_made(t->db, "point", "ann", 30, 30);
    event_made(t->db, "his", "bob", 10, 20);
    static const struct {
        const char *who;
        msec from, to;
        const char *query;
        str expected;
    } rows[] = {
        {"ann", 0, 100, "", STR("a b point rich ")},
        {"bob", 0, 100, "", STR("his ")},
        {"carol", 0, 100, "", STR("")},
        {"ann", 0, 10, "", STR("")},
        {"ann", 0, 11, "", STR("a b ")},
        {"ann", 19, 30, "", STR("a b ")},
        {"ann", 20, 30, "", STR("")},
        {"ann", 20, 31, "", STR("point ")},
        {"ann", 30, 31, "", STR("point ")},
        {"ann", 31, 40, "", STR("")},
        {"ann", 0, 100, "TITLE", STR("a b point ")},
        {"ann", 0, 100, "review OF", STR("rich ")},
        {"ann", 0, 100, "\"q4\"", STR("rich ")},
        {"ann", 0, 100, "上海", STR("rich ")},
        {"ann", 0, 100, "bob stone", STR("rich ")},
        {"ann", 0, 100, "Example.org", STR("rich ")},
        {"ann", 0, 100, "stone\",\"zoe", STR("")}, /* nobody's name, only our JSON */
        {"ann", 0, 100, "[", STR("")},
        {"ann", 0, 100, "%", STR("")},
        {"ann", 0, 100, "_", STR("")},
        {"ann", 0, 10, "title", STR("")},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(page(t, rows[i].who, rows[i].from, rows[i].to, rows[i].query), rows[i].expected);
}

static void pages_are_bounded(void **state)
{
    struct db_fixture *t = *state;
    struct calendar_list list;
    event_made(t->db, "a", "ann", 1, 2);
    event_made(t->db, "b", "ann", 2, 3);
    for (size_t limit = 1; limit <= 3; limit++) {
        struct calendar_range range = {.who = STR("ann"), .to = 10, .limit = limit};
        assert_int_equal(calendar_page(t->db, &t->arena, &range, &list), OK);
        assert_int_equal(list.count, limit < 2 ? limit : 2);
        assert_int_equal(list.more, limit < 2);
    }

    /* Long rows end a page early, but never before its first one. */
    char *letters = arena_alloc(&t->arena, CALENDAR_PAGE_BYTES_MAX);
    for (size_t i = 0; i < CALENDAR_PAGE_BYTES_MAX; i++) letters[i] = 'x';
    for (int i = 0; i < 3; i++) {
        struct calendar_event event = event_make("", "bob", i, i + 1);
        event.id = arena_printf(&t->arena, "long%d", i);
        event.title =
            (str){letters, i == 0 ? CALENDAR_PAGE_BYTES_MAX / 2 : CALENDAR_PAGE_BYTES_MAX};
        assert_int_equal(calendar_add(t->db, &event, event.id), OK);
    }
    struct calendar_range range = {.who = STR("bob"), .to = 10, .limit = 100};
    assert_int_equal(calendar_page(t->db, &t->arena, &range, &list), OK);
    assert_str(ids_of(&t->arena, &list), STR("long0 long1 "));
    assert_true(list.more);
}

static void shares(void **state)
{
    struct db_fixture *t = *state;
    struct calendar_event found = {0};
    event_made(t->db, "own", "bob", 5, 6);
    event_made(t->db, "hers", "ann", 1, 2);
    event_made(t->db, "secret", "ann", 3, 4);
    assert_int_equal(calendar_share(t->db, STR("hers"), STR("bob")), OK);
    assert_int_equal(calendar_share(t->db, STR("hers"), STR("bob")), OK);
    assert_int_equal(calendar_share(t->db, STR("hers"), STR("carol")), OK);
    assert_int_equal(calendar_share(t->db, STR("nothing"), STR("bob")), ERR_INTERNAL);

    assert_str(page(t, "ann", 0, 10, ""), STR("hers secret "));
    assert_str(page(t, "bob", 0, 10, ""), STR("hers own "));
    assert_str(page(t, "bob", 2, 10, ""), STR("own "));
    assert_str(page(t, "bob", 0, 10, "nowhere"), STR(""));
    assert_str(page(t, "carol", 0, 10, ""), STR("hers "));
    assert_str(page(t, "dave", 0, 10, ""), STR(""));
    assert_int_equal(calendar_find(t->db, &t->arena, STR("bob"), STR("hers"), &found), OK);
    assert_str(found.owner, STR("ann"));
    assert_int_equal(calendar_find(t->db, &t->arena, STR("bob"), STR("secret"), &found),
                     ERR_NOT_FOUND);
    assert_int_equal(calendar_remove(t->db, STR("bob"), STR("hers")), ERR_NOT_FOUND);

    /* What others share is not in one's way, and goes with its event. */
    struct calendar_list list;
    struct calendar_event asked = event_make("asked", "bob", 1, 2);
    assert_int_equal(calendar_conflicts(t->db, &t->arena, &asked, 5, &list), OK);
    assert_int_equal(list.count, 0);
    assert_int_equal(calendar_remove(t->db, STR("ann"), STR("hers")), OK);
    assert_str(page(t, "bob", 0, 10, ""), STR("own "));
    int64_t left = -1;
    assert_int_equal(db_number(db_prepare(t->db, "SELECT count(*) FROM calendar_shares"), &left),
                     OK);
    assert_int_equal(left, 0);
}

struct seen {
    struct arena *arena;
    str ids;
};

static void on_event(void *arg, const struct calendar_event *event)
{
    struct seen *seen = arg;
    seen->ids = arena_printf(seen->arena, "%.*s%.*s ", STR_ARG(seen->ids), STR_ARG(event->id));
}

static void each_of_an_owner(void **state)
{
    struct db_fixture *t = *state;
    event_made(t->db, "late", "ann", 8, 9);
    event_made(t->db, "long", "ann", 1, 7);
    event_made(t->db, "early", "ann", 2, 3);
    event_made(t->db, "his", "bob", 2, 3);
    assert_int_equal(calendar_share(t->db, STR("his"), STR("ann")), OK);
    static const struct {
        str owner, expected;
    } rows[] = {
        {STR("ann"), STR("early long late ")}, {STR("bob"), STR("his ")}, {STR("carol"), STR("")}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct seen seen = {.arena = &t->arena, .ids = STR_EMPTY};
        assert_int_equal(calendar_each(t->db, rows[i].owner, on_event, &seen), OK);
        assert_str(seen.ids, rows[i].expected);
    }
}

static void room(void **state)
{
    struct db_fixture *t = *state;
    _Static_assert(CALENDAR_EVENTS_MAX == 10000, "the script below makes one less");
    assert_int_equal(
        db_script(t->db,
                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<9999)"
                  " INSERT INTO calendar_events (id, owner, call_id, start_utc, end_utc,"
                  " created, start_time, end_time, title, location, attendees)"
                  " SELECT 'e' || i, 'ann', 'c' || i, i, i+1, 1, '', '', '', '', '[]'"
                  " FROM n"),
        OK);
    static const struct {
        const char *id, *owner;
        enum err expected;
    } rows[] = {{"last", "ann", OK}, {"over", "ann", ERR_TOO_LARGE}, {"over", "bob", OK}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct calendar_event event = event_make(rows[i].id, rows[i].owner, 0, 1);
        assert_int_equal(calendar_add(t->db, &event, event.id), rows[i].expected);
    }
    assert_int_equal(calendar_remove(t->db, STR("ann"), STR("e1")), OK);
    event_made(t->db, "again", "ann", 0, 1);
}

static void memory(void **state)
{
    struct db_fixture *t = *state;
    str result = STR("untouched");
    assert_int_equal(calendar_recall(t->db, &t->arena, STR("ann"), STR("c1"), &result),
                     ERR_NOT_FOUND);
    assert_str(result, STR("untouched"));
    assert_int_equal(calendar_remember(t->db, STR("ann"), STR("c1"), STR("{\"a\":1}"), 5), OK);
    assert_int_equal(calendar_remember(t->db, STR("ann"), STR("c1"), STR("{}"), 6), ERR_BUSY);
    assert_int_equal(calendar_recall(t->db, &t->arena, STR("ann"), STR("c1"), &result), OK);
    assert_str(result, STR("{\"a\":1}"));
    assert_int_equal(calendar_recall(t->db, &t->arena, STR("bob"), STR("c1"), &result),
                     ERR_NOT_FOUND);
    assert_int_equal(calendar_recall(t->db, &t->arena, STR("ann"), STR("c2"), &result),
                     ERR_NOT_FOUND);
}

static void people(void **state)
{
    struct db_fixture *t = *state;
    static const char *const names[] = {"ann", "Ann", "anna", "joann", "Bob", "王小明", "100%"};
    for (size_t i = 0; i < COUNT(names); i++) user_made(t->db, names[i]);
    static const struct {
        const char *who, *query;
        size_t limit;
        str expected;
        bool more;
    } rows[] = {
        {"local", "ann", 10, STR("ann Ann anna joann "), false},
        {"local", "Ann", 10, STR("Ann ann anna joann "), false},
        {"local", "ANN", 10, STR("Ann ann anna joann "), false},
        {"local", "ann", 4, STR("ann Ann anna joann "), false},
        {"local", "ann", 3, STR("ann Ann anna "), true},
        {"local", "BOB", 10, STR("Bob "), false},
        {"local", "小明", 10, STR("王小明 "), false},
        {"local", "%", 10, STR("100% "), false},
        {"local", "_", 10, STR(""), false},
        {"local", "nobody", 10, STR(""), false},
        {"local", "loc", 10, STR("local "), false},
        {"ann", "local", 10, STR(""), false},
        {"ann", "joann", 10, STR("joann "), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct calendar_user_list users;
        assert_int_equal(calendar_users(t->db, &t->arena, str_c(rows[i].who), str_c(rows[i].query),
                                        rows[i].limit, &users),
                         OK);
        str found = STR_EMPTY;
        for (size_t k = 0; k < users.count; k++)
            found = arena_printf(&t->arena, "%.*s%.*s ", STR_ARG(found), STR_ARG(users.names[k]));
        assert_str(found, rows[i].expected);
        assert_int_equal(users.more, rows[i].more);
    }
    static const struct {
        str name;
        bool expected;
    } known[] = {{STR("ann"), true}, {STR("ANN"), false}, {STR("an"), false}, {STR(""), false}};
    for (size_t i = 0; i < COUNT(known); i++) {
        bool is = !known[i].expected;
        assert_int_equal(calendar_user_known(t->db, known[i].name, &is), OK);
        assert_int_equal(is, known[i].expected);
    }
}

int test_calendar_rows(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DB(life),     WITH_DB(one_event_for_a_call),
        WITH_DB(overlaps), WITH_DB(conflicts_in_order_and_bounded),
        WITH_DB(pages),    WITH_DB(pages_are_bounded),
        WITH_DB(shares),   WITH_DB(each_of_an_owner),
        WITH_DB(room),     WITH_DB(memory),
        WITH_DB(people),
    };
    return cmocka_run_group_tests_name("store/calendar", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table/interactions.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "store/conversation_kit.h"
#include "store/fixture.h"

static void names(void **state)
{
    (void)state;
    static const char *const types[] = {"ask_user", "confirm", "connection_lost", "uncertain"};
    static const char *const statuses[] = {"open", "resolved", "canceled", "expired", "superseded"};
    assert_int_equal(COUNT(types), INTERACTION_TYPE_COUNT);
    assert_int_equal(COUNT(statuses), INTERACTION_STATUS_COUNT);
    for (unsigned i = 0; i < COUNT(types); i++)
        assert_string_equal(interaction_type_name((enum interaction_type)i), types[i]);
    for (unsigned i = 0; i < COUNT(statuses); i++)
        assert_string_equal(interaction_status_name((enum interaction_status)i), statuses[i]);
}

/* ---- one ---- */

static void same(const struct interaction *got, const struct interaction *expected)
{
    assert_int_equal(got->n, expected->n);
    assert_int_equal(got->thread, expected->thread);
    assert_int_equal(got->run, expected->run);
    assert_str(got->id, expected->id);
    assert_int_equal(got->type, expected->type);
    assert_int_equal(got->status, expected->status);
    assert_int_equal(got->seq, expected->seq);
    assert_str(got->owner, expected->owner);
    assert_str(got->agent, expected->agent);
    assert_str(got->thread_id, expected->thread_id);
    assert_str(got->run_id, expected->run_id);
    assert_str(got->call_id, expected->call_id);
    assert_str(got->approver, expected->approver);
    assert_str(got->display_text, expected->display_text);
    assert_str(got->question, expected->question);
    assert_str(got->choices, expected->choices);
    assert_str(got->fields, expected->fields);
    assert_int_equal(got->allow_freeform, expected->allow_freeform);
    assert_int_equal(got->multi, expected->multi);
    assert_str(got->resume_node, expected->resume_node);
    assert_str(got->resume_phase, expected->resume_phase);
    assert_int_equal(got->resume_step, expected->resume_step);
    assert_str(got->tool, expected->tool);
    assert_str(got->args, expected->args);
    assert_str(got->summary, expected->summary);
    assert_str(got->args_schema, expected->args_schema);
    assert_str(got->risk, expected->risk);
    assert_str(got->binding, expected->binding);
    assert_str(got->locale, expected->locale);
    assert_str(got->metadata, expected->metadata);
    assert_int_equal(got->opened, expected->opened);
    assert_int_equal(got->expires, expected->expires);
    assert_str(got->answer, expected->answer);
    assert_str(got->text, expected->text);
    assert_str(got->answered_by, expected->answered_by);
    assert_str(got->via, expected->via);
    assert_int_equal(got->settled, expected->settled);
}

/* Every text is another one, so that no two columns can be swapped. */
static struct interaction full(struct db *db)
{
    int64_t thread = thread_made(db, "ann", "t1", "x", 1);
    return (struct interaction){.thread = thread,
                                .run = run_made(db, thread, "r1", RUN_WAITING),
                                .id = STR("int_1"),
                                .type = INTERACTION_CONFIRM,
                                .seq = 6,
                                .owner = STR("ann"),
                                .agent = STR("assistant"),
                                .thread_id = STR("t1"),
                                .run_id = STR("r1"),
                                .call_id = STR("call_1"),
                                .approver = STR("approver"),
                                .display_text = STR("要创建日程吗？"),
                                .question = STR("会议多长？"),
                                .choices = STR("[{\"id\":\"c1\",\"label\":\"1 小时\"}]"),
                                .fields = STR("[{\"name\":\"f\"}]"),
                                .allow_freeform = true,
                                .multi = false,
                                .resume_node = STR("execute"),
                                .resume_phase = STR("executing"),
                                .resume_step = 3,
                                .tool = STR("calendar_write"),
                                .args = STR("{\"title\":\"评审会\"}"),
                                .summary = STR("创建 评审会"),
                                .args_schema = STR("{\"type\":\"object\"}"),
                                .risk = STR("write"),
                                .binding = STR("k1:abc"),
                                .locale = STR("zh-CN"),
                                .metadata = STR("{\"a\":1}"),
                                .opened = 100,
                                .expires = 200};
}

static void every_field(void **state)
{
    struct db_fixture *t = *state;
    struct interaction interaction = full(t->db), found = {0};
    assert_int_equal(interaction_find(t->db, &t->arena, STR("int_1"), &found), ERR_NOT_FOUND);
    assert_int_equal(interaction_add(t->db, &interaction), OK);
    assert_int_equal(interaction.n, 1);
    assert_int_equal(interaction_find(t->db, &t->arena, STR("int_1"), &found), OK);
    same(&found, &interaction);
    assert_int_equal(interaction_find(t->db, &t->arena, STR("INT_1"), &found), ERR_NOT_FOUND);

    struct interaction other = interaction;
    other.n = 0;
    assert_int_equal(interaction_add(t->db, &other), ERR_BUSY); /* the id is there */
    assert_int_equal(other.n, 0);
    other.id = STR("int_2");
    other.type = INTERACTION_ASK_USER;
    other.allow_freeform = false;
    other.multi = true;
    assert_int_equal(interaction_add(t->db, &other), OK);
    assert_int_equal(interaction_find(t->db, &t->arena, STR("int_2"), &found), OK);
    same(&found, &other);
    assert_int_equal(interaction_find(t->db, &t->arena, STR("int_1"), &found), OK);
    same(&found, &interaction);
}

/* Of many answers one wins, and the others change nothing. */
static void settled_once(void **state)
{
    struct db_fixture *t = *state;
    static const enum interaction_status ends[] = {INTERACTION_RESOLVED, INTERACTION_CANCELED,
                                                   INTERACTION_EXPIRED, INTERACTION_SUPERSEDED};
    struct interaction first = full(t->db);
    for (size_t i = 0; i < COUNT(ends); i++) {
        char id[8];
        struct interaction found = {0};
        snprintf(id, sizeof id, "int_%zu", i);
        first.id = str_c(id);
        first.status = INTERACTION_OPEN;
        first.answer = first.text = first.answered_by = first.via = STR_EMPTY;
        first.settled = 0;
        assert_int_equal(interaction_add(t->db, &first), OK);

        struct interaction won = first, late = first;
        won.status = ends[i];
        won.answer = STR("{\"decision\":\"approve\"}");
        won.text = STR("yes");
        won.answered_by = STR("bob");
        won.via = STR("api");
        won.settled = 150;
        late.status = INTERACTION_RESOLVED;
        late.answer = STR("{\"decision\":\"reject\"}");
        late.answered_by = STR("carol");
        late.settled = 151;
        assert_int_equal(interaction_settle(t->db, &won), OK);
        assert_int_equal(interaction_settle(t->db, &late), ERR_BUSY);
        assert_int_equal(interaction_settle(t->db, &won), ERR_BUSY);
        assert_int_equal(interaction_set_expiry(t->db, won.id, 999), ERR_BUSY);
        assert_int_equal(interaction_find(t->db, &t->arena, won.id, &found), OK);
        same(&found, &won);
    }
    struct interaction none = first;
    none.id = STR("int_x");
    none.status = INTERACTION_RESOLVED;
    assert_int_equal(interaction_settle(t->db, &none), ERR_BUSY);
    assert_int_equal(interaction_set_expiry(t->db, none.id, 5), ERR_BUSY);
}

/* Only what the struct says "once settled" about is written. */
static void settling_leaves_the_question(void **state)
{
    struct db_fixture *t = *state;
    struct interaction asked = full(t->db), found = {0};
    assert_int_equal(interaction_add(t->db, &asked), OK);
    struct interaction end = {.id = asked.id, .status = INTERACTION_EXPIRED, .settled = 9};
    assert_int_equal(interaction_settle(t->db, &end), OK);
    asked.status = INTERACTION_EXPIRED;
    asked.settled = 9;
    assert_int_equal(interaction_find(t->db, &t->arena, asked.id, &found), OK);
    same(&found, &asked);
}

static void superseding(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        enum interaction_type type;
        enum interaction_status status;
        enum err expected;
    } rows[] = {
        {INTERACTION_CONFIRM, INTERACTION_RESOLVED, OK},
        {INTERACTION_CONFIRM, INTERACTION_OPEN, ERR_BUSY},
        {INTERACTION_CONFIRM, INTERACTION_CANCELED, ERR_BUSY},
        {INTERACTION_CONFIRM, INTERACTION_EXPIRED, ERR_BUSY},
        {INTERACTION_CONFIRM, INTERACTION_SUPERSEDED, ERR_BUSY},
        {INTERACTION_ASK_USER, INTERACTION_RESOLVED, ERR_BUSY},
        {INTERACTION_UNCERTAIN, INTERACTION_RESOLVED, ERR_BUSY},
    };
    struct interaction interaction = full(t->db), found = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char id[8], call_id[8];
        snprintf(id, sizeof id, "int_%zu", i);
        snprintf(call_id, sizeof call_id, "call_%zu", i);
        interaction.id = str_c(id);
        interaction.call_id = str_c(call_id);
        interaction.type = rows[i].type;
        interaction.status = rows[i].status;
        assert_int_equal(interaction_add(t->db, &interaction), OK);
        assert_int_equal(interaction_supersede(t->db, &t->arena, interaction.thread,
                                               interaction.call_id, &found),
                         rows[i].expected);
        assert_int_equal(interaction_find(t->db, &t->arena, interaction.id, &found), OK);
        assert_int_equal(found.status, rows[i].expected ? rows[i].status : INTERACTION_SUPERSEDED);
    }
    assert_int_equal(interaction_supersede(t->db, &t->arena, interaction.thread, STR("call_x"),
                                           &found),
                     ERR_BUSY);
}

/* A call that was asked about twice: the newest, whatever became of it; never that of another
 * thread. */
static void found_by_its_call(void **state)
{
    struct db_fixture *t = *state;
    static const struct {
        const char *id, *call_id;
        enum interaction_status status;
    } rows[] = {
        {"int_a", "call_1", INTERACTION_SUPERSEDED},
        {"int_b", "call_2", INTERACTION_OPEN},
        {"int_c", "call_1", INTERACTION_RESOLVED},
    };
    struct interaction interaction = full(t->db), found = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        interaction.id = str_c(rows[i].id);
        interaction.call_id = str_c(rows[i].call_id);
        interaction.status = rows[i].status;
        assert_int_equal(interaction_add(t->db, &interaction), OK);
    }
    int64_t thread = interaction.thread;
    assert_int_equal(interaction_of_call(t->db, &t->arena, thread, STR("call_1"), &found), OK);
    assert_str(found.id, STR("int_c"));
    assert_int_equal(interaction_of_call(t->db, &t->arena, thread, STR("call_2"), &found), OK);
    assert_str(found.id, STR("int_b"));
    assert_int_equal(interaction_of_call(t->db, &t->arena, thread, STR("call_3"), &found),
                     ERR_NOT_FOUND);
    assert_int_equal(interaction_of_call(t->db, &t->arena, thread + 1, STR("call_1"), &found),
                     ERR_NOT_FOUND);
}

static void unknown_numbers_are_damage(void **state)
{
    struct db_fixture *t = *state;
    static const char *const damages[] = {
        "UPDATE interactions SET status=5",          "UPDATE interactions SET status=-1",
        "UPDATE interactions SET status=4294967296", "UPDATE interactions SET status=0, type=4",
        "UPDATE interactions SET type=-1",
    };
    struct interaction interaction = full(t->db);
    assert_int_equal(interaction_add(t->db, &interaction), OK);
    for (size_t i = 0; i < COUNT(damages); i++) {
        struct interaction found = {.n = 42};
        assert_int_equal(by_hand(t->db, damages[i]), OK);
        assert_int_equal(interaction_find(t->db, &t->arena, STR("int_1"), &found), ERR_DAMAGED);
        assert_int_equal(found.n, 42);
    }
}

/* ---- lists ---- */

/* A thread for each owner, "t"; a run in it. */
struct people {
    struct {
        const char *owner;
        int64_t thread, run;
    } rows[3];
};

static void people_make(struct db *db, struct people *people)
{
    static const char *const owners[] = {"ann", "bob", "cid"};
    for (size_t i = 0; i < COUNT(owners); i++) {
        people->rows[i].owner = owners[i];
        people->rows[i].thread = thread_made(db, owners[i], "t", "x", 1);
        people->rows[i].run = run_made(db, people->rows[i].thread, "r", RUN_WAITING);
    }
}

static struct interaction interaction_of(const struct people *people, size_t who, const char *id)
{
    return (struct interaction){.thread = people->rows[who].thread,
                                .run = people->rows[who].run,
                                .id = str_c(id),
                                .owner = str_c(people->rows[who].owner),
                                .agent = STR("assistant"),
                                .thread_id = STR("t"),
                                .run_id = STR("r"),
                                .metadata = STR("{}")};
}

/* Ids are one letter each here: "ab" is a list of two. */
static void assert_ids(const struct interaction_list *list, const char *expected)
{
    char got[32] = "";
    assert_true(list->count < sizeof got);
    for (size_t i = 0; i < list->count; i++) got[i] = list->rows[i].id.p[0];
    assert_string_equal(got, expected);
}

static void of_run_and_thread(void **state)
{
    struct db_fixture *t = *state;
    struct people people;
    people_make(t->db, &people);
    int64_t second = run_made(t->db, people.rows[0].thread, "r2", RUN_QUEUED);
    static const struct {
        const char *id;
        size_t who;
        bool second, settled;
    } rows[] = {{"z", 0, false, false},
                {"b", 0, false, true},
                {"c", 1, false, false},
                {"a", 0, false, false},
                {"d", 0, true, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct interaction interaction = interaction_of(&people, rows[i].who, rows[i].id);
        if (rows[i].second) interaction.run = second;
        assert_int_equal(interaction_add(t->db, &interaction), OK);
        interaction.status = INTERACTION_CANCELED;
        if (rows[i].settled) assert_int_equal(interaction_settle(t->db, &interaction), OK);
    }
    int64_t first = people.rows[0].thread;
    const struct {
        int64_t thread, run;
        const char *expected;
    } runs[] = {
        {first, people.rows[0].run, "za"},
        {first, second, "d"},
        {people.rows[1].thread, people.rows[1].run, "c"},
        {people.rows[2].thread, people.rows[2].run, ""},
        {first, 99, ""},
        {99, people.rows[0].run, ""},
    };
    struct interaction_list list = {0};
    for (size_t i = 0; i < COUNT(runs); i++) {
        assert_int_equal(interactions_of_run(t->db, &t->arena, runs[i].thread, runs[i].run, &list),
                         OK);
        assert_ids(&list, runs[i].expected);
    }
    static const char *const threads[] = {"zad", "c", ""};
    for (size_t i = 0; i < COUNT(threads); i++) {
        int64_t thread = people.rows[i].thread;
        assert_int_equal(interactions_of_thread(t->db, &t->arena, thread, &list), OK);
        assert_ids(&list, threads[i]);
    }
}

/* In the order of opening. Bob's "d" is in a thread of his that has the name of one of Ann's. */
static const struct {
    const char *id;
    size_t who;
    const char *approver, *agent;
    enum interaction_status status;
} inbox[] = {
    {"a", 0, "", "assistant", INTERACTION_OPEN},
    {"b", 0, "approver", "assistant", INTERACTION_OPEN},
    {"c", 1, "approver", "clerk", INTERACTION_OPEN},
    {"d", 1, "", "assistant", INTERACTION_OPEN},
    {"e", 0, "", "clerk", INTERACTION_RESOLVED},
    {"f", 1, "operator", "assistant", INTERACTION_OPEN},
    {"g", 0, "operator", "clerk", INTERACTION_OPEN},
    {"h", 1, "approver", "assistant", INTERACTION_EXPIRED},
    {"i", 0, "", "assistant", INTERACTION_CANCELED},
    {"j", 0, "", "clerk", INTERACTION_OPEN},
    {"k", 1, "approver", "assistant", INTERACTION_SUPERSEDED},
    {"l", 1, "approver", "clerk", INTERACTION_OPEN},
};

static void inbox_make(struct db *db)
{
    struct people people;
    people_make(db, &people);
    for (size_t i = 0; i < COUNT(inbox); i++) {
        struct interaction row = interaction_of(&people, inbox[i].who, inbox[i].id);
        row.approver = str_c(inbox[i].approver);
        row.agent = str_c(inbox[i].agent);
        row.status = inbox[i].status;
        assert_int_equal(interaction_add(db, &row), OK);
    }
}

/* The page, and the same list in pages of every size. */
static void assert_listed(struct db_fixture *t, struct interaction_filter filter,
                          const char *expected)
{
    for (filter.limit = 1; filter.limit <= COUNT(inbox) + 1; filter.limit++) {
        char got[COUNT(inbox) + 1] = "";
        size_t count = 0;
        struct interaction_list list = {.more = true};
        filter.before = 0;
        for (size_t pages = 0; list.more; pages++) {
            assert_true(pages <= COUNT(inbox));
            assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
            assert_true(list.count <= filter.limit);
            for (size_t i = 0; i < list.count; i++) got[count++] = list.rows[i].id.p[0];
            assert_true(!list.more || list.next == list.rows[list.count - 1].n);
            filter.before = list.next;
        }
        assert_string_equal(got, expected);
        assert_int_equal(list.count == 0, strlen(expected) == 0); /* no empty page at the end */
    }
}

static void pages(void **state)
{
    struct db_fixture *t = *state;
    enum { ANY = -1, OPEN = INTERACTION_OPEN };
    static const struct {
        const char *owner, *role, *role2;
        int status;
        const char *agent, *thread_id, *expected;
    } rows[] = {
        {"ann", "", "", OPEN, "", "", "jgba"},
        {"bob", "", "", OPEN, "", "", "lfdc"},
        {"cid", "", "", OPEN, "", "", ""},
        {"cid", "approver", "", OPEN, "", "", "lcb"},
        {"cid", "operator", "", OPEN, "", "", "gf"},
        {"cid", "approver", "operator", OPEN, "", "", "lgfcb"},
        {"cid", "approver", "approver", OPEN, "", "", "lcb"},
        {"cid", "Approver", "", OPEN, "", "", ""},
        {"ann", "approver", "", OPEN, "", "", "ljgcba"}, /* b is hers twice, and listed once */
        {"ann", "approver", "operator", OPEN, "", "", "ljgfcba"},
        {"bob", "operator", "approver", OPEN, "", "", "lgfdcb"},
        {"ann", "", "", ANY, "", "", "jigeba"},
        {"cid", "approver", "", ANY, "", "", "lkhcb"},
        {"ann", "approver", "operator", ANY, "", "", "lkjihgfecba"},
        {"ann", "", "", INTERACTION_RESOLVED, "", "", "e"},
        {"ann", "", "", INTERACTION_CANCELED, "", "", "i"},
        {"ann", "approver", "", INTERACTION_EXPIRED, "", "", "h"},
        {"ann", "approver", "", INTERACTION_SUPERSEDED, "", "", "k"},
        {"ann", "", "", OPEN, "clerk", "", "jg"},
        {"ann", "approver", "", OPEN, "clerk", "", "ljgc"},
        {"ann", "approver", "operator", ANY, "assistant", "", "kihfba"},
        {"ann", "", "", OPEN, "nobody", "", ""},
        {"ann", "", "", OPEN, "", "t", "jgba"},
        {"ann", "approver", "operator", OPEN, "", "t", "jgba"}, /* not others' threads "t" */
        {"ann", "approver", "operator", ANY, "clerk", "t", "jge"},
        {"cid", "approver", "operator", ANY, "", "t", ""},
        {"ann", "approver", "operator", ANY, "", "u", ""},
    };
    inbox_make(t->db);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_listed(t,
                      (struct interaction_filter){.owner = str_c(rows[i].owner),
                                                  .roles = {str_c(rows[i].role), STR_EMPTY,
                                                            STR_EMPTY, str_c(rows[i].role2)},
                                                  .status = rows[i].status,
                                                  .agent = str_c(rows[i].agent),
                                                  .thread_id = str_c(rows[i].thread_id)},
                      rows[i].expected);
}

/* In one transaction, because each waits for the disk. */
static void add_many(struct db *db, struct interaction row, size_t first, size_t end)
{
    bool unknown = false;
    assert_int_equal(db_begin(db), OK);
    for (size_t i = first; i < end; i++) {
        char id[24];
        snprintf(id, sizeof id, "int_%zu", i);
        row.id = str_c(id);
        assert_int_equal(interaction_add(db, &row), OK);
    }
    assert_int_equal(db_commit(db, &unknown), OK);
}

/* An agent that is not there, or far down: a page looks at its share and says that there is more. */
static void pages_look_at_a_share(void **state)
{
    struct db_fixture *t = *state;
    enum { EACH = INBOX_LOOK_MAX / (1 + INTERACTION_ROLES_MAX) };
    static const size_t counts[] = {EACH - 1, EACH, EACH + 1, 2 * EACH + 1};
    struct people people;
    people_make(t->db, &people);
    struct interaction last = interaction_of(&people, 0, "first of all");
    last.agent = STR("clerk");
    assert_int_equal(interaction_add(t->db, &last), OK);
    size_t there = 0;
    for (size_t i = 0; i < COUNT(counts); i++) {
        add_many(t->db, interaction_of(&people, 0, ""), there, counts[i]);
        there = counts[i];
        struct interaction_filter filter = {
            .owner = STR("ann"), .agent = STR("clerk"), .limit = 50};
        struct interaction_list list = {.more = true};
        size_t pages = 0, found = 0;
        for (; list.more; pages++) {
            assert_true(pages < 4);
            assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
            found += list.count;
            assert_true(!list.more || list.next > last.n);
            filter.before = list.next;
        }
        assert_int_equal(found, 1);
        assert_int_equal(pages, 1 + counts[i] / EACH);
    }
}

/* What one walk has not seen yet is not passed over: his are above hers, and many. */
static void pages_wait_for_every_walk(void **state)
{
    struct db_fixture *t = *state;
    enum { EACH = INBOX_LOOK_MAX / (1 + INTERACTION_ROLES_MAX), HIS = EACH + 10 };
    struct people people;
    people_make(t->db, &people);
    struct interaction his = interaction_of(&people, 1, "his"),
                       hers = interaction_of(&people, 0, "a");
    his.approver = STR("approver");
    his.agent = hers.agent = STR("clerk");
    assert_int_equal(interaction_add(t->db, &his), OK); /* the lowest of his; then hers above it */
    assert_int_equal(interaction_add(t->db, &hers), OK);
    his.agent = STR("assistant");
    add_many(t->db, his, 0, HIS);
    struct interaction_filter filter = {
        .owner = STR("ann"), .roles = {STR("approver")}, .agent = STR("clerk"), .limit = 1};
    static const struct {
        size_t count;
        const char *id;
        bool more;
    } expected[] = {{0, "", true}, {1, "a", true}, {1, "his", false}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct interaction_list list = {0};
        assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
        assert_int_equal(list.count, expected[i].count);
        assert_int_equal(list.more, expected[i].more);
        if (list.count) assert_str(list.rows[0].id, str_c(expected[i].id));
        filter.before = list.next;
    }
}

static void pages_end_behind_many_bytes(void **state)
{
    struct db_fixture *t = *state;
    enum { BYTES = 1024 * 1024 - 2, ROWS = INBOX_PAGE_BYTES_MAX / BYTES + 2 }; /* and {} */
    struct people people;
    people_make(t->db, &people);
    char *args = test_malloc(BYTES);
    memset(args, 'x', BYTES);
    for (size_t i = 0; i < ROWS; i++) {
        char id[] = {(char)('a' + i), 0};
        struct interaction row = interaction_of(&people, 0, id);
        row.args = (str){args, BYTES};
        assert_int_equal(interaction_add(t->db, &row), OK);
    }
    test_free(args);
    struct interaction_filter filter = {.owner = STR("ann"), .limit = 50};
    struct interaction_list list = {0};
    assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
    assert_int_equal(list.count, ROWS - 1);
    assert_true(list.more);
    filter.before = list.next;
    assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
    assert_ids(&list, "a");
    assert_false(list.more);
}

/* ---- expiry ---- */

static void expiry(void **state)
{
    struct db_fixture *t = *state;
    struct people people;
    people_make(t->db, &people);
    msec at = 42;
    assert_int_equal(interactions_next_expiry(t->db, &at), OK);
    assert_int_equal(at, 0);
    static const struct {
        const char *id;
        msec expires;
    } rows[] = {{"a", 30}, {"b", 0}, {"c", 20}, {"d", 10}, {"e", 20}, {"f", 5}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct interaction row = interaction_of(&people, i % 3, rows[i].id);
        row.expires = rows[i].expires;
        assert_int_equal(interaction_add(t->db, &row), OK);
    }
    struct interaction settled = {.id = STR("f"), .status = INTERACTION_RESOLVED};
    assert_int_equal(interaction_settle(t->db, &settled), OK);
    static const struct {
        msec now;
        size_t limit;
        const char *expected;
        bool more;
    } asked[] = {
        {9, 5, "", false},      {10, 5, "d", false},  {19, 5, "d", false},    {20, 5, "dce", false},
        {30, 5, "dcea", false}, {30, 3, "dce", true}, {30, 4, "dcea", false},
    };
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct interaction_list list = {0};
        assert_int_equal(interactions_due(t->db, &t->arena, asked[i].now, asked[i].limit, &list),
                         OK);
        assert_ids(&list, asked[i].expected);
        assert_int_equal(list.more, asked[i].more);
    }
    static const struct {
        const char *id;
        msec expires, next;
    } moved[] = {{"d", 25, 20}, {"b", 7, 7},  {"b", 0, 20}, {"c", 0, 20},
                 {"e", 0, 25},  {"d", 0, 30}, {"a", 0, 0},  {"a", 1, 1}};
    assert_int_equal(interactions_next_expiry(t->db, &at), OK);
    assert_int_equal(at, 10);
    for (size_t i = 0; i < COUNT(moved); i++) {
        assert_int_equal(interaction_set_expiry(t->db, str_c(moved[i].id), moved[i].expires), OK);
        assert_int_equal(interactions_next_expiry(t->db, &at), OK);
        assert_int_equal(at, moved[i].next);
    }
}

/* ---- deletion ---- */

static void goes_with_its_thread(void **state)
{
    struct db_fixture *t = *state;
    inbox_make(t->db);
    struct thread thread;
    struct interaction_list list = {0};
    assert_int_equal(thread_find(t->db, &t->arena, STR("bob"), STR("t"), &thread), OK);
    assert_int_equal(thread_delete(t->db, thread.id), OK);
    struct interaction_filter filter = {.owner = STR("bob"),
                                        .roles = {STR("approver"), STR("operator")},
                                        .status = -1,
                                        .limit = 50};
    assert_int_equal(interactions_page(t->db, &t->arena, &filter, &list), OK);
    assert_ids(&list, "gb"); /* Ann's, which wait for these roles */
    struct interaction again = {0};
    assert_int_equal(interaction_find(t->db, &t->arena, STR("c"), &again), ERR_NOT_FOUND);

    /* Numbers are not used again: a cursor of before goes on where it was. */
    assert_int_equal(by_hand(t->db, "DELETE FROM threads"), OK);
    struct people people;
    people_make(t->db, &people);
    again = interaction_of(&people, 0, "new");
    assert_int_equal(interaction_add(t->db, &again), OK);
    assert_int_equal(again.n, COUNT(inbox) + 1);
}

int test_interactions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        WITH_DB(every_field),
        WITH_DB(settled_once),
        WITH_DB(settling_leaves_the_question),
        WITH_DB(superseding),
        WITH_DB(found_by_its_call),
        WITH_DB(unknown_numbers_are_damage),
        WITH_DB(of_run_and_thread),
        WITH_DB(pages),
        WITH_DB(pages_look_at_a_share),
        WITH_DB(pages_wait_for_every_walk),
        WITH_DB(pages_end_behind_many_bytes),
        WITH_DB(expiry),
        WITH_DB(goes_with_its_thread),
    };
    return db_fixture_group("store/interactions", tests, COUNT(tests));
}

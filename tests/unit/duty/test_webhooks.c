/* SPDX-License-Identifier: Apache-2.0
 *
 * The sender of the outbox against a receiver on the same loop, and a clock that the test moves.
 */
#include "duty/webhooks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/shell/save.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "check.h"
#include "duty/row_worker.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/script_server.h"
#include "net/webhook_sign.h"
#include "store/db/sqlite.h"
#include "store/fixture.h"
#include "store/table/outbox.h"

enum { SEEN_MAX = 256, HOOKS = 3, START = 1700000000 };

struct seen {
    char path[32], event[64], delivery[64], timestamp[32], signature[96], type[64], body[256];
};

/* A data folder, a receiver, and what it was sent. */
struct thread_at {
    struct fixture store;
    struct client *client;
    struct http_server *http;
    struct listener *listener;
    struct timer *tick;
    struct clock clock;
    msec now;
    char urls[HOOKS][64];
    struct hook hooks[HOOKS];
    struct webhooks *webhooks, *former;
    int plan[SEEN_MAX]; /* statuses to answer with, in order; 0: keep it waiting */
    struct seen seen[SEEN_MAX];
    size_t seen_count;
    struct http_request *held[SEEN_MAX];
    size_t held_count;
    bool stopped;
};

static msec clock_now(void *ctx)
{
    return ((struct thread_at *)ctx)->now;
}

static enum err on_head(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                        struct fault *reterr)
{
    (void)reterr;
    struct thread_at *s = ctx;
    assert_true(s->seen_count < SEEN_MAX);
    struct seen *seen = &s->seen[s->seen_count];
    const struct http_head *head = request->head;
    assert_int_equal(head->method, HTTP_POST);
#define COPY(member, text) snprintf(seen->member, sizeof seen->member, "%.*s", STR_ARG(text))
    COPY(path, head->path);
    COPY(type, http_head_get(head, STR("Content-Type")));
    COPY(event, http_head_get(head, STR("Fermata-Event")));
    COPY(delivery, http_head_get(head, STR("Fermata-Delivery")));
    COPY(timestamp, http_head_get(head, STR("Fermata-Timestamp")));
    COPY(signature, http_head_get(head, STR("Fermata-Signature")));
    *ret_body_max = sizeof seen->body;
    return OK;
}

static void answer(struct http_request *request, int status)
{
    http_answer(request, &(struct http_answer){.status = status,
                                               .content_type = status == 204 ? NULL : "text/plain",
                                               .body = status == 204 ? STR_EMPTY : STR("said")});
}

static void on_request(void *ctx, struct http_request *request)
{
    struct thread_at *s = ctx;
    struct seen *seen = &s->seen[s->seen_count];
    int status = s->plan[s->seen_count++];
    COPY(body, request->body);
#undef COPY
    if (status)
        answer(request, status);
    else
        s->held[s->held_count++] = request;
}

static const struct http_handler receiver = {.on_head = on_head, .on_request = on_request};

static void on_tick(void *arg)
{
    struct thread_at *s = arg;
    timer_start(s->tick, 1);
    loop_stop(s->store.loop);
}

/* Turn the loop until it holds; the fixture's watchdog ends a wait that does not. */
#define WAIT_FOR(condition) \
    while (!(condition)) loop_run(s->store.loop)

static void thread_at_init(struct thread_at *s)
{
    struct fault why = {0};
    *s = (struct thread_at){.now = (msec)START * 1000};
    fixture_init(&s->store);
    s->clock = (struct clock){.wall = clock_now, .steady = clock_now, .ctx = s};
    s->tick = timer_new(s->store.loop, on_tick, s);
    timer_start(s->tick, 1);
    s->client = client_new(s->store.loop);
    s->http = http_server_new(
        s->store.loop,
        &(struct http_server_options){.handler = &receiver, .ctx = s, .connections_max = SEEN_MAX});
    assert_int_equal(listener_tcp(s->store.loop, STR("127.0.0.1"), 0, http_server_accept, s->http,
                                  &s->listener, &why),
                     OK);
    for (int i = 0; i < HOOKS; i++) {
        snprintf(s->urls[i], sizeof s->urls[i], "http://127.0.0.1:%u/hook%d",
                 listener_port(s->listener), i);
        s->hooks[i] = (struct hook){.url = str_c(s->urls[i]), .secret = STR("secret")};
    }
}

static void thread_at_open(struct thread_at *s, size_t hooks)
{
    s->webhooks = webhooks_new(&(struct webhooks_options){.loop = s->store.loop,
                                                          .store = s->store.store,
                                                          .client = s->client,
                                                          .clock = &s->clock,
                                                          .hooks = s->hooks,
                                                          .hook_count = hooks});
}

static void on_stopped(void *arg)
{
    ((struct thread_at *)arg)->stopped = true;
}

static void thread_at_done(struct thread_at *s)
{
    webhooks_stop(s->webhooks);
    while (s->held_count) answer(s->held[--s->held_count], 200);
    listener_close(s->listener);
    http_server_stop(s->http, on_stopped, s);
    WAIT_FOR(s->stopped);
    store_close(s->store.store);
    s->store.store = NULL;
    webhooks_free(s->webhooks);
    webhooks_free(s->former);
    client_free(s->client);
    http_server_free(s->http);
    timer_free(s->tick);
    fixture_done(&s->store);
}

/* ---- rows ---- */

struct row_job {
    struct job job;
    struct outgoing row;
    bool ended;
};

static enum err add_run(struct job *job, struct db *db)
{
    return outbox_add(db, &((struct row_job *)job)->row);
}

static void row_done(struct job *job, enum err e)
{
    assert_int_equal(e, OK);
    ((struct row_job *)job)->ended = true;
}

static void add_row(struct thread_at *s, const char *id, int hook)
{
    struct row_job add = {.job = {.run = add_run, .done = row_done},
                          .row = {.id = str_c(id),
                                  .event = STR("interaction.opened"),
                                  .url = str_c(s->urls[hook]),
                                  .body = STR("{\"a\":1}"),
                                  .created = s->now,
                                  .next = s->now}};
    store_write(s->store.store, &add.job);
    WAIT_FOR(add.ended);
    if (s->webhooks) webhooks_look(s->webhooks);
}

struct count_job {
    struct job job;
    struct outgoing first;
    size_t count;
    bool ended;
};

static enum err count_run(struct job *job, struct db *db)
{
    struct count_job *count = (struct count_job *)job;
    struct stmt *s =
        db_prepare(db, "SELECT n, next, attempts FROM outbox ORDER BY next DESC, n DESC");
    for (count->count = 0; stmt_step(s); count->count++)
        count->first = (struct outgoing){
            .n = stmt_i64(s, 0), .next = stmt_i64(s, 1), .attempts = (uint32_t)stmt_i64(s, 2)};
    return stmt_end(s);
}

static void count_done(struct job *job, enum err e)
{
    assert_int_equal(e, OK);
    ((struct count_job *)job)->ended = true;
}

/* How many rows wait; the first of them. */
static size_t rows_left(struct thread_at *s, struct outgoing *ret_first)
{
    struct count_job count = {.job = {.run = count_run, .done = count_done}};
    store_read(s->store.store, &count.job);
    WAIT_FOR(count.ended);
    if (ret_first && count.count) *ret_first = count.first;
    return count.count;
}

/* The row has been tried so many times, and the store knows. */
static bool tried(struct thread_at *s, uint32_t attempts)
{
    struct outgoing first = {0};
    return rows_left(s, &first) == 1 && first.attempts == attempts;
}

/* ---- tests ---- */

static void signatures(void **state)
{
    (void)state;
    static const struct {
        const char *secret;
        int64_t seconds;
        const char *body, *signature;
    } rows[] = {
        {"secret", START, "{\"a\":1}",
         "v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686"},
        {"", 0, "", "v1=b849d5a581847b281957065739df36df2463d1977ea8d6e1e4e6cf33fadc68c3"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char signature[WEBHOOK_SIGNATURE_BYTES];
        webhook_sign(str_c(rows[i].secret), rows[i].seconds, str_c(rows[i].body), signature);
        assert_string_equal(signature, rows[i].signature);
    }
}

static void taken(void **state)
{
    (void)state;
    static const int statuses[] = {200, 202, 204};
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    thread_at_open(s, 1);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        char id[16];
        snprintf(id, sizeof id, "evt_%zu", i);
        s->plan[i] = statuses[i];
        add_row(s, id, 0);
        WAIT_FOR(rows_left(s, NULL) == 0);
        assert_int_equal(s->seen_count, i + 1);
        const struct seen *seen = &s->seen[i];
        assert_string_equal(seen->path, "/hook0");
        assert_string_equal(seen->type, "application/json");
        assert_string_equal(seen->event, "interaction.opened");
        assert_string_equal(seen->delivery, id);
        assert_string_equal(seen->body, "{\"a\":1}");
        assert_string_equal(seen->timestamp, "1700000000");
        char signature[WEBHOOK_SIGNATURE_BYTES];
        webhook_sign(STR("secret"), START, STR("{\"a\":1}"), signature);
        assert_string_equal(seen->signature, signature);
    }
    thread_at_done(s);
}

/* What waits in the outbox at the start is sent without a word. */
static void sent_after_a_start(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    s->plan[0] = s->plan[1] = 200;
    add_row(s, "evt_a", 0);
    add_row(s, "evt_b", 1);
    assert_int_equal(s->seen_count, 0);
    thread_at_open(s, 2);
    WAIT_FOR(rows_left(s, NULL) == 0);
    assert_int_equal(s->seen_count, 2);
    thread_at_done(s);
}

static void tried_again(void **state)
{
    (void)state;
    static const int statuses[] = {500, 302, 404, 410, 429, 200};
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    for (size_t i = 0; i < COUNT(statuses); i++) s->plan[i] = statuses[i];
    thread_at_open(s, 1);
    add_row(s, "evt_same", 0);
    for (uint32_t attempt = 1; attempt < COUNT(statuses); attempt++) {
        struct outgoing row;
        WAIT_FOR(tried(s, attempt));
        assert_int_equal(rows_left(s, &row), 1);
        assert_int_equal(s->seen_count, attempt);
        assert_int_equal(row.next, s->now + backoff_ms(attempt));
        s->now = row.next - 1;
        webhooks_look(s->webhooks);
        assert_int_equal(rows_left(s, NULL), 1);
        assert_int_equal(s->seen_count, attempt); /* not before its time */
        s->now = row.next;
        webhooks_look(s->webhooks);
    }
    WAIT_FOR(rows_left(s, NULL) == 0);
    assert_int_equal(s->seen_count, COUNT(statuses));
    for (size_t i = 1; i < s->seen_count; i++) {
        assert_string_equal(s->seen[i].delivery, "evt_same");
        assert_string_equal(s->seen[i].body, s->seen[0].body);
        assert_string_not_equal(s->seen[i].timestamp, s->seen[i - 1].timestamp);
        assert_string_not_equal(s->seen[i].signature, s->seen[i - 1].signature);
    }
    thread_at_done(s);
}

/* The timer alone brings the second attempt. */
static void tried_again_by_itself(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    s->clock = clock_system;
    s->now = clock_wall(&clock_system);
    s->plan[0] = 503;
    s->plan[1] = 200;
    thread_at_open(s, 1);
    add_row(s, "evt_same", 0);
    WAIT_FOR(s->seen_count == 2);
    WAIT_FOR(rows_left(s, NULL) == 0);
    thread_at_done(s);
}

static void nobody_listens(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    int fd = bound_socket();
    snprintf(s->urls[0], sizeof s->urls[0], "http://127.0.0.1:%u/", bound_port(fd));
    s->hooks[0].url = str_c(s->urls[0]);
    thread_at_open(s, 1);
    add_row(s, "evt_a", 0);
    WAIT_FOR(tried(s, 1));
    thread_at_done(s);
    close(fd);
}

static void given_up(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    for (size_t i = 0; i < SEEN_MAX; i++) s->plan[i] = 500;
    thread_at_open(s, 1);
    add_row(s, "evt_old", 0);
    WAIT_FOR(tried(s, 1)); /* the first needs no other time */
    size_t attempts = 1;
    for (struct outgoing row; rows_left(s, &row); attempts++) {
        s->now = row.next;
        webhooks_look(s->webhooks);
        WAIT_FOR(rows_left(s, NULL) == 0 || tried(s, row.attempts + 1));
    }
    assert_int_equal(s->seen_count, attempts);
    assert_int_equal(attempts, 29); /* five in 13 minutes, then one an hour for a day */
    assert_true(s->now <= (msec)START * 1000 + WEBHOOK_AGE_MS_MAX);
    assert_true(s->now > (msec)START * 1000 + WEBHOOK_AGE_MS_MAX - 2 * 3600 * 1000);
    thread_at_done(s);
}

static void hook_gone(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    s->plan[0] = 200;
    add_row(s, "evt_gone", 1);
    add_row(s, "evt_here", 0);
    thread_at_open(s, 1);
    WAIT_FOR(rows_left(s, NULL) == 0);
    assert_int_equal(s->seen_count, 1);
    assert_string_equal(s->seen[0].delivery, "evt_here");
    thread_at_done(s);
}

static void let_go(struct thread_at *s)
{
    size_t count = s->held_count;
    s->held_count = 0;
    for (size_t i = 0; i < count; i++) answer(s->held[i], 200);
}

/* At most four to one receiver; and eight in all, or one more for each receiver, for all look at once.
 * The rest follows when these have ended. */
static void few_at_a_time(void **state)
{
    (void)state;
    static const struct {
        size_t hooks, rows, least, most;
    } cases[] = {
        {1, 10, WEBHOOK_SENDS_HOOK_MAX, WEBHOOK_SENDS_HOOK_MAX},
        {2, 16, WEBHOOK_SENDS_MAX, WEBHOOK_SENDS_MAX},
        {3, 24, WEBHOOK_SENDS_MAX, WEBHOOK_SENDS_MAX + 2},
        {3, 3, 3, 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct thread_at scene, *s = &scene;
        thread_at_init(s);
        for (size_t row = 0; row < cases[i].rows; row++) {
            char id[16];
            snprintf(id, sizeof id, "evt_%zu", row);
            add_row(s, id, (int)(row % cases[i].hooks));
        }
        thread_at_open(s, cases[i].hooks);
        WAIT_FOR(s->held_count >= cases[i].least);
        assert_int_equal(rows_left(s, NULL), cases[i].rows);
        for (int turn = 0; turn < 10; turn++) {
            webhooks_look(s->webhooks); /* many looks send nothing twice */
            loop_run(s->store.loop);
        }
        assert_true(s->seen_count <= cases[i].most);
        while (s->seen_count < cases[i].rows) {
            let_go(s);
            loop_run(s->store.loop);
            assert_true(s->held_count < WEBHOOK_SENDS_MAX + cases[i].hooks);
        }
        let_go(s);
        WAIT_FOR(rows_left(s, NULL) == 0);
        for (size_t a = 0; a < s->seen_count; a++)
            for (size_t b = 0; b < a; b++)
                assert_string_not_equal(s->seen[a].delivery, s->seen[b].delivery);
        thread_at_done(s);
    }
}

static size_t seen_at(const struct thread_at *s, const char *path)
{
    size_t count = 0;
    for (size_t i = 0; i < s->seen_count; i++) count += !strcmp(s->seen[i].path, path);
    return count;
}

/* Receivers that never answer keep nobody from the one that does, whatever waits for them. */
static void dead_receivers(void **state)
{
    (void)state;
    enum { DEAD_ROWS = 40, ROWS = 3 };
    for (int dead = 1; dead < HOOKS; dead++) {
        struct thread_at scene, *s = &scene;
        char path[16];
        thread_at_init(s);
        snprintf(path, sizeof path, "/hook%d", dead);
        for (int i = 0; i < dead * DEAD_ROWS; i++) add_row(s, "evt_dead", i % dead);
        thread_at_open(s, (size_t)dead + 1);
        WAIT_FOR(s->held_count == (size_t)dead * WEBHOOK_SENDS_HOOK_MAX);
        for (size_t i = s->seen_count; i < SEEN_MAX; i++) s->plan[i] = 204;
        s->now += 1000; /* news is due later than what waits */
        for (size_t i = 1; i <= ROWS; i++) {
            add_row(s, "evt_new", dead);
            WAIT_FOR(seen_at(s, path) == i);
        }
        WAIT_FOR(rows_left(s, NULL) == (size_t)dead * DEAD_ROWS);
        thread_at_done(s);
    }
}

/* Looks all the time, while attempts end: each row arrives once. */
static void each_once(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    for (int i = 0; i < ROWS; i++) {
        char id[16];
        snprintf(id, sizeof id, "evt_%d", i);
        add_row(s, id, i % HOOKS);
    }
    for (size_t i = 0; i < SEEN_MAX; i++) s->plan[i] = 204;
    thread_at_open(s, HOOKS);
    while (rows_left(s, NULL)) webhooks_look(s->webhooks);
    assert_int_equal(s->seen_count, ROWS);
    thread_at_done(s);
}

/* A stop leaves what is under way in the outbox; the next start sends it again. */
static void stopped_under_way(void **state)
{
    (void)state;
    struct thread_at scene, *s = &scene;
    thread_at_init(s);
    thread_at_open(s, 1);
    add_row(s, "evt_a", 0);
    WAIT_FOR(s->held_count == 1);
    webhooks_stop(s->webhooks);
    s->former = s->webhooks; /* a look of it may still be with the store */
    loop_settle(s->store.loop);
    let_go(s);
    assert_true(tried(s, 0));
    s->plan[1] = 200;
    thread_at_open(s, 1);
    WAIT_FOR(rows_left(s, NULL) == 0);
    assert_int_equal(s->seen_count, 2);
    assert_string_equal(s->seen[1].delivery, "evt_a");
    thread_at_done(s);
}

int test_webhooks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures),
        cmocka_unit_test(taken),
        cmocka_unit_test(sent_after_a_start),
        cmocka_unit_test(tried_again),
        cmocka_unit_test(tried_again_by_itself),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(given_up),
        cmocka_unit_test(hook_gone),
        cmocka_unit_test(few_at_a_time),
        cmocka_unit_test(dead_receivers),
        cmocka_unit_test(each_once),
        cmocka_unit_test(stopped_under_way),
    };
    log_setup(LOG_ERROR, false); /* failing is what most of them do */
    int failed = cmocka_run_group_tests_name("webhooks", tests, NULL, NULL);
    log_setup(LOG_INFO, false);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * fill: a data folder with many runs that wait for a person, made by the server's own code.
 *
 *     fill FOLDER [COUNT [USERS]]        1,000,000 and 1,000 unless given
 *
 * For each run what the server would do, without the server: run_begin as after POST /runs, then
 * the pure step with a model's turn that asks, and outcome_save. So every row is there: thread,
 * run, leg, messages, facts, call, interaction, snapshot, the answer to the POST. Nine of ten ask
 * their owner (ask_user); one of ten wants to write to the calendar, which a user with the role
 * "approver" has to allow. Thread n belongs to user n mod USERS, so that what one person sees is
 * spread over the whole file.
 *
 * What differs from a server: transactions of BATCH runs, and no wait for the disk before the end.
 * A folder in which something went wrong is of no use and may be removed.
 *
 * Prints one line of JSON: how long it took, how large the database is, and keys for a few of the
 * users and for one approver.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shell/begin.h"
#include "agent/shell/save.h"
#include "base/clock.h"
#include "store/db/lock.h"
#include "store/db/migrate.h"
#include "store/db/secret.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"
#include "store/table/keys.h"
#include "tool/calendar.h"

enum {
    COUNT_DEFAULT = 1000 * 1000,
    COUNT_MAX = 100 * 1000 * 1000,
    USERS_DEFAULT = 1000,
    BATCH = 2000,     /* runs in a transaction */
    KEYS = 10,        /* users that get one */
    CONFIRM_EACH = 10 /* of so many runs one waits for an approver */
};

struct fill {
    struct db *db;
    struct arena arena; /* of one run */
    struct saver saver;
    struct agent agent;
    struct tools tools;
    uint64_t count, users;
    msec now;
};

static void die(const char *what, enum err e, const struct fault *why)
{
    fprintf(stderr, "fill: %s: %s\n", what, why && why->text[0] ? why->text : err_title(e));
    exit(1);
}

static str make_id(struct arena *arena, const char *prefix)
{
    char id[ID_BYTES];
    id_random(id);
    return arena_printf(arena, "%s%s", prefix, id);
}

/* ---- one run ---- */

static struct turn_call the_call(const struct fill *fill, struct arena *arena, uint64_t n)
{
    struct turn_call call = {.call_id = make_id(arena, "call_"), .provider_id = STR("call_1_1")};
    uint64_t of_user = n / fill->users; /* so that everybody has both kinds */
    if (of_user % CONFIRM_EACH) {
        call.name = STR("ask_user");
        call.args = STR("{\"question\":\"Which room shall I book?\",\"choices\":[\"The blue one\","
                        "\"The green one\",\"Neither\"]}");
        return call;
    }
    uint64_t day = 1 + of_user / CONFIRM_EACH % 28;
    call.name = STR("calendar_write");
    call.args = arena_printf(arena,
                             "{\"title\":\"Review %" PRIu64
                             "\",\"start_time\":\"2027-01-%02uT15:00:00+08:00\","
                             "\"end_time\":\"2027-01-%02uT16:00:00+08:00\"}",
                             n, (unsigned)day, (unsigned)day);
    return call;
}

static enum err begin(struct fill *fill, const struct thread *thread, struct run *run)
{
    struct arena *arena = &fill->arena;
    struct begun begun;
    struct message message = {
        .id = make_id(arena, "msg_"),
        .role = STR("user"),
        .run_id = run->run_id,
        .content = STR("\"Book a room for the review, please\""),
        .metadata = arena_printf(arena, "{\"run_id\":\"%.*s\",\"task_id\":\"%.*s\"}",
                                 STR_ARG(run->run_id), STR_ARG(run->task_id)),
        .plain = STR("Book a room for the review, please"),
        .created = fill->now,
    };
    struct begin with = {.max_rounds = fill->agent.max_rounds,
                         .epoch = fill->saver.epoch,
                         .owner = thread->owner,
                         .thread_id = thread->thread_id,
                         .now = fill->now};
    enum err e = run_add(fill->db, run);
    return e ? e : run_begin(fill->db, arena, &with, run, &message, 1, &begun);
}

static enum err accept(struct fill *fill, const struct thread *thread, const struct run *run)
{
    str answer = arena_printf(&fill->arena,
                              "{\"taskId\":\"%.*s\",\"threadId\":\"%.*s\",\"runId\":\"%.*s\","
                              "\"created\":true,\"seq\":0,\"eventsUrl\":"
                              "\"/api/v1/agent/runs/%.*s/events?after=0\"}",
                              STR_ARG(run->task_id), STR_ARG(thread->thread_id),
                              STR_ARG(run->run_id), STR_ARG(thread->thread_id));
    struct accepted accepted = {.answer = answer};
    crypto_sha256(answer, accepted.hash);
    return accepted_add(fill->db, thread->id, run->run_id, &accepted, fill->now);
}

/* The model's turn, which asks: from here on the run waits. */
static enum err ask(struct fill *fill, const struct thread *thread, struct run *run, uint64_t n)
{
    struct arena *arena = &fill->arena;
    struct view view;
    struct outcome outcome;
    int64_t version;
    struct fault why = {0};
    enum err e = view_load(fill->db, arena, run, thread->owner, &view, &version, &why);
    if (e) return e;
    struct turn_call call = the_call(fill, arena, n);
    struct input input = {.kind = INPUT_TURN,
                          .now = fill->now,
                          .agent = &fill->agent,
                          .binder = &fill->saver.binder,
                          .tools = &fill->tools,
                          .turn = {.message_id = make_id(arena, "msg_"),
                                   .calls = &call,
                                   .call_count = 1,
                                   .usage = {.input_tokens = 1000, .output_tokens = 20}}};
    crypto_random(input.random, sizeof input.random);
    graph_step(arena, &view, &input, &outcome);
    e = outcome_save(fill->db, arena, &fill->saver, run, version, &outcome, fill->now);
    return e || (outcome.status == RUN_WAITING && outcome.opened_count == 1) ? e : ERR_INTERNAL;
}

static enum err add_one(struct fill *fill, uint64_t n)
{
    struct arena *arena = &fill->arena;
    struct thread thread = {.owner = arena_printf(arena, "user%" PRIu64, n % fill->users),
                            .thread_id = arena_printf(arena, "thread-%" PRIu64, n),
                            .title = STR("Book a room for the review, please"),
                            .agent = fill->agent.name,
                            .created = fill->now,
                            .updated = fill->now};
    enum err e = thread_add(fill->db, &thread);
    struct run run = {.thread = thread.id,
                      .run_id = make_id(arena, "run_"),
                      .agent = fill->agent.name,
                      .model = STR("scripted"),
                      .status = RUN_RUNNING,
                      .task_id = make_id(arena, "task_"),
                      .created = fill->now};
    if (!e) e = begin(fill, &thread, &run);
    if (!e) e = accept(fill, &thread, &run);
    if (!e) e = ask(fill, &thread, &run, n);
    return e;
}

static void add_all(struct fill *fill)
{
    bool unknown;
    for (uint64_t n = 0; n < fill->count;) {
        enum err e = db_begin(fill->db);
        uint64_t end = fill->count - n < BATCH ? fill->count : n + BATCH;
        for (; !e && n < end; n++) {
            fill->now = clock_wall(&clock_system);
            e = add_one(fill, n);
            arena_reset(&fill->arena);
        }
        if (!e) e = db_commit(fill->db, &unknown);
        if (!e) e = db_checkpoint(fill->db, true);
        if (e) die(db_message(fill->db), e, NULL);
    }
}

/* ---- keys ---- */

/* Prints it: nothing else knows it. */
static void add_key(struct fill *fill, const char *user, unsigned roles)
{
    unsigned char random[KEY_RANDOM_BYTES];
    char text[KEY_TEXT_BYTES];
    bool unknown;
    crypto_random(random, sizeof random);
    key_make(random, text);
    struct key key = {.user = str_c(user), .name = STR("bench"), .roles = roles};
    key.created = clock_wall(&clock_system);
    key_hash(str_c(text), key.hash);
    enum err e = key_parse(str_c(text), &key.id);
    if (!e) e = db_begin(fill->db);
    if (!e) e = keys_add(fill->db, &key);
    if (!e) e = db_commit(fill->db, &unknown);
    if (e) die("a key", e, NULL);
    printf("\"%s\"", text);
}

static void add_keys(struct fill *fill)
{
    printf("\"keys\":[");
    for (unsigned i = 0; i < KEYS && i < fill->users; i++) {
        char user[32];
        snprintf(user, sizeof user, "user%u", i);
        if (i) printf(",");
        add_key(fill, user, ROLE_USER);
    }
    printf("],\"approver\":");
    add_key(fill, "approver", ROLE_USER | ROLE_APPROVER);
}

/* ---- the folder ---- */

static void open_database(struct fill *fill, const char *folder, char path[static PATH_MAX])
{
    struct fault why = {0};
    bool unknown;
    snprintf(path, PATH_MAX, "%s/" STORE_DATABASE_NAME, folder);
    enum err e = db_open(path, DB_WRITER, &fill->db, &why);
    if (!e) e = migrate(fill->db, &why);
    if (!e) e = db_script(fill->db, "PRAGMA synchronous=0; PRAGMA cache_size=-400000");
    if (!e) e = db_begin(fill->db);
    if (!e)
        e = lease_take(fill->db, STR("runs"), STR("fill"), fill->now, fill->now,
                       &fill->saver.epoch);
    if (!e) e = db_commit(fill->db, &unknown);
    if (e) die(path, e, &why);
}

static void open_secret(struct fill *fill, const char *folder)
{
    AUTO(secret_freep) struct secret *secret = NULL;
    struct fault why = {0};
    enum err e = secret_open(folder, NULL, &secret, &why);
    if (e) die(folder, e, &why);
    struct binder *binder = &fill->saver.binder;
    snprintf(binder->key_id, sizeof binder->key_id, "%s", secret_id(secret));
    secret_subkey(secret, SECRET_BINDING, binder->key);
    secret_subkey(secret, SECRET_AUDIT, fill->saver.audit_key);
}

/* The agent of a server with FERMATA_AGENTS_ASSISTANT_APPROVERS=calendar_write=approver. */
static void make_agent(struct fill *fill, struct arena *arena)
{
    static const struct approver_row approvers[] = {{STR("calendar_write"), STR("approver")}};
    calendar_tools(arena, NULL, &fill->tools.rows, &fill->tools.count);
    const struct tool **all = arena_array(arena, fill->tools.count, sizeof *all);
    for (size_t i = 0; i < fill->tools.count; i++) all[i] = &fill->tools.rows[i];
    fill->saver.tools = &fill->tools;
    fill->agent = (struct agent){
        .name = STR("assistant"),
        .ask_user = true,
        .max_rounds = AGENT_ROUNDS_MAX,
        .policy = {.approvers = approvers, .approver_count = COUNT(approvers)},
        .tools = all,
        .tool_count = fill->tools.count,
    };
}

static uint64_t number(const char *text, uint64_t max)
{
    uint64_t value = 0;
    if (str_to_u64(str_c(text), &value) || !value || value > max) {
        fprintf(stderr, "fill: not a number from 1 to %" PRIu64 ": %s\n", max, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fputs("usage: fill FOLDER [COUNT [USERS]]\n", stderr);
        return 2;
    }
    struct fill fill = {
        .count = argc > 2 ? number(argv[2], COUNT_MAX) : COUNT_DEFAULT,
        .users = argc > 3 ? number(argv[3], COUNT_MAX) : USERS_DEFAULT,
        .now = clock_wall(&clock_system),
    };
    AUTO(lock_freep) struct lock *lock = NULL;
    AUTO(arena_done) struct arena arena;
    struct fault why = {0};
    char path[PATH_MAX];
    arena_init(&arena);
    arena_init(&fill.arena);
    if (lock_take(argv[1], "fill", &lock, &why)) die(argv[1], ERR_CONFIG, &why);
    open_database(&fill, argv[1], path);
    open_secret(&fill, argv[1]);
    make_agent(&fill, &arena);

    msec start = clock_steady(&clock_system);
    add_all(&fill);
    printf("{\"open\":%" PRIu64 ",\"users\":%" PRIu64 ",", fill.count, fill.users);
    add_keys(&fill);
    db_close(fill.db);
    sync(); /* what follows should not be measured against our own writing */
    struct stat file = {0};
    if (stat(path, &file)) die(path, ERR_IO, NULL);
    printf(",\"seconds\":%.1f,\"bytes\":%lld}\n",
           (double)(clock_steady(&clock_system) - start) / 1000, (long long)file.st_size);
    arena_done(&fill.arena);
    return 0;
}

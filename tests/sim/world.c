/* SPDX-License-Identifier: Apache-2.0
 *
 * What survives: a database with one thread, and its rows behind the last commit, read anew after each
 * with statements of our own.
 *
 * The database is in memory and is emptied after each life; statements stay prepared. Then a crash is a
 * transaction that is committed or rolled back, and nothing else of the process that stays. In some
 * lives it is a file with its log, as the server has it: then a crash leaves a copy of both as they are
 * in that moment, and the life goes on from the copy.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/rows.h"
#include "sim.h"
#include "store/db/columns.h"
#include "store/db/hot.h"
#include "store/db/migrate.h"
#include "store/db/sqlite.h"
#include "store/db/tables.h"
#include "store/table/grants.h"

str keep(struct sim *sim, str text)
{
    return text.len ? arena_str(&sim->life, text) : STR_EMPTY;
}

static void must(struct sim *sim, enum err e, const char *what)
{
    if (e) broken(sim, "%s: %s, %s", what, err_title(e), sim->db ? db_message(sim->db) : "");
}

/* ---- in memory ---- */

static struct db *memory; /* of all lives of this program, one after the other */

static enum err memory_open(void)
{
    bool unknown = false;
    enum err e = db_open("", DB_MEMORY, &memory, NULL);
    if (!e) e = db_schema_changes(memory, true);
    if (!e) e = db_begin(memory);
    if (!e) e = db_script(memory, tables_sql);
    return e ? e : db_commit(memory, &unknown);
}

#define WIPE(table)                                                 \
    do {                                                            \
        if (!e) e = stmt_run(db_prepare(db, "DELETE FROM " table)); \
    } while (0)

/* Children first: then nobody looks for them. */
static enum err wipe(struct db *db)
{
    bool unknown = false;
    enum err e = db_begin(db);
    WIPE("events");
    WIPE("messages");
    WIPE("snapshots");
    WIPE("legs");
    WIPE("run_inputs");
    WIPE("run_offers");
    WIPE("queued_ids");
    WIPE("tool_calls");
    WIPE("interactions");
    WIPE("grants");
    WIPE("blobs");
    WIPE("attachment_uses");
    WIPE("attachments");
    WIPE("audit");
    WIPE("audit_chains");
    WIPE("outbox");
    WIPE("leases");
    WIPE("runs");
    WIPE("threads");
    WIPE("sqlite_sequence");
    return e ? e : db_commit(db, &unknown);
}

/* ---- in a file ---- */

static char folder[PATH_MAX]; /* of this life */
static unsigned copies;       /* names of the file so far */

static void file_path(char out[static PATH_MAX], unsigned number, const char *suffix)
{
    snprintf(out, PATH_MAX, "%.900s/%u.db%s", folder, number, suffix);
}

static void file_remove(unsigned number)
{
    char path[PATH_MAX];
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        file_path(path, number, suffixes[i]);
        unlink(path);
    }
}

static bool file_copy(unsigned from, unsigned to, const char *suffix)
{
    char source[PATH_MAX], target[PATH_MAX];
    struct stat st;
    file_path(source, from, suffix);
    file_path(target, to, suffix);
    int in = open(source, O_RDONLY | O_CLOEXEC);
    int out = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = in >= 0 && out >= 0 && !fstat(in, &st);
    for (off_t left = good ? st.st_size : 0; good && left > 0;) {
        ssize_t sent = sendfile(out, in, NULL, (size_t)left);
        good = sent > 0;
        left -= sent;
    }
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return good;
}

enum { WORLD_HOT_BYTES = 64 * 1024 }; /* little enough that some of it has to go */

/* What is committed is in the file or its log, whole; that it is on a disk is not asked here. */
static enum err file_open(struct sim *sim)
{
    char path[PATH_MAX];
    file_path(path, copies, "");
    enum err e = db_open(path, DB_WRITER, &sim->db, NULL);
    if (!e) e = migrate(sim->db, NULL);
    if (!e) db_keep(sim->db, WORLD_HOT_BYTES);
    return e ? e : db_script(sim->db, "PRAGMA synchronous=0");
}

static void folder_make(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.800s/fermata-sim.XXXXXX", tmp ? tmp : "/dev/shm");
    if (!mkdtemp(folder)) abort();
}

/* ---- a life's ---- */

void world_init(struct sim *sim)
{
    enum err e = OK;
    struct thread thread = {.owner = STR("local"),
                            .thread_id = STR("t1"),
                            .agent = STR("assistant"),
                            .created = sim->now,
                            .updated = sim->now};
    bool unknown = false;
    arena_init(&sim->world.arenas[0]);
    arena_init(&sim->world.arenas[1]);
    if (sim->scenario.file) {
        folder_make();
        copies++;
        e = file_open(sim);
    } else {
        if (!memory) e = memory_open();
        sim->db = memory;
    }
    if (!e) db_keep(sim->db, WORLD_HOT_BYTES);
    if (!e) e = db_begin(sim->db);
    if (!e) e = thread_add(sim->db, &thread);
    if (!e) e = db_commit(sim->db, &unknown);
    must(sim, e, "the database");
    sim->world.thread = thread.id;
}

void world_done(struct sim *sim)
{
    if (sim->scenario.file) {
        db_close(sim->db);
        file_remove(copies);
        rmdir(folder);
    } else if (sim->db && wipe(sim->db)) {
        db_close(memory);
        memory = NULL;
    }
    sim->db = NULL;
    arena_done(&sim->world.arenas[0]);
    arena_done(&sim->world.arenas[1]);
}

void world_crash(struct sim *sim)
{
    if (!sim->scenario.file) {
        must(sim, db_rollback(sim->db), "rolling back");
        return;
    }
    bool copied = file_copy(copies, copies + 1, "") && file_copy(copies, copies + 1, "-wal");
    must(sim, copied ? OK : ERR_IO, "copying the file");
    must(sim, db_rollback(sim->db), "rolling back");
    db_close(sim->db);
    file_remove(copies);
    copies++;
    must(sim, file_open(sim), "opening the file again");
}

/* ---- rows ---- */

/* clang-format off */
#define CALL_COLUMNS(X)                                                                     \
    X(run) X(round) X(n) X(state) X(stage) X(write) X(idempotent) X(attempts) X(started)    \
    X(ended) X(result_bytes) X(call_id) X(message_id) X(tool) X(rule) X(binding)            \
    X(result_id) X(spool) X(error) X(args) X(model_text) X(content) X(asked)
#define INTERACTION_COLUMNS(X)                                                              \
    X(n) X(run) X(type) X(status) X(seq) X(opened) X(expires) X(allow_freeform) X(multi)    \
    X(id) X(owner) X(run_id) X(call_id) X(approver) X(locale) X(resume_node)                \
    X(resume_phase) X(tool) X(binding) X(question) X(choices) X(fields) X(metadata)         \
    X(args_schema) X(args)
#define MESSAGE_COLUMNS(X) X(seq) X(id) X(role) X(run_id) X(metadata) X(hints)
#define GRANT_COLUMNS(X) X(n) X(id) X(tool) X(match) X(rule)
/* clang-format on */

#define COLUMN(name) COLUMN_OF(struct call, name),
static const struct column call_columns[] = {CALL_COLUMNS(COLUMN)};
#undef COLUMN
#define COLUMN(name) COLUMN_OF(struct interaction, name),
static const struct column interaction_columns[] = {INTERACTION_COLUMNS(COLUMN)};
#undef COLUMN
#define COLUMN(name) COLUMN_OF(struct message, name),
static const struct column message_columns[] = {MESSAGE_COLUMNS(COLUMN)};
#undef COLUMN
#define COLUMN(name) COLUMN_OF(struct grant, name),
static const struct column grant_columns[] = {GRANT_COLUMNS(COLUMN)};
#undef COLUMN

static void load_facts(struct sim *sim)
{
    struct world *world = &sim->world;
    for (bool more = true; more;) {
        int64_t after = world->fact_count ? world->facts[world->fact_count - 1].seq : 0;
        struct fact_list page;
        must(sim, facts_after(sim->db, &sim->life, world->thread, after, FEED_PAGE_FACTS, &page),
             "reading facts");
        for (size_t i = 0; i < page.count; i++) {
            struct fact *fact = ROWS_ADD(&sim->life, world->facts, world->fact_count);
            *fact = page.facts[i];
            for (size_t k = 0; k < fact->data.len; k++)
                sim->history = (sim->history ^ (unsigned char)fact->data.p[k]) * 0x100000001b3u;
            trace(sim, "  %lld %s %.*s", (long long)fact->seq, fact->type,
                  (int)(fact->data.len > 150 ? 150 : fact->data.len), fact->data.p);
        }
        more = page.more;
    }
}

static void load_messages(struct sim *sim)
{
    struct world *world = &sim->world;
    struct stmt *s =
        db_prepare(sim->db, "SELECT 0" MESSAGE_COLUMNS(
                                COLUMN_NAME) " FROM messages"
                                             " WHERE thread=?1 AND seq>?2 ORDER BY seq");
    stmt_bind_i64(s, 1, world->thread);
    stmt_bind_i64(s, 2, world->message_count ? world->messages[world->message_count - 1].seq : 0);
    while (stmt_step(s))
        columns_read(s, 1, message_columns, COUNT(message_columns), &sim->life,
                     ROWS_ADD(&sim->life, world->messages, world->message_count));
    must(sim, stmt_end(s), "reading messages");
}

static void load_calls(struct sim *sim, struct arena *arena)
{
    struct world *world = &sim->world;
    struct stmt *s = db_prepare(sim->db, "SELECT 0" CALL_COLUMNS(COLUMN_NAME) " FROM tool_calls"
                                                                              " ORDER BY id");
    while (stmt_step(s))
        columns_read(s, 1, call_columns, COUNT(call_columns), arena,
                     ROWS_ADD(arena, world->calls, world->call_count));
    must(sim, stmt_end(s), "reading calls");
}

static void load_interactions(struct sim *sim, struct arena *arena)
{
    struct world *world = &sim->world;
    struct stmt *s =
        db_prepare(sim->db, "SELECT 0" INTERACTION_COLUMNS(COLUMN_NAME) " FROM interactions"
                                                                        " ORDER BY n");
    while (stmt_step(s))
        columns_read(s, 1, interaction_columns, COUNT(interaction_columns), arena,
                     ROWS_ADD(arena, world->interactions, world->interaction_count));
    must(sim, stmt_end(s), "reading interactions");
    s = db_prepare(sim->db, "SELECT 0" GRANT_COLUMNS(COLUMN_NAME) " FROM grants ORDER BY n");
    while (stmt_step(s))
        columns_read(s, 1, grant_columns, COUNT(grant_columns), arena,
                     ROWS_ADD(arena, world->grants, world->grant_count));
    must(sim, stmt_end(s), "reading grants");
}

static void load_run(struct sim *sim, struct arena *arena)
{
    struct world *world = &sim->world;
    struct fault why = {0};
    str bytes = STR_EMPTY;
    enum err e = run_current(sim->db, arena, world->thread, &world->run);
    bool open = !e;
    if (e == ERR_NOT_FOUND) e = run_newest(sim->db, arena, world->thread, &world->run);
    if (e == ERR_NOT_FOUND) {
        world->run = (struct run){0};
        return;
    }
    must(sim, e, "reading the run");
    struct run next;
    e = run_next(sim->db, arena, world->thread, &next);
    world->queued = !e;
    e = snapshot_load(sim->db, arena, world->run.id, &world->version, &bytes);
    world->damaged = e == ERR_DAMAGED;
    if (!e && state_parse(arena, bytes, &world->state, &why))
        broken(sim, "the snapshot does not load: %s %s", why.field, why.text);
    if (open && e && !world->damaged) broken(sim, "the run has no snapshot");
}

void world_load(struct sim *sim)
{
    struct world *world = &sim->world;
    struct arena before = world->arenas[0], *arena = &world->arenas[0];
    world->arenas[0] = world->arenas[1];
    world->arenas[1] = before;
    arena_reset(arena);
    world->calls = NULL;
    world->interactions = NULL;
    world->grants = NULL;
    world->call_count = world->interaction_count = world->grant_count = 0;
    world->version = 0;
    world->damaged = world->queued = false;
    world->state = (struct state){0};
    load_facts(sim);
    load_messages(sim);
    load_calls(sim, arena);
    load_interactions(sim, arena);
    load_run(sim, arena);
}

bool world_open(const struct sim *sim)
{
    return sim->world.run.id && run_status_open(sim->world.run.status);
}

bool world_unfinished(const struct sim *sim)
{
    enum run_status status = sim->world.run.status;
    bool waits = status == RUN_WAITING, flying = false;
    if (!sim->world.run.id) return sim->world.queued;
    for (size_t i = 0; waits && i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        flying = flying || (call->run == sim->world.run.id && call->state == CALL_STARTED);
    }
    bool next = sim->world.queued && !run_status_open(status);
    return status == RUN_RUNNING || status == RUN_CANCELLING || flying || next;
}

void world_rest(const struct sim *sim, struct input *input)
{
    input->agent = &sim->house.agent;
    input->binder = &sim->saver.binder;
    input->tools = &sim->house.tools;
}

struct call *world_call(struct sim *sim, str call_id)
{
    for (size_t i = sim->world.call_count; i > 0; i--)
        if (str_eq(sim->world.calls[i - 1].call_id, call_id)) return &sim->world.calls[i - 1];
    return NULL;
}

struct interaction *world_interaction(struct sim *sim, str id)
{
    for (size_t i = sim->world.interaction_count; i > 0; i--)
        if (str_eq(sim->world.interactions[i - 1].id, id)) return &sim->world.interactions[i - 1];
    return NULL;
}

void world_write(struct sim *sim, enum err e)
{
    must(sim, e, "writing past the store");
    hot_drop_all(sim->db); /* as when another process has written */
    world_load(sim);
}

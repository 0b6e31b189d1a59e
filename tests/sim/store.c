/* SPDX-License-Identifier: Apache-2.0
 *
 * store/db/store.h without its threads: jobs run one at a time, when the life says so, on the real
 * database. Writes run in their order, and their results go back in it, at once or later; reads run at
 * any time, and what they saw may be old when it is told. Between any two of these steps something else
 * may happen.
 *
 * A write is one transaction. Right before and right behind its commit the process may die
 * (process_commit).
 */
#include "store/db/store.h"

#include <stdlib.h>

#include "sim.h"
#include "store/db/sqlite.h"

/* First in, first out. */
struct line {
    struct job *first, **last;
    size_t count;
};

struct store {
    struct sim *sim;
    struct line writes, reads; /* that wait */
    struct line written, seen; /* whose results do */
};

static void push(struct line *line, struct job *job)
{
    job->next = NULL;
    *line->last = job;
    line->last = &job->next;
    line->count++;
}

/* The one at this place. */
static struct job *pull(struct line *line, size_t place)
{
    struct job **at = &line->first;
    while (place--) at = &(*at)->next;
    struct job *job = *at;
    *at = job->next;
    if (!job->next) line->last = at;
    line->count--;
    return job;
}

struct store *store_fake(struct sim *sim)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store) abort();
    store->sim = sim;
    store->writes.last = &store->writes.first;
    store->reads.last = &store->reads.first;
    store->written.last = &store->written.first;
    store->seen.last = &store->seen.first;
    return store;
}

void store_fake_free(struct store *store)
{
    assert(!store_fake_busy(store));
    free(store);
}

void store_write(struct store *store, struct job *job)
{
    push(&store->writes, job);
}

void store_read(struct store *store, struct job *job)
{
    push(&store->reads, job);
}

bool store_fake_busy(const struct store *store)
{
    return store->writes.count || store->reads.count || store->written.count || store->seen.count;
}

/* As the real store does when it is closed; but nothing that waits is done before. */
void store_fake_drop(struct store *store)
{
    struct line *lines[] = {&store->written, &store->seen, &store->writes, &store->reads};
    for (size_t i = 0; i < COUNT(lines);) {
        if (lines[i]->count) {
            struct job *job = pull(lines[i], 0);
            job->done(job, ERR_SHUTTING_DOWN);
            i = 0; /* it may have given another */
        } else {
            i++;
        }
    }
}

/* ---- running ---- */

static void deliver(struct store *store)
{
    bool read = store->seen.count && (!store->written.count || one_in(&store->sim->chance, 2));
    struct job *job = pull(read ? &store->seen : &store->written, 0);
    job->done(job, job->result);
}

static void deliver_all(struct store *store)
{
    while (store->written.count || store->seen.count) deliver(store);
}

static bool unlucky(struct sim *sim, unsigned n)
{
    return !sim->calm && one_in(&sim->chance, n);
}

/* False: the process died on the way, and the job with it. */
static bool run_write(struct store *store, struct job *job)
{
    struct sim *sim = store->sim;
    struct process *process = &sim->process;
    bool unknown = false;
    enum err e = unlucky(sim, 40) ? ERR_STORAGE_FULL : OK;
    push(&store->written, job);
    process->inside.there = process->saves = false;
    if (!e) {
        e = db_begin(sim->db);
        process->in_job = true;
        if (!e) e = job->run(job, sim->db);
        process->in_job = false;
        db_settle(sim->db);
        if (!e && process_commit(sim, BEFORE)) return false;
        if (!e) e = db_commit(sim->db, &unknown);
        if (e && db_rollback(sim->db)) broken(sim, "a transaction cannot be rolled back");
    }
    sim->coverage->stale += e == ERR_BUSY;
    if (e == ERR_INTERNAL || e == ERR_IO)
        broken(sim, "the store: %s, %s", err_title(e), db_message(sim->db));
    job->result = e;
    return e || !process_commit(sim, BEHIND);
}

static void run_read(struct store *store, struct job *job)
{
    struct sim *sim = store->sim;
    enum err e = unlucky(sim, 100) ? ERR_RATE_LIMITED : db_begin(sim->db);
    if (!e) {
        e = job->run(job, sim->db);
        db_settle(sim->db);
        bool unknown = false; /* it has changed nothing */
        if (db_commit(sim->db, &unknown)) broken(sim, "a read cannot be ended");
    }
    job->result = e;
    push(&store->seen, job);
}

void store_fake_ahead(struct store *store, struct job *job)
{
    if (!run_write(store, job) || !one_in(&store->sim->chance, 2)) return;
    deliver_all(store);
}

bool store_fake_event(struct store *store)
{
    struct chance *chance = &store->sim->chance;
    size_t waiting = store->reads.count + (store->writes.count > 0);
    if (!store_fake_busy(store)) return false;
    bool ready = store->written.count || store->seen.count;
    if (!waiting || (ready && one_in(chance, 2))) {
        deliver(store);
        return true;
    }
    size_t pick = below(chance, (unsigned)waiting);
    if (pick < store->reads.count)
        run_read(store, pull(&store->reads, pick));
    else if (!run_write(store, pull(&store->writes, 0)))
        return true;
    if (!one_in(chance, 4)) deliver_all(store);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * store/blob/blob.h and tool/spool.h in memory, as much of them as the shell uses. A put works, fails,
 * or hangs until nobody waits for it any more; in some lives the storage is away altogether.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rows.h"
#include "sim.h"
#include "store/blob/blob.h"
#include "tool/spool.h"

enum { STREAM = 6 * 1000 * 1000 };

struct object {
    str path, bytes;
};

/* Of both seams. */
struct blob_job {
    struct blob_job *next;
    str path, bytes;
    blob_done *on_done; /* NULL: nobody is told */
    blob_got *on_got;
    void *arg;
    bool hangs;
};

struct blobs {
    struct sim *sim;
    struct chance chance;
    bool away;
    struct object *objects;
    size_t object_count;
    struct blob_job *jobs;
};

struct blobs *blobs_fake(struct sim *sim)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (!blobs) abort();
    blobs->sim = sim;
    blobs->chance = chance_from(sim->scenario.seed, 0, STREAM);
    blobs->away = one_in(&blobs->chance, 10);
    return blobs;
}

void blobs_fake_drop(struct blobs *blobs)
{
    while (blobs->jobs) {
        struct blob_job *job = blobs->jobs;
        blobs->jobs = job->next;
        free(job);
    }
}

void blobs_fake_free(struct blobs *blobs)
{
    blobs_fake_drop(blobs);
    free(blobs);
}

bool blobs_fake_has(const struct blobs *blobs, str path)
{
    for (size_t i = 0; i < blobs->object_count; i++)
        if (str_eq(blobs->objects[i].path, path)) return true;
    return false;
}

static struct blob_job *job_new(struct blobs *blobs, str path, str bytes)
{
    struct blob_job *job = calloc(1, sizeof *job), **at = &blobs->jobs;
    if (!job) abort();
    struct sim *sim = blobs->sim;
    *job = (struct blob_job){.path = keep(sim, path), .bytes = keep(sim, bytes)};
    job->hangs = !sim->calm && one_in(&blobs->chance, 30);
    while (*at) at = &(*at)->next;
    *at = job;
    return job;
}

struct blob_job *blob_put(struct blobs *blobs, str bucket, str path, str bytes, blob_done *on_done,
                          void *arg)
{
    struct blob_job *job = job_new(blobs, path, bytes);
    (void)bucket;
    job->on_done = on_done;
    job->arg = arg;
    return job;
}

struct blob_job *blob_put_file(struct blobs *blobs, str bucket, str path, const char *file,
                               blob_done *on_done, void *arg)
{
    (void)file;
    return blob_put(blobs, bucket, path, STR("of a file"), on_done, arg);
}

struct blob_job *blob_get(struct blobs *blobs, str bucket, str path, size_t bytes_max,
                          blob_got *on_got, void *arg)
{
    struct blob_job *job = job_new(blobs, path, STR_EMPTY);
    (void)bucket, (void)bytes_max;
    job->on_got = on_got;
    job->arg = arg;
    return job;
}

void blob_forget(struct blob_job *job)
{
    job->on_done = NULL;
    job->on_got = NULL;
}

static struct blob_job **ready(const struct blobs *blobs)
{
    struct blob_job **at = (struct blob_job **)&blobs->jobs;
    while (*at && (*at)->hangs) at = &(*at)->next;
    return at;
}

bool blobs_fake_busy(const struct blobs *blobs)
{
    return *ready(blobs);
}

static void get(struct blobs *blobs, const struct blob_job *job, bool fails)
{
    for (size_t i = 0; !fails && i < blobs->object_count; i++)
        if (str_eq(blobs->objects[i].path, job->path)) {
            job->on_got(job->arg, OK, blobs->objects[i].bytes, NULL);
            return;
        }
    job->on_got(job->arg, fails ? ERR_IO : ERR_NOT_FOUND, STR_EMPTY, NULL);
}

bool blobs_fake_event(struct blobs *blobs)
{
    struct blob_job **at = ready(blobs), *job = *at;
    struct sim *sim = blobs->sim;
    if (!job) return false;
    *at = job->next;
    bool fails = blobs->away || (!sim->calm && one_in(&blobs->chance, 4));
    if (job->bytes.len && !fails && !blobs_fake_has(blobs, job->path))
        *ROWS_ADD(&sim->life, blobs->objects, blobs->object_count) =
            (struct object){job->path, job->bytes};
    if (job->on_done) job->on_done(job->arg, fails ? ERR_IO : OK, NULL);
    if (job->on_got) get(blobs, job, fails);
    free(job);
    return true;
}

/* ---- the spool ---- */

const char *spool_path(const struct spool *spool, struct arena *arena, str name)
{
    (void)spool;
    return arena_cstr(arena, name);
}

/* Long results come from tools that have spooled them already: nobody else writes. */
struct spool_job *spool_write(struct spool *spool, str name, str bytes,
                              void (*on_done)(void *arg, enum err e, const struct fault *reason),
                              void *arg)
{
    (void)spool, (void)name, (void)bytes, (void)on_done, (void)arg;
    abort();
}

struct spool_job *spool_remove(struct spool *spool, str name,
                               void (*on_done)(void *arg, enum err e, const struct fault *reason),
                               void *arg)
{
    (void)spool, (void)name, (void)on_done, (void)arg;
    return NULL;
}

void spool_forget(struct spool_job *job)
{
    (void)job;
}

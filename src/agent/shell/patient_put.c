/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects put into storage with patience.
 *
 *     begin ─▶ go ─▶ putting ─▶ over: OK
 *       │       ▲     │ failed
 *       │       └─ rest ─▶ out of tries ─▶ over: why
 *       └── the time is up ─▶ over: ERR_TIMEOUT
 */
#include "agent/shell/patient_put.h"

#include "base/limits.h"
#include "net/loop.h"
#include "store/blob/blob.h"

static void try_put(void *arg);

static void on_put(void *arg, enum err e, const struct fault *reason)
{
    struct patient_put *put = arg;
    (void)reason;
    put->job = NULL;
    if (e && ++put->failures < PAYLOAD_TRIES_MAX)
        timer_start(put->rest, PAYLOAD_RETRY_MS << put->failures);
    else
        put->on_over(put->arg, e);
}

static void try_put(void *arg)
{
    struct patient_put *put = arg;
    put->job = put->file ? blob_put_file(put->blobs, put->bucket, put->path, put->file, on_put, put)
                         : blob_put(put->blobs, put->bucket, put->path, put->bytes, on_put, put);
}

static void on_late(void *arg)
{
    struct patient_put *put = arg;
    patient_put_end(put);
    put->on_over(put->arg, ERR_TIMEOUT);
}

void patient_put_begin(struct patient_put *put)
{
    if (!put->limit) put->limit = timer_new(put->loop, on_late, put);
    if (!put->rest) put->rest = timer_new(put->loop, try_put, put);
    timer_start(put->limit, PAYLOAD_MS_MAX);
}

void patient_put_go(struct patient_put *put, str bucket, str path, str bytes, const char *file)
{
    put->bucket = bucket;
    put->path = path;
    put->bytes = bytes;
    put->file = file;
    put->failures = 0;
    try_put(put);
}

void patient_put_end(struct patient_put *put)
{
    if (put->job) blob_forget(TAKE(put->job));
    if (!put->limit) return;
    timer_stop(put->rest);
    timer_stop(put->limit);
}

void patient_put_done(struct patient_put *put)
{
    if (put->job) blob_forget(TAKE(put->job));
    timer_free(TAKE(put->rest));
    timer_free(TAKE(put->limit));
}

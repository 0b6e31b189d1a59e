/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects put into storage with patience: each is tried a few times, with rests between, and all of it
 * within a time. An object is named after its bytes, so putting it again is harmless: also when the time
 * was up and it turns out to be there after all. On the loop thread.
 */
#ifndef AGENT_SHELL_PATIENT_PUT_H
#define AGENT_SHELL_PATIENT_PUT_H

#include "base/str.h"

struct blob_job;
struct blobs;
struct loop;
struct timer;

/* Embedded. */
struct patient_put {
    struct loop *loop;
    struct blobs *blobs;
    void (*on_over)(void *arg,
                    enum err e); /* OK: it is stored. Never from inside a function below */
    void *arg;

    str bucket, path, bytes; /* private from here on */
    const char *file;
    unsigned failures;
    struct blob_job *job;
    struct timer *rest, *limit;
};

/* From now on there are PAYLOAD_MS_MAX, for one object or for several after each other; then on_over says
 * ERR_TIMEOUT, also between two. */
void patient_put_begin(struct patient_put *put);
/* Put one: the bytes, or the file if that is not NULL. All are borrowed until on_over. */
void patient_put_go(struct patient_put *put, str bucket, str path, str bytes, const char *file);
void patient_put_end(struct patient_put *put);  /* nothing more is put; may begin again */
void patient_put_done(struct patient_put *put); /* and its memory goes */

#endif

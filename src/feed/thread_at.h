/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread as it stood behind one of its facts: what an AG-UI answer begins and ends with. Blocking
 * code for use inside a job. The past does not change, so it does not matter when it is read.
 */
#ifndef FEED_THREAD_AT_H
#define FEED_THREAD_AT_H

#include "wire/agui.h"

struct db;

struct thread_at_want {
    int64_t thread, seq;      /* behind this fact */
    str run_id;               /* the run that is meant; empty: the one that began last */
    bool messages, end;       /* what is needed of it */
    str wire_id;              /* of the leg that began last, if somebody has it at hand */
    const struct fact *facts; /* the newest up to `seq`, if somebody has them at hand; else none */
    size_t fact_count;
};

struct thread_at {
    str run_id;  /* of the leg that had begun last */
    str wire_id; /* what its request called it */
    str model;
    str state; /* JSON that its request brought; may be empty */
    str step;  /* of the run, open then; empty: none */
    int64_t began;

    struct agui_row *rows; /* messages */
    size_t row_count;

    struct fact ended; /* end: of a leg of the run; type NULL: it has not ended */
    struct interaction *open;
    size_t open_count;
    uint64_t input_tokens, output_tokens; /* of the leg */
};

/* A thread on which nothing ever ran is empty. ERR_NOT_FOUND: it is gone. */
enum err thread_at_read(struct db *db, struct arena *arena, const struct thread_at_want *want,
                        struct thread_at *ret_thread_at) MUST_USE;

#endif

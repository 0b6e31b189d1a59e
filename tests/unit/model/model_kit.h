/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening to a model on a real loop. What it says becomes one line of text, chunk by chunk:
 *
 *     r<think>t<Hell>t<o>c0<call_1_1 search>a0<{"q">a0<:1}>done
 *
 * Every callback is checked on the way: whole UTF-8, never empty, never from inside model_start,
 * never after the end or a cancel.
 */
#ifndef TESTS_MODEL_KIT_H
#define TESTS_MODEL_KIT_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/model.h"

struct heard {
    struct loop *loop;
    const struct model *model;
    struct model_call *call;
    struct buf trace;
    struct buf text; /* the text alone */
    size_t callbacks;
    size_t cancel_at; /* cancel inside this callback, from 1; 0 = never */
    bool starting, cancelled, ended;
    enum model_end end;
    struct model_usage usage;
    msec retry_after_ms;
    struct arena arena;
    str provider_data;
    struct fault why;
    msec first_at, end_at;       /* times of the first and the last callback */
    void (*on_chunk)(void *arg); /* for those who count */
    void *on_chunk_arg;
};

/* Start a call for a single user message. */
void heard_start(struct heard *heard, struct loop *loop, const struct model *model, str message,
                 uint32_t round);
/* Start one for any request. */
void heard_ask(struct heard *heard, struct loop *loop, const struct model *model,
               const struct model_request *request);
void heard_cancel(struct heard *heard);
void heard_done(struct heard *heard);

/* Run the loop until it has ended; fails the test when that takes too long. */
void heard_wait(struct heard *heard);

/* All of it: start, wait, and compare what was heard. */
void heard_expect(struct loop *loop, const struct model *model, str message, uint32_t round,
                  const char *trace);

#endif

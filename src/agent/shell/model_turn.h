/* SPDX-License-Identifier: Apache-2.0
 *
 * The model speaking: one turn, over as many attempts as it takes, shown while it grows and kept
 * until it is saved. On the loop thread.
 *
 * An attempt that fails leaves nothing but a discard; each attempt has ids of its own, for the
 * message and for every call in it.
 */
#ifndef AGENT_SHELL_MODEL_TURN_H
#define AGENT_SHELL_MODEL_TURN_H

#include "agent/core/graph.h"
#include "base/clock.h"
#include "store/bus/bus.h"

struct loop;
struct growing_call;

/* Embedded; zeroed but for the first part. */
struct model_turn {
    struct loop *loop;
    struct bus *bus;
    const struct clock *clock;
    int64_t thread;
    bool words_only;             /* no tools are offered: calls are passed over, unseen */
    void (*on_whole)(void *arg); /* model_turn_turn has it */
    void (*on_down)(void *arg, enum err e, const char *why); /* no attempt gave one */
    void *arg;

    /* private */
    const struct model *model;
    struct model_request request;
    struct model_call *call;
    struct timer *timer;
    unsigned attempt;
    bool whole;    /* it waits to be saved */
    bool shown;    /* previews of this attempt went out */
    bool overflow; /* larger than we take */
    char run_id[ID_CLIENT_BYTES_MAX + 1];
    char message_id[4 + ID_BYTES];
    struct buf text, reasoning;
    uint64_t text_units, reasoning_units;
    struct model_usage usage;
    str provider_data, provider, name; /* and who gave it */
    struct model_price price;
    struct arena arena; /* of the calls */
    struct growing_call *calls;
    size_t call_count;
};

void model_turn_init(struct model_turn *model_turn);
void model_turn_done(struct model_turn *model_turn);

/* The model, and the request's texts, stay where they are until the end or model_turn_stop. */
void model_turn_start(struct model_turn *model_turn, const struct model *model, str run_id,
                      const struct model_request *request);

/* No callback comes any more; what was said so far is kept. Fine if nobody speaks. */
void model_turn_stop(struct model_turn *model_turn);

/* What was said so far; borrowed, its list of calls in the arena. */
struct turn model_turn_turn(const struct model_turn *model_turn, struct arena *arena);

/* Nothing of what was shown becomes a fact. */
void model_turn_discard(struct model_turn *model_turn, const char *reason);

/* It is saved, or discarded: forget it. */
void model_turn_forget(struct model_turn *model_turn);

/* One of the calls of what was said so far, as a preview of its start, and its arguments. False: it
 * is not previewed. */
bool model_turn_call(const struct model_turn *model_turn, size_t index, struct preview *ret_start,
                     str *ret_args);

#endif

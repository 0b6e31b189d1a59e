/* SPDX-License-Identifier: Apache-2.0
 *
 * The model speaking: one turn, over as many attempts as it takes, shown while it grows and kept
 * until it is saved. On the loop thread.
 *
 * An attempt that fails leaves nothing but a discard; each attempt has ids of its own, for the
 * message and for every call in it.
 */
#ifndef AGENT_SPEECH_H
#define AGENT_SPEECH_H

#include "agent/graph.h"
#include "base/clock.h"
#include "store/bus.h"

struct loop;
struct growing_call;

/* Embedded; zeroed but for the first part. */
struct speech {
    struct loop *loop;
    struct bus *bus;
    const struct clock *clock;
    int64_t thread;
    bool words_only;             /* no tools are offered: calls are passed over, unseen */
    void (*on_whole)(void *arg); /* speech_turn has it */
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

void speech_init(struct speech *speech);
void speech_done(struct speech *speech);

/* The model, and the request's texts, stay where they are until the end or speech_stop. */
void speech_start(struct speech *speech, const struct model *model, str run_id,
                  const struct model_request *request);

/* No callback comes any more; what was said so far is kept. Fine if nobody speaks. */
void speech_stop(struct speech *speech);

/* What was said so far; borrowed, its list of calls in the arena. */
struct turn speech_turn(const struct speech *speech, struct arena *arena);

/* Nothing of what was shown becomes a fact. */
void speech_discard(struct speech *speech, const char *reason);

/* It is saved, or discarded: forget it. */
void speech_forget(struct speech *speech);

/* One of the calls of what was said so far, as a preview of its start, and its arguments. False: it
 * is not previewed. */
bool speech_call(const struct speech *speech, size_t index, struct preview *ret_start,
                 str *ret_args);

#endif

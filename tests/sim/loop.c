/* SPDX-License-Identifier: Apache-2.0
 *
 * net/loop.h without sockets, threads and time of its own: what the shell needs of it. Timers stand in
 * the order of their times, of those at the same time in the order in which they were set; the clock is
 * the life's. Nothing happens but when the life says so.
 */
#include "net/loop.h"

#include <stdlib.h>

#include "sim.h"

enum { WORKS_MAX = 64 };

struct timer {
    struct loop *loop;
    struct timer *next;
    void (*fn)(void *arg);
    void *arg;
    msec at; /* 0: it is not set */
    uint64_t order;
};

struct loop {
    const msec *now;
    struct timer *timers;
    uint64_t order;
    struct loop_work *works[WORKS_MAX];
    size_t work_count;
};

struct loop *loop_fake(const msec *now)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop) abort();
    loop->now = now;
    return loop;
}

void loop_fake_free(struct loop *loop)
{
    while (loop->work_count) loop_fake_work(loop);
    assert(!loop->timers); /* somebody has forgotten one */
    free(loop);
}

msec loop_now(const struct loop *loop)
{
    return *loop->now;
}

/* ---- timers ---- */

struct timer *timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct timer *timer = calloc(1, sizeof *timer);
    if (!timer) abort();
    *timer = (struct timer){.loop = loop, .next = loop->timers, .fn = fn, .arg = arg};
    loop->timers = timer;
    return timer;
}

void timer_start(struct timer *timer, msec after)
{
    timer->at = *timer->loop->now + (after > 0 ? after : 0);
    timer->order = ++timer->loop->order;
}

void timer_stop(struct timer *timer)
{
    timer->at = 0;
}

void timer_free(struct timer *timer)
{
    if (!timer) return;
    struct timer **at = &timer->loop->timers;
    while (*at != timer) at = &(*at)->next;
    *at = timer->next;
    free(timer);
}

static struct timer *first(const struct loop *loop)
{
    struct timer *first = NULL;
    for (struct timer *timer = loop->timers; timer; timer = timer->next) {
        if (!timer->at) continue;
        bool sooner = !first || timer->at < first->at ||
                      (timer->at == first->at && timer->order < first->order);
        if (sooner) first = timer;
    }
    return first;
}

msec loop_fake_next(const struct loop *loop)
{
    const struct timer *timer = first(loop);
    return timer ? timer->at : 0;
}

bool loop_fake_due(struct loop *loop)
{
    struct timer *timer = first(loop);
    if (!timer || timer->at > *loop->now) return false;
    timer->at = 0;
    timer->fn(timer->arg);
    return true;
}

/* ---- work beside the loop ---- */

void loop_work(struct loop *loop, struct loop_work *work)
{
    assert(loop->work_count < WORKS_MAX);
    loop->works[loop->work_count++] = work;
}

bool loop_fake_busy(const struct loop *loop)
{
    return loop->work_count;
}

bool loop_fake_work(struct loop *loop)
{
    if (!loop->work_count) return false;
    struct loop_work *work = loop->works[0];
    loop->work_count--;
    for (size_t i = 0; i < loop->work_count; i++) loop->works[i] = loop->works[i + 1];
    work->fn(work);
    work->done(work);
    return true;
}

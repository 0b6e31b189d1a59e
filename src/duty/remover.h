/* SPDX-License-Identifier: Apache-2.0
 *
 * The remover: takes away what deleted threads have left, files first and rows after them, a little
 * at a time. What is left is in the store, so it goes on after a restart. On the loop thread.
 */
#ifndef DUTY_REMOVER_H
#define DUTY_REMOVER_H

#include "base/clock.h"
#include "base/err.h"

struct blobs;
struct loop;
struct remover;
struct store;

struct remover_options {
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    const struct clock *clock;
    /* Something could not be done and is tried again after a rest; told once until it works again. */
    void (*on_trouble)(void *arg, const char *what, enum err e, const struct fault *reason);
    void *arg;
};

/* It looks at once. */
struct remover *remover_new(const struct remover_options *options);
void remover_look(struct remover *remover); /* a thread was deleted */
void remover_stop(struct remover *remover); /* begin nothing more */
void remover_free(struct remover *remover); /* after the store was closed; NULL is fine */

#endif

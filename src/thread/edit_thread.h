/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody renames a thread of theirs, or deletes it. Use cases (change.h).
 */
#ifndef THREAD_EDIT_THREAD_H
#define THREAD_EDIT_THREAD_H

#include "store/table/interactions.h"
#include "thread/change.h"

struct rename_thread {
    struct change change;
    str thread_id, title;
};

/* ERR_NOT_FOUND. */
void rename_thread(struct rename_thread *rename);

struct delete_thread {
    struct change change;
    str thread_id;

    /* made here */
    int64_t thread;
    bool cancelled;               /* instead: a call is under way, whose end is waited for */
    bool waited;                  /* it waited for somebody, who has to hear that it is over */
    struct interaction_list open; /* what it waited for, as it was settled */
    unsigned char random[ID_RANDOM_BYTES];
    str *spools;
    size_t spool_count;
};

/* ERR_NOT_FOUND; ERR_BUSY: a call is under way, and cancelled. */
void delete_thread(struct delete_thread *delete);

#endif

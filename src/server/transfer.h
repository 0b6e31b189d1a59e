/* SPDX-License-Identifier: Apache-2.0
 *
 * Files on their way in or out: requests that wait for a disk, beside the store. When the process
 * ends nobody tells them any more that their work is done; so each stands in a list, and is told to
 * let go and to answer.
 */
#ifndef SERVER_TRANSFER_H
#define SERVER_TRANSFER_H

#include "base/def.h"

struct transfer {
    struct transfer *prev, *next;
    void (*stop)(struct transfer *transfer); /* removes it from the list, and answers */
};

struct transfers {
    struct transfer *first;
};

static inline void transfer_add(struct transfers *list, struct transfer *transfer)
{
    transfer->prev = NULL;
    transfer->next = list->first;
    if (transfer->next) transfer->next->prev = transfer;
    list->first = transfer;
}

static inline void transfer_remove(struct transfers *list, struct transfer *transfer)
{
    *(transfer->prev ? &transfer->prev->next : &list->first) = transfer->next;
    if (transfer->next) transfer->next->prev = transfer->prev;
}

static inline void transfers_stop(struct transfers *list)
{
    while (list->first) list->first->stop(list->first);
}

#endif

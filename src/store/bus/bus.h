/* SPDX-License-Identifier: Apache-2.0
 *
 * The bus: tells whoever follows a thread what was committed, and shows what is growing. It may
 * forget: facts are in the store, previews are only shown. On the loop thread.
 */
#ifndef STORE_BUS_BUS_H
#define STORE_BUS_BUS_H

#include "store/table/conversation.h"

/* A preview shows the next fact growing. It has no number and no row. */
enum preview_kind {
    PREVIEW_MESSAGE_START, /* message_id, role assistant */
    PREVIEW_TEXT,          /* message_id, delta, offset */
    PREVIEW_REASONING,     /* message_id, delta, offset */
    PREVIEW_CALL_START,    /* call_id, tool, message_id (parent), stage */
    PREVIEW_CALL_ARGS,     /* call_id, delta */
    PREVIEW_DISCARD,       /* message_id, delta = reason */
    PREVIEW_PROGRESS, /* call_id, progress, total, delta = message; the last three may be empty */
};

struct preview {
    enum preview_kind kind;
    str run_id, message_id;
    str call_id, tool, stage;
    str delta;           /* whole UTF-8 characters */
    uint64_t offset;     /* UTF-16 units before this delta */
    str progress, total; /* JSON numbers */
    msec at;
};

struct bus;

struct bus_ops {
    void (*on_facts)(void *arg, const struct fact *facts, size_t count);
    void (*on_preview)(void *arg, const struct preview *preview);
};

/* Embedded by the follower. */
struct bus_follower {
    const struct bus_ops *ops;
    void *arg;
    struct bus_follower *prev, *next; /* private */
    int64_t thread;
};

struct bus *bus_local_new(void);
void bus_free(struct bus *bus); /* no followers may be left */

/* Thread 0: the facts of every thread, and no previews. */
void bus_follow(struct bus *bus, int64_t thread, struct bus_follower *follower);
void bus_unfollow(struct bus *bus, struct bus_follower *follower); /* fine if not following */
bool bus_followed(const struct bus *bus, int64_t thread);

/* A callback may unfollow itself, and nothing else. */
void bus_facts(struct bus *bus, int64_t thread, const struct fact *facts, size_t count);
/* From inside on_facts: the thread that they are of. */
int64_t bus_telling(const struct bus *bus);
void bus_preview(struct bus *bus, int64_t thread, const struct preview *preview);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of files for the model: those that a context lists are read from storage and put into its
 * messages, pictures as pictures, texts into the text. On the loop thread; reading is beside it.
 *
 * A file that is gone, damaged or not readable is no failure: a line of the message says so. Nor is
 * storage that gives nothing for CONTEXT_FILE_MS_MAX: what it has not given by then is not readable.
 */
#ifndef AGENT_SHELL_PICTURES_H
#define AGENT_SHELL_PICTURES_H

#include "agent/core/context.h"

struct blobs;
struct loop;
struct pictures;
struct store;

struct pictures_source {
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    str owner;           /* whose files they have to be */
    struct arena *arena; /* of the context, and of what is put into it */
    struct context *context;
};

/* Is there anything to load? */
bool pictures_needed(const struct context *context);

/* Load them. One on_done follows, not from inside, unless pictures_forget comes first; then the
 * context is whole and lists none any more. An error is the store's, and the context is as it was.
 * Arena and context stay until then. */
struct pictures *pictures_load(const struct pictures_source *source,
                               void (*on_done)(void *arg, enum err e), void *arg);

/* on_done does not come any more, and nothing of the source is touched. NULL is fine; not after
 * on_done. */
void pictures_forget(struct pictures *pictures);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of one conversation, over all cuts: when the stream breaks it is opened again, behind the
 * fact that was seen last.
 */
#ifndef TERM_CHAT_STREAM_H
#define TERM_CHAT_STREAM_H

#include "term/link.h"

struct loop;
struct stream;

struct stream_ops {
    void (*on_event)(void *arg, str data);     /* JSON, borrowed */
    void (*on_open)(void *arg);                /* previews of before are void */
    void (*on_lost)(void *arg);                /* it is tried again by itself */
    void (*on_refused)(void *arg, int status); /* it is not */
    uint64_t (*seq)(void *arg);                /* the fact to go on behind */
};

struct stream *stream_new(const struct link *link, struct client *client, str thread_id,
                          const struct stream_ops *ops, void *arg);
void stream_free(
    struct stream *stream); /* before the client; NULL is fine; from its callbacks, too */

#endif

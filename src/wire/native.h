/* SPDX-License-Identifier: Apache-2.0
 *
 * The native dialect: facts and previews as server-sent events. Pure.
 *
 * A fact has two forms. Warm, for readers that saw its previews: the fact alone. Cold, for readers
 * that did not: previews made up from the fact (start, one delta with everything), then the fact;
 * so a client that only appends deltas is always right.
 */
#ifndef WIRE_NATIVE_H
#define WIRE_NATIVE_H

#include "base/buf.h"
#include "store/bus/bus.h"

void native_warm(struct buf *out, str thread_id, const struct fact *fact);
void native_cold(struct buf *out, str thread_id, const struct fact *fact);
struct json_writer;
void progress_write(struct json_writer *w, const struct preview *preview); /* its members */
void native_preview(struct buf *out, str thread_id, const struct preview *preview);

/* The cursor was no good: the client reloads history and goes on after seq. */
void native_reset(struct buf *out, str thread_id, const char *reason, int64_t seq, msec now);

/* What a fact ends that previews have shown growing: the messageId of a text.message.end or
 * reasoning.end, the toolCallId of a tool.call; empty for other facts. */
str native_ends(struct arena *arena, const struct fact *fact);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem documents (RFC 9457): {"type","title","status","detail","code","field"?}.
 */
#ifndef NET_PROBLEM_H
#define NET_PROBLEM_H

#include "base/buf.h"
#include "base/err.h"

#define PROBLEM_TYPE "application/problem+json"

/* Append the document of e; `fault` may be NULL. Bytes of a client in its texts are made harmless.
 */
void problem_write(struct buf *out, enum err e, const struct fault *fault);

/* The same with one more member: what the problem is about, already JSON. An empty name adds none.
 */
void problem_write_with(struct buf *out, enum err e, const struct fault *fault, str name, str json);

/* The text of a fault as valid UTF-8: it may quote a client, and may have been cut in the middle of a
 * character. Borrows from it, or is in `copy`. */
str problem_clean(const char *text, char *copy, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of multipart.c: what the parser says, as text that does not depend on where the bytes
 * were cut: `part "file" "a.png" image/png|bytes|end`, a line each, and at last closed, open or why it
 * was refused.
 */
#ifndef TESTS_NET_MULTIPART_TRACE_H
#define TESTS_NET_MULTIPART_TRACE_H

#include "net/multipart.h"

enum {
    TRACE_ONE_PIECE,
    TRACE_EACH_BYTE
}; /* and any other number: the second piece begins there - 1 */

/* The trace is added to `out`. */
void multipart_trace(struct buf *out, str boundary, str body, size_t cut);

#endif

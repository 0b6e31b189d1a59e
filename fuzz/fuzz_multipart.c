/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a form: behind a first line that is its Content-Type. However the rest is cut, the
 * parser must say the same: the first byte chooses a place to cut.
 */
#include "net/multipart_trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void trace(struct buf *out, str boundary, str body, size_t cut)
{
    buf_init(out, SIZE_MAX);
    multipart_trace(out, boundary, body, cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    str body = {(const char *)data + 1, size - 1}, boundary;
    str type = str_split(&body, '\n');
    if (!body.p || multipart_boundary(type, &boundary, NULL)) return 0;

    struct buf whole, bytes, cut;
    trace(&whole, boundary, body, TRACE_ONE_PIECE);
    trace(&bytes, boundary, body, TRACE_EACH_BYTE);
    trace(&cut, boundary, body, 2 + data[0] * (body.len + 1) / 256);
    if (!str_eq(buf_str(&whole), buf_str(&bytes)) || !str_eq(buf_str(&whole), buf_str(&cut)))
        abort();
    buf_done(&whole);
    buf_done(&bytes);
    buf_done(&cut);
    return 0;
}

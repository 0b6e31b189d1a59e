/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a connection of requests. However they are cut, the parser must say the same: the
 * first byte of the input seeds a third way of cutting, the second sets the largest body.
 */
#include "net/http1_trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct http1_trace *whole, str bytes, uint64_t body_bytes_max,
                    uint64_t cuts)
{
    AUTO(http1_trace_done) struct http1_trace cut;
    http1_trace_init(&cut);
    http1_trace_run(&cut, bytes, body_bytes_max, cuts);
    if (!str_eq(buf_str(&whole->text), buf_str(&cut.text)) || whole->hash != cut.hash) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    uint64_t seed = 2 + data[0], body_bytes_max = data[1];
    str bytes = {(const char *)data + 2, size - 2};

    AUTO(http1_trace_done) struct http1_trace whole;
    http1_trace_init(&whole);
    http1_trace_run(&whole, bytes, body_bytes_max, TRACE_WHOLE);
    compare(&whole, bytes, body_bytes_max, TRACE_BYTES);
    compare(&whole, bytes, body_bytes_max, seed);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The Range field of a request (RFC 9110, 14.2): which stretch of `size` bytes is wanted. Pure.
 *
 * One stretch is served: "bytes=from-to", "bytes=from-", "bytes=-last". A server may always send
 * the whole instead, and does so for what it does not understand: several ranges, other units,
 * malformed values.
 */
#ifndef NET_HTTP_RANGE_H
#define NET_HTTP_RANGE_H

#include "base/str.h"

enum range {
    RANGE_NONE, /* send the whole: 200 */
    RANGE_PART, /* send the stretch: 206 */
    RANGE_BAD,  /* nothing of it is there: 416 */
};

/* *ret_from and *ret_len are set for RANGE_PART only: then *ret_len > 0 and the stretch lies inside
 * `size`. An empty value is no field: RANGE_NONE. */
enum range http_range(str value, uint64_t size, uint64_t *ret_from, uint64_t *ret_len);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the request parser makes of some bytes, as a line of text that tests and the fuzzer compare.
 */
#ifndef TESTS_HTTP1_TRACE_H
#define TESTS_HTTP1_TRACE_H

#include "net/http1.h"

/* How the bytes are cut before they are fed; any other number is the seed of random cuts. */
enum { TRACE_WHOLE = 0, TRACE_BYTES = 1 };

struct http1_trace {
    struct buf text; /* "GET / localhost keep 0; POST /x localhost close 5; 400" */
    uint64_t hash;   /* of everything the parser said: fields, bodies, reasons */
};

void http1_trace_init(struct http1_trace *trace);
void http1_trace_done(struct http1_trace *trace);

/* Feed the bytes as one connection, all requests with the same largest body. Each request adds its
 * method, target, host ("-" if none), what becomes of the connection, and the body's length; a
 * refusal adds its status; bytes that end in the middle add "more". What stands behind a refusal or
 * behind a request that closes is not fed. A target over 40 bytes is given as "#<length>". Each
 * piece is a block of memory of its own, gone before the next one comes, so that a sanitizer sees
 * what the parser should not have kept. */
void http1_trace_run(struct http1_trace *trace, str bytes, uint64_t body_bytes_max, uint64_t cuts);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of streamed bodies: a handler of /own that takes them into a sink, and what its callers
 * expect. The sink itself checks that callbacks come in order, once, and never after the answer.
 */
#ifndef TESTS_NET_SINK_H
#define TESTS_NET_SINK_H

#include "http_kit.h"

/* Requests for it, and pieces of them. */
#define GET(path)   "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST        "POST /own HTTP/1.1\r\nHost: h\r\n"
#define LENGTH(n)   POST "Content-Length: " n "\r\n\r\n"
#define CHUNKED     POST "Transfer-Encoding: chunked\r\n\r\n"
#define EXPECT      "Expect: 100-continue\r\n"
#define HELLO_CHUNK "5\r\nhello\r\n"

enum { SINK_BYTES_MAX = 64 << 20 };

enum pausing { PAUSE_NEVER, PAUSE_INSIDE, PAUSE_EACH };

struct sink {
    struct http_request *request; /* not yet answered */
    enum pausing pausing;         /* INSIDE: and resumed at once, in on_piece */
    bool hold;                    /* do not take yet */
    bool hold_answer;             /* do not answer at the end */
    size_t answer_at;             /* not 0: answer when so many bytes have come */
    bool keep;                    /* the bytes, in `got` */
    struct buf got;
    uint64_t bytes;
    unsigned pieces, ends, requests;
    enum err end;
};

/* A kit whose /own goes to the sink, and a caller; and the end of them, when all was answered. */
void sink_setup(struct kit *kit, struct sink *sink, struct caller *caller,
                const struct http_server_options *options);
void sink_teardown(struct kit *kit, struct sink *sink, struct caller *caller);
void sink_init(struct sink *sink, struct kit *kit);

void sink_take(struct sink *sink);
void sink_answer(struct sink *sink); /* with the bytes, or with the error of the end */
void sink_resume(struct sink *sink); /* fine without a request */

/* Take an answer and check its status and body. */
void sink_expect(struct caller *caller, int status, str body);

/* The connection is still good for a request. */
void sink_expect_alive(struct caller *caller);

/* The last answer of the connection, whole, and then its end in order. */
void sink_expect_last(struct caller *caller, int status);

#endif

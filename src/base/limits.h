/* SPDX-License-Identifier: Apache-2.0
 *
 * Every fixed bound, with its reason. Bounds that an operator may move are rows of the option table
 * (app/config.c); these are their defaults or have no reason to move.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
    /* HTTP request head. Browsers send about 1 KiB; a cookie jar may add a few. */
    HTTP_TARGET_BYTES_MAX = 8 * 1024,  /* the request line's target: 414 beyond */
    HTTP_HEAD_BYTES_MAX = 16 * 1024,   /* request line and fields together: 431 beyond */
    HTTP_FIELDS_MAX = 100,             /* 431 beyond */
    HTTP_METHOD_BYTES_MAX = 32,        /* longer is no method anybody knows: 501 */
    HTTP_CHUNK_EXT_BYTES_MAX = 1024,   /* all extensions of one body */
    HTTP_CHUNK_DIGITS_MAX = 16,        /* 64 bits of chunk size */
    HTTP_TRAILER_BYTES_MAX = 4 * 1024, /* 431 beyond */

    /* HTTP connections. */
    HTTP_HEAD_MS_MAX = 10 * 1000,        /* first byte to end of head: 408 */
    HTTP_BODY_IDLE_MS_MAX = 30 * 1000,   /* without a byte of the body: 408 */
    HTTP_IDLE_MS_MAX = 75 * 1000,        /* kept alive between requests */
    HTTP_WRITE_STALL_MS_MAX = 30 * 1000, /* a reader that takes no byte is cut */
    HTTP_LINGER_MS_MAX = 2 * 1000, /* reading on after an error answer, so that no reset eats it */
    HTTP_LINGER_BYTES_MAX = 64 * 1024,
    HTTP_AHEAD_BYTES_MAX = 16 * 1024, /* pipelined bytes held while a request is answered */
    HTTP_PIPELINE_MAX = 64,           /* answers in one turn of the loop before others get theirs */

    /* JSON. */
    JSON_DEPTH_MAX = 64, /* deeper is an attack: our own documents stay under 20 */

    /* Event streams. */
    SSE_KEEPALIVE_MS = 15 * 1000,        /* proxies drop silence at 30 to 60 s */
    SSE_SEGMENT_BYTES = 64 * 1024,       /* one piece of a shared log */
    SSE_PRIVATE_BYTES_MAX = 256 * 1024,  /* catch-up bytes waiting for one reader */
    SSE_LOG_BYTES_MAX = 4 * 1024 * 1024, /* kept in memory per log; a reader behind it catches up
                                            from the store */

    /* Shutdown: open answers get this long, then connections are cut. */
    SHUTDOWN_MS_MAX = 3 * 1000,
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 request parsing, RFC 9112, strict. Pure: bytes in, head and body pieces out; no sockets.
 *
 * Resumable: feed any split of the bytes and the result is the same. Nothing is lenient: what RFC
 * 9112 lets a server refuse is refused (bare LF, obs-fold, space before the colon, doubled
 * lengths...), and a refusal is final for the connection. The parser keeps the head it has seen so
 * far in a buf that is empty, and owns no memory, between requests.
 */
#ifndef NET_HTTP1_H
#define NET_HTTP1_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

struct arena;

/* Methods we know by name; an unknown token is answered 501. */
#define HTTP_METHODS(X) \
    X(GET)              \
    X(HEAD)             \
    X(POST)             \
    X(PUT)              \
    X(PATCH)            \
    X(DELETE)           \
    X(OPTIONS)

#define HTTP_METHOD_ENUM(name) HTTP_##name,
enum http_method { HTTP_METHODS(HTTP_METHOD_ENUM) HTTP_METHOD_COUNT };
#undef HTTP_METHOD_ENUM

const char *http_method_name(enum http_method method);

struct http_field {
    str name;  /* as sent */
    str value; /* without space around it */
};

/* A parsed head. Everything borrows from the parser's buffer and lives until http1_next. */
struct http_head {
    enum http_method method;
    unsigned minor; /* HTTP/1.<minor>: 0, or 1 for anything above it */
    str target;     /* as sent */
    str path;       /* the target's path, not decoded; "*" for OPTIONS * */
    str query;      /* behind the '?', "" if none */
    str host;       /* Host, or the authority of an absolute target; "" only in HTTP/1.0 */
    size_t field_count;
    struct http_field *fields; /* owned by the parser, freed by http1_next */
    bool keep_alive;           /* version and Connection say so */
    bool chunked;
    bool expect_continue; /* the client waits for 100 before it sends its body */
    bool has_length;
    uint64_t length; /* Content-Length */
};

/* Value of the first field of that name (case does not matter), or {NULL, 0}. */
str http_head_get(const struct http_head *head, str name);

/* The same head, alive as long as the arena. */
struct http_head *http_head_copy(struct arena *arena, const struct http_head *head);

/* Does the comma-separated list of all fields `name` hold `token`, whatever its case? */
bool http_head_has_token(const struct http_head *head, str name, str token);

enum http1_event {
    HTTP1_MORE,  /* all bytes taken; feed more */
    HTTP1_HEAD,  /* the head is complete: read parser->head; then go on feeding for the body */
    HTTP1_BODY,  /* a piece of the body: parser->piece, borrowed from the input */
    HTTP1_END,   /* the request is complete; call http1_next before feeding the following one */
    HTTP1_ERROR, /* refused: parser->error; the connection cannot be used any more */
};

struct http1 {
    /* Results, valid as the events say. */
    struct http_head head;
    str piece;
    enum err error;     /* its status and code are the answer */
    const char *reason; /* constant text for a person */

    /* State. */
    uint8_t phase;      /* which part of the request the next byte belongs to */
    uint8_t step;       /* where inside it */
    uint16_t count;     /* bytes of the element at hand: method, target, name, chunk size... */
    uint16_t fields;    /* field lines begun in this section */
    uint16_t ext_bytes; /* chunk extensions of this body */
    uint16_t trailer_bytes;
    uint16_t seen;   /* which of the fields that mean something to us have come */
    struct buf line; /* the head so far */
    uint64_t left;   /* of the body or chunk */
    uint64_t room;   /* what the body may still grow by */
};

void http1_init(struct http1 *parser);
void http1_done(struct http1 *parser);

/* Get ready for the next request on the connection; frees the head's memory. After HTTP1_END, or
 * after the HTTP1_HEAD of a request that has no body. */
void http1_next(struct http1 *parser);

/* Largest body of this request, to be set on HTTP1_HEAD; none is allowed unless it is. A
 * Content-Length above it is refused at once with ERR_TOO_LARGE by the next feed, a chunked body
 * when it passes it. */
void http1_body_max(struct http1 *parser, uint64_t bytes);

/* Take bytes from the front of *input until something happened. On return *input is what was not
 * taken. Go on until HTTP1_MORE, also when *input is empty: behind HTTP1_HEAD or the last piece
 * HTTP1_END needs no byte. HTTP1_END may come with input left over: the beginning of a pipelined
 * request. Behind HTTP1_END and HTTP1_ERROR nothing is taken and the same event comes again. */
enum http1_event http1_feed(struct http1 *parser, str *input);

/* Has any byte of a request been taken since http1_next? Tells idle from a half-sent head. The
 * empty line that may stand before a request is no byte of it. */
bool http1_started(const struct http1 *parser);

/* Percent-decode a path or a query value into `out` (at least s.len bytes). ERR_BAD_REQUEST for a
 * malformed escape and for a NUL. `plus` turns '+' into a space, as in query strings. */
enum err http1_decode(str s, bool plus, char *out, size_t *ret_len) MUST_USE;

/* The decoded value of a query parameter (the first of that name), or {NULL, 0} when absent. It is
 * written to `out`. ERR_BAD_REQUEST if it is malformed, ERR_INVALID_FIELD if it is over `size`. */
enum err http1_query(str query, str name, char *out, size_t size, str *ret_value) MUST_USE;

/* Value of a cookie by exact name in a Cookie field value, or {NULL, 0}. */
str http1_cookie(str cookies, str name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the HTTP server: a server on a free loopback port, and callers with plain
 * non-blocking sockets, all driven by one loop, so a test reads top to bottom: send, WAIT_FOR what
 * must follow, look at the bytes.
 *
 * Requests are answered by their path (see http_kit.c), or by kit.handle if a test sets it. One with
 * a field `User` is counted for that user; `Alone` says that there are no others.
 */
#ifndef TESTS_NET_HTTP_KIT_H
#define TESTS_NET_HTTP_KIT_H

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/sse.h"

enum {
    KIT_LARGE_BYTES = 4 << 20,  /* several times what the sockets between us hold */
    KIT_PAGE_BYTES = 30 * 1024, /* several of them are collected into one write */
    KIT_WINDOW_BYTES = 2048,    /* the smallest receive buffer that Linux grants, doubled */
    KIT_BODY_BYTES_MAX = 64 * 1024,
    KIT_HELD_MAX = 8,
    KIT_GOT_BYTES_MAX = 96 << 20,
};

struct kit {
    struct loop *loop;
    struct listener *listener;
    struct http_server *server;
    struct timer *tick;
    msec waiting_since;
    void (*handle)(struct kit *kit, struct http_request *request);
    void (*own)(struct kit *kit, struct http_request *request); /* likewise, for /own alone */
    uint64_t own_max;  /* not 0: bodies to /own are streamed, up to so many bytes */
    uint64_t body_max; /* not 0: bodies may have so many bytes */
    bool proxied;      /* whoever calls is a proxy of ours, for the address in a field `For` */
    void *arg;         /* of the test's own handler */
    char *large;       /* KIT_LARGE_BYTES */
    struct http_request *held[KIT_HELD_MAX]; /* of /later, oldest first */
    size_t held_count;
    unsigned requests; /* given to the handler */
    unsigned answered; /* told by on_answered */
    int last_status;   /* likewise */
    bool stopped;      /* http_server_stop has finished */
};

/* Options without a handler; NULL takes the defaults with room for many connections. */
void kit_init(struct kit *kit, const struct http_server_options *options);
void kit_done(struct kit *kit);
void kit_stop(struct kit *kit); /* begin to stop; kit.stopped tells the end */

/* Turn the loop until the condition holds; the test fails after some seconds. */
#define WAIT_FOR(kit, condition) \
    for (kit_wait_begin(kit); !(condition);) kit_turn((kit), #condition)
void kit_wait_begin(struct kit *kit);
void kit_turn(struct kit *kit, const char *waiting_for);
void kit_turns(struct kit *kit, int count); /* about as many milliseconds */

/* Answer the oldest request of /later with "later". */
void kit_answer_held(struct kit *kit);
struct http_request *kit_take_held(struct kit *kit);

int kit_descriptors(void); /* how many this process has open */

void kit_answer_page(struct kit *kit, struct http_request *request);   /* KIT_PAGE_BYTES */
void kit_answer_copied(struct kit *kit, struct http_request *request); /* KIT_LARGE_BYTES */

struct caller {
    struct kit *kit;
    int fd;
    struct watch *watch;
    struct buf got; /* everything received and not yet taken */
    size_t step;    /* bytes read at a time */
    bool ended;     /* the server has ended the connection */
    bool reset;     /* and that with a reset */
};

/* Connected, and reading all that comes. A small window makes the server's socket fill up soon. */
void caller_open(struct caller *caller, struct kit *kit, bool small_window);
void caller_open_from(struct caller *caller, struct kit *kit, const char *address,
                      bool small_window);
void caller_close(struct caller *caller); /* fine after caller_close */
void caller_reset(struct caller *caller);
void caller_send(struct caller *caller, str bytes);
void caller_half_close(struct caller *caller);
void caller_pause(struct caller *caller);
void caller_resume(struct caller *caller, size_t step);

/* Ask for up to `max` pages, each when the one before was answered, without reading any: the pages
 * fill the sockets, then the server's buffer. Fewer than max: the last one had no answer. */
int caller_ask_pages(struct caller *caller, int max);

/* One answer off the front of what was received. */
struct response {
    int status;
    str head, body; /* borrowed from the caller until caller_drop, or the loop turns */
    bool chunked;
};
bool caller_has(const struct caller *caller, bool head_only); /* is there a whole one? */
struct response caller_take(struct caller *caller, bool head_only);
void caller_drop(struct caller *caller, const struct response *taken);

/* Value of a field of the answer's head, or {NULL, 0}. */
str response_field(const struct response *response, str name);

/* Undo chunked coding strictly. Appends the data of whole chunks to `out` and counts them; true
 * when the last chunk was seen. `*used` is what was taken off the front of `bytes`. */
bool unchunk(str bytes, struct buf *out, size_t *ret_chunks, size_t *used);

#endif

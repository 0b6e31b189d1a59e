/* SPDX-License-Identifier: Apache-2.0
 *
 * The load generator's own small kit: a target, connections on one epoll set, a reader of answers,
 * a histogram, and what /proc says about the server. It shares nothing with the server but
 * src/base, so that a mistake in net/ cannot hide behind the same mistake here.
 *
 * Everything is bounded: connections by the option table, time by --timeout, addresses by
 * target_parse, which takes 127.0.0.0/8 only.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <netinet/in.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "base/str.h"

enum {
    CONNS_MAX = 18000,        /* below the usual limit of 20,000 descriptors */
    PIPELINE_MAX = 256,       /* requests under way on one connection */
    PIDS_MAX = 16,            /* nginx: a master and its workers */
    OPENING_MAX = 128,        /* connections opened at once: within any listen backlog */
    READ_BYTES = 256 * 1024,  /* one read takes at most this */
    OUT_BYTES_MAX = 1 << 20,  /* unsent bytes of one connection */
    ANSWER_HEAD_MAX = 8192,   /* head of an answer */
    EVENT_BYTES_MAX = 65536,  /* one event's text */
    EVENTS_MAX = 1000 * 1000, /* events of one run */
};

/* Nanoseconds of the steady clock, and of a span. */
typedef uint64_t nsec;
#define NS_PER_MS ((nsec)1000 * 1000)
#define NS_PER_S  ((nsec)1000 * 1000 * 1000)

struct options {
    const char *url, *publish_url, *slow_url, *kind, *key;
    const char *pid; /* "12,13" */
    uint64_t conns, subs, seconds, pipeline, events, rate, size, cycles, healthy, timeout, seed,
        turns, pauses, text, least, pages, depth;
};

/* Each mode prints one JSON line and returns the exit status: 0 only if every answer was right. */
int load_http(const struct options *options);
int load_sse(const struct options *options);
int load_idle(const struct options *options);
int load_slow(const struct options *options);
int load_abort(const struct options *options);
int load_runs(const struct options *options);
int load_agui(const struct options *options);
int load_inbox(const struct options *options);

/* End the program with a message; for mistakes in the call and a server that cannot be reached. */
void die(const char *format, ...) PRINTF(1, 2) __attribute__((noreturn));

/* Where to. */
struct target {
    struct sockaddr_in address;
    char host[32]; /* "127.0.0.1:8080" */
    char path[512];
};
void target_parse(const char *url, struct target *ret_target); /* dies on anything else */

/* "GET path HTTP/1.1" with its head; with a body if it is not empty. */
void request_write(struct buf *out, const char *method, const struct target *target, str body);

/* Connections. Owners embed a peer; net calls it back. */
struct net {
    int epoll;
    nsec now; /* when the last wait or read returned */
    char *bytes;
};

struct peer {
    struct net *net;
    int fd; /* -1: closed */
    uint32_t watched;
    struct buf out; /* what the kernel did not take yet */
    void (*on_bytes)(struct peer *peer, str bytes);
    void (*on_end)(struct peer *peer, int error); /* 0: the server ended it; closed already */
};

void net_init(struct net *net);
void net_done(struct net *net);
void net_turn(struct net *net,
              nsec until); /* wait for something, at most until then, and serve it */
nsec now_ns(void);

/* Connect. `from` is the last byte of our own address 127.0.1.x, or 0 for the system's choice: more
 * addresses give more ports. receive_bytes: the size of the receive buffer, 0 = the system's. */
void peer_dial(struct net *net, struct peer *peer, const struct target *target, unsigned from,
               int receive_bytes);
void peer_send(struct peer *peer, str bytes);
void peer_hold(struct peer *peer); /* never read again; a reset is still seen */
void peer_close(struct peer *peer);
void peer_reset(struct peer *peer); /* close with a RST */

/* Reads the answers of a connection, one after another. */
enum answer_event {
    ANSWER_MORE, /* all bytes taken */
    ANSWER_HEAD, /* the head is complete */
    ANSWER_BODY, /* *ret_piece is a piece of the body */
    ANSWER_END,  /* the answer is complete; feed on for the next one */
    ANSWER_BAD,  /* not HTTP/1.1 as we read it */
};

struct answer {
    int state;
    int status;
    bool chunked;
    uint64_t left; /* of the body or the chunk; UINT64_MAX: until the connection ends */
    struct buf head;
};

void answer_init(struct answer *answer);
void answer_done(struct answer *answer);
enum answer_event answer_feed(struct answer *answer, str *input, str *ret_piece);

/* The next whole line of a piece, without its end. It is taken where it lies; only one that is cut
 * by the end of a piece is kept in `cut` until the rest has come. */
bool line_next(struct buf *cut, str *piece, str *ret_line);

/* The text of the first such member, as it stands between its quotes; name: "\"delta\":\"". */
str member_text(str json, str name);

/* A histogram of spans, exact to 1.6 percent. */
enum { HIST_SUB_BITS = 6, HIST_SLOTS = (64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS };
struct hist {
    uint64_t count;
    nsec max;
    uint64_t slots[HIST_SLOTS];
};
void hist_add(struct hist *hist, nsec span);
double hist_us(const struct hist *hist, double quantile); /* 0 when empty */

/* What /proc says, summed over the pids of a list. */
struct usage {
    double cpu_s; /* user and system */
    uint64_t rss_kib, anon_kib;
    uint64_t fds;
};
void usage_read(const char *pids,
                struct usage *ret_usage); /* all 0 for NULL; dies if one is gone */
double own_cpu_s(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop, and the only place that knows libuv: sockets, listeners, timers, signals,
 * messages from other threads, work for other threads, watched descriptors (for libcurl).
 *
 * One thread runs the loop and owns everything here; only loop_post may be called from another.
 * Callbacks do bounded work. Objects are never freed inside their own callback: sock_close and
 * timer_stop may be called there, and the memory goes after the loop has let go of it.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "base/err.h"
#include "base/str.h"

struct loop;

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* everything on it must have been closed */

void loop_run(struct loop *loop); /* until loop_stop, or nothing is left to wait for */
void loop_stop(struct loop *loop);

msec loop_now(const struct loop *loop); /* steady time, read once per turn of the loop */

/* Run task->fn on the loop thread soon. From any thread; in order for one caller. */
struct loop_task {
    struct loop_task *next;
    void (*fn)(struct loop_task *task);
};
void loop_post(struct loop *loop, struct loop_task *task);

/* Run fn(arg) at the end of this turn, before the loop waits again. Embedded; queued at most once.
 */
struct loop_defer {
    struct loop_defer *next;
    void (*fn)(struct loop_defer *defer);
    bool queued;
};
void loop_defer(struct loop *loop, struct loop_defer *defer);
void loop_defer_cancel(struct loop *loop, struct loop_defer *defer);

/* Run work->fn on a thread of libuv's pool, then work->done on the loop thread. Embedded; it must
 * stay until done is called. For what blocks or computes for long and needs nothing of the loop; fn
 * touches only what belongs to the work. It cannot be cancelled: loop_free waits for it. */
struct loop_work {
    void (*fn)(struct loop_work *work);
    void (*done)(struct loop_work *work); /* may free the work */
};
void loop_work(struct loop *loop, struct loop_work *work);

/* Timers: one shot; starting again moves it. */
struct timer;
struct timer *timer_new(struct loop *loop, void (*fn)(void *arg), void *arg);
void timer_start(struct timer *timer, msec after);
void timer_stop(struct timer *timer);
void timer_free(struct timer *timer); /* NULL is fine; also from inside fn */

/* Deadlines: any number of things that expire after the same span, at O(1) each. A deadline list
 * has one timer; entries stand in it in order of expiry because the span is fixed. */
struct deadline {
    struct deadline *prev, *next; /* NULL: not waiting */
    msec at;
};
struct deadlines {
    struct deadline head;
    struct timer *timer;
    struct loop *loop;
    msec span;
    void (*fn)(struct deadline *deadline); /* already taken off the list */
};
void deadlines_init(struct deadlines *list, struct loop *loop, msec span,
                    void (*fn)(struct deadline *deadline));
void deadlines_done(struct deadlines *list);
void deadline_set(struct deadlines *list, struct deadline *deadline); /* again = later */
void deadline_clear(struct deadline *deadline);                       /* fine if not waiting */

/* Signals. fn runs on the loop. */
enum err loop_signal(struct loop *loop, int signal, void (*fn)(void *arg, int signal), void *arg)
    MUST_USE;

/* A listener on "host:port" (port 0 = any) or on a Unix path. */
struct sock;
struct listener;
enum err listener_tcp(struct loop *loop, str host, uint16_t port,
                      void (*fn)(void *arg, struct sock *), void *arg,
                      struct listener **ret_listener, struct fault *reterr) MUST_USE;
enum err listener_unix(struct loop *loop, const char *path, void (*fn)(void *arg, struct sock *),
                       void *arg, struct listener **ret_listener, struct fault *reterr) MUST_USE;
uint16_t listener_port(const struct listener *listener);
void listener_close(struct listener *listener); /* NULL is fine */

/* A connected stream. The callee of a listener owns it and gives it callbacks before reading. */
struct sock_ops {
    void (*on_read)(void *arg, str bytes); /* borrowed until it returns */
    void (*on_end)(void *arg, bool clean); /* the peer ended (clean) or the connection broke */
    void (*on_writable)(void *arg, bool failed); /* what sock_write kept has gone, or never will */
};
void sock_setup(struct sock *sock, const struct sock_ops *ops, void *arg);
void sock_read_start(struct sock *sock);
void sock_read_stop(struct sock *sock);

/* Write what the kernel takes now, of up to SOCK_PIECES_MAX pieces. Returns the bytes taken, 0 if
 * the socket is full or a sock_write is under way, -1 if the connection is broken. */
enum { SOCK_PIECES_MAX = 16 };
ptrdiff_t sock_try(struct sock *sock, const str *pieces, size_t count);

/* Hand over bytes that stay where they are until on_writable or sock_close: the loop writes them
 * when it can. One at a time. */
void sock_write(struct sock *sock, const str *pieces, size_t count);

size_t sock_pending(const struct sock *sock); /* bytes written that the peer does not have yet */
void sock_shutdown(struct sock *sock);        /* no more from us; the peer may still send */
void sock_close(struct sock *sock);           /* no callback comes after this */
void sock_reset(struct sock *sock);           /* close and drop unsent bytes: RST */

/* "127.0.0.1" or "::1", NUL-terminated; "unix" on a Unix socket, "child" if a process
 * that has come from us is at its other end (wall.h). */
const char *sock_peer(const struct sock *sock);
bool sock_peer_loopback(const struct sock *sock); /* also true on a Unix socket */

/* Watch a descriptor that belongs to somebody else (libcurl). events: 1 readable, 2 writable. */
struct watch;
struct watch *watch_new(struct loop *loop, int fd, void (*fn)(void *arg, int events), void *arg);
void watch_set(struct watch *watch, int events);
void watch_free(struct watch *watch);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop on libuv: sockets, timers, deadlines, signals, work beside it, messages from other
 * threads.
 *
 * One turn: timers, sockets, messages from other threads, then the deferred calls, then wait.
 * Deferred calls are where a burst of appends becomes one write per reader.
 *
 * Invariants:
 * 1. A sock, timer or watch is freed only in libuv's close callback, so it may be closed anywhere.
 * 2. After sock_close no callback of that sock runs, and bytes given to sock_write are no longer
 * read.
 * 3. All reads share one buffer: on_read must take or copy what it needs before it returns.
 */
#include "net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/limits.h"
#include "base/mem.h"
#include "net/wall.h"

enum { READ_BYTES = 64 * 1024, BACKLOG = 4096 };

struct signal_watch {
    uv_signal_t uv;
    struct signal_watch *next;
    void (*fn)(void *arg, int signal);
    void *arg;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    _Atomic(struct loop_task *) posted; /* newest first */
    struct loop_defer *deferred, **deferred_tail;
    struct signal_watch *signals;
    char read_bytes[READ_BYTES];
};

struct timer {
    uv_timer_t uv;
    void (*fn)(void *arg);
    void *arg;
};

/* Not a uv_tcp_t: out of descriptors, libuv first closes every waiting caller, and once its spare
 * descriptor is lost to another thread its accept loop never ends. */
struct listener {
    uv_poll_t uv;
    struct loop *loop;
    struct timer *pause;
    void (*fn)(void *arg, struct sock *sock);
    void *arg;
    int fd;
    bool closed;
    bool is_unix;
};

struct sock {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_write_t writing;
    struct loop *loop;
    const struct sock_ops *ops;
    void *arg;
    bool closed;
    bool is_unix;
    bool below_us; /* a Unix socket of a process that has come from us */
    char peer[INET6_ADDRSTRLEN];
};

struct watch {
    uv_poll_t uv;
    void (*fn)(void *arg, int events);
    void *arg;
};

/* libuv calls that fail only when we misuse them or memory is gone. */
static void loop_must(int status)
{
    if (status == 0) return;
    fprintf(stderr, "loop: %s\n", uv_strerror(status));
    abort();
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* ---- the loop itself ---- */

static void run_posted(uv_async_t *wake)
{
    struct loop *loop = wake->data;
    struct loop_task *newest = atomic_exchange(&loop->posted, NULL), *oldest = NULL;
    while (newest) {
        struct loop_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct loop_task *task = oldest;
        oldest = task->next;
        task->fn(task); /* may free the task */
    }
}

static void run_deferred(struct loop *loop)
{
    while (loop->deferred) {
        struct loop_defer *defer = loop->deferred;
        loop->deferred = defer->next;
        if (!loop->deferred) loop->deferred_tail = &loop->deferred;
        defer->queued = false;
        defer->fn(defer);
    }
}

static void on_before_wait(uv_prepare_t *handle)
{
    run_deferred(handle->data);
}

static void on_after_wait(uv_check_t *handle)
{
    run_deferred(handle->data);
}

struct loop *loop_new(void)
{
    struct loop *loop = mem_new(sizeof *loop);
    loop->deferred_tail = &loop->deferred;
    loop_must(uv_loop_init(&loop->uv));
    loop_must(uv_async_init(&loop->uv, &loop->wake, run_posted));
    loop_must(uv_prepare_init(&loop->uv, &loop->before_wait));
    loop_must(uv_check_init(&loop->uv, &loop->after_wait));
    loop->wake.data = loop->before_wait.data = loop->after_wait.data = loop;
    loop_must(uv_prepare_start(&loop->before_wait, on_before_wait));
    loop_must(uv_check_start(&loop->after_wait, on_after_wait));
    uv_unref((uv_handle_t *)&loop->before_wait);
    uv_unref((uv_handle_t *)&loop->after_wait);
    return loop;
}

static void free_signal(uv_handle_t *handle)
{
    free(CONTAINER(handle, struct signal_watch, uv));
}

void loop_free(struct loop *loop)
{
    if (!loop) return;
    run_posted(&loop->wake); /* what came after the last turn */
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->before_wait, NULL);
    uv_close((uv_handle_t *)&loop->after_wait, NULL);
    for (struct signal_watch *s = loop->signals, *next; s; s = next) {
        next = s->next;
        uv_close((uv_handle_t *)&s->uv, free_signal);
    }
    /* Lets work end and the close callbacks run; a loop_stop that came late ends one turn of it. */
    while (uv_run(&loop->uv, UV_RUN_DEFAULT)) continue;
    loop_must(uv_loop_close(&loop->uv));
    free(loop);
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

msec loop_now(const struct loop *loop)
{
    return (msec)uv_now(&loop->uv);
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    struct loop_task *newest = atomic_load(&loop->posted);
    do {
        task->next = newest;
    } while (!atomic_compare_exchange_weak(&loop->posted, &newest, task));
    loop_must(uv_async_send(&loop->wake));
}

void loop_defer(struct loop *loop, struct loop_defer *defer)
{
    if (defer->queued) return;
    defer->queued = true;
    defer->next = NULL;
    *loop->deferred_tail = defer;
    loop->deferred_tail = &defer->next;
}

void loop_defer_cancel(struct loop *loop, struct loop_defer *defer)
{
    if (!defer->queued) return;
    struct loop_defer **link = &loop->deferred;
    while (*link != defer) link = &(*link)->next;
    *link = defer->next;
    if (!*link) loop->deferred_tail = link;
    defer->queued = false;
}

/* ---- work beside the loop ---- */

struct running_work {
    uv_work_t uv;
    struct loop_work *work;
};

static void on_work(uv_work_t *request)
{
    struct loop_work *work = CONTAINER(request, struct running_work, uv)->work;
    work->fn(work);
}

static void on_work_done(uv_work_t *request, int status)
{
    (void)status; /* we cancel none */
    struct running_work *running = CONTAINER(request, struct running_work, uv);
    struct loop_work *work = running->work;
    free(running);
    work->done(work);
}

void loop_work(struct loop *loop, struct loop_work *work)
{
    struct running_work *running = mem_new(sizeof *running);
    running->work = work;
    loop_must(uv_queue_work(&loop->uv, &running->uv, on_work, on_work_done));
}

/* ---- timers and deadlines ---- */

static void on_timer(uv_timer_t *handle)
{
    struct timer *timer = CONTAINER(handle, struct timer, uv);
    timer->fn(timer->arg);
}

struct timer *timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct timer *timer = mem_new(sizeof *timer);
    timer->fn = fn;
    timer->arg = arg;
    loop_must(uv_timer_init(&loop->uv, &timer->uv));
    return timer;
}

void timer_start(struct timer *timer, msec after)
{
    uv_update_time(timer->uv.loop); /* counted from now, also at the end of a long turn */
    loop_must(uv_timer_start(&timer->uv, on_timer, after > 0 ? (uint64_t)after : 0, 0));
}

void timer_stop(struct timer *timer)
{
    loop_must(uv_timer_stop(&timer->uv));
}

void timer_free(struct timer *timer)
{
    if (timer) uv_close((uv_handle_t *)&timer->uv, free_handle);
}

static void on_deadlines(void *arg)
{
    struct deadlines *list = arg;
    msec now = loop_now(list->loop);
    while (list->head.next != &list->head && list->head.next->at <= now) {
        struct deadline *first = list->head.next;
        deadline_clear(first);
        list->fn(first);
    }
    if (list->head.next != &list->head) timer_start(list->timer, list->head.next->at - now);
}

void deadlines_init(struct deadlines *list, struct loop *loop, msec span,
                    void (*fn)(struct deadline *deadline))
{
    *list = (struct deadlines){.loop = loop, .span = span, .fn = fn};
    list->head.prev = list->head.next = &list->head;
    list->timer = timer_new(loop, on_deadlines, list);
}

void deadlines_done(struct deadlines *list)
{
    assert(list->head.next == &list->head);
    timer_free(list->timer);
    list->timer = NULL;
}

void deadline_set(struct deadlines *list, struct deadline *deadline)
{
    deadline_clear(deadline);
    bool first = list->head.next == &list->head;
    deadline->at = loop_now(list->loop) + list->span;
    deadline->prev = list->head.prev;
    deadline->next = &list->head;
    list->head.prev->next = deadline;
    list->head.prev = deadline;
    /* Otherwise the timer is already set for an earlier moment, and moves itself on. */
    if (first) timer_start(list->timer, list->span);
}

void deadline_clear(struct deadline *deadline)
{
    if (!deadline->next) return;
    deadline->prev->next = deadline->next;
    deadline->next->prev = deadline->prev;
    deadline->prev = deadline->next = NULL;
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *handle, int signal)
{
    struct signal_watch *s = CONTAINER(handle, struct signal_watch, uv);
    s->fn(s->arg, signal);
}

enum err loop_signal(struct loop *loop, int signal, void (*fn)(void *arg, int signal), void *arg)
{
    struct signal_watch *s = mem_new(sizeof *s);
    s->fn = fn;
    s->arg = arg;
    loop_must(uv_signal_init(&loop->uv, &s->uv));
    s->next = loop->signals;
    loop->signals = s;
    uv_unref((uv_handle_t *)&s->uv);
    return uv_signal_start(&s->uv, on_signal, signal) ? ERR_IO : OK;
}

/* ---- listeners ---- */

static void give_sock(struct listener *listener, int fd)
{
    struct sock *sock = mem_new(sizeof *sock);
    sock->loop = listener->loop;
    sock->is_unix = listener->is_unix;
    sock->below_us = sock->is_unix && wall_peer_below_us(fd);
    loop_must(sock->is_unix ? uv_pipe_init(&listener->loop->uv, &sock->uv.pipe, 0)
                            : uv_tcp_init(&listener->loop->uv, &sock->uv.tcp));
    if (sock->is_unix ? uv_pipe_open(&sock->uv.pipe, fd) : uv_tcp_open(&sock->uv.tcp, fd)) {
        close(fd);
        sock_close(sock);
        return;
    }
    listener->fn(listener->arg, sock);
}

/* Out of descriptors or memory: callers wait in the kernel's queue until there is room again. */
static void pause_accepting(struct listener *listener)
{
    loop_must(uv_poll_stop(&listener->uv));
    timer_start(listener->pause, LOOP_ACCEPT_PAUSE_MS);
}

static void on_acceptable(uv_poll_t *handle, int status, int events)
{
    (void)events;
    struct listener *listener = CONTAINER(handle, struct listener, uv);
    if (status < 0) {
        pause_accepting(listener);
        return;
    }
    for (int i = 0; i < LOOP_ACCEPTS_MAX && !listener->closed; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            give_sock(listener, fd);
            continue;
        }
        if (errno == EAGAIN) return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(listener);
            return;
        }
        /* This caller has gone already; the next one may not have. */
    }
}

static void start_accepting(void *arg)
{
    struct listener *listener = arg;
    loop_must(uv_poll_start(&listener->uv, UV_READABLE, on_acceptable));
}

static void free_listener(uv_handle_t *handle)
{
    free(CONTAINER(handle, struct listener, uv));
}

void listener_close(struct listener *listener)
{
    if (!listener) return;
    listener->closed = true;
    timer_free(listener->pause);
    uv_close((uv_handle_t *)&listener->uv, free_listener);
    close(listener->fd);
}

/* Takes over fd, which listens. */
static struct listener *listener_new(struct loop *loop, int fd, bool is_unix,
                                     void (*fn)(void *arg, struct sock *), void *arg)
{
    struct listener *listener = mem_new(sizeof *listener);
    listener->loop = loop;
    listener->fd = fd;
    listener->is_unix = is_unix;
    listener->fn = fn;
    listener->arg = arg;
    listener->pause = timer_new(loop, start_accepting, listener);
    loop_must(uv_poll_init(&loop->uv, &listener->uv, fd));
    start_accepting(listener);
    return listener;
}

/* Close fd and return -1; errno stays that of the call that failed. */
static int give_up(int fd)
{
    int saved = errno;
    if (fd >= 0) close(fd);
    errno = saved;
    return -1;
}

/* Accepted sockets inherit these options, one system call instead of one for each. Without a bound
 * on unsent bytes the kernel takes megabytes for a reader that does not read, and thousands of
 * those starve the rest. */
static int bind_tcp(const struct addrinfo *address)
{
    int on = 1, off = 0, unsent = SOCK_UNSENT_BYTES_MAX;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent))
        return give_up(fd);
    if (address->ai_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off))
        return give_up(fd);
    if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, BACKLOG)) return give_up(fd);
    return fd;
}

enum err listener_tcp(struct loop *loop, str host, uint16_t port,
                      void (*fn)(void *arg, struct sock *), void *arg,
                      struct listener **ret_listener, struct fault *reterr)
{
    char name[256], service[8];
    snprintf(name, sizeof name, "%.*s", STR_ARG(host));
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *addresses = NULL;
    int failed = getaddrinfo(name, service, &hints, &addresses);
    if (failed) return fault(reterr, ERR_IO, "cannot listen on %s: %s", name, gai_strerror(failed));

    int fd = bind_tcp(addresses);
    freeaddrinfo(addresses);
    if (fd < 0)
        return fault(reterr, ERR_IO, "cannot listen on %s port %u: %s", name, port,
                     strerror(errno));
    *ret_listener = listener_new(loop, fd, false, fn, arg);
    return OK;
}

/* A Unix address holds 107 bytes of path; through the folder's descriptor any path fits. */
static int bind_unix(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 2,
             slash ? path : "./");
    int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0) return -1;

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int len = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder_fd,
                       slash ? slash + 1 : path);
    if (len >= (int)sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return give_up(folder_fd);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(path); /* left by a process that was killed; the data folder's lock says it is ours */
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || chmod(path, 0600) ||
        listen(fd, BACKLOG))
        fd = give_up(fd);
    give_up(folder_fd);
    return fd;
}

enum err listener_unix(struct loop *loop, const char *path, void (*fn)(void *arg, struct sock *),
                       void *arg, struct listener **ret_listener, struct fault *reterr)
{
    int fd = bind_unix(path);
    if (fd < 0) return fault(reterr, ERR_IO, "cannot listen on %s: %s", path, strerror(errno));

    *ret_listener = listener_new(loop, fd, true, fn, arg);
    return OK;
}

uint16_t listener_port(const struct listener *listener)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {0};
    socklen_t len = sizeof address;
    if (listener->is_unix || getsockname(listener->fd, &address.any, &len)) return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
}

/* ---- connected sockets ---- */

static void free_sock(uv_handle_t *handle)
{
    free(CONTAINER(handle, struct sock, uv));
}

void sock_setup(struct sock *sock, const struct sock_ops *ops, void *arg)
{
    sock->ops = ops;
    sock->arg = arg;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct loop *loop = CONTAINER(handle, struct sock, uv)->loop;
    *buf = uv_buf_init(loop->read_bytes, READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct sock *sock = CONTAINER(stream, struct sock, uv);
    if (count > 0) sock->ops->on_read(sock->arg, (str){buf->base, (size_t)count});
    if (count < 0) {
        uv_read_stop(stream);
        sock->ops->on_end(sock->arg, count == UV_EOF);
    }
}

void sock_read_start(struct sock *sock)
{
    int status = uv_read_start(&sock->uv.stream, on_alloc, on_read);
    assert(status == 0 || status == UV_EALREADY || status == UV_ENOTCONN);
}

void sock_read_stop(struct sock *sock)
{
    uv_read_stop(&sock->uv.stream);
}

static unsigned to_bufs(const str *pieces, size_t count, uv_buf_t bufs[static SOCK_PIECES_MAX])
{
    assert(count <= SOCK_PIECES_MAX);
    unsigned used = 0;
    for (size_t i = 0; i < count; i++)
        if (pieces[i].len)
            bufs[used++] = (uv_buf_t){.base = (char *)(uintptr_t)pieces[i].p, .len = pieces[i].len};
    return used;
}

ptrdiff_t sock_try(struct sock *sock, const str *pieces, size_t count)
{
    uv_buf_t bufs[SOCK_PIECES_MAX];
    unsigned used = to_bufs(pieces, count, bufs);
    if (!used) return 0;
    int taken = uv_try_write(&sock->uv.stream, bufs, used);
    if (taken >= 0) return taken;
    return taken == UV_EAGAIN ? 0 : -1;
}

static void on_written(uv_write_t *request, int status)
{
    struct sock *sock = CONTAINER(request, struct sock, writing);
    if (!sock->closed) sock->ops->on_writable(sock->arg, status < 0);
}

void sock_write(struct sock *sock, const str *pieces, size_t count)
{
    uv_buf_t bufs[SOCK_PIECES_MAX];
    unsigned used = to_bufs(pieces, count, bufs);
    loop_must(uv_write(&sock->writing, &sock->uv.stream, bufs, used, on_written));
}

size_t sock_pending(const struct sock *sock)
{
    size_t queued = uv_stream_get_write_queue_size(&sock->uv.stream);
    uv_os_fd_t fd;
    int in_kernel = 0;
    if (sock->is_unix || uv_fileno(&sock->uv.handle, &fd) || ioctl(fd, SIOCOUTQ, &in_kernel))
        return queued;
    return queued + (size_t)in_kernel;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    (void)status; /* the peer may be gone; the reading side finds out */
    free(request);
}

void sock_shutdown(struct sock *sock)
{
    uv_shutdown_t *request = mem_new(sizeof *request);
    if (uv_shutdown(request, &sock->uv.stream, on_shutdown))
        free(request); /* no longer connected */
}

void sock_close(struct sock *sock)
{
    if (sock->closed) return;
    sock->closed = true;
    uv_close(&sock->uv.handle, free_sock);
}

void sock_reset(struct sock *sock)
{
    if (sock->closed) return;
    if (sock->is_unix || uv_tcp_close_reset(&sock->uv.tcp, free_sock)) {
        sock_close(sock); /* a shutdown is under way: libuv cannot reset it any more */
        return;
    }
    sock->closed = true;
}

const char *sock_peer(const struct sock *sock)
{
    if (sock->is_unix) return sock->below_us ? "child" : "unix";
    if (sock->peer[0]) return sock->peer;

    struct sock *known = (struct sock *)(uintptr_t)sock; /* asked for once, then remembered */
    struct sockaddr_storage address;
    int len = sizeof address;
    if (uv_tcp_getpeername(&sock->uv.tcp, (struct sockaddr *)&address, &len)) return "gone";
    uv_ip_name((struct sockaddr *)&address, known->peer, sizeof known->peer);
    static const char mapped[] = "::ffff:";
    if (strncmp(known->peer, mapped, sizeof mapped - 1) == 0 && strchr(known->peer, '.'))
        memmove(known->peer, known->peer + sizeof mapped - 1,
                strlen(known->peer) - (sizeof mapped - 1) + 1);
    return known->peer;
}

bool sock_peer_loopback(const struct sock *sock)
{
    const char *peer = sock_peer(sock);
    return sock->is_unix || strncmp(peer, "127.", 4) == 0 || strcmp(peer, "::1") == 0;
}

/* ---- descriptors of others ---- */

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct watch *watch = CONTAINER(handle, struct watch, uv);
    if (status < 0)
        events = UV_READABLE | UV_WRITABLE; /* their owner meets the error when it tries */
    watch->fn(watch->arg, (events & UV_READABLE ? 1 : 0) | (events & UV_WRITABLE ? 2 : 0));
}

struct watch *watch_new(struct loop *loop, int fd, void (*fn)(void *arg, int events), void *arg)
{
    struct watch *watch = mem_new(sizeof *watch);
    watch->fn = fn;
    watch->arg = arg;
    loop_must(uv_poll_init(&loop->uv, &watch->uv, fd));
    return watch;
}

void watch_set(struct watch *watch, int events)
{
    int wanted = (events & 1 ? UV_READABLE : 0) | (events & 2 ? UV_WRITABLE : 0);
    loop_must(wanted ? uv_poll_start(&watch->uv, wanted, on_poll) : uv_poll_stop(&watch->uv));
}

void watch_free(struct watch *watch)
{
    if (watch) uv_close((uv_handle_t *)&watch->uv, free_handle);
}

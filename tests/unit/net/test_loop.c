/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop against plain blocking sockets in a thread (`struct peer`), which acts when told to and
 * reports what it saw. Every wait is bounded: the peer's by PATIENCE_S, the loop's by a guard
 * timer.
 */
#include "net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { PATIENCE_S = 10 };

static void on_guard(void *arg)
{
    (void)arg;
    fail_msg("the loop waited too long");
}

/* Run until loop_stop. */
static void run(struct loop *loop)
{
    struct timer *guard = timer_new(loop, on_guard, NULL);
    timer_start(guard, 2 * PATIENCE_S * 1000);
    loop_run(loop);
    timer_free(guard);
}

/* ---- messages from other threads ---- */

enum { SENDERS = 4, POSTS = 2000 };

struct sender;

struct post {
    struct loop_task task;
    struct sender *sender;
    int number;
};

struct sender {
    struct loop *loop;
    struct post posts[POSTS];
    int next;
    int *left; /* over all senders */
};

static void on_post(struct loop_task *task)
{
    struct post *post = CONTAINER(task, struct post, task);
    struct sender *sender = post->sender;
    assert_int_equal(post->number, sender->next);
    sender->next++;
    if (--*sender->left == 0) loop_stop(sender->loop);
}

static void *send_posts(void *arg)
{
    struct sender *sender = arg;
    for (int i = 0; i < POSTS; i++) {
        sender->posts[i] = (struct post){.task = {.fn = on_post}, .sender = sender, .number = i};
        loop_post(sender->loop, &sender->posts[i].task);
    }
    return NULL;
}

static void posting(void **state)
{
    (void)state;
    static struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    struct loop *loop = loop_new();
    int left = SENDERS * POSTS;
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.loop = loop, .left = &left};
        assert_int_equal(pthread_create(&threads[i], NULL, send_posts, &senders[i]), 0);
    }
    run(loop);
    for (size_t i = 0; i < SENDERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(left, 0);
    loop_free(loop);
}

/* ---- work beside the loop ---- */

enum { WORKS = 50 };

struct beside {
    struct loop_work work;
    struct loop *loop;
    pthread_t home, away;
    int *left;
    int value;
};

static void work_away(struct loop_work *work)
{
    struct beside *beside = CONTAINER(work, struct beside, work);
    beside->away = pthread_self();
    beside->value *= 2;
}

static void work_home(struct loop_work *work)
{
    struct beside *beside = CONTAINER(work, struct beside, work);
    assert_true(pthread_equal(beside->home, pthread_self()));
    assert_false(pthread_equal(beside->home, beside->away));
    if (--*beside->left == 0) loop_stop(beside->loop);
}

static void begin_works(struct loop *loop, struct beside works[static WORKS], int *left)
{
    for (int i = 0; i < WORKS; i++) {
        works[i] = (struct beside){.work = {work_away, work_home},
                                   .loop = loop,
                                   .home = pthread_self(),
                                   .left = left,
                                   .value = i};
        loop_work(loop, &works[i].work);
    }
}

static void working(void **state)
{
    (void)state;
    struct beside works[WORKS];
    int left = WORKS;
    struct loop *loop = loop_new();
    begin_works(loop, works, &left);
    run(loop);
    assert_int_equal(left, 0);
    for (int i = 0; i < WORKS; i++) assert_int_equal(works[i].value, 2 * i);

    left = WORKS + 1;
    begin_works(loop, works, &left);
    loop_free(loop); /* waits for them */
    assert_int_equal(left, 1);
}

/* ---- deferred calls, timers, deadlines: each appends its letter to a trace ---- */

struct trace {
    struct loop *loop;
    char text[32];
    size_t len;
    size_t stop_at; /* letters */
};

static void trace_add(struct trace *trace, char letter)
{
    assert_true(trace->len < sizeof trace->text - 1);
    trace->text[trace->len++] = letter;
    if (trace->len == trace->stop_at) loop_stop(trace->loop);
}

struct letter {
    struct trace *trace;
    char letter;
    struct loop_defer defer;
    struct deadline deadline;
    struct timer *timer;
    struct letter *also; /* defer this one too, or set its deadline again */
    struct deadlines *list;
};

static void on_defer(struct loop_defer *defer)
{
    struct letter *letter = CONTAINER(defer, struct letter, defer);
    if (letter->also) loop_defer(letter->trace->loop, &letter->also->defer);
    trace_add(letter->trace, letter->letter);
}

static void letters_init(struct letter *letters, size_t count, struct trace *trace)
{
    for (size_t i = 0; i < count; i++)
        letters[i] =
            (struct letter){.trace = trace, .letter = (char)('a' + i), .defer = {.fn = on_defer}};
}

static void deferring(void **state)
{
    (void)state;
    static const struct {
        const char *script; /* small letter: defer it; capital: cancel it */
        const char *expected;
    } rows[] = {
        {"abc", "abc"},   {"aab", "ab"}, {"abcB", "ac"}, {"abcC", "ab"},       {"abcCd", "abd"},
        {"abcAa", "bca"}, {"aAb", "b"},  {"abBAc", "c"}, {"abcABCcba", "cba"}, {"Aa", "a"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct trace trace = {.loop = loop_new(), .stop_at = strlen(rows[i].expected)};
        struct letter letters[4];
        letters_init(letters, COUNT(letters), &trace);
        for (const char *c = rows[i].script; *c; c++) {
            struct loop_defer *defer = &letters[(*c | 0x20) - 'a'].defer;
            if (*c >= 'a')
                loop_defer(trace.loop, defer);
            else
                loop_defer_cancel(trace.loop, defer);
        }
        run(trace.loop);
        assert_string_equal(trace.text, rows[i].expected);
        loop_free(trace.loop);
    }
}

/* What a deferred call defers runs before the loop waits again. */
static void deferring_inside(void **state)
{
    (void)state;
    struct trace trace = {.loop = loop_new(), .stop_at = 3};
    struct letter letters[3];
    letters_init(letters, COUNT(letters), &trace);
    letters[0].also = &letters[2];
    loop_defer(trace.loop, &letters[0].defer);
    loop_defer(trace.loop, &letters[1].defer);
    run(trace.loop);
    assert_string_equal(trace.text, "abc");
    loop_free(trace.loop);
}

static void on_letter_timer(void *arg)
{
    struct letter *letter = arg;
    timer_free(TAKE(letter->timer)); /* inside its own callback */
    trace_add(letter->trace, letter->letter);
}

static void timers(void **state)
{
    (void)state;
    struct trace trace = {.loop = loop_new(), .stop_at = 3};
    struct letter letters[4];
    letters_init(letters, COUNT(letters), &trace);
    for (size_t i = 0; i < COUNT(letters); i++)
        letters[i].timer = timer_new(trace.loop, on_letter_timer, &letters[i]);
    timer_start(letters[0].timer, 5);
    timer_start(letters[1].timer, 10);
    timer_start(letters[2].timer, 0);
    timer_start(letters[3].timer, 1);
    timer_start(letters[0].timer, 20); /* moved */
    timer_stop(letters[3].timer);
    msec before = loop_now(trace.loop);
    run(trace.loop);
    assert_string_equal(trace.text, "cba");
    assert_true(loop_now(trace.loop) - before >= 20);
    timer_free(letters[3].timer);
    timer_free(NULL);
    loop_free(trace.loop);
}

static void on_letter_deadline(struct deadline *deadline)
{
    struct letter *letter = CONTAINER(deadline, struct letter, deadline);
    assert_null(deadline->next);
    if (letter->also) deadline_set(letter->list, &TAKE(letter->also)->deadline);
    trace_add(letter->trace, letter->letter);
}

/* a b c d set; b cleared; a set again, so behind d; c sets b when it expires. */
static void on_change(void *arg)
{
    struct letter *letters = arg;
    deadline_clear(&letters[1].deadline);
    deadline_clear(&letters[1].deadline);
    deadline_set(letters[0].list, &letters[0].deadline);
}

static void deadlines(void **state)
{
    (void)state;
    enum { SPAN = 40 };
    struct trace trace = {.loop = loop_new(), .stop_at = 4};
    struct deadlines list;
    struct letter letters[4];
    letters_init(letters, COUNT(letters), &trace);
    deadlines_init(&list, trace.loop, SPAN, on_letter_deadline);
    /* Started first, it is due first, however long this thread is kept from running. */
    struct timer *change = timer_new(trace.loop, on_change, letters);
    timer_start(change, SPAN / 4);
    msec before = loop_now(trace.loop);
    for (size_t i = 0; i < COUNT(letters); i++) {
        letters[i].list = &list;
        deadline_set(&list, &letters[i].deadline);
    }
    letters[2].also = &letters[1];
    run(trace.loop);
    assert_string_equal(trace.text, "cdab");
    assert_true(loop_now(trace.loop) - before >= 2 * SPAN);
    timer_free(change);
    deadlines_done(&list);
    loop_free(trace.loop);
}

static void on_signal(void *arg, int signal)
{
    assert_int_equal(signal, SIGUSR1);
    trace_add(arg, 's');
}

static void on_raise(struct loop_defer *defer)
{
    (void)defer;
    raise(SIGUSR1);
}

static void signals(void **state)
{
    (void)state;
    struct trace trace = {.loop = loop_new(), .stop_at = 1};
    struct loop_defer defer = {.fn = on_raise};
    assert_int_equal(loop_signal(trace.loop, SIGUSR1, on_signal, &trace), OK);
    loop_defer(trace.loop, &defer);
    run(trace.loop);
    assert_string_equal(trace.text, "s");
    loop_free(trace.loop);
}

/* ---- sockets: a peer in a thread, and what our side does with it ---- */

struct peer {
    struct sockaddr_storage address;
    socklen_t len;
    void (*act)(struct peer *peer, int fd);
    pthread_t thread;
    sem_t go; /* posted by the loop's side when the peer may go on */
    /* To be read after peer_join. */
    size_t received;
    bool ended, reset;
};

/* Read until the end; a reset counts as one too. */
static void peer_drain(struct peer *peer, int fd)
{
    char bytes[64 * 1024];
    ssize_t count;
    while ((count = recv(fd, bytes, sizeof bytes, 0)) > 0) peer->received += (size_t)count;
    peer->ended = count == 0;
    peer->reset = count < 0 && errno == ECONNRESET;
}

static void peer_wait(struct peer *peer)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (sem_timedwait(&peer->go, &until) && errno == EINTR) {
    }
}

static void *peer_run(void *arg)
{
    struct peer *peer = arg;
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(peer->address.ss_family, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&peer->address, peer->len) == 0) peer->act(peer, fd);
    close(fd);
    return NULL;
}

static void peer_start(struct peer *peer, void (*act)(struct peer *peer, int fd))
{
    peer->act = act;
    sem_init(&peer->go, 0, 0);
    assert_int_equal(pthread_create(&peer->thread, NULL, peer_run, peer), 0);
}

static void peer_join(struct peer *peer)
{
    pthread_join(peer->thread, NULL);
    sem_destroy(&peer->go);
}

enum { LARGE = 8 * 1024 * 1024 };

/* Our side of one connection. */
struct side {
    struct loop *loop;
    struct listener *listener;
    struct sock *sock;
    struct peer peer;
    const struct sock_ops *ops;
    void (*begin)(struct side *side); /* the peer is connected */
    char read[64];
    size_t read_len;
    int ends, writables;
    bool clean, failed;
    char name[64];
    bool loopback;
    char *bytes; /* LARGE of them */
    size_t written;
};

static void side_accept(void *arg, struct sock *sock)
{
    struct side *side = arg;
    assert_null(side->sock);
    side->sock = sock;
    snprintf(side->name, sizeof side->name, "%s", sock_peer(sock));
    side->loopback = sock_peer_loopback(sock);
    sock_setup(sock, side->ops, side);
    side->begin(side);
}

static void side_end(struct side *side)
{
    sock_close(side->sock);
    sock_close(side->sock); /* again does nothing; the memory goes with the next turn */
    listener_close(TAKE(side->listener));
    loop_stop(side->loop);
}

static void side_read(void *arg, str bytes)
{
    struct side *side = arg;
    assert_true(side->read_len + bytes.len <= sizeof side->read);
    memcpy(side->read + side->read_len, bytes.p, bytes.len);
    side->read_len += bytes.len;
}

static void side_on_end(void *arg, bool clean)
{
    struct side *side = arg;
    side->ends++;
    side->clean = clean;
    side_end(side);
}

static void side_on_writable(void *arg, bool failed)
{
    struct side *side = arg;
    side->writables++;
    side->failed = failed;
    side_end(side);
}

static const struct sock_ops side_ops = {side_read, side_on_end, side_on_writable};

static void side_init(struct side *side)
{
    *side = (struct side){.loop = loop_new(), .ops = &side_ops};
    side->bytes = calloc(1, LARGE);
    assert_non_null(side->bytes);
}

static void side_done(struct side *side)
{
    peer_join(&side->peer);
    listener_close(side->listener);
    loop_free(side->loop);
    free(side->bytes);
}

static void side_listen(struct side *side, const char *host)
{
    struct fault reason;
    assert_int_equal(
        listener_tcp(side->loop, str_c(host), 0, side_accept, side, &side->listener, &reason), OK);
    uint16_t port = listener_port(side->listener);
    assert_int_not_equal(port, 0);
    if (strchr(host, ':')) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&side->peer.address;
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET6, "::1", &v6->sin6_addr), 1);
        side->peer.len = sizeof *v6;
    } else {
        struct sockaddr_in *v4 = (struct sockaddr_in *)&side->peer.address;
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &v4->sin_addr), 1);
        side->peer.len = sizeof *v4;
    }
}

static void begin_reading(struct side *side)
{
    sock_read_start(side->sock);
}

/* ---- echo ---- */

static void echo_read(void *arg, str bytes)
{
    struct side *side = arg;
    side_read(arg, bytes);
    str pieces[] = {STR("<"), STR_EMPTY, bytes, STR(">")};
    assert_int_equal(sock_try(side->sock, pieces, COUNT(pieces)), bytes.len + 2);
}

static void peer_talk(struct peer *peer, int fd)
{
    char answer[3];
    if (send(fd, "x", 1, 0) == 1 && recv(fd, answer, 3, MSG_WAITALL) == 3 &&
        memcmp(answer, "<x>", 3) == 0)
        peer->received = 3;
}

static const struct sock_ops echo_ops = {echo_read, side_on_end, side_on_writable};

static void echo(void **state)
{
    (void)state;
    static const struct {
        const char *host, *peer;
    } rows[] = {{"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct side side;
        side_init(&side);
        side.ops = &echo_ops;
        side.begin = begin_reading;
        side_listen(&side, rows[i].host);
        peer_start(&side.peer, peer_talk);
        run(side.loop);
        assert_int_equal(side.ends, 1);
        assert_true(side.clean);
        assert_true(side.loopback);
        assert_string_equal(side.name, rows[i].peer);
        side_done(&side);
        assert_int_equal(side.peer.received, 3);
    }
}

/* A dual-stack listener sees an IPv4 caller by its plain name. */
static void mapped_peer(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.ops = &echo_ops;
    side.begin = begin_reading;
    side_listen(&side, "::");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(listener_port(side.listener))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&side.peer.address, &address, sizeof address);
    side.peer.len = sizeof address;
    peer_start(&side.peer, peer_talk);
    run(side.loop);
    assert_string_equal(side.name, "127.0.0.1");
    assert_true(side.loopback);
    side_done(&side);
    assert_int_equal(side.peer.received, 3);
}

static void unix_listener(void **state)
{
    (void)state;
    static const char *const folders[] = {
        "short",
        "long-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-"
        "0123456789-0123456789-0123456789-0123456789-0123456789"};
    for (size_t i = 0; i < COUNT(folders); i++) {
        char base[] = "/tmp/fermata-loop-XXXXXX", folder[200], path[220];
        assert_non_null(mkdtemp(base));
        snprintf(folder, sizeof folder, "%s/%s", base, folders[i]);
        snprintf(path, sizeof path, "%s/sock", folder);
        assert_return_code(mkdir(folder, 0700), errno);
        struct side side;
        struct fault reason;
        side_init(&side);
        side.ops = &echo_ops;
        side.begin = begin_reading;
        /* Twice: a socket left behind by a process that was killed is replaced. */
        for (int n = 0; n < 2; n++) {
            listener_close(side.listener);
            assert_int_equal(
                listener_unix(side.loop, path, side_accept, &side, &side.listener, &reason), OK);
        }
        assert_int_equal(listener_port(side.listener), 0);
        struct stat info;
        assert_return_code(stat(path, &info), errno);
        assert_int_equal(info.st_mode & 0777, 0600);

        int folder_fd = open(folder, O_PATH | O_DIRECTORY);
        struct sockaddr_un *address = (struct sockaddr_un *)&side.peer.address;
        address->sun_family = AF_UNIX;
        snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/sock", folder_fd);
        side.peer.len = sizeof *address;
        peer_start(&side.peer, peer_talk);
        run(side.loop);
        assert_string_equal(side.name, "unix");
        assert_true(side.loopback);
        side_done(&side);
        assert_int_equal(side.peer.received, 3);
        close(folder_fd);
        unlink(path);
        rmdir(folder);
        rmdir(base);
    }
}

static void listener_failures(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct listener *first = NULL, *second = NULL;
    struct fault reason;
    assert_int_equal(listener_tcp(loop, STR("127.0.0.1"), 0, side_accept, NULL, &first, &reason),
                     OK);
    assert_int_equal(listener_tcp(loop, STR("127.0.0.1"), listener_port(first), side_accept, NULL,
                                  &second, &reason),
                     ERR_IO);
    assert_non_null(strstr(reason.text, "cannot listen on 127.0.0.1 port "));
    assert_int_equal(listener_tcp(loop, STR("256.1.1.1.1"), 0, side_accept, NULL, &second, &reason),
                     ERR_IO);
    assert_int_equal(listener_unix(loop, "/nonexistent/folder/sock", side_accept, NULL, &second,
                                   &reason),
                     ERR_IO);
    assert_non_null(strstr(reason.text, "/nonexistent/folder/sock"));
    char path[140] = "/tmp/";
    memset(path + 5, 'x', sizeof path - 6); /* a file name that fits no address */
    assert_int_equal(listener_unix(loop, path, side_accept, NULL, &second, &reason), ERR_IO);
    assert_non_null(strstr(reason.text, strerror(ENAMETOOLONG)));
    assert_null(second);
    listener_close(first);
    listener_close(NULL);
    loop_free(loop);
}

/* ---- writing to a peer that does not read yet ---- */

/* Fill the socket; true when there is something left. */
static bool fill(struct side *side)
{
    for (int i = 0; i < 1000; i++) {
        str rest = {side->bytes + side->written, LARGE - side->written};
        ptrdiff_t taken = sock_try(side->sock, &rest, 1);
        assert_true(taken >= 0);
        if (taken == 0) return rest.len > 0;
        side->written += (size_t)taken;
    }
    fail_msg("the socket is never full");
    return false;
}

static void begin_writing(struct side *side)
{
    assert_true(fill(side));
    str rest = {side->bytes + side->written, LARGE - side->written};
    sock_write(side->sock, &rest, 1);
    str more = STR("x");
    assert_int_equal(sock_try(side->sock, &more, 1), 0); /* not past what is waiting */
    sem_post(&side->peer.go);
}

static void peer_read_later(struct peer *peer, int fd)
{
    peer_wait(peer);
    peer_drain(peer, fd);
}

static void full_socket(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_writing;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_read_later);
    run(side.loop);
    assert_int_equal(side.writables, 1);
    assert_false(side.failed);
    side_done(&side);
    assert_int_equal(side.peer.received, LARGE);
    assert_true(side.peer.ended);
}

/* After sock_close nothing is called, and the bytes may go at once. */
static void begin_writing_then_close(struct side *side)
{
    assert_true(fill(side));
    char *doomed = malloc(100 * 1024);
    assert_non_null(doomed);
    memset(doomed, 'x', 100 * 1024);
    sock_write(side->sock, &(str){doomed, 100 * 1024}, 1);
    side_end(side);
    free(doomed);
    sem_post(&side->peer.go);
}

static void close_while_writing(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_writing_then_close;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_read_later);
    run(side.loop);
    size_t written = side.written;
    side_done(&side);
    assert_int_equal(side.writables + side.ends, 0);
    assert_int_equal(side.peer.received, written);
}

/* ---- ends ---- */

static void peer_reset(struct peer *peer, int fd)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    peer_wait(peer);
}

static void begin_awaiting_reset(struct side *side)
{
    sock_read_start(side->sock);
    sem_post(&side->peer.go);
}

static void reset_while_reading(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_awaiting_reset;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_reset);
    run(side.loop);
    assert_int_equal(side.ends, 1);
    assert_false(side.clean);
    side_done(&side);
}

static void reset_while_writing(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_writing;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_reset);
    run(side.loop);
    assert_int_equal(side.writables, 1);
    assert_true(side.failed);
    side_done(&side);
}

static void begin_reset(struct side *side)
{
    assert_true(fill(side));
    sock_reset(side->sock);
    sem_post(&side->peer.go);
    side_end(side);
}

static void resetting(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_reset;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_read_later);
    run(side.loop);
    side_done(&side);
    assert_true(side.peer.reset);
    assert_int_equal(side.writables + side.ends, 0);
}

/* The peer ends its half first: ours still goes out whole. */
static void half_on_end(void *arg, bool clean)
{
    struct side *side = arg;
    side->ends++;
    side->clean = clean;
    sock_write(side->sock, &(str){side->bytes, LARGE}, 1);
}

static void peer_ends_first(struct peer *peer, int fd)
{
    if (send(fd, "bye", 3, 0) == 3 && shutdown(fd, SHUT_WR) == 0) peer_drain(peer, fd);
}

static void half_close_by_peer(void **state)
{
    (void)state;
    static const struct sock_ops half_ops = {side_read, half_on_end, side_on_writable};
    struct side side;
    side_init(&side);
    side.ops = &half_ops;
    side.begin = begin_reading;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_ends_first);
    run(side.loop);
    assert_true(side.clean);
    assert_false(side.failed);
    side_done(&side);
    assert_str(((str){side.read, side.read_len}), STR("bye"));
    assert_int_equal(side.peer.received, LARGE);
    assert_true(side.peer.ended);
}

/* We end our half first: the peer sees the end and still reaches us. */
static void begin_shutdown(struct side *side)
{
    sock_read_start(side->sock);
    sock_shutdown(side->sock);
}

static void peer_answers_end(struct peer *peer, int fd)
{
    peer_drain(peer, fd);
    send(fd, "late", 4, MSG_NOSIGNAL);
}

static void half_close_by_us(void **state)
{
    (void)state;
    struct side side;
    side_init(&side);
    side.begin = begin_shutdown;
    side_listen(&side, "127.0.0.1");
    peer_start(&side.peer, peer_answers_end);
    run(side.loop);
    assert_int_equal(side.ends, 1);
    assert_true(side.clean);
    side_done(&side);
    assert_str(((str){side.read, side.read_len}), STR("late"));
    assert_true(side.peer.ended);
}

/* ---- out of descriptors ---- */

enum { CALLERS = 5 };

struct crowd {
    struct loop *loop;
    int accepted;
    struct sock *socks[CALLERS];
};

static void on_crowd_end(void *arg, bool clean)
{
    (void)arg, (void)clean;
}

static void on_crowd(void *arg, struct sock *sock)
{
    static const struct sock_ops none = {side_read, on_crowd_end, side_on_writable};
    struct crowd *crowd = arg;
    assert_true(crowd->accepted < CALLERS);
    sock_setup(sock, &none, crowd);
    crowd->socks[crowd->accepted++] = sock;
    if (crowd->accepted == CALLERS) loop_stop(crowd->loop);
}

static void on_pause(void *arg)
{
    loop_stop(arg);
}

static msec cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (msec)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* With a limit just under the next free descriptor, and far under all that are in use: callers
 * wait, the loop sleeps, and when there are descriptors again all callers are served. */
static void no_descriptors(void **state)
{
    (void)state;
    enum { STARVED_MS = 300 };
    for (int far = 0; far < 2; far++) {
        struct crowd crowd = {.loop = loop_new()};
        struct listener *listener = NULL;
        struct fault reason;
        assert_int_equal(listener_tcp(crowd.loop, STR("127.0.0.1"), 0, on_crowd, &crowd, &listener,
                                      &reason),
                         OK);
        struct timer *pause = timer_new(crowd.loop, on_pause, crowd.loop);
        timer_start(pause, STARVED_MS);

        int callers[CALLERS];
        for (size_t i = 0; i < CALLERS; i++) callers[i] = socket(AF_INET, SOCK_STREAM, 0);
        int next = dup(0);
        close(next);
        struct rlimit usual, low;
        assert_return_code(getrlimit(RLIMIT_NOFILE, &usual), errno);
        low = usual;
        low.rlim_cur = far ? 3 : (rlim_t)next;
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(listener_port(listener))};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (size_t i = 0; i < CALLERS; i++)
            assert_return_code(connect(callers[i], (struct sockaddr *)&address, sizeof address),
                               errno);

        msec before = cpu_ms();
        assert_return_code(setrlimit(RLIMIT_NOFILE, &low), errno);
        run(crowd.loop);
        assert_return_code(setrlimit(RLIMIT_NOFILE, &usual), errno);
        assert_true(cpu_ms() - before < STARVED_MS / 2);
        assert_int_equal(crowd.accepted, 0);

        run(crowd.loop);
        assert_int_equal(crowd.accepted, CALLERS);
        for (size_t i = 0; i < CALLERS; i++) {
            sock_close(crowd.socks[i]);
            close(callers[i]);
        }
        timer_free(pause);
        listener_close(listener);
        loop_free(crowd.loop);
    }
}

/* Closing the listener from inside its callback stops the accepting at once. */
struct once {
    struct loop *loop;
    struct listener *listener;
    int accepted;
};

static void on_only_one(void *arg, struct sock *sock)
{
    struct once *once = arg;
    once->accepted++;
    sock_close(sock);
    listener_close(TAKE(once->listener));
    loop_stop(once->loop);
}

static void close_in_accept(void **state)
{
    (void)state;
    struct once once = {.loop = loop_new()};
    struct fault reason;
    assert_int_equal(listener_tcp(once.loop, STR("127.0.0.1"), 0, on_only_one, &once,
                                  &once.listener, &reason),
                     OK);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(listener_port(once.listener))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int callers[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_return_code(connect(callers[i], (struct sockaddr *)&address, sizeof address), errno);
    }
    run(once.loop);
    assert_int_equal(once.accepted, 1);
    loop_free(once.loop);
    for (size_t i = 0; i < CALLERS; i++) close(callers[i]);
}

/* ---- descriptors of others ---- */

struct watching {
    struct trace trace;
    struct watch *watch;
    int fd;
};

static void on_watch(void *arg, int events)
{
    struct watching *watching = arg;
    trace_add(&watching->trace, (char)('0' + events));
    if (events == 1) watch_free(watching->watch); /* inside its own callback */
    if (events == 2) {
        assert_int_equal(write(watching->fd, "x", 1), 1);
        watch_set(watching->watch, 0);
    }
}

static void watching(void **state)
{
    (void)state;
    int ends[2];
    assert_return_code(pipe2(ends, O_CLOEXEC | O_NONBLOCK), errno);
    struct loop *loop = loop_new();
    struct watching writer = {.trace = {.loop = loop}, .fd = ends[1]};
    struct watching reader = {.trace = {.loop = loop, .stop_at = 1}, .fd = ends[0]};
    writer.watch = watch_new(loop, ends[1], on_watch, &writer);
    reader.watch = watch_new(loop, ends[0], on_watch, &reader);
    watch_set(writer.watch, 2);
    watch_set(reader.watch, 1);
    run(loop);
    assert_string_equal(writer.trace.text, "2");
    assert_string_equal(reader.trace.text, "1");
    watch_free(writer.watch);
    watch_free(NULL);
    loop_free(loop);
    close(ends[0]);
    close(ends[1]);
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

int test_loop(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posting),
        cmocka_unit_test(working),
        cmocka_unit_test(deferring),
        cmocka_unit_test(deferring_inside),
        cmocka_unit_test(timers),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(signals),
        cmocka_unit_test(echo),
        cmocka_unit_test(mapped_peer),
        cmocka_unit_test(unix_listener),
        cmocka_unit_test(listener_failures),
        cmocka_unit_test(full_socket),
        cmocka_unit_test(close_while_writing),
        cmocka_unit_test(reset_while_reading),
        cmocka_unit_test(reset_while_writing),
        cmocka_unit_test(resetting),
        cmocka_unit_test(half_close_by_peer),
        cmocka_unit_test(half_close_by_us),
        cmocka_unit_test(no_descriptors),
        cmocka_unit_test(close_in_accept),
        cmocka_unit_test(watching),
    };
    return cmocka_run_group_tests_name("net/loop", tests, ignore_sigpipe, NULL);
}

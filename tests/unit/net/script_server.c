/* SPDX-License-Identifier: Apache-2.0 */
#include "net/script_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static void set_patience(int fd)
{
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static bool read_more(struct server *server, int fd)
{
    char bytes[4096];
    ssize_t count = recv(fd, bytes, sizeof bytes, 0);
    if (count > 0) buf_append(&server->seen, (str){bytes, (size_t)count});
    return count > 0;
}

static bool read_request(struct server *server, int fd)
{
    size_t start = server->seen.len;
    ptrdiff_t end;
    while ((end = str_find(str_drop(buf_str(&server->seen), start), STR("\r\n\r\n"))) < 0)
        if (!read_more(server, fd)) return false;
    str head = {server->seen.p + start, (size_t)end};
    ptrdiff_t at = str_find(head, STR("Content-Length: "));
    str rest = at < 0 ? STR("0\r") : str_drop(head, (size_t)at + sizeof "Content-Length: " - 1);
    uint64_t length = 0;
    if (str_to_u64(str_split(&rest, '\r'), &length)) return false;
    while (server->seen.len < start + (size_t)end + 4 + length)
        if (!read_more(server, fd)) return false;
    return true;
}

static bool send_bytes(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t count = send(fd, bytes, len, MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

static bool copy_some(int from, int to)
{
    char bytes[4096];
    ssize_t count = recv(from, bytes, sizeof bytes, 0);
    return count > 0 && send_bytes(to, bytes, (size_t)count);
}

static int connect_port(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    close(fd);
    return -1;
}

static void relay(int client, uint16_t port)
{
    struct pollfd fds[] = {{client, POLLIN, 0}, {connect_port(port), POLLIN, 0}};
    bool open = fds[1].fd >= 0;
    while (open && poll(fds, 2, PATIENCE_MS) > 0) {
        if (fds[0].revents) open = copy_some(fds[0].fd, fds[1].fd);
        if (open && fds[1].revents) open = copy_some(fds[1].fd, fds[0].fd);
    }
    if (fds[1].fd >= 0) close(fds[1].fd);
}

static void close_conn(int *fd, bool reset)
{
    struct linger now = {.l_onoff = 1};
    if (*fd < 0) return;
    if (reset) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(*fd);
    *fd = -1;
}

static bool accept_conn(struct server *server)
{
    struct pollfd waiting = {server->listener, POLLIN, 0};
    if (server->accepted == CONNS_MAX || poll(&waiting, 1, PATIENCE_MS) != 1) return false;
    int fd = accept(server->listener, NULL, NULL);
    if (fd < 0) return false;
    set_patience(fd);
    server->conns[server->accepted++] = fd;
    return true;
}

/* A client may leave while it is being sent something, so SEND and REPEAT cannot fail. */
static bool take_step(struct server *server, const struct step *step)
{
    int *conn = server->accepted ? &server->conns[server->accepted - 1] : NULL;
    switch (step->kind) {
    case DO_ACCEPT:
        return accept_conn(server);
    case DO_READ:
        return read_request(server, *conn);
    case DO_SEND:
        send_bytes(*conn, step->text, step->count ? step->count : strlen(step->text));
        return true;
    case DO_REPEAT:
        for (size_t i = 0; i < step->count; i++)
            if (!send_bytes(*conn, step->text, strlen(step->text))) break;
        return true;
    case DO_AWAIT:
        return !read_more(server, *conn);
    case DO_CLOSE:
        close_conn(conn, false);
        return true;
    case DO_RESET:
        close_conn(conn, true);
        return true;
    case DO_RELAY:
        relay(*conn, (uint16_t)step->count);
        return true;
    case DO_END:
        break;
    }
    return false;
}

static void *serve(void *arg)
{
    struct server *server = arg;
    for (const struct step *step = server->steps; step->kind != DO_END && !server->failed; step++)
        if (!take_step(server, step)) server->failed = "a step of the server failed";
    for (size_t i = 0; i < server->accepted; i++) close_conn(&server->conns[i], false);
    return NULL;
}

uint16_t bound_port(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t len = sizeof address;
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &len), errno);
    return ntohs(address.sin_port);
}

void server_begin(struct server *server, int listener, const struct step *steps)
{
    *server = (struct server){.steps = steps, .listener = listener};
    buf_init(&server->seen, 4 << 20);
    assert_return_code(listener, errno);
    assert_return_code(listen(listener, CONNS_MAX), errno);
    server->port = bound_port(listener); /* nonsense for a Unix socket */
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

int bound_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    return fd;
}

void server_start(struct server *server, const struct step *steps)
{
    server_begin(server, bound_socket(), steps);
}

void server_join(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
    if (server->failed)
        fail_msg("%s; it saw \"%.*s\"", server->failed, STR_ARG(buf_str(&server->seen)));
}

void server_done(struct server *server)
{
    buf_done(&server->seen);
}

bool server_saw(const struct server *server, const char *text)
{
    return str_find(buf_str(&server->seen), str_c(text)) >= 0;
}

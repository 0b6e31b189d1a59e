/* SPDX-License-Identifier: Apache-2.0
 *
 * What all modes of the load generator use: see load.h.
 *
 * One thread, one level-triggered epoll set. A peer is served by at most one read per turn, so no
 * connection starves another. Spans end when our read returns, so with a thousand readers ready at
 * once they include the wait for our own turn: the same for every server.
 */
#include "load.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

nsec now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (nsec)t.tv_sec * NS_PER_S + (nsec)t.tv_nsec;
}

/* ---- where to ---- */

void target_parse(const char *url, struct target *ret_target)
{
    static const str scheme = STR("http://");
    str rest = str_c(url);
    if (!str_starts(rest, scheme)) die("not an http URL: %s", url);
    rest = str_drop(rest, scheme.len);

    ptrdiff_t slash = str_find_char(rest, '/');
    str authority = slash < 0 ? rest : (str){rest.p, (size_t)slash};
    str path = slash < 0 ? STR("/") : str_drop(rest, (size_t)slash);
    str port = authority;
    str host = str_split(&port, ':');

    struct target t = {.address.sin_family = AF_INET};
    uint64_t number = 0;
    if (str_to_u64(port, &number) || number == 0 || number > UINT16_MAX) die("no port in %s", url);
    if (authority.len >= sizeof t.host || path.len >= sizeof t.path) die("too long: %s", url);
    char address[sizeof t.host];
    snprintf(address, sizeof address, "%.*s", STR_ARG(host));
    snprintf(t.host, sizeof t.host, "%.*s", STR_ARG(authority));
    snprintf(t.path, sizeof t.path, "%.*s", STR_ARG(path));
    t.address.sin_port = htons((uint16_t)number);
    if (inet_pton(AF_INET, address, &t.address.sin_addr) != 1 ||
        ntohl(t.address.sin_addr.s_addr) >> 24 != 127)
        die("only 127.0.0.0/8 is ever put under load, not %s", address);
    *ret_target = t;
}

void request_write(struct buf *out, const char *method, const struct target *target, str body)
{
    buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream, */*\r\n", method,
               target->path, target->host);
    if (body.len) buf_printf(out, "Content-Type: text/plain\r\nContent-Length: %zu\r\n", body.len);
    buf_append(out, STR("\r\n"));
    buf_append(out, body);
}

/* ---- connections ---- */

void net_init(struct net *net)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    *net = (struct net){.epoll = epoll_create1(EPOLL_CLOEXEC), .now = now_ns()};
    net->bytes = malloc(READ_BYTES);
    if (net->epoll < 0 || !net->bytes) die("cannot start: %s", strerror(errno));
}

void net_done(struct net *net)
{
    close(net->epoll);
    free(net->bytes);
}

static void watch(struct peer *peer, uint32_t events, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = peer};
    if (epoll_ctl(peer->net->epoll, how, peer->fd, &event)) die("epoll_ctl: %s", strerror(errno));
    peer->watched = events;
}

void peer_dial(struct net *net, struct peer *peer, const struct target *target, unsigned from,
               int receive_bytes)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receive_bytes) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (from) {
        struct sockaddr_in own = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(0x7f000100U | (from & 0xff))};
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (bind(fd, (struct sockaddr *)&own, sizeof own)) die("bind: %s", strerror(errno));
    }
    if (connect(fd, (const struct sockaddr *)&target->address, sizeof target->address) &&
        errno != EINPROGRESS)
        die("connect to %s: %s", target->host, strerror(errno));

    peer->net = net;
    peer->fd = fd;
    buf_init(&peer->out, OUT_BYTES_MAX);
    watch(peer, EPOLLIN | EPOLLRDHUP, EPOLL_CTL_ADD);
}

static ptrdiff_t write_some(struct peer *peer, str bytes)
{
    ssize_t n = send(peer->fd, bytes.p, bytes.len, MSG_NOSIGNAL);
    if (n >= 0) return n;
    return errno == EAGAIN || errno == ENOTCONN || errno == EINPROGRESS ? 0 : -1;
}

static void flush(struct peer *peer)
{
    ptrdiff_t n = write_some(peer, buf_str(&peer->out));
    if (n > 0) buf_drop(&peer->out, (size_t)n);
    if (peer->out.len == 0 || n < 0)
        watch(peer, peer->watched & ~(uint32_t)EPOLLOUT, EPOLL_CTL_MOD);
}

/* A broken connection is not reported from here: the next turn sees it and calls on_end. */
void peer_send(struct peer *peer, str bytes)
{
    if (peer->out.len == 0) {
        ptrdiff_t n = write_some(peer, bytes);
        if (n < 0 || (size_t)n == bytes.len) return;
        bytes = str_drop(bytes, (size_t)n);
        watch(peer, peer->watched | EPOLLOUT, EPOLL_CTL_MOD);
    }
    buf_append(&peer->out, bytes);
    if (peer->out.full) die("the server takes no bytes: %d waiting", OUT_BYTES_MAX);
}

void peer_hold(struct peer *peer)
{
    watch(peer, peer->watched & ~(uint32_t)(EPOLLIN | EPOLLRDHUP), EPOLL_CTL_MOD);
}

void peer_close(struct peer *peer)
{
    if (peer->fd < 0) return;
    close(peer->fd);
    peer->fd = -1;
    buf_done(&peer->out);
}

void peer_reset(struct peer *peer)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    peer_close(peer);
}

static void peer_ended(struct peer *peer, int error)
{
    peer_close(peer);
    peer->on_end(peer, error);
}

static void peer_ready(struct peer *peer, uint32_t events)
{
    if (events & EPOLLOUT) flush(peer);
    bool reading = peer->watched & EPOLLIN;
    if (!reading && events & (EPOLLHUP | EPOLLERR)) {
        peer_ended(peer, ECONNRESET);
        return;
    }
    if (!reading || !(events & ~(uint32_t)EPOLLOUT)) return;

    ssize_t n = recv(peer->fd, peer->net->bytes, READ_BYTES, 0);
    peer->net->now = now_ns();
    if (n > 0)
        peer->on_bytes(peer, (str){peer->net->bytes, (size_t)n});
    else if (n == 0)
        peer_ended(peer, 0);
    else if (errno != EAGAIN)
        peer_ended(peer, errno);
}

void net_turn(struct net *net, nsec until)
{
    struct epoll_event events[512];
    nsec now = now_ns();
    nsec wait = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(wait / NS_PER_S),
                               .tv_nsec = (long)(wait % NS_PER_S)};
    int n = epoll_pwait2(net->epoll, events, COUNT(events), &timeout, NULL);
    if (n < 0 && errno != EINTR) die("epoll_wait: %s", strerror(errno));
    net->now = now_ns();
    for (int i = 0; i < n; i++) {
        struct peer *peer = events[i].data.ptr;
        if (peer->fd >= 0) peer_ready(peer, events[i].events);
    }
}

/* ---- answers ---- */

/*  HEAD --+--> BODY ------------------+--> END --> HEAD
 *         |                           |
 *         +--> SIZE --> DATA --> CRLF-+ (SIZE again until it is 0)
 */
enum { IN_HEAD, IN_BODY, IN_SIZE, IN_DATA, IN_CRLF, IN_LAST, IN_END };

void answer_init(struct answer *answer)
{
    *answer = (struct answer){.state = IN_HEAD};
    buf_init(&answer->head, ANSWER_HEAD_MAX);
}

void answer_done(struct answer *answer)
{
    buf_done(&answer->head);
}

static void head_line(struct answer *answer, str line)
{
    str value = line;
    str name = str_split(&value, ':');
    if (!value.p) return;
    value = str_trim(value);
    if (str_eq_nocase(name, STR("content-length"))) {
        if (str_to_u64(value, &answer->left)) answer->status = 0;
    } else if (str_eq_nocase(name, STR("transfer-encoding"))) {
        answer->chunked = str_eq_nocase(value, STR("chunked"));
    }
}

/* "HTTP/1.1 200 OK", then the fields. A status of 0 afterwards means it was no such thing. */
static enum answer_event head_done(struct answer *answer)
{
    str rest = buf_str(&answer->head);
    str line = str_split(&rest, '\n');
    uint64_t status = 0;

    answer->chunked = false;
    answer->left = UINT64_MAX;
    if (!str_starts(line, STR("HTTP/1.1 ")) || line.len < 12 ||
        str_to_u64((str){line.p + 9, 3}, &status))
        return ANSWER_BAD;
    answer->status = (int)status;
    while (rest.p) {
        line = str_split(&rest, '\n');
        if (line.len && line.p[line.len - 1] == '\r') line.len--;
        head_line(answer, line);
    }
    if (status == 204 || status == 304) answer->left = 0;
    answer->state = answer->chunked ? IN_SIZE : IN_BODY;
    if (answer->chunked) answer->left = 0;
    buf_clear(&answer->head);
    return answer->status ? ANSWER_HEAD : ANSWER_BAD;
}

static enum answer_event feed_head(struct answer *answer, str *input)
{
    static const str end = STR("\r\n\r\n");
    /* The end may straddle two reads: look again at the last three bytes of what is here. */
    size_t before = answer->head.len;
    size_t room = ANSWER_HEAD_MAX - before;
    size_t take = input->len < room ? input->len : room;
    buf_append(&answer->head, (str){input->p, take});

    size_t from = before > 3 ? before - 3 : 0;
    ptrdiff_t at = str_find(str_drop(buf_str(&answer->head), from), end);
    if (at < 0) {
        *input = str_drop(*input, take);
        return answer->head.len == ANSWER_HEAD_MAX ? ANSWER_BAD : ANSWER_MORE;
    }
    size_t len = from + (size_t)at + end.len;
    *input = str_drop(*input, len - before);
    answer->head.len = len;
    return head_done(answer);
}

static enum answer_event feed_body(struct answer *answer, str *input, str *ret_piece)
{
    size_t take = input->len < answer->left ? input->len : (size_t)answer->left;
    *ret_piece = (str){input->p, take};
    *input = str_drop(*input, take);
    if (answer->left != UINT64_MAX) answer->left -= take;
    return ANSWER_BODY;
}

/* One byte of a chunk's size line; IN_LAST is the empty line behind the chunk of size 0. */
static bool feed_size(struct answer *answer, char c)
{
    if (c >= '0' && c <= '9') {
        answer->left = answer->left << 4 | (uint64_t)(c - '0');
    } else if (char_lower(c) >= 'a' && char_lower(c) <= 'f') {
        answer->left = answer->left << 4 | (uint64_t)(char_lower(c) - 'a' + 10);
    } else if (c == '\n') {
        answer->state = answer->left ? IN_DATA : IN_LAST;
    } else if (c != '\r') {
        return false;
    }
    return true;
}

enum answer_event answer_feed(struct answer *answer, str *input, str *ret_piece)
{
    if (answer->state == IN_END) answer->state = IN_HEAD;
    for (;;) {
        if (answer->state == IN_BODY && answer->left == 0) {
            answer->state = IN_END;
            return ANSWER_END;
        }
        if (input->len == 0) return ANSWER_MORE;
        if (answer->state == IN_HEAD) return feed_head(answer, input);
        if (answer->state == IN_BODY) return feed_body(answer, input, ret_piece);
        if (answer->state == IN_DATA && answer->left) return feed_body(answer, input, ret_piece);
        if (answer->state == IN_DATA) answer->state = IN_CRLF;

        char c = *input->p;
        *input = str_drop(*input, 1);
        if (answer->state == IN_SIZE) {
            if (!feed_size(answer, c)) return ANSWER_BAD;
        } else if (c == '\n') {
            bool last = answer->state == IN_LAST;
            answer->state = last ? IN_END : IN_SIZE;
            if (last) return ANSWER_END;
        } else if (c != '\r') {
            return ANSWER_BAD;
        }
    }
}

bool line_next(struct buf *cut, str *piece, str *ret_line)
{
    if (cut->len && cut->p[cut->len - 1] == '\n') buf_clear(cut); /* it was taken */
    ptrdiff_t at = str_find_char(*piece, '\n');
    size_t take = at < 0 ? piece->len : (size_t)at + 1;
    str line = {piece->p, take};
    if (at < 0 || cut->len) {
        buf_append(cut, line);
        if (cut->full) die("a line without end");
        line = buf_str(cut);
    }
    *piece = str_drop(*piece, take);
    if (at < 0) return false;
    *ret_line = (str){line.p, line.len - 1};
    return true;
}

str member_text(str json, str name)
{
    ptrdiff_t at = str_find(json, name);
    if (at < 0) return STR_EMPTY;
    json = str_drop(json, (size_t)at + name.len);
    size_t len = 0;
    while (len < json.len && json.p[len] != '"') len += json.p[len] == '\\' ? 2 : 1;
    return (str){json.p, len < json.len ? len : json.len};
}

/* ---- figures ---- */

/* Below 2^SUB_BITS a slot per value; above, 2^SUB_BITS slots per power of two. */
static size_t hist_slot(nsec span)
{
    if (span < (1u << HIST_SUB_BITS)) return (size_t)span;
    unsigned top = 63u - (unsigned)__builtin_clzll(span);
    unsigned shift = top - HIST_SUB_BITS;
    return ((size_t)(shift + 1) << HIST_SUB_BITS) +
           (size_t)((span >> shift) - (1u << HIST_SUB_BITS));
}

static nsec hist_value(size_t slot)
{
    if (slot < (1u << HIST_SUB_BITS)) return slot;
    unsigned shift = (unsigned)(slot >> HIST_SUB_BITS) - 1;
    return ((slot & ((1u << HIST_SUB_BITS) - 1)) + (1u << HIST_SUB_BITS)) << shift;
}

void hist_add(struct hist *hist, nsec span)
{
    hist->count++;
    if (span > hist->max) hist->max = span;
    hist->slots[hist_slot(span)]++;
}

double hist_us(const struct hist *hist, double quantile)
{
    uint64_t want = (uint64_t)((double)hist->count * quantile);
    uint64_t seen = 0;
    for (size_t i = 0; i < HIST_SLOTS; i++) {
        seen += hist->slots[i];
        if (seen > want) return (double)hist_value(i) / 1000;
    }
    return (double)hist->max / 1000;
}

static size_t slurp(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file) die("cannot read %s: %s", path, strerror(errno));
    size_t len = fread(out, 1, size - 1, file);
    fclose(file);
    out[len] = '\0';
    return len;
}

/* Fields 14 and 15 of stat, counted behind the name, which may hold spaces. */
static double stat_cpu_s(const char *stat)
{
    const char *p = strrchr(stat, ')');
    unsigned long user = 0, sys = 0;
    if (!p ||
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
        die("cannot read the processor time of the server");
    return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static uint64_t status_kib(const char *status, const char *name)
{
    const char *p = strstr(status, name);
    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

static uint64_t count_fds(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) die("cannot read %s: %s", path, strerror(errno));
    uint64_t count = 0;
    while (readdir(dir)) count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

static void usage_add(unsigned pid, struct usage *usage)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    slurp(path, text, sizeof text);
    usage->cpu_s += stat_cpu_s(text);
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    slurp(path, text, sizeof text);
    usage->rss_kib += status_kib(text, "VmRSS:");
    usage->anon_kib += status_kib(text, "RssAnon:");
    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    usage->fds += count_fds(path);
}

void usage_read(const char *pids, struct usage *ret_usage)
{
    struct usage usage = {0};
    str rest = str_c(pids);
    for (int i = 0; i < PIDS_MAX && rest.len; i++) {
        uint64_t pid = 0;
        if (str_to_u64(str_split(&rest, ','), &pid)) die("not a list of pids: %s", pids);
        usage_add((unsigned)pid, &usage);
    }
    *ret_usage = usage;
}

double own_cpu_s(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

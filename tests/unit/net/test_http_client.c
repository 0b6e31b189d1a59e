/* SPDX-License-Identifier: Apache-2.0
 *
 * The client against a server that follows a script (script_server.h), and against Node's TLS and
 * HTTP/2 servers under certificates made here. Every wait is bounded by a guard timer.
 *
 * Every request carries credentials in its URL and headers, and every reason is searched for them.
 */
#include "net/http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "net/loop.h"
#include "net/script_server.h"

enum { STEPS_MAX = 12 };

#define SECRET "s3cret"

extern char **environ;

/* ---- the client's side ---- */

struct world {
    struct loop *loop;
    struct client *client;
    struct timer *guard;
    int open; /* requests not done; the loop stops at 0 */
    bool late;
};

struct answer {
    struct world *world;
    struct client_request *request;
    int heads, bodies, dones;
    int status;
    bool sent; /* what client_request_sent said at the end */
    struct buf body;
    struct buf type; /* Content-Type */
    uint16_t port;   /* of the server, or 0 */
    enum err err;
    char reason[sizeof((struct fault *)0)->text];
    enum { KEEP, CANCEL_IN_HEAD, CANCEL_IN_BODY, CANCEL_IN_DONE } cancel;
};

static msec steady_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (msec)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void one_less(struct world *world)
{
    if (--world->open == 0) loop_stop(world->loop);
}

static void cancel(struct answer *answer)
{
    client_cancel(answer->request);
    one_less(answer->world);
}

/* No connection to this port may stay open in a child process. */
static void check_inheritance(uint16_t port)
{
    for (int fd = 3; port && fd < 64; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) || ntohs(peer.sin_port) != port)
            continue;
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct answer *answer = arg;
    answer->heads++;
    answer->status = status;
    assert_ptr_equal(request, answer->request);
    buf_append(&answer->type, client_header_get(request, STR("content-TYPE")));
    assert_int_equal(client_header_get(request, STR("Absent")).len, 0);
    check_inheritance(answer->port);
    if (answer->cancel == CANCEL_IN_HEAD) cancel(answer);
}

static void on_body(void *arg, str bytes)
{
    struct answer *answer = arg;
    assert_int_equal(answer->heads, 1);
    answer->bodies++;
    buf_append(&answer->body, bytes);
    if (answer->cancel == CANCEL_IN_BODY) cancel(answer);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct answer *answer = arg;
    answer->dones++;
    answer->err = e;
    answer->sent = client_request_sent(answer->request);
    assert_int_equal(reason->err, e);
    if (e) snprintf(answer->reason, sizeof answer->reason, "%s", reason->text);
    if (e && (!reason->text[0] || strstr(reason->text, SECRET) || strstr(reason->field, SECRET)))
        fail_msg("reason \"%s\" is empty or tells a secret", reason->text);
    if (answer->cancel == CANCEL_IN_DONE) client_cancel(answer->request);
    one_less(answer->world);
}

static const struct client_ops ops = {on_head, on_body, on_done};

static void on_guard(void *arg)
{
    struct world *world = arg;
    world->late = true;
    loop_stop(world->loop);
}

static void world_init(struct world *world)
{
    *world = (struct world){.loop = loop_new()};
    world->client = client_new(world->loop);
    world->guard = timer_new(world->loop, on_guard, world);
}

static void world_run(struct world *world)
{
    timer_start(world->guard, 2 * PATIENCE_MS);
    if (world->open) loop_run(world->loop);
    timer_stop(world->guard);
    assert_false(world->late);
}

static void world_done(struct world *world)
{
    client_free(world->client);
    timer_free(world->guard);
    loop_free(world->loop);
}

static void answer_init(struct answer *answer, struct world *world)
{
    *answer = (struct answer){.world = world};
    buf_init(&answer->body, 1 << 20);
    buf_init(&answer->type, 1 << 10);
}

static void answer_done(struct answer *answer)
{
    buf_done(&answer->body);
    buf_done(&answer->type);
}

static void begin(struct answer *answer, struct world *world, const struct client_options *options)
{
    answer_init(answer, world);
    world->open++;
    answer->request = client_send(world->client, options, &ops, answer);
    assert_int_equal(answer->dones, 0); /* never from inside */
}

/* One request from beginning to end. */
static void ask(struct answer *answer, struct world *world, const struct client_options *options)
{
    begin(answer, world, options);
    world_run(world);
    assert_int_equal(answer->dones, 1);
}

static const struct client_header secret_headers[] = {
    {"Authorization", "Bearer " SECRET},
    {"X-Empty", ""},
};

struct address {
    char url[300];
};

static struct client_options options_to(struct address *address, uint16_t port, const char *host)
{
    snprintf(address->url, sizeof address->url, "http://user:%s@%s:%u/some/path?key=%s", SECRET,
             host, port, SECRET);
    return (struct client_options){.url = address->url,
                                   .headers = secret_headers,
                                   .header_count = COUNT(secret_headers),
                                   .proxy = ""};
}

static struct client_options options_for(struct address *address, const struct server *server)
{
    return options_to(address, server->port, "127.0.0.1");
}

static void expect(const struct answer *answer, const char *name, enum err err, const char *reason)
{
    if (answer->err != err || (err && !strstr(answer->reason, reason)))
        fail_msg("%s: got %s \"%s\", expected %s \"%s\"", name, err_code(answer->err),
                 answer->reason, err_code(err), reason);
}

/* ---- answers, good and bad ---- */

#define HELLO        "HTTP/1.1 200 OK\r\nContent-Type: text/x-test\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKED_HEAD "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define CHUNKS       CHUNKED_HEAD "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct step steps[STEPS_MAX];
        struct client_options options;
        enum err err;
        int status;
        const char *body;   /* NULL: not looked at */
        const char *reason; /* a part of it */
        const char *seen;   /* a part of the request */
        /* clang-format off */
    } rows[] = {
        {"plain", {ACCEPT, READ, SEND(HELLO)}, {0}, OK, 200, "hello", "",
         "GET /some/path?key=" SECRET " HTTP/1.1\r\n"},
        {"empty header", {ACCEPT, READ, SEND(HELLO)}, {0}, OK, 200, "hello", "", "\r\nX-Empty:\r\n"},
        {"agent", {ACCEPT, READ, SEND(HELLO)}, {0}, OK, 200, "hello", "", "\r\nUser-Agent: fermata/"},
        {"chunked", {ACCEPT, READ, SEND(CHUNKS)}, {0}, OK, 200, "hello", "", ""},
        {"trailer", {ACCEPT, READ, SEND(CHUNKED_HEAD "1\r\nx\r\n0\r\nA: b\r\n\r\n")},
         {0}, OK, 200, "x", "", ""},
        {"not found", {ACCEPT, READ, SEND("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone")},
         {0}, OK, 404, "gone", "", ""},
        {"redirect is not followed",
         {ACCEPT, READ, SEND("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")},
         {0}, OK, 302, "", "", ""},
        {"no content", {ACCEPT, READ, SEND("HTTP/1.1 204 No Content\r\n\r\n")},
         {0}, OK, 204, "", "", ""},
        {"until close", {ACCEPT, READ, SEND("HTTP/1.0 200 OK\r\n\r\nall"), CLOSE},
         {0}, OK, 200, "all", "", ""},
        {"interim heads",
         {ACCEPT, READ, SEND("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n" HELLO)},
         {0}, OK, 200, "hello", "", ""},
        {"not decompressed",
         {ACCEPT, READ,
          SEND("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw")},
         {0}, OK, 200, "raw", "", ""},
        {"head", {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")},
         {.method = "HEAD"}, OK, 200, "", "", "HEAD /some"},
        {"post", {ACCEPT, READ, SEND(HELLO)}, {.method = "POST", .body = {"what we send", 12}},
         OK, 200, "hello", "", "\r\nContent-Length: 12\r\n\r\nwhat we send"},
        {"post nothing", {ACCEPT, READ, SEND(HELLO)}, {.method = "POST"},
         OK, 200, "hello", "", "\r\nContent-Length: 0\r\n"},
        {"put", {ACCEPT, READ, SEND(HELLO)}, {.method = "PUT", .body = {"x", 1}},
         OK, 200, "hello", "", "PUT /some"},
        {"delete", {ACCEPT, READ, SEND(HELLO)}, {.method = "DELETE"},
         OK, 200, "hello", "", "DELETE /some"},

        {"body at its limit", {ACCEPT, READ, SEND(HELLO)}, {.body_bytes_max = 5},
         OK, 200, "hello", "", ""},
        {"body over its limit", {ACCEPT, READ, SEND(HELLO), AWAIT}, {.body_bytes_max = 4},
         ERR_TOO_LARGE, 200, NULL, "larger than 4 bytes", ""},
        {"chunked body over its limit", {ACCEPT, READ, SEND(CHUNKS), AWAIT}, {.body_bytes_max = 4},
         ERR_TOO_LARGE, 200, NULL, "larger than 4 bytes", ""},
        {"200 fields",
         {ACCEPT, READ, SEND("HTTP/1.1 204 No Content\r\n"), REPEAT("a: b\r\n", 200), SEND("\r\n")},
         {0}, OK, 204, "", "", ""},
        {"201 fields",
         {ACCEPT, READ, SEND("HTTP/1.1 204 No Content\r\n"), REPEAT("a: b\r\n", 201), AWAIT},
         {0}, ERR_TOO_LARGE, 0, NULL, "header section", ""},
        {"64 KiB in a line",
         {ACCEPT, READ, SEND("HTTP/1.1 204 No Content\r\na: "), REPEAT("0123456789", 6600),
          SEND("\r\n\r\n"), AWAIT},
         {0}, ERR_TOO_LARGE, 0, NULL, "header section", ""},
        {"interim heads without end",
         {ACCEPT, READ, REPEAT("HTTP/1.1 103 Hints\r\nLink: 0123456789\r\n\r\n", 9000), AWAIT},
         {0}, ERR_TOO_LARGE, 0, NULL, "header section", ""},
        {"trailer without end",
         {ACCEPT, READ, SEND(CHUNKED_HEAD "0\r\n"), REPEAT("a: b\r\n", 300), AWAIT},
         {0}, ERR_TOO_LARGE, 200, NULL, "header section", ""},

        {"garbage", {ACCEPT, READ, SEND("\x01\x02 what is this?\r\n\r\n"), CLOSE},
         {0}, ERR_NETWORK, 0, NULL, "not HTTP", ""},
        {"another protocol", {ACCEPT, SEND("220 mail ready\r\n"), READ, CLOSE},
         {0}, ERR_NETWORK, 0, NULL, "not HTTP", ""},
        {"bad chunk", {ACCEPT, READ, SEND(CHUNKED_HEAD "zz\r\n"), CLOSE},
         {0}, ERR_NETWORK, 200, NULL, "127.0.0.1", ""},
        {"no answer", {ACCEPT, READ, CLOSE}, {0}, ERR_NETWORK, 0, NULL, "without an answer", ""},
        {"reset before the answer", {ACCEPT, READ, RESET}, {0}, ERR_NETWORK, 0, NULL, "broke", ""},
        {"reset in the answer", {ACCEPT, READ, SEND_PART(HELLO, 60), RESET},
         {0}, ERR_NETWORK, 0, NULL, "broke", ""},
        {"reset in a body until close",
         {ACCEPT, READ, SEND("HTTP/1.0 200 OK\r\n\r\npart"), RESET},
         {0}, ERR_NETWORK, 0, NULL, "broke", ""},

        {"no first byte", {ACCEPT, READ, AWAIT}, {.first_byte_ms = 60},
         ERR_TIMEOUT, 0, NULL, "did not begin to answer within 60 ms", ""},
        {"stall in the head", {ACCEPT, READ, SEND_PART(HELLO, 20), AWAIT}, {.idle_ms = 60},
         ERR_TIMEOUT, 0, NULL, "no byte for 60 ms", ""},
        {"stall in the body", {ACCEPT, READ, SEND_PART(HELLO, sizeof HELLO - 3), AWAIT},
         {.idle_ms = 60}, ERR_TIMEOUT, 200, "hel", "no byte for 60 ms", ""},
        {"total", {ACCEPT, READ, SEND_PART(HELLO, sizeof HELLO - 3), AWAIT}, {.total_ms = 400},
         ERR_TIMEOUT, 200, "hel", "did not finish its answer within 400 ms", ""},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        struct answer answer;
        struct address address;
        world_init(&world);
        server_start(&server, rows[i].steps);
        struct client_options options = options_for(&address, &server), given = rows[i].options;
        options.method = given.method;
        options.body = given.body;
        options.body_bytes_max = given.body_bytes_max;
        options.first_byte_ms = given.first_byte_ms;
        options.idle_ms = given.idle_ms;
        options.total_ms = given.total_ms;
        msec before = steady_ms();
        ask(&answer, &world, &options);
        assert_true(steady_ms() - before < PATIENCE_MS / 2);
        world_done(&world);
        server_join(&server);

        expect(&answer, rows[i].name, rows[i].err, rows[i].reason);
        if (rows[i].status) assert_int_equal(answer.status, rows[i].status);
        assert_int_equal(answer.heads, answer.status != 0);
        assert_true(answer.sent);
        if (rows[i].body) assert_str(buf_str(&answer.body), str_c(rows[i].body));
        if (!server_saw(&server, rows[i].seen))
            fail_msg("%s: no \"%s\" in \"%.*s\"", rows[i].name, rows[i].seen,
                     STR_ARG(buf_str(&server.seen)));
        answer_done(&answer);
        server_done(&server);
    }
}

/* An answer cut off at any byte, in order or by a reset, is never complete. `enough` bytes are: of
 * the line feed that ends a chunked body libcurl does not wait for, when nothing can follow any
 * more. */
static void cuts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t enough;
    } rows[] = {{HELLO, sizeof HELLO - 1}, {CHUNKS, sizeof CHUNKS - 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        world_init(&world);
        size_t whole = strlen(rows[i].bytes);
        for (size_t n = 0; n < 2 * whole; n++) {
            bool reset = n > whole;
            size_t len = reset ? n - whole - 1 : n; /* a reset may also eat what stands before it */
            struct step steps[] = {ACCEPT,
                                   READ,
                                   {len ? DO_SEND : DO_CLOSE, rows[i].bytes, len},
                                   {reset ? DO_RESET : DO_CLOSE, NULL, 0},
                                   STOP};
            struct server server;
            struct answer answer;
            struct address address;
            server_start(&server, steps);
            struct client_options options = options_for(&address, &server);
            ask(&answer, &world, &options);
            server_join(&server);
            if ((answer.err == OK) != (len >= rows[i].enough && !reset) ||
                (answer.err && answer.err != ERR_NETWORK))
                fail_msg("cut at %zu of \"%s\": %s", len, rows[i].bytes, err_code(answer.err));
            assert_true(answer.sent);
            answer_done(&answer);
            server_done(&server);
        }
        world_done(&world);
    }
}

static void large_body(str sent)
{
    enum { LARGE = 100 * 1024 };
    static const struct step steps[] = {ACCEPT, READ,
                                        SEND("HTTP/1.1 200 OK\r\nContent-Length: 102400\r\n\r\n"),
                                        REPEAT("0123456789abcdef", LARGE / 16), STOP};
    struct world world;
    struct server server;
    struct answer answer;
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    options.method = "POST";
    options.body = sent;
    options.trickles = sent.len % 2; /* in smaller pieces, the same bytes */
    ask(&answer, &world, &options);
    world_done(&world);
    server_join(&server);
    expect(&answer, "large", OK, "");
    assert_int_equal(answer.body.len, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        assert_int_equal(answer.body.p[i], "0123456789abcdef"[i % 16]);
    assert_true(str_ends(buf_str(&server.seen), options.body));
    assert_false(server_saw(&server, "Expect:")); /* it would cost a round trip */
    answer_done(&answer);
    server_done(&server);
}

/* Small ones go out with the head, larger ones in pieces. */
static void large_bodies(void **state)
{
    (void)state;
    enum { SENT = 2 * 1024 * 1024 };
    static const size_t sizes[] = {1, CLIENT_WHOLE_BYTES_MAX, CLIENT_WHOLE_BYTES_MAX + 1, SENT};
    char *sent = malloc(SENT);
    assert_non_null(sent);
    for (size_t i = 0; i < SENT; i++) sent[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < COUNT(sizes); i++) large_body((str){sent, sizes[i]});
    free(sent);
}

static void headers_are_kept(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(HELLO), STOP};
    struct world world;
    struct server server;
    struct answer answer;
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    begin(&answer, &world, &options);
    answer.port = server.port;
    world_run(&world);
    world_done(&world);
    server_join(&server);
    assert_str(buf_str(&answer.type), STR("text/x-test"));
    answer_done(&answer);
    server_done(&server);
}

/* ---- connections ---- */

/* Ask one after the other; `accepted` says how many connections that took. */
static void ask_twice(str body)
{
    static const struct {
        const char *name;
        struct step steps[STEPS_MAX];
        bool once;
        enum err second;
        size_t accepted;
        /* clang-format off */
    } rows[] = {
        {"kept", {ACCEPT, READ, SEND(HELLO), READ, SEND(HELLO)}, false, OK, 1},
        {"closed between", {ACCEPT, READ, SEND(HELLO), CLOSE, ACCEPT, READ, SEND(HELLO)},
         false, OK, 2},
        {"closed under the second request: sent again",
         {ACCEPT, READ, SEND(HELLO), READ, CLOSE, ACCEPT, READ, SEND(HELLO)}, false, OK, 2},
        {"once: a new connection", {ACCEPT, READ, SEND(HELLO), ACCEPT, READ, SEND(HELLO)},
         true, OK, 2},
        {"once: not sent again", {ACCEPT, READ, SEND(HELLO), ACCEPT, READ, CLOSE},
         true, ERR_NETWORK, 2},
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        struct answer first, second;
        struct address address;
        world_init(&world);
        server_start(&server, rows[i].steps);
        struct client_options options = options_for(&address, &server);
        options.method = "POST";
        options.body = body;
        ask(&first, &world, &options);
        expect(&first, rows[i].name, OK, "");
        options.once = rows[i].once;
        ask(&second, &world, &options);
        expect(&second, rows[i].name, rows[i].second, "without an answer");
        world_done(&world);
        server_join(&server);
        assert_int_equal(server.accepted, rows[i].accepted);
        answer_done(&first);
        answer_done(&second);
        server_done(&server);
    }
}

/* With a body that goes out with its head, and with one that is sent in pieces. */
static void connections(void **state)
{
    (void)state;
    static char large[CLIENT_WHOLE_BYTES_MAX + 1];
    memset(large, 'b', sizeof large);
    ask_twice(STR("body"));
    ask_twice((str){large, sizeof large});
}

static void at_the_same_time(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT,      READ,   SEND(HELLO), ACCEPT,      READ,
                                        SEND(HELLO), ACCEPT, READ,        SEND(HELLO), STOP};
    struct world world;
    struct server server;
    struct answer answers_[3];
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    for (size_t i = 0; i < COUNT(answers_); i++) begin(&answers_[i], &world, &options);
    world_run(&world);
    world_done(&world);
    server_join(&server);
    for (size_t i = 0; i < COUNT(answers_); i++) {
        expect(&answers_[i], "at the same time", OK, "");
        answer_done(&answers_[i]);
    }
    server_done(&server);
}

/* A port that is bound and does not listen refuses. */
static void refused(void **state)
{
    (void)state;
    int fd = bound_socket();
    struct world world;
    struct answer answer;
    struct address address;
    world_init(&world);
    struct client_options options = options_to(&address, bound_port(fd), "127.0.0.1");
    ask(&answer, &world, &options);
    expect(&answer, "refused", ERR_NETWORK, "cannot connect to 127.0.0.1:");
    expect(&answer, "refused", ERR_NETWORK, "check that it is running");
    assert_false(answer.sent);
    answer_done(&answer);
    world_done(&world);
    close(fd);
}

/* A listener whose queue is full lets the first packet of a connection fall. */
static void connect_timeout(void **state)
{
    (void)state;
    int listener = bound_socket(), waiting[8];
    struct sockaddr_in bound;
    socklen_t len = sizeof bound;
    getsockname(listener, (struct sockaddr *)&bound, &len);
    assert_return_code(listen(listener, 0), errno);
    for (size_t i = 0; i < COUNT(waiting); i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(waiting[i], (struct sockaddr *)&bound, len);
    }
    struct world world;
    struct answer answer;
    struct address address;
    world_init(&world);
    struct client_options options = options_to(&address, ntohs(bound.sin_port), "127.0.0.1");
    options.connect_ms = 80;
    ask(&answer, &world, &options);
    expect(&answer, "connect", ERR_TIMEOUT, "no connection to 127.0.0.1:");
    expect(&answer, "connect", ERR_TIMEOUT, "within 80 ms");
    assert_false(answer.sent);
    answer_done(&answer);
    world_done(&world);
    for (size_t i = 0; i < COUNT(waiting); i++) close(waiting[i]);
    close(listener);
}

/* ---- what cannot be sent ---- */

static void invalid(void **state)
{
    (void)state;
    static char long_url[CLIENT_URL_BYTES_MAX + 20] = "http://127.0.0.1/";
    memset(long_url + strlen(long_url), 'x', sizeof long_url - strlen(long_url) - 1);
    static const struct client_header spaced = {"a b", SECRET}, split = {"A", SECRET "\r\nB: c"},
                                      length = {"Content-Length", "5"};
    static const struct client_options rows[] = {
        {.url = NULL},
        {.url = ""},
        {.url = SECRET},
        {.url = "//" SECRET "@host/"},
        {.url = "http://"},
        {.url = "http://user:" SECRET "@/"},
        {.url = "http://a b/" SECRET},
        {.url = "http://127.0.0.1/\r\nX: " SECRET},
        {.url = "http://127.0.0.1:99999/" SECRET},
        {.url = "ftp://user:" SECRET "@127.0.0.1/"},
        {.url = "file:///etc/passwd?" SECRET},
        {.url = "gopher://127.0.0.1/" SECRET},
        {.url = long_url},
        {.url = "http://127.0.0.1/", .method = "GE T"},
        {.url = "http://127.0.0.1/", .method = ""},
        {.url = "http://127.0.0.1/", .method = "HEAD", .body = {SECRET, 6}},
        {.url = "http://127.0.0.1/", .headers = &spaced, .header_count = 1},
        {.url = "http://127.0.0.1/", .headers = &split, .header_count = 1},
        {.url = "http://127.0.0.1/", .headers = &length, .header_count = 1},
        {.url = "http://127.0.0.1/", .headers = &length, .header_count = CLIENT_FIELDS_MAX + 1},
    };
    struct world world;
    world_init(&world);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct answer answer;
        ask(&answer, &world, &rows[i]);
        expect(&answer, rows[i].url ? rows[i].url : "no URL", ERR_INVALID_FIELD, "");
        assert_false(answer.sent);
        answer_done(&answer);
    }
    world_done(&world);
}

static void too_many(void **state)
{
    (void)state;
    struct world world;
    world_init(&world);
    struct answer *all = calloc(CLIENT_REQUESTS_MAX + 1, sizeof *all);
    assert_non_null(all);
    struct client_options options = {.url = "http://127.0.0.1/"};
    for (size_t i = 0; i <= CLIENT_REQUESTS_MAX; i++) begin(&all[i], &world, &options);
    for (size_t i = 0; i < CLIENT_REQUESTS_MAX; i++) cancel(&all[i]);
    world_run(&world);
    world_done(&world);
    expect(&all[CLIENT_REQUESTS_MAX], "one too many", ERR_BUSY, "more than 4096 requests");
    assert_false(all[CLIENT_REQUESTS_MAX].sent);
    for (size_t i = 0; i < CLIENT_REQUESTS_MAX; i++) assert_int_equal(all[i].dones, 0);
    free(all);
}

/* Every spelling of this machine's address, and a kept connection that leads to it. */
static void public_only(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(HELLO), AWAIT, STOP};
    static const char *const hosts[] = {"127.0.0.1", "127.1",   "0x7f000001",         "2130706433",
                                        "0177.1",    "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]",
                                        "localhost", "[::]"};
    struct world world;
    struct server server;
    struct answer answer;
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    ask(&answer, &world, &options);
    expect(&answer, "allowed", OK, "");
    answer_done(&answer);
    for (size_t i = 0; i < COUNT(hosts); i++) {
        options = options_to(&address, server.port, hosts[i]);
        options.public_only = true;
        options.proxy = NULL;
        ask(&answer, &world, &options);
        expect(&answer, hosts[i], ERR_FORBIDDEN_HOST, "private network");
        assert_false(answer.sent);
        answer_done(&answer);
    }
    world_done(&world);
    server_join(&server);
    assert_int_equal(server.accepted, 1);
    server_done(&server);
}

/* ---- the end before the end ---- */

static void cancelling(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND_PART(CHUNKS, sizeof CHUNKS - 6), AWAIT,
                                        STOP};
    static const struct {
        int cancel, bodies;
    } rows[] = {{CANCEL_IN_HEAD, 0}, {CANCEL_IN_BODY, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        struct answer answer;
        struct address address;
        world_init(&world);
        server_start(&server, steps);
        struct client_options options = options_for(&address, &server);
        begin(&answer, &world, &options);
        answer.cancel = rows[i].cancel;
        world_run(&world);
        world_done(&world);
        server_join(&server);
        assert_int_equal(answer.heads, 1);
        assert_int_equal(answer.bodies, rows[i].bodies);
        assert_int_equal(answer.dones, 0);
        answer_done(&answer);
        server_done(&server);
    }
}

static void cancel_in_done(void **state)
{
    (void)state;
    static const struct step steps[] = {ACCEPT, READ, SEND(HELLO), STOP};
    struct world world;
    struct server server;
    struct answer answer;
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    begin(&answer, &world, &options);
    answer.cancel = CANCEL_IN_DONE;
    world_run(&world);
    world_done(&world);
    server_join(&server);
    assert_int_equal(answer.dones, 1);
    expect(&answer, "cancel in done", OK, "");
    answer_done(&answer);
    server_done(&server);
}

/* One request's callback stops another that is waiting for its answer, and one that never began. */
struct stopper {
    struct answer answer; /* first: on_done takes it */
    struct answer *victims;
};

static void on_done_stop_others(void *arg, enum err e, const struct fault *reason)
{
    struct stopper *stopper = arg;
    cancel(&stopper->victims[0]);
    begin(&stopper->victims[1], stopper->answer.world,
          &(struct client_options){.url = "http://x/"});
    cancel(&stopper->victims[1]);
    on_done(arg, e, reason);
}

static void cancel_others(void **state)
{
    (void)state;
    static const struct step silence[] = {ACCEPT, READ, AWAIT, STOP};
    static const struct step steps[] = {ACCEPT, READ, SEND(HELLO), STOP};
    static const struct client_ops stopping = {on_head, on_body, on_done_stop_others};
    struct world world;
    struct server silent, server; /* two, for nobody knows which request connects first */
    struct answer victims[2];
    struct stopper stopper = {.victims = victims};
    struct address silent_address, address;
    world_init(&world);
    server_start(&silent, silence);
    server_start(&server, steps);
    struct client_options silent_options = options_for(&silent_address, &silent);
    struct client_options options = options_for(&address, &server);
    begin(&victims[0], &world, &silent_options);
    answer_init(&stopper.answer, &world);
    world.open++;
    stopper.answer.request = client_send(world.client, &options, &stopping, &stopper);
    world_run(&world);
    world_done(&world);
    server_join(&silent);
    server_join(&server);
    assert_int_equal(stopper.answer.dones, 1);
    for (size_t i = 0; i < COUNT(victims); i++) {
        assert_int_equal(victims[i].heads + victims[i].dones, 0);
        answer_done(&victims[i]);
    }
    answer_done(&stopper.answer);
    server_done(&silent);
    server_done(&server);
}

/* client_free ends what waits for an answer, what has part of it, and what was never sent. */
static void free_with_open_requests(void **state)
{
    (void)state;
    static const struct step steps[] = {
        ACCEPT, READ, ACCEPT, READ, SEND_PART(HELLO, sizeof HELLO - 3), AWAIT, STOP};
    struct world world;
    struct server server;
    struct answer answers_[3];
    struct address address;
    world_init(&world);
    server_start(&server, steps);
    struct client_options options = options_for(&address, &server);
    options.total_ms = 100; /* of the second, which stops the loop */
    begin(&answers_[1], &world, &options);
    options.total_ms = 0;
    begin(&answers_[0], &world, &options);
    world.open = 1;
    world_run(&world);
    world.open = 2;
    begin(&answers_[2], &world, &options);
    world_done(&world);
    server_join(&server);
    for (size_t i = 0; i < COUNT(answers_); i++) {
        assert_int_equal(answers_[i].dones, 1);
        expect(&answers_[i], "freed", i == 1 ? ERR_TIMEOUT : ERR_CANCELLED, "");
        assert_int_equal(answers_[i].sent, i != 2);
        answer_done(&answers_[i]);
    }
    server_done(&server);
}

/* ---- proxies ---- */

static void proxies(void **state)
{
    (void)state;
    static const struct step plain[] = {ACCEPT, READ, SEND(HELLO), STOP};
    static const struct step refusing[] = {
        ACCEPT, READ, SEND("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"), CLOSE, STOP};
    static const struct {
        const char *name, *url, *variable, *no_proxy;
        const struct step *steps;
        enum err err;
        const char *reason, *seen;
    } rows[] = {
        {"given, absolute form", "http://target.invalid/p?key=" SECRET, NULL, NULL, plain, OK, "",
         "GET http://target.invalid/p?key="},
        {"given counts more than no_proxy", "http://target.invalid/p", NULL, "*", plain, OK, "",
         "GET http://target.invalid/p"},
        {"given, tunnel refused", "https://target.invalid/", NULL, NULL, refusing, ERR_NETWORK,
         "the proxy refused a tunnel to target.invalid with status 407",
         "CONNECT target.invalid:443 HTTP/1.1"},
        {"from http_proxy", "http://target.invalid/p", "http_proxy", NULL, plain, OK, "",
         "GET http://target.invalid/p"},
        {"from https_proxy", "https://target.invalid/p", "https_proxy", "other.invalid", refusing,
         ERR_NETWORK, "refused", "CONNECT target.invalid:443 HTTP/1.1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        struct answer answer;
        char proxy[100];
        world_init(&world);
        server_start(&server, rows[i].steps);
        snprintf(proxy, sizeof proxy, "http://user:%s@127.0.0.1:%u", SECRET, server.port);
        if (rows[i].variable) setenv(rows[i].variable, proxy, 1);
        if (rows[i].no_proxy) setenv("no_proxy", rows[i].no_proxy, 1);
        ask(&answer, &world,
            &(struct client_options){.url = rows[i].url, .proxy = rows[i].variable ? NULL : proxy});
        if (rows[i].variable) unsetenv(rows[i].variable);
        unsetenv("no_proxy");
        world_done(&world);
        server_join(&server);
        expect(&answer, rows[i].name, rows[i].err, rows[i].reason);
        if (!server_saw(&server, rows[i].seen) || !server_saw(&server, "Proxy-Authorization: "))
            fail_msg("%s: proxy saw \"%.*s\"", rows[i].name, STR_ARG(buf_str(&server.seen)));
        assert_int_equal(answer.sent, rows[i].err == OK); /* a tunnel is not the request */
        answer_done(&answer);
        server_done(&server);
    }
}

static void no_proxy(void **state)
{
    (void)state;
    static const struct {
        const char *no_proxy, *proxy;
    } rows[] = {{"127.0.0.1,localhost", NULL}, {"", ""}};
    static const struct step steps[] = {ACCEPT, READ, SEND(HELLO), STOP};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct server server;
        struct answer answer;
        struct address address;
        world_init(&world);
        server_start(&server, steps);
        struct client_options options = options_for(&address, &server);
        options.proxy = rows[i].proxy;
        setenv("http_proxy", "http://127.0.0.1:1", 1);
        setenv("no_proxy", rows[i].no_proxy, 1);
        ask(&answer, &world, &options);
        unsetenv("http_proxy");
        unsetenv("no_proxy");
        world_done(&world);
        server_join(&server);
        expect(&answer, "no_proxy", OK, "");
        assert_true(server_saw(&server, "GET /some/path?"));
        answer_done(&answer);
        server_done(&server);
    }
}

/* ---- Unix sockets ---- */

static int bound_unix(const char *folder, const char *name)
{
    int folder_fd = open(folder, O_PATH | O_DIRECTORY);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder_fd, name);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    close(folder_fd);
    return fd;
}

/* Two requests, so that a kept connection must not lead to the wrong place. */
static void unix_sockets(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        size_t accepted;
        struct step steps[STEPS_MAX];
    } rows[] = {
        {"short", 1, {ACCEPT, READ, SEND(HELLO), READ, SEND(HELLO)}},
        {"long-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-"
         "0123456789-0123456789-0123456789-0123456789-0123456789",
         2,
         {ACCEPT, READ, SEND(HELLO), ACCEPT, READ, SEND(HELLO)}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char base[] = "/tmp/fermata-client-XXXXXX", folder[200], path[220];
        assert_non_null(mkdtemp(base));
        snprintf(folder, sizeof folder, "%s/%s", base, rows[i].folder);
        assert_return_code(mkdir(folder, 0700), errno);
        snprintf(path, sizeof path, "%s/sock", folder);
        struct world world;
        struct server server;
        struct answer answer;
        world_init(&world);
        server_begin(&server, bound_unix(folder, "sock"), rows[i].steps);
        for (int n = 0; n < 2; n++) {
            ask(&answer, &world,
                &(struct client_options){.url = "http://local/x", .unix_path = path});
            expect(&answer, path, OK, "");
            assert_str(buf_str(&answer.body), STR("hello"));
            answer_done(&answer);
        }
        server_join(&server);
        assert_int_equal(server.accepted, rows[i].accepted);
        assert_true(server_saw(&server, "Host: local"));
        server_done(&server);

        unlink(path);
        ask(&answer, &world, &(struct client_options){.url = "http://local/x", .unix_path = path});
        expect(&answer, path, ERR_NETWORK, path);
        answer_done(&answer);
        world_done(&world);
        rmdir(folder);
        rmdir(base);
    }
}

/* ---- TLS ---- */

static const char make_certificates[] =
    "set -e\n"
    "ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
    "for n in ca stranger; do\n"
    "  openssl req -x509 $ec -keyout $n.key -out $n.pem -subj /CN=$n -days 2\n"
    "done\n"
    "leaf() {\n"
    "  openssl req $ec -keyout $1.key -out $1.csr -subj /CN=leaf\n"
    "  echo subjectAltName=$2 > $1.ext\n"
    "  openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days $3 \\\n"
    "    -extfile $1.ext -out $1.pem\n"
    "}\n"
    "leaf good DNS:localhost,IP:127.0.0.1 2\n"
    "leaf misnamed DNS:elsewhere.example 2\n"
    "leaf expired DNS:localhost,IP:127.0.0.1 -1\n";

/* One server for each way to go wrong; their ports on one line; all end with standard input. */
static const char node_script[] =
    "const fs = require('fs'), h2 = require('http2'), https = require('https'),\n"
    "      net = require('net'), tls = require('tls');\n"
    "const pair = n => ({key: fs.readFileSync(n + '.key'), cert: fs.readFileSync(n + '.pem')});\n"
    "let sockets = 0;\n"
    "const hello = (q, r) => r.end(q.method === 'PUT' ? '0123456789abcdef'.repeat(512 * 1024)\n"
    "  : `tls ${q.httpVersion} over ${sockets}`);\n"
    "const head = 'HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\n';\n"
    "const cut = raw => {\n"
    "  const t = new tls.TLSSocket(raw, {isServer: true, ...pair('good')});\n"
    "  t.on('error', () => {});\n"
    "  t.once('data', () => t.write(head + 'part', () => raw.destroy()));\n"
    "};\n"
    "const old = {minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0'};\n"
    "const servers = [\n"
    "  h2.createSecureServer({...pair('good'), allowHTTP1: true}, hello)\n"
    "    .on('secureConnection', () => sockets++),\n"
    "  https.createServer(pair('good'), hello),\n"
    "  https.createServer(pair('misnamed'), hello),\n"
    "  https.createServer(pair('expired'), hello),\n"
    "  https.createServer({...pair('good'), ...old}, hello),\n"
    "  net.createServer(cut),\n"
    "  h2.createSecureServer(pair('good')).on('stream', s => {\n"
    "    s.on('error', () => {}).respond({':status': 200, 'content-length': 10});\n"
    "    s.write('part', () => s.close(h2.constants.NGHTTP2_INTERNAL_ERROR));\n"
    "  }),\n"
    "];\n"
    "Promise.all(servers.map(s => new Promise(f => s.listen(0, '127.0.0.1', () =>\n"
    "  f(s.address().port))))).then(ports => console.log(ports.join(' ')));\n"
    "process.stdin.resume().on('end', () => process.exit());\n";

enum tls_server { HTTP2, HTTP1, MISNAMED, EXPIRED, OLD_TLS, CUT, HTTP2_CUT, TLS_SERVER_COUNT };

struct tls {
    char folder[40];
    char ca[60], stranger[60];
    unsigned ports[TLS_SERVER_COUNT];
    pid_t pid;
    int input; /* ends the servers when closed */
};

static pid_t spawn(const char *folder, char *const argv[], int input, int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void make_all_certificates(struct tls *tls)
{
    char script[sizeof make_certificates + 100];
    snprintf(script, sizeof script, "exec 2> log\n%s", make_certificates);
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", script, NULL};
    int status = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = spawn(tls->folder, argv, null, null);
    close(null);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void start_servers(struct tls *tls)
{
    char *argv[] = {(char *)(uintptr_t) "node", (char *)(uintptr_t) "-e",
                    (char *)(uintptr_t)node_script, NULL};
    int input[2], output[2];
    assert_return_code(pipe2(input, O_CLOEXEC), errno);
    assert_return_code(pipe2(output, O_CLOEXEC), errno);
    tls->pid = spawn(tls->folder, argv, input[0], output[1]);
    tls->input = input[1];
    close(input[0]);
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    assert_non_null(lines);
    for (size_t i = 0; i < TLS_SERVER_COUNT; i++)
        assert_int_equal(fscanf(lines, "%u", &tls->ports[i]), 1);
    fclose(lines);
}

static int tls_setup(void **state)
{
    static struct tls tls;
    tls = (struct tls){.folder = "/tmp/fermata-tls-XXXXXX"};
    assert_non_null(mkdtemp(tls.folder));
    snprintf(tls.ca, sizeof tls.ca, "%s/ca.pem", tls.folder);
    snprintf(tls.stranger, sizeof tls.stranger, "%s/stranger.pem", tls.folder);
    make_all_certificates(&tls);
    start_servers(&tls);
    *state = &tls;
    return 0;
}

static int tls_teardown(void **state)
{
    struct tls *tls = *state;
    static const char *const stems[] = {"ca", "stranger", "good", "misnamed", "expired"};
    static const char *const ends[] = {"key", "pem", "csr", "ext", "srl"};
    char path[100];
    close(tls->input);
    waitpid(tls->pid, NULL, 0);
    for (size_t i = 0; i < COUNT(stems) * COUNT(ends); i++) {
        snprintf(path, sizeof path, "%s/%s.%s", tls->folder, stems[i / COUNT(ends)],
                 ends[i % COUNT(ends)]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/log", tls->folder);
    unlink(path);
    return rmdir(tls->folder);
}

static struct client_options tls_options(const struct tls *tls, enum tls_server server,
                                         struct address *address)
{
    struct client_options options = options_to(address, (uint16_t)tls->ports[server], "127.0.0.1");
    char rest[sizeof address->url];
    snprintf(rest, sizeof rest, "%s", address->url + strlen("http"));
    snprintf(address->url, sizeof address->url, "https%s", rest);
    options.ca_file = tls->ca;
    return options;
}

static void tls_verdicts(void **state)
{
    const struct tls *tls = *state;
    const struct {
        const char *name;
        enum tls_server server;
        const char *ca_file;
        enum err err;
        const char *reason, *body;
    } rows[] = {
        {"HTTP/2", HTTP2, tls->ca, OK, "", "tls 2.0 over 1"},
        {"HTTP/1.1", HTTP1, tls->ca, OK, "", "tls 1.1 over"},
        {"wrong authority", HTTP1, tls->stranger, ERR_NETWORK, "not accepted", ""},
        {"system authorities", HTTP1, NULL, ERR_NETWORK, "not accepted", ""},
        {"no such file", HTTP1, "/nonexistent.pem", ERR_CONFIG, "file of authorities", ""},
        {"wrong name", MISNAMED, tls->ca, ERR_NETWORK, "not accepted", ""},
        {"expired", EXPIRED, tls->ca, ERR_NETWORK, "certificate has expired", ""},
        {"TLS 1.1", OLD_TLS, tls->ca, ERR_NETWORK, "TLS 1.2 or later", ""},
        {"cut", CUT, tls->ca, ERR_NETWORK, "complete", "part"},
        {"HTTP/2 cut", HTTP2_CUT, tls->ca, ERR_NETWORK, "broke off", "part"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world;
        struct answer answer;
        struct address address;
        world_init(&world);
        struct client_options options = tls_options(tls, rows[i].server, &address);
        options.ca_file = rows[i].ca_file;
        ask(&answer, &world, &options);
        world_done(&world);
        expect(&answer, rows[i].name, rows[i].err, rows[i].reason);
        if (!str_starts(buf_str(&answer.body), str_c(rows[i].body)))
            fail_msg("%s: got \"%.*s\"", rows[i].name, STR_ARG(buf_str(&answer.body)));
        assert_int_equal(answer.sent, rows[i].body[0] != 0);
        answer_done(&answer);
    }
}

/* Many requests to an HTTP/2 server share the connection that the first one made. */
static void http2_shares(void **state)
{
    const struct tls *tls = *state;
    struct world world;
    struct answer first, later[20];
    struct address address;
    world_init(&world);
    struct client_options options = tls_options(tls, HTTP2, &address);
    ask(&first, &world, &options);
    expect(&first, "first", OK, "");
    for (size_t i = 0; i < COUNT(later); i++) begin(&later[i], &world, &options);
    world_run(&world);
    world_done(&world);
    for (size_t i = 0; i < COUNT(later); i++) {
        expect(&later[i], "later", OK, "");
        assert_str(buf_str(&later[i].body), buf_str(&first.body)); /* it counts connections */
        answer_done(&later[i]);
    }
    answer_done(&first);
}

/* TLS to the server through a proxy that sees only the tunnel. */
static void tls_through_proxy(void **state)
{
    const struct tls *tls = *state;
    const struct step steps[] = {ACCEPT, READ,
                                 SEND("HTTP/1.1 200 Connected\r\nProxy-Header: x\r\n\r\n"),
                                 RELAY(tls->ports[HTTP1]), STOP};
    struct world world;
    struct server proxy;
    struct answer answer;
    struct address address;
    char proxy_url[60];
    world_init(&world);
    server_start(&proxy, steps);
    struct client_options options = tls_options(tls, HTTP1, &address);
    snprintf(proxy_url, sizeof proxy_url, "http://127.0.0.1:%u", proxy.port);
    options.proxy = proxy_url;
    ask(&answer, &world, &options);
    world_done(&world);
    server_join(&proxy);
    expect(&answer, "tunnel", OK, "");
    assert_int_equal(answer.heads, 1);
    assert_true(server_saw(&proxy, "CONNECT 127.0.0.1:"));
    assert_false(server_saw(&proxy, SECRET));
    answer_done(&answer);
    server_done(&proxy);
}

/* ---- one request, waited for ---- */

static void calling(void **state)
{
    (void)state;
    static const struct {
        size_t body_max;
        struct step steps[STEPS_MAX];
        enum err err;
    } rows[] = {
        {100, {ACCEPT, READ, SEND(HELLO)}, OK},
        {8, {ACCEPT, READ, SEND(HELLO)}, OK},
        {7, {ACCEPT, READ, SEND(HELLO), AWAIT}, ERR_TOO_LARGE},
        {3, {ACCEPT, READ, SEND(HELLO)}, ERR_TOO_LARGE},
        {100, {ACCEPT, READ, SEND_PART(HELLO, sizeof HELLO - 3), CLOSE}, ERR_NETWORK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct server server;
        struct address address;
        struct fault reason = {0};
        struct buf body;
        int status = 77;
        buf_init(&body, rows[i].body_max);
        buf_append(&body, STR("old"));
        server_start(&server, rows[i].steps);
        struct client_options options = options_for(&address, &server);
        assert_int_equal(client_call(&options, &status, &body, &reason), rows[i].err);
        server_join(&server);
        assert_int_equal(reason.err, rows[i].err);
        assert_int_equal(status, rows[i].err ? 77 : 200);
        assert_str(buf_str(&body), rows[i].err ? STR("old") : STR("oldhello"));
        buf_done(&body);
        server_done(&server);
    }
}

/* ---- answers held back ---- */

enum { HELD_BYTES = 8 * 1024 * 1024 };

/* A reader that pauses in each piece, or once, and is let go by a timer. */
struct reader {
    struct world *world;
    struct client_request *request;
    struct timer *timer;
    enum { PAUSE_ALWAYS, PAUSE_ONCE, PAUSE_IN_HEAD } when;
    enum { THEN_RESUME, THEN_CANCEL, THEN_NOTHING } then;
    msec pause_ms;
    bool paused;
    uint64_t received;
    size_t pauses;
    int dones;
    enum err err;
};

static void hold_back(struct reader *reader)
{
    assert_false(reader->paused);
    reader->paused = true;
    reader->pauses++;
    client_pause(reader->request);
    client_pause(reader->request);
    timer_start(reader->timer, reader->pause_ms);
}

static void on_pause_over(void *arg)
{
    struct reader *reader = arg;
    if (reader->then == THEN_NOTHING) {
        loop_stop(reader->world->loop);
        return;
    }
    if (reader->then == THEN_CANCEL) {
        client_cancel(reader->request);
        one_less(reader->world);
        return;
    }
    uint64_t before = reader->received;
    reader->paused = false;
    client_resume(reader->request);
    client_resume(reader->request);
    assert_true(reader->received == before); /* never from inside */
}

static void on_held_head(void *arg, struct client_request *request, int status)
{
    struct reader *reader = arg;
    (void)request;
    assert_int_equal(status, 200);
    if (reader->when == PAUSE_IN_HEAD) hold_back(reader);
}

static void on_held_body(void *arg, str bytes)
{
    struct reader *reader = arg;
    assert_false(reader->paused);
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.p[i] != "0123456789abcdef"[(reader->received + i) % 16])
            fail_msg("another byte at %llu", (unsigned long long)(reader->received + i));
    reader->received += bytes.len;
    if (reader->when == PAUSE_ALWAYS || (reader->when == PAUSE_ONCE && !reader->pauses))
        hold_back(reader);
}

static void on_held_done(void *arg, enum err e, const struct fault *reason)
{
    struct reader *reader = arg;
    (void)reason;
    reader->dones++;
    reader->err = e;
    timer_stop(reader->timer);
    one_less(reader->world);
}

static const struct client_ops held_ops = {on_held_head, on_held_body, on_held_done};

static void reader_run(struct reader *reader, struct world *world,
                       const struct client_options *options)
{
    reader->world = world;
    reader->timer = timer_new(world->loop, on_pause_over, reader);
    world->open++;
    reader->request = client_send(world->client, options, &held_ops, reader);
    world_run(world);
}

static void pausing(void **state)
{
    (void)state;
#define HELD_HEAD    "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n"
#define HELD_CHUNKED CHUNKED_HEAD "800000\r\n"
    static const struct {
        const char *name, *head, *tail;
        struct reader reader;
        msec idle_ms, total_ms;
        uint64_t body_max;
        int dones;
        enum err err;
        bool whole;
    } rows[] = {
        {"in each piece", HELD_HEAD, "", {.when = PAUSE_ALWAYS}, 0, 0, 0, 1, OK, true},
        {"in each piece of chunks",
         HELD_CHUNKED,
         "\r\n0\r\n\r\n",
         {.when = PAUSE_ALWAYS},
         0,
         0,
         0,
         1,
         OK,
         true},
        {"once", HELD_HEAD, "", {.when = PAUSE_ONCE, .pause_ms = 20}, 0, 0, 0, 1, OK, true},
        {"in the head",
         HELD_HEAD,
         "",
         {.when = PAUSE_IN_HEAD, .pause_ms = 20},
         0,
         0,
         0,
         1,
         OK,
         true},
        {"longer than a peer may be quiet",
         HELD_HEAD,
         "",
         {.when = PAUSE_ONCE, .pause_ms = 1200},
         500,
         0,
         0,
         1,
         OK,
         true},
        {"longer than it may take",
         HELD_HEAD,
         "",
         {.when = PAUSE_ONCE, .pause_ms = 10 * 1000},
         0,
         300,
         0,
         1,
         ERR_TIMEOUT,
         false},
        {"too large",
         HELD_HEAD,
         "",
         {.when = PAUSE_ALWAYS},
         0,
         0,
         HELD_BYTES - 1,
         1,
         ERR_TOO_LARGE,
         false},
        {"too large in the first piece",
         HELD_HEAD,
         "",
         {.when = PAUSE_IN_HEAD},
         0,
         0,
         1,
         1,
         ERR_TOO_LARGE,
         false},
        {"then cancelled",
         HELD_HEAD,
         "",
         {.when = PAUSE_ONCE, .then = THEN_CANCEL},
         0,
         0,
         0,
         0,
         OK,
         false},
        {"then nothing",
         HELD_HEAD,
         "",
         {.when = PAUSE_ONCE, .then = THEN_NOTHING},
         0,
         0,
         0,
         0,
         OK,
         false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf block;
        buf_init(&block, 1 << 20);
        for (size_t k = 0; k < 4096; k++) buf_append(&block, STR("0123456789abcdef"));
        buf_char(&block, '\0');
        bool cut = !rows[i].whole; /* the client goes in the middle */
        const struct step whole[] = {ACCEPT,
                                     READ,
                                     SEND(rows[i].head),
                                     REPEAT(block.p, HELD_BYTES / 65536),
                                     {rows[i].tail[0] ? DO_SEND : DO_CLOSE, rows[i].tail, 0},
                                     STOP};
        const struct step part[] = {ACCEPT, READ, SEND(rows[i].head), REPEAT(block.p, 1),
                                    AWAIT,  STOP};
        const struct step most[] = {
            ACCEPT, READ, SEND(rows[i].head), REPEAT(block.p, HELD_BYTES / 65536), AWAIT, STOP};
        struct world world;
        struct server server;
        struct address address;
        struct reader reader = rows[i].reader;
        world_init(&world);
        server_start(&server, !cut ? whole : rows[i].body_max > 1 ? most : part);
        struct client_options options = options_for(&address, &server);
        options.idle_ms = rows[i].idle_ms;
        options.total_ms = rows[i].total_ms;
        options.body_bytes_max = rows[i].body_max;
        reader_run(&reader, &world, &options);
        assert_int_equal(reader.dones, rows[i].dones);
        if (reader.dones && reader.err != rows[i].err)
            fail_msg("%s: %s", rows[i].name, err_code(reader.err));
        if (rows[i].whole && (reader.received != HELD_BYTES || !reader.pauses))
            fail_msg("%s: %llu bytes, %zu pauses", rows[i].name,
                     (unsigned long long)reader.received, reader.pauses);
        client_free(world.client); /* one that is held back ends like any other */
        world.client = NULL;
        if (reader.then == THEN_NOTHING) assert_int_equal(reader.err, ERR_CANCELLED);
        timer_free(reader.timer);
        world_done(&world);
        server_join(&server);
        server_done(&server);
    }
}

/* While an answer is held back its server has to wait: it cannot get rid of more than the kernel
 * and libcurl take. */
static void back_pressure(void **state)
{
    (void)state;
    int unsent = 64 * 1024;
    AUTO(buf_done) struct buf block;
    buf_init(&block, 1 << 20);
    for (size_t k = 0; k < 4096; k++) buf_append(&block, STR("0123456789abcdef"));
    struct world world;
    struct address address;
    struct reader reader = {.when = PAUSE_ONCE, .then = THEN_NOTHING, .pause_ms = 1};
    int listener = bound_socket();
    setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &unsent, sizeof unsent);
    assert_return_code(listen(listener, 1), errno);
    world_init(&world);
    struct client_options options = options_to(&address, bound_port(listener), "127.0.0.1");
    reader.world = &world;
    reader.timer = timer_new(world.loop, on_pause_over, &reader);
    reader.request = client_send(world.client, &options, &held_ops, &reader);
    struct timer *turn = timer_new(world.loop, on_pause_over, &reader);
    timer_start(turn, 1); /* the connection is begun */
    loop_run(world.loop);
    int conn = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_return_code(conn, errno);
    str head = STR("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    assert_int_equal(send(conn, head.p, head.len, MSG_NOSIGNAL), head.len);
    size_t sent = 0;
    for (int quiet = 0; quiet < 50;) { /* turns in which not a byte could be sent */
        ssize_t count = send(conn, block.p + sent % 16, 65536 - sent % 16, MSG_NOSIGNAL);
        quiet = count > 0 ? 0 : quiet + 1;
        if (count > 0) sent += (size_t)count;
        assert_true(sent < 64 * 1024 * 1024);
        timer_start(turn, 1);
        loop_run(world.loop);
    }
    assert_true(reader.paused && reader.received > 0);
    assert_true(reader.received < 128 * 1024);
    client_cancel(reader.request);
    timer_free(turn);
    timer_free(reader.timer);
    world_done(&world);
    close(conn);
    close(listener);
}

static void tls_pausing(void **state)
{
    const struct tls *tls = *state;
    static const enum tls_server servers[] = {HTTP1, HTTP2};
    for (size_t i = 0; i < COUNT(servers); i++) {
        struct world world;
        struct address address;
        struct reader reader = {.when = PAUSE_ALWAYS};
        world_init(&world);
        struct client_options options = tls_options(tls, servers[i], &address);
        options.method = "PUT";
        reader_run(&reader, &world, &options);
        assert_int_equal(reader.dones, 1);
        assert_int_equal(reader.err, OK);
        assert_int_equal(reader.received, HELD_BYTES);
        timer_free(reader.timer);
        world_done(&world);
    }
}

static int ignore_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

int test_http_client(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(cuts),
        cmocka_unit_test(large_bodies),
        cmocka_unit_test(headers_are_kept),
        cmocka_unit_test(connections),
        cmocka_unit_test(at_the_same_time),
        cmocka_unit_test(refused),
        cmocka_unit_test(connect_timeout),
        cmocka_unit_test(invalid),
        cmocka_unit_test(too_many),
        cmocka_unit_test(public_only),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(cancel_in_done),
        cmocka_unit_test(cancel_others),
        cmocka_unit_test(free_with_open_requests),
        cmocka_unit_test(proxies),
        cmocka_unit_test(no_proxy),
        cmocka_unit_test(unix_sockets),
        cmocka_unit_test(calling),
        cmocka_unit_test(pausing),
        cmocka_unit_test(back_pressure),
    };
    const struct CMUnitTest tls_tests[] = {
        cmocka_unit_test(tls_verdicts),
        cmocka_unit_test(http2_shares),
        cmocka_unit_test(tls_through_proxy),
        cmocka_unit_test(tls_pausing),
    };
    return cmocka_run_group_tests_name("net/http_client", tests, ignore_sigpipe, NULL) +
           cmocka_run_group_tests_name("net/http_client over TLS", tls_tests, tls_setup,
                                       tls_teardown);
}

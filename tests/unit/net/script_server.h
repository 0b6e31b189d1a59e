/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a server that follows a script, one step after the other, on blocking sockets in a
 * thread of its own. Every wait is bounded by PATIENCE_MS; a step that cannot be done fails the
 * test in server_join.
 *
 *     static const struct step steps[] = {ACCEPT, READ, SEND("HTTP/1.1 200 OK\r\n..."), STOP};
 *     server_start(&server, steps);
 *     ... talk to server.port ...
 *     server_join(&server);
 *     assert_true(server_saw(&server, "GET / "));
 *     server_done(&server);
 */
#ifndef TESTS_SCRIPT_SERVER_H
#define TESTS_SCRIPT_SERVER_H

#include <pthread.h>

#include "base/buf.h"

enum { PATIENCE_MS = 60 * 1000, CONNS_MAX = 16 };

enum step_kind {
    DO_END,
    DO_ACCEPT,
    DO_READ,
    DO_SEND,
    DO_REPEAT,
    DO_AWAIT,
    DO_CLOSE,
    DO_RESET,
    DO_RELAY
};

struct step {
    enum step_kind kind;
    const char *text;
    size_t count;
};

/* clang-format off */
#define ACCEPT                 {DO_ACCEPT, NULL, 0} /* a new current connection; older ones stay open */
#define READ                   {DO_READ, NULL, 0}   /* one request, head and body */
#define SEND(text)             {DO_SEND, text, 0}
#define SEND_PART(text, count) {DO_SEND, text, count}
#define REPEAT(text, count)    {DO_REPEAT, text, count}
#define AWAIT                  {DO_AWAIT, NULL, 0} /* until the client goes */
#define CLOSE                  {DO_CLOSE, NULL, 0}
#define RESET                  {DO_RESET, NULL, 0}
#define RELAY(port)            {DO_RELAY, NULL, port} /* both ways, until either side ends */
#define STOP                   {DO_END, NULL, 0}
/* clang-format on */

struct server {
    const struct step *steps;
    int listener;
    uint16_t port;
    pthread_t thread;
    int conns[CONNS_MAX];
    /* To be read after server_join. */
    size_t accepted;
    struct buf seen; /* all requests */
    const char *failed;
};

void server_start(struct server *server, const struct step *steps);

/* The same on a socket that is bound already. */
void server_begin(struct server *server, int listener, const struct step *steps);

void server_join(struct server *server);
void server_done(struct server *server);

/* Does what it read hold this text? */
bool server_saw(const struct server *server, const char *text);

/* A TCP socket on 127.0.0.1 and any port, which does not listen yet; its port. */
int bound_socket(void);
uint16_t bound_port(int fd);

#endif

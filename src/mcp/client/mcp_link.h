/* SPDX-License-Identifier: Apache-2.0
 *
 * A way to an MCP server: JSON-RPC messages out and in, whole and in order. Two kinds: a child with
 * pipes (mcp_stdio.c) and streamable HTTP (mcp_http.c). Knows framing, sending and losing; what the
 * messages say is mcp.c's business. On the loop thread.
 *
 * Every request that was sent ends in one of two ways: the server's answer comes (on_message), or
 * on_lost says that none will. Nothing is sent twice by itself.
 */
#ifndef MCP_CLIENT_MCP_LINK_H
#define MCP_CLIENT_MCP_LINK_H

#include "base/err.h"
#include "base/str.h"

struct client;
struct wall;
struct loop;
struct mcp_link;
struct mcp_pair;

enum mcp_loss {
    MCP_AWAY, /* surely not done: not started, not connected, refused by HTTP (3xx and 4xx: 401, 403,
                 429 ...) */
    MCP_LOST, /* sent, and no whole answer: the child died, the stream broke, a time-out of HTTP, an HTTP
                 5xx, an answer that is no message */
    MCP_NO_SESSION, /* HTTP 404 or 400 to a session that we had: begin a new one; surely not done */
};

/* No callback comes from inside a function below, and none after mcp_link_free, which may be called
 * from inside each of them. Those that are NULL are not called. */
struct mcp_link_events {
    void (*on_open)(void *arg); /* messages may be sent */
    /* One message: a JSON object by json_scan's verdict, valid UTF-8 on one line, at most
     * MCP_MESSAGE_BYTES_MAX; borrowed. json_parse may still refuse it: a key twice in an inner object,
     * too many values. If it has our id it was the end of that request all the same. */
    void (*on_message)(void *arg, str json);
    /* HTTP only: the answer to a message names a session (Mcp-Session-Id), before the answer itself
     * comes. Not called when it names none. */
    void (*on_session)(void *arg, str session);
    /* request 0: a notification or a response of ours did not get through (HTTP only). */
    void (*on_lost)(void *arg, uint64_t request, enum mcp_loss loss, int http_status,
                    const struct fault *why);
    /* The whole link is gone; on_lost has come for every open request before. stdio: the child has
     * ended or speaks nonsense. HTTP never goes down by itself. */
    void (*on_down)(void *arg, const struct fault *why);
    void (*on_stderr)(void *arg, str line); /* of the child, for the log: any bytes, at most
                                               MCP_STDERR_LINE_BYTES_MAX, and so many lines a second;
                                               also what stands between the messages on its output */
};

struct mcp_header {
    str name, value;
};

/* What a message is sent with; everything is copied. */
struct mcp_post {
    str json;         /* one message on one line */
    uint64_t request; /* number of a request, from 1: its "id" as it stands in the message, by which
                         the answer is known; 0: a notification or a response */
    const struct mcp_header *headers; /* for HTTP beside the configured ones: Mcp-Session-Id,
                                         MCP-Protocol-Version, Mcp-Method, Mcp-Name ... */
    size_t header_count;
    msec quiet_ms; /* HTTP: longest silence of a stream before it counts as broken; 0: no limit */
};

/* `command` and `env` as in struct mcp_options. The child is started at once, on_open tells. It gets a
 * clean environment (PATH, HOME, LANG, TMPDIR, USER, TERM and `env`), no descriptor of ours but its three
 * and a fourth by which it dies with us (net/child.c), and lives behind the wall. */
struct mcp_link *mcp_stdio_new(struct loop *loop, const str *command, size_t command_count,
                               const struct mcp_pair *env, size_t env_count, struct wall *wall,
                               const struct mcp_link_events *events, void *arg);
/* `headers` are the configured ones; their values never stand in an error. */
struct mcp_link *mcp_http_new(struct client *client, str url, const struct mcp_pair *headers,
                              size_t header_count, const struct mcp_link_events *events, void *arg);

void mcp_link_send(struct mcp_link *link, const struct mcp_post *post);

/* HTTP: the standing stream for messages that answer no request (GET, 2025-06-18 and 2025-11-25), kept
 * open with growing rests; a server that has none (405) is left alone. stdio: nothing to do. */
void mcp_link_listen(struct mcp_link *link, const struct mcp_header *headers, size_t header_count);

/* No answer to this request is wanted any more: HTTP closes its stream. No on_lost for it. */
void mcp_link_forget(struct mcp_link *link, uint64_t request);

/* stdio: close the child's input, then SIGTERM, then SIGKILL; on_down tells when it is gone. HTTP:
 * DELETE of the session, if the headers name one, then on_down. Open requests are lost, and so is what
 * is sent after this. */
void mcp_link_close(struct mcp_link *link, const struct mcp_header *headers, size_t header_count);

/* Now: a child is killed. */
void mcp_link_free(struct mcp_link *link);

#endif

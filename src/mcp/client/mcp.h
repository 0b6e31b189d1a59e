/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools of MCP servers (docs/MCP.md): children that speak over their standard input and output, and
 * servers behind a URL. One object for each server keeps it running, knows its tools, and carries
 * calls to it. On the loop thread.
 *
 * A server is untrusted unless its row says otherwise: what it says of its tools (readOnlyHint and
 * others) changes nothing, and everything it sends has a limit (limits.h, MCP_*).
 *
 * What a server last offered is kept in the store, so that after a restart its tools are known before
 * it is reached, and an approval given meanwhile still fits.
 */
#ifndef MCP_CLIENT_MCP_H
#define MCP_CLIENT_MCP_H

#include "base/arena.h"
#include "tool/tool.h"

struct client;
struct loop;
struct mcp_server;
struct spool;
struct store;
struct wall;

struct mcp_pair {
    str name, value;
};

struct mcp_options {
    str name;           /* "files": its tools are called "files.read_file" */
    const str *command; /* program and arguments; count 0: by url */
    size_t command_count;
    const struct mcp_pair *env;
    size_t env_count;
    str url;
    const struct mcp_pair *headers;
    size_t header_count;
    bool trusted;
    const str *read, *idempotent; /* names of its tools or patterns, as the server has them */
    size_t read_count, idempotent_count;
    uint32_t timeout_s; /* of a call, waiting for people not counted; 0 = MCP_CALL_S */

    struct loop *loop;
    struct wall *wall; /* that the child lives behind; outlives the server. NULL: none */
    struct client *client;
    struct spool *spool; /* for long results; NULL: no call is made (`fermata check`) */
    struct store *store; /* where its tools are remembered; NULL: nowhere */
    /* The tools are others than before: mcp_tools has them. Never from inside a function below. */
    void (*on_tools)(void *arg, struct mcp_server *server);
    /* The server was reached, is gone, could not be started: for the log; why is "" when it is there. */
    void (*on_state)(void *arg, struct mcp_server *server, const char *why);
    /* A line that the child wrote to its standard error, for the log. May be NULL. */
    void (*on_stderr)(void *arg, struct mcp_server *server, str line);
    /* Something else for the log: a tool that is left out, a line of the server's own log, a message
     * that could not be read. `what` is one of a few constant words. May be NULL. */
    void (*on_note)(void *arg, struct mcp_server *server, const char *what, str text);
    void *arg;
};

/* Everything is copied. ERR_INVALID_FIELD names the option. Blocks for a moment: reads the store. The
 * server is started, or reached, in the background, and again with growing rests whenever it is gone. */
enum err mcp_server_new(const struct mcp_options *options, struct mcp_server **ret_server,
                        struct fault *reterr) MUST_USE;

/* Begin nothing more; calls under way go on until they end or are cancelled. on_stopped comes once,
 * perhaps at once: when the child is gone. A child that does not leave when its input is closed is
 * sent SIGTERM, and then SIGKILL. */
void mcp_server_stop(struct mcp_server *server, void (*on_stopped)(void *arg), void *arg);

/* After on_stopped, or at any time in a process that ends; its tools must not be used any more. */
void mcp_server_free(struct mcp_server *server);

str mcp_server_name(const struct mcp_server *server);

/* What it offers now, or offered last; the rows live as long as the server, also when there are
 * others. */
struct tools mcp_tools(const struct mcp_server *server);

/* "" if it is there, else why not, for people. */
const char *mcp_server_why(const struct mcp_server *server);

#endif

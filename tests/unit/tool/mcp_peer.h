/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the MCP client: a server behind a link that the test holds. What the client sends is
 * kept as text; what the server says is fed in. Time is real but short: pace_ms for everything.
 */
#ifndef TESTS_TOOL_MCP_PEER_H
#define TESTS_TOOL_MCP_PEER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "mcp/client/mcp_int.h"
#include "mcp/client/mcp_link_int.h"

enum { PEER_SENT_MAX = 64, PEER_STEPS_MAX = 2000 };

struct peer_post {
    str json;
    uint64_t request;
    char headers[512]; /* "Name: value\n" each */
    bool forgotten;
};

/* The fake link; one at a time. */
struct peer_link {
    struct mcp_link link;
    struct peer *peer;
};

struct peer_call {
    struct peer *peer;
    const struct tool *tool;
    struct tool_call *call;
    int ends;
    enum tool_end end;
    str content, result, error;
    size_t file_count;
    str file_mime[CALL_FILES_MAX], file_name[CALL_FILES_MAX], file_bytes[CALL_FILES_MAX];
    int asks;
    bool ended_asking;
    size_t first, question_count;
    struct tool_question questions[8];
    str state;
    int progress;
    str progress_text;
};

struct peer {
    struct arena arena;
    struct loop *loop;
    struct timer *guard, *tick;
    struct mcp_options options;
    struct mcp_ways ways;
    struct mcp_server *server;
    struct peer_link *link;
    int opened, listens, closes;
    bool no_open; /* on_open is not told by itself */
    struct peer_post sent[PEER_SENT_MAX];
    size_t sent_count, seen;
    int tools_told, states_told, stopped;
    char why[400];
    char notes[2000];
};

void peer_init(struct peer *peer, bool http);
void peer_begin(struct peer *peer); /* the server, as peer->options say */
void peer_done(struct peer *peer);
struct tool_request peer_request(const char *args);

/* Run the loop until `done` says so; the test fails if it never does. */
void peer_until(struct peer *peer, bool (*done)(struct peer *peer, void *arg), void *arg);
void peer_settle(struct peer *peer); /* what is due now */

/* The next message that was sent: waits for it. Its method must be this one ("": an answer). */
const struct peer_post *peer_next(struct peer *peer, const char *method);
const struct json *peer_json(struct peer *peer, const struct peer_post *post);
str peer_member(struct peer *peer, const struct peer_post *post,
                const char *path);    /* "params.name" */
bool peer_nothing(struct peer *peer); /* no message is waiting to be looked at */

void peer_say(struct peer *peer, const char *format, ...) PRINTF(2, 3); /* the server speaks */
void peer_answer(struct peer *peer, const struct peer_post *post, const char *result);
void peer_error(struct peer *peer, const struct peer_post *post, int code, const char *rest);
void peer_lose(struct peer *peer, const struct peer_post *post, enum mcp_loss loss, int status,
               const char *why);
void peer_down(struct peer *peer, const char *why);

/* Through the handshake, with these tools (a JSON list). */
void peer_up_modern(struct peer *peer, const char *tools);
void peer_up_legacy(struct peer *peer, const char *tools);

/* A call of the tool with this row name. */
void peer_call(struct peer *peer, struct peer_call *call, const char *tool,
               const struct tool_request *request);
void peer_wait_end(struct peer_call *call);
void peer_wait_ask(struct peer_call *call, int asks);

#endif

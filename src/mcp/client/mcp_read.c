/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of an MCP server read, long ones beside the loop. A short one is read at once. A long
 * one is copied and read on the thread pool: parsed, and if it is the result of a call also taken
 * apart, with the files in it.
 *
 *     short ──▶ parse ───────────────────────────────────▶ mcp_session_take
 *     long  ──▶ PARSING ──▶ a call's result? ── no ──────────▲
 *                              └── yes ──▶ TAKING ──▶ mcp_calls_result
 *
 * Invariants:
 * 1. A message that is being read touches no server: the server may be freed meanwhile.
 * 2. Messages may overtake a long one. Nothing depends on that: each request has its own answer.
 * 3. An answer that cannot be read still ends its request: the link counts it as answered.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_frame.h"
#include "mcp/client/mcp_int.h"
#include "mcp/client/mcp_result.h"

struct mcp_read {
    struct mcp_read *next;
    struct loop_work work;
    struct mcp_server *server; /* NULL: it is freed */
    struct arena arena;
    char *text;
    size_t len;
    enum err e;
    struct fault why;
    struct rpc_message message;
    uint64_t answers; /* of one that cannot be read */
    str locale;
    enum tool_end end;
    struct tool_result result;
};

/* Whose answer it is, as the link saw it; 0: nobody's. */
static uint64_t answers(str json)
{
    struct mcp_frame frame;
    struct mcp_message message = {0};
    mcp_frame_init(&frame, MCP_MESSAGE_BYTES_MAX);
    if (mcp_frame_add(&frame, json) || mcp_frame_end(&frame, &message)) message.answers = 0;
    mcp_frame_done(&frame);
    return message.answers;
}

static void take_unreadable(struct mcp_server *server, uint64_t number, const struct fault *why)
{
    mcp_note(server, "unreadable message", str_c(why->text));
    if (number) mcp_calls_unreadable(server, number, why);
}

/* ---- long ones ---- */

static void parse(struct loop_work *work)
{
    struct mcp_read *read = CONTAINER(work, struct mcp_read, work);
    str text = {read->text, read->len};
    read->e = rpc_parse(&read->arena, text, &read->message, &read->why);
    if (read->e) read->answers = answers(text);
}

static void take_apart(struct loop_work *work)
{
    struct mcp_read *read = CONTAINER(work, struct mcp_read, work);
    read->end = mcp_result_read(&read->arena, read->message.result, read->locale, &read->result);
}

static void read_free(struct mcp_read *read)
{
    if (read->server) {
        struct mcp_read **at = &read->server->reads;
        while (*at != read) at = &(*at)->next;
        *at = read->next;
        read->server->read_count--;
    }
    arena_done(&read->arena);
    free(read->text);
    free(read);
}

static void on_taken(struct loop_work *work)
{
    struct mcp_read *read = CONTAINER(work, struct mcp_read, work);
    if (read->server)
        mcp_calls_result(read->server, read->message.number, read->end, &read->result);
    read_free(read);
}

static void on_parsed(struct loop_work *work)
{
    struct mcp_read *read = CONTAINER(work, struct mcp_read, work);
    str locale = STR_EMPTY;
    if (!read->server) {
        read_free(read);
    } else if (read->e) {
        take_unreadable(read->server, read->answers, &read->why);
        read_free(read);
    } else if (mcp_calls_await(read->server, &read->message, &locale)) {
        read->locale = arena_str(&read->arena, locale);
        read->work = (struct loop_work){take_apart, on_taken};
        loop_work(read->server->options.loop, &read->work);
    } else {
        mcp_session_take(read->server, &read->message);
        read_free(read);
    }
}

void mcp_read_message(struct mcp_server *server, str json)
{
    if (json.len <= HTTP_TOOL_LOOP_BYTES_MAX || server->read_count == MCP_READS_MAX) {
        AUTO(arena_done) struct arena arena;
        struct rpc_message message = {0};
        struct fault why = {0};
        arena_init(&arena);
        if (rpc_parse(&arena, json, &message, &why))
            take_unreadable(server, answers(json), &why);
        else
            mcp_session_take(server, &message);
        return;
    }
    struct mcp_read *read = calloc(1, sizeof *read);
    if (!read || !(read->text = malloc(json.len))) abort();
    arena_init(&read->arena);
    memcpy(read->text, json.p, json.len);
    read->len = json.len;
    read->server = server;
    read->next = server->reads;
    server->reads = read;
    server->read_count++;
    read->work = (struct loop_work){parse, on_parsed};
    loop_work(server->options.loop, &read->work);
}

void mcp_reads_orphan(struct mcp_server *server)
{
    for (struct mcp_read *read = server->reads; read; read = read->next) read->server = NULL;
    server->reads = NULL;
}

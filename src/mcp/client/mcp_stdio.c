/* SPDX-License-Identifier: Apache-2.0
 *
 * A link to an MCP server that is a child of ours: one message a line on its input and output, and
 * words for people on its standard error.
 *
 *     mcp_stdio_new --> STARTING --on_start--> OPEN --close, hangup, a line too long--> CLOSING
 *                           |                   |                                         |
 *                           +-------------------+---------> on_end: DOWN <----------------+
 *                                                           on_lost for each request, then on_down
 *
 * A request that has no answer when the child ends was surely not done if nothing of it went into
 * the pipe, or if the program never ran (MCP_AWAY); else nobody knows (MCP_LOST). So each open request
 * remembers where it begins in all the bytes that we wrote.
 *
 * Real servers print banners and warnings on their standard output. A line that is no JSON object goes
 * where the lines of standard error go, and is otherwise passed over.
 *
 * Invariants:
 * 1. A request is in `open` from send until its answer, forget or on_lost; at most MCP_OPEN_MAX of
 *    them, and those that are refused until the end of the turn.
 * 2. Nothing is told from inside a function of the link: what is refused at once waits for `later`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "mcp/client/mcp.h"
#include "mcp/client/mcp_frame.h"
#include "mcp/client/mcp_link_int.h"
#include "net/child.h"
#include "net/loop.h"

enum mcp_stdio_state { STARTING, OPEN, CLOSING, DOWN };

struct open_request {
    uint64_t request;
    uint64_t begins;     /* behind this many bytes of all that were written */
    const char *refused; /* constant: why it was not written at all; NULL: it was */
};

struct stdio_link {
    struct mcp_link link;
    struct loop *loop;
    struct child *child;
    enum mcp_stdio_state state;
    struct mcp_lines lines;
    uint64_t written; /* given to child_write */
    struct open_request *open;
    size_t open_count, open_room;
    bool ran; /* the program did begin */
    struct loop_defer later;
    struct fault broken; /* why we ended it, if we did */

    struct buf errors; /* an unfinished line of standard error */
    msec window;       /* lines are counted from here on */
    unsigned told;
    uint64_t left_out;
};

/* ---- open requests ---- */

static bool take_open(struct stdio_link *s, uint64_t request)
{
    for (size_t i = 0; i < s->open_count; i++) {
        if (s->open[i].request != request) continue;
        memmove(&s->open[i], &s->open[i + 1], (s->open_count - i - 1) * sizeof s->open[0]);
        s->open_count--;
        return true;
    }
    return false;
}

static void on_later(struct loop_defer *defer)
{
    struct stdio_link *s = CONTAINER(defer, struct stdio_link, later);
    mcp_link_enter(&s->link);
    for (size_t i = 0; i < s->open_count && !s->link.down;) {
        struct open_request lost = s->open[i];
        if (!lost.refused) {
            i++;
            continue;
        }
        struct fault why;
        fault(&why, ERR_BUSY, "%s", lost.refused);
        take_open(s, lost.request);
        mcp_link_tell_lost(&s->link, lost.request, MCP_AWAY, 0, &why);
        i = 0;
    }
    mcp_link_leave(&s->link);
}

/* ---- what people read ---- */

static void tell_left_out(struct stdio_link *s)
{
    if (!s->left_out) return;
    char text[96];
    int len = snprintf(text, sizeof text, "(%llu more lines were left out)",
                       (unsigned long long)s->left_out);
    s->left_out = 0;
    mcp_link_tell_stderr(&s->link, (str){text, (size_t)len});
}

static void tell_line(struct stdio_link *s, str line)
{
    msec now = loop_now(s->loop);
    if (!line.len) return;
    if (now - s->window >= MCP_STDERR_MS) {
        tell_left_out(s);
        s->window = now;
        s->told = 0;
    }
    if (s->told >= MCP_STDERR_LINES_MAX) {
        s->left_out++;
        return;
    }
    s->told++;
    mcp_link_tell_stderr(&s->link, line);
}

static void end_error_line(struct stdio_link *s)
{
    str line = buf_str(&s->errors);
    if (str_ends(line, STR("\r"))) line.len--;
    if (s->link.down) return;
    tell_line(s, line);
    buf_clear(&s->errors);
}

/* Lines longer than the limit are told cut. */
static void take_errors(struct stdio_link *s, str bytes)
{
    while (bytes.len && !s->link.down) {
        const char *end = memchr(bytes.p, '\n', bytes.len);
        str piece = {bytes.p, end ? (size_t)(end - bytes.p) : bytes.len};
        bytes = str_drop(bytes, piece.len + (end != NULL));
        size_t room = MCP_STDERR_LINE_BYTES_MAX - s->errors.len;
        if (piece.len > room) piece.len = room;
        buf_append(&s->errors, piece);
        if (end) end_error_line(s);
    }
}

/* ---- what the child says ---- */

static bool on_line(void *arg, const struct mcp_message *message)
{
    struct stdio_link *s = arg;
    if (message->answers) take_open(s, message->answers);
    mcp_link_tell_message(&s->link, message->json);
    return !s->link.down;
}

static bool on_noise(void *arg, str beginning)
{
    struct stdio_link *s = arg;
    tell_line(s, beginning);
    return !s->link.down;
}

static const struct mcp_lines_ops lines_ops = {on_line, on_noise};

static void on_output(void *arg, enum child_stream stream, str bytes)
{
    struct stdio_link *s = arg;
    mcp_link_enter(&s->link);
    if (stream == CHILD_ERR) {
        take_errors(s, bytes);
    } else if (!s->broken.err && mcp_lines_read(&s->lines, bytes, &lines_ops, s)) {
        fault(&s->broken, ERR_TOO_LARGE, "the server sent a message of more than %d MiB",
              MCP_MESSAGE_BYTES_MAX / 1024 / 1024);
        s->state = CLOSING;
        child_stop(s->child, 0);
    }
    mcp_link_leave(&s->link);
}

static void on_start(void *arg)
{
    struct stdio_link *s = arg;
    mcp_link_enter(&s->link);
    s->ran = true;
    if (s->state == STARTING) {
        s->state = OPEN;
        mcp_link_tell_open(&s->link);
    }
    mcp_link_leave(&s->link);
}

/* Most often it is about to end by itself, and says more clearly why. */
static void on_hangup(void *arg)
{
    struct stdio_link *s = arg;
    s->state = CLOSING;
    child_stop(s->child, MCP_STOP_MS);
}

static void on_end(void *arg, const struct fault *why)
{
    struct stdio_link *s = arg;
    mcp_link_enter(&s->link);
    if (s->broken.err) why = &s->broken;
    end_error_line(s);
    tell_left_out(s);
    s->state = DOWN;
    /* Callers' code may send, forget or free meanwhile: each is taken off the list before it is told. */
    while (s->open_count && !s->link.down) {
        struct open_request lost = s->open[0];
        take_open(s, lost.request);
        bool seen = s->ran && !lost.refused && child_taken(s->child) > lost.begins;
        mcp_link_tell_lost(&s->link, lost.request, seen ? MCP_LOST : MCP_AWAY, 0, why);
    }
    mcp_link_tell_down(&s->link, why);
    mcp_link_leave(&s->link);
}

static const struct child_ops child_ops = {
    .on_start = on_start, .on_output = on_output, .on_hangup = on_hangup, .on_end = on_end};

/* ---- what the owner asks ---- */

/* One message and its line end go in together, or not at all: then why. */
static const char *write_message(struct stdio_link *s, str json)
{
    if (s->state == CLOSING || s->state == DOWN) return "the server is being ended";
    if (json.len > MCP_MESSAGE_BYTES_MAX) return "the message is too long for a server";
    struct buf line;
    buf_init(&line, json.len + 1);
    buf_append(&line, json);
    buf_char(&line, '\n');
    enum err e = child_write(s->child, buf_str(&line));
    if (!e) s->written += line.len;
    buf_done(&line);
    if (e == ERR_TOO_LARGE) return "the server does not read what was sent before";
    return e ? "the server has closed its input" : NULL;
}

/* A response that cannot be written would leave the server waiting for it, and us not knowing; a
 * server that reads nothing for so long is ended. */
static void stdio_send(struct mcp_link *link, const struct mcp_post *post)
{
    struct stdio_link *s = CONTAINER(link, struct stdio_link, link);
    assert(!memchr(post->json.p, '\n', post->json.len));
    uint64_t begins = s->written;
    bool full = post->request && s->open_count >= MCP_OPEN_MAX;
    const char *refused =
        full ? "too many calls wait for the server" : write_message(s, post->json);
    if (refused && s->state == OPEN && !post->request) {
        fault(&s->broken, ERR_BUSY, "%s", refused);
        s->state = CLOSING;
        child_stop(s->child, MCP_STOP_MS);
    }
    if (!post->request) return;
    if (s->open_count == s->open_room) {
        s->open_room = s->open_room ? 2 * s->open_room : 8;
        s->open = reallocarray(s->open, s->open_room, sizeof s->open[0]);
        if (!s->open) abort();
    }
    s->open[s->open_count++] = (struct open_request){post->request, begins, refused};
    if (refused) loop_defer(s->loop, &s->later);
}

static void stdio_listen(struct mcp_link *link, const struct mcp_header *headers,
                         size_t header_count)
{
    (void)link, (void)headers, (void)header_count;
}

static void stdio_forget(struct mcp_link *link, uint64_t request)
{
    take_open(CONTAINER(link, struct stdio_link, link), request);
}

static void stdio_close(struct mcp_link *link, const struct mcp_header *headers,
                        size_t header_count)
{
    (void)headers, (void)header_count;
    struct stdio_link *s = CONTAINER(link, struct stdio_link, link);
    if (s->state == STARTING || s->state == OPEN) s->state = CLOSING;
    if (!link->down) child_stop(s->child, MCP_STOP_MS);
}

static void stdio_stop(struct mcp_link *link)
{
    struct stdio_link *s = CONTAINER(link, struct stdio_link, link);
    loop_defer_cancel(s->loop, &s->later);
    child_free(s->child);
    s->child = NULL;
}

static void stdio_release(struct mcp_link *link)
{
    struct stdio_link *s = CONTAINER(link, struct stdio_link, link);
    mcp_lines_done(&s->lines);
    buf_done(&s->errors);
    free(s->open);
    free(s);
}

static const struct mcp_link_ops stdio_ops = {.send = stdio_send,
                                              .listen = stdio_listen,
                                              .forget = stdio_forget,
                                              .close = stdio_close,
                                              .stop = stdio_stop,
                                              .release = stdio_release};

/* ---- the beginning ---- */

/* Ours holds keys to models and stores, which a server has no business with. */
static const char *const inherited[] = {"PATH", "HOME", "LANG", "TMPDIR", "USER", "TERM"};

static bool is_given(str name, const struct mcp_pair *env, size_t env_count)
{
    for (size_t i = 0; i < env_count; i++)
        if (str_eq(env[i].name, name)) return true;
    return false;
}

static size_t make_env(struct arena *arena, const struct mcp_pair *env, size_t env_count, str *out)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT(inherited); i++) {
        const char *value = getenv(inherited[i]);
        if (value && !is_given(str_c(inherited[i]), env, env_count))
            out[count++] = arena_printf(arena, "%s=%s", inherited[i], value);
    }
    for (size_t i = 0; i < env_count; i++)
        out[count++] =
            arena_printf(arena, "%.*s=%.*s", STR_ARG(env[i].name), STR_ARG(env[i].value));
    return count;
}

struct mcp_link *mcp_stdio_new(struct loop *loop, const str *command, size_t command_count,
                               const struct mcp_pair *env, size_t env_count, struct wall *wall,
                               const struct mcp_link_events *events, void *arg)
{
    struct stdio_link *s = calloc(1, sizeof *s);
    if (!s) abort();
    mcp_link_init(&s->link, &stdio_ops, events, arg);
    s->loop = loop;
    s->later.fn = on_later;
    s->window = loop_now(loop);
    mcp_lines_init(&s->lines, MCP_MESSAGE_BYTES_MAX);
    buf_init(&s->errors, MCP_STDERR_LINE_BYTES_MAX);

    struct arena arena;
    arena_init(&arena);
    str *list = arena_array(&arena, COUNT(inherited) + env_count, sizeof *list);
    struct child_options options = {.command = command,
                                    .command_count = command_count,
                                    .env = list,
                                    .env_count = make_env(&arena, env, env_count, list),
                                    .input_bytes_max = MCP_MESSAGE_BYTES_MAX + 1,
                                    .wall = wall};
    s->child = child_new(loop, &options, &child_ops, s);
    arena_done(&arena);
    return &s->link;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata mcp`: the MCP server of this machine as a program that talks over its standard streams,
 * for agents that start such programs. It holds nothing: each line is a POST to the running server,
 * and its answer is a line.
 *
 *     stdin ── reader thread ── loop: one request each ── fermata.sock/desk, or --url/mcp
 *                                 │                                                  │
 *     stdout ◄── lines ───────────┴── answers, in the order in which they come ◄─────┘
 *
 * The server is found by --url or FERMATA_URL; else by the socket in the data folder, which only who
 * owns the folder can open. The key is FERMATA_API_KEY: without a login none is needed, and with one
 * the socket asks for it, too, since a question has to be somebody's.
 *
 * Invariants:
 * 1. Standard output has protocol and nothing else, one message a line, each written whole.
 * 2. Every request gets one answer, unless it was cancelled or the input ended: its own, or an error
 *    that says what to do. A server that is away costs that answer and no more.
 * 3. Each request has a connection of its own: one that waits holds up no other, and none is lost to
 *    a connection that a restarted server does not know any more.
 * 4. A request is never sent twice: a question without a key would be asked twice.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/say.h"
#include "config/commands.h"
#include "mcp/server/mcp_protocol.h"
#include "net/http_client.h"
#include "net/loop.h"

struct post;

struct bridge {
    struct loop *loop;
    struct client *client;
    struct timer *grace; /* for answers that are on their way when the input has ended */
    const char *url, *socket, *key;
    struct post *posts; /* under way */
    size_t count;
    bool ended;  /* the input has */
    bool broken; /* the output is */
    pthread_t reader;
    sem_t room; /* for lines between the reader and the loop */
};

/* ---- output ---- */

/* Bytes of JSON on one line: an end of line in it can only stand between two tokens. */
static void print_line(struct bridge *bridge, str json)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, json.len + 1);
    buf_append(&out, json);
    for (size_t i = 0; i < out.len; i++)
        if (out.p[i] == '\n' || out.p[i] == '\r') out.p[i] = ' ';
    buf_char(&out, '\n');
    for (size_t done = 0; done < out.len && !bridge->broken;) {
        ssize_t n = write(STDOUT_FILENO, out.p + done, out.len - done);
        struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (n > 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            poll(&ready, 1, -1);
        else if (errno != EINTR)
            bridge->broken = true;
    }
    if (bridge->broken) loop_stop(bridge->loop); /* nobody reads what we say */
}

static void print_error(struct bridge *bridge, str id, int code, const char *text)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    print_line(bridge, desk_error(&arena, id, code, str_c(text)));
}

/* ---- one request ---- */

struct post {
    struct bridge *bridge;
    struct post *prev, *next;
    struct client_request *request;
    int status;
    bool answered; /* by it, if it is a request; a notification is not */
    struct buf body;
    size_t id_len;
    char id[]; /* JSON */
};

static str post_id(const struct post *post)
{
    return (str){post->id, post->id_len};
}

static void post_free(struct post *post)
{
    struct bridge *bridge = post->bridge;
    *(post->prev ? &post->prev->next : &bridge->posts) = post->next;
    if (post->next) post->next->prev = post->prev;
    bridge->count--;
    buf_done(&post->body);
    free(post);
    if (bridge->ended && !bridge->count) loop_stop(bridge->loop);
}

/* An answer of the protocol is passed on; any other is an error of ours. */
static void print_answer(const struct post *post)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    str body = buf_str(&post->body);
    arena_init(&arena);
    bool parsed = body.len && json_parse(&arena, body, &json, NULL) == OK;
    if (parsed && json_get(json, STR("jsonrpc"))) {
        print_line(post->bridge, body);
        return;
    }
    /* What a refusal of the server means to whoever started us. */
    static const struct {
        int status;
        const char *advice;
    } known[] = {
        {401, "The server wants a key: set FERMATA_API_KEY to one that `fermata key add` made"},
        {503, "The server is stopping; try again when it is back"},
        {429, "Too many requests at once; try again in a second"},
    };
    char text[256];
    snprintf(text, sizeof text, "The server answered %d: %s", post->status,
             say(json_text(json_get(json, STR("detail")))).text);
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].status == post->status) snprintf(text, sizeof text, "%s", known[i].advice);
    print_error(post->bridge, post_id(post), DESK_AWAY, text);
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct post *post = arg;
    (void)request;
    post->status = status;
}

static void on_body(void *arg, str bytes)
{
    struct post *post = arg;
    buf_append(&post->body, bytes);
}

static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct post *post = arg;
    struct bridge *bridge = post->bridge;
    char text[256];
    bool sent = client_request_sent(post->request);
    post->request = NULL;
    if (e == ERR_CANCELLED || !post->answered) { /* the end, or nobody waits for it */
        post_free(post);
        return;
    }
    if (e && sent)
        snprintf(text, sizeof text,
                 "The server went away before it answered. What was asked stays: call again with "
                 "the same key, or get_answer");
    else if (e && bridge->url)
        snprintf(text, sizeof text, "No Fermata server at %s (%.60s); start it, then try again",
                 say(str_c(bridge->url)).text, reason ? reason->text : "");
    else if (e)
        snprintf(text, sizeof text,
                 "No Fermata server on %s; start `fermata serve` there, or name it with --url or "
                 "--data, then try again",
                 say(str_c(bridge->socket)).text);
    if (e)
        print_error(bridge, post_id(post), DESK_AWAY, text);
    else
        print_answer(post);
    post_free(post);
}

static const struct client_ops post_ops = {on_head, on_body, on_done};

/* ---- headers ---- */

static bool header_safe(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] < ' ' || text.p[i] > '~') return false;
    return text.len && text.p[0] != ' ' && text.p[text.len - 1] != ' ' &&
           !str_starts(text, STR("=?base64?"));
}

enum { HEADERS_MAX = 8 };

/* What a POST has to say of its body, if it is of the modern kind. */
static size_t headers_of(struct arena *arena, const struct bridge *bridge, const struct json *root,
                         struct client_header out[static HEADERS_MAX])
{
    const struct json *params = json_get(root, STR("params"));
    const struct json *meta = json_get(params, STR("_meta"));
    str version = json_text(json_get(meta, STR("io.modelcontextprotocol/protocolVersion")));
    str method = json_text(json_get(root, STR("method")));
    str name = json_text(json_get(params, STR("name")));
    size_t count = 0;
    out[count++] = (struct client_header){"Content-Type", "application/json"};
    out[count++] = (struct client_header){"Accept", "application/json, text/event-stream"};
    out[count++] = (struct client_header){"Connection", "close"};
    if (bridge->key)
        out[count++] = (struct client_header){"Authorization",
                                              arena_printf(arena, "Bearer %s", bridge->key).p};
    if (!version.len || !header_safe(version) || !header_safe(method)) return count;
    out[count++] = (struct client_header){"MCP-Protocol-Version", arena_cstr(arena, version)};
    out[count++] = (struct client_header){"Mcp-Method", arena_cstr(arena, method)};
    if (!name.len) return count;
    const char *text = name.p;
    if (header_safe(name)) {
        text = arena_cstr(arena, name);
    } else {
        char *base64 = arena_alloc(arena, BASE64_BYTES(name.len));
        crypto_base64(name, base64);
        text = arena_printf(arena, "=?base64?%s?=", base64).p;
    }
    out[count++] = (struct client_header){"Mcp-Name", text};
    return count;
}

/* ---- lines ---- */

static void post_new(struct bridge *bridge, struct arena *arena, str line, const struct json *root,
                     str id)
{
    struct client_header headers[HEADERS_MAX];
    size_t count = headers_of(arena, bridge, root, headers);
    struct post *post = calloc(1, sizeof *post + id.len + 1);
    if (!post) abort();
    post->bridge = bridge;
    post->answered = id.len;
    post->id_len = id.len;
    memcpy(post->id, id.p, id.len);
    buf_init(&post->body, DESK_ANSWER_BYTES_MAX);
    post->next = bridge->posts;
    if (post->next) post->next->prev = post;
    bridge->posts = post;
    bridge->count++;
    post->request = client_send(
        bridge->client,
        &(struct client_options){.method = "POST",
                                 .url = bridge->url ? bridge->url : "http://localhost/desk",
                                 .unix_path = bridge->url ? NULL : bridge->socket,
                                 .headers = headers,
                                 .header_count = count,
                                 .body = line,
                                 .once = true,
                                 .first_byte_ms = DESK_ANSWER_MS_MAX,
                                 .body_bytes_max = DESK_ANSWER_BYTES_MAX},
        &post_ops, post);
}

/* The client does not want the answer of this request any more. The question itself stays. */
static void cancel(struct bridge *bridge, const struct json *root)
{
    const struct json *id = json_get(json_get(root, STR("params")), STR("requestId"));
    for (struct post *post = bridge->posts; id && post; post = post->next) {
        if (!str_eq(post_id(post), id->raw)) continue;
        client_cancel(post->request);
        post_free(post);
        return;
    }
}

static void take_line(struct bridge *bridge, str line)
{
    AUTO(arena_done) struct arena arena;
    struct json *root = NULL;
    arena_init(&arena);
    if (json_parse(&arena, line, &root, NULL) || root->type != JSON_OBJECT) {
        print_error(bridge, STR_EMPTY, DESK_PARSE_ERROR, "A line must be one JSON-RPC message");
        return;
    }
    const struct json *id = json_get(root, STR("id"));
    str method = json_text(json_get(root, STR("method"))), raw = id ? id->raw : STR_EMPTY;
    if (str_eq(method, STR("notifications/cancelled")))
        cancel(bridge, root);
    else if (raw.len > DESK_RPC_ID_BYTES_MAX)
        print_error(bridge, STR_EMPTY, DESK_INVALID_REQUEST, "id is too long");
    else if (bridge->count >= DESK_BRIDGE_POSTS_MAX && raw.len)
        print_error(bridge, raw, DESK_AWAY, "Too many requests at once; wait for an answer first");
    else if (bridge->count < DESK_BRIDGE_POSTS_MAX)
        post_new(bridge, &arena, line, root, raw);
}

/* ---- input ---- */

/* A line on its way from the reader to the loop, or what the reader has to say instead. */
struct mcp_main_line {
    struct loop_task task;
    struct bridge *bridge;
    bool end, too_long;
    size_t len;
    char text[];
};

static void on_grace(void *arg)
{
    struct bridge *bridge = arg;
    loop_stop(bridge->loop);
}

static void on_line(struct loop_task *task)
{
    struct mcp_main_line *line = (struct mcp_main_line *)(void *)task;
    struct bridge *bridge = line->bridge;
    str text = str_trim((str){line->text, line->len});
    if (line->end) {
        bridge->ended = true;
        timer_start(bridge->grace, bridge->count ? DESK_GRACE_MS : 0);
    } else if (line->too_long) {
        print_error(bridge, STR_EMPTY, DESK_INVALID_REQUEST, "A message may have 512 KiB");
    } else if (text.len && !bridge->ended) {
        take_line(bridge, text);
    }
    free(line);
    sem_post(&bridge->room);
}

static void hand_over(struct bridge *bridge, str text, bool too_long, bool end)
{
    struct mcp_main_line *line = calloc(1, sizeof *line + text.len + 1);
    if (!line) abort();
    line->task.fn = on_line;
    line->bridge = bridge;
    line->end = end;
    line->too_long = too_long;
    line->len = text.len;
    if (text.len) memcpy(line->text, text.p, text.len);
    while (sem_wait(&bridge->room)) continue; /* EINTR */
    loop_post(bridge->loop, &line->task);
}

/* Complete lines of what has been read. One that is too long is skipped to its end. */
static void take_bytes(struct bridge *bridge, struct buf *kept, str bytes, bool *skipping)
{
    while (bytes.p && bytes.len) {
        bool whole = str_find_char(bytes, '\n') >= 0;
        str piece = str_split(&bytes, '\n');
        if (!*skipping) buf_append(kept, piece);
        bool too_long = kept->full && !*skipping;
        if (too_long) hand_over(bridge, STR_EMPTY, true, false);
        if (whole && !*skipping && !too_long) hand_over(bridge, buf_str(kept), false, false);
        *skipping = !whole && (*skipping || too_long);
        if (whole || *skipping) buf_clear(kept);
    }
}

/* A thread of its own, because standard input may be a file, a pipe or a terminal. */
static void *read_input(void *arg)
{
    struct bridge *bridge = arg;
    AUTO(buf_done) struct buf kept;
    char bytes[DESK_READ_BYTES];
    bool skipping = false;
    buf_init(&kept, DESK_BODY_BYTES_MAX);
    for (;;) {
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        take_bytes(bridge, &kept, (str){bytes, (size_t)n}, &skipping);
    }
    if (kept.len) hand_over(bridge, buf_str(&kept), false, false); /* the last without its end */
    hand_over(bridge, STR_EMPTY, false, true);
    return NULL;
}

/* ---- life ---- */

/* "http://host:8080" or "http://host:8080/mcp", with whatever prefix. */
static const char *mcp_url(struct arena *arena, str url)
{
    if (!url.len) return NULL;
    while (str_ends(url, STR("/"))) url.len--;
    if (str_ends(url, STR("/mcp"))) return arena_cstr(arena, url);
    return arena_printf(arena, "%.*s/mcp", STR_ARG(url)).p;
}

int mcp_main(const struct config *config, struct arena *arena, const struct args *args)
{
    str url = args->url.len ? args->url : str_c(getenv("FERMATA_URL"));
    struct bridge bridge = {
        .url = mcp_url(arena, url),
        .socket = arena_printf(arena, "%s/fermata.sock", config->data.p).p,
        .key = config->api_key.len ? arena_cstr(arena, config->api_key) : NULL,
    };
    bridge.loop = loop_new();
    bridge.client = client_new(bridge.loop);
    bridge.grace = timer_new(bridge.loop, on_grace, &bridge);
    sem_init(&bridge.room, 0, DESK_LINES_MAX);
    bool reads = !pthread_create(&bridge.reader, NULL, read_input, &bridge);
    if (!reads) bridge.broken = true;
    if (reads) loop_run(bridge.loop);
    /* The reader may sit in read() for good: with the output gone the process just ends. */
    if (reads && !bridge.ended) _exit(EXIT_OK);
    if (reads) pthread_join(bridge.reader, NULL);
    client_free(bridge.client);
    timer_free(bridge.grace);
    loop_free(bridge.loop);
    sem_destroy(&bridge.room);
    return bridge.broken && !bridge.ended ? EXIT_FAILED : EXIT_OK;
}

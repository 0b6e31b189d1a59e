/* SPDX-License-Identifier: Apache-2.0
 *
 * An MCP server as the rest of Fermata knows it: options, the list of its tools, what is remembered
 * of it, and its end. The session to it is in mcp_session.c, calls are in mcp_call.c, the messages
 * in mcp_rpc.c, definitions in mcp_tools.c, results in mcp_result.c.
 *
 *     mcp_link ── messages ──▶ mcp_read ──▶ mcp_session ──▶ mcp_calls ──▶ on_end, on_ask
 *        ▲                                     │
 *        └──────────── requests ───────────────┤
 *                                              └── definitions ──▶ mcp_offer ──▶ on_tools
 *                                                                     └──▶ the store
 *
 * Invariants:
 * 1. A list that was offered stays until the server is freed: calls and approvals point into it. So
 *    there are at most MCP_LISTS_MAX different ones, of at most MCP_KEPT_BYTES_MAX together; a
 *    server that has used them up keeps its last list. One that it offers again is the same list
 *    again.
 * 2. What is remembered is one setting for each definition and one with their number and checksum,
 *    in the scope "mcp/<name>". If they do not fit together there is nothing.
 */
#include "mcp/client/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "mcp/client/mcp_int.h"
#include "store/db/store.h"
#include "store/table/settings.h"
#include "tool/tools.h"
#include "tool/value.h"

enum { SECRET_BYTES_MIN = 6, ROW_NAME_BYTES = 24, SCOPE_BYTES = 4 + MCP_NAME_BYTES_MAX + 1 };

/* ---- notes ---- */

static void hide(char *text, size_t len, str secret)
{
    if (secret.len < SECRET_BYTES_MIN) return; /* it would hide ordinary words */
    for (str rest = {text, len}; rest.len;) {
        ptrdiff_t at = str_find(rest, secret);
        if (at < 0) break;
        rest = str_drop(rest, (size_t)at);
        memset(text + (rest.p - text), '*', secret.len);
        rest = str_drop(rest, secret.len);
    }
}

/* Paths and numbers are no secrets, and a failure is hard to understand without them. */
static bool names_secret(str name)
{
    static const char *const words[] = {"key", "token", "secret", "pass", "credential", "auth"};
    for (size_t at = 0; at < name.len; at++)
        for (size_t i = 0; i < COUNT(words); i++) {
            size_t len = strlen(words[i]);
            str here = str_drop(name, at);
            if (here.len >= len && str_eq_nocase((str){here.p, len}, str_c(words[i]))) return true;
        }
    return false;
}

void mcp_hide(const struct mcp_server *server, char *text, size_t len)
{
    const struct mcp_options *options = &server->options;
    for (size_t i = 0; i < options->header_count; i++) {
        str value = options->headers[i].value;
        ptrdiff_t space = str_find_char(value, ' ');
        hide(text, len, value);
        if (space >= 0)
            hide(text, len, str_trim(str_drop(value, (size_t)space))); /* "Bearer ..." */
    }
    for (size_t i = 0; i < options->env_count; i++)
        if (names_secret(options->env[i].name)) hide(text, len, options->env[i].value);
}

void mcp_note(struct mcp_server *server, const char *what, str text)
{
    msec second = loop_now(server->options.loop) / 1000;
    if (!server->options.on_note) return;
    if (second != server->note_second) server->notes = 0;
    server->note_second = second;
    if (server->notes++ >= MCP_NOTES_S_MAX) return;
    char shown[512];
    snprintf(shown, sizeof shown, "%.*s", STR_ARG(tool_text_head(text, sizeof shown - 1)));
    mcp_hide(server, shown, strlen(shown));
    server->options.on_note(server->options.arg, server, what, str_c(shown));
}

/* ---- what is remembered ---- */

struct memory {
    struct job job;
    char scope[SCOPE_BYTES];
    struct arena arena;
    str *texts;
    size_t count;
    str sum; /* of them, as it is stored */
};

/* Of what each definition says, in order. */
static void sum_texts(const str *texts, size_t count, unsigned char out[static HASH_BYTES])
{
    struct crypto_hash *hash = crypto_hash_new();
    for (size_t i = 0; i < count; i++) {
        crypto_hash_add(hash, texts[i]);
        crypto_hash_add(hash, STR("\n"));
    }
    crypto_hash_take(hash, out);
    crypto_hash_free(hash);
}

static str sum_line(struct arena *arena, const str *texts, size_t count)
{
    unsigned char sum[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    sum_texts(texts, count, sum);
    crypto_hex((str){(const char *)sum, HASH_BYTES}, hex);
    return arena_printf(arena, "%zu %s", count, hex);
}

static struct memory *memory_new(const struct mcp_server *server)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory) abort();
    arena_init(&memory->arena);
    snprintf(memory->scope, sizeof memory->scope, "mcp/%.*s", STR_ARG(server->options.name));
    return memory;
}

static void memory_free(struct memory *memory)
{
    arena_done(&memory->arena);
    free(memory);
}

static str row_name(char out[static ROW_NAME_BYTES], size_t index)
{
    snprintf(out, ROW_NAME_BYTES, "tool/%zu", index);
    return str_c(out);
}

static enum err run_load(struct job *job, struct db *db)
{
    struct memory *memory = CONTAINER(job, struct memory, job);
    str scope = str_c(memory->scope), line = STR_EMPTY;
    uint64_t count = 0;
    char name[ROW_NAME_BYTES];
    enum err e = settings_get(db, scope, STR("tools"), &memory->arena, &line);
    if (e) return e;
    memory->sum = line;
    if (str_to_u64(str_split(&line, ' '), &count) || count > MCP_TOOLS_MAX) return ERR_DAMAGED;
    memory->texts = arena_array(&memory->arena, count, sizeof *memory->texts);
    for (memory->count = 0; memory->count < count; memory->count++) {
        e = settings_get(db, scope, row_name(name, memory->count), &memory->arena,
                         &memory->texts[memory->count]);
        if (e) return e;
    }
    return OK;
}

static enum err run_save(struct job *job, struct db *db)
{
    struct memory *memory = CONTAINER(job, struct memory, job);
    str scope = str_c(memory->scope);
    char name[ROW_NAME_BYTES];
    for (size_t i = 0; i < MCP_TOOLS_MAX; i++) {
        str row = row_name(name, i);
        enum err e = i < memory->count ? settings_set(db, scope, row, memory->texts[i])
                                       : settings_delete(db, scope, row);
        if (e) return e;
    }
    return settings_set(db, scope, STR("tools"), memory->sum);
}

/* If it could not be saved it is asked for again after the next start, as always. */
static void saved(struct job *job, enum err e)
{
    (void)e;
    memory_free(CONTAINER(job, struct memory, job));
}

static void save(struct mcp_server *server, const str *texts, size_t count)
{
    if (!server->options.store) return;
    struct memory *memory = memory_new(server);
    memory->job = (struct job){.run = run_save, .done = saved};
    memory->texts = arena_array(&memory->arena, count, sizeof *memory->texts);
    for (size_t i = 0; i < count; i++) memory->texts[i] = arena_str(&memory->arena, texts[i]);
    memory->count = count;
    memory->sum = sum_line(&memory->arena, texts, count);
    store_write(server->options.store, &memory->job);
}

/* ---- lists ---- */

static void on_left_out(void *arg, str name, const char *why)
{
    char text[480];
    snprintf(text, sizeof text, "%.*s: %s", STR_ARG(tool_text_head(name, 80)), why);
    mcp_note(arg, "tool left out", str_c(text));
}

/* NULL: there were too many. */
static struct mcp_list *list_new(struct mcp_server *server, const str *texts, size_t count,
                                 const unsigned char hash[static HASH_BYTES])
{
    const struct mcp_options *options = &server->options;
    if (server->list_count == MCP_LISTS_MAX || server->kept.bytes > MCP_KEPT_BYTES_MAX) {
        mcp_note(server, "list refused",
                 STR("the server has changed its tools too often; restart Fermata to see others"));
        return NULL;
    }
    struct mcp_rules rules = {
        .server = server,
        .ops = &mcp_ops,
        .server_name = options->name,
        .http = mcp_session_http(server),
        .trusted = options->trusted,
        .read = options->read,
        .read_count = options->read_count,
        .idempotent = options->idempotent,
        .idempotent_count = options->idempotent_count,
    };
    struct mcp_list *list = ARENA_NEW(&server->kept, struct mcp_list);
    memcpy(list->hash, hash, HASH_BYTES);
    list->tools = mcp_rows(&server->kept, &rules, texts, count, on_left_out, server);
    list->next = server->lists;
    server->lists = list;
    server->list_count++;
    return list;
}

static bool set_list(struct mcp_server *server, const str *texts, size_t count)
{
    unsigned char hash[HASH_BYTES];
    sum_texts(texts, count, hash);
    if (server->list && memcmp(server->list->hash, hash, HASH_BYTES) == 0) return false;
    struct mcp_list *list = server->lists;
    while (list && memcmp(list->hash, hash, HASH_BYTES) != 0) list = list->next;
    if (!list) list = list_new(server, texts, count, hash);
    if (list) server->list = list;
    return list;
}

void mcp_offer(struct mcp_server *server, const str *definitions, size_t count)
{
    if (!set_list(server, definitions, count)) return;
    save(server, definitions, count);
    server->options.on_tools(server->options.arg, server);
}

/* Before the loop runs. */
static void load(struct mcp_server *server)
{
    if (!server->options.store) return;
    struct memory *memory = memory_new(server);
    memory->job.run = run_load;
    enum err e = store_run(server->options.store, &memory->job);
    if (!e && !str_eq(sum_line(&memory->arena, memory->texts, memory->count), memory->sum))
        e = ERR_DAMAGED;
    if (!e)
        set_list(server, memory->texts, memory->count);
    else if (e != ERR_NOT_FOUND || memory->sum.len)
        mcp_note(
            server, "not remembered",
            STR("what the store has of the server's tools cannot be read; they are there again "
                "when the server is"));
    memory_free(memory);
}

struct tools mcp_tools(const struct mcp_server *server)
{
    return server->list ? server->list->tools : (struct tools){0};
}

/* ---- options ---- */

static const str *copy_texts(struct arena *arena, const str *texts, size_t count)
{
    str *copy = arena_array(arena, count, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const char *text = arena_cstr(arena, texts[i]);
        copy[i] = (str){text, texts[i].len};
    }
    return copy;
}

static const struct mcp_pair *copy_pairs(struct arena *arena, const struct mcp_pair *pairs,
                                         size_t count)
{
    struct mcp_pair *copy = arena_array(arena, count, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i].name = (str){arena_cstr(arena, pairs[i].name), pairs[i].name.len};
        copy[i].value = (str){arena_cstr(arena, pairs[i].value), pairs[i].value.len};
    }
    return copy;
}

static void copy_options(struct mcp_server *server, const struct mcp_options *from)
{
    struct arena *arena = &server->arena;
    struct mcp_options *to = &server->options;
    *to = *from;
    to->name = (str){arena_cstr(arena, from->name), from->name.len};
    to->url = (str){arena_cstr(arena, from->url), from->url.len};
    to->command = copy_texts(arena, from->command, from->command_count);
    to->read = copy_texts(arena, from->read, from->read_count);
    to->idempotent = copy_texts(arena, from->idempotent, from->idempotent_count);
    to->env = copy_pairs(arena, from->env, from->env_count);
    to->headers = copy_pairs(arena, from->headers, from->header_count);
}

static bool has_control(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f) return true;
    return false;
}

static enum err check_options(const struct mcp_options *options, struct fault *reterr)
{
    str url = options->url;
    bool http = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    if (!tool_name_valid(options->name) || options->name.len > MCP_NAME_BYTES_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "name",
                           "a server's name has 1 to %d letters, digits, _ and -",
                           MCP_NAME_BYTES_MAX);
    if (options->command_count && url.len)
        return fault_field(reterr, ERR_INVALID_FIELD, "url",
                           "a server has a command or a URL, not both");
    if (!options->command_count && (!http || !text_is_uri(url)))
        return fault_field(reterr, ERR_INVALID_FIELD, "url",
                           "the URL must be written as http://host/path or https://host/path, in "
                           "ASCII; a server of your own has a command instead");
    if (options->command_count && !options->command[0].len)
        return fault_field(reterr, ERR_INVALID_FIELD, "command", "the program has no name");
    for (size_t i = 0; i < options->header_count; i++)
        if (!options->headers[i].name.len || has_control(options->headers[i].name) ||
            has_control(options->headers[i].value))
            return fault_field(reterr, ERR_INVALID_FIELD, "headers",
                               "a header has no name, or a line end in it");
    if (options->timeout_s > HTTP_TOOL_S_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "timeout_s",
                           "a call may take at most %d seconds", HTTP_TOOL_S_MAX);
    return OK;
}

/* ---- life ---- */

struct mcp_link *mcp_open(const struct mcp_options *options, const struct mcp_link_events *events,
                          void *arg)
{
    if (!options->command_count)
        return mcp_http_new(options->client, options->url, options->headers, options->header_count,
                            events, arg);
    return mcp_stdio_new(options->loop, options->command, options->command_count, options->env,
                         options->env_count, options->wall, events, arg);
}

static void tell_stopped(struct loop_defer *defer)
{
    struct mcp_server *server = CONTAINER(defer, struct mcp_server, stopped);
    server->on_stopped(server->stopped_arg);
}

enum err mcp_server_make(const struct mcp_options *options, const struct mcp_ways *ways,
                         struct mcp_server **ret_server, struct fault *reterr)
{
    enum err e = check_options(options, reterr);
    if (e) return e;
    struct mcp_server *server = calloc(1, sizeof *server);
    if (!server) abort();
    arena_init(&server->arena);
    arena_init(&server->kept);
    copy_options(server, options);
    server->ways = *ways;
    if (options->timeout_s) server->ways.pace.call_ms = (msec)options->timeout_s * 1000;
    server->stopped.fn = tell_stopped;
    load(server);
    mcp_session_init(server);
    mcp_session_begin(server);
    *ret_server = server;
    return OK;
}

enum err mcp_server_new(const struct mcp_options *options, struct mcp_server **ret_server,
                        struct fault *reterr)
{
    static const struct mcp_ways ways = {
        .pace = {.probe_ms = MCP_PROBE_MS,
                 .start_ms = MCP_START_MS,
                 .rest_ms = MCP_REST_MS,
                 .rest_ms_max = MCP_REST_MS_MAX,
                 .steady_ms = MCP_STEADY_MS,
                 .relist_ms = MCP_RELIST_MS,
                 .wait_ms = MCP_WAIT_MS,
                 .call_ms = (msec)MCP_CALL_S * 1000},
        .open = mcp_open,
    };
    return mcp_server_make(options, &ways, ret_server, reterr);
}

void mcp_server_stop(struct mcp_server *server, void (*on_stopped)(void *arg), void *arg)
{
    static const struct fault why = {.text = "it is being stopped"};
    assert(!server->stopping);
    server->stopping = true;
    server->on_stopped = on_stopped;
    server->stopped_arg = arg;
    mcp_calls_away(server, &why);
    if (!server->call_count) mcp_session_close(server);
}

void mcp_server_free(struct mcp_server *server)
{
    if (!server) return;
    loop_defer_cancel(server->options.loop, &server->stopped);
    mcp_calls_orphan(server);
    mcp_reads_orphan(server);
    mcp_session_done(server);
    arena_done(&server->kept);
    arena_done(&server->arena);
    free(server);
}

str mcp_server_name(const struct mcp_server *server)
{
    return server->options.name;
}

const char *mcp_server_why(const struct mcp_server *server)
{
    return server->session.why.text;
}

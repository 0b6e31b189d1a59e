/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether models, MCP servers and chat platforms are there: each asked once.
 *
 * A model: GET its list of models. A list is free, and asking for it needs the key. Some servers have
 * no such list: that they say so is enough.
 *
 *     2xx           there, and the key is taken       404, 405   there, without a list
 *     401, 403      the key is refused                others     what it answered
 *
 * A chat platform: Telegram says whether it knows the token, an Official Account whether it takes id
 * and secret from this address; of the others it is enough that they answer, with whatever status.
 *
 * An MCP server: all are started at once on a loop of our own, which runs until every one of them is
 * there or is not. The first failure counts: whoever checks does not want to wait for a second try.
 */
#include "cli/probe.h"

#include <stdlib.h>

#include "agents/models.h"
#include "agents/toolbox.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/say.h"
#include "model/codec.h"
#include "net/http_client.h"
#include "net/loop.h"

/* ---- models ---- */

static enum err judge(int status, const struct config_model *config, str *ret_what,
                      struct fault *reterr)
{
    if (status >= 200 && status < 300) {
        *ret_what = STR("reached");
        return OK;
    }
    if (status == 404 || status == 405) {
        *ret_what = STR("reached; it offers no list of models");
        return OK;
    }
    if (status == 401 || status == 403)
        return fault(reterr, ERR_UNAUTHENTICATED, "%.*s: %s (HTTP %d)", STR_ARG(config->base_url),
                     config->api_key.len ? "the key is refused"
                                         : "it wants a key: set api_key_file",
                     status);
    return fault(reterr, ERR_NETWORK, "%.*s: it answers with HTTP %d", STR_ARG(config->base_url),
                 status);
}

enum err probe_model(struct arena *arena, const struct config_model *config, str *ret_what,
                     struct fault *reterr)
{
    if (config->provider != PROVIDER_OPENAI && config->provider != PROVIDER_ANTHROPIC) {
        *ret_what = STR("built in");
        return OK;
    }
    bool openai = config->provider == PROVIDER_OPENAI;
    const struct codec *codec = openai ? &codec_openai : &codec_anthropic;
    const struct model_http_options options = models_http(config);
    struct client_header headers[PROBE_HEADERS_MAX];
    size_t count = codec->headers(arena, &options, headers, COUNT(headers));
    AUTO(buf_done) struct buf body;
    buf_init(&body, PROBE_BODY_BYTES_MAX);
    str url =
        arena_printf(arena, "%.*s%s", STR_ARG(config->base_url), openai ? "/models" : "/v1/models");
    int status = 0;
    struct fault why = {0};
    enum err e = client_call(&(struct client_options){.url = url.p,
                                                      .headers = headers,
                                                      .header_count = count,
                                                      .connect_ms = PROBE_MS_MAX,
                                                      .total_ms = PROBE_MS_MAX},
                             &status, &body, &why);
    if (e == ERR_TOO_LARGE) { /* a long list is one, too */
        *ret_what = STR("reached");
        return OK;
    }
    if (e) return fault(reterr, e, "%.*s: %s", STR_ARG(config->base_url), why.text);
    return judge(status, config, ret_what, reterr);
}

/* ---- channels ---- */

/* What is asked of a platform, and what its answer means. Addresses may hold a secret: none is
 * repeated. */
struct channel_probe {
    const char *kind;
    str (*url)(struct arena *arena, const struct config_channel *config);
    str (*body)(struct arena *arena, const struct config_channel *config); /* NULL: a GET */
    /* NULL: any answer is a good one. */
    enum err (*judge)(struct arena *arena, int status, str body, struct fault *reterr);
};

static str base_of(struct arena *arena, const struct config_channel *config)
{
    (void)arena;
    return config->base_url.len ? config->base_url : config->url;
}

static str telegram_url(struct arena *arena, const struct config_channel *config)
{
    return arena_printf(arena, "%.*s/bot%.*s/getMe", STR_ARG(config->base_url),
                        STR_ARG(config->token));
}

static enum err telegram_judge(struct arena *arena, int status, str body, struct fault *reterr)
{
    (void)arena, (void)body;
    if (status == 200) return OK;
    if (status == 401 || status == 404)
        return fault(reterr, ERR_UNAUTHENTICATED, "the token is refused (HTTP %d)", status);
    return fault(reterr, ERR_NETWORK, "it answers with HTTP %d", status);
}

static str account_url(struct arena *arena, const struct config_channel *config)
{
    return arena_printf(arena, "%.*s/cgi-bin/stable_token", STR_ARG(config->base_url));
}

/* The token that the account has anyway: nothing becomes invalid. */
static str account_body(struct arena *arena, const struct config_channel *config)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, PROBE_BODY_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("grant_type"), STR("client_credential"));
    json_member(&doc.w, STR("appid"), config->app_id);
    json_member(&doc.w, STR("secret"), config->secret);
    json_object_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

static enum err account_judge(struct arena *arena, int status, str body, struct fault *reterr)
{
    struct json *json = NULL;
    if (json_parse(arena, body, &json, NULL) || status != 200)
        return fault(reterr, ERR_NETWORK, "it answers with HTTP %d and no token", status);
    if (json_text(json_get(json, STR("access_token"))).len) return OK;
    const struct json *code = json_get(json, STR("errcode"));
    return fault(reterr, ERR_UNAUTHENTICATED, "it refuses: %s (errcode %s)",
                 say(json_text(json_get(json, STR("errmsg")))).text,
                 code ? say(code->raw).text : "?");
}

static const struct channel_probe channel_probes[] = {
    {"weixin", base_of, NULL, NULL},
    {"wechat_oa", account_url, account_body, account_judge},
    {"telegram", telegram_url, NULL, telegram_judge},
    {"webhook", base_of, NULL, NULL},
};

enum err probe_channel(struct arena *arena, const struct config_channel *config, str *ret_what,
                       struct fault *reterr)
{
    const struct channel_probe *probe = channel_probes;
    while (!str_eq(str_c(probe->kind), config->kind)) probe++;
    const struct client_header type = {"Content-Type", "application/json"};
    AUTO(buf_done) struct buf body;
    buf_init(&body, PROBE_BODY_BYTES_MAX);
    int status = 0;
    struct fault why = {0};
    enum err e = client_call(
        &(struct client_options){.method = probe->body ? "POST" : "GET",
                                 .url = arena_cstr(arena, probe->url(arena, config)),
                                 .headers = &type,
                                 .header_count = probe->body ? 1 : 0,
                                 .body = probe->body ? probe->body(arena, config) : STR_EMPTY,
                                 .connect_ms = PROBE_MS_MAX,
                                 .total_ms = PROBE_MS_MAX},
        &status, &body, &why);
    if (e == ERR_TOO_LARGE && !probe->judge) e = OK; /* a long page is an answer, too */
    if (!e && probe->judge) e = probe->judge(arena, status, buf_str(&body), &why);
    if (e) return fault(reterr, e, "%.*s: %s", STR_ARG(base_of(arena, config)), why.text);
    *ret_what = probe->judge ? STR("reached, and it knows us") : STR("reached");
    return OK;
}

/* ---- servers ---- */

struct probed {
    struct probe *probe;
    struct mcp_server *server; /* NULL: it could not be made */
    bool reached, decided, stopped;
    struct fault why;
};

struct probe {
    struct loop *loop;
    struct wall *wall;
    struct client *client;
    struct timer *timer;
    struct probed *rows;
    size_t count;
};

static void on_tools(void *arg, struct mcp_server *server)
{
    (void)arg, (void)server; /* counted when all is over */
}

static void on_state(void *arg, struct mcp_server *server, const char *why)
{
    struct probed *row = arg;
    (void)server;
    if (row->decided) return;
    row->reached = !why[0];
    if (!row->reached) fault(&row->why, ERR_NETWORK, "%s", why);
    row->decided = true;
    for (size_t i = 0; i < row->probe->count; i++)
        if (!row->probe->rows[i].decided) return;
    loop_stop(row->probe->loop);
}

/* What a child has to say may be the reason. */
static void on_stderr(void *arg, struct mcp_server *server, str line)
{
    (void)arg;
    log_info("mcp.stderr", LOG_STR("server", mcp_server_name(server)), LOG_STR("text", line));
}

static void on_late(void *arg)
{
    struct probe *probe = arg;
    loop_stop(probe->loop);
}

struct probe *probe_new(struct arena *arena, const struct config *config, struct wall *wall)
{
    struct probe *probe = calloc(1, sizeof *probe);
    if (!probe) abort();
    probe->wall = wall;
    probe->loop = loop_new();
    probe->client = client_new(probe->loop);
    probe->timer = timer_new(probe->loop, on_late, probe);
    probe->count = config->mcps.count;
    probe->rows = arena_array(arena, probe->count, sizeof *probe->rows);
    size_t open = 0;
    for (size_t i = 0; i < probe->count; i++) {
        struct probed *row = &probe->rows[i];
        struct mcp_options options = toolbox_mcp_options(arena, &config->mcps.items[i]);
        options.loop = probe->loop;
        options.wall = probe->wall;
        options.client = probe->client;
        options.on_tools = on_tools;
        options.on_state = on_state;
        options.on_stderr = on_stderr;
        options.arg = row;
        row->probe = probe;
        row->decided = mcp_server_new(&options, &row->server, &row->why) != OK;
        open += !row->decided;
    }
    timer_start(probe->timer, PROBE_MS_MAX);
    if (open) loop_run(probe->loop);
    timer_stop(probe->timer);
    return probe;
}

static void on_stopped(void *arg)
{
    struct probed *row = arg;
    row->stopped = true;
    for (size_t i = 0; i < row->probe->count; i++)
        if (!row->probe->rows[i].stopped) return;
    loop_stop(row->probe->loop);
}

void probe_free(struct probe *probe)
{
    if (!probe) return;
    bool open = false;
    for (size_t i = 0; i < probe->count; i++) probe->rows[i].stopped = !probe->rows[i].server;
    for (size_t i = 0; i < probe->count; i++)
        if (probe->rows[i].server)
            mcp_server_stop(probe->rows[i].server, on_stopped, &probe->rows[i]);
    for (size_t i = 0; i < probe->count; i++) open = open || !probe->rows[i].stopped;
    timer_start(probe->timer, SHUTDOWN_MS_MAX);
    if (open) loop_run(probe->loop);
    for (size_t i = 0; i < probe->count; i++) mcp_server_free(probe->rows[i].server);
    timer_free(probe->timer);
    client_free(probe->client);
    loop_free(probe->loop);
    free(probe);
}

enum err probe_server(const struct probe *probe, size_t index, struct tools *ret_tools,
                      struct fault *reterr)
{
    const struct probed *row = &probe->rows[index];
    if (row->reached) {
        *ret_tools = mcp_tools(row->server);
        return OK;
    }
    return fault(reterr, ERR_NETWORK, "%s",
                 row->why.text[0] ? row->why.text : "no answer within 10 seconds");
}

struct loop *probe_loop(const struct probe *probe)
{
    return probe->loop;
}

struct client *probe_client(const struct probe *probe)
{
    return probe->client;
}

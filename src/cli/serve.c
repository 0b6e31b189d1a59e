/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata serve`: start, stop, and the wiring of everything in between.
 *
 * The life of a chat turn and of a pause, function by function, is in docs/ARCHITECTURE.md.
 *
 * Start: lock, secret, store, keys, lease, agents with their models and tools, listeners, then the
 * line that says so. SIGHUP: agents, models and tools again (agents/reload.c). Stop (SIGTERM, SIGINT):
 * listeners, connections, MCP servers, store, lock. A second signal ends at once, which is as safe as
 * a crash.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/shell/payload_retry.h"
#include "agents/agents.h"
#include "agents/reload.h"
#include "agents/toolbox.h"
#include "base/limits.h"
#include "base/log.h"
#include "chat/chats.h"
#include "chat/login.h"
#include "config/commands.h"
#include "duty/caution.h"
#include "duty/clockwork.h"
#include "duty/failures.h"
#include "duty/remover.h"
#include "duty/sweeper.h"
#include "duty/trail.h"
#include "duty/webhooks.h"
#include "feed/feed.h"
#include "feed/inbox.h"
#include "http/api_mcp.h"
#include "http/assets.h"
#include "http/gate.h"
#include "http/guard.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/wall.h"
#include "server/key_job.h"
#include "server/server.h"
#include "socket/socket_session.h"
#include "store/blob/blob.h"
#include "store/db/lock.h"
#include "store/db/secret.h"
#include "store/table/calls.h"
#include "store/table/storage.h"
#include "thread/file_look.h"
#include "tool/spool.h"

#define COMMON_FIELDS "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"

/* ---- start ---- */

/* As many descriptors as the system allows; connections keep clear of what else needs one. */
static uint32_t connections_max(const struct config *config)
{
    enum { OTHER_FILES = 64 };
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return config->connections_max;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files))
        log_warn("limits.files", LOG_CSTR("reason", strerror(errno)));
    getrlimit(RLIMIT_NOFILE, &files);
    rlim_t room = files.rlim_cur > OTHER_FILES ? files.rlim_cur - OTHER_FILES : 1;
    if (room >= config->connections_max) return config->connections_max;
    log_warn("limits.connections", LOG_U64("wanted", config->connections_max),
             LOG_U64("possible", room), LOG_CSTR("reason", "the limit of open files (ulimit -n)"));
    return (uint32_t)room;
}

struct keys_load {
    struct job job;
    struct arena arena;
    struct key_list active, all; /* all: as many as `key list` shows */
};

static enum err keys_run(struct job *job, struct db *db)
{
    struct keys_load *load = (struct keys_load *)(void *)job;
    enum err e = keys_load_all(db, &load->arena, &load->active);
    return e ? e : keys_list(db, &load->arena, &load->all);
}

/* limits.storage: what each user has is counted, or no more. */
struct count_start {
    struct job job;
    bool on;
};

static enum err count_start_run(struct job *job, struct db *db)
{
    return storage_count_start(db, ((struct count_start *)(void *)job)->on);
}

static enum err start_counting(struct server *server, struct fault *reterr)
{
    struct count_start start = {.job.run = count_start_run,
                                .on = server->config->storage_bytes_max > 0};
    enum err e = store_run(server->store, &start.job);
    return e ? fault(reterr, e, "cannot count what is stored: %s", err_title(e)) : OK;
}

static enum err start_auth(struct server *server, struct fault *reterr)
{
    const struct config *config = server->config;
    bool beyond = !guard_loopback(config->listen.host);
    /* Named after its text, so that sessions opened with it end when it is changed; under the
     * secret, so that the name does not help to guess it. */
    char mac[SECRET_MAC_BYTES], id[] = "first-00000000";
    secret_mac(server->secret, SECRET_SESSION, config->api_key, mac);
    memcpy(id + 6, mac + SECRET_ID_BYTES, 8);
    server->auth = auth_new(server->loop, &(struct auth_options){.clock = &clock_system,
                                                                 .first_key_id = str_c(id),
                                                                 .first_key = config->api_key,
                                                                 .beyond_loopback = beyond,
                                                                 .rate_max = config->rate_max});
    struct keys_load load = {.job.run = keys_run};
    arena_init(&load.arena);
    enum err e = store_run(server->store, &load.job);
    if (!e && load.all.count) auth_require(server->auth); /* also when all are revoked */
    for (size_t i = 0; !e && i < load.active.count; i++)
        auth_add_key(server->auth, &load.active.keys[i]);
    arena_done(&load.arena);
    if (e) return fault(reterr, e, "cannot read the keys: %s", err_title(e));
    if (beyond && !auth_required(server->auth)) return guard_refuse_open(config, reterr);
    return OK;
}

/* The right to work on runs. The folder's lock makes us the only ones; the epoch tells our commits
 * from those of a process before us. */
struct take_lease {
    struct job job;
    str holder;
    msec now;
    bool local; /* FERMATA_API_KEY stands for `local` */
    int64_t epoch;
};

static enum err lease_run(struct job *job, struct db *db)
{
    struct take_lease *take = (struct take_lease *)(void *)job;
    enum err e = people_local_set(db, take->local);
    return e ? e : lease_take(db, STR("runs"), take->holder, take->now, take->now, &take->epoch);
}

static void on_trouble(void *arg, str thread_id, str run_id, const char *what, enum err e)
{
    (void)arg;
    log_error("run.trouble", LOG_CSTR("what", what), LOG_CSTR("reason", err_title(e)),
              LOG_STR("thread", thread_id), LOG_STR("run", run_id));
}

/* Somebody waits for a person, or no longer does. */
static void on_news(void *arg)
{
    struct server *server = arg;
    webhooks_look(server->webhooks); /* no expiry has changed: those are set by people alone */
}

/* What commits of runs carry: the epoch, what approvals are bound with, and where news of them goes. */
static enum err start_saver(struct server *server, struct fault *reterr)
{
    const struct config *config = server->config;
    struct saver *saver = &server->saver;
    char holder[ID_BYTES];
    id_random(holder);
    struct take_lease take = {.job.run = lease_run,
                              .holder = str_c(holder),
                              .now = clock_wall(&clock_system),
                              .local = config->api_key.len};
    enum err e = store_run(server->store, &take.job);
    if (e) return fault(reterr, e, "cannot take the lease on runs: %s", err_title(e));
    saver->epoch = take.epoch;
    snprintf(saver->binder.key_id, sizeof saver->binder.key_id, "%s", secret_id(server->secret));
    secret_subkey(server->secret, SECRET_BINDING, saver->binder.key);
    secret_subkey(server->secret, SECRET_AUDIT, saver->audit_key);
    struct hook *hooks = arena_array(&server->arena, config->webhooks.count, sizeof *hooks);
    for (size_t i = 0; i < config->webhooks.count; i++) {
        const struct config_webhook *row = &config->webhooks.items[i];
        hooks[i] = (struct hook){.url = row->url,
                                 .secret = row->secret,
                                 .opened = row->events & EVENT_OPENED,
                                 .resolved = row->events & EVENT_RESOLVED};
    }
    saver->hooks = hooks;
    saver->hook_count = config->webhooks.count;
    return OK;
}

/* Files of results that a crash has left behind. One that cannot be looked up is kept. */
struct sweep {
    struct job job;
    const struct spool *spool;
    struct db *db;
    struct fault why;
};

static bool spool_needed(void *arg, str name)
{
    const struct sweep *sweep = arg;
    bool needed = true;
    return calls_spooled(sweep->db, name, &needed) || needed;
}

static enum err sweep_run(struct job *job, struct db *db)
{
    struct sweep *sweep = (struct sweep *)(void *)job;
    size_t removed = 0;
    sweep->db = db;
    enum err e = spool_sweep(sweep->spool, spool_needed, sweep, &removed, &sweep->why);
    if (removed) log_info("spool.swept", LOG_U64("files", removed));
    return e;
}

static void on_swept(void *arg, const struct sweep_round *round)
{
    (void)arg;
    if (!round->removed && !round->attachments) return;
    log_info("blobs.swept", LOG_U64("objects", round->removed),
             LOG_U64("attachments", round->attachments), LOG_U64("looked", round->looked));
}

static void on_unswept(void *arg, const char *what, size_t count, const struct fault *reason)
{
    (void)arg;
    log_warn("blobs.unswept", LOG_CSTR("what", what), LOG_U64("times", count),
             LOG_CSTR("reason", reason->text));
}

static void on_unremoved(void *arg, const char *what, enum err e, const struct fault *reason)
{
    (void)arg;
    log_warn("threads.unremoved", LOG_CSTR("what", what), LOG_CSTR("code", err_code(e)),
             LOG_CSTR("reason", reason ? reason->text : err_title(e)));
}

/* A server offers other tools. */
static void on_tools(void *arg)
{
    struct server *server = arg;
    agents_choose(server->agents, toolbox_tools(server->toolbox));
}

/* What the configuration makes of them; after this the list of tools is there. */
static enum err start_agents(struct server *server, const struct args *args, struct fault *reterr)
{
    enum err e = spool_open(server->loop, server->config->data.p, &server->spool, reterr);
    if (e) return e;
    struct sweep sweep = {.job.run = sweep_run, .spool = server->spool};
    e = store_run(server->store, &sweep.job);
    if (e) return fault(reterr, e, "cannot look through the spool folder: %s", sweep.why.text);
    const char *url = config_blobs(server->config, &server->arena);
    e = blobs_open(server->loop, url, &server->blobs, reterr);
    if (e) return e;
    server->wall = caution_wall(server->config, &server->arena);
    e = wall_adopt(server->wall, server->loop, reterr);
    if (e) return e;
    server->agents = agents_new(server->loop);
    server->toolbox = toolbox_new(&(struct toolbox_options){.loop = server->loop,
                                                            .wall = server->wall,
                                                            .client = server->client,
                                                            .spool = server->spool,
                                                            .store = server->store,
                                                            .published = &server->saver.tools,
                                                            .on_change = on_tools,
                                                            .arg = server});
    server->reload = reload_new(&(struct reload_options){.server = server,
                                                         .args = args->options,
                                                         .arg_count = args->option_count,
                                                         .environment = environ});
    return reload_first(server->reload, server->config, reterr);
}

static void on_waiting(void *arg)
{
    struct server *server = arg;
    payload_retry_look(server->retry);
}

static void on_payload_retry_trouble(void *arg, const char *what, enum err e)
{
    const struct server *server = arg;
    if (e)
        log_error("payloads.waiting", LOG_CSTR("what", what), LOG_CSTR("code", err_code(e)),
                  LOG_U64("count", payload_retry_waiting(server->retry)));
    else
        log_info("payloads.stored", LOG_CSTR("what", what));
}

static const struct agent *agent_of_run(void *arg, str name)
{
    const struct server *server = arg;
    return agents_for(server->agents, name);
}

static enum err start_runs(struct server *server, const struct args *args, struct fault *reterr)
{
    server->client = client_new(server->loop);
    enum err e = start_saver(server, reterr);
    if (!e) e = start_agents(server, args, reterr);
    if (e) return e;
    server->bus = bus_local_new();
    server->runs = runs_new(&(struct runs_options){.loop = server->loop,
                                                   .store = server->store,
                                                   .bus = server->bus,
                                                   .clock = &clock_system,
                                                   .agent = agent_of_run,
                                                   .saver = &server->saver,
                                                   .spool = server->spool,
                                                   .blobs = server->blobs,
                                                   .look = look_at_file,
                                                   .on_news = on_news,
                                                   .on_waiting = on_waiting,
                                                   .on_trouble = on_trouble,
                                                   .arg = server});
    server->retry =
        payload_retry_new(&(struct payload_retry_options){.loop = server->loop,
                                                          .store = server->store,
                                                          .blobs = server->blobs,
                                                          .spool = server->spool,
                                                          .on_trouble = on_payload_retry_trouble,
                                                          .arg = server});
    server->feeds = feeds_new(server);
    server->inbox = inbox_new(server);
    server->sockets = sockets_new(server);
    server->webhooks =
        webhooks_new(&(struct webhooks_options){.loop = server->loop,
                                                .store = server->store,
                                                .client = server->client,
                                                .clock = &clock_system,
                                                .hooks = server->saver.hooks,
                                                .hook_count = server->saver.hook_count});
    server->clockwork = clockwork_new(server);
    server->failures = failures_new(server);
    server->trail = trail_new(server);
    server->channels = channels_new(server);
    server->logins = channel_logins_new(server);
    return OK;
}

/* Of all connections, for one address or user. */
static uint32_t share_of(uint32_t all, uint32_t part)
{
    uint32_t share = all / part;
    if (share < HTTP_CONNECTIONS_SHARE_MIN) share = HTTP_CONNECTIONS_SHARE_MIN;
    return share < all ? share : all;
}

static enum err listen_all(struct server *server, struct fault *reterr)
{
    const struct config *config = server->config;
    server->page_policy = page_policy(&server->arena, config->web_frame_ancestors);
    uint32_t connections = connections_max(config);
    struct http_budget *budget = http_budget_new();
    server->http = http_server_new(
        server->loop,
        &(struct http_server_options){
            .handler = &gate_public,
            .ctx = server,
            .common_fields = COMMON_FIELDS,
            .connections_max = connections,
            .connections_address_max = share_of(connections, HTTP_CONNECTIONS_ADDRESS_PART),
            .connections_user_max = share_of(connections, HTTP_CONNECTIONS_USER_PART),
            .budget = budget});
    server->admin =
        http_server_new(server->loop,
                        &(struct http_server_options){.handler = &gate_admin,
                                                      .ctx = server,
                                                      .connections_max = ADMIN_CONNECTIONS_MAX,
                                                      .budget = budget});
    http_budget_unref(budget); /* they have it */
    struct buf path;
    buf_init(&path, 8192);
    buf_printf(&path, "%s/fermata.sock", config->data.p);
    buf_char(&path, '\0');
    enum err e = listener_unix(server->loop, path.p, http_server_accept, server->admin,
                               &server->admin_listener, reterr);
    buf_done(&path);
    if (e) return e;
    return listener_tcp(server->loop, config->listen.host, config->listen.port, http_server_accept,
                        server->http, &server->listener, reterr);
}

/* ---- upkeep: rows of sessions, answers and chats that nobody needs any more ---- */

struct upkeep {
    struct job job;
    struct server *server;
    struct timer *timer;
    msec now;
    bool more; /* as many rows were removed as one job may */
};

static enum err upkeep_run(struct job *job, struct db *db)
{
    struct upkeep *upkeep = (struct upkeep *)(void *)job;
    int64_t sessions, answers, chats;
    bool count = false;
    enum err e = sessions_expire(db, upkeep->now, &sessions);
    if (!e) e = idempotency_expire(db, upkeep->now - IDEMPOTENCY_MS_MIN, &answers);
    if (!e) e = channel_rows_expire(db, upkeep->now - CHANNEL_MEMORY_MS, &chats);
    if (!e) e = storage_count_step(db, &count);
    upkeep->more = !e && (count || sessions == SESSIONS_EXPIRE_MAX ||
                          answers == IDEMPOTENCY_EXPIRE_MAX || chats >= CHANNEL_EXPIRE_MAX);
    return e;
}

static void upkeep_done(struct job *job, enum err e)
{
    struct upkeep *upkeep = (struct upkeep *)(void *)job;
    if (e) log_warn("upkeep.failed", LOG_CSTR("reason", err_title(e)));
    if (!upkeep->server->stopping) timer_start(upkeep->timer, upkeep->more ? 0 : UPKEEP_MS);
}

static void upkeep_due(void *arg)
{
    struct upkeep *upkeep = arg;
    if (upkeep->server->stopping) return;
    upkeep->now = clock_wall(&clock_system);
    store_write(upkeep->server->store, &upkeep->job);
}

/* ---- stop ---- */

enum { STOPS = 4 }; /* both listeners' connections, the calls of runs, and servers of tools */

static void on_stopped(void *arg)
{
    struct server *server = arg;
    if (++server->stopped == STOPS) loop_stop(server->loop);
}

static void on_signal(void *arg, int signal)
{
    struct server *server = arg;
    if (server->stopping) _exit(128 + signal);
    server->stopping = true;
    log_info("server.stopping", LOG_I64("signal", signal),
             LOG_U64("connections", http_server_connections(server->http)));
    listener_close(TAKE(server->listener));
    listener_close(TAKE(server->admin_listener));
    runs_stop(server->runs, on_stopped, server);
    toolbox_stop(server->toolbox, on_stopped, server);
    clockwork_stop(server->clockwork);
    trail_stop(server->trail);
    payload_retry_stop(server->retry);
    sweeper_stop(server->sweeper);
    remover_stop(server->remover);
    webhooks_stop(server->webhooks);
    channel_logins_stop(server->logins);
    channels_stop(server->channels);
    mcp_waits_stop(server);
    http_server_stop(server->admin, on_stopped, server);
    http_server_stop(server->http, on_stopped, server);
}

/* Reload; but a terminal that was closed says it the same way, and then it is over. */
static void on_hangup(void *arg, int signal)
{
    struct server *server = arg;
    if (server->terminal && !isatty(STDIN_FILENO))
        on_signal(server, signal);
    else if (!server->stopping)
        reload_again(server->reload);
}

static void server_done(struct server *server)
{
    listener_close(server->listener);
    listener_close(server->admin_listener);
    store_close(server->store); /* its last answers need the connections */
    transfers_stop(&server->transfers);
    runs_free(server->runs);
    clockwork_free(server->clockwork);
    failures_free(server->failures);
    trail_free(server->trail);
    payload_retry_free(server->retry);
    sweeper_free(server->sweeper);
    remover_free(server->remover);
    webhooks_free(server->webhooks);
    channel_logins_free(server->logins);
    channels_free(server->channels);
    http_server_free(server->http);
    http_server_free(server->admin);
    sockets_free(server->sockets);
    inbox_free(server->inbox);
    feeds_free(server->feeds);
    agents_free(server->agents);
    toolbox_free(server->toolbox);
    reload_free(server->reload); /* what the two before were made from */
    client_free(server->client);
    spool_close(server->spool);
    blobs_close(server->blobs);
    arena_done(&server->arena);
    bus_free(server->bus);
    auth_free(server->auth);
    secret_free(server->secret);
}

/* ---- run ---- */

static void announce(struct server *server)
{
    str host = server->config->listen.host;
    bool v6 = str_find_char(host, ':') >= 0;
    str url = arena_printf(&server->arena, "http://%s%.*s%s:%u", v6 ? "[" : "", STR_ARG(host),
                           v6 ? "]" : "", listener_port(server->listener));
    /* The address for people: the public one, or that of this machine where we listen on all of its
     * own. */
    str public_url = server->config->public_url.text;
    bool all = str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("::"));
    if (all && !public_url.len)
        server->page =
            arena_printf(&server->arena, "http://localhost:%u/", listener_port(server->listener));
    else
        server->page =
            arena_printf(&server->arena, "%.*s/", STR_ARG(public_url.len ? public_url : url));
    printf("fermata: listening on %.*s\n", STR_ARG(url));
    printf("fermata: open %.*s in a browser\n", STR_ARG(server->page));
    fflush(stdout);
    log_info("server.listening", LOG_STR("url", url), LOG_STR("data", server->config->data),
             LOG_CSTR("version", FERMATA_VERSION),
             LOG_CSTR("login", auth_required(server->auth) ? "key" : "none"));
    cautions_log(server->config, server->wall, auth_required(server->auth));
}

static enum err serve(struct server *server, const struct args *args, struct fault *reterr)
{
    const struct config *config = server->config;
    /* First: not caught, it would end a start that takes its time. Heard when the loop runs. */
    if (loop_signal(server->loop, SIGHUP, on_hangup, server))
        return fault(reterr, ERR_IO, "cannot catch signals");
    enum err e = secret_open(config->data.p, config->secret_file.p, &server->secret, reterr);
    if (!e) e = store_open(config->data.p, server->loop, &server->store, reterr);
    if (!e) store_keep(server->store, config->hot_bytes);
    if (!e) e = start_counting(server, reterr);
    if (!e) e = start_auth(server, reterr);
    if (!e) e = start_runs(server, args, reterr);
    if (!e) e = listen_all(server, reterr);
    if (!e && (loop_signal(server->loop, SIGTERM, on_signal, server) ||
               loop_signal(server->loop, SIGINT, on_signal, server)))
        e = fault(reterr, ERR_IO, "cannot catch signals");
    if (e) return e;

    struct upkeep upkeep = {.job = {.run = upkeep_run, .done = upkeep_done}, .server = server};
    upkeep.timer = timer_new(server->loop, upkeep_due, &upkeep);
    timer_start(upkeep.timer, 0);
    server->sweeper =
        sweeper_new(&(struct sweeper_options){.loop = server->loop,
                                              .store = server->store,
                                              .blobs = server->blobs,
                                              .clock = &clock_system,
                                              .grace_ms = (msec)config->grace_s * 1000,
                                              .every_ms = UPKEEP_MS,
                                              .on_round = on_swept,
                                              .on_trouble = on_unswept});
    server->remover = remover_new(&(struct remover_options){.loop = server->loop,
                                                            .store = server->store,
                                                            .blobs = server->blobs,
                                                            .clock = &clock_system,
                                                            .on_trouble = on_unremoved});
    server->metrics.start_seconds = (uint64_t)(clock_wall(&clock_system) / 1000);
    announce(server);
    runs_recover(server->runs);
    payload_retry_look(server->retry);
    channels_start(server->channels);
    malloc_trim(0); /* what starting took: a quiet process keeps it otherwise until its end */
    loop_run(server->loop);
    store_close(server->store); /* what its last results submit is refused, not lost */
    server->store = NULL;
    timer_free(upkeep.timer);
    log_info("server.stopped", LOG_U64("answered", server->metrics.requests_2xx));
    return OK;
}

static void say_waiting(const char *command, uint64_t pid)
{
    fprintf(stderr, "fermata: waiting for fermata %s (process %llu)\n", command,
            (unsigned long long)pid);
}

int serve_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)arena;
    struct fault why = {0};
    AUTO(lock_freep) struct lock *lock = NULL;
    enum err e = lock_take_for_server(config->data.p, LOCK_WAIT_MS_MAX, say_waiting, &lock, &why);
    struct server server = {.config = config, .terminal = isatty(STDIN_FILENO)};
    pools_init(&server.pools);
    arena_init(&server.arena);
    server.loop = loop_new();
    if (!e) e = serve(&server, args, &why);
    server_done(&server);
    loop_free(server.loop); /* files that are read beside it give their places back here */
    pools_done(&server.pools);
    wall_free(server.wall);
    if (!e) return EXIT_OK;
    fprintf(stderr, "fermata: %s\n", why.text);
    return EXIT_FAILED;
}

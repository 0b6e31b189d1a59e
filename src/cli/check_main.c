/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata check`: the effective configuration, and whether what it names works: models are reached,
 * MCP servers started and asked what they offer, chat platforms asked whether they know us. Changes
 * nothing that a start would not change; with a server running it leaves the store to that server.
 *
 * `fermata check --audit`: whether somebody has changed the audit trail. Reads the database itself,
 * also under a running server: a reader holds nobody up, and the server need not be trusted to tell
 * the truth about its own past.
 */
#include <stdio.h>
#include <unistd.h>

#include "agents/agents.h"
#include "agents/models.h"
#include "agents/toolbox.h"
#include "base/limits.h"
#include "cli/home.h"
#include "cli/probe.h"
#include "config/commands.h"
#include "config/option.h"
#include "duty/caution.h"
#include "http/guard.h"
#include "net/wall.h"
#include "server/key_job.h"
#include "store/blob/blob.h"
#include "store/db/lock.h"
#include "store/db/secret.h"
#include "store/table/audit.h"
#include "store/table/channels.h"
#include "tool/calendar.h"
#include "tool/tools.h"

static int report(const char *what, enum err e, const struct fault *why, const char *fine)
{
    printf("%-8s %s%s\n", what, e ? "FAILED: " : *fine ? "ok: " : "ok", e ? why->text : fine);
    return e ? 1 : 0;
}

/* Keys of the store: how many are active, and how many there have ever been. */
struct key_counts {
    size_t active, all;
};

static enum err check_store(const struct config *config, struct arena *arena,
                            struct key_counts *ret_keys, struct fault *reterr)
{
    struct store *store = NULL;
    enum err e = store_open(config->data.p, NULL, &store, reterr);
    if (e) return e;
    struct key_list_job list;
    key_list_init(&list, arena);
    e = key_fault(store_run(store, &list.job), STR_EMPTY, reterr);
    store_close(store);
    if (e) return e;
    ret_keys->all = list.list.count;
    for (size_t i = 0; i < list.list.count; i++) ret_keys->active += !list.list.keys[i].revoked;
    return OK;
}

/* ---- agents, models, servers of tools ---- */

static int check_model(const struct config_model *model, struct arena *arena)
{
    struct fault why = {0};
    str what = STR_EMPTY;
    enum err e = probe_model(arena, model, &what, &why);
    str name = model->name.len ? model->name : str_c(provider_names[model->provider]);
    str called = model->model.len ? model->model : str_c(provider_names[model->provider]);
    str text = arena_printf(arena, "%.*s (%.*s): %.*s", STR_ARG(name), STR_ARG(called),
                            e ? (int)str_c(why.text).len : (int)what.len, e ? why.text : what.p);
    if (e) fault(&why, e, "%s", text.p);
    return report("model", e, &why, text.p);
}

/* Fills what each of them offers. */
static int check_servers(const struct config *config, struct arena *arena,
                         const struct probe *probe, struct tools *ret_offered)
{
    int bad = 0;
    for (size_t i = 0; i < config->mcps.count; i++) {
        struct fault why = {0}, named = {0};
        enum err e = probe_server(probe, i, &ret_offered[i], &why);
        str name = config->mcps.items[i].name;
        if (e) fault(&named, e, "%.*s: %s", STR_ARG(name), why.text);
        str fine = arena_printf(arena, "%.*s: %zu tools", STR_ARG(name), ret_offered[i].count);
        bad += report("mcp", e, &named, fine.p);
    }
    return bad;
}

/* Has somebody signed in to it? What the store says; a running server is not asked. */
struct account_job {
    struct job job;
    struct arena *arena;
    str name;
    bool signed_in;
};

static enum err account_run(struct job *job, struct db *db)
{
    struct account_job *look = (struct account_job *)(void *)job;
    struct channel_row row;
    enum err e = channel_find(db, look->arena, look->name, &row);
    look->signed_in = !e && row.account.len && !str_eq(row.account, STR("{}"));
    return e == ERR_NOT_FOUND ? OK : e;
}

static enum err signed_in(const struct config *config, struct arena *arena, str name,
                          bool *ret_signed_in, struct fault *reterr)
{
    struct store *store = NULL;
    enum err e = store_open(config->data.p, NULL, &store, reterr);
    if (e) return e;
    struct account_job look = {.job.run = account_run, .arena = arena, .name = name};
    e = store_run(store, &look.job);
    store_close(store);
    if (e) return fault(reterr, e, "the account cannot be read: %s", err_title(e));
    *ret_signed_in = look.signed_in;
    return OK;
}

/* What works, and should be known all the same. */
static void channel_remarks(const struct config_channel *channel)
{
    const struct {
        bool holds;
        const char *text;
    } rows[] = {
        {channel->allow_all && !channel->allow.count,
         "anybody may write to it: set allow to the ids of your people, or to \"*\" if this is "
         "meant"},
        {str_eq(channel->kind, STR("wechat_oa")) && !channel->aes_key.len,
         "messages are not encrypted, so WeChat's signature does not cover them: whoever sees a "
         "call before we do can put others in its place; use the safe mode and set aes_key_file"},
        {str_eq(channel->kind, STR("weixin")) && channel->token.len && !channel->allow_all &&
             !channel->allow.count,
         "anybody may write to it, since a token of a file says not whose it is: set allow to the "
         "ids of your people, or to \"*\" if this is meant"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].holds)
            printf("%-8s %.*s: %s\n", "remark", STR_ARG(channel->name), rows[i].text);
}

static int check_channel(const struct config *config, struct arena *arena, bool served,
                         const struct config_channel *channel)
{
    struct fault why = {0}, named = {0};
    str what = STR_EMPTY;
    const char *more = "";
    bool known = true;
    enum err e = probe_channel(arena, channel, &what, &why);
    bool login = str_eq(channel->kind, STR("weixin")) && !channel->token.len;
    if (!e && login && served)
        more = "; `fermata channel list` tells whether somebody has signed in";
    else if (!e && login)
        e = signed_in(config, arena, channel->name, &known, &why);
    if (!known) more = "; needs login: start the server and run `fermata channel login`";
    if (e) fault(&named, e, "%.*s: %s", STR_ARG(channel->name), why.text);
    str fine = arena_printf(arena, "%.*s: %.*s%s", STR_ARG(channel->name), STR_ARG(what), more);
    int bad = report("channel", e, &named, fine.p);
    channel_remarks(channel);
    return bad;
}

static void left_out(const struct tool *tool, const char *why)
{
    printf("warning  the tool %.*s of %.*s is left out: %s\n", STR_ARG(tool->name),
           STR_ARG(tool->pack), why);
}

/* Each agent: its model, and its tools by name. */
static void print_agents(const struct agents *agents, struct arena *arena)
{
    for (size_t i = 0; i < agents_count(agents); i++) {
        const struct agent *agent = agents_at(agents, i);
        AUTO(buf_done) struct buf names;
        buf_init(&names, CONFIG_PRINT_BYTES_MAX);
        for (size_t k = 0; k < agent->tool_count; k++)
            buf_printf(&names, "%s%.*s", k ? ", " : ": ", STR_ARG(agent->tools[k]->name));
        str fine = arena_printf(arena, "%.*s: model %s, %zu tools%.*s", STR_ARG(agent->name),
                                agent->model.name, agent->tool_count, STR_ARG(buf_str(&names)));
        report("agent", OK, NULL, fine.p);
    }
}

/* Could `serve` make the agents: their models and tools, schemas, whom policies are about? */
static enum err check_agents(const struct config *config, struct arena *arena,
                             const struct probe *probe, const struct tools *offered,
                             struct fault *reterr)
{
    struct tools packs[2] = {0}, own = {0};
    struct models *models = NULL;
    struct agent_set *set = NULL;
    calendar_tools(arena, NULL, &packs[0].rows, &packs[0].count);
    enum err e = toolbox_http_tools(arena, NULL, NULL, config, &packs[1], reterr);
    if (e) return e;
    e = tools_join(arena, packs, COUNT(packs), &own, reterr);
    if (!e) e = models_new(probe_loop(probe), probe_client(probe), config, &models, reterr);
    if (!e) e = agent_set_new(config, models, &own, NULL, &set, reterr);
    if (!e) {
        const struct tools all = toolbox_join(arena, &own, offered, config->mcps.count, left_out);
        struct agents *agents = agents_new(probe_loop(probe));
        agents_take(agents, set, &all);
        print_agents(agents, arena);
        agents_free(agents);
    }
    tools_free(&packs[1]);
    models_free(models);
    return e;
}

/* Also beside a running server: whether a reload would work is a question of that moment. */
static int check_work(const struct config *config, struct arena *arena, struct wall *wall,
                      bool served)
{
    struct tools *offered = arena_array(arena, config->mcps.count, sizeof *offered);
    int bad = 0;
    /* Each model once: those of the file, and that of the options if an agent uses it. */
    bool unnamed = false;
    for (size_t i = 0; i < config->models.count; i++)
        bad += check_model(&config->models.items[i], arena);
    for (size_t i = 0; i < config->agents.count; i++)
        unnamed = unnamed || !config->agents.items[i].model.len;
    if (unnamed) bad += check_model(&config->model, arena);
    struct probe *probe = probe_new(arena, config, wall);
    struct fault why = {0};
    bad += check_servers(config, arena, probe, offered);
    enum err e = check_agents(config, arena, probe, offered, &why);
    if (e) bad += report("agent", e, &why, "");
    for (size_t i = 0; i < config->channels.count; i++)
        bad += check_channel(config, arena, served, &config->channels.items[i]);
    probe_free(probe);
    return bad;
}

/* ---- the installation ---- */

struct settings_job {
    struct job job;
    const struct config *config;
    struct arena *arena;
    struct agent_settings *settings;
    struct fault why;
};

static enum err settings_run(struct job *job, struct db *db)
{
    struct settings_job *s = (struct settings_job *)(void *)job;
    return agent_settings_load_all(db, s->arena, &s->config->agents, &s->settings, &s->why);
}

/* Can what was set at run time be read? */
static enum err check_settings(const struct config *config, struct arena *arena,
                               struct fault *reterr)
{
    struct store *store = NULL;
    enum err e = store_open(config->data.p, NULL, &store, reterr);
    if (e) return e;
    struct settings_job s = {.job.run = settings_run, .config = config, .arena = arena};
    e = store_run(store, &s.job);
    if (e) fault(reterr, e, "%s", s.why.text[0] ? s.why.text : err_title(e));
    store_close(store);
    return e;
}

/* The verdict goes to standard output; why there is none to standard error. The lock is taken, if no
 * server has it, so that none starts and changes the schema meanwhile. */
static int check_audit(const struct config *config, struct arena *arena)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    AUTO(secret_freep) struct secret *secret = NULL;
    struct audit_tally tally = {0};
    struct fault why = {0};
    unsigned char key[HASH_BYTES];
    enum err e = home_there(&home, "check", &why);
    if (!e) e = home_lock(&home, &why);
    if (!e) e = secret_look(config->data.p, config->secret_file.p, &secret, &why);
    if (!e) {
        secret_subkey(secret, SECRET_AUDIT, key);
        e = audit_check_folder(config->data.p, key, &tally, &why);
        crypto_wipe(key, sizeof key);
    }
    if (e == ERR_DAMAGED)
        printf("audit: BROKEN: %s\n", why.text);
    else if (e)
        fprintf(stderr, "fermata: %s\n", why.text);
    else
        printf("audit: %llu chains (%llu closed), %llu entries, intact\n",
               (unsigned long long)tally.chains, (unsigned long long)tally.closed,
               (unsigned long long)tally.entries);
    return e ? EXIT_FAILED : EXIT_OK;
}

static void print_cautions(const struct config *config, struct wall *wall, bool login)
{
    struct caution list[CAUTIONS_MAX];
    size_t count = cautions(config, wall, login, list);
    for (size_t i = 0; i < count; i++) printf("warning  %s\n", list[i].text);
}

int check_main(const struct config *config, struct arena *arena, const struct args *args)
{
    if (args->audit) return check_audit(config, arena);
    struct buf text;
    buf_init(&text, CONFIG_PRINT_BYTES_MAX);
    config_print(config, &text);
    printf("%.*s\n", STR_ARG(buf_str(&text)));
    buf_done(&text);
    for (size_t i = 0; i < config->warnings.count; i++)
        printf("warning  %.*s\n", STR_ARG(config->warnings.items[i]));

    struct fault why = {0};
    AUTO(lock_freep) struct lock *lock = NULL;
    AUTO(wall_freep) struct wall *wall = NULL; /* from when the folder is there */
    enum err e = lock_take(config->data.p, "check", &lock, &why);
    if (e == ERR_LOCKED) {
        report("data", OK, &why, "a server is running on it");
        wall = caution_wall(config, arena);
        print_cautions(config, wall, true); /* whether it has keys, it has told */
        return check_work(config, arena, wall, true) ? EXIT_FAILED : EXIT_OK;
    }
    int bad = report("data", e, &why, config->data.p);
    if (bad) return EXIT_FAILED;

    AUTO(secret_freep) struct secret *secret = NULL;
    e = secret_open(config->data.p, config->secret_file.p, &secret, &why);
    bad += report("secret", e, &why, "");
    struct key_counts keys = {0};
    e = check_store(config, arena, &keys, &why);
    char count[32];
    snprintf(count, sizeof count, "%zu active keys", keys.active);
    bad += report("store", e, &why, count);
    /* Can objects be kept there? Makes the folder, as a start does. */
    const char *url = config_blobs(config, arena);
    struct blobs *blobs = NULL;
    e = blobs_open(NULL, url, &blobs, &why);
    blobs_close(blobs);
    bad += report("objects", e, &why, url);
    bad += report("settings", check_settings(config, arena, &why), &why, "");
    wall = caution_wall(config, arena);
    print_cautions(config, wall, keys.all || config->api_key.len);
    bad += check_work(config, arena, wall, false);
    /* Would `serve` accept to listen there? A revoked key lets nobody in, but keeps the door shut. */
    bool shut = guard_loopback(config->listen.host) || keys.all || config->api_key.len;
    bad += report("listen", shut ? OK : guard_refuse_open(config, &why), &why, "");
    return bad ? EXIT_FAILED : EXIT_OK;
}

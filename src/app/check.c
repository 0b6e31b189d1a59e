/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata check`: the effective configuration, and whether what it names works. Changes nothing
 * that a start would not change; with a server running it leaves the store to that server.
 *
 * `fermata check --audit`: whether somebody has changed the audit trail. Reads the database itself,
 * also under a running server: a reader holds nobody up, and the server need not be trusted to tell
 * the truth about its own past.
 */
#include <stdio.h>
#include <unistd.h>

#include "app/agents.h"
#include "app/commands.h"
#include "app/guard.h"
#include "app/home.h"
#include "app/key_job.h"
#include "base/limits.h"
#include "store/audit.h"
#include "store/blob.h"
#include "store/lock.h"
#include "store/secret.h"
#include "tool/calendar.h"
#include "tool/tools.h"

static int report(const char *what, enum err e, const struct fault *why, const char *fine)
{
    printf("%-8s %s%s%s\n", what, e ? "FAILED: " : "ok",
           e       ? why->text
           : *fine ? ": "
                   : "",
           e ? "" : fine);
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

/* Could `serve` make the agent: its tools, their schemas, whom its policy is about? */
static enum err check_agent(const struct config *config, struct arena *arena, size_t *ret_tools,
                            struct fault *reterr)
{
    struct store *store = NULL;
    enum err e = store_open(config->data.p, NULL, &store, reterr);
    if (e) return e;
    struct tools packs[2] = {0}, tools = {0};
    struct agent agent = {0};
    struct agents *agents = NULL;
    calendar_tools(arena, store, &packs[0].rows, &packs[0].count);
    e = agents_http_tools(arena, NULL, NULL, config, &packs[1], reterr);
    if (!e) e = tools_join(arena, packs, COUNT(packs), &tools, reterr);
    if (!e) e = agents_open(config, &tools, store, &agent, &agents, reterr);
    *ret_tools = agent.tool_count;
    agents_free(agents);
    store_close(store);
    return e;
}

/* Would `serve` accept to listen there? A revoked key lets nobody in, but keeps the door shut. */
static enum err check_listen(const struct config *config, size_t keys_ever, struct fault *reterr)
{
    if (guard_loopback(config->listen.host) || keys_ever || config->api_key.len) return OK;
    return guard_refuse_open(config, reterr);
}

/* Can objects be kept there? Makes the folder, as a start does. */
static enum err check_blobs(const char *url, struct fault *reterr)
{
    struct blobs *blobs = NULL;
    enum err e = blobs_open(NULL, url, &blobs, reterr);
    blobs_close(blobs);
    return e;
}

/* Before the lock is taken, because taking it would make the folder. */
static enum err check_there(const char *folder, struct arena *arena, struct fault *reterr)
{
    str path = arena_printf(arena, "%s/" STORE_DATABASE_NAME, folder);
    if (access(path.p, F_OK) == 0) return OK;
    return fault(reterr, ERR_NOT_FOUND, "there is nothing to check: %s has no database", folder);
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
    enum err e = check_there(config->data.p, arena, &why);
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
        printf("audit: %llu threads, %llu entries, intact\n", (unsigned long long)tally.threads,
               (unsigned long long)tally.entries);
    return e ? EXIT_FAILED : EXIT_OK;
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
    enum err e = lock_take(config->data.p, &lock, &why);
    if (e == ERR_LOCKED) {
        report("data", OK, &why, "a server is running on it");
        return EXIT_OK;
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
    const char *blobs = config_blobs(config, arena);
    bad += report("objects", check_blobs(blobs, &why), &why, blobs);
    size_t tools = 0;
    e = check_agent(config, arena, &tools, &why);
    snprintf(count, sizeof count, "%zu tools", tools);
    bad += report("agent", e, &why, count);
    bad += report("listen", check_listen(config, keys.all, &why), &why, "");
    return bad ? EXIT_FAILED : EXIT_OK;
}

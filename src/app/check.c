/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata check`: the effective configuration, and whether what it names works. Changes nothing
 * that a start would not change; with a server running it leaves the store to that server.
 */
#include <stdio.h>

#include "app/commands.h"
#include "app/guard.h"
#include "app/key_job.h"
#include "store/lock.h"
#include "store/secret.h"

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

/* Would `serve` accept to listen there? A revoked key lets nobody in, but keeps the door shut. */
static enum err check_listen(const struct config *config, size_t keys_ever, struct fault *reterr)
{
    if (guard_loopback(config->listen.host) || keys_ever || config->api_key.len) return OK;
    return guard_refuse_open(config, reterr);
}

int check_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    struct buf text;
    buf_init(&text, 256 * 1024);
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
    bad += report("listen", check_listen(config, keys.all, &why), &why, "");
    return bad ? EXIT_FAILED : EXIT_OK;
}

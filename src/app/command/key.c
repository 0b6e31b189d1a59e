/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata key add | list | revoke`. With a server running on the data folder the work is done by
 * that server, through its admin socket, so it takes effect at once; otherwise here, under the
 * folder's lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command/home.h"
#include "app/command/key_job.h"
#include "app/commands.h"
#include "app/say.h"
#include "base/limits.h"

static int failed(const struct fault *why)
{
    fprintf(stderr, "fermata: %s\n", why->text);
    return EXIT_FAILED;
}

static enum err revoke_key(const struct home *home, str id, struct fault *reterr);

/* ---- add ---- */

static str add_request(struct arena *arena, const struct args *args)
{
    struct buf out;
    buf_init(&out, 64 * 1024);
    struct json_writer w;
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("user"), args->user);
    json_member(&w, STR("name"), args->name);
    json_key(&w, STR("roles"));
    json_array(&w);
    for (size_t i = 0; i < args->roles.count; i++) json_string(&w, args->roles.items[i]);
    json_array_end(&w);
    json_object_end(&w);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

static enum err add_key(const struct home *home, const struct args *args, str *ret_key,
                        struct fault *reterr)
{
    if (home->store) {
        struct key_add *add = ARENA_NEW(home->arena, struct key_add);
        key_add_init(add, args->user, args->name,
                     key_roles_of(args->roles.items, args->roles.count));
        enum err e = key_fault(store_run(home->store, &add->job), args->user, reterr);
        if (!e) *ret_key = str_c(add->text);
        return e;
    }
    struct json *answer = NULL;
    enum err e = home_ask(home,
                          &(struct home_request){.method = "POST",
                                                 .path = "/keys",
                                                 .body = add_request(home->arena, args)},
                          &answer, reterr);
    if (!e) *ret_key = json_text(json_get(answer, STR("key")));
    return e;
}

int key_add_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    str key = STR_EMPTY;
    if (home_open(&home, &why) || add_key(&home, args, &key, &why)) return failed(&why);
    printf("%.*s\n", STR_ARG(key));
    if (fflush(stdout) || ferror(stdout)) { /* nobody has it: it must not stay valid */
        str id;
        if (key_parse(key, &id) == OK) (void)!revoke_key(&home, id, &why);
        fprintf(stderr, "fermata: the key could not be printed, so it was revoked\n");
        return EXIT_FAILED;
    }
    fprintf(stderr,
            "Keep it: it is shown only this once. From now on every request needs a key.\n");
    return EXIT_OK;
}

/* ---- list ---- */

static str list_text(const struct home *home, struct fault *reterr)
{
    struct key_list_job list;
    key_list_init(&list, home->arena);
    if (key_fault(store_run(home->store, &list.job), STR_EMPTY, reterr)) return STR_EMPTY;
    struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX);
    key_list_json(&out, &list.list);
    str copy = arena_str(home->arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

static enum err list_keys(const struct home *home, struct json **ret_list, struct fault *reterr)
{
    if (!home->store)
        return home_ask(home, &(struct home_request){"GET", "/keys", STR_EMPTY, 0}, ret_list,
                        reterr);
    str text = list_text(home, reterr);
    if (!text.len) return reterr->err;
    return json_parse(home->arena, text, ret_list, NULL);
}

static void print_key(const struct json *key)
{
    const struct json *roles = json_get(key, STR("roles"));
    char names[64] = "";
    for (const struct json *role = roles ? roles->child : NULL; role; role = role->next) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s%.*s", len ? "," : "", STR_ARG(role->text));
    }
    bool revoked = json_get(key, STR("revokedAt"));
    printf("%-26.*s  %-7s  %-24s  %-22s  %.*s  %s\n", STR_ARG(json_text(json_get(key, STR("id")))),
           revoked ? "revoked" : "active", names, say(json_text(json_get(key, STR("user")))).text,
           STR_ARG(json_text(json_get(key, STR("createdAt")))),
           say(json_text(json_get(key, STR("name")))).text);
}

int key_list_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    struct json *list = NULL;
    if (home_open(&home, &why) || list_keys(&home, &list, &why)) return failed(&why);
    const struct json *keys = json_get(list, STR("keys"));
    if (!keys || !keys->count)
        fprintf(stderr, "There are no keys. `fermata key add --user NAME` makes one.\n");
    for (const struct json *key = keys ? keys->child : NULL; key; key = key->next) print_key(key);
    return EXIT_OK;
}

/* ---- revoke ---- */

static enum err revoke_key(const struct home *home, str id, struct fault *reterr)
{
    if (!id_valid(id)) return key_fault(ERR_NOT_FOUND, id, reterr);
    if (!home->store) {
        struct json *answer = NULL;
        str path = arena_printf(home->arena, "/keys/%.*s", STR_ARG(id));
        return home_ask(home, &(struct home_request){"DELETE", path.p, STR_EMPTY, 0}, &answer,
                        reterr);
    }
    struct key_revoke revoke;
    key_revoke_init(&revoke, id);
    return key_fault(store_run(home->store, &revoke.job), id, reterr);
}

int key_revoke_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    if (home_open(&home, &why) || revoke_key(&home, args->operand, &why)) return failed(&why);
    fprintf(stderr,
            "Revoked; its sessions have ended, and with the last key of a user the links of "
            "their chats.\n");
    return EXIT_OK;
}

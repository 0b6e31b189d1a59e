/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata key add | list | revoke`: API keys, with or without a running server. With a server
 * running on the data folder the work is done by that server, through its admin socket, so it takes
 * effect at once; otherwise here, under the folder's lock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/say.h"
#include "cli/home.h"
#include "config/commands.h"
#include "server/key_job.h"
#include "store/db/secret.h"

static enum err revoke_key(const struct home *home, const struct config *config, str id,
                           struct fault *reterr);

/* ---- add ---- */

/* The trail's key, if the folder has ever had a secret: a folder without one has no trail. */
struct trail_key {
    bool there;
    unsigned char bytes[HASH_BYTES];
};

static enum err trail_key(const struct config *config, struct arena *arena,
                          struct trail_key *ret_key, struct fault *reterr)
{
    AUTO(secret_freep) struct secret *secret = NULL;
    str path = config->secret_file.len ? config->secret_file
                                       : arena_printf(arena, "%s/" SECRET_KEY_NAME, config->data.p);
    if (access(path.p, F_OK) && errno == ENOENT) return OK;
    enum err e = secret_look(config->data.p, config->secret_file.p, &secret, reterr);
    if (e) return e;
    ret_key->there = true;
    secret_subkey(secret, SECRET_AUDIT, ret_key->bytes);
    return OK;
}

struct added {
    str key;
    int64_t adopted, left; /* conversations of `local` */
};

static enum err add_key(const struct home *home, const struct config *config,
                        const struct args *args, struct added *ret_added, struct fault *reterr)
{
    if (home->store) {
        struct key_add *add = ARENA_NEW(home->arena, struct key_add);
        struct trail_key trail = {0};
        enum err e = trail_key(config, home->arena, &trail, reterr);
        if (e) return e;
        key_add_init(add, args->user, args->name,
                     key_roles_of(args->roles.items, args->roles.count));
        add->no_adopt = args->no_adopt;
        add->local_used = config->api_key.len;
        add->audit_key = trail.there ? trail.bytes : NULL;
        e = key_fault(store_run(home->store, &add->job), args->user, reterr);
        crypto_wipe(trail.bytes, sizeof trail.bytes);
        if (!e) *ret_added = (struct added){str_c(add->text), add->adopted, add->left};
        return e;
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 64 * 1024);
    json_object(&doc.w);
    json_member(&doc.w, STR("user"), args->user);
    json_member(&doc.w, STR("name"), args->name);
    json_key(&doc.w, STR("roles"));
    json_array(&doc.w);
    for (size_t i = 0; i < args->roles.count; i++) json_string(&doc.w, args->roles.items[i]);
    json_array_end(&doc.w);
    if (args->no_adopt) json_member_bool(&doc.w, STR("noAdopt"), true);
    json_object_end(&doc.w);
    struct json *answer = NULL;
    enum err e = home_ask(
        home, &(struct home_request){.method = "POST", .path = "/keys", .body = buf_str(&doc.buf)},
        &answer, reterr);
    if (e) return e;
    uint64_t adopted = 0, left = 0;
    if (json_u64(json_get(answer, STR("adopted")), &adopted) ||
        json_u64(json_get(answer, STR("left")), &left))
        adopted = left = 0; /* a server of an older version */
    *ret_added =
        (struct added){json_text(json_get(answer, STR("key"))), (int64_t)adopted, (int64_t)left};
    return OK;
}

int key_add_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    struct added added = {0};
    if (!roles_valid(key_roles_of(args->roles.items, args->roles.count))) {
        fprintf(stderr,
                "fermata: --role ask stands alone: such a key asks through /mcp, and what it "
                "asks is answered with another key\n");
        return EXIT_USAGE;
    }
    if (home_open(&home, &why) || add_key(&home, config, args, &added, &why))
        return home_failed(&why);
    printf("%.*s\n", STR_ARG(added.key));
    if (fflush(stdout) || ferror(stdout)) { /* nobody has it: it must not stay valid */
        str id;
        if (key_parse(added.key, &id) == OK) (void)!revoke_key(&home, config, id, &why);
        fprintf(stderr, "fermata: the key could not be printed, so it was revoked\n");
        return EXIT_FAILED;
    }
    fprintf(stderr,
            "Keep it: it is shown only this once. From now on every request needs a key.\n");
    /* What became of the time before there were keys. */
    if (added.adopted)
        fprintf(stderr, "adopted %lld conversation%s of local: they are %s's now.\n",
                (long long)added.adopted, added.adopted == 1 ? "" : "s", say(args->user).text);
    if (added.left)
        fprintf(stderr,
                "%lld conversation%s of local stay%s with local: `fermata key add --user local` "
                "makes a key that sees them.\n",
                (long long)added.left, added.left == 1 ? "" : "s", added.left == 1 ? "s" : "");
    return EXIT_OK;
}

/* ---- list ---- */

static enum err list_keys(const struct home *home, struct json **ret_list, struct fault *reterr)
{
    if (!home->store)
        return home_ask(home, &(struct home_request){"GET", "/keys", STR_EMPTY, 0}, ret_list,
                        reterr);
    struct key_list_job list;
    key_list_init(&list, home->arena);
    enum err e = key_fault(store_run(home->store, &list.job), STR_EMPTY, reterr);
    if (e) return e;
    AUTO(buf_done) struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX);
    key_list_json(&out, &list.list);
    return json_parse(home->arena, arena_str(home->arena, buf_str(&out)), ret_list, NULL);
}

int key_list_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)args;
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    struct json *list = NULL;
    if (home_open(&home, &why) || list_keys(&home, &list, &why)) return home_failed(&why);
    const struct json *keys = json_get(list, STR("keys"));
    if (!keys || !keys->count)
        fprintf(stderr, "There are no keys. `fermata key add --user NAME` makes one.\n");
    for (const struct json *key = keys ? keys->child : NULL; key; key = key->next) {
        const struct json *roles = json_get(key, STR("roles"));
        char names[64] = "";
        for (const struct json *role = roles ? roles->child : NULL; role; role = role->next) {
            size_t len = strlen(names);
            snprintf(names + len, sizeof names - len, "%s%.*s", len ? "," : "",
                     STR_ARG(role->text));
        }
        bool revoked = json_get(key, STR("revokedAt"));
        printf("%-26.*s  %-7s  %-24s  %-22s  %.*s  %s\n",
               STR_ARG(json_text(json_get(key, STR("id")))), revoked ? "revoked" : "active", names,
               say(json_text(json_get(key, STR("user")))).text,
               STR_ARG(json_text(json_get(key, STR("createdAt")))),
               say(json_text(json_get(key, STR("name")))).text);
    }
    return EXIT_OK;
}

/* ---- revoke ---- */

static enum err revoke_key(const struct home *home, const struct config *config, str id,
                           struct fault *reterr)
{
    if (!id_valid(id)) return key_fault(ERR_NOT_FOUND, id, reterr);
    if (!home->store) {
        struct json *answer = NULL;
        str path = arena_printf(home->arena, "/keys/%.*s", STR_ARG(id));
        return home_ask(home, &(struct home_request){"DELETE", path.p, STR_EMPTY, 0}, &answer,
                        reterr);
    }
    struct key_revoke revoke;
    struct trail_key trail = {0};
    enum err e = trail_key(config, home->arena, &trail, reterr);
    if (e) return e;
    key_revoke_init(&revoke, id);
    revoke.audit_key = trail.there ? trail.bytes : NULL;
    return key_fault(store_run(home->store, &revoke.job), id, reterr);
}

int key_revoke_main(const struct config *config, struct arena *arena, const struct args *args)
{
    AUTO(home_done) struct home home = {.folder = config->data.p, .arena = arena};
    struct fault why = {0};
    if (home_open(&home, &why) || revoke_key(&home, config, args->operand, &why))
        return home_failed(&why);
    fprintf(stderr,
            "Revoked; its sessions have ended, roles that no other key of the user has, with what "
            "was allowed for always by them, and with the last key of a user the links of their "
            "chats.\n");
    return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The admin socket, data/fermata.sock: how the command line talks to the running server. Who can
 * open the socket owns the data folder, so nobody is asked for a key.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/members.h"
#include "base/say.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "http/route.h"
#include "net/loop.h"
#include "server/endings.h"
#include "server/key_job.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/db/copy.h"

struct admin_add {
    struct key_add add; /* first: the store's job is the exchange's */
    struct exchange *x;
};

static void add_done(struct job *job, enum err e)
{
    struct admin_add *add = (struct admin_add *)(void *)job;
    struct exchange *x = add->x;
    struct fault why = {0};
    e = key_fault(e, add->add.key.user, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    bool open = !auth_required(x->server->auth);
    auth_add_key(x->server->auth, &add->add.key);
    if (open) endings_key(x->server, STR_EMPTY); /* until now anybody was heard without one */
    log_info("key.added", LOG_STR("id", add->add.key.id), LOG_STR("user", add->add.key.user));
    if (add->add.adopted)
        log_info("local.adopted", LOG_STR("user", add->add.key.user),
                 LOG_I64("threads", add->add.adopted));
    exchange_json(x, 201,
                  arena_printf(exchange_arena(x),
                               "{\"id\":\"%.*s\",\"key\":\"%s\",\"adopted\":%lld,\"left\":%lld}",
                               STR_ARG(add->add.key.id), add->add.text, (long long)add->add.adopted,
                               (long long)add->add.left));
}

static void admin_key_add(struct exchange *x)
{
    static const char *const known[] = {"user", "name", "roles", "noAdopt", NULL};
    struct fault why = {0};
    str user, name = STR_EMPTY;
    bool named = json_text(json_get(x->body, STR("name"))).len;
    unsigned roles = 0;
    enum err e = members_known(x->body, known, &why);
    if (!e) e = exchange_line(x->body, "user", USER_BYTES_MAX, &user, &why);
    /* One that is too long is refused in the words of the command without a server. */
    if (!e && named) e = exchange_line(x->body, "name", SIZE_MAX, &name, &why);
    if (!e) e = key_roles(json_get(x->body, STR("roles")), &roles, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    struct admin_add *add = ARENA_NEW(exchange_arena(x), struct admin_add);
    key_add_init(&add->add, user, name, roles);
    const struct json *no_adopt = json_get(x->body, STR("noAdopt"));
    add->add.no_adopt = no_adopt && no_adopt->type == JSON_TRUE;
    add->add.local_used = x->server->config->api_key.len;
    add->add.audit_key = x->server->saver.audit_key;
    add->add.job.done = add_done;
    add->x = x;
    store_write(x->server->store, &add->add.job);
}

struct admin_list {
    struct key_list_job list;
    struct exchange *x;
};

static void list_done(struct job *job, enum err e)
{
    struct admin_list *list = (struct admin_list *)(void *)job;
    if (e) {
        exchange_error(list->x, e, NULL);
        return;
    }
    struct buf body;
    buf_init(&body, HTTP_ANSWER_BYTES_MAX / 2);
    key_list_json(&body, &list->list.list);
    exchange_json(list->x, 200, buf_str(&body));
    buf_done(&body);
}

static void admin_key_list(struct exchange *x)
{
    struct admin_list *list = ARENA_NEW(exchange_arena(x), struct admin_list);
    key_list_init(&list->list, exchange_arena(x));
    list->list.job.done = list_done;
    list->x = x;
    store_read(x->server->store, &list->list.job);
}

struct admin_revoke {
    struct key_revoke revoke;
    struct exchange *x;
};

static void revoke_done(struct job *job, enum err e)
{
    struct admin_revoke *revoke = (struct admin_revoke *)(void *)job;
    struct exchange *x = revoke->x;
    struct fault why = {0};
    e = key_fault(e, revoke->revoke.id, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    auth_remove_key(x->server->auth, revoke->revoke.id);
    endings_key(x->server, revoke->revoke.id);
    log_info("key.revoked", LOG_STR("id", revoke->revoke.id));
    exchange_empty(x);
}

static void admin_key_revoke(struct exchange *x)
{
    struct admin_revoke *revoke = ARENA_NEW(exchange_arena(x), struct admin_revoke);
    key_revoke_init(&revoke->revoke, x->params[0]);
    revoke->revoke.audit_key = x->server->saver.audit_key;
    revoke->revoke.job.done = revoke_done;
    revoke->x = x;
    store_write(x->server->store, &revoke->revoke.job);
}

struct admin_copy {
    struct copy copy;
    const char *blobs; /* folder of the objects, absolute */
    struct exchange *x;
};

static void copy_done(struct job *job, enum err e)
{
    struct admin_copy *copy = (struct admin_copy *)(void *)job;
    struct exchange *x = copy->x;
    if (e) { /* whoever asks owns the folder and may know everything */
        blobs_release(x->server->blobs);
        exchange_error(x, e < ERR_IO ? e : ERR_INTERNAL, &copy->copy.why);
        return;
    }
    log_info("database.copied", LOG_CSTR("path", copy->copy.path));
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 8 * PATH_MAX);
    json_object(&doc.w);
    json_member_i64(&doc.w, STR("schema"), copy->copy.schema);
    json_member(&doc.w, STR("blobs"), str_c(copy->blobs));
    json_object_end(&doc.w);
    exchange_json(x, 201, buf_str(&doc.buf));
}

/* A copy of the database for `fermata backup`, which makes the rest of the archive itself. The
 * objects that the copy names are held until it says that it has ended, or is never heard of again.
 */
static void admin_backup(struct exchange *x)
{
    static const char *const known[] = {"path", NULL};
    struct fault why = {0};
    str path;
    enum err e = members_known(x->body, known, &why);
    if (!e) e = member_string(x->body, "path", CONFIG_TEXT_BYTES_MAX, &path, &why);
    if (!e && (path.p[0] != '/' || !say_plain(path)))
        e = fault_field(&why, ERR_INVALID_FIELD, "path", "path must be absolute and printable");
    /* The folder of the objects, as another process finds it. */
    char blobs[PATH_MAX];
    const char *folder = blob_folder(config_blobs(x->server->config, exchange_arena(x)));
    if (!e && (!folder || !realpath(folder, blobs)))
        e = fault(&why, ERR_INTERNAL, "the folder of the objects cannot be found");
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    struct admin_copy *copy = ARENA_NEW(exchange_arena(x), struct admin_copy);
    blobs_hold(x->server->blobs, loop_now(x->server->loop) + BACKUP_HOLD_MS_MAX);
    copy->blobs = arena_cstr(exchange_arena(x), str_c(blobs));
    copy_init(&copy->copy, x->server->store, arena_cstr(exchange_arena(x), path));
    copy->copy.job.done = copy_done;
    copy->x = x;
    store_read(x->server->store, &copy->copy.job);
}

static void admin_backup_end(struct exchange *x)
{
    blobs_release(x->server->blobs);
    exchange_empty(x);
}

/* `fermata mcp`. Whoever owns the folder is nobody in particular: with keys a question needs one. */
static void admin_mcp(struct exchange *x)
{
    struct auth *auth = x->server->auth;
    str value = http_head_get(x->head, STR("Authorization")), key = value;
    struct fault why = {0};
    x->here = true;
    str scheme = str_split(&key, ' ');
    bool given = auth_required(auth) && str_eq_nocase(scheme, STR("Bearer")) && key.p;
    enum err e = given ? auth_by_key(auth, exchange_arena(x), str_trim(key), x->address, &x->who)
                       : auth_local(auth, true, &x->who);
    if (e)
        exchange_error(x, fault(&why, e, "set FERMATA_API_KEY to a key of this server"), &why);
    else
        handle_mcp(x);
}

static const struct route rows[] = {
    {.method = HTTP_POST,
     .path = "/keys",
     .body_bytes_max = 16 * 1024,
     .body = "Object",
     .handle = admin_key_add},
    {.method = HTTP_GET, .path = "/keys", .handle = admin_key_list},
    {.method = HTTP_DELETE, .path = "/keys/{id}", .handle = admin_key_revoke},
    {.method = HTTP_POST,
     .path = "/backup",
     .body_bytes_max = 16 * 1024,
     .body = "Object",
     .handle = admin_backup,
     .name = "backup"},
    {.method = HTTP_DELETE, .path = "/backup", .handle = admin_backup_end},
    {.method = HTTP_GET, .path = "/channels", .handle = handle_channels_list},
    {.method = HTTP_POST,
     .path = "/channels/{name}/login",
     .body_bytes_max = 16 * 1024,
     .body = "ChannelLoginWish",
     .body_optional = true,
     .handle = handle_channel_login},
    {.method = HTTP_POST,
     .path = "/channels/{name}/links",
     .body_bytes_max = 16 * 1024,
     .body = "Object",
     .handle = admin_channel_link},
    {.method = HTTP_DELETE,
     .path = "/channels/{name}/links",
     .body_bytes_max = 16 * 1024,
     .body = "Object",
     .handle = admin_channel_unlink},
    {.method = HTTP_POST,
     .path = "/desk",
     .body_bytes_max = DESK_BODY_BYTES_MAX,
     .body = "McpMessage",
     .raw = true,
     .handle = admin_mcp,
     .name = "mcp"},
};

const struct routes admin_routes = {rows, COUNT(rows)};

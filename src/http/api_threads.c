/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads: list and search, look, rename, delete, export.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/facts.h"
#include "agent/core/files.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "base/members.h"
#include "feed/thread_json.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "http/query.h"
#include "server/server.h"
#include "thread/edit_thread.h"
#include "tool/spool.h"

/* ---- GET /threads ---- */

struct list_threads {
    struct job job;
    struct exchange *x;
    struct thread_query query;
    struct thread_list list;
};

static enum err list_run(struct job *job, struct db *db)
{
    struct list_threads *list = (struct list_threads *)(void *)job;
    struct thread_query query = list->query;
    query.until = clock_steady(&clock_system) + SEARCH_MS_MAX;
    return thread_page(db, exchange_arena(list->x), &query, &list->list);
}

static void list_done(struct job *job, enum err e)
{
    struct list_threads *list = (struct list_threads *)(void *)job;
    if (e) {
        exchange_error(list->x, e, NULL);
        return;
    }
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, HTTP_ANSWER_BYTES_MAX / 2);
    json_object(&doc.w);
    json_key(&doc.w, STR("threads"));
    json_array(&doc.w);
    for (size_t i = 0; i < list->list.count; i++)
        thread_write(&doc.w, &list->list.threads[i], NULL);
    json_array_end(&doc.w);
    if (list->list.more) {
        const struct thread_place *next = &list->list.next;
        char cursor[72];
        int len = snprintf(cursor, sizeof cursor, "%lld-%lld", (long long)next->updated,
                           (long long)next->id);
        if (next->seq)
            snprintf(cursor + len, sizeof cursor - (size_t)len, "-%lld", (long long)next->seq);
        json_member(&doc.w, STR("next"), str_c(cursor));
    }
    json_object_end(&doc.w);
    exchange_json(list->x, 200, buf_str(&doc.buf));
}

/* "<updated>-<id>" of the last thread looked at; "-<seq>" behind it, of a search only, if there was
 * more of it to look at. */
static enum err parse_cursor(str text, bool search, struct thread_place *ret_place,
                             struct fault *reterr)
{
    if (!text.p) return OK;
    str rest = text;
    uint64_t numbers[3] = {0};
    enum err e = OK;
    size_t count = 0;
    for (; !e && rest.p && count < COUNT(numbers); count++) {
        e = str_to_u64(str_split(&rest, '-'), &numbers[count]);
        if (!e && numbers[count] > INT64_MAX) e = ERR_INVALID_FIELD;
    }
    if (e || rest.p || count < 2 || (count == 3 && !search))
        return fault_field(reterr, ERR_INVALID_FIELD, "cursor", "cursor is not one of ours");
    *ret_place = (struct thread_place){
        .updated = (msec)numbers[0], .id = (int64_t)numbers[1], .seq = (int64_t)numbers[2]};
    return OK;
}

void handle_threads_list(struct exchange *x)
{
    struct list_threads *list = ARENA_NEW(exchange_arena(x), struct list_threads);
    struct thread_query *query = &list->query;
    struct fault why = {0};
    str cursor = {NULL, 0};
    enum err e = query_text(x, "query", &query->query, &why);
    if (!e && query->query.len > SEARCH_QUERY_BYTES_MAX)
        e = fault_field(&why, ERR_INVALID_FIELD, "query", "query may have %d bytes",
                        SEARCH_QUERY_BYTES_MAX);
    if (!e) e = query_text(x, "cursor", &cursor, &why);
    if (!e) e = parse_cursor(cursor, query->query.len > 0, &query->after, &why);
    if (!e) e = query_limit(x, &query->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    query->owner = x->who.user;
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    exchange_read(x, &list->job, query->query.len ? READ_WALK : READ_PAGE);
}

/* ---- GET /threads/{id} ---- */

struct get_thread {
    struct job job;
    struct exchange *x;
    struct thread thread;
    struct spent_list spent;
};

static enum err get_run(struct job *job, struct db *db)
{
    struct get_thread *get = (struct get_thread *)(void *)job;
    struct arena *arena = exchange_arena(get->x);
    enum err e = thread_find(db, arena, get->x->who.user, get->x->params[0], &get->thread);
    return e ? e : runs_spent(db, arena, get->thread.id, USAGE_CURRENCY, &get->spent);
}

static void get_done(struct job *job, enum err e)
{
    struct get_thread *get = (struct get_thread *)(void *)job;
    if (e)
        exchange_error(get->x, e, NULL);
    else
        exchange_json(get->x, 200, thread_json(exchange_arena(get->x), &get->thread, &get->spent));
}

void handle_thread_get(struct exchange *x)
{
    struct get_thread *get = ARENA_NEW(exchange_arena(x), struct get_thread);
    get->job = (struct job){.run = get_run, .done = get_done};
    get->x = x;
    exchange_read(x, &get->job, READ_PAGE);
}

/* ---- PATCH /threads/{id} ---- */

void handle_thread_patch(struct exchange *x)
{
    static const char *const known[] = {"title", NULL};
    struct rename_thread *rename = ARENA_NEW(exchange_arena(x), struct rename_thread);
    struct fault why = {0};
    enum err e = members_known(x->body, known, &why);
    if (!e) e = exchange_line(x->body, "title", THREAD_TITLE_BYTES_MAX, &rename->title, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    change_for(&rename->change, x);
    rename->thread_id = x->params[0];
    rename_thread(rename);
}

/* ---- DELETE /threads/{id} ---- */

void handle_thread_delete(struct exchange *x)
{
    struct delete_thread *delete = ARENA_NEW(exchange_arena(x), struct delete_thread);
    change_for(&delete->change, x);
    delete->thread_id = x->params[0];
    delete_thread(delete);
}

/* ---- GET /threads/{id}/export ---- */

/* Written into a file without a name, a step at a time, and answered from it: whatever its length, and
 * however slowly it is read, there is little of it in memory. It ends behind what was there when it
 * began. */
struct export
{
    struct job job;
    struct exchange *x;
    bool json;
    struct thread thread;
    int fd;
    uint64_t bytes; /* in the file */
    int64_t after;  /* the last message in it; -1: none */
    bool more;
    struct fault why;
};

static void put_markdown(struct buf *out, const struct message *message)
{
    char time[RFC3339_BYTES];
    clock_rfc3339(message->created, time);
    buf_printf(out, "## %.*s · %s\n\n", STR_ARG(message->role), time);
    buf_append(out, message->plain);
    buf_append(out, STR("\n\n"));
    /* The names of its files, a line each. */
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct file_list list = files_of(&arena, message);
    for (size_t i = 0; i < list.count; i++) {
        str line = file_line(&arena, locale_of(message->plain), &list.files[i], FILE_NAMED);
        buf_printf(out, "%.*s\n%s", STR_ARG(line), i + 1 == list.count ? "\n" : "");
    }
}

static enum err export_write(struct export *export, const struct buf *out)
{
    str rest = buf_str(out);
    if (out->full || export->bytes + rest.len > EXPORT_BYTES_MAX)
        return fault(&export->why, ERR_TOO_LARGE, "the export has more than %d MiB",
                     EXPORT_BYTES_MAX / (1024 * 1024));
    while (rest.len) {
        ssize_t count = pwrite(export->fd, rest.p, rest.len, (off_t) export->bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno == ENOSPC || errno == EDQUOT ? ERR_STORAGE_FULL : ERR_IO;
        export->bytes += (uint64_t)count;
        rest = str_drop(rest, (size_t)count);
    }
    return OK;
}

/* Messages of one page that were there at the beginning. */
static enum err put_messages(struct export *export, struct db *db, struct buf *out)
{
    AUTO(arena_done) struct arena arena;
    struct message_list page = {0};
    arena_init(&arena);
    enum err e = message_page(db, &arena, export->thread.id, 0, export->after, LIST_LIMIT, &page);
    if (e) return e;
    export->more = page.more;
    for (size_t i = 0; i < page.count; i++) {
        const struct message *message = &page.messages[i];
        if (message->seq > export->thread.last_seq) {
            export->more = false;
            break;
        }
        if (export->json && export->after >= 0) buf_char(out, ',');
        if (export->json)
            message_write(out, message);
        else
            put_markdown(out, message);
        export->after = message->seq;
    }
    return OK;
}

static enum err export_step(struct export *export, struct db *db, struct buf *out)
{
    struct exchange *x = export->x;
    struct arena *arena = exchange_arena(x);
    struct thread now;
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &now);
    if (!e && export->fd >= 0 && now.id != export->thread.id) e = ERR_NOT_FOUND; /* made anew */
    if (e) return e;
    if (export->fd < 0) {
        struct spent_list spent = {0};
        export->thread = now;
        e = spool_unnamed(x->server->spool, &export->fd, &export->why);
        if (!e) e = runs_spent(db, arena, now.id, USAGE_CURRENCY, &spent);
        if (e) return e;
        if (export->json) {
            struct json_writer w;
            buf_append(out, STR("{\"thread\":"));
            json_write_begin(&w, out);
            thread_write(&w, &now, &spent);
            buf_append(out, STR(",\"messages\":["));
        } else {
            buf_printf(out, "# %.*s\n\n", STR_ARG(now.title));
        }
    }
    do {
        e = put_messages(export, db, out);
    } while (!e && export->more && out->len < EXPORT_STEP_BYTES && !out->full);
    if (!e && !export->more && export->json) buf_append(out, STR("]}"));
    return e ? e : export_write(export, out);
}

static enum err export_run(struct job *job, struct db *db)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX);
    return export_step((struct export *)(void *)job, db, &out);
}

/* The place among the exports outlives the request: the file is open until it is read. */
struct export_place {
    struct server *server;
    size_t len;
    char user[];
};

static void export_closed(void *arg)
{
    struct export_place *place = arg;
    pool_give(place->server, POOL_EXPORTS, (str){place->user, place->len});
    free(place);
}

static void export_answer(struct export *export)
{
    struct exchange *x = export->x;
    const struct http_field name = {
        STR("Content-Disposition"),
        arena_printf(exchange_arena(x), "attachment; filename=\"%.*s.%s\"",
                     STR_ARG(export->thread.thread_id), export->json ? "json" : "md")};
    struct export_place *place = malloc(sizeof *place + x->who.user.len);
    if (!place) abort();
    *place = (struct export_place){x->server, x->who.user.len};
    memcpy(place->user, x->who.user.p, place->len);
    http_answer_file(x->request,
                     &(struct http_answer){.status = 200,
                                           .content_type = export->json
                                                               ? "application/json"
                                                               : "text/markdown; charset=utf-8",
                                           .fields = &name,
                                           .field_count = 1,
                                           .on_closed = export_closed,
                                           .closed_arg = place},
                     export->fd, 0, export->bytes);
}

static void export_done(struct job *job, enum err e)
{
    struct export *export = (struct export *)(void *)job;
    struct exchange *x = export->x;
    if (!e && http_gone(x->request)) e = ERR_NETWORK; /* nobody reads it any more */
    if (!e && export->more) {
        exchange_read(x, &export->job, READ_WALK);
        return;
    }
    if (!e) {
        export_answer(export);
        return;
    }
    if (export->fd >= 0) close(export->fd);
    pool_give(x->server, POOL_EXPORTS, x->who.user);
    exchange_error(x, e, export->why.text[0] && e == ERR_TOO_LARGE ? &export->why : NULL);
}

void handle_thread_export(struct exchange *x)
{
    struct export *export = ARENA_NEW(exchange_arena(x), struct export);
    struct fault why = {0};
    str format;
    enum err e = query_text(x, "format", &format, &why);
    export->json = format.p && str_eq(format, STR("json"));
    if (!e && format.p && !export->json && !str_eq(format, STR("md")))
        e = fault_field(&why, ERR_INVALID_FIELD, "format", "format must be md or json");
    if (!e) e = pool_take(x->server, POOL_EXPORTS, x->who.user, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    export->job = (struct job){.run = export_run, .done = export_done};
    export->x = x;
    export->fd = -1;
    export->after = -1;
    exchange_read(x, &export->job, READ_WALK);
}

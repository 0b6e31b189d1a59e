/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads: list and search, look, rename, delete, export.
 */
#include <stdio.h>
#include <string.h>

#include "agent/facts.h"
#include "agent/files.h"
#include "agent/run.h"
#include "agent/texts.h"
#include "app/api/handlers.h"
#include "app/feed/feed.h"
#include "app/feed/inbox.h"
#include "app/http/change.h"
#include "app/http/query.h"
#include "app/input/thread_change.h"
#include "app/server.h"
#include "base/limits.h"
#include "store/attachments.h"
#include "store/blob.h"
#include "store/blob_rows.h"
#include "store/calls.h"
#include "store/interactions.h"
#include "tool/spool.h"

static void put_time(struct json_writer *w, str name, msec time)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(time, text);
    json_member(w, name, str_c(text));
}

/* What its runs used, each currency by itself. */
static void put_spent(struct json_writer *w, const struct spent_list *spent)
{
    json_key(w, STR("usage"));
    json_array(w);
    for (size_t i = 0; i < spent->count; i++) {
        const struct spent *row = &spent->rows[i];
        struct usage usage = {row->input_tokens, row->output_tokens, row->cost, row->currency};
        usage_write(w, &usage);
    }
    json_array_end(w);
}

/* `spent` NULL: a row of a list, which does not say. */
static void put_thread(struct json_writer *w, const struct thread *thread,
                       const struct spent_list *spent)
{
    json_object(w);
    json_member(w, STR("threadId"), thread->thread_id);
    json_member(w, STR("title"), thread->title);
    json_member(w, STR("agent"), thread->agent);
    json_key(w, STR("seq"));
    json_number_i64(w, thread->last_seq);
    put_time(w, STR("createdAt"), thread->created);
    put_time(w, STR("updatedAt"), thread->updated);
    if (spent) put_spent(w, spent);
    json_object_end(w);
}

static str thread_json(struct arena *arena, const struct thread *thread,
                       const struct spent_list *spent)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 64 * 1024);
    json_write_begin(&w, &out);
    put_thread(&w, thread, spent);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

/* ---- GET /threads ---- */

struct list_threads {
    struct job job;
    struct exchange *x;
    str query;
    uint64_t after_updated, after_id;
    size_t limit;
    struct thread_list list;
};

static enum err list_run(struct job *job, struct db *db)
{
    struct list_threads *list = (struct list_threads *)(void *)job;
    return thread_page(db, exchange_arena(list->x), list->x->who.user, list->query,
                       (msec)list->after_updated, (int64_t)list->after_id, list->limit,
                       &list->list);
}

static void list_done(struct job *job, enum err e)
{
    struct list_threads *list = (struct list_threads *)(void *)job;
    if (e) {
        exchange_error(list->x, e, NULL);
        return;
    }
    struct buf out;
    struct json_writer w;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    json_write_begin(&w, &out);
    json_object(&w);
    json_key(&w, STR("threads"));
    json_array(&w);
    for (size_t i = 0; i < list->list.count; i++) put_thread(&w, &list->list.threads[i], NULL);
    json_array_end(&w);
    if (list->list.more) {
        const struct thread *last = &list->list.threads[list->list.count - 1];
        char cursor[48];
        snprintf(cursor, sizeof cursor, "%lld-%lld", (long long)last->updated, (long long)last->id);
        json_member(&w, STR("next"), str_c(cursor));
    }
    json_object_end(&w);
    exchange_json(list->x, 200, buf_str(&out));
    buf_done(&out);
}

/* "<updated>-<id>" of the last row seen. */
static enum err parse_cursor(str text, uint64_t *ret_updated, uint64_t *ret_id,
                             struct fault *reterr)
{
    if (!text.p) return OK;
    str rest = text;
    uint64_t updated, id;
    if (str_to_u64(str_split(&rest, '-'), &updated) || str_to_u64(rest, &id) ||
        updated > INT64_MAX || id > INT64_MAX)
        return fault_field(reterr, ERR_INVALID_FIELD, "cursor", "cursor is not one of ours");
    *ret_updated = updated;
    *ret_id = id;
    return OK;
}

void handle_threads_list(struct exchange *x)
{
    struct list_threads *list = ARENA_NEW(exchange_arena(x), struct list_threads);
    struct fault why = {0};
    str cursor = {NULL, 0};
    enum err e = query_text(x, "query", &list->query, &why);
    if (!e && list->query.len > SEARCH_QUERY_BYTES_MAX)
        e = fault_field(&why, ERR_INVALID_FIELD, "query", "query may have %d bytes",
                        SEARCH_QUERY_BYTES_MAX);
    if (!e) e = query_text(x, "cursor", &cursor, &why);
    if (!e) e = parse_cursor(cursor, &list->after_updated, &list->after_id, &why);
    if (!e) e = query_limit(x, &list->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    list->job = (struct job){.run = list_run, .done = list_done};
    list->x = x;
    store_read(x->server->store, &list->job);
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
    store_read(x->server->store, &get->job);
}

/* ---- PATCH /threads/{id} ---- */

struct rename_thread {
    struct change change;
    str title;
};

static enum err rename_apply(struct change *change, struct db *db)
{
    struct rename_thread *rename = (struct rename_thread *)(void *)change;
    struct thread thread;
    struct spent_list spent;
    enum err e =
        thread_find(db, change_arena(change), change->x->who.user, change->x->params[0], &thread);
    if (!e) e = runs_spent(db, change_arena(change), thread.id, USAGE_CURRENCY, &spent);
    if (!e) e = thread_rename(db, thread.id, rename->title, change->now);
    if (e) return e;
    thread.title = rename->title;
    thread.updated = change->now;
    change->status = 200;
    change->body = thread_json(change_arena(change), &thread, &spent);
    return OK;
}

void handle_thread_patch(struct exchange *x)
{
    static const char *const known[] = {"title", NULL};
    struct rename_thread *rename = ARENA_NEW(exchange_arena(x), struct rename_thread);
    struct fault why = {0};
    enum err e = exchange_known(x->body, known, &why);
    if (!e) e = exchange_string(x->body, "title", THREAD_TITLE_BYTES_MAX, &rename->title, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    rename->change.apply = rename_apply;
    change_start(&rename->change, x);
}

/* ---- DELETE /threads/{id} ---- */

struct delete_thread {
    struct change change;
    int64_t thread;
    bool cancelled;               /* instead: a call is under way, whose end is waited for */
    bool waited;                  /* it waited for somebody, who has to hear that it is over */
    struct interaction_list open; /* what it waited for, as it was settled */
    unsigned char random[ID_RANDOM_BYTES];
    str *spools;
    size_t spool_count;
    struct blob_rows blobs;
    struct attachment_list attachments;
};

/* What a call under way does cannot be taken back, and has to be written down somewhere: the run is
 * cancelled, and the thread stays until the call has ended. */
static enum err delete_later(struct delete_thread *delete, struct db *db, int64_t thread)
{
    struct change *change = &delete->change;
    struct arena *arena = change_arena(change);
    struct run run;
    struct stepped stepped;
    struct fault why = {0};
    enum err e = run_current(db, arena, thread, &run);
    if (!e)
        e = run_cancel(db, arena, &change->x->server->saver, thread, &run, change->now,
                       delete->random, &stepped);
    if (e) return e;
    delete->cancelled = change->unremembered = true;
    e = fault(&why, ERR_BUSY, "a tool call is under way; delete the thread when it has ended");
    change_refuse(change, e, &why, STR_EMPTY, STR_EMPTY);
    return OK;
}

/* What was open, as it is now. */
static enum err look_again(struct delete_thread *delete, struct db *db)
{
    struct arena *arena = change_arena(&delete->change);
    enum err e = OK;
    for (size_t i = 0; !e && i < delete->open.count; i++)
        e = interaction_find(db, arena, delete->open.rows[i].id, &delete->open.rows[i]);
    return e;
}

/* Nobody will be asked any more, and webhooks are told so: their rows outlive the thread. */
static enum err end_wait(struct delete_thread *delete, struct db *db, int64_t thread)
{
    struct change *change = &delete->change;
    struct arena *arena = change_arena(change);
    struct run run;
    struct stepped stepped;
    enum err e = run_current(db, arena, thread, &run);
    if (e == ERR_NOT_FOUND || (!e && run.status != RUN_WAITING)) return OK;
    delete->waited = true;
    return e ? e
             : run_cancel(db, arena, &change->x->server->saver, thread, &run, change->now,
                          delete->random, &stepped);
}

static enum err delete_apply(struct change *change, struct db *db)
{
    struct delete_thread *delete = (struct delete_thread *)(void *)change;
    struct arena *arena = change_arena(change);
    struct thread thread;
    bool started = false;
    delete->cancelled = delete->waited = false;
    enum err e = thread_find(db, arena, change->x->who.user, change->x->params[0], &thread);
    if (!e) e = calls_started(db, thread.id, &started);
    if (e) return e;
    delete->thread = thread.id;
    if (started) return delete_later(delete, db, thread.id);
    change->status = 204;
    e = interactions_of_thread(db, arena, thread.id, &delete->open);
    if (!e) e = end_wait(delete, db, thread.id);
    if (!e) e = look_again(delete, db);
    if (!e) e = calls_spools(db, arena, thread.id, &delete->spools, &delete->spool_count);
    if (!e) e = blob_rows_of_thread(db, arena, thread.id, &delete->blobs);
    if (!e) e = attachments_leave(db, arena, &thread, &delete->attachments);
    return e ? e : thread_delete(db, thread.id);
}

/* A run under way finds its rows gone when it commits, and stops; we only hurry it up. */
static void delete_after(struct change *change)
{
    struct delete_thread *delete = (struct delete_thread *)(void *)change;
    struct server *server = change->x->server;
    if (delete->cancelled) {
        runs_cancel(server->runs, delete->thread);
        return;
    }
    runs_forget(server->runs, delete->thread);
    feeds_deleted(server->feeds, delete->thread);
    inbox_deleted(server->inbox, delete->open.rows, delete->open.count, change->now);
    if (delete->waited) interactions_changed(server);
    for (size_t i = 0; i < delete->spool_count; i++)
        spool_remove(server->spool, delete->spools[i], NULL, NULL);
    for (size_t i = 0; i < delete->blobs.count; i++)
        blob_remove(server->blobs, delete->blobs.rows[i].bucket, delete->blobs.rows[i].path, NULL,
                    NULL);
    for (size_t i = 0; i < delete->attachments.count; i++)
        blob_remove(server->blobs, delete->attachments.rows[i].bucket,
                    delete->attachments.rows[i].path, NULL, NULL);
}

void handle_thread_delete(struct exchange *x)
{
    struct delete_thread *delete = ARENA_NEW(exchange_arena(x), struct delete_thread);
    crypto_random(delete->random, sizeof delete->random);
    delete->change.apply = delete_apply;
    delete->change.after = delete_after;
    change_start(&delete->change, x);
}

/* ---- GET /threads/{id}/export ---- */

struct export
{
    struct job job;
    struct exchange *x;
    bool json;
    struct thread thread;
    struct buf out;
};

/* Names of its files, a line each. */
static void put_files(struct buf *out, const struct message *message)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct file_list list = files_of(&arena, message);
    for (size_t i = 0; i < list.count; i++) {
        str line = file_line(&arena, locale_of(message->plain), &list.files[i], FILE_NAMED);
        buf_printf(out, "%.*s\n%s", STR_ARG(line), i + 1 == list.count ? "\n" : "");
    }
}

static void put_markdown(struct buf *out, const struct message *message)
{
    char time[RFC3339_BYTES];
    clock_rfc3339(message->created, time);
    buf_printf(out, "## %.*s · %s\n\n", STR_ARG(message->role), time);
    buf_append(out, message->plain);
    buf_append(out, STR("\n\n"));
    put_files(out, message);
}

static enum err export_messages(struct export *export, struct db *db, struct json_writer *w)
{
    struct message_list page = {.more = true};
    int64_t after = 0;
    for (bool first = true; page.more; first = false) {
        struct arena arena;
        arena_init(&arena);
        /* The oldest page is the one after place 0, which `after` cannot say: ask for what follows
         * -1. */
        enum err e = message_page(db, &arena, export->thread.id, 0, first ? -1 : after,
                                  LIST_LIMIT_MAX, &page);
        for (size_t i = 0; !e && i < page.count; i++) {
            after = page.messages[i].seq;
            if (export->json) {
                struct buf row;
                buf_init(&row, FEED_FRAME_BYTES_MAX);
                message_write(&row, &page.messages[i]);
                json_raw(w, buf_str(&row));
                buf_done(&row);
            } else {
                put_markdown(&export->out, &page.messages[i]);
            }
        }
        arena_done(&arena);
        if (e) return e;
    }
    return export->out.full ? ERR_TOO_LARGE : OK;
}

static enum err export_run(struct job *job, struct db *db)
{
    struct export *export = (struct export *)(void *)job;
    struct exchange *x = export->x;
    enum err e = thread_find(db, exchange_arena(x), x->who.user, x->params[0], &export->thread);
    if (e) return e;
    struct json_writer w;
    struct spent_list spent;
    if (!export->json) {
        buf_printf(&export->out, "# %.*s\n\n", STR_ARG(export->thread.title));
        return export_messages(export, db, NULL);
    }
    e = runs_spent(db, exchange_arena(x), export->thread.id, USAGE_CURRENCY, &spent);
    if (e) return e;
    json_write_begin(&w, &export->out);
    json_object(&w);
    json_key(&w, STR("thread"));
    put_thread(&w, &export->thread, &spent);
    json_key(&w, STR("messages"));
    json_array(&w);
    e = export_messages(export, db, &w);
    json_array_end(&w);
    json_object_end(&w);
    return e;
}

static void export_done(struct job *job, enum err e)
{
    struct export *export = (struct export *)(void *)job;
    struct exchange *x = export->x;
    struct buf out = export->out; /* the rest goes with the answer */
    if (e)
        exchange_error(x, e, NULL);
    else {
        const struct http_field name = {
            STR("Content-Disposition"),
            arena_printf(exchange_arena(x), "attachment; filename=\"%.*s.%s\"",
                         STR_ARG(export->thread.thread_id), export->json ? "json" : "md")};
        http_answer(x->request, &(struct http_answer){
                                    .status = 200,
                                    .content_type = export->json ? "application/json"
                                                                 : "text/markdown; charset=utf-8",
                                    .fields = &name,
                                    .field_count = 1,
                                    .body = buf_str(&out)});
    }
    buf_done(&out);
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
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    buf_init(&export->out, HTTP_ANSWER_BYTES_MAX / 2);
    export->job = (struct job){.run = export_run, .done = export_done};
    export->x = x;
    store_read(x->server->store, &export->job);
}

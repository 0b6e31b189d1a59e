/* SPDX-License-Identifier: Apache-2.0
 *
 * What a fact has only a reference to: the whole result of a tool call, and a large card.
 *
 * A result stands in the call's row or in a spool file until it is in object storage; from then on
 * in the payload, or in an object of its own that the payload names. Files are sent piece by piece.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/payload.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "server/server.h"
#include "store/blob/blob.h"
#include "store/db/store.h"
#include "store/table/calls.h"
#include "store/table/conversation.h"
#include "thread/stored_cards.h"
#include "tool/spool.h"

struct get {
    struct job job;
    struct transfer transfer; /* while a job of the storage is under way: */
    struct blob_job *blob;
    struct exchange *x;
    struct message message;
    struct call call;
    bool again; /* it is looked up a second time */
};

static void answer_gone(struct exchange *x, const char *what)
{
    struct fault why = {0};
    fault(&why, ERR_NOT_FOUND, "the stored %s is gone, damaged or cannot be read now", what);
    exchange_error(x, ERR_NOT_FOUND, &why);
}

static void answer_file(struct exchange *x, int fd, uint64_t len)
{
    http_answer_file(x->request,
                     &(struct http_answer){.status = 200, .content_type = "application/json"}, fd,
                     0, len);
}

/* ---- waiting for the storage ---- */

static void result_stop(struct transfer *transfer)
{
    struct get *get = CONTAINER(transfer, struct get, transfer);
    transfer_remove(&get->x->server->transfers, &get->transfer);
    blob_forget(get->blob);
    exchange_error(get->x, ERR_SHUTTING_DOWN, NULL);
}

static void wait_for(struct get *get, struct blob_job *blob)
{
    get->blob = blob;
    get->transfer.stop = result_stop;
    transfer_add(&get->x->server->transfers, &get->transfer);
}

static void waited(struct get *get)
{
    transfer_remove(&get->x->server->transfers, &get->transfer);
}

static void read_payload(struct get *get, str path, blob_got *on_got)
{
    wait_for(get, blob_get(get->x->server->blobs, BUCKET_PAYLOADS, path, PAYLOAD_BYTES_MAX, on_got,
                           get));
}

/* ---- GET .../result ---- */

static enum err result_run(struct job *job, struct db *db)
{
    struct get *get = (struct get *)(void *)job;
    struct exchange *x = get->x;
    struct arena *arena = exchange_arena(x);
    struct thread thread;
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &thread);
    if (!e) e = call_result(db, arena, thread.id, x->params[1], &get->call);
    if (!e) e = message_find(db, arena, thread.id, x->params[1], &get->message);
    return e;
}

static void on_opened(void *arg, enum err e, int fd, uint64_t len, const struct fault *reason)
{
    struct get *get = arg;
    waited(get);
    if (e) {
        card_unreadable(&get->message, e, reason);
        answer_gone(get->x, "result");
    } else {
        answer_file(get->x, fd, len);
    }
}

static void on_payload(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct get *get = arg;
    struct arena *arena = exchange_arena(get->x);
    struct payload_parts parts = {0};
    waited(get);
    if (!e) e = payload_parse(arena, bytes, &parts);
    if (e) {
        card_unreadable(&get->message, e, reason);
        answer_gone(get->x, "result");
    } else if (parts.result_path.len) {
        wait_for(get, blob_open(get->x->server->blobs, BUCKET_PAYLOADS,
                                arena_str(arena, parts.result_path), on_opened, get));
    } else if (parts.result.len) {
        exchange_json(get->x, 200, parts.result);
    } else {
        exchange_error(get->x, ERR_NOT_FOUND, NULL);
    }
}

/* The page cache has it, as a rule: it was written some seconds ago. If it is not there, it became an
 * object after we had looked: the rows know by now. */
static void answer_spooled(struct get *get)
{
    struct exchange *x = get->x;
    const char *path = spool_path(x->server->spool, exchange_arena(x), get->call.spool);
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st)) {
        answer_file(x, fd, (uint64_t)st.st_size);
        return;
    }
    if (fd >= 0) close(fd);
    if (get->again) {
        answer_gone(x, "result");
        return;
    }
    get->again = true;
    exchange_read(x, &get->job, READ_PAGE);
}

static void result_done(struct job *job, enum err e)
{
    struct get *get = (struct get *)(void *)job;
    struct exchange *x = get->x;
    str path = e ? STR_EMPTY : card_path(exchange_arena(x), &get->message);
    if (e)
        exchange_error(x, e, NULL);
    else if (get->call.result.len)
        exchange_json(x, 200, get->call.result);
    else if (get->call.spool.len)
        answer_spooled(get);
    else if (path.len)
        read_payload(get, path, on_payload);
    else
        exchange_error(x, ERR_NOT_FOUND, NULL);
}

static void start(struct exchange *x, enum err (*run)(struct job *job, struct db *db),
                  void (*done)(struct job *job, enum err e))
{
    struct get *get = ARENA_NEW(exchange_arena(x), struct get);
    get->job = (struct job){.run = run, .done = done};
    get->x = x;
    exchange_read(x, &get->job, READ_PAGE);
}

void handle_message_result(struct exchange *x)
{
    start(x, result_run, result_done);
}

/* ---- GET .../ui ---- */

static enum err ui_run(struct job *job, struct db *db)
{
    struct get *get = (struct get *)(void *)job;
    struct exchange *x = get->x;
    struct arena *arena = exchange_arena(x);
    struct thread thread;
    enum err e = thread_find(db, arena, x->who.user, x->params[0], &thread);
    return e ? e : message_find(db, arena, thread.id, x->params[1], &get->message);
}

static void on_card(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct get *get = arg;
    struct payload_parts parts = {0};
    waited(get);
    if (!e) e = payload_parse(exchange_arena(get->x), bytes, &parts);
    if (e) {
        card_unreadable(&get->message, e, reason);
        answer_gone(get->x, "card");
    } else if (parts.ui.len) {
        exchange_json(get->x, 200, parts.ui);
    } else {
        exchange_error(get->x, ERR_NOT_FOUND, NULL);
    }
}

static void ui_done(struct job *job, enum err e)
{
    struct get *get = (struct get *)(void *)job;
    struct exchange *x = get->x;
    str path = e ? STR_EMPTY : card_path(exchange_arena(x), &get->message);
    if (e)
        exchange_error(x, e, NULL);
    else if (get->message.ui.len)
        exchange_json(x, 200, get->message.ui);
    else if (path.len)
        read_payload(get, path, on_card);
    else if (card_waits(exchange_arena(x), &get->message))
        answer_gone(x, "card");
    else
        exchange_error(x, ERR_NOT_FOUND, NULL);
}

void handle_message_ui(struct exchange *x)
{
    start(x, ui_run, ui_done);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Webhooks: the outbox sent, signed and retried. Each hook has a few workers on the rows of its
 * address (duty/row_worker.h), which know of each other what is under way:
 *
 *   webhooks_look ─► a worker that is idle takes the first row that no other has
 *        ▲                 │ it is due: the next worker looks, too
 *        │                 ▼
 *        │              POST ─► taken, later, or given up
 *        └─────────────────┘
 *
 * Invariants:
 * 1. Of the workers of a hook one takes at a time; a look meanwhile is remembered and made after it.
 * 2. A row is under way at most once: from its POST until the store knows how it ended. What was under
 *    way when a take began is passed over by it, for it may see the row as it was before its end.
 * 3. A row leaves the outbox only when a receiver answered 2xx, when it is too old, or when no hook
 *    has its address any more. Everything else is tried again.
 * 4. No hook waits for another: rows are read for each apart, and each may always have one under way,
 *    whatever else is.
 */
#include "duty/webhooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shell/save.h"
#include "base/limits.h"
#include "base/log.h"
#include "duty/row_worker.h"
#include "net/http_client.h"
#include "net/webhook_sign.h"
#include "store/table/outbox.h"

/* A worker and the row that it has. */
struct sending {
    struct row_worker worker;
    struct target *target;
    int64_t passed[WEBHOOK_SENDS_HOOK_MAX]; /* rows of the others when the take began */
    struct arena arena;
    struct outgoing row;
    struct client_request *request;
    int status; /* of the answer; 0: none came */
    uint32_t attempts;
    msec again; /* to be tried then; 0: done with it */
};

struct target {
    struct webhooks *owner;
    const struct hook *hook; /* NULL: whatever address has no hook any more */
    struct sending sendings[WEBHOOK_SENDS_HOOK_MAX];
    bool taking, again;
    bool over; /* without a hook: nothing is left, and nothing more comes */
};

struct webhooks {
    struct webhooks_options options;
    struct target *targets; /* of each hook, and one more */
    size_t target_count;
    bool stopping;
};

static void target_look(struct target *target);

static const struct hook *hook_of(const struct webhooks *w, str url)
{
    for (size_t i = 0; i < w->options.hook_count; i++)
        if (str_eq(w->options.hooks[i].url, url)) return &w->options.hooks[i];
    return NULL;
}

/* Where it goes, for the log: an address may carry a token in its path, or a name before its host. */
static str host_of(str url)
{
    ptrdiff_t at = str_find(url, STR("://"));
    str rest = at < 0 ? url : str_drop(url, (size_t)at + 3);
    str host = str_split(&rest, '/');
    rest = host;
    while (str_find_char(rest, '@') >= 0) (void)str_split(&rest, '@');
    return rest;
}

/* ---- an attempt ---- */

static void give_up(struct sending *sending, const char *reason)
{
    log_warn("webhook.dropped", LOG_STR("delivery", sending->row.id),
             LOG_STR("event", sending->row.event), LOG_STR("host", host_of(sending->row.url)),
             LOG_U64("attempts", sending->attempts), LOG_CSTR("reason", reason));
    sending->again = 0;
    row_worker_end(&sending->worker);
}

static void on_head(void *arg, struct client_request *request, int status)
{
    struct sending *sending = arg;
    (void)request;
    sending->status = status;
}

/* The status decides. Whoever has said 2xx has it, whatever became of the rest of the answer. */
static void on_done(void *arg, enum err e, const struct fault *reason)
{
    struct sending *sending = arg;
    sending->request = NULL;
    if (sending->target->owner->stopping) return;
    if (sending->status >= 200 && sending->status < 300) {
        row_worker_end(&sending->worker);
        return;
    }
    char why[sizeof reason->text];
    if (sending->status)
        snprintf(why, sizeof why, "answered %d", sending->status);
    else
        snprintf(why, sizeof why, "%s", e && reason ? reason->text : err_title(e));
    sending->attempts++;
    sending->again = clock_wall(sending->worker.clock) + backoff_ms(sending->attempts);
    if (sending->again - sending->row.created > WEBHOOK_AGE_MS_MAX) {
        give_up(sending, why);
        return;
    }
    log_info("webhook.failed", LOG_STR("delivery", sending->row.id),
             LOG_STR("host", host_of(sending->row.url)), LOG_U64("attempt", sending->attempts),
             LOG_CSTR("reason", why));
    row_worker_end(&sending->worker);
}

static const struct client_ops send_ops = {.on_head = on_head, .on_done = on_done};

static void post(struct sending *sending)
{
    const struct hook *hook = sending->target->hook;
    struct arena *arena = &sending->arena;
    char seconds[24], signature[WEBHOOK_SIGNATURE_BYTES];
    int64_t at = clock_wall(sending->worker.clock) / 1000;
    snprintf(seconds, sizeof seconds, "%" PRId64, at);
    webhook_sign(hook->secret, at, sending->row.body, signature);
    const struct client_header headers[] = {
        {"Content-Type", "application/json"},
        {"Fermata-Event", arena_cstr(arena, sending->row.event)},
        {"Fermata-Delivery", arena_cstr(arena, sending->row.id)},
        {"Fermata-Timestamp", seconds},
        {"Fermata-Signature", signature},
    };
    sending->request = client_send(sending->target->owner->options.client,
                                   &(struct client_options){
                                       .method = "POST",
                                       .url = arena_cstr(arena, hook->url),
                                       .headers = headers,
                                       .header_count = COUNT(headers),
                                       .body = sending->row.body,
                                       .total_ms = WEBHOOK_SEND_MS_MAX,
                                       .body_bytes_max = WEBHOOK_ANSWER_BYTES_MAX,
                                   },
                                   &send_ops, sending);
}

/* ---- the worker ---- */

static size_t under_way(const struct target *target)
{
    size_t count = 0;
    for (size_t i = 0; i < WEBHOOK_SENDS_HOOK_MAX; i++)
        count += target->sendings[i].worker.state > ROW_TAKING;
    return count;
}

static bool has_room(const struct webhooks *w, const struct target *target)
{
    size_t all = 0;
    for (size_t i = 0; i < w->target_count; i++) all += under_way(&w->targets[i]);
    return !under_way(target) || all < WEBHOOK_SENDS_MAX;
}

/* Among the addresses that have left, the row that is due first. */
static enum err first_left(struct sending *sending, struct db *db)
{
    str url = STR_EMPTY;
    enum err e;
    sending->row.n = 0;
    while (!(e = outbox_next_url(db, &sending->arena, url, &url))) {
        struct outgoing row;
        if (hook_of(sending->target->owner, url)) continue;
        e = outbox_first(db, &sending->arena, url, sending->passed, &row);
        if (e && e != ERR_NOT_FOUND) return e;
        if (!e && (!sending->row.n || row.next < sending->row.next)) sending->row = row;
    }
    return e == ERR_NOT_FOUND && sending->row.n ? OK : e;
}

static enum err sending_take(struct row_worker *worker, struct db *db)
{
    struct sending *sending = CONTAINER(worker, struct sending, worker);
    const struct hook *hook = sending->target->hook;
    arena_reset(&sending->arena);
    enum err e = hook ? outbox_first(db, &sending->arena, hook->url, sending->passed, &sending->row)
                      : first_left(sending, db);
    worker->none = e == ERR_NOT_FOUND || (!e && sending->row.next > worker->now);
    if (!e && worker->none) worker->at = sending->row.next;
    return worker->none ? OK : e;
}

static void sending_work(struct row_worker *worker)
{
    struct sending *sending = CONTAINER(worker, struct sending, worker);
    struct target *target = sending->target;
    target->taking = false;
    sending->attempts = sending->row.attempts;
    sending->again = 0;
    sending->status = 0;
    if (target->hook)
        post(sending);
    else
        give_up(sending, "no webhook has this address any more");
    target_look(target);
}

static enum err sending_end(struct row_worker *worker, struct db *db)
{
    struct sending *sending = CONTAINER(worker, struct sending, worker);
    enum err e = sending->again
                     ? outbox_later(db, sending->row.n, sending->attempts, sending->again)
                     : outbox_done(db, sending->row.n);
    return e == ERR_NOT_FOUND ? OK : e;
}

static void sending_rest(struct row_worker *worker, bool ended)
{
    struct target *target = CONTAINER(worker, struct sending, worker)->target;
    if (ended) {
        webhooks_look(target->owner); /* there is room for one of any hook */
        return;
    }
    target->taking = false;
    target->over = !target->hook && worker->none && !worker->at && !under_way(target);
    if (target->again) target_look(target);
}

static void sending_due(struct row_worker *worker)
{
    target_look(CONTAINER(worker, struct sending, worker)->target);
}

static const struct row_worker_ops sending_ops = {.take = sending_take,
                                                  .take_reads = true,
                                                  .work = sending_work,
                                                  .end = sending_end,
                                                  .rest = sending_rest,
                                                  .due = sending_due,
                                                  .untaken = "webhook.look",
                                                  .unended = "webhook.unrecorded"};

/* What finds no room waits for the end of another. */
static void target_look(struct target *target)
{
    target->again = target->taking;
    if (target->taking || target->over || !has_room(target->owner, target)) return;
    struct sending *idle = NULL;
    int64_t passed[WEBHOOK_SENDS_HOOK_MAX] = {0};
    for (size_t i = 0; i < WEBHOOK_SENDS_HOOK_MAX; i++)
        if (target->sendings[i].worker.state == ROW_IDLE)
            idle = &target->sendings[i];
        else
            passed[i] = target->sendings[i].row.n;
    if (!idle) return;
    memcpy(idle->passed, passed, sizeof passed);
    target->taking = true;
    row_worker_go(&idle->worker);
}

void webhooks_look(struct webhooks *w)
{
    for (size_t i = 0; w && !w->stopping && i < w->target_count; i++) target_look(&w->targets[i]);
}

/* ---- life ---- */

struct webhooks *webhooks_new(const struct webhooks_options *options)
{
    struct webhooks *w = calloc(1, sizeof *w);
    struct target *targets = calloc(options->hook_count + 1, sizeof *targets);
    if (!w || !targets) abort();
    w->options = *options;
    w->targets = targets;
    for (size_t i = 0; i <= options->hook_count; i++) {
        const struct hook *hook = i < options->hook_count ? &options->hooks[i] : NULL;
        if (hook && hook_of(w, hook->url) != hook) continue; /* an address has one */
        struct target *target = &targets[w->target_count++];
        *target = (struct target){.owner = w, .hook = hook};
        for (size_t j = 0; j < WEBHOOK_SENDS_HOOK_MAX; j++) {
            struct sending *sending = &target->sendings[j];
            sending->target = target;
            sending->worker = (struct row_worker){.ops = &sending_ops,
                                                  .loop = options->loop,
                                                  .store = options->store,
                                                  .clock = options->clock,
                                                  .about = LOG_STR("host", hook ? host_of(hook->url)
                                                                                : STR_EMPTY)};
            arena_init(&sending->arena);
        }
    }
    webhooks_look(w);
    return w;
}

void webhooks_stop(struct webhooks *w)
{
    if (!w) return;
    w->stopping = true;
    for (size_t i = 0; i < w->target_count; i++)
        for (size_t j = 0; j < WEBHOOK_SENDS_HOOK_MAX; j++) {
            struct sending *sending = &w->targets[i].sendings[j];
            row_worker_stop(&sending->worker);
            if (sending->request) client_cancel(TAKE(sending->request));
        }
}

void webhooks_free(struct webhooks *w)
{
    if (!w) return;
    webhooks_stop(w); /* a start that failed has not stopped it */
    for (size_t i = 0; i < w->target_count; i++)
        for (size_t j = 0; j < WEBHOOK_SENDS_HOOK_MAX; j++)
            arena_done(&w->targets[i].sendings[j].arena);
    free(w->targets);
    free(w);
}

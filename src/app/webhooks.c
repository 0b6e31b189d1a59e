/* SPDX-License-Identifier: Apache-2.0
 *
 * The sender of the outbox.
 *
 *   webhooks_look ─► read: of each hook the first that are due ─► POST each that has room
 *        ▲                      │                                   │ end of the attempt
 *        │                timer: the next one             write: taken, later, or given up
 *        └──────────────────────┴───────────────────────────────────┘
 *
 * Invariants:
 * 1. At most one look is with the store; a look meanwhile is remembered and made after it.
 * 2. A row is under way at most once: from its POST until the store knows how it ended. A look that
 *    was with the store at that end may show the row as it was before it, and counts for nothing.
 * 3. A row leaves the outbox only when a receiver answered 2xx, when it is too old, or when no hook
 *    has its address any more. Everything else is tried again.
 * 4. No hook waits for another: rows are read for each apart, and each may always have one under way,
 *    whatever else is.
 */
#include "app/webhooks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/save.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "net/webhook_sign.h"
#include "store/outbox.h"
#include "store/store.h"

enum fate { FATE_TAKEN, FATE_LATER, FATE_GIVEN_UP };

/* One row under way. */
struct sending {
    struct job job;
    struct webhooks *owner;
    struct sending *next;
    struct arena arena;
    struct outgoing row; /* a copy, in the arena */
    struct client_request *request;
    int status; /* of the answer; 0: none came */
    enum fate fate;
    uint32_t attempts;
    msec again;
};

struct webhooks {
    struct job job; /* of the look */
    struct webhooks_options options;
    struct timer *timer;
    struct sending *sendings;
    size_t sending_count;
    bool looking, again, stopping;
    bool stale; /* an attempt has ended since the look under way began */
    bool empty; /* no hook and no row: nothing will ever be sent */

    /* of the look under way */
    struct arena arena;
    msec now;
    struct outgoing_list rows;
};

msec webhook_wait(uint32_t attempts)
{
    static const msec seconds[] = {1, 5, 30, 2 * 60, 10 * 60, 60 * 60};
    size_t i = attempts ? attempts - 1 : 0;
    return 1000 * seconds[i < COUNT(seconds) ? i : COUNT(seconds) - 1];
}

static const struct hook *hook_of(const struct webhooks *w, str url)
{
    for (size_t i = 0; i < w->options.hook_count; i++)
        if (str_eq(w->options.hooks[i].url, url)) return &w->options.hooks[i];
    return NULL;
}

/* ---- the end of an attempt ---- */

static void sending_free(struct sending *sending)
{
    struct webhooks *w = sending->owner;
    for (struct sending **at = &w->sendings; *at; at = &(*at)->next)
        if (*at == sending) {
            *at = sending->next;
            break;
        }
    w->sending_count--;
    w->stale = w->looking;
    arena_done(&sending->arena);
    free(sending);
}

static enum err end_run(struct job *job, struct db *db)
{
    struct sending *sending = (struct sending *)(void *)job;
    if (sending->fate == FATE_LATER)
        return outbox_later(db, sending->row.n, sending->attempts, sending->again);
    return outbox_done(db, sending->row.n);
}

/* If the store could not, the row is as it was and will be sent once more; a receiver can tell. */
static void end_done(struct job *job, enum err e)
{
    struct sending *sending = (struct sending *)(void *)job;
    struct webhooks *w = sending->owner;
    if (e && !w->stopping)
        log_warn("webhook.unrecorded", LOG_STR("delivery", sending->row.id),
                 LOG_CSTR("reason", err_title(e)));
    sending_free(sending);
    if (w->stopping) return;
    if (e)
        timer_start(w->timer, WEBHOOK_RETRY_MS);
    else
        webhooks_look(w);
}

static void end(struct sending *sending, enum fate fate)
{
    sending->fate = fate;
    sending->job = (struct job){.run = end_run, .done = end_done};
    store_write(sending->owner->options.store, &sending->job);
}

/* Where it went, for the log: an address may carry a token in its path, or a name before its host. */
static str host_of(str url)
{
    ptrdiff_t at = str_find(url, STR("://"));
    str rest = at < 0 ? url : str_drop(url, (size_t)at + 3);
    str host = str_split(&rest, '/');
    rest = host;
    while (str_find_char(rest, '@') >= 0) (void)str_split(&rest, '@');
    return rest;
}

static void give_up(struct sending *sending, const char *reason)
{
    log_warn("webhook.dropped", LOG_STR("delivery", sending->row.id),
             LOG_STR("event", sending->row.event), LOG_STR("host", host_of(sending->row.url)),
             LOG_U64("attempts", sending->attempts), LOG_CSTR("reason", reason));
    end(sending, FATE_GIVEN_UP);
}

/* ---- an attempt ---- */

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
    struct webhooks *w = sending->owner;
    sending->request = NULL;
    if (w->stopping) {
        sending_free(sending);
        return;
    }
    if (sending->status >= 200 && sending->status < 300) {
        end(sending, FATE_TAKEN);
        return;
    }
    char why[sizeof reason->text];
    if (sending->status)
        snprintf(why, sizeof why, "answered %d", sending->status);
    else
        snprintf(why, sizeof why, "%s", e && reason ? reason->text : err_title(e));
    msec now = clock_wall(w->options.clock);
    sending->attempts = sending->row.attempts + 1;
    sending->again = now + webhook_wait(sending->attempts);
    if (sending->again - sending->row.created > WEBHOOK_AGE_MS_MAX) {
        give_up(sending, why);
        return;
    }
    log_info("webhook.failed", LOG_STR("delivery", sending->row.id),
             LOG_STR("host", host_of(sending->row.url)), LOG_U64("attempt", sending->attempts),
             LOG_CSTR("reason", why));
    end(sending, FATE_LATER);
}

static const struct client_ops send_ops = {.on_head = on_head, .on_done = on_done};

static void post(struct sending *sending, const struct hook *hook)
{
    struct webhooks *w = sending->owner;
    struct arena *arena = &sending->arena;
    char seconds[24], signature[WEBHOOK_SIGNATURE_BYTES];
    int64_t at = clock_wall(w->options.clock) / 1000;
    snprintf(seconds, sizeof seconds, "%" PRId64, at);
    webhook_sign(hook->secret, at, sending->row.body, signature);
    const struct client_header headers[] = {
        {"Content-Type", "application/json"},
        {"Fermata-Event", arena_cstr(arena, sending->row.event)},
        {"Fermata-Delivery", arena_cstr(arena, sending->row.id)},
        {"Fermata-Timestamp", seconds},
        {"Fermata-Signature", signature},
    };
    sending->request = client_send(w->options.client,
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

static struct sending *sending_new(struct webhooks *w, const struct outgoing *row)
{
    struct sending *sending = calloc(1, sizeof *sending);
    if (!sending) abort();
    sending->owner = w;
    arena_init(&sending->arena);
    sending->row = *row;
    sending->row.id = arena_str(&sending->arena, row->id);
    sending->row.event = arena_str(&sending->arena, row->event);
    sending->row.url = arena_str(&sending->arena, row->url);
    sending->row.body = arena_str(&sending->arena, row->body);
    sending->attempts = row->attempts;
    sending->next = w->sendings;
    w->sendings = sending;
    w->sending_count++;
    return sending;
}

static void begin(struct webhooks *w, const struct outgoing *row)
{
    const struct hook *hook = hook_of(w, row->url);
    struct sending *sending = sending_new(w, row);
    if (hook)
        post(sending, hook);
    else
        give_up(sending, "no webhook has this address any more");
}

/* ---- the look ---- */

static bool under_way(const struct webhooks *w, int64_t n)
{
    for (const struct sending *at = w->sendings; at; at = at->next)
        if (at->row.n == n) return true;
    return false;
}

static bool has_room(const struct webhooks *w, str url)
{
    size_t same = 0;
    for (const struct sending *at = w->sendings; at; at = at->next)
        same += str_eq(at->row.url, url);
    return !same || (w->sending_count < WEBHOOK_SENDS_MAX && same < WEBHOOK_SENDS_HOOK_MAX);
}

/* Rows whose hook has left: those of a few addresses at a time. */
static enum err look_left(struct webhooks *w, struct db *db)
{
    str url = STR_EMPTY;
    size_t known = w->rows.count;
    while (w->rows.count - known < WEBHOOK_LOOK_ROWS) {
        enum err e = outbox_next_url(db, &w->arena, url, &url);
        if (e) return e == ERR_NOT_FOUND ? OK : e;
        if (hook_of(w, url)) continue;
        e = outbox_due(db, &w->arena, url, INT64_MAX, WEBHOOK_LOOK_ROWS, &w->rows);
        if (e) return e;
    }
    return OK;
}

/* For each hook the rows in the order they are due, also those of later, which say when to look
 * again. At most WEBHOOK_SENDS_HOOK_MAX of them are under way, so as many more are among them. */
static enum err look_run(struct job *job, struct db *db)
{
    static_assert(WEBHOOK_LOOK_ROWS >= 2 * WEBHOOK_SENDS_HOOK_MAX, "some that are not under way");
    struct webhooks *w = (struct webhooks *)(void *)job;
    arena_reset(&w->arena);
    w->rows = (struct outgoing_list){0};
    enum err e = OK;
    for (size_t i = 0; !e && i < w->options.hook_count; i++)
        e = outbox_due(db, &w->arena, w->options.hooks[i].url, INT64_MAX, WEBHOOK_LOOK_ROWS,
                       &w->rows);
    return e ? e : look_left(w, db);
}

/* What is due and finds no room waits for the end of another to its hook; what is not due, for the
 * timer. */
static void begin_due(struct webhooks *w)
{
    msec in = CLOCKWORK_LOOK_MS;
    bool later = false;
    for (size_t i = 0; i < w->rows.count; i++) {
        const struct outgoing *row = &w->rows.rows[i];
        if (row->next > w->now) {
            later = true;
            in = row->next - w->now < in ? row->next - w->now : in;
        } else if (!under_way(w, row->n) && has_room(w, row->url)) {
            begin(w, row);
        }
    }
    if (later) timer_start(w->timer, in);
}

static void look_done(struct job *job, enum err e)
{
    struct webhooks *w = (struct webhooks *)(void *)job;
    w->looking = false;
    if (w->stopping) return;
    if (e) {
        log_warn("webhook.look", LOG_CSTR("reason", err_title(e)));
        timer_start(w->timer, WEBHOOK_RETRY_MS);
        return;
    }
    if (w->stale) {
        webhooks_look(w);
        return;
    }
    timer_stop(w->timer);
    w->empty = !w->options.hook_count && !w->rows.count;
    begin_due(w);
    arena_reset(&w->arena);
    if (w->again) webhooks_look(w);
}

void webhooks_look(struct webhooks *w)
{
    if (!w || w->stopping || w->empty) return;
    w->again = w->looking;
    if (w->looking) return;
    w->looking = true;
    w->stale = false;
    w->now = clock_wall(w->options.clock);
    store_read(w->options.store, &w->job);
}

static void on_timer(void *arg)
{
    webhooks_look(arg);
}

/* ---- life ---- */

struct webhooks *webhooks_new(const struct webhooks_options *options)
{
    struct webhooks *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->job = (struct job){.run = look_run, .done = look_done};
    w->options = *options;
    w->timer = timer_new(options->loop, on_timer, w);
    arena_init(&w->arena);
    webhooks_look(w);
    return w;
}

void webhooks_stop(struct webhooks *w)
{
    if (!w) return;
    w->stopping = true;
    timer_stop(w->timer);
    for (struct sending *at = w->sendings, *next; at; at = next) {
        next = at->next;
        if (!at->request) continue; /* with the store, which gives it back */
        client_cancel(at->request);
        sending_free(at);
    }
}

void webhooks_free(struct webhooks *w)
{
    if (!w) return;
    webhooks_stop(w); /* a start that failed has not stopped it */
    assert(!w->sendings);
    timer_free(w->timer);
    arena_done(&w->arena);
    free(w);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * History by pages, and event streams.
 */
#include "agent/facts.h"
#include "app/api/cards.h"
#include "app/api/handlers.h"
#include "app/attachment/url.h"
#include "app/feed/feed.h"
#include "app/http/exchange.h"
#include "app/http/query.h"
#include "app/input/settle.h"
#include "app/server.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "store/store.h"

/* ---- history ---- */

struct history {
    struct job job;
    struct exchange *x;
    str thread_id;
    size_t limit;
    uint64_t before, after;
    bool has_before, has_after; /* 0 is a place too: in front of everything */
    msec before_time;           /* if before is a date; else -1 */
    struct thread thread;
    struct message_list list;
    struct interaction_list open;
};

static enum err history_run(struct job *job, struct db *db)
{
    struct history *h = (struct history *)(void *)job;
    struct arena *arena = exchange_arena(h->x);
    enum err e = thread_find(db, arena, h->x->who.user, h->thread_id, &h->thread);
    if (e) return e;
    /* For the store 0 is no cursor at all; messages have places from 1 on. */
    int64_t before = h->has_before && !h->before ? 1 : (int64_t)h->before;
    int64_t after = h->has_after && !h->after ? -1 : (int64_t)h->after;
    if (h->before_time >= 0) e = message_place(db, h->thread.id, h->before_time, &before);
    if (e) return e;
    e = message_page(db, arena, h->thread.id, before, after, h->limit, &h->list);
    return e ? e : interactions_of_thread(db, arena, h->thread.id, &h->open);
}

/* Signed, for whoever shows the file: a picture in a page, another program. */
static str signed_url(void *arg, str id)
{
    const struct history *h = arg;
    const struct server *server = h->x->server;
    return attachment_url_make(exchange_arena(h->x), server->secret,
                               server->config->public_url.prefix, id, clock_wall(&clock_system))
        .text;
}

/* Cards are large, and how large is known only now: a page ends behind what passes its bound, seen
 * from where it begins. */
static void end_page(struct history *h)
{
    struct message_list *list = &h->list;
    size_t kept = 0;
    for (size_t bytes = 0; kept < list->count; kept++) {
        size_t at = h->has_after ? kept : list->count - 1 - kept;
        if (bytes > MESSAGE_PAGE_BYTES_MAX) break;
        bytes += list->messages[at].ui.len;
    }
    if (kept == list->count) return;
    if (!h->has_after) list->messages += list->count - kept;
    list->count = kept;
    list->more = true;
}

static void history_answer(void *arg)
{
    struct history *h = arg;
    end_page(h);
    struct buf out, row;
    struct json_writer w;
    buf_init(&out, HTTP_ANSWER_BYTES_MAX / 2);
    buf_init(&row, FEED_FRAME_BYTES_MAX);
    json_write_begin(&w, &out);
    json_object(&w);
    json_key(&w, STR("messages"));
    json_array(&w);
    for (size_t i = 0; i < h->list.count; i++) {
        buf_clear(&row);
        message_write_with(&row, &h->list.messages[i], signed_url, h);
        json_raw(&w, buf_str(&row));
    }
    json_array_end(&w);
    json_key(&w, STR("hasMore"));
    json_bool(&w, h->list.more);
    /* A thread's first message has place 1, so behind any later place something is older. */
    bool older = h->has_after ? h->after > 0 : h->list.more;
    if (older) {
        json_key(&w, STR("before"));
        json_number_i64(&w, h->list.count ? h->list.messages[0].seq : h->thread.last_seq + 1);
    }
    json_key(&w, STR("openInteractions"));
    json_raw(&w,
             interactions_json(exchange_arena(h->x), h->open.rows, h->open.count, h->x->who.user));
    json_key(&w, STR("seq"));
    json_number_i64(&w, h->thread.last_seq);
    json_object_end(&w);
    if (out.full)
        exchange_error(h->x, ERR_TOO_LARGE, NULL);
    else
        exchange_json(h->x, 200, buf_str(&out));
    buf_done(&row);
    buf_done(&out);
}

static void history_done(struct job *job, enum err e)
{
    struct history *h = (struct history *)(void *)job;
    if (e)
        exchange_error(h->x, e, NULL);
    else
        cards_read(h->x->server, exchange_arena(h->x), h->list.messages, h->list.count,
                   history_answer, h);
}

static enum err parse_before(struct history *h, struct exchange *x, struct fault *reterr)
{
    str text;
    h->before_time = -1;
    enum err e = query_text(x, "before", &text, reterr);
    if (e || !text.p) return e;
    h->has_before = true;
    if (str_to_u64(text, &h->before) == OK && h->before <= INT64_MAX) return OK;
    if (clock_parse(text, &h->before_time) == OK && h->before_time >= 0) return OK;
    return fault_field(reterr, ERR_INVALID_FIELD, "before",
                       "before must be a cursor or an ISO date");
}

static enum err parse_after(struct history *h, struct exchange *x, struct fault *reterr)
{
    str text;
    enum err e = query_text(x, "after", &text, reterr);
    if (!e) e = query_number(x, "after", &h->after, reterr);
    if (!e) h->has_after = text.p != NULL;
    return e;
}

static void history_start(struct exchange *x, str thread_id)
{
    struct history *h = ARENA_NEW(exchange_arena(x), struct history);
    struct fault why = {0};
    h->thread_id = thread_id;
    enum err e = parse_before(h, x, &why);
    if (!e) e = parse_after(h, x, &why);
    if (!e) e = query_limit(x, &h->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    h->job = (struct job){.run = history_run, .done = history_done};
    h->x = x;
    store_read(x->server->store, &h->job);
}

void handle_history(struct exchange *x)
{
    struct fault why = {0};
    str thread_id;
    enum err e = query_text(x, "threadId", &thread_id, &why);
    if (!e && !thread_id.len)
        e = fault_field(&why, ERR_INVALID_FIELD, "threadId", "threadId is missing");
    if (e)
        exchange_error(x, e, &why);
    else
        history_start(x, thread_id);
}

void handle_run_history(struct exchange *x)
{
    history_start(x, x->params[0]);
}

/* ---- events ---- */

static bool accepts_stream(const struct exchange *x)
{
    static const char *const types[] = {"text/event-stream", "text/*", "*/*", NULL};
    return !http_head_get(x->request->head, STR("Accept")).len || query_accepts(x, types);
}

/* Last-Event-ID is the browser's own word after a cut, so it wins over ?after=. */
static enum err parse_start(struct exchange *x, struct feed_start *start, struct fault *reterr)
{
    str after;
    enum err e = query_text(x, "after", &after, reterr);
    if (!e) e = query_text(x, "runId", &start->run_id, reterr);
    if (e) return e;
    str last = http_head_get(x->request->head, STR("Last-Event-ID"));
    str cursor = last.len ? last : after;
    if (!cursor.p) return OK;
    start->has_cursor = true;
    start->bad_cursor = str_to_u64(cursor, &start->after) != OK;
    return OK;
}

/* Before 1.0 clients did not name the version they speak, and take less. */
static enum err parse_profile(struct exchange *x, enum agui_profile *ret_profile,
                              struct fault *reterr)
{
    str version;
    enum err e = query_text(x, "protocolVersion", &version, reterr);
    if (!e) *ret_profile = version.len ? AGUI_NEW : AGUI_OLD;
    return e;
}

/* From what there is now, and on, leg after leg. */
static void open_agui(struct exchange *x, enum agui_profile profile)
{
    struct agui_open open = {.thread_id = x->params[0], .profile = profile, .all_legs = true};
    feeds_agui_answer(feeds_agui(x->server->feeds, 0, x->who.user, &open), x);
}

void handle_events(struct exchange *x)
{
    struct fault why = {0};
    struct feed_start start = {0};
    enum agui_profile profile = AGUI_OLD;
    str format;
    enum err e = query_text(x, "format", &format, &why);
    bool agui = !e && format.p && str_eq(format, STR("ag-ui"));
    if (!e && format.p && !agui && !str_eq(format, STR("native")))
        e = fault_field(&why, ERR_INVALID_FIELD, "format", "format must be native or ag-ui");
    if (!e && !accepts_stream(x)) e = fault(&why, ERR_NOT_ACCEPTABLE, "this is text/event-stream");
    if (!e && !id_valid(x->params[0])) e = ERR_NOT_FOUND;
    if (!e) e = agui ? parse_profile(x, &profile, &why) : parse_start(x, &start, &why);
    if (e)
        exchange_error(x, e, why.text[0] ? &why : NULL);
    else if (agui)
        open_agui(x, profile);
    else
        feeds_open(x->server->feeds, x, x->params[0], &start);
}

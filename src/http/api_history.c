/* SPDX-License-Identifier: Apache-2.0
 *
 * History of a thread by pages, and its event streams opened, from Last-Event-ID or a cursor on.
 */
#include "agent/core/facts.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "feed/feed.h"
#include "feed/interaction_json.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "http/query.h"
#include "server/server.h"
#include "store/db/store.h"
#include "thread/file_url.h"
#include "thread/settle.h"
#include "thread/stored_cards.h"

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

static void history_answer(void *arg, enum err e)
{
    struct history *h = arg;
    if (e) {
        http_answer_error(h->x->request, e, NULL);
        return;
    }
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
    json_member_bool(&w, STR("hasMore"), h->list.more);
    /* A thread's first message has place 1, so behind any later place something is older. */
    bool older = h->has_after ? h->after > 0 : h->list.more;
    if (older) {
        json_member_i64(&w, STR("before"),
                        h->list.count ? h->list.messages[0].seq : h->thread.last_seq + 1);
    }
    json_member_raw(&w, STR("openInteractions"),
                    interactions_json(exchange_arena(h->x), h->open.rows, h->open.count,
                                      h->x->who.user));
    json_member_i64(&w, STR("seq"), h->thread.last_seq);
    json_object_end(&w);
    exchange_written(h->x, &out);
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

static void history_start(struct exchange *x, str thread_id)
{
    struct history *h = ARENA_NEW(exchange_arena(x), struct history);
    struct fault why = {0};
    h->thread_id = thread_id;
    str after = {NULL, 0};
    enum err e = parse_before(h, x, &why);
    if (!e) e = query_text(x, "after", &after, &why);
    if (!e) e = query_number(x, "after", &h->after, &why);
    h->has_after = after.p != NULL;
    if (!e) e = query_limit(x, &h->limit, &why);
    if (e) {
        exchange_error(x, e, &why);
        return;
    }
    h->job = (struct job){.run = history_run, .done = history_done};
    h->x = x;
    exchange_read(x, &h->job, READ_PAGE);
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

/* Last-Event-ID is the browser's own word after a cut, so it wins over ?after=. */
static enum err parse_start(struct exchange *x, struct feed_start *start, struct fault *reterr)
{
    str after;
    enum err e = query_text(x, "after", &after, reterr);
    if (!e) e = query_text(x, "runId", &start->run_id, reterr);
    if (e) return e;
    str last = http_head_get(x->head, STR("Last-Event-ID"));
    str cursor = last.len ? last : after;
    if (!cursor.p) return OK;
    start->has_cursor = true;
    start->bad_cursor = str_to_u64(cursor, &start->after) != OK;
    return OK;
}

void handle_events(struct exchange *x)
{
    struct fault why = {0};
    struct feed_start start = {0};
    static const char *const types[] = {"text/event-stream", "text/*", "*/*", NULL};
    str format, version = STR_EMPTY;
    enum err e = query_text(x, "format", &format, &why);
    bool agui = !e && format.p && str_eq(format, STR("ag-ui"));
    if (!e && format.p && !agui && !str_eq(format, STR("native")))
        e = fault_field(&why, ERR_INVALID_FIELD, "format", "format must be native or ag-ui");
    if (!e && http_head_get(x->head, STR("Accept")).len && !query_accepts(x, types))
        e = fault(&why, ERR_NOT_ACCEPTABLE, "this is text/event-stream");
    if (!e && !id_valid(x->params[0])) e = ERR_NOT_FOUND;
    if (!e)
        e = agui ? query_text(x, "protocolVersion", &version, &why) : parse_start(x, &start, &why);
    if (!e) e = pool_room(x->server, POOL_STREAMS, x->who.user, &why);
    if (e) {
        exchange_error(x, e, why.text[0] ? &why : NULL);
    } else if (agui) {
        /* From what there is now, and on, leg after leg. Before 1.0 clients did not name the version
         * they speak, and take less. */
        struct agui_open open = {.thread_id = x->params[0],
                                 .profile = version.len ? AGUI_NEW : AGUI_OLD,
                                 .all_legs = true};
        feeds_agui_answer(feeds_agui(x->server->feeds, 0, x->who.user, &open), x->request, &x->who);
    } else {
        feeds_open(x->server->feeds, x->request, &x->who, x->params[0], &start);
    }
}

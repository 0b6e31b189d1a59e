/* SPDX-License-Identifier: Apache-2.0
 *
 * The live inbox: who is told of what waits for people.
 *
 *   bus: facts of every thread ─► news: a queue ─► a reading job: whose are they? ─► readers
 *   inbox_join ─► a writing job: the list ─► the reader, and from here on the news behind it
 *
 * The list is read by the writing thread, whose jobs come back in their order: when it comes, the
 * facts up to it, and no others, have been on the bus (reader.c says more). News are numbered
 * as the bus tells them, and a reader takes those behind the number at which its list came: no gap,
 * and nothing twice.
 *
 * A fact does not say who may see it, and settled ones say little of what they are about, so the row
 * is looked up; what is told are the bytes of the fact. An approver, whom those bytes tell too much,
 * gets an opened one from its row.
 *
 * Where news cannot be told in their order (too many wait, a row is gone, a reader is slow), the
 * reader gets a new list, which stands for everything before it.
 *
 * Invariants:
 * 1. The bus is followed exactly while there are readers.
 * 2. One look-up is under way at a time, so news are told in the order of the bus.
 * 3. A reader has at most one list under way; who leaves meanwhile is freed behind it.
 */
#include "feed/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/interaction.h"
#include "base/limits.h"
#include "base/log.h"
#include "feed/interaction_json.h"
#include "server/server.h"
#include "store/bus/bus.h"
#include "store/db/store.h"

struct inbox_reader {
    struct inbox *inbox;
    struct inbox_reader *prev, *next;
    const struct inbox_sink *sink; /* NULL: it has left */
    void *arg;
    struct decider decider; /* names of roles are ours */
    bool listed;            /* it has its list, and takes news */
    bool reading;           /* its list is under way */
    bool again;             /* and is too old already */
    bool full;              /* the sink had no room: a new list after inbox_room */
    uint64_t from;          /* its list has the news up to this one */
    char text[];
};

/* One thing that happened. Its texts stand behind it. */
struct news {
    struct news *next;
    uint64_t n;
    bool request;   /* else it is settled */
    bool looked_up; /* owner, approver, session are known */
    bool lost;      /* its row is gone */
    msec at;
    str id, run_id, data;
    str owner, approver, session_id;
    str opened; /* of a request: as an approver may see it */
    char text[];
};

struct inbox {
    struct server *server;
    struct bus_follower follower;
    struct inbox_reader *readers;
    uint64_t told; /* news so far */
    struct news *first, **last;
    size_t count, bytes;
    struct lookup *lookup; /* under way; NULL: none */
};

/* ---- readers ---- */

static void reader_free(struct inbox_reader *reader)
{
    free(reader);
}

static void reader_unlink(struct inbox_reader *reader)
{
    struct inbox *inbox = reader->inbox;
    *(reader->prev ? &reader->prev->next : &inbox->readers) = reader->next;
    if (reader->next) reader->next->prev = reader->prev;
    if (!inbox->readers) bus_unfollow(inbox->server->bus, &inbox->follower);
}

void inbox_leave(struct inbox_reader *reader)
{
    if (!reader) return;
    reader_unlink(reader);
    reader->sink = NULL;
    if (!reader->reading) reader_free(reader);
}

static void reader_over(struct inbox_reader *reader)
{
    const struct inbox_sink *sink = reader->sink;
    void *arg = reader->arg;
    inbox_leave(reader);
    sink->on_over(arg);
}

static bool sees(const struct inbox_reader *reader, const struct news *news)
{
    const struct interaction row = {.owner = news->owner, .approver = news->approver};
    return interaction_allows(&row, &reader->decider) != ADMITTED_NOT_SEEN;
}

/* ---- the list ---- */

struct list {
    struct job job;
    struct inbox_reader *reader;
    struct arena arena;
    struct interaction_filter filter;
    struct interaction_list page;
};

static void list_start(struct inbox_reader *reader);

static enum err list_run(struct job *job, struct db *db)
{
    struct list *list = (struct list *)(void *)job;
    return interactions_page(db, &list->arena, &list->filter, &list->page);
}

static void write_list(struct buf *out, const struct list *list)
{
    const struct interaction_list *page = &list->page;
    struct json_writer w;
    char next[24];
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("type"), STR("inbox"));
    json_key(&w, STR("data"));
    json_object(&w);
    json_key(&w, STR("interactions"));
    json_array(&w);
    for (size_t i = 0; i < page->count; i++)
        interaction_write(&w, &page->rows[i],
                          str_eq(page->rows[i].owner, list->reader->decider.user));
    json_array_end(&w);
    snprintf(next, sizeof next, "%lld", (long long)page->next);
    if (page->more) json_member(&w, STR("next"), str_c(next));
    json_object_end(&w);
    json_object_end(&w);
}

static void take_list(struct inbox_reader *reader, const struct list *list)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, FEED_FRAME_BYTES_MAX);
    write_list(&out, list);
    if (out.full) { /* a page is bounded far below it */
        reader_over(reader);
        return;
    }
    reader->full = !reader->sink->on_text(reader->arg, buf_str(&out));
    reader->listed = !reader->full;
    reader->from = reader->inbox->told;
}

static void list_done(struct job *job, enum err e)
{
    struct list *list = (struct list *)(void *)job;
    struct inbox_reader *reader = list->reader;
    reader->reading = false;
    if (!reader->sink) {
        reader_free(reader);
    } else if (e) {
        if (e != ERR_SHUTTING_DOWN) log_warn("inbox.read", LOG_CSTR("reason", err_title(e)));
        reader_over(reader);
    } else if (reader->again) {
        list_start(reader);
    } else {
        take_list(reader, list);
    }
    arena_done(&list->arena);
    free(list);
}

static void list_start(struct inbox_reader *reader)
{
    struct list *list = calloc(1, sizeof *list);
    if (!list) abort();
    arena_init(&list->arena);
    list->job = (struct job){.run = list_run, .done = list_done, .who = reader->decider.user};
    list->reader = reader;
    list->filter = (struct interaction_filter){
        .owner = reader->decider.user, .status = INTERACTION_OPEN, .limit = LIST_LIMIT_MAX};
    memcpy(list->filter.roles, reader->decider.roles, sizeof list->filter.roles);
    reader->reading = true;
    reader->again = reader->listed = reader->full = false;
    store_write(reader->inbox->server->store, &list->job);
}

/* A new list, which stands for all that was told, or was not, before it. */
static void renew(struct inbox_reader *reader)
{
    if (reader->full) return; /* inbox_room does */
    if (reader->reading)
        reader->again = true;
    else
        list_start(reader);
}

static void renew_all(struct inbox *inbox)
{
    for (struct inbox_reader *reader = inbox->readers; reader; reader = reader->next) renew(reader);
}

void inbox_room(struct inbox_reader *reader)
{
    if (reader->full && !reader->reading) list_start(reader);
}

/* ---- news ---- */

static void news_clear(struct inbox *inbox)
{
    for (struct news *news = inbox->first, *next; news; news = next) {
        next = news->next;
        free(news);
    }
    inbox->first = NULL;
    inbox->last = &inbox->first;
    inbox->count = inbox->bytes = 0;
}

static str move_in(char **at, str text)
{
    str copy = {*at, text.len};
    if (text.len) memcpy(*at, text.p, text.len);
    *at += text.len;
    return copy;
}

/* A copy at the end of the queue. Too many: nobody can be told in order any more. */
static void news_add(struct inbox *inbox, const struct news *news)
{
    size_t len = news->id.len + news->run_id.len + news->data.len + news->owner.len +
                 news->approver.len + news->session_id.len;
    if (inbox->count == INBOX_NEWS_MAX || inbox->bytes + len > INBOX_NEWS_BYTES_MAX) {
        news_clear(inbox);
        inbox->told++;
        renew_all(inbox);
        return;
    }
    struct news *copy = malloc(sizeof *copy + len);
    if (!copy) abort();
    char *at = copy->text;
    *copy = *news;
    copy->n = ++inbox->told;
    copy->next = NULL;
    copy->id = move_in(&at, news->id);
    copy->run_id = move_in(&at, news->run_id);
    copy->data = move_in(&at, news->data);
    copy->owner = move_in(&at, news->owner);
    copy->approver = move_in(&at, news->approver);
    copy->session_id = move_in(&at, news->session_id);
    *inbox->last = copy;
    inbox->last = &copy->next;
    inbox->count++;
    inbox->bytes += len;
}

/* ---- telling ---- */

/* Both forms of one piece of news, made when somebody needs them. */
static str write_news(struct buf *out, const struct news *news, bool for_owner)
{
    struct json_writer w;
    char ts[RFC3339_BYTES];
    if (out->len) return buf_str(out);
    clock_rfc3339(news->at, ts);
    json_write_begin(&w, out);
    json_object(&w);
    json_member(&w, STR("type"), news->request ? STR(FACT_REQUEST) : STR(FACT_RESOLVED));
    if (for_owner) {
        json_member(&w, STR("sessionId"), news->session_id);
        json_member(&w, STR("runId"), news->run_id);
    }
    json_member(&w, STR("ts"), str_c(ts));
    json_member_raw(&w, STR("data"), for_owner || !news->request ? news->data : news->opened);
    json_object_end(&w);
    return buf_str(out);
}

static void tell(struct inbox *inbox, const struct news *news)
{
    AUTO(buf_done) struct buf owners;
    AUTO(buf_done) struct buf approvers;
    buf_init(&owners, FEED_FRAME_BYTES_MAX);
    buf_init(&approvers, FEED_FRAME_BYTES_MAX);
    for (struct inbox_reader *reader = inbox->readers; reader; reader = reader->next) {
        if (!reader->listed || news->n <= reader->from) continue;
        if (!news->lost && !sees(reader, news)) continue;
        if (news->lost) {
            renew(reader);
            continue;
        }
        bool owner = str_eq(reader->decider.user, news->owner);
        str text = write_news(owner ? &owners : &approvers, news, owner);
        if (reader->sink->on_text(reader->arg, text)) continue;
        reader->listed = false;
        reader->full = true;
    }
}

struct lookup {
    struct job job;
    struct inbox *inbox;
    struct arena arena;
    struct news *first; /* of the queue, taken out of it */
};

static void lookup_start(struct inbox *inbox);

/* As it was when it opened; it may be settled by now. */
static str as_opened(struct arena *arena, const struct interaction *row)
{
    struct interaction opened = *row;
    opened.status = INTERACTION_OPEN;
    opened.answer = opened.answered_by = opened.via = STR_EMPTY;
    return interaction_json(arena, &opened, STR_EMPTY);
}

static enum err lookup_one(struct lookup *lookup, struct db *db, struct news *news)
{
    struct interaction row;
    enum err e = interaction_find(db, &lookup->arena, news->id, &row);
    news->lost = e == ERR_NOT_FOUND;
    if (e) return news->lost ? OK : e;
    news->owner = row.owner;
    news->approver = row.approver;
    news->session_id = row.thread_id;
    if (news->request && row.approver.len) news->opened = as_opened(&lookup->arena, &row);
    return OK;
}

static enum err lookup_run(struct job *job, struct db *db)
{
    struct lookup *lookup = (struct lookup *)(void *)job;
    enum err e = OK;
    for (struct news *news = lookup->first; news && !e; news = news->next)
        if (!news->looked_up) e = lookup_one(lookup, db, news);
    return e;
}

static void lookup_done(struct job *job, enum err e)
{
    struct lookup *lookup = (struct lookup *)(void *)job;
    struct inbox *inbox = lookup->inbox;
    inbox->lookup = NULL;
    if (e && e != ERR_SHUTTING_DOWN) log_warn("inbox.look", LOG_CSTR("reason", err_title(e)));
    for (struct news *news = lookup->first, *next; news; news = next) {
        next = news->next;
        if (e) news->lost = true;
        tell(inbox, news);
        free(news);
    }
    arena_done(&lookup->arena);
    free(lookup);
    lookup_start(inbox);
}

/* Take the first of the queue and ask whose they are. */
static void lookup_start(struct inbox *inbox)
{
    if (inbox->lookup || !inbox->first) return;
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup) abort();
    struct news **end = &lookup->first;
    lookup->first = inbox->first;
    for (size_t i = 0; i < INBOX_NEWS_BATCH && *end; i++) {
        const struct news *news = *end;
        inbox->count--;
        inbox->bytes -= news->id.len + news->run_id.len + news->data.len + news->owner.len +
                        news->approver.len + news->session_id.len;
        end = &(*end)->next;
    }
    inbox->first = *end;
    if (!inbox->first) inbox->last = &inbox->first;
    *end = NULL;
    arena_init(&lookup->arena);
    lookup->job = (struct job){.run = lookup_run, .done = lookup_done};
    lookup->inbox = inbox;
    inbox->lookup = lookup;
    store_read(inbox->server->store, &lookup->job);
}

/* ---- what happens ---- */

static void on_facts(void *arg, const struct fact *facts, size_t count)
{
    struct inbox *inbox = arg;
    for (size_t i = 0; i < count; i++) {
        bool request = strcmp(facts[i].type, FACT_REQUEST) == 0;
        if (!request && strcmp(facts[i].type, FACT_RESOLVED) != 0) continue;
        AUTO(arena_done) struct arena arena;
        struct json *data = NULL;
        arena_init(&arena);
        if (json_parse(&arena, facts[i].data, &data, NULL)) continue; /* stored by us: it is JSON */
        news_add(inbox, &(struct news){.request = request,
                                       .at = facts[i].at,
                                       .id = json_text(json_get(data, STR("interactionId"))),
                                       .run_id = facts[i].run_id,
                                       .data = facts[i].data});
    }
    lookup_start(inbox);
}

void inbox_deleted(struct inbox *inbox, const struct interaction *rows, size_t count, msec now)
{
    if (!inbox->readers) return;
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) struct arena arena;
        struct interaction row = rows[i];
        arena_init(&arena);
        if (row.status == INTERACTION_OPEN) {
            row.status = INTERACTION_CANCELED;
            row.settled = now;
        }
        news_add(inbox, &(struct news){.looked_up = true,
                                       .at = row.settled,
                                       .id = row.id,
                                       .run_id = row.run_id,
                                       .data = fact_interaction_resolved(&arena, &row),
                                       .owner = row.owner,
                                       .approver = row.approver,
                                       .session_id = row.thread_id});
    }
    lookup_start(inbox);
}

/* ---- life ---- */

static const struct bus_ops follower_ops = {.on_facts = on_facts};

struct inbox *inbox_new(struct server *server)
{
    struct inbox *inbox = calloc(1, sizeof *inbox);
    if (!inbox) abort();
    inbox->server = server;
    inbox->follower = (struct bus_follower){.ops = &follower_ops, .arg = inbox};
    inbox->last = &inbox->first;
    return inbox;
}

void inbox_free(struct inbox *inbox)
{
    if (!inbox) return;
    assert(!inbox->readers && !inbox->lookup);
    news_clear(inbox);
    free(inbox);
}

struct inbox_reader *inbox_join(struct inbox *inbox, str user, unsigned roles,
                                const struct inbox_sink *sink, void *arg)
{
    struct inbox_reader *reader = calloc(1, sizeof *reader + user.len + 1);
    if (!reader) abort();
    memcpy(reader->text, user.p, user.len);
    reader->inbox = inbox;
    reader->decider.user = (str){reader->text, user.len};
    role_names(roles, reader->decider.roles);
    reader->sink = sink;
    reader->arg = arg;
    if (!inbox->readers) bus_follow(inbox->server->bus, 0, &inbox->follower);
    reader->next = inbox->readers;
    if (reader->next) reader->next->prev = reader;
    inbox->readers = reader;
    list_start(reader);
    return reader;
}

void inbox_again(struct inbox_reader *reader)
{
    renew(reader);
}

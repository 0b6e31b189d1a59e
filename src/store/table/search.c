/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of one owner's threads, in pages, and search in their titles and messages.
 *
 * Search is a walk: the owner's threads, newest first, each one's title and then its messages,
 * newest first, with an automaton that takes one step for each byte (base/needle.h). It needs no
 * index that every message would pay for, finds any part of any word in any script, and costs what
 * the owner has written and nothing of what others have. docs/DECISIONS.md has the figures.
 *
 * Invariants:
 * 1. A page ends when it has looked at about SEARCH_BYTES_MAX bytes, or at `until`; then `next` says
 *    where the walk goes on, also inside a thread, and also if nothing was found.
 * 2. Every page looks at one row at least, so that whoever follows `next` comes to the end.
 * 3. What was looked at is not looked at again by the next page, but for the thread that the page
 *    had no more room for.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/needle.h"
#include "store/db/sqlite.h"
#include "store/table/thread_row.h"

struct walk {
    struct db *db;
    struct arena *arena;
    const struct thread_query *query;
    struct needle needle;
    struct arena names; /* of the files of one message */
    uint64_t bytes;     /* looked at so far */
    uint64_t clock_at;  /* when so many are, the time is looked at */
    bool over;          /* this page looks at no more */
};

static bool is_search(const struct walk *walk)
{
    return walk->query->query.len > 0;
}

/* A row was looked at. */
static void spend(struct walk *walk, size_t bytes)
{
    const struct thread_query *query = walk->query;
    walk->bytes += SEARCH_ROW_BYTES + bytes;
    if (walk->bytes >= (query->bytes_max ? query->bytes_max : SEARCH_BYTES_MAX)) walk->over = true;
    if (!query->until || walk->bytes < walk->clock_at) return;
    walk->clock_at = walk->bytes + SEARCH_CLOCK_BYTES;
    if (clock_steady(&clock_system) >= query->until) walk->over = true;
}

/* Names of files, out of the JSON list of a message. */
static bool files_match(struct walk *walk, str attachments)
{
    struct json *list = NULL;
    struct json_error why;
    if (!attachments.len) return false;
    arena_reset(&walk->names);
    if (json_parse(&walk->names, attachments, &list, &why)) return false;
    for (const struct json *file = list->child; file; file = file->next)
        if (needle_in(&walk->needle, json_text(json_get(file, STR("filename"))))) return true;
    return false;
}

/* Looks at a thread's messages before place `before`: their words, and the names of their files.
 * *ret_stopped is the place of the last one if the page ended there, else 0. */
static enum err messages_match(struct walk *walk, int64_t thread, int64_t before, bool *ret_yes,
                               int64_t *ret_stopped)
{
    struct stmt *s =
        db_prepare(walk->db, "SELECT seq, plain,"
                             "  CASE WHEN role IN ('user', 'tool') THEN attachments ELSE '' END"
                             " FROM messages WHERE thread=?1 AND seq<?2 ORDER BY seq DESC");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, before);
    bool yes = false;
    int64_t stopped = 0;
    while (!yes && !stopped && stmt_step(s)) {
        str plain = stmt_str(s, 1), attachments = stmt_str(s, 2);
        yes = needle_in(&walk->needle, plain) || files_match(walk, attachments);
        spend(walk, plain.len + attachments.len);
        if (walk->over && !yes) stopped = stmt_i64(s, 0);
    }
    enum err e = stmt_end(s);
    if (e) return e;
    *ret_yes = yes;
    *ret_stopped = stopped;
    return OK;
}

/* Looks at the thread at hand, from place `before` on, and lists it if it is one. *ret_done: the
 * page ends here. */
static enum err thread_look(struct walk *walk, struct stmt *s, int64_t before,
                            struct thread_list *list, bool *ret_done)
{
    struct thread_place here = {.id = stmt_i64(s, 0), .updated = stmt_i64(s, 7)};
    bool yes = !is_search(walk), whole = before == INT64_MAX;
    int64_t stopped = 0;
    if (!yes && whole) {
        str title = stmt_str(s, 3);
        yes = needle_in(&walk->needle, title);
        spend(walk, title.len);
    }
    enum err e = yes ? OK : messages_match(walk, here.id, before, &yes, &stopped);
    if (e) return e;
    *ret_done = true;
    if (yes && list->count == walk->query->limit) { /* `next` is where the page before it ended */
        list->more = true;
        return OK;
    }
    if (yes) thread_read(s, walk->arena, &list->threads[list->count++]);
    list->next = here;
    list->next.seq = stopped;
    list->more = walk->over;
    *ret_done = walk->over;
    return OK;
}

/* The thread that the page before ended in, if it is still there. */
static enum err rest_look(struct walk *walk, struct thread_list *list, bool *ret_done)
{
    const struct thread_place *after = &walk->query->after;
    struct stmt *s = db_prepare(walk->db, "SELECT " THREAD_COLUMNS " FROM threads"
                                          " WHERE id=?1 AND owner=?2");
    stmt_bind_i64(s, 1, after->id);
    stmt_bind_str(s, 2, walk->query->owner);
    enum err e = stmt_step(s) ? thread_look(walk, s, after->seq, list, ret_done) : OK;
    enum err ended = stmt_end(s);
    list->next.updated = after->updated; /* it may have moved; the walk has not */
    return e ? e : ended;
}

static enum err threads_look(struct walk *walk, struct thread_list *list, bool *done)
{
    const struct thread_place *after = &walk->query->after;
    bool first = !after->updated && !after->id;
    struct stmt *s = db_prepare(walk->db, "SELECT " THREAD_COLUMNS
                                          " FROM threads WHERE owner=?1 AND (updated, id)<(?2, ?3)"
                                          " ORDER BY updated DESC, id DESC");
    stmt_bind_str(s, 1, walk->query->owner);
    stmt_bind_i64(s, 2, first ? INT64_MAX : after->updated);
    stmt_bind_i64(s, 3, first ? INT64_MAX : after->id);
    enum err e = OK;
    while (!e && !*done && stmt_step(s)) e = thread_look(walk, s, INT64_MAX, list, done);
    enum err ended = stmt_end(s);
    return e ? e : ended;
}

enum err thread_page(struct db *db, struct arena *arena, const struct thread_query *query,
                     struct thread_list *ret_list)
{
    if (query->query.len > SEARCH_QUERY_BYTES_MAX) return ERR_INVALID_FIELD;
    struct walk walk = {.db = db, .arena = arena, .query = query};
    struct thread_list list = {.threads = arena_array(arena, query->limit, sizeof *list.threads),
                               .next = query->after};
    bool done = false;
    arena_init(&walk.names);
    if (is_search(&walk)) needle_make(&walk.needle, arena, query->query);
    enum err e = query->after.seq ? rest_look(&walk, &list, &done) : OK;
    if (!e && !done) e = threads_look(&walk, &list, &done);
    arena_done(&walk.names);
    if (!e) *ret_list = list;
    return e;
}

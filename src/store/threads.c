/* SPDX-License-Identifier: Apache-2.0
 *
 * The table `threads`. Everything else of a thread refers to its row and goes with it.
 *
 * Search is a walk: the owner's threads, newest first, each one's title and then its messages, with
 * LIKE. It needs no index that every message would pay for, and it is bounded: a page looks at no
 * more than SEARCH_MESSAGES_MAX messages. Upper and lower case are the same for ASCII letters only.
 */
#include "base/limits.h"
#include "store/conversation.h"
#include "store/sqlite.h"

#define THREAD_COLUMNS "id, owner, thread_id, title, agent, last_seq, created, updated"

static void thread_read(struct stmt *s, struct arena *arena, struct thread *thread)
{
    *thread = (struct thread){
        .id = stmt_i64(s, 0),
        .owner = arena_str(arena, stmt_str(s, 1)),
        .thread_id = arena_str(arena, stmt_str(s, 2)),
        .title = arena_str(arena, stmt_str(s, 3)),
        .agent = arena_str(arena, stmt_str(s, 4)),
        .last_seq = stmt_i64(s, 5),
        .created = stmt_i64(s, 6),
        .updated = stmt_i64(s, 7),
    };
}

static enum err thread_one(struct stmt *s, struct arena *arena, struct thread *ret_thread)
{
    struct thread thread;
    bool found = stmt_step(s);
    if (found) thread_read(s, arena, &thread);
    enum err e = stmt_end(s);
    if (e) return e;
    if (!found) return ERR_NOT_FOUND;
    *ret_thread = thread;
    return OK;
}

enum err thread_find(struct db *db, struct arena *arena, str owner, str thread_id,
                     struct thread *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS " FROM threads"
                                    " WHERE owner=?1 AND thread_id=?2");
    stmt_bind_str(s, 1, owner);
    stmt_bind_str(s, 2, thread_id);
    return thread_one(s, arena, ret_thread);
}

enum err thread_by_id(struct db *db, struct arena *arena, int64_t id, struct thread *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS " FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    return thread_one(s, arena, ret_thread);
}

enum err thread_add(struct db *db, struct thread *thread)
{
    struct stmt *s = db_prepare(db, "INSERT INTO threads"
                                    " (owner, thread_id, title, agent, last_seq, created, updated)"
                                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id");
    stmt_bind_str(s, 1, thread->owner);
    stmt_bind_str(s, 2, thread->thread_id);
    stmt_bind_str(s, 3, thread->title);
    stmt_bind_str(s, 4, thread->agent);
    stmt_bind_i64(s, 5, thread->last_seq);
    stmt_bind_i64(s, 6, thread->created);
    stmt_bind_i64(s, 7, thread->updated);
    int64_t id = stmt_step(s) ? stmt_i64(s, 0) : 0;
    enum err e = stmt_run(s);
    if (!e) thread->id = id;
    return e;
}

enum err thread_rename(struct db *db, int64_t id, str title, msec now)
{
    struct stmt *s = db_prepare(db, "UPDATE threads SET title=?2, updated=?3 WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    stmt_bind_str(s, 2, title);
    stmt_bind_i64(s, 3, now);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

enum err thread_delete(struct db *db, int64_t id)
{
    struct stmt *s = db_prepare(db, "DELETE FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, id);
    enum err e = stmt_run(s);
    return e || db_changes(db) ? e : ERR_NOT_FOUND;
}

/* ---- listing and search ---- */

/* What LIKE takes for "contains query": its own signs stand for themselves behind a backslash. */
static str like_pattern(struct arena *arena, str query)
{
    char *out = arena_alloc(arena, 2 * query.len + 2), *at = out;
    *at++ = '%';
    for (size_t i = 0; i < query.len; i++) {
        char c = query.p[i];
        if (c == '%' || c == '_' || c == '\\') *at++ = '\\';
        *at++ = c;
    }
    *at++ = '%';
    return (str){out, (size_t)(at - out)};
}

struct search {
    str pattern;  /* empty: everything matches */
    int64_t left; /* messages that may still be looked at */
};

/* Looks at the thread's newest messages, as many as are left: their words, and the names of their
 * files. */
static enum err messages_match(struct db *db, int64_t thread, struct search *search, bool *ret_yes)
{
    struct stmt *s =
        db_prepare(db, "SELECT count(*), coalesce(max(yes), 0) FROM"
                       " (SELECT substr(plain,1,65536) LIKE ?2 ESCAPE '\\' OR"
                       "   CASE attachments WHEN '' THEN 0 ELSE EXISTS"
                       "    (SELECT 1 FROM json_each(attachments) WHERE"
                       "     json_extract(value, '$.filename') LIKE ?2 ESCAPE '\\') END AS yes"
                       "  FROM messages"
                       "  WHERE thread=?1 ORDER BY seq DESC LIMIT ?3)");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_str(s, 2, search->pattern);
    stmt_bind_i64(s, 3, search->left);
    bool row = stmt_step(s);
    int64_t looked = row ? stmt_i64(s, 0) : 0;
    bool yes = row && stmt_i64(s, 1);
    enum err e = stmt_end(s);
    if (e) return e;
    search->left -= looked;
    *ret_yes = yes;
    return OK;
}

/* Walk the rows of `s`, whose last column says whether the title matches. */
static enum err page_fill(struct db *db, struct stmt *s, struct arena *arena, struct search *search,
                          size_t limit, struct thread_list *list)
{
    while (stmt_step(s)) {
        bool yes = !search->pattern.len || stmt_i64(s, 8);
        enum err e = yes ? OK : messages_match(db, stmt_i64(s, 0), search, &yes);
        if (e) return e;
        list->more = yes && list->count == limit;
        if (list->more) return OK;
        if (yes) thread_read(s, arena, &list->threads[list->count++]);
        list->more = search->left <= 0 && list->count;
        if (search->left <= 0) return OK;
    }
    return OK;
}

enum err thread_page(struct db *db, struct arena *arena, str owner, str query, msec after_updated,
                     int64_t after_id, size_t limit, struct thread_list *ret_list)
{
    if (query.len > SEARCH_QUERY_BYTES_MAX) return ERR_INVALID_FIELD;
    bool first = !after_updated && !after_id;
    struct search search = {.left = SEARCH_MESSAGES_MAX};
    if (query.len) search.pattern = like_pattern(arena, query);
    struct thread_list list = {.threads = arena_array(arena, limit, sizeof *list.threads)};

    struct stmt *s = db_prepare(db, "SELECT " THREAD_COLUMNS ", title LIKE ?4 ESCAPE '\\'"
                                    " FROM threads WHERE owner=?1 AND (updated, id)<(?2, ?3)"
                                    " ORDER BY updated DESC, id DESC");
    stmt_bind_str(s, 1, owner);
    stmt_bind_i64(s, 2, first ? INT64_MAX : after_updated);
    stmt_bind_i64(s, 3, first ? INT64_MAX : after_id);
    stmt_bind_str(s, 4, search.pattern);
    enum err e = page_fill(db, s, arena, &search, limit, &list);
    enum err ended = stmt_end(s);
    if (e || ended) return e ? e : ended;
    *ret_list = list;
    return OK;
}

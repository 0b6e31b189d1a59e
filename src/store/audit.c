/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `audit` and `audit_heads`.
 *
 *     entry 1             entry 2             entry 3                head
 *     fields              fields              fields                 count = 3
 *     seal(0, fields) --> seal(1, fields) --> seal(2, fields) -----> last, seal(count, last)
 *
 * A seal is the id of the key (4 bytes) and an HMAC-SHA-256 under it. What goes into it, in this
 * order: a word for the kind, numbers as 8 bytes, texts and bytes with their length before them; so
 * no two different rows make the same bytes.
 *
 * 1. A seal covers every column of its row, and the thread's number: no row passes for another.
 * 2. The head has a seal of its own, made of the last entry's: cutting off the end needs the key.
 * 3. Appending mends nothing. A head whose seal does not fit is moved along without a new seal, so
 *    that what was done to the chain before is still found.
 *
 * To add a field: a column that is empty in the rows there are, and it goes into the seal only if
 * it is not empty; the seals in the field must keep their values.
 */
#include "store/audit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "store/migrate.h"
#include "store/sqlite.h"
#include "store/store.h"

enum { AUDIT_SCHEMA = 3 }; /* the step that made the tables */

_Static_assert(AUDIT_OPENED == 0 && AUDIT_RESOLVED == 1 && AUDIT_REFUSED == 2 &&
                   AUDIT_STARTED == 3 && AUDIT_ENDED == 4 && AUDIT_GRANTED == 5 &&
                   AUDIT_REVOKED == 6,
               "numbers that databases hold");

#define AUDIT_ROW(value, name) name,
static const char *const actions[AUDIT_ACTION_COUNT] = {AUDIT_ACTIONS(AUDIT_ROW)};
#undef AUDIT_ROW

const char *audit_action_name(enum audit_action action)
{
    assert((unsigned)action < AUDIT_ACTION_COUNT);
    return actions[action];
}

/* ---- seals ---- */

struct seal {
    unsigned char bytes[AUDIT_SEAL_BYTES];
};

static str seal_str(const struct seal *seal)
{
    return (str){(const char *)seal->bytes, AUDIT_SEAL_BYTES};
}

/* A row of the table as it is stored. */
struct row {
    int64_t thread, n, action, at;
    str interaction_id, call_id, who, via, why, hash;
};

static void put_number(struct buf *out, int64_t number)
{
    char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (char)((uint64_t)number >> (56 - 8 * i));
    buf_append(out, (str){bytes, sizeof bytes});
}

static void put_bytes(struct buf *out, str bytes)
{
    put_number(out, (int64_t)bytes.len);
    buf_append(out, bytes);
}

/* The id is public: it is the beginning of a hash of the key, which has 32 random bytes. */
static enum err seal_make(const unsigned char *key, struct buf *bytes, struct seal *ret_seal)
{
    static const char label[] = "fermata 1 audit key id";
    char named[sizeof label + HASH_BYTES];
    unsigned char id[HASH_BYTES];
    if (bytes->full) return ERR_TOO_LARGE;
    memcpy(named, label, sizeof label);
    memcpy(named + sizeof label, key, HASH_BYTES);
    crypto_sha256((str){named, sizeof named}, id);
    crypto_wipe(named, sizeof named);
    memcpy(ret_seal->bytes, id, AUDIT_KEY_ID_BYTES);
    crypto_hmac((str){(const char *)key, HASH_BYTES}, buf_str(bytes),
                ret_seal->bytes + AUDIT_KEY_ID_BYTES);
    return OK;
}

static enum err seal_entry(const unsigned char *key, const struct row *row, str before,
                           struct seal *ret_seal)
{
    const str texts[] = {
        row->interaction_id, row->call_id, row->who, row->via, row->why, row->hash};
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, AUDIT_ENTRY_BYTES_MAX);
    put_bytes(&bytes, STR("entry"));
    put_bytes(&bytes, before);
    put_number(&bytes, row->thread);
    put_number(&bytes, row->n);
    put_number(&bytes, row->action);
    put_number(&bytes, row->at);
    for (size_t i = 0; i < COUNT(texts); i++) put_bytes(&bytes, texts[i]);
    return seal_make(key, &bytes, ret_seal);
}

static enum err seal_head(const unsigned char *key, int64_t thread, int64_t count, str last,
                          struct seal *ret_seal)
{
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, AUDIT_ENTRY_BYTES_MAX);
    put_bytes(&bytes, STR("head"));
    put_number(&bytes, thread);
    put_number(&bytes, count);
    put_bytes(&bytes, last);
    return seal_make(key, &bytes, ret_seal);
}

/* Does a stored seal fit? If not, is it one of another key? */
enum fit { FITS, OTHER_KEY, NO_FIT };

static enum fit seal_fit(str stored, const struct seal *made)
{
    str expected = seal_str(made);
    if (str_eq_secret(stored, expected)) return FITS;
    bool same_key =
        stored.len == expected.len && memcmp(stored.p, expected.p, AUDIT_KEY_ID_BYTES) == 0;
    return same_key ? NO_FIT : OTHER_KEY;
}

/* ---- heads ---- */

struct head {
    bool there;
    enum fit fit;
    int64_t count;
    struct seal last, seal;
};

static bool seal_copy(str stored, struct seal *seal)
{
    if (stored.len != AUDIT_SEAL_BYTES) return false;
    memcpy(seal->bytes, stored.p, AUDIT_SEAL_BYTES);
    return true;
}

static enum err head_read(struct db *db, const unsigned char *key, int64_t thread,
                          struct head *ret_head)
{
    struct stmt *s = db_prepare(db, "SELECT count, last, seal FROM audit_heads WHERE thread=?1");
    stmt_bind_i64(s, 1, thread);
    struct head head = {.there = stmt_step(s), .fit = NO_FIT};
    if (head.there) {
        struct seal made;
        str last = stmt_str(s, 1), seal = stmt_str(s, 2);
        head.count = stmt_i64(s, 0);
        bool whole = seal_copy(last, &head.last) && seal_copy(seal, &head.seal);
        if (whole && seal_head(key, thread, head.count, last, &made) == OK)
            head.fit = seal_fit(seal, &made);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_head = head;
    return e;
}

static enum err head_write(struct db *db, int64_t thread, const struct head *head)
{
    struct stmt *s = db_prepare(db, "INSERT INTO audit_heads (thread, count, last, seal)"
                                    " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (thread) DO UPDATE"
                                    " SET count=?2, last=?3, seal=?4");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, head->count);
    stmt_bind_blob(s, 3, seal_str(&head->last));
    stmt_bind_blob(s, 4, seal_str(&head->seal));
    return stmt_run(s);
}

/* ---- appending ---- */

static enum err entry_write(struct db *db, const struct row *row, const struct seal *seal)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO audit"
                   " (thread, n, action, at, interaction_id, call_id, who, via, why, hash, seal)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    stmt_bind_i64(s, 1, row->thread);
    stmt_bind_i64(s, 2, row->n);
    stmt_bind_i64(s, 3, row->action);
    stmt_bind_i64(s, 4, row->at);
    stmt_bind_str(s, 5, row->interaction_id);
    stmt_bind_str(s, 6, row->call_id);
    stmt_bind_str(s, 7, row->who);
    stmt_bind_str(s, 8, row->via);
    stmt_bind_str(s, 9, row->why);
    stmt_bind_blob(s, 10, row->hash);
    stmt_bind_blob(s, 11, seal_str(seal));
    return stmt_run(s);
}

static enum err entries_end(struct db *db, int64_t thread, int64_t *ret_n)
{
    struct stmt *s = db_prepare(db, "SELECT max(n) FROM audit WHERE thread=?1");
    stmt_bind_i64(s, 1, thread);
    int64_t n = stmt_step(s) ? stmt_i64(s, 0) : 0; /* NULL reads as 0 */
    enum err e = stmt_end(s);
    if (!e) *ret_n = n;
    return e;
}

/* Where to append, and whether the chain is sound as far as its end can tell. What somebody left
 * there that the head does not know is passed over. */
static enum err chain_end(struct db *db, const unsigned char *key, int64_t thread,
                          struct head *ret_head, bool *ret_sound)
{
    struct head head;
    int64_t end = 0;
    enum err e = head_read(db, key, thread, &head);
    if (!e) e = entries_end(db, thread, &end);
    if (e) return e;
    bool known = head.there && head.fit == FITS && head.count >= end;
    bool fresh = !head.there && end == 0;
    if (!known) head.count = end;
    if (head.count == INT64_MAX) return ERR_DAMAGED;
    *ret_head = head;
    *ret_sound = known || fresh;
    return OK;
}

enum err audit_add(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                   const struct audit_entry *entry)
{
    struct head head;
    struct seal seal;
    bool sound = false;
    enum err e = chain_end(db, key, thread, &head, &sound);
    if (e) return e;
    struct row row = {.thread = thread,
                      .n = head.count + 1,
                      .action = entry->action,
                      .at = entry->at,
                      .interaction_id = entry->interaction_id,
                      .call_id = entry->call_id,
                      .who = entry->who,
                      .via = entry->via,
                      .why = entry->why,
                      .hash = {(const char *)entry->hash, HASH_BYTES}};
    e = seal_entry(key, &row, seal_str(&head.last), &seal);
    if (!e) e = entry_write(db, &row, &seal);
    if (e) return e;
    head.count = row.n;
    head.last = seal;
    if (sound) e = seal_head(key, thread, head.count, seal_str(&seal), &head.seal); /* 3. */
    return e ? e : head_write(db, thread, &head);
}

/* ---- checking ---- */

/* "thread 7 (ann/t1), entry 3: ..." */
static enum err broken(struct db *db, int64_t thread, int64_t n, struct fault *reterr,
                       const char *why)
{
    char name[200] = "";
    struct stmt *s = db_prepare(db, "SELECT owner, thread_id FROM threads WHERE id=?1");
    stmt_bind_i64(s, 1, thread);
    if (stmt_step(s)) {
        str owner = stmt_str(s, 0), id = stmt_str(s, 1);
        snprintf(name, sizeof name, " (%.*s/%.*s)", STR_ARG(owner), STR_ARG(id));
    }
    enum err e = stmt_end(s);
    if (e) return fault(reterr, e, "the audit trail cannot be read: %s", db_message(db));
    bool text = utf8_valid(str_c(name));
    for (char *c = name; *c; c++) /* it goes to a terminal, from a file that somebody changed */
        if ((unsigned char)*c < ' ' || *c == 0x7f || (!text && (unsigned char)*c > '~')) *c = '?';
    return fault(reterr, ERR_DAMAGED, "thread %lld%s, entry %lld: %s", (long long)thread, name,
                 (long long)n, why);
}

static enum err unreadable(struct db *db, enum err e, struct fault *reterr)
{
    return fault(reterr, e, "the audit trail cannot be read: %s", db_message(db));
}

static void row_read(struct stmt *s, int64_t thread, struct row *row)
{
    *row = (struct row){
        .thread = thread,
        .n = stmt_i64(s, 0),
        .action = stmt_i64(s, 1),
        .at = stmt_i64(s, 2),
        .interaction_id = stmt_str(s, 3),
        .call_id = stmt_str(s, 4),
        .who = stmt_str(s, 5),
        .via = stmt_str(s, 6),
        .why = stmt_str(s, 7),
        .hash = stmt_str(s, 8),
    };
}

/* What is wrong with the entry behind the place; NULL: nothing, and the place moves to it. */
static const char *entry_wrong(const unsigned char *key, const struct row *row, str stored,
                               struct audit_place *place)
{
    struct seal made;
    str before = {(const char *)place->seal, sizeof place->seal};
    if (row->n != place->n + 1) return "it is missing";
    if (seal_entry(key, row, before, &made)) return "it is longer than any of ours";
    enum fit fit = seal_fit(stored, &made);
    if (fit == OTHER_KEY) return "it was sealed with another secret, or its seal was changed";
    if (fit == NO_FIT) return "its seal does not fit: it was changed, or the one before it was";
    place->n = row->n;
    memcpy(place->seal, made.bytes, sizeof place->seal);
    return NULL;
}

/* Entries of the place's thread; *ret_end: there are no more. */
static enum err check_entries(struct db *db, const unsigned char *key, struct audit_place *place,
                              size_t *left, struct audit_tally *tally, bool *ret_end,
                              struct fault *reterr)
{
    struct stmt *s = db_prepare(db, "SELECT n, action, at, interaction_id, call_id, who, via, why,"
                                    " hash, seal FROM audit WHERE thread=?1 AND n>?2 ORDER BY n");
    stmt_bind_i64(s, 1, place->thread);
    stmt_bind_i64(s, 2, place->n);
    const char *wrong = NULL;
    bool end = false;
    while (!wrong && *left && !end) {
        struct row row;
        end = !stmt_step(s);
        if (end) break;
        row_read(s, place->thread, &row);
        wrong = entry_wrong(key, &row, stmt_str(s, 9), place);
        --*left;
        if (!wrong) tally->entries++;
    }
    enum err e = stmt_end(s);
    if (e) return unreadable(db, e, reterr);
    if (wrong) return broken(db, place->thread, place->n + 1, reterr, wrong);
    *ret_end = end;
    return OK;
}

/* What the head says against what the place has seen, which is all entries. NULL: they agree. */
static const char *head_wrong(const struct head *head, const struct audit_place *place)
{
    if (!head->there) return "the head of the chain is missing";
    if (head->fit == OTHER_KEY)
        return "the head of the chain was sealed with another secret, or its seal was changed";
    if (head->fit == NO_FIT)
        return "the head of the chain was changed, or the chain was broken when it grew";
    if (head->count > place->n) return "entries behind it were removed";
    bool last = memcmp(head->last.bytes, place->seal, AUDIT_SEAL_BYTES) == 0;
    return head->count == place->n && last ? NULL : "the head of the chain does not know it";
}

static enum err check_head(struct db *db, const unsigned char *key, const struct audit_place *place,
                           struct fault *reterr)
{
    struct head head;
    int64_t end = 0;
    enum err e = head_read(db, key, place->thread, &head);
    if (!e) e = entries_end(db, place->thread, &end);
    if (e) return unreadable(db, e, reterr);
    if (!head.there && !end) return OK; /* the thread was deleted since the step before */
    const char *wrong = head_wrong(&head, place);
    return wrong ? broken(db, place->thread, place->n, reterr, wrong) : OK;
}

/* The next thread that has entries or a head; 0: none. */
static enum err next_thread(struct db *db, int64_t after, int64_t *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT min(thread) FROM ("
                                    " SELECT min(thread) AS thread FROM audit WHERE thread>?1"
                                    " UNION ALL"
                                    " SELECT min(thread) FROM audit_heads WHERE thread>?1)");
    stmt_bind_i64(s, 1, after);
    int64_t thread = stmt_step(s) ? stmt_i64(s, 0) : 0; /* NULL reads as 0 */
    enum err e = stmt_end(s);
    if (!e) *ret_thread = thread;
    return e;
}

enum err audit_check(struct db *db, const unsigned char key[static HASH_BYTES],
                     struct audit_place *place, size_t limit, struct audit_tally *tally,
                     bool *ret_end, struct fault *reterr)
{
    for (size_t left = limit; left;) {
        if (!place->inside) {
            int64_t thread = 0;
            enum err e = next_thread(db, place->thread, &thread);
            if (e) return unreadable(db, e, reterr);
            if (!thread) {
                *ret_end = true;
                return OK;
            }
            *place = (struct audit_place){.thread = thread, .inside = true};
        }
        bool end = false;
        enum err e = check_entries(db, key, place, &left, tally, &end, reterr);
        if (!e && end) e = check_head(db, key, place, reterr);
        if (e) return e;
        if (!end) break;
        place->inside = false;
        tally->threads++;
        if (left) left--;
    }
    *ret_end = false;
    return OK;
}

/* A transaction for each step, so that the log of a server at work can begin anew between them.
 * Each chain is still checked whole: it only grows at its end, and a place remembers the seal that
 * the next entry continues. We only read, and never checkpoint, so a second process at the database
 * is no danger to it. Reading is far faster than appending, so the end is reached. */
static enum err check_all(struct db *db, const unsigned char *key, struct audit_tally *tally,
                          struct fault *reterr)
{
    struct audit_place place = {0};
    bool end = false;
    enum err e = OK;
    while (!e && !end) {
        e = db_begin(db);
        if (e) return unreadable(db, e, reterr);
        e = audit_check(db, key, &place, AUDIT_CHECK_ENTRIES, tally, &end, reterr);
        db_settle(db);
        enum err ended = db_rollback(db);
        if (!e && ended) e = unreadable(db, ended, reterr);
    }
    return e;
}

enum err audit_check_folder(const char *folder, const unsigned char key[static HASH_BYTES],
                            struct audit_tally *ret_tally, struct fault *reterr)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/" STORE_DATABASE_NAME, folder);
    if (len >= (int)sizeof path)
        return fault(reterr, ERR_CONFIG, "the path of the data folder is too long");
    if (access(path, F_OK))
        return fault(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path,
                     strerror(errno));
    AUTO(db_closep) struct db *db = NULL;
    struct audit_tally tally = {0};
    int64_t schema = 0;
    enum err e = db_open(path, DB_READER, &db, reterr);
    if (!e) e = migrate_number(db, &schema, reterr);
    if (!e && schema >= AUDIT_SCHEMA) e = check_all(db, key, &tally, reterr);
    if (!e) *ret_tally = tally;
    return e;
}

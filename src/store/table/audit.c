/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables `audit` and `audit_chains`: who decided what, in a chain for each thread that outlives
 * it, the chain of chains, and their check.
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
 * 4. The chain `server`, number 0, has an entry for each opening and closing of another, in the same
 *    commit: a chain that is not there any more is missed, and so is the end of one that was closed.
 *    The number of a chain is that of its thread, which is never used again.
 *
 *        server         opened chn_1, 7   opened chn_2, 9   closed chn_1, 7: 4 entries, last seal
 *                           |                 |                  |
 *        7 (chn_1)      1   2   3   closed <-- - - - - - - - - - '
 *        9 (chn_2)      1   2 ...
 *
 * 5. The ends of chains that grew last are kept with the writing connection (hot.h): only of those
 *    that are sound, and only as long as nobody else has written. What would be read in their place
 *    is in SQLite's own memory, which is as old.
 *
 * To add a field: a column that is empty in the rows there are, and it goes into the seal only if
 * it is not empty; the seals in the field must keep their values.
 */
#include "store/table/audit.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "store/db/hot.h"
#include "store/db/migrate.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"

enum {
    AUDIT_SCHEMA = 3,         /* the step that made the tables */
    AUDIT_CHAINS_SCHEMA = 11, /* and the one that made them outlive their threads */
    SERVER_CHAIN = 0,
};

_Static_assert(AUDIT_OPENED == 0 && AUDIT_RESOLVED == 1 && AUDIT_REFUSED == 2 &&
                   AUDIT_STARTED == 3 && AUDIT_ENDED == 4 && AUDIT_GRANTED == 5 &&
                   AUDIT_REVOKED == 6 && AUDIT_MOVED == 7 && AUDIT_CLOSED == 8 &&
                   AUDIT_CHAIN_OPENED == 9 && AUDIT_CHAIN_CLOSED == 10 && AUDIT_ADOPTED == 11,
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
    str of; /* name of a chain, and its number */
    int64_t of_thread, total;
    str last;
};

/* A key, and its id, which is public: the beginning of a hash of the key, which has 32 random bytes. */
struct sealer {
    const unsigned char *key;
    unsigned char id[AUDIT_KEY_ID_BYTES];
};

static struct sealer sealer_make(const unsigned char *key)
{
    static const char label[] = "fermata 1 audit key id";
    struct sealer sealer = {.key = key};
    char named[sizeof label + HASH_BYTES];
    unsigned char id[HASH_BYTES];
    memcpy(named, label, sizeof label);
    memcpy(named + sizeof label, key, HASH_BYTES);
    crypto_sha256((str){named, sizeof named}, id);
    crypto_wipe(named, sizeof named);
    memcpy(sealer.id, id, sizeof sealer.id);
    return sealer;
}

/* What goes into a seal. */
struct sealed {
    size_t len;
    bool full;
    char bytes[AUDIT_ENTRY_BYTES_MAX];
};

static void put(struct sealed *out, const void *bytes, size_t len)
{
    out->full |= len > sizeof out->bytes - out->len;
    if (out->full || !len) return;
    memcpy(out->bytes + out->len, bytes, len);
    out->len += len;
}

static void put_number(struct sealed *out, int64_t number)
{
    uint64_t bytes = htobe64((uint64_t)number);
    put(out, &bytes, sizeof bytes);
}

static void put_bytes(struct sealed *out, str bytes)
{
    put_number(out, (int64_t)bytes.len);
    put(out, bytes.p, bytes.len);
}

static enum err seal_make(const struct sealer *sealer, const struct sealed *sealed,
                          struct seal *ret_seal)
{
    if (sealed->full) return ERR_TOO_LARGE;
    memcpy(ret_seal->bytes, sealer->id, AUDIT_KEY_ID_BYTES);
    crypto_hmac((str){(const char *)sealer->key, HASH_BYTES}, (str){sealed->bytes, sealed->len},
                ret_seal->bytes + AUDIT_KEY_ID_BYTES);
    return OK;
}

static enum err seal_entry(const struct sealer *sealer, const struct row *row, str before,
                           struct seal *ret_seal)
{
    const str texts[] = {
        row->interaction_id, row->call_id, row->who, row->via, row->why, row->hash};
    struct sealed sealed;
    sealed.len = sealed.full = 0;
    put_bytes(&sealed, STR("entry"));
    put_bytes(&sealed, before);
    put_number(&sealed, row->thread);
    put_number(&sealed, row->n);
    put_number(&sealed, row->action);
    put_number(&sealed, row->at);
    for (size_t i = 0; i < COUNT(texts); i++) put_bytes(&sealed, texts[i]);
    if (row->of.len || row->of_thread || row->total || row->last.len) {
        put_bytes(&sealed, row->of);
        put_number(&sealed, row->of_thread);
        put_number(&sealed, row->total);
        put_bytes(&sealed, row->last);
    }
    return seal_make(sealer, &sealed, ret_seal);
}

/* That the chain `server` knows it is sealed, too: else it could be made to have never been told.
 * Heads from before that chain have a seal without it, until they are taken over. */
static enum err seal_head(const struct sealer *sealer, int64_t thread, int64_t count, str last,
                          bool known, struct seal *ret_seal)
{
    struct sealed sealed;
    sealed.len = sealed.full = 0;
    put_bytes(&sealed, STR("head"));
    put_number(&sealed, thread);
    put_number(&sealed, count);
    put_bytes(&sealed, last);
    if (known) put_number(&sealed, 1);
    return seal_make(sealer, &sealed, ret_seal);
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

enum { CHAIN_NAME_BYTES = 4 + ID_BYTES }; /* "chn_" and an id, or "server" */

struct head {
    bool there, known, closed;
    enum fit fit;
    int64_t count;
    struct seal last, seal;
    char name[CHAIN_NAME_BYTES];
    int64_t end;  /* the entries that there are, whatever the head says */
    bool present; /* its thread has not been deleted */
};

static bool seal_copy(str stored, struct seal *seal)
{
    if (stored.len != AUDIT_SEAL_BYTES) return false;
    memcpy(seal->bytes, stored.p, AUDIT_SEAL_BYTES);
    return true;
}

static enum err head_read(struct db *db, const struct sealer *sealer, int64_t thread,
                          struct head *ret_head)
{
    struct stmt *s =
        db_prepare(db, "SELECT count, last, seal, known, closed, name,"
                       "  (SELECT max(n) FROM audit WHERE chain=?1),"
                       "  EXISTS (SELECT 1 FROM threads WHERE id=?1 AND owner<>'')"
                       " FROM (SELECT ?1 AS asked) LEFT JOIN audit_chains ON chain=asked");
    stmt_bind_i64(s, 1, thread);
    struct head head = {.fit = NO_FIT};
    if (stmt_step(s)) {
        struct seal made;
        str last = stmt_str(s, 1), seal = stmt_str(s, 2);
        head.there = !stmt_is_null(s, 0);
        head.count = stmt_i64(s, 0);
        head.known = stmt_i64(s, 3);
        head.closed = stmt_i64(s, 4);
        snprintf(head.name, sizeof head.name, "%.*s", STR_ARG(stmt_str(s, 5)));
        head.end = stmt_i64(s, 6); /* NULL reads as 0 */
        head.present = stmt_i64(s, 7);
        bool whole = head.there && seal_copy(last, &head.last) && seal_copy(seal, &head.seal);
        if (whole && seal_head(sealer, thread, head.count, last, head.known, &made) == OK)
            head.fit = seal_fit(seal, &made);
    }
    enum err e = stmt_end(s);
    if (!e) *ret_head = head;
    return e;
}

/* Most of the time a chain has only become longer. */
static enum err head_grow(struct db *db, int64_t thread, const struct head *head)
{
    struct stmt *s =
        db_prepare(db, "UPDATE audit_chains SET count=?2, last=?3, seal=?4 WHERE chain=?1");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, head->count);
    stmt_bind_blob(s, 3, seal_str(&head->last));
    stmt_bind_blob(s, 4, seal_str(&head->seal));
    return stmt_run(s);
}

/* Whose thread it is stands beside a chain that begins. */
static enum err head_write(struct db *db, int64_t thread, const struct head *head)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO audit_chains (chain, count, last, seal, known, closed, name, owner,"
                   "  thread_id)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
                   "  coalesce((SELECT owner FROM threads WHERE id=?1), ''),"
                   "  coalesce((SELECT thread_id FROM threads WHERE id=?1), ''))"
                   " ON CONFLICT (chain) DO UPDATE"
                   " SET count=?2, last=?3, seal=?4, known=?5, closed=?6");
    stmt_bind_i64(s, 1, thread);
    stmt_bind_i64(s, 2, head->count);
    stmt_bind_blob(s, 3, seal_str(&head->last));
    stmt_bind_blob(s, 4, seal_str(&head->seal));
    stmt_bind_i64(s, 5, head->known);
    stmt_bind_i64(s, 6, head->closed);
    stmt_bind_str(s, 7, str_c(head->name));
    return stmt_run(s);
}

static enum err entry_write(struct db *db, const struct row *row, const struct seal *seal)
{
    struct stmt *s =
        db_prepare(db,
                   "INSERT INTO audit"
                   " (chain, n, action, at, interaction_id, call_id, who, via, why, hash, seal,"
                   "  of, of_chain, total, last)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)");
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
    stmt_bind_str(s, 12, row->of);
    stmt_bind_i64(s, 13, row->of_thread);
    stmt_bind_i64(s, 14, row->total);
    stmt_bind_blob(s, 15, row->last);
    return stmt_run(s);
}

/* ---- ends that are kept ---- */

struct kept_end {
    unsigned char key_id[AUDIT_KEY_ID_BYTES]; /* under which it is sound */
    struct head head;
};
static const struct hot_shape shape = {.size = sizeof(struct kept_end)};

static bool kept_find(struct db *db, const struct sealer *sealer, int64_t thread,
                      struct head *ret_head)
{
    const struct kept_end *end = hot_see(db, HOT_CHAIN, thread);
    if (!end || memcmp(end->key_id, sealer->id, sizeof sealer->id) != 0) return false;
    *ret_head = end->head;
    return true;
}

/* It stands so in the tables now. */
static void kept_set(struct db *db, const struct sealer *sealer, int64_t thread,
                     const struct head *head, bool sound)
{
    struct kept_end end = {.head = *head};
    memcpy(end.key_id, sealer->id, sizeof end.key_id);
    end.head.there = true;
    end.head.fit = FITS;
    end.head.end = head->count;
    if (sound)
        hot_put(db, HOT_CHAIN, thread, &shape, &end, 1);
    else
        hot_drop(db, HOT_CHAIN, thread);
}

/* 5. */
static void kept_check(struct db *db, const struct sealer *sealer, int64_t thread,
                       const struct head *kept)
{
#ifdef FERMATA_CHECKED
    struct head read;
    uint64_t statements = db_statements_take(db);
    enum err e = head_read(db, sealer, thread, &read);
    (void)db_statements_take(db);
    db_statements_add(db, statements);
    if (e) return; /* who asked sees it the next time */
    assert(read.there && read.fit == FITS && read.count == kept->count);
    assert(memcmp(&read.last, &kept->last, sizeof read.last) == 0);
    assert(memcmp(&read.seal, &kept->seal, sizeof read.seal) == 0);
    assert(read.known == kept->known && read.closed == kept->closed);
    assert(strcmp(read.name, kept->name) == 0 && read.end <= kept->count);
    assert(thread == SERVER_CHAIN || kept->closed || read.present);
#else
    (void)db, (void)sealer, (void)thread, (void)kept;
#endif
}

/* ---- appending ---- */

/* Where to append, and whether the chain is sound as far as its end can tell. What somebody left
 * there that the head does not know is passed over. */
static enum err chain_end(struct db *db, const struct sealer *sealer, int64_t thread,
                          struct head *ret_head, bool *ret_sound)
{
    struct head head;
    if (kept_find(db, sealer, thread, &head)) {
        kept_check(db, sealer, thread, &head);
        *ret_head = head;
        *ret_sound = true;
        return head.count == INT64_MAX ? ERR_DAMAGED : OK;
    }
    enum err e = head_read(db, sealer, thread, &head);
    if (e) return e;
    bool known = head.there && head.fit == FITS && head.count >= head.end;
    bool fresh = !head.there && head.end == 0;
    if (!known) head.count = head.end;
    if (head.count == INT64_MAX) return ERR_DAMAGED;
    *ret_head = head;
    *ret_sound = known || fresh;
    return OK;
}

/* The row behind the end of its chain: n and its seal are made here, and the head moves along. */
static enum err append(struct db *db, const struct sealer *sealer, struct row *row,
                       struct head *head)
{
    struct seal seal;
    row->n = head->count + 1;
    enum err e = seal_entry(sealer, row, seal_str(&head->last), &seal);
    if (!e) e = entry_write(db, row, &seal);
    if (e) return e;
    head->count = row->n;
    head->last = seal;
    return OK;
}

/* The head of a chain to which something was appended. grown: nothing else of it has changed. */
static enum err head_save(struct db *db, const struct sealer *sealer, int64_t thread,
                          struct head *head, bool sound, bool grown)
{
    enum err e = OK;
    if (sound) /* 3. */
        e = seal_head(sealer, thread, head->count, seal_str(&head->last), head->known, &head->seal);
    if (!e) e = grown ? head_grow(db, thread, head) : head_write(db, thread, head);
    if (!e) kept_set(db, sealer, thread, head, sound);
    return e;
}

static struct row row_of(const struct audit_entry *entry, int64_t thread)
{
    return (struct row){.thread = thread,
                        .action = entry->action,
                        .at = entry->at,
                        .interaction_id = entry->interaction_id,
                        .call_id = entry->call_id,
                        .who = entry->who,
                        .via = entry->via,
                        .why = entry->why,
                        .hash = {(const char *)entry->hash, HASH_BYTES}};
}

static enum err server_append(struct db *db, const struct sealer *sealer, struct row *row)
{
    struct head head;
    bool sound = false;
    enum err e = chain_end(db, sealer, SERVER_CHAIN, &head, &sound);
    if (e) return e;
    bool grown = head.there && head.known;
    row->thread = SERVER_CHAIN;
    head.known = true;
    snprintf(head.name, sizeof head.name, "server");
    e = append(db, sealer, row, &head);
    return e ? e : head_save(db, sealer, SERVER_CHAIN, &head, sound, grown);
}

/* What is told of a chain to the one that knows them all. */
static enum err server_tell(struct db *db, const struct sealer *sealer, enum audit_action action,
                            int64_t thread, const struct head *head, str who, msec at)
{
    const struct audit_entry entry = {.action = action, .who = who, .at = at};
    struct row row = row_of(&entry, SERVER_CHAIN);
    row.of = str_c(head->name);
    row.of_thread = thread;
    if (action == AUDIT_CHAIN_CLOSED) {
        row.total = head->count;
        row.last = seal_str(&head->last);
    }
    return server_append(db, sealer, &row);
}

/* At random: a chain that begins again where one was taken away is another one. */
static void name_chain(struct head *head)
{
    char id[ID_BYTES];
    id_random(id);
    snprintf(head->name, sizeof head->name, "chn_%s", id);
}

/* Behind the entries of a thread's chain: the chain `server` knows it from the first of them on. */
static enum err chain_save(struct db *db, const struct sealer *sealer, int64_t thread,
                           struct head *head, bool sound, msec at)
{
    bool told = head->known, grown = head->there && told && !head->closed;
    enum err e = OK;
    head->known = true;
    if (!head->name[0]) name_chain(head);
    if (!told) e = server_tell(db, sealer, AUDIT_CHAIN_OPENED, thread, head, STR_EMPTY, at);
    return e ? e : head_save(db, sealer, thread, head, sound, grown);
}

/* Whatever went wrong may stand in the tables in part. */
static enum err added(struct db *db, enum err e)
{
    if (e) hot_drop_kind(db, HOT_CHAIN);
    return e;
}

enum err audit_add_all(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                       const struct audit_entry *entries, size_t count)
{
    if (!count) return OK;
    const struct sealer sealer = sealer_make(key);
    struct head head;
    bool sound = false;
    enum err e = chain_end(db, &sealer, thread, &head, &sound);
    if (e) return e;
    if (!head.present || head.closed) return ERR_NOT_FOUND;
    for (size_t i = 0; !e && i < count; i++) {
        struct row row = row_of(&entries[i], thread);
        e = append(db, &sealer, &row, &head);
    }
    if (!e) e = chain_save(db, &sealer, thread, &head, sound, entries[0].at);
    return added(db, e);
}

enum err audit_add(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                   const struct audit_entry *entry)
{
    return audit_add_all(db, key, thread, entry, 1);
}

enum err audit_close(struct db *db, const unsigned char key[static HASH_BYTES], int64_t thread,
                     str who, str via, msec now)
{
    const struct audit_entry entry = {.action = AUDIT_CLOSED, .who = who, .via = via, .at = now};
    const struct sealer sealer = sealer_make(key);
    struct head head;
    bool sound = false;
    enum err e = chain_end(db, &sealer, thread, &head, &sound);
    if (e || head.closed || !head.count) return e;
    struct row row = row_of(&entry, thread);
    struct seal before = head.last;
    row.total = head.count;
    row.last = seal_str(&before);
    head.closed = true;
    e = append(db, &sealer, &row, &head);
    if (!e) e = chain_save(db, &sealer, thread, &head, sound, now);
    if (!e) e = server_tell(db, &sealer, AUDIT_CHAIN_CLOSED, thread, &head, who, now);
    return added(db, e);
}

enum err audit_note(struct db *db, const unsigned char key[static HASH_BYTES],
                    const struct audit_entry *entry)
{
    const struct sealer sealer = sealer_make(key);
    struct row row = row_of(entry, SERVER_CHAIN);
    return added(db, server_append(db, &sealer, &row));
}

static enum err next_unknown(struct db *db, int64_t *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT min(chain) FROM audit_chains"
                                    " INDEXED BY audit_chains_unknown WHERE known=0");
    int64_t thread = stmt_step(s) ? stmt_i64(s, 0) : 0; /* NULL reads as 0 */
    enum err e = stmt_end(s);
    if (!e) *ret_thread = thread;
    return e;
}

enum err audit_take_over(struct db *db, const unsigned char key[static HASH_BYTES], size_t limit,
                         msec now, bool *ret_end)
{
    const struct sealer sealer = sealer_make(key);
    for (size_t i = 0; i < limit; i++) {
        int64_t thread = 0;
        struct head head;
        enum err e = next_unknown(db, &thread);
        if (e) return e;
        if (!thread) {
            *ret_end = true;
            return OK;
        }
        e = head_read(db, &sealer, thread, &head);
        if (!e) e = server_tell(db, &sealer, AUDIT_CHAIN_OPENED, thread, &head, STR_EMPTY, now);
        head.known = true;
        if (!e && head.fit == FITS)
            e = seal_head(&sealer, thread, head.count, seal_str(&head.last), true, &head.seal);
        if (!e) e = head_write(db, thread, &head);
        if (e) return added(db, e);
    }
    *ret_end = false;
    return OK;
}

enum err audit_refused_before(struct db *db, str interaction_id, str who, bool *ret_yes)
{
    struct stmt *s = db_prepare(db, "SELECT 1 FROM audit INDEXED BY audit_strangers"
                                    " WHERE interaction_id=?1 AND who=?2 AND why='not_visible'"
                                    " LIMIT 1");
    stmt_bind_str(s, 1, interaction_id);
    stmt_bind_str(s, 2, who);
    bool yes = stmt_step(s);
    enum err e = stmt_end(s);
    if (!e) *ret_yes = yes;
    return e;
}

/* ---- checking ---- */

/* "chain chn_... (ann/t1)", as it may be printed: it goes to a terminal, from a file that somebody
 * changed. */
static enum err chain_says(struct db *db, int64_t thread, char *out, size_t room)
{
    struct stmt *s =
        db_prepare(db, "SELECT name, owner, thread_id FROM audit_chains WHERE chain=?1");
    stmt_bind_i64(s, 1, thread);
    snprintf(out, room, thread ? "chain %lld" : "chain server", (long long)thread);
    if (stmt_step(s)) {
        str name = stmt_str(s, 0), owner = stmt_str(s, 1), id = stmt_str(s, 2);
        snprintf(out, room, owner.len ? "chain %.*s (%.*s/%.*s)" : "chain %.*s", STR_ARG(name),
                 STR_ARG(owner), STR_ARG(id));
    }
    enum err e = stmt_end(s);
    bool text = utf8_valid(str_c(out));
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f || (!text && (unsigned char)*c > '~')) *c = '?';
    return e;
}

/* "chain chn_... (ann/t1), entry 3: ..." */
static enum err broken(struct db *db, int64_t thread, int64_t n, struct fault *reterr,
                       const char *why)
{
    char name[240];
    enum err e = chain_says(db, thread, name, sizeof name);
    if (e) return fault(reterr, e, "the audit trail cannot be read: %s", db_message(db));
    return fault(reterr, ERR_DAMAGED, "%s, entry %lld: %s", name, (long long)n, why);
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
        .of = stmt_str(s, 10),
        .of_thread = stmt_i64(s, 11),
        .total = stmt_i64(s, 12),
        .last = stmt_str(s, 13),
    };
}

/* What is wrong with the entry behind the place; NULL: nothing, and the place moves to it. */
static const char *entry_wrong(const struct sealer *sealer, const struct row *row, str stored,
                               struct audit_place *place)
{
    struct seal made;
    str before = {(const char *)place->seal, sizeof place->seal};
    if (row->n != place->n + 1) return "it is missing";
    if (seal_entry(sealer, row, before, &made)) return "it is longer than any of ours";
    enum fit fit = seal_fit(stored, &made);
    if (fit == OTHER_KEY) return "it was sealed with another secret, or its seal was changed";
    if (fit == NO_FIT) return "its seal does not fit: it was changed, or the one before it was";
    if (place->closed) return "it stands behind the last one";
    place->n = row->n;
    place->closed = row->action == AUDIT_CLOSED;
    memcpy(place->seal, made.bytes, sizeof place->seal);
    return NULL;
}

/* A chain that the chain `server` knows. Missing: with all its rows, or the end of a closed one. */
static enum err check_known(struct db *db, const struct sealer *sealer, int64_t thread, str name,
                            const struct row *row, struct fault *reterr)
{
    struct head head;
    char says[CHAIN_NAME_BYTES];
    bool closing = row->action == AUDIT_CHAIN_CLOSED;
    snprintf(says, sizeof says, "%.*s", STR_ARG(name)); /* sealed: one of ours */
    enum err e = head_read(db, sealer, thread, &head);
    if (e) return fault(reterr, e, "the audit trail cannot be read: %s", db_message(db));
    if (!head.there || !head.end || !str_eq(str_c(head.name), name))
        return fault(reterr, ERR_DAMAGED, "chain %s: it is missing", says);
    if (closing && (head.count != row->total || !str_eq(seal_str(&head.last), row->last)))
        return fault(reterr, ERR_DAMAGED,
                     "chain %s: it was closed with %lld entries, and is not so"
                     " any more",
                     says, (long long)row->total);
    return OK;
}

/* Entries of the place's thread; *ret_end: there are no more. */
static enum err check_entries(struct db *db, const struct sealer *sealer, struct audit_place *place,
                              size_t *left, struct audit_tally *tally, bool *ret_end,
                              struct fault *reterr)
{
    struct stmt *s = db_prepare(db, "SELECT n, action, at, interaction_id, call_id, who, via, why,"
                                    " hash, seal, of, of_chain, total, last FROM audit"
                                    " WHERE chain=?1 AND n>?2 ORDER BY n");
    stmt_bind_i64(s, 1, place->thread);
    stmt_bind_i64(s, 2, place->n);
    const char *wrong = NULL;
    bool end = false;
    enum err known = OK;
    while (!wrong && !known && *left && !end) {
        struct row row;
        end = !stmt_step(s);
        if (end) break;
        row_read(s, place->thread, &row);
        wrong = entry_wrong(sealer, &row, stmt_str(s, 9), place);
        --*left;
        if (!wrong && place->thread != SERVER_CHAIN) tally->entries++;
        if (!wrong && place->thread == SERVER_CHAIN && row.of.len)
            known = check_known(db, sealer, row.of_thread, row.of, &row, reterr);
    }
    enum err e = stmt_end(s);
    if (known) return known;
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

/* Nobody is asked anything without an entry about it: a thread with interactions has a chain. And
 * without the chain `server` there is no chain that it would know. */
static enum err check_all_there(struct db *db, bool server, struct fault *reterr)
{
    struct stmt *known = db_prepare(db, "SELECT 1 FROM audit_chains WHERE known<>0 LIMIT 1");
    bool missed = !server && stmt_step(known);
    enum err e = stmt_end(known);
    if (e) return unreadable(db, e, reterr);
    struct stmt *asked =
        db_prepare(db, "SELECT thread FROM interactions INDEXED BY interactions_by_thread"
                       " WHERE NOT EXISTS (SELECT 1 FROM audit_chains WHERE chain=thread) LIMIT 1");
    int64_t thread = stmt_step(asked) ? stmt_i64(asked, 0) : 0;
    e = stmt_end(asked);
    if (e) return unreadable(db, e, reterr);
    if (missed || (thread && !server))
        return fault(reterr, ERR_DAMAGED, "chain server: it is missing");
    return thread ? fault(reterr, ERR_DAMAGED, "chain of thread %lld: it is missing",
                          (long long)thread)
                  : OK;
}

/* A chain that says it is known, and is not: the chain `server` was taken away, and began anew. */
static enum err check_listed(struct db *db, const struct audit_place *place,
                             const struct head *head, struct fault *reterr)
{
    if (place->thread == SERVER_CHAIN || !head->known) return OK;
    struct stmt *s = db_prepare(db, "SELECT 1 FROM audit INDEXED BY audit_of"
                                    " WHERE of<>'' AND of_chain=?1 AND of=?2 AND chain=0"
                                    "  AND action=9");
    stmt_bind_i64(s, 1, place->thread);
    stmt_bind_str(s, 2, str_c(head->name));
    bool listed = stmt_step(s);
    enum err e = stmt_end(s);
    if (e) return unreadable(db, e, reterr);
    return listed
               ? OK
               : broken(db, place->thread, place->n, reterr, "the chain server does not know it");
}

static enum err check_head(struct db *db, const struct sealer *sealer,
                           const struct audit_place *place, struct fault *reterr)
{
    struct head head;
    enum err e = head_read(db, sealer, place->thread, &head);
    if (e) return unreadable(db, e, reterr);
    bool server = head.there || head.end;
    if (place->thread == SERVER_CHAIN) e = check_all_there(db, server, reterr);
    if (e || (place->thread == SERVER_CHAIN && !server)) return e;
    const char *wrong = head_wrong(&head, place);
    return wrong ? broken(db, place->thread, place->n, reterr, wrong)
                 : check_listed(db, place, &head, reterr);
}

/* The next thread that has entries or a head; 0: none. */
static enum err next_thread(struct db *db, int64_t after, int64_t *ret_thread)
{
    struct stmt *s = db_prepare(db, "SELECT min(chain) FROM ("
                                    " SELECT min(chain) AS chain FROM audit WHERE chain>?1"
                                    " UNION ALL"
                                    " SELECT min(chain) FROM audit_chains WHERE chain>?1)");
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
    const struct sealer sealer = sealer_make(key);
    for (size_t left = limit; left;) {
        if (!place->begun) {
            *place = (struct audit_place){.thread = SERVER_CHAIN, .begun = true, .inside = true};
        } else if (!place->inside) {
            int64_t thread = 0;
            enum err e = next_thread(db, place->thread, &thread);
            if (e) return unreadable(db, e, reterr);
            if (!thread) {
                *ret_end = true;
                return OK;
            }
            *place = (struct audit_place){.thread = thread, .begun = true, .inside = true};
        }
        bool end = false;
        enum err e = check_entries(db, &sealer, place, &left, tally, &end, reterr);
        if (!e && end) e = check_head(db, &sealer, place, reterr);
        if (e) return e;
        if (!end) break;
        place->inside = false;
        if (place->thread != SERVER_CHAIN) {
            tally->chains++;
            tally->closed += place->closed;
        }
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
    if (!e && schema >= AUDIT_SCHEMA && schema < AUDIT_CHAINS_SCHEMA)
        return fault(reterr, ERR_CONFIG,
                     "the database is of an older version: `fermata migrate` brings it up to date");
    if (!e && schema >= AUDIT_SCHEMA) e = check_all(db, key, &tally, reterr);
    if (!e) *ret_tally = tally;
    return e;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * fill_words: a data folder with many messages of one person, in Chinese and English.
 *
 *     fill_words FOLDER [MESSAGES [OTHERS]]        1,000,000 and 0 unless given
 *
 * Threads of 100 messages, made with the store's own code. A message has 20 to 220 words (Chinese
 * ones two characters each), every other thread is Chinese, and one message in a hundred is ten
 * times as long. Words come from a list of made-up ones in which a few are frequent, as in a
 * language; the same for every run. `needle-N` stands in one message of every 1,000th thread, and
 * `zebra 斑马` in the oldest thread alone. OTHERS messages belong to another person.
 *
 * Prints one line of JSON: how long it took, how large the database is, and a key of each person.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/utf8.h"
#include "store/db/lock.h"
#include "store/db/migrate.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"
#include "store/table/conversation.h"
#include "store/table/keys.h"

enum {
    COUNT_DEFAULT = 1000 * 1000,
    COUNT_MAX = 100 * 1000 * 1000,
    OF_THREAD = 100,
    BATCH = 5000,
    WORDS = 20 * 1000, /* in each language */
    MARK_EACH = 1000,  /* threads */
    LONG_EACH = 100,   /* messages */
    LONG_TIMES = 10,
};

struct words {
    struct db *db;
    struct arena arena; /* of one message */
    uint64_t seed;
    msec now;
};

static void die(const char *what, enum err e)
{
    fprintf(stderr, "fill_words: %s: %s\n", what, err_title(e));
    exit(1);
}

/* SplitMix64. */
static uint64_t any(uint64_t *seed, uint64_t below)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31)) % below;
}

/* A word by its number: the same letters each time. */
static void put_word(struct buf *out, uint64_t number, bool chinese)
{
    uint64_t seed = number * 2 + chinese;
    char bytes[4];
    if (chinese)
        for (int i = 0; i < 2; i++) {
            size_t len = utf8_write(0x4e00 + (uint32_t)any(&seed, 3000), bytes);
            buf_append(out, (str){bytes, len});
        }
    for (uint64_t n = 2 + any(&seed, 8); !chinese && n; n--) {
        char c = (char)('a' + any(&seed, 26));
        buf_append(out, (str){&c, 1});
    }
}

/* Low numbers are frequent. */
static uint64_t some_word(uint64_t *seed)
{
    double u = (double)(any(seed, 1 << 20) + 1) / (1 << 20);
    return (uint64_t)(WORDS * u * u * u * u);
}

static void put_text(struct words *w, struct buf *out, uint64_t n, bool chinese)
{
    uint64_t count = 20 + any(&w->seed, 200);
    if (any(&w->seed, LONG_EACH) == 0) count *= LONG_TIMES;
    for (uint64_t i = 0; i < count; i++) {
        put_word(out, some_word(&w->seed), chinese);
        if (i % 12 == 11)
            buf_append(out, chinese ? STR("，") : STR(", "));
        else if (!chinese)
            buf_append(out, STR(" "));
    }
    uint64_t thread = n / OF_THREAD;
    if (thread % MARK_EACH == 0 && n % OF_THREAD == OF_THREAD / 2)
        buf_printf(out, " needle-%" PRIu64, thread);
    if (n == 0) buf_append(out, STR(" Zebra 斑马"));
}

static enum err add_message(struct words *w, int64_t thread, uint64_t n, bool chinese)
{
    struct buf plain, content;
    struct json_writer json;
    buf_init(&plain, 1024 * 1024);
    buf_init(&content, 2 * 1024 * 1024);
    put_text(w, &plain, n, chinese);
    json_write_begin(&json, &content);
    json_string(&json, buf_str(&plain));
    struct message message = {
        .seq = (int64_t)(n % OF_THREAD) + 1,
        .id = arena_printf(&w->arena, "msg_%016" PRIx64, n),
        .role = n % 2 ? STR("assistant") : STR("user"),
        .run_id = arena_printf(&w->arena, "run_%016" PRIx64, n / 2),
        .content = buf_str(&content),
        .metadata = arena_printf(
            &w->arena, "{\"run_id\":\"run_%016" PRIx64 "\",\"task_id\":\"task_%016" PRIx64 "\"}",
            n / 2, n / 2),
        .usage = n % 2 ? STR("{\"inputTokens\":1000,\"outputTokens\":200}") : STR_EMPTY,
        .plain = buf_str(&plain),
        .created = w->now + (msec)n,
    };
    enum err e = message_add(w->db, thread, &message);
    buf_done(&plain);
    buf_done(&content);
    return e;
}

static void add_all(struct words *w, const char *owner, uint64_t count)
{
    struct thread thread = {0};
    enum err e = OK;
    bool unknown;
    for (uint64_t n = 0; !e && n < count; n++) {
        bool chinese = n / OF_THREAD % 2;
        if (n % BATCH == 0) e = db_begin(w->db);
        if (!e && n % OF_THREAD == 0) {
            thread = (struct thread){.owner = str_c(owner),
                                     .thread_id =
                                         arena_printf(&w->arena, "thread-%" PRIu64, n / OF_THREAD),
                                     .title = chinese ? STR("一个对话") : STR("A conversation"),
                                     .agent = STR("assistant"),
                                     .last_seq = OF_THREAD,
                                     .created = w->now + (msec)n,
                                     .updated = w->now + (msec)n};
            e = thread_add(w->db, &thread);
        }
        if (!e) e = add_message(w, thread.id, n, chinese);
        arena_reset(&w->arena);
        bool last = n % BATCH == BATCH - 1 || n + 1 == count;
        if (!e && last) e = db_commit(w->db, &unknown);
        if (!e && last) e = db_checkpoint(w->db, true);
    }
    if (e) die(db_message(w->db), e);
}

/* Prints it: nothing else knows it. */
static void add_key(struct words *w, const char *user)
{
    unsigned char random[KEY_RANDOM_BYTES];
    char text[KEY_TEXT_BYTES];
    bool unknown;
    crypto_random(random, sizeof random);
    key_make(random, text);
    struct key key = {.user = str_c(user), .name = STR("bench"), .roles = ROLE_USER};
    key.created = w->now;
    key_hash(str_c(text), key.hash);
    enum err e = key_parse(str_c(text), &key.id);
    if (!e) e = db_begin(w->db);
    if (!e) e = keys_add(w->db, &key);
    if (!e) e = db_commit(w->db, &unknown);
    if (e) die("a key", e);
    printf("\"%s\":\"%s\",", user, text);
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;
    if (str_to_u64(str_c(text), &value) || value > COUNT_MAX) {
        fprintf(stderr, "fill_words: not a number up to %d: %s\n", COUNT_MAX, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fputs("usage: fill_words FOLDER [MESSAGES [OTHERS]]\n", stderr);
        return 2;
    }
    uint64_t count = argc > 2 ? number(argv[2]) : COUNT_DEFAULT;
    uint64_t others = argc > 3 ? number(argv[3]) : 0;
    struct words w = {.seed = 1, .now = clock_wall(&clock_system)};
    AUTO(lock_freep) struct lock *lock = NULL;
    struct fault why = {0};
    char path[PATH_MAX];
    arena_init(&w.arena);
    if (lock_take(argv[1], "fill", &lock, &why)) die(argv[1], ERR_CONFIG);
    snprintf(path, sizeof path, "%s/" STORE_DATABASE_NAME, argv[1]);
    enum err e = db_open(path, DB_WRITER, &w.db, &why);
    if (!e) e = migrate(w.db, &why);
    if (!e) e = db_script(w.db, "PRAGMA synchronous=0; PRAGMA cache_size=-400000");
    if (e) die(path, e);

    msec start = clock_steady(&clock_system);
    add_all(&w, "ann", count);
    add_all(&w, "bob", others);
    printf("{\"messages\":%" PRIu64 ",\"others\":%" PRIu64 ",", count, others);
    add_key(&w, "ann");
    add_key(&w, "bob");
    db_close(w.db);
    sync(); /* what follows should not be measured against our own writing */
    struct stat file = {0};
    if (stat(path, &file)) die(path, ERR_IO);
    printf("\"seconds\":%.1f,\"bytes\":%lld}\n",
           (double)(clock_steady(&clock_system) - start) / 1000, (long long)file.st_size);
    arena_done(&w.arena);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the store: a temporary folder, a loop with a watchdog, a store, and a job that puts
 * two rows and remembers what became of it.
 */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "base/arena.h"
#include "store/db/sqlite.h"
#include "store/db/store.h"

struct loop;
struct timer;

enum { FOLDER_BYTES = 64 };

/* A new folder (0700) in the system's temporary folder; and away with it and all in it. */
void folder_make(char out[static FOLDER_BYTES]);
void folder_remove(const char *folder);

/* "<folder>/<name>" in a static buffer. */
const char *path_in(const char *folder, const char *name);

/* For code that runs inside jobs: a migrated database, without a store around it. */
struct db_fixture {
    char folder[FOLDER_BYTES];
    struct db *db;
    struct arena arena;
};
int db_fixture_setup(void **state);
int db_fixture_teardown(void **state);
struct CMUnitTest;
/* A group of such tests, twice: with rows read from the store each time, and with rows kept in memory
 * (store/db/hot.h), which are compared with the store's at each use. */
int db_fixture_group(const char *name, const struct CMUnitTest *tests, size_t count);
/* A change that is nobody's: what is kept of it is forgotten, as if another process had made it. */
enum err by_hand(struct db *db, const char *sql) MUST_USE;
#define WITH_DB(test) cmocka_unit_test_setup_teardown(test, db_fixture_setup, db_fixture_teardown)

struct fixture {
    char folder[FOLDER_BYTES];
    struct loop *loop;
    struct timer *watchdog;
    struct store *store;
    size_t waiting; /* jobs given and not done */
    int done_count;
};

/* A job: adds the settings ("a", number) and ("b", number) with a value of `bytes` letters. */
struct put {
    struct job job;
    struct fixture *f;
    int number;
    size_t bytes;
    enum err fail;        /* run() does its work and then returns this */
    bool break_statement; /* run() also violates a constraint and returns that error */
    int runs;             /* how often run() was called */
    int done_order;       /* 1, 2, ... in the order of done() */
    enum err result;
    int ack_fd; /* done() with OK writes the number here, unless 0 */
};

void fixture_init(struct fixture *f);  /* folder and open store */
void fixture_open(struct fixture *f);  /* loop and store, on f->folder */
void fixture_close(struct fixture *f); /* loop and store; the folder stays */
void fixture_done(struct fixture *f);  /* everything */

struct put put_make(struct fixture *f, int number);
void put_send(struct put *put);       /* store_write */
void fixture_wait(struct fixture *f); /* run the loop until nothing is waiting */

/* Run the loop until what was posted to it so far has run. */
void loop_settle(struct loop *loop);

/* How many of the two rows of a put are in the database. */
int put_rows(struct db *db, int number);

enum err db_number(struct stmt *s, int64_t *ret_number) MUST_USE; /* first column of first row */

/* PRAGMA integrity_check. */
bool db_sound(struct db *db);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/lock.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "store/fixture.h"

static void creates_the_folder(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    char data[FOLDER_BYTES + 8];
    snprintf(data, sizeof data, "%s/data", folder);
    mode_t mask = umask(0);
    struct lock *lock = NULL;
    assert_int_equal(lock_take(data, &lock, NULL), OK);
    umask(mask);

    struct stat st;
    assert_int_equal(stat(data, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path_in(data, "fermata.lock"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    lock_free(lock);
    folder_remove(folder);
}

static void missing_parent(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    struct lock *lock = NULL;
    struct fault fault;
    assert_int_equal(lock_take(path_in(folder, "no/data"), &lock, &fault), ERR_IO);
    assert_non_null(strstr(fault.text, "no/data cannot be created"));
    assert_null(lock);
    folder_remove(folder);
}

static void folder_modes(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        enum err expected;
    } rows[] = {
        {0700, OK},         {0750, ERR_CONFIG}, {0705, ERR_CONFIG}, {0770, ERR_CONFIG},
        {0777, ERR_CONFIG}, {0701, ERR_CONFIG}, {01700, OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char folder[FOLDER_BYTES];
        folder_make(folder);
        assert_int_equal(chmod(folder, rows[i].mode), 0);
        struct lock *lock = NULL;
        struct fault fault = {0};
        assert_int_equal(lock_take(folder, &lock, &fault), rows[i].expected);
        if (rows[i].expected) {
            char command[FOLDER_BYTES + 32];
            snprintf(command, sizeof command, "chmod 700 '%s'", folder);
            assert_non_null(strstr(fault.text, command));
        }
        lock_free(lock);
        folder_remove(folder);
    }
}

static void other_owner(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    if (chown(folder, 12345, (gid_t)-1)) { /* only root may give it away */
        folder_remove(folder);
        skip();
    }
    struct lock *lock = NULL;
    struct fault fault;
    assert_int_equal(lock_take(folder, &lock, &fault), ERR_CONFIG);
    assert_non_null(strstr(fault.text, "belongs to user 12345"));
    folder_remove(folder);
}

static void not_a_folder(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    FILE *file = fopen(path_in(folder, "file"), "w");
    assert_non_null(file);
    fclose(file);
    struct lock *lock = NULL;
    assert_int_equal(lock_take(path_in(folder, "file"), &lock, NULL), ERR_CONFIG);
    folder_remove(folder);
}

static void link_for_lock_file(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    assert_int_equal(symlink("elsewhere", path_in(folder, "fermata.lock")), 0);
    struct lock *lock = NULL;
    assert_int_equal(lock_take(folder, &lock, NULL), ERR_IO);
    folder_remove(folder);
}

/* A child holds the lock; we are told its number; when it is killed the lock is free. */
static void two_processes(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lock *lock = NULL;
        char answer = lock_take(folder, &lock, NULL) ? 'n' : 'y';
        if (write(ready[1], &answer, 1) != 1) _exit(1);
        for (;;) pause();
    }
    char answer = 0;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');

    struct lock *lock = NULL;
    struct fault fault;
    assert_int_equal(lock_take(folder, &lock, &fault), ERR_LOCKED);
    char who[32];
    snprintf(who, sizeof who, "in use by process %d:", (int)child);
    assert_non_null(strstr(fault.text, who));
    assert_non_null(strstr(fault.text, folder));
    assert_null(lock);

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(lock_take(folder, &lock, NULL), OK);
    lock_free(lock);
    close(ready[0]);
    close(ready[1]);
    folder_remove(folder);
}

int test_lock(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_the_folder), cmocka_unit_test(missing_parent),
        cmocka_unit_test(folder_modes),       cmocka_unit_test(other_owner),
        cmocka_unit_test(not_a_folder),       cmocka_unit_test(link_for_lock_file),
        cmocka_unit_test(two_processes),
    };
    return cmocka_run_group_tests_name("store/lock", tests, NULL, NULL);
}

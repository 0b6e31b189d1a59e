/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/lock.h"

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
    assert_int_equal(lock_take(data, "test", &lock, NULL), OK);
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
    assert_int_equal(lock_take(path_in(folder, "no/data"), "test", &lock, &fault), ERR_IO);
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
        assert_int_equal(lock_take(folder, "test", &lock, &fault), rows[i].expected);
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
    assert_int_equal(lock_take(folder, "test", &lock, &fault), ERR_CONFIG);
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
    assert_int_equal(lock_take(path_in(folder, "file"), "test", &lock, NULL), ERR_CONFIG);
    folder_remove(folder);
}

static void link_for_lock_file(void **state)
{
    (void)state;
    char folder[FOLDER_BYTES];
    folder_make(folder);
    assert_int_equal(symlink("elsewhere", path_in(folder, "fermata.lock")), 0);
    struct lock *lock = NULL;
    assert_int_equal(lock_take(folder, "test", &lock, NULL), ERR_IO);
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
        char answer = lock_take(folder, "test", &lock, NULL) ? 'n' : 'y';
        if (write(ready[1], &answer, 1) != 1) _exit(1);
        for (;;) pause();
    }
    char answer = 0;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');

    struct lock *lock = NULL;
    struct fault fault;
    assert_int_equal(lock_take(folder, "test", &lock, &fault), ERR_LOCKED);
    char who[32];
    snprintf(who, sizeof who, "in use by process %d (fermata test):", (int)child);
    assert_non_null(strstr(fault.text, who));
    assert_non_null(strstr(fault.text, folder));
    assert_null(lock);

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(lock_take(folder, "test", &lock, NULL), OK);
    lock_free(lock);
    close(ready[0]);
    close(ready[1]);
    folder_remove(folder);
}

static char waited_for[64];

static void on_wait(const char *command, uint64_t pid)
{
    snprintf(waited_for, sizeof waited_for, "%s %llu", command, (unsigned long long)pid);
}

/* A child that holds the lock as this command, and lets go of it when a byte comes. */
static pid_t hold_as(const char *folder, const char *command, int *ret_let_go)
{
    int ready[2], let_go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(let_go), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    char byte = 'y';
    if (child == 0) {
        struct lock *lock = NULL;
        if (lock_take(folder, command, &lock, NULL)) byte = 'n';
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        if (read(let_go[0], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    close(let_go[0]);
    *ret_let_go = let_go[1];
    return child;
}

static void a_server_waits_for_commands(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        enum err expected;
    } rows[] = {{"backup", OK}, {"command", OK}, {"serve", ERR_LOCKED}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char folder[FOLDER_BYTES], expected[64] = "";
        struct lock *lock = NULL;
        struct fault fault = {0};
        int let_go = -1;
        folder_make(folder);
        waited_for[0] = '\0';
        pid_t child = hold_as(folder, rows[i].command, &let_go);
        bool waits = rows[i].expected == OK;
        /* Without time it gives up, and says whose it is. */
        assert_int_equal(lock_take_for_server(folder, 0, on_wait, &lock, &fault), ERR_LOCKED);
        assert_non_null(strstr(fault.text, rows[i].command));
        if (waits) {
            pid_t helper = fork();
            assert_true(helper >= 0);
            if (helper == 0) { /* lets it go while we wait */
                usleep(300 * 1000);
                _exit(write(let_go, "x", 1) != 1);
            }
            assert_int_equal(lock_take_for_server(folder, 20 * 1000, on_wait, &lock, &fault), OK);
            assert_int_equal(waitpid(helper, NULL, 0), helper);
            snprintf(expected, sizeof expected, "%s %d", rows[i].command, (int)child);
        } else {
            assert_int_equal(lock_take_for_server(folder, 20 * 1000, on_wait, &lock, &fault),
                             ERR_LOCKED);
            assert_int_equal(write(let_go, "x", 1), 1);
        }
        assert_string_equal(waited_for, expected);
        assert_int_equal(waitpid(child, NULL, 0), child);
        lock_free(lock);
        close(let_go);
        folder_remove(folder);
    }
}

int test_lock(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_the_folder), cmocka_unit_test(missing_parent),
        cmocka_unit_test(folder_modes),       cmocka_unit_test(other_owner),
        cmocka_unit_test(not_a_folder),       cmocka_unit_test(link_for_lock_file),
        cmocka_unit_test(two_processes),      cmocka_unit_test(a_server_waits_for_commands),
    };
    return cmocka_run_group_tests_name("store/lock", tests, NULL, NULL);
}

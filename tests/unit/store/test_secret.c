/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db/secret.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "store/fixture.h"

static char folder[FOLDER_BYTES];

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void file_write(const char *path, size_t size, mode_t mode)
{
    static const char bytes[SECRET_FILE_BYTES_MAX + 1] = "something that nobody can guess";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static struct secret *opened(const char *file)
{
    struct secret *secret = NULL;
    struct fault fault;
    enum err e = secret_open(folder, file, &secret, &fault);
    if (e) fail_msg("secret_open: %s", fault.text);
    return secret;
}

static void made_once(void **state)
{
    (void)state;
    char id[SECRET_ID_BYTES], mac[SECRET_MAC_BYTES];
    struct secret *secret = opened(NULL);
    memcpy(id, secret_id(secret), sizeof id);
    secret_mac(secret, SECRET_URL, STR("x"), mac);
    secret_free(secret);

    struct stat st;
    assert_int_equal(stat(path_in(folder, "secret.key"), &st), 0);
    assert_int_equal(st.st_size, 32);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_not_equal(access(path_in(folder, "secret.key.new"), F_OK), 0);

    secret = opened("");
    assert_string_equal(secret_id(secret), id);
    assert_true(secret_verify(secret, SECRET_URL, STR("x"), str_c(mac)));
    secret_free(secret);
}

/* What a start leaves behind that was killed while it made the key. */
static void leftovers(void **state)
{
    (void)state;
    file_write(path_in(folder, "secret.key.new"), 7, 0600);
    secret_free(opened(NULL));
    assert_int_not_equal(access(path_in(folder, "secret.key.new"), F_OK), 0);

    /* Killed between link and unlink: both names, one file. */
    char new_name[FOLDER_BYTES + 64];
    snprintf(new_name, sizeof new_name, "%s", path_in(folder, "secret.key.new"));
    assert_int_equal(link(path_in(folder, "secret.key"), new_name), 0);
    secret_free(opened(NULL));
    assert_int_not_equal(access(new_name, F_OK), 0);
    struct stat st;
    assert_int_equal(stat(path_in(folder, "secret.key"), &st), 0);
    assert_int_equal(st.st_size, 32);
}

/* Looking finds the same secret, makes none, and takes nothing away from who is making one. */
static void looked_at(void **state)
{
    (void)state;
    struct secret *secret = NULL, *looked = NULL;
    struct fault fault = {0};
    file_write(path_in(folder, "secret.key.new"), 7, 0600);
    assert_int_equal(secret_look(folder, NULL, &looked, &fault), ERR_CONFIG);
    assert_null(looked);
    assert_int_not_equal(access(path_in(folder, "secret.key"), F_OK), 0);
    assert_int_equal(access(path_in(folder, "secret.key.new"), F_OK), 0);
    secret = opened(NULL);
    assert_int_equal(secret_look(folder, NULL, &looked, &fault), OK);
    assert_string_equal(secret_id(looked), secret_id(secret));
    secret_free(looked);
    secret_free(secret);
    char named[FOLDER_BYTES + 64];
    snprintf(named, sizeof named, "%s", path_in(folder, "named"));
    file_write(named, 40, 0600);
    secret = opened(named);
    assert_int_equal(secret_look(folder, named, &looked, &fault), OK);
    assert_string_equal(secret_id(looked), secret_id(secret));
    secret_free(looked);
    secret_free(secret);
}

static void folder_key_refused(void **state)
{
    static const struct {
        size_t size;
        mode_t mode;
        const char *words;
    } rows[] = {
        {31, 0600, "damaged (31 bytes instead of 32)"},
        {0, 0600, "damaged (0 bytes"},
        {33, 0600, "damaged (33 bytes"},
        {32, 0640, "chmod 600"},
        {32, 0604, "chmod 600"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        file_write(path_in(folder, "secret.key"), rows[i].size, rows[i].mode);
        struct secret *secret = NULL;
        struct fault fault = {0};
        assert_int_equal(secret_open(folder, NULL, &secret, &fault), ERR_CONFIG);
        assert_non_null(strstr(fault.text, rows[i].words));
        assert_null(secret);
    }
    assert_int_equal(unlink(path_in(folder, "secret.key")), 0);
    assert_int_equal(symlink("/dev/zero", path_in(folder, "secret.key")), 0);
    struct secret *secret = NULL;
    assert_int_equal(secret_open(folder, NULL, &secret, NULL), ERR_IO);
}

static void named_file(void **state)
{
    static const struct {
        size_t size;
        mode_t mode;
        enum err expected;
    } rows[] = {
        {31, 0600, ERR_CONFIG},
        {32, 0600, OK},
        {32, 0400, OK},
        {48, 0640, ERR_CONFIG},
        {48, 0604, ERR_CONFIG},
        {SECRET_FILE_BYTES_MAX, 0600, OK},
        {SECRET_FILE_BYTES_MAX + 1, 0600, ERR_CONFIG},
    };
    (void)state;
    char path[FOLDER_BYTES + 64];
    snprintf(path, sizeof path, "%s", path_in(folder, "named"));
    for (size_t i = 0; i < COUNT(rows); i++) {
        unlink(path);
        file_write(path, rows[i].size, rows[i].mode);
        struct secret *secret = NULL;
        struct fault fault;
        assert_int_equal(secret_open(folder, path, &secret, &fault), rows[i].expected);
        secret_free(secret);
    }
    struct secret *secret = NULL;
    assert_int_equal(secret_open(folder, path_in(folder, "none"), &secret, NULL), ERR_CONFIG);
    assert_int_not_equal(access(path_in(folder, "secret.key"), F_OK), 0); /* was not needed */
}

static void subkeys_differ(void **state)
{
    (void)state;
    struct secret *secret = opened(NULL);
    unsigned char keys[SECRET_PURPOSE_COUNT][HASH_BYTES];
    for (int i = 0; i < SECRET_PURPOSE_COUNT; i++)
        secret_subkey(secret, (enum secret_purpose)i, keys[i]);
    for (int i = 0; i < SECRET_PURPOSE_COUNT; i++)
        for (int k = 0; k < i; k++) assert_memory_not_equal(keys[i], keys[k], HASH_BYTES);
    secret_free(secret);
}

/* Pinned: signatures out in the world must stay valid over releases. The secret is the 32 bytes
 * "something that nobody can guess\0"; the values were computed apart, with Python's hmac. */
static void pinned(void **state)
{
    (void)state;
    char path[FOLDER_BYTES + 64], mac[SECRET_MAC_BYTES];
    snprintf(path, sizeof path, "%s", path_in(folder, "named"));
    file_write(path, 32, 0600);
    struct secret *secret = opened(path);
    secret_mac(secret, SECRET_URL, STR("/attachments/1"), mac);
    assert_string_equal(mac, "6d376d66.dWxgq4N9e0YFZmSAkLr2ai3JCL3vHsu74YpFYs84Pds");
    secret_free(secret);
}

static void verifying(void **state)
{
    (void)state;
    struct secret *secret = opened(NULL);
    char mac[SECRET_MAC_BYTES];
    secret_mac(secret, SECRET_BINDING, STR("data"), mac);
    assert_int_equal(strlen(mac), SECRET_MAC_BYTES - 1);
    assert_memory_equal(mac, secret_id(secret), 8);
    assert_int_equal(mac[8], '.');

    assert_true(secret_verify(secret, SECRET_BINDING, STR("data"), str_c(mac)));
    assert_false(secret_verify(secret, SECRET_URL, STR("data"), str_c(mac)));
    assert_false(secret_verify(secret, SECRET_BINDING, STR("dat"), str_c(mac)));
    assert_false(secret_verify(secret, SECRET_BINDING, STR("data"), STR_EMPTY));
    for (size_t i = 0; i + 1 < SECRET_MAC_BYTES; i++) {
        assert_false(secret_verify(secret, SECRET_BINDING, STR("data"), (str){mac, i}));
        char kept = mac[i];
        mac[i] = kept == 'A' ? 'B' : 'A';
        assert_false(secret_verify(secret, SECRET_BINDING, STR("data"), str_c(mac)));
        mac[i] = kept;
    }
    secret_free(secret);
}

int test_secret(void)
{
#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(made_once), WITH_FOLDER(leftovers),  WITH_FOLDER(folder_key_refused),
        WITH_FOLDER(looked_at), WITH_FOLDER(named_file), WITH_FOLDER(subkeys_differ),
        WITH_FOLDER(pinned),    WITH_FOLDER(verifying),
    };
    return cmocka_run_group_tests_name("store/secret", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob/blob_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

static struct blob_id id_of(const char *bucket, const char *bytes, const char *whose)
{
    struct blob_id id = {0};
    crypto_sha256(str_c(bytes), id.hash);
    blob_path(id.hash, str_c(whose), id.path);
    snprintf(id.bucket, sizeof id.bucket, "%s", bucket);
    return id;
}

static struct blob_stamp stamp_of(uint64_t inode, uint64_t size)
{
    return (struct blob_stamp){.device = 5,
                               .inode = inode,
                               .size = size,
                               .modified = {.tv_sec = 100, .tv_nsec = 7},
                               .changed = {.tv_sec = 101, .tv_nsec = 8}};
}

static bool has(struct blob_cache *cache, const struct blob_id *id, const struct blob_stamp *stamp,
                str expected)
{
    char *bytes = blob_cache_bytes(cache, id, stamp);
    if (!bytes) return false;
    assert_int_equal(memcmp(bytes, expected.p, expected.len), 0);
    free(bytes);
    return true;
}

/* Every part of a stamp counts. */
static void stamps(void **state)
{
    (void)state;
    struct blob_cache *cache = blob_cache_new();
    struct blob_id id = id_of("payloads", "abc", "call_1");
    const struct blob_stamp stamp = stamp_of(9, 3);
    struct blob_stamp others[8];
    for (size_t i = 0; i < COUNT(others); i++) others[i] = stamp;
    others[0].device++;
    others[1].inode++;
    others[2].size++;
    others[3].modified.tv_sec++;
    others[4].modified.tv_nsec++;
    others[5].changed.tv_sec--;
    others[6].changed.tv_nsec--;
    others[7].inode += BLOB_WHOLE_MAX; /* the same slot */

    assert_false(blob_cache_whole(cache, &id, &stamp));
    assert_false(has(cache, &id, &stamp, STR("abc")));
    blob_cache_set_whole(cache, &id, &stamp);
    blob_cache_set_bytes(cache, &id, &stamp, STR("abc"));
    assert_true(blob_cache_whole(cache, &id, &stamp));
    assert_true(has(cache, &id, &stamp, STR("abc")));
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_false(blob_cache_whole(cache, &id, &others[i]));
        assert_false(has(cache, &id, &others[i], STR("abc")));
    }
    struct blob_id other = id_of("payloads", "abc", "call_2");
    assert_false(has(cache, &other, &stamp, STR("abc")));
    other = id_of("attachments", "abc", "call_1");
    assert_false(has(cache, &other, &stamp, STR("abc")));
    other = id_of("payloads", "abd", "call_1");
    assert_false(blob_cache_whole(cache, &other, &stamp));

    blob_cache_set_bytes(cache, &id, &others[1], STR("abc")); /* the file is another one now */
    assert_false(has(cache, &id, &stamp, STR("abc")));
    assert_true(has(cache, &id, &others[1], STR("abc")));
    blob_cache_drop(cache, &id);
    blob_cache_drop(cache, &id);
    assert_false(has(cache, &id, &others[1], STR("abc")));
    blob_cache_free(cache);
    blob_cache_free(NULL);
}

static void not_kept(void **state)
{
    (void)state;
    struct blob_cache *cache = blob_cache_new();
    struct blob_id id = id_of("payloads", "abc", "call_1");
    struct blob_stamp young = stamp_of(9, 3), large = stamp_of(9, BLOB_CACHED_BYTES_MAX + 1);
    young.young = true;
    blob_cache_set_whole(cache, &id, &young);
    blob_cache_set_bytes(cache, &id, &young, STR("abc"));
    assert_false(blob_cache_whole(cache, &id, &young));
    assert_false(has(cache, &id, &young, STR("abc")));

    static char bytes[BLOB_CACHED_BYTES_MAX + 1];
    blob_cache_set_bytes(cache, &id, &large, (str){bytes, sizeof bytes});
    assert_false(has(cache, &id, &large, STR_EMPTY));
    large.size--;
    blob_cache_set_bytes(cache, &id, &large, (str){bytes, sizeof bytes - 1});
    assert_true(has(cache, &id, &large, (str){bytes, sizeof bytes - 1}));
    blob_cache_free(cache);
}

/* The least recently used go, by bytes and by number. */
static void bounds(void **state)
{
    (void)state;
    struct blob_cache *cache = blob_cache_new();
    static char bytes[BLOB_CACHED_BYTES_MAX];
    enum { FIT = BLOB_CACHE_BYTES_MAX / BLOB_CACHED_BYTES_MAX - 1 }; /* their heads need room */
    struct blob_stamp stamp = stamp_of(9, sizeof bytes);
    char whose[20];
    for (int i = 0; i < FIT + 2; i++) {
        snprintf(whose, sizeof whose, "call_%d", i);
        struct blob_id id = id_of("payloads", "x", whose), first = id_of("payloads", "x", "call_0");
        blob_cache_set_bytes(cache, &id, &stamp, (str){bytes, sizeof bytes});
        assert_true(has(cache, &first, &stamp, (str){bytes, sizeof bytes})); /* used all the time */
    }
    for (int i = 0; i < FIT + 2; i++) {
        snprintf(whose, sizeof whose, "call_%d", i);
        struct blob_id id = id_of("payloads", "x", whose);
        assert_int_equal(has(cache, &id, &stamp, (str){bytes, sizeof bytes}), i == 0 || i > 2);
    }
    stamp.size = 1;
    for (int i = 0; i < BLOB_CACHE_OBJECTS_MAX + 10; i++) {
        snprintf(whose, sizeof whose, "small_%d", i);
        struct blob_id id = id_of("payloads", "x", whose);
        blob_cache_set_bytes(cache, &id, &stamp, STR("x"));
    }
    for (int i = 0; i < BLOB_CACHE_OBJECTS_MAX + 10; i++) {
        snprintf(whose, sizeof whose, "small_%d", i);
        struct blob_id id = id_of("payloads", "x", whose);
        assert_int_equal(has(cache, &id, &stamp, STR("x")), i >= 10);
    }
    blob_cache_free(cache);
}

int test_blob_cache(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stamps),
        cmocka_unit_test(not_kept),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests_name("store/blob_cache", tests, NULL, NULL);
}

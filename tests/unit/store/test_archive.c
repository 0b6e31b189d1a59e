/* SPDX-License-Identifier: Apache-2.0
 *
 * A small archive is written, read in every split, cut everywhere, and changed in every bit.
 */
#include "store/archive.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"

enum { ARCHIVE_BYTES_MAX = 64 * 1024 };

static const struct {
    const char *name;
    size_t size;
} parts[] = {{"fermata.db", 700}, {"secret.key", 32}, {"empty", 0}, {"block", 512}};

static char filler(size_t part, size_t at)
{
    return (char)(part * 31 + at * 7);
}

static enum err append(void *arg, str bytes)
{
    struct buf *out = arg;
    buf_append(out, bytes);
    return out->full ? ERR_STORAGE_FULL : OK;
}

static void write_parts(struct archive_writer *writer, size_t piece)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        char bytes[1024];
        for (size_t at = 0; at < parts[i].size; at++) bytes[at] = filler(i, at);
        assert_int_equal(archive_part(writer, str_c(parts[i].name), parts[i].size), OK);
        for (size_t at = 0; at < parts[i].size; at += piece) {
            size_t left = parts[i].size - at;
            str some = {bytes + at, left < piece ? left : piece};
            assert_int_equal(archive_bytes(writer, some), OK);
        }
    }
    assert_int_equal(archive_end(writer), OK);
}

static void make(struct buf *out, size_t piece)
{
    buf_init(out, ARCHIVE_BYTES_MAX);
    struct archive_writer *writer = archive_writer_new(append, out, 1700000000123);
    write_parts(writer, piece);
    archive_writer_free(writer);
}

/* What the reader was handed: "name size bytes" of each part, one behind the other. */
struct seen {
    struct buf text;
    enum err refuse; /* on_part returns it */
};

static enum err on_part(void *arg, str name, uint64_t size, struct fault *reterr)
{
    struct seen *seen = arg;
    buf_printf(&seen->text, "[%.*s %llu]", STR_ARG(name), (unsigned long long)size);
    return seen->refuse ? fault(reterr, seen->refuse, "not this one") : OK;
}

static enum err on_bytes(void *arg, str bytes, struct fault *reterr)
{
    (void)reterr;
    buf_append(&((struct seen *)arg)->text, bytes);
    return OK;
}

static const struct archive_ops ops = {.on_part = on_part, .on_bytes = on_bytes};

static void seen_init(struct seen *seen)
{
    *seen = (struct seen){0};
    buf_init(&seen->text, ARCHIVE_BYTES_MAX);
}

/* Read in two pieces, cut at `at`. */
static enum err read_split(str archive, size_t at, struct seen *seen, struct fault *reterr)
{
    AUTO(archive_reader_freep) struct archive_reader *reader = archive_reader_new(&ops, seen);
    enum err e = archive_feed(reader, (str){archive.p, at}, reterr);
    if (!e) e = archive_feed(reader, str_drop(archive, at), reterr);
    return e ? e : archive_finish(reader, reterr);
}

static enum err read_quietly(str archive, struct fault *reterr)
{
    struct seen seen;
    seen_init(&seen);
    enum err e = read_split(archive, 0, &seen, reterr);
    buf_done(&seen.text);
    return e;
}

static void expect(struct buf *out)
{
    buf_init(out, ARCHIVE_BYTES_MAX);
    for (size_t i = 0; i < COUNT(parts); i++) {
        buf_printf(out, "[%s %zu]", parts[i].name, parts[i].size);
        for (size_t at = 0; at < parts[i].size; at++) buf_char(out, filler(i, at));
    }
}

static void every_split(void **state)
{
    (void)state;
    struct buf archive, expected;
    make(&archive, 1024);
    expect(&expected);
    for (size_t at = 0; at <= archive.len; at++) {
        struct seen seen;
        struct fault why = {0};
        seen_init(&seen);
        enum err e = read_split(buf_str(&archive), at, &seen, &why);
        if (e) fail_msg("split at %zu: %s", at, why.text);
        assert_int_equal(seen.text.len, expected.len);
        assert_memory_equal(seen.text.p, expected.p, expected.len);
        buf_done(&seen.text);
    }
    buf_done(&archive);
    buf_done(&expected);
}

static void pieces_make_no_difference(void **state)
{
    (void)state;
    struct buf whole, bytewise;
    make(&whole, 1024);
    make(&bytewise, 1);
    assert_int_equal(whole.len, bytewise.len);
    assert_memory_equal(whole.p, bytewise.p, whole.len);
    buf_done(&whole);
    buf_done(&bytewise);
}

static void every_truncation(void **state)
{
    (void)state;
    struct buf archive;
    make(&archive, 1024);
    for (size_t len = 0; len < archive.len; len++) {
        struct fault why = {0};
        if (read_quietly((str){archive.p, len}, &why) != ERR_BAD_REQUEST || !why.text[0])
            fail_msg("%zu of %zu bytes were taken", len, archive.len);
    }
    buf_char(&archive, '\0');
    struct fault why = {0};
    assert_int_equal(read_quietly(buf_str(&archive), &why), ERR_BAD_REQUEST);
    buf_done(&archive);
}

static void every_bit(void **state)
{
    (void)state;
    struct buf archive;
    make(&archive, 1024);
    for (size_t bit = 0; bit < archive.len * 8; bit++) {
        struct fault why = {0};
        char mask = (char)(1 << bit % 8);
        archive.p[bit / 8] ^= mask;
        if (read_quietly(buf_str(&archive), &why) != ERR_BAD_REQUEST || !why.text[0])
            fail_msg("bit %zu of byte %zu made no difference", bit % 8, bit / 8);
        archive.p[bit / 8] ^= mask;
    }
    buf_done(&archive);
}

/* Blocks left out, doubled and swapped: headers and hashes are each right, the order is not. */
static void every_block_moved(void **state)
{
    (void)state;
    struct buf archive;
    make(&archive, 1024);
    size_t blocks = archive.len / 512;
    for (size_t i = 0; i < blocks; i++) {
        struct buf changed;
        struct fault why = {0};
        buf_init(&changed, ARCHIVE_BYTES_MAX);
        buf_append(&changed, (str){archive.p, i * 512});
        buf_append(&changed, str_drop(buf_str(&archive), (i + 1) * 512));
        assert_int_equal(read_quietly(buf_str(&changed), &why), ERR_BAD_REQUEST);
        buf_clear(&changed);
        buf_append(&changed, (str){archive.p, (i + 1) * 512});
        buf_append(&changed, str_drop(buf_str(&archive), i * 512));
        assert_int_equal(read_quietly(buf_str(&changed), &why), ERR_BAD_REQUEST);
        buf_done(&changed);
    }
    buf_done(&archive);
}

/* Two archives of the same parts and another time: every header is right by itself. */
static void another_time(void **state)
{
    (void)state;
    struct buf one, two;
    struct fault why = {0};
    make(&one, 1024);
    buf_init(&two, ARCHIVE_BYTES_MAX);
    struct archive_writer *writer = archive_writer_new(append, &two, 1700000001123);
    write_parts(writer, 1024);
    archive_writer_free(writer);
    assert_int_equal(read_quietly(buf_str(&two), &why), OK);
    memcpy(one.p, two.p, 512);
    assert_int_equal(read_quietly(buf_str(&one), &why), ERR_BAD_REQUEST);
    buf_done(&one);
    buf_done(&two);
}

static void names(void **state)
{
    (void)state;
    char longest[ARCHIVE_NAME_BYTES_MAX + 2];
    memset(longest, 'a', sizeof longest);
    static const char *const good[] = {"a", "fermata.db", "A-b_c.9", ARCHIVE_SUMS_NAME};
    static const char *const bad[] = {"",   ".",   "..", ".db", "a/b",
                                      "/a", "a b", "9",  "a\n", "\xc3\xa9"};
    for (size_t i = 0; i < COUNT(good); i++) assert_true(archive_name_valid(str_c(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++) assert_false(archive_name_valid(str_c(bad[i])));
    assert_true(archive_name_valid((str){longest, ARCHIVE_NAME_BYTES_MAX}));
    assert_false(archive_name_valid((str){longest, ARCHIVE_NAME_BYTES_MAX + 1}));
}

static enum err fail_later(void *arg, str bytes)
{
    size_t *left = arg;
    if (bytes.len > *left) return ERR_STORAGE_FULL;
    *left -= bytes.len;
    return OK;
}

static void write_errors_stick(void **state)
{
    (void)state;
    for (size_t room = 0; room < 1024; room += 256) {
        size_t left = room;
        AUTO(archive_writer_freep)
        struct archive_writer *writer = archive_writer_new(fail_later, &left, 0);
        enum err e = archive_part(writer, STR("a"), 4);
        if (!e) e = archive_bytes(writer, STR("four"));
        if (!e) e = archive_end(writer);
        assert_int_equal(e, ERR_STORAGE_FULL);
    }
}

static void callers_refusal_sticks(void **state)
{
    (void)state;
    struct buf archive;
    struct seen seen;
    struct fault why = {0};
    make(&archive, 1024);
    seen_init(&seen);
    seen.refuse = ERR_STORAGE_FULL;
    AUTO(archive_reader_freep) struct archive_reader *reader = archive_reader_new(&ops, &seen);
    assert_int_equal(archive_feed(reader, buf_str(&archive), &why), ERR_STORAGE_FULL);
    assert_string_equal(why.text, "not this one");
    assert_int_equal(archive_feed(reader, STR("x"), &why), ERR_STORAGE_FULL);
    assert_int_equal(archive_finish(reader, &why), ERR_STORAGE_FULL);
    buf_done(&seen.text);
    buf_done(&archive);
}

/* Sizes on both sides of what octal digits hold; only the header is written. */
static void sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        const char *field; /* 12 bytes */
    } rows[] = {
        {0, "00000000000\0"},
        {(uint64_t)1 << 32, "40000000000\0"},
        {((uint64_t)1 << 33) - 1, "77777777777\0"},
        {(uint64_t)1 << 33, "\x80\0\0\0\0\0\0\x02\0\0\0\0"},
        {(uint64_t)ARCHIVE_PART_GIB_MAX << 30, "\x80\0\0\0\0\0\x10\0\0\0\0\0"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf out;
        struct seen seen;
        struct fault why = {0};
        buf_init(&out, ARCHIVE_BYTES_MAX);
        seen_init(&seen);
        struct archive_writer *writer = archive_writer_new(append, &out, 0);
        assert_int_equal(archive_part(writer, STR("a"), rows[i].size), OK);
        archive_writer_free(writer);
        assert_memory_equal(out.p + 124, rows[i].field, 12);
        struct archive_reader *reader = archive_reader_new(&ops, &seen);
        assert_int_equal(archive_feed(reader, buf_str(&out), &why), OK);
        char expected[64];
        snprintf(expected, sizeof expected, "[a %llu]", (unsigned long long)rows[i].size);
        assert_int_equal(seen.text.len, strlen(expected));
        assert_memory_equal(seen.text.p, expected, seen.text.len);
        assert_int_equal(archive_finish(reader, &why), ERR_BAD_REQUEST);
        archive_reader_free(reader);
        buf_done(&seen.text);
        buf_done(&out);
    }
}

static void parts_max(void **state)
{
    (void)state;
    struct buf out;
    struct fault why = {0};
    buf_init(&out, ARCHIVE_BYTES_MAX);
    struct archive_writer *writer = archive_writer_new(append, &out, 0);
    for (int i = 0; i < ARCHIVE_PARTS_MAX - 1; i++)
        assert_int_equal(archive_part(writer, STR("a"), 0), OK);
    struct buf more = {0}; /* the same with one part more, and no room left for the list */
    buf_init(&more, ARCHIVE_BYTES_MAX);
    buf_append(&more, buf_str(&out));
    buf_append(&more, (str){out.p, 512});
    buf_append(&more, (str){out.p, 512});
    assert_int_equal(archive_end(writer), OK);
    assert_int_equal(read_quietly(buf_str(&out), &why), OK);
    assert_int_equal(read_quietly(buf_str(&more), &why), ERR_BAD_REQUEST);
    assert_non_null(strstr(why.text, "parts"));
    archive_writer_free(writer);
    buf_done(&more);
    buf_done(&out);
}

int test_archive(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split),
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_bit),
        cmocka_unit_test(every_block_moved),
        cmocka_unit_test(another_time),
        cmocka_unit_test(names),
        cmocka_unit_test(write_errors_stick),
        cmocka_unit_test(callers_refusal_sticks),
        cmocka_unit_test(sizes),
        cmocka_unit_test(parts_max),
    };
    return cmocka_run_group_tests_name("store/archive", tests, NULL, NULL);
}

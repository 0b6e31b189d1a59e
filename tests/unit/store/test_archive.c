/* SPDX-License-Identifier: Apache-2.0
 *
 * A small archive is written, read in every split, cut everywhere, and changed in every bit.
 */
#include "store/db/archive.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"

enum { ARCHIVE_BYTES_MAX = 64 * 1024 };

#define WORD_10 "0123456789"
#define WORD_20 WORD_10 WORD_10
#define WORD_50 WORD_20 WORD_20 WORD_10

static const struct {
    const char *name;
    size_t size;
} parts[] = {
    {"fermata.db", 700},
    {"blobs/a/3f/3fa9." WORD_50, 40},
    {"blobs/" WORD_50 "/3f/3fa9." WORD_50 WORD_20, 33}, /* too long for one field */
    {"secret.key", 32},
    {"empty", 0},
    {"block", 512},
};

static char filler(size_t part, size_t at)
{
    return (char)(part * 31 + at * 7);
}

struct out {
    struct buf bytes, lines;
};

static void out_init(struct out *out)
{
    buf_init(&out->bytes, ARCHIVE_BYTES_MAX);
    buf_init(&out->lines, ARCHIVE_BYTES_MAX);
}

static void out_done(struct out *out)
{
    buf_done(&out->bytes);
    buf_done(&out->lines);
}

static enum err out_write(void *arg, str bytes)
{
    struct out *out = arg;
    buf_append(&out->bytes, bytes);
    return out->bytes.full ? ERR_STORAGE_FULL : OK;
}

static enum err out_line(void *arg, str line)
{
    struct out *out = arg;
    buf_append(&out->lines, line);
    return out->lines.full ? ERR_STORAGE_FULL : OK;
}

static const struct archive_sink sink = {.write = out_write, .line = out_line};

static void end(struct archive_writer *writer, const struct out *out)
{
    assert_int_equal(archive_list(writer), OK);
    assert_int_equal(archive_bytes(writer, buf_str(&out->lines)), OK);
    assert_int_equal(archive_end(writer), OK);
}

static void write_parts(struct out *out, msec time, size_t piece)
{
    AUTO(archive_writer_freep)
    struct archive_writer *writer = archive_writer_new(&sink, out, time);
    for (size_t i = 0; i < COUNT(parts); i++) {
        char bytes[1024];
        for (size_t at = 0; at < parts[i].size; at++) bytes[at] = filler(i, at);
        assert_int_equal(archive_part(writer, str_c(parts[i].name), parts[i].size), OK);
        for (size_t at = 0; at < parts[i].size; at += piece) {
            size_t left = parts[i].size - at;
            str some = {bytes + at, left < piece ? left : piece};
            assert_int_equal(archive_bytes(writer, some), OK);
        }
        unsigned char hash[HASH_BYTES], wanted[HASH_BYTES];
        archive_hash(writer, hash);
        crypto_sha256((str){bytes, parts[i].size}, wanted);
        assert_memory_equal(hash, wanted, HASH_BYTES);
    }
    end(writer, out);
}

static void make(struct buf *ret_archive, size_t piece)
{
    struct out out;
    out_init(&out);
    write_parts(&out, 1700000000123, piece);
    buf_done(&out.lines);
    *ret_archive = out.bytes;
}

/* What the reader was handed: "name size bytes hash" of each part, one behind the other. */
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

static enum err on_end(void *arg, const unsigned char hash[static HASH_BYTES], struct fault *reterr)
{
    struct seen *seen = arg;
    (void)reterr;
    buf_append(&seen->text, (str){(const char *)hash, HASH_BYTES});
    return OK;
}

static const struct archive_ops ops = {.on_part = on_part, .on_bytes = on_bytes, .on_end = on_end};

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
        size_t from = out->len;
        for (size_t at = 0; at < parts[i].size; at++) buf_char(out, filler(i, at));
        unsigned char hash[HASH_BYTES];
        crypto_sha256((str){out->p + from, parts[i].size}, hash);
        buf_append(out, (str){(const char *)hash, HASH_BYTES});
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
    struct buf one;
    struct out two;
    struct fault why = {0};
    make(&one, 1024);
    out_init(&two);
    write_parts(&two, 1700000001123, 1024);
    assert_int_equal(read_quietly(buf_str(&two.bytes), &why), OK);
    memcpy(one.p, two.bytes.p, 512);
    assert_int_equal(read_quietly(buf_str(&one), &why), ERR_BAD_REQUEST);
    buf_done(&one);
    out_done(&two);
}

/* The part whose bytes were changed is named, unless it lies in a folder: its owner knows better. */
static void damaged_part_is_named(void **state)
{
    (void)state;
    struct buf archive;
    struct fault why = {0};
    make(&archive, 1024);
    archive.p[512 + 7] ^= 1; /* of the first part */
    assert_int_equal(read_quietly(buf_str(&archive), &why), ERR_BAD_REQUEST);
    assert_string_equal(why.text, "the backup is damaged: the hash of fermata.db is wrong");
    buf_done(&archive);
}

static void names(void **state)
{
    (void)state;
    char longest[ARCHIVE_FOLDER_BYTES_MAX + ARCHIVE_NAME_BYTES_MAX + 4];
    memset(longest, 'a', sizeof longest);
    static const char *const good[] = {"a", "fermata.db", "A-b_c.9", ARCHIVE_SUMS_NAME,
                                       "9", "3f/9a",      "a/b/c",   "a/b..c"};
    static const char *const bad[] = {"",     ".",   "..",   ".db",     "/",    "/a",
                                      "a/",   "a b", "a//b", "a/.b",    "a/..", "../a",
                                      "a/-b", "a\n", "a:b",  "\xc3\xa9"};
    for (size_t i = 0; i < COUNT(good); i++) assert_true(archive_name_valid(str_c(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++) assert_false(archive_name_valid(str_c(bad[i])));
    assert_false(archive_name_valid(STR_EMPTY));
    assert_true(archive_name_valid((str){longest, ARCHIVE_NAME_BYTES_MAX}));
    assert_false(archive_name_valid((str){longest, ARCHIVE_NAME_BYTES_MAX + 1}));
    longest[ARCHIVE_FOLDER_BYTES_MAX] = '/';
    size_t most = ARCHIVE_FOLDER_BYTES_MAX + 1 + ARCHIVE_NAME_BYTES_MAX;
    assert_true(archive_name_valid((str){longest, most}));
    assert_false(archive_name_valid((str){longest, most + 1}));
    longest[ARCHIVE_FOLDER_BYTES_MAX] = 'a';
    longest[ARCHIVE_FOLDER_BYTES_MAX + 1] = '/';
    assert_false(archive_name_valid((str){longest, most}));
}

static enum err fail_later(void *arg, str bytes)
{
    size_t *left = arg;
    if (bytes.len > *left) return ERR_STORAGE_FULL;
    *left -= bytes.len;
    return OK;
}

static enum err fail_line(void *arg, str line)
{
    size_t *left = arg;
    return line.len <= *left ? OK : ERR_IO;
}

static void write_errors_stick(void **state)
{
    (void)state;
    static const struct archive_sink failing = {.write = fail_later, .line = fail_line};
    for (size_t room = 0; room < 1024; room += 128) {
        size_t left = room;
        AUTO(archive_writer_freep)
        struct archive_writer *writer = archive_writer_new(&failing, &left, 0);
        enum err e = archive_part(writer, STR("a"), 4);
        if (!e) e = archive_bytes(writer, STR("four"));
        assert_int_equal(e, room < 516 ? ERR_STORAGE_FULL : room < 584 ? ERR_IO : e);
        assert_int_not_equal(e, OK); /* the padding does not fit */
        assert_int_equal(archive_part(writer, STR("b"), 1), e);
        assert_int_equal(archive_bytes(writer, STR("1")), e);
        assert_int_equal(archive_end(writer), e);
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
        struct out out;
        struct seen seen;
        struct fault why = {0};
        out_init(&out);
        seen_init(&seen);
        struct archive_writer *writer = archive_writer_new(&sink, &out, 0);
        assert_int_equal(archive_part(writer, STR("a"), rows[i].size), OK);
        archive_writer_free(writer);
        assert_memory_equal(out.bytes.p + 124, rows[i].field, 12);
        struct archive_reader *reader = archive_reader_new(&ops, &seen);
        assert_int_equal(archive_feed(reader, buf_str(&out.bytes), &why), OK);
        char expected[128];
        snprintf(expected, sizeof expected, "[a %llu]", (unsigned long long)rows[i].size);
        assert_int_equal(seen.text.len, strlen(expected) + (rows[i].size ? 0 : HASH_BYTES));
        assert_memory_equal(seen.text.p, expected, strlen(expected));
        assert_int_equal(archive_finish(reader, &why), ERR_BAD_REQUEST);
        archive_reader_free(reader);
        buf_done(&seen.text);
        out_done(&out);
    }
}

/* What is written is read at once, so nothing but the lines is kept. */
struct through {
    struct archive_reader *reader;
    struct buf lines;
    size_t parts;
};

static enum err through_write(void *arg, str bytes)
{
    return archive_feed(((struct through *)arg)->reader, bytes, NULL);
}

static enum err through_line(void *arg, str line)
{
    struct through *through = arg;
    buf_append(&through->lines, line);
    through->parts++;
    return OK;
}

static enum err count_part(void *arg, str name, uint64_t size, struct fault *reterr)
{
    size_t *count = arg;
    char expected[64];
    (void)reterr;
    snprintf(expected, sizeof expected, "blobs/payloads/%02zx/%zu", *count & 0xff, *count);
    assert_true(str_eq(name, str_c(expected)) && size == *count % 3);
    (*count)++;
    return OK;
}

static enum err ignore_bytes(void *arg, str bytes, struct fault *reterr)
{
    (void)arg, (void)bytes, (void)reterr;
    return OK;
}

static void many_parts(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    static const struct archive_sink through_sink = {.write = through_write, .line = through_line};
    static const struct archive_ops counting = {.on_part = count_part, .on_bytes = ignore_bytes};
    size_t count = 0;
    struct fault why = {0};
    struct through through = {.reader = archive_reader_new(&counting, &count)};
    buf_init(&through.lines, MANY * 128);
    struct archive_writer *writer = archive_writer_new(&through_sink, &through, 0);
    for (size_t i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "blobs/payloads/%02zx/%zu", i & 0xff, i);
        assert_int_equal(archive_part(writer, str_c(name), i % 3), OK);
        assert_int_equal(archive_bytes(writer, (str){"xy", i % 3}), OK);
    }
    assert_int_equal(archive_list(writer), OK);
    assert_int_equal(archive_bytes(writer, buf_str(&through.lines)), OK);
    assert_int_equal(archive_end(writer), OK);
    assert_int_equal(archive_finish(through.reader, &why), OK);
    assert_int_equal(count, MANY);
    assert_int_equal(through.parts, MANY);
    archive_writer_free(writer);
    archive_reader_free(through.reader);
    buf_done(&through.lines);
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
        cmocka_unit_test(damaged_part_is_named),
        cmocka_unit_test(names),
        cmocka_unit_test(write_errors_stick),
        cmocka_unit_test(callers_refusal_sticks),
        cmocka_unit_test(sizes),
        cmocka_unit_test(many_parts),
    };
    return cmocka_run_group_tests_name("store/archive", tests, NULL, NULL);
}

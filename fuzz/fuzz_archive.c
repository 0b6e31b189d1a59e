/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a backup. However they are cut, the verdict and what is handed out are the same; a
 * refusal names its reason; what is accepted is what the writer would make of its parts.
 */
#include "store/db/archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_BYTES_MAX = 4 * 1024 * 1024, TIME_AT = 136 };

/* The parts as they came, written again on the way, and as text. */
struct copy {
    struct archive_writer *writer;
    struct buf written, lines, seen;
};

static enum err on_write(void *arg, str bytes)
{
    buf_append(&((struct copy *)arg)->written, bytes);
    return OK;
}

static enum err on_line(void *arg, str line)
{
    buf_append(&((struct copy *)arg)->lines, line);
    return OK;
}

static const struct archive_sink sink = {.write = on_write, .line = on_line};

static enum err on_part(void *arg, str name, uint64_t size, struct fault *reterr)
{
    struct copy *copy = arg;
    (void)reterr;
    if (!archive_name_valid(name)) abort();
    buf_printf(&copy->seen, "[%.*s %llu]", STR_ARG(name), (unsigned long long)size);
    return archive_part(copy->writer, name, size);
}

static enum err on_bytes(void *arg, str bytes, struct fault *reterr)
{
    struct copy *copy = arg;
    (void)reterr;
    buf_append(&copy->seen, bytes);
    return archive_bytes(copy->writer, bytes);
}

static const struct archive_ops ops = {.on_part = on_part, .on_bytes = on_bytes};

/* Every header of an archive that we write has the same time. */
static msec time_of(str archive)
{
    char digits[12] = "";
    if (archive.len >= TIME_AT + sizeof digits)
        memcpy(digits, archive.p + TIME_AT, sizeof digits - 1);
    return (msec)strtoull(digits, NULL, 8) * 1000;
}

static enum err read_all(str archive, size_t piece, struct copy *copy)
{
    struct fault why = {0};
    buf_init(&copy->written, OUT_BYTES_MAX);
    buf_init(&copy->seen, OUT_BYTES_MAX);
    buf_init(&copy->lines, OUT_BYTES_MAX);
    copy->writer = archive_writer_new(&sink, copy, time_of(archive));
    struct archive_reader *reader = archive_reader_new(&ops, copy);
    enum err e = OK;
    for (size_t at = 0; at < archive.len && !e; at += piece) {
        size_t left = archive.len - at;
        e = archive_feed(reader, (str){archive.p + at, left < piece ? left : piece}, &why);
    }
    if (!e) e = archive_finish(reader, &why);
    if (e && (e != ERR_BAD_REQUEST || !why.text[0])) abort();
    if (!e && (archive_list(copy->writer) || archive_bytes(copy->writer, buf_str(&copy->lines)) ||
               archive_end(copy->writer)))
        abort();
    archive_reader_free(reader);
    return e;
}

static void copy_done(struct copy *copy)
{
    archive_writer_free(copy->writer);
    buf_done(&copy->written);
    buf_done(&copy->lines);
    buf_done(&copy->seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str archive = {(const char *)data, size};
    if (size > OUT_BYTES_MAX / 2) return 0;
    AUTO(copy_done) struct copy whole = {0};
    AUTO(copy_done) struct copy pieces = {0};
    enum err e = read_all(archive, size ? size : 1, &whole);
    if (read_all(archive, 7, &pieces) != e) abort();
    if (!str_eq(buf_str(&whole.seen), buf_str(&pieces.seen))) abort();
    if (!e && !str_eq(buf_str(&whole.written), archive)) abort();
    return 0;
}

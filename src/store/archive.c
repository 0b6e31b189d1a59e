/* SPDX-License-Identifier: Apache-2.0
 *
 * Backups as POSIX ustar. Each part is a header of 512 bytes, its bytes, and zeros up to the next
 * multiple of 512; two blocks of zeros are the end, and nothing follows.
 *
 *     offset  bytes  field      here
 *          0    100  name       NUL-terminated
 *        100      8  mode       0000600
 *        108   2*8   uid, gid   0000000
 *        124     12  size       11 octal digits, NUL; from 8 GiB on 0x80 and the number, big end
 *                               first, as every tar of today takes it
 *        136     12  mtime      11 octal digits, NUL; the same for all parts
 *        148      8  checksum   6 octal digits, NUL, space: sum of the header's bytes with blanks
 *                               here
 *        156      1  type       '0': a file
 *        257      8  magic      "ustar", NUL, "00"
 *
 * The reader makes the header anew from what it read (name, size, time) and compares all 512 bytes,
 * so there is one way to write each header. It also makes the list of hashes anew and compares it
 * with the one in the archive.
 *
 *     HEAD ──▶ DATA ──▶ PAD ──▶ HEAD ...           a part
 *     HEAD ──▶ END ──▶ OVER                        two blocks of zeros, after the list
 */
#include "store/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/limits.h"

enum {
    BLOCK = 512,
    NAME_AT = 0,
    MODE_AT = 100,
    UID_AT = 108,
    GID_AT = 116,
    SIZE_AT = 124,
    TIME_AT = 136,
    SUM_AT = 148,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    NUMBER_BYTES = 12, /* of size and mtime */
    OCTAL_DIGITS = 11,
    SUMS_BYTES_MAX = ARCHIVE_PARTS_MAX * (HASH_HEX_BYTES + ARCHIVE_NAME_BYTES_MAX + 3),
};

#define OCTAL_MAX      ((uint64_t)1 << 33)
#define PART_BYTES_MAX ((uint64_t)ARCHIVE_PART_GIB_MAX << 30)

static const char zeros[BLOCK];

bool archive_name_valid(str name)
{
    if (name.len == 0 || name.len > ARCHIVE_NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i], lower = char_lower(c);
        bool letter = lower >= 'a' && lower <= 'z';
        bool other = (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        if (!letter && (i == 0 || !other)) return false;
    }
    return true;
}

/* ---- headers ---- */

struct part {
    char name[ARCHIVE_NAME_BYTES_MAX + 1];
    uint64_t size;
    uint64_t time; /* seconds since 1970 */
};

static void number_put(char *out, uint64_t value)
{
    if (value < OCTAL_MAX) {
        snprintf(out, NUMBER_BYTES, "%0*llo", OCTAL_DIGITS, (unsigned long long)value);
        return;
    }
    out[0] = (char)0x80;
    for (int i = NUMBER_BYTES - 1; i > 0; i--, value >>= 8) out[i] = (char)(value & 0xff);
}

/* Anything for bytes that number_put does not write: the comparison that follows refuses them. */
static uint64_t number_get(const char *in)
{
    uint64_t value = 0;
    bool octal = in[0] != (char)0x80;
    for (int i = octal ? 0 : 1; i < (octal ? OCTAL_DIGITS : NUMBER_BYTES); i++)
        value = octal ? value << 3 | ((unsigned char)in[i] & 7) : value << 8 | (unsigned char)in[i];
    return value;
}

static void header_put(char out[static BLOCK], const struct part *part)
{
    memset(out, 0, BLOCK);
    memcpy(out + NAME_AT, part->name, strlen(part->name));
    memcpy(out + MODE_AT, "0000600", 8);
    memcpy(out + UID_AT, "0000000", 8);
    memcpy(out + GID_AT, "0000000", 8);
    number_put(out + SIZE_AT, part->size);
    number_put(out + TIME_AT, part->time);
    memset(out + SUM_AT, ' ', 8);
    out[TYPE_AT] = '0';
    memcpy(out + MAGIC_AT,
           "ustar\0"
           "00",
           8);
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) sum += (unsigned char)out[i];
    snprintf(out + SUM_AT, 7, "%06o", sum & 0777777);
}

static enum err header_get(const char in[static BLOCK], struct part *ret_part, struct fault *reterr)
{
    struct part part = {.size = number_get(in + SIZE_AT), .time = number_get(in + TIME_AT)};
    str name = {in + NAME_AT, strnlen(in + NAME_AT, ARCHIVE_NAME_BYTES_MAX + 1)};
    if (!archive_name_valid(name))
        return fault(reterr, ERR_BAD_REQUEST, "this is no backup, or it is damaged");
    memcpy(part.name, name.p, name.len);
    char again[BLOCK];
    header_put(again, &part);
    if (memcmp(in, again, BLOCK) != 0 || part.size > PART_BYTES_MAX || part.time >= OCTAL_MAX)
        return fault(reterr, ERR_BAD_REQUEST, "this is no backup, or it is damaged");
    *ret_part = part;
    return OK;
}

static size_t padding(uint64_t size)
{
    return (size_t)((BLOCK - size % BLOCK) % BLOCK);
}

/* ---- the list of hashes ---- */

/* What writer and reader have in common: the part at work, and the list as it grows. */
struct tally {
    struct crypto_hash *hash;
    struct buf sums;
    struct part part;
    uint64_t left; /* bytes of the part that are still to come */
    size_t parts;
};

static void tally_init(struct tally *tally)
{
    tally->hash = crypto_hash_new();
    buf_init(&tally->sums, SUMS_BYTES_MAX);
}

static void tally_done(struct tally *tally)
{
    crypto_hash_free(tally->hash);
    buf_done(&tally->sums);
}

static bool is_sums(const struct part *part)
{
    return strcmp(part->name, ARCHIVE_SUMS_NAME) == 0;
}

/* The part is complete: its line. */
static void tally_line(struct tally *tally)
{
    unsigned char hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    crypto_hash_take(tally->hash, hash);
    crypto_hex((str){(const char *)hash, sizeof hash}, hex);
    buf_printf(&tally->sums, "%s  %s\n", hex, tally->part.name);
}

/* ---- writing ---- */

struct archive_writer {
    enum err (*write)(void *arg, str bytes);
    void *arg;
    uint64_t time;
    enum err failed;
    struct tally tally;
};

struct archive_writer *archive_writer_new(enum err (*write)(void *arg, str bytes), void *arg,
                                          msec time)
{
    struct archive_writer *writer = calloc(1, sizeof *writer);
    if (!writer) abort();
    writer->write = write;
    writer->arg = arg;
    writer->time = time > 0 ? (uint64_t)time / 1000 : 0;
    tally_init(&writer->tally);
    return writer;
}

void archive_writer_free(struct archive_writer *writer)
{
    if (!writer) return;
    tally_done(&writer->tally);
    free(writer);
}

void archive_writer_freep(struct archive_writer **writer)
{
    archive_writer_free(*writer);
}

static enum err put(struct archive_writer *writer, const char *bytes, size_t len)
{
    if (!writer->failed && len) writer->failed = writer->write(writer->arg, (str){bytes, len});
    return writer->failed;
}

enum err archive_part(struct archive_writer *writer, str name, uint64_t size)
{
    struct tally *tally = &writer->tally;
    assert(tally->left == 0 && archive_name_valid(name) && size <= PART_BYTES_MAX);
    tally->parts++;
    assert(tally->parts <= ARCHIVE_PARTS_MAX);
    tally->part = (struct part){.size = size, .time = writer->time};
    memcpy(tally->part.name, name.p, name.len);
    tally->left = size;
    char header[BLOCK];
    header_put(header, &tally->part);
    enum err e = put(writer, header, BLOCK);
    if (!size && !e) tally_line(tally);
    return e;
}

enum err archive_bytes(struct archive_writer *writer, str bytes)
{
    struct tally *tally = &writer->tally;
    assert(bytes.len <= tally->left);
    if (bytes.len == 0) return writer->failed;
    tally->left -= bytes.len;
    crypto_hash_add(tally->hash, bytes);
    enum err e = put(writer, bytes.p, bytes.len);
    if (tally->left || e) return e;
    tally_line(tally);
    return put(writer, zeros, padding(tally->part.size));
}

enum err archive_end(struct archive_writer *writer)
{
    AUTO(buf_done) struct buf sums = writer->tally.sums;
    buf_init(&writer->tally.sums, SUMS_BYTES_MAX);
    enum err e = archive_part(writer, STR(ARCHIVE_SUMS_NAME), sums.len);
    if (!e) e = archive_bytes(writer, buf_str(&sums));
    if (!e) e = put(writer, zeros, BLOCK);
    return e ? e : put(writer, zeros, BLOCK);
}

/* ---- reading ---- */

enum reader_state { IN_HEAD, IN_DATA, IN_PAD, IN_END, OVER };

struct archive_reader {
    const struct archive_ops *ops;
    void *arg;
    enum reader_state state;
    enum err failed;
    uint64_t time; /* of every part */
    bool listed;   /* the list of hashes has come, and is right */
    char block[BLOCK];
    size_t held; /* bytes of it */
    size_t pad;  /* zeros still to come */
    struct buf list;
    struct tally tally;
};

struct archive_reader *archive_reader_new(const struct archive_ops *ops, void *arg)
{
    struct archive_reader *reader = calloc(1, sizeof *reader);
    if (!reader) abort();
    reader->ops = ops;
    reader->arg = arg;
    buf_init(&reader->list, SUMS_BYTES_MAX);
    tally_init(&reader->tally);
    return reader;
}

void archive_reader_free(struct archive_reader *reader)
{
    if (!reader) return;
    tally_done(&reader->tally);
    buf_done(&reader->list);
    free(reader);
}

void archive_reader_freep(struct archive_reader **reader)
{
    archive_reader_free(*reader);
}

static enum err part_end(struct archive_reader *reader, struct fault *reterr)
{
    struct tally *tally = &reader->tally;
    reader->pad = padding(tally->part.size);
    reader->state = IN_PAD;
    if (!is_sums(&tally->part)) {
        tally_line(tally);
        return OK;
    }
    if (!str_eq(buf_str(&reader->list), buf_str(&tally->sums)))
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: a hash does not match");
    reader->listed = true;
    return OK;
}

static enum err part_begin(struct archive_reader *reader, struct fault *reterr)
{
    struct tally *tally = &reader->tally;
    enum err e = header_get(reader->block, &tally->part, reterr);
    if (e) return e;
    if (tally->parts == 0) reader->time = tally->part.time;
    if (tally->part.time != reader->time)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: parts of another one");
    if (reader->listed)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: a part behind the list");
    if (++tally->parts > ARCHIVE_PARTS_MAX)
        return fault(reterr, ERR_BAD_REQUEST, "the backup has more than %d parts",
                     ARCHIVE_PARTS_MAX);
    tally->left = tally->part.size;
    reader->state = IN_DATA;
    if (is_sums(&tally->part)) {
        if (tally->left > SUMS_BYTES_MAX)
            return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: the list is too long");
    } else {
        e = reader->ops->on_part(reader->arg, str_c(tally->part.name), tally->left, reterr);
    }
    return e || tally->left ? e : part_end(reader, reterr);
}

/* A block is complete: a header, or one of the two blocks of zeros. */
static enum err block_end(struct archive_reader *reader, struct fault *reterr)
{
    bool empty = memcmp(reader->block, zeros, BLOCK) == 0;
    reader->held = 0;
    if (reader->state == IN_HEAD && !empty) return part_begin(reader, reterr);
    if (!empty || !reader->listed)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: its end is not whole");
    reader->state = reader->state == IN_HEAD ? IN_END : OVER;
    return OK;
}

static enum err take_block(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    size_t room = BLOCK - reader->held, take = bytes->len < room ? bytes->len : room;
    memcpy(reader->block + reader->held, bytes->p, take);
    reader->held += take;
    *bytes = str_drop(*bytes, take);
    return reader->held == BLOCK ? block_end(reader, reterr) : OK;
}

static enum err take_data(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    struct tally *tally = &reader->tally;
    str piece = {bytes->p, bytes->len < tally->left ? bytes->len : (size_t)tally->left};
    *bytes = str_drop(*bytes, piece.len);
    tally->left -= piece.len;
    enum err e = OK;
    if (is_sums(&tally->part)) {
        buf_append(&reader->list, piece);
    } else {
        crypto_hash_add(tally->hash, piece);
        e = reader->ops->on_bytes(reader->arg, piece, reterr);
    }
    return e || tally->left ? e : part_end(reader, reterr);
}

static enum err take_pad(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    size_t take = bytes->len < reader->pad ? bytes->len : reader->pad;
    if (memcmp(bytes->p, zeros, take) != 0)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: bytes between two parts");
    reader->pad -= take;
    *bytes = str_drop(*bytes, take);
    return OK;
}

/* One step forward: some of the bytes are taken, or the state changes. */
static enum err take(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    switch (reader->state) {
    case IN_DATA:
        return take_data(reader, bytes, reterr);
    case IN_PAD:
        if (reader->pad) return take_pad(reader, bytes, reterr);
        reader->state = IN_HEAD;
        return OK;
    case IN_HEAD:
    case IN_END:
        return take_block(reader, bytes, reterr);
    case OVER:
        break;
    }
    return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: bytes behind its end");
}

enum err archive_feed(struct archive_reader *reader, str bytes, struct fault *reterr)
{
    if (reader->failed) return fault(reterr, reader->failed, "the backup was refused already");
    while (bytes.len && !reader->failed) reader->failed = take(reader, &bytes, reterr);
    return reader->failed;
}

enum err archive_finish(struct archive_reader *reader, struct fault *reterr)
{
    if (reader->failed) return fault(reterr, reader->failed, "the backup was refused already");
    if (reader->state == OVER) return OK;
    return fault(reterr, ERR_BAD_REQUEST, "the backup is cut off");
}

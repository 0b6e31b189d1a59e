/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of a backup: a tar file (POSIX ustar) with a list of hashes. Each part is a header
 * of 512 bytes, its bytes, and zeros up to the next multiple of 512; two blocks of zeros are the
 * end, and nothing follows.
 *
 *     offset  bytes  field      here
 *          0    100  name       NUL-terminated; its last word, if all of it is longer than 99
 *        100      8  mode       0000600
 *        108   2*8   uid, gid   0000000
 *        124     12  size       11 octal digits, NUL; from 8 GiB on 0x80 and the number, big end
 *                               first, as every tar of today takes it
 *        136     12  mtime      11 octal digits, NUL; the same for all parts
 *        148      8  checksum   6 octal digits, NUL, space: sum of the header's bytes with blanks
 *                               here
 *        156      1  type       '0': a file
 *        257      8  magic      "ustar", NUL, "00"
 *        345    155  prefix     NUL-terminated: then the words before that, without the last '/'
 *
 * The reader makes the header anew from what it read (name, size, time) and compares all 512 bytes,
 * so there is one way to write each header. It also makes the list of hashes anew and compares it
 * with the one in the archive: by its length and hash, because the list may be long. What it keeps
 * are the lines of the parts outside of folders, so as to name the one that is damaged.
 *
 *     HEAD ──▶ DATA ──▶ PAD ──▶ HEAD ...           a part
 *     HEAD ──▶ END ──▶ OVER                        two blocks of zeros, after the list
 */
#include "store/db/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "base/mem.h"

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
    PREFIX_AT = 345,
    NUMBER_BYTES = 12, /* of size and mtime */
    OCTAL_DIGITS = 11,
    PATH_BYTES_MAX = ARCHIVE_FOLDER_BYTES_MAX + 1 + ARCHIVE_NAME_BYTES_MAX,
    LINE_NAME_AT = HASH_HEX_BYTES - 1 + 2, /* digits and two blanks */
    LINE_BYTES_MAX = LINE_NAME_AT + PATH_BYTES_MAX + 1,
    KEPT_BYTES_MAX = ARCHIVE_KEPT_LINES_MAX * LINE_BYTES_MAX,
};

#define OCTAL_MAX      ((uint64_t)1 << 33)
#define PART_BYTES_MAX ((uint64_t)ARCHIVE_PART_GIB_MAX << 30)

static const char zeros[BLOCK];

static bool word_valid(str word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.p[i];
        bool mark = c == '.' || c == '-' || c == '_';
        if (!char_is_alnum(c) && (i == 0 || !mark)) return false;
    }
    return word.len > 0;
}

/* Where the last word begins. */
static size_t last_word(str name)
{
    size_t at = name.len;
    while (at && name.p[at - 1] != '/') at--;
    return at;
}

bool archive_name_valid(str name)
{
    if (!name.len) return false;
    size_t last = last_word(name);
    if (name.len > ARCHIVE_NAME_BYTES_MAX && (last == 0 || last - 1 > ARCHIVE_FOLDER_BYTES_MAX ||
                                              name.len - last > ARCHIVE_NAME_BYTES_MAX))
        return false;
    while (name.p)
        if (!word_valid(str_split(&name, '/'))) return false;
    return true;
}

/* ---- headers ---- */

struct archive_part {
    char name[PATH_BYTES_MAX + 1];
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

static void header_put(char out[static BLOCK], const struct archive_part *part)
{
    memset(out, 0, BLOCK);
    str name = str_c(part->name);
    size_t last = name.len > ARCHIVE_NAME_BYTES_MAX ? last_word(name) : 0;
    if (last) memcpy(out + PREFIX_AT, name.p, last - 1);
    memcpy(out + NAME_AT, name.p + last, name.len - last);
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

static enum err header_get(const char in[static BLOCK], struct archive_part *ret_part,
                           struct fault *reterr)
{
    struct archive_part part = {.size = number_get(in + SIZE_AT), .time = number_get(in + TIME_AT)};
    size_t folder = strnlen(in + PREFIX_AT, ARCHIVE_FOLDER_BYTES_MAX);
    size_t word = strnlen(in + NAME_AT, ARCHIVE_NAME_BYTES_MAX);
    snprintf(part.name, sizeof part.name, "%.*s%s%.*s", (int)folder, in + PREFIX_AT,
             folder ? "/" : "", (int)word, in + NAME_AT);
    if (!archive_name_valid(str_c(part.name)))
        return fault(reterr, ERR_BAD_REQUEST, "this is no backup, or it is damaged");
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
    struct crypto_hash *hash;       /* of the part */
    struct crypto_hash *list;       /* of the lines */
    uint64_t list_bytes;            /* of the lines */
    unsigned char done[HASH_BYTES]; /* of the last part that is complete */
    char line[LINE_BYTES_MAX + 1];  /* of it */
    struct archive_part part;
    uint64_t left; /* bytes of the part that are still to come */
    size_t parts;
};

static void tally_init(struct tally *tally)
{
    tally->hash = crypto_hash_new();
    tally->list = crypto_hash_new();
}

static void tally_done(struct tally *tally)
{
    crypto_hash_free(tally->hash);
    crypto_hash_free(tally->list);
}

static bool is_list(const struct archive_part *part)
{
    return strcmp(part->name, ARCHIVE_SUMS_NAME) == 0;
}

/* The part is complete: its line. */
static str tally_line(struct tally *tally)
{
    char hex[HASH_HEX_BYTES];
    crypto_hash_take(tally->hash, tally->done);
    crypto_hex((str){(const char *)tally->done, HASH_BYTES}, hex);
    int len = snprintf(tally->line, sizeof tally->line, "%s  %s\n", hex, tally->part.name);
    str line = {tally->line, (size_t)len};
    tally->list_bytes += line.len;
    crypto_hash_add(tally->list, line);
    return line;
}

/* The list itself is complete: is it the one that the parts make? */
static bool tally_agrees(struct tally *tally)
{
    unsigned char wanted[HASH_BYTES];
    crypto_hash_take(tally->hash, tally->done);
    crypto_hash_take(tally->list, wanted);
    return memcmp(tally->done, wanted, HASH_BYTES) == 0;
}

/* ---- writing ---- */

struct archive_writer {
    const struct archive_sink *sink;
    void *arg;
    uint64_t time;
    enum err failed;
    bool listed;
    struct tally tally;
};

struct archive_writer *archive_writer_new(const struct archive_sink *sink, void *arg, msec time)
{
    struct archive_writer *writer = mem_new(sizeof *writer);
    writer->sink = sink;
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
    if (!writer->failed && len)
        writer->failed = writer->sink->write(writer->arg, (str){bytes, len});
    return writer->failed;
}

static enum err writer_part_end(struct archive_writer *writer)
{
    struct tally *tally = &writer->tally;
    if (is_list(&tally->part)) {
        assert(tally_agrees(tally)); /* else it is not what archive_sink.line was given */
        writer->listed = true;
    } else {
        str line = tally_line(tally);
        if (!writer->failed) writer->failed = writer->sink->line(writer->arg, line);
    }
    return put(writer, zeros, padding(tally->part.size));
}

static enum err writer_part_begin(struct archive_writer *writer, str name, uint64_t size)
{
    struct tally *tally = &writer->tally;
    assert(tally->left == 0 && !writer->listed && size <= PART_BYTES_MAX);
    tally->part = (struct archive_part){.size = size, .time = writer->time};
    memcpy(tally->part.name, name.p, name.len);
    tally->left = size;
    char header[BLOCK];
    header_put(header, &tally->part);
    enum err e = put(writer, header, BLOCK);
    return size || e ? e : writer_part_end(writer);
}

enum err archive_part(struct archive_writer *writer, str name, uint64_t size)
{
    assert(archive_name_valid(name) && !str_eq(name, STR(ARCHIVE_SUMS_NAME)));
    if (++writer->tally.parts >= ARCHIVE_PARTS_MAX) writer->failed = ERR_TOO_LARGE;
    return writer->failed ? writer->failed : writer_part_begin(writer, name, size);
}

enum err archive_bytes(struct archive_writer *writer, str bytes)
{
    struct tally *tally = &writer->tally;
    if (bytes.len == 0 || writer->failed) return writer->failed;
    assert(bytes.len <= tally->left);
    tally->left -= bytes.len;
    crypto_hash_add(tally->hash, bytes);
    enum err e = put(writer, bytes.p, bytes.len);
    return tally->left || e ? e : writer_part_end(writer);
}

void archive_hash(const struct archive_writer *writer, unsigned char ret_hash[static HASH_BYTES])
{
    memcpy(ret_hash, writer->tally.done, HASH_BYTES);
}

enum err archive_list(struct archive_writer *writer)
{
    return writer_part_begin(writer, STR(ARCHIVE_SUMS_NAME), writer->tally.list_bytes);
}

enum err archive_end(struct archive_writer *writer)
{
    assert(writer->listed || writer->failed);
    enum err e = put(writer, zeros, BLOCK);
    return e ? e : put(writer, zeros, BLOCK);
}

/* ---- reading ---- */

enum archive_reader_state { IN_HEAD, IN_DATA, IN_PAD, IN_END, OVER };

struct archive_reader {
    const struct archive_ops *ops;
    void *arg;
    enum archive_reader_state state;
    enum err failed;
    uint64_t time; /* of every part */
    bool listed;   /* the list of hashes has come, and is right */
    char block[BLOCK];
    size_t held;               /* bytes of it */
    size_t pad;                /* zeros still to come */
    struct buf kept;           /* lines of the parts outside of folders */
    char line[LINE_BYTES_MAX]; /* of the list, as it comes */
    size_t line_len;
    struct tally tally;
};

struct archive_reader *archive_reader_new(const struct archive_ops *ops, void *arg)
{
    struct archive_reader *reader = mem_new(sizeof *reader);
    reader->ops = ops;
    reader->arg = arg;
    buf_init(&reader->kept, KEPT_BYTES_MAX);
    tally_init(&reader->tally);
    return reader;
}

void archive_reader_free(struct archive_reader *reader)
{
    if (!reader) return;
    tally_done(&reader->tally);
    buf_done(&reader->kept);
    free(reader);
}

void archive_reader_freep(struct archive_reader **reader)
{
    archive_reader_free(*reader);
}

/* Does a line of the list say another hash than a part that has come? */
static bool line_differs(const struct archive_reader *reader, str line)
{
    str kept = buf_str(&reader->kept);
    while (kept.len) {
        str other = {kept.p, (size_t)str_find_char(kept, '\n') + 1};
        kept = str_drop(kept, other.len);
        if (line.len > LINE_NAME_AT &&
            str_eq(str_drop(line, LINE_NAME_AT), str_drop(other, LINE_NAME_AT)))
            return !str_eq(line, other);
    }
    return false;
}

/* Bytes of the list. Only what can be told apart early is looked at here. */
static enum err take_list(struct archive_reader *reader, str piece, struct fault *reterr)
{
    for (size_t i = 0; i < piece.len; i++) {
        if (reader->line_len < LINE_BYTES_MAX) reader->line[reader->line_len++] = piece.p[i];
        if (piece.p[i] != '\n') continue;
        str line = {reader->line, reader->line_len};
        reader->line_len = 0;
        if (line_differs(reader, line))
            return fault(reterr, ERR_BAD_REQUEST,
                         "the backup is damaged: the hash of %.*s is wrong",
                         (int)(line.len - LINE_NAME_AT - 1), line.p + LINE_NAME_AT);
    }
    return OK;
}

static enum err part_end(struct archive_reader *reader, struct fault *reterr)
{
    struct tally *tally = &reader->tally;
    reader->pad = padding(tally->part.size);
    reader->state = IN_PAD;
    if (is_list(&tally->part)) {
        reader->listed = tally_agrees(tally);
        return reader->listed
                   ? OK
                   : fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: a hash does not match");
    }
    str line = tally_line(tally);
    if (str_find_char(str_c(tally->part.name), '/') < 0) buf_append(&reader->kept, line);
    return reader->ops->on_end ? reader->ops->on_end(reader->arg, tally->done, reterr) : OK;
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
    if (is_list(&tally->part)) {
        if (tally->left != tally->list_bytes)
            return fault(reterr, ERR_BAD_REQUEST,
                         "the backup is damaged: the list does not fit the parts");
    } else {
        e = reader->ops->on_part(reader->arg, str_c(tally->part.name), tally->left, reterr);
    }
    return e || tally->left ? e : part_end(reader, reterr);
}

/* A block: a header, or one of the two blocks of zeros. */
static enum err take_block(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    size_t room = BLOCK - reader->held, take = bytes->len < room ? bytes->len : room;
    memcpy(reader->block + reader->held, bytes->p, take);
    reader->held += take;
    *bytes = str_drop(*bytes, take);
    if (reader->held < BLOCK) return OK;

    bool empty = memcmp(reader->block, zeros, BLOCK) == 0;
    reader->held = 0;
    if (reader->state == IN_HEAD && !empty) return part_begin(reader, reterr);
    if (!empty || !reader->listed)
        return fault(reterr, ERR_BAD_REQUEST, "the backup is damaged: its end is not whole");
    reader->state = reader->state == IN_HEAD ? IN_END : OVER;
    return OK;
}

static enum err take_data(struct archive_reader *reader, str *bytes, struct fault *reterr)
{
    struct tally *tally = &reader->tally;
    str piece = {bytes->p, bytes->len < tally->left ? bytes->len : (size_t)tally->left};
    *bytes = str_drop(*bytes, piece.len);
    tally->left -= piece.len;
    crypto_hash_add(tally->hash, piece);
    enum err e = is_list(&tally->part) ? take_list(reader, piece, reterr)
                                       : reader->ops->on_bytes(reader->arg, piece, reterr);
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
static enum err archive_take(struct archive_reader *reader, str *bytes, struct fault *reterr)
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
    while (bytes.len && !reader->failed) reader->failed = archive_take(reader, &bytes, reterr);
    return reader->failed;
}

enum err archive_finish(struct archive_reader *reader, struct fault *reterr)
{
    if (reader->failed) return fault(reterr, reader->failed, "the backup was refused already");
    if (reader->state == OVER) return OK;
    return fault(reterr, ERR_BAD_REQUEST, "the backup is cut off");
}

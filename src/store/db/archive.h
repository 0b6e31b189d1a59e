/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of a backup: a tar archive that common tools open, with a list of hashes as its
 * last part. Pure: bytes come in and go out through the caller.
 *
 *     part, part, ..., SHA256SUMS, end
 *
 * SHA256SUMS has a line for each part before it, as sha256sum writes and checks them. Writing is
 * canonical: for given parts there is one archive. Reading takes nothing else, so a changed,
 * missing or added byte anywhere is refused. Neither holds more than a part's head in memory,
 * however many parts there are.
 */
#ifndef STORE_DB_ARCHIVE_H
#define STORE_DB_ARCHIVE_H

#include "base/crypto.h"
#include "base/err.h"
#include "base/str.h"

#define ARCHIVE_SUMS_NAME "SHA256SUMS"

/* Is this a name that a part may have? Words joined by '/', each of letters, digits, '.', '-' and
 * '_' and not beginning with a mark, so it never leads out of a folder. At most
 * ARCHIVE_NAME_BYTES_MAX altogether, or for the last word and ARCHIVE_FOLDER_BYTES_MAX for those
 * before it. */
bool archive_name_valid(str name);

/* ---- writing ---- */

struct archive_writer;

/* Where it goes. Errors end the writing and are returned. */
struct archive_sink {
    enum err (*write)(void *arg, str bytes);
    enum err (*line)(void *arg, str line); /* of the list: to be given back by archive_list */
};

/* `time` is noted for every part. */
struct archive_writer *archive_writer_new(const struct archive_sink *sink, void *arg, msec time);
void archive_writer_free(struct archive_writer *writer); /* NULL is fine */
void archive_writer_freep(struct archive_writer **writer);

/* A part and then its bytes, in any pieces, `size` of them altogether. */
enum err archive_part(struct archive_writer *writer, str name, uint64_t size) MUST_USE;
enum err archive_bytes(struct archive_writer *writer, str bytes) MUST_USE;

/* SHA-256 of the last part that is complete. */
void archive_hash(const struct archive_writer *writer, unsigned char ret_hash[static HASH_BYTES]);

/* The list of hashes, as a part: exactly the lines that were handed out follow with archive_bytes.
 * Then the end. */
enum err archive_list(struct archive_writer *writer) MUST_USE;
enum err archive_end(struct archive_writer *writer) MUST_USE;

/* ---- reading ---- */

struct archive_ops {
    /* A part begins; its bytes follow in pieces. An error ends the reading and is returned. */
    enum err (*on_part)(void *arg, str name, uint64_t size, struct fault *reterr);
    enum err (*on_bytes)(void *arg, str bytes, struct fault *reterr);
    /* The part is complete, and this is its SHA-256. NULL is fine. */
    enum err (*on_end)(void *arg, const unsigned char hash[static HASH_BYTES],
                       struct fault *reterr);
};

struct archive_reader;

/* The list of hashes is not handed to ops. */
struct archive_reader *archive_reader_new(const struct archive_ops *ops, void *arg);
void archive_reader_free(struct archive_reader *reader); /* NULL is fine */
void archive_reader_freep(struct archive_reader **reader);

/* Take bytes, cut anywhere. ERR_BAD_REQUEST, with the reason, for what is no archive of ours or is
 * damaged; from then on every call returns it. Nothing that on_bytes got is to be trusted before
 * archive_finish. */
enum err archive_feed(struct archive_reader *reader, str bytes, struct fault *reterr) MUST_USE;

/* There are no more bytes: OK if the archive is whole and every hash is right. */
enum err archive_finish(struct archive_reader *reader, struct fault *reterr) MUST_USE;

#endif

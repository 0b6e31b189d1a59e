/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fermata backup` and `fermata restore` have in common: the parts of an archive, and files.
 *
 *     fermata.db                    the database at one moment
 *     blobs/<bucket>/<path>         each object that it names; the name says the hash of the bytes
 *     spool/<name>                  each spool file that it names
 *     secret.key                    the installation's secret; missing if it is kept elsewhere
 *     manifest.json                 {"format","version","schema","createdAt","files","leftOut"}
 *     SHA256SUMS                    made by the archive
 *
 * Parts in folders are in the order of their names, each once.
 */
#ifndef CLI_BACKUP_IO_H
#define CLI_BACKUP_IO_H

#include "base/err.h"
#include "base/str.h"

#define MANIFEST_NAME "manifest.json"
#define BLOBS_PREFIX  "blobs/"
#define SPOOL_PREFIX  "spool/"

enum { MANIFEST_FORMAT = 2, PART_NAME_BYTES = 256 };

/* ERR_STORAGE_FULL or ERR_IO, in the words of errno: "PATH cannot be WHAT: ...". */
enum err io_fault(struct fault *reterr, const char *path, const char *what) MUST_USE;

/* ERR_IO, and errno. */
enum err write_all(int fd, str bytes) MUST_USE;
/* Up to `size` bytes; fewer only at the end of the file. */
enum err read_some(int fd, char *out, size_t size, size_t *ret_len) MUST_USE;

#endif

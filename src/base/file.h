/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files, read whole: configuration, keys. And writing all of something.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"

/* The bytes of the file, in the arena and followed by a NUL. ERR_NOT_FOUND if there is none,
 * ERR_TOO_LARGE beyond bytes_max, ERR_IO for the rest; the fault names the path. Blocks. */
enum err file_read(struct arena *arena, const char *path, size_t bytes_max, str *ret_text,
                   struct fault *reterr) MUST_USE;

/* The same for standard input, also where /dev/stdin cannot be opened: a socket, or our own process
 * after it has made itself unreadable. */
enum err file_read_input(struct arena *arena, size_t bytes_max, str *ret_text, struct fault *reterr)
    MUST_USE;

/* How many bytes could be read from there on. If those are fewer: errno says why, or is 0 where the
 * file ends. Blocks. */
size_t file_read_at(int fd, char *bytes, size_t len, uint64_t at) MUST_USE;

/* False if a write failed, as errno says. Blocks. */
bool file_write_all(int fd, str bytes) MUST_USE;

/* For AUTO: closes unless -1. */
void fd_closep(int *fd);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files, read whole: configuration, keys.
 */
#ifndef APP_FILE_H
#define APP_FILE_H

#include "base/arena.h"

/* The bytes of the file, in the arena and followed by a NUL. ERR_NOT_FOUND if there is none,
 * ERR_TOO_LARGE beyond bytes_max, ERR_IO for the rest; the fault names the path. Blocks. */
enum err file_read(struct arena *arena, const char *path, size_t bytes_max, str *ret_text,
                   struct fault *reterr) MUST_USE;

/* The same for standard input, also where /dev/stdin cannot be opened: a socket, or our own process
 * after it has made itself unreadable. */
enum err file_read_input(struct arena *arena, size_t bytes_max, str *ret_text, struct fault *reterr)
    MUST_USE;

#endif

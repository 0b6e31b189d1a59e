/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to us alone: the data folder and the files in it. Such a thing is owned by the user
 * we run as and closed to group and others; anything wider is refused with the command that mends
 * it, never silently accepted or changed.
 */
#ifndef STORE_DB_PRIVATE_H
#define STORE_DB_PRIVATE_H

#include "base/file.h"

enum private_kind { PRIVATE_FILE, PRIVATE_FOLDER };

/* Is what fd has open ours alone, and of that kind? ERR_CONFIG and the reason if not. `path` is for
 * the message. */
enum err private_check(int fd, enum private_kind kind, const char *path, struct fault *reterr)
    MUST_USE;

/* Open a folder for use with openat, checked as above. */
enum err private_folder_open(const char *path, int *ret_fd, struct fault *reterr) MUST_USE;

#endif

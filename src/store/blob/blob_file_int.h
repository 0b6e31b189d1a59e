/* SPDX-License-Identifier: Apache-2.0
 *
 * What blob_file.c and blob_file_list.c share.
 */
#ifndef STORE_BLOB_BLOB_FILE_INT_H
#define STORE_BLOB_BLOB_FILE_INT_H

#include <dirent.h>

#include "store/blob/blob_int.h"

enum { BLOB_FOLDERS = 256 }; /* of a bucket */

/* A folder in another one, made 0700 if `make` says so; then *made is set. -1 and errno. */
int blob_folder_open(int parent, const char *name, bool make, bool *made);

/* For reading the folder, whose descriptor it takes. NULL and errno. */
DIR *blob_list_of(int fd);
void blob_list_close(DIR **list); /* for AUTO */

msec blob_wall_of(struct timespec at);

/* As blob_ops has it, for the folder `root`. */
enum err blob_file_list(int root, struct blob_name after, msec before, size_t limit,
                        struct arena *arena, struct blob_names *ret_names, struct fault *reterr);

#endif

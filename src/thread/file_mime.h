/* SPDX-License-Identifier: Apache-2.0
 *
 * The type of a file by its content, and what of it a browser may be told. The only place that knows
 * libmagic.
 */
#ifndef THREAD_FILE_MIME_H
#define THREAD_FILE_MIME_H

#include "base/str.h"

enum { MIME_BYTES = 128 }; /* with its NUL */

/* The type of a file that begins with these bytes: "image/png". What nobody knows is
 * application/octet-stream. It takes some milliseconds and needs nothing else: for a pool thread.
 * ERR_IO: libmagic's own file is not there or not readable. */
enum err mime_of(str bytes, char ret_type[static MIME_BYTES], struct fault *reterr) MUST_USE;

/* The type to send a stored file with: its own, unless a browser could run it. Pure. */
str mime_served(str type);

/* May a browser show it by itself? Only pictures that cannot hold a script. Pure. */
bool mime_inline(str type);

#endif

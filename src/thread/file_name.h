/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of files: as a client sent them, as we keep them, and as a header says them. Pure.
 */
#ifndef THREAD_FILE_NAME_H
#define THREAD_FILE_NAME_H

#include "base/arena.h"

enum { FILENAME_BYTES_MAX = 255 }; /* what file systems take */

/* A name from outside (valid UTF-8) without its path, without characters that show nothing, cut at a
 * character. Empty if nothing is left. */
str attachment_name(struct arena *arena, str filename);

/* Content-Disposition, RFC 6266: the name in ASCII, and once more as it is where that differs. */
str attachment_disposition(struct arena *arena, bool shown, str filename);

#endif

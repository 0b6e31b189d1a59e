/* SPDX-License-Identifier: Apache-2.0
 *
 * Type, name and size in pixels of a file in memory that a tool brought along. Needs nothing of the
 * loop: for a pool thread.
 */
#include "thread/file_look.h"

#include <string.h>

#include "base/limits.h"
#include "thread/file_image_size.h"
#include "thread/file_mime.h"
#include "thread/file_name.h"

_Static_assert(sizeof((struct file_seen){0}.mime) >= MIME_BYTES, "a type has room");
_Static_assert(sizeof((struct file_seen){0}.filename) > FILENAME_BYTES_MAX, "a name has room");

enum err look_at_file(str bytes, str filename, struct file_seen *ret_seen)
{
    struct file_seen seen = {0};
    struct image_size size = {0};
    str start = {bytes.p, bytes.len < UPLOAD_LOOK_BYTES_MAX ? bytes.len : UPLOAD_LOOK_BYTES_MAX};
    enum err e = mime_of(start, seen.mime, NULL);
    if (e) return e;
    /* Words may begin like a picture: what it is has been decided already. */
    if (str_starts(str_c(seen.mime), STR("image/")) && image_size(start, &size)) {
        seen.width = size.width;
        seen.height = size.height;
    }
    if ((uint64_t)seen.width * seen.height > IMAGE_PIXELS_MAX) return ERR_TOO_LARGE;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str name = attachment_name(&arena, filename);
    if (name.len) memcpy(seen.filename, name.p, name.len);
    *ret_seen = seen;
    return OK;
}

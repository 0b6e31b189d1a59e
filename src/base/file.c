/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files, read whole, and bytes, written to the last. A file is read to its end rather than
 * asked for its size first, so that pipes (`--config /dev/stdin`) work like files.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/say.h"

void fd_closep(int *fd)
{
    if (*fd >= 0) close(*fd);
}

static enum err failed(struct fault *reterr, const char *path)
{
    int error = errno;
    return fault(reterr, error == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: cannot be read: %s",
                 say(str_c(path)).text, strerror(error));
}

static enum err read_all(struct arena *arena, int fd, const char *name, size_t bytes_max,
                         str *ret_text, struct fault *reterr)
{
    AUTO(buf_done) struct buf text;
    buf_init(&text, bytes_max + 1); /* one byte more tells too large from just large enough */
    while (text.len <= bytes_max) {
        size_t left = bytes_max + 1 - text.len;
        size_t want = left < 4096 ? left : 4096;
        ssize_t got = read(fd, buf_room(&text, want), want);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(reterr, name);
        if (got == 0) break;
        buf_added(&text, (size_t)got);
    }
    if (text.len > bytes_max)
        return fault(reterr, ERR_TOO_LARGE, "%s: larger than %zu bytes", say(str_c(name)).text,
                     bytes_max);
    *ret_text = arena_str(arena, buf_str(&text));
    return OK;
}

enum err file_read(struct arena *arena, const char *path, size_t bytes_max, str *ret_text,
                   struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed(reterr, path);
    return read_all(arena, fd, path, bytes_max, ret_text, reterr);
}

size_t file_read_at(int fd, char *bytes, size_t len, uint64_t at)
{
    size_t done = 0;
    while (done < len) {
        ssize_t count = pread(fd, bytes + done, len - done, (off_t)(at + done));
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) errno = 0;
        if (count <= 0) break;
        done += (size_t)count;
    }
    return done;
}

bool file_write_all(int fd, str bytes)
{
    while (bytes.len) {
        ssize_t count = write(fd, bytes.p, bytes.len);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes = str_drop(bytes, (size_t)count);
    }
    return true;
}

enum err file_read_input(struct arena *arena, size_t bytes_max, str *ret_text, struct fault *reterr)
{
    return read_all(arena, STDIN_FILENO, "standard input", bytes_max, ret_text, reterr);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What backup and restore share: the parts of an archive, whole reads and writes, and errors as
 * sentences.
 */
#include "cli/backup_io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum err io_fault(struct fault *reterr, const char *path, const char *what)
{
    int error = errno;
    return fault(reterr, error == ENOSPC || error == EDQUOT ? ERR_STORAGE_FULL : ERR_IO,
                 "%s cannot be %s: %s", path, what, strerror(error));
}

enum err write_all(int fd, str bytes)
{
    while (bytes.len) {
        ssize_t n = write(fd, bytes.p, bytes.len);
        if (n < 0 && errno != EINTR) return ERR_IO;
        if (n > 0) bytes = str_drop(bytes, (size_t)n);
    }
    return OK;
}

enum err read_some(int fd, char *out, size_t size, size_t *ret_len)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, out + len, size - len);
        if (n == 0) break;
        if (n < 0 && errno != EINTR) return ERR_IO;
        if (n > 0) len += (size_t)n;
    }
    *ret_len = len;
    return OK;
}

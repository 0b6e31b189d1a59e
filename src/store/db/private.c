/* SPDX-License-Identifier: Apache-2.0
 *
 * Files and folders that belong to us alone. The check is on the open descriptor, not on the path,
 * so that what was checked is what is used.
 */
#include "store/db/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    mode_t type;
    const char *noun;
    const char *mode; /* for chmod */
} kinds[] = {
    [PRIVATE_FILE] = {S_IFREG, "file", "600"},
    [PRIVATE_FOLDER] = {S_IFDIR, "folder", "700"},
};

enum err private_check(int fd, enum private_kind kind, const char *path, struct fault *reterr)
{
    struct stat st;
    if (fstat(fd, &st))
        return fault(reterr, ERR_IO, "%s cannot be examined: %s", path, strerror(errno));
    if ((st.st_mode & S_IFMT) != kinds[kind].type)
        return fault(reterr, ERR_CONFIG, "%s is not a plain %s", path, kinds[kind].noun);
    if (st.st_uid != geteuid())
        return fault(reterr, ERR_CONFIG,
                     "%s belongs to user %u and this process runs as user %u: "
                     "run as its owner, or change the owner with chown",
                     path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return fault(reterr, ERR_CONFIG,
                     "%s is open to other users (mode %04o): close it with chmod %s '%s'", path,
                     (unsigned)(st.st_mode & 07777), kinds[kind].mode, path);
    return OK;
}

enum err private_folder_open(const char *path, int *ret_fd, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fault(reterr, errno == ENOTDIR ? ERR_CONFIG : ERR_IO, "%s cannot be opened: %s",
                     path, strerror(errno));
    enum err e = private_check(fd, PRIVATE_FOLDER, path, reterr);
    if (e) return e;
    *ret_fd = fd;
    fd = -1;
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A file is ours with SQLite's own behind it; every method hands on to that one, and the three
 * that change the disk ask first.
 */
#include "store/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/def.h"

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* right behind this struct */
};

static struct {
    atomic_int kind, calls, at, on, count;
} plan;

void fault_vfs_arm(enum fault_kind kind, int calls, int at, bool on)
{
    atomic_store(&plan.kind, FAULT_NONE);
    atomic_store(&plan.calls, calls);
    atomic_store(&plan.at, at);
    atomic_store(&plan.on, on);
    atomic_store(&plan.count, 0);
    atomic_store(&plan.kind, (int)kind);
}

int fault_vfs_count(void)
{
    return atomic_load(&plan.count);
}

/* SQLITE_OK: go on and do it. */
static int ask(enum fault_call call, int io_error)
{
    if (!(atomic_load(&plan.calls) & (int)call)) return SQLITE_OK;
    int n = atomic_fetch_add(&plan.count, 1) + 1, at = atomic_load(&plan.at);
    if (n != at && !(n > at && atomic_load(&plan.on))) return SQLITE_OK;
    switch (atomic_load(&plan.kind)) {
    case FAULT_IO:
        return io_error;
    case FAULT_FULL:
        return SQLITE_FULL;
    case FAULT_KILL:
        kill(getpid(), SIGKILL);
        return io_error;
    default:
        return SQLITE_OK;
    }
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)file)->real;
}

#define CALL(file, method, ...) \
    (real_of(file)->pMethods->method(real_of(file) __VA_OPT__(, ) __VA_ARGS__))

static int file_close(sqlite3_file *f)
{
    return CALL(f, xClose);
}

static int file_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return CALL(f, xRead, p, n, at);
}

static int file_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    int code = ask(FAULT_WRITE, SQLITE_IOERR_WRITE);
    return code ? code : CALL(f, xWrite, p, n, at);
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int code = ask(FAULT_CHANGE, SQLITE_IOERR_TRUNCATE);
    return code ? code : CALL(f, xTruncate, size);
}

static int file_sync(sqlite3_file *f, int flags)
{
    int code = ask(FAULT_SYNC, SQLITE_IOERR_FSYNC);
    return code ? code : CALL(f, xSync, flags);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return CALL(f, xFileSize, size);
}

static int file_lock(sqlite3_file *f, int level)
{
    return CALL(f, xLock, level);
}

static int file_unlock(sqlite3_file *f, int level)
{
    return CALL(f, xUnlock, level);
}

static int file_reserved(sqlite3_file *f, int *out)
{
    return CALL(f, xCheckReservedLock, out);
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    return CALL(f, xFileControl, op, arg);
}

static int file_sector(sqlite3_file *f)
{
    return CALL(f, xSectorSize);
}

static int file_traits(sqlite3_file *f)
{
    return CALL(f, xDeviceCharacteristics);
}

static int file_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return CALL(f, xShmMap, page, size, extend, out);
}

static int file_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return CALL(f, xShmLock, offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *f)
{
    CALL(f, xShmBarrier);
}

static int file_shm_unmap(sqlite3_file *f, int remove)
{
    return CALL(f, xShmUnmap, remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* shared memory, no memory mapping of the file */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static sqlite3_vfs *system_vfs;
static sqlite3_vfs fault_vfs;

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *out, int flags,
                    int *ret_flags)
{
    (void)vfs;
    struct file *file = (struct file *)out;
    file->real = (sqlite3_file *)(void *)(file + 1);
    int code = system_vfs->xOpen(system_vfs, name, file->real, flags, ret_flags);
    file->base.pMethods = file->real->pMethods ? &methods : NULL;
    return code;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    int code = ask(FAULT_CHANGE, SQLITE_IOERR_DELETE);
    return code ? code : system_vfs->xDelete(system_vfs, name, sync);
}

void fault_vfs_install(void)
{
    system_vfs = sqlite3_vfs_find("unix");
    fault_vfs = *system_vfs;
    fault_vfs.zName = "fault";
    fault_vfs.szOsFile = (int)sizeof(struct file) + system_vfs->szOsFile;
    fault_vfs.xOpen = vfs_open;
    fault_vfs.xDelete = vfs_delete;
    fault_vfs_arm(FAULT_NONE, 0, 0, false);
    if (sqlite3_vfs_register(&fault_vfs, 1)) abort();
}

void fault_vfs_remove(void)
{
    if (sqlite3_vfs_unregister(&fault_vfs)) abort();
    if (sqlite3_vfs_register(system_vfs, 1)) abort();
}

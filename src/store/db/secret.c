/* SPDX-License-Identifier: Apache-2.0
 *
 * The installation's secret, its subkeys and the signatures made with them. secret.key appears
 * whole or not at all: it is written and synced under another name, then linked to its own, which
 * fails rather than replace one that is there. What a crash leaves under the other name is removed
 * by the next start.
 */
#include "store/db/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/db/private.h"

#define KEY_NAME     SECRET_KEY_NAME
#define KEY_NAME_NEW SECRET_KEY_NAME ".new"

enum { KEY_BYTES = 32 };

struct secret {
    char id[SECRET_ID_BYTES];
    unsigned char subkeys[SECRET_PURPOSE_COUNT][HASH_BYTES];
};

#define SECRET_LABEL(name, label) [name] = label,
static const char *const labels[] = {SECRET_PURPOSES(SECRET_LABEL)};
#undef SECRET_LABEL

/* The master key while it is being read; only subkeys are kept. */
struct master {
    char bytes[SECRET_FILE_BYTES_MAX + 1]; /* one more, to see that a file is too long */
    size_t len;
};

static void master_wipe(struct master *master)
{
    crypto_wipe(master, sizeof *master);
}

/* The whole file, as far as there is room. */
static enum err master_read(int fd, const char *path, struct master *master, struct fault *reterr)
{
    enum err e = private_check(fd, PRIVATE_FILE, path, reterr);
    while (!e && master->len < sizeof master->bytes) {
        ssize_t n = read(fd, master->bytes + master->len, sizeof master->bytes - master->len);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fault(reterr, ERR_IO, "%s cannot be read: %s", path, strerror(errno));
        master->len += (size_t)n;
    }
    return e;
}

/* A synced file of random bytes under the other name. */
static enum err key_write(int folder_fd)
{
    AUTO(fd_closep)
    int fd =
        openat(folder_fd, KEY_NAME_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return ERR_IO;
    unsigned char bytes[KEY_BYTES];
    crypto_random(bytes, sizeof bytes);
    bool written = file_write_all(fd, (str){(const char *)bytes, sizeof bytes});
    enum err e = written ? OK : errno == ENOSPC ? ERR_STORAGE_FULL : ERR_IO;
    crypto_wipe(bytes, sizeof bytes);
    if (e) return e;
    return fsync(fd) ? ERR_IO : OK;
}

/* After this the key is there, whole, and its name is on disk: the folder is synced also when the
 * key was there, because the start that made it may have been killed before it did that. */
static enum err key_ensure(int folder_fd)
{
    if (unlinkat(folder_fd, KEY_NAME_NEW, 0) && errno != ENOENT) return ERR_IO;
    if (faccessat(folder_fd, KEY_NAME, F_OK, AT_SYMLINK_NOFOLLOW)) {
        enum err e = key_write(folder_fd);
        if (e) return e;
        if (linkat(folder_fd, KEY_NAME_NEW, folder_fd, KEY_NAME, 0)) return ERR_IO;
        if (unlinkat(folder_fd, KEY_NAME_NEW, 0)) return ERR_IO;
    }
    return fsync(folder_fd) ? ERR_IO : OK;
}

static enum err folder_key(const char *folder, bool make, struct master *master,
                           struct fault *reterr)
{
    AUTO(fd_closep) int folder_fd = -1;
    enum err e = private_folder_open(folder, &folder_fd, reterr);
    if (e) return e;
    e = make ? key_ensure(folder_fd) : OK;
    if (e) return fault(reterr, e, "%s/" KEY_NAME " cannot be made: %s", folder, strerror(errno));
    AUTO(fd_closep) int fd = openat(folder_fd, KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fault(reterr, errno == ENOENT ? ERR_CONFIG : ERR_IO,
                     "%s/" KEY_NAME " cannot be opened: %s", folder, strerror(errno));
    char path[4096];
    snprintf(path, sizeof path, "%s/" KEY_NAME, folder);
    e = master_read(fd, path, master, reterr);
    if (!e && master->len != KEY_BYTES)
        return fault(reterr, ERR_CONFIG,
                     "%s is damaged (%zu bytes instead of %d): restore it from a backup", path,
                     master->len, KEY_BYTES);
    return e;
}

/* Links are followed here: the operator chose the path, and container platforms mount secrets as
 * links. */
static enum err named_key(const char *path, struct master *master, struct fault *reterr)
{
    AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fault(reterr, ERR_CONFIG, "secret file %s cannot be opened: %s", path,
                     strerror(errno));
    enum err e = master_read(fd, path, master, reterr);
    if (e) return e;
    if (master->len < KEY_BYTES || master->len > SECRET_FILE_BYTES_MAX)
        return fault(reterr, ERR_CONFIG, "secret file %s must have %d to %d bytes", path, KEY_BYTES,
                     SECRET_FILE_BYTES_MAX);
    return OK;
}

static enum err secret_read(const char *folder, const char *file, bool make,
                            struct secret **ret_secret, struct fault *reterr)
{
    AUTO(master_wipe) struct master master = {0};
    enum err e = file && *file ? named_key(file, &master, reterr)
                               : folder_key(folder, make, &master, reterr);
    if (e) return e;
    struct secret *secret = mem_new(sizeof *secret);
    str key = {master.bytes, master.len};
    for (size_t i = 0; i < SECRET_PURPOSE_COUNT; i++)
        crypto_subkey(key, str_c(labels[i]), secret->subkeys[i]);
    /* The id is public: it is the hash of a subkey that signs nothing. */
    unsigned char id_key[HASH_BYTES], hash[HASH_BYTES];
    crypto_subkey(key, STR("fermata 1 id"), id_key);
    crypto_sha256((str){(const char *)id_key, sizeof id_key}, hash);
    crypto_hex((str){(const char *)hash, (SECRET_ID_BYTES - 1) / 2}, secret->id);
    *ret_secret = secret;
    return OK;
}

enum err secret_open(const char *folder, const char *file, struct secret **ret_secret,
                     struct fault *reterr)
{
    return secret_read(folder, file, true, ret_secret, reterr);
}

enum err secret_look(const char *folder, const char *file, struct secret **ret_secret,
                     struct fault *reterr)
{
    return secret_read(folder, file, false, ret_secret, reterr);
}

void secret_free(struct secret *secret)
{
    if (!secret) return;
    crypto_wipe(secret, sizeof *secret);
    free(secret);
}

void secret_freep(struct secret **secret)
{
    secret_free(*secret);
}

const char *secret_id(const struct secret *secret)
{
    return secret->id;
}

void secret_subkey(const struct secret *secret, enum secret_purpose purpose,
                   unsigned char out[static HASH_BYTES])
{
    memcpy(out, secret->subkeys[purpose], HASH_BYTES);
}

void secret_mac(const struct secret *secret, enum secret_purpose purpose, str data,
                char out[static SECRET_MAC_BYTES])
{
    unsigned char mac[HASH_BYTES];
    crypto_hmac((str){(const char *)secret->subkeys[purpose], HASH_BYTES}, data, mac);
    memcpy(out, secret->id, SECRET_ID_BYTES - 1);
    out[SECRET_ID_BYTES - 1] = '.';
    crypto_base64url((str){(const char *)mac, sizeof mac}, out + SECRET_ID_BYTES);
}

bool secret_verify(const struct secret *secret, enum secret_purpose purpose, str data, str mac)
{
    char expected[SECRET_MAC_BYTES];
    secret_mac(secret, purpose, data, expected);
    return str_eq_secret(mac, (str){expected, SECRET_MAC_BYTES - 1});
}

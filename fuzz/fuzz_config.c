/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as a configuration file. Whatever is taken must print as a file that is taken again and
 * prints the same: nothing is lost or changed between reading and showing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory, so that a run touches no disk; config_load opens it by this name. */
static const char *file_with(str text)
{
    static char path[32];
    static int fd = -1;
    if (fd < 0) fd = memfd_create("config", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, text.p, text.len, 0) != (ssize_t)text.len) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static enum err load(struct arena *arena, str text, struct config *config)
{
    char *const environment[] = {NULL};
    struct config_arg arg = {config_flag(STR("config")), str_c(file_with(text))};
    struct fault fault = {0};
    enum err e = config_load(arena, &arg, 1, environment, config, &fault);
    if (e && fault.text[0] == '\0') abort(); /* refused without a reason */
    return e;
}

/* The lines without what stands behind the value, which names other lines the second time. */
static void print(const struct config *config, struct buf *out)
{
    AUTO(buf_done) struct buf whole;
    buf_init(&whole, CONFIG_PRINT_BYTES_MAX);
    config_print(config, &whole);
    if (whole.full) abort();
    for (str rest = buf_str(&whole); rest.p;) {
        str line = str_split(&rest, '\n');
        for (size_t at = line.len; at-- > 0;) { /* the last "  # " is ours */
            if (!str_starts(str_drop(line, at), STR("  # "))) continue;
            line.len = at;
            break;
        }
        buf_append(out, line);
        buf_char(out, '\n');
    }
}

static bool has_secret_headers(const struct config_headers *headers)
{
    bool secrets = false;
    for (size_t i = 0; i < headers->count; i++) secrets |= !headers->items[i].file.len;
    return secrets;
}

/* Values that are not printed, and so not read back. */
static bool has_secrets(const struct config *config)
{
    bool secrets = config->api_key.len && !config->api_key_file.len;
    secrets |= config->model.api_key.len && !config->model.api_key_file.len;
    for (size_t i = 0; i < config->models.count; i++) {
        const struct config_model *model = &config->models.items[i];
        secrets |= model->api_key.len && !model->api_key_file.len;
    }
    for (size_t i = 0; i < config->http_tools.count; i++)
        secrets |= has_secret_headers(&config->http_tools.items[i].headers);
    for (size_t i = 0; i < config->mcps.count; i++) {
        const struct config_mcp *server = &config->mcps.items[i];
        secrets |= has_secret_headers(&server->headers) || server->env.count;
    }
    return secrets;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct config config;
    if (load(&arena, (str){(const char *)data, size}, &config)) return 0;

    AUTO(buf_done) struct buf first;
    buf_init(&first, CONFIG_PRINT_BYTES_MAX);
    print(&config, &first);
    bool secret = has_secrets(&config);
    if (load(&arena, buf_str(&first), &config)) abort();
    AUTO(buf_done) struct buf second;
    buf_init(&second, CONFIG_PRINT_BYTES_MAX);
    print(&config, &second);
    if (!secret && !str_eq(buf_str(&first), buf_str(&second))) abort();
    return 0;
}

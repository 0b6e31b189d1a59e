/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays kept inputs without libFuzzer: replay TARGET FOLDER gives each file of the folder to the
 * target, and says its name before, so that the last line names the one that broke it; replay alone
 * prints the names of the targets. REPLAY_TARGETS comes from meson.build: one row is one target.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/def.h"

enum { INPUT_SECONDS_MAX = 10 };

#define REPLAY_DECLARE(name) int replay_##name(const uint8_t *data, size_t size);
REPLAY_TARGETS(REPLAY_DECLARE)
#undef REPLAY_DECLARE

static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define REPLAY_ROW(name) {#name, replay_##name},
    REPLAY_TARGETS(REPLAY_ROW)
#undef REPLAY_ROW
};

/* The input has no byte more than it needs: reading behind its end is found. */
static bool replay_file(const struct target *target, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    bool known = file && fstat(fileno(file), &info) == 0;
    size_t size = known ? (size_t)info.st_size : 0;
    uint8_t *data = known ? malloc(size ? size : 1) : NULL;
    bool whole = data && fread(data, 1, size, file) == size;
    if (file) fclose(file);
    if (whole) {
        alarm(INPUT_SECONDS_MAX);
        target->run(data, size);
        alarm(0);
    }
    free(data);
    return whole;
}

static int replay_folder(const struct target *target, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    int count = 0, bad = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        printf("%s\n", path);
        fflush(stdout);
        if (!replay_file(target, path)) {
            printf("cannot be read\n");
            bad++;
        }
        count++;
    }
    closedir(dir);
    printf("%s: %d inputs\n", target->name, count);
    return count == 0 || bad > 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(targets); i++) {
        if (argc < 3)
            printf("%s\n", targets[i].name);
        else if (strcmp(targets[i].name, argv[1]) == 0)
            return replay_folder(&targets[i], argv[2]);
    }
    return argc < 3 ? 0 : 2;
}

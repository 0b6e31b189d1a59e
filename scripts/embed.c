/* SPDX-License-Identifier: Apache-2.0
 *
 * Build tool: `embed FILE...` prints the C table of the files as assets (app/assets.h). The ETag is
 * a hash of the content, so it changes exactly when the content does. `embed --prompts FILE...`
 * prints the table of prompts (agent/prompts.h) instead: names and bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".json", "application/json"},
};

static const char *type_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(dot, types[i].ending) == 0) return types[i].type;
    fprintf(stderr, "embed: no type for %s\n", path);
    exit(1);
}

/* FNV-1a, 64 bits: enough to tell two versions of a file apart. */
static uint64_t put_bytes(FILE *file, int number, size_t *ret_len)
{
    uint64_t hash = 0xcbf29ce484222325;
    size_t len = 0;
    printf("static const unsigned char bytes_%d[] = {", number);
    for (int c; (c = getc(file)) != EOF; len++) {
        hash = (hash ^ (unsigned)c) * 0x100000001b3;
        printf("%s%d,", len % 24 ? "" : "\n", c);
    }
    printf("0};\n");
    *ret_len = len;
    return hash;
}

struct entry {
    const char *name;
    uint64_t hash;
    size_t len;
};

static void put_assets(const struct entry *entries, int count)
{
    printf("const struct asset asset_table[] = {\n");
    for (int i = 0; i < count; i++) {
        int is_page = strcmp(entries[i].name, "index.html") == 0;
        printf("{\"/%s\", \"%s\", \"\\\"%016llx\\\"\", bytes_%d, %zu},\n",
               is_page ? "" : entries[i].name, type_of(entries[i].name),
               (unsigned long long)entries[i].hash, i, entries[i].len);
    }
    printf("};\nconst size_t asset_count = %d;\n", count);
}

static void put_prompts(const struct entry *entries, int count)
{
    printf("const struct prompt prompt_table[] = {\n");
    for (int i = 0; i < count; i++)
        printf("{\"%s\", bytes_%d, %zu},\n", entries[i].name, i, entries[i].len);
    printf("};\nconst size_t prompt_count = %d;\n", count);
}

int main(int argc, char **argv)
{
    int prompts = argc > 1 && strcmp(argv[1], "--prompts") == 0;
    char **paths = argv + 1 + prompts;
    int count = argc - 1 - prompts;
    struct entry *entries = calloc((size_t)count + 1, sizeof *entries);
    if (!entries) return 1;
    printf("#include \"%s\"\n", prompts ? "agent/prompts.h" : "app/assets.h");
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(paths[i], "rb");
        if (!file) {
            perror(paths[i]);
            return 1;
        }
        const char *slash = strrchr(paths[i], '/');
        entries[i].name = slash ? slash + 1 : paths[i];
        entries[i].hash = put_bytes(file, i, &entries[i].len);
        fclose(file);
    }
    (prompts ? put_prompts : put_assets)(entries, count);
    free(entries);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Build tool: `embed FILE...` prints the C table of the files as assets (app/assets.h). The ETag is
 * a hash of the content, so it changes exactly when the content does.
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
    const char *name, *type;
    uint64_t hash;
    size_t len;
};

int main(int argc, char **argv)
{
    struct entry *entries = calloc((size_t)argc, sizeof *entries);
    if (!entries) return 1;
    printf("#include \"app/assets.h\"\n");
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        const char *slash = strrchr(argv[i], '/');
        entries[i].name = slash ? slash + 1 : argv[i];
        entries[i].type = type_of(argv[i]);
        entries[i].hash = put_bytes(file, i, &entries[i].len);
        fclose(file);
    }
    printf("const struct asset asset_table[] = {\n");
    for (int i = 1; i < argc; i++) {
        int is_page = strcmp(entries[i].name, "index.html") == 0;
        printf("{\"/%s\", \"%s\", \"\\\"%016llx\\\"\", bytes_%d, %zu},\n",
               is_page ? "" : entries[i].name, entries[i].type, (unsigned long long)entries[i].hash,
               i, entries[i].len);
    }
    printf("};\nconst size_t asset_count = %d;\n", argc - 1);
    free(entries);
    return 0;
}

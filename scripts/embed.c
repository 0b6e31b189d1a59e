/* SPDX-License-Identifier: Apache-2.0
 *
 * Build tool: files as C arrays, on standard output.
 *
 *     embed --page MANIFEST    the table of the page's files (http/assets.h)
 *     embed --prompts FILE...  the table of prompts (agent/core/prompts.h): names and bytes
 *     embed --demo FILE        the script of the demo model (model/script.h)
 *
 * A line of the manifest is: path, content type, `immutable` or `revalidate`, name of a file beside
 * the manifest; tabs between them, and what follows is of no interest here. Beside that file may lie
 * the same one compressed, as NAME.br and NAME.gz. An ETag is a hash of the bytes that are sent, so
 * it changes exactly when they do, and no two forms of a file share one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096, FILES_MAX = 256, FORMS = 3, COLUMNS = 4 };

static const char *const endings[FORMS] = {".br", ".gz", ""}; /* as enum encoding has them */

struct form {
    uint64_t hash;
    size_t len;
    int number; /* of its array; -1: there is none */
};

struct entry {
    char *columns[COLUMNS];
    struct form forms[FORMS];
};

static void refuse(const char *what, const char *where)
{
    fprintf(stderr, "embed: %s: %s\n", what, where);
    exit(1);
}

/* FNV-1a, 64 bits: enough to tell two versions of a file apart. */
static struct form put_bytes(const char *path, bool optional)
{
    static int arrays;
    struct form form = {.hash = 0xcbf29ce484222325, .number = -1};
    FILE *file = fopen(path, "rb");
    if (!file && optional) return form;
    if (!file) refuse("cannot open", path);
    form.number = arrays++;
    printf("static const unsigned char bytes_%d[] = {", form.number);
    for (int c; (c = getc(file)) != EOF; form.len++) {
        form.hash = (form.hash ^ (unsigned)c) * 0x100000001b3;
        printf("%s%d,", form.len % 24 ? "" : "\n", c);
    }
    printf("0};\n");
    if (ferror(file)) refuse("cannot read", path);
    fclose(file);
    return form;
}

/* ---- the page ---- */

static void split(char *line, const char *manifest, struct entry *entry)
{
    line[strcspn(line, "\n")] = 0;
    char *copy = strdup(line);
    for (int i = 0; i < COLUMNS; i++) entry->columns[i] = strtok(i ? NULL : copy, "\t");
    if (!entry->columns[COLUMNS - 1]) refuse("a line has too few columns", manifest);
}

static void put_asset(const struct entry *entry)
{
    printf("{\"%s\", \"%s\", %d, {\n", entry->columns[0], entry->columns[1],
           strcmp(entry->columns[2], "immutable") == 0);
    for (int i = 0; i < FORMS; i++) {
        const struct form *form = &entry->forms[i];
        if (form->number < 0)
            printf("{0},\n");
        else
            printf("{\"\\\"%016llx\\\"\", bytes_%d, %zu},\n", (unsigned long long)form->hash,
                   form->number, form->len);
    }
    printf("}},\n");
}

static void put_page(const char *manifest)
{
    static struct entry entries[FILES_MAX];
    char line[LINE_BYTES], path[PATH_BYTES];
    int count = 0;
    FILE *file = fopen(manifest, "r");
    if (!file) refuse("cannot open", manifest);
    const char *slash = strrchr(manifest, '/');
    int folder = slash ? (int)(slash - manifest) + 1 : 0;
    printf("#include \"http/assets.h\"\n");
    for (; fgets(line, sizeof line, file); count++) {
        if (count == FILES_MAX) refuse("too many files", manifest);
        split(line, manifest, &entries[count]);
        for (int i = 0; i < FORMS; i++) {
            snprintf(path, sizeof path, "%.*s%s%s", folder, manifest, entries[count].columns[3],
                     endings[i]);
            entries[count].forms[i] = put_bytes(path, i < FORMS - 1);
        }
    }
    fclose(file);
    if (!count) refuse("no files", manifest);
    printf("const struct asset asset_table[] = {\n");
    for (int i = 0; i < count; i++) put_asset(&entries[i]);
    printf("};\nconst size_t asset_count = %d;\n", count);
}

/* ---- the prompts ---- */

static void put_prompts(char **paths, int count)
{
    static struct form forms[FILES_MAX];
    if (count > FILES_MAX) refuse("too many files", "--prompts");
    printf("#include \"agent/core/prompts.h\"\n");
    for (int i = 0; i < count; i++) forms[i] = put_bytes(paths[i], false);
    printf("const struct prompt prompt_table[] = {\n");
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(paths[i], '/');
        printf("{\"%s\", bytes_%d, %zu},\n", slash ? slash + 1 : paths[i], forms[i].number,
               forms[i].len);
    }
    printf("};\nconst size_t prompt_count = %d;\n", count);
}

/* ---- the demo ---- */

static void put_demo(const char *path)
{
    printf("#include \"model/script.h\"\n");
    struct form form = put_bytes(path, false);
    printf("const str demo_script = {(const char *)bytes_%d, %zu};\n", form.number, form.len);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--page") == 0)
        put_page(argv[2]);
    else if (argc > 2 && strcmp(argv[1], "--prompts") == 0)
        put_prompts(argv + 2, argc - 2);
    else if (argc == 3 && strcmp(argv[1], "--demo") == 0)
        put_demo(argv[2]);
    else
        refuse("usage", "embed --page MANIFEST | --prompts FILE... | --demo FILE");
    return fflush(stdout) || ferror(stdout);
}

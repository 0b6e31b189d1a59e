/* SPDX-License-Identifier: Apache-2.0
 *
 * base/json as a filter, for the comparison with Node in tests/api/json.test.mjs. Each line of
 * standard input is a document in hex; each line of output is "accept " and the document written
 * back from its tree, in hex, or "reject ", the offset and the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_tree.h"

enum { LINE_BYTES_MAX = 8 * 1024 * 1024 };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode in place; false if not hex. */
static bool unhex(char *line, size_t len)
{
    if (len % 2) return false;
    for (size_t i = 0; i < len; i += 2) {
        int high = hex_value(line[i]), low = hex_value(line[i + 1]);
        if (high < 0 || low < 0) return false;
        line[i / 2] = (char)(high * 16 + low);
    }
    return true;
}

static void print_tree(const struct json *root)
{
    AUTO(buf_done) struct buf written;
    buf_init(&written, LINE_BYTES_MAX);
    struct json_writer w;
    json_write_begin(&w, &written);
    json_tree_write(&w, root);
    if (written.full) abort();

    for (size_t i = 0; i < written.len; i++) printf("%02x", (unsigned char)written.p[i]);
}

/* A copy of exactly the document's size, so that a sanitizer sees a read behind its end. */
static void judge(str document)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    char *exact = malloc(document.len ? document.len : 1);
    if (!exact) abort();
    memcpy(exact, document.p, document.len);

    str text = {exact, document.len};
    struct json *root;
    struct json_error error;
    if (json_parse(&arena, text, &root, &error)) {
        printf("reject %zu %s\n", error.offset, error.reason);
    } else {
        json_tree_check(root, text, false);
        printf("accept ");
        print_tree(root);
        printf("\n");
    }
    free(exact);
}

int main(void)
{
    static char line[LINE_BYTES_MAX];
    while (fgets(line, sizeof line, stdin)) {
        size_t len = strcspn(line, "\n");
        if (line[len] != '\n' || !unhex(line, len)) return 1;
        judge((str){line, len / 2});
    }
    return 0;
}

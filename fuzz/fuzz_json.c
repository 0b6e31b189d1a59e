/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a JSON document. What is accepted must keep the promises of base/json.h: spans
 * inside the source, valid UTF-8, and a tree that survives being written and parsed again. A
 * refusal points into the document.
 */
#include "base/json.h"

#include <stdlib.h>

#include "json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WRITTEN_BYTES_MAX = 16 * 1024 * 1024 };

static void check_written(const struct json *root)
{
    AUTO(buf_done) struct buf written;
    AUTO(arena_done) struct arena arena;
    buf_init(&written, WRITTEN_BYTES_MAX);
    arena_init(&arena);

    struct json_writer w;
    json_write_begin(&w, &written);
    json_tree_write(&w, root);
    if (written.full || !utf8_valid(buf_str(&written))) abort();
    struct json *again;
    if (json_parse(&arena, buf_str(&written), &again, NULL)) abort();
    if (!json_tree_eq(root, again)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str text = {(const char *)data, size};
    struct json *root;
    struct json_error error;
    if (json_parse(&arena, text, &root, &error)) {
        if (error.offset > size || !error.reason) abort();
        return 0;
    }
    if (!utf8_valid(text)) abort();
    json_tree_check(root, text, size < 256);
    check_written(root);
    return 0;
}

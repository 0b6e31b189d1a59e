/* SPDX-License-Identifier: Apache-2.0
 *
 * json_scan held against json_parse, for tests and for fuzzing: one verdict, the same members with
 * the same bytes, keys and texts, however the document is cut. Aborts where they differ.
 */
#ifndef TESTS_JSON_SCAN_CHECK_H
#define TESTS_JSON_SCAN_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"

/* What the scan has seen of one document. */
struct scanned {
    struct json_scan scan;
    const struct json *member; /* of the tree: the one that comes, or that is open; NULL: no tree */
    size_t member_count, text_len;
    bool open, tree;
    const char *base; /* of the tree's text */
};

static inline void scan_wrong(const char *what)
{
    fprintf(stderr, "json_scan: %s\n", what);
    abort();
}

static inline void scanned_text(void *arg, str piece)
{
    struct scanned *seen = arg;
    if (!piece.len) scan_wrong("an empty piece of text");
    if (!seen->tree) return;
    if (!seen->open || seen->member->type != JSON_STRING) scan_wrong("text of no string");
    str rest = str_drop(seen->member->text, seen->text_len);
    if (!str_starts(rest, piece)) scan_wrong("another text");
    seen->text_len += piece.len;
}

static inline void scanned_begin(struct scanned *seen)
{
    const struct json_scan *scan = &seen->scan;
    if (seen->open) scan_wrong("a member inside a member");
    seen->open = true;
    seen->text_len = 0;
    if (!seen->tree) return;
    if (!seen->member) scan_wrong("one member too many");
    str key = seen->member->key, got = json_scan_key(scan);
    if (scan->key_cut != (key.len > JSON_SCAN_KEY_BYTES_MAX)) scan_wrong("a key of another length");
    if (scan->key_cut) key.len = JSON_SCAN_KEY_BYTES_MAX;
    if (!str_eq(key, got)) scan_wrong("another key");
    if (scan->member.type != seen->member->type) scan_wrong("another type");
    if (scan->member.from != (uint64_t)(seen->member->raw.p - seen->base) ||
        scan->member.from != scan->at)
        scan_wrong("another beginning");
}

static inline void scanned_end(struct scanned *seen)
{
    const struct json_scan *scan = &seen->scan;
    if (!seen->open) scan_wrong("an end without its beginning");
    seen->open = false;
    seen->member_count++;
    if (!seen->tree) return;
    if (scan->member.to - scan->member.from != seen->member->raw.len || scan->member.to != scan->at)
        scan_wrong("another end");
    if (seen->member->type == JSON_STRING && seen->text_len != seen->member->text.len)
        scan_wrong("a text without its end");
    seen->member = seen->member->next;
}

/* From a copy of just these bytes, so that a sanitizer sees a read behind them. */
static inline enum json_scan_mark scanned_feed(struct scanned *seen, str piece)
{
    char *copy = malloc(piece.len ? piece.len : 1);
    if (!copy) abort();
    if (piece.len) memcpy(copy, piece.p, piece.len);
    str rest = {copy, piece.len};
    enum json_scan_mark mark = JSON_SCAN_MORE;
    while (rest.len && mark != JSON_SCAN_REFUSED) {
        mark = json_scan_next(&seen->scan, &rest);
        if (mark == JSON_SCAN_BEGIN) scanned_begin(seen);
        if (mark == JSON_SCAN_END) scanned_end(seen);
        if (mark == JSON_SCAN_MORE && rest.len) scan_wrong("bytes left");
    }
    free(copy);
    return mark;
}

/* Is the key at `at` a member of the document itself? What stands before it is JSON. */
static inline bool key_of_document(str text, size_t at)
{
    bool quoted = false;
    unsigned depth = 0;
    for (size_t i = 0; i < at; i++) {
        char c = text.p[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
    }
    return depth == 1;
}

/* Pieces of `step` bytes behind a first one of `first`. Returns the verdict. */
static inline bool scan_cut(str text, const struct json *tree, size_t first, size_t step,
                            struct json_scan *ret_scan)
{
    struct scanned *seen = calloc(1, sizeof *seen);
    if (!seen) abort();
    *seen = (struct scanned){.member = tree ? tree->child : NULL, .tree = tree, .base = text.p};
    if (tree && tree->type != JSON_OBJECT) seen->member = NULL;
    json_scan_init(&seen->scan, scanned_text, seen);
    enum json_scan_mark mark = JSON_SCAN_MORE;
    for (size_t at = 0, len = first; at < text.len && mark != JSON_SCAN_REFUSED; at += len) {
        if (at) len = step;
        if (len > text.len - at) len = text.len - at;
        mark = scanned_feed(seen, (str){text.p + at, len});
    }
    bool fits = json_scan_finish(&seen->scan) == OK;
    const struct json_scan *scan = &seen->scan;
    if (fits && mark == JSON_SCAN_REFUSED) scan_wrong("refused, then taken");
    if (fits && (!scan->begun || !scan->ended || seen->open || scan->at != text.len))
        scan_wrong("taken in part");
    if (fits && tree &&
        (seen->member || scan->document.type != tree->type ||
         scan->document.from != (uint64_t)(tree->raw.p - text.p) ||
         scan->document.to - scan->document.from != tree->raw.len))
        scan_wrong("another document");
    *ret_scan = *scan;
    free(seen);
    return fits;
}

/* One cut. A duplicate key inside the document, or past what is remembered, is the only thing that
 * may be taken though json_parse refuses it. */
static inline void scan_check_cut(str text, const struct json *tree, const struct json_error *error,
                                  size_t first, size_t step)
{
    static const char duplicate[] = "duplicate key";
    struct json_scan scan;
    bool fits = scan_cut(text, tree, first, step, &scan);
    if (tree && !fits) scan_wrong("refused, which json_parse takes");
    if (tree || !fits) {
        if (!tree && scan.broken_char != (strcmp(error->reason, "invalid UTF-8") == 0) &&
            strcmp(error->reason, duplicate) != 0)
            scan_wrong("another mind about UTF-8");
        return;
    }
    if (strcmp(error->reason, duplicate) != 0) scan_wrong("taken, which json_parse refuses");
    if (key_of_document(text, error->offset) && scan.key_count < JSON_SCAN_KEYS_MAX) {
        ptrdiff_t len = str_find_char(str_drop(text, error->offset + 1), '"');
        if (len <= JSON_SCAN_KEY_BYTES_MAX) scan_wrong("a duplicate key of the document");
    }
}

/* Whole, byte by byte, and cut once at each of the first `cuts` bytes. */
static inline void scan_check(str text, size_t cuts)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *tree = NULL;
    struct json_error error = {0};
    enum err e = json_parse(&arena, text, &tree, &error);
    if (e) tree = NULL;
    scan_check_cut(text, tree, &error, text.len, 1);
    scan_check_cut(text, tree, &error, 1, 1);
    for (size_t at = 1; at < text.len && at <= cuts; at++)
        scan_check_cut(text, tree, &error, at, text.len);
}

#endif

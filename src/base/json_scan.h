/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as it passes by: the verdict of json_parse over bytes that come in any pieces, without a tree
 * and without memory that grows. If the document is an object, it tells where the value of each of
 * its members begins and ends.
 *
 *     for (str rest = piece; rest.len;)
 *         switch (json_scan_next(&scan, &rest)) { ... }
 *     ...
 *     enum err e = json_scan_finish(&scan);
 *
 * Two things are accepted that json_parse refuses, because they would have to be remembered: a
 * duplicate key in an object inside the document, or in the document itself beyond its first
 * JSON_SCAN_KEYS_MAX keys of at most JSON_SCAN_KEY_BYTES_MAX bytes; and more than JSON_VALUES_MAX
 * values.
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include "base/json.h"
#include "base/limits.h"

/* A value and the bytes it has: those from `from` up to `to`, counted from the first one scanned. */
struct json_scan_value {
    enum json_type type;
    uint64_t from, to;
};

struct json_scan_key {
    size_t len;
    char text[JSON_SCAN_KEY_BYTES_MAX];
};

/* Embedded. Made by json_scan_init; what stands before `private` may be read at any time. */
struct json_scan {
    uint64_t at;      /* bytes taken */
    bool begun;       /* the document's value has */
    bool ended;       /* likewise; if it is a number, told by json_scan_finish */
    bool broken_char; /* refused for UTF-8 that is none */
    struct json_scan_value document;
    struct json_scan_value member; /* the newest of the document; `to` once it has ended */
    bool key_cut;                  /* its key is longer than json_scan_key gives */

    /* private */
    unsigned char state, digits, low, high, left;
    bool in_key;        /* the string is a key */
    bool announced;     /* JSON_SCAN_BEGIN was told for the next byte */
    unsigned depth;     /* brackets open */
    uint64_t objects;   /* bit d: level d + 1 is an object, else an array */
    const char *word;   /* the rest of true, false or null */
    uint32_t unit, top; /* of \uXXXX, and the first half of a surrogate pair */
    char bytes[4];      /* of a character that comes in pieces */
    size_t byte_count;
    size_t key_count;
    struct json_scan_key key, keys[JSON_SCAN_KEYS_MAX];
    void (*on_text)(void *arg, str piece);
    void *arg;
};

/* on_text gets the decoded text of each member of the document that is a string, in pieces, from
 * inside json_scan_next; NULL: not needed. */
void json_scan_init(struct json_scan *scan, void (*on_text)(void *arg, str piece), void *arg);

enum json_scan_mark {
    JSON_SCAN_MORE,    /* all bytes are taken */
    JSON_SCAN_BEGIN,   /* the next byte is the first of the member's value */
    JSON_SCAN_END,     /* the byte before was its last */
    JSON_SCAN_REFUSED, /* the next byte cannot stand there; nothing is taken any more */
};

/* Take bytes up to the next mark; *bytes is moved behind them. */
enum json_scan_mark json_scan_next(struct json_scan *scan, str *bytes);

/* The newest member's key, decoded; at most JSON_SCAN_KEY_BYTES_MAX bytes of it. */
str json_scan_key(const struct json_scan *scan);

/* No more bytes come: ERR_BAD_REQUEST unless they were one whole document. */
enum err json_scan_finish(struct json_scan *scan) MUST_USE;

#endif

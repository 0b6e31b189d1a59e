/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, strict RFC 8259: a parser that builds a tree in an arena, and a writer that appends to a
 * buf.
 *
 * Numbers keep their source text, so 64-bit ids and 0.1 survive. Every value knows the bytes it was
 * parsed from (`raw`), so nothing stored is ever written again from the tree. Refused: duplicate
 * keys, invalid UTF-8, lone surrogates, a byte order mark, trailing bytes, depth over
 * JSON_DEPTH_MAX, more than JSON_VALUES_MAX values. The tree borrows from the source text where it
 * can: both arena and text must outlive it.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h" /* the writer takes only valid UTF-8 */

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_type type;
    uint32_t count;     /* members of an array or object */
    str raw;            /* the source bytes of this value */
    str key;            /* decoded; only for a member of an object */
    str text;           /* decoded string, or the number as written */
    struct json *child; /* first member */
    struct json *next;  /* next member of the same parent */
};

struct json_error {
    size_t offset;      /* byte where it went wrong */
    const char *reason; /* constant, for a person: "duplicate key", "invalid UTF-8", ... */
};

/* Parse one whole document. Every refusal is ERR_BAD_REQUEST: *ret_json is untouched and *reterr
 * (may be NULL) says where and why. What the arena took stays taken until its reset. */
enum err json_parse(struct arena *arena, str text, struct json **ret_json,
                    struct json_error *reterr) MUST_USE;

/* The same for what a stranger sent: it has at most JSON_VALUES_SURE values, and one more for each
 * JSON_VALUE_BYTES bytes, so that the tree is a small multiple of the text. */
enum err json_parse_sent(struct arena *arena, str text, struct json **ret_json,
                         struct json_error *reterr) MUST_USE;

/* Lookups accept NULL and values of any type, and give NULL, or the empty str, for what is not
 * there. */
const struct json *json_get(const struct json *object, str key);
const struct json *json_at(const struct json *array, size_t index);
str json_text(const struct json *string); /* STR_EMPTY unless a string */

/* ERR_INVALID_FIELD unless an integer literal that fits: 1.0, 1e3 and -0 are refused. */
enum err json_i64(const struct json *number, int64_t *ret_value) MUST_USE;
enum err json_u64(const struct json *number, uint64_t *ret_value) MUST_USE;

/* The nearest double. ERR_INVALID_FIELD unless a number of at most JSON_F64_BYTES_MAX bytes whose
 * nearest double is finite. */
enum err json_f64(const struct json *number, double *ret_value) MUST_USE;

/* The writer appends to a buf and puts the commas. Values and keys must be valid UTF-8. Beyond what
 * JSON requires it escapes U+2028 and U+2029, which end a line for some readers. A value without
 * its key, a key without its object or an end without its start is our bug, and asserted. When the
 * buf is full the writer goes on writing nothing: ask buf->full at the end.
 *
 *     struct json_writer w;
 *     json_write_begin(&w, &buf);
 *     json_object(&w);
 *     json_key(&w, STR("id"));    json_string(&w, id);
 *     json_key(&w, STR("count")); json_number_u64(&w, n);
 *     json_object_end(&w);
 */
struct json_writer {
    struct buf *out;
    unsigned depth;
    uint64_t objects; /* bit d: level d + 1 is an object, else an array */
    bool comma;       /* the next key or value needs one */
    bool keyed;       /* a key was written and waits for its value */
};

void json_write_begin(struct json_writer *w, struct buf *out);
void json_object(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_key(struct json_writer *w, str key);
void json_string(struct json_writer *w, str text);
void json_number_u64(struct json_writer *w, uint64_t value);
void json_number_i64(struct json_writer *w, int64_t value);
void json_bool(struct json_writer *w, bool value);
void json_null(struct json_writer *w);
void json_raw(struct json_writer *w, str json); /* bytes that are already JSON, as they are */

/* "key": value in one call. */
void json_member(struct json_writer *w, str key, str text);
void json_member_u64(struct json_writer *w, str key, uint64_t value);
void json_member_i64(struct json_writer *w, str key, int64_t value);
void json_member_bool(struct json_writer *w, str key, bool value);
void json_member_raw(struct json_writer *w, str key, str json);

/* A document on its way: a buffer with its writer.
 *
 *     AUTO(json_doc_done) struct json_doc doc;
 *     json_doc_open(&doc, FACT_FRAME_BYTES_MAX);
 *     json_object(&doc.w);
 *     ...
 *     return json_doc_copy(&doc, arena);
 */
struct json_doc {
    struct buf buf;
    struct json_writer w;
};

void json_doc_open(struct json_doc *doc, size_t bytes_max);
void json_doc_done(struct json_doc *doc);
str json_doc_copy(const struct json_doc *doc, struct arena *arena);

#endif

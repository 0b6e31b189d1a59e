/* SPDX-License-Identifier: Apache-2.0
 *
 * What the answer of an HTTP tool means. Pure; from any thread.
 */
#ifndef TOOL_HTTP_RESULT_H
#define TOOL_HTTP_RESULT_H

#include "base/json.h"
#include "tool/tool.h"

struct http_reply {
    int status;
    char *body; /* put on one line in place if it is JSON */
    size_t body_len;
    str locale;
};

/* Ends in TOOL_DONE or TOOL_FAILED. The result borrows from body and arena. Its error is at most
 * HTTP_WORDS_BYTES_MAX of the server's own words: to be searched for secrets, and then finished with
 * http_result_error. */
enum { HTTP_WORDS_BYTES_MAX = 16 * 1024 };
enum tool_end http_result_read(struct arena *arena, const struct http_reply *reply,
                               struct tool_result *ret_result);

/* The rule by which an answer is ours to take apart, for whoever sees its members one by one. */
enum http_part { PART_CONTENT, PART_RESULT, PART_ERROR, PART_HINTS, PART_OTHER };
struct http_shape {
    unsigned parts; /* that were there, as bits */
    bool other;     /* another member was, or one of a kind that it should not have */
};
enum http_part http_part_of(str key);
void http_shape_add(struct http_shape *shape, enum http_part part, enum json_type type);
bool http_shape_fits(const struct http_shape *shape); /* of an object */

/* Whether a member `error` says that something went wrong, and its words, as http_result_read gives
 * them. NULL is none. */
bool http_error_words(struct arena *arena, const struct json *error, str *ret_words);

/* What people are told of bytes that are neither JSON nor text. */
str http_bytes_notice(struct arena *arena, uint64_t count, str locale);

/* "HTTP 503: words" for a status that is not 2xx, else the words alone: on one line, at most
 * TOOL_ERROR_BYTES_MAX, and never empty. */
str http_result_error(struct arena *arena, int status, str words);

#endif

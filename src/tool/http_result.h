/* SPDX-License-Identifier: Apache-2.0
 *
 * What the answer of an HTTP tool means. Pure; from any thread.
 */
#ifndef TOOL_HTTP_RESULT_H
#define TOOL_HTTP_RESULT_H

#include "base/arena.h"
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

/* "HTTP 503: words" for a status that is not 2xx, else the words alone: on one line, at most
 * TOOL_ERROR_BYTES_MAX, and never empty. */
str http_result_error(struct arena *arena, int status, str words);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A long answer of an HTTP tool. It means what http_result.h says, but its bytes go to a spool file
 * as they come: memory holds what people and the model read of it, whatever its length.
 *
 * Everything on the loop thread; reading files happens beside it. The result that remains is a file
 * named after the call, or in memory if it turns out to have at most CALL_INLINE_BYTES_MAX.
 */
#ifndef TOOL_HTTP_LONG_H
#define TOOL_HTTP_LONG_H

#include "tool/tool.h"

struct http_long;
struct loop;
struct spool;

struct http_long_ops {
    /* The answer takes more again; once for each time that it was found full. */
    void (*on_drained)(void *arg);
    /* TOOL_DONE or TOOL_FAILED, once; perhaps from inside http_long_end. The result is borrowed until
     * it returns, its error as http_result_read has it; the file, if it is spooled, is the caller's
     * from here on. The answer is gone after it returns. */
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
};

/* An answer with the status 2xx. Name and locale are copied. */
struct http_long *http_long_new(struct loop *loop, struct spool *spool, str name, str locale,
                                const struct http_long_ops *ops, void *arg);

void http_long_add(struct http_long *answer, str bytes); /* the first time 3 bytes or more */
bool http_long_full(const struct http_long *answer);     /* hold back until on_drained */
void http_long_end(struct http_long *answer);            /* that was all */

/* Nothing of it is wanted: no callback comes any more, and no file stays. Not from inside on_end. */
void http_long_abort(struct http_long *answer);

#endif

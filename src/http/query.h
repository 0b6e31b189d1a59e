/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the query string of a request: names, numbers, limits. A bad value is refused by its
 * name. And what a caller takes for an answer.
 */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include "http/exchange.h"

/* The decoded text of a parameter, in the arena; {NULL, 0} if absent. */
enum err query_text(struct exchange *x, const char *name, str *ret_text, struct fault *reterr)
    MUST_USE;

/* A number; untouched if absent. */
enum err query_number(struct exchange *x, const char *name, uint64_t *number, struct fault *reterr)
    MUST_USE;

/* `limit`: LIST_LIMIT if absent, 1 to LIST_LIMIT_MAX. */
enum err query_limit(struct exchange *x, size_t *ret_limit, struct fault *reterr) MUST_USE;

/* Does Accept list one of these types (NULL-terminated), other than with q=0? */
bool query_accepts(const struct exchange *x, const char *const types[]);

#endif

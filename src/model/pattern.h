/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions of a script: POSIX extended, matched byte by byte, and only those that
 * cannot take the process's time or memory.
 */
#ifndef MODEL_PATTERN_H
#define MODEL_PATTERN_H

#include "base/err.h"
#include "base/str.h"

struct pattern;

/* ERR_CONFIG for what is not taken; the fault goes on behind its name: "match is malformed". */
enum err pattern_new(str text, struct pattern **ret_pattern, struct fault *reterr) MUST_USE;
void pattern_free(struct pattern *pattern); /* NULL is fine */

bool pattern_matches(const struct pattern *pattern, const char *text); /* anywhere in it */

#endif

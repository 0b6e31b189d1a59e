/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schema, the part of it that tools need (docs/TOOLS.md lists it). Pure. A schema that uses
 * anything else is refused by the name of the keyword and its path, instead of being checked less
 * strictly than its author thinks.
 */
#ifndef TOOL_SCHEMA_H
#define TOOL_SCHEMA_H

#include "base/json.h"

struct schema;

/* Compile. The arena holds the result; nothing of the text is kept. ERR_INVALID_FIELD names the
 * path ("properties.start.format") in field and says why. */
enum err schema_parse(struct arena *arena, const struct json *text, struct schema **ret_schema,
                      struct fault *reterr) MUST_USE;

/* A schema of somebody else, in all of JSON Schema: what we cannot express is not checked.
 * ERR_INVALID_FIELD only if there are more than SCHEMA_PROPERTIES_MAX properties. */
enum err schema_parse_lenient(struct arena *arena, const struct json *text,
                              struct schema **ret_schema, struct fault *reterr) MUST_USE;

/* ERR_INVALID_FIELD names the path of the first value that does not fit ("args.attendees[2]"), where
 * `name` ("args") is what the whole is called. */
enum err schema_check(const struct schema *schema, const struct json *value, const char *name,
                      struct fault *reterr) MUST_USE;

#endif

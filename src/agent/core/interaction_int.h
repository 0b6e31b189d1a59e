/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by ask.c, answer.c and interaction.c: texts of people and models, and refusals.
 */
#ifndef AGENT_CORE_INTERACTION_INT_H
#define AGENT_CORE_INTERACTION_INT_H

#include "agent/core/interaction.h"
#include "agent/core/texts.h"

enum {
    ESCAPE_BYTES_MAX = 6, /* \u0001 */
    PATH_BYTES = 128,     /* a fault has room for no more */
};

/* Without blanks at both ends: ASCII ones, and those that keyboards and documents bring along. */
str text_trim(str text);

/* "path.name", or "name" if the path is "". A name that is too long is cut at a character. */
void path_join(const char *path, str name, char out[static PATH_BYTES]);

/* Refuse the first member of `object` that is not one of `names` (NULL behind the last). `path` is
 * what the object is called, "" for the whole. */
enum err refuse_unknown(const struct json *object, const char *path, const char *const *names,
                        struct fault *reterr) MUST_USE;

/* Is there a type of field of this name? */
bool field_type_known(str name);

#endif

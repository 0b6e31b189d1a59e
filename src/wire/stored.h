/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of JSON objects that we have stored ourselves, without parsing the whole: a result or an
 * argument may be large, and as deep as json_parse allows before it stands inside of a fact. Pure.
 */
#ifndef WIRE_STORED_H
#define WIRE_STORED_H

#include "base/arena.h"

/* The bytes of a member's value; empty if it is not there, or null. The object must be valid JSON
 * whose own keys have no escapes. */
str stored_get(str object, str key);

/* A string member, decoded; empty if there is none. */
str stored_text(struct arena *arena, str object, str key);

/* A JSON value that is a string, decoded; empty for any other. */
str stored_string(struct arena *arena, str json);

#endif

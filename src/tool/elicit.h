/* SPDX-License-Identifier: Apache-2.0
 *
 * A question of an MCP server as a form for people, and what they filled in as its answer. Pure.
 *
 * The schema of such a question is a flat object of strings, numbers, booleans and choices, one or
 * several (2025-06-18 to 2026-07-28). A form that asks for a password or a key is not shown: the
 * protocol forbids it.
 */
#ifndef TOOL_ELICIT_H
#define TOOL_ELICIT_H

#include "base/arena.h"
#include "base/json.h"
#include "tool/tool.h"

/* The members of the schema as fields, in the form that agent/core/interaction.h gives them:
 * [{"name","label"?,"type","required"?,"choices"?,"description"?}]; "[]" if there are none.
 * ERR_INVALID_FIELD says why it is no form that we show, for the server. */
enum err elicit_fields(struct arena *arena, str schema, str *ret_fields, struct fault *reterr)
    MUST_USE;

/* What a person filled in ({"name": value, ...}) as `content` of the reply: values in the types that
 * the schema wants, defaults where nothing was given, choices by their constants. ERR_INVALID_FIELD
 * names the field and says why, for the person. */
enum err elicit_content(struct arena *arena, str schema, const struct json *values,
                        str *ret_content, struct fault *reterr) MUST_USE;

/* 16 hex digits of what is asked, by which an answer is known again: message, schema and url. */
str elicit_hash(struct arena *arena, const struct tool_question *question);

#endif

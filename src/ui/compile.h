/* SPDX-License-Identifier: Apache-2.0
 *
 * The card compiler: UiHints 2.1, what a tool or a model says, into UiSchema 2.0, what a renderer
 * draws. Pure: the same hints and context give the same bytes, on every machine, for ever; nothing
 * is allocated outside the arena. docs/CARDS.md is the manual of both formats.
 */
#ifndef UI_COMPILE_H
#define UI_COMPILE_H

#include "base/json.h"

enum ui_theme { UI_THEME_DEFAULT, UI_THEME_LIGHT, UI_THEME_DARK };

/* What the card is for. Ids may be empty and have at most UI_ID_BYTES_MAX bytes. */
struct ui_context {
    str locale; /* "zh" and what begins with it is zh-CN, everything else en */
    enum ui_theme theme;
    str request_id, tool_id, trace_id, user_id;
};

/* The schema as JSON on one line, in the arena, with at most UI_SCHEMA_BYTES_MAX bytes. Hints that
 * are none are ERR_INVALID_HINTS: fault.field is the JSON Pointer of what is wrong, and empty when
 * that is the whole document. The arena must be the one of the hints, or die before it. */
enum err ui_compile(struct arena *arena, const struct json *hints, const struct ui_context *context,
                    str *ret_schema, struct fault *reterr) MUST_USE;

#endif

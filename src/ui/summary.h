/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tool did, on one line for people: the content of its row in history. Never raw JSON, never
 * longer than SUMMARY_CHARS_MAX characters. Pure: the same source gives the same line.
 */
#ifndef UI_SUMMARY_H
#define UI_SUMMARY_H

#include "base/json.h"

/* Goes into a message's metadata as summary_version. It moves when a rule does, so that a line can
 * be told from what it would be today. */
enum { SUMMARY_VERSION = 1 };

struct summary_source {
    str tool;                         /* its name */
    str template_zh, template_en;     /* of the tool's own row; empty: ours, if we have one */
    const struct json *args, *result; /* NULL: none */
    str content;                      /* the tool's own words; may be empty */
    str error;                        /* why it failed; p is NULL if it did not */
    str locale;
};

/* A template is text with {placeholders}:
 *
 *     {title}         the member of that name, of the result or else of the arguments
 *     {title_or_id}   the first of these that is there
 *     {date_range}    from and to
 *     {count}         the member, or how many entries the result's only list has
 *     {tool}          the tool's name
 *
 * Times are printed as YYYY-MM-DD HH:MM with the offset that the argument has. If what a placeholder
 * names is not there, the part in parentheses around it is left out, or else the whole template. */
str build_tool_content_summary(struct arena *arena, const struct summary_source *source);

#endif

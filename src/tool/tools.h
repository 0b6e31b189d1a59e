/* SPDX-License-Identifier: Apache-2.0
 *
 * What all tools share: names, risks, the registry, and what a model sees of a result. Pure.
 */
#ifndef TOOL_TOOLS_H
#define TOOL_TOOLS_H

#include "base/arena.h"
#include "tool/tool.h"

/* 1 to 64 of [A-Za-z0-9_-], as model providers take them. */
bool tool_name_valid(str name);

/* ERR_INVALID_FIELD unless it is the name of a risk. */
enum err tool_risk_parse(str name, enum tool_risk *ret_risk) MUST_USE;

/* All tools of some packs in one registry, in that order. ERR_CONFIG names the tool whose name is
 * not valid, or stands there twice, or is one too many. The arena holds the rows; what they point to
 * stays the packs'. */
enum err tools_join(struct arena *arena, const struct tools *packs, size_t count,
                    struct tools *ret_tools, struct fault *reterr) MUST_USE;

/* Free every tool, each `self` once. No call may be open. */
void tools_free(const struct tools *tools);

/* What the model sees of a result: its error, its words, its JSON, in this order, and never more
 * than CALL_MODEL_BYTES_MAX. Of longer ones head and tail stand there, cut at characters, and between
 * them a line that says how many bytes are left out, in Chinese for a locale that begins with "zh",
 * else in English. Never empty. */
str tool_model_text(struct arena *arena, const struct tool_result *result, str locale);

/* Head and tail of a text, cut in the same way to at most `max` bytes (100 or more); the text itself
 * if it fits. */
str tool_text_cut(struct arena *arena, str text, size_t max, str locale);

/* The same of a text of which only both ends are known, cut anywhere: max bytes of each, or all of it
 * in `head`. */
struct tool_ends {
    str head, tail;
    uint64_t bytes; /* of the text */
};
str tool_ends_cut(struct arena *arena, const struct tool_ends *text, size_t max, str locale);

/* The longest beginning of valid UTF-8 that has at most `max` bytes and ends with a character. */
str tool_text_head(str text, size_t max);

bool tool_locale_zh(str locale);

#endif

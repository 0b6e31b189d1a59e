/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of tools on their way to a provider and back, for one request. Ours may have dots and other
 * letters; providers take few. What is offered under another name than ours is remembered; a name that
 * was not offered is only made fit. Pure.
 */
#ifndef MODEL_TOOL_NAMES_H
#define MODEL_TOOL_NAMES_H

#include "base/arena.h"
#include "model/model.h"

struct tool_name {
    str ours, theirs;
};

/* Of tools that are offered under another name. */
struct tool_names {
    const struct tool_name *rows;
    size_t count;
};

/* Give every offered tool a name that the provider takes and no other has. *request becomes one with
 * these names, in its tools and in the calls of its messages; what is new of it is in `arena`, the
 * names are in `keep`. */
struct tool_names tool_names_give(struct arena *arena, struct arena *keep,
                                  struct model_request *request);

/* Our name for the provider's; the same if it was not given. */
str tool_names_back(const struct tool_names *names, str theirs);

#endif

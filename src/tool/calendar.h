/* SPDX-License-Identifier: Apache-2.0
 *
 * The calendar pack: calendar_write, calendar_read, calendar_delete, calendar_share, user_resolve.
 * Real tools, on the store: a call is one job, and its effect and what it returned are one commit.
 * So each is idempotent: the same call id again has no second effect and gives the same bytes.
 *
 * How a call ends: TOOL_DONE with a JSON object; TOOL_FAILED with the reason when the request
 * cannot be met; TOOL_AWAY when the store could not, and then nothing has happened. Never
 * TOOL_LOST. A call that is cancelled ends by itself, without a word. Each end has a card
 * (calendar_cards.h).
 */
#ifndef TOOL_CALENDAR_H
#define TOOL_CALENDAR_H

#include "base/arena.h"
#include "tool/tool.h"

struct store;

/* The arena holds the tools; the store outlives them, and ends their last calls when it closes. */
void calendar_tools(struct arena *arena, struct store *store, const struct tool **ret_tools,
                    size_t *ret_count);

#endif

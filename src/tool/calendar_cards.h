/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards of the calendar pack: what became of a call, as UiHints 2.1 (docs/CARDS.md). Pure, and made
 * from the result alone: a call that is repeated finds the result it had and has the same card, byte
 * for byte.
 *
 * What people wrote stands there as plain text, on one line and of a bounded length. Buttons that
 * change something are tool actions: they ask for a call, which policy and approval then decide.
 */
#ifndef TOOL_CALENDAR_CARDS_H
#define TOOL_CALENDAR_CARDS_H

#include "base/arena.h"
#include "tool/tool.h"

/* The card of a result, or of its error, on one line in the arena, with at most TOOL_HINTS_BYTES_MAX
 * bytes. `tool` is one of the pack. Empty if the result is none of that tool. */
str calendar_card(struct arena *arena, str tool, const struct tool_result *result, str locale);

#endif

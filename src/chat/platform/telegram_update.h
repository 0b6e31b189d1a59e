/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of Telegram's Bot API as messages that came in. Pure.
 */
#ifndef CHAT_PLATFORM_TELEGRAM_UPDATE_H
#define CHAT_PLATFORM_TELEGRAM_UPDATE_H

#include "chat/inbound.h"

/* The result of getUpdates, at most CHANNEL_INBOUNDS_MAX of it. Updates that are nothing for us are
 * left out, and read all the same: *ret_cursor is behind the last one, empty if there was none.
 * ERR_BAD_REQUEST: it is no list of updates. Everything borrows from the JSON or lives in the
 * arena. */
enum err telegram_updates(struct arena *arena, const struct json *result, struct inbound **ret_list,
                          size_t *ret_count, str *ret_cursor) MUST_USE;

/* Is it a number as Telegram writes ids: an integer of 64 bits? */
bool telegram_id_valid(str id);

#endif

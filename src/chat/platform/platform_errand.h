/* SPDX-License-Identifier: Apache-2.0
 *
 * What adapters of chat platforms share: how an errand ends, and texts in addresses. Pure.
 */
#ifndef CHAT_PLATFORM_PLATFORM_ERRAND_H
#define CHAT_PLATFORM_PLATFORM_ERRAND_H

#include "chat/channel.h"

/* How an errand ends; each returns false, so that a step can return it. The words are for the operator,
 * cut between characters where there is no more room. */
bool errand_done(struct errand *errand);
bool errand_end(struct errand *errand, enum errand_verdict verdict, const char *format, ...)
    PRINTF(3, 4);
bool errand_end_for(struct errand *errand, enum errand_verdict verdict, msec wait_ms,
                    const char *format, ...) PRINTF(4, 5);

/* Everything but letters, digits, -._~ and what stands in `also` as %XX. */
str url_escape(struct arena *arena, str text, const char *also);

#endif

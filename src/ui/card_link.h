/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a card may lead. Decided here, once, so that no renderer has to know which addresses run
 * code. Pure.
 */
#ifndef UI_CARD_LINK_H
#define UI_CARD_LINK_H

#include "base/str.h"

bool link_is_path(str text); /* on this server: one / and what follows it */
bool link_is_safe(str text); /* such a path, or an https, http, mailto or tel address */

#endif

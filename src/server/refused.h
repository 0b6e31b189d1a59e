/* SPDX-License-Identifier: Apache-2.0
 *
 * An error as it is shown to whoever asked, by whichever way: our own affairs stay here.
 */
#ifndef SERVER_REFUSED_H
#define SERVER_REFUSED_H

#include "base/err.h"
#include "base/str.h"

struct server;

/* e, or ERR_INTERNAL; *why is what is said with it, and may be empty. It is counted; one that only we
 * can mend is logged, with the id of the request and what was asked, unless `gone`: whoever asked went
 * away, and that is why. */
enum err refused_shown(struct server *server, enum err e, struct fault *why, str id,
                       const char *what, bool gone);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors on their way to whoever asked: counted, logged where they are ours, and hidden then.
 */
#include "server/refused.h"

#include "base/log.h"
#include "server/server.h"

enum err refused_shown(struct server *server, enum err e, struct fault *why, str id,
                       const char *what, bool gone)
{
    if (e == ERR_STORE_UNAVAILABLE && !why->text[0])
        fault(why, e, "reading this took longer than one request may take; try again");
    if (e == ERR_UNAUTHENTICATED) server->metrics.unauthenticated++;
    if (e == ERR_RATE_LIMITED) server->metrics.rate_limited++;
    bool ours = e != ERR_SHUTTING_DOWN && !(e == ERR_CANCELLED && gone);
    if (err_status(e) >= 500 && ours)
        log_error("request.failed", LOG_CSTR("code", err_code(e)), LOG_STR("id", id),
                  LOG_CSTR("route", what), LOG_CSTR("reason", why->text));
    if (e < ERR_IO) return e;
    *why = (struct fault){0};
    return ERR_INTERNAL;
}

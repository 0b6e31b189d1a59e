/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate: every request of a listener passes through it on its way to a handler.
 */
#ifndef HTTP_GATE_H
#define HTTP_GATE_H

#include "net/http_server.h"

struct exchange;

extern const struct http_handler gate_public; /* ctx: struct server */
extern const struct http_handler gate_admin;  /* ctx: struct server; on fermata.sock */

/* The session cookie's name; browsers keep a __Host- cookie to https, this host and the whole path.
 */
const char *gate_cookie_name(bool https);

/* A wrong key came: OK, or ERR_RATE_LIMITED after too many from there, and the answer will say when
 * to come again. */
enum err gate_wrong_key(struct exchange *x, struct fault *reterr) MUST_USE;

#endif

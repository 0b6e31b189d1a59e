/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON body of a request, as a tree: small ones at once, large ones beside the loop, so that
 * nobody else waits for them. The tree has no more values than the bytes of the body allow, so it
 * is never more than a small multiple of what was sent.
 */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include "http/exchange.h"

/* Parse x->request->body into x->body; `done` comes once, perhaps at once, with OK or
 * ERR_INVALID_FIELD, and why. Until then nothing else may use the exchange's arena. When the process
 * ends meanwhile the request is answered, and done does not come. */
void body_parse(struct exchange *x,
                void (*done)(struct exchange *x, enum err e, const struct fault *why));

#endif

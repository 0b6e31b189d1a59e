/* SPDX-License-Identifier: Apache-2.0
 *
 * Attachments on the wire: their signed addresses, and their JSON.
 *
 *     <prefix>/api/v1/agent/attachments/{id}?exp=<unix seconds>&sig=<key id>.<HMAC>
 *
 * Whoever holds such an address may read that one file until then. Addresses are made when something
 * is read, and never stored.
 */
#ifndef THREAD_FILE_URL_H
#define THREAD_FILE_URL_H

#include "base/json.h"
#include "store/db/secret.h"
#include "store/table/attachments.h"

struct attachment_url {
    str text;     /* in the arena */
    msec expires; /* wall time */
};

/* `prefix`: the path of the public URL, "" if it has none. The same for some minutes, so that a
 * browser finds again what it has. */
struct attachment_url attachment_url_make(struct arena *arena, const struct secret *secret,
                                          str prefix, str id, msec now);

/* The parameters of a signed address, as they came. ERR_FORBIDDEN, and why: not ours, or over. */
enum err attachment_url_check(const struct secret *secret, str id, str exp, str sig, msec now,
                              struct fault *reterr) MUST_USE;

/* {"id","url","mimeType","filename","size","sha256","expiresAt","width"?,"height"?} */
void attachment_write(struct json_writer *w, const struct attachment *attachment,
                      const struct attachment_url *url);
str attachment_json(struct arena *arena, const struct attachment *attachment,
                    const struct attachment_url *url);

#endif

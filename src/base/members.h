/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a JSON object that somebody sent: known ones only, texts of a length. Refusals are
 * ERR_INVALID_FIELD and name the member.
 */
#ifndef BASE_MEMBERS_H
#define BASE_MEMBERS_H

#include "base/json.h"

/* Refuses a member that is not in the list (which ends in NULL), and what is no object. */
enum err members_known(const struct json *object, const char *const *names, struct fault *reterr)
    MUST_USE;

/* The text of a required string of 1 to len_max bytes. */
enum err member_string(const struct json *object, const char *name, size_t len_max, str *ret_text,
                       struct fault *reterr) MUST_USE;

#endif

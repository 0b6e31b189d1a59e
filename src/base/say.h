/* SPDX-License-Identifier: Apache-2.0
 *
 * Naming things in messages to a person: what somebody else wrote, made safe for a terminal, and
 * the known name that is nearest to an unknown one.
 */
#ifndef BASE_SAY_H
#define BASE_SAY_H

#include "base/str.h"

/* A copy to print: at most 64 bytes of the original, cut between characters and then marked with
 * "..."; control characters and invalid UTF-8 become '?'. Use it inside the call that prints:
 *
 *     fault(reterr, ERR_CONFIG, "unknown key \"%s\"", say(key).text);
 */
struct said {
    char text[72];
};
struct said say(str text);

/* Valid UTF-8 that shows as one line and means the same after being printed and read again: no
 * control characters, no line or paragraph separators, no byte order mark or non-characters. */
bool say_plain(str text);

/* Search for the known name nearest to an unknown one. Offer every known name with what it is
 * compared by, then ask; NULL when none is near enough to be meant. */
struct nearest {
    str unknown;
    char name[64]; /* a copy, so that names may be made on the way */
    unsigned distance;
};
void nearest_init(struct nearest *n, str unknown);
void nearest_offer(struct nearest *n, str compared, const char *name);
const char *nearest_name(const struct nearest *n);

/* `; did you mean "name"?`, or `; ` and `otherwise` when n knows no name. */
struct said_nearest {
    char text[160];
};
struct said_nearest say_nearest(const struct nearest *n, const char *otherwise);

#endif

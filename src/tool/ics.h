/* SPDX-License-Identifier: Apache-2.0
 *
 * Writer of iCalendar (RFC 5545), the part of it that a list of events needs. Pure: appends to a
 * buf, whose `full` is asked at the end. Texts must be valid UTF-8. A calendar without events has no
 * component, which the RFC does not foresee and calendar programs take.
 *
 *     ics_begin(&out);
 *     ics_put(&out, &event);    once for each
 *     ics_end(&out);
 */
#ifndef TOOL_ICS_H
#define TOOL_ICS_H

#include "base/json.h"

struct ics_event {
    str uid; /* the same whenever this event is written; unique in the world */
    str title;
    str location;                 /* may be empty */
    const struct json *attendees; /* a list of strings; may be NULL or empty */
    msec start, end;
    msec changed; /* when it got its present form */
};

void ics_begin(struct buf *out);
void ics_put(struct buf *out, const struct ics_event *event);
void ics_end(struct buf *out);

#endif

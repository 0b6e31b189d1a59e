/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /calendar.ics: one's own events, for other calendar programs. Written row by row on a reading
 * thread: a whole calendar may be large.
 */
#include "base/limits.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "server/server.h"
#include "store/db/store.h"
#include "store/table/calendar_rows.h"
#include "tool/ics.h"

struct calendar_export {
    struct job job;
    struct exchange *x;
    struct buf out;
    struct arena row; /* of the event being written */
    bool damaged;
};

static void on_event(void *arg, const struct calendar_event *event)
{
    struct calendar_export *export = arg;
    struct json *attendees = NULL;
    if (json_parse(&export->row, event->attendees, &attendees, NULL)) export->damaged = true;
    ics_put(&export->out, &(struct ics_event){.uid = event->id,
                                              .title = event->title,
                                              .location = event->location,
                                              .attendees = attendees,
                                              .start = event->start_utc,
                                              .end = event->end_utc,
                                              .changed = event->created});
    arena_reset(&export->row);
}

static enum err export_run(struct job *job, struct db *db)
{
    struct calendar_export *export = CONTAINER(job, struct calendar_export, job);
    ics_begin(&export->out);
    enum err e = calendar_each(db, export->x->who.user, on_event, export);
    ics_end(&export->out);
    if (!e && export->damaged) e = ERR_DAMAGED;
    return e ? e : export->out.full ? ERR_TOO_LARGE : OK;
}

static void export_done(struct job *job, enum err e)
{
    struct calendar_export *export = CONTAINER(job, struct calendar_export, job);
    struct exchange *x = export->x;
    struct buf out = export->out; /* the rest goes with the answer */
    static const struct http_field name = {STR("Content-Disposition"),
                                           STR("attachment; filename=\"calendar.ics\"")};
    arena_done(&export->row);
    if (e)
        exchange_error(x, e, NULL);
    else
        http_answer(x->request,
                    &(struct http_answer){.status = 200,
                                          .content_type = "text/calendar; charset=utf-8",
                                          .fields = &name,
                                          .field_count = 1,
                                          .body = buf_str(&out)});
    buf_done(&out);
}

void handle_calendar(struct exchange *x)
{
    struct calendar_export *export = ARENA_NEW(exchange_arena(x), struct calendar_export);
    export->job = (struct job){.run = export_run, .done = export_done, .ms_max = STORE_READ_MS_MAX};
    export->x = x;
    buf_init(&export->out, HTTP_ANSWER_BYTES_MAX / 2);
    arena_init(&export->row);
    exchange_read(x, &export->job, READ_WALK);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread as JSON.
 */
#include "feed/thread_json.h"

#include "agent/core/facts.h"
#include "base/clock.h"

static void put_time(struct json_writer *w, str name, msec time)
{
    char text[RFC3339_BYTES];
    clock_rfc3339(time, text);
    json_member(w, name, str_c(text));
}

/* What its runs used, each currency by itself. */
static void put_spent(struct json_writer *w, const struct spent_list *spent)
{
    json_key(w, STR("usage"));
    json_array(w);
    for (size_t i = 0; i < spent->count; i++) {
        const struct spent *row = &spent->rows[i];
        struct usage usage = {row->input_tokens, row->output_tokens, row->cost, row->currency};
        usage_write(w, &usage);
    }
    json_array_end(w);
}

void thread_write(struct json_writer *w, const struct thread *thread,
                  const struct spent_list *spent)
{
    json_object(w);
    json_member(w, STR("threadId"), thread->thread_id);
    json_member(w, STR("title"), thread->title);
    json_member(w, STR("agent"), thread->agent);
    json_member_i64(w, STR("seq"), thread->last_seq);
    put_time(w, STR("createdAt"), thread->created);
    put_time(w, STR("updatedAt"), thread->updated);
    if (spent) put_spent(w, spent);
    json_object_end(w);
}

str thread_json(struct arena *arena, const struct thread *thread, const struct spent_list *spent)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 64 * 1024);
    thread_write(&doc.w, thread, spent);
    return json_doc_copy(&doc, arena);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as its rows stand, read in one go.
 */
#include "agent/shell/loaded.h"

#include <stdlib.h>

#include "agent/shell/save.h"
#include "base/limits.h"

struct loaded *loaded_new(void)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) abort();
    arena_init(&loaded->arena);
    return loaded;
}

void loaded_free(struct loaded *loaded)
{
    if (!loaded) return;
    arena_done(&loaded->arena);
    free(loaded);
}

/* The newest rows, and before them the person's own words of this run, should they be older. */
static enum err read_history(struct db *db, struct loaded *loaded)
{
    struct arena *arena = &loaded->arena;
    struct message_list *page = &loaded->messages, first = {0};
    int64_t thread = loaded->thread.id, start = loaded->run.start_seq;
    loaded->history = true;
    enum err e = message_tail(db, arena, thread, loaded->view.state.from_message,
                              RUN_CONTEXT_MESSAGES_MAX, page);
    if (!e && loaded->view.state.round_used)
        e = calls_seen(db, arena, loaded->run.id, &loaded->seen);
    if (e || !page->more || !page->count || page->messages[0].seq <= start + 1) return e;

    e = message_page(db, arena, thread, 0, start ? start : -1, RUN_CONTEXT_REQUEST_MAX, &first);
    if (e) return e;
    struct message *all = arena_array(arena, first.count + page->count, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < first.count; i++)
        if (str_eq(first.messages[i].role, STR("user")) &&
            first.messages[i].seq < page->messages[0].seq)
            all[count++] = first.messages[i];
    for (size_t i = 0; i < page->count; i++) all[count++] = page->messages[i];
    page->messages = all;
    page->count = count;
    return OK;
}

enum err loaded_read(struct db *db, int64_t thread, int64_t facts_max, struct loaded *ret_loaded)
{
    struct loaded *loaded = ret_loaded;
    struct arena kept = loaded->arena;
    arena_reset(&kept);
    *loaded = (struct loaded){.arena = kept};
    struct arena *arena = &loaded->arena;
    enum err e = thread_by_id(db, arena, thread, &loaded->thread);
    if (e) return e;
    e = run_current(db, arena, thread, &loaded->run);
    if (e == ERR_NOT_FOUND) {
        loaded->queued = true;
        return run_next(db, arena, thread, &loaded->run);
    }
    if (!e)
        e = view_load(db, arena, &loaded->run, loaded->thread.owner, &loaded->view,
                      &loaded->version, &loaded->why);
    loaded->damaged = e == ERR_DAMAGED || e == ERR_NOT_FOUND;
    if (loaded->damaged) return OK;
    if (e || graph_effect(&loaded->view) != EFFECT_MODEL) return e;
    bool here = !facts_max || history_short(&loaded->thread, facts_max);
    return here ? read_history(db, loaded) : OK;
}

bool history_short(const struct thread *thread, int64_t facts_max)
{
    return thread->last_seq <= facts_max && thread->bytes <= RUN_HISTORY_BYTES_MAX;
}

bool loaded_whole(const struct loaded *loaded)
{
    if (loaded->queued || loaded->damaged || loaded->history) return true;
    return graph_effect(&loaded->view) != EFFECT_MODEL;
}

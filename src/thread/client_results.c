/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client says in other names: results of front-end calls, else forged.
 *
 *     a tool message
 *       its call waits for the client     its result, unless the thread has a message of its id
 *       its call is settled               ignored: it comes too late, or again
 *       its id is known to the thread     ignored: the client's memory of the past
 *       else                              forged
 *     the assistant's last word           ignored
 *
 * What is not the thread's own, while the run waits for somebody, is noted once for the request.
 */
#include "thread/client_results.h"

#include "base/limits.h"
#include "store/table/calls.h"

/* The thread, as far as it matters here. */
struct client_results_place {
    struct db *db;
    struct arena *arena;
    int64_t thread;
    const struct run_input *input;
    struct pending *pending;
    struct call_list late; /* id and state of the calls of its newest runs; read when needed */
    bool has_late;
};

static const struct call *call_of(const struct call_list *calls, str call_id)
{
    for (size_t i = 0; call_id.len && i < calls->count; i++)
        if (str_eq(calls->rows[i].call_id, call_id)) return &calls->rows[i];
    return NULL;
}

/* Is it over with the call? False also if the thread has no such call. */
static enum err is_settled(struct client_results_place *place, str call_id, bool *ret_settled)
{
    enum err e = OK;
    if (!place->has_late) e = calls_late(place->db, place->arena, place->thread, &place->late);
    if (e) return e;
    place->has_late = true;
    const struct call *call = call_of(&place->late, call_id);
    *ret_settled = call && call_state_settled(call->state);
    return OK;
}

/* The id of a new row: the client's, unless a message of this request has it, too. */
static str row_id(const struct run_input *input, str id)
{
    for (size_t i = 0; i < input->message_count; i++)
        if (str_eq(input->messages[i].id, id)) return STR_EMPTY;
    return id_valid(id) ? id : STR_EMPTY;
}

/* Is it about a call that waits for the client? Then it is used, unless the request has said
 * something of that call before, or the thread has it. */
static bool is_front(struct client_results_place *place, const struct claim *claim, bool known)
{
    struct pending *pending = place->pending;
    for (size_t i = 0; i < pending->front_count; i++)
        if (str_eq(pending->fronts[i].call_id, claim->call_id)) return true;
    if (!call_of(&pending->calls, claim->call_id)) return false;
    if (!known)
        pending_front(pending, &(struct front_result){.call_id = claim->call_id,
                                                      .message_id = row_id(place->input, claim->id),
                                                      .text = claim->text,
                                                      .failed = claim->failed});
    return true;
}

/* Does the call wait for a person? */
static bool is_asked(const struct pending *pending, str call_id)
{
    for (size_t i = 0; call_id.len && i < pending->open.count; i++)
        if (str_eq(call_id, pending->open.rows[i].call_id)) return true;
    return false;
}

/* *ret_foreign: it is not the thread's own word. */
static enum err look_at(struct client_results_place *place, const struct claim *claim,
                        bool *ret_foreign)
{
    bool known = false, settled = false;
    enum err e = claim->id.len ? message_exists(place->db, place->thread, claim->id, &known) : OK;
    if (e) return e;
    *ret_foreign = !claim->tool && !known;
    if (!claim->tool || is_front(place, claim, known)) return OK;
    bool asked = is_asked(place->pending, claim->call_id);
    if (!asked && !known) e = is_settled(place, claim->call_id, &settled);
    if (!e) *ret_foreign = asked || (!known && !settled);
    return e;
}

enum err client_results_find(struct db *db, struct arena *arena, const struct settle *settle,
                             int64_t thread, const struct run_input *input, struct pending *pending,
                             struct client_results *ret_client_results)
{
    struct client_results_place place = {
        .db = db, .arena = arena, .thread = thread, .input = input, .pending = pending};
    struct client_results results = {0};
    enum err e = OK;
    for (size_t i = 0; !e && i < input->claim_count; i++) {
        const struct claim *claim = &input->claims[i];
        bool foreign = false;
        e = look_at(&place, claim, &foreign);
        results.noted |= foreign && pending->asked;
        if (foreign && claim->tool && !results.forged) results.forged = claim;
    }
    if (!e && results.noted) e = settle_refused(db, settle, thread, NULL, REFUSAL_CLIENT_HISTORY);
    if (!e) *ret_client_results = results;
    return e;
}

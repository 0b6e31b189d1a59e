/* SPDX-License-Identifier: Apache-2.0
 *
 * All that one user has becomes another's: the first key takes over what `local` had. The rows move
 * (store/table/owners.c); the states of runs under way name the new owner from then on, and whoever
 * works on one loads it anew.
 */
#include "agent/shell/adopt.h"

#include "agent/core/state.h"
#include "base/limits.h"
#include "store/table/audit.h"
#include "store/table/conversation.h"
#include "store/table/owners.h"

/* A state that cannot be read fails its run when that goes on, as ever. */
static enum err move_run(struct db *db, int64_t run, const struct adoption *adoption)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf out;
    struct state state;
    struct fault why = {0};
    unsigned char hash[HASH_BYTES];
    int64_t version = 0;
    str bytes;
    arena_init(&arena);
    buf_init(&out, STATE_BYTES_MAX);
    enum err e = snapshot_load(db, &arena, run, &version, &bytes);
    if (e) return e == ERR_NOT_FOUND || e == ERR_DAMAGED ? OK : e;
    if (state_parse(&arena, bytes, &state, &why) || !str_eq(state.user_id, adoption->from))
        return OK;
    if (!state.bound_owner.len) state.bound_owner = state.user_id;
    state.user_id = adoption->to;
    state_write(&out, &state);
    if (out.full) return ERR_TOO_LARGE;
    crypto_sha256(buf_str(&out), hash);
    return snapshot_replace(db, run, buf_str(&out), hash);
}

static enum err note(struct db *db, const struct adoption *adoption, int64_t threads)
{
    struct audit_entry entry = {
        .action = AUDIT_ADOPTED, .who = adoption->to, .via = STR("key"), .at = adoption->now};
    if (!threads || !adoption->audit_key) return OK;
    entry.why = adoption->from;
    crypto_sha256(adoption->from, entry.hash);
    return audit_note(db, adoption->audit_key, &entry);
}

enum err adopt_all(struct db *db, struct arena *arena, const struct adoption *adoption,
                   int64_t *ret_threads)
{
    struct run_ids runs = {0};
    int64_t before = 0, after = 0;
    enum err e = owner_threads(db, adoption->from, &before);
    if (!e) e = owner_move(db, adoption->from, adoption->to);
    if (!e) e = owner_runs(db, arena, adoption->to, &runs);
    for (size_t i = 0; !e && i < runs.count; i++) e = move_run(db, runs.ids[i], adoption);
    if (!e) e = owner_threads(db, adoption->from, &after);
    if (!e) e = note(db, adoption, before - after);
    if (!e) *ret_threads = before - after;
    return e;
}

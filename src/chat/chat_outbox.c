/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes out to a person in a chat: in order, within what the platform allows, once. The idea:
 * the head of a person's queue decides. It is on its way, or waits for its time, or waits for the
 * person, or is taken; nothing overtakes it, so the order needs no other bookkeeping. A notice that
 * the budget has no room for is given up instead, for nobody needs a late hint.
 *
 * What the person may be sent is counted in their row. A send is counted in the job that marks it as
 * sending; it is given back in the job that says that it surely did not happen. In between, and after
 * a crash, it counts.
 *
 * A message may come in while another one is on its way out, and nobody knows which of the two the
 * platform saw first:
 * 1. The one on its way counts against the new allowance too.
 * 2. Told that the allowance is spent, it is tried once more, for that may have been the old one.
 * `heard` of the person and `next` of the row say which of the two we saw first, whatever the clock
 * does.
 *
 * To add a verdict: its row in enum errand_verdict and a case in outbox_end.
 */
#include "chat/chat_outbox.h"

#include "base/id.h"
#include "base/limits.h"
#include "duty/row_worker.h"

enum {
    SECOND = 1000,
    LOGIN_WAIT_MS = 5 * SECOND,
    WAIT_MS_MAX = 24 * 60 * 60 * SECOND, /* whatever a platform says */
    UNKNOWNS_MAX = 3,                    /* an answer is shown at most so often by mistake */
    OFTEN_MAX = 5, /* attempts, where the platform says that it were too many */
};

static const msec TRYING_MS_MAX = 24 * 60 * 60 * (msec)SECOND;

static msec wait_after(uint32_t attempts, msec wait_ms)
{
    assert(attempts);
    if (wait_ms > 0) return wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX;
    return backoff_ms(attempts);
}

/* Longer each time, whatever little the platform asks for. */
static msec wait_often(uint32_t attempts, msec wait_ms)
{
    static const msec often_ms[] = {10 * SECOND, 30 * SECOND, 60 * SECOND};
    msec asked = wait_after(attempts, wait_ms);
    msec usual = often_ms[attempts < COUNT(often_ms) ? attempts - 1 : COUNT(often_ms) - 1];
    return usual > asked ? usual : asked;
}

static str new_client_id(struct arena *arena)
{
    char id[ID_BYTES];
    id_random(id);
    return arena_str(arena, str_c(id));
}

/* ---- what may leave ---- */

static bool window_over(const struct peer *peer, msec now)
{
    return peer->window && now >= peer->window;
}

bool outbox_allows(const struct channel_traits *traits, const struct peer *peer,
                   enum out_class class, msec now)
{
    if (window_over(peer, now)) return false;
    if (!peer->allowance) return true;
    uint32_t kept = class == OUT_NOTICE || class == OUT_FINAL ? traits->sends_kept : 0;
    if (class == OUT_NOTICE && kept) kept++;                     /* and one for an answer */
    if (class == OUT_FINAL && kept >= peer->allowance) kept = 0; /* which leaves in the end */
    return peer->allowance > kept && peer->used < peer->allowance - kept;
}

/* The platform counts from when it saw the message, which may be a while ago if we were away; a
 * clock of theirs that is ahead gives nothing more. One that is so far behind that the window would be
 * over is not believed: they have written just now, and the platform says so if it is over. 0: for
 * ever. */
static msec window_of(const struct channel_traits *traits, const struct inbound *inbound, msec now)
{
    msec window_ms = inbound->window_ms ? inbound->window_ms : traits->window_ms;
    msec said = inbound->at > 0 && inbound->at < now ? inbound->at : now;
    if (!window_ms) return 0;
    if (window_ms <= now - said) said = now;
    return window_ms < INT64_MAX - said ? said + window_ms : INT64_MAX;
}

/* What a press of a button gives may end before what is left of the message before it. Nobody knows
 * what is left while one is on its way, or if the platform did not take the last one. */
static bool keeps_old(const struct channel_traits *traits, const struct peer *peer, msec window)
{
    if (!peer->heard || !window) return false;
    bool longer = peer->window ? peer->window > window : !traits->window_ms;
    bool left = peer->allowance ? peer->used < peer->allowance : !traits->sends_max;
    return longer && left;
}

enum err outbox_heard(struct db *db, const struct channel_traits *traits,
                      const struct inbound *inbound, struct peer *peer, msec now)
{
    AUTO(arena_done) struct arena arena;
    struct out_row head = {0};
    arena_init(&arena);
    enum err e = out_first(db, &arena, peer->id, &head);
    if (e && e != ERR_NOT_FOUND) return e;
    bool sending = !e && head.state == OUT_SENDING;
    bool calm = e == ERR_NOT_FOUND || (head.state == OUT_READY && !head.attempts);
    msec window = window_of(traits, inbound, now);
    if (!calm || !keeps_old(traits, peer, window)) {
        peer->window = window;
        peer->allowance = inbound->allowance ? inbound->allowance : traits->sends_max;
        peer->used = sending;
    }
    peer->heard = sending && now <= head.next ? head.next + 1 : now;
    if (inbound->reply_token.len || traits->topics) peer->reply_token = inbound->reply_token;
    e = peer_update(db, peer);
    return e ? e : out_unpark(db, peer->id, now);
}

/* ---- putting ---- */

enum err outbox_put(struct db *db, struct arena *arena, struct out_row *row, msec now)
{
    assert(row->text.len || row->file.len);
    if (!row->client_id.len) row->client_id = new_client_id(arena);
    if (!row->created) row->created = now;
    row->state = OUT_READY;
    size_t waiting = 0;
    enum err e = out_add(db, row);
    if (!e) e = out_waiting(db, row->peer, &waiting);
    for (; !e && waiting > OUTBOX_WAITING_MAX; waiting--) e = out_drop_one(db, row->peer);
    return e;
}

/* ---- sending ---- */

static enum err set_state(struct db *db, struct out_row *row, enum out_state state)
{
    row->state = state;
    return out_update(db, row);
}

static enum err start_sending(struct db *db, struct out_row *row, struct peer *peer, msec now)
{
    peer->used++;
    row->next = now > peer->heard ? now : peer->heard;
    if (!row->since) row->since = now;
    enum err e = peer_set_used(db, peer->id, peer->used);
    return e ? e : set_state(db, row, OUT_SENDING);
}

/* Behind what waits for the person to write again a question may still leave: sends are kept for it. */
static enum err take_urgent(struct db *db, struct arena *arena, const struct channel_traits *traits,
                            struct peer *peer, msec now, struct out_row *ret_row, msec *ret_at)
{
    struct out_row row = {0};
    enum err e = out_urgent(db, arena, peer->id, &row);
    if (e) return e;
    /* Without a number of its own the platform has said that it takes nothing more. */
    if (!peer->allowance || !outbox_allows(traits, peer, row.class, now)) return ERR_NOT_FOUND;
    if (row.next > now) {
        *ret_at = row.next;
        return ERR_NOT_FOUND;
    }
    e = start_sending(db, &row, peer, now);
    if (!e) *ret_row = row;
    return e;
}

enum err outbox_take(struct db *db, struct arena *arena, const struct channel_traits *traits,
                     int64_t peer_id, msec now, struct out_row *ret_row, struct peer *ret_peer,
                     msec *ret_at)
{
    struct peer peer = {0};
    struct out_row row = {0};
    *ret_at = 0;
    enum err e = peer_by_id(db, arena, peer_id, &peer);
    while (!e) {
        e = out_first(db, arena, peer_id, &row);
        if (e) break;
        if (row.state == OUT_SENDING) return ERR_NOT_FOUND;
        if (row.state == OUT_PARKED) {
            e = take_urgent(db, arena, traits, &peer, now, &row, ret_at);
            break;
        }
        if (row.next > now) {
            *ret_at = row.next;
            return ERR_NOT_FOUND;
        }
        if (outbox_allows(traits, &peer, row.class, now)) {
            e = start_sending(db, &row, &peer, now);
            break;
        }
        bool stays = row.class != OUT_NOTICE || window_over(&peer, now);
        e = set_state(db, &row, stays ? OUT_PARKED : OUT_DROPPED);
    }
    if (e) return e;
    *ret_row = row;
    *ret_peer = peer;
    return OK;
}

/* ---- how it ended ---- */

/* Tried for long enough, it waits for the person; a hint waits for nobody. */
static void try_later(struct out_row *row, msec wait_ms, msec now)
{
    if (row->attempts < UINT32_MAX) row->attempts++;
    row->next = now + wait_after(row->attempts, wait_ms);
    row->state = OUT_READY;
    if (now - row->since < TRYING_MS_MAX) return;
    row->state = row->class == OUT_NOTICE ? OUT_DROPPED : OUT_PARKED;
}

/* Where a repeat is known by its id it is sent as if nothing had happened. Elsewhere what the person
 * waits for is sent once more, as another message that says so. */
static void end_unknown(struct arena *arena, const struct channel_traits *traits,
                        struct out_row *row, msec wait_ms, msec now)
{
    row->unknowns++;
    if (traits->dedups) {
        try_later(row, wait_ms, now);
        return;
    }
    if (row->class != OUT_FINAL && row->class != OUT_QUESTION) {
        row->state = OUT_DROPPED;
        return;
    }
    row->again = true;
    row->client_id = new_client_id(arena);
    try_later(row, wait_ms, now);
    if (row->unknowns >= UNKNOWNS_MAX) row->state = OUT_PARKED;
}

/* Only the number of the row given is believed: the job may run twice. */
enum err outbox_end(struct db *db, struct arena *arena, const struct channel_traits *traits,
                    struct out_row *row, enum errand_verdict verdict, msec wait_ms, str server_id,
                    msec now)
{
    assert((unsigned)verdict < VERDICT_COUNT);
    struct out_row after = {0};
    struct peer peer = {0};
    enum err e = out_by_n(db, arena, row->n, &after);
    if (!e && after.state != OUT_SENDING) e = ERR_NOT_FOUND;
    if (!e) e = peer_by_id(db, arena, after.peer, &peer);
    if (e) return e;
    bool heard_meanwhile = peer.heard > after.next;
    uint32_t before = peer.used, given_back = peer.used ? peer.used - 1 : 0;
    switch (verdict) {
    case VERDICT_DONE:
        after.state = OUT_SENT;
        after.server_id = server_id;
        break;
    case VERDICT_AGAIN:
        peer.used = given_back;
        try_later(&after, wait_ms, now);
        break;
    case VERDICT_OFTEN:
        peer.used = given_back;
        try_later(&after, wait_often(after.attempts + 1, wait_ms), now);
        if (after.attempts >= OFTEN_MAX)
            after.state = after.class == OUT_NOTICE ? OUT_DROPPED : OUT_PARKED;
        break;
    case VERDICT_UNKNOWN:
        end_unknown(arena, traits, &after, wait_ms, now);
        break;
    case VERDICT_SPENT:
        peer.used = heard_meanwhile ? given_back : peer.allowance;
        if (heard_meanwhile)
            try_later(&after, wait_ms, now);
        else
            after.state = OUT_PARKED;
        break;
    case VERDICT_LOGIN: /* no fault of the message: the time does not count as trying */
        peer.used = given_back;
        after.since = 0;
        after.next = now + LOGIN_WAIT_MS;
        after.state = OUT_READY;
        break;
    case VERDICT_REFUSED: /* perhaps counted by the platform */
    case VERDICT_COUNT:
        after.state = OUT_DROPPED;
        break;
    }
    if (peer.used != before) e = peer_set_used(db, peer.id, peer.used);
    if (!e) e = out_update(db, &after);
    if (!e) *row = after;
    return e;
}

enum err outbox_recover(struct db *db, struct arena *arena, const struct channel_traits *traits,
                        int64_t peer, msec now)
{
    struct out_row head = {0};
    enum err e = out_first(db, arena, peer, &head);
    if (e) return e == ERR_NOT_FOUND ? OK : e;
    if (head.state != OUT_SENDING) return OK;
    return outbox_end(db, arena, traits, &head, VERDICT_UNKNOWN, 0, STR_EMPTY, now);
}

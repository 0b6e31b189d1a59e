/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is asking. Keys are held in memory (the table of active ones is small); sessions are found in
 * the store and remembered; tickets live here alone. All on the loop thread.
 *
 * While there has never been a key, everybody on this machine is `local` with every role. From the
 * first key on every request needs a key, a session or a ticket; revoking the last key does not
 * open the door again.
 */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "base/arena.h"
#include "base/clock.h"
#include "store/table/keys.h"
#include "store/table/sessions.h"

struct auth;
struct loop;

enum auth_via { VIA_LOCAL, VIA_KEY, VIA_SESSION, VIA_TICKET };

struct identity {
    str user;
    unsigned roles;
    str key_id; /* empty for local */
    enum auth_via via;
    unsigned char session[HASH_BYTES]; /* of VIA_SESSION */
};

struct auth_options {
    const struct clock *clock;
    str first_key_id; /* what lists and logs call it */
    str first_key;    /* FERMATA_API_KEY: acts as user `local` with every role; empty if not set */
    bool beyond_loopback; /* others can reach us: never without a key */
    uint32_t rate_max;    /* requests per second and key; 0 = no limit */
};

struct auth *auth_new(struct loop *loop, const struct auth_options *options);
void auth_free(struct auth *auth);

/* Is there, or was there, any key? */
bool auth_required(const struct auth *auth);
void auth_require(struct auth *auth); /* tickets given out before it end */

/* ---- keys ---- */
void auth_add_key(struct auth *auth, const struct key *key);
void auth_remove_key(struct auth *auth, str id); /* its sessions and tickets end, too */

/* The texts of an identity are copied into the arena. ERR_UNAUTHENTICATED if the key is wrong: tell
 * auth_failed. */
enum err auth_by_key(const struct auth *auth, struct arena *arena, str key, str address,
                     struct identity *ret_who) MUST_USE;

/* Without credentials: `local`, or ERR_UNAUTHENTICATED. */
enum err auth_local(const struct auth *auth, bool on_this_machine, struct identity *ret_who)
    MUST_USE;

/* ---- sessions ---- */
enum {
    SESSION_TOKEN_BYTES = BASE64URL_BYTES(32)
}; /* of the token; its signature follows in the cookie */
void auth_session_token(char out[static SESSION_TOKEN_BYTES]);
void auth_session_hash(str token, unsigned char out[static HASH_BYTES]);

/* OK, ERR_UNAUTHENTICATED, or ERR_BUSY: not known here, ask the store and then auth_remember. */
enum err auth_by_session(struct auth *auth, struct arena *arena,
                         const unsigned char hash[static HASH_BYTES], struct identity *ret_who)
    MUST_USE;
/* Take a session as the store has it; ERR_UNAUTHENTICATED if its key has been revoked since. */
enum err auth_remember(struct auth *auth, const struct session *session) MUST_USE;
/* A session has ended: its tickets end, too. */
void auth_forget(struct auth *auth, const unsigned char hash[static HASH_BYTES]);
uint64_t auth_endings(const struct auth *auth); /* grows whenever sessions end */

/* Is an identity that was found some time ago still good? OK, ERR_UNAUTHENTICATED, or ERR_BUSY: its
 * session is not known here, as above. */
enum err auth_still(const struct auth *auth, const struct identity *who, bool on_this_machine)
    MUST_USE;

/* ---- tickets: one use, TICKET_MS_MAX ---- */
enum { TICKET_BYTES = BASE64URL_BYTES(32) };
enum err auth_ticket_new(struct auth *auth, const struct identity *who,
                         char out[static TICKET_BYTES]) MUST_USE;
enum err auth_by_ticket(struct auth *auth, struct arena *arena, str ticket,
                        struct identity *ret_who) MUST_USE;

/* ---- wrong keys ----
 *
 * Counted by address. After AUTH_FAILURES_MAX within a minute each further one is told to wait, and a
 * key that is short enough to be found by trying (AUTH_KEY_BYTES_SAFE) is not looked at, right or
 * wrong. All other keys are: who is behind one address with somebody that guesses is not locked out,
 * and whoever guesses finds none of those. */

/* The key is wrong, or is not looked at. OK: say so; ERR_RATE_LIMITED: come again after
 * *ret_wait_ms. */
enum err auth_failed(struct auth *auth, str address, msec *ret_wait_ms) MUST_USE;

/* Count a request of this key, or of this address when there is none; ERR_RATE_LIMITED when it is
 * one too many.
 */
enum err auth_count(struct auth *auth, str key_or_address) MUST_USE;

#endif

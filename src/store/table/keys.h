/* SPDX-License-Identifier: Apache-2.0
 *
 * API keys: `fk_<id>_<43 letters>`, where the id is public (lists, logs) and the rest is 32 random
 * bytes. The database holds only the SHA-256 of the whole text; with 256 random bits in it there
 * is nothing to guess, so no slow hash is needed. A revoked key stays as a row.
 *
 * Functions with a db are plain blocking code for use inside a job.
 */
#ifndef STORE_TABLE_KEYS_H
#define STORE_TABLE_KEYS_H

#include "base/arena.h"
#include "base/crypto.h"
#include "base/id.h"
#include "base/limits.h"

struct db;

/* bit, name */
#define ROLES(X)                                                       \
    X(ROLE_USER, 1, "user")         /* chats; answers its own cards */ \
    X(ROLE_APPROVER, 2, "approver") /* answers cards of others */      \
    X(ROLE_OPERATOR, 4, "operator") /* settings, metrics, keys */      \
    X(ROLE_ASK, 8, "ask")           /* asks through /mcp, and nothing else; stands alone */

#define ROLE_ENUM(role, bit, name) role = bit,
enum role { ROLES(ROLE_ENUM) };
#undef ROLE_ENUM

/* Every role, in order; for parsing, printing and help. */
struct role_row {
    unsigned bit;
    const char *name;
};
enum {
    ROLE_COUNT = 4,
    ROLES_OF_PEOPLE = ROLE_USER | ROLE_APPROVER | ROLE_OPERATOR, /* the others are for programs */
};
extern const struct role_row role_table[ROLE_COUNT];

/* A set of roles that a key may have: some, known, and one that is for programs stands alone. */
bool roles_valid(unsigned roles);

enum err role_parse(str name, unsigned *ret_bit) MUST_USE; /* ERR_INVALID_FIELD if unknown */

/* The text of a key. */
enum {
    KEY_RANDOM_BYTES = ID_RANDOM_BYTES + 32,
    KEY_TEXT_BYTES = 3 + (ID_BYTES - 1) + 1 + BASE64URL_BYTES(32), /* with its NUL */
};
void key_make(const unsigned char random[static KEY_RANDOM_BYTES], char out[static KEY_TEXT_BYTES]);

/* The id in a well-formed key text, borrowed from it; ERR_INVALID_FIELD otherwise. */
enum err key_parse(str text, str *ret_id) MUST_USE;

void key_hash(str text, unsigned char out[static HASH_BYTES]);

struct key {
    str id, user, name;
    unsigned roles;
    unsigned char hash[HASH_BYTES];
    msec created;
    msec revoked; /* 0: active */
};

/* Store a key, and its user if new. ERR_INVALID_FIELD for a bad id, user, name or no role,
 * ERR_BUSY if the id or hash is taken, ERR_TOO_LARGE beyond KEYS_MAX active ones. */
enum err keys_add(struct db *db, const struct key *key) MUST_USE;

/* Revoke a key and end its sessions; revoking again is fine. ERR_NOT_FOUND if there is none. */
enum err keys_revoke(struct db *db, str id, msec now) MUST_USE;

/* Active ones first, then newest first, at most KEYS_MAX; the arena holds everything. keys_list has
 * the revoked ones too.
 */
struct key_list {
    struct key *keys;
    size_t count;
};
enum err keys_list(struct db *db, struct arena *arena, struct key_list *ret_list) MUST_USE;
enum err keys_load_all(struct db *db, struct arena *arena, struct key_list *ret_list) MUST_USE;

/* ---- people ----
 * What somebody may do is asked of the key, session or link they use. What they did lasts as long as
 * the person may: by any active key, or a linked chat. `local` may everything while there has never
 * been a key, and while FERMATA_API_KEY stands for them (people_local_set). */
enum err person_has_role(struct db *db, str user, str role, bool *ret_yes) MUST_USE;

/* They had keys, all are revoked, and no chat is theirs. */
enum err person_gone(struct db *db, str user, bool *ret_gone) MUST_USE;

/* At the start: does FERMATA_API_KEY stand for `local`? */
enum err people_local_set(struct db *db, bool in_use) MUST_USE;
enum err people_local(struct db *db, bool *ret_in_use) MUST_USE;

/* Has nobody ever had a key, programs apart? */
enum err people_none(struct db *db, bool *ret_none) MUST_USE;

/* Is this a name a user may have: 1 to USER_BYTES_MAX bytes, none of them a control byte? */
bool user_valid(str user);

#endif

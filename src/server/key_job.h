/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding, listing and revoking keys: the store jobs behind `fermata key`, used by the running
 * server (through its admin socket) and by the command line when no server runs. And their JSON, so
 * that both print alike.
 */
#ifndef SERVER_KEY_JOB_H
#define SERVER_KEY_JOB_H

#include "base/json.h"
#include "store/db/store.h"
#include "store/table/keys.h"

struct key_add {
    struct job job;
    struct key key;
    char text[KEY_TEXT_BYTES]; /* the key itself; shown once */

    /* The first key of a person takes over what `local` has, unless somebody still is `local`. */
    bool no_adopt;                  /* it stays there */
    bool local_used;                /* FERMATA_API_KEY stands for `local` */
    const unsigned char *audit_key; /* NULL: there has never been a secret */
    int64_t adopted, left;          /* conversations of `local`, when the job is done */
};

/* Make a key for the user; the texts must live until the job is done. What stands behind the key's
 * text is the caller's. */
void key_add_init(struct key_add *add, str user, str name, unsigned roles);

struct key_list_job {
    struct job job;
    struct arena *arena;
    struct key_list list;
};
void key_list_init(struct key_list_job *list, struct arena *arena);

struct key_revoke {
    struct job job;
    str id;
    msec now;
    const unsigned char *audit_key; /* the caller's; as above */
};
/* Sessions, links and grants that need the key end with it. */
void key_revoke_init(struct key_revoke *revoke, str id);

/* Names of roles as bits; none given means a plain user. The second one takes names that were checked
 * before. */
enum err key_roles(const struct json *names, unsigned *ret_roles, struct fault *reterr) MUST_USE;
unsigned key_roles_of(const str *names, size_t count);

/* {"keys":[{"id","user","name","roles","createdAt","revokedAt"?}]} */
void key_list_json(struct buf *out, const struct key_list *list);

/* Why a key operation failed, for a person. */
enum err key_fault(enum err e, str what, struct fault *reterr) MUST_USE;

#endif

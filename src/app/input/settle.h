/* SPDX-License-Identifier: Apache-2.0
 *
 * A person settles an interaction: looked up, allowed, still open, in time, about a tool that is
 * still the same, and an answer that fits. Every surface takes this way. Blocking code for use
 * inside a write job.
 *
 * A refusal is a result, not a failure: it leaves an entry in the audit trail, which has to be
 * committed. What comes back as an error is a store that could not.
 */
#ifndef APP_INPUT_SETTLE_H
#define APP_INPUT_SETTLE_H

#include "agent/save.h"
#include "app/http/exchange.h"
#include "app/input/refusal.h"

struct settle {
    const struct saver *saver;
    str user;
    unsigned roles;
    str via; /* "api", "page", "message" ... */
    msec now;
    unsigned char random[ID_RANDOM_BYTES];
    unsigned char hash[HASH_BYTES]; /* of what was sent, for the audit trail */
    str wire_run_id;                /* as in struct resolve, both */
    const struct leg_input *leg;
};

struct settlement {
    enum refusal refusal;           /* REFUSAL_NONE: it is done */
    struct fault why;               /* of the refusal */
    struct interaction interaction; /* as it stands now */
    struct stepped stepped;         /* what to tell after the commit; also when time had run out */
};

/* An answer that is looked at, and nothing changed by it. */
struct judged {
    struct interaction interaction; /* set by the caller */
    enum refusal refusal;         /* REFUSAL_NONE so far, or in the end: `resolution` settles it */
    struct fault why;             /* of the refusal */
    struct resolution resolution; /* of what is overtaken, too */
    bool overtaken; /* refused, and settled all the same: its time or its tool is over */
};

/* May they settle it, is it open, is it in time? True: yes, and settle_fit or settle_drop goes on.
 * Pure, as these are. */
bool settle_admit(const struct settle *settle, struct judged *judged);
/* Is it about the same tool, and does the body of the answer fit? ERR_TOO_LARGE, ERR_DAMAGED. */
enum err settle_fit(struct arena *arena, const struct settle *settle, const struct json *body,
                    struct judged *judged) MUST_USE;
/* It is settled without an answer. */
void settle_drop(const struct settle *settle, struct judged *judged);

/* Where they say it: a chat's kind, "websocket", "page" for a browser's session, else "api". */
str settle_via(const struct exchange *x);

/* ERR_NOT_FOUND: there is none of this id. */
enum err settle_answer(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       const struct json *body, struct settlement *ret_settlement) MUST_USE;
/* As if it had run out of time, by a person's word. */
enum err settle_cancel(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       struct settlement *ret_settlement) MUST_USE;

/* An entry about an answer that was not taken; interaction may be NULL. */
enum err settle_refused(struct db *db, const struct settle *settle, int64_t thread,
                        const struct interaction *interaction, enum refusal refusal) MUST_USE;

/* Names of roles, for the store and the codec; unused places are empty. */
void role_names(unsigned roles, str out[static INTERACTION_ROLES_MAX]);

/* The interaction as this user may see it, in the arena. */
str interaction_json(struct arena *arena, const struct interaction *interaction, str user);
/* A list of those of a thread; of very long ones only the first. */
str interactions_json(struct arena *arena, const struct interaction *rows, size_t count, str user);

#endif

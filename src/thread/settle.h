/* SPDX-License-Identifier: Apache-2.0
 *
 * A person settles an interaction: looked up, allowed, still open, in time, about a tool that is
 * still the same, and an answer that fits. Every surface takes this way. Blocking code for use
 * inside a write job.
 *
 * A refusal is a result, not a failure: it leaves an entry in the audit trail, which has to be
 * committed. What comes back as an error is a store that could not.
 */
#ifndef THREAD_SETTLE_H
#define THREAD_SETTLE_H

#include "agent/shell/save.h"
#include "base/json.h"
#include "thread/asker.h"
#include "thread/refusal.h"

struct settle {
    const struct saver *saver;
    struct trail *trail; /* where strangers are noted */
    str user;
    unsigned roles;
    str key_id; /* of the key they came with, by way of a session or ticket, too; empty: none */
    bool alone; /* as in struct decider */
    str via;    /* "api", "page", "message" ... */
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

/* Who they are, and what is the same for every surface; the rest is the caller's. */
struct settle settle_by(const struct asker *by, str via);

/* What they want: to answer it, or to take it back unanswered, which its owner may in any case. */
enum settle_wish { WISH_ANSWER, WISH_CANCEL };

/* May they settle it, is it open, is it in time? True: yes, and settle_fit or settle_drop goes on.
 * Pure, as these are. */
bool settle_admit(const struct settle *settle, enum settle_wish wish, struct judged *judged);
/* Is it about the same tool, and does the body of the answer fit? ERR_TOO_LARGE, ERR_DAMAGED. */
enum err settle_fit(struct arena *arena, const struct settle *settle, const struct json *body,
                    struct judged *judged) MUST_USE;
/* Was it asked through /mcp with the key they come with? */
bool settle_own_key(const struct settle *settle, const struct interaction *interaction);
/* It is settled without an answer. */
void settle_drop(const struct settle *settle, struct judged *judged);

/* The interaction. ERR_NOT_FOUND: there is none, or they may not see it, which must not take longer;
 * that they tried is noted for the trail. */
enum err settle_find(struct db *db, struct arena *arena, const struct settle *settle, str id,
                     struct interaction *ret_interaction) MUST_USE;

/* ERR_NOT_FOUND: as settle_find. */
enum err settle_answer(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       const struct json *body, struct settlement *ret_settlement) MUST_USE;
/* As if it had run out of time, by a person's word. */
enum err settle_cancel(struct db *db, struct arena *arena, const struct settle *settle, str id,
                       struct settlement *ret_settlement) MUST_USE;

/* An entry about an answer that was not taken; interaction may be NULL. */
enum err settle_refused(struct db *db, const struct settle *settle, int64_t thread,
                        const struct interaction *interaction, enum refusal refusal) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person in a chat is told of a conversation: its facts become messages, a leg at a time. Pure.
 *
 * A chat shows no text that grows and takes few messages, so nothing leaves before a leg has ended:
 * then its texts and cards are one message (or as many as it takes), and each open question is one of
 * its own. What is settled elsewhere is told when it happens.
 */
#ifndef CHAT_DELIVER_H
#define CHAT_DELIVER_H

#include "chat/channel.h"
#include "chat/chat_text.h"
#include "store/table/conversation.h"

struct delivery_view {
    const struct channel_traits *traits;
    enum ui_locale locale;
    const unsigned char *code_key; /* HASH_BYTES of it */
    int64_t peer;
    bool group;
    str user;       /* whose the conversation is */
    unsigned roles; /* bits, as in store/table/keys.h */
    bool alone;     /* as in struct decider */
    str thread_id;
    str page; /* address of the page, with a slash at its end; empty: not known */
};

struct delivery {
    struct out_row *rows; /* class, text, file, buttons, interaction */
    size_t count;
    int64_t cursor; /* the facts up to here are told */
    str *settled;   /* interactions that were settled: a question about one that has not left yet
                       need not leave, and buttons of one that has need not stay */
    size_t settled_count;
};

/* Is it worth looking at the facts when one of this type is there? */
bool deliver_wakes(const char *type);
/* Does deliver_facts look at facts of this type? Others need not be loaded. */
bool deliver_needs(const char *type);
/* The interaction that a fact is about (interaction.request, interaction.resolved); else empty. */
str deliver_about(struct arena *arena, const struct fact *fact);

/* `facts` are those behind the old cursor, in order; `interactions` are those they are about, as they
 * stand now. */
void deliver_facts(struct arena *arena, const struct delivery_view *view, const struct fact *facts,
                   size_t fact_count, const struct interaction *interactions,
                   size_t interaction_count, int64_t cursor, struct delivery *ret_delivery);

/* The six digits by which a person approves one interaction as it stands: other arguments, another
 * person, other digits. */
void approval_code(const unsigned char *key, int64_t peer, const struct interaction *interaction,
                   char out[static APPROVAL_CODE_BYTES]);
/* May this be decided by a code in this chat? */
bool approval_by_code(const struct interaction *interaction, bool group);
/* May this person settle it? */
bool interaction_mine(const struct interaction *interaction, str user, unsigned roles, bool alone);

#endif

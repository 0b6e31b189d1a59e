/* SPDX-License-Identifier: Apache-2.0
 *
 * A message that came in from a chat platform, and its JSON in the inbox.
 */
#ifndef CHAT_INBOUND_H
#define CHAT_INBOUND_H

#include "base/arena.h"
#include "base/json.h"

struct inbound_file {
    str name, mime; /* as the platform says; may be empty */
    str ref;        /* JSON object of the kind's own: where it is and how to read it; those of
                       a message have at most CHANNEL_REFS_BYTES_MAX together */
    uint64_t size;  /* 0: not known */
};

struct inbound {
    str id;      /* the platform's, as text; at most CHANNEL_ID_BYTES_MAX */
    str sender;  /* likewise */
    str name;    /* of the sender; may be empty */
    bool group;  /* said where others listen */
    bool follow; /* no words: they began to follow us, or pressed "start" */
    bool menu;   /* words of the account's own, behind a line of its menu: they answer nothing */
    str text;    /* trimmed; may be empty */
    str reply_token; /* opaque; may be empty */
    str quoted;      /* the platform's id of the message that it answers to; may be empty */
    str button;      /* what a native button of ours sent back; may be empty */
    str callback_id; /* of the press */
    str pressed;     /* the platform's id of the message with that button */
    str label;       /* what the button says, where the platform tells */
    struct inbound_file *files;
    size_t file_count;
    msec at;            /* as the platform says; 0: it does not */
    uint32_t allowance; /* sends that it gives; 0: as the kind's traits say */
    msec window_ms;     /* likewise */
    int64_t asked;      /* ours: the newest question that they had been asked when it came, by the
                           number of its row in the outbox; 0: none */
};

/* As one line of JSON, and back. What was written reads back; ERR_DAMAGED otherwise. Texts for people
 * (text, name, label, a file's name and mime) are cut at their limit. Empty: it cannot be kept, for it
 * has no id or sender, an id, token or its refs are too long, it has too many files, or is not UTF-8. What
 * comes back borrows from `json` and the arena. */
str inbound_json(struct arena *arena, const struct inbound *inbound);
enum err inbound_parse(struct arena *arena, str json, struct inbound *ret_inbound) MUST_USE;

#endif

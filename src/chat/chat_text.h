/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions and approvals as plain text, and replies as answers, in Chinese and English. Pure.
 *
 *     ❓ 会议定在哪天？            ◄── question_text
 *
 *     1. 周一
 *     2. 周二 - 下午没有空
 *     3. 周三
 *
 *     请回复数字或直接输入你的回答
 *                                  2、 ──► reply_read ──► {"choices":["c2"]} for that question
 */
#ifndef CHAT_CHAT_TEXT_H
#define CHAT_CHAT_TEXT_H

#include "chat/channel.h"
#include "store/table/interactions.h"
#include "ui/locale.h"

enum { APPROVAL_CODE_BYTES = 7 }; /* six digits and a NUL */

/* ---- what is asked ---- */

struct question_view {
    enum ui_locale locale;
    const struct channel_traits *traits;
    str code; /* six digits that approve it; empty: it cannot be decided here (a group, too many tries) */
    str page;  /* address of the page where it can be decided; empty: none is known */
    bool mine; /* this person may settle it */
};

struct question_text {
    str text; /* at most the traits' chars_max and bytes_max, or what is asked is cut and says so */
    str buttons; /* JSON [{"data","label"}] where the platform has buttons and they fit; else empty */
    bool coded; /* the code is in it: everything that is approved by it is shown whole */
};

/* An open interaction as one message. A confirm whose arguments do not fit whole has no code and
 * leads to the page. data of a button: "c:<interaction id>:<choice id>", or "c:<interaction id>:no"
 * to reject; a button never approves. */
void question_text(struct arena *arena, const struct interaction *interaction,
                   const struct question_view *view, struct question_text *ret_text);

/* "What do you mean?" with the open questions, numbered; and what others decided. */
str which_text(struct arena *arena, enum ui_locale locale, const struct interaction *const *open,
               size_t count);
/* One line or two: who settled it, where, and how. `you`: the person's own user name. */
str settled_text(struct arena *arena, enum ui_locale locale, const struct interaction *settled,
                 str you);

/* ---- what is replied ---- */

/* An open interaction of the conversation, as this person is asked it. */
struct open_question {
    const struct interaction *interaction;
    str code;       /* as above; empty: none */
    uint32_t tries; /* wrong codes so far */
    bool mine;
};

struct reply_context {
    enum ui_locale locale;
    const struct channel_traits *traits; /* NULL: nothing is asked again */
    const struct open_question *open;    /* in the order of their opening */
    size_t open_count;
    str quoted; /* interaction id of the message that it answers to; empty: none */
    str button; /* data of a button that was pressed instead of words; or empty */
    bool group;
    str held_text; /* what they said before they were asked which question they mean; or empty */
    str held[16];  /* interaction ids, as which_text numbered them */
    size_t held_count;
};

enum reply_kind {
    REPLY_PLAIN,  /* none of it: a plain message, as spec/api.md section 1 has it */
    REPLY_ANSWER, /* `body` settles `interaction` (POST answer) */
    REPLY_SAY, /* nothing is settled; tell them `say`, which asks `interaction` again if it is set */
    REPLY_WHICH, /* tell them `say`; hold `held_text` for the questions in `held` */
    REPLY_WRONG, /* a wrong code for `interaction`: count it, tell them `say` */
    REPLY_STALE, /* it answers a question that is not open any more: `interaction` is its id */
};

enum { CODE_TRIES_MAX = 5 };

struct reply {
    enum reply_kind kind;
    str interaction; /* id */
    str body;        /* JSON */
    str say;
    str held_text;
    str held[16];
    size_t held_count;
};

/* Everything lives in the arena or borrows from the context and the text. */
void reply_read(struct arena *arena, const struct reply_context *context, str text,
                struct reply *ret_reply);

/* ---- commands ---- */

enum chat_command { CHAT_NONE, CHAT_NEW, CHAT_STOP, CHAT_HELP, CHAT_LINK, CHAT_START };

/* "/new", "／新对话", "/link CODE" ...: the whole message, or its first word where something may
 * follow. *ret_rest: what follows, trimmed. An unknown "/word" is no command. */
enum chat_command command_read(str text, str *ret_rest);

/* ---- our own sentences ---- */

/* key, in both languages in notice.c */
enum chat_text {
    TEXT_HELP,          /* what the commands are */
    TEXT_NEW,           /* the next message begins a new conversation */
    TEXT_STOPPED,       /* the run was told to stop */
    TEXT_NOTHING,       /* nothing was running */
    TEXT_LINKED,        /* this chat belongs to %s now */
    TEXT_LINK_BAD,      /* the code is wrong or has expired */
    TEXT_LINK_GROUP,    /* only in a chat of two */
    TEXT_WELCOME,       /* hello; say what you need */
    TEXT_QUEUED,        /* taken; comes after what runs now */
    TEXT_BUSY,          /* too much waits: try later */
    TEXT_TROUBLE,       /* it could not be taken; try again */
    TEXT_TOO_LONG,      /* the message is too long */
    TEXT_FILE_LOST,     /* a file could not be fetched: %s */
    TEXT_FILE_LARGE,    /* a file is too large: %s */
    TEXT_NOT_YOURS,     /* somebody else decides this */
    TEXT_AGAIN,         /* the mark of a message that may have come before */
    TEXT_RUN_FAILED,    /* the agent failed: %s */
    TEXT_RUN_STOPPED,   /* it was stopped */
    TEXT_WAITING_OTHER, /* somebody else has to approve: %s */
    TEXT_FILE,          /* a file that this chat cannot carry: its name %s and address */
    TEXT_TOO_MUCH,      /* the rest is too long for a chat; the page %s has it */
    CHAT_TEXT_COUNT,
};
/* With %s replaced by `arg`. */
str chat_text(struct arena *arena, enum ui_locale locale, enum chat_text text, str arg);

/* The language of a message: Chinese if it has a Han character, English if it has two words with
 * letters, else as it was. */
enum ui_locale text_locale(str text, enum ui_locale before);

/* ---- length ---- */

struct text_parts {
    str *parts;
    size_t count;
};
/* A text in parts that fit the traits: cut at a paragraph, a line, a sentence, a space, else between
 * two characters; a code fence is closed in each part and opened again in the next. At least one. */
void text_split(struct arena *arena, const struct channel_traits *traits, str text,
                struct text_parts *ret_parts);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat` on a terminal, between its files: chat_tty.c (its life, events, keys), chat_draw.c,
 * chat_command.c.
 */
#ifndef TERM_CHAT_INT_H
#define TERM_CHAT_INT_H

#include "net/loop.h"
#include "term/chat.h"
#include "term/chat_card.h"
#include "term/chat_stream.h"
#include "term/term.h"
#include "term/term_words.h"

struct chat {
    struct link link;
    struct loop *loop;
    struct client *client;
    struct stream *stream;
    struct term term;
    struct area area;
    struct watch *keyboard;
    struct timer *esc, *again; /* again: a history that could not be loaded is asked for then */
    msec wait;                 /* until that */
    struct keys keys;
    struct line line;
    struct fold fold;
    struct card *card;  /* that has the keyboard */
    struct buf printed; /* waits to be printed above the area */
    struct loop_defer redraw;
    char thread_id[ID_CLIENT_BYTES_MAX + 1];
    char run_id[ID_CLIENT_BYTES_MAX + 1];    /* of the message that was sent last */
    struct buf sent;                         /* its text, until the server has it */
    char answering[ID_CLIENT_BYTES_MAX + 1]; /* the interaction whose answer is under way */
    struct chat_file files[TERM_FILES_MAX];  /* for the next message */
    size_t file_count;
    bool sending, uploading, stopping, lost, loading;
    struct arena list_arena; /* conversations to pick from */
    const struct json *list; /* NULL: none is being picked */
    size_t list_at;
    struct buf held;     /* keys from an Enter on that came while a message was being sent */
    uint64_t held_shown; /* `shown` when the first of them came */
    bool releasing;      /* they are taken now */
    uint64_t shown;      /* fold.asked as of the screen */
    uint64_t begun;      /* and as of the screen when the input line was begun */
    bool old;            /* it was named on the command line, so it has to exist */
    bool spoke;          /* something was printed */
    unsigned epoch;      /* of the conversation: answers about another one are late */
    int code;
};

#define WORD(chat, which) words((chat)->link.lang, which)

/* ---- chat_draw.c ---- */

/* Printed with the next drawing, above what may be taken back. */
void chat_said(void *chat, enum saying kind, str text);
void chat_note(struct chat *chat, enum saying kind, enum word what);
void chat_trouble(struct chat *chat, const struct link_answer *answer);
void chat_draw(struct chat *chat);

/* ---- chat_tty.c ---- */

/* For an answer that is about the conversation of now; whoever gets it frees it. */
struct loading {
    struct chat *chat;
    unsigned epoch;
};
struct loading *chat_loading(struct chat *chat);

/* Another conversation; old: it exists, and its history is shown first. */
void chat_go_to(struct chat *chat, str thread_id, bool old);

/* ---- chat_command.c ---- */

/* A line that begins with a slash; a key while conversations are listed. */
void chat_command(struct chat *chat, str text);
void chat_pick(struct chat *chat, struct key_event event);
void chat_new(struct chat *chat, str words);
void chat_stop(struct chat *chat, str words);

#endif

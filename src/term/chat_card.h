/* SPDX-License-Identifier: Apache-2.0
 *
 * Something that waits for a person, on a terminal: its words, its rows, and what keys make of them: the
 * body of POST /interactions/{id}/answer. Pure.
 */
#ifndef TERM_CHAT_CARD_H
#define TERM_CHAT_CARD_H

#include "base/json.h"
#include "base/limits.h"
#include "config/config.h"
#include "term/line.h"

enum card_kind { CARD_QUESTION, CARD_CONFIRM, CARD_LOST, CARD_UNCERTAIN };

enum card_mode { CARD_MENU, CARD_TEXT, CARD_REASON, CARD_EDIT, CARD_FIELD };

enum { CARD_ROWS_MAX = ASK_CHOICES_MAX + 4 };

struct card_row {
    int act;       /* chat_card.c knows which there are */
    size_t choice; /* of a choice: which */
    bool picked;
};

struct card {
    struct arena arena;
    enum lang lang;
    enum card_kind kind;
    const struct json *json; /* the interaction, as the server wrote it */
    str id, run_id, binding, args, risk;
    bool multi, freeform;
    const struct json *fields; /* NULL: it is no form */
    struct card_row rows[CARD_ROWS_MAX];
    size_t row_count;
    ptrdiff_t at; /* the row that Enter means; -1: none */
    enum card_mode mode;
    const struct json *field; /* that is asked for */
    struct buf values;        /* of the fields before it: members of an object */
    bool armed;               /* pressed once, of two times */
    bool too_long;            /* it is not shown as a whole: nothing of it can be let run */
    bool sending;
    char notice[256]; /* why nothing was sent */
    struct line line;
    struct buf body; /* the answer, once there is one */
};

/* From the JSON of an interaction; NULL if it is none that we know. */
struct card *card_new(str interaction, enum lang lang);
void card_free(struct card *card); /* NULL is fine */

/* What it is about, on lines that end in LF, all of it: for an approval each argument with what would
 * not be seen written out. A terminal gets it through term_wrap. */
str card_head(const struct card *card, struct arena *arena);

/* For a terminal so wide: whether all of its head can be read there is known from then on. */
void card_fit(struct card *card, size_t columns);

/* The choices with their numbers, or the fields, for where there are no rows; may be empty. */
str card_list(const struct card *card, struct arena *arena);

void card_draw(const struct card *card, struct area *area);

enum card_result {
    CARD_STAYS,
    CARD_LATER,  /* put away; it stays open */
    CARD_ANSWERS /* the body is complete */
};
enum card_result card_key(struct card *card, struct key_event event);

/* The answer was not taken: why. What was written, filled in or picked stays. */
void card_refused(struct card *card, str why);

/* What the person has written on it and not sent; may be empty. */
str card_written(const struct card *card);

/* ---- answers without keys: false, and *ret_why says why, if it cannot be said of this card ---- */

/* A line of words: a number picks a choice, other words are the answer. Only for questions. */
bool card_say(struct card *card, str words, str *ret_why);
bool card_words(struct card *card, str words); /* the answer as it stands */
bool card_pick(struct card *card, const str *choices, size_t count, str text, str *ret_why);
bool card_fill(struct card *card, const str *pairs, size_t count, str *ret_why); /* "name=value" */
bool card_skip(struct card *card);
/* decision: its name in bodies; comment of a rejection and args of an edit may be empty. */
bool card_decide(struct card *card, str decision, str comment, str args, str *ret_why);

#endif

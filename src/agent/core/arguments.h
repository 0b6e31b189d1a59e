/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of a call as rows that a person reads before deciding: all of them, in their order,
 * each value as it is with what is hidden in it made visible (ui/visible.h). Pure.
 */
#ifndef AGENT_CORE_ARGUMENTS_H
#define AGENT_CORE_ARGUMENTS_H

#include "base/json.h"
#include "ui/locale.h"
#include "ui/out.h"

enum arg_kind {
    ARG_TEXT,   /* `value` is text */
    ARG_NATIVE, /* true, false, or a number that every reader prints as it is written here */
    ARG_DIGITS, /* a number that some readers would round: text, and no text all the same */
    ARG_JSON,   /* text that is JSON: of a list or an object */
};

struct arg_row {
    str name;     /* of the argument, or its path: place.city, guests[0]; may end in a mark */
    str value;    /* never empty */
    size_t bytes; /* of the value where it came from */
    uint32_t arg; /* which argument it belongs to, counted from 0 */
    enum arg_kind kind;
};

struct arg_rows {
    struct arg_row *rows;
    size_t count;
};

struct arg_reader {
    struct arena *arena;
    enum ui_locale locale;
    bool flat;          /* a small list or object becomes a row for each of its values */
    bool plan;          /* of submit_plan: a row for each step, one for its done_when */
    uint32_t args;      /* found so far */
    size_t bytes;       /* of all names and values so far */
    size_t spread;      /* rows so far that `flat` made of lists and objects */
    struct out scratch; /* our own */
};

void arg_reader_init(struct arg_reader *reader, struct arena *arena, enum ui_locale locale,
                     bool flat, bool plan);

/* With `flat` there would be too many rows, and some are missing: read again without it. */
bool args_full(const struct arg_reader *reader);

/* Every argument. What is no JSON object is one row. */
void args_read(struct arg_reader *reader, str args, struct arg_rows *rows);

/* What an edit changed, and what it did not. A value that changed has two rows; the marks say which
 * was before, which is after, and what was added or removed. */
void args_compare(struct arg_reader *reader, str before, str after, struct arg_rows *changed,
                  struct arg_rows *same);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the graph: a desk with one run on it. A step is taken from the rows on the desk, and
 * its outcome is laid back on it, as saving and loading would do; nothing is numbered or checked.
 */
#ifndef TESTS_GRAPH_KIT_H
#define TESTS_GRAPH_KIT_H

#include "agent/core/graph.h"

enum { DESK_ROWS_MAX = 64, PARTS_MAX = 8 };

#define TITLE   "{\"title\":\"x\"}"
#define PLAN    "{\"steps\":[{\"content\":\"one\",\"done_when\":\"d\"},{\"content\":\"two\"}]}"
#define SETTLED "interaction.resolved run.started tool.call.result"

struct desk {
    struct arena arena;
    struct view view;
    struct call calls[DESK_ROWS_MAX];
    struct interaction open[DESK_ROWS_MAX];
    struct grant grants[DESK_ROWS_MAX];
    struct agent agent;
    struct tool
        tool_rows[4]; /* calendar_read, calendar_write, place_order (allowed), launch (denied) */
    const struct tool *offered[4];
    struct tools tools;
    struct binder binder;
    struct outcome last;
    msec now;
    unsigned char random; /* grows with each step */
};

/* A run that has just started: r1 of local's t1, in English. */
void desk_init(struct desk *desk);
void desk_done(struct desk *desk);

/* Time, randomness and the installation are filled in. */
const struct outcome *desk_step(struct desk *desk, struct input input);

/* A turn of the model. The calls are named call_1, call_2 ... by their place. */
struct said {
    const char *tool, *args;
};
const struct outcome *desk_turn(struct desk *desk, const char *text, const struct said *calls,
                                size_t count);
const struct outcome *desk_call(struct desk *desk, const char *tool, const char *args); /* alone */

/* The only open interaction is settled, or one of several by its place. */
const struct outcome *desk_settle(struct desk *desk, size_t at, struct resolution resolution);
const struct outcome *desk_answer(struct desk *desk, const char *body); /* through answer_parse */
const struct outcome *desk_result(struct desk *desk, const char *call_id, struct call_end end);

/* A tool gets another schema. */
void desk_restyle(struct desk *desk, const char *tool, const char *schema);

/* Types of the last outcome's facts, with a blank between them. */
str desk_types(struct desk *desk);
/* Data of the last outcome's n-th fact of a type, from 0; fails the test if there is none. */
str desk_fact(struct desk *desk, const char *type, size_t n);
struct call *desk_row(struct desk *desk, const char *call_id);

/* The last outcome has these facts; and these parts stand in the first fact of their types. */
struct part {
    const char *type, *text;
};
void expect(struct desk *desk, const char *what, const char *types, const struct part *parts);
void expect_call(struct desk *desk, const char *what, const char *call_id, enum call_state state,
                 const char *error);

/* Everything that an outcome wants stored, as text. */
void print_outcome(struct buf *out, const struct outcome *o);

#endif

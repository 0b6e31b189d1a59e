/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions that cannot take our time or memory. regcomp behind a walk over the
 * expression that refuses what regcomp would take at a price:
 *
 * - Repetition. `x+` and `x{n,m}` are compiled by copying x, so ((((x+)+)+)+)+ doubles at each
 *   level and (x{99}){99} is x ten thousand times. x* and x? inside each other are not copied, but
 *   the ways to pass through them without a character double just so. The walk adds it all up.
 * - Anchors inside of what is repeated: each way through them is compiled apart, so they double with
 *   every level, too.
 * - Back-references, which are no part of extended expressions and make matching exponential.
 * - Characters of several bytes where one byte would be meant: the process runs in the locale "C",
 *   so [你您] would be any of six bytes, and 你+ would repeat the last third of the character.
 *
 * The walk judges size, not grammar: what is malformed is left for regcomp to refuse.
 */
#include "model/pattern.h"

#include <regex.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/limits.h"

struct pattern {
    regex_t regex;
};

struct walk {
    str rest;
    uint64_t nodes[SCRIPT_PATTERN_DEPTH_MAX + 1]; /* of each open group, the whole one first */
    bool anchors[SCRIPT_PATTERN_DEPTH_MAX + 1];   /* has one of them an anchor in it? */
    unsigned depth;
    bool last_anchors; /* has the thing that a repetition would repeat? */
    uint64_t last;     /* nodes of the thing that a repetition would repeat */
    bool wide;         /* that thing is one byte of several */
    const char *refused;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add(struct walk *w, uint64_t nodes)
{
    w->last = nodes;
    w->last_anchors = false;
    w->nodes[w->depth] += nodes;
}

static void add_anchor(struct walk *w)
{
    add(w, 1);
    w->last_anchors = w->anchors[w->depth] = true;
}

static void group_open(struct walk *w)
{
    if (w->depth == SCRIPT_PATTERN_DEPTH_MAX) {
        w->refused = "has groups inside groups more than 16 deep";
        return;
    }
    w->nodes[++w->depth] = 1;
    w->anchors[w->depth] = w->last_anchors = false;
    w->last = 1;
}

/* One that closes nothing is a character like others. */
static void group_close(struct walk *w)
{
    if (w->depth == 0) {
        add(w, 1);
        return;
    }
    bool anchors = w->anchors[w->depth];
    uint64_t inside = w->nodes[w->depth--];
    add(w, inside);
    w->last_anchors = anchors;
    w->anchors[w->depth] |= anchors;
}

static void repeat(struct walk *w, uint64_t copies)
{
    if (w->wide) w->refused = "repeats a character beyond ASCII; put it in parentheses";
    if (w->last_anchors) w->refused = "repeats a beginning or an end: ^, $, or \\b and the like";
    w->nodes[w->depth] += w->last * (copies - 1);
    w->last *= copies;
}

/* "{2}", "{2,}", "{2,5}", "{,5}". */
static void braces(struct walk *w)
{
    uint64_t bounds[2] = {0, 0};
    size_t at = 1, bound = 0;
    for (; at < w->rest.len && w->rest.p[at] != '}'; at++) {
        char c = w->rest.p[at];
        if (c == ',' && bound == 0)
            bound = 1;
        else if (is_digit(c) && bounds[bound] <= SCRIPT_PATTERN_NODES_MAX)
            bounds[bound] = bounds[bound] * 10 + (uint64_t)(c - '0');
    }
    repeat(w, 1 + (bounds[0] > bounds[1] ? bounds[0] : bounds[1]));
    w->rest = str_drop(w->rest, at);
}

/* Up to the bracket that closes: not the first one, and not one of [:alpha:], [=a=], [.a.]. */
static void brackets(struct walk *w)
{
    str s = w->rest;
    size_t at = 1;
    if (at < s.len && s.p[at] == '^') at++;
    if (at < s.len && s.p[at] == ']') at++;
    for (; at < s.len && s.p[at] != ']'; at++) {
        if ((unsigned char)s.p[at] >= 0x80)
            w->refused = "has a character beyond ASCII in brackets; write (a|b)";
        bool class =
            s.p[at] == '[' && at + 1 < s.len && str_find_char(STR(":=."), s.p[at + 1]) >= 0;
        if (!class) continue;
        char end[] = {s.p[at + 1], ']'};
        ptrdiff_t length = str_find(str_drop(s, at + 2), (str){end, sizeof end});
        if (length >= 0) at += 3 + (size_t)length;
    }
    add(w, 1);
    w->rest = str_drop(s, at);
}

static void escape(struct walk *w)
{
    w->rest = str_drop(w->rest, 1);
    if (w->rest.len && w->rest.p[0] != '0' && is_digit(w->rest.p[0]))
        w->refused = "refers back to a group";
    if (w->rest.len && str_find_char(STR("bB<>`'"), w->rest.p[0]) >= 0)
        add_anchor(w);
    else
        add(w, 1);
}

static void pattern_take(struct walk *w)
{
    char c = w->rest.p[0];
    switch (c) {
    case '(':
        group_open(w);
        break;
    case ')':
        group_close(w);
        break;
    case '*':
    case '?':
    case '+':
        repeat(w, 2);
        break;
    case '{':
        braces(w);
        break;
    case '[':
        brackets(w);
        break;
    case '\\':
        escape(w);
        break;
    case '^':
    case '$':
        add_anchor(w);
        break;
    default:
        add(w, 1);
    }
    w->wide = (unsigned char)c >= 0x80;
    w->rest = str_drop(w->rest, 1);
}

/* NULL, or why not. */
static const char *judge(str text)
{
    if (text.len > SCRIPT_PATTERN_BYTES_MAX) return "is longer than 1024 bytes";
    if (str_find_char(text, '\0') >= 0) return "contains a NUL";
    struct walk w = {.rest = text, .last = 1};
    while (w.rest.len && !w.refused) {
        pattern_take(&w);
        if (w.nodes[w.depth] > SCRIPT_PATTERN_NODES_MAX)
            w.refused = "repeats too much: its repetitions multiply";
    }
    return w.refused;
}

enum err pattern_new(str text, struct pattern **ret_pattern, struct fault *reterr)
{
    const char *refused = judge(text);
    if (refused) return fault(reterr, ERR_CONFIG, "%s", refused);

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct pattern *pattern = malloc(sizeof *pattern);
    if (!pattern) abort();
    int error = regcomp(&pattern->regex, arena_cstr(&arena, text), REG_EXTENDED | REG_NOSUB);
    if (error) {
        char why[128];
        regerror(error, &pattern->regex, why, sizeof why);
        free(pattern);
        return fault(reterr, ERR_CONFIG, "is malformed: %s", why);
    }
    *ret_pattern = pattern;
    return OK;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern) return;
    regfree(&pattern->regex);
    free(pattern);
}

bool pattern_matches(const struct pattern *pattern, const char *text)
{
    return regexec(&pattern->regex, text, 0, NULL, 0) == 0;
}

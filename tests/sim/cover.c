/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cells were met how often: (node that the run goes back to, type of interaction, decision,
 * crash point). A cell that cannot be met stands in unreachable[] with the reason; if it is met
 * nevertheless, the reason is wrong, and that is a failure too.
 *
 * Crash points are told from the commits: the process died before or behind the commit that opened
 * the interaction, that settled it, or that came next. A death between two commits is one behind the
 * first of them: the rows are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static const char *const places[AT_COUNT] = {
    [AT_CHAT] = "chat",       [AT_PLAN] = "plan",       [AT_EXECUTE] = "execute",
    [AT_DELIVER] = "deliver", [AT_CONFIRM] = "confirm",
};

static const char *const decisions[DECIDED_COUNT] = {
    [DECISION_ANSWER] = "answer",
    [DECISION_SKIP] = "skip",
    [DECISION_APPROVE] = "approve",
    [DECISION_EDIT] = "edit",
    [DECISION_REJECT] = "reject",
    [DECISION_RESPOND] = "respond",
    [DECISION_CONTINUE] = "continue",
    [DECISION_GIVE_UP] = "give_up",
    [DECISION_RETRY] = "retry",
    [DECISION_HAPPENED] = "happened",
    [DECISION_CANCEL] = "cancel",
    [DECISION_EXPIRE] = "expire",
    [DECISION_SUPERSEDE] = "supersede",
    [DECIDED_ALWAYS] = "approve always",
    [DECIDED_RUN_CANCEL] = "run cancelled",
};

#define POINT_NAME(point, name) name,
static const char *const points[POINT_COUNT] = {POINTS(POINT_NAME)};
#undef POINT_NAME

/* ---- what cannot be ---- */

enum { ANY = -1 };
#define BIT(x) (1u << (x))
#define ASK_DECISIONS                                                                          \
    (BIT(DECISION_ANSWER) | BIT(DECISION_SKIP) | BIT(DECISION_CANCEL) | BIT(DECISION_EXPIRE) | \
     BIT(DECIDED_RUN_CANCEL))
#define CONFIRM_DECISIONS                                                                      \
    (BIT(DECISION_APPROVE) | BIT(DECIDED_ALWAYS) | BIT(DECISION_EDIT) | BIT(DECISION_REJECT) | \
     BIT(DECISION_RESPOND) | BIT(DECISION_CANCEL) | BIT(DECISION_EXPIRE) |                     \
     BIT(DECISION_SUPERSEDE) | BIT(DECIDED_RUN_CANCEL))
#define LOST_DECISIONS                                                       \
    (BIT(DECISION_CONTINUE) | BIT(DECISION_GIVE_UP) | BIT(DECISION_CANCEL) | \
     BIT(DECISION_EXPIRE) | BIT(DECIDED_RUN_CANCEL))
#define UNCERTAIN_DECISIONS                                                                        \
    (BIT(DECISION_RETRY) | BIT(DECISION_HAPPENED) | BIT(DECISION_GIVE_UP) | BIT(DECISION_CANCEL) | \
     BIT(DECISION_EXPIRE) | BIT(DECIDED_RUN_CANCEL))
#define ALL_DECISIONS (BIT(DECIDED_COUNT) - 1)
#define ALL_POINTS    (BIT(POINT_COUNT) - 1)
#define NEXT_POINTS   (BIT(POINT_BEFORE_NEXT) | BIT(POINT_BEHIND_NEXT))

static const struct unreachable {
    int at, type;
    unsigned decisions, points;
    const char *reason;
} unreachable[] = {
    {ANY, INTERACTION_ASK_USER, ALL_DECISIONS & ~ASK_DECISIONS, ALL_POINTS,
     "a question is answered or skipped"},
    {ANY, INTERACTION_CONFIRM, ALL_DECISIONS & ~CONFIRM_DECISIONS, ALL_POINTS,
     "a confirm is approved, edited, rejected, responded to or superseded"},
    {ANY, INTERACTION_CONNECTION_LOST, ALL_DECISIONS & ~LOST_DECISIONS, ALL_POINTS,
     "a lost connection is continued or given up"},
    {ANY, INTERACTION_UNCERTAIN, ALL_DECISIONS & ~UNCERTAIN_DECISIONS, ALL_POINTS,
     "an uncertain call is retried, has happened, or is given up"},
    {AT_CHAT, INTERACTION_ASK_USER, ASK_DECISIONS, ALL_POINTS,
     "a turn with calls leaves chat before it asks"},
    {AT_CHAT, INTERACTION_CONFIRM, CONFIRM_DECISIONS, ALL_POINTS,
     "a turn with calls leaves chat before it asks"},
    {AT_CHAT, INTERACTION_UNCERTAIN, UNCERTAIN_DECISIONS, ALL_POINTS,
     "a call is started behind a turn with calls, which leaves chat"},
    {AT_CONFIRM, INTERACTION_CONNECTION_LOST, LOST_DECISIONS, ALL_POINTS,
     "the model is not called while a plan waits"},
    {ANY, INTERACTION_CONNECTION_LOST, LOST_DECISIONS & ~BIT(DECISION_CONTINUE), NEXT_POINTS,
     "anything but continue ends the run: no commit follows"},
};

static const char *reason_of(int at, int type, int decided, int point)
{
    for (size_t i = 0; i < COUNT(unreachable); i++) {
        const struct unreachable *row = &unreachable[i];
        if (row->at != ANY && row->at != at) continue;
        if (row->type == type && (row->decisions & BIT(decided)) && (row->points & BIT(point)))
            return row->reason;
    }
    return NULL;
}

bool cell_reachable(const struct cell *cell)
{
    return !reason_of((int)cell->at, (int)cell->type, cell->decided, POINT_NONE);
}

/* ---- marking ---- */

static void hit(struct sim *sim, const struct cell *cell, enum point point)
{
    sim->coverage->cells[cell->at][cell->type][cell->decided][point]++;
}

enum where where_of(struct sim *sim, const struct interaction *row)
{
    for (unsigned i = 0; i < AT_COUNT; i++)
        if (str_eq(row->resume_node, str_c(places[i]))) return (enum where)i;
    broken(sim, "an interaction goes back to %.*s", STR_ARG(row->resume_node));
    return AT_CHAT;
}

static int decided_of(const struct input *input, const struct interaction *row)
{
    if (input->kind != INPUT_RESOLVE) return DECIDED_RUN_CANCEL;
    for (size_t i = 0; i < input->resolution_count; i++) {
        const struct resolution *r = &input->resolutions[i];
        if (!str_eq(r->interaction_id, row->id)) continue;
        return r->decision == DECISION_APPROVE && r->always ? DECIDED_ALWAYS : (int)r->decision;
    }
    return DECIDED_RUN_CANCEL;
}

static struct cell cell_of(struct sim *sim, const struct input *input,
                           const struct interaction *row)
{
    return (struct cell){where_of(sim, row), row->type, decided_of(input, row)};
}

/* A commit that would have done this was not made: the process died before it. */
void trail_lost(struct sim *sim, const struct input *input, const struct outcome *o)
{
    struct trail *trail = &sim->trail;
    bool decided = input->kind != INPUT_DAMAGED;
    for (size_t i = 0; decided && i < o->settled_count; i++) {
        if (asking_of_tool(&o->settled[i])) continue;
        struct cell cell = cell_of(sim, input, &o->settled[i]);
        hit(sim, &cell, POINT_BEFORE_ANSWER);
    }
    for (size_t i = 0; i < o->opened_count; i++)
        if (!asking_of_tool(&o->opened[i]))
            trail->lost[where_of(sim, &o->opened[i])][o->opened[i].type] = true;
    for (size_t i = 0; i < trail->settled_count; i++)
        hit(sim, &trail->settled[i], POINT_BEFORE_NEXT);
}

static size_t index_of(const struct sim *sim, str id)
{
    for (size_t i = sim->world.interaction_count; i > 0; i--)
        if (str_eq(sim->world.interactions[i - 1].id, id)) return i - 1;
    return MARKS_MAX;
}

static void mark_settled(struct sim *sim, const struct cell *cell, size_t index)
{
    unsigned marks = index < MARKS_MAX ? sim->trail.marks[index] : 0;
    if (!marks) hit(sim, cell, POINT_NONE);
    for (unsigned point = POINT_BEFORE_OPEN; point <= POINT_BEHIND_OPEN; point++)
        if (marks & BIT(point)) hit(sim, cell, (enum point)point);
}

/* All that a commit opens would have been opened by the one that was lost. */
static void mark_opened(struct sim *sim, const struct outcome *o)
{
    struct trail *trail = &sim->trail;
    for (size_t i = 0; i < o->opened_count && trail->opened_from + i < MARKS_MAX; i++)
        if (trail->lost[where_of(sim, &o->opened[i])][o->opened[i].type])
            trail->marks[trail->opened_from + i] |= BIT(POINT_BEFORE_OPEN);
    for (size_t i = 0; i < o->opened_count; i++)
        if (!asking_of_tool(&o->opened[i]))
            trail->lost[where_of(sim, &o->opened[i])][o->opened[i].type] = false;
}

void trail_stored(struct sim *sim, const struct input *input, const struct outcome *o)
{
    struct trail *trail = &sim->trail;
    memcpy(trail->before, trail->settled, sizeof trail->before);
    trail->before_count = trail->settled_count;
    trail->settled_count = 0;
    bool decided = input->kind != INPUT_DAMAGED;
    for (size_t i = 0; decided && i < o->settled_count && i < CELLS_MAX; i++) {
        if (asking_of_tool(&o->settled[i])) continue;
        struct cell cell = cell_of(sim, input, &o->settled[i]);
        trail->settled[trail->settled_count++] = cell;
        const struct cell *aim = &sim->drill.cell;
        size_t index = index_of(sim, o->settled[i].id);
        bool aimed = cell.at == aim->at && cell.type == aim->type && cell.decided == aim->decided;
        if (aimed && !sim->drill.met && index < MARKS_MAX) {
            sim->drill.settled = sim->commits;
            sim->drill.opened = trail->opened_by[index];
        }
        sim->drill.met = sim->drill.met || aimed;
        mark_settled(sim, &cell, index);
    }
    trail->opened_from = sim->world.interaction_count - o->opened_count;
    for (size_t i = trail->opened_from; i < sim->world.interaction_count && i < MARKS_MAX; i++)
        trail->opened_by[i] = sim->commits;
    mark_opened(sim, o);
}

void trail_died(struct sim *sim)
{
    struct trail *trail = &sim->trail;
    for (size_t i = 0; i < trail->settled_count; i++)
        hit(sim, &trail->settled[i], POINT_BEHIND_ANSWER);
    for (size_t i = 0; i < trail->before_count; i++) hit(sim, &trail->before[i], POINT_BEHIND_NEXT);
    for (size_t i = trail->opened_from; i < sim->world.interaction_count && i < MARKS_MAX; i++)
        trail->marks[i] |= BIT(POINT_BEHIND_OPEN);
    trail->before_count = 0;
    trail->opened_from = sim->world.interaction_count;
}

/* What comes next is another run's. */
void trail_begin(struct sim *sim)
{
    struct trail *trail = &sim->trail;
    trail->settled_count = trail->before_count = 0;
    trail->opened_from = sim->world.interaction_count;
    memset(trail->lost, 0, sizeof trail->lost);
}

/* ---- the table ---- */

void coverage_add(struct coverage *sum, const struct coverage *one)
{
    uint64_t *to = &sum->cells[0][0][0][0];
    const uint64_t *from = &one->cells[0][0][0][0];
    for (size_t i = 0; i < sizeof sum->cells / sizeof *to; i++) to[i] += from[i];
    for (size_t i = 0; i < FRONT_FATES; i++) sum->fronts[i] += one->fronts[i];
    for (size_t i = 0; i < ASKED_FATES; i++) sum->asked[i] += one->asked[i];
    sum->lives += one->lives;
    sum->steps += one->steps;
    sum->stale += one->stale;
    sum->crashes += one->crashes;
    sum->failed += one->failed;
}

struct counts {
    unsigned reachable, thin, wrong;
};

static void print_row(const struct coverage *coverage, int at, int type, int decided,
                      unsigned hits_min, struct counts *counts)
{
    const uint64_t *cells = coverage->cells[at][type][decided];
    bool any = false;
    for (int point = 0; point < POINT_COUNT; point++)
        any = any || !reason_of(at, type, decided, point) || cells[point];
    if (!any) return;
    printf("%-8s %-16s %-15s", places[at], interaction_type_name((enum interaction_type)type),
           decisions[decided]);
    for (int point = 0; point < POINT_COUNT; point++) {
        bool unreached = reason_of(at, type, decided, point);
        bool thin = !unreached && cells[point] < hits_min, wrong = unreached && cells[point];
        counts->reachable += !unreached;
        counts->thin += thin;
        counts->wrong += wrong;
        if (unreached && !wrong)
            printf(" %13s ", "-");
        else
            printf(" %13llu%s", (unsigned long long)cells[point], thin || wrong ? "!" : " ");
    }
    printf("\n");
}

#define FATE_NAME(fate, name) name,
static const char *const fronts[FRONT_FATES] = {FRONT_FATE_LIST(FATE_NAME)};
static const char *const asked[ASKED_FATES] = {ASKED_FATE_LIST(FATE_NAME)};
#undef FATE_NAME

static void print_list(const char *title, const char *const *names, const uint64_t *met,
                       size_t count, unsigned hits_min, struct counts *counts)
{
    printf("\n%s:\n", title);
    for (size_t i = 0; i < count; i++) {
        bool thin = met[i] < hits_min;
        counts->reachable++;
        counts->thin += thin;
        printf("  %-50s %13llu%s\n", names[i], (unsigned long long)met[i], thin ? "!" : "");
    }
}

/* True if every cell that can be met was met often enough, and no other. */
bool coverage_print(const struct coverage *coverage, unsigned hits_min)
{
    struct counts counts = {0};
    printf("%-8s %-16s %-15s", "node", "interaction", "decision");
    for (int point = 0; point < POINT_COUNT; point++) printf(" %13s ", points[point]);
    printf("\n");
    for (int at = 0; at < AT_COUNT; at++)
        for (int type = 0; type < INTERACTION_TYPE_COUNT; type++)
            for (int decided = 0; decided < DECIDED_COUNT; decided++)
                print_row(coverage, at, type, decided, hits_min, &counts);
    print_list("front-end calls", fronts, coverage->fronts, FRONT_FATES, hits_min, &counts);
    print_list("tools that ask, and servers that are away", asked, coverage->asked, ASKED_FATES,
               hits_min, &counts);
    printf("\ncannot be met:\n");
    for (size_t i = 0; i < COUNT(unreachable); i++) {
        const struct unreachable *row = &unreachable[i];
        printf("  %s, %s,", row->at == ANY ? "any node" : places[row->at],
               interaction_type_name((enum interaction_type)row->type));
        for (int d = 0; d < DECIDED_COUNT; d++)
            if (row->decisions & BIT(d)) printf(" %s,", decisions[d]);
        printf(" %s: %s\n", row->points == NEXT_POINTS ? "before and behind next" : "any crash",
               row->reason);
    }
    printf("\n%u cells that can be met, %u of them under %u times; %u met that cannot be\n",
           counts.reachable, counts.thin, hits_min, counts.wrong);
    return !counts.thin && !counts.wrong;
}

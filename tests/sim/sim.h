/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's parts. A life is one conversation in a small world made from a seed: the agent as it
 * is, with its shell and its SQL, and a fake clock, loop, model, tools and people around it.
 *
 *     main.c    seeds, lives, crashes, the printed end
 *     process.c what dies: the shell, started and thrown away; steps and commits, as they are seen
 *     world.c   what survives: the database, and its rows behind the last commit
 *     loop.c    net/loop.h, store.c store/db/store.h, objects.c store/blob/blob.h and tool/spool.h
 *     model.c   what the model says
 *     tools.c   the installation: tools, policy; and what tools did outside
 *     air.c     calls of tools under way
 *     people.c  answers, cancels, expiries, tampering
 *     client.c  front-end tools, their results, and who reads along
 *     asking.c  tools that ask people something, and servers that stay away
 *     drill.c   lives that aim at one cell of the coverage table
 *     check.c   facts, rows and states that must hold at every commit
 *     oracle.c  what a step should come to, said a second time in other words
 *     cover.c   which (node, interaction, decision, crash point) was met how often
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "agent/core/asked.h"
#include "agent/core/context.h"
#include "agent/core/graph.h"
#include "agent/shell/run.h"
#include "base/arena.h"
#include "store/db/store.h"

/* ---- chance ---- */

struct chance {
    uint64_t x;
};
struct chance chance_from(uint64_t a, uint64_t b, uint64_t c);
unsigned below(struct chance *chance, unsigned limit);
bool one_in(struct chance *chance, unsigned n); /* 0: never */
void random_bytes(struct chance *chance, unsigned char out[static ID_RANDOM_BYTES]);

/* ---- the installation ---- */

struct sim;
enum { NO_VERDICT = -1 };
enum { SIM_HISTORY_FACTS = 8 }; /* so that rows are read inside commits, and by themselves */

/* tool, name, writes, idempotent, what the file says of it */
#define FAKES(X)                                        \
    X(FAKE_LOOK, "look", false, false, NO_VERDICT)      \
    X(FAKE_PUT, "put", true, true, NO_VERDICT)          \
    X(FAKE_SEND, "send", true, false, NO_VERDICT)       \
    X(FAKE_NOTE, "note", true, false, VERDICT_ALLOW)    \
    X(FAKE_KEEP, "keep", true, true, VERDICT_ALLOW)     \
    X(FAKE_SECRET, "secret", true, false, VERDICT_DENY) \
    X(FAKE_SIGN, "sign", true, false, VERDICT_CONFIRM)
#define FAKE_ENUM(fake, name, write, idempotent, verdict) fake,
enum fake { FAKES(FAKE_ENUM) FAKE_COUNT };
#undef FAKE_ENUM

/* A tool's schema may be another after a restart, or the tool may be gone. */
enum form {
    FORM_FIRST,
    FORM_REWORDED, /* takes the same arguments */
    FORM_OTHER,    /* does not */
    FORM_GONE,
    FORM_COUNT
};

/* What a tool's calls are told of it. */
struct fake_self {
    struct sim *sim;
    enum fake fake;
};

struct house {
    enum form forms[FAKE_COUNT];
    struct fake_self selves[FAKE_COUNT];
    int settings[FAKE_COUNT]; /* verdicts of the database; NO_VERDICT: none */
    struct tool rows[FAKE_COUNT];
    const struct tool *offered[FAKE_COUNT];
    struct policy_row settings_rows[FAKE_COUNT];
    struct tools tools;
    struct agent agent;
};

/* What kind of life this is. */
struct mood {
    unsigned calls[6];          /* weights: ask, plan, tool, bad arguments, no JSON, no tool */
    unsigned tools[FAKE_COUNT]; /* weights */
    unsigned text;              /* a turn in so many has no calls */
    unsigned parallel;          /* most calls of a turn */
    unsigned away, crash, stop; /* one in so many; 0: never */
    unsigned restyle, tamper, strict; /* schema at a restart, rows, policy */
    unsigned damage;                  /* of the snapshot */
    unsigned late, expire;            /* people who answer seldom, and set times */
    unsigned slow;                    /* calls in the air */
    unsigned lost;                    /* of calls in the air */
};

/* ---- what survives ---- */

/* The rows of the thread, as they stand behind the last commit. */
struct world {
    int64_t thread;
    struct fact *facts; /* texts of these two stay for the whole life */
    size_t fact_count;
    struct message *messages;
    size_t message_count;
    struct call *calls;
    size_t call_count;
    struct interaction *interactions;
    size_t interaction_count;
    struct grant *grants;
    size_t grant_count;
    struct run run;         /* the current one, or the last that was */
    bool queued;            /* another waits its turn */
    int64_t version;        /* of the snapshot; 0: there is none */
    struct state state;     /* in it */
    bool damaged;           /* it cannot be read */
    unsigned offers;        /* tools that the client of the run offers, bits of enum front */
    struct arena arenas[2]; /* of the rows as they are, and as they were */
};

enum { PLACES_MAX = 16, ROUNDS_MAX = 2 };

/* A question of a tool, as people were asked. */
struct place {
    int question; /* -1: one that nobody was to see */
    str interaction_id;
    str action, content; /* the reply; empty: none yet */
    bool closed;         /* it lapsed with its call */
};

/* How a tool asks in the middle of a call. */
enum asks { ASKS_NEVER, ASKS_ON_THE_LINE, ASKS_PARTING, ASKS_BOTH };

struct inquiry {
    enum asks how;
    unsigned questions[PLACES_MAX]; /* on the line, by place */
    unsigned count, rounds;         /* that it would ask on the line; that it would part */
    struct place places[PLACES_MAX];
    size_t place_count;
    str state;        /* that it wants back */
    bool parted;      /* it ended with what stands in places */
    uint64_t crashes; /* when people were asked last, or told that its server is away */
};

/* What the world knows of a call beside its row. */
struct deed {
    str call_id;
    int64_t run;
    str proposed; /* arguments, as they were stored first */
    struct {
        str tool, args, rule, binding, schema;
    } asked;                /* what its approval is about; tool empty: nobody was asked */
    bool approved, refused; /* people's last word */
    bool doubt;             /* a crash or a loss between started and done */
    bool flown_lost;        /* the doubt is the tool's, not a crash's */
    bool front;             /* the client executes it */
    str start_args;         /* what its last start sent */
    unsigned starts, tool_runs, executions, retries, results;
    unsigned left_in, left_on; /* process and start that it last took off in */
    enum tool_end ended; /* how its last attempt did; TOOL_DONE: also while it is in the air */
    bool dead;           /* its server will not be reached */
    bool landed;         /* what came back of it is to be saved */
    uint64_t crashes;    /* of all lives so far, when it was proposed */
    struct inquiry asking;
};

/* What the facts say so far. */
struct log {
    enum { LOG_IDLE, LOG_ASKED, LOG_LEG, LOG_PAUSED } place;
    bool step_open;
    int step;            /* the newest one */
    uint32_t legs;       /* of the run */
    uint32_t turns;      /* of the model, that became facts */
    uint32_t wrong;      /* turns with a call to correct, in a row */
    uint64_t tokens;     /* of those turns */
    uint64_t cost;       /* likewise */
    msec leg_since;      /* in a leg */
    uint64_t active_ms;  /* in legs that have ended */
    bool planned;        /* a plan was accepted */
    bool plan_open;      /* and the last that was told of it has a step that runs */
    uint64_t plan_step;  /* which */
    uint32_t plan_round; /* rounds when it began */
};

/* ---- what dies ---- */

/* What the model meant with a call. */
enum call_kind {
    KIND_ASK,
    KIND_PLAN,
    KIND_TOOL,
    KIND_BAD,
    KIND_NO_JSON,
    KIND_NO_TOOL,
    KIND_CARD,
    KIND_FRONT
};

enum { TURN_CALLS_MAX = 9, PIECES_MAX = 5, AIR_MAX = TURN_CALLS_MAX };

/* What the model is saying, or has said last. */
struct speech {
    const struct model_sink *sink; /* NULL: nobody listens any more */
    void *arg;
    unsigned said; /* pieces */
    bool calls_said;
    str pieces[PIECES_MAX], reasoning;
    unsigned piece_count;
    struct turn_call calls[TURN_CALLS_MAX]; /* without ids: the shell gives them */
    enum call_kind kinds[TURN_CALLS_MAX];
    bool bad[TURN_CALLS_MAX]; /* the arguments do not fit, whatever the installation */
    size_t call_count;
    struct model_usage usage;
};

/* An attempt of a tool's call, in the air. */
struct tool_call {
    struct sim *sim;
    struct arena arena;
    str call_id, tool, args;
    bool repeatable, write;
    bool executed;
    void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result);
    void (*on_ask)(void *arg, const struct tool_asked *asked);
    void *arg;
    const struct tool_said *said; /* that it was started with */
    size_t said_count;
    str state;
    unsigned place; /* questions so far */
    bool told[PLACES_MAX], waiting[PLACES_MAX];
    unsigned waiting_count;
    bool asking; /* a reply that comes now is the shell's own */
};

/* A step of the graph, as it was taken. */
struct step {
    bool there;
    struct arena arena; /* of what the input borrows from a stack */
    struct view view;
    struct input input;
    struct outcome *outcome;
    int settings[FAKE_COUNT];   /* as they were */
    const struct offer *offers; /* that its request brings; NULL: none */
};

struct process {
    bool alive, dying;
    bool stopping, drained; /* it was told to end */
    msec stop_at;           /* then it does, in any case */
    unsigned number;        /* of all processes of this life */
    struct runs *runs;
    struct bus *bus;
    struct bus_follower reader;
    int64_t told;       /* number of the newest fact that the reader knows */
    bool alone;         /* those who read along have gone */
    struct step taken;  /* by the shell, not saved yet */
    struct step inside; /* by the job that runs now */
    bool in_job;        /* one runs */
    bool saves;         /* what was taken */
    struct speech speech;
    struct tool_call *air[AIR_MAX];
    size_t air_count;
};

/* ---- the client ---- */

enum front { FRONT_PAINT, FRONT_LOCATE, FRONT_LOOK, FRONT_SIGN, FRONT_COUNT };

struct client {
    struct chance chance;
    bool brings;       /* tools of its own */
    unsigned messages; /* ids given so far */
};

struct offer {
    struct leg_input input; /* empty: it brings none */
    unsigned offers;
};

/* ---- coverage ---- */

enum { DECIDED_ALWAYS = DECISION_COUNT, DECIDED_RUN_CANCEL, DECIDED_COUNT };
enum where { AT_CHAT, AT_PLAN, AT_EXECUTE, AT_DELIVER, AT_CONFIRM, AT_COUNT };

/* Where a process died, as an interaction sees it. */
#define POINTS(X)                           \
    X(POINT_NONE, "none")                   \
    X(POINT_BEFORE_OPEN, "before opening")  \
    X(POINT_BEHIND_OPEN, "behind opening")  \
    X(POINT_BEFORE_ANSWER, "before answer") \
    X(POINT_BEHIND_ANSWER, "behind answer") \
    X(POINT_BEFORE_NEXT, "before next")     \
    X(POINT_BEHIND_NEXT, "behind next")
#define POINT_ENUM(point, name) point,
enum point { POINTS(POINT_ENUM) POINT_COUNT };
#undef POINT_ENUM

/* What becomes of a front-end call. */
#define FRONT_FATE_LIST(X)                         \
    X(FRONT_DONE, "done")                          \
    X(FRONT_FAILED, "failed")                      \
    X(FRONT_DECLINED, "not answered")              \
    X(FRONT_JOINED, "done while the leg was open") \
    X(FRONT_LEFT, "one of several, the run waits") \
    X(FRONT_RESTARTED, "done after a restart")     \
    X(FRONT_DROPPED, "ended with its run")         \
    X(FRONT_FORGED, "a result that nobody waited for")
#define FRONT_FATE_ENUM(fate, name) fate,
enum front_fate { FRONT_FATE_LIST(FRONT_FATE_ENUM) FRONT_FATES };
#undef FRONT_FATE_ENUM

/* What becomes of a tool's question, and of a call whose server is away. */
#define ASKED_FATE_LIST(X)                                             \
    X(LINE_ANSWERED, "asked on the line, answered")                    \
    X(LINE_DECLINED, "asked on the line, declined")                    \
    X(LINE_CANCELLED, "asked on the line, cancelled")                  \
    X(LINE_LAPSED, "asked on the line, expired")                       \
    X(LINE_STOPPED, "asked on the line, the run is cancelled")         \
    X(LINE_IMPATIENT, "asked on the line, the tool does not wait")     \
    X(LINE_LOST, "asked on the line, the call is lost")                \
    X(LINE_REFUSED, "not for people: declined at once")                \
    X(LINE_TOO_MANY, "too many are open: declined at once")            \
    X(LINE_AGAIN, "the same in the same place, nobody is asked")       \
    X(LINE_OTHER, "another in the same place")                         \
    X(LINE_CRASHED, "on the line over a crash, a read or idempotent")  \
    X(LINE_UNCERTAIN, "on the line over a crash, a write")             \
    X(PARTED_ANSWERED, "ended with questions, answered")               \
    X(PARTED_DECLINED, "ended with questions, declined or cancelled")  \
    X(PARTED_SEVERAL, "ended with several questions")                  \
    X(PARTED_NONE, "ended with no question, starts again")             \
    X(PARTED_CRASHED, "ended with questions, answered after a crash")  \
    X(PARTED_REPEATED, "started with replies, repeated after a crash") \
    X(PARTED_ENDLESS, "ended with questions too often")                \
    X(PARTED_STOPPED, "ended with questions, the run is cancelled")    \
    X(AWAY_CONTINUE, "server away, continue")                          \
    X(AWAY_GIVE_UP, "server away, give up")                            \
    X(AWAY_DROPPED, "server away, cancelled or expired")               \
    X(AWAY_CRASHED, "server away, decided after a crash")              \
    X(AWAY_STOPPED, "server away, the run is cancelled")
#define ASKED_FATE_ENUM(fate, name) fate,
enum asked_fate { ASKED_FATE_LIST(ASKED_FATE_ENUM) ASKED_FATES };
#undef ASKED_FATE_ENUM

struct coverage {
    uint64_t cells[AT_COUNT][INTERACTION_TYPE_COUNT][DECIDED_COUNT][POINT_COUNT];
    uint64_t fronts[FRONT_FATES];
    uint64_t asked[ASKED_FATES];
    uint64_t lives, steps, stale, crashes, failed;
};

struct cell {
    enum where at;
    enum interaction_type type;
    int decided;
};

/* A life may aim at a cell. */
struct drill {
    bool on, met;
    struct cell cell;
    unsigned opened, settled; /* commits that did, the first time it was met */
};

enum { CELLS_MAX = 32, MARKS_MAX = 1024 };

/* The last commits, as coverage sees them. */
struct trail {
    struct cell settled[CELLS_MAX], before[CELLS_MAX]; /* by the last commit, by the one before */
    size_t settled_count, before_count;
    size_t opened_from;             /* interactions of the last commit */
    unsigned char marks[MARKS_MAX]; /* of each interaction, bit POINT_* */
    unsigned opened_by[MARKS_MAX];  /* the commit, of each */
    bool lost[AT_COUNT]
             [INTERACTION_TYPE_COUNT]; /* would have been opened by a commit that was not */
};

/* ---- a life ---- */

enum side { BEFORE, BEHIND };

struct scenario {
    uint64_t seed;
    unsigned crash_at; /* number of a commit; 0: none planned */
    enum side side;
    bool file; /* the database is one */
};

/* A run that begins, or waits its turn. */
struct beginning {
    str press_tool, press_args; /* a button that was pressed; empty: a message */
    unsigned offers;            /* tools of the client */
};

struct sim {
    struct scenario scenario;
    struct chance chance;
    struct chance random; /* of the program itself */
    bool calm;            /* nothing bad happens any more, and people answer */
    bool trace;           /* tell it on standard error */
    bool probing;         /* a step is tried that nobody takes */
    msec now;
    unsigned commits, run_number, runs;
    unsigned wild;              /* events of this run until it calms down */
    unsigned events;            /* of this run */
    str press_tool, press_args; /* of the run */
    struct beginning next;      /* of the run that waits */
    bool begins;                /* somebody wants another to begin */
    struct arena life;          /* ends with the life */
    struct arena scratch;       /* ends with the commit */
    struct mood mood;
    struct drill drill;
    struct client client;
    struct chance asking; /* of tools that ask */
    unsigned asks, gone;  /* calls that ask, servers that stay away: one in so many; 0: never */
    bool crowd;           /* many ask at once */
    struct house house;
    struct saver saver;
    struct clock clock;
    struct loop *loop;
    struct store *store;
    struct blobs *blobs;
    struct db *db;
    struct world world;
    struct process process;
    struct deed *deeds;
    size_t deed_count;
    struct log log;
    struct trail trail;
    struct coverage *coverage;
    uint64_t history; /* a hash of all facts so far */
    char broken[400]; /* the first promise that was */
};

/* main.c */
void broken(struct sim *sim, const char *format, ...) PRINTF(2, 3);
void trace(const struct sim *sim, const char *format, ...) PRINTF(2, 3);

str keep(struct sim *sim, str text); /* for the whole life */

/* world.c */
void world_init(struct sim *sim); /* a database with an empty thread */
void world_done(struct sim *sim);
void world_crash(struct sim *sim); /* what is in the file is all there is */
void world_load(struct sim *sim);  /* the rows, anew */
struct call *world_call(struct sim *sim, str call_id);
struct interaction *world_interaction(struct sim *sim, str id);
bool world_open(const struct sim *sim);                      /* a run that has not ended */
bool world_unfinished(const struct sim *sim);                /* and that somebody has to work on */
void world_rest(const struct sim *sim, struct input *input); /* agent, binder, tools */
void world_write(struct sim *sim,
                 enum err e); /* something wrote past the store: look at the rows */

/* loop.c: net/loop.h */
struct loop *loop_fake(const msec *now);
void loop_fake_free(struct loop *loop);
bool loop_fake_busy(const struct loop *loop); /* work is to be done beside it */
bool loop_fake_work(struct loop *loop);       /* one of it is; false: there is none */
bool loop_fake_due(struct loop *loop);        /* one timer that is due; false: none is */
msec loop_fake_next(const struct loop *loop); /* when the first one is; 0: never */

/* store.c: store/db/store.h */
struct store *store_fake(struct sim *sim);
void store_fake_free(struct store *store);
bool store_fake_busy(const struct store *store);
bool store_fake_event(struct store *store); /* false: there is nothing to do */
void store_fake_drop(struct store *store);  /* the process dies: nothing is done any more */
void store_fake_ahead(struct store *store, struct job *job); /* now, before all that waits */

/* objects.c: store/blob/blob.h, tool/spool.h */
struct blobs *blobs_fake(struct sim *sim);
void blobs_fake_free(struct blobs *blobs);
void blobs_fake_drop(struct blobs *blobs);
bool blobs_fake_busy(const struct blobs *blobs);
bool blobs_fake_event(struct blobs *blobs);
bool blobs_fake_has(const struct blobs *blobs, str path);

/* process.c */
void process_init(struct sim *sim);
void process_done(struct sim *sim);
void process_die(struct sim *sim);
void process_stop(struct sim *sim);       /* it is told to end */
void process_stop_event(struct sim *sim); /* and does */
void process_come_back(struct sim *sim);
bool process_event(struct sim *sim); /* false: there is nothing to do */
bool process_busy(const struct sim *sim);
void process_idle(struct sim *sim); /* nothing can happen by itself: is that right? */
bool process_commit(struct sim *sim, enum side side); /* of a job that ran; true: it died here */

/* model.c */
extern const struct model_ops model_fake;
bool model_event(struct sim *sim); /* false: nobody listens */

/* tools.c */
void house_init(struct sim *sim);
void house_build(struct sim *sim);
void house_restyle(struct sim *sim); /* a restart with other tools */
void house_change_policy(struct sim *sim);
int fake_of(str name); /* -1: none */
const char *fake_name(enum fake fake);
bool fake_write(enum fake fake);
str fake_args(struct sim *sim, struct chance *chance, enum fake fake, bool wrong);
bool form_takes(enum form form, const struct json *args);
enum verdict verdict_of(const struct sim *sim, const int *settings, enum fake fake,
                        const struct json *args);
struct deed *deed_of(struct sim *sim, str call_id);
void outside_execute(struct sim *sim, struct tool_call *call);

/* air.c: calls of tools under way */
extern const struct tool_ops tool_fake;
bool air_event(struct sim *sim);       /* false: nothing happens to any of them now */
void air_crash(struct sim *sim);       /* what was sent may arrive after us */
void air_land(struct tool_call *call); /* it is gone from there; the caller frees it */
void air_free(struct tool_call *call);

/* people.c */
void people_begin(struct sim *sim); /* somebody writes, or presses a button */
bool people_event(struct sim *sim); /* somebody answers something; false: nothing is open */
void people_stop(struct sim *sim);
void people_meddle(struct sim *sim);
bool clock_event(struct sim *sim); /* something expires; false: nothing is due */

/* client.c */
void client_init(struct sim *sim);
struct offer client_request(struct sim *sim, struct arena *arena); /* what a request brings */
size_t client_offer_count(const struct sim *sim);
bool client_offers(const struct sim *sim, str name); /* now, to the model */
str client_tool(struct chance *chance);              /* a name the model may call */
bool client_waited_for(struct sim *sim, const struct call *call);
size_t client_results(struct sim *sim, struct front_result *out, size_t room);
void client_reads(struct sim *sim); /* somebody leaves, or comes */

/* asking.c */
void asking_init(struct sim *sim);
void asking_take_off(struct sim *sim, struct tool_call *call);
void asking_attempt(struct sim *sim, struct tool_call *call); /* another one begins */
bool asking_event(struct sim *sim, struct tool_call *call);   /* false: it asks nothing now */
bool asking_holds_back(const struct tool_call *call);         /* it has done nothing yet */
void asking_told(struct sim *sim, struct tool_call *call, size_t at,
                 const struct tool_reply *reply);
bool asking_stops(struct sim *sim); /* the run is to be cancelled now */
void asking_stalled(struct sim *sim, const struct tool_call *call);
bool asking_of_tool(const struct interaction *row); /* a tool's question, or its server's absence */
enum call_state asking_state(struct sim *sim, const struct call *before);
void asking_check(struct sim *sim, const struct view *view, const struct input *input,
                  const struct outcome *o);
void asking_check_rows(struct sim *sim, const struct call *call, size_t open);

/* drill.c */
void drill_init(struct sim *sim); /* over the mood and the installation */
int drill_decision(struct sim *sim, const struct interaction *row); /* -1: whatever they like */
bool drill_waits(struct sim *sim, const struct interaction *row);
bool drill_stops(struct sim *sim); /* the run is to be cancelled now */
void drill_calls(struct sim *sim, struct chance *chance, const struct state *state);
bool drill_restyle(struct sim *sim);
bool drill_spares(const struct sim *sim, const struct state *state); /* this turn is not to fail */
bool drill_alone(struct sim *sim, const struct state *state);        /* nobody reads along now */

/* check.c, oracle.c */
void check_outcome(struct sim *sim, const struct view *view, const struct input *input,
                   const struct outcome *o, const int *settings); /* before it is stored */
void check_stored(struct sim *sim, const struct input *input, const struct outcome *o);
void check_saved(struct sim *sim, const struct outcome *o); /* the rows say what it says */
void check_request_of_model(struct sim *sim, const struct model_request *request);
/* Is this call of a turn a card that can be shown? Then it is no call; the first one is shown. */
bool oracle_is_card(const struct sim *sim, const struct view *view, size_t at);
void oracle_turn(struct sim *sim, const struct view *view, const struct input *input,
                 const struct outcome *o, const int *settings);
void oracle_start(struct sim *sim, const struct view *view, const struct outcome *o,
                  const int *settings);
void oracle_resolve(struct sim *sim, const struct view *view, const struct input *input,
                    const struct outcome *o);

/* planned.c */
void planned_check(struct sim *sim, const struct outcome *o, const struct json *data);
void planned_ended(struct sim *sim, const struct input *input);

/* cover.c */
void trail_lost(struct sim *sim, const struct input *input, const struct outcome *o);
void trail_stored(struct sim *sim, const struct input *input, const struct outcome *o);
void trail_died(struct sim *sim);  /* behind the last commit */
void trail_begin(struct sim *sim); /* a run */
enum where where_of(struct sim *sim, const struct interaction *row);
bool cell_reachable(const struct cell *cell);
void coverage_add(struct coverage *sum, const struct coverage *one);
bool coverage_print(const struct coverage *coverage, unsigned hits_min);

#endif

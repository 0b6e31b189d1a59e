/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_agent [OPTIONS] [SEED [COUNT]]: the agent, with its shell and its SQL, in small worlds made from seeds.
 *
 *     -c N   at most N planned crashes for a seed; 0: before and behind every commit
 *     -j N   processes
 *     -k N   print the coverage table; every cell that can be met has to be met N times
 *     -s N   begin no seed after N seconds
 *     -1     end at the first promise that is broken
 *     -t AT  tell one life: of SEED, with a crash at AT ("0", "7-" before commit 7, "7+" behind it)
 *
 * A seed is lived once without a planned crash, which counts its commits, and then again with a crash
 * right before and right behind each of them, or behind as many as -c allows. In a part of the seeds
 * the process also dies at moments that chance picks. After a while everything calms down: nothing
 * fails any more, people answer, and the run has to end.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

enum {
    RUNS_MAX = 2,             /* of a life */
    EVENTS_WILD_MIN = 60,     /* of a run, before it calms down */
    EVENTS_BEHIND_DRILL = 12, /* when the cell is met */
    EVENTS_CALM_MAX = 5000,   /* far more than an end needs */
    FAILURES_TOLD_MAX = 20,
};

void broken(struct sim *sim, const char *format, ...)
{
    if (sim->broken[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(sim->broken, sizeof sim->broken, format, args);
    va_end(args);
}

void trace(const struct sim *sim, const char *format, ...)
{
    if (!sim->trace) return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ---- chance ---- */

/* An xorshift generator; its state is never 0. */
static uint64_t next(struct chance *chance)
{
    uint64_t x = chance->x;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    chance->x = x;
    return x * 0x9e3779b97f4a7c15u;
}

struct chance chance_from(uint64_t a, uint64_t b, uint64_t c)
{
    struct chance chance = {(a + 1) * 0x9e3779b97f4a7c15u | 1};
    chance.x ^= next(&chance) + b * 0xd1342543de82ef95u;
    chance.x |= 1;
    chance.x ^= next(&chance) + c * 0xaf251af3b0f025b5u;
    chance.x |= 1;
    for (int i = 0; i < 4; i++) next(&chance);
    return chance;
}

unsigned below(struct chance *chance, unsigned limit)
{
    return (unsigned)((next(chance) >> 32) % limit);
}

bool one_in(struct chance *chance, unsigned n)
{
    return n && below(chance, n) == 0;
}

void random_bytes(struct chance *chance, unsigned char out[static ID_RANDOM_BYTES])
{
    for (size_t i = 0; i < ID_RANDOM_BYTES; i += 8) {
        uint64_t word = next(chance);
        memcpy(out + i, &word, 8);
    }
}

/* ---- moods ---- */

static const struct mood moods[] = {
    /* ask, plan, tool, bad, no JSON, no tool; look, put, send, note, keep, secret, sign */
    {.calls = {1, 0, 6, 0, 0, 0}, .tools = {4, 1, 1, 3, 2, 0, 0}, .text = 3},
    {.calls = {6, 0, 3, 0, 0, 0}, .tools = {2, 2, 2, 2, 1, 0, 0}, .text = 4},
    {.calls = {0, 0, 10, 1, 0, 1}, .tools = {1, 4, 4, 3, 1, 1, 2}, .text = 5},
    {.calls = {2, 5, 6, 0, 0, 0}, .tools = {2, 2, 2, 5, 1, 0, 0}, .text = 3},
    {.calls = {1, 1, 3, 4, 4, 1}, .tools = {1, 1, 1, 1, 1, 1, 1}, .text = 9},
    {.calls = {3, 2, 9, 1, 1, 1}, .tools = {3, 3, 3, 4, 2, 1, 1}, .text = 4},
};

static unsigned maybe(struct chance *chance, unsigned odds, unsigned from, unsigned to)
{
    return one_in(chance, odds) ? from + below(chance, to - from) : 0;
}

static void pick_mood(struct sim *sim)
{
    static const unsigned parallel[] = {1, 2, 3, 5, 5, TURN_CALLS_MAX};
    struct chance *chance = &sim->chance;
    struct mood *mood = &sim->mood;
    *mood = moods[below(chance, COUNT(moods))];
    mood->parallel = parallel[below(chance, COUNT(parallel))];
    mood->away = maybe(chance, 3, 1, 6);
    mood->crash = maybe(chance, 4, 10, 60);
    mood->stop = maybe(chance, 3, 20, 90);
    mood->restyle = maybe(chance, 2, 1, 4);
    mood->tamper = maybe(chance, 5, 4, 20);
    mood->strict = maybe(chance, 4, 10, 40);
    mood->damage = maybe(chance, 12, 30, 120);
    mood->late = 1 + below(chance, 8);
    mood->expire = maybe(chance, 3, 4, 20);
    mood->lost = maybe(chance, 2, 2, 8);
    mood->slow = maybe(chance, 4, 2, 8);
}

/* ---- one life ---- */

static bool act(struct sim *sim, unsigned who)
{
    bool waits = sim->world.run.status == RUN_WAITING;
    bool slow = !sim->calm && sim->mood.slow && !one_in(&sim->chance, sim->mood.slow);
    if (who == 0) return !slow && air_event(sim);
    if (who == 1) return process_event(sim);
    if (waits && one_in(&sim->chance, 4)) sim->now += below(&sim->chance, 10 * 60 * 1000);
    return (sim->calm || waits || one_in(&sim->chance, sim->mood.late)) && people_event(sim);
}

static void event(struct sim *sim)
{
    struct chance *chance = &sim->chance;
    sim->now += below(chance, 20);
    if (!sim->process.alive) {
        process_come_back(sim);
        return;
    }
    if (sim->process.stopping) {
        process_stop_event(sim);
        return;
    }
    if (!sim->calm && one_in(chance, sim->mood.crash)) {
        if (one_in(chance, 3)) {
            process_stop(sim);
            return;
        }
        trail_died(sim);
        process_die(sim);
        return;
    }
    if (!sim->calm && one_in(chance, sim->mood.stop)) {
        people_stop(sim);
        return;
    }
    if (!sim->calm) people_meddle(sim);
    if (!sim->process.alive) return;
    client_reads(sim);
    if (one_in(chance, 2) && clock_event(sim)) return;
    unsigned first = below(chance, 3);
    bool acted = false;
    for (unsigned i = 0; i < 3 && !acted; i++) acted = act(sim, (first + i) % 3);
    if (!acted && !process_busy(sim)) process_idle(sim);
}

/* Somebody writes when nothing is there to do; or before that, and has to wait. */
static bool another_run(struct sim *sim)
{
    const struct process *process = &sim->process;
    if (!process->alive || process->stopping || sim->world.queued || sim->begins) return false;
    if (sim->run_number == sim->runs) return false;
    return !world_open(sim) || (sim->run_number && !sim->calm && one_in(&sim->chance, 30));
}

static bool over(const struct sim *sim)
{
    const struct process *process = &sim->process;
    return sim->run_number == sim->runs && !world_open(sim) && process->alive &&
           !process->stopping && !process_busy(sim) && !runs_active(process->runs);
}

static void live_all(struct sim *sim)
{
    while (!over(sim) && !sim->broken[0]) {
        if (!sim->events++) sim->wild = EVENTS_WILD_MIN + below(&sim->chance, 200);
        if (sim->drill.on && sim->drill.met && sim->wild > sim->events + EVENTS_BEHIND_DRILL)
            sim->wild = sim->events + EVENTS_BEHIND_DRILL;
        sim->calm = sim->events > sim->wild;
        if (sim->events == sim->wild + 1) trace(sim, "calm");
        if (sim->events > sim->wild + EVENTS_CALM_MAX) broken(sim, "the run does not end");
        if (another_run(sim))
            people_begin(sim);
        else
            event(sim);
    }
    if (!sim->broken[0]) process_idle(sim);
}

static void sim_init(struct sim *sim, const struct scenario *scenario, struct coverage *coverage,
                     bool telling)
{
    *sim = (struct sim){.scenario = *scenario,
                        .chance = chance_from(scenario->seed, 0, 0),
                        .random = chance_from(scenario->seed, 2, 2),
                        .coverage = coverage,
                        .trace = telling,
                        .now = 1794722770000};
    arena_init(&sim->life);
    arena_init(&sim->scratch);
    pick_mood(sim);
    house_init(sim);
    if (one_in(&sim->chance, 2)) drill_init(sim);
    client_init(sim);
    asking_init(sim);
    sim->runs = !sim->drill.on && one_in(&sim->chance, 3) ? RUNS_MAX : 1;
    world_init(sim);
    process_init(sim);
}

static void sim_done(struct sim *sim)
{
    process_done(sim);
    world_done(sim);
    arena_done(&sim->life);
    arena_done(&sim->scratch);
}

static struct scenario current; /* for the message of an assertion that fails */

static void say_life(const char *what)
{
    char at[16] = "";
    if (current.crash_at)
        snprintf(at, sizeof at, "%u%c", current.crash_at, current.side == BEFORE ? '-' : '+');
    dprintf(STDERR_FILENO, "sim_agent: seed %llu, crash %s: %s\n    again: sim_agent -t %s %llu\n",
            (unsigned long long)current.seed, at[0] ? at : "0", what, at[0] ? at : "0",
            (unsigned long long)current.seed);
}

static void on_abort(int signal)
{
    (void)signal;
    say_life("an assertion failed");
    _exit(99);
}

struct lived {
    unsigned commits;
    uint64_t history;
    unsigned opened, settled; /* commits of a drill that met its cell; 0: it is none */
};

/* False if a promise was broken. */
static bool live(const struct scenario *scenario, struct coverage *coverage, bool telling,
                 struct lived *ret_lived)
{
    static struct sim sim; /* large; one life at a time */
    current = *scenario;
    sim_init(&sim, scenario, coverage, telling);
    live_all(&sim);
    coverage->lives++;
    *ret_lived = (struct lived){sim.commits, sim.history, sim.drill.opened, sim.drill.settled};
    if (!sim.drill.on) ret_lived->settled = 0;
    bool kept = !sim.broken[0];
    if (!kept && coverage->failed < FAILURES_TOLD_MAX) say_life(sim.broken);
    sim_done(&sim);
    return kept;
}

/* Some crashes leave a file behind, as all do that a server has; memory is quicker. */
static bool in_file(uint64_t seed)
{
    enum { FILES_ONE_IN = 16 };
    return seed % FILES_ONE_IN == 0;
}

/* Every planned crash, or as many as are allowed, picked by chance. */
static bool live_with_crashes(uint64_t seed, unsigned crashes_max, struct coverage *coverage)
{
    enum { TWICE_ONE_IN = 32, AIMED_MAX = 3 };
    struct lived lived, again;
    struct chance chance = chance_from(seed, 1, 1);
    const struct scenario plain = {.seed = seed};
    if (!live(&plain, coverage, false, &lived)) return false;
    if (seed % TWICE_ONE_IN == 0) {
        if (!live(&plain, coverage, false, &again)) return false;
        if (again.history != lived.history) {
            say_life("lived twice, it has two histories");
            return false;
        }
    }
    unsigned all = 2 * lived.commits;
    unsigned wanted = crashes_max && crashes_max < all ? crashes_max : all;
    bool aims = lived.settled && wanted < all; /* a few of them fall where the drill looks */
    for (unsigned i = 0; aims && i < AIMED_MAX && wanted; i++, wanted--) {
        const unsigned commits[] = {lived.opened, lived.settled, lived.settled + 1};
        unsigned at = commits[below(&chance, COUNT(commits))];
        struct scenario scenario = {seed, at, one_in(&chance, 2) ? BEHIND : BEFORE, in_file(seed)};
        if (!live(&scenario, coverage, false, &again)) return false;
    }
    for (unsigned i = 0, left = all; i < all && wanted; i++, left--) {
        if (below(&chance, left) >= wanted) continue;
        wanted--;
        struct scenario scenario = {seed, i / 2 + 1, i % 2 ? BEHIND : BEFORE, in_file(seed)};
        if (!live(&scenario, coverage, false, &again)) return false;
    }
    return true;
}

/* ---- many ---- */

struct options {
    uint64_t seed, count;
    unsigned crashes, jobs, hits_min, seconds;
    bool first, tell;
    struct scenario told;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct tally {
    struct coverage coverage;
    uint64_t seeds;
};

/* Seeds of one process. */
static void work(const struct options *o, unsigned job, struct tally *tally)
{
    double end = now_s() + o->seconds;
    for (uint64_t i = job; i < o->count; i += o->jobs) {
        if (o->seconds && now_s() > end) return;
        bool kept = live_with_crashes(o->seed + i, o->crashes, &tally->coverage);
        tally->seeds++;
        tally->coverage.failed += !kept;
        if (!kept && o->first) return;
    }
}

/* True if every process came to its end. */
static bool work_in_processes(const struct options *o, struct tally *tallies)
{
    bool good = true;
    fflush(stdout);
    for (unsigned job = 0; job < o->jobs; job++) {
        pid_t pid = fork();
        if (pid < 0) return false;
        if (pid) continue;
        work(o, job, &tallies[job]);
        _exit(0);
    }
    for (unsigned job = 0; job < o->jobs; job++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0) good = false;
    }
    return good;
}

static int run_all(const struct options *o)
{
    struct tally *tallies = mmap(NULL, o->jobs * sizeof *tallies, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static struct tally sum;
    if (tallies == MAP_FAILED) return 2;
    double start = now_s();
    bool whole = o->jobs > 1 ? work_in_processes(o, tallies) : (work(o, 0, tallies), true);
    double seconds = now_s() - start;
    for (unsigned job = 0; job < o->jobs; job++) {
        coverage_add(&sum.coverage, &tallies[job].coverage);
        sum.seeds += tallies[job].seeds;
    }
    munmap(tallies, o->jobs * sizeof *tallies);
    const struct coverage *c = &sum.coverage;
    bool met = !o->hits_min || coverage_print(c, o->hits_min);
    uint64_t failed = c->failed + !whole;
    printf("seeds from %llu on: %llu, lives %llu, crashes %llu, stale steps %llu\n",
           (unsigned long long)o->seed, (unsigned long long)sum.seeds, (unsigned long long)c->lives,
           (unsigned long long)c->crashes, (unsigned long long)c->stale);
    printf("%llu steps in %.1f s: %.0f steps/s\n", (unsigned long long)c->steps, seconds,
           (double)c->steps / (seconds > 0 ? seconds : 1));
    printf("%llu passed, %llu failed\n", (unsigned long long)(sum.seeds - c->failed),
           (unsigned long long)failed);
    return failed || !met;
}

/* "7-", "7+", "0" */
static bool read_place(const char *text, struct scenario *told)
{
    char side = 0;
    if (sscanf(text, "%u%c", &told->crash_at, &side) < 1) return false;
    told->side = side == '+' ? BEHIND : BEFORE;
    return true;
}

static bool read_number(const char *text, unsigned *ret_number)
{
    uint64_t number;
    if (str_to_u64(str_c(text), &number) || number > 1000 * 1000) return false;
    *ret_number = (unsigned)number;
    return true;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    int option;
    bool fine = true;
    while ((option = getopt(argc, argv, "c:j:k:s:t:1")) != -1) {
        if (option == 'c') fine = fine && read_number(optarg, &o->crashes);
        if (option == 'j') fine = fine && read_number(optarg, &o->jobs) && o->jobs;
        if (option == 'k') fine = fine && read_number(optarg, &o->hits_min);
        if (option == 's') fine = fine && read_number(optarg, &o->seconds);
        if (option == '1') o->first = true;
        if (option == 't') o->tell = fine = fine && read_place(optarg, &o->told);
        if (option == '?') fine = false;
    }
    if (optind < argc) fine = fine && !str_to_u64(str_c(argv[optind++]), &o->seed);
    if (optind < argc) fine = fine && !str_to_u64(str_c(argv[optind++]), &o->count);
    return fine && optind == argc;
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1, .count = 1000, .crashes = 0, .jobs = 1};
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: sim_agent [-c CRASHES] [-j JOBS] [-k HITS] [-s SECONDS] [-1]"
                        " [-t AT] [SEED [COUNT]]\n");
        return 2;
    }
    signal(SIGABRT, on_abort);
    if (!o.tell) return run_all(&o);
    static struct coverage coverage;
    struct lived lived;
    o.told.seed = o.seed;
    o.told.file = o.told.crash_at && in_file(o.seed);
    return !live(&o.told, &coverage, true, &lived);
}

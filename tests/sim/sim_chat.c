/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_chat SEED COUNT: the pure core of the agent in a small world made from a seed.
 *
 * The disk survives: facts, history rows, the snapshot, the run's status. The process does not: the
 * state in memory, the attempt of the model, what was shown of it. Between two commits, at any
 * piece of the model's answer, the process may die or a person may stop the run.
 *
 * Each seed is lived once without a planned crash, which counts its commits. Then it is lived again
 * for every commit, with a crash right before it and with one right behind it. Whatever happens:
 * facts have no gap and follow the grammar below, a run ends, with one last fact, and leaves no
 * snapshot; it ends as its last input says; the answer stored is the one the model gave, or what
 * was shown of it; and a step from the snapshot gives the bytes of the step from memory.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/graph.h"
#include "base/json.h"
#include "base/limits.h"

enum {
    RUNS_MAX = 3,      /* of the thread */
    ATTEMPTS_MAX = 3,  /* of a model call */
    PIECES_MAX = 6,    /* of an answer */
    EVENTS_MAX = 5000, /* of a run: far more than luck needs */
    FACTS_MAX = 64,
    ROWS_MAX = 16,
    TEXT_BYTES_MAX = 1024,
    OUTCOME_BYTES_MAX = 64 * 1024,
};

enum side { BEFORE, BEHIND };

struct scenario {
    uint64_t seed;
    unsigned crash_at; /* number of a commit; 0: none planned */
    enum side side;
};

/* What survives. */
struct disk {
    struct arena arena;
    struct fact facts[FACTS_MAX];
    size_t fact_count;
    struct message rows[ROWS_MAX];
    size_t row_count;
    struct buf snapshot; /* empty: none */
    enum run_status status;
    const char *place; /* in the grammar */
    str open_step;     /* data of the step.start that has no step.finish yet */
    size_t ends;       /* last facts of legs */
};

/* What dies. */
struct process {
    bool alive;
    struct arena arena;
    struct state state;
    unsigned attempts;
    bool calling; /* an attempt is under way */
    char attempt_id[ID_BYTES];
    struct buf text, reasoning; /* shown so far */
    unsigned pieces;            /* still to come */
};

struct sim {
    struct scenario scenario;
    uint64_t random;
    msec now;
    unsigned commits;
    struct disk disk;
    struct process process;
    char broken[256]; /* the first promise that was */
};

static PRINTF(2, 3) void broken(struct sim *sim, const char *format, ...)
{
    if (sim->broken[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(sim->broken, sizeof sim->broken, format, args);
    va_end(args);
}

/* ---- chance ---- */

/* An xorshift generator; its state is never 0. */
static uint64_t chance(struct sim *sim)
{
    uint64_t x = sim->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    sim->random = x;
    return x * 0x9e3779b97f4a7c15u;
}

static unsigned below(struct sim *sim, unsigned limit)
{
    return (unsigned)((chance(sim) >> 32) % limit);
}

static bool one_in(struct sim *sim, unsigned n)
{
    return below(sim, n) == 0;
}

static void random_bytes(struct sim *sim, unsigned char out[static ID_RANDOM_BYTES])
{
    for (size_t i = 0; i < ID_RANDOM_BYTES; i++) out[i] = (unsigned char)below(sim, 256);
}

/* ---- the grammar of a thread ---- */

/* place, fact, next place */
static const char *const grammar[][3] = {
    {"idle", FACT_MESSAGE_ADDED, "asked"}, {"asked", FACT_RUN_STARTED, "leg"},
    {"leg", FACT_STEP_START, "step"},      {"step", FACT_REASONING_END, "reasoned"},
    {"reasoned", FACT_TEXT_END, "step"},   {"step", FACT_TEXT_END, "step"},
    {"step", FACT_STEP_FINISH, "leg"},     {"leg", FACT_RUN_FINISHED, "idle"},
    {"leg", FACT_RUN_ERROR, "idle"},
};

static void follow_grammar(struct sim *sim, const char *type)
{
    for (size_t i = 0; i < COUNT(grammar); i++) {
        if (strcmp(grammar[i][0], sim->disk.place) || strcmp(grammar[i][1], type)) continue;
        sim->disk.place = grammar[i][2];
        return;
    }
    broken(sim, "%s in place \"%s\"", type, sim->disk.place);
}

static void check_step(struct sim *sim, const struct fact *fact)
{
    struct disk *disk = &sim->disk;
    if (!strcmp(fact->type, FACT_STEP_START)) disk->open_step = fact->data;
    if (strcmp(fact->type, FACT_STEP_FINISH)) return;
    if (!str_eq(fact->data, disk->open_step)) broken(sim, "a step ends that is not open");
    disk->open_step = STR_EMPTY;
}

/* The text is what the attempt under way has shown, under its id. */
static void check_text(struct sim *sim, const struct fact *fact, const struct json *data)
{
    bool text = !strcmp(fact->type, FACT_TEXT_END);
    if (!text && strcmp(fact->type, FACT_REASONING_END)) return;
    const struct process *process = &sim->process;
    str shown = buf_str(text ? &process->text : &process->reasoning);
    if (!str_eq(json_text(json_get(data, STR("content"))), shown))
        broken(sim, "%s has another text than was shown", fact->type);
    if (!str_eq(json_text(json_get(data, STR("messageId"))), str_c(process->attempt_id)))
        broken(sim, "%s has another id than was shown", fact->type);
}

static void check_fact(struct sim *sim, const struct fact *fact)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *data;
    if (json_parse(&arena, fact->data, &data, NULL)) {
        broken(sim, "%s is not JSON", fact->type);
        return;
    }
    follow_grammar(sim, fact->type);
    check_step(sim, fact);
    check_text(sim, fact, data);
    if (!strcmp(fact->type, FACT_RUN_FINISHED) || !strcmp(fact->type, FACT_RUN_ERROR))
        sim->disk.ends++;
}

/* ---- the process dies and comes back ---- */

static void forget_attempt(struct process *process)
{
    process->calling = false;
    buf_clear(&process->text);
    buf_clear(&process->reasoning);
}

static void die(struct sim *sim)
{
    struct process *process = &sim->process;
    forget_attempt(process);
    arena_reset(&process->arena);
    process->state = (struct state){0};
    process->attempts = 0;
    process->alive = false;
}

static void come_back(struct sim *sim)
{
    struct fault why;
    struct process *process = &sim->process;
    process->alive = true;
    if (state_parse(&process->arena, buf_str(&sim->disk.snapshot), &process->state, &why))
        broken(sim, "the snapshot does not load: %s %s", why.field, why.text);
}

/* ---- commits ---- */

static void store_fact(struct sim *sim, struct fact fact)
{
    struct disk *disk = &sim->disk;
    if (disk->fact_count == FACTS_MAX) {
        broken(sim, "more than %d facts", FACTS_MAX);
        return;
    }
    fact.seq = (int64_t)disk->fact_count + 1;
    fact.data = arena_str(&disk->arena, fact.data);
    disk->facts[disk->fact_count++] = fact;
    check_fact(sim, &fact);
}

static void store_row(struct sim *sim, const struct message *message, int64_t base)
{
    struct disk *disk = &sim->disk;
    int64_t seq = base + message->seq;
    if (message->seq < 1 || seq > (int64_t)disk->fact_count) {
        broken(sim, "a row belongs to fact %lld", (long long)seq);
        return;
    }
    for (size_t i = 0; i < disk->row_count; i++)
        if (str_eq(disk->rows[i].id, message->id)) broken(sim, "two rows have one id");
    if (disk->row_count == ROWS_MAX) {
        broken(sim, "more than %d rows", ROWS_MAX);
        return;
    }
    struct message *row = &disk->rows[disk->row_count++];
    *row = (struct message){.seq = seq, .id = arena_str(&disk->arena, message->id)};
}

static void store_outcome(struct sim *sim, const struct outcome *o)
{
    struct disk *disk = &sim->disk;
    int64_t base = (int64_t)disk->fact_count;
    for (size_t i = 0; i < o->fact_count; i++) store_fact(sim, o->facts[i]);
    for (size_t i = 0; i < o->message_count; i++) store_row(sim, &o->messages[i], base);
    buf_clear(&disk->snapshot);
    if (!o->ended) state_write(&disk->snapshot, &o->state);
    disk->status = o->status;
    if (o->ended == run_status_open(o->status)) broken(sim, "ended and still open, or neither");
    if (o->ended != !strcmp(disk->place, "idle")) broken(sim, "the run and its leg differ");
}

/* False: the process died before or behind it. */
static bool commit(struct sim *sim, const struct outcome *o)
{
    sim->commits++;
    bool crash = sim->commits == sim->scenario.crash_at;
    if (crash && sim->scenario.side == BEFORE) {
        die(sim);
        return false;
    }
    store_outcome(sim, o);
    if (!crash) return true;
    die(sim);
    return false;
}

/* ---- what happens ---- */

/* The person's message and the start of its run; asked again until it is there. */
static void ask(struct sim *sim, unsigned run)
{
    struct process *process = &sim->process;
    struct arena *arena = &process->arena;
    struct outcome start, o;
    process->alive = true;
    struct message message = {
        .seq = 1,
        .id = arena_printf(arena, "u%u", run),
        .role = STR("user"),
        .content = STR("\"?\""),
        .metadata = STR("{}"),
        .created = sim->now,
    };
    graph_start(arena,
                &(struct start){.run_id = arena_printf(arena, "r%u", run),
                                .task_id = arena_printf(arena, "task%u", run),
                                .owner = STR("local"),
                                .thread_id = STR("t1"),
                                .agent = STR("assistant"),
                                .model = STR("fake"),
                                .leg = 1,
                                .now = sim->now},
                &start);
    o = start;
    o.fact_count = start.fact_count + 1;
    o.facts = arena_array(arena, o.fact_count, sizeof *o.facts);
    o.facts[0] = (struct fact){.type = FACT_MESSAGE_ADDED,
                               .run_id = start.state.trace_id,
                               .at = sim->now,
                               .data = fact_message_added(arena, &message)};
    memcpy(o.facts + 1, start.facts, start.fact_count * sizeof *o.facts);
    o.messages = &message;
    o.message_count = 1;
    if (commit(sim, &o)) process->state = o.state;
}

/* Everything that a step wants stored, as bytes. */
static void print_outcome(struct buf *out, const struct outcome *o)
{
    for (size_t i = 0; i < o->fact_count; i++) {
        buf_append(out, str_c(o->facts[i].type));
        buf_append(out, o->facts[i].data);
    }
    for (size_t i = 0; i < o->message_count; i++) message_write(out, &o->messages[i]);
    state_write(out, &o->state);
}

/* Memory and snapshot are the same state. */
static void check_same_from_disk(struct sim *sim, const struct input *input,
                                 const struct outcome *o)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf memory, disk;
    arena_init(&arena);
    buf_init(&memory, OUTCOME_BYTES_MAX);
    buf_init(&disk, OUTCOME_BYTES_MAX);
    struct state loaded;
    struct outcome again;
    if (state_parse(&arena, buf_str(&sim->disk.snapshot), &loaded, NULL)) {
        broken(sim, "the snapshot does not load");
        return;
    }
    graph_step(&arena, &loaded, input, &again);
    print_outcome(&memory, o);
    print_outcome(&disk, &again);
    if (memory.full || !str_eq(buf_str(&memory), buf_str(&disk)))
        broken(sim, "the step from the snapshot is another than from memory");
}

static size_t count_facts(const struct outcome *o, const char *type, str part)
{
    size_t count = 0;
    for (size_t i = 0; i < o->fact_count; i++)
        count += !strcmp(o->facts[i].type, type) && str_find(o->facts[i].data, part) >= 0;
    return count;
}

/* How a run ends that gets this input: said a second time, in other words than the graph's. */
static enum run_status expected_status(const struct input *input)
{
    if (input->kind == INPUT_CANCEL) return RUN_CANCELLED;
    return input->kind == INPUT_TURN && !input->turn.call_count ? RUN_COMPLETED : RUN_FAILED;
}

static void check_expected(struct sim *sim, const struct input *input, const struct outcome *o)
{
    const struct turn *turn = &input->turn;
    enum run_status status = expected_status(input);
    bool stopped = status == RUN_CANCELLED, completed = status == RUN_COMPLETED;
    bool kept = completed || (stopped && turn->text.len);
    char usage[96];
    snprintf(usage, sizeof usage, "\"usage\":{\"inputTokens\":%llu,\"outputTokens\":%llu,",
             (unsigned long long)turn->usage.input_tokens,
             (unsigned long long)turn->usage.output_tokens);
    const struct {
        const char *what, *type;
        str part;
        size_t count;
    } rows[] = {
        {"the answer", FACT_TEXT_END, STR(""), kept},
        {"its mark", FACT_TEXT_END, STR(",\"stopped\":true}"), kept && stopped},
        {"reasoning", FACT_REASONING_END, STR(""), kept && turn->reasoning.len},
        {"the report's start", FACT_STEP_START, STR("{\"stepName\":\"report\",\"index\":2,"),
         completed},
        {"an error", FACT_RUN_ERROR, STR(""), status == RUN_FAILED},
        {"a completed end", FACT_RUN_FINISHED, STR("\"outcome\":\"completed\""), completed},
        {"a cancelled end", FACT_RUN_FINISHED, STR("\"outcome\":\"cancelled\""), stopped},
        {"the usage", FACT_RUN_FINISHED, str_c(usage), completed || stopped},
    };
    if (o->status != status) broken(sim, "the run is %s", run_status_name(o->status));
    if (o->message_count != (size_t)kept + (kept && turn->reasoning.len))
        broken(sim, "%zu rows", o->message_count);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (count_facts(o, rows[i].type, rows[i].part) != rows[i].count)
            broken(sim, "not %zu times: %s", rows[i].count, rows[i].what);
}

static void step(struct sim *sim, struct input input)
{
    struct process *process = &sim->process;
    struct outcome o;
    input.now = sim->now;
    random_bytes(sim, input.random);
    input.turn.message_id = process->calling ? str_c(process->attempt_id) : STR_EMPTY;
    input.turn.text = buf_str(&process->text);
    input.turn.reasoning = buf_str(&process->reasoning);
    graph_step(&process->arena, &process->state, &input, &o);
    check_expected(sim, &input, &o);
    check_same_from_disk(sim, &input, &o);
    if (!commit(sim, &o)) return;
    process->state = o.state;
    forget_attempt(process);
}

/* A person stops the run: a commit of its own, which outlives the process. */
static void stop(struct sim *sim)
{
    sim->commits++;
    bool crash = sim->commits == sim->scenario.crash_at;
    if (!crash || sim->scenario.side == BEHIND) sim->disk.status = RUN_CANCELLING;
    if (crash) die(sim);
}

static void begin_attempt(struct sim *sim)
{
    struct process *process = &sim->process;
    unsigned char random[ID_RANDOM_BYTES];
    random_bytes(sim, random);
    id_make(random, process->attempt_id);
    process->calling = true;
    process->attempts++;
    process->pieces = below(sim, PIECES_MAX + 1);
}

/* Reasoning comes before the text. */
static void next_piece(struct sim *sim)
{
    static const char *const pieces[] = {
        "a", "hello ", "好", "\xf0\x9f\x98\x80", "\"", "\\", "\n", "\x01", "\xe2\x80\xa8", "}]",
    };
    struct process *process = &sim->process;
    bool reasoning = !process->text.len && one_in(sim, 3);
    buf_append(reasoning ? &process->reasoning : &process->text,
               str_c(pieces[below(sim, COUNT(pieces))]));
    process->pieces--;
}

static void end_attempt(struct sim *sim)
{
    struct process *process = &sim->process;
    unsigned luck = below(sim, 20);
    if (luck < 13) {
        step(sim, (struct input){.kind = INPUT_TURN, .turn.usage = {below(sim, 99), 7}});
    } else if (luck == 13) {
        step(sim, (struct input){.kind = INPUT_TURN, .turn.call_count = 1 + below(sim, 3)});
    } else if (luck == 14) {
        step(sim,
             (struct input){.kind = INPUT_DOWN, .why = ERR_INTERNAL, .why_text = STR("refused")});
    } else if (process->attempts < ATTEMPTS_MAX) {
        forget_attempt(process);
    } else {
        step(sim, (struct input){.kind = INPUT_DOWN, .why = ERR_MODEL_UNAVAILABLE});
    }
}

static void model_event(struct sim *sim)
{
    if (one_in(sim, 40))
        die(sim);
    else if (one_in(sim, 30))
        stop(sim);
    else if (!sim->process.calling)
        begin_attempt(sim);
    else if (sim->process.pieces)
        next_piece(sim);
    else
        end_attempt(sim);
}

static void event(struct sim *sim)
{
    sim->now += below(sim, 50);
    if (!sim->process.alive)
        come_back(sim);
    else if (sim->disk.status == RUN_CANCELLING)
        step(sim, (struct input){.kind = INPUT_CANCEL});
    else if (graph_effect(&sim->process.state) == EFFECT_MODEL)
        model_event(sim);
    else
        broken(sim, "the run is open and has nothing to do");
}

/* ---- one life ---- */

static void check_end(struct sim *sim, unsigned run)
{
    struct disk *disk = &sim->disk;
    if (run_status_open(disk->status)) broken(sim, "the run does not end");
    if (disk->snapshot.len) broken(sim, "the run ended and left a snapshot");
    if (disk->ends != run) broken(sim, "%zu last facts for %u runs", disk->ends, run);
    for (size_t i = 0; i < disk->fact_count; i++)
        if (disk->facts[i].seq != (int64_t)i + 1) broken(sim, "a gap before fact %zu", i + 1);
}

static void live_run(struct sim *sim, unsigned run)
{
    size_t before = sim->disk.fact_count;
    for (unsigned i = 0; i < 2 && sim->disk.fact_count == before; i++) ask(sim, run);
    for (unsigned i = 0; i < EVENTS_MAX && run_status_open(sim->disk.status); i++) {
        if (sim->broken[0]) return;
        event(sim);
    }
    check_end(sim, run);
    die(sim); /* the next run finds nothing of this one in memory */
}

static void sim_init(struct sim *sim, const struct scenario *scenario)
{
    *sim = (struct sim){.scenario = *scenario, .now = 1794722770000};
    sim->random = (scenario->seed + 1) * 0x9e3779b97f4a7c15u | 1;
    sim->disk.place = "idle";
    arena_init(&sim->disk.arena);
    arena_init(&sim->process.arena);
    buf_init(&sim->disk.snapshot, STATE_BYTES_MAX);
    buf_init(&sim->process.text, TEXT_BYTES_MAX);
    buf_init(&sim->process.reasoning, TEXT_BYTES_MAX);
}

static void sim_done(struct sim *sim)
{
    arena_done(&sim->disk.arena);
    arena_done(&sim->process.arena);
    buf_done(&sim->disk.snapshot);
    buf_done(&sim->process.text);
    buf_done(&sim->process.reasoning);
}

static struct scenario current; /* for the message of an assertion that fails */

static void say_seed(int signal)
{
    static const char *const sides[] = {"before", "behind"};
    dprintf(STDERR_FILENO, "sim_chat: seed %llu, crash %s commit %u\n",
            (unsigned long long)current.seed, sides[current.side], current.crash_at);
    if (signal) _exit(99);
}

/* How many commits it had; false if a promise was broken. */
static bool live(const struct scenario *scenario, unsigned *ret_commits, uint64_t *lives)
{
    AUTO(sim_done) struct sim sim;
    current = *scenario;
    sim_init(&sim, scenario);
    unsigned runs = 1 + below(&sim, RUNS_MAX);
    for (unsigned run = 1; run <= runs && !sim.broken[0]; run++) live_run(&sim, run);
    *lives += 1;
    *ret_commits = sim.commits;
    if (!sim.broken[0]) return true;
    fprintf(stderr, "sim_chat: %s\n", sim.broken);
    say_seed(0);
    return false;
}

static bool live_with_every_crash(uint64_t seed, uint64_t *lives)
{
    unsigned commits, ignored;
    if (!live(&(struct scenario){.seed = seed}, &commits, lives)) return false;
    for (unsigned at = 1; at <= commits; at++)
        for (unsigned side = BEFORE; side <= BEHIND; side++)
            if (!live(&(struct scenario){seed, at, (enum side)side}, &ignored, lives)) return false;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, count = 1000, failed = 0, lives = 0;
    if (argc > 3 || (argc > 1 && str_to_u64(str_c(argv[1]), &seed)) ||
        (argc > 2 && str_to_u64(str_c(argv[2]), &count))) {
        fprintf(stderr, "usage: sim_chat [SEED [COUNT]]\n");
        return 2;
    }
    signal(SIGABRT, say_seed);
    for (uint64_t i = 0; i < count; i++) failed += !live_with_every_crash(seed + i, &lives);
    printf("%llu lives\n", (unsigned long long)lives);
    printf("%llu passed, %llu failed\n", (unsigned long long)(count - failed),
           (unsigned long long)failed);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 *     start ─▶ in the air ── done, failed ──▶ long? spooled; files? put ──▶ over
 *                 ▲   │                                                     ▲
 *                 │   ├── away, or lost and repeatable ──▶ rest ────────────┤ no attempts left
 *                 └───┼────────────────────────────────────┘                │
 *                     └── lost, a write ────────────────────────────────────┘
 *
 * In the air it may ask people something, any number of times; it stays there, or lands with it to start
 * again when it has its replies. A server that stays away lands it too, and a person decides.
 *
 * A tool may have spooled a long result itself, while it came; only its ends are then in memory.
 *
 * Over means that the end is known, as far as it ever will be, and waits to be saved.
 */
#include "agent/flight.h"

#include <stdlib.h>
#include <string.h>

#include "agent/asked.h"
#include "agent/texts.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "net/loop.h"
#include "tool/elicit.h"
#include "tool/spool.h"
#include "tool/tools.h"

struct flight {
    struct flight *next;
    struct flights *flights;
    struct arena arena;
    const struct tool *tool;
    struct tool_request request;
    bool repeatable;
    unsigned attempts;
    struct tool_call *call; /* NULL: not in the air */
    struct spool_job *spooling;
    struct luggage *luggage; /* files that came back; NULL: none */
    str text;                /* for the model, without those */
    struct timer *timer;
    bool in_doubt; /* an attempt was lost: it may have happened */
    bool over, lost, away;
    str why; /* of one that is away */
    struct call_end end;
    struct tool_asked asked[QUESTIONS_CALL_MAX + 1]; /* not saved yet, the oldest first */
    size_t asked_count;
    str waiting[QUESTIONS_CALL_MAX]; /* hashes of questions without a reply, by their position */
    size_t waiting_count;
};

static struct flight *find(const struct flights *flights, str call_id)
{
    for (struct flight *flight = flights->first; flight; flight = flight->next)
        if (str_eq(flight->request.call_id, call_id)) return flight;
    return NULL;
}

static void flight_free(struct flight *flight)
{
    struct flight **at = &flight->flights->first;
    while (*at != flight) at = &(*at)->next;
    *at = flight->next;
    if (flight->call) tool_cancel(flight->tool, flight->call);
    if (flight->spooling) spool_forget(flight->spooling);
    luggage_forget(flight->luggage);
    timer_free(flight->timer);
    arena_done(&flight->arena);
    free(flight);
}

/* ---- the end ---- */

static void over(struct flight *flight)
{
    flight->over = true;
    flight->flights->on_over(flight->flights->arg);
}

/* What came back is over when all of it is where it stays. */
static void arrived(struct flight *flight)
{
    struct call_end *end = &flight->end;
    struct arena *arena = &flight->arena;
    if (flight->spooling || (flight->luggage && !luggage_over(flight->luggage))) return;
    if (flight->luggage) {
        struct attachment *rows;
        const str parts[] = {flight->text, flight->text.len ? STR("\n") : STR_EMPTY,
                             luggage_lines(flight->luggage, arena, flight->request.locale)};
        end->model_text = text_join(arena, parts, COUNT(parts));
        end->file_count = luggage_rows(flight->luggage, arena, &rows);
        end->files = rows;
    }
    over(flight);
}

static void on_luggage(void *arg)
{
    arrived(arg);
}

static void on_luggage_trouble(void *arg, const char *what, enum err e)
{
    struct flight *flight = arg;
    flight->flights->on_trouble(flight->flights->arg, what, e);
}

/* An end that we tell, not the tool. */
static void set_failed(struct flight *flight, const char *code, str text)
{
    flight->end = (struct call_end){
        .failed = true, .error = str_c(code), .content = text, .model_text = text};
}

/* Without its file it stands in the row, long as it is: what came back is never thrown away. */
static void on_spooled(void *arg, enum err e, const struct fault *reason)
{
    struct flight *flight = arg;
    (void)reason;
    flight->spooling = NULL;
    if (e) {
        flight->flights->on_trouble(flight->flights->arg, "a long result has no file", e);
        flight->end.result_hash = STR_EMPTY;
    } else {
        flight->end.spool = flight->request.call_id;
        flight->end.result = STR_EMPTY;
    }
    arrived(flight);
}

static str hash_text(struct arena *arena, const unsigned char hash[static HASH_BYTES])
{
    char *hex = arena_alloc(arena, HASH_HEX_BYTES);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    return (str){hex, HASH_HEX_BYTES - 1};
}

/* It goes to a file first if it is long and its tool has not put it there. */
static void take_result(struct flight *flight, const struct tool_result *result)
{
    struct call_end *end = &flight->end;
    unsigned char hash[HASH_BYTES];
    if (result->spooled) {
        end->spool = flight->request.call_id;
        end->result_hash = hash_text(&flight->arena, result->result_hash);
        end->result_bytes = result->result_bytes;
    } else {
        end->result = arena_str(&flight->arena, result->result);
        end->result_bytes = end->result.len;
    }
    if (end->result.len <= CALL_INLINE_BYTES_MAX) {
        arrived(flight);
        return;
    }
    crypto_sha256(end->result, hash);
    end->result_hash = hash_text(&flight->arena, hash);
    flight->spooling = spool_write(flight->flights->spool, flight->request.call_id, end->result,
                                   on_spooled, flight);
}

/* What came back is borrowed, so it is copied. */
static void landed(struct flight *flight, bool failed, const struct tool_result *result)
{
    struct arena *arena = &flight->arena;
    flight->end = (struct call_end){
        .failed = failed,
        .error = arena_str(arena, result->error),
        .content = arena_str(arena, result->content),
        .ui_hints = arena_str(arena, result->ui_hints),
        .model_text = tool_model_text(arena, result, flight->request.locale),
    };
    if (failed && !flight->end.error.len) flight->end.error = STR("failed");
    if (result->unkept)
        flight->flights->on_trouble(flight->flights->arg, "a long result has no file",
                                    result->unkept);
    bool words = result->error.len || result->content.len || result->result.len || result->spooled;
    if (words) flight->text = flight->end.model_text;
    flight->waiting_count = 0; /* what it has asked is of no use any more */
    if (result->file_count)
        flight->luggage = luggage_new(&(struct luggage_options){.loop = flight->flights->loop,
                                                                .blobs = flight->flights->blobs,
                                                                .look = flight->flights->look,
                                                                .on_over = on_luggage,
                                                                .on_trouble = on_luggage_trouble,
                                                                .arg = flight},
                                      result->files, result->file_count);
    take_result(flight, result);
}

/* ---- questions ---- */

static void keep_questions(struct flight *flight, const struct tool_asked *asked)
{
    struct arena *arena = &flight->arena;
    struct tool_question *copy = arena_array(arena, asked->count, sizeof *copy);
    for (size_t i = 0; i < asked->count; i++)
        copy[i] = (struct tool_question){.id = arena_str(arena, asked->questions[i].id),
                                         .message = arena_str(arena, asked->questions[i].message),
                                         .schema = arena_str(arena, asked->questions[i].schema),
                                         .url = arena_str(arena, asked->questions[i].url)};
    struct tool_asked *kept = &flight->asked[flight->asked_count++];
    *kept = *asked;
    kept->questions = copy;
    kept->state = arena_str(arena, asked->state);
}

/* They are saved one after the other; who asks too much is told no. The end of a call has its place
 * behind all of them. */
static void on_ask(void *arg, const struct tool_asked *asked)
{
    static const struct tool_reply no = {.action = STR("decline")};
    struct flight *flight = arg;
    bool room = flight->asked_count < QUESTIONS_CALL_MAX &&
                asked->first + asked->count <= QUESTIONS_CALL_MAX;
    if (asked->ended) {
        flight->call = NULL;
        flight->over = true;
    } else if (!room || flight->flights->letting_go) {
        for (size_t i = 0; i < asked->count; i++)
            tool_reply(flight->tool, flight->call, asked->first + i, &no);
        return;
    } else {
        for (size_t i = 0; i < asked->count; i++)
            flight->waiting[asked->first + i] = elicit_hash(&flight->arena, &asked->questions[i]);
        flight->waiting_count += asked->count;
    }
    keep_questions(flight, asked);
    flight->flights->on_over(flight->flights->arg);
}

static void on_progress(void *arg, const struct tool_progress *progress)
{
    struct flight *flight = arg;
    struct flights *flights = flight->flights;
    if (flights->on_progress) flights->on_progress(flights->arg, flight->request.call_id, progress);
}

/* What the row knows of them, for the next start. */
static void take_said(struct flight *flight, const struct asked *asked)
{
    struct tool_said *said = arena_array(&flight->arena, asked->count, sizeof *said);
    for (size_t i = 0; i < asked->count; i++) said[i] = asked->rows[i].said;
    flight->request.said = said;
    flight->request.said_count = asked->count;
    flight->request.state = asked->state;
}

/* As long as a question is not saved the row may have another one in its place, with its answer. */
void flights_reply(struct flights *flights, const struct call *call)
{
    struct flight *flight = find(flights, call->call_id);
    struct asked asked;
    if (!flight || flight->over || !flight->waiting_count) return;
    if (asked_parse(&flight->arena, arena_str(&flight->arena, call->asked), &asked)) return;
    take_said(flight, &asked);
    for (size_t i = 0; flight->call && i < asked.count && i < QUESTIONS_CALL_MAX; i++) {
        const struct tool_reply *reply = &asked.rows[i].said.reply;
        if (!flight->waiting[i].len || !reply->action.len) continue;
        if (!str_eq(flight->waiting[i], asked.rows[i].hash)) continue;
        flight->waiting[i] = STR_EMPTY;
        flight->waiting_count--;
        tool_reply(flight->tool, flight->call, i, reply);
    }
}

/* ---- attempts ---- */

static void attempt(struct flight *flight);

static void on_rested(void *arg)
{
    attempt(arg);
}

/* No attempt is left. A write of which one was lost may have happened. */
static void give_up(struct flight *flight, const char *code, str text)
{
    flight->lost = flight->in_doubt && flight->tool->write;
    if (!flight->lost) set_failed(flight, code, text);
}

/* Nobody at the other end: the person may know when to try again. */
static void stay_away(struct flight *flight, str why)
{
    give_up(flight, "tool_unavailable", why);
    flight->away = flight->tool->holds && !flight->lost && !flight->flights->letting_go;
    flight->why = why;
}

static void not_landed(struct flight *flight, bool lost, const struct tool_result *result)
{
    struct flights *flights = flight->flights;
    flight->in_doubt = flight->in_doubt || lost;
    bool again = !lost || flight->repeatable;
    if (again && flight->attempts < CALL_ATTEMPTS_MAX && !flights->letting_go) {
        if (!flight->timer) flight->timer = timer_new(flights->loop, on_rested, flight);
        timer_start(flight->timer, flights->retry_ms << (flight->attempts - 1));
        return;
    }
    stay_away(flight, arena_str(&flight->arena, result->error));
    over(flight);
}

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct flight *flight = arg;
    flight->call = NULL;
    if (end == TOOL_DONE || end == TOOL_FAILED)
        landed(flight, end == TOOL_FAILED, result);
    else
        not_landed(flight, end == TOOL_LOST, result);
}

static void attempt(struct flight *flight)
{
    flight->attempts++;
    memset(flight->waiting, 0, sizeof flight->waiting);
    flight->waiting_count = 0;
    if (flight->asked_count > 1) flight->asked_count = 1; /* the first is perhaps being saved */
    flight->call = tool_start(flight->tool, &flight->request, on_end, flight);
}

/* ---- all of them ---- */

void flights_start(struct flights *flights, const struct call *call,
                   const struct passenger *passenger)
{
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight) abort();
    struct arena *arena = &flight->arena;
    arena_init(arena);
    flight->flights = flights;
    flight->tool = tools_find(flights->tools, call->tool);
    assert(flight->tool);
    flight->repeatable = call_repeatable(call);
    flight->request = (struct tool_request){
        .call_id = arena_str(arena, call->call_id),
        .args = arena_str(arena, call->args),
        .owner = arena_str(arena, passenger->owner),
        .thread_id = arena_str(arena, passenger->thread_id),
        .run_id = arena_str(arena, passenger->run_id),
        .locale = arena_str(arena, passenger->locale),
        .timezone = arena_str(arena, passenger->timezone),
        .on_ask = on_ask,
        .on_progress = on_progress,
    };
    struct asked asked;
    if (asked_parse(arena, arena_str(arena, call->asked), &asked) == OK) take_said(flight, &asked);
    flight->next = flights->first;
    flights->first = flight;
    attempt(flight);
}

void flights_done(struct flights *flights)
{
    while (flights->first) flight_free(flights->first);
}

bool flights_any(const struct flights *flights)
{
    return flights->first;
}

bool flights_has(const struct flights *flights, str call_id)
{
    return find(flights, call_id);
}

static bool has_news(const struct flight *flight)
{
    return flight->over || flight->asked_count;
}

/* Its files wait for so long already that they have to be put again first. */
static bool put_again(struct flight *flight)
{
    if (!flight->luggage || !flight->over || !luggage_stale(flight->luggage)) return false;
    flight->over = false;
    luggage_again(flight->luggage);
    return true;
}

bool flights_news(struct flights *flights, struct input *ret_input)
{
    struct flight *flight = flights->first;
    while (flight && (put_again(flight) || !has_news(flight))) flight = flight->next;
    if (!flight) return false;
    struct input input = {.kind = INPUT_RESULT, .call_id = flight->request.call_id};
    if (flight->asked_count) {
        input.kind = INPUT_ASKED;
        input.asked = &flight->asked[0];
    } else if (flight->lost) {
        input.kind = INPUT_LOST;
    } else if (flight->away) {
        input.kind = INPUT_AWAY;
        input.why_text = flight->why;
    } else {
        input.result = flight->end;
    }
    *ret_input = input;
    return true;
}

void flights_saved(struct flights *flights, enum input_kind kind, str call_id)
{
    struct flight *flight = find(flights, call_id);
    if (!flight) return;
    if (kind != INPUT_ASKED || flight->asked[0].ended) {
        flight_free(flight);
        return;
    }
    flight->asked_count--;
    memmove(&flight->asked[0], &flight->asked[1], flight->asked_count * sizeof flight->asked[0]);
}

bool flights_busy(const struct flights *flights)
{
    for (const struct flight *flight = flights->first; flight; flight = flight->next)
        if (has_news(flight) || !flight->waiting_count) return true;
    return false;
}

/* A write in the air is waited for; one that rests between two attempts does not leave again. */
void flights_let_go(struct flights *flights, str locale)
{
    flights->letting_go = true;
    for (struct flight *flight = flights->first; flight; flight = flight->next) {
        bool busy = flight->call || flight->spooling || flight->luggage;
        if (flight->over || (flight->tool->write && busy)) continue;
        if (flight->call) tool_cancel(flight->tool, TAKE(flight->call));
        if (flight->spooling) spool_forget(TAKE(flight->spooling));
        luggage_forget(TAKE(flight->luggage));
        if (flight->timer) timer_stop(flight->timer);
        give_up(flight, "cancelled", text_say(&flight->arena, TEXT_CANCELLED, locale, STR_EMPTY));
        flight->over = true;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 *     start ─▶ in the air ── done, failed ──▶ long? spooled ──▶ over
 *                 ▲   │                                          ▲
 *                 │   ├── away, or lost and repeatable ──▶ rest ─┤ no attempts left
 *                 └───┼────────────────────────────────────┘     │
 *                     └── lost, a write ─────────────────────────┘
 *
 * A tool may have spooled a long result itself, while it came; only its ends are then in memory.
 *
 * Over means that the end is known, as far as it ever will be, and waits to be saved.
 */
#include "agent/flight.h"

#include <stdlib.h>

#include "agent/texts.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "net/loop.h"
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
    struct timer *timer;
    bool in_doubt; /* an attempt was lost: it may have happened */
    bool over, lost;
    struct call_end end;
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
    over(flight);
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
        over(flight);
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
    take_result(flight, result);
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
    give_up(flight, "tool_unavailable", arena_str(&flight->arena, result->error));
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
    };
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

bool flights_ended(const struct flights *flights, str *ret_call_id, bool *ret_lost,
                   struct call_end *ret_end)
{
    for (const struct flight *flight = flights->first; flight; flight = flight->next) {
        if (!flight->over) continue;
        *ret_call_id = flight->request.call_id;
        *ret_lost = flight->lost;
        *ret_end = flight->end;
        return true;
    }
    return false;
}

void flights_forget(struct flights *flights, str call_id)
{
    struct flight *flight = find(flights, call_id);
    if (flight) flight_free(flight);
}

/* A write in the air is waited for; one that rests between two attempts does not leave again. */
void flights_let_go(struct flights *flights, str locale)
{
    flights->letting_go = true;
    for (struct flight *flight = flights->first; flight; flight = flight->next) {
        bool busy = flight->call || flight->spooling;
        if (flight->over || (flight->tool->write && busy)) continue;
        if (flight->call) tool_cancel(flight->tool, TAKE(flight->call));
        if (flight->spooling) spool_forget(TAKE(flight->spooling));
        if (flight->timer) timer_stop(flight->timer);
        give_up(flight, "cancelled", text_say(&flight->arena, TEXT_CANCELLED, locale, STR_EMPTY));
        flight->over = true;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of tools under way, behind the seam of tool/tool.h. Each is one attempt: it works, fails, is
 * never reached, or is lost on the way with or without having done it; or it asks something (asking.c).
 * What follows an attempt is up to agent/shell/tool_run.c, and has to be right:
 *
 *  1. A call takes off once for each start that is committed; again after a crash if that is harmless.
 *  2. A further attempt follows one that was never reached, or lost and harmless to repeat.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "sim.h"

/* ---- leaving ---- */

static void check_leave(struct sim *sim, struct deed *deed, const struct tool_call *call)
{
    bool takes_off = deed->left_in != sim->process.number || deed->left_on != deed->starts;
    bool again = deed->ended == TOOL_AWAY || (deed->ended == TOOL_LOST && call->repeatable);
    deed->left_in = sim->process.number;
    deed->left_on = deed->starts;
    deed->tool_runs += takes_off;
    if (!deed->starts)
        broken(sim, "%.*s leaves before its start is stored", STR_ARG(call->call_id));
    if (deed->tool_runs > deed->starts && !call->repeatable)
        broken(sim, "%.*s left %u times on %u starts", STR_ARG(call->call_id), deed->tool_runs,
               deed->starts);
    if (!takes_off && !again)
        broken(sim, "%.*s leaves again, and nobody knows why", STR_ARG(call->call_id));
    deed->ended = TOOL_DONE;
    deed->landed = false;
    if (takes_off)
        asking_take_off(sim, (struct tool_call *)call);
    else
        asking_attempt(sim, (struct tool_call *)call);
}

static struct tool_call *
leave(void *self, const struct tool_request *request,
      void (*on_end)(void *arg, enum tool_end end, const struct tool_result *result), void *arg)
{
    const struct fake_self *fake = self;
    struct sim *sim = fake->sim;
    struct process *process = &sim->process;
    struct tool_call *call = calloc(1, sizeof *call);
    if (!call || process->air_count == AIR_MAX) abort();
    arena_init(&call->arena);
    struct arena *arena = &call->arena;
    bool write = fake_write(fake->fake);
    call->sim = sim;
    call->call_id = arena_str(arena, request->call_id);
    call->tool = str_c(fake_name(fake->fake));
    call->args = arena_str(arena, request->args);
    call->repeatable = !write || fake->fake == FAKE_PUT || fake->fake == FAKE_KEEP;
    call->write = write;
    call->on_end = on_end;
    call->on_ask = request->on_ask;
    call->arg = arg;
    struct tool_said *said = arena_array(arena, request->said_count, sizeof *said);
    for (size_t i = 0; i < request->said_count; i++)
        said[i] = (struct tool_said){
            .question = {.message = arena_str(arena, request->said[i].question.message)},
            .reply = {arena_str(arena, request->said[i].reply.action),
                      arena_str(arena, request->said[i].reply.content)}};
    call->said = said;
    call->said_count = request->said_count;
    call->state = arena_str(arena, request->state);
    process->air[process->air_count++] = call;
    trace(sim, "%.*s (%.*s) leaves", STR_ARG(call->call_id), STR_ARG(call->tool));
    struct deed *deed = deed_of(sim, call->call_id);
    if (deed)
        check_leave(sim, deed, call);
    else
        broken(sim, "%.*s leaves, and nobody knows of it", STR_ARG(call->call_id));
    return call;
}

void air_land(struct tool_call *call)
{
    struct process *process = &call->sim->process;
    size_t at = 0;
    while (process->air[at] != call) at++;
    for (process->air_count--; at < process->air_count; at++)
        process->air[at] = process->air[at + 1];
}

void air_free(struct tool_call *call)
{
    arena_done(&call->arena);
    free(call);
}

/* Nobody waits for it any more. */
static void cancel(struct tool_call *call)
{
    trace(call->sim, "%.*s is not waited for", STR_ARG(call->call_id));
    air_land(call);
    air_free(call);
}

static void reply(struct tool_call *call, size_t n, const struct tool_reply *said)
{
    asking_told(call->sim, call, n, said);
}

const struct tool_ops tool_fake = {.start = leave, .cancel = cancel, .reply = reply};

/* ---- ends ---- */

static void execute(struct sim *sim, struct tool_call *call)
{
    const struct deed *deed = deed_of(sim, call->call_id);
    if (!deed || deed->dead || asking_holds_back(call)) return;
    if (!call->executed) outside_execute(sim, call);
    call->executed = true;
}

/* The process hears of it. */
static void end(struct sim *sim, struct tool_call *call, enum tool_end how)
{
    static const unsigned char hash[HASH_BYTES] = {1};
    static char ends[CALL_MODEL_BYTES_MAX]; /* of a long result */
    static const struct tool_file picture = {STR("image/png"), STR("a.png"), STR("bytes")};
    struct deed *deed = deed_of(sim, call->call_id);
    bool landed = how == TOOL_DONE || how == TOOL_FAILED;
    struct tool_result result = {0};
    if (landed) {
        if (one_in(&sim->chance, 2)) result.content = STR("as told");
        if (how == TOOL_DONE) result.result = STR("{\"ok\":true}");
        if (how == TOOL_FAILED) result.error = STR("it said no");
        bool spooled = how == TOOL_DONE && one_in(&sim->asking, 40);
        memset(ends, '1', sizeof ends);
        if (spooled)
            result = (struct tool_result){.spooled = true,
                                          .result_bytes = 2000000,
                                          .result_head = {ends, sizeof ends},
                                          .result_tail = {ends, sizeof ends}};
        if (spooled) memcpy(result.result_hash, hash, sizeof hash);
        if (how == TOOL_DONE && one_in(&sim->asking, 12)) {
            result.files = &picture;
            result.file_count = 1;
        }
    } else {
        result.error = STR("not reached");
    }
    trace(sim, "%.*s ends, %d", STR_ARG(call->call_id), (int)how);
    deed->ended = how;
    deed->landed = landed;
    if (landed) deed->doubt = deed->flown_lost = false;
    if (how == TOOL_LOST && call->write) deed->doubt = deed->flown_lost = true;
    air_land(call);
    call->on_end(call->arg, how, &result);
    air_free(call);
}

/* How an attempt ends. What came back has happened; what is lost may have. */
static void end_somehow(struct sim *sim, struct tool_call *call)
{
    struct chance *chance = &sim->chance;
    const struct deed *deed = deed_of(sim, call->call_id);
    unsigned luck = sim->calm ? 0 : below(chance, 20);
    bool lost = !sim->calm && one_in(chance, sim->mood.lost);
    if (deed->dead) {
        end(sim, call, TOOL_AWAY);
    } else if (lost) {
        if (one_in(chance, 2)) execute(sim, call);
        end(sim, call, TOOL_LOST);
    } else if (luck == 19 && !call->executed) {
        end(sim, call, TOOL_AWAY);
    } else {
        execute(sim, call);
        end(sim, call, luck >= 16 || asking_holds_back(call) ? TOOL_FAILED : TOOL_DONE);
    }
}

bool air_event(struct sim *sim)
{
    struct process *process = &sim->process;
    size_t count = process->air_count;
    size_t first = count ? below(&sim->chance, (unsigned)count) : 0;
    for (size_t i = 0; i < count; i++) {
        struct tool_call *call = process->air[(first + i) % count];
        bool waits = call->waiting_count;
        bool impatient = !sim->calm && one_in(&sim->asking, 10);
        bool asks_more = !sim->calm && one_in(&sim->asking, 6);
        if (waits && !impatient && !asks_more) continue;
        if ((!waits || asks_more) && asking_event(sim, call)) return true;
        if (!call->executed && one_in(&sim->chance, 2))
            execute(sim, call);
        else
            end_somehow(sim, call);
        return true;
    }
    return false;
}

void air_crash(struct sim *sim)
{
    for (size_t i = 0; i < sim->process.air_count; i++)
        if (one_in(&sim->chance, 2)) execute(sim, sim->process.air[i]);
}

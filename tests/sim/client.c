/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of a run: it brings tools of its own, executes what the model calls of them, and reads
 * along or does not.
 *
 * Some of its tools have the names of the server's. They count only if the server had none of that
 * name when the request came, and has none when the model calls. Results come one at a time or several
 * at once, with answers of people or alone, late, as failures, or as "not answered" when somebody
 * writes something else instead; some are forged. A request that brings results may bring other tools.
 *
 * Its chance is its own, so that lives without it stay as they are.
 */
#include "agent/core/front.h"
#include "sim.h"

static const char *const names[FRONT_COUNT] = {[FRONT_PAINT] = "paint",
                                               [FRONT_LOCATE] = "locate",
                                               [FRONT_LOOK] = "look",
                                               [FRONT_SIGN] = "sign"};

enum { STREAM = 3 * 1000 * 1000 };

void client_init(struct sim *sim)
{
    struct client *client = &sim->client;
    client->chance = chance_from(sim->scenario.seed, 0, STREAM);
    client->brings = !sim->drill.on && one_in(&client->chance, 3);
    if (!sim->drill.on && one_in(&client->chance, 4))
        sim->house.agent.on_disconnect = DISCONNECT_PAUSE;
}

static bool server_has(const struct sim *sim, str name)
{
    int fake = fake_of(name);
    return fake >= 0 && sim->house.forms[fake] != FORM_GONE;
}

bool client_offers(const struct sim *sim, str name)
{
    for (unsigned i = 0; i < FRONT_COUNT; i++)
        if (str_eq(name, str_c(names[i])))
            return (sim->world.offers & 1u << i) && !server_has(sim, name);
    return false;
}

str client_tool(struct chance *chance)
{
    return str_c(names[below(chance, FRONT_COUNT)]);
}

/* ---- what it brings ---- */

/* The tools of a request, through the parser; some of them twice, some of no use. */
struct offer client_request(struct sim *sim, struct arena *arena)
{
    struct chance *chance = &sim->client.chance;
    struct offer offer = {0};
    struct json *json = NULL;
    struct front_refusals refused;
    if (!sim->client.brings) return offer;
    AUTO(buf_done) struct buf body;
    buf_init(&body, 4096);
    buf_append(&body, STR("{\"tools\":[{\"name\":\"ask_user\"},{\"name\":\"no name\"}"));
    for (unsigned i = 0; i < FRONT_COUNT; i++) {
        str name = str_c(names[i]);
        if (one_in(chance, 4)) continue;
        for (unsigned n = 1 + one_in(chance, 6); n; n--)
            buf_printf(&body, ",{\"name\":\"%.*s\",\"description\":\"x\"}", STR_ARG(name));
        if (!server_has(sim, name)) offer.offers |= 1u << i;
    }
    buf_append(&body, STR("]}"));
    offer.input.input = arena_str(arena, buf_str(&body));
    if (json_parse(arena, offer.input.input, &json, NULL))
        broken(sim, "the tools of a client are no JSON");
    else
        front_read(arena, json, &sim->house.tools, &offer.input, &refused);
    return offer;
}

size_t client_offer_count(const struct sim *sim)
{
    size_t count = 0;
    for (unsigned i = 0; i < FRONT_COUNT; i++) count += client_offers(sim, str_c(names[i]));
    return count;
}

/* ---- results ---- */

bool client_waited_for(struct sim *sim, const struct call *call)
{
    const struct deed *deed = deed_of(sim, call->call_id);
    return deed && deed->front && call->state == CALL_WAITING && call->run == sim->world.run.id;
}

static struct front_result result_of(struct sim *sim, str call_id)
{
    static const char *const texts[] = {
        "ok", "",    "{\"title\": \"a\",\n\"n\": 1}", "42", "\"x\"", "{", "[]", "\xe5\xa5\xbd\n# b",
        "no", "null"};
    struct chance *chance = &sim->client.chance;
    struct front_result result = {.call_id = call_id,
                                  .text = str_c(texts[below(chance, COUNT(texts))]),
                                  .failed = one_in(chance, 4)};
    if (one_in(chance, 6)) { /* somebody wrote something else instead */
        result.text = STR("not answered");
        result.failed = true;
    }
    if (!one_in(chance, 4))
        result.message_id = arena_printf(&sim->life, "tool-%u", ++sim->client.messages);
    return result;
}

/* Of a call that waits for something else, or has ended, or is not there. */
static struct front_result forged(struct sim *sim)
{
    struct chance *chance = &sim->client.chance;
    struct front_result result = {.call_id = STR("call_of_nobody"), .text = STR("forged")};
    size_t count = sim->world.call_count;
    const struct call *call = count ? &sim->world.calls[below(chance, (unsigned)count)] : NULL;
    if (call && !client_waited_for(sim, call)) result.call_id = call->call_id;
    return result;
}

size_t client_results(struct sim *sim, struct front_result *out, size_t room)
{
    struct chance *chance = &sim->client.chance;
    size_t count = 0, waiting = 0;
    if (!sim->client.brings) return 0;
    for (size_t i = 0; i < sim->world.call_count; i++) {
        const struct call *call = &sim->world.calls[i];
        if (!client_waited_for(sim, call)) continue;
        waiting++;
        bool later = !sim->calm && one_in(chance, 3);
        if (later || count + 2 > room) continue;
        out[count++] = result_of(sim, call->call_id);
        if (one_in(chance, 12)) { /* twice: the first counts */
            out[count] = result_of(sim, call->call_id);
            count++;
        }
        if (count > 1 && one_in(chance, 10)) out[count - 1].message_id = out[0].message_id;
    }
    if (waiting && count < room && one_in(chance, 6)) out[count++] = forged(sim);
    return count;
}

/* ---- who reads along ---- */

/* Looked at by the process that works on the run, and forgotten with it. */
void client_reads(struct sim *sim)
{
    struct process *process = &sim->process;
    bool alone = process->alone;
    if (sim->house.agent.on_disconnect != DISCONNECT_PAUSE) return;
    if (sim->calm)
        alone = false;
    else if (sim->drill.on)
        alone = drill_alone(sim, &sim->world.state);
    else if (runs_active(process->runs) && one_in(&sim->client.chance, 12))
        alone = !alone;
    process->alone = alone;
    runs_alone(process->runs, sim->world.thread, alone);
}

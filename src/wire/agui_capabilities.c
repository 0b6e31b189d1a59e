/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent can do, as AG-UI writes it (AgentCapabilities). Only what is true is said, and
 * false only of what a client may count on not to happen; what is not named is not declared. Under
 * `custom` stands what clients of ours may want to know.
 */
#include "base/limits.h"
#include "wire/agui_int.h"

struct flag {
    const char *name;
    bool value;
};

static void put_flags(struct json_writer *w, const struct flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) agui_bool_member(w, flags[i].name, flags[i].value);
}

static void put_group(struct json_writer *w, const char *name, const struct flag *flags,
                      size_t count)
{
    json_key(w, str_c(name));
    json_object(w);
    put_flags(w, flags, count);
    json_object_end(w);
}

static void put_tools(struct json_writer *w, const struct agui_agent *agent)
{
    static const struct flag flags[] = {
        {"supported", true}, {"parallelCalls", true}, {"clientProvided", true}};
    json_key(w, STR("tools"));
    json_object(w);
    put_flags(w, flags, COUNT(flags));
    json_key(w, STR("items"));
    json_array(w);
    for (size_t i = 0; i < agent->tool_count; i++) {
        json_object(w);
        json_member(w, STR("name"), agent->tools[i].name);
        json_member(w, STR("description"), agent->tools[i].description);
        agui_raw_member(w, "parameters", agent->tools[i].schema);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

/* Pictures are shown to the model and text files read to it; of other files it learns the name. */
static void put_multimodal(struct json_writer *w)
{
    static const struct flag input[] = {
        {"image", true}, {"audio", false}, {"video", false}, {"pdf", false}, {"file", true}};
    static const struct flag output[] = {{"image", false}, {"audio", false}};
    json_key(w, STR("multimodal"));
    json_object(w);
    put_group(w, "input", input, COUNT(input));
    put_group(w, "output", output, COUNT(output));
    json_object_end(w);
}

static void put_list(struct json_writer *w, const char *key, const char *const *values)
{
    json_key(w, str_c(key));
    json_array(w);
    for (; *values; values++) json_string(w, str_c(*values));
    json_array_end(w);
}

static void put_custom(struct json_writer *w)
{
    static const char *const reasons[] = {"input_required", "tool_call", "fermata:connection_lost",
                                          "fermata:uncertain", NULL};
    static const char *const metadata[] = {"fermata.ui", "fermata.uiRef", "fermata.result",
                                           "fermata.interaction", NULL};
    json_key(w, STR("custom"));
    json_object(w);
    json_key(w, STR("fermata"));
    json_object(w);
    put_list(w, "interruptReasons", reasons);
    put_list(w, "metadata", metadata);
    agui_bool_member(w, "runsOutliveConnections", true);
    json_object_end(w);
    json_object_end(w);
}

void agui_capabilities(struct buf *out, const struct agui_agent *agent)
{
    static const struct flag transport[] = {
        {"streaming", true}, {"websocket", true}, {"httpBinary", false}};
    static const struct flag state[] = {{"snapshots", true}, {"deltas", false}};
    static const struct flag agents[] = {{"supported", false}};
    static const struct flag reasoning[] = {
        {"supported", true}, {"streaming", true}, {"encrypted", false}};
    static const struct flag people[] = {{"supported", true},
                                         {"approvals", true},
                                         {"interventions", true},
                                         {"interrupts", true},
                                         {"approveWithEdits", true}};
    struct json_writer w;
    json_write_begin(&w, out);
    json_object(&w);
    json_key(&w, STR("identity"));
    json_object(&w);
    json_member(&w, STR("name"), agent->name);
    json_member(&w, STR("type"), STR("fermata"));
    agui_text_member(&w, "version", agent->version);
    json_object_end(&w);
    put_group(&w, "transport", transport, COUNT(transport));
    put_tools(&w, agent);
    put_group(&w, "state", state, COUNT(state));
    put_group(&w, "multiAgent", agents, COUNT(agents));
    put_group(&w, "reasoning", reasoning, COUNT(reasoning));
    put_multimodal(&w);
    json_key(&w, STR("execution"));
    json_object(&w);
    agui_bool_member(&w, "codeExecution", false);
    agui_u64_member(&w, "maxIterations", agent->max_rounds);
    agui_u64_member(&w, "maxExecutionTime",
                    agent->active_ms_max > 0 ? (uint64_t)agent->active_ms_max : 0);
    json_object_end(&w);
    put_group(&w, "humanInTheLoop", people, COUNT(people));
    put_custom(&w);
    json_object_end(&w);
}

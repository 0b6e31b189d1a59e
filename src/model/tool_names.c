/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of tools on their way to a provider and back.
 *
 *     ours          files_read    files.read             files.write
 *     theirs        files_read    files_read_3f9a01c4    files_write
 *
 * Invariants:
 * 1. A name that fits stays. So the others are named behind all of these.
 * 2. Two different tools never have one name: the second gets a hash of its own name behind it.
 * 3. The same tools in the same order get the same names, in every request and process: providers
 *    that remember the beginning of a request find it again.
 *
 * Requests are only written anew where a name changes, which is rare.
 */
#include "model/tool_names.h"

#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/codec.h"

enum { SUFFIX_DIGITS = 8 };

/* ---- choosing ---- */

/* `theirs` with a hash of `ours` behind it; another one for each try. */
static str other_name(struct arena *arena, str ours, str theirs, unsigned try)
{
    unsigned char hash[HASH_BYTES];
    char digits[HASH_HEX_BYTES];
    size_t room = TOOL_NAME_BYTES_MAX - SUFFIX_DIGITS - 1;
    crypto_sha256(arena_printf(arena, "%u %.*s", try, STR_ARG(ours)), hash);
    crypto_hex((str){(const char *)hash, sizeof hash}, digits);
    return arena_printf(arena, "%.*s_%.*s", (int)(theirs.len < room ? theirs.len : room), theirs.p,
                        SUFFIX_DIGITS, digits);
}

static void tool_names_take(struct map *taken, str name)
{
    enum err e = map_put(taken, name, taken);
    assert(!e); /* as many as there are tools */
    (void)e;
}

/* Each try is another name, so one of as many tries as there are tools is free. */
static str free_name(struct arena *arena, struct map *taken, str ours)
{
    str base = codec_name(arena, ours), name = base;
    for (unsigned try = 0; map_get(taken, name); try++) name = other_name(arena, ours, base, try);
    tool_names_take(taken, name);
    return name;
}

static const struct json *parse_list(struct arena *arena, str text)
{
    struct json *list;
    if (!text.len || json_parse(arena, text, &list, NULL)) return NULL;
    return list->type == JSON_ARRAY ? list : NULL;
}

static str name_of(const struct json *tool)
{
    return json_text(json_get(tool, STR("name")));
}

static struct tool_names tool_names_choose(struct arena *arena, struct arena *keep,
                                           const struct json *tools)
{
    struct tool_name *rows = arena_array(arena, tools->count, sizeof *rows), *kept = NULL;
    size_t count = 0;
    AUTO(map_done) struct map taken;
    map_init(&taken, tools->count + 1);
    for (const struct json *tool = tools->child; tool; tool = tool->next) {
        str name = name_of(tool);
        if (str_eq(codec_name(arena, name), name)) tool_names_take(&taken, name);
    }
    for (const struct json *tool = tools->child; tool; tool = tool->next) {
        str name = name_of(tool);
        if (str_eq(codec_name(arena, name), name)) continue;
        str theirs = free_name(arena, &taken, name);
        rows[count++] = (struct tool_name){arena_str(keep, name), arena_str(keep, theirs)};
    }
    if (count) kept = arena_array(keep, count, sizeof *kept);
    if (count) memcpy(kept, rows, count * sizeof *kept);
    return (struct tool_names){kept, count};
}

/* ---- writing anew ---- */

static str theirs_of(struct arena *arena, const struct tool_names *names, str ours)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->rows[i].ours, ours)) return names->rows[i].theirs;
    return codec_name(arena, ours);
}

/* An object as it is, but for its name. */
static void write_named(struct arena *arena, struct json_writer *w, const struct tool_names *names,
                        const struct json *object)
{
    json_object(w);
    for (const struct json *member = object->child; member; member = member->next) {
        json_key(w, member->key);
        if (str_eq(member->key, STR("name")))
            json_string(w, theirs_of(arena, names, json_text(member)));
        else
            json_raw(w, member->raw);
    }
    json_object_end(w);
}

/* {"id", "type", "function": {"name", "arguments"}} */
static void write_call(struct arena *arena, struct json_writer *w, const struct tool_names *names,
                       const struct json *call)
{
    json_object(w);
    for (const struct json *member = call->child; member; member = member->next) {
        json_key(w, member->key);
        if (str_eq(member->key, STR("function")) && member->type == JSON_OBJECT)
            write_named(arena, w, names, member);
        else
            json_raw(w, member->raw);
    }
    json_object_end(w);
}

static str write_list(struct arena *arena, const struct tool_names *names, const struct json *list,
                      void (*write)(struct arena *arena, struct json_writer *w,
                                    const struct tool_names *names, const struct json *item))
{
    enum { ESCAPE_BYTES_MAX = 6 }; /* of a byte of a key */
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, ESCAPE_BYTES_MAX * list->raw.len + list->count * TOOL_NAME_BYTES_MAX);
    json_array(&doc.w);
    for (const struct json *item = list->child; item; item = item->next)
        write(arena, &doc.w, names, item);
    json_array_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* Does a call have a name that the provider does not take, or that means another tool there? */
static bool calls_change(struct arena *arena, const struct tool_names *names,
                         const struct json *calls)
{
    for (const struct json *call = calls->child; call; call = call->next) {
        str name = name_of(json_get(call, STR("function")));
        if (!str_eq(theirs_of(arena, names, name), name)) return true;
    }
    return false;
}

static void name_calls(struct arena *arena, const struct tool_names *names,
                       struct model_request *request)
{
    struct model_message *messages = arena_array(arena, request->count, sizeof *messages);
    for (size_t i = 0; i < request->count; i++) {
        messages[i] = request->messages[i];
        const struct json *calls = parse_list(arena, messages[i].tool_calls);
        if (calls && calls_change(arena, names, calls))
            messages[i].tool_calls = write_list(arena, names, calls, write_call);
    }
    request->messages = messages;
}

struct tool_names tool_names_give(struct arena *arena, struct arena *keep,
                                  struct model_request *request)
{
    struct tool_names names = {0};
    const struct json *tools = parse_list(arena, request->tools);
    if (tools) names = tool_names_choose(arena, keep, tools);
    if (names.count) request->tools = write_list(arena, &names, tools, write_named);
    name_calls(arena, &names, request);
    return names;
}

str tool_names_back(const struct tool_names *names, str theirs)
{
    for (size_t i = 0; i < names->count; i++)
        if (str_eq(names->rows[i].theirs, theirs)) return names->rows[i].ours;
    return theirs;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The world behind a log, and readers of it. Of the store it keeps what the dialects are given: rows,
 * interactions, the step that is open, what is growing, how the last leg ended.
 */
#include "wire/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "check.h"
#include "wire/native.h"
#include "wire/socket.h"
#include "wire/stored.h"

enum {
    ROWS_MAX = 512,
    CALLS_MAX = 64,
    ASKED_MAX = 256,
    OUT_BYTES_MAX = 64 * 1024 * 1024,
    START_MS = 1000,
};

static const msec epoch = 1794737000123; /* 2026-11-15T10:03:20.123Z */

struct world {
    struct arena *arena;
    struct agui_row *rows;
    size_t row_count;
    struct interaction *asked;
    size_t asked_count;
    str step, model;
    bool leg;
    uint64_t input_tokens, output_tokens; /* of the leg */
    struct fact ended;                    /* the last leg; type NULL: none has */

    str message_id, text, reasoning; /* growing */
    struct agui_call calls[CALLS_MAX];
    size_t call_count;

    str request; /* words of the last one; empty: none */
};

static void world_init(struct world *world, struct arena *arena)
{
    *world = (struct world){.arena = arena};
    world->rows = arena_array(arena, ROWS_MAX, sizeof *world->rows);
    world->asked = arena_array(arena, ASKED_MAX, sizeof *world->asked);
}

static str joined(struct arena *arena, str a, str b)
{
    char *text = arena_alloc(arena, a.len + b.len + 1);
    if (a.len) memcpy(text, a.p, a.len);
    if (b.len) memcpy(text + a.len, b.p, b.len);
    return (str){text, a.len + b.len};
}

static str text_of(const struct world *world, const struct fact *fact, const char *key)
{
    return stored_text(world->arena, fact->data, str_c(key));
}

/* ---- rows ---- */

static struct message *add_row(struct world *world, str id, const char *role, str content)
{
    assert_true(world->row_count < ROWS_MAX);
    struct message *m = &world->rows[world->row_count++].message;
    *m = (struct message){.id = id, .role = str_c(role), .content = content, .metadata = STR("{}")};
    m->plain = stored_string(world->arena, content);
    return m;
}

static void add_message(struct world *world, const struct fact *fact)
{
    str message = stored_get(fact->data, STR("message"));
    str role = stored_text(world->arena, message, STR("role"));
    struct message *m =
        add_row(world, stored_text(world->arena, message, STR("id")),
                arena_cstr(world->arena, role), stored_get(message, STR("content")));
    m->attachments = stored_get(message, STR("attachments"));
}

static struct message *row_of(struct world *world, str id)
{
    for (size_t i = world->row_count; i-- > 0;)
        if (str_eq(world->rows[i].message.id, id)) return &world->rows[i].message;
    return NULL;
}

static str quoted(struct arena *arena, str text)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, OUT_BYTES_MAX);
    json_write_begin(&w, &out);
    json_string(&w, text);
    str copy = arena_str(arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

/* [..., {"id","type","function":{"name","arguments"}}] */
static void add_call(struct world *world, const struct fact *fact)
{
    struct arena *arena = world->arena;
    struct message *m = row_of(world, text_of(world, fact, "parentMessageId"));
    str args = stored_get(fact->data, STR("args"));
    if (!m) return; /* the log begins in the middle */
    if (args.p[0] != '"') args = quoted(arena, args);
    str call = arena_printf(arena,
                            "{\"id\":%.*s,\"type\":\"function\",\"function\":{\"name\":%.*s,"
                            "\"arguments\":%.*s}}]",
                            STR_ARG(stored_get(fact->data, STR("toolCallId"))),
                            STR_ARG(stored_get(fact->data, STR("toolName"))), STR_ARG(args));
    str before = m->tool_calls;
    before.len -= before.len ? 1 : 0;
    m->tool_calls = joined(arena, joined(arena, before, before.len ? STR(",") : STR("[")), call);
}

static void add_result(struct world *world, const struct fact *fact)
{
    static const char *const members[] = {"toolName", "args", "error"};
    struct arena *arena = world->arena;
    add_row(world, text_of(world, fact, "messageId"), "tool",
            stored_get(fact->data, STR("content")));
    struct agui_row *row = &world->rows[world->row_count - 1];
    str tool = joined(arena, STR("{\"toolCallId\":"), stored_get(fact->data, STR("toolCallId")));
    for (size_t i = 0; i < COUNT(members); i++) {
        str value = stored_get(fact->data, str_c(members[i]));
        if (value.len)
            tool = joined(arena, tool,
                          arena_printf(arena, ",\"%s\":%.*s", members[i], STR_ARG(value)));
    }
    row->message.tool = joined(arena, tool, STR("}"));
    row->fact = fact->data;
}

static void count_tokens(struct world *world, const struct fact *fact)
{
    uint64_t value = 0;
    if (str_to_u64(stored_get(fact->data, STR("inputTokens")), &value) == OK)
        world->input_tokens += value;
    if (str_to_u64(stored_get(fact->data, STR("outputTokens")), &value) == OK)
        world->output_tokens += value;
}

/* ---- interactions ---- */

static const char *const type_names[] = {"ask_user", "confirm", "connection_lost", "uncertain"};

static void add_asked(struct world *world, const struct fact *fact)
{
    str pending = stored_get(fact->data, STR("pendingTool"));
    struct arena *arena = world->arena;
    assert_true(world->asked_count < ASKED_MAX);
    struct interaction *i = &world->asked[world->asked_count++];
    *i = (struct interaction){
        .id = text_of(world, fact, "interactionId"),
        .status = INTERACTION_OPEN,
        .owner = STR("local"),
        .thread_id = STR("t1"),
        .run_id = fact->run_id,
        .call_id = text_of(world, fact, "toolCallId"),
        .display_text = text_of(world, fact, "displayText"),
        .question = text_of(world, fact, "question"),
        .choices = stored_get(fact->data, STR("choices")),
        .fields = stored_get(fact->data, STR("fields")),
        .allow_freeform = !str_eq(stored_get(fact->data, STR("allowFreeform")), STR("false")),
        .multi = str_eq(stored_get(fact->data, STR("multi")), STR("true")),
        .resume_node = STR("execute"),
        .resume_phase = STR("executing"),
        .tool = stored_text(arena, pending, STR("toolName")),
        .args = stored_text(arena, pending, STR("argsJson")),
        .summary = stored_text(arena, pending, STR("summary")),
        .args_schema = stored_get(pending, STR("argsSchema")),
        .risk = stored_text(arena, pending, STR("risk")),
        .binding = text_of(world, fact, "binding"),
        .ui = stored_get(fact->data, STR("ui")),
        .metadata = STR("{}"),
        .opened = fact->at,
    };
    str type = text_of(world, fact, "type");
    for (size_t t = 0; t < COUNT(type_names); t++)
        if (str_eq(type, str_c(type_names[t]))) i->type = (enum interaction_type)t;
}

static struct interaction *asked_of(struct world *world, str id)
{
    for (size_t i = 0; i < world->asked_count; i++)
        if (str_eq(world->asked[i].id, id)) return &world->asked[i];
    fail_msg("nobody asked %.*s", STR_ARG(id));
    return NULL;
}

/* ---- what happens ---- */

static void world_grows(struct world *world, const struct preview *p)
{
    struct arena *arena = world->arena;
    bool other = !str_eq(p->message_id, world->message_id);
    if (p->kind == PREVIEW_DISCARD || (other && p->message_id.len)) {
        world->text = world->reasoning = STR_EMPTY;
        world->call_count = 0;
        world->message_id = p->message_id;
    }
    if (p->kind == PREVIEW_TEXT) world->text = joined(arena, world->text, p->delta);
    if (p->kind == PREVIEW_REASONING) world->reasoning = joined(arena, world->reasoning, p->delta);
    if (p->kind == PREVIEW_CALL_START) {
        assert_true(world->call_count < CALLS_MAX);
        world->calls[world->call_count++] = (struct agui_call){.id = p->call_id, .name = p->tool};
    }
    for (size_t i = 0; p->kind == PREVIEW_CALL_ARGS && i < world->call_count; i++)
        if (str_eq(world->calls[i].id, p->call_id))
            world->calls[i].args = joined(arena, world->calls[i].args, p->delta);
}

static bool is(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

static void world_says(struct world *world, const struct fact *fact)
{
    str id = text_of(world, fact, "messageId");
    struct message *m = add_row(world, id, "assistant", stored_get(fact->data, STR("content")));
    m->ui = stored_get(fact->data, STR("ui"));
    world->text = world->reasoning = STR_EMPTY;
    count_tokens(world, fact);
}

static void world_fact(struct world *world, const struct fact *fact)
{
    struct arena *arena = world->arena;
    if (is(fact, "message.added")) add_message(world, fact);
    if (is(fact, "text.message.end")) world_says(world, fact);
    if (is(fact, "reasoning.end"))
        add_row(world,
                arena_printf(arena, "%.*s-reasoning", STR_ARG(text_of(world, fact, "messageId"))),
                "reasoning", stored_get(fact->data, STR("content")));
    if (is(fact, "tool.call")) {
        add_call(world, fact);
        world->call_count = 0;
    }
    if (is(fact, "tool.call.result")) add_result(world, fact);
    if (is(fact, "interaction.request")) add_asked(world, fact);
    if (is(fact, "step.start")) world->step = text_of(world, fact, "stepName");
    if (is(fact, "step.finish")) world->step = STR_EMPTY;
    if (is(fact, "run.started")) {
        str last = world->ended.type ? text_of(world, &world->ended, "outcome") : STR_EMPTY;
        if (!str_eq(last, STR("interrupted"))) world->step = STR_EMPTY; /* another run */
        world->leg = true;
        world->model = text_of(world, fact, "model");
        world->input_tokens = world->output_tokens = 0;
    }
    if (is(fact, "run.finished") || is(fact, "run.error")) {
        world->leg = false;
        world->ended = *fact;
    }
}

static void world_line(struct world *world, const struct line *line)
{
    str words = line->words;
    if (line->kind == LINE_FACT) world_fact(world, &line->fact);
    if (line->kind == LINE_PREVIEW) world_grows(world, &line->preview);
    if (line->kind == LINE_REQUEST) world->request = words;
    if (line->kind == LINE_EXPIRES) {
        struct interaction *asked = asked_of(world, str_split(&words, ' '));
        assert_int_equal(clock_parse(words, &asked->expires), OK);
    }
}

struct agui_row *stage_rows(struct arena *arena, const struct script *script, size_t count,
                            size_t *ret_count)
{
    struct world world;
    world_init(&world, arena);
    for (size_t i = 0; i < count; i++) world_line(&world, &script->lines[i]);
    *ret_count = world.row_count;
    return world.rows;
}

/* ---- AG-UI ---- */

struct audience {
    struct world world;
    enum agui_profile profile;
    struct agui fold;
    struct buf frame, *out;
    bool begun; /* RUN_STARTED is out */
    char run_id[ID_CLIENT_BYTES_MAX + 1];
};

static struct agui_growing growing_of(const struct world *world)
{
    return (struct agui_growing){.message_id = world->message_id,
                                 .text = world->text,
                                 .reasoning = world->reasoning,
                                 .calls = world->calls,
                                 .call_count = world->call_count};
}

/* Whose leg this is, and do they have the messages? */
static bool take_request(struct audience *a, const struct fact *started)
{
    str words = a->world.request, ids[ROWS_MAX];
    size_t count = 0;
    a->world.request = STR_EMPTY;
    str run_id = words.len ? str_split(&words, ' ') : started->run_id;
    snprintf(a->run_id, sizeof a->run_id, "%.*s", STR_ARG(run_id));
    if (!words.p) return true;
    while (words.p && !str_eq(words, STR("-"))) ids[count++] = str_split(&words, ' ');
    return agui_same_ids(a->world.arena, a->world.rows, a->world.row_count, ids, count);
}

static void put_head(struct audience *a, bool messages, const struct agui_growing *growing)
{
    struct agui_head head = {.thread_id = STR("t1"),
                             .run_id = str_c(a->run_id),
                             .step = a->world.step,
                             .messages = messages,
                             .rows = a->world.rows,
                             .row_count = a->world.row_count,
                             .growing = growing};
    agui_head(a->out, a->profile, &head);
    a->begun = true;
}

static void put_tail(struct audience *a)
{
    struct interaction open[ASKED_MAX];
    struct json *data = NULL;
    const struct fact *ended = &a->world.ended;
    struct agui_tail tail = {.thread_id = STR("t1"),
                             .run_id = str_c(a->run_id),
                             .step = a->world.step,
                             .type = ended->type,
                             .data = ended->data,
                             .open = open,
                             .model = a->world.model,
                             .input_tokens = a->world.input_tokens,
                             .output_tokens = a->world.output_tokens};
    if (ended->type) {
        assert_int_equal(json_parse(a->world.arena, ended->data, &data, NULL), OK);
        const struct json *ids = json_get(data, STR("interactions"));
        for (const struct json *id = ids ? ids->child : NULL; id; id = id->next)
            open[tail.open_count++] = *asked_of(&a->world, json_text(id));
    }
    agui_tail(a->out, a->profile, &tail);
    a->begun = false;
}

static void audience_frame(struct audience *a, bool snapshot)
{
    if (a->begun) buf_append(a->out, buf_str(&a->frame));
    if (a->begun && snapshot)
        agui_snapshot_without(a->out, a->profile, a->world.rows, a->world.row_count,
                              str_c(a->fold.stray));
    buf_clear(&a->frame);
}

static void audience_fact(struct audience *a, const struct fact *fact, bool joined_late)
{
    audience_frame(a, agui_fact(&a->fold, &a->frame, fact));
    if (is(fact, "run.started") && !joined_late) {
        bool same = take_request(a, fact);
        put_head(a, !same, NULL);
    }
    if ((is(fact, "run.finished") || is(fact, "run.error")) && a->begun) put_tail(a);
}

/* Everything so far in the head. The fold begins here, unless somebody has read before. */
static void audience_joins(struct audience *a, bool company)
{
    struct agui_growing growing = growing_of(&a->world);
    snprintf(a->run_id, sizeof a->run_id, "r9");
    put_head(a, true, a->world.leg ? &growing : NULL);
    if (!company) agui_join(&a->fold, a->world.leg, &growing);
    if (!a->world.leg) put_tail(a);
}

static void audience_line(struct audience *a, const struct line *line, bool joined_late)
{
    if (line->kind == LINE_FACT) audience_fact(a, &line->fact, joined_late);
    if (line->kind == LINE_PREVIEW)
        audience_frame(a, agui_preview(&a->fold, &a->frame, &line->preview));
}

static void play_agui(struct arena *arena, const struct script *script,
                      const struct stage_reader *reader, struct buf *out)
{
    ptrdiff_t join = reader->join;
    struct audience a = {.profile = reader->dialect == STAGE_AGUI_NEW ? AGUI_NEW : AGUI_OLD,
                         .out = out};
    world_init(&a.world, arena);
    agui_init(&a.fold, a.profile);
    buf_init(&a.frame, OUT_BYTES_MAX);
    for (size_t i = 0; i < script->count; i++) {
        bool before = (ptrdiff_t)i < join;
        if ((ptrdiff_t)i == join) audience_joins(&a, reader->company);
        if (join >= 0 && !before && !a.begun) break; /* told how things stand, or to the end */
        world_line(&a.world, &script->lines[i]);
        if (!before || reader->company) audience_line(&a, &script->lines[i], join >= 0);
    }
    agui_done(&a.fold);
    buf_done(&a.frame);
}

/* ---- native, and WebSocket ---- */

/* What a follower has seen growing; the feeds of the server keep the same. */
struct seen {
    str text, reasoning;
    str calls[CALLS_MAX];
    size_t call_count;
};

static void see(struct seen *seen, const struct preview *p)
{
    if (p->kind == PREVIEW_DISCARD) *seen = (struct seen){0};
    if (p->kind == PREVIEW_MESSAGE_START) seen->text = p->message_id;
    if (p->kind == PREVIEW_REASONING) seen->reasoning = p->message_id;
    if (p->kind == PREVIEW_CALL_START) seen->calls[seen->call_count++ % CALLS_MAX] = p->call_id;
}

static bool was_seen(struct arena *arena, const struct seen *seen, const struct fact *fact)
{
    str ends = native_ends(arena, fact);
    if (!ends.len) return false;
    if (is(fact, "text.message.end")) return str_eq(ends, seen->text);
    if (is(fact, "reasoning.end")) return str_eq(ends, seen->reasoning);
    for (size_t i = 0; i < seen->call_count && i < CALLS_MAX; i++)
        if (str_eq(ends, seen->calls[i])) return true;
    return false;
}

static void put_text(void *arg, enum socket_kind kind, str json)
{
    struct buf *out = arg;
    buf_append(out, kind == SOCKET_NATIVE    ? STR("native   ")
                    : kind == SOCKET_CLARIFY ? STR("clarify  ")
                                             : STR("ask-user "));
    buf_append(out, json);
    buf_char(out, '\n');
}

static void put_fact(const struct fact *fact, str leg, bool socket, bool warm, struct buf *out)
{
    if (socket && warm)
        socket_warm(STR("t1"), leg, fact, put_text, out);
    else if (socket)
        socket_cold(STR("t1"), leg, fact, put_text, out);
    else if (warm)
        native_warm(out, STR("t1"), fact);
    else
        native_cold(out, STR("t1"), fact);
}

static void play_plain(struct arena *arena, const struct script *script, bool socket, bool cold,
                       struct buf *out)
{
    struct seen seen = {0};
    str leg = STR_EMPTY;
    for (size_t i = 0; i < script->count; i++) {
        const struct line *line = &script->lines[i];
        if (line->kind == LINE_FACT && is(&line->fact, "run.started")) leg = line->fact.run_id;
        if (line->kind == LINE_FACT)
            put_fact(&line->fact, leg, socket, was_seen(arena, &seen, &line->fact), out);
        if (line->kind == LINE_FACT && str_eq(line->fact.run_id, leg) &&
            (is(&line->fact, "run.finished") || is(&line->fact, "run.error")))
            leg = STR_EMPTY;
        if (line->kind != LINE_PREVIEW || cold) continue;
        see(&seen, &line->preview);
        if (socket)
            socket_preview(STR("t1"), &line->preview, put_text, out);
        else
            native_preview(out, STR("t1"), &line->preview);
    }
}

void stage_play(const struct script *script, const struct stage_reader *reader, struct buf *out)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    enum stage_dialect dialect = reader->dialect;
    bool socket = dialect == STAGE_SOCKET || dialect == STAGE_SOCKET_COLD;
    bool cold = dialect == STAGE_NATIVE_COLD || dialect == STAGE_SOCKET_COLD;
    if (dialect == STAGE_AGUI_NEW || dialect == STAGE_AGUI_OLD)
        play_agui(&arena, script, reader, out);
    else
        play_plain(&arena, script, socket, cold, out);
    assert_false(out->full);
}

/* ---- logs as text ---- */

static str word(str *rest)
{
    str w = rest->p ? str_split(rest, ' ') : STR_EMPTY;
    return w;
}

static str json_word(struct arena *arena, str rest)
{
    struct json *json = NULL;
    if (json_parse(arena, rest, &json, NULL) || json->type != JSON_STRING)
        fail_msg("no JSON string: %.*s", STR_ARG(rest));
    return json_text(json);
}

static struct line preview_line(struct arena *arena, str rest)
{
    str kind = word(&rest);
    struct preview p = {.stage = STR("intent")};
    if (str_eq(kind, STR("tool.call.args"))) {
        p.kind = PREVIEW_CALL_ARGS;
        p.call_id = word(&rest);
        p.delta = json_word(arena, rest);
    } else if (str_eq(kind, STR("tool.call.start"))) {
        p.kind = PREVIEW_CALL_START;
        p.call_id = word(&rest);
        p.tool = word(&rest);
        p.message_id = word(&rest);
    } else {
        p.message_id = word(&rest);
        bool text = str_eq(kind, STR("text.delta")), thought = str_eq(kind, STR("reasoning.delta"));
        bool discard = str_eq(kind, STR("message.discard"));
        p.kind = text      ? PREVIEW_TEXT
                 : thought ? PREVIEW_REASONING
                 : discard ? PREVIEW_DISCARD
                           : PREVIEW_MESSAGE_START;
        if (text || thought || discard) p.delta = json_word(arena, rest);
    }
    return (struct line){.kind = LINE_PREVIEW, .preview = p};
}

static struct line fact_line(struct arena *arena, str type, str data)
{
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, data, &json, &why))
        fail_msg("%.*s: %s at %zu of %.*s", STR_ARG(type), why.reason, why.offset, STR_ARG(data));
    return (struct line){.kind = LINE_FACT,
                         .fact = {.type = arena_cstr(arena, type), .data = json->raw}};
}

static struct line read_line(struct arena *arena, str text)
{
    str rest = text, first = word(&rest);
    if (str_eq(first, STR("~"))) return preview_line(arena, rest);
    if (str_eq(first, STR("request"))) return (struct line){.kind = LINE_REQUEST, .words = rest};
    if (str_eq(first, STR("expires"))) return (struct line){.kind = LINE_EXPIRES, .words = rest};
    if (str_eq(first, STR("join"))) return (struct line){.kind = LINE_JOIN};
    return fact_line(arena, first, rest);
}

struct script wire_script_parse(struct arena *arena, str text)
{
    struct script script = {0};
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++) most += text.p[i] == '\n';
    script.lines = arena_array(arena, most, sizeof *script.lines);
    str run_id = STR("r1");
    for (str rest = text; rest.p;) {
        str line = str_split(&rest, '\n');
        if (!str_trim(line).len || str_starts(line, STR("#"))) continue;
        if (str_starts(line, STR("run "))) {
            run_id = str_drop(line, 4);
            continue;
        }
        struct line *made = &script.lines[script.count++];
        *made = read_line(arena, line);
        made->fact.run_id = made->preview.run_id = run_id;
    }
    script_settle(&script, STR_EMPTY);
    return script;
}

void script_settle(struct script *script, str run_id)
{
    int64_t seq = 0;
    uint64_t text = 0, reasoning = 0;
    str growing = STR_EMPTY;
    for (size_t i = 0; i < script->count; i++) {
        struct line *line = &script->lines[i];
        struct preview *p = &line->preview;
        line->fact.at = p->at = epoch + (msec)i * START_MS;
        if (line->kind == LINE_FACT) line->fact.seq = ++seq;
        if (run_id.len) line->fact.run_id = p->run_id = run_id;
        if (line->kind != LINE_PREVIEW || !p->message_id.len) continue;
        if (!str_eq(p->message_id, growing)) text = reasoning = 0;
        growing = p->message_id;
        uint64_t *units = p->kind == PREVIEW_REASONING ? &reasoning : &text;
        if (p->kind != PREVIEW_TEXT && p->kind != PREVIEW_REASONING) continue;
        p->offset = *units;
        *units += utf8_utf16_units(p->delta);
    }
}

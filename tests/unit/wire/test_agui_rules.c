/* SPDX-License-Identifier: Apache-2.0
 *
 * Random logs, as the server makes them: legs with turns, attempts that break off, calls, people who
 * answer, messages from elsewhere, legs that end in each way. Whoever reads them, from the beginning
 * or from anywhere, gets bytes that a client takes, and in the end has the rows of history.
 *
 * Facts are lawful: the store has them. Previews may be lost or come twice.
 *
 * A failure prints its seed; SEED=n runs that one alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "check.h"
#include "wire/client.h"
#include "wire/stage.h"

enum {
    SEEDS = 200,
    LINES_MAX = 2000,
    OUT_BYTES_MAX = 16 * 1024 * 1024,
    LOSES_ONE_IN = 5, /* of previews, in logs that lose some */
};

/* ---- chance ---- */

struct chance {
    uint64_t state;
};

static uint32_t draw(struct chance *c, uint32_t below)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33) % below;
}

static bool one_in(struct chance *c, uint32_t n)
{
    return draw(c, n) == 0;
}

/* ---- a log in the making ---- */

struct maker {
    struct arena *arena;
    struct chance chance;
    struct script script;
    bool butts_in; /* people speak while the agent does */
    bool started;  /* a message has, and has no words yet */
    unsigned ids;  /* given so far */
    str step;
    str waiting[8]; /* calls whose leg ended before their result did */
    bool asked[8];  /* the call has an interaction */
    size_t waiting_count;
};

static const char *const pieces[] = {"a",        "Hello ", "你好",        "\"", "\\",
                                     "\n\n",     "\r\n",   "\t",          "😀",  "\x01",
                                     "data: {}", "nul",    "\xe2\x80\xa8"};

static str some_text(struct maker *m, unsigned most)
{
    char text[256];
    size_t len = 0;
    for (unsigned i = draw(&m->chance, most + 1); i > 0; i--)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s",
                                pieces[draw(&m->chance, COUNT(pieces))]);
    return arena_str(m->arena, (str){text, len});
}

static str quoted(struct maker *m, str text)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 64 * 1024);
    json_write_begin(&w, &out);
    json_string(&w, text);
    str copy = arena_str(m->arena, buf_str(&out));
    buf_done(&out);
    return copy;
}

static str new_id(struct maker *m, const char *prefix)
{
    return arena_printf(m->arena, "%s%u", prefix, ++m->ids);
}

static struct line *add_line(struct maker *m)
{
    assert_true(m->script.count < LINES_MAX);
    return &m->script.lines[m->script.count++];
}

static void add_join(struct maker *m)
{
    if (one_in(&m->chance, 4)) add_line(m)->kind = LINE_JOIN;
}

static void add_fact(struct maker *m, const char *type, str data)
{
    *add_line(m) = (struct line){.kind = LINE_FACT, .fact = {.type = type, .data = data}};
}

/* Nobody can join between a message's start and its first words. */
static void add_preview(struct maker *m, struct preview preview)
{
    if (preview.kind != PREVIEW_TEXT || !m->started) add_join(m);
    m->started = preview.kind == PREVIEW_MESSAGE_START;
    preview.stage = STR("intent");
    *add_line(m) = (struct line){.kind = LINE_PREVIEW, .preview = preview};
}

/* ---- facts ---- */

static void message(struct maker *m)
{
    str id = new_id(m, "u"), content = quoted(m, some_text(m, 3));
    add_fact(
        m, "message.added",
        arena_printf(m->arena, "{\"message\":{\"id\":\"%.*s\",\"role\":\"%s\",\"content\":%.*s}}",
                     STR_ARG(id), one_in(&m->chance, 9) ? "system" : "user", STR_ARG(content)));
}

static void maybe_message(struct maker *m)
{
    if (one_in(&m->chance, 12)) message(m);
    if (one_in(&m->chance, 30))
        add_fact(m, "run.queued", STR("{\"taskId\":\"task_9\",\"n\":9,\"message\":{}}"));
}

static void step(struct maker *m, const char *name)
{
    if (str_eq(m->step, str_c(name))) return;
    if (m->step.len)
        add_fact(m, "step.finish",
                 arena_printf(m->arena, "{\"stepName\":\"%.*s\"}", STR_ARG(m->step)));
    m->step = str_c(name);
    if (m->step.len)
        add_fact(m, "step.start", arena_printf(m->arena, "{\"stepName\":\"%s\"}", name));
}

static void result(struct maker *m, str call_id)
{
    str id = new_id(m, "t"), content = quoted(m, some_text(m, 2));
    static const char *const more[] = {"\"result\":{\"a\":1}", "\"error\":\"failed\"",
                                       "\"result\":\"x\",\"ui\":{\"version\":\"2.0\"}",
                                       "\"uiRef\":\"/ui\""};
    add_join(m);
    add_fact(m, "tool.call.result",
             arena_printf(m->arena,
                          "{\"messageId\":\"%.*s\",\"toolCallId\":\"%.*s\",\"callId\":\"%.*s\","
                          "\"toolName\":\"f\",\"args\":{},%s,\"content\":%.*s}",
                          STR_ARG(id), STR_ARG(call_id), STR_ARG(call_id),
                          more[draw(&m->chance, COUNT(more))], STR_ARG(content)));
}

/* ---- a turn ---- */

struct turn {
    str id, text, reasoning;
    str calls[4], args[4];
    size_t call_count;
    bool card;
};

static struct turn make_turn(struct maker *m, bool calls)
{
    struct turn t = {.id = new_id(m, "m"), .text = some_text(m, 4)};
    if (one_in(&m->chance, 3)) t.reasoning = some_text(m, 3);
    t.card = one_in(&m->chance, 6);
    t.call_count = calls ? 1 + draw(&m->chance, COUNT(t.calls)) : 0;
    for (size_t i = 0; i < t.call_count; i++) {
        str words = quoted(m, some_text(m, 3));
        t.calls[i] = new_id(m, "c");
        t.args[i] = one_in(&m->chance, 4) ? STR("{}")
                                          : arena_printf(m->arena, "{\"q\":%.*s}", STR_ARG(words));
    }
    return t;
}

/* A whole character or more; the rest stays. */
static str bite(struct maker *m, str *text)
{
    size_t len = 1 + draw(&m->chance, 8);
    if (len > text->len) len = text->len;
    while (len < text->len && ((unsigned char)text->p[len] & 0xc0) == 0x80) len++;
    str piece = {text->p, len};
    *text = str_drop(*text, len);
    return piece;
}

/* Everything of it, or only as much as comes before it breaks off. */
static void show_turn(struct maker *m, const struct turn *t, bool breaks)
{
    struct preview p = {.message_id = t->id, .tool = STR("f")};
    for (str rest = t->reasoning; rest.len;) {
        p.kind = PREVIEW_REASONING;
        p.delta = bite(m, &rest);
        add_preview(m, p);
        if (breaks && one_in(&m->chance, 4)) return;
        if (m->butts_in) maybe_message(m);
    }
    p.kind = PREVIEW_MESSAGE_START;
    p.delta = STR_EMPTY;
    if (t->text.len) add_preview(m, p);
    for (str rest = t->text; rest.len;) {
        p.kind = PREVIEW_TEXT;
        p.delta = bite(m, &rest);
        add_preview(m, p);
        if (breaks && one_in(&m->chance, 4)) return;
        if (m->butts_in) maybe_message(m);
    }
    for (size_t i = 0; i < t->call_count; i++) {
        struct preview call = {.message_id = t->id, .tool = STR("f"), .call_id = t->calls[i]};
        call.kind = PREVIEW_CALL_START;
        add_preview(m, call);
        if (breaks && one_in(&m->chance, 3)) return;
        call.kind = PREVIEW_CALL_ARGS;
        call.message_id = STR_EMPTY;
        bool none = str_eq(t->args[i], STR("{}")); /* what the model may leave out */
        for (str rest = t->args[i]; rest.len && !none;) {
            call.delta = bite(m, &rest);
            add_preview(m, call);
        }
    }
}

static void broken_attempt(struct maker *m)
{
    struct turn t = make_turn(m, one_in(&m->chance, 2));
    show_turn(m, &t, true);
    add_preview(m,
                (struct preview){.kind = PREVIEW_DISCARD, .message_id = t.id, .delta = STR("cut")});
}

static void say_turn(struct maker *m, const struct turn *t)
{
    str text = quoted(m, t->text), reasoning = quoted(m, t->reasoning);
    if (!one_in(&m->chance, 4)) show_turn(m, t, false);
    if (t->reasoning.len)
        add_fact(m, "reasoning.end",
                 arena_printf(m->arena, "{\"messageId\":\"%.*s\",\"content\":%.*s}", STR_ARG(t->id),
                              STR_ARG(reasoning)));
    add_fact(m, "text.message.end",
             arena_printf(m->arena,
                          "{\"messageId\":\"%.*s\",\"content\":%.*s%s,\"inputTokens\":%u,"
                          "\"outputTokens\":1}",
                          STR_ARG(t->id), STR_ARG(text),
                          t->card ? ",\"ui\":{\"version\":\"2.0\"}" : "", draw(&m->chance, 3)));
    for (size_t i = 0; i < t->call_count; i++)
        add_fact(m, "tool.call",
                 arena_printf(m->arena,
                              "{\"toolCallId\":\"%.*s\",\"toolName\":\"f\",\"args\":%.*s,"
                              "\"parentMessageId\":\"%.*s\",\"stage\":\"execution\"}",
                              STR_ARG(t->calls[i]), STR_ARG(t->args[i]), STR_ARG(t->id)));
}

/* ---- legs ---- */

/* A call that has no result in this leg; with or without a question. */
static void wait_for(struct maker *m, str call_id)
{
    static const char *const types[] = {"ask_user", "confirm", "uncertain"};
    size_t n = m->waiting_count++;
    m->waiting[n] = call_id;
    m->asked[n] = !one_in(&m->chance, 3);
    if (!m->asked[n]) return;
    add_fact(m, "interaction.request",
             arena_printf(m->arena,
                          "{\"interactionId\":\"int_%.*s\",\"type\":\"%s\",\"toolCallId\":\"%.*s\","
                          "\"displayText\":\"?\",\"question\":\"?\",\"choices\":[{\"id\":\"c1\","
                          "\"label\":\"yes\"}],\"allowFreeform\":%s}",
                          STR_ARG(call_id), types[draw(&m->chance, COUNT(types))], STR_ARG(call_id),
                          one_in(&m->chance, 2) ? "true" : "false"));
}

static void end_interrupted(struct maker *m)
{
    str ids = STR_EMPTY, calls = STR_EMPTY;
    for (size_t i = 0; i < m->waiting_count; i++) {
        str *list = m->asked[i] ? &ids : &calls;
        *list = arena_printf(m->arena, "%.*s%s\"%s%.*s\"", STR_ARG(*list), list->len ? "," : "",
                             m->asked[i] ? "int_" : "", STR_ARG(m->waiting[i]));
    }
    add_fact(m, "run.finished",
             arena_printf(m->arena,
                          "{\"outcome\":\"interrupted\",\"interactions\":[%.*s],"
                          "\"pendingToolCallIds\":[%.*s]}",
                          STR_ARG(ids), STR_ARG(calls)));
}

static void end_leg(struct maker *m)
{
    static const char *const ends[] = {"completed", "completed", "cancelled", "exhausted"};
    size_t how = draw(&m->chance, COUNT(ends) + 1);
    if (how == COUNT(ends)) {
        if (one_in(&m->chance, 2)) broken_attempt(m);
        add_fact(m, "run.error", STR("{\"code\":\"model_error\",\"message\":\"no\"}"));
        m->step = STR_EMPTY;
        return;
    }
    if (one_in(&m->chance, 3)) broken_attempt(m);
    step(m, "report");
    struct turn t = make_turn(m, false);
    say_turn(m, &t);
    step(m, "");
    add_fact(m, "run.finished", arena_printf(m->arena, "{\"outcome\":\"%s\"}", ends[how]));
}

/* Results come in any order; some calls wait for somebody. */
static void call_turn(struct maker *m)
{
    struct turn t = make_turn(m, true);
    say_turn(m, &t);
    step(m, "execution");
    bool done[4] = {false};
    for (size_t left = t.call_count; left > 0;) {
        size_t i = draw(&m->chance, (uint32_t)t.call_count);
        if (done[i]) continue;
        done[i] = true;
        left--;
        maybe_message(m);
        if (one_in(&m->chance, 3) && m->waiting_count < COUNT(m->waiting))
            wait_for(m, t.calls[i]);
        else
            result(m, t.calls[i]);
    }
}

static void leg(struct maker *m, bool resumed)
{
    add_join(m);
    if (!resumed) message(m);
    *add_line(m) = (struct line){.kind = LINE_REQUEST, .words = STR("r1 -")};
    add_fact(m, "run.started", STR("{\"taskId\":\"task_1\",\"leg\":1,\"model\":\"demo\"}"));
    if (!resumed) step(m, "intent");
    for (size_t i = 0; i < m->waiting_count; i++) {
        if (m->asked[i]) add_fact(m, "interaction.resolved", STR("{\"status\":\"resolved\"}"));
        result(m, m->waiting[i]);
    }
    m->waiting_count = 0;
    for (unsigned rounds = draw(&m->chance, 3); rounds > 0 && !m->waiting_count; rounds--) {
        if (one_in(&m->chance, 4)) broken_attempt(m);
        call_turn(m);
    }
    if (m->waiting_count)
        end_interrupted(m);
    else
        end_leg(m);
    add_join(m);
}

/* Arguments do not say where they belong. A thought, or a call, whose beginning is lost comes behind
 * what history has behind it: right for the client, but in another order. */
static bool may_be_lost(const struct line *line)
{
    const struct preview *p = &line->preview;
    bool begins = (p->kind == PREVIEW_REASONING && !p->offset) || p->kind == PREVIEW_CALL_START;
    return line->kind == LINE_PREVIEW && p->kind != PREVIEW_CALL_ARGS && !begins;
}

/* Some previews are lost, some come twice. */
static void lose(struct maker *m)
{
    struct script *script = &m->script;
    struct line *lines = arena_array(m->arena, 2 * script->count, sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < script->count; i++) {
        const struct line *line = &script->lines[i];
        bool may = may_be_lost(line);
        if (may && one_in(&m->chance, LOSES_ONE_IN)) continue;
        lines[count++] = *line;
        if (may && one_in(&m->chance, LOSES_ONE_IN)) lines[count++] = *line;
    }
    *script = (struct script){lines, count};
}

static bool butts_in(uint64_t seed)
{
    return seed % 2;
}

static struct script make_log(struct arena *arena, uint64_t seed, bool lossy)
{
    struct maker m = {.arena = arena, .chance = {seed * 2 + 1}, .butts_in = butts_in(seed)};
    m.script.lines = arena_array(arena, LINES_MAX, sizeof *m.script.lines);
    for (int i = 0; i < 8; i++) (void)draw(&m.chance, 2);
    bool resumed = false;
    for (unsigned legs = 1 + draw(&m.chance, 3); legs > 0; legs--) {
        leg(&m, resumed);
        resumed = m.waiting_count > 0;
    }
    script_settle(&m.script, STR("r1"));
    if (lossy) lose(&m);
    return m.script;
}

/* ---- what has to hold ---- */

static void check_reader(struct arena *arena, const struct script *script,
                         const struct stage_reader *reader, size_t end, bool apart)
{
    struct buf out;
    struct client client;
    size_t count;
    buf_init(&out, OUT_BYTES_MAX);
    struct script until = {script->lines, end};
    stage_play(&until, reader, &out);
    str bytes = arena_str(arena, buf_str(&out));
    buf_done(&out);
    if (str_find(bytes, STR("null")) >= 0) fail_msg("null: %.*s", STR_ARG(bytes));
    client_init(&client, arena, reader->dialect == STAGE_AGUI_NEW ? AGUI_NEW : AGUI_OLD);
    client_read(&client, bytes);
    client_check_over(&client);
    struct agui_row *rows = stage_rows(arena, script, end, &count);
    client_check_rows(&client, rows, count, apart);
}

/* Behind the line that ends the leg of line `at`; `at` itself if none is under way. */
static size_t leg_end(const struct script *script, size_t at)
{
    bool under_way = false;
    for (size_t i = 0; i < script->count; i++) {
        const struct line *line = &script->lines[i];
        if (i == at && !under_way) return at + 1;
        if (line->kind != LINE_FACT) continue;
        str type = str_c(line->fact.type);
        if (str_eq(type, STR("run.started"))) under_way = true;
        if (!str_eq(type, STR("run.finished")) && !str_eq(type, STR("run.error"))) continue;
        under_way = false;
        if (i >= at) return i + 1;
    }
    return script->count;
}

static void check_seed(uint64_t seed, bool lossy)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct script script = make_log(&arena, seed, lossy);
    for (enum stage_dialect d = STAGE_AGUI_NEW; d <= STAGE_AGUI_OLD; d++) {
        struct stage_reader reader = {.dialect = d, .join = STAGE_FROM_START};
        check_reader(&arena, &script, &reader, script.count, butts_in(seed));
        for (size_t i = 0; i < script.count && !lossy; i++) {
            if (script.lines[i].kind != LINE_JOIN) continue;
            reader.join = (ptrdiff_t)i;
            check_reader(&arena, &script, &reader, leg_end(&script, i), butts_in(seed));
            reader.company = true;
            check_reader(&arena, &script, &reader, leg_end(&script, i), butts_in(seed));
            reader.company = false;
        }
    }
}

/* What a failure has to say. */
struct seeds {
    uint64_t seed;
    bool lossy, passed;
};

static void run_seeds(void **state)
{
    struct seeds *seeds = *state;
    const char *only = getenv("SEED");
    uint64_t last = only ? strtoull(only, NULL, 10) : SEEDS;
    for (seeds->seed = only ? last : 1; seeds->seed <= last; seeds->seed++)
        check_seed(seeds->seed, seeds->lossy);
    seeds->passed = true;
}

static int tell_seed(void **state)
{
    const struct seeds *seeds = *state;
    if (!seeds->passed) print_message("SEED=%llu\n", (unsigned long long)seeds->seed);
    return 0;
}

int test_agui_rules(void)
{
    struct seeds lawful = {0}, lossy = {.lossy = true};
    const struct CMUnitTest tests[] = {
        {"lawful", run_seeds, NULL, tell_seed, &lawful},
        {"lossy", run_seeds, NULL, tell_seed, &lossy},
    };
    return cmocka_run_group_tests_name("wire/agui_rules", tests, NULL, NULL);
}

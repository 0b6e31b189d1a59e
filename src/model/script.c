/* SPDX-License-Identifier: Apache-2.0
 *
 * Scripts for the scripted model, read as docs/SCRIPT.md has them. Each line is parsed as JSON and
 * read through tables of members, one table for each kind of object, so a name that is not in its
 * table is refused by name. From a turn's draft two plays are made at once: the whole answer, and
 * the shortened one of an attempt that fails. Starting a call is then a choice between two finished
 * things.
 *
 * Stories stay the JSON that they are: story.c fills them when they are told.
 *
 * To add a member: a field in the draft, a row in its table, a line in docs/SCRIPT.md.
 */
#include "model/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "model/pattern.h"
#include "model/story.h"

enum { CHUNK_DEFAULT = 4 };

/* How fast a story is told. */
struct script_pace {
    uint64_t chunk[LANGUAGES], delay_ms, gap_ms;
    bool given;
};

struct draft_calls {
    struct piece *pieces;
    size_t count;
};

/* A turn of a story: JSON of the script, filled in when it is told. */
struct story_turn {
    const struct json *when, *text, *reasoning;
    struct draft_calls calls; /* whose arguments are JSON to be filled, too */
    struct script_pace pace;
};

/* A line. It answers, with turns by their number or with a story, or it is something for others. */
struct rule {
    struct rule *next;
    struct pattern *pattern; /* NULL matches everything */
    const struct json *when; /* NULL always holds */
    struct script_turn *turns;
    struct story_turn *story;
    uint32_t count; /* of either */
    struct story_part part;
    struct script_pace pace;
    const struct json *starters;
};

struct script {
    struct arena arena; /* holds everything, itself apart */
    struct rule *rules, **rules_tail;
    uint32_t lines;
    const struct story_part *parts; /* so far, the newest first: none can use itself */
    struct script_pace pace;        /* of the stories below */
    const struct json *starters;
};

/* Where we are, for messages. */
struct script_reader {
    struct script *script;
    const char *name;
    uint32_t line;
    char path[128]; /* "turns[1].calls[0].args", "" for the line itself */
    size_t path_len;
    struct fault *reterr;
};

struct member {
    const char *name;
    enum err (*read)(struct script_reader *r, const struct json *value, const struct member *member,
                     void *field);
    size_t offset;
    uint64_t min, max; /* of numbers; `min` of a story's JSON is its enum story_kind */
};

struct members {
    const struct member *rows;
    size_t count;
};
#define MEMBERS(table) ((struct members){(table), COUNT(table)})

static enum err refuse(const struct script_reader *r, const char *format, ...) PRINTF(2, 3);

static enum err refuse(const struct script_reader *r, const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return fault_field(r->reterr, ERR_CONFIG, r->path, "%s:%u: %s%s%s", r->name, r->line, r->path,
                       *r->path ? " " : "", why);
}

/* Go to a member of the value at hand, and back with script_leave(). Names of ours are short; a path that
 * does not fit is only cut. */
static size_t enter(struct script_reader *r, const char *format, ...) PRINTF(2, 3);

static size_t enter(struct script_reader *r, const char *format, ...)
{
    size_t before = r->path_len;
    va_list args;
    va_start(args, format);
    int added = vsnprintf(r->path + before, sizeof r->path - before, format, args);
    va_end(args);
    r->path_len = before + (size_t)added;
    if (r->path_len >= sizeof r->path) r->path_len = sizeof r->path - 1;
    return before;
}

static void script_leave(struct script_reader *r, size_t before)
{
    r->path_len = before;
    r->path[before] = '\0';
}

/* ---- objects by table ---- */

static enum err refuse_unknown(const struct script_reader *r, struct members members, str key)
{
    char known[160] = "";
    for (size_t i = 0, at = 0; i < members.count && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                               members.rows[i].name);
    key = player_chars(key, 32);
    char shown[4 * 32 + 1]; /* without what would steer a terminal */
    for (size_t i = 0; i < key.len; i++)
        shown[i] = (unsigned char)key.p[i] < ' ' || key.p[i] == 0x7f ? '?' : key.p[i];
    shown[key.len] = '\0';
    return refuse(r, "%shas an unknown member \"%s\"; known: %s", *r->path ? "" : "the line ",
                  shown, known);
}

static enum err read_object(struct script_reader *r, const struct json *value,
                            struct members members, void *draft)
{
    if (value->type != JSON_OBJECT) return refuse(r, "must be an object");
    for (const struct json *child = value->child; child; child = child->next) {
        const struct member *member = members.rows, *end = members.rows + members.count;
        while (member < end && !str_eq(child->key, str_c(member->name))) member++;
        if (member == end) return refuse_unknown(r, members, child->key);

        size_t before = enter(r, "%s%s", r->path_len ? "." : "", member->name);
        enum err e = member->read(r, child, member, (char *)draft + member->offset);
        if (e) return e;
        script_leave(r, before);
    }
    return OK;
}

static enum err read_text(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    (void)member;
    if (value->type != JSON_STRING) return refuse(r, "must be a string");
    *(str *)field = value->text;
    return OK;
}

static enum err read_number(struct script_reader *r, const struct json *value,
                            const struct member *member, void *field)
{
    uint64_t number;
    if (json_u64(value, &number) || number < member->min || number > member->max)
        return refuse(r, "must be a whole number from %llu to %llu",
                      (unsigned long long)member->min, (unsigned long long)member->max);
    *(uint64_t *)field = number;
    return OK;
}

/* ---- a turn ---- */

struct draft_fail {
    bool given, at_given, at_start;
    uint64_t at; /* bytes of text and arguments, unless at the start */
    uint64_t status;
    uint64_t times;
};

struct draft_turn {
    str reasoning, text;
    struct draft_calls calls;
    uint64_t chunk, delay_ms, gap_ms;
    struct draft_fail fail;
    struct model_usage usage;
};

static enum err read_name(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    enum err e = read_text(r, value, member, field);
    if (e) return e;
    size_t len = ((str *)field)->len;
    if (len == 0 || len > SCRIPT_NAME_BYTES_MAX)
        return refuse(r, "must have 1 to %d bytes", SCRIPT_NAME_BYTES_MAX);
    return OK;
}

/* An object is sent as it is written in the line; a string may hold anything, also broken JSON. */
static enum err read_args(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    (void)member;
    if (value->type != JSON_OBJECT && value->type != JSON_STRING)
        return refuse(r, "must be an object or a string");
    *(str *)field = value->type == JSON_OBJECT ? value->raw : value->text;
    return OK;
}

static const struct member call_members[] = {
    {"name", read_name, offsetof(struct piece, name), 0, 0},
    {"args", read_args, offsetof(struct piece, bytes), 0, 0},
};

static enum err read_calls(struct script_reader *r, const struct json *value,
                           const struct member *member, void *field)
{
    (void)member;
    if (value->type != JSON_ARRAY || value->count > SCRIPT_CALLS_MAX)
        return refuse(r, "must be an array of at most %d calls", SCRIPT_CALLS_MAX);
    struct draft_calls calls = {.count = value->count};
    calls.pieces = arena_array(&r->script->arena, calls.count, sizeof *calls.pieces);
    const struct json *child = value->child;
    for (size_t i = 0; i < calls.count; i++, child = child->next) {
        size_t before = enter(r, "[%zu]", i);
        struct piece *piece = &calls.pieces[i];
        *piece = (struct piece){.kind = PIECE_CALL, .bytes = STR("{}")};
        enum err e = read_object(r, child, MEMBERS(call_members), piece);
        if (e) return e;
        if (!piece->name.len) return refuse(r, "has no name");
        script_leave(r, before);
    }
    *(struct draft_calls *)field = calls;
    return OK;
}

static enum err read_at(struct script_reader *r, const struct json *value,
                        const struct member *member, void *field)
{
    (void)member;
    struct draft_fail *fail = field;
    fail->at_given = true;
    fail->at_start = str_eq(json_text(value), STR("start"));
    if (fail->at_start || json_u64(value, &fail->at) == OK ||
        str_to_u64(json_text(value), &fail->at) == OK)
        return OK;
    return refuse(r, "must be \"start\" or a number of bytes");
}

static const struct member fail_members[] = {
    {"at", read_at, 0, 0, 0},
    {"status", read_number, offsetof(struct draft_fail, status), 400, 599},
    {"times", read_number, offsetof(struct draft_fail, times), 1, UINT32_MAX - 1},
};

static enum err read_fail(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    (void)member;
    struct draft_fail *fail = field;
    *fail = (struct draft_fail){.given = true, .times = UINT32_MAX};
    enum err e = read_object(r, value, MEMBERS(fail_members), fail);
    if (e) return e;
    return fail->at_given ? OK : refuse(r, "has no \"at\"");
}

/* Both spellings, as providers have them. */
enum { USAGE_MAX = 1000 * 1000 * 1000 };
static const struct member usage_members[] = {
    {"input_tokens", read_number, offsetof(struct model_usage, input_tokens), 0, USAGE_MAX},
    {"output_tokens", read_number, offsetof(struct model_usage, output_tokens), 0, USAGE_MAX},
    {"inputTokens", read_number, offsetof(struct model_usage, input_tokens), 0, USAGE_MAX},
    {"outputTokens", read_number, offsetof(struct model_usage, output_tokens), 0, USAGE_MAX},
};

static enum err read_usage(struct script_reader *r, const struct json *value,
                           const struct member *member, void *field)
{
    (void)member;
    return read_object(r, value, MEMBERS(usage_members), field);
}

static const struct member turn_members[] = {
    {"text", read_text, offsetof(struct draft_turn, text), 0, 0},
    {"calls", read_calls, offsetof(struct draft_turn, calls), 0, 0},
    {"reasoning", read_text, offsetof(struct draft_turn, reasoning), 0, 0},
    {"chunk", read_number, offsetof(struct draft_turn, chunk), 1, SCRIPT_CHUNK_MAX},
    {"delay_ms", read_number, offsetof(struct draft_turn, delay_ms), 0, SCRIPT_MS_MAX},
    {"gap_ms", read_number, offsetof(struct draft_turn, gap_ms), 0, SCRIPT_MS_MAX},
    {"fail", read_fail, offsetof(struct draft_turn, fail), 0, 0},
    {"usage", read_usage, offsetof(struct draft_turn, usage), 0, 0},
};

static struct play make_play(struct script_reader *r, const struct draft_turn *draft)
{
    struct piece *pieces = arena_array(&r->script->arena, draft->calls.count + 2, sizeof *pieces);
    size_t count = 0;
    if (draft->reasoning.len)
        pieces[count++] = (struct piece){.kind = PIECE_REASONING, .bytes = draft->reasoning};
    if (draft->text.len) pieces[count++] = (struct piece){.kind = PIECE_TEXT, .bytes = draft->text};
    for (size_t i = 0; i < draft->calls.count; i++) pieces[count++] = draft->calls.pieces[i];
    return (struct play){.pieces = pieces,
                         .count = count,
                         .chunk = (uint32_t)draft->chunk,
                         .delay_ms = (msec)draft->delay_ms,
                         .gap_ms = (msec)draft->gap_ms,
                         .end = MODEL_DONE,
                         .usage = draft->usage};
}

/* The first `max` bytes, without the character that they would cut. */
static str whole_chars(str bytes, uint64_t max)
{
    if (max >= bytes.len) return bytes;
    bytes.len = (size_t)max;
    while (bytes.len && ((unsigned char)bytes.p[bytes.len] & 0xc0) == 0x80) bytes.len--;
    return bytes;
}

/* What an attempt still sends that breaks after `left` bytes of text and arguments; reasoning comes
 * before them and is sent whole. Returns how many bytes were wanted and not there. */
static uint64_t cut_pieces(struct script_reader *r, struct play *play, uint64_t left)
{
    struct piece *pieces = arena_array(&r->script->arena, play->count, sizeof *pieces);
    size_t count = 0;
    for (size_t i = 0; i < play->count; i++) {
        struct piece piece = play->pieces[i];
        if (piece.kind != PIECE_REASONING) {
            if (left == 0) break;
            uint64_t len = piece.bytes.len;
            piece.bytes = whole_chars(piece.bytes, left);
            left -= left < len ? left : len;
        }
        if (piece.kind == PIECE_CALL || piece.bytes.len) pieces[count++] = piece;
    }
    play->pieces = pieces;
    play->count = count;
    return left;
}

static enum err make_failing(struct script_reader *r, const struct draft_fail *fail,
                             struct play *play)
{
    uint64_t missing = 0;
    if (fail->at_start)
        play->count = 0;
    else
        missing = cut_pieces(r, play, fail->at);
    if (missing)
        return refuse(r, "fails at byte %llu, but has %llu bytes of text and arguments",
                      (unsigned long long)fail->at, (unsigned long long)(fail->at - missing));

    char place[48] = "at the start", status[32] = "connection lost";
    if (!fail->at_start)
        snprintf(place, sizeof place, "after %llu bytes", (unsigned long long)fail->at);
    if (fail->status)
        snprintf(status, sizeof status, "status %llu", (unsigned long long)fail->status);
    struct fault *why = ARENA_NEW(&r->script->arena, struct fault);
    /* As a provider's statuses are understood: overload and faults pass, refusals do not. */
    bool passes =
        !fail->status || fail->status == 408 || fail->status == 429 || fail->status >= 500;
    play->end = passes ? MODEL_AGAIN : MODEL_FAILED;
    (void)fault(why, passes ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL,
                "the script ends this answer %s: %s", place, status);
    play->why = why;
    play->usage = (struct model_usage){0};
    return OK;
}

static enum err read_turn(struct script_reader *r, const struct json *value,
                          struct script_turn *turn)
{
    struct draft_turn draft = {.chunk = CHUNK_DEFAULT, .usage = {SCRIPT_COUNTED, SCRIPT_COUNTED}};
    enum err e = read_object(r, value, MEMBERS(turn_members), &draft);
    if (e) return e;
    *turn = (struct script_turn){.play = make_play(r, &draft)};
    if (!draft.fail.given) return OK;
    turn->failures_max = (uint32_t)draft.fail.times;
    turn->failing = turn->play;
    return make_failing(r, &draft.fail, &turn->failing);
}

/* ---- a turn of a story ---- */

/* Stays JSON, which lives as long as the script. */
static enum err read_json(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    struct fault why;
    if (story_check(r->script->parts, value, (enum story_kind)member->min, &why))
        return refuse(r, "%s", why.text);
    *(const struct json **)field = value;
    return OK;
}

static enum err read_story_calls(struct script_reader *r, const struct json *value,
                                 const struct member *member, void *field)
{
    enum err e = read_calls(r, value, member, field);
    for (const struct json *call = e ? NULL : value->child; call && !e; call = call->next) {
        const struct json *args = json_get(call, STR("args"));
        struct fault why;
        if (args && story_check(r->script->parts, args, STORY_ARGS, &why))
            e = refuse(r, "%s", why.text);
    }
    return e;
}

/* One for both languages, or one for each. */
static enum err read_chunk(struct script_reader *r, const struct json *value,
                           const struct member *member, void *field)
{
    uint64_t *chunk = field;
    bool two = story_by_language(value);
    enum err e = read_number(r, two ? json_get(value, STR("en")) : value, member, &chunk[ENGLISH]);
    return e ? e
             : read_number(r, two ? json_get(value, STR("zh")) : value, member, &chunk[CHINESE]);
}

static const struct member pace_members[] = {
    {"chunk", read_chunk, offsetof(struct script_pace, chunk), 1, SCRIPT_CHUNK_MAX},
    {"delay_ms", read_number, offsetof(struct script_pace, delay_ms), 0, SCRIPT_MS_MAX},
    {"gap_ms", read_number, offsetof(struct script_pace, gap_ms), 0, SCRIPT_MS_MAX},
};

static enum err read_pace(struct script_reader *r, const struct json *value,
                          const struct member *member, void *field)
{
    (void)member;
    ((struct script_pace *)field)->given = true;
    return read_object(r, value, MEMBERS(pace_members), field);
}

static const struct member story_members[] = {
    {"when", read_json, offsetof(struct story_turn, when), STORY_WHEN, 0},
    {"text", read_json, offsetof(struct story_turn, text), STORY_TEXT, 0},
    {"calls", read_story_calls, offsetof(struct story_turn, calls), 0, 0},
    {"reasoning", read_json, offsetof(struct story_turn, reasoning), STORY_TEXT, 0},
    {"pace", read_pace, offsetof(struct story_turn, pace), 0, 0},
};

/* ---- a line ---- */

static enum err read_match(struct script_reader *r, const struct json *value,
                           const struct member *member, void *field)
{
    (void)member;
    if (value->type != JSON_STRING) return refuse(r, "must be a string");
    struct fault why;
    if (pattern_new(value->text, (struct pattern **)field, &why)) return refuse(r, "%s", why.text);
    return OK;
}

/* Both kinds of turns: `max` of the member is 1 for a story's. */
static enum err read_turns(struct script_reader *r, const struct json *value,
                           const struct member *member, void *field)
{
    struct rule *rule = field;
    if (value->type != JSON_ARRAY || value->count == 0 || value->count > SCRIPT_TURNS_MAX)
        return refuse(r, "must be an array of 1 to %d turns", SCRIPT_TURNS_MAX);
    if (member->max)
        rule->story = arena_array(&r->script->arena, value->count, sizeof *rule->story);
    else
        rule->turns = arena_array(&r->script->arena, value->count, sizeof *rule->turns);
    rule->count = value->count;
    const struct json *child = value->child;
    for (uint32_t i = 0; i < rule->count; i++, child = child->next) {
        size_t before = enter(r, "[%u]", i);
        if (member->max) rule->story[i].pace = r->script->pace;
        enum err e = member->max ? read_object(r, child, MEMBERS(story_members), &rule->story[i])
                                 : read_turn(r, child, &rule->turns[i]);
        if (e) return e;
        script_leave(r, before);
    }
    return OK;
}

static const struct member line_members[] = {
    {"match", read_match, offsetof(struct rule, pattern), 0, 0},
    {"when", read_json, offsetof(struct rule, when), STORY_WHEN, 0},
    {"turns", read_turns, 0, 0, 0},
    {"story", read_turns, 0, 0, 1},
    {"part", read_name, offsetof(struct rule, part.name), 0, 0},
    {"text", read_json, offsetof(struct rule, part.text), STORY_TEXT, 0},
    {"pace", read_pace, offsetof(struct rule, pace), 0, 0},
    {"starters", read_json, offsetof(struct rule, starters), STORY_WORDS, 0},
};

static enum err read_line(struct script_reader *r, str text)
{
    struct script *script = r->script;
    if (script->lines == SCRIPT_LINES_MAX) return refuse(r, "more than %d lines", SCRIPT_LINES_MAX);
    struct json *value;
    struct json_error error;
    if (json_parse(&script->arena, arena_str(&script->arena, text), &value, &error))
        return refuse(r, "not JSON at byte %zu: %s", error.offset + 1, error.reason);
    if (value->type != JSON_OBJECT) return refuse(r, "a line must be an object");

    /* The rule joins the script before it is read, so that script_free finds its pattern. */
    struct rule *rule = ARENA_NEW(&script->arena, struct rule);
    *script->rules_tail = rule;
    script->rules_tail = &rule->next;
    script->lines++;
    enum err e = read_object(r, value, MEMBERS(line_members), rule);
    if (e) return e;
    int kinds = (rule->turns != NULL) + (rule->story != NULL) + (rule->part.name.len > 0) +
                rule->pace.given + (rule->starters != NULL);
    if (kinds == 0) return refuse(r, "the line has no turns");
    if (kinds > 1)
        return refuse(r, "the line has more than one of turns, story, part, pace, starters");
    if (!rule->part.name.len != !rule->part.text) return refuse(r, "part and text go together");
    if (rule->pace.given) script->pace = rule->pace;
    if (rule->starters) script->starters = rule->starters;
    if (!rule->part.text) return OK;
    if (story_knows(rule->part.name) || story_part(script->parts, rule->part.name))
        return refuse(r, "the name of the part is taken");
    rule->part.next = script->parts;
    script->parts = &rule->part;
    return OK;
}

/* The next object, which goes on over the ends of lines until its brackets are closed, or else the
 * next line. Strings end with their line: JSON has it so. */
static str take_lines(str *rest, uint32_t *ret_count)
{
    str text = *rest;
    size_t at = 0;
    int depth = 0;
    bool quoted = false, comment = str_starts(str_trim(text), STR("#"));
    for (*ret_count = 1; at < text.len; at++) {
        char c = text.p[at];
        if (c == '\n' && (depth <= 0 || quoted || comment)) break;
        if (c == '\n') ++*ret_count;
        if (quoted && c == '\\') at++;
        if (c == '"') quoted = !quoted;
        if (!quoted && (c == '{' || c == '[')) depth++;
        if (!quoted && (c == '}' || c == ']')) depth--;
    }
    if (at >= text.len) {
        *rest = (str){NULL, 0};
        return text;
    }
    *rest = str_drop(text, at + 1);
    return (str){text.p, at};
}

static void script_freep(struct script **script)
{
    script_free(*script);
}

enum err script_parse(const char *name, str text, struct script **ret_script, struct fault *reterr)
{
    AUTO(script_freep) struct script *script = calloc(1, sizeof *script);
    if (!script) abort();
    arena_init(&script->arena);
    script->rules_tail = &script->rules;
    script->pace = (struct script_pace){.chunk = {CHUNK_DEFAULT, CHUNK_DEFAULT}};

    struct script_reader r = {.script = script, .name = name, .line = 1, .reterr = reterr};
    for (str rest = text; rest.p;) {
        uint32_t count;
        str line = take_lines(&rest, &count);
        str shown = str_trim(str_ends(line, STR("\r")) ? (str){line.p, line.len - 1} : line);
        enum err e = shown.len && shown.p[0] != '#' ? read_line(&r, line) : OK;
        if (e) return e;
        r.line += count;
    }
    if (script->lines == 0) return fault(reterr, ERR_CONFIG, "%s: holds no lines", name);
    *ret_script = TAKE(script);
    return OK;
}

void script_free(struct script *script)
{
    if (!script) return;
    for (struct rule *rule = script->rules; rule; rule = rule->next) pattern_free(rule->pattern);
    arena_done(&script->arena);
    free(script);
}

str script_starter(const struct script *script, size_t index, bool chinese)
{
    const struct json *list = script->starters;
    return json_text(json_at(json_get(list, chinese ? STR("zh") : STR("en")), index));
}

/* ---- answering ---- */

static const struct play too_much = {
    .chunk = 1,
    .end = MODEL_FAILED,
    .why = &(const struct fault){.err = ERR_INTERNAL, .text = "the script's answer grows too long"},
};

/* The pieces of a turn. A tool that is not on offer is not called: the part "missing" says so, if the
 * script has one. */
static struct play tell(const struct script *script, struct teller *t, struct story_view *view,
                        const struct story_turn *turn)
{
    const struct story_part *missing = story_part(script->parts, STR("missing"));
    const struct json *text = turn->text;
    const struct script_pace *pace = &turn->pace;
    size_t calls = turn->calls.count, count = 0;
    for (size_t i = 0; missing && i < calls; i++) {
        str name = turn->calls.pieces[i].name;
        if (story_get(view, NULL, arena_printf(view->arena, "tools.%.*s", STR_ARG(name)))) continue;
        story_put(view, STR("tool"), name);
        text = missing->text;
        pace = &script->pace;
        calls = 0;
    }
    struct piece *pieces = arena_array(view->arena, calls + 2, sizeof *pieces);
    pieces[count] =
        (struct piece){.kind = PIECE_REASONING, .bytes = story_text(t, turn->reasoning)};
    if (pieces[count].bytes.len) count++;
    pieces[count] = (struct piece){.kind = PIECE_TEXT, .bytes = story_text(t, text)};
    if (pieces[count].bytes.len) count++;
    for (size_t i = 0; i < calls; i++) {
        pieces[count] = turn->calls.pieces[i];
        pieces[count].bytes = story_args(t, pieces[count].bytes);
        count++;
    }
    if (t->broken) return too_much;
    return (struct play){.pieces = pieces,
                         .count = count,
                         .chunk = (uint32_t)pace->chunk[view->language],
                         .delay_ms = (msec)pace->delay_ms,
                         .gap_ms = (msec)pace->gap_ms,
                         .end = MODEL_DONE,
                         .usage = {SCRIPT_COUNTED, SCRIPT_COUNTED}};
}

static struct play play_turn(const struct rule *rule, uint32_t round)
{
    uint32_t index = round ? round - 1 : 0;
    struct script_turn *turn = &rule->turns[index < rule->count ? index : rule->count - 1];
    if (turn->failures == turn->failures_max) return turn->play;
    if (turn->failures_max != UINT32_MAX) turn->failures++;
    return turn->failing;
}

bool script_answer(const struct script *script, const struct model_request *request,
                   struct arena *arena, struct play *ret_play)
{
    /* The part of the message that is matched, as regexec wants it: a NUL inside becomes a space. */
    str message = player_last_user(request);
    if (message.len > SCRIPT_MATCH_BYTES_MAX) message.len = SCRIPT_MATCH_BYTES_MAX;
    char *matched = arena_cstr(arena, message);
    for (size_t i = 0; i < message.len; i++)
        if (!matched[i]) matched[i] = ' ';

    struct story_view view;
    struct teller t = {.parts = script->parts};
    for (const struct rule *rule = script->rules; rule; rule = rule->next) {
        if (rule->pattern && !pattern_matches(rule->pattern, matched)) continue;
        if (!t.view && (rule->when || rule->story)) {
            story_look(arena, request, &view);
            t.view = &view;
        }
        if (!story_holds(&t, rule->when)) continue;
        uint32_t i = 0;
        while (rule->story && i < rule->count && !story_holds(&t, rule->story[i].when)) i++;
        if (i == rule->count) continue;
        *ret_play = rule->story ? tell(script, &t, &view, &rule->story[i])
                                : play_turn(rule, request->round);
        return true;
    }
    return false;
}

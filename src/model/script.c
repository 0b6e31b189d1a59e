/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a script. Each line is parsed as JSON and read through tables of members, one table for
 * each kind of object, so a name that is not in its table is refused by name. From a turn's draft
 * two plays are made at once: the whole answer, and the shortened one of an attempt that fails.
 * Starting a call is then a choice between two finished things.
 *
 * To add a member: a field in the draft, a row in its table, a line in docs/SCRIPT.md.
 */
#include "model/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "model/pattern.h"

struct rule {
    struct rule *next;
    struct pattern *pattern; /* NULL matches everything */
    struct script_turn *turns;
    uint32_t count;
};

struct script {
    struct arena arena; /* holds everything, itself apart */
    struct rule *rules, **rules_tail;
    uint32_t lines;
};

/* Where we are, for messages. */
struct reader {
    struct script *script;
    const char *name;
    uint32_t line;
    char path[128]; /* "turns[1].calls[0].args", "" for the line itself */
    size_t path_len;
    struct fault *reterr;
};

struct member {
    const char *name;
    enum err (*read)(struct reader *r, const struct json *value, const struct member *member,
                     void *field);
    size_t offset;
    uint64_t min, max; /* of numbers */
};

struct members {
    const struct member *rows;
    size_t count;
};

static enum err refuse(const struct reader *r, const char *format, ...) PRINTF(2, 3);

static enum err refuse(const struct reader *r, const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return fault_field(r->reterr, ERR_CONFIG, r->path, "%s:%u: %s%s%s", r->name, r->line, r->path,
                       *r->path ? " " : "", why);
}

/* Go to a member of the value at hand, and back with leave(). Names of ours are short; a path that
 * does not fit is only cut. */
static size_t enter(struct reader *r, const char *format, ...) PRINTF(2, 3);

static size_t enter(struct reader *r, const char *format, ...)
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

static void leave(struct reader *r, size_t before)
{
    r->path_len = before;
    r->path[before] = '\0';
}

/* ---- objects by table ---- */

static enum err refuse_unknown(const struct reader *r, struct members members, str key)
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

static enum err read_object(struct reader *r, const struct json *value, struct members members,
                            void *draft)
{
    if (value->type != JSON_OBJECT) return refuse(r, "must be an object");
    for (const struct json *child = value->child; child; child = child->next) {
        const struct member *member = members.rows, *end = members.rows + members.count;
        while (member < end && !str_eq(child->key, str_c(member->name))) member++;
        if (member == end) return refuse_unknown(r, members, child->key);

        size_t before = enter(r, "%s%s", r->path_len ? "." : "", member->name);
        enum err e = member->read(r, child, member, (char *)draft + member->offset);
        if (e) return e;
        leave(r, before);
    }
    return OK;
}

static enum err read_text(struct reader *r, const struct json *value, const struct member *member,
                          void *field)
{
    (void)member;
    if (value->type != JSON_STRING) return refuse(r, "must be a string");
    *(str *)field = arena_str(&r->script->arena, value->text);
    return OK;
}

static enum err read_number(struct reader *r, const struct json *value, const struct member *member,
                            void *field)
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

struct draft_calls {
    struct piece *pieces;
    size_t count;
};

struct draft_turn {
    str reasoning, text;
    struct draft_calls calls;
    uint64_t chunk, delay_ms, gap_ms;
    struct draft_fail fail;
    struct model_usage usage;
};

static enum err read_name(struct reader *r, const struct json *value, const struct member *member,
                          void *field)
{
    enum err e = read_text(r, value, member, field);
    if (e) return e;
    size_t len = ((str *)field)->len;
    if (len == 0 || len > SCRIPT_NAME_BYTES_MAX)
        return refuse(r, "must have 1 to %d bytes", SCRIPT_NAME_BYTES_MAX);
    return OK;
}

/* An object is sent as it is written in the line; a string may hold anything, also broken JSON. */
static enum err read_args(struct reader *r, const struct json *value, const struct member *member,
                          void *field)
{
    (void)member;
    if (value->type != JSON_OBJECT && value->type != JSON_STRING)
        return refuse(r, "must be an object or a string");
    str bytes = value->type == JSON_OBJECT ? value->raw : value->text;
    *(str *)field = arena_str(&r->script->arena, bytes);
    return OK;
}

static const struct member call_members[] = {
    {"name", read_name, offsetof(struct piece, name), 0, 0},
    {"args", read_args, offsetof(struct piece, bytes), 0, 0},
};

static enum err read_call(struct reader *r, const struct json *value, struct piece *piece)
{
    *piece = (struct piece){.kind = PIECE_CALL, .bytes = STR("{}")};
    enum err e = read_object(r, value, (struct members){call_members, COUNT(call_members)}, piece);
    if (e) return e;
    return piece->name.len ? OK : refuse(r, "has no name");
}

static enum err read_calls(struct reader *r, const struct json *value, const struct member *member,
                           void *field)
{
    (void)member;
    if (value->type != JSON_ARRAY || value->count > SCRIPT_CALLS_MAX)
        return refuse(r, "must be an array of at most %d calls", SCRIPT_CALLS_MAX);
    struct draft_calls calls = {.count = value->count};
    calls.pieces = arena_array(&r->script->arena, calls.count, sizeof *calls.pieces);
    const struct json *child = value->child;
    for (size_t i = 0; i < calls.count; i++, child = child->next) {
        size_t before = enter(r, "[%zu]", i);
        enum err e = read_call(r, child, &calls.pieces[i]);
        if (e) return e;
        leave(r, before);
    }
    *(struct draft_calls *)field = calls;
    return OK;
}

static enum err read_at(struct reader *r, const struct json *value, const struct member *member,
                        void *field)
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

static enum err read_fail(struct reader *r, const struct json *value, const struct member *member,
                          void *field)
{
    (void)member;
    struct draft_fail *fail = field;
    *fail = (struct draft_fail){.given = true, .times = UINT32_MAX};
    enum err e = read_object(r, value, (struct members){fail_members, COUNT(fail_members)}, fail);
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

static enum err read_usage(struct reader *r, const struct json *value, const struct member *member,
                           void *field)
{
    (void)member;
    return read_object(r, value, (struct members){usage_members, COUNT(usage_members)}, field);
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

static struct play make_play(struct reader *r, const struct draft_turn *draft)
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
static uint64_t cut_pieces(struct reader *r, struct play *play, uint64_t left)
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

/* As a provider's statuses are understood: overload and faults pass, refusals do not. */
static enum model_end end_of_status(uint64_t status)
{
    bool passes = status == 0 || status == 408 || status == 429 || status >= 500;
    return passes ? MODEL_AGAIN : MODEL_FAILED;
}

static enum err make_failing(struct reader *r, const struct draft_fail *fail, struct play *play)
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
    play->end = end_of_status(fail->status);
    enum err e = play->end == MODEL_AGAIN ? ERR_MODEL_UNAVAILABLE : ERR_INTERNAL;
    (void)fault(why, e, "the script ends this answer %s: %s", place, status);
    play->why = why;
    play->usage = (struct model_usage){0};
    return OK;
}

static enum err read_turn(struct reader *r, const struct json *value, struct script_turn *turn)
{
    enum { CHUNK_DEFAULT = 4 };
    struct draft_turn draft = {.chunk = CHUNK_DEFAULT, .usage = {SCRIPT_COUNTED, SCRIPT_COUNTED}};
    enum err e = read_object(r, value, (struct members){turn_members, COUNT(turn_members)}, &draft);
    if (e) return e;
    *turn = (struct script_turn){.play = make_play(r, &draft)};
    if (!draft.fail.given) return OK;
    turn->failures_max = (uint32_t)draft.fail.times;
    turn->failing = turn->play;
    return make_failing(r, &draft.fail, &turn->failing);
}

/* ---- a line ---- */

static enum err read_match(struct reader *r, const struct json *value, const struct member *member,
                           void *field)
{
    (void)member;
    if (value->type != JSON_STRING) return refuse(r, "must be a string");
    struct fault why;
    if (pattern_new(value->text, (struct pattern **)field, &why)) return refuse(r, "%s", why.text);
    return OK;
}

static enum err read_turns(struct reader *r, const struct json *value, const struct member *member,
                           void *field)
{
    (void)member;
    struct rule *rule = field;
    if (value->type != JSON_ARRAY || value->count == 0 || value->count > SCRIPT_TURNS_MAX)
        return refuse(r, "must be an array of 1 to %d turns", SCRIPT_TURNS_MAX);
    rule->turns = arena_array(&r->script->arena, value->count, sizeof *rule->turns);
    rule->count = value->count;
    const struct json *child = value->child;
    for (uint32_t i = 0; i < rule->count; i++, child = child->next) {
        size_t before = enter(r, "[%u]", i);
        enum err e = read_turn(r, child, &rule->turns[i]);
        if (e) return e;
        leave(r, before);
    }
    return OK;
}

static const struct member line_members[] = {
    {"match", read_match, offsetof(struct rule, pattern), 0, 0},
    {"turns", read_turns, 0, 0, 0},
};

/* The rule joins the script before it is read, so that script_free finds its pattern. */
static struct rule *add_rule(struct script *script)
{
    struct rule *rule = ARENA_NEW(&script->arena, struct rule);
    *script->rules_tail = rule;
    script->rules_tail = &rule->next;
    script->lines++;
    return rule;
}

static enum err read_line(struct reader *r, str line)
{
    AUTO(arena_done) struct arena tree;
    arena_init(&tree);
    if (r->script->lines == SCRIPT_LINES_MAX)
        return refuse(r, "more than %d lines", SCRIPT_LINES_MAX);
    struct json *value;
    struct json_error error;
    if (json_parse(&tree, line, &value, &error))
        return refuse(r, "not JSON at byte %zu: %s", error.offset + 1, error.reason);
    if (value->type != JSON_OBJECT) return refuse(r, "a line must be an object");

    struct rule *rule = add_rule(r->script);
    enum err e = read_object(r, value, (struct members){line_members, COUNT(line_members)}, rule);
    if (e) return e;
    return rule->count ? OK : refuse(r, "the line has no turns");
}

static bool blank(str line)
{
    if (str_ends(line, STR("\r"))) line.len--;
    return str_trim(line).len == 0;
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

    struct reader r = {.script = script, .name = name, .reterr = reterr};
    for (str rest = text; rest.p;) {
        str line = str_split(&rest, '\n');
        r.line++;
        enum err e = blank(line) ? OK : read_line(&r, line);
        if (e) return e;
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

/* The part of a message that is matched, as regexec wants it: a NUL inside becomes a space. */
struct matched {
    char text[SCRIPT_MATCH_BYTES_MAX + 1];
};

static void match_copy(struct matched *out, str message)
{
    size_t len = message.len < SCRIPT_MATCH_BYTES_MAX ? message.len : SCRIPT_MATCH_BYTES_MAX;
    for (size_t i = 0; i < len; i++) out->text[i] = message.p[i] ? message.p[i] : ' ';
    out->text[len] = '\0';
}

struct script_turn *script_turn(const struct script *script, str message, uint32_t round)
{
    struct matched matched;
    match_copy(&matched, message);
    const struct rule *rule = script->rules;
    while (rule && rule->pattern && !pattern_matches(rule->pattern, matched.text))
        rule = rule->next;
    if (!rule) return NULL;
    uint32_t index = round ? round - 1 : 0;
    return &rule->turns[index < rule->count ? index : rule->count - 1];
}

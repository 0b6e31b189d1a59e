/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls under way: attempts, ends, long results.
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
#include "agent/shell/tool_run.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/asked.h"
#include "agent/core/texts.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "net/loop.h"
#include "tool/elicit.h"
#include "tool/spool.h"
#include "tool/tools.h"

struct tool_run {
    struct tool_run *next;
    struct tool_runs *tool_runs;
    struct arena arena;
    const struct tool *tool;
    struct tool_request request;
    bool repeatable;
    unsigned attempts;
    struct tool_call *call; /* NULL: not in the air */
    struct spool_job *spooling;
    struct result_files *result_files; /* files that came back; NULL: none */
    str text;                          /* for the model, without those */
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

static struct tool_run *find(const struct tool_runs *tool_runs, str call_id)
{
    for (struct tool_run *tool_run = tool_runs->first; tool_run; tool_run = tool_run->next)
        if (str_eq(tool_run->request.call_id, call_id)) return tool_run;
    return NULL;
}

static void tool_run_free(struct tool_run *tool_run)
{
    struct tool_run **at = &tool_run->tool_runs->first;
    while (*at != tool_run) at = &(*at)->next;
    *at = tool_run->next;
    if (tool_run->call) tool_cancel(tool_run->tool, tool_run->call);
    if (tool_run->spooling) spool_forget(tool_run->spooling);
    result_files_forget(tool_run->result_files);
    timer_free(tool_run->timer);
    arena_done(&tool_run->arena);
    free(tool_run);
}

/* ---- the end ---- */

static void tool_run_over(struct tool_run *tool_run)
{
    tool_run->over = true;
    tool_run->tool_runs->on_over(tool_run->tool_runs->arg);
}

/* What came back is over when all of it is where it stays. */
static void arrived(struct tool_run *tool_run)
{
    struct call_end *end = &tool_run->end;
    struct arena *arena = &tool_run->arena;
    if (tool_run->spooling ||
        (tool_run->result_files && !result_files_over(tool_run->result_files)))
        return;
    if (tool_run->result_files) {
        struct attachment *rows;
        const str parts[] = {tool_run->text, tool_run->text.len ? STR("\n") : STR_EMPTY,
                             result_files_lines(tool_run->result_files, arena,
                                                tool_run->request.locale)};
        end->model_text = text_join(arena, parts, COUNT(parts));
        end->file_count = result_files_rows(tool_run->result_files, arena, &rows);
        end->files = rows;
    }
    tool_run_over(tool_run);
}

static void on_result_files(void *arg)
{
    arrived(arg);
}

static void on_result_files_trouble(void *arg, const char *what, enum err e)
{
    struct tool_run *tool_run = arg;
    tool_run->tool_runs->on_trouble(tool_run->tool_runs->arg, what, e);
}

/* An end that we tell, not the tool. */
static void set_failed(struct tool_run *tool_run, const char *code, str text)
{
    tool_run->end = (struct call_end){
        .failed = true, .error = str_c(code), .content = text, .model_text = text};
}

/* Without its file it stands in the row, long as it is: what came back is never thrown away. */
static void on_spooled(void *arg, enum err e, const struct fault *reason)
{
    struct tool_run *tool_run = arg;
    (void)reason;
    tool_run->spooling = NULL;
    if (e) {
        tool_run->tool_runs->on_trouble(tool_run->tool_runs->arg, "a long result has no file", e);
        tool_run->end.result_hash = STR_EMPTY;
    } else {
        tool_run->end.spool = tool_run->request.call_id;
        tool_run->end.result = STR_EMPTY;
    }
    arrived(tool_run);
}

static str hash_text(struct arena *arena, const unsigned char hash[static HASH_BYTES])
{
    char *hex = arena_alloc(arena, HASH_HEX_BYTES);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    return (str){hex, HASH_HEX_BYTES - 1};
}

/* It goes to a file first if it is long and its tool has not put it there. */
static void take_result(struct tool_run *tool_run, const struct tool_result *result)
{
    struct call_end *end = &tool_run->end;
    unsigned char hash[HASH_BYTES];
    if (result->spooled) {
        end->spool = tool_run->request.call_id;
        end->result_hash = hash_text(&tool_run->arena, result->result_hash);
        end->result_bytes = result->result_bytes;
    } else {
        end->result = arena_str(&tool_run->arena, result->result);
        end->result_bytes = end->result.len;
    }
    if (end->result.len <= CALL_INLINE_BYTES_MAX) {
        arrived(tool_run);
        return;
    }
    crypto_sha256(end->result, hash);
    end->result_hash = hash_text(&tool_run->arena, hash);
    tool_run->spooling = spool_write(tool_run->tool_runs->spool, tool_run->request.call_id,
                                     end->result, on_spooled, tool_run);
}

/* What came back is borrowed, so it is copied. */
static void landed(struct tool_run *tool_run, bool failed, const struct tool_result *result)
{
    struct arena *arena = &tool_run->arena;
    tool_run->end = (struct call_end){
        .failed = failed,
        .error = arena_str(arena, result->error),
        .content = arena_str(arena, result->content),
        .ui_hints = arena_str(arena, result->ui_hints),
        .model_text = tool_model_text(arena, result, tool_run->request.locale),
    };
    if (failed && !tool_run->end.error.len) tool_run->end.error = STR("failed");
    if (result->unkept)
        tool_run->tool_runs->on_trouble(tool_run->tool_runs->arg, "a long result has no file",
                                        result->unkept);
    bool words = result->error.len || result->content.len || result->result.len || result->spooled;
    if (words) tool_run->text = tool_run->end.model_text;
    tool_run->waiting_count = 0; /* what it has asked is of no use any more */
    if (result->file_count)
        tool_run->result_files =
            result_files_new(&(struct result_files_options){.loop = tool_run->tool_runs->loop,
                                                            .blobs = tool_run->tool_runs->blobs,
                                                            .look = tool_run->tool_runs->look,
                                                            .on_over = on_result_files,
                                                            .on_trouble = on_result_files_trouble,
                                                            .arg = tool_run},
                             result->files, result->file_count);
    take_result(tool_run, result);
}

/* ---- questions ---- */

static void keep_questions(struct tool_run *tool_run, const struct tool_asked *asked)
{
    struct arena *arena = &tool_run->arena;
    struct tool_question *copy = arena_array(arena, asked->count, sizeof *copy);
    for (size_t i = 0; i < asked->count; i++)
        copy[i] = (struct tool_question){.id = arena_str(arena, asked->questions[i].id),
                                         .message = arena_str(arena, asked->questions[i].message),
                                         .schema = arena_str(arena, asked->questions[i].schema),
                                         .url = arena_str(arena, asked->questions[i].url)};
    struct tool_asked *kept = &tool_run->asked[tool_run->asked_count++];
    *kept = *asked;
    kept->questions = copy;
    kept->state = arena_str(arena, asked->state);
}

/* They are saved one after the other; who asks too much is told no. The end of a call has its place
 * behind all of them. */
static void on_ask(void *arg, const struct tool_asked *asked)
{
    static const struct tool_reply no = {.action = STR("decline")};
    struct tool_run *tool_run = arg;
    bool room = tool_run->asked_count < QUESTIONS_CALL_MAX &&
                asked->first + asked->count <= QUESTIONS_CALL_MAX;
    if (asked->ended) {
        tool_run->call = NULL;
        tool_run->over = true;
    } else if (!room || tool_run->tool_runs->letting_go) {
        for (size_t i = 0; i < asked->count; i++)
            tool_reply(tool_run->tool, tool_run->call, asked->first + i, &no);
        return;
    } else {
        for (size_t i = 0; i < asked->count; i++)
            tool_run->waiting[asked->first + i] =
                elicit_hash(&tool_run->arena, &asked->questions[i]);
        tool_run->waiting_count += asked->count;
    }
    keep_questions(tool_run, asked);
    tool_run->tool_runs->on_over(tool_run->tool_runs->arg);
}

static void on_progress(void *arg, const struct tool_progress *progress)
{
    struct tool_run *tool_run = arg;
    struct tool_runs *tool_runs = tool_run->tool_runs;
    if (tool_runs->on_progress)
        tool_runs->on_progress(tool_runs->arg, tool_run->request.call_id, progress);
}

/* What the row knows of them, for the next start. */
static void take_said(struct tool_run *tool_run, const struct asked *asked)
{
    struct tool_said *said = arena_array(&tool_run->arena, asked->count, sizeof *said);
    for (size_t i = 0; i < asked->count; i++) said[i] = asked->rows[i].said;
    tool_run->request.said = said;
    tool_run->request.said_count = asked->count;
    tool_run->request.state = asked->state;
}

/* As long as a question is not saved the row may have another one in its place, with its answer. */
void tool_runs_reply(struct tool_runs *tool_runs, const struct call *call)
{
    struct tool_run *tool_run = find(tool_runs, call->call_id);
    struct asked asked;
    if (!tool_run || tool_run->over || !tool_run->waiting_count) return;
    if (asked_parse(&tool_run->arena, arena_str(&tool_run->arena, call->asked), &asked)) return;
    take_said(tool_run, &asked);
    for (size_t i = 0; tool_run->call && i < asked.count && i < QUESTIONS_CALL_MAX; i++) {
        const struct tool_reply *reply = &asked.rows[i].said.reply;
        if (!tool_run->waiting[i].len || !reply->action.len) continue;
        if (!str_eq(tool_run->waiting[i], asked.rows[i].hash)) continue;
        tool_run->waiting[i] = STR_EMPTY;
        tool_run->waiting_count--;
        tool_reply(tool_run->tool, tool_run->call, i, reply);
    }
}

/* ---- attempts ---- */

static void tool_run_attempt(struct tool_run *tool_run);

static void on_rested(void *arg)
{
    tool_run_attempt(arg);
}

/* No attempt is left. A write of which one was lost may have happened. */
static void give_up(struct tool_run *tool_run, const char *code, str text)
{
    tool_run->lost = tool_run->in_doubt && tool_run->tool->write;
    if (!tool_run->lost) set_failed(tool_run, code, text);
}

/* Nobody at the other end: the person may know when to try again. */
static void stay_away(struct tool_run *tool_run, str why)
{
    give_up(tool_run, "tool_unavailable", why);
    tool_run->away = tool_run->tool->holds && !tool_run->lost && !tool_run->tool_runs->letting_go;
    tool_run->why = why;
}

static void not_landed(struct tool_run *tool_run, bool lost, const struct tool_result *result)
{
    struct tool_runs *tool_runs = tool_run->tool_runs;
    tool_run->in_doubt = tool_run->in_doubt || lost;
    bool again = !lost || tool_run->repeatable;
    if (again && tool_run->attempts < CALL_ATTEMPTS_MAX && !tool_runs->letting_go) {
        if (!tool_run->timer) tool_run->timer = timer_new(tool_runs->loop, on_rested, tool_run);
        timer_start(tool_run->timer, tool_runs->retry_ms << (tool_run->attempts - 1));
        return;
    }
    stay_away(tool_run, arena_str(&tool_run->arena, result->error));
    tool_run_over(tool_run);
}

static void on_end(void *arg, enum tool_end end, const struct tool_result *result)
{
    struct tool_run *tool_run = arg;
    tool_run->call = NULL;
    if (end == TOOL_DONE || end == TOOL_FAILED)
        landed(tool_run, end == TOOL_FAILED, result);
    else
        not_landed(tool_run, end == TOOL_LOST, result);
}

static void tool_run_attempt(struct tool_run *tool_run)
{
    tool_run->attempts++;
    memset(tool_run->waiting, 0, sizeof tool_run->waiting);
    tool_run->waiting_count = 0;
    if (tool_run->asked_count > 1) tool_run->asked_count = 1; /* the first is perhaps being saved */
    tool_run->call = tool_start(tool_run->tool, &tool_run->request, on_end, tool_run);
}

/* ---- all of them ---- */

void tool_runs_start(struct tool_runs *tool_runs, const struct call *call,
                     const struct passenger *passenger)
{
    struct tool_run *tool_run = calloc(1, sizeof *tool_run);
    if (!tool_run) abort();
    struct arena *arena = &tool_run->arena;
    arena_init(arena);
    tool_run->tool_runs = tool_runs;
    tool_run->tool = tools_find(tool_runs->tools, call->tool);
    assert(tool_run->tool);
    tool_run->repeatable = call_repeatable(call);
    tool_run->request = (struct tool_request){
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
    if (asked_parse(arena, arena_str(arena, call->asked), &asked) == OK)
        take_said(tool_run, &asked);
    tool_run->next = tool_runs->first;
    tool_runs->first = tool_run;
    tool_run_attempt(tool_run);
}

void tool_runs_done(struct tool_runs *tool_runs)
{
    while (tool_runs->first) tool_run_free(tool_runs->first);
}

bool tool_runs_any(const struct tool_runs *tool_runs)
{
    return tool_runs->first;
}

bool tool_runs_has(const struct tool_runs *tool_runs, str call_id)
{
    return find(tool_runs, call_id);
}

static bool has_news(const struct tool_run *tool_run)
{
    return tool_run->over || tool_run->asked_count;
}

/* Its files wait for so long already that they have to be put again first. */
static bool put_again(struct tool_run *tool_run)
{
    if (!tool_run->result_files || !tool_run->over || !result_files_stale(tool_run->result_files))
        return false;
    tool_run->over = false;
    result_files_again(tool_run->result_files);
    return true;
}

bool tool_runs_news(struct tool_runs *tool_runs, struct input *ret_input)
{
    struct tool_run *tool_run = tool_runs->first;
    while (tool_run && (put_again(tool_run) || !has_news(tool_run))) tool_run = tool_run->next;
    if (!tool_run) return false;
    struct input input = {.kind = INPUT_RESULT, .call_id = tool_run->request.call_id};
    if (tool_run->asked_count) {
        input.kind = INPUT_ASKED;
        input.asked = &tool_run->asked[0];
    } else if (tool_run->lost) {
        input.kind = INPUT_LOST;
    } else if (tool_run->away) {
        input.kind = INPUT_AWAY;
        input.why_text = tool_run->why;
    } else {
        input.result = tool_run->end;
    }
    *ret_input = input;
    return true;
}

void tool_runs_saved(struct tool_runs *tool_runs, enum input_kind kind, str call_id)
{
    struct tool_run *tool_run = find(tool_runs, call_id);
    if (!tool_run) return;
    if (kind != INPUT_ASKED || tool_run->asked[0].ended) {
        tool_run_free(tool_run);
        return;
    }
    tool_run->asked_count--;
    memmove(&tool_run->asked[0], &tool_run->asked[1],
            tool_run->asked_count * sizeof tool_run->asked[0]);
}

bool tool_runs_busy(const struct tool_runs *tool_runs)
{
    for (const struct tool_run *tool_run = tool_runs->first; tool_run; tool_run = tool_run->next)
        if (has_news(tool_run) || !tool_run->waiting_count) return true;
    return false;
}

/* A write in the air is waited for; one that rests between two attempts does not leave again. */
void tool_runs_let_go(struct tool_runs *tool_runs, str locale)
{
    tool_runs->letting_go = true;
    for (struct tool_run *tool_run = tool_runs->first; tool_run; tool_run = tool_run->next) {
        bool busy = tool_run->call || tool_run->spooling || tool_run->result_files;
        if (tool_run->over || (tool_run->tool->write && busy)) continue;
        if (tool_run->call) tool_cancel(tool_run->tool, TAKE(tool_run->call));
        if (tool_run->spooling) spool_forget(TAKE(tool_run->spooling));
        result_files_forget(TAKE(tool_run->result_files));
        if (tool_run->timer) timer_stop(tool_run->timer);
        give_up(tool_run, "cancelled",
                text_say(&tool_run->arena, TEXT_CANCELLED, locale, STR_EMPTY));
        tool_run->over = true;
    }
}

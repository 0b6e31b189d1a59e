/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of a conversation into lines that stay, and what is growing or open; pure.
 *
 * 1. Lines that stay are made of facts, and a fact is told once: one that is not newer than `seq` says
 *    nothing, and one that leaves a gap makes the fold stale. So a cut neither doubles nor loses a line.
 * 2. Previews are shown, never said. They are void when their leg ends and with every new connection.
 * 3. Everything that others wrote is cleaned here, before it is said.
 *
 * To add an event: a row in `events`.
 */
#include "term/chat_fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/interaction.h"
#include "term/chat_card_int.h"
#include "term/term_text.h"
#include "term/term_words.h"
#include "ui/plain.h"
#include "ui/text.h"

void fold_init(struct fold *fold, enum lang lang,
               void (*say)(void *arg, enum saying kind, str text), void *arg)
{
    *fold = (struct fold){.lang = lang, .say = say, .arg = arg};
    buf_init(&fold->preview, TERM_PREVIEW_BYTES_MAX);
}

void fold_clear(struct fold *fold)
{
    for (size_t i = 0; i < fold->open_count; i++) free(fold->open[i].json);
    uint64_t asked = fold->asked;
    buf_done(&fold->preview);
    fold_init(fold, fold->lang, fold->say, fold->arg);
    fold->asked = asked;
}

void fold_done(struct fold *fold)
{
    fold_clear(fold);
}

/* ---- small things ---- */

static void keep_id(char to[static ID_CLIENT_BYTES_MAX + 1], str id)
{
    size_t len = id.len <= ID_CLIENT_BYTES_MAX ? id.len : 0; /* a longer one is no id of a server */
    if (len) memcpy(to, id.p, len);
    to[len] = 0;
}

static void drop_preview(struct fold *fold)
{
    buf_clear(&fold->preview);
    fold->preview_units = 0;
    fold->preview_id[0] = 0;
}

static void forget(struct fold *fold)
{
    drop_preview(fold);
    fold->tool_count = 0;
}

void fold_reconnected(struct fold *fold)
{
    drop_preview(fold);
    fold->stale = false; /* it goes on behind the newest fact */
}

/* Up to four pieces as one text. */
static str joined(struct arena *arena, str a, str b, str c, str d)
{
    const str all[] = {a, b, c, d};
    char *text = arena_alloc(arena, a.len + b.len + c.len + d.len + 1), *at = text;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].len) at = mempcpy(at, all[i].p, all[i].len);
    return (str){text, (size_t)(at - text)};
}

static str without_end(str text)
{
    while (text.len && (text.p[text.len - 1] == '\n' || text.p[text.len - 1] == ' ')) text.len--;
    return text;
}

static void say_clean(struct fold *fold, struct arena *arena, enum saying kind, str text)
{
    text = without_end(term_clean(arena, text, true));
    if (text.len) fold->say(fold->arg, kind, text);
}

static void say_card(struct fold *fold, struct arena *arena, const struct json *data,
                     const char *name)
{
    const struct json *ui = json_get(data, str_c(name));
    enum ui_locale locale = fold->lang == LANG_ZH ? UI_ZH : UI_EN;
    if (ui)
        say_clean(fold, arena, SAID_CARD, plain_card(arena, ui->raw, locale, TERM_CARD_CHARS_MAX));
    if (card_member(data, "uiRef").len)
        fold->say(fold->arg, SAID_NOTE, words(fold->lang, W_LARGE_CARD));
}

/* ---- messages ---- */

/* A string, or the words and the names of the files among its parts. */
static str content_text(struct fold *fold, struct arena *arena, const struct json *content)
{
    if (!content || content->type != JSON_ARRAY) return json_text(content);
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    for (const struct json *part = content->child; part; part = part->next) {
        str text = card_member(part, "text"), name = card_member(part, "filename");
        if (out.len) buf_char(&out, '\n');
        if (text.len) {
            buf_append(&out, text);
            continue;
        }
        buf_printf(&out, "[%s", word(fold->lang, W_FILE));
        if (name.len) buf_append(&out, STR(": "));
        if (name.len) buf_append(&out, ui_line(arena, name, TERM_NAME_CHARS_MAX));
        buf_char(&out, ']');
    }
    return arena_str(arena, buf_str(&out));
}

static void on_message(struct fold *fold, struct arena *arena, const struct json *data)
{
    const struct json *message = json_get(data, STR("message"));
    if (!str_eq(card_member(message, "role"), STR("user"))) return;
    say_clean(fold, arena, SAID_USER, content_text(fold, arena, json_get(message, STR("content"))));
}

static void on_queued(struct fold *fold, struct arena *arena, const struct json *data)
{
    (void)arena, (void)data;
    fold->queued++;
}

static void say_answer(struct fold *fold, struct arena *arena, const struct json *row,
                       const char *ui, bool stopped)
{
    say_clean(fold, arena, SAID_ANSWER, content_text(fold, arena, json_get(row, STR("content"))));
    say_card(fold, arena, row, ui);
    if (stopped) fold->say(fold->arg, SAID_NOTE, words(fold->lang, W_CUT_OFF));
}

static void on_text(struct fold *fold, struct arena *arena, const struct json *data)
{
    if (str_eq(card_member(data, "messageId"), str_c(fold->preview_id))) drop_preview(fold);
    say_answer(fold, arena, data, "ui", json_get(data, STR("stopped")) != NULL);
}

/* ---- previews ---- */

static void on_text_start(struct fold *fold, struct arena *arena, const struct json *data)
{
    (void)arena;
    drop_preview(fold);
    keep_id(fold->preview_id, card_member(data, "messageId"));
}

static void on_delta(struct fold *fold, struct arena *arena, const struct json *data)
{
    uint64_t offset = 0;
    str id = card_member(data, "messageId"), delta = card_member(data, "delta");
    if (!fold->preview_id[0]) on_text_start(fold, arena, data);
    bool ours = str_eq(id, str_c(fold->preview_id));
    if (!ours || json_u64(json_get(data, STR("offset")), &offset)) return;
    if (offset > fold->preview_units) return; /* its beginning was not seen */
    if (offset < fold->preview_units) {
        /* Only the first `offset` UTF-16 units of it stay. */
        str rest = buf_str(&fold->preview);
        for (uint64_t n = 0; n < offset && rest.len;) n += ui_next_char(&rest) > 0xffff ? 2 : 1;
        fold->preview.len -= rest.len;
        fold->preview_units = offset;
    }
    if (delta.len) buf_append(&fold->preview, delta);
    fold->preview_units += utf8_utf16_units(delta);
}

static void on_discard(struct fold *fold, struct arena *arena, const struct json *data)
{
    (void)arena;
    if (str_eq(card_member(data, "messageId"), str_c(fold->preview_id))) drop_preview(fold);
}

/* ---- tools ---- */

static struct fold_tool *tool_with(struct fold *fold, str id)
{
    for (size_t i = 0; i < fold->tool_count; i++)
        if (str_eq(str_c(fold->tools[i].id), id)) return &fold->tools[i];
    return NULL;
}

static void set_tool(struct fold_tool *tool, struct arena *arena, str name, str more)
{
    enum { NAME_CHARS_MAX = 40 }; /* of at most 4 bytes; more of the other does not fit */
    str text = ui_line(arena, name, NAME_CHARS_MAX);
    if (more.len) text = joined(arena, text, STR(" · "), more, STR_EMPTY);
    size_t len = text.len < sizeof tool->text ? text.len : sizeof tool->text - 1;
    while (len && len < text.len && ((unsigned char)text.p[len] & 0xc0) == 0x80) len--;
    memcpy(tool->text, text.p, len);
    tool->text[len] = 0;
}

static void on_call(struct fold *fold, struct arena *arena, const struct json *data)
{
    str name = card_member(data, "toolName"), id = card_member(data, "toolCallId");
    if (graph_tool_is(name) || tool_with(fold, id) || fold->tool_count == TERM_TOOLS_MAX) return;
    struct fold_tool *tool = &fold->tools[fold->tool_count++];
    keep_id(tool->id, id);
    set_tool(tool, arena, name, STR_EMPTY);
}

static void on_progress(struct fold *fold, struct arena *arena, const struct json *data)
{
    struct fold_tool *tool = tool_with(fold, card_member(data, "toolCallId"));
    str message = ui_line(arena, card_member(data, "message"), TERM_NAME_CHARS_MAX);
    if (!tool || !message.len) return;
    str name = str_c(tool->text);
    ptrdiff_t end = str_find(name, STR(" · "));
    set_tool(tool, arena, arena_str(arena, end < 0 ? name : (str){name.p, (size_t)end}), message);
}

static void say_tool(struct fold *fold, struct arena *arena, const struct json *row, const char *ui)
{
    str name = card_member(row, "toolName"), error = card_member(row, "error");
    str summary = ui_line(arena, card_member(row, "content"), TERM_SUMMARY_CHARS_MAX);
    if (!graph_tool_is(name))
        say_clean(fold, arena, error.len ? SAID_FAILED : SAID_TOOL,
                  joined(arena, error.len ? STR("✗ ") : STR("✓ "),
                         ui_line(arena, name, TERM_NAME_CHARS_MAX),
                         summary.len ? STR(" · ") : STR_EMPTY, summary));
    say_card(fold, arena, row, ui);
}

static void on_result(struct fold *fold, struct arena *arena, const struct json *data)
{
    struct fold_tool *tool = tool_with(fold, card_member(data, "toolCallId"));
    if (tool) *tool = fold->tools[--fold->tool_count];
    say_tool(fold, arena, data, "ui");
}

/* ---- what waits ---- */

static void open_add(struct fold *fold, struct arena *arena, const struct json *interaction)
{
    struct card *card = card_new(interaction->raw, fold->lang);
    if (!card) return;
    if (fold->open_count < TERM_OPEN_MAX) {
        struct fold_open *open = &fold->open[fold->open_count++];
        *open = (struct fold_open){.json = malloc(interaction->raw.len + 1),
                                   .len = interaction->raw.len,
                                   .kind = card->kind,
                                   .number = ++fold->asked};
        if (!open->json) abort();
        memcpy(open->json, interaction->raw.p, interaction->raw.len);
        keep_id(open->id, card->id);
    }
    fold->say(fold->arg, SAID_ASKED, without_end(card_head(card, arena)));
    card_free(card);
}

static void on_asked(struct fold *fold, struct arena *arena, const struct json *data)
{
    drop_preview(fold);
    open_add(fold, arena, data);
}

static const struct {
    const char *decision;
    enum word said;
} decisions[] = {
    {"approve", W_APPROVED},  {"edit", W_EDITED},         {"reject", W_REJECTED},
    {"respond", W_RESPONDED}, {"continue", W_CONTINUED},  {"give_up", W_GAVE_UP},
    {"retry", W_RETRIED},     {"happened", W_DID_HAPPEN},
};
static const struct {
    const char *status;
    enum word said;
} ends[] = {{"canceled", W_CANCELED}, {"expired", W_EXPIRED}, {"superseded", W_SUPERSEDED}};

/* What was said: in an event it stands there, in an interaction it is put together from the answer. */
static str said_text(struct arena *arena, const struct json *resolved)
{
    const struct json *answer = json_get(resolved, STR("answer")),
                      *fields = json_get(answer, STR("fields"));
    const struct json *picked = json_get(answer, STR("choices")),
                      *one = picked ? picked->child : NULL;
    str text = card_member(answer, "comment"); /* `text` is what the model gets to read of it */
    if (!text.len) text = card_member(resolved, "text");
    if (!text.len) text = card_member(answer, "answer");
    if (!text.len && fields) text = fields->raw;
    for (bool more = !text.len; more && one; one = one->next) {
        const struct json *all = json_get(resolved, STR("choices")),
                          *choice = all ? all->child : NULL;
        str id = json_text(one);
        while (choice && !str_eq(card_member(choice, "id"), id)) choice = choice->next;
        str label = card_member(choice, "label");
        text = joined(arena, text, text.len ? STR(", ") : STR_EMPTY, label.len ? label : id,
                      STR_EMPTY);
    }
    return ui_line(arena, text, TERM_SUMMARY_CHARS_MAX);
}

/* What was decided, in a word or in the words of who did. */
static str outcome(struct arena *arena, enum lang lang, const struct json *resolved)
{
    const struct json *answer = json_get(resolved, STR("answer"));
    str status = card_member(resolved, "status"), decision = card_member(answer, "decision");
    str text = said_text(arena, resolved);
    for (size_t i = 0; i < COUNT(ends); i++)
        if (str_eq(status, str_c(ends[i].status))) return words(lang, ends[i].said);
    if (json_get(answer, STR("skip"))) return words(lang, W_SKIPPED);
    for (size_t i = 0; i < COUNT(decisions); i++) {
        if (!str_eq(decision, str_c(decisions[i].decision))) continue;
        bool says = decisions[i].said == W_REJECTED || decisions[i].said == W_RESPONDED;
        return joined(arena, words(lang, decisions[i].said),
                      says && text.len ? STR(": ") : STR_EMPTY, says ? text : STR_EMPTY, STR_EMPTY);
    }
    return text.len ? text : words(lang, W_ANSWERED);
}

str fold_settled(struct arena *arena, enum lang lang, const struct json *resolved)
{
    str by = ui_line(arena, card_member(resolved, "answeredBy"), TERM_NAME_CHARS_MAX);
    str via = ui_line(arena, card_member(resolved, "via"), TERM_NAME_CHARS_MAX);
    bool good = str_eq(card_member(resolved, "status"), STR("resolved"));
    str line = joined(arena, good ? STR("✓ ") : STR("– "), outcome(arena, lang, resolved),
                      STR_EMPTY, STR_EMPTY);
    if (by.len) line = joined(arena, line, STR(" · "), by, STR_EMPTY);
    if (via.len)
        line = joined(arena, line, by.len ? STR(" (") : STR(" · "), via,
                      by.len ? STR(")") : STR_EMPTY);
    return term_clean(arena, line, false);
}

static void on_settled(struct fold *fold, struct arena *arena, const struct json *data)
{
    for (size_t i = 0; i < fold->open_count; i++) {
        if (!str_eq(str_c(fold->open[i].id), card_member(data, "interactionId"))) continue;
        free(fold->open[i].json);
        fold->open_count--;
        memmove(&fold->open[i], &fold->open[i + 1], (fold->open_count - i) * sizeof fold->open[0]);
        break;
    }
    fold->say(fold->arg, SAID_SETTLED, fold_settled(arena, fold->lang, data));
}

/* ---- runs ---- */

static void on_started(struct fold *fold, struct arena *arena, const struct json *data)
{
    (void)arena;
    fold->state = RUN_WORKING;
    fold->failed = false;
    if (fold->queued && !is_true(json_get(data, STR("resumed")))) fold->queued--;
}

static void ended(struct fold *fold)
{
    forget(fold);
    fold->state = RUN_IDLE;
    memcpy(fold->ended_id, fold->run_id, sizeof fold->ended_id);
}

static void on_finished(struct fold *fold, struct arena *arena, const struct json *data)
{
    str how = card_member(data, "outcome");
    (void)arena;
    if (str_eq(how, STR("interrupted"))) {
        forget(fold);
        fold->state = RUN_WAITING;
        return;
    }
    ended(fold);
    if (str_eq(how, STR("cancelled")))
        fold->say(fold->arg, SAID_NOTE, words(fold->lang, W_STOPPED));
    if (!str_eq(how, STR("exhausted"))) return;
    bool budget = str_find(card_member(data, "code"), STR("budget")) >= 0;
    fold->failed = true;
    fold->say(fold->arg, SAID_ERROR, words(fold->lang, budget ? W_OVER_BUDGET : W_EXHAUSTED));
}

static void on_error(struct fold *fold, struct arena *arena, const struct json *data)
{
    ended(fold);
    fold->failed = true;
    str message = card_member(data, "message"), code = card_member(data, "code");
    say_clean(fold, arena, SAID_ERROR,
              joined(arena, STR("✗ "), message.len ? message : code, STR_EMPTY, STR_EMPTY));
}

/* What became of a step; empty: it runs, or has not begun. */
static str step_word(const struct fold *fold, const struct json *step)
{
    static const struct {
        const char *status;
        enum word word;
    } rows[] = {{"done", W_STEP_DONE},
                {"failed", W_STEP_FAILED},
                {"rejected", W_STEP_REJECTED},
                {"skipped", W_STEP_SKIPPED}};
    if (card_member(step, "by").len) return words(fold->lang, W_STEP_BY_MODEL);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_eq(card_member(step, "status"), str_c(rows[i].status)))
            return words(fold->lang, rows[i].word);
    return STR_EMPTY;
}

/* The step that has ended, with its word, and the one that runs now. When the run ends in the middle,
 * all that it leaves. */
static void on_plan(struct fold *fold, struct arena *arena, const struct json *data)
{
    const struct json *steps = json_get(data, STR("steps"));
    uint64_t current = 0, from = 0;
    if (json_u64(json_get(data, STR("current")), &current) || !steps) return;
    bool over = step_word(fold, json_at(steps, current)).len;
    if (current) from = over ? current : current - 1;
    for (uint64_t i = from; i < steps->count && (i <= current || over); i++) {
        const struct json *step = json_at(steps, i);
        char count[64];
        snprintf(count, sizeof count, "%s %llu/%u: ", word(fold->lang, W_PLAN),
                 (unsigned long long)i + 1, (unsigned)steps->count);
        say_clean(fold, arena, SAID_NOTE,
                  joined(arena, str_c(count),
                         ui_line(arena, card_member(step, "content"), TERM_SUMMARY_CHARS_MAX),
                         step_word(fold, step), STR_EMPTY));
    }
}

/* ---- the ways in ---- */

static const struct {
    const char *type;
    void (*take)(struct fold *fold, struct arena *arena, const struct json *data);
} events[] = {
    {"message.added", on_message},     {"run.queued", on_queued},
    {"run.started", on_started},       {"text.message.start", on_text_start},
    {"text.delta", on_delta},          {"message.discard", on_discard},
    {"text.message.end", on_text},     {"tool.call", on_call},
    {"tool.progress", on_progress},    {"tool.call.result", on_result},
    {"interaction.request", on_asked}, {"interaction.resolved", on_settled},
    {"plan.updated", on_plan},         {"run.finished", on_finished},
    {"run.error", on_error},
};

bool fold_event(struct fold *fold, str text)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    uint64_t seq = 0;
    arena_init(&arena);
    if (json_parse(&arena, text, &json, NULL) || json->type != JSON_OBJECT) return false;
    str type = card_member(json, "type");
    const struct json *number = json_get(json, STR("seq"));
    if (number && json_u64(number, &seq)) return false;
    if (str_eq(type, STR("reset"))) {
        /* The server goes on behind `seq`. A reader that was slow has all facts up to there and lost
         * previews only; any other reset means that our cursor is no good. */
        str reason = card_member(json_get(json, STR("data")), "reason");
        bool slow = str_eq(reason, STR("lagging")) && seq < fold->seq;
        drop_preview(fold);
        if (seq != fold->seq && !slow) fold->stale = true;
        return true;
    }
    if (number) { /* a fact that is new is told, unless it follows a gap */
        if (seq <= fold->seq || fold->stale) return true;
        fold->stale = seq > fold->seq + 1;
        if (fold->stale) return true;
        fold->seq = seq;
    }
    bool began = str_eq(type, STR("run.started")) || str_eq(type, STR("run.finished")) ||
                 str_eq(type, STR("run.error"));
    if (began) keep_id(fold->run_id, card_member(json, "runId"));
    for (size_t i = 0; i < COUNT(events); i++)
        if (str_eq(type, str_c(events[i].type)))
            events[i].take(fold, &arena, json_get(json, STR("data")));
    return true;
}

/* ---- history ---- */

static void say_row_settled(struct fold *fold, struct arena *arena, const struct json *row)
{
    const struct json *meta = json_get(row, STR("metadata"));
    str status = card_member(meta, "status"), decision = card_member(meta, "decision");
    str text = card_member(meta, "answer"), by = card_member(meta, "answered_by");
    if (str_eq(status, STR("pending")) || str_eq(status, STR("open")))
        return; /* told with what is open */
    AUTO(json_doc_done) struct json_doc doc;
    struct json *json = NULL;
    json_doc_open(&doc, TERM_HEAD_BYTES_MAX);
    json_object(&doc.w);
    json_member(&doc.w, STR("status"), str_eq(status, STR("answered")) ? STR("resolved") : status);
    if (text.len) json_member(&doc.w, STR("text"), text);
    if (by.len) json_member(&doc.w, STR("answeredBy"), by);
    if (card_member(meta, "via").len) json_member(&doc.w, STR("via"), card_member(meta, "via"));
    json_key(&doc.w, STR("answer"));
    json_object(&doc.w);
    if (decision.len) json_member(&doc.w, STR("decision"), decision);
    json_object_end(&doc.w);
    json_object_end(&doc.w);
    if (doc.buf.full || json_parse(arena, json_doc_copy(&doc, arena), &json, NULL)) return;
    say_clean(fold, arena, SAID_NOTE,
              joined(arena, STR("? "), card_member(row, "content"), STR_EMPTY, STR_EMPTY));
    fold->say(fold->arg, SAID_SETTLED, fold_settled(arena, fold->lang, json));
}

bool fold_history(struct fold *fold, str text)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    uint64_t seq = 0;
    arena_init(&arena);
    if (json_parse(&arena, text, &json, NULL) || json_u64(json_get(json, STR("seq")), &seq))
        return false;
    const struct json *messages = json_get(json, STR("messages"));
    const struct json *open = json_get(json, STR("openInteractions"));
    fold_clear(fold);
    fold->seq = seq;
    if (is_true(json_get(json, STR("hasMore"))))
        fold->say(fold->arg, SAID_NOTE, words(fold->lang, W_EARLIER));
    for (const struct json *row = messages ? messages->child : NULL; row; row = row->next) {
        str role = card_member(row, "role");
        if (str_eq(role, STR("user")))
            say_clean(fold, &arena, SAID_USER,
                      content_text(fold, &arena, json_get(row, STR("content"))));
        else if (str_eq(role, STR("assistant")))
            say_answer(fold, &arena, row, "uiSchema",
                       json_get(json_get(row, STR("metadata")), STR("stopped")) != NULL);
        else if (str_eq(role, STR("tool")))
            say_tool(fold, &arena, row, "uiSchema");
        else if (str_eq(role, STR("clarify")) || str_eq(role, STR("interaction")))
            say_row_settled(fold, &arena, row);
    }
    for (const struct json *one = open ? open->child : NULL; one; one = one->next)
        open_add(fold, &arena, one);
    if (fold->open_count) fold->state = RUN_WAITING;
    return true;
}

void fold_run(struct fold *fold, str text)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    if (json_parse(&arena, text, &json, NULL)) return;
    str status = card_member(json, "status");
    const struct json *queue = json_get(json, STR("queue"));
    keep_id(fold->run_id, card_member(json, "runId"));
    bool works = str_eq(status, STR("running")) || str_eq(status, STR("cancelling"));
    fold->state = works ? RUN_WORKING : str_eq(status, STR("waiting")) ? RUN_WAITING : RUN_IDLE;
    fold->queued = queue ? queue->count : 0;
}

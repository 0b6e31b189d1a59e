/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reply in a chat means: an answer, an approval by its code, which question, or a plain
 * message. Looked at in this order, and the first that knows decides:
 *
 *     a button that was pressed       names what it answers
 *     a message that was quoted       likewise; a code still finds its own approval
 *     a word with a code              approves or repeats a call
 *     a number, after "which one?"    picks the question for what was said before
 *     the open questions              one: answers it; more: which one?
 *     what else is open               words that decide it
 *     nothing                         a plain message; the server's table knows what it does
 *
 * Invariants:
 * 1. Only `word code` as the whole message approves: nothing before it, nothing behind it, nothing
 *    hidden in it, never in a group, and only the interaction whose code it is.
 * 2. What sounds like an approval and is none (同意, 1, the code alone, or with other words around it)
 *    neither approves nor rejects: they are told how.
 * 3. What is answered was open, and this person may answer it; the server checks both again.
 *
 * To add a word: chat/chat_words.c. To add a way to decide something: a function in `readers`.
 */
#include <string.h>

#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "chat/chat_text.h"
#include "chat/chat_words.h"
#include "chat/form.h"
#include "chat/pick.h"
#include "ui/out.h"
#include "ui/text.h"

/* name, English, Chinese */
#define SAYS(X)                                                                                  \
    X(SAY_HOW,                                                                                   \
      "To approve, reply \"approve\" and the 6 digits of the approval message. To reject, "      \
      "reply \"reject\".",                                                                       \
      "要批准，请回复“同意”加上批准消息中的 6 位数字；要拒绝，请回复“拒绝”。")                   \
    X(SAY_HOW_RETRY, "To run it again, reply \"retry\" and the 6 digits of the message.",        \
      "要重试，请回复“重试”加上那条消息中的 6 位数字。")                                         \
    X(SAY_PAGE, "This can be approved only on the page. To reject it, reply \"reject\".",        \
      "这项只能在网页上批准；要拒绝，请回复“拒绝”。")                                            \
    X(SAY_PAGE_RETRY, "This can be run again only from the page.", "这项只能在网页上选择重试。") \
    X(SAY_GROUP, "This cannot be decided in a group; use a private chat or the page.",           \
      "群聊里不能这样操作，请在私聊中或网页上处理。")                                            \
    X(SAY_WRONG, "That code is wrong. Tries left: %s", "验证码不对，还可以试 %s 次。")           \
    X(SAY_DEAD, "Too many wrong codes. This can now be decided only on the page.",               \
      "输错次数太多，验证码已失效，请到网页上处理。")                                            \
    X(SAY_LATE, "Nothing waits for this code any more, and nothing was done.",                   \
      "没有等待这个验证码的事项，什么也没有执行。")                                              \
    X(SAY_RANGE, "Please reply with a number from 1 to %s.", "请回复 1 到 %s 之间的数字。")      \
    X(SAY_RANGE_MULTI, "Please reply with numbers from 1 to %s, e.g. 1,3.",                      \
      "请回复 1 到 %s 之间的数字，可多选，如 1,3。")                                             \
    X(SAY_ONE_ONLY, "Only one can be chosen: reply with one number from 1 to %s.",               \
      "只能选一个，请回复 1 到 %s 之间的一个数字。")                                             \
    X(SAY_NOT_TAKEN, "This was not accepted: %s", "这个回答没有被接受：%s")

#define SAY_ENUM(name, en, zh) name,
#define SAY_ROW(name, en, zh)  [name] = {en, zh},
enum say { SAYS(SAY_ENUM) };
static const char *const says[][UI_LOCALES] = {SAYS(SAY_ROW)};

/* A reply on its way. */
struct reading {
    struct arena *arena;
    const struct reply_context *context;
    str text;  /* trimmed */
    bool told; /* it was quoted or picked: the target is what they named */
    struct reply *reply;
};

/* ---- outcomes ---- */

static void reply_say(const struct reading *r, enum say what, str arg)
{
    const char *form = says[what][r->context->locale];
    const char *hole = strstr(form, "%s");
    const str parts[] = {{form, hole ? (size_t)(hole - form) : strlen(form)},
                         hole ? arg : STR_EMPTY,
                         hole ? str_c(hole + 2) : STR_EMPTY};
    r->reply->kind = REPLY_SAY;
    r->reply->say = text_join(r->arena, parts, COUNT(parts));
}

static void say_number(const struct reading *r, enum say what, size_t number)
{
    reply_say(r, what, arena_printf(r->arena, "%zu", number));
}

static void say_chat(const struct reading *r, enum chat_text text)
{
    r->reply->kind = REPLY_SAY;
    r->reply->say = chat_text(r->arena, r->context->locale, text, STR_EMPTY);
}

/* `body` is JSON of ours. */
static void answer(const struct reading *r, const struct open_question *open, str body)
{
    if (body.len > ANSWER_BYTES_MAX) {
        say_chat(r, TEXT_TOO_LONG);
        return;
    }
    r->reply->kind = REPLY_ANSWER;
    r->reply->interaction = open->interaction->id;
    r->reply->body = body;
}

/* {"name":"text"}, behind what is there already. */
static str body_with(const struct reading *r, str before, const char *name, str text)
{
    struct out out;
    out_init(&out, r->arena, before.len + text.len + 32, SIZE_MAX / 4);
    out_char(&out, '{');
    out_raw(&out, before);
    if (before.len) out_char(&out, ',');
    out_string(&out, str_c(name));
    out_char(&out, ':');
    out_string(&out, text);
    out_char(&out, '}');
    return out_str(&out);
}

static str decision_body(const struct reading *r, const char *decision)
{
    return body_with(r, STR_EMPTY, "decision", str_c(decision));
}

static str reject_body(const struct reading *r, str comment)
{
    if (!comment.len) return decision_body(r, "reject");
    return body_with(r, STR("\"decision\":\"reject\""), "comment", comment);
}

/* ---- what is open ---- */

static const struct open_question *open_by_id(const struct reading *r, str id)
{
    for (size_t i = 0; i < r->context->open_count; i++)
        if (str_eq(r->context->open[i].interaction->id, id)) return &r->context->open[i];
    return NULL;
}

static bool is_mine(const struct open_question *open, enum interaction_type type)
{
    return open->mine && open->interaction->type == type;
}

static size_t count_mine(const struct reading *r, enum interaction_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < r->context->open_count; i++)
        count += is_mine(&r->context->open[i], type);
    return count;
}

/* Ask which of these they mean, and hold what they said. */
static void ask_which(const struct reading *r, const struct open_question *const *among,
                      size_t count)
{
    const struct interaction *rows[COUNT(r->reply->held)];
    if (count > COUNT(rows)) {
        among += count - COUNT(rows); /* the newest */
        count = COUNT(rows);
    }
    for (size_t i = 0; i < count; i++) {
        rows[i] = among[i]->interaction;
        r->reply->held[i] = rows[i]->id;
    }
    r->reply->kind = REPLY_WHICH;
    r->reply->held_count = count;
    r->reply->held_text = r->text;
    r->reply->say = which_text(r->arena, r->context->locale, rows, count);
}

/* ---- codes ---- */

/* The word whose code decides an interaction of a type, and what it decides. */
static const struct coded {
    enum interaction_type type;
    enum meaning word;
    const char *decision;
    enum say how, page;
} codeds[] = {
    {INTERACTION_CONFIRM, MEANS_APPROVE, "approve", SAY_HOW, SAY_PAGE},
    {INTERACTION_UNCERTAIN, MEANS_RETRY, "retry", SAY_HOW_RETRY, SAY_PAGE_RETRY},
};

static const struct coded *coded_of(enum interaction_type type)
{
    return &codeds[type == INTERACTION_UNCERTAIN];
}

static bool is_alive(const struct open_question *open)
{
    return open->code.len && open->tries < CODE_TRIES_MAX;
}

/* Why there is no code, or how to use it. */
static void say_how(const struct reading *r, const struct open_question *open)
{
    const struct coded *coded = coded_of(open->interaction->type);
    if (!open->mine)
        say_chat(r, TEXT_NOT_YOURS);
    else if (r->context->group)
        reply_say(r, SAY_GROUP, STR_EMPTY);
    else if (open->tries >= CODE_TRIES_MAX)
        reply_say(r, SAY_DEAD, STR_EMPTY);
    else
        reply_say(r, open->code.len ? coded->how : coded->page, STR_EMPTY);
}

static void wrong_code(const struct reading *r, const struct open_question *open)
{
    if (!open->mine || r->context->group || !is_alive(open)) {
        say_how(r, open);
        return;
    }
    uint32_t left = CODE_TRIES_MAX - open->tries - 1;
    if (left)
        say_number(r, SAY_WRONG, left);
    else
        reply_say(r, SAY_DEAD, STR_EMPTY);
    r->reply->kind = REPLY_WRONG;
    r->reply->interaction = open->interaction->id;
}

/* The word and digits and nothing else; beside a question, as many digits as a code has. */
static bool code_read(const struct reading *r, const struct coded *coded,
                      char digits[static CODE_DIGITS_MAX + 1])
{
    str rest;
    if (words_hidden(r->text)) return false;
    if (!means_first(r->text, coded->word, false, &rest) || !digits_read(rest, digits))
        return false;
    return strlen(digits) == APPROVAL_CODE_BYTES - 1 || !count_mine(r, INTERACTION_ASK_USER);
}

static bool is_code_of(const struct open_question *open, const char *digits)
{
    return open->code.len == APPROVAL_CODE_BYTES - 1 && str_eq_secret(open->code, str_c(digits));
}

/* The one whose code it is; else the newest of the type, unless they quoted something else; NULL: it
 * is no code for anything. */
static const struct open_question *coded_target(const struct reading *r, const struct coded *coded,
                                                const struct open_question *named,
                                                const char *digits)
{
    const struct open_question *found = NULL;
    if (named && named->interaction->type == coded->type) return named;
    for (size_t i = 0; i < r->context->open_count; i++) {
        const struct open_question *open = &r->context->open[i];
        if (open->interaction->type != coded->type) continue;
        if (is_code_of(open, digits)) return open;
        if (!found || open->mine || !found->mine) found = open;
    }
    return named ? NULL : found;
}

/* True: it was a word with digits, and there is something that needs a code. `named` is what they
 * quoted, or NULL. */
static bool read_code(const struct reading *r, const struct open_question *named)
{
    char digits[CODE_DIGITS_MAX + 1];
    for (size_t i = 0; i < COUNT(codeds); i++) {
        if (!code_read(r, &codeds[i], digits)) continue;
        const struct open_question *open = coded_target(r, &codeds[i], named, digits);
        if (!open) continue;
        bool good = open->mine && is_alive(open) && !r->context->group && is_code_of(open, digits);
        if (good)
            answer(r, open, decision_body(r, codeds[i].decision));
        else
            wrong_code(r, open);
        return true;
    }
    return false;
}

/* A word and six digits, and nothing is open that they could be for: it was for something that is
 * settled, and is no message for an agent. */
static bool late_code(const struct reading *r)
{
    char digits[CODE_DIGITS_MAX + 1];
    if (count_mine(r, INTERACTION_ASK_USER)) return false;
    for (size_t i = 0; i < COUNT(codeds); i++)
        if (code_read(r, &codeds[i], digits) && strlen(digits) == APPROVAL_CODE_BYTES - 1) {
            reply_say(r, SAY_LATE, STR_EMPTY);
            return true;
        }
    return false;
}

/* ---- a question ---- */

static const struct json *reply_parsed(const struct reading *r, str text)
{
    struct json *json = NULL;
    return text.len && !json_parse(r->arena, text, &json, NULL) ? json : NULL;
}

static str choices_body(const struct reading *r, const struct choices *choices,
                        const struct picked *picked)
{
    struct out out;
    out_init(&out, r->arena, 0, SIZE_MAX / 4);
    out_raw(&out, STR("{\"choices\":["));
    for (size_t i = 0; i < picked->count; i++) {
        if (i) out_char(&out, ',');
        out_string(&out, choices->ids[picked->at[i]]);
    }
    out_raw(&out, STR("]}"));
    return out_str(&out);
}

/* Filled in, or told what is missing. What the server would refuse is told here. */
static void read_form(const struct reading *r, const struct open_question *open,
                      const struct json *fields)
{
    str wrong = STR_EMPTY, body = form_read(r->arena, r->context->locale, fields, r->text, &wrong);
    if (!body.len) {
        r->reply->kind = REPLY_SAY;
        r->reply->say = wrong;
        return;
    }
    struct resolution resolution;
    struct fault why = {0};
    if (answer_parse(r->arena, open->interaction, reply_parsed(r, body), &resolution, &why))
        reply_say(r, SAY_NOT_TAKEN, arena_str(r->arena, str_c(why.text)));
    else
        answer(r, open, body);
}

/* What is wrong with a choice, and the question once more. */
static void ask_again(const struct reading *r, const struct open_question *open, enum say what,
                      size_t count)
{
    const struct question_view view = {
        .locale = r->context->locale, .traits = r->context->traits, .mine = true};
    struct question_text question;
    say_number(r, what, count);
    if (!view.traits) return;
    question_text(r->arena, open->interaction, &view, &question);
    const str parts[] = {r->reply->say, STR("\n\n"), question.text};
    r->reply->say = text_join(r->arena, parts, COUNT(parts));
    r->reply->interaction = open->interaction->id;
}

/* Words that are no choice, where only choices are taken. A plain message settles all that is open,
 * so it is one only if they did not name this question, and there is no other. */
static void read_declined(const struct reading *r, const struct open_question *open, size_t choices)
{
    if (r->told || count_mine(r, INTERACTION_ASK_USER) > 1)
        ask_again(r, open, open->interaction->multi ? SAY_RANGE_MULTI : SAY_RANGE, choices);
}

static void read_question(const struct reading *r, const struct open_question *open)
{
    const struct interaction *asked = open->interaction;
    const struct json *fields = reply_parsed(r, asked->fields);
    struct choices choices;
    struct picked picked;
    choices_of(&choices, reply_parsed(r, asked->choices));
    enum pick pick = pick_read(&choices, r->text, asked->multi, &picked);
    bool form = fields && fields->type == JSON_ARRAY && fields->count;
    bool named = form && form_names(fields, r->text);
    if (pick == PICK_DONE)
        answer(r, open, choices_body(r, &choices, &picked));
    else if (means(r->text, MEANS_SKIP))
        answer(r, open, STR("{\"skip\":true}"));
    else if (form && (named || !asked->allow_freeform))
        read_form(r, open, fields);
    else if (asked->allow_freeform)
        answer(r, open, body_with(r, STR_EMPTY, "answer", r->text));
    else if (pick == PICK_RANGE)
        ask_again(r, open, asked->multi ? SAY_RANGE_MULTI : SAY_RANGE, choices.count);
    else if (pick == PICK_MANY)
        ask_again(r, open, SAY_ONE_ONLY, choices.count);
    else
        read_declined(r, open, choices.count);
}

/* ---- decisions ---- */

/* Digits and spaces gone from the front. */
static str without_digits(str text)
{
    while (text.len) {
        str rest = text;
        uint32_t code = fold_next(&rest);
        if ((code < '0' || code > '9') && !ui_is_hidden(code)) break;
        text = rest;
    }
    return text;
}

/* Do these digits stand in it, whatever is around them? Spaces between them count for nothing. */
static bool has_code(const struct reading *r, str code)
{
    char *shown = arena_alloc(r->arena, r->text.len);
    size_t len = 0;
    for (str rest = r->text; rest.len;) {
        uint32_t next = fold_next(&rest);
        if (next == ' ' || ui_is_hidden(next)) continue;
        shown[len++] = next >= '0' && next <= '9' ? (char)next : '.';
    }
    return code.len && str_find((str){shown, len}, code) >= 0;
}

/* Sounds like the word with its code, and is not: one of them alone, the other way round, with
 * something hidden in it, or the code among other words that do not begin with a rejection. */
static bool sounds_like_code(const struct reading *r, const struct open_question *open)
{
    const struct coded *coded = coded_of(open->interaction->type);
    char digits[CODE_DIGITS_MAX + 1];
    str rest, behind = without_digits(r->text);
    if (means(r->text, coded->word)) return true;
    if (digits_read(r->text, digits) && strlen(digits) == APPROVAL_CODE_BYTES - 1) return true;
    if (behind.len < r->text.len && means(behind, coded->word)) return true;
    if (has_code(r, open->code) && !means_first(r->text, MEANS_REJECT, true, &rest)) return true;
    if (!means_first(r->text, coded->word, false, &rest)) return false;
    return words_hidden(r->text) && !without_digits(rest).len;
}

/* A number alone, of whatever length: nothing that anybody was asked for. */
static bool is_number(str text)
{
    unsigned number;
    char digits[CODE_DIGITS_MAX + 1];
    if (digits_read(text, digits)) return true;
    return number_take(&text, &number) && is_tail(text);
}

static bool read_confirm(const struct reading *r, const struct open_question *open)
{
    str reason;
    bool agrees = means(r->text, MEANS_AGREE) || is_number(r->text);
    if (agrees || sounds_like_code(r, open)) {
        say_how(r, open);
        return true;
    }
    if (!means_first(r->text, MEANS_REJECT, true, &reason)) return false;
    if (!open->mine)
        say_chat(r, TEXT_NOT_YOURS);
    else
        answer(r, open, reject_body(r, is_tail(reason) ? STR_EMPTY : reason));
    return true;
}

static bool read_lost(const struct reading *r, const struct open_question *open)
{
    struct choices choices = {.count = 2};
    struct picked picked;
    if (!open->mine) return false;
    bool number = pick_read(&choices, r->text, false, &picked) == PICK_DONE;
    bool on = means(r->text, MEANS_CONTINUE) || (number && picked.at[0] == 0);
    bool off = means(r->text, MEANS_GIVE_UP) || (number && picked.at[0] == 1);
    if (on || off) answer(r, open, decision_body(r, on ? "continue" : "give_up"));
    return on || off;
}

static bool read_uncertain(const struct reading *r, const struct open_question *open)
{
    if (!open->mine) return false;
    bool happened = means(r->text, MEANS_HAPPENED), off = means(r->text, MEANS_GIVE_UP);
    if (happened || off) {
        answer(r, open, decision_body(r, happened ? "happened" : "give_up"));
        return true;
    }
    if (!sounds_like_code(r, open)) return false;
    say_how(r, open);
    return true;
}

/* By type: true if the words were about it; then the reply says what of it. */
static bool (*const readers[INTERACTION_TYPE_COUNT])(const struct reading *r,
                                                     const struct open_question *open) = {
    [INTERACTION_CONFIRM] = read_confirm,
    [INTERACTION_CONNECTION_LOST] = read_lost,
    [INTERACTION_UNCERTAIN] = read_uncertain,
};

/* Everything that is no question: who answers, who only has something to say? */
static void read_decisions(const struct reading *r)
{
    const struct open_question **answers =
        arena_array(r->arena, r->context->open_count + 1, sizeof *answers);
    const struct reply none = *r->reply;
    struct reply said = none, answered = none;
    size_t count = 0;
    for (size_t i = 0; i < r->context->open_count; i++) {
        const struct open_question *open = &r->context->open[i];
        if (!readers[open->interaction->type]) continue;
        *r->reply = none;
        if (!readers[open->interaction->type](r, open)) continue;
        if (r->reply->kind == REPLY_ANSWER) {
            answered = *r->reply;
            answers[count++] = open;
        } else if (said.kind == REPLY_PLAIN || open->mine) {
            said = *r->reply;
        }
    }
    *r->reply = none;
    if (count > 1)
        ask_which(r, answers, count);
    else
        *r->reply = count ? answered : said;
}

/* ---- one that is named ---- */

static void read_named(struct reading *r, const struct open_question *open)
{
    const struct interaction *asked = open->interaction;
    r->told = true;
    if (asked->type != INTERACTION_ASK_USER) {
        bool about = readers[asked->type](r, open);
        if (!about && open->mine && asked->type == INTERACTION_CONFIRM)
            answer(r, open, reject_body(r, r->text)); /* it is this one that they do not want */
    } else if (open->mine) {
        read_question(r, open);
    } else {
        say_chat(r, TEXT_NOT_YOURS);
    }
}

static void stale(const struct reading *r, str id)
{
    r->reply->kind = REPLY_STALE;
    r->reply->interaction = id;
}

/* "c:<interaction id>:<choice id>" */
static void read_button(const struct reading *r)
{
    str data = r->context->button;
    ptrdiff_t colon = -1;
    for (size_t i = 2; i < data.len; i++)
        if (data.p[i] == ':') colon = (ptrdiff_t)i;
    if (!str_starts(data, STR("c:")) || colon < 0) {
        say_chat(r, TEXT_TROUBLE);
        return;
    }
    str id = {data.p + 2, (size_t)colon - 2}, key = str_drop(data, (size_t)colon + 1);
    const struct open_question *open = open_by_id(r, id);
    if (!open) {
        stale(r, id);
        return;
    }
    bool rejects = open->interaction->type == INTERACTION_CONFIRM && str_eq(key, STR("no"));
    struct choices choices;
    size_t at = 0;
    choices_of(&choices, reply_parsed(r, open->interaction->choices));
    while (at < choices.count && !str_eq(choices.ids[at], key)) at++;
    if (!open->mine)
        say_chat(r, TEXT_NOT_YOURS);
    else if (rejects)
        answer(r, open, reject_body(r, STR_EMPTY));
    else if (at < choices.count && key.len)
        answer(r, open, choices_body(r, &choices, &(struct picked){.at = {at}, .count = 1}));
    else
        say_chat(r, TEXT_TROUBLE);
}

/* ---- the whole ---- */

/* After "which one?": true if the number names one of those that were listed. */
static bool read_held(struct reading *r)
{
    const struct reply_context *context = r->context;
    unsigned number = 0;
    str rest = r->text;
    if (!context->held_text.len || !context->held_count) return false;
    if (!number_take(&rest, &number) || !is_tail(rest)) return false;
    if (!number || number > context->held_count) return false;
    str id = context->held[number - 1];
    const struct open_question *open = open_by_id(r, id);
    r->text = words_trim(context->held_text);
    if (open)
        read_named(r, open);
    else
        stale(r, id);
    return true;
}

static void read_questions(const struct reading *r, size_t count)
{
    const struct open_question **open = arena_array(r->arena, count + 1, sizeof *open);
    size_t found = 0;
    for (size_t i = 0; i < r->context->open_count && found < count; i++)
        if (is_mine(&r->context->open[i], INTERACTION_ASK_USER))
            open[found++] = &r->context->open[i];
    if (count == 1)
        read_question(r, open[0]);
    else
        ask_which(r, open, count);
}

/* Is it a choice of an open question? */
static bool picks_something(const struct reading *r)
{
    for (size_t i = 0; i < r->context->open_count; i++) {
        const struct open_question *open = &r->context->open[i];
        struct choices choices;
        struct picked picked;
        if (!is_mine(open, INTERACTION_ASK_USER)) continue;
        choices_of(&choices, reply_parsed(r, open->interaction->choices));
        if (pick_read(&choices, r->text, false, &picked) == PICK_DONE) return true;
    }
    return false;
}

/* Beside a question only the very words that our messages name decide something else, and what
 * sounds like an approval settles nothing but the question. */
static void read_all(const struct reading *r)
{
    size_t questions = count_mine(r, INTERACTION_ASK_USER);
    const struct reply none = *r->reply;
    bool strong = means(r->text, MEANS_REJECT_BARE) || means(r->text, MEANS_HAPPENED);
    strong = strong && !picks_something(r);
    if (!questions || strong) read_decisions(r);
    if (!questions || (strong && r->reply->kind != REPLY_PLAIN)) return;
    *r->reply = none;
    read_questions(r, questions);
    if (r->reply->kind != REPLY_PLAIN) return;
    read_decisions(r); /* what the question does not take must not reject by mistake */
    if (r->reply->kind == REPLY_ANSWER || r->reply->kind == REPLY_WHICH) *r->reply = none;
}

void reply_read(struct arena *arena, const struct reply_context *context, str text,
                struct reply *ret_reply)
{
    *ret_reply = (struct reply){.kind = REPLY_PLAIN};
    struct reading r = {.arena = arena, .context = context, .reply = ret_reply};
    if (context->button.len) {
        read_button(&r);
        return;
    }
    r.text = words_trim(utf8_valid(text) ? text : STR_EMPTY);
    if (!r.text.len) return;
    const struct open_question *named = open_by_id(&r, context->quoted);
    if (context->quoted.len && !named) {
        stale(&r, context->quoted);
        return;
    }
    if (read_code(&r, named) || (!named && late_code(&r))) return;
    if (named)
        read_named(&r, named);
    else if (!read_held(&r))
        read_all(&r);
}

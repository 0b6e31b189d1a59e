/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions and approvals as one message of plain text, with buttons.
 *
 *     🔐 需要你的批准                 ours
 *     操作：给 bob 转账               ours: what the tool's own template says
 *     · to: bob                       an argument: behind a dot
 *     │ a second line of it           and behind a bar
 *     同意请回复：同意 482913         ours, and last
 *
 * Invariants:
 * 1. A code stands only in a text that shows all of what it approves. If one line does not fit, there
 *    is no code.
 * 2. No line of an approval that is ours begins like one of an argument: every line of those is behind
 *    a dot or a bar, and what is hidden in them is made visible. The model's own words are not shown.
 * 3. A question that does not fit is asked in fewer words, and says so; its numbers stay.
 *
 * To add a sentence of a question: a row of SAYS, in both languages; those of the
 * conversation are in chat/notice.c. How replies are read is in chat/reply.c.
 */
#include "chat/chat_text.h"

#include "agent/core/arguments.h"
#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "chat/draft.h"
#include "chat/form.h"
#include "chat/pick.h"
#include "ui/out.h"
#include "ui/text.h"
#include "ui/visible.h"

/* name, English, Chinese */
#define SAYS(X)                                                                                    \
    X(SAY_BOTH, "Reply with a number or type your answer", "请回复数字或直接输入你的回答")         \
    X(SAY_NUMBER, "Reply with a number", "请回复数字")                                             \
    X(SAY_WORDS, "Type your answer", "请直接输入你的回答")                                         \
    X(SAY_SEVERAL, " (several are fine, e.g. 1,3)", "（可多选，如 1,3）")                          \
    X(SAY_CUT, "(Shortened; ", "（内容有省略，")                                                   \
    X(SAY_CUT_END, "all of it is on the page)", "完整内容见网页）")                                \
    X(SAY_CUT_AT, "all of it: ", "完整内容：")                                                     \
    X(SAY_CONFIRM, "🔐 Your approval is needed", "🔐 需要你的批准")                                  \
    X(SAY_PLAN, "🔐 A plan needs your approval", "🔐 计划需要你的批准")                              \
    X(SAY_OTHERS, "🔐 Waiting for an approval", "🔐 等待批准")                                       \
    X(SAY_UNCERTAIN, "⚠️ Outcome unknown", "⚠️ 结果未知")                              \
    X(SAY_UNCERTAIN_WHY,                                                                           \
      "This was sent, but how it ended was not recorded: it may have happened.",                   \
      "这个操作已经发出，但没有记录到结果：可能已经执行。")                                        \
    X(SAY_LOST, "🔌 ", "🔌 ")                                                                        \
    X(SAY_LOST_HOW, "Reply \"continue\" to try again, or \"give up\"", "回复“继续”重试，或“放弃”") \
    X(SAY_TOOL, "Tool: ", "工具：")                                                                \
    X(SAY_ACTION, "Action: ", "操作：")                                                            \
    X(SAY_REQUESTER, "Requested by: ", "请求者：")                                                 \
    X(SAY_RISK, "Risk: ", "风险：")                                                                \
    X(SAY_DONE_WHEN, "Done when: ", "完成标准：")                                                  \
    X(SAY_APPROVE, "To approve, reply: approve ", "同意请回复：同意 ")                             \
    X(SAY_REJECT, "To reject, reply: reject, or just say why", "拒绝请回复：拒绝，或直接说明原因") \
    X(SAY_RETRY, "To run it again, reply: retry ", "重试请回复：重试 ")                            \
    X(SAY_HAPPENED, "If it did happen, reply: happened", "确认已经执行请回复：已发生")             \
    X(SAY_GIVE_UP, "To leave it, reply: give up", "不再处理请回复：放弃")                          \
    X(SAY_LONG, "It is too long to be shown here as a whole.", "内容太长，这里无法完整显示。")     \
    X(SAY_PAGE, "It can be approved only on the page", "只能在网页上批准")                         \
    X(SAY_PAGE_RETRY, "It can be run again only from the page", "只能在网页上选择重试")            \
    X(SAY_WHICH, "Which one do you mean? Reply with its number.", "你指的是哪一个？请回复编号。")  \
    X(SAY_REJECT_BUTTON, "Reject", "拒绝")

#define SAY_ENUM(name, en, zh) name,
#define SAY_ROW(name, en, zh)  [name] = {STR(en), STR(zh)},
enum say { SAYS(SAY_ENUM) };
static const str says[][UI_LOCALES] = {SAYS(SAY_ROW)};

/* A question on its way. */
struct text_asking {
    struct arena *arena;
    const struct interaction *interaction;
    const struct question_view *view;
    enum ui_locale locale;
};

static str chat_text_say(const struct text_asking *a, enum say what)
{
    return says[what][a->locale];
}

static str join(struct arena *arena, str first, str second, str third)
{
    const str parts[] = {first, second, third};
    return text_join(arena, parts, COUNT(parts));
}

static const struct json *chat_text_parsed(struct arena *arena, str text)
{
    struct json *json = NULL;
    return text.len && !json_parse(arena, text, &json, NULL) ? json : NULL;
}

/* ---- a question ---- */

/* In how many words, from all of them down. */
static const struct measure {
    size_t question, label;
    bool about;
} measures[] = {
    {SIZE_MAX, SIZE_MAX, true},
    {SIZE_MAX, SIZE_MAX, false},
    {1000, 80, false},
    {300, 30, false},
    {80, 12, false},
};

static str shortened(struct arena *arena, str text, size_t chars_max, bool lines)
{
    return chars_max == SIZE_MAX ? text_clean(arena, text, lines)
                                 : text_short(arena, text, chars_max);
}

static void put_choices(const struct text_asking *a, struct draft *draft,
                        const struct measure *measure)
{
    struct choices choices;
    choices_of(&choices, chat_text_parsed(a->arena, a->interaction->choices));
    if (choices.count) draft_put(draft, STR("\n"));
    for (size_t i = 0; i < choices.count; i++) {
        str about = measure->about ? choices.abouts[i] : STR_EMPTY;
        const str parts[] = {arena_printf(a->arena, "\n%zu. ", i + 1),
                             shortened(a->arena, choices.labels[i], measure->label, false),
                             about.len ? STR(" - ") : STR_EMPTY,
                             text_clean(a->arena, about, false)};
        draft_add(draft, parts, COUNT(parts));
    }
}

static void put_fields(const struct text_asking *a, struct draft *draft,
                       const struct measure *measure)
{
    const struct json *fields = chat_text_parsed(a->arena, a->interaction->fields);
    size_t chars = measure->label < 200 ? measure->label : 200, number = 0;
    if (!fields) return;
    draft_put(draft, STR("\n"));
    for (const struct json *field = fields->child; field; field = field->next) {
        const str parts[] = {fields->count > 1 ? arena_printf(a->arena, "\n%zu. ", ++number)
                                               : STR("\n"),
                             form_line(a->arena, a->locale, field, chars)};
        draft_add(draft, parts, COUNT(parts));
    }
}

/* "(Shortened; all of it: https://...)" */
static str cut_note(const struct text_asking *a)
{
    if (!a->view->page.len)
        return join(a->arena, chat_text_say(a, SAY_CUT), chat_text_say(a, SAY_CUT_END), STR("\n"));
    str where = join(a->arena, chat_text_say(a, SAY_CUT_AT), a->view->page,
                     a->locale == UI_ZH ? STR("）\n") : STR(")\n"));
    return join(a->arena, chat_text_say(a, SAY_CUT), where, STR_EMPTY);
}

static str question_hint(const struct text_asking *a)
{
    const struct interaction *i = a->interaction;
    const struct json *fields = chat_text_parsed(a->arena, i->fields);
    bool choices = i->choices.len > 2;
    str hint = chat_text_say(a, choices && i->allow_freeform ? SAY_BOTH
                                : choices                    ? SAY_NUMBER
                                                             : SAY_WORDS);
    if (fields && !choices) hint = form_hint(a->locale, fields->count);
    if (choices && i->multi) hint = join(a->arena, hint, chat_text_say(a, SAY_SEVERAL), STR_EMPTY);
    return hint;
}

/* Who decides, where it is not them. */
static str others_decide(const struct text_asking *a)
{
    str approver = text_short(a->arena, a->interaction->approver, 60);
    return approver.len ? chat_text(a->arena, a->locale, TEXT_WAITING_OTHER, approver)
                        : chat_text(a->arena, a->locale, TEXT_NOT_YOURS, STR_EMPTY);
}

static str question_in(const struct text_asking *a, const struct measure *measure, bool last)
{
    struct draft draft;
    str hint = a->view->mine ? question_hint(a) : others_decide(a);
    str note = measure->question != SIZE_MAX || !measure->about ? cut_note(a) : STR_EMPTY;
    str end = join(a->arena, STR("\n\n"), note, hint);
    static const struct channel_traits none = {0};
    draft_init(&draft, a->arena, last ? a->view->traits : &none);
    draft_keep(&draft, end);
    const str head[] = {STR("❓ "),
                        shortened(a->arena, a->interaction->question, measure->question, true)};
    draft_add(&draft, head, COUNT(head));
    put_choices(a, &draft, measure);
    put_fields(a, &draft, measure);
    draft_end(&draft, end);
    return out_str(&draft.out);
}

/* ---- a call ---- */

static const struct {
    str risk, words[UI_LOCALES];
} risks[] = {
    {STR("write"), {STR("changes data"), STR("会修改数据")}},
    {STR("external"), {STR("reaches outside"), STR("会影响外部")}},
    {STR("destructive"), {STR("cannot be undone"), STR("不可撤销")}},
};

static str risk_words(const struct text_asking *a)
{
    for (size_t i = 0; i < COUNT(risks); i++)
        if (str_eq(a->interaction->risk, risks[i].risk)) return risks[i].words[a->locale];
    return STR_EMPTY;
}

/* A value behind what its first line begins with; each further line of it behind a bar. */
static void put_value(const struct text_asking *a, struct draft *draft, str before, str value)
{
    struct out out;
    out_init(&out, a->arena, before.len + value.len, SIZE_MAX / 4);
    out_raw(&out, before);
    for (str rest = value; rest.p;) {
        str line = str_split(&rest, '\n');
        out_raw(&out, line);
        if (rest.p) out_raw(&out, STR("\n│ "));
    }
    draft_put(draft, out_str(&out));
}

static void put_rows(const struct text_asking *a, struct draft *draft)
{
    struct arg_reader reader;
    struct arg_rows rows = {0};
    arg_reader_init(&reader, a->arena, a->locale, true, false);
    args_read(&reader, a->interaction->args, &rows);
    if (args_full(&reader)) {
        rows = (struct arg_rows){0};
        arg_reader_init(&reader, a->arena, a->locale, false, false);
        args_read(&reader, a->interaction->args, &rows);
    }
    for (size_t i = 0; i < rows.count && !draft->cut; i++)
        put_value(a, draft, join(a->arena, STR("\n· "), rows.rows[i].name, STR(": ")),
                  rows.rows[i].value);
}

/* The steps of a plan that is nothing but steps; anything else is shown as what it is. */
static const struct json *plan_steps(const struct text_asking *a)
{
    if (!str_eq(a->interaction->tool, tool_submit_plan.name)) return NULL;
    const struct json *args = chat_text_parsed(a->arena, a->interaction->args);
    const struct json *steps = json_get(args, STR("steps"));
    return steps && steps->type == JSON_ARRAY && args->count == 1 ? steps : NULL;
}

/* As the graph takes them: one without words is none. */
static void put_steps(const struct text_asking *a, struct draft *draft, const struct json *steps)
{
    size_t number = 0;
    for (const struct json *step = steps->child; step && !draft->cut; step = step->next) {
        str content = str_trim(json_text(json_get(step, STR("content"))));
        str done = str_trim(json_text(json_get(step, STR("done_when"))));
        if (!content.len) continue;
        put_value(a, draft, arena_printf(a->arena, "\n%zu. ", ++number),
                  ui_visible(a->arena, content, true));
        if (done.len)
            put_value(a, draft,
                      join(a->arena, STR("\n│ "), chat_text_say(a, SAY_DONE_WHEN), STR_EMPTY),
                      ui_visible(a->arena, done, true));
    }
}

static void put_line(const struct text_asking *a, struct draft *draft, enum say label, str value)
{
    const str parts[] = {STR("\n"), chat_text_say(a, label), ui_visible(a->arena, value, false)};
    if (value.len) draft_add(draft, parts, COUNT(parts));
}

static void put_call(const struct text_asking *a, struct draft *draft)
{
    const struct interaction *i = a->interaction;
    const struct json *steps = plan_steps(a);
    bool uncertain = i->type == INTERACTION_UNCERTAIN;
    bool mine = a->view->mine;
    draft_put(draft, chat_text_say(a, uncertain ? SAY_UNCERTAIN
                                      : !mine   ? SAY_OTHERS
                                      : steps   ? SAY_PLAN
                                                : SAY_CONFIRM));
    const str why[] = {STR("\n"), chat_text_say(a, SAY_UNCERTAIN_WHY)};
    if (uncertain) draft_add(draft, why, COUNT(why));
    if (i->approver.len) put_line(a, draft, SAY_REQUESTER, i->owner);
    if (steps) {
        put_steps(a, draft, steps);
        return;
    }
    put_line(a, draft, SAY_TOOL, i->tool);
    put_line(a, draft, SAY_ACTION, i->summary);
    put_line(a, draft, SAY_RISK, risk_words(a));
    put_rows(a, draft);
}

/* What stands below a call, by whether the code may be in it. */
static str call_end(const struct text_asking *a, bool coded, bool whole)
{
    bool uncertain = a->interaction->type == INTERACTION_UNCERTAIN;
    struct out out;
    out_init(&out, a->arena, 0, SIZE_MAX / 4);
    out_raw(&out, STR("\n\n"));
    if (!whole) {
        out_raw(&out, chat_text_say(a, SAY_LONG));
        out_char(&out, '\n');
    }
    if (!a->view->mine) {
        out_raw(&out, others_decide(a));
        return out_str(&out);
    }
    if (coded) {
        out_raw(&out, chat_text_say(a, uncertain ? SAY_RETRY : SAY_APPROVE));
        out_raw(&out, a->view->code);
    } else {
        out_raw(&out, chat_text_say(a, uncertain ? SAY_PAGE_RETRY : SAY_PAGE));
        if (a->view->page.len) {
            out_raw(&out, a->locale == UI_ZH ? STR("：") : STR(": "));
            out_raw(&out, a->view->page);
        }
    }
    out_char(&out, '\n');
    out_raw(&out, chat_text_say(a, uncertain ? SAY_HAPPENED : SAY_REJECT));
    if (uncertain) out_char(&out, '\n');
    if (uncertain) out_raw(&out, chat_text_say(a, SAY_GIVE_UP));
    return out_str(&out);
}

static bool call_in(const struct text_asking *a, bool coded, bool whole, str *ret_text)
{
    struct draft draft;
    str end = call_end(a, coded, whole);
    draft_init(&draft, a->arena, a->view->traits);
    draft_keep(&draft, end);
    put_call(a, &draft);
    draft_end(&draft, end);
    *ret_text = out_str(&draft.out);
    return !draft.cut && text_fits(a->view->traits, *ret_text);
}

static bool is_code(str code)
{
    if (code.len != APPROVAL_CODE_BYTES - 1) return false;
    for (size_t i = 0; i < code.len; i++)
        if (code.p[i] < '0' || code.p[i] > '9') return false;
    return true;
}

static str lost_text(const struct text_asking *a)
{
    struct draft draft;
    str how = a->view->mine ? chat_text_say(a, SAY_LOST_HOW) : others_decide(a);
    str end = join(a->arena, STR("\n\n"), how, STR_EMPTY);
    str what = text_clean(a->arena, a->interaction->display_text, true);
    draft_init(&draft, a->arena, a->view->traits);
    draft_keep(&draft, end);
    const str whole[] = {chat_text_say(a, SAY_LOST), what};
    if (!draft_add(&draft, whole, COUNT(whole))) {
        draft.cut = false;
        const str some[] = {chat_text_say(a, SAY_LOST), text_short(a->arena, what, 200)};
        draft_add(&draft, some, COUNT(some));
    }
    draft_end(&draft, end);
    return out_str(&draft.out);
}

/* ---- buttons ---- */

struct buttons {
    struct out out;
    const struct text_asking *asking;
    size_t count;
    bool fit;
};

static void put_button(struct buttons *b, str key, str label)
{
    const struct text_asking *a = b->asking;
    const str parts[] = {STR("c:"), a->interaction->id, STR(":"), key};
    str data = text_join(a->arena, parts, COUNT(parts));
    if (data.len > a->view->traits->button_bytes_max) b->fit = false;
    if (++b->count > a->view->traits->buttons_max) b->fit = false;
    out_raw(&b->out, b->out.len > 1 ? STR(",{\"data\":") : STR("{\"data\":"));
    out_string(&b->out, data);
    out_member(&b->out, STR("label"), label);
    out_char(&b->out, '}');
}

/* One choice of a question, or the way to reject. What cannot be answered here has none. */
static str buttons_of(const struct text_asking *a)
{
    enum { LABEL_CHARS_MAX = 30 };
    const struct interaction *i = a->interaction;
    struct buttons b = {.asking = a, .fit = true};
    if (!a->view->traits->buttons_max || !a->view->mine) return STR_EMPTY;
    out_init(&b.out, a->arena, 0, SIZE_MAX / 4);
    out_char(&b.out, '[');
    if (i->type == INTERACTION_CONFIRM) {
        put_button(&b, STR("no"), chat_text_say(a, SAY_REJECT_BUTTON));
    } else if (i->type == INTERACTION_ASK_USER && !i->multi) {
        struct choices choices;
        choices_of(&choices, chat_text_parsed(a->arena, i->choices));
        for (size_t n = 0; n < choices.count; n++) {
            str number = arena_printf(a->arena, "%zu. ", n + 1);
            str label = text_short(a->arena, choices.labels[n], LABEL_CHARS_MAX);
            put_button(&b, choices.ids[n], join(a->arena, number, label, STR_EMPTY));
        }
    }
    out_char(&b.out, ']');
    return b.fit && b.count ? out_str(&b.out) : STR_EMPTY;
}

/* Where not even our own words fit. */
static str clamped(const struct channel_traits *traits, str text)
{
    while (text.len && !text_fits(traits, text)) {
        text.len--;
        while (text.len && ((unsigned char)text.p[text.len] & 0xc0) == 0x80) text.len--;
    }
    return text;
}

void question_text(struct arena *arena, const struct interaction *interaction,
                   const struct question_view *view, struct question_text *ret_text)
{
    struct text_asking a = {arena, interaction, view, view->locale};
    *ret_text = (struct question_text){.text = STR_EMPTY, .buttons = buttons_of(&a)};
    if (interaction->type == INTERACTION_CONNECTION_LOST) {
        ret_text->text = lost_text(&a);
    } else if (interaction->type == INTERACTION_ASK_USER) {
        bool fits = false;
        for (size_t i = 0; !fits && i < COUNT(measures); i++) {
            ret_text->text = question_in(&a, &measures[i], false);
            fits = text_fits(view->traits, ret_text->text);
        }
        if (!fits) ret_text->text = question_in(&a, &measures[COUNT(measures) - 1], true);
    } else {
        bool coded = view->mine && is_code(view->code);
        bool whole = call_in(&a, coded, true, &ret_text->text);
        ret_text->coded = coded && whole;
        if (!whole) (void)call_in(&a, false, false, &ret_text->text);
    }
    ret_text->text = clamped(view->traits, ret_text->text);
}

/* ---- which one ---- */

static str subject(struct arena *arena, const struct interaction *interaction, size_t chars_max)
{
    const str *from[] = {&interaction->question, &interaction->summary, &interaction->display_text,
                         &interaction->tool};
    for (size_t i = 0; i < COUNT(from); i++) {
        str line = text_short(arena, *from[i], chars_max);
        if (line.len) return line;
    }
    return interaction->id;
}

str which_text(struct arena *arena, enum ui_locale locale, const struct interaction *const *open,
               size_t count)
{
    struct out out;
    out_init(&out, arena, 0, SIZE_MAX / 4);
    out_raw(&out, says[SAY_WHICH][locale]);
    out_char(&out, '\n');
    for (size_t i = 0; i < count; i++) {
        out_char(&out, '\n');
        out_u64(&out, i + 1);
        out_raw(&out, STR(". "));
        out_raw(&out, subject(arena, open[i], 60));
    }
    return out_str(&out);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The cards of interactions (question, approval, plan, unknown outcome, lost connection), written
 * node by node. ui_compile does not fit here: it trims texts, leaves out what is empty and cuts
 * what is long, and somebody who approves must see all of it.
 *
 *     stack card
 *       stack horizontal                header: icon, title, badge of the risk
 *       text                            the question, or what has happened
 *       kv                              tool, requester, who may approve
 *       stack section                   choices, steps: a row each, its number a badge
 *       stack section                   arguments: kv, and folded texts between
 *       text caption                    what is not shown
 *
 * Invariants:
 * 1. Texts of others stand alone in their node or value, made visible, as plain text. Words of ours
 *    beside them are nodes of their own or stand in the brackets of ui/visible.h, so no text can
 *    pass for a part of the card.
 * 2. A row is there as a whole or not at all. From the first that does not fit on none is added; all
 *    of them are counted, and the last caption says the figures, in words and as `cut`: the
 *    characters that are missing, for whoever must not let a card approve that does not show all.
 * 3. CARD_TAIL_BYTES_MAX are kept for that caption and the brackets, so the end always fits. What
 *    stands before the first row is bounded: a question by ASK_TEXT_BYTES_MAX, the rest is shorter.
 *
 * To add a card: a put_ function, a row in interaction_card's switch, its texts in `texts`.
 */
#include "agent/core/cards.h"

#include "agent/core/arguments.h"
#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "base/limits.h"
#include "tool/tools.h"
#include "tool/value.h"
#include "ui/text.h"
#include "ui/visible.h"

/* name, English, Chinese */
#define CARD_TEXTS(X)                                                                         \
    X(SAY_ASK_TITLE, "The agent needs your decision", "AI 需要你的决策")                      \
    X(SAY_CHOICES, "Choices", "选项")                                                         \
    X(SAY_FIELDS, "To be filled in", "需要填写")                                              \
    X(SAY_SEVERAL, "More than one may be chosen.", "可以多选。")                              \
    X(SAY_OWN_WORDS, "You may also answer in your own words.", "也可以直接输入你的回答。")    \
    X(SAY_REQUIRED, "required", "必填")                                                       \
    X(SAY_CONFIRM_TITLE, "Your approval is needed", "需要你的批准")                           \
    X(SAY_ROLE_TITLE, "An approval is needed", "需要批准")                                    \
    X(SAY_EDITED_TITLE, "Changed before approval", "修改后批准")                              \
    X(SAY_PLAN_TITLE, "A plan for your approval", "计划需要你的批准")                         \
    X(SAY_PLAN_EDITED_TITLE, "The plan was changed", "计划已修改")                            \
    X(SAY_STEPS, "Steps", "步骤")                                                             \
    X(SAY_DONE_WHEN, "Done when: ", "完成标准：")                                             \
    X(SAY_UNCERTAIN_TITLE, "Outcome unknown", "结果未知")                                     \
    X(SAY_UNCERTAIN_BODY,                                                                     \
      "This call was sent, but how it ended was not recorded: it may have happened, or not. " \
      "It is not repeated by itself.",                                                        \
      "这个调用已经发出，但没有记录到结果：可能已经执行，也可能没有。系统不会自动重试。")     \
    X(SAY_LOST_TITLE, "Connection lost", "连接已断开")                                        \
    X(SAY_LOST_BODY, "The run stopped at this step and waits. Nothing is lost.",              \
      "运行停在这一步等待，内容没有丢失。")                                                   \
    X(SAY_TOOL, "Tool", "工具")                                                               \
    X(SAY_REQUESTER, "Requested by", "请求者")                                                \
    X(SAY_APPROVER, "Approved by the role", "批准角色")                                       \
    X(SAY_EDITOR, "Changed by", "修改者")                                                     \
    X(SAY_ARGUMENTS, "Arguments", "参数")                                                     \
    X(SAY_NO_ARGUMENTS, "This call has no arguments.", "这个调用没有参数。")                  \
    X(SAY_WORDS, "In the model's own words, not checked", "模型自己的说法（未经核实）")       \
    X(SAY_CHANGED, "Changed", "已修改")                                                       \
    X(SAY_UNCHANGED, "Unchanged", "未修改")                                                   \
    X(SAY_NO_CHANGE, "Nothing was changed.", "没有修改。")

#define TEXT_VALUE(name, en, zh) name,
#define TEXT_ROW(name, en, zh)   [name] = {STR(en), STR(zh)},
enum card_text { CARD_TEXTS(TEXT_VALUE) };
static const str texts[][UI_LOCALES] = {CARD_TEXTS(TEXT_ROW)};

static const struct {
    str words[UI_LOCALES];
    str status;
} risks[] = {
    [RISK_WRITE] = {{STR("Changes data"), STR("会修改数据")}, STR("warning")},
    [RISK_EXTERNAL] = {{STR("Reaches outside"), STR("会影响外部")}, STR("warning")},
    [RISK_DESTRUCTIVE] = {{STR("Cannot be undone"), STR("不可撤销")}, STR("error")},
};

/* What did not fit, and where all of it can be read. */
enum missing { MISSING_ARGUMENTS, MISSING_CHANGES, MISSING_ENTRIES };
static const struct {
    const char *what, *where;
} missing_words[][UI_LOCALES] = {
    [MISSING_ARGUMENTS] = {{"arguments",
                            "Read all of them in pendingTool.argsJson before you decide."},
                           {"参数", "请先在 pendingTool.argsJson 中查看全部参数再决定。"}},
    [MISSING_CHANGES] =
        {{"arguments",
          "pendingTool.argsJson has all of them before the change, answer.args after it."},
         {"参数", "修改前的全部参数见 pendingTool.argsJson，修改后的见 answer.args。"}},
    [MISSING_ENTRIES] = {{"entries", "Read all of them in the interaction's choices and fields."},
                         {"条目", "全部内容见该交互的 choices 和 fields。"}},
};

enum { ROWS_BYTES_MAX = CARD_BYTES_MAX - CARD_TAIL_BYTES_MAX };

struct made_card {
    struct arena *arena;
    const struct interaction *interaction;
    struct out out;
    enum ui_locale locale;
    unsigned nodes;
    bool rows;           /* a kv is open */
    bool full;           /* nothing more is added */
    size_t missing, all; /* arguments or entries */
    size_t missing_bytes;
    unsigned long long missing_chars;
};

static str say(const struct made_card *c, enum card_text text)
{
    return texts[text][c->locale];
}

static str shown(const struct made_card *c, str text, bool lines)
{
    return ui_visible(c->arena, text, lines);
}

/* ---- nodes ---- */

static void begin(struct made_card *c)
{
    c->nodes++;
    if (out_last(&c->out) == '}') out_char(&c->out, ',');
}

#define STACK(direction, more)                                                     \
    STR("{\"type\":\"stack\",\"direction\":\"" direction "\",\"appearance\":" more \
        ",\"children\":[")
static const str card_stack = STACK("vertical", "\"card\"");
static const str section_stack = STACK("vertical", "\"section\"");
static const str header_stack = STACK("horizontal", "\"plain\",\"align\":\"center\"");
static const str entry_stack = STACK("horizontal", "\"plain\",\"align\":\"start\",\"wrap\":true");

static void open_stack(struct made_card *c, str head)
{
    begin(c);
    out_raw(&c->out, head);
}

/* What ends a node may use the room that is kept for it; the next row may not. */
static void close_stack(struct made_card *c)
{
    c->out.limit = CARD_BYTES_MAX;
    out_raw(&c->out, STR("]}"));
    c->out.limit = ROWS_BYTES_MAX;
}

#define TEXT(role) STR(",\"format\":\"plain\",\"role\":\"" role "\"")
static void put_text(struct made_card *c, str text, str role)
{
    if (!text.len) return;
    begin(c);
    out_raw(&c->out, STR("{\"type\":\"text\",\"content\":"));
    out_string(&c->out, text);
    out_raw(&c->out, role);
    out_char(&c->out, '}');
}

/* Words of ours below the rows, where room is kept for them. */
static void put_note(struct made_card *c, str text, str role)
{
    c->out.limit = CARD_BYTES_MAX;
    put_text(c, text, role);
    c->out.limit = ROWS_BYTES_MAX;
}

static void put_badge(struct made_card *c, str label, str status)
{
    begin(c);
    out_raw(&c->out, STR("{\"type\":\"badge\",\"label\":"));
    out_string(&c->out, label);
    if (status.len) out_member(&c->out, STR("status"), status);
    out_char(&c->out, '}');
}

static void put_header(struct made_card *c, const char *icon, enum card_text title, str badge,
                       str status)
{
    open_stack(c, header_stack);
    begin(c);
    out_raw(&c->out, STR("{\"type\":\"icon\",\"name\":"));
    out_string(&c->out, str_c(icon));
    if (status.len) out_member(&c->out, STR("status"), status);
    out_char(&c->out, '}');
    put_text(c, say(c, title), TEXT("title"));
    if (badge.len) put_badge(c, badge, status);
    close_stack(c);
}

/* ---- key and value ---- */

static void close_rows(struct made_card *c)
{
    if (c->rows) close_stack(c); /* a kv ends in the same way */
    c->rows = false;
}

static void open_rows(struct made_card *c)
{
    if (c->rows) return;
    begin(c);
    out_raw(&c->out, STR("{\"type\":\"kv\",\"items\":["));
    c->rows = true;
}

static void put_item(struct made_card *c, str key, str label, str value, bool native)
{
    open_rows(c);
    out_raw(&c->out, out_last(&c->out) == '}' ? STR(",{\"key\":") : STR("{\"key\":"));
    out_string(&c->out, key);
    if (label.len) out_member(&c->out, STR("label"), label);
    out_raw(&c->out, STR(",\"value\":"));
    if (native)
        out_raw(&c->out, value);
    else
        out_string(&c->out, value);
    out_char(&c->out, '}');
}

static void put_fact(struct made_card *c, str key, enum card_text label, str value)
{
    if (value.len) put_item(c, key, say(c, label), shown(c, value, false), false);
}

/* ---- what may be too much ---- */

/* Everything that is written between these two is there as a whole or not at all. */
struct cards_place {
    size_t len;
    unsigned nodes;
    bool rows;
};

static struct cards_place here(const struct made_card *c)
{
    return (struct cards_place){c->out.len, c->nodes, c->rows};
}

static bool fits(struct made_card *c, const struct cards_place *at)
{
    if (!c->out.over) return true;
    out_back(&c->out, at->len);
    c->nodes = at->nodes;
    c->rows = at->rows;
    c->full = true;
    return false;
}

/* False: it does not fit, and neither does anything behind it. */
static bool open_section(struct made_card *c, enum card_text title)
{
    struct cards_place at = here(c);
    if (c->full) return false;
    open_stack(c, section_stack);
    put_text(c, say(c, title), TEXT("subtitle"));
    return fits(c, &at);
}

static void close_section(struct made_card *c)
{
    close_rows(c);
    close_stack(c);
}

static void put_missing(struct made_card *c, enum missing missing)
{
    const char *what = missing_words[missing][c->locale].what;
    const char *where = missing_words[missing][c->locale].where;
    if (!c->missing) return;
    if (c->missing > c->all) c->missing = c->all; /* the steps of a plan, changed and unchanged */
    str text =
        c->locale == UI_ZH
            ? arena_printf(c->arena, "卡片已满，未显示 %zu 个%s（共 %zu 个），计 %zu 字节。%s",
                           c->missing, what, c->all, c->missing_bytes, where)
            : arena_printf(c->arena,
                           "Not shown, because this card is full: %zu of %zu %s, %zu bytes. %s",
                           c->missing, c->all, what, c->missing_bytes, where);
    str role = arena_printf(c->arena, "%s,\"cut\":%llu",
                            ",\"format\":\"plain\",\"role\":\"caption\",\"status\":\"error\"",
                            c->missing_chars ? c->missing_chars : 1);
    put_note(c, text, role);
}

/* ---- arguments ---- */

static bool is_long(str text)
{
    size_t lines = 1;
    if (text.len > CARD_ROW_BYTES_MAX) return true;
    for (size_t i = 0; i < text.len; i++) lines += text.p[i] == '\n';
    return lines > CARD_ROW_LINES_MAX;
}

/* Its name with its length, and all of its text, of which a renderer shows some lines at first. */
static void put_folded(struct made_card *c, const struct arg_row *row)
{
    unsigned long long chars = value_chars(row->value);
    str folded = c->locale == UI_ZH ? arena_printf(c->arena, " ⟦共 %llu 个字符，可展开⟧", chars)
                                    : arena_printf(c->arena, " ⟦%llu characters, folded⟧", chars);
    const str parts[] = {row->name, folded};
    close_rows(c);
    put_text(c, text_join(c->arena, parts, COUNT(parts)), TEXT("caption"));
    begin(c);
    out_raw(&c->out, STR("{\"type\":\"text\",\"content\":"));
    out_string(&c->out, row->value);
    out_raw(&c->out, row->kind == ARG_JSON ? TEXT("code") : TEXT("body"));
    out_raw(&c->out, STR(",\"maxLines\":"));
    out_u64(&c->out, CARD_FOLD_LINES);
    out_char(&c->out, '}');
}

/* When nodes run out, a long value stands unfolded in a kv, which is one node for all of them. */
static void put_row(struct made_card *c, const struct arg_row *row)
{
    enum { NODES_OF_FOLDED = 2, NODES_BEHIND = 8 };
    bool room = c->nodes + NODES_OF_FOLDED + NODES_BEHIND <= UI_SCHEMA_NODES_MAX;
    if (row->kind != ARG_NATIVE && room && is_long(row->value))
        put_folded(c, row);
    else
        put_item(c, row->name, STR_EMPTY, row->value, row->kind == ARG_NATIVE);
}

static void count_missing(struct made_card *c, const struct arg_rows *rows, size_t from)
{
    for (size_t i = from; i < rows->count; i++) {
        c->missing += i == from || rows->rows[i].arg != rows->rows[i - 1].arg;
        c->missing_bytes += rows->rows[i].bytes;
        c->missing_chars += value_chars(rows->rows[i].name) + value_chars(rows->rows[i].value);
    }
}

static void put_arguments(struct made_card *c, enum card_text title, const struct arg_rows *rows)
{
    if (!rows->count) return;
    size_t i = 0;
    if (open_section(c, title)) {
        for (; i < rows->count; i++) {
            struct cards_place at = here(c);
            put_row(c, &rows->rows[i]);
            if (!fits(c, &at)) break;
        }
        close_section(c);
    }
    count_missing(c, rows, i);
}

/* ---- confirm and uncertain ---- */

static enum tool_risk risk_of(const struct interaction *interaction)
{
    for (unsigned risk = 0; risk < TOOL_RISK_COUNT; risk++)
        if (str_eq(interaction->risk, str_c(tool_risk_name((enum tool_risk)risk))))
            return (enum tool_risk)risk;
    return RISK_WRITE;
}

static void put_facts(struct made_card *c, bool edited)
{
    const struct interaction *i = c->interaction;
    bool plan = str_eq(i->tool, tool_submit_plan.name);
    if (!plan) put_fact(c, STR("tool"), SAY_TOOL, i->tool);
    put_fact(c, STR("requester"), SAY_REQUESTER, i->owner);
    put_fact(c, STR("approver"), SAY_APPROVER, i->approver);
    if (edited) put_fact(c, STR("editor"), SAY_EDITOR, i->answered_by);
    close_rows(c);
}

static const struct json *cards_parsed(struct made_card *c, str list)
{
    struct json *json = NULL;
    return list.len && !json_parse(c->arena, list, &json, NULL) ? json : NULL;
}

/* What the model said beside the call, in a box of its own: why it wants it, as it claims. */
static void put_words(struct made_card *c)
{
    const struct json *text =
        json_get(cards_parsed(c, c->interaction->metadata), STR("model_text"));
    str words = ui_trim(json_text(text));
    struct cards_place at = here(c);
    if (!words.len || !open_section(c, SAY_WORDS)) return;
    put_text(c, shown(c, words, true), TEXT("body"));
    close_section(c);
    (void)fits(c, &at);
}

static void put_call_header(struct made_card *c, const char *icon, enum card_text title)
{
    enum tool_risk risk = risk_of(c->interaction);
    put_header(c, icon, title, risks[risk].words[c->locale], risks[risk].status);
}

static void put_call(struct made_card *c, bool flat)
{
    const struct interaction *i = c->interaction;
    bool uncertain = i->type == INTERACTION_UNCERTAIN;
    /* The same card is read by who asked and by who may approve. */
    put_call_header(c, uncertain ? "triangle-alert" : "shield-alert",
                    uncertain         ? SAY_UNCERTAIN_TITLE
                    : i->approver.len ? SAY_ROLE_TITLE
                                      : SAY_CONFIRM_TITLE);
    if (uncertain) put_text(c, say(c, SAY_UNCERTAIN_BODY), TEXT("body"));
    put_text(c, shown(c, i->summary, false), TEXT("subtitle"));
    put_facts(c, false);

    struct arg_reader reader;
    struct arg_rows rows = {0};
    arg_reader_init(&reader, c->arena, c->locale, flat, false);
    args_read(&reader, i->args, &rows);
    c->full = c->full || args_full(&reader);
    c->all = reader.args;
    put_arguments(c, SAY_ARGUMENTS, &rows);
    if (!rows.count) put_note(c, say(c, SAY_NO_ARGUMENTS), TEXT("caption"));
    put_missing(c, MISSING_ARGUMENTS);
    put_words(c);
}

static void put_edited(struct made_card *c, str args, bool flat)
{
    const struct interaction *i = c->interaction;
    bool plan = str_eq(i->tool, tool_submit_plan.name);
    if (plan)
        put_header(c, "list-checks", SAY_PLAN_EDITED_TITLE, STR_EMPTY, STR_EMPTY);
    else
        put_call_header(c, "pencil", SAY_EDITED_TITLE);
    put_facts(c, true);

    struct arg_reader reader;
    struct arg_rows changed = {0}, same = {0};
    arg_reader_init(&reader, c->arena, c->locale, flat, plan);
    args_compare(&reader, i->args, args, &changed, &same);
    c->full = c->full || args_full(&reader);
    c->all = reader.args;
    put_arguments(c, SAY_CHANGED, &changed);
    if (!changed.count) put_note(c, say(c, SAY_NO_CHANGE), TEXT("caption"));
    put_arguments(c, SAY_UNCHANGED, &same);
    put_missing(c, MISSING_CHANGES);
    put_words(c);
}

/* ---- numbered entries ---- */

/* One line of words and one about it, behind a number that is no part of the text. */
static bool put_entry(struct made_card *c, size_t number, str text, str about)
{
    struct cards_place at = here(c);
    if (c->full) return false;
    open_stack(c, entry_stack);
    put_badge(c, arena_printf(c->arena, "%zu", number), STR_EMPTY);
    put_text(c, shown(c, text, false), TEXT("body"));
    put_text(c, about, TEXT("caption"));
    close_stack(c);
    return fits(c, &at);
}

static void count_entry(struct made_card *c, bool there, const struct json *entry)
{
    c->all++;
    c->missing += !there;
    c->missing_bytes += there ? 0 : entry->raw.len;
    c->missing_chars += there ? 0 : value_chars(entry->raw);
}

/* The steps that the graph takes: one without words is none. */
static void put_plan(struct made_card *c)
{
    const struct json *steps = json_get(cards_parsed(c, c->interaction->args), STR("steps"));
    size_t number = 0;
    put_header(c, "list-checks", SAY_PLAN_TITLE, STR_EMPTY, STR_EMPTY);
    put_facts(c, false);
    bool open = steps && steps->count && open_section(c, SAY_STEPS);
    for (const struct json *step = steps ? steps->child : NULL; step; step = step->next) {
        str content = str_trim(json_text(json_get(step, STR("content"))));
        str done_when = str_trim(json_text(json_get(step, STR("done_when"))));
        const str parts[] = {say(c, SAY_DONE_WHEN), shown(c, done_when, false)};
        str about = done_when.len ? text_join(c->arena, parts, COUNT(parts)) : STR_EMPTY;
        if (content.len) count_entry(c, open && put_entry(c, ++number, content, about), step);
    }
    if (open) close_section(c);
    put_missing(c, MISSING_ARGUMENTS);
    put_words(c);
}

/* ---- a question ---- */

static void put_choices(struct made_card *c)
{
    const struct json *choices = cards_parsed(c, c->interaction->choices);
    size_t number = 0;
    if (!choices) return;
    bool open = open_section(c, SAY_CHOICES);
    for (const struct json *m = choices->child; m; m = m->next) {
        str about = shown(c, json_text(json_get(m, STR("description"))), false);
        str label = json_text(json_get(m, STR("label")));
        count_entry(c, open && put_entry(c, ++number, label, about), m);
    }
    if (open && c->interaction->multi) put_note(c, say(c, SAY_SEVERAL), TEXT("caption"));
    if (open) close_section(c);
}

/* "choice ["a","b"], required: what it is for" */
static str field_says(struct made_card *c, const struct json *field)
{
    static const struct {
        str type, words[UI_LOCALES];
    } types[] = {
        {STR("text"), {STR("text"), STR("文本")}},
        {STR("number"), {STR("number"), STR("数字")}},
        {STR("boolean"), {STR("yes or no"), STR("是或否")}},
        {STR("date"), {STR("date"), STR("日期")}},
        {STR("choice"), {STR("one of"), STR("选择一项：")}},
    };
    bool zh = c->locale == UI_ZH;
    str type = json_text(json_get(field, STR("type")));
    const struct json *choices = json_get(field, STR("choices"));
    const struct json *required = json_get(field, STR("required"));
    str about = json_text(json_get(field, STR("description")));
    str parts[7];
    size_t count = 0;
    parts[count++] = shown(c, type, false);
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eq(type, types[i].type)) parts[0] = types[i].words[c->locale];
    if (choices && !zh) parts[count++] = STR(" ");
    if (choices) parts[count++] = shown(c, choices->raw, false); /* written by us, on one line */
    if (required && required->type == JSON_TRUE) {
        parts[count++] = zh ? STR("，") : STR(", ");
        parts[count++] = say(c, SAY_REQUIRED);
    }
    if (about.len) parts[count++] = zh ? STR("。") : STR(". ");
    if (about.len) parts[count++] = shown(c, about, false);
    return text_join(c->arena, parts, count);
}

static void put_fields(struct made_card *c)
{
    const struct json *fields = cards_parsed(c, c->interaction->fields);
    if (!fields) return;
    bool open = open_section(c, SAY_FIELDS);
    for (const struct json *m = fields->child; m; m = m->next) {
        str name = shown(c, json_text(json_get(m, STR("name"))), false);
        str label = shown(c, json_text(json_get(m, STR("label"))), false);
        struct cards_place at = here(c);
        if (open && !c->full) put_item(c, name, label, field_says(c, m), false);
        count_entry(c, open && !c->full && fits(c, &at), m);
    }
    if (open) close_section(c);
}

static void put_question(struct made_card *c)
{
    const struct interaction *i = c->interaction;
    put_header(c, "circle-help", SAY_ASK_TITLE, STR_EMPTY, STR_EMPTY);
    put_text(c, shown(c, i->question, true), TEXT("body"));
    put_choices(c);
    put_fields(c);
    if (i->allow_freeform && (i->choices.len || i->fields.len))
        put_note(c, say(c, SAY_OWN_WORDS), TEXT("caption"));
    put_missing(c, MISSING_ENTRIES);
}

static void put_lost(struct made_card *c)
{
    put_header(c, "unplug", SAY_LOST_TITLE, STR_EMPTY, STR("warning"));
    put_text(c, shown(c, c->interaction->display_text, true), TEXT("body"));
    put_text(c, say(c, SAY_LOST_BODY), TEXT("caption"));
}

/* ---- the document ---- */

static str status_of(const struct interaction *interaction)
{
    switch (interaction->type) {
    case INTERACTION_ASK_USER:
        return STR("info");
    case INTERACTION_CONFIRM:
        if (str_eq(interaction->tool, tool_submit_plan.name)) return STR("info");
        return risks[risk_of(interaction)].status;
    default:
        return STR("warning");
    }
}

/* `args` is NULL where nothing was edited. True: all of it is there. */
static bool put_card(struct made_card *c, const str *args, bool flat)
{
    const struct interaction *i = c->interaction;
    struct out *out = &c->out;
    out_clear(out);
    out->limit = ROWS_BYTES_MAX;
    out_raw(out, STR("{\"version\":\"2.0\""));
    out_member(out, STR("locale"), ui_locale_name(c->locale));
    out_member(out, STR("status"), status_of(i));
    out_raw(out, STR(",\"theme\":\"default\",\"meta\":{\"requestId\":"));
    out_string(out, i->id);
    out_raw(out, STR("},\"root\":"));
    open_stack(c, card_stack);
    if (args)
        put_edited(c, *args, flat);
    else if (i->type == INTERACTION_ASK_USER)
        put_question(c);
    else if (i->type == INTERACTION_CONNECTION_LOST)
        put_lost(c);
    else if (i->type == INTERACTION_CONFIRM && str_eq(i->tool, tool_submit_plan.name))
        put_plan(c);
    else
        put_call(c, flat);
    close_stack(c);
    c->out.limit = CARD_BYTES_MAX;
    out_char(out, '}');
    assert(!out->over && out->len <= CARD_BYTES_MAX);
    return !c->full;
}

static str make(struct arena *arena, const struct interaction *interaction, const str *args)
{
    size_t expected = 1024 + 2 * (interaction->args.len + interaction->question.len +
                                  interaction->choices.len + interaction->fields.len);
    struct made_card card = {
        .arena = arena, .interaction = interaction, .locale = ui_locale_of(interaction->locale)};
    struct made_card first = card;
    out_init(&first.out, arena, expected, CARD_BYTES_MAX);
    if (put_card(&first, args, true)) return out_str(&first.out);
    card.out = first.out; /* once more, with less room for names */
    put_card(&card, args, false);
    return out_str(&card.out);
}

str interaction_card(struct arena *arena, const struct interaction *interaction)
{
    return make(arena, interaction, NULL);
}

str interaction_card_edited(struct arena *arena, const struct interaction *interaction, str args)
{
    return make(arena, interaction, &args);
}

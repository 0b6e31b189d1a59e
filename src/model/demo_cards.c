/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards of the demo model: a short text, and with it a call of show_card whose arguments are UiHints
 * (docs/CARDS.md). Such a turn ends the run, so there is one turn for each card.
 *
 *     list      what can be tried, each with its buttons: copy, call a tool, follow a link
 *     status    how things are, at a glance
 *     form      a question with buttons; what they send comes back as a message
 *
 * Nothing in a card is invented: what it shows the request has told.
 *
 * To add a card: a row in cards[], before the list, and its function.
 */
#include "base/limits.h"
#include "model/demo.h"

enum { WORDS_MAX = 6, WEEK_DAYS = 7 };

static const str show_card = STR("show_card");
static const str form_name = STR("demo_feedback");

/* ---- parts ---- */

static void put_head(struct json_writer *w, str intent, str status, str title, str description)
{
    json_member(w, STR("version"), STR("2.1"));
    json_member(w, STR("intent"), intent);
    json_member(w, STR("status"), status);
    json_member(w, STR("title"), title);
    json_member(w, STR("description"), description);
}

static void put_item(struct json_writer *w, str key, str label, str value)
{
    json_object(w);
    json_member(w, STR("key"), key);
    json_member(w, STR("label"), label);
    json_member(w, STR("value"), value);
    json_object_end(w);
}

/* Its fields follow, then action_end. */
static void action_begin(struct json_writer *w, str label, str icon, str type)
{
    json_object(w);
    json_member(w, STR("label"), label);
    json_member(w, STR("icon"), icon);
    json_key(w, STR("action"));
    json_object(w);
    json_member(w, STR("type"), type);
}

static void action_end(struct json_writer *w)
{
    json_object_end(w);
    json_object_end(w);
}

/* An entry of the list up to its actions. */
static void entry_begin(struct json_writer *w, str title, str subtitle, str icon)
{
    json_object(w);
    json_member(w, STR("title"), title);
    json_member(w, STR("subtitle"), subtitle);
    json_member(w, STR("icon"), icon);
    json_key(w, STR("actions"));
    json_array(w);
}

static void entry_end(struct json_writer *w)
{
    json_array_end(w);
    json_object_end(w);
}

/* ---- the list ---- */

/* Something to say, with a button that copies it. */
static void put_phrase(const struct view *v, struct json_writer *w, str phrase, str subtitle,
                       str icon)
{
    entry_begin(w, phrase, subtitle, icon);
    action_begin(w, FILL(v, "Copy", "复制"), STR("copy"), STR("copy"));
    json_member(w, STR("content"), phrase);
    json_member(w, STR("successMessage"), FILL(v, "Copied: now send it", "已复制，发送即可"));
    action_end(w);
    entry_end(w);
}

static void put_calendar(const struct view *v, struct json_writer *w)
{
    entry_begin(w, FILL(v, "My calendar", "我的日程"),
                FILL(v, "A call of a tool, and a file", "一次工具调用，一个文件"), STR("calendar"));
    if (demo_offered(v, STR("calendar_read"))) {
        action_begin(w, FILL(v, "The coming week", "接下来一周"), STR("search"), STR("tool"));
        json_member(w, STR("toolId"), STR("calendar_read"));
        json_key(w, STR("params"));
        json_object(w);
        json_member(w, STR("from"), demo_stamp(v->arena, &v->time, 0, 0));
        json_member(w, STR("to"), demo_stamp(v->arena, &v->time, WEEK_DAYS, 0));
        json_object_end(w);
        action_end(w);
    }
    action_begin(w, FILL(v, "Download (.ics)", "下载 (.ics)"), STR("download"), STR("url"));
    json_member(w, STR("url"), STR("/api/v1/agent/calendar.ics"));
    action_end(w);
    entry_end(w);
}

static str list_card(const struct view *v, struct json_writer *w)
{
    put_head(w, STR("list"), STR("info"), FILL(v, "Things to try", "可以试试"),
             FILL(v, "A list, each entry with its buttons", "一个列表，每一项都有按钮"));
    json_key(w, STR("listItems"));
    json_array(w);
    put_phrase(v, w, FILL(v, "Show me a status card", "给我看状态卡片"),
               FILL(v, "How things are, at a glance", "一眼看清现状"), STR("circle-check"));
    put_phrase(v, w, FILL(v, "Show me a form", "给我看表单"),
               FILL(v, "A question with buttons", "一个带按钮的问题"), STR("list-checks"));
    put_calendar(v, w);
    json_array_end(w);
    return FILL(v, "Here is a card with a list. (I am the demo model.)\n",
                "这是一张列表卡片。（我是演示模型。）\n");
}

/* ---- the status ---- */

static str status_card(const struct view *v, struct json_writer *w)
{
    str now = demo_stamp(v->arena, &v->time, 0, 0);
    unsigned tools = v->tools ? v->tools->count : 0;
    put_head(w, STR("status"), STR("success"), FILL(v, "The demo model is ready", "演示模型已就绪"),
             FILL(v, "What I know of this conversation", "我对这次对话的了解"));
    json_key(w, STR("items"));
    json_array(w);
    put_item(w, STR("date"), FILL(v, "Today", "今天"), (str){now.p, 10});
    put_item(w, STR("timezone"), FILL(v, "Time zone", "时区"),
             v->time.zone_known ? arena_printf(v->arena, "UTC%.*s", STR_ARG(str_drop(now, 19)))
                                : FILL(v, "not told; I take UTC", "未提供，按 UTC 处理"));
    json_object(w);
    json_member(w, STR("key"), STR("tools"));
    json_member(w, STR("label"), FILL(v, "Tools that I may call", "可以调用的工具"));
    json_key(w, STR("value"));
    json_number_u64(w, tools);
    json_object_end(w);
    json_array_end(w);
    return FILL(v, "Here is a status card. (I am the demo model.)\n",
                "这是一张状态卡片。（我是演示模型。）\n");
}

/* ---- the form ---- */

static void put_answer(struct json_writer *w, str label, str icon, str answer)
{
    action_begin(w, label, icon, STR("payload"));
    json_key(w, STR("payload"));
    json_object(w);
    json_member(w, STR("form"), form_name);
    json_member(w, STR("answer"), answer);
    json_member(w, STR("label"), label);
    json_object_end(w);
    action_end(w);
}

static str form_card(const struct view *v, struct json_writer *w)
{
    put_head(w, STR("form"), STR("info"), FILL(v, "How do you like the cards?", "这些卡片怎么样？"),
             FILL(v, "Each button sends its own answer", "每个按钮发送一个回答"));
    json_key(w, STR("items"));
    json_array(w);
    put_item(w, STR("about"), FILL(v, "About", "关于"), FILL(v, "cards of the demo", "演示卡片"));
    json_array_end(w);
    json_key(w, STR("actions"));
    json_array(w);
    put_answer(w, FILL(v, "Good", "不错"), STR("thumbs-up"), STR("good"));
    put_answer(w, FILL(v, "So-so", "一般"), STR("minus"), STR("so_so"));
    put_answer(w, FILL(v, "Not yet", "还差点"), STR("thumbs-down"), STR("not_yet"));
    json_array_end(w);
    return FILL(v, "Here is a form. (I am the demo model.)\n",
                "这是一个表单。（我是演示模型。）\n");
}

bool demo_form_sent(const struct view *v, struct reply *ret_reply)
{
    struct json *json = NULL;
    if (json_parse(v->arena, v->said, &json, NULL)) return false;
    const struct json *inner = json_get(json, STR("payload")), *form = inner ? inner : json;
    if (!str_eq(json_text(json_get(form, STR("form"))), form_name)) return false;
    enum { LABEL_CHARS_MAX = 20 };
    str label = demo_line(v->arena, json_text(json_get(form, STR("label"))), LABEL_CHARS_MAX);
    *ret_reply = (struct reply){
        .text = FILL(v,
                     "Thank you! The form sent “{1}”. (I am the demo model, and only say what I "
                     "got.)\n",
                     "谢谢！表单发来了“{1}”。（我是演示模型，只是把收到的念出来。）\n", label)};
    return true;
}

/* ---- choosing ---- */

/* The first that the message names; the last if it names none. */
static const struct {
    str (*put)(const struct view *v, struct json_writer *w); /* the text that goes with it */
    str words[LANGUAGES][WORDS_MAX];
} cards[] = {
    {form_card, {{STR("form"), STR("feedback")}, {STR("表单"), STR("填")}}},
    {status_card, {{STR("status")}, {STR("状态")}}},
    {list_card, {{STR_EMPTY}, {STR_EMPTY}}},
};

struct reply demo_cards(const struct view *v)
{
    const struct deed *shown = demo_deed(v, 0, show_card);
    if (shown) {
        str why = shown->result;
        bool refused = demo_is_error(&why);
        str line = demo_line(v->arena, why, DEMO_REASON_CHARS_MAX);
        return (struct reply){.text = refused ? FILL(v, "The card could not be shown: {1}\n",
                                                     "卡片没有显示出来：{1}\n", line)
                                              : FILL(v, "The card is above.\n", "卡片在上面。\n")};
    }
    if (!demo_offered(v, show_card)) return demo_missing(v, show_card);
    size_t i = 0;
    while (i + 1 < COUNT(cards) && !demo_has_one(v->said, cards[i].words[v->language], WORDS_MAX))
        i++;
    struct demo_args args;
    demo_args_begin(&args);
    str text = cards[i].put(v, &args.w);
    return (struct reply){.text = text, .tool = show_card, .args = demo_args_end(v, &args)};
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Our side of a conversation: our own sentences, the commands people may send us, their language, and
 * who settled what. To add a sentence: a value of enum chat_text and its row. To add a command: a
 * row in `commands`. To add a place where people answer: a row in `places`.
 */
#include <string.h>

#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "chat/chat_text.h"
#include "chat/chat_words.h"
#include "chat/draft.h"
#include "chat/pick.h"
#include "ui/out.h"
#include "ui/text.h"

/* ---- sentences ---- */

static const char *const sentences[CHAT_TEXT_COUNT][UI_LOCALES] = {
    [TEXT_HELP] =
        {"/new - start a new conversation\n/stop - stop what is running\n/link CODE - "
         "link this chat to your account\n/help - show this\nAnything else goes to the "
         "agent.",
         "/new 或 /新对话：开始新的对话\n/stop 或 /停止：停止正在进行的任务\n/link "
         "绑定码：把此聊天绑定到你的账号\n/help 或 /帮助：显示本说明\n其他内容都会发给智能体。"},
    [TEXT_NEW] = {"Your next message starts a new conversation.", "下一条消息将开始新的对话。"},
    [TEXT_STOPPED] = {"Stopping.", "正在停止。"},
    [TEXT_NOTHING] = {"Nothing is running.", "现在没有正在进行的任务。"},
    [TEXT_LINKED] = {"This chat now belongs to %s.", "此聊天已绑定到 %s。"},
    [TEXT_LINK_BAD] = {"This code is wrong or has expired.", "绑定码不对，或者已经过期。"},
    [TEXT_LINK_GROUP] = {"Link in a private chat with me, not in a group.",
                         "请在和我的私聊里绑定，不要在群里。"},
    [TEXT_WELCOME] = {"Hello! Tell me what you need. /help shows the commands.",
                      "你好！直接告诉我你需要什么。发送 /help 查看命令。"},
    [TEXT_QUEUED] = {"Got it. I will get to it after what is running now.",
                     "收到，当前任务完成后处理。"},
    [TEXT_BUSY] = {"Too much is waiting already. Please try again later.",
                   "等待处理的消息太多，请稍后再试。"},
    [TEXT_TROUBLE] = {"That could not be taken. Please try again.", "没有处理成功，请再试一次。"},
    [TEXT_TOO_LONG] = {"This message is too long.", "这条消息太长了。"},
    [TEXT_FILE_LOST] = {"This file could not be fetched: %s", "文件获取失败：%s"},
    [TEXT_FILE_LARGE] = {"This file is too large: %s", "文件太大：%s"},
    [TEXT_NOT_YOURS] = {"Somebody else decides this; it cannot be answered here.",
                        "这项由其他人决定，这里无法答复。"},
    [TEXT_AGAIN] = {"(may be a repeat) ", "（可能重复）"},
    [TEXT_RUN_FAILED] = {"Something went wrong: %s", "出错了：%s"},
    [TEXT_RUN_STOPPED] = {"Stopped.", "已停止。"},
    [TEXT_WAITING_OTHER] = {"Waiting for approval by: %s. It cannot be answered here.",
                            "等待 %s 批准，这里无法答复。"},
    [TEXT_FILE] = {"📎 %s", "📎 %s"},
    [TEXT_TOO_MUCH] = {"… The rest is too long for this chat. %s",
                       "……其余内容太长，无法在这里全部显示。%s"},
};

str chat_text(struct arena *arena, enum ui_locale locale, enum chat_text text, str arg)
{
    const char *form = sentences[text][locale];
    const char *hole = strstr(form, "%s");
    if (!hole) return str_c(form);
    const str parts[] = {{form, (size_t)(hole - form)}, arg, str_c(hole + 2)};
    return text_join(arena, parts, COUNT(parts));
}

/* ---- commands ---- */

static const struct {
    enum chat_command command;
    bool more; /* something may follow */
    str word;
} commands[] = {
    {CHAT_NEW, false, STR("new")},    {CHAT_NEW, false, STR("新对话")},
    {CHAT_STOP, false, STR("stop")},  {CHAT_STOP, false, STR("停止")},
    {CHAT_HELP, false, STR("help")},  {CHAT_HELP, false, STR("帮助")},
    {CHAT_LINK, true, STR("link")},   {CHAT_LINK, true, STR("绑定")},
    {CHAT_START, true, STR("start")},
};

enum chat_command command_read(str text, str *ret_rest)
{
    *ret_rest = STR_EMPTY;
    if (!utf8_valid(text)) return CHAT_NONE;
    text = words_trim(text);
    if (!fold_starts(&text, STR("/"))) return CHAT_NONE;
    for (size_t i = 0; i < COUNT(commands); i++) {
        str rest = text;
        if (!fold_starts(&rest, commands[i].word)) continue;
        if (rest.len && rest.p[0] == '@') /* "/new@name_of_bot", as groups have it */
            while (rest.len && rest.p[0] != ' ') rest = str_drop(rest, 1);
        str behind = skip_spaces(rest);
        if (rest.len && (behind.len == rest.len || !commands[i].more)) continue;
        *ret_rest = behind;
        return commands[i].command;
    }
    return CHAT_NONE;
}

/* ---- the language of a message ---- */

static bool is_han(uint32_t code)
{
    return (code >= 0x3400 && code <= 0x4dbf) || (code >= 0x4e00 && code <= 0x9fff) ||
           (code >= 0xf900 && code <= 0xfaff) || (code >= 0x20000 && code <= 0x3ffff);
}

static bool is_letter(uint32_t code)
{
    uint32_t small = code | 0x20;
    return (small >= 'a' && small <= 'z' && code < 0x80) ||
           (code >= 0xc0 && code <= 0x24f && code != 0xd7 && code != 0xf7) ||
           (code >= 0x370 && code <= 0x52f);
}

enum ui_locale text_locale(str text, enum ui_locale before)
{
    size_t words = 0;     /* that have letters; "PDF" and "ok" are said in every language */
    bool counted = false; /* the word we are in */
    if (!utf8_valid(text)) return before;
    while (text.len) {
        uint32_t code = ui_next_char(&text);
        if (is_han(code)) return UI_ZH;
        if (ui_is_space(code)) counted = false;
        if (!is_letter(code) || counted) continue;
        counted = true;
        words++;
    }
    return words > 1 ? UI_EN : before;
}

/* ---- what others settled ---- */

/* Where it was settled: how the row says it, in words. */
static const struct {
    str via, words[UI_LOCALES];
} places[] = {
    {STR("page"), {STR(" on the page"), STR("在网页上")}},
    {STR("api"), {STR(" through the API"), STR("通过接口")}},
    {STR("websocket"), {STR(" in an app"), STR("在应用中")}},
    {STR("ag-ui"), {STR(" in an app"), STR("在应用中")}},
    {STR("card"), {STR(" on a card"), STR("在卡片上")}},
    {STR("message"), {STR(" in the conversation"), STR("在对话中")}},
    {STR("timer"), {STR(""), STR("")}},
    {STR("cancel"), {STR(""), STR("")}},
    {STR("run"), {STR(""), STR("")}},
};

/* What was decided: how an answer says it, in words that follow the person and the place. */
static const struct {
    str decision, words[UI_LOCALES];
} decisions[] = {
    {STR("approve"), {STR("approved"), STR("批准")}},
    {STR("edit"), {STR("changed and approved"), STR("修改后批准")}},
    {STR("reject"), {STR("rejected"), STR("拒绝")}},
    {STR("respond"), {STR("replied"), STR("回复")}},
    {STR("continue"), {STR("chose to continue"), STR("选择继续")}},
    {STR("retry"), {STR("chose to retry"), STR("选择重试")}},
    {STR("happened"), {STR("confirmed that it happened"), STR("确认已经执行")}},
    {STR("give_up"), {STR("gave up"), STR("选择放弃")}},
};

/* Where nobody answered. */
static const str endings[INTERACTION_STATUS_COUNT][UI_LOCALES] = {
    [INTERACTION_OPEN] = {STR("Still open"), STR("仍在等待")},
    [INTERACTION_RESOLVED] = {STR("Settled"), STR("已处理")},
    [INTERACTION_CANCELED] = {STR("Cancelled"), STR("已取消")},
    [INTERACTION_EXPIRED] = {STR("Expired without an answer"), STR("等待超时，已过期")},
    [INTERACTION_SUPERSEDED] = {STR("Replaced by a newer request"), STR("已被新的请求取代")},
};

enum { ANSWER_CHARS_MAX = 200, SUBJECT_CHARS_MAX = 60, NAME_CHARS_MAX = 60 };

struct settling {
    struct arena *arena;
    enum ui_locale locale;
    const struct interaction *interaction;
    const struct json *answer;
    struct out out;
};

static void put_place(struct settling *s)
{
    str via = s->interaction->via;
    for (size_t i = 0; i < COUNT(places); i++) {
        if (!str_eq(via, places[i].via)) continue;
        out_raw(&s->out, places[i].words[s->locale]);
        return;
    }
    if (!via.len) return;
    out_raw(&s->out, s->locale == UI_ZH ? STR("在 ") : STR(" in "));
    out_raw(&s->out, text_short(s->arena, via, NAME_CHARS_MAX));
    if (s->locale == UI_ZH) out_raw(&s->out, STR(" 中"));
}

/* "已由 alice 在网页上", "你已在网页上", "alice", "You" */
static void put_person(struct settling *s, str you)
{
    bool zh = s->locale == UI_ZH, self = you.len && str_eq(s->interaction->answered_by, you);
    str name = text_short(s->arena, s->interaction->answered_by, NAME_CHARS_MAX);
    if (!zh) {
        out_raw(&s->out, self ? STR("You") : name.len ? name : STR("Somebody"));
        return;
    }
    if (self) out_raw(&s->out, STR("你已"));
    if (!self && name.len) {
        out_raw(&s->out, STR("已由 "));
        out_raw(&s->out, name);
        out_char(&s->out, ' ');
    }
    if (!self && !name.len) out_raw(&s->out, STR("已"));
}

static void put_labels(struct settling *s, struct out *out, const struct json *ids)
{
    struct choices choices;
    struct json *list = NULL;
    if (json_parse(s->arena, s->interaction->choices, &list, NULL)) list = NULL;
    choices_of(&choices, list);
    for (const struct json *id = ids->child; id; id = id->next) {
        if (id != ids->child) out_raw(out, s->locale == UI_ZH ? STR("、") : STR(", "));
        str label = json_text(id);
        for (size_t i = 0; i < choices.count; i++)
            if (str_eq(choices.ids[i], json_text(id))) label = choices.labels[i];
        out_raw(out, label);
    }
}

static void put_values(struct settling *s, struct out *out, const struct json *fields)
{
    for (const struct json *m = fields->child; m; m = m->next) {
        if (m != fields->child) out_raw(out, s->locale == UI_ZH ? STR("；") : STR("; "));
        out_raw(out, m->key);
        out_raw(out, s->locale == UI_ZH ? STR("：") : STR(": "));
        out_raw(out, m->type == JSON_STRING ? m->text : m->raw);
    }
}

/* What was said, on one line; empty: nothing. */
static str answer_words(struct settling *s)
{
    struct out out;
    const struct json *choices = json_get(s->answer, STR("choices"));
    const struct json *fields = json_get(s->answer, STR("fields"));
    const struct json *note = json_get(s->answer, STR("text"));
    out_init(&out, s->arena, 0, SIZE_MAX / 4);
    if (choices) put_labels(s, &out, choices);
    if (choices && json_text(note).len) {
        out_raw(&out, STR(": "));
        out_raw(&out, json_text(note));
    }
    if (fields) put_values(s, &out, fields);
    out_raw(&out, json_text(json_get(s->answer, STR("answer"))));
    out_raw(&out, json_text(json_get(s->answer, STR("comment"))));
    return text_short(s->arena, out_str(&out), ANSWER_CHARS_MAX);
}

static str what_was_done(const struct settling *s)
{
    bool zh = s->locale == UI_ZH;
    str decision = json_text(json_get(s->answer, STR("decision")));
    for (size_t i = 0; i < COUNT(decisions); i++)
        if (str_eq(decision, decisions[i].decision)) return decisions[i].words[s->locale];
    if (json_get(s->answer, STR("skip"))) return zh ? STR("跳过") : STR("skipped it");
    return zh ? STR("回答") : STR("answered");
}

static void put_subject(struct settling *s)
{
    const struct interaction *i = s->interaction;
    const str *from[] = {&i->question, &i->summary, &i->display_text};
    for (size_t n = 0; n < COUNT(from); n++) {
        str line = text_short(s->arena, *from[n], SUBJECT_CHARS_MAX);
        if (!line.len) continue;
        out_raw(&s->out, s->locale == UI_ZH ? STR("\n「") : STR("\n\""));
        out_raw(&s->out, line);
        out_raw(&s->out, s->locale == UI_ZH ? STR("」") : STR("\""));
        return;
    }
}

str settled_text(struct arena *arena, enum ui_locale locale, const struct interaction *settled,
                 str you)
{
    struct settling s = {.arena = arena, .locale = locale, .interaction = settled};
    struct json *answer = NULL;
    out_init(&s.out, arena, 0, SIZE_MAX / 4);
    if (settled->answer.len && !json_parse(arena, settled->answer, &answer, NULL))
        s.answer = answer;
    if (settled->status == INTERACTION_RESOLVED && s.answer) {
        bool zh = locale == UI_ZH;
        str words = answer_words(&s);
        put_person(&s, you);
        if (zh) put_place(&s);
        if (!zh) out_char(&s.out, ' ');
        out_raw(&s.out, what_was_done(&s));
        if (!zh) put_place(&s);
        if (words.len) out_raw(&s.out, zh ? STR("：") : STR(": "));
        out_raw(&s.out, words);
    } else {
        out_raw(&s.out, endings[settled->status][locale]);
    }
    put_subject(&s);
    return out_str(&s.out);
}

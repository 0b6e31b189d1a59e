/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo model: what a newcomer talks to before a real model is set. Rules pick an answer by
 * words in the last user message, Chinese if it holds a Chinese character and English otherwise;
 * the player streams it at the pace of a quick typist. Every answer says that it is a demo.
 *
 * To add an answer: a row in rules[], before the more general ones.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "model/model.h"
#include "model/player.h"

enum language { ENGLISH, CHINESE, LANGUAGES };
enum { WORDS_MAX = 10 };

#define SWITCH_LINES                    \
    "```sh\n"                           \
    "FERMATA_MODEL_PROVIDER=scripted\n" \
    "FERMATA_SCRIPT=script.jsonl\n"     \
    "```\n"

struct rule {
    size_t chars_max; /* of the message; 0 = any. "Hi" greets, "write hi in French" does not */
    str words[LANGUAGES][WORDS_MAX];
    str answer[LANGUAGES];
};

/* clang-format off */
static const struct rule rules[] = {
    {0,
     {{STR("what can you do"), STR("who are you"), STR("what are you"), STR("your abilities")},
      {STR("你会什么"), STR("你能做什么"), STR("能做什么"), STR("你是谁"), STR("会做什么")}},
     {STR("I am Fermata's **demo model**: a few rules, no intelligence. I can\n\n"
          "- greet you, in English and in Chinese;\n"
          "- stream an answer, so that you see how that looks;\n"
          "- tell you how to let a script speak in my place.\n\n"
          "Everything around me is real: the conversation is stored before you see it and "
          "survives a restart.\n"),
      STR("我是 Fermata 的**演示模型**：只有几条规则，没有智能。我可以：\n\n"
          "- 用中文或英文打招呼；\n"
          "- 流式输出回答，让您看到效果；\n"
          "- 告诉您怎样用脚本代替我。\n\n"
          "除我之外一切都是真的：对话先落盘再展示，重启后依然存在。\n")}},
    {0,
     {{STR("help"), STR("how do i"), STR("real model")},
      {STR("帮助"), STR("帮我"), STR("怎么用"), STR("如何使用"), STR("真正的模型")}},
     {STR("This is the demo model; real ones are not in this version yet. A script can speak in my "
          "place: stop the server, set these two, and start it again.\n\n" SWITCH_LINES "\n"
          "docs/SCRIPT.md has the format.\n"),
      STR("这里是演示模型；这个版本还不能接入真正的模型。可以用脚本代替我：停止服务，设置下面两项，再重新启动。\n\n" SWITCH_LINES "\n"
          "格式见 docs/SCRIPT.md。\n")}},
    {40,
     {{STR("thanks"), STR("thank you"), STR("thx"), STR("cheers")},
      {STR("谢谢"), STR("多谢"), STR("感谢"), STR("谢了")}},
     {STR("You are welcome! (Said by the demo model, and meant as well as rules can mean it.)\n"),
      STR("不客气！（我是演示模型，这是规则里的一句心意。）\n")}},
    {40,
     {{STR("hello"), STR("hi"), STR("hey"), STR("good morning"), STR("good evening")},
      {STR("你好"), STR("您好"), STR("嗨"), STR("早上好"), STR("晚上好"), STR("哈喽")}},
     {STR("Hello! I am Fermata's demo model. Ask me **what can you do**, or say **help**.\n"),
      STR("你好！我是 Fermata 的演示模型。可以问我**你会什么**，或者说**帮助**。\n")}},
};

/* Around the first line of a message that no rule knows. */
static const struct {
    str before, after;
} otherwise[LANGUAGES] = {
    [ENGLISH] = {STR("You wrote:\n\n> "),
                 STR("\n\nI am only the demo model and cannot say more about it. Say **help** to "
                     "learn what can speak in my place.\n")},
    [CHINESE] = {STR("您写道：\n\n> "),
                 STR("\n\n我只是演示模型，对此说不出更多。说**帮助**可以了解用什么来代替我。\n")},
};
/* clang-format on */

/* ---- choosing ---- */

/* The first character of text that is not empty, and its bytes. Bytes that are no UTF-8 count as
 * characters of their own. */
static uint32_t first_char(str text, size_t *ret_len)
{
    unsigned char lead = (unsigned char)text.p[0];
    size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (len > text.len) len = 1;
    uint32_t code = len == 1 ? lead : lead & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) code = code << 6 | ((unsigned char)text.p[i] & 0x3f);
    *ret_len = len;
    return code;
}

static bool is_chinese(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x3400, 0x4dbf},
        {0x4e00, 0x9fff},
        {0xf900, 0xfaff},
        {0x20000, 0x3ffff},
    };
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

static enum language language_of(str text)
{
    for (size_t len; text.len; text = str_drop(text, len))
        if (is_chinese(first_char(text, &len))) return CHINESE;
    return ENGLISH;
}

static bool is_letter(char c)
{
    c = char_lower(c);
    return c >= 'a' && c <= 'z';
}

/* The word stands in the text, in any case and not inside a longer word. */
static bool has_word(str text, str word)
{
    for (size_t at = 0; at + word.len <= text.len; at++) {
        if (!str_eq_nocase((str){text.p + at, word.len}, word)) continue;
        size_t end = at + word.len;
        bool inside = (at && is_letter(word.p[0]) && is_letter(text.p[at - 1])) ||
                      (end < text.len && is_letter(word.p[word.len - 1]) && is_letter(text.p[end]));
        if (!inside) return true;
    }
    return false;
}

static bool applies(const struct rule *rule, str text, enum language language)
{
    if (rule->chars_max && player_chars(text, rule->chars_max).len < text.len) return false;
    const str *words = rule->words[language];
    for (size_t i = 0; i < WORDS_MAX && words[i].len; i++)
        if (has_word(text, words[i])) return true;
    return false;
}

/* Without blanks and ends of lines around it. */
static str trimmed(str text)
{
    while (text.len && (unsigned char)text.p[0] <= ' ') text = str_drop(text, 1);
    while (text.len && (unsigned char)text.p[text.len - 1] <= ' ') text.len--;
    return text;
}

static str answer(struct arena *arena, str text, enum language language)
{
    for (size_t i = 0; i < COUNT(rules); i++)
        if (applies(&rules[i], text, language)) return rules[i].answer[language];

    text = trimmed(text);
    str rest = text;
    str quote = player_chars(trimmed(str_split(&rest, '\n')), DEMO_QUOTE_CHARS_MAX);
    return arena_printf(arena, "%.*s%.*s%s%.*s", STR_ARG(otherwise[language].before),
                        STR_ARG(quote), quote.len < text.len ? " ..." : "",
                        STR_ARG(otherwise[language].after));
}

/* ---- the model ---- */

static struct model_call *demo_start(void *self, const struct model_request *request,
                                     const struct model_sink *sink, void *arg)
{
    static const uint32_t chunk[LANGUAGES] = {[ENGLISH] = 6, [CHINESE] = 3};
    enum { GAP_MS = 20 };
    str text = player_last_user(request);
    enum language language = language_of(text);

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct piece *piece = ARENA_NEW(&arena, struct piece);
    *piece = (struct piece){.kind = PIECE_TEXT, .bytes = answer(&arena, text, language)};
    struct play play = {.pieces = piece,
                        .count = 1,
                        .chunk = chunk[language],
                        .delay_ms = GAP_MS,
                        .gap_ms = GAP_MS,
                        .end = MODEL_DONE,
                        .usage = player_usage(request, piece, 1),
                        .round = request->round};
    return player_start(self, &play, &arena, sink, arg);
}

static void demo_free(void *self)
{
    (void)self; /* the loop is not ours */
}

static const struct model_ops demo_ops = {
    .start = demo_start,
    .cancel = player_cancel,
    .free = demo_free,
};

void model_demo(struct loop *loop, struct model *ret_model)
{
    *ret_model = (struct model){&demo_ops, loop, "demo"};
}

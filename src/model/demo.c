/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo model: what a newcomer talks to before a real model is set. A message either begins a
 * scene (demo_scenes.c), in which tools are called, or gets a plain answer by the rules below,
 * Chinese if it holds a Chinese character and English otherwise; the player streams it at the pace
 * of a quick typist. Every plain answer says that it is a demo.
 *
 * To add an answer: a row in rules[], before the more general ones.
 */
#include "model/demo.h"

#include "base/limits.h"
#include "model/player.h"

enum { WORDS_MAX = 10 };

#define SWITCH_LINES                                            \
    "```sh\n"                                                   \
    "export FERMATA_MODEL_PROVIDER=openai\n"                    \
    "export FERMATA_MODEL_BASE_URL=http://127.0.0.1:11434/v1\n" \
    "export FERMATA_MODEL_NAME=qwen3\n"                         \
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
     {STR("I am Fermata's **demo model**: a few rules, no intelligence. Say one of these, and see how "
          "an agent works:\n\n"
          "- **Book a review meeting**: I ask how long, then you approve the calendar entry;\n"
          "- **Plan a trip**: I submit a plan, and go through it once you accept it;\n"
          "- **Delete my meeting**: a command that fails, and a question what to do;\n"
          "- **What's on my calendar**: I look, and show a table;\n"
          "- **Show me a card**: a list with buttons; a **status card** and a **form** work, too;\n"
          "- **Tell me a story**: a long answer, so that you see it stream.\n\n"
          "Chinese works as well. Everything around me is real: the calendar keeps what you approve, "
          "the conversation is stored before you see it, and a question waits through a restart.\n"),
      STR("我是 Fermata 的**演示模型**：只有几条规则，没有智能。说下面的话，可以看到智能体怎样工作：\n\n"
          "- **帮我约个评审会**：我会问时长，再由你批准日程；\n"
          "- **帮我做个旅行计划**：我提交计划，你接受后逐步执行；\n"
          "- **删除日程**：一个会失败的命令，然后问你怎么办；\n"
          "- **我的日程**：我去查看，列成表格；\n"
          "- **给我看卡片**：带按钮的列表；也可以要**状态卡片**和**表单**；\n"
          "- **讲个故事**：一段长回答，看看流式输出。\n\n"
          "英文也可以。除我之外一切都是真的：你批准的日程会保存下来，对话先落盘再展示，问题在重启之后依然等着你。\n")}},
    {0,
     {{STR("story"), STR("long answer")},
      {STR("故事"), STR("长回答"), STR("长文")}},
     {STR("A story from the demo model, of the sign that this server is named after.\n\n"
          "A composer once wrote a bar in which nothing was to happen. The players did not like it: a "
          "pause costs an orchestra as much as music does, they said, for everybody has to sit still "
          "and hold the bow in the air. So the composer drew a small arc with a dot under it over the "
          "note before, and wrote: *wait here, as long as it takes*.\n\n"
          "At the first concert the conductor raised a hand and the hall was silent. Somebody in the "
          "third row thought of a question, and found the answer. Somebody at the back decided to say "
          "yes. Nobody knows how long it was. When the hand came down, every player knew the next "
          "note, for it stood on the page, and the page had not gone anywhere.\n\n"
          "Since then the sign means that whoever waits loses nothing: the tempo, the place and what "
          "comes next are written down. One may even go home in between, and play on the next "
          "morning.\n"),
      STR("演示模型来讲一个故事，说的是这个服务名字的由来。\n\n"
          "从前有位作曲家，写了一个什么也不发生的小节。乐手们不喜欢它：他们说，停顿和演奏一样费力，人人都得坐着不动，把弓举在半空。"
          "于是作曲家在前一个音符上方画了一道小小的弧线，下面点了一个点，旁边写道：*在这里等，要多久就等多久*。\n\n"
          "首演那天，指挥举起手，全场寂静。第三排有人想起一个问题，又自己找到了答案。后排有人下决心说“好”。"
          "没有人知道过了多久。手落下时，每位乐手都知道下一个音是什么，因为它写在谱上，而乐谱哪儿也没有去。\n\n"
          "从那以后，这个记号的意思就是：等待的人什么也不会失去。速度、位置和接下来的一切都写好了。"
          "中间甚至可以回家睡一觉，第二天早上接着演奏。\n")}},
    {0,
     {{STR("help"), STR("how do i"), STR("real model")},
      {STR("帮助"), STR("帮我"), STR("怎么用"), STR("如何使用"), STR("真正的模型")}},
     {STR("This is the demo model, which follows rules. A real one takes three lines: stop the "
          "server, set these, with the address and the name of yours, and start it again.\n\n"
          SWITCH_LINES "\n"
          "A service that wants a key gets it from `FERMATA_MODEL_API_KEY_FILE`. docs/MODELS.md has "
          "the rest; docs/SCRIPT.md, how a script speaks in my place.\n"),
      STR("这里是照规则说话的演示模型。换成真正的模型只需三行：停止服务，按你的地址和名称设置下面三项，再重新启动。\n\n"
          SWITCH_LINES "\n"
          "需要密钥的服务从 `FERMATA_MODEL_API_KEY_FILE` 读取密钥。其余见 docs/MODELS.md；用脚本代替我见 docs/SCRIPT.md。\n")}},
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
    [CHINESE] = {STR("你写道：\n\n> "),
                 STR("\n\n我只是演示模型，对此说不出更多。说**帮助**可以了解用什么来代替我。\n")},
};
/* clang-format on */

/* ---- choosing ---- */

static bool applies(const struct rule *rule, str text, enum language language)
{
    if (rule->chars_max && player_chars(text, rule->chars_max).len < text.len) return false;
    return demo_has_one(text, rule->words[language], WORDS_MAX);
}

static str plain_answer(const struct view *view)
{
    enum language language = view->language;
    str text = view->said;
    for (size_t i = 0; i < COUNT(rules); i++)
        if (applies(&rules[i], text, language)) return rules[i].answer[language];

    str rest = text;
    str quote = player_chars(demo_trim(str_split(&rest, '\n')), DEMO_QUOTE_CHARS_MAX);
    return arena_printf(view->arena, "%.*s%.*s%s%.*s", STR_ARG(otherwise[language].before),
                        STR_ARG(quote), quote.len < text.len ? " ..." : "",
                        STR_ARG(otherwise[language].after));
}

/* ---- the model ---- */

/* The turn as pieces in the arena. */
static struct play make_play(const struct view *view, const struct reply *reply)
{
    static const uint32_t chunk[LANGUAGES] = {[ENGLISH] = 6, [CHINESE] = 3};
    enum { GAP_MS = 20, CARD_PACE = 10 };
    /* Nobody sees the arguments of a card grow: they only have to be there. */
    uint32_t pace = str_eq(reply->tool, STR("show_card")) ? CARD_PACE : 1;
    struct piece *pieces = arena_array(view->arena, 2, sizeof *pieces);
    size_t count = 0;
    if (reply->text.len) pieces[count++] = (struct piece){.kind = PIECE_TEXT, .bytes = reply->text};
    if (reply->tool.len)
        pieces[count++] =
            (struct piece){.kind = PIECE_CALL, .name = reply->tool, .bytes = reply->args};
    return (struct play){.pieces = pieces,
                         .count = count,
                         .chunk = chunk[view->language] * pace,
                         .delay_ms = GAP_MS,
                         .gap_ms = GAP_MS,
                         .end = MODEL_DONE,
                         .usage = player_usage(view->request, pieces, count),
                         .round = view->request->round};
}

static struct model_call *demo_start(void *self, const struct model_request *request,
                                     const struct model_sink *sink, void *arg)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct view view;
    demo_look(&arena, request, &view);
    struct reply reply;
    if (!demo_scene(&view, &reply) && !demo_files(&view, &reply))
        reply = (struct reply){.text = plain_answer(&view)};
    struct play play = make_play(&view, &reply);
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
    *ret_model = (struct model){.ops = &demo_ops,
                                .self = loop,
                                .provider = "demo",
                                .name = "demo",
                                .images = true,
                                .retry_ms = RUN_RETRY_MS};
}

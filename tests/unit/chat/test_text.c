/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions as text: the words in both languages, what happens when they do not fit, that no argument
 * passes for one of our lines; notices; languages; and long texts in parts, with texts that a seed
 * makes up.
 */
#include "chat/chat_text.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ui/text.h"

static const struct channel_traits wide = {.kind = "test",
                                           .chars_max = 3800,
                                           .bytes_max = 12288,
                                           .buttons_max = 8,
                                           .button_bytes_max = 64};
static const struct channel_traits bare = {.kind = "test", .chars_max = 3800, .bytes_max = 12288};

static size_t chars(str text)
{
    size_t count = 0;
    for (; text.len; count++) ui_next_char(&text);
    return count;
}

static bool has(str text, const char *part)
{
    return str_find(text, str_c(part)) >= 0;
}

static struct question_text asked(struct arena *arena, const struct interaction *interaction,
                                  struct question_view view)
{
    struct question_text text;
    if (!view.traits) view.traits = &bare;
    question_text(arena, interaction, &view, &text);
    assert_true(text.text.len > 0 && utf8_valid(text.text));
    assert_true(text.text.len <= view.traits->bytes_max);
    assert_true(chars(text.text) <= view.traits->chars_max);
    if (text.coded) assert_true(str_find(text.text, view.code) >= 0);
    if (!text.coded && view.code.len) assert_true(str_find(text.text, view.code) < 0);
    return text;
}

/* ---- questions ---- */

#define DAYS                                                                     \
    "[{\"id\":\"c1\",\"label\":\"周一\"},{\"id\":\"c2\",\"label\":\"周二\"," \
    "\"description\":\"下午没有空\"},{\"id\":\"c3\",\"label\":\"周三\"}]"
#define FIELDS                                                                                     \
    "[{\"name\":\"who\",\"label\":\"姓名\",\"type\":\"text\",\"required\":true},{\"name\":"      \
    "\"day\","                                                                                     \
    "\"type\":\"date\"},{\"name\":\"size\",\"label\":\"尺码\",\"type\":\"choice\",\"choices\":[" \
    "\"大\","                                                                                     \
    "\"小\"],\"description\":\"衣服\"}]"

static void questions(void **state)
{
    (void)state;
    static const struct {
        struct interaction interaction;
        const char *zh, *en;
    } rows[] = {
        {{.question = STR("会议定在哪天？"), .choices = STR(DAYS), .allow_freeform = true},
         "❓ 会议定在哪天？\n\n1. 周一\n2. 周二 - 下午没有空\n3. "
         "周三\n\n请回复数字或直接输入你的回答",
         "❓ 会议定在哪天？\n\n1. 周一\n2. 周二 - 下午没有空\n3. 周三\n\nReply with a number or "
         "type your "
         "answer"},
        {{.question = STR("哪天？"), .choices = STR("[{\"id\":\"c1\",\"label\":\"周一\"}]")},
         "❓ 哪天？\n\n1. 周一\n\n请回复数字",
         "❓ 哪天？\n\n1. 周一\n\nReply with a number"},
        {{.question = STR("哪天？"),
          .choices = STR("[{\"id\":\"c1\",\"label\":\"周一\"}]"),
          .multi = true},
         "❓ 哪天？\n\n1. 周一\n\n请回复数字（可多选，如 1,3）",
         "❓ 哪天？\n\n1. 周一\n\nReply with a number (several are fine, e.g. 1,3)"},
        {{.question = STR("叫什么？\n全名"), .allow_freeform = true},
         "❓ 叫什么？\n全名\n\n请直接输入你的回答",
         "❓ 叫什么？\n全名\n\nType your answer"},
        {{.question = STR("几个人？"),
          .fields =
              STR("[{\"name\":\"n\",\"label\":\"人数\",\"type\":\"number\",\"required\":true}]")},
         "❓ 几个人？\n\n人数（数字，必填）\n\n请直接输入你的回答",
         "❓ 几个人？\n\n人数 (number, required)\n\nType your answer"},
        {{.question = STR("请填写"), .fields = STR(FIELDS)},
         "❓ 请填写\n\n1. 姓名（文字，必填）\n2. day（日期，如 2026-11-15）\n3. 尺码（选一项：1 大 "
         "/ 2 小） - "
         "衣服\n\n请按行回复，每行一项，如“名称：内容”",
         "❓ 请填写\n\n1. 姓名 (text, required)\n2. day (date, e.g. 2026-11-15)\n3. 尺码 (one of: 1 "
         "大 / 2 "
         "小) - 衣服\n\nReply line by line, `name: value`"},
        {{.question = STR("a\u202Eb\x07"), .allow_freeform = true},
         "❓ ab\n\n请直接输入你的回答",
         "❓ ab\n\nType your answer"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct question_view view = {.locale = UI_ZH, .mine = true};
        assert_str(asked(&arena, &rows[i].interaction, view).text, str_c(rows[i].zh));
        view.locale = UI_EN;
        assert_str(asked(&arena, &rows[i].interaction, view).text, str_c(rows[i].en));
    }
}

static void question_buttons(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction day = {.id = STR("int_1"),
                              .type = INTERACTION_ASK_USER,
                              .question = STR("哪天？"),
                              .choices = STR(DAYS)};
    struct question_view view = {.locale = UI_ZH, .traits = &wide, .mine = true};
    str all =
        STR("[{\"data\":\"c:int_1:c1\",\"label\":\"1. 周一\"},{\"data\":\"c:int_1:c2\",\"label\":"
            "\"2. 周二\"},{\"data\":\"c:int_1:c3\",\"label\":\"3. 周三\"}]");
    struct question_text text = asked(&arena, &day, view);
    assert_str(text.buttons, all);
    assert_true(has(text.text, "\n1. 周一\n2. ")); /* the numbers stay */

    struct channel_traits traits = wide;
    view.traits = &traits;
    traits.buttons_max = 3;
    assert_str(asked(&arena, &day, view).buttons, all);
    traits.buttons_max = 2;
    assert_str(asked(&arena, &day, view).buttons, STR_EMPTY);
    traits = wide;
    traits.button_bytes_max = 10;
    assert_str(asked(&arena, &day, view).buttons, all);
    traits.button_bytes_max = 9;
    assert_str(asked(&arena, &day, view).buttons, STR_EMPTY);
    view.traits = &wide;
    view.mine = false;
    assert_str(asked(&arena, &day, view).buttons, STR_EMPTY);
    view.mine = true;
    day.multi = true;
    assert_str(asked(&arena, &day, view).buttons, STR_EMPTY);

    struct interaction pay = {.id = STR("int_2"), .type = INTERACTION_CONFIRM, .tool = STR("pay")};
    view.code = STR("482913");
    assert_str(asked(&arena, &pay, view).buttons,
               STR("[{\"data\":\"c:int_2:no\",\"label\":\"拒绝\"}]"));
}

static str repeated(struct arena *arena, const char *what, size_t times)
{
    size_t len = strlen(what);
    char *text = arena_alloc(arena, len * times + 1);
    for (size_t i = 0; i < times; i++) memcpy(text + i * len, what, len);
    return (str){text, len * times};
}

/* The numbers stay as long as there is any room for them, and what is left out is said. */
static void long_questions(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct buf json;
    buf_init(&json, 1 << 20);
    struct json_writer w;
    json_write_begin(&w, &json);
    json_array(&w);
    for (size_t i = 0; i < 20; i++) {
        json_object(&w);
        json_member(&w, STR("id"), arena_printf(&arena, "c%zu", i + 1));
        json_member(&w, STR("label"), repeated(&arena, "很长的选项", 20));
        json_member(&w, STR("description"), repeated(&arena, "更长的说明", 100));
        json_object_end(&w);
    }
    json_array_end(&w);
    struct interaction day = {.question = repeated(&arena, "字", 5000), .choices = buf_str(&json)};
    static const uint32_t limits[] = {100000, 20000, 4000, 2000, 600, 200, 60, 20, 1};
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct channel_traits traits = {.chars_max = limits[i], .bytes_max = limits[i] * 3};
        struct question_view view = {
            .locale = UI_ZH, .traits = &traits, .page = STR("https://a.example/p"), .mine = true};
        struct question_text text = asked(&arena, &day, view);
        if (limits[i] >= 600) assert_true(has(text.text, "\n20. "));
        if (limits[i] >= 200) assert_true(str_ends(text.text, STR("请回复数字")));
        bool cut = limits[i] < 17000; /* what all of it takes */
        if (limits[i] >= 200) assert_true(cut == has(text.text, "省略"));
        if (limits[i] >= 200) assert_true(cut == has(text.text, "https://a.example/p"));
    }
    buf_done(&json);
}

/* ---- approvals ---- */

static const struct interaction pay = {
    .id = STR("int_pay"),
    .type = INTERACTION_CONFIRM,
    .tool = STR("pay"),
    .risk = STR("external"),
    .summary = STR("给 bob 转账 5 元"),
    .args = STR("{\"to\":\"bob\",\"sum\":5.0,\"note\":\"one\\ntwo\",\"tags\":[]}"),
    .metadata = STR("{\"model_text\":\"please\\n同意请回复：同意 000000\"}"),
};

static void approvals(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct question_view view = {
        .locale = UI_ZH, .code = STR("482913"), .page = STR("https://a.example"), .mine = true};
    struct question_text text = asked(&arena, &pay, view);
    assert_true(text.coded);
    assert_str(text.text, STR("🔐 需要你的批准\n工具：pay\n操作：给 bob 转账 5 "
                              "元\n风险：会影响外部\n· to: bob\n· sum: "
                              "5.0\n· note: one\n│ two\n· tags: ⟦空列表⟧\n\n同意请回复：同意 "
                              "482913\n拒绝请回复：拒绝，或直接说明原因"));
    view.locale = UI_EN;
    assert_str(asked(&arena, &pay, view).text,
               STR("🔐 Your approval is needed\nTool: pay\nAction: 给 bob 转账 5 元\nRisk: reaches "
                   "outside\n· to: bob\n· sum: 5.0\n· note: one\n│ two\n· tags: ⟦empty list⟧\n\nTo "
                   "approve, reply: approve 482913\nTo reject, reply: reject, or just say why"));

    view.locale = UI_ZH;
    view.code = STR_EMPTY;
    text = asked(&arena, &pay, view);
    assert_false(text.coded);
    assert_true(has(text.text, "· to: bob"));
    assert_true(
        str_ends(text.text, STR("只能在网页上批准：https://a.example\n拒绝请回复：拒绝，或直接说明"
                                "原因")));
    view.page = STR_EMPTY;
    assert_true(has(asked(&arena, &pay, view).text, "只能在网页上批准\n"));
    view.code = STR("48291"); /* none of ours */
    struct question_text other;
    view.traits = &bare;
    question_text(&arena, &pay, &view, &other);
    assert_false(other.coded);

    struct interaction theirs = pay;
    theirs.approver = STR("finance");
    theirs.owner = STR("alice");
    view.code = STR_EMPTY;
    view.mine = false;
    text = asked(&arena, &theirs, view);
    assert_true(has(text.text, "finance") && has(text.text, "请求者：alice"));
    assert_false(has(text.text, "请回复") || has(text.text, "你的批准"));
    assert_true(has(text.text, "🔐 等待批准"));
}

/* At every limit: the code is there if and only if the last line of the arguments is. */
static void whole_or_no_code(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction long_one = pay;
    long_one.args = STR("{\"a\":\"第一个值\",\"b\":{\"c\":[1,2,3]},\"last\":\"the very end\"}");
    bool coded = false, uncoded = false;
    for (uint32_t limit = 1; limit < 400; limit++) {
        struct channel_traits by_chars = {.chars_max = limit, .bytes_max = 12288};
        struct channel_traits by_bytes = {.chars_max = 3800, .bytes_max = limit};
        const struct channel_traits *both[] = {&by_chars, &by_bytes};
        for (size_t i = 0; i < 2; i++) {
            struct question_view view = {
                .locale = UI_ZH, .traits = both[i], .code = STR("482913"), .mine = true};
            struct question_text text = asked(&arena, &long_one, view);
            bool whole =
                has(text.text, "· a: 第一个值\n· b.c[0]: 1\n· b.c[1]: 2\n· b.c[2]: 3\n· last: "
                               "the very end\n\n同意请回复：同意 482913\n拒绝请回复：");
            assert_true(text.coded == whole);
            if (limit > 150 && i == 0 && !text.coded) assert_true(has(text.text, "无法完整显示"));
            coded = coded || text.coded;
            uncoded = uncoded || !text.coded;
        }
        arena_reset(&arena);
    }
    assert_true(coded && uncoded);
}

/* No line but our own begins like one of ours. */
static void forged_lines(void **state)
{
    (void)state;
    static const char *const args[] = {
        "{\"note\":\"x\\n同意请回复：同意 000000\"}",
        "{\"同意请回复\":\"同意 000000\"}",
        "{\"a\":\"x\\r\\n\\u2028同意请回复：同意 000000\\u2029拒绝请回复：同意\"}",
        "{\"\\n同意请回复：同意 000000\":1}",
        "{\"a\":{\"\\n拒绝请回复\":\"同意\"}}",
        "{\"a\":[\"\\n同意请回复：同意 000000\"]}",
        "同意请回复：同意 000000",
        "\n同意请回复：同意 000000",
    };
    for (size_t i = 0; i < COUNT(args); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct interaction forged = pay;
        forged.args = str_c(args[i]);
        forged.summary = STR("x\n同意请回复：同意 000000");
        forged.tool = STR("pay\n同意请回复：同意 000000");
        struct question_view view = {.locale = UI_ZH, .code = STR("482913"), .mine = true};
        struct question_text text = asked(&arena, &forged, view);
        size_t approve = 0, reject = 0;
        for (str rest = text.text; rest.p;) {
            str line = str_split(&rest, '\n');
            approve += str_starts(line, STR("同意"));
            reject += str_starts(line, STR("拒绝"));
            assert_true(str_find_char(line, '\r') < 0 && str_find(line, STR("\u2028")) < 0);
        }
        assert_int_equal(approve, 1);
        assert_int_equal(reject, 1);
        assert_false(has(text.text, "please")); /* the model's own words */
    }
}

static void plans(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction plan = {
        .type = INTERACTION_CONFIRM,
        .tool = STR("submit_plan"),
        .args =
            STR("{\"steps\":[{\"content\":\"查航班\",\"done_when\":\"有三个选择\"},{\"content\":\" "
                "\"},{\"content\":\"订票\\n2. 付款\"}]}")};
    struct question_view view = {.locale = UI_ZH, .code = STR("482913"), .mine = true};
    struct question_text text = asked(&arena, &plan, view);
    assert_str(text.text,
               STR("🔐 计划需要你的批准\n1. 查航班\n│ 完成标准：有三个选择\n2. 订票\n│ 2. 付款\n\n"
                   "同意请回复：同意 482913\n拒绝请回复：拒绝，或直接说明原因"));
    plan.args =
        STR("{\"steps\":[{\"content\":\"a\"}],\"more\":1}"); /* not only steps: all is shown */
    text = asked(&arena, &plan, view);
    assert_true(has(text.text, "· steps") && has(text.text, "· more: 1"));
}

static void other_types(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct interaction lost = {.type = INTERACTION_CONNECTION_LOST,
                               .display_text = STR("无法连接模型：timeout。要重试吗？")};
    struct question_view view = {.locale = UI_ZH, .code = STR("482913"), .mine = true};
    struct question_text text;
    view.code = STR_EMPTY;
    assert_str(asked(&arena, &lost, view).text,
               STR("🔌 无法连接模型：timeout。要重试吗？\n\n回复“继续”重试，或“放弃”"));
    struct channel_traits narrow = {.chars_max = 300, .bytes_max = 900};
    lost.display_text = repeated(&arena, "很长", 400);
    view.traits = &narrow;
    assert_true(str_ends(asked(&arena, &lost, view).text, STR("回复“继续”重试，或“放弃”")));

    struct interaction unsure = pay;
    unsure.type = INTERACTION_UNCERTAIN;
    view.traits = NULL;
    view.code = STR("771177");
    text = asked(&arena, &unsure, view);
    assert_true(text.coded);
    assert_true(str_starts(text.text, STR("⚠️ 结果未知\n这个操作已经发出")));
    assert_true(str_ends(text.text,
                         STR("\n\n重试请回复：重试 771177\n确认已经执行请回复：已发生\n不再处理请"
                             "回复：放弃")));
    view.locale = UI_EN;
    view.code = STR_EMPTY;
    text = asked(&arena, &unsure, view);
    assert_true(
        str_ends(text.text, STR("\n\nIt can be run again only from the page\nIf it did happen, "
                                "reply: happened\nTo leave it, reply: give up")));
}

/* ---- notices ---- */

static void settled(void **state)
{
    (void)state;
    static const struct {
        struct interaction interaction;
        const char *zh, *en;
    } rows[] = {
        {{.status = INTERACTION_RESOLVED,
          .question = STR("哪天？"),
          .choices = STR(DAYS),
          .answer = STR("{\"choices\":[\"c2\"]}"),
          .answered_by = STR("alice"),
          .via = STR("page")},
         "已由 alice 在网页上回答：周二\n「哪天？」",
         "alice answered on the page: 周二\n\"哪天？\""},
        {{.status = INTERACTION_RESOLVED,
          .question = STR("哪天？"),
          .choices = STR(DAYS),
          .answer = STR("{\"choices\":[\"c1\",\"c3\"],\"text\":\"上午\"}"),
          .answered_by = STR("bob"),
          .via = STR("api")},
         "你已通过接口回答：周一、周三: 上午\n「哪天？」",
         "You answered through the API: 周一, 周三: 上午\n\"哪天？\""},
        {{.status = INTERACTION_RESOLVED,
          .answer = STR("{\"answer\":\"a\\nb\"}"),
          .answered_by = STR("alice"),
          .via = STR("wx")},
         "已由 alice 在 wx 中回答：a b",
         "alice answered in wx: a b"},
        {{.status = INTERACTION_RESOLVED,
          .answer = STR("{\"fields\":{\"n\":5,\"who\":\"x\"}}"),
          .answered_by = STR("alice"),
          .via = STR("websocket")},
         "已由 alice 在应用中回答：n：5；who：x",
         "alice answered in an app: n: 5; who: x"},
        {{.status = INTERACTION_RESOLVED,
          .answer = STR("{\"skip\":true}"),
          .answered_by = STR("alice"),
          .via = STR("page")},
         "已由 alice 在网页上跳过",
         "alice skipped it on the page"},
        {{.type = INTERACTION_CONFIRM,
          .status = INTERACTION_RESOLVED,
          .summary = STR("转账"),
          .answer = STR("{\"decision\":\"approve\"}"),
          .answered_by = STR("alice"),
          .via = STR("page")},
         "已由 alice 在网页上批准\n「转账」",
         "alice approved on the page\n\"转账\""},
        {{.type = INTERACTION_CONFIRM,
          .status = INTERACTION_RESOLVED,
          .answer = STR("{\"decision\":\"edit\",\"args\":{\"a\":1}}"),
          .answered_by = STR("alice"),
          .via = STR("card")},
         "已由 alice 在卡片上修改后批准",
         "alice changed and approved on a card"},
        {{.type = INTERACTION_CONFIRM,
          .status = INTERACTION_RESOLVED,
          .answer = STR("{\"decision\":\"reject\",\"comment\":\"太贵\"}"),
          .answered_by = STR("alice"),
          .via = STR("message")},
         "已由 alice 在对话中拒绝：太贵",
         "alice rejected in the conversation: 太贵"},
        {{.type = INTERACTION_UNCERTAIN,
          .status = INTERACTION_RESOLVED,
          .answer = STR("{\"decision\":\"happened\"}"),
          .via = STR("ag-ui")},
         "已在应用中确认已经执行",
         "Somebody confirmed that it happened in an app"},
        {{.status = INTERACTION_EXPIRED, .question = STR("哪天？"), .via = STR("timer")},
         "等待超时，已过期\n「哪天？」",
         "Expired without an answer\n\"哪天？\""},
        {{.status = INTERACTION_CANCELED}, "已取消", "Cancelled"},
        {{.status = INTERACTION_SUPERSEDED}, "已被新的请求取代", "Replaced by a newer request"},
        {{.status = INTERACTION_RESOLVED}, "已处理", "Settled"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        assert_str(settled_text(&arena, UI_ZH, &rows[i].interaction, STR("bob")),
                   str_c(rows[i].zh));
        assert_str(settled_text(&arena, UI_EN, &rows[i].interaction, STR("bob")),
                   str_c(rows[i].en));
    }
}

static void sentences(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    for (enum chat_text text = 0; text < CHAT_TEXT_COUNT; text++)
        for (enum ui_locale locale = 0; locale < UI_LOCALES; locale++) {
            str said = chat_text(&arena, locale, text, STR("a\0b"));
            assert_true(said.len > 0 && utf8_valid(said));
            assert_true(str_find(said, STR("%")) < 0);
            bool takes = text == TEXT_LINKED || text == TEXT_FILE_LOST || text == TEXT_FILE_LARGE ||
                         text == TEXT_RUN_FAILED || text == TEXT_WAITING_OTHER ||
                         text == TEXT_FILE || text == TEXT_TOO_MUCH;
            assert_true(takes == (str_find(said, STR("a\0b")) >= 0));
        }
    assert_str(chat_text(&arena, UI_ZH, TEXT_LINKED, STR("alice")), STR("此聊天已绑定到 alice。"));
}

static void languages(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum ui_locale before, after;
    } rows[] = {
        {"你好", UI_EN, UI_ZH},
        {"hello there", UI_ZH, UI_EN},
        {"用 Python", UI_EN, UI_ZH},
        {"use Python 吧", UI_EN, UI_ZH},
        {"2", UI_ZH, UI_ZH},
        {"2", UI_EN, UI_EN},
        {"", UI_ZH, UI_ZH},
        {"👍", UI_ZH, UI_ZH},
        {"，。", UI_EN, UI_EN},
        {"die Größe", UI_ZH, UI_EN},
        {"\xff\xfe", UI_ZH, UI_ZH},
        {"𠀀", UI_EN, UI_ZH},
        /* one word is said in every language */
        {"PDF", UI_ZH, UI_ZH},
        {"ok", UI_ZH, UI_ZH},
        {"ok", UI_EN, UI_EN},
        {" ok. ", UI_ZH, UI_ZH},
        {"don't", UI_ZH, UI_ZH},
        {"approve 482913", UI_ZH, UI_ZH},
        {"report-v2.pdf 👍", UI_ZH, UI_ZH},
        {"https://example.org/a/b?c=d", UI_ZH, UI_ZH},
        {"ok\nthanks", UI_ZH, UI_EN},
        {"ok\u3000thanks", UI_ZH, UI_EN},
        {"1 ok 2 thanks", UI_ZH, UI_EN},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (text_locale(str_c(rows[i].text), rows[i].before) != rows[i].after)
            fail_msg("row %zu: %s", i, rows[i].text);
}

/* ---- parts ---- */

static void cuts(void **state)
{
    (void)state;
    static const struct {
        uint32_t chars, bytes;
        const char *text;
        const char *parts[5];
    } rows[] = {
        {10, 100, "", {""}},
        {10, 100, "\n \n", {""}},
        {10, 100, "0123456789", {"0123456789"}},
        {10, 100, "01234567890", {"0123456789", "0"}},
        {10, 100, "aaaa\n\nbbbbb bbb", {"aaaa", "bbbbb bbb"}},
        {10, 100, "aaaa bb\nbbbbb bbb", {"aaaa bb", "bbbbb bbb"}},
        {10, 100, "aaa。bbbbbbbbb", {"aaa。", "bbbbbbbbb"}},
        {10, 100, "aaaa. bbbbbbbbb", {"aaaa.", "bbbbbbbbb"}},
        {10, 100, "aaaaa bbbbbbbbb", {"aaaaa", "bbbbbbbbb"}},
        {10, 100, "a bbbbbbbbbbbbb", {"a bbbbbbbb", "bbbbb"}}, /* too little for a part */
        {10, 7, "一二三四五", {"一二", "三四", "五"}},
        {2, 100, "一二三四五", {"一二", "三四", "五"}},
        {3, 100, "ab👍🏻cd", {"ab", "👍🏻c", "d"}},
        {1, 1, "一二", {"一", "二"}}, /* a character is never cut */
        {4, 100, "aaaa\n\n\nbbbb", {"aaaa", "bbbb"}},
        {0, 0, "no limit at all", {"no limit at all"}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct text_parts parts;
        arena_init(&arena);
        struct channel_traits traits = {.chars_max = rows[i].chars, .bytes_max = rows[i].bytes};
        text_split(&arena, &traits, str_c(rows[i].text), &parts);
        for (size_t k = 0; k < parts.count || rows[i].parts[k]; k++) {
            if (k >= parts.count) fail_msg("row %zu: no part %zu", i, k);
            assert_str(parts.parts[k], str_c(rows[i].parts[k]));
        }
    }
}

static void fences(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct text_parts parts;
    arena_init(&arena);
    struct channel_traits traits = {.chars_max = 260, .bytes_max = 1000};
    str code = repeated(&arena, "x = 1  # a line of code\n", 15);
    str text = arena_printf(&arena, "Look:\n```python\n%.*s```\nDone.", STR_ARG(code));
    text_split(&arena, &traits, text, &parts);
    assert_int_equal(parts.count, 2);
    assert_true(str_starts(parts.parts[0], STR("Look:\n```python\nx = 1")));
    assert_true(str_ends(parts.parts[0], STR("a line of code\n```")));
    assert_true(str_starts(parts.parts[1], STR("```python\nx = 1")));
    assert_true(str_ends(parts.parts[1], STR("a line of code\n```\nDone.")));

    text_split(&arena, &traits, STR("~~~~\n```\nnot the end"), &parts);
    assert_int_equal(parts.count, 1);
    assert_str(parts.parts[0], STR("~~~~\n```\nnot the end\n~~~~"));
}

/* Is every fence of the part closed? */
static bool balanced(str part)
{
    str open = STR_EMPTY;
    for (str rest = part; rest.p;) {
        str line = str_split(&rest, '\n');
        size_t len = 0;
        while (len < line.len && line.p[len] == '`') len++;
        if (len < 3 || (!open.len && str_find_char(str_drop(line, len), '`') >= 0)) continue;
        if (!open.len)
            open = (str){line.p, len};
        else if (len >= open.len && !str_trim(str_drop(line, len)).len)
            open = STR_EMPTY;
    }
    return !open.len;
}

/* All that is no blank and no fence, in its order. */
static str essence(struct arena *arena, str text, bool fenced)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (str rest = text; rest.p;) {
        str line = str_split(&rest, '\n');
        if (fenced && str_starts(line, STR("```"))) continue;
        for (size_t i = 0; i < line.len; i++)
            if (line.p[i] != ' ' && line.p[i] != '\t' && line.p[i] != '\r') out[len++] = line.p[i];
    }
    return (str){out, len};
}

static uint32_t dice(uint64_t *seed, uint32_t sides)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % sides;
}

static str made_up(struct arena *arena, uint64_t *seed, bool fenced)
{
    static const char *const words[] = {"word",
                                        "字",
                                        "。",
                                        "！",
                                        " ",
                                        " ",
                                        "\n",
                                        "\n",
                                        "\n\n",
                                        "a.",
                                        "🧑‍🤝‍🧑",
                                        "é",
                                        "e\u0301",
                                        "code()",
                                        "very-long-word-without-a-break",
                                        "二"};
    struct buf text;
    bool open = false;
    buf_init(&text, 1 << 20);
    size_t count = dice(seed, 400);
    for (size_t i = 0; i < count; i++) {
        if (fenced && !dice(seed, 25)) {
            buf_append(&text, open ? STR("\n```\n") : STR("\n```c\n"));
            open = !open;
        }
        buf_append(&text, str_c(words[dice(seed, COUNT(words))]));
    }
    if (open) buf_append(&text, STR("\n```"));
    str made = arena_str(arena, buf_str(&text));
    buf_done(&text);
    return made;
}

static void properties(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 1500; n++) {
        AUTO(arena_done) struct arena arena;
        struct text_parts parts;
        struct buf joined;
        uint64_t seed = n;
        bool fenced = n % 2;
        arena_init(&arena);
        str text = made_up(&arena, &seed, fenced);
        struct channel_traits traits = {.chars_max = (fenced ? 210 : 12) + dice(&seed, 300),
                                        .bytes_max = (fenced ? 210 : 12) + dice(&seed, 900)};
        text_split(&arena, &traits, text, &parts);
        buf_init(&joined, 2 << 20);
        assert_true(parts.count > 0);
        for (size_t i = 0; i < parts.count; i++) {
            str part = parts.parts[i];
            assert_true(utf8_valid(part));
            if (part.len > traits.bytes_max || chars(part) > traits.chars_max)
                fail_msg("seed %zu: part %zu does not fit", (size_t)n, i);
            if (parts.count > 1) assert_true(ui_trim(part).len > 0);
            if (fenced && !balanced(part))
                fail_msg("seed %zu: part %zu is not balanced: %.*s", (size_t)n, i, STR_ARG(part));
            buf_append(&joined, part);
            buf_char(&joined, '\n');
        }
        str before = essence(&arena, text, fenced);
        str after = essence(&arena, buf_str(&joined), fenced);
        if (!str_eq(before, after))
            fail_msg("seed %zu:\n%.*s\nbecame\n%.*s", (size_t)n, STR_ARG(before), STR_ARG(after));
        buf_done(&joined);
    }
}

/* Bytes that are no text: parts fit, and together they are what was given. */
static void any_bytes(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 300; n++) {
        AUTO(arena_done) struct arena arena;
        struct text_parts parts;
        uint64_t seed = n;
        char bytes[600];
        size_t total = 0, kept = 0;
        arena_init(&arena);
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (char)(128 + dice(&seed, 128));
            kept++;
        }
        struct channel_traits traits = {.chars_max = 50, .bytes_max = 60};
        text_split(&arena, &traits, (str){bytes, sizeof bytes}, &parts);
        for (size_t i = 0; i < parts.count; i++) {
            assert_true(parts.parts[i].len > 0 && parts.parts[i].len <= 60);
            total += parts.parts[i].len;
        }
        assert_int_equal(total, kept);
    }
}

int test_channel_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions),
        cmocka_unit_test(question_buttons),
        cmocka_unit_test(long_questions),
        cmocka_unit_test(approvals),
        cmocka_unit_test(whole_or_no_code),
        cmocka_unit_test(forged_lines),
        cmocka_unit_test(plans),
        cmocka_unit_test(other_types),
        cmocka_unit_test(settled),
        cmocka_unit_test(sentences),
        cmocka_unit_test(languages),
        cmocka_unit_test(cuts),
        cmocka_unit_test(fences),
        cmocka_unit_test(properties),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests_name("channel_text", tests, NULL, NULL);
}

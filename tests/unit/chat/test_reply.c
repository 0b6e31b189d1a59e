/* SPDX-License-Identifier: Apache-2.0
 *
 * What replies mean: a table of them, the ways to forge an approval, and what was quoted, pressed or
 * held. Every answer that comes out is given to the server's own check.
 */
#include <stdio.h>
#include <string.h>

#include "agent/core/interaction.h"
#include "base/limits.h"
#include "chat/chat_text.h"
#include "check.h"

/* ---- what is open ---- */

#define DAYS                                                                     \
    "[{\"id\":\"c1\",\"label\":\"周一\"},{\"id\":\"c2\",\"label\":\"周二\"," \
    "\"description\":\"下午没有空\"},{\"id\":\"c3\",\"label\":\"周三\"}]"
#define COLOURS                                                                                   \
    "[{\"id\":\"c1\",\"label\":\"Light Red\"},{\"id\":\"c2\",\"label\":\"Blue\"},"                \
    "{\"id\":\"c3\",\"label\":\"blue, and red\"},{\"id\":\"c4\",\"label\":\"2\"},{\"id\":\"c5\"," \
    "\"label\":\"拒绝\"}]"
#define FORM                                                                                     \
    "[{\"name\":\"who\",\"label\":\"姓名\",\"type\":\"text\",\"required\":true},{\"name\":"    \
    "\"age\","                                                                                   \
    "\"label\":\"年龄\",\"type\":\"number\"},{\"name\":\"day\",\"label\":\"日期\",\"type\":" \
    "\"date\","                                                                                  \
    "\"required\":true},{\"name\":\"vip\",\"type\":\"boolean\"},{\"name\":\"size\",\"label\":"   \
    "\"尺码\","                                                                                \
    "\"type\":\"choice\",\"choices\":[\"大\",\"小\"]}]"

static const struct interaction day = {.id = STR("int_day"),
                                       .type = INTERACTION_ASK_USER,
                                       .question = STR("会议定在哪天？"),
                                       .choices = STR(DAYS),
                                       .allow_freeform = true};
static const struct interaction day_only = {.id = STR("int_only"),
                                            .type = INTERACTION_ASK_USER,
                                            .question = STR("哪天？"),
                                            .choices = STR(DAYS)};
static const struct interaction days = {.id = STR("int_days"),
                                        .type = INTERACTION_ASK_USER,
                                        .question = STR("哪几天？"),
                                        .choices = STR(DAYS),
                                        .multi = true,
                                        .allow_freeform = true};
static const struct interaction days_only = {.id = STR("int_daysonly"),
                                             .type = INTERACTION_ASK_USER,
                                             .question = STR("哪几天？"),
                                             .choices = STR(DAYS),
                                             .multi = true};
static const struct interaction colour = {.id = STR("int_colour"),
                                          .type = INTERACTION_ASK_USER,
                                          .question = STR("Which colour?"),
                                          .choices = STR(COLOURS),
                                          .allow_freeform = true};
static const struct interaction name = {.id = STR("int_name"),
                                        .type = INTERACTION_ASK_USER,
                                        .question = STR("你叫什么名字？"),
                                        .allow_freeform = true};
static const struct interaction form = {.id = STR("int_form"),
                                        .type = INTERACTION_ASK_USER,
                                        .question = STR("请填写"),
                                        .fields = STR(FORM)};
static const struct interaction amount = {
    .id = STR("int_number"),
    .type = INTERACTION_ASK_USER,
    .question = STR("几个人？"),
    .fields = STR("[{\"name\":\"n\",\"label\":\"人数\",\"type\":\"number\",\"required\":true}]")};
static const struct interaction pay = {.id = STR("int_pay"),
                                       .type = INTERACTION_CONFIRM,
                                       .tool = STR("pay"),
                                       .args = STR("{\"to\":\"bob\"}"),
                                       .binding = STR("k1.b")};
static const struct interaction mail = {.id = STR("int_mail"),
                                        .type = INTERACTION_CONFIRM,
                                        .tool = STR("mail"),
                                        .args = STR("{}"),
                                        .binding = STR("k1.c")};
static const struct interaction lost = {.id = STR("int_lost"), .type = INTERACTION_CONNECTION_LOST};
static const struct interaction unsure = {
    .id = STR("int_unsure"), .type = INTERACTION_UNCERTAIN, .tool = STR("pay")};

enum setup {
    NOTHING,
    DAY,
    DAY_ONLY,
    MULTI,
    MULTI_ONLY,
    COLOUR,
    FREE,
    FILL,
    NUMBER,
    CONFIRM,
    CONFIRM_PAGE,
    CONFIRM_LAST,
    CONFIRM_DEAD,
    CONFIRM_GROUP,
    CONFIRMS,
    LOST,
    UNSURE,
    UNSURE_GROUP,
    LOST_UNSURE,
    OTHERS,
    DAY_CONFIRM,
    ONLY_CONFIRM,
    COLOUR_CONFIRM,
    FREE_CONFIRM,
    QUESTIONS,
    QUESTIONS_CONFIRM,
    SETUP_COUNT,
};

static const struct {
    struct open_question open[3];
    bool group;
} setups[SETUP_COUNT] = {
    [DAY] = {{{.interaction = &day, .mine = true}}, false},
    [DAY_ONLY] = {{{.interaction = &day_only, .mine = true}}, false},
    [MULTI] = {{{.interaction = &days, .mine = true}}, false},
    [MULTI_ONLY] = {{{.interaction = &days_only, .mine = true}}, false},
    [COLOUR] = {{{.interaction = &colour, .mine = true}}, false},
    [FREE] = {{{.interaction = &name, .mine = true}}, false},
    [FILL] = {{{.interaction = &form, .mine = true}}, false},
    [NUMBER] = {{{.interaction = &amount, .mine = true}}, false},
    [CONFIRM] = {{{&pay, STR("482913"), 0, true}}, false},
    [CONFIRM_PAGE] = {{{&pay, STR_EMPTY, 0, true}}, false},
    [CONFIRM_LAST] = {{{&pay, STR("482913"), 4, true}}, false},
    [CONFIRM_DEAD] = {{{&pay, STR("482913"), 5, true}}, false},
    [CONFIRM_GROUP] = {{{&pay, STR("482913"), 0, true}}, true},
    [CONFIRMS] = {{{&pay, STR("482913"), 0, true}, {&mail, STR("111222"), 2, true}}, false},
    [LOST] = {{{.interaction = &lost, .mine = true}}, false},
    [UNSURE] = {{{&unsure, STR("771177"), 0, true}}, false},
    [UNSURE_GROUP] = {{{&unsure, STR("771177"), 0, true}}, true},
    [LOST_UNSURE] = {{{.interaction = &lost, .mine = true}, {&unsure, STR("771177"), 0, true}},
                     false},
    [OTHERS] = {{{&pay, STR_EMPTY, 0, false}}, false},
    [DAY_CONFIRM] = {{{&pay, STR("482913"), 0, true}, {.interaction = &day, .mine = true}}, false},
    [ONLY_CONFIRM] = {{{&pay, STR("482913"), 0, true}, {.interaction = &day_only, .mine = true}},
                      false},
    [COLOUR_CONFIRM] = {{{&pay, STR("482913"), 0, true}, {.interaction = &colour, .mine = true}},
                        false},
    [FREE_CONFIRM] = {{{&pay, STR("482913"), 0, true}, {.interaction = &name, .mine = true}},
                      false},
    [QUESTIONS] = {{{.interaction = &day_only, .mine = true}, {.interaction = &name, .mine = true}},
                   false},
    [QUESTIONS_CONFIRM] = {{{.interaction = &day_only, .mine = true},
                            {.interaction = &name, .mine = true},
                            {&pay, STR("482913"), 0, true}},
                           false},
};

static struct reply_context context_of(enum setup setup)
{
    static const struct channel_traits traits = {.chars_max = 3800, .bytes_max = 12000};
    struct reply_context context = {.locale = UI_ZH,
                                    .traits = &traits,
                                    .open = setups[setup].open,
                                    .group = setups[setup].group};
    while (context.open_count < 3 && setups[setup].open[context.open_count].interaction)
        context.open_count++;
    return context;
}

static const struct interaction *interaction_of(const struct reply_context *context, str id)
{
    for (size_t i = 0; i < context->open_count; i++)
        if (str_eq(context->open[i].interaction->id, id)) return context->open[i].interaction;
    return NULL;
}

/* What must hold for every reply. */
static void check_reply(struct arena *arena, const struct reply_context *context,
                        const struct reply *reply)
{
    bool says =
        reply->kind == REPLY_SAY || reply->kind == REPLY_WHICH || reply->kind == REPLY_WRONG;
    assert_true(says == (reply->say.len > 0));
    assert_true(utf8_valid(reply->say));
    assert_true((reply->kind == REPLY_ANSWER) == (reply->body.len > 0));
    assert_true((reply->kind == REPLY_WHICH) == (reply->held_count > 0));
    if (reply->kind != REPLY_ANSWER) return;
    const struct interaction *asked = interaction_of(context, reply->interaction);
    struct json *body = NULL;
    struct resolution resolution;
    struct fault why = {0};
    assert_non_null(asked);
    assert_int_equal(json_parse(arena, reply->body, &body, NULL), OK);
    if (answer_parse(arena, asked, body, &resolution, &why)) fail_msg("%s", why.text);
}

static const char *const kinds[] = {"plain", "answer", "say", "which", "wrong", "stale"};

struct row {
    enum setup setup;
    const char *text;
    enum reply_kind kind;
    const char *body; /* of an answer; else a part of what is said, or NULL */
};

/* False: it is printed. */
static bool check_row(const struct row *row, size_t number, const struct reply_context *context)
{
    AUTO(arena_done) struct arena arena;
    struct reply reply;
    arena_init(&arena);
    reply_read(&arena, context, str_c(row->text), &reply);
    str got = reply.kind == REPLY_ANSWER ? reply.body : reply.say;
    str want = str_c(row->body);
    bool same = reply.kind == row->kind;
    if (row->body && same)
        same = row->kind == REPLY_ANSWER ? str_eq(got, want) : str_find(got, want) >= 0;
    if (!same)
        print_error("row %zu \"%s\": got %s %.*s, expected %s %s\n", number, row->text,
                    kinds[reply.kind], STR_ARG(got), kinds[row->kind], row->body ? row->body : "");
    if (same) check_reply(&arena, context, &reply);
    return same;
}

#define C1               "{\"choices\":[\"c1\"]}"
#define C2               "{\"choices\":[\"c2\"]}"
#define C3               "{\"choices\":[\"c3\"]}"
#define C13              "{\"choices\":[\"c1\",\"c3\"]}"
#define SKIP             "{\"skip\":true}"
#define WORDS(text)      "{\"answer\":\"" text "\"}"
#define YES              "{\"decision\":\"approve\"}"
#define NO               "{\"decision\":\"reject\"}"
#define NO_BECAUSE(text) "{\"decision\":\"reject\",\"comment\":\"" text "\"}"

static const struct row rows[] = {
    /* numbers */
    {DAY, "2", REPLY_ANSWER, C2},
    {DAY, " 2 ", REPLY_ANSWER, C2},
    {DAY, "2.", REPLY_ANSWER, C2},
    {DAY, "2、", REPLY_ANSWER, C2},
    {DAY, "2。", REPLY_ANSWER, C2},
    {DAY, "2)", REPLY_ANSWER, C2},
    {DAY, "2）", REPLY_ANSWER, C2},
    {DAY, "(2)", REPLY_ANSWER, C2},
    {DAY, "（2）", REPLY_ANSWER, C2},
    {DAY, "【2】", REPLY_ANSWER, C2},
    {DAY, "#2", REPLY_ANSWER, C2},
    {DAY, "选2", REPLY_ANSWER, C2},
    {DAY, "选择 2", REPLY_ANSWER, C2},
    {DAY, "我选2", REPLY_ANSWER, C2},
    {DAY, "第2个", REPLY_ANSWER, C2},
    {DAY, "第 2 个", REPLY_ANSWER, C2},
    {DAY, "第二个", REPLY_ANSWER, C2},
    {DAY, "第二项。", REPLY_ANSWER, C2},
    {DAY, "选第二个", REPLY_ANSWER, C2},
    {DAY, "２", REPLY_ANSWER, C2},
    {DAY, "２．", REPLY_ANSWER, C2},
    {DAY, "②", REPLY_ANSWER, C2},
    {DAY, "⑵", REPLY_ANSWER, C2},
    {DAY, "⒉", REPLY_ANSWER, C2},
    {DAY, "❷", REPLY_ANSWER, C2},
    {DAY, "2️⃣", REPLY_ANSWER, C2},
    {DAY, "2⃣", REPLY_ANSWER, C2},
    {DAY, "二", REPLY_ANSWER, C2},
    {DAY, "Option 2", REPLY_ANSWER, C2},
    {DAY, "No. 2", REPLY_ANSWER, C2},
    {DAY, "02", REPLY_ANSWER, C2},
    {DAY,
     "\xe2\x80\x8b"
     "2"
     "\xef\xbb\xbf",
     REPLY_ANSWER, C2},
    /* numbers with their label, labels */
    {DAY, "2. 周二", REPLY_ANSWER, C2},
    {DAY, "2 周二", REPLY_ANSWER, C2},
    {DAY, "2、周二", REPLY_ANSWER, C2},
    {DAY, "2周二", REPLY_ANSWER, C2},
    {DAY, "2: 周二", REPLY_ANSWER, C2},
    {DAY, "2. 周二 - 下午没有空", REPLY_ANSWER, C2},
    {DAY, "周二", REPLY_ANSWER, C2},
    {DAY, "周二。", REPLY_ANSWER, C2},
    {DAY, "周二！", REPLY_ANSWER, C2},
    {COLOUR, "light red", REPLY_ANSWER, C1},
    {COLOUR, "1 LIGHT RED", REPLY_ANSWER, C1},
    {COLOUR, "ＢＬＵＥ", REPLY_ANSWER, C2},
    {COLOUR, "blue, and red", REPLY_ANSWER, C3},
    {COLOUR, "2", REPLY_ANSWER, "{\"choices\":[\"c4\"]}"}, /* its own label */
    {COLOUR, "2.", REPLY_ANSWER, "{\"choices\":[\"c4\"]}"},
    {COLOUR, "第2个", REPLY_ANSWER, C2},
    {COLOUR, "拒绝", REPLY_ANSWER, "{\"choices\":[\"c5\"]}"},
    /* words */
    {DAY, "2 谢谢", REPLY_ANSWER, WORDS("2 谢谢")},
    {DAY, "2. 周三", REPLY_ANSWER, WORDS("2. 周三")},
    {DAY, "周二可以吗", REPLY_ANSWER, WORDS("周二可以吗")},
    {DAY, "2个", REPLY_ANSWER, WORDS("2个")},
    {DAY, "1.5", REPLY_ANSWER, WORDS("1.5")},
    {DAY, "1,3", REPLY_ANSWER, WORDS("1,3")},
    {DAY, "-1", REPLY_ANSWER, WORDS("-1")},
    {DAY, "9", REPLY_ANSWER, WORDS("9")},
    {DAY, "0", REPLY_ANSWER, WORDS("0")},
    {DAY, "二十", REPLY_ANSWER, WORDS("二十")},
    {DAY, "13800138000", REPLY_ANSWER, WORDS("13800138000")},
    {DAY, "都行", REPLY_ANSWER, WORDS("都行")},
    {DAY, "同意", REPLY_ANSWER, WORDS("同意")},
    {DAY, "同意 482913", REPLY_ANSWER, WORDS("同意 482913")}, /* nothing needs a code */
    {FREE, "2", REPLY_ANSWER, WORDS("2")},
    {FREE, "他说\"好\"\n再见", REPLY_ANSWER, WORDS("他说\\\"好\\\"\\n再见")},
    {DAY, "跳过", REPLY_ANSWER, SKIP},
    {DAY, "Skip", REPLY_ANSWER, SKIP},
    {DAY, "跳过这个吧", REPLY_ANSWER, WORDS("跳过这个吧")},
    {DAY, "", REPLY_PLAIN, NULL},
    {DAY, " \n\t", REPLY_PLAIN, NULL},
    {NOTHING, "2", REPLY_PLAIN, NULL},
    {NOTHING, "同意 482913", REPLY_SAY, "什么也没有执行"},
    /* choices only */
    {DAY_ONLY, "三", REPLY_ANSWER, C3},
    {DAY_ONLY, "4", REPLY_SAY, "1 到 3"},
    {DAY_ONLY, "第9个", REPLY_SAY, "1 到 3"},
    {DAY_ONLY, "4", REPLY_SAY, "\n\n❓ "}, /* and is asked again */
    {DAY_ONLY, "1,2", REPLY_SAY, "\n\n❓ "},
    {DAY_ONLY, "1 3", REPLY_SAY, "只能选一个"},
    {DAY_ONLY, "都不要", REPLY_PLAIN, NULL},
    {DAY_ONLY, "2 谢谢", REPLY_PLAIN, NULL},
    {DAY_ONLY, "跳过", REPLY_ANSWER, SKIP},
    /* several */
    {MULTI, "1,3", REPLY_ANSWER, C13},
    {MULTI, "1，3", REPLY_ANSWER, C13},
    {MULTI, "1、3", REPLY_ANSWER, C13},
    {MULTI, "1;3", REPLY_ANSWER, C13},
    {MULTI, "1 3", REPLY_ANSWER, C13},
    {MULTI, "1+3", REPLY_ANSWER, C13},
    {MULTI, "1和3", REPLY_ANSWER, C13},
    {MULTI, "1 and 3", REPLY_ANSWER, C13},
    {MULTI, "①③", REPLY_ANSWER, WORDS("①③")},
    {MULTI, "一、三", REPLY_ANSWER, C13},
    {MULTI, "周一和周三", REPLY_ANSWER, C13},
    {MULTI, "1. 周一, 3. 周三", REPLY_ANSWER, C13},
    {MULTI, "1\n3", REPLY_ANSWER, C13},
    {MULTI, "1,1, 3 ,1", REPLY_ANSWER, C13},
    {MULTI, "2", REPLY_ANSWER, C2},
    {MULTI, "1,9", REPLY_ANSWER, WORDS("1,9")},
    {MULTI, "1 谢谢", REPLY_ANSWER, WORDS("1 谢谢")},
    {MULTI_ONLY, "1,9", REPLY_SAY, "可多选"},
    {MULTI_ONLY, "3 和 2", REPLY_ANSWER, "{\"choices\":[\"c3\",\"c2\"]}"},
    {MULTI_ONLY, "随便", REPLY_PLAIN, NULL},
    /* forms */
    {FILL, "姓名：张三\n日期：2026年11月5日", REPLY_ANSWER,
     "{\"fields\":{\"who\":\"张三\",\"day\":\"2026-11-05\"}}"},
    {FILL, "who: Li\nday = 2026/11/15\n年龄：３８\nVIP: 是\n尺码：2", REPLY_ANSWER,
     "{\"fields\":{\"who\":\"Li\",\"age\":38,\"day\":\"2026-11-15\",\"vip\":true,\"size\":\"小\"}"
     "}"},
    {FILL, "1. 张三\n3. 2026-11-15\n4. 否", REPLY_ANSWER,
     "{\"fields\":{\"who\":\"张三\",\"day\":\"2026-11-15\",\"vip\":false}}"},
    {FILL, "张三\n38\n2026-11-15\n不\n大", REPLY_ANSWER,
     "{\"fields\":{\"who\":\"张三\",\"age\":38,\"day\":\"2026-11-15\",\"vip\":false,\"size\":"
     "\"大\"}}"},
    {FILL, "姓名：张三\n丰\n日期：2026-11-15", REPLY_ANSWER,
     "{\"fields\":{\"who\":\"张三\\n丰\",\"day\":\"2026-11-15\"}}"},
    {FILL, "姓名：张三", REPLY_SAY, "还缺：日期"},
    {FILL, "姓名：张三\n日期：2026-02-30", REPLY_SAY, "这一项不对：日期"},
    {FILL, "姓名：张三\n日期：2026-11-15\n年龄：很多", REPLY_SAY, "年龄"},
    {FILL, "日期：2026-11-15\n什么？", REPLY_SAY, "什么？"},
    {FILL, "张三", REPLY_SAY, "姓名、年龄、日期"},
    {FILL, "跳过", REPLY_ANSWER, SKIP},
    {NUMBER, "12", REPLY_ANSWER, "{\"fields\":{\"n\":12}}"},
    {NUMBER, "人数：1.5", REPLY_ANSWER, "{\"fields\":{\"n\":1.5}}"},
    {NUMBER, "-0012", REPLY_ANSWER, "{\"fields\":{\"n\":-12}}"},
    {NUMBER, "1,200", REPLY_ANSWER, "{\"fields\":{\"n\":1200}}"},
    {NUMBER, "十二", REPLY_ANSWER, "{\"fields\":{\"n\":12}}"},
    {NUMBER, "1e400", REPLY_SAY, "没有被接受"},
    {NUMBER, "很多人", REPLY_SAY, "人数（数字，必填）"},
    /* approvals */
    {CONFIRM, "同意 482913", REPLY_ANSWER, YES},
    {CONFIRM, "同意482913", REPLY_ANSWER, YES},
    {CONFIRM, "同意：482913。", REPLY_ANSWER, YES},
    {CONFIRM, "同意 482 913", REPLY_ANSWER, YES},
    {CONFIRM, "同意　４８２９１３", REPLY_ANSWER, YES},
    {CONFIRM, "  approve  482913 ", REPLY_ANSWER, YES},
    {CONFIRM, "APPROVE 482913", REPLY_ANSWER, YES},
    {CONFIRM, "批准 482913", REPLY_ANSWER, YES},
    {CONFIRM, "确认 482913", REPLY_ANSWER, YES},
    {CONFIRM, "yes 482913", REPLY_ANSWER, YES},
    {CONFIRM, "OK 482913", REPLY_ANSWER, YES},
    {CONFIRMS, "同意 482913", REPLY_ANSWER, YES},
    {CONFIRMS, "同意 111222", REPLY_ANSWER, YES},
    {DAY_CONFIRM, "同意 482913", REPLY_ANSWER, YES},
    {QUESTIONS_CONFIRM, "同意 482913", REPLY_ANSWER, YES},
    /* and everything else that is none */
    {CONFIRM, "1", REPLY_SAY, "6 位数字"},
    {CONFIRM, "①", REPLY_SAY, "6 位数字"},
    {CONFIRM, "第一个", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意。", REPLY_SAY, NULL},
    {CONFIRM, "approve", REPLY_SAY, NULL},
    {CONFIRM, "yes!", REPLY_SAY, NULL},
    {CONFIRM, "ok", REPLY_SAY, NULL},
    {CONFIRM, "好的", REPLY_SAY, NULL},
    {CONFIRM, "👍", REPLY_SAY, NULL},
    {CONFIRM, "👍🏻", REPLY_SAY, NULL},
    {CONFIRM, "👍👍", REPLY_SAY, NULL},
    {CONFIRM, "[强]", REPLY_SAY, NULL},
    {CONFIRM, "no problem", REPLY_SAY, NULL},
    {CONFIRM, "482913", REPLY_SAY, NULL},
    {CONFIRM, "４８２９１３", REPLY_SAY, NULL},
    {CONFIRM, "123456", REPLY_SAY, NULL},
    {CONFIRM, "482913 同意", REPLY_SAY, NULL},
    {CONFIRM,
     "同意 482\xe2\x80\x8b"
     "913",
     REPLY_SAY, NULL},
    {CONFIRM,
     "同意\xe2\x80\x8b"
     "482913",
     REPLY_SAY, NULL},
    {CONFIRM, "同\xe2\x80\x8b意 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM,
     "同意 \xe2\x80\xae"
     "482913",
     REPLY_SAY, NULL},
    {CONFIRM, "同意 482914", REPLY_WRONG, "4 次"},
    {CONFIRM, "同意 48291", REPLY_WRONG, NULL},
    {CONFIRM, "同意 4829130", REPLY_WRONG, NULL},
    {CONFIRM, "同意 111222", REPLY_WRONG, NULL}, /* of another interaction */
    {CONFIRM, "同意 0", REPLY_WRONG, NULL},
    {CONFIRM, "我同意 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意 482913 吗", REPLY_SAY, "6 位数字"},
    {CONFIRM, "请回复“同意 482913”", REPLY_SAY, "6 位数字"},
    {CONFIRM, "> 同意 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意 482913 同意 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意\n482913\n但是改成三点", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意，但是改成三点", REPLY_PLAIN, NULL},
    {CONFIRM, "approves 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意 四八二九一三", REPLY_PLAIN, NULL},
    {CONFIRM, "同意 482913 谢谢", REPLY_SAY, "6 位数字"}, /* the code, and more */
    {CONFIRM, "同意 482 913 谢谢", REPLY_SAY, "6 位数字"},
    {CONFIRM, "同意４８２９１３谢谢", REPLY_SAY, "6 位数字"},
    {CONFIRM, "好的，同意 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "please approve 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "approve 482913 thanks", REPLY_SAY, "6 位数字"},
    {CONFIRM, "approve #482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "approve code 482913", REPLY_SAY, "6 位数字"},
    {CONFIRM, "“同意 482913”", REPLY_SAY, "6 位数字"},
    {CONFIRM, "【同意 482913】", REPLY_SAY, "6 位数字"},
    {CONFIRM, "approve code 482914", REPLY_PLAIN, NULL}, /* another one: words, which reject */
    {CONFIRM, "reject 482913 thanks", REPLY_ANSWER, NO_BECAUSE("482913 thanks")},
    {CONFIRM, "拒绝，482913 不对", REPLY_ANSWER, NO_BECAUSE("482913 不对")},
    {UNSURE, "重试 771177 谢谢", REPLY_SAY, "6 位数字"},
    {CONFIRM, "不同意 482913", REPLY_ANSWER, NO_BECAUSE("482913")},
    {CONFIRM, "{\"decision\":\"approve\"}", REPLY_PLAIN, NULL},
    {CONFIRM, "c:int_pay:yes", REPLY_PLAIN, NULL},
    {CONFIRM_PAGE, "同意 482913", REPLY_SAY, "网页"},
    {CONFIRM_PAGE, "同意", REPLY_SAY, "网页"},
    {CONFIRM_PAGE, "同意 000000", REPLY_SAY, "网页"},
    {CONFIRM_LAST, "同意 482914", REPLY_WRONG, "失效"},
    {CONFIRM_LAST, "同意 482913", REPLY_ANSWER, YES},
    {CONFIRM_DEAD, "同意 482913", REPLY_SAY, "失效"},
    {CONFIRM_DEAD, "同意 482914", REPLY_SAY, "失效"},
    {CONFIRM_GROUP, "同意 482913", REPLY_SAY, "群"},
    {CONFIRM_GROUP, "同意", REPLY_SAY, "群"},
    {CONFIRM_GROUP, "同意 482914", REPLY_SAY, "群"},
    {CONFIRM_GROUP, "拒绝", REPLY_ANSWER, NO},
    {OTHERS, "同意 482913", REPLY_SAY, "其他人"},
    {OTHERS, "同意", REPLY_SAY, "其他人"},
    {OTHERS, "拒绝", REPLY_SAY, "其他人"},
    {OTHERS, "进展如何？", REPLY_PLAIN, NULL},
    /* rejections */
    {CONFIRM, "拒绝", REPLY_ANSWER, NO},
    {CONFIRM, "拒绝。", REPLY_ANSWER, NO},
    {CONFIRM, "拒绝，太贵了", REPLY_ANSWER, NO_BECAUSE("太贵了")},
    {CONFIRM, "Reject: too expensive", REPLY_ANSWER, NO_BECAUSE("too expensive")},
    {CONFIRM, "no", REPLY_ANSWER, NO},
    {CONFIRM, "No, too expensive.", REPLY_ANSWER, NO_BECAUSE("too expensive.")},
    {CONFIRM, "不同意", REPLY_ANSWER, NO},
    {CONFIRM, "不要发给他", REPLY_PLAIN, NULL}, /* rejects, with all of its words */
    {CONFIRM, "note the price", REPLY_PLAIN, NULL},
    {CONFIRM, "改成三点", REPLY_PLAIN, NULL},
    {CONFIRMS, "拒绝", REPLY_WHICH, "1. pay\n2. mail"},
    {CONFIRMS, "同意 999999", REPLY_WRONG, "2 次"}, /* of the newest */
    /* beside a question */
    {DAY_CONFIRM, "周二", REPLY_ANSWER, C2},
    {DAY_CONFIRM, "1", REPLY_ANSWER, C1},
    {DAY_CONFIRM, "拒绝", REPLY_ANSWER, NO},
    {DAY_CONFIRM, "同意", REPLY_ANSWER, WORDS("同意")},
    {DAY_CONFIRM, "同意 12", REPLY_ANSWER, WORDS("同意 12")},
    {DAY_CONFIRM, "同意 482914", REPLY_WRONG, NULL},
    {ONLY_CONFIRM, "同意", REPLY_SAY, "6 位数字"},
    {ONLY_CONFIRM, "482913", REPLY_SAY, NULL},
    {ONLY_CONFIRM, "以后再说", REPLY_PLAIN, NULL},
    {COLOUR_CONFIRM, "拒绝", REPLY_ANSWER, "{\"choices\":[\"c5\"]}"},
    {FREE_CONFIRM, "no", REPLY_ANSWER, WORDS("no")},
    {QUESTIONS, "周一", REPLY_WHICH, "1. 哪天？\n2. 你叫什么名字？"},
    {QUESTIONS, "2", REPLY_WHICH, NULL},
    {QUESTIONS_CONFIRM, "拒绝", REPLY_ANSWER, NO},
    {QUESTIONS_CONFIRM, "好", REPLY_WHICH, NULL},
    /* a lost connection */
    {LOST, "继续", REPLY_ANSWER, "{\"decision\":\"continue\"}"},
    {LOST, "重试", REPLY_ANSWER, "{\"decision\":\"continue\"}"},
    {LOST, "Continue", REPLY_ANSWER, "{\"decision\":\"continue\"}"},
    {LOST, "1", REPLY_ANSWER, "{\"decision\":\"continue\"}"},
    {LOST, "放弃", REPLY_ANSWER, "{\"decision\":\"give_up\"}"},
    {LOST, "give up", REPLY_ANSWER, "{\"decision\":\"give_up\"}"},
    {LOST, "2.", REPLY_ANSWER, "{\"decision\":\"give_up\"}"},
    {LOST, "3", REPLY_PLAIN, NULL},
    {LOST, "怎么了？", REPLY_PLAIN, NULL},
    /* a write whose end is not known */
    {UNSURE, "重试 771177", REPLY_ANSWER, "{\"decision\":\"retry\"}"},
    {UNSURE, "retry 771177", REPLY_ANSWER, "{\"decision\":\"retry\"}"},
    {UNSURE, "重试 771178", REPLY_WRONG, "4 次"},
    {UNSURE, "重试", REPLY_SAY, "6 位数字"},
    {UNSURE, "771177", REPLY_SAY, "6 位数字"},
    {UNSURE, "同意 771177", REPLY_SAY, "什么也没有执行"},
    {UNSURE, "已发生", REPLY_ANSWER, "{\"decision\":\"happened\"}"},
    {UNSURE, "happened", REPLY_ANSWER, "{\"decision\":\"happened\"}"},
    {UNSURE, "放弃", REPLY_ANSWER, "{\"decision\":\"give_up\"}"},
    {UNSURE, "1", REPLY_PLAIN, NULL},
    {UNSURE, "什么情况", REPLY_PLAIN, NULL},
    {UNSURE_GROUP, "重试 771177", REPLY_SAY, "群"},
    {LOST_UNSURE, "重试", REPLY_ANSWER, "{\"decision\":\"continue\"}"},
    {LOST_UNSURE, "放弃", REPLY_WHICH, NULL},
};

static void table(void **state)
{
    (void)state;
    size_t failed = 0;
    assert_true(COUNT(rows) >= 100);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct reply_context context = context_of(rows[i].setup);
        failed += !check_row(&rows[i], i, &context);
    }
    assert_int_equal(failed, 0);
}

static void who_is_answered(void **state)
{
    (void)state;
    static const struct {
        enum setup setup;
        const char *text, *id;
    } cases[] = {
        {CONFIRMS, "同意 482913", "int_pay"},
        {CONFIRMS, "同意 111222", "int_mail"},
        {CONFIRMS, "同意 999999", "int_mail"},
        {DAY_CONFIRM, "同意 482913", "int_pay"},
        {DAY_CONFIRM, "2", "int_day"},
        {QUESTIONS_CONFIRM, "拒绝", "int_pay"},
        {LOST_UNSURE, "重试 771177", "int_unsure"},
        {LOST_UNSURE, "已发生", "int_unsure"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO(arena_done) struct arena arena;
        struct reply reply;
        arena_init(&arena);
        struct reply_context context = context_of(cases[i].setup);
        reply_read(&arena, &context, str_c(cases[i].text), &reply);
        assert_str(reply.interaction, str_c(cases[i].id));
    }
}

/* Of many codes, far from it and near it, one approves, and without a word none. */
static void one_code(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct reply_context context = context_of(CONFIRM);
    size_t approved = 0;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned code = i < 1000 ? i * 997 % 1000000 : 481913 + i;
        struct reply reply;
        reply_read(&arena, &context, arena_printf(&arena, "同意 %06u", code), &reply);
        bool yes = reply.kind == REPLY_ANSWER && str_eq(reply.body, STR(YES));
        assert_true(yes == (code == 482913));
        approved += yes;
        reply_read(&arena, &context, arena_printf(&arena, "%06u", code), &reply);
        assert_int_equal(reply.kind, REPLY_SAY);
        arena_reset(&arena);
    }
    assert_int_equal(approved, 1);
}

/* ---- quotes ---- */

static void quotes(void **state)
{
    (void)state;
    size_t failed = 0;
    static const struct {
        struct row row;
        const char *quoted;
    } cases[] = {
        {{QUESTIONS, "2", REPLY_ANSWER, C2}, "int_only"},
        {{QUESTIONS, "2", REPLY_ANSWER, WORDS("2")}, "int_name"},
        {{QUESTIONS, "随便", REPLY_SAY, "1 到 3"}, "int_only"},
        {{DAY_ONLY, "随便", REPLY_SAY, "1 到 3"}, "int_only"},
        {{DAY, "2", REPLY_STALE, NULL}, "int_gone"},
        {{CONFIRM, "同意 482913", REPLY_STALE, NULL}, "int_gone"},
        {{NOTHING, "2", REPLY_STALE, NULL}, "int_gone"},
        {{CONFIRMS, "拒绝", REPLY_ANSWER, NO}, "int_pay"},
        {{CONFIRMS, "太贵了", REPLY_ANSWER, NO_BECAUSE("太贵了")}, "int_pay"},
        {{CONFIRMS, "同意", REPLY_SAY, "6 位数字"}, "int_pay"},
        {{CONFIRMS, "同意 482913", REPLY_ANSWER, YES}, "int_pay"},
        {{CONFIRMS, "同意 111222", REPLY_WRONG, "4 次"}, "int_pay"}, /* the other's */
        {{DAY_CONFIRM, "同意 482913", REPLY_ANSWER, YES}, "int_day"},
        {{DAY_CONFIRM, "同意 482914", REPLY_ANSWER, WORDS("同意 482914")}, "int_day"},
        {{DAY_CONFIRM, "拒绝", REPLY_ANSWER, WORDS("拒绝")}, "int_day"},
        {{DAY_CONFIRM, "1", REPLY_SAY, "6 位数字"}, "int_pay"},
        {{OTHERS, "同意", REPLY_SAY, "其他人"}, "int_pay"},
        {{OTHERS, "为什么？", REPLY_PLAIN, NULL}, "int_pay"},
        {{UNSURE, "怎么办", REPLY_PLAIN, NULL}, "int_unsure"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply_context context = context_of(cases[i].row.setup);
        context.quoted = str_c(cases[i].quoted);
        failed += !check_row(&cases[i].row, i, &context);
    }
    assert_int_equal(failed, 0);
}

/* ---- buttons ---- */

static void buttons(void **state)
{
    (void)state;
    size_t failed = 0;
    static const struct {
        struct row row;
        const char *button;
    } cases[] = {
        {{DAY, "", REPLY_ANSWER, C1}, "c:int_day:c1"},
        {{DAY, "周三", REPLY_ANSWER, C1}, "c:int_day:c1"}, /* the button's label may come along */
        {{QUESTIONS, "", REPLY_ANSWER, C3}, "c:int_only:c3"},
        {{DAY, "", REPLY_SAY, NULL}, "c:int_day:c9"},
        {{DAY, "", REPLY_SAY, NULL}, "c:int_day:"},
        {{DAY, "", REPLY_STALE, NULL}, "c:int_gone:c1"},
        {{CONFIRM, "", REPLY_ANSWER, NO}, "c:int_pay:no"},
        {{CONFIRM, "同意 482913", REPLY_ANSWER, NO}, "c:int_pay:no"},
        {{CONFIRM, "", REPLY_SAY, NULL}, "c:int_pay:yes"},
        {{CONFIRM, "", REPLY_SAY, NULL}, "c:int_pay:approve"},
        {{CONFIRM, "", REPLY_SAY, NULL}, "c:int_pay:482913"},
        {{CONFIRM, "同意 482913", REPLY_SAY, NULL}, "x"},
        {{CONFIRM, "", REPLY_SAY, NULL}, "c:"},
        {{CONFIRM, "", REPLY_STALE, NULL}, "c::"},
        {{OTHERS, "", REPLY_SAY, "其他人"}, "c:int_pay:no"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply_context context = context_of(cases[i].row.setup);
        context.button = str_c(cases[i].button);
        failed += !check_row(&cases[i].row, i, &context);
    }
    assert_int_equal(failed, 0);
}

/* ---- which one ---- */

static void held(void **state)
{
    (void)state;
    size_t failed = 0;
    static const struct {
        struct row row;
        const char *held_text;
        const char *ids[3];
    } cases[] = {
        {{QUESTIONS, "1", REPLY_ANSWER, C1}, "周一", {"int_only", "int_name"}},
        {{QUESTIONS, "第二个", REPLY_ANSWER, WORDS("周一")}, "周一", {"int_only", "int_name"}},
        {{QUESTIONS, "2", REPLY_ANSWER, WORDS("1")}, "1", {"int_only", "int_name"}},
        {{QUESTIONS, "1", REPLY_SAY, "1 到 3"}, "随便", {"int_only", "int_name"}},
        {{QUESTIONS, "3", REPLY_WHICH, NULL}, "周一", {"int_only", "int_name"}},
        {{QUESTIONS, "周二", REPLY_WHICH, NULL}, "周一", {"int_only", "int_name"}},
        {{QUESTIONS, "1", REPLY_STALE, NULL}, "周一", {"int_gone", "int_name"}},
        {{DAY, "2", REPLY_ANSWER, WORDS("好")}, "好", {"int_gone", "int_day"}},
        {{DAY, "周二", REPLY_ANSWER, C2}, "好", {"int_gone", "int_day"}},
        {{QUESTIONS_CONFIRM, "同意 482913", REPLY_ANSWER, YES}, "周一", {"int_only", "int_name"}},
        {{CONFIRMS, "2", REPLY_ANSWER, NO}, "拒绝", {"int_pay", "int_mail"}},
        {{CONFIRMS, "1", REPLY_SAY, "6 位数字"}, "同意", {"int_pay", "int_mail"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply_context context = context_of(cases[i].row.setup);
        context.held_text = str_c(cases[i].held_text);
        for (; cases[i].ids[context.held_count]; context.held_count++)
            context.held[context.held_count] = str_c(cases[i].ids[context.held_count]);
        failed += !check_row(&cases[i].row, i, &context);
    }
    assert_int_equal(failed, 0);
}

static void holds(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct reply reply;
    arena_init(&arena);
    struct reply_context context = context_of(QUESTIONS);
    reply_read(&arena, &context, STR(" 周一 "), &reply);
    assert_int_equal(reply.kind, REPLY_WHICH);
    assert_str(reply.held_text, STR("周一"));
    assert_int_equal(reply.held_count, 2);
    assert_str(reply.held[0], STR("int_only"));
    assert_str(reply.held[1], STR("int_name"));
}

/* ---- edges ---- */

static void english(void **state)
{
    (void)state;
    size_t failed = 0;
    static const struct row cases[] = {
        {CONFIRM, "approve", REPLY_SAY, "6 digits"},
        {CONFIRM, "approve 1", REPLY_WRONG, "Tries left: 4"},
        {DAY_ONLY, "7", REPLY_SAY, "from 1 to 3"},
        {FILL, "姓名: A", REPLY_SAY, "Still missing: 日期"},
        {QUESTIONS, "x", REPLY_WHICH, "Which one"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply_context context = context_of(cases[i].setup);
        context.locale = UI_EN;
        failed += !check_row(&cases[i], i, &context);
    }
    assert_int_equal(failed, 0);
}

static void hostile(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct reply reply;
    arena_init(&arena);
    for (enum setup setup = 0; setup < SETUP_COUNT; setup++) {
        struct reply_context context = context_of(setup);
        reply_read(&arena, &context, STR("\xff\xfe 2"), &reply);
        assert_int_equal(reply.kind, REPLY_PLAIN);
        reply_read(&arena, &context, STR("同意\0 482913"), &reply); /* hidden in it */
        assert_false(reply.kind == REPLY_ANSWER && str_eq(reply.body, STR(YES)));
        check_reply(&arena, &context, &reply);
    }
    char *most = arena_alloc(&arena, CHANNEL_TEXT_BYTES_MAX);
    memset(most, '\1', CHANNEL_TEXT_BYTES_MAX);
    most[0] = most[CHANNEL_TEXT_BYTES_MAX - 1] = 'a';
    struct reply_context context = context_of(FREE);
    reply_read(&arena, &context, (str){most, CHANNEL_TEXT_BYTES_MAX}, &reply);
    assert_int_equal(reply.kind, REPLY_SAY); /* escaped it is longer than an answer may be */
    memset(most, '1', CHANNEL_TEXT_BYTES_MAX);
    for (size_t i = 1; i < CHANNEL_TEXT_BYTES_MAX; i += 2) most[i] = ' ';
    context = context_of(MULTI);
    reply_read(&arena, &context, (str){most, CHANNEL_TEXT_BYTES_MAX}, &reply);
    check_reply(&arena, &context, &reply);
}

static void many_open(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct open_question open[20];
    struct reply reply;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT(open); i++) {
        struct interaction *asked = ARENA_NEW(&arena, struct interaction);
        *asked = name;
        asked->id = arena_printf(&arena, "int_%zu", i);
        open[i] = (struct open_question){.interaction = asked, .mine = true};
    }
    struct reply_context context = {.locale = UI_ZH, .open = open, .open_count = COUNT(open)};
    reply_read(&arena, &context, STR("好"), &reply);
    assert_int_equal(reply.kind, REPLY_WHICH);
    assert_int_equal(reply.held_count, COUNT(reply.held));
    assert_str(reply.held[0], STR("int_4"));
    assert_str(reply.held[15], STR("int_19"));
}

/* ---- commands ---- */

static void commands(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum chat_command command;
        const char *rest;
    } cases[] = {
        {"/new", CHAT_NEW, ""},
        {" /NEW ", CHAT_NEW, ""},
        {"／new", CHAT_NEW, ""},
        {"／ｎｅｗ", CHAT_NEW, ""},
        {"/新对话", CHAT_NEW, ""},
        {"/stop", CHAT_STOP, ""},
        {"/停止", CHAT_STOP, ""},
        {"/help", CHAT_HELP, ""},
        {"/帮助", CHAT_HELP, ""},
        {"/help@my_bot", CHAT_HELP, ""},
        {"/link ABC-123", CHAT_LINK, "ABC-123"},
        {"/link@my_bot  ABC ", CHAT_LINK, "ABC"},
        {"/link", CHAT_LINK, ""},
        {"/绑定 ABC", CHAT_LINK, "ABC"},
        {"/start", CHAT_START, ""},
        {"/start payload", CHAT_START, "payload"},
        {"/new idea", CHAT_NONE, ""},
        {"/stop it", CHAT_NONE, ""},
        {"/newer", CHAT_NONE, ""},
        {"/linkABC", CHAT_NONE, ""},
        {"/ new", CHAT_NONE, ""},
        {"/", CHAT_NONE, ""},
        {"/usr/bin", CHAT_NONE, ""},
        {"新对话", CHAT_NONE, ""},
        {"停止", CHAT_NONE, ""},
        {"help", CHAT_NONE, ""},
        {"say /new", CHAT_NONE, ""},
        {"", CHAT_NONE, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        str rest = STR("untouched");
        if (command_read(str_c(cases[i].text), &rest) != cases[i].command)
            fail_msg("%s", cases[i].text);
        assert_str(rest, str_c(cases[i].rest));
    }
}

int test_reply(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),     cmocka_unit_test(who_is_answered), cmocka_unit_test(one_code),
        cmocka_unit_test(quotes),    cmocka_unit_test(buttons),         cmocka_unit_test(held),
        cmocka_unit_test(holds),     cmocka_unit_test(english),         cmocka_unit_test(hostile),
        cmocka_unit_test(many_open), cmocka_unit_test(commands),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenes of the demo model, played through without waiting: what its script answers is a function
 * of the request. The stage below does what the agent does between two turns: it makes the request
 * with context_make, gives each call the result of the row, takes over a plan that is accepted, and
 * goes from step to step of it.
 */
#include <stdio.h>
#include <string.h>

#include "agent/core/context.h"
#include "agent/core/interaction.h"
#include "agent/core/plan.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check.h"
#include "model/script.h"
#include "model/story.h"
#include "ui/compile.h"

enum { ACTS_MAX = 12, ROWS_MAX = 32 };

/* One turn of the model: a call of `tool` whose arguments hold `part`, or, without a tool, a text
 * that holds it. `result` is what the call gets. */
struct act {
    const char *tool, *part, *result;
};

enum { NO_ASK = 1, NO_PLAN = 2, NO_READ = 4, NO_WRITE = 8, NO_DELETE = 16 };

struct drama {
    const char *said;
    unsigned without;
    const char *zone;
    struct act acts[ACTS_MAX];
};

#define ACCEPTED "accepted" /* result of a plan that becomes the state's */
/* What the agent tells the model: TEXTS in agent/core/texts.h. */
#define REJECTED_EN  "The user rejected this call and said: not on Monday"
#define REJECTED_ZH  "用户拒绝了这个操作，并说：周一不行"
#define SKIPPED_EN   "The user skipped this question"
#define SKIPPED_ZH   "用户跳过了这个问题"
#define CANCELLED_EN "The user did not answer; cancelled"
#define CANCELLED_ZH "用户未回答，操作已取消"
#define EXPIRED_EN   "The time to answer has passed; not done"
#define EXPIRED_ZH   "等待回答已过期，未执行"
#define HAPPENED_EN  "The user confirms that it happened; its result is not known"
#define HAPPENED_ZH  "用户确认操作已发生；其返回结果未知"
#define UNKNOWN_EN   "Outcome unknown; it may have happened"
#define UNKNOWN_ZH   "结果未知，可能已执行"
#define LOOK_WEEK    "{\"from\":\"2026-11-15T00:00:00+08:00\",\"to\":\"2026-11-22T00:00:00+08:00\"}"
#define WRITTEN(title, end, conflicts)                                                        \
    "{\"id\":\"evt_1\",\"title\":\"" title "\",\"start_time\":\"2026-11-16T15:00:00+08:00\"," \
    "\"end_time\":\"2026-11-16T" end ":00+08:00\",\"conflicts\":[" conflicts "]}"
#define EVENTS                                                                                     \
    "{\"count\":2,\"events\":[{\"id\":\"e1\",\"title\":\"Lunch | Bob\",\"start_time\":"            \
    "\"2026-11-17T12:00:00+08:00\",\"end_time\":\"2026-11-17T13:00:00+08:00\",\"location\":"       \
    "\"Café\"},{\"id\":\"e2\",\"title\":\"周会\",\"start_time\":\"2026-11-18T09:00:00+08:00\"," \
    "\"end_time\":\"2026-11-18T10:00:00+08:00\"}],\"from\":\"x\",\"to\":\"y\"}"
#define NO_EVENTS "{\"count\":0,\"events\":[],\"from\":\"x\",\"to\":\"y\"}"

/* clang-format off */
static const struct drama dramas[] = {
    /* A meeting. */
    {"Please book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "{\"question\":\"How long shall the meeting be?\",\"choices\":[{\"label\":\"30 minutes\",\"description\":\"A short one, for one question\"},{\"label\":\"1 hour\",\"description\":", "1 hour"},
      {"calendar_write", "{\"title\":\"Review meeting\",\"start_time\":\"2026-11-16T15:00:00+08:00\",\"end_time\":\"2026-11-16T16:00:00+08:00\"}",
       WRITTEN("Review meeting", "16:00", "")},
      {NULL, "It is in your calendar: “Review meeting”, tomorrow from 15:00 to 16:00.\n", NULL}}},
    {"帮我约明天下午三点的评审会", 0, "Asia/Shanghai",
     {{"ask_user", "{\"question\":\"会议多长？\",\"choices\":[{\"label\":\"30 分钟\",\"description\":\"短会，谈一个问题\"},{\"label\":\"1 小时\",", "1 小时"},
      {"calendar_write", "{\"title\":\"评审会\",\"start_time\":\"2026-11-16T15:00:00+08:00\",\"end_time\":\"2026-11-16T16:00:00+08:00\"}",
       WRITTEN("评审会", "16:00", "")},
      {NULL, "已为你约好明天 15:00 到 16:00 的「评审会」。\n", NULL}}},
    {"schedule a review meeting", 0, "America/New_York",
     {{"ask_user", "How long", "45 minutes"},
      {"calendar_write", "\"start_time\":\"2026-11-16T15:00:00-05:00\",\"end_time\":\"2026-11-16T15:45:00-05:00\"",
       "{\"title\":\"X\",\"start_time\":\"2026-12-01T09:00:00-05:00\",\"end_time\":\"2026-12-01T09:45:00-05:00\"}"},
      {NULL, "“X”, 2026-12-01 from 09:00 to 09:45.\n", NULL}}}, /* edited by the person */
    {"Arrange a call", 0, "",
     {{"ask_user", "How long", "90"},
      {"calendar_write", "{\"title\":\"Call\",\"start_time\":\"2026-11-16T15:00:00+00:00\",\"end_time\":\"2026-11-16T16:30:00+00:00\"}",
       WRITTEN("Call", "16:30", "")},
      {NULL, "tomorrow from 15:00 to 16:30 (UTC).", NULL}}},
    {"安排评审会", 0, "",
     {{"ask_user", "会议多长", "半小时"},
      {"calendar_write", "\"end_time\":\"2026-11-16T15:30:00+00:00\"}", WRITTEN("评审会", "15:30", "")},
      {NULL, "明天 15:00 到 15:30（UTC） 的「评审会」", NULL}}},
    {"book a meeting", 0, "Asia/Shanghai", /* overlapping */
     {{"ask_user", "How long", "30 minutes"},
      {"calendar_write", "\"title\":\"Meeting\"",
       WRITTEN("Meeting", "15:30", "{\"id\":\"e\",\"title\":\"Lunch\",\"start_time\":\"2026-11-16T15:00:00+08:00\",\"end_time\":\"2026-11-16T17:00:00+08:00\"}")},
      {NULL, "overlaps with 1 other event(s), such as “Lunch”, tomorrow from 15:00 to 17:00.", NULL}}},
    {"约会议", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", "30 分钟"},
      {"calendar_write", "\"title\":\"会议\"",
       WRITTEN("会议", "15:30", "{\"id\":\"e\",\"title\":\"午饭\",\"start_time\":\"2026-11-16T15:00:00+08:00\",\"end_time\":\"2026-11-16T17:00:00+08:00\"}")},
      {NULL, "注意：它与 1 个日程时间重叠，例如明天 15:00 到 17:00 的「午饭」。", NULL}}},
    /* The entry is turned down, or fails. */
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", "1 hour"}, {"calendar_write", "Review", REJECTED_EN},
      {NULL, "You turned it down, so nothing was put into your calendar:\n\n> " REJECTED_EN "\n\nShall it be another time", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", "1 小时"}, {"calendar_write", "评审会", REJECTED_ZH},
      {NULL, "你没有同意，所以日程里什么也没有添加：\n\n> " REJECTED_ZH "\n\n要换个时间", NULL}}},
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", "1 hour"}, {"calendar_write", "Review", "the calendar is full: delete old events first"},
      {NULL, "It did not work, and nothing was put into your calendar:\n\n> the calendar is full", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", "1 小时"}, {"calendar_write", "评审会", "日历已满：请先删除旧日程"},
      {NULL, "没有成功，日程里什么也没有添加：\n\n> 日历已满", NULL}}},
    /* The question is skipped, cancelled, or answered with something else. */
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", SKIPPED_EN}, {"calendar_write", "\"end_time\":\"2026-11-16T15:30:00+08:00\"", WRITTEN("M", "15:30", "")},
      {NULL, "It is in your calendar", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", SKIPPED_ZH}, {"calendar_write", "\"end_time\":\"2026-11-16T15:30:00+08:00\"", WRITTEN("M", "15:30", "")},
      {NULL, "已为你约好", NULL}}},
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", CANCELLED_EN}, {NULL, "nothing was booked", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", CANCELLED_ZH}, {NULL, "那就不约了", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", "随便"}, {"calendar_write", "T15:30:00", WRITTEN("M", "15:30", "")}, {NULL, "已为你约好", NULL}}},
    {"book a review meeting", 0, "Asia/Shanghai", {{"ask_user", "How long", EXPIRED_EN}, {NULL, "nothing was booked", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai", {{"ask_user", "会议多长", EXPIRED_ZH}, {NULL, "那就不约了", NULL}}},
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", "1 hour"}, {"calendar_write", "Review", EXPIRED_EN}, {NULL, "You turned it down", NULL}}},
    /* It may have happened. */
    {"book a review meeting", 0, "Asia/Shanghai",
     {{"ask_user", "How long", "1 hour"}, {"calendar_write", "Review", HAPPENED_EN}, {NULL, "look into your calendar yourself:\n\n> " HAPPENED_EN "\n", NULL}}},
    {"帮我约个评审会", 0, "Asia/Shanghai",
     {{"ask_user", "会议多长", "1 小时"}, {"calendar_write", "评审会", UNKNOWN_ZH}, {NULL, "请自己看一下日程：\n\n> " UNKNOWN_ZH "\n", NULL}}},
    {"plan a trip", 0, "", {{"submit_plan", "the trip", ACCEPTED}, {"calendar_read", "from", NO_EVENTS}, {NULL, "Nothing is in", NULL},
      {"calendar_write", "Prepare", UNKNOWN_EN}, {NULL, "look into your calendar yourself", NULL}, {NULL, "To prepare", NULL},
      {NULL, "- `calendar_write` left no result: " UNKNOWN_EN "\n", NULL}}},
    {"做个旅行计划", 0, "", {{"submit_plan", "旅行", ACCEPTED}, {"calendar_read", "from", NO_EVENTS}, {NULL, "日程是空的", NULL},
      {"calendar_write", "准备", HAPPENED_ZH}, {NULL, "请自己看一下日程", NULL}, {NULL, "要准备", NULL},
      {NULL, "- `calendar_write` 没有留下结果：" HAPPENED_ZH "\n", NULL}}},
    {"delete my meeting", 0, "", {{"calendar_delete", "evt", UNKNOWN_EN}, {NULL, "look into your calendar yourself", NULL}}},
    {"删除日程", 0, "", {{"calendar_delete", "evt", HAPPENED_ZH}, {NULL, "请自己看一下日程", NULL}}},
    /* Without its tools. */
    {"book a review meeting", NO_ASK, "Asia/Shanghai",
     {{"calendar_write", "T15:30:00", WRITTEN("M", "15:30", "")}, {NULL, "It is in your calendar", NULL}}},
    {"帮我约个评审会", NO_ASK, "Asia/Shanghai",
     {{"calendar_write", "T15:30:00", WRITTEN("M", "15:30", "")}, {NULL, "已为你约好", NULL}}},
    {"book a review meeting", NO_WRITE, "", {{NULL, "needs the tool `calendar_write`, which this agent does not have", NULL}}},
    {"帮我约个评审会", NO_WRITE, "", {{NULL, "需要工具 `calendar_write`", NULL}}},

    /* A plan. */
    {"Plan a trip to Paris", 0, "Asia/Shanghai",
     {{"submit_plan", "{\"steps\":[{\"content\":\"Look at the calendar of the coming week\",\"done_when\":\"It is known what stands in the way\"},{\"content\":\"Block two hours tomorrow to prepare the trip\",\"done_when\":\"The calendar has the entry\"},{\"content\":\"Write down what to prepare for the trip\",\"done_when\":\"There is a list\"}]}", ACCEPTED},
      {"calendar_read", LOOK_WEEK, EVENTS},
      {NULL, "| when | what | where |\n|---|---|---|\n| 2026-11-17 12:00–13:00 | Lunch   Bob | Café |\n| 2026-11-18 09:00–10:00 | 周会 |  |\n", NULL},
      {"calendar_write", "{\"title\":\"Prepare the trip\",\"start_time\":\"2026-11-16T15:00:00+08:00\",\"end_time\":\"2026-11-16T17:00:00+08:00\"}", WRITTEN("Prepare the trip", "17:00", "")},
      {NULL, "It is in your calendar: “Prepare the trip”, tomorrow from 15:00 to 17:00.", NULL},
      {NULL, "To prepare the trip:\n\n1. ", NULL},
      {NULL, "**What came of the plan**\n\n- The calendar of the coming week has 2 event(s).\n- In the calendar now: “Prepare the trip”, tomorrow from 15:00 to 17:00.\n- The list", NULL}}},
    {"帮我规划一次发布", 0, "Asia/Shanghai",
     {{"submit_plan", "{\"steps\":[{\"content\":\"查看日程：接下来一周\",\"done_when\":\"知道哪些时间有安排\"},{\"content\":\"预留两小时，明天准备发布\",\"done_when\":\"日程里有这一项\"},{\"content\":\"列出要准备的事项：发布\",\"done_when\":\"有一份清单\"}]}", ACCEPTED},
      {"calendar_read", LOOK_WEEK, "没有日程\n" NO_EVENTS}, /* words for people stand before it */
      {NULL, "接下来七天，你的日程是空的。\n", NULL},
      {"calendar_write", "{\"title\":\"准备发布\",", WRITTEN("准备发布", "17:00", "")},
      {NULL, "已为你约好明天 15:00 到 17:00 的「准备发布」。\n", NULL},
      {NULL, "为发布要准备：\n\n1. ", NULL},
      {NULL, "**计划的结果**\n\n- 接下来一周有 0 个日程。\n- 已加入日程：明天 15:00 到 17:00 的「准备发布」。\n- 要准备的事项", NULL}}},
    {"plan the launch", 0, "Asia/Shanghai", /* a step is turned down, another fails; the plan goes on */
     {{"submit_plan", "prepare the launch", ACCEPTED}, {"calendar_read", "from", "the calendar cannot be used now"},
      {NULL, "I could not read your calendar: the calendar cannot be used now\n", NULL},
      {"calendar_write", "Prepare the launch", REJECTED_EN}, {NULL, "You turned it down", NULL}, {NULL, "To prepare the launch", NULL},
      {NULL, "- `calendar_read` did not work: the calendar cannot be used now\n- `calendar_write` was turned down: " REJECTED_EN "\n", NULL}}},
    {"做个旅行计划", 0, "Asia/Shanghai",
     {{"submit_plan", "准备旅行", ACCEPTED}, {"calendar_read", "from", "日历暂时无法使用"}, {NULL, "没能读到你的日程：日历暂时无法使用\n", NULL},
      {"calendar_write", "准备旅行", REJECTED_ZH}, {NULL, "你没有同意", NULL}, {NULL, "为旅行要准备", NULL},
      {NULL, "- `calendar_read` 没有成功：日历暂时无法使用\n- `calendar_write` 没有获得同意：" REJECTED_ZH "\n", NULL}}},
    {"plan a party", 0, "", {{"submit_plan", "the event", REJECTED_EN}, {NULL, "nothing was done:\n\n> " REJECTED_EN, NULL}}},
    {"做个工作计划", 0, "", {{"submit_plan", "这项工作", REJECTED_ZH}, {NULL, "计划没有执行：\n\n> " REJECTED_ZH, NULL}}},
    {"plan a trip", 0, "", {{"submit_plan", "the trip", CANCELLED_EN}, {NULL, "nothing was done", NULL}}},
    {"plan a trip", NO_PLAN, "", {{NULL, "needs the tool `submit_plan`", NULL}}},
    {"做个计划", NO_PLAN, "", {{NULL, "需要工具 `submit_plan`", NULL}}},
    {"plan a trip", NO_READ | NO_WRITE, "",
     {{"submit_plan", "the trip", ACCEPTED}, {NULL, "needs the tool `calendar_read`", NULL}, {NULL, "needs the tool `calendar_write`", NULL},
      {NULL, "To prepare the trip", NULL}, {NULL, "**What came of the plan**\n\n- The list", NULL}}},

    /* Deleting fails. */
    {"Delete my meeting", 0, "Asia/Shanghai",
     {{"calendar_delete", "{\"id\":\"evt_demo_unknown\"}", "Error: there is no event evt_demo_unknown"},
      {"ask_user", "{\"question\":\"The event could not be deleted (there is no event evt_demo_unknown). What shall I do?\",\"choices\":[{\"label\":\"Show my calendar\"", "Show my calendar"},
      {"calendar_read", LOOK_WEEK, EVENTS},
      {NULL, "| Lunch   Bob | Café |\n| 2026-11-18 09:00–10:00 | 周会 |  |\n\nNo event was deleted. Tell me which one", NULL}}},
    {"删除日程", 0, "Asia/Shanghai",
     {{"calendar_delete", "{\"id\":\"evt_demo_unknown\"}", "错误：没有日程 evt_demo_unknown"},
      {"ask_user", "{\"question\":\"日程没有删掉（没有日程 evt_demo_unknown）。接下来怎么办？\",\"choices\":[{\"label\":\"查看日程\"", "查看日程"},
      {"calendar_read", LOOK_WEEK, NO_EVENTS},
      {NULL, "你的日程是空的。\n\n没有删除任何日程。", NULL}}},
    {"delete my meeting", 0, "", {{"calendar_delete", "evt", "no"}, {"ask_user", "What shall I do?", "Leave it"}, {NULL, "No event was deleted.", NULL}}},
    {"取消会议", 0, "", {{"calendar_delete", "evt", "不行"}, {"ask_user", "怎么办", "不删了"}, {NULL, "没有删除任何日程", NULL}}},
    {"delete my meeting", 0, "", {{"calendar_delete", "evt", "no"}, {"ask_user", "What shall", SKIPPED_EN}, {NULL, "No event was deleted.", NULL}}},
    {"删除日程", 0, "", {{"calendar_delete", "evt", "不行"}, {"ask_user", "怎么办", SKIPPED_ZH}, {NULL, "没有删除任何日程", NULL}}},
    {"delete my meeting", 0, "", {{"calendar_delete", "evt", "no"}, {"ask_user", "What shall", CANCELLED_EN}, {NULL, "No event was deleted.", NULL}}},
    {"删除日程", 0, "", {{"calendar_delete", "evt", "不行"}, {"ask_user", "怎么办", CANCELLED_ZH}, {NULL, "没有删除任何日程", NULL}}},
    {"delete my meeting", 0, "", {{"calendar_delete", "evt", REJECTED_EN}, {NULL, "You turned it down, so nothing was deleted", NULL}}},
    {"删除日程", 0, "", {{"calendar_delete", "evt", REJECTED_ZH}, {NULL, "你没有同意，所以什么也没有删除", NULL}}},
    {"remove the event", 0, "", {{"calendar_delete", "evt", "{\"id\":\"e1\"}"}, {NULL, "The event is deleted.", NULL}}}, /* edited */
    {"删掉会议", 0, "", {{"calendar_delete", "evt", "{\"id\":\"e1\"}"}, {NULL, "日程已删除。", NULL}}},
    {"delete my meeting", NO_ASK, "", {{"calendar_delete", "evt", "no such event"}, {NULL, "as I may not ask here, I leave it at that:\n\n> no such event", NULL}}},
    {"删除日程", NO_ASK, "", {{"calendar_delete", "evt", "没有这个日程"}, {NULL, "这里不能向你提问，我就不再继续了：\n\n> 没有这个日程", NULL}}},
    {"delete my meeting", NO_READ, "", {{"calendar_delete", "evt", "no"}, {"ask_user", "What", "show it"}, {NULL, "`calendar_read`", NULL}}},
    {"delete my meeting", NO_DELETE, "", {{NULL, "`calendar_delete`", NULL}}},
    {"删除日程", NO_DELETE, "", {{NULL, "`calendar_delete`", NULL}}},

    /* The calendar. */
    {"What's on my calendar?", 0, "Asia/Shanghai", {{"calendar_read", LOOK_WEEK, EVENTS}, {NULL, "the coming seven days:\n\n| when |", NULL}}},
    {"我的日程", 0, "Asia/Shanghai", {{"calendar_read", LOOK_WEEK, EVENTS}, {NULL, "接下来七天的日程：\n\n| 时间 | 日程 | 地点 |\n", NULL}}},
    {"show my schedule", 0, "", {{"calendar_read", "+00:00", NO_EVENTS}, {NULL, "Nothing is in your calendar", NULL}}},
    {"我的日程安排", 0, "", {{"calendar_read", "+00:00", "日历暂时无法使用"}, {NULL, "没能读到你的日程：日历暂时无法使用", NULL}}},
    {"what is on my calendar", NO_READ, "", {{NULL, "`calendar_read`", NULL}}},
    {"看看日程", NO_READ, "", {{NULL, "需要工具 `calendar_read`", NULL}}},
};
/* clang-format on */

/* ---- the stage ---- */

/* The next turn: text, a call, or both. */
struct demo_reply {
    str text, tool, args;
};

static struct script *demo;

static int open_demo(void **unused)
{
    (void)unused;
    struct fault fault = {0};
    if (script_parse("demo.script", demo_script, &demo, &fault)) fail_msg("%s", fault.text);
    return 0;
}

static int close_demo(void **unused)
{
    (void)unused;
    script_free(demo);
    return 0;
}

static void look(struct arena *arena, const struct model_request *request,
                 struct demo_reply *ret_reply)
{
    struct play play;
    assert_true(script_answer(demo, request, arena, &play));
    assert_int_equal(play.end, MODEL_DONE);
    *ret_reply = (struct demo_reply){.text = STR_EMPTY, .tool = STR_EMPTY, .args = STR_EMPTY};
    for (size_t i = 0; i < play.count; i++) {
        const struct piece *piece = &play.pieces[i];
        if (piece->kind == PIECE_TEXT) ret_reply->text = piece->bytes;
        if (piece->kind == PIECE_CALL) ret_reply->tool = piece->name;
        if (piece->kind == PIECE_CALL) ret_reply->args = piece->bytes;
    }
}

static const struct tool tools[] = {
    {.name = STR("calendar_read"), .description = STR("x"), .schema = STR("{}")},
    {.name = STR("calendar_write"), .description = STR("x"), .schema = STR("{}"), .write = true},
    {.name = STR("calendar_delete"), .description = STR("x"), .schema = STR("{}"), .write = true},
};

struct scenery {
    const struct drama *drama;
    struct arena arena;
    struct agent agent;
    const struct tool *tools[COUNT(tools)];
    struct state state;
    enum node node;
    struct message rows[ROWS_MAX];
    size_t count;
    size_t calls;
};

static struct message *add_row(struct scenery *s, str role, str plain)
{
    assert_true(s->count < ROWS_MAX);
    struct message *row = &s->rows[s->count++];
    *row = (struct message){.seq = (int64_t)s->count,
                            .id = arena_printf(&s->arena, "m%zu", s->count),
                            .role = role,
                            .run_id = STR("r1"),
                            .metadata = STR("{}"),
                            .plain = arena_str(&s->arena, plain)};
    return row;
}

static void open_scenery(struct scenery *s, const struct drama *drama)
{
    *s = (struct scenery){.drama = drama, .node = NODE_CHAT};
    arena_init(&s->arena);
    s->agent =
        (struct agent){.ask_user = !(drama->without & NO_ASK),
                       .plan = drama->without & NO_PLAN ? PLAN_NEVER : PLAN_AUTO,
                       .prompt =
                           STR("Since 2020-01-01 10:00 UTC\nin Asia/Tokyo: be kind. [current] ")};
    for (size_t i = 0; i < COUNT(tools); i++)
        if (!(drama->without & (NO_READ << i))) s->tools[s->agent.tool_count++] = &tools[i];
    s->agent.tools = s->tools;
    s->state = (struct state){.trace_id = STR("r1"),
                              .user_id = STR("local"),
                              .locale = story_language(str_c(drama->said)) == CHINESE ? STR("zh-CN")
                                                                                      : STR("en")};
    add_row(s, STR("user"), STR("Book a meeting and plan a trip")); /* an earlier one */
    add_row(s, STR("assistant"), STR("No."));
    add_row(s, STR("user"), str_c(drama->said));
}

static void next_reply(struct scenery *s, struct arena *arena, struct demo_reply *ret_reply)
{
    struct message_list list = {.messages = s->rows, .count = s->count};
    struct context context;
    context_make(arena,
                 &(struct context_source){.agent = &s->agent,
                                          .state = &s->state,
                                          .node = s->node,
                                          .messages = &list,
                                          .now = 1794721970000, /* 2026-11-15T05:52:50Z */
                                          .timezone = str_c(s->drama->zone)},
                 &context);
    struct model_request request = {.system = context.system,
                                    .messages = context.messages,
                                    .count = context.count,
                                    .tools = context.tools,
                                    .round = 1};
    look(arena, &request, ret_reply);
}

/* Its steps become the state's, as they were submitted. */
static void accept_plan(struct scenery *s, str args)
{
    struct json *plan;
    assert_int_equal(json_parse(&s->arena, arena_str(&s->arena, args), &plan, NULL), OK);
    const struct json *steps = json_get(plan, STR("steps"));
    s->state.plan.steps = arena_array(&s->arena, steps->count, sizeof *s->state.plan.steps);
    for (const struct json *step = steps->child; step; step = step->next)
        s->state.plan.steps[s->state.plan.count++] =
            (struct plan_step){.content = json_text(json_get(step, STR("content"))),
                               .done_when = json_text(json_get(step, STR("done_when")))};
    s->state.plan.steps[0].status = STEP_RUNNING;
    s->node = NODE_EXECUTE;
}

static void add_call(struct scenery *s, const struct demo_reply *reply, const struct act *act)
{
    struct buf out;
    struct json_writer w;
    buf_init(&out, 64 * 1024);
    json_write_begin(&w, &out);
    json_array(&w);
    json_object(&w);
    str id = arena_printf(&s->arena, "call_%zu", ++s->calls);
    json_member(&w, STR("id"), id);
    json_member(&w, STR("type"), STR("function"));
    json_key(&w, STR("function"));
    json_object(&w);
    json_member(&w, STR("name"), reply->tool);
    json_member(&w, STR("arguments"), reply->args);
    json_object_end(&w);
    json_object_end(&w);
    json_array_end(&w);
    add_row(s, STR("assistant"), reply->text)->tool_calls = arena_str(&s->arena, buf_str(&out));
    buf_done(&out);
    add_row(s, STR("tool"), str_c(act->result))->metadata =
        arena_printf(&s->arena, "{\"tool_call_id\":\"%.*s\"}", STR_ARG(id));
    if (strcmp(act->result, ACCEPTED) == 0) accept_plan(s, reply->args);
}

static void end_step(struct scenery *s, const struct demo_reply *reply)
{
    add_row(s, STR("assistant"), reply->text);
    if (plan_active(&s->state)) plan_move_on(&s->arena, &s->state);
    if (!plan_active(&s->state)) s->node = NODE_DELIVER;
}

static void assert_reply(const struct drama *drama, size_t n, const struct demo_reply *reply)
{
    const struct act *act = &drama->acts[n];
    str got = act->tool ? reply->args : reply->text;
    if (!str_eq(reply->tool, str_c(act->tool)) || str_find(got, str_c(act->part)) < 0)
        fail_msg("\"%s\", turn %zu: got %.*s \"%.*s\" \"%.*s\", expected %s \"%s\"", drama->said, n,
                 STR_ARG(reply->tool), STR_ARG(reply->args), STR_ARG(reply->text),
                 act->tool ? act->tool : "text", act->part);
    assert_true(utf8_valid(reply->text) && utf8_valid(reply->args));
    if (reply->text.len) assert_int_equal(reply->text.p[reply->text.len - 1], '\n');
    if (story_language(str_c(drama->said)) == CHINESE && reply->text.len)
        assert_int_equal(story_language(reply->text), CHINESE);
}

static void scenes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(dramas); i++) {
        struct scenery scenery;
        open_scenery(&scenery, &dramas[i]);
        for (size_t n = 0; n < ACTS_MAX && dramas[i].acts[n].part; n++) {
            AUTO(arena_done) struct arena arena;
            arena_init(&arena);
            struct demo_reply reply;
            next_reply(&scenery, &arena, &reply);
            assert_reply(&dramas[i], n, &reply);
            if (reply.tool.len)
                add_call(&scenery, &reply, &dramas[i].acts[n]);
            else
                end_step(&scenery, &reply);
        }
        arena_done(&scenery.arena);
    }
}

/* A plan that a person has rewritten: a step that it does not know is named, and the plan goes on. */
static void edited_plan(void **unused)
{
    (void)unused;
    static const struct drama drama = {"plan a trip", 0, "", {{"submit_plan", "steps", ACCEPTED}}};
    struct scenery scenery;
    open_scenery(&scenery, &drama);
    struct demo_reply reply;
    next_reply(&scenery, &scenery.arena, &reply);
    add_call(&scenery, &reply, &drama.acts[0]);
    scenery.state.plan.steps[0].content = STR("Buy a hat");
    next_reply(&scenery, &scenery.arena, &reply);
    assert_int_equal(reply.tool.len, 0);
    assert_true(str_find(reply.text, STR("I can only name it: Buy a hat")) >= 0);
    end_step(&scenery, &reply);
    next_reply(&scenery, &scenery.arena, &reply);
    assert_str(reply.tool, STR("calendar_write"));
    arena_done(&scenery.arena);
}

/* ---- requests of any shape ---- */

/* Which messages begin a scene; without tools it says which one it would need. */
static void triggers(void **unused)
{
    (void)unused;
    static const struct {
        const char *said, *part;
    } rows[] = {
        {"book a review meeting", "calendar_write"},
        {"BOOK A MEETING", "calendar_write"},
        {"can you set up a call with Bob?", "calendar_write"},
        {"约会议", "calendar_write"},
        {"安排评审会", "calendar_write"},
        {"帮我约张三", "calendar_write"},
        {"plan a trip", "submit_plan"},
        {"plan our product launch", "submit_plan"},
        {"规划一下", "submit_plan"},
        {"cancel the meeting that you scheduled", "calendar_delete"},
        {"请删除我的日程", "calendar_delete"},
        {"what’s on my calendar", "calendar_read"},
        {"我的日程", "calendar_read"},
        {"看看今天有什么安排", "calendar_read"},
        {"Show me a card", "show_card"},
        {"make a form, please", "show_card"},
        {"卡片", "show_card"},
        {"给我看表单", "show_card"},
        {"my credit card", "You wrote"},
        {"show me the platform", "You wrote"},
        {"book a room", "You wrote"},
        {"read a book about meetings", "You wrote"},
        {"订个会议室", "你写道"},
        {"大约多少钱", "你写道"},
        {"planet trip", "You wrote"},
        {"delete the file", "You wrote"},
        {"my calendar", "You wrote"},
        {"你会什么", "只有几条规则"},
        {"", "You wrote"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct model_message message = {.role = STR("user"), .text = str_c(rows[i].said)};
        struct demo_reply reply;
        look(&arena, &(struct model_request){.messages = &message, .count = 1}, &reply);
        assert_int_equal(reply.tool.len, 0);
        if (str_find(reply.text, str_c(rows[i].part)) < 0)
            fail_msg("\"%s\": got \"%.*s\", expected \"%s\"", rows[i].said, STR_ARG(reply.text),
                     rows[i].part);
    }
}

/* A card goes with a text, in one turn, and the compiler takes it. */
static void cards(void **unused)
{
    (void)unused;
#define READ "{\"name\":\"calendar_read\"},"
    static const struct {
        const char *said, *text, *tools;
        const char *parts[6]; /* of the hints, in this order */
    } rows[] = {
        {"Show me a card",
         "Here is a card with a list.",
         READ,
         {"{\"version\":\"2.1\",\"intent\":\"list\",\"status\":\"info\",\"title\":\"Things to "
          "try\"",
          "{\"title\":\"Show me a status card\"",
          "{\"type\":\"copy\",\"content\":\"Show me a status card\",",
          "{\"type\":\"tool\",\"toolId\":\"calendar_read\",\"params\":"
          "{\"from\":\"2026-11-15T00:00:00+08:00\",\"to\":\"2026-11-22T00:00:00+08:00\"}}",
          "{\"type\":\"url\",\"url\":\"/api/v1/agent/calendar.ics\"}"}},
        {"给我看卡片",
         "这是一张列表卡片。",
         READ,
         {"\"title\":\"可以试试\"", "\"content\":\"给我看状态卡片\"", "\"content\":\"给我看表单\"",
          "\"toolId\":\"calendar_read\""}},
        {"give me a list card",
         "a card with a list",
         "",
         {"\"subtitle\":\"A call", "\"type\":\"url\""}},
        {"Show me a status card",
         "Here is a status card.",
         READ,
         {"{\"version\":\"2.1\",\"intent\":\"status\",\"status\":\"success\"",
          "\"value\":\"2026-11-15\"", "\"value\":\"UTC+08:00\"", "\"value\":2}]}"}},
        {"展示状态卡片",
         "这是一张状态卡片。",
         "",
         {"\"title\":\"演示模型已就绪\"", "\"label\":\"今天\",\"value\":\"2026-11-15\"",
          "\"value\":1}]}"}},
        {"Show me a form",
         "Here is a form.",
         "",
         {"{\"version\":\"2.1\",\"intent\":\"form\",",
          "{\"label\":\"Good\",\"icon\":\"thumbs-up\",\"action\":{\"type\":\"payload\",\"payload\":"
          "{\"form\":\"demo_feedback\",\"answer\":\"good\",\"label\":\"Good\"}}}",
          "\"answer\":\"so_so\"", "\"answer\":\"not_yet\""}},
        {"填个表单",
         "这是一个表单。",
         "",
         {"\"title\":\"这些卡片怎么样？\"", "\"label\":\"不错\"}}}"}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct model_message message = {.role = STR("user"), .text = str_c(rows[i].said)};
        struct model_request request = {
            .system = STR("It is 2026-11-15 05:52 UTC.\nThe zone is Asia/Shanghai"),
            .messages = &message,
            .count = 1,
            .tools = arena_printf(&arena, "[%s{\"name\":\"show_card\"}]", rows[i].tools)};
        struct demo_reply reply;
        look(&arena, &request, &reply);
        assert_str(reply.tool, STR("show_card"));
        if (!str_starts(reply.text, str_c(rows[i].text)) &&
            str_find(reply.text, str_c(rows[i].text)) < 0)
            fail_msg("\"%s\": got \"%.*s\"", rows[i].said, STR_ARG(reply.text));
        str rest = reply.args;
        for (size_t k = 0; k < COUNT(rows[i].parts) && rows[i].parts[k]; k++) {
            ptrdiff_t at = str_find(rest, str_c(rows[i].parts[k]));
            if (at < 0) fail_msg("no %s in %.*s", rows[i].parts[k], STR_ARG(reply.args));
            rest = str_drop(rest, (size_t)at);
        }
        struct json *hints = NULL;
        struct fault why = {0};
        str schema;
        assert_int_equal(json_parse(&arena, reply.args, &hints, NULL), OK);
        if (ui_compile(&arena, hints, &(struct ui_context){.locale = STR("en")}, &schema, &why))
            fail_msg("\"%s\": %s %s", rows[i].said, why.field, why.text);
        assert_int_equal(str_find(schema, STR("calendar_read")) >= 0,
                         rows[i].tools[0] && str_find(schema, STR("\"copy\"")) >= 0);
    }
#undef READ
}

/* What a button of the form sends, in either wrapping. */
static void form_sent(void **unused)
{
    (void)unused;
    static const struct {
        const char *said, *part;
    } rows[] = {
        {"{\"form\":\"demo_feedback\",\"answer\":\"good\",\"label\":\"Good\"}",
         "sent “Good”. (I am the"},
        {"{\"payload\":{\"form\":\"demo_feedback\",\"answer\":\"good\",\"label\":\"不错\"}}",
         "表单发来了“不错”"},
        {"{\"form\":\"demo_feedback\",\"label\":\"a|b\\nc\"}", "sent “a b c”"},
        {"{\"form\":\"demo_feedback\"}", "sent “”"},
        {"{\"form\":\"other\"}", "You wrote"},
        {"[\"demo_feedback\"]", "You wrote"},
        {"demo_feedback", "You wrote"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct model_message message = {.role = STR("user"), .text = str_c(rows[i].said)};
        struct demo_reply reply;
        look(&arena, &(struct model_request){.messages = &message, .count = 1}, &reply);
        if (str_find(reply.text, str_c(rows[i].part)) < 0)
            fail_msg("%s: got \"%.*s\"", rows[i].said, STR_ARG(reply.text));
    }
}

/* Whatever stands in the request, the turn is valid text. */
static void strange_requests(void **unused)
{
    (void)unused;
#define CALL(name, args)                                                   \
    "[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"" name \
    "\",\"arguments\":\"" args "\"}}]"
    static const struct {
        const char *said, *calls, *result, *system, *tools, *part;
    } rows[] = {
        {"my meeting: book it", "[{", "x", "", "[{\"name\":\"calendar_write\"}]", "calendar_write"},
        {"book a meeting", "{}", "x", "", "[{\"name\":\"ask_user\"},{\"name\":\"calendar_write\"}]",
         "ask_user"},
        {"book a meeting", "[1,null,{}]", "x", "", "[{\"name\":\"calendar_write\"}]",
         "calendar_write"},
        {"book a meeting", "[]", "x", "", "[", "`calendar_write`"},
        {"book a meeting", "[]", "x", "", "{\"a\":{\"name\":1}}", "`calendar_write`"},
        {"show my calendar", CALL("calendar_read", "{"), "{\"events\":7}", "", "", "Nothing"},
        {"show my calendar", CALL("calendar_read", "{}"),
         "{\"events\":[1,{},{\"title\":3,\"start_time\":\"x\"}]}", "", "", "|  –"},
        {"show my calendar", CALL("calendar_read", "{}"), "{}", "", "", "could not read"},
        {"show me a card", CALL("show_card", "{}"), "Error: /intent: intent is missing", "",
         "[{\"name\":\"show_card\"}]", "The card could not be shown: /intent: intent is missing"},
        {"给我看卡片", CALL("show_card", "{}"), "错误：/intent", "", "",
         "卡片没有显示出来：/intent"},
        {"show me a card", CALL("show_card", "{}"), "shown", "", "", "The card is above."},
        {"show my calendar", CALL("calendar_read", "{}"), "Error: x\n{\"events\":[]}", "", "",
         "could not read your calendar: x"},
        {"show my calendar", CALL("calendar_read", "{}"), "x\n{", "", "",
         "could not read your calendar: x"},
        {"show my calendar", CALL("calendar_read", "{}"), "", "", "", "could not read"},
        {"show my calendar", CALL("calendar_read", "{}"), "[1]", "", "", "could not read"},
        {"book a meeting", CALL("calendar_write", "{}"), "{}", "", "", "It is in your calendar"},
        {"book a meeting", CALL("calendar_write", "{}"), "{\"conflicts\":[null]}", "", "",
         "overlaps with 1"},
        {"book a meeting", CALL("calendar_write", "{}"), "a\nb|c\td", "", "", "> a b c d\n"},
        {"plan a trip", CALL("submit_plan", "{}"), "ok", "1. [current] ", "",
         "What came of the plan"},
        {"plan a trip", CALL("submit_plan", "{}"), "ok", "1. [current] x", "", "name it: x"},
    };
#undef CALL
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct model_message messages[] = {
            {.role = STR("user"), .text = str_c(rows[i].said)},
            {.role = STR("assistant"), .tool_calls = str_c(rows[i].calls)},
            {.role = STR("tool"), .text = str_c(rows[i].result), .tool_call_id = STR("c1")}};
        struct demo_reply reply;
        look(&arena,
             &(struct model_request){.messages = messages,
                                     .count = COUNT(messages),
                                     .system = str_c(rows[i].system),
                                     .tools = str_c(rows[i].tools)},
             &reply);
        assert_true(utf8_valid(reply.text) && utf8_valid(reply.args));
        str got = reply.tool.len ? reply.tool : reply.text;
        if (str_find(got, str_c(rows[i].part)) < 0)
            fail_msg("row %zu: got \"%.*s\", expected \"%s\"", i, STR_ARG(got), rows[i].part);
    }
}

/* Words without an end: titles are cut, and what stands far behind is not looked at. */
static void long_messages(void **unused)
{
    (void)unused;
    static char said[16 * STORY_MESSAGE_CHARS_MAX];
    for (int far = 0; far < 2; far++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        size_t len = far ? STORY_MESSAGE_CHARS_MAX : STORY_MESSAGE_CHARS_MAX - 15;
        memset(said, 'x', sizeof said);
        memcpy(said, "book ", 5);
        memcpy(said + len, " meeting", 8);
        struct model_message message = {.role = STR("user"), .text = {said, sizeof said}};
        if (!far) message.text.len = len + 8;
        struct demo_reply reply;
        look(&arena,
             &(struct model_request){
                 .messages = &message, .count = 1, .tools = STR("[{\"name\":\"calendar_write\"}]")},
             &reply);
        assert_str(reply.tool, far ? STR_EMPTY : STR("calendar_write"));
        assert_true(reply.args.len < 400);
    }
}

/* Long titles are cut between characters, and a table ends. */
static void many_events(void **unused)
{
    (void)unused;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    AUTO(buf_done) struct buf result;
    buf_init(&result, 1024 * 1024);
    buf_append(&result, STR("{\"events\":["));
    for (int i = 0; i < STORY_EACH_MAX + 3; i++) {
        buf_printf(&result, "%s{\"location\":\"", i ? "," : "");
        for (int c = 0; c < 300; c++) buf_append(&result, STR("😀"));
        buf_printf(&result, "\",\"title\":\"");
        for (int c = 0; c < 300; c++) buf_append(&result, STR("房"));
        buf_append(&result, STR("\",\"start_time\":\"2026-11-17T12:00:00Z\",\"end_time\":"
                                "\"2026-11-17T13:00:00Z\"}"));
    }
    buf_append(&result, STR("]}"));
    struct model_message messages[] = {
        {.role = STR("user"), .text = STR("我的日程")},
        {.role = STR("assistant"),
         .tool_calls = STR("[{\"id\":\"c1\",\"function\":{\"name\":\"calendar_read\"}}]")},
        {.role = STR("tool"), .text = buf_str(&result), .tool_call_id = STR("c1")}};
    struct demo_reply reply;
    look(&arena, &(struct model_request){.messages = messages, .count = COUNT(messages)}, &reply);
    assert_true(utf8_valid(reply.text));
    assert_true(str_ends(reply.text, STR("\n另有 3 个。\n")));
    size_t lines = 0;
    for (size_t i = 0; i < reply.text.len; i++) lines += reply.text.p[i] == '\n';
    assert_int_equal(lines, 2 + 2 + STORY_EACH_MAX + 2);
}

/* ---- words ---- */

static void lengths(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        unsigned minutes;
    } rows[] = {
        {"30 minutes", 30},
        {"30 分钟", 30},
        {"1 hour", 60},
        {"1 小时", 60},
        {"1小时", 60},
        {"1 个小时", 60},
        {"1.5 hours", 90},
        {"1.5 小时", 90},
        {"2h", 120},
        {"1h 30m", 90},
        {"1 hour 15 minutes", 75},
        {"1 小时 15 分钟", 75},
        {"45", 45},
        {"about 20 min", 20},
        {"半小时", 30},
        {"半个小时", 30},
        {"一小时", 60},
        {"一个小时", 60},
        {"一个半小时", 90},
        {"两小时吧", 120},
        {"half an hour", 30},
        {"an hour", 60},
        {"One hour please", 60},
        {"an hour and a half", 90},
        {"5", 5},
        {"8 hours", 480},
        {"4", 0},
        {"481", 0},
        {"9 hours", 0},
        {"", 0},
        {"随便", 0},
        {"99999999999999999999 hours", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (story_minutes(str_c(rows[i].text)) != rows[i].minutes)
            fail_msg("\"%s\": %u", rows[i].text, story_minutes(str_c(rows[i].text)));
}

static void titles(void **unused)
{
    (void)unused;
    static const struct {
        const char *said, *title;
    } rows[] = {
        {"book a review meeting", "Review meeting"},
        {"Please schedule the weekly product review meeting for us",
         "Weekly product review meeting"},
        {"book meeting", "Meeting"},
        {"set up a call", "Call"},
        {"Arrange my Design review", "Design review"},
        {"book a slot", "Meeting"},
        {"帮我约明天下午三点的评审会", "评审会"},
        {"安排评审会", "评审会"},
        {"约会议", "会议"},
        {"帮我约个会", "会议"},
        {"约一个产品评审会议", "产品评审会议"},
        {"安排 Q3 复盘会", "复盘会"},
        {"帮我约张三", "会议"},
        {"", "会议"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        str said = str_c(rows[i].said);
        enum language language = said.len ? story_language(said) : CHINESE;
        assert_str(story_title(&arena, said, language), str_c(rows[i].title));
    }
}

/* ---- time ---- */

static msec at(const char *text)
{
    msec wall = 0;
    assert_int_equal(clock_parse(str_c(text), &wall), OK);
    return wall;
}

static void zones(void **unused)
{
    (void)unused;
    static const struct {
        const char *zone, *at;
        int minutes;
    } rows[] = {
        {"UTC", "2026-07-01", 0},
        {"Asia/Shanghai", "2026-07-01", 480},
        {"Asia/Kolkata", "2026-01-01", 330},
        {"Europe/London", "2026-01-01", 0},
        {"Europe/London", "2026-07-01", 60},
        {"Europe/Berlin", "2026-03-28T12:00:00Z", 60}, /* the last Sunday is the 29th */
        {"Europe/Berlin", "2026-03-29T12:00:00Z", 120},
        {"Europe/Berlin", "2026-10-24T12:00:00Z", 120},
        {"Europe/Berlin", "2026-10-25T12:00:00Z", 60},
        {"Europe/Paris", "2027-10-31T12:00:00Z", 60},       /* the last of the month */
        {"America/New_York", "2026-03-07T18:00:00Z", -300}, /* the second Sunday is the 8th */
        {"America/New_York", "2026-03-08T18:00:00Z", -240},
        {"America/New_York", "2026-10-31T18:00:00Z", -240},
        {"America/New_York", "2026-11-01T18:00:00Z", -300}, /* the first of the month */
        {"America/Phoenix", "2026-07-01", -420},
        {"Australia/Sydney", "2026-01-01", 660},
        {"Australia/Sydney", "2026-07-01", 600},
        {"Australia/Sydney", "2026-10-04T12:00:00Z", 660},
        {"Australia/Sydney", "2026-04-05T12:00:00Z", 600},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool known = false;
        int minutes = story_zone_minutes(str_c(rows[i].zone), at(rows[i].at), &known);
        assert_true(known);
        if (minutes != rows[i].minutes) fail_msg("%s %s: %d", rows[i].zone, rows[i].at, minutes);
    }
    bool known = true;
    assert_int_equal(story_zone_minutes(STR("Mars/Olympus"), 0, &known), 0);
    assert_false(known);
}

static void dates(void **unused)
{
    (void)unused;
    static const struct {
        const char *system, *tomorrow;
        bool known;
    } rows[] = {
        {"- Now: 2026-11-15 05:52 UTC, Sunday\n- Time zone of the person: Asia/Shanghai\n",
         "2026-11-16T15:00:00+08:00", true},
        {"- 现在：2026-11-15 16:52 UTC，星期日\n- 对方的时区：Asia/Shanghai\n",
         "2026-11-17T15:00:00+08:00", true}, /* already the 16th there */
        {"2026-11-15 03:00 UTC\nx America/New_York", "2026-11-15T15:00:00-05:00", true},
        {"2026-12-31 12:00 UTC\nx Asia/Kolkata", "2027-01-01T15:00:00+05:30", true},
        {"2020-01-01 00:00 UTC\nx Asia/Tokyo\n2026-11-15 05:52 UTC\nunknown; take UTC, and say so",
         "2026-11-16T15:00:00+00:00", false}, /* the last one counts */
        {"2026-11-15 05:52 UTC", "2026-11-16T15:00:00+00:00", false},
        {"2026-11-15 05:52 UTC 2026-99-15 05:52 UTC", "2026-11-16T15:00:00+00:00", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct story_time time = story_time(str_c(rows[i].system));
        assert_str(story_stamp(&arena, &time, 1, 15 * 60), str_c(rows[i].tomorrow));
        assert_int_equal(time.zone_known, rows[i].known);
    }
    /* Nothing told: the clock of the machine. */
    msec before = clock_wall(&clock_system);
    struct story_time time = story_time(STR("be kind"));
    assert_true(time.now >= before && time.now <= clock_wall(&clock_system));
}

int test_demo_scenes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenes),      cmocka_unit_test(edited_plan),
        cmocka_unit_test(triggers),    cmocka_unit_test(cards),
        cmocka_unit_test(form_sent),   cmocka_unit_test(strange_requests),
        cmocka_unit_test(many_events), cmocka_unit_test(long_messages),
        cmocka_unit_test(lengths),     cmocka_unit_test(titles),
        cmocka_unit_test(zones),       cmocka_unit_test(dates),
    };
    return cmocka_run_group_tests_name("model/demo_scenes", tests, open_demo, close_demo);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenes of the demo model: small stories in which an agent asks, plans, waits for an approval,
 * fails and reports. A scene is a function from the view to the next turn. It keeps no place of its
 * own: which calls were made, and how they ended, says how far it has come.
 *
 *     meeting   ask_user (how long?) ─► calendar_write ─► report
 *     plan      submit_plan ─► calendar_read ─► text ─► calendar_write ─► text ─► text ─► report
 *     delete    calendar_delete (fails) ─► ask_user (what now?) ─► calendar_read, or not ─► report
 *     calendar  calendar_read ─► a table
 *     cards     text with show_card (demo_cards.c)
 *
 * A tool that is not offered is never called: the scene says which one it misses. Without ask_user
 * it takes the default and says so.
 *
 * To add a scene: a row in scenes[] and its function.
 */
#include "base/limits.h"
#include "model/demo.h"

enum { WORDS_MAX = 12, MEETING_HOUR = 15, MINUTES_DEFAULT = 30, PREPARE_MINUTES = 120 };

static const str ask_user = STR("ask_user");
static const str submit_plan = STR("submit_plan");
static const str calendar_read = STR("calendar_read");
static const str calendar_write = STR("calendar_write");
static const str calendar_delete = STR("calendar_delete");

/* ---- texts ---- */

str demo_fill(const struct view *v, const char *english, const char *chinese,
              const str slots[static DEMO_SLOTS])
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, DEMO_TEXT_BYTES_MAX);
    for (const char *at = v->language == CHINESE ? chinese : english; *at; at++) {
        if (at[0] == '{' && at[1] >= '1' && at[1] <= '0' + DEMO_SLOTS && at[2] == '}') {
            buf_append(&out, slots[at[1] - '1']);
            at += 2;
        } else {
            buf_char(&out, *at);
        }
    }
    assert(!out.full);
    return arena_str(v->arena, buf_str(&out));
}

static str number(const struct view *v, size_t n)
{
    return arena_printf(v->arena, "%zu", n);
}

static struct reply say(str text)
{
    return (struct reply){.text = text};
}

struct reply demo_missing(const struct view *v, str tool)
{
    return say(FILL(v,
                    "This needs the tool `{1}`, which this agent does not have, so I cannot do it. "
                    "(I am the demo model.)\n",
                    "这件事需要工具 `{1}`，而这个助手没有它，所以我做不了。（我是演示模型。）\n",
                    tool));
}

/* A result that is a sentence. */
static str reason(const struct view *v, const struct deed *deed)
{
    str text = deed->result;
    demo_is_error(&text);
    return demo_line(v->arena, text, DEMO_REASON_CHARS_MAX);
}

/* ---- arguments ---- */

void demo_args_begin(struct demo_args *args)
{
    buf_init(&args->buf, DEMO_TEXT_BYTES_MAX);
    json_write_begin(&args->w, &args->buf);
    json_object(&args->w);
}

str demo_args_end(const struct view *v, struct demo_args *args)
{
    json_object_end(&args->w);
    assert(!args->buf.full);
    str text = arena_str(v->arena, buf_str(&args->buf));
    buf_done(&args->buf);
    return text;
}

/* Two choices, each with a word on what it means. */
static struct reply ask(const struct view *v, str question, const str labels[static 2],
                        const str descriptions[static 2])
{
    struct demo_args args;
    demo_args_begin(&args);
    json_member(&args.w, STR("question"), question);
    json_key(&args.w, STR("choices"));
    json_array(&args.w);
    for (size_t i = 0; i < 2; i++) {
        json_object(&args.w);
        json_member(&args.w, STR("label"), labels[i]);
        json_member(&args.w, STR("description"), descriptions[i]);
        json_object_end(&args.w);
    }
    json_array_end(&args.w);
    return (struct reply){.tool = ask_user, .args = demo_args_end(v, &args)};
}

/* Tomorrow at three. */
static struct reply write_event(const struct view *v, str text, str title, unsigned minutes)
{
    int start = MEETING_HOUR * 60;
    struct demo_args args;
    demo_args_begin(&args);
    json_member(&args.w, STR("title"), title);
    json_member(&args.w, STR("start_time"), demo_stamp(v->arena, &v->time, 1, start));
    json_member(&args.w, STR("end_time"), demo_stamp(v->arena, &v->time, 1, start + (int)minutes));
    return (struct reply){.text = text, .tool = calendar_write, .args = demo_args_end(v, &args)};
}

static struct reply read_week(const struct view *v, str text)
{
    enum { DAYS = 7 };
    struct demo_args args;
    demo_args_begin(&args);
    json_member(&args.w, STR("from"), demo_stamp(v->arena, &v->time, 0, 0));
    json_member(&args.w, STR("to"), demo_stamp(v->arena, &v->time, DAYS, 0));
    return (struct reply){.text = text, .tool = calendar_read, .args = demo_args_end(v, &args)};
}

/* ---- what results say ---- */

/* A person's words in a table or a sentence. */
static str member_line(const struct view *v, const struct json *object, str name)
{
    return demo_line(v->arena, json_text(json_get(object, name)), DEMO_QUOTE_CHARS_MAX);
}

/* "2026-11-16T15:00:00+08:00" as "2026-11-16" and "15:00"; empty if it is no time. */
static str date_of(str stamp)
{
    return stamp.len >= 16 ? (str){stamp.p, 10} : STR_EMPTY;
}

static str hour_of(str stamp)
{
    return stamp.len >= 16 ? (str){stamp.p + 11, 5} : STR_EMPTY;
}

/* “Review”, tomorrow from 15:00 to 16:00 */
static str event_text(const struct view *v, const struct json *event)
{
    str start = member_line(v, event, STR("start_time"));
    str end = member_line(v, event, STR("end_time"));
    str day = date_of(start);
    if (str_eq(day, date_of(demo_stamp(v->arena, &v->time, 1, 0))))
        day = FILL(v, "tomorrow", "明天");
    str until =
        v->time.zone_known ? hour_of(end) : FILL(v, "{1} (UTC)", "{1}（UTC）", hour_of(end));
    return FILL(v, "“{4}”, {1} from {2} to {3}", "{1} {2} 到 {3} 的「{4}」", day, hour_of(start),
                until, member_line(v, event, STR("title")));
}

static str conflict_text(const struct view *v, const struct json *result)
{
    const struct json *conflicts = json_get(result, STR("conflicts"));
    if (!conflicts || !conflicts->child) return STR_EMPTY;
    return FILL(v, "\nMind that it overlaps with {1} other event(s), such as {2}.\n",
                "\n注意：它与 {1} 个日程时间重叠，例如{2}。\n", number(v, conflicts->count),
                event_text(v, conflicts->child));
}

static str table_text(const struct view *v, const struct json *events)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, DEMO_TABLE_ROWS_MAX * DEMO_TEXT_BYTES_MAX);
    buf_append(&out, FILL(v, "| when | what | where |\n|---|---|---|\n",
                          "| 时间 | 日程 | 地点 |\n|---|---|---|\n"));
    size_t rows = 0;
    const struct json *event = events->child;
    for (; event && rows < DEMO_TABLE_ROWS_MAX; event = event->next, rows++) {
        str start = member_line(v, event, STR("start_time"));
        str end = member_line(v, event, STR("end_time"));
        str when =
            FILL(v, "{1} {2}–{3}", "{1} {2}–{3}", date_of(start), hour_of(start), hour_of(end));
        buf_append(&out, FILL(v, "| {1} | {2} | {3} |\n", "| {1} | {2} | {3} |\n", when,
                              member_line(v, event, STR("title")),
                              member_line(v, event, STR("location"))));
    }
    if (event)
        buf_append(&out, FILL(v, "\nAnd {1} more.\n", "\n另有 {1} 个。\n",
                              number(v, events->count - rows)));
    assert(!out.full);
    return arena_str(v->arena, buf_str(&out));
}

static str calendar_text(const struct view *v, const struct deed *read)
{
    const struct json *events = json_get(read->json, STR("events"));
    if (read->ending != ENDED_WELL || !events)
        return FILL(v, "I could not read your calendar: {1}\n", "没能读到你的日程：{1}\n",
                    reason(v, read));
    if (!events->count)
        return FILL(v, "Nothing is in your calendar for the coming seven days.\n",
                    "接下来七天，你的日程是空的。\n");
    return FILL(v, "Your calendar, the coming seven days:\n\n{1}", "接下来七天的日程：\n\n{1}",
                table_text(v, events));
}

/* How a call that writes has ended. */
static str write_text(const struct view *v, const struct deed *write)
{
    if (write->ending == ENDED_WELL)
        return FILL(v, "It is in your calendar: {1}.\n{2}", "已为你约好{1}。\n{2}",
                    event_text(v, write->json), conflict_text(v, write->json));
    if (write->ending == NOT_KNOWN)
        return FILL(v, "I have no result, so please look into your calendar yourself:\n\n> {1}\n",
                    "我没有拿到结果，请自己看一下日程：\n\n> {1}\n", reason(v, write));
    if (write->ending == TURNED_DOWN)
        return FILL(v, "You turned it down, so nothing was put into your calendar:\n\n> {1}\n",
                    "你没有同意，所以日程里什么也没有添加：\n\n> {1}\n", reason(v, write));
    return FILL(v, "It did not work, and nothing was put into your calendar:\n\n> {1}\n",
                "没有成功，日程里什么也没有添加：\n\n> {1}\n", reason(v, write));
}

/* ---- a meeting ---- */

static struct reply ask_length(const struct view *v)
{
    const str labels[] = {FILL(v, "30 minutes", "30 分钟"), FILL(v, "1 hour", "1 小时")};
    const str descriptions[] = {FILL(v, "A short one, for one question", "短会，谈一个问题"),
                                FILL(v, "Time for a presentation and a discussion",
                                     "有时间介绍和讨论")};
    return ask(v, FILL(v, "How long shall the meeting be?", "会议多长？"), labels, descriptions);
}

static struct reply meeting_write(const struct view *v, const struct deed *asked)
{
    unsigned minutes = asked ? demo_minutes(asked->result) : 0;
    str text = FILL(v, "All right, I put it into the calendar, for tomorrow at 15:00.\n",
                    "好的，我来创建日程，时间是明天 15:00。\n");
    if (!minutes) {
        minutes = MINUTES_DEFAULT;
        text = asked ? FILL(v, "I take 30 minutes, then, and put it into the calendar.\n",
                            "那就按 30 分钟，我来创建日程。\n")
                     : FILL(v, "I may not ask here, so I take 30 minutes, tomorrow at 15:00.\n",
                            "这里不能向你提问，我就按 30 分钟安排，时间是明天 15:00。\n");
    }
    return write_event(v, text, demo_title(v->arena, v->said, v->language), minutes);
}

/* A question that was skipped leaves the choice to us; one that was cancelled ends the matter. */
static bool gave_up(const struct deed *asked)
{
    static const str skipped[] = {STR("skipped"), STR("跳过")};
    return asked->ending == TURNED_DOWN && !demo_has_one(asked->result, skipped, COUNT(skipped));
}

static struct reply meeting(const struct view *v)
{
    const struct deed *written = demo_deed(v, 0, calendar_write);
    bool settled = written && (written->ending == ENDED_WELL || written->ending == NOT_KNOWN);
    if (settled) return say(write_text(v, written));
    if (written)
        return say(FILL(v,
                        "{1}\nShall it be another time, another length or another title? Tell me, "
                        "and I try again.\n",
                        "{1}\n要换个时间、时长或标题吗？告诉我，我再试一次。\n",
                        write_text(v, written)));
    const struct deed *asked = demo_deed(v, 0, ask_user);
    if (asked && gave_up(asked))
        return say(
            FILL(v, "Then I leave it: nothing was booked.\n", "那就不约了，什么也没有添加。\n"));
    if (!demo_offered(v, calendar_write)) return demo_missing(v, calendar_write);
    if (!asked && demo_offered(v, ask_user)) return ask_length(v);
    return meeting_write(v, asked);
}

/* ---- a plan ---- */

/* A step is known again by its first words, so that a person may edit the plan. */
static str step_words(const struct view *v, size_t step)
{
    switch (step) {
    case 0:
        return FILL(v, "Look at the calendar", "查看日程");
    case 1:
        return FILL(v, "Block two hours", "预留两小时");
    default:
        return FILL(v, "Write down what to prepare", "列出要准备的事项");
    }
}

static str plan_subject(const struct view *v)
{
    static const struct {
        str words[LANGUAGES][4];
        str subject[LANGUAGES];
    } subjects[] = {
        {{{STR("launch"), STR("release")}, {STR("发布"), STR("上线")}},
         {STR("the launch"), STR("发布")}},
        {{{STR("party"), STR("event")}, {STR("聚会"), STR("活动")}},
         {STR("the event"), STR("活动")}},
        {{{STR("trip"), STR("travel"), STR("journey"), STR("holiday")},
          {STR("旅行"), STR("旅游"), STR("出行"), STR("出差")}},
         {STR("the trip"), STR("旅行")}},
    };
    for (size_t i = 0; i < COUNT(subjects); i++)
        if (demo_has_one(v->said, subjects[i].words[v->language], 4))
            return subjects[i].subject[v->language];
    return FILL(v, "the work", "这项工作");
}

static struct reply plan_submit(const struct view *v)
{
    str subject = plan_subject(v);
    const str steps[][2] = {
        {FILL(v, "{1} of the coming week", "{1}：接下来一周", step_words(v, 0)),
         FILL(v, "It is known what stands in the way", "知道哪些时间有安排")},
        {FILL(v, "{1} tomorrow to prepare {2}", "{1}，明天准备{2}", step_words(v, 1), subject),
         FILL(v, "The calendar has the entry", "日程里有这一项")},
        {FILL(v, "{1} for {2}", "{1}：{2}", step_words(v, 2), subject),
         FILL(v, "There is a list", "有一份清单")},
    };
    struct demo_args args;
    demo_args_begin(&args);
    json_key(&args.w, STR("steps"));
    json_array(&args.w);
    for (size_t i = 0; i < COUNT(steps); i++) {
        json_object(&args.w);
        json_member(&args.w, STR("content"), steps[i][0]);
        json_member(&args.w, STR("done_when"), steps[i][1]);
        json_object_end(&args.w);
    }
    json_array_end(&args.w);
    return (struct reply){.text = FILL(v, "Here is a plan in three steps.\n",
                                       "我拟了一个三步的计划。\n"),
                          .tool = submit_plan,
                          .args = demo_args_end(v, &args)};
}

/* Each deed of the plan in a line, as results have it. */
static struct reply plan_report(const struct view *v)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, DEMO_TABLE_ROWS_MAX * DEMO_TEXT_BYTES_MAX);
    buf_append(&out, FILL(v, "**What came of the plan**\n\n", "**计划的结果**\n\n"));
    for (size_t i = 0; i < v->count && i < DEMO_TABLE_ROWS_MAX; i++) {
        const struct deed *deed = &v->deeds[i];
        const struct json *events = json_get(deed->json, STR("events"));
        if (str_eq(deed->name, submit_plan)) continue;
        if (deed->ending == TURNED_DOWN)
            buf_append(&out, FILL(v, "- `{1}` was turned down: {2}\n",
                                  "- `{1}` 没有获得同意：{2}\n", deed->name, reason(v, deed)));
        else if (deed->ending == NOT_KNOWN)
            buf_append(&out, FILL(v, "- `{1}` left no result: {2}\n", "- `{1}` 没有留下结果：{2}\n",
                                  deed->name, reason(v, deed)));
        else if (deed->ending == ENDED_BADLY)
            buf_append(&out, FILL(v, "- `{1}` did not work: {2}\n", "- `{1}` 没有成功：{2}\n",
                                  deed->name, reason(v, deed)));
        else if (events)
            buf_append(&out, FILL(v, "- The calendar of the coming week has {1} event(s).\n",
                                  "- 接下来一周有 {1} 个日程。\n", number(v, events->count)));
        else
            buf_append(&out, FILL(v, "- In the calendar now: {1}.\n", "- 已加入日程：{1}。\n",
                                  event_text(v, deed->json)));
    }
    buf_append(&out, FILL(v, "- The list of what to prepare stands above.\n",
                          "- 要准备的事项已在上面列出。\n"));
    assert(!out.full);
    return say(arena_str(v->arena, buf_str(&out)));
}

static struct reply plan_read_step(const struct view *v)
{
    const struct deed *read = demo_deed(v, v->fresh, calendar_read);
    if (read) return say(calendar_text(v, read));
    if (!demo_offered(v, calendar_read)) return demo_missing(v, calendar_read);
    return read_week(v, STR_EMPTY);
}

static struct reply plan_write_step(const struct view *v)
{
    const struct deed *written = demo_deed(v, v->fresh, calendar_write);
    if (written) return say(write_text(v, written));
    if (!demo_offered(v, calendar_write)) return demo_missing(v, calendar_write);
    return write_event(v, STR_EMPTY, FILL(v, "Prepare {1}", "准备{1}", plan_subject(v)),
                       PREPARE_MINUTES);
}

static struct reply plan_step(const struct view *v, str step)
{
    if (str_starts(step, step_words(v, 0))) return plan_read_step(v);
    if (str_starts(step, step_words(v, 1))) return plan_write_step(v);
    if (str_starts(step, step_words(v, 2)))
        return say(FILL(v,
                        "To prepare {1}:\n\n1. Who takes part, and who decides.\n2. What it may "
                        "cost.\n3. What has to be ready the day before.\n",
                        "为{1}要准备：\n\n1. 谁参加，谁决定。\n2. 可以花多少钱。\n3. "
                        "前一天必须备好什么。\n",
                        plan_subject(v)));
    return say(FILL(v,
                    "This step is not one of mine, and as a demo model I can only name it: {1}\n",
                    "这一步不是我拟的，我是演示模型，只能把它念出来：{1}\n",
                    demo_line(v->arena, step, DEMO_QUOTE_CHARS_MAX)));
}

/* An accepted plan is the state's, and submit_plan is not offered again. */
static struct reply plan(const struct view *v)
{
    const struct deed *submitted = demo_deed(v, 0, submit_plan);
    bool offered = demo_offered(v, submit_plan);
    if (!submitted) return offered ? plan_submit(v) : demo_missing(v, submit_plan);
    if (offered)
        return say(FILL(v,
                        "The plan stays a plan, and nothing was done:\n\n> {1}\n\nTell me what "
                        "shall be different.\n",
                        "计划没有执行：\n\n> {1}\n\n告诉我要怎么改。\n", reason(v, submitted)));
    str step = demo_current_step(v);
    return step.len ? plan_step(v, step) : plan_report(v);
}

/* ---- deleting, which fails ---- */

static struct reply delete_missing_event(const struct view *v)
{
    struct demo_args args;
    demo_args_begin(&args);
    json_member(&args.w, STR("id"), STR("evt_demo_unknown"));
    return (struct reply){
        .text = FILL(v,
                     "I try to delete an event that does not exist, so that you see what a failure "
                     "looks like. (I am the demo model.)\n",
                     "我来删除一个不存在的日程，让你看看失败是什么样子。（我是演示模型。）\n"),
        .tool = calendar_delete,
        .args = demo_args_end(v, &args)};
}

static struct reply ask_what_now(const struct view *v, const struct deed *deleted)
{
    const str labels[] = {FILL(v, "Show my calendar", "查看日程"), FILL(v, "Leave it", "不删了")};
    const str descriptions[] = {FILL(v, "Then you can tell me which one you mean",
                                     "看过之后再告诉我是哪一个"),
                                FILL(v, "Nothing is changed", "什么也不改动")};
    return ask(v,
               FILL(v, "The event could not be deleted ({1}). What shall I do?",
                    "日程没有删掉（{1}）。接下来怎么办？", reason(v, deleted)),
               labels, descriptions);
}

static struct reply delete_leave(const struct view *v, const struct deed *asked)
{
    if (asked)
        return say(FILL(v, "I leave it, then. No event was deleted.\n",
                        "好的，到此为止。没有删除任何日程。\n"));
    return say(FILL(v,
                    "The event could not be deleted, and as I may not ask here, I leave it at "
                    "that:\n\n> {1}\n",
                    "日程没有删掉。这里不能向你提问，我就不再继续了：\n\n> {1}\n",
                    reason(v, demo_deed(v, 0, calendar_delete))));
}

static bool wants_to_look(const struct deed *asked)
{
    static const str words[] = {STR("show"), STR("look"), STR("see"),   STR("calendar"),
                                STR("查看"), STR("看看"), STR("看一下")};
    return asked->ending != TURNED_DOWN && demo_has_one(asked->result, words, COUNT(words));
}

static struct reply delete_event(const struct view *v)
{
    const struct deed *deleted = demo_deed(v, 0, calendar_delete);
    const struct deed *asked = demo_deed(v, 0, ask_user), *read = demo_deed(v, 0, calendar_read);
    if (!deleted)
        return demo_offered(v, calendar_delete) ? delete_missing_event(v)
                                                : demo_missing(v, calendar_delete);
    if (deleted->ending == ENDED_WELL)
        return say(FILL(v, "The event is deleted.\n", "日程已删除。\n"));
    if (deleted->ending == NOT_KNOWN)
        return say(FILL(v,
                        "I have no result, so please look into your calendar yourself:\n\n> {1}\n",
                        "我没有拿到结果，请自己看一下日程：\n\n> {1}\n", reason(v, deleted)));
    if (deleted->ending == TURNED_DOWN)
        return say(FILL(v, "You turned it down, so nothing was deleted:\n\n> {1}\n",
                        "你没有同意，所以什么也没有删除：\n\n> {1}\n", reason(v, deleted)));
    if (read)
        return say(FILL(v, "{1}\nNo event was deleted. Tell me which one you mean.\n",
                        "{1}\n没有删除任何日程。告诉我你指的是哪一个。\n", calendar_text(v, read)));
    if (!asked) return demo_offered(v, ask_user) ? ask_what_now(v, deleted) : delete_leave(v, NULL);
    if (!wants_to_look(asked)) return delete_leave(v, asked);
    return demo_offered(v, calendar_read) ? read_week(v, STR_EMPTY)
                                          : demo_missing(v, calendar_read);
}

/* ---- the calendar ---- */

static struct reply calendar(const struct view *v)
{
    const struct deed *read = demo_deed(v, 0, calendar_read);
    if (read) return say(calendar_text(v, read));
    if (!demo_offered(v, calendar_read)) return demo_missing(v, calendar_read);
    return read_week(v, FILL(v, "Let me look.\n", "我看一下。\n"));
}

/* ---- choosing ---- */

/* A message begins a scene if it has one of the verbs and one of the nouns. The first row counts:
 * "cancel the meeting that you scheduled" deletes. */
/* clang-format off */
static const struct scene {
    struct reply (*play)(const struct view *view);
    str verbs[LANGUAGES][WORDS_MAX];
    str nouns[LANGUAGES][WORDS_MAX];
} scenes[] = {
    {delete_event,
     {{STR("delete"), STR("remove"), STR("cancel")},
      {STR("删除"), STR("删掉"), STR("取消")}},
     {{STR("meeting"), STR("event"), STR("appointment"), STR("review"), STR("entry")},
      {STR("日程"), STR("会"), STR("预约")}}},
    {calendar,
     {{STR("what"), STR("whats"), STR("show"), STR("list"), STR("read"), STR("check")},
      {STR("我的"), STR("查"), STR("看"), STR("什么"), STR("哪些")}},
     {{STR("my calendar"), STR("my schedule"), STR("my agenda"), STR("my appointments")},
      {STR("日程"), STR("日历"), STR("有什么安排"), STR("哪些安排")}}},
    {meeting,
     {{STR("book"), STR("schedule"), STR("arrange"), STR("set up")},
      {STR("帮我约"), STR("约个"), STR("约一"), STR("约会议"), STR("约评审"), STR("约明"), STR("约今"),
       STR("约后"), STR("约下"), STR("预约"), STR("安排")}},
     {{STR("meeting"), STR("review"), STR("call"), STR("appointment"), STR("interview")},
      {STR("会"), STR("评审"), STR("面试"), STR("面谈"), STR("帮我约"), STR("帮我安排")}}},
    {plan,
     {{STR("plan")},
      {STR("计划"), STR("规划")}},
     {{STR("trip"), STR("travel"), STR("journey"), STR("holiday"), STR("launch"), STR("release"),
       STR("event"), STR("party")},
      {STR("计划"), STR("规划")}}},
    {demo_cards,
     {{STR("show"), STR("give"), STR("make"), STR("draw"), STR("see"), STR("fill"), STR("want")},
      {STR("看"), STR("给"), STR("来"), STR("展示"), STR("显示"), STR("填"), STR("卡片"), STR("表单")}},
     {{STR("card"), STR("cards"), STR("form")},
      {STR("卡片"), STR("表单")}}},
};
/* clang-format on */

bool demo_scene(const struct view *view, struct reply *ret_reply)
{
    if (demo_form_sent(view, ret_reply)) return true;
    for (size_t i = 0; i < COUNT(scenes); i++) {
        const struct scene *scene = &scenes[i];
        if (!demo_has_one(view->said, scene->verbs[view->language], WORDS_MAX)) continue;
        if (!demo_has_one(view->said, scene->nouns[view->language], WORDS_MAX)) continue;
        *ret_reply = scene->play(view);
        return true;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's own sentences, in Chinese and English: what the model is told of a call, and what
 * people read. Pure.
 */
#ifndef AGENT_CORE_TEXTS_H
#define AGENT_CORE_TEXTS_H

#include "base/json.h"
#include "tool/tool.h"

/* name, English, Chinese. %s stands for the argument, once or not at all. */
#define TEXTS(X)                                                                                   \
    X(TEXT_CANCELLED, "The user did not answer; cancelled", "用户未回答，操作已取消")              \
    X(TEXT_UNKNOWN, "Outcome unknown; it may have happened", "结果未知，可能已执行")               \
    X(TEXT_EXPIRED, "The time to answer has passed; not done", "等待回答已过期，未执行")           \
    X(TEXT_REJECTED, "The user rejected this call", "用户拒绝了这个操作")                          \
    X(TEXT_REJECTED_SAYING, "The user rejected this call and said: %s",                            \
      "用户拒绝了这个操作，并说：%s")                                                              \
    X(TEXT_DENIED, "The policy does not allow %s", "策略不允许调用 %s")                            \
    X(TEXT_POLICY_CHANGED, "The policy no longer allows %s; it was not run",                       \
      "策略已变更，不再允许 %s；未执行")                                                           \
    X(TEXT_BINDING, "The stored call differs from the approved one; it was not run",               \
      "存储的调用与批准的内容不一致；未执行")                                                      \
    X(TEXT_NO_TOOL, "There is no tool %s", "没有名为 %s 的工具")                                   \
    X(TEXT_TOO_MANY, "Too many approvals are open already; ask again when some are answered",      \
      "待批准的操作太多，请等部分得到答复后再试")                                                  \
    X(TEXT_ASK_OFF, "Asking the user is switched off; decide yourself or say what is missing",     \
      "向用户提问已关闭，请自行决定或说明缺少什么")                                                \
    X(TEXT_PLAN_OFF, "A plan cannot be submitted now; go on", "现在不能提交计划，请继续")          \
    X(TEXT_PLAN_FIRST, "Submit a plan first", "请先提交计划")                                      \
    X(TEXT_PLAN_APPROVED, "The user approved the plan", "用户批准了计划")                          \
    X(TEXT_PLAN_EDITED, "The user changed the plan. It is now: %s", "用户修改了计划，现在是：%s")  \
    X(TEXT_PLAN_CHANGED, "The user changed the plan and approved it", "用户修改并批准了计划")      \
    X(TEXT_EDITED, "The user changed the arguments to: %s", "用户把参数改成了：%s")                \
    X(TEXT_BAD_ARGS, "The call was not run: %s. Correct it and call again",                        \
      "调用未执行：%s。请更正后重新调用")                                                          \
    X(TEXT_HAPPENED, "The user confirms that it happened; its result is not known",                \
      "用户确认操作已发生；其返回结果未知")                                                        \
    X(TEXT_ABORTED, "The model kept calling tools wrongly, so the run was stopped: %s",            \
      "模型多次错误地调用工具，运行已终止：%s")                                                    \
    X(TEXT_DROPPED, "Not run: the run has ended", "未执行：运行已结束")                            \
    X(TEXT_NO_RESULT, "No result came back; call it again if you need it",                         \
      "没有收到结果，需要时请重新调用")                                                            \
    X(TEXT_ASK_CONFIRM, "Run %s?", "要执行 %s 吗？")                                               \
    X(TEXT_ASK_PLAN, "Go ahead with this plan?", "按这个计划执行吗？")                             \
    X(TEXT_ASK_UNCERTAIN, "%s was started, but how it ended is not known. Did it happen?",         \
      "%s 已经发出，但结果没有记录。它执行了吗？")                                                 \
    X(TEXT_ASK_MODEL, "The model cannot be reached: %s. Try again?",                               \
      "无法连接模型：%s。要重试吗？")                                                              \
    X(TEXT_NO_MODEL, "The model could not be reached, and the user gave up",                       \
      "无法连接模型，用户已放弃")                                                                  \
    X(TEXT_ASK_ALONE, "Nobody is reading along any more, so the run has paused. Go on?",           \
      "已经没有人在看，运行已暂停。要继续吗？")                                                    \
    X(TEXT_LEFT_ALONE, "The run paused because nobody was reading along, and the user gave up",    \
      "运行因无人查看而暂停，用户已放弃")                                                          \
    X(TEXT_TOOL_ASKS, "%s asks:", "%s 询问：")                                                     \
    X(TEXT_TOOL_ASKED, "It was asking: %s", "当时它正在询问：%s")                                  \
    X(TEXT_ENDLESS, "The tool %s kept asking without coming to an end; it was stopped",            \
      "工具 %s 反复提问而没有结果，已停止")                                                        \
    X(TEXT_ASK_SERVER, "The tool %s cannot be reached. Try again?", "无法连接工具 %s，要重试吗？") \
    X(TEXT_BUDGET, "The budget of this run is used up.", "本次运行的预算已用完。")                 \
    X(TEXT_REPORT, "The model could not write the report. What was planned and done:",             \
      "模型未能生成总结。计划与完成情况：")                                                        \
    X(TEXT_STEP_BY_MODEL, " (by model)", "（模型自述）")                                           \
    X(TEXT_STEP_FAILED, " (failed)", "（失败）")                                                   \
    X(TEXT_STEP_REJECTED, " (rejected)", "（已拒绝）")                                             \
    X(TEXT_STEP_SKIPPED, " (skipped)", "（已跳过）")

#define TEXT_ENUM(name, en, zh) name,
enum text { TEXTS(TEXT_ENUM) TEXT_COUNT };
#undef TEXT_ENUM

/* Texts of people and models may hold any character, NUL too: they are joined, not printed. */
str text_join(struct arena *arena, const str *parts, size_t count);
str text_one_line(struct arena *arena, str text); /* spaces for control characters */

str text_say(struct arena *arena, enum text text, str locale, str argument);

#define LOCALE_EN STR("en")
#define LOCALE_ZH STR("zh-CN")
bool locale_is_chinese(str locale);
str locale_of(str text); /* zh-CN if it holds a Chinese character, else en */

/* What a call is about, for a person, on one line: the tool's template filled in, or its arguments
 * by name. From the stored bytes alone. `tool` may be NULL. */
str call_summary(struct arena *arena, const struct tool *tool, str name, const struct json *args);

/* JSON with spaces for the line ends between its tokens, so that it fits into an event's frame. */
str json_one_line(struct arena *arena, str json);

#endif

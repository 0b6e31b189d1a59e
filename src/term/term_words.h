/* SPDX-License-Identifier: Apache-2.0
 *
 * What the terminal says, in both languages. To add a text: a row.
 */
#ifndef TERM_TERM_WORDS_H
#define TERM_TERM_WORDS_H

#include "config/config.h" /* enum lang */

/* clang-format off */
#define WORDS(X)                                                                                  \
    X(W_WELCOME, "Type a message. /help lists the commands, Ctrl-D leaves.",                      \
      "输入消息即可开始。/help 查看命令，Ctrl-D 离开。")                                             \
    X(W_HELP,                                                                                     \
      "/new           a new conversation\n"                                                       \
      "/threads       pick another conversation\n"                                                \
      "/file PATH     send a file with the next message\n"                                        \
      "/stop          stop the agent\n"                                                           \
      "/quit          leave; what is open stays open\n"                                           \
      "Keys: Alt-Enter new line, ↑ earlier messages, Tab answer what is open,\n"                   \
      "Ctrl-C stop or leave",                                                                     \
      "/new           新建对话\n"                                                                  \
      "/threads       选择其他对话\n"                                                              \
      "/file 路径     随下一条消息发送文件\n"                                                       \
      "/stop          停止智能体\n"                                                                \
      "/quit          离开，未回答的问题会保留\n"                                                   \
      "按键：Alt-Enter 换行，↑ 之前的消息，Tab 回答待处理的问题，Ctrl-C 停止或离开")                 \
    X(W_UNKNOWN_COMMAND, "Unknown command; /help lists them.", "没有这个命令，输入 /help 查看。")  \
    X(W_BYE, "Come back with: fermata chat", "继续对话：fermata chat")                             \
    X(W_NEW, "New conversation.", "已新建对话。")                                                  \
    X(W_THREADS, "Conversations", "对话列表")                                                     \
    X(W_NO_THREADS, "There are no conversations yet.", "还没有对话。")                             \
    X(W_UNTITLED, "(no title)", "（无标题）")                                                      \
    X(W_RESUMED, "Conversation", "对话")                                                          \
    X(W_EARLIER, "(earlier messages are not shown)", "（更早的消息未显示）")                       \
    X(W_WORKING, "working… Ctrl-C stops", "正在处理… Ctrl-C 停止")                                 \
    X(W_STOPPING, "stopping…", "正在停止…")                                                       \
    X(W_STOPPED, "Stopped.", "已停止。")                                                          \
    X(W_NOTHING_RUNS, "Nothing is running.", "没有正在运行的任务。")                                \
    X(W_EXHAUSTED, "The agent used up its rounds and stopped.", "智能体已用完轮次，停止了。")        \
    X(W_OVER_BUDGET, "The agent used up its budget and stopped.", "智能体已用完预算，停止了。")     \
    X(W_CUT_OFF, "(stopped here)", "（在此停止）")                                                 \
    X(W_LOST, "No connection to the server; trying again…", "与服务器的连接已断开，正在重试…")       \
    X(W_BACK, "Connected again.", "已重新连接。")                                                  \
    X(W_QUEUED, "waiting for its turn", "排队中")                                                 \
    X(W_NOT_SENT, "Not sent", "未发送")                                                           \
    X(W_ENTER_AGAIN, "Enter sends it again.", "按 Enter 重新发送。")                               \
    X(W_FILE_READY, "Goes with the next message", "将随下一条消息发送")                            \
    X(W_FILE_SENDING, "sending the file…", "正在上传文件…")                                        \
    X(W_FILE_NONE, "/file needs the path of a file.", "/file 后面要写文件路径。")                   \
    X(W_FILE_BAD, "The file cannot be read", "无法读取文件")                                       \
    X(W_FILE_LARGE, "The file is larger than 100 MiB.", "文件超过 100 MiB。")                      \
    X(W_FILE, "file", "文件")                                                                     \
    X(W_LARGE_CARD, "(a card that is too large for here; the page shows it)",                     \
      "（卡片过大，请在网页中查看）")                                                              \
    X(W_OPEN_ONE, "Open: Tab answers it", "有待处理的问题：按 Tab 回答")                            \
    X(W_MESSAGE_ANSWERS, "a message also answers it", "发消息也会作为回答")                         \
    X(W_MESSAGE_REJECTS, "a message rejects it", "发消息会视为拒绝")                                \
    X(W_MESSAGE_WAITS, "a message waits for its turn behind it", "发消息会排在其后")                  \
    X(W_OPENED_MEANWHILE, "Not sent: this was opened while you wrote. Enter sends it all the same.", \
      "未发送：输入期间有新的待处理事项。再按 Enter 仍会发送。")                                    \
    X(W_APPROVAL, "Approval needed", "需要审批")                                                   \
    X(W_RISK_WRITE, "changes data", "会修改数据")                                                  \
    X(W_RISK_EXTERNAL, "acts outside", "会影响外部系统")                                           \
    X(W_RISK_DESTRUCTIVE, "destructive", "有破坏性")                                               \
    X(W_REQUESTED_BY, "requested by", "请求者")                                                    \
    X(W_NO_ARGUMENTS, "(no arguments)", "（无参数）")                                              \
    X(W_CONNECTION, "Connection lost", "连接中断")                                                 \
    X(W_UNCERTAIN, "Outcome unknown", "结果未知")                                                  \
    X(W_APPROVE, "approve", "批准")                                                               \
    X(W_REJECT, "reject", "拒绝")                                                                 \
    X(W_EDIT, "edit the arguments", "修改参数")                                                    \
    X(W_CONTINUE, "continue", "继续")                                                             \
    X(W_GIVE_UP, "give up", "放弃")                                                               \
    X(W_RETRY, "try it again", "重试")                                                            \
    X(W_HAPPENED, "it happened", "已经执行")                                                      \
    X(W_OWN_WORDS, "in your own words", "自己输入")                                                \
    X(W_FILL_IN, "fill in the form", "填写表单")                                                   \
    X(W_SKIP, "skip", "跳过")                                                                     \
    X(W_HINT_PICK, "↑↓ Enter, or a number · Esc later", "↑↓ 回车或按数字选择 · Esc 稍后")           \
    X(W_HINT_MULTI, "Space or a number picks, Enter sends · Esc later",                           \
      "空格或数字勾选，回车提交 · Esc 稍后")                                                       \
    X(W_HINT_KEYS, "Press a letter · Esc later", "按字母键选择 · Esc 稍后")                         \
    X(W_HINT_TEXT, "Enter sends · Esc back", "回车发送 · Esc 返回")                                \
    X(W_HINT_LATER, "Enter sends · ↓ more · Esc later", "回车发送 · ↓ 更多 · Esc 稍后")             \
    X(W_HINT_REASON, "Why? Enter rejects · Esc back", "拒绝原因？回车确认拒绝 · Esc 返回")           \
    X(W_HINT_EDIT, "New arguments as JSON; Enter approves them · Esc back",                       \
      "新参数（JSON），回车批准 · Esc 返回")                                                       \
    X(W_AGAIN, "This is destructive: press it once more to be sure.", "此操作有破坏性，再按一次确认。") \
    X(W_TOO_LONG, "Too long to be read as a whole here: it can be approved only on the page.",       \
      "内容太长，这里无法完整查看：只能在网页上批准。")                                             \
    X(W_DONE_WHEN, "Done when", "完成标准")                                                        \
    X(W_EDIT_LARGE, "The arguments are too long to be edited here.", "参数过长，无法在此修改。")     \
    X(W_LINE_FULL, "The line is full: not all of it was taken.", "输入已满：部分内容未被接收。")    \
    X(W_PICK_ONE, "Pick at least one.", "请至少选择一项。")                                        \
    X(W_SAY_SOMETHING, "Write something first, or skip it.", "请先输入内容，或选择跳过。")          \
    X(W_NOT_JSON, "That is no JSON object.", "这不是 JSON 对象。")                                 \
    X(W_NOT_NUMBER, "That is no number.", "这不是数字。")                                          \
    X(W_NOT_BOOLEAN, "Write yes or no.", "请输入 是 或 否。")                                       \
    X(W_REQUIRED, "required", "必填")                                                              \
    X(W_OPTIONAL, "optional", "选填")                                                              \
    X(W_NUMBER, "number", "数字")                                                                  \
    X(W_YES_NO, "yes or no", "是或否")                                                             \
    X(W_DATE, "date, as 2026-11-15", "日期，如 2026-11-15")                                        \
    X(W_SENDING, "sending…", "正在发送…")                                                          \
    X(W_SKIPPED, "skipped", "已跳过")                                                              \
    X(W_APPROVED, "approved", "已批准")                                                            \
    X(W_EDITED, "approved with other arguments", "已修改参数并批准")                               \
    X(W_REJECTED, "rejected", "已拒绝")                                                            \
    X(W_RESPONDED, "answered instead", "已直接答复")                                               \
    X(W_CONTINUED, "continued", "已继续")                                                          \
    X(W_GAVE_UP, "given up", "已放弃")                                                             \
    X(W_RETRIED, "tried again", "已重试")                                                          \
    X(W_DID_HAPPEN, "it had happened", "已确认执行过")                                             \
    X(W_ANSWERED, "answered", "已回答")                                                            \
    X(W_CANCELED, "canceled", "已取消")                                                            \
    X(W_EXPIRED, "expired", "已过期")                                                              \
    X(W_SUPERSEDED, "superseded", "已失效")                                                        \
    X(W_PIPE_ANSWER, "Answer it with", "请用此命令回答")                                           \
    X(W_INBOX_EMPTY, "Nothing waits for you.", "没有待处理的事项。")                                \
    X(W_KIND_QUESTION, "question", "提问")                                                         \
    X(W_KIND_APPROVAL, "approval", "审批")                                                         \
    X(W_KIND_LOST, "lost connection", "连接中断")                                                  \
    X(W_KIND_UNCERTAIN, "unknown outcome", "结果未知")                                             \
    X(W_SECONDS, "s ago", " 秒前")                                                                 \
    X(W_MINUTES, "min ago", " 分钟前")                                                             \
    X(W_HOURS, "h ago", " 小时前")                                                                 \
    X(W_DAYS, "d ago", " 天前")                                                                    \
    X(W_SETTLED_ALREADY, "This is settled already", "此事项已处理")                                \
    X(W_NOT_FOUND, "Nothing of this id is open", "没有此编号的待处理事项")                          \
    X(W_SHORT_ID, "Write more of the id, at least four characters behind int_", "编号太短，int_ 后至少写四个字符") \
    X(W_SEVERAL, "Several ids begin so; write more of it", "有多个编号以此开头，请写得更完整")       \
    X(W_ONE_DECISION, "Say one thing: one of --choice, --text, --field, --skip, --approve, --reject, --edit, --continue, --give-up, --retry, --happened", \
      "请只给出一种答复：--choice、--text、--field、--skip、--approve、--reject、--edit、--continue、--give-up、--retry、--happened 之一") \
    X(W_NO_DECISION, "Say what you decide; `fermata help answer` lists the ways", "请说明你的决定，`fermata help answer` 列出所有方式") \
    X(W_NO_CHOICE, "There is no such choice", "没有这个选项")                                      \
    X(W_NO_SERVER_DATA, "No Fermata server runs on the data folder", "数据目录上没有运行中的 Fermata 服务器") \
    X(W_NO_SERVER_URL, "No Fermata server at", "此地址没有 Fermata 服务器")                         \
    X(W_BAD_URL, "The address has to begin with http:// or https://", "地址须以 http:// 或 https:// 开头") \
    X(W_START_ONE, "Start one with `fermata serve`, or name one with --url or FERMATA_URL.",      \
      "请用 `fermata serve` 启动，或用 --url 或 FERMATA_URL 指定。")                                \
    X(W_NEEDS_KEY, "The server wants a key: set FERMATA_API_KEY to one that `fermata key add` made.", \
      "服务器需要密钥：请将 FERMATA_API_KEY 设为 `fermata key add` 创建的密钥。")                   \
    X(W_REFUSED, "The server refused it", "服务器拒绝了请求")                                      \
    X(W_NO_THREAD, "There is no such conversation", "没有这个对话")                                \
    X(W_PLAN, "Plan", "计划")                                                                      \
    X(W_STEP_DONE, " (done)", "（已完成）")                                                        \
    X(W_STEP_BY_MODEL, " (by model)", "（模型自述）")                                              \
    X(W_STEP_FAILED, " (failed)", "（失败）")                                                      \
    X(W_STEP_REJECTED, " (rejected)", "（已拒绝）")                                                \
    X(W_STEP_SKIPPED, " (skipped)", "（已跳过）")
/* clang-format on */

#define WORD_ENUM(name, en, zh) name,
enum word { WORDS(WORD_ENUM) WORD_COUNT };
#undef WORD_ENUM

const char *word(enum lang lang, enum word word);
str words(enum lang lang, enum word word);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands, their flags and help: the command table and the parser it drives.
 *
 * A command is a row; its own flags are rows of a table that the row points to, each naming the
 * field of struct args it fills. Flags that are in no such table are looked for among the options
 * of option.c, so `--data` works behind every command and is declared once.
 *
 * To add a command: a prototype in commands.h and a row in commands[]. To add a flag: a field in
 * struct args and a row in the command's table.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/say.h"
#include "base/utf8.h"

enum flag_kind {
    FLAG_SWITCH,
    FLAG_TEXT,
    FLAG_TEXTS,
    FLAG_WORDS
}; /* bool, str, struct strs, long str */

struct flag {
    const char *name;
    enum flag_kind kind;
    const char *value; /* what help calls it; "a|b" allows only a and b */
    size_t offset;
    bool required;
    bool hidden; /* not in help */
    const char *help[LANG_COUNT];
};

struct command {
    const char *name;    /* one word or two */
    const char *operand; /* "ID", in brackets if optional, "NAME ID" for two, or NULL */
    const struct flag *flags;
    size_t flag_count;
    command_fn *run;
    bool needs_config;
    const char *help[LANG_COUNT];
};

#define ARG(member)  offsetof(struct args, member)
#define FLAGS(table) table, COUNT(table)

static command_fn help_main, version_main;

/* clang-format off */
static const struct flag key_add_flags[] = {
    {"user", FLAG_TEXT, "NAME", ARG(user), .required = true,
     .help = {"whom the key stands for", "密钥代表的用户"}},
    {"role", FLAG_TEXTS, "user|approver|operator|ask", ARG(roles),
     .help = {"what the key may do; may be repeated. ask stands alone: the key asks through /mcp and does nothing else", "密钥的权限；可以重复。ask 只能单独使用：密钥只能通过 /mcp 提问"}},
    {"name", FLAG_TEXT, "TEXT", ARG(name),
     .help = {"a note to tell keys apart", "用来区分密钥的备注"}},
    {"no-adopt", FLAG_SWITCH, NULL, ARG(no_adopt),
     .help = {"the first key does not take over the conversations from before there were keys", "第一个密钥不接管启用密钥之前的对话"}},
};

static const struct flag backup_flags[] = {
    {"partial", FLAG_SWITCH, NULL, ARG(partial),
     .help = {"leave out objects that are missing or damaged", "略过缺失或损坏的对象"}},
};

static const struct flag check_flags[] = {
    {"audit", FLAG_SWITCH, NULL, ARG(audit),
     .help = {"verify the audit trail instead, also while it is served", "改为核验审计记录，服务运行时也可以"}},
};

#define URL_FLAG                                                                                   \
    {"url", FLAG_TEXT, "URL", ARG(url),                                                            \
     .help = {"the server to talk to, instead of the one in the data folder; also FERMATA_URL", "要连接的服务器，代替数据目录中运行的那个；也可用 FERMATA_URL"}}

static const struct flag mcp_flags[] = {URL_FLAG};

static const struct flag channel_link_flags[] = {
    {"user", FLAG_TEXT, "NAME", ARG(user), .required = true,
     .help = {"who the person in the chat is here", "聊天中的人在这里对应的用户"}},
    {"role", FLAG_TEXTS, "user|approver|operator", ARG(roles),
     .help = {"what they may do; may be repeated", "该用户的权限；可以重复"}},
};

static const struct flag chat_flags[] = {
    {"last", FLAG_SWITCH, NULL, ARG(last),
     .help = {"go on with the newest conversation", "继续最近的对话"}},
    {"once", FLAG_SWITCH, NULL, ARG(once),
     .help = {"all of standard input is one message", "把标准输入的全部内容作为一条消息"}},
    {"json", FLAG_SWITCH, NULL, ARG(json),
     .help = {"print the events, one a line", "逐行输出事件 JSON"}},
    URL_FLAG,
};

static const struct flag inbox_flags[] = {
    {"json", FLAG_SWITCH, NULL, ARG(json),
     .help = {"print them as JSON, one a line", "逐行输出 JSON"}},
    URL_FLAG,
};

static const struct flag answer_flags[] = {
    {"choice", FLAG_TEXTS, "CHOICE", ARG(choices),
     .help = {"pick by number or id; may be repeated", "按编号或标识选择；可以重复"}},
    {"text", FLAG_WORDS, "TEXT", ARG(text),
     .help = {"answer in words, or a note beside --choice", "用文字回答，或作为 --choice 的补充"}},
    {"field", FLAG_TEXTS, "NAME=VALUE", ARG(fields),
     .help = {"fill in a form; may be repeated", "填写表单；可以重复"}},
    {"skip", FLAG_SWITCH, NULL, ARG(skip),
     .help = {"leave the question unanswered and let the agent go on", "跳过问题，让智能体继续"}},
    {"approve", FLAG_SWITCH, NULL, ARG(approve),
     .help = {"let the call run", "批准执行"}},
    {"reject", FLAG_SWITCH, NULL, ARG(reject),
     .help = {"do not let it run", "拒绝执行"}},
    {"reason", FLAG_WORDS, "TEXT", ARG(reason),
     .help = {"why, beside --reject", "拒绝的原因，配合 --reject"}},
    {"edit", FLAG_WORDS, "JSON", ARG(edit),
     .help = {"let it run with these arguments", "改用这些参数执行"}},
    {"continue", FLAG_SWITCH, NULL, ARG(go_on),
     .help = {"a lost connection: go on", "连接中断后继续"}},
    {"give-up", FLAG_SWITCH, NULL, ARG(give_up),
     .help = {"a lost connection or an unknown outcome: give up", "连接中断或结果未知时放弃"}},
    {"retry", FLAG_SWITCH, NULL, ARG(retry),
     .help = {"an unknown outcome: do it again", "结果未知时重试"}},
    {"happened", FLAG_SWITCH, NULL, ARG(happened),
     .help = {"an unknown outcome: it was done", "结果未知时确认已执行"}},
    {"json", FLAG_SWITCH, NULL, ARG(json),
     .help = {"print what became of it as JSON", "以 JSON 输出结果"}},
    URL_FLAG,
};

static const struct flag help_flags[] = {
    {"markdown", FLAG_SWITCH, NULL, ARG(markdown), .hidden = true,
     .help = {"print docs/CONFIGURATION.md", "输出 docs/CONFIGURATION.md"}},
};

#define NEXT "\n                                     " /* another line of help, under the first */

static const struct command commands[] = {
    {"serve", NULL, NULL, 0, serve_main, true,
     {"run the server until SIGTERM or SIGINT", "运行服务器，直到收到 SIGTERM 或 SIGINT"}},
    {"key add", NULL, FLAGS(key_add_flags), key_add_main, true,
     {"make an API key and print it once", "创建 API 密钥，只显示一次"}},
    {"key list", NULL, NULL, 0, key_list_main, true,
     {"list the API keys without their secrets", "列出 API 密钥，不显示密文"}},
    {"key revoke", "ID", NULL, 0, key_revoke_main, true,
     {"make an API key invalid", "吊销一个 API 密钥"}},
    {"backup", "FILE", FLAGS(backup_flags), backup_main, true,
     {"save everything, files and secret too; also while it is served", "备份全部数据，包括文件和密钥；服务运行时也可以"}},
    {"restore", "FILE", NULL, 0, restore_main, true,
     {"make an empty data folder into what a backup holds", "把备份恢复到一个空的数据目录"}},
    {"migrate", NULL, NULL, 0, migrate_main, true,
     {"bring the database up to date without serving; a server does so when it starts", "不启动服务，只升级数据库；服务器启动时也会自动升级"}},
    {"check", NULL, FLAGS(check_flags), check_main, true,
     {"print the effective configuration and test what it names", "显示生效的配置，并检查其中的各项"}},
    {"compile-ui", "[FILE]", NULL, 0, compile_ui_main, false,
     {"print the card that UiHints become; FILE or standard input", "显示 UiHints 编译成的卡片；读取文件或标准输入"}},
    {"chat", "[THREAD]", FLAGS(chat_flags), chat_main, true,
     {"talk to an agent in the terminal, or through a pipe" NEXT "exit code 3: in a pipe, somebody has to decide something first",
      "在终端或管道中与智能体对话" NEXT "退出码 3：管道模式下，需要有人先作决定"}},
    {"inbox", NULL, FLAGS(inbox_flags), inbox_main, true,
     {"list what waits for you", "列出等待你处理的事项"}},
    {"answer", "ID", FLAGS(answer_flags), answer_main, true,
     {"answer, approve or reject something that waits" NEXT "exit code 4: it is settled already",
      "回答、批准或拒绝等待处理的事项" NEXT "退出码 4：此事项已处理"}},
    {"mcp", NULL, FLAGS(mcp_flags), mcp_main, true,
     {"let an agent ask people through the running server: MCP over standard input and output", "让其他智能体通过运行中的服务器向人提问：标准输入输出上的 MCP"}},
    {"channel list", NULL, NULL, 0, channel_list_main, true,
     {"list the chat channels of the running server, and how they are", "列出运行中服务器的聊天渠道及其状态"}},
    {"channel login", "NAME", NULL, 0, channel_login_main, true,
     {"sign in to a WeChat channel by a QR code", "扫码登录微信渠道"}},
    {"channel link", "NAME", FLAGS(channel_link_flags), channel_link_main, true,
     {"print a code that makes whoever sends it in the chat a user here", "输出绑定码；在聊天中发送它的人将对应到这里的用户"}},
    {"channel unlink", "NAME SENDER", NULL, 0, channel_unlink_main, true,
     {"undo a link", "解除绑定"}},
    {"version", NULL, NULL, 0, version_main, false,
     {"print the version", "显示版本"}},
    {"help", "[COMMAND]", FLAGS(help_flags), help_main, false,
     {"print this, or only one command", "显示本帮助，或只显示一个命令"}},
};
/* clang-format on */

static const struct {
    const char *usage, *commands, *options, *more;
} words[LANG_COUNT] = {
    [LANG_EN] = {"Usage: fermata COMMAND [OPTION]...", "Commands", "Options of every command",
                 "Options may also stand in fermata.yaml or in the environment: --limits-body is "
                 "body below\nlimits in the file, and FERMATA_LIMITS_BODY. A flag wins over the "
                 "environment, and that over\nthe file. Exit codes: 0 done, 1 failed, 2 command "
                 "line or configuration refused."},
    [LANG_ZH] = {"用法：fermata 命令 [选项]...", "命令", "所有命令通用的选项",
                 "选项也可以写在 fermata.yaml 或环境变量中：--limits-body 对应文件中 limits 下的 "
                 "body，\n以及 FERMATA_LIMITS_BODY。命令行优先于环境变量，环境变量优先于文件。\n"
                 "退出码：0 完成，1 失败，2 命令行或配置有误。"},
};

/* Finding the command. */

static str first_word(const char *name)
{
    str rest = str_c(name);
    return str_split(&rest, ' ');
}

static const struct command *command_named(str name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_eq(str_c(commands[i].name), name)) return &commands[i];
    return NULL;
}

static bool command_begins(str word)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_eq(first_word(commands[i].name), word)) return true;
    return false;
}

static enum err unknown_command(struct fault *reterr, str given)
{
    struct nearest n;
    nearest_init(&n, given);
    for (size_t i = 0; i < COUNT(commands); i++) {
        const char *name = commands[i].name;
        nearest_offer(&n, str_c(name), name);
        /* Half of "key add" may be all that was typed. */
        if (str_find_char(given, ' ') < 0) nearest_offer(&n, first_word(name), name);
    }
    return fault(reterr, ERR_BAD_REQUEST, "unknown command \"%s\"%s", say(given).text,
                 say_nearest(&n, "`fermata help` lists the known ones").text);
}

/* On success *ret_words is how many of argv the command took. */
static enum err find_command(struct arena *arena, int argc, char *const *argv,
                             const struct command **ret_command, int *ret_words,
                             struct fault *reterr)
{
    if (argc < 2) return fault(reterr, ERR_BAD_REQUEST, "no command; `fermata help` lists them");
    str word = str_c(argv[1]);
    if (str_starts(word, STR("-")))
        return fault(reterr, ERR_BAD_REQUEST, "\"%s\" stands before the command; write it behind",
                     say(word).text);
    *ret_words = 1;
    *ret_command = command_named(word);
    if (*ret_command) return OK;
    if (!command_begins(word)) return unknown_command(reterr, word);

    if (argc < 3 || argv[2][0] == '-')
        return fault(reterr, ERR_BAD_REQUEST,
                     "\"%s\" needs one more word; `fermata help %s` lists them", argv[1], argv[1]);
    str both = arena_printf(arena, "%s %s", argv[1], argv[2]);
    *ret_words = 2;
    *ret_command = command_named(both);
    return *ret_command ? OK : unknown_command(reterr, both);
}

/* Taking flags. */

struct parse {
    struct arena *arena;
    struct command_call call;
    struct config_arg *options; /* as call.options */
    char *const *argv;
    int argc;
    int at; /* next word to look at */
    struct fault *reterr;
};

/* any: what a person says to an agent, which may be any text. */
static enum err text_check(const struct parse *p, const char *what, str text, bool any)
{
    int bytes_max = any ? ANSWER_BYTES_MAX : COMMAND_TEXT_BYTES_MAX;
    if (text.len == 0) return fault(p->reterr, ERR_BAD_REQUEST, "%s is empty", what);
    if (text.len > (size_t)bytes_max)
        return fault(p->reterr, ERR_BAD_REQUEST, "%s is longer than %d bytes", what, bytes_max);
    if (any && !utf8_valid(text)) return fault(p->reterr, ERR_BAD_REQUEST, "%s is not UTF-8", what);
    if (!any && !say_plain(text))
        return fault(p->reterr, ERR_BAD_REQUEST, "%s has characters that cannot be printed", what);
    return OK;
}

static enum err choice_check(const struct parse *p, const struct flag *flag, str text)
{
    str rest = str_c(flag->value);
    if (str_find_char(rest, '|') < 0) return OK;
    struct nearest n;
    nearest_init(&n, text);
    while (rest.p) {
        str choice = str_split(&rest, '|');
        if (str_eq(choice, text)) return OK;
        nearest_offer(&n, choice, say(choice).text);
    }
    char otherwise[80];
    snprintf(otherwise, sizeof otherwise, "write one of %s", flag->value);
    return fault(p->reterr, ERR_BAD_REQUEST, "--%s does not know \"%s\"%s", flag->name,
                 say(text).text, say_nearest(&n, otherwise).text);
}

static enum err given_twice(const struct parse *p, const char *name)
{
    return fault(p->reterr, ERR_BAD_REQUEST, "--%s is given twice; remove one", name);
}

static enum err take_own(struct parse *p, const struct flag *flag, str text)
{
    void *field = (char *)&p->call.args + flag->offset;
    if (flag->kind == FLAG_SWITCH) {
        *(bool *)field = true;
        return OK;
    }
    char what[32];
    snprintf(what, sizeof what, "--%s", flag->name);
    bool any = flag->kind == FLAG_WORDS;
    enum err e = text_check(p, what, text, any);
    if (!e && !any) e = choice_check(p, flag, text);
    if (e) return e;
    if (flag->kind == FLAG_TEXTS) { /* lists are short, so each value makes a new one */
        struct strs *list = field;
        if (list->count == COMMAND_FLAG_VALUES_MAX)
            return fault(p->reterr, ERR_BAD_REQUEST, "--%s is given more than %d times", flag->name,
                         COMMAND_FLAG_VALUES_MAX);
        str *items = arena_array(p->arena, list->count + 1, sizeof *items);
        if (list->count) memcpy(items, list->items, list->count * sizeof *items);
        items[list->count] = text;
        *list = (struct strs){items, list->count + 1};
        return OK;
    }
    if (((str *)field)->len) return given_twice(p, flag->name);
    *(str *)field = text;
    return OK;
}

static enum err unknown_flag(const struct parse *p, str name)
{
    struct nearest n;
    nearest_init(&n, name);
    const struct command *c = p->call.command;
    for (size_t i = 0; i < c->flag_count; i++)
        if (!c->flags[i].hidden) nearest_offer(&n, str_c(c->flags[i].name), c->flags[i].name);
    config_offer_flags(&n);
    const char *near = nearest_name(&n);
    if (near)
        return fault(p->reterr, ERR_BAD_REQUEST, "unknown flag \"--%s\"; did you mean \"--%s\"?",
                     say(name).text, near);
    return fault(p->reterr, ERR_BAD_REQUEST,
                 "unknown flag \"--%s\"; `fermata help` lists the known ones", say(name).text);
}

static enum err take_flag(struct parse *p, str word)
{
    str value = str_drop(word, 2); /* the dashes */
    str name = str_split(&value, '=');
    const struct command *c = p->call.command;
    size_t own = 0;
    while (own < c->flag_count && !str_eq(str_c(c->flags[own].name), name)) own++;
    const struct flag *flag = own < c->flag_count ? &c->flags[own] : NULL;
    int option = flag ? -1 : config_flag(name);
    if (!flag && option < 0) return unknown_flag(p, name);
    if (!flag && config_flag_check(option, p->reterr)) return ERR_CONFIG;
    if (flag && flag->kind == FLAG_SWITCH) {
        if (value.p) return fault(p->reterr, ERR_BAD_REQUEST, "--%s takes no value", flag->name);
        return take_own(p, flag, STR_EMPTY);
    }
    if (!value.p) { /* not behind '=': the next word, unless that is a flag itself */
        if (p->at == p->argc || str_starts(str_c(p->argv[p->at]), STR("--")))
            return fault(p->reterr, ERR_BAD_REQUEST, "--%s needs a value behind it",
                         say(name).text);
        value = str_c(p->argv[p->at++]);
    }
    if (flag) return take_own(p, flag, value);
    for (size_t i = 0; i < p->call.option_count; i++)
        if (p->options[i].option == option) return given_twice(p, say(name).text);
    p->options[p->call.option_count++] = (struct config_arg){option, value};
    return OK;
}

static enum err take_operand(struct parse *p, str word)
{
    const struct command *c = p->call.command;
    struct args *args = &p->call.args;
    bool second = c->operand && strchr(c->operand, ' ') && args->operand.len;
    str *place = second ? &args->second : &args->operand;
    if (!c->operand || place->len)
        return fault(p->reterr, ERR_BAD_REQUEST, "`fermata %s` does not take \"%s\"", c->name,
                     say(word).text);
    *place = word;
    return text_check(p, c->operand, word, false);
}

static enum err take_words(struct parse *p)
{
    bool flags = true; /* no "--" so far */
    while (p->at < p->argc) {
        str word = str_c(p->argv[p->at++]);
        enum err e;
        if (flags && str_eq(word, STR("--"))) {
            flags = false;
            continue;
        }
        if (flags && str_starts(word, STR("--")))
            e = take_flag(p, word);
        else if (flags && str_starts(word, STR("-")) && word.len > 1)
            e = fault(p->reterr, ERR_BAD_REQUEST, "unknown flag \"%s\"; flags begin with --",
                      say(word).text);
        else
            e = take_operand(p, word);
        if (e) return e;
    }
    return OK;
}

static enum err check_complete(const struct parse *p)
{
    const struct command *c = p->call.command;
    const struct args *args = &p->call.args;
    bool two = c->operand && strchr(c->operand, ' ');
    if (c->operand && c->operand[0] != '[' && (!args->operand.len || (two && !args->second.len)))
        return fault(p->reterr, ERR_BAD_REQUEST, "`fermata %s` needs %s behind it", c->name,
                     c->operand);
    for (size_t i = 0; i < c->flag_count; i++) {
        const struct flag *flag = &c->flags[i];
        const str *text = (const void *)((const char *)&p->call.args + flag->offset);
        if (flag->required && text->len == 0)
            return fault(p->reterr, ERR_BAD_REQUEST, "`fermata %s` needs --%s %s", c->name,
                         flag->name, flag->value);
    }
    return OK;
}

enum err cli_parse(struct arena *arena, int argc, char *const *argv, struct command_call *ret_call,
                   struct fault *reterr)
{
    struct parse p = {.arena = arena, .argv = argv, .argc = argc, .reterr = reterr};
    int taken = 0;
    enum err e = find_command(arena, argc, argv, &p.call.command, &taken, reterr);
    if (e) return e;
    p.at = 1 + taken;
    p.options = arena_array(arena, (size_t)argc, sizeof *p.options);
    p.call.options = p.options;
    e = take_words(&p);
    if (!e) e = check_complete(&p);
    if (e) return e;
    *ret_call = p.call;
    return OK;
}

bool cli_wants_help(int argc, char *const *argv)
{
    for (int i = 1; i < argc && !str_eq(str_c(argv[i]), STR("--")); i++)
        if (str_eq(str_c(argv[i]), STR("--help")) || str_eq(str_c(argv[i]), STR("-h"))) return true;
    return false;
}

const char *cli_command_name(const struct command *command)
{
    return command->name;
}

/* Help. */

bool cli_help(struct buf *out, enum lang lang, str topic)
{
    if (topic.len && !command_begins(topic)) return false;
    buf_printf(out, "%s\n\n%s:\n", words[lang].usage, words[lang].commands);
    for (size_t i = 0; i < COUNT(commands); i++) {
        const struct command *c = &commands[i];
        if (topic.len && !str_eq(first_word(c->name), topic)) continue;
        char left[64];
        snprintf(left, sizeof left, "%s %s", c->name, c->operand ? c->operand : "");
        buf_printf(out, "  %-34s %s\n", left, c->help[lang]);
        for (const struct flag *flag = c->flags; flag < c->flags + c->flag_count; flag++) {
            if (flag->hidden) continue;
            snprintf(left, sizeof left, "--%s %s", flag->name, flag->value ? flag->value : "");
            buf_printf(out, "    %-32s %s\n", left, flag->help[lang]);
        }
    }
    buf_printf(out, "\n%s:\n", words[lang].options);
    config_help(out, lang);
    buf_printf(out, "\n%s\n", words[lang].more);
    return true;
}

void cli_version(struct buf *out)
{
    buf_append(out, STR("fermata " FERMATA_VERSION "\nbuilt with " FERMATA_LIBRARIES "\n"));
}

/* Running. */

enum { HELP_BYTES_MAX = 64 * 1024 };

static int put(FILE *file, const struct buf *text)
{
    bool ok = !text->full && fwrite(text->p, 1, text->len, file) == text->len && !fflush(file);
    return ok ? EXIT_OK : EXIT_FAILED;
}

static int refused(const char *text)
{
    fprintf(stderr, "fermata: %s\n", text);
    return EXIT_USAGE;
}

static int help_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)config, (void)arena;
    AUTO(buf_done) struct buf out;
    buf_init(&out, HELP_BYTES_MAX);
    if (args->markdown) {
        config_markdown(&out);
    } else if (!cli_help(&out, lang_asked(environ), args->operand)) {
        struct fault fault;
        unknown_command(&fault, args->operand);
        return refused(fault.text);
    }
    return put(stdout, &out);
}

static int version_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)config, (void)arena, (void)args;
    AUTO(buf_done) struct buf out;
    buf_init(&out, HELP_BYTES_MAX);
    cli_version(&out);
    return put(stdout, &out);
}

/* Of a command, if the topic is one. Help that nobody asked for goes to standard error, so that a script
 * does not take it for output. */
static int overview(FILE *file, str topic)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, HELP_BYTES_MAX);
    if (!cli_help(&out, lang_asked(environ), topic)) cli_help(&out, lang_asked(environ), STR_EMPTY);
    return put(file, &out);
}

/* Keys are in our memory: no core, no other process of this user reading it, and no death by a
 * closed pipe. In the place of a standard descriptor that is closed stands one that refuses its use:
 * the next file we open would get what is meant to be printed. */
static void protect(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__ /* the leak checker has to read it */
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

int cli_main(int argc, char **argv)
{
    protect();
    if (cli_wants_help(argc, argv)) return overview(stdout, str_c(argv[1]));
    if (argc < 2) {
        overview(stderr, STR_EMPTY);
        return EXIT_USAGE;
    }
    if (str_eq(str_c(argv[1]), STR("--version"))) return version_main(NULL, NULL, NULL);

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct command_call call;
    struct fault fault;
    if (cli_parse(&arena, argc, argv, &call, &fault)) return refused(fault.text);
    if (!call.command->needs_config) return call.command->run(NULL, &arena, &call.args);

    struct config config;
    if (config_load(&arena, call.options, call.option_count, environ, &config, &fault))
        return refused(fault.text);
    log_setup(config.log.level, config.log.json);
    for (size_t i = 0; i < config.warnings.count; i++)
        log_warn("config.warning", LOG_STR("text", config.warnings.items[i]));
    call.args.options = call.options;
    call.args.option_count = call.option_count;
    return call.command->run(&config, &arena, &call.args);
}

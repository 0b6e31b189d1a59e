/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands behind the command line, and what they are given. cli.c has the table that names
 * them and says which arguments each one takes.
 */
#ifndef CONFIG_COMMANDS_H
#define CONFIG_COMMANDS_H

#include "config/config.h"

/* Exit codes of every command. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_WAITS = 3,  /* `chat` in a pipe: a person has to decide something */
    EXIT_SETTLED = 4 /* `answer`: somebody was faster */
};

/* The arguments of all commands. A command finds its own filled in, checked against its row, and
 * the others empty. Text is valid UTF-8 without control characters, NUL-terminated, and at most
 * COMMAND_TEXT_BYTES_MAX bytes. */
struct args {
    str operand;                 /* the word behind the command: an id, a file, a topic */
    str second;                  /* the word behind that, of a command that takes two */
    str user;                    /* key add --user, channel link --user */
    bool no_adopt;               /* of key add */
    struct strs roles;           /* --role of both, names of roles; may be empty */
    str name;                    /* key add --name */
    str url;                     /* mcp, chat, inbox, answer --url */
    bool json;                   /* chat, inbox, answer --json */
    bool last;                   /* chat --last */
    bool once;                   /* chat --once */
    struct strs choices, fields; /* answer --choice, --field */
    str text, edit, reason;      /* answer --text, --edit, --reason; up to ANSWER_BYTES_MAX */
    bool approve, reject, skip;  /* answer, and those that follow */
    bool go_on, give_up, retry, happened;
    bool partial;                     /* backup --partial */
    bool audit;                       /* check --audit */
    bool markdown;                    /* help --markdown */
    const struct config_arg *options; /* what the configuration was made from, to read it again */
    size_t option_count;
};

/* Each returns an exit code and reports its own failures. config is NULL for a command whose row
 * does not need it. */
typedef int command_fn(const struct config *config, struct arena *arena, const struct args *args);

command_fn serve_main;
command_fn key_add_main;
command_fn key_list_main;
command_fn key_revoke_main;
command_fn backup_main;
command_fn restore_main;
command_fn migrate_main;
command_fn check_main;
command_fn compile_ui_main;
command_fn mcp_main;
command_fn chat_main;
command_fn inbox_main;
command_fn answer_main;
command_fn channel_list_main;
command_fn channel_login_main;
command_fn channel_link_main;
command_fn channel_unlink_main;

#endif

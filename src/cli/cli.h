/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line: which commands there are, what each takes, and help about them.
 *
 *     fermata COMMAND [its own flags and operand] [any option of config.h]
 *
 * Flags are `--name value` or `--name=value`, in any order behind the command; `--` ends them.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "config/commands.h"

/* Run the program: an exit code. */
int cli_main(int argc, char **argv);

struct command;

/* What a command line asks for. */
struct command_call {
    const struct command *command;
    struct args args;
    const struct config_arg *options; /* for config_load */
    size_t option_count;
};

/* Take a command line apart: argv[0] is the program. Refusals are ERR_BAD_REQUEST. */
enum err cli_parse(struct arena *arena, int argc, char *const *argv, struct command_call *ret_call,
                   struct fault *reterr) MUST_USE;

bool cli_wants_help(int argc, char *const *argv); /* --help or -h anywhere before -- */
const char *cli_command_name(const struct command *command);

/* Help about the commands whose first word is `topic`, or about everything if it is empty. Returns
 * false, having written nothing, if there is no such command. */
bool cli_help(struct buf *out, enum lang lang, str topic);

void cli_version(struct buf *out);

#endif

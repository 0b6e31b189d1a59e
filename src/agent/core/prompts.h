/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of src/agent/core/prompts/, inside the binary. The build makes the table (scripts/embed.c).
 */
#ifndef AGENT_CORE_PROMPTS_H
#define AGENT_CORE_PROMPTS_H

#include <stddef.h>

struct prompt {
    const char *name; /* of the file: "chat.en.md" */
    const unsigned char *bytes;
    size_t len;
};

extern const struct prompt prompt_table[];
extern const size_t prompt_count;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A script: what the scripted model answers, as docs/SCRIPT.md describes it. Immutable after
 * parsing, but for the attempts that its turns count.
 */
#ifndef MODEL_SCRIPT_H
#define MODEL_SCRIPT_H

#include "model/player.h"

/* One answer. `play.usage` holds SCRIPT_COUNTED where the script says nothing. */
struct script_turn {
    struct play play;
    struct play failing;   /* what an attempt that fails gives */
    uint32_t failures_max; /* how many attempts fail: 0 none, UINT32_MAX every one */
    uint32_t failures;     /* so far */
};

#define SCRIPT_COUNTED UINT64_MAX

struct script;

/* Parse the lines of a file. `name` is the file's, for the fault: ERR_CONFIG, "name:line: ...". */
enum err script_parse(const char *name, str text, struct script **ret_script, struct fault *reterr)
    MUST_USE;
void script_free(struct script *script); /* NULL is fine */

/* What answers this request, with SCRIPT_COUNTED where the script does not say a usage; a turn that
 * fails counts the attempt. What is made for it lives in the arena. False if no line matches. */
bool script_answer(const struct script *script, const struct model_request *request,
                   struct arena *arena, struct play *ret_play);

/* What people may say first; empty behind the last one. */
str script_starter(const struct script *script, size_t index, bool chinese);

extern const str
    demo_script; /* demo.script, which the build puts into the program (scripts/embed.c) */

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * May this call run: at once, after an approval, or not at all? And what an approval is bound to.
 * Pure.
 *
 * The settings stand over the file; in each an exact name stands over a pattern, and a longer pattern
 * over a shorter one. Without a row a read is allowed and a write needs an approval. A grant turns
 * `confirm` into `allow`, never `deny`; where a role approves, only a grant that this role gave; and only under the rule it was made under. A tool
 * that is the question itself (tool->person) is always asked for.
 */
#ifndef AGENT_CORE_POLICY_H
#define AGENT_CORE_POLICY_H

#include "base/crypto.h"
#include "base/json.h"
#include "store/table/grants.h"
#include "tool/tool.h"

enum verdict { VERDICT_ALLOW, VERDICT_CONFIRM, VERDICT_DENY };

struct policy_row {
    str pattern; /* a tool's name; a * at the end stands for anything */
    enum verdict verdict;
};
struct approver_row {
    str pattern;
    str role; /* "approver", "operator": who answers instead of the owner */
};
struct policy {
    const struct policy_row *rows;
    size_t count;
    const struct approver_row *approvers;
    size_t approver_count;
};

enum err verdict_parse(str name, enum verdict *ret_verdict) MUST_USE; /* ERR_INVALID_FIELD */
const char *verdict_name(enum verdict verdict);
bool pattern_fits(str pattern, str name);

struct judgement {
    enum verdict verdict;
    str rule;     /* "default", "file:calendar_*", "settings:calendar_write", with "@approver"
                     behind it if a role answers: what the binding names */
    str approver; /* role; empty: the owner, or nobody is asked */
    str grant_id; /* of the grant that allowed it; empty: none did. The rule is then still the one
                     that asks for an approval */
};

/* `settings` may be NULL. `args` is the parsed object. Texts live in the arena or in the rows. */
struct judgement policy_judge(struct arena *arena, const struct policy *file,
                              const struct policy *settings, const struct tool *tool,
                              const struct json *args, const struct grant_list *grants);

/* A grant fits if it names this tool and each argument in its `match` is there with the same value
 * (compared as JSON: 1 and 1.0 differ, the order of members does not matter). */
bool grant_fits(const struct grant *grant, str tool, const struct json *args);

/* The same value: numbers by their source text, strings decoded, members in any order. */
bool value_identical(const struct json *a, const struct json *b);

/* What an approval is bound to: HMAC-SHA-256 over the fields, each with its length in front. */
struct binder {
    char key_id[16]; /* which secret; stands in the binding */
    unsigned char key[HASH_BYTES];
};
struct bound {
    str owner, run_id, call_id, tool, args, agent, rule;
};
enum { BINDING_BYTES = 16 + 1 + BASE64URL_BYTES(HASH_BYTES) };
void binding_make(const struct binder *binder, const struct bound *bound,
                  char out[static BINDING_BYTES]); /* "<key id>.<43>" */
bool binding_fits(const struct binder *binder, const struct bound *bound, str binding);

#endif

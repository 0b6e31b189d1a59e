/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts over tool calls: may one run, what a grant covers, what an approval is bound to. Nothing
 * here waits, stores or keeps anything: the same rows and the same call always give the same
 * judgement.
 *
 *     row of the settings, or of the file, or the default (a read: allow, a write: confirm)
 *         allow, deny ----------------> that is the judgement
 *         confirm ----- a grant fits -> allow; rule and approver stay
 *                  `--- none does ----> confirm
 *
 * 1. Within a list of rows the exact name wins, then the longest pattern, then the first row. The
 *    settings win over the file even with a shorter pattern.
 * 2. A grant is looked for only where the verdict is confirm, so it never undoes a deny. A grant
 *    that cannot be read fits nothing.
 * 3. A binding covers each field with its length in front: no byte can move from one field to the
 *    next and leave the whole the same.
 *
 *        8 bytes   length of the owner, big-endian          and so on for run_id, call_id, tool,
 *        n bytes   owner                                    args, agent, rule, in this order
 *
 * To bind one more thing: a member of struct bound and its place in bound_bytes. Every binding made
 * before is then void.
 */
#include "agent/core/policy.h"

#include <endian.h>
#include <string.h>

/* ---- names ---- */

static const char *const verdict_names[] = {
    [VERDICT_ALLOW] = "allow", [VERDICT_CONFIRM] = "confirm", [VERDICT_DENY] = "deny"};

enum err verdict_parse(str name, enum verdict *ret_verdict)
{
    for (unsigned i = 0; i < COUNT(verdict_names); i++) {
        if (!str_eq(name, str_c(verdict_names[i]))) continue;
        *ret_verdict = (enum verdict)i;
        return OK;
    }
    return ERR_INVALID_FIELD;
}

const char *verdict_name(enum verdict verdict)
{
    assert(verdict < COUNT(verdict_names));
    return verdict_names[verdict];
}

/* How well a pattern fits: 0 not at all, an exact name best, else the longer the better. */
static size_t pattern_rank(str pattern, str name)
{
    if (!pattern.len) return 0;
    if (str_eq(pattern, name)) return SIZE_MAX;
    if (!str_ends(pattern, STR("*"))) return 0;
    return str_starts(name, (str){pattern.p, pattern.len - 1}) ? pattern.len : 0;
}

bool pattern_fits(str pattern, str name)
{
    return pattern_rank(pattern, name) > 0;
}

/* ---- values ---- */

/* Members mostly stand in the same order: look at the expected place first. */
static const struct json *find_member(const struct json *object, const struct json *guess, str key)
{
    return guess && str_eq(guess->key, key) ? guess : json_get(object, key);
}

static bool same_members(const struct json *a, const struct json *b)
{
    const struct json *guess = b->child;
    for (const struct json *member = a->child; member; member = member->next) {
        const struct json *other = find_member(b, guess, member->key);
        if (!other || !value_identical(member, other)) return false;
        guess = other->next;
    }
    return true;
}

static bool same_items(const struct json *a, const struct json *b)
{
    const struct json *other = b->child;
    for (const struct json *item = a->child; item; item = item->next, other = other->next)
        if (!value_identical(item, other)) return false;
    return true;
}

/* Keys are unique, so two objects of one size are the same if one has all members of the other. */
bool value_identical(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->count != b->count) return false;
    switch (a->type) {
    case JSON_NUMBER:
    case JSON_STRING:
        return str_eq(a->text, b->text);
    case JSON_ARRAY:
        return same_items(a, b);
    case JSON_OBJECT:
        return same_members(a, b);
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        break;
    }
    return true;
}

/* ---- grants ---- */

bool grant_fits(const struct grant *grant, str tool, const struct json *args)
{
    if (!str_eq(grant->tool, tool)) return false;
    if (str_eq(grant->match, STR("{}"))) return true;

    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *match = NULL;
    if (json_parse(&arena, grant->match, &match, NULL) || match->type != JSON_OBJECT) return false;
    for (const struct json *wanted = match->child; wanted; wanted = wanted->next) {
        const struct json *arg = json_get(args, wanted->key);
        if (!arg || !value_identical(wanted, arg)) return false;
    }
    return true;
}

/* ---- judging ---- */

static const struct policy_row *best_row(const struct policy *policy, str tool)
{
    const struct policy_row *best = NULL;
    size_t best_rank = 0;
    for (size_t i = 0; policy && i < policy->count; i++) {
        size_t rank = pattern_rank(policy->rows[i].pattern, tool);
        if (rank <= best_rank) continue;
        best_rank = rank;
        best = &policy->rows[i];
    }
    return best;
}

static const struct approver_row *best_approver(const struct policy *policy, str tool)
{
    const struct approver_row *best = NULL;
    size_t best_rank = 0;
    for (size_t i = 0; policy && i < policy->approver_count; i++) {
        size_t rank = pattern_rank(policy->approvers[i].pattern, tool);
        if (rank <= best_rank) continue;
        best_rank = rank;
        best = &policy->approvers[i];
    }
    return best;
}

static struct judgement judge_rows(struct arena *arena, const struct policy *file,
                                   const struct policy *settings, const struct tool *tool)
{
    const char *from = "settings";
    const struct policy_row *row = best_row(settings, tool->name);
    if (!row) {
        from = "file";
        row = best_row(file, tool->name);
    }
    if (!row)
        return (struct judgement){.verdict = tool->write ? VERDICT_CONFIRM : VERDICT_ALLOW,
                                  .rule = STR("default")};
    return (struct judgement){.verdict = row->verdict,
                              .rule = arena_printf(arena, "%s:%.*s", from, STR_ARG(row->pattern))};
}

struct judgement policy_judge(struct arena *arena, const struct policy *file,
                              const struct policy *settings, const struct tool *tool,
                              const struct json *args, const struct grant_list *grants)
{
    struct judgement judgement = judge_rows(arena, file, settings, tool);
    if (tool->person && judgement.verdict == VERDICT_ALLOW) judgement.verdict = VERDICT_CONFIRM;
    if (judgement.verdict != VERDICT_CONFIRM) return judgement;

    const struct approver_row *approver = best_approver(settings, tool->name);
    if (!approver) approver = best_approver(file, tool->name);
    if (approver && approver->role.len) {
        judgement.approver = approver->role;
        judgement.rule =
            arena_printf(arena, "%.*s@%.*s", STR_ARG(judgement.rule), STR_ARG(approver->role));
    }
    for (size_t i = 0; grants && !tool->person && i < grants->count; i++) {
        const struct grant *grant = &grants->rows[i];
        bool given = !judgement.approver.len || str_eq(grant->approver, judgement.approver);
        bool ruled = !grant->rule.len || str_eq(grant->rule, judgement.rule);
        if (!given || !ruled || !grant_fits(&grants->rows[i], tool->name, args)) continue;
        judgement.verdict = VERDICT_ALLOW;
        judgement.grant_id = grants->rows[i].id;
        break;
    }
    return judgement;
}

/* ---- bindings ---- */

static void bound_bytes(struct buf *out, const struct bound *bound)
{
    const str fields[] = {bound->owner, bound->run_id, bound->call_id, bound->tool,
                          bound->args,  bound->agent,  bound->rule};
    size_t total = 0;
    for (size_t i = 0; i < COUNT(fields); i++) total += sizeof(uint64_t) + fields[i].len;
    buf_init(out, total);
    for (size_t i = 0; i < COUNT(fields); i++) {
        uint64_t len = htobe64(fields[i].len);
        buf_append(out, (str){(const char *)&len, sizeof len});
        buf_append(out, fields[i]);
    }
    assert(!out->full);
}

void binding_make(const struct binder *binder, const struct bound *bound,
                  char out[static BINDING_BYTES])
{
    AUTO(buf_done) struct buf bytes;
    unsigned char mac[HASH_BYTES];
    size_t id_len = strnlen(binder->key_id, sizeof binder->key_id);
    bound_bytes(&bytes, bound);
    crypto_hmac((str){(const char *)binder->key, sizeof binder->key}, buf_str(&bytes), mac);
    memcpy(out, binder->key_id, id_len);
    out[id_len] = '.';
    crypto_base64url((str){(const char *)mac, sizeof mac}, out + id_len + 1);
}

bool binding_fits(const struct binder *binder, const struct bound *bound, str binding)
{
    char expected[BINDING_BYTES];
    binding_make(binder, bound, expected);
    return str_eq_secret(binding, str_c(expected));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts, grants and bindings. In JSON ' stands for ".
 */
#include "agent/core/policy.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static struct json *parsed(struct arena *arena, const char *text)
{
    char *copy = arena_cstr(arena, str_c(text));
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    struct json *json = NULL;
    struct json_error why;
    if (json_parse(arena, str_c(copy), &json, &why)) fail_msg("%s: %s", text, why.reason);
    return json;
}

/* ---- names and patterns ---- */

static void verdicts(void **state)
{
    (void)state;
    static const char *const names[] = {"allow", "confirm", "deny"};
    for (unsigned i = 0; i < COUNT(names); i++) {
        enum verdict verdict = VERDICT_DENY;
        assert_int_equal(verdict_parse(str_c(names[i]), &verdict), OK);
        assert_int_equal(verdict, i);
        assert_string_equal(verdict_name(verdict), names[i]);
    }
    static const char *const wrong[] = {"", "Allow", "allow ", "ask", "allo", "denyy"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        enum verdict verdict = VERDICT_DENY;
        assert_int_equal(verdict_parse(str_c(wrong[i]), &verdict), ERR_INVALID_FIELD);
        assert_int_equal(verdict, VERDICT_DENY);
    }
}

static void patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool fits;
    } rows[] = {
        {"calendar_write", "calendar_write", true},
        {"calendar_write", "calendar_writes", false},
        {"calendar_writes", "calendar_write", false},
        {"calendar_write", "Calendar_write", false},
        {"calendar_*", "calendar_write", true},
        {"calendar_*", "calendar_", true},
        {"calendar_*", "calendar", false},
        {"calendar_*", "my_calendar_write", false},
        {"files.*", "files.read", true},
        {"files.*", "files_read", false},
        {"*", "anything", true},
        {"*", "", true},
        {"", "anything", false},
        {"", "", false},
        {"*_write", "calendar_write", false}, /* a * at the end only */
        {"a*b", "a*b", true},
        {"a*b", "axb", false},
        {"a**", "ab", false},
        {"a**", "a*b", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (pattern_fits(str_c(rows[i].pattern), str_c(rows[i].name)) != rows[i].fits)
            fail_msg("%s and %s", rows[i].pattern, rows[i].name);
}

/* ---- judging ---- */

/* A list of rows as text, "calendar_*=deny pay=allow"; behind it the approvers, "pay@operator". */
struct listed {
    struct policy policy;
    struct policy_row rows[4];
    struct approver_row approvers[4];
};

static const struct policy *list(struct listed *listed, const char *text)
{
    if (!text) return NULL;
    listed->policy = (struct policy){.rows = listed->rows, .approvers = listed->approvers};
    for (str rest = str_c(text); rest.p && rest.len;) {
        str word = str_split(&rest, ' '), left = word;
        if (str_find_char(word, '@') >= 0) {
            str pattern = str_split(&left, '@');
            listed->approvers[listed->policy.approver_count++] =
                (struct approver_row){pattern, left};
            continue;
        }
        str pattern = str_split(&left, '=');
        struct policy_row *row = &listed->rows[listed->policy.count++];
        row->pattern = pattern;
        assert_int_equal(verdict_parse(left, &row->verdict), OK);
    }
    return &listed->policy;
}

#define ALLOW   VERDICT_ALLOW
#define CONFIRM VERDICT_CONFIRM
#define DENY    VERDICT_DENY

static void judgements(void **state)
{
    (void)state;
    static const struct {
        const char *file, *settings;
        bool write;
        enum verdict verdict;
        const char *rule, *approver;
    } rows[] = {
        /* without a row */
        {"", NULL, false, ALLOW, "default", ""},
        {"", NULL, true, CONFIRM, "default", ""},
        {"", "", true, CONFIRM, "default", ""},
        {"pay=deny", "files.*=deny", true, CONFIRM, "default", ""},
        {"calendar=deny", NULL, true, CONFIRM, "default", ""},
        /* the file */
        {"calendar_write=allow", NULL, true, ALLOW, "file:calendar_write", ""},
        {"calendar_write=confirm", NULL, false, CONFIRM, "file:calendar_write", ""},
        {"calendar_write=deny", NULL, false, DENY, "file:calendar_write", ""},
        {"calendar_*=allow", NULL, true, ALLOW, "file:calendar_*", ""},
        {"*=deny", NULL, false, DENY, "file:*", ""},
        /* exact before pattern, whatever the order */
        {"calendar_*=deny calendar_write=allow", NULL, true, ALLOW, "file:calendar_write", ""},
        {"calendar_write=allow calendar_*=deny", NULL, true, ALLOW, "file:calendar_write", ""},
        {"calendar_write=deny calendar_write*=allow", NULL, true, DENY, "file:calendar_write", ""},
        /* longer before shorter */
        {"*=allow cal*=deny calendar_*=confirm", NULL, true, CONFIRM, "file:calendar_*", ""},
        {"calendar_*=confirm cal*=deny *=allow", NULL, true, CONFIRM, "file:calendar_*", ""},
        {"calendar_write*=deny calendar_*=allow", NULL, true, DENY, "file:calendar_write*", ""},
        {"calendar_*=deny calendar_*=allow", NULL, true, DENY, "file:calendar_*", ""},
        /* settings over the file */
        {"calendar_write=deny", "calendar_write=allow", true, ALLOW, "settings:calendar_write", ""},
        {"calendar_write=deny", "*=allow", true, ALLOW, "settings:*", ""},
        {"calendar_write=allow", "calendar_*=deny", true, DENY, "settings:calendar_*", ""},
        {"calendar_write=allow", "pay=deny", true, ALLOW, "file:calendar_write", ""},
        {"calendar_write=allow", "calendar_*=confirm calendar_write=deny", true, DENY,
         "settings:calendar_write", ""},
        /* approvers */
        {"calendar_write@approver", NULL, true, CONFIRM, "default@approver", "approver"},
        {"calendar_write=confirm calendar_write@operator", NULL, true, CONFIRM,
         "file:calendar_write@operator", "operator"},
        {"calendar_*=confirm *@approver", NULL, true, CONFIRM, "file:calendar_*@approver",
         "approver"},
        {"*@operator calendar_*@approver", NULL, true, CONFIRM, "default@approver", "approver"},
        {"calendar_*@approver calendar_write@operator", NULL, true, CONFIRM, "default@operator",
         "operator"},
        {"*@operator calendar_*@approver", "*=confirm", true, CONFIRM, "settings:*@approver",
         "approver"},
        {"calendar_write@operator", "*@approver", true, CONFIRM, "default@approver", "approver"},
        {"calendar_write@operator", "calendar_write@", true, CONFIRM, "default", ""},
        {"pay@operator", NULL, true, CONFIRM, "default", ""},
        /* nobody is asked */
        {"calendar_write@approver", NULL, false, ALLOW, "default", ""},
        {"calendar_write=allow calendar_write@approver", NULL, true, ALLOW, "file:calendar_write",
         ""},
        {"calendar_write=deny calendar_write@approver", NULL, true, DENY, "file:calendar_write",
         ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct listed file = {0}, settings = {0};
        struct tool tool = {.name = STR("calendar_write"), .write = rows[i].write};
        struct grant_list none = {0};
        struct judgement judged =
            policy_judge(&arena, list(&file, rows[i].file), list(&settings, rows[i].settings),
                         &tool, parsed(&arena, "{}"), &none);
        assert_str(judged.rule, str_c(rows[i].rule));
        assert_str(judged.approver, str_c(rows[i].approver));
        assert_int_equal(judged.verdict, rows[i].verdict);
        assert_int_equal(judged.grant_id.len, 0);
    }
}

/* ---- grants ---- */

static void fitting(void **state)
{
    (void)state;
    static const struct {
        const char *match, *args;
        bool fits;
    } rows[] = {
        {"{}", "{}", true},
        {"{}", "{'a':1}", true},
        {"{ }", "{'a':1}", true},
        {"{'a':1}", "{'a':1}", true},
        {"{'a':1}", "{'b':2,'a':1}", true},
        {"{'a':1}", "{}", false},
        {"{'a':1}", "{'b':1}", false},
        {"{'a':1}", "{'A':1}", false},
        {"{'a':1,'b':2}", "{'a':1}", false},
        {"{'a':1,'b':2}", "{'b':2,'c':3,'a':1}", true},
        /* numbers by their text */
        {"{'a':1}", "{'a':1.0}", false},
        {"{'a':1e2}", "{'a':100}", false},
        {"{'a':1e2}", "{'a':1E2}", false},
        {"{'a':0}", "{'a':-0}", false},
        {"{'a':12345678901234567890}", "{'a':12345678901234567891}", false},
        {"{'a':0.10}", "{'a':0.10}", true},
        /* texts decoded */
        {"{'a':'A'}", "{'a':'\\u0041'}", true},
        {"{'\\u0061':'A'}", "{'a':'A'}", true},
        {"{'a':'A'}", "{'a':'A '}", false},
        {"{'a':'/'}", "{'a':'\\/'}", true},
        {"{'a':'\\ud83d\\ude00'}", "{'a':'😀'}", true},
        /* types */
        {"{'a':1}", "{'a':'1'}", false},
        {"{'a':null}", "{'a':null}", true},
        {"{'a':null}", "{}", false},
        {"{'a':null}", "{'a':false}", false},
        {"{'a':true}", "{'a':true}", true},
        {"{'a':true}", "{'a':false}", false},
        {"{'a':[]}", "{'a':{}}", false},
        /* lists in order, members in any */
        {"{'a':[1,2]}", "{'a':[1, 2]}", true},
        {"{'a':[1,2]}", "{'a':[2,1]}", false},
        {"{'a':[1,2]}", "{'a':[1]}", false},
        {"{'a':[1]}", "{'a':[1,2]}", false},
        {"{'a':{'x':1,'y':[{'p':1,'q':2}]}}", "{'a':{'y':[{'q':2,'p':1}],'x':1}}", true},
        {"{'a':{'x':1,'y':2,'z':3}}", "{'a':{'z':3,'x':1,'y':2}}", true},
        {"{'a':{'x':1,'y':2}}", "{'a':{'x':1,'z':2}}", false},
        {"{'a':{'x':1}}", "{'a':{'x':1,'y':2}}", false},
        {"{'a':{'x':1,'y':2}}", "{'a':{'x':1}}", false},
        {"{'a':{'x':{'y':1}}}", "{'a':{'x':{'y':2}}}", false},
        /* what cannot be read fits nothing */
        {"", "{'a':1}", false},
        {"[]", "{'a':1}", false},
        {"{'a':1", "{'a':1}", false},
        {"{'a':1}", "[1]", false},
        {"{'a':1}", "7", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        char *match = arena_cstr(&arena, str_c(rows[i].match));
        for (char *c = match; *c; c++)
            if (*c == '\'') *c = '"';
        struct grant grant = {.tool = STR("pay"), .match = str_c(match)};
        const struct json *args = parsed(&arena, rows[i].args);
        if (grant_fits(&grant, STR("pay"), args) != rows[i].fits)
            fail_msg("%s and %s", rows[i].match, rows[i].args);
        assert_false(grant_fits(&grant, STR("pays"), args));
        assert_false(grant_fits(&grant, STR("pa"), args));
        assert_false(grant_fits(&grant, STR(""), args));
    }
    struct grant any = {.tool = STR("pay"), .match = STR("{}")};
    struct grant one = {.tool = STR("pay"), .match = STR("{\"a\":1}")};
    assert_true(grant_fits(&any, STR("pay"), NULL));
    assert_false(grant_fits(&one, STR("pay"), NULL));
}

static void granted(void **state)
{
    (void)state;
    static struct grant grants[] = {
        {.id = {"g1", 2}, .tool = {"pays", 4}, .match = {"{}", 2}},
        {.id = {"g2", 2}, .tool = {"pay", 3}, .match = {"{\"to\":\"bob\"}", 12}},
        {.id = {"g3", 2}, .tool = {"pay", 3}, .match = {"{\"to\":\"ann\"}", 12}},
        {.id = {"g4", 2}, .tool = {"pay", 3}, .match = {"{\"sum\":1}", 9}},
        {.id = {"g5", 2}, .tool = {"pay", 3}, .approver = {"approver", 8}, .match = {"{}", 2}},
    };
    static const struct {
        const char *file;
        const char *args;
        size_t count; /* of the grants */
        enum verdict verdict;
        const char *rule, *approver, *grant;
    } rows[] = {
        {"", "{'to':'ann'}", 4, ALLOW, "default", "", "g3"},
        {"", "{'to':'ann'}", 2, CONFIRM, "default", "", ""},
        {"", "{'to':'ann'}", 0, CONFIRM, "default", "", ""},
        {"", "{'to':'eve'}", 4, CONFIRM, "default", "", ""},
        {"", "{'to':'bob','sum':1}", 4, ALLOW, "default", "", "g2"}, /* the first */
        {"pay=confirm", "{'sum':1}", 4, ALLOW, "file:pay", "", "g4"},
        {"pay=allow", "{'to':'ann'}", 4, ALLOW, "file:pay", "", ""}, /* needs none */
        {"pay=deny", "{'to':'ann'}", 4, DENY, "file:pay", "", ""},   /* never undone */
        {"*=deny", "{'to':'ann'}", 4, DENY, "file:*", "", ""},
        /* where a role approves, only what that role gave counts */
        {"pay@approver", "{'to':'ann'}", 4, CONFIRM, "default@approver", "approver", ""},
        {"pay@approver", "{'to':'ann'}", 5, ALLOW, "default@approver", "approver", "g5"},
        {"pay@operator", "{'to':'ann'}", 5, CONFIRM, "default@operator", "operator", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        struct listed file = {0};
        struct tool tool = {.name = STR("pay"), .write = true};
        struct grant_list some = {.rows = grants, .count = rows[i].count};
        struct judgement judged = policy_judge(&arena, list(&file, rows[i].file), NULL, &tool,
                                               parsed(&arena, rows[i].args), &some);
        assert_int_equal(judged.verdict, rows[i].verdict);
        assert_str(judged.rule, str_c(rows[i].rule));
        assert_str(judged.approver, str_c(rows[i].approver));
        assert_str(judged.grant_id, str_c(rows[i].grant));
    }
}

/* ---- bindings ---- */

enum { FIELDS = 7 };

static str *field_of(struct bound *bound, size_t i)
{
    str *const fields[FIELDS] = {&bound->owner, &bound->run_id, &bound->call_id, &bound->tool,
                                 &bound->args,  &bound->agent,  &bound->rule};
    return fields[i];
}

static struct binder some_binder(void)
{
    struct binder binder = {.key_id = "0a1b2c3d"};
    for (size_t i = 0; i < sizeof binder.key; i++) binder.key[i] = (unsigned char)i;
    return binder;
}

static struct bound some_bound(void)
{
    return (struct bound){.owner = STR("ann"),
                          .run_id = STR("r1"),
                          .call_id = STR("call_1"),
                          .tool = STR("pay"),
                          .args = STR("{\"to\":\"bob\"}"),
                          .agent = STR("assistant"),
                          .rule = STR("file:pay@approver")};
}

/* Made by hand from the format that policy.c shows: HMAC-SHA-256 by another program. */
static void known_binding(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    struct bound bound = some_bound();
    char binding[BINDING_BYTES];
    binding_make(&binder, &bound, binding);
    assert_string_equal(binding, "0a1b2c3d.iyPiK_Al1hFohA3e-12WpgxuIEcAMvQnDuEEoNSYhPQ");
    assert_true(binding_fits(&binder, &bound, str_c(binding)));
}

/* Each byte of each field counts, also one more and one less. */
static void changed_fields(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    struct bound bound = some_bound();
    char binding[BINDING_BYTES];
    binding_make(&binder, &bound, binding);
    for (size_t i = 0; i < FIELDS; i++) {
        str whole = *field_of(&bound, i);
        char copy[64] = {0};
        memcpy(copy, whole.p, whole.len);
        for (size_t at = 0; at < whole.len; at++) {
            struct bound other = bound;
            *field_of(&other, i) = (str){copy, whole.len};
            assert_true(binding_fits(&binder, &other, str_c(binding)));
            copy[at] ^= 1;
            assert_false(binding_fits(&binder, &other, str_c(binding)));
            copy[at] ^= 1;
        }
        struct bound other = bound;
        *field_of(&other, i) = (str){copy, whole.len + 1};
        assert_false(binding_fits(&binder, &other, str_c(binding)));
        *field_of(&other, i) = (str){copy, whole.len - 1};
        assert_false(binding_fits(&binder, &other, str_c(binding)));
        *field_of(&other, i) = STR_EMPTY;
        assert_false(binding_fits(&binder, &other, str_c(binding)));
    }
}

/* The bytes of all fields in a row stay the same; where one ends and the next begins does not. */
static void moved_bytes(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    for (size_t i = 0; i + 1 < FIELDS; i++) {
        char text[] = "abcdef", binding[BINDING_BYTES];
        struct bound bound = some_bound();
        *field_of(&bound, i) = (str){text, 3};
        *field_of(&bound, i + 1) = (str){text + 3, 3};
        binding_make(&binder, &bound, binding);
        for (size_t cut = 0; cut <= 6; cut++) {
            struct bound other = bound;
            *field_of(&other, i) = (str){text, cut};
            *field_of(&other, i + 1) = (str){text + cut, 6 - cut};
            assert_int_equal(binding_fits(&binder, &other, str_c(binding)), cut == 3);
        }
        struct bound swapped = bound;
        *field_of(&swapped, i) = *field_of(&bound, i + 1);
        *field_of(&swapped, i + 1) = *field_of(&bound, i);
        assert_false(binding_fits(&binder, &swapped, str_c(binding)));
    }
}

/* Lengths are told from the bytes of a field that look like a length. */
static void forged_lengths(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    char binding[BINDING_BYTES];
    struct bound one = {.owner = STR("\0\0\0\0\0\0\0\1a")}, two = {.run_id = STR("a")};
    binding_make(&binder, &one, binding);
    assert_false(binding_fits(&binder, &two, str_c(binding)));
    binding_make(&binder, &two, binding);
    assert_false(binding_fits(&binder, &one, str_c(binding)));
}

static void other_keys(void **state)
{
    (void)state;
    struct binder binder = some_binder(), other = some_binder();
    struct bound bound = some_bound();
    char binding[BINDING_BYTES];
    binding_make(&binder, &bound, binding);
    for (size_t i = 0; i < sizeof other.key; i++) {
        other.key[i] ^= 0x80;
        assert_false(binding_fits(&other, &bound, str_c(binding)));
        other.key[i] ^= 0x80;
    }
    assert_true(binding_fits(&other, &bound, str_c(binding)));
    other.key_id[0] = '1';
    assert_false(binding_fits(&other, &bound, str_c(binding)));
}

/* The text of a binding: each byte counts, and nothing may stand around it. */
static void other_texts(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    struct bound bound = some_bound();
    char binding[BINDING_BYTES + 1] = {0};
    binding_make(&binder, &bound, binding);
    size_t len = strlen(binding);
    assert_int_equal(len, 8 + 1 + 43);
    for (size_t i = 0; i < len; i++) {
        binding[i] ^= 1;
        assert_false(binding_fits(&binder, &bound, str_c(binding)));
        binding[i] ^= 1;
        assert_false(binding_fits(&binder, &bound, (str){binding, i}));
        assert_false(binding_fits(&binder, &bound, (str){binding + i + 1, len - i - 1}));
    }
    assert_false(binding_fits(&binder, &bound, (str){binding, len + 1}));
    assert_false(binding_fits(&binder, &bound, STR_EMPTY));
    assert_false(binding_fits(&binder, &bound, (str){NULL, 0}));
}

/* The longest id of a key has no NUL behind it. */
static void long_key_id(void **state)
{
    (void)state;
    struct binder binder = some_binder();
    struct bound bound = some_bound();
    char binding[BINDING_BYTES];
    memset(binder.key_id, 'k', sizeof binder.key_id);
    binding_make(&binder, &bound, binding);
    assert_int_equal(strlen(binding), BINDING_BYTES - 1);
    assert_memory_equal(binding, "kkkkkkkkkkkkkkkk.", 17);
    assert_true(binding_fits(&binder, &bound, str_c(binding)));
}

int test_policy(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),       cmocka_unit_test(patterns),
        cmocka_unit_test(judgements),     cmocka_unit_test(fitting),
        cmocka_unit_test(granted),        cmocka_unit_test(known_binding),
        cmocka_unit_test(changed_fields), cmocka_unit_test(moved_bytes),
        cmocka_unit_test(forged_lengths), cmocka_unit_test(other_keys),
        cmocka_unit_test(other_texts),    cmocka_unit_test(long_key_id),
    };
    return cmocka_run_group_tests_name("agent/policy", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an answer. The first byte picks what is asked; 'a' asks what the rest says and
 * answers with the line behind it. An answer is refused with a reason, or what it became is whole:
 * one line of JSON without a binding, which is taken again and means the same. As a plain message
 * the same bytes approve nothing. Whatever was settled can be written.
 */
#include <stdlib.h>

#include "agent/core/interaction.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHOICES                                                                               \
    "[{\"id\":\"c1\",\"label\":\"30 min\"},{\"id\":\"c2\",\"label\":\"1 h\",\"description\":" \
    "\"usual\"},{\"id\":\"c3\",\"label\":\"2\"}]"
#define FIELDS                                                                                    \
    "[{\"name\":\"t\",\"type\":\"text\",\"required\":true},{\"name\":\"n\",\"type\":\"number\"}," \
    "{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"d\",\"type\":\"date\"},"                   \
    "{\"name\":\"c\",\"type\":\"choice\",\"choices\":[\"x\",\"y\"]}]"
#define ARGS "{\"to\":\"bob\",\"sum\":1.50,\"when\":{\"day\":1,\"hour\":2},\"tags\":[\"a\",\"b\"]}"
#define SCHEMA                                                                                   \
    "{\"type\":\"object\",\"properties\":{\"to\":{\"type\":\"string\",\"minLength\":1},"         \
    "\"sum\":{\"type\":\"number\"},\"when\":{\"type\":\"object\"},\"tags\":{\"type\":\"array\"," \
    "\"items\":{\"type\":\"string\"}}},\"required\":[\"to\"],\"additionalProperties\":false}"

static const struct interaction templates[] = {
    {.type = INTERACTION_ASK_USER, .choices = STR(CHOICES), .allow_freeform = true},
    {.type = INTERACTION_ASK_USER, .choices = STR(CHOICES), .locale = STR("zh-CN")},
    {.type = INTERACTION_ASK_USER,
     .choices = STR(CHOICES),
     .fields = STR(FIELDS),
     .allow_freeform = true,
     .multi = true},
    {.type = INTERACTION_ASK_USER, .fields = STR(FIELDS)},
    {.type = INTERACTION_CONFIRM,
     .tool = STR("pay"),
     .args = STR(ARGS),
     .args_schema = STR(SCHEMA),
     .binding = STR("k1.b")},
    {.type = INTERACTION_CONFIRM,
     .tool = STR("submit_plan"),
     .args = STR("{}"),
     .args_schema = STR("{}"),
     .binding = STR("k1.b")},
    {.type = INTERACTION_CONNECTION_LOST},
    {.type = INTERACTION_UNCERTAIN, .tool = STR("pay"), .args = STR(ARGS)},
};

static struct json *must_parse(struct arena *arena, str text)
{
    struct json *json = NULL;
    if (json_parse(arena, text, &json, NULL)) abort();
    return json;
}

static void must_be_line(str json)
{
    if (str_find_char(json, '\n') >= 0 || str_find_char(json, '\r') >= 0) abort();
}

static void check_refusal(enum err e, const struct fault *why)
{
    if (e != ERR_INVALID_FIELD && e != ERR_BINDING_MISMATCH && e != ERR_TOO_LARGE) abort();
    if (why->err != e || !why->text[0]) abort();
    if (!utf8_valid(str_c(why->text)) || !utf8_valid(str_c(why->field))) abort();
}

static void check_written(struct arena *arena, struct interaction interaction,
                          const struct resolution *resolution)
{
    interaction.status = INTERACTION_RESOLVED;
    interaction.answer = resolution->answer;
    interaction.text = resolution->text;
    interaction.answered_by = interaction.via = STR("x");
    if (must_parse(arena, fact_interaction_request(arena, &interaction))->type != JSON_OBJECT)
        abort();
    must_parse(arena, fact_interaction_resolved(arena, &interaction));
    must_parse(arena, interaction_metadata(arena, &interaction));
}

static void check_resolution(struct arena *arena, const struct interaction *interaction,
                             const struct resolution *r)
{
    must_be_line(r->answer);
    must_be_line(r->match);
    const struct json *kept = must_parse(arena, r->answer);
    if (kept->type != JSON_OBJECT || json_get(kept, STR("binding"))) abort();
    if (must_parse(arena, r->match)->type != JSON_OBJECT) abort();
    if (!utf8_valid(r->text)) abort();
    if ((r->decision == DECISION_EDIT) != (r->args.len > 0)) abort();
    if (r->args.len && must_parse(arena, r->args)->type != JSON_OBJECT) abort();
    if (r->always && r->decision != DECISION_APPROVE) abort();
    if (r->always_user && !r->always) abort();
    bool words = interaction->type == INTERACTION_ASK_USER || r->decision == DECISION_RESPOND;
    if (words && !r->text.len) abort();
    check_written(arena, *interaction, r);
}

static void check_again(struct arena *arena, const struct interaction *interaction,
                        const struct resolution *r)
{
    struct resolution again;
    struct fault why = {0};
    if (answer_parse(arena, interaction, must_parse(arena, r->answer), &again, &why)) abort();
    if (again.decision != r->decision || again.always != r->always ||
        again.always_user != r->always_user)
        abort();
    if (!str_eq(again.text, r->text) || !str_eq(again.args, r->args) ||
        !str_eq(again.answer, r->answer) || !str_eq(again.match, r->match))
        abort();
}

static void check_plain(struct arena *arena, const struct interaction *interaction, str text)
{
    struct resolution r;
    if (interaction->type == INTERACTION_UNCERTAIN || !utf8_valid(text)) return;
    answer_plain(arena, interaction, text, &r);
    bool fits[] = {
        [INTERACTION_ASK_USER] = r.decision == DECISION_ANSWER || r.decision == DECISION_SKIP,
        [INTERACTION_CONFIRM] = r.decision == DECISION_REJECT,
        [INTERACTION_CONNECTION_LOST] = r.decision == DECISION_CONTINUE,
    };
    if (!fits[interaction->type]) abort();
    check_resolution(arena, interaction, &r);
}

static void check_answer(struct arena *arena, const struct interaction *interaction, str text)
{
    struct json *body = NULL;
    struct resolution r;
    struct fault why = {0};
    check_plain(arena, interaction, text);
    if (json_parse(arena, text, &body, NULL)) return;
    enum err e = answer_parse(arena, interaction, body, &r, &why);
    if (e) {
        check_refusal(e, &why);
        return;
    }
    check_resolution(arena, interaction, &r);
    check_again(arena, interaction, &r);
}

/* The first choice is there, and is taken. */
static void check_first_choice(struct arena *arena, const struct interaction *interaction)
{
    struct resolution r;
    struct json *body = must_parse(arena, STR("{\"choices\":[\"c1\"]}"));
    if (answer_parse(arena, interaction, body, &r, NULL)) abort();
    const struct json *first = json_at(must_parse(arena, interaction->choices), 0);
    if (!str_eq(r.text, json_text(json_get(first, STR("label"))))) abort();
}

static void check_asked(struct arena *arena, str text)
{
    struct interaction asked = templates[0];
    struct fault why = {0};
    str rest = text, args = str_split(&rest, '\n');
    if (ask_parse(arena, args, &asked, &why)) {
        check_refusal(why.err, &why);
        return;
    }
    if (!asked.question.len) abort();
    if (!asked.allow_freeform && !asked.choices.len && !asked.fields.len) abort();
    if (asked.fields.len) must_parse(arena, asked.fields);
    if (asked.choices.len) check_first_choice(arena, &asked);
    check_answer(arena, &asked, rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str text = {(const char *)data + 1, size - 1};
    if (data[0] == 'a') {
        check_asked(&arena, text);
        return 0;
    }
    struct interaction interaction = templates[data[0] % COUNT(templates)];
    interaction.id = STR("int_1");
    interaction.metadata = STR("{}");
    check_answer(&arena, &interaction, text);
    return 0;
}

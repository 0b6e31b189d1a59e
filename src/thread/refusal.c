/* SPDX-License-Identifier: Apache-2.0
 *
 * Why an answer or a press was not taken: words for the audit trail, errors for people. The codec
 * says which field is wrong, for people; the audit trail wants one word that can be counted.
 */
#include "thread/refusal.h"

#include "agent/core/interaction.h"

static const struct {
    const char *word;
    enum err err;
    const char *says;
} rows[] = {
#define REFUSAL_ROW(reason, word, err, says) {word, err, says},
    REFUSALS(REFUSAL_ROW)
#undef REFUSAL_ROW
};

str refusal_word(enum refusal refusal)
{
    return str_c(rows[refusal].word);
}

enum err refusal_err(enum refusal refusal)
{
    return rows[refusal].err;
}

const char *refusal_says(enum refusal refusal)
{
    return rows[refusal].says;
}

enum refusal refusal_of_status(enum interaction_status status)
{
    static const enum refusal refusals[INTERACTION_STATUS_COUNT] = {
        [INTERACTION_OPEN] = REFUSAL_NONE,
        [INTERACTION_RESOLVED] = REFUSAL_ALREADY_RESOLVED,
        [INTERACTION_CANCELED] = REFUSAL_ALREADY_RESOLVED,
        [INTERACTION_EXPIRED] = REFUSAL_EXPIRED,
        [INTERACTION_SUPERSEDED] = REFUSAL_SUPERSEDED,
    };
    return refusals[status];
}

/* A word that some body may say. */
static bool is_decision(str text)
{
#define DECISION_ROW(value, name) name,
    static const char *const names[] = {DECISIONS(DECISION_ROW)};
#undef DECISION_ROW
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i] && str_eq(str_c(names[i]), text)) return true;
    return false;
}

/* Is this one of the question's choices, by its id or its label? */
static bool is_choice(const struct json *choices, str text)
{
    for (const struct json *at = choices ? choices->child : NULL; at; at = at->next)
        if (str_eq(json_text(json_get(at, STR("id"))), text) ||
            str_eq(json_text(json_get(at, STR("label"))), text))
            return true;
    return false;
}

static enum refusal of_question(struct arena *arena, const struct interaction *interaction,
                                const struct json *body, str field)
{
    struct json *choices = NULL;
    if (interaction->choices.len && json_parse(arena, interaction->choices, &choices, NULL))
        return REFUSAL_INVALID_ANSWER;
    const struct json *picked = json_get(body, STR("choices"));
    if (str_starts(field, STR("choices")) && picked && picked->type == JSON_ARRAY)
        for (const struct json *at = picked->child; at; at = at->next)
            if (at->type == JSON_STRING && !is_choice(choices, at->text))
                return REFUSAL_OUTSIDE_CHOICES;
    str answer = json_text(json_get(body, STR("answer")));
    bool text = str_eq(field, STR("answer")) && str_trim(answer).len;
    return text && !interaction->allow_freeform ? REFUSAL_OUTSIDE_CHOICES : REFUSAL_INVALID_ANSWER;
}

static bool says_answer(const struct json *body)
{
    static const char *const names[] = {"choices", "answer", "fields", "skip", "text"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (json_get(body, str_c(names[i]))) return true;
    return false;
}

enum refusal refusal_of_body(struct arena *arena, const struct interaction *interaction,
                             const struct json *body, str field)
{
    const struct json *decision = json_get(body, STR("decision"));
    if (interaction->type == INTERACTION_ASK_USER)
        return decision ? REFUSAL_WRONG_TYPE : of_question(arena, interaction, body, field);
    if (!decision) return says_answer(body) ? REFUSAL_WRONG_TYPE : REFUSAL_INVALID_ANSWER;
    if (str_eq(field, STR("decision")) && decision->type == JSON_STRING)
        return is_decision(decision->text) ? REFUSAL_WRONG_TYPE : REFUSAL_UNKNOWN_DECISION;
    if (str_starts(field, STR("args"))) return REFUSAL_EDIT_INVALID;
    bool approves = str_eq(json_text(decision), STR("approve"));
    bool plan = str_eq(interaction->tool, tool_submit_plan.name);
    if (str_starts(field, STR("always")) && (plan || !approves)) return REFUSAL_ALWAYS_NOT_ALLOWED;
    return REFUSAL_INVALID_ANSWER;
}

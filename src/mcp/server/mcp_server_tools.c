/* SPDX-License-Identifier: Apache-2.0
 *
 * The tools ask_user, confirm and get_answer as other agents see them: a table of names, words and
 * schemas; arguments into the call that a run of ours is made of; and what became of it into a
 * result; pure.
 *
 *     ask_user {question, choices?, ..., key?, title?, wait_s?}  ─►  ask_user {question, choices?, ...}
 *     confirm  {action, details?, key?, title?, wait_s?}         ─►  consent {action, details?}
 *     get_answer {id, wait_s?}                                   ─►  nothing new is asked
 *
 * Invariants:
 * 1. Arguments of the question are written member by member, in the order of our own schema and with
 *    the client's bytes, so that the same question is the same bytes however it was sent.
 * 2. What is taken can be asked: a question is checked by the same code that checks one of a model.
 * 3. A result is the same JSON twice: as structuredContent, and as text for clients that know only
 *    that.
 *
 * To add an argument: its place in the schema and in the tool's `members`. To add a tool: a row in
 * `tools`, a branch in desk_parse, and one where calls are served (http/api_mcp.c).
 */
#include "mcp/server/mcp_server_tools.h"

#include <stdio.h>

#include "agent/core/interaction.h"
#include "agent/core/texts.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/say.h"
#include "mcp/client/consent.h"
#include "ui/text.h"

#define KEY_SCHEMA                                                                                 \
    "\"key\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200,"                              \
    "\"description\":\"Your own name for this question. The same key gives the same question "     \
    "again, also after a restart, instead of asking the person twice. Use one whenever you might " \
    "retry.\"}"
#define TITLE_SCHEMA                                    \
    "\"title\":{\"type\":\"string\",\"maxLength\":200," \
    "\"description\":\"What you are working on, shown above it\"}"
#define WAIT_SCHEMA                                                                 \
    "\"wait_s\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":50,\"default\":50," \
    "\"description\":\"Seconds to wait for the person before the call returns status pending\"}"

#define STATE_SCHEMA                                                                             \
    "{\"type\":\"object\",\"properties\":{"                                                      \
    "\"status\":{\"type\":\"string\",\"enum\":[\"pending\",\"answered\",\"approved\","           \
    "\"rejected\",\"declined\",\"cancelled\",\"expired\",\"failed\"]},"                          \
    "\"id\":{\"type\":\"string\",\"description\":\"For get_answer\"},"                           \
    "\"queued\":{\"type\":\"boolean\",\"description\":\"People will see it once an earlier one " \
    "is answered\"},"                                                                            \
    "\"answer\":{\"type\":\"string\",\"description\":\"What the person said, in words; several " \
    "choices are a JSON array, a form is a JSON object\"},"                                      \
    "\"reply\":{\"type\":\"object\",\"description\":\"The same as it was given: choices (c1 is " \
    "the first), text, answer, fields, or the decision\"},"                                      \
    "\"comment\":{\"type\":\"string\",\"description\":\"Why it was rejected\"},"                 \
    "\"changed\":{\"type\":\"object\",\"description\":\"What the person approved instead: they " \
    "changed action or details\"},"                                                              \
    "\"reason\":{\"type\":\"string\"},\"answeredBy\":{\"type\":\"string\"},"                     \
    "\"via\":{\"type\":\"string\"},\"answeredAt\":{\"type\":\"string\"},"                        \
    "\"hint\":{\"type\":\"string\",\"description\":\"What to do next\"}},"                       \
    "\"required\":[\"status\",\"id\"]}"

/* As our own ask_user has it, and the three arguments that all questions have. */
#define ASK_SCHEMA                                                                      \
    "{\"type\":\"object\",\"properties\":{"                                             \
    "\"question\":{\"type\":\"string\",\"minLength\":1,"                                \
    "\"description\":\"What you want to know, in the person's language\"},"             \
    "\"choices\":{\"type\":\"array\",\"maxItems\":50,"                                  \
    "\"description\":\"Answers to pick from, all different\","                          \
    "\"items\":{\"type\":[\"string\",\"object\"],\"properties\":{"                      \
    "\"label\":{\"type\":\"string\",\"minLength\":1},"                                  \
    "\"description\":{\"type\":\"string\"}},"                                           \
    "\"required\":[\"label\"],\"additionalProperties\":false}},"                        \
    "\"allow_freeform\":{\"type\":\"boolean\",\"default\":true,"                        \
    "\"description\":\"May they answer in their own words?\"},"                         \
    "\"multi\":{\"type\":\"boolean\",\"default\":false,"                                \
    "\"description\":\"May they pick several choices?\"},"                              \
    "\"fields\":{\"type\":\"array\",\"maxItems\":50,"                                   \
    "\"description\":\"A form, for several facts at once\","                            \
    "\"items\":{\"type\":\"object\",\"properties\":{"                                   \
    "\"name\":{\"type\":\"string\",\"minLength\":1},\"label\":{\"type\":\"string\"},"   \
    "\"type\":{\"type\":\"string\","                                                    \
    "\"enum\":[\"text\",\"number\",\"boolean\",\"date\",\"choice\"]},"                  \
    "\"required\":{\"type\":\"boolean\"},"                                              \
    "\"choices\":{\"type\":\"array\",\"maxItems\":50,\"items\":{\"type\":\"string\"}}," \
    "\"description\":{\"type\":\"string\"}},"                                           \
    "\"required\":[\"name\",\"type\"],\"additionalProperties\":false}}," KEY_SCHEMA     \
    "," TITLE_SCHEMA "," WAIT_SCHEMA                                                    \
    "},\"required\":[\"question\"],\"additionalProperties\":false}"

#define CONFIRM_SCHEMA                                                                         \
    "{\"type\":\"object\",\"properties\":{"                                                    \
    "\"action\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":500,"                       \
    "\"description\":\"What you are about to do, on one line\"},"                              \
    "\"details\":{\"description\":\"Everything that the person has to see to decide: text or " \
    "JSON, shown whole\"}," KEY_SCHEMA "," TITLE_SCHEMA "," WAIT_SCHEMA                        \
    "},\"required\":[\"action\"],\"additionalProperties\":false}"

#define ANSWER_SCHEMA                                                  \
    "{\"type\":\"object\",\"properties\":{"                            \
    "\"id\":{\"type\":\"string\",\"minLength\":1,"                     \
    "\"description\":\"As ask_user or confirm gave it\"}," WAIT_SCHEMA \
    "},\"required\":[\"id\"],\"additionalProperties\":false}"

static const struct {
    str name, title, description, schema;
    bool asks; /* it may ask something new */
    const char *const *members;
} tools[DESK_TOOL_COUNT] = {
    [DESK_ASK_USER] =
        {STR("ask_user"), STR("Ask the person"),
         STR("Ask the person you work for, in their inbox, page or chat, and wait for the answer. "
             "Use it when several ways would work and the choice is theirs, when a fact is missing "
             "that only they have, or when something failed and somebody must decide. Offer "
             "choices where you can, and ask one thing at a time. If they do not answer within "
             "wait_s the result is {status: \"pending\", id}: the question stays open, and "
             "get_answer tells you later. For permission to do something use confirm instead."),
         STR(ASK_SCHEMA), true,
         (const char *const[]){"question", "choices", "allow_freeform", "multi", "fields", "key",
                               "title", "wait_s", NULL}},
    [DESK_CONFIRM] =
        {STR("confirm"), STR("Get an approval"),
         STR("Ask the person to approve one action before you do it: anything that costs money, "
             "reaches other people or cannot be undone. They see action and details exactly as "
             "you send them. Go on only if status is \"approved\" (look at `changed`: they may "
             "have approved something else); \"rejected\" may say why in `comment`; \"pending\" "
             "is no approval: ask get_answer later."),
         STR(CONFIRM_SCHEMA), true,
         (const char *const[]){"action", "details", "key", "title", "wait_s", NULL}},
    [DESK_GET_ANSWER] =
        {STR("get_answer"), STR("See whether they answered"),
         STR("What became of a question or an approval that was pending: waits up to wait_s for "
             "it. Nothing is asked again."),
         STR(ANSWER_SCHEMA), false, (const char *const[]){"id", "wait_s", NULL}},
};

enum { QUESTION_MEMBERS = 5, ACTION_MEMBERS = 2 }; /* of the rows above, that the person sees */

enum err desk_find(str name, enum desk_tool *ret_tool)
{
    for (size_t i = 0; i < COUNT(tools); i++) {
        if (!str_eq(tools[i].name, name)) continue;
        *ret_tool = (enum desk_tool)i;
        return OK;
    }
    return ERR_NOT_FOUND;
}

/* ---- arguments ---- */

static enum err check_known(const char *const *names, const struct json *arguments,
                            struct fault *reterr)
{
    for (const struct json *n = arguments ? arguments->child : NULL; n; n = n->next) {
        size_t i = 0;
        while (names[i] && !str_eq(str_c(names[i]), n->key)) i++;
        if (!names[i])
            return fault_field(reterr, ERR_INVALID_FIELD, say(n->key).text,
                               "there is no argument \"%s\"", say(n->key).text);
    }
    return OK;
}

/* A text of 1 to bytes_max bytes; left alone if it is absent and may be. */
static enum err take_text(const struct json *arguments, const char *name, size_t bytes_max,
                          bool required, str *text, struct fault *reterr)
{
    const struct json *value = json_get(arguments, str_c(name));
    if (!value && !required) return OK;
    if (!value || value->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, name, "%s must be a string", name);
    if (!ui_trim(value->text).len || value->text.len > bytes_max)
        return fault_field(reterr, ERR_INVALID_FIELD, name,
                           "%s must not be blank, and may have %zu bytes", name, bytes_max);
    *text = value->text;
    return OK;
}

static enum err take_wait(const struct json *arguments, msec *ret_ms, struct fault *reterr)
{
    const struct json *value = json_get(arguments, STR("wait_s"));
    uint64_t seconds = DESK_WAIT_S_MAX;
    if (value && (json_u64(value, &seconds) || seconds > DESK_WAIT_S_MAX))
        return fault_field(reterr, ERR_INVALID_FIELD, "wait_s",
                           "wait_s must be a whole number from 0 to %d", DESK_WAIT_S_MAX);
    *ret_ms = (msec)seconds * 1000;
    return OK;
}

/* The first `count` members, as far as they are given, with their own bytes. */
static str kept_members(struct arena *arena, const char *const *names, size_t count,
                        const struct json *arguments)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, arguments->raw.len + 64);
    json_object(&doc.w);
    for (size_t i = 0; i < count; i++) {
        const struct json *value = json_get(arguments, str_c(names[i]));
        if (!value) continue;
        json_member_raw(&doc.w, str_c(names[i]), value->raw);
    }
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_one_line(arena, buf_str(&doc.buf));
}

static enum err read_question(struct arena *arena, const struct json *arguments,
                              struct desk_call *call, struct fault *reterr)
{
    struct interaction asked = {0};
    if (!arguments)
        return fault_field(reterr, ERR_INVALID_FIELD, "question", "question must be a string");
    call->press_tool = tool_ask_user.name;
    call->press_args =
        kept_members(arena, tools[DESK_ASK_USER].members, QUESTION_MEMBERS, arguments);
    enum err e = ask_parse(arena, call->press_args, &asked, reterr);
    call->words = asked.question;
    return e;
}

static enum err read_action(struct arena *arena, const struct json *arguments,
                            struct desk_call *call, struct fault *reterr)
{
    enum err e =
        take_text(arguments, "action", CONSENT_ACTION_BYTES_MAX, true, &call->words, reterr);
    if (e) return e;
    for (size_t i = 0; i < call->words.len; i++)
        if ((unsigned char)call->words.p[i] < ' ')
            return fault_field(reterr, ERR_INVALID_FIELD, "action",
                               "action must be one line; the rest belongs into details");
    call->press_tool = consent_name;
    call->press_args = kept_members(arena, tools[DESK_CONFIRM].members, ACTION_MEMBERS, arguments);
    return OK;
}

enum err desk_parse(struct arena *arena, enum desk_tool tool, const struct json *arguments,
                    struct desk_call *ret_call, struct fault *reterr)
{
    struct desk_call call = {.tool = tool};
    enum err e = check_known(tools[tool].members, arguments, reterr);
    if (!e) e = take_wait(arguments, &call.wait_ms, reterr);
    if (!e && tool == DESK_GET_ANSWER)
        e = take_text(arguments, "id", DESK_ID_BYTES_MAX, true, &call.id, reterr);
    if (!e && tools[tool].asks)
        e = take_text(arguments, "key", DESK_KEY_BYTES_MAX, false, &call.key, reterr);
    if (!e && tools[tool].asks)
        e = take_text(arguments, "title", DESK_TITLE_BYTES_MAX, false, &call.title, reterr);
    if (!e && tool == DESK_ASK_USER) e = read_question(arena, arguments, &call, reterr);
    if (!e && tool == DESK_CONFIRM) e = read_action(arena, arguments, &call, reterr);
    if (!e && call.press_args.len > CALL_ARGS_BYTES_MAX)
        e = fault(reterr, ERR_INVALID_FIELD, "this is too long: a person can be shown %d bytes",
                  CALL_ARGS_BYTES_MAX);
    if (e) return e;
    crypto_sha256(arena_printf(arena, "%.*s\n%.*s", STR_ARG(call.press_tool),
                               STR_ARG(call.press_args)),
                  call.hash);
    *ret_call = call;
    return OK;
}

/* ---- the list ---- */

void desk_write_list(struct json_writer *w)
{
    json_key(w, STR("tools"));
    json_array(w);
    for (size_t i = 0; i < COUNT(tools); i++) {
        json_object(w);
        json_member(w, STR("name"), tools[i].name);
        json_member(w, STR("title"), tools[i].title);
        json_member(w, STR("description"), tools[i].description);
        json_member_raw(w, STR("inputSchema"), tools[i].schema);
        json_member_raw(w, STR("outputSchema"), STR(STATE_SCHEMA));
        json_key(w, STR("annotations"));
        json_object(w);
        json_member_bool(w, STR("readOnlyHint"), !tools[i].asks);
        json_member_bool(w, STR("destructiveHint"), false);
        json_member_bool(w, STR("openWorldHint"), true); /* there is a person at the other end */
        json_object_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

/* ---- results ---- */

#define DESK_NAME(value, name) [value] = STR(name),
static const str status_names[DESK_STATUS_COUNT] = {DESK_STATUSES(DESK_NAME)};
#undef DESK_NAME

static str hint_of(const struct desk_state *state)
{
    if (state->status == DESK_PENDING && state->queued)
        return STR("Too many questions of yours are open, so people do not see this one yet; it "
                   "comes up by itself. Call get_answer with this id later.");
    if (state->status == DESK_PENDING)
        return STR("Nobody has answered yet. The question stays open: call get_answer with this "
                   "id, now or later. Pending is not a yes.");
    if (state->status == DESK_DECLINED)
        return STR("The person did not want to answer this. Go on without, or ask otherwise.");
    return STR_EMPTY;
}

static void put_text(struct json_writer *w, str name, str text)
{
    if (text.len) json_member(w, name, text);
}

static void put_json(struct json_writer *w, str name, str json)
{
    if (!json.len) return;
    json_member_raw(w, name, json);
}

static void write_object(struct json_writer *w, const struct desk_state *state)
{
    json_object(w);
    json_member(w, STR("status"), status_names[state->status]);
    json_member(w, STR("id"), state->id);
    if (state->queued) json_member_bool(w, STR("queued"), true);
    put_text(w, STR("answer"), state->answer);
    put_json(w, STR("reply"), state->reply);
    put_text(w, STR("comment"), state->comment);
    put_json(w, STR("changed"), state->args);
    put_text(w, STR("reason"), state->reason);
    put_text(w, STR("answeredBy"), state->answered_by);
    put_text(w, STR("via"), state->via);
    if (state->settled) {
        char at[RFC3339_BYTES];
        clock_rfc3339(state->settled, at);
        json_member(w, STR("answeredAt"), str_c(at));
    }
    put_text(w, STR("hint"), hint_of(state));
    json_object_end(w);
}

static void write_content(struct json_writer *w, str text)
{
    json_key(w, STR("content"));
    json_array(w);
    json_object(w);
    json_member(w, STR("type"), STR("text"));
    json_member(w, STR("text"), text);
    json_object_end(w);
    json_array_end(w);
}

static void write_error(struct json_writer *w, bool is)
{
    json_member_bool(w, STR("isError"), is);
}

void desk_write_state(struct json_writer *w, struct arena *arena, const struct desk_state *state)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, DESK_RESULT_BYTES_MAX);
    write_object(&doc.w, state);
    str json = json_doc_copy(&doc, arena);
    assert(!doc.buf.full); /* an answer is bounded far below it */
    write_content(w, json);
    json_member_raw(w, STR("structuredContent"), json);
    write_error(w, state->status == DESK_FAILED);
}

void desk_write_fault(struct json_writer *w, str text)
{
    write_content(w, text);
    write_error(w, true);
}

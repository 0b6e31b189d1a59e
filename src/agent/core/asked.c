/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tool asks people in the middle of a call, as its row keeps it: to and from JSON, and into
 * an interaction.
 *
 *     a form             fields, made from its schema (tool/elicit.h)
 *     a page to open     its address, and the choices: done, no
 *     neither            the choices: yes, no
 *
 * Who asks is said in front, by us: a server cannot pass its question off as the agent's.
 */
#include "agent/core/asked.h"

#include "agent/core/texts.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/rows.h"
#include "tool/elicit.h"
#include "ui/visible.h"

/* ---- JSON ---- */

static str text_of(const struct json *object, const char *name)
{
    return json_text(json_get(object, str_c(name)));
}

/* A member that is JSON itself; empty if it is not there. */
static str raw_of(const struct json *object, const char *name)
{
    const struct json *member = json_get(object, str_c(name));
    return member ? member->raw : STR_EMPTY;
}

static struct asked_question read_question(const struct json *q)
{
    return (struct asked_question){
        .said = {.question = {.id = text_of(q, "id"),
                              .message = text_of(q, "message"),
                              .schema = raw_of(q, "schema"),
                              .url = text_of(q, "url")},
                 .reply = {.action = text_of(q, "action"), .content = raw_of(q, "content")}},
        .hash = text_of(q, "hash"),
        .interaction_id = text_of(q, "interaction")};
}

enum err asked_parse(struct arena *arena, str text, struct asked *ret_asked)
{
    struct json *json = NULL;
    *ret_asked = (struct asked){0};
    if (!text.len) return OK;
    if (json_parse(arena, text, &json, NULL)) return ERR_DAMAGED;
    const struct json *questions = json_get(json, STR("questions"));
    if (!questions || questions->type != JSON_ARRAY) return ERR_DAMAGED;
    struct asked asked = {.state = text_of(json, "state")};
    for (const struct json *q = questions->child; q; q = q->next) {
        if (q->type != JSON_OBJECT) return ERR_DAMAGED;
        *ROWS_ADD(arena, asked.rows, asked.count) = read_question(q);
    }
    *ret_asked = asked;
    return OK;
}

static void member_text(struct json_writer *w, const char *name, str text)
{
    if (text.len) json_member(w, str_c(name), text);
}

static void member_raw(struct json_writer *w, const char *name, str json)
{
    if (!json.len) return;
    json_member_raw(w, str_c(name), json);
}

static size_t bytes_of(const struct asked_question *q)
{
    const struct tool_question *question = &q->said.question;
    return 6 * (question->id.len + question->message.len + question->url.len) +
           question->schema.len + q->said.reply.content.len + 512;
}

str asked_write(struct arena *arena, const struct asked *asked)
{
    AUTO(json_doc_done) struct json_doc doc;
    size_t bytes = 6 * asked->state.len + 64;
    for (size_t i = 0; i < asked->count; i++) bytes += bytes_of(&asked->rows[i]);
    json_doc_open(&doc, bytes);
    json_object(&doc.w);
    member_text(&doc.w, "state", asked->state);
    json_key(&doc.w, STR("questions"));
    json_array(&doc.w);
    for (size_t i = 0; i < asked->count; i++) {
        const struct asked_question *q = &asked->rows[i];
        json_object(&doc.w);
        json_member(&doc.w, STR("id"), q->said.question.id);
        json_member(&doc.w, STR("message"), q->said.question.message);
        member_raw(&doc.w, "schema", q->said.question.schema);
        member_text(&doc.w, "url", q->said.question.url);
        json_member(&doc.w, STR("hash"), q->hash);
        member_text(&doc.w, "interaction", q->interaction_id);
        member_text(&doc.w, "action", q->said.reply.action);
        member_raw(&doc.w, "content", q->said.reply.content);
        json_object_end(&doc.w);
    }
    json_array_end(&doc.w);
    json_object_end(&doc.w);
    assert(!doc.buf.full);
    return json_doc_copy(&doc, arena);
}

/* ---- for people ---- */

/* The first one is the yes. */
static str choices_of(str locale, bool page)
{
    bool zh = locale_is_chinese(locale);
    if (page)
        return zh ? STR("[{\"id\":\"c1\",\"label\":\"已完成\"},{\"id\":\"c2\",\"label\":\"不打开\"}"
                        "]")
                  : STR("[{\"id\":\"c1\",\"label\":\"Done\"},{\"id\":\"c2\",\"label\":\"Do "
                        "not\"}]");
    return zh ? STR("[{\"id\":\"c1\",\"label\":\"是\"},{\"id\":\"c2\",\"label\":\"否\"}]")
              : STR("[{\"id\":\"c1\",\"label\":\"Yes\"},{\"id\":\"c2\",\"label\":\"No\"}]");
}

/* {"source":"tool","tool":"files.write"} */
static str metadata_of(struct arena *arena, str tool)
{
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, 6 * tool.len + 64);
    json_object(&doc.w);
    json_member(&doc.w, STR("source"), STR("tool"));
    json_member(&doc.w, STR("tool"), tool);
    json_object_end(&doc.w);
    return json_doc_copy(&doc, arena);
}

enum err asked_interaction(struct arena *arena, const struct asking *asking,
                           struct interaction *interaction, struct fault *reterr)
{
    const struct tool_question *q = asking->question;
    str fields = STR_EMPTY;
    enum err e = q->schema.len ? elicit_fields(arena, q->schema, &fields, reterr) : OK;
    if (e) return e;
    bool form = fields.len > 2;
    const str parts[] = {text_say(arena, TEXT_TOOL_ASKS, asking->locale, asking->tool), STR(" "),
                         q->message, q->url.len ? STR("\n") : STR_EMPTY, q->url};
    str text = ui_visible(arena, text_join(arena, parts, COUNT(parts)), true);
    interaction->question = interaction->display_text = text;
    interaction->fields = form ? fields : STR_EMPTY;
    interaction->choices = form ? STR_EMPTY : choices_of(asking->locale, q->url.len);
    interaction->args_schema = form ? q->schema : STR_EMPTY;
    interaction->allow_freeform = false;
    interaction->multi = false;
    interaction->metadata = metadata_of(arena, asking->tool);
    return OK;
}

/* ---- the reply ---- */

/* The first of the choices, by its id or by its label. */
static bool says_yes(struct arena *arena, const struct interaction *interaction,
                     const struct resolution *r)
{
    struct json *choices = NULL;
    if (json_parse(arena, interaction->choices, &choices, NULL) || !choices->child) return false;
    return str_eq(r->text, text_of(choices->child, "label"));
}

struct tool_reply asked_reply(struct arena *arena, const struct tool_question *question,
                              const struct interaction *interaction, const struct resolution *r)
{
    static const struct tool_reply declined = {.action = STR("decline")};
    struct tool_reply reply = {.action = STR("accept")};
    struct json *answer = NULL;
    if (r->decision == DECISION_SKIP) return declined;
    if (r->decision != DECISION_ANSWER) return (struct tool_reply){.action = STR("cancel")};
    if (!interaction->fields.len) {
        if (!says_yes(arena, interaction, r)) return declined;
        if (question->schema.len) reply.content = STR("{}");
        return reply;
    }
    if (json_parse(arena, r->answer, &answer, NULL)) return declined;
    const struct json *fields = json_get(answer, STR("fields"));
    if (!fields || elicit_content(arena, question->schema, fields, &reply.content, NULL))
        return declined;
    return reply;
}

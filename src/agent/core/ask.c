/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model may ask of people: the tools ask_user and submit_plan, and the arguments of the
 * former made into a question.
 *
 *     {"question": "How long?", "choices": ["30 min", {"label": "1 h", "description": "usual"}]}
 *     [{"id":"c1","label":"30 min"},{"id":"c2","label":"1 h","description":"usual"}]  in the row
 *
 * 1. Whatever is accepted can be answered, and each answer means one thing: labels and names of
 *    fields are trimmed, not blank and all different, and there is at least one way to answer.
 * 2. What is wrong is said with the path of the argument, for the model reads it and tries again.
 *    ask_parse checks everything that the schema says, and what a schema cannot say.
 * 3. The row holds JSON written here, never the model's own bytes.
 *
 * To add an argument: its place in the schema, in `members` and in parse_question. A type of field
 * is a row in answer.c and a word in the schema.
 */
#include <stdio.h>

#include "agent/core/interaction_int.h"
#include "base/limits.h"

/* ---- the tools ---- */

const struct graph_tool tool_ask_user = {
    .name = {"ask_user", 8},
    .description =
        {
            STR("Ask the person a question and wait; the answer is the result. Ask when several "
                "ways would work and the choice is theirs, when a fact is missing that only they "
                "have, when a command failed and somebody must decide how to go on, or when money "
                "or irreversible effects are at stake. Never ask for plain confirmation of a call: "
                "the server does that itself. Ask one thing at a time, and offer choices where you "
                "can."),
            STR("向用户提问并等待，回答就是本工具的结果。适用于：有多种可行做法，要由用户选择"
                "；缺少只有用户才知道的信息；命令失败，需要有人决定下一步；涉及花钱或不可撤销"
                "的后果。不要用它请求普通确认：需要批准的操作由服务器自己询问。一次只问一件事"
                "，能列出选项时请列出选项。"),
        },
    .schema =
        STR("{\"type\":\"object\",\"properties\":{"
            "\"question\":{\"type\":\"string\",\"minLength\":1,"
            "\"description\":\"What you want to know, in the person's language\"},"
            "\"choices\":{\"type\":\"array\",\"maxItems\":50,"
            "\"description\":\"Answers to pick from, all different\","
            "\"items\":{\"type\":[\"string\",\"object\"],\"properties\":{"
            "\"label\":{\"type\":\"string\",\"minLength\":1},"
            "\"description\":{\"type\":\"string\"}},"
            "\"required\":[\"label\"],\"additionalProperties\":false}},"
            "\"allow_freeform\":{\"type\":\"boolean\","
            "\"description\":\"May they answer in their own words? true unless you say false\"},"
            "\"multi\":{\"type\":\"boolean\","
            "\"description\":\"May they pick several choices? false unless you say true\"},"
            "\"fields\":{\"type\":\"array\",\"maxItems\":50,"
            "\"description\":\"A form, for several facts at once\","
            "\"items\":{\"type\":\"object\",\"properties\":{"
            "\"name\":{\"type\":\"string\",\"minLength\":1,"
            "\"description\":\"Key of the value in the answer\"},"
            "\"label\":{\"type\":\"string\",\"description\":\"What the person sees\"},"
            "\"type\":{\"type\":\"string\","
            "\"enum\":[\"text\",\"number\",\"boolean\",\"date\",\"choice\"]},"
            "\"required\":{\"type\":\"boolean\"},"
            "\"choices\":{\"type\":\"array\",\"maxItems\":50,\"items\":{\"type\":\"string\"},"
            "\"description\":\"Of a choice: what to pick from\"},"
            "\"description\":{\"type\":\"string\"}},"
            "\"required\":[\"name\",\"type\"],\"additionalProperties\":false}}},"
            "\"required\":[\"question\"],\"additionalProperties\":false}"),
};

const struct graph_tool tool_submit_plan = {
    .name = {"submit_plan", 11},
    .description =
        {
            STR("Submit a plan before work of several steps that depend on each other. The person "
                "sees it and approves, edits or rejects it; the result says which. Each step says "
                "what is to be done and, in done_when, how one can tell that it is done. A task of "
                "one or two calls needs no plan."),
            STR("在执行由多个相互依赖的步骤组成的任务之前提交计划。用户会看到计划，并批准、修"
                "改或拒绝，结果会说明是哪一种。每一步写明要做什么，并在 done_when 中写明怎样"
                "算完成。一两次调用就能完成的任务不需要计划。"),
        },
    .schema = STR("{\"type\":\"object\",\"properties\":{"
                  "\"steps\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":100,"
                  "\"items\":{\"type\":\"object\",\"properties\":{"
                  "\"content\":{\"type\":\"string\",\"minLength\":1,"
                  "\"description\":\"What is to be done\"},"
                  "\"done_when\":{\"type\":\"string\","
                  "\"description\":\"How one can tell that it is done\"}},"
                  "\"required\":[\"content\"],\"additionalProperties\":false}}},"
                  "\"required\":[\"steps\"],\"additionalProperties\":false}"),
};

/* Deeper parts are said in words: what is wrong with a card is told by the compiler, with its path. */
const struct graph_tool tool_show_card = {
    .name = {"show_card", 9},
    .description =
        {
            STR("Show the person a card together with this message: figures, a list, a status, or "
                "buttons. The card is described by hints, not by markup. Use it where a card says "
                "more than a sentence; one card for a message. It needs no answer, and you need "
                "not "
                "call anything after it."),
            STR("随本条消息向用户展示一张卡片：数据、列表、状态或按钮。用提示字段描述卡片，不要"
                "写标记语言。当卡片比一句话更清楚时使用，每条消息最多一张。它不需要回答，之后也"
                "不必再调用别的工具。"),
        },
    .schema = STR(
        "{\"type\":\"object\",\"properties\":{"
        "\"version\":{\"type\":\"string\",\"enum\":[\"2.1\"]},"
        "\"intent\":{\"type\":\"string\",\"enum\":[\"message\",\"data\",\"list\",\"status\","
        "\"form\","
        "\"mixed\"]},"
        "\"status\":{\"type\":\"string\",\"enum\":[\"info\",\"success\",\"warning\",\"error\","
        "\"pending\"]},"
        "\"title\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
        "\"body\":{\"type\":\"string\"},"
        "\"bodyFormat\":{\"type\":\"string\",\"enum\":[\"plain\",\"markdown\"]},"
        "\"items\":{\"type\":\"array\",\"description\":\"[{key, label?, value, copyable?}]\","
        "\"items\":{\"type\":\"object\"}},"
        "\"listItems\":{\"type\":\"array\",\"description\":\"[{title, subtitle?, description?, "
        "badge?: {label, status?}, items?, actions?}]\",\"items\":{\"type\":\"object\"}},"
        "\"sections\":{\"type\":\"array\",\"description\":\"[{title?, description?, body?, items?, "
        "listItems?, actions?}]\",\"items\":{\"type\":\"object\"}},"
        "\"actions\":{\"type\":\"array\",\"description\":\"[{label, style?: "
        "primary|secondary|ghost|"
        "danger, action: {type: navigation, path} | {type: url, url} | {type: event, event} | "
        "{type: tool, toolId, params} | {type: copy, content} | {type: payload, payload}}]\","
        "\"items\":{\"type\":\"object\"}}},"
        "\"required\":[\"version\",\"intent\",\"status\"]}"),
};

bool graph_tool_is(str name)
{
    return str_eq(name, tool_ask_user.name) || str_eq(name, tool_submit_plan.name) ||
           str_eq(name, tool_show_card.name);
}

/* ---- members ---- */

/* An object of the arguments, and what it is called. */
struct ask_place {
    const struct json *object;
    const char *path; /* "" for the whole */
    struct fault *reterr;
};

static enum err ask_refuse(const struct ask_place *place, const char *name, const char *why)
{
    char path[PATH_BYTES];
    path_join(place->path, str_c(name), path);
    return fault_field(place->reterr, ERR_INVALID_FIELD, path, "%s %s", path, why);
}

static enum err check_text(const struct json *value, const char *path, size_t bytes_max,
                           str *ret_text, struct fault *reterr)
{
    if (!value || value->type != JSON_STRING)
        return fault_field(reterr, ERR_INVALID_FIELD, path, "%s must be a string", path);
    str text = text_trim(value->text);
    if (text.len > bytes_max)
        return fault_field(reterr, ERR_INVALID_FIELD, path, "%s may have %zu bytes", path,
                           bytes_max);
    *ret_text = text;
    return OK;
}

/* A text that has to say something. */
static enum err check_words(const struct json *value, const char *path, size_t bytes_max,
                            str *ret_text, struct fault *reterr)
{
    str text = STR_EMPTY;
    enum err e = check_text(value, path, bytes_max, &text, reterr);
    if (e) return e;
    if (!text.len)
        return fault_field(reterr, ERR_INVALID_FIELD, path, "%s must not be blank", path);
    *ret_text = text;
    return OK;
}

static enum err take_words(const struct ask_place *place, const char *name, size_t bytes_max,
                           str *ret_text)
{
    char path[PATH_BYTES];
    path_join(place->path, str_c(name), path);
    const struct json *value = json_get(place->object, str_c(name));
    return check_words(value, path, bytes_max, ret_text, place->reterr);
}

/* Absent and blank are the same: nothing to show. */
static enum err take_text(const struct ask_place *place, const char *name, str *ret_text)
{
    char path[PATH_BYTES];
    const struct json *value = json_get(place->object, str_c(name));
    *ret_text = STR_EMPTY;
    if (!value) return OK;
    path_join(place->path, str_c(name), path);
    return check_text(value, path, ASK_TEXT_BYTES_MAX, ret_text, place->reterr);
}

static enum err take_bool(const struct ask_place *place, const char *name, bool absent,
                          bool *ret_value)
{
    const struct json *value = json_get(place->object, str_c(name));
    if (value && value->type != JSON_TRUE && value->type != JSON_FALSE)
        return ask_refuse(place, name, "must be true or false");
    *ret_value = value ? value->type == JSON_TRUE : absent;
    return OK;
}

/* *ret_list is NULL if there is none, or nothing in it. */
static enum err take_list(const struct ask_place *place, const char *name, uint32_t count_max,
                          const struct json **ret_list)
{
    const struct json *list = json_get(place->object, str_c(name));
    if (list && list->type != JSON_ARRAY) return ask_refuse(place, name, "must be a list");
    if (list && list->count > count_max) {
        char path[PATH_BYTES];
        path_join(place->path, str_c(name), path);
        return fault_field(place->reterr, ERR_INVALID_FIELD, path, "%s may have %u items", path,
                           count_max);
    }
    *ret_list = list && list->count ? list : NULL;
    return OK;
}

/* Texts seen so far, to find the second of a kind. */
struct seen {
    str texts[ASK_CHOICES_MAX > ASK_FIELDS_MAX ? ASK_CHOICES_MAX : ASK_FIELDS_MAX];
    size_t count;
};

static enum err check_new(struct seen *seen, str text, const char *path, struct fault *reterr)
{
    for (size_t i = 0; i < seen->count; i++)
        if (str_eq(seen->texts[i], text))
            return fault_field(reterr, ERR_INVALID_FIELD, path, "%s stands there twice: %.*s", path,
                               STR_ARG(text));
    assert(seen->count < COUNT(seen->texts));
    seen->texts[seen->count++] = text;
    return OK;
}

/* ---- choices ---- */

static enum err write_choice(struct json_writer *w, const struct json *item, size_t index,
                             struct seen *seen, struct fault *reterr)
{
    static const char *const members[] = {"label", "description", NULL};
    char path[PATH_BYTES], id[24];
    str label = STR_EMPTY, description = STR_EMPTY;
    snprintf(path, sizeof path, "choices[%zu]", index);
    struct ask_place place = {item, path, reterr};
    enum err e = OK;
    if (item->type == JSON_OBJECT) {
        e = refuse_unknown(item, path, members, reterr);
        if (!e) e = take_words(&place, "label", ASK_TEXT_BYTES_MAX, &label);
        if (!e) e = take_text(&place, "description", &description);
    } else if (item->type == JSON_STRING) {
        e = check_words(item, path, ASK_TEXT_BYTES_MAX, &label, reterr);
    } else {
        e = fault_field(reterr, ERR_INVALID_FIELD, path,
                        "%s must be a string or an object with a label", path);
    }
    if (!e) e = check_new(seen, label, path, reterr);
    if (e) return e;
    snprintf(id, sizeof id, "c%zu", index + 1);
    json_object(w);
    json_member(w, STR("id"), str_c(id));
    json_member(w, STR("label"), label);
    if (description.len) json_member(w, STR("description"), description);
    json_object_end(w);
    return OK;
}

static enum err write_choices(struct json_writer *w, const struct json *list, struct fault *reterr)
{
    struct seen seen = {.count = 0};
    size_t index = 0;
    json_array(w);
    for (const struct json *item = list->child; item; item = item->next, index++) {
        enum err e = write_choice(w, item, index, &seen, reterr);
        if (e) return e;
    }
    json_array_end(w);
    return OK;
}

/* ---- fields ---- */

static enum err write_field_choices(struct json_writer *w, const struct ask_place *field,
                                    bool wanted)
{
    const struct json *list = NULL;
    enum err e = take_list(field, "choices", ASK_CHOICES_MAX, &list);
    if (e) return e;
    if (wanted && !list) return ask_refuse(field, "choices", "must say what to pick from");
    if (!wanted && list) return ask_refuse(field, "choices", "goes with the type choice only");
    if (!list) return OK;
    struct seen seen = {.count = 0};
    size_t index = 0;
    json_key(w, STR("choices"));
    json_array(w);
    for (const struct json *item = list->child; item; item = item->next, index++) {
        char path[PATH_BYTES];
        str label = STR_EMPTY;
        snprintf(path, sizeof path, "%s.choices[%zu]", field->path, index);
        e = check_words(item, path, ASK_TEXT_BYTES_MAX, &label, field->reterr);
        if (!e) e = check_new(&seen, label, path, field->reterr);
        if (e) return e;
        json_string(w, label);
    }
    json_array_end(w);
    return OK;
}

/* A name is a key of the answer and a part of error paths. */
static enum err take_name(const struct ask_place *field, struct seen *seen, str *ret_name)
{
    str name = STR_EMPTY;
    char path[PATH_BYTES];
    path_join(field->path, STR("name"), path);
    enum err e = take_words(field, "name", ASK_NAME_BYTES_MAX, &name);
    if (e) return e;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
            return ask_refuse(field, "name", "must not have control characters");
    e = check_new(seen, name, path, field->reterr);
    if (e) return e;
    *ret_name = name;
    return OK;
}

static enum err write_field(struct json_writer *w, const struct ask_place *field, struct seen *seen)
{
    static const char *const members[] = {"name",    "label",       "type", "required",
                                          "choices", "description", NULL};
    str name = STR_EMPTY, label = STR_EMPTY, type = STR_EMPTY, description = STR_EMPTY;
    bool required = false;
    if (field->object->type != JSON_OBJECT)
        return fault_field(field->reterr, ERR_INVALID_FIELD, field->path,
                           "%s must be an object with name and type", field->path);
    enum err e = refuse_unknown(field->object, field->path, members, field->reterr);
    if (!e) e = take_name(field, seen, &name);
    if (!e) e = take_text(field, "label", &label);
    if (!e) e = take_words(field, "type", ASK_TEXT_BYTES_MAX, &type);
    if (!e && !field_type_known(type))
        e = ask_refuse(field, "type", "must be text, number, boolean, date or choice");
    if (!e) e = take_bool(field, "required", false, &required);
    if (!e) e = take_text(field, "description", &description);
    if (e) return e;

    json_object(w);
    json_member(w, STR("name"), name);
    if (label.len) json_member(w, STR("label"), label);
    json_member(w, STR("type"), type);
    if (required) {
        json_member_bool(w, STR("required"), true);
    }
    e = write_field_choices(w, field, str_eq(type, STR("choice")));
    if (e) return e;
    if (description.len) json_member(w, STR("description"), description);
    json_object_end(w);
    return OK;
}

static enum err write_fields(struct json_writer *w, const struct json *list, struct fault *reterr)
{
    struct seen seen = {.count = 0};
    size_t index = 0;
    json_array(w);
    for (const struct json *item = list->child; item; item = item->next, index++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "fields[%zu]", index);
        enum err e = write_field(w, &(struct ask_place){item, path, reterr}, &seen);
        if (e) return e;
    }
    json_array_end(w);
    return OK;
}

/* ---- the question ---- */

/* The list as JSON of ours; empty if there is none. Escaping and frames take less than what is left
 * of the buf. */
static enum err take_written(struct arena *arena, const struct ask_place *place, const char *name,
                             uint32_t count_max,
                             enum err (*write)(struct json_writer *w, const struct json *list,
                                               struct fault *reterr),
                             str *ret_json)
{
    const struct json *list = NULL;
    *ret_json = STR_EMPTY;
    enum err e = take_list(place, name, count_max, &list);
    if (e || !list) return e;
    AUTO(json_doc_done) struct json_doc doc;
    json_doc_open(&doc, ESCAPE_BYTES_MAX * list->raw.len + FACT_FRAME_BYTES_MAX);
    e = write(&doc.w, list, place->reterr);
    if (e) return e;
    assert(!doc.buf.full);
    *ret_json = json_doc_copy(&doc, arena);
    return OK;
}

static enum err parse_question(struct arena *arena, const struct ask_place *args,
                               struct interaction *interaction)
{
    static const char *const members[] = {"question", "choices", "allow_freeform",
                                          "multi",    "fields",  NULL};
    str question = STR_EMPTY;
    enum err e = refuse_unknown(args->object, "", members, args->reterr);
    if (!e) e = take_words(args, "question", ASK_TEXT_BYTES_MAX, &question);
    if (!e)
        e = take_written(arena, args, "choices", ASK_CHOICES_MAX, write_choices,
                         &interaction->choices);
    if (!e)
        e = take_written(arena, args, "fields", ASK_FIELDS_MAX, write_fields, &interaction->fields);
    if (!e) e = take_bool(args, "allow_freeform", true, &interaction->allow_freeform);
    if (!e) e = take_bool(args, "multi", false, &interaction->multi);
    if (e) return e;
    if (!interaction->allow_freeform && !interaction->choices.len && !interaction->fields.len)
        return ask_refuse(
            args, "allow_freeform",
            "is false and there are no choices and no fields: nothing could be answered");
    if (!interaction->choices.len) interaction->multi = false;
    interaction->question = interaction->display_text = arena_str(arena, question);
    return OK;
}

enum err ask_parse(struct arena *arena, str args, struct interaction *interaction,
                   struct fault *reterr)
{
    struct json *object = NULL;
    struct json_error why;
    if (args.len > CALL_ARGS_BYTES_MAX)
        return fault(reterr, ERR_INVALID_FIELD, "the arguments may have %d bytes",
                     CALL_ARGS_BYTES_MAX);
    if (json_parse(arena, args, &object, &why))
        return fault(reterr, ERR_INVALID_FIELD, "the arguments are not JSON: %s at byte %zu",
                     why.reason, why.offset);
    if (object->type != JSON_OBJECT)
        return fault(reterr, ERR_INVALID_FIELD, "the arguments must be a JSON object");
    struct interaction asked = *interaction;
    enum err e = parse_question(arena, &(struct ask_place){object, "", reterr}, &asked);
    if (e) return e;
    *interaction = asked;
    return OK;
}

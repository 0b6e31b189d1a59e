/* SPDX-License-Identifier: Apache-2.0
 *
 * The button of a stored card, and what it means; pure. A card is a tree of nodes; a button is a
 * node of type "button" with an id that the compiler gave it (a0, a1, ...), and its `action` says
 * what it does:
 *
 *     navigation, url, copy          the client does it
 *     tool {toolId, params?}         a call, with exactly these arguments
 *     payload {payload, submitTo?}   an answer, or a message of the person
 *     event {event, payload?}        a message of the person: the agent hears what happened
 *
 * Invariants:
 * 1. The first button of an id counts, in document order; nodes of a type that we do not know have
 *    no buttons, as a renderer draws them without.
 * 2. The same message and button give the same run id, so that pressing twice is pressing once.
 *
 * To add a kind: a row of CARD_ACTIONS, and what the server does about it in http/api_actions.c.
 */
#include "thread/card_action.h"

#include "base/crypto.h"
#include "base/id.h"
#include "base/limits.h"
#include "ui/text.h"

static const struct {
    const char *type;
    bool ours;
} kinds[ACTION_COUNT] = {
#define CARD_ACTION_ROW(kind, type, ours) [kind] = {type, ours},
    CARD_ACTIONS(CARD_ACTION_ROW)
#undef CARD_ACTION_ROW
};

/* As deep as the parser lets a card be. */
static const struct json *find_button(const struct json *node, str id)
{
    str type = json_text(json_get(node, STR("type")));
    if (str_eq(type, STR("button"))) {
        const struct json *own = json_get(node, STR("id"));
        return own && own->type == JSON_STRING && str_eq(own->text, id) ? node : NULL;
    }
    if (!str_eq(type, STR("stack")) && !str_eq(type, STR("grid"))) return NULL;
    const struct json *children = json_get(node, STR("children"));
    if (!children || children->type != JSON_ARRAY) return NULL;
    for (const struct json *child = children->child; child; child = child->next) {
        const struct json *found = find_button(child, id);
        if (found) return found;
    }
    return NULL;
}

static enum err kind_of(str type, enum action_kind *ret_kind)
{
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (str_eq(type, str_c(kinds[i].type))) {
            *ret_kind = (enum action_kind)i;
            return OK;
        }
    return ERR_NOT_FOUND;
}

enum err card_action_find(struct arena *arena, str ui, str id, struct card_action *ret_action)
{
    struct json *card = NULL;
    enum action_kind kind;
    if (!ui.len || json_parse(arena, ui, &card, NULL)) return ERR_NOT_FOUND;
    const struct json *button = find_button(json_get(card, STR("root")), id);
    const struct json *action = json_get(button, STR("action"));
    if (!action || kind_of(json_text(json_get(action, STR("type"))), &kind)) return ERR_NOT_FOUND;
    const struct json *disabled = json_get(button, STR("disabled"));
    const struct json *params = json_get(action, STR("params"));
    struct card_action found = {
        .kind = kind,
        .ours = kinds[kind].ours,
        .disabled = disabled && disabled->type != JSON_FALSE,
        .label = json_text(json_get(button, STR("label"))),
        .json = action->raw,
    };
    if (kind == ACTION_TOOL) {
        found.tool = json_text(json_get(action, STR("toolId")));
        found.args = params ? params->raw : STR("{}");
    }
    if (kind == ACTION_PAYLOAD) {
        found.payload = json_get(action, STR("payload"));
        if (!found.payload) return ERR_NOT_FOUND;
    }
    if (kind == ACTION_EVENT) {
        found.event = json_text(json_get(action, STR("event")));
        found.payload = json_get(action, STR("payload"));
    }
    *ret_action = found;
    return OK;
}

/* Texts may have a NUL in them, where a format would end. */
static str joined(struct arena *arena, str a, str between, str b)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, a.len + between.len + b.len);
    buf_append(&out, a);
    buf_append(&out, between);
    buf_append(&out, b);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}

/* {"event":"picked","payload":{"n":1}} */
static str event_json(struct arena *arena, const struct card_action *action)
{
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    str payload = action->payload ? action->payload->raw : STR_EMPTY;
    buf_init(&out, 6 * action->event.len + payload.len + 64); /* a character is at most \u0000 */
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("event"), action->event);
    if (payload.len) {
        json_member_raw(&w, STR("payload"), payload);
    }
    json_object_end(&w);
    assert(!out.full);
    return arena_str(arena, buf_str(&out));
}

str card_action_text(struct arena *arena, const struct card_action *action)
{
    const struct json *payload = action->payload;
    if (action->kind == ACTION_EVENT)
        return joined(arena, action->label, STR("\n"), event_json(arena, action));
    if (payload->type != JSON_STRING) return joined(arena, action->label, STR("\n"), payload->raw);
    return ui_trim(payload->text).len ? payload->text : action->label;
}

/* Is it the id of a choice? */
static bool is_choice(struct arena *arena, str choices, str text)
{
    struct json *list = NULL;
    if (!choices.len || json_parse(arena, choices, &list, NULL) || list->type != JSON_ARRAY)
        return false;
    for (const struct json *choice = list->child; choice; choice = choice->next)
        if (str_eq(json_text(json_get(choice, STR("id"))), text)) return true;
    return false;
}

/* What the payload says to a question. */
static str answer_text(const struct json *payload)
{
    static const char *const names[] = {"choice", "answer"};
    if (payload->type == JSON_STRING) return payload->text;
    for (size_t i = 0; payload->type == JSON_OBJECT && i < COUNT(names); i++) {
        const struct json *member = json_get(payload, str_c(names[i]));
        if (member && member->type == JSON_STRING) return member->text;
    }
    return payload->raw;
}

const struct json *card_action_answer(struct arena *arena, const struct card_action *action,
                                      str choices)
{
    str text = answer_text(action->payload);
    bool by_id = action->payload->type == JSON_OBJECT && is_choice(arena, choices, text);
    AUTO(buf_done) struct buf out;
    struct json_writer w;
    struct json *body = NULL;
    buf_init(&out, 6 * text.len + 64); /* a character is at most \u0000 */
    json_write_begin(&w, &out);
    json_object(&w);
    json_key(&w, by_id ? STR("choices") : STR("answer"));
    if (by_id) json_array(&w);
    json_string(&w, text);
    if (by_id) json_array_end(&w);
    json_object_end(&w);
    enum err e = json_parse(arena, arena_str(arena, buf_str(&out)), &body, NULL);
    assert(e == OK); /* we wrote it */
    return body;
}

str card_action_run_id(struct arena *arena, str message_id, str action_id)
{
    unsigned char hash[HASH_BYTES];
    char id[ID_BYTES];
    str length =
        arena_printf(arena, "%zu\n", message_id.len); /* so that no two pairs are one text */
    crypto_sha256(joined(arena, length, message_id, action_id), hash);
    id_make(hash, id);
    return arena_printf(arena, "act_%s", id);
}

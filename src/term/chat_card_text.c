/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a card on a terminal: the question, every argument of a call, and what can be
 * answered; pure.
 *
 * 1. Nothing of an approval is left out or cut: a person decides by what stands here.
 * 2. A text of others never looks like a line of ours: its lines stand behind a margin, and what would
 *    not be seen is written out. Whoever shows it breaks long lines with term_wrap: a terminal would let
 *    the rest of a line begin where our lines do.
 */
#include "term/chat_card_int.h"
#include "term/term_text.h"
#include "term/term_words.h"
#include "ui/visible.h"

/* A text of others on lines of their own, each but the first behind `margin`, so that none of them
 * looks like a line of ours. */
static void put_lines(struct buf *out, str text, str margin)
{
    bool first = true;
    while (text.p) {
        str line = str_split(&text, '\n');
        if (!first) buf_append(out, margin);
        if (line.len) buf_append(out, line);
        buf_char(out, '\n');
        first = false;
    }
}

static void put_arguments(struct buf *out, struct arena *arena, enum lang lang, str args)
{
    struct json *json = NULL;
    if (json_parse(arena, args, &json, NULL) || json->type != JSON_OBJECT) {
        buf_append(out, STR("  "));
        put_lines(out, ui_visible(arena, args, false), TERM_MARGIN);
        return;
    }
    if (!json->count) buf_printf(out, "  %s\n", word(lang, W_NO_ARGUMENTS));
    for (const struct json *value = json->child; value; value = value->next) {
        /* A name that could be taken for the margin, or for a name and a value, stands in quotes. A
         * string that reads like another JSON value keeps its own: "true" is not true. */
        bool odd = str_find(value->key, STR("│")) >= 0 || str_find_char(value->key, ':') >= 0;
        buf_append(out, odd ? STR("  \"") : STR("  "));
        buf_append(out, ui_visible(arena, value->key, false));
        buf_append(out, odd ? STR("\": ") : STR(": "));
        struct json *other;
        bool plain = value->type == JSON_STRING && value->text.len &&
                     json_parse(arena, value->text, &other, NULL) != OK;
        put_lines(out, ui_visible(arena, plain ? value->text : value->raw, plain), TERM_MARGIN);
    }
}

static void put_title(struct buf *out, const char *sign, const char *title, str text)
{
    buf_printf(out, "%s %s", sign, title);
    if (text.len && title[0]) buf_append(out, STR(": "));
    put_lines(out, text, TERM_MARGIN);
}

/* Approvals, and writes of which nobody knows the end. */
static void put_call(const struct card *card, struct arena *arena, struct buf *out)
{
    const struct json *tool = json_get(card->json, STR("pendingTool"));
    enum word title = card->kind == CARD_CONFIRM ? W_APPROVAL : W_UNCERTAIN;
    str name = ui_visible(arena, card_member(tool, "toolName"), false),
        requester = card_member(card->json, "requester");
    put_title(out, "!", word(card->lang, title), name);
    out->len--; /* the line goes on */
    enum word risk = str_eq(card->risk, STR("destructive")) ? W_RISK_DESTRUCTIVE
                     : str_eq(card->risk, STR("external"))  ? W_RISK_EXTERNAL
                                                            : W_RISK_WRITE;
    if (card->risk.len) buf_printf(out, " (%s)", word(card->lang, risk));
    buf_printf(out, " · %s ", word(card->lang, W_REQUESTED_BY));
    buf_append(out, ui_visible(arena, requester, false));
    buf_char(out, '\n');
    put_arguments(out, arena, card->lang, card->args);
}

/* A plan that is nothing but steps is read as steps; anything else as what it is. */
static const struct json *plan_steps(const struct card *card, struct arena *arena)
{
    const struct json *tool = json_get(card->json, STR("pendingTool"));
    struct json *args = NULL;
    bool plan =
        card->kind == CARD_CONFIRM && str_eq(card_member(tool, "toolName"), STR("submit_plan"));
    if (!plan || json_parse(arena, card->args, &args, NULL)) return NULL;
    const struct json *steps = json_get(args, STR("steps"));
    return steps && steps->type == JSON_ARRAY && args->count == 1 ? steps : NULL;
}

/* Each as it is stored, whole: what is approved is not the card, which may be cut. */
static void put_plan(const struct card *card, struct arena *arena, struct buf *out,
                     const struct json *steps)
{
    size_t number = 0;
    put_title(out, "!", word(card->lang, W_APPROVAL),
              ui_visible(arena, card_member(card->json, "displayText"), true));
    for (const struct json *step = steps->child; step; step = step->next) {
        str content = str_trim(card_member(step, "content")),
            done = str_trim(card_member(step, "done_when"));
        if (!content.len) continue; /* it is none */
        buf_printf(out, "  %zu. ", ++number);
        put_lines(out, ui_visible(arena, content, true), TERM_MARGIN);
        if (!done.len) continue;
        buf_append(out, TERM_MARGIN);
        buf_printf(out, "%s%s", word(card->lang, W_DONE_WHEN), card->lang == LANG_ZH ? "：" : ": ");
        put_lines(out, ui_visible(arena, done, true), TERM_MARGIN);
    }
}

str card_head(const struct card *card, struct arena *arena)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    str shown = ui_visible(arena, card_member(card->json, "displayText"), true);
    const struct json *steps = plan_steps(card, arena);
    if (steps)
        put_plan(card, arena, &out, steps);
    else if (card->kind == CARD_CONFIRM || (card->kind == CARD_UNCERTAIN && card->args.len))
        put_call(card, arena, &out);
    else if (card->kind == CARD_QUESTION)
        put_title(&out, "?", "", shown);
    else
        put_title(&out, "!", word(card->lang, card->kind == CARD_LOST ? W_CONNECTION : W_UNCERTAIN),
                  shown);
    return arena_str(arena, buf_str(&out));
}

str card_label(const struct card *card, struct arena *arena, size_t index)
{
    const struct json *choice = json_at(choices_of(card), index);
    str label = ui_visible(arena, card_member(choice, "label"), false);
    str more = card_member(choice, "description");
    if (!more.len) return label;
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    buf_append(&out, label);
    buf_append(&out, STR(" · "));
    buf_append(&out, term_clean(arena, more, false));
    return arena_str(arena, buf_str(&out));
}

str card_list(const struct card *card, struct arena *arena)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    const struct json *choices = choices_of(card),
                      *field = card->fields ? card->fields->child : NULL;
    for (size_t i = 0; choices && i < choices->count; i++) {
        buf_printf(&out, "  %zu. ", i + 1);
        buf_append(&out, card_label(card, arena, i));
        buf_char(&out, '\n');
    }
    for (; field; field = field->next) {
        buf_append(&out, STR("  "));
        buf_append(&out, ui_visible(arena, card_member(field, "name"), false));
        buf_append(&out, STR(": "));
        buf_append(&out, ui_visible(arena, card_member(field, "label"), false));
        buf_printf(&out, " (%s)\n",
                   word(card->lang,
                        is_true(json_get(field, STR("required"))) ? W_REQUIRED : W_OPTIONAL));
    }
    return arena_str(arena, buf_str(&out));
}

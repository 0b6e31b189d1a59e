/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a card: what it is about, and what can be answered.
 *
 * 1. Nothing of an approval is left out or cut: a person decides by what stands here.
 * 2. A text of others never looks like a line of ours: its lines stand behind a margin, and what would
 *    not be seen is written out. Whoever shows it breaks long lines with term_wrap: a terminal would let
 *    the rest of a line begin where our lines do.
 */
#include "app/term/chat_card_int.h"
#include "app/term/chat_words.h"
#include "app/term/term_text.h"
#include "ui/plain.h"
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

/* A string that reads like another JSON value keeps its quotes: "true" is not true. */
static str value_text(struct arena *arena, const struct json *value)
{
    struct json *other;
    bool plain = value->type == JSON_STRING && value->text.len &&
                 json_parse(arena, value->text, &other, NULL) != OK;
    return plain ? ui_visible(arena, value->text, true) : ui_visible(arena, value->raw, false);
}

/* A name that could be taken for the margin, or for a name and a value, stands in quotes. */
static void put_name(struct buf *out, struct arena *arena, str name)
{
    bool odd = str_find(name, STR("│")) >= 0 || str_find_char(name, ':') >= 0;
    if (odd) buf_char(out, '"');
    buf_append(out, ui_visible(arena, name, false));
    if (odd) buf_char(out, '"');
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
        buf_append(out, STR("  "));
        put_name(out, arena, value->key);
        buf_append(out, STR(": "));
        put_lines(out, value_text(arena, value), TERM_MARGIN);
    }
}

static enum word risk_word(str risk)
{
    if (str_eq(risk, STR("destructive"))) return W_RISK_DESTRUCTIVE;
    return str_eq(risk, STR("external")) ? W_RISK_EXTERNAL : W_RISK_WRITE;
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
    str name = ui_visible(arena, member(tool, "toolName"), false),
        requester = member(card->json, "requester");
    put_title(out, "!", word(card->lang, title), name);
    out->len--; /* the line goes on */
    if (card->risk.len) buf_printf(out, " (%s)", word(card->lang, risk_word(card->risk)));
    buf_printf(out, " · %s ", word(card->lang, W_REQUESTED_BY));
    buf_append(out, ui_visible(arena, requester, false));
    buf_char(out, '\n');
    put_arguments(out, arena, card->lang, card->args);
}

/* A plan has steps to read, and its card has them. */
static bool is_plan(const struct card *card)
{
    const struct json *tool = json_get(card->json, STR("pendingTool"));
    return card->kind == CARD_CONFIRM &&
           (!tool || str_eq(member(tool, "toolName"), STR("submit_plan")));
}

static void put_plan(const struct card *card, struct arena *arena, struct buf *out)
{
    const struct json *ui = json_get(card->json, STR("ui"));
    enum ui_locale locale = card->lang == LANG_ZH ? UI_ZH : UI_EN;
    str text = ui ? plain_card(arena, ui->raw, locale, TERM_CARD_CHARS_MAX) : STR_EMPTY;
    put_title(out, "!", word(card->lang, W_APPROVAL),
              ui_visible(arena, member(card->json, "displayText"), true));
    if (text.len) {
        buf_append(out, STR("  "));
        put_lines(out, term_clean(arena, text, true), STR("  "));
    } else {
        put_arguments(out, arena, card->lang, card->args);
    }
}

str card_head(const struct card *card, struct arena *arena)
{
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    str shown = ui_visible(arena, member(card->json, "displayText"), true);
    if (is_plan(card))
        put_plan(card, arena, &out);
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
    str label = ui_visible(arena, member(choice, "label"), false);
    str more = member(choice, "description");
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
        buf_append(&out, ui_visible(arena, member(field, "name"), false));
        buf_append(&out, STR(": "));
        buf_append(&out, ui_visible(arena, member(field, "label"), false));
        buf_printf(&out, " (%s)\n",
                   word(card->lang,
                        is_true(json_get(field, STR("required"))) ? W_REQUIRED : W_OPTIONAL));
    }
    return arena_str(arena, buf_str(&out));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A card on a terminal, something that waits for a person: its rows, and keys into an answer; pure.
 *
 *     ? How long?                       head: printed once, stays
 *     ❯ 1. 30 minutes                   rows: drawn, gone when it is settled
 *       2. 1 hour
 *       ✎ in your own words
 *       ↷ skip
 *     ↑↓ Enter, or a number · Esc later
 *
 * A card is a menu; some rows open a line for words, and the line goes back to the menu. Modes:
 *
 *     menu ──own words── text ──Enter──┐            menu ──form── field ──Enter── field … ──┐
 *     menu ──reject── reason ──Enter───┼── answer   menu ──edit── edit ──Enter──────────────┴── answer
 *
 * 1. Keys of a paste are text. They never pick, approve or reject.
 * 2. No row of a decision is chosen by itself: Enter does nothing before an arrow or a letter.
 * 3. What destroys something needs the same key twice, with nothing in between.
 * 4. An approval carries the binding of what was shown, and nothing is approved of which more was printed
 *    than a terminal keeps.
 *
 * To add a decision: a row in `acts` and its kind in `menus`.
 */
#include "term/chat_card_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term/term_text.h"
#include "term/term_words.h"
#include "ui/visible.h"

/* ---- what there is to do ---- */

enum act {
    ACT_CHOICE,
    ACT_OWN,
    ACT_FORM,
    ACT_SKIP,
    ACT_APPROVE,
    ACT_REJECT,
    ACT_EDIT,
    ACT_CONTINUE,
    ACT_GIVE_UP,
    ACT_RETRY,
    ACT_HAPPENED,
};

static const struct {
    char key; /* 0: none */
    const char *sign;
    enum word label;
    const char *decision; /* in the body */
    bool runs;            /* lets a call run */
    enum card_mode mode;  /* that it opens */
} acts[] = {
    [ACT_CHOICE] = {0, "", W_SKIP, NULL, false, CARD_MENU},
    [ACT_OWN] = {0, "✎", W_OWN_WORDS, NULL, false, CARD_TEXT},
    [ACT_FORM] = {0, "✎", W_FILL_IN, NULL, false, CARD_FIELD},
    [ACT_SKIP] = {0, "↷", W_SKIP, NULL, false, CARD_MENU},
    [ACT_APPROVE] = {'a', "a", W_APPROVE, "approve", true, CARD_MENU},
    [ACT_REJECT] = {'r', "r", W_REJECT, "reject", false, CARD_REASON},
    [ACT_EDIT] = {'e', "e", W_EDIT, "edit", true, CARD_EDIT},
    [ACT_CONTINUE] = {'c', "c", W_CONTINUE, "continue", false, CARD_MENU},
    [ACT_GIVE_UP] = {'g', "g", W_GIVE_UP, "give_up", false, CARD_MENU},
    [ACT_RETRY] = {'r', "r", W_RETRY, "retry", true, CARD_MENU},
    [ACT_HAPPENED] = {'h', "h", W_HAPPENED, "happened", false, CARD_MENU},
};

static const struct {
    const char *type;
    enum act rows[3];
    size_t count;
} menus[] = {
    [CARD_QUESTION] = {"ask_user", {ACT_CHOICE}, 0},
    [CARD_CONFIRM] = {"confirm", {ACT_APPROVE, ACT_REJECT, ACT_EDIT}, 3},
    [CARD_LOST] = {"connection_lost", {ACT_CONTINUE, ACT_GIVE_UP}, 2},
    [CARD_UNCERTAIN] = {"uncertain", {ACT_RETRY, ACT_HAPPENED, ACT_GIVE_UP}, 3},
};

/* ---- making one ---- */

static void add_row(struct card *card, enum act act, size_t choice)
{
    if (card->row_count < CARD_ROWS_MAX)
        card->rows[card->row_count++] = (struct card_row){(int)act, choice, false};
}

static void open_line(struct card *card, enum card_mode mode, str text)
{
    card->mode = mode;
    line_set(&card->line, text);
}

/* Back to what it shows at first. */
static void begin(struct card *card)
{
    card->mode = CARD_MENU;
    card->armed = false;
    card->field = NULL;
    buf_clear(&card->values);
    line_set(&card->line, STR_EMPTY);
    card->at = card->kind == CARD_QUESTION ? 0 : -1;
    if (card->row_count && card->rows[0].act == ACT_OWN) card->mode = CARD_TEXT;
}

static bool fill(struct card *card)
{
    const struct json *tool = json_get(card->json, STR("pendingTool"));
    str type = card_member(card->json, "type");
    size_t kind = 0;
    while (kind < COUNT(menus) && !str_eq(type, str_c(menus[kind].type))) kind++;
    card->id = card_member(card->json, "interactionId");
    if (kind == COUNT(menus) || !card->id.len) return false;
    card->kind = (enum card_kind)kind;
    card->run_id = card_member(card->json, "runId");
    card->binding = card_member(card->json, "binding");
    card->args = card_member(tool, "argsJson");
    card->risk = card_member(tool, "risk");
    if (kind == CARD_QUESTION) {
        const struct json *choices = choices_of(card),
                          *fields = json_get(card->json, STR("fields"));
        size_t count = choices ? choices->count : 0;
        card->multi = is_true(json_get(card->json, STR("multi")));
        card->freeform = is_true(json_get(card->json, STR("allowFreeform")));
        if (fields && fields->count) card->fields = fields;
        for (size_t i = 0; i < count && i < ASK_CHOICES_MAX; i++) add_row(card, ACT_CHOICE, i);
        if (card->fields) add_row(card, ACT_FORM, 0);
        if (card->freeform || (!count && !card->fields)) add_row(card, ACT_OWN, 0);
        add_row(card, ACT_SKIP, 0);
    }
    for (size_t i = 0; i < menus[kind].count; i++) add_row(card, menus[kind].rows[i], 0);
    begin(card);
    return true;
}

struct card *card_new(str interaction, enum lang lang)
{
    struct card *card = calloc(1, sizeof *card);
    if (!card) abort();
    struct json *json = NULL;
    arena_init(&card->arena);
    buf_init(&card->values, ANSWER_BYTES_MAX);
    buf_init(&card->body, ANSWER_BYTES_MAX);
    line_init(&card->line, ANSWER_BYTES_MAX / 2);
    card->lang = lang;
    str text = arena_str(&card->arena, interaction);
    if (!json_parse(&card->arena, text, &json, NULL)) {
        card->json = json;
        if (fill(card)) return card;
    }
    card_free(card);
    return NULL;
}

void card_free(struct card *card)
{
    if (!card) return;
    line_done(&card->line);
    buf_done(&card->body);
    buf_done(&card->values);
    arena_done(&card->arena);
    free(card);
}

void card_fit(struct card *card, size_t columns)
{
    AUTO(arena_done) struct arena arena;
    size_t rows = 1;
    arena_init(&arena);
    str head = term_wrap(&arena, card_head(card, &arena), columns, TERM_MARGIN);
    for (size_t i = 0; i < head.len; i++) rows += head.p[i] == '\n';
    card->too_long = rows > TERM_APPROVE_ROWS_MAX;
}

/* ---- drawing ---- */

/* Words of others: what goes on in another row stands behind the margin, or it could pass for a row of
 * the menu. */
static void draw_words(struct arena *arena, struct area *area, enum style style, str text)
{
    area_text(area, style, term_wrap(arena, text, area->columns, TERM_MARGIN));
}

static enum word hint(const struct card *card)
{
    switch (card->mode) {
    case CARD_TEXT:
        return card->rows[0].act == ACT_OWN ? W_HINT_LATER : W_HINT_TEXT;
    case CARD_REASON:
        return W_HINT_REASON;
    case CARD_EDIT:
        return W_HINT_EDIT;
    case CARD_FIELD:
        return W_HINT_TEXT;
    default:
        break;
    }
    if (card->kind != CARD_QUESTION) return W_HINT_KEYS;
    return card->multi ? W_HINT_MULTI : W_HINT_PICK;
}

static const struct {
    const char *type;
    enum word says;
} field_types[] = {{"number", W_NUMBER}, {"boolean", W_YES_NO}, {"date", W_DATE}};

static void draw_field(const struct card *card, struct arena *arena, struct area *area)
{
    const struct json *field = card->field, *choices = json_get(field, STR("choices"));
    str label = card_member(field, "label"), type = card_member(field, "type");
    AUTO(buf_done) struct buf out;
    buf_init(&out, TERM_HEAD_BYTES_MAX);
    buf_append(&out, ui_visible(arena, label.len ? label : card_member(field, "name"), false));
    for (size_t i = 0; i < COUNT(field_types); i++)
        if (str_eq(type, str_c(field_types[i].type)))
            buf_printf(&out, " · %s", word(card->lang, field_types[i].says));
    bool required = is_true(json_get(field, STR("required")));
    buf_printf(&out, " · %s", word(card->lang, required ? W_REQUIRED : W_OPTIONAL));
    draw_words(arena, area, STYLE_BOLD, buf_str(&out));
    str more = card_member(field, "description");
    if (more.len) draw_words(arena, area, STYLE_DIM, term_clean(arena, more, true));
    for (size_t i = 0; choices && i < choices->count; i++) {
        buf_clear(&out);
        buf_printf(&out, "  %zu. ", i + 1);
        buf_append(&out, ui_visible(arena, json_text(json_at(choices, i)), false));
        draw_words(arena, area, STYLE_PLAIN, buf_str(&out));
    }
}

void card_draw(const struct card *card, struct area *area)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    size_t chosen = SIZE_MAX;
    for (size_t i = 0; card->mode == CARD_MENU && i < card->row_count; i++) {
        const struct card_row *row = &card->rows[i];
        bool here = card->at == (ptrdiff_t)i;
        AUTO(buf_done) struct buf out;
        buf_init(&out, TERM_HEAD_BYTES_MAX);
        buf_append(&out, here ? STR("❯ ") : STR("  "));
        if (row->act == ACT_CHOICE) {
            if (card->multi) buf_append(&out, row->picked ? STR("[x] ") : STR("[ ] "));
            buf_printf(&out, "%zu. ", row->choice + 1);
            buf_append(&out, card_label(card, &arena, row->choice));
        } else {
            buf_printf(&out, "%s %s", acts[row->act].sign, word(card->lang, acts[row->act].label));
        }
        if (here) chosen = area->count;
        draw_words(&arena, area, here ? STYLE_BOLD : STYLE_PLAIN, buf_str(&out));
    }
    if (card->mode == CARD_FIELD) draw_field(card, &arena, area);
    if (card->too_long && card->kind != CARD_QUESTION)
        area_text(area, STYLE_WARN, words(card->lang, W_TOO_LONG));
    if (card->notice[0]) area_text(area, STYLE_WARN, str_c(card->notice));
    area_text(area, STYLE_DIM, words(card->lang, card->sending ? W_SENDING : hint(card)));
    if (card->line.full) area_text(area, STYLE_WARN, words(card->lang, W_LINE_FULL));
    if (card->mode != CARD_MENU && !card->sending) line_draw(&card->line, area, STR("> "));
    if (chosen < area->count) area_cursor(area, chosen);
}

/* ---- bodies ---- */

static void write_start(struct card *card, struct json_writer *w)
{
    buf_clear(&card->body);
    json_write_begin(w, &card->body);
    json_object(w);
}

static bool write_end(struct card *card, struct json_writer *w)
{
    json_object_end(w);
    return !card->body.full;
}

bool card_words(struct card *card, str text)
{
    struct json_writer w;
    write_start(card, &w);
    json_member(&w, STR("answer"), text);
    return write_end(card, &w);
}

static bool answer_decision(struct card *card, str decision, str comment, str args)
{
    struct json_writer w;
    write_start(card, &w);
    json_member(&w, STR("decision"), decision);
    if (args.len) json_member_raw(&w, STR("args"), args);
    if (comment.len) json_member(&w, STR("comment"), comment);
    if (card->binding.len) json_member(&w, STR("binding"), card->binding);
    return write_end(card, &w);
}

bool card_skip(struct card *card)
{
    struct json_writer w;
    write_start(card, &w);
    json_member_bool(&w, STR("skip"), true);
    return write_end(card, &w);
}

static bool answer_picked(struct card *card, str text)
{
    struct json_writer w;
    write_start(card, &w);
    size_t count = 0;
    json_key(&w, STR("choices"));
    json_array(&w);
    for (size_t i = 0; i < card->row_count; i++) {
        if (card->rows[i].act != ACT_CHOICE || !card->rows[i].picked) continue;
        json_string(&w, card_member(json_at(choices_of(card), card->rows[i].choice), "id"));
        count++;
    }
    json_array_end(&w);
    if (text.len) json_member(&w, STR("text"), text);
    return write_end(card, &w) && count;
}

static void pick_none(struct card *card)
{
    for (size_t i = 0; i < card->row_count; i++) card->rows[i].picked = false;
}

/* ---- fields ---- */

static void notice(struct card *card, enum word why)
{
    snprintf(card->notice, sizeof card->notice, "%s", word(card->lang, why));
}

static bool one_of(str text, const char *const *names)
{
    for (; *names; names++)
        if (str_eq_nocase(text, str_c(*names))) return true;
    return false;
}

static const char *const yes[] = {"yes", "y", "true", "是", "对", NULL};
static const char *const no[] = {"no", "n", "false", "否", "不", NULL};

/* Add the value of a field; what is wrong with it is left to the server, unless it cannot be written
 * as JSON at all. */
static bool add_value(struct card *card, const struct json *field, str text, enum word *ret_why)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf value;
    struct json_writer w;
    struct json *json = NULL;
    uint64_t n = 0;
    str type = card_member(field, "type");
    const struct json *choices = json_get(field, STR("choices"));
    arena_init(&arena);
    buf_init(&value, ANSWER_BYTES_MAX);
    json_write_begin(&w, &value);
    if (str_eq(type, STR("number"))) {
        *ret_why = W_NOT_NUMBER;
        if (json_parse(&arena, text, &json, NULL) || json->type != JSON_NUMBER) return false;
        json_raw(&w, text);
    } else if (str_eq(type, STR("boolean"))) {
        *ret_why = W_NOT_BOOLEAN;
        if (!one_of(text, yes) && !one_of(text, no)) return false;
        json_bool(&w, one_of(text, yes));
    } else if (choices && !str_to_u64(text, &n) && n >= 1 && n <= choices->count) {
        json_string(&w, json_text(json_at(choices, n - 1)));
    } else {
        json_string(&w, text);
    }
    if (card->values.len) buf_char(&card->values, ',');
    json_write_begin(&w, &card->values);
    json_string(&w, card_member(field, "name"));
    buf_char(&card->values, ':');
    buf_append(&card->values, buf_str(&value));
    return true;
}

static bool answer_fields(struct card *card)
{
    buf_clear(&card->body);
    buf_append(&card->body, STR("{\"fields\":{"));
    if (card->values.len) buf_append(&card->body, buf_str(&card->values));
    buf_append(&card->body, STR("}}"));
    return !card->body.full;
}

static enum card_result next_field(struct card *card)
{
    enum word why;
    str text = str_trim(line_text(&card->line));
    if (!text.len && is_true(json_get(card->field, STR("required")))) {
        notice(card, W_SAY_SOMETHING);
        return CARD_STAYS;
    }
    size_t before = card->values.len;
    if (text.len && !add_value(card, card->field, text, &why)) {
        notice(card, why);
        return CARD_STAYS;
    }
    if (card->field->next) {
        card->field = card->field->next;
        open_line(card, CARD_FIELD, STR_EMPTY);
        return CARD_STAYS;
    }
    bool made = answer_fields(card);
    card->values.len = before; /* should it be refused, this field is asked for again */
    return made ? CARD_ANSWERS : CARD_STAYS;
}

/* ---- keys ---- */

/* What runs and destroys is asked for twice. */
static bool sure(struct card *card, enum act act)
{
    if (!acts[act].runs || !str_eq(card->risk, STR("destructive")) || card->armed) return true;
    card->armed = true;
    notice(card, W_AGAIN);
    return false;
}

static enum card_result act(struct card *card, size_t index)
{
    struct card_row *row = &card->rows[index];
    enum act what = (enum act)row->act;
    card->at = (ptrdiff_t)index;
    if (acts[what].runs && card->too_long) return CARD_STAYS; /* it says so all the time */
    switch (what) {
    case ACT_CHOICE:
        if (card->multi) {
            row->picked = !row->picked;
            return CARD_STAYS;
        }
        pick_none(card);
        row->picked = true;
        return answer_picked(card, STR_EMPTY) ? CARD_ANSWERS : CARD_STAYS;
    case ACT_SKIP:
        return card_skip(card) ? CARD_ANSWERS : CARD_STAYS;
    case ACT_OWN:
    case ACT_REJECT:
        open_line(card, acts[what].mode, STR_EMPTY);
        return CARD_STAYS;
    case ACT_EDIT:
        if (card->args.len > card->line.text.max)
            notice(card, W_EDIT_LARGE);
        else
            open_line(card, CARD_EDIT, card->args);
        return CARD_STAYS;
    case ACT_FORM:
        card->field = card->fields->child;
        buf_clear(&card->values);
        open_line(card, CARD_FIELD, STR_EMPTY);
        return CARD_STAYS;
    default:
        break;
    }
    if (!sure(card, what)) return CARD_STAYS;
    bool made = answer_decision(card, str_c(acts[what].decision), STR_EMPTY, STR_EMPTY);
    return made ? CARD_ANSWERS : CARD_STAYS;
}

/* A digit picks, a letter decides; other characters begin an answer in words. */
static enum card_result menu_char(struct card *card, struct key_event event)
{
    uint32_t code = event.code;
    for (size_t i = 0; i < card->row_count && !event.pasted; i++) {
        const struct card_row *row = &card->rows[i];
        bool digit = row->act == ACT_CHOICE && code == '1' + row->choice && row->choice < 9;
        bool letter = acts[row->act].key && (code | 0x20) == (uint32_t)acts[row->act].key;
        if (digit || letter) return act(card, i);
    }
    if (code == ' ' && !event.pasted && card->at >= 0 && card->rows[card->at].act == ACT_CHOICE)
        return card->multi ? act(card, (size_t)card->at) : CARD_STAYS;
    if (card->kind != CARD_QUESTION || !card->freeform || card->fields) return CARD_STAYS;
    open_line(card, CARD_TEXT, STR_EMPTY);
    line_key(&card->line, event);
    return CARD_STAYS;
}

static enum card_result menu_key(struct card *card, struct key_event event)
{
    bool armed = card->armed;
    ptrdiff_t at = card->at;
    enum card_result result = CARD_STAYS;
    if (event.key == KEY_ESC) return CARD_LATER;
    if (event.key == KEY_CHAR) result = menu_char(card, event);
    if (card->row_count && (event.key == KEY_UP || event.key == KEY_DOWN)) {
        ptrdiff_t count = (ptrdiff_t)card->row_count, back = count - 1;
        bool up = event.key == KEY_UP;
        card->at = at < 0 ? (up ? back : 0) : (at + (up ? back : 1)) % count;
    }
    if (event.key == KEY_ENTER && at >= 0) {
        bool several = card->multi && card->rows[at].act == ACT_CHOICE; /* sends what is picked */
        if (!several)
            result = act(card, (size_t)at);
        else if (answer_picked(card, STR_EMPTY))
            result = CARD_ANSWERS;
        else
            notice(card, W_PICK_ONE);
    }
    /* Armed is only who pressed the same thing just before. */
    if (armed && (card->at != at || result == CARD_STAYS)) card->armed = false;
    return result;
}

static enum card_result line_enter(struct card *card)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    str text = str_trim(line_text(&card->line));
    arena_init(&arena);
    switch (card->mode) {
    case CARD_REASON:
        return answer_decision(card, STR("reject"), text, STR_EMPTY) ? CARD_ANSWERS : CARD_STAYS;
    case CARD_FIELD:
        return next_field(card);
    case CARD_EDIT:
        if (json_parse(&arena, text, &json, NULL) || json->type != JSON_OBJECT) {
            notice(card, W_NOT_JSON);
            return CARD_STAYS;
        }
        if (!sure(card, ACT_EDIT)) return CARD_STAYS;
        return answer_decision(card, STR("edit"), STR_EMPTY, text) ? CARD_ANSWERS : CARD_STAYS;
    default:
        break;
    }
    if (text.len) return card_words(card, text) ? CARD_ANSWERS : CARD_STAYS;
    notice(card, W_SAY_SOMETHING);
    return CARD_STAYS;
}

static enum card_result line_mode_key(struct card *card, struct key_event event)
{
    if (event.key == KEY_ENTER) return line_enter(card);
    bool taken = line_key(&card->line, event);
    card->armed = false;
    if (taken) return CARD_STAYS;
    bool first = card->mode == CARD_TEXT && card->rows[0].act == ACT_OWN;
    if (event.key == KEY_ESC && first && !card->line.text.len) return CARD_LATER;
    if (event.key == KEY_ESC && first)
        line_set(&card->line, STR_EMPTY);
    else if (event.key == KEY_ESC)
        begin(card);
    else if (event.key == KEY_DOWN && first)
        card->mode = CARD_MENU;
    return CARD_STAYS;
}

enum card_result card_key(struct card *card, struct key_event event)
{
    if (card->sending) return event.key == KEY_ESC ? CARD_LATER : CARD_STAYS;
    card->notice[0] = 0;
    return card->mode == CARD_MENU ? menu_key(card, event) : line_mode_key(card, event);
}

str card_written(const struct card *card)
{
    str text = str_trim(line_text(&card->line));
    bool own = card->mode != CARD_MENU && !(card->mode == CARD_EDIT && str_eq(text, card->args));
    return own ? text : STR_EMPTY;
}

void card_refused(struct card *card, str why)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    card->sending = false;
    card->armed = false;
    if (card->mode == CARD_MENU) begin(card);
    if (!card->multi) pick_none(card);
    str clean = term_clean(&arena, why, false);
    snprintf(card->notice, sizeof card->notice, "%.*s", STR_ARG(clean));
    while (!utf8_valid(str_c(card->notice))) card->notice[strlen(card->notice) - 1] = 0;
}

/* ---- without keys ---- */

static bool wrong(const struct card *card, enum word why, str *ret_why)
{
    *ret_why = words(card->lang, why);
    return false;
}

/* By number or id. */
static struct card_row *row_of(struct card *card, str name)
{
    uint64_t n = 0;
    bool number = str_to_u64(name, &n) == OK;
    for (size_t i = 0; i < card->row_count; i++) {
        struct card_row *row = &card->rows[i];
        if (row->act != ACT_CHOICE) continue;
        str id = card_member(json_at(choices_of(card), row->choice), "id");
        if (number ? n == row->choice + 1 : str_eq(id, name)) return row;
    }
    return NULL;
}

bool card_pick(struct card *card, const str *choices, size_t count, str text, str *ret_why)
{
    pick_none(card);
    for (size_t i = 0; i < count; i++) {
        struct card_row *row = row_of(card, choices[i]);
        if (!row) return wrong(card, W_NO_CHOICE, ret_why);
        row->picked = true;
    }
    return answer_picked(card, text) || wrong(card, W_PICK_ONE, ret_why);
}

bool card_say(struct card *card, str text, str *ret_why)
{
    uint64_t n;
    text = str_trim(text);
    if (!text.len || card->kind != CARD_QUESTION) return wrong(card, W_SAY_SOMETHING, ret_why);
    const struct json *choices = choices_of(card);
    if (choices && !str_to_u64(text, &n) && row_of(card, text))
        return card_pick(card, &text, 1, STR_EMPTY, ret_why);
    if (card->fields && str_find_char(text, '=') > 0) return card_fill(card, &text, 1, ret_why);
    return card_words(card, text);
}

bool card_fill(struct card *card, const str *pairs, size_t count, str *ret_why)
{
    buf_clear(&card->values);
    for (size_t i = 0; i < count; i++) {
        str value = pairs[i], name = str_trim(str_split(&value, '='));
        const struct json *field = card->fields ? card->fields->child : NULL;
        enum word why = W_NO_CHOICE;
        while (field && !str_eq(card_member(field, "name"), name)) field = field->next;
        if (!field || !value.p || !add_value(card, field, str_trim(value), &why))
            return wrong(card, why, ret_why);
    }
    return answer_fields(card);
}

bool card_decide(struct card *card, str decision, str comment, str args, str *ret_why)
{
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    if (args.len && (json_parse(&arena, args, &json, NULL) || json->type != JSON_OBJECT))
        return wrong(card, W_NOT_JSON, ret_why);
    return answer_decision(card, decision, comment, args);
}

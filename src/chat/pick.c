/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of some numbered choices a reply means, from left to right:
 *
 *     1. 周一, 3 和 周四        number with its own label; number; label
 *
 * 1. All of the text is used, or nothing is picked: `2 谢谢` are words.
 * 2. At each place the longest label is tried first, so labels may hold spaces, commas and numbers.
 * 3. Two labels that differ only in case or width are not told apart by words; by numbers they are.
 */
#include "chat/pick.h"

#include "chat/chat_words.h"
#include "ui/text.h"

void choices_of(struct choices *choices, const struct json *list)
{
    *choices = (struct choices){.count = 0};
    if (!list || list->type != JSON_ARRAY) return;
    for (const struct json *m = list->child; m && choices->count < ASK_CHOICES_MAX; m = m->next) {
        size_t i = choices->count++;
        choices->ids[i] = json_text(json_get(m, STR("id")));
        choices->abouts[i] = json_text(json_get(m, STR("description")));
        choices->labels[i] =
            m->type == JSON_STRING ? m->text : json_text(json_get(m, STR("label")));
    }
}

/* ---- one ---- */

static bool is_separator(uint32_t code)
{
    return ui_is_space(code) || code == ',' || code == ';' || code == '+' || code == '/' ||
           code == '&' || code == 0x3001 || code == 0x3002;
}

/* Does a pick end here? `together`: nothing may follow. */
static bool is_end(str rest, bool together)
{
    if (is_tail(rest)) return true;
    if (together) return false;
    str next = rest, and = rest;
    return is_separator(fold_next(&next)) || fold_starts(&and, STR("和")) ||
           fold_starts(&and, STR("与"));
}

/* The label, or the label with what is said about it, as our own message has it. */
static bool label_take(const struct choices *choices, size_t i, str *rest)
{
    str at = *rest;
    if (!choices->labels[i].len || !fold_starts(&at, choices->labels[i])) return false;
    str about = at;
    if (choices->abouts[i].len && fold_starts(&about, STR(" - ")) &&
        fold_starts(&about, choices->abouts[i]))
        at = about;
    *rest = at;
    return true;
}

/* The longest label that stands here and ends here. False: none, or two that look the same. */
static bool longest_label(const struct choices *choices, str *rest, bool together, size_t *ret_at)
{
    size_t best = SIZE_MAX, found = 0, count = 0;
    for (size_t i = 0; i < choices->count; i++) {
        str at = *rest;
        if (!label_take(choices, i, &at) || !is_end(at, together) || at.len > best) continue;
        count = at.len == best ? count + 1 : 1;
        best = at.len;
        found = i;
    }
    if (count != 1) return false;
    *rest = str_drop(*rest, rest->len - best);
    *ret_at = found;
    return true;
}

/* A number, perhaps with the label of its own choice behind it. */
static enum pick number_pick(const struct choices *choices, str *rest, bool together,
                             size_t *ret_at)
{
    unsigned number = 0;
    str at = *rest;
    if (!number_take(&at, &number)) return PICK_NONE;
    bool known = number >= 1 && number <= choices->count;
    if (known) {
        str label = skip_spaces(at);
        if (label.len && fold_starts(&label, STR(":"))) label = skip_spaces(label);
        if (label_take(choices, number - 1, &label) && is_end(label, together)) at = label;
    }
    if (!is_end(at, together)) { /* "1、3": what seemed to belong to the number is between two */
        at = *rest;
        if (together || !numeral_take(&at, &number) || !is_end(at, false)) return PICK_NONE;
    }
    *rest = at;
    *ret_at = number - 1;
    return known ? PICK_DONE : PICK_RANGE;
}

static enum pick pick_one(const struct choices *choices, str *rest, bool together, size_t *ret_at)
{
    if (longest_label(choices, rest, together, ret_at)) return PICK_DONE;
    return number_pick(choices, rest, together, ret_at);
}

/* ---- all ---- */

static str skip_separators(str text)
{
    for (;;) {
        str rest = text;
        if (!rest.len) return rest;
        if (is_separator(fold_next(&rest))) {
            text = rest;
            continue;
        }
        str word = text;
        bool han = fold_starts(&word, STR("和")) || fold_starts(&word, STR("与"));
        bool english = !han && fold_starts(&word, STR("and")) && word.len && word.p[0] == ' ';
        if (!han && !english) return text;
        text = word;
    }
}

static void pick_add(struct picked *picked, size_t at)
{
    for (size_t i = 0; i < picked->count; i++)
        if (picked->at[i] == at) return;
    if (picked->count < COUNT(picked->at)) picked->at[picked->count++] = at;
}

static enum pick pick_several(const struct choices *choices, str text, struct picked *picked)
{
    enum { TOKENS_MAX = 2 * ASK_CHOICES_MAX }; /* more are words; and the work stays small */
    enum pick all = PICK_DONE;
    size_t tokens = 0;
    picked->count = 0;
    for (text = skip_separators(text); text.len && !is_tail(text); text = skip_separators(text)) {
        size_t at = 0;
        enum pick one = pick_one(choices, &text, false, &at);
        if (one == PICK_NONE || ++tokens > TOKENS_MAX) return PICK_NONE;
        if (one == PICK_RANGE) all = PICK_RANGE;
        if (one == PICK_DONE) pick_add(picked, at);
    }
    return all == PICK_DONE && !picked->count ? PICK_NONE : all;
}

/* The very label, byte for byte, goes before everything else, as it does on the server. */
static bool exact_label(const struct choices *choices, str text, struct picked *picked)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (!str_eq(choices->labels[i], text)) continue;
        *picked = (struct picked){.at = {i}, .count = 1};
        return true;
    }
    return false;
}

enum pick pick_read(const struct choices *choices, str text, bool multi, struct picked *ret_picked)
{
    struct picked picked = {.count = 1};
    text = words_trim(text);
    if (!text.len || !choices->count) return PICK_NONE;
    if (exact_label(choices, text, ret_picked)) return PICK_DONE;
    str rest = text;
    enum pick pick = pick_one(choices, &rest, true, &picked.at[0]);
    if (pick == PICK_NONE) {
        pick = pick_several(choices, text, &picked);
        if (!multi && pick == PICK_DONE && picked.count > 1) return PICK_MANY;
        if (!multi && pick != PICK_DONE) return PICK_NONE;
    }
    if (pick == PICK_DONE) *ret_picked = picked;
    return pick;
}

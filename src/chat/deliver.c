/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts of a conversation as messages to a person; the code that approves; pure. A leg gathers what
 * it said; its last fact sends it off:
 *
 *   run.started        what is gathered begins anew
 *   tool.call.result   its card in words, its files
 *   text.message.end   its words, its card in words
 *   interaction.request  kept until the leg ends: by then it may be answered
 *   run.finished       words, then files, then questions that are open
 *   run.error          words, then what went wrong
 *   interaction.resolved  by somebody else: who and what; by this person in this chat: nothing
 *
 * Invariants:
 * 1. The cursor stands behind the last fact whose messages are in the delivery: what is gathered
 *    behind it is gathered again with the next look.
 * 2. A question that is not open any more is not asked.
 */
#include "chat/deliver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/facts.h"
#include "agent/core/interaction.h"
#include "base/crypto.h"
#include "base/limits.h"
#include "base/rows.h"
#include "store/table/keys.h"
#include "ui/plain.h"
#include "ui/text.h"

enum {
    CARD_CHARS_MAX = 1200,
    LEG_BYTES_MAX = 256 * 1024,
    LEG_FILES_MAX = 20,
    PARTS_MAX = 20, /* of one text: nobody reads more of it in a chat */
};

struct walk {
    struct arena *arena;
    const struct delivery_view *view;
    const struct interaction *interactions;
    size_t interaction_count;
    struct buf words; /* of the leg */
    str files[LEG_FILES_MAX];
    size_t file_count;
    str asked[STATE_IDS_MAX]; /* ids */
    size_t asked_count;
    bool in_leg;
    str run_id;   /* of the leg */
    bool stopped; /* told once that it was stopped */
    struct delivery out;
};

/* ---- types ---- */

static const struct {
    const char *type;
    bool wakes;
} types[] = {
    {FACT_RUN_STARTED, false}, {FACT_TEXT_END, false}, {FACT_TOOL_RESULT, false},
    {FACT_REQUEST, false},     {FACT_RESOLVED, true},  {FACT_RUN_FINISHED, true},
    {FACT_RUN_ERROR, true},
};

bool deliver_needs(const char *type)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].type, type)) return true;
    return false;
}

bool deliver_wakes(const char *type)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].type, type)) return types[i].wakes;
    return false;
}

static bool is(const struct fact *fact, const char *type)
{
    return strcmp(fact->type, type) == 0;
}

static const struct json *data_of(struct arena *arena, const struct fact *fact)
{
    struct json *data = NULL;
    return json_parse(arena, fact->data, &data, NULL) ? NULL : data;
}

str deliver_about(struct arena *arena, const struct fact *fact)
{
    if (!is(fact, FACT_REQUEST) && !is(fact, FACT_RESOLVED)) return STR_EMPTY;
    return json_text(json_get(data_of(arena, fact), STR("interactionId")));
}

/* ---- approvals ---- */

bool interaction_mine(const struct interaction *interaction, str user, unsigned roles, bool alone)
{
    struct decider decider = {.user = user, .alone = alone};
    size_t count = 0;
    for (size_t i = 0; i < ROLE_COUNT; i++)
        if (roles & role_table[i].bit) decider.roles[count++] = str_c(role_table[i].name);
    return interaction_allows(interaction, &decider) == ADMITTED;
}

bool approval_by_code(const struct interaction *interaction, bool group)
{
    return !group &&
           (interaction->type == INTERACTION_CONFIRM || interaction->type == INTERACTION_UNCERTAIN);
}

void approval_code(const unsigned char *key, int64_t peer, const struct interaction *interaction,
                   char out[static APPROVAL_CODE_BYTES])
{
    unsigned char mac[HASH_BYTES], hash[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    struct buf text;
    crypto_sha256(interaction->args, hash);
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    buf_init(&text, 4096);
    buf_printf(&text, "approval %" PRId64 " %.*s %s ", peer, STR_ARG(interaction->id), hex);
    buf_append(&text, interaction->binding);
    crypto_hmac((str){(const char *)key, HASH_BYTES}, buf_str(&text), mac);
    buf_done(&text);
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number = number << 8 | mac[i];
    snprintf(out, APPROVAL_CODE_BYTES, "%06u", (unsigned)(number % 1000000));
}

/* ---- what goes out ---- */

static struct out_row *deliver_add(struct walk *walk, enum out_class class, str text)
{
    struct out_row *row = ROWS_ADD(walk->arena, walk->out.rows, walk->out.count);
    *row = (struct out_row){.class = class, .text = text};
    return row;
}

static void add_parts(struct walk *walk, enum out_class class, str text)
{
    struct text_parts parts;
    text_split(walk->arena, walk->view->traits, text, &parts);
    size_t shown = parts.count <= PARTS_MAX ? parts.count : PARTS_MAX - 1;
    for (size_t i = 0; i < shown; i++) (void)deliver_add(walk, class, parts.parts[i]);
    if (shown < parts.count)
        (void)deliver_add(walk, class,
                          chat_text(walk->arena, walk->view->locale, TEXT_TOO_MUCH,
                                    walk->view->page));
}

static void deliver_say(struct walk *walk, str words)
{
    if (!words.len) return;
    if (walk->words.len) buf_append(&walk->words, STR("\n\n"));
    buf_append(&walk->words, words);
}

static void add_file(struct walk *walk, str file)
{
    struct json *json = NULL;
    if (walk->view->traits->files) {
        struct out_row *row = deliver_add(walk, OUT_FINAL, STR_EMPTY);
        row->file = file;
        return;
    }
    if (json_parse(walk->arena, file, &json, NULL)) return;
    str name = json_text(json_get(json, STR("filename")));
    add_parts(walk, OUT_FINAL,
              chat_text(walk->arena, walk->view->locale, TEXT_FILE, name.len ? name : STR("?")));
}

static const struct interaction *find(const struct walk *walk, str id)
{
    for (size_t i = 0; i < walk->interaction_count; i++)
        if (str_eq(walk->interactions[i].id, id)) return &walk->interactions[i];
    return NULL;
}

static void deliver_ask(struct walk *walk, str id)
{
    const struct delivery_view *view = walk->view;
    const struct interaction *interaction = find(walk, id);
    if (!interaction || interaction->status != INTERACTION_OPEN) return;
    char code[APPROVAL_CODE_BYTES] = "";
    bool mine = interaction_mine(interaction, view->user, view->roles, view->alone);
    if (mine && approval_by_code(interaction, view->group))
        approval_code(view->code_key, view->peer, interaction, code);
    str page = view->page;
    if (page.len)
        page = arena_printf(walk->arena, "%.*s#/t/%.*s/%.*s", STR_ARG(page),
                            STR_ARG(view->thread_id), STR_ARG(interaction->id));
    struct question_text question;
    question_text(walk->arena, interaction,
                  &(struct question_view){.locale = view->locale,
                                          .traits = view->traits,
                                          .code = str_c(arena_cstr(walk->arena, str_c(code))),
                                          .page = page,
                                          .mine = mine},
                  &question);
    struct out_row *row = deliver_add(walk, OUT_QUESTION, question.text);
    row->buttons = question.buttons;
    row->interaction = interaction->id;
}

/* ---- facts ---- */

static void begin_leg(struct walk *walk)
{
    buf_done(&walk->words);
    buf_init(&walk->words, LEG_BYTES_MAX);
    walk->file_count = 0;
}

static void send_off(struct walk *walk)
{
    str words = arena_str(walk->arena, buf_str(&walk->words));
    if (words.len) add_parts(walk, OUT_FINAL, words);
    for (size_t i = 0; i < walk->file_count; i++) add_file(walk, walk->files[i]);
    begin_leg(walk);
}

static void say_card(struct walk *walk, const struct json *data)
{
    const struct json *card = json_get(data, STR("ui"));
    if (card)
        deliver_say(walk, plain_card(walk->arena, card->raw, walk->view->locale, CARD_CHARS_MAX));
}

/* Settled in this chat: whoever did it knows. Withdrawn with its run: that is told by itself. */
static void take_resolved(struct walk *walk, const struct json *data)
{
    const struct delivery_view *view = walk->view;
    const struct interaction *interaction =
        find(walk, json_text(json_get(data, STR("interactionId"))));
    for (size_t i = 0; interaction && i < walk->asked_count; i++)
        if (str_eq(walk->asked[i], interaction->id)) walk->asked[i] = STR_EMPTY;
    if (!interaction) return;
    *ROWS_ADD(walk->arena, walk->out.settled, walk->out.settled_count) = interaction->id;
    if (str_eq(interaction->via, str_c(view->traits->kind))) return;
    if (interaction->status != INTERACTION_RESOLVED && interaction->status != INTERACTION_EXPIRED)
        return;
    struct out_row *row =
        deliver_add(walk, OUT_NOTICE,
                    settled_text(walk->arena, view->locale, interaction, view->user));
    row->interaction = interaction->id;
}

static void take_finished(struct walk *walk, const struct json *data)
{
    str outcome = json_text(json_get(data, STR("outcome")));
    send_off(walk);
    if (str_eq(outcome, STR("cancelled")) && !walk->stopped) {
        walk->stopped = true;
        (void)deliver_add(walk, OUT_NOTICE,
                          chat_text(walk->arena, walk->view->locale, TEXT_RUN_STOPPED, STR_EMPTY));
    }
    for (size_t i = 0; i < walk->asked_count; i++) deliver_ask(walk, walk->asked[i]);
    walk->asked_count = 0;
}

static void deliver_take(struct walk *walk, const struct fact *fact)
{
    const struct json *data = data_of(walk->arena, fact);
    bool ends = is(fact, FACT_RUN_FINISHED) || is(fact, FACT_RUN_ERROR);
    if (ends && walk->in_leg && !str_eq(walk->run_id, fact->run_id))
        return; /* one that waited behind this leg was dropped */
    if (ends) walk->in_leg = false;
    if (is(fact, FACT_RUN_STARTED)) {
        walk->in_leg = true;
        walk->run_id = fact->run_id;
        begin_leg(walk);
    } else if (is(fact, FACT_TEXT_END)) {
        str content = json_text(json_get(data, STR("content")));
        str plain = plain_markdown(walk->arena, content);
        if (!ui_trim(plain).len) plain = ui_trim(content); /* marks alone, too, are an answer */
        deliver_say(walk, plain);
        say_card(walk, data);
    } else if (is(fact, FACT_TOOL_RESULT)) {
        const struct json *files = json_get(data, STR("attachments"));
        say_card(walk, data);
        for (const struct json *n = files ? files->child : NULL; n; n = n->next)
            if (walk->file_count < LEG_FILES_MAX) walk->files[walk->file_count++] = n->raw;
    } else if (is(fact, FACT_REQUEST) && walk->asked_count < STATE_IDS_MAX) {
        walk->asked[walk->asked_count++] = json_text(json_get(data, STR("interactionId")));
    } else if (is(fact, FACT_RESOLVED)) {
        take_resolved(walk, data);
    } else if (is(fact, FACT_RUN_FINISHED)) {
        take_finished(walk, data);
    } else if (is(fact, FACT_RUN_ERROR)) {
        send_off(walk);
        add_parts(walk, OUT_ERROR,
                  chat_text(walk->arena, walk->view->locale, TEXT_RUN_FAILED,
                            json_text(json_get(data, STR("message")))));
        walk->asked_count = 0;
    }
}

/* In the middle of a leg a settled question is told at once, and the cursor stays: the words of the
 * leg are still to come. So what is told there must not be told again: nothing is delivered from a
 * leg that has not ended. */
static size_t whole_legs(const struct fact *facts, size_t count)
{
    const struct fact *leg = NULL;
    size_t whole = 0;
    for (size_t i = 0; i < count; i++) {
        bool ends = is(&facts[i], FACT_RUN_FINISHED) || is(&facts[i], FACT_RUN_ERROR);
        if (is(&facts[i], FACT_RUN_STARTED)) leg = &facts[i];
        if (ends && leg && str_eq(facts[i].run_id, leg->run_id)) leg = NULL;
        if (!leg) whole = i + 1;
    }
    return whole;
}

void deliver_facts(struct arena *arena, const struct delivery_view *view, const struct fact *facts,
                   size_t fact_count, const struct interaction *interactions,
                   size_t interaction_count, int64_t cursor, struct delivery *ret_delivery)
{
    struct walk walk = {.arena = arena,
                        .view = view,
                        .interactions = interactions,
                        .interaction_count = interaction_count,
                        .out = {.cursor = cursor}};
    size_t whole = whole_legs(facts, fact_count);
    buf_init(&walk.words, LEG_BYTES_MAX);
    for (size_t i = 0; i < whole; i++) deliver_take(&walk, &facts[i]);
    if (whole) walk.out.cursor = facts[whole - 1].seq;
    buf_done(&walk.words);
    *ret_delivery = walk.out;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata answer ID`: settle something that waits, by flags or, on a terminal, by its card.
 *
 * Exit codes: 0 taken, 1 failed, 2 it cannot be said so, 4 settled already.
 *
 * To add a decision: a flag in cli.c and a row in `decisions`.
 */
#include <stdio.h>

#include "base/say.h"
#include "term/chat.h"
#include "term/chat_card.h"
#include "term/term.h"
#include "term/term_ask.h"
#include "term/term_text.h"
#include "term/term_words.h"
#include "ui/visible.h"

static const struct {
    size_t offset; /* of a bool in struct args */
    const char *decision;
} decisions[] = {
    {offsetof(struct args, approve), "approve"}, {offsetof(struct args, reject), "reject"},
    {offsetof(struct args, go_on), "continue"},  {offsetof(struct args, give_up), "give_up"},
    {offsetof(struct args, retry), "retry"},     {offsetof(struct args, happened), "happened"},
};

static int refuse(enum lang lang, enum word why, str what, int code)
{
    fprintf(stderr, "fermata: %s%s%s\n", word(lang, why), what.len ? ": " : "", say(what).text);
    return code;
}

/* ---- which one ---- */

static int find(const struct link *link, struct arena *arena, str id, str *ret_json)
{
    enum { ID_CHARS_MIN = 4 }; /* fewer, and a slip of the finger decides something */
    str own = str_starts(id, STR("int_")) ? str_drop(id, 4) : id;
    if (!id_valid(id)) return refuse(link->lang, W_NOT_FOUND, id, EXIT_USAGE);
    if (own.len < ID_CHARS_MIN) return refuse(link->lang, W_SHORT_ID, id, EXIT_USAGE);
    /* One of the open ones that begins so, if only one does. */
    struct json *json = NULL;
    str cursor = STR_EMPTY;
    *ret_json = STR_EMPTY;
    do {
        str page = arena_printf(arena, "/api/v1/agent/interactions?limit=100%s%.*s",
                                cursor.len ? "&cursor=" : "", STR_ARG(cursor));
        struct link_answer open = link_ask(link, arena, "GET", page, STR_EMPTY);
        if (!link_good(&open) || json_parse(arena, open.body, &json, NULL))
            return link_failed(link, arena, &open);
        const struct json *list = json_get(json, STR("interactions"));
        for (const struct json *one = list ? list->child : NULL; one; one = one->next) {
            str its = json_text(json_get(one, STR("interactionId")));
            if (!str_starts(its, id) && !str_starts(str_drop(its, 4), id)) continue;
            if (ret_json->len) return refuse(link->lang, W_SEVERAL, id, EXIT_FAILED);
            *ret_json = one->raw;
        }
        cursor = json_text(json_get(json, STR("next")));
    } while (cursor.len && id_valid(cursor));
    if (ret_json->len) return EXIT_OK;
    /* One that is settled is found by its whole id. */
    str path = arena_printf(arena, "/api/v1/agent/interactions/%.*s", STR_ARG(id));
    struct link_answer answer = link_ask(link, arena, "GET", path, STR_EMPTY);
    if (answer.status == 404) return refuse(link->lang, W_NOT_FOUND, id, EXIT_FAILED);
    if (!link_good(&answer)) return link_failed(link, arena, &answer);
    *ret_json = answer.body;
    return EXIT_OK;
}

/* ---- what is said ---- */

static bool flag_set(const struct args *args, size_t i)
{
    return *(const bool *)(const void *)((const char *)args + decisions[i].offset);
}

static bool say_it(struct card *card, const struct args *args, str *ret_why)
{
    if (args->choices.count)
        return card_pick(card, args->choices.items, args->choices.count, args->text, ret_why);
    if (args->text.len) return card_words(card, args->text);
    if (args->fields.count) return card_fill(card, args->fields.items, args->fields.count, ret_why);
    if (args->skip) return card_skip(card);
    if (args->edit.len) return card_decide(card, STR("edit"), STR_EMPTY, args->edit, ret_why);
    for (size_t i = 0; i < COUNT(decisions); i++)
        if (flag_set(args, i))
            return card_decide(card, str_c(decisions[i].decision), args->reason, STR_EMPTY,
                               ret_why);
    return false;
}

/* ---- what comes of it ---- */

static void print_settled(const struct link *link, struct arena *arena, FILE *out,
                          const struct json *interaction)
{
    str line = fold_settled(arena, link->lang, interaction);
    fprintf(out, "%.*s\n", STR_ARG(line));
}

static int settled_already(const struct link *link, struct arena *arena, const struct args *args,
                           const struct json *interaction)
{
    fprintf(stderr, "fermata: %s\n", word(link->lang, W_SETTLED_ALREADY));
    if (args->json && interaction)
        printf("%.*s\n", STR_ARG(ui_visible_json(arena, interaction->raw)));
    else
        print_settled(link, arena, stderr, interaction);
    return EXIT_SETTLED;
}

static int decide(const struct link *link, struct arena *arena, const struct args *args,
                  struct card *card)
{
    struct fault fault = {0};
    str why = STR_EMPTY;
    size_t said = (args->choices.count || args->text.len) + (args->fields.count > 0) +
                  (args->edit.len > 0) + args->skip;
    for (size_t i = 0; i < COUNT(decisions); i++) said += flag_set(args, i);
    if (said > 1) return refuse(link->lang, W_ONE_DECISION, STR_EMPTY, EXIT_USAGE);
    if (said && !say_it(card, args, &why)) {
        fprintf(stderr, "fermata: %.*s\n", STR_ARG(why));
        return EXIT_USAGE;
    }
    if (!said && !term_usable()) return refuse(link->lang, W_NO_DECISION, STR_EMPTY, EXIT_USAGE);
    if (!said && !term_ask(card, &fault)) {
        fprintf(stderr, "fermata: %s\n", fault.text);
        return EXIT_FAILED;
    }

    struct json *json = NULL;
    str path = arena_printf(arena, "/api/v1/agent/interactions/%.*s/answer", STR_ARG(card->id));
    struct link_answer answer = link_ask(link, arena, "POST", path, buf_str(&card->body));
    if (!answer.err && answer.body.len && json_parse(arena, answer.body, &json, NULL)) json = NULL;
    bool settled = str_eq(answer.code, STR("already_resolved")) ||
                   str_eq(answer.code, STR("expired")) || str_eq(answer.code, STR("superseded"));
    if (settled) return settled_already(link, arena, args, json_get(json, STR("interaction")));
    if (!link_good(&answer)) return link_failed(link, arena, &answer);
    if (args->json)
        printf("%.*s\n", STR_ARG(ui_visible_json(arena, answer.body)));
    else
        print_settled(link, arena, stdout, json);
    return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

int answer_main(const struct config *config, struct arena *arena, const struct args *args)
{
    struct link link;
    struct json *json = NULL;
    str found = STR_EMPTY;
    link_init(&link, arena, config, args);
    if (!link_check(&link)) return EXIT_FAILED;
    int code = find(&link, arena, args->operand, &found);
    if (code) return code;
    if (json_parse(arena, found, &json, NULL)) return EXIT_FAILED;
    if (!str_eq(json_text(json_get(json, STR("status"))), STR("open")))
        return settled_already(&link, arena, args, json);
    struct card *card = card_new(found, link.lang);
    if (!card) return refuse(link.lang, W_NOT_FOUND, args->operand, EXIT_FAILED);
    code = decide(&link, arena, args, card);
    card_free(card);
    return code;
}

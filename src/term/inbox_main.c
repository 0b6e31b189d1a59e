/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata inbox`: what waits for this person, oldest last, as the server lists it.
 */
#include <stdio.h>

#include "term/chat.h"
#include "term/term_text.h"
#include "term/term_words.h"
#include "ui/text.h"
#include "ui/visible.h"

static const struct {
    const char *type;
    enum word name;
} kinds[] = {
    {"ask_user", W_KIND_QUESTION},
    {"confirm", W_KIND_APPROVAL},
    {"connection_lost", W_KIND_LOST},
    {"uncertain", W_KIND_UNCERTAIN},
};

static void print_one(struct arena *arena, enum lang lang, size_t number, const struct json *one,
                      const struct json *threads)
{
    str text = ui_line(arena, json_text(json_get(one, STR("displayText"))), TERM_SUMMARY_CHARS_MAX);
    str id = term_clean(arena, json_text(json_get(one, STR("interactionId"))), false);
    str type = json_text(json_get(one, STR("type")));
    const char *kind = "?";
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (str_eq(type, str_c(kinds[i].type))) kind = word(lang, kinds[i].name);
    /* The titles of conversations are told by another list. */
    str thread_id = json_text(json_get(one, STR("threadId")));
    const struct json *thread = threads ? threads->child : NULL;
    while (thread && !str_eq(json_text(json_get(thread, STR("threadId"))), thread_id))
        thread = thread->next;
    str title = ui_line(arena, json_text(json_get(thread, STR("title"))), TERM_TITLE_CHARS_MAX);
    printf("%zu. %.*s · %s · %s\n", number, STR_ARG(id), kind,
           chat_age(json_text(json_get(one, STR("openedAt"))), lang).text);
    text = ui_visible(arena, text, false);
    printf("   %.*s\n", STR_ARG(text));
    if (title.len) printf("   %s: %.*s\n", word(lang, W_RESUMED), STR_ARG(title));
}

/* All of it, page after page: the first is the newest. */
static int print_all(const struct link *link, bool json, const struct json *threads)
{
    str cursor = STR_EMPTY;
    AUTO(arena_done) struct arena places;
    arena_init(&places);
    size_t number = 0;
    do {
        AUTO(arena_done) struct arena arena;
        struct json *page = NULL;
        arena_init(&arena);
        str path = arena_printf(&arena, "/api/v1/agent/interactions?limit=100%s%.*s",
                                cursor.len ? "&cursor=" : "", STR_ARG(cursor));
        struct link_answer open = link_ask(link, &arena, "GET", path, STR_EMPTY);
        if (!link_good(&open) || json_parse(&arena, open.body, &page, NULL))
            return link_failed(link, &arena, &open);
        const struct json *list = json_get(page, STR("interactions"));
        for (const struct json *one = list ? list->child : NULL; one; one = one->next) {
            number++;
            if (json)
                printf("%.*s\n", STR_ARG(ui_visible_json(&arena, one->raw)));
            else
                print_one(&arena, link->lang, number, one, threads);
        }
        str next = json_text(json_get(page, STR("next")));
        cursor = id_valid(next) && !str_eq(next, cursor) ? arena_str(&places, next) : STR_EMPTY;
    } while (cursor.len && !ferror(stdout));
    if (!number && !json) printf("%s\n", word(link->lang, W_INBOX_EMPTY));
    return ferror(stdout) || fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

int inbox_main(const struct config *config, struct arena *arena, const struct args *args)
{
    struct link link;
    struct json *more = NULL;
    link_init(&link, arena, config, args);
    if (!link_check(&link)) return EXIT_FAILED;
    if (args->json) return print_all(&link, true, NULL);
    struct link_answer threads =
        link_ask(&link, arena, "GET", STR("/api/v1/agent/threads?limit=100"), STR_EMPTY);
    if (!link_good(&threads) || json_parse(arena, threads.body, &more, NULL))
        return link_failed(&link, arena, &threads);
    return print_all(&link, false, json_get(more, STR("threads")));
}

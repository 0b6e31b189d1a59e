/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of `fermata chat` on a terminal, lines that begin with a slash: /new, /threads, /file
 * and the like. To add one: a row in `commands`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "term/chat_int.h"
#include "ui/text.h"

static void on_stopped(void *arg, const struct link_answer *answer)
{
    struct chat *chat = arg;
    if (answer->err == ERR_CANCELLED) return;
    if (!link_good(answer)) chat->stopping = false;
    if (answer->status == 409 || answer->status == 404)
        chat_note(chat, SAID_NOTE, W_NOTHING_RUNS);
    else if (!link_good(answer))
        chat_trouble(chat, answer);
    loop_defer(chat->loop, &chat->redraw);
}

void chat_stop(struct chat *chat, str words)
{
    AUTO(arena_done) struct arena arena;
    (void)words;
    arena_init(&arena);
    chat->stopping = chat->fold.state == RUN_WORKING;
    link_send(&chat->link, chat->client, "POST",
              arena_printf(&arena, "/api/v1/agent/runs/%s/cancel", chat->thread_id), NULL,
              STR("{}"), on_stopped, chat);
}

void chat_new(struct chat *chat, str words)
{
    char id[ID_CLIENT_BYTES_MAX + 1];
    (void)words;
    chat_new_id("chat_", id);
    chat_note(chat, SAID_NOTE, W_NEW);
    chat_go_to(chat, str_c(id), false);
}

static void on_threads(void *arg, const struct link_answer *answer)
{
    struct chat *chat = arg;
    if (answer->err == ERR_CANCELLED) return;
    struct json *json = NULL;
    loop_defer(chat->loop, &chat->redraw);
    if (!link_good(answer)) {
        chat_trouble(chat, answer);
        return;
    }
    arena_reset(&chat->list_arena);
    chat->list = NULL;
    chat->list_at = 0;
    str body = arena_str(&chat->list_arena, answer->body);
    if (!json_parse(&chat->list_arena, body, &json, NULL))
        chat->list = json_get(json, STR("threads"));
    if (chat->list && chat->list->count) return;
    chat->list = NULL;
    chat_note(chat, SAID_NOTE, W_NO_THREADS);
}

static void do_threads(struct chat *chat, str words)
{
    AUTO(arena_done) struct arena arena;
    (void)words;
    arena_init(&arena);
    link_send(&chat->link, chat->client, "GET",
              arena_printf(&arena, "/api/v1/agent/threads?limit=%d", TERM_THREADS), NULL, STR_EMPTY,
              on_threads, chat);
}

static void pick_thread(struct chat *chat, size_t index)
{
    const struct json *thread = json_at(chat->list, index);
    str id = json_text(json_get(thread, STR("threadId")));
    chat->list = NULL;
    if (!id_valid(id)) return;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str title = ui_line(&arena, json_text(json_get(thread, STR("title"))), TERM_TITLE_CHARS_MAX);
    chat_said(chat, SAID_NOTE,
              arena_printf(&arena, "%s: %.*s", word(chat->link.lang, W_RESUMED), STR_ARG(title)));
    chat_go_to(chat, id, true);
}

void chat_pick(struct chat *chat, struct key_event event)
{
    size_t count = chat->list->count;
    if (event.key == KEY_ESC)
        chat->list = NULL;
    else if (event.key == KEY_UP)
        chat->list_at = (chat->list_at + count - 1) % count;
    else if (event.key == KEY_DOWN)
        chat->list_at = (chat->list_at + 1) % count;
    else if (event.key == KEY_ENTER)
        pick_thread(chat, chat->list_at);
    else if (event.key == KEY_CHAR && !event.pasted && event.code >= '1' && event.code <= '9' &&
             event.code - '1' < count)
        pick_thread(chat, event.code - '1');
}

static void on_uploaded(void *arg, const struct link_answer *answer)
{
    struct loading *loading = arg;
    struct chat *chat = loading->chat;
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    chat->uploading = false;
    loop_defer(chat->loop, &chat->redraw);
    bool current = loading->epoch == chat->epoch && answer->err != ERR_CANCELLED;
    free(loading);
    if (!current) return;
    if (!link_good(answer) || json_parse(&arena, answer->body, &json, NULL)) {
        chat_trouble(chat, answer);
        return;
    }
    const struct json *file = json_get(json, STR("attachment"));
    str id = json_text(json_get(file, STR("id")));
    str name = ui_line(&arena, json_text(json_get(file, STR("filename"))), TERM_NAME_CHARS_MAX);
    if (!id_valid(id) || chat->file_count == TERM_FILES_MAX) return;
    snprintf(chat->files[chat->file_count++].id, sizeof chat->files[0].id, "%.*s", STR_ARG(id));
    chat_said(chat, SAID_NOTE,
              arena_printf(&arena, "%s: %.*s", word(chat->link.lang, W_FILE_READY), STR_ARG(name)));
}

static void do_file(struct chat *chat, str path)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf body;
    char type[CHAT_TYPE_BYTES], why[256];
    arena_init(&arena);
    if (!path.len) {
        chat_note(chat, SAID_ERROR, W_FILE_NONE);
        return;
    }
    const char *home = getenv("HOME");
    bool below = str_starts(path, STR("~/")) && home;
    const char *name = below ? arena_printf(&arena, "%s/%.*s", home, STR_ARG(str_drop(path, 2))).p
                             : arena_cstr(&arena, path);
    buf_init(&body, TERM_FILE_BYTES_MAX + UPLOAD_FORM_BYTES_MAX);
    if (!chat_upload(&body, chat->thread_id, name, chat->link.lang, type, why)) {
        chat_said(chat, SAID_ERROR, str_c(why));
        return;
    }
    chat->uploading = true;
    link_send(&chat->link, chat->client, "POST", STR("/api/v1/agent/attachments"), type,
              buf_str(&body), on_uploaded, chat_loading(chat));
}

static void do_help(struct chat *chat, str words)
{
    (void)words;
    chat_note(chat, SAID_NOTE, W_HELP);
}

static void do_quit(struct chat *chat, str words)
{
    (void)words;
    loop_stop(chat->loop);
}

static const struct {
    const char *name;
    void (*run)(struct chat *chat, str words);
} commands[] = {
    {"/new", chat_new},   {"/threads", do_threads}, {"/file", do_file},
    {"/stop", chat_stop}, {"/help", do_help},       {"/quit", do_quit},
};

void chat_command(struct chat *chat, str text)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str rest = arena_str(&arena, text), name = str_split(&rest, ' ');
    line_remember(&chat->line, text);
    line_set(&chat->line, STR_EMPTY);
    for (size_t i = 0; i < COUNT(commands); i++)
        if (str_eq(name, str_c(commands[i].name))) {
            commands[i].run(chat, str_trim(rest.p ? rest : STR_EMPTY));
            return;
        }
    chat_note(chat, SAID_ERROR, W_UNKNOWN_COMMAND);
}

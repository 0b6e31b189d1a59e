/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat` on a terminal: cards, events, messages, keys. Everything happens on one loop:
 * keys, events, answers of the server.
 *
 *     keyboard ── term_key ──┬── card (chat_card)      if something is open and nothing is being written
 *                            ├── list of conversations if one is being picked
 *                            └── input line (line)     else
 *     events ── chat_stream ── chat_fold ── lines that stay, and what is growing or open
 *     both ── draw, once for each turn of the loop
 *
 * 1. What was printed is made of facts; what may be taken back stands in the area below.
 * 2. A card takes the keyboard only while the input line is empty, so that nobody approves something in
 *    the middle of a word; what was typed before an approval was drawn is dropped.
 * 3. Words that were begun before something opened are not sent by the first Enter: they would answer or
 *    reject what their writer had not seen.
 * 4. A message that got no answer is put back into the input line. Sent again unchanged it has the same
 *    run id, and the server takes it once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "term/chat_int.h"
#include "ui/text.h"

/* ---- cards ---- */

static struct fold_open *open_with(struct chat *chat, str id)
{
    for (size_t i = 0; i < chat->fold.open_count; i++)
        if (str_eq(str_c(chat->fold.open[i].id), id)) return &chat->fold.open[i];
    return NULL;
}

/* What was written on it is found among the earlier messages. */
static void drop_card(struct chat *chat)
{
    if (chat->card && card_written(chat->card).len)
        line_remember(&chat->line, card_written(chat->card));
    card_free(chat->card);
    chat->card = NULL;
}

static void show_card(struct chat *chat, const struct fold_open *open)
{
    chat->card = card_new((str){open->json, open->len}, chat->link.lang);
    if (chat->card) card_fit(chat->card, chat->term.columns - 1);
}

/* Who has the keyboard now? */
static void focus(struct chat *chat)
{
    if (chat->card && !open_with(chat, chat->card->id)) drop_card(chat);
    if (chat->card || chat->list || chat->line.text.len || chat->held.len) return;
    for (size_t i = 0; i < chat->fold.open_count && !chat->card; i++) {
        struct fold_open *open = &chat->fold.open[i];
        if (!open->later) show_card(chat, open);
    }
    if (!chat->card || chat->card->kind == CARD_QUESTION) return;
    term_drop_input();
    chat->keys = (struct keys){0};
}

static void on_redraw(struct loop_defer *defer)
{
    struct chat *chat = CONTAINER(defer, struct chat, redraw);
    focus(chat);
    chat_draw(chat);
}

static void put_away(struct chat *chat)
{
    struct fold_open *open = open_with(chat, chat->card->id);
    if (open) open->later = true;
    drop_card(chat);
}

static void on_answered(void *arg, const struct link_answer *answer)
{
    struct chat *chat = arg;
    if (answer->err == ERR_CANCELLED) return;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    bool mine = chat->card && str_eq(chat->card->id, str_c(chat->answering));
    chat->answering[0] = 0;
    loop_defer(chat->loop, &chat->redraw);
    if (link_good(answer)) return; /* the event says the rest */
    bool settled = answer->status == 409 || answer->status == 410;
    if (settled) {
        chat_note(chat, SAID_NOTE, W_SETTLED_ALREADY);
        if (mine) put_away(chat);
    } else if (mine) {
        card_refused(chat->card, link_trouble(&chat->link, &arena, answer));
    } else {
        chat_trouble(chat, answer);
    }
}

static void answer(struct chat *chat)
{
    AUTO(arena_done) struct arena arena;
    struct card *card = chat->card;
    arena_init(&arena);
    if (!id_valid(card->id) || chat->answering[0]) return;
    card->sending = true;
    snprintf(chat->answering, sizeof chat->answering, "%.*s", STR_ARG(card->id));
    link_send(&chat->link, chat->client, "POST",
              arena_printf(&arena, "/api/v1/agent/interactions/%s/answer", chat->answering), NULL,
              buf_str(&card->body), on_answered, chat);
}

/* ---- the stream ---- */

static void chat_tty_load(struct chat *chat);

static void on_event(void *arg, str data)
{
    struct chat *chat = arg;
    fold_event(&chat->fold, data);
    if (chat->fold.state != RUN_WORKING) chat->stopping = false;
    loop_defer(chat->loop, &chat->redraw);
    if (chat->fold.stale && !chat->loading) chat_tty_load(chat);
}

static void on_open(void *arg)
{
    struct chat *chat = arg;
    if (chat->lost) chat_note(chat, SAID_NOTE, W_BACK);
    chat->lost = false;
    fold_reconnected(&chat->fold);
    loop_defer(chat->loop, &chat->redraw);
}

static void on_lost(void *arg)
{
    struct chat *chat = arg;
    chat->lost = true;
    loop_defer(chat->loop, &chat->redraw);
}

static void on_refused(void *arg, int status)
{
    struct chat *chat = arg;
    chat_trouble(chat, &(struct link_answer){.status = status});
    chat->code = EXIT_FAILED;
    loop_stop(chat->loop);
}

static uint64_t seq_of(void *arg)
{
    struct chat *chat = arg;
    return chat->fold.seq;
}

static void chat_tty_follow(struct chat *chat)
{
    static const struct stream_ops ops = {on_event, on_open, on_lost, on_refused, seq_of};
    stream_free(chat->stream);
    chat->stream = stream_new(&chat->link, chat->client, str_c(chat->thread_id), &ops, chat);
}

/* ---- a conversation that exists ---- */

enum { LOAD_WAIT_MS_MIN = 200, LOAD_WAIT_MS_MAX = 5000 };

struct loading *chat_loading(struct chat *chat)
{
    struct loading *loading = calloc(1, sizeof *loading);
    if (!loading) abort();
    *loading = (struct loading){chat, chat->epoch};
    return loading;
}

static void on_run(void *arg, const struct link_answer *answer)
{
    struct loading *loading = arg;
    struct chat *chat = loading->chat;
    if (loading->epoch == chat->epoch && answer->err != ERR_CANCELLED) {
        if (link_good(answer)) fold_run(&chat->fold, answer->body);
        chat->loading = false;
        chat_tty_follow(chat);
        loop_defer(chat->loop, &chat->redraw);
    }
    free(loading);
}

static void on_history(void *arg, const struct link_answer *answer)
{
    struct loading *loading = arg;
    struct chat *chat = loading->chat;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    bool current = loading->epoch == chat->epoch && answer->err != ERR_CANCELLED;
    if (current && link_good(answer) && fold_history(&chat->fold, answer->body)) {
        chat->old = false;
        chat->wait = LOAD_WAIT_MS_MIN;
        link_send(&chat->link, chat->client, "GET",
                  arena_printf(&arena, "/api/v1/agent/runs/%s?limit=%d", chat->thread_id,
                               LIST_LIMIT_MAX),
                  NULL, STR_EMPTY, on_run, loading);
        return;
    }
    free(loading);
    if (!current) return;
    loop_defer(chat->loop, &chat->redraw);
    bool refused = answer->status >= 400 && answer->status < 500 && answer->status != 429;
    if (answer->status == 404)
        chat_said(chat, SAID_ERROR,
                  arena_printf(&arena, "%s: %s", word(chat->link.lang, W_NO_THREAD),
                               chat->thread_id));
    else if (refused || chat->old)
        chat_trouble(chat, answer);
    if (chat->old) {
        chat->code = EXIT_FAILED;
        loop_stop(chat->loop);
    } else if (refused) {
        chat->loading = false;
        chat_new(chat, STR_EMPTY);
    } else { /* as a stream that was cut: it is tried again by itself */
        chat->lost = true;
        timer_start(chat->again, chat->wait);
        chat->wait = chat->wait * 2 < LOAD_WAIT_MS_MAX ? chat->wait * 2 : LOAD_WAIT_MS_MAX;
    }
}

static void on_again(void *arg)
{
    chat_tty_load(arg);
}

/* History first, then the stream from there on. */
static void chat_tty_load(struct chat *chat)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    stream_free(chat->stream);
    chat->stream = NULL;
    chat->loading = true;
    link_send(&chat->link, chat->client, "GET",
              arena_printf(&arena, "/api/v1/agent/runs/%s/history?limit=%d", chat->thread_id,
                           TERM_HISTORY_ROWS),
              NULL, STR_EMPTY, on_history, chat_loading(chat));
}

void chat_go_to(struct chat *chat, str thread_id, bool old)
{
    stream_free(chat->stream);
    chat->stream = NULL;
    drop_card(chat);
    fold_clear(&chat->fold);
    chat->epoch++;
    chat->file_count = 0;
    chat->stopping = chat->lost = chat->old = chat->loading = false;
    chat->wait = LOAD_WAIT_MS_MIN;
    timer_stop(chat->again);
    snprintf(chat->thread_id, sizeof chat->thread_id, "%.*s", STR_ARG(thread_id));
    if (old)
        chat_tty_load(chat);
    else
        chat_tty_follow(chat);
}

/* ---- keys that wait for a message ---- */

static void on_key(void *arg, struct key_event event);

/* A line is a message also when the one before it is still under way: it goes after that, and what is
 * typed behind it is not a part of it. */
static void hold(struct chat *chat, struct key_event event)
{
    if (!chat->held.len && !chat->releasing) chat->held_shown = chat->shown;
    buf_append(&chat->held, (str){(const char *)&event, sizeof event});
    chat->line.full |= chat->held.full;
}

/* Take them, up to the next message. Behind one that was not sent they are nothing but text. */
static void release(struct chat *chat, bool sent)
{
    static const struct key_event line_end = {KEY_CHAR, '\n', true};
    struct buf keys = chat->held;
    struct key_event event;
    buf_init(&chat->held, keys.max);
    chat->releasing = true;
    for (size_t at = 0; at < keys.len; at += sizeof event) {
        memcpy(&event, keys.p + at, sizeof event);
        bool enter = event.key == KEY_ENTER;
        if (!enter || sent) on_key(chat, event);
        if (enter && !chat->sending && chat->line.text.len)
            sent = false; /* it stays, see surprised */
        if (enter && !sent) on_key(chat, line_end);
    }
    chat->releasing = false;
    buf_done(&keys);
}

/* ---- messages ---- */

static void on_sent(void *arg, const struct link_answer *answer)
{
    struct chat *chat = arg;
    if (answer->err == ERR_CANCELLED) return;
    chat->sending = false;
    loop_defer(chat->loop, &chat->redraw);
    if (link_good(answer)) {
        buf_clear(&chat->sent);
        chat->run_id[0] = 0;
        chat->file_count = 0;
        release(chat, true);
        return;
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str why = link_trouble(&chat->link, &arena, answer);
    bool back = !chat->line.text.len;
    chat_said(chat, SAID_ERROR,
              arena_printf(&arena, "%s: %.*s %s", word(chat->link.lang, W_NOT_SENT), STR_ARG(why),
                           back ? word(chat->link.lang, W_ENTER_AGAIN) : ""));
    if (back && chat->sent.len) line_set(&chat->line, buf_str(&chat->sent));
    if (answer->status >= 400) chat->run_id[0] = 0; /* refused: another try is another run */
    release(chat, false);
}

static void send_message(struct chat *chat, str text)
{
    AUTO(buf_done) struct buf body;
    bool again = chat->run_id[0] && str_eq(text, buf_str(&chat->sent));
    if (!again) chat_new_id("run_", chat->run_id);
    if (!again) {
        buf_clear(&chat->sent);
        if (text.len) buf_append(&chat->sent, text);
    }
    buf_init(&body, RUN_INPUT_BYTES_MAX);
    chat_message(&body, chat->thread_id, chat->run_id, text, chat->files, chat->file_count);
    chat->sending = true;
    link_send(&chat->link, chat->client, "POST", STR("/api/v1/agent/runs"), NULL, buf_str(&body),
              on_sent, chat);
    line_remember(&chat->line, text);
    line_set(&chat->line, STR_EMPTY);
}

/* Whether something is open that was not on the screen when this message was begun. Told once. */
static bool surprised(struct chat *chat)
{
    bool is = false;
    for (size_t i = 0; i < chat->fold.open_count; i++)
        is |= chat->fold.open[i].number > chat->begun;
    if (is) chat_note(chat, SAID_NOTE, W_OPENED_MEANWHILE);
    chat->begun = chat->fold.asked;
    return is;
}

static void submit(struct chat *chat)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str text = arena_str(&arena, ui_trim(line_text(&chat->line)));
    if (str_starts(text, STR("/")) && str_find_char(text, '\n') < 0)
        chat_command(chat, text);
    else if (chat->sending && text.len)
        hold(chat, (struct key_event){.key = KEY_ENTER});
    else if (!chat->sending && (text.len || chat->file_count) && !chat->uploading &&
             !chat->loading && !(text.len && surprised(chat)))
        send_message(chat, text);
}

/* ---- keys ---- */

/* Ctrl-C: out of whatever one is in, then the run, then the program. */
static void interrupt(struct chat *chat)
{
    buf_clear(&chat->held);
    if (chat->list)
        chat->list = NULL;
    else if (chat->card)
        put_away(chat);
    else if (chat->line.text.len)
        line_set(&chat->line, STR_EMPTY);
    else if (chat->fold.state == RUN_WORKING && !chat->stopping && !chat->lost)
        chat_stop(chat, STR_EMPTY);
    else
        loop_stop(chat->loop);
}

static void on_key(void *arg, struct key_event event)
{
    struct chat *chat = arg;
    struct fold *fold = &chat->fold;
    loop_defer(chat->loop, &chat->redraw);
    if (!chat->line.text.len) chat->begun = chat->releasing ? chat->held_shown : chat->shown;
    if (event.key == KEY_CTRL && event.code == 'c') {
        interrupt(chat);
    } else if (event.key == KEY_CTRL && event.code == 'z') {
        term_suspend(&chat->term);
    } else if (chat->held.len) {
        hold(chat, event);
    } else if (chat->list) {
        chat_pick(chat, event);
    } else if (chat->card) {
        enum card_result result = card_key(chat->card, event);
        if (result == CARD_ANSWERS) answer(chat);
        if (result == CARD_LATER) put_away(chat);
    } else if (event.key == KEY_ENTER) {
        submit(chat);
    } else if (event.key == KEY_TAB && !chat->releasing) { /* what was put away comes back */
        for (size_t i = 0; i < fold->open_count; i++) fold->open[i].later = false;
        if (fold->open_count) show_card(chat, &fold->open[0]);
    } else if (!line_key(&chat->line, event) && event.key == KEY_CTRL && event.code == 'd') {
        loop_stop(chat->loop);
    }
}

static void on_keyboard(void *arg, int events)
{
    struct chat *chat = arg;
    char bytes[4096];
    (void)events;
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n <= 0) { /* the terminal is gone */
        loop_stop(chat->loop);
        return;
    }
    keys_feed(&chat->keys, (str){bytes, (size_t)n}, on_key, chat);
    if (keys_waiting(&chat->keys))
        timer_start(chat->esc, TERM_ESC_MS);
    else
        timer_stop(chat->esc);
}

static void on_esc(void *arg)
{
    struct chat *chat = arg;
    keys_flush(&chat->keys, on_key, chat);
}

static void on_signal(void *arg, int number)
{
    struct chat *chat = arg;
    if (number == SIGWINCH) {
        term_size(&chat->term);
        loop_defer(chat->loop, &chat->redraw);
        return;
    }
    chat->code = 128 + number;
    loop_stop(chat->loop);
}

/* ---- life ---- */

static void chat_init(struct chat *chat, const struct link *link, const struct chat_start *start)
{
    *chat = (struct chat){.link = *link, .old = start->old};
    memcpy(chat->thread_id, start->thread_id, sizeof chat->thread_id);
    chat->loop = loop_new();
    chat->client = client_new(chat->loop);
    chat->esc = timer_new(chat->loop, on_esc, chat);
    chat->again = timer_new(chat->loop, on_again, chat);
    chat->wait = LOAD_WAIT_MS_MIN;
    chat->redraw.fn = on_redraw;
    arena_init(&chat->list_arena);
    area_init(&chat->area);
    line_init(&chat->line, TERM_LINE_BYTES_MAX);
    buf_init(&chat->printed, TERM_PRINT_BYTES_MAX);
    buf_init(&chat->sent, TERM_LINE_BYTES_MAX);
    buf_init(&chat->held, TERM_LINE_BYTES_MAX * sizeof(struct key_event));
    fold_init(&chat->fold, link->lang, chat_said, chat);
}

static void chat_done(struct chat *chat)
{
    loop_defer_cancel(chat->loop, &chat->redraw);
    stream_free(chat->stream);
    client_free(chat->client);
    if (chat->keyboard) watch_free(chat->keyboard);
    timer_free(chat->esc);
    timer_free(chat->again);
    loop_free(chat->loop);
    card_free(chat->card);
    fold_done(&chat->fold);
    line_done(&chat->line);
    area_done(&chat->area);
    buf_done(&chat->printed);
    buf_done(&chat->sent);
    buf_done(&chat->held);
    arena_done(&chat->list_arena);
}

int chat_tty(const struct link *link, const struct chat_start *start)
{
    struct chat *chat = calloc(1, sizeof *chat);
    struct fault fault;
    if (!chat) abort();
    if (term_open(&chat->term, &fault)) {
        fprintf(stderr, "fermata: %s\n", fault.text);
        free(chat);
        return EXIT_FAILED;
    }
    struct term term = chat->term;
    chat_init(chat, link, start);
    chat->term = term;
    if (!start->old) chat_note(chat, SAID_NOTE, W_WELCOME);
    if (start->old)
        chat_tty_load(chat);
    else
        chat_tty_follow(chat);
    loop_defer(chat->loop, &chat->redraw);
    static const int signals[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT};
    bool heard = true;
    for (size_t i = 0; i < COUNT(signals) && heard; i++)
        heard = !loop_signal(chat->loop, signals[i], on_signal, chat);
    if (heard) {
        chat->keyboard = watch_new(chat->loop, STDIN_FILENO, on_keyboard, chat);
        watch_set(chat->keyboard, 1);
        loop_run(chat->loop);
    }
    area_begin(&chat->area, chat->term.columns);
    term_update(&chat->term, chat->printed.len ? buf_str(&chat->printed) : STR_EMPTY, &chat->area);
    term_close(&chat->term);
    if (chat->fold.seq) printf("%s %s\n", word(link->lang, W_BYE), chat->thread_id);
    int code = chat->code;
    chat_done(chat);
    free(chat);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat` without a terminal: each line of standard input is a message, or all of it with --once;
 * standard output has the answers and nothing else.
 *
 *     read a line ── nothing open: a message ──┬── run the loop until the run has ended or waits ── again
 *                 └─ a question is open: its answer ┘
 *
 * 1. Input is read only while nothing is under way, so a line is either a message or an answer, and which
 *    one it is does not depend on time.
 * 2. A line never approves anything: what needs a decision is printed with the command that makes it, and
 *    the program ends with EXIT_WAITS. So does an end of the input while something is open.
 * 3. With --json, standard output has the events one a line, as they came but for characters that a
 *    terminal would act on, which are escaped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "term/chat.h"
#include "term/chat_card.h"
#include "term/chat_stream.h"
#include "term/term_words.h"
#include "ui/text.h"
#include "ui/visible.h"

struct pipe {
    struct link link;
    struct loop *loop;
    struct client *client;
    struct stream *stream;
    struct fold fold;
    bool json, started;
    char thread_id[ID_CLIENT_BYTES_MAX + 1];
    char run_id[ID_CLIENT_BYTES_MAX + 1];   /* the run that is waited for; empty: not known yet */
    char answered[ID_CLIENT_BYTES_MAX + 1]; /* the question that was answered */
    uint64_t reopened; /* the missing fact that the stream was opened anew for; 0: none */
    int code;
};

/* ---- output ---- */

static void on_said(void *arg, enum saying kind, str text)
{
    struct pipe *pipe = arg;
    if (pipe->json) return;
    bool out = kind == SAID_ANSWER || kind == SAID_CARD;
    if (out && pipe->started) {
        fwrite(text.p, 1, text.len, stdout);
        fputc('\n', stdout);
        fflush(stdout);
    } else if (kind == SAID_ERROR) {
        fprintf(stderr, "fermata: %.*s\n", STR_ARG(text));
    }
}

static void fail(struct pipe *pipe, str why)
{
    fprintf(stderr, "fermata: %.*s\n", STR_ARG(why));
    pipe->code = EXIT_FAILED;
    loop_stop(pipe->loop);
}

/* ---- when to go on ---- */

static bool settled(const struct pipe *pipe)
{
    const struct fold *fold = &pipe->fold;
    if (!pipe->run_id[0]) return false;
    for (size_t i = 0; i < fold->open_count && pipe->answered[0]; i++)
        if (!strcmp(fold->open[i].id, pipe->answered)) return false;
    if (!strcmp(fold->ended_id, pipe->run_id)) return true;
    return fold->state == RUN_WAITING && fold->open_count;
}

/* ---- the stream ---- */

static void chat_pipe_follow(struct pipe *pipe);

static void on_event(void *arg, str data)
{
    struct pipe *pipe = arg;
    if (pipe->json) { /* a script reads the same, and a terminal that it is shown on is not touched */
        AUTO(arena_done) struct arena arena;
        arena_init(&arena);
        str shown = ui_visible_json(&arena, data);
        fwrite(shown.p, 1, shown.len, stdout);
        fputc('\n', stdout);
        fflush(stdout);
    }
    fold_event(&pipe->fold, data);
    /* Facts that are missing are asked for once; a server that does not have them either has another
     * conversation than we. */
    if (pipe->fold.stale && pipe->reopened == pipe->fold.seq + 1) {
        fail(pipe, words(pipe->link.lang, W_LOST));
    } else if (pipe->fold.stale) {
        pipe->reopened = pipe->fold.seq + 1;
        chat_pipe_follow(pipe);
    }
    if (ferror(stdout)) pipe->code = EXIT_FAILED; /* nobody reads it */
    if (settled(pipe) || pipe->code) loop_stop(pipe->loop);
}

static void on_open(void *arg)
{
    struct pipe *pipe = arg;
    fold_reconnected(&pipe->fold);
}

static void on_lost(void *arg)
{
    struct pipe *pipe = arg;
    fprintf(stderr, "fermata: %s\n", word(pipe->link.lang, W_LOST));
}

static void on_refused(void *arg, int status)
{
    struct pipe *pipe = arg;
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    fail(pipe, link_trouble(&pipe->link, &arena, &(struct link_answer){.status = status}));
}

static uint64_t seq_of(void *arg)
{
    struct pipe *pipe = arg;
    return pipe->fold.seq;
}

static void chat_pipe_follow(struct pipe *pipe)
{
    static const struct stream_ops ops = {on_event, on_open, on_lost, on_refused, seq_of};
    stream_free(pipe->stream);
    pipe->stream = stream_new(&pipe->link, pipe->client, str_c(pipe->thread_id), &ops, pipe);
}

/* ---- sending ---- */

static void on_sent(void *arg, const struct link_answer *answer)
{
    struct pipe *pipe = arg;
    AUTO(arena_done) struct arena arena;
    struct json *json = NULL;
    arena_init(&arena);
    if (answer->err == ERR_CANCELLED) return;
    if (!link_good(answer) || json_parse(&arena, answer->body, &json, NULL)) {
        fail(pipe, link_trouble(&pipe->link, &arena, answer));
        return;
    }
    str run = json_text(json_get(json, STR("runId")));
    snprintf(pipe->run_id, sizeof pipe->run_id, "%.*s", STR_ARG(run));
    if (settled(pipe)) loop_stop(pipe->loop);
}

static void send_message(struct pipe *pipe, str text)
{
    AUTO(buf_done) struct buf body;
    char run_id[ID_CLIENT_BYTES_MAX + 1];
    chat_new_id("run_", run_id);
    buf_init(&body, RUN_INPUT_BYTES_MAX);
    chat_message(&body, pipe->thread_id, run_id, text, NULL, 0);
    link_send(&pipe->link, pipe->client, "POST", STR("/api/v1/agent/runs"), NULL, buf_str(&body),
              on_sent, pipe);
}

static bool send_answer(struct pipe *pipe, str text)
{
    AUTO(arena_done) struct arena arena;
    const struct fold_open *open = &pipe->fold.open[0];
    str why = STR_EMPTY;
    arena_init(&arena);
    struct card *card = card_new((str){open->json, open->len}, pipe->link.lang);
    bool said = card && card_say(card, text, &why);
    if (said) {
        snprintf(pipe->answered, sizeof pipe->answered, "%s", open->id);
        link_send(&pipe->link, pipe->client, "POST",
                  arena_printf(&arena, "/api/v1/agent/interactions/%s/answer", open->id), NULL,
                  buf_str(&card->body), on_sent, pipe);
    } else {
        fprintf(stderr, "fermata: %.*s\n", STR_ARG(why));
    }
    card_free(card);
    return said;
}

/* ---- what is open ---- */

/* Print it. False: it needs a decision, which no line of input makes. */
static bool show_open(struct pipe *pipe)
{
    AUTO(arena_done) struct arena arena;
    const struct fold_open *open = &pipe->fold.open[0];
    arena_init(&arena);
    struct card *card = card_new((str){open->json, open->len}, pipe->link.lang);
    if (!card) return false;
    bool question = card->kind == CARD_QUESTION;
    str head = card_head(card, &arena), list = card_list(card, &arena);
    if (!pipe->json) {
        fwrite(head.p, 1, head.len, stdout);
        if (list.len) fwrite(list.p, 1, list.len, stdout);
        fflush(stdout);
    }
    static const char *const ways[] = {[CARD_CONFIRM] = "--approve | --reject",
                                       [CARD_LOST] = "--continue | --give-up",
                                       [CARD_UNCERTAIN] = "--retry | --happened | --give-up"};
    if (!question)
        fprintf(stderr, "fermata: %s: fermata answer %s %s\n", word(pipe->link.lang, W_PIPE_ANSWER),
                open->id, ways[card->kind]);
    card_free(card);
    return question;
}

/* ---- input ---- */

/* The next line that says something, or all of the input; false at its end. */
static bool read_text(struct buf *out, bool whole)
{
    for (;;) {
        buf_clear(out);
        int c;
        while ((c = getc(stdin)) != EOF && (whole || c != '\n')) buf_char(out, (char)c);
        if (ui_trim(utf8_valid(buf_str(out)) ? buf_str(out) : STR("x")).len) return true;
        if (c == EOF) return false;
    }
}

/* One line after the other, each with all that follows from it. */
static void talk(struct pipe *pipe, bool once)
{
    AUTO(buf_done) struct buf text;
    buf_init(&text, TERM_LINE_BYTES_MAX);
    while (!pipe->code) {
        bool asks = pipe->fold.open_count > 0;
        if (asks && !show_open(pipe)) {
            pipe->code = EXIT_WAITS;
            return;
        }
        if (!read_text(&text, once && !asks)) {
            if (asks)
                fprintf(stderr, "fermata: %s: fermata answer %s\n",
                        word(pipe->link.lang, W_PIPE_ANSWER), pipe->fold.open[0].id);
            if (asks) pipe->code = EXIT_WAITS;
            return;
        }
        if (text.full || !utf8_valid(buf_str(&text)) || memchr(text.p, 0, text.len)) {
            fail(pipe, text.full ? STR("a line may have 256 KiB") : STR("the input is not UTF-8"));
            return;
        }
        pipe->run_id[0] = pipe->answered[0] = 0;
        pipe->started = true;
        str line = ui_trim(buf_str(&text));
        if (asks && !send_answer(pipe, line)) continue;
        if (!asks) send_message(pipe, line);
        loop_run(pipe->loop);
        if (!pipe->code && pipe->fold.failed) pipe->code = EXIT_FAILED;
    }
}

/* ---- life ---- */

static bool chat_pipe_load(struct pipe *pipe)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str path = arena_printf(&arena, "/api/v1/agent/runs/%s/history?limit=1", pipe->thread_id);
    struct link_answer answer = link_ask(&pipe->link, &arena, "GET", path, STR_EMPTY);
    if (link_good(&answer) && fold_history(&pipe->fold, answer.body)) return true;
    if (answer.status == 404)
        fail(pipe,
             arena_printf(&arena, "%s: %s", word(pipe->link.lang, W_NO_THREAD), pipe->thread_id));
    else
        fail(pipe, link_trouble(&pipe->link, &arena, &answer));
    return false;
}

int chat_pipe(const struct link *link, const struct chat_start *start, bool json, bool once)
{
    struct pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe) abort();
    *pipe = (struct pipe){.link = *link, .json = json};
    memcpy(pipe->thread_id, start->thread_id, sizeof pipe->thread_id);
    pipe->loop = loop_new();
    pipe->client = client_new(pipe->loop);
    fold_init(&pipe->fold, link->lang, on_said, pipe);
    if (!start->old || chat_pipe_load(pipe)) {
        chat_pipe_follow(pipe);
        talk(pipe, once);
    }
    int code = pipe->code;
    stream_free(pipe->stream);
    client_free(pipe->client);
    loop_free(pipe->loop);
    fold_done(&pipe->fold);
    free(pipe);
    return code;
}

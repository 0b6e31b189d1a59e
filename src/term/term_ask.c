/* SPDX-License-Identifier: Apache-2.0
 *
 * One card on a terminal, for a command that asks one thing. Keys are waited for one read at a
 * time; a signal that ends us puts the terminal back (term.c has it at exit, and these signals
 * become an exit here).
 */
#include "term/term_ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "term/term.h"
#include "term/term_text.h"

struct term_asking {
    struct card *card;
    enum card_result result;
};

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    stopped = number;
}

static void on_key(void *arg, struct key_event event)
{
    struct term_asking *asking = arg;
    if (asking->result != CARD_STAYS) return;
    bool leaves = event.key == KEY_CTRL && (event.code == 'c' || event.code == 'd');
    asking->result = leaves ? CARD_LATER : card_key(asking->card, event);
}

static void term_ask_draw(struct term *term, struct area *area, const struct card *card,
                          str printed)
{
    term_size(term);
    area_begin(area, term->columns - 1);
    card_draw(card, area);
    area_cut(area, term->rows - 1);
    term_update(term, printed, area);
}

static bool wait_key(struct keys *keys, struct term_asking *asking)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    char bytes[4096];
    int n = poll(&ready, 1, keys_waiting(keys) ? TERM_ESC_MS : -1);
    if (n < 0) return errno == EINTR && !stopped;
    if (!n) {
        keys_flush(keys, on_key, asking);
        return true;
    }
    ssize_t len = read(STDIN_FILENO, bytes, sizeof bytes);
    if (len > 0) keys_feed(keys, (str){bytes, (size_t)len}, on_key, asking);
    return len > 0 || (len < 0 && errno == EINTR && !stopped);
}

bool term_ask(struct card *card, struct fault *reterr)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGWINCH};
    struct term term;
    AUTO(area_done) struct area area;
    AUTO(arena_done) struct arena arena;
    struct keys keys = {0};
    struct term_asking asking = {card, CARD_STAYS};
    arena_init(&arena);
    area_init(&area);
    if (term_open(&term, reterr)) return false;
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = on_stop}, NULL);
    card_fit(card, term.columns - 1);
    term_ask_draw(&term, &area, card,
                  term_wrap(&arena, card_head(card, &arena), term.columns - 1, TERM_MARGIN));
    if (card->kind != CARD_QUESTION) term_drop_input(); /* nobody has seen it before */
    while (asking.result == CARD_STAYS && !term.broken) {
        bool more = wait_key(&keys, &asking);
        if (stopped == SIGWINCH) stopped = 0, more = true;
        if (!more) break;
        if (asking.result == CARD_STAYS) term_ask_draw(&term, &area, card, STR_EMPTY);
    }
    term_close(&term);
    fault(reterr, ERR_CANCELLED, "nothing was decided");
    return asking.result == CARD_ANSWERS;
}

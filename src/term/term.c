/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal itself: keys one by one, drawn in one write, put back at any end.
 *
 *     what was printed: facts, which stay as they are             scrolls away
 *     ----------------------------------------------------------
 *     the area: what grows, a card, the input line                drawn again, all of it
 *
 * 1. Every update is one write: up to the top of the old area, clear to the end, the new lines, the new
 *    area, the cursor to its place. So nothing flickers, and nothing of the old area stays.
 * 2. Rows of the area are one column shorter than the terminal, so that none of them wraps. When the
 *    terminal became narrower, they did: their number is counted again from their widths.
 * 3. The settings of before are put back by term_close, at exit, and by signals that end us, with calls
 *    that a signal handler may use.
 */
#include "term/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"

/* No const tables, and yet global: an exit handler gets no argument. */
static struct termios before;
static volatile sig_atomic_t changed;

#define PASTE_ON  "\x1b[?2004h"
#define PASTE_OFF "\x1b[?2004l\x1b[?25h\x1b[0m"

static void restore(void)
{
    if (!changed) return;
    changed = 0;
    ssize_t n = write(STDOUT_FILENO, PASTE_OFF, sizeof PASTE_OFF - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void on_fatal(int number)
{
    restore();
    raise(number); /* SA_RESETHAND: this one ends us */
}

static bool change(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    changed = 1;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

bool term_usable(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind && *kind &&
           strcmp(kind, "dumb") != 0;
}

enum err term_open(struct term *term, struct fault *reterr)
{
    static const int fatal[] = {SIGABRT, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const char *plain = getenv("NO_COLOR");
    *term = (struct term){.colors = !plain || !*plain};
    buf_init(&term->out, TERM_WRITE_BYTES_MAX);
    if (tcgetattr(STDIN_FILENO, &before))
        return fault(reterr, ERR_IO, "the terminal cannot be read: %s", strerror(errno));
    atexit(restore);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < COUNT(fatal); i++) sigaction(fatal[i], &action, NULL);
    if (!change()) {
        restore();
        return fault(reterr, ERR_IO, "the terminal cannot be set: %s", strerror(errno));
    }
    ssize_t n = write(STDOUT_FILENO, PASTE_ON, sizeof PASTE_ON - 1);
    (void)n;
    term_size(term);
    return OK;
}

void term_size(struct term *term)
{
    struct winsize size = {0};
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col;
    size_t columns = known ? size.ws_col : 80;
    term->rows = known ? size.ws_row : 24;
    if (columns == term->columns) return;
    term->columns = columns;
    size_t above = 0; /* rows that the old area takes above its cursor, at this width */
    for (size_t i = 0; i < term->drawn && i < term->cursor_row; i++)
        above += term->widths[i] ? (term->widths[i] - 1) / columns : 0;
    term->cursor_row += above + term->cursor_col / columns;
}

/* ---- writing ---- */

static void flush(struct term *term)
{
    struct buf *out = &term->out;
    for (size_t done = 0; done < out->len && !term->broken;) {
        ssize_t n = write(STDOUT_FILENO, out->p + done, out->len - done);
        struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (n > 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            poll(&ready, 1, -1);
        else if (errno != EINTR)
            term->broken = true;
    }
    buf_clear(out);
}

str term_style(const struct term *term, enum style style)
{
    static const str codes[STYLE_COUNT] = {
        [STYLE_PLAIN] = STR("\x1b[0m"),  [STYLE_DIM] = STR("\x1b[2m"),
        [STYLE_BOLD] = STR("\x1b[1m"),   [STYLE_WARN] = STR("\x1b[33m"),
        [STYLE_ERROR] = STR("\x1b[31m"),
    };
    return term->colors ? codes[style] : STR_EMPTY;
}

static void go_to_top(struct term *term)
{
    if (term->cursor_row) buf_printf(&term->out, "\x1b[%zuA", term->cursor_row);
    buf_append(&term->out, STR("\r\x1b[J"));
    term->drawn = term->cursor_row = term->cursor_col = 0;
}

void term_update(struct term *term, str printed, const struct area *area)
{
    buf_append(&term->out, STR("\x1b[?25l"));
    go_to_top(term);
    while (printed.len) { /* in pieces: a conversation may be longer than the buffer */
        size_t len =
            printed.len < TERM_WRITE_BYTES_MAX / 2 ? printed.len : TERM_WRITE_BYTES_MAX / 2;
        buf_append(&term->out, (str){printed.p, len});
        printed = str_drop(printed, len);
        if (printed.len) flush(term);
    }
    for (size_t i = 0; i < area->count; i++) {
        if (i) buf_append(&term->out, STR("\r\n"));
        buf_append(&term->out, term_style(term, area->rows[i].style));
        if (area->rows[i].len) buf_append(&term->out, area_row(area, i));
        if (area->rows[i].style) buf_append(&term->out, term_style(term, STYLE_PLAIN));
        term->widths[i] = area->rows[i].columns;
    }
    term->drawn = area->count;
    if (area->count) { /* the cursor stands behind the last row */
        size_t up = area->count - 1 - area->cursor_row;
        if (up) buf_printf(&term->out, "\x1b[%zuA", up);
        buf_char(&term->out, '\r');
        if (area->cursor_col) buf_printf(&term->out, "\x1b[%zuC", area->cursor_col);
        term->cursor_row = area->cursor_row;
        term->cursor_col = area->cursor_col;
    }
    buf_append(&term->out, STR("\x1b[?25h"));
    flush(term);
}

void term_close(struct term *term)
{
    if (changed) {
        go_to_top(term);
        flush(term);
        restore();
    }
    buf_done(&term->out);
}

void term_suspend(struct term *term)
{
    go_to_top(term);
    flush(term);
    restore();
    raise(SIGSTOP);
    change();
    ssize_t n = write(STDOUT_FILENO, PASTE_ON, sizeof PASTE_ON - 1);
    (void)n;
    term_size(term);
}

void term_drop_input(void)
{
    tcflush(STDIN_FILENO, TCIFLUSH);
}

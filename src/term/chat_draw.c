/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat` on a terminal: what is printed for good, and what stands below it.
 */
#include "term/chat_int.h"
#include "term/term_text.h"
#include "ui/text.h"

static const struct {
    enum style style;
    const char *first, *margin; /* of the first line, and of those that follow */
    bool
        flows; /* long lines are left to the terminal, which keeps them whole when it is copied from */
} looks[SAID_COUNT] = {
    [SAID_USER] = {STYLE_BOLD, "> ", "  ", true},   [SAID_ANSWER] = {STYLE_PLAIN, "", "", true},
    [SAID_CARD] = {STYLE_PLAIN, "  ", "  ", false}, [SAID_TOOL] = {STYLE_DIM, "", "  ", false},
    [SAID_FAILED] = {STYLE_ERROR, "", "  ", false}, [SAID_ASKED] = {STYLE_WARN, "", "", false},
    [SAID_SETTLED] = {STYLE_DIM, "", "  ", false},  [SAID_NOTE] = {STYLE_DIM, "", "  ", false},
    [SAID_ERROR] = {STYLE_ERROR, "", "  ", false},
};

void chat_said(void *arg, enum saying kind, str text)
{
    struct chat *chat = arg;
    struct buf *out = &chat->printed;
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf lines;
    arena_init(&arena);
    buf_init(&lines, TERM_PRINT_BYTES_MAX);
    if (kind == SAID_USER && chat->spoke) buf_char(out, '\n');
    chat->spoke = true;
    for (bool first = true; text.p; first = false) {
        str line = str_split(&text, '\n');
        buf_append(&lines, str_c(first ? looks[kind].first : looks[kind].margin));
        if (line.len) buf_append(&lines, line);
        if (text.p) buf_char(&lines, '\n');
    }
    str shown = lines.len ? buf_str(&lines) : STR_EMPTY;
    buf_append(out, term_style(&chat->term, looks[kind].style));
    buf_append(out, looks[kind].flows
                        ? shown
                        : term_wrap(&arena, shown, chat->term.columns - 1, TERM_MARGIN));
    buf_append(out, term_style(&chat->term, STYLE_PLAIN));
    buf_char(out, '\n');
    loop_defer(chat->loop, &chat->redraw);
}

void chat_note(struct chat *chat, enum saying kind, enum word what)
{
    chat_said(chat, kind, WORD(chat, what));
}

void chat_trouble(struct chat *chat, const struct link_answer *answer)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    chat_said(chat, SAID_ERROR, link_trouble(&chat->link, &arena, answer));
}

static void draw_preview(struct chat *chat, struct arena *arena)
{
    enum { KEPT_ROWS = 8, CHAR_BYTES_MAX = 4 };
    str text = chat->fold.preview.len ? buf_str(&chat->fold.preview) : STR_EMPTY;
    size_t rows = chat->term.rows > 2 * KEPT_ROWS ? chat->term.rows - KEPT_ROWS : KEPT_ROWS;
    size_t bytes = rows * chat->term.columns * CHAR_BYTES_MAX;
    if (text.len > bytes) text = str_drop(text, text.len - bytes);
    while (text.len && ((unsigned char)text.p[0] & 0xc0) == 0x80) text = str_drop(text, 1);
    if (text.len) area_tail(&chat->area, STYLE_PLAIN, term_clean(arena, text, true), rows);
}

static void draw_status(struct chat *chat, struct arena *arena)
{
    struct fold *fold = &chat->fold;
    for (size_t i = 0; i < fold->tool_count && fold->state == RUN_WORKING; i++)
        area_text(&chat->area, STYLE_DIM, arena_printf(arena, "⚙ %s …", fold->tools[i].text));
    if (fold->queued)
        area_text(&chat->area, STYLE_DIM,
                  arena_printf(arena, "%zu × %s", fold->queued, word(chat->link.lang, W_QUEUED)));
    if (chat->uploading) area_text(&chat->area, STYLE_DIM, WORD(chat, W_FILE_SENDING));
    if (chat->lost)
        area_text(&chat->area, STYLE_WARN, WORD(chat, W_LOST));
    else if (fold->state == RUN_WORKING || chat->sending)
        area_text(&chat->area, STYLE_DIM, WORD(chat, chat->stopping ? W_STOPPING : W_WORKING));
}

static void draw_list(struct chat *chat, struct arena *arena)
{
    size_t i = 0, chosen = 0;
    area_text(&chat->area, STYLE_BOLD, WORD(chat, W_THREADS));
    for (const struct json *thread = chat->list->child; thread; thread = thread->next, i++) {
        str title = ui_line(arena, json_text(json_get(thread, STR("title"))), TERM_TITLE_CHARS_MAX);
        str at = json_text(json_get(thread, STR("updatedAt")));
        if (!title.len) title = WORD(chat, W_UNTITLED);
        if (i == chat->list_at) chosen = chat->area.count;
        str row = arena_printf(arena, "%s%zu. %.*s · %s", i == chat->list_at ? "❯ " : "  ", i + 1,
                               STR_ARG(title), chat_age(at, chat->link.lang).text);
        area_text(&chat->area, i == chat->list_at ? STYLE_BOLD : STYLE_PLAIN,
                  term_row(&row, chat->area.columns));
    }
    area_text(&chat->area, STYLE_DIM, WORD(chat, W_HINT_PICK));
    area_cursor(&chat->area, chosen);
}

/* What was put away is named above the input line. */
static void draw_open(struct chat *chat, struct arena *arena)
{
    struct fold *fold = &chat->fold;
    if (!fold->open_count) return;
    enum word message = W_MESSAGE_WAITS; /* what becomes of one, as the server takes it */
    for (size_t i = 0; i < fold->open_count && message != W_MESSAGE_REJECTS; i++)
        if (fold->open[i].kind == CARD_CONFIRM)
            message = W_MESSAGE_REJECTS;
        else if (fold->open[i].kind == CARD_QUESTION)
            message = W_MESSAGE_ANSWERS;
    area_text(&chat->area, STYLE_WARN,
              arena_printf(arena, "%s · %s", word(chat->link.lang, W_OPEN_ONE),
                           word(chat->link.lang, message)));
}

void chat_draw(struct chat *chat)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    area_begin(&chat->area, chat->term.columns - 1);
    draw_preview(chat, &arena);
    draw_status(chat, &arena);
    if (chat->list) {
        draw_list(chat, &arena);
    } else if (chat->card) {
        card_draw(chat->card, &chat->area);
    } else {
        draw_open(chat, &arena);
        if (chat->line.full) area_text(&chat->area, STYLE_WARN, WORD(chat, W_LINE_FULL));
        line_draw(&chat->line, &chat->area, STR("> "));
    }
    area_cut(&chat->area, chat->term.rows > 1 ? chat->term.rows - 1 : 1);
    term_update(&chat->term, chat->printed.len ? buf_str(&chat->printed) : STR_EMPTY, &chat->area);
    buf_clear(&chat->printed);
    chat->shown = chat->fold.asked;
    if (chat->term.broken) loop_stop(chat->loop);
}

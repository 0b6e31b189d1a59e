/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a keyboard, into an input line and onto rows. However they are cut, the same line comes of
 * them: the first byte chooses where to cut. The line is valid UTF-8 with the cursor between characters,
 * and no row is wider than it may be.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "term/line.h"
#include "term/term_text.h"

enum { LINE_BYTES_MAX = 200, COLUMNS = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) abort();
}

static void on_key(void *arg, struct key_event event)
{
    struct line *line = arg;
    check(event.key < KEY_COUNT && (!event.pasted || event.key == KEY_CHAR));
    if (event.key == KEY_ENTER) line_remember(line, line_text(line));
    line_key(line, event);
    str text = line_text(line);
    check(utf8_valid(text) && text.len <= LINE_BYTES_MAX && line->at <= text.len);
    check(line->at == text.len || ((unsigned char)text.p[line->at] & 0xc0) != 0x80);
}

static void read_all(struct line *line, str bytes, size_t piece)
{
    struct keys keys = {0};
    line_init(line, LINE_BYTES_MAX);
    while (bytes.len) {
        size_t len = piece < bytes.len ? piece : bytes.len;
        char *copy = malloc(len);
        check(copy != NULL);
        memcpy(copy, bytes.p, len);
        keys_feed(&keys, (str){copy, len}, on_key, line);
        free(copy);
        bytes = str_drop(bytes, len);
    }
    keys_flush(&keys, on_key, line);
}

static void draw(const struct line *line)
{
    struct area area;
    area_init(&area);
    area_begin(&area, COLUMNS);
    line_draw(line, &area, STR("> "));
    for (size_t i = 0; i < area.count; i++) check(area.rows[i].columns <= COLUMNS);
    check(area.cursor_row < area.count && area.cursor_col <= COLUMNS);
    area_done(&area);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct line whole, cut;
    if (!size) return 0;
    str bytes = {(const char *)data + 1, size - 1};
    read_all(&whole, bytes, SIZE_MAX);
    read_all(&cut, bytes, (size_t)data[0] % 8 + 1);
    check(str_eq(line_text(&whole), line_text(&cut)) && whole.at == cut.at);
    draw(&whole);
    line_done(&whole);
    line_done(&cut);
    return 0;
}

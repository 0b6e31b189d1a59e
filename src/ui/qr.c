/* SPDX-License-Identifier: Apache-2.0
 *
 * QR codes for a terminal and for the page, by libqrencode, which only this file knows.
 *
 * A character of a terminal is about twice as high as it is wide, so one line shows two rows of
 * modules:
 *
 *     upper dark, lower light  ▀        both dark   █
 *     upper light, lower dark  ▄        both light  a space
 *
 * Invariants: 1. what is drawn is black on white by explicit colours, so that a camera reads it on
 * dark and light terminals alike; 2. four light modules stand on each side, as the standard wants.
 */
#include "ui/qr.h"

#include <errno.h>
#include <qrencode.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { MARGIN = 4 };

enum err qr_make(struct arena *arena, str text, struct qr *ret_qr)
{
    if (text.len == 0 || text.len > QR_TEXT_BYTES_MAX) return ERR_INVALID_FIELD;
    /* the smallest version that holds it; a seventh of it may be unreadable */
    QRcode *code = QRcode_encodeData((int)text.len, (const unsigned char *)text.p, 0, QR_ECLEVEL_M);
    if (!code && errno == ENOMEM) abort();
    if (!code) return ERR_INVALID_FIELD;
    size_t size = (size_t)code->width;
    unsigned char *modules = arena_array(arena, size * size, 1);
    for (size_t i = 0; i < size * size; i++) modules[i] = code->data[i] & 1;
    QRcode_free(code);
    *ret_qr = (struct qr){size, modules};
    return OK;
}

bool qr_dark(const struct qr *qr, size_t row, size_t column)
{
    assert(row < qr->size && column < qr->size);
    return qr->modules[row * qr->size + column];
}

/* Counted from the corner of the margin; what lies outside is light. */
static bool dark_at(const struct qr *qr, size_t row, size_t column)
{
    bool inside =
        row >= MARGIN && column >= MARGIN && row < MARGIN + qr->size && column < MARGIN + qr->size;
    return inside && qr_dark(qr, row - MARGIN, column - MARGIN);
}

void qr_terminal(const struct qr *qr, struct buf *out)
{
    static const char *const blocks[] = {" ", "▄", "▀", "█"};
    size_t side = qr->size + 2 * MARGIN;
    for (size_t row = 0; row < side; row += 2) {
        /* 16 and 231 are black and white of the fixed part of the palette */
        buf_append(out, STR("\033[38;5;16;48;5;231m"));
        for (size_t column = 0; column < side; column++) {
            unsigned upper = dark_at(qr, row, column), lower = dark_at(qr, row + 1, column);
            buf_append(out, str_c(blocks[upper << 1 | lower]));
        }
        buf_append(out, STR("\033[0m\n"));
    }
}

void qr_json(const struct qr *qr, struct json_writer *w)
{
    char line[QR_SIDE_MAX];
    assert(qr->size <= sizeof line);
    json_object(w);
    json_member_u64(w, STR("size"), qr->size);
    json_key(w, STR("rows"));
    json_array(w);
    for (size_t row = 0; row < qr->size; row++) {
        for (size_t column = 0; column < qr->size; column++)
            line[column] = qr_dark(qr, row, column) ? '1' : '0';
        json_string(w, (str){line, qr->size});
    }
    json_array_end(w);
    json_object_end(w);
}

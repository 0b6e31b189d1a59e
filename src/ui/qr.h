/* SPDX-License-Identifier: Apache-2.0
 *
 * QR codes: a text as black and white squares, for a terminal or for the page. Pure.
 */
#ifndef UI_QR_H
#define UI_QR_H

#include "base/arena.h"
#include "base/json.h"

struct qr {
    size_t size;                  /* modules on a side: 21 to 177 */
    const unsigned char *modules; /* size * size, row by row; 1 is dark */
};

/* ERR_INVALID_FIELD: there is no text, or it is longer than QR_TEXT_BYTES_MAX. */
enum err qr_make(struct arena *arena, str text, struct qr *ret_qr) MUST_USE;

bool qr_dark(const struct qr *qr, size_t row, size_t column);

/* Lines for a terminal, two rows of modules in each, with the white margin that cameras need. Black
 * on white whatever the terminal's own colours are. */
void qr_terminal(const struct qr *qr, struct buf *out);

/* {"size":21,"rows":["1110...", ...]}, 1 is dark; without a margin. */
void qr_json(const struct qr *qr, struct json_writer *w);

#endif

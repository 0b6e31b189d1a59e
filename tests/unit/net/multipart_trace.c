/* SPDX-License-Identifier: Apache-2.0 */
#include "net/multipart_trace.h"

#include <stdlib.h>
#include <string.h>

/* What a piece borrows is good until the next feed only: give each feed memory of its own. */
static void feed(struct multipart *parser, struct buf *out, str bytes, bool *over)
{
    char *copy = malloc(bytes.len + 1);
    if (!copy) abort();
    memcpy(copy, bytes.p, bytes.len);
    for (str input = {copy, bytes.len}; !*over;) {
        enum multipart_event event = multipart_feed(parser, &input);
        const struct multipart_part *part = &parser->part;
        if (event == MULTIPART_MORE) {
            if (input.len) abort();
            break;
        }
        switch (event) {
        case MULTIPART_PART:
            buf_printf(out, "part \"%.*s\"", STR_ARG(part->name));
            if (part->has_filename) buf_printf(out, " \"%.*s\"", STR_ARG(part->filename));
            buf_printf(out, " %.*s|", STR_ARG(part->type));
            break;
        case MULTIPART_DATA:
            if (!parser->piece.len) abort();
            buf_append(out, parser->piece);
            break;
        case MULTIPART_PART_END:
            buf_printf(out, "|end %.*s\n", STR_ARG(part->name));
            break;
        default:
            buf_printf(out, "refused: %s", parser->reason);
            *over = true;
        }
    }
    free(copy);
}

void multipart_trace(struct buf *out, str boundary, str body, size_t cut)
{
    struct multipart parser;
    bool over = false;
    multipart_init(&parser, boundary);
    if (cut == TRACE_EACH_BYTE) {
        for (size_t i = 0; i < body.len; i++) feed(&parser, out, (str){body.p + i, 1}, &over);
    } else {
        size_t first = cut == TRACE_ONE_PIECE || cut - 1 > body.len ? body.len : cut - 1;
        feed(&parser, out, (str){body.p, first}, &over);
        feed(&parser, out, str_drop(body, first), &over);
    }
    if (!over) buf_append(out, multipart_closed(&parser) ? STR("closed") : STR("open"));
    multipart_done(&parser);
}

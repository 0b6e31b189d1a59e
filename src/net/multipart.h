/* SPDX-License-Identifier: Apache-2.0
 *
 * multipart/form-data, RFC 7578 on RFC 2046, strict. Pure: bytes in, parts and their pieces out.
 *
 * Resumable: feed any split of the bytes and the result is the same, apart from where pieces are
 * cut. Nothing of a part's content is kept; a part's head is, up to MULTIPART_HEAD_BYTES_MAX.
 * Refused, for good: anything before the first boundary or behind the last, a line that begins with
 * the boundary and goes on, a folded or malformed head, a bare CR or LF in one, a part without a
 * name, a part that is multipart itself or encoded, more than MULTIPART_PARTS_MAX parts.
 */
#ifndef NET_MULTIPART_H
#define NET_MULTIPART_H

#include "base/buf.h"
#include "base/limits.h"

enum { MULTIPART_BOUNDARY_BYTES_MAX = 70 };

/* The boundary that a Content-Type names, borrowed from it. ERR_UNSUPPORTED_TYPE: it is not
 * multipart/form-data. ERR_BAD_REQUEST: there is none, two, or one that RFC 2046 does not allow. */
enum err multipart_boundary(str content_type, str *ret_boundary, struct fault *reterr) MUST_USE;

enum multipart_event {
    MULTIPART_MORE,     /* all bytes taken; feed more */
    MULTIPART_PART,     /* a part begins: parser->part */
    MULTIPART_DATA,     /* a piece of it: parser->piece, good until the next feed */
    MULTIPART_PART_END, /* the part was whole */
    MULTIPART_ERROR,    /* refused: parser->reason; the same again from now on */
};

struct multipart_part {
    str name; /* valid UTF-8, not empty */
    bool has_filename;
    str filename; /* as sent, decoded: valid UTF-8, maybe with a path or control characters in it */
    str type;     /* Content-Type as the client says; empty if none */
};

struct multipart {
    /* Results, valid as the events say. */
    struct multipart_part part; /* until MULTIPART_PART_END */
    str piece;
    const char *reason; /* constant text for a person */

    /* State. */
    char delimiter[4 + MULTIPART_BOUNDARY_BYTES_MAX]; /* CR LF "--" boundary */
    size_t delimiter_len;
    size_t matched; /* bytes of the delimiter that the last bytes were */
    uint8_t phase;
    bool fresh; /* no content of the part has come yet */
    unsigned parts;
    size_t line; /* where the line at hand begins in `head` */
    size_t padding;
    struct buf head; /* of the part */
    struct buf text; /* its decoded parameters */
};

void multipart_init(struct multipart *parser, str boundary); /* one that multipart_boundary gave */
void multipart_done(struct multipart *parser);

/* Take bytes from the front of *input until something happened. On return *input is what was not
 * taken. Go on until MULTIPART_MORE. */
enum multipart_event multipart_feed(struct multipart *parser, str *input);

/* Has the last boundary come? Ask when the bytes are over. */
bool multipart_closed(const struct multipart *parser);

#endif

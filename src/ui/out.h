/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON bytes in an arena, up to a limit that may move. An append that would pass the limit adds
 * nothing and sets `over`; whoever wrote then goes back to a length that it remembered. base/buf.h
 * has the same idea on the heap; a card must not leave its arena.
 */
#ifndef UI_OUT_H
#define UI_OUT_H

#include "base/json.h"

struct out {
    struct arena *arena;
    char *p;
    size_t len, cap;
    size_t limit;
    bool over; /* an append was refused */
};

void out_init(struct out *out, struct arena *arena, size_t expected, size_t limit);
void out_clear(struct out *out);
void out_back(struct out *out, size_t len); /* to an earlier length; within the limit again */

void out_raw(struct out *out, str bytes);
void out_char(struct out *out, char c);
void out_u64(struct out *out, uint64_t value);
void out_escaped(struct out *out, str text);              /* the inside of a JSON string */
void out_string(struct out *out, str text);               /* with its quotes */
void out_member(struct out *out, str key, str text);      /* ,"key":"text" */
void out_json(struct out *out, const struct json *value); /* written anew, without spaces */
char out_last(const struct out *out);                     /* 0 if there is none */

static inline str out_str(const struct out *out)
{
    return (str){out->p, out->len};
}

/* The bytes of the longest beginning of text, in whole characters, that takes no more than `room`
 * when escaped. */
size_t out_fitting(str text, size_t room);

#endif

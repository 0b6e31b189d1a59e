/* SPDX-License-Identifier: Apache-2.0
 *
 * The player: gives a sink a turn that is known beforehand, in chunks and at a pace. The models
 * that answer without a network, scripted and demo, are tables and rules in front of it.
 */
#ifndef MODEL_PLAYER_H
#define MODEL_PLAYER_H

#include "base/arena.h"
#include "model/model.h"

enum piece_kind { PIECE_REASONING, PIECE_TEXT, PIECE_CALL };

struct piece {
    enum piece_kind kind;
    str name;  /* of a call's tool */
    str bytes; /* valid UTF-8; only a call's arguments may be empty */
};

/* What is played. The bytes, and `why`, live until the end or the cancel of the call. */
struct play {
    const struct piece *pieces; /* in the order in which they are sent */
    size_t count;
    uint32_t chunk;          /* characters of one delta, at least 1 */
    msec delay_ms;           /* before the first delta */
    msec gap_ms;             /* between two; 0 = no waiting */
    enum model_end end;      /* after the last piece */
    const struct fault *why; /* NULL for MODEL_DONE */
    struct model_usage usage;
    uint32_t round; /* of the request; part of the calls' ids */
};

/* Begin. The arena, if not NULL, is emptied into the call and ends with it: for bytes that only
 * this call needs. */
struct model_call *player_start(struct loop *loop, const struct play *play, struct arena *arena,
                                const struct model_sink *sink, void *arg);

/* model_ops.cancel of both models. */
void player_cancel(struct model_call *call);

/* Tokens as counted when nobody says better: characters, four to a token, rounded up; over the
 * whole request, and over the pieces. */
struct model_usage player_usage(const struct model_request *request, const struct piece *pieces,
                                size_t count);

str player_last_user(const struct model_request *request); /* text; empty if there is none */

/* The first `count` characters of valid UTF-8, or all of it. */
str player_chars(str text, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of codec_anthropic: anthropic.c writes requests, anthropic_read.c reads answers.
 */
#ifndef MODEL_ANTHROPIC_H
#define MODEL_ANTHROPIC_H

#include "base/json_scan.h"
#include "model/codec.h"

/* Of content; at most one is open at a time. */
enum anthropic_block {
    BLOCK_NONE,
    BLOCK_TEXT,
    BLOCK_THINKING,
    BLOCK_REDACTED, /* thoughts that only the provider can read */
    BLOCK_CALL,
    BLOCK_OTHER, /* one that we do not know: the provider's own tools, or one of tomorrow */
};

/* Why the answer ended, as far as it makes a difference. */
enum anthropic_stop { STOP_FINE, STOP_LENGTH, STOP_REFUSED };

/* A decoder. Private to anthropic_read.c; here for its size. */
struct anthropic_decoder {
    struct codec_sink sink;
    struct arena arena; /* of one event */
    bool begun, whole;
    enum anthropic_stop stop;

    enum anthropic_block block, last; /* the open one; the one that was begun last */
    uint64_t index;                   /* of the open one */
    struct codec_half half;           /* of a character that it ends with so far */
    struct codec_said said;           /* the event */
    size_t text_bytes, thought_bytes; /* of the whole answer */

    size_t calls;
    size_t args_bytes;     /* of the newest call */
    struct json_scan args; /* they, as they pass by */
    struct buf input;      /* that came with its start */

    struct buf thinking, signature; /* of the open block */
    struct buf kept;                /* JSON array of the blocks of thoughts; its end is missing
                                       until the answer is whole */

    uint64_t input_tokens, cache_written_tokens, cache_read_tokens, output_tokens;
};

/* The functions of `struct codec` that read. */
void anthropic_begin(void *decoder, const struct codec_sink *sink);
enum codec_verdict anthropic_event(void *decoder, str name, str data, struct fault *why);
enum codec_verdict anthropic_eof(void *decoder, struct fault *why);
void anthropic_result(const void *decoder, struct model_usage *ret_usage, str *ret_provider_data);
void anthropic_done(void *decoder);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of codec_openai: openai.c writes requests, openai_read.c reads answers.
 */
#ifndef MODEL_OPENAI_H
#define MODEL_OPENAI_H

#include "base/json_scan.h"
#include "model/codec.h"

/* A decoder, as codec.h has it. */
struct openai_call;
struct openai_decoder {
    struct codec_sink to;
    struct arena event; /* of one event, then reset */
    struct arena arena; /* of the answer: calls */
    struct openai_call *calls;
    size_t call_count;
    size_t told;                                 /* calls whose beginning the sink has heard */
    struct json_scan args;                       /* of the newest call */
    struct codec_said said;                      /* the event */
    struct codec_half text_half, reasoning_half; /* characters that came half */
    size_t text_bytes, reasoning_bytes;
    struct buf reasoning; /* full: too long to be kept */
    bool reasoning_short; /* it came as `reasoning`, not as `reasoning_content` */
    struct buf kept;      /* provider_data */
    struct model_usage usage;
    bool finished; /* a finish_reason was there */
    bool limited;  /* it said that the limit of tokens was reached */
};

void openai_begin(void *decoder, const struct codec_sink *sink);
enum codec_verdict openai_event(void *decoder, str name, str data, struct fault *why);
enum codec_verdict openai_eof(void *decoder, struct fault *why);
void openai_result(const void *decoder, struct model_usage *ret_usage, str *ret_provider_data);
void openai_done(void *decoder);

/* What an error says: {"error": {"message"}}, {"error": "text"}, {"message"}, {"detail"}. Empty:
 * nothing. */
str openai_error_words(const struct json *document);

#endif

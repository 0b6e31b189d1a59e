/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between model providers: how a request is written and how the events of its answer
 * are read. Pure: no I/O, no clock. provider.c does the rest once for all of them.
 *
 * Answers are streams of server-sent events. A decoder is fed whole events, in order, and tells the
 * sink what they hold; its verdict says whether the answer is whole. Nothing short of the provider's
 * own end mark makes it whole.
 */
#ifndef MODEL_CODEC_H
#define MODEL_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/model.h"

struct client_header;
struct json;

enum codec_verdict {
    CODEC_MORE,   /* go on */
    CODEC_WHOLE,  /* the end mark was there: nothing after it counts */
    CODEC_AGAIN,  /* the provider broke off (overloaded, an error in mid-stream, nonsense): worth
                     another attempt */
    CODEC_FAILED, /* refused for good: the content filter, a request that it cannot take */
};

/* What a decoder tells; never more than limits.h allows, past which its verdict is CODEC_FAILED. */
struct codec_sink {
    const struct model_sink *sink; /* on_end is not called by decoders */
    void *arg;
};

struct codec {
    const char *provider; /* "openai" */
    const char *path;     /* behind base_url: "/chat/completions" */

    /* Header lines beside Content-Type and Accept. Values in the arena. */
    size_t (*headers)(struct arena *arena, const struct model_http_options *options,
                      struct client_header *ret_headers, size_t max);

    /* The body. Names of tools in the request are such as the provider takes: provider.c has turned
     * them, in `tools` and in the messages' tool_calls. */
    void (*write)(struct buf *out, struct arena *arena, const struct model_http_options *options,
                  const struct model_request *request);

    /* A decoder for one answer. */
    size_t decoder_bytes;
    void (*begin)(void *decoder, const struct codec_sink *sink);
    enum codec_verdict (*event)(void *decoder, str name, str data, struct fault *why);
    /* The stream has ended as HTTP says, without an end mark: CODEC_WHOLE if the answer can miss
     * nothing but that mark, else CODEC_AGAIN. */
    enum codec_verdict (*eof)(void *decoder, struct fault *why);
    /* After CODEC_WHOLE. The text lives as long as the decoder. */
    void (*result)(const void *decoder, struct model_usage *ret_usage, str *ret_provider_data);
    void (*done)(void *decoder);

    /* The body of an answer that is no 2xx: what it says, for people, without credentials; empty if
     * it says nothing. In the arena. */
    str (*error_text)(struct arena *arena, str body);
};

extern const struct codec codec_openai, codec_anthropic;

/* Providers take names of [A-Za-z0-9_-], at most 64 bytes; ours may have a dot ("files.read"). The
 * name as providers see it, in the arena; the same bytes if it is fine. Different names of one request
 * may not become one: provider.c checks that and maps the provider's word back before the sink hears
 * it. */
str codec_name(struct arena *arena, str name);

/* Id and name of a call as the provider says them: whatever it sends, facts and rows have to hold it. An
 * id that is too long is replaced by its hash, since it only has to be another for each call; a name is
 * cut at a character, and means no tool then. In the arena, or the same bytes. */
str codec_call_id(struct arena *arena, str id);
str codec_call_name(str name);

/* json_parse for what a provider says: an escape that is half of a character (a lone surrogate) reads
 * as U+FFFD instead of making the whole text unreadable. */
enum err codec_json(struct arena *arena, str text, struct json **ret_json) MUST_USE;

/* A text that comes in pieces, some of which may end with half of a character: one for each such
 * text, zeroed. */
struct codec_half {
    uint16_t high; /* the first half, held until its other one comes; 0: none */
};

/* What one document says, for codec_piece: the bytes as they came, and as they were read. */
struct codec_said {
    const char *came, *read;
};

/* codec_json, where pieces are to be put together again. */
enum err codec_document(struct arena *arena, str text, struct json **ret_json,
                        struct codec_said *ret_said) MUST_USE;

/* The text of a string of that document, which is the next piece of a longer one: with the character
 * whose first half came before, without the half that it ends with. What is no string says nothing,
 * and nothing is over with it. In the arena, or the string's own. */
str codec_piece(struct arena *arena, const struct codec_said *said, const struct json *string,
                struct codec_half *half);

/* No more pieces come: U+FFFD if one is missing, else empty. */
str codec_piece_end(struct codec_half *half);

/* A model behind any codec; model_openai and model_anthropic are this one with theirs. */
enum err model_http(struct client *client, const struct codec *codec,
                    const struct model_http_options *options, struct model *ret_model,
                    struct fault *reterr) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam to models: start a call, get its pieces, get exactly one end. Everything on the loop
 * thread; no callback comes from inside model_start, and none after model_cancel.
 *
 * A model retries nothing by itself: the end says whether trying again makes sense, and the shell
 * decides.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/err.h"
#include "base/str.h"

struct client;
struct loop;
struct model_call;

/* A picture that goes with a message. Files of other kinds are told in its text. */
struct model_image {
    str mime; /* image/png, image/jpeg, image/gif, image/webp */
    str filename;
    str bytes;
};

struct model_message {
    str role; /* user, assistant, tool, system */
    str text;
    str tool_calls;                   /* JSON array of an assistant's calls, or empty */
    str tool_call_id;                 /* of a tool's result */
    const struct model_image *images; /* of a user's message; only if the model takes them */
    size_t image_count;
    bool along;        /* of a user's: only files that came with an answer; nothing is asked here */
    str provider_data; /* of an assistant's: what this very model gave along with it; or empty */
};

/* Everything borrowed until model_start returns. */
struct model_request {
    str system;
    const struct model_message *messages;
    size_t count;
    str tools;      /* JSON array of {name, description, parameters}; empty: none */
    str locale;     /* "zh-CN", "en" */
    uint32_t round; /* which model call of this run it is, from 1; a repeated attempt has the same
                       number */
};

struct model_usage {
    uint64_t input_tokens, output_tokens;
};

enum model_end {
    MODEL_DONE,   /* whole: text, calls, or both */
    MODEL_AGAIN,  /* gone or overloaded (connect, time-out, 408, 429, 5xx, cut): worth another
                     attempt */
    MODEL_FAILED, /* refused for good: wrong key, bad request */
};

/* How a call ended. Borrowed until on_end returns. */
struct model_ending {
    enum model_end end;
    struct model_usage usage; /* zero unless MODEL_DONE */
    str provider_data;   /* of MODEL_DONE: JSON to be kept with the message, and to be given back
                                 to this provider and model alone; empty: none */
    msec retry_after_ms; /* of MODEL_AGAIN: so long the provider wants to be left alone; 0: it
                                 does not say */
    const struct fault *why; /* NULL for MODEL_DONE; its text is for people, without credentials */
};

struct model_sink {
    void (*on_text)(void *arg, str delta);      /* whole UTF-8 characters, at least one */
    void (*on_reasoning)(void *arg, str delta); /* likewise */
    /* Call number `index` of this turn begins. */
    void (*on_call)(void *arg, size_t index, str provider_id, str name);
    void (*on_args)(void *arg, size_t index, str delta);
    void (*on_end)(void *arg, const struct model_ending *ending); /* last: the call is gone then */
};

struct model_ops {
    struct model_call *(*start)(void *model, const struct model_request *request,
                                const struct model_sink *sink, void *arg);
    void (*cancel)(struct model_call *call);
    void (*free)(void *model);
};

/* What tokens cost: millionths of the currency for a million tokens, which is millionths of
 * millionths (pico) for each. */
struct model_price {
    uint64_t input, output;
    char currency[4]; /* "USD"; empty: no price is known */
};

/* A model as an agent has it. */
struct model {
    const struct model_ops *ops;
    void *self;
    const char *provider; /* "demo", "scripted", "openai", "anthropic" */
    const char *name;     /* what facts call it: "demo", "qwen3" */
    bool images;          /* it can be shown pictures */
    uint32_t window;      /* tokens of a request and its answer together; 0: not known */
    uint32_t max_output;  /* tokens of an answer that a request asks for; 0: the provider decides */
    msec retry_ms;        /* before the second attempt; doubles */
    struct model_price price;
};

static inline struct model_call *model_start(const struct model *model,
                                             const struct model_request *request,
                                             const struct model_sink *sink, void *arg)
{
    return model->ops->start(model->self, request, sink, arg);
}

static inline void model_cancel(const struct model *model, struct model_call *call)
{
    model->ops->cancel(call);
}

/* After the last of its calls has ended or was cancelled. */
static inline void model_free(const struct model *model)
{
    model->ops->free(model->self);
}

/* The built-in one: a script of ours (demo.script), zh and en, says that it is a demo. */
void model_demo(struct loop *loop, struct model *ret_model);

/* What people may say first to a model that plays a script; empty behind the last one. */
str model_starter(const struct model *model, size_t index, bool chinese);

/* Turns from a file of JSON lines (docs/SCRIPT.md). Every request is appended to the file `log`, if
 * that is not NULL, before its answer starts; a request that cannot be written there fails.
 * ERR_CONFIG names the file, and the line of a script. */
enum err model_scripted(struct loop *loop, const char *path, const char *log,
                        struct model *ret_model, struct fault *reterr) MUST_USE;

/* A model behind HTTP: codec.h has what differs between providers. */
struct model_http_options {
    str base_url; /* "https://api.openai.com/v1"; of anthropic without /v1 */
    str name;     /* of the model */
    str api_key;  /* empty: none is sent */
    uint32_t max_output;
    bool images;
    msec connect_ms, first_byte_ms, idle_ms; /* 0: the client's own */
};
/* Everything is copied. The client outlives the model. Fills ops, self, provider, name, images and
 * max_output. ERR_INVALID_FIELD names the option. */
enum err model_openai(struct client *client, const struct model_http_options *options,
                      struct model *ret_model, struct fault *reterr) MUST_USE;
enum err model_anthropic(struct client *client, const struct model_http_options *options,
                         struct model *ret_model, struct fault *reterr) MUST_USE;

#endif

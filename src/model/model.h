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
    bool along; /* of a user's: only files that came with an answer; nothing is asked here */
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

struct model_sink {
    void (*on_text)(void *arg, str delta);      /* whole UTF-8 characters, at least one */
    void (*on_reasoning)(void *arg, str delta); /* likewise */
    /* Call number `index` of this turn begins. */
    void (*on_call)(void *arg, size_t index, str provider_id, str name);
    void (*on_args)(void *arg, size_t index, str delta);
    /* Last: the call is gone when it returns. why is NULL for MODEL_DONE; its text is for people
     * and holds no credentials. usage is zero unless MODEL_DONE. */
    void (*on_end)(void *arg, enum model_end end, const struct model_usage *usage,
                   const struct fault *why);
};

struct model_ops {
    struct model_call *(*start)(void *model, const struct model_request *request,
                                const struct model_sink *sink, void *arg);
    void (*cancel)(struct model_call *call);
    void (*free)(void *model);
};

/* A model as an agent has it. */
struct model {
    const struct model_ops *ops;
    void *self;
    const char *name; /* what facts call it: "demo" */
    bool images;      /* it can be shown pictures */
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

/* The built-in one: rule-driven, zh and en, says that it is a demo. */
void model_demo(struct loop *loop, struct model *ret_model);

/* Turns from a file of JSON lines (docs/SCRIPT.md). Every request is appended to the file `log`, if
 * that is not NULL, before its answer starts; a request that cannot be written there fails.
 * ERR_CONFIG names the file, and the line of a script. */
enum err model_scripted(struct loop *loop, const char *path, const char *log,
                        struct model *ret_model, struct fault *reterr) MUST_USE;

#endif

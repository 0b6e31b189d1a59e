/* SPDX-License-Identifier: Apache-2.0
 *
 * RunAgentInput, decoded. Pure. Unknown fields are ignored, and null is an absent one; of the
 * messages only the trailing ones of the user and of tools count, for the client's history is never
 * trusted over ours.
 */
#ifndef THREAD_RUN_INPUT_H
#define THREAD_RUN_INPUT_H

#include "thread/parts.h"

/* A trailing message that is not the user's. If a client's word counted it would be a result, or an
 * approval; it does only as the result of a call that waits for the client (claims.h). */
struct claim {
    size_t index;    /* in `messages`, for its path */
    str id, call_id; /* each may be empty */
    bool tool;       /* else the assistant's */
    str text;        /* of a tool message: its words, else its error */
    bool failed;     /* it has an error */
};

/* An entry of `resume`. */
struct resume_entry {
    str interrupt_id;           /* each once */
    bool cancelled;             /* else resolved */
    const struct json *payload; /* NULL: none */
};

struct run_input {
    str thread_id; /* the client's, if valid; else empty */
    str run_id;    /* likewise */
    str agent;     /* empty: the default one */
    struct message
        *messages; /* id, role, content, plain; oldest first; id empty if the client gave none */
    struct parts *parts; /* of each of them; where there are some, content is for parts_take */
    size_t message_count;
    size_t data_count;    /* files whose bytes came along */
    struct claim *claims; /* at most RUN_MESSAGES_MAX */
    size_t claim_count;
    struct resume_entry *resume; /* at most RESUME_ENTRIES_MAX */
    size_t resume_count;
    bool versioned;  /* it names a protocolVersion: an AG-UI client from 1.0 on */
    const str *ids;  /* of all messages but activities, in their order, empty ones too */
    size_t id_count; /* 0 if there are more than AGUI_IDS_MAX */
    str leg;         /* JSON: state, tools, context, forwardedProps as given; {} if none is */
};

/* ERR_INVALID_FIELD names the field by its path. Everything borrows from the body or lives in the
 * arena. `home` is where our own attachments are. */
enum err run_input_parse(struct arena *arena, const struct json *body,
                         const struct parts_home *home, struct run_input *ret_input,
                         struct fault *reterr) MUST_USE;

/* One message of a person, from where there is no RunAgentInput around it. An id that is not valid is
 * none, as there. */
struct lone_message {
    str thread_id, run_id, id;
    str agent;                  /* may be empty */
    const struct json *content; /* as a message has it: words, or a list of parts; or NULL: */
    str words;
    const struct sent_file *files; /* whose bytes stay until the input is used */
    size_t file_count;
};

/* The same for it: messages[0] in refusals. */
enum err run_input_of_message(struct arena *arena, const struct lone_message *lone,
                              const struct parts_home *home, struct run_input *ret_input,
                              struct fault *reterr) MUST_USE;

/* A title cut from a message: its first line, at most TITLE_CHARS_MAX characters. */
str title_from(struct arena *arena, str plain);

#endif

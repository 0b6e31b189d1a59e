/* SPDX-License-Identifier: Apache-2.0
 *
 * Content that is a list of parts: words, and files that are named, sent along, or elsewhere.
 *
 *     {"type":"text","text"}
 *     {"type":"binary","mimeType","id"|"data"|"url","filename"?}
 *     {"type":"image"|"audio"|"video"|"document","source":{"type":"data"|"url","value","mimeType"}}
 *
 * A file is one of our attachments (by its id, or by an address of ours), bytes inside the request
 * (base64), or an address elsewhere, which is never fetched. Parsing is pure; what the parts become
 * is made inside the job that stores the message, for only the rows say whose a file is.
 */
#ifndef THREAD_PARTS_H
#define THREAD_PARTS_H

#include "base/json.h"
#include "store/table/attachments.h"
#include "store/table/conversation.h"

enum part_kind {
    PART_TEXT,
    PART_OWN,    /* one of our attachments */
    PART_DATA,   /* its bytes are in the request */
    PART_FOREIGN /* somewhere else */
};

struct part {
    enum part_kind kind;
    str type; /* as the client calls it */
    str text; /* of words: the text, and the same as JSON */
    str text_json;
    str id;                          /* of an attachment */
    str data;                        /* not looked at yet: base64, */
    bool decoded;                    /* or the bytes themselves */
    str url;                         /* elsewhere */
    str mime;                        /* as the client says; may be empty unless there is data */
    str filename;                    /* likewise, made safe; may be empty */
    const struct attachment *stored; /* of data: what it has become; set before parts_take */
};

struct parts {
    struct part *rows;
    size_t count; /* 0: the content is no list */
    size_t files; /* of them that are no words */
    size_t index; /* of the message in the request, for paths */
};

/* What an address of ours begins with, for parts that name an attachment by it. */
struct parts_home {
    str origin; /* of the public URL; may be empty */
    str prefix; /* likewise */
    str host;   /* that the client called us by; may be empty */
};

enum { PART_PATH_BYTES = 64 };
/* "messages[0].content[1]" */
void part_path(const struct parts *parts, size_t at, char ret_path[static PART_PATH_BYTES]);

/* ERR_INVALID_FIELD names the part. Everything borrows from the list or lives in the arena. */
enum err parts_parse(struct arena *arena, const struct json *list, size_t index,
                     const struct parts_home *home, struct parts *ret_parts, struct fault *reterr)
    MUST_USE;

/* A file whose bytes are here, as a chat gives it. */
struct sent_file {
    str name; /* may be empty */
    str mime; /* as the sender says; empty: nothing is known */
    str bytes;
};

/* Words, unless they are empty, and files; at least one. They are those of messages[0]. */
enum err parts_of_files(struct arena *arena, str words, const struct sent_file *files, size_t count,
                        struct parts *ret_parts, struct fault *reterr) MUST_USE;

str parts_plain(struct arena *arena, const struct parts *parts); /* its words, joined */

/* The id in an address of one of our attachments, whatever its signature; empty if it is none. */
str parts_own_id(const struct parts_home *home, str url);

/* Inside a job: content and attachments of a message of the thread, from the rows of its owner's
 * attachments, which the thread has from then on. ERR_INVALID_FIELD names the part whose attachment
 * is not there, or another's. */
enum err parts_take(struct db *db, struct arena *arena, const struct parts *parts,
                    const struct thread *thread, struct message *message, struct fault *reterr)
    MUST_USE;

/* Standard base64 with its padding, strictly. `out` has room for 3 bytes for each 4 of the text, and
 * may be the text itself. */
bool parts_base64(str text, unsigned char *out, size_t *ret_len);

#endif

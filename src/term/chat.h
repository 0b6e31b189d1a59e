/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata chat`: a conversation on a terminal (chat_tty.c), or over pipes (chat_pipe.c). What both need.
 */
#ifndef TERM_CHAT_H
#define TERM_CHAT_H

#include "term/chat_fold.h"
#include "term/link.h"

struct chat_start {
    char thread_id[ID_CLIENT_BYTES_MAX + 1];
    bool old; /* it exists: its history is shown first */
};

int chat_tty(const struct link *link, const struct chat_start *start);
int chat_pipe(const struct link *link, const struct chat_start *start, bool json, bool once);

void chat_new_id(const char *prefix,
                 char out[static ID_CLIENT_BYTES_MAX + 1]); /* "run_" and 26 more */

struct chat_file {
    char id[ID_CLIENT_BYTES_MAX + 1];
};

/* The body of POST /runs: a message, and files that were sent before it. */
void chat_message(struct buf *out, const char *thread_id, const char *run_id, str text,
                  const struct chat_file *files, size_t file_count);

/* A file as the body of POST /attachments; *ret_type (at least CHAT_TYPE_BYTES) is its content type. On
 * failure *ret_why says why, in the language. */
enum { CHAT_TYPE_BYTES = 100 };
bool chat_upload(struct buf *out, const char *thread_id, const char *path, enum lang lang,
                 char ret_type[static CHAT_TYPE_BYTES], char ret_why[static 256]);

/* "5 min ago" of a time as the server writes it; empty if it is none. */
struct chat_age {
    char text[32];
};
struct chat_age chat_age(str at, enum lang lang);

#endif

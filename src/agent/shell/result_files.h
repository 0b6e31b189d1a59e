/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a call's result brings along, on their way into object storage, before the commit of the
 * result. That commit makes the rows: an object whose row never comes is found by the sweeper. Storage
 * that fails or hangs loses files, never the result: after a bounded time it is over, and the lines for
 * the model say which could not be kept. On the loop thread.
 */
#ifndef AGENT_SHELL_RESULT_FILES_H
#define AGENT_SHELL_RESULT_FILES_H

#include "base/arena.h"
#include "store/table/attachments.h"
#include "tool/tool.h"

struct blobs;
struct loop;
struct result_files;

/* What a file is, by its bytes, and a name that is safe to show. */
struct file_seen {
    char mime[128], filename[256];
    uint32_t width, height; /* of a picture; 0: none, or not known */
};
/* On a pool thread. An error: it is not taken. */
typedef enum err file_look(str bytes, str filename, struct file_seen *ret_seen);

struct result_files_options {
    struct loop *loop;
    struct blobs *blobs;
    file_look *look;
    void (*on_over)(void *arg); /* never from inside a function below */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
};

/* The files are copied. */
struct result_files *result_files_new(const struct result_files_options *options,
                                      const struct tool_file *files, size_t count);
void result_files_forget(struct result_files *result_files); /* NULL is fine */

bool result_files_over(const struct result_files *result_files);
/* What was put long ago might be swept before its row is there: then it is to be put again. */
bool result_files_stale(const struct result_files *result_files);
void result_files_again(struct result_files *result_files); /* it is stale */

/* Once it is over: the rows of what is kept, in the arena, without owner, thread and time; their texts
 * stay here. */
size_t result_files_rows(const struct result_files *result_files, struct arena *arena,
                         struct attachment **ret_rows);
/* A line for each file, "[file: a.png, image/png, 67 bytes]", with line ends between them. */
str result_files_lines(const struct result_files *result_files, struct arena *arena, str locale);

#endif

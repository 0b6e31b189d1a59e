/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a call's result brings along, on their way into object storage, before the commit of the
 * result. That commit makes the rows: an object whose row never comes is found by the sweeper. Storage
 * that fails or hangs loses files, never the result: after a bounded time it is over, and the lines for
 * the model say which could not be kept. On the loop thread.
 */
#ifndef AGENT_LUGGAGE_H
#define AGENT_LUGGAGE_H

#include "base/arena.h"
#include "store/attachments.h"
#include "tool/tool.h"

struct blobs;
struct loop;
struct luggage;

/* What a file is, by its bytes, and a name that is safe to show. */
struct file_seen {
    char mime[128], filename[256];
    uint32_t width, height; /* of a picture; 0: none, or not known */
};
/* On a pool thread. An error: it is not taken. */
typedef enum err file_look(str bytes, str filename, struct file_seen *ret_seen);

struct luggage_options {
    struct loop *loop;
    struct blobs *blobs;
    file_look *look;
    void (*on_over)(void *arg); /* never from inside a function below */
    void (*on_trouble)(void *arg, const char *what, enum err e);
    void *arg;
};

/* The files are copied. */
struct luggage *luggage_new(const struct luggage_options *options, const struct tool_file *files,
                            size_t count);
void luggage_forget(struct luggage *luggage); /* NULL is fine */

bool luggage_over(const struct luggage *luggage);
/* What was put long ago might be swept before its row is there: then it is to be put again. */
bool luggage_stale(const struct luggage *luggage);
void luggage_again(struct luggage *luggage); /* it is stale */

/* Once it is over: the rows of what is kept, in the arena, without owner, thread and time; their texts
 * stay here. */
size_t luggage_rows(const struct luggage *luggage, struct arena *arena,
                    struct attachment **ret_rows);
/* A line for each file, "[file: a.png, image/png, 67 bytes]", with line ends between them. */
str luggage_lines(const struct luggage *luggage, struct arena *arena, str locale);

#endif

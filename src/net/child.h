/* SPDX-License-Identifier: Apache-2.0
 *
 * A child process with three pipes, on the loop: the only place that starts programs.
 *
 * It runs in a process group of its own, so that a signal reaches what it starts itself (npx starts
 * a shell that starts the server), and Ctrl-C in a terminal reaches us alone. It has no descriptor of
 * ours but its three pipes and one that ties its life to ours: when this process ends, however that
 * happens, the kernel kills the group. What is left of the group when the child itself has ended is
 * killed as well.
 *
 * The loop's thread must be one that lives as long as the process, which must ignore SIGPIPE.
 */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include "base/err.h"
#include "base/str.h"

struct child;
struct loop;
struct wall;

enum child_stream { CHILD_OUT, CHILD_ERR, CHILD_STREAMS };

/* Never from inside a function below, and none after child_free, which may be called here. */
struct child_ops {
    void (*on_start)(void *arg); /* the program runs; before any output of it */
    void (*on_output)(void *arg, enum child_stream stream, str bytes); /* borrowed */
    /* The program closed its input or its standard output: there is nobody to talk to. Once, and only
     * while it runs. */
    void (*on_hangup)(void *arg);
    /* The program has ended, or could not be started; `why` says so in words. Last, and once: all its
     * output has come before. */
    void (*on_end)(void *arg, const struct fault *why);
};

struct child_options {
    const str *command; /* program and arguments; a name without a slash is looked up in PATH of
                           `env`; count is at least 1 */
    size_t command_count;
    const str *env; /* "NAME=value", the whole environment */
    size_t env_count;
    size_t input_bytes_max; /* that wait for the child to read them */
    struct wall *wall;      /* that it lives behind, outlives it; NULL: it is one of ours */
};

/* Everything is copied; ops must outlive the child. Never fails here: failure is an on_end. */
struct child *child_new(struct loop *loop, const struct child_options *options,
                        const struct child_ops *ops, void *arg);

/* Write to its input, now or when it reads. ERR_TOO_LARGE: more would wait than may; ERR_CANCELLED: its
 * input is closed. Then nothing of `bytes` is written. */
enum err child_write(struct child *child, str bytes) MUST_USE;

/* Bytes of child_write that have left us: from then on the child may have seen them. */
uint64_t child_taken(const struct child *child);

/* End it: its input is closed behind what still waits, SIGTERM after `patience`, SIGKILL after as long
 * again; 0: SIGKILL at once. on_end tells. */
void child_stop(struct child *child, msec patience);

/* Now: killed, no callback comes any more. NULL is fine. */
void child_free(struct child *child);

int child_pid(const struct child *child); /* 0: not started, or ended */

#endif

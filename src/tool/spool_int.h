/* SPDX-License-Identifier: Apache-2.0
 *
 * What spool.c and spool_stream.c share.
 */
#ifndef TOOL_SPOOL_INT_H
#define TOOL_SPOOL_INT_H

#include "tool/spool.h"

struct spool {
    struct loop *loop;
    char *path; /* of the folder */
    int folder;
    struct spool_job *jobs;       /* that somebody waits for, or may */
    struct spool_stream *streams; /* likewise */
    uint64_t next;                /* number of the next unfinished file */
};

bool spool_name_valid(str name);

/* The error that errno says, with its sentence. */
enum err spool_failed(struct fault *reterr, const char *what, const char *name);

/* The whole file `unfinished` becomes `name`, on disk; if not, neither of them is left. */
enum err spool_rename(int folder, const char *unfinished, const char *name, struct fault *reterr);

/* The streams go on without the spool, and nobody is told. */
void spool_streams_leave(struct spool *spool);

#endif

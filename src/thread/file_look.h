/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file is that a tool brought along: the same looks that an upload gets.
 */
#ifndef THREAD_FILE_LOOK_H
#define THREAD_FILE_LOOK_H

#include "agent/shell/result_files.h"

/* ERR_TOO_LARGE: a picture with too many points. */
file_look look_at_file;

#endif

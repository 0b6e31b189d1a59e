/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file is that a tool brought along: the same looks that an upload gets.
 */
#ifndef APP_ATTACHMENT_FILE_LOOK_H
#define APP_ATTACHMENT_FILE_LOOK_H

#include "agent/luggage.h"

/* ERR_TOO_LARGE: a picture with too many points. */
file_look look_at_file;

#endif

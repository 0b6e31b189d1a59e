/* SPDX-License-Identifier: Apache-2.0
 *
 * Force-included into every file: functions that lose bounds, hide failure or share static state do
 * not compile. Use buf_printf or snprintf, str_split, str_to_u64, clock_rfc3339.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* The headers that declare them come first, so that only our own uses are caught. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok strtok_r
#pragma GCC poison atoi atol atoll atof gmtime localtime asctime ctime

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The few macros every file may use.
 *
 * AUTO(fn) runs fn(&variable) when the variable leaves its scope, so a function has no cleanup
 * labels. TAKE(p) moves a pointer out of such a variable. MUST_USE makes ignoring a result an
 * error.
 */
#ifndef BASE_DEF_H
#define BASE_DEF_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTO(fn)                   __attribute__((cleanup(fn)))
#define MUST_USE                   __attribute__((warn_unused_result))
#define PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

#define TAKE(p)                     \
    __extension__({                 \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The struct that holds `member`, from a pointer to that member. */
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Milliseconds: a point on a clock, or a span. */
typedef int64_t msec;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of objects: zeroed, given back with free(). There is always enough: out of memory aborts,
 * because limits on input prevent it.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/str.h"

#define MEM_NEW __attribute__((malloc, returns_nonnull, warn_unused_result))

MEM_NEW void *mem_new(size_t size);
MEM_NEW void *mem_array(size_t count, size_t size);
MEM_NEW char *mem_str(str s); /* a copy, with a NUL behind it */

#endif

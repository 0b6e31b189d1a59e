/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of objects, or the end of the process.
 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void *mem_array(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p) abort();
    return p;
}

void *mem_new(size_t size)
{
    return mem_array(1, size);
}

char *mem_str(str s)
{
    char *copy = mem_new(s.len + 1);
    if (s.len) memcpy(copy, s.p, s.len);
    return copy;
}

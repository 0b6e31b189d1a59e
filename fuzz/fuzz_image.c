/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a picture: no size is 0, and a size does not change when more bytes are known.
 */
#include "thread/file_image_size.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_size whole = {0}, part = {0};
    bool found = image_size((str){(const char *)data, size}, &whole);
    if (found && (!whole.width || !whole.height)) abort();
    if (!image_size((str){(const char *)data, size / 2}, &part)) return 0;
    if (!found || part.width != whole.width || part.height != whole.height) abort();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * How large a picture says it is: PNG, JPEG, GIF, WebP, BMP. Pure; nothing is decoded, and any bytes
 * may be given.
 */
#ifndef THREAD_FILE_IMAGE_SIZE_H
#define THREAD_FILE_IMAGE_SIZE_H

#include "base/str.h"

struct image_size {
    uint32_t width, height;
};

/* From the first bytes of a file. False: no such picture, or its size stands further behind, or it
 * says 0. A JPEG with much in front of its picture needs the most: some hundred KiB. */
bool image_size(str bytes, struct image_size *ret_size);

#endif

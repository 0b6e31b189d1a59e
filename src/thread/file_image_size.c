/* SPDX-License-Identifier: Apache-2.0
 *
 * The size that a picture says it has; pure. Each kind has a reader that looks at fixed places
 * behind its mark; only JPEG is a list of segments that has to be walked:
 *
 *     FF D8 | FF E1 len ... | FF DB len ... | FF C0 len precision height width ...
 *
 * Invariants:
 * 1. Every byte is read through `at`, which gives 0 beyond the end, so no length in the file can lead
 *    outside. A size of 0 is no size, so a file that is cut short has none.
 * 2. The walk moves on by at least two bytes with each segment.
 *
 * To add a kind: a row in `kinds` and its reader.
 */
#include "thread/file_image_size.h"

static uint32_t at(str bytes, size_t index)
{
    return index < bytes.len ? (unsigned char)bytes.p[index] : 0;
}

static uint32_t be16(str bytes, size_t index)
{
    return at(bytes, index) << 8 | at(bytes, index + 1);
}

static uint32_t be32(str bytes, size_t index)
{
    return be16(bytes, index) << 16 | be16(bytes, index + 2);
}

static uint32_t le16(str bytes, size_t index)
{
    return at(bytes, index) | at(bytes, index + 1) << 8;
}

static uint32_t le24(str bytes, size_t index)
{
    return le16(bytes, index) | at(bytes, index + 2) << 16;
}

static uint32_t le32(str bytes, size_t index)
{
    return le16(bytes, index) | le16(bytes, index + 2) << 16;
}

static bool file_image_size_has(str bytes, size_t index, str mark)
{
    return bytes.len >= index && str_starts(str_drop(bytes, index), mark);
}

static struct image_size png(str bytes)
{
    if (!file_image_size_has(bytes, 8, STR("\0\0\0\rIHDR")) || bytes.len < 24)
        return (struct image_size){0};
    return (struct image_size){be32(bytes, 16), be32(bytes, 20)};
}

static struct image_size gif(str bytes)
{
    if (bytes.len < 10) return (struct image_size){0};
    return (struct image_size){le16(bytes, 6), le16(bytes, 8)};
}

/* A height below zero means that the rows come from the top. */
static struct image_size bmp(str bytes)
{
    uint32_t head = le32(bytes, 14);
    if (head == 12 && bytes.len >= 22) return (struct image_size){le16(bytes, 18), le16(bytes, 20)};
    bool known = head == 40 || head == 52 || head == 56 || head == 64 || head == 108 || head == 124;
    if (!known || bytes.len < 26) return (struct image_size){0};
    uint32_t height = le32(bytes, 22);
    return (struct image_size){le32(bytes, 18), height > INT32_MAX ? 0 - height : height};
}

static struct image_size webp(str bytes)
{
    if (!file_image_size_has(bytes, 8, STR("WEBP")) || bytes.len < 30)
        return (struct image_size){0};
    if (file_image_size_has(bytes, 12, STR("VP8X")))
        return (struct image_size){le24(bytes, 24) + 1, le24(bytes, 27) + 1};
    if (file_image_size_has(bytes, 12, STR("VP8L")) && at(bytes, 20) == 0x2f) {
        uint32_t bits = le32(bytes, 21);
        return (struct image_size){(bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1};
    }
    if (file_image_size_has(bytes, 12, STR("VP8 ")) &&
        file_image_size_has(bytes, 23, STR("\x9d\x01\x2a")))
        return (struct image_size){le16(bytes, 26) & 0x3fff, le16(bytes, 28) & 0x3fff};
    return (struct image_size){0};
}

static bool is_frame(uint32_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static struct image_size jpeg(str bytes)
{
    for (size_t i = 2; i + 4 <= bytes.len;) {
        if (at(bytes, i) != 0xff) break;
        uint32_t marker = at(bytes, i + 1);
        if (marker == 0xff) { /* filling */
            i++;
            continue;
        }
        i += 2;
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7))
            continue; /* they have no length */
        uint32_t len = be16(bytes, i);
        if (marker == 0xd8 || marker == 0xd9 || marker == 0xda || len < 2) break;
        if (is_frame(marker)) {
            if (len < 8 || bytes.len < i + 7) break;
            return (struct image_size){be16(bytes, i + 5), be16(bytes, i + 3)};
        }
        i += len;
    }
    return (struct image_size){0};
}

static const struct {
    str mark;
    struct image_size (*read)(str bytes);
} kinds[] = {
    {STR("\x89PNG\r\n\x1a\n"), png},
    {STR("\xff\xd8\xff"), jpeg},
    {STR("GIF87a"), gif},
    {STR("GIF89a"), gif},
    {STR("RIFF"), webp},
    {STR("BM"), bmp},
};

bool image_size(str bytes, struct image_size *ret_size)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!str_starts(bytes, kinds[i].mark)) continue;
        struct image_size size = kinds[i].read(bytes);
        if (!size.width || !size.height || size.width > INT32_MAX || size.height > INT32_MAX)
            return false;
        *ret_size = size;
        return true;
    }
    return false;
}

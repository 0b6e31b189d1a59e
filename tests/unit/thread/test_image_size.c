/* SPDX-License-Identifier: Apache-2.0 */
#include "thread/file_image_size.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "check.h"

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"

static const struct row {
    const char *what;
    str bytes;
    uint32_t width, height; /* 0: none */
} rows[] = {
    {"png", STR(PNG "\0\0\x02\x80\0\0\x01\xe0"), 640, 480},
    {"png, largest", STR(PNG "\x7f\xff\xff\xff\x7f\xff\xff\xff"), INT32_MAX, INT32_MAX},
    {"png, too large", STR(PNG "\x80\0\0\0\0\0\0\1"), 0, 0},
    {"png of width 0", STR(PNG "\0\0\0\0\0\0\x01\xe0"), 0, 0},
    {"png, another chunk first", STR("\x89PNG\r\n\x1a\n\0\0\0\rIDAT\0\0\0\1\0\0\0\1"), 0, 0},
    {"gif 89", STR("GIF89a\x0a\0\x14\0"), 10, 20},
    {"gif 87", STR("GIF87a\xff\xff\1\0"), 65535, 1},
    {"gif of height 0", STR("GIF89a\x0a\0\0\0"), 0, 0},
    {"bmp", STR("BM............\x28\0\0\0\x80\2\0\0\xe0\1\0\0"), 640, 480},
    {"bmp from the top", STR("BM............\x28\0\0\0\x80\2\0\0\x20\xfe\xff\xff"), 640, 480},
    {"bmp, lowest height", STR("BM............\x28\0\0\0\x80\2\0\0\0\0\0\x80"), 0, 0},
    {"bmp of width below 0", STR("BM............\x28\0\0\0\xff\xff\xff\xff\1\0\0\0"), 0, 0},
    {"bmp, old", STR("BM............\x0c\0\0\0\x80\2\xe0\1"), 640, 480},
    {"bmp, odd head", STR("BM............\x10\0\0\0\x80\2\0\0\xe0\1\0\0"), 0, 0},
    {"bmp, words", STR("BMW is a company that builds cars and motorcycles"), 0, 0},
    {"webp, lossy", STR("RIFF....WEBPVP8 ....\x30\1\0\x9d\1\x2a\x80\2\xe0\1"), 640, 480},
    {"webp, scaled", STR("RIFF....WEBPVP8 ....\x30\1\0\x9d\1\x2a\x80\x42\xe0\x81"), 640, 480},
    {"webp, no key frame", STR("RIFF....WEBPVP8 ....\x30\1\0\x9d\1\x2b\x80\2\xe0\1"), 0, 0},
    {"webp, lossless", STR("RIFF....WEBPVP8L....\x2f\x7f\xc2\x77\0....."), 640, 480},
    {"webp, extended", STR("RIFF....WEBPVP8X....\0\0\0\0\x7f\2\0\xdf\1\0"), 640, 480},
    {"webp, largest", STR("RIFF....WEBPVP8X....\0\0\0\0\xff\xff\xff\xff\xff\xff"), 1 << 24,
     1 << 24},
    {"webp, another chunk", STR("RIFF....WEBPALPH....\0\0\0\0\x7f\2\0\xdf\1\0"), 0, 0},
    {"wav", STR("RIFF....WAVEfmt ....\0\0\0\0\x7f\2\0\xdf\1\0"), 0, 0},
    {"jpeg", STR("\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x0b\x08\1\xe0\2\x80\1\1\x11\0"), 640, 480},
    {"jpeg, progressive", STR("\xff\xd8\xff\xc2\0\x0b\x08\1\xe0\2\x80\1\1\x11\0"), 640, 480},
    {"jpeg, filled", STR("\xff\xd8\xff\xff\xff\xe0\0\2\xff\xff\xc1\0\x0b\x08\1\xe0\2\x80"), 640,
     480},
    {"jpeg, tables first",
     STR("\xff\xd8\xff\xc4\0\x0b\x08\1\1\1\1\1\1\1\1\xff\xcf\0\x08\x08\0\1\0\2"), 2, 1},
    {"jpeg, marks without length", STR("\xff\xd8\xff\x01\xff\xd0\xff\xc0\0\x0b\x08\1\xe0\2\x80"),
     640, 480},
    {"jpeg of height 0", STR("\xff\xd8\xff\xc0\0\x0b\x08\0\0\2\x80"), 0, 0},
    {"jpeg, data before its frame", STR("\xff\xd8\xff\xda\0\2\xff\xc0\0\x0b\x08\1\xe0\2\x80"), 0,
     0},
    {"jpeg, over at once", STR("\xff\xd8\xff\xd9\xff\xc0\0\x0b\x08\1\xe0\2\x80"), 0, 0},
    {"jpeg, segment of length 0", STR("\xff\xd8\xff\xe0\0\0\xff\xc0\0\x0b\x08\1\xe0\2\x80"), 0, 0},
    {"jpeg, short frame", STR("\xff\xd8\xff\xc0\0\x07\x08\1\xe0\2\x80"), 0, 0},
    {"jpeg, lost", STR("\xff\xd8\xff\xe0\0\2x\xff\xc0\0\x0b\x08\1\xe0\2\x80"), 0, 0},
    {"nothing", STR(""), 0, 0},
    {"words", STR("hello"), 0, 0},
    {"html", STR("<html>"), 0, 0},
};

static void sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct image_size size = {7, 7};
        bool found = image_size(rows[i].bytes, &size);
        if (found != (rows[i].width != 0)) fail_msg("%s: found %d", rows[i].what, found);
        if (size.width != (found ? rows[i].width : 7) ||
            size.height != (found ? rows[i].height : 7))
            fail_msg("%s: %u x %u", rows[i].what, size.width, size.height);
    }
}

/* Cut anywhere, in memory that ends there: nothing is read beyond, and no size is made up. */
static void cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t len = 0; len < rows[i].bytes.len; len++) {
            struct image_size size;
            char *bytes = malloc(len ? len : 1);
            assert_non_null(bytes);
            memcpy(bytes, rows[i].bytes.p, len);
            if (image_size((str){bytes, len}, &size) &&
                (size.width != rows[i].width || size.height != rows[i].height))
                fail_msg("%s cut to %zu: %u x %u", rows[i].what, len, size.width, size.height);
            free(bytes);
        }
    }
}

/* A frame behind large segments, as cameras write them. */
static void far_behind(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1024 * 1024);
    buf_append(&out, STR("\xff\xd8"));
    for (int i = 0; i < 3; i++) {
        buf_append(&out, STR("\xff\xe1\xff\xff"));
        for (int k = 0; k < 0xffff - 2; k++) buf_char(&out, '\xff');
    }
    buf_append(&out, STR("\xff\xc0\0\x0b\x08\1\xe0\2\x80"));
    struct image_size size = {0};
    assert_true(image_size(buf_str(&out), &size));
    assert_int_equal(size.width, 640);
    assert_int_equal(size.height, 480);
    buf_done(&out);
}

int test_image_size(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(cut),
        cmocka_unit_test(far_behind),
    };
    return cmocka_run_group_tests_name("image_size", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of objects in object storage, made and taken apart.
 */
#include "store/table/blob_path.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool whose_valid(str whose)
{
    if (whose.len < 1 || whose.len > BLOB_WHOSE_BYTES_MAX) return false;
    for (size_t i = 0; i < whose.len; i++) {
        char c = whose.p[i];
        bool letter = char_lower(c) >= 'a' && char_lower(c) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-') return false;
    }
    return true;
}

void blob_path(const unsigned char hash[static HASH_BYTES], str whose,
               char ret_path[static BLOB_PATH_BYTES])
{
    char hex[HASH_HEX_BYTES];
    assert(whose_valid(whose));
    crypto_hex((str){(const char *)hash, HASH_BYTES}, hex);
    snprintf(ret_path, BLOB_PATH_BYTES, "%.2s/%s.%.*s", hex, hex, STR_ARG(whose));
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool blob_path_hash(str path, unsigned char ret_hash[static HASH_BYTES])
{
    enum { HEX = 2 * HASH_BYTES, HEAD = 3 + HEX + 1 };
    unsigned char hash[HASH_BYTES];
    if (path.len <= HEAD || path.p[2] != '/' || path.p[HEAD - 1] != '.') return false;
    if (!whose_valid(str_drop(path, HEAD)) || memcmp(path.p, path.p + 3, 2) != 0) return false;
    for (size_t i = 0; i < HASH_BYTES; i++) {
        int high = digit(path.p[3 + 2 * i]), low = digit(path.p[4 + 2 * i]);
        if (high < 0 || low < 0) return false;
        hash[i] = (unsigned char)(high * 16 + low);
    }
    memcpy(ret_hash, hash, sizeof hash);
    return true;
}

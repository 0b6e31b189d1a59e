/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a JSON document, scanned in pieces beside json_parse: whole, byte by byte, and cut at
 * each of its first bytes.
 */
#include "json_scan_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scan_check((str){(const char *)data, size}, CUTS);
    return 0;
}

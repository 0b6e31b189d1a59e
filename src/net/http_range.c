/* SPDX-License-Identifier: Apache-2.0
 *
 * Which stretch of a file a Range field asks for: one byte range, read.
 *
 * The digits of a range are not bounded by the RFC. A number too large for 64 bits lies behind the
 * end of everything, which is also what UINT64_MAX says; so it is read as that.
 *
 *    first   last      meaning
 *    number  number    from first to last, cut at the end
 *    number  (none)    from first to the end
 *    (none)  number    the last so many bytes, or all
 *    (none)  (none)    malformed
 */
#include "net/http_range.h"

/* Digits only, at least one. False if it is not a number. */
static bool read_position(str digits, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9') return false;
        uint64_t digit = (uint64_t)(digits.p[i] - '0');
        bool fits = value <= (UINT64_MAX - digit) / 10;
        value = fits ? value * 10 + digit : UINT64_MAX;
    }
    *ret_value = value;
    return digits.len > 0;
}

enum range http_range(str value, uint64_t size, uint64_t *ret_from, uint64_t *ret_len)
{
    str rest = value, unit = str_split(&rest, '=');
    if (!rest.p || !str_eq_nocase(unit, STR("bytes"))) return RANGE_NONE;
    str before = str_split(&rest, '-');
    if (!rest.p) return RANGE_NONE;

    uint64_t first, last = UINT64_MAX;
    bool open = rest.len == 0;
    if (!open && !read_position(rest, &last)) return RANGE_NONE;
    if (before.len == 0) { /* the last so many bytes; of nothing they are no stretch */
        if (!open && last == 0) return RANGE_BAD;
        if (open || size == 0) return RANGE_NONE;
        *ret_len = last < size ? last : size;
        *ret_from = size - *ret_len;
        return RANGE_PART;
    }
    if (!read_position(before, &first) || last < first) return RANGE_NONE;

    if (first >= size) return RANGE_BAD;
    *ret_from = first;
    *ret_len = (last < size ? last + 1 : size) - first;
    return RANGE_PART;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a struct as columns of a table, bound and read by kind. A kind is a row in the enum,
 * an arm of COLUMN_OF and a case in each of the two switches; the compiler names the place that was
 * forgotten.
 */
#include "store/db/columns.h"

#include "store/db/sqlite.h"

void columns_bind(struct stmt *s, int first, const struct column *columns, size_t count,
                  const void *row)
{
    for (size_t i = 0; i < count; i++) {
        const void *member = (const char *)row + columns[i].offset;
        int at = first + (int)i;
        switch (columns[i].kind) {
        case COLUMN_STR:
            stmt_bind_str(s, at, *(const str *)member);
            break;
        case COLUMN_I64:
            stmt_bind_i64(s, at, *(const int64_t *)member);
            break;
        case COLUMN_U64:
            stmt_bind_i64(s, at, (int64_t) * (const uint64_t *)member);
            break;
        case COLUMN_U32:
            stmt_bind_i64(s, at, *(const uint32_t *)member);
            break;
        case COLUMN_BOOL:
            stmt_bind_i64(s, at, *(const bool *)member);
            break;
        }
    }
}

/* What does not fit comes from a damaged file: a number that no range check lets pass. */
static uint32_t read_u32(struct stmt *s, int at)
{
    int64_t value = stmt_i64(s, at);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

void columns_read(struct stmt *s, int first, const struct column *columns, size_t count,
                  struct arena *arena, void *ret_row)
{
    for (size_t i = 0; i < count; i++) {
        void *member = (char *)ret_row + columns[i].offset;
        int at = first + (int)i;
        switch (columns[i].kind) {
        case COLUMN_STR:
            *(str *)member = arena_str(arena, stmt_str(s, at));
            break;
        case COLUMN_I64:
            *(int64_t *)member = stmt_i64(s, at);
            break;
        case COLUMN_U64:
            *(uint64_t *)member = (uint64_t)stmt_i64(s, at);
            break;
        case COLUMN_U32:
            *(uint32_t *)member = read_u32(s, at);
            break;
        case COLUMN_BOOL:
            *(bool *)member = stmt_i64(s, at) != 0;
            break;
        }
    }
}

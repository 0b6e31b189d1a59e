/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one line per event on standard error, readable or JSON. An event has a level, a name in
 * dotted words ("server.listening"), and fields; control bytes in values are escaped, so a value
 * can never start a line of its own. Secrets are the caller's duty: pass ids, never keys.
 *
 *     log_info("key.added", LOG_STR("id", id), LOG_U64("count", n));
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *name;
    enum { LOG_FIELD_STR, LOG_FIELD_U64, LOG_FIELD_I64 } kind;
    str text;
    uint64_t number;
};

#define LOG_STR(name, value)  ((struct log_field){(name), LOG_FIELD_STR, (value), 0})
#define LOG_CSTR(name, value) ((struct log_field){(name), LOG_FIELD_STR, str_c(value), 0})
#define LOG_U64(name, value)  ((struct log_field){(name), LOG_FIELD_U64, {0}, (uint64_t)(value)})
#define LOG_I64(name, value) \
    ((struct log_field){(name), LOG_FIELD_I64, {0}, (uint64_t)(int64_t)(value)})

/* Process-wide; set once, before threads start. */
void log_setup(enum log_level level, bool json);
bool log_on(enum log_level level);

/* Parse "debug", "info", "warn", "error", each with an optional ",json" or ",text". */
enum err log_parse(str text, enum log_level *ret_level, bool *ret_json) MUST_USE;

/* Safe from any thread: a line is one write(2). A longer line than LOG_LINE_BYTES_MAX is cut and
 * says so. */
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count);

/* The line without its newline or a NUL, as log_write would print it at that time; returns its
 * length. At least LOG_LINE_BYTES_MIN bytes of room. For tests. */
size_t log_format(char *out, size_t size, msec wall, bool json, enum log_level level,
                  const char *event, const struct log_field *fields, size_t count);

#define LOG_FIELDS(...)        \
    (const struct log_field[]) \
    {                          \
        __VA_ARGS__            \
    }
#define LOG_AT(level, event, ...)                                                  \
    do {                                                                           \
        if (log_on(level))                                                         \
            log_write((level), (event), LOG_FIELDS(__VA_ARGS__),                   \
                      sizeof(LOG_FIELDS(__VA_ARGS__)) / sizeof(struct log_field)); \
    } while (0)
#define log_debug(event, ...) LOG_AT(LOG_DEBUG, event, __VA_ARGS__)
#define log_info(event, ...)  LOG_AT(LOG_INFO, event, __VA_ARGS__)
#define log_warn(event, ...)  LOG_AT(LOG_WARN, event, __VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_ERROR, event, __VA_ARGS__)

#endif

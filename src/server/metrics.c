/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics: figures for operators, written. To add one, add its row to METRICS in metrics.h and set
 * its field.
 */
#include "server/metrics.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct metric_row {
    const char *name, *type, *help;
    size_t offset;
};

#define METRIC_ROW(field, name, type, help) {name, type, help, offsetof(struct metrics, field)},
static const struct metric_row rows[] = {METRICS(METRIC_ROW)};
#undef METRIC_ROW

void metrics_count_status(struct metrics *metrics, int status)
{
    if (status < 300)
        metrics->requests_2xx++;
    else if (status < 400)
        metrics->requests_3xx++;
    else if (status < 500)
        metrics->requests_4xx++;
    else
        metrics->requests_5xx++;
}

void metrics_write(const struct metrics *metrics, struct buf *out)
{
    str before = STR_EMPTY;
    for (size_t i = 0; i < COUNT(rows); i++) {
        str labels = str_c(rows[i].name), name = str_split(&labels, '{');
        if (!str_eq(name, before)) {
            buf_printf(out, "# HELP %.*s %s\n", STR_ARG(name), rows[i].help);
            buf_printf(out, "# TYPE %.*s %s\n", STR_ARG(name), rows[i].type);
        }
        before = name;
        uint64_t value;
        memcpy(&value, (const char *)metrics + rows[i].offset, sizeof value);
        buf_printf(out, "%s %llu\n", rows[i].name, (unsigned long long)value);
    }
}

uint64_t metrics_resident_bytes(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    str rest = {text, len > 0 ? (size_t)len : 0};
    (void)str_split(&rest, ' '); /* the whole size; resident pages follow */
    uint64_t pages = 0;
    if (str_to_u64(str_split(&rest, ' '), &pages)) return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an event stream. However they are cut, the same events come: the first byte chooses a
 * place to cut. No event is larger than allowed, and an event has a name.
 */
#include <stdlib.h>
#include <string.h>

#include "net/sse_read.h"

enum { EVENT_BYTES_MAX = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) abort();
}

struct listener {
    struct buf trace;
    bool stopped;
};

/* Lengths before texts, so that two different streams cannot leave the same trace. */
static bool on_event(void *arg, const struct sse_event *event)
{
    struct listener *l = arg;
    check(!l->stopped && event->name.len > 0 && event->data.len <= EVENT_BYTES_MAX);
    buf_printf(&l->trace, "%zu %zu %zu ", event->name.len, event->data.len, event->id.len);
    buf_append(&l->trace, event->name);
    buf_append(&l->trace, event->data);
    buf_append(&l->trace, event->id);
    l->stopped = str_eq(event->name, STR("stop"));
    return !l->stopped;
}

/* A piece of its own, so that reading past it is seen. */
static enum err read_piece(struct sse_reader *reader, str bytes, struct listener *l)
{
    char *piece = malloc(bytes.len);
    if (!piece) abort();
    memcpy(piece, bytes.p, bytes.len);
    enum err e = sse_read(reader, (str){piece, bytes.len}, on_event, l);
    free(piece);
    check(e == OK || e == ERR_TOO_LARGE);
    return e;
}

static void hear(struct listener *l, str bytes, size_t first, size_t next)
{
    struct sse_reader reader;
    enum err e = OK;
    l->stopped = false;
    buf_init(&l->trace, SIZE_MAX);
    sse_reader_init(&reader, EVENT_BYTES_MAX);
    for (size_t len = first; bytes.len && !e && !l->stopped; len = next) {
        if (len > bytes.len) len = bytes.len;
        e = read_piece(&reader, (str){bytes.p, len}, l);
        bytes = str_drop(bytes, len);
    }
    buf_printf(&l->trace, "%s %llu", err_code(e), (unsigned long long)reader.retry_ms);
    sse_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    str bytes = {(const char *)data + 1, size - 1};
    struct listener whole, each, cut;
    hear(&whole, bytes, bytes.len, bytes.len);
    hear(&each, bytes, 1, 1);
    hear(&cut, bytes, 1 + data[0] * bytes.len / 256, bytes.len);
    check(str_eq(buf_str(&whole.trace), buf_str(&each.trace)));
    check(str_eq(buf_str(&whole.trace), buf_str(&cut.trace)));
    buf_done(&whole.trace);
    buf_done(&each.trace);
    buf_done(&cut.trace);
    return 0;
}

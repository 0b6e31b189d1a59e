/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1_trace.h"

#include <stdlib.h>
#include <string.h>

enum { TARGET_BYTES_SHOWN = 40, TRACE_BYTES_MAX = 64 * 1024 * 1024 };

struct tracer {
    struct http1 parser;
    struct http1_trace *trace;
    uint64_t body_bytes_max;
    uint64_t body_bytes;
    bool over; /* refused, or the connection ends here */
};

void http1_trace_init(struct http1_trace *trace)
{
    *trace = (struct http1_trace){.hash = 14695981039346656037U};
    buf_init(&trace->text, TRACE_BYTES_MAX);
}

void http1_trace_done(struct http1_trace *trace)
{
    buf_done(&trace->text);
}

/* FNV-1a: the same for any cut of the bytes. */
static void hash(struct http1_trace *trace, str s)
{
    for (size_t i = 0; i < s.len; i++)
        trace->hash = (trace->hash ^ (unsigned char)s.p[i]) * 1099511628211U;
}

static void separate(struct http1_trace *trace)
{
    if (trace->text.len) buf_append(&trace->text, STR("; "));
}

static void add_request(struct tracer *t)
{
    const struct http_head *head = &t->parser.head;
    struct buf *text = &t->trace->text;
    separate(t->trace);
    buf_printf(text, "%s ", http_method_name(head->method));
    if (head->target.len > TARGET_BYTES_SHOWN)
        buf_printf(text, "#%zu", head->target.len);
    else
        buf_append(text, head->target);
    buf_printf(text, " %.*s %s %llu", STR_ARG(head->host.len ? head->host : STR("-")),
               head->keep_alive ? "keep" : "close", (unsigned long long)t->body_bytes);
}

static void hash_head(struct tracer *t)
{
    const struct http_head *head = &t->parser.head;
    const str parts[] = {head->target, head->path, head->query, head->host};
    for (size_t i = 0; i < COUNT(parts); i++) {
        hash(t->trace, parts[i]);
        hash(t->trace, STR("\n"));
    }
    for (size_t i = 0; i < head->field_count; i++) {
        hash(t->trace, head->fields[i].name);
        hash(t->trace, STR(":"));
        hash(t->trace, head->fields[i].value);
        hash(t->trace, STR("\n"));
    }
    const char flags[] = {(char)('0' + head->minor), head->chunked ? 'k' : '-',
                          head->expect_continue ? 'e' : '-', head->has_length ? 'l' : '-'};
    hash(t->trace, (str){flags, sizeof flags});
    hash(t->trace, (str){(const char *)&head->length, sizeof head->length});
}

static void add_error(struct tracer *t)
{
    separate(t->trace);
    buf_u64(&t->trace->text, (uint64_t)err_status(t->parser.error));
    hash(t->trace, str_c(t->parser.reason));
    t->over = true;
}

static void handle(struct tracer *t, enum http1_event event)
{
    switch (event) {
    case HTTP1_HEAD:
        t->body_bytes = 0;
        hash_head(t);
        http1_body_max(&t->parser, t->body_bytes_max);
        break;
    case HTTP1_BODY:
        assert(t->parser.piece.len > 0);
        t->body_bytes += t->parser.piece.len;
        assert(t->body_bytes <= t->body_bytes_max);
        hash(t->trace, t->parser.piece);
        break;
    case HTTP1_END:
        add_request(t);
        t->over = !t->parser.head.keep_alive;
        http1_next(&t->parser);
        break;
    case HTTP1_ERROR:
        add_error(t);
        break;
    case HTTP1_MORE:
        break;
    }
}

static void feed_piece(struct tracer *t, str bytes)
{
    char *copy = malloc(bytes.len);
    if (!copy) abort();
    memcpy(copy, bytes.p, bytes.len);
    str input = {copy, bytes.len};
    enum http1_event event;
    do {
        event = http1_feed(&t->parser, &input);
        handle(t, event);
    } while (event != HTTP1_MORE && !t->over);
    assert(t->over || input.len == 0);
    free(copy);

    str none = {NULL, 0};
    assert(t->over || http1_feed(&t->parser, &none) == HTTP1_MORE);
}

/* xorshift64*: small pieces mostly, now and then a large one. */
static size_t random_size(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    uint64_t number = *state * 2685821657736338717U >> 32;
    static const size_t sizes[] = {2, 4, 16, 64, 256, 4096};
    return 1 + number / COUNT(sizes) % sizes[number % COUNT(sizes)];
}

static size_t next_size(uint64_t cuts, uint64_t *state, size_t left)
{
    size_t size = cuts == TRACE_WHOLE ? left : cuts == TRACE_BYTES ? 1 : random_size(state);
    return size < left ? size : left;
}

void http1_trace_run(struct http1_trace *trace, str bytes, uint64_t body_bytes_max, uint64_t cuts)
{
    struct tracer t = {.trace = trace, .body_bytes_max = body_bytes_max};
    uint64_t state = cuts * 0x9E3779B97F4A7C15U | 1;
    http1_init(&t.parser);
    while (bytes.len && !t.over) {
        size_t size = next_size(cuts, &state, bytes.len);
        feed_piece(&t, (str){bytes.p, size});
        bytes = str_drop(bytes, size);
    }
    if (!t.over && http1_started(&t.parser)) {
        separate(trace);
        buf_append(&trace->text, STR("more"));
    }
    http1_done(&t.parser);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading event streams: what comes, whatever way the bytes are cut.
 */
#include "net/sse_read.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { EVENT_BYTES_MAX = 64, TRACE_BYTES_MAX = 4096 };

/* "name|data|id;" for each event; "stop" in a name is obeyed. */
static bool on_event(void *arg, const struct sse_event *event)
{
    struct buf *trace = arg;
    buf_append(trace, event->name);
    buf_char(trace, '|');
    buf_append(trace, event->data);
    buf_char(trace, '|');
    buf_append(trace, event->id);
    buf_char(trace, ';');
    return !str_eq(event->name, STR("stop"));
}

struct cut {
    size_t first; /* bytes of the first piece, */
    size_t next;  /* and of each after it */
};

static void read_cut(str stream, struct cut cut, struct buf *trace)
{
    struct sse_reader reader;
    enum err e = OK;
    bool stopped = false;
    buf_init(trace, TRACE_BYTES_MAX);
    sse_reader_init(&reader, EVENT_BYTES_MAX);
    for (size_t size = cut.first; stream.len && !e && !stopped; size = cut.next) {
        if (size > stream.len) size = stream.len;
        char *piece = malloc(size + 1); /* of its own, so that reading past it is seen */
        memcpy(piece, stream.p, size);
        e = sse_read(&reader, (str){piece, size}, on_event, trace);
        free(piece);
        stopped = str_find(buf_str(trace), STR("stop|")) >= 0;
        stream = str_drop(stream, size);
    }
    if (e) {
        assert_int_equal(e, ERR_TOO_LARGE);
        assert_int_equal(sse_read(&reader, STR("data: x\n\n"), on_event, trace), ERR_TOO_LARGE);
        buf_append(trace, STR("too large"));
    }
    if (reader.retry_ms) buf_printf(trace, "retry %llu", (unsigned long long)reader.retry_ms);
    sse_reader_done(&reader);
}

static void expect(str stream, struct cut cut, str expected)
{
    AUTO(buf_done) struct buf trace;
    read_cut(stream, cut, &trace);
    if (!str_eq(buf_str(&trace), expected))
        fail_msg("\"%.*s\" cut at %zu, then every %zu: got \"%.*s\", expected \"%.*s\"",
                 STR_ARG(stream), cut.first, cut.next, STR_ARG(buf_str(&trace)), STR_ARG(expected));
}

static void expect_all(str stream, str expected)
{
    expect(stream, (struct cut){stream.len, stream.len}, expected);
    expect(stream, (struct cut){1, 1}, expected);
    expect(stream, (struct cut){2, 3}, expected);
    for (size_t at = 1; at < stream.len; at++)
        expect(stream, (struct cut){at, stream.len}, expected);
}

#define SIXTEEN "0123456789abcdef"
#define ALL_64  SIXTEEN SIXTEEN SIXTEEN SIXTEEN

static const struct {
    str stream, expected;
} cases[] = {
    {STR("data: a\n\n"), STR("message|a|;")},
    {STR("data:a\n\ndata:b\n\n"), STR("message|a|;message|b|;")},
    {STR("data:  a \n\n"), STR("message| a |;")}, /* one space is ours, the others are not */
    {STR("data: a\r\n\r\n"), STR("message|a|;")},
    {STR("data: a\r\ndata: b\r\n\r\n"), STR("message|a\nb|;")}, /* CR LF is one end of line */
    {STR("event: x\r\ndata: a\rdata: b\ndata: c\r\n\r\n"), STR("x|a\nb\nc|;")},
    {STR("data: a\r\r"), STR("message|a|;")},
    {STR("data: a\r\n\ndata: b\r\r\ndata: c\n\r"), STR("message|a|;message|b|;message|c|;")},
    {STR("data: a\n\r\ndata: b\r\n\r"), STR("message|a|;message|b|;")},
    {STR("data: a\r\rdata: b\r\n\r\n\r\n"), STR("message|a|;message|b|;")},
    {STR("data: a\ndata: b\ndata\ndata:\n\n"), STR("message|a\nb\n\n|;")},
    {STR("data\n\n"), STR("message||;")},
    {STR("data:\n\n"), STR("message||;")},
    {STR("\n\n\n"), STR("")},
    {STR("event: x\n\ndata: a\n\n"), STR("message|a|;")}, /* a name without data is forgotten */
    {STR("event: x\ndata: a\n\ndata: b\n\n"), STR("x|a|;message|b|;")},
    {STR("data: a\nevent: x\nevent: y\n\n"), STR("y|a|;")},
    {STR("event: x\nevent\ndata: a\n\n"), STR("message|a|;")},
    {STR("id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"),
     STR("message|a|7;message|b|7;message|c|;")},
    {STR("id: 7\n\nid: 8\ndata: a\n\n"), STR("message|a|8;")},
    {STR("id: 7\nid: 8\0\ndata: a\n\n"), STR("message|a|7;")},
    {STR(": comment\ndata: a\n:\n: b\n\n"), STR("message|a|;")},
    {STR(":\n\n:\n\ndata: a\n\n"), STR("message|a|;")},
    {STR("datax: a\nDATA: b\n data: c\n\n"), STR("")},
    {STR("other: a\ndata: a:b: c\n\n"), STR("message|a:b: c|;")},
    {STR("retry: 250\ndata: a\n\n"), STR("message|a|;retry 250")},
    {STR("retry: -1\nretry: 1.5\nretry:\nretry: 99999999999999999999\n\n"), STR("")},
    {STR("\xef\xbb\xbf"
         "data: a\n\n"),
     STR("message|a|;")},
    {STR("\xef\xbb\xbf\xef\xbb\xbf"
         "data: a\n\ndata: b\n\n"),
     STR("message|b|;")},
    {STR("data: a\n\n\xef\xbb\xbf"
         "data: b\n\n"),
     STR("message|a|;")},
    {STR("\xef\xbb"
         "data: a\n\n"),
     STR("")},
    {STR("data: \xe4\xbd\xa0\xe5\xa5\xbd\n\n"), STR("message|\xe4\xbd\xa0\xe5\xa5\xbd|;")},
    {STR("data: \xff\0\n\n"), STR("message|\xff\0|;")}, /* bytes are not our business */
    {STR("data: a"), STR("")},
    {STR("data: a\n"), STR("")},
    {STR("data: a\n\ndata: b\n"), STR("message|a|;")},
    {STR("event: stop\ndata: a\n\ndata: b\n\n"), STR("stop|a|;")},
    /* Limits at their edge: 64 bytes. */
    {STR("data: " ALL_64 "\n\ndata: b\n\n"), STR("message|" ALL_64 "|;message|b|;")},
    {STR("data: a\n\ndata: " ALL_64 "0\n\ndata: b\n\n"), STR("message|a|;too large")},
    {STR("data: " SIXTEEN "\ndata: " SIXTEEN SIXTEEN "\ndata: 0123456789abcd\n\n"),
     STR("message|" SIXTEEN "\n" SIXTEEN SIXTEEN "\n0123456789abcd|;")},
    {STR("data: " SIXTEEN "\ndata: " SIXTEEN SIXTEEN "\ndata: 0123456789abcde\n\n"),
     STR("too large")},
    {STR(":" ALL_64 ALL_64 "\ndata: b\n\n"), STR("too large")},
    {STR(ALL_64 ALL_64), STR("too large")},
    {STR("event: " ALL_64 "\nid: " ALL_64 "\ndata: a\n\n"), STR(ALL_64 "|a|" ALL_64 ";")},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) expect_all(cases[i].stream, cases[i].expected);
}

/* Many events in one piece, and an empty piece. */
static void test_many(void **state)
{
    (void)state;
    struct sse_reader reader;
    AUTO(buf_done) struct buf stream, trace;
    buf_init(&stream, 1 << 20);
    buf_init(&trace, 1 << 20);
    for (int i = 0; i < 10000; i++) buf_append(&stream, STR("data: 12345\r\r"));
    sse_reader_init(&reader, EVENT_BYTES_MAX);
    assert_int_equal(sse_read(&reader, STR_EMPTY, on_event, &trace), OK);
    assert_int_equal(sse_read(&reader, (str){NULL, 0}, on_event, &trace), OK);
    assert_int_equal(sse_read(&reader, buf_str(&stream), on_event, &trace), OK);
    assert_int_equal(trace.len, 10000 * strlen("message|12345|;"));
    sse_reader_done(&reader);
}

int test_sse_read(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests_name("sse_read", tests, NULL, NULL);
}

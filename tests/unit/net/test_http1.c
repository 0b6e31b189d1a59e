/* SPDX-License-Identifier: Apache-2.0
 *
 * The request parser. Every row is fed whole, byte by byte and at SPLITS seeded random cuts, and
 * must come out the same each time. Row names are those of the black-box table in
 * tests/api/bad-input.mjs.
 */
#include "net/http1.h"

#include "base/arena.h"
#include "check.h"
#include "net/http1_trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPLITS = 300, BODY_MAX = 64 };

#define LINE        "GET / HTTP/1.1\r\n"
#define HOST        "Host: a\r\n"
#define GET         LINE HOST
#define END         "\r\n"
#define POST        "POST / HTTP/1.1\r\n" HOST
#define CHUNKED     POST "Transfer-Encoding: chunked\r\n\r\n"
#define DONE        "0\r\n\r\n"
#define NEXT        "GET /next HTTP/1.1\r\n" HOST END
#define NEXT_PARSED "; GET /next a keep 0"

static void check_trace(const char *id, str bytes, uint64_t body_bytes_max, const char *expected)
{
    uint64_t hash = 0;
    for (uint64_t cuts = 0; cuts < SPLITS; cuts++) {
        struct http1_trace trace;
        http1_trace_init(&trace);
        http1_trace_run(&trace, bytes, body_bytes_max, cuts);
        if (cuts == TRACE_WHOLE) hash = trace.hash;
        if (!str_eq(buf_str(&trace.text), str_c(expected)) || trace.hash != hash)
            fail_msg("%s, cut %llu: got \"%.*s\", expected \"%s\"%s", id, (unsigned long long)cuts,
                     STR_ARG(buf_str(&trace.text)), expected,
                     trace.hash == hash ? "" : " and the same details as when whole");
        http1_trace_done(&trace);
    }
}

struct row {
    const char *id;
    str bytes;
    const char *expected;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_trace(rows[i].id, rows[i].bytes, BODY_MAX, rows[i].expected);
}

static void heads(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"H1", STR(GET END), "GET / a keep 0"},
        {"H1-many", STR(GET END GET END), "GET / a keep 0; GET / a keep 0"},
        {"H2", STR(LINE END), "400"},
        {"H3-same", STR(GET HOST END), "400"},
        {"H3-different", STR(GET "Host: b\r\n" END), "400"},
        {"H4-space", STR(LINE "Host: a b\r\n" END), "400"},
        {"H4-slash", STR(LINE "Host: a/../b\r\n" END), "400"},
        {"H4-user", STR(LINE "Host: a@b\r\n" END), "400"},
        {"H4-empty", STR(LINE "Host: \r\n" END), "400"},
        {"H4-port-only", STR(LINE "Host: :80\r\n" END), "400"},
        {"H4-port-empty", STR(LINE "Host: a:\r\n" END), "400"},
        {"H4-port-letter", STR(LINE "Host: a:8x\r\n" END), "400"},
        {"H4-port-large", STR(LINE "Host: a:65536\r\n" END), "400"},
        {"H4-port-long", STR(LINE "Host: a:000080\r\n" END), "400"},
        {"H4-list", STR(LINE "Host: a,b\r\n" END), "400"},
        {"H4-escape", STR(LINE "Host: %61\r\n" END), "400"},
        {"H4-text", STR(LINE "Host: \xc3\xa4\r\n" END), "400"},
        {"H4-v6-open", STR(LINE "Host: [::1\r\n" END), "400"},
        {"H4-v6-bare", STR(LINE "Host: ::1\r\n" END), "400"},
        {"H4-v6-empty", STR(LINE "Host: []\r\n" END), "400"},
        {"H4-v6-zone", STR(LINE "Host: [fe80::1%eth0]\r\n" END), "400"},
        {"H4-v6-bad", STR(LINE "Host: [1::2::3]\r\n" END), "400"},
        {"H4-v6-tail", STR(LINE "Host: [::1]x\r\n" END), "400"},
        {"H4-v6-port", STR(LINE "Host: [::1]:x\r\n" END), "400"},
        {"H4-v6-long",
         STR(LINE "Host: [0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]\r\n" END), "400"},
        {"H4-v6-nul", STR(LINE "Host: [::1\0]\r\n" END), "400"},
        {"H4-ok-port", STR(LINE "Host: a.b-c_d~e:65535\r\n" END), "GET / a.b-c_d~e:65535 keep 0"},
        {"H4-ok-v4", STR(LINE "Host: 127.0.0.1:80\r\n" END), "GET / 127.0.0.1:80 keep 0"},
        {"H4-ok-v6", STR(LINE "Host: [::1]\r\n" END), "GET / [::1] keep 0"},
        {"H4-ok-v6-port", STR(LINE "Host: [::ffff:1.2.3.4]:80\r\n" END),
         "GET / [::ffff:1.2.3.4]:80 keep 0"},
        {"H6", STR("GET http://b/x HTTP/1.1\r\n" HOST END), "GET http://b/x b keep 0"},
        {"H6-case", STR("GET hTTps://b:1?q HTTP/1.1\r\n" HOST END), "GET hTTps://b:1?q b:1 keep 0"},
        {"H6-no-host", STR("GET http://b/x HTTP/1.1\r\n" END), "400"},
        {"H6-bad-host", STR("GET http://b/x HTTP/1.1\r\nHost: a b\r\n" END), "400"},
        {"H6-user", STR("GET http://u@b/x HTTP/1.1\r\n" HOST END), "400"},
        {"H6-empty", STR("GET http:///x HTTP/1.1\r\n" HOST END), "400"},
        {"H6-scheme", STR("GET ftp://b/x HTTP/1.1\r\n" HOST END), "400"},
        {"H6-no-slash", STR("GET x HTTP/1.1\r\n" HOST END), "400"},
        {"H7", STR("\r\n" GET END), "GET / a keep 0"},
        {"H7-between", STR(GET END "\r\n" GET END), "GET / a keep 0; GET / a keep 0"},
        {"H7-alone", STR("\r\n"), ""},
        {"H8-two", STR("\r\n\r\n" GET END), "400"},
        {"H8-lf", STR("\n" GET END), "400"},
        {"H8-cr", STR("\r" GET END), "400"},
        {"H8-space", STR(" " GET END), "400"},
        {"H9", STR("GET /\r\n"), "400"},
        {"H10", STR("GET / HTTP/1.2\r\n" HOST END), "GET / a keep 0"},
        {"H11", STR("GET / HTTP/2.0\r\n" HOST END), "505"},
        {"H11-preface", STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "505"},
        {"H11-old", STR("GET / HTTP/0.9\r\n" END), "505"},
        {"H12-10", STR("GET / HTTP/1.10\r\n" HOST END), "400"},
        {"H12-none", STR("GET / HTTP/1.\r\n" HOST END), "400"},
        {"H12-lower", STR("GET / http/1.1\r\n" HOST END), "400"},
        {"H12-cr", STR("GET / HTTP/\r\r1.1\r\n" HOST END), "400"},
        {"H12-wrap", STR("GET / HTTP/4294967297.1\r\n" HOST END), "400"},
        {"H12-major", STR("GET / HTTP/1\r\n" HOST END), "400"},
        {"H12-letter", STR("GET / HTTP/1.x\r\n" HOST END), "400"},
        {"H13", STR("GET / HTTP/1.0\r\n" END), "GET / - close 0"},
        {"H13-keep", STR("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n" END), "GET / - keep 0"},
        {"H13-host", STR("GET / HTTP/1.0\r\n" HOST END), "GET / a close 0"},
        {"H13-both", STR("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n" END),
         "GET / - close 0"},
        {"H14-two", STR("GET  / HTTP/1.1\r\n" HOST END), "400"},
        {"H14-two-later", STR("GET /  HTTP/1.1\r\n" HOST END), "400"},
        {"H14-tab", STR("GET\t/ HTTP/1.1\r\n" HOST END), "400"},
        {"H14-tab-later", STR("GET /\tHTTP/1.1\r\n" HOST END), "400"},
        {"H14-none", STR("GET/ HTTP/1.1\r\n" HOST END), "400"},
        {"H14-none-later", STR("GET /HTTP/1.1\r\n" HOST END), "400"},
        {"H14-trailing", STR("GET / HTTP/1.1 \r\n" HOST END), "400"},
        {"H14-empty", STR(" / HTTP/1.1\r\n" HOST END), "400"},
        {"H15", STR("GET /\nHTTP/1.1\r\n" HOST END), "400"},
        {"H16-line", STR("GET / HTTP/1.1\n" HOST END), "400"},
        {"H16-field", STR(LINE "Host: a\n\r\n"), "400"},
        {"H16-last", STR(GET "\n"), "400"},
        {"H16-last-cr", STR(GET "\rX"), "400"},
        {"H17", STR(GET "X: a\rb\r\n" END), "400"},
        {"H17-smuggle", STR(GET "Visible: x\rSmuggled: y\r\n" END), "400"},
        {"H17-double", STR(GET "X: a\r\r\n" END), "400"},
        {"H18-value", STR(GET "X: a\0b\r\n" END), "400"},
        {"H18-name", STR(GET "X\0Y: a\r\n" END), "400"},
        {"H18-target", STR("GET /\0 HTTP/1.1\r\n" HOST END), "400"},
        {"H20", STR(GET "X: \x80\xff\t~\r\n" END), "GET / a keep 0"},
        {"H20-empty", STR(GET "X:\r\nY: \t \r\n" END), "GET / a keep 0"},
        {"H21-coding",
         STR(POST "Transfer-Encoding: \xa0"
                  "chunked\r\n" END DONE),
         "400"},
        {"H21-length",
         STR(POST "Content-Length: \x85"
                  "5\r\n" END "hello"),
         "400"},
        {"H22-space", STR(POST "Content-Length : 5\r\n" END "hello"), "400"},
        {"H22-tab", STR(POST "Content-Length\t: 5\r\n" END "hello"), "400"},
        {"H23", STR(LINE " Host: a\r\n" END), "400"},
        {"H23-tab", STR(LINE "\tHost: a\r\n" END), "400"},
        {"H24", STR(GET "X: a\r\n b\r\n" END), "400"},
        {"H24-tab", STR(GET "X: a\r\n\tb\r\n" END), "400"},
        {"H25-empty", STR(GET ": x\r\n" END), "400"},
        {"H25-no-colon", STR(GET "abc\r\n" END), "400"},
        {"H25-8bit", STR(GET "X\x80: a\r\n" END), "400"},
        {"H25-space", STR(GET "X Y: a\r\n" END), "400"},
        {"H26", STR(POST "Transfer-\r\nEncoding: chunked\r\n" END DONE), "400"},
        {"H27", STR("G=\":<> / HTTP/1.1\r\n" HOST END), "400"},
        {"H27-control", STR("G\x01T / HTTP/1.1\r\n" HOST END), "400"},
        {"H27-tls", STR("\x16\x03\x01\x02"), "400"},
        {"H28", STR("FOO / HTTP/1.1\r\n" HOST END), "501"},
        {"H28-lower", STR("get / HTTP/1.1\r\n" HOST END), "501"},
        {"H28-connect", STR("CONNECT a:1 HTTP/1.1\r\n" HOST END), "501"},
        {"H28-trace", STR("TRACE / HTTP/1.1\r\n" HOST END), "501"},
        {"H28-bad-line", STR("FOO / HTTP/1.\r\n" HOST END), "400"},
        {"H32-space", STR("GET /a b HTTP/1.1\r\n" HOST END), "400"},
        {"H32-8bit", STR("GET /\x80 HTTP/1.1\r\n" HOST END), "400"},
        {"H32-quote", STR("GET /\" HTTP/1.1\r\n" HOST END), "400"},
        {"H32-less", STR("GET /< HTTP/1.1\r\n" HOST END), "400"},
        {"H32-backslash", STR("GET /\\ HTTP/1.1\r\n" HOST END), "400"},
        {"H32-fragment", STR("GET /#a HTTP/1.1\r\n" HOST END), "400"},
        {"H32-brace", STR("GET /{ HTTP/1.1\r\n" HOST END), "400"},
        {"H32-del", STR("GET /\x7f HTTP/1.1\r\n" HOST END), "400"},
        {"H33-letters", STR("GET /%zz HTTP/1.1\r\n" HOST END), "400"},
        {"H33-lone", STR("GET /% HTTP/1.1\r\n" HOST END), "400"},
        {"H33-half", STR("GET /%4 HTTP/1.1\r\n" HOST END), "400"},
        {"H33-nul", STR("GET /%00 HTTP/1.1\r\n" HOST END), "400"},
        {"H33-cut", STR("GET /%4?1 HTTP/1.1\r\n" HOST END), "400"},
        {"H33-ok", STR("GET /%41%e4?%zz HTTP/1.1\r\n" HOST END), "GET /%41%e4?%zz a keep 0"},
        {"H34", STR("GET //evil/x HTTP/1.1\r\n" HOST END), "GET //evil/x a keep 0"},
        {"H35", STR("GET * HTTP/1.1\r\n" HOST END), "400"},
        {"H35-options", STR("OPTIONS * HTTP/1.1\r\n" HOST END), "OPTIONS * a keep 0"},
        {"H35-more", STR("OPTIONS */ HTTP/1.1\r\n" HOST END), "400"},
        {"H36", STR(POST "Expect: 100-Continue\r\nContent-Length: 5\r\n" END "hello"),
         "POST / a keep 5"},
        {"H37", STR(POST "Expect: 100-continue\r\nContent-Length: 65\r\n" END), "413"},
        {"H38", STR(GET "Expect: x\r\n" END), "417"},
        {"H38-list", STR(GET "Expect: 100-continue, x\r\n" END), "417"},
        {"H38-frame", STR(POST "Expect: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n" END),
         "400"},
        {"H39", STR(GET "Connection: close\r\n" END GET END), "GET / a close 0"},
        {"H39-list", STR(GET "Connection: x,, \tCLOSE\r\n" END), "GET / a close 0"},
        {"H39-second", STR(GET "Connection: x\r\nConnection: close\r\n" END), "GET / a close 0"},
        {"H39-other", STR(GET "Connection: closed\r\n" END), "GET / a keep 0"},
        {"more-method", STR("GE"), "more"},
        {"more-end", STR(GET "\r"), "more"},
        {"more-none", STR(""), ""},
    };
    check_rows(rows, COUNT(rows));
}

/* H19 and H25: every byte value in a field value, a field name, a method and a target. */
static void every_byte(void **state)
{
    (void)state;
    static const char separators[] = "(),/;<=>?@[]{}\"\\";
    for (unsigned c = 0; c < 256; c++) {
        bool control = (c < 32 && c != '\t') || c == 127;
        bool token = c > 32 && c < 127 && c != ':' && !strchr(separators, (int)c);
        char value[] = GET "X: a?b\r\n" END, name[] = GET "a?b: x\r\n" END;
        *strchr(value, '?') = (char)c;
        *strchr(name, '?') = (char)c;
        check_trace("H19", (str){value, sizeof value - 1}, 0, control ? "400" : "GET / a keep 0");
        check_trace("H25", (str){name, sizeof name - 1}, 0,
                    token || c == ':' ? "GET / a keep 0" : "400");
    }
}

static void framing(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"F1", STR(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END DONE), "400"},
        {"F1-other", STR(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END DONE),
         "400"},
        {"F2", STR(POST "Content-Length: 5\r\nContent-Length: 6\r\n" END "hello"), "400"},
        {"F3", STR(POST "Content-Length: 5\r\nContent-Length: 5\r\n" END "hello"), "400"},
        {"F3-list", STR(POST "Content-Length: 5, 5\r\n" END "hello"), "400"},
        {"F4", STR(POST "Content-Length:\r\n" END), "400"},
        {"F4-then", STR(POST "Content-Length: \r\nContent-Length: 43\r\n" END), "400"},
        {"F5-plus", STR(POST "Content-Length: +5\r\n" END "hello"), "400"},
        {"F5-minus", STR(POST "Content-Length: -5\r\n" END "hello"), "400"},
        {"F5-hex", STR(POST "Content-Length: 0x5\r\n" END "hello"), "400"},
        {"F5-space", STR(POST "Content-Length: 5 5\r\n" END "hello"), "400"},
        {"F5-letter", STR(POST "Content-Length: 5a\r\n" END "hello"), "400"},
        {"F5-underscore", STR(POST "Content-Length: 1_0\r\n" END "hello"), "400"},
        {"F5-point", STR(POST "Content-Length: 5.0\r\n" END "hello"), "400"},
        {"F5-quote", STR(POST "Content-Length: \"5\"\r\n" END "hello"), "400"},
        {"F6", STR(POST "Content-Length: 010\r\n" END "0123456789" NEXT),
         "POST / a keep 10" NEXT_PARSED},
        {"F6-zeros", STR(POST "Content-Length: 0000000000000000000000000000000005\r\n" END "hello"),
         "POST / a keep 5"},
        {"F6-zero", STR(POST "Content-Length: 0\r\n" END NEXT), "POST / a keep 0" NEXT_PARSED},
        {"F7-63", STR(POST "Content-Length: 9223372036854775807\r\n" END), "413"},
        {"F7-63-over", STR(POST "Content-Length: 9223372036854775808\r\n" END), "413"},
        {"F7-64", STR(POST "Content-Length: 18446744073709551615\r\n" END), "413"},
        {"F7-64-over", STR(POST "Content-Length: 18446744073709551616\r\n" END), "413"},
        {"F7-40", STR(POST "Content-Length: 1234567890123456789012345678901234567890\r\n" END),
         "413"},
        {"F8", STR(GET "Content-Length: 5\r\n" END "GET /" NEXT), "GET / a keep 5" NEXT_PARSED},
        {"F9", STR("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END DONE), "400"},
        {"F10-gzip", STR(POST "Transfer-Encoding: gzip, chunked\r\n" END DONE), "501"},
        {"F10-identity", STR(POST "Transfer-Encoding: identity\r\n" END DONE), "400"},
        {"F10-garbage", STR(POST "Transfer-Encoding: blegh\r\n" END DONE), "400"},
        {"F10-empty", STR(POST "Transfer-Encoding:\r\n" END DONE), "400"},
        {"F11-last", STR(POST "Transfer-Encoding: chunked, gzip\r\n" END DONE), "400"},
        {"F11-twice", STR(POST "Transfer-Encoding: chunked, chunked\r\n" END DONE), "400"},
        {"F11-lines",
         STR(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END DONE), "400"},
        {"F11-lines-other",
         STR(POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n" END DONE), "400"},
        {"F12-before", STR(POST "Transfer-Encoding: ,chunked\r\n" END DONE), "400"},
        {"F12-behind", STR(POST "Transfer-Encoding: chunked,\r\n" END DONE), "400"},
        {"F12-prefix", STR(POST "Transfer-Encoding: xchunked\r\n" END DONE), "400"},
        {"F12-double", STR(POST "Transfer-Encoding: chunkedchunked\r\n" END DONE), "400"},
        {"F12-quote", STR(POST "Transfer-Encoding: \"chunked\"\r\n" END DONE), "400"},
        {"F12-quoted", STR(POST "Transfer-Encoding: x=\"a, chunked\r\n" END DONE), "400"},
        {"F12-parameter", STR(POST "Transfer-Encoding: chunked;a=b\r\n" END DONE), "400"},
        {"F12-case", STR(POST "Transfer-Encoding: Chunked\r\n" END DONE NEXT),
         "POST / a keep 0" NEXT_PARSED},
        {"F13-hex", STR(CHUNKED "0x5\r\nhello\r\n" DONE), "400"},
        {"F13-plus", STR(CHUNKED "+5\r\nhello\r\n" DONE), "400"},
        {"F13-minus", STR(CHUNKED "-1\r\nhello\r\n" DONE), "400"},
        {"F13-before", STR(CHUNKED " 5\r\nhello\r\n" DONE), "400"},
        {"F13-behind", STR(CHUNKED "5 \r\nhello\r\n" DONE), "400"},
        {"F13-tab", STR(CHUNKED "5\t\r\nhello\r\n" DONE), "400"},
        {"F13-underscore", STR(CHUNKED "5_0\r\nhello\r\n" DONE), "400"},
        {"F13-empty", STR(CHUNKED "\r\nhello\r\n" DONE), "400"},
        {"F13-letter", STR(CHUNKED "G\r\nhello\r\n" DONE), "400"},
        {"F13-ok", STR(CHUNKED "5\r\nhello\r\n0000B\r\n01234567890\r\na\r\n0123456789\r\n" DONE),
         "POST / a keep 26"},
        {"F14-17", STR(CHUNKED "10000000000000000\r\n"), "400"},
        {"F14-64", STR(CHUNKED "ffffffffffffffff\r\n"), "413"},
        {"F14-63", STR(CHUNKED "7fffffffffffffff\r\n"), "413"},
        {"F14-wrap", STR(CHUNKED "1\r\nx\r\nffffffffffffffff\r\n"), "413"},
        {"F15", STR(CHUNKED "00000000000000000000000000000000000000005\r\nhello\r\n" DONE), "400"},
        {"F16-lf", STR(CHUNKED "5\nhello\r\n" DONE), "400"},
        {"F16-cr", STR(CHUNKED "5\rhello\r\n" DONE), "400"},
        {"F16-crcr", STR(CHUNKED "5\r\r\nhello\r\n" DONE), "400"},
        {"F16-x", STR(CHUNKED "5\rX\r\nhello\r\n" DONE), "400"},
        {"F17-none", STR(CHUNKED "5\r\nhello" DONE), "400"},
        {"F17-lf", STR(CHUNKED "5\r\nhello\n" DONE), "400"},
        {"F17-cr", STR(CHUNKED "5\r\nhello\rX" DONE), "400"},
        {"F17-many", STR(CHUNKED "5\r\nhello!\r\n" DONE), "400"},
        {"F17-few", STR(CHUNKED "5\r\nhell\r\n" DONE), "400"},
        {"F18", STR(CHUNKED "5;a=bc;d=\"e\"\r\nhello\r\n" DONE), "POST / a keep 5"},
        {"F18-flag", STR(CHUNKED "5;a;b=c\r\nhello\r\n0;x=\"\\\"\\\\;\t \"\r\n\r\n" NEXT),
         "POST / a keep 5" NEXT_PARSED},
        {"F19-cr", STR(CHUNKED "5;a=\rb\r\nhello\r\n" DONE), "400"},
        {"F19-lf", STR(CHUNKED "5;a=b\nhello\r\n" DONE), "400"},
        {"F19-quote", STR(CHUNKED "5;a=\"b\r\nhello\r\n" DONE), "400"},
        {"F19-behind", STR(CHUNKED "5;a=\"b\"c\r\nhello\r\n" DONE), "400"},
        {"F19-quote-late", STR(CHUNKED "5;a=b\"\r\nhello\r\n" DONE), "400"},
        {"F19-nul", STR(CHUNKED "5;a=\"\0\"\r\nhello\r\n" DONE), "400"},
        {"F19-escape", STR(CHUNKED "5;a=\"\\\r\"\r\nhello\r\n" DONE), "400"},
        {"F19-no-name", STR(CHUNKED "5;\r\nhello\r\n" DONE), "400"},
        {"F19-no-name-value", STR(CHUNKED "5;=b\r\nhello\r\n" DONE), "400"},
        {"F19-no-value", STR(CHUNKED "5;a=\r\nhello\r\n" DONE), "400"},
        {"F19-space", STR(CHUNKED "5;a = b\r\nhello\r\n" DONE), "400"},
        {"F20", STR(CHUNKED "0\r\nXX\r\n"), "400"},
        {"F20-lf", STR(CHUNKED "0\r\n\n"), "400"},
        {"F20-cr", STR(CHUNKED "0\r\n\rX"), "400"},
        {"F21",
         STR(CHUNKED "5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: evil\r\n"
                     "Authorization: x\r\nTransfer-Encoding: gzip\r\n\r\n" NEXT),
         "POST / a keep 5" NEXT_PARSED},
        {"F21-bad", STR(CHUNKED "0\r\nA : b\r\n\r\n"), "400"},
        {"F21-fold", STR(CHUNKED "0\r\nA: b\r\n c\r\n\r\n"), "400"},
        {"F23", STR(POST "Content-Length: 5\r\n" END "hell"), "more"},
        {"F23-chunk", STR(CHUNKED "5\r\nhello\r\n"), "more"},
        {"F29", STR(CHUNKED "5\r\nhello\r\n" DONE "\0"), "POST / a keep 5; 400"},
        {"F29-length", STR(POST "Content-Length: 5\r\n" END "hello!"), "POST / a keep 5; more"},
    };
    check_rows(rows, COUNT(rows));
}

/* Each limit just below, at and just above it: `unit` is repeated between `before` and `behind`. */
static void limits(void **state)
{
    (void)state;
    enum { HEAD_REST = sizeof(GET "X: " END END) - 1, TRAILER_REST = sizeof("A: " END END) - 1 };
    static const struct {
        const char *id, *before, *unit, *behind;
        size_t times; /* at the limit */
        const char *below, *at, *above;
    } rows[] = {
        {"H30", "GET /", "a", " HTTP/1.1\r\n" HOST END, HTTP_TARGET_BYTES_MAX - 1,
         "GET #8191 a keep 0", "GET #8192 a keep 0", "414"},
        {"H30-endless", "GET /", "a", "", HTTP_TARGET_BYTES_MAX - 1, "more", "more", "414"},
        {"H31-field", GET "X: ", "x", END END, HTTP_HEAD_BYTES_MAX - HEAD_REST, "GET / a keep 0",
         "GET / a keep 0", "431"},
        {"H31-endless", GET "X: ", "x", "", HTTP_HEAD_BYTES_MAX - HEAD_REST + 3, "more", "more",
         "431"},
        {"H31-name", GET, "x", "", HTTP_HEAD_BYTES_MAX - (sizeof GET - 1) - 1, "more", "more",
         "431"},
        {"H31-count", GET, "A: b\r\n", END, HTTP_FIELDS_MAX - 1, "GET / a keep 0", "GET / a keep 0",
         "431"},
        {"H28-long", "", "M", " / HTTP/1.1\r\n" HOST END, HTTP_METHOD_BYTES_MAX, "501", "501",
         "501"},
        {"H28-endless", "", "M", "", HTTP_METHOD_BYTES_MAX, "more", "more", "501"},
        {"F15", CHUNKED, "0", "\r\n\r\n", HTTP_CHUNK_DIGITS_MAX, "POST / a keep 0",
         "POST / a keep 0", "400"},
        {"F19-long", CHUNKED "1;", "a", "\r\nx\r\n" DONE, HTTP_CHUNK_EXT_BYTES_MAX - 1,
         "POST / a keep 1", "POST / a keep 1", "400"},
        {"F19-total", CHUNKED "1;abc\r\nx\r\n1;", "a", "\r\nx\r\n" DONE,
         HTTP_CHUNK_EXT_BYTES_MAX - 5, "POST / a keep 2", "POST / a keep 2", "400"},
        {"F19-endless", CHUNKED "1;a=\"", "a", "", HTTP_CHUNK_EXT_BYTES_MAX - 4, "more", "more",
         "400"},
        {"F22", CHUNKED "0\r\nA: ", "x", END END, HTTP_TRAILER_BYTES_MAX - TRAILER_REST,
         "POST / a keep 0", "POST / a keep 0", "431"},
        {"F22-count", CHUNKED "0\r\n", "A: b\r\n", END, HTTP_FIELDS_MAX, "POST / a keep 0",
         "POST / a keep 0", "431"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *expected[] = {rows[i].below, rows[i].at, rows[i].above};
        for (size_t k = 0; k < COUNT(expected); k++) {
            struct buf bytes;
            buf_init(&bytes, 64 * 1024);
            buf_append(&bytes, str_c(rows[i].before));
            for (size_t n = 0; n + 1 < rows[i].times + k; n++)
                buf_append(&bytes, str_c(rows[i].unit));
            buf_append(&bytes, str_c(rows[i].behind));
            check_trace(rows[i].id, buf_str(&bytes), BODY_MAX, expected[k]);
            buf_done(&bytes);
        }
    }
}

static void body_limits(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        str bytes;
        uint64_t body_bytes;
    } rows[] = {
        {"F25-length", STR(POST "Content-Length: 5\r\n" END "hello"), 5},
        {"F25-chunk", STR(CHUNKED "5\r\nhello\r\n" DONE), 5},
        {"F25-chunks", STR(CHUNKED "2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n" DONE), 5},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_trace(rows[i].id, rows[i].bytes, rows[i].body_bytes + 1, "POST / a keep 5");
        check_trace(rows[i].id, rows[i].bytes, rows[i].body_bytes, "POST / a keep 5");
        check_trace(rows[i].id, rows[i].bytes, UINT64_MAX, "POST / a keep 5");
        check_trace(rows[i].id, rows[i].bytes, rows[i].body_bytes - 1, "413");
        check_trace(rows[i].id, rows[i].bytes, 0, "413");
    }
}

static void parse_one(struct http1 *parser, str bytes)
{
    http1_init(parser);
    assert_int_equal(http1_feed(parser, &bytes), HTTP1_HEAD);
    assert_int_equal(bytes.len, 0);
}

static void check_results(const struct http_head *head)
{
    assert_int_equal(head->method, HTTP_PATCH);
    assert_string_equal(http_method_name(head->method), "PATCH");
    assert_int_equal(head->minor, 1);
    assert_str(head->target, STR("/a%20b/c?x=1&y=?2"));
    assert_str(head->path, STR("/a%20b/c"));
    assert_str(head->query, STR("x=1&y=?2"));
    assert_str(head->host, STR("a:80"));
    assert_int_equal(head->field_count, 6);
    assert_str(head->fields[2].name, STR("x-y"));
    assert_str(head->fields[2].value, STR("v v"));
    assert_true(head->keep_alive && head->expect_continue && head->has_length && !head->chunked);
    assert_int_equal(head->length, 3);

    assert_str(http_head_get(head, STR("ACCEPT")), STR("text/html , \tapplication/JSON"));
    assert_null(http_head_get(head, STR("Accep")).p);
    assert_true(http_head_has_token(head, STR("accept"), STR("application/json")));
    assert_true(http_head_has_token(head, STR("accept"), STR("*/*")));
    assert_false(http_head_has_token(head, STR("accept"), STR("text")));
    assert_false(http_head_has_token(head, STR("none"), STR("")));
}

/* A copy is the same when its parser is gone. */
static void results(void **state)
{
    (void)state;
    struct http1 parser;
    struct arena arena;
    arena_init(&arena);
    parse_one(&parser, STR("PATCH /a%20b/c?x=1&y=?2 HTTP/1.1\r\nHost: a:80\r\n"
                           "Accept: text/html , \tapplication/JSON\r\nx-y:\t v v \t\r\n"
                           "Expect: 100-continue\r\naccept: */*\r\nContent-Length: 3\r\n\r\n"));
    check_results(&parser.head);
    struct http_head *copy = http_head_copy(&arena, &parser.head);
    http1_done(&parser);
    check_results(copy);
    arena_done(&arena);
}

static void special_targets(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *path, *query, *host;
    } rows[] = {
        {"GET http://b:1/x?y HTTP/1.1\r\n" HOST END, "/x", "y", "b:1"},
        {"GET http://b HTTP/1.1\r\n" HOST END, "/", "", "b"},
        {"GET HTTP://[::1]?q/r HTTP/1.1\r\n" HOST END, "/", "q/r", "[::1]"},
        {"OPTIONS * HTTP/1.1\r\n" HOST END, "*", "", "a"},
        {"GET /? HTTP/1.0\r\n\r\n", "/", "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http1 parser;
        parse_one(&parser, str_c(rows[i].bytes));
        assert_str(parser.head.path, str_c(rows[i].path));
        assert_str(parser.head.query, str_c(rows[i].query));
        assert_str(parser.head.host, str_c(rows[i].host));
        http1_done(&parser);
    }
}

/* 100 is owed only to who waits for it: HTTP/1.1 and a body to come. */
static void expect_continue(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool expected;
    } rows[] = {
        {POST "Expect: 100-continue\r\nContent-Length: 1\r\n" END, true},
        {POST "Expect: 100-CONTINUE\r\nTransfer-Encoding: chunked\r\n" END, true},
        {POST "Expect: 100-continue\r\nContent-Length: 0\r\n" END, false},
        {GET "Expect: 100-continue\r\n" END, false},
        {"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" END, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http1 parser;
        parse_one(&parser, str_c(rows[i].bytes));
        assert_int_equal(parser.head.expect_continue, rows[i].expected);
        http1_done(&parser);
    }
}

/* Between requests a connection costs the struct and nothing else. */
static void idle(void **state)
{
    (void)state;
    assert_true(sizeof(struct http1) < 400);
    struct http1 parser;
    http1_init(&parser);
    assert_false(http1_started(&parser));
    str input = STR("\r\n");
    assert_int_equal(http1_feed(&parser, &input), HTTP1_MORE);
    assert_false(http1_started(&parser));
    input = STR("G");
    assert_int_equal(http1_feed(&parser, &input), HTTP1_MORE);
    assert_true(http1_started(&parser));
    input = STR("ET / HTTP/1.1\r\n" HOST END "GET");
    assert_int_equal(http1_feed(&parser, &input), HTTP1_HEAD);
    assert_str(input, STR("GET"));
    str none = {NULL, 0};
    assert_int_equal(http1_feed(&parser, &none), HTTP1_END);
    assert_int_equal(http1_feed(&parser, &input), HTTP1_END);
    assert_str(input, STR("GET"));
    assert_true(http1_started(&parser));

    http1_next(&parser);
    assert_false(http1_started(&parser));
    assert_null(parser.line.p);
    assert_null(parser.head.fields);
    assert_int_equal(http1_feed(&parser, &none), HTTP1_MORE);

    /* A request without a body may be left behind its head. */
    input = STR(GET END "G");
    assert_int_equal(http1_feed(&parser, &input), HTTP1_HEAD);
    http1_next(&parser);
    assert_false(http1_started(&parser));
    assert_str(input, STR("G"));
    http1_done(&parser);
}

/* A refusal is final: the bytes behind it are never taken for a request. */
static void after_an_error(void **state)
{
    (void)state;
    struct http1 parser;
    http1_init(&parser);
    str input = STR("\n");
    assert_int_equal(http1_feed(&parser, &input), HTTP1_ERROR);
    assert_int_equal(parser.error, ERR_BAD_REQUEST);
    assert_non_null(parser.reason);
    input = STR(GET END);
    assert_int_equal(http1_feed(&parser, &input), HTTP1_ERROR);
    assert_str(input, STR(GET END));
    http1_done(&parser);
}

/* Without http1_body_max no body is let in. */
static void body_unasked(void **state)
{
    (void)state;
    struct http1 parser;
    parse_one(&parser, STR(POST "Content-Length: 1\r\n" END));
    str none = {NULL, 0};
    assert_int_equal(http1_feed(&parser, &none), HTTP1_ERROR);
    assert_int_equal(parser.error, ERR_TOO_LARGE);
    http1_done(&parser);
}

/* F26: the bound is far above what linear work takes under a sanitizer, and far below what any
 * other does. */
static void million_chunks(void **state)
{
    (void)state;
    enum { CHUNKS = 1000 * 1000, SECONDS_MAX = 5 };
    struct buf bytes;
    buf_init(&bytes, 64 * CHUNKS);
    buf_append(&bytes, STR(CHUNKED));
    for (int i = 0; i < CHUNKS; i++) buf_append(&bytes, STR("1\r\nx\r\n"));
    buf_append(&bytes, STR(DONE));
    for (uint64_t cuts = TRACE_WHOLE; cuts <= TRACE_BYTES; cuts++) {
        struct http1_trace trace;
        http1_trace_init(&trace);
        clock_t begin = clock();
        http1_trace_run(&trace, buf_str(&bytes), CHUNKS, cuts);
        assert_true(clock() - begin < (clock_t)SECONDS_MAX * CLOCKS_PER_SEC);
        assert_str(buf_str(&trace.text), STR("POST / a keep 1000000"));
        http1_trace_done(&trace);
    }
    buf_done(&bytes);
}

static void decoding(void **state)
{
    (void)state;
    static const struct {
        str encoded;
        bool plus;
        enum err expected;
        str decoded;
    } rows[] = {
        {STR(""), false, OK, STR("")},
        {STR("/a%20b%2F%c3%A4"), false, OK, STR("/a b/\xc3\xa4")},
        {STR("a+b"), false, OK, STR("a+b")},
        {STR("a+b%2b"), true, OK, STR("a b+")},
        {STR("%25zz"), false, OK, STR("%zz")},
        {STR("%zz"), false, ERR_BAD_REQUEST, STR("")},
        {STR("%4"), false, ERR_BAD_REQUEST, STR("")},
        {STR("a%"), false, ERR_BAD_REQUEST, STR("")},
        {STR("%g0"), false, ERR_BAD_REQUEST, STR("")},
        {STR("%+1"), true, ERR_BAD_REQUEST, STR("")},
        {STR("%00"), false, ERR_BAD_REQUEST, STR("")},
        {STR("a\0b"), false, ERR_BAD_REQUEST, STR("")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *out = malloc(rows[i].encoded.len + 1);
        size_t len = 77;
        assert_int_equal(http1_decode(rows[i].encoded, rows[i].plus, out, &len), rows[i].expected);
        if (rows[i].expected)
            assert_int_equal(len, 77);
        else
            assert_str(((str){out, len}), rows[i].decoded);
        free(out);
    }
}

static void queries(void **state)
{
    (void)state;
    static const struct {
        const char *query, *name;
        enum err expected;
        const char *value; /* NULL: absent */
    } rows[] = {
        {"after=12&limit=50", "limit", OK, "50"},
        {"after=12&limit=50", "after", OK, "12"},
        {"a=1&a=2", "a", OK, "1"},
        {"a=b=c", "a", OK, "b=c"},
        {"%61b=1", "ab", OK, "1"},
        {"a+b=1", "a b", OK, "1"},
        {"a=x+y%26z", "a", OK, "x y&z"},
        {"a", "a", OK, ""},
        {"a=", "a", OK, ""},
        {"&&a=1", "a", OK, "1"},
        {"", "a", OK, NULL},
        {"ab=1", "a", OK, NULL},
        {"a=1", "ab", OK, NULL},
        {"A=1", "a", OK, NULL},
        {"b=%zz&%=1&a=1", "a", OK, "1"},
        {"a=%zz&a=1", "a", ERR_BAD_REQUEST, NULL},
        {"a=%00", "a", ERR_BAD_REQUEST, NULL},
        {"a=12345678", "a", OK, "12345678"},
        {"a=%31%32345678", "a", OK, "12345678"},
        {"a=123456789", "a", ERR_INVALID_FIELD, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char out[8];
        str value = STR("untouched");
        enum err e =
            http1_query(str_c(rows[i].query), str_c(rows[i].name), out, sizeof out, &value);
        assert_int_equal(e, rows[i].expected);
        if (e)
            assert_str(value, STR("untouched"));
        else if (rows[i].value)
            assert_str(value, str_c(rows[i].value));
        else
            assert_null(value.p);
        assert_true(e || !rows[i].value || value.p);
    }
}

static void cookies(void **state)
{
    (void)state;
    static const struct {
        const char *cookies, *name, *value; /* NULL: absent */
    } rows[] = {
        {"a=1; b=2", "a", "1"},    {"a=1; b=2", "b", "2"},  {"a=1;b=2", "b", "2"},
        {"a=1; a=2", "a", "1"},    {"a=", "a", ""},         {"a=b=c", "a", "b=c"},
        {"a=\"x\"", "a", "\"x\""}, {"xa=1; a=2", "a", "2"}, {"A=1", "a", NULL},
        {"a", "a", NULL},          {"", "a", NULL},         {"ab=1", "a", NULL},
        {";; ;a=1", "a", "1"},     {"=1", "a", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str value = http1_cookie(str_c(rows[i].cookies), str_c(rows[i].name));
        if (!rows[i].value)
            assert_null(value.p);
        else
            assert_str(value, str_c(rows[i].value));
        assert_int_equal(value.p != NULL, rows[i].value != NULL);
    }
}

int test_http1(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(framing),
        cmocka_unit_test(limits),
        cmocka_unit_test(body_limits),
        cmocka_unit_test(results),
        cmocka_unit_test(special_targets),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(idle),
        cmocka_unit_test(after_an_error),
        cmocka_unit_test(body_unasked),
        cmocka_unit_test(million_chunks),
        cmocka_unit_test(decoding),
        cmocka_unit_test(queries),
        cmocka_unit_test(cookies),
    };
    return cmocka_run_group_tests_name("net/http1", tests, NULL, NULL);
}

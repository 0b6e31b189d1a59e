/* SPDX-License-Identifier: Apache-2.0
 *
 * For comparing the request parser with others: each line of standard input is what a connection
 * sends, in hexadecimal; each line of output is what we make of it (http1_trace.h says how that
 * reads). The argument is the largest body, in bytes.
 */
#include "net/http1_int.h"
#include "net/http1_trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONNECTION_BYTES_MAX = 4 * 1024 * 1024 };

static bool parse_hex(str line, struct buf *bytes)
{
    for (; line.len >= 2; line = str_drop(line, 2)) {
        int high = char_hex(line.p[0]), low = char_hex(line.p[1]);
        if (high < 0 || low < 0) return false;
        buf_char(bytes, (char)(high << 4 | low));
    }
    return line.len == 0 && !bytes->full;
}

static bool print_verdict(str line, uint64_t body_bytes_max)
{
    AUTO(buf_done) struct buf bytes;
    buf_init(&bytes, CONNECTION_BYTES_MAX);
    if (!parse_hex(line, &bytes)) return false;
    AUTO(http1_trace_done) struct http1_trace trace;
    http1_trace_init(&trace);
    http1_trace_run(&trace, buf_str(&bytes), body_bytes_max, TRACE_WHOLE);
    printf("%.*s\n", STR_ARG(buf_str(&trace.text)));
    return true;
}

int main(int argc, char **argv)
{
    uint64_t body_bytes_max;
    if (argc != 2 || str_to_u64(str_c(argv[1]), &body_bytes_max)) {
        fputs("usage: http1_verdict LARGEST-BODY < LINES-OF-HEX\n", stderr);
        return 2;
    }
    char *text = NULL;
    size_t size = 0;
    bool good = true;
    ssize_t len;
    while (good && (len = getline(&text, &size, stdin)) > 0) {
        str line = {text, (size_t)len};
        if (text[len - 1] == '\n') line.len--;
        good = print_verdict(line, body_bytes_max);
    }
    free(text);
    if (!good) fputs("http1_verdict: not hexadecimal, or too long\n", stderr);
    return good ? 0 : 1;
}

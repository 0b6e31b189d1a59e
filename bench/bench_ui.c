/* SPDX-License-Identifier: Apache-2.0
 *
 * How many bytes of UiHints a second become cards: `bench_ui FILE`, where each line of FILE is a
 * document. A compilation is the parse and the compiler, as a server does it; beside it stand the
 * parse alone and jansson's parse of the same lines. Tree and card are freed inside the measured
 * loop. The three take turns and the best turn of each counts; time is the processor's, so a busy
 * machine disturbs the figures little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "json_peer.h"
#include "ui/compile.h"

enum { TURNS = 9, FILE_BYTES_MAX = 64 * 1024 * 1024 };

static void parse_ours(struct arena *arena, str line)
{
    struct json *root;
    if (json_parse(arena, line, &root, NULL)) abort();
}

static void parse_jansson(struct arena *arena, str line)
{
    (void)arena;
    json_peer_parse(line);
}

static void compile(struct arena *arena, str line)
{
    static const struct ui_context context = {.locale = {"en", 2}};
    struct json *hints;
    str schema;
    if (json_parse(arena, line, &hints, NULL)) abort();
    if (ui_compile(arena, hints, &context, &schema, NULL) || !schema.len) abort();
}

/* MB of lines per second of processor time. */
static double turn(void (*work)(struct arena *, str), struct arena *arena, str text)
{
    struct timespec from, to;
    size_t bytes = text.len;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    while (text.len) {
        work(arena, str_split(&text, '\n'));
        arena_reset(arena);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return (double)bytes * 1e3 / ns;
}

static void read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    if (!file) abort();
    for (size_t got = 1; got;) {
        char *room = buf_room(out, 64 * 1024);
        if (!room) abort();
        got = fread(room, 1, 64 * 1024, file);
        buf_added(out, got);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    static void (*const works[])(struct arena *, str) = {compile, parse_ours, parse_jansson};
    double best[COUNT(works)] = {0};
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf text;
    if (argc != 2) return 2;
    arena_init(&arena);
    buf_init(&text, FILE_BYTES_MAX);
    read_file(argv[1], &text);
    for (int i = 0; i < TURNS; i++)
        for (size_t k = 0; k < COUNT(works); k++) {
            double now = turn(works[k], &arena, buf_str(&text));
            if (now > best[k]) best[k] = now;
        }
    printf("{\"bench\":\"compile_ui\",\"bytes\":%zu,\"compile_mb_s\":%.1f,\"parse_mb_s\":%.1f,"
           "\"jansson_mb_s\":%.1f}\n",
           text.len, best[0], best[1], best[2]);
    return 0;
}

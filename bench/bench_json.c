/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a parse takes, ours beside jansson's, on one chunk of a model's stream and on a larger
 * document. Both parsers refuse duplicate keys; both results are freed inside the measured loop.
 * The two take turns and the best turn of each counts, so a busy machine disturbs the ratio little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "json_peer.h"

enum { TURNS = 15, TURN_BYTES = 8 * 1000 * 1000, DOCUMENT_BYTES = 20 * 1000 };

static const char chunk[] =
    "{\"id\":\"chatcmpl-9yKq2VwXz7TnB4rLmC8dEaPfG\",\"object\":\"chat.completion.chunk\","
    "\"created\":1723456789,\"model\":\"gpt-4o-mini-2024-07-18\","
    "\"system_fingerprint\":\"fp_48196bc67a\",\"choices\":[{\"index\":0,"
    "\"delta\":{\"content\":\" hello\"},\"finish_reason\":null}]}";

static void parse_ours(struct arena *arena, str text)
{
    struct json *root;
    if (json_parse(arena, text, &root, NULL)) abort();
    arena_reset(arena);
}

static void parse_jansson(struct arena *arena, str text)
{
    (void)arena;
    json_peer_parse(text);
}

static double turn_us(void (*parse)(struct arena *, str), struct arena *arena, str text)
{
    size_t count = TURN_BYTES / text.len;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (size_t i = 0; i < count; i++) parse(arena, text);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return ns / 1e3 / (double)count;
}

static void compare(const char *name, str text)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    double ours = 0, jansson = 0;
    for (int i = 0; i < TURNS; i++) {
        double a = turn_us(parse_ours, &arena, text), b = turn_us(parse_jansson, &arena, text);
        if (i == 0 || a < ours) ours = a;
        if (i == 0 || b < jansson) jansson = b;
    }
    printf("{\"bench\":\"%s\",\"bytes\":%zu,\"ours_us\":%.3f,\"jansson_us\":%.3f,\"ratio\":%.2f}\n",
           name, text.len, ours, jansson, jansson / ours);
}

/* A history page: messages with escapes, Chinese text, numbers and nested tool calls. */
static void write_document(struct buf *out)
{
    struct json_writer w;
    json_write_begin(&w, out);
    json_array(&w);
    for (uint64_t i = 0; out->len < DOCUMENT_BYTES; i++) {
        json_object(&w);
        json_key(&w, STR("seq"));
        json_number_u64(&w, 1723456789000 + i);
        json_member(&w, STR("role"), i % 2 ? STR("assistant") : STR("user"));
        json_member(&w, STR("content"),
                    STR("Move the \"weekly\" meeting,\nplease: 把周会改到星期五下午三点。"));
        json_key(&w, STR("calls"));
        json_array(&w);
        json_raw(&w, STR("{\"name\":\"calendar_write\",\"args\":{\"id\":42,\"hours\":1.5}}"));
        json_bool(&w, true);
        json_null(&w);
        json_array_end(&w);
        json_object_end(&w);
    }
    json_array_end(&w);
}

int main(void)
{
    AUTO(buf_done) struct buf document;
    buf_init(&document, 2 * DOCUMENT_BYTES);
    write_document(&document);
    compare("json_parse_chunk", str_c(chunk));
    compare("json_parse_document", buf_str(&document));
    return 0;
}

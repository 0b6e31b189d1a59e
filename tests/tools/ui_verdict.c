/* SPDX-License-Identifier: Apache-2.0
 *
 * The card compiler as a filter, for the comparison with another validator in
 * tests/api/ui-validate.test.mjs. Many documents in one process; numbers are 4 bytes, the small end
 * first:
 *
 *     in    locale ('z' or 'e'), length, UiHints
 *     out   verdict ('c' card, 'r' refused, 'n' no JSON), length, bytes
 *
 * The bytes are the schema; or the JSON Pointer of what was refused, a line end and the reason. Each
 * document is compiled twice, from a text of its own; it ends with 1 if the two differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "ui/compile.h"

enum { HEAD_BYTES = 5, DOCUMENT_BYTES_MAX = 4 * UI_HINTS_BYTES_MAX };

static size_t number(const unsigned char at[static 4])
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static bool answer(char verdict, str bytes)
{
    unsigned char head[HEAD_BYTES] = {(unsigned char)verdict, (unsigned char)bytes.len,
                                      (unsigned char)(bytes.len >> 8),
                                      (unsigned char)(bytes.len >> 16),
                                      (unsigned char)(bytes.len >> 24)};
    return fwrite(head, 1, sizeof head, stdout) == sizeof head &&
           fwrite(bytes.p, 1, bytes.len, stdout) == bytes.len;
}

/* One compilation, in the arena. A copy of exactly the document's size, so that a sanitizer sees a
 * read behind its end. */
static char compile(struct arena *arena, str document, bool zh, str *ret_bytes)
{
    char verdict = 'n';
    *ret_bytes = STR_EMPTY;
    char *exact = malloc(document.len ? document.len : 1);
    if (!exact) abort();
    memcpy(exact, document.p, document.len);
    struct json *hints = NULL;
    if (!json_parse(arena, (str){exact, document.len}, &hints, NULL)) {
        struct ui_context context = {.locale = zh ? STR("zh-CN") : STR("en")};
        struct fault why = {0};
        verdict = ui_compile(arena, hints, &context, ret_bytes, &why) ? 'r' : 'c';
        if (verdict == 'r') *ret_bytes = arena_printf(arena, "%s\n%s", why.field, why.text);
    }
    *ret_bytes = arena_str(arena, *ret_bytes);
    free(exact);
    return verdict;
}

static bool judge(str document, bool zh)
{
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    str bytes, again;
    char verdict = compile(&arena, document, zh, &bytes);
    if (compile(&arena, document, zh, &again) != verdict || !str_eq(bytes, again)) return false;
    return answer(verdict, bytes);
}

int main(void)
{
    static char document[DOCUMENT_BYTES_MAX];
    unsigned char head[HEAD_BYTES];
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        size_t len = number(head + 1);
        if (len > sizeof document || fread(document, 1, len, stdin) != len) return 1;
        if (!judge((str){document, len}, head[0] == 'z')) return 1;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

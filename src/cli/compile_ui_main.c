/* SPDX-License-Identifier: Apache-2.0
 *
 * `fermata compile-ui [FILE]`: the card that UiHints become, for whoever writes a tool. The schema
 * goes to standard output, a refusal with the place of the mistake to standard error. The language
 * is that of the terminal, as everywhere on the command line.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "ui/compile.h"

static enum err compile(struct arena *arena, str file, str *ret_schema, struct fault *reterr)
{
    bool input = file.len == 0 || str_eq(file, STR("-"));
    str text;
    enum err e = input ? file_read_input(arena, UI_HINTS_BYTES_MAX, &text, reterr)
                       : file_read(arena, file.p, UI_HINTS_BYTES_MAX, &text, reterr);
    if (e) return e;
    struct json *hints = NULL;
    struct json_error where;
    e = json_parse(arena, text, &hints, &where);
    if (e) return fault(reterr, e, "this is not JSON: %s at byte %zu", where.reason, where.offset);
    struct ui_context context = {.locale =
                                     lang_asked(environ) == LANG_ZH ? STR("zh-CN") : STR("en")};
    return ui_compile(arena, hints, &context, ret_schema, reterr);
}

int compile_ui_main(const struct config *config, struct arena *arena, const struct args *args)
{
    (void)config;
    struct fault why = {0};
    str schema;
    if (compile(arena, args->operand, &schema, &why)) {
        fprintf(stderr, "fermata: %s%s%s\n", why.field, why.field[0] ? ": " : "", why.text);
        return EXIT_FAILED;
    }
    /* On a terminal the prompt wants a line of its own; a file gets the bytes that the API answers. */
    bool ok = fwrite(schema.p, 1, schema.len, stdout) == schema.len;
    if (isatty(STDOUT_FILENO)) ok = putchar('\n') != EOF && ok;
    return fflush(stdout) == 0 && ok ? EXIT_OK : EXIT_FAILED;
}

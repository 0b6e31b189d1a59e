/* SPDX-License-Identifier: Apache-2.0 */
#include "config/kit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

enum { ENV_MAX = 64, ARGS_MAX = 8 };

int config_kit_setup(void **state)
{
    static struct config_kit f;
    f = (struct config_kit){.dir = "/tmp/fermata-config-XXXXXX"};
    arena_init(&f.arena);
    *state = &f;
    if (!getcwd(f.before, sizeof f.before) || !mkdtemp(f.dir)) return -1;
    return chdir(f.dir);
}

int config_kit_teardown(void **state)
{
    struct config_kit *f = *state;
    arena_done(&f->arena);
    static const char *const files[] = {"fermata.yaml",    "other.yaml",   "key",    "token.txt",
                                        "hook-secret.txt", "printed.yaml", "key.txt"};
    for (size_t i = 0; i < COUNT(files); i++) unlink(files[i]);
    if (chdir(f->before)) return -1;
    return rmdir(f->dir);
}

void config_kit_put(const char *path, str text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

enum err config_kit_load(struct config_kit *f, const char *env, const char *flags)
{
    char *environment[ENV_MAX + 1] = {0};
    struct config_arg args[ARGS_MAX];
    size_t env_count = 0, arg_count = 0;
    for (str rest = {env, env ? strlen(env) : 0}; rest.p;) {
        assert_true(env_count < ENV_MAX);
        environment[env_count++] = arena_cstr(&f->arena, str_split(&rest, '\n'));
    }
    for (str rest = {flags, flags ? strlen(flags) : 0}; rest.p;) {
        assert_true(arg_count < ARGS_MAX);
        str value = arena_str(&f->arena, str_split(&rest, '\n'));
        int option = config_flag(str_split(&value, '='));
        assert_true(option >= 0);
        args[arg_count++] = (struct config_arg){option, value};
    }
    f->fault = (struct fault){0};
    return config_load(&f->arena, args, arg_count, environment, &f->config, &f->fault);
}

void config_kit_ok(const struct config_kit *f, enum err e)
{
    if (e) fail_msg("refused: %s", f->fault.text);
}

void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("got \"%s\", expected \"...%s...\"", text, part);
}

void config_kit_print(const struct config_kit *f, struct buf *out)
{
    buf_init(out, CONFIG_PRINT_BYTES_MAX);
    config_print(&f->config, out);
    buf_char(out, '\0');
    assert_false(out->full);
}

void config_kit_strip(struct buf *out, const char *text)
{
    buf_init(out, CONFIG_PRINT_BYTES_MAX);
    for (str rest = str_c(text); rest.p;) {
        str line = str_split(&rest, '\n');
        for (size_t at = line.len; at-- > 0;) { /* the last "  # " is ours */
            if (!str_starts(str_drop(line, at), STR("  # "))) continue;
            line.len = at;
            break;
        }
        str bare = str_trim(line);
        if (!str_starts(bare, STR("#"))) buf_printf(out, "%.*s\n", STR_ARG(line));
    }
}

void config_kit_reads_back(struct config_kit *f)
{
    AUTO(buf_done) struct buf first;
    config_kit_print(f, &first);
    config_kit_put("printed.yaml", (str){first.p, first.len - 1});
    config_kit_ok(f, config_kit_load(f, NULL, "config=printed.yaml"));
    AUTO(buf_done) struct buf second;
    config_kit_print(f, &second);

    AUTO(buf_done) struct buf a;
    AUTO(buf_done) struct buf b;
    config_kit_strip(&a, first.p);
    config_kit_strip(&b, second.p);
    assert_str(buf_str(&b), buf_str(&a));
}

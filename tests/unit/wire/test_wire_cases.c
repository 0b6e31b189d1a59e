/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/wire/NAME.case: a log, and the exact bytes of each dialect. A file has the log as stage.h
 * describes it, then sections that begin with a line "== DIALECT ==". The bytes of a section are
 * those behind that line, up to the next one.
 *
 * UPDATE=1 writes the sections anew; the difference is for people to look at. A new case is a file
 * with a log and empty sections.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "check.h"
#include "wire/client.h"
#include "wire/stage.h"

#define FOLDER SOURCE_ROOT "/tests/wire"

enum { CASE_BYTES_MAX = 1024 * 1024, CASES_MIN = 16 };

/* name, dialect, joins where the log says so */
static const struct dialect {
    const char *name;
    enum stage_dialect dialect;
    bool joins;
} dialects[] = {
    {"native", STAGE_NATIVE, false},         {"native, cold", STAGE_NATIVE_COLD, false},
    {"ag-ui 1.0", STAGE_AGUI_NEW, false},    {"ag-ui 1.0, joins", STAGE_AGUI_NEW, true},
    {"ag-ui 0.0.59", STAGE_AGUI_OLD, false}, {"ag-ui 0.0.59, joins", STAGE_AGUI_OLD, true},
    {"socket", STAGE_SOCKET, false},         {"socket, cold", STAGE_SOCKET_COLD, false},
};

static ptrdiff_t join_of(const struct script *script)
{
    for (size_t i = 0; i < script->count; i++)
        if (script->lines[i].kind == LINE_JOIN) return (ptrdiff_t)i;
    fail_msg("nobody joins in this log");
    return STAGE_FROM_START;
}

/* Whatever bytes a case has, a client has to take them. */
static void check_client(struct arena *arena, const struct dialect *dialect, str bytes)
{
    struct client client;
    bool new = dialect->dialect == STAGE_AGUI_NEW;
    if (!new && dialect->dialect != STAGE_AGUI_OLD) return;
    client_init(&client, arena, new ? AGUI_NEW : AGUI_OLD);
    client_read(&client, bytes);
    client_check_over(&client);
}

/* "== NAME ==" */
static const struct dialect *section_of(str line)
{
    if (!str_starts(line, STR("== ")) || !str_ends(line, STR(" =="))) return NULL;
    str name = {line.p + 3, line.len - 6};
    for (size_t i = 0; i < COUNT(dialects); i++)
        if (str_eq(name, str_c(dialects[i].name))) return &dialects[i];
    fail_msg("no dialect: %.*s", STR_ARG(name));
    return NULL;
}

/* The text before the next section; *rest begins with that section's line, or is empty. */
static str before_section(str *rest)
{
    str text = *rest;
    size_t at = 0;
    while (at < text.len && !str_starts(str_drop(text, at), STR("== "))) {
        ptrdiff_t end = str_find_char(str_drop(text, at), '\n');
        at = end < 0 ? text.len : at + (size_t)end + 1;
    }
    *rest = str_drop(text, at);
    return (str){text.p, at};
}

static void write_file(const char *path, str text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

static void play_case(struct arena *arena, const char *name, str text, struct buf *file)
{
    bool update = getenv("UPDATE") != NULL;
    str rest = text, log = before_section(&rest);
    struct script script = wire_script_parse(arena, log);
    buf_append(file, log);
    assert_true(rest.len);
    while (rest.len) {
        str line = str_split(&rest, '\n'), expected = before_section(&rest);
        const struct dialect *dialect = section_of(line);
        struct buf out;
        buf_init(&out, CASE_BYTES_MAX);
        struct stage_reader reader = {.dialect = dialect->dialect,
                                      .join = dialect->joins ? join_of(&script) : STAGE_FROM_START};
        stage_play(&script, &reader, &out);
        check_client(arena, dialect, arena_str(arena, buf_str(&out)));
        if (!update && !str_eq(buf_str(&out), expected)) {
            print_message("%s, %s\n", name, dialect->name);
            assert_str(buf_str(&out), expected);
        }
        buf_append(file, line);
        buf_append(file, STR("\n"));
        buf_append(file, buf_str(&out));
        buf_done(&out);
    }
    assert_false(file->full);
}

static void cases(void **state)
{
    (void)state;
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!str_ends(str_c(entry->d_name), STR(".case"))) continue;
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf file;
        arena_init(&arena);
        buf_init(&file, CASE_BYTES_MAX);
        str path = arena_printf(&arena, FOLDER "/%s", entry->d_name), text;
        assert_int_equal(file_read(&arena, path.p, CASE_BYTES_MAX, &text, NULL), OK);
        play_case(&arena, entry->d_name, text, &file);
        if (getenv("UPDATE")) write_file(path.p, buf_str(&file));
        count++;
    }
    closedir(folder);
    assert_true(count >= CASES_MIN);
}

int test_wire_cases(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases)};
    return cmocka_run_group_tests_name("wire/cases", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs every group of unit tests, or those whose name contains an argument: `check json http1`; with
 * `=` before it the argument is the whole name: `check =json`.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(void);
} groups[] = {
#define TEST_GROUP(file) {#file, test_##file},
#include "tests.def"
#undef TEST_GROUP
};

static bool wanted(const char *name, int argc, char **argv)
{
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '=' ? strcmp(name, argv[i] + 1) == 0 : strstr(name, argv[i]) != NULL)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < COUNT(groups); i++)
        if (wanted(groups[i].name, argc, argv)) failed += groups[i].run();
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the program: nothing but the call of cli.c.
 */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Cautions: what should be known before the server is trusted, a row for each; and what children
 * cannot see. To add one: a row, and CAUTIONS_MAX.
 */
#include "duty/caution.h"

#include <unistd.h>

#include "base/log.h"
#include "net/wall.h"
#include "store/blob/blob.h"

struct wall *caution_wall(const struct config *config, struct arena *arena)
{
    const char *objects = blob_folder(config_blobs(config, arena));
    str hidden[] = {config->data, objects ? str_c(objects) : STR_EMPTY, config->secret_file};
    return wall_new(hidden, COUNT(hidden));
}

static bool has_children(const struct config *config)
{
    for (size_t i = 0; i < config->mcps.count; i++)
        if (config->mcps.items[i].command.count) return true;
    return false;
}

size_t cautions(const struct config *config, struct wall *wall, bool login,
                struct caution ret_list[static CAUTIONS_MAX])
{
    bool children = has_children(config);
    const struct {
        bool holds;
        struct caution caution;
    } rows[CAUTIONS_MAX] = {
        {geteuid() == 0,
         {"server.root", "runs as root: a mistake of ours, or a program under mcp.*.command, has "
                         "the whole machine; "
                         "give it a user of its own"}},
        {children && wall_kind(wall) == WALL_NONE,
         {"mcp.no_wall", "this system has neither namespaces nor Landlock for us: programs under "
                         "mcp.*.command can "
                         "read the data folder, and with it everything"}},
        {children && !login,
         {"mcp.no_login",
          "without a login programs under mcp.*.command can use this server as you do, and approve "
          "their own calls: make a key (`fermata key add`)"}},
    };
    size_t count = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].holds) ret_list[count++] = rows[i].caution;
    return count;
}

void cautions_log(const struct config *config, struct wall *wall, bool login)
{
    struct caution list[CAUTIONS_MAX];
    size_t count = cautions(config, wall, login, list);
    for (size_t i = 0; i < count; i++) log_warn(list[i].event, LOG_CSTR("text", list[i].text));
    if (has_children(config) && wall_kind(wall) != WALL_NONE)
        log_info("mcp.wall", LOG_CSTR("by", wall_names[wall_kind(wall)]));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the configuration makes of agents, models, tools and MCP servers: once at start, and again on
 * SIGHUP. A configuration that cannot be used changes nothing. No connection is dropped; runs go on
 * with the new agent at their next step, and calls under way end with the model and the tool that they
 * were started with. On the loop thread.
 */
#ifndef AGENTS_RELOAD_H
#define AGENTS_RELOAD_H

#include "config/config.h"

struct reload;
struct server;

struct reload_options {
    struct server *server;         /* its store, client, agents and toolbox are there */
    const struct config_arg *args; /* of the command line, for config_load */
    size_t arg_count;
    char *const *environment;
};

struct reload *reload_new(const struct reload_options *given);
void reload_free(struct reload *reload); /* after agents and toolbox; NULL is fine */

/* The configuration that the server was started with. Blocks: reads the store. */
enum err reload_first(struct reload *reload, const struct config *config, struct fault *reterr)
    MUST_USE;

/* Read it again, and take it. What happened is logged. While one is under way it begins again after
 * that one. */
void reload_again(struct reload *reload);

/* Options whose values differ and that only a start reads, "listen, limits.body"; empty if none. The
 * arena holds it. */
str reload_fixed(struct arena *arena, const struct config *now, const struct config *next);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Is there what the configuration names: models, servers of tools, chat platforms? For `fermata check`, before a
 * server runs or beside one. Nothing that costs money is asked, and no tool is called.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "config/config.h"

struct probe;
struct wall;

/* Ask a provider for its list of models, for at most PROBE_MS_MAX. OK: it is there and takes our key;
 * *ret_what says so for people. Else why not; never with a key in it. Blocks. */
enum err probe_model(struct arena *arena, const struct config_model *config, str *ret_what,
                     struct fault *reterr) MUST_USE;

/* Reach the platform of a channel, for at most PROBE_MS_MAX, with what it is given to prove who we are
 * where that can be asked without an effect. *ret_what says what was found. Blocks. */
enum err probe_channel(struct arena *arena, const struct config_channel *config, str *ret_what,
                       struct fault *reterr) MUST_USE;

/* Start, behind the wall, or reach all MCP servers of the configuration, and wait until each has said what it offers or
 * cannot, for at most PROBE_MS_MAX together. Blocks. All of these outlive it. */
struct probe *probe_new(struct arena *arena, const struct config *config, struct wall *wall);
void probe_free(struct probe *probe); /* their children are gone then; NULL is fine */

/* By its place in the configuration. ERR_NETWORK says why it is not there. The tools live as long as
 * the probe. */
enum err probe_server(const struct probe *probe, size_t index, struct tools *ret_tools,
                      struct fault *reterr) MUST_USE;

struct loop *probe_loop(const struct probe *probe);
struct client *probe_client(const struct probe *probe);

#endif

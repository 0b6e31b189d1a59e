/* SPDX-License-Identifier: Apache-2.0
 *
 * All tools there are: the calendar pack, HTTP tools of the configuration, and what MCP servers offer;
 * and the servers themselves, started and stopped as the configuration says. On the loop thread.
 *
 * The list is immutable. When a server offers something else, or after a reload, there is another one,
 * and everybody who asks from then on gets that. The lists before, their HTTP tools and servers that
 * are not configured any more stay until toolbox_free: runs and jobs in tool run still read them. A
 * server can only make so many (mcp.h), and a reload is an operator's act (RELOADS_MAX).
 */
#ifndef AGENTS_TOOLBOX_H
#define AGENTS_TOOLBOX_H

#include "config/config.h"
#include "mcp/client/mcp.h"

struct toolbox;

struct toolbox_options {
    struct loop *loop;
    struct wall *wall; /* between children and us */
    struct client *client;
    struct spool *spool;
    struct store *store;
    const struct tools *_Atomic *published; /* where the list is told to other threads */
    void (*on_change)(void *arg);           /* there is another list: toolbox_tools */
    void *arg;
};

struct toolbox *toolbox_new(const struct toolbox_options *options);

/* Stop the servers. on_stopped comes once, perhaps at once: when their children are gone, or after
 * SHUTDOWN_MS_MAX. */
void toolbox_stop(struct toolbox *toolbox, void (*on_stopped)(void *arg), void *arg);
void toolbox_free(struct toolbox *toolbox); /* after the last call; NULL is fine */

/* ---- one configuration after the other ---- */

/* The tools of a configuration but those of MCP servers: nothing is changed yet. The arena, which
 * outlives the toolbox, holds them. ERR_CONFIG says what is wrong. */
enum err toolbox_own(struct toolbox *toolbox, struct arena *arena, const struct config *config,
                     struct tools *ret_own, struct fault *reterr) MUST_USE;

/* What became of servers. */
struct toolbox_change {
    size_t kept, started, stopped;
};

/* From now on these are our own tools and the servers of the configuration, which outlives the
 * toolbox. A server whose options are as before is kept as it runs. Published, without on_change. On
 * failure everything is as before. */
enum err toolbox_take(struct toolbox *toolbox, const struct config *config, const struct tools *own,
                      struct toolbox_change *ret_change, struct fault *reterr) MUST_USE;

/* Tools that toolbox_own gave and that were not taken. */
void toolbox_drop(const struct tools *own);

/* The list; lives as long as the toolbox. */
const struct tools *toolbox_tools(const struct toolbox *toolbox);

/* ---- parts, for `fermata check` ---- */

/* The tools of config->http_tools, their schemas compiled, in the arena, which outlives them as
 * client and spool do. ERR_CONFIG says "fermata.yaml:3: tools[0].http.schema.properties.x: why".
 * Both may be NULL to see whether they can be made. */
enum err toolbox_http_tools(struct arena *arena, struct client *client, struct spool *spool,
                            const struct config *config, struct tools *ret_tools,
                            struct fault *reterr) MUST_USE;

/* The options of a server that stand in the configuration. The arena holds the lists. */
struct mcp_options toolbox_mcp_options(struct arena *arena, const struct config_mcp *config);

/* Tools in one list: first ours, then those of servers, in their order. A name that stands there
 * already is left out, as are those past TOOLS_MAX; `left_out` is called for each. */
struct tools toolbox_join(struct arena *arena, const struct tools *own, const struct tools *others,
                          size_t count, void (*left_out)(const struct tool *tool, const char *why));

#endif

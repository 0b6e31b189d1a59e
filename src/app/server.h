/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: everything that serve.c wires together. Exists in app/ only and is never passed below
 * it.
 */
#ifndef APP_SERVER_H
#define APP_SERVER_H

#include "agent/run.h"
#include "app/auth.h"
#include "app/config.h"
#include "app/metrics.h"

struct feeds;
struct http_server;
struct listener;
struct loop;
struct secret;
struct store;

struct server {
    const struct config *config;
    struct loop *loop;
    struct store *store;
    struct secret *secret;
    struct auth *auth;
    struct bus *bus;
    struct agent agent;
    struct runs *runs;
    struct feeds *feeds;
    int64_t epoch; /* of the lease on runs */
    struct metrics metrics;
    struct http_server *http, *admin; /* the public one, and the one on fermata.sock */
    struct listener *listener, *admin_listener;
    bool stopping;
    int stopped; /* of the two servers */
};

#endif

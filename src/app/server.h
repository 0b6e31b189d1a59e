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
#include "app/transfer.h"

struct agents;
struct blobs;
struct client;
struct clockwork;
struct feeds;
struct http_server;
struct inbox;
struct keeper;
struct listener;
struct loop;
struct secret;
struct sockets;
struct spool;
struct store;
struct sweeper;
struct webhooks;

struct server {
    const struct config *config;
    struct loop *loop;
    struct store *store;
    struct secret *secret;
    struct auth *auth;
    struct bus *bus;
    struct agent agent;
    struct agents *agents; /* what it is made from, and its settings */
    struct arena arena;    /* of what is made at start and stays */
    struct client *client; /* to tools and webhooks */
    struct tools tools;    /* all there are */
    struct saver saver;
    struct spool *spool;
    struct keeper *keeper; /* of payloads that wait for object storage */
    struct blobs *blobs;
    struct runs *runs;
    struct clockwork *clockwork;
    struct sweeper *sweeper;
    struct webhooks *webhooks;
    struct feeds *feeds;
    struct inbox *inbox;     /* who is told of what waits for people */
    struct sockets *sockets; /* WebSockets */
    struct metrics metrics;
    struct transfers transfers;       /* files on their way in and out */
    struct http_server *http, *admin; /* the public one, and the one on fermata.sock */
    struct listener *listener, *admin_listener;
    bool stopping;
    int stopped; /* parts that have come to rest */
};

#endif

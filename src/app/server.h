/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: everything that serve.c wires together. Exists in app/ only and is never passed below
 * it.
 */
#ifndef APP_SERVER_H
#define APP_SERVER_H

#include "agent/run.h"
#include "app/config/config.h"
#include "app/http/auth.h"
#include "app/http/metrics.h"
#include "app/http/transfer.h"
#include "app/mcp/server.h"

struct agents;
struct blobs;
struct channel_logins;
struct channels;
struct client;
struct clockwork;
struct feeds;
struct http_server;
struct inbox;
struct keeper;
struct listener;
struct loop;
struct reload;
struct secret;
struct sockets;
struct spool;
struct store;
struct sweeper;
struct toolbox;
struct webhooks;

struct server {
    const struct config *config; /* of the start; agents have newer ones */
    struct loop *loop;
    struct store *store;
    struct secret *secret;
    struct auth *auth;
    struct bus *bus;
    struct agents *agents;
    struct toolbox *toolbox; /* all tools, and the servers of some */
    struct reload *reload;   /* what both are made from */
    struct arena arena;      /* of what is made at start and stays */
    str page;                /* its address for people, with a slash at its end */
    struct client *client;   /* to models, tools and webhooks */
    struct saver saver;
    struct spool *spool;
    struct keeper *keeper; /* of payloads that wait for object storage */
    struct blobs *blobs;
    struct runs *runs;
    struct clockwork *clockwork;
    struct sweeper *sweeper;
    struct webhooks *webhooks;
    struct channels *channels;     /* chats */
    struct channel_logins *logins; /* to those that ask for one */
    struct feeds *feeds;
    struct inbox *inbox;        /* who is told of what waits for people */
    struct sockets *sockets;    /* WebSockets */
    struct mcp_waits mcp_waits; /* calls of other agents that wait for people */
    struct metrics metrics;
    struct transfers transfers;       /* files on their way in and out */
    str page_policy;                  /* Content-Security-Policy of the page */
    struct http_server *http, *admin; /* the public one, and the one on fermata.sock */
    struct listener *listener, *admin_listener;
    bool terminal; /* it was started from one */
    bool stopping;
    int stopped; /* parts that have come to rest */
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: everything that serve.c wires together. Exists in app/ only and is never passed below
 * it.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "agent/shell/run.h"
#include "config/config.h"
#include "server/auth.h"
#include "server/metrics.h"
#include "server/pools.h"
#include "server/transfer.h"

struct agents;
struct blobs;
struct channel_logins;
struct channels;
struct client;
struct clockwork;
struct ending;
struct failures;
struct feeds;
struct http_server;
struct inbox;
struct payload_retry;
struct listener;
struct mcp_wait;
struct loop;
struct reload;
struct remover;
struct secret;
struct sockets;
struct spool;
struct store;
struct sweeper;
struct toolbox;
struct trail;
struct webhooks;

struct server {
    const struct config *config; /* of the start; agents have newer ones */
    struct loop *loop;
    struct wall *wall; /* between us and the programs we start */
    struct store *store;
    struct secret *secret;
    struct auth *auth;
    struct ending *endings; /* who is told when a key or a session ends */
    struct bus *bus;
    struct agents *agents;
    struct toolbox *toolbox; /* all tools, and the servers of some */
    struct reload *reload;   /* what both are made from */
    struct arena arena;      /* of what is made at start and stays */
    str page;                /* its address for people, with a slash at its end */
    struct client *client;   /* to models, tools and webhooks */
    struct saver saver;
    struct spool *spool;
    struct payload_retry *retry; /* of payloads that wait for object storage */
    struct blobs *blobs;
    struct runs *runs;
    struct clockwork *clockwork;
    struct failures *failures; /* runs that failed, in the log */
    struct sweeper *sweeper;
    struct remover *remover; /* of what deleted threads have left */
    struct trail *trail;     /* work on the audit trail beside requests */
    struct webhooks *webhooks;
    struct channels *channels;     /* chats */
    struct channel_logins *logins; /* to those that ask for one */
    struct feeds *feeds;
    struct inbox *inbox;        /* who is told of what waits for people */
    struct sockets *sockets;    /* WebSockets */
    struct mcp_wait *mcp_waits; /* calls of other agents that wait for people, a list */
    struct metrics metrics;
    struct transfers transfers;       /* files on their way in and out */
    struct pools pools;               /* who has how much of what all use */
    str page_policy;                  /* Content-Security-Policy of the page */
    struct http_server *http, *admin; /* the public one, and the one on fermata.sock */
    struct listener *listener, *admin_listener;
    bool terminal;   /* it was started from one */
    bool proxy_seen; /* and refused, for want of a key */
    bool stopping;
    int stopped; /* parts that have come to rest */
};

#endif

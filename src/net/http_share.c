/* SPDX-License-Identifier: Apache-2.0
 *
 * Who an HTTP connection is counted for, and which one gives way when there is no room.
 *
 * A connection begins as one of its address. When a request on it shows who asks, it becomes one of
 * that user, and stays so. A proxy's connection is nobody's between requests, and during one belongs
 * to whom it passes on; so a proxy may have them all, and its clients their shares.
 *
 *   no room                                    who gives way
 *   the address has its share of strangers     one of its own that is idle, without a key
 *   there are no more connections              one that is idle without a key, else with one
 *
 * Of those that may, the one that has waited longest. An address that has fewer than the newcomer's
 * gives none; and the newcomer's own only what was idle for HTTP_ROOM_IDLE_MS_MIN, or many that are
 * opened at once would push out each other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/ip.h"

/* ---- idle connections ---- */

static struct idle_list *list_of(struct http_conn *conn)
{
    return conn->account.known ? &conn->server->idle_users : &conn->server->idle_strangers;
}

void conn_idle(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    if (!server->options.connections_address_max || conn->idle) return;
    if (conn->proxy) {
        conn_uncount(conn);
        return;
    }
    struct idle_list *list = list_of(conn);
    conn->idle = true;
    conn->idle_at = loop_now(server->loop);
    conn->idle_next = NULL;
    conn->idle_prev = list->last;
    *(list->last ? &list->last->idle_next : &list->first) = conn;
    list->last = conn;
}

void conn_idle_over(struct http_conn *conn)
{
    if (!conn->idle) return;
    struct idle_list *list = list_of(conn);
    conn->idle = false;
    *(conn->idle_prev ? &conn->idle_prev->idle_next : &list->first) = conn->idle_next;
    *(conn->idle_next ? &conn->idle_next->idle_prev : &list->last) = conn->idle_prev;
}

/* May it go for a newcomer from there? */
static bool gives_way(const struct http_conn *conn, str newcomer)
{
    const struct http_server *server = conn->server;
    if (conn->writing || conn->out.len) return false;
    if (conn->account.known && conn->state != CONN_IDLE) return false; /* a request is coming */
    char text[IP_SHARE_BYTES];
    str address = ip_share(str_c(sock_peer(conn->sock)), text);
    if (str_eq(address, newcomer))
        return loop_now(server->loop) - conn->idle_at >= server->room_idle_ms;
    return conn->account.known ||
           shares_held(&server->by_address, address) >= shares_held(&server->by_address, newcomer);
}

static bool make_room(struct idle_list *list, str newcomer, bool own_only)
{
    struct http_conn *conn = list->first;
    for (int looks = 0; conn && looks < HTTP_ROOM_LOOKS_MAX; looks++, conn = conn->idle_next) {
        if (own_only && !str_eq(conn->account.name, newcomer)) continue;
        if (!gives_way(conn, newcomer)) continue;
        conn_close(conn);
        return true;
    }
    return false;
}

/* ---- counting ---- */

static void set_account(struct http_conn *conn, const struct http_account *account)
{
    char *name = mem_str(account->name);
    free((void *)(uintptr_t)conn->account.name.p);
    conn->account = *account;
    conn->account.name = (str){name, account->name.len};
}

static struct shares *counts_of(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    return conn->account.known ? &server->by_user : &server->by_address;
}

void conn_uncount(struct http_conn *conn)
{
    conn_idle_over(conn);
    if (conn->counted) shares_give(counts_of(conn), conn->account.name, 1);
    conn->counted = false;
    free((void *)(uintptr_t)conn->account.name.p);
    conn->account = (struct http_account){0};
}

/* A new one. False: there is no room for it. */
bool conn_admit(struct http_server *server, struct sock *sock, struct http_conn *conn)
{
    const struct http_server_options *options = &server->options;
    bool shared = options->connections_address_max;
    char text[IP_SHARE_BYTES];
    str address = ip_share(str_c(sock_peer(sock)), text);
    if (server->conn_count >= options->connections_max &&
        !(shared && (make_room(&server->idle_strangers, address, false) ||
                     make_room(&server->idle_users, address, false))))
        return false;
    conn->proxy =
        options->handler->is_proxy && options->handler->is_proxy(options->ctx, sock_peer(sock));
    if (!shared || conn->proxy) return true;
    struct shares *counts = &server->by_address;
    if (shares_take(counts, address, 1) != SHARE_GIVEN &&
        (!make_room(&server->idle_strangers, address, true) ||
         shares_take(counts, address, 1) != SHARE_GIVEN))
        return false;
    set_account(conn, &(struct http_account){.name = address});
    conn->counted = true;
    return true;
}

/* Count it for somebody else; it stays as it was if they have their share. */
static bool recount(struct http_conn *conn, const struct http_account *account)
{
    struct http_server *server = conn->server;
    if (server->options.connections_address_max) {
        struct shares *counts = account->known ? &server->by_user : &server->by_address;
        bool given = account->alone ? shares_add(counts, account->name, 1)
                                    : shares_take(counts, account->name, 1) == SHARE_GIVEN;
        if (!given) return false;
        if (conn->counted) shares_give(counts_of(conn), conn->account.name, 1);
        conn->counted = true;
    }
    set_account(conn, account);
    return true;
}

/* A request says whose it is. */
enum err conn_count_for(struct http_conn *conn, const struct http_account *account,
                        struct fault *reterr)
{
    bool same = conn->account.known == account->known && conn->account.alone == account->alone &&
                str_eq(conn->account.name, account->name);
    bool stays = !account->known && !conn->proxy && conn->account.name.p;
    if (!same && !stays && !recount(conn, account))
        return fault(reterr, ERR_RATE_LIMITED, "too many connections are open already for this %s",
                     account->known ? "user" : "address");
    if (budget_owes(conn->server->options.budget, POOL_UNSENT, account))
        return fault(reterr, ERR_RATE_LIMITED,
                     "too much of earlier answers has not been read yet; read it first");
    return OK;
}

void conn_hold(struct http_conn *conn, size_t bytes)
{
    /* With more accounts than can be counted these bytes are not; the reader's pace still is. */
    (void)charge_add(&conn->unsent, conn->server->options.budget, POOL_UNSENT, &conn->account,
                     bytes);
}

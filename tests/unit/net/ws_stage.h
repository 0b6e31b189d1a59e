/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of WebSockets over real connections: a server whose "/ws" opens one at once, "/later"
 * when the test says so. Its owner (`struct ws_owner`) echoes each text, unless the test gives it
 * something else to do.
 */
#ifndef TESTS_NET_WS_STAGE_H
#define TESTS_NET_WS_STAGE_H

#include "http_kit.h"
#include "net/ws.h"
#include "ws_kit.h"

#define WS_KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define WS_ASK(path)                                              \
    "GET " path " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n" \
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " WS_KEY "\r\n\r\n"

enum { WS_OWNERS_MAX = 300, WS_SCRIPT_BYTES_MAX = 32 << 20 };

struct ws_owner {
    struct ws_stage *stage;
    struct ws *ws; /* NULL once it has gone or was closed */
    unsigned texts, drains, stops, closes;
};

struct ws_stage {
    struct kit kit;
    struct ws_owner owners[WS_OWNERS_MAX]; /* in the order of their handshakes */
    size_t owner_count;
    void (*on_text)(struct ws_owner *owner, str text);
    void (*on_stop)(struct ws_owner *owner);
};

void ws_stage_init(struct ws_stage *stage, const struct http_server_options *options);
void ws_stage_done(struct ws_stage *stage); /* when all connections have gone */

struct ws_owner *ws_own(struct ws_stage *stage, struct http_request *request);
void ws_owner_end(struct ws_owner *owner, enum ws_code code);

/* The client's side: its handshake and its frames. */
struct ws_owner *ws_join(struct ws_stage *stage, struct caller *caller, bool small_window);
void ws_take_head(struct caller *caller);
void ws_tell(struct caller *caller, const char *script);

/* Wait for exactly these frames, and take them; for the end of the connection, in order. */
void ws_expect(const char *what, struct caller *caller, const char *frames);
void ws_expect_end(struct caller *caller);

#endif

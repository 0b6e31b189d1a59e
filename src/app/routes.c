/* SPDX-License-Identifier: Apache-2.0
 *
 * The routes of the public listener. To add one: a row here, its handler in handlers.h, and the
 * schemas it names in openapi.c; tests/api/routes.test.mjs asks every row for its edges.
 */
#include "app/handlers.h"
#include "app/route.h"

enum { SMALL_BODY_BYTES = 16 * 1024 };

static const struct route rows[] = {
    {
        .method = HTTP_GET,
        .path = "/healthz",
        .access = ACCESS_OPEN,
        .handle = handle_healthz,
        .name = "healthz",
        .summary = "The process is alive",
        .answers = {{200, "Health"}},
    },
    {
        .method = HTTP_GET,
        .path = "/readyz",
        .access = ACCESS_OPEN,
        .handle = handle_readyz,
        .name = "readyz",
        .summary = "Requests can be served: the store answers and the server is not stopping",
        .answers = {{200, "Health"}, {503, "Problem"}},
    },
    {
        .method = HTTP_GET,
        .path = "/metrics",
        .access = ACCESS_METRICS,
        .handle = handle_metrics,
        .name = "metrics",
        .summary = "Figures in Prometheus' text form; from another machine for operators only",
        .answers = {{200, "Text"}, {401, "Problem"}, {403, "Problem"}},
    },
    {
        .method = HTTP_GET,
        .path = "/api/v1/openapi.json",
        .access = ACCESS_USER,
        .handle = handle_openapi,
        .name = "openapi",
        .summary = "This document",
        .answers = {{200, "Object"}, {401, "Problem"}},
    },
    {
        .method = HTTP_GET,
        .path = "/api/v1/session",
        .access = ACCESS_USER,
        .handle = handle_session_get,
        .name = "getSession",
        .summary = "Who am I",
        .answers = {{200, "Session"}, {401, "Problem"}},
    },
    {
        .method = HTTP_POST,
        .path = "/api/v1/session",
        .access = ACCESS_OPEN,
        .body_bytes_max = SMALL_BODY_BYTES,
        .handle = handle_session_post,
        .name = "createSession",
        .summary = "Sign in with a key: sets the session cookie",
        .body = "SessionRequest",
        .answers = {{200, "Session"}, {400, "Problem"}, {401, "Problem"}, {507, "Problem"}},
    },
    {
        .method = HTTP_DELETE,
        .path = "/api/v1/session",
        .access = ACCESS_USER,
        .handle = handle_session_delete,
        .name = "deleteSession",
        .summary = "Sign out: ends the session and its streams",
        .answers = {{204, NULL}, {401, "Problem"}, {507, "Problem"}},
    },
    {
        .method = HTTP_POST,
        .path = "/api/v1/tickets",
        .access = ACCESS_USER,
        .handle = handle_ticket_post,
        .name = "createTicket",
        .summary =
            "A one-use, 30-second ?ticket= for EventSource and WebSocket from another origin",
        .answers = {{201, "Ticket"}, {401, "Problem"}, {429, "Problem"}},
    },
};

const struct routes public_routes = {rows, COUNT(rows)};

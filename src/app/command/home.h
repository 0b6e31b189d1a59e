/* SPDX-License-Identifier: Apache-2.0
 *
 * A data folder as a command sees it: opened here, under its lock, or owned by a running server,
 * which is then asked through its admin socket.
 */
#ifndef APP_COMMAND_HOME_H
#define APP_COMMAND_HOME_H

#include "base/json.h"

struct lock;
struct store;

struct home {
    const char *folder;
    struct arena *arena;
    struct lock *lock;   /* NULL: a server runs */
    struct store *store; /* after home_open; NULL: a server runs */
};

/* Take the lock, unless a server holds it, which is fine. */
enum err home_lock(struct home *home, struct fault *reterr) MUST_USE;

/* The same, and open the store under the lock. */
enum err home_open(struct home *home, struct fault *reterr) MUST_USE;
void home_done(struct home *home);

/* Ask the running server. An answer above 299 becomes a fault with the server's own words.
 * answer_ms: how long it may work on it; 0 = a minute. */
struct home_request {
    const char *method, *path;
    str body; /* JSON */
    msec answer_ms;
};
enum err home_ask(const struct home *home, const struct home_request *request,
                  struct json **ret_json, struct fault *reterr) MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A data folder as a command sees it: opened here, under its lock, or owned by a running server,
 * which is then asked through its admin socket.
 */
#ifndef CLI_HOME_H
#define CLI_HOME_H

#include "base/json.h"

struct lock;
struct store;

struct home {
    const char *folder;
    const char *command; /* for whoever finds the folder locked; NULL: one that ends soon */
    struct arena *arena;
    struct lock *lock;   /* NULL: a server runs */
    struct store *store; /* after home_open; NULL: a server runs */
};

/* Is there a database? Asked before the lock is taken, because taking it would make the folder. `what`
 * there is nothing to do with, if not: "save". */
enum err home_there(const struct home *home, const char *what, struct fault *reterr) MUST_USE;

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

/* Say why on standard error; EXIT_FAILED, for the command that ends with it. */
int home_failed(const struct fault *why);

#endif

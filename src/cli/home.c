/* SPDX-License-Identifier: Apache-2.0
 *
 * The data folder as a command sees it: opened here, or a running server's. The lock tells which of
 * the two it is: whoever cannot take it asks the one who has it.
 */
#include "cli/home.h"

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "config/commands.h"
#include "net/http_client.h"
#include "store/db/lock.h"
#include "store/db/store.h"

enum err home_there(const struct home *home, const char *what, struct fault *reterr)
{
    str path = arena_printf(home->arena, "%s/" STORE_DATABASE_NAME, home->folder);
    if (access(path.p, F_OK) == 0) return OK;
    return fault(reterr, ERR_NOT_FOUND, "there is nothing to %s: %s has no database", what,
                 home->folder);
}

enum err home_lock(struct home *home, struct fault *reterr)
{
    enum err e =
        lock_take(home->folder, home->command ? home->command : "command", &home->lock, reterr);
    return e == ERR_LOCKED ? OK : e;
}

enum err home_open(struct home *home, struct fault *reterr)
{
    enum err e = home_lock(home, reterr);
    return e || !home->lock ? e : store_open(home->folder, NULL, &home->store, reterr);
}

void home_done(struct home *home)
{
    store_close(home->store);
    lock_free(home->lock);
}

int home_failed(const struct fault *why)
{
    fprintf(stderr, "fermata: %s\n", why->text);
    return EXIT_FAILED;
}

enum err home_ask(const struct home *home, const struct home_request *request,
                  struct json **ret_json, struct fault *reterr)
{
    str socket = arena_printf(home->arena, "%s/fermata.sock", home->folder);
    str url = arena_printf(home->arena, "http://localhost%s", request->path);
    const struct client_header type = {"Content-Type", "application/json"};
    struct buf answer;
    buf_init(&answer, HTTP_ANSWER_BYTES_MAX);
    int status = 0;
    enum err e = client_call(&(struct client_options){.method = request->method,
                                                      .url = url.p,
                                                      .unix_path = socket.p,
                                                      .headers = &type,
                                                      .header_count = 1,
                                                      .body = request->body,
                                                      .once = true,
                                                      .first_byte_ms = request->answer_ms},
                             &status, &answer, reterr);
    str text = arena_str(home->arena, buf_str(&answer));
    buf_done(&answer);
    if (e)
        return fault(
            reterr, e,
            "another fermata holds %s but does not answer on its socket; it may be starting "
            "or stopping, so try again",
            home->folder);
    struct json *json = NULL;
    if (text.len && json_parse(home->arena, text, &json, NULL))
        return fault(reterr, ERR_NETWORK, "the running server gave no JSON");
    if (status > 299)
        return fault(reterr, ERR_INTERNAL, "%s",
                     arena_cstr(home->arena, json_text(json_get(json, STR("detail")))));
    *ret_json = json;
    return OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * An owner of a link, for tests.
 */
#include "mcp_link_kit.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

enum { GUARD_MS = 30 * 1000, TOLD_MAX = 4 * 1024 * 1024 };

static void tell(struct owner *owner, const char *line)
{
    if (!owner->link) fail_msg("told \"%s\" after the end", line);
    buf_append(&owner->told, str_c(line));
    buf_char(&owner->told, '\n');
    if (owner->free_at && strncmp(line, owner->free_at, strlen(owner->free_at)) == 0) {
        mcp_link_free(owner->link);
        owner->link = NULL;
    }
    if (owner->until && strncmp(line, owner->until, strlen(owner->until)) == 0 &&
        --owner->times == 0)
        loop_stop(owner->loop);
}

static void on_open(void *arg)
{
    tell(arg, "open");
}

static void on_message(void *arg, str json)
{
    struct owner *owner = arg;
    char line[8192];
    assert_null(memchr(json.p, '\n', json.len));
    if (owner->short_messages)
        snprintf(line, sizeof line, "message of %zu", json.len);
    else
        snprintf(line, sizeof line, "message %.*s", STR_ARG(json));
    tell(owner, line);
}

static void on_session(void *arg, str session)
{
    char line[256];
    snprintf(line, sizeof line, "session %.*s", STR_ARG(session));
    tell(arg, line);
}

static void keep_why(struct owner *owner, const struct fault *why)
{
    assert_int_not_equal(why->err, OK);
    assert_int_not_equal(why->text[0], '\0');
    buf_append(&owner->whys, str_c(why->text));
    buf_char(&owner->whys, '\n');
}

static void on_lost(void *arg, uint64_t request, enum mcp_loss loss, int http_status,
                    const struct fault *why)
{
    static const char *const names[] = {
        [MCP_AWAY] = "AWAY", [MCP_LOST] = "LOST", [MCP_NO_SESSION] = "NO_SESSION"};
    char line[64];
    snprintf(line, sizeof line, "lost %llu %s %d", (unsigned long long)request, names[loss],
             http_status);
    keep_why(arg, why);
    tell(arg, line);
}

static void on_down(void *arg, const struct fault *why)
{
    keep_why(arg, why);
    tell(arg, "down");
}

static void on_stderr(void *arg, str text)
{
    char line[8192];
    snprintf(line, sizeof line, "stderr %.*s", STR_ARG(text));
    tell(arg, line);
}

const struct mcp_link_events owner_events = {.on_open = on_open,
                                             .on_message = on_message,
                                             .on_session = on_session,
                                             .on_lost = on_lost,
                                             .on_down = on_down,
                                             .on_stderr = on_stderr};

static void on_guard(void *arg)
{
    struct owner *owner = arg;
    owner->late = true;
    loop_stop(owner->loop);
}

void owner_init(struct owner *owner)
{
    *owner = (struct owner){.loop = loop_new()};
    owner->guard = timer_new(owner->loop, on_guard, owner);
    buf_init(&owner->told, TOLD_MAX);
    buf_init(&owner->whys, TOLD_MAX);
}

void owner_done(struct owner *owner)
{
    mcp_link_free(owner->link);
    owner->link = NULL;
    timer_free(owner->guard);
    buf_done(&owner->told);
    buf_done(&owner->whys);
}

void owner_run(struct owner *owner, const char *until, unsigned times)
{
    owner->until = until;
    owner->times = times;
    timer_start(owner->guard, GUARD_MS);
    loop_run(owner->loop);
    if (owner->late)
        fail_msg("no \"%s\"; but:\n%.*s%.*s", until, STR_ARG(buf_str(&owner->told)),
                 STR_ARG(buf_str(&owner->whys)));
    timer_stop(owner->guard);
}

void owner_send(struct owner *owner, uint64_t request)
{
    char json[128];
    int len =
        request ? snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"x\"}",
                           (unsigned long long)request)
                : snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}");
    mcp_link_send(owner->link, &(struct mcp_post){.json = {json, (size_t)len}, .request = request});
}

bool owner_heard(const struct owner *owner, const char *text)
{
    return str_find(buf_str(&owner->told), str_c(text)) >= 0;
}

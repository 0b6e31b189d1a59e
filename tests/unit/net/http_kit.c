/* SPDX-License-Identifier: Apache-2.0 */
#include "http_kit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { PATIENCE_MS = 60 * 1000, TICK_MS = 1, STEP_BYTES = 64 * 1024 };

/* ---- the server ---- */

static void answer_text(struct http_request *request, str text)
{
    http_answer(request,
                &(struct http_answer){.status = 200, .content_type = "text/plain", .body = text});
}

static void get_hello(struct kit *kit, struct http_request *request)
{
    (void)kit;
    answer_text(request, STR("hello"));
}

static void get_later(struct kit *kit, struct http_request *request)
{
    assert_true(kit->held_count < KIT_HELD_MAX);
    kit->held[kit->held_count++] = request;
}

static void answer_large(struct kit *kit, struct http_request *request, bool is_static)
{
    http_answer(request, &(struct http_answer){.status = 200,
                                               .content_type = "text/plain",
                                               .body = {kit->large, KIT_LARGE_BYTES},
                                               .body_static = is_static});
}

void kit_answer_page(struct kit *kit, struct http_request *request)
{
    answer_text(request, (str){kit->large, KIT_PAGE_BYTES});
}

static void get_static(struct kit *kit, struct http_request *request)
{
    answer_large(kit, request, true);
}

void kit_answer_copied(struct kit *kit, struct http_request *request)
{
    answer_large(kit, request, false);
}

static void get_too_large(struct kit *kit, struct http_request *request)
{
    (void)kit;
    size_t len = HTTP_ANSWER_BYTES_MAX;
    char *body = calloc(1, len);
    assert_non_null(body);
    answer_text(request, (str){body, len});
    free(body);
}

static void get_empty(struct kit *kit, struct http_request *request)
{
    (void)kit;
    http_answer(request, &(struct http_answer){.status = 204});
}

static void get_same(struct kit *kit, struct http_request *request)
{
    (void)kit;
    http_answer(request, &(struct http_answer){.status = 304, .body = STR("never sent")});
}

static void get_last(struct kit *kit, struct http_request *request)
{
    (void)kit;
    http_answer(request, &(struct http_answer){.status = 200, .body = STR("last"), .close = true});
}

static void get_fields(struct kit *kit, struct http_request *request)
{
    (void)kit;
    static const struct http_field own[] = {{STR("X-Own"), STR("1")}};
    static const struct http_field cached[] = {{STR("Cache-Control"), STR("max-age=9")}};
    request->fields = own;
    request->field_count = COUNT(own);
    http_answer(request, &(struct http_answer){
                             .status = 201, .fields = cached, .field_count = COUNT(cached)});
}

static void get_fault(struct kit *kit, struct http_request *request)
{
    (void)kit;
    struct fault why;
    enum err e = fault_field(&why, ERR_INVALID_FIELD, "a.b", "not %s", "so");
    http_answer_error(request, e, &why);
}

static void post_echo(struct kit *kit, struct http_request *request)
{
    (void)kit;
    answer_text(request, request->body);
}

static void ask_own(struct kit *kit, struct http_request *request)
{
    kit->own(kit, request);
}

static const struct route {
    const char *path;
    void (*fn)(struct kit *kit, struct http_request *request);
} routes[] = {
    {"/hello", get_hello},
    {"/later", get_later},
    {"/static", get_static},
    {"/copied", kit_answer_copied},
    {"/too-large", get_too_large},
    {"/empty", get_empty},
    {"/same", get_same},
    {"/last", get_last},
    {"/fields", get_fields},
    {"/fault", get_fault},
    {"/echo", post_echo},
    {"/page", kit_answer_page},
    {"/own", ask_own},
};

static struct http_account account_of(const struct kit *kit, struct http_request *request)
{
    str user = http_head_get(request->head, STR("User"));
    str from = kit->proxied ? http_head_get(request->head, STR("For")) : str_c(request->peer);
    return (struct http_account){
        .name = arena_str(&request->arena, user.len ? user : from),
        .known = user.len,
        .alone = http_head_get(request->head, STR("Alone")).p,
    };
}

static bool is_proxy(void *ctx, const char *peer)
{
    (void)peer;
    return ((const struct kit *)ctx)->proxied;
}

static enum err on_head(void *ctx, struct http_request *request, uint64_t *ret_body_max,
                        struct fault *reterr)
{
    const struct kit *kit = ctx;
    request->account = account_of(kit, request);
    if (str_eq(request->head->path, STR("/forbidden")))
        return fault(reterr, ERR_FORBIDDEN, "not you");
    *ret_body_max = kit->body_max ? kit->body_max : KIT_BODY_BYTES_MAX;
    if (kit->handle) return OK;
    for (size_t i = 0; i < COUNT(routes); i++)
        if (str_eq(request->head->path, str_c(routes[i].path))) {
            request->user = (void *)(uintptr_t)&routes[i];
            request->body_streamed = routes[i].fn == ask_own && kit->own_max;
            if (request->body_streamed) *ret_body_max = kit->own_max;
            return OK;
        }
    return fault(reterr, ERR_NOT_FOUND, "no such path");
}

static void on_request(void *ctx, struct http_request *request)
{
    struct kit *kit = ctx;
    kit->requests++;
    const struct route *route = request->user;
    if (kit->handle)
        kit->handle(kit, request);
    else
        route->fn(kit, request);
}

static void on_answered(void *ctx, const struct http_request *request, int status)
{
    (void)request;
    struct kit *kit = ctx;
    kit->answered++;
    kit->last_status = status;
}

static const struct http_handler handler = {
    .on_head = on_head, .on_request = on_request, .on_answered = on_answered, .is_proxy = is_proxy};

/* The same for all tests, since making it takes a while. */
static char *large_bytes(void)
{
    static char bytes[KIT_LARGE_BYTES];
    for (size_t i = 0; !bytes[0] && i < KIT_LARGE_BYTES; i++) {
        size_t at = KIT_LARGE_BYTES - 1 - i;
        bytes[at] = (char)('a' + at % 23);
    }
    return bytes;
}

static void on_tick(void *arg)
{
    loop_stop(arg);
}

void kit_init(struct kit *kit, const struct http_server_options *options)
{
    struct http_server_options own = options ? *options : (struct http_server_options){0};
    own.handler = &handler;
    own.ctx = kit;
    if (!own.connections_max) own.connections_max = 1000;
    *kit = (struct kit){.loop = loop_new(), .large = large_bytes()};
    kit->server = http_server_new(kit->loop, &own);
    kit->tick = timer_new(kit->loop, on_tick, kit->loop);
    struct fault why;
    assert_int_equal(listener_tcp(kit->loop, STR("127.0.0.1"), 0, http_server_accept, kit->server,
                                  &kit->listener, &why),
                     OK);
}

void kit_done(struct kit *kit)
{
    listener_close(kit->listener);
    http_server_free(kit->server);
    while (kit->held_count) kit_answer_held(kit); /* their connections have gone */
    timer_free(kit->tick);
    loop_free(kit->loop);
}

static void on_stopped(void *arg)
{
    struct kit *kit = arg;
    assert_false(kit->stopped);
    kit->stopped = true;
}

void kit_stop(struct kit *kit)
{
    listener_close(TAKE(kit->listener));
    http_server_stop(kit->server, on_stopped, kit);
}

void kit_wait_begin(struct kit *kit)
{
    kit->waiting_since = clock_steady(&clock_system);
}

void kit_turn(struct kit *kit, const char *waiting_for)
{
    if (clock_steady(&clock_system) - kit->waiting_since > PATIENCE_MS)
        fail_msg("waited too long for: %s", waiting_for);
    timer_start(kit->tick, TICK_MS);
    loop_run(kit->loop);
}

void kit_turns(struct kit *kit, int count)
{
    kit_wait_begin(kit);
    for (int i = 0; i < count; i++) kit_turn(kit, "a turn");
}

struct http_request *kit_take_held(struct kit *kit)
{
    assert_true(kit->held_count > 0);
    struct http_request *request = kit->held[0];
    assert_true(!request->head && !request->peer); /* they go with on_request */
    kit->held_count--;
    memmove(kit->held, kit->held + 1, kit->held_count * sizeof kit->held[0]);
    return request;
}

void kit_answer_held(struct kit *kit)
{
    answer_text(kit_take_held(kit), STR("later"));
}

int kit_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* ---- callers ---- */

static void on_readable(void *arg, int events)
{
    (void)events;
    struct caller *caller = arg;
    char *room = buf_room(&caller->got, caller->step);
    assert_non_null(room);
    ssize_t count = recv(caller->fd, room, caller->step, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count > 0) {
        buf_added(&caller->got, (size_t)count);
        watch_set(caller->watch, 1); /* a broken connection is told once, bytes before it or not */
        return;
    }
    caller->ended = true;
    caller->reset = count < 0;
    watch_set(caller->watch, 0);
}

void caller_open(struct caller *caller, struct kit *kit, bool small_window)
{
    caller_open_from(caller, kit, "127.0.0.1", small_window);
}

void caller_open_from(struct caller *caller, struct kit *kit, const char *from, bool small_window)
{
    *caller = (struct caller){.kit = kit, .step = STEP_BYTES};
    buf_init(&caller->got, KIT_GOT_BYTES_MAX);
    caller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(caller->fd, errno);
    int window = KIT_WINDOW_BYTES;
    if (small_window)
        assert_return_code(setsockopt(caller->fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window),
                           errno);
    int on = 1; /* small requests must not wait for the other side's delayed word */
    assert_return_code(setsockopt(caller->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), errno);
    struct sockaddr_in own = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
    assert_return_code(bind(caller->fd, (struct sockaddr *)&own, sizeof own), errno);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(listener_port(kit->listener)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* The kernel completes the handshake; the server accepts when the loop turns. */
    assert_return_code(connect(caller->fd, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(fcntl(caller->fd, F_SETFL, O_NONBLOCK), errno);
    caller->watch = watch_new(kit->loop, caller->fd, on_readable, caller);
    watch_set(caller->watch, 1);
}

void caller_close(struct caller *caller)
{
    if (!caller->watch) return;
    watch_free(TAKE(caller->watch));
    close(caller->fd);
    buf_done(&caller->got);
}

void caller_reset(struct caller *caller)
{
    struct linger at_once = {.l_onoff = 1};
    assert_return_code(setsockopt(caller->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
                       errno);
    caller_close(caller);
}

void caller_send(struct caller *caller, str bytes)
{
    kit_wait_begin(caller->kit);
    while (bytes.len) {
        ssize_t count = send(caller->fd, bytes.p, bytes.len, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            kit_turn(caller->kit, "room to send");
            continue;
        }
        assert_return_code(count, errno);
        bytes = str_drop(bytes, (size_t)count);
    }
}

int caller_ask_pages(struct caller *caller, int max)
{
    struct kit *kit = caller->kit;
    caller_pause(caller);
    for (int i = 0; i < max; i++) {
        unsigned before = kit->answered;
        caller_send(caller, STR("GET /page HTTP/1.1\r\nHost: h\r\n\r\n"));
        kit_wait_begin(kit);
        for (int turns = 0; turns < 20 && kit->answered == before; turns++) kit_turn(kit, "a page");
        if (kit->answered == before) return i;
    }
    return max;
}

void caller_half_close(struct caller *caller)
{
    assert_return_code(shutdown(caller->fd, SHUT_WR), errno);
}

void caller_pause(struct caller *caller)
{
    watch_set(caller->watch, 0);
}

void caller_resume(struct caller *caller, size_t step)
{
    caller->step = step;
    watch_set(caller->watch, 1);
}

/* ---- answers ---- */

str response_field(const struct response *response, str name)
{
    for (str rest = response->head; rest.p;) {
        str line = str_split(&rest, '\n');
        if (line.len > name.len && line.p[name.len] == ':' &&
            str_eq_nocase((str){line.p, name.len}, name)) {
            str value = str_trim(str_drop(line, name.len + 1));
            if (str_ends(value, STR("\r"))) value.len--;
            return value;
        }
    }
    return (str){NULL, 0};
}

/* Returns the size of the answer, 0 if it is not whole. */
static size_t response_parse(str bytes, bool head_only, struct response *response)
{
    ptrdiff_t end = str_find(bytes, STR("\r\n\r\n"));
    if (end < 0) return 0;
    assert_true(str_starts(bytes, STR("HTTP/1.1 ")));
    size_t head_len = (size_t)end + 4;
    *response = (struct response){.head = {bytes.p, head_len}};
    uint64_t status, length = 0;
    assert_int_equal(str_to_u64((str){bytes.p + 9, 3}, &status), OK);
    response->status = (int)status;
    response->chunked = response_field(response, STR("Transfer-Encoding")).len > 0;
    str field = response_field(response, STR("Content-Length"));
    bool content = status >= 200 && status != 204 && status != 304;
    assert_true(content == (field.p || response->chunked));
    if (field.p) assert_int_equal(str_to_u64(field, &length), OK);
    if (head_only) length = 0;
    if (bytes.len - head_len < length) return 0;
    response->body = (str){bytes.p + head_len, length};
    return head_len + length;
}

bool caller_has(const struct caller *caller, bool head_only)
{
    struct response response;
    return response_parse(buf_str(&caller->got), head_only, &response) > 0;
}

struct response caller_take(struct caller *caller, bool head_only)
{
    WAIT_FOR(caller->kit, caller->ended || caller_has(caller, head_only));
    struct response response;
    if (!response_parse(buf_str(&caller->got), head_only, &response))
        fail_msg("no whole answer in \"%.*s\"", STR_ARG(buf_str(&caller->got)));
    return response;
}

void caller_drop(struct caller *caller, const struct response *taken)
{
    buf_drop(&caller->got, taken->head.len + taken->body.len);
}

bool unchunk(str bytes, struct buf *out, size_t *ret_chunks, size_t *used)
{
    *ret_chunks = *used = 0;
    for (;;) {
        ptrdiff_t line = str_find(bytes, STR("\r\n"));
        if (line < 0) return false;
        assert_in_range(line, 1, 16);
        char digits[17] = {0};
        memcpy(digits, bytes.p, (size_t)line);
        char *end;
        size_t size = strtoull(digits, &end, 16);
        assert_int_equal(*end, '\0');
        size_t total = (size_t)line + 2 + size + 2;
        if (bytes.len < total) return false;
        assert_memory_equal(bytes.p + total - 2, "\r\n", 2);
        *used += total;
        if (size == 0) return true;
        buf_append(out, (str){bytes.p + line + 2, size});
        ++*ret_chunks;
        bytes = str_drop(bytes, total);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of Telegram: the first byte chooses the errand, the second the status, the rest is the body
 * of every reply. Errands end within a few steps; what came in can be kept, the cursor goes forward,
 * the token is told to nobody, and files are fetched from below their folder alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "chat/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool fits)
{
    if (!fits) abort();
}

#define FOLDER "https://tg.example/file/bot12:secret/"

static const struct channel_home home = {
    .name = STR("tg"), .base_url = STR("https://tg.example"), .token = STR("12:secret")};
static const struct outbound words = {.to = STR("42"), .text = STR("hi")};
static const struct outbound picture = {
    .to = STR("42"), .file_mime = STR("image/png"), .file_bytes = STR("png")};
static const struct receipt receipt = {
    .to = STR("42"), .callback_id = STR("7"), .server_id = STR("5"), .text = STR("done")};
static const struct inbound_file file = {.ref = STR("{\"fileId\":\"f\"}")};

static const int statuses[] = {200, 200, 200, 0, 302, 400, 401, 403, 409, 413, 429, 500, 502};

static bool inside(str path)
{
    str rest = path;
    while (rest.p) {
        str part = str_split(&rest, '/');
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR(".."))) return false;
    }
    return path.len > 0;
}

static void check_request(const struct channel_request *request)
{
    must(str_starts(request->url, STR("https://tg.example/")));
    for (size_t i = 0; i < request->url.len; i++)
        must(request->url.p[i] > ' ' && request->url.p[i] < 0x7f);
    if (!strcmp(request->method, "GET")) {
        must(str_starts(request->url, STR(FOLDER)));
        must(inside(str_drop(request->url, sizeof FOLDER - 1)));
        must(str_find_char(request->url, '?') < 0);
    }
    must(request->timeout_ms > 0);
}

static void check_poll(struct errand *errand)
{
    uint64_t cursor, id;
    must(errand->inbound_count <= CHANNEL_INBOUNDS_MAX);
    if (!errand->new_cursor.len) must(!errand->inbound_count);
    for (size_t i = 0; i < errand->inbound_count; i++) {
        const struct inbound *in = &errand->inbounds[i];
        must(!str_to_u64(errand->new_cursor, &cursor) && !str_to_u64(in->id, &id) && id < cursor);
        must(in->text.len || in->file_count || in->follow || in->button.len);
        must(inbound_json(errand->arena, in).len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    static errand_fn *const *const fns[] = {&channel_telegram.poll, &channel_telegram.send,
                                            &channel_telegram.mark, &channel_telegram.typing,
                                            &channel_telegram.fetch};
    arena_init(&arena);
    if (size < 2) return 0;
    errand_fn *fn = *fns[data[0] % COUNT(fns)];
    struct errand errand = {.arena = &arena,
                            .message = data[0] & 0x80 ? &picture : &words,
                            .receipt = &receipt,
                            .file = &file,
                            .peer = STR("42"),
                            .cursor = STR("1")};
    struct channel_request request = {0};
    struct channel_reply reply = {.sent = data[1] & 0x40,
                                  .status = statuses[data[1] % COUNT(statuses)],
                                  .body = {(const char *)data + 2, size - 2},
                                  .reason = "broken at https://tg.example/bot12:secret/x"};
    if (data[1] & 0x80 || !reply.status) reply.e = data[1] & 0x20 ? ERR_TOO_LARGE : ERR_NETWORK;
    bool more = fn(&home, &errand, NULL, &request);
    for (int steps = 0; more; steps++) {
        must(steps < 3);
        check_request(&request);
        request = (struct channel_request){0};
        more = fn(&home, &errand, &reply, &request);
    }
    str detail = str_c(errand.detail);
    must(memchr(errand.detail, '\0', sizeof errand.detail) != NULL);
    must(utf8_valid(detail) && str_find_char(detail, '\n') < 0);
    must(str_find(detail, home.token) < 0);
    must(errand.verdict == VERDICT_DONE || detail.len);
    must(errand.wait_ms >= 0 && errand.wait_ms <= TELEGRAM_WAIT_S_MAX * 1000);
    if (fn == channel_telegram.poll) check_poll(&errand);
    if (fn != channel_telegram.send) must(errand.verdict != VERDICT_UNKNOWN);
    return 0;
}

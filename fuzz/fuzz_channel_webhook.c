/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of the kind `webhook`, signed and not, and what a receiver answers to a message. What comes
 * in can be kept and its files fetched; a refusal is a problem document.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "chat/channel.h"
#include "net/webhook_sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_S = 1700000000 };

static const struct channel_home home = {.secret = STR("secret"), .url = STR("http://127.0.0.1/")};

static void must(bool fits)
{
    if (!fits) abort();
}

static void fetch(struct arena *arena, const struct inbound_file *file)
{
    struct errand errand = {.arena = arena, .file = file};
    struct channel_request request = {0};
    must(!channel_webhook.fetch(&home, &errand, NULL, &request));
    must(errand.verdict == VERDICT_DONE && errand.bytes.len == file->size);
}

static void check(struct arena *arena, const struct hook_answer *answer)
{
    struct json *json = NULL;
    must(json_parse(arena, answer->body, &json, NULL) == OK);
    must((answer->status == 202) == (answer->inbound_count == 1));
    if (answer->status != 202) {
        must(json_text(json_get(json, STR("detail"))).len && answer->detail[0]);
        must(utf8_valid(str_c(answer->detail)));
        return;
    }
    struct inbound back;
    must(inbound_parse(arena, inbound_json(arena, answer->inbounds), &back) == OK);
    must(str_eq(back.id, answer->inbounds->id) && back.file_count == answer->inbounds->file_count);
    for (size_t i = 0; i < back.file_count; i++) fetch(arena, &back.files[i]);
}

static void receive(struct arena *arena, str body)
{
    struct outbound message = {.client_id = STR("i"), .to = STR("u"), .text = STR("hi")};
    struct errand errand = {.arena = arena, .message = &message, .now = (msec)NOW_S * 1000};
    struct channel_request request = {0};
    struct channel_reply reply = {.sent = true, .status = 200, .body = body, .reason = ""};
    must(channel_webhook.send(&home, &errand, NULL, &request));
    must(!channel_webhook.send(&home, &errand, &reply, &request));
    must(errand.verdict == VERDICT_DONE && errand.server_id.len <= CHANNEL_ID_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    struct hook_answer answer = {0};
    char signature[WEBHOOK_SIGNATURE_BYTES];
    str body = {(const char *)data, size};
    arena_init(&arena);
    webhook_sign(home.secret, NOW_S, body, signature);
    struct hook_call call = {.body = body,
                             .timestamp = STR("1700000000"),
                             .signature = str_c(signature),
                             .now = (msec)NOW_S * 1000};
    channel_webhook.hook(&home, &arena, &call, &answer);
    check(&arena, &answer);

    str rest = body; /* the same bytes as headers and body */
    call.timestamp = str_split(&rest, '\n');
    call.signature = str_split(&rest, '\n');
    call.body = rest;
    channel_webhook.hook(&home, &arena, &call, &answer);
    must(answer.status == 401 && !answer.inbound_count);
    receive(&arena, body);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of an Official Account. The first byte says what the rest is: a query and a body behind its
 * first line, a signed body, a body in safe mode, or the plaintext of one. Whatever comes in can be
 * kept, and nothing comes in that is not signed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "chat/wechat_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const msec NOW = (msec)1714037059 * 1000;

enum form { UNSIGNED, SIGNED, SAFE, SEALED, FORMS };

static void must(bool fits)
{
    if (!fits) abort();
}

static void make(struct arena *arena, enum form form, str rest, struct hook_call *call)
{
    switch (form) {
    case UNSIGNED:
        call->query = str_split(&rest, '\n');
        call->body = rest;
        call->now = NOW;
        return;
    case SIGNED:
    case SAFE:
        wechat_kit_post(arena, rest, form == SAFE, NOW, call);
        return;
    case SEALED:
    case FORMS:
        break;
    }
    rest.len -= rest.len % 16;
    wechat_kit_sealed(arena, wechat_kit_seal(arena, rest), NOW, call);
}

static void check(struct arena *arena, const struct hook_answer *answer)
{
    must(answer->status == 200 || answer->status == 400 || answer->status == 403);
    must((answer->status != 200) == (answer->detail[0] != 0));
    must(answer->inbound_count <= 1);
    if (!answer->inbound_count) return;
    must(answer->status == 200 && str_eq(answer->body, STR("success")));
    struct inbound back;
    str json = inbound_json(arena, answer->inbounds);
    must(json.len > 0 && inbound_parse(arena, json, &back) == OK);
    must(str_eq(back.id, answer->inbounds->id) && str_eq(back.text, answer->inbounds->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) struct arena arena;
    struct hook_call call = {0};
    struct hook_answer answer = {0};
    arena_init(&arena);
    if (size < 1) return 0;
    enum form form = data[0] % FORMS;
    make(&arena, form, (str){(const char *)data + 1, size - 1}, &call);
    call.get = data[0] & 0x80;
    struct channel_home home = {.token = STR(KIT_TOKEN),
                                .app_id = STR(KIT_APP_ID),
                                .aes_key =
                                    form >= SAFE || data[0] & 0x40 ? STR(KIT_AES_KEY) : STR_EMPTY};
    channel_wechat_oa.hook(&home, &arena, &call, &answer);
    check(&arena, &answer);
    if (form == SIGNED && home.aes_key.len) must(!answer.inbound_count);

    home.token = STR("another"); /* what is signed with it is not among the inputs */
    channel_wechat_oa.hook(&home, &arena, &call, &answer);
    must(answer.status == 403 && !answer.inbound_count);
    return 0;
}

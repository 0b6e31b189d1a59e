/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/weixin_kit.h"

#include <string.h>

void weixin_stage_init(struct weixin_stage *stage)
{
    *stage = (struct weixin_stage){.home = {.name = STR("wx"),
                                            .base_url = STR("https://ilinkai.weixin.qq.com"),
                                            .account = STR(WEIXIN_ACCOUNT),
                                            .version = STR("2.4.9")}};
    arena_init(&stage->arena);
    weixin_stage_again(stage);
}

void weixin_stage_done(struct weixin_stage *stage)
{
    arena_done(&stage->arena);
}

void weixin_stage_again(struct weixin_stage *stage)
{
    stage->errand =
        (struct errand){.arena = &stage->arena, .now = 1700000000000, .login = &stage->login};
    memcpy(stage->errand.random, "\x12\x34\x56\x78", 4); /* 305419896 */
}

bool weixin_step(struct weixin_stage *stage, errand_fn *step, const struct channel_reply *reply)
{
    stage->request = (struct channel_request){.method = "GET"};
    return step(&stage->home, &stage->errand, reply, &stage->request);
}

bool weixin_step_json(struct weixin_stage *stage, errand_fn *step, const char *json)
{
    struct channel_reply reply = {.sent = true, .status = 200, .body = str_c(json)};
    return weixin_step(stage, step, &reply);
}

void weixin_walk(struct weixin_stage *stage, errand_fn *step, const char *json)
{
    assert_true(weixin_step(stage, step, NULL));
    assert_false(weixin_step_json(stage, step, json));
}

str weixin_header(const struct weixin_stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->request.header_count; i++)
        if (strcmp(stage->request.headers[i].name, name) == 0)
            return stage->request.headers[i].value;
    return STR_EMPTY;
}

str weixin_sent(struct weixin_stage *stage, const char *path)
{
    struct json *root = NULL;
    assert_int_equal(json_parse(&stage->arena, stage->request.body, &root, NULL), OK);
    const struct json *at = root;
    uint64_t index;
    for (str rest = str_c(path); rest.p;) {
        str name = str_split(&rest, '.');
        at = str_to_u64(name, &index) ? json_get(at, name) : json_at(at, (size_t)index);
    }
    return at ? at->raw : STR_EMPTY;
}

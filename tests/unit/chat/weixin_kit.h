/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of WeChat's iLink: an errand that is walked step by step, with answers of the test's own.
 */
#ifndef TESTS_WEIXIN_KIT_H
#define TESTS_WEIXIN_KIT_H

#include "chat/channel.h"
#include "check.h"

#define WEIXIN_KEY "000102030405060708090a0b0c0d0e0f"
#define WEIXIN_ACCOUNT \
    "{\"botToken\":\"tok\",\"baseUrl\":\"\",\"botId\":\"b@im.bot\",\"userId\":\"u@im.wechat\"}"

struct weixin_stage {
    struct arena arena;
    struct channel_home home;
    struct errand errand;
    struct channel_request request; /* the newest */
    struct login login;
};

/* Signed in, at the platform's own address. */
void weixin_stage_init(struct weixin_stage *stage);
void weixin_stage_done(struct weixin_stage *stage);

/* A new errand in the same place. */
void weixin_stage_again(struct weixin_stage *stage);

/* One step; true if it asks for a request. */
bool weixin_step(struct weixin_stage *stage, errand_fn *step, const struct channel_reply *reply);

/* The same with a whole answer of status 200. */
bool weixin_step_json(struct weixin_stage *stage, errand_fn *step, const char *json);

/* The two steps of an errand of one request. */
void weixin_walk(struct weixin_stage *stage, errand_fn *step, const char *json);

/* Value of a header of the newest request; empty if it has none. */
str weixin_header(const struct weixin_stage *stage, const char *name);

/* A member of its body, by names with dots ("msg.item_list.0.type"), as its source bytes. */
str weixin_sent(struct weixin_stage *stage, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /actions: which button of which card is pressed. What it does is thread/press_button.c.
 */
#include "base/limits.h"
#include "base/members.h"
#include "http/exchange.h"
#include "http/handlers.h"
#include "http/http_change.h"
#include "thread/press_button.h"

static const char *const members[] = {"threadId", "messageId", "actionId", NULL};

void handle_action_post(struct exchange *x)
{
    struct press_button *press = ARENA_NEW(exchange_arena(x), struct press_button);
    struct fault why = {0};
    enum err known = members_known(x->body, members, &why);
    change_for(&press->tc.change, x);
    press->sent = x->request->body;
    press->thread_id = json_text(json_get(x->body, STR("threadId")));
    if (known && x->body->type == JSON_OBJECT && press->thread_id.len) {
        press_forged(press, &why);
        return;
    }
    str *const texts[] = {&press->thread_id, &press->message_id, &press->action_id};
    enum err e = known;
    for (size_t i = 0; !e && members[i]; i++)
        e = member_string(x->body, members[i], ACTION_BODY_BYTES_MAX, texts[i], &why);
    if (e)
        exchange_error(x, e, &why);
    else
        press_button(press);
}

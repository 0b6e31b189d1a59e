/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of WeChat's iLink share: the account, requests to its API, and what answers mean.
 */
#ifndef CHAT_PLATFORM_WEIXIN_INT_H
#define CHAT_PLATFORM_WEIXIN_INT_H

#include "chat/platform/platform_errand.h"

/* The hosts of the platform; all others that it names are refused. */
#define WEIXIN_HOSTS ".weixin.qq.com"

enum {
    WEIXIN_URL_BYTES_MAX = 4 * 1024,     /* an address, or a parameter of one, that it gave us */
    WEIXIN_BODY_BYTES_MAX = 1024 * 1024, /* of a request: a text, escaped, and two tokens */
    WEIXIN_KEY_HEX_BYTES = 33,           /* an AES key in hex, and a NUL */
};

/* ---- who we are ---- */

struct weixin_account {
    str token;    /* empty: nobody has signed in */
    str base_url; /* never empty */
};
struct weixin_account weixin_account(const struct channel_home *home, struct arena *arena);

/* The platform is on this machine, as in tests. */
bool weixin_is_here(const struct channel_home *home);

bool weixin_is_visible(str text); /* ASCII that can be seen: it may stand in a header or an id */

/* ---- how an errand ends; each returns false, so that a step can return it ---- */

bool weixin_needs_login(const struct channel_home *home, struct errand *errand);
/* A poll that cannot be got over: the cursor stays, so the same answer comes again. A new sign-in begins
 * without a cursor. `what`: of the answer, "is too large". */
bool weixin_stuck(const struct channel_home *home, struct errand *errand, const char *what);

/* ---- requests ---- */

/* A JSON object in the making; members are written between the two. */
void weixin_body_begin(struct json_doc *body);
/* With base_info if `home` is given. Empty if it became too long. */
str weixin_body_end(struct json_doc *body, struct arena *arena, const struct channel_home *home);

/* The headers of every request; of a POST the others too, but for Authorization. */
void weixin_headers(const struct channel_home *home, struct errand *errand,
                    struct channel_request *request);

/* A POST as the account. False, and the errand has ended, if nobody has signed in or the body is
 * too long. */
bool weixin_post(const struct channel_home *home, struct errand *errand, const char *path, str body,
                 msec timeout_ms, struct channel_request *ret_request);

/* "305419896" in base64: X-WECHAT-UIN. In the arena. */
str weixin_uin(struct arena *arena, uint32_t number);

/* ---- answers ---- */

/* What a call was for decides what its failure means. */
enum weixin_purpose {
    WEIXIN_ASKS,     /* nothing is lost: again */
    WEIXIN_POLLS,    /* likewise; but what cannot be read comes again */
    WEIXIN_SENDS,    /* it may be on the phone; a refusal is about this message */
    WEIXIN_PREPARES, /* nobody sees it, but a refusal is about this message */
};

/* The answer as JSON. False, and the errand has ended, if it is not a good one. */
bool weixin_answer(const struct channel_home *home, struct errand *errand,
                   const struct channel_reply *reply, enum weixin_purpose purpose,
                   const struct json **ret_root);

/* JSON of the platform: as it is, or else with what is broken in its texts replaced, so that half an
 * emoji does not hold up everything behind it. NULL: it is none. */
const struct json *weixin_json(struct arena *arena, str text);

/* A uint64 of any size, a number or a string, as text; empty if it is none. */
str weixin_id(const struct json *value);

/* ---- messages ---- */

enum { WEIXIN_SEND_BEGIN, WEIXIN_SEND_SAID, WEIXIN_SEND_OWN }; /* steps of a send */

/* Send errand->message with one item, JSON. The next step is WEIXIN_SEND_SAID. */
bool weixin_say(const struct channel_home *home, struct errand *errand, str item,
                struct channel_request *ret_request);

/* ---- files ---- */

/* What stands in an item about a file: becomes a row of `ret_file`; false if it has none. */
bool weixin_file_read(struct arena *arena, const struct json *item, struct inbound_file *ret_file);
errand_fn weixin_send_file; /* until it says its item */
errand_fn weixin_fetch;

errand_fn weixin_login_begin, weixin_login_poll;

#endif

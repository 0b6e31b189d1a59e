/* SPDX-License-Identifier: Apache-2.0
 *
 * Signing in to a chat platform by a QR code. A login runs by itself once it has begun: codes that
 * expire are replaced, the platform is asked how it stands, and what comes of it is stored. Whoever
 * shows it, the page or `fermata channel login`, only asks. One login for each channel at a time. On
 * the loop thread.
 */
#ifndef CHAT_LOGIN_H
#define CHAT_LOGIN_H

#include "chat/chats.h"

struct channel_logins;

struct channel_logins *channel_logins_new(struct server *server);
void channel_logins_stop(struct channel_logins *logins); /* nothing is asked any more */
void channel_logins_free(struct channel_logins *logins); /* after the store; NULL is fine */

struct login_wish {
    bool restart;    /* begin anew, whatever there is */
    str verify_code; /* the number that the phone shows; or empty */
};

/* Begin a login, unless one is under way or has just ended, and take a verify code. Refusals:
 * ERR_INVALID_FIELD, nobody signs in to this kind of channel, or that is no code; ERR_NOT_CURRENT, no
 * code is waited for; ERR_SHUTTING_DOWN. */
enum err channel_login(struct channel_logins *logins, struct channel *channel,
                       const struct login_wish *wish, struct fault *reterr) MUST_USE;

/* {"state","content"?,"qr"?,"expiresAt","user"?,"detail"?} of the login that there is. */
void channel_login_write(struct channel_logins *logins, struct channel *channel,
                         struct json_writer *w);

#endif

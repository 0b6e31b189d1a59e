/* SPDX-License-Identifier: Apache-2.0
 *
 * The server that a command of the terminal talks to: by URL, or the running one of the data folder
 * through its socket. Requests one by one, on a loop or without.
 */
#ifndef TERM_LINK_H
#define TERM_LINK_H

#include "config/commands.h"
#include "net/http_client.h"

struct link {
    enum lang lang;
    const char *url;    /* without a slash at its end */
    const char *socket; /* NULL: the URL is meant */
    const char *folder; /* the data folder, to name it */
    const char *bearer; /* NULL: no key */
};

void link_init(struct link *link, struct arena *arena, const struct config *config,
               const struct args *args);

/* Is it there, and does it let us in? Says on standard error what to do if not. */
bool link_check(const struct link *link);

struct link_answer {
    enum err err; /* no answer came: ERR_NETWORK and the like */
    str reason;   /* then: why, for a person */
    int status;
    str body;    /* JSON, or empty */
    str problem; /* of a refusal: its own words */
    str code;    /* and its code */
};
bool link_good(const struct link_answer *answer); /* 2xx */

/* Wait for the answer. Its texts live in the arena. */
struct link_answer link_ask(const struct link *link, struct arena *arena, const char *method,
                            str path, str body);

/* On a loop. done comes once; the texts are borrowed until it returns. With ERR_CANCELLED the client is
 * being freed: let go of arg, and do nothing else. type: of the body; NULL is JSON. */
void link_send(const struct link *link, struct client *client, const char *method, str path,
               const char *type, str body,
               void (*done)(void *arg, const struct link_answer *answer), void *arg);

/* What a person is told about an answer that is no good. Lives in the arena. */
str link_trouble(const struct link *link, struct arena *arena, const struct link_answer *answer);
/* The same on standard error; EXIT_FAILED, for the command that ends with it. */
int link_failed(const struct link *link, struct arena *arena, const struct link_answer *answer);

/* For requests of one's own: the fields that each has, and where it goes. */
enum { LINK_FIELDS_MAX = 5 };
size_t link_fields(const struct link *link, struct client_header fields[static LINK_FIELDS_MAX]);
const char *link_url(const struct link *link, struct arena *arena, str path);

#endif

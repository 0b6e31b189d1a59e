/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam to chat platforms. A kind of channel is a const struct channel_ops: what the platform can
 * do, and pure functions that say which bytes to send to it and what its answers mean. No I/O, no
 * clock, no memory but the arena given: chat/platform request.c moves the bytes, and the same functions run
 * under tests and fuzzers without a platform.
 *
 * An errand is one purpose that takes one or more requests: to poll, to send a message, to fetch a
 * file. Its function is called with no reply first, then with the reply to each request it asked for,
 * until it asks for no more:
 *
 *     step(home, errand, NULL, &request)    ─► true: send this
 *     step(home, errand, &reply, &request)  ─► true: then this
 *     step(home, errand, &reply, &request)  ─► false: errand->verdict says how it ended
 *
 * Everything an errand remembers between its steps lives in its arena; one step is never repeated.
 *
 * To add a platform: a .c with a struct channel_ops, a row in kinds[] of chat/channel.c, a fake of
 * it in tests/channels, and a fuzz target for what it parses.
 */
#ifndef CHAT_CHANNEL_H
#define CHAT_CHANNEL_H

#include "base/arena.h"
#include "base/json.h"
#include "chat/inbound.h"
#include "store/table/channels.h"

/* ---- what a platform can do ---- */

struct channel_traits {
    const char *kind;              /* "weixin" */
    uint32_t chars_max, bytes_max; /* of one text, in code points and in UTF-8 */
    uint32_t sends_max;            /* for each message of the person; 0: no limit */
    uint32_t sends_kept;           /* of those, for questions, answers and errors alone */
    msec window_ms;                /* after a message of the person; 0: no limit */
    uint32_t buttons_max;          /* native buttons under a question; 0: none */
    uint32_t button_bytes_max;     /* of what a button sends back */
    bool polls;                    /* we ask for news; else it calls us */
    bool logs_in;                  /* by a QR code */
    bool typing;                   /* it can show that we are at work */
    bool files;                    /* it takes files */
    bool dedups;                   /* a repeated send with the same id is one message */
    bool topics;                   /* a reply token names a part of the chat; none: the main one */
};

/* ---- where it is, and as whom ---- */

struct channel_home {
    str name;           /* of the channel: "wx" */
    str base_url;       /* without a slash at its end */
    str token;          /* weixin, telegram: secret; wechat_oa: of the signature */
    str app_id, secret; /* wechat_oa; secret also of webhook */
    str aes_key;        /* wechat_oa: 43 characters, or empty */
    str url;            /* webhook: where messages go */
    str account;        /* JSON object, durable, the kind's own (struct channel_row) */
    str version;        /* ours: "1.2.3" */
};

/* ---- errands ---- */

struct channel_header {
    const char *name;
    str value;
};

enum { CHANNEL_HEADERS_MAX = 10 };

struct channel_request {
    const char *method; /* "GET", "POST" */
    str url;
    struct channel_header headers[CHANNEL_HEADERS_MAX];
    size_t header_count;
    str body;
    msec timeout_ms;       /* of the whole */
    size_t bytes_max;      /* of the answer's body; 0: CHANNEL_REPLY_BYTES_MAX */
    const char *want;      /* a header of the answer that the next step needs; or NULL */
    const char *only_host; /* ".weixin.qq.com": other hosts are refused; or NULL. Not checked when
                              home->base_url is on this machine. */
};

struct channel_reply {
    enum err e;         /* OK: the answer is whole; else what happened */
    bool sent;          /* the platform may have seen the request */
    int status;         /* HTTP; 0: none came */
    str body;           /* as far as it came; in the arena of the errand */
    str wanted;         /* value of the header `want`; empty if it has none */
    const char *reason; /* of e, for a person */
};

/* verdict, what is to be done */
enum errand_verdict {
    VERDICT_DONE,
    VERDICT_AGAIN,   /* surely nothing happened: again after errand->wait_ms (0: as usual) */
    VERDICT_OFTEN,   /* likewise, and it says that we ask too often: a few times, then parked */
    VERDICT_UNKNOWN, /* it may have happened */
    VERDICT_SPENT,   /* the platform takes no more until the person writes again */
    VERDICT_REFUSED, /* it never will take this one */
    VERDICT_LOGIN,   /* somebody has to sign in first */
    VERDICT_COUNT,
};

/* A message that goes out. */
struct outbound {
    str to;          /* the sender's id */
    str reply_token; /* newest of theirs */
    str client_id;   /* ours, the same at every attempt */
    str text;        /* or: */
    str file_name, file_mime, file_bytes;
    str buttons;     /* JSON [{"data","label"}], or empty */
    str interaction; /* id, or empty */
    enum out_class class;
    bool group;
};

/* A button was pressed, or its question is settled: what was asked shows it. */
struct receipt {
    str to, callback_id; /* of the press; may be empty */
    str server_id;       /* of the message with the buttons; may be empty */
    str text;            /* its text as it shall stand now; empty: as it is */
    str say;             /* a word for whoever pressed; may be empty */
};

struct errand {
    struct arena *arena;
    msec now;                 /* wall clock, of this step */
    unsigned char random[32]; /* anew for every step */

    /* what it is about, set by who begins it */
    const struct outbound *message;  /* send */
    const struct receipt *receipt;   /* mark */
    const struct inbound_file *file; /* fetch */
    str peer, reply_token;           /* typing */
    bool stop;                       /* typing: no longer */
    str cursor;                      /* poll */
    uint32_t wait_hint_ms;           /* poll: as the platform last said; 0: nothing yet */
    struct login *login;             /* login */

    /* the kind's own between steps */
    int step;
    void *own;

    /* how it ended */
    enum errand_verdict verdict;
    msec wait_ms;
    char detail[160];         /* of anything but VERDICT_DONE, one line, no secrets */
    str server_id;            /* send: the platform's id of the message */
    str bytes;                /* fetch */
    struct inbound *inbounds; /* poll */
    size_t inbound_count;
    str new_cursor;  /* poll; empty: as it was */
    str new_account; /* JSON to be stored in place of home->account; empty: as it was */
};

typedef bool errand_fn(const struct channel_home *home, struct errand *errand,
                       const struct channel_reply *reply, struct channel_request *ret_request);

/* ---- signing in ---- */

enum login_state {
    LOGIN_WAIT,    /* the code is shown */
    LOGIN_SCANNED, /* it has to be confirmed on the phone */
    LOGIN_VERIFY,  /* the phone shows a number that has to be typed here */
    LOGIN_DONE,    /* errand->new_account has what came of it; empty: the old one is good */
    LOGIN_EXPIRED, /* a new code is needed */
    LOGIN_FAILED,
};

/* Kept by who drives it, step after step; texts live in its arena. */
struct login {
    enum login_state state;
    str key;         /* of the polls */
    str content;     /* what the QR code says */
    str base_url;    /* of the polls */
    str verify_code; /* typed by the operator; taken by the next poll */
    char detail[160];
};

/* ---- calls of the platform ---- */

struct hook_call {
    bool get; /* GET: it asks whether we are we */
    str query, body;
    str timestamp, signature; /* headers Fermata-Timestamp, Fermata-Signature */
    msec now;
};

struct hook_answer {
    int status;
    const char *type; /* of the body */
    str body;
    struct inbound *inbounds; /* to be stored before the answer is given */
    size_t inbound_count;
    str once;         /* names the call: another one of that name does nothing; may be empty */
    char detail[160]; /* of a refusal, for the log */
};

/* ---- the seam ---- */

struct channel_ops {
    struct channel_traits traits;
    errand_fn *poll; /* NULL: it calls us */
    errand_fn *send;
    errand_fn *mark;   /* settles what a press left open; NULL if there is nothing to */
    errand_fn *typing; /* NULL: not known there */
    errand_fn *fetch;  /* bytes of a file that came in; NULL: none come */
    errand_fn *login_begin, *login_poll; /* NULL: nobody signs in */
    /* What it called us with: checked, understood, answered. The answer is given after what came in
     * is stored. */
    void (*hook)(const struct channel_home *home, struct arena *arena, const struct hook_call *call,
                 struct hook_answer *ret_answer);
};

const struct channel_ops *channel_kind(str kind); /* NULL: there is none */

extern const struct channel_ops channel_weixin, channel_wechat_oa, channel_telegram,
    channel_webhook;

#endif

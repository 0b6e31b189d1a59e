/* SPDX-License-Identifier: Apache-2.0
 *
 * load inbox: one client that reads a list page by page, as a person who scrolls does.
 *
 *     GET url ──▶ {..., "next": "123"} ──▶ GET url&cursor=123 ──▶ ... no next, or --depth pages ──▶ GET url
 *
 * With several keys (--key a,b,c) it is the next person's list each time it begins again.
 *
 * The first page and those behind it are two figures. Every page must be a 200 with at least one
 * row, a row being one "interactionId", and a cursor must lead on to a smaller one; anything else
 * fails the run.
 */
#include "load.h"

#include <inttypes.h>

enum { PATH_BYTES = 900 };

struct inbox {
    const struct options *options;
    struct net net;
    struct peer peer;
    struct target target;
    struct answer answer;
    struct buf body;
    struct hist first, deep;
    uint64_t rows;
    str keys, key;   /* those still to come in this round; whose list it is */
    uint64_t cursor; /* of the page asked for; 0: the first */
    uint64_t depth;  /* pages since the first one */
    nsec sent_at;
    bool failed;
};

static void next_person(struct inbox *inbox)
{
    if (!inbox->keys.len) inbox->keys = str_c(inbox->options->key);
    inbox->key = str_split(&inbox->keys, ',');
}

static void page_ask(struct inbox *inbox)
{
    char head[PATH_BYTES], cursor[48] = "";
    if (inbox->cursor) snprintf(cursor, sizeof cursor, "&cursor=%" PRIu64, inbox->cursor);
    int len = snprintf(head, sizeof head,
                       "GET %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %.*s\r\n\r\n",
                       inbox->target.path, cursor, inbox->target.host, STR_ARG(inbox->key));
    if (len >= (int)sizeof head) die("a key is too long");
    buf_clear(&inbox->body);
    inbox->sent_at = now_ns();
    peer_send(&inbox->peer, (str){head, (size_t)len});
}

static void fail(struct inbox *inbox, const char *what)
{
    if (!inbox->failed)
        fprintf(stderr, "load: page %" PRIu64 ", cursor %" PRIu64 ": %s\n", inbox->depth,
                inbox->cursor, what);
    inbox->failed = true;
}

static uint64_t count_rows(str body)
{
    static const str mark = STR("\"interactionId\":");
    uint64_t rows = 0;
    for (ptrdiff_t at; (at = str_find(body, mark)) >= 0; rows++)
        body = str_drop(body, (size_t)at + mark.len);
    return rows;
}

/* "next" is the last member of the page; 0: there is none. */
static uint64_t next_cursor(str body)
{
    static const str mark = STR("],\"next\":\"");
    uint64_t cursor = 0;
    size_t tail = body.len > 64 ? body.len - 64 : 0;
    body = str_drop(body, tail);
    ptrdiff_t at = str_find(body, mark);
    if (at < 0) return 0;
    body = str_drop(body, (size_t)at + mark.len);
    return str_to_u64(str_split(&body, '"'), &cursor) ? 0 : cursor;
}

static void page_read(struct inbox *inbox)
{
    nsec span = inbox->net.now - inbox->sent_at;
    hist_add(inbox->cursor ? &inbox->deep : &inbox->first, span);
    uint64_t rows = count_rows(buf_str(&inbox->body));
    uint64_t next = next_cursor(buf_str(&inbox->body));
    inbox->rows += rows;
    if (inbox->answer.status != 200 || inbox->body.full || !rows)
        fail(inbox, "not a page with rows");
    if (next && inbox->cursor && next >= inbox->cursor) fail(inbox, "the cursor does not fall");
    inbox->depth++;
    bool top = !next || inbox->depth >= inbox->options->depth;
    inbox->cursor = top ? 0 : next;
    if (!top) return;
    inbox->depth = 0;
    next_person(inbox);
}

static void on_bytes(struct peer *peer, str bytes)
{
    struct inbox *inbox = CONTAINER(peer, struct inbox, peer);
    str piece;
    enum answer_event event;
    while ((event = answer_feed(&inbox->answer, &bytes, &piece)) != ANSWER_MORE) {
        if (event == ANSWER_BODY) buf_append(&inbox->body, piece);
        if (event == ANSWER_BAD) fail(inbox, "not HTTP");
        if (event == ANSWER_BAD) return;
        if (event != ANSWER_END) continue;
        page_read(inbox);
        if (!inbox->failed) page_ask(inbox);
    }
}

static void on_end(struct peer *peer, int error)
{
    (void)error;
    fail(CONTAINER(peer, struct inbox, peer), "the connection was cut");
}

int load_inbox(const struct options *options)
{
    enum { PAGE_BYTES_MAX = 16 * 1024 * 1024 };
    struct inbox inbox = {.options = options, .peer = {.on_bytes = on_bytes, .on_end = on_end}};
    target_parse(options->url, &inbox.target);
    if (str_find_char(str_c(inbox.target.path), '?') < 0) die("--url needs a query");
    net_init(&inbox.net);
    answer_init(&inbox.answer);
    buf_init(&inbox.body, PAGE_BYTES_MAX);
    peer_dial(&inbox.net, &inbox.peer, &inbox.target, 0, 0);

    nsec end = now_ns() + options->timeout * NS_PER_S;
    next_person(&inbox);
    page_ask(&inbox);
    while (!inbox.failed && inbox.first.count + inbox.deep.count < options->pages) {
        if (now_ns() > end) fail(&inbox, "out of time");
        net_turn(&inbox.net, end);
    }
    printf("{\"mode\":\"inbox\",\"pages\":%" PRIu64 ",\"rows\":%" PRIu64
           ",\"first_p50_us\":%.1f,\"first_p99_us\":%.1f,\"first_max_us\":%.1f"
           ",\"deep_p50_us\":%.1f,\"deep_p99_us\":%.1f,\"deep_max_us\":%.1f}\n",
           inbox.first.count + inbox.deep.count, inbox.rows, hist_us(&inbox.first, 0.5),
           hist_us(&inbox.first, 0.99), (double)inbox.first.max / 1000, hist_us(&inbox.deep, 0.5),
           hist_us(&inbox.deep, 0.99), (double)inbox.deep.max / 1000);
    peer_close(&inbox.peer);
    answer_done(&inbox.answer);
    buf_done(&inbox.body);
    net_done(&inbox.net);
    return inbox.failed;
}

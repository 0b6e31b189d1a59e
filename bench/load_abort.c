/* SPDX-License-Identifier: Apache-2.0
 *
 * load abort: clients that connect, send some prefix of a request, perhaps all of it, and leave:
 * half of them by closing, half by a reset. The choices come from --seed.
 *
 * Afterwards the server must still answer a whole request with 200, and with --pid it must hold as
 * many descriptors as before; both are waited for, up to --timeout.
 */
#include "load.h"

#include <inttypes.h>

struct run {
    const struct options *options;
    struct net net;
    struct target target;
    nsec deadline;
    uint64_t random;
    struct buf requests[2]; /* a GET, and a POST with a body */
    uint64_t begun, resets;
    int last_status; /* of the whole request at the end; -1: the connection ended instead */
};

struct leaver {
    struct peer peer;
    struct run *run;
    bool gone; /* the server ended it first: also fine */
    nsec leave_at;
};

/* xorshift64*: the same choices for the same seed. */
static uint64_t random_next(struct run *run, uint64_t below)
{
    run->random ^= run->random >> 12;
    run->random ^= run->random << 25;
    run->random ^= run->random >> 27;
    return (run->random * 0x2545f4914f6cdd1dULL >> 33) % below;
}

static void on_leaver_bytes(struct peer *peer, str bytes)
{
    (void)peer;
    (void)bytes;
}

static void on_leaver_end(struct peer *peer, int error)
{
    (void)error;
    CONTAINER(peer, struct leaver, peer)->gone = true;
}

static void leaver_begin(struct run *run, struct leaver *leaver)
{
    const struct buf *request = &run->requests[random_next(run, COUNT(run->requests))];
    size_t prefix = (size_t)random_next(run, request->len + 1);
    leaver->run = run;
    leaver->gone = false;
    leaver->peer.on_bytes = on_leaver_bytes;
    leaver->peer.on_end = on_leaver_end;
    /* Closed ports rest for a minute: spread over many addresses of our own. */
    peer_dial(&run->net, &leaver->peer, &run->target, 1 + (unsigned)(run->begun % 200), 0);
    peer_send(&leaver->peer, (str){request->p, prefix});
    /* Some leave at once, some when the server may have begun to answer. */
    leaver->leave_at = run->net.now + random_next(run, 3) * NS_PER_MS;
    run->begun++;
}

static void leaver_leave(struct leaver *leaver)
{
    bool reset = random_next(leaver->run, 2);
    if (leaver->gone) return;
    leaver->run->resets += reset;
    if (reset)
        peer_reset(&leaver->peer);
    else
        peer_close(&leaver->peer);
}

static void abort_all(struct run *run, struct leaver *leavers)
{
    const struct options *options = run->options;
    uint64_t left = 0;
    for (uint64_t i = 0; i < options->conns; i++) leavers[i].peer.fd = -1;
    while (left < options->cycles && run->net.now < run->deadline) {
        net_turn(&run->net, run->net.now + NS_PER_MS);
        for (uint64_t i = 0; i < options->conns; i++) {
            struct leaver *leaver = &leavers[i];
            bool busy = leaver->run != NULL;
            if (busy && !leaver->gone && leaver->leave_at > run->net.now) continue;
            if (busy) leaver_leave(leaver);
            left += busy;
            leaver->run = NULL;
            if (run->begun < options->cycles) leaver_begin(run, leaver);
        }
    }
    if (left < options->cycles) die("not done in time");
}

/* ---- is the server well? ---- */

struct visitor {
    struct peer peer;
    struct run *run;
    struct answer answer;
};

static void on_visitor_bytes(struct peer *peer, str bytes)
{
    struct visitor *visitor = CONTAINER(peer, struct visitor, peer);
    str piece;
    while (bytes.len) {
        enum answer_event event = answer_feed(&visitor->answer, &bytes, &piece);
        if (event == ANSWER_HEAD) visitor->run->last_status = visitor->answer.status;
        if (event == ANSWER_BAD) visitor->run->last_status = -1;
        if (event == ANSWER_BAD || event == ANSWER_MORE) return;
    }
}

static void on_visitor_end(struct peer *peer, int error)
{
    (void)error;
    struct run *run = CONTAINER(peer, struct visitor, peer)->run;
    if (run->last_status == 0) run->last_status = -1;
}

static void visit(struct run *run)
{
    struct visitor visitor = {.run = run};
    visitor.peer.on_bytes = on_visitor_bytes;
    visitor.peer.on_end = on_visitor_end;
    answer_init(&visitor.answer);
    peer_dial(&run->net, &visitor.peer, &run->target, 0, 0);
    peer_send(&visitor.peer, buf_str(&run->requests[0]));
    while (run->last_status == 0 && run->net.now < run->deadline)
        net_turn(&run->net, run->deadline);
    peer_close(&visitor.peer);
    answer_done(&visitor.answer);
}

int load_abort(const struct options *options)
{
    struct run run = {.options = options, .random = options->seed * 2 + 1};
    target_parse(options->url, &run.target);
    net_init(&run.net);
    run.deadline = now_ns() + options->timeout * NS_PER_S;
    buf_init(&run.requests[0], OUT_BYTES_MAX);
    buf_init(&run.requests[1], OUT_BYTES_MAX);
    request_write(&run.requests[0], "GET", &run.target, STR_EMPTY);
    request_write(&run.requests[1], "POST", &run.target, STR("a body that is cut somewhere"));
    struct leaver *leavers = calloc(options->conns, sizeof *leavers);
    if (!leavers) die("out of memory");

    struct usage before, after;
    usage_read(options->pid, &before);
    nsec start = now_ns();
    abort_all(&run, leavers);
    double seconds = (double)(now_ns() - start) / 1e9;
    visit(&run);
    do {
        net_turn(&run.net, now_ns() + NS_PER_MS);
        usage_read(options->pid, &after);
    } while (after.fds > before.fds && run.net.now < run.deadline);

    printf("{\"mode\":\"abort\",\"cycles\":%" PRIu64 ",\"resets\":%" PRIu64
           ",\"seconds\":%.3f,\"cycles_per_s\":%.0f,\"status_after\":%d,\"fds_before\":%" PRIu64
           ",\"fds_after\":%" PRIu64 ",\"rss_kib_before\":%" PRIu64 ",\"rss_kib_after\":%" PRIu64
           "}\n",
           run.begun, run.resets, seconds, (double)run.begun / seconds, run.last_status, before.fds,
           after.fds, before.rss_kib, after.rss_kib);

    free(leavers);
    buf_done(&run.requests[0]);
    buf_done(&run.requests[1]);
    net_done(&run.net);
    return run.last_status != 200 || after.fds > before.fds;
}

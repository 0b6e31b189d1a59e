/* SPDX-License-Identifier: Apache-2.0
 *
 * The cards of tool rows, read from object storage for a page of history, all at the same time.
 *
 * A storage that hangs must not hang history: when nothing has come for CARDS_MS_MAX, the rows are
 * shown as they are. At the end of the process nobody tells us of jobs any more (server/transfer.h).
 */
#include "thread/stored_cards.h"

#include "agent/core/payload.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/loop.h"
#include "server/server.h"
#include "store/blob/blob.h"

struct history_card {
    struct cards *cards;
    struct history_card *next;
    struct message *row;
    struct blob_job *get; /* NULL: it is over */
};

struct cards {
    struct transfer transfer;
    struct server *server;
    struct arena *arena;
    struct history_card *first;
    size_t left; /* that are not there yet */
    struct timer *limit;
    void (*on_done)(void *arg, enum err e);
    void *arg;
};

void card_unreadable(const struct message *row, enum err e, const struct fault *reason)
{
    log_warn("payload.unreadable", LOG_STR("message", row->id), LOG_CSTR("code", err_code(e)),
             LOG_CSTR("reason", reason ? reason->text : ""));
}

/* Wait for none of them any more. */
static void cards_leave(struct cards *cards)
{
    for (struct history_card *card = cards->first; card; card = card->next)
        if (card->get) blob_forget(TAKE(card->get));
    timer_free(cards->limit);
    transfer_remove(&cards->server->transfers, &cards->transfer);
}

static void on_late(void *arg)
{
    struct cards *cards = arg;
    for (const struct history_card *card = cards->first; card; card = card->next)
        if (card->get) card_unreadable(card->row, ERR_TIMEOUT, NULL);
    cards_leave(cards);
    cards->on_done(cards->arg, OK);
}

static void cards_stop(struct transfer *transfer)
{
    struct cards *cards = CONTAINER(transfer, struct cards, transfer);
    cards_leave(cards);
    cards->on_done(cards->arg, ERR_SHUTTING_DOWN);
}

static void on_got(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct history_card *card = arg;
    struct cards *cards = card->cards;
    struct payload_parts parts;
    struct arena work;
    card->get = NULL;
    arena_init(&work);
    if (!e) e = payload_parse(&work, bytes, &parts);
    if (!e) card->row->ui = arena_str(cards->arena, parts.ui);
    if (e) card_unreadable(card->row, e, reason);
    arena_done(&work);
    timer_start(cards->limit, CARDS_MS_MAX);
    if (--cards->left) return;
    cards_leave(cards);
    cards->on_done(cards->arg, OK);
}

static const struct json *metadata_of(struct arena *arena, const struct message *row)
{
    struct json *metadata = NULL;
    bool readable =
        str_eq(row->role, STR("tool")) && json_parse(arena, row->metadata, &metadata, NULL) == OK;
    return readable ? metadata : NULL;
}

bool card_waits(struct arena *arena, const struct message *row)
{
    return json_get(metadata_of(arena, row), STR("storage_missing")) != NULL;
}

str card_path(struct arena *arena, const struct message *row)
{
    const struct json *metadata = metadata_of(arena, row);
    if (json_get(metadata, STR("storage_missing"))) return STR_EMPTY;
    return json_text(json_get(metadata, STR("storage_path")));
}

void cards_read(struct server *server, struct arena *arena, struct message *rows, size_t count,
                void (*on_done)(void *arg, enum err e), void *arg)
{
    struct cards *cards = ARENA_NEW(arena, struct cards);
    *cards = (struct cards){.transfer = {.stop = cards_stop},
                            .server = server,
                            .arena = arena,
                            .on_done = on_done,
                            .arg = arg};
    for (size_t i = 0; i < count; i++) {
        str path = card_path(arena, &rows[i]);
        if (!path.len) continue;
        struct history_card *card = ARENA_NEW(arena, struct history_card);
        *card = (struct history_card){.cards = cards, .next = cards->first, .row = &rows[i]};
        cards->first = card;
        cards->left++;
        card->get = blob_get(server->blobs, BUCKET_PAYLOADS, path, PAYLOAD_BYTES_MAX, on_got, card);
    }
    if (!cards->left) {
        on_done(arg, OK);
        return;
    }
    transfer_add(&server->transfers, &cards->transfer);
    cards->limit = timer_new(server->loop, on_late, cards);
    timer_start(cards->limit, CARDS_MS_MAX);
}

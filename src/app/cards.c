/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading payloads for rows of history, all of a page at the same time.
 */
#include "app/cards.h"

#include "agent/payload.h"
#include "app/server.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/blob.h"

struct cards {
    struct arena *arena;
    size_t left; /* that are not there yet, and one for whoever begins them */
    void (*on_done)(void *arg);
    void *arg;
};

struct card {
    struct cards *cards;
    struct message *row;
};

static void one_less(struct cards *cards)
{
    if (--cards->left == 0) cards->on_done(cards->arg);
}

void card_unreadable(const struct message *row, enum err e, const struct fault *reason)
{
    log_warn("payload.unreadable", LOG_STR("message", row->id), LOG_CSTR("code", err_code(e)),
             LOG_CSTR("reason", reason ? reason->text : ""));
}

static void on_got(void *arg, enum err e, str bytes, const struct fault *reason)
{
    struct card *card = arg;
    struct cards *cards = card->cards;
    struct payload_parts parts;
    struct arena work;
    arena_init(&work);
    if (!e) e = payload_parse(&work, bytes, &parts);
    if (!e) card->row->ui = arena_str(cards->arena, parts.ui);
    if (e) card_unreadable(card->row, e, reason);
    arena_done(&work);
    one_less(cards);
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
                void (*on_done)(void *arg), void *arg)
{
    struct cards *cards = ARENA_NEW(arena, struct cards);
    *cards = (struct cards){.arena = arena, .left = 1, .on_done = on_done, .arg = arg};
    for (size_t i = 0; i < count; i++) {
        str path = card_path(arena, &rows[i]);
        if (!path.len) continue;
        struct card *card = ARENA_NEW(arena, struct card);
        *card = (struct card){cards, &rows[i]};
        cards->left++;
        blob_get(server->blobs, BUCKET_PAYLOADS, path, PAYLOAD_BYTES_MAX, on_got, card);
    }
    one_less(cards);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys out of the bytes of a keyboard, as terminals send them; pure:
 *
 *     1B                  Esc, or the beginning of what follows
 *     1B 5B ... final     CSI: parameters 30-3F, then 20-2F, then a final byte 40-7E
 *     1B 4F final         SS3: arrows in another mode
 *     1B 0D               Alt and Enter
 *     1B other            Alt and another key: Esc, then the key
 *     1B 5B 200 ~ ... 1B 5B 201 ~    a paste; what stands between is text
 *
 * 1. At most sizeof held bytes are kept; a longer sequence is skipped to its final byte.
 * 2. A sequence that nobody knows is no key. Bytes that are no UTF-8 are none either.
 * 3. In a paste only characters and line ends come through.
 *
 * To add a key: a row in `sequences`.
 */
#include "term/term_key.h"

#include <string.h>

#include "base/utf8.h"
#include "ui/text.h"

enum { ESC = 0x1b };

static const struct {
    const char *bytes; /* behind Esc */
    enum term_key key;
} sequences[] = {
    {"[A", KEY_UP},    {"OA", KEY_UP},      {"[B", KEY_DOWN}, {"OB", KEY_DOWN}, {"[C", KEY_RIGHT},
    {"OC", KEY_RIGHT}, {"[D", KEY_LEFT},    {"OD", KEY_LEFT}, {"[H", KEY_HOME}, {"OH", KEY_HOME},
    {"[1~", KEY_HOME}, {"[7~", KEY_HOME},   {"[F", KEY_END},  {"OF", KEY_END},  {"[4~", KEY_END},
    {"[8~", KEY_END},  {"[3~", KEY_DELETE},
};

struct term_key_out {
    void (*on_key)(void *arg, struct key_event event);
    void *arg;
};

static void give(const struct keys *keys, const struct term_key_out *out, enum term_key key,
                 uint32_t code)
{
    bool text = key == KEY_CHAR;
    if (keys->pasting && !text) return;
    out->on_key(out->arg, (struct key_event){key, code, keys->pasting});
}

static void take_ascii(const struct keys *keys, const struct term_key_out *out, unsigned char byte)
{
    if (byte == '\r' || byte == '\n')
        give(keys, out, keys->pasting ? KEY_CHAR : KEY_ENTER, '\n');
    else if (byte == '\t')
        give(keys, out, keys->pasting ? KEY_CHAR : KEY_TAB, keys->pasting ? '\t' : 0);
    else if (byte == 0x7f || byte == 8)
        give(keys, out, KEY_BACKSPACE, 0);
    else if (byte >= ' ')
        give(keys, out, KEY_CHAR, byte);
    else if (byte >= 1 && byte <= 26)
        give(keys, out, KEY_CTRL, (uint32_t)('a' + byte - 1));
}

/* How many held bytes are used up; 0: more have to come. */
static size_t take_char(struct keys *keys, const struct term_key_out *out)
{
    unsigned char lead = keys->held[0];
    if (lead < 0xc2 || lead > 0xf4) return 1;
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < len && i < keys->len; i++)
        if ((keys->held[i] & 0xc0) != 0x80) return i; /* the others may begin anew */
    if (keys->len < len) return 0;
    str text = {(const char *)keys->held, len};
    if (!utf8_valid(text)) return len;
    uint32_t code = ui_next_char(&text);
    if (code >= 0xa0) give(keys, out, KEY_CHAR, code);
    return len;
}

static size_t take_escape(struct keys *keys, const struct term_key_out *out)
{
    if (keys->len < 2) return 0;
    unsigned char kind = keys->held[1];
    if (kind == '\r') {
        give(keys, out, KEY_CHAR, '\n');
        return 2;
    }
    if (kind != '[' && kind != 'O') {
        give(keys, out, KEY_ESC, 0);
        return 1;
    }
    for (size_t i = 2; i < keys->len; i++) {
        unsigned char byte = keys->held[i];
        if (byte < ' ' || byte > '~') return i; /* broken off */
        if (byte < '@') continue;
        str bytes = {(const char *)keys->held + 1, i};
        if (str_eq(bytes, STR("[200~"))) keys->pasting = true;
        if (str_eq(bytes, STR("[201~"))) keys->pasting = false;
        for (size_t k = 0; k < COUNT(sequences); k++)
            if (str_eq(bytes, str_c(sequences[k].bytes))) give(keys, out, sequences[k].key, 0);
        return i + 1;
    }
    if (keys->len < sizeof keys->held) return 0;
    keys->skipping = true;
    return keys->len;
}

static void drop(struct keys *keys, size_t count)
{
    keys->len -= count;
    memmove(keys->held, keys->held + count, keys->len);
}

static void take_held(struct keys *keys, const struct term_key_out *out)
{
    while (keys->len) {
        unsigned char first = keys->held[0];
        size_t used = 1;
        if (first == ESC)
            used = take_escape(keys, out);
        else if (first < 0x80)
            take_ascii(keys, out, first);
        else
            used = take_char(keys, out);
        if (!used) return;
        drop(keys, used);
    }
}

void keys_feed(struct keys *keys, str bytes, void (*on_key)(void *arg, struct key_event event),
               void *arg)
{
    struct term_key_out out = {on_key, arg};
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.p[i];
        if (keys->skipping) {
            keys->skipping = byte >= ' ' && byte < '@';
            continue;
        }
        keys->held[keys->len++] = byte;
        take_held(keys, &out);
    }
}

bool keys_waiting(const struct keys *keys)
{
    return keys->len && keys->held[0] == ESC;
}

void keys_flush(struct keys *keys, void (*on_key)(void *arg, struct key_event event), void *arg)
{
    struct term_key_out out = {on_key, arg};
    if (!keys_waiting(keys)) return;
    give(keys, &out, KEY_ESC, 0);
    drop(keys, 1);
    take_held(keys, &out);
}

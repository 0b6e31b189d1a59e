/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a keyboard into keys, in pieces cut anywhere. Pure.
 */
#ifndef TERM_TERM_KEY_H
#define TERM_TERM_KEY_H

#include "base/str.h"

enum term_key {
    KEY_CHAR, /* code; '\n' only from a paste, or with Alt and Enter */
    KEY_ENTER,
    KEY_ESC,
    KEY_TAB,
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_BACKSPACE,
    KEY_DELETE,
    KEY_CTRL, /* code: the letter, 'a' to 'z' */
    KEY_COUNT
};

struct key_event {
    enum term_key key;
    uint32_t code;
    bool pasted; /* nobody pressed it: it is text, never a command */
};

/* Embedded; zeroed is ready. */
struct keys {
    unsigned char held[16]; /* an unfinished character or sequence */
    size_t len;
    bool pasting, skipping; /* inside a paste; inside a sequence that is too long */
};

void keys_feed(struct keys *keys, str bytes, void (*on_key)(void *arg, struct key_event event),
               void *arg);

/* Does an Esc wait for what may follow it? If nothing does for a moment, keys_flush makes it a key. */
bool keys_waiting(const struct keys *keys);
void keys_flush(struct keys *keys, void (*on_key)(void *arg, struct key_event event), void *arg);

#endif

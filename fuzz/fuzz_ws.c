/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as what a WebSocket client sends to a server that echoes texts. However they are cut,
 * the same must be heard and said: the first byte of the input seeds a third way of cutting. And
 * what is said must be whole frames.
 */
#include "net/ws_kit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
    struct buf events, out;
};

static struct heard hear(str bytes, uint64_t cuts)
{
    struct heard heard;
    buf_init(&heard.events, SIZE_MAX);
    buf_init(&heard.out, SIZE_MAX);
    ws_trace(&heard.events, &heard.out, bytes, cuts);
    return heard;
}

static void heard_done(struct heard *heard)
{
    buf_done(&heard->events);
    buf_done(&heard->out);
}

static void compare(const struct heard *whole, str bytes, uint64_t cuts)
{
    struct heard cut = hear(bytes, cuts);
    if (!str_eq(buf_str(&whole->events), buf_str(&cut.events)) ||
        !str_eq(buf_str(&whole->out), buf_str(&cut.out)))
        abort();
    heard_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    str bytes = {(const char *)data + 1, size - 1};
    struct heard whole = hear(bytes, WS_CUT_NOT);
    compare(&whole, bytes, WS_CUT_BYTES);
    compare(&whole, bytes, 2 + data[0]);

    struct buf said;
    buf_init(&said, SIZE_MAX);
    ws_say(&said, buf_str(&whole.out));
    str text = buf_str(&said);
    if (str_eq(text, STR("?")) || str_ends(text, STR(" ?"))) abort();
    buf_done(&said);
    heard_done(&whole);
    return 0;
}

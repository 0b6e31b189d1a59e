/* SPDX-License-Identifier: Apache-2.0 */
#include "ws_kit.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "net/ws_frames.h"

enum { FRAME_BYTES_MAX = 1 << 20, SHOWN_BYTES_MAX = 60 };

const struct ws_row ws_rows[] = {
    {"W10 unmasked", "!810568656c6c6f", "88=1002"},
    {"W10 unmasked ping", "81:a !8900", "81:a 88=1002"},
    {"W10 unmasked and nothing else", "!8100", "88=1002"},
    {"W11 RSV1", "c1:x", "88=1002"},
    {"W11 RSV2", "a1:x", "88=1002"},
    {"W11 RSV3", "91:x", "88=1002"},
    {"W11 RSV1 of a ping", "c9:", "88=1002"},
    {"W11 RSV1 of a fragment", "01:a c0:b", "88=1002"},
    {"W12 opcode 3", "83:x", "88=1002"},
    {"W12 opcode 4", "84:x", "88=1002"},
    {"W12 opcode 5", "85:x", "88=1002"},
    {"W12 opcode 6", "86:x", "88=1002"},
    {"W12 opcode 7", "87:x", "88=1002"},
    {"W12 opcode B", "8b:x", "88=1002"},
    {"W12 opcode C", "8c:x", "88=1002"},
    {"W12 opcode D", "8d:x", "88=1002"},
    {"W12 opcode E", "8e:", "88=1002"},
    {"W12 opcode F", "8f:", "88=1002"},
    {"W12 opcode 3 in a message", "01:a 83:x", "88=1002"},
    {"W12 opcode B in a message", "01:a 8b:x", "88=1002"},
    {"W13 ping too long", "89*126", "88=1002"},
    {"W13 pong too long", "8a*126", "88=1002"},
    {"W13 close too long", "88*126", "88=1002"},
    {"W13 very long ping", "89*70000", "88=1002"},
    {"W13 ping in fragments", "09:a 80:b", "88=1002"},
    {"W13 pong in fragments", "0a:", "88=1002"},
    {"W13 close in fragments", "08=1000", "88=1002"},
    {"W14 ping of 0", "89: 81:a", "8a: 81:a"},
    {"W14 ping of 125", "89*125", "8a*125"},
    {"W14 ping of any bytes", "89:#00ff80c0", "8a:#00ff80c0"},
    {"W14 ten pings", "89:0 89:1 89:2 89:3 89:4 89:5 89:6 89:7 89:8 89:9",
     "8a:0 8a:1 8a:2 8a:3 8a:4 8a:5 8a:6 8a:7 8a:8 8a:9"},
    {"W14 ping in a message", "01:he 89:p 00:l 89*125 80:lo", "8a:p 8a*125 81:hello"},
    {"W14 pongs are nothing", "8a: 8a*125 01:a 8a:b 80:c", "81:ac"},
    {"W15 nothing to go on with", "80:x", "88=1002"},
    {"W15 nothing to go on with, and more", "00:x", "88=1002"},
    {"W15 behind a message", "81:a 80:b", "81:a 88=1002"},
    {"W15 behind fragments", "01:a 80:b 80:c", "81:ab 88=1002"},
    {"W15 text in a message", "01:a 81:b", "88=1002"},
    {"W15 fragment in a message", "01:a 01:b", "88=1002"},
    {"W15 binary in a message", "01:a 82:b", "88=1002"},
    {"W16 5 in 2 bytes", "!81fe00050000000068656c6c6f", "88=1002"},
    {"W16 125 in 2 bytes", "!81fe007d00000000", "88=1002"},
    {"W16 200 in 8 bytes", "!81ff00000000000000c800000000", "88=1002"},
    {"W16 65535 in 8 bytes", "!81ff000000000000ffff00000000", "88=1002"},
    {"W16 125", "81*125", "81*125"},
    {"W16 126", "81*126", "81*126"},
    {"W16 65535", "81*65535", "81*65535"},
    {"W16 65536", "81*65536", "81*65536"},
    {"W17 the top bit", "!81ff800000000000000000000000", "88=1002"},
    {"W17 all bits", "!81ffffffffffffffffff00000000", "88=1002"},
    {"W17 2^62", "!81ff400000000000000000000000", "88=1009"},
    {"W17 2^63 - 1 behind a fragment", "01:a !80ff7fffffffffffffff00000000", "88=1009"},
    {"W18 limit", "81*262144", "81*262144"},
    {"W18 limit + 1", "81*262145", "88=1009"},
    {"W18 limit in fragments", "01*131072 80*131072", "81*262144"},
    {"W18 limit + 1 in fragments", "01*131072 80*131073", "88=1009"},
    {"W18 limit + 1 in three", "01*200000 00*50000 80*12145", "88=1009"},
    {"W18 limit and empty fragments", "01*262144 00: 80:", "81*262144"},
    {"W18 limit and one more byte", "01*262144 80:x", "88=1009"},
    {"W19 C0 80", "81:#c080", "88=1007"},
    {"W19 ED A0 80", "81:#eda080", "88=1007"},
    {"W19 F4 90 80 80", "81:#f4908080", "88=1007"},
    {"W19 FF", "81:#ff", "88=1007"},
    {"W19 cut at its end", "81:#61e282", "88=1007"},
    {"W19 cut at the end of fragments", "01:#e2 80:#82", "88=1007"},
    {"W19 cut, and an empty end", "01:#e282 80:", "88=1007"},
    {"W19 before the message ends", "01:#ff", "88=1007"},
    {"W19 behind good ones", "81:a 81:#80", "81:a 88=1007"},
    {"W20 over fragments", "01:#e2 00:#82 80:#ac", "81:#e282ac"},
    {"W20 over fragments and a ping", "01:#f0 89:#ff 00:#9f98 80:#80", "8a:#ff 81:#f09f9880"},
    {"W20 the highest", "81:#f48fbfbf", "81:#f48fbfbf"},
    {"W20 empty fragments", "01: 00: 00:a 00: 80:", "81:a"},
    {"W20 nothing in fragments", "01: 80:", "81:"},
    {"W20 nothing", "81:", "81:"},
    {"W21 64 fragments", "01:a 62@00:b 80:c 81:d",
     "81:abbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbc 81:d"},
    {"W21 twice 42 fragments", "01:a 40@00: 80:b 01:c 40@00: 80:d", "81:ab 81:cd"},
    {"W21 65 fragments", "01:a 63@00:b 80:c", "88=1008"},
    {"W21 empty fragments without end", "01: 10000@00:", "88=1008"},
    {"W22 binary", "82:x", "88=1003"},
    {"W22 binary in fragments", "02:x", "88=1003"},
    {"W22 empty binary behind a text", "81:a 82:", "81:a 88=1003"},
    {"W24 half a code", "88:x", "88=1002"},
    {"W24 0", "88=0", "88=1002"},
    {"W24 999", "88=999", "88=1002"},
    {"W24 1004", "88=1004", "88=1002"},
    {"W24 1005", "88=1005", "88=1002"},
    {"W24 1006", "88=1006", "88=1002"},
    {"W24 1015", "88=1015", "88=1002"},
    {"W24 1016", "88=1016", "88=1002"},
    {"W24 1100", "88=1100", "88=1002"},
    {"W24 2000", "88=2000", "88=1002"},
    {"W24 2999", "88=2999", "88=1002"},
    {"W24 5000", "88=5000", "88=1002"},
    {"W24 65535", "88=65535", "88=1002"},
    {"W25 1000", "88=1000", "88=1000"},
    {"W25 1001", "88=1001", "88=1001"},
    {"W25 1002", "88=1002", "88=1002"},
    {"W25 1003", "88=1003", "88=1003"},
    {"W25 1007", "88=1007", "88=1007"},
    {"W25 1008", "88=1008", "88=1008"},
    {"W25 1009", "88=1009", "88=1009"},
    {"W25 1010", "88=1010", "88=1010"},
    {"W25 1011", "88=1011", "88=1011"},
    {"W25 3000", "88=3000", "88=3000"},
    {"W25 3999", "88=3999", "88=3999"},
    {"W25 4000", "88=4000", "88=4000"},
    {"W25 4999", "88=4999", "88=4999"},
    {"W25 no code", "88:", "88:"},
    {"W25 a reason", "88=1000,bye", "88=1000"},
    {"W25 in a message", "01:a 88=1000", "88=1000"},
    {"W26 C0 80", "88=1000,#c080", "88=1007"},
    {"W26 cut at its end", "88=1000,#61e282", "88=1007"},
    {"W26 a good one", "88=1000,#e282ac61f09f9880", "88=1000"},
    {"W26 a good one across a border", "81*4076 88=1000,#e282ace282ace282ace282ac",
     "81*4076 88=1000"},
    {"W26 a bad one across a border", "81*4076 88=1000,#61616161e28261616161", "81*4076 88=1007"},
    {"W27 frames behind it", "88=1000 81:x 89: 88=1001", "88=1000"},
    {"W27 nonsense behind it", "88=1000 !ffffffffffff", "88=1000"},
    {"W27 nonsense behind nonsense", "83:x !ffffffffffff", "88=1002"},
    {"W33 some of everything", "81:a 01:b 89:c 00:d 8a:e 80:f 89: 81:#e282ac 88=1001,bye",
     "81:a 8a:c 81:bdf 8a: 81:#e282ac 88=1001"},
};
const size_t ws_row_count = COUNT(ws_rows);

/* ---- writing ---- */

static void put_hex(struct buf *out, str hex)
{
    char *room = buf_room(out, hex.len / 2);
    if (!room || !crypto_unhex(hex, (unsigned char *)room, hex.len / 2)) abort();
    buf_added(out, hex.len / 2);
}

static void put_text(struct buf *out, str text)
{
    if (str_starts(text, STR("#")))
        put_hex(out, str_drop(text, 1));
    else
        buf_append(out, text);
}

static uint64_t number(str digits)
{
    uint64_t value;
    if (str_to_u64(digits, &value)) abort();
    return value;
}

static void put_length(struct buf *out, size_t len)
{
    unsigned more = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;
    buf_char(out, (char)(0x80 | (more == 0 ? len : more == 2 ? 126 : 127)));
    while (more--) buf_char(out, (char)((uint64_t)len >> 8 * more));
}

static void put_payload(struct buf *payload, char kind, str text)
{
    if (kind == '=') {
        uint64_t code = number(str_split(&text, ','));
        buf_char(payload, (char)(code >> 8));
        buf_char(payload, (char)code);
        put_text(payload, text);
    } else if (kind == '*') {
        for (uint64_t i = number(text); i; i--) buf_char(payload, 'x');
    } else {
        put_text(payload, text);
    }
}

static void put_frame(struct buf *out, str word)
{
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    struct buf payload;
    buf_init(&payload, FRAME_BYTES_MAX);
    put_payload(&payload, word.p[2], str_drop(word, 3));
    put_hex(out, (str){word.p, 2});
    put_length(out, payload.len);
    buf_append(out, (str){(const char *)mask, sizeof mask});
    for (size_t i = 0; i < payload.len; i++)
        buf_char(out, (char)((unsigned char)payload.p[i] ^ mask[i % sizeof mask]));
    buf_done(&payload);
}

void ws_script(struct buf *out, const char *script)
{
    for (str rest = str_c(script); rest.p;) {
        str word = str_split(&rest, ' ');
        ptrdiff_t at = str_find_char(word, '@');
        uint64_t times = at < 0 ? 1 : number((str){word.p, (size_t)at});
        word = str_drop(word, (size_t)(at + 1));
        for (; times; times--) {
            if (str_starts(word, STR("!")))
                put_hex(out, str_drop(word, 1));
            else
                put_frame(out, word);
        }
    }
}

/* ---- reading ---- */

/* The size of the first frame, and its payload; 0 if it is not whole. */
static size_t frame_size(str bytes, str *ret_payload)
{
    if (bytes.len < 2) return 0;
    size_t len = (unsigned char)bytes.p[1], head = 2;
    unsigned more = len < 126 ? 0 : len == 126 ? 2 : 8;
    if (len > 127 || bytes.len < head + more) return 0; /* a server does not mask */
    if (more) len = 0;
    for (; more; more--) len = len << 8 | (unsigned char)bytes.p[head++];
    if (bytes.len - head < len) return 0;
    *ret_payload = (str){bytes.p + head, len};
    return head + len;
}

static void say_payload(struct buf *out, str payload)
{
    bool plain = payload.len <= 2 * SHOWN_BYTES_MAX && !str_starts(payload, STR("#"));
    bool same = payload.len > SHOWN_BYTES_MAX;
    for (size_t i = 0; i < payload.len; i++) {
        plain = plain && payload.p[i] > ' ' && payload.p[i] < 0x7f;
        same = same && payload.p[i] == 'x';
    }
    if (same) {
        buf_printf(out, "*%zu", payload.len);
        return;
    }
    buf_append(out, plain ? STR(":") : STR(":#"));
    if (plain) buf_append(out, payload);
    for (size_t i = 0; !plain && i < payload.len; i++)
        buf_printf(out, "%02x", (unsigned char)payload.p[i]);
}

void ws_say(struct buf *out, str frames)
{
    for (const char *gap = ""; frames.len; gap = " ") {
        str payload;
        size_t size = frame_size(frames, &payload);
        if (!size) {
            buf_printf(out, "%s?", gap);
            return;
        }
        unsigned first = (unsigned char)frames.p[0];
        buf_printf(out, "%s%02x", gap, first);
        if ((first & 0x0f) == WS_OP_CLOSE && payload.len >= 2)
            buf_printf(out, "=%u",
                       (unsigned)(unsigned char)payload.p[0] << 8 | (unsigned char)payload.p[1]);
        else
            say_payload(out, payload);
        frames = str_drop(frames, size);
    }
}

/* ---- the codec alone ---- */

/* True while it is to be fed. */
static bool trace_piece(struct ws_frames *frames, struct buf *events, struct buf *out, str piece)
{
    for (;;) {
        switch (ws_frames_feed(frames, &piece, out)) {
        case WS_FRAMES_MORE:
            if (piece.len) abort();
            return true;
        case WS_FRAMES_TEXT:
            if (!utf8_valid(frames->text) || frames->text.len > WS_MESSAGE_BYTES_MAX) abort();
            buf_char(events, 't');
            ws_frames_text(out, frames->text);
            break;
        case WS_FRAMES_PING:
            buf_char(events, 'p');
            break;
        case WS_FRAMES_PONG:
            buf_char(events, 'q');
            break;
        case WS_FRAMES_OVER:
            buf_char(events, '.');
            return false;
        }
    }
}

static size_t next_cut(uint64_t *seed, size_t left)
{
    if (*seed == WS_CUT_NOT) return left;
    if (*seed == WS_CUT_BYTES) return 1;
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    size_t size = 1 + (size_t)(*seed >> 33) % 24;
    return size < left ? size : left;
}

void ws_trace(struct buf *events, struct buf *out, str bytes, uint64_t cuts)
{
    struct ws_frames frames;
    ws_frames_init(&frames);
    for (bool more = true; more && bytes.len;) {
        size_t size = next_cut(&cuts, bytes.len);
        char *copy = malloc(size);
        if (!copy) abort();
        memcpy(copy, bytes.p, size);
        bytes = str_drop(bytes, size);
        more = trace_piece(&frames, events, out, (str){copy, size});
        free(copy);
    }
    ws_frames_done(&frames);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The headers of a client's WebSocket frames, checked before wslay sees them; RFC 6455, 5.2; pure:
 *
 *     FIN RSV RSV RSV opcode(4) | MASK length(7) | length, 2 or 8 bytes | mask, 4 bytes | payload
 *
 *               2 bytes          all of the header
 *      START ───────────▶ HEADER ──────────────────▶ PAYLOAD   of a data frame, given on as it comes
 *        ▲                   │                          │
 *        │                   ├──────────▶ CONTROL       │      gathered, given on whole
 *        └───────────────────┴───────────────┴──────────┘
 *
 * 1. A header is given on only when it was found good, so what reads behind us never sees a bad
 *    one; nothing is given on behind a fault.
 * 2. A control frame is given on whole. wslay checks the reason of a close frame per piece, and
 *    skips two bytes of each.
 *
 * One more check: a line in check_start or take_header.
 */
#include "net/ws_scan.h"

#include <string.h>

#include "base/limits.h"

enum { STEP_START, STEP_HEADER, STEP_CONTROL, STEP_PAYLOAD, STEP_BAD };
enum { START_BYTES = 2, MASK_BYTES = 4 };
enum { LENGTH_IN_2 = 126, LENGTH_IN_8 = 127 }; /* values of the 7 bits */

void ws_scan_init(struct ws_scan *scan)
{
    *scan = (struct ws_scan){.step = STEP_START, .need = START_BYTES};
}

static bool is_final(const struct ws_scan *scan)
{
    return scan->frame[0] & 0x80;
}

static bool is_control(const struct ws_scan *scan)
{
    return scan->frame[0] & 0x08;
}

static unsigned short_length(const struct ws_scan *scan)
{
    return scan->frame[1] & 0x7f;
}

/* 0, or the fault that the first two bytes show. */
static enum ws_fault check_start(const struct ws_scan *scan)
{
    unsigned op = scan->frame[0] & 0x0f, length = short_length(scan);
    bool masked = scan->frame[1] & 0x80, reserved = scan->frame[0] & 0x70;
    if (reserved || !masked) return WS_FAULT_FRAMING;
    if (is_control(scan)) {
        if (op > WS_OP_PONG || !is_final(scan) || length > WS_CONTROL_BYTES_MAX)
            return WS_FAULT_FRAMING;
        if (op == WS_OP_CLOSE && length == 1) return WS_FAULT_FRAMING; /* half a code */
        return 0;
    }
    if (op > WS_OP_BINARY || (op == WS_OP_CONTINUE) != scan->open) return WS_FAULT_FRAMING;
    if (op == WS_OP_BINARY) return WS_FAULT_BINARY;
    return scan->open && scan->fragments >= WS_FRAGMENTS_MAX ? WS_FAULT_TOO_MUCH : 0;
}

/* ---- steps ---- */

static enum ws_scan_event ws_scan_bad(struct ws_scan *scan, enum ws_fault fault)
{
    scan->step = STEP_BAD;
    scan->fault = fault;
    return WS_SCAN_BAD;
}

static enum ws_scan_event give(struct ws_scan *scan, enum ws_scan_event event)
{
    scan->piece = (str){(const char *)scan->frame, scan->have};
    scan->step = scan->left ? STEP_PAYLOAD : STEP_START;
    scan->have = 0;
    scan->need = START_BYTES;
    return event;
}

/* A whole header: count it, and give it on unless a control frame's payload belongs to it. */
static enum ws_scan_event take_header(struct ws_scan *scan)
{
    unsigned in = short_length(scan);
    uint64_t length = in < LENGTH_IN_2 ? in : 0;
    unsigned end = START_BYTES + (in < LENGTH_IN_2 ? 0 : in == LENGTH_IN_2 ? 2 : 8);
    for (unsigned i = START_BYTES; i < end; i++) length = length << 8 | scan->frame[i];
    if (in == LENGTH_IN_2 && length < LENGTH_IN_2) return ws_scan_bad(scan, WS_FAULT_FRAMING);
    if (in == LENGTH_IN_8 && (length <= UINT16_MAX || length >> 63))
        return ws_scan_bad(scan, WS_FAULT_FRAMING);
    uint64_t before = scan->open ? scan->message : 0;
    if (!is_control(scan) && before + length > WS_MESSAGE_BYTES_MAX)
        return ws_scan_bad(scan, WS_FAULT_TOO_LONG);

    if (is_control(scan)) {
        scan->step = STEP_CONTROL;
        scan->need = (uint8_t)(scan->need + length);
        return WS_SCAN_MORE;
    }
    if (!scan->open) scan->message = scan->fragments = 0;
    scan->open = !is_final(scan);
    scan->fragments++;
    scan->message += length;
    scan->left = length;
    return give(scan, WS_SCAN_DATA);
}

static enum ws_scan_event take_payload(struct ws_scan *scan, str *input)
{
    size_t count = scan->left < input->len ? (size_t)scan->left : input->len;
    if (!count) return WS_SCAN_MORE;
    scan->piece = (str){input->p, count};
    *input = str_drop(*input, count);
    scan->left -= count;
    if (!scan->left) scan->step = STEP_START;
    return WS_SCAN_DATA;
}

/* True when all that the step needs is there. */
static bool gather(struct ws_scan *scan, str *input)
{
    size_t wanted = (size_t)(scan->need - scan->have);
    size_t count = wanted < input->len ? wanted : input->len;
    if (count) memcpy(scan->frame + scan->have, input->p, count);
    scan->have = (uint8_t)(scan->have + count);
    *input = str_drop(*input, count);
    return scan->have == scan->need;
}

enum ws_scan_event ws_scan_feed(struct ws_scan *scan, str *input)
{
    if (scan->step == STEP_BAD) return WS_SCAN_BAD;
    if (scan->step == STEP_PAYLOAD) return take_payload(scan, input);
    while (gather(scan, input)) {
        if (scan->step == STEP_CONTROL) return give(scan, WS_SCAN_CONTROL);
        if (scan->step == STEP_HEADER) {
            enum ws_scan_event event = take_header(scan);
            if (event != WS_SCAN_MORE) return event;
            continue;
        }
        enum ws_fault fault = check_start(scan);
        if (fault) return ws_scan_bad(scan, fault);
        unsigned length = short_length(scan);
        unsigned more = length == LENGTH_IN_2 ? 2 : length == LENGTH_IN_8 ? 8 : 0;
        scan->step = STEP_HEADER;
        scan->need = (uint8_t)(START_BYTES + more + MASK_BYTES);
    }
    return WS_SCAN_MORE;
}

bool ws_scan_rests(const struct ws_scan *scan)
{
    return !scan->open && !scan->left;
}

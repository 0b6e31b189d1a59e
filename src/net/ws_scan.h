/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's WebSocket frames, checked by their headers before anything else sees them. Pure and
 * resumable: any split of the bytes gives the same frames and the same verdict, and a verdict falls
 * as soon as the header shows the fault, whatever length it promises.
 *
 * Checked here: masks, reserved bits and opcodes, control frames, the order of fragments and their
 * number, minimal lengths, the length of a message. Not here: what the payload says.
 */
#ifndef NET_WS_SCAN_H
#define NET_WS_SCAN_H

#include "base/str.h"

enum { WS_CONTROL_BYTES_MAX = 125 }; /* payload of a control frame: RFC 6455, 5.5 */

enum ws_opcode {
    WS_OP_CONTINUE = 0x0,
    WS_OP_TEXT = 0x1,
    WS_OP_BINARY = 0x2,
    WS_OP_CLOSE = 0x8,
    WS_OP_PING = 0x9,
    WS_OP_PONG = 0xa,
};

/* Close codes for what a peer does wrong. */
enum ws_fault {
    WS_FAULT_FRAMING = 1002,
    WS_FAULT_BINARY = 1003,
    WS_FAULT_TOO_MUCH = 1008,
    WS_FAULT_TOO_LONG = 1009,
};

enum ws_scan_event {
    WS_SCAN_MORE,    /* all bytes taken; feed more */
    WS_SCAN_DATA,    /* `piece` is the whole header of a data frame, or bytes of its payload */
    WS_SCAN_CONTROL, /* `piece` is a whole control frame */
    WS_SCAN_BAD,     /* `fault` says why; final */
};

struct ws_scan {
    /* Results. */
    str piece; /* as sent, masked; until the next call, or that of the input */
    enum ws_fault fault;

    /* State. */
    uint8_t step;
    uint8_t have, need;      /* bytes gathered, and wanted for this step */
    bool open;               /* a message of fragments goes on with the next data frame */
    unsigned char fragments; /* frames of it so far */
    uint64_t message;        /* bytes of it so far */
    uint64_t left;           /* of the payload at hand */
    unsigned char frame[2 + 4 + WS_CONTROL_BYTES_MAX]; /* a header, and what a control frame says */
};

void ws_scan_init(struct ws_scan *scan);

/* Take bytes from the front of *input until something happened; go on until WS_SCAN_MORE. */
enum ws_scan_event ws_scan_feed(struct ws_scan *scan, str *input);

/* No message is under way. The first bytes of a header may be. */
bool ws_scan_rests(const struct ws_scan *scan);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSockets over real connections: handshakes, and the frames of a client. Names like W14 are rows
 * of our list of cases; those of frames alone stand in ws_kit.c.
 */
#include "net/ws.h"

#include <string.h>

#include "ws_stage.h"

enum { SHORT_BYTES = 100 };

/* ---- handshakes ---- */

#define GET     "GET /ws HTTP/1.1\r\nHost: h\r\n"
#define UPGRADE "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *head;
        int status;
    } cases[] = {
        {"W1 plain", GET, 426},
        {"W1 kept alive", GET "Connection: keep-alive\r\n", 426},
        {"W1 in HTTP/1.0", "GET /ws HTTP/1.0\r\n", 426},
        {"W2 no Connection",
         GET "Upgrade: websocket\r\n" VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n", 400},
        {"W2 other Connection",
         GET "Connection: close\r\nUpgrade: websocket\r\n" VERSION "Sec-WebSocket-Key: " WS_KEY
             "\r\n",
         400},
        {"W2 no Upgrade", GET "Connection: Upgrade\r\n" VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n",
         400},
        {"W2 other Upgrade",
         GET "Connection: Upgrade\r\nUpgrade: h2c\r\n" VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n",
         400},
        {"W2 HTTP/1.0", "GET /ws HTTP/1.0\r\n" UPGRADE VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n",
         400},
        {"W2 a body",
         GET UPGRADE VERSION "Content-Length: 2\r\nSec-WebSocket-Key: " WS_KEY "\r\n\r\n{}", 400},
        {"W3 no key", GET UPGRADE VERSION, 400},
        {"W3 empty", GET UPGRADE VERSION "Sec-WebSocket-Key:\r\n", 400},
        {"W3 15 bytes", GET UPGRADE VERSION "Sec-WebSocket-Key: YWFhYWFhYWFhYWFhYWFh\r\n", 400},
        {"W3 17 bytes", GET UPGRADE VERSION "Sec-WebSocket-Key: YWFhYWFhYWFhYWFhYWFhYWE=\r\n", 400},
        {"W3 no base64", GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSB-b25jZQ==\r\n",
         400},
        {"W3 bits to spare", GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n",
         400},
        {"W3 no padding", GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n", 400},
        {"W3 doubled",
         GET UPGRADE VERSION "Sec-WebSocket-Key: " WS_KEY "\r\nSec-WebSocket-Key: " WS_KEY "\r\n",
         400},
        {"W4 none", GET UPGRADE "Sec-WebSocket-Key: " WS_KEY "\r\n", 426},
        {"W4 8", GET UPGRADE "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: " WS_KEY "\r\n", 426},
        {"W4 14", GET UPGRADE "Sec-WebSocket-Version: 14\r\nSec-WebSocket-Key: " WS_KEY "\r\n",
         426},
        {"W4 a list",
         GET UPGRADE "Sec-WebSocket-Version: 13, 8\r\nSec-WebSocket-Key: " WS_KEY "\r\n", 426},
        {"W4 doubled", GET UPGRADE VERSION VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n", 426},
    };
    struct ws_stage stage;
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct caller caller;
        caller_open(&caller, &stage.kit, false);
        caller_send(&caller, str_c(cases[i].head));
        if (!strstr(cases[i].head, "\r\n\r\n")) caller_send(&caller, STR("\r\n"));
        struct response answer = caller_take(&caller, false);
        if (answer.status != cases[i].status)
            fail_msg("%s: %d, expected %d", cases[i].name, answer.status, cases[i].status);
        bool offers = answer.status == 426;
        assert_str(response_field(&answer, STR("Upgrade")), offers ? STR("websocket") : STR_EMPTY);
        assert_str(response_field(&answer, STR("Sec-WebSocket-Version")),
                   offers ? STR("13") : STR_EMPTY);
        assert_str(response_field(&answer, STR("Content-Type")), STR("application/problem+json"));
        assert_true(str_find(answer.body, offers ? STR("\"code\":\"upgrade_required\"")
                                                 : STR("\"code\":\"bad_request\"")) > 0);
        caller_close(&caller);
    }
    assert_int_equal(stage.owner_count, 0);
    ws_stage_done(&stage);
}

/* A refusal is an answer like any other: the connection goes on. */
static void refused_and_again(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    caller_open(&caller, &stage.kit, false);
    caller_send(&caller, STR(GET "\r\n" WS_ASK("/ws")));
    struct response answer = caller_take(&caller, false);
    assert_int_equal(answer.status, 426);
    caller_drop(&caller, &answer);
    ws_take_head(&caller);
    ws_tell(&caller, "81:a");
    ws_expect("a", &caller, "81:a");
    caller_close(&caller);
    ws_stage_done(&stage);
}

static void accepted(void **state)
{
    (void)state;
    static const struct {
        const char *name, *head;
    } cases[] = {
        {"as browsers do", GET UPGRADE VERSION "Sec-WebSocket-Key: " WS_KEY "\r\n"},
        {"case and lists", GET "connection: keep-alive, UPGRADE\r\nupgrade: WebSocket\r\n" VERSION
                               "sec-websocket-key: " WS_KEY "\r\n"},
        {"W7", GET UPGRADE VERSION "Sec-WebSocket-Key: " WS_KEY "\r\nSec-WebSocket-Extensions: "
                                   "permessage-deflate; client_max_window_bits\r\n"},
        {"W8", GET UPGRADE VERSION "Sec-WebSocket-Key: " WS_KEY
                                   "\r\nSec-WebSocket-Protocol: chat, x\r\n"},
    };
    struct ws_stage stage;
    ws_stage_init(&stage, &(struct http_server_options){.common_fields = "X-Common: c\r\n"});
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct caller caller;
        caller_open(&caller, &stage.kit, false);
        caller_send(&caller, str_c(cases[i].head));
        caller_send(&caller, STR("\r\n"));
        WAIT_FOR(&stage.kit, str_ends(buf_str(&caller.got), STR("\r\n\r\n")));
        struct response head = {.head = buf_str(&caller.got)};
        if (!str_starts(head.head, STR("HTTP/1.1 101 Switching Protocols\r\n")))
            fail_msg("%s: %.*s", cases[i].name, STR_ARG(head.head));
        assert_str(response_field(&head, STR("Connection")), STR("Upgrade"));
        assert_str(response_field(&head, STR("Upgrade")), STR("websocket"));
        assert_str(response_field(&head, STR("Sec-WebSocket-Accept")),
                   STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_str(response_field(&head, STR("X-Common")), STR("c"));
        assert_null(response_field(&head, STR("Sec-WebSocket-Extensions")).p);
        assert_null(response_field(&head, STR("Sec-WebSocket-Protocol")).p);
        assert_null(response_field(&head, STR("Content-Length")).p);
        assert_null(response_field(&head, STR("Transfer-Encoding")).p);
        assert_int_equal(stage.kit.last_status, 101);
        buf_clear(&caller.got);
        ws_tell(&caller, "81:a 88=1000");
        ws_expect(cases[i].name, &caller, "81:a 88=1000");
        ws_expect_end(&caller);
        caller_close(&caller);
    }
    ws_stage_done(&stage);
}

/* W9, also when the request is answered later, and when the client ends its side at once. */
static void frames_behind_the_head(void **state)
{
    (void)state;
    static const struct {
        const char *head, *frames, *gets;
        bool half_close;
    } cases[] = {
        {WS_ASK("/ws"), "81:a", "81:a 88=1000", false},
        {WS_ASK("/ws"), "81:a", "81:a", true},
        {WS_ASK("/ws"), "81:a 88=1000", "81:a 88=1000", true},
        {WS_ASK("/later"), "81*70000", "81*70000 88=1000", false},
        {WS_ASK("/later"), "81:a 88=1000", "81:a 88=1000", true},
        {WS_ASK("/later"), "81:a", "81:a", true},
        {WS_ASK("/later"), "83:x", "88=1002", false},
    };
    struct ws_stage stage;
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct caller caller;
        struct buf bytes;
        buf_init(&bytes, WS_SCRIPT_BYTES_MAX);
        buf_append(&bytes, str_c(cases[i].head));
        ws_script(&bytes, cases[i].frames);
        caller_open(&caller, &stage.kit, false);
        caller_send(&caller, buf_str(&bytes));
        if (cases[i].half_close) caller_half_close(&caller);
        if (strstr(cases[i].head, "/later")) {
            WAIT_FOR(&stage.kit, stage.kit.held_count);
            kit_turns(&stage.kit, 5);
            ws_own(&stage, kit_take_held(&stage.kit));
        }
        ws_take_head(&caller);
        if (!cases[i].half_close) ws_tell(&caller, "88=1000");
        ws_expect(cases[i].frames, &caller, cases[i].gets);
        ws_expect_end(&caller);
        caller_close(&caller);
        buf_done(&bytes);
    }
    ws_stage_done(&stage);
    assert_int_equal(stage.owner_count, COUNT(cases));
    for (size_t i = 0; i < COUNT(cases); i++) assert_int_equal(stage.owners[i].closes, 1);
}

/* The 101 and the first frames wait for a reader that still has pages before it. */
static void head_behind_pages(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    caller_open(&caller, &stage.kit, true);
    int pages = caller_ask_pages(&caller, 200);
    assert_true(pages < 200); /* the last one was asked for, and waits */
    caller_send(&caller, STR(WS_ASK("/ws")));
    ws_tell(&caller, "81:a 89:b");
    caller_resume(&caller, 64 * 1024);
    for (int i = 0; i <= pages; i++) {
        struct response page = caller_take(&caller, false);
        assert_int_equal(page.body.len, KIT_PAGE_BYTES);
        caller_drop(&caller, &page);
    }
    ws_take_head(&caller);
    ws_expect("behind pages", &caller, "81:a 8a:b");
    caller_close(&caller);
    ws_stage_done(&stage);
}

/* A client that has gone before its handshake is answered. */
static void gone_before_the_answer(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    caller_open(&caller, &stage.kit, false);
    caller_send(&caller, STR(WS_ASK("/later")));
    WAIT_FOR(&stage.kit, stage.kit.held_count);
    caller_reset(&caller);
    WAIT_FOR(&stage.kit, http_gone(stage.kit.held[0]));
    assert_null(ws_own(&stage, kit_take_held(&stage.kit)));
    ws_stage_done(&stage);
}

/* ---- frames ---- */

static void row(struct ws_stage *stage, const struct ws_row *row, bool by_bytes)
{
    struct caller caller;
    struct buf bytes;
    buf_init(&bytes, WS_SCRIPT_BYTES_MAX);
    ws_script(&bytes, row->sends);
    struct ws_owner *owner = ws_join(stage, &caller, false);
    for (size_t i = 0; i < bytes.len && by_bytes && !caller.ended; i++) {
        caller_send(&caller, (str){bytes.p + i, 1});
        kit_turns(&stage->kit, 1);
    }
    if (!by_bytes) caller_send(&caller, buf_str(&bytes));
    const char *space = strrchr(row->gets, ' '), *last = space ? space + 1 : row->gets;
    bool closes = strncmp(last, "88", 2) == 0;
    ws_expect(row->name, &caller, row->gets);
    if (!closes) {
        assert_non_null(owner->ws);
        ws_tell(&caller, "88=1000");
        ws_expect(row->name, &caller, "88=1000");
    }
    ws_expect_end(&caller);
    assert_int_equal(owner->closes, 1);
    caller_close(&caller);
    buf_done(&bytes);
}

/* W10 to W27. */
static void rows(void **state)
{
    (void)state;
    struct ws_stage stage;
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < ws_row_count; i++) row(&stage, &ws_rows[i], false);
    ws_stage_done(&stage);
}

/* W33: one byte in each segment. */
static void rows_byte_by_byte(void **state)
{
    (void)state;
    struct ws_stage stage;
    ws_stage_init(&stage, NULL);
    for (size_t i = 0; i < ws_row_count; i++) {
        struct buf bytes;
        buf_init(&bytes, WS_SCRIPT_BYTES_MAX);
        ws_script(&bytes, ws_rows[i].sends);
        if (bytes.len < SHORT_BYTES) row(&stage, &ws_rows[i], true);
        buf_done(&bytes);
    }
    ws_stage_done(&stage);
}

/* W29: as many pongs as pings are allowed in a second (or in two, at their border), then 1008. */
static void ping_flood(void **state)
{
    (void)state;
    struct ws_stage stage;
    struct caller caller;
    ws_stage_init(&stage, NULL);
    struct ws_owner *owner = ws_join(&stage, &caller, false);
    ws_tell(&caller, "10000@89:abc");
    WAIT_FOR(&stage.kit, caller.ended);
    assert_false(caller.reset);
    size_t pongs = (caller.got.len - 18) / 5;
    assert_in_range(pongs, WS_PINGS_MAX, 2 * WS_PINGS_MAX + 1);
    buf_drop(&caller.got, pongs * 5);
    assert_memory_equal(caller.got.p, "\x88\x10\x03\xf0too many pings", 18);
    assert_int_equal(owner->closes, 1);
    caller_close(&caller);
    ws_stage_done(&stage);
}

int test_ws(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(refused_and_again),
        cmocka_unit_test(accepted),
        cmocka_unit_test(frames_behind_the_head),
        cmocka_unit_test(head_behind_pages),
        cmocka_unit_test(gone_before_the_answer),
        cmocka_unit_test(rows),
        cmocka_unit_test(rows_byte_by_byte),
        cmocka_unit_test(ping_flood),
    };
    return cmocka_run_group_tests_name("ws", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames without a socket, and the check of their headers. The rows of ws_kit.c, cut in every way;
 * test_ws.c sends the same rows over connections.
 */
#include "net/ws_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"
#include "ws_kit.h"

enum { OUT_BYTES_MAX = 4 << 20, SHORT_BYTES = 400, LONG_BYTES = 64 * 1024 };

/* One way of cutting. */
static void expect(const struct ws_row *row, str bytes, uint64_t cuts)
{
    struct buf events, out, said;
    buf_init(&events, OUT_BYTES_MAX);
    buf_init(&out, OUT_BYTES_MAX);
    buf_init(&said, OUT_BYTES_MAX);
    ws_trace(&events, &out, bytes, cuts);
    ws_say(&said, buf_str(&out));
    if (!str_eq(buf_str(&said), str_c(row->gets)))
        fail_msg("%s, cuts %llu: got \"%.*s\", expected \"%s\"", row->name,
                 (unsigned long long)cuts, STR_ARG(buf_str(&said)), row->gets);
    buf_done(&events);
    buf_done(&out);
    buf_done(&said);
}

static void rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ws_row_count; i++) {
        struct buf bytes;
        buf_init(&bytes, OUT_BYTES_MAX);
        ws_script(&bytes, ws_rows[i].sends);
        expect(&ws_rows[i], buf_str(&bytes), WS_CUT_NOT);
        expect(&ws_rows[i], buf_str(&bytes), WS_CUT_BYTES);
        int seeds = bytes.len < LONG_BYTES ? 20 : 1;
        for (int seed = 0; seed < seeds; seed++)
            expect(&ws_rows[i], buf_str(&bytes), 1000u + (unsigned)seed);
        buf_done(&bytes);
    }
}

/* Each message counts anew. */
static void messages_one_by_one(void **state)
{
    (void)state;
    static const struct ws_row both = {"two of them", "01*150000 80*100000 01*150000 80*100000",
                                       "81*250000 81*250000"};
    struct buf bytes;
    buf_init(&bytes, OUT_BYTES_MAX);
    ws_script(&bytes, both.sends);
    expect(&both, buf_str(&bytes), WS_CUT_NOT);
    buf_done(&bytes);
}

/* Two pieces, cut at each place. */
static void every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ws_row_count; i++) {
        struct buf bytes, out, said;
        buf_init(&bytes, OUT_BYTES_MAX);
        buf_init(&out, OUT_BYTES_MAX);
        buf_init(&said, OUT_BYTES_MAX);
        ws_script(&bytes, ws_rows[i].sends);
        for (size_t cut = 0; bytes.len < SHORT_BYTES && cut <= bytes.len; cut++) {
            struct ws_frames frames;
            ws_frames_init(&frames);
            str pieces[] = {{bytes.p, cut}, {bytes.p + cut, bytes.len - cut}};
            enum ws_frames_event event = WS_FRAMES_MORE;
            for (size_t p = 0; p < COUNT(pieces) && event != WS_FRAMES_OVER; p++) do {
                    event = ws_frames_feed(&frames, &pieces[p], &out);
                    if (event == WS_FRAMES_TEXT) ws_frames_text(&out, frames.text);
                } while (event != WS_FRAMES_MORE && event != WS_FRAMES_OVER);
            ws_frames_done(&frames);
            ws_say(&said, buf_str(&out));
            if (!str_eq(buf_str(&said), str_c(ws_rows[i].gets)))
                fail_msg("%s, cut at %zu: got \"%.*s\"", ws_rows[i].name, cut,
                         STR_ARG(buf_str(&said)));
            buf_clear(&out);
            buf_clear(&said);
        }
        buf_done(&bytes);
        buf_done(&out);
        buf_done(&said);
    }
}

/* A verdict falls with the byte that shows the fault. */
static void verdicts_fall_early(void **state)
{
    (void)state;
    static const struct {
        const char *sends; /* all but its last byte is good so far */
        unsigned fault;
    } faults[] = {
        {"!8105", 1002},
        {"!c180", 1002},
        {"!8380", 1002},
        {"!8b80", 1002},
        {"!89fe", 1002},
        {"!0980", 1002},
        {"!8881", 1002},
        {"!8080", 1002},
        {"01:a !8180", 1002},
        {"!8280", 1003},
        {"01:a 63@00: !8080", 1008},
        {"!81fe000500000000", 1002},
        {"!81ff000000000000ffff00000000", 1002},
        {"!81ff000000000004000100000000", 1009},
        {"!81ff800000000000000000000000", 1002},
        {"01*262144 !808100000000", 1009},
    };
    for (size_t i = 0; i < COUNT(faults); i++) {
        struct buf bytes;
        buf_init(&bytes, OUT_BYTES_MAX);
        ws_script(&bytes, faults[i].sends);
        struct ws_scan scan;
        ws_scan_init(&scan);
        str before = {bytes.p, bytes.len - 1}, last = {bytes.p + bytes.len - 1, 1};
        enum ws_scan_event event;
        while ((event = ws_scan_feed(&scan, &before)) == WS_SCAN_DATA) {
        }
        assert_int_equal(event, WS_SCAN_MORE);
        assert_int_equal(ws_scan_feed(&scan, &last), WS_SCAN_BAD);
        assert_int_equal(scan.fault, faults[i].fault);
        last = STR("\x81\x80\x00\x00\x00\x00");
        assert_int_equal(ws_scan_feed(&scan, &last), WS_SCAN_BAD); /* final */
        assert_int_equal(last.len, 6);
        buf_done(&bytes);
    }
}

/* Headers, payloads and control frames arrive behind the check as it promises. */
static void pieces(void **state)
{
    (void)state;
    struct buf bytes;
    buf_init(&bytes, OUT_BYTES_MAX);
    ws_script(&bytes, "01:ab 89:ping 80*300 81:");
    struct ws_scan scan;
    ws_scan_init(&scan);
    static const struct {
        enum ws_scan_event event;
        size_t len;
        bool rests;
    } seen[] = {
        {WS_SCAN_DATA, 6, false}, {WS_SCAN_DATA, 2, false},  {WS_SCAN_CONTROL, 10, false},
        {WS_SCAN_DATA, 8, false}, {WS_SCAN_DATA, 300, true}, {WS_SCAN_DATA, 6, true},
        {WS_SCAN_MORE, 0, true},
    };
    str input = buf_str(&bytes);
    for (size_t i = 0; i < COUNT(seen); i++) {
        assert_int_equal(ws_scan_feed(&scan, &input), seen[i].event);
        if (seen[i].len) assert_int_equal(scan.piece.len, seen[i].len);
        assert_int_equal(ws_scan_rests(&scan), seen[i].rests);
    }
    buf_done(&bytes);
}

/* Between messages nothing is kept. */
static void memory(void **state)
{
    (void)state;
    static const struct {
        const char *sends;
        bool kept;
    } cases[] = {
        {"81:hello", false},     {"01:a 89:b 80:c 89:d", false}, {"8a:", false},
        {"01:a", true},          {"81:a !8105", true},           {"!8185", false},
        {"!818500000000", true}, {"81:a !898500000000", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf bytes, out;
        buf_init(&bytes, OUT_BYTES_MAX);
        buf_init(&out, OUT_BYTES_MAX);
        ws_script(&bytes, cases[i].sends);
        struct ws_frames frames;
        ws_frames_init(&frames);
        str input = buf_str(&bytes);
        enum ws_frames_event event;
        do event = ws_frames_feed(&frames, &input, &out);
        while (event != WS_FRAMES_MORE && event != WS_FRAMES_OVER);
        assert_int_equal(frames.wslay != NULL, cases[i].kept);
        if (!cases[i].kept) assert_null(frames.message.p);
        ws_frames_done(&frames);
        buf_done(&bytes);
        buf_done(&out);
    }
}

/* A header that promises much costs nothing until bytes come. */
static void promises(void **state)
{
    (void)state;
    struct ws_frames frames;
    struct buf bytes, out;
    buf_init(&bytes, OUT_BYTES_MAX);
    buf_init(&out, OUT_BYTES_MAX);
    ws_frames_init(&frames);
    ws_script(&bytes, "!81ff000000000004000000000000 !616263");
    str input = buf_str(&bytes);
    assert_int_equal(ws_frames_feed(&frames, &input, &out), WS_FRAMES_MORE);
    assert_int_equal(frames.message.len, 3);
    assert_in_range(frames.message.cap, 3, 4096);
    assert_int_equal(out.len, 0);
    ws_frames_done(&frames);
    buf_done(&bytes);
}

/* Our close frame first: then nothing else is said, and theirs ends it. */
static void closing(void **state)
{
    (void)state;
    static const struct {
        const char *before, *behind;
        bool over;
        const char *events;
    } cases[] = {
        {NULL, "88=1000", true, "."},         {NULL, "81:a 89:b 88=1000", true, "tp."},
        {"01:a", "80:b 88=1000", true, "t."}, {"01:a 89:b", "00: 88:", true, "."},
        {NULL, "81:a 89:b", false, "tp"},     {NULL, "82:a", true, "."},
        {NULL, "81:#ff", true, "."},          {NULL, "88=1000,#ff", true, "."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ws_frames frames;
        struct buf bytes, out, events, said;
        buf_init(&bytes, OUT_BYTES_MAX);
        buf_init(&out, OUT_BYTES_MAX);
        buf_init(&events, 100);
        buf_init(&said, OUT_BYTES_MAX);
        ws_frames_init(&frames);
        if (cases[i].before) {
            ws_script(&bytes, cases[i].before);
            str input = buf_str(&bytes);
            while (ws_frames_feed(&frames, &input, &out) != WS_FRAMES_MORE) {
            }
        }
        buf_clear(&bytes);
        buf_clear(&out);
        ws_frames_close(&frames, 1012, STR("why"), &out);
        assert_int_equal(out.len, 2 + 2 + 3);
        ws_frames_close(&frames, 1008, STR("again"), &out); /* it is said once */
        ws_script(&bytes, cases[i].behind);
        enum ws_frames_event event = WS_FRAMES_MORE;
        for (size_t at = 0; at < bytes.len && event != WS_FRAMES_OVER; at++) {
            str byte = {bytes.p + at, 1};
            do {
                event = ws_frames_feed(&frames, &byte, &out);
                if (event == WS_FRAMES_TEXT) buf_char(&events, 't');
                if (event == WS_FRAMES_PING) buf_char(&events, 'p');
                if (event == WS_FRAMES_OVER) buf_char(&events, '.');
            } while (event != WS_FRAMES_MORE && event != WS_FRAMES_OVER);
        }
        assert_int_equal(event == WS_FRAMES_OVER, cases[i].over);
        assert_str(buf_str(&events), str_c(cases[i].events));
        ws_say(&said, buf_str(&out));
        assert_str(buf_str(&said), STR("88=1012"));
        assert_memory_equal(out.p + 4, "why", 3);
        ws_frames_done(&frames);
        buf_done(&bytes);
        buf_done(&out);
        buf_done(&events);
        buf_done(&said);
    }
}

static void own_frames(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *head;
        size_t head_len;
    } lengths[] = {
        {0, "\x81\x00", 2},
        {125, "\x81\x7d", 2},
        {126, "\x81\x7e\x00\x7e", 4},
        {65535, "\x81\x7e\xff\xff", 4},
        {65536, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10},
    };
    char *text = malloc(65536);
    assert_non_null(text);
    memset(text, 'y', 65536);
    struct buf out;
    buf_init(&out, OUT_BYTES_MAX);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        ws_frames_text(&out, (str){text, lengths[i].len});
        assert_int_equal(out.len, lengths[i].head_len + lengths[i].len);
        assert_memory_equal(out.p, lengths[i].head, lengths[i].head_len);
        if (lengths[i].len) assert_memory_equal(out.p + lengths[i].head_len, text, lengths[i].len);
        buf_clear(&out);
    }
    ws_frames_ping(&out);
    assert_int_equal(out.len, 2);
    assert_memory_equal(out.p, "\x89\x00", 2);
    buf_done(&out);
    free(text);
}

int test_ws_frames(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),       cmocka_unit_test(messages_one_by_one),
        cmocka_unit_test(every_cut),  cmocka_unit_test(verdicts_fall_early),
        cmocka_unit_test(pieces),     cmocka_unit_test(memory),
        cmocka_unit_test(promises),   cmocka_unit_test(closing),
        cmocka_unit_test(own_frames),
    };
    return cmocka_run_group_tests_name("ws_frames", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers from files, over real sockets: which bytes come, slow and vanishing readers, files that
 * turn out shorter, and that no descriptor stays behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "http_kit.h"

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: h\r\n\r\n"

enum { FILE_BYTES = KIT_LARGE_BYTES, PIECE = HTTP_FILE_PIECE_BYTES };

/* What /own answers with. */
struct source {
    int fd; /* of FILE_BYTES like kit.large; each answer gets a copy of it */
    uint64_t from, len;
    int status;
    bool close, hold;
    struct http_request *request; /* held */
};

static void source_answer(struct source *source, struct http_request *request)
{
    int fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
    assert_return_code(fd, errno);
    http_answer_file(request,
                     &(struct http_answer){.status = source->status,
                                           .content_type = "text/plain",
                                           .close = source->close},
                     fd, source->from, source->len);
}

static void on_own(struct kit *kit, struct http_request *request)
{
    struct source *source = kit->arg;
    if (source->hold)
        source->request = request;
    else
        source_answer(source, request);
}

static void setup(struct kit *kit, struct source *source, const struct http_server_options *options)
{
    kit_init(kit, options);
    *source = (struct source){.len = FILE_BYTES, .status = 200};
    source->fd = memfd_create("file", MFD_CLOEXEC);
    assert_return_code(source->fd, errno);
    assert_int_equal(write(source->fd, kit->large, FILE_BYTES), FILE_BYTES);
    kit->own = on_own;
    kit->arg = source;
}

static void teardown(struct kit *kit, struct source *source)
{
    close(source->fd);
    kit_done(kit);
}

static void expect_stretch(struct caller *caller, const struct source *source)
{
    struct response response = caller_take(caller, false);
    assert_int_equal(response.status, source->status);
    assert_int_equal(response.body.len, source->len);
    if (source->len)
        assert_memory_equal(response.body.p, caller->kit->large + source->from, source->len);
    caller_drop(caller, &response);
}

static void expect_alive(struct caller *caller)
{
    caller_send(caller, STR(GET("/hello")));
    struct response response = caller_take(caller, false);
    assert_str(response.body, STR("hello"));
    caller_drop(caller, &response);
    assert_false(caller->ended);
}

/* ---- what comes ---- */

static void stretches(void **state)
{
    (void)state;
    static const struct {
        uint64_t from, len;
        int status;
    } rows[] = {
        {0, 0, 200},
        {0, 1, 200},
        {0, PIECE - 1, 200},
        {0, PIECE, 200},
        {0, PIECE + 1, 200},
        {0, 2 * PIECE, 200},
        {0, 2 * PIECE + 1, 200},
        {0, 3 * PIECE, 200},
        {0, FILE_BYTES, 200},
        {1, FILE_BYTES - 1, 206},
        {FILE_BYTES - 1, 1, 206},
        {FILE_BYTES, 0, 206},
        {12345, 2 * PIECE + 7, 206},
    };
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, NULL);
    caller_open(&caller, &kit, false);
    expect_alive(&caller);
    int before = kit_descriptors();
    for (size_t i = 0; i < COUNT(rows); i++) {
        source.from = rows[i].from;
        source.len = rows[i].len;
        source.status = rows[i].status;
        caller_send(&caller, STR(GET("/own") GET("/own") GET("/hello")));
        expect_stretch(&caller, &source);
        expect_stretch(&caller, &source);
        struct response response = caller_take(&caller, false);
        assert_str(response.body, STR("hello"));
        caller_drop(&caller, &response);
        expect_alive(&caller);

        caller_send(&caller, STR(HEAD("/own")));
        response = caller_take(&caller, true);
        char length[24];
        snprintf(length, sizeof length, "%llu", (unsigned long long)rows[i].len);
        assert_str(response_field(&response, STR("Content-Length")), str_c(length));
        caller_drop(&caller, &response);
        expect_alive(&caller);
        assert_int_equal(kit_descriptors(), before);
    }
    source.status = 304; /* has no content */
    caller_send(&caller, STR(GET("/own")));
    struct response response = caller_take(&caller, false);
    assert_int_equal(response.status, 304);
    caller_drop(&caller, &response);
    expect_alive(&caller);
    assert_int_equal(kit_descriptors(), before);
    caller_close(&caller);
    teardown(&kit, &source);
}

/* Answers that are the last of their connection. */
static void last_answers(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool close, streamed, half_close;
    } rows[] = {
        {GET("/own"), true, false, false},
        {"GET /own HTTP/1.0\r\n\r\n", false, false, false},
        {"GET /own HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false, false, false},
        {"POST /own HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhello", false, true, false},
        {"POST /own HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n", false, true, false},
        {GET("/own"), false, false, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct source source;
        struct caller caller;
        setup(&kit, &source, NULL);
        kit.own_max = rows[i].streamed ? 100 : 0;
        source.close = rows[i].close;
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, str_c(rows[i].request));
        if (rows[i].half_close) caller_half_close(&caller);
        WAIT_FOR(&kit, kit.answered);
        kit_turns(&kit, 5);
        caller_resume(&caller, 64 * 1024);
        expect_stretch(&caller, &source);
        WAIT_FOR(&kit, caller.ended);
        assert_false(caller.reset);
        assert_int_equal(caller.got.len, 0);
        caller_close(&caller);
        teardown(&kit, &source);
    }
}

/* ---- readers that are slow ---- */

static void slow_reader(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, NULL);
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/own") GET("/own") GET("/hello")));
    WAIT_FOR(&kit, kit.answered);
    caller_resume(&caller, 16 * 1024 + 1);
    expect_stretch(&caller, &source);
    expect_stretch(&caller, &source);
    struct response response = caller_take(&caller, false);
    assert_str(response.body, STR("hello"));
    caller_drop(&caller, &response);
    expect_alive(&caller);
    caller_close(&caller);
    teardown(&kit, &source);
}

/* The head itself has to wait behind answers that are not read. */
static void behind_a_slow_answer(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, NULL);
    caller_open(&caller, &kit, true);
    int pages = caller_ask_pages(&caller, 2000);
    caller_reset(&caller);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 0);

    caller_open(&caller, &kit, true);
    assert_int_equal(caller_ask_pages(&caller, pages - 1), pages - 1);
    caller_send(&caller, STR(GET("/own")));
    kit_turns(&kit, 20);
    caller_resume(&caller, 64 * 1024);
    for (int i = 0; i < pages - 1; i++) {
        struct response response = caller_take(&caller, false);
        assert_int_equal(response.body.len, KIT_PAGE_BYTES);
        caller_drop(&caller, &response);
    }
    expect_stretch(&caller, &source);
    expect_alive(&caller);
    caller_close(&caller);
    teardown(&kit, &source);
}

/* A reader that takes nothing is reset; one that is slow is not. */
static void stalled_reader(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, &(struct http_server_options){.stall_ms = 60});
    caller_open(&caller, &kit, true);
    expect_alive(&caller);
    caller_pause(&caller);
    int before = kit_descriptors();
    caller_send(&caller, STR(GET("/own")));
    WAIT_FOR(&kit, kit.answered == 2);
    WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
    WAIT_FOR(&kit, kit_descriptors() == before - 1); /* without the connection */
    caller_resume(&caller, 64 * 1024);
    WAIT_FOR(&kit, caller.ended);
    assert_true(caller.reset);
    assert_in_range(caller.got.len, 1, FILE_BYTES - 1);
    caller_close(&caller);
    teardown(&kit, &source);
}

/* ---- files that are not what they were ---- */

static void broken_files(void **state)
{
    (void)state;
    static const struct {
        uint64_t from, len;
        bool folder; /* which cannot be read at all */
    } rows[] = {
        {0, FILE_BYTES + 1, false},
        {FILE_BYTES - 10, 11, false},
        {FILE_BYTES, 1, false},
        {10 * (uint64_t)FILE_BYTES, PIECE, false},
        {FILE_BYTES - PIECE, 2 * PIECE, false},
        {UINT64_MAX - 10, 10, false},
        {0, PIECE, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kit kit;
        struct source source;
        struct caller caller;
        setup(&kit, &source, NULL);
        if (rows[i].folder) {
            close(source.fd);
            source.fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            assert_return_code(source.fd, errno);
        }
        source.from = rows[i].from;
        source.len = rows[i].len;
        caller_open(&caller, &kit, false);
        expect_alive(&caller);
        int before = kit_descriptors();
        caller_send(&caller, STR(GET("/own") GET("/hello")));
        WAIT_FOR(&kit, caller.ended);
        assert_true(caller.reset);
        assert_int_equal(kit.answered, 2);
        assert_int_equal(http_server_connections(kit.server), 0);
        WAIT_FOR(&kit, kit_descriptors() == before - 1);
        caller_close(&caller);
        teardown(&kit, &source);
    }
}

/* ---- readers that leave, and stopping ---- */

static void answering_the_gone(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, NULL);
    source.hold = true;
    caller_open(&caller, &kit, false);
    expect_alive(&caller);
    int before = kit_descriptors();
    caller_send(&caller, STR(GET("/own")));
    WAIT_FOR(&kit, source.request);
    caller_reset(&caller);
    WAIT_FOR(&kit, http_gone(source.request));
    kit_turns(&kit, 2);
    source_answer(&source, source.request);
    assert_int_equal(kit.answered, 1);
    assert_int_equal(kit_descriptors(), before - 2);
    teardown(&kit, &source);
}

/* A thousand readers that leave in the middle leave nothing behind. */
static void aborted(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    setup(&kit, &source, NULL);
    int before = 0; /* counted when the first has gone: the loop has made its own by then */
    for (int i = 0; i <= 1000; i++) {
        struct caller caller;
        caller_open(&caller, &kit, true);
        if (i % 3 == 0) caller_pause(&caller);
        unsigned answered = kit.answered;
        caller_send(&caller, STR(GET("/own")));
        WAIT_FOR(&kit, kit.answered > answered);
        if (i % 3 == 1) WAIT_FOR(&kit, caller.got.len > (size_t)PIECE);
        (i % 2 ? caller_reset : caller_close)(&caller);
        WAIT_FOR(&kit, http_server_connections(kit.server) == 0);
        if (i > 0) continue;
        kit_turns(&kit, 5);
        before = kit_descriptors();
    }
    WAIT_FOR(&kit, kit_descriptors() <= before); /* the last read comes back */
    teardown(&kit, &source);
}

/* An answer under way is finished when the server stops. */
static void stopping(void **state)
{
    (void)state;
    struct kit kit;
    struct source source;
    struct caller caller;
    setup(&kit, &source, NULL);
    caller_open(&caller, &kit, true);
    caller_pause(&caller);
    caller_send(&caller, STR(GET("/own") GET("/hello")));
    WAIT_FOR(&kit, kit.answered);
    kit_stop(&kit);
    caller_resume(&caller, 64 * 1024);
    expect_stretch(&caller, &source);
    WAIT_FOR(&kit, caller.ended);
    assert_false(caller.reset);
    caller_close(&caller);
    WAIT_FOR(&kit, kit.stopped);
    assert_int_equal(kit.answered, 1);
    teardown(&kit, &source);
}

/* Freed with a read under way and bytes unsent. */
static void freeing(void **state)
{
    (void)state;
    for (int turns = 0; turns < 4; turns++) {
        int before = kit_descriptors();
        struct kit kit;
        struct source source;
        struct caller caller;
        setup(&kit, &source, NULL);
        caller_open(&caller, &kit, true);
        caller_pause(&caller);
        caller_send(&caller, STR(GET("/own")));
        WAIT_FOR(&kit, kit.answered);
        kit_turns(&kit, turns);
        caller_close(&caller);
        teardown(&kit, &source);                                /* waits for the read */
        assert_in_range(kit_descriptors(), before, before + 1); /* the first loop keeps one */
    }
}

int test_http_file(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stretches),          cmocka_unit_test(last_answers),
        cmocka_unit_test(slow_reader),        cmocka_unit_test(behind_a_slow_answer),
        cmocka_unit_test(stalled_reader),     cmocka_unit_test(broken_files),
        cmocka_unit_test(answering_the_gone), cmocka_unit_test(aborted),
        cmocka_unit_test(stopping),           cmocka_unit_test(freeing),
    };
    return cmocka_run_group_tests_name("http_file", tests, NULL, NULL);
}

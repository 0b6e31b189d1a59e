/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests without a connection: whatever their handler answers comes to on_reply, once.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "http_kit.h"
#include "net/problem.h"
#include "net/ws.h"

struct reply {
    int status;
    unsigned count, fields;
    char type[64], body[512];
};

static void on_reply(void *arg, const struct http_answer *answer)
{
    struct reply *reply = arg;
    reply->count++;
    reply->status = answer->status;
    reply->fields = (unsigned)answer->field_count;
    snprintf(reply->type, sizeof reply->type, "%s",
             answer->content_type ? answer->content_type : "");
    snprintf(reply->body, sizeof reply->body, "%.*s", STR_ARG(answer->body));
}

static void answer_echo(struct http_request *request)
{
    str copy = arena_str(&request->arena, request->body); /* what it borrows lives on */
    struct http_field field = {STR("X-Own"), STR("1")};
    http_answer(request, &(struct http_answer){.status = 201,
                                               .content_type = "text/plain",
                                               .fields = &field,
                                               .field_count = 1,
                                               .body = copy});
}

static void answer_empty(struct http_request *request)
{
    http_answer(request, &(struct http_answer){.status = 204});
}

static void answer_fault(struct http_request *request)
{
    struct fault why;
    http_answer_error(request, fault_field(&why, ERR_INVALID_FIELD, "a.b", "not so"), &why);
}

static void answer_stream(struct http_request *request)
{
    assert_null(sse_open(request, NULL, 0, NULL, NULL));
}

static void answer_socket(struct http_request *request)
{
    assert_null(ws_open(request, NULL, NULL));
}

static void answer_file(struct http_request *request)
{
    int before = kit_descriptors(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    http_answer_file(request, &(struct http_answer){.status = 200}, fd, 0, 10);
    assert_int_equal(kit_descriptors(), before); /* it was closed */
}

static void answers(void **state)
{
    (void)state;
    static const struct {
        void (*answer)(struct http_request *request);
        int status;
        unsigned fields;
        const char *type, *body; /* or a part of it */
    } cases[] = {
        {answer_echo, 201, 1, "text/plain", "hello"},
        {answer_empty, 204, 0, "", ""},
        {answer_fault, 400, 0, PROBLEM_TYPE, "\"field\":\"a.b\""},
        {answer_stream, 406, 0, PROBLEM_TYPE, "over HTTP only"},
        {answer_socket, 406, 0, PROBLEM_TYPE, "over HTTP only"},
        {answer_file, 406, 0, PROBLEM_TYPE, "over HTTP only"},
    };
    struct kit kit;
    kit_init(&kit, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reply reply = {0};
        char body[] = "hello";
        struct http_request *request =
            http_request_inside(kit.loop, (str){body, 5}, on_reply, &reply);
        memset(body, 0, sizeof body); /* it was copied */
        assert_str(request->body, STR("hello"));
        assert_false(http_gone(request));
        assert_null(http_head_get(request->head, STR("Accept")).p);
        assert_int_equal(request->head->path.len, 0);
        assert_int_equal(reply.count, 0);
        cases[i].answer(request);
        assert_int_equal(reply.count, 1);
        assert_int_equal(reply.status, cases[i].status);
        assert_int_equal(reply.fields, cases[i].fields);
        assert_string_equal(reply.type, cases[i].type);
        assert_non_null(strstr(reply.body, cases[i].body));
    }
    kit_done(&kit);
}

/* One without a body, answered after the turn in which it was made. */
static void later(void **state)
{
    (void)state;
    struct kit kit;
    struct reply reply = {0};
    kit_init(&kit, NULL);
    struct http_request *request = http_request_inside(kit.loop, STR_EMPTY, on_reply, &reply);
    assert_int_equal(request->body.len, 0);
    kit_turns(&kit, 3);
    assert_false(http_gone(request));
    answer_empty(request);
    assert_int_equal(reply.status, 204);
    kit_done(&kit);
}

int test_http_inside(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(later),
    };
    return cmocka_run_group_tests_name("http_inside", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/multipart.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "net/multipart_trace.h"

enum { TRACE_BYTES_MAX = 256 * 1024 };

#define FORM(rest) "Content-Disposition: form-data; " rest "\r\n\r\n"

/* Whole, byte by byte, and cut at every place: always the same. */
static void check_body(str boundary, str body, str expected)
{
    for (size_t cut = TRACE_ONE_PIECE; cut <= body.len + 1; cut++) {
        struct buf out;
        buf_init(&out, TRACE_BYTES_MAX);
        multipart_trace(&out, boundary, body, cut);
        if (!str_eq(buf_str(&out), expected))
            fail_msg("cut %zu of \"%.*s\":\ngot      \"%.*s\"\nexpected \"%.*s\"", cut,
                     STR_ARG(body), STR_ARG(buf_str(&out)), STR_ARG(expected));
        buf_done(&out);
    }
}

static void bodies(void **state)
{
    (void)state;
    static const struct {
        str body, expected;
    } rows[] = {
        /* ordinary forms */
        {STR("--B\r\n" FORM("name=\"a\"") "x\r\n--B--"), STR("part \"a\" |x|end a\nclosed")},
        {STR("--B\r\n" FORM("name=\"a\"") "x\r\n--B--\r\n"), STR("part \"a\" |x|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--B\r\n" FORM("name=b") "y\r\n--B--\r\n"),
         STR("part \"a\" |x|end a\npart \"b\" |y|end b\nclosed")},
        {STR("--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\n"
             "Content-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\r\n--B--"),
         STR("part \"f\" \"a.png\" image/png|\x89PNG\r\n\x1a\n|end f\nclosed")},
        {STR("--B\r\ncontent-disposition:form-data;name=a;\r\nX-Other: z\r\n\r\nx\r\n--B--"),
         STR("part \"a\" |x|end a\nclosed")},
        {STR("--B--"), STR("closed")},
        {STR("--B-- \t\r\n"), STR("closed")},
        {STR("--B \t\r\n" FORM("name=a") "x\r\n--B  --"),
         STR("part \"a\" |x|end a\nrefused: a line begins with the boundary and goes on")},

        /* content that is nearly a boundary */
        {STR("--B\r\n" FORM("name=a") "\r\n--B--"), STR("part \"a\" ||end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "--B--"), STR("part \"a\" ||end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "\r\n\r\n--B--"), STR("part \"a\" |\r\n|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "\r\r\n--B--"), STR("part \"a\" |\r|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "\r\n-\r\n--\r\n\r\n--b\r\r\n--B--"),
         STR("part \"a\" |\r\n-\r\n--\r\n\r\n--b\r|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "--\r\n--B--"), STR("part \"a\" |--|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "-\r\n--B--"), STR("part \"a\" |-|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "x--B--\n--B--\r\n--B--"),
         STR("part \"a\" |x--B--\n--B--|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "\0\0\r\n--B--"), STR("part \"a\" |\0\0|end a\nclosed")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--Bee\r\n--B--"),
         STR("part \"a\" |x|end a\nrefused: a line begins with the boundary and goes on")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--B-\r\n"),
         STR("part \"a\" |x|end a\nrefused: a line begins with the boundary and goes on")},

        /* broken off */
        {STR(""), STR("open")},
        {STR("--B"), STR("open")},
        {STR("--B\r\n"), STR("open")},
        {STR("--B\r\n" FORM("name=a")), STR("part \"a\" |open")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--"), STR("part \"a\" |xopen")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--B"), STR("part \"a\" |x|end a\nopen")},
        {STR("--B\r\n" FORM("name=a") "x\r\n--B-"), STR("part \"a\" |x|end a\nopen")},

        /* before and behind */
        {STR("x--B--"), STR("refused: the body does not begin with its boundary")},
        {STR("\r\n--B--"), STR("refused: the body does not begin with its boundary")},
        {STR("--C--"), STR("refused: the body does not begin with its boundary")},
        {STR("--B--x"), STR("refused: bytes follow the last boundary")},
        {STR("--B--\r\n\r\n"), STR("refused: bytes follow the last boundary")},
        {STR("--B--\rx"), STR("refused: bytes follow the last boundary")},
        {STR("--B\n"), STR("refused: a line begins with the boundary and goes on")},
        {STR("--B\rx"), STR("refused: a boundary's line has a bare CR")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) check_body(STR("B"), rows[i].body, rows[i].expected);
}

/* One head each, of a part with the content "x". */
static void heads(void **state)
{
    (void)state;
#define NAME "Content-Disposition: form-data; name=a\r\n"
    static const struct {
        const char *head, *expected; /* of the part; else why it is refused */
    } rows[] = {
        /* names and quotes */
        {"Content-Disposition: form-data; name=\"a b\"\r\n", "part \"a b\" "},
        {"Content-Disposition:  FORM-DATA ; NAME=a ; FileName=b\r\n", "part \"a\" \"b\" "},
        {"Content-Disposition: form-data; name=a; filename=\"\"\r\n", "part \"a\" \"\" "},
        {"Content-Disposition: form-data; name=a; filename=\"x\\\"y\\\\z\"\r\n",
         "part \"a\" \"x\"y\\z\" "},
        {"Content-Disposition: form-data; name=a; filename=\"C:\\dir\\x.png\"\r\n",
         "part \"a\" \"C:\\dir\\x.png\" "},
        {"Content-Disposition: form-data; name=a; filename=\"../../x\"\r\n",
         "part \"a\" \"../../x\" "},
        {"Content-Disposition: form-data; name=a; filename=\"a;b=c\"; x=y\r\n",
         "part \"a\" \"a;b=c\" "},
        {"Content-Disposition: form-data; name=a; filename=\"会议.pdf\"\r\n",
         "part \"a\" \"会议.pdf\" "},
        {"Content-Disposition: form-data; name=a; filename=\"\x01\x7f\"\r\n",
         "part \"a\" \"\x01\x7f\" "},

        /* RFC 8187 */
        {"Content-Disposition: form-data; name=a; filename=x; filename*=UTF-8''%E4%BC%9A.pdf\r\n",
         "part \"a\" \"会.pdf\" "},
        {"Content-Disposition: form-data; name=a; filename*=utf-8'zh'a%20b; filename=x\r\n",
         "part \"a\" \"a b\" "},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''\r\n", "part \"a\" \"\" "},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8'x\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=x\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=\"UTF-8''x\"\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=ISO-8859-1''%E4\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''%4\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''%\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''%4x\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''a'b\r\n",
         "a filename* is not UTF-8''... of RFC 8187"},
        {"Content-Disposition: form-data; name=a; filename*=UTF-8''%FF\r\n",
         "the name of a part or file is not UTF-8"},
        {"Content-Disposition: form-data; name=a; filename=\"\xff\"\r\n",
         "the name of a part or file is not UTF-8"},

        /* malformed */
        {"", "a part has no Content-Disposition"},
        {"Content-Type: text/plain\r\n", "a part has no Content-Disposition"},
        {"Content-Disposition: form-data\r\n", "a part has no name"},
        {"Content-Disposition: form-data; name=\"\"\r\n", "a part has no name"},
        {"Content-Disposition: form-data; filename=a\r\n", "a part has no name"},
        {"Content-Disposition: attachment; name=a\r\n",
         "a part's Content-Disposition is not form-data"},
        {"Content-Disposition:\r\n", "a part's Content-Disposition is not form-data"},
        {"Content-Disposition: form-data; name=a; name=b\r\n",
         "a Content-Disposition says the same twice"},
        {"Content-Disposition: form-data; name=\"a\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; name=\"a\\\"\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; name=\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; name\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; name =a\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; =a\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data name=a\r\n", "a Content-Disposition is malformed"},
        {"Content-Disposition: form-data; name=\"a\"b\r\n", "a Content-Disposition is malformed"},
        {NAME NAME, "a part's head says the same twice"},
        {NAME "Content-Type: a/b\r\ncontent-type: a/b\r\n", "a part's head says the same twice"},
        {NAME " folded\r\n", "a part's head is malformed"},
        {NAME "X\r\n", "a part's head is malformed"},
        {NAME ": x\r\n", "a part's head is malformed"},
        {NAME "X : y\r\n", "a part's head is malformed"},
        {NAME "X: y\n\r\n", "a bare LF in a part's head"},
        {NAME "X: \ry\r\n", "a bare CR in a part's head"},
        {NAME "Content-Type: multipart/mixed; boundary=C\r\n", "a part is multipart itself"},
        {NAME "Content-Type: MULTIPART/form-data\r\n", "a part is multipart itself"},
        {NAME "Content-Transfer-Encoding: base64\r\n",
         "a part is encoded; send its bytes as they are"},
        {NAME "Content-Transfer-Encoding: Binary\r\n", "part \"a\" "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char body[1024], expected[1024];
        bool good = strncmp(rows[i].expected, "part", 4) == 0;
        snprintf(body, sizeof body, "--B\r\n%s\r\nx\r\n--B--", rows[i].head);
        snprintf(expected, sizeof expected, good ? "%s|x|end a\nclosed" : "refused: %s",
                 rows[i].expected);
        if (strstr(rows[i].head, "\"a b\""))
            snprintf(expected, sizeof expected, "part \"a b\" |x|end a b\nclosed");
        check_body(STR("B"), str_c(body), str_c(expected));
    }
}

static void head_size(void **state)
{
    (void)state;
    static const char start[] = "--B\r\nContent-Disposition: form-data; name=a; x=";
    size_t around = sizeof start - 1 - 5 + 4; /* the head without x, with the CR LF behind it */
    for (size_t more = 0; more < 2; more++) {
        struct buf body, out;
        buf_init(&body, 64 * 1024);
        buf_init(&out, 1024);
        buf_append(&body, str_c(start));
        for (size_t i = around; i < MULTIPART_HEAD_BYTES_MAX + more; i++) buf_char(&body, 'x');
        buf_append(&body, STR("\r\n\r\nx\r\n--B--"));
        multipart_trace(&out, STR("B"), buf_str(&body), TRACE_ONE_PIECE);
        assert_str(buf_str(&out), more ? STR("refused: the head of a part is too long")
                                       : STR("part \"a\" |x|end a\nclosed"));
        buf_done(&body);
        buf_done(&out);
    }
}

static void part_count(void **state)
{
    (void)state;
    for (size_t count = MULTIPART_PARTS_MAX; count <= MULTIPART_PARTS_MAX + 1; count++) {
        struct buf body, out;
        buf_init(&body, 64 * 1024);
        buf_init(&out, 64 * 1024);
        for (size_t i = 0; i < count; i++) buf_append(&body, STR("--B\r\n" FORM("name=a") "x\r\n"));
        buf_append(&body, STR("--B--"));
        multipart_trace(&out, STR("B"), buf_str(&body), TRACE_ONE_PIECE);
        assert_int_equal(str_ends(buf_str(&out), STR("closed")), count == MULTIPART_PARTS_MAX);
        assert_int_equal(str_ends(buf_str(&out), STR("refused: there are too many parts")),
                         count > MULTIPART_PARTS_MAX);
        buf_done(&body);
        buf_done(&out);
    }
}

static void padding(void **state)
{
    (void)state;
    for (size_t count = MULTIPART_HEAD_BYTES_MAX; count <= MULTIPART_HEAD_BYTES_MAX + 1; count++) {
        struct buf body, out;
        buf_init(&body, 64 * 1024);
        buf_init(&out, 1024);
        buf_append(&body, STR("--B--"));
        for (size_t i = 0; i < count; i++) buf_char(&body, ' ');
        multipart_trace(&out, STR("B"), buf_str(&body), TRACE_ONE_PIECE);
        assert_str(buf_str(&out), count > MULTIPART_HEAD_BYTES_MAX
                                      ? STR("refused: bytes follow the last boundary")
                                      : STR("closed"));
        buf_done(&body);
        buf_done(&out);
    }
}

#define SEVENTY "1234567890123456789012345678901234567890123456789012345678901234567890"

static void content_types(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        enum err err;
        const char *boundary;
    } rows[] = {
        {"multipart/form-data; boundary=B", OK, "B"},
        {"MultiPart/Form-Data;Boundary=\"B\"", OK, "B"},
        {"multipart/form-data; charset=utf-8; boundary=B", OK, "B"},
        {"multipart/form-data ; boundary=----WebKitFormBoundaryAbC", OK,
         "----WebKitFormBoundaryAbC"},
        {"multipart/form-data; boundary=\"a b'()+_,-./:=?\"", OK, "a b'()+_,-./:=?"},
        {"multipart/form-data; boundary=" SEVENTY, OK, SEVENTY},
        {"multipart/form-data; boundary=" SEVENTY "1", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=\"\"", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=\"a \"", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=\"a\\\"b\"", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=\"a", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=a; boundary=a", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=a b", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data boundary=a", ERR_BAD_REQUEST, NULL},
        {"multipart/form-data; boundary=\"\xc3\xa4\"", ERR_BAD_REQUEST, NULL},
        {"", ERR_UNSUPPORTED_TYPE, NULL},
        {"multipart/mixed; boundary=B", ERR_UNSUPPORTED_TYPE, NULL},
        {"multipart/form-datax; boundary=B", ERR_UNSUPPORTED_TYPE, NULL},
        {"application/json", ERR_UNSUPPORTED_TYPE, NULL},
        {"application/x-www-form-urlencoded", ERR_UNSUPPORTED_TYPE, NULL},
        {"; boundary=B", ERR_UNSUPPORTED_TYPE, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        str boundary = STR("untouched");
        struct fault why = {0};
        enum err e = multipart_boundary(str_c(rows[i].type), &boundary, &why);
        if (e != rows[i].err) fail_msg("%s: %s", rows[i].type, err_code(e));
        assert_str(boundary, e ? STR("untouched") : str_c(rows[i].boundary));
        assert_int_equal(why.text[0] != '\0', e != OK);
    }
}

/* Content is passed on in as few pieces as the bytes allow: many CRs do not multiply them. */
static void few_pieces(void **state)
{
    (void)state;
    struct multipart parser;
    struct buf body;
    buf_init(&body, 64 * 1024);
    buf_append(&body, STR("--B\r\n" FORM("name=a")));
    for (size_t i = 0; i < 4096; i++) buf_append(&body, STR("\r\n-\r"));
    multipart_init(&parser, STR("B"));
    size_t pieces = 0;
    for (str input = buf_str(&body);;) {
        enum multipart_event event = multipart_feed(&parser, &input);
        if (event == MULTIPART_MORE) break;
        pieces += event == MULTIPART_DATA;
    }
    assert_true(pieces <= 2);
    multipart_done(&parser);
    buf_done(&body);
}

static void long_boundary(void **state)
{
    (void)state;
    check_body(STR(SEVENTY),
               STR("--" SEVENTY "\r\n" FORM("name=a") "\r\n--" SEVENTY "\r\n" FORM(
                   "name=b") "\r\n--123\r\n--" SEVENTY "--"),
               STR("part \"a\" ||end a\npart \"b\" |\r\n--123|end b\nclosed"));
}

int test_multipart(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies),        cmocka_unit_test(heads),
        cmocka_unit_test(head_size),     cmocka_unit_test(part_count),
        cmocka_unit_test(padding),       cmocka_unit_test(content_types),
        cmocka_unit_test(long_boundary), cmocka_unit_test(few_pieces),
    };
    return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "json_tree.h"

/* Parse a copy of exactly its size, so that a sanitizer sees a read behind the end. `doc` owns copy
 * and arena. */
struct doc {
    struct arena arena;
    char *copy;
    str text;
    struct json *root; /* NULL if refused */
    struct json_error error;
};

static void doc_done(struct doc *doc)
{
    arena_done(&doc->arena);
    free(doc->copy);
}

static struct doc doc_parse(str text)
{
    struct doc doc = {.copy = malloc(text.len ? text.len : 1)};
    assert_non_null(doc.copy);
    if (text.len) memcpy(doc.copy, text.p, text.len);
    doc.text = (str){doc.copy, text.len};
    enum err e = json_parse(&doc.arena, doc.text, &doc.root, &doc.error);
    assert_int_equal(e, doc.root ? OK : ERR_BAD_REQUEST);
    if (doc.root) json_tree_check(doc.root, doc.text, text.len < 4096);
    return doc;
}

#define PARSE(text) AUTO(doc_done) struct doc doc = doc_parse(text)

static void repeat(struct buf *b, str piece, size_t count)
{
    for (size_t i = 0; i < count; i++) buf_append(b, piece);
}

/* The parser. */

enum { REFUSE, ACCEPT };

static void verdicts(void **state)
{
    (void)state;
    static const struct {
        char suite;
        bool accept;
        str bytes;
        const char *name;
    } rows[] = {
#define CASE(suite, ours, bytes, name) {#suite[0], ours, {bytes, sizeof(bytes) - 1}, name},
#include "json_cases.def"
#undef CASE
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(rows[i].bytes);
        if (!doc.root != !rows[i].accept)
            fail_msg("%s %s: %s", rows[i].accept ? "refused" : "accepted", rows[i].name,
                     doc.root ? "" : doc.error.reason);
        if (rows[i].suite == 'Y' && !doc.root)
            assert_string_equal(doc.error.reason, "duplicate key");
    }
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *reason;
    } rows[] = {
        {"", 0, "unexpected end"},
        {" ", 1, "unexpected end"},
        {"[1,", 3, "unexpected end"},
        {"[1", 2, "unexpected end"},
        {"{\"a\"", 4, "unexpected end"},
        {"{\"a\":1,", 7, "unexpected end"},
        {"\"abc", 4, "unexpected end"},
        {"-", 1, "unexpected end"},
        {"[1e]", 3, "invalid number"},
        {"[-x]", 2, "invalid number"},
        {"[1.]", 3, "invalid number"},
        {"[01]", 2, "leading zero"},
        {"[-00]", 3, "leading zero"},
        {"[tru]", 1, "unexpected word"},
        {"[x]", 1, "expected a value"},
        {"[1,]", 3, "expected a value"},
        {"\xef\xbb\xbf{}", 0, "expected a value"},
        {"[1 2]", 3, "expected ',' or ']'"},
        {"{\"a\":1;", 6, "expected ',' or '}'"},
        {"{a", 1, "expected a key"},
        {"{\"a\":1,}", 7, "expected a key"},
        {"{\"a\" 1", 5, "expected ':'"},
        {"[] x", 3, "trailing bytes"},
        {"[1]]", 3, "trailing bytes"},
        {"{\"a\":1, \"b\":2, \"a\":", 15, "duplicate key"},
        {"[\"ab\n\"]", 4, "control character in a string"},
        {"[\"ab\\x\"]", 4, "invalid escape"},
        {"[\"ab\\u12", 4, "invalid escape"},
        {"[\"ab\\ud800\"]", 4, "lone surrogate"},
        {"[\"\\ud800\\ue000\"]", 2, "lone surrogate"},
        {"[\"\\ud800\\udbff\"]", 2, "lone surrogate"},
        {"[\"\\udc00\\udc00\"]", 2, "lone surrogate"},
        {"[\"ab\xc3(\"]", 4, "invalid UTF-8"},
        {"[\"\xe4\xbd\xa0\xff\"]", 5, "invalid UTF-8"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(str_c(rows[i].text));
        assert_null(doc.root);
        if (doc.error.offset != rows[i].offset || strcmp(doc.error.reason, rows[i].reason) != 0)
            fail_msg("%s: got %zu %s, expected %zu %s", rows[i].text, doc.error.offset,
                     doc.error.reason, rows[i].offset, rows[i].reason);
    }
    AUTO(arena_done) struct arena arena;
    arena_init(&arena);
    struct json *untouched = NULL;
    assert_int_equal(json_parse(&arena, STR("["), &untouched, NULL), ERR_BAD_REQUEST);
    assert_int_equal(json_parse(&arena, (str){NULL, 0}, &untouched, NULL), ERR_BAD_REQUEST);
    assert_null(untouched);
}

/* Documents that are wrong wherever they are cut. */
static void truncations(void **state)
{
    (void)state;
    static const str rows[] = {
        STR("{\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"content\":\" hi\"},\"n\":null}]}"),
        STR("[\"\\u00e9\\ud83d\\ude00\\n\\\"\", \"\xe4\xbd\xa0\xf0\x9f\x98\x80\xc3\xa9 eight "
            "by\"]"),
        STR("{ \"a\" : [ 1 , -2.5e+10 , true , false , null , { } , [ ] ] , \"b\" : \"\" }"),
        STR("\"plain text of more than sixteen bytes\""),
        STR("[[[[{\"a\":[{\"b\":[]}]}]]]]"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t len = 0; len <= rows[i].len; len++) {
            PARSE(((str){rows[i].p, len}));
            if (!doc.root != (len < rows[i].len)) fail_msg("row %zu at byte %zu", i, len);
        }
    }
}

static void depth(void **state)
{
    (void)state;
    static const struct {
        str open, middle, close;
        size_t levels; /* opened by one piece */
    } rows[] = {
        {STR("["), STR(""), STR("]"), 1},
        {STR("{\"a\":"), STR("1"), STR("}"), 1},
        {STR("[{\"a\":"), STR("[1]"), STR("}]"), 2},
        {STR(" [ 1 , "), STR("\"x\""), STR(" , 2 ] "), 1},
    };
    AUTO(buf_done) struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t inner = rows[i].middle.p[0] == '[', pieces = JSON_DEPTH_MAX / rows[i].levels;
        for (size_t extra = 0; extra < 2; extra++) {
            size_t count = pieces - inner + extra;
            buf_clear(&text);
            repeat(&text, rows[i].open, count);
            buf_append(&text, rows[i].middle);
            repeat(&text, rows[i].close, count);
            PARSE(buf_str(&text));
            bool fits = count * rows[i].levels + inner <= JSON_DEPTH_MAX;
            if (!doc.root != !fits) fail_msg("row %zu, %zu pieces", i, count);
            if (!doc.root) assert_string_equal(doc.error.reason, "too deep");
        }
    }
}

/* Refused at the first bracket too deep, however many follow. */
static void deep_attacks(void **state)
{
    (void)state;
    static const struct {
        str piece;
        size_t offset;
    } rows[] = {
        {STR("["), JSON_DEPTH_MAX},
        {STR("{\"\":"), JSON_DEPTH_MAX * 4},
        {STR("[{\"\":"), JSON_DEPTH_MAX / 2 * 5},
    };
    AUTO(buf_done) struct buf text;
    buf_init(&text, 8 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        buf_clear(&text);
        repeat(&text, rows[i].piece, 1 << 20);
        assert_false(text.full);
        PARSE(buf_str(&text));
        assert_null(doc.root);
        assert_string_equal(doc.error.reason, "too deep");
        assert_int_equal(doc.error.offset, rows[i].offset);
    }
}

/* The bound counts open levels, not brackets: siblings are free. */
static void wide_is_not_deep(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf text;
    buf_init(&text, 1 << 16);
    buf_char(&text, '[');
    repeat(&text, STR("{},[],"), 200);
    buf_append(&text, STR("0]"));
    PARSE(buf_str(&text));
    assert_non_null(doc.root);
    assert_int_equal(doc.root->count, 401);
}

static void too_many_values(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf text;
    buf_init(&text, 4 << 20);
    buf_char(&text, '[');
    repeat(&text, STR("0,"), JSON_VALUES_MAX - 2); /* with the array and the last: the maximum */
    buf_append(&text, STR("0]"));
    {
        PARSE(buf_str(&text));
        assert_non_null(doc.root);
        assert_int_equal(doc.root->count, JSON_VALUES_MAX - 1);
    }
    text.len--;
    buf_append(&text, STR(",0]"));
    PARSE(buf_str(&text));
    assert_null(doc.root);
    assert_string_equal(doc.error.reason, "too many values");
}

/* What was sent has values for its bytes: a list of small numbers up to a length, and behind it only as
 * many as longer ones would be. */
static void values_that_were_sent(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        size_t count; /* in the array */
        bool taken;
    } rows[] = {
        {"0", JSON_VALUES_SURE - 1, true},       {"0", 2 * JSON_VALUES_SURE, false},
        {"1234567", 2 * JSON_VALUES_SURE, true}, {"1234567", 10 * JSON_VALUES_SURE, true},
        {"12345", 10 * JSON_VALUES_SURE, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena arena;
        struct json *root = NULL;
        struct json_error error = {0};
        AUTO(buf_done) struct buf text;
        buf_init(&text, 4 << 20);
        for (size_t j = 0; j < rows[i].count; j++) {
            buf_char(&text, j ? ',' : '[');
            buf_append(&text, str_c(rows[i].value));
        }
        buf_char(&text, ']');
        arena_init(&arena);
        enum err e = json_parse_sent(&arena, buf_str(&text), &root, &error);
        assert_int_equal(e == OK, rows[i].taken);
        if (!rows[i].taken) assert_string_equal(error.reason, "too many values");
        assert_true(arena.bytes <= (JSON_VALUES_SURE + text.len / JSON_VALUE_BYTES) * 82);
        arena_done(&arena);
    }
}

static void raw_spans(void **state)
{
    (void)state;
    str text = STR(" { \"a\" : [ 1.50 , \"x\\n\" ,true ] , \"b\":{ } ,\"c\": null } ");
    PARSE(text);
    assert_non_null(doc.root);
    const struct json *a = json_get(doc.root, STR("a"));
    assert_str(doc.root->raw,
               STR("{ \"a\" : [ 1.50 , \"x\\n\" ,true ] , \"b\":{ } ,\"c\": null }"));
    assert_str(a->raw, STR("[ 1.50 , \"x\\n\" ,true ]"));
    assert_str(json_at(a, 0)->raw, STR("1.50"));
    assert_str(json_at(a, 0)->text, STR("1.50"));
    assert_str(json_at(a, 1)->raw, STR("\"x\\n\""));
    assert_str(json_at(a, 1)->text, STR("x\n"));
    assert_str(json_at(a, 2)->raw, STR("true"));
    assert_str(json_get(doc.root, STR("b"))->raw, STR("{ }"));
    assert_str(json_get(doc.root, STR("c"))->raw, STR("null"));
}

static void strings(void **state)
{
    (void)state;
    static const struct {
        str source, text;
    } rows[] = {
        {STR("\"\""), STR("")},
        {STR("\"plain\""), STR("plain")},
        {STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), STR("\"\\/\b\f\n\r\t")},
        {STR("\"a\\u0000b\""), STR("a\0b")},
        {STR("\"\\u0000\""), STR("\0")},
        {STR("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\""),
         STR("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf")},
        {STR("\"\\ud800\\udc00\\uDBFF\\uDFFF\""), STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
        {STR("\"\\ud83d\\ude00 tail\""), STR("\xf0\x9f\x98\x80 tail")},
        {STR("\"head \\u00E9\""), STR("head \xc3\xa9")},
        {STR("\"\xe4\xbd\xa0\\n\xe5\xa5\xbd\""), STR("\xe4\xbd\xa0\n\xe5\xa5\xbd")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(rows[i].source);
        assert_non_null(doc.root);
        assert_str(json_text(doc.root), rows[i].text);
    }
}

/* Every byte at every place of a string, around the words of eight bytes the scanner takes. */
static void every_byte_everywhere(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 17; len++) {
        for (size_t at = 0; at < len; at++) {
            for (unsigned c = 0; c < 256; c++) {
                char text[32];
                memset(text, 'a', sizeof text);
                text[0] = text[len + 1] = '"';
                text[at + 1] = (char)c;
                PARSE(((str){text, len + 2}));
                bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
                if (!doc.root !=
                    !plain) /* a quote ends early; \a and \" at the end are no strings */
                    fail_msg("byte %02x at %zu of %zu", c, at, len);
            }
        }
    }
}

static void borrowing(void **state)
{
    (void)state;
    PARSE(STR("[\"plain\",\"esc\\n\"]"));
    const char *plain = json_at(doc.root, 0)->text.p, *escaped = json_at(doc.root, 1)->text.p;
    assert_true(plain == doc.text.p + 2);
    assert_true(escaped < doc.text.p || escaped >= doc.text.p + doc.text.len);
}

static void duplicates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool accept;
    } rows[] = {
        {"{\"a\":1,\"a\":1}", false},
        {"{\"a\":1,\"\\u0061\":2}", false},
        {"{\"\\u0061\":1,\"a\":2}", false},
        {"{\"\":1,\"\":2}", false},
        {"{\"\\/\":1,\"/\":2}", false},
        {"{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}", false},
        {"{\"a\\u0000\":1,\"a\\u0000\":2}", false},
        {"{\"a\":{\"b\":1,\"b\":2}}", false},
        {"[{\"x\":0},{\"b\":1,\"c\":3,\"b\":2}]", false},
        {"{\"a\\u0000\":1,\"a\":2,\"a\\u0001\":3}", true},
        {"{\"a\":1,\"A\":2}", true},
        {"{\"a\":{\"a\":{\"a\":1}}}", true},
        {"[{\"a\":1},{\"a\":1}]", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(str_c(rows[i].text));
        if (!doc.root != !rows[i].accept) fail_msg("%s", rows[i].text);
        if (!doc.root) assert_string_equal(doc.error.reason, "duplicate key");
    }
}

/* An object of `count` keys, and then the key number `again` once more (none if >= count). */
static void write_object(struct buf *text, size_t count, size_t again)
{
    buf_clear(text);
    buf_char(text, '{');
    for (size_t i = 0; i < count; i++) buf_printf(text, "\"k%zu\":%zu,", i, i);
    if (again < count)
        buf_printf(text, "\"\\u006b%zu\":0}", again);
    else
        buf_append(text, STR("\"last\":0}"));
    assert_false(text->full);
}

/* Sizes around the change from search to set, and where the set grows. */
static void duplicates_in_large_objects(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf text;
    buf_init(&text, 1 << 22);
    static const size_t counts[] = {1, 2, 14, 15, 16, 17, 18, 31, 32, 33, 34, 63, 64, 65, 500};
    for (size_t i = 0; i < COUNT(counts); i++) {
        for (size_t again = 0; again <= counts[i]; again++) {
            write_object(&text, counts[i], again);
            AUTO(arena_done) struct arena arena = {0};
            struct json *root = NULL;
            enum err e = json_parse(&arena, buf_str(&text), &root, NULL);
            if (!e != (again == counts[i])) fail_msg("%zu keys, %zu again", counts[i], again);
        }
    }
}

/* A search through all members would take 10^10 comparisons here, minutes instead of a blink. */
static void huge_object(void **state)
{
    (void)state;
    enum { KEYS = 100 * 1000 };
    AUTO(buf_done) struct buf text;
    buf_init(&text, 1 << 22);
    write_object(&text, KEYS, KEYS);
    {
        PARSE(buf_str(&text));
        assert_non_null(doc.root);
        assert_int_equal(doc.root->count, KEYS + 1);
    }
    write_object(&text, KEYS, KEYS - 1);
    PARSE(buf_str(&text));
    assert_null(doc.root);
    assert_string_equal(doc.error.reason, "duplicate key");
}

/* Lookups. */

static void lookups(void **state)
{
    (void)state;
    PARSE(STR("{\"a\":[10,20],\"b\":\"text\",\"\":1,\"n\\u0000\":2}"));
    const struct json *a = json_get(doc.root, STR("a")), *b = json_get(doc.root, STR("b"));
    assert_int_equal(a->type, JSON_ARRAY);
    assert_str(json_text(b), STR("text"));
    assert_str(json_get(doc.root, STR_EMPTY)->text, STR("1"));
    assert_str(json_get(doc.root, STR("n\0"))->text, STR("2"));
    assert_str(json_at(a, 1)->text, STR("20"));
    assert_null(json_at(a, 2));
    assert_null(json_at(a, SIZE_MAX));
    assert_null(json_at(doc.root, 0));
    assert_null(json_at(NULL, 0));
    assert_null(json_get(doc.root, STR("n")));
    assert_null(json_get(a, STR("a")));
    assert_null(json_get(NULL, STR("a")));
    assert_str(json_text(json_at(a, 0)), STR_EMPTY);
    assert_str(json_text(a), STR_EMPTY);
    assert_str(json_text(NULL), STR_EMPTY);
}

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_i64, is_u64;
        int64_t i64;
        uint64_t u64;
    } rows[] = {
        {"0", true, true, 0, 0},
        {"-1", true, false, -1, 0},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", false, true, 0, (uint64_t)INT64_MAX + 1},
        {"-9223372036854775808", true, false, INT64_MIN, 0},
        {"-9223372036854775809", false, false, 0, 0},
        {"18446744073709551615", false, true, 0, UINT64_MAX},
        {"18446744073709551616", false, false, 0, 0},
        {"-18446744073709551615", false, false, 0, 0},
        {"99999999999999999999999999", false, false, 0, 0},
        {"-0", false, false, 0, 0},
        {"1.0", false, false, 0, 0},
        {"1e3", false, false, 0, 0},
        {"\"1\"", false, false, 0, 0},
        {"null", false, false, 0, 0},
        {"[1]", false, false, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(str_c(rows[i].text));
        int64_t i64 = 77;
        uint64_t u64 = 77;
        assert_int_equal(json_i64(doc.root, &i64), rows[i].is_i64 ? OK : ERR_INVALID_FIELD);
        assert_int_equal(json_u64(doc.root, &u64), rows[i].is_u64 ? OK : ERR_INVALID_FIELD);
        assert_int_equal(i64, rows[i].is_i64 ? rows[i].i64 : 77);
        assert_int_equal(u64, rows[i].is_u64 ? rows[i].u64 : 77);
    }
    assert_int_equal(json_i64(NULL, &(int64_t){0}), ERR_INVALID_FIELD);
    assert_int_equal(json_u64(NULL, &(uint64_t){0}), ERR_INVALID_FIELD);
}

static void reals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err expected;
        double value;
    } rows[] = {
        {"0", OK, 0},
        {"-0", OK, -0.0},
        {"0.1", OK, 0.1},
        {"-2.5e3", OK, -2500},
        {"1E+2", OK, 100},
        {"9007199254740993", OK, 9007199254740992.0},
        {"1.7976931348623157e308", OK, 1.7976931348623157e308},
        {"1.8e308", ERR_INVALID_FIELD, 0},
        {"1e400", ERR_INVALID_FIELD, 0},
        {"-1e400", ERR_INVALID_FIELD, 0},
        {"5e-324", OK, 5e-324},
        {"1e-400", OK, 0},
        {"\"1\"", ERR_INVALID_FIELD, 0},
        {"true", ERR_INVALID_FIELD, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(str_c(rows[i].text));
        double value = 77, expected = rows[i].expected ? 77 : rows[i].value;
        assert_int_equal(json_f64(doc.root, &value), rows[i].expected);
        assert_memory_equal(&value, &expected, sizeof value); /* tells -0 from 0 */
    }
    double value;
    assert_int_equal(json_f64(NULL, &value), ERR_INVALID_FIELD);

    char digits[JSON_F64_BYTES_MAX + 1];
    memset(digits, '1', sizeof digits);
    digits[1] = '.';
    PARSE(((str){digits, JSON_F64_BYTES_MAX}));
    assert_int_equal(json_f64(doc.root, &value), OK);
    assert_true(value > 1.1 && value < 1.2);
    struct doc longer AUTO(doc_done) = doc_parse((str){digits, JSON_F64_BYTES_MAX + 1});
    assert_int_equal(json_f64(longer.root, &value), ERR_INVALID_FIELD);
}

/* The writer. */

static void writing(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 4096);
    struct json_writer w;
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("id"), STR("a\"b"));
    json_key(&w, STR("list"));
    json_array(&w);
    json_number_u64(&w, UINT64_MAX);
    json_number_i64(&w, INT64_MIN);
    json_number_i64(&w, 7);
    json_bool(&w, true);
    json_bool(&w, false);
    json_null(&w);
    json_object(&w);
    json_object_end(&w);
    json_array(&w); /* on the level where an object was */
    json_null(&w);
    json_array_end(&w);
    json_raw(&w, STR("{\"x\": 1.50}"));
    json_array_end(&w);
    json_key(&w, STR("k\n"));
    json_object(&w);
    json_member(&w, STR(""), (str){NULL, 0});
    json_object_end(&w);
    json_member(&w, STR("z"), STR("end"));
    json_object_end(&w);
    assert_str(buf_str(&out),
               STR("{\"id\":\"a\\\"b\",\"list\":[18446744073709551615,-9223372036854775808,7,true,"
                   "false,null,{},[null],{\"x\": 1.50}],\"k\\n\":{\"\":\"\"},\"z\":\"end\"}"));
}

static void escaping(void **state)
{
    (void)state;
    static const struct {
        str text, written;
    } rows[] = {
        {STR("\"\\/"), STR("\"\\\"\\\\/\"")},
        {STR("\b\f\n\r\t"), STR("\"\\b\\f\\n\\r\\t\"")},
        {STR("a\0b\x01\x1f"), STR("\"a\\u0000b\\u0001\\u001f\"")},
        {STR("\x7f<&>'"), STR("\"\x7f<&>'\"")},
        {STR("\xe2\x80\xa8|\xe2\x80\xa9"), STR("\"\\u2028|\\u2029\"")},
        {STR("\xe2\x80\xa7\xe2\x80\xaa\xe2\x81\xa8"),
         STR("\"\xe2\x80\xa7\xe2\x80\xaa\xe2\x81\xa8\"")},
        {STR("\xe4\xbd\xa0\xe5\xa5\xbd, \xf0\x9f\x98\x80"),
         STR("\"\xe4\xbd\xa0\xe5\xa5\xbd, \xf0\x9f\x98\x80\"")},
        {STR("a long plain text\nof two lines\xe2\x80\xa8"),
         STR("\"a long plain text\\nof two lines\\u2028\"")},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf out;
        buf_init(&out, 4096);
        struct json_writer w;
        json_write_begin(&w, &out);
        json_string(&w, rows[i].text);
        assert_str(buf_str(&out), rows[i].written);
        PARSE(buf_str(&out));
        assert_str(json_text(doc.root), rows[i].text);
    }
}

/* What the verdict table accepts means the same after it was written by us. */
static void round_trips(void **state)
{
    (void)state;
    static const str rows[] = {
#define CASE(suite, ours, bytes, name) {bytes, sizeof(bytes) - 1},
#include "json_cases.def"
#undef CASE
    };
    size_t accepted = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        PARSE(rows[i]);
        if (!doc.root) continue;
        AUTO(buf_done) struct buf out;
        buf_init(&out, 4096);
        struct json_writer w;
        json_write_begin(&w, &out);
        json_tree_write(&w, doc.root);
        struct doc again AUTO(doc_done) = doc_parse(buf_str(&out));
        assert_non_null(again.root);
        assert_true(json_tree_eq(doc.root, again.root));
        accepted++;
    }
    assert_true(accepted > 90);
}

static void full_buffer(void **state)
{
    (void)state;
    AUTO(buf_done) struct buf out;
    buf_init(&out, 10);
    struct json_writer w;
    json_write_begin(&w, &out);
    json_object(&w);
    json_member(&w, STR("key"), STR("does not fit"));
    json_object_end(&w);
    assert_true(out.full);
    assert_true(out.len <= 10);
}

static void value_without_key(struct json_writer *w)
{
    json_object(w);
    json_null(w);
}

static void key_without_object(struct json_writer *w)
{
    json_array(w);
    json_key(w, STR("a"));
}

static void key_without_value(struct json_writer *w)
{
    json_object(w);
    json_key(w, STR("a"));
    json_object_end(w);
}

static void key_twice(struct json_writer *w)
{
    json_object(w);
    json_key(w, STR("a"));
    json_key(w, STR("b"));
}

static void wrong_end(struct json_writer *w)
{
    json_array(w);
    json_object_end(w);
}

static void end_without_start(struct json_writer *w)
{
    json_array_end(w);
}

static void two_documents(struct json_writer *w)
{
    json_null(w);
    json_null(w);
}

static void too_deep(struct json_writer *w)
{
    for (int i = 0; i <= JSON_DEPTH_MAX; i++) json_array(w);
}

static void empty_raw(struct json_writer *w)
{
    json_raw(w, STR_EMPTY);
}

/* Misuse ends the process; so it is tried in a child. */
static bool aborts(void (*misuse)(struct json_writer *))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        struct buf out;
        struct json_writer w;
        buf_init(&out, 4096);
        json_write_begin(&w, &out);
        misuse(&w);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void misuse(void **state)
{
    (void)state;
    void (*const rows[])(struct json_writer *) = {
        value_without_key, key_without_object, key_without_value, key_twice, wrong_end,
        end_without_start, two_documents,      too_deep,          empty_raw,
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!aborts(rows[i])) fail_msg("misuse %zu went unnoticed", i);
}

/* UTF-8. */

static void utf8(void **state)
{
    (void)state;
    static const struct {
        str text;
        bool valid;
    } rows[] = {
        {STR(""), true},
        {STR("plain"), true},
        {STR("a\0b"), true},
        {STR("\xc2\x80\xdf\xbf"), true},
        {STR("\xe0\xa0\x80\xec\xbf\xbf\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), true},
        {STR("\xf0\x90\x80\x80\xf3\xbf\xbf\xbf\xf4\x8f\xbf\xbf"), true},
        {STR("\x80"), false},
        {STR("a\xbf"), false},
        {STR("\xc0\x80"), false},
        {STR("\xc1\xbf"), false},
        {STR("\xc2"), false},
        {STR("\xc2\x7f"), false},
        {STR("\xc2\xc0"), false},
        {STR("\xe0\x9f\xbf"), false},
        {STR("\xe4\xbd"), false},
        {STR("\xe4\xbd."), false},
        {STR("\xed\xa0\x80"), false},
        {STR("\xf0\x8f\xbf\xbf"), false},
        {STR("\xf0\x9f\x98"), false},
        {STR("\xf4\x90\x80\x80"), false},
        {STR("\xf5\x80\x80\x80"), false},
        {STR("\xff"), false},
        {STR("ok\xe4\xbd\xa0\xff"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (utf8_valid(rows[i].text) != rows[i].valid) fail_msg("row %zu", i);
    assert_true(utf8_valid((str){NULL, 0}));
}

/* Every code point is written as one valid character, and every surrogate would be refused. */
static void utf8_every_code(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        size_t len = utf8_write(code, bytes);
        assert_int_equal(len, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        if (utf8_valid((str){bytes, len}) == surrogate) fail_msg("U+%04X", code);
        if (len > 1 && utf8_valid((str){bytes, len - 1})) fail_msg("part of U+%04X", code);
    }
}

int test_json(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(errors),
        cmocka_unit_test(truncations),
        cmocka_unit_test(depth),
        cmocka_unit_test(deep_attacks),
        cmocka_unit_test(wide_is_not_deep),
        cmocka_unit_test(too_many_values),
        cmocka_unit_test(values_that_were_sent),
        cmocka_unit_test(raw_spans),
        cmocka_unit_test(strings),
        cmocka_unit_test(every_byte_everywhere),
        cmocka_unit_test(borrowing),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(duplicates_in_large_objects),
        cmocka_unit_test(huge_object),
        cmocka_unit_test(lookups),
        cmocka_unit_test(integers),
        cmocka_unit_test(reals),
        cmocka_unit_test(writing),
        cmocka_unit_test(escaping),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(full_buffer),
        cmocka_unit_test(misuse),
        cmocka_unit_test(utf8),
        cmocka_unit_test(utf8_every_code),
    };
    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}

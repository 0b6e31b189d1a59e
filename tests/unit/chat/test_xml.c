/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/platform/xml.h"

#include "base/buf.h"
#include "base/limits.h"
#include "check.h"

static void documents(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *items; /* path=text; ... */
    } rows[] = {
        {"<xml/>", "xml:"},
        {"<xml><A>1</A></xml>", "xml:A=1;"},
        {"<xml><A><![CDATA[1 < 2 & ]] > 3]]></A></xml>", "xml:A=1 < 2 & ]] > 3;"},
        {"<xml><A><![CDATA[a]]]]><![CDATA[>b]]></A></xml>", "xml:A=a]]>b;"},
        {"<xml>\n<A>&lt;&gt;&amp;&quot;&apos;&#20320;&#x597d;</A>\n</xml>", "xml:A=<>&\"'你好;"},
        {"<?xml version=\"1.0\" encoding=\"gb2312\"?><r a='1'><A b=\"2\">你</A></r>", "r:A=你;"},
        {"<xml><S><R>1</R><R>2</R></S><B></B></xml>", "xml:S=;S/R=1;S/R=2;B=;"},
        {"<xml><S><R>1</R>x<T>2</T>y</S><B>3</B></xml>", "xml:S=xy;S/R=1;S/T=2;B=3;"},
        {"<xml><S><R>1<D>deep</D>2</R></S></xml>", "xml:S=;S/R=12;"},
        {"<xml><!-- <A>no</A> --><A>y<!-- n -->es</A><?php no?></xml>", "xml:A=yes;"},
        {"<a><b><c><d><e><f><g><h>8</h></g></f></e></d></c></b></a>", "a:b=;b/c=;"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        AUTO(buf_done) struct buf out;
        struct xml_document xml;
        struct fault why = {0};
        arena_init(&arena);
        buf_init(&out, 4096);
        if (xml_parse(&arena, str_c(rows[i].bytes), &xml, &why))
            fail_msg("%s: %s", rows[i].bytes, why.text);
        buf_append(&out, xml.root);
        buf_char(&out, ':');
        for (size_t k = 0; k < xml.count; k++)
            buf_printf(&out, "%.*s=%.*s;", STR_ARG(xml.items[k].path), STR_ARG(xml.items[k].text));
        assert_str(buf_str(&out), str_c(rows[i].items));
    }
}

static void lookups(void **state)
{
    (void)state;
    AUTO(arena_done) struct arena arena;
    struct xml_document xml;
    arena_init(&arena);
    str bytes = STR("<xml><A>1</A><S><R>3</R><R>4</R></S></xml>");
    assert_int_equal(xml_parse(&arena, bytes, &xml, NULL), OK);
    assert_str(xml_text(&xml, "A"), STR("1"));
    assert_str(xml_text(&xml, "S/R"), STR("3"));
    assert_str(xml_text(&xml, "R"), STR(""));
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        str bytes;
        const char *why;
    } rows[] = {
        {STR(""), "empty"},
        {STR("hello"), "line 1"},
        {STR("<xml><A></xml>"), "mismatched"},
        {STR("<xml></xml><xml></xml>"), "junk"},
        {STR("<xml><A>\xff</A></xml>"), "UTF-8"},
        {STR("<xml><A>\xc0\x80</A></xml>"), "UTF-8"},
        {STR("<xml>\0</xml>"), "line 1"},
        {STR("<xml><A>&#0;</A></xml>"), "line 1"},
        {STR("<xml><A>&nbsp;</A></xml>"), "entity"},
        {STR("<!DOCTYPE xml><xml/>"), "document type"},
        {STR("<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>"),
         "document type"},
        {STR("<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><x/>"), "document type"},
        {STR("<xml><A>1</A><B/><A>2</A></xml>"), "twice"},
        {STR("<xml><A/><A/></xml>"), "twice"},
        {STR("<a><b><c><d><e><f><g><h><i/></h></g></f></e></d></c></b></a>"), "deeply"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena arena;
        struct xml_document xml;
        struct fault why = {0};
        arena_init(&arena);
        assert_int_equal(xml_parse(&arena, rows[i].bytes, &xml, &why), ERR_BAD_REQUEST);
        if (str_find(str_c(why.text), str_c(rows[i].why)) < 0) fail_msg("row %zu: %s", i, why.text);
    }
}

static enum err parse_many(size_t elements)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf bytes;
    struct xml_document xml;
    arena_init(&arena);
    buf_init(&bytes, CHANNEL_HOOK_BYTES_MAX);
    buf_append(&bytes, STR("<xml>"));
    for (size_t i = 1; i < elements; i++) buf_printf(&bytes, "<A%zu/>", i);
    buf_append(&bytes, STR("</xml>"));
    enum err e = xml_parse(&arena, buf_str(&bytes), &xml, NULL);
    if (!e) assert_int_equal(xml.count, elements - 1);
    return e;
}

static enum err parse_long(size_t len)
{
    AUTO(arena_done) struct arena arena;
    AUTO(buf_done) struct buf bytes;
    struct xml_document xml;
    arena_init(&arena);
    buf_init(&bytes, SIZE_MAX);
    buf_append(&bytes, STR("<xml><A>"));
    while (bytes.len < len - 10) buf_char(&bytes, 'a');
    buf_append(&bytes, STR("</A></xml>"));
    assert_int_equal(bytes.len, len);
    enum err e = xml_parse(&arena, buf_str(&bytes), &xml, NULL);
    if (!e) assert_int_equal(xml_text(&xml, "A").len, len - 18);
    return e;
}

static void limits(void **state)
{
    (void)state;
    assert_int_equal(parse_many(XML_ELEMENTS_MAX), OK);
    assert_int_equal(parse_many(XML_ELEMENTS_MAX + 1), ERR_BAD_REQUEST);
    assert_int_equal(parse_long(CHANNEL_HOOK_BYTES_MAX), OK);
    assert_int_equal(parse_long(CHANNEL_HOOK_BYTES_MAX + 1), ERR_BAD_REQUEST);
}

int test_xml(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents),
        cmocka_unit_test(lookups),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests_name("xml", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config/host.h"

#include <string.h>

#include "check.h"

#define LABEL_63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"

static void same_verdict(const char *text, const char *refused, const char *part)
{
    if (!refused && !part) return;
    if (!refused || !part || !strstr(refused, part))
        fail_msg("\"%s\": got \"%s\", expected \"%s\"", text, refused ? refused : "accepted",
                 part ? part : "accepted");
}

static void host_ports(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refused, *host;
        int port; /* -1: none */
    } rows[] = {
        {"127.0.0.1:8080", NULL, "127.0.0.1", 8080},
        {"localhost:0", NULL, "localhost", 0},
        {"[::1]:65535", NULL, "::1", 65535},
        {"[::1]", NULL, "::1", -1},
        {"a-b.Example_1.com", NULL, "a-b.Example_1.com", -1},
        {LABEL_63 ":1", NULL, LABEL_63, 1},
        {LABEL_63 "h:1", "no name", NULL, 0},
        {"a:65536", "port", NULL, 0},
        {"a:", "port", NULL, 0},
        {"a:-1", "port", NULL, 0},
        {"a:000080", "port", NULL, 0},
        {"a: 1", "port", NULL, 0},
        {"", "no host", NULL, 0},
        {":8080", "no host", NULL, 0},
        {"*:8080", "no name", NULL, 0},
        {"a..b:1", "no name", NULL, 0},
        {"-a:1", "no name", NULL, 0},
        {"a-:1", "no name", NULL, 0},
        {"a b:1", "no name", NULL, 0},
        {"256.0.0.1:1", "IPv4", NULL, 0},
        {"127.1:1", "IPv4", NULL, 0},
        {"8080", "IPv4", NULL, 0},
        {"99999999999999999999:1", "IPv4", NULL, 0},
        {"::1:80", "brackets", NULL, 0},
        {"[::1", "not closed", NULL, 0},
        {"[::g]:1", "IPv6", NULL, 0},
        {"[]:1", "IPv6", NULL, 0},
        {"[127.0.0.1]:1", "IPv6", NULL, 0},
        {"[::1]8080", "behind the bracket", NULL, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct host_port address = {.port = 7};
        same_verdict(rows[i].text, host_port_parse(str_c(rows[i].text), &address), rows[i].refused);
        if (rows[i].refused) {
            assert_int_equal(address.port, 7);
            continue;
        }
        assert_str(address.host, str_c(rows[i].host));
        assert_int_equal(address.has_port, rows[i].port >= 0);
        assert_int_equal(address.port, rows[i].port < 0 ? 0 : rows[i].port);
    }
}

static void long_host(void **state)
{
    (void)state;
    char text[254];
    memset(text, 'a', sizeof text);
    for (size_t i = 50; i < 253; i += 50) text[i] = '.';
    struct host_port address;
    assert_null(host_port_parse((str){text, 253}, &address));
    assert_non_null(host_port_parse((str){text, 254}, &address));
}

static void urls(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refused, *origin, *prefix;
    } rows[] = {
        {"https://example.com", NULL, "https://example.com", ""},
        {"https://example.com/", NULL, "https://example.com", ""},
        {"http://example.com:8080/a/b-c/", NULL, "http://example.com:8080", "/a/b-c"},
        {"http://[::1]:8080/x", NULL, "http://[::1]:8080", "/x"},
        {"http://example.com:443", NULL, "http://example.com:443", ""},
        {"example.com", "http://", NULL, NULL},
        {"ftp://example.com", "http://", NULL, NULL},
        {"HTTPS://example.com", "http://", NULL, NULL},
        {"https://", "no host", NULL, NULL},
        {"https:///x", "no host", NULL, NULL},
        {"https://Example.com", "upper-case", NULL, NULL},
        {"https://me:secret@example.com", "user name", NULL, NULL},
        {"https://example.com:443", "default port", NULL, NULL},
        {"http://example.com:80/x", "default port", NULL, NULL},
        {"http://example.com:0", "port 0", NULL, NULL},
        {"https://example.com?a=b", "query", NULL, NULL},
        {"https://example.com/a?b", "query", NULL, NULL},
        {"https://example.com/a#b", "fragment", NULL, NULL},
        {"https://example.com//", "empty path", NULL, NULL},
        {"https://example.com/a//b", "empty path", NULL, NULL},
        {"https://example.com/../b", "dots", NULL, NULL},
        {"https://example.com/a b", "other characters", NULL, NULL},
        {"https://example.com/%2F", "other characters", NULL, NULL},
        {"https://example.com/\"><script>", "other characters", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct url url = {0};
        same_verdict(rows[i].text, url_parse(str_c(rows[i].text), &url), rows[i].refused);
        if (rows[i].refused) continue;
        assert_str(url.origin, str_c(rows[i].origin));
        assert_str(url.prefix, str_c(rows[i].prefix));
        assert_int_equal(url.text.len, url.origin.len + url.prefix.len);
    }
}

static void origins_and_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refused;
        const char *(*check)(str);
    } rows[] = {
        {"https://app.example.com", NULL, origin_check},
        {"http://localhost:3000", NULL, origin_check},
        {"https://app.example.com/", "goes on", origin_check},
        {"https://app.example.com/x", "goes on", origin_check},
        {"*", "http://", origin_check},
        {"https://*.example.com", "no name", origin_check},
        {"null", "http://", origin_check},
        {"app.example.com:8443", NULL, host_check},
        {"[::1]:80", NULL, host_check},
        {"App.example.com", "upper-case", host_check},
        {"https://a", "port", host_check},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        same_verdict(rows[i].text, rows[i].check(str_c(rows[i].text)), rows[i].refused);
}

static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refused, *inside, *outside;
    } rows[] = {
        {"10.1.2.3", NULL, "10.1.2.3", "10.1.2.4"},
        {"10.0.0.0/8", NULL, "10.255.0.1", "11.0.0.0"},
        {"10.0.0.0/8", NULL, "::ffff:10.0.0.1", "::10.0.0.1"},
        {"192.168.1.128/25", NULL, "192.168.1.255", "192.168.1.127"},
        {"0.0.0.0/0", NULL, "255.255.255.255", "::1"},
        {"127.0.0.1/32", NULL, "127.0.0.1", "unix"},
        {"::1", NULL, "::1", "127.0.0.1"},
        {"fd00::/8", NULL, "fdff::1", "fe00::1"},
        {"2001:db8::/33", NULL, "2001:db8:7fff::", "2001:db8:8000::"},
        {"::/0", NULL, "10.0.0.1", ""},
        {"10.0.0.1/8", "not its first", NULL, NULL},
        {"fd00::1/64", "not its first", NULL, NULL},
        {"10.0.0.0/33", "0 to 32", NULL, NULL},
        {"10.0.0.0/", "0 to 32", NULL, NULL},
        {"10.0.0.0/0x8", "0 to 32", NULL, NULL},
        {"fd00::/129", "0 to 128", NULL, NULL},
        {"fd00::/0008", "0 to 128", NULL, NULL},
        {"10.0.0", "no address", NULL, NULL},
        {"localhost", "no address", NULL, NULL},
        {"", "no address", NULL, NULL},
        {"/8", "no address", NULL, NULL},
        {"[::1]", "no address", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cidr range = {0};
        same_verdict(rows[i].text, cidr_parse(str_c(rows[i].text), &range), rows[i].refused);
        if (rows[i].refused) continue;
        if (!cidr_contains(&range, str_c(rows[i].inside)))
            fail_msg("%s lacks %s", rows[i].text, rows[i].inside);
        if (cidr_contains(&range, str_c(rows[i].outside)))
            fail_msg("%s holds %s", rows[i].text, rows[i].outside);
    }
    struct cidr range;
    assert_null(cidr_parse(STR("10.0.0.0/8"), &range));
    assert_false(cidr_contains(&range, STR("10.0.0.1\0x")));
}

int test_host(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_ports),        cmocka_unit_test(long_host), cmocka_unit_test(urls),
        cmocka_unit_test(origins_and_hosts), cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests_name("app/host", tests, NULL, NULL);
}

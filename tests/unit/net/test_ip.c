/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static bool is_public(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) return ip_public((struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return ip_public((struct sockaddr *)&v6);
}

/* The first and last address of each range, and its neighbours outside. */
static void ranges(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.255",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "100::1",
    };
    static const char *const taken[] = {
        "1.0.0.0",         "9.255.255.255",   "11.0.0.0",       "100.63.255.255",
        "100.128.0.0",     "126.255.255.255", "128.0.0.0",      "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",  "172.32.0.0",     "192.0.1.0",
        "192.167.255.255", "192.169.0.0",     "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "8.8.8.8",         "2000::1",        "2001:4860::8888",
        "2003::1",         "2606:4700::1111", "fbff::1",        "65:ff9b::1",
    };
    for (size_t i = 0; i < COUNT(refused); i++)
        if (is_public(refused[i])) fail_msg("%s was taken for public", refused[i]);
    for (size_t i = 0; i < COUNT(taken); i++)
        if (!is_public(taken[i])) fail_msg("%s was not taken for public", taken[i]);
}

static void other_families(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    assert_false(ip_public((struct sockaddr *)&address));
}

int test_ip(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(other_families),
    };
    return cmocka_run_group_tests_name("net/ip", tests, NULL, NULL);
}

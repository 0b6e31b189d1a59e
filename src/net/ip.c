/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses belong to the public Internet: a table of the ranges that do not (IANA
 * special-purpose registries); an address that matches none of them does.
 */
#include "net/ip.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct ip_range {
    unsigned char prefix[16];
    unsigned bits;
};

static const struct ip_range ranges_v4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* shared by carriers */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local; cloud metadata */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* 6to4 relays */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 4},           /* multicast */
    {{240}, 4},           /* reserved, broadcast */
};

static const struct ip_range ranges_v6[] = {
    {{0}, 96},                        /* unspecified, loopback, IPv4-compatible */
    {{[10] = 0xff, [11] = 0xff}, 96}, /* IPv4-mapped */
    {{0, 0x64, 0xff, 0x9b}, 32},      /* translated IPv4: 64:ff9b::/96 and 64:ff9b:1::/48 */
    {{1}, 64},                        /* discard */
    {{0x20, 0x01}, 23},               /* protocol assignments, Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},   /* documentation */
    {{0x20, 0x02}, 16},               /* 6to4 carries any IPv4 */
    {{0xfc}, 7},                      /* unique local */
    {{0xfe, 0x80}, 10},               /* link-local */
    {{0xfe, 0xc0}, 10},               /* site-local, withdrawn */
    {{0xff}, 8},                      /* multicast */
};

static bool in_ranges(const unsigned char *address, const struct ip_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *prefix = ranges[i].prefix;
        unsigned bytes = ranges[i].bits / 8, rest = ranges[i].bits % 8;
        if (memcmp(address, prefix, bytes) != 0) continue;
        if (rest == 0 || (address[bytes] ^ prefix[bytes]) >> (8 - rest) == 0) return true;
    }
    return false;
}

bool ip_public(const struct sockaddr *address)
{
    unsigned char bytes[16];
    switch (address->sa_family) {
    case AF_INET:
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return !in_ranges(bytes, ranges_v4, COUNT(ranges_v4));
    case AF_INET6:
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
        return !in_ranges(bytes, ranges_v6, COUNT(ranges_v6));
    default:
        return false;
    }
}

str ip_share(str address, char out[static IP_SHARE_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned char bytes[16];
    if (address.len >= INET6_ADDRSTRLEN) address.len = INET6_ADDRSTRLEN - 1;
    str_note(out, IP_SHARE_BYTES, address);
    if (inet_pton(AF_INET6, out, bytes) != 1) return str_c(out);
    if (memcmp(bytes, mapped, sizeof mapped) == 0) {
        inet_ntop(AF_INET, bytes + sizeof mapped, out, IP_SHARE_BYTES);
        return str_c(out);
    }
    memset(bytes + 8, 0, 8);
    inet_ntop(AF_INET6, bytes, out, INET6_ADDRSTRLEN);
    size_t len = strlen(out);
    snprintf(out + len, IP_SHARE_BYTES - len, "/64");
    return str_c(out);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as people write them: host:port, origins, URLs with a path prefix, and address ranges.
 *
 * The parsers return NULL, or why the text is refused: words that go on after the quoted text, such
 * as `has no port`. Their results borrow from the text.
 */
#ifndef CONFIG_HOST_H
#define CONFIG_HOST_H

#include "base/str.h"

struct host_port {
    str host;      /* a name, an IPv4 address, or an IPv6 address without its brackets */
    uint16_t port; /* 0 when absent, or when given as 0 */
    bool has_port;
};

/* "localhost", "127.0.0.1:8080", "[::1]:0". */
const char *host_port_parse(str text, struct host_port *ret_address) MUST_USE;

/* Also: nothing but lower case, as browsers send it. */
const char *host_check(str text) MUST_USE;

struct url {
    str text;   /* without a trailing slash */
    str origin; /* "https://app.example.com:8443", as browsers send it */
    str prefix; /* "" or "/fermata" */
};

/* http or https, lower-case host, optional port unless it is the default one, optional path; no
 * user, query or fragment. */
const char *url_parse(str text, struct url *ret_url) MUST_USE;

/* The same without a path. */
const char *origin_check(str text) MUST_USE;

/* An address or a range. IPv4 is kept as ::ffff:a.b.c.d, so that it also matches the peers of a
 * socket that takes both; ::/0 is therefore every address. */
struct cidr {
    unsigned char bytes[16];
    unsigned bits;
};

/* "10.1.2.3", "10.0.0.0/8", "fd00::/8". Bits behind the prefix must be 0. */
const char *cidr_parse(str text, struct cidr *ret_cidr) MUST_USE;
bool cidr_contains(const struct cidr *range, str address); /* false if it is no address */

#endif

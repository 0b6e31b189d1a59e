/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses: host:port, origins, URLs, address ranges. One walk for host and port serves listeners,
 * Host values, origins and URLs, so they cannot disagree about what a host is.
 */
#include "config/host.h"

#include <arpa/inet.h>
#include <string.h>

enum { HOST_BYTES_MAX = 253, LABEL_BYTES_MAX = 63 }; /* RFC 1035 */

static bool alnum(char c)
{
    char l = char_lower(c);
    return (c >= '0' && c <= '9') || (l >= 'a' && l <= 'z');
}

/* inet_pton of a str; longer than any address is none. */
static bool address_parse(int family, str text, void *out)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= sizeof copy || str_find_char(text, '\0') >= 0) return false;
    if (text.len) memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    return inet_pton(family, copy, out) == 1;
}

static bool label_valid(str label)
{
    if (label.len == 0 || label.len > LABEL_BYTES_MAX) return false;
    if (label.p[0] == '-' || label.p[label.len - 1] == '-') return false;
    for (size_t i = 0; i < label.len; i++)
        if (!alnum(label.p[i]) && label.p[i] != '-' && label.p[i] != '_') return false;
    return true;
}

/* A name or an IPv4 address. A name whose last label is a number could only be a mistyped address.
 */
static const char *name_check(str host)
{
    if (host.len == 0) return "has no host";
    if (host.len > HOST_BYTES_MAX) return "has a host longer than 253 bytes";
    str rest = host, label = STR_EMPTY;
    while (rest.p) {
        label = str_split(&rest, '.');
        if (!label_valid(label)) return "has a host that is no name or address";
    }
    uint64_t number;
    unsigned char bytes[4];
    if (str_to_u64(label, &number) != ERR_INVALID_FIELD && !address_parse(AF_INET, host, bytes))
        return "has a host that is no IPv4 address";
    return NULL;
}

/* Cut the host off *rest; what is left is empty or begins with ':'. */
static const char *host_cut(str *rest, str *ret_host)
{
    if (!str_starts(*rest, STR("["))) {
        ptrdiff_t colon = str_find_char(*rest, ':');
        str host = {rest->p, colon < 0 ? rest->len : (size_t)colon};
        if (str_find_char(str_drop(*rest, host.len + 1), ':') >= 0)
            return "has more than one colon: an IPv6 address stands in brackets";
        *ret_host = host;
        *rest = str_drop(*rest, host.len);
        return name_check(host);
    }

    ptrdiff_t end = str_find_char(*rest, ']');
    if (end < 0) return "has a bracket that is not closed";
    str host = {rest->p + 1, (size_t)end - 1};
    unsigned char bytes[16];
    if (!address_parse(AF_INET6, host, bytes)) return "has no IPv6 address in its brackets";
    *ret_host = host;
    *rest = str_drop(*rest, (size_t)end + 1);
    if (rest->len && rest->p[0] != ':') return "has something else than a port behind the bracket";
    return NULL;
}

const char *host_port_parse(str text, struct host_port *ret_address)
{
    struct host_port address = {0};
    const char *refused = host_cut(&text, &address.host);
    if (refused) return refused;
    if (text.len) {
        str digits = str_drop(text, 1);
        uint64_t port;
        if (digits.len > 5 || str_to_u64(digits, &port) || port > UINT16_MAX)
            return "has a port that is no number from 0 to 65535";
        address.has_port = true;
        address.port = (uint16_t)port;
    }
    *ret_address = address;
    return NULL;
}

static bool lower(str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] != char_lower(text.p[i])) return false;
    return true;
}

const char *host_check(str text)
{
    struct host_port address;
    const char *refused = host_port_parse(text, &address);
    if (refused) return refused;
    return lower(text) ? NULL : "has upper-case letters";
}

/* "https://host:port" of `text`, exactly as a browser would send it in Origin. */
static const char *origin_parse(str text, size_t *ret_len)
{
    static const struct {
        str scheme;
        uint16_t port;
    } schemes[] = {{STR("http://"), 80}, {STR("https://"), 443}};

    size_t i = 0;
    while (i < COUNT(schemes) && !str_starts(text, schemes[i].scheme)) i++;
    if (i == COUNT(schemes)) return "does not begin with http:// or https://";

    str rest = str_drop(text, schemes[i].scheme.len);
    size_t len = 0;
    while (len < rest.len && !memchr("/?#", rest.p[len], 3)) len++;
    str authority = {rest.p, len};
    if (str_find_char(authority, '@') >= 0) return "has a user name in it";

    struct host_port address;
    const char *refused = host_port_parse(authority, &address);
    if (refused) return refused;
    if (!lower(authority)) return "has upper-case letters in its host";
    if (address.has_port && address.port == 0) return "has port 0";
    if (address.has_port && address.port == schemes[i].port)
        return "names the default port, which browsers leave out";
    *ret_len = schemes[i].scheme.len + len;
    return NULL;
}

/* Segments of unreserved characters: nothing that a proxy, a router or HTML would read twice. */
static const char *prefix_check(str prefix)
{
    if (prefix.len == 0) return NULL;
    str rest = str_drop(prefix, 1);
    while (rest.p) {
        str segment = str_split(&rest, '/');
        if (segment.len == 0) return "has an empty path segment";
        if (str_eq(segment, STR(".")) || str_eq(segment, STR(".."))) return "has dots as a path";
        for (size_t i = 0; i < segment.len; i++)
            if (!alnum(segment.p[i]) && !memchr("-._~", segment.p[i], 4))
                return "has a path with other characters than letters, digits and - . _ ~";
    }
    return NULL;
}

const char *url_parse(str text, struct url *ret_url)
{
    size_t origin_len;
    const char *refused = origin_parse(text, &origin_len);
    if (refused) return refused;
    if (str_find_char(text, '?') >= 0) return "has a query";
    if (str_find_char(text, '#') >= 0) return "has a fragment";
    if (str_ends(text, STR("/"))) text.len--;
    str prefix = str_drop(text, origin_len);
    refused = prefix_check(prefix);
    if (refused) return refused;
    *ret_url = (struct url){.text = text, .origin = {text.p, origin_len}, .prefix = prefix};
    return NULL;
}

const char *origin_check(str text)
{
    size_t len;
    const char *refused = origin_parse(text, &len);
    if (refused) return refused;
    return len == text.len ? NULL : "goes on behind the host";
}

static const unsigned char mapped_prefix[12] = {[10] = 0xFF, [11] = 0xFF};

/* Into 16 bytes. *ret_before is how many bits stand before those a person writes. */
static bool address_bytes(str text, unsigned char out[static 16], unsigned *ret_before)
{
    unsigned char bytes[16];
    memcpy(bytes, mapped_prefix, sizeof mapped_prefix);
    bool v4 = address_parse(AF_INET, text, bytes + sizeof mapped_prefix);
    if (!v4 && !address_parse(AF_INET6, text, bytes)) return false;
    memcpy(out, bytes, sizeof bytes);
    *ret_before = v4 ? 8 * sizeof mapped_prefix : 0;
    return true;
}

static bool bit(const unsigned char bytes[static 16], unsigned at)
{
    return bytes[at / 8] >> (7 - at % 8) & 1;
}

const char *cidr_parse(str text, struct cidr *ret_cidr)
{
    struct cidr range = {.bits = 128};
    str rest = text;
    str address = str_split(&rest, '/');
    unsigned before;
    if (!address_bytes(address, range.bytes, &before)) return "is no address";
    if (rest.p) {
        uint64_t bits;
        if (rest.len > 3 || str_to_u64(rest, &bits) || bits > 128 - before)
            return before ? "has no number from 0 to 32 behind the slash"
                          : "has no number from 0 to 128 behind the slash";
        range.bits = before + (unsigned)bits;
    }
    for (unsigned i = range.bits; i < 128; i++)
        if (bit(range.bytes, i)) return "is an address inside that range, not its first one";
    *ret_cidr = range;
    return NULL;
}

bool cidr_contains(const struct cidr *range, str address)
{
    unsigned char bytes[16];
    unsigned before;
    if (!address_bytes(address, bytes, &before)) return false;
    for (unsigned i = 0; i < range->bits; i++)
        if (bit(bytes, i) != bit(range->bytes, i)) return false;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Host, Origin and forwarding headers, judged.
 *
 * A browser can be made to send requests anywhere, but it does not let a page choose Host or
 * Origin. So a foreign Host means a name that was made to point here, and a foreign Origin a page
 * of somebody else. Clients that are no browsers send no Origin and are judged by their key.
 */
#include "http/guard.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/say.h"

static bool is_ip(str host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    if (host.len >= sizeof text) return false;
    str_note(text, sizeof text, host);
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

bool guard_loopback(str host)
{
    return str_eq_nocase(host, STR("localhost")) || str_eq(host, STR("::1")) ||
           (str_starts(host, STR("127.")) && is_ip(host));
}

enum err guard_refuse_open(const struct config *config, struct fault *reterr)
{
    return fault(
        reterr, ERR_CONFIG,
        "refusing to listen on %.*s without a key: everybody who can reach it would be the owner. "
        "Make a key with `fermata key add --user NAME` or set FERMATA_API_KEY, or listen on "
        "127.0.0.1",
        STR_ARG(config->listen.host));
}

/* Does an entry of auth.hosts ("example.org" for every port, "example.org:8443" for one) cover
 * this? */
static bool entry_covers(str entry, const struct host_port *asked)
{
    struct host_port known;
    if (host_port_parse(entry, &known)) return false;
    return str_eq_nocase(known.host, asked->host) &&
           (!known.has_port || (asked->has_port && known.port == asked->port));
}

/* "example.org:8443" of "https://example.org:8443". */
static str origin_authority(str origin)
{
    ptrdiff_t at = str_find(origin, STR("://"));
    return at < 0 ? STR_EMPTY : str_drop(origin, (size_t)at + 3);
}

enum err guard_host(const struct config *config, str host, struct fault *reterr)
{
    struct host_port asked;
    if (host.len == 0) return OK; /* HTTP/1.0, which no browser speaks */
    const char *bad = host_port_parse(host, &asked);
    if (bad) return fault(reterr, ERR_BAD_REQUEST, "Host \"%s\" %s", say(host).text, bad);

    bool local = guard_loopback(config->listen.host);
    if (guard_loopback(asked.host) || str_eq_nocase(asked.host, config->listen.host)) return OK;
    if (!local && is_ip(asked.host)) return OK;
    if (entry_covers(origin_authority(config->public_url.origin), &asked)) return OK;
    for (size_t i = 0; i < config->auth_hosts.count; i++)
        if (entry_covers(config->auth_hosts.items[i], &asked)) return OK;
    return fault(
        reterr, ERR_FORBIDDEN_HOST,
        "this server does not answer to \"%s\"; add the name to auth.hosts, or set public_url",
        say(host).text);
}

bool guard_trusted(const struct config *config, str address)
{
    for (size_t i = 0; i < config->trusted_proxies.count; i++)
        if (cidr_contains(&config->trusted_proxies.items[i], address)) return true;
    return false;
}

/* How the browser speaks to us, where that is known: a trusted proxy says so; without any proxy it is
 * what we speak. Empty: some proxy stands between, and nobody told us what it does. */
static str known_scheme(const struct config *config, const struct http_head *head, str peer)
{
    if (guard_trusted(config, peer)) {
        str proto = http_head_get(head, STR("X-Forwarded-Proto"));
        if (proto.len) return proto;
    }
    return guard_forwarded(head) ? STR_EMPTY : STR("http");
}

/* The page's origin is where the browser thinks we are. The public URL is known whole. Under any
 * other name the authority is that of Host, and the scheme the one by which we are spoken to; a
 * proxy that says nothing of itself may stand before us, so a browser's own word that the page is
 * ours counts for another scheme, too. */
static bool same_origin(const struct config *config, const struct http_head *head, str peer,
                        str origin)
{
    str ours = config->public_url.origin, authority = origin_authority(origin);
    if (ours.len && str_eq_nocase(authority, origin_authority(ours))) return str_eq(origin, ours);
    if (!authority.len || !str_eq_nocase(authority, head->host)) return false;

    str site = http_head_get(head, STR("Sec-Fetch-Site"));
    bool vouched = str_eq(site, STR("same-origin"));
    bool denied = site.len && !vouched && !str_eq(site, STR("none")) &&
                  !str_eq(http_head_get(head, STR("Sec-Fetch-Mode")), STR("websocket"));
    if (denied) return false; /* browsers do not agree on what ws: is, so a socket is not asked */
    str scheme = known_scheme(config, head, peer);
    str said = {origin.p, origin.len - authority.len - STR("://").len};
    if (!scheme.len || str_eq_nocase(said, scheme)) return true;
    return vouched && !guard_trusted(config, peer);
}

static bool listed(const struct strs *list, str item)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i], item)) return true;
    return false;
}

str guard_cors(const struct config *config, const struct http_head *head)
{
    str origin = http_head_get(head, STR("Origin"));
    return origin.len && listed(&config->auth_cors, origin) ? origin : STR_EMPTY;
}

enum err guard_page(const struct config *config, const struct http_head *head, str peer,
                    struct fault *reterr)
{
    str origin = http_head_get(head, STR("Origin"));
    if (origin.len == 0) {
        str site = http_head_get(head, STR("Sec-Fetch-Site"));
        if (site.len == 0 || str_eq(site, STR("same-origin")) || str_eq(site, STR("none")))
            return OK;
        return fault(reterr, ERR_FORBIDDEN, "a page of another site may not do this");
    }
    if (same_origin(config, head, peer, origin) || listed(&config->auth_cors, origin)) return OK;
    return fault(reterr, ERR_FORBIDDEN,
                 "origin \"%s\" may not do this; add it to auth.cors to allow it",
                 say(origin).text);
}

enum err guard_origin(const struct config *config, const struct http_head *head, str peer,
                      struct fault *reterr)
{
    enum http_method method = head->method;
    bool reads = method == HTTP_GET || method == HTTP_HEAD || method == HTTP_OPTIONS;
    return reads ? OK : guard_page(config, head, peer, reterr);
}

/* Fields that no browser and no program sends by itself, only what stands between: the standard's
 * two, and those of common proxies and networks. All others of X-Forwarded-, too. */
bool guard_forwarded(const struct http_head *head)
{
    static const str names[] = {
        STR("Forwarded"),       STR("Via"),
        STR("X-Real-IP"),       STR("X-Client-IP"),
        STR("X-Original-Host"), STR("X-Original-Forwarded-For"),
        STR("CDN-Loop"),        STR("X-Cluster-Client-IP"),
        STR("CF-Ray"),          STR("CF-Connecting-IP"),
        STR("True-Client-IP"),  STR("Fastly-Client-IP"),
        STR("Fly-Client-IP"),   STR("X-Azure-ClientIP"),
        STR("X-Amz-Cf-Id"),     STR("X-Envoy-External-Address"),
        STR("X-ProxyUser-Ip"),  STR("Tailscale-User-Login"),
    };
    static const str family = STR("X-Forwarded-");
    for (size_t i = 0; i < head->field_count; i++) {
        str name = head->fields[i].name;
        if (name.len > family.len && str_eq_nocase((str){name.p, family.len}, family)) return true;
        for (size_t n = 0; n < COUNT(names); n++)
            if (str_eq_nocase(name, names[n])) return true;
    }
    return false;
}

/* One X-Forwarded-For line from right to left: each proxy appends whom it heard, so the first that
 * we do not trust is the client. False: the walk ends here. */
static bool walk_hops(const struct config *config, str rest, str *client)
{
    while (rest.len) {
        size_t start = rest.len;
        while (start && rest.p[start - 1] != ',') start--;
        str last = str_trim(str_drop(rest, start));
        if (!is_ip(last)) return false;
        *client = last;
        if (!guard_trusted(config, last)) return false;
        rest.len = start ? start - 1 : 0;
    }
    return true;
}

/* Some proxies add a line instead of appending to the one they got, so the last line is walked
 * first; what the client wrote itself comes at the very end. */
str guard_client(const struct config *config, const struct http_head *head, str peer)
{
    if (!guard_trusted(config, peer)) return peer;
    str client = peer;
    for (size_t i = head->field_count; i-- > 0;) {
        const struct http_field *field = &head->fields[i];
        if (!str_eq_nocase(field->name, STR("X-Forwarded-For"))) continue;
        if (!walk_hops(config, field->value, &client)) break;
    }
    return client;
}

bool guard_https(const struct config *config, const struct http_head *head, str peer)
{
    if (str_starts(config->public_url.origin, STR("https:"))) return true;
    return guard_trusted(config, peer) &&
           str_eq_nocase(http_head_get(head, STR("X-Forwarded-Proto")), STR("https"));
}

str guard_path(const struct config *config, str path)
{
    str prefix = config->public_url.prefix;
    if (prefix.len == 0 || !str_starts(path, prefix)) return path;
    str rest = str_drop(path, prefix.len);
    if (rest.len == 0) return STR("/");
    return rest.p[0] == '/' ? rest : path;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of what a request may say about where it comes from. A row sets the configuration with the
 * words an operator would write; lists are separated by commas, and NULL means not set.
 */
#include "http/guard.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

enum { ITEMS_MAX = 8 };

/* A configuration and the memory its lists need. */
struct setting {
    struct config config;
    str hosts[ITEMS_MAX], cors[ITEMS_MAX];
    struct cidr proxies[ITEMS_MAX];
};

static struct strs split(const char *text, str items[static ITEMS_MAX])
{
    struct strs list = {.items = items};
    for (str rest = str_c(text); text && rest.p;) {
        assert_true(list.count < ITEMS_MAX);
        items[list.count++] = str_split(&rest, ',');
    }
    return list;
}

static void set_listen(struct setting *s, const char *listen)
{
    assert_null(host_port_parse(str_c(listen), &s->config.listen));
}

static void set_public_url(struct setting *s, const char *url)
{
    if (url) assert_null(url_parse(str_c(url), &s->config.public_url));
}

static void set_proxies(struct setting *s, const char *ranges)
{
    str items[ITEMS_MAX];
    struct strs list = split(ranges, items);
    for (size_t i = 0; i < list.count; i++) assert_null(cidr_parse(list.items[i], &s->proxies[i]));
    s->config.trusted_proxies = (struct cidrs){s->proxies, list.count};
}

static void explain(const char *what, const char *text)
{
    print_message("[  ROW     ] %s: %s\n", what, text ? text : "-");
}

/* Compare, and say which row it was when they differ. */
#define assert_row(actual, expected, what, text)             \
    do {                                                     \
        int actual_ = (int)(actual);                         \
        if (actual_ != (int)(expected)) explain(what, text); \
        assert_int_equal(actual_, (int)(expected));          \
    } while (0)

/* ---- addresses listened on ---- */

static void loopback(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool want;
    } rows[] = {
        {"127.0.0.1", true},
        {"127.0.0.2", true},
        {"127.255.255.255", true},
        {"::1", true},
        {"localhost", true},
        {"LocalHost", true},
        {"0.0.0.0", false},
        {"::", false},
        {"10.0.0.1", false},
        {"127.0.0.1.evil", false},
        {"127.evil", false},
        {"localhost.evil", false},
        {"128.0.0.1", false},
        {"::2", false},
        {"", false},
        {"127.0.0.0.0.0.1", false},
        {"xlocalhost", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_row(guard_loopback(str_c(rows[i].host)), rows[i].want, "host", rows[i].host);
}

static void refusal_says_what_to_do(void **state)
{
    (void)state;
    struct setting s = {0};
    struct fault why = {0};
    set_listen(&s, "0.0.0.0:8080");
    assert_int_equal(guard_refuse_open(&s.config, &why), ERR_CONFIG);
    static const char *const words[] = {"0.0.0.0", "fermata key add", "FERMATA_API_KEY",
                                        "127.0.0.1"};
    for (size_t i = 0; i < COUNT(words); i++) assert_non_null(strstr(why.text, words[i]));
}

/* ---- Host ---- */

struct host_case {
    const char *listen, *public_url, *hosts, *host;
    enum err want;
};

#define LOCAL "127.0.0.1:8080"
#define OPEN  "0.0.0.0:8080"

static const struct host_case host_cases[] = {
    /* Names of this machine, with any port and in any case. */
    {LOCAL, NULL, NULL, "localhost", OK},
    {LOCAL, NULL, NULL, "LOCALHOST:8080", OK},
    {LOCAL, NULL, NULL, "127.0.0.1:8080", OK},
    {LOCAL, NULL, NULL, "127.0.0.1:1", OK},
    {LOCAL, NULL, NULL, "127.9.9.9", OK},
    {LOCAL, NULL, NULL, "[::1]:8080", OK},
    {LOCAL, NULL, NULL, "[::1]", OK},
    {LOCAL, NULL, NULL, "", OK}, /* HTTP/1.0 */

    /* A name that somebody made to point here. */
    {LOCAL, NULL, NULL, "evil.example", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "evil.example:8080", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "localhost.evil.example", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "127.0.0.1.evil.example", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "xlocalhost", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "10.0.0.1:8080", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "0.0.0.0", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, NULL, "[fd00::1]:8080", ERR_FORBIDDEN_HOST},

    /* No host at all. */
    {LOCAL, NULL, NULL, "::1", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "[::1", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "[::1]x", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "localhost:", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "localhost:65536", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "localhost:80:80", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "user@localhost", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "127.1", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "2130706433", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "a..b", ERR_BAD_REQUEST},
    {LOCAL, NULL, NULL, "localhost.", ERR_BAD_REQUEST},

    /* Beyond loopback an address in digits is nobody's name; names still have to be told. */
    {OPEN, NULL, NULL, "192.168.1.7:8080", OK},
    {OPEN, NULL, NULL, "[fd00::1]:8080", OK},
    {OPEN, NULL, NULL, "localhost:8080", OK},
    {OPEN, NULL, NULL, "evil.example", ERR_FORBIDDEN_HOST},
    {"[::]:8080", NULL, NULL, "10.1.2.3", OK},
    {"10.0.0.5:80", NULL, NULL, "10.0.0.5", OK},
    {"box.lan:80", NULL, NULL, "BOX.lan:80", OK},
    {"box.lan:80", NULL, NULL, "box.lan.evil", ERR_FORBIDDEN_HOST},

    /* The public URL's name: of every port, or of the one it has. */
    {LOCAL, "https://app.example.org", NULL, "app.example.org", OK},
    {LOCAL, "https://app.example.org", NULL, "App.Example.Org", OK},
    {LOCAL, "https://app.example.org", NULL, "app.example.org:443", OK},
    {LOCAL, "https://app.example.org/fermata", NULL, "app.example.org", OK},
    {LOCAL, "https://app.example.org", NULL, "evil.app.example.org", ERR_FORBIDDEN_HOST},
    {LOCAL, "https://app.example.org", NULL, "app.example.org.evil", ERR_FORBIDDEN_HOST},
    {LOCAL, "https://app.example.org", NULL, "example.org", ERR_FORBIDDEN_HOST},
    {LOCAL, "https://app.example.org:8443", NULL, "app.example.org:8443", OK},
    {LOCAL, "https://app.example.org:8443", NULL, "app.example.org:8444", ERR_FORBIDDEN_HOST},
    {LOCAL, "https://app.example.org:8443", NULL, "app.example.org", ERR_FORBIDDEN_HOST},
    {LOCAL, "http://[fd00::1]:8080", NULL, "[fd00::1]:8080", OK},
    {LOCAL, "http://[fd00::1]:8080", NULL, "[fd00::2]:8080", ERR_FORBIDDEN_HOST},

    /* auth.hosts. */
    {LOCAL, NULL, "one.example,two.example:8443", "one.example", OK},
    {LOCAL, NULL, "one.example,two.example:8443", "one.example:9999", OK},
    {LOCAL, NULL, "one.example,two.example:8443", "TWO.example:8443", OK},
    {LOCAL, NULL, "one.example,two.example:8443", "two.example", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, "one.example,two.example:8443", "two.example:8444", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, "one.example,two.example:8443", "three.example", ERR_FORBIDDEN_HOST},
    {LOCAL, NULL, "[fd00::1]", "[fd00::1]:8080", OK},
};

static void hosts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(host_cases); i++) {
        const struct host_case *row = &host_cases[i];
        struct setting s = {0};
        struct fault why = {0};
        set_listen(&s, row->listen);
        set_public_url(&s, row->public_url);
        s.config.auth_hosts = split(row->hosts, s.hosts);
        assert_row(guard_host(&s.config, str_c(row->host), &why), row->want, "Host", row->host);
    }
}

/* What a client sent never reaches the answer's text with control bytes in it. */
static void refused_host_is_quoted_safely(void **state)
{
    (void)state;
    struct setting s = {0};
    struct fault why = {0};
    set_listen(&s, LOCAL);
    assert_int_equal(guard_host(&s.config, STR("a\x1b[31m\r\nb"), &why), ERR_BAD_REQUEST);
    for (const char *p = why.text; *p; p++) assert_true((unsigned char)*p >= 0x20);
}

/* ---- Origin ---- */

/* A head with these fields: "Name: value" separated by newlines. */
struct request {
    struct http_head head;
    struct http_field fields[ITEMS_MAX];
};

static void request_set(struct request *r, enum http_method method, const char *host,
                        const char *fields)
{
    *r = (struct request){.head = {.method = method, .host = str_c(host)}};
    for (str rest = str_c(fields); fields && rest.p;) {
        str value = str_split(&rest, '\n');
        str name = str_split(&value, ':');
        assert_true(r->head.field_count < ITEMS_MAX);
        r->fields[r->head.field_count++] = (struct http_field){name, str_trim(value)};
    }
    r->head.fields = r->fields;
}

struct origin_case {
    const char *public_url, *cors, *host, *fields;
    enum err want;
};

#define HERE "localhost:8080"
#define PEER STR("127.0.0.1")
#define APP  "https://app.example.org"

static const struct origin_case origin_cases[] = {
    /* Not a browser. */
    {NULL, NULL, HERE, NULL, OK},
    {NULL, NULL, HERE, "User-Agent: curl", OK},

    /* Our own page. */
    {NULL, NULL, HERE, "Origin: http://localhost:8080", OK},
    {NULL, NULL, HERE, "Origin: http://LOCALHOST:8080", OK},
    {NULL, NULL, "[::1]:8080", "Origin: http://[::1]:8080", OK},
    {NULL, NULL, HERE, "Origin: http://localhost:8080\nSec-Fetch-Site: same-origin", OK},

    /* Other pages, and what looks like us but is not. */
    {NULL, NULL, HERE, "Origin: http://evil.example", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://localhost", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://localhost:8081", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://localhost:80801", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://localhost:8080.evil.example", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://evil.example/localhost:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://evil@localhost:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://127.0.0.1:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: null", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: localhost:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: http://", ERR_FORBIDDEN},
    {NULL, NULL, "", "Origin: http://", ERR_FORBIDDEN},

    /* The right name under another scheme: somebody else's page, unless the browser says that it is
     * ours, as it does behind a proxy that says nothing of itself. */
    {NULL, NULL, HERE, "Origin: https://localhost:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nSec-Fetch-Site: cross-site", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nSec-Fetch-Site: same-site", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nSec-Fetch-Site: none", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nSec-Fetch-Site: same-origin", OK},
    {NULL, NULL, HERE, "Origin: http://localhost:8080\nSec-Fetch-Site: cross-site", ERR_FORBIDDEN},
    {NULL, NULL, HERE,
     "Origin: http://localhost:8080\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: websocket", OK},
    {NULL, NULL, HERE,
     "Origin: https://localhost:8080\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: websocket",
     ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: ftp://localhost:8080", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nX-Forwarded-Proto: https", OK},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nVia: 1.1 proxy", OK},
    {NULL, NULL, HERE, "Origin: https://localhost:8080\nVia: 1.1 proxy\nSec-Fetch-Site: cross-site",
     ERR_FORBIDDEN},

    /* No Origin, but the browser says whose page it is. */
    {NULL, NULL, HERE, "Sec-Fetch-Site: same-origin", OK},
    {NULL, NULL, HERE, "Sec-Fetch-Site: none", OK},
    {NULL, NULL, HERE, "Sec-Fetch-Site: same-site", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Sec-Fetch-Site: cross-site", ERR_FORBIDDEN},
    {NULL, NULL, HERE, "Sec-Fetch-Site: else", ERR_FORBIDDEN},

    /* The public URL, behind a proxy that passes another Host; the same name under another scheme
     * is not that page. */
    {APP, NULL, "127.0.0.1:8080", "Origin: https://app.example.org", OK},
    {APP, NULL, "app.example.org", "Origin: https://app.example.org", OK},
    {APP "/fermata", NULL, "app.example.org", "Origin: https://app.example.org", OK},
    {APP, NULL, "app.example.org", "Origin: http://app.example.org", ERR_FORBIDDEN},
    {APP, NULL, "app.example.org", "Origin: https://app.example.org.evil", ERR_FORBIDDEN},
    {APP, NULL, "app.example.org", "Origin: https://evil-app.example.org", ERR_FORBIDDEN},
    {APP, NULL, HERE, "Origin: http://localhost:8080", OK},

    /* auth.cors, letter by letter. */
    {NULL, APP ",http://other.example:3000", HERE, "Origin: https://app.example.org", OK},
    {NULL, APP ",http://other.example:3000", HERE, "Origin: http://other.example:3000", OK},
    {NULL, APP, HERE, "Origin: http://app.example.org", ERR_FORBIDDEN},
    {NULL, APP, HERE, "Origin: https://app.example.org:444", ERR_FORBIDDEN},
    {NULL, APP, HERE, "Origin: https://app.example.org.evil", ERR_FORBIDDEN},
    {NULL, APP, HERE, "Origin: https://sub.app.example.org", ERR_FORBIDDEN},
    {NULL, APP, HERE, "Origin: null", ERR_FORBIDDEN},
    {NULL, APP, HERE, "Origin: *", ERR_FORBIDDEN},
};

static void origins(void **state)
{
    (void)state;
    static const enum http_method changing[] = {HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE};
    static const enum http_method reading[] = {HTTP_GET, HTTP_HEAD, HTTP_OPTIONS};
    for (size_t i = 0; i < COUNT(origin_cases); i++) {
        const struct origin_case *row = &origin_cases[i];
        struct setting s = {0};
        struct request r;
        set_listen(&s, LOCAL);
        set_public_url(&s, row->public_url);
        s.config.auth_cors = split(row->cors, s.cors);
        for (size_t m = 0; m < COUNT(changing); m++) {
            struct fault why = {0};
            request_set(&r, changing[m], row->host, row->fields);
            assert_row(guard_origin(&s.config, &r.head, PEER, &why), row->want, "fields",
                       row->fields);
        }
        for (size_t m = 0; m < COUNT(reading); m++) {
            struct fault why = {0};
            request_set(&r, reading[m], row->host, row->fields);
            assert_row(guard_origin(&s.config, &r.head, PEER, &why), OK, "fields", row->fields);
            assert_row(guard_page(&s.config, &r.head, PEER, &why), row->want, "fields",
                       row->fields);
        }
    }
}

/* A trusted proxy says how the browser speaks to it, and no browser's word counts against that. */
static void origins_behind_a_trusted_proxy(void **state)
{
    (void)state;
    static const struct {
        const char *peer, *fields;
        enum err want;
    } rows[] = {
        {"10.0.0.1", "X-Forwarded-Proto: https\nOrigin: https://localhost:8080", OK},
        {"10.0.0.1", "X-Forwarded-Proto: HTTPS\nOrigin: https://localhost:8080", OK},
        {"10.0.0.1", "X-Forwarded-Proto: https\nOrigin: http://localhost:8080", ERR_FORBIDDEN},
        {"10.0.0.1",
         "X-Forwarded-Proto: https\nOrigin: http://localhost:8080\nSec-Fetch-Site: same-origin",
         ERR_FORBIDDEN},
        {"10.0.0.1", "X-Forwarded-Proto: http\nOrigin: http://localhost:8080", OK},
        {"10.0.0.1", "X-Forwarded-Proto: http\nOrigin: https://localhost:8080", ERR_FORBIDDEN},
        {"10.0.0.1", "X-Forwarded-For: 1.2.3.4\nOrigin: https://localhost:8080", OK},
        {"10.0.0.1", "X-Forwarded-For: 1.2.3.4\nOrigin: http://localhost:8080", OK},
        /* Nobody believes this one. */
        {"11.0.0.1", "X-Forwarded-Proto: https\nOrigin: http://localhost:8080", OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct setting s = {0};
        struct request r;
        struct fault why = {0};
        set_listen(&s, LOCAL);
        set_proxies(&s, "10.0.0.0/8");
        request_set(&r, HTTP_POST, HERE, rows[i].fields);
        assert_row(guard_origin(&s.config, &r.head, str_c(rows[i].peer), &why), rows[i].want,
                   rows[i].peer, rows[i].fields);
    }
}

static void cors_gives_only_what_is_listed(void **state)
{
    (void)state;
    static const struct {
        const char *cors, *fields, *want;
    } rows[] = {
        {NULL, "Origin: https://app.example.org", ""},
        {APP, NULL, ""},
        {APP, "Origin: https://app.example.org", "https://app.example.org"},
        {APP, "Origin: https://evil.example", ""},
        {APP, "Origin: HTTPS://APP.EXAMPLE.ORG", ""},
        {APP, "Origin: null", ""},
        {APP, "Origin: *", ""},
        {APP, "Origin:", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct setting s = {0};
        struct request r;
        s.config.auth_cors = split(rows[i].cors, s.cors);
        request_set(&r, HTTP_GET, HERE, rows[i].fields);
        assert_str(guard_cors(&s.config, &r.head), str_c(rows[i].want));
    }
}

/* ---- proxies ---- */

static void forwarded(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        bool want;
    } rows[] = {
        {NULL, false},
        {"User-Agent: curl\nAccept: */*\nOrigin: http://a\nSec-Fetch-Site: none", false},
        {"X-Forwarded-: a", false},
        {"X-Request-Id: 1\nViable: 1\nX-Forward: a", false},
        {"Via: 1.1 proxy", true},
        {"via: 1.1 proxy", true},
        {"CF-Connecting-IP: 1.2.3.4", true},
        {"CF-Ray: 8f", true},
        {"CDN-Loop: cloudflare", true},
        {"True-Client-IP: 1.2.3.4", true},
        {"X-Client-IP: 1.2.3.4", true},
        {"Fly-Client-IP: 1.2.3.4", true},
        {"X-Envoy-External-Address: 1.2.3.4", true},
        {"X-Forwarded-Port: 443", true},
        {"X-Forwarded-Server: a", true},
        {"X-Forwarded-Prefix: /a", true},
        {"Forwarded: for=1.2.3.4", true},
        {"X-Forwarded-For: 1.2.3.4", true},
        {"x-forwarded-for: 1.2.3.4", true},
        {"X-Forwarded-Host: a", true},
        {"X-Forwarded-Proto: https", true},
        {"X-Real-IP: 1.2.3.4", true},
        {"X-Forwarded-For:", true}, /* there, if empty */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct request r;
        request_set(&r, HTTP_GET, HERE, rows[i].fields);
        assert_row(guard_forwarded(&r.head), rows[i].want, "fields", rows[i].fields);
    }
}

struct client_case {
    const char *proxies, *peer, *fields, *want;
};

#define XFF "X-Forwarded-For: "

static const struct client_case client_cases[] = {
    /* Nobody is trusted, or this one is not. */
    {NULL, "10.0.0.1", XFF "1.2.3.4", "10.0.0.1"},
    {"10.0.0.0/8", "11.0.0.1", XFF "1.2.3.4", "11.0.0.1"},

    {"10.0.0.0/8", "10.0.0.1", NULL, "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF, "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "2001:db8::7", "2001:db8::7"},
    {"fd00::/8", "fd00::1", XFF "1.2.3.4", "1.2.3.4"},

    /* A chain of proxies; what the client itself wrote stands on the left and is not believed. */
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4, 10.0.0.2", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "127.0.0.1, 1.2.3.4, 10.0.0.2", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "10.9.9.9, 1.2.3.4", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "9.9.9.9,8.8.8.8,1.2.3.4", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "10.0.0.3, 10.0.0.2", "10.0.0.3"}, /* all are ours */

    /* A proxy that adds a line of its own instead of lengthening the one it got. */
    {"10.0.0.0/8", "10.0.0.1", XFF "9.9.9.9\n" XFF "1.2.3.4", "1.2.3.4"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4\n" XFF "10.0.0.2", "1.2.3.4"},

    /* Garbage ends the walk at the last address that was one. */
    {"10.0.0.0/8", "10.0.0.1", XFF "unknown", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4, unknown", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4, , 10.0.0.2", "10.0.0.2"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4,", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF ",", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3.4:5678", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1", XFF "1.2.3", "10.0.0.1"},
    {"10.0.0.0/8", "10.0.0.1",
     XFF "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", "10.0.0.1"},
};

static void clients(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(client_cases); i++) {
        const struct client_case *row = &client_cases[i];
        struct setting s = {0};
        struct request r;
        set_proxies(&s, row->proxies);
        request_set(&r, HTTP_GET, HERE, row->fields);
        str got = guard_client(&s.config, &r.head, str_c(row->peer));
        if (!str_eq(got, str_c(row->want))) explain(row->peer, row->fields);
        assert_str(got, str_c(row->want));
    }
}

static void https(void **state)
{
    (void)state;
    static const struct {
        const char *public_url, *proxies, *peer, *fields;
        bool want;
    } rows[] = {
        {NULL, NULL, "127.0.0.1", NULL, false},
        {APP, NULL, "127.0.0.1", NULL, true},
        {"http://app.example.org", NULL, "127.0.0.1", NULL, false},
        {NULL, "10.0.0.0/8", "10.0.0.1", "X-Forwarded-Proto: https", true},
        {NULL, "10.0.0.0/8", "10.0.0.1", "X-Forwarded-Proto: HTTPS", true},
        {NULL, "10.0.0.0/8", "10.0.0.1", "X-Forwarded-Proto: http", false},
        {NULL, "10.0.0.0/8", "10.0.0.1", "X-Forwarded-Proto: httpsx", false},
        {NULL, "10.0.0.0/8", "10.0.0.1", NULL, false},
        {NULL, "10.0.0.0/8", "11.0.0.1", "X-Forwarded-Proto: https", false},
        {NULL, NULL, "127.0.0.1", "X-Forwarded-Proto: https", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct setting s = {0};
        struct request r;
        set_public_url(&s, rows[i].public_url);
        set_proxies(&s, rows[i].proxies);
        request_set(&r, HTTP_GET, HERE, rows[i].fields);
        assert_row(guard_https(&s.config, &r.head, str_c(rows[i].peer)), rows[i].want, "fields",
                   rows[i].fields);
    }
}

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *public_url, *path, *want;
    } rows[] = {
        {NULL, "/healthz", "/healthz"},
        {APP, "/healthz", "/healthz"},
        {APP "/f", "/f/healthz", "/healthz"},
        {APP "/f", "/f/", "/"},
        {APP "/f", "/f", "/"},
        {APP "/f", "/healthz", "/healthz"}, /* the proxy took the prefix away */
        {APP "/f", "/fx/healthz", "/fx/healthz"},
        {APP "/f", "/F/healthz", "/F/healthz"},
        {APP "/f", "/f//healthz", "//healthz"},
        {APP "/f", "/f/f/healthz", "/f/healthz"},
        {APP "/a/b", "/a/b/c", "/c"},
        {APP "/a/b", "/a/c", "/a/c"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct setting s = {0};
        set_public_url(&s, rows[i].public_url);
        assert_str(guard_path(&s.config, str_c(rows[i].path)), str_c(rows[i].want));
    }
}

int test_guard(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback),
        cmocka_unit_test(refusal_says_what_to_do),
        cmocka_unit_test(hosts),
        cmocka_unit_test(refused_host_is_quoted_safely),
        cmocka_unit_test(origins),
        cmocka_unit_test(origins_behind_a_trusted_proxy),
        cmocka_unit_test(cors_gives_only_what_is_listed),
        cmocka_unit_test(forwarded),
        cmocka_unit_test(clients),
        cmocka_unit_test(https),
        cmocka_unit_test(paths),
    };
    return cmocka_run_group_tests_name("app/guard", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a text in the configuration: keys, patterns, URLs to call, names of tools, templates,
 * headers, variables. Pure.
 */
#include <string.h>

#include "base/limits.h"
#include "base/say.h"
#include "config/option.h"
#include "tool/tools.h"

static bool letter_or_digit(char c)
{
    c = char_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

const char *option_secret_check(str key)
{
    if (key.len == 0) return "is empty";
    if (key.len > CONFIG_SECRET_BYTES_MAX) return "is longer than 256 bytes";
    for (size_t i = 0; i < key.len; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return "has spaces or characters that do not fit in a header";
    return NULL;
}

const char *option_pattern_check(str pattern)
{
    if (pattern.len == 0) return "is empty";
    if (str_ends(pattern, STR("*"))) pattern.len--;
    if (pattern.len > TOOL_NAME_BYTES_MAX) return "is longer than 64 bytes";
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.p[i] == '*') return "has a * that is not at its end";
        if (!letter_or_digit(pattern.p[i]) && !memchr("_.-", pattern.p[i], 3))
            return "has characters other than letters, digits, _ . and -";
    }
    return NULL;
}

/* http or https, a host, an optional port, path and query. */
const char *option_address_check(str text)
{
    static const str schemes[] = {STR("http://"), STR("https://")};
    size_t i = 0;
    while (i < COUNT(schemes) && !str_starts(text, schemes[i])) i++;
    if (i == COUNT(schemes)) return "does not begin with http:// or https://";
    for (size_t k = 0; k < text.len; k++)
        if (text.p[k] <= ' ' || text.p[k] > '~') return "has characters that must be escaped";
    if (str_find_char(text, '#') >= 0) return "has a fragment";
    str authority = str_drop(text, schemes[i].len);
    size_t len = 0;
    while (len < authority.len && !memchr("/?", authority.p[len], 2)) len++;
    authority.len = len;
    if (str_find_char(authority, '@') >= 0)
        return "has a user name in it, which logs would show; use a header";
    struct host_port address;
    const char *refused = host_port_parse(authority, &address);
    if (refused) return refused;
    return address.has_port && address.port == 0 ? "has port 0" : NULL;
}

const char *option_endpoint_check(str text)
{
    const char *refused = option_address_check(text);
    return !refused && str_find_char(text, '?') >= 0 ? "has a query" : refused;
}

/* What the graph handles itself, and what comes with us. */
bool option_tool_taken(str name)
{
    static const char *const taken[] = {
        "ask_user",      "submit_plan",     "show_card",      "calendar",     "calendar_write",
        "calendar_read", "calendar_delete", "calendar_share", "user_resolve",
    };
    for (size_t i = 0; i < COUNT(taken); i++)
        if (str_eq(str_c(taken[i]), name)) return true;
    return false;
}

const char *option_tool_check(str name)
{
    if (option_tool_taken(name)) return "is the name of a built-in tool";
    return tool_name_valid(name) ? NULL : "is no name for a tool";
}

/* Every { begins the name of a placeholder, and } ends it. */
const char *option_template_check(str text)
{
    if (str_trim(text).len == 0) return "is empty";
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '}') return "has a } that ends no placeholder";
        if (text.p[i] != '{') continue;
        size_t begin = ++i;
        while (i < text.len && !memchr("{} ", text.p[i], 3)) i++;
        if (i == begin || i == text.len || text.p[i] != '}')
            return "has a { that begins no placeholder";
    }
    return NULL;
}

const char *option_header_check(str name)
{
    static const char *const ours[] = {"Content-Type",      "Content-Length", "Idempotency-Key",
                                       "Transfer-Encoding", "Connection",     "Expect"};
    if (name.len == 0) return "is no name of a header";
    if (name.len > CONFIG_HEADER_NAME_BYTES_MAX) return "is longer than 64 bytes";
    for (size_t i = 0; i < name.len; i++)
        if (!letter_or_digit(name.p[i]) && str_find_char(STR("!#$%&'*+-.^_`|~"), name.p[i]) < 0)
            return "is no name of a header";
    for (size_t i = 0; i < COUNT(ours); i++)
        if (str_eq_nocase(str_c(ours[i]), name)) return "is a header that Fermata sets itself";
    return NULL;
}

/* Visible ASCII with single spaces or tabs inside. */
const char *option_header_value_check(str value)
{
    if (value.len == 0) return "has no value";
    if (value.len > CONFIG_HEADER_BYTES_MAX) return "has a value longer than 8 KiB";
    if (str_trim(value).len != value.len) return "has a value with spaces around it";
    for (size_t i = 0; i < value.len; i++)
        if ((value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] > '~')
            return "has a value with characters that do not fit in a header";
    return NULL;
}

const char *option_variable_check(str name)
{
    if (name.len > CONFIG_ENV_NAME_BYTES_MAX) return "is longer than 128 bytes";
    bool fits = name.len && (name.p[0] < '0' || name.p[0] > '9');
    for (size_t i = 0; i < name.len; i++) fits &= letter_or_digit(name.p[i]) || name.p[i] == '_';
    return fits ? NULL : "is no name of a variable";
}

#include "base/mem.h"
/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of HTTP/1.1 requests, resumable and strict: RFC 9112, and RFC 9110 for the fields that
 * frame a message.
 *
 * A head is read twice. The scan looks at each byte once, as it comes, and refuses the first that
 * cannot stand where it stands; it knows where the head ends and nothing else. What it has passed
 * is kept in `line`. When the head is whole, the reading cuts those bytes, which are now known to
 * be well formed, and asks what they mean. So the scan needs no memory but a step and a count, and
 * the reading needs no states.
 *
 *    phase       steps                                                        then
 *    HEAD        START (CR) EMPTY_LF AGAIN METHOD sp TARGET sp VERSION        HTTP1_HEAD
 *                FIELD: NAME ':' VALUE cr VALUE_LF -> FIELD, or cr LAST_LF
 *    BODY        (no byte) refuses a length that is too large                 LENGTH, CHUNK or END
 *    LENGTH      counts `left` down                                           END
 *    CHUNK       SIZE [';' extensions, next_in_extension()] cr SIZE_LF        DATA, or TRAILER
 *    DATA        counts `left` down                                           DATA_END
 *    DATA_END    DATA_CR DATA_LF                                              CHUNK
 *    TRAILER     FIELD... as in a head; dropped                               END
 *    END, ERROR  take nothing
 *
 * 1. Every decision is a function of the bytes up to the one looked at, never of how they were cut:
 *    runs are scanned at once, but limits are compared as if each byte had come alone.
 * 2. Each phase that ends a request returns HTTP1_END itself; HTTP1_MORE with input left means that
 *    the next phase goes on.
 * 3. `left` never exceeds what `room` had: the body handed out is never larger than allowed.
 * 4. Memory is `line` and `head.fields`, both freed by http1_next.
 */
#include "net/http1.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "net/http1_int.h"

enum http1_phase {
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_LENGTH,
    PHASE_CHUNK,
    PHASE_DATA,
    PHASE_DATA_END,
    PHASE_TRAILER,
    PHASE_END,
    PHASE_ERROR,
};

enum http1_step {
    AT_START, /* up to AT_METHOD nothing of a request has come */
    AT_EMPTY_LF,
    AT_AGAIN,
    AT_METHOD,
    AT_TARGET,
    AT_VERSION,
    AT_FIELD,
    AT_NAME,
    AT_VALUE,
    AT_VALUE_LF,
    AT_LAST_LF,
    AT_DONE,

    AT_SIZE,
    AT_EXT,
    AT_EXT_NAME,
    AT_EXT_EQUALS,
    AT_EXT_TOKEN,
    AT_EXT_QUOTED,
    AT_EXT_ESCAPE,
    AT_EXT_CLOSED,
    AT_SIZE_LF,

    AT_DATA_CR,
    AT_DATA_LF,
    AT_NOWHERE, /* the byte does not fit */
};

/* ---- Classes of bytes ------------------------------------------------------------------------ */

enum {
    TOKEN = 1,     /* RFC 9110 5.6.2 */
    TARGET = 2,    /* what a URI may hold, and the '%' of escapes; not '#' */
    VALUE = 4,     /* field values: visible, space, tab, and 80-FF, which nobody interprets */
    QUOTED = 8,    /* inside a quoted string, without '"' and '\' */
    HOSTNAME = 16, /* RFC 3986 "unreserved": the other bytes of a reg-name are in no real name */
    TEXT = VALUE | QUOTED,
    WORD = TOKEN | TARGET | TEXT | HOSTNAME,
};

/* clang-format off */
static const unsigned char classes[256] = {
    ['\t'] = TEXT,                  [' ']  = TEXT,
    ['0' ... '9'] = WORD,           ['A' ... 'Z'] = WORD,           ['a' ... 'z'] = WORD,
    ['-']  = WORD,                  ['.']  = WORD,                  ['_']  = WORD,
    ['~']  = WORD,
    ['!']  = TOKEN | TARGET | TEXT, ['$']  = TOKEN | TARGET | TEXT, ['%']  = TOKEN | TARGET | TEXT,
    ['&']  = TOKEN | TARGET | TEXT, ['\''] = TOKEN | TARGET | TEXT, ['*']  = TOKEN | TARGET | TEXT,
    ['+']  = TOKEN | TARGET | TEXT,
    ['#']  = TOKEN | TEXT,          ['^']  = TOKEN | TEXT,          ['`']  = TOKEN | TEXT,
    ['|']  = TOKEN | TEXT,
    ['(']  = TARGET | TEXT,         [')']  = TARGET | TEXT,         [',']  = TARGET | TEXT,
    ['/']  = TARGET | TEXT,         [':']  = TARGET | TEXT,         [';']  = TARGET | TEXT,
    ['=']  = TARGET | TEXT,         ['?']  = TARGET | TEXT,         ['@']  = TARGET | TEXT,
    ['[']  = TARGET | TEXT,         [']']  = TARGET | TEXT,
    ['<']  = TEXT,                  ['>']  = TEXT,                  ['{']  = TEXT,
    ['}']  = TEXT,
    ['"']  = VALUE,                 ['\\'] = VALUE,
    [0x80 ... 0xFF] = TEXT,
};
/* clang-format on */

static bool is(char c, unsigned class)
{
    return classes[(unsigned char)c] & class;
}

static bool all(str s, unsigned class)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is(s.p[i], class)) return false;
    return true;
}

/* ---- Helpers of all phases ------------------------------------------------------------------- */

static enum err http1_refuse(struct http1 *p, enum err e, const char *reason)
{
    p->error = e;
    p->reason = reason;
    p->phase = PHASE_ERROR;
    return e;
}

static enum err http1_bad(struct http1 *p, const char *reason)
{
    return http1_refuse(p, ERR_BAD_REQUEST, reason);
}

static void http1_enter(struct http1 *p, enum http1_phase phase, enum http1_step step)
{
    p->phase = (uint8_t)phase;
    p->step = (uint8_t)step;
    p->count = 0;
}

static void drop_byte(str *in)
{
    *in = (str){in->p + 1, in->len - 1};
}

/* Take one byte and go on at `step`. */
static void advance(struct http1 *p, str *in, enum http1_step step)
{
    drop_byte(in);
    p->step = (uint8_t)step;
    p->count = 0;
}

/* Take all bytes of a class, counting them. False if that was everything there is. */
static bool take_run(struct http1 *p, str *in, unsigned class)
{
    const char *at = in->p, *end = in->p + in->len;
    while (at < end && is(*at, class)) at++;
    p->count = (uint16_t)(p->count + (at - in->p));
    *in = (str){at, (size_t)(end - at)};
    return at < end;
}

static str at_most(str s, size_t max)
{
    return (str){s.p, s.len < max ? s.len : max};
}

/* ---- Scanning a head ------------------------------------------------------------------------- */

/* One empty line before a request is let pass (RFC 9112 2.2): old clients send one after a body. */
static enum err scan_empty_line(struct http1 *p, str *in)
{
    if (p->step == AT_START && *in->p == '\r') advance(p, in, AT_EMPTY_LF);
    if (p->step == AT_EMPTY_LF && in->len) {
        if (*in->p != '\n') return http1_bad(p, "carriage return without line feed");
        advance(p, in, AT_AGAIN);
    }
    if (p->step != AT_EMPTY_LF && in->len) p->step = AT_METHOD;
    return OK;
}

static enum err scan_method(struct http1 *p, str *in)
{
    bool more = take_run(p, in, TOKEN);
    if (p->count > HTTP_METHOD_BYTES_MAX)
        return http1_refuse(p, ERR_NOT_IMPLEMENTED, "method too long to be one");
    if (!more) return OK;
    if (*in->p != ' ' || p->count == 0) return http1_bad(p, "malformed method");
    advance(p, in, AT_TARGET);
    return OK;
}

static enum err scan_target(struct http1 *p, str *in)
{
    bool more = take_run(p, in, TARGET);
    if (p->count > HTTP_TARGET_BYTES_MAX)
        return http1_refuse(p, ERR_URI_TOO_LONG, "request target too long");
    if (!more) return OK;
    if (*in->p != ' ' || p->count == 0) return http1_bad(p, "malformed request target");
    advance(p, in, AT_VERSION);
    return OK;
}

static enum err scan_version(struct http1 *p, str *in)
{
    static const char form[] = "HTTP/0.0\r\n"; /* 0 stands for any digit */
    while (in->len && form[p->count]) {
        char expected = form[p->count];
        if (expected == '0' ? (*in->p < '0' || *in->p > '9') : *in->p != expected)
            return http1_bad(p, "malformed HTTP version");
        drop_byte(in);
        p->count++;
    }
    if (!form[p->count]) p->step = AT_FIELD;
    return OK;
}

/* The first byte of a field line, or of the empty line that ends the section. */
static enum err scan_field_start(struct http1 *p, str *in)
{
    if (*in->p == '\r') {
        advance(p, in, AT_LAST_LF);
        return OK;
    }
    if (p->fields == HTTP_FIELDS_MAX) return http1_refuse(p, ERR_HEAD_TOO_LARGE, "too many fields");
    p->fields++;
    p->step = AT_NAME;
    p->count = 0;
    return OK;
}

static enum err scan_name(struct http1 *p, str *in)
{
    if (!take_run(p, in, TOKEN)) return OK;
    if (*in->p != ':' || p->count == 0) return http1_bad(p, "malformed field name");
    advance(p, in, AT_VALUE);
    return OK;
}

static enum err scan_value(struct http1 *p, str *in)
{
    if (!take_run(p, in, VALUE)) return OK;
    if (*in->p != '\r') return http1_bad(p, "control character in a field value");
    advance(p, in, AT_VALUE_LF);
    return OK;
}

static enum err scan_line_feed(struct http1 *p, str *in)
{
    if (*in->p != '\n') return http1_bad(p, "carriage return without line feed");
    advance(p, in, p->step == AT_VALUE_LF ? AT_FIELD : AT_DONE);
    return OK;
}

/* Scan a head from its method on, or a trailer section, to the empty line that ends it. */
static enum err scan(struct http1 *p, str *in)
{
    static enum err (*const steps[])(struct http1 *, str *) = {
        [AT_METHOD] = scan_method,      [AT_TARGET] = scan_target,     [AT_VERSION] = scan_version,
        [AT_FIELD] = scan_field_start,  [AT_NAME] = scan_name,         [AT_VALUE] = scan_value,
        [AT_VALUE_LF] = scan_line_feed, [AT_LAST_LF] = scan_line_feed,
    };
    enum err e = OK;
    while (!e && in->len && p->step != AT_DONE) e = steps[p->step](p, in);
    return e;
}

/* ---- Reading a head: the request line -------------------------------------------------------- */

static const str methods[] = {
#define METHOD_NAME(name) STR(#name),
    HTTP_METHODS(METHOD_NAME)
#undef METHOD_NAME
};

const char *http_method_name(enum http_method method)
{
    assert(method < HTTP_METHOD_COUNT);
    return methods[method].p;
}

static bool port_valid(str port)
{
    uint64_t number;
    return port.len <= 5 && str_to_u64(port, &number) == OK && number <= UINT16_MAX;
}

/* A name, IPv4 address or [IPv6] address, and a port or none. No user, no empty name. */
static bool host_valid(str host)
{
    if (host.len == 0) return false;
    if (host.p[0] != '[') {
        str name = str_split(&host, ':');
        return name.len && all(name, HOSTNAME) && (!host.p || port_valid(host));
    }
    str rest = str_drop(host, 1);
    str address = str_split(&rest, ']');
    char text[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    if (!rest.p || address.len >= sizeof text) return false;
    memcpy(text, address.p, address.len);
    text[address.len] = '\0';
    if (inet_pton(AF_INET6, text, &parsed) != 1) return false;
    return rest.len == 0 || (rest.p[0] == ':' && port_valid(str_drop(rest, 1)));
}

/* "http://host/path": what was said to a proxy; its host counts, not the Host field's. Returns the
 * path and query, or {NULL, 0} if the target is not such a one. */
static str cut_authority(struct http1 *p, str target)
{
    static const str schemes[] = {STR("http://"), STR("https://")};
    for (size_t i = 0; i < COUNT(schemes); i++) {
        if (!str_eq_nocase(at_most(target, schemes[i].len), schemes[i])) continue;
        str rest = str_drop(target, schemes[i].len);
        size_t len = 0;
        while (len < rest.len && rest.p[len] != '/' && rest.p[len] != '?') len++;
        p->head.host = at_most(rest, len);
        return host_valid(p->head.host) ? str_drop(rest, len) : (str){NULL, 0};
    }
    return (str){NULL, 0};
}

static enum err read_target(struct http1 *p, str target)
{
    p->head.target = target;
    p->head.query = STR_EMPTY;
    if (str_eq(target, STR("*")) && p->head.method == HTTP_OPTIONS) {
        p->head.path = target;
        return OK;
    }
    str rest = target.p[0] == '/' ? target : cut_authority(p, target);
    if (!rest.p) return http1_bad(p, "malformed request target");

    p->head.path = str_split(&rest, '?');
    if (rest.p) p->head.query = rest;
    if (p->head.path.len == 0) p->head.path = STR("/"); /* "http://host?query" */
    str path = p->head.path; /* every escape is whole and none is a NUL */
    for (ptrdiff_t at; (at = str_find_char(path, '%')) >= 0;) {
        path = str_drop(path, (size_t)at);
        if (http1_decode_char(&path, false) < 0)
            return http1_bad(p, "malformed escape in the path");
    }
    return OK;
}

/* The version comes first: in another version the rest of the line may mean something else. Of
 * "HTTP/1.1" the scan has left nothing open but the two digits. */
static enum err read_request_line(struct http1 *p, str line)
{
    str method = str_split(&line, ' ');
    str target = str_split(&line, ' ');
    if (line.p[5] != '1')
        return http1_refuse(p, ERR_VERSION, "only HTTP/1.0 and HTTP/1.1 are spoken");
    p->head.minor = line.p[7] != '0';
    size_t i = 0;
    while (i < COUNT(methods) && !str_eq(method, methods[i])) i++;
    if (i == COUNT(methods)) return http1_refuse(p, ERR_NOT_IMPLEMENTED, "unknown method");
    p->head.method = (enum http_method)i;
    return read_target(p, target);
}

/* ---- Reading a head: fields ------------------------------------------------------------------ */

enum {
    SEEN_HOST = 1,
    SEEN_LENGTH = 2,
    SEEN_CODING = 4,
    SEEN_CLOSE = 8,
    SEEN_KEEP_ALIVE = 16,
    SEEN_CONTINUE = 32,
    SEEN_EXPECT_OTHER = 64,
};

/* Note a field that may come once only; false if it comes again. */
static bool see_once(struct http1 *p, unsigned flag)
{
    bool first = !(p->seen & flag);
    p->seen = (uint16_t)(p->seen | flag);
    return first;
}

static enum err read_host(struct http1 *p, str value)
{
    if (!see_once(p, SEEN_HOST)) return http1_bad(p, "more than one Host");
    if (!host_valid(value)) return http1_bad(p, "malformed Host");
    if (!p->head.host.p) p->head.host = value;
    return OK;
}

static enum err read_length(struct http1 *p, str value)
{
    if (!see_once(p, SEEN_LENGTH)) return http1_bad(p, "more than one Content-Length");
    enum err e = str_to_u64(value, &p->head.length);
    if (e == ERR_TOO_LARGE) return http1_refuse(p, e, "body too large");
    if (e) return http1_bad(p, "malformed Content-Length");
    p->head.has_length = true;
    return OK;
}

/* Only "chunked" is understood, and it must come last and once: otherwise the end of the body is
 * not known, which is worse (400) than a coding that we merely cannot undo (501). */
static enum err read_coding(struct http1 *p, str value)
{
    if (!see_once(p, SEEN_CODING)) return http1_bad(p, "more than one Transfer-Encoding");
    if (p->head.minor == 0) return http1_bad(p, "Transfer-Encoding in HTTP/1.0");
    bool other = false;
    while (value.p) {
        str coding = str_trim(str_split(&value, ','));
        if (coding.len == 0 || !all(coding, TOKEN))
            return http1_bad(p, "malformed Transfer-Encoding");
        bool last = !value.p;
        if (last != str_eq_nocase(coding, STR("chunked")))
            return http1_bad(p, "chunked must be the last transfer coding");
        other |= !last;
    }
    if (other) return http1_refuse(p, ERR_NOT_IMPLEMENTED, "unknown transfer coding");
    p->head.chunked = true;
    return OK;
}

static enum err read_connection(struct http1 *p, str value)
{
    while (value.p) {
        str option = str_trim(str_split(&value, ','));
        if (str_eq_nocase(option, STR("close"))) see_once(p, SEEN_CLOSE);
        if (str_eq_nocase(option, STR("keep-alive"))) see_once(p, SEEN_KEEP_ALIVE);
    }
    return OK;
}

/* Judged at the end of the head: a message that cannot be framed is refused for that. */
static enum err read_expect(struct http1 *p, str value)
{
    bool known = str_eq_nocase(value, STR("100-continue"));
    see_once(p, known ? SEEN_CONTINUE : SEEN_EXPECT_OTHER);
    return OK;
}

static const struct {
    str name;
    enum err (*read)(struct http1 *p, str value);
} meanings[] = {
    {STR("Host"), read_host},
    {STR("Content-Length"), read_length},
    {STR("Transfer-Encoding"), read_coding},
    {STR("Connection"), read_connection},
    {STR("Expect"), read_expect},
};

/* ---- Reading a head: the whole --------------------------------------------------------------- */

/* What the fields mean together. */
static enum err judge_head(struct http1 *p)
{
    struct http_head *head = &p->head;
    if (head->minor > 0 && !(p->seen & SEEN_HOST)) return http1_bad(p, "Host is missing");
    if (!head->host.p) head->host = STR_EMPTY;
    if (head->chunked && head->has_length)
        return http1_bad(p, "Content-Length and Transfer-Encoding together");
    if (p->seen & SEEN_EXPECT_OTHER)
        return http1_refuse(p, ERR_EXPECTATION, "only 100-continue can be expected");

    bool body = head->chunked || head->length > 0;
    head->expect_continue = (p->seen & SEEN_CONTINUE) && body && head->minor > 0;
    bool wanted = head->minor > 0 || (p->seen & SEEN_KEEP_ALIVE);
    head->keep_alive = wanted && !(p->seen & SEEN_CLOSE);
    return OK;
}

/* The line at the front of *rest, without its end, which the scan has seen to be CR LF. */
static str cut_line(str *rest)
{
    str line = str_split(rest, '\n');
    line.len--;
    return line;
}

static enum err read_head(struct http1 *p)
{
    str rest = buf_str(&p->line);
    enum err e = read_request_line(p, cut_line(&rest));
    if (e) return e;

    if (p->fields) p->head.fields = mem_array(p->fields, sizeof *p->head.fields);
    while (p->head.field_count < p->fields) {
        struct http_field *field = &p->head.fields[p->head.field_count++];
        str line = cut_line(&rest);
        field->name = str_split(&line, ':');
        field->value = str_trim(line);
        size_t i = 0;
        while (i < COUNT(meanings) && !str_eq_nocase(field->name, meanings[i].name)) i++;
        if (i < COUNT(meanings)) e = meanings[i].read(p, field->value);
        if (e) return e;
    }
    return judge_head(p);
}

static enum http1_event feed_head(struct http1 *p, str *input)
{
    if (input->len == 0) return HTTP1_MORE;
    if (p->step < AT_METHOD && scan_empty_line(p, input)) return HTTP1_ERROR;

    str rest = at_most(*input, HTTP_HEAD_BYTES_MAX - p->line.len);
    size_t offered = rest.len;
    if (scan(p, &rest)) return HTTP1_ERROR;
    size_t taken = offered - rest.len;
    buf_append(&p->line, at_most(*input, taken));
    *input = str_drop(*input, taken);

    if (p->step == AT_DONE) {
        if (read_head(p)) return HTTP1_ERROR;
        http1_enter(p, PHASE_BODY, AT_START);
        return HTTP1_HEAD;
    }
    if (p->line.len < HTTP_HEAD_BYTES_MAX) return HTTP1_MORE;
    http1_refuse(p, ERR_HEAD_TOO_LARGE, "request head too large");
    return HTTP1_ERROR;
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

static enum http1_event finish(struct http1 *p)
{
    http1_enter(p, PHASE_END, AT_START);
    return HTTP1_END;
}

static enum http1_event feed_body(struct http1 *p, str *input)
{
    (void)input;
    if (p->head.chunked) {
        http1_enter(p, PHASE_CHUNK, AT_SIZE);
        return HTTP1_MORE;
    }
    if (p->head.length == 0) return finish(p);
    if (p->head.length > p->room) {
        http1_refuse(p, ERR_TOO_LARGE, "body too large");
        return HTTP1_ERROR;
    }
    p->left = p->head.length;
    http1_enter(p, PHASE_LENGTH, AT_START);
    return HTTP1_MORE;
}

/* Hand out what there is of the `left` bytes. The caller has seen that there is some. */
static enum http1_event take_piece(struct http1 *p, str *input)
{
    p->piece = p->left < input->len ? at_most(*input, (size_t)p->left) : *input;
    p->left -= p->piece.len;
    *input = str_drop(*input, p->piece.len);
    return HTTP1_BODY;
}

static enum http1_event feed_length(struct http1 *p, str *input)
{
    if (p->left == 0) return finish(p);
    return input->len ? take_piece(p, input) : HTTP1_MORE;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* *( ";" name [ "=" ( token / quoted-string ) ] ) CR: the step behind c. The white space that RFC
 * 9112 7.1.1 calls bad is refused. */
static enum http1_step next_in_extension(enum http1_step step, char c)
{
    bool token = is(c, TOKEN);
    enum http1_step over = c == ';' ? AT_EXT : c == '\r' ? AT_SIZE_LF : AT_NOWHERE;
    switch (step) {
    case AT_EXT:
        return token ? AT_EXT_NAME : AT_NOWHERE;
    case AT_EXT_NAME:
        return token ? AT_EXT_NAME : c == '=' ? AT_EXT_EQUALS : over;
    case AT_EXT_EQUALS:
        return token ? AT_EXT_TOKEN : c == '"' ? AT_EXT_QUOTED : AT_NOWHERE;
    case AT_EXT_TOKEN:
        return token ? AT_EXT_TOKEN : over;
    case AT_EXT_QUOTED:
        if (c == '"') return AT_EXT_CLOSED;
        if (c == '\\') return AT_EXT_ESCAPE;
        return is(c, QUOTED) ? AT_EXT_QUOTED : AT_NOWHERE;
    case AT_EXT_ESCAPE:
        return is(c, VALUE) ? AT_EXT_QUOTED : AT_NOWHERE;
    default:
        return over; /* AT_EXT_CLOSED */
    }
}

static enum err scan_extension(struct http1 *p, char c)
{
    enum http1_step next = next_in_extension((enum http1_step)p->step, c);
    if (next == AT_NOWHERE) return http1_bad(p, "malformed chunk extension");
    if (next != AT_SIZE_LF && ++p->ext_bytes > HTTP_CHUNK_EXT_BYTES_MAX)
        return http1_bad(p, "chunk extensions too long");
    p->step = (uint8_t)next;
    return OK;
}

static enum err scan_size(struct http1 *p, char c)
{
    int digit = char_hex(c);
    if (digit >= 0) {
        if (p->count == HTTP_CHUNK_DIGITS_MAX) return http1_bad(p, "chunk size too long");
        p->left = p->left << 4 | (unsigned)digit;
        p->count++;
        return OK;
    }
    if (p->count == 0 || (c != ';' && c != '\r')) return http1_bad(p, "malformed chunk size");
    if (c == '\r') {
        p->step = AT_SIZE_LF;
        return OK;
    }
    p->step = AT_EXT;
    return ++p->ext_bytes > HTTP_CHUNK_EXT_BYTES_MAX ? http1_bad(p, "chunk extensions too long")
                                                     : OK;
}

/* The chunk line is over: data of that size follows, or the trailers. */
static enum err end_chunk_line(struct http1 *p, char c)
{
    if (c != '\n') return http1_bad(p, "carriage return without line feed");
    if (p->left > p->room) return http1_refuse(p, ERR_TOO_LARGE, "body too large");
    p->room -= p->left;
    p->fields = 0;
    if (p->left)
        http1_enter(p, PHASE_DATA, AT_START);
    else
        http1_enter(p, PHASE_TRAILER, AT_FIELD);
    return OK;
}

static enum http1_event feed_chunk(struct http1 *p, str *input)
{
    enum err e = OK;
    while (!e && input->len && p->phase == PHASE_CHUNK) {
        char c = *input->p;
        drop_byte(input);
        switch (p->step) {
        case AT_SIZE:
            e = scan_size(p, c);
            break;
        case AT_SIZE_LF:
            e = end_chunk_line(p, c);
            break;
        default:
            e = scan_extension(p, c);
            break;
        }
    }
    return e ? HTTP1_ERROR : HTTP1_MORE;
}

static enum http1_event feed_data(struct http1 *p, str *input)
{
    if (input->len == 0) return HTTP1_MORE;
    take_piece(p, input);
    if (p->left == 0) http1_enter(p, PHASE_DATA_END, AT_DATA_CR);
    return HTTP1_BODY;
}

static enum http1_event feed_data_end(struct http1 *p, str *input)
{
    while (input->len && p->phase == PHASE_DATA_END) {
        if (*input->p != (p->step == AT_DATA_CR ? '\r' : '\n')) {
            http1_bad(p, "chunk does not end where its size says");
            return HTTP1_ERROR;
        }
        bool over = p->step == AT_DATA_LF;
        advance(p, input, AT_DATA_LF);
        if (over) http1_enter(p, PHASE_CHUNK, AT_SIZE);
    }
    return HTTP1_MORE;
}

/* Trailers must be well formed, and mean nothing: no field of ours may come so late. */
static enum http1_event feed_trailer(struct http1 *p, str *input)
{
    if (input->len == 0) return HTTP1_MORE;
    str rest = at_most(*input, (size_t)HTTP_TRAILER_BYTES_MAX - p->trailer_bytes);
    size_t offered = rest.len;
    if (scan(p, &rest)) return HTTP1_ERROR;
    size_t taken = offered - rest.len;
    p->trailer_bytes = (uint16_t)(p->trailer_bytes + taken);
    *input = str_drop(*input, taken);

    if (p->step == AT_DONE) return finish(p);
    if (p->trailer_bytes < HTTP_TRAILER_BYTES_MAX) return HTTP1_MORE;
    http1_refuse(p, ERR_HEAD_TOO_LARGE, "trailers too large");
    return HTTP1_ERROR;
}

/* ---- The parser ------------------------------------------------------------------------------ */

static enum http1_event feed_end(struct http1 *p, str *input)
{
    (void)p, (void)input;
    return HTTP1_END;
}

static enum http1_event feed_error(struct http1 *p, str *input)
{
    (void)p, (void)input;
    return HTTP1_ERROR;
}

enum http1_event http1_feed(struct http1 *p, str *input)
{
    static enum http1_event (*const phases[])(struct http1 *, str *) = {
        [PHASE_HEAD] = feed_head,       [PHASE_BODY] = feed_body, [PHASE_LENGTH] = feed_length,
        [PHASE_CHUNK] = feed_chunk,     [PHASE_DATA] = feed_data, [PHASE_DATA_END] = feed_data_end,
        [PHASE_TRAILER] = feed_trailer, [PHASE_END] = feed_end,   [PHASE_ERROR] = feed_error,
    };
    enum http1_event event;
    do event = phases[p->phase](p, input);
    while (event == HTTP1_MORE && input->len);
    return event;
}

void http1_init(struct http1 *p)
{
    *p = (struct http1){.phase = PHASE_HEAD, .step = AT_START};
    buf_init(&p->line, HTTP_HEAD_BYTES_MAX);
}

void http1_done(struct http1 *p)
{
    free(p->head.fields);
    buf_done(&p->line);
    http1_init(p);
}

void http1_next(struct http1 *p)
{
    /* Anywhere else the rest of a body would be taken for a request. */
    bool bare = p->phase == PHASE_BODY && !p->head.chunked && p->head.length == 0;
    assert(p->phase == PHASE_END || bare || !http1_started(p));
    http1_done(p);
}

void http1_body_max(struct http1 *p, uint64_t bytes)
{
    assert(p->phase == PHASE_BODY);
    p->room = bytes;
}

bool http1_started(const struct http1 *p)
{
    return p->phase != PHASE_HEAD || p->step >= AT_METHOD;
}

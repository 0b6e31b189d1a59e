/* SPDX-License-Identifier: Apache-2.0
 *
 * multipart/form-data, resumable and strict, as a state machine over single bytes, with a fast way
 * through content; pure.
 *
 *     --B CRLF  head CRLF CRLF  content  CRLF --B CRLF  head ...  CRLF --B-- [CRLF]
 *     └BOUNDARY └HEAD           └DATA    └BOUNDARY                └BOUNDARY └CLOSED
 *
 *   BOUNDARY ─▶ BEHIND ─┬─ CR LF ───────▶ HEAD ──▶ DATA ──▶ (CR LF --B) ──▶ BEHIND
 *                       └─ "--" ─▶ CLOSING ─▶ CLOSED
 *
 * Invariants:
 * 1. Only the first byte of the delimiter is a CR. So when a match breaks off, everything matched so
 *    far is content, and the next match can begin no earlier than with the byte that broke it.
 * 2. What was matched is equal to the delimiter's own first bytes. So it is not kept anywhere: if it
 *    turns out to be content, the piece is taken from the delimiter.
 * 3. The body begins as if a CR LF had come before it, so that the first boundary is like the others.
 *
 * A quoted string is read as browsers and other clients write it: \" and \\ are escapes, any other
 * backslash is itself, because a path of Windows may stand there.
 *
 * To take one more field of a part's head: a row in `fields`.
 */
#include "net/multipart.h"

#include <string.h>

#include "base/utf8.h"

enum multipart_phase {
    BOUNDARY, /* the first one */
    BEHIND,   /* of a boundary: the end of its line, or of everything */
    BEHIND_CR,
    BEHIND_DASH,
    HEAD,
    HEAD_CR,
    DATA,
    CLOSING, /* behind the last boundary: the end of its line, if it has one */
    CLOSING_CR,
    CLOSED,
    BROKEN,
};

static enum multipart_event multipart_refuse(struct multipart *parser, const char *reason)
{
    parser->phase = BROKEN;
    parser->reason = reason;
    return MULTIPART_ERROR;
}

/* ---- parameters of a field ---- */

static str take_token(str *rest)
{
    size_t len = 0;
    while (len < rest->len && char_is_token(rest->p[len])) len++;
    str token = {rest->p, len};
    *rest = str_drop(*rest, len);
    return token;
}

static void skip_space(str *rest)
{
    while (rest->len && (rest->p[0] == ' ' || rest->p[0] == '\t')) *rest = str_drop(*rest, 1);
}

/* What stands between quotes, still escaped; *rest is behind the opening one. */
static bool take_quoted(str *rest, str *ret_raw)
{
    for (size_t i = 0; i < rest->len; i++) {
        if (rest->p[i] == '"') {
            *ret_raw = (str){rest->p, i};
            *rest = str_drop(*rest, i + 1);
            return true;
        }
        bool escape = rest->p[i] == '\\' && i + 1 < rest->len;
        if (escape && (rest->p[i + 1] == '"' || rest->p[i + 1] == '\\')) i++;
    }
    return false;
}

struct parameter {
    str name, value;
    bool quoted; /* the value is still escaped */
};

/* The next `; name=value` of *rest. False: malformed. With name.len 0: there is none. */
static bool take_parameter(str *rest, struct parameter *ret_parameter)
{
    *ret_parameter = (struct parameter){0};
    skip_space(rest);
    if (!rest->len) return true;
    if (rest->p[0] != ';') return false;
    *rest = str_drop(*rest, 1);
    skip_space(rest);
    if (!rest->len) return true; /* a last semicolon with nothing behind it */
    ret_parameter->name = take_token(rest);
    if (!ret_parameter->name.len || !rest->len || rest->p[0] != '=') return false;
    *rest = str_drop(*rest, 1);
    if (rest->len && rest->p[0] == '"') {
        *rest = str_drop(*rest, 1);
        ret_parameter->quoted = true;
        return take_quoted(rest, &ret_parameter->value);
    }
    ret_parameter->value = take_token(rest);
    return ret_parameter->value.len > 0;
}

static void put_unquoted(struct buf *out, str raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        bool escape = raw.p[i] == '\\' && i + 1 < raw.len;
        if (escape && (raw.p[i + 1] == '"' || raw.p[i + 1] == '\\')) i++;
        buf_char(out, raw.p[i]);
    }
}

/* RFC 8187: UTF-8'language'percent-encoded. */
static bool put_extended(struct buf *out, str value)
{
    str charset = str_split(&value, '\'');
    if (!value.p || !str_eq_nocase(charset, STR("UTF-8"))) return false;
    str_split(&value, '\'');
    if (!value.p) return false;
    for (size_t i = 0; i < value.len; i++) {
        if (value.p[i] != '%') {
            if (strchr("'*", value.p[i]))
                return false; /* no such character of a token is allowed */
            buf_char(out, value.p[i]);
            continue;
        }
        if (value.len - i < 3) return false;
        int high = char_hex(value.p[i + 1]), low = char_hex(value.p[i + 2]);
        if (high < 0 || low < 0) return false;
        buf_char(out, (char)(high * 16 + low));
        i += 2;
    }
    return true;
}

/* ---- Content-Type of the whole ---- */

static bool boundary_valid(str boundary)
{
    if (!boundary.len || boundary.len > MULTIPART_BOUNDARY_BYTES_MAX) return false;
    for (size_t i = 0; i < boundary.len; i++) {
        char c = boundary.p[i];
        if (!char_is_alnum(c) && (!c || !strchr("'()+_,-./:=? ", c))) return false;
    }
    return boundary.p[boundary.len - 1] != ' ';
}

enum err multipart_boundary(str content_type, str *ret_boundary, struct fault *reterr)
{
    str rest = content_type, boundary = {NULL, 0};
    size_t len = 0;
    while (len < rest.len && rest.p[len] != ';' && rest.p[len] != ' ' && rest.p[len] != '\t') len++;
    if (!str_eq_nocase((str){rest.p, len}, STR("multipart/form-data")))
        return fault(reterr, ERR_UNSUPPORTED_TYPE,
                     "send the file with Content-Type: multipart/form-data");
    rest = str_drop(rest, len);
    for (;;) {
        struct parameter parameter;
        if (!take_parameter(&rest, &parameter))
            return fault(reterr, ERR_BAD_REQUEST, "Content-Type is malformed");
        if (!parameter.name.len) break;
        if (!str_eq_nocase(parameter.name, STR("boundary"))) continue;
        if (boundary.p) return fault(reterr, ERR_BAD_REQUEST, "Content-Type has two boundaries");
        boundary = parameter.value;
    }
    if (!boundary.p) return fault(reterr, ERR_BAD_REQUEST, "Content-Type names no boundary");
    if (!boundary_valid(boundary))
        return fault(reterr, ERR_BAD_REQUEST,
                     "the boundary must be 1 to %d of the characters that RFC 2046 allows",
                     MULTIPART_BOUNDARY_BYTES_MAX);
    *ret_boundary = boundary;
    return OK;
}

/* ---- the head of a part ---- */

/* Append a decoded value and remember where; the str is made when `text` does not move any more. */
struct multipart_place {
    size_t at, len;
    bool set;
};

static const char *read_disposition(struct multipart *parser, str value)
{
    struct multipart_place name = {0}, plain = {0}, extended = {0};
    if (!str_eq_nocase(take_token(&value), STR("form-data")))
        return "a part's Content-Disposition is not form-data";
    for (;;) {
        struct parameter parameter;
        if (!take_parameter(&value, &parameter)) return "a Content-Disposition is malformed";
        if (!parameter.name.len) break;
        struct multipart_place *place = str_eq_nocase(parameter.name, STR("name"))       ? &name
                                        : str_eq_nocase(parameter.name, STR("filename")) ? &plain
                                        : str_eq_nocase(parameter.name, STR("filename*"))
                                            ? &extended
                                            : NULL;
        if (!place) continue;
        if (place->set) return "a Content-Disposition says the same twice";
        *place = (struct multipart_place){.at = parser->text.len, .set = true};
        if (place == &extended) {
            if (parameter.quoted || !put_extended(&parser->text, parameter.value))
                return "a filename* is not UTF-8''... of RFC 8187";
        } else if (parameter.quoted) {
            put_unquoted(&parser->text, parameter.value);
        } else {
            buf_append(&parser->text, parameter.value);
        }
        place->len = parser->text.len - place->at;
    }
    if (!utf8_valid(buf_str(&parser->text))) return "the name of a part or file is not UTF-8";
    if (!name.len) return "a part has no name";
    const struct multipart_place *file = extended.set ? &extended : &plain;
    parser->part.name = (str){parser->text.p + name.at, name.len};
    parser->part.has_filename = file->set;
    parser->part.filename = file->len ? (str){parser->text.p + file->at, file->len} : STR_EMPTY;
    return NULL;
}

static const char *read_type(struct multipart *parser, str value)
{
    static const str nested = STR("multipart/");
    if (value.len >= nested.len && str_eq_nocase((str){value.p, nested.len}, nested))
        return "a part is multipart itself";
    parser->part.type = value;
    return NULL;
}

/* Names of encodings that change nothing. */
static const char *read_encoding(struct multipart *parser, str value)
{
    (void)parser;
    bool none = str_eq_nocase(value, STR("binary")) || str_eq_nocase(value, STR("8bit")) ||
                str_eq_nocase(value, STR("7bit"));
    return none ? NULL : "a part is encoded; send its bytes as they are";
}

/* Fields that mean something; each reader returns why it refuses, or NULL. */
static const struct {
    str name;
    const char *(*read)(struct multipart *parser, str value);
} fields[] = {
    {STR("Content-Disposition"), read_disposition},
    {STR("Content-Type"), read_type},
    {STR("Content-Transfer-Encoding"), read_encoding},
};

/* One line of the head. `seen` has a bit for each row that came already. */
static const char *read_line(struct multipart *parser, str line, unsigned *seen)
{
    str name = take_token(&line);
    if (!name.len || !line.len || line.p[0] != ':') return "a part's head is malformed";
    line = str_trim(str_drop(line, 1));
    for (unsigned i = 0; i < COUNT(fields); i++) {
        if (!str_eq_nocase(fields[i].name, name)) continue;
        if (*seen & 1U << i) return "a part's head says the same twice";
        *seen |= 1U << i;
        return fields[i].read(parser, line);
    }
    return NULL; /* RFC 7578, 4.8: anything else means nothing */
}

/* All lines are there, each with its CR LF, and the empty one behind them. */
static enum multipart_event head_complete(struct multipart *parser)
{
    unsigned seen = 0;
    parser->part = (struct multipart_part){.type = STR_EMPTY, .filename = STR_EMPTY};
    buf_clear(&parser->text);
    for (str rest = buf_str(&parser->head); rest.len > 2;) {
        str line = {rest.p, (size_t)str_find(rest, STR("\r\n"))};
        rest = str_drop(rest, line.len + 2);
        const char *reason = read_line(parser, line, &seen);
        if (reason) return multipart_refuse(parser, reason);
    }
    if (!parser->part.name.len)
        return multipart_refuse(parser, "a part has no Content-Disposition");
    parser->phase = DATA;
    /* The CR LF that ended the head is none of the content's, but may begin the delimiter. */
    parser->fresh = true;
    parser->matched = 2;
    return MULTIPART_PART;
}

static enum multipart_event head_byte(struct multipart *parser, char c)
{
    if (c == '\n' && parser->phase != HEAD_CR)
        return multipart_refuse(parser, "a bare LF in a part's head");
    if (c != '\n' && parser->phase == HEAD_CR)
        return multipart_refuse(parser, "a bare CR in a part's head");
    buf_char(&parser->head, c);
    if (parser->head.full) return multipart_refuse(parser, "the head of a part is too long");
    parser->phase = c == '\r' ? HEAD_CR : HEAD;
    if (c != '\n') return MULTIPART_MORE;
    bool empty = parser->head.len - parser->line == 2;
    parser->line = parser->head.len;
    return empty ? head_complete(parser) : MULTIPART_MORE;
}

/* ---- boundaries ---- */

/* Spaces behind a boundary are allowed, and mean nothing; they are counted like a head. */
static bool is_padding(struct multipart *parser, char c)
{
    return (c == ' ' || c == '\t') && ++parser->padding <= MULTIPART_HEAD_BYTES_MAX;
}

static enum multipart_event behind_byte(struct multipart *parser, char c)
{
    switch (parser->phase) {
    case BEHIND:
        if (c == '\r')
            parser->phase = BEHIND_CR;
        else if (c == '-' && !parser->padding)
            parser->phase = BEHIND_DASH;
        else if (!is_padding(parser, c))
            return multipart_refuse(parser, "a line begins with the boundary and goes on");
        return MULTIPART_MORE;
    case BEHIND_CR:
        if (c != '\n') return multipart_refuse(parser, "a boundary's line has a bare CR");
        if (++parser->parts > MULTIPART_PARTS_MAX)
            return multipart_refuse(parser, "there are too many parts");
        parser->phase = HEAD;
        parser->line = 0;
        buf_clear(&parser->head);
        return MULTIPART_MORE;
    default: /* BEHIND_DASH */
        if (c != '-')
            return multipart_refuse(parser, "a line begins with the boundary and goes on");
        parser->phase = CLOSING;
        return MULTIPART_MORE;
    }
}

static enum multipart_event closing_byte(struct multipart *parser, char c)
{
    if (parser->phase == CLOSING && c == '\r')
        parser->phase = CLOSING_CR;
    else if (parser->phase == CLOSING_CR && c == '\n')
        parser->phase = CLOSED;
    else if (parser->phase != CLOSING || !is_padding(parser, c))
        return multipart_refuse(parser, "bytes follow the last boundary");
    return MULTIPART_MORE;
}

/* ---- content ---- */

/* Bytes of the input before the first place where a delimiter begins, or may begin at its end. */
static size_t content_len(const struct multipart *parser, str input)
{
    for (size_t at = 0; at < input.len; at++) {
        const char *cr = memchr(input.p + at, '\r', input.len - at);
        if (!cr) break;
        at = (size_t)(cr - input.p);
        size_t left = input.len - at;
        size_t len = left < parser->delimiter_len ? left : parser->delimiter_len;
        if (memcmp(cr, parser->delimiter, len) == 0) return at;
    }
    return input.len;
}

static enum multipart_event data(struct multipart *parser, str *input)
{
    for (;;) {
        size_t len = parser->matched ? 0 : content_len(parser, *input);
        if (len) {
            parser->piece = (str){input->p, len};
            parser->fresh = false;
            *input = str_drop(*input, len);
            return MULTIPART_DATA;
        }
        if (parser->matched == parser->delimiter_len) {
            parser->phase = BEHIND;
            parser->padding = 0;
            return MULTIPART_PART_END;
        }
        if (!input->len) return MULTIPART_MORE;
        if (input->p[0] == parser->delimiter[parser->matched]) {
            parser->matched++;
            *input = str_drop(*input, 1);
            continue;
        }
        /* Not the delimiter after all (invariants 1 and 2). */
        size_t skip = parser->fresh ? 2 : 0;
        parser->piece = (str){parser->delimiter + skip, parser->matched - skip};
        parser->matched = 0;
        parser->fresh = false;
        if (parser->piece.len) return MULTIPART_DATA;
    }
}

/* ---- the parser ---- */

void multipart_init(struct multipart *parser, str boundary)
{
    assert(boundary_valid(boundary));
    *parser = (struct multipart){.phase = BOUNDARY, .matched = 2};
    memcpy(parser->delimiter, "\r\n--", 4);
    memcpy(parser->delimiter + 4, boundary.p, boundary.len);
    parser->delimiter_len = 4 + boundary.len;
    buf_init(&parser->head, MULTIPART_HEAD_BYTES_MAX);
    buf_init(&parser->text, MULTIPART_HEAD_BYTES_MAX);
}

void multipart_done(struct multipart *parser)
{
    buf_done(&parser->head);
    buf_done(&parser->text);
}

static enum multipart_event feed_byte(struct multipart *parser, char c)
{
    switch ((enum multipart_phase)parser->phase) {
    case BOUNDARY: /* the first one stands at the very beginning */
        if (c != parser->delimiter[parser->matched])
            return multipart_refuse(parser, "the body does not begin with its boundary");
        if (++parser->matched == parser->delimiter_len) parser->phase = BEHIND;
        return MULTIPART_MORE;
    case BEHIND:
    case BEHIND_CR:
    case BEHIND_DASH:
        return behind_byte(parser, c);
    case HEAD:
    case HEAD_CR:
        return head_byte(parser, c);
    case CLOSING:
    case CLOSING_CR:
    case CLOSED:
        return closing_byte(parser, c);
    case DATA:
    case BROKEN:
        break;
    }
    return MULTIPART_ERROR;
}

enum multipart_event multipart_feed(struct multipart *parser, str *input)
{
    for (;;) {
        if (parser->phase == BROKEN) return MULTIPART_ERROR;
        if (parser->phase == DATA) return data(parser, input);
        if (!input->len) return MULTIPART_MORE;
        char c = input->p[0];
        *input = str_drop(*input, 1);
        enum multipart_event event = feed_byte(parser, c);
        if (event != MULTIPART_MORE) return event;
    }
}

bool multipart_closed(const struct multipart *parser)
{
    return parser->phase == CLOSING || parser->phase == CLOSED;
}

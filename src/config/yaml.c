/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML: libyaml's events into a small tree, and scalars written.
 *
 * The reader keeps the chain of open maps and sequences (at most YAML_DEPTH_MAX); every event
 * either opens one, closes the innermost, or adds a scalar to it. In a map, a scalar that comes
 * when no key is waiting is the next key.
 *
 *     event          innermost is a map, no key yet    map with a key, or sequence    nothing open
 *     scalar         becomes the key                   added                          the root
 *     map, sequence  refused: keys are scalars         added and opened               the root
 *     end            closed                            (libyaml prevents it)          -
 *
 * Invariants: 1. an event is deleted on every path (AUTO); 2. nodes and their text are copies in
 * the arena, so nothing of libyaml outlives yaml_parse; 3. what yaml_write wrote is read back as the
 * same bytes: every character that libyaml refuses, folds or trims is escaped.
 */
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/limits.h"
#include "base/say.h"

struct level {
    struct yaml_node *node;
    struct yaml_node **tail; /* where the next member goes */
    str key;                 /* of a map: waiting for its value */
    uint32_t key_line;
    bool has_key;
};

struct yaml_reader {
    struct arena *arena;
    const char *name;
    struct fault *reterr;
    yaml_parser_t parser;
    struct yaml_node *root;
    unsigned depth;
    unsigned nodes;
    unsigned documents;
    bool ended; /* the stream, not a document */
    struct level levels[YAML_DEPTH_MAX];
};

static void parser_delete(struct yaml_reader **reader)
{
    yaml_parser_delete(&(*reader)->parser);
}

static uint32_t mark_line(yaml_mark_t mark)
{
    return (uint32_t)mark.line + 1; /* fits: a file has at most YAML_BYTES_MAX lines */
}

static enum err yaml_refuse(const struct yaml_reader *r, uint32_t line, const char *what)
{
    return fault(r->reterr, ERR_CONFIG, "%s:%u: %s", say(str_c(r->name)).text, line, what);
}

static enum err refuse_syntax(const struct yaml_reader *r, str text)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "unreadable";
    if (p->error == YAML_READER_ERROR) {
        /* libyaml counts lines only behind its reader: an undecodable byte has an offset instead */
        uint32_t line = 1;
        for (size_t i = 0; i < p->problem_offset && i < text.len; i++) line += text.p[i] == '\n';
        return fault(r->reterr, ERR_CONFIG,
                     "%s:%u: %s; save the file as UTF-8 text without control characters",
                     say(str_c(r->name)).text, line, problem);
    }
    return fault(r->reterr, ERR_CONFIG,
                 "%s:%u: not valid YAML: %s; check indentation, colons and quotes there and above",
                 say(str_c(r->name)).text, mark_line(p->problem_mark), problem);
}

static struct level *innermost(struct yaml_reader *r)
{
    return r->depth ? &r->levels[r->depth - 1] : NULL;
}

static bool key_waits(const struct level *level)
{
    return level->node->type != YAML_MAP || level->has_key;
}

static enum err take_key(struct yaml_reader *r, struct level *level, uint32_t line, str key)
{
    for (const struct yaml_node *n = level->node->child; n; n = n->next) {
        if (!str_eq(n->key, key)) continue;
        return fault(r->reterr, ERR_CONFIG,
                     "%s:%u: the key \"%s\" was already given in line %u; remove one of them",
                     say(str_c(r->name)).text, line, say(key).text, n->line);
    }
    level->key = arena_str(r->arena, key);
    level->key_line = line;
    level->has_key = true;
    return OK;
}

/* A new node in its place: the root, the value of the waiting key, or the next item. */
static enum err add(struct yaml_reader *r, enum yaml_type type, uint32_t line,
                    struct yaml_node **ret_node)
{
    if (++r->nodes > YAML_NODES_MAX)
        return yaml_refuse(r, line, "more than 10000 values; a configuration is smaller");
    struct level *level = innermost(r);
    if (level && !key_waits(level))
        return yaml_refuse(r, line,
                           "a map or sequence stands where a key should; write a plain key");

    struct yaml_node *node = ARENA_NEW(r->arena, struct yaml_node);
    node->type = type;
    node->line = line;
    if (level) {
        if (level->has_key) {
            node->key = level->key;
            node->line = level->key_line;
            level->has_key = false;
        }
        *level->tail = node;
        level->tail = &node->next;
        level->node->count++;
    } else {
        r->root = node;
    }
    *ret_node = node;
    return OK;
}

static enum err open_level(struct yaml_reader *r, enum yaml_type type, uint32_t line)
{
    if (r->depth == YAML_DEPTH_MAX)
        return yaml_refuse(r, line, "nested deeper than 32 levels; a configuration is flatter");
    struct yaml_node *node = NULL;
    enum err e = add(r, type, line, &node);
    if (e) return e;
    r->levels[r->depth++] = (struct level){.node = node, .tail = &node->child};
    return OK;
}

static enum err add_scalar(struct yaml_reader *r, const yaml_event_t *event, uint32_t line)
{
    str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    if (str_find_char(text, '\0') >= 0) return yaml_refuse(r, line, "a NUL in a value; remove it");

    struct level *level = innermost(r);
    if (level && !key_waits(level)) return take_key(r, level, line, text);

    struct yaml_node *node = NULL;
    enum err e = add(r, YAML_SCALAR, line, &node);
    if (e) return e;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !event->data.scalar.tag;
    node->plain = plain;
    node->text = arena_str(r->arena, text);
    node->null = text.len == 0 || (plain && (str_eq(text, STR("~")) || str_eq(text, STR("null"))));
    return OK;
}

static enum err check_anchor(const struct yaml_reader *r, uint32_t line, const yaml_char_t *anchor)
{
    return anchor ? yaml_refuse(r, line, "anchors (&name) are not taken; write the value out") : OK;
}

static enum err check_tag(const struct yaml_reader *r, uint32_t line, const yaml_char_t *tag,
                          const char *allowed)
{
    if (!tag || str_eq(str_c((const char *)tag), str_c(allowed))) return OK;
    return yaml_refuse(r, line, "tags (!name) are not taken; leave it out");
}

static enum err on_event(struct yaml_reader *r, const yaml_event_t *event)
{
    uint32_t line = mark_line(event->start_mark);
    enum err e;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++r->documents == 1
                   ? OK
                   : yaml_refuse(r, line, "a second document begins; leave out the --- line");
    case YAML_STREAM_END_EVENT:
        r->ended = true;
        return OK;
    case YAML_ALIAS_EVENT:
        return yaml_refuse(r, line, "aliases (*name) are not taken; write it out");
    case YAML_SCALAR_EVENT:
        e = check_anchor(r, line, event->data.scalar.anchor);
        if (!e) e = check_tag(r, line, event->data.scalar.tag, YAML_DEFAULT_SCALAR_TAG);
        return e ? e : add_scalar(r, event, line);
    case YAML_MAPPING_START_EVENT:
        e = check_anchor(r, line, event->data.mapping_start.anchor);
        if (!e) e = check_tag(r, line, event->data.mapping_start.tag, YAML_DEFAULT_MAPPING_TAG);
        return e ? e : open_level(r, YAML_MAP, line);
    case YAML_SEQUENCE_START_EVENT:
        e = check_anchor(r, line, event->data.sequence_start.anchor);
        if (!e) e = check_tag(r, line, event->data.sequence_start.tag, YAML_DEFAULT_SEQUENCE_TAG);
        return e ? e : open_level(r, YAML_SEQUENCE, line);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        r->depth--;
        return OK;
    default:
        return OK; /* starts of the stream, ends of documents */
    }
}

enum err yaml_parse(struct arena *arena, const char *name, str text, struct yaml_node **ret_root,
                    struct fault *reterr)
{
    struct yaml_reader reader = {.arena = arena, .name = name, .reterr = reterr};
    if (text.len > YAML_BYTES_MAX)
        return yaml_refuse(&reader, 1, "larger than 1 MiB; a configuration is smaller");

    AUTO(parser_delete) struct yaml_reader *r = &reader;
    if (!yaml_parser_initialize(&r->parser)) abort();
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.len ? text.p : ""),
                                 text.len);

    while (!r->ended) {
        AUTO(yaml_event_delete) yaml_event_t event = {0};
        if (!yaml_parser_parse(&r->parser, &event)) return refuse_syntax(r, text);
        enum err e = on_event(r, &event);
        if (e) return e;
    }
    if (!r->root) {
        r->root = ARENA_NEW(arena, struct yaml_node);
        *r->root = (struct yaml_node){.type = YAML_MAP, .line = 1};
    }
    *ret_root = r->root;
    return OK;
}

/* Writing. */

static bool safe_plain(str text)
{
    static const str safe = STR("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./"
                                "_:-");
    for (size_t i = 0; i < text.len; i++)
        if (str_find_char(safe, text.p[i]) < 0) return false;
    return text.len && !memchr(":-_", text.p[0], 3) && !str_ends(text, STR(":")) &&
           !str_eq(text, STR("null"));
}

/* The character at the start of valid UTF-8, and how many bytes it has. */
static size_t decode(str text, uint32_t *ret_code)
{
    unsigned char first = (unsigned char)text.p[0];
    size_t len = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t code = len == 1 ? first : first & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) code = code << 6 | ((unsigned char)text.p[i] & 0x3F);
    *ret_code = code;
    return len;
}

void yaml_write_quoted(struct buf *out, str text)
{
    buf_char(out, '"');
    while (text.len) {
        uint32_t code;
        str one = {text.p, decode(text, &code)};
        if (code == '"' || code == '\\')
            buf_printf(out, "\\%c", (char)code);
        else if (say_plain(one))
            buf_append(out, one);
        else if (code == '\n')
            buf_append(out, STR("\\n"));
        else if (code == '\t')
            buf_append(out, STR("\\t"));
        else /* what say_plain refuses ends at U+FFFF */
            buf_printf(out, code < 0x100 ? "\\x%02X" : "\\u%04X", code);
        text = str_drop(text, one.len);
    }
    buf_char(out, '"');
}

void yaml_write(struct buf *out, str text)
{
    if (safe_plain(text))
        buf_append(out, text);
    else
        yaml_write_quoted(out, text);
}

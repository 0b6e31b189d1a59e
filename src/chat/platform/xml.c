/* SPDX-License-Identifier: Apache-2.0
 *
 * XML by expat, behind the one file that talks to it: small documents as a list of texts.
 *
 * Invariants:
 * 1. A document type ends the parse before anything in it means something: there are no entities
 *    but the five, and nothing outside the document is ever read.
 * 2. Texts are never longer than the document: every reference takes more bytes than what it stands
 *    for. The size of the document bounds what a parse takes.
 * 3. The first refusal stands; handlers that expat still calls after it do nothing.
 */
#include "chat/platform/xml.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"

enum { KEPT_DEPTH = 3 }; /* the root, its elements, and theirs */

struct open_element {
    size_t item; /* of the document */
    struct buf text;
};

struct parse {
    XML_Parser parser;
    struct arena *arena;
    struct xml_document document;
    struct xml_item items[XML_ELEMENTS_MAX];
    struct open_element open[KEPT_DEPTH]; /* [1] below the root, [2] below that; [0] is not used */
    unsigned depth;                       /* of the element that is open; 0: none */
    unsigned elements;
    const char *refusal; /* NULL: none yet */
};

static void xml_refuse(struct parse *parse, const char *reason)
{
    if (parse->refusal) return;
    parse->refusal = reason;
    XML_StopParser(parse->parser, XML_FALSE);
}

static str path_of(struct parse *parse, const char *name)
{
    if (parse->depth == 1) return arena_str(parse->arena, str_c(name));
    str parent = parse->items[parse->open[1].item].path, own = str_c(name);
    char *path = arena_alloc(parse->arena, parent.len + 1 + own.len);
    memcpy(path, parent.p, parent.len);
    path[parent.len] = '/';
    memcpy(path + parent.len + 1, own.p, own.len);
    return (str){path, parent.len + 1 + own.len};
}

static bool has(const struct parse *parse, str path)
{
    for (size_t i = 0; i < parse->document.count; i++)
        if (str_eq(parse->items[i].path, path)) return true;
    return false;
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct parse *parse = arg;
    (void)attributes;
    if (parse->refusal) return;
    if (parse->depth == XML_DEPTH_MAX) {
        xml_refuse(parse, "elements are nested too deeply");
        return;
    }
    if (parse->elements++ == XML_ELEMENTS_MAX) {
        xml_refuse(parse, "too many elements");
        return;
    }
    if (parse->depth == 0) {
        parse->document.root = arena_str(parse->arena, str_c(name));
    } else if (parse->depth < KEPT_DEPTH) {
        struct open_element *open = &parse->open[parse->depth];
        str path = path_of(parse, name);
        if (parse->depth == 1 && has(parse, path)) {
            xml_refuse(parse, "an element that is there twice");
            return;
        }
        open->item = parse->document.count++;
        parse->items[open->item].path = path;
        buf_clear(&open->text);
    }
    parse->depth++;
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
    struct parse *parse = arg;
    (void)name;
    if (parse->refusal) return;
    assert(parse->depth);
    parse->depth--;
    if (parse->depth == 0 || parse->depth >= KEPT_DEPTH) return;
    struct open_element *open = &parse->open[parse->depth];
    parse->items[open->item].text = arena_str(parse->arena, buf_str(&open->text));
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int len)
{
    struct parse *parse = arg;
    if (parse->refusal || parse->depth < 2 || parse->depth > KEPT_DEPTH) return;
    buf_append(&parse->open[parse->depth - 1].text, (str){text, (size_t)len});
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int has_subset)
{
    (void)name, (void)system_id, (void)public_id, (void)has_subset;
    xml_refuse(arg, "a document type is not taken");
}

enum err xml_parse(struct arena *arena, str bytes, struct xml_document *ret_document,
                   struct fault *reterr)
{
    if (!bytes.len) return fault(reterr, ERR_BAD_REQUEST, "the document is empty");
    if (bytes.len > CHANNEL_HOOK_BYTES_MAX)
        return fault(reterr, ERR_BAD_REQUEST, "the document is too large");
    if (!utf8_valid(bytes)) return fault(reterr, ERR_BAD_REQUEST, "the document is not UTF-8");

    struct parse *parse = ARENA_NEW(arena, struct parse);
    parse->arena = arena;
    parse->parser = XML_ParserCreate("UTF-8");
    if (!parse->parser) abort();
    XML_SetUserData(parse->parser, parse);
    XML_SetElementHandler(parse->parser, on_start, on_end);
    XML_SetCharacterDataHandler(parse->parser, on_text);
    XML_SetStartDoctypeDeclHandler(parse->parser, on_doctype);
    for (size_t i = 0; i < KEPT_DEPTH; i++) buf_init(&parse->open[i].text, bytes.len);
    if (XML_Parse(parse->parser, bytes.p, (int)bytes.len, XML_TRUE) != XML_STATUS_OK &&
        !parse->refusal)
        parse->refusal = XML_ErrorString(XML_GetErrorCode(parse->parser));
    for (size_t i = 0; i < KEPT_DEPTH; i++) {
        assert(!parse->open[i].text.full);
        buf_done(&parse->open[i].text);
    }
    unsigned long line = XML_GetCurrentLineNumber(parse->parser);
    XML_ParserFree(parse->parser);
    if (parse->refusal)
        return fault(reterr, ERR_BAD_REQUEST, "not XML that is taken, line %lu: %s", line,
                     parse->refusal);
    *ret_document = parse->document;
    ret_document->items = parse->items;
    return OK;
}

str xml_text(const struct xml_document *document, const char *path)
{
    for (size_t i = 0; i < document->count; i++)
        if (str_eq(document->items[i].path, str_c(path))) return document->items[i].text;
    return STR_EMPTY;
}

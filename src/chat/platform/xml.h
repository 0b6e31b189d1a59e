/* SPDX-License-Identifier: Apache-2.0
 *
 * Small XML documents as platforms send them: one root, values below it, and perhaps values below
 * those. Attributes, comments and processing instructions are read over. Pure.
 *
 *     <xml><From>a</From><Scan><Result>1</Result></Scan></xml>
 *
 *     root "xml";  From = "a",  Scan = "",  Scan/Result = "1"
 */
#ifndef CHAT_PLATFORM_XML_H
#define CHAT_PLATFORM_XML_H

#include "base/arena.h"

struct xml_item {
    str path; /* of an element below the root: "A", or "A/B" one level deeper */
    str text; /* of its own, without that of elements in it */
};

struct xml_document {
    str root;
    struct xml_item *items; /* in the order in which they begin */
    size_t count;
};

/* One whole document in UTF-8, whatever it says of its encoding; at most CHANNEL_HOOK_BYTES_MAX.
 * ERR_BAD_REQUEST: not well-formed, a document type, entities beyond the five, deeper than
 * XML_DEPTH_MAX, more than XML_ELEMENTS_MAX elements, one below the root that is there twice. What comes back lives in the arena. */
enum err xml_parse(struct arena *arena, str bytes, struct xml_document *ret_document,
                   struct fault *reterr) MUST_USE;

/* The text of the first item of that path; STR_EMPTY if there is none. */
str xml_text(const struct xml_document *document, const char *path);

#endif

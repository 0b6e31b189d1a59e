/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML, reached only through here: one document as a tree of scalars, maps and sequences in an
 * arena, each with its line; and a scalar written so that it is read back.
 *
 * A configuration needs little of YAML, and the rest only hides mistakes. Refused: anchors and
 * aliases, tags other than the default one of each kind (!!str, !!map, !!seq), duplicate keys, keys
 * that are no scalars, several documents, invalid UTF-8, NUL, and what is beyond YAML_BYTES_MAX,
 * YAML_DEPTH_MAX or YAML_NODES_MAX. Scalars stay text; "nothing" and plain ones are told apart.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include "base/arena.h"
#include "base/buf.h"

enum yaml_type { YAML_SCALAR, YAML_MAP, YAML_SEQUENCE };

struct yaml_node {
    enum yaml_type type;
    bool null;               /* a scalar that says nothing: empty, or a plain ~ or null */
    bool plain;              /* a scalar without quotes, no block, no tag: may be a number */
    uint32_t line;           /* from 1: where its key, or else it itself, begins */
    uint32_t count;          /* members of a map or sequence */
    str key;                 /* only for a member of a map */
    str text;                /* only for a scalar */
    struct yaml_node *child; /* first member */
    struct yaml_node *next;  /* next member of the same parent */
};

/* Parse a whole file. `name` is what messages call it. A file without content is an empty map. On
 * failure *ret_root is untouched and the fault (ERR_CONFIG) says file, line, and what to do. */
enum err yaml_parse(struct arena *arena, const char *name, str text, struct yaml_node **ret_root,
                    struct fault *reterr) MUST_USE;

/* Any text (valid UTF-8 without NUL) as a scalar on one line, for a value or a key in any context:
 * as it is where that is surely read back as the same text, else in double quotes. */
void yaml_write(struct buf *out, str text);
void yaml_write_quoted(struct buf *out, str text); /* always in quotes: a string, not a number */

#endif

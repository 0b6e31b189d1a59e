/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that others wrote, for a person who decides by them: nothing in them stays unseen, and two
 * texts that differ never look the same for want of a mark. Pure.
 */
#ifndef UI_VISIBLE_H
#define UI_VISIBLE_H

#include "base/arena.h"

/* The text with every character that shows nothing, or turns the others around, written out:
 *
 *     a\u202Eb       a⟦U+202E⟧b        controls, bidi marks, zero width, fillers, private use
 *     "a  "          a⟦U+0020 ×2⟧      spaces and line ends at both ends, and long rows of them
 *     a⟦b            a⟦U+27E6⟧b        the brackets themselves: a mark cannot be forged
 *
 * With `lines`, a line feed inside the text stays a line break; without, it is written out too.
 * Nothing is trimmed or cut, and the source can be read back from what is shown. Takes valid UTF-8.
 * Borrows the text if there is nothing to do. */
str ui_visible(struct arena *arena, str text, bool lines);

/* JSON on one line, with the same characters inside its strings written as JSON escapes (\u202e): it
 * means what it meant, and does nothing to a terminal. Bytes that are no UTF-8 are no JSON: nothing is
 * left of them. */
str ui_visible_json(struct arena *arena, str json);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a conversation a model is given: its window has to hold the request and the answer.
 * Pure.
 *
 * Nobody here has the model's tokenizer. Tokens are estimated, rather too many than too few: three
 * bytes of ASCII are one, a character of two or three bytes is one, a longer one two. So tokens are
 * never more than half of a text's bytes, rounded up, and never less than a third.
 */
#ifndef AGENT_CORE_WINDOW_H
#define AGENT_CORE_WINDOW_H

#include "base/arena.h"
#include "model/model.h"

size_t window_tokens(str text);
size_t window_message_tokens(const struct model_message *message);

/* Tokens that a whole request may take: the window without the answer and a reserve. 0: the window
 * is not known. */
size_t window_room(const struct model *model);

/* A conversation that has to fit. */
struct window_talk {
    struct arena *arena;
    str locale; /* of what stands in the place of what is cut */
    struct model_message *messages;
    size_t *tokens; /* of each, its files included */
    size_t count;
    const size_t *starts; /* of turns: the first message of each, in order */
    size_t start_count;
    size_t room; /* for all of them */
};

/* The first message that is kept. All are, from `begin` on, if they fit; else the oldest whole turns
 * go, and some more than that, so that the next ones fit without a new cut. Turns that begin before
 * `least` go in any case. The newest turn stays. */
size_t window_first(const struct window_talk *talk, size_t begin, size_t least);

/* The messages from `first` on are the newest turn and too long: results and a person's words are
 * cut, and after that the oldest calls go with their results, and older words are cut. True for each that goes in `gone`. What
 * is done to a message depends on nothing behind the next few: a turn that grows is cut seldom, and
 * between two cuts its beginning stays as it is. */
void window_squeeze(struct window_talk *talk, size_t first, bool *gone);

#endif
